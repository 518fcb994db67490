/* adaptive.c -- Weir's own controller: finds the knee by breathing.
 */
#include "guard/controller.h"

#include <math.h>
#include <stdio.h>

#define DEEP      0.6  /* a breath out while nothing is known: to so much of what is at work */
#define SHALLOW   0.9  /* ... and to so much of the knee when it is only made sure of */
#define WIDE      1.5  /* a breath in */
#define CHANGED   0.10 /* ln: the pace is another, if chance does not explain it */
#define SIGMAS    3.0
#define SAME      2.5  /* sigmas: two measures of one thing */
#define WAIT_COST 0.08 /* one who waits costs as much as so much of an idle worker */
#define RESULTS   60.0 /* of a phase, times the spread */
#define FEW       30.0
#define POOLED    600.0
#define CAP       4.0
#define REST_MIN  2.0 /* seconds; at least so many times what work takes: */
#define REST_BREATH 15.0
#define REST_MAX  8.0 /* times the least */

enum phase { CRUISE, OUT, IN };

struct sum {
    double n, time, span, bad, refused, most;
    double square;            /* of the times */
    double clip, clip_square; /* the same of times of at most `cap` */
    double free, looks;       /* permits not in use */
};

struct state {
    double limit;    /* while it cruises; 0: fresh */
    double in_force; /* with the breath */
    double knee, knee_var;
    double pace, pace_n;
    double work, work_n;
    double tail, tail_n, here, here_n, here_limit;
    double cap;
    double spread, spread_clip;
    double last, last_n;
    double gap;
    double took, breath, depth;
    double rest, rested;
    double from_pace, from_took, from_limit, from_n;
    double good, bad, lost;
    double settle;
    double ceiling; /* 0: none */
    int32_t phase, doubt, steps, idle, phases, inhaled;
    struct sum sum;
};

_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void add(struct sum *u, const struct weir__sample *s, const struct state *st)
{
    u->n += (double)s->succeeded;
    u->bad += (double)(s->timed_out + s->dropped);
    u->time += (double)s->mean * (double)s->succeeded;
    u->span += (double)s->span;
    u->refused += (double)s->refused;
    u->most = fmax(u->most, (double)s->in_flight_max);
    for (unsigned i = 0; i < WEIR__BINS; i++)
        if (s->times->counts[i] > 0) {
            double c = s->times->counts[i], t = (double)weir__bin_middle(i), clip = st->cap > 0 ? fmin(t, st->cap) : t;
            u->square += c * t * t;
            u->clip += c * clip;
            u->clip_square += c * clip * clip;
        }
    double exits = (double)s->succeeded, asks = (double)(s->entered + s->refused);
    double seen = st->in_force - (double)s->in_flight - exits / fmax(exits + asks, 1);
    u->free += clamp(seen, -1, st->in_force);
    u->looks += 1;
}

static double head_room(const struct state *s, double knee)
{
    double g = clamp(s->gap, 0.05, 20), r = g / (1 + g), cost = WAIT_COST / (g * -log(r));
    return clamp(cost < 1 ? log(cost) / log(r) : 0, 1, 1 + 2.5 * sqrt(knee));
}

static double rest_min(const struct state *s)
{
    return fmax(REST_MIN, REST_BREATH * s->breath / 1e9);
}

static void go(struct state *s, const struct weir__controller_plan *plan, enum phase phase, double limit)
{
    double before = s->in_force;
    s->in_force = clamp(floor(limit + 0.5), (double)plan->min, (double)plan->max);
    s->phase = phase;
    s->settle = s->in_force == before ? 0 : s->took;
    s->sum = (struct sum){ 0 };
}

static void cruise(struct state *s, const struct weir__controller_plan *plan, double limit)
{
    s->limit = clamp(limit, (double)plan->min, (double)plan->max);
    if (s->ceiling > 0)
        s->limit = fmin(s->limit, s->ceiling);
    go(s, plan, CRUISE, s->limit);
}

static void pool(double *mean, double *n, double x, double xn, double most)
{
    *mean = *n > 0 ? (*mean * *n + x * xn) / (*n + xn) : x;
    *n = fmin(*n + xn, most);
}

/* --- cruise */

static void learn_spread(struct state *s, const struct sum *u, double x, double r, double m)
{
    double rate = fmax(0.05, 1.0 / ++s->phases);
    if (s->last_n > 0) {
        double d = log(x / s->last), v = d * d / (1 / u->n + 1 / s->last_n);
        s->spread = clamp(s->spread + rate * (fmin(v, 6 * s->spread) - s->spread), 0.1, 10);
    }
    s->spread = fmax(s->spread, fmin(u->square / u->n / (r * r) - 1, 10));
    s->spread_clip += fmax(0.1, rate) * (clamp(u->clip_square / u->n / (m * m) - 1, 0.05, 10) - s->spread_clip);
    s->last = x;
    s->last_n = u->n;
}

static void breathe_out(struct state *s, const struct weir__controller_plan *plan, double from, double depth)
{
    s->depth = depth;
    go(s, plan, OUT, fmax(1, fmin(from * depth, s->in_force - 1)));
}

