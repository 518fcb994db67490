/* vectors.c -- the reader of .vec files, the replay of what it read, and its errors: of limits,
 * breakers and controllers. */
#include "unit/test.h"

#include "vectors/runner/replay.h"
#include "vectors/runner/vectors.h"

static struct weir__vectors parse(const char *text)
{
    struct weir__vectors v = { 0 };
    struct weir_error error = { 0 };
    int line = 0;

    if (weir__vectors_parse(&v, text, strlen(text), &line, &error) != WEIR_OK)
        fail_msg("%d:%d: %s", line, error.column, error.text);
    return v;
}

/* ---------------------------------------------------------------- reading ---- */

TEST(reads_every_kind_of_line)
{
    struct weir__vectors v =
        parse("# a comment\n"
              "\n"
              "case one\n"
              "limit gcra 5/1m burst 3\n"
              "at 0s take 1 -> ok limit 3 remaining 2 reset 12s\n"
              "  at 1500ms  peek 2 wait-max 200us -> no retry ~17ns wait 0s\r\n"
              "at 2s give 1\n"
              "\tat 3s take 9 wait-max forever -> no retry never\n"
              "case two\n"
              "limit sliding-log 1/1s\n"
              "at 1s take -1 -> no");

    assert_fields(v, (case_count, 2), (line_count, 5), (cases[0].count, 4), (cases[1].first, 4),
                  (cases[1].line, 9));
    assert_memory_equal(v.cases[1].name, "two", 3);
    assert_int_equal(v.cases[1].name_len, 3);
    assert_string_equal(v.cases[0].limit.algorithm, "gcra");
    assert_int_equal(v.cases[0].limit.burst, 3);

    const struct weir__vector_line *l = v.lines;
    assert_true(l[0].allowed && l[0].fields[WEIR__VECTOR_LIMIT].named &&
                l[0].fields[WEIR__VECTOR_REMAINING].value == 2);
    assert_int_equal(l[0].fields[WEIR__VECTOR_RESET].value, 12 * WEIR_SECOND);
    assert_false(l[0].fields[WEIR__VECTOR_RETRY].named);
    assert_fields(l[1], (verb, WEIR__VECTOR_PEEK), (at, 1500 * WEIR_MILLISECOND),
                  (wait_max, 200 * WEIR_MICROSECOND));
    assert_true(l[1].fields[WEIR__VECTOR_RETRY].about &&
                l[1].fields[WEIR__VECTOR_RETRY].value == 17);
    assert_false(l[1].fields[WEIR__VECTOR_WAIT].about);
    assert_int_equal(l[2].verb, WEIR__VECTOR_GIVE);
    assert_true(l[3].wait_max == WEIR_FOREVER &&
                l[3].fields[WEIR__VECTOR_RETRY].value == WEIR_NEVER);
    assert_int_equal(l[4].cost, -1);
    weir__vectors_clear(&v);
}

TEST(granted_means_at_once_unless_a_wait_is_named)
{
    struct weir__vectors v =
        parse("case a\nlimit gcra 1/1s\nat 0s take 1 -> ok\nat 0s take 1 -> no\n");

    assert_fields(v.lines[0].fields[WEIR__VECTOR_WAIT], (named, true), (value, 0));
    assert_false(v.lines[1].fields[WEIR__VECTOR_WAIT].named);
    weir__vectors_clear(&v);
}

TEST(a_change_keeps_what_it_does_not_name)
{
    struct weir__vectors v = parse("case follows\nlimit gcra 10/1s\nat 0s change 4/2s\n"
                                   "case stays\nlimit gcra 10/1s burst 7\nat 0s change 4/2s\nat 0s "
                                   "change 4/2s burst 2\nat 0s change 5/1s\n"
                                   "case fresh\nlimit sliding-window 10/1s buckets=5 "
                                   "edge=loose\nat 0s change 20/1s edge=strict\n");

    assert_int_equal(v.lines[0].limit.burst, 0); /* never named: follows the count */
    assert_fields(v, (lines[0].limit.count, 4), (lines[0].limit.period, 2 * WEIR_SECOND),
                  (lines[1].limit.burst, 7), (lines[2].limit.burst, 2), (lines[3].limit.burst, 2),
                  (lines[4].limit.buckets, 5), (lines[4].limit.loose, false));
    weir__vectors_clear(&v);
}

