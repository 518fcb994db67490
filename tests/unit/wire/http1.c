/* http1.c -- S2: heads of HTTP/1, chunks and queries, at every length that can come, and what is
 * refused with which status.
 *
 * Every head is read at every prefix, against the end of readable memory: a proper prefix of a good
 * head is 0, and what is wrong is wrong at the very byte that makes it so.
 */
#include "unit/test.h"

#include "unit/edge.h"

#include "wire/http1.h"

static struct weir__http_request request;
static struct weir__http_response response;

static bool is(struct weir__text text, const char *wanted)
{
    return text.len == strlen(wanted) && memcmp(text.bytes, wanted, text.len) == 0;
}

static ptrdiff_t read_request(const char *bytes, size_t len, int *status, const char **what)
{
    *status = 0;
    *what = NULL;
    memset(&request, 0xa5, sizeof(request));
    ptrdiff_t took = weir__http_request(at_edge(bytes, len), len, &request, status, what);
    assert_int_equal(took < 0, *what != NULL);
    assert_int_equal(took < 0, *status != 0);
    return took;
}

/* `rest` bytes are behind the head. */
static void check_good_with(const char *text, size_t rest)
{
    size_t len = strlen(text), whole = len - rest;
    int status;
    const char *what;

    for (size_t cut = 0; cut <= len; cut++) {
        ptrdiff_t took = read_request(text, cut, &status, &what);
        if (took != (cut < whole ? 0 : (ptrdiff_t)whole))
            fail_msg("%s: %zu bytes of it answer %td %d %s", text, cut, took, status,
                     what ? what : "");
    }
}

static void check_good(const char *text)
{
    check_good_with(text, 0);
}

/* The last byte is wrong, and none before it. */
static void check_bad_bytes(const char *text, size_t len, int wanted, const char *why)
{
    int status;
    const char *what;

    for (size_t cut = 0; cut <= len; cut++) {
        ptrdiff_t took = read_request(text, cut, &status, &what);
        if (took != (cut < len ? 0 : -1) ||
            (took < 0 && (status != wanted || strstr(what, why) == NULL)))
            fail_msg("%s: %zu bytes of it answer %td %d %s", text, cut, took, status,
                     what ? what : "");
    }
}

static void check_bad(const char *text, int wanted, const char *why)
{
    check_bad_bytes(text, strlen(text), wanted, why);
}

static void check_bad_header(const char *header, int wanted, const char *why)
{
    char text[512];

    sprintf(text, "POST / HTTP/1.1\r\nHost: a\r\n%s", header);
    check_bad(text, wanted, why);
}

/* ----------------------------------------------------------------- requests ---- */

TEST(test_S2_a_request)
{
    check_good_with("POST /v1/check?explain=1&x HTTP/1.1\r\nHost: weir:8080\r\nContent-Length: "
                    "12\r\nX-Empty:\r\nx-b:  a \t b \t\r\n\r\n{\"a\":",
                    5);
    assert_true(is(request.method, "POST"));
    assert_true(is(request.target, "/v1/check?explain=1&x"));
    assert_true(is(request.path, "/v1/check"));
    assert_true(is(request.query, "explain=1&x"));
    assert_fields(request, (minor, 1), (content_length, 12), (keep_alive, true), (chunked, false),
                  (expects_continue, false), (n_headers, 4));
    assert_true(is(request.headers[3].name, "x-b"));
    assert_true(is(request.headers[3].value, "a \t b"));
    assert_true(is(weir__http_header(request.headers, request.n_headers, "HOST"), "weir:8080"));
    assert_int_equal(weir__http_header(request.headers, request.n_headers, "x-empty").len, 0);
    assert_non_null(weir__http_header(request.headers, request.n_headers, "x-empty").bytes);
    assert_null(weir__http_header(request.headers, request.n_headers, "x-other").bytes);
}

