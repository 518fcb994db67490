/* attributes.c -- a request's attributes as a rule set looks at them. */
#include "unit/test.h"

#include "unit/requests.h"

static struct weir__attributes attributes_of(const char *const *names, size_t n)
{
    struct weir__attributes known = { .uri = -1 };

    for (size_t i = 0; i < n; i++)
        assert_int_equal(weir__attribute_add(&known, names[i], NULL), (int)i);
    return known;
}

static struct weir__facts gather(const struct weir__attributes *known,
                                 const struct weir_attr *attrs, size_t n)
{
    static struct weir__facts facts; /* values that were rewritten lie in it */

    memset(&facts, 0xa5, sizeof(facts));
    weir__facts_gather(known, NULL, attrs, n, &facts);
    return facts;
}

static void assert_value(const struct weir__value *v, const char *wanted)
{
    if (v->len != strlen(wanted) || (v->len > 0 && memcmp(v->text, wanted, v->len) != 0))
        fail_msg("\"%.*s\" is not \"%s\"", (int)v->len, v->len ? v->text : "", wanted);
}

/* ------------------------------------------------------------- attributes ---- */

TEST(test_names_have_numbers)
{
    static const char *const names[] = { "ip", "uri", "account",         "x.ip",
                                         "a",  "b",   "header.x-api-key" };
    struct weir__attributes known = attributes_of(names, COUNT_OF(names));

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(weir__attribute_find(&known, names[i], strlen(names[i])), (int)i);
        assert_int_equal(weir__attribute_add(&known, names[i], NULL), (int)i); /* once */
    }
    assert_fields(known, (n, COUNT_OF(names)), (uri, 1));
    assert_true(known.is_address[0] && known.is_address[3] && !known.is_address[2]);
    assert_int_equal(weir__attribute_find(&known, "i", 1), -1);
    assert_int_equal(weir__attribute_find(&known, "ipx", 3), -1);
    assert_int_equal(weir__attribute_find(&known, "IP", 2), -1);
    assert_int_equal(weir__attribute_find(&known, "", 0), -1);
    assert_int_equal(weir__attribute_find(&known, "accounting", 7), 2); /* the length counts */
}

TEST(test_64_attributes_are_the_most)
{
    struct weir__attributes known = { .uri = -1 };
    char name[80];

    for (int i = 0; i < WEIR__ATTRIBUTES_MAX; i++) {
        snprintf(name, sizeof(name), "attribute-number-%d", i);
        assert_int_equal(weir__attribute_add(&known, name, NULL), i);
    }
    for (int i = 0; i < WEIR__ATTRIBUTES_MAX; i++) {
        snprintf(name, sizeof(name), "attribute-number-%d", i);
        assert_int_equal(weir__attribute_find(&known, name, strlen(name)), i);
    }
    assert_fails(weir__attribute_add(&known, "one-more", &error), WEIR_INVALID, "one-more");
    assert_int_equal(weir__attribute_find(&known, "one-more", 8), -1);
    assert_int_equal(known.n, WEIR__ATTRIBUTES_MAX);
}

TEST(test_a_name_has_1_to_63_bytes)
{
    struct weir__attributes known = { .uri = -1 };
    struct weir_error error = { 0 };
    char name[65];

    memset(name, 'n', 64);
    name[64] = '\0';
    assert_int_equal(weir__attribute_add(&known, name, &error), WEIR_INVALID);
    assert_int_equal(weir__attribute_add(&known, "", &error), WEIR_INVALID);
    assert_int_equal(weir__attribute_add(&known, name + 1, &error), 0);
    assert_int_equal(weir__attribute_find(&known, name + 1, 63), 0);
    struct weir_attr attrs[] = { ATTR(name, "long"), ATTR(name + 1, "fits") };
    struct weir__facts facts = gather(&known, attrs, 2);
    assert_value(&facts.values[0], "fits");
}

/* ----------------------------------------------------------------- values ---- */

