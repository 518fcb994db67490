/* json.c -- what the walk calls back, what it refuses, and that it points at the byte that is
 * wrong.
 *
 * Texts lie in memory of exactly their size: reading beyond the end is seen by the sanitizers.
 */
#include "unit/test.h"

#include "wire/json.h"

struct record {
    char text[4096]; /* "path=kind:text;" for each call */
    size_t len;
    size_t calls, stop_after; /* 0: never */
};

static bool note(void *context, const struct weir__json_value *v)
{
    static const char kinds[] = "sntf0e";
    struct record *r = context;

    r->len += (size_t)snprintf(r->text + r->len, sizeof(r->text) - r->len, "%.*s=%c:%.*s;",
                               (int)v->path_len, v->path, kinds[v->kind], (int)v->len, v->text);
    return ++r->calls != r->stop_after;
}

static long walk_into(struct record *r, const char *text, size_t len, const char **what)
{
    char *copy = malloc(len + 1), *exact = copy + 1, *scratch = malloc(len ? len : 1);

    memcpy(exact, text, len);
    long at = weir__json_walk(exact, len, scratch, note, r, what);
    free(scratch);
    free(copy);
    return at;
}

static void check_good(const char *text, size_t len, const char *calls)
{
    struct record r = { .len = 0 };
    const char *what = "untouched";
    long at = walk_into(&r, text, len, &what);

    if (at != -1)
        fail_msg("%s: wrong at %ld: expected %s", text, at, what);
    assert_string_equal(r.text, calls);
    assert_string_equal(what, "untouched");
}

static void check_bad(const char *text, size_t len, long place, const char *expected)
{
    struct record r = { .len = 0 };
    const char *what = NULL;
    long at = walk_into(&r, text, len, &what);

    if (at != place || what == NULL || strcmp(what, expected) != 0)
        fail_msg("%s: expected %s at %ld; got %s at %ld", text, expected, place,
                 what ? what : "nothing", at);
}

TEST(test_scalars)
{
    static const char *const good[][2] = {
        { "\"\"", "=s:;" },
        { "\"abc\"", "=s:abc;" },
        { "true", "=t:true;" },
        { " false\n", "=f:false;" },
        { "\t\r\n null ", "=0:null;" },
        { "0", "=n:0;" },
        { "-0", "=n:-0;" },
        { "12.50", "=n:12.50;" },
        { "-1.5e+10", "=n:-1.5e+10;" },
        { "1E-7", "=n:1E-7;" },
        { "123456789012345678901234567890", "=n:123456789012345678901234567890;" },
    };

    for (size_t i = 0; i < COUNT_OF(good); i++)
        check_good(good[i][0], strlen(good[i][0]), good[i][1]);
}

TEST(test_paths)
{
    static const char *const good[][2] = {
        { "{}", "" },
        { "[]", "" },
        { "[[],{},[[]]]", "0=e:[];1=e:{};2.0=e:[];" },
        { "{\"a\":1}", "a=n:1;" },
        { "{ \"a\" : { \"b\" : [ 1 , { \"c\" : 2 } ] , \"d\" : 3 } , \"e\" : 4 }",
          "a.b.0=n:1;a.b.1.c=n:2;a.d=n:3;e=n:4;" },
        { "[0,[1,2],3]", "0=n:0;1.0=n:1;1.1=n:2;2=n:3;" },
        { "{\"a\":1,\"a\":2}", "a=n:1;a=n:2;" },
        { "{\"\":1,\"x\":{\"\":2}}", "=n:1;x.=n:2;" },
        { "{\"\\u00e4\\n\":{\"a\\\"b\":true}}", "\xc3\xa4\n.a\"b=t:true;" },
        { "[0,1,2,3,4,5,6,7,8,9,10]",
          "0=n:0;1=n:1;2=n:2;3=n:3;4=n:4;5=n:5;6=n:6;7=n:7;8=n:8;9=n:9;10=n:10;" },
    };

    for (size_t i = 0; i < COUNT_OF(good); i++)
        check_good(good[i][0], strlen(good[i][0]), good[i][1]);
}

