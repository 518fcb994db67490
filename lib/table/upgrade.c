/* upgrade.c -- makes a table of format 3 one of this format; of format 5: upgrade-5.c.
 *
 * Format 3 hashed keys as this one does, and its groups were the same, so small states stay in
 * their slots (copy.c).  Large ones (sliding-window, sliding-log) lay elsewhere, in places that do
 * not tell where they would be now: they start fresh.  Narrow slots did not say which limiter they
 * belong to: such a table is refused.  Guards are made again by the processes that use them.
 *
 * The file is read as bytes from anywhere: every number is checked before it is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "table/bans.h"
#include "table/cl-throttle-limits.h"
#include "table/copy.h"
#include "table/slot.h"
#include "table/upgrade-5.h"

/* ------------------------------------------------------ format 3's bytes ---- */

#define OLD_FORMAT      3
#define OLD_LIMITERS    ((uint64_t)2 * WEIR__PAGE) /* offset */
#define OLD_BAN_PAGE    16
#define OLD_GUARD       ((uint64_t)320 << 10)
#define OLD_HOLDERS     ((uint64_t)1024 * 24)
#define OLD_CARRIED_ID  UINT32_MAX
#define OLD_PAST        8
#define OLD_LARGE_GROUP 64
#define OLD_FORGOTTEN   (OLD_PAST - 1) /* versions behind; the place may be being written */

struct old_header {
    char magic[8];
    uint32_t format, endian;
    uint64_t bytes, slots_at, groups, slab_at, slab_bytes;
    uint32_t slot_size, header_size;
    uint64_t limiters_max, ban_places, guards_max, secrets[WEIR__HASH_SECRETS], check;
    int64_t clock_offset, clock_latest;
    unsigned char boot_id[WEIR__BOOT_ID_SIZE];
    uint64_t slab_used, limiters;
    int64_t bans_latest;
    uint32_t mode, guards;
    uint32_t degradation, degradation_by_hand;
    unsigned char rest[120];
};

struct old_limit {
    int64_t count, period, burst, queue, buckets, align_first, loose, warmup, cold, since, large_at,
        large_stride, calendar;
    char zone[40];
};

struct old_limiter {
    uint32_t algorithm, version;
    uint64_t salt, large_groups;
    uint32_t mode, unused[9];
    char name[WEIR__NAME_SIZE];
    struct old_limit past[OLD_PAST];
};

struct old_mark {
    uint64_t tag;
    int64_t until;
};

struct old_ban {
    uint64_t tag;
    int64_t since, forget_at;
    int32_t strikes;
    uint32_t key_len;
    char rule[WEIR__NAME_SIZE], key[WEIR__BAN_KEY];
};

struct old_slot {
    uint64_t tag, owner, state[2];
};

_Static_assert(sizeof(struct old_header) == 448 && offsetof(struct old_header, check) == 248 &&
                   offsetof(struct old_header, clock_offset) == 256 &&
                   offsetof(struct old_header, degradation) == 320,
               "format 3's header");
_Static_assert(sizeof(struct old_limiter) == 1280 && sizeof(struct old_limit) == 144 &&
                   sizeof(struct old_ban) == 256,
               "format 3's records");

struct old {
    const unsigned char *bytes;
    const struct old_header *header;
    uint64_t size, marks_at, bans_at;
    struct stat st;
    int fd;
};

/* --------------------------------------------------------------- reading ---- */

static uint64_t old_check(const struct old_header *h)
{
    uint64_t sum = 0xcbf29ce484222325u;

    for (size_t i = sizeof(h->magic); i < offsetof(struct old_header, check); i++)
        sum = (sum ^ ((const unsigned char *)h)[i]) * 0x100000001b3u;
    return sum;
}

static bool old_fits(struct old *o)
{
    const struct old_header *h = o->header;

    if (h->header_size != sizeof(*h) || h->check != old_check(h) || h->bytes != o->size ||
        h->limiters_max == 0 || h->limiters_max > WEIR__LIMITERS_MAX ||
        h->limiters > h->limiters_max || h->guards_max == 0 || h->guards_max > WEIR__GUARDS_MAX ||
        h->ban_places == 0 || h->ban_places > (uint64_t)WEIR__BANS_MAX * 5 / 4 ||
        h->ban_places % OLD_BAN_PAGE != 0)
        return false;
    o->marks_at = OLD_LIMITERS + weir__page_up(h->limiters_max * sizeof(struct old_limiter));
    o->bans_at = o->marks_at + weir__page_up(h->ban_places * sizeof(struct old_mark));
    uint64_t slots_at = o->bans_at + weir__page_up(h->ban_places * sizeof(struct old_ban)) +
                        weir__page_up(OLD_HOLDERS) + h->guards_max * OLD_GUARD;
    return h->slots_at == slots_at && h->slab_at >= slots_at && h->slab_at <= h->bytes &&
           h->slab_bytes == h->bytes - h->slab_at && h->groups > 0 &&
           h->groups <= (h->slab_at - slots_at) / (WEIR__GROUP_SLOTS * sizeof(struct old_slot));
}

