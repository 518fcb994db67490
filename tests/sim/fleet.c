/* fleet.c SEED ROUNDS -- random stories of a fleet: nodes that crash, retire and are cut off, a
 * network that loses, doubles and reorders, clocks that step, a Redis that stops and fails over
 * without its last writes.
 *
 * Laws: never more than the bound (fleet-laws.h); every ask is answered once; and when the last
 * fault is over, the limit is used again within HEAL.  A story that breaks one is made as short as
 * it gets, and printed.
 */
#include "rounds.h"
#include "sim/fleet-laws.h"

#define HEAL    (2 * S)
#define MEASURE (2 * S)  /* after that, the limit must be used; ... */
#define SLIDES  (10 * S) /* ... one that slides, for longer: units come back many at once */

enum {
    RUNS_MAX = 400, /* to make a story shorter */
    LINES = 60,     /* of it that are printed */
};

static const struct {
    const char *text;
    double rate;
    bool large; /* enough at once for asks of several units */
} kinds[] = {
    { "gcra 1000/1s burst 1000", 1000, true },     { "token-bucket 500/1s burst 50", 500, true },
    { "gcra 2000/1s burst 300", 2000, true },      { "token-bucket 100/1s", 100, true },
    { "gcra 300/1s burst 3", 300, false },         { "leaky-bucket 400/1s burst 200", 400, true },
    { "fixed-window 500/1s", 500, true },          { "fixed-window 100/100ms", 1000, true },
    { "sliding-window 300/1s", 300, true },        { "sliding-log 100/1s", 100, true },
    { "token-bucket 600/1m burst 20", 10, false }, { "gcra 4000/1s burst 4000", 4000, true },
};

/* ------------------------------------------------------------------ stories ---- */

/* A clock that was set back is a fault until it is where it was: nothing is due before. */
static weir_time add_faults(struct story *s, weir_time from, weir_time to)
{
    int n = int_between(1, 12);
    weir_time last = from, behind = 0;

    for (int i = 0; i < n; i++) {
        struct event *e = add_event(s);
        e->kind = (uint8_t)between(EVENT_CRASH, EVENT_RETIRE);
        e->at = between(from, to);
        e->node = (uint16_t)between(0, s->nodes - 1);
        e->span = between(1, one_in(3) ? 1000 : 100) * MS;
        e->n = (int32_t)between(2, 20);
        if (e->kind == EVENT_STEP)
            e->span = between(-900, 3000) * MS;
        if (e->kind == EVENT_STALL && one_in(8))
            e->span = between(1000, 3000) * MS;
        weir_time over = e->at + (e->span > 0 ? e->span : 0);
        behind += e->kind == EVENT_STEP && e->span < 0 ? -e->span : 0;
        if (e->kind == EVENT_FAIL) {
            e->span = one_in(2) ? 0 : between(0, 100) * MS;
            struct event *copy = add_event(s);
            copy->kind = EVENT_COPY;
            copy->at = events[s->n - 2].at - between(0, 50) * MS;
        }
        last = over > last ? over : last;
    }
    return last + behind;
}

/* Redis comes and goes, for hardly longer than nodes need to be back. */
static weir_time add_flapping(struct story *s, weir_time from)
{
    int n = int_between(3, 12);
    weir_time at = from;

    for (int i = 0; i < n; i++) {
        *add_event(s) =
            (struct event){ .kind = EVENT_STOP, .at = at, .span = between(100, 900) * MS };
        at += events[s->n - 1].span + between(1, 1500) * MS;
    }
    return at;
}

struct aim {
    weir_time healed; /* after this it must be used again; 0: too little is asked */
    int limit;
};

static struct story invent(uint64_t seed, struct aim *aim)
{
    random_state = seed;
    int kind = int_between(0, (int)(sizeof(kinds) / sizeof(*kinds)) - 1);
    struct story s = { .seed = roll(),
                       .nodes = one_in(8) ? int_between(6, 24) : int_between(1, 5),
                       .n_limits = one_in(4) ? 2 : 1,
                       .keys = 1,
                       .trip = between(50, one_in(16)  ? 80000
                                           : one_in(4) ? 10000
                                                       : 500) *
                               US,
                       .patience = between(20, 200) * MS,
                       .command = 5 * US };
    double rate = kinds[kind].rate, factor = (double)between(5, 50) / 10;
    int cost = one_in(4) && kinds[kind].large ? int_between(2, 8) : 1;
    weir_time faults = one_in(5) ? 0 : S;

