/* sliding-log.c -- a count in the last period, exactly: every admitted instant is kept.
 *
 * A ring of time stamps, one for each unit of the limit, so memory is bounded by it.  All stamps
 * lie within one period, so each is kept in as few bytes as the period needs (5 for a minute, 6 for
 * a day), as the low bytes of its instant, and read back from the newest one.
 *
 *     0  int64   seen     the latest moment this key has seen
 *     8  int64   newest   the newest stamp in full; ahead of `seen` if asks were promised a later
 *                         turn
 *    16  uint32  first    where in the ring the oldest stamp is
 *    20  uint32  used     how many stamps there are
 *    24  stamps  count * 1 .. 8 bytes, little-endian, in ascending order
 *     bound      count in any interval of one period; nothing within that is ever refused
 *
 * A refusal writes nothing: expired stamps are found by binary search, and dropped only when a new
 * one is written.  A long log in a table is a chain instead of a ring (log-chain.c), which costs
 * the same however long it is.
 */
#include <inttypes.h>
#include <string.h>

#include "algo/log-chain.h"

#define STATE_MAX ((int64_t)1 << 30)

struct state {
    struct weir__log_head head;
    unsigned char stamps[];
};

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    const struct weir_limit *l = &plan->limit;
    int size = 1;

    while (size < 8 && l->period >> (8 * size) != 0)
        size++;
    if (l->count > (STATE_MAX - (int64_t)sizeof(struct state)) / size)
        return weir__fail(error, WEIR_INVALID,
                          "a log of %" PRId64 " instants is too long: at most %" PRId64
                          "; sliding-window has no such bound",
                          l->count, (STATE_MAX - (int64_t)sizeof(struct state)) / size);
    plan->most = l->count;
    plan->stamp_size = size;
    plan->state_size = (sizeof(struct state) + (size_t)(l->count * size) + 15) &
                       ~(size_t)7; /* eight bytes can be read at every stamp */
    plan->packs = false;
    return WEIR_OK;
}

/* A state's ring, its numbers within bounds whatever the bytes are. */
struct ring {
    weir_time seen, newest;
    int64_t first, used;
};

static struct ring open_state(const struct weir_plan *plan, const struct state *s)
{
    const struct weir__log_head *h = &s->head;
    int64_t count = plan->limit.count;

    return (struct ring){ h->seen & INT64_MAX, h->newest & INT64_MAX,
                          plan->nodes != NULL || h->first < count ? h->first : 0,
                          h->used > count ? count : h->used };
}

static void close_state(const struct ring *r, struct state *s)
{
    s->head = (struct weir__log_head){ r->seen, r->newest, (uint32_t)r->first, (uint32_t)r->used };
}

/* As a long log in a table. */
static struct weir__log_node *node_of(const struct state *s)
{
    return (struct weir__log_node *)(void *)s;
}

static size_t offset_of(const struct weir_plan *plan, const struct ring *r, int64_t i)
{
    int64_t at = r->first + i;

    return (size_t)((at >= plan->limit.count ? at - plan->limit.count : at) * plan->stamp_size);
}

/* The bits of a stamp. */
static uint64_t mask_of(const struct weir_plan *plan)
{
    return UINT64_MAX >> (64 - 8 * plan->stamp_size);
}

/* The i-th instant, 0 the oldest. */
static weir_time stamp(const struct weir_plan *plan, const struct state *s, const struct ring *r,
                       int64_t i)
{
    uint64_t low;

    if (plan->nodes != NULL)
        return weir__chain_stamp(plan, node_of(s), i);
    memcpy(&low, s->stamps + offset_of(plan, r, i), sizeof(low));
    return r->newest - (weir_time)((((uint64_t)r->newest - low) & mask_of(plan)) & INT64_MAX);
}

static void set_stamp(const struct weir_plan *plan, struct state *s, const struct ring *r,
                      int64_t i, weir_time t)
{
    unsigned char *p = s->stamps + offset_of(plan, r, i);
    uint64_t eight, mask = mask_of(plan);

    memcpy(&eight, p, sizeof(eight));
    eight = (eight & ~mask) | ((uint64_t)t & mask);
    memcpy(p, &eight, sizeof(eight));
}

