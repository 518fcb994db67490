/* operator-bans.c -- bans, by refusals and by hand. */
#include "unit/test.h"

#include "unit/requests.h"

#define TEN_MINUTES (600 * S)

static void ban(struct weir *weir, const char *rule, const char *key, weir_time now,
                weir_time until)
{
    struct weir_error error = { 0 };

    if (weir_ban_set(weir, rule, key, now, until, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

#define BANNING(more)                                                                          \
    RULES("- { name: login, key: \"{ip}\", limit: 2/60, ban: { refusals: 3/60s, for: 10m" more \
          " } }\n"                                                                             \
          "- { name: other, key: \"{ip}\", limit: 1000/60 }\n")

TEST(test_R4_the_nth_refusal_bans)
{
    struct weir *weir = engine_of(BANNING(""));

    assert_int_equal(pass_of(weir, 2, "ip=::1", NOW), 2);
    for (int i = 1; i <= 3; i++) {
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_refused_by(r, "login");
        assert_int_equal(r.decision.reason, WEIR_LIMITED);
        assert_int_equal(r.banned_until,
                         i < 3 ? 0 : NOW + TEN_MINUTES); /* the one that makes the ban says so */
    }
    struct weir_ruling r = check(weir, "ip=::1", NOW + 7);
    assert_refused_by(r, "login");
    assert_int_equal(r.decision.reason, WEIR_BANNED);
    assert_int_equal(r.decision.retry, TEN_MINUTES - 7);
    assert_int_equal(r.banned_until, NOW + TEN_MINUTES);
    assert_int_equal(r.level, 3);
    assert_true(passes(weir, "ip=2::", NOW));
    assert_int_equal(rule_left(weir, "other", "ip=::1", NOW), 998);
    r = check(weir, "ip=::1", NOW + TEN_MINUTES - 1); /* until exactly */
    assert_int_equal(r.decision.reason, WEIR_BANNED);
    assert_int_equal(r.decision.retry, 1);
    assert_true(passes(weir, "ip=::1", NOW + TEN_MINUTES));
    struct weir_rule_info info = info_of(weir, "login");
    assert_int_equal(info.refused, 5); /* the banned among them */
    assert_int_equal(info.banned, 2);
    weir_destroy(weir);
}

/* "No" says until when: the refusal that makes the ban too. */
TEST(test_R4_retry_of_the_refusal_that_bans)
{
    struct weir *weir = engine_of(BANNING(""));

    pass_of(weir, 4, "ip=::1", NOW);
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_int_equal(r.banned_until, NOW + TEN_MINUTES);
    assert_int_equal(r.decision.retry, TEN_MINUTES);
    weir_destroy(weir);
}

TEST(test_R4_refusals_far_apart_do_not_ban)
{
    struct weir *weir = engine_of(BANNING(""));

    pass_of(weir, 4, "ip=::1", NOW); /* two refusals */
    weir_time later = NOW + 120 * S;
    pass_of(weir, 4, "ip=::1", later);
    struct weir_ruling r = check(weir, "ip=::1", later);
    assert_int_equal(r.banned_until, later + TEN_MINUTES); /* the third of these, not of those */
    weir_destroy(weir);
}

TEST(test_R4_a_peek_never_counts)
{
    struct weir *weir = engine_of(BANNING(""));

    pass_of(weir, 4, "ip=::1", NOW);
    for (int i = 0; i < 20; i++)
        assert_int_equal(check_cost(weir, "ip=::1", 0, NOW).banned_until, 0);
    (void)explained(weir, "login", "ip=::1", NOW);
    assert_int_equal(check(weir, "ip=::1", NOW).banned_until, NOW + TEN_MINUTES);
    assert_int_equal(check_cost(weir, "ip=::1", 0, NOW).decision.reason,
                     WEIR_BANNED); /* but tells the ban */
    struct weir_ask later = { .cost = 1, .wait_max = 3600 * S, .now = NOW };
    for (int i = 0; i < 4; i++) /* two of them promises: even nothing is refused now */
        assert_true(check_attrs(weir, request_of("ip=2::").attrs, 1, &later).decision.allowed);
    for (int i = 0; i < 20; i++) {
        struct weir_ruling r = check_cost(weir, "ip=2::", 0, NOW);
        assert_fields(r, (decision.allowed, false), (banned_until, 0));
    }
    weir_destroy(weir);
}

/* A negative cost is the caller's mistake, not a refusal of a client's request. */
TEST(test_R4_a_mistake_never_counts)
{
    struct weir *weir = engine_of(BANNING(""));

    for (int i = 0; i < 9; i++)
        assert_int_equal(check_cost(weir, "ip=::1", -1, NOW).decision.reason, WEIR_BAD_ASK);
    assert_true(passes(weir, "ip=::1", NOW));
    weir_destroy(weir);
}

/* Only the rule that refuses counts. */
TEST(test_R4_others_refusals_do_not_count)
{
    struct weir *weir = engine_of(RULES(
        "- { name: first, limit: 1/60 }\n"
        "- { name: banning, key: \"{ip}\", limit: 100/60, ban: { refusals: 2/60s, for: 1h } }\n"));

    for (int i = 0; i < 20; i++)
        assert_int_equal(check(weir, "ip=::1", NOW).banned_until, 0);
    weir_destroy(weir);
}

static weir_time refuse_until_banned(struct weir *weir, const char *request, weir_time now)
{
    for (int i = 0; i < 5; i++) {
        weir_time until = check(weir, request, now).banned_until;
        if (until != 0) {
            assert_int_equal(i, 4); /* two pass, three are refused: the count has begun anew */
            return until - now;
        }
    }
    fail_msg("no ban");
    return 0;
}

TEST(test_R4_escalation)
{
    static const weir_time lengths[] = { 600, 1800, 5400, 7200, 7200 };
    weir_time now = NOW;
    struct weir *weir = engine_of(BANNING(", escalate: 3, longest: 2h, forget: 1h"));

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        weir_time length = refuse_until_banned(weir, "ip=::1", now);
        assert_int_equal(length, lengths[i] * S);
        now += length + 60 * S;
    }
    now += 3600 * S; /* forgotten */
    assert_int_equal(refuse_until_banned(weir, "ip=::1", now), TEN_MINUTES);
    weir_destroy(weir);
}

struct bans {
    struct weir_ban ban[8];
    size_t n;
};

static struct bans bans_of(struct weir *weir, weir_time now)
{
    struct bans bans = { .n = 0 };

    for (int64_t at = 0;
         bans.n < COUNT_OF(bans.ban) && weir_ban_next(weir, now, &at, &bans.ban[bans.n]);)
        bans.n++;
    return bans;
}

TEST(test_R4_listed_and_lifted)
{
    struct weir *weir = engine_of(BANNING(""));

    assert_int_equal(bans_of(weir, NOW).n, 0);
    pass_of(weir, 5, "ip=2001:DB8::0:1", NOW);
    struct bans bans = bans_of(weir, NOW + 1);
    assert_int_equal(bans.n, 1);
    assert_string_equal(bans.ban[0].rule, "login");
    assert_string_equal(bans.ban[0].key, "2001:db8::/64");
    assert_int_equal(bans.ban[0].since, NOW);
    assert_int_equal(bans.ban[0].until, NOW + TEN_MINUTES);
    assert_int_equal(bans.ban[0].strikes, 1);
    assert_int_equal(bans_of(weir, NOW + TEN_MINUTES).n, 0);
    assert_false(weir_ban_lift(weir, "login", "2001:db8:0:2::1", NOW + 1));
    assert_false(weir_ban_lift(weir, "other", "2001:db8::1", NOW + 1));
    assert_true(weir_ban_lift(weir, "login", "2001:db8::1", NOW + 1));
    assert_false(weir_ban_lift(weir, "login", "2001:db8::1", NOW + 1));
    assert_int_equal(bans_of(weir, NOW + 1).n, 0);
    assert_int_equal(check(weir, "ip=2001:db8::1", NOW + 1).decision.reason, WEIR_LIMITED);
    weir_destroy(weir);
}

TEST(test_R4_after_a_lift_the_count_begins_anew)
{
    struct weir *weir = engine_of(BANNING(""));

    pass_of(weir, 5, "ip=::1", NOW);
    assert_true(weir_ban_lift(weir, "login", "::1", NOW));
    assert_int_equal(check(weir, "ip=::1", NOW).banned_until, 0);
    assert_int_equal(check(weir, "ip=::1", NOW).banned_until, 0);
    assert_int_equal(check(weir, "ip=::1", NOW).banned_until, NOW + TEN_MINUTES);
    ban(weir, "login", "3::", NOW, NOW + S);
    pass_of(weir, 4,
            "ip=3::", NOW + S); /* two refusals, and then the ban that has gone is lifted */
    weir_ban_lift(weir, "login", "3::", NOW + S);
    assert_int_equal(check(weir, "ip=3::", NOW + S).banned_until, 0);
    pass_of(weir, 4, "ip=4::", NOW);
    use(weir, RULES("- { name: other, limit: 9/60 }\n"), NOW); /* without the rule, too */
    weir_ban_lift(weir, "login", "4::/64", NOW);               /* as it was listed */
    use(weir, BANNING(""), NOW);
    assert_int_equal(check(weir, "ip=4::", NOW).banned_until, 0);
    weir_destroy(weir);
}

TEST(test_R4_by_hand)
{
    struct weir_error error = { 0 };
    struct weir *weir = engine_of(BANNING("")); /* `other` has no ban of its own */

    ban(weir, "other", "192.0.2.7", NOW, NOW + 5 * S);
    struct weir_ruling r = check(weir, "ip=::ffff:192.0.2.7", NOW);
    assert_refused_by(r, "other");
    assert_int_equal(r.decision.reason, WEIR_BANNED);
    assert_int_equal(r.decision.retry, 5 * S);
    assert_int_equal(rule_left(weir, "login", "ip=192.0.2.7", NOW), 2);
    assert_true(passes(weir, "ip=192.0.2.7", NOW + 5 * S));
    ban(weir, "other", "192.0.2.7", NOW, WEIR_FOREVER);
    assert_int_equal(check(weir, "ip=192.0.2.7", NOW + 1000000 * S).decision.reason, WEIR_BANNED);
    assert_true(weir_ban_lift(weir, "other", "192.0.2.7", NOW));
    assert_int_equal(weir_ban_set(weir, "othre", "k", NOW, NOW + 1, &error), WEIR_INVALID);
    assert_contains(error.text, "othre");
    assert_int_equal(weir_ban_set(weir, "other", "k", NOW, NOW, &error), WEIR_INVALID);
    assert_int_equal(bans_of(weir, NOW).n, 0);
    weir_destroy(weir);
}

/* An address, however it is written, for rules whose key is one; and a network where the key is
 * one. */
TEST(test_R4_any_spelling_of_an_address)
{
    static const struct {
        const char *template, *spelling, *request;
    } cases[] = {
        { "{ip}", "192.0.2.7", "ip=::ffff:192.0.2.7" },
        { "{ip}", "::ffff:192.0.2.7", "ip=192.0.2.7" },
        { "{ip}", "2001:0DB8:0:0::1", "ip=2001:db8::1" },
        { "{ip}", "[2001:db8::1]", "ip=2001:db8::1" },
        { "{ip}", "192.0.2.7/32", "ip=192.0.2.7" },
        { "{ip}", "2001:db8::2", "ip=2001:db8::1" }, /* of the same /64 */
        { "{ip/32/128}", "2001:db8::1", "ip=[2001:db8::1]:80" },
        { "{ip}", "?not-an-address", "ip=unix:" },
        { "{ip|nobody}", "?nobody", "" },
        { "{ip/24}", "192.0.2.0/24", "ip=192.0.2.7" },
        { "{ip/24}", "::ffff:192.0.2.0/120", "ip=192.0.2.7" },
        { "{ip/24}", "192.0.2.7", "ip=192.0.2.8" }, /* an address stands for its network */
        { "{ip/24}", "2001:DB8:0::/64", "ip=2001:db8::7" },
        { "{ip/24/48}", "2001:db8:1:2::3", "ip=2001:db8:1::9" },
        { "{account}", "2001:DB8::1", "account=2001:DB8::1" }, /* no address: as it is */
        { "<{ip}>", "<192.0.2.7>", "ip=192.0.2.7" },
        { "{ip}:{account}", "192.0.2.7:ann", "ip=192.0.2.7 account=ann" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), RULES("- { name: r, key: \"%s\", limit: 9/60 }\n"),
                 cases[i].template);
        struct weir *weir = engine_of(yaml);
        ban(weir, "r", cases[i].spelling, NOW, NOW + S);
        if (check(weir, cases[i].request, NOW).decision.reason != WEIR_BANNED)
            fail_msg("%s: a ban of %s is none of %s", cases[i].template, cases[i].spelling,
                     cases[i].request);
        assert_string_equal(explained(weir, "r", cases[i].request, NOW).key,
                            bans_of(weir, NOW).ban[0].key);
        assert_true(weir_ban_lift(weir, "r", cases[i].spelling, NOW));
        assert_true(passes(weir, cases[i].request, NOW));
        weir_destroy(weir);
    }
}

/* A ban is one of a key: what is none of the rule's is refused, not taken for nothing. */
TEST(test_R4_what_is_no_key_of_the_rule)
{
    static const char *const cases[][2] = {
        { "{ip}", "10.0.0.0/8" }, { "{ip/24}", "10.0.0.0/8" },   { "{ip/24}", "2001:db8::/32" },
        { "{ip}", "unix:" },      { "{ip|nobody}", "nobody" },   { "{ip|nobody}", "anybody" },
        { "{ip}", "" },           { "{ip/24}", "10.0.0.0/024" }, { "{ip}", "10.0.0.256" }
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), RULES("- { name: r, key: \"%s\", limit: 9/60 }\n"),
                 cases[i][0]);
        struct weir *weir = engine_of(yaml);
        struct weir_error error = { 0 };
        if (weir_ban_set(weir, "r", cases[i][1], NOW, NOW + S, &error) == WEIR_OK)
            fail_msg("%s: a ban of %s is nobody's, and nobody is told", cases[i][0], cases[i][1]);
        assert_true(error.text[0] != '\0');
        assert_int_equal(bans_of(weir, NOW).n, 0);
        weir_destroy(weir);
    }
}

