/* admin-explain-reset.c -- explain and reset. */
#include "unit/test.h"

#include "unit/operator.h"

TEST_WITH(test_S6_reset, start, stop)
{
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7 uri=/net", NOW), 2);
    good("WEIR.RESET per-ip ip 192.0.2.7 uri /net");
    answers("rule", "per-ip", "reset", "1");
    told(WEIR__EVENT_RESET, "rule", "per-ip");
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7 uri=/net", NOW),
                     2); /* of `nets` 1 is left */
    good("WEIR.RESET * ip 192.0.2.7 uri /net");
    answers("rule", "null");
    assert_int_equal(rule_left(server.engine, "per-ip", "ip=192.0.2.7 uri=/net", NOW), 2);
    assert_int_equal(rule_left(server.engine, "nets", "ip=192.0.2.7 uri=/net", NOW), 5);
    good("WEIR.BAN per-ip 192.0.2.7 1h");
    good("WEIR.RESET per-ip ip 192.0.2.7");
    told(WEIR__EVENT_UNBAN, "key", "192.0.2.7");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW)); /* the ban is gone too */
    good("WEIR.RESET login ip 192.0.2.7");                   /* which does not apply */
    answers("reset", "0");
    bad("WEIR.RESET per-pi ip 192.0.2.7", 404, "did you mean 'per-ip'?");
    bad("WEIR.RESET per-ip ip", 400, "has no value");
}

/* A ban may be of a rule that applies to other requests of the same key: it stays, and the
 * operator has to know. */
TEST_WITH(test_S6_reset_names_the_bans_that_stay, start, stop)
{
    good("WEIR.BAN login ann 1h");
    good("WEIR.RESET * ip 192.0.2.7 account ann");
    answers("reset", "1", "rules.0", "per-ip", "still_banned.0", "login");
    answers_not("rules.1");
    answers_not("still_banned.1");
    good("WEIR.RESET * account ann");
    answers("reset", "0", "still_banned.0", "login");
    answers_not("rules.0");
    good("WEIR.RESET per-ip ip 192.0.2.7 account ann"); /* only that rule is meant */
    answers("rules.0", "per-ip");
    answers_not("still_banned.0");
    good("WEIR.RESET * account bob");
    answers_not("still_banned.0");
    good("WEIR.RESET * account ann uri /login");
    answers("reset", "1", "rules.0", "login");
    answers_not("still_banned.0");
}

#define LONG_NAME "a-name-of-more-than-63-bytes-a-name-of-more-than-63-bytes-a-name-of-m"

TEST_WITH(test_S6_explain, start, stop)
{
    char line[1024] = "WEIR.EXPLAIN";

    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7", NOW), 2);
    good("WEIR.EXPLAIN ip 192.0.2.7 uri /other url /x account _");
    answers("rules.0.rule", "per-ip", "rules.0.why", "applies", "rules.0.key", "192.0.2.7",
            "rules.0.refuses", "true", "rules.0.limits.0.remaining", "0", "rules.1.why",
            "unmatched", "rules.1.attribute", "uri", "ruling.allowed", "false", "ruling.rule",
            "per-ip", "unused.0", "url");
    answers_not("unused.1");
    good("WEIR.EXPLAIN tenant _ " LONG_NAME " x"); /* neither can count for anything */
    answers("unused.0", "tenant", "unused.1", LONG_NAME);
    good("WEIR.EXPLAIN ip 10.1.1.1");
    answers("ruling.list", "allow", "rules.0.asked", "false");
    good("WEIR.EXPLAIN"); /* a request of which nothing is known */
    answers("rules.0.why", "no-key");
    for (int i = 0; i < 65; i++)
        strcat(line, " ip 10.1.1.1");
    bad(line, 400, "more than 64 attributes");
}

GROUP(make_folder, free_answer)
