/* limit.c -- the short syntax: what it means, what it refuses and where it points, and that what is
 * printed reads back the same. */
#include "unit/test.h"

#include "algo/limit.h"
#include "random.h"
#include "unit/fixture.h"
#include "unit/limit-options.h"

#define S   WEIR_SECOND
#define MAX "9223372036854775807"

static void assert_text(const char *got, const char *wanted)
{
    if (!got || !wanted)
        assert_ptr_equal(got, wanted);
    else
        assert_string_equal(got, wanted);
}

static void assert_same_limit(const struct weir_limit *got, const struct weir_limit *wanted)
{
    assert_text(got->algorithm, wanted->algorithm);
    assert_fields(*got, (count, wanted->count), (period, wanted->period), (burst, wanted->burst),
                  (queue, wanted->queue), (buckets, wanted->buckets),
                  (align_first, wanted->align_first), (loose, wanted->loose),
                  (warmup, wanted->warmup), (cold, wanted->cold), (calendar, wanted->calendar));
    assert_string_equal(got->zone, wanted->zone);
}

/* ------------------------------------------------------ what is accepted ---- */

static const struct {
    const char *text;
    struct weir_limit limit;
    const char *printed;
} good[] = {
    /* the spellings everybody knows */
    { "300/60", { .count = 300, .period = 60 * S }, "300/1m" },
    { "100/5s", { .count = 100, .period = 5 * S }, "100/5s" },
    { "10r/s", { .count = 10, .period = S }, "10/1s" },
    { "6r/m", { .count = 6, .period = 60 * S }, "6/1m" },
    { "1000/h burst 50", { .count = 1000, .period = 3600 * S, .burst = 50 }, "1000/1h burst 50" },
    { "5/1m burst 3", { .count = 5, .period = 60 * S, .burst = 3 }, "5/1m burst 3" },
    { "gcra 5/1m burst 3",
      { .algorithm = "gcra", .count = 5, .period = 60 * S, .burst = 3 },
      "gcra 5/1m burst 3" },

    /* periods: each unit, with a number and alone, decimals, the ends of the range */
    { "1/ns", { .count = 1, .period = 1 }, "1/1ns" },
    { "1/us", { .count = 1, .period = 1000 }, "1/1us" },
    { "1/ms", { .count = 1, .period = 1000000 }, "1/1ms" },
    { "1/d", { .count = 1, .period = 86400 * S }, "1/1d" },
    { "1/w", { .count = 1, .period = 604800 * S }, "1/1w" },
    { "1/7d", { .count = 1, .period = 604800 * S }, "1/1w" },
    { "1/90", { .count = 1, .period = 90 * S }, "1/90s" },
    { "1/500ms", { .count = 1, .period = 500000000 }, "1/500ms" },
    { "1/1.5", { .count = 1, .period = 1500000000 }, "1/1500ms" },
    { "1/1.5m", { .count = 1, .period = 90 * S }, "1/90s" },
    { MAX "/1", { .count = INT64_MAX, .period = S }, MAX "/1s" },
    { "1/" MAX "ns", { .count = 1, .period = INT64_MAX }, "1/" MAX "ns" },
    { "1/9223372036854775us",
      { .count = 1, .period = 9223372036854775000 },
      "1/9223372036854775us" },
    { "1/15250w", { .count = 1, .period = 15250 * (604800 * S) }, "1/15250w" },
    { "007r/010s", { .count = 7, .period = 10 * S }, "7/10s" },

    /* options: both spellings, any order, the words for the defaults */
    { "5/s burst=3", { .count = 5, .period = S, .burst = 3 }, "5/1s burst 3" },
    { "5/s burst 5", { .count = 5, .period = S, .burst = 5 }, "5/1s burst 5" },
    { "5/s queue 10", { .count = 5, .period = S, .queue = 10 }, "5/1s queue 10" },
    { "5/s queue=10", { .count = 5, .period = S, .queue = 10 }, "5/1s queue 10" },
    { "5/s queue 0", { .count = 5, .period = S, .queue = WEIR_NO_QUEUE }, "5/1s queue 0" },
    { "5/s queue=0", { .count = 5, .period = S, .queue = WEIR_NO_QUEUE }, "5/1s queue 0" },
    { "5/s buckets=60", { .count = 5, .period = S, .buckets = 60 }, "5/1s buckets=60" },
    { "5/s buckets=2147483647",
      { .count = 5, .period = S, .buckets = INT32_MAX },
      "5/1s buckets=2147483647" },
    { "5/s align=first", { .count = 5, .period = S, .align_first = true }, "5/1s align=first" },
    { "5/s align=clock", { .count = 5, .period = S }, "5/1s" },
    { "5/s edge=loose", { .count = 5, .period = S, .loose = true }, "5/1s edge=loose" },
    { "5/s edge=strict", { .count = 5, .period = S }, "5/1s" },
    { "5/s warmup=4s", { .count = 5, .period = S, .warmup = 4 * S }, "5/1s warmup=4s" },
    { "5/s warmup=0.5", { .count = 5, .period = S, .warmup = S / 2 }, "5/1s warmup=500ms" },
    { "5/s warmup=" MAX "ns",
      { .count = 5, .period = S, .warmup = INT64_MAX },
      "5/1s warmup=" MAX "ns" },
    { "warm-up 2/s warmup=4s cold=3",
      { .algorithm = "warm-up", .count = 2, .period = S, .warmup = 4 * S, .cold = 3 },
      "warm-up 2/1s warmup=4s cold=3" },
    { "5/s cold=2 edge=loose queue 7 warmup=1ms align=first burst 9 buckets=3",
      { .count = 5,
        .period = S,
        .burst = 9,
        .queue = 7,
        .buckets = 3,
        .align_first = true,
        .loose = true,
        .warmup = 1000000,
        .cold = 2 },
      "5/1s burst 9 queue 7 buckets=3 align=first edge=loose warmup=1ms cold=2" },

    /* calendar windows: a bare word after the slash; 1d and d are still spans */
    { "10000/month",
      { .algorithm = "calendar", .count = 10000, .calendar = WEIR_MONTH },
      "calendar 10000/month" },
    { "calendar 100/week",
      { .algorithm = "calendar", .count = 100, .calendar = WEIR_WEEK },
      "calendar 100/week" },
    { "500r/day",
      { .algorithm = "calendar", .count = 500, .calendar = WEIR_DAY },
      "calendar 500/day" },
    { "500/day zone=Europe/Berlin",
      { .algorithm = "calendar", .count = 500, .calendar = WEIR_DAY, .zone = "Europe/Berlin" },
      "calendar 500/day zone=Europe/Berlin" },
    { "500/day zone=UTC",
      { .algorithm = "calendar", .count = 500, .calendar = WEIR_DAY, .zone = "UTC" },
      "calendar 500/day zone=UTC" },

    /* spaces and tabs, any amount, at both ends */
    { " \t 5/s", { .count = 5, .period = S }, "5/1s" },
    { "5/s \t", { .count = 5, .period = S }, "5/1s" },
    { "\tgcra\t \t5/s\tburst\t 3 ",
      { .algorithm = "gcra", .count = 5, .period = S, .burst = 3 },
      "gcra 5/1s burst 3" },
};

