/* purse.c -- units that somebody else has granted, until they expire.
 *
 * A fresh purse is empty, and time fills none.  weir_give puts units in; they live for the period,
 * counted from the time that is given with them (for units drawn from an account, the moment at
 * which the draw was sent).  An ask takes the oldest units first.  More than count are never in it:
 * the rest of a deposit is dropped.
 *
 * Two lots are told apart.  A deposit joins the newer lot if it can live for more than half a life
 * there; else the newer lot becomes the older one, which has expired by then.  So a unit lives for
 * more than half a life, and never for more than a life.
 *
 *     0  int64   until   the newer lot expires; the older one half a life before
 *     8  uint32  older   units
 *    12  uint32  newer   units
 *     bound      in any interval T, the units that were put in during T and the life before it
 *
 * Without units, `until` says how long it is no use to ask for more: the account is spent, and asks
 * are refused with that time.  A charge by time `until` writes it.  Otherwise an ask that finds too
 * little is refused as "dry": more may be had at once.
 *
 * A purse may be closed for a shorter time than it says, since whoever fills it may die.  Then
 * `older` is more than can be in it: as many ms below 2^32 - 1 as it opens earlier.  (A version
 * that does not know of this takes it for damaged: empty, or closed.)
 *
 * Why not one lot: its units would expire with the oldest, and a busy purse would lose them all
 * once in a life; or with the newest, and then a unit could live for ever.
 */
#include "algo/purse.h"

#define PERIOD_MAX (INT64_MAX / 4)

struct purse {
    weir_time until;
    uint32_t older, newer;
};

_Static_assert(sizeof(struct purse) == WEIR__STATE_SMALL, "it fits a slot");

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    if (plan->limit.count > UINT32_MAX)
        return weir__fail(error, WEIR_INVALID, "a purse holds at most 4294967295 units");
    if (plan->limit.period < 2 || plan->limit.period > PERIOD_MAX)
        return weir__fail(error, WEIR_INVALID, "units in a purse live for 2ns to 73 years");
    plan->most = plan->limit.count;
    return WEIR_OK;
}

static weir_time half_of(const struct weir_plan *plan)
{
    return plan->limit.period / 2;
}

static int64_t units_in(const struct purse *p)
{
    return (int64_t)p->older + p->newer;
}

static bool says_more(const struct weir_plan *plan, const struct purse *p)
{
    return p->newer == 0 && p->older > plan->most;
}

static weir_time opens_at(const struct purse *p)
{
    return p->until - (weir_time)(UINT32_MAX - p->older) * WEIR_MILLISECOND;
}

/* What is in it now.  One that lasts longer than a life is damaged, or the clock has stepped back:
 * empty, because its units might have expired already. */
static struct purse look(const struct weir_plan *plan, const void *state, weir_time now)
{
    struct purse p = *(const struct purse *)state;

    p.until &= INT64_MAX;
    weir_time lasts = says_more(plan, &p) ? opens_at(&p) : p.until;
    if (lasts <= now || lasts - now > plan->limit.period + WEIR__LATE_MAX)
        return (struct purse){ 0 };
    if (says_more(plan, &p))
        return (struct purse){ .until = p.until };
    if (p.until - now <= half_of(plan))
        p.older = 0;
    if (units_in(&p) > plan->most) { /* damaged */
        p.older = 0;
        p.newer = p.newer < plan->most ? p.newer : (uint32_t)plan->most;
    }
    return p;
}

static void take_out(struct purse *p, int64_t units)
{
    int64_t old = units < p->older ? units : p->older;

    p->older -= (uint32_t)old;
    p->newer -= (uint32_t)(units - old);
    if (units_in(p) == 0)
        *p = (struct purse){ 0 }; /* not spent: more may be had */
}

static void describe(const struct purse *p, weir_time now, struct weir_decision *d)
{
    d->remaining = units_in(p);
    d->reset = p->until > now ? p->until - now : 0;
}

static bool refuse(const struct weir_plan *plan, const struct purse *p, const struct weir_ask *ask,
                   struct weir_decision *d)
{
    describe(p, ask->now, d);
    if (ask->cost > plan->most)
        return weir__refuse(d, WEIR_NEVER);
    bool dry = units_in(p) > 0 || p->until == 0;
    weir__refuse_until(d, dry ? 0 : p->until - ask->now);
    d->reason = dry ? WEIR_DRY : WEIR_LIMITED;
    return false;
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct purse p = look(plan, state, ask->now);

    if (ask->cost > units_in(&p))
        return refuse(plan, &p, ask, d);
    if (ask->cost > 0)
        take_out(&p, ask->cost);
    describe(&p, ask->now, d);
    if (take && ask->cost > 0)
        *(struct purse *)state = p;
    return weir__grant(d, 0);
}

static void put_in(const struct weir_plan *plan, struct purse *p, int64_t units, weir_time until)
{
    int64_t room = plan->most - units_in(p);

    units = units < room ? units : room;
    if (units_in(p) == 0) {
        p->until = until;
    } else if (until - p->until >= half_of(plan)) {
        p->older = p->newer;
        p->newer = 0;
        p->until += half_of(plan);
    } else if (until < p->until) {
        p->until = until;
    }
    p->newer += (uint32_t)units;
}

/* Charged: nobody takes what is not there, so the rest is forgotten. */
static void charge(struct purse *p, int64_t units, weir_time now)
{
    if (units < units_in(p))
        take_out(p, units);
    else
        *p = (struct purse){ .until = now };
}

static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct purse p = look(plan, state, now);
    weir_time life = plan->limit.period;

    if (units < 0)
        charge(&p, units == INT64_MIN ? INT64_MAX : -units, now);
    else if (units > 0)
        put_in(plan, &p, units, now > INT64_MAX - life ? INT64_MAX : now + life);
    *(struct purse *)state = p;
}

static void give_unused(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now)
{
    if (now - unused->turn < plan->limit.period)
        give(plan, state, unused->units, now);
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    struct purse p = *(const struct purse *)state;

    p.until &= INT64_MAX;
    return says_more(plan, &p) ? opens_at(&p) : p.until;
}

/* What is in it stays, as far as there is room, and no longer than before.  What it says of the old
 * limit does not. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct purse p = look(old_plan, from, now);
    int64_t units = units_in(&p);

    if (p.until > 0 && says_more(old_plan, from))
        p.until = idle_at(old_plan, from);
    if (p.older > 0)
        p.until -= half_of(old_plan);
    if (p.until - now > new_plan->limit.period)
        p.until = now + new_plan->limit.period;
    p.older = 0;
    p.newer = (uint32_t)(units < new_plan->most ? units : new_plan->most);
    *(struct purse *)to = p;
}

void weir__purse_shut(const struct weir_plan *plan, void *state, weir_time opens, weir_time told)
{
    weir_time most = (weir_time)(UINT32_MAX - plan->most - 1) * WEIR_MILLISECOND;
    weir_time less = told > opens ? told - opens : 0;

    less = most < 0 ? 0 : less < most ? less : most;
    struct purse p = { .until = opens + less };
    if (less >= WEIR_MILLISECOND)
        p.older = UINT32_MAX - (uint32_t)(less / WEIR_MILLISECOND);
    *(struct purse *)state = p;
}

const struct weir__algo weir__purse = {
    .name = "purse",
    .summary = "units drawn elsewhere, until they expire: what a node of a fleet spends",
    .fills = true,
    .prepare = prepare,
    .step = step,
    .give = give,
    .give_unused = give_unused,
    .change = change,
    .idle_at = idle_at,
};
