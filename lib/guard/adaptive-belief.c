/* adaptive-belief.c -- see adaptive-belief.h. */
#include "guard/adaptive-belief.h"

#include "guard/arithmetic.h"

#define GUESSES WEIR__GUESSES
#define STEPS   104 /* guesses that there are, the first of which is 1 */
#define RATIO   1.1
#define EDGE    1.0488    /* its square root */
#define LN      0.0953102 /* its logarithm */
#define MARGIN  10        /* the middle of the belief is not nearer to the ends */

#define KNEE     0.15   /* of ln N: how round the knee of X is */
#define GAIN     0.2    /* how fast the times follow */
#define TREND    0.02   /* how fast their drift does */
#define SURPRISE 12.0   /* squares of deviations: begin with new times */
#define FLOOR    0.0004 /* variance that no number of results takes away */
#define LEAK     0.03   /* of the belief, in a phase that is off by two deviations */
#define REACH    13     /* guesses on either side that it leaks to */

/* ------------------------------------------------------------- arithmetic ---- */

double weir__ln(double x)
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

static double exp_of(double x)
{
    double term = 1, sum = 1, whole = 1;

    for (; x > 0.5; x -= 0.6931471805599453)
        whole *= 2;
    for (; x < -0.5; x += 0.6931471805599453)
        whole /= 2;
    for (int i = 1; i < 12; i++)
        sum += term *= x / i;
    return whole * sum;
}

/* The likelihood of an error: Student's t with four degrees of freedom. */
static double fit(double error, double variance)
{
    double y = 1 + error * error / (4 * variance);

    return 1 / (y * y * weir__root(y));
}

/* ---------------------------------------------------------------- guesses ---- */

static double guess(int n)
{
    double w = 1;

    for (; n > 0; n--)
        w *= RATIO;
    return w;
}

/* May be none of those that are looked at. */
static int guess_near(const struct weir__belief *b, double w)
{
    return (int)(weir__ln(weir__most(w, 1)) / LN + 0.5) - b->first;
}

double weir__belief_at(const struct weir__belief *b, double share)
{
    double sum = 0, low = guess(b->first) / EDGE;
    int i = 0;

    for (; i < GUESSES - 1 && sum + b->shares[i] < share; low *= RATIO)
        sum += b->shares[i++];
    return low *
           (1 + (RATIO - 1) * weir__between(0, (share - sum) / weir__most(b->shares[i], 1e-9), 1));
}

double weir__belief_work(const struct weir__belief *b)
{
    int64_t middle = weir__int_between(0, guess_near(b, weir__belief_at(b, 0.5)), GUESSES - 1);

    return exp_of(weir__between(-50, b->base[middle], 50));
}

static void normalize(struct weir__belief *b)
{
    double sum = 0;

    for (int i = 0; i < GUESSES; i++)
        sum += b->shares[i] = (float)weir__between(1e-6, b->shares[i], 1e6);
    for (int i = 0; i < GUESSES; i++)
        b->shares[i] = (float)(b->shares[i] / sum);
}

static void leak(struct weir__belief *b, double share, int from, int to)
{
    from = from < 0 ? 0 : from >= GUESSES ? GUESSES - 1 : from;
    to = to < from ? from : to >= GUESSES ? GUESSES - 1 : to;
    for (int i = 0; i < GUESSES; i++)
        b->shares[i] = (float)(b->shares[i] * (1 - share) +
                               (i >= from && i <= to ? share / (to - from + 1) : 0));
}

void weir__belief_start(struct weir__belief *b, double low, double high)
{
    b->first = 0;
    int from = guess_near(b, low), to = guess_near(b, high);
    int first = (from + to - GUESSES) / 2;
    b->first = (uint16_t)weir__int_between(0, first, STEPS - GUESSES);
    b->phases = 0;
    b->drift = 0;
    leak(b, 1, from - b->first, to - b->first);
    normalize(b);
}

void weir__belief_doubt(struct weir__belief *b, double above)
{
    for (int64_t i = weir__int_most(0, guess_near(b, above) + 1); i < GUESSES; i++)
        b->shares[i] *= 0.3f;
    normalize(b);
}

