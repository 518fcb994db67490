/* shed.c -- shedding: ranks, the cut, shares, and how it does as a loop.
 *
 * The plant: asks come by class and priority at rates, evenly or at random; permits are held for a
 * mean time, which bounds how many can be done in a second.  A tenth of a millisecond at a time.
 */
#include "unit/test.h"

#include "unit/fixture.h"

#include <math.h>

#include "guard/arithmetic.h"
#include "guard/shed.h"

#define MS     (S / 1000)
#define USERS  4096
#define FLOWS  6
#define SALT   0x5eed
#define STEP   (MS / 10)
#define A_TICK (100 * MS)

struct flow {
    int8_t priority;
    uint8_t user_class;
    double rate; /* per second */
    double due;
    int64_t offered, passed, entered;
};

struct plant {
    struct weir__shed shed;
    struct weir__shed_plan plan;
    struct flow flows[FLOWS];
    int64_t limit;
    double hold; /* seconds */
    uint64_t seed;
    bool at_random, spares;
    int32_t pressure;
    /* runs */
    weir_time now;
    double leaving;
    int64_t in_flight, entered, busy, since;
    int64_t total_entered, total_busy;
    double at_work;
    double room_min, room_max;
    int32_t admitted, admitted_min, admitted_max;
    bool users_in[USERS], watch;
    int64_t flips;
};

/* How many events of this mean, which is no more than about one. */
static int64_t draw(struct plant *p, double *due, double mean)
{
    int64_t count = 0;

    if (!p->at_random) {
        *due += mean;
        count = (int64_t)*due;
        *due -= (double)count;
        return count;
    }
    uint32_t chance = (uint32_t)(mean / 16 * 4294967296.0);
    for (int i = 0; i < 8; i++) {
        uint64_t two = random64(&p->seed);
        count += ((uint32_t)two < chance) + ((uint32_t)(two >> 32) < chance);
    }
    return count;
}

static uint32_t rank_of_user(uint32_t user, int8_t priority, weir_time now)
{
    return weir__shed_rank((struct weir_key){ &user, sizeof(user) }, priority, now, SALT);
}

/* The cohorts in turn, neighbours far apart. */
static uint32_t even_rank(const struct flow *f)
{
    return (uint32_t)(f->priority + 8) * WEIR__COHORTS +
           (uint32_t)(f->offered * 39 % WEIR__COHORTS);
}

static void ask(struct plant *p, struct flow *f)
{
    uint32_t user = (uint32_t)(random64(&p->seed) % USERS);
    uint32_t rank = p->at_random ? rank_of_user(user, f->priority, p->now) : even_rank(f);
    bool passed = weir__shed_pass(&p->shed, f->user_class, rank);
    int64_t spare = p->spares ? weir__shed_spare(&p->shed, f->user_class, rank) : 0;

    if (p->watch)
        p->flips += passed != p->users_in[user];
    p->users_in[user] = passed;
    f->offered++;
    if (!passed)
        return;
    f->passed++;
    if (p->in_flight + 1 + spare > p->limit) {
        p->busy++;
        return;
    }
    p->in_flight++;
    p->entered++;
    f->entered++;
}

static void tick(struct plant *p)
{
    struct weir__shed_sample sample = { .now = p->now,
                                        .span = p->now - p->since,
                                        .entered = p->entered,
                                        .refused_busy = p->busy,
                                        .in_flight = p->in_flight,
                                        .limit = p->limit,
                                        .pressure = p->pressure };

    p->admitted = weir__shed_tick(&p->plan, &p->shed, &sample);
    p->total_entered += p->entered;
    p->total_busy += p->busy;
    p->entered = p->busy = 0;
    p->since = p->now;
    p->room_min = weir__least(p->room_min, p->shed.room);
    p->room_max = weir__most(p->room_max, p->shed.room);
    p->admitted_min = p->admitted < p->admitted_min ? p->admitted : p->admitted_min;
    p->admitted_max = p->admitted > p->admitted_max ? p->admitted : p->admitted_max;
}

