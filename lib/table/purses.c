/* purses.c -- purses in a table: filling and closing them, and the process that may. */
#include "table/purses.h"

#include <assert.h>

#include "algo/purse.h"
#include "algo/share.h"
#include "table/part.h"

struct change {
    int64_t units; /* put in */
    weir_time at, told, now;
    bool make; /* a slot, if the key has none */
};

static int64_t units_in(const struct weir_plan *plan, const void *state, weir_time now)
{
    struct weir_decision d;

    weir_step_peek(plan, state, &(struct weir_ask){ .now = now }, &d);
    return d.remaining;
}

static void make_change(struct weir_limiter *limiter, struct weir_key key, weir__changer *changer,
                        struct change *change)
{
    struct weir__part part;

    weir__part_begin(&part, limiter, weir__home_of(limiter, key));
    assert(part.plan->algo->fills);
    weir__part_change(&part, changer, change, change->make, change->now);
}

static bool fill(const struct weir_plan *plan, void *state, void *context)
{
    const struct change *c = context;

    plan->algo->give(plan, state, c->units, c->at);
    return true;
}

void weir__purse_fill(struct weir_limiter *limiter, struct weir_key key, int64_t units,
                      weir_time drawn, weir_time now)
{
    if (units > 0)
        make_change(limiter, key, fill, &(struct change){ units, drawn, 0, now, true });
}

static bool close_purse(const struct weir_plan *plan, void *state, void *context)
{
    const struct change *c = context;
    weir_time longest =
        c->now > INT64_MAX - plan->limit.period ? INT64_MAX : c->now + plan->limit.period;

    if (units_in(plan, state, c->now) > 0)
        return false;
    weir__purse_shut(plan, state, c->at < longest ? c->at : longest, c->told);
    return true;
}

void weir__purse_close(struct weir_limiter *limiter, struct weir_key key, weir_time until,
                       weir_time told, weir_time now)
{
    make_change(limiter, key, close_purse, &(struct change){ 0, until, told, now, true });
}

struct emptying {
    int64_t units;
    weir_time now;
};

static bool empty(const struct weir_plan *plan, void *state, void *context)
{
    struct emptying *e = context;

    e->units = weir__fleet_share_owed(plan, state, e->now);
    if (e->units > 0)
        plan->algo->give(plan, state, e->units, e->now);
    return e->units > 0;
}

int64_t weir__share_empty(struct weir_limiter *limiter, struct weir_key key, weir_time now)
{
    struct emptying e = { .now = now < 0 ? 0 : now };
    struct weir__part part;

    weir__part_begin(&part, limiter, weir__home_of(limiter, key));
    weir__part_change(&part, empty, &e, false, e.now);
    return e.units;
}

/* ----------------------------------------------------------------- agent ---- */

/* The word: ticks << 12 | the holder.  Ticks come again after a day: a holder that is long dead
 * keeps others waiting for one lease then. */
#define HOLDER 0xfffu
#define TICKS  0xfffffu

static uint32_t ticks_of(weir_time now)
{
    return (uint32_t)(now / WEIR__AGENT_TICK) & TICKS;
}

bool weir__fleet_claim(struct weir_table *table, uint32_t me, weir_time now)
{
    uint32_t *word = &table->header->fleet_agent, was = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    uint32_t wanted = ticks_of(now) << 12 | me, age = (ticks_of(now) - (was >> 12)) & TICKS;

    if (was == wanted)
        return true;
    if (was != 0 && (was & HOLDER) != me && age <= WEIR__AGENT_LEASE)
        return false;
    return __atomic_compare_exchange_n(word, &was, wanted, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

void weir__fleet_yield(struct weir_table *table, uint32_t me)
{
    uint32_t *word = &table->header->fleet_agent, was = __atomic_load_n(word, __ATOMIC_ACQUIRE);

    if ((was & HOLDER) == me)
        __atomic_compare_exchange_n(word, &was, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void weir__fleet_forget(struct weir_table *table, weir_time now)
{
    uint32_t agent = __atomic_load_n(&table->header->fleet_agent, __ATOMIC_ACQUIRE);

    if (agent == 0 || ((ticks_of(now) - (agent >> 12)) & TICKS) > WEIR__AGENT_LEASE)
        weir__fleet_renew(table, 0);
}

/* Not backwards: an agent that was stopped in here may go on when another is long at work.  Further
 * ahead than it can be: damaged. */
void weir__fleet_renew(struct weir_table *table, weir_time until)
{
    weir_time *word = &table->header->fleet_until, was = __atomic_load_n(word, __ATOMIC_ACQUIRE);

    do {
        if (until > WEIR__FLEET_AWAY && was > until && was - until <= WEIR__FLEET_UNTIL_MAX)
            return;
    } while (
        !__atomic_compare_exchange_n(word, &was, until, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}
