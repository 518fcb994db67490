/* check-later-shed.c -- each guard asks a waiter once whether it is shed. */
#include "unit/test.h"

#include "unit/guests.h"

/* Those behind the one where it waits ask at its turn. */
TEST(test_G7_a_waiter_is_shed_by_a_guard_that_it_has_not_come_to)
{
    OWN(weir) *weir = engine_of(GUARDS(
        "- { name: a, match: { uri: [/a, /both] }, shed: true, concurrency: { max: 1, queue: "
        "4 } }\n"
        "- { name: b, match: { uri: [/b, /both] }, shed: true, concurrency: { max: 1, queue: "
        "4 } }\n"));
    struct guest one, two, both, other;

    assert_true(come(weir, &one, "uri=/a", NOW));
    assert_true(come(weir, &two, "uri=/b", NOW));
    assert_false(come(weir, &both, "uri=/both", NOW));
    assert_false(come(weir, &other, "uri=/both", NOW));
    guard_of(weir, "a").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    go(weir, &one, NOW);
    assert_int_equal(weir_check_poll(weir, NOW), 2); /* both wait at b: shed by none */
    guard_of(weir, "b").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    go(weir, &two, NOW);
    assert_entered(both.visit, 2);
    assert_false(other.turned);
    go(weir, &both, NOW);
    assert_entered(other.visit, 2);
    go(weir, &other, NOW);

    guard_of(weir, "a").guard->record->shed.cuts[0] = 0;
    assert_true(come(weir, &one, "uri=/a", NOW));
    assert_false(come(weir, &both, "uri=/both", NOW));
    go(weir, &one, NOW);
    assert_refused_by_guard(both.visit, "b", WEIR_SHED);
    assert_int_equal(in_flight(weir, "a", NOW), 0);
}

/* At its turn one before that was busy: it has been there all the same. */
TEST(test_G7_a_waiter_is_not_shed_by_a_guard_that_it_has_come_to)
{
    OWN(weir) *weir = engine_of(GUARDS(
        "- { name: a, match: { uri: [/a, /both] }, concurrency: { max: 1, queue: 4 } }\n"
        "- { name: b, match: { uri: [/b, /both] }, shed: true, concurrency: { max: 1, queue: "
        "20 } }\n"));
    struct guest one, two, both;

    assert_true(come(weir, &two, "uri=/b", NOW));
    assert_false(come(weir, &both, "uri=/both", NOW)); /* at b, which has not shed it */
    guard_of(weir, "b").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    assert_true(come(weir, &one, "uri=/a", NOW));
    go(weir, &two, NOW); /* now it waits at a */
    assert_false(both.turned);
    go(weir, &one, NOW);
    assert_entered(both.visit, 2);
}

#define WAITS "- { name: w, concurrency: { max: 1, queue: 4 } }\n"
#define PLAIN "- { name: p, concurrency: 9 }\n- { name: q, concurrency: 9 }\n"
#define SHEDS "- { name: s, shed: true, concurrency: { max: 9, queue: 20 } }\n"

/* It waits while other rules come, and has its turn while the guard s sheds all. */
static struct weir_visit wait_while(struct weir *weir, const char *rules)
{
    struct guest one, two;

    assert_true(come(weir, &one, "", NOW));
    assert_false(come(weir, &two, "", NOW));
    use(weir, rules, NOW);
    guard_of(weir, "s").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    go(weir, &one, NOW);
    return two.visit;
}

TEST(test_G7_a_waiter_is_asked_once_whatever_rules_come)
{
    OWN(weir) *weir = engine_of(GUARDS(SHEDS WAITS));
    struct weir_visit v = wait_while(weir, GUARDS(PLAIN SHEDS WAITS));
    assert_entered(v, 4);

    OWN(weir) *other = engine_of(GUARDS(PLAIN WAITS));
    v = wait_while(other, GUARDS(WAITS SHEDS));
    assert_refused_by_guard(v, "s", WEIR_SHED);
}

/* Nor at the turn that its limits gave it. */
TEST(test_G7_who_waits_for_its_limits_is_asked_once)
{
    OWN(weir) *weir = engine_of(GUARDS(SHEDS));
    struct guest one;

    assert_true(come(weir, &one, "", NOW));
    go(weir, &one, NOW);
    guard_of(weir, "s").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    one.visit.in_turn = true;
    assert_true(weir_check_later(weir, &one.visit));
    assert_entered(one.visit, 1);
    go(weir, &one, NOW);
}

static struct weir *of_turn;
static struct guest *leaves;

static void leave_in_turn(struct weir_visit *visit)
{
    ((struct guest *)visit)->turned = true;
    weir_check_exit(of_turn, &leaves->visit.entry, WEIR_SUCCEEDED, NOW);
}

/* On its way to another queue it finds a permit there: it has not come to those behind. */
TEST(test_G7_a_waiter_that_moves_is_shed_by_guards_that_it_has_not_come_to)
{
    OWN(weir) *weir = engine_of(GUARDS(
        "- { name: a, match: { uri: [/a, /all] }, concurrency: { max: 2, queue: 4 } }\n"
        "- { name: b, match: { uri: [/b, /all] }, concurrency: { max: 1, queue: 4 } }\n"
        "- { name: c, match: { uri: /all }, shed: true, concurrency: { max: 9, queue: 20 } }\n"));
    struct guest one, two, busy, first, all;

    assert_true(come(weir, &one, "uri=/a", NOW));
    assert_true(come(weir, &two, "uri=/a", NOW));
    assert_true(come(weir, &busy, "uri=/b", NOW));
    assert_false(come(weir, &first, "uri=/a", NOW));
    assert_false(come(weir, &all, "uri=/all", NOW));
    guard_of(weir, "c").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    of_turn = weir;
    leaves = &busy;
    first.visit.turn = leave_in_turn;
    weir_check_exit(weir, &one.visit.entry, WEIR_SUCCEEDED, NOW);
    weir_check_exit(weir, &two.visit.entry, WEIR_SUCCEEDED, NOW);
    assert_int_equal(weir_check_poll(weir, NOW), 0);
    assert_true(first.turned);
    assert_refused_by_guard(all.visit, "c", WEIR_SHED);
}
