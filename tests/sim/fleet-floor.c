/* fleet-floor.c -- what a fleet must achieve when nothing fails: the limit is used, nodes get their
 * parts, hot keys cost few commands, all-or-nothing does not starve, and units go back. */
#include "unit/test.h"

#include "sim/fleet-laws.h"

static struct story story_of(const char *limit, int nodes, weir_time length)
{
    return (struct story){ .seed = 1,
                           .nodes = nodes,
                           .n_limits = 1,
                           .keys = 1,
                           .limits = { limit },
                           .length = length,
                           .trip = 250 * US,
                           .patience = 50 * MS,
                           .command = 5 * US };
}

static double per_second(const char *text)
{
    struct weir_limit limit;

    assert_int_equal(weir_limit_parse(&limit, text, NULL), WEIR_OK);
    return (double)limit.count * 1e9 / (double)limit.period;
}

static const struct event one = { .kind = EVENT_ASK, .limits = 1, .n = 1 };

/* All nodes together ask for `factor` times the limit; the first of them for `first` of that. */
static void ask_for(struct story *s, double factor, double first)
{
    double rate = factor * per_second(s->limits[0]);

    random_state = s->seed;
    for (int n = 0; n < s->nodes; n++)
        add_asks(s, n,
                 rate * (s->nodes == 1 ? 1
                         : n == 0      ? first
                                       : (1 - first) / (s->nodes - 1)),
                 0, s->length, one);
    put_in_order(s);
}

static const struct outcome *run(const struct story *s)
{
    const struct outcome *o = fleet_run(s);
    const char *law = law_broken(s, o);

    if (law != NULL)
        fail_msg("%s, %d nodes: law broken: %s", s->limits[0], s->nodes, law);
    return o;
}

/* The part of the limit that was used, from a full second on. */
static double used(const struct story *s, const struct outcome *o, weir_time from)
{
    return (double)passed_between(&o->accounts[0][0], -1, from, s->length) /
           (rate_of(&o->plans[0]) * (double)(s->length - from));
}

/* One limiter, on one host, for the same asks: which of them pass. */
static bool by_one[EVENTS_MAX];

static void ask_one_limiter(const struct story *s)
{
    struct weir_limit limit;
    struct weir_plan plan;
    struct weir_decision d;

    assert_int_equal(weir_limit_parse(&limit, s->limits[0], NULL), WEIR_OK);
    assert_int_equal(weir__plan_make(&plan, &limit, NULL), WEIR_OK);
    void *state = calloc(1, plan.state_size);
    assert_non_null(state);
    for (size_t i = 0; i < s->n; i++) {
        struct weir_ask ask = { .cost = s->events[i].n, .now = 1000000 * S + s->events[i].at };
        by_one[i] = weir_step(&plan, state, &ask, &d);
    }
    free(state);
}

/* Of a node, or of all: -1.  `o` NULL: by one limiter. */
static double passed(const struct story *s, const struct outcome *o, int node, weir_time from,
                     weir_time to)
{
    int64_t units = 0;

    if (o != NULL)
        return (double)passed_between(&o->accounts[0][0], node, from, to);
    for (size_t i = 0; i < s->n && s->events[i].at < to; i++)
        units += by_one[i] && s->events[i].at >= from && (node < 0 || s->events[i].node == node);
    return (double)units;
}

static double least_part(const struct story *s, const struct outcome *o, weir_time from,
                         weir_time to)
{
    double all = passed(s, o, -1, from, to), least = 1;

    for (int n = 0; n < s->nodes; n++) {
        double part = passed(s, o, n, from, to) * s->nodes / all;
        least = part < least ? part : least;
    }
    return least;
}

static int64_t asks(const struct story *s, const struct outcome *o)
{
    int64_t n = 0;

    for (int i = 0; i < s->nodes; i++)
        n += o->asked[i];
    return n;
}

/* ------------------------------------------------------------------- floor ---- */

