/* registry.c -- limiters and guards come and go, and nobody waits for a process that was stopped.
 *
 * A place's pair is changed by hands (hand.h) alone, which trade its block for the one before:
 *
 *     free ─► in use ─► in use, another edition ... ─► closed ─► (doomed ─►) free
 *                ▲                                        │
 *                └────────────────────────────────────────┘  somebody wants it again
 *
 * A hand that fills or frees a place also changes the directory's counter.  A process that adds a
 * name has read the counter before it looked for the name: if anybody added or removed one since,
 * its hand fails, and it looks again.  So no name is there twice.
 *
 * Users (place-users.c): a bit for each holder.  A user sets its bit and then looks whether the
 * place is still open; a process that closes a place does so first and then looks at the bits.  One
 * of them sees the other.
 *
 * Doomed is the way of guards, whose bytes are wiped, not swapped: their name is as good as gone,
 * and only the process that doomed it, or one that finds that dead, wipes them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "table/hand.h"
#include "table/holders.h"
#include "table/registry.h"
#include "base/utf8.h"

/* In a place's second word, with the block. */
#define CLOSED    ((uint64_t)1 << 63)
#define DOOMED    ((uint64_t)1 << 62)     /* for good */
#define DOOMED_BY ((uint64_t)0x3ff << 32) /* its holder */

/* ----------------------------------------------------------------- pairs ---- */

/* The pair as it is, without a pin. */
static void load_settled(struct weir_table *table, uint64_t *at, uint64_t pair[2])
{
    weir__load_pair(at, pair);
    while (pair[0] & WEIR__PIN) {
        weir__hand_settle(table, at);
        weir__load_pair(at, pair);
    }
}

static void load_place(struct weir_table *table, uint32_t place, uint64_t pair[2])
{
    load_settled(table, &table->places[place].edition, pair);
}

static void load_directory(struct weir_table *table, uint64_t pair[2])
{
    load_settled(table, &table->directory->count, pair);
}

/* Adds to the hand: the place's second word becomes `word`. */
static void change_place(struct weir_table *table, struct weir__hand *hand, uint32_t place,
                         const uint64_t pair[2], uint64_t word)
{
    uint32_t block_before = (uint32_t)pair[1], block_after = (uint32_t)word;
    struct weir__entry e = { .at = weir__offset_of(table, &table->places[place]),
                             .before = { pair[0], pair[1] },
                             .after = { (pair[0] + 1) & ~WEIR__PIN, word } };

    if (block_before != block_after) {
        e.block_before = block_before;
        e.block_after = block_after;
    }
    weir__hand_add(hand, &e);
}

static void change_directory(struct weir_table *table, struct weir__hand *hand,
                             const uint64_t pair[2])
{
    weir__hand_add(hand, &(struct weir__entry){ .at = weir__offset_of(table, table->directory),
                                                .before = { pair[0], pair[1] },
                                                .after = { (pair[0] + 1) & ~WEIR__PIN, pair[1] } });
}

/* --------------------------------------------------------------- records ---- */

/* Places with one of these bits in their second word are left out. */
static uint64_t read_place(struct weir_table *table, uint32_t place, void *out, size_t bytes,
                           uint64_t without)
{
    uint64_t pair[2], again[2];

    for (;;) {
        load_place(table, place, pair);
        uint32_t block = (uint32_t)pair[1];
        if (weir__block_bytes(&table->names.slab, block) < bytes || (pair[1] & without))
            return 0;
        weir__copy_words(out, weir__block_at(&table->names.slab, block), bytes);
        weir__load_pair(&table->places[place].edition, again);
        if (again[0] == pair[0] && again[1] == pair[1])
            return pair[0];
    }
}

uint64_t weir__record_read(struct weir_table *table, const struct weir__names *names, uint32_t id,
                           void *out)
{
    return id < names->most ? read_place(table, names->first + id, out, names->record_bytes, DOOMED)
                            : 0;
}

void *weir__record_here(struct weir_table *table, const struct weir__names *names, uint32_t id)
{
    uint64_t pair[2];

    load_place(table, names->first + id, pair);
    uint32_t block = (uint32_t)pair[1];
    return weir__block_bytes(&table->names.slab, block) < names->record_bytes
               ? NULL
               : weir__block_at(&table->names.slab, block);
}