    s.limits[0] = kinds[kind].text;
    s.limits[1] = "token-bucket 400/1s";
    weir_time over = add_faults(&s, faults / 4, faults + S);
    if (faults == 0)
        s.n = 0;
    else if (rate <= 1000 && one_in(8))
        over = add_flapping(&s, over);
    s.length = over + HEAL + (strncmp(s.limits[0], "sliding", 7) == 0 ? SLIDES : MEASURE);
    for (int n = 0; n < s.nodes; n++) {
        double part = factor * rate / s.nodes / ((1 + cost) / 2.0);
        add_asks(&s, n, part, 0, s.length,
                 (struct event){ .kind = EVENT_ASK, .limits = 1, .n = cost });
        if (s.n_limits == 2)
            add_asks(&s, n, part / 4, 0, s.length,
                     (struct event){ .kind = EVENT_ASK, .limits = 3, .n = cost });
    }
    put_in_order(&s);
    s.share = (s.n_limits == 1 || s.nodes < 8) && one_in(2);
    s.far = one_in(8) ? between(1, 60) * MS : 0;
    *aim = (struct aim){ factor >= 2 && s.trip <= 500 * US && s.far == 0 ? over + HEAL : 0, 0 };
    return s;
}

/* --------------------------------------------------------------------- laws ---- */

/* Up to the next start of a window of Redis's clock. */
static weir_time whole_windows(const struct outcome *o, weir_time at, weir_time period)
{
    return (at + o->ahead + period - 1) / period * period - o->ahead;
}

/* Of what the limit lets pass.  The sliding window itself gives units back up to a tenth of its
 * period late.  A log passes them as they passed before, and a little later each time. */
static double least_used(const struct weir_plan *plan)
{
    return plan->algo == &weir__sliding_window ? 0.85 : 0.9;
}

/* In whole windows, where there are any. */
static bool is_used(const struct story *s, const struct outcome *o, const struct aim *aim)
{
    const struct weir_plan *plan = &o->plans[aim->limit];
    weir_time from = aim->healed, to = s->length, period = plan->limit.period;

    if (o->limits[aim->limit].terms.window) {
        from = whole_windows(o, from, period);
        to = whole_windows(o, to - period + 1, period);
    }
    double possible = rate_of(plan) * (double)(to - from);
    return (double)passed_between(&o->accounts[aim->limit][0], -1, from, to) >=
           least_used(plan) * possible - 20;
}

static const char *judge(const struct story *s, const struct aim *aim)
{
    const struct outcome *o = fleet_run(s);
    const char *law = law_broken(s, o);

    if (law == NULL && aim->healed > 0 && !is_used(s, o, aim))
        law = "used again when the faults are over";
    return law;
}

/* ----------------------------------------------------------------- shorten ---- */

/* Takes events out, in ever smaller pieces, as long as the same law is broken without them. */
static void shorten(struct story *s, const struct aim *aim, const char *law)
{
    static struct event rest[EVENTS_MAX];
    bool only_faults = aim->healed > 0 && strstr(law, "used") != NULL;
    int runs = 0;

    for (size_t piece = (s->n + 1) / 2; piece > 0 && runs < RUNS_MAX; piece /= 2) {
        for (size_t from = 0; from < s->n && runs < RUNS_MAX;) {
            size_t n = 0;
            for (size_t i = 0; i < s->n; i++)
                if (i < from || i >= from + piece ||
                    (only_faults && s->events[i].kind == EVENT_ASK))
                    rest[n++] = s->events[i];
            struct story shorter = *s;
            shorter.events = rest;
            shorter.n = n;
            const char *still = n < s->n ? judge(&shorter, aim) : NULL;
            runs += n < s->n;
            if (still != NULL && strcmp(still, law) == 0) {
                memcpy(s->events, rest, n * sizeof(*rest));
                s->n = n;
            } else {
                from += piece;
            }
        }
    }
}

static void print_story(const struct story *s)
{
    static const char *const names[] = { "ask",  "crash", "cut",  "lossy", "stop",
                                         "copy", "fail",  "step", "stall", "retire" };

    fprintf(stderr, "  %d nodes, one way %.3f ms, patience %.0f ms, %s%s%s\n", s->nodes,
            (double)s->trip / 1e6, (double)s->patience / 1e6, s->limits[0],
            s->n_limits > 1 ? " and " : "", s->n_limits > 1 ? s->limits[1] : "");
    int lines = 0;
    for (size_t i = 0; i < s->n && lines < LINES; i++) {
        const struct event *e = &s->events[i];
        if (e->kind == EVENT_ASK && s->n > LINES)
            continue; /* many asks only matter together */
        lines++;
        fprintf(stderr, "  %11.6f s  node %d  %s %d  %.3f ms\n", (double)e->at / 1e9, e->node,
                names[e->kind], e->n, (double)e->span / 1e6);
    }
    fprintf(stderr, "  %zu events in all\n", s->n);
}

static bool play(uint64_t seed)
{
    struct aim aim;
    struct story s = invent(seed, &aim);
    const char *law = judge(&s, &aim);

    if (law == NULL)
        return true;
    fprintf(stderr, "fleet.c: law broken: %s\n  again: sim-fleet %" PRIu64 " 1\n", law, seed);
    shorten(&s, &aim, law);
    print_story(&s);
    return false;
}

int main(int argc, char **argv)
{
    return play_stories(argc, argv, play);
}
