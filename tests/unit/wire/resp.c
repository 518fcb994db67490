/* resp.c -- S1: commands and replies of RESP, at every length that can come, and what is refused
 * and when.
 *
 * Every input is read at every prefix, against the end of readable memory: what is not whole is 0,
 * and what is wrong is wrong at the very byte that makes it so.
 */
#include "unit/test.h"

#include "unit/edge.h"

#include "wire/resp.h"

#define ARGS 16

static const struct weir__resp_limits wide = { .args = ARGS, .bytes = 64 * 1024 };

static ptrdiff_t command(const char *bytes, size_t len, const struct weir__resp_limits *limits,
                         char *print, const char **what)
{
    struct weir__text args[ARGS];
    size_t n = 99;
    char *at = print;

    *what = NULL;
    ptrdiff_t took = weir__resp_command(at_edge(bytes, len), len, limits, args, &n, what);
    for (size_t i = 0; took > 0 && i < n; i++)
        at += sprintf(at, "[%.*s]", (int)args[i].len, args[i].bytes);
    *at = '\0';
    if (took <= 0)
        assert_int_equal(n, 99);
    assert_int_equal(took < 0, *what != NULL);
    return took;
}

/* The command takes all but `rest` of the text. */
static void check_good(const char *text, size_t rest, const char *args)
{
    char print[256];
    const char *what;
    size_t len = strlen(text), whole = len - rest;

    for (size_t cut = 0; cut <= len; cut++) {
        ptrdiff_t took = command(text, cut, &wide, print, &what);
        if (took != (cut < whole ? 0 : (ptrdiff_t)whole))
            fail_msg("%s: %zu bytes of it answer %td %s", text, cut, took, what ? what : "");
        assert_string_equal(print, cut < whole ? "" : args);
    }
}

/* The first `good` bytes are the beginning of something; the next is wrong, whatever follows. */
static void check_bad_within(const struct weir__resp_limits *limits, const char *text, size_t len,
                             size_t good, const char *why)
{
    char print[256];
    const char *what;

    for (size_t cut = 0; cut <= len; cut++) {
        ptrdiff_t took = command(text, cut, limits, print, &what);
        if (took != (cut <= good ? 0 : -1) || (took < 0 && strstr(what, why) == NULL))
            fail_msg("%s: %zu bytes of it answer %td %s", text, cut, took, what ? what : "");
    }
}

static void check_bad(const char *text, size_t good, const char *why)
{
    check_bad_within(&wide, text, strlen(text), good, why);
}

TEST(test_S1_commands)
{
    check_good("*1\r\n$4\r\nPING\r\n", 0, "[PING]");
    check_good(
        "*6\r\n$11\r\nCL.THROTTLE\r\n$4\r\nuser\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n$1\r\n1\r\n",
        0, "[CL.THROTTLE][user][15][30][60][1]");
    check_good("*2\r\n$0\r\n\r\n$2\r\n\r\n\r\n", 0, "[][\r\n]");
    check_good("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", 14, "[PING]");
    check_good("*0\r\n", 0, "");
    check_good("*-1\r\nPING\r\n", 6, "");
    check_good("*12\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$"
               "1\r\ng\r\n$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n$"
               "1\r\nk\r\n$1\r\nl\r\n",
               0, "[a][b][c][d][e][f][g][h][i][j][k][l]");
    check_good("*2\r\n$"
               "101\r\n0123456789012345678901234567890123456789012345678901234567890123456789012345"
               "678901234567890123456789!\r\n$"
               "1\r\nx\r\n",
               0,
               "[0123456789012345678901234567890123456789012345678901234567890123456789012345678901"
               "234567890123456789!][x]");
}

TEST(test_S1_inline_commands)
{
    check_good("PING\r\n", 0, "[PING]");
    check_good("PING\nPING", 4, "[PING]");
    check_good("  take\t\tkey  1 \r\n", 0, "[take][key][1]");
    check_good("\r\n", 0, "");
    check_good(" \t\n", 0, "");
    check_good("a \"b c\" 'd \"e' \"\" 'f\\g' h\\i\r\n", 0, "[a][b c][d \"e][][f\\g][h\\i]");
    check_good("\"it's\" \xc3\xa9\n", 0, "[it's][\xc3\xa9]");
}

