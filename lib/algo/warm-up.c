/* warm-up.c -- a key that was idle starts slowly: cold times slower at first, at full rate after
 * the warm-up time.
 *
 * As smooth.c, an ask waits for the debt of those before it and leaves its own cost to the next.
 * But idle time does not save up credit here; it saves up cold, which makes units dearer.  Guava
 * draws it as a trapezoid; with saved-up units measured as the time they take at full rate:
 *
 *     price of a unit
 *     cold * p |               .
 *              |            .  |      flat  = warmup / 2
 *              |         .     |      slope = 2 * warmup / (1 + cold)
 *            p |.......        |
 *              +------+--------+--> cold saved up, as time
 *              0     flat    flat + slope
 *
 * Using it up costs the area under the curve, so going from cold to warm takes exactly the warm-up
 * time.  Idle time cools a warm key down in the warm-up time, too.
 *
 *     0  int64   next   when the debt is paid (whole ns)
 *     8  uint64  used   (cold used up, in ns; 0 is entirely cold) * scale + (parts of a ns that
 *                       `next` lacks); in the top 6 bits the length, in bits, of the debt when it
 *                       was last reckoned: tells a long debt from a clock that has stepped back
 *     bound      rate * T, plus the one ask that borrows, in any interval of length T; 1/cold of
 *                that from a cold start
 *
 * Guava's SmoothWarmingUp.  The area is the difference of one integral at two points, each rounded
 * once; rounding cancels from ask to ask, and nothing drifts.  Deviations: ns instead of separately
 * truncated us.  Unlike Sentinel's, a key that stops exactly at the corner of the curve cools down
 * like any other.
 */
#include <inttypes.h>

#include "algo/debt.h"

#define WARMUP_MAX \
    ((weir_time)1 << 50) /* 13 days; the square of it times cold stays within 128 bits */
#define COLD_MAX     1000
#define LENGTH_SHIFT 58
#define USED_MASK    (((uint64_t)1 << LENGTH_SHIFT) - 1)

struct state {
    weir_time next;
    uint64_t used;
};

/* A state taken apart. */
struct heat {
    weir_time next;
    uint64_t parts;  /* beyond next, less than scale */
    weir_time saved; /* cold saved up: 0 is warm */
};

static weir_time saved_max(const struct weir_plan *plan)
{
    return plan->heat_warm + plan->heat_range;
}

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    struct weir_limit *l = &plan->limit;

    l->cold = l->cold ? l->cold : WEIR__COLD_DEFAULT;
    l->warmup = l->warmup ? l->warmup : l->period;
    if (l->warmup < 2 || l->warmup > WARMUP_MAX)
        return weir__fail(error, WEIR_INVALID, "warmup must be from 2ns to 13 days");
    if (l->cold < 1 || l->cold > COLD_MAX)
        return weir__fail(error, WEIR_INVALID, "cold must be from 1 to %d, and is %" PRId32,
                          COLD_MAX, l->cold);
    plan->heat_warm = l->warmup / 2;
    plan->heat_range = 2 * l->warmup / (1 + l->cold);
    if (plan->heat_range == 0 ||
        !weir__price_fit(plan, USED_MASK / (uint64_t)(saved_max(plan) + 1)))
        return weir__fail(error, WEIR_INVALID,
                          "%" PRId64 " per period and this warmup cannot be kept exactly; take a "
                          "shorter warmup or a rounder count",
                          l->count);
    plan->most = l->burst;
    plan->packs = false;
    return WEIR_OK;
}

static struct heat open_state(const struct weir_plan *plan, const struct state *s)
{
    uint64_t word = s->used & USED_MASK, used = weir__divide(word, &plan->by_scale);
    struct heat h = { .next = s->next & INT64_MAX, .parts = word - used * plan->by_scale.by };

    h.saved = used > (uint64_t)saved_max(plan) ? 0 : saved_max(plan) - (weir_time)used;
    return h;
}

static void close_state(const struct weir_plan *plan, const struct heat *h, weir_time now,
                        struct state *s)
{
    weir_time debt = h->next > now ? h->next - now : 0;
    uint64_t length = debt == 0 ? 0 : 64 - (uint64_t)__builtin_clzll((uint64_t)debt);

    s->next = h->next;
    s->used = ((uint64_t)(saved_max(plan) - h->saved) * plan->by_scale.by + h->parts) |
              length << LENGTH_SHIFT;
}

/* The state bounds the debt as it was last reckoned. */
static weir_time longest_of(const struct state *s)
{
    return (weir_time)(((uint64_t)1 << (s->used >> LENGTH_SHIFT)) - 1);
}

/* The debt looks longer now by more than an ask can be late: the asker was stopped, and *now
 * becomes the present; or the clock has stepped back (true), and the debt starts from here: nothing
 * is given away, and nobody waits for the clock to catch up. */
static __attribute__((noinline, cold)) bool
follow_clock(const struct weir_plan *plan, const struct state *s, struct heat *h, weir_time *now)
{
    weir_time longest = longest_of(s), moment = weir__moment(plan->clock, h->next - longest, *now);

    if (moment != *now) {
        *now = moment;
        return false;
    }
    h->next = moment > INT64_MAX - longest ? INT64_MAX : moment + longest;
    return true;
}

static bool is_early(const struct state *s, const struct heat *h, weir_time now)
{
    weir_time longest = longest_of(s);

    return h->next - now > longest && h->next - now - longest > WEIR__LATE_MAX;
}

