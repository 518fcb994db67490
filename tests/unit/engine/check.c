/* check.c -- a request and the rules that apply to it: who is limited by what, all or nothing, and
 * everything that the ruling says. */
#include "unit/test.h"

#include "unit/requests.h"

/* ------------------------------------------------------------- R1: who ---- */

TEST(test_R1_a_request_that_no_rule_is_for_is_allowed)
{
    OWN(weir) *weir = engine_on(NULL); /* no rules at all */
    struct weir_ruling r = check(weir, "ip=192.0.2.1", NOW);
    assert_allowed_by(r, NULL);
    use(weir, "version: 1\nrules: []\n", NOW);
    r = check(weir, "ip=192.0.2.1", NOW);
    assert_allowed_by(r, NULL);
    use(weir, RULES("- { name: login, match: { uri: /login }, limit: 1/60 }\n"), NOW);
    for (int i = 0; i < 10; i++) {
        r = check(weir, "uri=/logout", NOW);
        assert_allowed_by(r, NULL);
        assert_null(r.list);
        assert_null(r.shadow);
        assert_fields(r, (applied, 0), (level, 0), (count, 0), (window, 0), (banned_until, 0),
                      (mode, WEIR_ENFORCE));
        struct weir_decision none = { .allowed = true };
        assert_same_decision(&r.decision, &none);
    }
    assert_true(weir_check(weir, NULL, 0, &(struct weir_ask){ .cost = 1, .now = NOW }, &r));
}

/* Each: two of `one` pass and a third does not; `same` shares its budget; `other` does not; `free`
 * is not limited at all. */
TEST(test_R1_every_dimension)
{
    static const struct {
        const char *rule, *one, *same, *other, *free;
    } cases[] = {
        { "key: \"{ip}\"", "ip=192.0.2.1", "ip=::ffff:192.0.2.1", "ip=192.0.2.2", "account=ann" },
        { "key: \"{ip/24}\"", "ip=192.0.2.1", "ip=192.0.2.255", "ip=192.0.3.1", "uri=/" },
        { "key: \"{ip/24}\"", "ip=2001:db8::1", "ip=2001:db8:0:0:ffff::", "ip=2001:db8:0:1::1",
          "uri=/" },
        { "key: \"{ip/24/48}\"", "ip=2001:db8:7::1", "ip=2001:db8:7:ffff::1", "ip=2001:db8:8::1",
          "uri=/" },
        { "match: { ip: 10.0.0.0/8 }", "ip=10.0.0.1", "ip=10.255.0.1", NULL, "ip=11.0.0.1" },
        { "match: { ip: \"2001:db8::/32\" }", "ip=2001:db8::1", "ip=2001:db8:ffff::1", NULL,
          "ip=2001:db9::1" },
        { "match: { uri: /login }", "uri=/login", "uri=/login?again", NULL, "uri=/login/x" },
        { "match: { uri: \"/api/**\" }", "uri=/api/a", "uri=/api/b/c", NULL, "uri=/apis" },
        { "match: { uri: \"/user/*/posts\" }", "uri=/user/1/posts", "uri=/user/2/posts", NULL,
          "uri=/user/1/2/posts" },
        { "key: \"{uri}\"", "uri=/a", "uri=//a", "uri=/b", "ip=192.0.2.1" },
        { "match: { method: [POST, PUT] }", "method=POST", "method=PUT", NULL, "method=GET" },
        { "key: \"{method}\"", "method=POST", "method=POST", "method=GET", "" },
        { "key: \"{account}\"", "account=ann", "account=ann ip=192.0.2.1", "account=bob",
          "ip=192.0.2.1" },
        { "key: \"{org}\", match: { org: \"*\" }", "org=acme", "org=acme account=ann", "org=zeta",
          "account=ann" },
        { "key: \"{header.x-api-key}\"", "header.x-api-key=k", "header.x-api-key=k uri=/",
          "header.x-api-key=l", "header.other=k" },
        { "match: { header.X-Plan: free }", "header.x-plan=free", "header.x-plan=free ip=::1", NULL,
          "header.x-plan=paid" },
        { "match: { server: \"eu-*\" }, key: \"{server}\"", "server=eu-1", "server=eu-1 ip=::1",
          "server=eu-2", "server=us-1" },
        { "key: \"{device.kind}\"", "device.kind=tv", "device.kind=tv", "device.kind=phone",
          "device=tv" },
        { "key: \"{ip}:{account}\"", "ip=192.0.2.1 account=ann", "account=ann ip=192.0.2.1",
          "ip=192.0.2.1 account=bob", "account=ann" },
        { "key: \"{ip/24}:{header.x-api-key}:{uri}\"", "ip=192.0.2.1 header.x-api-key=k uri=/a",
          "ip=192.0.2.9 header.x-api-key=k uri=/a#f", "ip=192.0.2.1 header.x-api-key=k uri=/b",
          "ip=192.0.2.1 uri=/a" },
        { "match: { uri: /login, method: POST }, key: \"{ip}\"", "uri=/login method=POST ip=::1",
          "uri=/login method=POST ip=::0:1",
          "uri=/login method=POST ip=2::", "uri=/login method=GET ip=::1" },
        { "match: { uri: \"/**\" }, not: { ip: 10.0.0.0/8 }", "uri=/ ip=9.0.0.1", "uri=/", NULL,
          "uri=/ ip=10.0.0.1" },
        { "key: \"{account|anonymous}\"", "ip=::1", "account=", "account=ann", NULL },
        { "key: \"\"", "ip=::1", "account=ann", NULL, NULL },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char yaml[400];
        snprintf(yaml, sizeof(yaml), RULES("- { name: r, %s, limit: 3/60 }\n"), cases[i].rule);
        OWN(weir) *weir = engine_of(yaml);
        struct weir_ruling r = check(weir, cases[i].one, NOW);
        assert_allowed_by(r, "r");
        assert_int_equal(r.decision.remaining, 2);
        r = check(weir, cases[i].same, NOW);
        assert_allowed_by(r, "r");
        assert_int_equal(r.decision.remaining, 1);
        assert_int_equal(pass_of(weir, 3, cases[i].one, NOW), 1);
        r = check(weir, cases[i].same, NOW);
        assert_refused_by(r, "r");
        if (cases[i].other != NULL)
            assert_int_equal(pass_of(weir, 5, cases[i].other, NOW), 3);
        for (int k = 0; cases[i].free != NULL && k < 5; k++) {
            r = check(weir, cases[i].free, NOW);
            assert_allowed_by(r, NULL);
        }
    }
}

