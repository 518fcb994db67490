/* operator-lists.c -- lists: allow and deny, and edits by hand. */
#include "unit/test.h"

#include "unit/requests.h"

static const char listed[] =
    "version: 1\n"
    "lists:\n"
    "  allow: { ip: [10.0.0.0/8, 192.0.2.0/24], account: [root] }\n"
    "  deny: { ip: [10.6.6.0/24, \"2001:db8:bad::/48\"], header.x-app: [evil] }\n"
    "  vips: { account: [ann] }\n"
    "rules:\n"
    "- { name: all, key: \"{ip}\", limit: 1/60, not: { account: { list: vips } } }\n";

TEST(test_R3_allow_and_deny)
{
    struct weir *weir = engine_of(listed);

    for (int i = 0; i < 5; i++) {
        struct weir_ruling r = check(weir, "ip=10.1.1.1", NOW);
        assert_allowed_by(r, NULL);
        assert_string_equal(r.list, "allow");
        assert_int_equal(r.applied, 0);
        r = check(weir, "ip=203.0.113.1 account=root", NOW);
        assert_allowed_by(r, NULL);
        assert_string_equal(r.list, "allow");
        r = check(weir, "ip=2001:db8:bad:1::7", NOW);
        assert_refused_by(r, NULL);
        assert_string_equal(r.list, "deny");
        assert_int_equal(r.decision.reason, WEIR_DENIED);
        assert_int_equal(r.decision.retry, WEIR_NEVER);
        assert_int_equal(r.level, 3);
        assert_false(passes(weir, "ip=10.6.6.9", NOW)); /* deny wins over allow */
        assert_false(
            passes(weir, "ip=10.1.1.1 header.x-app=evil", NOW)); /* whatever the attribute */
    }
    struct weir_ruling r = check(weir, "ip=203.0.113.1", NOW);
    assert_allowed_by(r, "all");
    assert_null(r.list);
    assert_false(passes(weir, "ip=203.0.113.1", NOW));
    assert_int_equal(pass_of(weir, 5, "ip=203.0.113.1 account=ann", NOW), 5);
    assert_int_equal(rule_left(weir, "all", "ip=10.1.1.1", NOW),
                     1); /* an allowed request takes nothing */
    weir_destroy(weir);
}

TEST(test_R3_lists_are_edited_at_run_time)
{
    struct weir *weir = engine_of(listed);

    assert_true(passes(weir, "ip=203.0.113.1", NOW));
    assert_int_equal(edit_list(weir, "deny", "ip", "203.0.113.0/24", "10.6.6.0/24"), WEIR_OK);
    assert_string_equal(check(weir, "ip=203.0.113.1", NOW).list, "deny");
    assert_string_equal(check(weir, "ip=10.6.6.9", NOW).list, "allow");
    assert_int_equal(edit_list(weir, "vips", "account", "bob", "ann"),
                     WEIR_OK); /* one that a rule names */
    assert_int_equal(pass_of(weir, 5, "ip=7:: account=bob", NOW), 5);
    assert_int_equal(pass_of(weir, 5, "ip=7:: account=ann", NOW), 1);
    assert_int_equal(info_of(weir, "all").allowed, 2); /* tallies go on */
    use(weir, listed, NOW);                            /* begin anew as the rules have them */
    assert_string_equal(check(weir, "ip=10.6.6.9", NOW).list, "deny");
    assert_false(passes(weir, "ip=203.0.113.1", NOW)); /* by the rule: its state is there still */
    assert_null(check(weir, "ip=203.0.113.1", NOW).list);
    weir_destroy(weir);
}