static void reset_counts(struct plant *p)
{
    for (int i = 0; i < FLOWS; i++)
        p->flows[i].offered = p->flows[i].passed = p->flows[i].entered = 0;
    p->total_entered = p->total_busy = p->flips = 0;
    p->room_min = p->admitted_min = INT32_MAX;
    p->room_max = p->admitted_max = 0;
}

static void run(struct plant *p, weir_time span)
{
    reset_counts(p);
    for (weir_time end = p->now + span; p->now < end;) {
        p->now += STEP;
        int64_t gone = draw(p, &p->leaving, (double)p->in_flight * 0.0001 / p->hold);
        p->in_flight -= gone < p->in_flight ? gone : p->in_flight;
        int64_t left[FLOWS], most = 0;
        for (int i = 0; i < FLOWS; i++) {
            left[i] = draw(p, &p->flows[i].due, p->flows[i].rate * 0.0001);
            most = left[i] > most ? left[i] : most;
        }
        for (; most > 0; most--) /* mixed */
            for (int64_t i = 0, first = p->now / STEP; i < FLOWS; i++)
                if (left[(first + i) % FLOWS] >= most)
                    ask(p, &p->flows[(first + i) % FLOWS]);
        if (p->now - p->since >= A_TICK)
            tick(p);
    }
}

/* 1000 per second can be done. */
static struct plant *new_plant(int64_t limit)
{
    struct plant *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    p->plan = (struct weir__shed_plan){ .on = true, .classes = 1, .weights = { 1 } };
    p->limit = limit;
    p->hold = (double)limit / 1000;
    p->seed = 1;
    p->spares = true;
    p->now = p->since = NOW;
    return p;
}

static void set_flow(struct plant *p, int i, int8_t priority, uint8_t user_class, double rate)
{
    p->flows[i].priority = priority;
    p->flows[i].user_class = user_class;
    p->flows[i].rate = rate;
}

static double part(const struct flow *f)
{
    return (double)f->entered / (double)f->offered;
}

/* ------------------------------------------------------------- ranks ---- */

TEST(test_G7_ranks_go_by_priority_first)
{
    for (int priority = -8; priority <= 7; priority++)
        for (uint32_t user = 0; user < 500; user++) {
            uint32_t rank = rank_of_user(user, (int8_t)priority, NOW);
            assert_int_equal(rank / WEIR__COHORTS, priority + 8);
            assert_int_equal(rank_of_user(user, (int8_t)priority, NOW), rank);
        }
    assert_int_equal(rank_of_user(1, -128, NOW) / WEIR__COHORTS, 0);
    assert_int_equal(rank_of_user(1, 127, NOW) / WEIR__COHORTS, WEIR__PRIORITIES - 1);
}

TEST(test_G7_cohorts_are_even_and_depend_on_the_salt)
{
    int counts[WEIR__COHORTS] = { 0 }, same = 0;

    for (uint32_t user = 0; user < 64000; user++) {
        char name[64];
        int length = snprintf(name, sizeof(name),
                              user % 2 ? "user-%u" : "a-user-whose-name-is-longer-%u", user);
        struct weir_key key = { name, (size_t)length };
        uint32_t rank = weir__shed_rank(key, 0, NOW, SALT);
        counts[rank % WEIR__COHORTS]++;
        same += weir__shed_rank(key, 0, NOW, SALT + 1) == rank;
    }
    for (int i = 0; i < WEIR__COHORTS; i++)
        assert_in_range(counts[i], 850, 1150);
    assert_in_range(same, 850, 1150);
    assert_in_range(weir__shed_rank((struct weir_key){ NULL, 0 }, 0, NOW, SALT), 8 * 64,
                    9 * 64 - 1);
}

