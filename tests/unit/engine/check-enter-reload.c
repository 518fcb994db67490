/* check-enter-reload.c -- guards while rules and lists change, and engines that share them. */
#include "unit/test.h"

#include "unit/visits.h"

TEST(test_R6_a_changed_guard_keeps_its_permits)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: g, concurrency: 2 }\n"));
    struct visit a = enter(weir, "ip=::1", NOW), b = enter(weir, "ip=::1", NOW);
    use(weir, GUARDS("- { name: g, concurrency: 3 }\n"), NOW);
    assert_int_equal(in_flight(weir, "g", NOW), 2);
    assert_int_equal(guard_info(weir, "g", NOW).options.max, 3);
    entered(weir, "ip=::1", NOW, 1);
    refused(weir, "ip=::1", NOW, "g", WEIR_BUSY);
    use(weir, "version: 1\n", NOW); /* it is gone; its permits come back all the same */
    entered(weir, "ip=::1", NOW, 0);
    leave(weir, &a, WEIR_SUCCEEDED, NOW);
    leave(weir, &b, WEIR_SUCCEEDED, NOW);
    use(weir, GUARDS("- { name: g, concurrency: 3 }\n"), NOW);
    assert_int_equal(in_flight(weir, "g", NOW), 1);
}

TEST(test_R6_edited_lists_leave_guards)
{
    static const char *const add[] = { "10.0.0.0/8" };

    OWN(weir) *weir = engine_of("version: 1\nguards: [{ name: g, concurrency: 1, fallback: { "
                                "status: 200 } }]\nlists: { deny: { ip: [] } }\n");
    entered(weir, "ip=::1", NOW, 1);
    assert_ok(
        weir_list_edit(weir, &(struct weir_list_edit){ "deny", "ip", add, 1, NULL, 0 }, NULL));
    refused(weir, "ip=::1", NOW, "g", WEIR_BUSY);
    assert_int_equal(guard_of(weir, "g").fallback.status, 200);
}

/* All or nothing: no guard is made, none is changed. */
TEST(test_R6_rules_that_do_not_fit_change_nothing)
{
    OWN(weir_table) *table = NULL;
    struct weir_error error = { 0 };
    assert_ok(weir_table_create(
        &table, &(struct weir_table_options){ .keys = 1000, .guards = 2, .limiters = 6 }, &error));
    OWN(weir) *weir = engine_on(table);
    use(weir, GUARDS("- { name: a, concurrency: 5 }\n"), NOW);
    struct weir_rules *rules =
        rules_of(GUARDS("- { name: a, concurrency: 6 }\n- { name: b, concurrency: 1 }\n- { name: "
                        "c, concurrency: 1 }\n"));
    assert_int_equal(weir_use(weir, rules, NOW, &error), WEIR_NO_MEMORY);
    assert_contains(error.text,
                    "the rules need 2 more guards, and the table, made for 2, has room for 1");
    weir_rules_destroy(rules);
    assert_int_equal(guard_info(weir, "a", NOW).options.max, 5);
    assert_null(weir__guard_at(table, 1));
    use(weir, GUARDS("- { name: a, concurrency: 6 }\n- { name: b, concurrency: 1 }\n"), NOW);
    assert_int_equal(guard_info(weir, "a", NOW).options.max, 6);
}

/* Two engines on one table share guards; each may change them. */
TEST(test_G1_engines_on_one_table_share_guards)
{
    OWN(weir_table) *table = NULL;
    assert_ok(weir_table_create(&table, &(struct weir_table_options){ .keys = 1000 }, NULL));
    struct weir *one = engine_on(table), *two = engine_on(table);
    use(one, GUARDS("- { name: g, concurrency: 1 }\n"), NOW);
    use(two, GUARDS("- { name: g, concurrency: 1 }\n"), NOW);
    struct visit v = entered(one, "ip=::1", NOW, 1);
    refused(two, "ip=::1", NOW, "g", WEIR_BUSY);
    leave(two, &v, WEIR_SUCCEEDED, NOW);
    entered(two, "ip=::1", NOW, 1);
    weir_destroy(one);
    weir_destroy(two);
}
