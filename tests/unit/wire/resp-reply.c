/* resp-reply.c -- replies of both versions of RESP, cut anywhere, and what is none.
 *
 * Every reply is scanned whole, and byte by byte with the scanner going on where it was, against
 * the end of readable memory.
 */
#include "unit/test.h"

#include "unit/edge.h"

#include "wire/resp-reply.h"

#define MAX 4096

/* The value and all in it, in words. */
static const char *print_value(char **to, const char *at)
{
    struct weir__resp_value v;
    const char *rest = weir__resp_value(at, &v);

    if (v.kind == ':' || v.kind == '#')
        *to += sprintf(*to, "%c%lld", v.kind, (long long)v.integer);
    else
        *to += sprintf(*to, "%c%.*s", v.kind, (int)v.text.len, v.text.bytes ? v.text.bytes : "");
    if (v.n == 0)
        return rest;
    for (size_t i = 0; i < v.n; i++) {
        *to += sprintf(*to, i ? " " : "[");
        rest = print_value(to, rest);
    }
    *to += sprintf(*to, "]");
    return rest;
}

static void good_bytes(const char *bytes, size_t len, const char *printed)
{
    struct weir__resp_scan scan = { 0 };
    const char *what = NULL;
    char print[512], *to = print;

    for (size_t n = 0; n < len; n++)
        assert_int_equal(weir__resp_scan(&scan, at_edge(bytes, n), n, MAX, &what), 0);
    assert_int_equal(weir__resp_scan(&scan, at_edge(bytes, len), len, MAX, &what), len);
    assert_fields(scan, (at, 0), (left, 0));
    char more[MAX];
    memcpy(more, bytes, len);
    memcpy(more + len, "+x\r\n", 4);
    assert_int_equal(weir__resp_scan(&scan, more, len + 4, MAX, &what), len);
    assert_null(what);

    char *whole = at_edge(bytes, len);
    assert_ptr_equal(print_value(&to, whole), whole + len);
    assert_ptr_equal(weir__resp_skip(whole), whole + len);
    assert_string_equal(print, printed);
}

static void good(const char *bytes, const char *printed)
{
    good_bytes(bytes, strlen(bytes), printed);
}

/* It is wrong, but not before its last byte. */
static void bad(const char *bytes)
{
    struct weir__resp_scan scan = { 0 };
    const char *what = NULL;
    size_t len = strlen(bytes);

    for (size_t n = 0; n < len; n++)
        assert_int_equal(weir__resp_scan(&scan, at_edge(bytes, n), n, 64, &what), 0);
    assert_null(what);
    assert_true(weir__resp_scan(&scan, at_edge(bytes, len), len, 64, &what) < 0);
    assert_non_null(what);
}

TEST(test_scalars)
{
    good("+OK\r\n", "+OK");
    good("+\r\n", "+");
    good("-MOVED 1 a:1\r\n", "-MOVED 1 a:1");
    good(":0\r\n", ":0");
    good(":-9223372036854775808\r\n", ":-9223372036854775808");
    good(":999999999999999999\r\n", ":999999999999999999");
    good(":1000000000000000000\r\n", ":1000000000000000000");
    good(":0000000000000000000007\r\n", ":7");
    good("$3\r\na\nb\r\n", "$a\nb");
    good("$0\r\n\r\n", "$");
    good("$-1\r\n", "_");
    good("_\r\n", "_");
    good("#t\r\n", "#1");
    good("#f\r\n", "#0");
    good(",1.5\r\n", ",1.5");
    good("(123456789012345678901\r\n", "(123456789012345678901");
    good("!5\r\nERR x\r\n", "-ERR x");
    good("=7\r\ntxt:abc\r\n", "$abc");
    good_bytes("$3\r\n\0\r\n\r\n", 9, "$");
}

TEST(test_aggregates)
{
    good("*0\r\n", "*");
    good("*-1\r\n", "_");
    good("*2\r\n:1\r\n*2\r\n:2\r\n$-1\r\n", "*[:1 *[:2 _]]");
    good("%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n", "%[+a :1 +b *]");
    good("~1\r\n:1\r\n", "~[:1]");
    good(">2\r\n+message\r\n*1\r\n:1\r\n", ">[+message *[:1]]");
    good("*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", "*[*[*[*[:7]]]]");
    good("|1\r\n+ttl\r\n:3\r\n:5\r\n", ":5");
    good("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:5\r\n:6\r\n", "*[:5 :6]");
}

TEST(test_wrong_replies)
{
    bad("x");
    bad("+OK\n");
    bad(":x\r\n");
    bad(":\r\n");
    bad("$1\r\nab\r");
    bad("$-2\r\n");
    bad("$?\r\n");
    bad("*-2\r\n");
    bad("%-1\r\n");
    bad("_x\r\n");
    bad("#y\r\n");
    bad("*9999999999999999999\r\n");
    bad("*1073741825\r\n");
    bad("$65\r\n"); /* beyond the limit, when it is announced */
    bad("*3\r\n$20\r\n01234567890123456789\r\n$20\r\n01234567890123456789\r\n$4\r\nabc");
}

TEST(test_a_line_has_an_end)
{
    static char line[70 * 1024];
    struct weir__resp_scan scan = { 0 };
    const char *what = NULL;

    memset(line, 'x', sizeof(line));
    line[0] = '+';
    assert_int_equal(weir__resp_scan(&scan, line, 64 * 1024 - 1, sizeof(line), &what), 0);
    assert_true(weir__resp_scan(&scan, line, 64 * 1024, sizeof(line), &what) < 0);
}

TEST(test_words_of_errors)
{
    struct weir__resp_value v;

    weir__resp_value("-ASK 3 a:1\r\n", &v);
    assert_true(weir__resp_is_error(&v, "ASK"));
    assert_false(weir__resp_is_error(&v, "AS"));
    assert_false(weir__resp_is_error(&v, "ASKING"));
    weir__resp_value("-LOADING\r\n", &v);
    assert_true(weir__resp_is_error(&v, "LOADING"));
    weir__resp_value("+ASK 3 a:1\r\n", &v);
    assert_false(weir__resp_is_error(&v, "ASK"));
}