static int check_old(struct old *o, const char *path, struct weir_error *error)
{
    const struct old_header *h = o->header;

    if (memcmp(h->magic, WEIR__MAGIC, sizeof(h->magic)) != 0 || h->endian != WEIR__ENDIAN)
        return weir__fail(error, WEIR_CORRUPT, "'%s' is not a Weir table of this machine", path);
    if (h->format == 5 || /* which upgrade-5.c looks at */
        weir__upgrade_5_is_under_way((const struct weir__header *)(const void *)h))
        return WEIR_OK;
    if (h->format == WEIR__FORMAT)
        return weir__fail(error, WEIR_INVALID, "'%s' has format %d already", path, WEIR__FORMAT);
    if (h->format != OLD_FORMAT)
        return weir__fail(error, WEIR_INVALID,
                          "'%s' has format %" PRIu32
                          "; only formats %d and 5 can be upgraded: remove it",
                          path, h->format, OLD_FORMAT);
    if (h->slot_size == sizeof(struct weir__narrow))
        return weir__fail(error, WEIR_INVALID,
                          "'%s' has narrow slots, which do not say what they belong to: remove it",
                          path);
    if (h->slot_size != sizeof(struct old_slot) || !old_fits(o))
        return weir__fail(error, WEIR_CORRUPT, "'%s' is damaged", path);
    return WEIR_OK;
}

static int open_old(struct old *o, const char *path, struct weir_error *error)
{
    o->fd = weir__file_apart(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (o->fd < 0 || fstat(o->fd, &o->st) != 0)
        return weir__fail_errno(error, "cannot open table", path);
    if (flock(o->fd, LOCK_EX | LOCK_NB) != 0)
        return weir__fail(error, WEIR_SYSTEM, "'%s' is in use: stop the programs that use it first",
                          path);
    o->size = (uint64_t)o->st.st_size;
    if (!S_ISREG(o->st.st_mode) || o->size < OLD_LIMITERS)
        return weir__fail(error, WEIR_CORRUPT, "'%s' is too short to be a table", path);
    void *p = mmap(NULL, o->size, PROT_READ, MAP_SHARED, o->fd, 0);
    if (p == MAP_FAILED)
        return weir__fail_errno(error, "cannot map", path);
    o->bytes = p;
    o->header = p;
    return check_old(o, path, error);
}

static void close_old(struct old *o)
{
    if (o->bytes != NULL)
        munmap((void *)o->bytes, o->size);
    if (o->fd >= 0)
        close(o->fd);
}

/* -------------------------------------------------------------- limiters ---- */

/* A limiter's limits, newest last. */
struct past {
    struct weir_limiter *limiter;
    uint32_t first, n;
    struct weir_plan plans[OLD_PAST];
    weir_time since[OLD_PAST];
};

static int32_t to_int32(int64_t n)
{
    return n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int32_t)n;
}

static struct weir_limit limit_of(const char *algorithm, const struct old_limit *l)
{
    struct weir_limit limit = { .algorithm = algorithm,
                                .count = l->count,
                                .period = l->period,
                                .burst = l->burst,
                                .queue = l->queue,
                                .buckets = to_int32(l->buckets),
                                .align_first = l->align_first != 0,
                                .loose = l->loose != 0,
                                .warmup = l->warmup,
                                .cold = to_int32(l->cold),
                                .calendar = to_int32(l->calendar) };

    memcpy(limit.zone, l->zone, sizeof(limit.zone) - 1);
    return limit;
}

static const char *algorithm_of(const struct old_limiter *r)
{
    const char *const *names = weir_algorithms();

    for (uint32_t i = 0; names[i] != NULL; i++)
        if (i == r->algorithm)
            return names[i];
    return NULL;
}

