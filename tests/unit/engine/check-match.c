/* check-match.c -- which rules a request meets: attributes, headers, paths. */
#include "unit/test.h"

#include "unit/requests.h"

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

TEST(test_R1_loose_paths)
{
    static const struct {
        const char *rule, *applies, *not ;
    } rows[] = {
        { "match: { uri: /Login }, paths: loose",
          "/login /LOGIN /login/ /login;x=1 /login%20 /x/..;/login /Login/%20/;a "
          "/login;%2fx /x;%2fy/../login /x;%5cy/../login /login%3bx /login;\\\\y "
          "/x;\\\\..\\\\login",
          "/ /login/x /log" },
        { "match: { uri: /api/Login }, paths: loose",
          "/api/;y/../login /api/x\\y/../LOGIN; /api/%3by/%2e%2e/login /api/;y/../x/..;/login "
          "/api/x/;a/%3b/../../login",
          "/login /api/;y/login/x" },
        { "match: { uri: [\"/ab/**\", /c, /d, /e, /f] }, paths: loose", "/ab/..;/y /AB/x\\y/../z",
          "/b/..;/y" },
        { "match: { uri: [/a, /login/] }, paths: loose", "/login /A /a/", "/b" },
        { "match: { uri: \"/api/**\" }, paths: loose", "/api /API/v1 /api;x/v1 /api/", "/apix /" },
        { "match: { uri: \"/user/*\" }, paths: loose",
          "/user/7 /USER/7/ /user/ /user /USER/7\\\\8 /user/7%5c", "/users /user/7/edit" },
        { "match: { uri: \"/user/?\" }, paths: loose", "/user/7 /USER/7/ /user/;", "/user /user/" },
        { "match: { uri: { prefix: /A;b } }, paths: loose", "/A;b /a;Bc/d", "/a /a;c" },
        { "match: { uri: \"/a;B/**\" }, paths: loose", "/a;B/ /A;b/c/d", "/a /a/c" },
        { "match: { uri: \"**.CSS\" }, paths: loose", "/a.css /x/A.CSS/", "/a.js" },
        { "match: { uri: \"*\" }, paths: loose", "/ /a", "" },
        { "match: { uri: { list: doors } }, paths: loose", "/login /LOGIN/ /Admin", "/ADMIN /x" },
        { "match: { uri: \"/**\" }, not: { uri: /free }, paths: loose", "/ /FREE /free/", "/free" },
        { "not: { uri: [\"/Img/**\", \"/js/*.js\"] }, paths: loose",
          "/Img/..;/login /Img/..%5clogin /Img/;x/../login /js/..;/a.js /img/a",
          "/Img/a;v=1 /Img/%41 /Img/x\\\\y /js/a.js" },
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

/* However long a parameter is, the path behind it counts. */
TEST(test_R1_a_loose_path_behind_a_long_parameter)
{
    char uri[4000] = "/x;";

    OWN(weir) *weir =
        engine_of(RULES("- { name: r, match: { uri: /login }, paths: loose, limit: 9/60 }\n"));
    memset(uri + 3, 'a', 3000);
    strcpy(uri + 3003, "/..;/login");
    struct weir_attr attr = { .name = "uri", .value = uri };
    struct weir_ruling r = check_attrs(weir, &attr, 1, &(struct weir_ask){ .cost = 1, .now = NOW });
    assert_allowed_by(r, "r");
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
    /* and those that servers read differently */
    assert_true(passes(weir, "uri=/a/b\\c/../login", NOW));
    assert_true(passes(weir, "uri=/a/d\\e/../login", NOW));
    assert_false(passes(weir, "uri=/a/;f/../login", NOW));
    assert_false(passes(weir, "uri=/g;\\..\\login", NOW));
    assert_false(passes(weir, "uri=/login;%2fh", NOW));
}
