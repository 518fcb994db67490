/* adaptive.c -- Weir's own controller.  It asks: does more come than can be done?  If so: how many
 * workers are there behind the guard?
 *
 * Start.  The limit doubles, a phase at a time, as long as more permits finish more.
 *
 * Demand.  While no permit is free, asks find none and work ends.  For each end that leaves a full
 * gate as many asks found none as came in the time of one end, so
 *
 *     found none / ends from full  =  demand / capacity at this limit
 *
 * whatever the work is like, and whether those asks are refused or wait in the guard's queue.
 * Below 1 nobody has to be refused for long: the limit rises while anybody is, and nothing is
 * learnt, because results are then as many as asks, whatever the limit.  Around 1 it moves by as
 * many deviations as it is off.  Clearly above 1 permits are scarce.
 *
 * Workers.  While they are scarce, the limit breathes: now and then a phase is a little lower or
 * higher, and a belief about the number of workers learns from the results (adaptive-belief.h).
 *
 *     limit = w + headroom        w: 70 % of the belief is on no more than this
 *
 * The headroom keeps workers busy between an end and the next ask: 2.5 / ln(demand).  Where a
 * waiter is there already, sqrt(w) is enough to show that more permits finish more.
 *
 * Time-outs (over 5 % of a phase) take the headroom; where nothing is answered at all, half of the
 * limit, down to a fifth, and it is back three phases after an outage.  Drops: the most that the
 * backend bore is a roof, which rises slowly while there are none.  A target counts while permits
 * are scarce, if the work alone is not as long: never more than X * target at work, and as long as
 * too many are over it the headroom shrinks, to 40 %.
 *
 * Why not a lowest time and a highest throughput (Vegas, BBR): with varied work the lowest is luck,
 * and when the work becomes slower both are of a backend that is no more.  Why not an average as
 * the base (Gradient): it learns its own queue.
 */
#include "guard/controller.h"

#include <stdio.h>

#include "guard/adaptive-belief.h"
#include "guard/arithmetic.h"

#define BELIEVED  0.7                      /* see above */
#define RESULTS   60.0                     /* in a phase, times the noise */
#define SHORTEST  (100 * WEIR_MILLISECOND) /* phase */
#define LONGEST   (4 * WEIR_SECOND)        /* phase, however few the results */
#define SETTLE    (5 * WEIR_SECOND)        /* at most */
#define MUCH_LOST 0.05

#define CYCLE 4   /* phases; one is lower, one higher ... */
#define CALM  10  /* ... when the number is known well: */
#define SHARP 1.3 /* the middle 60 % of the belief are within this factor */
#define DOWN  0.8 /* deviations of a phase to go down ... */
#define UP    1.5 /* ... and up */
#define DIP   0.2 /* of the limit, at most */

#define FAST  40.0  /* ends from full that are remembered, to see a change ... */
#define SLOW  500.0 /* ... and to know well */
#define MANY  5.0   /* found none for each end: more says no more, and would be remembered long */
#define PRIOR 5.0   /* of both, before anything is seen */
#define LASTS (60 * WEIR_SECOND)
#define PRESS 1.5 /* deviations: more come than go */

#define DOUBLES 1.5 /* demand over capacity at which the start doubles the limit */

struct state {
    struct weir__belief workers;
    double centre;   /* around which the limit breathes; 0: fresh */
    int64_t settled; /* work admitted under the last limit has ended by then */

    /* The phase so far. */
    int64_t span;
    double area, out; /* times of the results; permits out times ns */
    double square;    /* sum of the squared times, ns^2, of those that succeeded ... */
    double good;      /* ... and of their times */
    float ended, lost, dropped, over, entered, refused; /* over: the target */
    float most;                                         /* in flight */

    float limit;              /* in force */
    float full[2], turned[2]; /* ends from full, asks that found none; lately and for longer */
    float shed;               /* share of asks that is shed before they come to the gate */
    float busy;               /* share of asks that finds no permit */
    float roof;               /* beyond which the backend drops; 0: not known */
    float kept;               /* of the limit, because of silence */
    float hurry;              /* of the headroom, because clients give up */
    float queue;              /* of the headroom, because of the target */
    float rate, at;   /* results per second in the last phase of the start, with these out */
    float light;      /* mean time before permits were scarce, ns; 0: not known */
    uint16_t started; /* the start is over */
    uint16_t rose;    /* it has found that more permits finish more */
    uint16_t turn;
    uint16_t healing; /* the limit is rising again after silence */
    uint16_t clean;   /* phases without drops, under the roof */
    float queued;     /* in the phase: asks that found no permit and wait, or have waited */
    float ready;      /* share of permits that a waiter takes over at once */
};