static size_t largest_record(const struct weir_table *table)
{
    size_t l = table->limiters.record_bytes, g = table->guards.record_bytes;

    return weir__block_round(l > g ? l : g);
}

int weir__records_reserve(struct weir_table *table, size_t n, struct weir_error *error)
{
    pthread_mutex_lock(&table->mutex);
    size_t had = table->n_reserved;
    uint32_t *more = realloc(table->reserved, (had + n + 1) * sizeof(*more));
    if (more != NULL) {
        table->reserved = more;
        while (table->n_reserved < had + n) {
            uint32_t block = weir__block_take(&table->names.slab, largest_record(table));
            if (block == 0)
                break;
            more[table->n_reserved++] = block;
        }
    }
    size_t got = table->n_reserved - had;
    pthread_mutex_unlock(&table->mutex);
    if (got == n)
        return WEIR_OK;
    weir__records_unreserve(table, got);
    return weir__fail(error, WEIR_NO_MEMORY,
                      "%zu limits change at once, and the table has room or disk space for fewer: "
                      "change some at a time, or make a table with more limiters",
                      n);
}

static uint32_t take_reserved(struct weir_table *table)
{
    pthread_mutex_lock(&table->mutex);
    uint32_t block = table->n_reserved > 0 ? table->reserved[--table->n_reserved] : 0;
    pthread_mutex_unlock(&table->mutex);
    return block;
}

void weir__records_unreserve(struct weir_table *table, size_t n)
{
    for (uint32_t block; n > 0 && (block = take_reserved(table)) != 0; n--)
        weir__block_give(&table->names.slab, block, largest_record(table));
}

/* The hand's spare block with the record; 0: no memory. */
static uint32_t write_record(struct weir_table *table, const struct weir__names *names,
                             struct weir__hand *hand, const void *record)
{
    uint32_t block = weir__hand_block(&table->names, hand, 0, names->record_bytes, false);

    if (block == 0 && (block = take_reserved(table)) != 0)
        weir__hand_adopt(&table->names, hand, 0, block);
    if (block != 0)
        weir__copy_words(weir__block_at(&table->names.slab, block), record, names->record_bytes);
    return block;
}

bool weir__record_change(struct weir_table *table, const struct weir__names *names, uint32_t id,
                         uint64_t edition, const void *record, bool *full)
{
    uint32_t place = names->first + id;
    struct weir__hand *hand = weir__hand_take(table);
    uint32_t block = write_record(table, names, hand, record);
    uint64_t pair[2];
    bool done = false;

    *full = block == 0;
    load_place(table, place, pair);
    if (block != 0 && pair[0] == edition) {
        change_place(table, hand, place, pair, block);
        done = weir__hand_commit(table, hand);
    }
    weir__hand_give(hand);
    return done;
}

/* ----------------------------------------------------------------- names ---- */

/* Where each process finds places by their names: open addressing, at most half full, in memory of
 * its own.  Names that others have added since are taken in when next one is looked for; those that
 * went stay until the index is made anew, and are noticed because the record is another's. */

static size_t index_room(uint32_t most)
{
    size_t room = 4;

    while (room < 4 * (size_t)most)
        room *= 2;
    return room;
}

int weir__names_open(struct weir__names *names, uint32_t first, uint32_t most, size_t record_bytes)
{
    *names = (struct weir__names){ .first = first,
                                   .most = most,
                                   .record_bytes = record_bytes,
                                   .room = index_room(most),
                                   .taken_in = UINT64_MAX };
    names->index = calloc(names->room, sizeof(*names->index));
    names->editions = calloc(most, sizeof(*names->editions));
    names->uses = calloc(most, sizeof(*names->uses));
    return names->index && names->editions && names->uses ? WEIR_OK : WEIR_NO_MEMORY;
}

void weir__names_close(struct weir__names *names)
{
    free(names->index);
    free(names->editions);
    free(names->uses);
}

