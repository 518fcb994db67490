/* match.c -- the index finds the rules that apply: no more, no fewer, in the order of the file;
 * against trying every one. */
#include "unit/test.h"

#include "unit/requests.h"

#define YAML_SIZE (1 << 20)

static size_t find(const struct weir_rules *set, const char *request,
                   uint32_t found[WEIR__FOUND_MAX])
{
    struct request r = request_of(request);
    struct weir__facts facts;

    weir__facts_gather(&set->attributes, set->lists, r.attrs, r.n, &facts);
    return weir__match_find(set, set->match, &facts, 0, found);
}

/* The names of those found, with spaces between. */
static void assert_found(const struct weir_rules *set, const char *request, const char *wanted)
{
    uint32_t found[WEIR__FOUND_MAX];
    char names[1000] = "";
    size_t n = find(set, request, found), len = 0;

    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? " " : "",
                                set->rules[found[i]].draft->name);
    if (strcmp(names, wanted) != 0)
        fail_msg("%s: found '%s', wanted '%s'", request, names, wanted);
}

TEST(test_without_rules_nothing_applies)
{
    OWN(weir_rules) *set = rules_of("version: 1\nrules: []\n");
    assert_found(set, "ip=1.2.3.4", "");
    assert_found(set, "", "");
}

TEST(test_R1_rules_are_found_in_the_order_of_the_file)
{
    OWN(weir_rules) *set = rules_of(
        RULES("- { name: all, limit: 1/s }\n"
              "- { name: login, match: { uri: /login, method: POST }, limit: 1/s }\n"
              "- { name: api, match: { uri: \"/api/**\" }, limit: 1/s }\n"
              "- { name: api-v1, match: { uri: \"/api/v1/**\" }, limit: 1/s }\n"
              "- { name: office, match: { ip: [10.0.0.0/8, \"2001:db8::/32\"] }, limit: 1/s }\n"
              "- { name: net, match: { ip: 10.1.0.0/16 }, limit: 1/s }\n"
              "- { name: acme, match: { org: acme }, limit: 1/s }\n"
              "- { name: bots, match: { agent: \"*bot*\" }, limit: 1/s }\n"
              "- { name: writes, match: { method: [POST, PUT] }, not: { uri: [/login, \"/api/**\"] "
              "}, limit: 1/s }\n"
              "- { name: known, match: { account: \"*\" }, limit: 1/s }\n"));
    assert_found(set, "", "all");
    assert_found(set, "uri=/login method=POST", "all login");
    assert_found(set, "uri=/login method=GET", "all");
    assert_found(set, "uri=/api/x", "all api");
    assert_found(set, "uri=/api/v1/x", "all api api-v1");
    assert_found(set, "uri=/api", "all");
    assert_found(set, "ip=10.1.9.9", "all office net");
    assert_found(set, "ip=10.2.9.9", "all office");
    assert_found(set, "ip=2001:db8::7", "all office");
    assert_found(set, "ip=2001:db9::7", "all");
    assert_found(set, "org=acme agent=xbot account=ann", "all acme bots known");
    assert_found(set, "method=PUT uri=/x", "all writes");
    assert_found(set, "method=PUT", "all writes"); /* what is missing is not excepted */
    assert_found(set, "method=PUT uri=/api/v1/7 ip=10.1.1.1 org=acme",
                 "all api api-v1 office net acme");
}

/* One rule that hangs in many places is found once. */
TEST(test_a_rule_is_found_once)
{
    OWN(weir_rules) *set = rules_of(RULES(
        "- { name: a, match: { ip: [10.0.0.0/8, 10.1.0.0/16, 10.1.1.0/24, 0.0.0.0/0] }, limit: 1/s "
        "}\n"
        "- { name: b, match: { uri: [\"/a/**\", \"/a/b/**\", /a/b/c, \"/**\"] }, limit: 1/s }\n"
        "- { name: c, match: { ip: 10.1.1.1 }, limit: 1/s }\n"
        "- { name: d, match: { ip: 10.1.1.2 }, limit: 1/s }\n"
        "- { name: e, match: { uri: /a/b/c }, limit: 1/s }\n"));
    assert_found(set, "ip=10.1.1.1 uri=/a/b/c", "a b c e");
}