TEST(test_S2_requests_one_behind_the_other)
{
    const char *text =
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n"; /* with an empty
                                                                                       line too many
                                                                                     */
    size_t len = strlen(text);
    int status;
    const char *what;
    ptrdiff_t took = read_request(text, len, &status, &what);

    assert_int_equal(took, 28);
    assert_int_equal(read_request(text + took, len - (size_t)took, &status, &what), 30);
    assert_true(is(request.path, "/b"));
    check_bad("\r\n\r", 400, "method");
    check_bad("\n", 400, "method");
}

TEST(test_S2_targets)
{
    static const struct {
        const char *method, *target, *path, *query;
    } good[] = {
        { "GET", "/", "/", "" },
        { "GET", "/?", "/", "" },
        { "GET", "/a?b?c=/", "/a", "b?c=/" },
        { "GET", "//a/../b", "//a/../b", "" },
        { "GET", "http://a", "/", "" },
        { "GET", "http://a:80/b/c?d", "/b/c", "d" },
        { "GET", "HTTPS://a?d=e", "/", "d=e" },
        { "OPTIONS", "*", "*", "" },
        { "CONNECT", "a:443", "a:443", "" },
        { "ANY-thing", "/\xc3\xa9", "/\xc3\xa9", "" },
    };
    char text[256];
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        sprintf(text, "%s %s HTTP/1.1\r\nHost: a\r\n\r\n", good[i].method, good[i].target);
        check_good(text);
        assert_true(is(request.method, good[i].method));
        assert_true(is(request.target, good[i].target));
        assert_true(is(request.path, good[i].path));
        assert_true(is(request.query, good[i].query));
    }
    check_bad("GET a HTTP/1.1", 400, "begins with /");
    check_bad("GET * HTTP/1.1", 400, "begins with /");
    check_bad("options * HTTP/1.1", 400, "begins with /");
    check_bad("GET http:// HTTP/1.1", 400, "begins with /");
    check_bad("GET http:///a HTTP/1.1", 400, "begins with /");
    check_bad("GET http://a@b/ HTTP/1.1", 400, "begins with /");
    check_bad("GET ftp://a/ HTTP/1.1", 400, "begins with /");
    check_bad("GET /a#b HTTP/1.1", 400, "fragment");
}

TEST(test_S2_request_lines_that_are_wrong)
{
    check_bad(" ", 400, "method");
    check_bad("GET\r", 400, "method");
    check_bad("GET\t", 400, "method");
    check_bad("G\xc3", 400, "method");
    check_bad("\x16", 400, "TLS");
    check_bad("GET  ", 400, "target");
    check_bad("GET /\r", 400, "target");
    check_bad("GET /a\t", 400, "target");
    check_bad("GET /a\x7f", 400, "target");
    check_bad("GET /a  ", 400, "HTTP/1.1");
    check_bad("GET /a b", 400, "HTTP/1.1");
    check_bad("GET /a h", 400, "HTTP/1.1");
}

TEST(test_S2_versions)
{
    check_good("GET / HTTP/1.0\r\n\r\n");
    assert_fields(request, (minor, 0), (keep_alive, false));
    check_good("GET / HTTP/1.2\r\nHost: a\r\n\r\n");
    assert_int_equal(request.minor, 2);
    check_bad("PRI * HTTP/2", 505, "HTTP/1.1");
    check_bad("GET / HTTP/0", 505, "HTTP/1.1");
    check_bad("GET / HTTP/3", 505, "HTTP/1.1");
    check_bad("GET / HTTP/1 ", 400, "HTTP/1.1");
    check_bad("GET / HTTP/11", 400, "HTTP/1.1");
    check_bad("GET / HTTP/1.x", 400, "HTTP/1.1");
    check_bad("GET / HTTP/1.1 ", 400, "CRLF");
    check_bad("GET / HTTP/1.1\n", 400, "LF alone");
    check_bad("GET / HTTP/1.1\r\r", 400, "LF after CR");
}