TEST(many_cases_are_only_a_matter_of_memory)
{
    static const char one[] = "case x\nlimit gcra 1/1s\nat 0s take 1 -> ok\n";
    size_t n = 3000;

    FINALLY(memory_drop) char *text = malloc(n * (sizeof(one) - 1) + 1);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * (sizeof(one) - 1), one, sizeof(one));
    struct weir__vectors v = parse(text);
    assert_int_equal(v.case_count, n);
    assert_int_equal(v.cases[n - 1].line, 3 * (int)n - 2);
    weir__vectors_clear(&v);
}

/* ----------------------------------------------------------------- errors ---- */

#define CASE    "case a\nlimit gcra 5/1s\n"
#define BREAKER "case a\nbreaker errors=50%\n"
#define AIMD    "case a\ncontroller aimd\n"

static const struct mistake {
    const char *text;
    int line, column;
    const char *says; /* a part of the message */
} mistakes[] = {
    { "", 1, 1, "no case" },
    { "# only this\n", 2, 1, "no case" },
    { "cases a\n", 1, 1, "begins no line" },
    { "case\n", 1, 5, "name is missing" },
    { "case a b\n", 1, 8, "should end here" },
    { "case a\ncase b\n", 2, 1, "has no limit" },
    { "case a\n", 2, 1, "has no limit" },
    { "limit gcra 5/1s\n", 1, 1, "needs a case" },
    { "at 0s take 1 -> ok\n", 1, 1, "needs a case" },
    { "case a\nat 0s take 1 -> ok\n", 2, 1, "needs a case and its limit" },
    { CASE "limit gcra 5/1s\n", 3, 1, "has a limit already" },
    { "case a\nlimit 5/1s\n", 2, 7, "algorithm" },
    { "case a\nlimit gcar 5/1s\n", 2, 7, "gcra" },
    { "case a\nlimit gcra 5/1x\n", 2, 15, "unit" },
    { "case a\nlimit gcra\n", 2, 11, "" },
    { "case a\nlimit gcra 5/1s buckets=3\n", 2, 7,
      "" }, /* it reads well, but there is no such plan */
    { CASE "at\n", 3, 3, "time" },
    { CASE "at 5 take 1 -> ok\n", 3, 5, "unit" },
    { CASE "at 0s\n", 3, 6, "expected take" },
    { CASE "at 0s grab 1 -> ok\n", 3, 7, "expected take" },
    { CASE "at 0s take -> ok\n", 3, 12, "cost" },
    { CASE "at 0s take 1.5 -> ok\n", 3, 13, "whole" },
    { CASE "at 0s take 99999999999999999999 -> ok\n", 3, 12, "too large" },
    { CASE "at 0s take 1 wait-max -> ok\n", 3, 23, "wait-max" },
    { CASE "at 0s take 1 wait-max 5 -> ok\n", 3, 24, "unit" },
    { CASE "at 0s take 1 ok\n", 3, 14, "->" },
    { CASE "at 0s take 1 -> yes\n", 3, 17, "ok or no" },
    { CASE "at 0s take 1 -> ok left 4\n", 3, 20, "is no field" },
    { CASE "at 0s take 1 -> ok remaining\n", 3, 29, "remaining" },
    { CASE "at 0s take 1 -> ok remaining ~4\n", 3, 30, "remaining" },
    { CASE "at 0s take 1 -> ok remaining 4 remaining 4\n", 3, 32, "twice" },
    { CASE "at 0s take 1 -> ok wait never\n", 3, 25, "wait" },
    { CASE "at 0s take 1 -> no retry ~never\n", 3, 26, "retry" },
    { CASE "at 0s take 1 -> no retry ~5\n", 3, 28, "unit" },
    { CASE "at 0s give 1 -> ok\n", 3, 14, "should end here" },
    { CASE "at 0s change gcra 5/1s\n", 3, 14, "algorithm" },
    { CASE "at 0s change 5\n", 3, 15, "/" },
    { CASE "at 0s change 0/1s\n", 3, 14, "" },
    { CASE "at 0s take 1 -> ok \x01\n", 3, 20, "control character" },
    { "breaker errors=1\n", 1, 1, "needs a case" },
    { BREAKER "breaker errors=1\n", 3, 1, "about a breaker already" },
    { BREAKER "limit gcra 5/1s\n", 3, 1, "about a breaker already" },
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
    { BREAKER "at 0s\n", 3, 6, "expected ask" },
    { BREAKER "at 0s take 1 -> ok\n", 3, 7, "expected ask, end, call, state or force" },
    { BREAKER "at 0s ask\n", 3, 10, "expected ->" },
    { BREAKER "at 0s ask -> maybe\n", 3, 14, "ok or no" },
    { BREAKER "at 0s ask -> ok wait 1s\n", 3, 17, "retry and state" },
    { BREAKER "at 0s ask -> ok state ajar\n", 3, 23, "closed, open or half-open" },
    { BREAKER "at 0s end 0 ok\n", 3, 11, "" },
    { BREAKER "at 0s end 1001 ok\n", 3, 15, "1 to 1000" },
    { BREAKER "at 0s end 1 fine\n", 3, 13, "outcome" },
    { BREAKER "at 0s end 1 ok ok\n", 3, 16, "should end here" },
    { BREAKER "at 0s end 1 ok -> ok\n", 3, 19, "state" },
    { BREAKER "at 0s call ok took 5 -> ok\n", 3, 21, "unit" },
    { BREAKER "at 0s call ok x0 -> ok\n", 3, 16, "" },
    { BREAKER "at 0s call ok x10001 -> ok\n", 3, 21, "10000" },
    { BREAKER "at 0s call ok -> ok retry 1s\n", 3, 21, "state" },
    { BREAKER "at 0s state\n", 3, 12, "expected ->" },
    { BREAKER "at 0s state -> closed retry 5s\n", 3, 23, "calls, errors and slow" },
    { BREAKER "at 0s force shut\n", 3, 13, "open, closed or none" },
    { "case a\ncontroller\n", 2, 11, "the name is missing: controller NAME" },
    { "case a\ncontroller vega\n", 2, 12, "unknown controller 'vega'" },
    { "case a\ncontroller aimd rate\n", 2, 12, "aimd has no 'rate'" },
    { "case a\ncontroller percentile\n", 2, 12, "percentile needs a target" },
    { "case a\ncontroller aimd initial=0\n", 2, 25, "" },
    { "case a\ncontroller aimd initial=\n", 2, 17, "'initial=' is nothing of a controller" },
    { "case a\ncontroller aimd max=1000000001\n", 2, 21, "max must be at most 1000000000" },
    { "case a\ncontroller aimd percentile=100\n", 2, 28, "percentile must be at most 99" },
    { "case a\ncontroller aimd target=5\n", 2, 25, "target needs a unit" },
    { "case a\ncontroller aimd fast\n", 2, 17, "'fast' is nothing of a controller" },
    { "case a\npermits min=3\n", 2, 9, "'min=3' is nothing of permits" },
    { "case a\npermits max=1000000001\n", 2, 13, "max must be at most 1000000000" },
    { "case a\npermits\nat 0s leave\n", 3, 7, "expected enter, exit, renew or out" },
    { "case a\npermits\nat 0s enter\n", 3, 12, "the permit's name is missing" },
    { "case a\npermits\nat 0s enter a -> full\n", 3, 18, "expected granted, busy, key-busy" },
    { "case a\npermits\nat 0s exit a -> maybe\n", 3, 17, "expected -> yes or -> no" },
    { "case a\npermits\nat 0s out key a 3\n", 3, 17, "expected -> and how many are out" },
    { AIMD "at 1s take 1 -> ok\n", 3, 7, "expected sample" },
    { AIMD "at 1s sample fast\n", 3, 14, "'fast' is nothing of a sample" },
    { AIMD "at 1s sample rtt 0ms\n", 3, 21, "rtt must be longer than 0" },
    { AIMD "at 1s sample rtt 1ms x0\n", 3, 23, "" },
    { AIMD "at 1s sample rtt 1ms x100000001\n", 3, 23, "how many calls must be at most 100000000" },
    { AIMD "at 1s sample repeat 10001\n", 3, 21, "repeat must be at most 10000" },
    { AIMD "at 1s sample in-flight many\n", 3, 24, "" },
    { AIMD "at 1s sample -> 20\n", 3, 17, "expected what the limit must be: -> limit N" },
    { AIMD "at 1s sample -> limit 20 dropped 1\n", 3, 26, "" },
    { AIMD "at 1s sample rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s\n", 3, 73,
      "a sample has at most 8" },
};

