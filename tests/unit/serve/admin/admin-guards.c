/* admin-guards.c -- guards: listed, forced; degradation by hand. */
#include "unit/test.h"

#include "unit/operator.h"

static struct weir_guard *make_guard(const char *name, const struct weir_guard_options *options)
{
    struct weir_guard *guard = NULL;
    struct weir_error error = { 0 };

    if (weir_guard_create(&guard, server.table, name, options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return guard;
}

TEST_WITH(test_G1_guards_are_listed, start, stop)
{
    struct weir_permit permit;
    struct weir_decision d;

    good("WEIR.GUARDS");
    answers("degradation", "0");
    assert_null(value_in(answered.bytes, answered.len, "guards.0.guard"));
    struct weir_guard *db = make_guard(
        "db", &(struct weir_guard_options){ .max = 3, .breaker = { .error_percent = 50 } });
    make_guard("pool", &(struct weir_guard_options){ .max = 9,
                                                     .classes = { { "gold", 3 }, { "free", 1 } } });
    assert_true(weir_enter(db, &(struct weir_ask){ .now = NOW }, &permit, &d));
    good("WEIR.GUARDS");
    answers("guards.0.guard", "db", "guards.0.in_rules", "false", "guards.0.in_flight", "1",
            "guards.0.limit", "3", "guards.0.breaker", "closed",
            "guards.0.options.breaker.error_percent", "50", "guards.1.breaker", "null",
            "guards.1.options.classes.1.class", "free");
    assert_null(value_in(answered.bytes, answered.len, "guards.0.changes.0.number"));
    assert_true(weir_exit(db, &permit, WEIR_FAILED, NOW));
    good("WEIR.GUARDS db");
    answers("guards.0.outcomes.error", "1");
    assert_null(value_in(answered.bytes, answered.len, "guards.1.guard"));
    bad("WEIR.GUARDS dn", 404, "did you mean 'db'");
    bad("WEIR.GUARDS quite-another", 404, "WEIR.GUARDS (weir guards, GET /v1/guards) lists them");
}

/* Enters with a key, as this server or as another process. */
static struct weir_permit enter_as(struct weir_guard *guard, const char *key, bool elsewhere)
{
    struct weir_permit permit;
    struct weir_decision d;
    struct weir_ask ask = { .key = { key, strlen(key) }, .now = NOW };

    assert_true(weir_enter(guard, &ask, &permit, &d));
    if (!elsewhere)
        weir__guard_keys_note(weir__guards_keys(server.guards), guard, &permit, key, strlen(key));
    return permit;
}

TEST_WITH(test_G1_keys_in_progress_are_listed, start, stop)
{
    struct weir_guard *site = make_guard("site", &(struct weir_guard_options){ .max_per_key = 9 });
    struct weir_permit permit = enter_as(site, "ann", false), before;

    make_guard("plain", &(struct weir_guard_options){ .max = 9 });
    for (int i = 0; i < 3; i++)
        enter_as(site, "bob", i == 0);
    enter_as(site, "eve", true);
    enter_as(site, "eve", true);
    good("WEIR.GUARDS site");
    answers("guards.0.keys_in_flight", "3", "guards.0.keys.0.key", "bob",
            "guards.0.keys.0.in_flight", "3", "guards.0.keys.1.key", "null",
            "guards.0.keys.1.in_flight", "2", "guards.0.keys.2.key", "ann");
    good("WEIR.GUARDS site 2");
    answers("guards.0.keys_in_flight", "3", "guards.0.keys.1.in_flight", "2");
    assert_null(value_in(answered.bytes, answered.len, "guards.0.keys.2.key"));
    before = permit;
    assert_true(weir_permit_renew(site, &permit, NOW + S));
    weir__guard_keys_renew(weir__guards_keys(server.guards), site, before.word, &permit);
    good("WEIR.GUARDS site");
    answers("guards.0.keys.2.key", "ann");
    assert_true(weir_exit(site, &permit, WEIR_SUCCEEDED, NOW + S));
    enter_as(site, "nobody's", true); /* perhaps in the seat that ann had */
    good("WEIR.GUARDS site");
    answers("guards.0.keys_in_flight", "3", "guards.0.keys.2.key", "null");
    good("WEIR.GUARDS plain");
    assert_null(value_in(answered.bytes, answered.len, "guards.0.keys_in_flight"));
    good("WEIR.GUARDS");
    assert_null(value_in(answered.bytes, answered.len, "guards.0.keys_in_flight"));
    bad("WEIR.GUARDS site 1001", 400, "keys");
}

TEST_WITH(test_G4_a_guard_is_forced, start, stop)
{
    struct weir_permit permit;
    struct weir_decision d;
    struct weir_guard *db = make_guard(
        "db", &(struct weir_guard_options){ .max = 3, .breaker = { .error_percent = 50 } });

    good("WEIR.GUARD.FORCE db open");
    answers("force", "open");
    assert_false(weir_enter(db, &(struct weir_ask){ .now = NOW }, &permit, &d));
    good("WEIR.GUARDS db");
    answers("guards.0.changes.0.event", "guard-forced", "guards.0.changes.0.to", "1");
    good("WEIR.GUARD.FORCE db none");
    assert_true(weir_enter(db, &(struct weir_ask){ .now = NOW }, &permit, &d));
    bad("WEIR.GUARD.FORCE db shut", 400, "force must be none, open or closed, not 'shut'");
    bad("WEIR.GUARD.FORCE", 400, "guard is missing");
    bad("WEIR.GUARD.FORCE db", 400, "force is missing");
    bad("WEIR.GUARD.FORCE bd open", 404, "did you mean 'db'");
}

TEST_WITH(test_G5_degradation_by_hand, start, stop)
{
    good("WEIR.DEGRADE");
    answers("degradation", "0", "by_hand", "false");
    good("WEIR.DEGRADE.SET 7");
    answers("degradation", "7", "by_hand", "true");
    bad("WEIR.DEGRADE.SET 10", 400, "a whole number from 0 to 9, or auto");
    bad("WEIR.DEGRADE.SET -1", 400, "a whole number from 0 to 9, or auto");
    bad("WEIR.DEGRADE.SET", 400, "degradation is missing");
    good("WEIR.DEGRADE.SET auto");
    answers("by_hand", "false");
}

GROUP(make_folder, free_answer)
