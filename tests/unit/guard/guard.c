/* Making, joining and changing guards; what survives. */
#include "unit/test.h"

#include "unit/guarding.h"

static const struct weir_guard_options full = {
    .max = 500,
    .lease = 5 * WEIR_SECOND,
    .breaker = { .error_percent = 50,
                 .errors = 7,
                 .slow = 3,
                 .slow_percent = 9,
                 .calls = 20,
                 .min_calls = 5,
                 .open_for = 11,
                 .open_max = 12,
                 .jitter_percent = 13,
                 .probes = 2,
                 .above = true },
    .adaptive = { .controller = "percentile",
                  .initial = 5,
                  .min = 2,
                  .max = 99,
                  .target = 17,
                  .percentile = 90,
                  .window = 10 * WEIR_SECOND },
    .system = { 80, 40, 30, 4, 19 },
    .shed = true,
    .classes = { { "gold", 3 }, { "silver", 2 }, { "free", 1 } },
    .degrade = 4,
    .raises = 5,
    .mode = WEIR_SHADOW,
};

static void assert_same(const struct weir_guard_options *a, const struct weir_guard_options *b)
{
    struct weir__guard_terms x, y;

    weir__guard_terms_write(&x, a);
    weir__guard_terms_write(&y, b);
    assert_memory_equal(&x, &y, sizeof(x));
}

TEST(test_options_go_into_the_table_and_come_out_as_they_were)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_info info = info_of(guard_of(table, "g", &full), NOW);
    assert_same(&info.options, &full);
    assert_string_equal(info.options.adaptive.controller, "percentile");
    assert_string_equal(info.options.classes[2].name, "free");
    assert_string_equal(info.name, "g");
}

TEST(test_a_name_joins_the_guard_that_is_there)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *a = guard_of(table, "g", &full), *b = guard_of(table, "g", &full), *c = a;
    struct weir_error error;
    assert_ptr_equal(a, b);
    assert_int_equal(weir_guard_create(&c, table, "g", NULL, &error), WEIR_EXISTS);
    assert_non_null(strstr(error.text, "other options (max)"));
    assert_ptr_equal(c, a);
    int64_t at = 0;
    assert_true(weir_guard_next(table, &at, &b));
    assert_ptr_equal(b, a);
    assert_false(weir_guard_next(table, &at, &b));
    assert_false(weir_guard_next(table, &(int64_t){ -1 }, &b));
    assert_false(weir_guard_next(table, &(int64_t){ INT64_MAX }, &b));
}

TEST(test_what_is_left_out_is_the_same_as_its_default_written)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options brief = { .breaker = { .error_percent = 50 },
                                        .adaptive = { .controller = WEIR_ADAPTIVE } };
    struct weir_guard *g = guard_of(table, "g", &brief);
    struct weir_guard_options long_form = info_of(g, NOW).options;
    assert_fields(long_form, (max, 1024), (mode, WEIR_ENFORCE));
    assert_fields(long_form.breaker, (window, 10 * S), (min_calls, 20));
    assert_true(long_form.adaptive.initial > 0);
    assert_ptr_equal(guard_of(table, "g", &long_form), g);
    long_form.breaker.probes++;
    struct weir_error error;
    assert_int_equal(weir_guard_create(&g, table, "g", &long_form, &error), WEIR_EXISTS);
    assert_non_null(strstr(error.text, "(breaker)"));
}

TEST(test_bad_options_are_refused_by_name)
{
    static const struct {
        struct weir_guard_options options;
        const char *words;
    } rows[] = {
        { { .max = -1 }, "max must be from 1" },
        { { .max = 16385 }, "16384" },
        { { .lease = -1 }, "lease" },
        { { .lease = 5 }, "10ms" },
        { { .lease = 4000 * WEIR_SECOND }, "lease" },
        { { .degrade = 10 }, "degrade must be from 1 to 9" },
        { { .raises = -1 }, "raises" },
        { { .mode = 9 }, "mode" },
        { { .breaker = { .error_percent = 101 } }, "" },
        { { .adaptive = { .controller = "magic" } }, "magic" },
        { { .adaptive = { .controller = "percentile" } }, "target" },
        { { .system = { .cpu_percent = 101 } }, "cpu" },
        { { .classes = { { "a", 0 }, { "b", 2 } } }, "class 1" },
        { { .classes = { { "a", 1001 } } }, "weight" },
    };
    OWN(weir_table) *table = private_table(false, 16);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_guard *g = NULL;
        struct weir_error error = { 0 };
        if (weir_guard_create(&g, table, "g", &rows[i].options, &error) != WEIR_INVALID ||
            g != NULL)
            fail_msg("row %zu passed", i);
        if (strstr(error.text, rows[i].words) == NULL || error.text[0] == '\0')
            fail_msg("row %zu says: %s", i, error.text);
    }
    struct weir_guard *g = NULL;
    struct weir_error error;
    char name[80];
    memset(name, 'x', sizeof(name));
    name[64] = '\0';
    assert_int_equal(weir_guard_create(&g, table, name, NULL, &error), WEIR_INVALID);
    assert_int_equal(weir_guard_create(&g, table, "", NULL, &error), WEIR_INVALID);
    assert_int_equal(weir_guard_create(&g, table, "new\nline", NULL, &error), WEIR_INVALID);
    name[63] = '\0';
    assert_ok(weir_guard_create(&g, table, name, NULL, &error));
}