/* Windows of which nothing may be left over; meters, which may lack one draw at the end. */
TEST(test_the_limit_is_used)
{
    static const struct {
        const char *limit;
        weir_time length;
        double least; /* a burst that is full again in 10 ms leaves fifty nodes little time */
    } rows[] = {
        { "gcra 1000/1s burst 1000", 21 * S, 0.998 }, { "gcra 1000/1s burst 100", 21 * S, 0.998 },
        { "gcra 1000/1s burst 10", 21 * S, 0.98 },    { "token-bucket 100/1s", 101 * S, 0.998 },
        { "fixed-window 500/1s", 21 * S, 0.998 },     { "gcra 5000/1s burst 500", 6 * S, 0.998 },
    };
    static const int nodes[] = { 1, 2, 4, 16, 50 };

    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t n = 0; n < COUNT_OF(nodes); n++)
            for (int factor = 2; factor <= 10; factor += 8) {
                struct story s = story_of(rows[r].limit, nodes[n], rows[r].length);
                ask_for(&s, factor, 1.0 / nodes[n]);
                double part = used(&s, run(&s), S);
                print_message("%-24s %2d nodes, %2d times the limit: %.4f\n", rows[r].limit,
                              nodes[n], factor, part);
                assert_true(part >= rows[r].least);
            }
}

/* One of the nodes has nine tenths of the demand. */
TEST(test_the_limit_is_used_by_unequal_nodes)
{
    static const char *const limits[] = { "gcra 1000/1s burst 1000", "gcra 1000/1s burst 100",
                                          "fixed-window 500/1s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (int nodes = 4; nodes <= 64; nodes *= 4) {
            struct story s = story_of(limits[l], nodes, 21 * S);
            ask_for(&s, 2, 0.9);
            double part = used(&s, run(&s), S);
            print_message("%-24s %2d nodes: %.4f\n", limits[l], nodes, part);
            assert_true(part >= 0.998);
        }
}

/* Millions of units in a second: demand is counted in thousands of them. */
TEST(test_the_largest_limits_are_used)
{
    static const char *const limits[] = { "gcra 1000000/1s", "gcra 30000000/1s",
                                          "token-bucket 1000000000/1s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (int nodes = 1; nodes <= 16; nodes *= 4) {
            struct story s = story_of(limits[l], nodes, 4 * S);
            double rate = 2 * per_second(limits[l]), cost = rate / 20000;
            random_state = 1;
            for (int n = 0; n < nodes; n++)
                add_asks(&s, n, rate / cost / nodes, 0, s.length,
                         (struct event){ .limits = 1, .n = (int32_t)(2 * cost) });
            put_in_order(&s);
            const struct outcome *o = run(&s);
            double part = used(&s, o, S), least = least_part(&s, o, S, s.length);
            print_message("%-26s %2d nodes: %.4f, least part %.3f\n", limits[l], nodes, part,
                          least);
            assert_true(part >= 0.99 && least >= 0.9);
        }
}

/* Under twice the demand a sliding window gives units back up to a bucket late, on one host too. */
TEST(test_sliding_limits_are_used_as_one_limiter_would)
{
    static const char *const limits[] = { "sliding-window 300/1s", "sliding-window 2000/2s",
                                          "sliding-log 100/1s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (int nodes = 1; nodes <= 16; nodes *= 4) {
            struct story s = story_of(limits[l], nodes, 21 * S);
            ask_for(&s, 2, 1.0 / nodes);
            const struct outcome *o = run(&s);
            ask_one_limiter(&s);
            double part = passed(&s, o, -1, S, s.length) / passed(&s, NULL, -1, S, s.length);
            print_message("%-24s %2d nodes: %.4f of one limiter\n", limits[l], nodes, part);
            assert_true(part >= 0.985);
        }
}

