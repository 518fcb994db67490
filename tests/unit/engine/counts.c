/* counts.c -- counts of all processes on a table; here two engines stand for two of them. */
#include "unit/test.h"

#include "unit/requests.h"

#define TWO                                             \
    RULES("- { name: a, key: \"{ip}\", limit: 2/60 }\n" \
          "- { name: b, match: { uri: /b }, limit: 1/60 }\n")

static struct weir_rule_info shared_of(struct weir *weir, const char *rule)
{
    struct weir_rule_info info;

    for (int64_t at = 0; weir_rule_next_shared(weir, &at, &info);)
        if (strcmp(info.name, rule) == 0)
            return info;
    fail_msg("there is no rule %s", rule);
    return info;
}

static void assert_shared(struct weir *weir, const char *rule, int64_t allowed, int64_t refused)
{
    struct weir_rule_info info = shared_of(weir, rule);

    assert_fields(info, (allowed, allowed), (refused, refused), (banned, 0), (shadow_refused, 0));
}

static void assert_total(struct weir *weir, int64_t allowed, int64_t refused, int64_t unmatched)
{
    struct weir_totals t;

    memset(&t, 0xa5, sizeof(t));
    weir_totals_shared(weir, &t);
    assert_fields(t, (checked, allowed + refused), (allowed, allowed), (refused, refused),
                  (denied, 0), (allow_listed, 0), (unmatched, unmatched), (shadow_refused, 0));
}

TEST(test_S5_counts_of_all_processes)
{
    OWN(weir_table) *table = private_table(false, 1000);
    OWN(weir) *one = engine_on(table);
    OWN(weir) *other = engine_on(table);

    use(one, TWO, NOW);
    use(other, TWO, NOW);
    assert_int_equal(pass_of(one, 3, "ip=192.0.2.1 uri=/b", NOW), 1);
    assert_int_equal(pass_of(other, 3, "ip=192.0.2.2 uri=/a", NOW), 2);
    assert_int_equal(pass_of(other, 1, "uri=/a", NOW), 1);
    assert_total(one, 0, 0, 0);
    weir_counts_share(one);
    assert_shared(other, "a", 1, 0);
    assert_shared(other, "b", 1, 2);
    weir_counts_share(other);
    weir_counts_share(other); /* again: nothing is added twice */
    weir_counts_share(one);
    assert_shared(one, "a", 3, 1);
    assert_shared(one, "b", 1, 2);
    assert_total(other, 4, 3, 1);
    assert_int_equal(info_of(one, "a").allowed, 1); /* its own are as before */
}

TEST(test_shared_counts_survive_other_rules)
{
    OWN(weir_table) *table = private_table(false, 1000);
    OWN(weir) *one = engine_on(table);
    OWN(weir) *other = engine_on(table);

    use(one, TWO, NOW);
    use(other, TWO, NOW);
    weir_counts_share(one);
    assert_int_equal(pass_of(one, 2, "ip=192.0.2.1 uri=/b", NOW), 1);
    use(one, RULES("- { name: a, key: \"{ip}\", limit: 9/60 }\n"), NOW); /* b is not there */
    assert_shared(other, "a", 1, 0);
    assert_shared(other, "b", 1, 1);
    assert_int_equal(pass_of(one, 1, "ip=192.0.2.8", NOW), 1);
    assert_int_equal(edit_list(one, "deny", "ip", "10.0.0.0/8", NULL), WEIR_OK);
    assert_int_equal(pass_of(one, 1, "ip=192.0.2.9", NOW), 1);
    weir_counts_share(one);
    assert_shared(one, "a", 3, 0);
    assert_int_equal(info_of(one, "a").allowed, 3);
}

TEST(test_counts_stay_in_the_table)
{
    OWN(weir_table) *table = private_table(false, 1000);
    OWN(weir) *weir = engine_on(table);

    weir_counts_share(weir); /* there are no rules yet */
    use(weir, TWO, NOW);
    assert_int_equal(pass_of(weir, 3, "ip=192.0.2.1", NOW), 2);
    weir_counts_share(weir);
    weir_destroy(weir);
    weir = engine_on(table);
    use(weir, TWO, NOW);
    assert_shared(weir, "a", 2, 1);
    assert_int_equal(info_of(weir, "a").allowed, 0);
}

TEST(test_an_engine_that_looks_shares_nothing)
{
    OWN(weir_table) *table = private_table(false, 1000);
    OWN(weir) *weir = engine_on(table);
    OWN(weir) *looks = engine_on(table);
    struct weir_error error = { 0 };

    use(weir, TWO, NOW);
    assert_int_equal(pass_of(weir, 3, "ip=192.0.2.1", NOW), 2);
    weir_counts_share(weir);
    assert_ok(weir__engine_peek_only(looks, &error));
    use(looks, TWO, NOW);
    weir_counts_share(looks);
    assert_shared(looks, "a", 2, 1);
    assert_total(looks, 2, 1, 0);
}
