/* problem.c -- places, lines with carets, nearest words, and the order in which problems are
 * told. */
#include "unit/test.h"

#include "rulefile/problem.h"

static struct weir__report report;

static void open_text(const char *text)
{
    assert_ok(weir__report_open(&report, text, strlen(text), NULL));
}

/* The problem at byte `at` of the text, printed. */
static const char *print_at(const char *text, size_t at)
{
    static char out[1024];

    open_text(text);
    weir__report_add(&report, at, "wrong");
    int len = weir_problem_print(out, sizeof(out), "f", &report.problems[0]);
    weir__report_close(&report);
    assert_int_equal(len, strlen(out));
    return out;
}

/* ---------------------------------------------------------------- places ---- */

TEST(test_R6_marks)
{
    static const char text[] = "ab\n\xc3\xa4"
                               "b\r\nc\rd\n";

    static const struct {
        size_t at;
        int line, column;
    } cases[] = { { 0, 1, 1 },  { 2, 1, 3 }, { 3, 2, 1 },  { 5, 2, 2 },  { 8, 3, 1 },
                  { 10, 4, 1 }, { 3, 2, 1 }, { 11, 4, 2 }, { 12, 4, 3 }, { 99, 4, 3 } };
    open_text(text);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir__mark m = weir__report_mark(&report, cases[i].at);
        if (m.line != cases[i].line || m.column != cases[i].column)
            fail_msg("%zu is %d:%d", cases[i].at, m.line, m.column);
    }
    weir__report_close(&report);
}

/* In any order, and as if counted from the line's beginning. */
TEST(test_R6_marks_in_any_order)
{
    char text[4096];
    unsigned seed = 7;

    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = (seed = seed * 1103515245 + 12345) >> 16 & 31 ? 'x' : '\n';
    text[sizeof(text) - 1] = '\0';
    open_text(text);
    for (int i = 0; i < 5000; i++) {
        size_t at = ((seed = seed * 1103515245 + 12345) >> 8) % (sizeof(text) - 1), begin = at;
        while (begin > 0 && text[begin - 1] != '\n')
            begin--;
        struct weir__mark m = weir__report_mark(&report, at);
        assert_int_equal(m.column, at - begin + 1);
        assert_int_equal(weir__report_place(&report, m.line, m.column), at);
    }
    weir__report_close(&report);
}

TEST(test_R6_places_that_are_not_there)
{
    open_text("ab\ncd");
    assert_int_equal(weir__report_place(&report, 0, 0), 0);
    assert_int_equal(weir__report_place(&report, 1, 99), 2);
    assert_int_equal(weir__report_place(&report, 2, 2), 4);
    assert_int_equal(weir__report_place(&report, 99, 1), 5);
    weir__report_close(&report);
    open_text("");
    assert_int_equal(weir__report_place(&report, 5, 5), 0);
    weir__report_close(&report);
}

/* -------------------------------------------------------------- printing ---- */

TEST(test_R6_line_and_caret)
{
    assert_string_equal(print_at("a\nlimt: 5\nb", 2), "f:2:1: wrong\n    limt: 5\n    ^");
    assert_string_equal(print_at("a\nlimt: 5\nb", 8), "f:2:7: wrong\n    limt: 5\n          ^");
    assert_string_equal(print_at("a: [", 4), "f:1:5: wrong\n    a: [\n        ^");
    assert_string_equal(print_at("", 0), "f:1:1: wrong\n    \n    ^");
}

TEST(test_R6_caret_under_tabs_and_utf8)
{
    assert_string_equal(print_at("a:\t\tb c", 6), "f:1:7: wrong\n    a:\t\tb c\n      \t\t  ^");
    assert_string_equal(print_at("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80x", 9),
                        "f:1:4: wrong\n    \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80x\n       ^");
}

TEST(test_R6_nothing_that_a_terminal_obeys)
{
    assert_string_equal(print_at("a\x1b[31m\x7f"
                                 "b",
                                 7),
                        "f:1:8: wrong\n    a?[31m?b\n           ^");
    assert_string_equal(print_at("\xff\xc3x", 2), "f:1:3: wrong\n    ??x\n      ^");
    assert_string_equal(print_at("\xc2\x9bx", 2),
                        "f:1:2: wrong\n    ?x\n     ^"); /* CSI in one character */
    assert_string_equal(print_at("\xe2\x80\xaex", 3),
                        "f:1:2: wrong\n    ?x\n     ^"); /* right to left */
}

TEST(test_R6_what_is_around_the_place)
{
    char text[2000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    text[1000] = '!';
    for (size_t at = 0; at <= sizeof(text) - 1; at += 1 + at / 7) {
        open_text(text);
        weir__report_add(&report, at, "wrong");
        const struct weir_problem *p = &report.problems[0];
        assert_int_equal(p->column, at + 1);
        assert_true(strlen(p->source) < sizeof(p->source));
        assert_true(p->caret >= 0 && (size_t)p->caret <= strlen(p->source));
        assert_int_equal(p->source[p->caret], text[at]);
        weir__report_close(&report);
    }
    open_text(text);
    weir__report_add(&report, 1000, "wrong");
    assert_int_equal(report.problems[0].source[report.problems[0].caret], '!');
    weir__report_close(&report);
}

TEST(test_R6_problem_of_the_whole_text)
{
    char out[64];
    struct weir_problem p = { .text = "wrong", .caret = -1 };

    assert_int_equal(weir_problem_print(out, sizeof(out), "f", &p), 8);
    assert_string_equal(out, "f: wrong");
    assert_int_equal(weir_problem_print(out, 4, NULL, &p), 12);
    assert_string_equal(out, "rul");
    p.line = 3;
    p.column = 4;
    weir_problem_print(out, sizeof(out), "f", &p);
    assert_string_equal(out, "f:3:4: wrong");
    assert_int_equal(weir_problem_print(NULL, 0, "f", &p), 12);
}

/* --------------------------------------------------------------- telling ---- */

static void gather(void *context, const struct weir_problem *p)
{
    char *all = context;

    snprintf(all + strlen(all), 256 - strlen(all), "%d:%d %s|", p->line, p->column, p->text);
}

TEST(test_R6_told_in_order_and_once)
{
    char all[256] = "";
    struct weir_error error = { 0 };
    struct weir_rules_options options = { .name = "f", .problem = gather, .context = all };

    open_text("ab\ncd\n");
    assert_ok(weir__report_tell(&report, &options, &error));
    weir__report_add(&report, 4, "third");
    weir__report_add(&report, 1, "second");
    weir__report_add(&report, 4, "third");
    weir__report_add(&report, WEIR__NOWHERE, "first");
    assert_int_equal(weir__report_tell(&report, &options, &error), WEIR_INVALID);
    assert_string_equal(all, "0:0 first|1:2 second|2:2 third|");
    assert_string_equal(error.text, "f: first");
    weir__report_close(&report);
}
