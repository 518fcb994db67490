/* check-enter.c -- a request, the rules and the guards that apply: one decision, all or nothing. */
#include "unit/test.h"

#include "engine/explain.h"
#include "unit/visits.h"

/* ---------------------------------------------------------- G1: enter, exit ---- */

TEST(test_G1_enter_and_exit_by_rules)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: search, match: { uri: \"/search/**\" }, concurrency: 2 }\n"));
    struct visit a = enter(weir, "uri=/search/a", NOW), b = enter(weir, "uri=/search/b", NOW);
    assert_entered(a, 1);
    assert_entered(b, 1);
    assert_int_equal(in_flight(weir, "search", NOW), 2);
    struct visit c = refused(weir, "uri=/search/c", NOW, "search", WEIR_BUSY);
    entered(weir, "uri=/other", NOW, 0);
    leave(weir, &a, WEIR_SUCCEEDED, NOW + WEIR_MILLISECOND);
    assert_int_equal(in_flight(weir, "search", NOW), 1);
    c = entered(weir, "uri=/search/c", NOW + WEIR_MILLISECOND, 1);
    leave(weir, &b, WEIR_FAILED, NOW);
    leave(weir, &c, WEIR_IGNORED, NOW);
    leave(weir, &c, WEIR_SUCCEEDED, NOW); /* once more changes nothing */
    assert_int_equal(in_flight(weir, "search", NOW), 0);
    struct weir_guard_info info = guard_info(weir, "search", NOW);
    assert_fields(info, (succeeded, 1), (failed, 1), (refused_busy, 1));
}

TEST(test_G1_without_rules_nothing_is_entered)
{
    OWN(weir) *weir = engine_on(NULL);
    struct visit v = entered(weir, "uri=/", NOW, 0);
    use(weir, RULES("- { name: r, limit: 1/60 }\n"), NOW);
    v = entered(weir, "uri=/", NOW, 0);
    assert_rule(&v.ruling, "r");
    v = enter(weir, "uri=/", NOW);
    assert_refused_by(v.ruling, "r");
    assert_null(v.ruling.guard);
    weir_check_exit(weir, &v.entry, WEIR_SUCCEEDED, NOW);
}

TEST(test_G1_weir_check_does_not_look_at_guards)
{
    OWN(weir) *weir = engine_of(RULES("- { name: r, key: \"{ip}\", limit: 100/60 }\nguards:\n- { "
                                      "name: g, concurrency: 1, degrade: 1 }\n"));
    entered(weir, "ip=::1", NOW, 1);
    weir_degradation_set(weir_table_of(weir), 5, NOW);
    for (int i = 0; i < 10; i++) {
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_allowed_by(r, "r");
        assert_int_equal(r.applied, 1);
        assert_null(r.guard);
    }
    assert_int_equal(in_flight(weir, "g", NOW), 1);
    struct weir_rule_info info;
    assert_true(weir_rule_next(weir, &(int64_t){ 0 }, &info));
    assert_false(weir_rule_next(weir, &(int64_t){ 1 }, &info)); /* a guard is no rule */
}

/* A request that costs five is one piece of work. */
TEST(test_L1_a_request_is_one_permit)
{
    OWN(weir) *weir =
        engine_of(RULES("- { name: r, limit: 100/60 }\nguards:\n- { name: g, concurrency: 2 }\n"));
    struct visit v = enter_as(weir, "ip=::1", &(struct weir_ask){ .cost = 50, .now = NOW });
    assert_entered(v, 1);
    assert_int_equal(in_flight(weir, "g", NOW), 1);
    v = enter_as(weir, "ip=::1", &(struct weir_ask){ .cost = 0, .now = NOW });
    assert_entered(v, 1);
    assert_int_equal(in_flight(weir, "g", NOW), 2);
}