_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

/* A phase, summed up. */
struct phase {
    double n, rate, took;       /* results, per ns, mean time */
    double out;                 /* permits, on average */
    double lasts;               /* twice the mean time, or the mean of those at work */
    double queued;              /* share of admitted work that waited for its permit */
    double turned;              /* share of asks that found no permit ... */
    double refused, lost, late; /* ... and were refused, not to wait; late: share of time-outs */
    bool binds;                 /* the limit */
    bool scarce;                /* permits: more comes than can be done */
    bool teaches;               /* how many workers there are: scarce, and most work ends */
};

/* ----------------------------------------------------------------- demand ---- */

static double demand(const struct state *s)
{
    return (s->turned[1] + PRIOR) / (s->full[1] + PRIOR);
}

/* By how many deviations more come than go, with those that were shed before. */
static double pressing(const struct state *s)
{
    double n = s->full[1] + PRIOR, r = demand(s) / (1 - weir__between(0, s->shed, 0.95));

    return (r - 1) * n / weir__root(n * r * (1 + r));
}

static void watch(struct state *s, const struct weir__sample *sample)
{
    double asked = (double)(sample->entered + sample->refused), shed = (double)sample->shed;
    double full = (double)sample->full, found_none = (double)(sample->refused + sample->queued),
           turned = weir__between(0, found_none, MANY * (full + 1));

    if (asked + shed > 0)
        s->shed += (float)((shed / (asked + shed) - s->shed) * weir__share(asked + shed, 100));
    for (int i = 0; i < 2; i++) {
        double stays = weir__between(0, 1 - (double)sample->span / (double)LASTS, 1) /
                       (1 + full / (i ? SLOW : FAST));
        s->full[i] = (float)(s->full[i] * stays + full);
        s->turned[i] = (float)(s->turned[i] * stays + turned);
    }
    double n = s->full[0], r = demand(s), off = s->turned[0] - r * n;
    if (n > 10 && off * off > 9 * n * r * (1 + r))
        s->full[1] = s->full[0], s->turned[1] = s->turned[0]; /* it has changed */
}

/* ----------------------------------------------------------------- phases ---- */

static void begin(struct state *s, weir_time now, double settle)
{
    s->settled = now + (weir_time)weir__between(0, settle, SETTLE);
    s->span = 0;
    s->area = s->out = s->good = s->square = 0;
    s->ended = s->lost = s->dropped = s->over = s->most = 0;
    s->entered = s->refused = s->queued = 0;
}

static void add_times(struct state *s, const struct weir__controller_plan *plan,
                      const struct weir__sample *sample)
{
    unsigned far = plan->target > 0 ? weir__bin_of(plan->target) + 1 : WEIR__BINS;
    int64_t left = sample->succeeded;

    for (unsigned i = weir__bin_of(sample->min); i < WEIR__BINS && left > 0; i++) {
        uint32_t n = sample->times->counts[i];
        if (n == 0)
            continue;
        double took = (double)weir__bin_middle(i);
        s->square += took * took * n;
        s->over += i >= far ? (float)n : 0;
        left -= n;
    }
}

static void add(struct state *s, const struct weir__controller_plan *plan,
                const struct weir__sample *sample)
{
    double good = (double)sample->mean * (double)sample->succeeded,
           area = sample->area > 0 ? sample->area : good;

    s->span += sample->span;
    s->area += area;
    s->good += good;
    s->out += sample->out > 0 ? sample->out : area;
    s->ended += (float)(sample->succeeded + sample->failed);
    s->lost += (float)(sample->timed_out + sample->dropped);
    s->dropped += (float)sample->dropped;
    s->most = (float)weir__most(s->most, (double)sample->in_flight_max);
    s->entered += (float)sample->entered;
    s->refused += (float)sample->refused;
    s->queued += (float)sample->queued;
    add_times(s, plan, sample);
}

static struct phase sum_up(const struct state *s)
{
    double n = (double)s->ended + (double)s->lost, asked = (double)s->entered + (double)s->refused,
           span = weir__most((double)s->span, 1);
    struct phase p = { .n = n, .out = s->out / span, .rate = s->ended / span };