static void check_good(size_t i)
{
    struct weir_limit limit, again;
    struct weir_error error = { 0 };
    char printed[256];

    print_message("%s\n", good[i].text);
    memset(&limit, 0xee, sizeof(limit)); /* what the text does not name must become 0 */
    assert_ok(weir_limit_parse(&limit, good[i].text, &error));
    assert_same_limit(&limit, &good[i].limit);
    assert_int_equal(weir_limit_print(printed, sizeof(printed), &limit), strlen(good[i].printed));
    assert_string_equal(printed, good[i].printed);
    assert_ok(weir_limit_parse(&again, printed, NULL));
    assert_same_limit(&again, &limit);
}

TEST(test_good)
{
    for (size_t i = 0; i < COUNT_OF(good); i++)
        check_good(i);
}

TEST(test_every_algorithm)
{
    for (const char *const *name = weir_algorithms(); *name; name++) {
        char text[64];
        struct weir_limit limit;

        snprintf(text, sizeof(text), "%s 5/%s", *name,
                 strcmp(*name, "calendar") == 0 ? "day" : "s");
        assert_ok(weir_limit_parse(&limit, text, NULL));
        assert_ptr_equal(limit.algorithm, *name); /* static: the text may go away */
    }
}

/* ------------------------------------------------------- what is refused ---- */