/* Makes the limiter with its present limit.  False: its record makes no sense. */
static bool read_limiter(struct weir__copy *copy, const struct old_limiter *r, struct past *out)
{
    const char *algorithm = algorithm_of(r);
    char name[WEIR__NAME_SIZE] = { 0 };

    memcpy(name, r->name, sizeof(name) - 1);
    *out =
        (struct past){ .first = r->version < OLD_FORGOTTEN ? 0 : r->version - OLD_FORGOTTEN + 1 };
    if (algorithm == NULL)
        return false;
    for (uint32_t v = out->first; v != r->version + 1; v++, out->n++) {
        const struct old_limit *l = &r->past[v % OLD_PAST];
        struct weir_limit limit = limit_of(algorithm, l);
        if (weir__plan_make(&out->plans[out->n], &limit, NULL) != WEIR_OK)
            return false;
        out->since[out->n] = l->since;
    }
    out->limiter = weir__copy_limiter(copy, name, &out->plans[out->n - 1].limit, r->salt);
    if (out->limiter != NULL)
        weir__limiter_set_mode(out->limiter, weir__mode_load(&r->mode));
    return out->limiter != NULL;
}

/* A state of a version that nobody remembers is a spent one, as of the last change. */
static void bring_over(const struct past *p, uint32_t version, uint64_t state[2])
{
    const struct weir_plan *last = &p->plans[p->n - 1];
    uint64_t next[2];

    if (version - p->first >= p->n) {
        state[0] = state[1] = 0;
        last->algo->give(last, state, -last->most, p->since[p->n - 1]);
        return;
    }
    for (uint32_t i = version - p->first; i + 1 < p->n; i++) {
        weir_step_change(&p->plans[i], &p->plans[i + 1], state, next, p->since[i + 1]);
        memcpy(state, next, sizeof(next));
    }
}

/* ---------------------------------------------------------------- states ---- */

/* The limit is unknown; the larger it was, the more is owed at most. */
static bool copy_carried(struct weir__copy *copy, uint64_t i, const struct old_slot *s)
{
    uint32_t scale = (uint32_t)s->owner;
    uint64_t state[2] = { s->state[0] & ~WEIR__PIN, s->state[1] };

    if (scale == 0 || scale >> WEIR__CARRIED_SCALE_BITS != 0)
        return false;
    uint64_t owed = (int64_t)s->state[1] < 0 ? 1 : s->state[1] / scale | 1;
    uint32_t size = (uint32_t)(64 - __builtin_clzll(owed));
    weir__copy_put_carried(copy, i, s->tag, scale | size << WEIR__CARRIED_SCALE_BITS, state);
    return true;
}

static bool copy_small(struct weir__copy *copy, struct past *const *pasts, const struct old *o,
                       uint64_t i, const struct old_slot *s)
{
    uint64_t id = s->owner >> 32, state[2] = { s->state[0] & ~WEIR__PIN, s->state[1] };

    if (id == OLD_CARRIED_ID)
        return copy_carried(copy, i, s);
    if (id >= o->header->limiters || pasts[id] == NULL || pasts[id]->limiter->kind != WEIR__WIDE)
        return false;
    bring_over(pasts[id], (uint32_t)s->owner, state);
    weir__copy_put(copy, pasts[id]->limiter, i, s->tag, state);
    return true;
}

static void copy_states(struct weir__copy *copy, struct past *const *pasts, const struct old *o)
{
    const struct old_slot *slots =
        (const struct old_slot *)(const void *)(o->bytes + o->header->slots_at);

    for (uint64_t i = 0; i < o->header->groups * WEIR__GROUP_SLOTS; i++)
        if (slots[i].tag != 0 && !copy_small(copy, pasts, o, i, &slots[i]))
            copy->counts.lost++;
}

static void copy_bans(struct weir__copy *copy, const struct old *o)
{
    const struct old_mark *marks = (const struct old_mark *)(const void *)(o->bytes + o->marks_at);
    const struct old_ban *bans = (const struct old_ban *)(const void *)(o->bytes + o->bans_at);

    for (uint64_t i = 0; i < o->header->ban_places; i++) {
        const struct old_ban *b = &bans[i];
        struct weir__ban_record r = { .since = b->since,
                                      .until = marks[i].until,
                                      .forget_at = b->forget_at,
                                      .strikes = b->strikes,
                                      .key_len = (uint16_t)b->key_len };
        if (marks[i].tag == 0 || b->tag != marks[i].tag || r.since < 0)
            continue;
        memcpy(r.rule, b->rule, sizeof(r.rule) - 1);
        memcpy(r.key, b->key, sizeof(r.key));
        uint32_t part = (uint32_t)weir__ban_salt(copy->to, r.rule) & ((1 << WEIR__ID_BITS) - 1);
        weir__copy_ban(copy, weir__tag_of(b->tag, part), &r);
    }
}

