/* sliding-window.c -- a count in the last period, kept in buckets.
 *
 * A ring of counters, one for each part of the period.  By default the bucket that has partly left
 * the period counts in full, so no interval of one period, wherever it begins, admits more than the
 * limit; the loss is at most one bucket's width of time before capacity returns.  With edge=loose
 * that bucket is forgotten at once: Sentinel's LeapArray, which holds the limit only over period *
 * (1 - 1/buckets) and admits up to twice the limit in a period.
 *
 *     0  int64   seen     the latest moment this key has seen
 *     8  int64   head     index of the newest bucket: its time / width; ahead of `seen` if asks
 *                         were promised a later turn
 *    16  uint32  counts[buckets + 1], the bucket of index i at i modulo their number
 *     bound      count in any interval of one period (loose: 2 * count)
 *
 * In a table a long ring is worked on in a block that others may be reading as what it was before
 * (part.c): so all words are written whole.
 *
 * Where it deviates from Sentinel: check and count are one step; a late ask is counted, not lost;
 * an ask larger than the limit is "never".
 */
#include "algo/algo.h"
#include "base/atomic.h"

#define BUCKETS_MAX 1000000

struct state {
    weir_time seen;
    int64_t head;
    uint32_t counts[];
};

static weir_time width(const struct weir_plan *plan)
{
    return (weir_time)plan->by_bucket.by;
}

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    struct weir_limit *l = &plan->limit;

    l->buckets = l->buckets ? l->buckets : WEIR__BUCKETS_DEFAULT;
    if (l->buckets < 1 || l->buckets > BUCKETS_MAX || l->buckets > l->period)
        return weir__fail(
            error, WEIR_INVALID,
            "buckets must be from 1 to %d, and no more than the period has nanoseconds",
            BUCKETS_MAX);
    if (l->count > UINT32_MAX)
        return weir__fail(
            error, WEIR_INVALID,
            "a sliding window counts to 4294967295; take a shorter period or another algorithm");
    if (l->period > INT64_MAX / 4)
        return weir__fail(error, WEIR_INVALID, "the period is too long");
    plan->most = l->count;
    plan->by_bucket = weir__divisor_make((uint64_t)((l->period + l->buckets - 1) / l->buckets));
    plan->ring = (int64_t)l->buckets + 1;
    plan->head_max = INT64_MAX / width(plan) - plan->ring;
    plan->by_ring = weir__divisor_make((uint64_t)plan->ring);
    plan->state_size =
        (sizeof(struct state) + (size_t)plan->ring * sizeof(uint32_t) + 7) & ~(size_t)7;
    plan->packs = false;
    return WEIR_OK;
}

static int64_t bucket_of(const struct weir_plan *plan, weir_time t)
{
    return (int64_t)weir__divide((uint64_t)t, &plan->by_bucket);
}

static uint32_t *counter(const struct weir_plan *plan, const struct state *s, int64_t bucket)
{
    int64_t place = bucket - (int64_t)weir__divide((uint64_t)bucket, &plan->by_ring) * plan->ring;

    return (uint32_t *)&s->counts[place];
}

/* The oldest bucket that still counts at t. */
static int64_t tail_at(const struct weir_plan *plan, weir_time t)
{
    int64_t tail = plan->limit.loose        ? bucket_of(plan, t) - plan->limit.buckets + 1
                   : t < plan->limit.period ? 0
                                            : bucket_of(plan, t - plan->limit.period);

    return tail < 0 ? 0 : tail;
}

/* When a bucket stops counting. */
static weir_time gone_at(const struct weir_plan *plan, int64_t bucket)
{
    weir__i128 t = plan->limit.loose ? ((weir__i128)bucket + plan->limit.buckets) * width(plan)
                                     : ((weir__i128)bucket + 1) * width(plan) + plan->limit.period;

    return t > INT64_MAX ? INT64_MAX : (weir_time)t;
}