TEST(test_escapes)
{
    static const char *const good[][2] = {
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "=s:\"\\/\b\f\n\r\t;" },
        { "\"\\u0041\\u00dF\\u20AC\"", "=s:A\xc3\x9f\xe2\x82\xac;" },
        { "\"\\ud83d\\ude00\"", "=s:\xf0\x9f\x98\x80;" },
        { "\"\\uD800\\uDC00 \\uDBFF\\uDFFF\"", "=s:\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf;" },
        { "[\"a\\tb\",\"plain\",\"\\n\"]", "0=s:a\tb;1=s:plain;2=s:\n;" },
        { "\"long enough before \\\\ and long enough behind it\"",
          "=s:long enough before \\ and long enough behind it;" },
    };

    for (size_t i = 0; i < COUNT_OF(good); i++)
        check_good(good[i][0], strlen(good[i][0]), good[i][1]);
}

static bool keep_value(void *context, const struct weir__json_value *v)
{
    *(struct weir__json_value *)context = *v;
    return true;
}

/* Of the last value: its name, how deep it is, whether it is an element. */
static void check_place(const char *text, const char *name, size_t depth, bool element)
{
    struct weir__json_value v;
    const char *what;

    assert_int_equal(weir__json_walk(text, strlen(text), NULL, keep_value, &v, &what), -1);
    assert_int_equal(v.name_len, strlen(name));
    assert_memory_equal(v.path + v.path_len - v.name_len, name, v.name_len);
    assert_fields(v, (depth, depth), (element, element));
}

TEST(test_place_of_a_value)
{
    check_place("1", "", 0, false);
    check_place("{\"a.b\":1}", "a.b", 1, false);
    check_place("[7,8]", "1", 1, true);
    check_place("{\"a.b\":{\"c.d\":1}}", "c.d", 2, false);
    check_place("{\"a\":[{}, [], 5]}", "2", 2, true);
    check_place("{\"a\":{\"b\":{\"c\":1},\"\":2}}", "", 2, false);
    check_place("[[[1]],{\"x\":2}]", "x", 2, false);
}

TEST(test_nul_is_a_character_if_escaped)
{
    struct weir__json_value v;
    const char *what;
    char scratch[16];

    assert_int_equal(weir__json_walk("\"a\\u0000b\"", 10, scratch, keep_value, &v, &what), -1);
    assert_int_equal(v.len, 3);
    assert_memory_equal(v.text, "a\0b", 3);
    check_bad("\"a\0b\"", 5, 2, "an escape instead of a control character");
    check_bad("\0", 1, 0, "a value");
    check_bad("1\0", 2, 1, "the end of the text");
    check_bad("\"\\\0\"", 4, 2, "an escape: one of \" \\ / b f n r t u");
}

TEST(test_decoded_strings_stay)
{
    struct weir__json_value v;
    const char *what;
    char scratch[64], plain[] = "[\"\\u0061\",\"\\u0062\"]";

    assert_int_equal(weir__json_walk(plain, strlen(plain), scratch, keep_value, &v, &what), -1);
    assert_memory_equal(scratch, "ab", 2);
    assert_ptr_equal(v.text, scratch + 1);
}

TEST(test_without_scratch_strings_come_as_written)
{
    struct record r = { .len = 0 };
    const char *what, text[] = "{\"\\u0061\":\"\\u0062\"}";

    assert_int_equal(weir__json_walk(text, strlen(text), NULL, note, &r, &what), -1);
    assert_string_equal(r.text, "a=s:\\u0062;");
    assert_int_equal(weir__json_walk("\"\\x\"", 4, NULL, note, &r, &what), 2);
}

TEST(test_utf8)
{
    static const char *const good[] = { "\xc2\x80",         "\xdf\xbf",        "\xe0\xa0\x80",
                                        "\xed\x9f\xbf",     "\xee\x80\x80",    "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf" };
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2\x41",
        "\xe0\x9f\xbf",
        "\xe0\xa0",
        "\xe1\x80\x41",
        "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x90\x80",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xfe",
    };
    char text[32], calls[32];

    for (size_t i = 0; i < COUNT_OF(good); i++) {
        snprintf(text, sizeof(text), "\"%s\"", good[i]);
        snprintf(calls, sizeof(calls), "=s:%s;", good[i]);
        check_good(text, strlen(text), calls);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        snprintf(text, sizeof(text), "\"\xc3\xa4%s\"", bad[i]);
        check_bad(text, strlen(text), 3, "UTF-8");
        check_bad(text, strlen(text) - 1, 3, "UTF-8"); /* the text ends within */
    }
}

