/* adaptive.c -- Weir's own controller: it estimates the number of workers behind the guard, and
 * believes the number that best explains the results.
 *
 * With N at work, w workers and work that takes S, a backend finishes
 *
 *     X = min(N, w) / S
 *
 * in a second.  There is a guess for w every 23 % from 1 to over 16384, and each has its own S,
 * which follows the results if the guess is right.  The limit breathes: of four phases one is a
 * little lower and one a little higher.  Each phase gives an N and an X; guesses whose S had to
 * change to explain that lose belief, those whose S stayed gain it (Bayes, with the tails of
 * Student's t, so that one strange phase decides nothing).  A little belief always leaks to
 * neighbours, because backends change.  Then
 *
 *     limit = w + headroom        w: 70 % of the belief is on no more than this
 *
 * The headroom keeps workers busy between an exit and the next ask.  A share `busy` of all asks
 * finds it full; with goes = 1 - busy, the chance of h free places at once is about goes^h, so it
 * is 2.5 / -ln(goes), from 2 to 2 + 1.5 sqrt(w).
 *
 * It follows:
 *   - no base time is stored that could be wrong or drift: S only counts as it changes with N.
 *     Slower work changes the S of all guesses alike and moves nothing; a phase that surprises all
 *     of them begins with new S
 *   - more workers show as X that grows with N: up by half in each phase; fewer as X that does not
 *     fall with N
 *   - at light load (nobody is refused) S is seen as it is, and nothing grows
 *   - the variance of the work is learnt (noise); it sets the length of a phase and how deep the
 *     limit breathes: 3 to 20 %, at least 1
 *   - a phase is at least 100 ms, twice as long as the work, and leaves out earlier admissions
 *
 * Losses (drops, time-outs; over 5 % of a phase): `kept` of the limit, at least halved when all is
 * lost, not below a fifth; beliefs stay, so that the limit is back three phases after an outage;
 * but if losses come with results, or come back with the limit, guesses above are disbelieved.
 * Losses never raise it.
 * Target: never more than X * target at work (the mean is then below it), and as long as too many
 * are over it (1 % unless percentile says otherwise) the headroom shrinks, down to 40 %.  Neither
 * goes below the workers' need by belief: work that takes too long by itself is no reason.
 *
 * Why not a lowest time and a highest throughput (Vegas, BBR): with varied work the lowest is luck,
 * and when the work becomes slower both are of a backend that is no more.  Why not an average as
 * the base (Gradient): it learns its own queue.
 */
#include "guard/controller.h"

#include <stdio.h>

#include "guard/number.h"

#define GUESSES 48
#define RATIO   1.23
#define EDGE    1.109 /* its square root */

#define BELIEVED  0.7  /* see above */
#define LEAK      0.03 /* of the belief, in a phase; to 6 guesses on either side of the middle */
#define GAIN      0.2  /* how fast the times follow */
#define SURPRISE  12.0 /* squares of deviations: begin with new times */
#define CYCLE     4    /* phases; one is lower, one higher */
#define RESULTS   60.0 /* in a phase, times the noise */
#define SHORTEST  (100 * WEIR_MILLISECOND) /* phase */
#define LONGEST   (4 * WEIR_SECOND)        /* phase, however few the results */
#define SETTLE    (5 * WEIR_SECOND)        /* at most */
#define MUCH_LOST 0.05

struct state {
    float belief[GUESSES]; /* their sum is 1 */
    float base[GUESSES];   /* ln of the time that the work takes, if that guess is right */
    double centre;         /* around which the limit breathes; 0: fresh */
    int64_t settled;       /* work admitted under the last limit has ended by then */
    int64_t span;          /* the phase so far ... */
    double area;           /* in-flight times ns */
    float ended, lost, over, entered, refused; /* ... over: the target */
    float limit;                               /* in force */
    float used;            /* of the limit, on average, while some are refused */
    float busy;            /* share of asks that is refused */
    float noise;           /* square of how much single times deviate */
    float kept;            /* of the limit, because of losses */
    float queue;           /* of the headroom, because of the target */
    uint16_t phases, turn; /* phases: since the times are learnt, as far as that matters */
    uint16_t healing;      /* the limit is rising again after losses */
};

_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

/* A phase, summed up. */
struct phase {
    double n, in_flight, rate, took; /* results, mean at work, per ns, mean time */
    double refused, lost;            /* shares */
    bool binds;                      /* the limit */
};

/* -------------------------------------------------------------- arithmetic ---- */

/* Natural logarithm, of 1e-18 to 1e18. */
static double ln(double x)
{
    double n = 0;

    x = weir__between(1e-18, x, 1e18);
    for (; x > 1.4142135623730951; x /= 2)
        n++;
    for (; x < 0.7071067811865476; x *= 2)
        n--;
    double z = (x - 1) / (x + 1), q = z * z;
    return n * 0.6931471805599453 +
           2 * z * (1 + q * (1.0 / 3 + q * (1.0 / 5 + q * (1.0 / 7 + q / 9))));
}