    p.took = n > 0 ? s->area / n : 0;
    p.lasts = weir__most(s->good > 0 ? s->square / s->good : 0, 2 * p.took);
    p.lost = n > 0 ? s->lost / n : 0;
    p.late = n > 0 ? (s->lost - s->dropped) / n : 0;
    p.refused = asked > 0 ? s->refused / asked : 0;
    p.turned =
        asked > 0 ? weir__between(0, ((double)s->refused + (double)s->queued) / asked, 1) : 0;
    p.queued = s->entered > 0 ? weir__between(0, (double)s->queued / (double)s->entered, 1) : 0;
    p.binds = p.turned > 0.01;
    return p;
}

/* If the gate is nearly always full, refused asks do not come again and find room. */
static bool is_scarce(const struct state *s, const struct phase *p)
{
    bool clear = p->out > 0.85 * s->limit && s->busy > 0.1 && p->refused > 0.1;

    return p->binds && p->out > 0.5 * s->limit &&
           (clear || (pressing(s) > PRESS && demand(s) > 1.1 * (1 - s->shed)));
}

static bool is_over(const struct state *s, const struct phase *p)
{
    double span = (double)s->span;

    if (s->span >= LONGEST || (s->lost >= weir__most(3, s->limit) && s->lost > s->ended))
        return true;
    if (s->kept < 1 && p->n >= 10 && span >= p->took)
        return true;
    bool enough = p->n >= RESULTS * weir__between(0.5, s->workers.noise, 5) && s->span >= SHORTEST;
    return span >= (s->started || s->rate == 0 ? p->lasts : p->took) &&
           (enough || (p->n >= 20 && s->span >= WEIR_SECOND));
}

/* ----------------------------------------------------------------- losses ---- */

/* Work that the backend drops at once holds a permit for no time: those at work are what it can
 * bear, and one more.  The longer nothing is dropped, the faster the roof rises. */
static void mind_drops(struct state *s, const struct phase *p)
{
    double share = s->dropped / weir__most(p->n, 1),
           worked = s->good / weir__most((double)s->span, 1),
           below = weir__least(s->most - 1, weir__most(0.9 * s->limit, s->limit - 1));

    if (s->dropped >= 2 && s->ended > 0 && share > (p->binds ? 0.02 : 0.1)) {
        s->roof = (float)weir__most((double)(int64_t)worked + 1, below);
        s->clean = 0;
    } else if (s->roof > 0 && s->dropped < 1) {
        s->clean = (uint16_t)(s->clean < 20 ? s->clean + 1 : 20);
        s->roof += (float)(s->clean * weir__most(0.1, 0.01 * s->roof));
    }
    if (s->roof > 3 * s->centre + 10)
        s->roof = 0;
}

/* Silence that comes again with the limit is no chance. */
static void mind_silence(struct state *s, bool silent)
{
    if (silent) {
        if ((s->ended > 0 && s->kept < 1) || s->healing)
            weir__belief_doubt(&s->workers, 0.7 * s->limit);
        s->kept = (float)weir__between(0.2, s->kept / 2, 1);
        s->healing = 0;
    } else if (s->ended > 0) {
        s->healing = s->kept < 1;
        s->kept = (float)weir__least(s->kept * 3, 1);
    }
}

/* While many give up, nobody should wait for a worker. */
static void mind_losses(struct state *s, const struct phase *p)
{
    bool silent = s->ended < 1 ? p->lost > MUCH_LOST : p->late > 0.5 && p->n >= 10;
    double by = p->late > MUCH_LOST ? 0.7 : p->late < MUCH_LOST / 2 ? 1.25 : 1;

    mind_silence(s, silent);
    if (!silent)
        s->hurry = (float)weir__between(0.05, s->hurry * by, 1);
}

/* ------------------------------------------------------------------ start ---- */

static void end_start(struct state *s, double low, double high)
{
    weir__belief_start(&s->workers, low, high);
    s->centre = weir__least(s->centre, high);
    s->started = 1;
}

/* Results that take far less time than permits are out say that a queue is building: at once if it
 * would take seconds to work off. */
static bool is_queueing(const struct state *s, const struct phase *p)
{
    return s->area < (p->out > 3 * WEIR_SECOND * p->rate ? 0.6 : 0.25) * s->out;
}