/* How many stamps are not after `edge`.  Usually few: the search begins with the oldest, in steps
 * that double. */
static int64_t passed(const struct weir_plan *plan, const struct state *s, const struct ring *r,
                      weir_time edge)
{
    int64_t low = 0, high = 1;

    if (plan->nodes != NULL)
        return weir__chain_expired(plan, node_of(s), edge);
    while (high <= r->used && stamp(plan, s, r, high - 1) <= edge) {
        low = high;
        high *= 2;
    }
    high = high <= r->used ? high - 1 : r->used;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (stamp(plan, s, r, middle) <= edge)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many have left the period at t. */
static int64_t expired(const struct weir_plan *plan, const struct state *s, const struct ring *r,
                       weir_time t)
{
    return passed(plan, s, r, t - plan->limit.period);
}

static weir_time gone_at(const struct weir_plan *plan, weir_time instant)
{
    return instant > INT64_MAX - plan->limit.period ? INT64_MAX : instant + plan->limit.period;
}

/* Drops stamps expired at t and appends `units` stamps of t; the oldest make room if there are too
 * many. */
static void append(const struct weir_plan *plan, struct state *s, struct ring *r, weir_time t,
                   int64_t units)
{
    int64_t count = plan->limit.count, drop = expired(plan, s, r, t);

    if (r->used - drop + units > count)
        drop = r->used + units - count;
    if (plan->nodes != NULL) {
        r->newest = t;
        close_state(r, s);
        weir__chain_append(plan, node_of(s), drop, t, units);
        *r = open_state(plan, s);
        return;
    }
    r->first = r->first + drop < count ? r->first + drop : r->first + drop - count;
    r->used -= drop;
    for (int64_t i = 0; i < units; i++)
        set_stamp(plan, s, r, r->used + i, t);
    r->used += units;
    r->newest = t;
    close_state(r, s);
}

/* An ask was promised a later turn.  The stamps that expire before that turn have been dropped, so
 * until then the limit counts as used up: there was no room.  Nobody overtakes, and a promise given
 * back frees its units at its turn, not before. */
static bool is_promised(const struct ring *r, weir_time now)
{
    return r->newest > now;
}

static int64_t live_at(const struct weir_plan *plan, const struct state *s, const struct ring *r,
                       weir_time now)
{
    return is_promised(r, now) ? plan->limit.count : r->used - expired(plan, s, r, now);
}

/* When nothing counts any more. */
static weir_time fresh_at(const struct weir_plan *plan, const struct state *s, const struct ring *r)
{
    weir_time gone = r->used == 0 ? 0 : gone_at(plan, stamp(plan, s, r, r->used - 1));

    return is_promised(r, r->seen) && r->newest > gone ? r->newest : gone;
}

/* The clock has stepped back: everything that counts is as if it had been taken now. */
static void step_back(const struct weir_plan *plan, struct state *s, struct ring *r, weir_time now)
{
    int64_t live = live_at(plan, s, r, r->seen);

    *r = (struct ring){ .seen = now, .newest = now };
    close_state(r, s);
    append(plan, s, r, now, live);
}

static void describe(const struct weir_plan *plan, const struct state *s, const struct ring *r,
                     weir_time now, struct weir_decision *d)
{
    weir_time fresh = fresh_at(plan, s, r);

    d->remaining = plan->limit.count - live_at(plan, s, r, now);
    d->reset = fresh > now ? fresh - now : 0;
}

/* The earliest moment, not before `from`, at which `cost` more units fit. */
static weir_time find_turn(const struct weir_plan *plan, const struct state *s,
                           const struct ring *r, weir_time from, int64_t cost)
{
    int64_t must_go = r->used + cost - plan->limit.count;

    if (must_go <= 0 || must_go <= expired(plan, s, r, from))
        return from;
    return gone_at(plan, stamp(plan, s, r, must_go - 1));
}

/* The time of an ask; of a late one, the latest seen.  Before that: the clock has stepped back. */
static weir_time moment(const struct weir_plan *plan, const struct ring *r, weir_time now)
{
    if (r->seen - now > WEIR__LATE_MAX)
        now = weir__moment(plan->clock, r->seen, now);
    return r->seen - now > WEIR__LATE_MAX ? now : weir__int_most(now, r->seen);
}

/* Without moving anything: all that counts would leave together. */
static bool peek_stepped(const struct weir_plan *plan, const struct state *s, const struct ring *r,
                         const struct weir_ask *ask, struct weir_decision *d)
{
    weir_time leave = gone_at(plan, ask->now);

    return weir__peek_stepped(plan, ask, live_at(plan, s, r, r->seen), leave, gone_at(plan, leave),
                              d);
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct state *s = state;
    struct ring r = open_state(plan, s);
    weir_time now = moment(plan, &r, ask->now);

    if (now < r.seen) {
        if (!take)
            return peek_stepped(plan, s, &r, ask, d);
        step_back(plan, s, &r, now);
    }
    if (ask->cost > plan->limit.count) {
        describe(plan, s, &r, now, d);
        return weir__refuse(d, WEIR_NEVER);
    }
    weir_time turn = find_turn(plan, s, &r, weir__int_most(now, r.newest), ask->cost);
    if (turn - now > ask->wait_max) {
        describe(plan, s, &r, now, d);
        return weir__refuse(d, turn - now - ask->wait_max);
    }
    if (take && ask->cost > 0) {
        r.seen = now;
        append(plan, s, &r, turn, ask->cost);
        describe(plan, s, &r, now, d);
    } else {
        describe(plan, s, &r, now, d);
        d->remaining = turn == now && d->remaining > ask->cost ? d->remaining - ask->cost : 0;
        if (ask->cost > 0)
            d->reset = gone_at(plan, turn) - now;
    }
    return weir__grant(d, turn - now);
}

/* Gives back the newest; charges as of now. */
static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct state *s = state;
    struct ring r = open_state(plan, s);

    now = moment(plan, &r, now);
    if (now < r.seen)
        step_back(plan, s, &r, now);
    if (units < 0) {
        r.seen = now;
        append(plan, s, &r, weir__int_most(r.seen, r.newest),
               units < -plan->limit.count ? plan->limit.count : -units);
        return;
    }
    int64_t left = units > r.used ? 0 : r.used - units;
    weir_time newest = is_promised(&r, r.seen) ? r.newest
                       : left > 0              ? stamp(plan, s, &r, left - 1)
                                               : 0;
    r.newest = newest;
    if (plan->nodes != NULL)
        weir__chain_cut(plan, node_of(s), left);
    r.used = left;
    close_state(&r, s);
}