/* The likelihood of an error: Student's t with four degrees of freedom. */
static double fit(double error, double variance)
{
    double y = 1 + error * error / (4 * variance);

    return 1 / (y * y * weir__root(y));
}

/* ------------------------------------------------------------------ belief ---- */

static int guess_near(double w)
{
    int i = 0;

    for (double edge = EDGE; i < GUESSES - 1 && edge < w; edge *= RATIO)
        i++;
    return i;
}

/* The point with this share of the belief below it. */
static double believed(const struct state *s, double share)
{
    double sum = 0, low = 1 / EDGE;
    int i = 0;

    for (; i < GUESSES - 1 && sum + s->belief[i] < share; low *= RATIO)
        sum += s->belief[i++];
    return low *
           (1 + (RATIO - 1) * weir__between(0, (share - sum) / weir__most(s->belief[i], 1e-9), 1));
}

static void normalize(struct state *s)
{
    double sum = 0;

    for (int i = 0; i < GUESSES; i++)
        sum += s->belief[i] = (float)weir__between(1e-6, s->belief[i], 1e6);
    for (int i = 0; i < GUESSES; i++)
        s->belief[i] = (float)(s->belief[i] / sum);
}

static void leak(struct state *s, double share, double middle, int below, int above)
{
    int near = guess_near(middle), from = near > below ? near - below : 0,
        to = near + above < GUESSES ? near + above : GUESSES - 1;

    for (int i = 0; i < GUESSES; i++)
        s->belief[i] = (float)(s->belief[i] * (1 - share) +
                               (i >= from && i <= to ? share / (to - from + 1) : 0));
}

/* The times that follow from each guess; and how far off are the nearest believed guess and the
 * most believed one. */
static void conclude(const struct state *s, double in_flight, double rate, double times[GUESSES],
                     double *nearest, double *best)
{
    double w = 1, top = 0, seen = ln(in_flight / rate), n = ln(in_flight), ln_w = 0,
           ln_ratio = ln(RATIO);

    *nearest = 1e9, *best = 0;
    for (int i = 0; i < GUESSES; i++, w *= RATIO, ln_w += ln_ratio) {
        times[i] = seen - (in_flight > w ? n - ln_w : 0);
        double error = times[i] > s->base[i] ? times[i] - s->base[i] : s->base[i] - times[i];
        if (s->belief[i] > 0.005)
            *nearest = weir__least(*nearest, error);
        if (s->belief[i] > top)
            top = s->belief[i], *best = error;
    }
}

static void learn(struct state *s, const struct phase *p, double in_flight)
{
    double times[GUESSES], nearest, best, variance = s->noise / p->n * (p->binds ? 1 : 4) + 0.0004;
    double gain = weir__most(GAIN, 1.0 / (s->phases + 1));

    conclude(s, in_flight, p->rate, times, &nearest, &best);
    bool anew = s->phases == 0 || nearest * nearest > SURPRISE * variance;
    for (int i = 0; i < GUESSES; i++) {
        double error = times[i] - s->base[i];
        s->belief[i] *= anew ? 1 : (float)fit(error, variance * (1 + gain));
        s->base[i] = (float)(anew ? times[i] : s->base[i] + gain * error);
    }
    s->phases = anew ? 1 : (uint16_t)(s->phases < 1000 ? s->phases + 1 : 1000);
    if (anew)
        return;
    if (p->binds)
        s->noise += (float)(0.05 * (weir__least(best * best * p->n, 6 * s->noise) - s->noise));
    s->noise = (float)weir__between(0.1, s->noise, 10);
    normalize(s);
    if (p->binds)
        leak(s, LEAK, believed(s, 0.5), 6,
             6); /* otherwise nothing would ever speak against too many workers */
}

/* ------------------------------------------------------------------ phases ---- */

static void begin(struct state *s, weir_time now, double settle)
{
    s->settled = now + (weir_time)weir__between(0, settle, SETTLE);
    s->span = 0;
    s->area = s->ended = s->lost = s->over = s->entered = s->refused = 0;
}

static void add(struct state *s, const struct weir__controller_plan *plan,
                const struct weir__sample *sample)
{
    s->span += sample->span;
    s->area += sample->area > 0 ? sample->area : (double)sample->mean * (double)sample->succeeded;
    s->ended += (float)(sample->succeeded + sample->failed);
    s->lost += (float)(sample->timed_out + sample->dropped);
    s->entered += (float)sample->entered;
    s->refused += (float)sample->refused;
    for (unsigned i = plan->target > 0 ? weir__bin_of(plan->target) + 1 : WEIR__BINS;
         i < WEIR__BINS; i++)
        s->over += (float)sample->times->counts[i];
}

static struct phase sum_up(const struct state *s)
{
    double n = (double)s->ended + (double)s->lost, asked = (double)s->entered + (double)s->refused,
           span = weir__most((double)s->span, 1);
    struct phase p = { .n = n, .in_flight = s->area / span, .rate = s->ended / span };