TEST(test_R1_no_spelling_of_a_path_escapes)
{
    static const char *const spellings[] = {
        "/login",     "/%6cogin",   "//login",         "/a/../login?x",     "/./login",
        "/%2e/login", "/login#top", "/a/%2e%2e/login", "http://host/login", "/login?next=/",
        "login",      "/..//login"
    };

    OWN(weir) *weir = engine_of(RULES("- { name: login, match: { uri: /login }, limit: 3/60 }\n"));
    for (size_t i = 0; i < COUNT_OF(spellings); i++) {
        struct weir_attr uri = ATTR("uri", spellings[i]);
        struct weir_ruling r =
            check_attrs(weir, &uri, 1, &(struct weir_ask){ .cost = 1, .now = NOW });
        assert_rule(&r, "login");
        assert_int_equal(r.decision.allowed, i < 3);
    }
}

TEST(test_R1_long_uris_headers_and_names)
{
    static char uri[9000], value[300], name[100];

    OWN(weir) *weir =
        engine_of(RULES("- { name: path, match: { uri: \"/a/**\" }, limit: 100/60 }\n"
                        "- { name: key, key: \"{header.x-api-key}\", limit: 2/60 }\n"));
    memset(uri, 'u', sizeof(uri));
    memcpy(uri, "/a/", 3);
    memset(value, 'v', sizeof(value));
    memset(name, 'n', sizeof(name));
    for (int i = 0; i < 3; i++) {
        struct weir_attr attrs[] = {
            { .name = name, .value = "x", .name_len = 100, .value_len = 1 },
            { .name = "uri", .value = uri, .name_len = 3, .value_len = sizeof(uri) },
            { .name = "header.x-api-key", .value = value, .value_len = sizeof(value) }
        };
        struct weir_ruling r =
            check_attrs(weir, attrs, 3, &(struct weir_ask){ .cost = 1, .now = NOW });
        assert_rule(&r, "key");
        assert_fields(r, (decision.allowed, i < 2), (applied, 2));
    }
    for (size_t at = 0; at < sizeof(value); at += 13) { /* every byte counts */
        value[at] = 'w';
        struct weir_attr attr = { .name = "header.x-api-key",
                                  .value = value,
                                  .value_len = sizeof(value) };
        struct weir_ruling r =
            check_attrs(weir, &attr, 1, &(struct weir_ask){ .cost = 1, .now = NOW });
        assert_fields(r.decision, (allowed, true), (remaining, 1));
        value[at] = 'v';
    }
}