static const struct {
    const char *text;
    long at;
    const char *what;
} bad[] = {
    { "", 0, "a value" },
    { "  ", 2, "a value" },
    { "\xef\xbb\xbf{}", 0, "a value" },
    { "nul", 3, "true, false or null" },
    { "trve", 2, "true, false or null" },
    { "True", 0, "a value" },
    { "+1", 0, "a value" },
    { ".5", 0, "a value" },
    { "-", 1, "a digit" },
    { "-x", 1, "a digit" },
    { "1.", 2, "a digit" },
    { "1.e5", 2, "a digit" },
    { "1e", 2, "a digit" },
    { "1e+", 3, "a digit" },
    { "01", 1, "the end of the text" },
    { "[01]", 2, "',' or ']'" },
    { "1 2", 2, "the end of the text" },
    { "{}}", 2, "the end of the text" },
    { "NaN", 0, "a value" },
    { "[", 1, "a value" },
    { "[1", 2, "',' or ']'" },
    { "[1,", 3, "a value" },
    { "[1,]", 3, "a value" },
    { "[,1]", 1, "a value" },
    { "[1}", 2, "',' or ']'" },
    { "{", 1, "a name in quotes or '}'" },
    { "{1:2}", 1, "a name in quotes or '}'" },
    { "{\"a\"", 4, "':'" },
    { "{\"a\" 1}", 5, "':'" },
    { "{\"a\":", 5, "a value" },
    { "{\"a\":}", 5, "a value" },
    { "{\"a\":1", 6, "',' or '}'" },
    { "{\"a\":1]", 6, "',' or '}'" },
    { "{\"a\":1,}", 7, "a name in quotes" },
    { "{'a':1}", 1, "a name in quotes or '}'" },
    { "\"abc", 4, "a closing quote" },
    { "\"abc\\\"", 6, "a closing quote" },
    { "{\"abc", 5, "a closing quote" },
    { "\"a\nb\"", 2, "an escape instead of a control character" },
    { "\"0123456789\x1f\"", 11, "an escape instead of a control character" },
    { "\"\\x41\"", 2, "an escape: one of \" \\ / b f n r t u" },
    { "\"\\", 2, "an escape: one of \" \\ / b f n r t u" },
    { "\"\\u12g4\"", 5, "four hexadecimal digits" },
    { "\"\\u12", 5, "four hexadecimal digits" },
    { "\"ab\\udc00\"", 3, "the first half of a surrogate pair before its second" },
    { "\"ab\\ud800\"", 3, "both halves of a surrogate pair" },
    { "\"ab\\ud800\\n\"", 3, "both halves of a surrogate pair" },
    { "\"ab\\ud800\\u0041\"", 3, "both halves of a surrogate pair" },
    { "\"ab\\ud800\\ud800\"", 3, "both halves of a surrogate pair" },
    { "\"ab\\ud800\\uzz\"", 11, "four hexadecimal digits" },
    { "// c\n1", 0, "a value" },
};

TEST(test_bad)
{
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        check_bad(bad[i].text, strlen(bad[i].text), bad[i].at, bad[i].what);
}

/* A special character is found wherever it stands among the eight bytes that are looked at
 * together. */
TEST(test_every_place_of_a_quote)
{
    char text[64], calls[64];

    for (int n = 0; n < 40; n++) {
        snprintf(text, sizeof(text), "\"%.*s\"", n, "abcdefghijklmnopqrstuvwxyz0123456789ABCDEF");
        snprintf(calls, sizeof(calls), "=s:%.*s;", n, "abcdefghijklmnopqrstuvwxyz0123456789ABCDEF");
        check_good(text, strlen(text), calls);
        text[n / 2 + 1] = '\x01';
        if (n > 0)
            check_bad(text, strlen(text), n / 2 + 1, "an escape instead of a control character");
    }
}

#define FIVE       "0.0.0.0.0."
#define DEPTH_PATH FIVE FIVE FIVE FIVE FIVE FIVE "0."

TEST(test_depth_is_bounded)
{
    enum { HUGE_DEPTH = 100000 };
    char text[2 * WEIR__JSON_DEPTH + 8] = "", *deep = malloc(HUGE_DEPTH);

    memset(text, '[', WEIR__JSON_DEPTH);
    text[WEIR__JSON_DEPTH] = '1';
    memset(text + WEIR__JSON_DEPTH + 1, ']', WEIR__JSON_DEPTH);
    check_good(text, 2 * WEIR__JSON_DEPTH + 1, DEPTH_PATH "0=n:1;");
    memset(text, '[', WEIR__JSON_DEPTH + 1);
    check_bad(text, 2 * WEIR__JSON_DEPTH, WEIR__JSON_DEPTH, "no more than 32 levels");
    memset(deep, '[', HUGE_DEPTH);
    check_bad(deep, HUGE_DEPTH, WEIR__JSON_DEPTH, "no more than 32 levels");
    for (size_t i = 0; i + 5 <= HUGE_DEPTH; i += 5)
        memcpy(deep + i, "{\"a\":", 5);
    check_bad(deep, HUGE_DEPTH, 5 * WEIR__JSON_DEPTH, "no more than 32 levels");
    free(deep);
}

