/* shed-by-host-load.c -- how much must stay out because of the host: alone, and as a loop with a
 * host whose load follows from what is let in. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <math.h>

#include "guard/arithmetic.h"
#include "guard/shed-by-host-load.h"

#define LOOK (S / 4)

static const struct weir__reading unknown = {
    .cpu = -1, .psi_cpu = -1, .psi_memory = -1, .run_queue = -1, .processors = 4
};

static struct weir__pressure_plan cpu_plan(int32_t percent)
{
    return (struct weir__pressure_plan){ .on = true, .options = { .cpu_percent = percent } };
}

/* Looks at this cpu several times; returns the last answer. */
static int32_t looks(const struct weir__pressure_plan *plan, struct weir__pressure *p, int32_t cpu,
                     int count, weir_time *now)
{
    struct weir__reading reading = unknown;
    int32_t shed = 0;

    reading.cpu = cpu;
    for (int i = 0; i < count; i++)
        shed = weir__pressure_step(plan, p, &reading, 0, *now += LOOK);
    return shed;
}

/* ----------------------------------------------------------- open loop ---- */

TEST(test_G6_begins_after_two_looks_in_a_row)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    weir_time now = NOW;

    for (int i = 0; i < 20; i++) { /* every other look is a burst */
        assert_int_equal(looks(&plan, &p, 1000, 1, &now), 0);
        assert_int_equal(looks(&plan, &p, 799, 1, &now), 0);
    }
    assert_int_equal(p.over, 0);
    assert_int_equal(looks(&plan, &p, 1000, 1, &now), 0);
    assert_true(looks(&plan, &p, 1000, 1, &now) > 0);
    assert_int_equal(p.over, 1);
}

TEST(test_G6_at_the_threshold_is_overloaded)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    weir_time now = NOW;

    assert_int_equal(looks(&plan, &p, 799, 50, &now), 0);
    assert_true(looks(&plan, &p, 800, 2, &now) > 0);
}

/* More excess, more is shed; and it grows with every look, but never to all. */
TEST(test_G6_grows_with_the_excess)
{
    struct weir__pressure_plan plan = cpu_plan(50);
    int32_t before = 0;

    for (int32_t cpu = 550; cpu <= 1000; cpu += 150) {
        struct weir__pressure p = { 0 };
        weir_time now = NOW;
        int32_t shed = looks(&plan, &p, cpu, 3, &now), more;
        assert_true(shed > before);
        before = shed;
        for (int i = 0; i < 10; i++, shed = more) {
            more = looks(&plan, &p, cpu, 1, &now);
            assert_true(more > shed);
        }
        assert_int_equal(looks(&plan, &p, cpu, 4000, &now), 950);
    }
}

TEST(test_G6_shrinks_slowly_and_ends)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    weir_time now = NOW;
    int32_t shed = looks(&plan, &p, 1000, 60, &now), steps = 0;

    assert_true(shed > 500);
    assert_int_equal(looks(&plan, &p, 780, 100, &now), shed); /* between: stays */
    while (shed > 0) {
        int32_t less = looks(&plan, &p, 200, 1, &now);
        assert_true(less <= shed && less >= shed - 26); /* no more than a tenth per second */
        assert_int_equal(p.over, less > 0);
        shed = less;
        assert_true(++steps < 100);
    }
    assert_int_equal(looks(&plan, &p, 200, 10, &now), 0);
}

TEST(test_G6_looks_at_most_four_times_a_second)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    struct weir__reading reading = unknown;
    weir_time now = NOW;

    reading.cpu = 1000;
    looks(&plan, &p, 1000, 5, &now);
    struct weir__pressure before = p;
    int32_t shed = weir__pressure_step(&plan, &p, &reading, 0, now);
    for (weir_time t = 0; t < LOOK; t += LOOK / 100)
        assert_int_equal(weir__pressure_step(&plan, &p, &reading, 0, now + t), shed);
    assert_memory_equal(&before, &p, sizeof(p));
    assert_true(weir__pressure_step(&plan, &p, &reading, 0, now + LOOK) > shed);
}

/* ------------------------------------------------------------- options ---- */

static int32_t after_five_seconds(const struct weir_system_options *options,
                                  const struct weir__reading *reading, weir_time mean)
{
    struct weir__pressure_plan plan = { .on = true, .options = *options };
    struct weir__pressure p = { 0 };
    int32_t shed = 0;

    for (int i = 0; i < 20; i++)
        shed = weir__pressure_step(&plan, &p, reading, mean, NOW + i * LOOK);
    return shed;
}