TEST(test_R1_missing_empty_and_given_twice)
{
    static const char *const names[] = { "account", "org", "ip" };
    struct weir_attr attrs[] = {
        ATTR("account", "ann"), ATTR("account", "bob"), ATTR("unknown", "x"),
        ATTR("org", NULL),      ATTR("ip", NULL),
    };
    struct weir__attributes known = attributes_of(names, COUNT_OF(names));
    struct weir__facts facts = gather(&known, attrs, COUNT_OF(attrs));

    assert_value(&facts.values[0], "ann"); /* the first counts */
    assert_fields(facts, (values[1].len, 0), (values[2].len, 0), (values[2].address.bits, 0));
    facts = gather(&known, NULL, 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(facts.values[i].len, 0);
}

TEST(test_lengths_may_be_given)
{
    static const char *const names[] = { "account", "ip" };
    struct weir_attr attrs[] = {
        { .name = "accountant", .value = "anna", .name_len = 7, .value_len = 3 },
        { .name = "ipv", .value = "192.0.2.77", .name_len = 2, .value_len = 9 }
    };
    struct weir__attributes known = attributes_of(names, COUNT_OF(names));
    struct weir__facts facts = gather(&known, attrs, COUNT_OF(attrs));

    assert_value(&facts.values[0], "ann");
    assert_value(&facts.values[1], "192.0.2.7");
    assert_fields(facts, (values[1].address.bits, 32), (values[1].address.bytes[3], 7));
}

TEST(test_R1_addresses_become_numbers)
{
    static const char *const names[] = { "ip", "peer.ip" };
    struct weir_attr attrs[] = { ATTR("ip", "[2001:db8::1]"), ATTR("peer.ip", "::ffff:192.0.2.1") };
    struct weir_attr ports[] = { ATTR("ip", "[2001:db8::1]:80"), ATTR("peer.ip", "192.0.2.1:80") };
    struct weir_attr garbage[] = { ATTR("ip", "unix:"), ATTR("peer.ip", "192.0.2.1:http") };
    struct weir_attr colons[] = { ATTR("ip", "2001:db8:::1"), ATTR("peer.ip", ":::80") };
    struct weir__attributes known = attributes_of(names, COUNT_OF(names));
    struct weir__facts facts = gather(&known, attrs, COUNT_OF(attrs));

    assert_fields(facts, (values[0].address.bits, 128), (values[1].address.bits, 32));
    facts = gather(&known, ports, COUNT_OF(ports));
    assert_fields(facts, (values[0].address.bits, 128), (values[1].address.bits, 32));
    assert_value(&facts.values[1], "192.0.2.1");
    facts = gather(&known, garbage, COUNT_OF(garbage));
    assert_fields(facts, (values[0].address.bits, 0), (values[1].address.bits, 0));
    assert_value(&facts.values[0], WEIR__NO_ADDRESS);
    assert_value(&facts.values[1], WEIR__NO_ADDRESS);
    facts = gather(&known, colons, COUNT_OF(colons));
    assert_fields(facts, (values[0].address.bits, 0), (values[1].address.bits, 0));
    assert_value(&facts.values[0], WEIR__NO_ADDRESS);
    assert_value(&facts.values[1], WEIR__NO_ADDRESS);
}

TEST(test_R1_a_method_in_small_letters_is_the_same)
{
    static const char *const names[] = { "uri", "method" };
    static const char *const methods[][2] = {
        { "post", "POST" }, { "PoSt", "POST" }, { "GET", "GET" }, { "m-search", "M-SEARCH" }
    };
    struct weir__attributes known = attributes_of(names, COUNT_OF(names));
    struct weir__facts facts; /* not copied: it holds the method */

    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        struct weir_attr attr = ATTR("method", methods[i][0]);
        weir__facts_gather(&known, NULL, &attr, 1, &facts);
        assert_value(&facts.values[1], methods[i][1]);
    }
}

