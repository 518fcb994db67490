/* report.c -- what all reports share: texts made safe for where they go, numbers and times in
 * words, and the progress line. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/replay/progress.h"
#include "server/replay/report.h"
#include "server/base/safe-text.h"

/* What becomes of a text; good until the next but three. */
static const char *safe(enum weir__safe kind, const char *text, size_t len)
{
    static char outs[4][512];
    static unsigned count;
    char *out = outs[count++ % 4];
    FILE *file = fmemopen(out, sizeof(outs[0]), "w");

    assert_non_null(file);
    weir__safe_put(file, kind, text, len);
    fputc('\0', file);
    fclose(file);
    return out;
}

#define SAFE(kind, text) safe(kind, text, sizeof(text) - 1)

TEST(test_markup_is_text)
{
    assert_string_equal(SAFE(WEIR__SAFE_MARKUP, "<script>alert('a&b\")"),
                        "&lt;script&gt;alert(&#39;a&amp;b&quot;)");
    assert_string_equal(SAFE(WEIR__SAFE_MARKUP, "a\x1b[31mb\tc"), "a\xEF\xBF\xBD[31mb\xEF\xBF\xBD"
                                                                  "c");
    assert_string_equal(SAFE(WEIR__SAFE_MARKUP, "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"),
                        "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80");
    assert_string_equal(SAFE(WEIR__SAFE_MARKUP, "\xEF\xBF\xBF\xED\xA0\x80"),
                        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(test_terminals_are_not_told_what_to_do)
{
    assert_string_equal(SAFE(WEIR__SAFE_TERMINAL, "a\x1b]0;title\x07\r\n\x7f"), "a?]0;title????");
    assert_string_equal(SAFE(WEIR__SAFE_TERMINAL, "\xC2\x9B"
                                                  "31m"),
                        "?31m"); /* CSI in one character */
    assert_string_equal(SAFE(WEIR__SAFE_TERMINAL, "a\xE2\x80\xAE"
                                                  "b\xE2\x81\xA6"
                                                  "c\xEF\xBB\xBF"),
                        "a?b?c?"); /* right to left, isolate, BOM */
    assert_string_equal(SAFE(WEIR__SAFE_TERMINAL, "\xE2\x82\xAC <&>"), "\xE2\x82\xAC <&>");
}

TEST(test_bytes_that_are_no_characters)
{
    static const char *const wrong[] = { "\x80",
                                         "\xC0\xAF",
                                         "\xC1\xBF",
                                         "\xE0\x80\x80",
                                         "\xF0\x80\x80\x80",
                                         "\xF4\x90\x80\x80",
                                         "\xF5\x80\x80\x80",
                                         "\xC3",
                                         "\xE2\x82",
                                         "\xF0\x9F\x98",
                                         "\xFF" };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        const char *terminal = safe(WEIR__SAFE_TERMINAL, wrong[i], strlen(wrong[i]));
        assert_int_equal(strspn(terminal, "?"), strlen(wrong[i]));
    }
}

/* ------------------------------------------------------------------ in words ---- */

TEST(test_counts_in_words)
{
    char w[WEIR__HUMAN];

    assert_string_equal(weir__human_count(w, 0), "0");
    assert_string_equal(weir__human_count(w, 999), "999");
    assert_string_equal(weir__human_count(w, 1000), "1,000");
    assert_string_equal(weir__human_count(w, 1234567), "1,234,567");
    assert_string_equal(weir__human_count(w, -123), "-123");
    assert_string_equal(weir__human_counted(w, 1, "request"), "1 request");
    assert_string_equal(weir__human_counted(w, 0, "request"), "0 requests");
    assert_string_equal(weir__human_counted(w, 1234, "ban"), "1,234 bans");
    assert_string_equal(weir__human_count(w, -1234), "-1,234");
    assert_string_equal(weir__human_count(w, INT64_MAX), "9,223,372,036,854,775,807");
}

TEST(test_shares_in_words)
{
    char w[WEIR__HUMAN];

    assert_string_equal(weir__human_share(w, 0, 0), "0 %");
    assert_string_equal(weir__human_share(w, 0, 5), "0 %");
    assert_string_equal(weir__human_share(w, 1, 1000000), "<0.01 %");
    assert_string_equal(weir__human_share(w, 123, 10000), "1.23 %");
    assert_string_equal(weir__human_share(w, 123, 1000), "12.3 %");
    assert_string_equal(weir__human_share(w, 999999, 1000000), ">99.99 %");
    assert_string_equal(weir__human_share(w, 5, 5), "100.0 %");
}

TEST(test_times_in_words)
{
    char w[WEIR__HUMAN];

    assert_string_equal(weir__human_time(w, 0, false), "1970-01-01 00:00:00");
    assert_string_equal(weir__human_time(w, 1700000000 * S + 123456789, true),
                        "2023-11-14 22:13:20.123");
    assert_string_equal(weir__human_clock(w, 1700000000 * S, S), "22:13:20");
    assert_string_equal(weir__human_clock(w, 1700000000 * S, 60 * S), "22:13");
    assert_string_equal(weir__human_clock(w, 1699920000 * S, 3600 * S), "11-14 00:00");
    assert_string_equal(weir__human_clock(w, 1700000000 * S, 86400 * S), "2023-11-14");
    assert_string_equal(weir__human_width(w, S), "second");
    assert_string_equal(weir__human_width(w, 10 * S), "10 s");
    assert_string_equal(weir__human_width(w, 300 * S), "5 min");
    assert_string_equal(weir__human_width(w, 3600 * S), "hour");
    assert_string_equal(weir__human_width(w, 86400 * S), "day");
    assert_string_equal(weir__human_width(w, 2 * 604800 * S), "2 weeks");
}

TEST(test_proposals_in_words)
{
    struct weir__proposal p = { .steps = 3, .limit = { .count = 420 }, .below = 419 };
    char w[WEIR__HUMAN];

    assert_string_equal(weir__human_proposal(w, &p), "420");
    p.below = 400;
    assert_string_equal(weir__human_proposal(w, &p), "401 to 420");
    p.limit.count = 0;
    assert_string_equal(weir__human_proposal(w, &p), "more than 400");
    p.steps = 0;
    assert_string_equal(weir__human_proposal(w, &p), "unknown");
}

TEST(test_progress_line)
{
    struct weir__progress p = { 0 };
    char line[512];

    weir__progress_print(line, sizeof(line), 2 * S,
                         &(struct weir__progress_made){ "a.log", 1000000, 250, 1000 });
    assert_contains(line, "a.log  ██████░");
    assert_contains(line, " 25 %  1000000 lines, 500000 a second, 6s left");
    weir__progress_print(line, sizeof(line), 2 * S,
                         &(struct weir__progress_made){ "-", 10, 5000, -1 });
    assert_string_equal(line, "-  10 lines, 5 a second");
    weir__progress_print(line, sizeof(line), 0, &(struct weir__progress_made){ "-", 0, 0, 0 });
    assert_string_equal(line, "-  0 lines, 0 a second");
    weir__progress_tell(&p, 10 * S,
                        &(struct weir__progress_made){
                            "x", 1, 1, 1 }); /* zeroed: draws nothing, and does not crash */
    weir__progress_end(&p);
}
