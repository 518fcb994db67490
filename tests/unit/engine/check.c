/* check.c -- costs, waits and what a ruling says. */
#include "unit/test.h"

#include "unit/requests.h"

/* -------------------------------------------------------- costs and waits ---- */

TEST(test_cost_by_rule_and_by_attribute)
{
    OWN(weir) *weir =
        engine_of(RULES("- { name: plain, key: \"{ip}\", limit: 1000/60 }\n"
                        "- { name: five, key: \"{ip}\", limit: 1000/60, cost: 5 }\n"
                        "- { name: free, key: \"{ip}\", limit: 1000/60, cost: 0 }\n"
                        "- { name: bytes, key: \"{ip}\", limit: 1000/60, cost: \"{bytes}\" }\n"));
    static const struct {
        const char *request;
        int64_t cost, plain, five, bytes;
    } cases[] = {
        { "ip=::1 bytes=200", 1, 1, 5, 200 },
        { "ip=2:: bytes=200", 3, 3, 15, 600 },
        { "ip=3::", 2, 2, 10, 2 },
        { "ip=4:: bytes=", 1, 1, 5, 1 },
        { "ip=5:: bytes=12x", 1, 1, 5, 1 },
        { "ip=6:: bytes=-5", 1, 1, 5, 1 },
        { "ip=7:: bytes=0", 4, 4, 20, 0 },
        { "ip=8:: bytes=1e3", 1, 1, 5, 1 },
        { "ip=9:: bytes=007", 1, 1, 5, 7 },
        { "ip=a:: bytes=1000", 1, 1, 5, 1000 },
        { "ip=b:: bytes=7", 0, 0, 0, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir_ruling r = check_cost(weir, cases[i].request, cases[i].cost, NOW);
        assert_true(r.decision.allowed);
        assert_int_equal(rule_left(weir, "plain", cases[i].request, NOW), 1000 - cases[i].plain);
        assert_int_equal(rule_left(weir, "five", cases[i].request, NOW), 1000 - cases[i].five);
        assert_int_equal(rule_left(weir, "free", cases[i].request, NOW), 1000);
        assert_int_equal(rule_left(weir, "bytes", cases[i].request, NOW), 1000 - cases[i].bytes);
    }
}

TEST(test_a_cost_beyond_all_numbers_is_too_big)
{
    static const char *const huge[] = { "ip=::1 bytes=1001", "ip=::1 bytes=9223372036854775807",
                                        "ip=::1 bytes=9223372036854775808",
                                        "ip=::1 bytes=99999999999999999999999999999999999999" };

    OWN(weir) *weir =
        engine_of(RULES("- { name: bytes, key: \"{ip}\", limit: 1000/60, cost: \"{bytes}\" }\n"));
    for (size_t i = 0; i < COUNT_OF(huge); i++)
        for (int64_t cost = 1; cost < 8; cost += 2) {
            struct weir_ruling r = check_cost(weir, huge[i], cost, NOW);
            assert_refused_by(r, "bytes");
            assert_fields(r.decision, (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER));
        }
    struct weir_ruling r = check_cost(weir, huge[2], -3, NOW); /* a mistake stays one */
    assert_refused_by(r, "bytes");
    assert_int_equal(r.decision.reason, WEIR_BAD_ASK);
    assert_int_equal(rule_left(weir, "bytes", "ip=::1", NOW), 1000);
    weir_destroy(weir);
    weir = engine_of(RULES("- { name: dear, limit: 10/60, cost: 10 }\n"));
    r = check_cost(weir, "", INT64_MAX / 2, NOW);
    assert_refused_by(r, "dear");
    assert_int_equal(r.decision.reason, WEIR_TOO_BIG);
}

/* A key is made once for all rules in a row that have it: not for others, nor if it is missing. */
TEST(test_rules_with_the_same_key_and_others_between)
{
    OWN(weir) *weir =
        engine_of(RULES("- { name: a, key: \"{ip} {user|none}\", limit: 9/60 }\n"
                        "- { name: b, key: \"{ip} {user|none}\", limit: 9/60 }\n"
                        "- { name: c, key: \"{ip} {user|some}\", limit: 9/60 }\n"
                        "- { name: d, key: \"{team} {ip}\", limit: 9/60 }\n"
                        "- { name: e, key: \"{team} {ip}\", limit: 9/60, cost: 2 }\n"
                        "- { name: f, key: \"{ip} {user|none}\", limit: 9/60 }\n"
                        "- { name: g, key: \"{ip} {uri}\", limit: 9/60 }\n"
                        "- { name: h, key: \"{ip} {uri}\", limit: 9/60, paths: loose }\n"
                        "- { name: i, key: \"{ip} {user|none}\", limit: 9/60, mode: shadow }\n"));
    static const struct {
        const char *request, *left; /* by rule; -: it does not apply */
        unsigned applied;
    } cases[] = {
        { "ip=::1 uri=/x", "888--8888", 7 },
        { "ip=::1 uri=/x user=none team=t", "778877777", 9 },
        { "ip=::1 uri=/X user=none", "667--6866", 7 },
        { "ip=::1 user=u", "888--8--8", 5 },
        { "uri=/x team=t", "---------", 0 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir_ruling r = check_cost(weir, cases[i].request, 1, NOW);
        assert_true(r.decision.allowed);
        assert_int_equal(r.applied, cases[i].applied);
        for (const char *left = cases[i].left; *left != '\0'; left++) {
            char name[2] = { (char)('a' + (left - cases[i].left)), '\0' };
            if (*left != '-')
                assert_int_equal(rule_left(weir, name, cases[i].request, NOW), *left - '0');
        }
    }
}

/* Whatever the rule makes of it: one that costs nothing, or has no number for its cost. */
TEST(test_a_negative_cost_is_a_bad_ask_always)
{
    static const char *const costs[] = { "cost: 0", "cost: 1", "cost: 5", "cost: \"{bytes}\"" };

    for (size_t i = 0; i < COUNT_OF(costs); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), RULES("- { name: r, key: \"{ip}\", limit: 9/60, %s }\n"),
                 costs[i]);
        OWN(weir) *weir = engine_of(yaml);
        for (int64_t cost = -1; cost >= INT64_MIN / 2; cost *= 2) {
            struct weir_ruling r = check_cost(weir, "ip=::1 bytes=0", cost, NOW);
            assert_refused_by(r, "r");
            assert_int_equal(r.decision.reason, WEIR_BAD_ASK);
        }
        assert_int_equal(rule_left(weir, "r", "ip=::1", NOW), 9);
    }
}