TEST(test_L12_says_where_a_file_is_malformed)
{
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        const struct mistake *m = &mistakes[i];
        struct weir__vectors v = { .case_count = 12345 };
        struct weir_error error = { 0 };
        int line = 0;

        if (weir__vectors_parse(&v, m->text, strlen(m->text), &line, &error) == WEIR_OK)
            fail_msg("accepted: %s", m->text);
        if (line != m->line || error.column != m->column || !strstr(error.text, m->says))
            fail_msg("%s\nexpected %d:%d: %s\n     got %d:%d: %s", m->text, m->line, m->column,
                     m->says, line, error.column, error.text);
        assert_int_equal(v.case_count, 12345); /* untouched */
    }
}

TEST(refuses_zero_bytes_and_endless_lines)
{
    struct weir__vectors v;
    struct weir_error error = { 0 };
    char text[2000];
    int line = 0;

    assert_int_not_equal(weir__vectors_parse(&v, "case a\0b\n", 9, &line, &error), WEIR_OK);
    assert_int_equal(line, 1);
    assert_int_equal(error.column, 7);
    memset(text, '#', sizeof(text));
    assert_int_not_equal(weir__vectors_parse(&v, text, sizeof(text), &line, &error), WEIR_OK);
    assert_non_null(strstr(error.text, "longer"));
}