TEST(test_more_than_1024_apply)
{
    FINALLY(memory_drop) char *yaml = malloc(YAML_SIZE);
    uint32_t found[WEIR__FOUND_MAX];
    size_t len = (size_t)snprintf(yaml, YAML_SIZE, "version: 1\nrules:\n");
    for (int i = 0; i < 2200; i++) /* half of them are found late, below `rest` */
        len += (size_t)snprintf(yaml + len, YAML_SIZE - len,
                                "- { name: r%d, match: { %s }, limit: 1/s }\n", i,
                                i % 2 ? "a: x" : "b: \"*y*\"");
    OWN(weir_rules) *set = rules_of(yaml);
    assert_int_equal(find(set, "a=x b=y", found), WEIR__FOUND_MAX);
    for (uint32_t i = 0; i < WEIR__FOUND_MAX; i++)
        assert_int_equal(found[i], i); /* those first in the file */
    assert_int_equal(find(set, "a=x", found), WEIR__FOUND_MAX);
    assert_int_equal(found[WEIR__FOUND_MAX - 1], 2 * WEIR__FOUND_MAX - 1);
    struct request r = request_of("a=x b=y"); /* and from there on, up to the last */
    struct weir__facts facts;
    weir__facts_gather(&set->attributes, set->lists, r.attrs, r.n, &facts);
    uint32_t from = 0;
    for (size_t n = WEIR__FOUND_MAX; n == WEIR__FOUND_MAX;) {
        n = weir__match_find(set, set->match, &facts, from, found);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(found[i], from++);
    }
    assert_int_equal(from, 2200);
    assert_int_equal(weir__match_find(set, set->match, &facts, 2199, found), 1);
    assert_int_equal(weir__match_find(set, set->match, &facts, 2200, found), 0);
}

/* ---------------------------------------------------- against all of them ---- */

static const char *const patterns[] = {
    "uri: /a",
    "uri: [/a, /b]",
    "uri: \"/a/**\"",
    "uri: \"/a/*\"",
    "uri: \"/**\"",
    "uri: /a/b",
    "uri: \"/a/b/**\"",
    "uri: \"*\"",
    "ip: 10.0.0.0/8",
    "ip: 10.1.0.0/16",
    "ip: 10.1.1.1",
    "ip: [10.1.1.0/24, 192.0.2.1]",
    "ip: \"2001:db8::/32\"",
    "ip: \"2001:db8::1\"",
    "ip: 0.0.0.0/0",
    "ip: \"::/0\"",
    "ip: { list: office }",
    "ip: \"*\"",
    "org: acme",
    "org: \"ac*\"",
    "org: [acme, { list: office }]",
    "org: \"a?me\"",
    "org: \"*\"",
    "org: { prefix: a }",
    "method: GET",
    "method: [POST, PUT]",
};
static const size_t first_of[] = { 0, 8, 18, 24, 26 };

static const char *const values[4][8] = {
    { "", "uri=/a ", "uri=/b ", "uri=/a/b ", "uri=/a/b/c ", "uri=/a?x ", "uri=//a/./b ",
      "uri=/ab " },
    { "", "ip=10.1.1.1 ", "ip=10.1.1.9 ", "ip=10.9.9.9 ", "ip=192.0.2.1 ", "ip=2001:db8::1 ",
      "ip=2001:db9::1 ", "ip=garbage " },
    { "", "org=acme ", "org=ac ", "org=a ", "org=axme ", "org=zeta ", "org=acmeacme ", "org= " },
    { "", "method=GET ", "method=POST ", "method=PUT ", "method=get ", "method=G ",
      "method=GETGET ", "method=* " },
};

static size_t random_conditions(uint64_t *seed, char *out, size_t size, uint64_t one_in)
{
    size_t len = 0;

    for (size_t a = 0; a < 4; a++) {
        if (random64(seed) % one_in != 0)
            continue;
        size_t count = first_of[a + 1] - first_of[a];
        len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
                                patterns[first_of[a] + random64(seed) % count]);
    }
    return len;
}

static struct weir_rules *random_set(uint64_t *seed, size_t n)
{
    char *yaml = malloc(YAML_SIZE), match[400], except[400];
    size_t len = (size_t)snprintf(
        yaml, YAML_SIZE,
        "version: 1\nlists: { office: { ip: [10.1.0.0/16], org: [zeta] } }\nrules:\n");

    for (size_t i = 0; i < n; i++) {
        match[0] = except[0] = '\0';
        random_conditions(seed, match, sizeof(match), 2);
        random_conditions(seed, except, sizeof(except), 9);
        len += (size_t)snprintf(yaml + len, YAML_SIZE - len,
                                "- { name: r%zu, match: { %s }, not: { %s }, limit: 1/s }\n", i,
                                match, except);
    }
    struct weir_rules *set = rules_of(yaml);
    free(yaml);
    return set;
}

/* Every rule's conditions one by one. */
static size_t try_all(const struct weir_rules *set, const struct weir__facts *facts, uint32_t *out)
{
    size_t n = 0;

    for (uint32_t i = 0; i < set->n_rules; i++) {
        const struct weir__rule *rule = &set->rules[i];
        bool applies = true;
        for (uint32_t c = 0; c < (uint32_t)rule->matches + rule->excepts; c++)
            applies = applies && weir__clause_holds(set, &set->clauses[rule->clauses_first + c],
                                                    facts) == (c < rule->matches);
        if (applies && n < WEIR__FOUND_MAX)
            out[n++] = i;
    }
    return n;
}

