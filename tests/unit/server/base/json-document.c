/* json-document.c -- what a server answers, by path: found, not found, of another kind; and texts
 * that are no JSON. */
#include "unit/test.h"

#include "server/base/json-document.h"

/* In memory of exactly its size: reading beyond the end is seen by the sanitizers. */
static int read_text(struct weir__document *d, const char *text)
{
    size_t len = strlen(text);
    char *exact = malloc(len ? len : 1);
    struct weir_error error = { 0 };

    assert_non_null(exact);
    memcpy(exact, text, len);
    int code = weir__document_read(d, exact, len, &error);
    free(exact);
    assert_int_equal(code == WEIR_OK, error.text[0] == '\0');
    return code;
}

TEST(test_members)
{
    struct weir__document d = { 0 };

    assert_ok(read_text(&d, "{\"b\":{\"c\":[{\"n\":1},{\"n\":-22}]},\"a\":\"x\\n\\u00e9\","
                            "\"t\":true,\"f\":false,\"z\":null,\"e\":\"\"}"));
    assert_string_equal(weir__document_text(&d, "a"), "x\né");
    assert_int_equal(weir__document_find(&d, "a")->len, 4);
    assert_int_equal(weir__document_number(&d, 7, "b.c.%d.n", 0), 1);
    assert_int_equal(weir__document_number(&d, 7, "b.c.%d.n", 1), -22);
    assert_int_equal(weir__document_number(&d, 7, "b.c.%d.n", 2), 7);
    assert_int_equal(weir__document_number(&d, 7, "a"), 7);
    assert_true(weir__document_true(&d, "t"));
    assert_false(weir__document_true(&d, "f"));
    assert_false(weir__document_true(&d, "none"));
    assert_null(weir__document_find(&d, "z"));
    assert_null(weir__document_text(&d, "b"));
    assert_string_equal(weir__document_text(&d, "e"), "");
    weir__document_free(&d);
    assert_null(weir__document_find(&d, "a"));
}

TEST(test_times)
{
    FINALLY(weir__document_free) struct weir__document d = { 0 };

    assert_ok(read_text(&d, "{\"a\":12005,\"b\":0.5,\"c\":0,\"n\":null,\"x\":"
                            "9999999999999999,\"y\":-1,\"s\":\"1\"}"));
    assert_int_equal(weir__document_ms(&d, "a"), 12 * WEIR_SECOND + 5 * WEIR_MILLISECOND);
    assert_int_equal(weir__document_ms(&d, "b"), WEIR_NEVER);
    assert_int_equal(weir__document_ms(&d, "c"), 0);
    assert_int_equal(weir__document_ms(&d, "y"), WEIR_NEVER);
    assert_int_equal(weir__document_ms(&d, "n"), WEIR_NEVER);
    assert_int_equal(weir__document_ms(&d, "x"), WEIR_NEVER);
    assert_int_equal(weir__document_ms(&d, "s"), WEIR_NEVER);
    assert_int_equal(weir__document_ms(&d, "none"), WEIR_NEVER);
}

TEST(test_no_json)
{
    static const char *const wrong[] = { "", "{", "{\"a\":}", "[1,]", "<html>", "{\"a\":\"\\x\"}" };

    FINALLY(weir__document_free) struct weir__document d = { 0 };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(read_text(&d, wrong[i]), WEIR_INVALID);
        assert_null(d.scalars);
    }
    assert_ok(read_text(&d, "[]"));
    assert_null(weir__document_find(&d, "0"));
}