/* ----------------------------------------------------------------- replay ---- */

static char heard[1000];

static void hear(void *context, int line, const char *text)
{
    size_t n = strlen(heard);

    snprintf(heard + n, sizeof(heard) - n, "%d: %s\n", line, text);
}

/* What does not match in a text's cases: "3: expected no got ok". */
static const char *replay(const char *door, const char *text)
{
    struct weir__vectors v = parse(text);

    heard[0] = '\0';
    for (size_t i = 0; i < v.case_count; i++) {
        size_t before = strlen(heard);
        bool passed = weir__vectors_replay(weir__door_find(door), &v, &v.cases[i], hear, NULL);
        assert_true(passed == (strlen(heard) == before));
    }
    weir__vectors_clear(&v);
    return heard;
}

/* Also large states, and cases of all kinds in one file. */
TEST(test_L12_every_door_says_the_same)
{
    static const char *const texts[] = {
        "case a\nlimit token-bucket 10/1s burst 5\n"
        "at 0s take 3 -> ok limit 5 remaining 2 reset 300ms\n"
        "at 0s peek 3 -> no retry 100ms\n"
        "at 0s take 3 wait-max 100ms -> ok wait 100ms\n"
        "at 1s take 5 -> ok remaining 0\n"
        "at 1s give 2\n"
        "at 1s take 2 -> ok remaining 0\n"
        "at 1s take 6 -> no retry never\n"
        "at 1s change 20/1s\n"
        "at 1s take 1 -> no retry 50ms\n",
        "case a\nlimit sliding-log 5000/1s\n"
        "at 0s take 5000 -> ok remaining 0\n"
        "at 0s change 9000/1s\n"
        "at 0s take 4000 -> ok remaining 0\n"
        "at 0s take 1 -> no retry 1s\n",
    };

    for (const struct weir__door *const *d = weir__doors(); *d; d++)
        for (size_t i = 0; i < COUNT_OF(texts); i++)
            assert_string_equal(replay((*d)->name, texts[i]), "");
    assert_string_equal(
        replay("step", "case a\nlimit gcra 5/1s\nat 0s take 1 -> ok\n"
                       "case b\nbreaker errors=1 min_calls=1\nat 0s call error -> ok state open\n"
                       "case c\nlimit gcra 1/1s\nat 0s take 2 -> no\n"),
        "");
    assert_string_equal(
        replay("step", "case a\n"
                       "controller percentile initial=10 min=2 max=100 target=100ms percentile=90 "
                       "window=5s rate\n"
                       "at 500ms sample rtt 10ms x90 rtt 20ms rtt 10ms in-flight 10 dropped 0 "
                       "timeouts 0 entered "
                       "5 refused 3 -> limit 20\n"
                       "at 1s sample rtt 10ms x90 in-flight limit repeat 2 refused 1 -> limit 40\n"
                       "at 2s sample\n"
                       "case b\n"
                       "controller aimd\n"
                       "at 0s sample rtt 1ms in-flight limit -> limit 21\n"
                       "at 0s sample rtt 1ms in-flight limit -> limit 22\n"),
        "");
}

