/* window.h -- counting in windows, for fixed-window and calendar.
 *
 *     0  int64  end    of the window that `used` is about
 *     8  int64  used   units taken in it; more than count: the rest is promised to the windows that
 *                      follow
 *     bound     count in a window, and so up to 2 * count in a short time that lies across an edge
 *
 * An ask that can wait is promised the first later window with room for all of it.  Nobody
 * overtakes a promise, and room that it skipped stays unused even if it is given back.
 *
 * The algorithm says where windows begin and end, in a row of functions.  The row is a constant
 * where it is used, so nothing is called through a pointer.
 */
#ifndef WEIR_ALGO_WINDOW_H
#define WEIR_ALGO_WINDOW_H

#include "algo/algo.h"

#define WEIR__WINDOW_USED_MAX ((int64_t)1 << 61)
#define WEIR__WINDOW          inline __attribute__((always_inline))

struct weir__window_state {
    weir_time end;
    int64_t used;
};

struct weir__edges {
    weir_time (*longest)(const struct weir_plan *plan); /* of a window */
    /* Start of the window that ends then. */
    weir_time (*start)(const struct weir_plan *plan, weir_time end);
    weir_time (*end)(const struct weir_plan *plan, weir_time now); /* of the window of `now` */
    weir_time (*end_after)(const struct weir_plan *plan, weir_time end, int64_t windows);
    int64_t (*passed)(const struct weir_plan *plan, weir_time end, weir_time now); /* windows */
    bool (*same)(const struct weir_plan *a, const struct weir_plan *b); /* the same edges */
};

static inline int weir__window_prepare(struct weir_plan *plan, struct weir_error *error)
{
    if (plan->limit.count > WEIR__WINDOW_USED_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "a window cannot count that far: count must be at most 2^61");
    plan->most = plan->limit.count;
    plan->by_count = weir__divisor_make((uint64_t)plan->limit.count);
    plan->packs = false;
    return WEIR_OK;
}

/* Whole windows filled by these units. */
static inline int64_t weir__windows_in(const struct weir_plan *plan, int64_t units)
{
    return (int64_t)weir__divide((uint64_t)units, &plan->by_count);
}

/* The window of an ask: the first, counted from the present one, with room for all of it; and the
 * units used up in it before. */
static inline int64_t weir__window_find(const struct weir_plan *plan, int64_t used, int64_t cost,
                                        int64_t *before)
{
    int64_t count = plan->limit.count;

    *before = used;
    if (used <= count - cost)
        return 0;
    int64_t full = weir__windows_in(plan, used);
    if (cost == 0) /* fits in the very last promised window */
        return weir__windows_in(plan, used - 1);
    if (used - full * count <= count - cost)
        return full;
    *before = (full + 1) * count;
    return full + 1;
}

/* Makes the state that of the window *now lies in, which becomes the present if the asker was
 * stopped.  True if the clock has stepped back: then what was used counts in this window. */
static WEIR__WINDOW bool weir__window_roll(const struct weir__edges *edges,
                                           const struct weir_plan *plan,
                                           struct weir__window_state *s, weir_time *at)
{
    int64_t count = plan->limit.count, passed;
    weir_time now = *at;

    s->used = s->used < 0                       ? 0 /* a damaged state may hold anything */
              : s->used > WEIR__WINDOW_USED_MAX ? WEIR__WINDOW_USED_MAX
                                                : s->used;
    s->end &= INT64_MAX;
    /* This window, or a late ask; from before the last window, the asker was stopped, or the clock
     * has stepped back. */
    if (now < s->end) {
        weir_time early = s->end - now - WEIR__LATE_MAX, longest = edges->longest(plan);
        if (__builtin_expect(early <= longest || early - longest <= longest, 1))
            return false;
        now = weir__moment(plan->clock, s->end - longest, now);
        if (now == *at) {
            s->end = edges->end(plan, now);
            return true;
        }
        *at = now;
        if (now < s->end)
            return false;
    }
    if (s->used <= count || weir__windows_in(plan, s->used + count - 1) <=
                                (passed = edges->passed(plan, s->end, now))) {
        s->used = 0; /* nothing is promised to this window or later */
        s->end = edges->end(plan, now);
    } else {
        s->used -= passed * count;
        s->end = edges->end_after(plan, s->end, passed);
    }
    return false;
}