/* Before permits were scarce, the time was that of the work. */
static bool knows_work(struct state *s, const struct phase *p)
{
    double w = p->rate * s->light;

    if (s->light == 0 || p->took < 2 * s->light)
        return false;
    end_start(s, w / 2, weir__least(4 * w, 1.5 * p->out));
    return true;
}

/* The start goes on as long as more permits finish at least half as much more.  A fifth more is the
 * least that shows.  While nearly all are lost, what fewer permits finished could be again. */
static void look_at_start(const struct weir__controller_plan *plan, struct state *s,
                          const struct phase *p)
{
    double all = p->rate * WEIR_SECOND, rate = p->lost < 0.8 ? all : weir__most(all, s->rate),
           more = p->out / weir__most(s->at, 0.01), grew = rate / weir__most(s->rate, 1e-6),
           w = grew * s->at;

    if (s->rate > 0 && more > 1.2 && grew < 1 + 0.5 * (more - 1))
        end_start(s, s->rose ? w / 2 : w / 16, 1.5 * w);
    else if (!knows_work(s, p) &&
             (p->lost > MUCH_LOST || is_queueing(s, p) || 2 * s->limit > (double)plan->max))
        end_start(s, p->out / 16, 1.5 * p->out);
    if (s->rate > 0 && more <= 1.2)
        return;
    s->rose = s->rate > 0;
    s->rate = (float)rate;
    s->at = (float)p->out;
}

static double choose_start(struct state *s, const struct phase *p)
{
    if (!p->teaches)
        return s->centre;
    return s->centre = (demand(s) < DOUBLES * (1 - s->shed) ? 1.25 : 2) * s->limit;
}

/* ------------------------------------------------------------------ limit ---- */

static void mind_target(const struct weir__controller_plan *plan, struct state *s,
                        const struct phase *p)
{
    double may = p->n * (100 - weir__between(1, plan->percentile, 99)) / 100;
    bool over = s->over >= 2 && s->over > may + 2 * weir__root(may);

    s->queue = (float)weir__between(0.4, s->queue * (over ? 0.8 : 1.05), 1);
}

static double headroom(const struct state *s, double w)
{
    double over = weir__least(weir__ln(demand(s)), -weir__ln(1 - weir__between(0, s->busy, 0.99))),
           next = weir__most(over, -weir__ln(1 - weir__between(0, s->ready, 0.99))),
           varied = weir__between(1, (1 + s->workers.noise) / 2, 2),
           least = next > over ? weir__most(1, weir__root(w)) : 1;

    return weir__between(least, 2.5 * varied / weir__most(next, 0.01), 3 + 3 * weir__root(w));
}

static double breath(struct state *s, const struct phase *p, double limit)
{
    double deep = weir__root(s->workers.noise / weir__most(p->n, 20));
    bool sharp = weir__belief_at(&s->workers, 0.8) < SHARP * weir__belief_at(&s->workers, 0.2);
    int cycle = sharp ? CALM : CYCLE;

    s->turn = (uint16_t)((s->turn + 1) % cycle);
    if (s->turn == 0)
        return -weir__most(1, weir__between(0.03, DOWN * deep, DIP) * limit);
    if (s->turn == cycle / 2)
        return weir__most(1, weir__between(0.03, UP * deep, DIP) * limit);
    return 0;
}

/* While permits are scarce: around the workers. */
static double choose_scarce(const struct weir__controller_plan *plan, struct state *s,
                            const struct phase *p)
{
    double w = weir__belief_at(&s->workers, BELIEVED), want = w + headroom(s, w),
           middle = weir__belief_at(&s->workers, 0.5);

    s->centre = weir__between(s->centre / (pressing(s) > 4 ? 2 : 1.3), want, s->centre * 1.5);
    s->centre = weir__between((double)plan->min, s->centre, (double)plan->max);
    double limit = s->centre, room = weir__most(0, s->centre - w);
    if (plan->target > 0 && weir__belief_work(&s->workers) < 0.85 * (double)plan->target) {
        limit -= room * (1 - s->queue);
        limit =
            weir__between(weir__least(limit, middle + 2), p->rate * (double)plan->target, limit);
    }
    if (s->hurry < 1)
        limit = weir__least(limit, w + room * s->hurry);
    return limit + breath(s, p, limit);
}