static bool has_name(struct weir_table *table, const struct weir__names *names, uint32_t id,
                     const char *name)
{
    struct weir__record_head head;

    return read_place(table, names->first + id, &head, sizeof(head), DOOMED) != 0 &&
           strncmp(head.name, name, sizeof(head.name)) == 0;
}

static const char *kind_of(const struct weir__names *names)
{
    return names->first == 0 ? "limiter" : "guard";
}

int weir__name_check(const struct weir__names *names, const char *name, struct weir_error *error)
{
    size_t len = strlen(name);

    if (len == 0 || len >= WEIR__NAME_SIZE)
        return weir__fail(error, WEIR_INVALID, "a %s's name has 1 to %d bytes, and this has %zu",
                          kind_of(names), WEIR__NAME_SIZE - 1, len);
    for (size_t i = 0; i < len; i++)
        if (weir__utf8_is_control(name + i))
            return weir__fail_at(error, (int)i + 1, "a %s's name has no control characters",
                                 kind_of(names));
    return WEIR_OK;
}

/* The index's place for a name: where the first id of that name is, or where it would go. */
static uint32_t *index_place(struct weir_table *table, const struct weir__names *names,
                             const char *name)
{
    size_t len = strnlen(name, WEIR__NAME_SIZE), mask = names->room - 1,
           i = weir__hash_key(table->secrets, 0, (struct weir_key){ name, len }).place & mask;

    while (names->index[i] != 0 && !has_name(table, names, names->index[i] - 1, name))
        i = (i + 1) & mask;
    return &names->index[i];
}

static void index_add(struct weir_table *table, struct weir__names *names, uint32_t id)
{
    struct weir__record_head head;

    if (read_place(table, names->first + id, &head, sizeof(head), DOOMED) == 0)
        return;
    uint32_t *place = index_place(table, names, head.name);
    if (*place != 0) /* of two that damage made equal the first counts */
        return;
    if (++names->indexed > names->room / 2) {
        names->indexed = 0;
        memset(names->index, 0, names->room * sizeof(*names->index));
        memset(names->editions, 0, names->most * sizeof(*names->editions));
        names->taken_in = UINT64_MAX;
        return;
    }
    *place = id + 1;
}

/* Takes in the places that were filled since. */
static void take_in(struct weir_table *table, struct weir__names *names, uint64_t count)
{
    while (names->taken_in != count) {
        names->taken_in = count;
        for (uint32_t id = 0; id < names->most; id++) {
            const struct weir__place *place = weir__place_at(table, names, id);
            uint64_t edition = weir__acquire(&place->edition);
            if (edition == names->editions[id])
                continue;
            names->editions[id] = edition;
            index_add(table, names, id);
        }
    }
}

/* The last that was added is this process's own: there is no need to look at all. */
static void take_in_own(struct weir_table *table, struct weir__names *names, uint32_t id,
                        uint64_t before)
{
    pthread_mutex_lock(&table->mutex);
    if (names->taken_in == before) {
        names->taken_in = before + 1;
        names->editions[id] = weir__acquire(&weir__place_at(table, names, id)->edition);
        index_add(table, names, id);
    }
    pthread_mutex_unlock(&table->mutex);
}

/* With the table's mutex; the directory's counter is `count`, or was. */
static uint32_t find_locked(struct weir_table *table, struct weir__names *names, const char *name,
                            uint64_t count)
{
    take_in(table, names, count);
    return *index_place(table, names, name) - 1; /* 0 - 1: WEIR__NO_PLACE */
}

uint32_t weir__name_find(struct weir_table *table, struct weir__names *names, const char *name)
{
    uint64_t pair[2];

    load_directory(table, pair);
    pthread_mutex_lock(&table->mutex);
    uint32_t id = find_locked(table, names, name, pair[0]);
    pthread_mutex_unlock(&table->mutex);
    return id;
}

/* A free place, the next one after the last; `most`: none is. */
static uint32_t find_free(const struct weir_table *table, struct weir__names *names)
{
    uint32_t first = weir__get(&names->next);

    for (uint32_t i = 0; i < names->most; i++) {
        uint32_t id = (first + i) % names->most;
        if (weir__acquire(&weir__place_at(table, names, id)->word) == 0) {
            weir__set(&names->next, id);
            return id;
        }
    }
    return names->most;
}

