/* check-limits.c -- several limits at once: all or nothing, the tightest, more than fit. */
#include "unit/test.h"

#include "unit/requests.h"

TEST(test_R2_one_refusal_consumes_nothing_anywhere)
{
    static const char ann[] = "ip=192.0.2.1 account=ann";

    OWN(weir) *weir = engine_of(three);
    assert_int_equal(pass_of(weir, 3, ann, NOW), 3);
    for (int i = 0; i < 20; i++) {
        struct weir_ruling r = check(weir, ann, NOW);
        assert_refused_by(r, "per-account");
        assert_fields(r, (decision.reason, WEIR_LIMITED), (applied, 3), (level, 3));
    }
    assert_int_equal(rule_left(weir, "per-ip", ann, NOW), 2);
    assert_int_equal(rule_left(weir, "per-account", ann, NOW), 0);
    assert_int_equal(rule_left(weir, "all", ann, NOW), 97);
    assert_int_equal(pass_of(weir, 5, "ip=192.0.2.1 account=bob", NOW),
                     2); /* what is left of the address */
    assert_int_equal(rule_left(weir, "per-account", "account=bob", NOW), 1);
    struct weir_rule_info info = info_of(weir, "per-account");
    assert_fields(info, (allowed, 5), (refused, 20));
    assert_int_equal(info_of(weir, "per-ip").refused, 3);
    assert_int_equal(info_of(weir, "all").refused, 0);
}

TEST(test_R2_the_tightest_is_named)
{
    OWN(weir) *weir = engine_of(three);
    struct weir_ruling r = check(weir, "ip=192.0.2.1 account=ann", NOW);
    assert_allowed_by(r, "per-account");
    assert_fields(r, (decision.remaining, 2), (decision.limit, 3), (count, 3), (window, 60 * S));
    r = check(weir, "ip=192.0.2.1", NOW);
    assert_allowed_by(r, "per-ip");
    assert_fields(r, (decision.remaining, 3), (applied, 2));
}

TEST(test_R2_several_limits_of_a_rule)
{
    OWN(weir) *weir = engine_of(
        RULES("- { name: r, key: \"{ip}\", limit: [300/60, 100/5, sliding-log 150/10] }\n"));
    struct weir_ruling r;
    for (int i = 0; i < 100; i++) {
        r = check(weir, "ip=::1", NOW);
        assert_allowed_by(r, "r");
        assert_fields(r, (limit_index, 1), (count, 100), (window, 5 * S));
    }
    r = check(weir, "ip=::1", NOW);
    assert_refused_by(r, "r");
    assert_int_equal(r.limit_index, 1);
    assert_int_equal(pass_of(weir, 100, "ip=::1", NOW + 5 * S), 50);
    r = check(weir, "ip=::1", NOW + 5 * S);
    assert_refused_by(r, "r");
    assert_int_equal(r.limit_index, 2);
}

TEST(test_R2_retry_is_exact)
{
    static const char *const limits[] = { "3/60",
                                          "gcra 3/7s",
                                          "sliding-log 3/10",
                                          "fixed-window 3/10",
                                          "sliding-window 3/10",
                                          "leaky-bucket 3/10",
                                          "[300/60, gcra 3/5]",
                                          "3/day",
                                          "3/month zone=Europe/Berlin" };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        char yaml[300];
        snprintf(yaml, sizeof(yaml),
                 RULES("- { name: a, key: \"{ip}\", limit: 50/1s }\n- { name: b, key: \"{ip}\", "
                       "limit: %s }\n"),
                 limits[i]);
        for (weir_time early = 0; early < 2; early++) {
            OWN(weir) *weir = engine_of(yaml);
            assert_int_equal(pass_of(weir, 5, "ip=::1", NOW + 1), 3);
            struct weir_ruling r = check(weir, "ip=::1", NOW + 17);
            assert_refused_by(r, "b");
            assert_true(r.decision.retry > 0 && r.decision.retry < WEIR_NEVER);
            assert_int_equal(passes(weir, "ip=::1", NOW + 17 + r.decision.retry - early),
                             early == 0);
        }
    }
}

/* Those after it wait: the rule does not refuse it for ever. */
TEST(test_a_cost_above_the_burst_of_a_borrowing_limit)
{
    OWN(weir) *weir = engine_of(RULES("- { name: a, key: \"{ip}\", limit: smooth 3/1h, cost: 5 }\n"
                                      "- { name: b, key: \"{ip}\", limit: warm-up 3/1h, cost: 5 }"
                                      "\n"));
    assert_true(passes(weir, "ip=::1", NOW));
    assert_false(passes(weir, "ip=::1", NOW));
}

/* Of two that refuse, the first is named, and the retry is until both would not. */
TEST(test_R2_retry_is_that_of_all_who_refuse)
{
    OWN(weir) *weir = engine_of(RULES("- { name: quick, key: \"{ip}\", limit: 1/1s }\n- { name: "
                                      "slow, key: \"{ip}\", limit: 1/60s }\n"));
    assert_true(passes(weir, "ip=::1", NOW));
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_refused_by(r, "quick");
    assert_int_equal(r.decision.retry, 60 * S);
    assert_false(passes(weir, "ip=::1", NOW + 60 * S - 1));
    assert_true(passes(weir, "ip=::1", NOW + 60 * S));
}