TEST(test_G6_every_signal)
{
    struct weir__reading high = {
        .cpu = 900, .psi_cpu = 300, .psi_memory = 200, .run_queue = 6000, .processors = 2
    };

    assert_true(after_five_seconds(&(struct weir_system_options){ .cpu_percent = 90 }, &high, 0) >
                0);
    assert_true(
        after_five_seconds(&(struct weir_system_options){ .pressure_percent = 30 }, &high, 0) > 0);
    assert_true(
        after_five_seconds(&(struct weir_system_options){ .memory_percent = 20 }, &high, 0) > 0);
    assert_true(after_five_seconds(&(struct weir_system_options){ .run_queue = 6 }, &high, 0) > 0);
    assert_true(after_five_seconds(&(struct weir_system_options){ .mean_time = S }, &high, S) > 0);

    assert_int_equal(
        after_five_seconds(&(struct weir_system_options){ .cpu_percent = 91 }, &high, 0), 0);
    assert_int_equal(
        after_five_seconds(&(struct weir_system_options){ .pressure_percent = 31 }, &high, 0), 0);
    assert_int_equal(
        after_five_seconds(&(struct weir_system_options){ .memory_percent = 21 }, &high, 0), 0);
    assert_int_equal(after_five_seconds(&(struct weir_system_options){ .run_queue = 7 }, &high, 0),
                     0);
    assert_int_equal(
        after_five_seconds(&(struct weir_system_options){ .mean_time = S }, &high, S - 1), 0);
    assert_int_equal(after_five_seconds(&(struct weir_system_options){ 0 }, &high, S), 0);
}

/* Requests at random, this many per second in the mean, for some seconds; returns the share of them
 * that were kept out, in per cent. */
static double kept_out(struct weir__pressure *p, int32_t threshold, double mean, int seconds,
                       weir_time *now, uint64_t *seed)
{
    struct weir__pressure_plan plan = { .on = true, .options.rate = threshold };
    struct weir__reading reading = unknown;
    double out = 0, all = 0;

    for (weir_time end = *now + seconds * S; *now < end;) {
        int came = 0;
        for (int i = 0; i < 2000; i++)
            came += (double)(random64(seed) >> 11) / 9007199254740992.0 < mean / 4 / 2000;
        all += came, out += came * p->shed;
        reading.rate = 4 * came * (1 - p->shed);
        weir__pressure_step(&plan, p, &reading, 0, *now += LOOK);
    }
    return 100 * out / all;
}

/* In a quarter of a second chance easily makes 5 out of 3. */
TEST(test_G6_chance_in_a_low_rate_is_no_overload)
{
    static const int32_t thresholds[] = { 10, 20, 50, 100, 400 };
    weir_time now = NOW;
    uint64_t seed = 1;

    for (size_t i = 0; i < COUNT_OF(thresholds); i++) {
        struct weir__pressure p = { 0 };
        assert_true(kept_out(&p, thresholds[i], 0.7 * thresholds[i], 300, &now, &seed) <= 0.1);
        assert_true(kept_out(&p, thresholds[i], 0.8 * thresholds[i], 300, &now, &seed) <= 1);
    }
}

TEST(test_G6_a_flood_at_a_low_rate_is_seen_at_once_and_so_is_its_end)
{
    struct weir__pressure p = { 0 };
    weir_time now = NOW;
    uint64_t seed = 1;

    assert_true(kept_out(&p, 20, 10, 60, &now, &seed) <= 0);
    kept_out(&p, 20, 200, 2, &now, &seed);
    assert_true(p.shed >= 0.5);
    double out = kept_out(&p, 20, 200, 60, &now, &seed);
    assert_true(out >= 85 && out <= 95);
    kept_out(&p, 20, 10, 14, &now, &seed); /* by at most a tenth in each second */
    assert_true(kept_out(&p, 20, 10, 30, &now, &seed) <= 1);
}

TEST(test_G6_the_greatest_signal_counts)
{
    struct weir__reading one = { .cpu = 900, .psi_cpu = 0, .psi_memory = 0, .run_queue = 0 };
    struct weir_system_options all = { .cpu_percent = 80,
                                       .pressure_percent = 50,
                                       .memory_percent = 50,
                                       .run_queue = 4,
                                       .mean_time = S };

    assert_int_equal(
        after_five_seconds(&all, &one, S / 10),
        after_five_seconds(&(struct weir_system_options){ .cpu_percent = 80 }, &one, 0));
}

TEST(test_G6_what_is_not_known_does_not_count)
{
    struct weir_system_options all = {
        .cpu_percent = 1, .pressure_percent = 1, .memory_percent = 1, .run_queue = 1, .mean_time = 1
    };
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    weir_time now = NOW;

    assert_int_equal(after_five_seconds(&all, &unknown, 0), 0);
    assert_true(looks(&plan, &p, 1000, 20, &now) > 0);
    assert_int_equal(looks(&plan, &p, -1, 100, &now), 0); /* nothing says so any more */
}

