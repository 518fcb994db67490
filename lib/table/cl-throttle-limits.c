/* cl-throttle-limits.c -- limits that come with the ask.
 *
 * The ask carries the limit, so the table keeps no record of it: a client that makes up limits
 * fills nothing.  A key's use is kept as the time that it owes, which means the same under any
 * limit; redis-cell does the same, as a theoretical arrival time.
 *
 *     tag     with WEIR__CARRIED_ID, which is no limiter's
 *     meta    scale and class (cl-throttle-limits.h), where others have the version of their limit
 *     state   struct weir__debt (debt.h), in parts of 1/scale ns
 *
 * An ask whose limit counts in the same parts, and nearly all do, is what weir_take is on a wide
 * slot: one step, one swap.  Another scale is like another version of a limit: the state is brought
 * over, and written only if the ask is granted.  A refusal leaves the slot as it was, so that asks
 * under two limits in turn do not round the debt up again and again.
 *
 * Why not a limiter for each limit, found by its numbers: one key would be free again under every
 * limit.
 */
#include <assert.h>

#include "table/batch.h"
#include "table/cl-throttle-limits.h"
#include "table/part.h"

#define SALT 0x6c6f6f7365u /* limiters' salts are random, and the tag tells theirs apart anyway */

#define SCALE_MAX (((uint32_t)1 << WEIR__CARRIED_SCALE_BITS) - 1)

bool weir__plan_is_carried(const struct weir_plan *plan)
{
    bool meter = plan->algo == &weir__gcra || plan->algo == &weir__token_bucket ||
                 (plan->algo == &weir__leaky_bucket && plan->limit.queue == 0);

    return meter && plan->by_scale.by <= SCALE_MAX;
}

void weir__carried_open(struct weir_table *table, struct weir_limiter *out)
{
    *out = (struct weir_limiter){ .table = table,
                                  .space = &table->keys,
                                  .salt = SALT,
                                  .id = WEIR__CARRIED_ID,
                                  .kind = WEIR__WIDE };
}

static inline uint32_t version_of(const struct weir_plan *plan)
{
    uint64_t most = weir__divide((uint64_t)plan->capacity, &plan->by_scale) | 1;

    return (uint32_t)plan->by_scale.by | (uint32_t)(64 - __builtin_clzll(most))
                                             << WEIR__CARRIED_SCALE_BITS;
}

static uint32_t scale_in(uint32_t version)
{
    uint32_t scale = version & SCALE_MAX;

    return scale | (scale == 0); /* damage */
}

weir_time weir__carried_idle_at(uint32_t version, const uint64_t state[2])
{
    weir_time at = (weir_time)(state[0] & INT64_MAX), span;
    int64_t owed = (int64_t)state[1], scale = scale_in(version);

    if (owed <= 0)
        return 0;
    span = owed / scale + (owed % scale != 0);
    return span > INT64_MAX - at ? INT64_MAX : at + span;
}

/* The same time in other parts, rounded up. */
weir__i128 weir__carried_convert(const struct weir_plan *plan, uint32_t version,
                                 const uint64_t from[2], uint64_t to[2], weir_time now)
{
    struct weir__debt debt = { (weir_time)(from[0] & INT64_MAX), (int64_t)from[1] };
    uint32_t scale = scale_in(version);

    struct weir_plan own = { .by_scale = weir__divisor_make(scale), .clock = plan->clock };
    weir__debt_reckon(&own, &debt, now, 0);
    weir__i128 owed = ((weir__i128)debt.owed * (weir__i128)plan->by_scale.by + scale - 1) / scale;
    to[0] = (uint64_t)debt.at;
    to[1] = (uint64_t)(owed > WEIR__OWED_MAX ? WEIR__OWED_MAX : (int64_t)owed);
    return owed;
}

static inline __attribute__((always_inline)) struct weir__home
home_of(const struct weir_table *table, struct weir_key key)
{
    return weir__home_of(&table->carried, key);
}

static struct weir__part part_of(struct weir_table *table, const struct weir_plan *plan,
                                 struct weir__home home)
{
    return (struct weir__part){
        .limiter = &table->carried, .plan = plan, .version = version_of(plan), .home = home
    };
}

/* The plans are meters, so the step is known. */
static inline __attribute__((always_inline)) bool step(const struct weir_plan *plan, void *state,
                                                       const struct weir_ask *ask, bool take,
                                                       struct weir_decision *d)
{
    weir__decision_begin(plan, d);
    return weir__debt_step(plan, state, ask, take, d);
}

/* -------------------------------------------------------------- deciding ---- */

static bool follow(const struct weir_plan *plan, void *state, void *context)
{
    return weir__debt_reckon(plan, state, *(const weir_time *)context, 0);
}

/* That the clock has stepped back is written down in the slot's own parts: the ask may be refused,
 * and then nothing else is. */
