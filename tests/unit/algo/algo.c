/* algo.c -- from a limit to a plan: what is refused and in which words; division by a known number;
 * asks that make no sense. */
#include "unit/test.h"

#include "algo/debt.h"
#include "random.h"

OWNS(weir_plan)

#define S WEIR_SECOND

/* ------------------------------------------------------------ the refusals ---- */

static void expect_refusal(const struct weir_limit *limit, const char *words)
{
    struct weir_plan *plan =
        (struct weir_plan *)(void *)limit; /* any pointer that must come back as it was */
    struct weir_error error = { .column = 77 };
    int code = weir_plan_create(&plan, limit, &error);

    if (code != WEIR_INVALID)
        fail_msg("refusing for \"%s\" gave %d", words, code);
    assert_ptr_equal(plan, limit);
    assert_int_equal(error.column, 0);
    if (strstr(error.text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    assert_int_equal(weir_plan_create(&plan, limit, NULL), WEIR_INVALID);
}

TEST(test_unknown_algorithms_are_refused_by_name)
{
    static const char *const names[] = { "",      "gcr",          "gcraa",        "GCRA",
                                         " gcra", "token bucket", "fixed-window " };

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char words[64] = "unknown algorithm '";
        strcat(strcat(words, names[i]), "'");
        expect_refusal(&(struct weir_limit){ .algorithm = names[i], .count = 1, .period = S },
                       words);
        assert_null(weir_algorithm_summary(names[i]));
        assert_int_equal(weir__algo_index(names[i]), -1);
    }
}

TEST(test_an_unknown_algorithm_gets_a_suggestion)
{
    expect_refusal(&(struct weir_limit){ .algorithm = "gcr", .count = 1, .period = S },
                   "unknown algorithm 'gcr'; did you mean 'gcra'?");
    expect_refusal(&(struct weir_limit){ .algorithm = "magic", .count = 1, .period = S },
                   "unknown algorithm 'magic'; known are fixed-window, ");
}

TEST(test_bad_numbers_are_refused)
{
    static const struct {
        struct weir_limit limit;
        const char *words;
    } rows[] = {
        { { .count = 0, .period = S }, "count" },
        { { .count = -1, .period = S }, "count" },
        { { .count = INT64_MIN, .period = S }, "count" },
        { { .count = 1, .period = 0 }, "period" },
        { { .count = 1, .period = -S }, "period" },
        { { .count = 1, .period = INT64_MIN }, "period" },
        { { .count = 1, .period = S, .burst = -1 }, "burst" },
        { { .count = 1, .period = S, .burst = INT64_MIN }, "burst" },
        { { .algorithm = "leaky-bucket", .count = 1, .period = S, .queue = -2 }, "queue" },
        { { .algorithm = "leaky-bucket", .count = 1, .period = S, .queue = INT64_MIN }, "queue" },
        { { .algorithm = "leaky-bucket", .count = 1, .period = S, .queue = INT64_MAX, .burst = 2 },
          "queue" },
        { { .algorithm = "sliding-window", .count = 1, .period = S, .buckets = -1 }, "buckets" },
        { { .algorithm = "sliding-window", .count = 1, .period = S, .buckets = INT32_MIN },
          "buckets" },
        { { .algorithm = "sliding-window", .count = 1, .period = S, .buckets = 1000001 },
          "buckets" },
        { { .algorithm = "sliding-window", .count = 1, .period = 9, .buckets = 10 },
          "buckets" }, /* less than a ns each */
        { { .algorithm = "sliding-window", .count = (int64_t)1 << 32, .period = S }, "4294967295" },
        { { .algorithm = "sliding-window", .count = 1, .period = INT64_MAX / 2 }, "period" },
        { { .algorithm = "sliding-log", .count = INT64_MAX, .period = S }, "log" },
        { { .algorithm = "fixed-window", .count = INT64_MAX, .period = S }, "count" },
        { { .algorithm = "warm-up", .count = 1, .period = S, .warmup = -1 }, "warmup" },
        { { .algorithm = "warm-up", .count = 1, .period = S, .warmup = 1 }, "warmup" },
        { { .algorithm = "warm-up", .count = 1, .period = S, .warmup = INT64_MAX }, "warmup" },
        { { .algorithm = "warm-up", .count = 1, .period = S, .cold = -1 }, "cold" },
        { { .algorithm = "warm-up", .count = 1, .period = S, .cold = 1001 }, "cold" },
        { { .algorithm = "calendar", .count = 1 }, "calendar counts by day, week or month" },
        { { .algorithm = "calendar", .count = 1, .period = S },
          "calendar counts by day, week or month" },
        { { .algorithm = "calendar", .count = 1, .period = S, .calendar = WEIR_DAY },
          "calendar counts by day, week or month" },
        { { .algorithm = "calendar", .count = 1, .calendar = 4 }, "WEIR_DAY" },
        { { .algorithm = "calendar", .count = 1, .calendar = -1 }, "WEIR_DAY" },
        { { .algorithm = "calendar", .count = INT64_MAX, .calendar = WEIR_DAY }, "count" },
        { { .algorithm = "calendar", .count = 1, .calendar = WEIR_DAY, .zone = "Europe/Berlim" },
          "'Europe/Berlin'" },
        { { .algorithm = "gcra", .count = 9, .period = S, .zone = "Z" }, "gcra has no 'zone'" },
        { { .algorithm = "gcra", .count = 9, .calendar = WEIR_WEEK },
          "write 9/1w for 7 times 24 hours, or leave out gcra" },
        { { .algorithm = "gcra", .count = 9, .period = S, .calendar = WEIR_DAY },
          "leave out gcra for a calendar day" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        expect_refusal(&rows[i].limit, rows[i].words);
}

/* Each member, and the algorithms that have it; all others must refuse it, and say whose it is. */
TEST(test_members_of_other_algorithms_are_refused_by_name)
{
    static const struct {
        struct weir_limit limit; /* of an algorithm by time; calendar gets a day */
        const char *word;
        const char *whose; /* names, each between commas */
    } members[] = {
        { { .count = 5, .period = S, .burst = 3 },
          "burst",
          ",leaky-bucket,token-bucket,gcra,smooth,warm-up," },
        { { .count = 5, .period = S, .queue = 3 }, "queue", ",leaky-bucket," },
        { { .count = 5, .period = S, .queue = WEIR_NO_QUEUE }, "queue", ",leaky-bucket," },
        { { .count = 5, .period = S, .buckets = 5 }, "buckets", ",sliding-window," },
        { { .count = 5, .period = S, .loose = true }, "edge=loose", ",sliding-window," },
        { { .count = 5, .period = S, .align_first = true }, "align=first", ",fixed-window," },
        { { .count = 5, .period = S, .warmup = 2 * S }, "warmup", ",warm-up," },
        { { .count = 5, .period = S, .cold = 4 }, "cold", ",warm-up," },
        { { .count = 5, .period = S, .zone = "UTC" }, "zone", ",calendar," },
    };
    int good = 0, bad = 0;
    for (size_t i = 0; i < COUNT_OF(members); i++)
        for (const char *const *name = weir_algorithms(); *name; name++) {
            struct weir_limit limit = members[i].limit;
            struct weir_plan *plan = NULL;
            char quoted[40] = ",", words[80] = "";
            strcat(strcat(quoted, *name), ",");
            strcat(strcat(strcat(strcat(words, *name), " has no '"), members[i].word), "'");
            limit.algorithm = *name;
            if (strcmp(*name, "calendar") == 0) {
                limit.period = 0;
                limit.calendar = WEIR_DAY;
            }
            if (strstr(members[i].whose, quoted) == NULL) {
                expect_refusal(&limit, words);
                bad++;
            } else {
                assert_ok(weir_plan_create(&plan, &limit, NULL));
                weir_plan_destroy(plan);
                good++;
            }
        }
    assert_int_equal(good, 5 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1);
    assert_int_equal(bad, 9 * 9 - good);
}

/* Capacity: units at once times the price of one, in lowest terms, reaches to 2^60. */
TEST(test_more_than_exact_arithmetic_reaches_is_refused)
{
    static const char *const names[] = { "token-bucket", "gcra", "smooth", "leaky-bucket" };
    int64_t most = (int64_t)1 << 60;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct weir_plan *plan = NULL;
        struct weir_limit just = { .algorithm = names[i], .count = 1, .period = 1, .burst = most },
                          over = just;
        over.burst++;
        assert_ok(weir_plan_create(&plan, &just, NULL));
        weir_plan_destroy(plan);
        expect_refusal(&over, "too many at this rate");
        just = (struct weir_limit){ .algorithm = names[i], .count = 1, .period = most };
        over = just;
        over.period++;
        assert_ok(weir_plan_create(&plan, &just, NULL));
        weir_plan_destroy(plan);
        expect_refusal(&over, "too many at this rate");
        expect_refusal(&(struct weir_limit){ .algorithm = names[i],
                                             .count = INT64_MAX,
                                             .period = INT64_MAX - 1 },
                       "too many at this rate");
        expect_refusal(&(struct weir_limit){ .algorithm = names[i],
                                             .count = 10000000019,
                                             .period = 86400 * S },
                       "too many at this rate");
        expect_refusal(
            &(struct weir_limit){
                .algorithm = names[i], .count = 1, .period = 3600 * S, .burst = INT64_MAX },
            "too many at this rate");
    }
    expect_refusal(
        &(struct weir_limit){
            .algorithm = "leaky-bucket", .count = 1, .period = S, .queue = most / S + 1 },
        "too many at this rate");
}

/* The price is rounded up, so never too much passes, and by less than a billionth. */
TEST(test_ordinary_numbers_fit_every_algorithm)
{
    static const struct {
        int64_t count;
        weir_time period;
    } rates[] = { { 100003, 86400 * S },        { 999999, 86400 * S },   { 604801, 7 * 86400 * S },
                  { 1000003, 365 * 86400 * S }, { 99999999, 86400 * S }, { 1000000007, 3600 * S } };
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        for (const char *const *name = weir_algorithms(); *name; name++) {
            struct weir_limit limit = { .algorithm = *name,
                                        .count = rates[i].count,
                                        .period = rates[i].period };
            OWN(weir_plan) *plan = NULL;
            struct weir_error error;
            if (strcmp(*name, "calendar") == 0 || strcmp(*name, "sliding-log") == 0)
                continue;
            if (strcmp(*name, "warm-up") == 0 && i > 2)
                limit.warmup = 60 * S;
            if (weir_plan_create(&plan, &limit, &error) != WEIR_OK)
                fail_msg("%s: %s", *name, error.text);
            weir__i128 exact = (weir__i128)limit.period * (int64_t)plan->by_scale.by,
                       made = (weir__i128)plan->price * limit.count;
            assert_true(made >= exact);
            assert_true(made - exact <= exact / 1000000000);
        }
}

TEST(test_an_odd_rate_fills_its_whole_burst_and_comes_back)
{
    struct weir_limit limit = { .algorithm = "token-bucket", .count = 999999, .period = 86400 * S };

    OWN(weir_plan) *plan = NULL;
    uint64_t key[2] = { 0 };
    struct weir_decision d;
    assert_ok(weir_plan_create(&plan, &limit, NULL));
    struct weir_ask all = { .cost = 999999, .now = 1000 * S };
    assert_true(weir_step(plan, key, &all, &d));
    assert_int_equal(d.remaining, 0);
    all.now += 86400 * S;
    weir_step(plan, key, &all, &d);
    assert_true(d.allowed || d.retry <= 86400); /* a billionth of a day, in ns */
    all.now += d.retry;
    assert_true(d.allowed || weir_step(plan, key, &all, &d));
}

TEST(test_the_text_of_an_error_says_what_would_fit)
{
    struct weir_error error;
    struct weir_plan *plan = NULL;
    struct weir_limit limit = { .count = 1, .period = 3600 * S, .burst = INT64_MAX };

    assert_int_equal(weir_plan_create(&plan, &limit, &error), WEIR_INVALID);
    const char *number = strrchr(error.text, ' ');
    assert_non_null(number);
    limit.burst = strtoll(number, NULL, 10);
    assert_true(limit.burst > 1000);
    assert_ok(weir_plan_create(&plan, &limit, &error));
    weir_plan_destroy(plan);
    limit.burst++;
    assert_int_equal(weir_plan_create(&plan, &limit, &error), WEIR_INVALID);
}

TEST(test_every_algorithm_has_a_row)
{
    const char *const *names = weir_algorithms();
    for (int i = 0; names[i]; i++) {
        struct weir_limit limit = { .algorithm = names[i], .count = 5, .period = S };
        OWN(weir_plan) *plan = NULL;
        if (strcmp(names[i], "calendar") == 0)
            limit = (struct weir_limit){ .algorithm = names[i], .count = 5, .calendar = WEIR_DAY };
        assert_int_equal(weir__algo_index(names[i]), i);
        assert_non_null(weir_algorithm_summary(names[i]));
        assert_ok(weir_plan_create(&plan, &limit, NULL));
        assert_string_equal(plan->algo->name, names[i]); /* and no other's */
        assert_int_equal(weir_plan_state_size(plan) % 8, 0);
    }
}

/* ---------------------------------------------------------------- division ---- */

static void check_division(uint64_t n, uint64_t by)
{
    struct weir__divisor d = weir__divisor_make(by);

    if (weir__divide(n, &d) != n / by || weir__divide_up(n, &d) != n / by + (n % by != 0))
        fail_msg("%llu / %llu", (unsigned long long)n, (unsigned long long)by);
}

TEST(test_division_is_exact)
{
    static const uint64_t edges[] = { 1,
                                      2,
                                      3,
                                      5,
                                      7,
                                      10,
                                      255,
                                      256,
                                      1000000000,
                                      UINT32_MAX,
                                      (uint64_t)UINT32_MAX + 1,
                                      (uint64_t)UINT32_MAX + 2,
                                      (uint64_t)INT64_MAX,
                                      (uint64_t)INT64_MAX + 1,
                                      (uint64_t)INT64_MAX + 2,
                                      UINT64_MAX / 3,
                                      UINT64_MAX / 2,
                                      UINT64_MAX - 1,
                                      UINT64_MAX };
    uint64_t seed = 3;

    for (size_t i = 0; i < COUNT_OF(edges); i++)
        for (size_t j = 0; j < COUNT_OF(edges); j++)
            for (uint64_t off = 0; off < 5; off++) {
                check_division(edges[i] + off - 2, edges[j]);
                check_division(edges[i] * edges[j] + off - 2,
                               edges[j]); /* around multiples, where a quotient steps */
            }
    for (int i = 0; i < 3000000; i++) {
        uint64_t r[3];
        for (size_t k = 0; k < 3; k++)
            r[k] = random64(&seed);
        uint64_t by = r[1] >> (r[2] & 63), n = r[0] >> (r[2] >> 8 & 63); /* of every length */
        by += by == 0;
        check_division(n, by);
        check_division(n / by * by, by);
        check_division(n / by * by - 1, by);
    }
}

/* ---------------------------------------------------------------- bad asks ---- */

static const char *const limits[] = {
    "fixed-window 5/10s",
    "fixed-window 5/10s align=first",
    "sliding-window 5/10s",
    "sliding-window 5/10s edge=loose",
    "sliding-log 5/10s",
    "leaky-bucket 5/10s",
    "leaky-bucket 5/10s queue 4",
    "token-bucket 5/7s burst 6",
    "gcra 5/10s",
    "smooth 5/10s",
    "warm-up 5/10s",
    "calendar 5/day",
    "calendar 5/month zone=Europe/Berlin",
};

static struct weir_plan *plan_of(const char *text)
{
    struct weir_limit limit;
    struct weir_plan *plan = NULL;

    assert_ok(weir_limit_parse(&limit, text, NULL));
    assert_ok(weir_plan_create(&plan, &limit, NULL));
    return plan;
}

/* Two states of the same history: two units taken at 100 s. */
static void make_states(const struct weir_plan *plan, void **one, void **two)
{
    struct weir_ask ask = { .cost = 2, .now = 100 * S };
    struct weir_decision d;

    *one = calloc(1, weir_plan_state_size(plan));
    *two = calloc(1, weir_plan_state_size(plan));
    assert_true(weir_step(plan, *one, &ask, &d));
    memcpy(*two, *one, weir_plan_state_size(plan));
}

TEST(test_a_negative_cost_is_refused_for_ever_and_changes_nothing)
{
    static const int64_t costs[] = { -1, -1000, INT64_MIN + 1, INT64_MIN };
    static const weir_time times[] = { 0, 50 * S, 100 * S, 200 * S,
                                       INT64_MAX }; /* a step back must not be followed either */

    for (size_t i = 0; i < COUNT_OF(limits) * COUNT_OF(costs) * COUNT_OF(times); i++) {
        OWN(weir_plan) *plan = plan_of(limits[i % COUNT_OF(limits)]);
        struct weir_ask ask = { .cost = costs[i / COUNT_OF(limits) % COUNT_OF(costs)],
                                .now = times[i / COUNT_OF(limits) / COUNT_OF(costs)],
                                .wait_max = i % 2 ? WEIR_FOREVER : 0 };
        void *one, *two;
        struct weir_decision d;
        make_states(plan, &one, &two);
        assert_false(weir_step(plan, one, &ask, &d));
        assert_fields(d, (allowed, false), (reason, WEIR_BAD_ASK), (retry, WEIR_NEVER), (wait, 0));
        assert_memory_equal(one, two, weir_plan_state_size(plan));
        assert_false(weir_step_peek(plan, one, &ask, &d));
        assert_int_equal(d.reason, WEIR_BAD_ASK);
        weir_step_give(plan, one, &ask); /* giving back less than nothing is not a way to take */
        assert_memory_equal(one, two, weir_plan_state_size(plan));
        free(one);
        free(two);
    }
}

static void expect_alike(const char *text, const struct weir_ask *odd, const struct weir_ask *plain)
{
    OWN(weir_plan) *plan = plan_of(text);
    void *one, *two;
    struct weir_decision a, b;
    make_states(plan, &one, &two);
    assert_int_equal(weir_step(plan, one, odd, &a), weir_step(plan, two, plain, &b));
    assert_fields(a, (reason, b.reason), (remaining, b.remaining), (wait, b.wait), (retry, b.retry),
                  (reset, b.reset));
    assert_memory_equal(one, two, weir_plan_state_size(plan));
    weir_step_give(plan, one, odd);
    weir_step_give(plan, two, plain);
    assert_memory_equal(one, two, weir_plan_state_size(plan));
    free(one);
    free(two);
}

TEST(test_a_time_before_zero_counts_as_zero)
{
    static const weir_time times[] = { -1, -S, -100 * S, INT64_MIN + 1, INT64_MIN };

    for (size_t i = 0; i < COUNT_OF(limits); i++)
        for (size_t j = 0; j < COUNT_OF(times); j++)
            for (int64_t cost = 0; cost < 7; cost += 3)
                expect_alike(limits[i], &(struct weir_ask){ .cost = cost, .now = times[j] },
                             &(struct weir_ask){ .cost = cost, .now = 0 });
}

TEST(test_a_wait_below_zero_counts_as_none)
{
    static const weir_time waits[] = { -1, -S, INT64_MIN };

    for (size_t i = 0; i < COUNT_OF(limits); i++)
        for (size_t j = 0; j < COUNT_OF(waits); j++)
            for (int64_t cost = 0; cost < 7; cost++)
                expect_alike(
                    limits[i],
                    &(struct weir_ask){ .cost = cost, .now = 101 * S, .wait_max = waits[j] },
                    &(struct weir_ask){ .cost = cost, .now = 101 * S });
}

TEST(test_the_largest_cost_is_never_or_borrowed)
{
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        OWN(weir_plan) *plan = plan_of(limits[i]);
        bool borrows = strncmp(limits[i], "warm-up", 7) ==
                       0; /* smooth too, but not more than its debt can be counted to */
        struct weir_ask ask = { .cost = INT64_MAX, .now = 1000 * S, .wait_max = WEIR_FOREVER };
        struct weir_decision d;
        void *one, *two;
        make_states(plan, &one, &two);
        assert_int_equal(weir_step(plan, one, &ask, &d), borrows);
        if (!borrows) {
            assert_fields(d, (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER));
            assert_memory_equal(one, two, weir_plan_state_size(plan));
        }
        free(one);
        free(two);
    }
}

TEST(test_reasons_have_names)
{
    assert_string_equal(weir_reason_name(WEIR_GRANTED), "granted");
    assert_string_equal(weir_reason_name(WEIR_LIMITED), "limited");
    assert_string_equal(weir_reason_name(WEIR_TOO_BIG), "too-big");
    assert_string_equal(weir_reason_name(WEIR_BAD_ASK), "bad-ask");
    assert_string_equal(weir_reason_name((enum weir_reason)99), "unknown");
    assert_string_equal(weir_version(), WEIR_VERSION);
}

/* A key that was used is forgotten sometime. */
TEST(test_every_algorithm_says_when_a_key_is_idle)
{
    for (const char *const *name = weir_algorithms(); *name; name++) {
        bool calendar = strcmp(*name, "calendar") == 0;
        struct weir_limit limit = { .algorithm = *name,
                                    .count = 10,
                                    .period = calendar ? 0 : S,
                                    .calendar = calendar ? WEIR_DAY : WEIR_NO_CALENDAR };
        weir_time now = 1000 * S, longest = calendar ? 86400 * S : 2 * S;
        OWN(weir_plan) *plan = NULL;
        struct weir_decision d;
        assert_ok(weir_plan_create(&plan, &limit, NULL));
        uint64_t words[256] = { 0 };
        assert_true(weir_plan_state_size(plan) <= sizeof(words));
        assert_true(weir_step(plan, words, &(struct weir_ask){ .cost = 1, .now = now }, &d));
        weir_time idle = weir_step_idle_at(plan, words);
        if (idle <= now || idle > now + longest)
            fail_msg("%s is idle %lld ns later", *name, (long long)(idle - now));
    }
}
