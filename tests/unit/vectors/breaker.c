/* breaker.c -- the reader of breakers in .vec files, and what a mismatch says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "unit/test.h"

#include "vectors/runner/replay.h"
#include "vectors/runner/vectors.h"

#define CASE "case a\nbreaker errors=50%\n"

static const struct {
    const char *text;
    int line, column;
    const char *says; /* a part of the message */
} mistakes[] = {
    { "breaker errors=1\n", 1, 1, "needs a case" },
    { CASE "breaker errors=1\n", 3, 1, "about a breaker already" },
    { CASE "limit gcra 5/1s\n", 3, 1, "about a breaker already" },
    { "case a\nlimit gcra 5/1s\nbreaker errors=1\n", 3, 1, "about a limit already" },
    { "case a\nbreaker errors\n", 2, 9, "nothing of a breaker" },
    { "case a\nbreaker errors=\n", 2, 9, "nothing of a breaker" },
    { "case a\nbreaker errors=x\n", 2, 16, "no number" },
    { "case a\nbreaker errors=0%\n", 2, 16, "no number" },
    { "case a\nbreaker errors=5%%\n", 2, 16, "no number" },
    { "case a\nbreaker errors=99999999999999999999\n", 2, 16, "no number" },
    { "case a\nbreaker errors=101%\n", 2, 9, "1% to 100%" },
    { "case a\nbreaker slow=1s ratio=5\n", 2, 23, "share" },
    { "case a\nbreaker errors=1 min_calls=5%\n", 2, 28, "not a share" },
    { "case a\nbreaker slow=5\n", 2, 15, "unit" },
    { "case a\nbreaker\n", 2, 8, "errors or slow" },
    { "case a\nbreaker errors=1 window=1s calls=5\n", 2, 9, "not both" },
    { CASE "at 0s\n", 3, 6, "expected ask" },
    { CASE "at 0s take 1 -> ok\n", 3, 7, "expected ask, end, call, state or force" },
    { CASE "at 0s ask\n", 3, 10, "expected ->" },
    { CASE "at 0s ask -> maybe\n", 3, 14, "ok or no" },
    { CASE "at 0s ask -> ok wait 1s\n", 3, 17, "retry and state" },
    { CASE "at 0s ask -> ok state ajar\n", 3, 23, "closed, open or half-open" },
    { CASE "at 0s end 0 ok\n", 3, 11, "" },
    { CASE "at 0s end 1001 ok\n", 3, 15, "1 to 1000" },
    { CASE "at 0s end 1 fine\n", 3, 13, "outcome" },
    { CASE "at 0s end 1 ok ok\n", 3, 16, "should end here" },
    { CASE "at 0s end 1 ok -> ok\n", 3, 19, "state" },
    { CASE "at 0s call ok took 5 -> ok\n", 3, 21, "unit" },
    { CASE "at 0s call ok x0 -> ok\n", 3, 16, "" },
    { CASE "at 0s call ok x10001 -> ok\n", 3, 21, "10000" },
    { CASE "at 0s call ok -> ok retry 1s\n", 3, 21, "state" },
    { CASE "at 0s state\n", 3, 12, "expected ->" },
    { CASE "at 0s state -> closed retry 5s\n", 3, 23, "calls, errors and slow" },
    { CASE "at 0s force shut\n", 3, 13, "open, closed or none" },
};

TEST(bad_lines_are_told_with_their_place)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct weir__vectors v = { 0 };
        struct weir_error e = { 0 };
        int line = 0;
        assert_int_equal(
            weir__vectors_parse(&v, mistakes[i].text, strlen(mistakes[i].text), &line, &e),
            WEIR_INVALID);
        if (line != mistakes[i].line || e.column != mistakes[i].column ||
            !strstr(e.text, mistakes[i].says))
            fail_msg("%d:%d: %s, of\n%s", line, e.column, e.text, mistakes[i].text);
        assert_null(v.cases);
    }
}

static char said[1000];

static void note(void *context, int line, const char *text)
{
    size_t n = strlen(said);
    (void)context;
    snprintf(said + n, sizeof(said) - n, "%d: %s\n", line, text);
}

TEST(a_mismatch_tells_what_came)
{
    static const char text[] = CASE "at 0s ask -> no retry 5s state open\n"
                                    "at 0s end 1 error -> state open\n"
                                    "at 0s end 1 error\n"
                                    "at 0s end 7 error\n"
                                    "at 0s state -> closed calls 2 errors 1 slow 0\n"
                                    "at 0s call ok x3 -> no state closed\n"
                                    "at 0s force open\n"
                                    "at 0s ask -> no retry 1s\n";
    struct weir__vectors v = { 0 };
    int line = 0;

    said[0] = '\0';
    assert_ok(weir__vectors_parse(&v, text, strlen(text), &line, NULL));
    assert_false(weir__vectors_replay(weir__door_find("step"), &v, &v.cases[0], note, NULL));
    assert_string_equal(said, "3: expected no retry 5s state open got ok retry 0s state closed\n"
                              "4: expected state open got state closed\n"
                              "5: expected ask 1 to be under way got none\n"
                              "6: expected ask 7 to be under way got none\n"
                              "7: expected state closed calls 2 errors 1 slow 0 got state closed "
                              "calls 1 errors 1 slow 0\n"
                              "8: expected no state closed got ok state closed\n"
                              "10: expected no retry 1s got no retry never\n");
    weir__vectors_clear(&v);
}

TEST(cases_of_all_kinds_are_in_one_file)
{
    static const char text[] =
        "case a\nlimit gcra 5/1s\nat 0s take 1 -> ok\n"
        "case b\nbreaker errors=1 min_calls=1\nat 0s call error -> ok state open\n"
        "case c\nlimit gcra 1/1s\nat 0s take 2 -> no\n";
    struct weir__vectors v = { 0 };
    int line = 0;

    assert_ok(weir__vectors_parse(&v, text, strlen(text), &line, NULL));
    assert_int_equal(v.case_count, 3);
    for (size_t i = 0; i < v.case_count; i++)
        assert_true(weir__vectors_replay(weir__door_find("step"), &v, &v.cases[i], note, NULL));
    weir__vectors_clear(&v);
}
