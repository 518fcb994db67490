/* histogram.c -- times in bins: the stated error over the whole range, and parts that slide. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "guard/histogram.h"

#define SHORTEST WEIR_MICROSECOND
#define LONGEST  (4294 * S)

static void assert_close(weir_time got, weir_time truth)
{
    weir_time off = got > truth ? got - truth : truth - got;

    if (off * 32 > truth)
        fail_msg("%lld stands for %lld: more than 1/32 off", (long long)got, (long long)truth);
}

/* The shortest time of a bin, by search: nothing of how bins are made is known here. */
static weir_time first_of(unsigned bin)
{
    weir_time low = 0, high = 2 * LONGEST;

    while (low < high) {
        weir_time middle = low + (high - low) / 2;
        if (weir__bin_of(middle) < bin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

TEST(test_L12_every_bin_is_within_its_error)
{
    for (unsigned bin = 0; bin < WEIR__BINS; bin++) {
        weir_time first = bin == 0 ? SHORTEST : first_of(bin),
                  last = bin + 1 < WEIR__BINS ? first_of(bin + 1) - 1 : LONGEST;
        assert_int_equal(weir__bin_of(first), bin);
        assert_int_equal(weir__bin_of(last), bin);
        assert_int_equal(weir__bin_of(weir__bin_middle(bin)), bin);
        assert_close(weir__bin_middle(bin), first);
        assert_close(weir__bin_middle(bin), last);
    }
}

TEST(test_L12_bins_are_in_order_and_bounded)
{
    for (unsigned bin = 1; bin < WEIR__BINS; bin++)
        assert_true(weir__bin_middle(bin) > weir__bin_middle(bin - 1));
    assert_int_equal(weir__bin_of(0), 0);
    assert_int_equal(weir__bin_of(-1), 0);
    assert_int_equal(weir__bin_of(INT64_MIN), 0);
    assert_int_equal(weir__bin_of(SHORTEST - 1), 0);
    assert_int_equal(weir__bin_of(LONGEST * 2), WEIR__BINS - 1);
    assert_int_equal(weir__bin_of(INT64_MAX), WEIR__BINS - 1);
    assert_true(weir__bin_middle(WEIR__BINS - 1) > 3600 * S);
}

TEST(test_L12_random_times_are_within_the_error)
{
    uint64_t seed = 1;
    unsigned before = 0;

    for (int i = 0; i < 1000000; i++) {
        weir_time took =
            (weir_time)(random64(&seed) >> (21 + random64(&seed) % 33)); /* of every length alike */
        if (took >= SHORTEST && took <= LONGEST)
            assert_close(weir__bin_middle(weir__bin_of(took)), took);
    }
    for (weir_time took = 0; took < 200000; took++) { /* and never out of order */
        assert_true(weir__bin_of(took) == before || weir__bin_of(took) == before + 1);
        before = weir__bin_of(took);
    }
}

/* -------------------------------------------------------------- quantiles ---- */

static int compare(const void *a, const void *b)
{
    weir_time x = *(const weir_time *)a, y = *(const weir_time *)b;

    return x < y ? -1 : x > y;
}

static struct weir__recent recent;

/* Of one histogram. */
static weir_time quantile(const struct weir__histogram *h, int permille)
{
    memset(&recent, 0, sizeof(recent));
    weir__recent_add(&recent, h, S, NOW);
    return weir__recent_quantile(&recent, S, NOW, permille);
}

/* Nearest rank, from an array: what the histogram may be 1/32 off from. */
static weir_time exact(const weir_time *sorted, size_t n, int permille)
{
    size_t rank = (n * (size_t)permille + 999) / 1000;

    return sorted[rank ? rank - 1 : 0];
}

TEST(test_L12_quantiles_against_sorted_samples)
{
    static const int permilles[] = { 0, 1, 100, 500, 900, 990, 999, 1000 };
    static weir_time times[5000];
    static struct weir__histogram h;
    uint64_t seed = 2;

    for (int round = 0; round < 200; round++) {
        size_t n = 1 + random64(&seed) % COUNT_OF(times);
        unsigned spread = (unsigned)(random64(&seed) % 24);
        memset(&h, 0, sizeof(h));
        for (size_t i = 0; i < n; i++) {
            times[i] =
                SHORTEST + (weir_time)(random64(&seed) >> (24 + random64(&seed) % (spread + 1)));
            times[i] = times[i] > LONGEST ? LONGEST : times[i];
            h.counts[weir__bin_of(times[i])]++;
        }
        qsort(times, n, sizeof(*times), compare);
        for (size_t i = 0; i < COUNT_OF(permilles); i++)
            assert_close(quantile(&h, permilles[i]), exact(times, n, permilles[i]));
    }
}

TEST(test_L12_quantile_of_nothing_and_of_one)
{
    struct weir__histogram h = { 0 };

    assert_int_equal(quantile(&h, 500), -1);
    h.counts[77] = 1;
    for (int permille = -1; permille <= 1001; permille++)
        assert_int_equal(quantile(&h, permille), weir__bin_middle(77));
}

TEST(test_L12_full_counts_do_not_overflow)
{
    static struct weir__histogram h;

    memset(&h, 0xff, sizeof(h));
    assert_int_equal(quantile(&h, 1000), weir__bin_middle(WEIR__BINS - 1));
    assert_int_equal(quantile(&h, 0), weir__bin_middle(0));
    assert_int_equal(quantile(&h, 500), weir__bin_middle(WEIR__BINS / 2 - 1));
}

/* ----------------------------------------------------------------- recent ---- */

static int64_t count(weir_time window, weir_time now)
{
    return weir__recent_count_since(&recent, window, now, 0);
}

static int forget(void **state)
{
    memset(&recent, 0, sizeof(recent));
    return 0;
}

static void add(weir_time took, uint32_t n, weir_time window, weir_time now)
{
    struct weir__histogram h = { 0 };

    h.counts[weir__bin_of(took)] = n;
    weir__recent_add(&recent, &h, window, now);
}

TEST_WITH(test_L12_a_fresh_window_is_empty, forget, NULL)
{
    assert_int_equal(count(10 * S, NOW), 0);
    assert_int_equal(weir__recent_quantile(&recent, 10 * S, NOW, 990), -1);
    assert_int_equal(count(10 * S, 0), 0);
}

/* In ms, window 10 s: what is added at `now` is there until the parts that follow push it out,
 * after 9 to 10 s. */
TEST_WITH(test_L12_samples_leave_with_their_part, forget, NULL)
{
    for (int i = 1; i <= 100; i++) {
        add(i * WEIR_MILLISECOND, 1, 10 * S, NOW + i * S);
        assert_int_equal(count(10 * S, NOW + i * S), i < 10 ? i : 10);
        int oldest = i < 10 ? 1 : i - 9;
        assert_close(weir__recent_quantile(&recent, 10 * S, NOW + i * S, 0),
                     oldest * WEIR_MILLISECOND);
        assert_close(weir__recent_quantile(&recent, 10 * S, NOW + i * S, 1000),
                     i * WEIR_MILLISECOND);
    }
    for (int i = 0; i <= 11; i++)
        assert_int_equal(count(10 * S, NOW + (100 + i) * S), i < 10 ? 10 - i : 0);
}

TEST_WITH(test_L12_window_against_all_samples_that_were, forget, NULL)
{
    static struct {
        weir_time at, took;
    } all[3000];
    weir_time window = 2 * S, part = window / WEIR__RECENT_PARTS, now = NOW;
    uint64_t seed = 3;
    for (int n = 0; n < (int)COUNT_OF(all); n++) {
        now += (weir_time)(random64(&seed) % (n % 100 == 0 ? 3 * S : 20 * WEIR_MILLISECOND));
        all[n].at = now;
        all[n].took = SHORTEST + (weir_time)(random64(&seed) % (uint64_t)S);
        add(all[n].took, 1, window, now);
        weir_time sorted[COUNT_OF(all)];
        size_t n_sorted = 0;
        for (int i = n; i >= 0 && (all[i].at - 1) / part > (now - 1) / part - WEIR__RECENT_PARTS;
             i--)
            sorted[n_sorted++] = all[i].took;
        qsort(sorted, n_sorted, sizeof(*sorted), compare);
        assert_int_equal(count(window, now), n_sorted);
        assert_close(weir__recent_quantile(&recent, window, now, 900),
                     exact(sorted, n_sorted, 900));
    }
}

TEST_WITH(test_L12_since_counts_whole_parts_only, forget, NULL)
{
    for (int i = 1; i <= 10; i++)
        add(i * WEIR_MILLISECOND, 1, 10 * S, NOW + i * S);
    weir_time now = NOW + 10 * S;
    assert_int_equal(weir__recent_count_since(&recent, 10 * S, now, 0), 10);
    assert_int_equal(weir__recent_count_since(&recent, 10 * S, now, NOW + 4 * S), 6);
    assert_int_equal(weir__recent_count_since(&recent, 10 * S, now, NOW + 4 * S + 1), 5);
    assert_int_equal(weir__recent_count_since(&recent, 10 * S, now, now), 0);
    assert_int_equal(weir__recent_count_since(&recent, 10 * S, now, INT64_MAX), 0);
    assert_close(weir__recent_quantile_since(&recent, 10 * S, now, NOW + 4 * S, 0),
                 5 * WEIR_MILLISECOND);
    assert_int_equal(weir__recent_quantile_since(&recent, 10 * S, now, now, 500), -1);
}

TEST_WITH(test_L12_a_late_clock_counts_as_the_latest_a_stepped_one_begins_anew, forget, NULL)
{
    add(S, 5, 10 * S, NOW);
    add(S, 1, 10 * S, NOW - 3 * S);
    assert_int_equal(count(10 * S, NOW), 6);
    assert_int_equal(count(10 * S, NOW - 3 * S), 6);
    assert_int_equal(count(10 * S, NOW - 20 * S), 0);
    add(S, 2, 10 * S, NOW - 20 * S);
    assert_int_equal(count(10 * S, NOW - 20 * S), 2);
    add(S, 1, S, NOW - 20 * S); /* another window: other parts */
    assert_int_equal(count(S, NOW - 20 * S), 1);
}

TEST_WITH(test_L12_any_bytes_and_times_are_harmless, forget, NULL)
{
    static const weir_time times[] = { INT64_MIN, -1, 0, 1, 10, NOW, INT64_MAX };

    for (size_t w = 0; w < COUNT_OF(times); w++)
        for (size_t t = 0; t < COUNT_OF(times); t++)
            for (size_t l = 0; l < COUNT_OF(times); l++) {
                memset(&recent, 0xa5, sizeof(recent));
                recent.latest = times[l];
                weir__recent_quantile_since(&recent, times[w], times[t], times[l], 990);
                count(times[w], times[t]);
                add(S, UINT32_MAX, times[w], times[t]);
                assert_true(count(times[w], times[t]) > 0);
            }
}