static int fail_full(const struct weir__names *names, struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY,
                      "the table was made for %" PRIu32 " %ss, and has them already", names->most,
                      kind_of(names));
}

/* Everything that a new place needs: disk space for it, and its record in a block. */
static int prepare_place(struct weir_table *table, const struct weir__names *names, uint32_t id,
                         const void *record, weir__preparer *prepare, struct weir_error *error)
{
    const struct weir__users *users = table->users + names->first + id;
    int code = id == names->most ? fail_full(names, error)
                                 : weir__table_commit(table, weir__offset_of(table, users),
                                                      sizeof(*users), error);

    return code == WEIR_OK && prepare ? prepare(table, id, record, error) : code;
}

/* One try to add it: it is there then, or somebody else has changed the directory. */
static int add_once(struct weir_table *table, struct weir__names *names, struct weir__hand *hand,
                    const void *record, weir__preparer *prepare, const uint64_t directory[2],
                    struct weir_error *error)
{
    uint32_t id = find_free(table, names), place = names->first + id;
    int code = prepare_place(table, names, id, record, prepare, error);
    uint64_t pair[2];

    if (code)
        return code;
    uint32_t block = write_record(table, names, hand, record);
    if (block == 0)
        return weir__fail(error, WEIR_NO_MEMORY, "there is no disk space for another record");
    load_place(table, place, pair);
    if (pair[1] == 0) {
        change_place(table, hand, place, pair, block);
        change_directory(table, hand, directory);
        if (weir__hand_commit(table, hand))
            take_in_own(table, names, id, directory[0]);
    }
    return WEIR_OK;
}

int weir__name_add(struct weir_table *table, struct weir__names *names, const void *record,
                   weir__preparer *prepare, uint32_t *id, struct weir_error *error)
{
    const struct weir__record_head *head = record;
    struct weir__hand *hand = weir__hand_take(table);
    int code = WEIR_OK;

    for (;;) {
        uint64_t directory[2];
        load_directory(table, directory);
        pthread_mutex_lock(&table->mutex);
        *id = find_locked(table, names, head->name, directory[0]);
        pthread_mutex_unlock(&table->mutex);
        if (*id != WEIR__NO_PLACE || code != WEIR_OK)
            break;
        code = add_once(table, names, hand, record, prepare, directory, error);
    }
    weir__hand_give(hand);
    return *id != WEIR__NO_PLACE ? WEIR_OK : code;
}

uint32_t weir__names_count(const struct weir_table *table, const struct weir__names *names)
{
    uint32_t n = 0;

    for (uint32_t id = 0; id < names->most; id++)
        n += weir__get(&weir__place_at(table, names, id)->word) != 0;
    return n;
}

/* ------------------------------------------------------- open and closed ---- */

/* One try to change a place's second word. */
static bool set_word(struct weir_table *table, uint32_t place, const uint64_t pair[2],
                     uint64_t word)
{
    struct weir__hand *hand = weir__hand_take(table);

    change_place(table, hand, place, pair, word);
    bool done = weir__hand_commit(table, hand);
    weir__hand_give(hand);
    return done;
}

/* Closed and wanted again: open, unless it has gone by now. */
void weir__place_reopen(struct weir_table *table, uint32_t place)
{
    uint64_t pair[2];

    do {
        load_place(table, place, pair);
    } while ((pair[1] & CLOSED) && !(pair[1] & DOOMED) &&
             !set_word(table, place, pair, pair[1] & ~CLOSED));
}

bool weir__place_salt(struct weir_table *table, uint32_t place, uint64_t *out)
{
    struct weir__record_head head;
    bool open = read_place(table, place, &head, sizeof(head), CLOSED | DOOMED) != 0;

    if (open)
        *out = head.salt;
    return open;
}