TEST(test_R1_null_empty_and_repeated_attributes)
{
    OWN(weir) *weir = engine_of(RULES("- { name: r, key: \"{account}\", limit: 1/60 }\n"));
    struct weir_attr null = ATTR("account", NULL), empty = ATTR("account", "");
    struct weir_attr twice[] = { ATTR("account", "ann"), ATTR("account", "bob") };
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_ruling r = check_attrs(weir, &null, 1, &ask);
    assert_allowed_by(r, NULL);
    r = check_attrs(weir, &empty, 1, &ask);
    assert_allowed_by(r, NULL);
    r = check_attrs(weir, twice, 2, &ask);
    assert_allowed_by(r, "r");
    assert_true(passes(weir, "account=bob", NOW)); /* the first was asked for */
    assert_false(passes(weir, "account=ann", NOW));
}

TEST(test_R1_names_of_headers_have_no_case)
{
    OWN(weir) *weir = engine_of(RULES("- { name: r, key: \"{header.X-Api-Key}\", limit: 1/60 }\n"));
    assert_true(passes(weir, "header.x-api-key=k", NOW));
    assert_false(passes(weir, "header.x-api-key=k", NOW));
    struct weir_attr by_number = { .value = "k", .id = weir_attribute(weir, "header.X-Api-KEY") };
    assert_false(check_attrs(weir, &by_number, 1, &(struct weir_ask){ .cost = 1, .now = NOW })
                     .decision.allowed);
    assert_false(passes(weir, "header.X-API-KEY=k", NOW));
    assert_true(passes(weir, "header.X-API-KEY=K", NOW)); /* values do */
}

/* One name, one number: however it is written, and however often it is asked for. */
TEST(test_R1_a_header_has_one_number)
{
    OWN(weir) *weir = engine_of(RULES("- { name: r, key: \"{header.x-api-key}\", limit: 1/60 }\n"));
    uint32_t number = weir_attribute(weir, "header.X-Api-Key");
    assert_int_not_equal(number, 0);
    assert_int_equal(weir_attribute(weir, "header.X-Api-Key"), number);
    assert_int_equal(weir_attribute(weir, "header.x-api-key"), number);
    assert_int_equal(weir_attribute(weir, "header.X-API-KEY"), number);
    assert_int_not_equal(weir_attribute(weir, "account"), weir_attribute(weir, "Account"));
}

/* A number in the place of a name, for doors that see the same names over and over. */
TEST(test_R1_attributes_by_number)
{
    OWN(weir) *weir = engine_on(NULL);
    uint32_t account = weir_attribute(weir, "account"),
             country = weir_attribute(weir, "country"); /* before there are rules */
    assert_true(account != 0 && country != 0 && account != country);
    assert_int_equal(weir_attribute(weir, "account"), account);
    use(weir, RULES("- { name: r, key: \"{account}\", limit: 2/60 }\n"), NOW);
    struct weir_attr by_number = { .value = "ann", .id = account },
                     unknown = { .value = "ann", .id = 255 },
                     beyond = { .value = "ann", .id = 256 };
    struct weir_attr elsewhere = { .value = "xx", .id = country };
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_ruling r = check_attrs(weir, &by_number, 1, &ask);
    assert_allowed_by(r, "r");
    assert_int_equal(rule_left(weir, "r", "account=ann", NOW), 1);
    r = check_attrs(weir, &unknown, 1, &ask);
    assert_allowed_by(r, NULL);
    r = check_attrs(weir, &beyond, 1, &ask);
    assert_allowed_by(r, NULL);
    use(weir,
        RULES("- { name: z, match: { org: \"*\" }, limit: 9/60 }\n- { name: r, key: \"{account}\", "
              "limit: 2/60 }\n"),
        NOW);
    assert_true(check_attrs(weir, &by_number, 1, &ask)
                    .decision.allowed); /* whatever number it has in the rules */
    r = check_attrs(weir, &by_number, 1, &ask);
    assert_refused_by(r, "r");
    assert_true(check_attrs(weir, &elsewhere, 1, &ask).decision.allowed);
    assert_ok(weir_list_edit(
        weir, &(struct weir_list_edit){ "deny", "country", &(const char *){ "xx" }, 1, NULL, 0 },
        NULL));
    assert_int_equal(check_attrs(weir, &elsewhere, 1, &ask).decision.reason, WEIR_DENIED);
    assert_int_equal(check_attrs(weir, &by_number, 1, &ask).decision.reason, WEIR_LIMITED);
}

