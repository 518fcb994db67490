/* carried.c -- limits that come with the ask.
 *
 * The ask carries the limit, so the table keeps no record of it: a client that makes up limits
 * fills nothing.  A key's use is kept as the time that it owes, which means the same under any
 * limit; redis-cell does the same, as a theoretical arrival time.
 *
 *     slot    wide; owner = WEIR__CARRIED_ID << 32 | scale, which is no limiter's
 *     state   struct weir__debt (debt.h), in parts of 1/scale ns
 *
 * An ask whose limit counts in the same parts, and nearly all do, is what weir_take is on a wide
 * slot: one step, one swap.  Under a limit with another scale it is decided at the desk, on the
 * state brought over.  Only a charge is written under the new scale: a refusal leaves the slot as
 * it was, so that asks under two limits in turn do not round the debt up again and again.
 *
 * Why not a limiter for each limit, found by its numbers: limiters are never removed, and one key
 * would be free again under every limit.
 */
#include <assert.h>

#include "table/carried.h"
#include "table/slot.h"

#define SALT \
    0x6c6f6f7365u /* limiters' salts are random, and a slot's owner tells theirs apart anyway */
#define BATCH 16

bool weir__plan_is_carried(const struct weir_plan *plan)
{
    bool meter = plan->algo == &weir__gcra || plan->algo == &weir__token_bucket ||
                 (plan->algo == &weir__leaky_bucket && plan->limit.queue == 0);

    return meter && plan->by_scale.by <= UINT32_MAX;
}

static inline uint64_t owner_of(const struct weir_plan *plan)
{
    return (uint64_t)WEIR__CARRIED_ID << 32 | plan->by_scale.by;
}

static uint32_t scale_of(uint64_t owner)
{
    uint32_t scale = (uint32_t)owner;

    return scale | (scale == 0); /* 0 is damage */
}

weir_time weir__carried_idle_at(uint64_t owner, const uint64_t state[2])
{
    weir_time at = (weir_time)(state[0] & INT64_MAX), span;
    int64_t owed = (int64_t)state[1];

    if (owed <= 0)
        return 0;
    span = owed / scale_of(owner) + (owed % scale_of(owner) != 0);
    return span > INT64_MAX - at ? INT64_MAX : at + span;
}

static inline __attribute__((always_inline)) struct weir__home
home_of(const struct weir_table *table, struct weir_key key)
{
    return weir__home_from(weir__hash_key(table->secrets, SALT, key), table->groups,
                           WEIR__WIDE_STEP);
}

/* The plans are meters, so the step is known. */
static inline __attribute__((always_inline)) bool step(const struct weir_plan *plan, void *state,
                                                       const struct weir_ask *ask, bool take,
                                                       struct weir_decision *d)
{
    weir__decision_begin(plan, d);
    return weir__debt_step(plan, state, ask, take, d);
}

/* ---------------------------------------------------------- at the desk ---- */

/* A slot that is pinned, and what it owes at the time of the ask in parts of its own. */
struct opened {
    struct weir__wide *slot;
    uint64_t owner;
    int64_t kept; /* what it owed when it was last used */
    struct weir__debt debt;
    bool stepped; /* the clock has stepped back */
};

static bool open_locked(struct weir_table *table, struct weir__home home, weir_time now,
                        struct opened *o)
{
    struct weir__wide *slot = weir__wide_find(table, WEIR__CARRIED_ID, home);

    if (slot == NULL)
        return false;
    weir__slot_pin_locked(table, slot);
    o->slot = slot;
    o->owner = weir__load(&slot->owner);
    o->kept = (int64_t)weir__load(&slot->state[1]);
    o->debt = (struct weir__debt){ (weir_time)(weir__load(&slot->state[0]) & ~WEIR__PIN), o->kept };
    struct weir_plan own = { .by_scale = weir__divisor_make(scale_of(o->owner)) };
    o->stepped = weir__debt_reckon(&own, &o->debt, now, 0);
    return true;
}

static void close_locked(const struct opened *o, uint64_t owner, const struct weir__debt *debt)
{
    uint64_t state[2] = { (uint64_t)debt->at, (uint64_t)debt->owed };

    __atomic_store_n(&o->slot->owner, owner, __ATOMIC_RELEASE);
    weir__wide_write(o->slot, state);
}