/* 20 calls at each of two nodes in 2 s, by 2/s: as many pass as on one host. */
TEST(test_a_small_limit_is_one_limit)
{
    static const char *const limits[] = { "token-bucket 2/1s", "sliding-log 2/1s",
                                          "fixed-window 2/1s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++) {
        struct story s = story_of(limits[l], 2, 2 * S);
        for (int i = 0; i < 40; i++) {
            struct event *e = add_event(&s);
            *e = one;
            e->at = (i / 2) * 100 * MS;
            e->node = (uint16_t)(i % 2);
        }
        put_in_order(&s);
        double units = passed(&s, run(&s), -1, 0, s.length);
        ask_one_limiter(&s);
        print_message("%-18s %.0f of 40 calls\n", limits[l], units);
        assert_int_equal(units, passed(&s, NULL, -1, 0, s.length));
    }
}

/* Less than the limit: everything passes. */
TEST(test_all_pass_below_the_limit)
{
    static const char *const limits[] = { "gcra 1000/1s burst 1000", "token-bucket 100/1s",
                                          "fixed-window 500/1s", "sliding-log 100/1s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (int nodes = 1; nodes <= 16; nodes *= 4) {
            struct story s = story_of(limits[l], nodes, 10 * S);
            ask_for(&s, 0.8, 1.0 / nodes);
            const struct outcome *o = run(&s);
            assert_int_equal(o->refused + o->late + o->alone, 0);
        }
}

static double more_than_one_limiter(const struct story *s)
{
    const struct outcome *o = run(s);

    ask_one_limiter(s);
    return (double)(o->refused + o->late + o->alone) - (double)s->n +
           passed(s, NULL, -1, 0, s->length);
}

/* Asks come by chance, so a limiter on one host refuses some of them too.  A fleet refuses hardly
 * more: an ask comes to the account a trip later, and a spent one is not asked for a moment. */
static void refuse_hardly_more(const char *limit, weir_time length, weir_time trip)
{
    static const int nodes[] = { 1, 3, 8 };
    static const double loads[] = { 0.5, 0.7, 0.9 };

    for (size_t n = 0; n < COUNT_OF(nodes); n++)
        for (size_t l = 0; l < 2 * COUNT_OF(loads); l++) {
            struct story s = story_of(limit, nodes[n], length);
            bool uneven = l % 2, high = loads[l / 2] > 0.8;
            s.trip = trip;
            s.patience += 10 * trip;
            ask_for(&s, loads[l / 2], uneven ? 0.9 : 1.0 / nodes[n]);
            double more = more_than_one_limiter(&s);
            if (more > 0)
                print_message("%-24s %.2f ms, %d nodes%s, load %.1f: %.0f of %d more\n", limit,
                              (double)trip / 1e6, nodes[n], uneven ? ", uneven" : "", loads[l / 2],
                              more, (int)s.n);
            assert_true(more <= (high ? 2 : 1) || more <= (high ? 0.003 : 0.001) * (double)s.n);
        }
}

TEST(test_below_the_limit_hardly_more_are_refused_than_by_one_limiter)
{
    static const struct {
        const char *limit;
        weir_time length;
    } rows[] = {
        { "token-bucket 1/1s", 400 * S },      { "gcra 1/1s burst 5", 400 * S },
        { "token-bucket 5/1m", 6000 * S },     { "fixed-window 5/50s", 5000 * S },
        { "sliding-window 5/1m", 6000 * S },   { "sliding-log 5/1m", 6000 * S },
        { "token-bucket 20/1s", 60 * S },      { "gcra 100/1s burst 10", 30 * S },
        { "gcra 1000/1s burst 100", 10 * S },  { "leaky-bucket 100/1s burst 50", 20 * S },
        { "fixed-window 100/1s", 30 * S },     { "sliding-window 100/1s", 30 * S },
        { "sliding-window 500/10s", 100 * S }, { "sliding-window 1000/1m", 300 * S },
    };

    for (size_t r = 0; r < COUNT_OF(rows); r++)
        refuse_hardly_more(rows[r].limit, rows[r].length, 250 * US);
}

