/* active-rules.c -- one rule set in the place of another: what stays, what is changed, what begins
 * fresh, and that a failure changes nothing. */
#include "unit/test.h"

#include "engine/explain.h"
#include "table/registry.h"
#include "unit/requests.h"

#define ONE(limit) RULES("- { name: a, key: \"{ip}\", limit: " limit " }\n")
#define WITH(rule) RULES("- { name: a, key: \"{ip}\", " rule " }\n")

/* Of the first limit of rule a. */
static int64_t a_left(struct weir *weir, weir_time now)
{
    return rule_left(weir, "a", "ip=::1", now);
}

/* --------------------------------------------------------------- reload ---- */

TEST(test_R6_unchanged_limits_keep_their_states)
{
    static const char *const limits[] = { "300/60",
                                          "gcra 300/60",
                                          "sliding-window 300/60",
                                          "sliding-log 300/60",
                                          "fixed-window 300/60",
                                          "300/day",
                                          "leaky-bucket 300/60",
                                          "300/h burst 200" };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        char yaml[200], more[400];
        snprintf(yaml, sizeof(yaml), WITH("limit: %s"), limits[i]);
        snprintf(
            more, sizeof(more),
            "version: 1\n# another file\nrules:\n- { name: new, limit: 1000/60 }\n- name: a\n  "
            "about: the same\n  key: \"{ip}\"\n"
            "  match: { ip: \"*\" }\n  limit: %s\n  cost: 2\n  ban: { refusals: 5/60, for: 1h }\n",
            limits[i]);
        OWN(weir) *weir = engine_of(yaml);
        assert_true(check_cost(weir, "ip=::1", 100, NOW).decision.allowed);
        int64_t before = a_left(weir, NOW);
        use(weir, yaml, NOW);
        assert_int_equal(a_left(weir, NOW), before);
        use(weir, more,
            NOW); /* what it is for, what it costs and where it stands is not the limit */
        assert_int_equal(a_left(weir, NOW), before);
        use(weir, "version: 1\nrules: []\n", NOW); /* gone, and back */
        assert_true(passes(weir, "ip=::1", NOW));
        use(weir, yaml, NOW);
        assert_int_equal(a_left(weir, NOW), before);
    }
}

TEST(test_R6_a_changed_limit_keeps_what_was_used)
{
    static const struct {
        const char *algorithm;
        int64_t left;
    } cases[] = {
        { "", 50 }, /* a token bucket keeps what is in it, all others what was taken:
                       docs/algorithms.md */
        { "gcra ", 150 },
        { "sliding-window ", 150 },
        { "sliding-log ", 150 },
        { "fixed-window ", 150 },
        { "leaky-bucket ", 150 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char before[200], after[200];
        snprintf(before, sizeof(before), WITH("limit: %s300/60"), cases[i].algorithm);
        snprintf(after, sizeof(after), WITH("limit: %s400/60"), cases[i].algorithm);
        OWN(weir) *weir = engine_of(before);
        assert_true(check_cost(weir, "ip=::1", 250, NOW).decision.allowed);
        use(weir, after, NOW);
        assert_int_equal(a_left(weir, NOW), cases[i].left);
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_fields(r, (count, 400), (decision.remaining, cases[i].left - 1));
    }
}

TEST(test_R6_another_key_or_algorithm_begins_fresh)
{
    static const char *const others[] = { "key: \"{ip/32/64}\", limit: gcra 300/60",
                                          "key: \"{ip}\", limit: 300/60",
                                          "key: \"{ip}\", limit: 300/60, algorithm: sliding-log",
                                          "key: \"{ip}\", limit: 300/month",
                                          "key: \"{ip}\", limit: leaky-bucket 300/60 queue 5",
                                          "key: \"{ip|none}\", limit: gcra 300/60" };

    for (size_t i = 0; i < COUNT_OF(others); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), RULES("- { name: a, %s }\n"), others[i]);
        OWN(weir) *weir = engine_of(ONE("gcra 300/60"));
        assert_true(check_cost(weir, "ip=::1", 250, NOW).decision.allowed);
        use(weir, yaml, NOW);
        struct weir__explained e = explained(weir, "a", "ip=::1", NOW);
        assert_int_equal(e.limits[0].decision.remaining, e.limits[0].decision.limit);
        use(weir, ONE("gcra 300/60"), NOW);
        assert_int_equal(a_left(weir, NOW), 50); /* back again, it is what it was */
    }
}

