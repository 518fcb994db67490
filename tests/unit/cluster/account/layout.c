/* layout.c -- accounts: limits and states come back as they were written, and nothing else is taken
 * for one. */
#include "unit/test.h"

#include <sys/resource.h>

#include "algo/debt.h"
#include "cluster/account/layout.h"
#include "random.h"
#include "unit/fixture.h"
#include "unit/limit-options.h"

static const char *const limits[] = {
    "gcra 5/1m burst 3",
    "gcra 7/13s",
    "token-bucket 3000000/s burst 10",
    "token-bucket 1009/86400s burst 100000",
    "leaky-bucket 5/s queue 10",
    "leaky-bucket 5/s burst 2 queue 0",
    "smooth 5/s",
    "warm-up 10/s warmup=3s cold=5",
    "fixed-window 100/1m",
    "fixed-window 3/1ns align=first",
    "10000/month zone=Europe/Berlin",
    "5/day",
    "sliding-window 3/10s",
    "sliding-window 3/10s buckets=3 edge=loose",
    "sliding-log 5/1s",
    "sliding-log 9/1000h",
};

static struct weir_plan plan_of(const char *text)
{
    struct weir_limit limit = limit_of(text);
    struct weir_plan plan;
    struct weir_error error = { 0 };

    if (weir__plan_make(&plan, &limit, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    return plan;
}

TEST(test_head_says_the_limit)
{
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct weir_plan plan = plan_of(limits[i]), again;
        struct weir__account_head head = weir__account_head(&plan);
        struct weir_limit limit;

        print_message("%s: %zu bytes\n", limits[i], head.len);
        assert_int_equal(weir__account_limit(&limit, head.bytes, head.len), head.len);
        assert_int_equal(weir__plan_make(&again, &limit, NULL), WEIR_OK);
        assert_true(weir__limit_equal(&plan.limit, &again.limit));
        for (size_t len = 0; len < head.len; len++)
            assert_int_equal(weir__account_limit(&limit, head.bytes, len), 0);
    }
}

TEST(test_head_says_every_option)
{
    for (size_t i = 0; i < COUNT_OF(limit_options); i++) {
        struct weir_plan plan = plan_of(limit_options[i].with);
        struct weir__account_head head = weir__account_head(&plan);
        struct weir_limit limit;
        char text[128];

        assert_int_equal(weir__account_limit(&limit, head.bytes, head.len), head.len);
        weir_limit_print(text, sizeof(text), &limit);
        assert_string_equal(text, limit_options[i].with);
    }
}

/* A usual account and Redis's own header fit in 48 bytes of its allocator. */
TEST(test_usual_accounts_are_small)
{
    static const char *const usual[] = { "300/60", "100/s burst 20",      "gcra 30/1m burst 16",
                                         "1000/h", "fixed-window 100/1m", "10000/day" };

    for (size_t i = 0; i < COUNT_OF(usual); i++) {
        struct weir_plan plan = plan_of(usual[i]);
        size_t size = weir__account_head(&plan).len + weir__account_state_max(&plan);
        print_message("%s: %zu bytes\n", usual[i], size);
        assert_true(size <= 28);
    }
}

TEST(test_foreign_bytes_are_no_account)
{
    static const char *const foreign[] = {
        "", "W", "12345678901", "W\1\xff\1\1\1\1", "hello world", "W\2\3\1\1\1"
    };
    struct weir_limit limit;

    for (size_t i = 0; i < COUNT_OF(foreign); i++)
        assert_int_equal(weir__account_limit(&limit, foreign[i], strlen(foreign[i])), 0);
    random_state = 5;
    for (int i = 0; i < 100000; i++) {
        unsigned char bytes[40] = "W\1";
        size_t len = (size_t)between(2, sizeof(bytes));
        for (size_t k = 2; k < len; k++)
            bytes[k] = (unsigned char)roll();
        size_t head = weir__account_limit(&limit, bytes, len);
        assert_true(head <= len);
    }
}

/* Random asks: a state that was written and read decides as the one that stayed. */
static void walk(const char *text, int64_t seed)
{
    struct weir_plan plan = plan_of(text);
    void *stays = calloc(1, plan.state_size), *comes_back = calloc(1, plan.state_size);
    unsigned char *bytes = malloc(weir__account_state_max(&plan));
    weir_time now = between(0, 2000000000) * S;

    random_state = (uint64_t)seed;
    for (int i = 0; i < 200; i++) {
        struct weir_ask ask = { .cost = between(0, 3), .now = now };
        struct weir_decision a = { 0 }, b = { 0 };
        ask.wait_max = one_in(4) ? between(0, 10 * S) : 0;
        if (one_in(8)) {
            weir_step_give(&plan, stays, &ask);
            weir_step_give(&plan, comes_back, &ask);
        } else {
            weir_step(&plan, stays, &ask, &a);
            weir_step(&plan, comes_back, &ask, &b);
        }
        assert_memory_equal(&a, &b, sizeof(a));
        size_t len = weir__account_write(&plan, comes_back, bytes);
        assert_true(len <= weir__account_state_max(&plan));
        memset(comes_back, 0xa5, plan.state_size);
        assert_true(weir__account_read(&plan, comes_back, bytes, len));
        assert_false(weir__account_read(&plan, comes_back, bytes, 5));
        now += between(0, one_in(10) ? 3 * S : S / 10) - (one_in(50) ? 2 * S : 0);
        now = now < 0 ? 0 : now;
    }
    free(stays);
    free(comes_back);
    free(bytes);
}

TEST(test_states_come_back)
{
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        for (int64_t seed = 1; seed <= 20; seed++)
            walk(limits[i], seed);
}

/* A log under this limit, written after some units were taken; returns its length. */
static size_t write_log(const struct weir_plan *plan, int64_t units, unsigned char *out)
{
    struct weir__account_head head = weir__account_head(plan);
    void *bare = calloc(1, plan->state_size);
    struct weir_decision d;

    for (int64_t i = 0; i < units; i++)
        weir_step(plan, bare, &(struct weir_ask){ .cost = 1, .now = (100 + i) * S }, &d);
    memcpy(out, head.bytes, head.len);
    size_t len = head.len + weir__account_write(plan, bare, out + head.len);
    free(bare);
    return len;
}

static long peak_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

/* A head of a few bytes may speak of a gigabyte of stamps. */
TEST(test_a_log_takes_the_memory_that_its_bytes_need)
{
    struct weir_limit limit = { .algorithm = "sliding-log",
                                .count = 160000000,
                                .period = 3600 * S };
    struct weir_plan plan = plan_of("sliding-log 5/1h"), forged;
    struct weir__account_head head = weir__account_head(&plan), its;
    unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX + 26] = { 0 };
    void *bare = malloc(plan.state_size);
    long before = peak_kib();