/* Both say whether all leases were still there. */
TEST(test_G1_exit_and_renew_say_whether_it_was_in_time)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: short, concurrency: 5, lease: 1s }\n- { name: "
                                       "long, concurrency: 5, lease: 60s }\n"));
    struct visit a = enter(weir, "ip=::1", NOW), b = enter(weir, "ip=::1", NOW),
                 none = enter(weir, "", NOW);
    assert_entered(a, 2);
    assert_true(weir_check_renew(weir, &a.entry, NOW + WEIR_SECOND / 2));
    assert_int_equal(in_flight(weir, "short", NOW + WEIR_SECOND * 5 / 4),
                     1); /* those that nobody has renewed are over */
    assert_true(weir_check_renew(weir, &a.entry, NOW + WEIR_SECOND * 5 / 4));
    assert_false(weir_check_renew(weir, &b.entry, NOW + WEIR_SECOND * 5 / 4));
    assert_false(weir_check_exit(weir, &b.entry, WEIR_SUCCEEDED, NOW + WEIR_SECOND * 5 / 4));
    assert_true(weir_check_exit(weir, &a.entry, WEIR_SUCCEEDED, NOW + WEIR_SECOND * 5 / 4));
    none.entry.n = 0;
    assert_true(weir_check_exit(weir, &none.entry, WEIR_SUCCEEDED, NOW));
    assert_true(weir_check_renew(weir, &none.entry, NOW));
}

/* ------------------------------------------------------------ all or nothing ---- */

static const char both[] = RULES(
    "- { name: r, key: \"{ip}\", limit: fixed-window 3/60 align=first }\nguards:\n"
    "- { name: wide, concurrency: 10 }\n- { name: narrow, match: { uri: /n }, concurrency: 1 }\n");

TEST(test_G1_a_guard_that_refuses_leaves_limits_and_other_guards)
{
    OWN(weir) *weir = engine_of(both);
    struct visit first = entered(weir, "ip=::1 uri=/n", NOW, 2);
    assert_int_equal(rule_left(weir, "r", "ip=::1", NOW), 2);
    for (int i = 0; i < 20; i++) {
        refused(weir, "ip=::1 uri=/n", NOW, "narrow", WEIR_BUSY);
    }
    assert_int_equal(rule_left(weir, "r", "ip=::1", NOW), 2);
    assert_int_equal(in_flight(weir, "wide", NOW), 1);
    assert_int_equal(in_flight(weir, "narrow", NOW), 1);
    leave(weir, &first, WEIR_SUCCEEDED, NOW);
}

TEST(test_G1_a_limit_that_refuses_leaves_guards)
{
    OWN(weir) *weir = engine_of(both);
    assert_int_equal(pass_of(weir, 3, "ip=::1", NOW), 3);
    for (int i = 0; i < 20; i++) {
        struct visit v = enter(weir, "ip=::1 uri=/n", NOW);
        assert_refused_by(v.ruling, "r");
        assert_null(v.ruling.guard);
        assert_int_equal(v.ruling.decision.reason, WEIR_LIMITED);
    }
    assert_int_equal(in_flight(weir, "wide", NOW), 0);
    assert_int_equal(in_flight(weir, "narrow", NOW), 0);
    assert_int_equal(guard_info(weir, "wide", NOW).refused_busy, 0);
    assert_int_equal(guard_info(weir, "wide", NOW).entered, 0);
    assert_int_equal(guard_info(weir, "narrow", NOW).entered, 0);
    struct visit v = enter(weir, "ip=2:: uri=/n", NOW); /* and there is room for others */
    assert_entered(v, 2);
}

static void come(struct weir *weir, const char *request, int rate, weir_time from)
{
    for (weir_time i = 0; i < rate * 10; i++) {
        weir_time now = from + i * WEIR_SECOND / rate;
        struct visit v = enter(weir, request, now);
        leave(weir, &v, WEIR_SUCCEEDED, now);
    }
}

