/* ruled-guards.c -- what an engine tells about the guards of its rules: fallbacks, queues. */
#include "unit/test.h"

#include <malloc.h>

#include "unit/visits.h"

TEST(test_G5_fallbacks)
{
    struct weir_fallback f = { .status = 7 };
    char body[8] = "=======";

    OWN(weir) *weir = engine_of(GUARDS("- { name: a, degrade: 1, fallback: { status: 200, body: "
                                       "\"[1]\", type: application/json } }\n"
                                       "- { name: b, degrade: 1 }\n"));
    assert_false(weir_fallback_get(weir, "b", &f, body, sizeof(body)));
    assert_false(weir_fallback_get(weir, "x", &f, body, sizeof(body)));
    assert_false(weir_fallback_get(weir, NULL, &f, body, sizeof(body))); /* no guard refused */
    assert_int_equal(f.status, 7);
    assert_true(weir_fallback_get(weir, "a", &f, body, sizeof(body)));
    assert_fields(f, (status, 200), (len, 3));
    assert_memory_equal(body, "[1]====", 8);
    assert_string_equal(f.type, "application/json");
    assert_true(weir_fallback_get(weir, "a", &f, NULL, 0));
    assert_int_equal(f.len, 3);
    use(weir, GUARDS("- { name: a, degrade: 1, fallback: { body: another } }\n"), NOW);
    assert_string_equal(f.type, "application/json"); /* an answer in progress keeps it */
    assert_true(weir_fallback_get(weir, "a", &f, body, 3));
    assert_fields(f, (status, 503), (len, 7));
    assert_memory_equal(body, "ano====", 8); /* no more than there is room for */
}

/* Bodies go with their rules: what a file has been a thousand times is not kept. */
TEST(test_G5_fallbacks_of_old_rules_are_freed)
{
    static char yaml[40000];

    OWN(weir) *weir = engine_on(NULL);
    size_t before = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(yaml, sizeof(yaml),
                 GUARDS("- { name: a, degrade: 1, fallback: { body: \"%032000d\" } }\n"), i);
        use(weir, yaml, NOW);
        if (i == 20)
            before = mallinfo2().uordblks;
    }
    assert_true(mallinfo2().uordblks < before + 1000000);
}

TEST(test_L11_the_queue_that_is_written)
{
    struct weir_ruled_guard v;
    struct weir_queue_options queue;
    weir_time wait_max;

    OWN(weir) *weir = engine_on(NULL);
    assert_false(weir_ruled_guard_next(weir, &(int64_t){ 0 }, &v));
    use(weir,
        GUARDS("- { name: a, concurrency: 1 }\n"
               "- { name: b, concurrency: { max: 1, queue: 128, wait: 200ms, order: weighted, "
               "weights: { gold: 3, free: 1 } } }\n"),
        NOW);
    assert_true(weir_ruled_guard_next(weir, &(int64_t){ 0 }, &v));
    assert_string_equal(v.name, "a");
    assert_false(weir_ruled_queue_get(weir, "a", &queue, &wait_max));
    assert_false(weir_ruled_queue_get(weir, "c", &queue, &wait_max));
    assert_true(weir_ruled_guard_next(weir, &(int64_t){ 1 }, &v));
    assert_true(weir_ruled_queue_get(weir, v.name, &queue, &wait_max));
    assert_fields(queue, (max, 128), (order, WEIR_WEIGHTED), (weights[0], 3), (weights[1], 1));
    assert_int_equal(wait_max, 200 * WEIR_MILLISECOND);
    assert_false(weir_ruled_guard_next(weir, &(int64_t){ 2 }, &v));
}
