/* engine.c -- an engine is made, the modes of its rules, and what requests have come to. */
#include "unit/test.h"

#include "unit/requests.h"

static void set_mode(struct weir *weir, const char *rule, enum weir_mode mode)
{
    struct weir_error error = { 0 };

    if (weir_mode_set(weir, rule, mode, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static void ban(struct weir *weir, const char *rule, const char *key, weir_time now,
                weir_time until)
{
    struct weir_error error = { 0 };

    if (weir_ban_set(weir, rule, key, now, until, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

/* ------------------------------------------------------------- creation ---- */

TEST(test_an_engine_has_a_table)
{
    struct weir *weir = NULL;
    struct weir_error error = { 0 };

    assert_ok(weir_create(&weir, NULL, &error));
    assert_non_null(weir_table_of(weir));
    assert_true(stats_of(weir_table_of(weir), -1).slots >= 65536);
    weir_destroy(weir);
    struct weir_table *table = private_table(false, 100);
    weir = engine_on(table);
    assert_ptr_equal(weir_table_of(weir), table);
    weir_destroy(weir); /* and leaves the table */
    assert_int_equal(stats_of(table, -1).keys, 0);
    weir_table_destroy(table);
    weir_destroy(NULL);
}

TEST(test_more_keys_than_any_machine_has_room_for)
{
    static const int64_t keys[] = { INT64_MAX, INT64_MAX / 1024, -1 };

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct weir *weir = (void *)0x5a;
        struct weir_error error = { 0 };
        assert_true(weir_create(&weir, &(struct weir_options){ .keys = keys[i] }, &error) < 0);
        assert_ptr_equal(weir, (void *)0x5a);
        assert_true(error.text[0] != '\0');
    }
}

TEST(test_without_rules_there_is_nothing_to_change)
{
    struct weir_error error = { 0 };
    struct weir_rule_info info;

    OWN(weir) *weir = engine_on(NULL);
    assert_int_equal(edit_list(weir, "deny", "ip", "10.0.0.0/8", NULL), WEIR_INVALID);
    assert_int_equal(weir_mode_set(weir, "r", WEIR_OFF, &error), WEIR_INVALID);
    assert_contains(error.text, "'r'");
    assert_int_equal(weir_ban_set(weir, "r", "k", NOW, NOW + 1, &error), WEIR_INVALID);
    assert_false(weir_ban_lift(weir, "r", "k", NOW));
    assert_false(weir_rule_next(weir, &(int64_t){ 0 }, &info));
}

/* ------------------------------------------------------- what is in force ---- */

TEST(test_S6_only_attributes_of_requests_are_listed)
{
    OWN(weir) *weir =
        engine_of("version: 1\nrules:\n- { name: a, match: { uri: /a }, paths: loose, "
                  "key: \"{ip}\", limit: 1/60 }\n");
    char name[64];
    int n = 0;

    for (int64_t at = 0; weir_attribute_next(weir, &at, name); n++)
        assert_true(strcmp(name, "uri") == 0 || strcmp(name, "ip") == 0);
    assert_int_equal(n, 2);
}

TEST(test_S6_what_is_in_force_can_be_listed)
{
    char name[64];
    struct weir_list_info list;
    struct weir_modes modes;
    struct weir_error error;

    OWN(weir) *weir = engine_on(NULL);
    assert_false(weir_list_next(weir, &(int64_t){ 0 }, &list));
    assert_false(weir_attribute_next(weir, &(int64_t){ 0 }, name));
    weir_modes_get(weir, &modes);
    assert_int_equal(modes.written, WEIR_ENFORCE);
    weir_destroy(weir);
    weir = engine_of("version: 1\nmode: shadow\nlists: { deny: { account: [ann, bob] } }\n"
                     "rules:\n- { name: a, key: \"{ip}\", limit: 1/60, mode: \"off\" }\n- { name: "
                     "b, limit: 1/60 }\n");
    struct weir_rule_info info;
    int64_t at = 0;
    assert_true(weir_rule_next(weir, &at, &info));
    assert_string_equal(info.name, "a");
    assert_true(weir_rule_next(weir, &at, &info));
    assert_string_equal(info.name, "b");
    assert_false(weir_rule_next(weir, &at, &info));
    assert_int_equal(at, 2);
    assert_true(weir_list_next(weir, &(int64_t){ 0 }, &list));
    assert_string_equal(list.name, "deny");
    assert_string_equal(list.attribute, "account");
    assert_int_equal(list.entries, 2);
    assert_false(weir_list_next(weir, &(int64_t){ 1 }, &list));
    assert_true(weir_attribute_next(weir, &(int64_t){ 0 }, name) &&
                weir_attribute_next(weir, &(int64_t){ 1 }, name));
    assert_false(weir_attribute_next(weir, &(int64_t){ 2 }, name));
    assert_ok(weir_mode_set(weir, NULL, WEIR_ENFORCE, &error));
    assert_ok(weir_mode_set(weir, "a", WEIR_ENFORCE, &error));
    weir_modes_get(weir, &modes);
    assert_true(modes.written == WEIR_SHADOW && modes.by_hand == WEIR_ENFORCE &&
                modes.in_force == WEIR_ENFORCE);
    info = info_of(weir, "a");
    assert_true(info.written == WEIR_OFF && info.switched == WEIR_ENFORCE &&
                info.mode == WEIR_ENFORCE);
}

/* ------------------------------------------------------------- R5: modes ---- */

#define SWITCHED(all, one) "version: 1\n" all RULES_OF_TWO(one)
#define RULES_OF_TWO(one)                                     \
    "rules:\n- { name: tight, key: \"{ip}\", limit: 2/60" one \
    " }\n- { name: wide, key: \"{ip}\", limit: 100/60 }\n"

TEST(test_R5_shadow_decides_and_counts_but_lets_through)
{
    OWN(weir) *weir = engine_of(SWITCHED("", ", mode: shadow"));
    for (int i = 0; i < 10; i++) {
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_allowed_by(r, "wide"); /* the tightest that enforces */
        assert_int_equal(r.decision.remaining, 99 - i);
        if (i < 2)
            assert_null(r.shadow);
        else
            assert_string_equal(r.shadow, "tight");
        assert_fields(r, (applied, 2), (mode, WEIR_ENFORCE));
    }
    struct weir_rule_info info = info_of(weir, "tight");
    assert_fields(info, (mode, WEIR_SHADOW), (switched, WEIR_AS_WRITTEN), (allowed, 2),
                  (refused, 0), (shadow_refused, 8));
    assert_int_equal(info_of(weir, "wide").allowed, 10);
}

TEST(test_R5_a_refused_request_takes_nothing_in_shadow)
{
    OWN(weir) *weir = engine_of(
        RULES("- { name: shadow, limit: 10/60, mode: shadow }\n- { name: one, limit: 1/60 }\n"));
    assert_int_equal(pass_of(weir, 5, "", NOW), 1);
    assert_int_equal(rule_left(weir, "shadow", "", NOW), 9); /* it sees what it would see */
}

/* A refused client has no use for the rest of the ruling. */
TEST(test_R5_a_refusal_says_nothing_of_shadows)
{
    OWN(weir) *weir = engine_of(
        RULES("- { name: shadow, limit: 1/60, mode: shadow }\n- { name: two, limit: 2/60 }\n"));
    ban(weir, "shadow", "", NOW, NOW + S);
    assert_int_equal(pass_of(weir, 2, "", NOW), 2);
    struct weir_ruling r = check(weir, "", NOW);
    assert_refused_by(r, "two");
    assert_null(r.shadow);
    ban(weir, "two", "", NOW, NOW + S);
    r = check(weir, "", NOW);
    assert_int_equal(r.decision.reason, WEIR_BANNED);
    assert_null(r.shadow);
}

TEST(test_R5_off)
{
    OWN(weir) *weir = engine_of(SWITCHED("", ", mode: off"));
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_allowed_by(r, "wide");
    assert_int_equal(r.applied, 1);
    assert_int_equal(pass_of(weir, 9, "ip=::1", NOW), 9);
    assert_int_equal(info_of(weir, "tight").allowed, 0);
    assert_int_equal(explained(weir, "tight", "ip=::1", NOW).why, WEIR__SWITCHED_OFF);
    set_mode(weir, "tight", WEIR_ENFORCE);
    assert_int_equal(pass_of(weir, 9, "ip=::1", NOW), 2); /* nothing was taken */
}

TEST(test_R5_switched_by_hand)
{
    struct weir_error error = { 0 };

    OWN(weir) *weir = engine_of(SWITCHED("", ""));
    assert_int_equal(pass_of(weir, 3, "ip=::1", NOW), 2);
    set_mode(weir, "tight", WEIR_SHADOW);
    assert_string_equal(check(weir, "ip=::1", NOW).shadow, "tight");
    assert_int_equal(info_of(weir, "tight").switched, WEIR_SHADOW);
    set_mode(weir, "tight", WEIR_OFF);
    assert_null(check(weir, "ip=::1", NOW).shadow);
    set_mode(weir, "tight", WEIR_AS_WRITTEN);
    assert_false(passes(weir, "ip=::1", NOW));
    set_mode(weir, NULL, WEIR_SHADOW); /* all of them */
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_allowed_by(r, NULL);
    assert_string_equal(r.shadow, "tight");
    assert_int_equal(r.mode, WEIR_SHADOW);
    assert_int_equal(info_of(weir, "wide").mode, WEIR_SHADOW);
    set_mode(weir, NULL, WEIR_OFF);
    r = check(weir, "ip=::1", NOW);
    assert_allowed_by(r, NULL);
    assert_null(r.shadow);
    assert_fields(r, (mode, WEIR_OFF), (applied, 0));
    set_mode(weir, NULL, WEIR_AS_WRITTEN);
    assert_false(passes(weir, "ip=::1", NOW));
    assert_int_equal(weir_mode_set(weir, "thigt", WEIR_OFF, &error), WEIR_INVALID);
    assert_contains(error.text, "thigt");
    assert_int_equal(weir_mode_set(weir, "tight", (enum weir_mode)7, &error), WEIR_INVALID);
    assert_int_equal(weir_mode_set(weir, NULL, (enum weir_mode) - 1, &error), WEIR_INVALID);
}

TEST(test_R5_the_whole_set_as_written)
{
    OWN(weir) *weir =
        engine_of(SWITCHED("mode: shadow\nlists: { deny: { ip: [10.0.0.0/8] } }\n", ""));
    assert_int_equal(pass_of(weir, 5, "ip=::1", NOW), 5);
    assert_string_equal(check(weir, "ip=::1", NOW).shadow, "tight");
    struct weir_ruling r = check(weir, "ip=10.0.0.1", NOW);
    assert_allowed_by(r, NULL);
    assert_string_equal(r.list, "deny");
    set_mode(weir, "tight", WEIR_ENFORCE); /* the milder of the two */
    assert_true(passes(weir, "ip=::1", NOW));
    set_mode(weir, NULL, WEIR_ENFORCE);
    assert_false(passes(weir, "ip=::1", NOW));
    assert_false(passes(weir, "ip=10.0.0.1", NOW));
    use(weir, SWITCHED("mode: off\n", ""), NOW); /* by hand it stays */
    assert_false(passes(weir, "ip=::1", NOW));
    set_mode(weir, NULL, WEIR_AS_WRITTEN);
    assert_true(passes(weir, "ip=::1", NOW));
}

TEST(test_R5_a_ban_in_shadow_is_told_and_not_enforced)
{
    OWN(weir) *weir = engine_of(SWITCHED("", ", mode: shadow"));
    ban(weir, "tight", "::1", NOW, NOW + S);
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_allowed_by(r, "wide");
    assert_string_equal(r.shadow, "tight"); /* it would have been refused */
    assert_fields(r, (banned_until, 0), (applied, 1));
    assert_fields(info_of(weir, "tight"), (shadow_refused, 1), (banned, 0));
    assert_int_equal(rule_left(weir, "tight", "ip=::1", NOW), 2); /* and takes nothing */
    assert_null(check(weir, "ip=::1", NOW + S).shadow);
    set_mode(weir, "tight", WEIR_ENFORCE);
    r = check(weir, "ip=::1", NOW);
    assert_refused_by(r, "tight");
}

TEST(test_R5_at_once_in_every_engine_on_the_table)
{
    const char *path = new_path();
    struct weir_table_options options = { .path = path, .keys = 100 };
    struct weir_table *tables[2] = { table_with(&options), attach(path) };
    struct weir *engines[2];

    for (int i = 0; i < 2; i++) {
        engines[i] = engine_on(tables[i]);
        use(engines[i], SWITCHED("", ""), NOW);
    }
    assert_int_equal(pass_of(engines[0], 3, "ip=::1", NOW), 2);
    assert_false(passes(engines[1], "ip=::1", NOW)); /* the states are shared */
    set_mode(engines[1], "tight", WEIR_OFF);
    assert_true(passes(engines[0], "ip=::1", NOW));
    set_mode(engines[0], "tight", WEIR_AS_WRITTEN);
    assert_false(passes(engines[1], "ip=::1", NOW));
    set_mode(engines[0], NULL, WEIR_SHADOW);
    assert_true(passes(engines[1], "ip=::1", NOW));
    ban(engines[0], "wide", "9::", NOW, NOW + S);
    set_mode(engines[1], NULL, WEIR_AS_WRITTEN);
    assert_int_equal(check(engines[1], "ip=9::", NOW).decision.reason, WEIR_BANNED);
    set_mode(engines[0], "tight", WEIR_OFF);
    for (int i = 0; i < 2; i++) {
        weir_destroy(engines[i]);
        weir_table_destroy(tables[i]);
    }
    OWN(weir_table) *again = attach(path); /* and after a restart */
    OWN(weir) *weir = engine_on(again);
    use(weir, SWITCHED("", ""), NOW);
    assert_int_equal(info_of(weir, "tight").switched, WEIR_OFF);
    assert_int_equal(pass_of(weir, 9, "ip=::1", NOW), 9);
}

TEST(test_names_of_modes)
{
    assert_string_equal(weir_mode_name(WEIR_AS_WRITTEN), "as-written");
    assert_string_equal(weir_mode_name(WEIR_ENFORCE), "enforce");
    assert_string_equal(weir_mode_name(WEIR_SHADOW), "shadow");
    assert_string_equal(weir_mode_name(WEIR_OFF), "off");
    assert_non_null(weir_mode_name((enum weir_mode)99));
}

/* ----------------------------------------------------------- S5: totals ---- */

static void assert_totals(struct weir *weir, struct weir_totals wanted)
{
    struct weir_totals t;

    memset(&t, 0xa5, sizeof(t));
    weir_totals_get(weir, &t);
    assert_fields(t, (checked, wanted.allowed + wanted.refused), (allowed, wanted.allowed),
                  (refused, wanted.refused), (denied, wanted.denied),
                  (allow_listed, wanted.allow_listed), (unmatched, wanted.unmatched),
                  (shadow_refused, wanted.shadow_refused));
}

TEST(test_S5_totals)
{
    struct weir_totals t = { 0 };

    OWN(weir) *weir = engine_on(NULL);
    assert_totals(weir, t);
    assert_true(passes(weir, "ip=::1", NOW)); /* no rules yet */
    t.allowed = t.unmatched = 1;
    assert_totals(weir, t);
    use(weir,
        "version: 1\nlists: { deny: { ip: [10.0.0.0/8] }, allow: { ip: [192.0.2.0/24] } }\nrules:\n"
        "- { name: r, match: { uri: /a }, key: \"{ip}\", limit: 2/60, ban: { refusals: 2/60s, for: "
        "10m } }\n"
        "- { name: s, match: { uri: /b }, key: \"{ip}\", limit: 1/60, mode: shadow }\n",
        NOW);
    assert_int_equal(pass_of(weir, 3, "ip=10.0.0.1 uri=/a", NOW), 0);
    t.refused += 3, t.denied += 3;
    assert_int_equal(pass_of(weir, 2, "ip=192.0.2.1 uri=/a", NOW), 2);
    t.allowed += 2, t.allow_listed += 2;
    assert_int_equal(pass_of(weir, 7, "ip=::1 uri=/a", NOW),
                     2); /* two are limited, and three banned */
    t.allowed += 2, t.refused += 5;
    assert_int_equal(pass_of(weir, 3, "ip=::1 uri=/b", NOW), 3);
    t.allowed += 3, t.shadow_refused += 2;
    assert_int_equal(pass_of(weir, 4, "ip=::1 uri=/c", NOW), 4);
    t.allowed += 4, t.unmatched += 4;
    assert_totals(weir, t);
    set_mode(weir, NULL, WEIR_SHADOW);
    assert_int_equal(pass_of(weir, 2, "ip=10.0.0.1 uri=/c", NOW), 2); /* the deny list would have */
    t.allowed += 2, t.shadow_refused += 2;
    set_mode(weir, NULL, WEIR_OFF);
    assert_true(passes(weir, "ip=10.0.0.1 uri=/a", NOW));
    t.allowed++, t.unmatched++;
    assert_totals(weir, t);
    explained(weir, "r", "ip=7:: uri=/a", NOW); /* who only looks is not counted */
    use(weir, "version: 1\nrules: []\n", NOW);  /* and all goes on with other rules */
    assert_totals(weir, t);
}

TEST(test_S5_totals_of_many)
{
    enum { N = 50 };
    struct weir_attr who = ATTR("account", "ann");
    static struct weir_request requests[N];
    static struct weir_ruling rulings[N];
    OWN(weir) *weir = engine_of(RULES("- { name: r, key: \"{account}\", limit: 20/60 }\n"));
    for (int i = 0; i < N; i++)
        requests[i] =
            (struct weir_request){ i < 40 ? &who : NULL, i < 40, { .cost = 1, .now = NOW } };
    assert_int_equal(weir_check_many(weir, requests, N, rulings), 30);
    assert_totals(weir, (struct weir_totals){ .allowed = 30, .refused = 20, .unmatched = 10 });
}

GROUP(make_folder, remove_folder)
