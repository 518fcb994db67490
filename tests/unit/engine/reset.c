/* reset.c -- the keys of a request made fresh. */
#include "unit/test.h"

#include "unit/requests.h"

static const char two_rules[] =
    RULES("- { name: per-ip, key: \"{ip}\", limit: [3/60, 5/1h] }\n"
          "- { name: login, match: { uri: /login }, key: \"{ip}\", limit: 3/60 }\n"
          "- { name: per-account, key: \"{account}\", limit: 3/60 }\n");

TEST(test_S6_reset_of_every_rule_that_applies)
{
    struct weir *weir = engine_of(two_rules);

    pass_of(weir, 3, "ip=::1 uri=/login", NOW);
    pass_of(weir, 3, "ip=2:: uri=/login", NOW);
    assert_false(passes(weir, "ip=::1", NOW));
    assert_int_equal(reset(weir, NULL, "ip=::1 uri=/login", NOW), 2); /* the account is not known */
    assert_int_equal(rule_left(weir, "per-ip", "ip=::1", NOW), 3);
    assert_int_equal(explained(weir, "per-ip", "ip=::1", NOW).limits[1].decision.remaining, 5);
    assert_int_equal(pass_of(weir, 5, "ip=::1 uri=/login", NOW), 3);
    assert_false(passes(weir, "ip=2::", NOW)); /* another key stays as it was */
    weir_destroy(weir);
}

TEST(test_S6_reset_of_one_rule)
{
    struct weir *weir = engine_of(two_rules);

    pass_of(weir, 3, "ip=::1 uri=/login account=ann", NOW);
    assert_int_equal(reset(weir, "login", "ip=::1 uri=/login account=ann", NOW), 1);
    assert_int_equal(rule_left(weir, "login", "ip=::1 uri=/login", NOW), 3);
    assert_int_equal(rule_left(weir, "per-ip", "ip=::1", NOW), 0);
    assert_int_equal(rule_left(weir, "per-account", "account=ann", NOW), 0);
    assert_int_equal(reset(weir, "login", "ip=::1 uri=/", NOW), 0); /* does not apply */
    assert_int_equal(reset(weir, "per-account", "ip=::1", NOW), 0); /* has no key */
    weir_destroy(weir);
}

TEST(test_S6_reset_where_there_is_no_such_rule)
{
    struct weir *weir = engine_on(NULL);

    assert_int_equal(reset(weir, NULL, "ip=::1", NOW), 0); /* no rules at all */
    assert_int_equal(reset(weir, "r", "ip=::1", NOW), WEIR_INVALID);
    use(weir, two_rules, NOW);
    assert_int_equal(weir_reset(weir, NULL, NULL, 0, NOW, NULL), 0);
    assert_fails(weir_reset(weir, "nobody", NULL, 0, NOW, &error), WEIR_INVALID,
                 "there is no rule 'nobody'");
    weir_destroy(weir);
}

TEST(test_S6_reset_whatever_the_mode_and_the_lists)
{
    struct weir *weir = engine_of("version: 1\nlists: { deny: { ip: [\"::1\"] } }\nrules:\n"
                                  "- { name: off, key: \"{ip}\", limit: 1/60 }\n"
                                  "- { name: shadow, key: \"{ip}\", limit: 1/60 }\n");

    assert_int_equal(edit_list(weir, "deny", "ip", NULL, "::1"), WEIR_OK);
    assert_true(passes(weir, "ip=::1", NOW));
    assert_int_equal(edit_list(weir, "deny", "ip", "::1", NULL), WEIR_OK);
    assert_int_equal(weir_mode_set(weir, "off", WEIR_OFF, NULL), WEIR_OK);
    assert_int_equal(weir_mode_set(weir, "shadow", WEIR_SHADOW, NULL), WEIR_OK);
    assert_int_equal(reset(weir, NULL, "ip=::1", NOW), 2);
    assert_int_equal(weir_mode_set(weir, NULL, WEIR_ENFORCE, NULL), WEIR_OK);
    assert_int_equal(weir_mode_set(weir, "off", WEIR_ENFORCE, NULL), WEIR_OK);
    assert_int_equal(rule_left(weir, "off", "ip=::1", NOW), 1);
    assert_int_equal(rule_left(weir, "shadow", "ip=::1", NOW), 1);
    weir_destroy(weir);
}

/* More of them apply than one check can ask. */
TEST(test_S6_reset_of_hundreds_of_rules)
{
    char *yaml = malloc(1 << 16);
    size_t len = (size_t)sprintf(yaml, "version: 1\nrules:\n");

    for (int i = 0; i < 300; i++)
        len += (size_t)sprintf(yaml + len,
                               "- { name: r%d, key: \"{ip}\", limit: 1/60, mode: shadow }\n", i);
    struct weir *weir = engine_of(yaml);
    assert_true(passes(weir, "ip=::1", NOW));
    assert_int_equal(reset(weir, NULL, "ip=::1", NOW), 300);
    assert_true(passes(weir, "ip=::1", NOW));
    weir_destroy(weir);
    free(yaml);
}
