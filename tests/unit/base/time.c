/* time.c -- times as people write them: what is accepted, what is refused and where it points. */
#include "unit/test.h"

#include "weir.h"

#define S               WEIR_SECOND
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *text;
    weir_time time;
    const char *printed;
} good_times[] = {
    { "250ms", 250 * WEIR_MILLISECOND, "250ms" },
    { "1h", 3600 * S, "1h" },
    { "90s", 90 * S, "90s" },
    { "90", 90 * S, "90s" },
    { "0", 0, "0s" },
    { "0w", 0, "0s" },
    { " 1500ms\t", 1500 * WEIR_MILLISECOND, "1500ms" },
    { "60s", 60 * S, "1m" },
    { "200us", 200 * WEIR_MICROSECOND, "200us" },
    { "17ns", 17, "17ns" },
    { "14d", 1209600 * S, "2w" },
    { "1.5s", 1500 * WEIR_MILLISECOND, "1500ms" },
    { "0.000000001", 1, "1ns" },
    { "1.000000000000000000000000000000s", S, "1s" },
    { "0.001us", 1, "1ns" },
    { "0.00000000005m", 3, "3ns" }, /* each digit alone is not whole, the fraction is */
    { "0.0000000000025h", 9, "9ns" },
    { "0.00000000003125w", 18900, "18900ns" },
    { "9223372036.854775807s", INT64_MAX, "never" },
    { "9223372036854775807ns", INT64_MAX, "never" },
};

TEST(test_times)
{
    for (size_t i = 0; i < COUNT_OF(good_times); i++) {
        weir_time time = -1;
        char printed[64];

        print_message("%s\n", good_times[i].text);
        assert_ok(weir_time_parse(&time, good_times[i].text, NULL));
        assert_int_equal(time, good_times[i].time);
        assert_int_equal(weir_time_print(printed, sizeof(printed), time),
                         strlen(good_times[i].printed));
        assert_string_equal(printed, good_times[i].printed);
    }
}

static const struct {
    const char *text;
    int column;
    const char *says;
} bad_times[] = {
    { "", 1, "the time must be a number such as 60; found the end" },
    { " ", 2, "found the end" },
    { "s", 1, "the time must be a number" },
    { "-1s", 1, "the time must be a number" },
    { "1 s", 3, "unexpected 's' after the time" },
    { "1s 2s", 4, "unexpected '2' after the time" },
    { "1sec", 2, "did you mean 's'?" },
    { "1.", 3, "expected a digit" },
    { ".5s", 1, "the time must be a number" },
    { "1,5s", 2, "unexpected ','" },
    { "0.0001us", 6, "finer than a nanosecond" },
    { "0.00000000001m", 13, "finer than a nanosecond" },
    { "9223372036.854775808s", 1, "the time is too large" },
    { "9223372037", 1, "the time is too large" },
    { "18446744073709551616ns", 1, "the time is too large" },
    { "never", 1, "the time must be a number" },
};

TEST(test_bad_times)
{
    for (size_t i = 0; i < COUNT_OF(bad_times); i++) {
        struct weir_error error = { 0 };
        weir_time time = 42;

        print_message("%s\n", bad_times[i].text);
        assert_int_equal(weir_time_parse(&time, bad_times[i].text, &error), WEIR_INVALID);
        assert_int_equal(time, 42);
        if (!strstr(error.text, bad_times[i].says))
            fail_msg("'%s' says '%s', not '%s'", bad_times[i].text, error.text, bad_times[i].says);
        assert_int_equal(error.column, bad_times[i].column);
    }
}

TEST(test_negative_times_print)
{
    char printed[64];

    weir_time_print(printed, sizeof(printed), -1500 * WEIR_MILLISECOND);
    assert_string_equal(printed, "-1500ms");
    weir_time_print(printed, sizeof(printed), INT64_MIN);
    assert_string_equal(printed, "-9223372036854775808ns");
}

/* As snprintf: always ended, never beyond the size, and the length that would have been. */