/* "Bans stay": so one made under another key of the rule is lifted as it is listed, too. */
TEST(test_R4_a_ban_is_lifted_as_it_is_listed)
{
    static const char *const templates[] = { "{ip}",      "{ip/24}",        "{ip/8}",
                                             "{account}", "{ip}:{account}", "<{ip}>" };

    for (size_t from = 0; from < COUNT_OF(templates); from++)
        for (size_t to = 0; to < COUNT_OF(templates); to++) {
            char yaml[200];
            snprintf(yaml, sizeof(yaml),
                     RULES("- { name: r, key: \"%s\", limit: 1/60, ban: { refusals: 1/60s, for: "
                           "10m } }\n"),
                     templates[from]);
            struct weir *weir = engine_of(yaml);
            pass_of(weir, 2, "ip=192.0.2.7 account=10.0.0.1", NOW);
            snprintf(yaml, sizeof(yaml), RULES("- { name: r, key: \"%s\", limit: 1/60 }\n"),
                     templates[to]);
            use(weir, yaml, NOW);
            struct bans bans = bans_of(weir, NOW);
            assert_int_equal(bans.n, 1);
            if (!weir_ban_lift(weir, "r", bans.ban[0].key, NOW))
                fail_msg("%s, of %s, cannot be lifted when the key is %s", bans.ban[0].key,
                         templates[from], templates[to]);
            weir_destroy(weir);
        }
}

