/* random.c -- a trial's random numbers, the same on every machine.
 *
 * splitmix64, and distributions in integers: libm's log and exp may differ in the last bit between
 * machines, and one such bit would change everything after it.
 */
#include "server/sim/sim.h"

#include "base/hash.h"

#include <stdlib.h>

#define LN_2   UINT64_C(2977044472) /* ln 2 and 1 / ln 2, times 2^32 */
#define LOG2_E UINT64_C(6196328019)

#define FOR_EVER (INT64_MAX / 4)

uint64_t weir__sim_dice_roll(struct weir__sim_dice *dice)
{
    return weir__mix64(dice->state += WEIR__GOLDEN);
}

void weir__sim_dice_seed(struct weir__sim_dice *dice, uint64_t seed, uint64_t stream)
{
    dice->state = weir__mix64(seed) ^ weir__mix64(~stream);
}

int64_t weir__sim_dice_below(struct weir__sim_dice *dice, int64_t n)
{
    return (int64_t)((weir__u128)weir__sim_dice_roll(dice) * (uint64_t)n >> 64);
}

/* -ln(u / 2^64), times 2^32.  The logarithm to base 2, a bit at a time: squaring doubles it.  24
 * bits will do. */
static uint64_t minus_log(uint64_t u)
{
    unsigned zeros = (unsigned)__builtin_clzll(u | 1);
    weir__u128 x = (weir__u128)(u | 1) << zeros; /* 1 to 2, times 2^63 */
    uint64_t bits = 0;

    for (int i = 0; i < 24; i++) {
        x = x * x >> 63;
        uint64_t two = (uint64_t)(x >> 64);
        x >>= two;
        bits = bits << 1 | two;
    }
    return (uint64_t)((weir__u128)(((uint64_t)(zeros + 1) << 32) - (bits << 8)) * LN_2 >> 32);
}

weir_time weir__sim_dice_exponential(struct weir__sim_dice *dice, weir_time mean)
{
    return (weir_time)((weir__u128)(uint64_t)mean * minus_log(weir__sim_dice_roll(dice)) >> 32);
}

/* value * e^x, x times 2^32: e^x = 2^whole * e^rest, the rest by its series. */
static weir_time times_exp(weir_time value, int64_t x)
{
    int64_t y = (int64_t)((weir__i128)x * (int64_t)LOG2_E >> 32);
    int64_t whole = y >> 32;
    uint64_t rest = (uint64_t)((weir__u128)((uint64_t)y & UINT32_MAX) * LN_2 >> 4); /* times 2^60 */
    uint64_t term = UINT64_C(1) << 60, sum = term;

    for (unsigned n = 1; n < 14; n++) {
        term = (uint64_t)((weir__u128)term * rest >> 60) / n;
        sum += term;
    }
    weir__u128 product = (weir__u128)(uint64_t)value * (sum >> 4); /* times 2^56 */
    if (whole < -50 || whole > 55)
        return whole < 0 ? 0 : FOR_EVER;
    product >>= 56 - whole;
    return product > FOR_EVER ? FOR_EVER : (weir_time)product;
}

/* About normal, times 2^32: twelve numbers from 0 to 1 added, less 6.  Never beyond 6
 * deviations. */
static int64_t roll_normal(struct weir__sim_dice *dice)
{
    int64_t sum = 0;

    for (int i = 0; i < 6; i++) {
        uint64_t roll = weir__sim_dice_roll(dice);
        sum += (int64_t)(roll >> 32) + (int64_t)(roll & UINT32_MAX);
    }
    return sum - ((int64_t)6 << 32);
}

/* The mean of e^(s n) is e^(s s / 2), which is taken off. */
static weir_time roll_lognormal(struct weir__sim_dice *dice, weir_time mean, int64_t spread)
{
    int64_t half = (int64_t)(((weir__i128)spread * spread << 31) / (WEIR__SIM_ONE * WEIR__SIM_ONE));
    int64_t x = (int64_t)((weir__i128)roll_normal(dice) * spread / WEIR__SIM_ONE) - half;

    return times_exp(mean, x);
}

static weir_time roll_bimodal(struct weir__sim_dice *dice, const struct weir__sim_work *w)
{
    if (weir__sim_dice_below(dice, WEIR__SIM_ONE) < w->slow_share)
        return w->slow;
    weir__i128 rest = (weir__i128)w->mean * WEIR__SIM_ONE - (weir__i128)w->slow * w->slow_share;
    return (weir_time)(rest / (WEIR__SIM_ONE - w->slow_share));
}

weir_time weir__sim_dice_work(struct weir__sim_dice *dice, const struct weir__sim_work *w)
{
    switch (w->shape) {
    case WEIR__SIM_WORK_CONSTANT:
        return w->mean;
    case WEIR__SIM_WORK_EXPONENTIAL:
        return w->floor + weir__sim_dice_exponential(dice, w->mean - w->floor);
    case WEIR__SIM_WORK_LOGNORMAL:
        return w->floor + roll_lognormal(dice, w->mean - w->floor, w->spread);
    case WEIR__SIM_WORK_BIMODAL:
        return roll_bimodal(dice, w);
    }
    return w->mean;
}

static int compare(const void *left, const void *right)
{
    weir_time a = *(const weir_time *)left, b = *(const weir_time *)right;

    return (a > b) - (a < b);
}

weir_time weir__sim_work_quantile(const struct weir__sim_work *work, int permille)
{
    enum { ROLLS = 20000 };
    weir_time *rolls = malloc(ROLLS * sizeof(*rolls));
    struct weir__sim_dice dice;

    if (rolls == NULL)
        return 0;
    weir__sim_dice_seed(&dice, 1, 1);
    for (int i = 0; i < ROLLS; i++)
        rolls[i] = weir__sim_dice_work(&dice, work);
    qsort(rolls, ROLLS, sizeof(*rolls), compare);
    weir_time found = rolls[(int64_t)(ROLLS - 1) * permille / 1000];
    free(rolls);
    return found;
}