/* A flood that a limit refuses is no work. */
TEST(test_G6_the_rate_is_without_requests_that_a_limit_refuses)
{
    OWN(weir) *weir =
        engine_of(RULES("- { name: r, match: { uri: /a }, limit: 1/60 }\nguards:\n"
                        "- { name: front, concurrency: 10 }\n- { name: more, concurrency: 10 }\n"
                        "- { name: pay, match: { uri: /pay }, concurrency: 10, "
                        "system: { rate: 100 } }\n"));
    for (int i = 0; i < 5000; i++) {
        enter(weir, "uri=/a", NOW + i * WEIR_MILLISECOND);
        if (i % 50 == 0) {
            struct visit v = entered(weir, "uri=/pay", NOW + i * WEIR_MILLISECOND, 3);
            leave(weir, &v, WEIR_SUCCEEDED, NOW + i * WEIR_MILLISECOND);
        }
    }
    assert_int_equal(guard_info(weir, "pay", NOW + 5 * WEIR_SECOND).pressure_percent, 0);
}

TEST(test_G6_a_request_through_two_guards_counts_once_in_the_rate)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: front, concurrency: 10 }\n"
                         "- { name: pay, concurrency: 10, system: { rate: 100 } }\n"));
    come(weir, "uri=/", 70, NOW);
    assert_int_equal(guard_info(weir, "pay", NOW + 10 * WEIR_SECOND).refused_shed, 0);
    come(weir, "uri=/", 200, NOW + 10 * WEIR_SECOND);
    assert_true(guard_info(weir, "pay", NOW + 20 * WEIR_SECOND).refused_shed > 0);
}

/* A probe that a limit refuses is there for the next one, and the breaker is not stuck. */
TEST(test_G4_a_limit_that_refuses_gives_the_probe_back)
{
    OWN(weir) *weir = engine_of(
        RULES("- { name: r, key: \"{ip}\", limit: fixed-window 3/1h align=first }\nguards:\n"
              "- { name: g, breaker: { errors: 1, min_calls: 1, open_for: 1s, jitter: 0%, probes: "
              "1 } }\n"));
    struct visit v = entered(weir, "ip=2::", NOW, 1);
    leave(weir, &v, WEIR_FAILED, NOW);
    v = refused(weir, "ip=2::", NOW, "g", WEIR_OPEN);
    assert_in_range(v.ruling.decision.retry, 1, WEIR_SECOND);
    assert_int_equal(rule_left(weir, "r", "ip=2::", NOW), 2);
    assert_int_equal(pass_of(weir, 3, "ip=::1", NOW), 3);
    weir_time later = NOW + 2 * WEIR_SECOND;
    for (int i = 0; i < 100; i++) {
        v = enter(weir, "ip=::1", later);
        assert_refused_by(v.ruling, "r");
    }
    v = entered(weir, "ip=2::", later, 1); /* the one probe */
    refused(weir, "ip=2::", later, "g", WEIR_OPEN);
    leave(weir, &v, WEIR_SUCCEEDED, later);
    assert_int_equal(guard_info(weir, "g", later).breaker, WEIR_BREAKER_CLOSED);
}

/* ------------------------------------------------------------ in their order ---- */

TEST(test_G5_degradation_refuses)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: extras, match: { uri: /extras }, degrade: 2 "
                                       "}\n- { name: all, concurrency: 5 }\n"));
    weir_degradation_set(weir_table_of(weir), 1, NOW);
    entered(weir, "uri=/extras", NOW, 2);
    weir_degradation_set(weir_table_of(weir), 2, NOW);
    refused(weir, "uri=/extras", NOW, "extras", WEIR_DEGRADED);
    entered(weir, "uri=/other", NOW, 1);
}

TEST(test_G1_the_first_in_the_file_is_named)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: a, concurrency: 1 }\n- { name: b, concurrency: 1 }\n"));
    struct visit v = entered(weir, "ip=::1", NOW, 2);
    assert_ptr_equal(v.entry.entered[0].guard, guard_of(weir, "a").guard);
    assert_ptr_equal(v.entry.entered[1].guard, guard_of(weir, "b").guard);
    v = refused(weir, "ip=::1", NOW, "a", WEIR_BUSY);
}

/* g0 to g8 apply to a request with all=yes, and `last` to every one. */
static struct weir *with_many_guards(const char *first, const char *last)
{
    char yaml[2000] = GUARDS("");