/* The head, within bounds: a damaged state may hold anything. */
static int64_t head_of(const struct weir_plan *plan, const struct state *s)
{
    return s->head < 0 ? 0 : s->head > plan->head_max ? plan->head_max : s->head;
}

/* Units in the buckets from `tail` to the head: all of them less those that have left. */
static int64_t sum_from(const struct weir_plan *plan, const struct state *s, int64_t tail)
{
    int64_t head = head_of(plan, s), oldest = head - plan->ring + 1, sum = 0;

    if (tail > head)
        return 0;
    for (int64_t i = 0; i < plan->ring; i++)
        sum += s->counts[i];
    for (int64_t b = oldest < 0 ? 0 : oldest; b < tail; b++)
        sum -= *counter(plan, s, b);
    return sum;
}

/* The newest bucket that holds anything; -1 if none does. */
static int64_t newest_used(const struct weir_plan *plan, const struct state *s)
{
    int64_t head = head_of(plan, s);

    for (int64_t b = head; b >= 0 && b > head - plan->ring; b--)
        if (*counter(plan, s, b) > 0)
            return b;
    return -1;
}

static void clear(const struct weir_plan *plan, struct state *s)
{
    weir__zero_words(s->counts, plan->state_size - sizeof(*s));
}

/* Moves the ring's head on to `bucket`, and clears the buckets it passes. */
static void advance(const struct weir_plan *plan, struct state *s, int64_t bucket)
{
    int64_t head = head_of(plan, s);

    if (bucket - head >= plan->ring)
        clear(plan, s);
    else
        for (int64_t b = head + 1; b <= bucket; b++)
            weir__set(counter(plan, s, b), 0);
    weir__set(&s->head, bucket > head ? bucket : head);
}

static void add(uint32_t *count, int64_t units)
{
    int64_t sum = units > UINT32_MAX - (int64_t)*count ? UINT32_MAX : *count + units;

    weir__set(count, (uint32_t)sum);
}

/* An ask was promised a later turn.  The ring has moved on to that turn, so until then the limit
 * counts as used up: there was no room.  Nobody overtakes, and a promise given back frees its units
 * at its turn, not before. */
static bool is_promised(const struct weir_plan *plan, const struct state *s, weir_time now)
{
    return head_of(plan, s) * width(plan) > now;
}

static int64_t live_at(const struct weir_plan *plan, const struct state *s, weir_time now)
{
    int64_t sum = sum_from(plan, s, tail_at(plan, now));

    return is_promised(plan, s, now) && sum < plan->limit.count ? plan->limit.count : sum;
}

/* When nothing counts any more. */
static weir_time fresh_at(const struct weir_plan *plan, const struct state *s)
{
    int64_t newest = newest_used(plan, s);
    weir_time gone = newest < 0 ? 0 : gone_at(plan, newest), turn = head_of(plan, s) * width(plan);

    return is_promised(plan, s, s->seen & INT64_MAX) && turn > gone ? turn : gone;
}

/* The clock has stepped back: everything that counts is as if it had been taken now. */
static void step_back(const struct weir_plan *plan, struct state *s, weir_time now)
{
    int64_t total = live_at(plan, s, s->seen);

    clear(plan, s);
    weir__set(&s->head, bucket_of(plan, now));
    weir__set(&s->seen, now);
    add(counter(plan, s, s->head), total);
}

/* The earliest moment, not before `from`, at which `cost` more units fit; *live: the units that
 * count at `from`. */
static weir_time find_turn(const struct weir_plan *plan, const struct state *s, weir_time from,
                           int64_t cost, int64_t *live)
{
    int64_t tail = tail_at(plan, from), sum = sum_from(plan, s, tail);
    weir_time turn = from;

    *live = sum;
    for (int64_t head = head_of(plan, s); sum > plan->limit.count - cost && tail <= head; tail++) {
        uint32_t leaving = tail > head - plan->ring ? *counter(plan, s, tail) : 0;
        sum -= leaving;
        if (leaving > 0)
            turn = gone_at(plan, tail);
    }
    return turn;
}