TEST(test_S2_headers_that_are_wrong)
{
    check_bad_header("a ", 400, "space");
    check_bad_header("a\t", 400, "space");
    check_bad_header("a: b\r\n ", 400, "begins with a space");
    check_bad_header("a: b\r\n\t", 400, "begins with a space");
    check_bad("GET / HTTP/1.1\r\n ", 400, "begins with a space");
    check_bad_header(":", 400, "name");
    check_bad_header("a\r", 400, "name");
    check_bad_header("a\n", 400, "name");
    check_bad_header("a(", 400, "name");
    check_bad_header("\xc3", 400, "name");
    check_bad_header("a: b\n", 400, "LF alone");
    check_bad_header("a: b\rc", 400, "LF after CR");
    check_bad_header("a: b\r\r", 400, "LF after CR");
    check_bad_header("a: b\x01", 400, "control");
    check_bad_header("a: bcdefghijklmnop\x7f", 400, "control");
    check_bad_header("a: b\r\n\n", 400, "LF alone");
    check_bad_header("a: b\r\n\rx", 400, "LF after CR");
    check_bad_bytes("GET / HTTP/1.1\r\na: b\0", 21, 400, "control");
    check_bad_bytes("GET / HTTP/1.1\r\na\0", 18, 400, "name");
    check_good("GET / HTTP/1.1\r\nHost: a\r\na: \xc3\xa9\tb\xff\r\n\r\n");
}

TEST(test_S2_lengths_that_two_readers_could_read_in_two_ways)
{
    static const char *const lengths[] = { "",
                                           "+1",
                                           "-1",
                                           "1,1",
                                           "1, 1",
                                           "1 1",
                                           "0x10",
                                           "1a",
                                           "a",
                                           "9223372036854775808",
                                           "99999999999999999999",
                                           "1.0" };
    char header[128];

    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        sprintf(header, "Content-Length: %s\r\n", lengths[i]);
        check_bad_header(header, 400, "Content-Length");
    }
    check_bad_header("content-length: 1\v", 400, "control");
    check_bad_header("Content-Length: 1\r\nContent-Length: 1\r\n", 400, "more than one");
    check_bad_header("Content-Length: 1\r\ncontent-LENGTH: 2\r\n", 400, "more than one");
    check_bad_header("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
                     "Transfer-Encoding and");
    check_bad_header("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400,
                     "Transfer-Encoding and");
    check_bad_header("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400,
                     "more than one");
    check_bad("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "HTTP/1.0");
    check_good("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n");
    assert_int_equal(request.content_length, INT64_MAX);
    check_good("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 000\r\n\r\n");
    assert_int_equal(request.content_length, 0);
}

TEST(test_S2_encodings)
{
    static const char *const others[] = {
        "",         "gzip",        "gzip, chunked", "chunked, chunked", "chunked,",
        "xchunked", "chunked;q=1", "identity",      "\"chunked\""
    };
    char header[128];

    for (size_t i = 0; i < COUNT_OF(others); i++) {
        sprintf(header, "Transfer-Encoding: %s\r\n", others[i]);
        check_bad_header(header, 501, "chunked");
    }
    check_good("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked \r\n\r\n");
    assert_fields(request, (chunked, true), (content_length, -1));
}

TEST(test_S2_hosts)
{
    check_bad("GET / HTTP/1.1\r\n\r\n", 400, "no Host");
    check_bad("GET http://a/ HTTP/1.1\r\nhosts: a\r\n\r\n", 400, "no Host");
    check_bad_header("Host: a\r\n", 400, "more than one Host");
    check_bad("GET / HTTP/1.1\r\nHost: a b\r\n", 400, "Host:");
    check_bad("GET / HTTP/1.1\r\nHost: a/b\r\n", 400, "Host:");
    check_bad("GET / HTTP/1.1\r\nHost: a, b\r\n", 400, "Host:");
    check_good("GET / HTTP/1.1\r\nhOST:\r\n\r\n");
    check_good("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
}

TEST(test_S2_connections)
{
    static const struct {
        int minor;
        const char *headers;
        bool keep_alive;
    } good[] = {
        { 1, "", true },
        { 1, "Connection: close\r\n", false },
        { 1, "connection: Keep-Alive\r\n", true },
        { 1, "Connection: upgrade , CLOSE\r\n", false },
        { 1, "Connection: closed, clos\r\n", true },
        { 1, "Connection: keep-alive\r\nConnection: close\r\n", false },
        { 1, "Connection: ,,\r\n", true },
        { 0, "", false },
        { 0, "Connection: keep-alive\r\n", true },
        { 0, "Connection: keep-alive, close\r\n", false },
    };
    char text[256];
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        sprintf(text, "GET / HTTP/1.%d\r\nHost: a\r\n%s\r\n", good[i].minor, good[i].headers);
        check_good(text);
        if (request.keep_alive != good[i].keep_alive)
            fail_msg("%s", text);
    }
}

