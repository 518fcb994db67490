/* sizes.c -- where the parts of a table lie: chosen when it is made, and found again from the few
 * numbers that its header has. */
#include "table/sizes.h"

#include <inttypes.h>

#define KEYS_DEFAULT     65536
#define KEYS_MAX         ((int64_t)1 << 40)
#define SLAB_MAX         ((int64_t)(WEIR__CHUNKS_MAX * WEIR__CHUNK)) /* 2^38 less one chunk */
#define SLAB_LEAST       ((int64_t)16 << 20)
#define SLAB_PER_KEY     256 /* two sliding windows of 10 buckets */
#define LIMITERS_DEFAULT 256
#define BANS_DEFAULT     4096
#define GUARDS_DEFAULT   64

static void place_space(struct weir__space_sizes *s, uint64_t at)
{
    s->rooms_at = at;
    s->slots_at = at + weir__page_up(s->groups * sizeof(struct weir__room));
    s->map_at = weir__page_up(s->slots_at + s->groups * WEIR__GROUP_SLOTS * s->slot_size);
    s->slab_at = weir__page_up(s->map_at + weir__slab_map_bytes(s->chunks));
    s->end = s->slab_at + s->chunks * WEIR__CHUNK;
}

/* A block for every ban, and a few for hands. */
static uint64_t ban_chunks(uint64_t groups)
{
    uint64_t blocks = groups * WEIR__GROUP_SLOTS + 2 * WEIR__HANDS;

    return blocks * sizeof(struct weir__ban_record) / WEIR__CHUNK + 1;
}

#define RECORD_MAX 1024 /* bytes of a limiter's or guard's record, as a block */

/* A block for every record, and a few for hands. */
static void place_registry(struct weir__sizes *s)
{
    uint64_t places = s->limiters_max + s->guards_max;
    struct weir__space_sizes *n = &s->names;

    n->chunks = (places + 2 * WEIR__HANDS) * RECORD_MAX / WEIR__CHUNK + 1;
    n->rooms_at = WEIR__HOLDERS_AT + weir__page_up(WEIR__HOLDERS * sizeof(struct weir__holder));
    n->slots_at = n->rooms_at + WEIR__LINE;
    s->users_at = weir__page_up(n->slots_at + places * sizeof(struct weir__place));
    n->map_at = weir__page_up(s->users_at + places * sizeof(struct weir__users));
    n->slab_at = weir__page_up(n->map_at + weir__slab_map_bytes(n->chunks));
    n->end = n->slab_at + n->chunks * WEIR__CHUNK;
    s->guards_at = n->end;
}

/* What follows from the numbers that a header has. */
static void place_spaces(struct weir__sizes *s)
{
    place_registry(s);
    s->bans.slot_size = sizeof(struct weir__wide);
    s->bans.chunks = ban_chunks(s->bans.groups);
    place_space(&s->bans, s->guards_at + s->guards_max * WEIR__GUARD_BYTES);
    place_space(&s->keys, s->bans.end);
}

static uint64_t groups_for(int64_t keys)
{
    return ((uint64_t)keys + WEIR__KEYS_PER_GROUP - 1) / WEIR__KEYS_PER_GROUP;
}

/* Of the parts that do not grow with the keys. */
static int choose_fixed_sizes(const struct weir_table_options *o, struct weir__sizes *out,
                              struct weir_error *error)
{
    int64_t limiters = o->limiters ? o->limiters : LIMITERS_DEFAULT,
            bans = o->bans ? o->bans : BANS_DEFAULT;
    int64_t guards = o->guards ? o->guards : GUARDS_DEFAULT;

    if (limiters < 1 || limiters > WEIR__LIMITERS_MAX)
        return weir__fail(error, WEIR_INVALID, "limiters must be from 1 to %d, and is %" PRId64,
                          WEIR__LIMITERS_MAX, limiters);
    if (bans < 1 || bans > WEIR__BANS_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "bans must be from 1 to %" PRId64 ", and is %" PRId64, WEIR__BANS_MAX,
                          bans);
    if (guards < 1 || guards > WEIR__GUARDS_MAX)
        return weir__fail(error, WEIR_INVALID, "guards must be from 1 to %d, and is %" PRId64,
                          WEIR__GUARDS_MAX, guards);
    out->limiters_max = (uint64_t)limiters;
    out->guards_max = (uint64_t)guards;
    out->bans.groups = groups_for(bans);
    return WEIR_OK;
}

int weir__sizes_choose(const struct weir_table_options *o, struct weir__sizes *out,
                       struct weir_error *error)
{
    int64_t keys = o->keys ? o->keys : KEYS_DEFAULT, slab = o->slab;

    if (keys < 1 || keys > KEYS_MAX)
        return weir__fail(error, WEIR_INVALID, "keys must be from 1 to 2^40, and is %" PRId64,
                          keys);
    if (slab == 0)
        slab = keys < SLAB_LEAST / SLAB_PER_KEY ? SLAB_LEAST
               : keys < SLAB_MAX / SLAB_PER_KEY ? keys * SLAB_PER_KEY
                                                : SLAB_MAX;
    if (slab < 0 || slab > SLAB_MAX)
        return weir__fail(error, WEIR_INVALID, "slab must be from 1 to 2^38 bytes, and is %" PRId64,
                          slab);
    int code = choose_fixed_sizes(o, out, error);
    if (code)
        return code;
    out->keys.groups = groups_for(keys);
    out->keys.slot_size = o->narrow ? sizeof(struct weir__narrow) : sizeof(struct weir__wide);
    out->keys.chunks = ((uint64_t)slab + WEIR__CHUNK - 1) / WEIR__CHUNK;
    place_spaces(out);
    return WEIR_OK;
}

/* Whether all that was written once agrees with itself, so that no part reaches out of the file. */
bool weir__sizes_fit(const struct weir__header *h, uint64_t file_bytes, struct weir__sizes *out)
{
    if (h->limiters_max == 0 || h->limiters_max > WEIR__LIMITERS_MAX || h->guards_max == 0 ||
        h->guards_max > WEIR__GUARDS_MAX || h->ban_groups == 0 ||
        h->ban_groups > groups_for(WEIR__BANS_MAX) || h->groups == 0 ||
        h->groups > groups_for(KEYS_MAX) || h->slab_bytes % WEIR__CHUNK != 0 ||
        h->slab_bytes > (uint64_t)SLAB_MAX + WEIR__CHUNK)
        return false;
    if (h->slot_size != sizeof(struct weir__narrow) && h->slot_size != sizeof(struct weir__wide))
        return false;
    *out = (struct weir__sizes){ .limiters_max = h->limiters_max,
                                 .guards_max = h->guards_max,
                                 .bans.groups = h->ban_groups,
                                 .keys = { .groups = h->groups,
                                           .slot_size = h->slot_size,
                                           .chunks = h->slab_bytes / WEIR__CHUNK } };
    place_spaces(out);
    return h->bytes == out->keys.end && h->bytes == file_bytes;
}