/* Where the knee is by how much shorter it takes when fewer are in. */
static double knee_seen(const struct state *s, const struct sum *u, double *error)
{
    double m = u->clip / u->n;
    *error = s->pace * m * sqrt(s->spread_clip / u->n + s->spread / s->pace_n);
    return s->pace * (s->tail + m);
}

/* Nobody is gone from the queue only: the knee is at most here. */
static double still_full(const struct state *s)
{
    return s->in_force * (1 + 1 / s->depth) / 2;
}

static void breathe_in(struct state *s, const struct weir__controller_plan *plan, double x, double r, double n)
{
    s->from_pace = x;
    s->from_took = r;
    s->from_limit = s->in_force;
    s->from_n = n;
    s->steps++;
    go(s, plan, IN, fmax(s->in_force * WIDE, s->in_force + 1));
}

static void end_cruise(struct state *s, const struct weir__controller_plan *plan)
{
    struct sum u = s->sum;
    double x = u.n / u.span, r = u.time / u.n, m = u.clip / u.n;
    bool binds = u.refused > 0 && u.most >= s->in_force;

    s->rested += u.span / 1e9;
    if (s->work_n > 0 && log(s->work / m) > fmax(0.05, SIGMAS * sqrt(s->spread_clip / u.n + s->spread_clip / s->work_n))) {
        s->work = m; /* shorter than when nobody waited */
        s->work_n = u.n;
        s->doubt = 1;
    }
    if (!binds) {
        s->pace_n = s->last_n = s->here_n = 0;
        cruise(s, plan, s->limit);
        return;
    }
    learn_spread(s, &u, x, r, m);
    s->gap += u.looks / (u.looks + 50) * (u.free / u.looks - s->gap);
    double off = s->pace_n > 0 ? log(x / s->pace) : 0;
    if (fabs(off) > CHANGED && fabs(off) > SIGMAS * sqrt(s->spread / u.n + s->spread / s->pace_n))
        s->doubt = off > 0 ? 2 : 1, s->pace_n = s->tail_n = s->here_n = 0;
    pool(&s->pace, &s->pace_n, x, u.n, POOLED * s->spread);
    if (s->here_limit != s->in_force)
        s->here_n = 0;
    s->here_limit = s->in_force;
    pool(&s->tail, &s->tail_n, r - m, u.n, 2 * POOLED * s->spread);
    pool(&s->here, &s->here_n, m, u.n, fmax(POOLED * s->spread_clip, 4 * u.n));
    double room = head_room(s, s->knee > 0 ? s->knee : s->in_force), waiting = room, error = 0;
    if (s->knee > 0 && s->work_n > 0 && s->in_force < (double)plan->max && u.bad < 0.05 * u.n) {
        waiting = s->pace * (s->here - s->work);
        error = s->pace * m * sqrt(s->spread_clip / s->here_n + s->spread_clip / s->work_n);
    }
    if (s->cap <= 0 || fabs(log(CAP * m / s->cap)) > 0.6) {
        s->cap = CAP * m;
        s->tail_n = s->here_n = s->work_n = 0;
        cruise(s, plan, s->limit);
        return;
    }
    bool due = s->doubt || s->rested > s->rest, idle = waiting < 0.3 * room, faster = s->doubt == 2 && s->knee > 0;
    s->idle = !idle ? 0 : s->idle + (waiting < 0.3 * room - error ? 2 : 1);
    if (idle)
        s->knee = fmax(s->knee, s->pace * (s->tail + s->work));
    bool unclear = due && !s->doubt && !s->inhaled && s->work_n > 0 && waiting < 0.5 * room + error && s->in_force < (double)plan->max;
    if (faster || s->idle >= 3 || unclear) {
        s->doubt = s->doubt == 2 ? 1 : s->doubt;
        s->idle = 0;
        breathe_in(s, plan, x, r, u.n);
    } else if (due) {
        breathe_out(s, plan, s->doubt ? fmin(x * r, s->in_force) : s->knee, s->doubt ? DEEP : SHALLOW);
    } else {
        cruise(s, plan, s->knee + room);
    }
}

static void settle_knee(struct state *s, double knee, double var)
{
    bool same = s->knee_var > 0 && fabs(log(knee / s->knee)) < SAME * sqrt(var + s->knee_var);
    double w = 1 / var, known = same ? 1 / s->knee_var : 0;
    s->knee = same ? exp((log(s->knee) * known + log(knee) * w) / (known + w)) : knee;
    s->knee_var = fmax(1 / (w + known), var / 8);
    s->rest = same && !s->doubt && s->knee * sqrt(s->knee_var) < 0.6 * head_room(s, s->knee) ? s->rest * 1.7 : 0;
    s->rest = clamp(s->rest, rest_min(s), REST_MAX * rest_min(s));
    s->rested = 0;
}