TEST(test_R1_every_spelling_of_a_host_is_one_value)
{
    static const char *const names[] = { "uri", "header.host", "host" };
    struct weir_attr attrs[] = { ATTR("host", "SHOP.example.:443"), ATTR("uri", "/A."),
                                 ATTR("header.Host", "Other.example") };
    struct weir__attributes known = attributes_of(names, COUNT_OF(names));
    struct weir__facts facts; /* not copied: it holds the hosts */

    weir__facts_gather(&known, NULL, attrs, COUNT_OF(attrs), &facts);

    assert_value(&facts.values[0], "/A.");
    assert_value(&facts.values[1], "other.example");
    assert_value(&facts.values[2], "shop.example");
}

/* The header names ignore case, in a request as in a rule. */
TEST(test_R1_headers_have_no_case)
{
    static const char *const names[] = { "header.x-api-key" };
    struct weir_attr attrs[] = { ATTR("header.X-API-Key", "k"), ATTR("header.x-api-key", "second"),
                                 ATTR("header.X-API-KEYS", "other") };
    struct weir_attr cut = { .name = "header.X-API-Keys", .value = "k", .name_len = 16 };
    struct weir_attr others[] = { ATTR("HEADER.x-api-key", "k"), ATTR("Header.x-api-key", "k"),
                                  ATTR("header.", "k"), ATTR("header", "k") };
    struct weir__attributes known = attributes_of(names, 1);
    struct weir__facts facts = gather(&known, attrs, COUNT_OF(attrs));

    assert_value(&facts.values[0], "k"); /* the first counts, however it is written */
    facts = gather(&known, &cut, 1);
    assert_value(&facts.values[0], "k");
    facts = gather(&known, others,
                   COUNT_OF(others)); /* what stands before the dot is no header's name */
    assert_int_equal(facts.values[0].len, 0);
}

/* ------------------------------------------------------------------ paths ---- */

TEST(test_R1_a_path_is_what_a_server_sees)
{
    static const char *const names[] = { "uri" };
    static const char *const spellings[] = { "/login",        "/%6cogin",   "//login",
                                             "/a/../login?x", "/./login#f", "http://host/login",
                                             "login" };
    struct weir__attributes known = attributes_of(names, 1);

    for (size_t i = 0; i < COUNT_OF(spellings); i++) {
        struct weir_attr attr = ATTR("uri", spellings[i]);
        struct weir__facts facts;
        weir__facts_gather(&known, NULL, &attr, 1, &facts);
        assert_value(&facts.values[0], "/login");
    }
}

TEST(test_a_long_path_is_cut)
{
    static const char *const names[] = { "uri" };
    static char uri[5000];
    struct weir__attributes known = attributes_of(names, 1);
    struct weir_attr attr = { .name = "uri", .value = uri, .value_len = sizeof(uri) };

    memset(uri, 'a', sizeof(uri));
    uri[0] = '/';
    struct weir__facts facts;
    weir__facts_gather(&known, NULL, &attr, 1, &facts);
    assert_int_equal(facts.values[0].len, WEIR__URI_MAX);
    assert_memory_equal(facts.values[0].text, uri, WEIR__URI_MAX);
    memcpy(uri + 1, "./", 2); /* not plain: copied */
    weir__facts_gather(&known, NULL, &attr, 1, &facts);
    assert_int_equal(facts.values[0].len, WEIR__URI_MAX);
    assert_memory_equal(facts.values[0].text, "/aaa", 4);
    attr.value_len = WEIR__URI_MAX + 2; /* fits when it is plain */
    weir__facts_gather(&known, NULL, &attr, 1, &facts);
    assert_int_equal(facts.values[0].len, WEIR__URI_MAX);
}

