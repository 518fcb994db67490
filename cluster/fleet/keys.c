/* keys.c -- keys by hash, and by the moment they are due.
 *
 * A draw is due soon, and answered before that; other keys rest for long, and there are many.  In
 * one heap each draw would rise through all of it, and sink again. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/fleet/fleet-private.h"

enum { KEYS_DEFAULT = 65536, TRIES = 32 };

int weir__fleet_keys_make(struct weir__fleet *f, size_t keys, struct weir_error *error)
{
    f->n_keys = keys > 0 ? keys : KEYS_DEFAULT;
    for (f->table_size = 1; f->table_size < f->n_keys;)
        f->table_size *= 2;
    f->keys = calloc(f->n_keys, sizeof(*f->keys));
    f->table = calloc(f->table_size, sizeof(struct weir__fleet_key *));
    f->drawing.heap = calloc(f->n_keys, sizeof(*f->drawing.heap));
    f->resting.heap = calloc(f->n_keys, sizeof(*f->resting.heap));
    if (f->keys == NULL || f->table == NULL || f->drawing.heap == NULL || f->resting.heap == NULL) {
        weir__fleet_keys_free(f);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the keys of a fleet");
    }
    return WEIR_OK;
}

void weir__fleet_keys_free(struct weir__fleet *f)
{
    free(f->keys);
    free(f->table);
    free(f->drawing.heap);
    free(f->resting.heap);
}

/* ------------------------------------------------------------------ dues ---- */

static void put(struct weir__fleet_dues *d, size_t at, struct weir__fleet_due due)
{
    d->heap[at] = due;
    due.key->place = at;
}

static void rise(struct weir__fleet_dues *d, size_t at)
{
    struct weir__fleet_due due = d->heap[at];

    for (; at > 0 && d->heap[(at - 1) / 2].at > due.at; at = (at - 1) / 2)
        put(d, at, d->heap[(at - 1) / 2]);
    put(d, at, due);
}

static void sink(struct weir__fleet_dues *d, size_t at)
{
    struct weir__fleet_due due = d->heap[at];

    for (size_t child; (child = 2 * at + 1) < d->n; at = child) {
        child += child + 1 < d->n && d->heap[child + 1].at < d->heap[child].at;
        if (d->heap[child].at >= due.at)
            break;
        put(d, at, d->heap[child]);
    }
    put(d, at, due);
}

static void enter(struct weir__fleet_dues *d, struct weir__fleet_key *key)
{
    key->dues = d;
    d->heap[d->n] = (struct weir__fleet_due){ key->due, key };
    rise(d, d->n++);
}

static void leave(struct weir__fleet_key *key)
{
    struct weir__fleet_dues *d = key->dues;
    size_t at = key->place;

    key->dues = NULL;
    if (d == NULL)
        return;
    struct weir__fleet_due last = d->heap[--d->n];
    if (last.key == key)
        return;
    put(d, at, last);
    rise(d, at);
    sink(d, last.key->place);
}

void weir__fleet_key_move(struct weir__fleet *f, struct weir__fleet_key *key, weir_time due)
{
    key->due = due;
    leave(key);
    if (due != WEIR_NEVER)
        enter(key->drawing ? &f->drawing : &f->resting, key);
}

struct weir__fleet_key *weir__fleet_key_first(const struct weir__fleet *f)
{
    const struct weir__fleet_due *drawing = f->drawing.n > 0 ? f->drawing.heap : NULL;
    const struct weir__fleet_due *resting = f->resting.n > 0 ? f->resting.heap : NULL;

    if (drawing != NULL && (resting == NULL || drawing->at <= resting->at))
        return drawing->key;
    return resting != NULL ? resting->key : NULL;
}

/* ------------------------------------------------------------------ hash ---- */