/* A key as the list of bans and explain show it is what goes in by hand; one that is too long for
 * that is told apart all the same. */
TEST(test_R4_long_keys)
{
    char value[3001], other[3001], request[3100];
    struct weir *weir = engine_of(RULES("- { name: r, key: \"{header.x-api-key}\", limit: 1/60, "
                                        "ban: { refusals: 2/60s, for: 10m } }\n"));

    memset(value, 'k', 3000);
    value[3000] = '\0';
    memcpy(other, value, sizeof(other));
    other[2999] = 'x';
    snprintf(request, sizeof(request), "header.x-api-key=%s", value);
    assert_int_equal(pass_of(weir, 3, request, NOW), 1);
    assert_int_equal(check(weir, request, NOW).decision.reason, WEIR_BANNED);
    struct bans bans = bans_of(weir, NOW);
    assert_int_equal(bans.n, 1);
    assert_int_equal(strlen(bans.ban[0].key), 159);
    assert_memory_equal(bans.ban[0].key + 124, "...", 3);
    assert_int_equal(strspn(bans.ban[0].key + 127, "0123456789abcdef"), 32);
    assert_string_equal(explained(weir, "r", request, NOW).key, bans.ban[0].key);
    snprintf(request, sizeof(request), "header.x-api-key=%s", other);
    assert_true(passes(weir, request, NOW)); /* another key */
    assert_true(weir_ban_lift(weir, "r", value, NOW));
    ban(weir, "r", other, NOW, NOW + S);
    assert_int_equal(check(weir, request, NOW).decision.reason, WEIR_BANNED);
    bans = bans_of(weir, NOW);
    assert_true(weir_ban_lift(weir, "r", bans.ban[0].key, NOW)); /* as it is listed */
    assert_int_equal(bans_of(weir, NOW).n, 0);
    weir_destroy(weir);
}