/* Of one algorithm: by their periods, else by their places. */
TEST(test_R6_several_limits)
{
    OWN(weir) *weir = engine_of(WITH("limit: [gcra 300/60, gcra 100/5]"));
    assert_true(check_cost(weir, "ip=::1", 40, NOW).decision.allowed);
    use(weir, WITH("limit: [gcra 300/60, gcra 200/5, gcra 50/1]"), NOW);
    struct weir__explained e = explained(weir, "a", "ip=::1", NOW);
    assert_fields(e, (n_limits, 3), (limits[0].decision.remaining, 260),
                  (limits[1].decision.remaining, 160), (limits[2].decision.remaining, 50));
}

/* What is left of each limit of rule a, in the order of the file. */
static void assert_left(struct weir *weir, const char *limits, int64_t first, int64_t second)
{
    char yaml[200];

    snprintf(yaml, sizeof(yaml), WITH("limit: %s"), limits);
    use(weir, yaml, NOW);
    struct weir__explained e = explained(weir, "a", "ip=::1", NOW);
    for (size_t i = 0; i < (second < 0 ? 1 : 2); i++)
        if (e.limits[i].decision.remaining != (i ? second : first))
            fail_msg("%s: limit %zu has %d left, not %d", limits, i,
                     (int)e.limits[i].decision.remaining, (int)(i ? second : first));
}

TEST(test_R6_limits_are_known_by_their_period)
{
    OWN(weir) *weir = engine_of(WITH("limit: [10/1s, 100/1m]"));
    assert_true(check_cost(weir, "ip=::1", 7, NOW).decision.allowed);
    assert_left(weir, "[10/1s, 100/1m]", 3, 93);
    assert_left(weir, "[100/1m, 10/1s]", 93, 3);       /* exchanged */
    assert_left(weir, "[5/1h, 100/1m, 10/1s]", 5, 93); /* one before them */
    assert_left(weir, "100/1m", 93, -1);               /* others gone */
    assert_left(weir, "[10/1s, 100/1m]", 3, 93);       /* and back */
    assert_left(weir, "[10/2s, 100/1m]", 3, 93);       /* another period, at the same place */
    assert_left(weir, "[gcra 10/1s, 100/1m]", 10, 93); /* another algorithm */
    assert_left(weir, "[1000/day, 500/week]", 1000, 500);
    assert_true(check_cost(weir, "ip=::1", 7, NOW).decision.allowed);
    assert_left(weir, "[500/week, 900/day]", 493, 893);
}

TEST(test_R6_tallies_and_names_go_on)
{
    OWN(weir) *weir = engine_of(RULES("- { name: a, limit: gcra 2/60 }\n- { name: b, limit: "
                                      "100/60 }\n- { name: c, limit: 100/60, mode: shadow }\n"));
    struct weir_ruling r = check(weir, "", NOW);
    pass_of(weir, 4, "", NOW);
    use(weir,
        RULES("- { name: z, limit: 100/60 }\n- { name: b, limit: 100/60 }\n- { name: a, limit: "
              "gcra 3/60 }\n"),
        NOW);
    assert_rule(&r, "a"); /* good until weir_destroy */
    assert_fields(info_of(weir, "a"), (allowed, 2), (refused, 3));
    assert_int_equal(info_of(weir, "b").allowed, 2);
    assert_int_equal(info_of(weir, "z").allowed, 0);
    assert_true(passes(weir, "", NOW));
    assert_false(passes(weir, "", NOW));
    assert_fields(info_of(weir, "a"), (allowed, 3), (refused, 4));
    assert_ok(
        weir_list_edit(weir, &(struct weir_list_edit){ "deny", "ip", NULL, 0, NULL, 0 }, NULL));
    assert_int_equal(info_of(weir, "a").refused, 4);
}

