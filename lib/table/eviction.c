/* eviction.c -- which key makes room when a table is full.
 *
 *     an idle one: nothing is lost;
 *     else one of the limiter with the most slots within reach, so that a flood of keys under one
 *     limit drives out its own keys before another's; of these the one that has used the smallest
 *     part of its limit, so that little is given away; of several the one that is idle first.
 *
 * The bound.  With k limiters within reach (128 slots), the newcomer's among them, a limiter that
 * has no more than 128/k slots there loses none to the others.  Of its own states one that has used
 * u units is lost only if all s others of it within reach have used as much: that took s times u
 * units.  Nobody can choose which keys lie within reach of another (the hash is secret), so an
 * attacker has to do this all over the table: one spent key forgotten costs as many units as the
 * limiter's whole share of the table allows, within the time that they count.
 *
 * Limits that come with the ask share by the time that they allow a key to owe, to a power of two
 * (cl-throttle-limits.h), which stands for the limiter.  All limits that clients bring are one
 * limiter among the others, whose room they then share: a client could have any number of them.
 *
 * A key with permits out makes no room, but its guard counts as a limiter: with the most slots
 * within reach it gets no more that others use.
 *
 * Bans: one that is over makes room first, and with it its strikes; else one of the rule with the
 * most bans within reach, the one that ends first.
 */
#include "table/eviction.h"

#include "table/cl-throttle-limits.h"
#include "table/permits-by-key.h"

#define ALL_USED ((uint32_t)1 << 20) /* the whole of a limit */

#define COPY       1024       /* a larger state, a long window, is read where it lies: */
#define BROUGHT    256        /* so is a window under an older limit, if it is larger; */
#define LONG_BYTES (64 << 10) /* at most this much of them in a search, ... */
#define LONG_LEAST 4          /* ... but this many windows */
#define AHEAD      12         /* slots whose states are fetched before they are judged */
#define FETCH      512        /* bytes of each; the processor goes on by itself */

_Static_assert(WEIR__NODE_BYTES <= COPY && sizeof(struct weir__ban_record) <= COPY,
               "larger states are windows");

/* ---------------------------------------------------------------- judge ---- */

struct weir_limiter *weir__slot_limiter(struct weir__space *space, uint64_t tag)
{
    if (tag == 0)
        return NULL;
    if (space == &space->table->bans)
        return &space->table->banned;
    return weir__tag_id(tag) == WEIR__CARRIED_ID
               ? NULL
               : weir__limiter_by_id(space->table, weir__tag_id(tag));
}

static uint32_t share_of(uint64_t tag, uint32_t version)
{
    uint32_t id = weir__tag_id(tag);

    return id == WEIR__CARRIED_ID ? id | weir__carried_class(version) << WEIR__ID_BITS : id;
}

static bool is_guest(const struct weir_limiter *limiter, uint64_t tag)
{
    return weir__tag_id(tag) == WEIR__CARRIED_ID || (limiter != NULL && limiter->guest);
}

static uint32_t part_of(int64_t used, int64_t limit)
{
    if (used >= limit)
        return ALL_USED;
    uint32_t part =
        (uint32_t)((weir__u128)ALL_USED * (uint64_t)(used < 0 ? 0 : used) / (uint64_t)limit);
    return part == 0 ? 1 : part;
}

/* What a peek would tell. */
static uint32_t part_used(const struct weir_plan *plan, void *state, weir_time now)
{
    struct weir_ask ask = { .now = now };
    struct weir_decision d;

    weir__step(plan, state, &ask, false, &d);
    return part_of(plan->algo->fills ? d.remaining : d.limit - d.remaining, d.limit);
}

static void judge_carried(const struct weir__part *slot, weir_time now, struct weir__victim *v)
{
    uint32_t version = (uint32_t)slot->tags[1], class = weir__carried_class(version);
    int64_t most = class < 63 ? (int64_t)1 << class : INT64_MAX;

    v->idle_at = weir__carried_idle_at(version, slot->before);
    v->used = v->idle_at <= now ? 0 : part_of(v->idle_at - now, most);
}

/* With permits out it makes no room: nobody else could tell how many are out. */
static void judge_held(const struct weir__space *space, void *slot, struct weir__victim *v)
{
    if (!weir__held_is_idle(space->table, v->tag, slot)) {
        v->used = WEIR__VICTIM_NEVER;
        v->idle_at = INT64_MAX;
    }
}

/* In force: they differ by their ends alone. */
static void judge_ban(const struct weir__ban_record *r, weir_time now, struct weir__victim *v)
{
    v->idle_at = r->until > now ? r->until : r->forget_at;
    v->used = v->idle_at <= now ? 0 : r->until > now ? 2 : 1;
}