    for (int i = 0; i <= WEIR_ENTRY_MAX; i++)
        snprintf(yaml + strlen(yaml), sizeof(yaml) - strlen(yaml),
                 "- { name: g%d, match: { all: \"yes\" }, concurrency: 5%s }\n", i,
                 i == 0               ? first
                 : i < WEIR_ENTRY_MAX ? ""
                                      : last);
    return engine_of(yaml);
}

TEST(test_G1_R2_more_guards_than_can_be_entered_refuse)
{
    OWN(weir) *weir = with_many_guards("", "");
    struct visit v = refused(weir, "all=yes", NOW, "g8", WEIR_TOO_MANY);
    assert_fields(v.ruling, (decision.retry, WEIR_NEVER), (cut, true), (level, 3));
    assert_int_equal(v.entry.n, 0);
    assert_int_equal(in_flight(weir, "g0", NOW), 0);
    entered(weir, "all=no", NOW, 0);
}

TEST(test_G1_R2_guards_that_are_off_or_in_shadow_leave_room)
{
    static const struct {
        const char *first, *last;
        const char *out; /* the one that is not entered */
        bool cut;
    } cases[] = { { ", mode: off", "", "g0", false },
                  { ", mode: shadow", "", "g0", true },
                  { "", ", mode: shadow", "g8", true },
                  { ", mode: shadow", ", mode: shadow", "g8", true } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        OWN(weir) *weir = with_many_guards(cases[i].first, cases[i].last);
        struct visit v = entered(weir, "all=yes", NOW, WEIR_ENTRY_MAX);
        assert_int_equal(v.ruling.cut, cases[i].cut);
        for (char name[] = "g0"; name[1] <= '8'; name[1]++)
            assert_int_equal(in_flight(weir, name, NOW), strcmp(name, cases[i].out) != 0);
        leave(weir, &v, WEIR_SUCCEEDED, NOW);
        assert_int_equal(in_flight(weir, "g1", NOW), 0);
    }
}

/* --------------------------------------------------------------- lists, bans ---- */

TEST(test_R3_lists_and_guards)
{
    OWN(weir) *weir =
        engine_of(RULES("- { name: r, limit: fixed-window 1/60 align=first }\nguards:\n- { name: "
                        "g, concurrency: 3 }\n"
                        "lists: { allow: { ip: [10.0.0.0/8] }, deny: { ip: [192.0.2.0/24] } }\n"));
    struct visit v = enter(weir, "ip=192.0.2.1", NOW);
    assert_fields(v.ruling.decision, (allowed, false), (reason, WEIR_DENIED));
    assert_null(v.ruling.guard);
    assert_int_equal(in_flight(weir, "g", NOW), 0);
    for (int i = 0; i < 3; i++) { /* past the limit, but it is work */
        v = entered(weir, "ip=10.0.0.1", NOW, 1);
        assert_string_equal(v.ruling.list, "allow");
    }
    v = refused(weir, "ip=10.0.0.1", NOW, "g", WEIR_BUSY);
    struct weir_totals totals;
    weir_totals_get(weir, &totals);
    assert_fields(totals, (checked, 5), (refused, 2), (denied, 1), (allow_listed, 3));
}

/* All are shed but those on the allow list. */
TEST(test_G7_who_is_on_the_allow_list_is_not_shed)
{
    OWN(weir) *weir = engine_of("version: 1\nguards: [{ name: g, concurrency: 5, shed: true "
                                "}]\nlists: { allow: { ip: [10.0.0.0/8] } }\n");
    entered(weir, "ip=::1", NOW, 1);
    guard_of(weir, "g").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    refused(weir, "ip=::1", NOW, "g", WEIR_SHED);
    entered(weir, "ip=10.0.0.1", NOW, 1);
}

TEST(test_R4_a_banned_key_does_not_enter)
{
    OWN(weir) *weir = engine_of(RULES(
        "- { name: r, key: \"{ip}\", limit: 5/60 }\nguards:\n- { name: g, concurrency: 3 }\n"));
    assert_ok(weir_ban_set(weir, "r", "192.0.2.1", NOW, NOW + WEIR_SECOND, NULL));
    struct visit v = enter(weir, "ip=192.0.2.1", NOW);
    assert_refused_by(v.ruling, "r");
    assert_int_equal(v.ruling.decision.reason, WEIR_BANNED);
    assert_int_equal(in_flight(weir, "g", NOW), 0);
    assert_int_equal(guard_info(weir, "g", NOW).entered, 0);
    v = entered(weir, "ip=192.0.2.2", NOW, 1);
}