struct bad {
    const char *text;
    int column;
    const char *says; /* a part of the error */
};

static const struct bad bad_limits[] = {
    /* nothing, or no rate */
    { "", 1, "expected a limit such as 300/60 or 10r/s; found the end" },
    { "  \t", 4, "found the end" },
    { "gcra", 5, "expected a limit" },
    { "gcra burst 5", 6, "expected a limit such as 300/60 or 10r/s; found 'b'" },
    { "/60", 1, "expected a limit" },
    { "r/s", 1, "expected a limit" },
    { "-5/s", 1, "expected a limit" },
    { "+5/s", 1, "expected a limit" },
    { "\n5/s", 1, "found '\\x0a'" },

    /* algorithms */
    { "gcar 5/s", 1, "unknown algorithm 'gcar'; did you mean 'gcra'?" },
    { "  token 5/s", 3, "did you mean 'token-bucket'?" },
    { "LeakyBucket 5/s", 1, "did you mean 'leaky-bucket'?" },
    { "GCRA 5/s", 1, "did you mean 'gcra'?" },
    { "magic 5/s", 1, "unknown algorithm 'magic'; known are " },
    { "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz 5/s", 1,
      "yzab...'; known are " },
    { "gcra=5/s", 1, "expected a limit" },

    /* the count */
    { "0/s", 1, "the count must be at least 1" },
    { "gcra 0/s", 6, "the count must be at least 1" },
    { "9223372036854775808/s", 1, "the count is too large; the most is " MAX },
    { "99999999999999999999999/s", 1, "the count is too large" },
    { "1.5/s", 2, "the count must be a whole number" },
    { "300", 4, "expected '/' and a period, as in 300/60; found the end" },
    { "300 60", 4, "expected '/'" },
    { "300 /60", 4, "expected '/'" },
    { "10R/s", 3, "expected '/'" },
    { "10rr/s", 4, "expected '/'" },
    { "10r", 4, "expected '/'" },

    /* the period */
    { "5/", 3, "expected a period such as 60, 5s or m; found the end" },
    { "5/ s", 3, "expected a period" },
    { "5/-1s", 3, "expected a period" },
    { "5/.5s", 3, "expected a period" },
    { "5/0", 3, "the period must be at least 1ns" },
    { "5/0.0ms", 3, "the period must be at least 1ns" },
    { "5/sec", 3, "unknown unit 'sec'; did you mean 's'?" },
    { "5/10min", 5, "unknown unit 'min'; did you mean 'm'?" },
    { "5/10millis", 5, "did you mean 'ms'?" },
    { "5/1S", 4, "unknown unit 'S'; did you mean 's'?" },
    { "5/1sm", 4, "unknown unit 'sm'; did you mean '" },
    { "5/fortnight", 3, "'fortnight'; known are w, d, h, m, s, ms, us, ns, day, week, month" },
    { "5/1x", 4, "unknown unit 'x'; known are w, d, h, m, s, ms, us, ns" },
    { "5/1\xc2\xb5s", 4, "unknown unit '\xc2\xb5s'" },
    { "5/1m30s", 5, "unexpected '3' after the time" },
    { "5/s,burst 3", 4, "unexpected ',' after the period" },
    { "5/1s,burst 3", 5, "unexpected ','" },
    { "5/s\n", 4, "unexpected '\\x0a'" },
    { "5/1.s", 5, "expected a digit after the point; found 's'" },
    { "5/1..5s", 5, "expected a digit" },
    { "5/1.5.5s", 6, "unexpected '.'" },
    { "5/1e3", 4, "unknown unit 'e'" },
    { "5/0.5ns", 5, "finer than a nanosecond" },
    { "5/0.50ns", 5, "finer than a nanosecond; write fewer digits" },
    { "5/1.0000000001s", 14, "finer than a nanosecond" },
    { "5/9223372036854775808ns", 3, "the period is too large" },
    { "5/9223372036854776us", 3, "the period is too large; the most is " MAX "ns, some 292 years" },
    { "5/15251w", 3, "the period is too large" },
    { "5/9223372036.854775808", 3, "the period is too large" },

    /* calendar windows */
    { "5/days", 3, "unknown period 'days'; did you mean 'day'?" },
    { "5/Month", 3, "unknown period 'Month'; did you mean 'month'?" },
    { "5/months zone=UTC", 3, "did you mean 'month'?" },
    { "5/day,zone=UTC", 3, "unknown unit 'day'" },
    { "5/1month", 4,
      "unknown unit 'month'; write days, as in 365d; of limits day, week and month are calendar "
      "windows, written without a "
      "number, as "
      "in 10000/month" },
    { "5/2Months", 4, "day, week and month are calendar windows" },
    { "5/1mo", 4, "day, week and month are calendar windows" },
    { "5/year", 3, "unknown unit 'year'; write days, as in 365d; of limits day, week" },
    { "5/1y", 4, "as in 365d" },
    { "5/monthly-or-so", 3, "unknown unit 'monthly'; write days" },
    { "5/1day", 4, "unknown unit 'day'; did you mean 'd'?" },
    { "5/7weeks", 4, "unknown unit 'weeks'; did you mean 'w'?" },
    { "token-bucket 1000/day", 19,
      "write 1000/1d for 24 hours, or leave out token-bucket for a calendar day" },
    { "gcra 7/week", 8, "write 7/1w for 7 times 24 hours, or leave out gcra for a calendar week" },
    { "fixed-window 7/month burst 3", 16,
      "write 7/30d for 30 times 24 hours, or leave out fixed-window for a calendar month" },
    { "calendar 100/60s", 14, "calendar counts by day, week or month, as in 100/day" },
    { "calendar 100/d", 14, "calendar counts by day, week or month" },
    { "calendar 100", 13, "expected '/'" },
    { "100/60 zone=UTC", 5,
      "a limit by time has no 'zone'; it is for calendar windows, as in 100/day" },
    { "gcra 100/60 zone=UTC", 10, "gcra has no 'zone'" },
    { "5/day zone", 11, "expected '=' and a value after zone" },
    { "5/day zone=", 12, "zone must be a time zone such as Europe/Berlin; found the end" },
    { "5/day zone=Europe/Berlim", 12,
      "unknown time zone 'Europe/Berlim'; did you mean 'Europe/Berlin'?" },
    { "5/day zone=berlin burst 3", 12, "did you mean 'Europe/Berlin'?" },
    { "5/day zone=Xyzzy/Nowhere", 12,
      "unknown time zone 'Xyzzy/Nowhere'; names are as in Europe/Berlin" },
    { "5/day zone=Europe", 12, "unknown time zone 'Europe'" },
    { "5/day zone=../passwd", 12, "a time zone has a name as in Europe/Berlin" },
    { "5/day zone=/etc/localtime", 12, "a time zone has a name" },
    { "5/day zone=\xff", 12, "a time zone has a name" },
    { "5/day zone=A123456789012345678901234567890123456789", 12, "its name is too long" },
    { "5/day zone=UTC zone=UTC", 16, "zone is written twice" },

    /* options */
    { "5/s brust 3", 5, "unknown option 'brust'; did you mean 'burst'?" },
    { "5/s bucket=3", 5, "did you mean 'buckets'?" },
    { "5/s Burst 3", 5, "did you mean 'burst'?" },
    { "5/s frobnicate", 5,
      "unknown option 'frobnicate'; known are burst, queue, buckets, align, edge, warmup, cold, "
      "zone" },
    { "5/s 6/s", 5, "unknown option '6/s'" },
    { "5/s =5", 5, "unknown option '='; known are" },
    { "5/s burst", 10, "burst must be a number such as 60; found the end" },
    { "5/s burst=", 11, "burst must be a number" },
    { "5/s burst= 3", 11, "burst must be a number" },
    { "5/s burst = 3", 11, "burst must be a number" },
    { "5/s burst x", 11, "burst must be a number such as 60; found 'x'" },
    { "5/s burst -3", 11, "burst must be a number" },
    { "5/s burst 3x", 12, "unexpected 'x' after burst" },
    { "5/s burst 1.5", 12, "burst must be a whole number" },
    { "5/s burst 0", 11, "burst must be at least 1" },
    { "5/s burst 9223372036854775808", 11, "burst is too large; the most is " MAX },
    { "5/s burst 3 burst 3", 13, "burst is written twice" },
    { "5/s burst 3 queue 1 burst=3", 21, "burst is written twice" },
    { "5/s align=clock align=clock", 17, "align is written twice" },
    { "5/s queue", 10, "queue must be a number" },
    { "5/s queue -1", 11, "queue must be a number" },
    { "5/s queue 1 queue 0", 13, "queue is written twice" },
    { "5/s buckets 3", 12, "expected '=' and a value after buckets; found ' '" },
    { "5/s cold", 9, "expected '=' and a value after cold; found the end" },
    { "5/s buckets=0", 13, "buckets must be at least 1" },
    { "5/s buckets=2147483648", 13, "buckets is too large; the most is 2147483647" },
    { "5/s cold=0", 10, "cold must be at least 1" },
    { "5/s cold=2147483648", 10, "cold is too large" },
    { "5/s align=last", 11, "align must be first or clock; found 'last'" },
    { "5/s align=", 11, "align must be first or clock; found the end" },
    { "5/s align= first", 11, "align must be first or clock; found ' '" },
    { "5/s edge=Loose", 10, "edge must be loose or strict; found 'Loose'" },
    { "5/s warmup=0s", 12, "warmup must be at least 1ns" },
    { "5/s warmup=s", 12, "warmup must be a number" },
    { "5/s warmup=4x", 13, "unknown unit 'x'" },
};

