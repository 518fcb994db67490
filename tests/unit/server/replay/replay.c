/* replay.c -- traffic through rule sets on virtual time: the numbers that a hand calculation
 * gives, for every account that is kept. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/replay/report.h"

OWNS(weir__replay)

#define START (1700000000 * S)

static struct weir_rules *rules_of(const char *text)
{
    struct weir_rules *rules = NULL;
    struct weir_error error;

    if (weir_rules_parse(&rules, text, strlen(text), NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return rules;
}

static struct weir__replay *replay_with(struct weir__replay_options options, const char *here,
                                        const char *there)
{
    struct weir__replay *replay = NULL;
    struct weir_error error;

    options.rules[0] = rules_of(here);
    options.rules[1] = there ? rules_of(there) : NULL;
    options.names[0] = "here.yaml";
    options.names[1] = "there.yaml";
    options.keys = options.keys ? options.keys : 1000;
    if (weir__replay_create(&replay, &options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return replay;
}

static struct weir__replay *replay_of(const char *rules)
{
    return replay_with((struct weir__replay_options){ .propose = -1 }, rules, NULL);
}

static void request(struct weir__replay *replay, const char *ip, const char *uri, weir_time at)
{
    struct weir__log_entry entry = {
        .at = at,
        .attrs = { { .name = "ip", .value = ip },
                   { .name = "uri", .value = uri },
                   { .name = "method", .value = "GET" } },
        .n = 3,
        .line = 1,
    };

    weir__replay_entry(replay, &entry);
}

static const struct weir__replay_rule *rule_of(const struct weir__rule_set *side, const char *name)
{
    for (size_t i = 0; i < side->n_rules; i++)
        if (strcmp(side->rules[i].name, name) == 0)
            return &side->rules[i];
    fail_msg("there is no rule %s", name);
    return NULL;
}

static int64_t total(const int64_t at[WEIR__REPLAY_BUCKETS])
{
    int64_t sum = 0;

    for (size_t i = 0; i < WEIR__REPLAY_BUCKETS; i++)
        sum += at[i];
    return sum;
}

#define RULE(name, more) "  - { name: " name ", key: \"{ip}\", " more " }\n"
#define RULES            "version: 1\nrules:\n"

/* -------------------------------------------------------------- one rule set ---- */

TEST(test_several_rules_count_what_they_apply_to)
{
    OWN(weir__replay) *replay = replay_of(RULES RULE("all", "limit: 100/1s") RULE(
        "login", "match: { uri: /login }, limit: 1/1h") RULE("off", "limit: 1/1h, mode: off"));
    for (int i = 0; i < 5; i++) {
        request(replay, "192.0.2.1", "/login", START);
        request(replay, "192.0.2.1", "/", START);
    }
    weir__replay_end(replay);
    const struct weir__rule_set *side = &replay->sides[0];
    assert_int_equal(side->refused, 4);
    assert_fields(*rule_of(side, "all"), (applied, 10), (refused, 0));
    assert_fields(*rule_of(side, "login"), (applied, 5), (refused, 4));
    assert_fields(*rule_of(side, "off"), (applied, 0), (mode, WEIR_OFF));
    assert_null(rule_of(side, "all")->trace);
    assert_int_equal(side->unmatched, 0);
}

/* ------------------------------------------------------------ modes and lists ---- */

#define TWO_SHADOWS                                                                         \
    RULES RULE("one", "limit: 2/1h, mode: shadow") RULE("two", "limit: 4/1h, mode: shadow") \
        RULE("hard", "limit: 100/1h")

TEST(test_R5_every_rule_in_shadow_is_counted)
{
    OWN(weir__replay) *replay = replay_of(TWO_SHADOWS);
    for (int i = 0; i < 10; i++)
        request(replay, "192.0.2.1", "/", START);
    weir__replay_end(replay);
    const struct weir__rule_set *side = &replay->sides[0];
    assert_fields(*side, (refused, 0), (would, 8));
    assert_int_equal(rule_of(side, "one")->would, 8);
    assert_int_equal(rule_of(side, "two")->would, 6);
    assert_int_equal(total(rule_of(side, "one")->trace->at), 8);
    assert_int_equal(total(rule_of(side, "two")->trace->at), 6);
    assert_int_equal(total(side->would_at), 8);
    assert_int_equal(weir__distinct_count(side->clients_would), 1);
    assert_int_equal(weir__distinct_count(side->clients), 0);
    assert_int_equal(rule_of(side, "one")->applied, 10);
}

