/* token.c -- what a secret may be made of, and one in the first line of a file. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/base/token.h"

TEST(test_what_a_token_is_made_of)
{
    char token[WEIR__TOKEN_MAX + 2];

    assert_null(weir__token_wrong(""));
    assert_null(weir__token_wrong("!azAZ09~"));
    for (int c = 1; c < 256; c++) {
        const char text[] = { 'a', (char)c, 'b', 0 };
        assert_int_equal(weir__token_wrong(text) == NULL, c > ' ' && c < 0x7f);
    }
    assert_contains(weir__token_wrong("two words"), "no space");
    assert_contains(weir__token_wrong("(set)"), "--print-settings");
    memset(token, 'x', sizeof(token));
    token[WEIR__TOKEN_MAX] = 0;
    assert_null(weir__token_wrong(token));
    token[WEIR__TOKEN_MAX] = 'x';
    token[WEIR__TOKEN_MAX + 1] = 0;
    assert_contains(weir__token_wrong(token), "is longer than 256 bytes");
}

static const char *file_with(const char *bytes, size_t len)
{
    const char *path = new_path();

    write_at(path, 0, bytes, len);
    return path;
}

static void expect(const char *text, const char *wanted)
{
    struct weir_error error = { 0 };

    FINALLY(memory_drop) char *token = NULL;

    if (weir__token_read(&token, file_with(text, strlen(text)), &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    assert_string_equal(token, wanted);
}

static void refuse(const char *path, const char *why)
{
    struct weir_error error = { 0 };
    char *token = (char *)16;

    assert_int_not_equal(weir__token_read(&token, path, &error), WEIR_OK);
    assert_contains(error.text, why);
    assert_ptr_equal(token, (char *)16);
}

TEST(test_the_first_line_of_a_file)
{
    char longer[WEIR__TOKEN_MAX + 1];

    expect("secret", "secret");
    expect("secret\n", "secret");
    expect("secret\r\nanother line\n", "secret");
    refuse("./there-is-none", "cannot read ./there-is-none: No such file");
    refuse(file_with("", 0), "has no secret in its first line");
    refuse(file_with("\nsecret\n", 8), "has no secret in its first line");
    refuse(file_with("a b\n", 4), "no visible ASCII");
    refuse(file_with("a\0b\n", 4), "has a NUL byte in its first line");
    memset(longer, 'x', sizeof(longer));
    refuse(file_with(longer, sizeof(longer)), "is longer than 256 bytes");
}

GROUP(make_folder, remove_folder)