/* The same time in other parts, rounded up; it may be more than a debt can be. */
static weir__i128 rescale(int64_t owed, uint64_t to, uint32_t from)
{
    return ((weir__i128)owed * (weir__i128)to + from - 1) / from;
}

/* More is owed than can be told in the plan's parts, and so far more than the plan allows. */
static bool refuse_deep(const struct weir_plan *plan, weir__i128 owed, const struct weir_ask *ask,
                        struct weir_decision *d)
{
    weir__i128 scale = (weir__i128)plan->by_scale.by;

    weir__decision_begin(plan, d);
    d->remaining = 0;
    d->reset = (weir_time)((owed + scale - 1) / scale);
    if (ask->cost > plan->most)
        return weir__refuse(d, WEIR_NEVER);
    return weir__refuse(
        d, (weir_time)((owed + ask->cost * plan->price - plan->capacity + scale - 1) / scale));
}

static void decide_opened(struct weir_table *table, const struct opened *o,
                          const struct weir_plan *plan, const struct weir_ask *ask, bool take,
                          struct weir_decision *d)
{
    weir__i128 owed = rescale(o->debt.owed, plan->by_scale.by, scale_of(o->owner));
    struct weir__debt after = { o->debt.at, (int64_t)owed };
    bool granted = owed > WEIR__OWED_MAX ? refuse_deep(plan, owed, ask, d)
                                         : weir__step(plan, &after, ask, take, d);

    if (granted && take && ask->cost > 0) {
        after.owed +=
            after.owed ==
            o->kept; /* so that nobody who read it in other parts takes it for unchanged */
        close_locked(o, owner_of(plan), &after);
    } else if (o->stepped && take) {
        close_locked(o, o->owner, &o->debt);
    } else {
        weir__slot_unpin_locked(table, o->slot);
    }
}

/* Under a limit with another scale.  False if the key has no slot any more. */
static bool decide_other(struct weir_table *table, struct weir__home home,
                         const struct weir_plan *plan, const struct weir_ask *ask, bool take,
                         struct weir_decision *d)
{
    struct opened o;

    weir__desk_lock(table, weir__desk_of(home.group));
    bool found = open_locked(table, home, ask->now, &o);
    if (found)
        decide_opened(table, &o, plan, ask, take, d);
    weir__desk_unlock(table, weir__desk_of(home.group));
    return found;
}

/* -------------------------------------------------------------- deciding ---- */

static void decide_plain(struct weir_table *table, struct weir__home home,
                         const struct weir_plan *plan, const struct weir_ask *ask, bool take,
                         struct weir_decision *d)
{
    for (;;) {
        struct weir__wide *slot = weir__wide_find(table, WEIR__CARRIED_ID, home);
        if (slot == NULL) {
            uint64_t fresh[2] = { 0, 0 };
            if (!weir__step(plan, fresh, ask, take, d) || !take || ask->cost == 0)
                return; /* a key that has nothing to remember gets no slot */
            slot = weir__slot_claim_as(table, home, owner_of(plan), ask->now);
        }
        enum weir__tried tried =
            weir__wide_try(slot, home.tag, owner_of(plan), step, plan, ask, take, d);
        if (tried == WEIR__TRIED_PINNED)
            weir__slot_wait(table, home.group, &slot->state[0]);
        if (tried == WEIR__TRIED_DONE ||
            (tried == WEIR__TRIED_OTHER && decide_other(table, home, plan, ask, take, d)))
            return;
    }
}

/* Any ask at all. */
static __attribute__((noinline)) void decide(struct weir_table *table, struct weir__home home,
                                             const struct weir__carried_item *item, bool take,
                                             struct weir_decision *d)
{
    struct weir_ask ask = item->ask;
    bool bad = ask.cost < 0;

    ask.cost = bad ? 0 : ask.cost;
    ask.now = ask.now < 0 ? 0 : ask.now;
    ask.wait_max = 0;
    decide_plain(table, home, item->plan, &ask, take && !bad, d);
    if (bad) {
        weir__refuse(d, WEIR_NEVER);
        d->reason = WEIR_BAD_ASK;
    }
}

/* The key's slot if it is in the line.  No branch: which of the two it is cannot be foreseen. */
static inline struct weir__wide *find_near(struct weir__wide *line, uint64_t tag)
{
    struct weir__wide *slot = line + (weir__load(&line[1].tag) == tag);

    return weir__load(&slot->tag) == tag ? slot : NULL;
}