/* Long windows that were read in a search. */
struct reading {
    size_t n, bytes;
};

static bool may_read(struct reading *reading, size_t bytes)
{
    if (reading->n >= LONG_LEAST && reading->bytes + bytes > LONG_BYTES)
        return false;
    reading->n++;
    reading->bytes += bytes;
    return true;
}

/* At the latest: nobody remembers its limit, so it was spent when the present one began. */
static weir_time spent_until(const struct weir__part *part)
{
    weir__i128 until = part->era->since + 2 * (weir__i128)part->plan->limit.period;

    return until > INT64_MAX ? INT64_MAX : (weir_time)until;
}

static weir_time width_of(const struct weir_plan *plan)
{
    return (weir_time)plan->by_bucket.by;
}

/* Of a state under an older limit: what counted when that was replaced goes on for the present
 * period.  At most two buckets too late. */
static weir_time carried_over(const struct weir__part *part, const struct weir_plan *own,
                              weir_time until, weir_time idle_at)
{
    weir__i128 at = (weir__i128)idle_at - own->limit.period + width_of(own) +
                    part->plan->limit.period + width_of(part->plan);

    return idle_at <= until ? idle_at : at > INT64_MAX ? INT64_MAX : (weir_time)at;
}

/* A window with thousands of buckets.  One that is not read counts as used up: the others are
 * known to be cheaper; so does one whose limit is forgotten (read_large in part.c). */
static void judge_long(const struct weir__part *part, weir_time now, struct reading *reading,
                       struct weir__victim *v)
{
    struct weir__space *space = part->limiter->space;
    uint32_t block = (uint32_t)part->before[1];
    size_t bytes = weir__block_bytes(&space->slab, block);
    uint32_t version = weir__part_version(part);
    const struct weir_plan *plan = weir__limiter_plan(part->limiter, version);
    weir_time until =
        version == part->version ? INT64_MAX : weir__limiter_until(part->limiter, version);
    bool spent = plan == NULL && (bytes > 0 || (block == 0 && part->before[1] != 0));

    v->idle_at = !space->narrow ? (weir_time)part->before[0]
                 : spent        ? spent_until(part)
                                : INT64_MAX;
    if (!space->narrow && plan != NULL)
        v->idle_at = carried_over(part, plan, until, v->idle_at);
    v->used = v->idle_at <= now || (bytes == 0 && !spent) ? 0 : ALL_USED;
    if (v->used == 0 || plan == NULL || plan->state_size > bytes ||
        !may_read(reading, plan->state_size))
        return;
    int64_t used = weir__buckets_weigh(plan, weir__block_at(&space->slab, block),
                                       now < until ? now : until, &v->idle_at);
    v->idle_at = carried_over(part, plan, until, v->idle_at);
    v->used = v->idle_at <= now ? 0 : part_of(used, part->plan->limit.count);
}

/* Or slow to bring over to the present limit. */
static bool is_long(const struct weir__part *part)
{
    size_t size = part->plan->state_size,
           bytes = weir__block_bytes(&part->limiter->space->slab, (uint32_t)part->before[1]);

    return size > COPY ||
           (part->plan->algo == &weir__sliding_window &&
            weir__part_version(part) != part->version && (size > BROUGHT || bytes > BROUGHT));
}

static void judge_part(struct weir__part *part, weir_time now, struct reading *reading,
                       struct weir__victim *v)
{
    uint64_t state[COPY / sizeof(uint64_t)];
    bool large = part->limiter->kind == WEIR__LARGE;

    if (large && is_long(part)) {
        judge_long(part, now, reading, v);
        return;
    }
    part->state = large ? state : part->small;
    weir__part_copy(part, now);
    if (part->limiter == &part->limiter->table->banned) {
        judge_ban(part->state, now, v);
        return;
    }
    v->idle_at = weir_step_idle_at(part->plan, part->state);
    v->used = v->idle_at <= now ? 0 : part_used(part->plan, part->state, now);
}

static struct weir__victim judge(struct weir__space *space, void *slot, weir_time now,
                                 struct reading *reading)
{
    const struct weir__wide *wide = slot;
    struct weir__part part = { .slot = slot };
    struct weir__victim v = { .slot = slot };