static void describe(const struct weir_plan *plan, const struct state *s, weir_time now,
                     struct weir_decision *d)
{
    int64_t live = live_at(plan, s, now);
    weir_time fresh = fresh_at(plan, s);

    d->remaining = live >= plan->limit.count ? 0 : plan->limit.count - live;
    d->reset = fresh > now ? fresh - now : 0;
}

/* The time of an ask; of a late one, the latest seen.  Before that: the clock has stepped back. */
static weir_time moment(const struct weir_plan *plan, const struct state *s, weir_time now)
{
    weir_time seen = s->seen & INT64_MAX;

    if (seen - now > WEIR__LATE_MAX)
        now = weir__moment(plan->clock, seen, now);
    return now < seen && seen - now <= WEIR__LATE_MAX ? seen : now;
}

/* Without moving anything: all that counts would leave together. */
static bool peek_stepped(const struct weir_plan *plan, const struct state *s,
                         const struct weir_ask *ask, struct weir_decision *d)
{
    weir_time leave = gone_at(plan, bucket_of(plan, ask->now));

    return weir__peek_stepped(plan, ask, live_at(plan, s, s->seen & INT64_MAX), leave,
                              gone_at(plan, bucket_of(plan, leave)), d);
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct state *s = state;
    weir_time now = moment(plan, s, ask->now);

    if (now < (s->seen & INT64_MAX)) {
        if (!take)
            return peek_stepped(plan, s, ask, d);
        weir__set(&s->seen, s->seen & INT64_MAX);
        step_back(plan, s, now);
    }
    if (ask->cost > plan->limit.count) {
        describe(plan, s, now, d);
        return weir__refuse(d, WEIR_NEVER);
    }
    int64_t live;
    weir_time turn =
        find_turn(plan, s, weir__int_most(now, head_of(plan, s) * width(plan)), ask->cost, &live);
    if (turn - now > ask->wait_max) {
        describe(plan, s, now, d);
        return weir__refuse(d, turn - now - ask->wait_max);
    }
    if (take && ask->cost > 0) {
        advance(plan, s, bucket_of(plan, turn));
        weir__set(&s->seen, now);
        add(counter(plan, s, s->head), ask->cost);
        if (__builtin_expect(turn == now, 1)) { /* what describe would find out */
            d->remaining = plan->limit.count - live - ask->cost;
            d->reset = gone_at(plan, s->head) - now;
        } else {
            describe(plan, s, now, d);
        }
    } else {
        describe(plan, s, now, d);
        d->remaining = turn == now && d->remaining > ask->cost ? d->remaining - ask->cost : 0;
        if (ask->cost > 0)
            d->reset = gone_at(plan, bucket_of(plan, turn)) - now;
    }
    return weir__grant(d, turn - now);
}

/* Gives back from the newest bucket on, which was the last to be filled; charges to the newest. */
static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct state *s = state;

    weir__set(&s->seen, s->seen & INT64_MAX);
    now = moment(plan, s, now);
    if (now < s->seen)
        step_back(plan, s, now);
    if (units < 0) {
        weir__set(&s->seen, now);
        advance(plan, s, bucket_of(plan, s->seen));
        add(counter(plan, s, s->head), units == INT64_MIN ? INT64_MAX : -units);
        return;
    }
    int64_t head = head_of(plan, s);
    for (int64_t b = head; units > 0 && b >= 0 && b > head - plan->ring; b--) {
        uint32_t *count = counter(plan, s, b);
        uint32_t back = *count > units ? (uint32_t)units : *count;
        weir__set(count, *count - back);
        units -= back;
    }
}