/* A burst that is full again in 10 to 50 ms is nearly spent most of the time. */
TEST(test_below_the_limit_hardly_more_are_refused_with_a_small_burst)
{
    static const struct {
        const char *limit;
        double most; /* of the asks */
    } rows[] = {
        { "token-bucket 50/1s burst 2", 0.004 }, { "gcra 100/1s burst 5", 0.004 },
        { "gcra 200/1s burst 6", 0.02 },         { "gcra 300/1s burst 3", 0.03 },
        { "gcra 300/1s burst 9", 0.003 },        { "gcra 1000/1s burst 10", 0.003 },
    };

    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (int nodes = 1; nodes <= 8; nodes *= 2)
            for (int uneven = 0; uneven <= 1; uneven++) {
                double load = 0.75 + 0.15 * uneven, rate = per_second(rows[r].limit);
                struct story s = story_of(rows[r].limit, nodes, (weir_time)(3000 / rate * 1e9));
                ask_for(&s, load, uneven ? 0.9 : 1.0 / nodes);
                double more = more_than_one_limiter(&s);
                print_message("%-26s %d nodes%s, load %.2f: %.0f of %d more\n", rows[r].limit,
                              nodes, uneven ? ", uneven" : "", load, more, (int)s.n);
                assert_true(more <= 2 || more <= rows[r].most * (double)s.n);
            }
}

/* A round trip may take longer than draws look ahead.  Asks that wait get half of what is left, so
 * a small burst lasts for shorter ways only. */
TEST(test_below_the_limit_hardly_more_are_refused_far_from_redis)
{
    static const struct {
        const char *limit;
        weir_time length, farthest;
    } rows[] = {
        { "token-bucket 100/1s", 20 * S, 75 * MS },     { "token-bucket 1000/1s", 10 * S, 75 * MS },
        { "token-bucket 600/1m", 200 * S, 75 * MS },    { "gcra 100/1s burst 20", 20 * S, 35 * MS },
        { "fixed-window 1000/10s", 40 * S, 75 * MS },   { "fixed-window 100/1s", 30 * S, 75 * MS },
        { "sliding-window 1000/10s", 40 * S, 35 * MS },
    };
    static const weir_time trips[] = { 5 * MS, 15 * MS, 35 * MS, 75 * MS };

    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t t = 0; t < COUNT_OF(trips) && trips[t] <= rows[r].farthest; t++)
            refuse_hardly_more(rows[r].limit, rows[r].length, trips[t]);
}

