/* adaptive.c -- Weir's own controller (prototype) */
#include "guard/controller.h"

#include <math.h>
#include <stdio.h>

#define GAP_NONE (-1e6)
#define DEEP       0.6  /* a breath out while it is not known where the knee is */
#define SETTLE 1.0
#define SHALLOW    0.9 /* a breath out near the knee */
#define STILL_FULL 1.18
#define CHANGED    0.10
#define SIGMAS     3.0
#define WAIT_COST  0.08
#define RESULTS    60.0
#define REST_MIN   2.0
#define REST_MAX   16.0
#define KNOWN_MAX  600.0

enum phase { FRESH, CRUISE, OUT };

struct sum {
    double n, time, area, span, bad, refused, failed;
    double most, square, clip, clip2;
};

struct state {
    double limit; /* the middle, without breath; 0: fresh */
    double in_force;
    double service; /* R0: how long work takes when nobody waits, ns; 0: not known */
    double service_n;
    double pace, pace_n;   /* X while cruising since last verified */
    double gap;   /* how many permits are free on average while it binds; <0 unknown */
    double knee;  /* verified */
    double rest, rested; /* seconds between breaths, and since the last */
    double lost;   /* the limit that worked before the incident; 0: none */
    double settle; /* ns still to be ignored */
    double grown;
    double bad, good, known, knee_n;
    double cap, cvm2, mean, mean_n; /* mean: clipped, of service; line: in - pace * clipped, pooled */
    double line, line_n, knee_v;
    double cv2, last, last_n;
    int64_t phase;
    int64_t doubt, depth;
    struct sum sum;
};
_Static_assert(sizeof(struct state) <= WEIR__CONTROLLER_OWN, "fits");

