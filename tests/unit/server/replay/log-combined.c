/* log-combined.c -- combined lines: what they give, what clients put into them, and where one is
 * wrong. */
#include "unit/test.h"

#include "unit/log-lines.h"

static void assert_combined(const char *line, const char *attributes)
{
    assert_line(line, strlen(line), NULL, attributes);
}

TEST(test_combined_lines)
{
    assert_combined(
        "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326 "
        "\"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"",
        "ip=127.0.0.1|user=frank|method=GET|uri=/apache_pb.gif|protocol=HTTP/"
        "1.0|status=200|bytes=2326|"
        "header.referer=http://www.example.com/start.html|header.user-agent=Mozilla/4.08 [en] "
        "(Win98; I ;Nav)");
    assert_true(entry.at == OCT * S);
    assert_fields(entry, (status, 200), (bytes, 2326));
    assert_combined(GOOD, "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined(
        "2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] \"POST /a?b=c&d HTTP/2.0\" 304 0 \"-\" \"-\"",
        "ip=2001:db8::1|method=POST|uri=/a?b=c&d|protocol=HTTP/2.0|status=304|bytes=0");
    assert_combined(
        HEAD "\"GET / HTTP/1.1\" 200 - \"\" \"curl\" \"10.0.0.1\" rt=0.005",
        "ip=192.0.2.7|method=GET|uri=/|protocol=HTTP/1.1|status=200|header.user-agent=curl");
    assert_int_equal(entry.bytes, -1);
}

TEST(test_what_is_behind_is_ignored)
{
    assert_combined(GOOD " 0.003 upstream",
                    "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined(GOOD " \"ref",
                    "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined(GOOD " \"ref\"", "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/"
                                     "1.0|status=200|bytes=2326|header.referer=ref");
    assert_combined(GOOD " \"ref\" \"cut", "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/"
                                           "1.0|status=200|bytes=2326|header.referer=ref");
    assert_combined(GOOD " ",
                    "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
}

TEST(test_escapes)
{
    assert_combined(HEAD "\"GET /a\\x22b\\\"c\\\\d\\tHTTP/1 HTTP/1.1\" 200 1 \"\\x5C\" \"a "
                         "\\\"quoted\\\" \\q \\x4 \\xZZ \\\\\"",
                    "ip=192.0.2.7|method=GET|uri=/a\"b\"c\\d.HTTP/1|protocol=HTTP/"
                    "1.1|status=200|bytes=1|header.referer=\\|"
                    "header.user-agent=a \"quoted\" \\q \\x4 \\xZZ \\");
    assert_combined(
        "192.0.2.7 - j\\xC3\\xBCrgen [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 1",
        "ip=192.0.2.7|user=j\xc3\xbcrgen|method=GET|uri=/|protocol=HTTP/1.1|status=200|bytes=1");
}

TEST(test_requests_that_are_none)
{
    static const char *const requests[] = { "-",
                                            "",
                                            " ",
                                            "\\x16\\x03\\x01\\x02\\x00",
                                            "\\x16\\x03 / HTTP/1.1",
                                            "GET",
                                            "GET ",
                                            "GET  HTTP/1.1",
                                            "quit now",
                                            "POST /x",
                                            "GET x",
                                            "t3 12.1.2\\x0A",
                                            "(GET) / HTTP/1.1",
                                            "/ HTTP/1.1" };
    char line[256];

    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        snprintf(line, sizeof(line), HEAD "\"%s\" 400 157 \"-\" \"-\"", requests[i]);
        assert_combined(line, "ip=192.0.2.7|status=400|bytes=157");
    }
}

TEST(test_requests_that_are_odd)
{
    static const char *const odd[][4] = {
        { "GET /x", "GET", "/x", "" },
        { "GET /a b c HTTP/1.1", "GET", "/a b c", "HTTP/1.1" },
        { "OPTIONS * HTTP/1.0", "OPTIONS", "*", "HTTP/1.0" },
        { "CONNECT example.org:443 HTTP/1.1", "CONNECT", "example.org:443", "HTTP/1.1" },
        { "M-SEARCH * HTTP/1.1", "M-SEARCH", "*", "HTTP/1.1" },
        { "GET http://example.org/ HTTP/3", "GET", "http://example.org/", "HTTP/3" },
        { "GET  /x HTTP/1.1", "GET", " /x", "HTTP/1.1" },
    };
    struct weir__log_request r;

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        assert_true(weir__log_request(odd[i][0], strlen(odd[i][0]), &r));
        assert_int_equal(r.method_len, strlen(odd[i][1]));
        assert_memory_equal(r.method, odd[i][1], r.method_len);
        assert_int_equal(r.uri_len, strlen(odd[i][2]));
        assert_memory_equal(r.uri, odd[i][2], r.uri_len);
        assert_int_equal(r.protocol_len, strlen(odd[i][3]));
        assert_memory_equal(r.protocol, odd[i][3], r.protocol_len);
    }
}