TEST(test_R3_lists)
{
    OWN(weir__replay) *replay = replay_of(
        RULES RULE("a", "match: { uri: /a }, limit: 1/1h") "lists:\n  allow: { ip: [10.0.0.0/8] "
                                                           "}\n  deny: { ip: [192.0.2.66] }\n");
    struct weir__hitter top;
    for (int i = 0; i < 3; i++) {
        request(replay, "10.1.2.3", "/a", START);
        request(replay, "192.0.2.66", "/a", START);
        request(replay, "192.0.2.1", "/b", START);
    }
    weir__replay_end(replay);
    const struct weir__rule_set *side = &replay->sides[0];
    assert_fields(*side, (listed, 3), (reasons[WEIR_DENIED], 3), (refused, 3), (unmatched, 3));
    assert_int_equal(rule_of(side, "a")->applied, 0);
    assert_int_equal(weir__hitters_top(side->denied->top, &top, 1), 1);
    assert_string_equal(top.text, "192.0.2.66");
}

/* One of 8 passes; the third refusal bans for 10 s, so 3 are over the limit and 4 banned; after it
 * one passes no more (1/1h), and so on. */
TEST(test_R4_bans)
{
    OWN(weir__replay) *replay =
        replay_of(RULES RULE("a", "limit: 1/1h, ban: { refusals: 3/60s, for: 10s }"));
    for (int i = 0; i < 8; i++)
        request(replay, "192.0.2.1", "/", START);
    weir__replay_end(replay);
    const struct weir__replay_rule *rule = rule_of(&replay->sides[0], "a");
    assert_fields(*rule, (bans, 1), (banned, 4), (refused, 7), (applied, 8));
    assert_fields(*replay, (sides[0].reasons[WEIR_BANNED], 4), (sides[0].reasons[WEIR_LIMITED], 3));
}

/* ---------------------------------------------------------------------- time ---- */

TEST(test_time_never_goes_back)
{
    OWN(weir__replay) *replay = replay_of(RULES RULE("a", "limit: 1/1s, algorithm: fixed-window"));
    request(replay, "192.0.2.1", "/", START + 10 * S);
    request(replay, "192.0.2.1", "/", START + 9 * S); /* a second: nothing to mention */
    request(replay, "192.0.2.1", "/", START + 5 * S);
    request(replay, "192.0.2.1", "/", START + 9 * S - 1);
    request(replay, "192.0.2.1", "/", START + 11 * S);
    weir__replay_end(replay);
    assert_fields(*replay, (late, 2), (late_most, 5 * S), (sides[0].refused, 3),
                  (first, START + 5 * S), (last, START + 11 * S), (at[0], 4));
}

TEST(test_buckets_grow_wider_and_lose_nothing)
{
    for (weir_time step = S / 3; step < 100000000 * S; step = step * 7 + 1) {
        OWN(weir__replay) *replay = replay_of(RULES RULE("a", "limit: 1/1w"));
        for (int i = 0; i < 700 && START + i * step < 9000000000 * S; i++) {
            request(replay, "192.0.2.1", "/", START + i * step);
            assert_in_range(replay->buckets, 1, WEIR__REPLAY_BUCKETS);
            assert_true(replay->from % replay->width == 0 && replay->from <= START &&
                        replay->from > START - replay->width);
        }
        weir__replay_end(replay);
        assert_int_equal(total(replay->at), replay->requests);
        assert_int_equal(total(replay->sides[0].refused_at), replay->sides[0].refused);
        if (replay->sides[0].refused > 0)
            assert_int_equal(total(replay->sides[0].rules[0].trace->at), replay->sides[0].refused);
        for (size_t i = replay->buckets; i < WEIR__REPLAY_BUCKETS; i++)
            assert_int_equal(replay->at[i], 0);
    }
}

TEST(test_who_asks_may_be_unknown)
{
    OWN(weir__replay) *replay =
        replay_with((struct weir__replay_options){ .propose = -1, .client = "user" },
                    RULES RULE("a", "limit: 1/1h"), NULL);
    for (int i = 0; i < 3; i++)
        request(replay, "192.0.2.1", "/", START);
    weir__replay_end(replay);
    assert_fields(*replay, (nobody, 3), (sides[0].refused, 2));
    assert_int_equal(weir__distinct_count(replay->sides[0].clients), 0);
}