/* Takes out units stamped `from` to `to`, the oldest first; the number of them. */
static int64_t take_out(const struct weir_plan *plan, struct state *s, int64_t units,
                        weir_time from, weir_time to)
{
    struct ring r = open_state(plan, s);
    int64_t begin = passed(plan, s, &r, from - 1), lot = passed(plan, s, &r, to) - begin;
    int64_t back = units < lot ? units : lot, left = r.used - back;

    if (back <= 0)
        return 0;
    for (int64_t i = begin; i < left; i++)
        set_stamp(plan, s, &r, i, stamp(plan, s, &r, i + back));
    if (left == 0 && !is_promised(&r, r.seen))
        r.newest = 0;
    else if (!is_promised(&r, r.seen))
        r.newest = stamp(plan, s, &r, left - 1);
    r.used = left;
    close_state(&r, s);
    return back;
}

int64_t weir__log_return(const struct weir_plan *plan, void *state, int64_t units, weir_time at)
{
    return take_out(plan, state, units, at, at);
}

/* Those stamped `from` to `to`, if they are the newest and all of one instant: else those of others
 * cannot be told apart. */
static int64_t newest(const struct weir_plan *plan, const struct state *s, weir_time from,
                      weir_time to)
{
    struct ring r = open_state(plan, s);
    int64_t begin = passed(plan, s, &r, from - 1);

    if (begin >= r.used)
        return 0;
    weir_time last = stamp(plan, s, &r, r.used - 1);
    return last <= to && stamp(plan, s, &r, begin) == last ? r.used - begin : 0;
}

/* An ask that was overtaken is stamped a little later than its turn.  Behind a promise only the
 * very stamp will do: those that leave before it are dropped.  Of a chain only the newest can go:
 * if others came since, the ask stands. */