/* Large states start fresh: only how many there are is told. */
static int64_t count_large(const struct old *o, const struct old_limiter *r)
{
    const struct old_limit *l = &r->past[r->version % OLD_PAST];
    uint64_t at = (uint64_t)l->large_at, stride = (uint64_t)l->large_stride,
             room = at >= o->header->slab_at && at < o->size ? o->size - at : 0;
    int64_t n = 0;

    if (r->large_groups == 0 || at % 8 != 0 || stride % 8 != 0 || stride == 0)
        return 0;
    for (uint64_t i = 0; i / OLD_LARGE_GROUP < r->large_groups && i < room / stride; i++)
        n += *(const uint64_t *)(const void *)(o->bytes + at + i * stride) != 0;
    return n;
}

/* --------------------------------------------------------------- upgrade ---- */

static struct weir__header likeness(const struct old_header *h)
{
    uint64_t bans = h->ban_places / 5 * 4 + 1;
    struct weir__header like = {
        .groups = h->groups,
        .slab_bytes = (h->slab_bytes + WEIR__CHUNK - 1) / WEIR__CHUNK * WEIR__CHUNK,
        .ban_groups = (bans + WEIR__KEYS_PER_GROUP - 1) / WEIR__KEYS_PER_GROUP,
        .slot_size = sizeof(struct weir__wide),
        .limiters_max = h->limiters_max,
        .guards_max = h->guards_max,
        .clock_offset = h->clock_offset,
        .clock_latest = h->clock_latest,
        .mode = h->mode,
        .degradation_by_hand = h->degradation_by_hand,
    };

    like.slab_bytes = like.slab_bytes < ((uint64_t)1 << 37) ? like.slab_bytes : (uint64_t)1 << 37;
    like.degradation = h->degradation_by_hand ? h->degradation : 0;
    memcpy(like.secrets, h->secrets, sizeof(like.secrets));
    memcpy(like.boot_id, h->boot_id, sizeof(like.boot_id));
    return like;
}

static int copy_all(struct weir__copy *copy, const struct old *o, struct weir_error *error)
{
    uint64_t n = o->header->limiters;
    struct past **pasts = calloc(n + 1, sizeof(*pasts));
    bool memory = pasts != NULL;

    for (uint64_t id = 0; id < n && memory; id++) {
        const struct old_limiter *r =
            (const struct old_limiter *)(const void *)(o->bytes + OLD_LIMITERS) + id;
        struct past *p = malloc(sizeof(*p));
        memory = p != NULL;
        copy->counts.lost += count_large(o, r);
        if (memory && read_limiter(copy, r, p))
            pasts[id] = p;
        else
            free(p);
    }
    if (memory) {
        copy_states(copy, pasts, o);
        copy_bans(copy, o);
    }
    for (uint64_t id = 0; id < n && pasts != NULL; id++)
        free(pasts[id]);
    free(pasts);
    return memory ? WEIR_OK : weir__fail(error, WEIR_NO_MEMORY, "no memory for an upgrade");
}

/* As it is now; the first to attach has put it in order. */
static int count_all(const char *path, struct weir__copied *out, struct weir_error *error)
{
    struct weir_table *table;
    struct weir_table_stats s;
    int code = weir_table_attach(&table, path, error);

    if (code)
        return code;
    weir_table_stats(table, weir_table_now(table), &s);
    *out = (struct weir__copied){ .limiters = s.limiters, .states = s.keys, .bans = s.bans };
    weir_table_destroy(table);
    return WEIR_OK;
}

static int copy_old(const struct old *o, const char *path, struct weir__copied *out,
                    struct weir_error *error)
{
    struct weir__copy copy = { 0 };
    struct weir__header like = likeness(o->header);
    int code = weir__copy_begin(&copy, path, &like, &o->st, error);

    code = code ? code : copy_all(&copy, o, error);
    code = weir__copy_end(&copy, path, true, code, error);
    *out = copy.counts;
    return code;
}

int weir__table_upgrade(const char *path, struct weir__copied *out, struct weir_error *error)
{
    struct old o = { .fd = -1 };
    int code = open_old(&o, path, error);
    bool in_its_place = code == WEIR_OK && o.header->format != OLD_FORMAT;

    if (in_its_place)
        code = weir__upgrade_5(o.fd, o.size, path, error);
    else if (code == WEIR_OK)
        code = copy_old(&o, path, out, error);
    close_old(&o);
    return in_its_place && code == WEIR_OK ? count_all(path, out, error) : code;
}
