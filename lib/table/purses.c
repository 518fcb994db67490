/* purses.c -- purses in a table: filling and closing them. */
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