/* In an hour everybody gets one new cohort, and in no minute many do. */
TEST(test_G7_users_are_hashed_anew_at_moments_of_their_own)
{
    weir_time minute = 60 * S;
    int moved[61] = { 0 }, changes = 0;

    for (uint32_t user = 0; user < 6000; user++) {
        int mine = 0;
        for (int m = 1; m <= 60; m++) {
            bool change = rank_of_user(user, 0, NOW + m * minute) !=
                          rank_of_user(user, 0, NOW + (m - 1) * minute);
            moved[m] += change;
            mine += change;
        }
        assert_true(mine <= 1);
        changes += mine;
    }
    assert_in_range(changes, 5800, 6000); /* 1 of 64 comes to where it was */
    for (int m = 1; m <= 60; m++)
        assert_in_range(moved[m], 50, 160);
}

/* ---------------------------------------------------------------- cut ---- */

TEST(test_G7_fresh_lets_everybody_in)
{
    FINALLY(memory_drop) struct plant *p = new_plant(100);
    for (uint32_t rank = 0; rank < WEIR__RANKS; rank++)
        for (uint32_t c = 0; c < WEIR_CLASSES; c++) {
            assert_true(weir__shed_pass(&p->shed, c, rank));
            assert_int_equal(weir__shed_spare(&p->shed, c, rank), 0);
        }
    assert_true(weir__shed_pass(&p->shed, 1000, 100000)); /* out of range: as the last */
}

TEST(test_G7_a_part_of_the_rank_at_the_cut_evenly)
{
    FINALLY(memory_drop) struct plant *p = new_plant(100);
    int passed = 0, run_of = 0;
    p->shed.cuts[0] = (uint64_t)500 << 32 | (uint64_t)(0.3 * 4294967296.0);
    for (int i = 0; i < 1000; i++) {
        bool in = weir__shed_pass(&p->shed, 0, 500);
        run_of = in ? 0 : run_of + 1;
        assert_true(run_of <= 3);
        passed += in;
    }
    assert_in_range(passed, 299, 301);
    assert_true(weir__shed_pass(&p->shed, 0, 501));
    assert_false(weir__shed_pass(&p->shed, 0, 499));
    assert_true(weir__shed_pass(&p->shed, 1, 0)); /* another class */
}

/* Pressure alone: of one rank that all share, just that share stays out (the histogram's
 * trap: one step sheds nearly all). */
TEST(test_G7_pressure_is_gradual_on_one_rank)
{
    for (int32_t pressure = 0; pressure <= 1000; pressure += 50) {
        FINALLY(memory_drop) struct plant *p = new_plant(100);
        int passed = 0;
        p->plan.on = false;
        for (int i = 0; i < 20; i++) {
            passed = 0;
            for (int n = 0; n < 1000; n++)
                passed += weir__shed_pass(&p->shed, 0, n % 100 < 93 ? 300 : 700);
            assert_int_equal(weir__shed_tick(&p->plan, &p->shed,
                                             &(struct weir__shed_sample){ .now = NOW + i * A_TICK,
                                                                          .span = A_TICK,
                                                                          .pressure = pressure }),
                             1000 - pressure);
        }
        assert_in_range(passed, 1000 - pressure - (pressure == 1000 ? 0 : 10),
                        1000 - pressure + 10);
    }
}

TEST(test_G7_pressure_begins_with_the_least_important)
{
    FINALLY(memory_drop) struct plant *p = new_plant(1000);
    p->plan.on = false;
    p->pressure = 250;
    set_flow(p, 0, 5, 0, 300);
    set_flow(p, 1, 0, 0, 300);
    set_flow(p, 2, -5, 0, 300);
    run(p, 3 * S);
    run(p, 5 * S);
    assert_int_equal(p->flows[0].passed, p->flows[0].offered);
    assert_int_equal(p->flows[1].passed, p->flows[1].offered);
    assert_in_range(p->flows[2].passed, p->flows[2].offered / 5, p->flows[2].offered * 3 / 10);
    p->pressure = 0;
    run(p, S);
    assert_int_equal(p->admitted_max, 1000);
    run(p, S);
    assert_int_equal(p->flows[2].passed, p->flows[2].offered);
}