/* The dead holder's place may be another's soon: what it doomed is anybody's. */
void weir__place_disown(struct weir_table *table, uint32_t place, uint32_t holder)
{
    uint64_t pair[2];

    do {
        load_place(table, place, pair);
    } while ((pair[1] & DOOMED) && (pair[1] & DOOMED_BY) >> 32 == holder &&
             !set_word(table, place, pair, pair[1] & ~DOOMED_BY));
}

/* -------------------------------------------------------------- removal ---- */

/* The pair of a place that is closed since that edition. */
static bool load_closed(struct weir_table *table, uint32_t place, uint64_t edition,
                        uint64_t pair[2])
{
    load_place(table, place, pair);
    return (pair[1] & CLOSED) && pair[0] == edition;
}

bool weir__place_is_closed(struct weir_table *table, uint32_t place, uint64_t edition)
{
    uint64_t pair[2];

    return load_closed(table, place, edition, pair);
}

bool weir__place_stays_closed(struct weir_table *table, uint32_t place, uint64_t edition,
                              struct weir__hand *hand)
{
    uint64_t pair[2];

    if (!load_closed(table, place, edition, pair))
        return false;
    weir__hand_add(hand, &(struct weir__entry){ .at = weir__offset_of(table, &table->places[place]),
                                                .before = { pair[0], pair[1] },
                                                .after = { pair[0], pair[1] } });
    return true;
}

uint64_t weir__place_close(struct weir_table *table, uint32_t place)
{
    uint64_t pair[2];

    load_place(table, place, pair);
    if (pair[1] == 0 || weir__place_has_users(table, place))
        return 0;
    if ((pair[1] & CLOSED) == 0) {
        if (!set_word(table, place, pair, pair[1] | CLOSED))
            return 0;
        pair[0]++;
    }
    if (!weir__place_has_users(table, place))
        return pair[0];
    weir__place_reopen(table, place);
    return 0;
}

/* A process that died before it was done is followed by another.  One without a place of its own
 * does not begin: nobody could tell whether it goes on. */
static bool is_others(const struct weir_table *table, uint64_t word, uint32_t me)
{
    uint32_t by = (uint32_t)((word & DOOMED_BY) >> 32);

    return ((word & DOOMED) && by != me && weir__get(&table->holders[by].pid) != 0) ||
           (me == 0 && table->fd >= 0);
}

uint64_t weir__place_doom(struct weir_table *table, uint32_t place, uint64_t edition)
{
    uint32_t me = weir__holder_me(table);
    uint64_t pair[2];
    bool doomed =
        load_closed(table, place, edition, pair) && !is_others(table, pair[1], me) &&
        set_word(table, place, pair, CLOSED | DOOMED | (uint64_t)me << 32 | (uint32_t)pair[1]);

    return doomed ? pair[0] + 1 : 0;
}

void weir__place_free(struct weir_table *table, uint32_t place, uint64_t edition)
{
    struct weir__hand *hand = weir__hand_take(table);
    uint64_t pair[2], directory[2];
    bool freed = false;

    while (!freed && load_closed(table, place, edition, pair)) {
        load_directory(table, directory);
        weir__set(&table->places[place].mode, 0); /* not for the next one in this place */
        change_place(table, hand, place, pair, 0);
        change_directory(table, hand, directory);
        freed = weir__hand_commit(table, hand);
    }
    weir__hand_give(hand);
}

/* ------------------------------------------------------------------ alone ---- */

static void rebuild_place(struct weir_table *table, uint32_t place)
{
    struct weir__place *p = &table->places[place];
    size_t bytes =
        place < table->limiters.most ? table->limiters.record_bytes : table->guards.record_bytes;

    if (p->word != 0 && !weir__slab_rebuild_mark(&table->names.slab, (uint32_t)p->word, bytes))
        p->word = 0; /* damage */
    if (p->word & DOOMED)
        p->word &= ~DOOMED_BY; /* that has gone */
    if (p->word != 0)
        memset(&table->users[place], 0, sizeof(table->users[place]));
}

void weir__registry_rebuild(struct weir_table *table)
{
    weir__slab_rebuild_begin(&table->names.slab);
    for (uint32_t place = 0; place < table->n_places; place++)
        rebuild_place(table, place);
    (void)weir__slab_rebuild_end(&table->names.slab);
}