/* "Modes and bans stay": whatever else of the rule is changed. */
TEST(test_R6_modes_and_bans_stay)
{
    static const char *const others[] = { "key: \"{ip}\", limit: 5/60",
                                          "key: \"{ip}\", limit: 2/60, mode: shadow",
                                          "key: \"{ip}\", limit: gcra 2/60",
                                          "key: \"{ip|none}\", limit: 2/60",
                                          "key: \"{ip/24}\", limit: [sliding-log 2/60, 9/s]" };

    for (size_t i = 0; i < COUNT_OF(others); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml),
                 RULES("- { name: a, %s }\n- { name: b, key: \"{account}\", limit: 9/60 }\n"),
                 others[i]);
        OWN(weir) *weir = engine_of(RULES("- { name: a, key: \"{ip}\", limit: 2/60 }\n- { name: "
                                          "b, key: \"{account}\", limit: 9/60 }\n"));
        assert_ok(weir_mode_set(weir, "a", WEIR_OFF, NULL));
        assert_ok(weir_ban_set(weir, "b", "mallory", NOW, NOW + 9 * S, NULL));
        use(weir, yaml, NOW);
        assert_int_equal(check(weir, "account=mallory", NOW).decision.reason, WEIR_BANNED);
        if (info_of(weir, "a").switched != WEIR_OFF)
            fail_msg("the switch is forgotten: %s", others[i]);
        assert_int_equal(pass_of(weir, 9, "ip=::1", NOW), 9);
        use(weir, "version: 1\nrules: []\n", NOW); /* gone, and back */
        use(weir, yaml, NOW);
        assert_int_equal(info_of(weir, "a").switched, WEIR_OFF);
        assert_int_equal(info_of(weir, "b").switched, WEIR_AS_WRITTEN);
    }
}

/* A ban's own numbers are changed too, with what was counted. */
TEST(test_R6_a_changed_ban)
{
    OWN(weir) *weir = engine_of(WITH("limit: 1/60, ban: { refusals: 5/60s, for: 10m }"));
    pass_of(weir, 3, "ip=::1", NOW); /* two refusals */
    use(weir, WITH("limit: 1/60, ban: { refusals: 3/60s, for: 20m }"), NOW);
    assert_int_equal(check(weir, "ip=::1", NOW).banned_until, NOW + 1200 * S);
    use(weir, WITH("limit: 1/60"), NOW); /* no ban any more; those in force stay */
    assert_int_equal(check(weir, "ip=::1", NOW + 1).decision.reason, WEIR_BANNED);
    for (int i = 0; i < 9; i++)
        assert_int_equal(check(weir, "ip=2::", NOW).banned_until, 0);
}

TEST(test_R6_in_two_processes)
{
    const char *path = new_path();
    struct weir_table *tables[2] = {
        table_with(&(struct weir_table_options){ .path = path, .keys = 100 }), attach(path)
    };
    struct weir *engines[2] = { engine_on(tables[0]), engine_on(tables[1]) };

    use(engines[0], ONE("gcra 300/60"), NOW);
    use(engines[1], ONE("gcra 300/60"), NOW);
    assert_true(check_cost(engines[0], "ip=::1", 250, NOW).decision.allowed);
    assert_int_equal(a_left(engines[1], NOW), 50);
    use(engines[1], ONE("gcra 400/60"), NOW); /* for both: they share the limiter */
    assert_int_equal(a_left(engines[0], NOW), 150);
    use(engines[0], ONE("gcra 400/60"), NOW);
    assert_int_equal(a_left(engines[0], NOW), 150);
    for (int i = 0; i < 2; i++) {
        weir_destroy(engines[i]);
        weir_table_destroy(tables[i]);
    }
}

TEST(test_R6_states_survive_a_restart)
{
    const char *path = new_path();

    for (int run = 0; run < 3; run++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
        OWN(weir) *weir = engine_on(table);
        use(weir, run < 2 ? ONE("gcra 300/60") : ONE("gcra 400/60"), NOW);
        if (run == 0)
            assert_true(check_cost(weir, "ip=::1", 250, NOW).decision.allowed);
        else
            assert_int_equal(a_left(weir, NOW), run == 1 ? 50 : 150);
    }
}

