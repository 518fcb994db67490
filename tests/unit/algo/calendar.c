/* calendar.c -- windows by the calendar: where they lie, states that may hold anything, and
 * limiters that share a zone. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "base/zone.h"

static struct weir_plan *plan_of(const char *text)
{
    struct weir_limit limit = limit_of(text);
    struct weir_plan *plan = NULL;
    struct weir_error error = { 0 };

    if (weir_plan_create(&plan, &limit, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    return plan;
}

TEST(test_windows_by_the_calendar)
{
    static const struct {
        const char *limit;
        int64_t now, start, end; /* seconds */
    } rows[] = {
        { "5/day", 0, 0, 86400 },
        { "5/week", 0, -3 * 86400, 4 * 86400 },
        { "5/month", 0, 0, 31 * 86400 },
        { "5/month zone=Asia/Kolkata", 0, -19800, 31 * 86400 - 19800 },
        { "5/month zone=America/New_York", 0, -31 * 86400 + 18000,
          18000 }, /* it is still December there */
        { "5/day zone=Europe/Berlin", 1774800000, 1774738800, 1774821600 },
        { "5/week zone=Europe/Berlin", 1774800000, 1774220400, 1774821600 },
        { "5/month zone=Europe/Berlin", 1774800000, 1772319600,
          1774994400 },                                    /* March 2026: 743 hours */
        { "5/month", 1835395200, 1832976000, 1835481600 }, /* February 2028 */
        { "5/day zone=Pacific/Apia", 1325239199, 1325152800, 1325239200 },
        { "5/day zone=Pacific/Apia", 1325239200, 1325239200, 1325325600 },
        { "5/month zone=Pacific/Apia", 1325239200, 1322733600,
          1325325600 }, /* December 2011 has 30 days there */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        OWN(weir_plan) *plan = plan_of(rows[i].limit);
        weir_time start = 77, length = weir__calendar_window(plan, rows[i].now * S, &start);
        print_message("%s at %lld\n", rows[i].limit, (long long)rows[i].now);
        assert_int_equal(start, rows[i].start * S);
        assert_int_equal(length, (rows[i].end - rows[i].start) * S);
        assert_int_equal(weir__calendar_window(plan, start < 0 ? -5 : start, &start),
                         length); /* before 0 counts as 0 */
    }
}

TEST(test_the_end_of_time)
{
    OWN(weir_plan) *plan = plan_of("5/month zone=Europe/Berlin");
    weir_time start, length = weir__calendar_window(plan, INT64_MAX, &start);
    assert_true(start < INT64_MAX && start > INT64_MAX - 32 * 86400 * S);
    assert_int_equal(start + length, INT64_MAX);
}

TEST(test_UTC_has_one_name_in_a_plan)
{
    struct weir_plan *a = plan_of("5/day"), *b = plan_of("calendar 5/day zone=UTC"),
                     *c = plan_of("5/day zone=Etc/UTC");
    struct weir_limit unnamed = { .count = 5, .calendar = WEIR_DAY };
    struct weir_plan *d = NULL;

    memset(unnamed.zone + 1, 'x',
           sizeof(unnamed.zone) - 1); /* what follows the NUL byte is nobody's */
    assert_ok(weir_plan_create(&d, &unnamed, NULL));
    assert_true(weir__limit_equal(&a->limit, &b->limit) && weir__limit_equal(&a->limit, &c->limit));
    assert_memory_equal(a->limit.zone, d->limit.zone, sizeof(a->limit.zone));
    struct weir_plan *other = plan_of("5/day zone=Europe/Berlin"), *week = plan_of("5/week");
    assert_false(weir__limit_equal(&a->limit, &other->limit));
    assert_false(weir__limit_equal(&a->limit, &week->limit));
    struct weir_limit named = weir__plan_limit_named(other);
    char text[80];
    weir_limit_print(text, sizeof(text), &named);
    assert_string_equal(text, "calendar 5/day zone=Europe/Berlin");
    weir_plan_destroy(a);
    weir_plan_destroy(b);
    weir_plan_destroy(c);
    weir_plan_destroy(d);
    weir_plan_destroy(other);
    weir_plan_destroy(week);
}

TEST(test_a_zone_without_end_is_refused)
{
    struct weir_limit limit = { .algorithm = "calendar", .count = 5, .calendar = WEIR_DAY };
    struct weir_plan *plan = NULL;

    memset(limit.zone, 'A', sizeof(limit.zone));
    assert_int_equal(weir_plan_create(&plan, &limit, NULL), WEIR_INVALID);
}