int64_t weir__buckets_return(const struct weir_plan *plan, void *state, int64_t units, weir_time at)
{
    struct state *s = state;
    int64_t head = head_of(plan, s), bucket = bucket_of(plan, at);

    if (bucket > head || bucket <= head - plan->ring)
        return 0;
    uint32_t *count = counter(plan, s, bucket);
    uint32_t back = *count > units ? (uint32_t)units : *count;
    weir__set(count, *count - back);
    return back;
}

/* An ask that was overtaken is counted a little later than its turn.  Behind a promise only the
 * turn's own bucket will do: the later ones may be of others who wait. */
static void give_unused(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now)
{
    const struct state *s = state;
    weir_time turn = unused->turn,
              late = is_promised(plan, s, s->seen & INT64_MAX) ? 0 : WEIR__LATE_MAX;
    int64_t units = unused->units, first = bucket_of(plan, turn), head = head_of(plan, s),
            last = bucket_of(plan, turn > INT64_MAX - late ? turn : turn + late);

    if (gone_at(plan, first) <= weir__int_most(now, s->seen & INT64_MAX))
        return;
    for (int64_t b = first; units > 0 && b <= last && b <= head; b++)
        units -= weir__buckets_return(plan, state, units, b * width(plan));
}

int64_t weir__buckets_weigh(const struct weir_plan *plan, const void *state, weir_time now,
                            weir_time *idle_at)
{
    const struct state *s = state;
    const struct state first = { .seen = weir__get(&s->seen) & INT64_MAX,
                                 .head = weir__get(&s->head) };
    int64_t head = head_of(plan, &first), tail = tail_at(plan, weir__int_most(now, first.seen)),
            used = 0;
    bool promised = is_promised(plan, &first, now);

    *idle_at = promised ? head * width(plan) : 0;
    for (int64_t b = weir__int_most(tail, head - plan->ring + 1); b <= head; b++) {
        uint32_t units = weir__get(counter(plan, s, b));
        used += units;
        *idle_at = units > 0 ? weir__int_most(gone_at(plan, b), *idle_at) : *idle_at;
    }
    return promised && used < plan->limit.count ? plan->limit.count : used;
}

static void add_at(const struct weir_plan *plan, struct state *s, weir_time t, int64_t units)
{
    advance(plan, s, bucket_of(plan, t));
    add(counter(plan, s, s->head), units);
}

/* Each bucket's units go to the new bucket in which the old one ended.  Units that a promise pushed
 * out of the ring are known by their number and by the last moment at which they can have been
 * taken. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    const struct state *old = from;
    struct state *s = to;
    weir_time seen = weir__int_most(old->seen & INT64_MAX, now);
    int64_t head = head_of(old_plan, old), tail = tail_at(old_plan, seen),
            oldest = head - old_plan->ring + 1, past = 0;

    tail = tail > oldest ? tail : oldest;
    for (int64_t b = tail; b <= head && b * width(old_plan) <= seen; b++)
        past += b < 0 ? 0 : *counter(old_plan, old, b);
    if (is_promised(old_plan, old, seen) && oldest > 0 && past < old_plan->limit.count)
        add_at(new_plan, s, weir__int_least(seen, oldest * width(old_plan) - 1),
               old_plan->limit.count - past);
    for (int64_t b = tail; b <= head; b++) {
        weir_time started = b * width(old_plan), ended = started + width(old_plan) - 1;
        int64_t units = b < 0 ? 0 : *counter(old_plan, old, b);
        if (units > 0)
            add_at(new_plan, s, weir__int_most(started, ended < seen ? ended : seen), units);
    }
    if (is_promised(old_plan, old, seen))
        advance(new_plan, s, bucket_of(new_plan, head * width(old_plan)));
    weir__set(&s->seen, seen);
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    return fresh_at(plan, state);
}

const struct weir__algo weir__sliding_window = {
    .name = "sliding-window",
    .summary = "a count in the last period, kept in buckets: never more in any period",
    .prepare = prepare,
    .step = step,
    .give = give,
    .give_unused = give_unused,
    .change = change,
    .idle_at = idle_at,
};
