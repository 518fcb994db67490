/* controller.c -- cases of .vec files that are about a controller: what a line can say, and
 * what is wrong with one. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "vectors/runner/replay.h"
#include "vectors/runner/vectors.h"

struct heard {
    int count, line;
    char text[200];
};

static void hear(void *context, int line, const char *text)
{
    struct heard *h = context;
    h->count++;
    h->line = line;
    snprintf(h->text, sizeof(h->text), "%s", text);
}

static struct heard replay(const char *text)
{
    struct weir__vectors v = { 0 };
    struct weir_error error = { 0 };
    struct heard h = { 0 };
    int line = 0;
    if (weir__vectors_parse(&v, text, strlen(text), &line, &error) != WEIR_OK)
        fail_msg("%d:%d: %s", line, error.column, error.text);
    for (size_t i = 0; i < v.case_count; i++)
        weir__vectors_replay(weir__door_find("step"), &v, &v.cases[i], hear, &h);
    weir__vectors_clear(&v);
    return h;
}

TEST(test_L12_a_line_can_say_all_of_a_sample)
{
    struct heard h = replay(
        "case a\n"
        "controller percentile initial=10 min=2 max=100 target=100ms percentile=90 window=5s rate\n"
        "at 500ms sample rtt 10ms x90 rtt 20ms rtt 10ms in-flight 10 dropped 0 timeouts 0 entered "
        "5 refused 3 -> limit 20\n"
        "at 1s sample rtt 10ms x90 in-flight limit repeat 2 refused 1 -> limit 40\n"
        "at 2s sample\n"
        "case b\n"
        "controller aimd\n"
        "at 0s sample rtt 1ms in-flight limit -> limit 21\n"
        "at 0s sample rtt 1ms in-flight limit -> limit 22\n");
    if (h.count)
        fail_msg("line %d: %s", h.line, h.text);
}

TEST(test_L12_a_mismatch_names_both_limits)
{
    struct heard h =
        replay("case a\ncontroller aimd\nat 1s sample rtt 1ms in-flight 20 -> limit 22\n");
    assert_fields(h, (count, 1), (line, 3));
    assert_string_equal(h.text, "expected limit 22 got limit 21");
}

TEST(test_L12_says_where_a_line_is_malformed)
{
    static const struct {
        const char *subject, *line;
        int column;
        const char *text;
    } rows[] = {
        { "controller", "", 11, "the name is missing: controller NAME" },
        { "controller vega", "", 12, "unknown controller 'vega'" },
        { "controller aimd rate", "", 12, "aimd has no 'rate'" },
        { "controller percentile", "", 12, "percentile needs a target" },
        { "controller aimd initial=0", "", 25, "" },
        { "controller aimd initial=", "", 17, "'initial=' is nothing of a controller" },
        { "controller aimd max=1000000001", "", 21, "max must be at most 1000000000" },
        { "controller aimd percentile=100", "", 28, "percentile must be at most 99" },
        { "controller aimd target=5", "", 25, "target needs a unit" },
        { "controller aimd fast", "", 17, "'fast' is nothing of a controller" },
        { "controller aimd", "at 1s take 1 -> ok", 7, "expected sample" },
        { "controller aimd", "at 1s sample fast", 14, "'fast' is nothing of a sample" },
        { "controller aimd", "at 1s sample rtt 0ms", 21, "rtt must be longer than 0" },
        { "controller aimd", "at 1s sample rtt 1ms x0", 23, "" },
        { "controller aimd", "at 1s sample rtt 1ms x100000001", 23,
          "how many calls must be at most 100000000" },
        { "controller aimd", "at 1s sample repeat 10001", 21, "repeat must be at most 10000" },
        { "controller aimd", "at 1s sample in-flight many", 24, "" },
        { "controller aimd", "at 1s sample -> 20", 17,
          "expected what the limit must be: -> limit N" },
        { "controller aimd", "at 1s sample -> limit 20 dropped 1", 26, "" },
        { "controller aimd",
          "at 1s sample rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s rtt 1s", 73,
          "a sample has at most 8" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir__vectors v = { 0 };
        struct weir_error error = { 0 };
        char text[300];
        int line = 0;
        snprintf(text, sizeof(text), "case a\n%s\n%s\n", rows[i].subject, rows[i].line);
        assert_true(weir__vectors_parse(&v, text, strlen(text), &line, &error) != WEIR_OK);
        if (line != (rows[i].line[0] ? 3 : 2) || error.column != rows[i].column ||
            strncmp(error.text, rows[i].text, strlen(rows[i].text)) != 0)
            fail_msg("%s%s: %d:%d: %s", rows[i].subject, rows[i].line, line, error.column,
                     error.text);
    }
}