TEST(test_virtual_host_in_front)
{
    assert_combined(
        "example.org:443 " GOOD,
        "ip=192.0.2.7|host=example.org|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined(
        "example.org:443 2001:db8::1 - me [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1",
        "ip=2001:db8::1|user=me|host=example.org|method=GET|uri=/|protocol=HTTP/"
        "1.0|status=200|bytes=1");
    assert_combined(
        "2001:db8::80 - a b [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1",
        "ip=2001:db8::80|user=a b|method=GET|uri=/|protocol=HTTP/1.0|status=200|bytes=1");
}

/* The name is what a client says: it must not pass for the rest of the line. */
TEST(test_user_cannot_fake_a_line)
{
    assert_combined("192.0.2.7 - x [01/Jan/2001:00:00:00 +0000] \\x22GET /fake HTTP/1.1\\x22 200 "
                    "[10/Oct/2000:13:55:36 -0700] \"GET /true "
                    "HTTP/1.0\" 401 1",
                    "ip=192.0.2.7|user=x [01/Jan/2001:00:00:00 +0000] \"GET /fake HTTP/1.1\" "
                    "200|method=GET|uri=/true|protocol=HTTP/1.0|status=401|bytes=1");
    assert_true(entry.at == OCT * S);
    assert_combined(
        "192.0.2.7 - x] \\\"y [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 401 1",
        "ip=192.0.2.7|user=x] \"y|method=GET|uri=/|protocol=HTTP/1.0|status=401|bytes=1");
}

TEST(test_nul_and_other_bytes)
{
    static const char line[] =
        "192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] \"GET /a\0b\xff HTTP/1.0\" 200 1 \"-\" \"\0\"";

    assert_line(line, sizeof(line) - 1, NULL,
                "ip=192.0.2.7|method=GET|uri=/a.b\xff|protocol=HTTP/"
                "1.0|status=200|bytes=1|header.user-agent=.");
}

static const struct {
    const char *line;
    size_t at;
    const char *expected; /* begins with */
} bad_lines[] = {
    { "", 0, "ADDRESS - USER [TIME] \"REQUEST\"" },
    { "hello", 0, "ADDRESS - USER [TIME] \"REQUEST\"" },
    { "[10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 0,
      "ADDRESS - USER [TIME] \"REQUEST\"" },
    { " [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 0, "ADDRESS - USER [TIME]" },
    { "x [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 1, "ADDRESS - USER [TIME]" },
    { "x - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 3, "ADDRESS - USER [TIME]" },
    { "x  - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 2, "ADDRESS - USER [TIME]" },
    { "192.0.2.7 - - [10/Oct/2000:13:55:36] \"GET / HTTP/1.0\" 200 1", 9, "a time" },
    { "192.0.2.7 - - [10/Oct/2000:25:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 15, "a time" },
    { "192.0.2.7 - - [10/Oct/9999:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 15, "a time" },
    { "192.0.2.7 - - [10/Oct/0000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 15, "a time" },
    { "192.0.2.7 - - [10/Oct/2000:13:55:36 +9999] \"GET / HTTP/1.0\" 200 1", 15, "a time" },
    { HEAD "\"GET / HTTP/1.0 200 1", 43, "a closing quote" },
    { HEAD "\"GET / HTTP/1.0\"", 59, "a status" },
    { HEAD "\"GET / HTTP/1.0\"200 1", 59, "a status" },
    { HEAD "\"GET / HTTP/1.0\" 20 1", 59, "a status" },
    { HEAD "\"GET / HTTP/1.0\" 2000 1", 59, "a status" },
    { HEAD "\"GET / HTTP/1.0\" 2x0 1", 59, "a status" },
    { HEAD "\"GET / HTTP/1.0\"  1", 59, "a status" },
    { HEAD "\"GET / HTTP/1.0\" 200", 63, "a number of bytes" },
    { HEAD "\"GET / HTTP/1.0\" 200 ", 63, "a number of bytes" },
    { HEAD "\"GET / HTTP/1.0\" 200 -5", 63, "a number of bytes" },
    { HEAD "\"GET / HTTP/1.0\" 200 9223372036854775808", 63, "a number of bytes" },
};

TEST(test_bad_lines)
{
    for (size_t i = 0; i < COUNT_OF(bad_lines); i++) {
        struct weir__log_fault fault = { 999, "" };
        assert_false(read_line(bad_lines[i].line, strlen(bad_lines[i].line), NULL, &fault));
        if (fault.at != bad_lines[i].at ||
            strncmp(fault.expected, bad_lines[i].expected, strlen(bad_lines[i].expected)) != 0)
            fail_msg("%s: at %zu expected %s", bad_lines[i].line, fault.at, fault.expected);
    }
}

/* No beginning of a line reads beyond its end. */
TEST(test_every_beginning)
{
    const char *line = "example.org:443 192.0.2.7 - a\\x62 [10/Oct/2000:13:55:36 -0700] \"GET "
                       "/\\\"x\\\\ HTTP/1.0\" 200 2326 \"r\\xe4\" \"a\\\\\"";
    struct weir__log_fault fault;

    for (size_t n = 0; n <= strlen(line); n++)
        (void)read_line(line, n, NULL, &fault);
}