TEST(test_G6_off_is_nothing)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 }, zeros = { 0 };
    weir_time now = NOW;

    looks(&plan, &p, 1000, 20, &now);
    plan.on = false;
    assert_int_equal(looks(&plan, &p, 1000, 1, &now), 0);
    assert_memory_equal(&p, &zeros, sizeof(p));
    assert_int_equal(weir__pressure_degradation(&p, now), 0);
}

/* --------------------------------------------------------------- times ---- */

TEST(test_G6_the_clock_may_step)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    weir_time now = NOW;
    int32_t shed = looks(&plan, &p, 1000, 12, &now);

    now -= 500 * S;
    assert_int_equal(looks(&plan, &p, 1000, 1, &now), shed);
    assert_true(weir__pressure_degradation(&p, now) <= 3);
    assert_true(looks(&plan, &p, 1000, 1, &now) > shed);
    shed = looks(&plan, &p, 780, 1, &now);
    now += 5000 * S; /* forward: one look is not worth more than a second of growing */
    assert_in_range(looks(&plan, &p, 1000, 1, &now), shed, shed + 150);
    now += 5000 * S;
    assert_int_equal(looks(&plan, &p, 100, 1, &now), 0);
}

TEST(test_G6_survives_any_state)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    uint64_t seed = 3;

    for (int i = 0; i < 1000; i++) {
        struct weir__pressure p;
        weir_time now = NOW;
        for (size_t b = 0; b < sizeof(p); b++)
            ((unsigned char *)&p)[b] = (unsigned char)random64(&seed);
        p.looked = (weir_time)(random64(&seed) >> 2);
        p.over_since = (weir_time)(random64(&seed) >> 2);
        assert_in_range(looks(&plan, &p, 900, 10, &now), 0, 950);
        assert_in_range(weir__pressure_degradation(&p, now), 0, 3);
    }
}

/* -------------------------------------------------------------- degradation ---- */

TEST(test_G5_degradation_as_it_grows_and_lasts)
{
    struct weir__pressure_plan plan = cpu_plan(50);
    struct weir__pressure p = { 0 };
    weir_time now = NOW, began;
    int degradation = 0;

    assert_int_equal(weir__pressure_degradation(&p, now), 0);
    looks(&plan, &p, 1000, 2, &now);
    began = now;
    assert_int_equal(weir__pressure_degradation(&p, now), 1);
    for (int i = 0; i < 100; i++) {
        looks(&plan, &p, 1000, 1, &now);
        int next = weir__pressure_degradation(&p, now);
        assert_true(next == degradation || next == degradation + 1 || degradation == 0);
        assert_true(next < 2 || now - began >= 3 * S);
        assert_true(next < 3 || now - began >= 10 * S);
        degradation = next;
    }
    assert_int_equal(degradation, 3);
    while (p.over) {
        looks(&plan, &p, 100, 1, &now);
        assert_true(weir__pressure_degradation(&p, now) <= degradation);
        degradation = weir__pressure_degradation(&p, now);
    }
    assert_int_equal(degradation, 0);
}