/* While they are not: up while anybody is refused, unless more comes than goes or many give up. */
static double choose_plenty(const struct weir__controller_plan *plan, struct state *s,
                            const struct phase *p)
{
    double press = pressing(s), w = weir__belief_at(&s->workers, BELIEVED);
    double step = weir__between(-1, press < 0 ? press / 2 - 0.3 : press / 2, 1),
           next = s->centre * (1 - 0.1 * step) - weir__least(step, 0);

    if (p->refused > 0 && next > s->centre && p->late <= MUCH_LOST)
        s->centre = weir__most(s->centre, weir__least(next, 1.5 * p->out + 20));
    else if (p->refused > 0)
        s->centre = weir__least(s->centre, weir__most(next, w + headroom(s, w)));
    return s->centre = weir__between((double)plan->min, s->centre, (double)plan->max);
}

static double choose(const struct weir__controller_plan *plan, struct state *s,
                     const struct phase *p)
{
    double limit = p->scarce && s->started ? choose_scarce(plan, s, p)
                   : p->scarce             ? choose_start(s, p)
                                           : choose_plenty(plan, s, p);

    limit = limit * s->kept + 0.5;
    if (s->roof > 0)
        limit = weir__least(limit, s->roof);
    return (double)(int64_t)weir__between((double)plan->min, limit, (double)plan->max);
}

/* ------------------------------------------------------------------- step ---- */

static void start(const struct weir__controller_plan *plan, struct state *s, weir_time now)
{
    s->centre = (double)plan->initial;
    s->limit = (float)plan->initial;
    s->workers.noise = s->kept = s->queue = s->hurry = 1;
    weir__belief_start(&s->workers, s->centre / 16, 1.5 * s->centre);
    begin(s, now, 0);
}

static void end_phase(const struct weir__controller_plan *plan, struct state *s, struct phase *p)
{
    s->busy += (float)(0.3 * (p->turned - s->busy));
    s->ready += (float)(0.3 * (p->queued - s->ready));
    p->scarce = is_scarce(s, p);
    mind_drops(s, p);
    mind_losses(s, p);
    mind_target(plan, s, p);
    if (!p->binds && p->n >= 20 && p->lost < 0.01)
        s->light += (float)((s->light > 0 ? 0.3 : 1) * (p->took - s->light));
    p->teaches = p->scarce && s->ended >= 5 && p->lost <= 0.3;
    if (p->scarce && !s->started && (p->teaches || s->rate > 0 || s->light == 0))
        look_at_start(plan, s, p); /* losses after calm say nothing about the workers */
    if (p->teaches && s->started)
        weir__belief_learn(&s->workers, &(struct weir__belief_phase){
                                            .out = weir__between(s->limit / 8, p->out, s->limit),
                                            .limit = s->limit,
                                            .n = p->n,
                                            .rate = p->rate,
                                            .clean = p->lost < 0.01 });
    s->limit = (float)choose(plan, s, p);
}

static double step(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample)
{
    struct state *s = state;

    if (!(s->centre > 0))
        start(plan, s, sample->now - sample->span);
    if (sample->span <= 0 || s->settled > sample->now + SETTLE)
        begin(s, sample->now, 0); /* the clock has stepped */
    if (sample->span > 0)
        watch(s, sample);
    if (sample->span <= 0 || sample->now - sample->span / 2 < s->settled)
        return s->limit;
    add(s, plan, sample);
    struct phase p = sum_up(s);
    if (!is_over(s, &p))
        return s->limit;
    double before = s->limit;
    end_phase(plan, s, &p);
    begin(s, sample->now,
          p.took * (s->limit < before ? weir__most(0.25, 1 - s->limit / before) : 1));
    return s->limit;
}

static void tell(const void *state, char *out, size_t size)
{
    const struct state *s = state;
    double w = weir__between(1, weir__belief_at(&s->workers, 0.5), 99999);

    snprintf(out, size, "%s, %.*f workers",
             !s->started    ? "starting"
             : s->kept < 1  ? "losses"
             : s->queue < 1 ? "over target"
                            : "breathing",
             w < 10, w);
}

const struct weir__controller weir__controller_weir = {
    .name = "weir",
    .summary =
        "Weir's own: finds how many the backend works on at once; nothing needs to be chosen",
    .defaults = { .initial = 20,
                  .min = 1,
                  .max = 16384,
                  .sample_span = 20 * WEIR_MILLISECOND,
                  .sample_count = 1,
                  .percentile = 99 },
    .step = step,
    .tell = tell,
};