/* Keys come from outside, but a list that grows long only costs time, and not more than `keys`. */
uint64_t weir__fleet_hash(uint64_t seed, struct weir_key key)
{
    uint64_t hash = weir__mix64(seed ^ key.len);
    const unsigned char *bytes = key.bytes;

    for (size_t i = 0, n; i < key.len; i += n) {
        uint64_t word = 0;
        n = key.len - i < sizeof(word) ? key.len - i : sizeof(word);
        memcpy(&word, bytes + i, n);
        hash = weir__mix64(hash ^ word);
    }
    return hash;
}

static struct weir__fleet_key **home(const struct weir__fleet *f,
                                     const struct weir__fleet_limit *limit, struct weir_key key)
{
    return &f->table[weir__fleet_hash((uintptr_t)limit, key) & (f->table_size - 1)];
}

void weir__fleet_key_forget(struct weir__fleet *f, struct weir__fleet_key *key)
{
    struct weir__fleet_key **at = home(f, key->limit, key->key);

    while (*at != key)
        at = &(*at)->chain;
    *at = key->chain;
    leave(key);
    key->id = 0;
    key->limit = NULL;
    key->chain = f->spare;
    f->spare = key;
}

/* Nothing would be lost but a rate. */
static bool is_idle(struct weir__fleet *f, const struct weir__fleet_key *key, weir_time now)
{
    return key->own.asks == 0 && !key->drawing && key->first == NULL &&
           (!key->spent || key->closed_until <= now) && f->ops->have(f->world, key, now) == 0;
}

/* Round and round, so that of many keys that are asked for once the oldest goes. */
static bool make_room(struct weir__fleet *f, weir_time now)
{
    for (size_t i = 0; i < TRIES; i++) {
        struct weir__fleet_key *key = &f->keys[f->hand];
        f->hand = (f->hand + 1) % f->n_keys;
        if (is_idle(f, key, now)) {
            weir__fleet_key_forget(f, key);
            return true;
        }
    }
    return false;
}

static struct weir__fleet_key *find(struct weir__fleet_key *k,
                                    const struct weir__fleet_limit *limit, struct weir_key key)
{
    while (k != NULL && !(k->limit == limit && k->key.len == key.len &&
                          memcmp(k->bytes, key.bytes, key.len) == 0))
        k = k->chain;
    return k;
}

struct weir__fleet_key *weir__fleet_key_find(const struct weir__fleet *f,
                                             const struct weir__fleet_limit *limit,
                                             struct weir_key key)
{
    return find(*home(f, limit, key), limit, key);
}

struct weir__fleet_key *weir__fleet_key_next(const struct weir__fleet *f, size_t *at)
{
    while (*at < f->fresh) {
        struct weir__fleet_key *k = &f->keys[(*at)++];
        if (k->limit != NULL)
            return k;
    }
    return NULL;
}

/* Memory is touched when it is first needed. */
static struct weir__fleet_key *take_spare(struct weir__fleet *f, weir_time now)
{
    if (f->spare == NULL && f->fresh < f->n_keys)
        return &f->keys[f->fresh++];
    if (f->spare == NULL && !make_room(f, now))
        return NULL;
    struct weir__fleet_key *k = f->spare;
    f->spare = k->chain;
    return k;
}

struct weir__fleet_key *weir__fleet_key(struct weir__fleet *f,
                                        const struct weir__fleet_limit *limit, struct weir_key key,
                                        uint32_t shard, weir_time now)
{
    struct weir__fleet_key **at = home(f, limit, key), *k = find(*at, limit, key);

    if (k != NULL)
        return k;
    k = key.len > WEIR__FLEET_KEY_MAX ? NULL : take_spare(f, now);
    if (k == NULL)
        return NULL;
    *k = (struct weir__fleet_key){ .limit = limit,
                                   .shard = shard % WEIR__FLEET_SHARDS_MAX,
                                   .due = WEIR_NEVER,
                                   .rate.at = now,
                                   .seen_at = -1, /* never */
                                   .asked_at = now,
                                   .left = -1,
                                   .chain = *at };
    memcpy(k->bytes, key.bytes, key.len);
    k->key = (struct weir_key){ k->bytes, key.len };
    *at = k;
    return k;
}