static inline bool take_near(struct weir__wide *slot, uint64_t tag,
                             const struct weir__carried_item *item, struct weir_decision *d)
{
    const struct weir_ask *ask = &item->ask;

    if (__builtin_expect((ask->cost | ask->now) < 0 || ask->wait_max != 0, 0))
        return false;
    return weir__wide_try(slot, tag, owner_of(item->plan), step, item->plan, ask, true, d) ==
           WEIR__TRIED_DONE;
}

/* As take_batch in take.c: those found in their first line while the others' second lines are under
 * way.  The asks on one key go the same way, and so stay in order. */
static __attribute__((flatten)) size_t take_batch(struct weir_table *table,
                                                  const struct weir__carried_item *items, size_t n,
                                                  struct weir_decision *decisions)
{
    struct weir__home homes[BATCH];
    struct weir__wide *slots[BATCH];
    size_t granted = 0;

    for (size_t i = 0; i < n; i++) {
        homes[i] = home_of(table, items[i].ask.key);
        slots[i] = weir__wide_at(table, homes[i].group, homes[i].first);
        __builtin_prefetch(slots[i], 1);
    }
    for (size_t i = 0; i < n; i++) {
        slots[i] = find_near(slots[i], homes[i].tag);
        if (slots[i] == NULL)
            __builtin_prefetch(
                weir__wide_at(table, homes[i].group, homes[i].first + WEIR__WIDE_STEP), 1);
    }
    for (size_t i = 0; i < n; i++)
        if (slots[i] != NULL && !take_near(slots[i], homes[i].tag, &items[i], &decisions[i]))
            decide(table, homes[i], &items[i], true, &decisions[i]);
    for (size_t i = 0; i < n; i++) {
        if (slots[i] == NULL)
            decide(table, homes[i], &items[i], true, &decisions[i]);
        granted += decisions[i].allowed;
    }
    return granted;
}

size_t weir__carried_take_many(struct weir_table *table, const struct weir__carried_item *items,
                               size_t n, struct weir_decision *decisions)
{
    size_t granted = 0;

    assert(!table->narrow);
    for (size_t begin = 0; begin < n; begin += BATCH)
        granted += take_batch(table, items + begin, n - begin < BATCH ? n - begin : BATCH,
                              decisions + begin);
    return granted;
}

bool weir__carried_peek(struct weir_table *table, const struct weir__carried_item *item,
                        struct weir_decision *decision)
{
    assert(!table->narrow);
    decide(table, home_of(table, item->ask.key), item, false, decision);
    return decision->allowed;
}

/* ------------------------------------------------------- give and forget ---- */

/* What the units are worth in the slot's own parts. */
static int64_t worth(const struct weir_plan *plan, int64_t units, uint32_t scale)
{
    weir__i128 parts = (weir__i128)units * plan->price;

    parts =
        (parts > WEIR__OWED_MAX ? WEIR__OWED_MAX : parts) * scale / (weir__i128)plan->by_scale.by;
    return parts > WEIR__OWED_MAX ? WEIR__OWED_MAX : (int64_t)parts;
}

void weir__carried_give(struct weir_table *table, const struct weir__carried_item *item)
{
    struct weir__home home = home_of(table, item->ask.key);
    struct opened o;

    assert(!table->narrow);
    if (item->ask.cost <= 0)
        return;
    weir__desk_lock(table, weir__desk_of(home.group));
    if (open_locked(table, home, item->ask.now < 0 ? 0 : item->ask.now, &o)) {
        int64_t left = o.debt.owed - worth(item->plan, item->ask.cost, scale_of(o.owner));
        o.debt.owed = left < 0 ? 0 : left;
        close_locked(&o, o.owner, &o.debt);
    }
    weir__desk_unlock(table, weir__desk_of(home.group));
}

bool weir__carried_forget(struct weir_table *table, struct weir_key key, weir_time now)
{
    struct weir__home home = home_of(table, key);
    struct opened o;

    assert(!table->narrow);
    weir__desk_lock(table, weir__desk_of(home.group));
    bool found = open_locked(table, home, now < 0 ? 0 : now, &o), used = found && o.debt.owed > 0;
    if (used)
        close_locked(&o, o.owner, &(struct weir__debt){ o.debt.at, 0 });
    else if (found)
        weir__slot_unpin_locked(table, o.slot);
    weir__desk_unlock(table, weir__desk_of(home.group));
    return used;
}