/* Whatever bytes a client sends, and however many: it is banned, listed, and let in again by what
 * was listed; others are not. */
TEST(test_R4_hostile_keys)
{
    static const char *const fill[] = { "\x80", "\xbf",     "\xff",     "\xc2",
                                        "\xe2", "\n",       "%",        " ",
                                        "?",    "\xc3\xa4", "\xc2\x85", "\xe2\x80\xa8" };
    static const size_t lengths[] = { 1,   3,   4,   52,  53,  100, 124, 125,  126,
                                      158, 159, 160, 161, 256, 257, 500, 20000 };
    static char value[20000];
    struct weir *weir = engine_of(RULES(
        "- { name: r, key: \"{account}\", limit: 1/60, ban: { refusals: 1/60s, for: 10m } }\n"));
    struct weir_ask ask = { .cost = 1, .now = NOW };

    for (size_t f = 0; f < COUNT_OF(fill); f++)
        for (size_t i = strlen(fill[f]) > 1; i < COUNT_OF(lengths); i++) {
            for (size_t at = 0; at < lengths[i]; at++)
                value[at] = fill[f][at % strlen(fill[f])];
            struct weir_attr attr = { .name = "account", .value = value, .value_len = lengths[i] };
            assert_true(check_attrs(weir, &attr, 1, &ask).decision.allowed);
            assert_int_equal(check_attrs(weir, &attr, 1, &ask).banned_until, NOW + TEN_MINUTES);
            assert_int_equal(check_attrs(weir, &attr, 1, &ask).decision.reason, WEIR_BANNED);
            value[lengths[i] - 1] = 'x';
            if (check_attrs(weir, &attr, 1, &(struct weir_ask){ .cost = 0, .now = NOW })
                    .decision.reason == WEIR_BANNED)
                fail_msg("%zu bytes %s: another key is banned too", lengths[i], fill[f]);
            struct bans bans = bans_of(weir, NOW);
            assert_int_equal(bans.n, 1);
            if (!weir_ban_lift(weir, "r", bans.ban[0].key, NOW))
                fail_msg("%zu bytes %s: cannot be lifted as it is listed, %s", lengths[i], fill[f],
                         bans.ban[0].key);
        }
    weir_destroy(weir);
}