static void check_bad_limit(const struct bad *bad)
{
    struct weir_limit limit, before;
    struct weir_error error = { 0 };

    print_message("%s\n", bad->text);
    memset(&limit, 0xee, sizeof(limit));
    memcpy(&before, &limit, sizeof(limit));
    assert_int_equal(weir_limit_parse(&limit, bad->text, NULL), WEIR_INVALID);
    assert_int_equal(weir_limit_parse(&limit, bad->text, &error), WEIR_INVALID);
    assert_memory_equal(&limit, &before, sizeof(limit));
    if (!strstr(error.text, bad->says))
        fail_msg("'%s' says '%s', not '%s'", bad->text, error.text, bad->says);
    assert_int_equal(error.column, bad->column);
    assert_null(strpbrk(error.text, "\r\n"));
}

TEST(test_bad)
{
    for (size_t i = 0; i < COUNT_OF(bad_limits); i++)
        check_bad_limit(&bad_limits[i]);
}

TEST(test_print_into_little_room)
{
    const struct weir_limit limit = {
        .algorithm = "gcra", .count = 5, .period = 60 * S, .burst = 3
    };
    const char *whole = "gcra 5/1m burst 3";
    char out[32];

    assert_int_equal(weir_limit_print(NULL, 0, &limit), strlen(whole));
    assert_int_equal(weir_time_print(NULL, 0, 90 * S), 3);
    for (size_t size = 1; size < sizeof(out); size++) {
        memset(out, '#', sizeof(out));
        assert_int_equal(weir_limit_print(out, size, &limit), strlen(whole));
        size_t length = size <= strlen(whole) ? size - 1 : strlen(whole);

        assert_int_equal(strlen(out), length);
        assert_memory_equal(out, whole, length);
        for (size_t i = size; i < sizeof(out); i++)
            assert_int_equal(out[i], '#');
    }
}

