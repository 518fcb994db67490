/* guard-keys.c -- see guard-keys.h.
 *
 * A guard's names are 2.7 MB of address space, of which only the pages of seats in use are ever
 * touched.  A name counts as long as its permit's word is in the seat, so nothing is removed when a
 * permit is given back.
 */
#include "server/serve/decide/guard-keys.h"

#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"

#define WRITING 1u /* in the place of a word, which is never that small: it has permits */

struct name {
    uint64_t word; /* the permit's; WRITING: the text is being written */
    _Alignas(8) char text[WEIR_KEY_TEXT];
};

struct weir__guard_keys {
    struct name **names; /* by guard; NULL until a key has got a permit; atomic */
    uint32_t guards;
};

_Static_assert(WEIR_KEY_TEXT % 8 == 0, "copied in words");

struct weir__guard_keys *weir__guard_keys_create(const struct weir_table *table)
{
    struct weir__guard_keys *keys = calloc(1, sizeof(*keys));

    if (keys == NULL)
        return NULL;
    keys->guards = table->guards.most;
    keys->names = calloc(keys->guards, sizeof(*keys->names));
    if (keys->names != NULL)
        return keys;
    free(keys);
    return NULL;
}

void weir__guard_keys_destroy(struct weir__guard_keys *keys)
{
    for (uint32_t i = 0; keys != NULL && i < keys->guards; i++)
        free(keys->names[i]);
    if (keys != NULL)
        free(keys->names);
    free(keys);
}

/* ----------------------------------------------------------------- noting ---- */

static struct name *names_of(struct weir__guard_keys *keys, uint32_t guard)
{
    struct name *names = weir__acquire(&keys->names[guard]), *none = NULL;

    if (names != NULL)
        return names;
    names = calloc(WEIR__GUARD_SEATS, sizeof(*names));
    if (names == NULL || __atomic_compare_exchange_n(&keys->names[guard], &none, names, false,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return names;
    free(names);
    return none; /* another thread was quicker */
}

void weir__guard_keys_note(struct weir__guard_keys *keys, const struct weir_guard *guard,
                           const struct weir_permit *permit, const char *text, size_t len)
{
    _Alignas(8) char copy[WEIR_KEY_TEXT] = { 0 };
    struct name *names = names_of(keys, guard->id);

    if (names == NULL || permit->seat >= WEIR__GUARD_SEATS)
        return;
    struct name *name = &names[permit->seat];
    if (__atomic_exchange_n(&name->word, WRITING, __ATOMIC_ACQ_REL) == WRITING)
        return; /* by a thread that was stopped, and its permit is over */
    memcpy(copy, text, len < sizeof(copy) ? len : sizeof(copy) - 1);
    weir__copy_words(name->text, copy, sizeof(copy));
    weir__publish(&name->word, permit->word);
}

void weir__guard_keys_renew(struct weir__guard_keys *keys, const struct weir_guard *guard,
                            uint64_t before, const struct weir_permit *permit)
{
    struct name *names = weir__acquire(&keys->names[guard->id]);

    if (names != NULL && permit->seat < WEIR__GUARD_SEATS)
        (void)weir__swap(&names[permit->seat].word, before, permit->word);
}

/* ---------------------------------------------------------------- listing ---- */

/* A permit of a key; or all of a key's. */
struct held {
    uint64_t key; /* its slot */
    uint64_t word;
    uint32_t seat;
    uint32_t permits;
};

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct held *)a)->key, y = ((const struct held *)b)->key;

    return (x > y) - (x < y);
}

static int by_permits(const void *a, const void *b)
{
    const struct held *x = a, *y = b;

    return x->permits != y->permits ? (x->permits < y->permits) - (x->permits > y->permits)
                                    : by_key(a, b);
}

static size_t read_seats(const struct weir_guard *guard, struct held *out)
{
    uint64_t seats = weir__get(&guard->record->seats);
    size_t n = 0;

    for (uint32_t i = 0; i < seats && i < WEIR__GUARD_SEATS; i++) {
        uint64_t pair[2];
        weir__load_pair(&guard->held.seats[i].word, pair);
        uint64_t key = weir__held_key(pair[1]);
        uint32_t permits = weir__permit_weight(pair[0]);
        if (key != 0 && permits != 0)
            out[n++] = (struct held){ key, pair[0], i, permits };
    }
    return n;
}

/* The text of the key that has this permit. */
static bool read_name(const struct name *names, const struct held *held, char out[WEIR_KEY_TEXT])
{
    const struct name *name = &names[held->seat];
    uint64_t word = weir__acquire(&name->word);

    if (word != held->word)
        return false;
    weir__copy_words(out, name->text, WEIR_KEY_TEXT);
    return weir__acquire(&name->word) == word;
}

/* Joins the permits of each key; the one that is left has a name, if any has. */
static size_t join_keys(const struct name *names, struct held *held, size_t n)
{
    _Alignas(8) char text[WEIR_KEY_TEXT];
    size_t keys = 0;

    qsort(held, n, sizeof(*held), by_key);
    for (size_t i = 0; i < n; i++) {
        if (keys == 0 || held[keys - 1].key != held[i].key) {
            held[keys++] = held[i];
            continue;
        }
        held[i].permits += held[keys - 1].permits;
        if (names == NULL || !read_name(names, &held[keys - 1], text))
            held[keys - 1] = held[i];
        held[keys - 1].permits = held[i].permits;
    }
    qsort(held, keys, sizeof(*held), by_permits);
    return keys;
}

void weir__guard_keys_json(struct weir__guard_keys *keys, const struct weir_guard *guard,
                           size_t most, struct weir__buffer *out)
{
    _Alignas(8) char text[WEIR_KEY_TEXT];
    const struct name *names = weir__acquire(&keys->names[guard->id]);
    struct held *held = malloc(WEIR__GUARD_SEATS * sizeof(*held));

    if (held == NULL)
        return;
    size_t n = join_keys(names, held, read_seats(guard, held));
    weir__buffer_member_number(out, "keys_in_flight", (int64_t)n);
    weir__buffer_open(out, "keys", '[');
    for (size_t i = 0; i < n && i < most; i++) {
        bool named = names != NULL && read_name(names, &held[i], text);
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member_or_null(out, "key", named ? text : NULL);
        weir__buffer_member_number(out, "in_flight", held[i].permits);
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "]");
    free(held);
}
