/* fixed-window.c -- so many per period, counted anew each period.
 *
 * Windows begin at multiples of the period on the clock's axis, or (align=first) with the first ask
 * after the last window ended.
 *
 *     0  int64  end    of the window that `used` is about
 *     8  int64  used   units taken in it; more than count: the rest is promised to the windows that
 *                      follow
 *     bound     count in a window, and so up to 2 * count in an interval of one period that lies
 *               across an edge.  That is the price of its simplicity: sliding-window and
 *               sliding-log do not have it.
 *
 * An ask that can wait is promised the first later window that holds it whole; nobody overtakes a
 * promise, and what it skipped of a window stays skipped even if it is given back.
 */
#include "algo/window.h"

#define USED_MAX ((int64_t)1 << 61)

struct state {
    weir_time end;
    int64_t used;
};

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    if (plan->limit.count > USED_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "a window cannot count that far: count must be at most 2^61");
    plan->most = plan->limit.count;
    plan->by_period = weir__divisor_make((uint64_t)plan->limit.period);
    plan->by_count = weir__divisor_make((uint64_t)plan->limit.count);
    plan->packs = false;
    return WEIR_OK;
}

static weir_time add_time(weir_time a, weir__u128 b)
{
    return b > (weir__u128)(INT64_MAX - a) ? INT64_MAX : a + (weir_time)b;
}

static weir_time window_end(const struct weir_plan *plan, weir_time now)
{
    weir_time period = plan->limit.period;
    weir_time start = plan->limit.align_first
                          ? now
                          : (weir_time)weir__divide((uint64_t)now, &plan->by_period) * period;
    return add_time(start, (uint64_t)period);
}

/* Makes the state that of the window `now` lies in.  True if the clock has stepped back: then what
 * was used counts in this window. */
static bool roll(const struct weir_plan *plan, struct state *s, weir_time now)
{
    int64_t count = plan->limit.count;
    s->used = s->used < 0          ? 0
              : s->used > USED_MAX ? USED_MAX
                                   : s->used; /* a damaged state may hold anything */
    s->end &= INT64_MAX;
    if (now < s->end) { /* this window, or asks that are late; further back than the window before
                           it, the clock has stepped back */
        if (s->end - now - WEIR__LATE_MAX <= 0 ||
            (s->end - now - WEIR__LATE_MAX) / 2 <= plan->limit.period)
            return false;
        s->end = window_end(plan, now);
        return true;
    }
    int64_t passed = (int64_t)weir__divide((uint64_t)(now - s->end), &plan->by_period) + 1;
    if (s->used <= count || weir__windows_in(plan, s->used + count - 1) <=
                                passed) { /* nothing is promised to the window of now */
        s->used = 0;
        s->end = window_end(plan, now);
    } else {
        s->used -= passed * count;
        s->end = add_time(s->end, (weir__u128)(uint64_t)passed * (uint64_t)plan->limit.period);
    }
    return false;
}

static weir_time fresh_at(const struct weir_plan *plan, const struct state *s)
{
    if (s->used <= plan->limit.count)
        return s->used <= 0 ? 0 : s->end;
    return add_time(s->end, (weir__u128)(uint64_t)weir__windows_in(plan, s->used - 1) *
                                (uint64_t)plan->limit.period);
}

static void describe(const struct weir_plan *plan, const struct state *s, weir_time now,
                     struct weir_decision *d)
{
    weir_time fresh = fresh_at(plan, s);
    d->remaining = s->used >= plan->limit.count ? 0 : plan->limit.count - s->used;
    d->reset = fresh > now ? fresh - now : 0;
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct state s = *(struct state *)state;
    if (roll(plan, &s, ask->now) && take)
        *(struct state *)state = s;
    if (ask->cost > plan->limit.count) {
        describe(plan, &s, ask->now, d);
        return weir__refuse(d, WEIR_NEVER);
    }
    int64_t before, ahead = weir__window_find(plan, s.used, ask->cost, &before);
    weir_time wait = 0;
    if (ahead > 0)
        wait = add_time(s.end - ask->now,
                        (weir__u128)(uint64_t)(ahead - 1) * (uint64_t)plan->limit.period);
    if (wait > ask->wait_max || before > USED_MAX - ask->cost) {
        describe(plan, &s, ask->now, d);
        return weir__refuse(d, wait > ask->wait_max ? wait - ask->wait_max : plan->limit.period);
    }
    s.used = before + ask->cost;
    describe(plan, &s, ask->now, d);
    if (take && ask->cost > 0)
        *(struct state *)state = s;
    return weir__grant(d, wait);
}

static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct state *s = state;
    roll(plan, s, now);
    weir__i128 used = (weir__i128)s->used - units;
    s->used = used < 0 ? 0 : used > USED_MAX ? USED_MAX : (int64_t)used;
}

/* The units used in this window stay used, in the window of the new plan, as far as it counts; so
 * do those promised to each of the next. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct state *s = to;
    *s = *(const struct state *)from;
    weir_time begun = (s->end & INT64_MAX) - old_plan->limit.period;
    now = now > begun ? now : begun; /* a change does not move a key back in time */
    roll(old_plan, s, now);
    int64_t full = s->used > old_plan->limit.count ? (s->used - 1) / old_plan->limit.count
                                                   : 0; /* windows before the last that holds any */
    int64_t rest = s->used - full * old_plan->limit.count, count = new_plan->limit.count;
    s->used = full > USED_MAX / count - 1 ? USED_MAX : full * count + (rest < count ? rest : count);
    if (new_plan->limit.period != old_plan->limit.period ||
        new_plan->limit.align_first != old_plan->limit.align_first)
        s->end = s->used > 0 ? window_end(new_plan, now) : 0;
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    struct state s = *(const struct state *)state;
    s.end &= INT64_MAX;
    return fresh_at(plan, &s);
}

const struct weir__algo weir__fixed_window = {
    .name = "fixed-window",
    .summary = "so many per period, counted anew each period: simplest, up to twice the limit "
               "across an edge",
    .prepare = prepare,
    .step = step,
    .give = give,
    .change = change,
    .idle_at = idle_at,
};
