/* disk-space.c -- the disk space of a table's file, got before it is needed: a full disk is an
 * error then, and not a signal later.
 *
 * Some parts have it from the beginning, others get it when they are first used.  A file that was
 * copied without its holes has it for neither where there were zeros.  A file that has less space
 * than all that is used needs gets the rest while nobody else is there.
 */
#include <string.h>

#include "table/disk-space.h"

struct wanted {
    const struct weir_table *table;
    uint64_t bytes;
    bool get; /* else they are only counted */
    int code;
    struct weir_error *error;
};

static void want(struct wanted *w, uint64_t from, uint64_t end)
{
    w->bytes += end - from;
    if (w->get && w->code == WEIR_OK)
        w->code = weir__table_commit(w->table, from, end - from, w->error);
}

/* They tell which other parts are used. */
static void want_maps(struct wanted *w, const struct weir__sizes *s)
{
    want(w, WEIR__HOLDERS_AT, s->users_at);
    want(w, s->names.map_at, s->names.slab_at);
    want(w, s->bans.map_at, s->bans.slab_at);
    want(w, s->keys.map_at, s->keys.slab_at);
}

/* From the beginning. */
static void want_parts(struct wanted *w, const struct weir__sizes *s)
{
    want(w, 0, WEIR__HANDS_AT + (uint64_t)WEIR__HANDS_READY * WEIR__HAND_BYTES);
    want(w, s->bans.rooms_at, s->bans.map_at);
    want(w, s->keys.rooms_at, s->keys.map_at);
    want_maps(w, s);
}

static void want_hands(struct wanted *w)
{
    uint64_t n = weir__get(&w->table->header->hands);

    if (n > WEIR__HANDS_READY && n <= WEIR__HANDS)
        want(w, WEIR__HANDS_AT + (uint64_t)WEIR__HANDS_READY * WEIR__HAND_BYTES,
             WEIR__HANDS_AT + n * WEIR__HAND_BYTES);
}

/* A guard's bytes begin with its record, which has pages of its own. */
static void want_guard(struct wanted *w, const struct weir__sizes *s, uint64_t id)
{
    uint64_t at = s->guards_at + id * WEIR__GUARD_BYTES, seats;

    if (w->get && (w->code = weir__table_commit(w->table, at, WEIR__SEATS_OFFSET, w->error)))
        return;
    memcpy(&seats, w->table->guard_bytes + id * WEIR__GUARD_BYTES + WEIR__SEATS_AT, sizeof(seats));
    seats = seats < WEIR__GUARD_SEATS ? seats : WEIR__GUARD_SEATS;
    want(w, at, at + WEIR__SEATS_OFFSET + seats * sizeof(struct weir__seat));
}

static void want_places(struct wanted *w, const struct weir__sizes *s)
{
    for (uint64_t i = 0; i < w->table->n_places && w->code == WEIR_OK; i++) {
        uint64_t users = s->users_at + i * sizeof(struct weir__users);
        if (weir__get(&w->table->places[i].word) == 0)
            continue;
        want(w, users, users + sizeof(struct weir__users));
        if (i >= s->limiters_max)
            want_guard(w, s, i - s->limiters_max);
    }
}

static void want_slab(struct wanted *w, const struct weir__slab *slab, uint64_t slab_at)
{
    uint64_t from, n;

    for (uint64_t at = 0; (n = weir__slab_furnished(slab, at, &from)) > 0; at = from + n)
        want(w, slab_at + from * WEIR__CHUNK, slab_at + (from + n) * WEIR__CHUNK);
}

static void want_all(struct wanted *w, const struct weir__sizes *s)
{
    want_parts(w, s);
    want_hands(w);
    want_places(w, s);
    want_slab(w, &w->table->names.slab, s->names.slab_at);
    want_slab(w, &w->table->bans.slab, s->bans.slab_at);
    want_slab(w, &w->table->keys.slab, s->keys.slab_at);
}

int weir__space_get(struct weir_table *table, const struct weir__sizes *s, struct weir_error *error)
{
    struct wanted w = { .table = table, .get = true, .error = error };

    want_parts(&w, s);
    return w.code;
}

/* On a full tmpfs even to read where there is no space is a signal. */
int weir__space_mend(struct weir_table *table, const struct weir__sizes *s, uint64_t has,
                     struct weir_error *error)
{
    struct wanted counted = { .table = table },
                  got = { .table = table, .get = true, .error = error };

    want_maps(&got, s);
    if (got.code)
        return got.code;
    want_all(&counted, s);
    if (has < counted.bytes)
        want_all(&got, s);
    return got.code;
}