TEST(test_S1_inline_commands_that_are_wrong)
{
    static const char *const wrong[][2] = {
        { "a \"b\n", "closing quote" },
        { "a 'b\r\n", "closing quote" },
        { "a \"b\"c\n", "closing quote" },
        { "a \"b\\\"c\"\n", "escapes" },
        { "a \"b\\n\"\n", "escapes" },
        { "a 'b\\'c'\n", "escapes" },
        { "a b\"c\n", "escapes" },
        { "a b'c'\n", "escapes" },
        { "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n", "more arguments" },
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        check_bad(wrong[i][0], strlen(wrong[i][0]) - 1, wrong[i][1]);
    check_bad("\x16\x03\x01", 0, "TLS");
    check_bad("ab\x01", 2, "control");
    check_bad("ab\rcd\n", 3, "control");
    check_bad_within(&wide, "ab\0cd\n", 6, 2, "control");
}

TEST(test_S1_commands_that_are_wrong)
{
    check_bad("*x", 1, "number");
    check_bad("*1x", 2, "CRLF");
    check_bad("*\r\n", 1, "number");
    check_bad("*1\n", 2, "CRLF");
    check_bad("*1\rx", 3, "LF");
    check_bad("*+1\r\n", 1, "number");
    check_bad("*-2\r\n", 2, "-1");
    check_bad("*-1x", 3, "CRLF");
    check_bad("*01\r\n", 2, "zeros");
    check_bad("*1\r\n:1\r\n", 4, "'$'");
    check_bad("*1\r\nPING\r\n", 4, "'$'");
    check_bad("*1\r\n$-1\r\n", 5, "number");
    check_bad("*1\r\n$\r\n", 5, "number");
    check_bad("*1\r\n$00\r\n", 6, "zeros");
    check_bad("*1\r\n$05\r\nhello\r\n", 6, "zeros");
    check_bad("*1\r\n$4\r\nPINGx\r\n", 12, "CRLF");
    check_bad("*1\r\n$4\r\nPING\rx", 13, "LF");
    check_bad("*1\r\n$4\r\nPING\n\n", 12, "CRLF");
    check_bad("*2\r\n$4\r\nPING\r\n$1\r\nab\r\n", 19, "CRLF");
    check_bad("*1\r\n$12\r\nabcdefghijklm\r\n", 21, "CRLF");
}

TEST(test_S1_limits_hold_before_the_bytes_come)
{
    static const struct weir__resp_limits tight = { .args = 3, .bytes = 40 };
    char print[256];
    const char *what;

    check_bad("*1000000000", 3, "more arguments");
    check_bad("*17", 2, "more arguments");
    check_bad("*1\r\n$1000000000", 10, "longer");
    check_bad("*1\r\n$99999999999999999999999999", 9, "longer");
    check_bad("*1\r\n$65536\r\n", 11, "longer");
    check_bad_within(&tight, "*4\r\n", 4, 1, "more arguments");
    check_bad_within(&tight, "*1\r\n$30\r\n", 9, 8, "longer");
    assert_int_equal(
        command("*1\r\n$29\r\n01234567890123456789012345678\r\n", 40, &tight, print, &what), 40);
    check_bad_within(&tight, "*3\r\n$9\r\n012345678\r\n$9\r\n012345678\r\n$1\r\nx\r\n", 41, 37,
                     "longer");
    check_bad_within(&tight, "0123456789 0123456789 0123456789 0123456\n", 41, 39, "longer");
    check_bad_within(&(struct weir__resp_limits){ 3, 3 }, "*1\r\n", 4, 3, "longer");
}

TEST(test_S1_limits_are_reached_exactly)
{
    const char *text = "*3\r\n$9\r\n012345678\r\n$9\r\n012345678\r\n$0\r\n\r\n";
    size_t len = strlen(text);
    char print[256];
    const char *what;

    assert_int_equal(command(text, len, &(struct weir__resp_limits){ 3, len }, print, &what), len);
    assert_int_equal(command(text, len, &(struct weir__resp_limits){ 3, len - 1 }, print, &what),
                     -1);
    assert_int_equal(command(text, len, &(struct weir__resp_limits){ 2, len }, print, &what), -1);
    assert_int_equal(
        command("0123456789\n", 11, &(struct weir__resp_limits){ 1, 11 }, print, &what), 11);
    assert_int_equal(
        command("0123456789\n", 11, &(struct weir__resp_limits){ 1, 10 }, print, &what), -1);
}

TEST(test_S1_a_line_has_64_KiB_at_most)
{
    static char line[64 * 1024 + 1];
    static const struct weir__resp_limits wider = { .args = ARGS, .bytes = 1 << 20 };
    struct weir__text args[ARGS];
    size_t n;
    const char *what;

    memset(line, 'a', sizeof(line));
    assert_int_equal(
        weir__resp_command(at_edge(line, 64 * 1024 - 1), 64 * 1024 - 1, &wider, args, &n, &what),
        0);
    assert_int_equal(
        weir__resp_command(at_edge(line, 64 * 1024), 64 * 1024, &wider, args, &n, &what), -1);
    line[64 * 1024 - 1] = '\n';
    assert_int_equal(
        weir__resp_command(at_edge(line, sizeof(line)), sizeof(line), &wider, args, &n, &what),
        64 * 1024);
    assert_int_equal(args[0].len, 64 * 1024 - 1);
}

/* ---------------------------------------------------------------- arguments ---- */

static struct weir__text arg_of(const char *text)
{
    return (struct weir__text){ at_edge(text, strlen(text)), strlen(text) };
}

TEST(test_numbers)
{
    static const struct {
        const char *text;
        int64_t n;
    } good[] = {
        { "0", 0 },
        { "7", 7 },
        { "-0", 0 },
        { "+15", 15 },
        { "-1", -1 },
        { "007", 7 },
        { "999999999999999999", 999999999999999999 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
        { "-9223372036854775807", -INT64_MAX },
        { "00000000000000000000000012", 12 },
    };
    static const char *const bad[] = {
        "",
        "-",
        "+",
        "a",
        "1a",
        "1 ",
        " 1",
        "--1",
        "+-1",
        "1.0",
        "1e3",
        "0x1",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551617",
        "99999999999999999999",
        "1/",
        "1:",
        "123456789012345678901234567890",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        int64_t n = 42;
        if (!weir__resp_int(arg_of(good[i].text), &n) || n != good[i].n)
            fail_msg("%s: got %lld", good[i].text, (long long)n);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int64_t n = 42;
        if (weir__resp_int(arg_of(bad[i]), &n) || n != 42)
            fail_msg("%s: got %lld", bad[i], (long long)n);
    }
}

TEST(test_words_in_any_case)
{
    assert_true(weir__resp_is(arg_of("cl.THROTTLE"), "CL.THROTTLE"));
    assert_true(weir__resp_is(arg_of("Ping"), "ping"));
    assert_true(weir__resp_is(arg_of(""), ""));
    assert_false(weir__resp_is(arg_of("pin"), "ping"));
    assert_false(weir__resp_is(arg_of("pings"), "ping"));
    assert_false(weir__resp_is(arg_of("a\x0e"
                                      "b"),
                               "a.b")); /* 0x20 apart, but no letter */
    assert_false(weir__resp_is(arg_of("@"), "`"));
    assert_false(weir__resp_is(arg_of("["), "{"));
    assert_false(weir__resp_is((struct weir__text){ "a\0b", 3 }, "a"));
}

/* ------------------------------------------------------------------ writing ---- */

static void check_written(const char *from, const char *end, const char *wanted)
{
    assert_int_equal(end - from, strlen(wanted));
    assert_memory_equal(from, wanted, strlen(wanted));
}

TEST(test_S1_replies_as_they_are_written)
{
    char to[128];

    check_written(to, weir__resp_put_integer(to, 0), ":0\r\n");
    check_written(to, weir__resp_put_integer(to, 9), ":9\r\n");
    check_written(to, weir__resp_put_integer(to, 10), ":10\r\n");
    check_written(to, weir__resp_put_integer(to, -1), ":-1\r\n");
    check_written(to, weir__resp_put_integer(to, 1234567890), ":1234567890\r\n");
    check_written(to, weir__resp_put_integer(to, INT64_MAX), ":9223372036854775807\r\n");
    check_written(to, weir__resp_put_integer(to, INT64_MIN), ":-9223372036854775808\r\n");
    assert_true(weir__resp_put_integer(to, INT64_MIN) - to <= WEIR__RESP_NUMBER_MAX);
    check_written(to, weir__resp_put_header(to, '*', 5), "*5\r\n");
    check_written(to, weir__resp_put_header(to, '%', 1000), "%1000\r\n");
    check_written(to, weir__resp_put_bulk(to, "a\r\nb", 4), "$4\r\na\r\nb\r\n");
    check_written(to, weir__resp_put_bulk(to, NULL, 0), "$0\r\n\r\n");
    check_written(to, weir__resp_put_simple(to, "OK", 2), "+OK\r\n");
    check_written(to, weir__resp_put_error(to, "ERR a\r\nb", 8), "-ERR a  b\r\n");
    check_written(to, weir__resp_put_null(to, 2), "$-1\r\n");
    check_written(to, weir__resp_put_null(to, 3), "_\r\n");
}

TEST(test_every_power_of_ten_comes_back)
{
    char to[WEIR__RESP_NUMBER_MAX];

    for (int64_t power = 1; power <= INT64_MAX / 10; power *= 10)
        for (int64_t n = power - 1; n <= power + 1; n++)
            for (int sign = -1; sign <= 1; sign += 2) {
                size_t len = (size_t)(weir__resp_put_integer(to, sign * n) - to);
                int64_t back;
                assert_true(weir__resp_int((struct weir__text){ to + 1, len - 3 }, &back));
                assert_int_equal(back, sign * n);
            }
}