static void end_out(struct state *s, const struct weir__controller_plan *plan)
{
    struct sum u = s->sum;
    double m = u.clip / u.n, error, knee = knee_seen(s, &u, &error);
    bool as_ever = s->work_n > 0 && fabs(log(m / s->work)) < 0.15;
    bool full = knee < still_full(s) && !(s->doubt && as_ever);

    if (full && s->in_force > fmax(1, (double)plan->min)) {
        breathe_out(s, plan, s->in_force, s->doubt ? DEEP : 0.75);
        return;
    }
    s->breath = u.span + s->took;
    knee = fmax(knee, 0.9 * s->in_force);
    settle_knee(s, knee, error * error / knee / knee);
    bool same = s->work_n > 0 && fabs(log(m / s->work)) < SAME * sqrt(s->spread_clip / u.n + s->spread_clip / s->work_n);
    if (!same)
        s->work_n = 0;
    pool(&s->work, &s->work_n, m, u.n, 4 * u.n);
    s->doubt = s->inhaled = 0;
    s->pace_n = fmin(s->pace_n, RESULTS * s->spread);
    cruise(s, plan, s->knee + head_room(s, s->knee));
}

static void end_in(struct state *s, const struct weir__controller_plan *plan)
{
    struct sum u = s->sum;
    double x = u.n / u.span, r = u.time / u.n;

    s->rested += u.span / 1e9;
    s->pace = x;
    s->pace_n = u.n;
    s->here_n = 0;
    if (log(x / s->from_pace) > 0.5 * log(s->in_force / s->from_limit) && s->in_force < (double)plan->max && u.bad < 0.05 * u.n) {
        s->knee = fmax(s->knee, s->from_limit);
        breathe_in(s, plan, x, r, u.n);
        return;
    }
    if (s->steps > 1) {
        s->knee = fmax(x * s->from_took, 0.9 * s->from_limit);
        s->knee_var = 0;
    } else {
        double knee = x * s->from_took, error = sqrt(s->spread / u.n + s->spread / s->from_n);
        if (knee > s->knee * (1 + 1.5 * error))
            s->knee = knee, s->knee_var = 0;
    }
    s->inhaled = 1;
    s->steps = 0;
    s->rested = 1e9;
    cruise(s, plan, s->knee + head_room(s, s->knee));
}

/* --- */

static double results_needed(const struct state *s)
{
    double rel = s->knee > 0 ? s->knee / head_room(s, s->knee) : 1, exact = s->spread_clip * clamp(1.5 * rel * rel, 15, 2000);
    if (s->phase == IN || s->doubt)
        return FEW * s->spread;
    return s->phase == OUT ? exact : fmax(RESULTS * s->spread, exact);
}

static bool is_over(const struct state *s)
{
    const struct sum *u = &s->sum;
    double r = u->n > 0 ? u->time / u->n : 0;
    if (u->n < 3)
        return u->span > 5e9 && u->n > 0;
    if (u->span < fmax(2 * r, 50e6))
        return false;
    if (u->span > 2e9 + 4 * r)
        return true;
    if (s->phase == OUT && s->doubt) {
        double error, knee = knee_seen(s, u, &error);
        return u->n >= RESULTS * s->spread_clip || (u->n >= FEW / 2 * s->spread_clip && knee + 2 * error < still_full(s));
    }
    return u->n >= results_needed(s);
}

static bool incident(struct state *s, const struct weir__controller_plan *plan, const struct weir__sample *sample)
{
    double bad = (double)(sample->timed_out + sample->dropped), good = (double)sample->succeeded, fade = exp(-(double)sample->span / 500e6);
    s->bad = s->bad * fade + bad;
    s->good = s->good * fade + good;
    if (s->lost > 0 && good > 0 && s->good > s->bad) {
        s->limit = s->lost;
        s->lost = 0;
        s->pace_n = s->tail_n = s->here_n = 0;
        cruise(s, plan, s->limit);
        return true;
    }
    if (bad > 0 && s->bad > 2 * s->good && s->bad >= 3) {
        if (s->lost <= 0)
            s->lost = s->limit;
        cruise(s, plan, fmax(s->limit / 2, 2));
        s->bad /= 2;
        return true;
    }
    return s->lost > 0;
}

static double step(const struct weir__controller_plan *plan, void *state, const struct weir__sample *sample)
{
    struct state *s = state;

    if (!(s->limit > 0)) {
        s->gap = 1;
        s->spread = s->spread_clip = 1;
        s->doubt = 1;
        cruise(s, plan, (double)plan->initial);
        s->settle = (double)sample->mean;
    }
    if (incident(s, plan, sample))
        return s->in_force;
    if (s->settle > 0) {
        s->settle -= (double)sample->span;
        return s->in_force;
    }
    add(&s->sum, sample, s);
    if (!is_over(s))
        return s->in_force;
    s->took = s->sum.time / s->sum.n;
    (s->phase == OUT ? end_out : s->phase == IN ? end_in : end_cruise)(s, plan);
    return s->in_force;
}

static void tell(const void *state, char *out, size_t size)
{
    const struct state *s = state;
    snprintf(out, size, "knee %.0f", s->knee);
}

const struct weir__controller weir__controller_weir = {
    .name = "weir",
    .summary = "Weir's own: nothing needs to be chosen",
    .defaults = { .initial = 20, .min = 1, .max = 16384, .look = 20 * WEIR_MILLISECOND, .look_samples = 1 },
    .step = step,
    .tell = tell,
};