    p.took = n > 0 ? s->area / n : 0;
    p.lost = n > 0 ? s->lost / n : 0;
    p.refused = asked > 0 ? s->refused / asked : 0;
    p.binds = p.refused > 0.01;
    return p;
}

static bool is_over(const struct state *s, const struct phase *p)
{
    double span = (double)s->span;

    if (s->span >= LONGEST || (s->lost >= 3 && s->lost > s->ended))
        return true;
    if (s->kept < 1 && p->n >= 10 && span >= p->took)
        return true;
    bool enough = p->n >= RESULTS * weir__between(0.5, s->noise, 5) && s->span >= SHORTEST;
    return span >= 2 * p->took && (enough || (p->n >= 20 && s->span >= WEIR_SECOND));
}

/* ------------------------------------------------------------------- limit ---- */

static void mind_losses(struct state *s, const struct phase *p)
{
    if (p->lost > MUCH_LOST) {
        if (s->ended > 0 || s->healing)
            for (int i = guess_near(0.7 * s->limit) + 1; i < GUESSES; i++)
                s->belief[i] *= 0.3f;
        normalize(s);
        s->kept = (float)weir__between(0.2, s->kept * (1 - weir__least(p->lost, 0.5)), 1);
        s->healing = 0;
    } else if (s->ended > 0) {
        s->healing = s->kept < 1;
        s->kept = (float)weir__least(s->kept * 3, 1);
    }
}

static void mind_target(const struct weir__controller_plan *plan, struct state *s,
                        const struct phase *p)
{
    double may = p->n * (100 - weir__between(1, plan->percentile, 99)) / 100;
    bool over = s->over >= 2 && s->over > may + 2 * weir__root(may);

    s->queue = (float)weir__between(0.4, s->queue * (over ? 0.8 : 1.05), 1);
}

static double headroom(const struct state *s, double w)
{
    double goes = weir__between(0.05, 1 - s->busy, 0.99),
           varied = weir__between(1, (1 + s->noise) / 2, 2);

    return weir__between(2, 2.5 * varied / -ln(goes), 2 + 1.5 * weir__root(w));
}

static double breath(struct state *s, const struct phase *p)
{
    double deep = weir__between(0.03, 0.8 * weir__root(s->noise / weir__most(p->n, 20)), 0.2);

    s->turn = (uint16_t)((s->turn + 1) % CYCLE);
    return (s->turn == 0 ? -1 : s->turn == CYCLE / 2 ? 1 : 0) * weir__most(1, deep * s->centre);
}

static double choose(const struct weir__controller_plan *plan, struct state *s,
                     const struct phase *p)
{
    double w = believed(s, BELIEVED), want = w + headroom(s, w), least = believed(s, 0.3);

    if (p->binds || want < s->centre)
        s->centre = weir__between(s->centre / 1.3, want, p->binds ? s->centre * 1.5 : s->centre);
    s->centre = weir__between((double)plan->min, s->centre, (double)plan->max);
    double limit = s->centre > w ? w + (s->centre - w) * s->queue : s->centre;
    if (plan->target > 0 && limit > least)
        limit = weir__between(least, p->rate * (double)plan->target, limit);
    limit = (limit + breath(s, p)) * s->kept + 0.5;
    return (double)(int64_t)weir__between((double)plan->min, limit, (double)plan->max);
}

static void start(const struct weir__controller_plan *plan, struct state *s, weir_time now)
{
    s->centre = (double)plan->initial;
    s->limit = (float)plan->initial;
    s->used = s->noise = s->kept = s->queue = 1;
    s->busy = 0.5f;
    leak(s, 1, s->centre, 8, 2);
    begin(s, now, 0);
}

static double step(const struct weir__controller_plan *plan, void *state,
                   const struct weir__sample *sample)
{
    struct state *s = state;

    if (!(s->centre > 0))
        start(plan, s, sample->now - sample->span);
    if (sample->span <= 0 || s->settled > sample->now + SETTLE)
        begin(s, sample->now, 0); /* the clock has stepped */
    if (sample->span <= 0 || sample->now - sample->span / 2 < s->settled)
        return s->limit;
    add(s, plan, sample);
    struct phase p = sum_up(s);
    if (!is_over(s, &p))
        return s->limit;
    s->busy += (float)(0.3 * (p.refused - s->busy));
    mind_losses(s, &p);
    mind_target(plan, s, &p);
    if (s->ended >= 5 && p.lost <= MUCH_LOST) {
        if (p.binds)
            s->used += (float)(0.2 * (weir__between(0.05, p.in_flight / s->limit, 1.2) - s->used));
        learn(s, &p, p.binds && s->phases > 0 ? (double)s->limit * s->used : p.in_flight);
    }
    s->limit = (float)choose(plan, s, &p);
    begin(s, sample->now, p.took);
    return s->limit;
}

static void tell(const void *state, char *out, size_t size)
{
    const struct state *s = state;
    double w = weir__between(1, believed(s, 0.5), 99999);

    snprintf(out, size, "%s, %.*f workers",
             s->kept < 1    ? "losses"
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