static WEIR__WINDOW weir_time weir__window_idle_at(const struct weir__edges *edges,
                                                   const struct weir_plan *plan,
                                                   const struct weir__window_state *s)
{
    if (s->used <= plan->limit.count)
        return s->used <= 0 ? 0 : s->end & INT64_MAX;
    return edges->end_after(plan, s->end & INT64_MAX, weir__windows_in(plan, s->used - 1));
}

static WEIR__WINDOW void weir__window_describe(const struct weir__edges *edges,
                                               const struct weir_plan *plan,
                                               const struct weir__window_state *s, weir_time now,
                                               struct weir_decision *d)
{
    weir_time fresh = weir__window_idle_at(edges, plan, s);

    d->remaining = s->used >= plan->limit.count ? 0 : plan->limit.count - s->used;
    d->reset = fresh > now ? fresh - now : 0;
}

static WEIR__WINDOW bool weir__window_step(const struct weir__edges *edges,
                                           const struct weir_plan *plan, void *state,
                                           const struct weir_ask *ask, bool take,
                                           struct weir_decision *d)
{
    struct weir__window_state s = *(struct weir__window_state *)state;
    weir_time now = ask->now;

    if (weir__window_roll(edges, plan, &s, &now) && take)
        *(struct weir__window_state *)state = s;
    if (ask->cost > plan->limit.count) {
        weir__window_describe(edges, plan, &s, now, d);
        return weir__refuse(d, WEIR_NEVER);
    }
    int64_t before, ahead = weir__window_find(plan, s.used, ask->cost, &before);
    weir_time wait = ahead > 0 ? edges->end_after(plan, s.end, ahead - 1) - now : 0;
    if (wait > ask->wait_max || before > WEIR__WINDOW_USED_MAX - ask->cost) {
        weir__window_describe(edges, plan, &s, now, d);
        return weir__refuse(d, wait > ask->wait_max ? wait - ask->wait_max : s.end - now);
    }
    s.used = before + ask->cost;
    weir__window_describe(edges, plan, &s, now, d);
    if (take && ask->cost > 0)
        *(struct weir__window_state *)state = s;
    return weir__grant(d, wait);
}

static WEIR__WINDOW void weir__window_give(const struct weir__edges *edges,
                                           const struct weir_plan *plan,
                                           struct weir__window_state *s, int64_t units,
                                           weir_time now)
{
    weir__window_roll(edges, plan, s, &now);
    weir__i128 used = (weir__i128)s->used - units;
    s->used = used < 0 ? 0 : used > WEIR__WINDOW_USED_MAX ? WEIR__WINDOW_USED_MAX : (int64_t)used;
    if (s->used == 0 && plan->limit.align_first) /* only an ask begins a window */
        s->end = 0;
}

/* The units of earlier windows are back. */
static WEIR__WINDOW void weir__window_give_unused(const struct weir__edges *edges,
                                                  const struct weir_plan *plan,
                                                  struct weir__window_state *s,
                                                  const struct weir__unused *unused, weir_time now)
{
    struct weir__window_state rolled = *s;
    weir_time at = now;

    weir__window_roll(edges, plan, &rolled, &at);
    if (unused->turn >= edges->start(plan, rolled.end))
        weir__window_give(edges, plan, s, unused->units, now);
}

/* Units used in this window count in the new plan's window, up to its limit; so do those promised
 * to each of the next. */
static WEIR__WINDOW void weir__window_change(const struct weir__edges *edges,
                                             const struct weir_plan *old_plan,
                                             const struct weir_plan *new_plan,
                                             struct weir__window_state *s, weir_time now)
{
    weir_time begun = edges->start(old_plan, s->end & INT64_MAX);
    int64_t old_count = old_plan->limit.count, count = new_plan->limit.count;

    now = now > begun ? now : begun; /* a change does not move a key back in time */
    weir__window_roll(edges, old_plan, s, &now);
    int64_t full = s->used > old_count ? (s->used - 1) / old_count : 0; /* before the last one */
    int64_t rest = s->used - full * old_count;
    s->used = full > WEIR__WINDOW_USED_MAX / count - 1
                  ? WEIR__WINDOW_USED_MAX
                  : full * count + (rest < count ? rest : count);
    if (s->used == 0) /* only an ask begins a window */
        s->end = 0;
    else if (!edges->same(old_plan, new_plan))
        s->end = edges->end(new_plan, now);
}

#endif
