/* draw-size.c -- how many units a node draws from an account at once. */
#include "cluster/account/draw-size.h"

#include "algo/purse.h"

#define PACE_MOST (100 * WEIR_MILLISECOND)

/* Bounds that keep every product below 2^53. */
#define ASKED_MAX ((int64_t)1 << 22)
#define RATE_MAX  ((int64_t)1 << 32)
#define UNITS_MAX ((int64_t)1 << 42)
#define DUE_MAX   ((int64_t)1 << 49)
#define PARTS     ((int64_t)1 << 20) /* this node's part of the demand is counted in these */

static int64_t clamp(int64_t n, int64_t low, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

static int64_t small(weir__i128 n, int64_t most)
{
    return n > most ? most : (int64_t)n;
}

/* ---------------------------------------------------------------- terms ---- */

/* Drawing ahead would strand units (the burst is less than two horizons', a bucket shorter than a
 * life), or there is nowhere to count them: each unit has an instant or a turn of its own. */
static bool is_exact(const struct weir_plan *plan, weir_time life, weir_time horizon)
{
    const struct weir__algo *a = plan->algo;

    return a == &weir__sliding_log || a == &weir__smooth || a == &weir__warm_up ||
           (a == &weir__leaky_bucket && plan->limit.queue != 0) ||
           (a == &weir__sliding_window && (weir_time)plan->by_bucket.by < life) ||
           (weir__i128)plan->most * weir__window_longest(plan) <
               (weir__i128)2 * plan->limit.count * horizon;
}

/* Sixteen times the limit can be counted: beyond, a node seems to ask for a smaller part of the
 * demand than it does. */
static int shift_of(const struct weir_plan *plan)
{
    weir__i128 most =
        (weir__i128)16 * plan->limit.count * (1000 * WEIR_SECOND) / weir__window_longest(plan);
    int shift = 0;

    while (shift < 62 && most >> shift > RATE_MAX)
        shift++;
    return shift;
}

struct weir__draw_terms weir__draw_terms(const struct weir_plan *plan)
{
    struct weir__draw_terms t = { .life = weir__purse_life(plan), .window = weir__is_window(plan) };

    t.horizon = t.life / 4 / WEIR_MICROSECOND * WEIR_MICROSECOND;
    t.pace = weir__int_least(t.horizon, PACE_MOST);
    t.epoch = 4 * (t.pace / WEIR_MICROSECOND);
    t.due = small((weir__i128)plan->limit.count * t.pace / weir__window_longest(plan) * 1000 +
                      (weir__i128)plan->limit.count * t.pace % weir__window_longest(plan) * 1000 /
                          weir__window_longest(plan),
                  DUE_MAX);
    t.least = weir__int_least(t.due, small((weir__i128)plan->most * 1000 / 16, DUE_MAX));
    t.shift = shift_of(plan);
    t.exact = is_exact(plan, t.life, t.horizon);
    return t;
}

struct weir__draw_numbers weir__draw_numbers(const struct weir__draw_terms *t,
                                             const struct weir__draw *draw)
{
    struct weir__draw_numbers n = {
        .need = weir__int_most(draw->need, 1),
        .waiting = clamp(draw->waiting, 0, UNITS_MAX),
        .have = clamp(draw->have, 0, UNITS_MAX),
        .asked = clamp(draw->asked >> t->shift, 0, ASKED_MAX),
        .fast = clamp(draw->fast >> t->shift, 0, RATE_MAX),
        .epoch = t->epoch,
        .refill = t->due * 9 / 10,
        .of_left = t->window ? 500 : 250,
        .least_left = t->window ? 1000 : weir__int_most(1000, t->least),
    };
    weir__i128 coming =
        (weir__i128)weir__int_most(0, draw->slow) * t->horizon / (1000 * WEIR_SECOND);

    n.ahead = t->exact ? 0 : weir__int_most(0, small(coming, UNITS_MAX) - n.have);
    return n;
}

/* --------------------------------------------------------------- demand ---- */

static unsigned char *put(unsigned char *to, int64_t n, int size)
{
    for (int i = 0; i < size; i++)
        *to++ = (unsigned char)((uint64_t)n >> (8 * i));
    return to;
}

static int64_t get(const unsigned char *from, int size)
{
    uint64_t n = 0;

    for (int i = 0; i < size; i++)
        n |= (uint64_t)from[i] << (8 * i);
    return (int64_t)n;
}

bool weir__demand_read(struct weir__demand *out, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;

    *out = (struct weir__demand){ 0 };
    if (len == 0)
        return true;
    if (len != WEIR__DEMAND_SIZE || b[0] != 'D' || b[1] != 1)
        return false;
    *out = (struct weir__demand){ .since = get(b + 2, 7),
                                  .before = clamp(get(b + 9, 8), 0, ASKED_MAX),
                                  .asked = clamp(get(b + 17, 8), 0, ASKED_MAX),
                                  .life_since = get(b + 25, 7),
                                  .least_before = clamp(get(b + 32, 8), 0, WEIR__DEMAND_DEBT_MAX),
                                  .least = clamp(get(b + 40, 8), 0, WEIR__DEMAND_DEBT_MAX) };
    return true;
}

void weir__demand_write(const struct weir__demand *demand, unsigned char out[WEIR__DEMAND_SIZE])
{
    out[0] = 'D';
    out[1] = 1;
    out = put(put(put(out + 2, demand->since, 7), demand->before, 8), demand->asked, 8);
    put(put(put(out, demand->life_since, 7), demand->least_before, 8), demand->least, 8);
}

int64_t weir__demand_count(struct weir__demand *d, const struct weir__draw_numbers *n,
                           weir_time now)
{
    int64_t us = now / WEIR_MICROSECOND, start = us - us % n->epoch;

    if (start - d->since >= 2 * n->epoch || d->since - us > 2 * n->epoch) /* the clock stepped */
        d->since = start, d->before = d->asked = 0;
    else if (start > d->since)
        d->since = start, d->before = d->asked, d->asked = 0;
    d->asked = weir__int_least(d->asked + n->asked, ASKED_MAX);
    return (d->before + d->asked) * 1000000000 / (n->epoch + weir__int_most(0, us - d->since));
}

int64_t weir__demand_life(const struct weir__draw_terms *t)
{
    return 2 * (t->window ? t->epoch : t->life / WEIR_MICROSECOND) / 1000 + 2;
}

/* --------------------------------------------------------------- a draw ---- */

static int64_t share_of(const struct weir__draw_numbers *n, int64_t demand, int64_t left)
{
    int64_t most = weir__int_most(demand, n->fast), part = most > 0 ? n->fast * PARTS / most : 0;
    int64_t supply = (n->refill + n->of_left * left) / 1000;

    return supply / PARTS * part + supply % PARTS * part / PARTS;
}

struct weir__drawn weir__draw_choose(const struct weir__draw_numbers *n, int64_t demand,
                                     int64_t left)
{
    int64_t wanted = n->waiting + n->ahead;

    left = clamp(left, 0, UNITS_MAX);
    struct weir__drawn drawn = { .share = share_of(n, demand, left) };
    int64_t units = weir__int_most(weir__int_least(n->waiting, weir__int_most(n->need, left / 2)),
                                   weir__int_least(wanted, drawn.share - n->have));
    units = weir__int_least(left, units);
    if (units < n->need)
        units = left >= n->need && (n->waiting > 0 || n->have < 1) ? n->need : 0;
    drawn.units = units;
    drawn.spent =
        units < wanted ? units == 0 || (left - units) * 1000 < n->least_left : left < n->need;
    return drawn;
}

void weir__draw_step(const struct weir_plan *plan, void *state, const struct weir_ask *need,
                     struct weir__drawn *drawn, struct weir_decision *d)
{
    struct weir_ask ask = { .now = need->now, .cost = drawn->units };

    if (ask.cost > 0) {
        if (weir_step(plan, state, &ask, d))
            return;
        drawn->units = 0;
        drawn->spent = true;
    }
    ask.cost = 0;
    weir_step(plan, state, &ask, d); /* takes nothing, and follows a clock that was set back */
    ask.cost = need->cost;
    if (weir_step_peek(plan, state, &ask, d)) { /* left, and yet not drawn */
        ask.cost = 0;
        weir_step_peek(plan, state, &ask, d);
        weir__refuse(d, 0);
    } else {
        drawn->spent = true;
    }
}

weir_time weir__drawn_life(const struct weir_plan *plan, weir_time at, weir_time now,
                           const struct weir_decision *d)
{
    weir__i128 end = (weir__i128)at + weir__purse_life(plan), start, over = end;
    weir_time first;

    if (plan->algo == &weir__calendar) {
        over = weir__calendar_window(plan, at, &first);
        over += first;
    } else if (plan->algo == &weir__fixed_window) {
        over = (weir__i128)now + d->reset;
        start = over - plan->limit.period;
        over = at < start ? at : over; /* that is another window already */
    } else if (plan->algo == &weir__sliding_window) {
        over = (weir__i128)(at / (weir_time)plan->by_bucket.by + 1) * plan->by_bucket.by;
    }
    end = over < end ? over : end;
    return end < at ? 0 : (weir_time)(end - at);
}

struct weir__drawn weir__draw_units(const struct weir_plan *plan, void *state,
                                    struct weir__demand *demand, const struct weir__draw *draw,
                                    weir_time now, struct weir_decision *d)
{
    struct weir__draw_terms terms = weir__draw_terms(plan);
    struct weir__draw_numbers numbers = weir__draw_numbers(&terms, draw);
    int64_t rate = weir__demand_count(demand, &numbers, now);

    weir_step_peek(plan, state, &(struct weir_ask){ .now = now }, d);
    if (weir__is_meter(plan))
        weir__demand_look(demand, plan, state, now);
    struct weir__drawn drawn = weir__draw_choose(&numbers, rate, d->remaining);
    weir__draw_step(plan, state, &(struct weir_ask){ .now = now, .cost = draw->need }, &drawn, d);
    drawn.at = now;
    drawn.life = weir__drawn_life(plan, now, now, d);
    return drawn;
}
