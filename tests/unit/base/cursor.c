/* cursor.c -- a cursor walks a line, and says where it could not go on. */
#include "unit/test.h"

#include "base/cursor.h"

TEST(test_cursor_walks_a_line)
{
    struct weir_error error;
    const char *line = "1.5s\t12  ok ";
    struct weir__cursor c = { line, line, &error };
    weir_time time = 0;
    int64_t cost = 0;

    assert_ok(weir__cursor_time(&c, "the time", &time));
    assert_int_equal(time, 1500 * WEIR_MILLISECOND);
    assert_int_equal(weir__cursor_count(&c, "the cost", 13, &cost), WEIR_INVALID);
    assert_int_equal(error.column, 6);
    assert_string_equal(error.text, "the cost must be at least 13");
    assert_ok(weir__cursor_count(&c, "the cost", 0, &cost));
    assert_int_equal(cost, 12);
    assert_false(weir__cursor_end(&c));
    assert_int_equal(weir__cursor_column(&c), 10);
    assert_true(weir__cursor_is(&c, weir__cursor_word(&c), "ok"));
    assert_false(weir__cursor_is(&c, weir__cursor_word(&c), "o"));
    c.at += strlen("ok");
    assert_true(weir__cursor_end(&c));
}