/* A point before 0 counts as 0. */
TEST(test_before_the_beginning_of_time)
{
    static const char *const limits[] = {
        "3/60", "gcra 3/60", "sliding-window 3/60", "sliding-log 3/60", "fixed-window 3/60", "3/day"
    };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        char yaml[200];
        snprintf(
            yaml, sizeof(yaml),
            RULES("- { name: r, key: \"{ip}\", limit: %s, ban: { refusals: 2/60s, for: 10s } }\n"),
            limits[i]);
        OWN(weir) *weir = engine_on(NULL);
        use(weir, yaml, -5 * S);
        assert_true(passes(weir, "ip=::1", -S));
        assert_true(passes(weir, "ip=::1", INT64_MIN));
        struct weir_ruling r = check(weir, "ip=::1", 0);
        assert_allowed_by(r, "r");
        assert_int_equal(r.decision.remaining, 0);
        weir_time window = r.window, retry = check(weir, "ip=::1", -1).decision.retry;
        r = check(weir, "ip=::1", -9 * S); /* the second refusal: a ban from 0 on */
        assert_fields(r, (window, window), (banned_until, 10 * S));
        assert_int_equal(r.decision.retry, retry > 10 * S ? retry : 10 * S);
        r = check(weir, "ip=::1", -7 * S);
        assert_fields(r.decision, (reason, WEIR_BANNED), (retry, 10 * S));
    }
}