/* Length is a spelling too: what a server resolves to /login is /login, however long it was. */
TEST(test_R1_no_length_of_a_path_escapes_a_rule)
{
    static const char *const names[] = { "uri" };
    static char uri[9000];
    struct weir__attributes known = attributes_of(names, 1);

    for (int way = 0; way < 5; way++) {
        static const char *const ways[] = { "/.", "/", "/x/..", "/%2e", "/x" };
        size_t at = 0;
        while (at < (way == 4 ? 2990 : 4000)) /* /./././login   //////login   /x/../x/../login
                                                 /x/x/x/../../../login */
            at += (size_t)snprintf(uri + at, sizeof(uri) - at, "%s", ways[way]);
        for (size_t up = way == 4 ? at / 2 : 0; up > 0; up--)
            at += (size_t)snprintf(uri + at, sizeof(uri) - at, "/..");
        at += (size_t)snprintf(uri + at, sizeof(uri) - at, "/login");
        struct weir_attr attr = { .name = "uri", .value = uri, .value_len = at };
        struct weir__facts facts;
        weir__facts_gather(&known, NULL, &attr, 1, &facts);
        assert_value(&facts.values[0], "/login");
    }
}

/* ---------------------------------------------------------------- clauses ---- */

static bool holds(const char *match, const char *request)
{
    char yaml[1000];

    snprintf(
        yaml, sizeof(yaml),
        RULES("- { name: r, match: { %s }, limit: 1/s }\n") "lists: { office: { ip: [10.0.0.0/8], "
                                                            "account: [ann] } }\n",
        match);
    OWN(weir_rules) *set = rules_of(yaml);
    struct weir__facts facts;
    struct request r = request_of(request);
    weir__facts_gather(&set->attributes, set->lists, r.attrs, r.n, &facts);
    bool all = true;
    for (uint32_t i = 0; i < set->rules[0].matches; i++)
        all =
            all && weir__clause_holds(set, &set->clauses[set->rules[0].clauses_first + i], &facts);
    return all;
}

TEST(test_R1_every_kind_of_pattern)
{
    static const struct {
        const char *match, *yes, *no;
    } cases[] = {
        { "method: POST", "method=POST", "method=POS" },
        { "method: POST", "method=post", "method=pos" },
        { "method: post", "method=POST", "method=POS" },
        { "method: { prefix: p }", "method=put", "method=get" },
        { "method: [POST, PUT]", "method=PUT", "method=GET" },
        { "uri: \"/api/**\"", "uri=/api/a/b", "uri=/api" },
        { "uri: \"/user/*\"", "uri=/user/7", "uri=/user/7/x" },
        { "uri: \"/*/edit\"", "uri=/a/edit", "uri=/a/b/edit" },
        { "agent: \"curl*\"", "agent=curl/8", "agent=xcurl/8" },
        { "agent: \"*bot*\"", "agent=Googlebot/2", "agent=Mozilla" },
        { "agent: { exact: \"*\" }", "agent=*", "agent=x" },
        { "agent: { prefix: \"a*\" }", "agent=a*b", "agent=ab" },
        { "agent: { glob: \"a?c\" }", "agent=abc", "agent=abbc" },
        { "account: \"*\"", "account=x", "org=x" },
        { "ip: 10.0.0.0/8", "ip=10.1.2.3", "ip=11.1.2.3" },
        { "ip: 2001:db8::/33", "ip=2001:db8:7fff::1", "ip=2001:db8:8000::1" },
        { "ip: 192.0.2.1", "ip=::ffff:192.0.2.1", "ip=192.0.2.2" },
        { "ip: 0.0.0.0/0", "ip=1.2.3.4", "ip=::1" },
        { "ip: 0.0.0.0/0", "ip=1.2.3.4", "ip=garbage" },
        { "ip: { list: office }", "ip=10.9.9.9", "ip=9.9.9.9" },
        { "account: [bob, { list: office }]", "account=ann", "account=anne" },
        { "uri: /login, method: POST", "uri=/login method=POST", "uri=/login method=GET" },
        { "HEADER: x", "HEADER=x", "header=x" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (!holds(cases[i].match, cases[i].yes))
            fail_msg("%s does not hold for %s", cases[i].match, cases[i].yes);
        if (holds(cases[i].match, cases[i].no) || holds(cases[i].match, ""))
            fail_msg("%s holds for %s", cases[i].match, cases[i].no);
    }
}
