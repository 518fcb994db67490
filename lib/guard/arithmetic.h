/* arithmetic.h -- arithmetic for controllers and shedding.
 *
 * Why not <math.h>: users of the library would have to link libm for a square root.
 */
#ifndef WEIR_GUARD_ARITHMETIC_H
#define WEIR_GUARD_ARITHMETIC_H

#include "base/base.h"

static inline double weir__least(double a, double b)
{
    return a < b ? a : b;
}

static inline double weir__most(double a, double b)
{
    return a > b ? a : b;
}

/* NaN becomes `low`: memory is shared. */
static inline double weir__between(double low, double x, double high)
{
    return !(x > low) ? low : weir__least(x, high);
}

static inline int64_t weir__int_between(int64_t low, int64_t x, int64_t high)
{
    return x < low ? low : weir__int_least(x, high);
}

/* Neither infinite nor NaN. */
static inline bool weir__is_finite(double x)
{
    return x - x == 0;
}

/* The square root, by Newton's method from a near power of two; 0 unless x is positive. */
static inline double weir__root(double x)
{
    double root = 1;

    if (!(x > 0 && x < 1e300))
        return 0;
    while (root * root < x)
        root *= 2;
    while (root * root > 4 * x)
        root /= 2;
    for (int i = 0; i < 5; i++)
        root = (root + x / root) / 2;
    return root;
}

/* The share of a mean over `lasts` that is replaced in this time: from 0 to 1 for any times. */
static inline double weir__share(double seconds, double lasts)
{
    return seconds / (seconds + lasts);
}

/* A time for people: at most three digits of it; 93ms, which 93.4ms would print as 93400us. */
static inline int64_t weir__three_digits(int64_t time)
{
    int64_t unit = 1;

    while (time / unit >= 1000)
        unit *= 1000;
    if (unit > 1 && time / unit < 10)
        unit /= 100;
    return time / unit * unit;
}

#endif