/* --------------------------------------------------------------------- modes ---- */

TEST(test_G5_rules_push_degradation_and_take_it_back)
{
    static const char with[] = "version: 1\ndegradation: 2\nguards: [ { name: g, degrade: 2 } ]\n";
    static const char without[] = "version: 1\nguards: [ { name: g, degrade: 2 } ]\n";

    OWN(weir) *weir = engine_of(with);
    assert_int_equal(weir_degradation_get(weir_table_of(weir), NULL), 2);
    assert_false(enter(weir, "ip=::1", NOW).ruling.decision.allowed);
    use(weir, without, NOW);
    assert_int_equal(weir_degradation_get(weir_table_of(weir), NULL), 0);
    weir_degradation_set(weir_table_of(weir), 5, NOW);
    use(weir, without, NOW); /* by hand it stays */
    assert_int_equal(weir_degradation_get(weir_table_of(weir), NULL), 5);
    use(weir, with, NOW);
    assert_int_equal(weir_degradation_get(weir_table_of(weir), NULL), 2);
    weir_degradation_set(weir_table_of(weir), 0,
                         NOW); /* and by hand it can be overruled, until the rules say another */
    use(weir, with, NOW);
    assert_int_equal(weir_degradation_get(weir_table_of(weir), NULL), 0);
}

TEST(test_R5_a_guard_in_shadow_lets_through)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: g, concurrency: 1, mode: shadow }\n"));
    struct visit a = enter(weir, "ip=::1", NOW), b = enter(weir, "ip=::1", NOW);
    assert_entered(a, 1);
    assert_null(a.ruling.shadow);
    assert_true(b.ruling.decision.allowed);
    assert_non_null(b.ruling.shadow);
    assert_string_equal(b.ruling.shadow, "g");
    assert_int_equal(in_flight(weir, "g", NOW), 2);
    assert_int_equal(guard_info(weir, "g", NOW).shadow_refused, 1);
    leave(weir, &a, WEIR_SUCCEEDED, NOW);
    leave(weir, &b, WEIR_SUCCEEDED, NOW);
    assert_int_equal(in_flight(weir, "g", NOW), 0);
}

TEST(test_R5_a_guards_mode_by_hand)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: g, concurrency: 1, mode: shadow }\n"));
    struct visit a = enter(weir, "ip=::1", NOW);
    assert_ok(weir_mode_set(weir, "g", WEIR_ENFORCE, NULL));
    refused(weir, "ip=::1", NOW, "g", WEIR_BUSY);
    assert_fields(guard_of(weir, "g"), (modes.written, WEIR_SHADOW), (modes.by_hand, WEIR_ENFORCE),
                  (modes.in_force, WEIR_ENFORCE));
    use(weir, GUARDS("- { name: g, concurrency: 1 }\n"), NOW); /* the switch stays */
    assert_ok(weir_mode_set(weir, "g", WEIR_OFF, NULL));
    entered(weir, "ip=::1", NOW, 0);
    assert_int_equal(in_flight(weir, "g", NOW), 1);
    assert_ok(weir_mode_set(weir, "g", WEIR_AS_WRITTEN, NULL));
    refused(weir, "ip=::1", NOW, "g", WEIR_BUSY);
    assert_fails(weir_mode_set(weir, "x", WEIR_OFF, &error), WEIR_INVALID,
                 "there is no rule or guard 'x'");
    leave(weir, &a, WEIR_SUCCEEDED, NOW);
}