    weir__load_pair(weir__slot_pair(space, slot), part.before);
    part.tags[0] = v.tag = weir__load(slot); /* a slot's first word */
    part.tags[1] = space->narrow ? 0 : weir__load(&wide->meta);
    v.share = share_of(v.tag, (uint32_t)part.tags[1]);
    if (part.before[space->narrow] & WEIR__PIN) { /* in use just now */
        v.used = ALL_USED;
        v.idle_at = INT64_MAX;
        return v;
    }
    struct weir_limiter *limiter = weir__slot_limiter(space, v.tag);
    v.guest = is_guest(limiter, v.tag);
    if (weir__tag_id(v.tag) == WEIR__CARRIED_ID && space == &space->table->keys) {
        judge_carried(&part, now, &v);
    } else if (weir__tag_is_held(v.tag) && space == &space->table->keys) {
        judge_held(space, slot, &v);
    } else if (limiter != NULL) {
        weir__part_begin(&part, limiter, (struct weir__home){ .tag = v.tag });
        judge_part(&part, now, reading, &v);
    }
    return v;
}

struct weir__victim weir__victim_judge(struct weir__space *space, void *slot, weir_time now)
{
    return judge(space, slot, now, &(struct reading){ 0, 0 });
}

/* --------------------------------------------------------------- choose ---- */

struct choice {
    struct weir__victim all[WEIR__WINDOW_SLOTS];
    size_t n;
    struct reading reading;
};

/* Counts the candidates of each share. */
struct tally {
    uint32_t shares[WEIR__WINDOW_SLOTS + 1];
    size_t counts[WEIR__WINDOW_SLOTS + 1], n;
};

static void count_one(struct tally *t, uint32_t share, size_t by)
{
    size_t s = 0;

    while (s < t->n && t->shares[s] != share)
        s++;
    if (s == t->n) {
        t->shares[t->n] = share;
        t->counts[t->n++] = 0;
    }
    t->counts[s] += by;
}

/* The one with the most; the first, which is the newcomer's own, if that has as many. */
static uint32_t most_of(const struct tally *t)
{
    size_t best = 0;

    for (size_t s = 1; s < t->n; s++)
        best = t->counts[s] > t->counts[best] ? s : best;
    return t->shares[best];
}

#define GUESTS UINT32_MAX /* all of them: no other share has this number */

/* The share with the most slots: guests together against the others, then among them.  held: also
 * of those that cannot make room. */
static uint32_t greediest(const struct choice *c, uint32_t own, bool own_is_guest, bool held)
{
    struct tally all = { .n = 0 }, guests = { .n = 0 };

    count_one(&all, own_is_guest ? GUESTS : own, 0);
    if (own_is_guest)
        count_one(&guests, own, 0);
    for (size_t i = 0; i < c->n; i++) {
        const struct weir__victim *v = &c->all[i];
        if (v->used == WEIR__VICTIM_NEVER && !held)
            continue;
        count_one(&all, v->guest ? GUESTS : v->share, 1);
        if (v->guest)
            count_one(&guests, v->share, 1);
    }
    uint32_t most = most_of(&all);
    return most == GUESTS ? most_of(&guests) : most;
}

static bool is_cheaper(const struct weir__victim *a, const struct weir__victim *b)
{
    return a->used < b->used || (a->used == b->used && a->idle_at < b->idle_at);
}

/* Whose key makes room. */
static uint32_t share_to_cut(const struct choice *c, const struct weir__part *part)
{
    uint32_t own = share_of(part->home.tag, part->version);
    bool guest = is_guest(part->limiter, part->home.tag);

    if (part->limiter == &part->limiter->table->held && greediest(c, own, guest, true) == own)
        return own;
    return greediest(c, own, guest, false);
}

static struct weir__victim choose(const struct choice *c, const struct weir__part *part)
{
    bool bans = part->limiter == &part->limiter->table->banned;
    uint32_t share = share_to_cut(c, part);
    struct weir__victim best = { .slot = NULL };
    weir_time room_at = INT64_MAX;

    for (size_t i = 0; i < c->n; i++) {
        const struct weir__victim *v = &c->all[i];
        room_at = v->idle_at < room_at ? v->idle_at : room_at;
        bool over = bans && v->used == 1; /* whatever its rule is */
        if (v->used != WEIR__VICTIM_NEVER && (v->share == share || over) &&
            (best.slot == NULL || is_cheaper(v, &best)))
            best = *v;
    }
    best.room_at = room_at;
    return best;
}

static bool is_mine(const uint64_t *tag, const uint64_t *mine, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (weir__load(tag) == mine[i])
            return true;
    return false;
}

/* Where a key in use would mean a refusal, it must be known: a pin may hide an idle one. */
static struct weir__victim judge_for(const struct weir__part *part, void *slot, weir_time now,
                                     struct reading *reading)
{
    struct weir__space *space = part->limiter->space;