    assert_int_equal(weir__plan_make(&forged, &limit, NULL), WEIR_OK);
    its = weir__account_head(&forged);
    memcpy(bytes, its.bytes, its.len);
    assert_int_equal(weir__account_open(&plan, &head, bare, bytes, its.len + 26, 100 * S),
                     WEIR__ACCOUNT_MOVED);
    assert_true(peak_kib() - before < 64 * 1024);
    free(bare);
}

TEST(test_a_log_without_its_stamps_is_no_account)
{
    struct weir_plan plan = plan_of("sliding-log 5/1h"), other = plan_of("sliding-log 6/1h");
    struct weir__account_head head = weir__account_head(&plan), others = weir__account_head(&other);
    unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX + 64], damaged[sizeof(bytes)];
    void *bare = malloc(other.state_size);
    size_t len = write_log(&plan, 3, bytes), at_first = head.len + 18, at_used = head.len + 22;

    assert_int_equal(weir__account_open(&plan, &head, bare, bytes, len, 105 * S),
                     WEIR__ACCOUNT_SAME);
    assert_int_equal(weir__account_open(&other, &others, bare, bytes, len, 105 * S),
                     WEIR__ACCOUNT_MOVED);
    for (int i = 0; i < 3; i++) {
        memcpy(damaged, bytes, len);
        damaged[at_first] = i == 0 ? 5 : damaged[at_first];
        damaged[at_used] = i == 1 ? 6 : damaged[at_used];
        size_t has = i == 2 ? len - 1 : len;
        assert_int_equal(weir__account_open(&plan, &head, bare, damaged, has, 105 * S),
                         WEIR__ACCOUNT_FOREIGN);
        assert_int_equal(weir__account_open(&other, &others, bare, damaged, has, 105 * S),
                         WEIR__ACCOUNT_FOREIGN);
    }
    free(bare);
}

/* The few stamps of a long log come over to another limit. */
TEST(test_a_long_log_is_brought_over)
{
    struct weir_limit limit = { .algorithm = "sliding-log", .count = 1000000, .period = 3600 * S };
    struct weir_plan plan = plan_of("sliding-log 5/1h"), old;
    struct weir__account_head head = weir__account_head(&plan);
    unsigned char bytes[WEIR__ACCOUNT_HEAD_MAX + 64];
    void *bare = malloc(plan.state_size);
    struct weir_decision d;

    assert_int_equal(weir__plan_make(&old, &limit, NULL), WEIR_OK);
    size_t len = write_log(&old, 3, bytes);
    assert_int_equal(weir__account_open(&plan, &head, bare, bytes, len, 105 * S),
                     WEIR__ACCOUNT_MOVED);
    weir_step_peek(&plan, bare, &(struct weir_ask){ .now = 105 * S }, &d);
    assert_int_equal(d.remaining, 2);
    free(bare);
}

TEST(test_fine_debts_are_split)
{
    struct weir_plan fine = plan_of("token-bucket 1009/86400s burst 100000"),
                     coarse = plan_of("token-bucket 100/s");

    assert_true(weir__account_is_split(&fine));
    assert_false(weir__account_is_split(&coarse));
}

/* More parts than there are numbers: a microsecond pays off any debt. */
TEST(test_D1_a_rate_beyond_all_numbers)
{
    static const char *const fast[] = {
        "token-bucket 2305843009213693952/1ns burst 5",
        "token-bucket 2305843009213693952/1ns burst 9007199254740992",
        "gcra 9223372036854775807/1ns burst 9007199254740992",
        "leaky-bucket 9223372036854775807/7ns burst 5"
    };

    for (size_t i = 0; i < COUNT_OF(fast); i++) {
        struct weir_plan plan = plan_of(fast[i]);
        unsigned char bytes[64];
        struct weir__debt s = { 5 * S, plan.capacity - 1 }, read;

        size_t len = weir__account_write(&plan, &s, bytes);
        assert_true(weir__account_read(&plan, &read, bytes, len));
        assert_memory_equal(&read, &s, sizeof(s));
        assert_true(weir__account_rate(&plan) >= WEIR__OWED_MAX);
    }
}