static void follow_clock(struct weir_table *table, struct weir__home home, weir_time now)
{
    const struct weir__wide *slot = weir__wide_find(&table->keys, home);

    if (slot == NULL || (weir_time)(weir__load(&slot->state[0]) & ~WEIR__PIN) <= now)
        return;
    uint32_t version = (uint32_t)weir__load(&slot->meta);
    struct weir_plan own = { .by_scale = weir__divisor_make(scale_in(version)),
                             .state_size = WEIR__STATE_SMALL,
                             .clock = &table->clock };
    struct weir__part part = part_of(table, &own, home);
    part.version = version;
    weir__part_change(&part, follow, &now, false, now);
}

/* Any ask at all. */
static __attribute__((noinline)) void decide(struct weir_table *table, struct weir__home home,
                                             const struct weir_plan *plan,
                                             const struct weir_ask *given, bool take,
                                             struct weir_decision *d)
{
    struct weir__part part = part_of(table, plan, home);
    struct weir_ask ask = *given;

    ask.wait_max = 0;
    if (take)
        follow_clock(table, home, ask.now < 0 ? 0 : ask.now);
    weir__decide_slowly(&part, &ask, take, d);
}

static inline struct weir__batch_item item_at(struct weir_table *table, const void *items, size_t i)
{
    const struct weir__carried_item *item = (const struct weir__carried_item *)items + i;

    return (struct weir__batch_item){ &table->carried, &item->ask, item->plan };
}

static inline bool is_plain(const struct weir_ask *ask)
{
    return (ask->cost | ask->now) >= 0 && ask->wait_max == 0;
}

static inline enum weir__tried try_slot(struct weir__wide *slot, uint64_t tag,
                                        const struct weir__batch_item *item,
                                        struct weir_decision *d)
{
    return weir__wide_try(slot, tag, version_of(item->plan), step, item->plan, item->ask, true, d);
}

static inline bool take_near(const struct weir__batch_item *item, const struct weir__aim *aim,
                             struct weir_decision *d)
{
    uint64_t tag = aim->hash.tag;

    return is_plain(item->ask) &&
           try_slot(weir__wide_in(aim->line, tag), tag, item, d) == WEIR__TRIED_DONE;
}

static __attribute__((noinline)) bool take_anywhere(const struct weir__batch_item *item,
                                                    const struct weir__aim *aim,
                                                    struct weir_decision *d)
{
    struct weir_table *table = item->limiter->table;
    struct weir__home home = weir__home_from(&table->keys, aim->hash);
    enum weir__tried tried = is_plain(item->ask) ? WEIR__TRIED_AGAIN : WEIR__TRIED_OTHER;

    while (tried == WEIR__TRIED_AGAIN) {
        struct weir__wide *slot = weir__wide_find(&table->keys, home);
        tried = slot == NULL ? WEIR__TRIED_OTHER : try_slot(slot, home.tag, item, d);
    }
    if (tried == WEIR__TRIED_OTHER)
        decide(table, home, item->plan, item->ask, true, d);
    return d->allowed;
}

size_t weir__carried_take_many(struct weir_table *table, const struct weir__carried_item *items,
                               size_t n, struct weir_decision *decisions)
{
    static const struct weir__batch_ways ways = { item_at, take_near, take_anywhere };
    size_t granted = 0;

    assert(!table->keys.narrow);
    for (size_t begin = 0; begin < n; begin += WEIR__BATCH)
        granted +=
            weir__take_batch(&ways, table, items + begin,
                             n - begin < WEIR__BATCH ? n - begin : WEIR__BATCH, decisions + begin);
    return granted;
}

bool weir__carried_peek(struct weir_table *table, const struct weir__carried_item *item,
                        struct weir_decision *decision)
{
    assert(!table->keys.narrow);
    decide(table, home_of(table, item->ask.key), item->plan, &item->ask, false, decision);
    return decision->allowed;
}

/* ---------------------------------------------------------------- forget ---- */

struct forgotten {
    weir_time now;
    bool was_used;
};

static bool forget_debt(const struct weir_plan *plan, void *state, void *context)
{
    struct forgotten *f = context;
    struct weir__debt *debt = state;

    weir__debt_reckon(plan, debt, f->now, 0);
    f->was_used = debt->owed > 0;
    debt->owed = 0;
    return f->was_used;
}

bool weir__carried_forget(struct weir_table *table, struct weir_key key, weir_time now)
{
    struct weir_plan ns = { .by_scale = weir__divisor_make(1),
                            .state_size = WEIR__STATE_SMALL,
                            .clock = &table->clock };
    struct weir__part part = part_of(table, &ns, home_of(table, key));
    struct forgotten f = { .now = now < 0 ? 0 : now };

    assert(!table->keys.narrow);
    weir__part_change(&part, forget_debt, &f, false, f.now);
    return f.was_used;
}