    if (part->closed)
        weir__hand_settle(space->table, weir__slot_pin(space, slot));
    return judge(space, slot, now, reading);
}

/* The large state of a slot, if it has one, is fetched while others are judged. */
static void fetch_state(struct weir__space *space, void *slot)
{
    struct weir_limiter *limiter = weir__slot_limiter(space, weir__load(slot));
    uint32_t block = (uint32_t)weir__load(&weir__slot_pair(space, slot)[1]);
    size_t bytes = limiter != NULL && limiter->kind == WEIR__LARGE
                       ? weir__block_bytes(&space->slab, block)
                       : 0;

    for (size_t at = 0; at < bytes && at < FETCH; at += WEIR__LINE)
        __builtin_prefetch((const char *)weir__block_at(&space->slab, block) + at);
}

struct weir__victim weir__victim_near(const struct weir__part *part, weir_time now,
                                      const uint64_t *mine, size_t n)
{
    struct weir__space *space = part->limiter->space;
    struct choice c; /* large: not zeroed */

    bool large = weir__slab_is_used(&space->slab);

    c.n = c.reading.n = c.reading.bytes = 0;
    for (uint64_t i = 0; i < WEIR__WINDOW_SLOTS; i++) {
        if (large && i + AHEAD < WEIR__WINDOW_SLOTS)
            fetch_state(space,
                        weir__slot_at(space, part->home.group, part->home.first + i + AHEAD));
        void *slot = weir__slot_at(space, part->home.group, part->home.first + i);
        bool kept = weir__slot_is_kept(part, part->home.first + i);
        if (is_mine(slot, mine, n) || (kept && weir__load(slot) == 0)) /* or it is nobody's */
            continue;
        c.all[c.n] = judge_for(part, slot, now, &c.reading);
        if (kept)
            c.all[c.n].used = WEIR__VICTIM_NEVER;
        if (c.all[c.n].used == 0)
            return c.all[c.n];
        c.n++;
    }
    return choose(&c, part);
}

/* --------------------------------------------------------------- blocks ---- */

static bool has_block(struct weir__space *space, void *slot, size_t bytes)
{
    uint64_t pair[2];

    weir__load_pair(weir__slot_pair(space, slot), pair);
    if ((uint32_t)pair[1] == 0) /* nearly all, where few have one */
        return false;
    struct weir_limiter *limiter = weir__slot_limiter(space, weir__load(slot));
    return limiter != NULL && limiter->kind == WEIR__LARGE &&
           (pair[space->narrow] & WEIR__PIN) == 0 &&
           weir__block_bytes(&space->slab, (uint32_t)pair[1]) == bytes;
}

/* Groups that are looked at: where few keys have blocks, one has too few.  Where hardly any has,
 * the search goes on while there are blocks: else new keys would not be limited. */
#define GROUPS     16
#define GROUPS_FAR 1024
#define ENOUGH     4 /* candidates */

/* Adds those of a group.  True: the last one is idle. */
static bool find_blocks(const struct weir__part *part, size_t bytes, weir_time now,
                        const uint64_t *mine, size_t n, uint64_t group, struct choice *c)
{
    struct weir__space *space = part->limiter->space;
    size_t end = c->n;

    group = (part->home.group + group) % space->groups;
    for (uint64_t i = 0; i < WEIR__GROUP_SLOTS && end < WEIR__WINDOW_SLOTS; i++) {
        void *slot = weir__slot_at(space, group, part->home.first + i);
        if (!has_block(space, slot, bytes) || is_mine(slot, mine, n))
            continue;
        fetch_state(space, slot);
        c->all[end++].slot = slot;
    }
    while (c->n < end) {
        struct weir__victim *v = &c->all[c->n++];
        *v = judge(space, v->slot, now, &c->reading);
        if (v->used == 0)
            return true;
    }
    return false;
}

struct weir__victim weir__victim_with_block(const struct weir__part *part, size_t bytes,
                                            weir_time now, const uint64_t *mine, size_t n)
{
    struct weir__space *space = part->limiter->space;
    uint64_t groups = space->groups < GROUPS_FAR ? space->groups : GROUPS_FAR;
    struct choice c; /* large: not zeroed */

    c.n = c.reading.n = c.reading.bytes = 0;
    for (uint64_t group = 0; group < groups && c.n < WEIR__WINDOW_SLOTS; group++) {
        if (group >= GROUPS && c.n >= ENOUGH)
            break;
        if (group == GROUPS && !weir__slab_has_blocks(&space->slab, bytes))
            break;
        if (find_blocks(part, bytes, now, mine, n, group, &c))
            return c.all[c.n - 1];
    }
    return choose(&c, part);
}