TEST(test_R6_a_hundred_reloads)
{
    OWN(weir) *weir = engine_on(NULL);
    use(weir, ONE("sliding-window 1000/60"), NOW);
    assert_true(check_cost(weir, "ip=::1", 500, NOW).decision.allowed);
    for (int i = 1; i <= 100; i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml), ONE("sliding-window %d/60"), 1000 + i);
        use(weir, yaml, NOW);
        assert_int_equal(a_left(weir, NOW), 500 + i);
    }
}

/* -------------------------------------------------------------- failure ---- */

/* Puts the rules in force, which must fail; they are the caller's still. */
static void assert_use_fails(struct weir *weir, const char *yaml, const char *says)
{
    OWN(weir_rules) *rules = rules_of(yaml);
    struct weir_error error = { 0 };
    assert_true(weir_use(weir, rules, NOW, &error) < 0);
    assert_contains(error.text, says);
    assert_true(weir_use(weir, rules, NOW, NULL) < 0);
}

TEST(test_R6_a_bad_file_is_refused_whole)
{
    static const char bad[] =
        RULES("- { name: a, key: \"{ip}\", limit: 1/60 }\n- { name: b, limit: oops }\n");
    struct weir_rules *rules = NULL;

    OWN(weir) *weir = engine_of(ONE("gcra 300/60"));
    assert_true(check_cost(weir, "ip=::1", 250, NOW).decision.allowed);
    assert_int_equal(weir_rules_parse(&rules, bad, sizeof(bad) - 1, NULL, NULL), WEIR_INVALID);
    assert_null(rules);
    assert_int_equal(a_left(weir, NOW), 50);
}

TEST(test_R6_a_table_with_too_few_limiters)
{
    struct weir_limiter_info info;

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100, .limiters = 5 });
    OWN(weir) *weir = engine_on(table);
    use(weir,
        RULES("- { name: a, key: \"{ip}\", limit: gcra 300/60 }\n- { name: b, limit: 100/60 }\n"),
        NOW);
    assert_true(check_cost(weir, "ip=::1", 50, NOW).decision.allowed);
    assert_use_fails(weir,
                     RULES("- { name: a, key: \"{ip}\", limit: gcra 400/60 }\n- { name: b, limit: "
                           "200/60 }\n- { name: c, limit: [1/60, 2/60] }\n"),
                     "3 more limiters"); /* two limits, and the rule's own */
    assert_int_equal(stats_of(table, -1).limiters,
                     4); /* they are never removed, so none was made */
    assert_int_equal(a_left(weir, NOW), 250);
    assert_int_equal(rule_left(weir, "b", "", NOW), 50);
    for (int64_t at = 0; weir_limiter_next(table, &at, &info);)
        assert_int_equal(info.changes, 0);
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_allowed_by(r, "b");
    assert_int_equal(r.count, 100);
    use(weir,
        RULES("- { name: a, key: \"{ip}\", limit: gcra 400/60 }\n- { name: b, limit: 200/60 }\n"),
        NOW); /* and what fits goes on */
    assert_int_equal(a_left(weir, NOW), 349);
}

TEST(test_R6_a_slab_that_is_too_small)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 64, .slab = 8192 });
    OWN(weir) *weir = engine_on(table);
    use(weir, RULES("- { name: a, key: \"{ip}\", limit: 300/60 }\n"), NOW);
    assert_true(check_cost(weir, "ip=::1", 50, NOW).decision.allowed);
    assert_use_fails(weir,
                     RULES("- { name: a, key: \"{ip}\", limit: 400/60 }\n- { name: w, key: "
                           "\"{ip}\", limit: sliding-log 50000/60, keys: 64 }\n"),
                     "'w'");
    assert_int_equal(a_left(weir, NOW), 250);
}

/* The second of two changes has no room: the first is changed back, and nobody has lost or won
 * anything. */