static double clamp(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

static void add(struct sum *u, const struct weir__sample *s, double cap)
{
    u->n += (double)s->succeeded;
    u->failed += (double)s->failed;
    u->bad += (double)(s->timed_out + s->dropped);
    u->time += (double)s->mean * (double)s->succeeded;
    u->area += s->area;
    u->span += (double)s->span;
    for (unsigned i = 0; i < WEIR__BINS; i++)
        if (s->times->counts[i] > 0) {
            double c = s->times->counts[i], v = (double)weir__bin_middle(i), w = cap > 0 ? fmin(v, cap) : v;
            u->square += c * v * v;
            u->clip += c * w;
            u->clip2 += c * w * w;
        }
    u->refused += (double)s->refused;
    u->most = fmax(u->most, (double)s->in_flight_max);
}

static double head_room(const struct state *s, double knee)
{
    double g = s->gap != GAP_NONE ? clamp(s->gap, 0.05, 20) : 1, r = g / (1 + g), cost = WAIT_COST / (g * -log(r));
    double room = cost < 1 ? log(cost) / log(r) : 0;
    return clamp(room, 1, 1 + 2.5 * sqrt(knee));
}

static void go(struct state *s, enum phase phase, double limit)
{
    s->in_force = floor(fmax(limit, 1) + 0.5);
    s->phase = phase;
    s->settle = -1;
    s->sum = (struct sum){ 0 };
}

static void cruise(struct state *s, double limit)
{
    double before = s->in_force;
    s->limit = limit;
    go(s, CRUISE, limit);
    if (s->in_force == before)
        s->settle = 0;
}

static void breathe_out(struct state *s, double knee, double by)
{
    double to = fmin(knee * by, s->in_force - 1);
    go(s, OUT, to);
}

static void learn_service(struct state *s, double r, double n)
{
    double off = s->service > 0 ? fabs(log(r / s->service)) : 9, noise = sqrt(s->cv2 / n + s->cv2 / fmax(s->service_n, 1));
    if (off > 2 * noise) {
        s->service = r;
        s->service_n = n;
    } else {
        double all = s->service_n + n;
        s->service = exp((log(s->service) * s->service_n + log(r) * n) / all);
        s->service_n = fmin(all, KNOWN_MAX * s->cv2);
    }
}

static void pool_pace(struct state *s, double x, double n)
{
    s->pace = s->pace_n > 0 ? exp((log(s->pace) * s->pace_n + log(x) * n) / (s->pace_n + n)) : x;
    s->pace_n = fmin(s->pace_n + n, KNOWN_MAX * s->cv2);
}

static void end_cruise(struct state *s)
{
    struct sum u = s->sum;
    double x = u.n / u.span, r = u.time / u.n, in = fmax(x * r, 1e-9);
    bool binds = u.refused > 0 && u.most >= s->in_force;

    s->rested += u.span / 1e9;
    double off_s = s->service > 0 ? log(s->service / r) : 9;
    if (off_s > SIGMAS * sqrt(s->cv2 / u.n + s->cv2 / fmax(s->service_n, 1)) && off_s > 0.05) { /* shorter than anything known */
        s->service = r;
        s->service_n = u.n;
        s->doubt = 1;
    } else if (in < 0.9 * s->knee)
        learn_service(s, r, u.n);
    if (!binds) {
        s->pace_n = 0;
        s->last_n = 0;
        cruise(s, s->limit);
        return;
    }
    double wide = fmin(u.square / u.n / (r * r) - 1, 10);
    if (s->last_n > 0) {
        double d = log(x / s->last), v = d * d / (1 / u.n + 1 / s->last_n);
        s->cv2 += 0.05 * (fmin(v, 6 * s->cv2) - s->cv2);
        s->cv2 = clamp(s->cv2, 0.1, 10);
    }
    s->cv2 = fmax(s->cv2, wide);
    s->last = x;
    s->last_n = u.n;
    /* changed? */
    double off = s->pace_n > 0 ? log(x / s->pace) : 0, noise = s->pace_n > 0 ? sqrt(s->cv2 / u.n + s->cv2 / s->pace_n) : 1;
    if (fabs(off) > CHANGED && fabs(off) > SIGMAS * noise)
        s->doubt = 1, s->pace_n = 0;
    pool_pace(s, x, u.n);
    double room = head_room(s, s->knee > 0 ? s->knee : in), m = u.clip / u.n;
    if (s->cap > 0)
        s->cvm2 += 0.1 * (clamp(u.clip2 / u.n / (m * m) - 1, 0.05, 10) - s->cvm2);
    double waiting = s->mean_n > 0 ? x * (m - s->mean) : x * (r - s->service);
    bool no_queue = s->knee > 0 && waiting < 0.3 * room;
    double a = s->in_force - s->gap - s->pace * m;
    s->line = s->line_n > 0 ? (s->line * s->line_n + a * u.n) / (s->line_n + u.n) : a;
    s->line_n = fmin(s->line_n + u.n, 300 * s->cvm2);
    if (no_queue) {
        s->grown = clamp(2 * s->grown, room, s->limit / 2);
        if (++s->depth >= 2) {
            s->pace_n = 0;
            s->knee = fmax(s->knee, in);
            s->line_n = 0;
        }
        cruise(s, fmax(s->limit, in + s->grown));
        return;
    }
    if (s->depth >= 2) {
        s->knee = s->in_force - s->gap - waiting;
        s->knee_n = 0;
        s->rested = 1e9;
    }
    s->grown = 0;
    s->depth = 0;
    if (s->doubt || s->rested > s->rest) {
        s->known = s->knee > 0 ? s->service : 0;
        breathe_out(s, s->doubt ? in : s->knee, s->doubt ? DEEP : SHALLOW);
        return;
    }
    cruise(s, s->knee + room);
}

static void end_out(struct state *s)
{
    struct sum u = s->sum;
    double x = u.n / u.span, r = u.time / u.n, at = x * r;
    bool full = s->doubt && log(s->pace / x) < -0.5 * log(DEEP) && !(s->known > 0 && fabs(log(r / s->known)) < 0.25);

    if (full && s->in_force > 1) { /* still full: the knee is further down */
        pool_pace(s, x, u.n);
        breathe_out(s, at, DEEP);
        return;
    }
    learn_service(s, r, u.n);
    double m = u.clip / u.n, knee = s->pace * r, n = 1 / (1 / u.n + 1 / s->pace_n), v = s->cv2, off;
    bool shifted = !s->doubt && s->cap > 0 && s->line_n > 0 && s->mean_n > 0;
    if (shifted) {
        knee = fmax(s->line + s->pace * m, at);
        n = 1 / (1 / u.n + 1 / s->line_n);
        v = s->cvm2 * (s->pace * m / knee) * (s->pace * m / knee);
    }
    off = s->knee > 0 && s->knee_n > 0 ? fabs(log(knee / s->knee)) : 9;
    bool same = off < 2.5 * sqrt(v / n + s->knee_v);
    double w = 1 / (v / n), wk = s->knee_n > 0 ? 1 / s->knee_v : 0;
    s->knee = same ? exp((log(s->knee) * wk + log(knee) * w) / (wk + w)) : knee;
    s->knee_v = same ? fmax(1 / (w + wk), v / n / 8) : v / n;
    s->knee_n = 1;
    double cap = 4 * m;
    if (s->cap <= 0 || fabs(log(cap / s->cap)) > 0.2) {
        s->cap = cap;
        s->line_n = s->mean_n = 0;
    } else if (s->mean_n > 0 && fabs(log(m / s->mean)) < 2.5 * sqrt(s->cvm2 / u.n + s->cvm2 / s->mean_n)) {
        s->mean = (s->mean * s->mean_n + m * u.n) / (s->mean_n + u.n);
        s->mean_n = fmin(s->mean_n + u.n, 4 * u.n);
    } else {
        s->mean = m;
        s->mean_n = u.n;
    }
    double room = head_room(s, s->knee);
    same = same && s->knee * sqrt(s->knee_v) < 0.6 * room;
    s->rest = same && !s->doubt ? fmin(s->rest * 1.7, REST_MAX) : REST_MIN;
    s->rested = 0;
    s->doubt = 0;
    s->depth = 0;
    s->pace_n = fmin(s->pace_n, RESULTS * s->cv2);
    cruise(s, s->knee + head_room(s, s->knee));
}

static double out_results(const struct state *s)
{
    double rel = s->knee > 0 ? s->knee / head_room(s, s->knee) : 1;
    return s->cvm2 * clamp(1.5 * rel * rel, 25, 2000);
}

static bool is_over(const struct state *s)
{
    const struct sum *u = &s->sum;
    double r = u->n > 0 ? u->time / u->n : 0;
    if (u->n < 3)
        return u->span > 5e9 && u->n > 0;
    if (u->span < fmax(2 * r, 50e6))
        return false;
    if (u->span > 2e9 + 2 * r)
        return true;
    if (s->phase == OUT && s->doubt) {
        double x = u->n / u->span, z = (log(s->pace / x) + 0.5 * log(DEEP)) / sqrt(s->cv2 / u->n + s->cv2 / s->pace_n);
        return u->n >= 60 * s->cv2 || (u->n >= 15 * s->cv2 && z < -2);
    }
    return u->n >= (s->phase == OUT ? out_results(s) : fmax((s->doubt ? 30 : RESULTS) * s->cv2, s->doubt ? 0 : out_results(s)));
}

static bool incident(struct state *s, const struct weir__sample *sample)
{
    double bad = (double)(sample->timed_out + sample->dropped), good = (double)sample->succeeded, fade = exp(-(double)sample->span / 500e6);
    s->bad = s->bad * fade + bad;
    s->good = s->good * fade + good;
    if (s->lost > 0 && good > 0 && s->good > s->bad) {
        s->limit = s->lost;
        s->lost = 0;
        s->pace_n = 0;
        go(s, CRUISE, s->limit);
        return true;
    }
    if (bad > 0 && s->bad > 2 * s->good && s->bad >= 3) {
        if (s->lost <= 0)
            s->lost = s->limit;
        s->limit = fmax(s->limit / 2, 2);
        go(s, CRUISE, s->limit);
        s->bad /= 2;
        return true;
    }
    return s->lost > 0;
}

static double step(const struct weir__controller_plan *plan, void *state, const struct weir__sample *sample)
{
    struct state *s = state;

    if (!(s->limit > 0)) {
        s->gap = GAP_NONE;
        s->cv2 = 1;
        s->cvm2 = 1;
        s->rest = REST_MIN;
        s->doubt = 1;
        s->limit = (double)plan->initial;
        cruise(s, s->limit);
        s->settle = 0;
    }
    if (incident(s, sample))
        goto done;
    if (s->settle < 0)
        s->settle = sample->mean > 0 ? SETTLE * (double)sample->mean : 0;
    if (s->settle > 0) {
        s->settle -= (double)sample->span;
        if (s->settle > 0)
            goto done;
        s->settle = 0;
        goto done;
    }
    add(&s->sum, sample, s->cap);
    if (sample->refused > 0 && s->phase == CRUISE) {
        double asks = (double)(sample->entered + sample->refused), seen = s->in_force - (double)sample->in_flight;
        seen -= (double)sample->succeeded / ((double)sample->succeeded + asks);
        s->gap = s->gap == GAP_NONE ? seen : s->gap + 0.03 * (clamp(seen, -1, s->in_force) - s->gap);
    }
    if (!is_over(s))
        goto done;
    if (s->phase == OUT)
        end_out(s);
    else
        end_cruise(s);
done:
    s->limit = clamp(s->limit, (double)plan->min, (double)plan->max);
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
