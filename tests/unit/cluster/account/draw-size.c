/* draw-size.c -- units for a node: the formula, its laws, and the demand of all nodes. */
#include "unit/test.h"

#include "cluster/account/draw-size.h"
#include "random.h"
#include "unit/fixture.h"

#define MS WEIR_MILLISECOND
#define US WEIR_MICROSECOND

static struct weir_plan plan_of(const char *text)
{
    struct weir_limit limit = limit_of(text);
    struct weir_plan plan;

    assert_int_equal(weir__plan_make(&plan, &limit, NULL), WEIR_OK);
    return plan;
}

static const char *const limits[] = { "gcra 1000/1s burst 500", "token-bucket 5/1m",
                                      "fixed-window 100/1s",    "sliding-window 5000/1m",
                                      "sliding-log 50/10s",     "1000000/day",
                                      "token-bucket 1000000/s", "leaky-bucket 7/13s queue 20" };

TEST(test_terms_by_limit)
{
    static const struct {
        const char *limit;
        weir_time life, pace;
    } rows[] = {
        { "gcra 1000/1s burst 1000", 250 * MS, 62500 * US }, /* b / 4r */
        { "gcra 1000/1s burst 1", 20 * MS, 5 * MS },         { "5/1h", 10 * S, 100 * MS },
        { "fixed-window 10/1s", 62500 * US, 15625 * US }, /* P / 16 */
        { "fixed-window 10/1ms", 5 * MS, 1250 * US },        { "10/day", 10 * S, 100 * MS },
        { "sliding-log 10/1m", 600 * MS, 100 * MS }, /* P / 100 */
        { "sliding-window 10/1h", 36 * S, 100 * MS },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_plan plan = plan_of(rows[i].limit);
        struct weir__draw_terms t = weir__draw_terms(&plan);
        print_message("%s\n", rows[i].limit);
        assert_int_equal(t.life, rows[i].life);
        assert_int_equal(t.horizon, rows[i].life / 4);
        assert_int_equal(t.pace, rows[i].pace);
        assert_int_equal(t.epoch * US, 4 * rows[i].pace);
    }
}

/* Where drawing ahead would strand units, or each unit has an instant or a turn of its own. */
TEST(test_D1_terms_that_stay_exact)
{
    static const struct {
        const char *limit;
        bool exact;
    } rows[] = {
        { "gcra 1000/1s burst 10", false }, /* b = 2 r h: h is 5 ms at least */
        { "gcra 1000/1s burst 9", true },
        { "gcra 1000/1s burst 1", true },
        { "token-bucket 500000/s burst 5000", false },
        { "5/1m", false },
        { "fixed-window 100/1s", false },
        { "fixed-window 100/2ms", true },
        { "sliding-window 100/1s", false },
        { "sliding-window 100/1s buckets=1000", true },
        { "sliding-log 100/1s", true },
        { "smooth 100/1s", true },
        { "leaky-bucket 100/1s", false },
        { "leaky-bucket 100/1s queue 5", true },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_plan plan = plan_of(rows[i].limit);
        struct weir__draw_terms t = weir__draw_terms(&plan);
        struct weir__draw d = { .need = 1, .slow = 1000000000 };
        print_message("%s\n", rows[i].limit);
        assert_int_equal(t.exact, rows[i].exact);
        assert_int_equal(weir__draw_numbers(&t, &d).ahead > 0, !rows[i].exact);
    }
}