TEST(test_who_can_wait_is_told_his_turn)
{
    struct weir_attr ip = ATTR("ip", "::1");

    OWN(weir) *weir =
        engine_of(RULES("- { name: shaped, key: \"{ip}\", limit: leaky-bucket 10/s queue 5 }\n"
                        "- { name: meter, key: \"{ip}\", limit: 1000/s }\n"));
    struct weir_ask ask = { .cost = 1, .wait_max = S, .now = NOW };
    for (int i = 0; i <= 5; i++) {
        struct weir_ruling r = check_attrs(weir, &ip, 1, &ask);
        assert_allowed_by(r, "shaped");
        assert_int_equal(r.decision.wait, i * S / 10);
    }
    struct weir_ruling r = check_attrs(weir, &ip, 1, &ask);
    assert_refused_by(r, "shaped"); /* the queue is full */
    ask.wait_max = S / 10;
    ask.now = NOW + S / 10;
    r = check_attrs(weir, &ip, 1, &ask);
    assert_refused_by(r, "shaped"); /* it cannot wait that long */
    assert_int_equal(rule_left(weir, "meter", "ip=::1", ask.now), 1000);
}

/* --------------------------------------------------- what the ruling says ---- */

/* The level by the very fraction, also of small limits. */
TEST(test_level)
{
    static const int64_t sizes[] = { 1, 2, 3, 4, 7, 8, 16, 100 };

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), RULES("- { name: r, limit: %lld/60 }\n"), (long long)sizes[i]);
        OWN(weir) *weir = engine_of(yaml);
        for (int64_t left = sizes[i] - 1; left >= 0; left--) {
            struct weir_ruling r = check(weir, "", NOW);
            int wanted = 8 * left < sizes[i] ? 2 : 2 * left < sizes[i] ? 1 : 0;
            assert_true(r.decision.allowed);
            if (r.level != wanted)
                fail_msg("%lld of %lld left: level %d, not %d", (long long)left,
                         (long long)sizes[i], r.level, wanted);
        }
        assert_int_equal(check(weir, "", NOW).level, 3);
    }
}

TEST(test_R7_short_syntax_in_rules)
{
    static const struct {
        const char *limit;
        int64_t count;
        weir_time window;
        int64_t passes;
    } cases[] = {
        { "300/60", 300, 60 * S, 300 },
        { "100/5s", 100, 5 * S, 100 },
        { "10r/s", 10, S, 10 },
        { "6r/m", 6, 60 * S, 6 },
        { "1000/h burst 50", 1000, 3600 * S, 50 },
        { "gcra 5/1m burst 3", 5, 60 * S, 3 },
        { "sliding-window 7/10s buckets=5", 7, 10 * S, 7 },
        { "fixed-window 4/500ms", 4, S / 2, 4 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), RULES("- { name: r, limit: %s }\n"), cases[i].limit);
        OWN(weir) *weir = engine_of(yaml);
        struct weir_ruling r = check_cost(weir, "", 0, NOW);
        assert_fields(r, (count, cases[i].count), (window, cases[i].window));
        assert_int_equal(pass_of(weir, 400, "", NOW), cases[i].passes);
    }
}

#define DAY          (24 * 3600 * S)
#define BERLIN_MARCH (1772319600 * S) /* 2026-03-01 00:00 +01:00 */
#define BERLIN_APRIL (1774994400 * S) /* 2026-04-01 00:00 +02:00 */

TEST(test_R7_a_month_in_a_time_zone)
{
    static const char *const rules[] = { "limit: 10000/month zone=Europe/Berlin",
                                         "limit: 10000/month, zone: Europe/Berlin" };

    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), RULES("- { name: quota, key: \"{account}\", %s }\n"),
                 rules[i]);
        OWN(weir) *weir = engine_of(yaml);
        struct weir_ruling r = check_cost(weir, "account=ann", 10000, BERLIN_MARCH);
        assert_allowed_by(r, "quota");
        assert_int_equal(r.count, 10000);
        assert_int_equal(
            r.window,
            BERLIN_APRIL -
                BERLIN_MARCH); /* the clocks go forward in it: an hour less than 31 days */
        assert_int_equal(r.window, 31 * DAY - 3600 * S);
        r = check(weir, "account=ann", BERLIN_APRIL - 5);
        assert_refused_by(r, "quota");
        assert_int_equal(r.decision.retry, 5);
        r = check(weir, "account=ann", BERLIN_APRIL);
        assert_allowed_by(r, "quota");
        assert_fields(r, (decision.remaining, 9999), (window, 30 * DAY));
    }
}
