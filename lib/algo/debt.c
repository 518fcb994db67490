/* debt.c -- the parts of debt.h that few decisions need. */
#include <inttypes.h>

#include "algo/debt.h"

int weir__debt_prepare(struct weir_plan *plan, int64_t most, struct weir_error *error)
{
    int64_t count = plan->limit.count, period = plan->limit.period;
    int64_t dearest = WEIR__CAPACITY_MAX / most, unit = period / count + (period % count != 0),
            least = unit > WEIR__PRICE_LEAST ? unit : WEIR__PRICE_LEAST;
    uint64_t scale = plan->by_scale.by;

    if (plan->price > dearest && dearest < least)
        return weir__fail(
            error, WEIR_INVALID,
            "%" PRId64
            " units at once is too many at this rate: exact arithmetic reaches to %" PRId64,
            most, WEIR__CAPACITY_MAX / (plan->price < least ? plan->price : least));
    if (plan->price > dearest)
        scale = (uint64_t)((weir__i128)(dearest / 8 > least ? dearest / 8 : dearest) * count /
                           period); /* rounded anyway: leave room for what smooth borrows */
    weir__price_fit(plan, scale);
    plan->most = most;
    plan->capacity = most * plan->price;
    plan->packs = plan->by_scale.by == 1;
    return WEIR_OK;
}

bool weir__debt_meter(const struct weir_plan *plan, int64_t owed, const struct weir_ask *ask,
                      struct weir_decision *d, int64_t *after)
{
    *after = owed;
    d->remaining = weir__parts_units(plan, plan->capacity - owed);
    d->reset = weir__parts_time(plan, owed);
    if (ask->cost > plan->most)
        return weir__refuse(d, WEIR_NEVER);
    int64_t then = owed + ask->cost * plan->price;
    weir_time wait = weir__parts_time(plan, then - plan->capacity),
              over = weir__parts_time(plan, then - WEIR__OWED_MAX);
    if (wait > ask->wait_max || over > 0)
        return weir__refuse(d, wait - ask->wait_max > over ? wait - ask->wait_max : over);
    *after = then;
    d->remaining = weir__parts_units(plan, plan->capacity - then);
    d->reset = weir__parts_time(plan, then);
    return weir__grant(d, wait);
}

bool weir__debt_step_slow(const struct weir_plan *plan, struct weir__debt *state,
                          const struct weir_ask *ask, bool take, struct weir_decision *d)
{
    struct weir__debt s = *state;
    int64_t after;
    bool stepped = weir__debt_reckon(plan, &s, ask->now, 0),
         granted = weir__debt_meter(plan, s.owed, ask, d, &after);

    if (take && (after != s.owed || stepped))
        *state = (struct weir__debt){ s.at, after };
    return granted;
}

/* Parts for an unchecked number of units, cut to the bounds of a debt. */
static int64_t units_parts(const struct weir_plan *plan, int64_t units)
{
    weir__i128 parts = (weir__i128)units * plan->price;

    return parts > WEIR__OWED_MAX    ? WEIR__OWED_MAX
           : parts < -WEIR__OWED_MAX ? -WEIR__OWED_MAX
                                     : (int64_t)parts;
}

void weir__debt_give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct weir__debt *s = state;

    weir__debt_reckon(plan, s, now, 0);
    int64_t owed = s->owed - units_parts(plan, units);
    s->owed = owed < 0 ? 0 : owed > WEIR__OWED_MAX ? WEIR__OWED_MAX : owed;
}

int64_t weir__debt_unused(const struct weir_plan *plan, const struct weir__unused *unused,
                          weir_time now)
{
    int64_t parts = units_parts(plan, unused->units);
    weir__i128 passed = now > unused->turn ? now - unused->turn : 0,
               lost = passed * (weir__i128)plan->by_scale.by - units_parts(plan, unused->kept);

    return lost <= 0 ? parts : lost >= parts ? 0 : parts - (int64_t)lost;
}

void weir__debt_give_unused(const struct weir_plan *plan, void *state,
                            const struct weir__unused *unused, weir_time now)
{
    struct weir__debt *s = state;

    weir__debt_reckon(plan, s, now, 0);
    int64_t owed = s->owed - weir__debt_unused(plan, unused, s->at);
    s->owed = owed < 0 ? 0 : owed;
}

int64_t weir__unpack_late(const struct weir_plan *plan, uint64_t word, weir_time *now,
                          bool *stepped)
{
    weir_time paid_off = (weir_time)(word & INT64_MAX),
              most = plan->capacity + WEIR__PACKED_WAIT_MAX;

    *now = weir__moment(plan->clock, paid_off - most, *now);
    *stepped = paid_off - *now > most + WEIR__LATE_MAX;
    return *stepped ? plan->capacity : paid_off < *now ? 0 : paid_off - *now;
}

weir_time weir__debt_idle_at(const struct weir_plan *plan, const void *state)
{
    const struct weir__debt *s = state;
    weir_time at = s->at & INT64_MAX, span = weir__parts_time(plan, s->owed);

    return s->owed <= 0 ? 0 : span > INT64_MAX - at ? INT64_MAX : at + span;
}