TEST(test_waits_are_counted)
{
    OWN(weir__replay) *replay =
        replay_with((struct weir__replay_options){ .propose = -1, .wait_max = 10 * S },
                    RULES RULE("a", "limit: 1/1s queue 2, algorithm: leaky-bucket"), NULL);
    for (int i = 0; i < 5; i++)
        request(replay, "192.0.2.1", "/", START);
    weir__replay_end(replay);
    assert_fields(replay->sides[0], (waited, 2), (wait_most, 2 * S), (refused, 2));
}

TEST(test_a_table_too_small_is_noticed)
{
    OWN(weir__replay) *replay =
        replay_with((struct weir__replay_options){ .propose = -1, .keys = 100 },
                    RULES RULE("a", "limit: 1/1h"), NULL);
    char ip[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(ip, sizeof(ip), "10.0.%d.%d", i / 256, i % 256);
        request(replay, ip, "/", START);
    }
    weir__replay_end(replay);
    assert_true(replay->sides[0].evicted_early > 0);
}

TEST(test_rules_beyond_the_traces_are_still_counted)
{
    enum { N = WEIR__REPLAY_TRACES + 6 };
    char text[N * 80 + 64], uri[16];
    size_t len = (size_t)snprintf(text, sizeof(text), RULES);
    for (int i = 0; i < N; i++)
        len += (size_t)snprintf(
            text + len, sizeof(text) - len,
            "  - { name: r%d, key: \"{ip}\", match: { uri: /%d }, limit: 1/1h }\n", i, i);
    OWN(weir__replay) *replay = replay_of(text);
    for (int i = 0; i < 3 * N; i++) {
        snprintf(uri, sizeof(uri), "/%d", i % N);
        request(replay, "192.0.2.1", uri, START);
    }
    weir__replay_end(replay);
    struct weir__series series[WEIR__SERIES];
    size_t n = weir__report_series(replay, 0, series);
    assert_fields(replay->sides[0], (refused, 2 * N), (untraced, 12));
    assert_int_equal(replay->sides[0].rules[N - 1].refused, 2);
    assert_null(replay->sides[0].rules[N - 1].trace);
    assert_int_equal(n, WEIR__SERIES);
    assert_string_equal(series[n - 1].name, "other rules");
    assert_int_equal(series[n - 1].total, 2 * N - 2 * (WEIR__SERIES - 1));
    assert_int_equal(total(series[n - 1].at), series[n - 1].total);
}

/* ------------------------------------------------------------- two rule sets ---- */

TEST(test_differences_by_hand)
{
    OWN(weir__replay) *replay = replay_with(
        (struct weir__replay_options){ .propose = -1, .listed = 3 }, RULES RULE("a", "limit: 2/1h"),
        RULES RULE("b", "limit: 4/1h") RULE("c", "match: { uri: /x }, limit: 1/1h"));
    for (int i = 0; i < 6; i++)
        request(replay, "192.0.2.1", "/", START + i); /* here 2 pass, there 4 */
    for (int i = 0; i < 2; i++)
        request(replay, "192.0.2.2", "/x", START + S + i); /* here both, there 1 */
    weir__replay_end(replay);
    assert_fields(*replay, (sides[0].refused, 4), (sides[1].refused, 3), (differ, 3), (only[0], 2),
                  (only[1], 1), (other_rule, 2), (n_pairs, 2), (pairs[0].rule[0], 0),
                  (pairs[0].rule[1], WEIR__REPLAY_PASSED), (pairs[0].requests, 2),
                  (pairs[1].rule[1], 1), (n_differences, 3));
    assert_int_equal(replay->differences[2].at, START + S + 1);
    assert_string_equal(replay->differences[2].client, "192.0.2.2");
    assert_string_equal(replay->differences[2].uri, "/x");
    assert_string_equal(replay->differences[2].method, "GET");
}

