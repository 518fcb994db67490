/* buffer.c -- bytes that grow, and JSON that is always JSON. */
#include "unit/test.h"

#include "server/base/buffer.h"
#include "weir.h"

/* What the buffer holds is this, and it is empty afterwards. */
static void expect_bytes(struct weir__buffer *b, const char *bytes, size_t len)
{
    assert_fields(*b, (failed, false), (len, len));
    assert_memory_equal(b->bytes, bytes, len);
    weir__buffer_free(b);
    assert_null(b->bytes);
}

static void expect(struct weir__buffer *b, const char *text)
{
    weir__buffer_add(b, "", 1);
    expect_bytes(b, text, strlen(text) + 1);
}

TEST(test_adds)
{
    struct weir__buffer b = { 0 };

    weir__buffer_add(&b, NULL, 0);
    assert_int_equal(b.len, 0);
    weir__buffer_text(&b, "a");
    weir__buffer_format(&b, "%s%d", "b", 7);
    memcpy(weir__buffer_room(&b, 2), "xy", 2);
    b.len += 2;
    weir__buffer_add(&b, "\0z", 2);
    expect_bytes(&b, "ab7xy\0z", 7);
}

/* Whatever the room that is left: a text that fills it, one less, one more. */
TEST(test_grows)
{
    char long_text[2048];

    memset(long_text, 'x', sizeof(long_text));
    for (size_t len = 250; len < 260; len++) {
        for (int how = 0; how < 2; how++) {
            FINALLY(weir__buffer_free) struct weir__buffer b = { 0 };
            weir__buffer_add(&b, long_text, len);
            if (how == 0)
                weir__buffer_add(&b, long_text, 1000);
            else
                weir__buffer_format(&b, "%.*s", 1000, long_text);
            assert_int_equal(b.len, len + 1000);
        }
    }
}

TEST(test_numbers)
{
    static const struct {
        int64_t n;
        const char *text;
    } cases[] = { { 0, "0" },
                  { 7, "7" },
                  { -1, "-1" },
                  { 10, "10" },
                  { 100, "100" },
                  { INT64_MAX, "9223372036854775807" },
                  { INT64_MIN, "-9223372036854775808" } };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir__buffer b = { 0 };
        weir__buffer_number(&b, cases[i].n);
        expect(&b, cases[i].text);
    }
}

TEST(test_drop)
{
    struct weir__buffer b = { 0 };

    weir__buffer_drop(&b, 3);
    weir__buffer_text(&b, "abcdef");
    weir__buffer_drop(&b, 0);
    weir__buffer_drop(&b, 2);
    assert_memory_equal(b.bytes, "cdef", 4);
    weir__buffer_drop(&b, 9);
    assert_int_equal(b.len, 0);
    weir__buffer_text(&b, "again");
    expect(&b, "again");
}

/* More than there can be: nothing is added from then on, not even what there would be room for. */
TEST(test_out_of_memory)
{
    struct weir__buffer b = { 0 };

    weir__buffer_text(&b, "half");
    assert_null(weir__buffer_room(&b, SIZE_MAX / 2));
    assert_true(b.failed);
    weir__buffer_text(&b, "}");
    weir__buffer_format(&b, "}");
    weir__buffer_number(&b, 1);
    assert_null(weir__buffer_room(&b, 1));
    assert_int_equal(b.len, 4);
    weir__buffer_drop(&b, 2);
    weir__buffer_text(&b, "}");
    assert_int_equal(b.len, 2);
    weir__buffer_free(&b);
    weir__buffer_text(&b, "new");
    expect(&b, "new");
}