static void give_unused(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now)
{
    struct ring r = open_state(plan, state);
    weir_time turn = unused->turn, late = is_promised(&r, r.seen) ? 0 : WEIR__LATE_MAX,
              to = turn > INT64_MAX - late ? turn : turn + late;

    if (gone_at(plan, turn) <= weir__int_most(now, r.seen))
        return;
    if (plan->nodes != NULL)
        give(plan, state, weir__int_least(unused->units, newest(plan, state, turn, to)), now);
    else
        take_out(plan, state, unused->units, turn, to);
}

static int64_t fewer(const struct weir_plan *a, const struct weir_plan *b)
{
    return a->limit.count < b->limit.count ? a->limit.count : b->limit.count;
}

/* A log that another takes over. */
struct source {
    const struct weir_plan *plan;
    const struct state *s;
    struct ring r;
};

/* Of the instants from `i` to `end`: the first that another plan lets count with the last. */
static int64_t first_kept(const struct source *old, int64_t i, int64_t end,
                          const struct weir_plan *plan)
{
    if (i >= end)
        return end;
    weir_time newest = stamp(old->plan, old->s, &old->r, end - 1);
    int64_t gone = passed(old->plan, old->s, &old->r, newest - plan->limit.period);
    i = i < gone ? gone : i;
    return i < end - plan->limit.count ? end - plan->limit.count : i;
}

/* Appends instants from `i` to `end`, the newest that fit. */
static void take_over(const struct source *old, int64_t i, int64_t end,
                      const struct weir_plan *plan, struct state *s, struct ring *r)
{
    for (i = first_kept(old, i, end, plan); i < end; i++)
        append(plan, s, r, weir__int_most(stamp(old->plan, old->s, &old->r, i), 0), 1);
}

/* The chain stays.  Units that were dropped for a promise have left by its turn, unless the period
 * is longer now: then they count as taken at the turn, as there is no place between instants. */
static void change_chain(const struct weir_plan *old_plan, const struct weir_plan *plan,
                         struct state *s, weir_time now)
{
    struct ring r = open_state(old_plan, s);
    weir_time seen = weir__int_most(now, r.seen);
    int64_t drop = expired(old_plan, s, &r, seen), end = passed(old_plan, s, &r, seen),
            missing = fewer(old_plan, plan) - (end - drop);

    drop = first_kept(&(struct source){ old_plan, s, r }, drop, r.used, plan);
    r.seen = seen;
    close_state(&r, s);
    weir__chain_append(plan, node_of(s), drop, r.newest, 0);
    r = open_state(plan, s);
    if (is_promised(&r, seen) && missing > 0 && plan->limit.period > old_plan->limit.period)
        append(plan, s, &r, r.newest, missing);
}

/* Keeps every instant, or the newest that fit if the new limit is smaller. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct source old = { old_plan, from, open_state(old_plan, from) };
    struct ring after = { 0 };
    weir_time seen = weir__int_most(now, old.r.seen);
    int64_t end = passed(old_plan, from, &old.r, seen), most = fewer(old_plan, new_plan);

    if (old_plan->nodes != NULL && new_plan->nodes != NULL) {
        memcpy(to, from, weir__node_bytes(from));
        change_chain(old_plan, new_plan, to, now);
        return;
    }
    int64_t begin = expired(old_plan, from, &old.r, seen), missing = most - (end - begin);
    weir_time dropped = old.r.newest - old_plan->limit.period; /* the last that a promise dropped */

    if (is_promised(&old.r, seen) && dropped >= 0 && missing > 0)
        append(new_plan, to, &after, weir__int_least(seen, dropped), missing);
    take_over(&old, begin, end, new_plan, to, &after);
    if (is_promised(&old.r, seen)) {
        take_over(&old, end, old.r.used, new_plan, to, &after);
        append(new_plan, to, &after, old.r.newest, 0);
    }
    after.seen = seen;
    close_state(&after, to);
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    struct ring r = open_state(plan, state);

    return fresh_at(plan, state, &r);
}

const struct weir__algo weir__sliding_log = {
    .name = "sliding-log",
    .summary = "a count in the last period, exactly: every admitted instant is kept",
    .prepare = prepare,
    .step = step,
    .give = give,
    .give_unused = give_unused,
    .change = change,
    .idle_at = idle_at,
};
