/* number.h -- the little arithmetic that controllers need.
 *
 * Why not math.h: whoever links the library would have to link libm too, for a square root.
 */
#ifndef WEIR_GUARD_NUMBER_H
#define WEIR_GUARD_NUMBER_H

static inline double weir__least(double a, double b)
{
    return a < b ? a : b;
}

static inline double weir__most(double a, double b)
{
    return a > b ? a : b;
}

/* Also what is no number becomes one: memory is shared. */
static inline double weir__between(double low, double x, double high)
{
    return !(x > low) ? low : weir__least(x, high);
}

/* The square root, by Newton's method from a power of two that is not far; 0 of what is not above 0. */
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

/* How much of a mean that is to last so long goes in this time: between 0 and 1 whatever the times are. */
static inline double weir__share(double seconds, double lasts)
{
    return seconds / (seconds + lasts);
}

#endif