TEST(test_R6_changes_before_one_that_fails_are_undone)
{
    static const char before[] =
        RULES("- { name: a, key: \"{ip}\", limit: 300/60 }\n- { name: b, key: \"{ip}\", limit: "
              "gcra 300/60 }\n"
              "- { name: w, key: \"{ip}\", limit: sliding-log 300/60, keys: 60 }\n");
    static const char *const after[] = {
        RULES("- { name: a, key: \"{ip}\", limit: 400/60 }\n- { name: b, key: \"{ip}\", limit: "
              "gcra 310/60 }\n"
              "- { name: w, key: \"{ip}\", limit: sliding-log 3000000/60, keys: 60 }\n"),
        RULES("- { name: a, key: \"{ip}\", limit: 100/60 }\n- { name: b, key: \"{ip}\", limit: "
              "gcra 300/1s burst 100 }\n" /* less than is used */
              "- { name: w, key: \"{ip}\", limit: sliding-log 3000000/60, keys: 60 }\n"),
    };

    for (size_t i = 0; i < COUNT_OF(after); i++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .keys = 64, .slab = 1 << 20 });
        OWN(weir) *weir = engine_on(table);
        use(weir, before, NOW);
        assert_true(check_cost(weir, "ip=::1", 250, NOW).decision.allowed);
        for (int round = 0; round < 3; round++)
            assert_use_fails(weir, after[i], "");
        assert_int_equal(rule_left(weir, "a", "ip=::1", NOW), 50);
        assert_int_equal(rule_left(weir, "b", "ip=::1", NOW), 50);
        assert_int_equal(rule_left(weir, "w", "ip=::1", NOW), 50);
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_int_equal(r.count, 300);
    }
}

/* A change there and back is not nothing: a smaller bucket spills, and a shorter log forgets. */
TEST(test_R6_a_failure_spills_nothing)
{
    static const char before[] =
        RULES("- { name: a, key: \"{ip}\", limit: 300/60 }\n- { name: b, key: \"{ip}\", limit: "
              "sliding-log 300/60, keys: 60 }\n"
              "- { name: w, key: \"{ip}\", limit: sliding-log 300/60, keys: 60 }\n");
    static const char after[] =
        RULES("- { name: a, key: \"{ip}\", limit: 100/60 }\n- { name: b, key: \"{ip}\", limit: "
              "sliding-log 20/60, keys: 60 }\n"
              "- { name: w, key: \"{ip}\", limit: sliding-log 3000000/60, keys: 60 }\n");

    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .keys = 64, .slab = 4 << 20 });
    OWN(weir) *weir = engine_on(table);
    use(weir, before, NOW);
    assert_int_equal(pass_of(weir, 50, "ip=::1", NOW), 50);
    assert_use_fails(weir, after, "'w'");
    assert_int_equal(rule_left(weir, "a", "ip=::1", NOW), 250);
    assert_int_equal(rule_left(weir, "b", "ip=::1", NOW), 250);
}

/* Twenty sliding windows on a table that was made for nothing in particular. */
TEST(test_R6_room_is_shared_by_all_rules)
{
    char yaml[4000];
    size_t len = (size_t)snprintf(yaml, sizeof(yaml), "version: 1\nrules:\n");

    for (int i = 0; i < 20; i++)
        len += (size_t)snprintf(yaml + len, sizeof(yaml) - len,
                                "- { name: r%d, key: \"{ip}\", limit: sliding-window %d/60 }\n", i,
                                100 + i);
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 0 });
    OWN(weir) *weir = engine_on(table);
    use(weir, yaml, NOW);
    assert_true(passes(weir, "ip=::1", NOW));
    assert_int_equal(rule_left(weir, "r19", "ip=::1", NOW), 118);
}

/* Narrow slots cannot hold every limit: the rule is named, and those before it are as they were. */
TEST(test_R6_a_limit_that_the_table_cannot_hold)
{
    OWN(weir_table) *table = private_table(true, 100);
    OWN(weir) *weir = engine_on(table);
    use(weir, ONE("gcra 300/60"), NOW);
    assert_use_fails(weir, RULES("- { name: w, limit: 7/60 }\n"), "'w'");
    assert_use_fails(weir, ONE("gcra 7/60"), "'a'"); /* of one that is there already, too */
    assert_int_equal(a_left(weir, NOW), 300);
    use(weir,
        RULES("- { name: a, key: \"{ip}\", limit: 300/60 }\n- { name: b, key: \"{ip}\", limit: "
              "gcra 300/60 }\n"),
        NOW);
    assert_true(check_cost(weir, "ip=::1", 50, NOW).decision.allowed);
    assert_use_fails(weir,
                     RULES("- { name: a, key: \"{ip}\", limit: 10/60 }\n- { name: b, key: "
                           "\"{ip}\", limit: gcra 7/60 }\n"),
                     "'b'");
    assert_int_equal(a_left(weir, NOW), 250);
    assert_int_equal(rule_left(weir, "b", "ip=::1", NOW), 250);
}