/* Asks of 1 to 8 units. */
TEST(test_below_the_limit_hardly_more_are_refused_of_odd_costs)
{
    static const char *const limits[] = { "token-bucket 10/1s",     "gcra 100/1s burst 20",
                                          "token-bucket 100/1s",    "token-bucket 20/1m",
                                          "fixed-window 100/1s",    "sliding-window 100/1s",
                                          "gcra 1000/1s burst 100", "sliding-log 100/1s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (int nodes = 1; nodes <= 8; nodes *= 2)
            for (int load = 5; load <= 9; load += 2) {
                double rate = per_second(limits[l]);
                struct story s = story_of(limits[l], nodes, (weir_time)(3000 / rate * 1e9));
                random_state = 1;
                for (int n = 0; n < nodes; n++)
                    add_asks(&s, n, load / 10.0 * rate / 4.5 / nodes, 0, s.length,
                             (struct event){ .limits = 1, .n = 8 });
                put_in_order(&s);
                double more = more_than_one_limiter(&s);
                if (more > 0)
                    print_message("%-24s %d nodes, load 0.%d: %.0f of %d more\n", limits[l], nodes,
                                  load, more, (int)s.n);
                assert_true(more <= 1);
            }
}

/* Of those that want one unit, by the fleet or by one limiter. */
static double small_passed(const struct story *s, const struct outcome *o)
{
    double n = 0;

    for (size_t i = 0; o != NULL && i < o->accounts[0][0].n_passed; i++)
        n += o->accounts[0][0].passed[i].units == 1;
    for (size_t i = 0; o == NULL && i < s->n; i++)
        n += s->events[i].n == 1 && by_one[i];
    return n;
}

/* One client asks again and again for nearly all of the limit.  It gets that sometimes.  Those that
 * want one unit lose hardly anything. */
TEST(test_large_asks_that_are_refused_keep_nobody_out)
{
    static const struct {
        const char *limit;
        int32_t large;
        weir_time length;
    } rows[] = {
        { "token-bucket 10/1m", 9, 6000 * S },     { "gcra 100/1s burst 100", 99, 30 * S },
        { "token-bucket 1000/10s", 990, 60 * S },  { "gcra 1000/1s burst 100", 99, 10 * S },
        { "fixed-window 20/50s", 18, 5000 * S },   { "fixed-window 1000/10s", 990, 60 * S },
        { "sliding-window 100/10s", 99, 100 * S }, { "sliding-log 100/1s", 99, 30 * S },
    };

    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (int nodes = 1; nodes <= 4; nodes *= 2) {
            struct story s = story_of(rows[r].limit, nodes, rows[r].length);
            double rate = per_second(s.limits[0]);
            random_state = 1;
            for (int n = 0; n < nodes; n++)
                add_asks(&s, n, 0.5 * rate / nodes, 0, s.length, one);
            size_t small = s.n;
            add_asks(&s, 0, rate / 4, 0, s.length, one);
            for (size_t i = small; i < s.n; i++)
                events[i].n = rows[r].large;
            put_in_order(&s);
            double units = small_passed(&s, run(&s));
            ask_one_limiter(&s);
            double by = small_passed(&s, NULL);
            print_message("%-24s %d nodes: %.0f of %d, one limiter %.0f\n", rows[r].limit, nodes,
                          units, (int)small, by);
            assert_true(units >= 0.85 * by); /* a window that slides keeps other asks */
        }
}

/* Asks that cost alike use a limit up at one node; then one or the other is asked for as much, and
 * once more when it said: that passes, if nobody else asks. */
static void come_again(const char *limit, int other, int32_t cost, weir_time after)
{
    struct weir_limit l;

    assert_int_equal(weir_limit_parse(&l, limit, NULL), WEIR_OK);
    struct story s = story_of(limit, 2, 40 * l.period);
    int64_t n = (l.burst > 0 ? l.burst : l.count) / cost;
    for (int64_t i = 0; i < n; i++) {
        *add_event(&s) = one;
        events[i].at = S + i * MS / 4;
        events[i].n = cost;
    }
    int64_t first = run(&s)->refused; /* a few, though a little may be left */
    *add_event(&s) = one;
    events[n].at = S + n * MS / 4 + after;
    events[n].node = (uint16_t)other;
    events[n].n = cost;
    const struct outcome *o = run(&s);
    if (o->refused == first)
        return;
    int64_t refused = o->refused;
    double units = passed(&s, o, -1, 0, s.length);
    weir_time told = o->told;
    *add_event(&s) = events[n];
    events[n + 1].at = told;
    assert_true(told > events[n].at && told < s.length);
    o = run(&s);
    print_message("%-24s %d units at %s node: told %.6f s, then %s\n", limit, (int)cost,
                  other ? "another" : "the same", (double)(told - events[n].at) / 1e9,
                  o->refused > refused ? "refused" : "passed");
    assert_int_equal(o->refused, refused);
    assert_int_equal(passed(&s, o, -1, 0, s.length), units + cost);
}

TEST(test_who_comes_when_told_passes)
{
    static const char *const limits[] = { "token-bucket 5/1m",   "gcra 5/1m burst 5",
                                          "fixed-window 5/50s",  "fixed-window 100/1000s",
                                          "token-bucket 100/1s", "gcra 1000/1s burst 100",
                                          "leaky-bucket 10/1s",  "token-bucket 20/1h",
                                          "gcra 50/1s burst 5" };
    static const weir_time after[] = { 5 * MS, 100 * MS, 700 * MS, 5 * S };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (size_t a = 0; a < COUNT_OF(after); a++)
            for (int other = 0; other <= 1; other++)
                for (int32_t cost = 1; cost <= 5; cost += 4)
                    if (per_second(limits[l]) * (double)after[a] / 1e9 < 0.8)
                        come_again(limits[l], other, cost, after[a]);
}

/* One client, at one node or another, that comes again exactly when it was told.  Returns how often
 * it was refused then; `first`: how often else. */
static int obey(struct story *s, int64_t most, int *first)
{
    int64_t before = 0;
    int again = 0, in_a_row = 0;
    bool told = false;

    s->length = S;
    for (int i = 0; i < 40; i++) {
        struct event *e = add_event(s);
        *e = one;
        e->n = told ? e[-1].n : between(0, 1) ? 1 : (int32_t)between(1, (most + 1) / 2);
        e->at = s->length;
        e->node = (uint16_t)between(0, s->nodes - 1);
        s->length += s->patience;
        const struct outcome *o = run(s);
        bool refused = o->refused > before;
        before = o->refused;
        *(told ? &again : first) += refused;
        in_a_row = refused ? in_a_row + 1 : 0;
        assert_true(in_a_row <= 4 && o->late + o->alone == 0);
        s->length = refused ? weir__int_most(o->told, e->at) + MS : e->at + between(MS, 4 * MS);
        told = refused;
    }
    return again;
}

TEST(test_one_who_always_comes_when_told_is_hardly_ever_refused_again)
{
    static const char *const limits[] = { "token-bucket 5/1s",
                                          "token-bucket 100/10s",
                                          "token-bucket 1000/10s",
                                          "token-bucket 300/1s burst 40",
                                          "leaky-bucket 10/1s burst 5",
                                          "fixed-window 100/1s",
                                          "sliding-window 5/2s",
                                          "sliding-window 100/2s",
                                          "sliding-log 5/2s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++) {
        int first = 0, again = 0;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct story s = story_of(limits[l], 1 + (int)(seed % 3), 0);
            struct weir_limit limit;
            assert_int_equal(weir_limit_parse(&limit, limits[l], NULL), WEIR_OK);
            random_state = s.seed = seed;
            again += obey(&s, limit.burst > 0 ? limit.burst : limit.count, &first);
        }
        print_message("%-28s %d of %d again\n", limits[l], again, first);
        assert_true(first > 50 && again <= 1 + first / 12);
    }
}