/* Checked, but not called back; its neighbours are. */
TEST(test_long_path_is_left_out)
{
    char name[WEIR__JSON_PATH + 2], text[2000];
    struct record r = { .len = 0 };
    const char *what;

    memset(name, 'n', sizeof(name));
    name[WEIR__JSON_PATH] = '\0';
    int len = snprintf(text, sizeof(text),
                       "{\"%s\":1,\"n%s\":{\"x\":[2,3]},\"%.254s\":{\"y\":4,\"yy\":5},\"z\":6}",
                       name, name, name);
    assert_int_equal(walk_into(&r, text, (size_t)len, &what), -1);
    assert_int_equal(r.calls, 3);
    assert_int_equal(strncmp(r.text, name, WEIR__JSON_PATH), 0);
    assert_non_null(strstr(r.text, "n.y=n:4;z=n:6;"));
    len = snprintf(text, sizeof(text), "{\"n%s\":tru}", name);
    assert_int_equal(walk_into(&r, text, (size_t)len, &what), len - 1);
}

/* A name that is long only because of its escapes. */
TEST(test_long_escaped_path)
{
    char text[WEIR__JSON_PATH * 6 + 16] = "{\"";
    struct record r = { .len = 0 };
    const char *what;

    for (int i = 0; i < WEIR__JSON_PATH; i++)
        strcat(text, "\\u0061");
    strcat(text, "\":1}");
    assert_int_equal(walk_into(&r, text, strlen(text), &what), -1);
    assert_int_equal(r.calls, 1);
    assert_int_equal(strspn(r.text, "a"), WEIR__JSON_PATH);
}

TEST(test_each_may_end_it)
{
    struct record r = { .stop_after = 2 };
    const char *what;

    assert_int_equal(walk_into(&r, "[1,2,3,oh no", 12, &what), -1);
    assert_string_equal(r.text, "0=n:1;1=n:2;");
}

/* Every beginning of a good text that is not good itself is wrong at its end, and nowhere else. */
TEST(test_every_beginning)
{
    const char *text = "{\"a\":[1.5e3,true,{\"b\":\"\\u00e4\\ud83d\\ude00 x\"}],\"c\":null}";
    size_t len = strlen(text);

    for (size_t n = 0; n < len; n++) {
        struct record r = { .len = 0 };
        const char *what = NULL;
        long at = walk_into(&r, text, n, &what);
        bool half = at >= 0 && what && strcmp(what, "both halves of a surrogate pair") == 0;
        assert_true(half || at == (long)n);
    }
}

TEST(test_elements_of_an_array)
{
    static const char *const expected[] = { "{\"a\":\"],\\\"}\"}", " [1,[2]]", "\"x", NULL };
    const char *at = "{\"a\":\"],\\\"}\"}, [1,[2]],\"x", *end = at + strlen(at);

    for (size_t i = 0; expected[i]; i++) {
        struct weir__text element = weir__json_element(&at, end);
        assert_int_equal(element.len, strlen(expected[i]));
        assert_memory_equal(element.bytes, expected[i], element.len);
        at += at < end && *at == ',';
    }
    assert_ptr_equal(at, end);
}

TEST(test_a_fraction_of_zeros_is_none)
{
    static const struct {
        const char *number;
        size_t len;
    } cases[] = { { "3", 1 },   { "30", 2 },    { "3.0", 1 },  { "30.00", 2 }, { "-7.0", 2 },
                  { "0", 1 },   { "0.0", 1 },   { "3.10", 4 }, { "3.01", 4 },  { "100", 3 },
                  { "1e0", 3 }, { "1.0e2", 5 }, { "-0.0", 2 }, { "000", 3 } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct weir__json_value v = { .text = cases[i].number, .len = strlen(cases[i].number) };
        assert_int_equal(weir__json_whole(&v), cases[i].len);
    }
}