GROUP(make_folder, remove_folder)

/* ------------------------------------------------------------ come and go ---- */

static weir_time tend(struct weir_table *table, weir_time from, weir_time span)
{
    for (weir_time now = from; now <= from + span; now += 10 * S)
        weir_table_tend(table, now);
    return from + span;
}

TEST(test_R6_rules_that_went_leave_nothing_behind)
{
    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .limiters = 16, .guards = 3 });
    OWN(weir) *weir = engine_on(table);
    weir_time now = NOW;

    for (int i = 0; i < 1000; i++) {
        char yaml[400];
        snprintf(
            yaml, sizeof(yaml),
            RULES("- { name: r%d, key: \"{ip}\", limit: sliding-window 100/60,\n"
                  "    ban: { refusals: 3/1h, for: 1h } }\n"
                  "- { name: kept, key: \"{ip}\", limit: 1000/1d }\n") "guards:\n- { name: "
                                                                       "g%d, concurrency: 5 }\n",
            i, i);
        use(weir, yaml, now);
        assert_true(passes(weir, "ip=::1", now));
        if (i % 2)
            now = tend(table, now, 60 * S);
    }
    assert_true(rule_left(weir, "kept", "ip=::1", now) < 400); /* it was never forgotten */
    tend(table, now, 60 * S);
    struct weir_table_stats s = stats_of(table, -1);
    assert_int_equal(s.limiters, 6); /* three of the rule, two of the other, the guard's switch */
    assert_int_equal(s.guards, 1);
}

/* As many as there are free places, and two thousand; one more says why not. */
TEST(test_R6_as_many_changes_at_once_as_there_is_room_for)
{
    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .keys = 100, .limiters = 100, .guards = 1 });
    struct weir_error error;
    size_t most = 2000;

    while (weir__records_reserve(table, most, &error) == WEIR_OK)
        weir__records_unreserve(table, most++);
    assert_in_range(most, 2000 + 100, 2200 + 100);
    assert_non_null(strstr(error.text, "limits change at once, and the table has room"));
    assert_int_equal(weir__records_reserve(table, most - 1, &error), WEIR_OK); /* none was lost */
    weir__records_unreserve(table, most - 1);
}

/* The file was edited while the server was down. */
TEST(test_R6_rules_that_went_while_nobody_had_them)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100 });
    struct weir *weir = engine_on(table);
    struct weir_limiter *mine = limiter_of(table, "mine", "gcra 10/1d");

    use(weir, RULES("- { name: old, key: \"{ip}\", limit: 5/1d }\n"), NOW);
    assert_int_equal(pass_of(weir, 9, "ip=::1", NOW), 5);
    take(mine, "k", 4, NOW);
    weir_limiter_release(mine);
    weir_destroy(weir);
    weir = engine_on(table);
    weir_time now = tend(table, NOW, 600 * S);
    use(weir, RULES("- { name: old, key: \"{ip}\", limit: 5/1d }\n"), now);
    assert_false(passes(weir, "ip=::1", now)); /* it was down for ten minutes */
    weir_destroy(weir);
    weir = engine_on(table);
    use(weir, RULES("- { name: new, key: \"{ip}\", limit: 5/1d }\n"), now);
    tend(table, now, 60 * S);
    assert_int_equal(stats_of(table, -1).limiters, 3);
    assert_int_equal(left(weir_limiter_find(table, "mine"), "k", NOW), 6);
    weir_destroy(weir);
}

