/* purses.c -- purses in a table: filling, closing, emptying. */
#include "table/purses.h"

#include <assert.h>

#include "table/part.h"

struct change {
    int64_t units; /* put in; in the end: those that were there */
    weir_time at, now;
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
        make_change(limiter, key, fill, &(struct change){ units, drawn, now, true });
}

static bool close_purse(const struct weir_plan *plan, void *state, void *context)
{
    const struct change *c = context;
    weir_time longest =
        c->now > INT64_MAX - plan->limit.period ? INT64_MAX : c->now + plan->limit.period;

    if (units_in(plan, state, c->now) > 0)
        return false;
    plan->algo->give(plan, state, -1, c->at < longest ? c->at : longest);
    return true;
}

void weir__purse_close(struct weir_limiter *limiter, struct weir_key key, weir_time until,
                       weir_time now)
{
    make_change(limiter, key, close_purse, &(struct change){ 0, until, now, true });
}

static bool empty(const struct weir_plan *plan, void *state, void *context)
{
    struct change *c = context;

    c->units = units_in(plan, state, c->now);
    if (c->units > 0)
        plan->algo->give(plan, state, -c->units, c->now);
    return c->units > 0;
}

int64_t weir__purse_empty(struct weir_limiter *limiter, struct weir_key key, weir_time now)
{
    struct change change = { .now = now };

    make_change(limiter, key, empty, &change);
    return change.units;
}

void weir__fleet_renew(struct weir_table *table, weir_time until)
{
    __atomic_store_n(&table->header->fleet_until, until, __ATOMIC_RELEASE);
}