/* Without `on` it never sheds by itself. */
TEST(test_G7_off_only_obeys_pressure)
{
    FINALLY(memory_drop) struct plant *p = new_plant(50);
    p->plan.on = false;
    set_flow(p, 0, 0, 0, 10000);
    run(p, 5 * S);
    assert_fields(*p, (admitted_min, 1000), (flows[0].passed, p->flows[0].offered));
}

TEST(test_G7_a_span_of_nothing_changes_nothing)
{
    FINALLY(memory_drop) struct plant *p = new_plant(50);
    struct weir__shed before;
    set_flow(p, 0, 0, 0, 10000);
    run(p, 5 * S);
    before = p->shed;
    assert_true(p->admitted < 1000);
    for (weir_time span = 0; span >= -5 * S; span -= S)
        assert_int_equal(
            weir__shed_tick(&p->plan, &p->shed,
                            &(struct weir__shed_sample){ .span = span, .entered = 5, .limit = 50 }),
            p->admitted);
    assert_memory_equal(&before, &p->shed, sizeof(before));
}

/* --------------------------------------------------------------- loop ---- */

/* Ten times too much, the most important of it fits alone. */
static struct plant *flooded(int64_t limit)
{
    struct plant *p = new_plant(limit);

    set_flow(p, 0, 7, 0, 500);
    set_flow(p, 1, 0, 0, 2500);
    set_flow(p, 2, -8, 0, 7000);
    return p;
}

/* What is spared for the important is the only loss; of few permits it is a larger part. */
TEST(test_G7_lowest_first_and_permits_stay_full)
{
    for (int64_t limit = 16; limit <= 4096; limit *= 4) {
        FINALLY(memory_drop) struct plant *p = flooded(limit);
        run(p, 3 * S);
        run(p, 10 * S);
        assert_true(part(&p->flows[0]) >= 0.99);
        assert_in_range(p->total_entered, limit < 64 ? 7400 : limit < 256 ? 8800 : 9600, 10100);
        assert_true(p->flows[1].entered >= p->total_entered - 5010);
        assert_int_equal(p->flows[2].passed, 0);
    }
}

/* Nobody is more important: nothing is spared, and hardly anybody let in for nothing. */
TEST(test_G7_permits_stay_full_with_one_priority)
{
    for (int64_t limit = 16; limit <= 4096; limit *= 4) {
        FINALLY(memory_drop) struct plant *p = new_plant(limit);
        set_flow(p, 0, 0, 0, 10000);
        run(p, 3 * S);
        run(p, 10 * S);
        assert_in_range(p->total_entered, 9500, 10100);
        assert_int_equal(weir__shed_spare(&p->shed, 0, 8 * WEIR__COHORTS), 0);
        assert_true((double)p->total_busy < (limit < 100 ? 0.5 : 0.05) * (double)p->total_entered);
    }
}

/* Even if the ask ignores spared permits. */
TEST(test_G7_without_sparing)
{
    FINALLY(memory_drop) struct plant *p = flooded(256);
    p->spares = false;
    run(p, 3 * S);
    run(p, 10 * S);
    assert_true(part(&p->flows[0]) >= 0.97);
    assert_in_range(p->total_entered, 9700, 10100);
}

/* The first second of a flood is not much worse. */
TEST(test_G7_sheds_at_once)
{
    FINALLY(memory_drop) struct plant *p = flooded(100);
    p->flows[1].rate = p->flows[2].rate = 0;
    run(p, 3 * S);
    assert_int_equal(p->admitted_min, 1000);
    p->flows[1].rate = 2500, p->flows[2].rate = 7000;
    run(p, S);
    assert_true(part(&p->flows[0]) >= 0.75); /* until the first tick nobody is told apart, until the
                                                second it is not clear who comes */
    run(p, S);
    assert_true(part(&p->flows[0]) >= 0.98);
}