/* One that reloads every half minute. */
TEST(test_R6_rules_that_went_go_however_often_others_come)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100 });
    struct weir *weir = engine_on(table);
    weir_time now = NOW;

    use(weir, RULES("- { name: old, key: \"{ip}\", limit: 5/1d }\n"), now);
    assert_true(passes(weir, "ip=::1", now));
    weir_destroy(weir);
    weir = engine_on(table);
    for (int i = 0; i < 4; i++) {
        use(weir, RULES("- { name: new, key: \"{ip}\", limit: 5/1d }\n"), now);
        now = tend(table, now, 30 * S);
    }
    assert_int_equal(stats_of(table, -1).limiters, 2);
    weir_destroy(weir);
}

/* The server is down for a while after a reload, and another one tends the table. */
TEST(test_R6_rules_that_stayed_are_kept_after_a_reload)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100 });
    struct weir *weir = engine_on(table);

    use(weir, RULES("- { name: a, key: \"{ip}\", limit: 5/1d }\n"), NOW);
    assert_int_equal(pass_of(weir, 9, "ip=::1", NOW), 5);
    use(weir, RULES("- { name: a, key: \"{ip}\", limit: 5/1d }\n"), NOW);
    weir_destroy(weir);
    weir_time now = tend(table, NOW, 600 * S);
    weir = engine_on(table);
    use(weir, RULES("- { name: a, key: \"{ip}\", limit: 5/1d }\n"), now);
    assert_false(passes(weir, "ip=::1", now));
    weir_destroy(weir);
}

/* A gateway that checks a file, and then fails at something else. */
TEST(test_R6_what_is_prepared_changes_nothing_until_it_is_committed)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100 });
    OWN(weir) *weir = engine_on(table);
    struct weir_prepared *prepared;
    struct weir_error error;

    use(weir, ONE("300/60"), NOW);
    assert_true(check_cost(weir, "ip=::1", 100, NOW).decision.allowed);
    struct weir_rules *rules = rules_of(ONE("250/60") "- { name: b, key: \"{ip}\", limit: 7/60 }\n"
                                                      "guards:\n- { name: g, concurrency: 5 }\n");
    assert_ok(weir_prepare(&prepared, weir, rules, &error));
    assert_int_equal(a_left(weir, NOW), 200);
    weir_prepared_destroy(prepared);
    assert_int_equal(a_left(weir, NOW), 200);
    assert_ok(weir_prepare(&prepared, weir, rules, &error));
    weir_commit(prepared, NOW); /* the rules are the engine's now */
    OWN(weir) *other = engine_of(ONE("300/60"));
    assert_true(check_cost(other, "ip=::1", 100, NOW).decision.allowed);
    use(other, ONE("250/60"), NOW);
    assert_int_equal(a_left(weir, NOW), a_left(other, NOW));
    assert_true(a_left(weir, NOW) < 250);
    assert_int_equal(rule_left(weir, "b", "ip=::1", NOW), 7);
    tend(table, NOW, 120 * S);
    assert_int_equal(rule_left(weir, "b", "ip=::1", NOW), 7);
}

/* The disk is full by then: records that change were set aside. */
TEST(test_R6_a_commit_does_not_fail)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100 });
    OWN(weir) *weir = engine_on(table);
    struct weir_prepared *prepared;
    struct weir_error error;

    use(weir, ONE("300/60") "guards:\n- { name: g, concurrency: 5 }\n", NOW);
    struct weir_rules *rules = rules_of(ONE("250/60") "guards:\n- { name: g, concurrency: 6 }\n");
    assert_ok(weir_prepare(&prepared, weir, rules, &error));
    for (size_t bytes = 1024; bytes >= 64; bytes /= 2)
        while (weir__block_take(&table->names.slab, bytes) != 0)
            ;
    struct weir_prepared *none;
    assert_int_equal(weir_prepare(&none, weir, rules, &error), WEIR_NO_MEMORY);
    weir_commit(prepared, NOW);
    assert_int_equal(a_left(weir, NOW), 250);
    assert_int_equal(table->n_reserved, 0);
    struct weir_guard *guard = weir_guard_find(table, "g");
    struct weir_guard_info info;
    weir_guard_get(guard, NOW, &info);
    assert_int_equal(info.options.max, 6);
}