TEST(test_R2_too_big_is_told_of_the_rule_that_it_is_too_big_for)
{
    OWN(weir) *weir = engine_of(RULES("- { name: a, key: \"{ip}\", limit: 5/1m }\n- { name: b, "
                                      "key: \"{ip}\", limit: 7/1m, cost: 2 }\n"));
    for (int i = 0; i < 3; i++)
        assert_true(passes(weir, "ip=::1", NOW));
    struct weir_ruling r = check_cost(weir, "ip=::1", 4, NOW);
    assert_refused_by(r, "b");
    assert_fields(r.decision, (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER), (limit, 7));
}

TEST(test_R2_more_than_fits_is_never)
{
    OWN(weir) *weir = engine_of(three);
    struct weir_ruling r = check_cost(weir, "ip=::1 account=ann", 4, NOW);
    assert_refused_by(r, "per-account");
    assert_fields(r.decision, (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER));
    r = check_cost(weir, "ip=::1", -1, NOW);
    assert_fields(r.decision, (allowed, false), (reason, WEIR_BAD_ASK));
    assert_int_equal(rule_left(weir, "per-ip", "ip=::1", NOW), 5);
}

/* No limit is skipped: what cannot be asked refuses. */
TEST(test_R2_more_than_64_limits_apply)
{
    OWN(weir) *weir = engine_of_many(70, "- { name: r%d, key: \"{ip}\", limit: 5/60 }\n");
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_refused_by(r, "r64");
    assert_fields(r, (decision.reason, WEIR_TOO_MANY), (decision.retry, WEIR_NEVER), (cut, true));
    assert_int_equal(info_of(weir, "r64").refused, 1);
    assert_int_equal(rule_left(weir, "r0", "ip=::1", NOW), 5);
    weir_destroy(weir);
    weir = engine_of(RULES("- { name: a, limit: [9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, "
                           "9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60] }\n"
                           "- { name: b, limit: [9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, "
                           "9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60] }\n"
                           "- { name: c, limit: [9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, "
                           "9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60] }\n"
                           "- { name: d, limit: [9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60, "
                           "9/60, 9/60, 9/60, 9/60, 9/60, 9/60, 9/60] }\n"
                           "- { name: e, key: \"{ip}\", limit: [8/60, 8/60] }\n"));
    r = check(weir, "ip=::1", NOW);
    assert_refused_by(r, "e"); /* 63, and two more do not fit: a rule applies whole or not at all */
    assert_int_equal(rule_left(weir, "d", "", NOW), 9);
}

/* Bans count though their rule is left out. */
TEST(test_R2_bans_of_more_rules_than_fit)
{
    OWN(weir) *weir = engine_of_many(70, "- { name: r%d, key: \"{ip}\", limit: 5/60 }\n");
    assert_int_equal(weir_ban_set(weir, "r69", "::1", NOW, NOW + S, NULL), WEIR_OK);
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_refused_by(r, "r69");
    assert_fields(r, (decision.reason, WEIR_BANNED), (banned_until, NOW + S));
    assert_int_equal(check(weir, "ip=2::", NOW).decision.reason, WEIR_TOO_MANY);
    weir_destroy(weir);
    weir = engine_of_many(70, "- { name: r%d, key: \"{ip}\", limit: 5/60, mode: shadow }\n");
    assert_int_equal(weir_ban_set(weir, "r69", "::1", NOW, NOW + S, NULL), WEIR_OK);
    r = check(weir, "ip=::1", NOW);
    assert_fields(r, (decision.allowed, true), (cut, true));
    assert_string_equal(r.shadow, "r69");
}

/* The first that does not fit is named. */
TEST(test_R2_those_first_in_the_file)
{
    FINALLY(memory_drop) char *yaml = malloc(BIG);
    size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n");
    for (int i = 0; i < 63; i++)
        len += (size_t)snprintf(yaml + len, BIG - len,
                                "- { name: r%d, key: \"{ip}\", limit: 5/60 }\n", i);
    snprintf(yaml + len, BIG - len,
             "- { name: two, limit: [5/60, 6/60] }\n- { name: one, limit: 1/60 }\n");
    OWN(weir) *weir = engine_of(yaml);
    for (int i = 0; i < 2; i++) {
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_refused_by(r, "two");
        assert_fields(r, (decision.reason, WEIR_TOO_MANY), (applied, 63), (cut, true));
    }
    struct weir_ruling r = check(weir, "", NOW); /* where there is room */
    assert_allowed_by(r, "one");
    assert_fields(r, (applied, 2), (cut, false));
}