/* Any bytes at all: answers make sense, a refusal's retry is true or beyond reckoning, and what
 * comes after is a state like others. */
TEST(test_damaged_states)
{
    static const char *const limits[] = { "1/day", "5/day zone=Pacific/Apia",
                                          "7/week zone=Europe/Berlin", "3/month",
                                          "2305843009213693952/day" };
    uint64_t seed = 11;

    for (int i = 0; i < 60000; i++) {
        struct weir_plan *plan = plan_of(limits[i % (int)COUNT_OF(limits)]),
                         *other = plan_of(limits[(i + 1) % (int)COUNT_OF(limits)]);
        uint64_t bytes[2] = { random64(&seed) >> random64(&seed) % 64,
                              random64(&seed) >> random64(&seed) % 64 },
                 to[2], before[2];
        struct weir_ask ask = { .cost = (int64_t)(random64(&seed) % 9),
                                .now = (weir_time)(random64(&seed) >> (1 + random64(&seed) % 60)) };
        struct weir_decision d;
        if (i % 7 == 0)
            bytes[i % 2] = i % 3 ? UINT64_MAX : (uint64_t)INT64_MAX;
        ask.wait_max = i % 3 == 0 ? WEIR_FOREVER : 0;
        uint64_t tame[2] = { bytes[0] & INT64_MAX,
                             bytes[1] }; /* no time is negative, whatever the top bit says */
        assert_int_equal(weir_step_idle_at(plan, bytes), weir_step_idle_at(plan, tame));
        weir_step_change(plan, other, bytes, to, ask.now);
        assert_true((int64_t)to[0] >= 0);
        memcpy(before, bytes, sizeof(bytes));
        weir_step_peek(plan, bytes, &ask, &d);
        assert_memory_equal(bytes, before, sizeof(bytes));
        weir_step(plan, bytes, &ask, &d);
        assert_true(d.remaining >= 0 && d.remaining <= d.limit && d.wait >= 0 && d.retry >= 0 &&
                    d.reset >= 0);
        assert_true(d.allowed == (d.retry == 0));
        weir_step_give(plan, bytes, &ask);
        assert_true((int64_t)bytes[0] >= 0 ||
                    ask.cost == 0); /* giving nothing back changes nothing */
        weir_plan_destroy(plan);
        weir_plan_destroy(other);
    }
}

/* ------------------------------------------------------------- tables ---- */

#define MARCH (1774742400 * S) /* 2026-03-29 00:00 UTC, 01:00 in Berlin */

TEST(test_processes_share_a_quota)
{
    struct weir_table_options options = { .path = new_path(), .keys = 100 };
    struct weir_table *one = table_with(&options), *two = attach(options.path);
    struct weir_limiter *a = limiter_of(one, "quota", "100/month zone=Europe/Berlin"),
                        *b = limiter_of(two, "quota", "100/month zone=Europe/Berlin");
    struct weir_limiter_info info;

    assert_int_equal(take(a, "k", 30, MARCH).remaining, 70);
    assert_int_equal(take(b, "k", 30, MARCH).remaining, 40);
    assert_true(weir_limiter_next(two, &(int64_t){ 0 }, &info));
    assert_string_equal(info.limit, "calendar 100/month zone=Europe/Berlin");
    change(b, "calendar 200/day zone=Asia/Kolkata", MARCH);
    struct weir_decision d = peek(a, "k", 0, MARCH);
    assert_int_equal(d.remaining, 140);
    assert_int_equal(d.reset, 66600 * S); /* to 18:30 UTC */
    weir_table_destroy(one);
    weir_table_destroy(two);
}

TEST(test_another_zone_is_another_limit)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "5/day");
    struct weir_limit limit = limit_of("5/day zone=Europe/Berlin");
    assert_ptr_equal(limiter_of(table, "l", "5/day zone=UTC"), limiter);
    assert_fails(weir_limiter_create(&limiter, table, "l", &limit, &error), WEIR_EXISTS,
                 "calendar 5/day");
}

TEST(test_narrow_tables_have_no_calendar)
{
    OWN(weir_table) *table = private_table(true, 100);
    struct weir_limiter *limiter = NULL;
    struct weir_limit limit = limit_of("5/day");
    assert_int_equal(weir_limiter_create(&limiter, table, "l", &limit, NULL), WEIR_INVALID);
}

GROUP(make_folder, remove_folder)