TEST(test_R5_the_mode_of_the_whole_set)
{
    OWN(weir) *weir = engine_of(GUARDS("- { name: g, concurrency: 1 }\n"));
    struct visit v = enter(weir, "ip=::1", NOW);
    assert_ok(weir_mode_set(weir, NULL, WEIR_SHADOW, NULL));
    v = enter(weir, "ip=::1", NOW);
    assert_true(v.ruling.decision.allowed);
    assert_int_equal(in_flight(weir, "g", NOW), 2);
    assert_ok(weir_mode_set(weir, NULL, WEIR_OFF, NULL));
    v = entered(weir, "ip=::1", NOW, 0);
    assert_ok(weir_mode_set(weir, NULL, WEIR_AS_WRITTEN, NULL));
    v = refused(weir, "ip=::1", NOW, "g", WEIR_BUSY);
}

/* ------------------------------------------------- G7: what a guard takes from it ---- */

static const char picks[] = GUARDS(
    "- name: g\n  concurrency: { max: 1, weights: { gold: 3, silver: 2, free: 1 } }\n"
    "  user: \"{account}\"\n  class: \"{plan}\"\n  priority: \"{header.x-priority|normal}\"\n"
    "  priorities: { normal: 1, checkout: 5 }\n");

/* How the guard saw a request that it refused. */
static struct weir__admission seen(struct weir *weir, const char *request,
                                   const struct weir_ask *ask)
{
    struct request r = request_of(request);
    struct weir_entry entry = { 0 };
    struct weir__admission admission = { .ask = ask, .entry = &entry, .leased = true };
    struct weir_ruling ruling;

    assert_false(weir__check_admitted(weir, r.attrs, r.n, &admission, &ruling, NULL));
    return admission;
}

TEST(test_G7_priority_and_class_of_a_request)
{
    static const struct {
        const char *request;
        int priority, user_class;
    } cases[] = {
        { "plan=gold", 1, 0 },
        { "plan=free header.X-Priority=checkout", 5, 2 },
        { "plan=silver header.x-priority=-3", -3, 1 },
        { "plan=platinum header.x-priority=100", 7, 2 },
        { "header.x-priority=nonsense", 4, 2 },
    };
    OWN(weir) *weir = engine_of(picks);
    entered(weir, "", NOW, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir__admission admission = seen(
            weir, cases[i].request, &(struct weir_ask){ .cost = 1, .now = NOW, .priority = 4 });
        assert_fields(admission, (priority, cases[i].priority), (user_class, cases[i].user_class));
        assert_ptr_equal(admission.guard, guard_of(weir, "g").guard);
    }
    use(weir, GUARDS("- { name: g, concurrency: 1 }\n"),
        NOW); /* what the guard does not take is the ask's */
    struct weir__admission admission =
        seen(weir, "plan=gold", &(struct weir_ask){ .now = NOW, .priority = -7, .user_class = 3 });
    assert_fields(admission, (priority, -7), (user_class, 3));
}

static void note_guard(void *context, const struct weir__explained_guard *g)
{
    *(struct weir__explained_guard *)context = *g;
}

TEST(test_S6_explain_names_the_guards)
{
    static struct weir__explained_guard g;
    struct request r = request_of("plan=gold account=ann");

    OWN(weir) *weir = engine_of(picks);
    weir__engine_explain_guards(weir, r.attrs, r.n, &(struct weir_ask){ .now = NOW }, note_guard,
                                &g);
    assert_string_equal(g.guard->rule.name, "g");
    assert_int_equal(g.as_rule.why, WEIR__APPLIES);
    assert_string_equal(g.as_rule.key, "ann");
    assert_fields(g, (priority, 1), (user_class, 0), (refuses, false));
    enter(weir, "", NOW);
    weir__engine_explain_guards(weir, r.attrs, r.n, &(struct weir_ask){ .now = NOW }, note_guard,
                                &g);
    assert_fields(g, (refuses, true), (reason, WEIR_BUSY), (info.in_flight, 1));
    use(weir, GUARDS("- { name: g, match: { uri: /x }, concurrency: 1 }\n"), NOW);
    weir__engine_explain_guards(weir, r.attrs, r.n, &(struct weir_ask){ .now = NOW }, note_guard,
                                &g);
    assert_int_equal(g.as_rule.why, WEIR__UNMATCHED);
    assert_string_equal(g.as_rule.attribute, "uri");
}

/* ------------------------------------------------------------ permits by key ---- */

