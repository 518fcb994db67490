/* read-match.c -- which requests a rule is for: patterns, keys, costs. */
#include "unit/test.h"

#include "unit/reading.h"

/* ----------------------------------------------------------------- R1: who ---- */

static void assert_pattern(const char *attribute, const char *yaml, enum weir__pattern_kind kind,
                           const char *text)
{
    char members[512];
    snprintf(members, sizeof(members), "match: { %s: %s }", attribute, yaml);
    struct weir__draft *d = read_rule(members);
    const struct weir__pattern *p = &d->rules[0].match[0].patterns[0];
    assert_int_equal(d->rules[0].matches, 1);
    assert_int_equal(d->rules[0].match[0].n, 1);
    if (p->kind != kind || strcmp(p->text, text) != 0 || p->len != strlen(text))
        fail_msg("%s: kind %d '%s', expected %d '%s'", members, p->kind, p->text, kind, text);
    weir__draft_destroy(d);
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
    assert_rule_problem("match: { x: { exact: a, glob: b } }", 13, "a pattern is one of");
    assert_rule_problem("match: { x: {} }", 13, "a pattern is one of");
    assert_rule_problem("match: { x: { glob: [a] } }", 21, "glob must be text");
    assert_rule_problem("match: { x: { exact: \"\" } }", 23, "is empty");
    assert_rule_problem("match: { ip: { prefix: \"10.\" } }", 25, "'ip' is an address");
    assert_rule_problem("match: { org: { list: vips } }", 23, "has no entries of 'org'");
}

TEST(test_R1_match_and_not)
{
    struct weir__draft *d = read_rule("match: { method: [POST, PUT, { glob: \"P*\" }], "
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
    assert_int_equal(r->except[0].patterns[0].mark.line, 7);
    assert_int_equal(r->except[0].patterns[0].mark.column, 16);
    weir__draft_destroy(d);
}

TEST(test_R1_conditions_that_could_not_hold)
{
    assert_rule_problem("match: { method: [] }", 18, "nothing would match");
    assert_rule_problem("match: { org: \"\" }", 16, "write not: { org: \"*\" }");
    assert_rule_problem("match: { uri: login }", 15, "a path begins with /; write \"/login\"");
    assert_rule_problem("match: { uri: { exact: /a?b } }", 24, "write '/a'");
    assert_rule_problem("match: { uri: /a//b }", 15, "write '/a/b'");
    assert_rule_problem("match: { uri: /%61 }", 15, "write '/a'");
    assert_rule_problem("match: { ip: 10.0.0.1/8 }", 23, "10.0.0.0/8");
    assert_rule_problem("match: { \"user agent\": x }", 11, "an attribute's name");
    assert_rule_problem("match: { org: }", 10, "found nothing");
}

TEST(test_R1_key_templates)
{
    struct weir__draft *d = read_rule("key: \"{ip/24}:{account|anonymous}\"");
    assert_string_equal(d->rules[0].key, "{ip/24}:{account|anonymous}");
    assert_int_equal(d->rules[0].key_mark.line, 6);
    weir__draft_destroy(d);
    assert_rule_problem("key: \"{ip\"", 10, "expected }");
    assert_rule_problem("key: \"{account/24}\"", 15, "only an address");
    d = read_rule("key: \"\"");
    assert_string_equal(d->rules[0].key, "");
    weir__draft_destroy(d);
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
    assert_rule_problem("key: \"all of them\"", 7,
                        "a key without an attribute counts everybody together; for one count for "
                        "all leave out key");
}

TEST(test_R1_cost)
{
    struct weir__draft *d = read_rule("cost: \"{header.X-Size}\"");
    assert_string_equal(d->rules[0].cost_attribute, "header.x-size");
    assert_int_equal(d->rules[0].cost, 1);
    weir__draft_destroy(d);
    d = read_rule("cost: 0");
    assert_int_equal(d->rules[0].cost, 0);
    assert_null(d->rules[0].cost_attribute);
    weir__draft_destroy(d);
    assert_rule_problem("cost: -1", 7, "cost must be a number");
    assert_rule_problem("cost: 1.5", 8, "whole number");
    assert_rule_problem("cost: \"{a}{b}\"", 8, "one attribute in braces");
    assert_rule_problem("cost: 1 2", 9, "one number");
}

TEST(test_R1_cost_that_can_never_pass_refused)
{
    struct weir__draft *d = read_good("version: 1\nrules:\n  - { name: a, limit: [10/1m burst 20, "
                                      "sliding-window 20/1m], cost: 20 }\n");
    weir__draft_destroy(d);
    assert_problem("version: 1\nrules:\n  - { name: a, limit: 10/1m, cost: 20 }\n", 3, 36,
                   "cost 20 is more than 10/1m can ever pass at once (10): every request would be "
                   "refused for ever; write a limit with "
                   "burst 20 or more");
    assert_problem(
        "version: 1\nrules:\n  - { name: a, cost: 20, limit: [99/1m, sliding-window 10/1m] }\n", 3,
        22,
        "cost 20 is more than sliding-window 10/1m can ever pass at once (10): every request would "
        "be refused for ever; write a "
        "limit of 20 or more");
    assert_problem(
        "version: 1\nrules:\n  - { name: a, cost: 9223372036854775807, limit: 7/month }\n", 3, 22,
        "write a limit of 9223");
}

TEST(test_R1_whole_url_is_no_path)
{
    assert_rule_problem("match: { uri: \"https://example.org/login\" }", 16,
                        "uri is the path alone, without scheme and host; write '/login'");
    assert_rule_problem("match: { uri: \"https://example.org\" }", 16,
                        "write '/', and the host under host:");
    assert_rule_problem("match: { uri: login }", 15, "a path begins with /; write \"/login\"");
}

GROUP(make_folder, remove_folder)
