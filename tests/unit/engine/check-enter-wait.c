/* check-enter-wait.c -- a request that waits for its turn asks again and again. */
#include "unit/test.h"

#include "unit/visits.h"

/* One try of a waiter: as the server makes it. */
static bool try_again(struct weir *weir, const char *request, struct weir_asked *asked,
                      struct weir_ruling *ruling)
{
    struct request r = request_of(request);
    struct weir_entry entry = { 0 };
    struct weir__admission admission = { .ask = &(struct weir_ask){ .cost = 1, .now = NOW },
                                         .entry = &entry,
                                         .leased = true,
                                         .asked = asked,
                                         .waits = true };

    return weir__check_admitted(weir, r.attrs, r.n, &admission, ruling, NULL);
}

TEST(test_G7_who_has_waited_is_not_shed)
{
    struct weir_asked asked = { 0 };
    struct weir_ruling r;

    OWN(weir) *weir =
        engine_of(GUARDS("- { name: g, concurrency: { max: 5, queue: 1 }, shed: true }\n"));
    guard_of(weir, "g").guard->record->shed.cuts[0] = (uint64_t)WEIR__RANKS << 32;
    assert_false(try_again(weir, "ip=::1", &asked, &r));
    assert_int_equal(r.decision.reason, WEIR_SHED);
    int64_t arrived = guard_info(weir, "g", NOW).refused_shed;
    assert_true(try_again(weir, "ip=::1", &asked, &r));
    assert_int_equal(guard_info(weir, "g", NOW).refused_shed, arrived);
}

/* However often it tries; but where there is no queue nobody waits. */
TEST(test_L11_who_waits_is_not_counted_until_its_turn)
{
    struct weir_totals before, after;
    struct weir_asked asked = { 0 };
    struct weir_ruling r;

    OWN(weir) *weir =
        engine_of(GUARDS("- { name: q, match: { uri: /q }, concurrency: { max: 1, queue: 1 } }\n"
                         "- { name: g, match: { uri: /g }, concurrency: 1 }\n"));
    struct visit q = enter(weir, "uri=/q", NOW);
    entered(weir, "uri=/g", NOW, 1);
    weir_totals_get(weir, &before);
    for (int i = 0; i < 10; i++)
        assert_false(try_again(weir, "uri=/q", &asked, &r));
    weir_totals_get(weir, &after);
    assert_int_equal(after.refused, before.refused);
    assert_int_equal(guard_info(weir, "q", NOW).refused_busy, 0);
    leave(weir, &q, WEIR_SUCCEEDED, NOW);
    assert_true(try_again(weir, "uri=/q", &asked, &r));
    weir_totals_get(weir, &after);
    assert_int_equal(after.allowed, before.allowed + 1);
    assert_false(try_again(weir, "uri=/g", NULL, &r));
    weir_totals_get(weir, &after);
    assert_int_equal(after.refused, before.refused + 1);
    assert_int_equal(guard_info(weir, "g", NOW).refused_busy, 1);
}

/* For the adaptive limit. */
TEST(test_L12_who_waits_is_demand_once)
{
    static const char *const guards[] = {
        GUARDS("- { name: q, concurrency: { max: 1, queue: 1 } }\n"),
        GUARDS("- { name: q, concurrency: { max: 1, queue: 1 } }\n"
               "lists: { allow: { ip: [::1] } }\n"),
        GUARDS("- { name: q, concurrency: { max: 1, queue: 1 }, mode: shadow }\n")
    };

    for (size_t i = 0; i < 3; i++) {
        struct weir_asked asked = { 0 };
        struct weir_ruling r;
        OWN(weir) *weir = engine_of(guards[i]);
        struct weir__guard_record *record = guard_of(weir, "q").guard->record;
        entered(weir, "ip=::2", NOW, 1);
        assert_int_equal(record->queued, 0);
        for (int n = 0; n < 5; n++)
            (void)try_again(weir, "ip=::1", &asked, &r);
        assert_int_equal(record->queued, 1);
        weir__guard_count_refused(guard_of(weir, "q").guard, WEIR_LATE);
        assert_int_equal(record->queued, 0);
    }
}
