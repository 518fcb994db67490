/* histogram.c -- times of finished work, in 512 counts.
 *
 * A time is measured in sixteenths of a microsecond (62.5 ns).  From 16 on, the highest bit of the
 * number gives the doubling, the four bits below it the sixteenth of that doubling; together they
 * are the bin.  A bin from a to b stands for its middle, which is at most (b - a) / 2 off, and b -
 * a is at most a / 16: at most 1/32 of any time.
 *
 * Why not a digest (t-digest, KLL): more exact in the same memory, but two of them merge only
 * roughly, and each is a complicated state.  Bins add up exactly, in any order, from any process,
 * and the bound always holds.
 */
#include "guard/histogram.h"

#include <string.h>

#include "base/atomic.h"

#define SIXTEENTHS_MAX (((int64_t)1 << 36) - 1) /* 32 doublings from 16: 4295 s */

_Static_assert(WEIR__BINS == 32 * 16, "32 doublings, 16 bins each");

unsigned weir__bin_of(weir_time took)
{
    if (took < WEIR_MICROSECOND)
        return 0;
    int64_t n = took < SIXTEENTHS_MAX / 2 * 125 ? took * 2 / 125 : SIXTEENTHS_MAX; /* of 62.5 ns */
    unsigned doubling = 59 - (unsigned)__builtin_clzll((uint64_t)n); /* 16 to 31: the first */
    return doubling * 16 + (unsigned)(n >> doubling) - 16;
}

weir_time weir__bin_middle(unsigned bin)
{
    int64_t halves = (int64_t)(33 + 2 * (bin % 16)) << bin / 16; /* of 31.25 ns */

    return halves * 125 / 4;
}

/* -------------------------------------------------------------- quantiles ---- */

/* The rank, from 1, of this quantile among `total` samples (nearest rank). */
static uint64_t rank_of(uint64_t total, int permille)
{
    uint64_t part = permille < 0 ? 0 : permille > 1000 ? 1000 : (uint64_t)permille;
    uint64_t rank = total / 1000 * part + (total % 1000 * part + 999) / 1000;

    return rank ? rank : 1;
}

struct stretch {
    const struct weir__histogram *parts;
    int64_t first, last; /* numbers of parts; last < first: none */
};

static uint64_t count_bin(const struct stretch *s, unsigned bin)
{
    uint64_t n = 0;

    for (int64_t i = s->last - s->first; i >= 0; i--)
        n += s->parts[(s->first + i) % WEIR__RECENT_PARTS].counts[bin];
    return n;
}

static uint64_t count_all(const struct stretch *s)
{
    uint64_t n = 0;

    for (unsigned bin = 0; bin < WEIR__BINS; bin++)
        n += count_bin(s, bin);
    return n;
}

static weir_time quantile(const struct stretch *s, int permille)
{
    uint64_t total = count_all(s), rank = rank_of(total, permille), below = 0;

    for (unsigned bin = 0; total > 0 && bin < WEIR__BINS; bin++) {
        below += count_bin(s, bin);
        if (below >= rank)
            return weir__bin_middle(bin);
    }
    return -1;
}

/* ----------------------------------------------------------------- recent ---- */

static weir_time part_length(weir_time window)
{
    return window >= WEIR__RECENT_PARTS ? window / WEIR__RECENT_PARTS : 1;
}

int64_t weir__recent_part(weir_time window, weir_time at)
{
    return at > 0 ? (at - 1) / part_length(window) : 0;
}

/* Part `number` begins.  Old parts are emptied first and `latest` is set last: a process that dies
 * in between loses old samples, and invents none. */
static void turn(struct weir__recent *r, int64_t number)
{
    bool other =
        r->latest < 0 ||
        r->latest >
            number; /* the clock stepped back by a whole window, or the window has changed */
    int64_t gone =
        other || number - r->latest >= WEIR__RECENT_PARTS ? WEIR__RECENT_PARTS : number - r->latest;

    for (int64_t i = 0; i < gone; i++)
        memset(
            &r->parts[(number % WEIR__RECENT_PARTS + WEIR__RECENT_PARTS - i) % WEIR__RECENT_PARTS],
            0, sizeof(r->parts[0]));
    r->latest = number;
}

/* A time that is a little late counts in the latest part. */
static bool is_late(const struct weir__recent *r, int64_t number)
{
    return number <= r->latest && r->latest - number < WEIR__RECENT_PARTS;
}

void weir__recent_add(struct weir__recent *recent, const struct weir__histogram *h,
                      weir_time window, weir_time now)
{
    int64_t number = weir__recent_part(window, now);

    if (!is_late(recent, number))
        turn(recent, number);
    struct weir__histogram *part = &recent->parts[recent->latest % WEIR__RECENT_PARTS];
    for (unsigned bin = 0; bin < WEIR__BINS; bin++)
        part->counts[bin] = h->counts[bin] > UINT32_MAX - part->counts[bin]
                                ? UINT32_MAX
                                : part->counts[bin] + h->counts[bin];
}

/* The parts within the window that began at or after `since`. */
static struct stretch stretch_of(const struct weir__recent *r, weir_time window, weir_time now,
                                 weir_time since)
{
    int64_t number = weir__recent_part(window, now), length = part_length(window);
    struct stretch s = { .parts = r->parts, .last = r->latest };

    if (r->latest < 0 || (r->latest > number && !is_late(r, number)))
        return (struct stretch){ .first = 0, .last = -1 }; /* nothing is recent */
    if (is_late(r, number))
        number = r->latest;
    s.first = number >= WEIR__RECENT_PARTS ? number - WEIR__RECENT_PARTS + 1 : 0;
    int64_t begun = since > 0 ? (since - 1) / length + 1 : 0;
    s.first = begun > s.first ? begun : s.first;
    return s;
}

weir_time weir__recent_quantile_since(const struct weir__recent *recent, weir_time window,
                                      weir_time now, weir_time since, int permille)
{
    struct stretch s = stretch_of(recent, window, now, since);

    return quantile(&s, permille);
}

int64_t weir__recent_count_since(const struct weir__recent *recent, weir_time window, weir_time now,
                                 weir_time since)
{
    struct stretch s = stretch_of(recent, window, now, since);

    return (int64_t)count_all(&s);
}

weir_time weir__recent_quantile(const struct weir__recent *recent, weir_time window, weir_time now,
                                int permille)
{
    return weir__recent_quantile_since(recent, window, now, 0, permille);
}

/* ----------------------------------------------------------- durations ---- */

weir_time weir__duration_bound(unsigned bucket)
{
    static const int tenths[] = { 10, 25, 50 }; /* 1, 2.5, 5, 10 ... ms */
    weir_time bound = WEIR_MILLISECOND / 10 * tenths[bucket % 3];

    for (unsigned i = 0; i < bucket / 3; i++)
        bound *= 10;
    return bound;
}

void weir__durations_add(struct weir__durations *d, const struct weir__histogram *h, int64_t sum)
{
    unsigned bucket = 0;

    for (unsigned bin = 0; bin < WEIR__BINS; bin++) {
        while (bucket + 1 < WEIR__DURATIONS && weir__bin_middle(bin) > weir__duration_bound(bucket))
            bucket++;
        if (h->counts[bin])
            weir__count(&d->counts[bucket], h->counts[bin]);
    }
    weir__count(&d->sum, sum);
}