/* One too many leaves the keys of the others as they are. */
TEST(test_R2_what_is_left_out_disturbs_nobody)
{
    static const char *const modes[] = { "enforce", "shadow" };

    FINALLY(memory_drop) char *yaml = malloc(BIG);
    for (int m = 0; m < 2; m++) {
        size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n");
        for (int i = 0; i < 64; i++)
            len += (size_t)snprintf(yaml + len, BIG - len,
                                    "- { name: r%d, key: \"{ip/24}\", limit: 5/60 }\n", i);
        for (int i = 0; i < 3; i++)
            len += (size_t)snprintf(
                yaml + len, BIG - len,
                "- { name: more%d, key: \"{account}:{org}\", limit: 5/60, mode: %s }\n", i,
                modes[m]);
        OWN(weir) *weir = engine_of(yaml);
        struct weir_ruling r = check(weir, "ip=192.0.2.1 account=ann org=acme", NOW);
        assert_fields(r, (applied, 64), (cut, true));
        for (int i = 0; i < 64; i++) {
            char name[16];
            snprintf(name, sizeof(name), "r%d", i);
            assert_int_equal(rule_left(weir, name, "ip=192.0.2.1", NOW), m == 0 ? 5 : 4);
        }
        assert_int_equal(pass_of(weir, 9, "ip=192.0.2.1 account=bob org=acme", NOW),
                         m == 0 ? 0 : 4);
    }
}

/* All 64 places taken, and nothing left out: what does not apply to the request is not missed. */
TEST(test_R2_64_limits_are_not_too_many)
{
    static const char *const others[] = { "key: \"{account}\", limit: 5/60",
                                          "limit: 5/60, mode: off",
                                          "match: { uri: /x }, limit: 5/60",
                                          "key: \"{account}\", limit: 5/60, mode: shadow" };

    FINALLY(memory_drop) char *yaml = malloc(BIG);
    for (size_t k = 0; k < COUNT_OF(others); k++) {
        size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n");
        for (int i = 0; i < 64; i++)
            len += (size_t)snprintf(yaml + len, BIG - len,
                                    "- { name: r%d, key: \"{ip}\", limit: 5/60 }\n", i);
        snprintf(yaml + len, BIG - len, "- { name: last, %s }\n", others[k]);
        OWN(weir) *weir = engine_of(yaml);
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_fields(r, (applied, 64), (cut, false));
    }
}

/* Rules that cannot decide (off, or without a key for this request) take no room from those that
 * can. */
TEST(test_R2_a_thousand_rules_match)
{
    FINALLY(memory_drop) char *yaml = malloc(BIG);
    for (int off = 0; off < 2; off++) {
        size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n");
        for (int i = 0; i < 1000; i++)
            len += (size_t)snprintf(yaml + len, BIG - len,
                                    "- { name: r%d, key: \"{%s}\", limit: 5/60%s }\n", i,
                                    off ? "ip" : "account", off ? ", mode: off" : "");
        snprintf(yaml + len, BIG - len, "- { name: last, key: \"{ip}\", limit: 1/60 }\n");
        OWN(weir) *weir = engine_of(yaml);
        assert_true(passes(weir, "ip=::1", NOW));
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_refused_by(r, "last");
    }
}

/* Rules that only watch take no room from those that enforce. */
TEST(test_R2_rules_in_shadow_leave_room)
{
    FINALLY(memory_drop) char *yaml = malloc(BIG);
    size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n");
    for (int i = 0; i < 64; i++)
        len += (size_t)snprintf(yaml + len, BIG - len,
                                "- { name: r%d, key: \"{ip}\", limit: 5/60, mode: shadow }\n", i);
    snprintf(yaml + len, BIG - len, "- { name: last, key: \"{ip}\", limit: 1/60 }\n");
    OWN(weir) *weir = engine_of(yaml);
    assert_true(passes(weir, "ip=::1", NOW));
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_refused_by(r, "last");
    assert_int_equal(r.applied, 64);
    assert_true(r.cut); /* the last in shadow was left out */
    assert_int_equal(rule_left(weir, "r62", "ip=::1", NOW), 4);
    assert_int_equal(rule_left(weir, "r63", "ip=::1", NOW), 5);
}

/* What the rules that enforce have left belongs to those in shadow, wherever in the file they
 * stand. */
TEST(test_R2_shadows_in_the_room_that_is_left)
{
    FINALLY(memory_drop) char *yaml = malloc(BIG);
    for (int first = 0; first < 2; first++) {
        const char *shadow = "- { name: shadow, key: \"{ip}\", limit: 5/60, mode: shadow }\n";
        size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n%s", first ? shadow : "");
        for (int i = 0; i < 63; i++)
            len += (size_t)snprintf(yaml + len, BIG - len,
                                    "- { name: r%d, key: \"{ip}\", limit: 5/60 }\n", i);
        snprintf(yaml + len, BIG - len, "%s", first ? "" : shadow);
        OWN(weir) *weir = engine_of(yaml);
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_fields(r, (applied, 64), (cut, false));
        assert_int_equal(rule_left(weir, "shadow", "ip=::1", NOW), 4);
    }
}
