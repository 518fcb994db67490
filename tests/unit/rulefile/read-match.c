/* read-match.c -- which requests a rule is for: patterns, keys, costs. */
#include "unit/test.h"

#include "unit/reading.h"

OWNS(weir__draft)

/* ----------------------------------------------------------------- R1: who ---- */

static void assert_pattern(const char *attribute, const char *yaml, enum weir__pattern_kind kind,
                           const char *text)
{
    char members[512];

    snprintf(members, sizeof(members), "match: { %s: %s }", attribute, yaml);
    OWN(weir__draft) *d = read_rule(members);
    const struct weir__pattern *p = &d->rules[0].match[0].patterns[0];
    assert_fields(*d, (rules[0].matches, 1), (rules[0].match[0].n, 1));
    if (p->kind != kind || strcmp(p->text, text) != 0 || p->len != strlen(text))
        fail_msg("%s: kind %d '%s', expected %d '%s'", members, p->kind, p->text, kind, text);
}

TEST(test_R1_patterns_by_how_they_look)
{
    assert_pattern("uri", "/login", WEIR__EXACT, "/login");
    assert_pattern("uri", "/api/**", WEIR__PREFIX, "/api/");
    assert_pattern("uri", "/api**", WEIR__PREFIX, "/api");
    assert_pattern("uri", "/api/*", WEIR__GLOB, "/api/*");
    assert_pattern("uri", "/api/***", WEIR__GLOB, "/api/***");
    assert_pattern("uri", "/a/*/b/**", WEIR__GLOB, "/a/*/b/**");
    assert_pattern("uri", "/a?/**", WEIR__GLOB, "/a?/**");
    assert_pattern("uri", "\"**/x\"", WEIR__GLOB, "**/x");
    assert_pattern("uri", "\"*\"", WEIR__PRESENT, "*");
    assert_pattern("uri", "\"**\"", WEIR__PRESENT, "*");
    assert_pattern("agent", "curl/*", WEIR__PREFIX, "curl/");
    assert_pattern("agent", "curl/**", WEIR__GLOB, "curl/**");
    assert_pattern("agent", "\"*bot*\"", WEIR__GLOB, "*bot*");
    assert_pattern("agent", "a?c", WEIR__GLOB, "a?c");
    assert_pattern("agent", "\"*\"", WEIR__PRESENT, "*");
    assert_pattern("method", "POST", WEIR__EXACT, "POST");
    assert_pattern("level", "5", WEIR__EXACT, "5");
    assert_pattern("level", "1.50", WEIR__EXACT, "1.50");
    assert_pattern("level", "true", WEIR__EXACT, "true");
    assert_pattern("level", "\"~\"", WEIR__EXACT, "~");
    assert_pattern("ip", "10.0.0.0/8", WEIR__CIDR, "10.0.0.0/8");
    assert_pattern("ip", "\"2001:db8::1\"", WEIR__CIDR, "2001:db8::1");
    assert_pattern("client.ip", "10.0.0.1", WEIR__CIDR, "10.0.0.1");
    assert_pattern("ip", "\"*\"", WEIR__PRESENT, "*");
    assert_pattern("zip", "10.0.0.0/8", WEIR__EXACT, "10.0.0.0/8"); /* no address */
}

TEST(test_R1_patterns_by_form)
{
    assert_pattern("x", "{ exact: \"a*b\" }", WEIR__EXACT, "a*b");
    assert_pattern("x", "{ prefix: \"a*\" }", WEIR__PREFIX, "a*");
    assert_pattern("x", "{ glob: abc }", WEIR__GLOB, "abc");
    assert_pattern("uri", "{ prefix: /api/ }", WEIR__PREFIX, "/api/");
    assert_pattern("account", "{ list: vips }", WEIR__LIST, "vips");
}

TEST(test_R1_match_and_not)
{
    OWN(weir__draft) *d = read_rule("match: { method: [POST, PUT, { glob: \"P*\" }], "
                                    "header.X-Plan: gold }\n    not: { ip: 10.0.0.0/8 }");
    const struct weir__rule_draft *r = &d->rules[0];
    assert_int_equal(r->matches, 2);
    assert_string_equal(r->match[0].attribute, "method");
    assert_int_equal(r->match[0].n, 3);
    assert_string_equal(r->match[0].patterns[1].text, "PUT");
    assert_string_equal(r->match[1].attribute,
                        "header.x-plan"); /* HTTP header names have no case */
    assert_int_equal(r->excepts, 1);
    assert_string_equal(r->except[0].attribute, "ip");
}

TEST(test_R1_key_templates)
{
    OWN(weir__draft) *d = read_rule("key: \"{ip/24}:{account|anonymous}\"");
    assert_string_equal(d->rules[0].key, "{ip/24}:{account|anonymous}");
    weir__draft_destroy(d);
    d = read_rule("key: \"\"");
    assert_string_equal(d->rules[0].key, "");
}

/* Everybody would be counted together, and nobody means that. */
TEST(test_R1_key_without_attribute_refused)
{
    static const char *const meant[] = { "ip", "$ip", "{{ip}}", "<ip>", ":ip" };
    char text[64];

    for (size_t i = 0; i < COUNT_OF(meant); i++) {
        snprintf(text, sizeof(text), "key: \"%s\"", meant[i]);
        assert_rule_problem(text, 7,
                            "a key without an attribute counts everybody together; did you mean "
                            "\"{ip}\"? for one count for all leave out key");
    }
}

TEST(test_R1_cost)
{
    OWN(weir__draft) *d = read_rule("cost: \"{header.X-Size}\"");
    assert_string_equal(d->rules[0].cost_attribute, "header.x-size");
    assert_int_equal(d->rules[0].cost, 1);
    weir__draft_destroy(d);
    d = read_rule("cost: 0");
    assert_int_equal(d->rules[0].cost, 0);
    assert_null(d->rules[0].cost_attribute);
}

TEST(test_R1_cost_that_can_never_pass_refused)
{
    OWN(weir__draft) *d = read_good("version: 1\nrules:\n  - { name: a, limit: [10/1m burst 20, "
                                    "sliding-window 20/1m], cost: 20 }\n");
}

GROUP(make_folder, remove_folder)