/* Then permits are either idle at times or all out at times; chance refuses the least important. */
TEST(test_G7_traffic_at_random)
{
    static const struct {
        int64_t limit;
        double top, entered;
    } rows[] = { { 32, 0.96, 0.82 },
                 { 64, 0.97, 0.88 },
                 { 128, 0.97, 0.92 },
                 { 256, 0.98, 0.94 },
                 { 1024, 0.98, 0.955 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        FINALLY(memory_drop) struct plant *p = flooded(rows[i].limit);
        p->at_random = true;
        run(p, 5 * S);
        run(p, 20 * S);
        double entered = (double)p->total_entered / 20000;
        if (part(&p->flows[0]) < rows[i].top || entered < rows[i].entered)
            fail_msg("%d permits: of the most important %.3f entered; %.3f of what can be done",
                     (int)rows[i].limit, part(&p->flows[0]), entered);
        assert_true((double)p->flows[2].passed < 0.01 * (double)p->flows[2].offered);
    }
}

TEST(test_G7_ends_when_the_flood_ends)
{
    FINALLY(memory_drop) struct plant *p = flooded(100);
    run(p, 5 * S);
    assert_true(p->admitted < 200);
    p->flows[1].rate = 300, p->flows[2].rate = 100;
    run(p, S);
    assert_true(part(&p->flows[2]) >= 0.5);
    run(p, S);
    assert_fields(*p, (admitted_min, 1000), (flows[2].passed, p->flows[2].offered));
    assert_true(p->shed.room == 0);
}

/* A backend that becomes four times faster, or slower. */
TEST(test_G7_follows_the_capacity)
{
    FINALLY(memory_drop) struct plant *p = flooded(100);
    run(p, 5 * S);
    p->hold /= 4;
    run(p, 2 * S);
    run(p, 5 * S);
    assert_in_range(p->total_entered, 18000, 20200);
    p->hold *= 8;
    run(p, 3 * S);
    run(p, 5 * S);
    assert_in_range(p->total_entered, 2350, 2550);
    p->hold /= 2;
    p->limit *= 3; /* an adaptive limit has moved */
    run(p, 2 * S);
    run(p, 5 * S);
    assert_in_range(p->total_entered, 14100, 15200);
}

/* All permits are held for ever, then come back. */
TEST(test_G7_nothing_is_done_for_a_time)
{
    FINALLY(memory_drop) struct plant *p = flooded(100);
    run(p, 5 * S);
    p->hold = 1e9;
    run(p, 20 * S);
    assert_true(p->shed.room <= 20);
    p->hold = 0.1;
    run(p, 2 * S);
    run(p, 5 * S);
    assert_in_range(p->total_entered, 4700, 5050);
}

TEST(test_G7_does_not_swing)
{
    for (int seed = 1; seed <= 4; seed++) {
        FINALLY(memory_drop) struct plant *p = flooded(100);
        p->seed = (uint64_t)seed;
        p->at_random = seed > 2;
        run(p, 20 * S);
        run(p, 20 * S);
        assert_true(p->room_max - p->room_min < 0.2 * p->room_max);
        assert_true(p->admitted_max - p->admitted_min <= 30);
    }
}

/* Twice too much of one priority: half of the users get nearly everything, the others nearly
 * nothing. */
TEST(test_G7_the_same_users_consistently)
{
    FINALLY(memory_drop) struct plant *p = new_plant(200);
    p->at_random = true;
    set_flow(p, 0, 0, 0, 2000);
    run(p, 5 * S);
    p->watch = true;
    run(p, 20 * S);
    assert_in_range(p->flows[0].passed, p->flows[0].offered * 50 / 100,
                    p->flows[0].offered * 59 / 100);
    assert_true((double)p->flips <
                0.05 * (double)p->flows[0].offered); /* those of the cohort at the cut */
}

TEST(test_G7_too_much_of_the_most_important)
{
    FINALLY(memory_drop) struct plant *p = new_plant(100);
    set_flow(p, 0, 7, 0, 4000);
    set_flow(p, 1, -8, 0, 4000);
    run(p, 3 * S);
    run(p, 10 * S);
    assert_in_range(p->flows[0].entered, 9700, 10100);
    assert_int_equal(p->flows[1].passed, 0);
}

/* ------------------------------------------------------------ classes ---- */

static struct plant *three_classes(double a, double b, double c)
{
    struct plant *p = new_plant(100);

    p->at_random = true;
    p->plan = (struct weir__shed_plan){ .on = true, .classes = 3, .weights = { 3, 2, 1 } };
    set_flow(p, 0, 0, 0, a);
    set_flow(p, 1, 0, 1, b);
    set_flow(p, 2, 0, 2, c);
    run(p, 3 * S);
    run(p, 10 * S);
    return p;
}

static void assert_shares(const struct plant *p, double a, double b, double c)
{
    double wanted[] = { a, b, c };

    for (int i = 0; i < 3; i++) {
        double got = (double)p->flows[i].entered / (double)p->total_entered;
        if (fabs(got - wanted[i]) > 0.05 * wanted[i] + 0.005)
            fail_msg("class %d got %.3f, not %.3f", i, got, wanted[i]);
    }
    assert_in_range(p->total_entered, 9300, 10200);
}

TEST(test_G7_classes_get_their_parts)
{
    FINALLY(memory_drop) struct plant *p = three_classes(3000, 3000, 3000);
    assert_shares(p, 3.0 / 6, 2.0 / 6, 1.0 / 6);
    free(p);
    p = three_classes(2000, 2000, 20000); /* who floods gains nothing */
    assert_shares(p, 3.0 / 6, 2.0 / 6, 1.0 / 6);
}

TEST(test_G7_what_a_class_leaves_the_others_get)
{
    FINALLY(memory_drop) struct plant *p = three_classes(100, 3000, 3000);
    assert_shares(p, 0.1, 0.6, 0.3);
    assert_int_equal(p->flows[0].passed, p->flows[0].offered);
    free(p);
    p = three_classes(100, 100, 9000);
    assert_shares(p, 0.1, 0.1, 0.8);
    free(p);
    p = three_classes(0, 0, 9000);
    assert_int_equal(p->flows[2].entered, p->total_entered);
    assert_in_range(p->total_entered, 9300, 10200);
}

/* Within a class it goes by priority; the other class is not touched by it. */
TEST(test_G7_priority_within_a_class)
{
    FINALLY(memory_drop) struct plant *p = new_plant(100);
    p->plan = (struct weir__shed_plan){ .on = true, .classes = 2, .weights = { 1, 1 } };
    set_flow(p, 0, 7, 0, 5000);
    set_flow(p, 1, -8, 0, 5000);
    set_flow(p, 2, -8, 1, 400);
    run(p, 3 * S);
    run(p, 10 * S);
    assert_true(part(&p->flows[2]) >= 0.98);
    assert_int_equal(p->flows[1].passed, 0);
    assert_in_range(p->flows[0].entered, 5400, 6200);
}

/* -------------------------------------------------------------- other ---- */

TEST(test_G7_a_light_load_is_left_alone)
{
    FINALLY(memory_drop) struct plant *p = new_plant(100);
    p->at_random = true;
    set_flow(p, 0, 0, 0, 700);
    run(p, 60 * S);
    assert_int_equal(p->admitted_min, 1000);
}

/* Shares are fractions: their rounding sheds nobody. */
TEST(test_G7_a_light_load_of_classes_is_left_alone)
{
    FINALLY(memory_drop) struct plant *p = three_classes(7, 5, 3);
    run(p, 60 * S);
    for (int i = 0; i < 3; i++)
        assert_int_equal(p->flows[i].entered, p->flows[i].offered);
}

/* Three asks at once are no rate of thirty per second. */
TEST(test_G7_a_few_asks_are_no_flood)
{
    FINALLY(memory_drop) struct plant *p = new_plant(1);
    set_flow(p, 0, 0, 0, 3);
    p->hold = 1;
    for (int i = 0; i < 3; i++)
        ask(p, &p->flows[0]);
    run(p, 20 * S);
    assert_int_equal(p->flows[0].passed, p->flows[0].offered);
    assert_int_equal(p->admitted_min, 1000);
}

/* Ticks that are late are as good. */
TEST(test_G7_any_span)
{
    for (weir_time span = 100 * MS; span <= 10 * S; span *= 10) {
        FINALLY(memory_drop) struct plant *p = new_plant(100);
        struct weir__shed_sample sample = { .span = span,
                                            .in_flight = 100,
                                            .limit = 100,
                                            .entered = span / MS,
                                            .refused_busy = 9 * span / MS };
        int32_t admitted = 0;
        for (int i = 0; i < 3; i++) {
            for (int64_t n = 0; n < 10 * span / MS; n++)
                (void)weir__shed_pass(&p->shed, 0, (uint32_t)n % 64);
            admitted = weir__shed_tick(&p->plan, &p->shed, &sample);
        }
        assert_in_range(admitted, 80, 105);
        assert_in_range(p->shed.room, 850, 1005);
    }
}

/* An adaptive rate bounds, not permits: there is nothing to see of how full they are. */
TEST(test_G7_a_rate_that_bounds)
{
    FINALLY(memory_drop) struct plant *p = new_plant(100);
    int64_t entered = 0, passed = 0;
    for (int i = 0; i < 600; i++) {
        int64_t in = 0;
        for (int n = 0; n < 1000; n++)
            in += weir__shed_pass(&p->shed, 0, (uint32_t)n * 39 % 64);
        int64_t found = in < 100 ? in : 100; /* per tick: 1000 per second */
        struct weir__shed_sample sample = {
            .span = A_TICK, .in_flight = 7, .entered = found, .refused_busy = in - found
        };
        weir__shed_tick(&p->plan, &p->shed, &sample);
        if (i >= 100)
            entered += found, passed += in;
    }
    assert_in_range(entered, 48000, 50000);
    assert_in_range(passed, 48000, 52500);
}

/* What is in the memory that is shared is not always what was written. */
TEST(test_G7_survives_any_state)
{
    FINALLY(memory_drop) struct plant *p = new_plant(100);
    uint64_t seed = 7;
    for (int round = 0; round < 200; round++) {
        unsigned char *bytes = (unsigned char *)&p->shed;
        for (size_t i = 0; i < sizeof(p->shed); i++)
            bytes[i] = (unsigned char)random64(&seed);
        for (int i = 0; i < 50; i++) {
            int32_t admitted = weir__shed_tick(
                &p->plan, &p->shed,
                &(struct weir__shed_sample){
                    .span = A_TICK, .entered = 100, .in_flight = 50, .limit = 100 });
            assert_in_range(admitted, 0, 1000);
            (void)weir__shed_pass(&p->shed, 0, (uint32_t)i * 20);
        }
    }
}

TEST(test_G6_pressure_sheds_nothing_of_nothing)
{
    struct weir__shed shed = { 0 };
    struct weir__shed_plan plan = { .on = true, .classes = 1 };
    struct weir__shed_sample sample = { .span = A_TICK, .limit = 10, .pressure = 500 };

    assert_int_equal(weir__shed_tick(&plan, &shed, &sample), 1000);
}

TEST(test_numbers)
{
    for (double x = 1e-9; x < 1e15; x *= 7)
        assert_true(fabs(weir__root(x) * weir__root(x) / x - 1) < 1e-9);
    assert_true(weir__root(0) == 0 && weir__root(-1) == 0 && weir__root(NAN) == 0 &&
                weir__root(INFINITY) == 0);
    assert_true(weir__between(1, NAN, 2) == 1 && weir__between(1, INFINITY, 2) == 2 &&
                weir__between(1, -INFINITY, 2) == 1);
    assert_true(weir__share(1, 1) == 0.5 && weir__share(0, 1) == 0 && weir__share(1, 0) == 1);
}