TEST(test_a_rule_has_one_colour_on_both_sides)
{
    OWN(weir__replay) *replay =
        replay_with((struct weir__replay_options){ .propose = -1 },
                    RULES RULE("a", "match: { uri: /a }, limit: 1/1h") RULE("b", "limit: 2/1h"),
                    RULES RULE("c", "match: { uri: /c }, limit: 1/1h")
                        RULE("b", "match: { uri: /b }, limit: 2/1h"));
    struct weir__series here[WEIR__SERIES], there[WEIR__SERIES];
    for (int i = 0; i < 30; i++)
        request(replay, "192.0.2.1", i % 3 == 0 ? "/a" : i % 3 == 1 ? "/b" : "/c", START);
    weir__replay_end(replay);
    assert_int_equal(weir__report_series(replay, 0, here), 2);
    assert_int_equal(weir__report_series(replay, 1, there), 2);
    assert_string_equal(here[0].name, "b");
    assert_int_equal(here[0].colour, 0);
    assert_string_equal(there[0].name, "c");
    assert_int_equal(there[0].colour, 1);
    assert_string_equal(there[1].name, "b");
    assert_int_equal(there[1].colour, 0);
}

TEST(test_proposals_by_hand)
{
    OWN(weir__replay) *replay = replay_with(
        (struct weir__replay_options){ .propose = 100000 },
        RULES RULE(
            "a", "limit: 4/1s, algorithm: fixed-window") "lists:\n  allow: { ip: [192.0.2.10] }\n",
        NULL);
    struct weir__proposal p;
    char ip[32];
    do
        for (int key = 1; key <= 11;
             key++) /* number 10 is on the list: of the other 10, one may be refused */
            for (int i = 0; i < (key == 10 ? 1000 : key); i++) {
                snprintf(ip, sizeof(ip), "192.0.2.%d", key);
                request(replay, ip, "/", START);
            }
    while (weir__replay_end(replay));
    assert_int_equal(weir__propose_limits(replay->propose), 1);
    weir__propose_get(replay->propose, 0, &p);
    assert_fields(p, (keys, 10), (limit.count, 9), (keys_written, 6), (keys_proposed, 1));
    assert_fields(*replay, (requests, 1056), (sides[0].refused, 1 + 2 + 3 + 4 + 5 + 7));
}

/* ------------------------------------------------------- what the log has not ---- */

TEST(test_missing_attributes_are_named)
{
    OWN(weir__replay) *replay =
        replay_of("version: 1\nlists: { deny: { asn: [\"1\"] }, unused: { colour: [red] } }\n"
                  "rules:\n"
                  "  - { name: a, key: \"{account}:{ip}\", limit: 5/1s }\n"
                  "  - { name: b, match: { account: x, uri: /x }, limit: 5/1s }\n"
                  "  - { name: c, not: { header.X: y }, cost: \"{bytes}\", limit: 5/1s }\n");
    const char *name;
    char who[64], all[256] = "";
    size_t at = 0;
    request(replay, "192.0.2.1", "/x", START);
    weir__replay_end(replay);
    while (weir__rule_set_missing(&replay->sides[0], &at, &name, who, sizeof(who))) {
        size_t len = strlen(all);
        snprintf(all + len, sizeof(all) - len, "%s: %s; ", name, who);
    }
    assert_non_null(strstr(all, "account: rules a, b; "));
    assert_non_null(strstr(all, "asn: deny list; "));
    assert_non_null(strstr(all, "header.x: rule c; "));
    assert_non_null(strstr(all, "bytes: rule c; "));
    assert_null(strstr(all, "ip:"));
    assert_null(strstr(all, "uri:"));
    assert_null(strstr(all, "colour:"));
    at = 0;
    assert_true(
        weir__rule_set_missing(&replay->sides[0], &at, &name, who, 6)); /* cut, not overrun */
    assert_true(strlen(who) < 6);
}

TEST(test_rules_that_applied_to_nothing_are_named)
{
    OWN(weir__replay) *replay =
        replay_of("version: 1\nrules:\n"
                  "  - { name: met, match: { uri: /x }, limit: 5/1s }\n"
                  "  - { name: path, match: { uri: /login }, limit: 5/1s }\n"
                  "  - { name: loose, match: { uri: /Y }, paths: loose, limit: 5/1s }\n"
                  "  - { name: no-account, key: \"{account}\", limit: 5/1s }\n"
                  "  - { name: no-plan, match: { plan: x }, limit: 5/1s }\n"
                  "  - { name: beside, match: { uri: /z }, not: { plan: x },\n"
                  "      key: \"{account|nobody}\", limit: 5/1s }\n"
                  "  - { name: idle, match: { uri: /login }, limit: 5/1s, mode: off }\n");
    char who[64];
    request(replay, "192.0.2.1", "/x", START);
    weir__replay_end(replay);
    weir__rule_set_unmet(&replay->sides[0], who, sizeof(who));
    assert_string_equal(who, "rules path, loose, beside");
}