TEST(test_R4_a_ban_survives_a_restart)
{
    const char *path = new_path();

    for (int run = 0; run < 2; run++) {
        struct weir_table *table =
            table_with(&(struct weir_table_options){ .path = path, .keys = 100, .slab = 1 << 20 });
        struct weir *weir = engine_on(table);
        use(weir, BANNING(", escalate: 2"), NOW);
        if (run == 0) {
            pass_of(weir, 5, "ip=::1", NOW);
            ban(weir, "other", "2::", NOW, NOW + TEN_MINUTES);
        } else {
            assert_int_equal(bans_of(weir, NOW).n, 2);
            assert_int_equal(check(weir, "ip=::1", NOW + 1).decision.reason, WEIR_BANNED);
            assert_int_equal(check(weir, "ip=2::", NOW + 1).decision.reason, WEIR_BANNED);
            weir_time end = NOW + TEN_MINUTES;
            assert_int_equal(refuse_until_banned(weir, "ip=::1", end),
                             2 * TEN_MINUTES); /* and so do its strikes */
        }
        weir_destroy(weir);
        weir_table_destroy(table);
    }
}

TEST(test_R4_everybody_banned_at_once)
{
    struct weir *weir =
        engine_of(RULES("- { name: all, limit: 100/60 }\n")); /* one key for everybody: "" */

    ban(weir, "all", "", NOW, NOW + S);
    assert_int_equal(check(weir, "ip=::1", NOW).decision.reason, WEIR_BANNED);
    assert_true(weir_ban_lift(weir, "all", "", NOW));
    assert_true(passes(weir, "ip=::1", NOW));
    weir_destroy(weir);
}

TEST(test_S6_reset_forgets_refusals_bans_and_strikes)
{
    struct weir *weir = engine_of(BANNING(", escalate: 2"));

    refuse_until_banned(weir, "ip=::1", NOW);
    assert_int_equal(bans_of(weir, NOW).n, 1);
    assert_int_equal(reset(weir, NULL, "ip=::1", NOW), 2);
    assert_int_equal(bans_of(weir, NOW).n, 0);
    assert_int_equal(refuse_until_banned(weir, "ip=::1", NOW),
                     TEN_MINUTES); /* not twice as long: the first was forgotten */
    weir_destroy(weir);
}

TEST(test_S6_reset_forgets_counted_refusals)
{
    struct weir *weir = engine_of(RULES(
        "- { name: r, key: \"{account}\", limit: 1/60, ban: { refusals: 3/60s, for: 10m } }\n"));

    assert_int_equal(pass_of(weir, 3, "account=ann", NOW), 1); /* and two refusals */
    assert_int_equal(reset(weir, "r", "account=ann", NOW), 1);
    assert_int_equal(pass_of(weir, 3, "account=ann", NOW), 1);
    assert_int_equal(bans_of(weir, NOW).n, 0);
    assert_false(passes(weir, "account=ann", NOW));
    assert_int_equal(bans_of(weir, NOW).n, 1);
    weir_destroy(weir);
}

GROUP(make_folder, remove_folder)