TEST(test_R3_an_attribute_that_no_rule_looks_at)
{
    struct weir *weir = engine_of(listed);

    assert_int_equal(edit_list(weir, "deny", "country", "xx", NULL), WEIR_OK);
    assert_int_equal(edit_list(weir, "deny", "uri", "/secret", NULL), WEIR_OK);
    assert_int_equal(edit_list(weir, "deny", "peer.ip", "198.51.100.0/24", NULL), WEIR_OK);
    assert_false(passes(weir, "country=xx", NOW));
    assert_true(passes(weir, "country=xy", NOW));
    assert_false(passes(weir, "uri=/x/..//%73ecret?q", NOW));
    assert_false(passes(weir, "peer.ip=::ffff:198.51.100.1", NOW));
    assert_false(passes(weir, "ip=10.6.6.9", NOW));
    assert_int_equal(edit_list(weir, "deny", "country", NULL, "xx"), WEIR_OK);
    assert_true(passes(weir, "country=xx", NOW));
    weir_destroy(weir);
}

TEST(test_R3_a_bad_edit_changes_nothing)
{
    struct weir *weir = engine_of(listed);

    assert_int_equal(edit_list(weir, "deny", "ip", "10.0.0.0/33", "10.6.6.0/24"), WEIR_INVALID);
    assert_int_equal(edit_list(weir, "deny", "", "x", NULL), WEIR_INVALID);
    assert_string_equal(check(weir, "ip=10.6.6.9", NOW).list, "deny");
    weir_destroy(weir);
}

/* What the file would refuse is refused here: a list that nothing asks for, a pattern, and a name
 * that no request has. */
TEST(test_R3_an_edit_without_effect_is_a_mistake)
{
    struct weir *weir = engine_of(listed);

    assert_int_equal(edit_list(weir, "dney", "ip", "203.0.113.1", NULL), WEIR_INVALID);
    assert_int_equal(edit_list(weir, "deny", "account", "mal*", NULL), WEIR_INVALID);
    assert_int_equal(edit_list(weir, "deny", "account", "", NULL), WEIR_INVALID);
    assert_int_equal(edit_list(weir, "deny", "not a name", "x", NULL), WEIR_INVALID);
    assert_int_equal(edit_list(weir, "deny", "header.X-App", "worse", NULL), WEIR_OK);
    assert_false(passes(weir, "header.x-app=worse", NOW));
    assert_false(passes(weir, "header.X-APP=worse", NOW));
    assert_int_equal(edit_list(weir, "deny", "ip", NULL, "2001:DB8:BAD:0::/48"),
                     WEIR_OK); /* the network, not its spelling */
    assert_true(passes(weir, "ip=2001:db8:bad::1", NOW));
    weir_destroy(weir);
}

TEST(test_R3_a_hundred_thousand_entries)
{
    enum { MANY = 100000 };
    static char texts[MANY][20];
    static const char *entries[MANY];
    struct weir *weir = engine_of(RULES("- { name: all, limit: 1/60 }\n"));
    for (int i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof(texts[i]), "11.%d.%d.0/24", i >> 8 & 255, i & 255);
        if (i >> 16)
            texts[i][1] = '2';
        entries[i] = texts[i];
    }
    assert_int_equal(
        weir_list_edit(weir, &(struct weir_list_edit){ "deny", "ip", entries, MANY, NULL, 0 },
                       NULL),
        WEIR_OK);
    assert_int_equal(
        weir_list_edit(weir, &(struct weir_list_edit){ "deny", "account", entries, MANY, NULL, 0 },
                       NULL),
        WEIR_OK);
    for (int i = 0; i < MANY; i += 17) {
        char request[60];
        snprintf(request, sizeof(request), "ip=1%d.%d.%d.77", i >> 16 ? 2 : 1, i >> 8 & 255,
                 i & 255);
        assert_int_equal(check(weir, request, NOW).decision.reason, WEIR_DENIED);
        snprintf(request, sizeof(request), "account=%.19s", texts[i]);
        assert_int_equal(check(weir, request, NOW).decision.reason, WEIR_DENIED);
    }
    assert_true(passes(weir, "ip=13.0.0.1 account=11.0.0.0", NOW));
    weir_destroy(weir);
}