TEST(test_asks_for_single_units_that_come_when_told_pass_at_any_node)
{
    static const char *const limits[] = { "gcra 100/1s burst 3", "token-bucket 5/1s",
                                          "gcra 10/1s burst 3", "leaky-bucket 10/1s burst 5" };

    for (size_t l = 0; l < COUNT_OF(limits); l++) {
        int first = 0, again = 0;
        for (uint64_t seed = 1; seed <= 40; seed++) {
            struct story s = story_of(limits[l], 2 + (int)(seed % 2), 0);
            random_state = s.seed = seed;
            again += obey(&s, 1, &first);
        }
        print_message("%-28s %d of %d again\n", limits[l], again, first);
        assert_true(first > 300 && again <= 1 + first / 100);
    }
}

/* Redis is farther away than asks wait: the first is left alone, and the next finds its units. */
TEST(test_units_that_come_too_late_for_an_ask_are_there_for_the_next)
{
    struct story s = story_of("fixed-window 100/1000s", 1, 2 * S);

    s.trip = 25 * MS;
    s.patience = 20 * MS;
    for (int i = 0; i < 2; i++)
        *add_event(&s) = one, events[i].at = S + i * 100 * MS;
    assert_int_equal(passed(&s, run(&s), -1, 0, s.length), 1);
}