TEST(test_a_table_has_as_many_guards_as_it_was_made_for)
{
    struct weir_table *table = table_with(&(struct weir_table_options){ .keys = 16, .guards = 2 });
    struct weir_guard *g = NULL;
    struct weir_error error;

    guard_of(table, "a", NULL);
    guard_of(table, "b", NULL);
    assert_int_equal(weir_guard_create(&g, table, "c", NULL, &error), WEIR_NO_MEMORY);
    assert_non_null(strstr(error.text, "2 guards"));
    guard_of(table, "a", NULL);
    weir_table_destroy(table);
    struct weir_table *none = NULL;
    assert_int_equal(
        weir_table_create(&none, &(struct weir_table_options){ .guards = 4097 }, &error),
        WEIR_INVALID);
}

TEST(test_a_change_keeps_permits_and_takes_effect_at_once)
{
    A_GUARD(g, .max = 1000);
    struct weir_permit p[1000];
    struct weir_error error;
    for (int i = 0; i < 1000; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    assert_ok(weir_guard_change(g, &(struct weir_guard_options){ .max = 3 }, &error));
    assert_int_equal(why_not(g, NOW), WEIR_BUSY);
    for (int i = 0; i < 998; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED,
                              NOW)); /* their seats are beyond what 3 permits need */
    assert_int_equal(why_not(g, NOW), WEIR_GRANTED);
    assert_int_equal(info_of(g, NOW).in_flight, 2);
    assert_int_equal(weir_guard_change(g, &(struct weir_guard_options){ .max = -3 }, &error),
                     WEIR_INVALID);
    assert_int_equal(info_of(g, NOW).limit, 3);
}

TEST(test_another_process_sees_a_change_and_the_same_permits)
{
    const char *path = new_path();
    struct weir_table *one = table_with(&(struct weir_table_options){ .path = path, .keys = 16 }),
                      *two = attach(path);
    struct weir_guard *a = guard_of(one, "g", &(struct weir_guard_options){ .max = 2 });
    struct weir_guard *b = guard_of(two, "g", &(struct weir_guard_options){ .max = 2 });
    struct weir_permit p, q;
    struct weir_error error;

    assert_true(enter_at(a, NOW, &p));
    assert_true(enter_at(b, NOW, &q));
    assert_int_equal(why_not(a, NOW), WEIR_BUSY);
    assert_int_equal(why_not(b, NOW), WEIR_BUSY);
    assert_ok(weir_guard_change(b, &(struct weir_guard_options){ .max = 5 }, &error));
    assert_int_equal(why_not(a, NOW), WEIR_GRANTED);
    assert_true(weir_exit(b, &p, WEIR_SUCCEEDED, NOW)); /* another one gives it back */
    weir_guard_force(a, WEIR_FORCE_OPEN, NOW);
    assert_int_equal(why_not(b, NOW), WEIR_OPEN);
    weir_degradation_set(one, 3, NOW);
    assert_int_equal(weir_degradation_get(two, NULL), 3);
    weir_table_destroy(one);
    weir_table_destroy(two);
}

TEST(test_damaged_options_are_not_used)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 16 });
    struct weir_guard *g = guard_of(table, "g", &(struct weir_guard_options){ .max = 2 });
    struct weir__guard_named *named = weir__block_at(&table->names.slab, (uint32_t)g->place->word);
    named->terms.values[0] = 1 << 30;
    g->place->edition++;
    assert_int_equal(why_not(g, NOW), WEIR_GRANTED); /* the old plan goes on */
    OWN(weir_table) *other = attach(path);
    assert_null(weir__guard_at(other, 0));
    struct weir_guard *again = guard_of(other, "g", &(struct weir_guard_options){ .max = 4 });
    assert_int_equal(info_of(again, NOW).limit, 4);
    assert_int_equal(info_of(g, NOW).limit, 4);
}

TEST(test_changes_are_kept_the_latest_first)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g = guard_of(table, "g", NULL);
    for (int i = 0; i < 50; i++)
        weir__guard_note(g->record, WEIR_GUARD_EVENT_SHEDDING, i, i + 1, NOW + i);
    struct weir_guard_info info = info_of(g, NOW);
    for (int i = 0; i < 32; i++) {
        assert_fields(info.events[i], (number, 50 - i), (to, 50 - i), (at, NOW + 49 - i));
    }
}

GROUP(make_folder, remove_folder)
