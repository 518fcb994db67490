/* random.c -- random numbers of a trial: always the same, and distributed as they should be. */
#include "unit/test.h"

#include "server/sim/sim.h"

#define MS WEIR_MILLISECOND
#define N  200000

static double mean_of(const struct weir__sim_work *work, double *above)
{
    struct weir__sim_dice dice;
    double sum = 0;

    weir__sim_dice_seed(&dice, 1, 2);
    *above = 0;
    for (int i = 0; i < N; i++) {
        weir_time time = weir__sim_dice_work(&dice, work);
        assert_true(time >= work->floor);
        sum += (double)time;
        *above += time > work->mean;
    }
    *above /= N;
    return sum / N;
}

static void assert_near(double value, double wanted, double share)
{
    if (!(value > wanted * (1 - share) && value < wanted * (1 + share)))
        fail_msg("%g is not near %g", value, wanted);
}

TEST(test_same_seed_same_rolls)
{
    struct weir__sim_dice a, b, c;

    weir__sim_dice_seed(&a, 1, 2);
    weir__sim_dice_seed(&b, 1, 2);
    weir__sim_dice_seed(&c, 1, 3);
    for (int i = 0; i < 100; i++) {
        uint64_t roll = weir__sim_dice_roll(&a);
        assert_true(roll == weir__sim_dice_roll(&b));
        assert_true(roll != weir__sim_dice_roll(&c));
    }
}

/* These very numbers, on every machine. */
TEST(test_known_rolls)
{
    static const struct weir__sim_work lognormal = { .shape = WEIR__SIM_WORK_LOGNORMAL,
                                                     .mean = 20 * MS,
                                                     .spread = WEIR__SIM_ONE };
    struct weir__sim_dice dice;

    weir__sim_dice_seed(&dice, 1, 1);
    assert_int_equal(weir__sim_dice_exponential(&dice, WEIR_SECOND), 778890287);
    assert_int_equal(weir__sim_dice_work(&dice, &lognormal), 57324888);
    assert_int_equal(weir__sim_dice_below(&dice, 1000000), 990345);
}

TEST(test_below_stays_below)
{
    struct weir__sim_dice dice = { 0 };
    int seen[7] = { 0 };

    for (int i = 0; i < 70000; i++)
        seen[weir__sim_dice_below(&dice, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_near(seen[i], 10000, 0.05);
    assert_int_equal(weir__sim_dice_below(&dice, 1), 0);
}

TEST(test_exponential)
{
    double above;

    assert_near(mean_of(&(struct weir__sim_work){ .mean = 20 * MS }, &above), 20e6, 0.01);
    assert_near(above, 0.3679, 0.01); /* 1/e */
    assert_near(mean_of(&(struct weir__sim_work){ .mean = 20 * MS, .floor = 15 * MS }, &above),
                20e6, 0.01);
    assert_near((double)weir__sim_work_quantile(&(struct weir__sim_work){ .mean = 20 * MS }, 990),
                92.1e6, 0.05);
}

TEST(test_lognormal)
{
    struct weir__sim_work work = { .shape = WEIR__SIM_WORK_LOGNORMAL,
                                   .mean = 20 * MS,
                                   .spread = WEIR__SIM_ONE / 2 };
    double above;

    assert_near(mean_of(&work, &above), 20e6, 0.01);
    assert_near(above, 0.4013, 0.02); /* 1 - Phi(1/4) */
    assert_near((double)weir__sim_work_quantile(&work, 500), 20e6 * 0.8825, 0.02); /* e^(-1/8) */
    assert_near((double)weir__sim_work_quantile(&work, 990), 20e6 * 2.8240,
                0.04); /* e^(2.3263/2 - 1/8) */
}

/* A few in ten thousand take over 128 times the mean, and none takes for ever. */
TEST(test_lognormal_with_a_heavy_tail)
{
    struct weir__sim_work work = { .shape = WEIR__SIM_WORK_LOGNORMAL,
                                   .mean = 20 * MS,
                                   .spread = 2 * WEIR__SIM_ONE };
    struct weir__sim_dice dice;
    weir_time longest = 0;
    double above;

    /* (sinh 1)^12 / e^2: twelve numbers have a thinner tail than the normal distribution */
    assert_near(mean_of(&work, &above), 20e6 * 0.939, 0.05);
    assert_near(above, 0.1587, 0.02); /* 1 - Phi(1) */
    weir__sim_dice_seed(&dice, 1, 2);
    for (int i = 0; i < N; i++) {
        weir_time time = weir__sim_dice_work(&dice, &work);
        longest = time > longest ? time : longest;
    }
    assert_in_range(longest, 128 * work.mean, 22027 * work.mean); /* e^(6 * 2 - 2) */
}

TEST(test_bimodal_and_constant)
{
    struct weir__sim_work work = { .shape = WEIR__SIM_WORK_BIMODAL,
                                   .mean = 20 * MS,
                                   .slow = 200 * MS,
                                   .slow_share = WEIR__SIM_ONE / 20 };
    double above;

    assert_near(mean_of(&work, &above), 20e6, 0.02);
    assert_near(above, 0.05, 0.03);
    assert_near(
        mean_of(&(struct weir__sim_work){ .shape = WEIR__SIM_WORK_CONSTANT, .mean = 20 * MS },
                &above),
        20e6, 1e-9);
    assert_true(above == 0);
}