TEST(test_L1_permits_by_key)
{
    OWN(weir) *weir = engine_of(GUARDS(
        "- { name: g, concurrency: { max: 2, key: \"{ip}\", total: 5 }, user: \"{account}\" }\n"
        "- { name: h, concurrency: 100 }\n"));
    struct weir_guard_info info = guard_info(weir, "g", NOW);
    assert_fields(info.options, (max, 5), (max_per_key, 2));
    struct visit v[5];
    v[0] = enter(weir, "ip=192.0.2.7 account=ann", NOW);
    v[1] = enter(weir, "ip=192.0.2.7 account=bob", NOW);
    assert_int_equal(v[1].ruling.decision.allowed, true);
    struct visit no = enter(weir, "ip=192.0.2.7 account=eve", NOW);
    assert_int_equal(no.ruling.decision.reason, WEIR_KEY_BUSY);
    assert_string_equal(no.ruling.guard, "g");
    assert_int_equal(in_flight(weir, "h", NOW), 2);           /* all or nothing */
    no = enter(weir, "ip=::ffff:192.0.2.7 account=eve", NOW); /* the same address */
    assert_int_equal(no.ruling.decision.reason, WEIR_KEY_BUSY);
    v[2] = enter(weir, "ip=192.0.2.8", NOW);
    v[3] = enter(weir, "account=eve", NOW); /* without an address only the total counts */
    v[4] = enter(weir, "account=eve", NOW);
    assert_int_equal(in_flight(weir, "g", NOW), 5);
    assert_int_equal(enter(weir, "ip=192.0.2.9", NOW).ruling.decision.reason, WEIR_BUSY);
    for (int i = 0; i < 5; i++)
        leave(weir, &v[i], WEIR_SUCCEEDED, NOW);
    v[0] = enter(weir, "ip=192.0.2.7", NOW);
    assert_true(v[0].ruling.decision.allowed);
    leave(weir, &v[0], WEIR_SUCCEEDED, NOW);
}

TEST(test_S6_explain_names_the_key)
{
    static struct weir__explained_guard g;
    struct request r = request_of("ip=192.0.2.7");

    OWN(weir) *weir = engine_of(GUARDS("- { name: g, concurrency: { max: 1, key: \"{ip}\" } }\n"));
    weir__engine_explain_guards(weir, r.attrs, r.n, &(struct weir_ask){ .now = NOW }, note_guard,
                                &g);
    assert_string_equal(g.key, "192.0.2.7");
    assert_fields(g, (refuses, false), (key_in_flight, 0));
    enter(weir, "ip=192.0.2.7", NOW);
    weir__engine_explain_guards(weir, r.attrs, r.n, &(struct weir_ask){ .now = NOW }, note_guard,
                                &g);
    assert_fields(g, (refuses, true), (reason, WEIR_KEY_BUSY), (key_in_flight, 1));
    r = request_of("account=ann");
    weir__engine_explain_guards(weir, r.attrs, r.n, &(struct weir_ask){ .now = NOW }, note_guard,
                                &g);
    assert_string_equal(g.key, "");
    assert_fields(g, (refuses, false), (key_in_flight, 0));
}

TEST(test_L1_the_key_without_permits_is_told)
{
    OWN(weir) *weir =
        engine_of(GUARDS("- { name: g, concurrency: { max: 1, key: \"{ip/24}\" } }\n"));
    struct request r = request_of("ip=192.0.2.7");
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_entry entry = { 0 };
    struct weir__admission admission = { .ask = &ask, .entry = &entry };
    struct weir_ruling ruling;
    char key[WEIR_KEY_TEXT];
    assert_true(weir__check_admitted(weir, r.attrs, r.n, &admission, &ruling, key));
    assert_string_equal(key, "");
    struct weir_entry second = { 0 };
    admission = (struct weir__admission){ .ask = &ask, .entry = &second };
    assert_false(weir__check_admitted(weir, r.attrs, r.n, &admission, &ruling, key));
    assert_string_equal(key, "192.0.2.0/24");
    weir_check_exit(weir, &entry, WEIR_SUCCEEDED, NOW);
}