/* ----------------------------------------------------------- round trip ---- */

/* 1 .. max, of any magnitude, and the ends more often than their share. */
static int64_t random_count(uint64_t *seed, int64_t max)
{
    uint64_t kind = random64(seed) % 10;
    uint64_t value = random64(seed) >> (1 + random64(seed) % 63);

    return kind == 0 ? 1 : kind == 1 ? max : (int64_t)(value % (uint64_t)max) + 1;
}

static weir_time random_span(uint64_t *seed)
{
    static const weir_time units[] = {
        1, 1000, 1000000, S, 60 * S, 3600 * S, 86400 * S, 604800 * S
    };

    if (random64(seed) % 4 == 0)
        return random_count(seed, INT64_MAX);
    return units[random64(seed) % COUNT_OF(units)] * (weir_time)(1 + random64(seed) % 1000);
}

static struct weir_limit random_limit(uint64_t *seed)
{
    size_t algorithms = 0;
    uint64_t given = random64(seed);
    struct weir_limit limit = { .count = random_count(seed, INT64_MAX),
                                .period = random_span(seed) };

    while (weir_algorithms()[algorithms])
        algorithms++;
    limit.algorithm = given & 1 ? weir_algorithms()[random64(seed) % algorithms] : NULL;
    limit.burst = given & 2 ? random_count(seed, INT64_MAX) : 0;
    limit.queue = given & 4 ? random_count(seed, INT64_MAX) : given & 8 ? WEIR_NO_QUEUE : 0;
    limit.buckets = given & 16 ? (int32_t)random_count(seed, INT32_MAX) : 0;
    limit.align_first = given & 32;
    limit.loose = given & 64;
    limit.warmup = given & 128 ? random_span(seed) : 0;
    limit.cold = given & 256 ? (int32_t)random_count(seed, INT32_MAX) : 0;
    if (limit.algorithm && strcmp(limit.algorithm, "calendar") == 0) {
        static const char *const zones[] = { "", "UTC", "Europe/Berlin",
                                             "America/Argentina/ComodRivadavia", "Etc/GMT+12" };

        limit.period = 0;
        limit.calendar = (int32_t)(WEIR_DAY + random64(seed) % 3);
        strcpy(limit.zone, zones[random64(seed) % COUNT_OF(zones)]);
    }
    return limit;
}