/* One of four nodes is 10 to 50 ms from Redis and back, the others half of one.  Below the limit it
 * loses hardly anything.  By twice the demand the others take what it comes for too late; the limit
 * is used all the same. */
TEST(test_one_node_is_far_from_redis)
{
    static const struct {
        const char *limit;
        double parts[2]; /* of its part, at least, 10 and 50 ms away */
    } rows[] = {
        { "gcra 8000/1s burst 2000", { 0.75, 0.15 } }, { "token-bucket 2000/1s", { 0.9, 0.6 } },
        { "token-bucket 100/1s", { 0.9, 0.6 } },       { "fixed-window 500/1s", { 0.9, 0.6 } },
        { "gcra 1000/1s burst 100", { 0.35, 0.01 } },  { "token-bucket 20/1s", { 0.9, 0.6 } },
    };

    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (weir_time far = 5 * MS; far <= 25 * MS; far *= 5)
            for (int high = 0; high <= 1; high++) {
                struct story s = story_of(rows[r].limit, 4, 11 * S);
                s.far = far;
                s.patience = 20 * MS + 4 * far;
                ask_for(&s, high ? 2 : 0.8, 0.25);
                const struct outcome *o = run(&s);
                double part = least_part(&s, o, S, s.length);
                double granted = (double)o->granted[0] / (double)o->asked[0];
                print_message("%-24s %d ms, %s: %.3f of the limit, %.3f of its part, %.3f of its "
                              "asks\n",
                              rows[r].limit, (int)(2 * far / MS), high ? "twice" : "0.8",
                              used(&s, o, S), part, granted);
                assert_true(high ? used(&s, o, S) >= 0.98 : granted >= 0.99);
                assert_true(!high || part >= rows[r].parts[far > 5 * MS]);
            }
}

/* ---------------------------------------------------------------- fairness ---- */

struct fairness {
    double run, ten;   /* the least part over a run, over ten horizons */
    int spans, unfair; /* of ten horizons; of these, with a part below 0.8 */
    int unfair_by_one; /* if all nodes asked one limiter */
};

static void measure_fairness(struct fairness *f, const struct story *s)
{
    const struct outcome *o = run(s);
    weir_time ten = 10 * o->limits[0].terms.horizon;
    double part = least_part(s, o, S, s->length);

    ask_one_limiter(s);
    f->run = part < f->run ? part : f->run;
    for (weir_time at = S; at + ten <= s->length; at += ten) {
        part = least_part(s, o, at, at + ten);
        f->ten = part < f->ten ? part : f->ten;
        f->spans++;
        f->unfair += part < 0.8;
        f->unfair_by_one += least_part(s, NULL, at, at + ten) < 0.8;
    }
}

/* In a span with few asks of each node their number differs by chance, and so would the units that
 * one limiter passes: a part below 0.8 must be rarer than with that. */
TEST(test_nodes_get_their_parts)
{
    static const char *const limits[] = { "gcra 8000/1s burst 2000", "gcra 8000/1s burst 800",
                                          "token-bucket 2000/1s" };

    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (int nodes = 2; nodes <= 8; nodes *= 2) {
            struct fairness f = { .run = 1, .ten = 1 };
            for (uint64_t seed = 1; seed <= 10; seed++) {
                struct story s = story_of(limits[l], nodes, 6 * S);
                s.seed = seed;
                ask_for(&s, 2, 1.0 / nodes);
                measure_fairness(&f, &s);
            }
            print_message("%-24s %d nodes: %.3f over 5 s, %.3f over ten horizons, below 0.8 in %d "
                          "of %d (by one limiter in %d)\n",
                          limits[l], nodes, f.run, f.ten, f.unfair, f.spans, f.unfair_by_one);
            assert_true(f.run >= 0.93 && f.ten >= 0.7 && 200 * f.unfair <= f.spans);
            assert_true(f.unfair <= f.unfair_by_one);
        }
}

