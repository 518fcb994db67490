/* A guard's options: what is filled in, what is compiled. */
#include "unit/test.h"

#include "unit/guarding.h"

static struct weir__guard_plan plan_of(const struct weir_guard_options *o)
{
    struct weir__guard_plan plan;
    struct weir_error error = { 0 };

    if (weir__guard_plan_make(&plan, o, 1, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return plan;
}

TEST(test_defaults_are_filled_in)
{
    struct weir__guard_plan p = plan_of(&(struct weir_guard_options){ 0 });

    assert_fields(p, (max, 1024), (lease, 60 * S), (mode, WEIR_ENFORCE), (shed.classes, 1));
    assert_false(p.sheds || p.shed.on || p.pressure.on || p.breaker.on);
    assert_null(p.controller.row);
}

TEST(test_there_are_twice_as_many_seats_as_permits_but_for_the_largest)
{
    for (int64_t max = 1; max <= WEIR__PERMITS_MAX / 2; max = max * 3 / 2 + 1) {
        uint32_t seats = plan_of(&(struct weir_guard_options){ .max = max }).seat_mask + 1;
        assert_true(seats >= 2 * max && (seats & (seats - 1)) == 0 && seats <= WEIR__GUARD_SEATS);
    }
    assert_int_equal(plan_of(&(struct weir_guard_options){ .max = WEIR__PERMITS_MAX }).seat_mask +
                         1,
                     WEIR__GUARD_SEATS);
}

TEST(test_G7_classes_shed_and_so_does_the_host)
{
    struct weir__guard_plan p =
        plan_of(&(struct weir_guard_options){ .classes = { { "gold", 3 }, { "free", 1 } } });

    assert_true(p.sheds && p.shed.on);
    assert_fields(p, (shed.classes, 2), (shed.weights[0], 3));
    p = plan_of(&(struct weir_guard_options){ .system = { .cpu_percent = 80 } });
    assert_true(p.sheds && p.pressure.on);
    assert_false(p.shed.on);
    p = plan_of(&(struct weir_guard_options){ .shed = true });
    assert_true(p.sheds && p.shed.on);
}

TEST(test_numbers_of_a_damaged_record_never_become_a_plan_that_reaches_out)
{
    uint64_t seed = 7;
    int good = 0;

    for (int i = 0; i < 20000; i++) {
        struct weir__guard_terms terms = { 0 };
        struct weir_guard_options o;
        struct weir__guard_plan p;
        uint64_t *words = (uint64_t *)(void *)&terms;
        for (int k = 0; k < 3; k++)
            words[random64(&seed) % (sizeof(terms) / 8)] = random64(&seed) >> random64(&seed) % 64;
        weir__guard_terms_read(&terms, &o);
        if (weir__guard_plan_make(&p, &o, 1, NULL) != WEIR_OK)
            continue;
        good++;
        assert_in_range(p.max, 1, WEIR__PERMITS_MAX);
        assert_in_range(p.seat_mask, 63, WEIR__GUARD_SEATS - 1);
        assert_in_range(p.shed.classes, 1, WEIR_CLASSES);
        assert_true(p.tick > 0 && p.lease > 0);
    }
    assert_true(good > 100);
}
