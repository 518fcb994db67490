/* algo.h -- an algorithm: a row of five functions over a plan and a state.
 *
 * A state is plain bytes, and all zeros is a fresh one.  Its first eight bytes are a time, never
 * negative: a table keeps the top bit for itself.  The functions must cope with any bytes, because
 * a state may come from a damaged file.
 */
#ifndef WEIR_ALGO_ALGO_H
#define WEIR_ALGO_ALGO_H

#include "base/base.h"

#define WEIR__STATE_SMALL ((size_t)16)

/* An ask that is late by no more than this was overtaken; by more, it was held up on its way, or
 * the clock has stepped back: weir__moment. */
#define WEIR__LATE_MAX WEIR_SECOND

/* Division by a number known when the plan is made: a multiplication and a correction instead of a
 * slow division. */
struct weir__divisor {
    uint64_t by;
    /* floor(2^64 / by), so the product's upper half is the quotient or one less. */
    uint64_t reciprocal;
};

static inline struct weir__divisor weir__divisor_make(uint64_t by)
{
    bool exact = UINT64_MAX % by == by - 1;

    return (struct weir__divisor){ .by = by,
                                   .reciprocal = by == 1 ? UINT64_MAX : UINT64_MAX / by + exact };
}

static inline uint64_t weir__divide(uint64_t n, const struct weir__divisor *d)
{
    __asm__(""
            : "+r"(n)); /* a number that gcc 12 knows to be positive it would multiply with five
                           instructions instead of one */
    uint64_t q = (uint64_t)((weir__u128)n * d->reciprocal >> 64);
    return q + (n - q * d->by >= d->by);
}

static inline uint64_t weir__divide_up(uint64_t n, const struct weir__divisor *d)
{
    uint64_t q = weir__divide(n, d);

    return q + (q * d->by != n);
}

struct weir__algo;
struct weir__zone;

/* Rates are exact: a unit costs period/count ns, kept as the fraction price/scale in lowest terms.
 * A key's debt is counted in parts of 1/scale ns: one unit is `price` parts, one ns is `scale`
 * parts, and nothing is ever rounded from ask to ask.  Where the fraction is too fine for the state
 * (999999/d), the price is rounded up once, by about a billionth at most: weir__price_fit. */
struct weir_plan {
    const struct weir__algo *algo;
    struct weir_limit limit; /* as written, defaults filled in */
    int64_t most;            /* most units that can pass at once after a rest: decision.limit */
    int64_t price;           /* parts a unit costs */
    int64_t capacity;        /* parts a key may owe: most * price */
    struct weir__divisor by_price, by_scale;
    size_t state_size;
    bool packs; /* a meter whose state fits in one word: weir__pack */

    /* For one algorithm each.  A few more words do not matter: a plan is made once. */
    int64_t credit_free; /* leaky-bucket: the debt, in parts, above which an ask waits its turn */
    struct weir__divisor by_period, by_count; /* fixed-window; calendar uses by_count */
    struct weir__divisor by_bucket, by_ring;  /* sliding-window */
    int64_t ring;                             /* sliding-window: number of counters */
    int64_t head_max;                         /* sliding-window: the last bucket there can be */
    int stamp_size;                           /* sliding-log: bytes of a time stamp */
    const unsigned char *nodes; /* sliding-log: the slab that long ones lie in; NULL: flat */
    uint64_t nodes_bytes;
    weir_time heat_warm, heat_range; /* warm-up: flat and sloping part of its trapezoid */
    const struct weir__zone *zone;   /* calendar: lives as long as the process */
    /* calendar: real time minus the asks' time, atomic; NULL: they are the same */
    const int64_t *real_ahead;
    const struct weir_clock *clock; /* of the table that the states are in; NULL: in none */
};

#define WEIR__BUCKETS_DEFAULT 10 /* sliding-window */
#define WEIR__COLD_DEFAULT    3  /* warm-up */

/* Units taken for use at `turn` and not used, beside `kept` of the same ask that were. */
struct weir__unused {
    int64_t units, kept;
    weir_time turn;
};

struct weir__algo {
    const char *name;
    const char *summary;
    bool borrows; /* an ask may cost more than `most`: those after it wait */
    bool fills;   /* a fresh key has nothing, and weir_give fills it: no limit by itself */
    /* Checks the limit and fills in its own part; the common part is there already. */
    int (*prepare)(struct weir_plan *plan, struct weir_error *error);
    /* Fills in the decision; changes the state only if `take`, and then only if granted (or the
     * clock has stepped back). cost >= 0, now >= 0. */
    bool (*step)(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d);
    /* Gives back `units`, or charges them without asking if negative. */
    void (*give)(const struct weir_plan *plan, void *state, int64_t units, weir_time now);
    /* Gives back what time has not given back by itself: more would mint units. */
    void (*give_unused)(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now);
    /* `from` under the old plan becomes `to` under the new one; `to` is zeroed. */
    void (*change)(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now);
    weir_time (*idle_at)(const struct weir_plan *plan, const void *state);
};