TEST(test_json_strings)
{
    static const struct {
        const char *text;
        size_t len;
        const char *json;
    } cases[] = {
        { "", 0, "\"\"" },
        { "plain", 5, "\"plain\"" },
        { "a\"b\\c", 5, "\"a\\\"b\\\\c\"" },
        { "\n\0\x7f", 3, "\"\\u000a\\u0000\\u007f\"" },
        { "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a", 12,
          "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8a\"" },
        { "\xc3", 1, "\"\\ufffd\"" },                       /* cut off */
        { "\xe2\x82", 2, "\"\\ufffd\\ufffd\"" },            /* likewise */
        { "\xc0\xaf", 2, "\"\\ufffd\\ufffd\"" },            /* overlong */
        { "\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"" }, /* a surrogate */
        { "\xf4\x90\x80\x80x", 5, "\"\\ufffd\\ufffd\\ufffd\\ufffdx\"" },
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir__buffer b = { 0 };
        FINALLY(memory_drop)
        char *exact = malloc(cases[i].len ? cases[i].len
                                          : 1); /* reading beyond it is seen by the sanitizers */
        memcpy(exact, cases[i].text, cases[i].len);
        weir__buffer_json(&b, exact, cases[i].len);
        expect(&b, cases[i].json);
    }
}

TEST(test_members)
{
    struct weir__buffer b = { 0 };

    weir__buffer_text(&b, "[{");
    weir__buffer_member(&b, "a", "x\"");
    weir__buffer_member_number(&b, "n", -5);
    weir__buffer_member_moment(&b, "t", 1789000000 * WEIR_SECOND + 70 * WEIR_MILLISECOND + 999);
    weir__buffer_member_moment(&b, "never", WEIR_NEVER);
    weir__buffer_member_moment(&b, "z", -1);
    weir__buffer_text(&b, "},{");
    weir__buffer_member_number(&b, "n", 1);
    weir__buffer_text(&b, "},{");
    weir__buffer_member_bool(&b, "y", true);
    weir__buffer_member_bool(&b, "n", false);
    weir__buffer_member_or_null(&b, "t", "x");
    weir__buffer_member_or_null(&b, "u", NULL);
    weir__buffer_member_name(&b, "m");
    weir__buffer_text(&b, "[]");
    weir__buffer_text(&b, "},{");
    weir__buffer_member_ms(&b, "a", 0);
    weir__buffer_member_ms(&b, "b", 1);
    weir__buffer_member_ms(&b, "c", 2 * WEIR_MILLISECOND);
    weir__buffer_member_ms(&b, "d", WEIR_NEVER);
    weir__buffer_member_ms(&b, "e", -1);
    weir__buffer_text(&b, "}]");
    expect(&b, "[{\"a\":\"x\\\"\",\"n\":-5,\"t\":\"2026-09-10T00:26:40.070Z\",\"never\":null,\"z\":"
               "\"1970-01-01T00:00:00.000Z\"},{\"n\":1},"
               "{\"y\":true,\"n\":false,\"t\":\"x\",\"u\":null,\"m\":[]},{\"a\":0,\"b\":1,\"c\":2,"
               "\"d\":null,\"e\":null}]");
}

TEST(test_brackets)
{
    struct weir__buffer b = { 0 };

    weir__buffer_open(&b, NULL, '{');
    weir__buffer_open(&b, "empty", '[');
    weir__buffer_close(&b, "]");
    weir__buffer_member_numbers(&b, "n", (const int64_t[]){ 1, -2 }, 2);
    weir__buffer_open(&b, "o", '[');
    weir__buffer_open(&b, NULL, '{');
    weir__buffer_close(&b, "}");
    weir__buffer_member(&b, NULL, "x");
    weir__buffer_close(&b, "]}\n");
    weir__buffer_open(&b, NULL, '{');
    weir__buffer_member_name(&b, "later");
    weir__buffer_open(&b, NULL, '{');
    weir__buffer_close(&b, "}}");
    expect(&b, "{\"empty\":[],\"n\":[1,-2],\"o\":[{},\"x\"]}\n{\"later\":{}}");
}

/* Half a text is an error: `weir bans --json` printed one, and exited with 0. */
TEST(test_print)
{
    struct weir__buffer b = { 0 };
    char out[8] = "";
    FILE *file = fmemopen(out, sizeof(out), "w");

    weir__buffer_text(&b, "whole");
    assert_int_equal(weir__buffer_print(&b, NULL), 0);
    weir__buffer_text(&b, "half");
    b.failed = true;
    assert_int_not_equal(weir__buffer_print(&b, file), 0);
    weir__buffer_text(&b, "whole");
    assert_int_equal(weir__buffer_print(&b, file), 0);
    fclose(file);
    assert_string_equal(out, "whole");
}