/* Units live no longer than the window or bucket that they were counted in. */
TEST(test_D1_life_of_drawn_units)
{
    static const struct {
        const char *limit;
        weir_time at, life;
    } rows[] = {
        { "gcra 1000/1s burst 1000", 7 * S, 250 * MS },
        { "fixed-window 10/1s", 7 * S, 62500 * US },
        { "fixed-window 10/1s", 7 * S + 990 * MS, 10 * MS },
        { "fixed-window 10/1s align=first", 7 * S + 990 * MS, 62500 * US },
        { "10/day", 86400 * S - 3 * S, 3 * S },
        { "sliding-window 10/1s", 7 * S, 10 * MS },
        { "sliding-window 10/1s", 7 * S + 98 * MS, 2 * MS },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_plan plan = plan_of(rows[i].limit);
        struct weir__demand demand = { 0 };
        struct weir_decision d;
        _Alignas(8) unsigned char bytes[256] = { 0 };
        assert_true(plan.state_size <= sizeof(bytes));
        struct weir__drawn drawn = weir__draw_units(
            &plan, bytes, &demand, &(struct weir__draw){ .need = 1, .waiting = 1 }, rows[i].at, &d);
        print_message("%s\n", rows[i].limit);
        assert_int_equal(drawn.units, 1);
        assert_int_equal(drawn.at, rows[i].at);
        assert_int_equal(drawn.life, rows[i].life);
        if (strcmp(rows[i].limit, "fixed-window 10/1s align=first") == 0) /* in the next window */
            assert_int_equal(weir__drawn_life(&plan, drawn.at, drawn.at + 2 * S, &d), 0);
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double distance(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* As the page says it, in floating point. */
static double plainly(const struct weir_plan *plan, const struct weir__draw *d, double demand,
                      double left, double *spare)
{
    struct weir__draw_terms t = weir__draw_terms(plan);
    double period =
        plan->limit.period ? (double)plan->limit.period : (double)weir__calendar_longest(plan);
    double due = (double)plan->limit.count * (double)t.pace / period;
    double fast = (double)(d->fast >> t.shift << t.shift) / 1000, w = (double)d->waiting,
           need = (double)d->need;
    double have = (double)d->have;
    double part = fast > 0 ? fast / larger(demand / 1000, fast) : 0;
    double slice = part * (0.9 * due + left / (t.window ? 2 : 4)) - have;
    double ahead = t.exact ? 0 : larger(0, (double)d->slow / 1e12 * (double)t.horizon - have);
    double g = smaller(left, larger(smaller(w, larger(need, left / 2)), smaller(w + ahead, slice)));

    *spare = distance(g, need);
    g = (double)(int64_t)g;
    return g >= need ? g : left >= need && (w > 0 || have < 1) ? need : 0;
}

static void random_draw(struct weir__draw *d)
{
    static const int64_t rates[] = { 0, 1000, 100000, 3000000, 400000000 };

    d->need = between(1, one_in(4) ? 100 : 5);
    d->waiting = one_in(4) ? 0 : d->need + between(0, 300);
    d->have = one_in(2) ? 0 : between(0, 100);
    d->asked = between(0, 1000);
    d->fast = between(0, rates[between(0, 4)]);
    d->slow = between(0, rates[between(0, 4)]);
}

TEST(test_units_are_those_of_the_formula)
{
    random_state = 7;
    for (int round = 0; round < 50000; round++) {
        struct weir_plan plan = plan_of(limits[round % (int)COUNT_OF(limits)]);
        struct weir__draw_terms t = weir__draw_terms(&plan);
        struct weir__draw d;
        random_draw(&d);
        struct weir__draw_numbers n = weir__draw_numbers(&t, &d);
        int64_t demand = between(0, one_in(2) ? 1000000 : 4000000000) >> t.shift << t.shift;
        int64_t left = between(0, plan.most);
        double spare, plain = plainly(&plan, &d, (double)demand, (double)left, &spare);
        struct weir__drawn drawn = weir__draw_choose(&n, demand >> t.shift, left);

        assert_in_range(drawn.units, 0, left); /* never too much */
        assert_true(drawn.units == 0 || drawn.units >= d.need);
        if (d.waiting > 0 && left >= d.need)
            assert_true(drawn.units > 0); /* never too little */
        /* Spent, unless nothing was wanted */
        if (drawn.units == 0)
            assert_int_equal(drawn.spent, n.waiting + n.ahead > 0 || left < d.need);
        /* Rounding is by a unit, and a part in a million */
        if (spare > 2 + (double)left / 1e5)
            assert_true(distance((double)drawn.units, plain) <= 1 + plain / 1e5);
    }
}

/* Two nodes, of which one asks nine times as much: it gets nine times as much, however fast the
 * limit is, and up to sixteen times the limit. */
TEST(test_shares_follow_demand)
{
    static const char *const rates[] = { "gcra 100000/1s", "gcra 10000000/1s", "gcra 1000000000/1s",
                                         "token-bucket 60000000000/1m burst 1000000000" };

    for (size_t i = 0; i < COUNT_OF(rates); i++)
        for (int64_t factor = 1; factor <= 16; factor *= 4) {
            struct weir_plan plan = plan_of(rates[i]);
            struct weir__draw_terms t = weir__draw_terms(&plan);
            struct weir__demand demand = { 0 };
            int64_t shares[2] = { 0, 0 }, left = plan.most / 2;
            for (int round = 0; round < 100; round++) {
                weir_time now = 1000 * S + round * 20 * MS;
                for (int node = 0; node < 2; node++) {
                    int64_t asked = factor * plan.most / 50 * (node == 0 ? 9 : 1) / 10;
                    struct weir__draw d = { .need = 1, .asked = asked, .fast = asked * 50 * 1000 };
                    struct weir__draw_numbers n = weir__draw_numbers(&t, &d);
                    int64_t rate = weir__demand_count(&demand, &n, now);
                    if (round > 50)
                        shares[node] = weir__draw_choose(&n, rate, left).share;
                }
            }
            print_message("%s, %d times\n", rates[i], (int)factor);
            assert_in_range(shares[0] / shares[1], 8, 10);
            int64_t supply = plan.most * 9 / 160 + left / 4; /* 0.9 r pace + left / 4 */
            assert_in_range(shares[0] + shares[1], supply * 9 / 10, supply);
        }
}

TEST(test_demand_is_of_two_epochs)
{
    struct weir__draw_numbers n = { .epoch = 1000, .asked = 10 };
    struct weir__demand demand = { 0 };

    assert_int_equal(weir__demand_count(&demand, &n, 5000 * US), 10 * (int64_t)1e9 / 1000);
    assert_int_equal(weir__demand_count(&demand, &n, 5500 * US), 20 * (int64_t)1e9 / 1500);
    assert_int_equal(weir__demand_count(&demand, &n, 6000 * US), 30 * (int64_t)1e9 / 1000);
    assert_int_equal(weir__demand_count(&demand, &n, 7000 * US), 20 * (int64_t)1e9 / 1000);
    assert_int_equal(weir__demand_count(&demand, &n, 9000 * US), 10 * (int64_t)1e9 / 1000);
    assert_int_equal(weir__demand_count(&demand, &n, 8500 * US), 20 * (int64_t)1e9 / 1000);
    assert_int_equal(weir__demand_count(&demand, &n, 1000 * US), 10 * (int64_t)1e9 / 1000);
}

/* A new master whose clock is an hour behind: what was drawn stays drawn, and time goes on from
 * there.  The refused draws must note it, or nothing would pass for an hour. */
TEST(test_D1_draws_follow_a_clock_that_was_set_back)
{
    static const struct {
        const char *limit;
        weir_time most; /* until a unit is free again */
    } rows[] = { { "gcra 10/1s burst 10", S },       { "token-bucket 10/1s", S },
                 { "leaky-bucket 10/1s", S },        { "fixed-window 10/2s", 2 * S },
                 { "sliding-window 10/2s", 3 * S },  { "sliding-log 10/2s", 2 * S },
                 { "token-bucket 60/1m burst 5", S } };
    struct weir__draw draw = { .need = 1, .waiting = 1 };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_plan plan = plan_of(rows[i].limit);
        struct weir__demand demand = { 0 };
        struct weir_decision d;
        _Alignas(8) unsigned char bytes[512] = { 0 };
        weir_time now = 100000 * S, back = now - 3600 * S;
        assert_true(plan.state_size <= sizeof(bytes));
        while (weir__draw_units(&plan, bytes, &demand, &draw, now, &d).units > 0)
            ;
        for (now = back; weir__draw_units(&plan, bytes, &demand, &draw, now, &d).units == 0;)
            now += 100 * MS;
        print_message("%s: %lld ms\n", rows[i].limit, (long long)((now - back) / MS));
        assert_true(now - back <= rows[i].most);
    }
}

TEST(test_demand_of_any_bytes)
{
    unsigned char bytes[WEIR__DEMAND_SIZE];
    struct weir__demand demand, back;
    struct weir__draw_numbers n = { .epoch = 5000, .asked = 3 };
    struct weir_plan plan = plan_of("gcra 1000/1s burst 1000");
    int64_t debt[2] = { 5, 500 };

    random_state = 9;
    for (int i = 0; i < 10000; i++) {
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (unsigned char)roll();
        assert_true(!weir__demand_read(&demand, bytes, sizeof(bytes)) || bytes[0] == 'D');
        bytes[0] = 'D';
        bytes[1] = 1;
        assert_true(weir__demand_read(&demand, bytes, sizeof(bytes)));
        assert_true(weir__demand_count(&demand, &n, (weir_time)(roll() >> 1)) >= 0);
        weir__demand_look(&demand, &plan, debt, (weir_time)(roll() >> 1));
        weir__demand_write(&demand, bytes);
        assert_true(weir__demand_read(&back, bytes, sizeof(bytes)));
        assert_memory_equal(&back, &demand, sizeof(back));
    }
    assert_false(weir__demand_read(&demand, "D\1xx", 4));
}

/* Of the fastest limits one ask is too little to be counted. */
TEST(test_D1_demand_of_the_fastest)
{
    struct weir_plan plan = plan_of("token-bucket 9223372036854775807/1ns burst 5");
    struct weir__draw_terms terms = weir__draw_terms(&plan);
    struct weir__draw_numbers n = weir__draw_numbers(
        &terms, &(struct weir__draw){ .need = 1, .asked = 1 << 20, .fast = 1 << 20 });

    assert_int_equal(n.asked, 0);
    assert_int_equal(n.fast, 0);
}