extern const struct weir__algo weir__fixed_window, weir__sliding_window, weir__sliding_log,
    weir__leaky_bucket, weir__token_bucket, weir__gcra, weir__smooth, weir__warm_up, weir__calendar,
    weir__purse;

#define WEIR__PRICE_LEAST 1000000000 /* of a rounded one, so that little is lost */

uint64_t weir__common_divisor(uint64_t a, uint64_t b); /* the greatest */

/* A coarser fraction, if its scale is above `scale_max`.  False: too coarse. */
bool weir__price_fit(struct weir_plan *plan, uint64_t scale_max);

/* In the caller's memory. */
int weir__plan_make(struct weir_plan *plan, const struct weir_limit *limit,
                    struct weir_error *error);
/* Whether a key under it may be kept in Redis, where each ask reads and writes all of its state. */
#define WEIR__REDIS_STATE_MAX ((size_t)1 << 18)
int weir__plan_check_redis(const struct weir_plan *plan, struct weir_error *error);
/* For people: without defaults. */
struct weir_limit weir__plan_limit_named(const struct weir_plan *plan);

/* limit.c -- the algorithm that the limit names or implies */
const char *weir__limit_algorithm(const struct weir_limit *limit);
const char *weir__no_choice(void); /* said if the algorithm is not one to choose */
bool weir__limit_equal(const struct weir_limit *a, const struct weir_limit *b);

/* Those of weir_algorithms(), and behind them those that nobody chooses: purse. */
int weir__algo_index(const char *name);               /* its place, or -1 */
const struct weir__algo *weir__algo_at(size_t index); /* NULL: there are no more */

/* The real time at a moment of an axis that it is `ahead` of. */
static inline weir_time weir__real_at(weir_time at, int64_t ahead)
{
    weir_time real;

    if (__builtin_add_overflow(at, ahead, &real))
        return ahead < 0 ? 0 : INT64_MAX;
    return real < 0 ? 0 : real;
}

/* calendar.c -- the length of the calendar window that `now` lies in, and where it starts (the
 * first ones before 1970, and so before 0). */
weir_time weir__calendar_window(const struct weir_plan *plan, weir_time now, weir_time *start);
weir_time weir__calendar_longest(const struct weir_plan *plan); /* that such a window can be */
const char *weir__calendar_word(int32_t calendar); /* "day", "week" or "month"; else NULL */
/* Whether algorithm, period, calendar and zone go together. */
int weir__calendar_check(const struct weir_limit *limit, const char *algorithm,
                         struct weir_error *error);

/* sliding-window.c, sliding-log.c -- gives back units that were taken at `at`, and no others; the
 * number of them that was there.  The log's state is flat. */
int64_t weir__buckets_return(const struct weir_plan *plan, void *state, int64_t units,
                             weir_time at);
int64_t weir__log_return(const struct weir_plan *plan, void *state, int64_t units, weir_time at);

/* sliding-window.c -- the units that count as of now, and when none will; others may be writing the
 * state. */
int64_t weir__buckets_weigh(const struct weir_plan *plan, const void *state, weir_time now,
                            weir_time *idle_at);

/* The time of an ask at `now` on a key that has seen a later one.  If a table's clock bears the key
 * out, the asker was stopped after it had read the clock, and its ask counts as of the present;
 * else the clock that the callers go by has stepped back, and time goes on from `now`. */
weir_time weir__moment(const struct weir_clock *clock, weir_time seen, weir_time now);

/* For an ask with negative members: the answer makes sense all the same. */
bool weir__step_mended(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
                       bool take, struct weir_decision *d);

/* A peek at a key whose clock has stepped back: the `used` units leave together at `leave`, and
 * units taken then leave at `later`. */
bool weir__peek_stepped(const struct weir_plan *plan, const struct weir_ask *ask, int64_t used,
                        weir_time leave, weir_time later, struct weir_decision *d);

/* Every decision begins with this; the algorithm fills in the rest. */
static inline void weir__decision_begin(const struct weir_plan *plan, struct weir_decision *d)
{
    d->limit = plan->most;
    d->item = 0;
    d->wait = d->retry = 0;
}

/* The step behind weir_step and the table. */
static inline bool weir__step(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
                              bool take, struct weir_decision *d)
{
    if (__builtin_expect((ask->cost | ask->now | ask->wait_max) < 0, 0))
        return weir__step_mended(plan, state, ask, take, d);
    weir__decision_begin(plan, d);
    return plan->algo->step(plan, state, ask, take, d);
}

/* How every step ends. */
static inline bool weir__refuse_until(struct weir_decision *d, weir_time retry)
{
    d->allowed = false;
    d->reason = WEIR_LIMITED;
    d->retry = retry;
    return false;
}

static inline bool weir__refuse(struct weir_decision *d, weir_time retry)
{
    weir__refuse_until(d, retry);
    d->reason = retry == WEIR_NEVER ? WEIR_TOO_BIG : WEIR_LIMITED;
    return false;
}

static inline bool weir__grant(struct weir_decision *d, weir_time wait)
{
    d->allowed = true;
    d->reason = WEIR_GRANTED;
    d->wait = wait;
    return true;
}

#endif