TEST(test_R1_numbers_for_255_names)
{
    char name[80];

    OWN(weir) *weir = engine_of(RULES("- { name: r, key: \"{n254}\", limit: 1/60 }\n"));
    memset(name, 'n', sizeof(name));
    name[64] = '\0';
    assert_int_equal(weir_attribute(weir, name), 0);
    assert_int_equal(weir_attribute(weir, ""), 0);
    for (int i = 0; i < 255; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        assert_int_equal(weir_attribute(weir, name), i + 1);
    }
    assert_int_equal(weir_attribute(weir, "one-more"), 0);
    assert_int_equal(weir_attribute(weir, "n0"), 1);
    struct weir_attr last = { .value = "x", .id = 255 };
    assert_true(
        check_attrs(weir, &last, 1, &(struct weir_ask){ .cost = 1, .now = NOW }).decision.allowed);
    assert_false(
        check_attrs(weir, &last, 1, &(struct weir_ask){ .cost = 1, .now = NOW }).decision.allowed);
}

/* ---------------------------------------------------- R2: all or nothing ---- */

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

TEST(test_R1_loose_paths)
{
    static const struct {
        const char *rule, *applies, *not ;
    } rows[] = {
        { "match: { uri: /Login }, paths: loose",
          "/login /LOGIN /login/ /login;x=1 /login%20 /x/..;/login /Login/%20/;a",
          "/ /login/x /log" },
        { "match: { uri: [/a, /login/] }, paths: loose", "/login /A /a/", "/b" },
        { "match: { uri: \"/api/**\" }, paths: loose", "/api /API/v1 /api;x/v1 /api/", "/apix /" },
        { "match: { uri: \"/user/*\" }, paths: loose", "/user/7 /USER/7/", "/user /user/7/edit" },
        { "match: { uri: \"**.CSS\" }, paths: loose", "/a.css /x/A.CSS/", "/a.js" },
        { "match: { uri: \"*\" }, paths: loose", "/ /a", "" },
        { "match: { uri: { list: doors } }, paths: loose", "/login /LOGIN/ /Admin", "/ADMIN /x" },
        { "match: { uri: \"/**\" }, not: { uri: /free }, paths: loose", "/ /FREE /free/", "/free" },
        { "match: { uri: /login }", "/login //login", "/LOGIN /login/ /login;x" },
    };

    for (int whole = 0; whole < 2; whole++)
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            char yaml[400], rule[200], word[64];
            snprintf(rule, sizeof(rule), "%s", rows[i].rule);
            char *loose = strstr(rule, ", paths");
            if (whole && loose != NULL)
                *loose = '\0';
            snprintf(yaml, sizeof(yaml),
                     "version: 1\n%srules:\n- { name: r, %s, limit: 99/60 }\n"
                     "lists: { doors: { uri: [/login, /Admin] } }\n",
                     whole && loose ? "paths: loose\n" : "", rule);
            if (strstr(rule, "doors") == NULL)
                *strstr(yaml, "lists:") = '\0';
            OWN(weir) *weir = engine_of(yaml);
            for (int wanted = 0; wanted < 2; wanted++)
                for (const char *at = wanted ? rows[i].applies : rows[i].not ; *at;) {
                    size_t len = strcspn(at, " ");
                    snprintf(word, sizeof(word), "uri=%.*s", (int)len, at);
                    if ((check(weir, word, NOW).rule != NULL) != wanted)
                        fail_msg("%s: %s", rows[i].rule, word);
                    at += len + (at[len] == ' ');
                }
        }
}

/* Spellings of one path are one key. */
TEST(test_R1_a_loose_path_in_a_key)
{
    OWN(weir) *weir = engine_of(RULES(
        "- { name: r, match: { uri: \"/**\" }, key: \"{uri}\", paths: loose, limit: 2/60 }\n"));
    assert_true(passes(weir, "uri=/login", NOW));
    assert_true(passes(weir, "uri=/LOGIN/", NOW));
    assert_false(passes(weir, "uri=/login;x", NOW));
    assert_true(passes(weir, "uri=/other", NOW));
    assert_string_equal(explained(weir, "r", "uri=/LOGIN", NOW).key, "/login/");
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