TEST(test_S2_expectations)
{
    check_good("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n");
    assert_true(request.expects_continue);
    check_good("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    assert_false(request.expects_continue);
    check_bad_header("Expect: miracles\r\n", 417, "100-continue");
}

/* -------------------------------------------------------------------- sizes ---- */

static char large[64 * 1024];

/* Appends a text many times. */
static size_t repeat(size_t at, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++, at += strlen(text))
        memcpy(large + at, text, strlen(text));
    return at;
}

static int status_of(size_t len, ptrdiff_t wanted)
{
    int status;
    const char *what;
    ptrdiff_t took = read_request(large, len, &status, &what);

    assert_int_equal(took, wanted);
    return status;
}

TEST(test_S2_a_method_has_32_bytes_at_most)
{
    check_good("ABCDEFGHABCDEFGHABCDEFGHABCDEFGH / HTTP/1.1\r\nHost: a\r\n\r\n");
    check_bad("ABCDEFGHABCDEFGHABCDEFGHABCDEFGHA", 501, "32");
}

TEST(test_S2_a_target_has_8_KiB_at_most)
{
    size_t len = repeat(repeat(0, "GET /", 1), "a", 8192);

    assert_int_equal(status_of(len - 1, 0), 0);
    assert_int_equal(status_of(len, -1), 414);
    len = repeat(len - 1, " HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    assert_int_equal(status_of(len, (ptrdiff_t)len), 0);
    assert_int_equal(request.path.len, 8192);
}

TEST(test_S2_a_head_has_32_KiB_at_most)
{
    size_t len = repeat(repeat(0, "GET / HTTP/1.1\r\nHost: a\r\nb: ", 1), "c", 32 * 1024);

    assert_int_equal(status_of(32 * 1024 - 1, 0), 0);
    assert_int_equal(status_of(32 * 1024, -1), 431);
    assert_int_equal(status_of(len, -1), 431);
    repeat(32 * 1024 - 4, "\r\n\r\n", 1);
    assert_int_equal(status_of(32 * 1024 - 1, 0), 0);
    assert_int_equal(status_of(32 * 1024, 32 * 1024), 0);
    assert_int_equal(status_of(len, 32 * 1024), 0);
    repeat(32 * 1024 - 4, "c\r\n\r\n", 1);
    assert_int_equal(status_of(len, -1), 431);
}

TEST(test_S2_a_request_has_100_headers_at_most)
{
    size_t len =
        repeat(repeat(0, "GET / HTTP/1.1\r\nHost: a\r\n", 1), "b: c\r\n", WEIR__HTTP_HEADERS - 1);

    assert_int_equal(status_of(len, 0), 0);
    size_t whole = repeat(len, "\r\n", 1);
    assert_int_equal(status_of(whole, (ptrdiff_t)whole), 0);
    assert_int_equal(request.n_headers, WEIR__HTTP_HEADERS);
    len = repeat(len, "b", 1);
    assert_int_equal(status_of(len, -1), 431);
}

/* ---------------------------------------------------------------- responses ---- */

static ptrdiff_t read_response(const char *text, size_t len, const char **what)
{
    *what = NULL;
    memset(&response, 0xa5, sizeof(response));
    ptrdiff_t took = weir__http_response(at_edge(text, len), len, &response, what);
    assert_int_equal(took < 0, *what != NULL);
    return took;
}

/* `answer`: of the whole; its last byte decides. */
static void check_response(const char *text, bool good)
{
    size_t len = strlen(text);
    const char *what;

    for (size_t cut = 0; cut <= len; cut++) {
        ptrdiff_t took = read_response(text, cut, &what);
        if (took != (cut < len ? 0 : good ? (ptrdiff_t)len : -1))
            fail_msg("%s: %zu bytes of it answer %td %s", text, cut, took, what ? what : "");
    }
}

TEST(test_responses)
{
    check_response("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n",
                   true);
    assert_fields(response, (status, 429), (content_length, 0), (keep_alive, true));
    assert_true(is(weir__http_header(response.headers, response.n_headers, "retry-after"), "1"));
    check_response("HTTP/1.0 200 \r\n\r\n", true);
    assert_fields(response, (content_length, -1), (keep_alive, false));
    check_response(
        "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nHost: a\r\nHost: b\r\nExpect: x\r\n\r\n",
        true);
    assert_fields(response, (chunked, true), (minor, 1));
}

TEST(test_responses_that_are_wrong)
{
    static const char *const wrong[] = {
        "\r",
        "HTTP/2",
        "HTTP/1.1  ",
        "HTTP/1.1 0",
        "HTTP/1.1 20 ",
        "HTTP/1.1 2000",
        "HTTP/1.1 200 OK\n",
        "HTTP/1.1 200 a\x01",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        check_response(wrong[i], false);
    size_t len = repeat(repeat(0, "HTTP/1.1 200 ", 1), "a", 2000);
    const char *what;
    assert_int_equal(read_response(large, len, &what), -1);
}

/* ------------------------------------------------------------------- chunks ---- */

/* Reads it in pieces of this size; the data into `data`.  Returns the bytes read, or -1. */
static ptrdiff_t read_chunked(const char *text, size_t len, size_t piece, char *data, bool *ended)
{
    struct weir__http_chunks chunks = { 0 };
    size_t at = 0;

    while (at < len && !chunks.ended) {
        size_t n = len - at < piece ? len - at : piece, data_len = 99999;
        const char *what = NULL;
        char *bytes = at_edge(text + at, n);
        ptrdiff_t took = weir__http_chunked(&chunks, bytes, n, &data_len, &what);
        if (took < 0) {
            assert_non_null(what);
            return took;
        }
        assert_true(chunks.ended || (size_t)took == n);
        assert_true(data_len <= (size_t)took);
        memcpy(data, bytes, data_len);
        data += data_len;
        at += (size_t)took;
    }
    *data = '\0';
    *ended = chunks.ended;
    return (ptrdiff_t)at;
}

static void check_chunked(const char *text, size_t rest, const char *wanted)
{
    char data[256];
    bool ended;
    size_t len = strlen(text);

    for (size_t piece = 1; piece <= len; piece++) {
        assert_int_equal(read_chunked(text, len, piece, data, &ended), len - rest);
        assert_true(ended);
        assert_string_equal(data, wanted);
    }
    for (size_t cut = 0; cut < len - rest; cut++) {
        assert_int_equal(read_chunked(text, cut, 7, data, &ended), cut);
        assert_false(ended);
    }
}

/* The last byte is wrong, and none before it. */
static void check_not_chunked(const char *text)
{
    char data[65536];
    bool ended;
    size_t len = strlen(text);

    for (size_t piece = 1; piece <= len; piece++)
        assert_int_equal(read_chunked(text, len, piece, data, &ended), -1);
    if (read_chunked(text, len - 1, len, data, &ended) != (ptrdiff_t)len - 1 || ended)
        fail_msg("%s: is wrong before its last byte", text);
}

TEST(test_chunks)
{
    check_chunked("0\r\n\r\n", 0, "");
    check_chunked("5\r\nhello\r\n0\r\n\r\nGET ", 4, "hello");
    check_chunked("5\r\nhello\r\nA;x=\"y z\";q\r\n0123456789\r\n1\r\n\n\r\n000\r\nTrailer: "
                  "x\r\nb:\tc\r\n\r\n",
                  0, "hello0123456789\n");
    check_chunked("00000000000000000000001\r\na\r\n0;\r\n\r\n", 0, "a");
}

TEST(test_chunks_that_are_wrong)
{
    static const char *const wrong[] = {
        "\r",
        "x",
        "-",
        "+",
        " ",
        ";",
        "0x",
        "5 ",
        "5\n",
        "5\rx",
        "5;\n",
        "5;\x01",
        "5\r\nhellox",
        "5\r\nhello\n",
        "5\r\nhello\rx",
        "10000000000000000",
        "8000000000000000",
        "0\r\n\n",
        "0\r\n\rx",
        "0\r\n ",
        "0\r\na\n",
        "0\r\na\rx",
        "0\r\na: \x01",
        "0\r\n:",
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        check_not_chunked(wrong[i]);
}

TEST(test_chunk_lines_and_trailers_are_bounded)
{
    char data[16];
    bool ended;
    size_t len = repeat(repeat(0, "1;", 1), "a", 253);

    repeat(len, "\r\n", 1);
    assert_int_equal(read_chunked(large, len + 2, 1000, data, &ended), len + 2);
    repeat(len, "aa", 1);
    assert_int_equal(read_chunked(large, len + 2, 1000, data, &ended), -1);
    len = repeat(0, "0", 256);
    assert_int_equal(read_chunked(large, len, 1000, data, &ended), len);
    assert_int_equal(read_chunked(large, repeat(len, "0", 1), 1000, data, &ended), -1);
    len = repeat(repeat(0, "0\r\n", 1), "a: b\r\n", 700);
    assert_int_equal(read_chunked(large, len, 1000, data, &ended), len);
    assert_int_equal(read_chunked(large, repeat(len, "a: b\r\n", 700), 1000, data, &ended), -1);
}

/* -------------------------------------------------------------------- query ---- */

static void check_query(const char *text, const char *wanted, bool wanted_bad)
{
    char scratch[256], print[256] = "", *to = scratch, *end = print;
    struct weir__text query = { at_edge(text, strlen(text)), strlen(text) }, name, value;
    bool bad = true;

    while (weir__http_query_next(&query, &to, &name, &value, &bad))
        end += sprintf(end, "%.*s=%.*s;", (int)name.len, name.bytes, (int)value.len, value.bytes);
    assert_string_equal(print, wanted);
    assert_int_equal(bad, wanted_bad);
    assert_true(to <= scratch + strlen(text));
}

TEST(test_queries)
{
    struct weir__text none = { NULL, 0 };
    char *scratch = NULL;
    bool bad = true;

    check_query("", "", false);
    check_query("&&", "", false);
    check_query("a=b&c=d", "a=b;c=d;", false);
    check_query("&a&&b=&=c&", "a=;b=;=c;", false);
    check_query("a=b=c&d+e=%41%2f%C3%a9+", "a=b=c;d e=A/\xc3\xa9 ;", false);
    check_query("%26=%3D", "&==;", false);
    check_query("a=b&c=%4", "a=b;", true);
    check_query("a=b&c=%&d=e", "a=b;", true);
    check_query("a=%&41", "", true);
    check_query("%zz", "", true);
    assert_false(weir__http_query_next(&none, &scratch, &none, &none, &bad));
    assert_false(bad);
}

TEST(test_status_texts)
{
    assert_string_equal(weir__http_status_text(200), "OK");
    assert_string_equal(weir__http_status_text(429), "Too Many Requests");
    assert_string_equal(weir__http_status_text(505), "HTTP Version Not Supported");
    for (int status = -1; status < 1000; status++)
        assert_non_null(weir__http_status_text(status));
    assert_string_equal(weir__http_status_text(299), "Unknown");
}
