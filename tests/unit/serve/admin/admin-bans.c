/* admin-bans.c -- bans by hand. */
#include "unit/test.h"

#include "unit/operator.h"

TEST_WITH(test_R4_ban_and_unban, start, stop)
{
    good("WEIR.BANS");
    answers_not("bans.0.rule");
    good("WEIR.BAN per-ip 192.0.2.7 10m");
    answers("rule", "per-ip", "key", "192.0.2.7", "since", "1970-01-01T00:16:40.000Z", "until",
            "1970-01-01T00:26:40.000Z", "left_ms", "600000", "strikes", "1");
    told(WEIR__EVENT_BAN, "key", "192.0.2.7");
    told(WEIR__EVENT_BAN, "until", "1970-01-01T00:26:40.000Z");
    assert_false(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.BAN per-ip 192.0.2.7 20m"); /* another end */
    answers("until", "1970-01-01T00:36:40.000Z");
    good("WEIR.BANS per-ip");
    answers("bans.0.key", "192.0.2.7", "bans.0.left_ms", "1200000");
    answers_not("bans.1.key");
    good("WEIR.BANS login");
    answers_not("bans.0.key");
    good("WEIR.UNBAN per-ip 192.0.2.7");
    answers("rule", "per-ip", "banned", "false");
    told(WEIR__EVENT_UNBAN, "key", "192.0.2.7");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW));
    bad("WEIR.UNBAN per-ip 192.0.2.7", 404, "rule 'per-ip' has not banned '192.0.2.7'");
}

/* The answer has the key as the rule makes it, and the listings show it. */
TEST_WITH(test_R4_ban_of_a_network, start, stop)
{
    good("WEIR.BAN nets 198.51.100.7 1h");
    answers("key", "198.51.100.0/24");
    told(WEIR__EVENT_BAN, "key", "198.51.100.0/24");
    assert_false(passes(server.engine, "ip=198.51.100.99 uri=/net", NOW));
    good("WEIR.BAN nets 203.0.113.99 1h"); /* of the same moment: it is not mistaken for the one
                                              above */
    answers("key", "203.0.113.0/24");
    good("WEIR.BAN nets 198.51.100.8 1h");
    answers("key", "198.51.100.0/24");
    good("WEIR.BAN per-ip 2001:DB8:0::7 1h");
    answers("key", "2001:db8::/64");
    good("WEIR.BAN login _ 1h"); /* an empty account is a key like any other */
    good("WEIR.UNBAN nets 198.51.100.200");
    answers("key", "198.51.100.0/24");
    told(WEIR__EVENT_UNBAN, "key", "198.51.100.0/24");
    assert_true(passes(server.engine, "ip=198.51.100.99 uri=/net", NOW));
}

/* A long one is listed by its beginning and its hash; that is how it is answered. */
TEST_WITH(test_R4_ban_of_a_long_key, start, stop)
{
    char line[600] = "WEIR.BAN login ";

    memset(line + strlen(line), 'a', 400);
    strcat(line, " 1h");
    good(line);
    const char *key = value_in(answered.bytes, answered.len, "key");
    assert_true(key != NULL && strlen(key) < 160 && strncmp(key, "aaaa", 4) == 0 &&
                strstr(key, "...") != NULL);
}

TEST_WITH(test_R4_wrong_bans, start, stop)
{
    const struct weir__verb *ban = weir__verb_by_command("WEIR.BAN", 8);
    struct weir__text words[] = { { "per-ip", 6 }, { "192.0.2.7\0x", 11 }, { "10m", 3 } };

    bad("WEIR.BAN per-pi 192.0.2.7 10m", 404, "there is no rule 'per-pi'; did you mean 'per-ip'?");
    bad("WEIR.BAN quite-another 192.0.2.7 10m", 404,
        "there is no rule 'quite-another'; known are per-ip, ");
    bad("WEIR.BANS per-pi", 404, "did you mean 'per-ip'?");
    bad("WEIR.UNBAN per-pi 192.0.2.7", 404, "did you mean 'per-ip'?");
    bad("WEIR.BAN per-ip nobody 10m", 400, "address");
    bad("WEIR.BAN nets 198.51.0.0/16 10m", 400, "/24");
    bad("WEIR.BAN per-ip 192.0.2.7 soon", 400, "for: ");
    bad("WEIR.BAN per-ip 192.0.2.7 0s", 400, "10m, 1h, or 90 for seconds");
    bad("WEIR.BAN per-ip 192.0.2.7 9223372036s", 400, "too long");
    assert_int_equal(run_spans(ban, words, 3), 400);
    assert_contains(last.message, "NUL");
    good("WEIR.BANS");
    answers_not("bans.0.key");
}

/* When their rule is gone they are listed and lifted as before. */
TEST_WITH(test_R4_bans_outlive_their_rule, start, stop)
{
    good("WEIR.BAN login ann 10m");
    assert_int_equal(run_text("WEIR.RULES.SET", one_rule, strlen(one_rule)), 200);
    good("WEIR.BANS login");
    answers("bans.0.key", "ann");
    good("WEIR.UNBAN login ann");
    told(WEIR__EVENT_UNBAN, "key", "ann");
    bad("WEIR.BANS login", 404, "no rule 'login'");
}

GROUP(make_folder, free_answer)
