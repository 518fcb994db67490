/* conf.c -- an nginx.conf is read as nginx reads it, and whatever is wrong with it is named. */
#include "unit/server/import/importing.h"

static struct weir__directive *read_one(struct weir__import *import, const char *text)
{
    struct weir_error error = { 0 };

    if (weir__conf_read(import, "conf", text, strlen(text), &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    assert_non_null(import->root.first);
    return import->root.first;
}

static void check_words(const char *text, const char *second)
{
    FINALLY(weir__import_clear) struct weir__import import = { 0 };
    struct weir__directive *d = read_one(&import, text);

    assert_string_equal(d->words[0], "a");
    assert_int_equal(d->n, 2);
    assert_string_equal(d->words[1], second);
}

TEST(test_words)
{
    check_words("a b;", "b");
    check_words("a 'b c';", "b c");
    check_words("a \"b;{\" ;", "b;{");
    check_words("a b\\ c;", "b\\ c");
    check_words("a 'b\\'c';", "b'c");
    check_words("a \\.php$;", "\\.php$");
    check_words("a ${b}c;", "${b}c");
    check_words("a b#c;", "b#c");
    check_words("# x\na # y ; {\nb;", "b");
    check_words("a b'c;", "b'c");
    check_words("a b\\tc;", "b\tc");
}

TEST(test_lines_and_blocks)
{
    FINALLY(weir__import_clear) struct weir__import import = { 0 };
    struct weir__directive *d = read_one(&import, "\nx {\n y 1;\n z {}\n}\nw;");

    assert_int_equal(d->line, 2);
    assert_int_equal(d->first->line, 3);
    assert_string_equal(d->last->words[0], "z");
    assert_ptr_equal(d->last->parent, d);
    assert_int_equal(d->next->line, 6);
}

TEST(test_lua_is_skipped)
{
    FINALLY(weir__import_clear) struct weir__import import = { 0 };
    struct weir__directive *d =
        read_one(&import, "access_by_lua_block { local a = '}' -- }\n if x then { } end }\nb;");

    assert_string_equal(d->next->words[0], "b");
    assert_int_equal(d->next->line, 3);
    d = read_one(&import, "x_by_lua_block { --[[ }\n]] a[b[1]] = [=[ }]] ]=] .. [[}\n]] }\nb;");
    assert_string_equal(d->next->words[0], "b");
    assert_int_equal(d->next->line, 4);
}

static void check_wrong(const char *text, size_t len, const char *why)
{
    FINALLY(weir__import_clear) struct weir__import import = { 0 };
    struct weir_error error = { 0 };

    assert_int_equal(weir__conf_read(&import, "conf", text, len, &error), WEIR_INVALID);
    assert_contains(error.text, why);
}

TEST(test_what_is_wrong_is_named)
{
    FINALLY(memory_drop) char *deep = malloc(3000);

    check_wrong("a", 1, "conf:1: the file ends within a directive");
    check_wrong("\n\na {", 5, "conf:3: the file ends within a block");
    check_wrong("}", 1, "a } without its {");
    check_wrong("a }", 3, "expected ; before }");
    check_wrong(";", 1, "a directive without a name");
    check_wrong("a 'b", 4, "a quote is not closed");
    check_wrong("a 'b'c;", 7, "expected a blank");
    check_wrong("a b\0c;", 6, "a NUL byte");
    check_wrong("a b\\\0c;", 7, "a NUL byte");
    check_wrong("x_by_lua_block { '", 18, "Lua code is not closed");
    check_wrong("x_by_lua_block { [=[ }]]", 24, "Lua code is not closed");
    check_wrong("x_by_lua_block { --[", 20, "Lua code is not closed");
    for (size_t i = 0; i < 1000; i++)
        memcpy(deep + 3 * i, "a {", 3);
    check_wrong(deep, 3000, "too deep");
}