TEST(test_R1_the_same_as_trying_each)
{
    static const size_t sizes[] = { 1, 2, 3, 4, 5, 8, 20, 60, 150, 400 };
    uint64_t seed = 11;

    for (size_t s = 0; s < COUNT_OF(sizes) * 3; s++) {
        OWN(weir_rules) *set = random_set(&seed, sizes[s % COUNT_OF(sizes)]);
        for (unsigned v = 0; v < 8 * 8 * 8 * 8; v += 1 + (unsigned)(random64(&seed) % 7)) {
            char request[200];
            uint32_t found[WEIR__FOUND_MAX], wanted[WEIR__FOUND_MAX];
            snprintf(request, sizeof(request), "%s%s%s%s", values[0][v & 7], values[1][v >> 3 & 7],
                     values[2][v >> 6 & 7], values[3][v >> 9]);
            struct request r = request_of(request);
            struct weir__facts facts;
            weir__facts_gather(&set->attributes, set->lists, r.attrs, r.n, &facts);
            size_t n = weir__match_find(set, set->match, &facts, 0, found);
            assert_int_equal(n, try_all(set, &facts, wanted));
            assert_memory_equal(found, wanted, n * sizeof(*found));
            size_t skipped = n ? random64(&seed) % n : 0; /* from behind any of them */
            uint32_t from = skipped ? wanted[skipped - 1] + 1 : 0;
            assert_int_equal(weir__match_find(set, set->match, &facts, from, found), n - skipped);
            assert_memory_equal(found, wanted + skipped, (n - skipped) * sizeof(*found));
        }
    }
}

/* Ten thousand rules, each for its own path and tenant, of which one applies. */
TEST(test_R1_ten_thousand_rules)
{
    enum { MANY = 10000 };
    char *yaml = malloc(YAML_SIZE), request[100], name[20];
    size_t len = (size_t)snprintf(yaml, YAML_SIZE, "version: 1\nrules:\n");
    for (int i = 0; i < MANY; i++)
        len += (size_t)snprintf(
            yaml + len, YAML_SIZE - len,
            "- { name: r%d, match: { org: o%d, uri: \"/p%d/**\" }, limit: 1/s }\n", i, i, i % 100);
    assert_true(len < YAML_SIZE - 1);
    struct weir_rules *set = rules_of(yaml);
    for (int i = 0; i < MANY; i += 37) {
        snprintf(request, sizeof(request), "org=o%d uri=/p%d/x", i, i % 100);
        snprintf(name, sizeof(name), "r%d", i);
        assert_found(set, request, name);
        snprintf(request, sizeof(request), "org=o%d uri=/p%d/x", i, (i + 1) % 100);
        assert_found(set, request, "");
    }
    weir_rules_destroy(set);
    free(yaml);
}

/* A condition of more patterns than are split by, and rules of more conditions than bits are kept
 * for. */
TEST(test_R1_many_patterns_and_many_conditions)
{
    char *yaml = malloc(YAML_SIZE), request[2000] = "";
    uint32_t found[WEIR__FOUND_MAX];
    size_t len = (size_t)snprintf(yaml, YAML_SIZE, "version: 1\nrules:\n");

    for (int rule = 0; rule < 5; rule++) {
        len += (size_t)snprintf(yaml + len, YAML_SIZE - len,
                                "- name: r%d\n  limit: 1/s\n  match: { code: [", rule);
        for (int i = 0; i < 100; i++)
            len += (size_t)snprintf(yaml + len, YAML_SIZE - len, "%s%d", i ? ", " : "",
                                    100 * rule + i);
        len += (size_t)snprintf(yaml + len, YAML_SIZE - len, "]");
        for (int i = 0; i < 40; i++)
            len += (size_t)snprintf(yaml + len, YAML_SIZE - len, ", a%d: x%s", i,
                                    i == 39 && rule == 4 ? "y" : "");
        len += (size_t)snprintf(yaml + len, YAML_SIZE - len, " }\n");
    }
    struct weir_rules *set = rules_of(yaml);
    struct weir_attr attrs[41];
    static char names[40][16];
    for (int i = 0; i < 40; i++) {
        snprintf(names[i], sizeof(names[i]), "a%d", i);
        attrs[i] = (struct weir_attr)ATTR(names[i], "x");
    }
    for (int code = 0; code < 500; code += 49) {
        snprintf(request, sizeof(request), "%d", code);
        attrs[40] = (struct weir_attr)ATTR("code", request);
        struct weir__facts facts;
        weir__facts_gather(&set->attributes, set->lists, attrs, 41, &facts);
        size_t n = weir__match_find(set, set->match, &facts, 0, found);
        assert_int_equal(n, code < 400 ? 1 : 0); /* the last rule's last condition does not hold */
        if (n == 1)
            assert_int_equal(found[0], code / 100);
        attrs[39].value = "z";
        weir__facts_gather(&set->attributes, set->lists, attrs, 41, &facts);
        assert_int_equal(weir__match_find(set, set->match, &facts, 0, found), 0);
        attrs[39].value = "x";
    }
    weir_rules_destroy(set);
    free(yaml);
}