/* Looks at other guesses when the belief comes near to the end of these.  A new one is like the
 * last: beyond those at work all have the same time, below it the time goes with the guess. */
static void follow(struct weir__belief *b)
{
    int middle = guess_near(b, weir__belief_at(b, 0.5)), first = b->first;
    int by = middle < MARGIN || middle >= GUESSES - MARGIN ? middle - GUESSES / 2 : 0;

    by = by < -first ? -first : by > STEPS - GUESSES - first ? STEPS - GUESSES - first : by;
    for (int k = 0; k < GUESSES && by != 0; k++) {
        int to = by > 0 ? k : GUESSES - 1 - k, from = to + by;
        bool has = from >= 0 && from < GUESSES;
        b->shares[to] = has ? b->shares[from] : 1e-6f;
        b->base[to] = has      ? b->base[from]
                      : by > 0 ? b->base[to - 1]
                               : (float)(b->base[to + 1] - LN);
    }
    b->first = (uint16_t)(first + by);
}

/* --------------------------------------------------------------- learning ---- */

/* How much of ln N - ln w is queue: none below the knee, all above; the knee is round. */
static double queued(double x)
{
    return x <= -KNEE ? 0 : x >= KNEE ? x : (x + KNEE) * (x + KNEE) / (4 * KNEE);
}

/* The times that follow from each guess; how far off is the nearest believed guess (the return
 * value), and the most believed one. */
static double conclude(const struct weir__belief *b, const struct weir__belief_phase *p,
                       double times[GUESSES], double *best)
{
    double top = 0, nearest = 1e9, n = weir__ln(p->out), seen = weir__ln(p->out / p->rate),
           ln_w = b->first * LN;

    *best = 0;
    for (int i = 0; i < GUESSES; i++, ln_w += LN) {
        times[i] = seen - queued(n - ln_w);
        double error = times[i] - b->base[i] - b->drift;
        if (b->shares[i] > 0.002)
            nearest = weir__least(nearest, error < 0 ? -error : error);
        if (b->shares[i] > top)
            top = b->shares[i], *best = error;
    }
    return nearest;
}

static void begin_anew(struct weir__belief *b, const double times[GUESSES], bool slower)
{
    for (int i = 0; i < GUESSES; i++)
        b->base[i] = (float)times[i];
    if (b->phases > 0) { /* perhaps the workers are others too */
        int middle = guess_near(b, weir__belief_at(b, 0.5));
        leak(b, slower ? 0.3 : 0.1, middle - 30, middle + 12);
    }
    b->drift = 0;
    b->phases = 1;
}

static void note_noise(struct weir__belief *b, double seen)
{
    double step = (seen > b->noise ? 0.04 : 0.08) * (weir__least(seen, 6 * b->noise) - b->noise);

    b->noise = (float)weir__between(0.1, b->noise + step, 10);
}

/* A phase with idle permits says less: its N is not the limit's doing. */
void weir__belief_learn(struct weir__belief *b, const struct weir__belief_phase *p)
{
    double times[GUESSES], best, idle = 1 - p->out / p->limit;
    double variance = b->noise / p->n + FLOOR + 0.25 * idle * idle;
    double gain = weir__most(GAIN, 1.0 / (b->phases + 1)), nearest = conclude(b, p, times, &best);

    if (b->phases == 0 || nearest * nearest > SURPRISE * variance) {
        begin_anew(b, times, best > 0);
        return;
    }
    for (int i = 0; i < GUESSES; i++) {
        double error = times[i] - b->base[i] - b->drift;
        b->shares[i] *= (float)fit(error, variance * (1 + gain));
        b->base[i] = (float)(b->base[i] + b->drift + gain * error);
    }
    b->drift = (float)weir__between(-0.1, b->drift + TREND * best, 0.1);
    b->phases = (uint16_t)(b->phases < 1000 ? b->phases + 1 : 1000);
    if (p->clean)
        note_noise(b, best * best * p->n);
    normalize(b);
    int middle = guess_near(b, weir__belief_at(b, 0.5));
    leak(b, LEAK * weir__between(0.1, best * best / (4 * variance), 2), middle - REACH,
         middle + REACH);
    follow(b);
}