/* It rises at 25 and 50 %, and falls below 15 and 35 %. */
TEST(test_G5_degradation_does_not_flicker)
{
    static const struct {
        double shed;
        int present, next;
    } rows[] = { { 0.5, 2, 3 },  { 0.49, 2, 2 }, { 0.35, 3, 3 }, { 0.34, 3, 2 },
                 { 0.25, 1, 2 }, { 0.24, 1, 1 }, { 0.15, 2, 2 }, { 0.14, 2, 1 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir__pressure p = {
            .over = true, .over_since = NOW, .shed = rows[i].shed, .degradation = rows[i].present
        };
        assert_int_equal(weir__degradation_for(&p, NOW + 10 * S), rows[i].next);
    }
}

TEST(test_G5_old_degradation_is_none)
{
    struct weir__pressure_plan plan = cpu_plan(50);
    struct weir__pressure p = { 0 };
    weir_time now = NOW;

    looks(&plan, &p, 1000, 100, &now);
    assert_int_equal(weir__pressure_degradation(&p, now + 10 * S), 3);
    assert_int_equal(weir__pressure_degradation(&p, now + 10 * S + 1), 0);
}

/* --------------------------------------------------------- closed loop ---- */

struct host {
    double demand; /* percent of cpu that all that comes would need; above 100 it is 100 */
    double other;  /* and what does not depend on it */
    double noise;  /* points up and down */
    double seen;   /* smoothed as in host-load.c */
    uint64_t seed;
};

struct result {
    double cpu_min, cpu_max, cpu_mean, shed_min, shed_max;
};

static double cpu_now(struct host *h, double shed)
{
    double random = (double)(random64(&h->seed) >> 11) / 9007199254740992.0 * 2 - 1;
    double cpu = weir__least(h->other + h->demand * (1 - shed), 100) + h->noise * random;

    h->seen += 0.39 * (weir__least(weir__most(cpu, 0), 100) - h->seen);
    return cpu;
}

static struct result run(const struct weir__pressure_plan *plan, struct weir__pressure *p,
                         struct host *h, weir_time *now, int seconds)
{
    struct result r = { .cpu_min = 1000, .shed_min = 1 };
    int count = 0;

    for (weir_time end = *now + seconds * S; *now < end; count++) {
        double cpu = cpu_now(h, p->shed);
        looks(plan, p, (int32_t)(h->seen * 10 + 0.5), 1, now);
        r.cpu_min = weir__least(r.cpu_min, cpu), r.cpu_max = weir__most(r.cpu_max, cpu);
        r.cpu_mean += cpu;
        r.shed_min = weir__least(r.shed_min, p->shed), r.shed_max = weir__most(r.shed_max, p->shed);
    }
    r.cpu_mean /= count;
    return r;
}

/* Sentinel #1206: the cpu went up and down every second.  Here it comes to rest at the
 * threshold. */
TEST(test_G6_settles_at_the_threshold)
{
    static const double demands[] = { 90, 120, 200, 400, 1000 };

    for (size_t i = 0; i < COUNT_OF(demands); i++)
        for (int noise = 0; noise <= 3; noise++) {
            struct weir__pressure_plan plan = cpu_plan(80);
            struct weir__pressure p = { 0 };
            struct host h = { .demand = demands[i], .noise = noise, .seed = i + 1 };
            weir_time now = NOW;
            run(&plan, &p, &h, &now, 20 + (int)demands[i] / 40);
            struct result r = run(&plan, &p, &h, &now, 60);
            if (fabs(r.cpu_mean - 80) > 5 || r.cpu_min < 75 - noise || r.cpu_max > 85 + noise ||
                r.shed_max - r.shed_min >= 0.1)
                fail_msg("demand %.0f, noise %d: cpu %.1f to %.1f, mean %.1f; shed %.3f to %.3f",
                         h.demand, noise, r.cpu_min, r.cpu_max, r.cpu_mean, r.shed_min, r.shed_max);
            assert_int_equal(p.over, 1);
        }
}

/* Part of the load does not come from what is let in. */
TEST(test_G6_settles_beside_other_load)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    struct host h = { .demand = 100, .other = 50, .noise = 2, .seed = 5 };
    weir_time now = NOW;

    run(&plan, &p, &h, &now, 40);
    struct result r = run(&plan, &p, &h, &now, 60);
    assert_true(fabs(r.cpu_mean - 80) <= 5 && r.shed_max - r.shed_min < 0.1);
}

TEST(test_G6_ends_when_demand_ends)
{
    struct weir__pressure_plan plan = cpu_plan(80);
    struct weir__pressure p = { 0 };
    struct host h = { .demand = 200, .noise = 2, .seed = 5 };
    weir_time now = NOW;

    run(&plan, &p, &h, &now, 30);
    assert_true(p.shed > 0.4);
    h.demand = 60;
    run(&plan, &p, &h, &now, 15);
    assert_true(p.shed == 0 && p.over == 0);
    assert_true(run(&plan, &p, &h, &now, 60).shed_max == 0);
}

/* Pressure is seen as a mean of 10 s: slower, and not to and fro either. */
TEST(test_G6_settles_by_a_slow_signal)
{
    struct weir__pressure_plan plan = { .on = true, .options = { .pressure_percent = 40 } };
    struct weir__pressure p = { 0 };
    struct weir__reading reading = unknown;
    double seen = 0, low = 1, high = 0;

    for (int i = 0; i < 1600; i++) {
        double psi = weir__least(1, 0.8 * (1 - p.shed)) * 1000;
        if (i % 8 == 0)
            seen += 0.18 * (psi - seen); /* as the kernel does it, every 2 s */
        reading.psi_cpu = (int32_t)(seen + 0.5);
        weir__pressure_step(&plan, &p, &reading, 0, NOW + i * LOOK);
        if (i > 600) {
            low = weir__least(low, p.shed), high = weir__most(high, p.shed);
            assert_in_range(seen, 350, 450);
        }
    }
    assert_true(high - low < 0.1);
}