TEST(test_round_trip)
{
    for (uint64_t first = 1; first <= 20000; first++) {
        uint64_t seed = first;
        struct weir_limit limit = random_limit(&seed), again;
        char printed[256], twice[256];
        weir_time span;

        assert_in_range(weir_limit_print(printed, sizeof(printed), &limit), 1, sizeof(printed) - 1);
        if (weir_limit_parse(&again, printed, NULL) != WEIR_OK)
            fail_msg("seed %llu: '%s' does not parse", (unsigned long long)first, printed);
        assert_same_limit(&again, &limit);
        assert_ptr_equal(again.algorithm, limit.algorithm);
        weir_limit_print(twice, sizeof(twice), &again);
        assert_string_equal(twice, printed);

        if (limit.period != WEIR_NEVER && limit.period != 0) {
            weir_time_print(printed, sizeof(printed), limit.period);
            assert_ok(weir_time_parse(&span, printed, NULL));
            assert_int_equal(span, limit.period);
        }
    }
}

/* ---------------------------------------------- what other readers share ---- */

static struct weir__cursor cursor_on(const char *text, struct weir_error *error)
{
    return (struct weir__cursor){ text, text, error };
}

TEST(test_read_over_keeps_the_rest)
{
    struct weir_limit limit = { 0 };
    unsigned named = 0;
    struct weir__cursor c = cursor_on("fixed-window 5/s burst 3 align=first", NULL);

    assert_ok(weir__limit_read(&c, &limit, &named));
    assert_int_equal(named, WEIR__NAMED_ALGORITHM | WEIR__NAMED_BURST | WEIR__NAMED_ALIGN);
    c = cursor_on("7/2s buckets=4", NULL);
    assert_ok(weir__limit_read(&c, &limit, &named));
    assert_int_equal(named, WEIR__NAMED_BUCKETS);
    assert_same_limit(&limit, &(struct weir_limit){ .algorithm = "fixed-window",
                                                    .count = 7,
                                                    .period = 2 * S,
                                                    .burst = 3,
                                                    .align_first = true,
                                                    .buckets = 4 });
    c = cursor_on("7/2s align=clock edge=strict", NULL); /* a default that is named is set */
    assert_ok(weir__limit_read(&c, &limit, &named));
    assert_int_equal(named, WEIR__NAMED_ALIGN | WEIR__NAMED_EDGE);
    assert_false(limit.align_first);
    c = cursor_on("8/2s cold=2 warmup=1s queue 0", NULL);
    assert_ok(weir__limit_read(&c, &limit, &named));
    assert_int_equal(named, WEIR__NAMED_COLD | WEIR__NAMED_WARMUP | WEIR__NAMED_QUEUE);
    assert_int_equal(limit.queue, WEIR_NO_QUEUE);
}