/* Time that has passed since the debt was paid makes the key colder. */
static void cool(const struct weir_plan *plan, struct heat *h, weir_time now)
{
    if (now <= h->next)
        return;
    weir_time max = saved_max(plan), passed = now - h->next;
    weir__u128 gained =
        ((weir__u128)(uint64_t)passed * (uint64_t)max + (uint64_t)plan->limit.warmup - 1) /
        (uint64_t)plan->limit.warmup;
    h->saved =
        gained >= (weir__u128)(uint64_t)(max - h->saved) ? max : h->saved + (weir_time)gained;
    h->next = now;
    h->parts = 0;
}

/* The extra time, above the full-rate price, that using up the cold from 0 to `saved` takes. */
static weir__u128 area(const struct weir_plan *plan, weir_time saved)
{
    if (saved <= plan->heat_warm)
        return 0;
    weir__u128 x = (uint64_t)(saved - plan->heat_warm), rise = (uint64_t)plan->limit.cold - 1,
               run = (uint64_t)plan->heat_range;
    return x * x * rise / (2 * run);
}

static void pay(const struct weir_plan *plan, struct heat *h, int64_t cost)
{
    weir__u128 parts = (weir__u128)(uint64_t)cost * (uint64_t)plan->price + h->parts;
    weir__u128 span = parts / plan->by_scale.by;
    weir_time warmer = span >= (weir__u128)(uint64_t)h->saved ? 0 : h->saved - (weir_time)span;
    weir__u128 next =
        (weir__u128)(uint64_t)h->next + span + (area(plan, h->saved) - area(plan, warmer));

    h->parts = (uint64_t)(parts - span * plan->by_scale.by);
    h->saved = warmer;
    h->next = next > INT64_MAX ? INT64_MAX : (weir_time)next;
}

static weir_time until(weir_time then, weir_time now)
{
    return then > now ? then - now : 0;
}

static weir_time next_up(const struct heat *h)
{
    return h->next + (h->parts > 0 && h->next < INT64_MAX);
}

static weir_time cold_at(const struct weir_plan *plan, const struct heat *h)
{
    weir__u128 max = (weir__u128)(uint64_t)saved_max(plan), used = max - (uint64_t)h->saved;
    weir__u128 at =
        (weir__u128)(uint64_t)next_up(h) + (used * (uint64_t)plan->limit.warmup + max - 1) / max;

    return at > INT64_MAX ? INT64_MAX : (weir_time)at;
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct heat h = open_state(plan, state);
    weir_time now = ask->now;

    if (__builtin_expect(is_early(state, &h, now), 0)) {
        weir_time moment = now;
        if (follow_clock(plan, state, &h, &moment) && take)
            close_state(plan, &h, moment, state);
        now = moment;
    }
    cool(plan, &h, now);
    weir_time wait = until(next_up(&h), now);
    bool granted = wait <= ask->wait_max;
    if (granted)
        pay(plan, &h, ask->cost);
    d->remaining = next_up(&h) > now ? 0 : plan->most;
    d->reset = until(cold_at(plan, &h), now);
    if (!granted)
        return weir__refuse(d, wait - ask->wait_max);
    if (take && ask->cost > 0)
        close_state(plan, &h, now, state);
    return weir__grant(d, wait);
}

/* As of *now, which becomes the present if the caller was stopped. */
static struct heat open_at(const struct weir_plan *plan, const struct state *s, weir_time *now)
{
    struct heat h = open_state(plan, s);

    if (is_early(s, &h, *now))
        follow_clock(plan, s, &h, now);
    cool(plan, &h, *now);
    return h;
}

static void pay_back(const struct weir_plan *plan, struct heat *h, weir__i128 back, weir_time now,
                     struct state *s)
{
    weir__i128 parts = (weir__i128)h->next * (weir__i128)plan->by_scale.by + h->parts - back;
    weir__i128 paid = (weir__i128)now * (weir__i128)plan->by_scale.by;

    if (parts < paid)
        parts = paid;
    weir__i128 next = parts / (weir__i128)plan->by_scale.by;
    h->parts = (uint64_t)(parts - next * (weir__i128)plan->by_scale.by);
    h->next = next > INT64_MAX ? INT64_MAX : (weir_time)next;
    close_state(plan, h, now, s);
}

/* Debt goes back at the full-rate price; the warmth that the units made stays. */
static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct heat h = open_at(plan, state, &now);

    pay_back(plan, &h, (weir__i128)units * plan->price, now, state);
}

static void give_unused(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now)
{
    struct heat h = open_at(plan, state, &now);

    pay_back(plan, &h, weir__debt_unused(plan, unused, now), now, state);
}

/* As in Guava, savings stay the same share of their maximum, and debt the same time. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct heat h = open_state(old_plan, from);

    now = weir__int_most(now, h.next - longest_of(from)); /* it moves no key back in time */
    cool(old_plan, &h, now);
    h.saved = (weir_time)((weir__u128)(uint64_t)h.saved * (uint64_t)saved_max(new_plan) /
                          (uint64_t)saved_max(old_plan));
    h.parts = (uint64_t)((weir__u128)h.parts * new_plan->by_scale.by / old_plan->by_scale.by);
    close_state(new_plan, &h, now, to);
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    const struct state *s = state;
    struct heat h = open_state(plan, s);

    return s->next == 0 && s->used == 0 ? 0 : cold_at(plan, &h);
}

const struct weir__algo weir__warm_up = {
    .name = "warm-up",
    .summary = "as smooth, but a key that was idle starts slowly: for caches and pools that must "
               "fill first",
    .borrows = true,
    .prepare = prepare,
    .step = step,
    .give = give,
    .give_unused = give_unused,
    .change = change,
    .idle_at = idle_at,
};