/* -------------------------------------------------------- commands of Redis ---- */

TEST(test_a_hot_key_costs_few_commands)
{
    struct story s = story_of("token-bucket 500000/1s", 4, 350 * MS);

    ask_for(&s, 2, 0.25);
    const struct outcome *o = run(&s);
    double per_thousand = 1000.0 * (double)o->commands / (double)asks(&s, o);
    print_message("%.3f commands per 1000 asks\n", per_thousand);
    assert_true(per_thousand <= 1);
}

/* A key that is asked for now and then costs a command each time; hot it costs few; and then it is
 * exact again. */
TEST(test_a_key_is_exact_then_leased_then_exact)
{
    struct story s = story_of("gcra 10000/1s burst 10000", 1, 40 * S);

    random_state = 1;
    add_asks(&s, 0, 1, 0, 10 * S, one);
    put_in_order(&s);
    const struct outcome *o = run(&s);
    assert_int_equal(o->commands, asks(&s, o));
    add_asks(&s, 0, 5000, 10 * S, 20 * S, one);
    put_in_order(&s);
    o = run(&s);
    assert_true(o->commands < asks(&s, o) / 50);
    int64_t hot = o->commands, before = asks(&s, o);
    add_asks(&s, 0, 1, 30 * S, 40 * S, one);
    put_in_order(&s);
    o = run(&s);
    assert_int_equal(o->commands - hot, asks(&s, o) - before);
    assert_int_equal(o->refused + o->late + o->alone, 0);
}

/* --------------------------------------------------------- all or nothing ---- */

/* One limit has plenty and the other is scarce.  Asks for both must not be starved by those that
 * want only one, and must not keep units of one while they lack the other. */
TEST(test_asks_for_both_limits_do_not_starve)
{
    for (int nodes = 1; nodes <= 8; nodes *= 2) {
        struct story s = story_of("token-bucket 100/1s", nodes, 20 * S);
        s.n_limits = 2;
        s.limits[1] = "gcra 500/1s burst 250";
        random_state = 1;
        for (int n = 0; n < nodes; n++) {
            add_asks(&s, n, 81.0 / nodes, 0, s.length, (struct event){ .limits = 3, .n = 1 });
            add_asks(&s, n, 1000.0 / nodes, 0, s.length, (struct event){ .limits = 2, .n = 1 });
        }
        put_in_order(&s);
        const struct outcome *o = run(&s);
        int64_t scarce = passed_between(&o->accounts[1][0], -1, S, s.length);
        print_message("%d nodes: %d of %d for both, %d of %d for the scarce one\n", nodes,
                      (int)o->granted_both, (int)o->asked_both, (int)scarce, 19 * 500);
        /* 500 of 1081 can pass; asks for both are a little worse off, but not by half */
        assert_true((double)o->granted_both >= 0.25 * (double)o->asked_both);
        assert_true((double)scarce >= 0.99 * 19 * 500);
    }
}

/* ------------------------------------------------------------- paying back ---- */

/* A node that retires gives back what it has: the other one finds it. */
TEST(test_units_go_back_at_the_end)
{
    for (int retires = 0; retires <= 1; retires++) {
        struct story s = story_of("fixed-window 1000/10s", 2, 9 * S);
        random_state = 1;
        add_asks(&s, 0, 400, 0, S, one);
        *add_event(&s) =
            (struct event){ .at = S, .kind = retires ? EVENT_RETIRE : EVENT_CRASH, .span = 9 * S };
        add_asks(&s, 1, 1000, 2 * S, 4 * S, (struct event){ .limits = 1, .n = 1 });
        put_in_order(&s);
        const struct outcome *o = run(&s);
        int64_t units = passed_between(&o->accounts[0][0], -1, 0, s.length);
        print_message("%s: %d of 1000\n", retires ? "retires" : "crashes", (int)units);
        assert_true(retires ? units == 1000 : units >= 900);
    }
}