/* A change names neither the algorithm nor the zone; a word stands for a span or a calendar window,
 * never for both. */
TEST(test_read_over_calendar)
{
    struct weir_limit limit = { 0 };
    unsigned named = 0;
    struct weir__cursor c = cursor_on("5/day zone=Asia/Kolkata", NULL);

    assert_ok(weir__limit_read(&c, &limit, &named));
    assert_int_equal(named, WEIR__NAMED_ZONE); /* the algorithm is implied, not named */
    c = cursor_on("7/month", NULL);
    assert_ok(weir__limit_read(&c, &limit, &named));
    assert_int_equal(named, 0);
    assert_same_limit(&limit, &(struct weir_limit){ .algorithm = "calendar",
                                                    .count = 7,
                                                    .calendar = WEIR_MONTH,
                                                    .zone = "Asia/Kolkata" });
    c = cursor_on("7/1d", NULL);
    assert_int_equal(weir__limit_read(&c, &limit, &named), WEIR_INVALID);
    limit = (struct weir_limit){ .algorithm = "gcra", .count = 7, .period = S };
    c = cursor_on("7/day", NULL);
    assert_int_equal(weir__limit_read(&c, &limit, &named), WEIR_INVALID);
    assert_same_limit(&limit, &(struct weir_limit){ .algorithm = "gcra", .count = 7, .period = S });
}

/* A struct that nobody has checked prints, too. */
TEST(test_print_any_zone)
{
    struct weir_limit limit = { .count = 5, .calendar = WEIR_DAY };
    char printed[128];

    memset(limit.zone, 'x', sizeof(limit.zone));
    assert_int_equal(weir_limit_print(printed, sizeof(printed), &limit),
                     strlen("5/day zone=") + 39);
    limit = (struct weir_limit){ .count = 5, .calendar = 77 };
    weir_limit_print(printed, sizeof(printed), &limit);
    assert_string_equal(printed, "5/0s");
}

TEST(test_read_failure_touches_nothing)
{
    struct weir_limit limit = { .count = 5, .period = S }, before = limit;
    struct weir_error error;
    unsigned named = 99;
    struct weir__cursor c = cursor_on("change 7/2s burst 3 colt=2", &error);

    c.at += strlen("change ");
    assert_int_equal(weir__limit_read(&c, &limit, &named), WEIR_INVALID);
    assert_int_equal(error.column, 21); /* of the whole line */
    assert_same_limit(&limit, &before);
    assert_int_equal(named, 99);
}

/* --------------------------------------------------------- every option ---- */

/* The parser lists the options that it knows. */
TEST(test_each_option_makes_another_limit)
{
    struct weir_limit none;
    struct weir_error error;
    size_t commas = 0;

    assert_int_equal(weir_limit_parse(&none, "5/1s qqqqqqqqqqqqqqq", &error), WEIR_INVALID);
    for (const char *c = error.text; *c; c++)
        commas += *c == ',';
    print_message("%s\n", error.text);
    for (size_t i = 0; i < COUNT_OF(limit_options); i++) {
        struct weir_limit without = limit_of(limit_options[i].without),
                          with = limit_of(limit_options[i].with);
        char text[128];

        assert_contains(error.text, limit_options[i].name);
        assert_false(weir__limit_equal(&without, &with));
        weir_limit_print(text, sizeof(text), &with);
        assert_string_equal(text, limit_options[i].with);
    }
    assert_int_equal(commas, COUNT_OF(limit_options) - 1);
}