TEST(test_L12_a_mismatch_names_line_and_both_answers)
{
    static const struct {
        const char *text, *heard;
    } rows[] = {
        { "case a\nlimit gcra 1/1s burst 2\nat 0s take 1 -> ok remaining 0\n",
          "3: expected ok remaining 0 wait 0s got ok remaining 1 wait 0s\n" },
        { "case a\nlimit gcra 1/1s\nat 0s take 1 -> no\n", "3: expected no got ok wait 0s\n" },
        { "case a\nlimit gcra 1/1s\nat 0s take 1 -> ok\nat 0s take 1 -> ok\nat 0s take 2 -> no "
          "retry ~1s\n",
          "4: expected ok wait 0s got no retry 1s\n5: expected no retry ~1s got no retry never\n" },
        { "case a\nlimit gcra 1/1s\nat 0s take 1 -> ok\nat 0s take 1 wait-max 1s -> ok\n",
          "4: expected ok wait 0s got ok wait 1s\n" },
        { AIMD "at 1s sample rtt 1ms in-flight 20 -> limit 22\n",
          "3: expected limit 22 got limit 21\n" },
        { BREAKER "at 0s ask -> no retry 5s state open\n"
                  "at 0s end 1 error -> state open\n"
                  "at 0s end 1 error\n"
                  "at 0s end 7 error\n"
                  "at 0s state -> closed calls 2 errors 1 slow 0\n"
                  "at 0s call ok x3 -> no state closed\n"
                  "at 0s force open\n"
                  "at 0s ask -> no retry 1s\n",
          "3: expected no retry 5s state open got ok retry 0s state closed\n"
          "4: expected state open got state closed\n"
          "5: expected ask 1 to be under way got none\n"
          "6: expected ask 7 to be under way got none\n"
          "7: expected state closed calls 2 errors 1 slow 0 got state closed "
          "calls 1 errors 1 slow 0\n"
          "8: expected no state closed got ok state closed\n"
          "10: expected no retry 1s got no retry never\n" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(replay("step", rows[i].text), rows[i].heard);
}

TEST(about_is_ten_microseconds_and_no_more)
{
    static const struct {
        const char *retry;
        bool matches;
    } rows[] = {
        { "1s", true },
        { "~1000010us", true },
        { "~999990us", true },
        { "1000000001ns", false },
        { "~1000010001ns", false },
        { "~999989999ns", false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "case a\nlimit gcra 1/1s\nat 0s take 1 -> ok\nat 0s take 1 -> no retry %s\n",
                 rows[i].retry);
        if ((*replay("step", text) == '\0') != rows[i].matches)
            fail_msg("%s: %s", rows[i].retry, heard);
    }
}
