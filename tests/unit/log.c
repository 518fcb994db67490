/* log.c -- access logs: times to the nanosecond, both formats line by line, files of all packings, and what clients and disks do to them.
 *
 * Lines lie in memory of exactly their size: reading beyond the end is seen by the sanitizers.
 */
#include "fixture.h"

#include <sys/wait.h>
#include <zlib.h>

#include "../../server/log.h"

#define OCT  INT64_C(971211336) /* 10/Oct/2000:13:55:36 -0700 */
#define HEAD "192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "
#define GOOD HEAD "\"GET /x HTTP/1.0\" 200 2326"

/* -------------------------------------------------------------------- times ---- */

static const struct {
    const char *text;
    weir_time at; /* -1: refused */
} times[] = {
    /* as nginx and Apache write them */
    { "10/Oct/2000:13:55:36 -0700", OCT *S },
    { "10/Oct/2000:20:55:36 +0000", OCT *S },
    { "11/Oct/2000:02:25:36 +0530", OCT *S },
    { "01/Jan/1970:00:00:00 +0000", 0 },
    { "31/Dec/1969:23:00:00 -0100", 0 },
    { "01/Jan/1970:00:59:59 +0100", -1 },
    { "29/Feb/2000:00:00:00 +0000", INT64_C(951782400) * S },
    { "29/Feb/2001:00:00:00 +0000", -1 },
    { "29/Feb/2100:00:00:00 +0000", -1 },
    { "31/Apr/2000:00:00:00 +0000", -1 },
    { "00/Apr/2000:00:00:00 +0000", -1 },
    { "31/Dec/2016:23:59:60 +0000", INT64_C(1483228800) * S },
    { "31/Dec/2261:23:59:59 +0000", INT64_C(9214646399) * S },
    { "01/Jan/2262:00:00:00 +0000", -1 },
    { "01/Jan/2262:00:00:00 +0001", INT64_C(9214646340) * S },
    { "01/Jan/0000:00:00:00 +0000", -1 },
    { "31/Dec/9999:23:59:59 +0000", -1 },
    { "10/Oct/2000:24:00:00 +0000", -1 },
    { "10/Oct/2000:23:60:00 +0000", -1 },
    { "10/Oct/2000:23:59:61 +0000", -1 },
    { "10/oct/2000:13:55:36 -0700", -1 },
    { "10/Okt/2000:13:55:36 -0700", -1 },
    { "10/Oct/2000:13:55:36 -9999", -1 },
    { "10/Oct/2000:13:55:36 -2400", -1 },
    { "10/Oct/2000:13:55:36 -0060", -1 },
    { "10/Oct/2000:13:55:36 00700", -1 },
    { "10/Oct/2000 13:55:36 -0700", -1 },
    { "1x/Oct/2000:13:55:36 -0700", -1 },

    /* ISO 8601 */
    { "2000-10-10T13:55:36-07:00", OCT *S },
    { "2000-10-10T20:55:36Z", OCT *S },
    { "2000-10-10t20:55:36z", OCT *S },
    { "2000-10-10 20:55:36", OCT *S },
    { "2000-10-10 20:55:36 +0000", OCT *S },
    { "2000-10-10T20:55:36+00", OCT *S },
    { "2000-10-11T02:25:36.5+0530", OCT *S + S / 2 },
    { "2000-10-10T20:55:36.123Z", OCT *S + 123000000 },
    { "2000-10-10T20:55:36,123456789Z", OCT *S + 123456789 },
    { "2000-10-10T20:55:36.123456789999999999Z", OCT *S + 123456789 },
    { "2261-12-31T23:59:59.999999999Z", INT64_C(9214646399999999999) },
    { "1970-01-01T00:00:00Z", 0 },
    { "1969-12-31T23:59:59.999Z", -1 },
    { "0000-00-00T00:00:00Z", -1 },
    { "9999-12-31T23:59:59Z", -1 },
    { "2000-10-10T20:55:36.Z", -1 },
    { "2000-10-10T20:55Z", -1 },
    { "2000-10-10T20:55:36+99:99", -1 },
    { "2000-10-10T20:55:36+07:0", -1 },
    { "2000-10-10T20:55:36 UTC", -1 },
    { "2000-13-10T20:55:36Z", -1 },
    { "2000-10-10", -1 },
    { "2000-10-10X20:55:36Z", -1 },

    /* numbers: seconds, milli-, micro-, nanoseconds */
    { "971211336", OCT *S },
    { "971211336.000", OCT *S },
    { "971211336.123", OCT *S + 123000000 },
    { "971211336.1234567899", OCT *S + 123456789 },
    { "9.71211336123e8", OCT *S + 123000000 },
    { "9.71211336123E+08", OCT *S + 123000000 },
    { "97121133612300000e-8", OCT *S + 123000000 },
    { "971211336123", OCT *S + 123000000 },
    { "971211336123.4", OCT *S + 123400000 },
    { "971211336123456", OCT *S + 123456000 },
    { "971211336123456789", OCT *S + 123456789 },
    { "0", 0 },
    { "0.0", 0 },
    { "0.000000001", 1 },
    { "0.0000000001", 0 },
    { "1e-400", 0 },
    { "00012", 12 * S },
    { "9214646399", INT64_C(9214646399) * S },
    { "9214646400", -1 },
    { "9223372036854775807", -1 },
    { "99999999999", -1 },
    { "99999999999999999999", -1 },
    { "1e400", -1 },
    { "1e99999", -1 },
    { "-1", -1 },
    { "-0.5", -1 },
    { "", -1 },
    { ".", -1 },
    { "1.2.3", -1 },
    { "1e", -1 },
    { "1e+", -1 },
    { "1e1x", -1 },
    { "12x", -1 },
    { "NaN", -1 },
    { "yesterday", -1 },
};

static void test_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        size_t len = strlen(times[i].text);
        char *exact = malloc(len + 1);
        weir_time at = -42;
        memcpy(exact + 1, times[i].text, len);
        bool good = weir__log_time(exact + 1, len, &at);
        if (good != (times[i].at >= 0) || at != (good ? times[i].at : -42))
            fail_msg("%s: %s, %lld", times[i].text, good ? "read" : "refused", (long long)at);
        free(exact);
    }
}

/* Day after day from 1970 on, counted by hand. */
static void test_every_day(void **state)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int64_t days = 0;
    char text[40];

    (void)state;
    for (int year = 1970; year < 2262; year++)
        for (int month = 0; month < 12; month++) {
            bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for (int day = 1; day <= lengths[month] + (month == 1 && leap); day++, days++) {
                weir_time at;
                snprintf(text, sizeof text, "%02d/%.3s/%04d:00:00:01 +0000", day, names + 3 * month, year);
                assert_true(weir__log_time(text, 26, &at));
                assert_true(at == (days * 86400 + 1) * S);
            }
        }
}

/* Digits by the thousand are read in bounded room. */
static void test_huge_numbers(void **state)
{
    char text[5000];
    weir_time at;

    (void)state;
    memset(text, '9', sizeof text);
    assert_false(weir__log_time(text, sizeof text, &at));
    memset(text, '0', sizeof text);
    assert_true(weir__log_time(text, sizeof text, &at));
    assert_int_equal(at, 0);
    memcpy(text, "971211336.", 10);
    assert_true(weir__log_time(text, sizeof text, &at));
    assert_true(at == OCT * S);
}

/* -------------------------------------------------------------------- lines ---- */

static struct weir__log_entry entry;

/* "name=value|name=value"; control characters as dots. */
static const char *shown(const struct weir__log_entry *e)
{
    static char text[8192];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < e->n; i++) {
        const struct weir_attr *a = &e->attrs[i];
        size_t name_len = a->name_len ? a->name_len : strlen(a->name), value_len = a->value_len ? a->value_len : strlen(a->value);
        assert_true(n + name_len + value_len + 3 < sizeof text);
        n += (size_t)sprintf(text + n, "%s%.*s=", i ? "|" : "", (int)name_len, a->name);
        for (size_t k = 0; k < value_len; k++)
            text[n++] = (unsigned char)a->value[k] < 0x20 ? '.' : a->value[k];
        text[n] = '\0';
    }
    return text;
}

/* In memory of its size; what the entry points to is there until the next call. */
static bool read_line(const char *line, size_t len, const struct weir__log_map *map, struct weir__log_fault *fault)
{
    static char *memory, *scratch;

    free(memory);
    free(scratch);
    memory = malloc(len + 1);
    scratch = malloc(WEIR__LOG_SCRATCH(len));
    memcpy(memory + 1, line, len);
    return map ? weir__log_json(memory + 1, len, scratch, map, &entry, fault) : weir__log_combined(memory + 1, len, scratch, &entry, fault);
}

static void assert_line(const char *line, size_t len, const struct weir__log_map *map, const char *attributes)
{
    struct weir__log_fault fault = { 0 };

    if (!read_line(line, len, map, &fault))
        fail_msg("%s: at %zu expected %s", line, fault.at, fault.expected);
    assert_string_equal(shown(&entry), attributes);
}

static void assert_combined(const char *line, const char *attributes)
{
    assert_line(line, strlen(line), NULL, attributes);
}

static void test_combined_lines(void **state)
{
    (void)state;
    assert_combined("127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326 "
                    "\"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"",
                    "ip=127.0.0.1|user=frank|method=GET|uri=/apache_pb.gif|protocol=HTTP/1.0|status=200|bytes=2326|"
                    "header.referer=http://www.example.com/start.html|header.user-agent=Mozilla/4.08 [en] (Win98; I ;Nav)");
    assert_true(entry.at == OCT * S);
    assert_int_equal(entry.status, 200);
    assert_int_equal(entry.bytes, 2326);
    assert_combined(GOOD, "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined("2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] \"POST /a?b=c&d HTTP/2.0\" 304 0 \"-\" \"-\"",
                    "ip=2001:db8::1|method=POST|uri=/a?b=c&d|protocol=HTTP/2.0|status=304|bytes=0");
    assert_combined(HEAD "\"GET / HTTP/1.1\" 200 - \"\" \"curl\" \"10.0.0.1\" rt=0.005",
                    "ip=192.0.2.7|method=GET|uri=/|protocol=HTTP/1.1|status=200|header.user-agent=curl");
    assert_int_equal(entry.bytes, -1);
}

static void test_what_is_behind_is_ignored(void **state)
{
    (void)state;
    assert_combined(GOOD " 0.003 upstream", "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined(GOOD " \"ref", "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined(GOOD " \"ref\"", "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326|header.referer=ref");
    assert_combined(GOOD " \"ref\" \"cut", "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326|header.referer=ref");
    assert_combined(GOOD " ", "ip=192.0.2.7|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
}

static void test_escapes(void **state)
{
    (void)state;
    assert_combined(HEAD "\"GET /a\\x22b\\\"c\\\\d\\tHTTP/1 HTTP/1.1\" 200 1 \"\\x5C\" \"a \\\"quoted\\\" \\q \\x4 \\xZZ \\\\\"",
                    "ip=192.0.2.7|method=GET|uri=/a\"b\"c\\d.HTTP/1|protocol=HTTP/1.1|status=200|bytes=1|header.referer=\\|"
                    "header.user-agent=a \"quoted\" \\q \\x4 \\xZZ \\");
    assert_combined("192.0.2.7 - j\\xC3\\xBCrgen [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 1",
                    "ip=192.0.2.7|user=j\xc3\xbcrgen|method=GET|uri=/|protocol=HTTP/1.1|status=200|bytes=1");
}

static void test_requests_that_are_none(void **state)
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

    (void)state;
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        snprintf(line, sizeof line, HEAD "\"%s\" 400 157 \"-\" \"-\"", requests[i]);
        assert_combined(line, "ip=192.0.2.7|status=400|bytes=157");
    }
}

static void test_requests_that_are_odd(void **state)
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

    (void)state;
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

static void test_virtual_host_in_front(void **state)
{
    (void)state;
    assert_combined("example.org:443 " GOOD, "ip=192.0.2.7|host=example.org|method=GET|uri=/x|protocol=HTTP/1.0|status=200|bytes=2326");
    assert_combined("example.org:443 2001:db8::1 - me [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1",
                    "ip=2001:db8::1|user=me|host=example.org|method=GET|uri=/|protocol=HTTP/1.0|status=200|bytes=1");
    assert_combined("2001:db8::80 - a b [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1",
                    "ip=2001:db8::80|user=a b|method=GET|uri=/|protocol=HTTP/1.0|status=200|bytes=1");
}

/* The name is what a client says: it must not pass for the rest of the line. */
static void test_user_cannot_fake_a_line(void **state)
{
    (void)state;
    assert_combined("192.0.2.7 - x [01/Jan/2001:00:00:00 +0000] \\x22GET /fake HTTP/1.1\\x22 200 [10/Oct/2000:13:55:36 -0700] \"GET /true "
                    "HTTP/1.0\" 401 1",
                    "ip=192.0.2.7|user=x [01/Jan/2001:00:00:00 +0000] \"GET /fake HTTP/1.1\" "
                    "200|method=GET|uri=/true|protocol=HTTP/1.0|status=401|bytes=1");
    assert_true(entry.at == OCT * S);
    assert_combined("192.0.2.7 - x] \\\"y [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 401 1",
                    "ip=192.0.2.7|user=x] \"y|method=GET|uri=/|protocol=HTTP/1.0|status=401|bytes=1");
}

static void test_nul_and_other_bytes(void **state)
{
    static const char line[] = "192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] \"GET /a\0b\xff HTTP/1.0\" 200 1 \"-\" \"\0\"";

    (void)state;
    assert_line(line, sizeof line - 1, NULL,
                "ip=192.0.2.7|method=GET|uri=/a.b\xff|protocol=HTTP/1.0|status=200|bytes=1|header.user-agent=.");
}

static const struct {
    const char *line;
    size_t at;
    const char *expected; /* begins with */
} bad_lines[] = {
    { "", 0, "ADDRESS - USER [TIME] \"REQUEST\"" },
    { "hello", 0, "ADDRESS - USER [TIME] \"REQUEST\"" },
    { "[10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1", 0, "ADDRESS - USER [TIME] \"REQUEST\"" },
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

static void test_bad_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_lines); i++) {
        struct weir__log_fault fault = { 999, "" };
        assert_false(read_line(bad_lines[i].line, strlen(bad_lines[i].line), NULL, &fault));
        if (fault.at != bad_lines[i].at || strncmp(fault.expected, bad_lines[i].expected, strlen(bad_lines[i].expected)) != 0)
            fail_msg("%s: at %zu expected %s", bad_lines[i].line, fault.at, fault.expected);
    }
}

/* No beginning of a line reads beyond its end. */
static void test_every_beginning(void **state)
{
    const char *line =
        "example.org:443 192.0.2.7 - a\\x62 [10/Oct/2000:13:55:36 -0700] \"GET /\\\"x\\\\ HTTP/1.0\" 200 2326 \"r\\xe4\" \"a\\\\\"";
    struct weir__log_fault fault;

    (void)state;
    for (size_t n = 0; n <= strlen(line); n++)
        (void)read_line(line, n, NULL, &fault);
}

/* --------------------------------------------------------------------- json ---- */

static struct weir__log_map *map_of(const char *text)
{
    struct weir__log_map *map = NULL;
    struct weir_error error = { 0 };

    if (weir__log_map_create(&map, text, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    return map;
}

static void assert_json(const char *mapping, const char *line, const char *attributes)
{
    struct weir__log_map *map = map_of(mapping);

    assert_line(line, strlen(line), map, attributes);
    weir__log_map_destroy(map);
}

static void test_json_usual_names(void **state)
{
    (void)state;
    assert_json(NULL,
                "{\"time_iso8601\":\"2000-10-10T13:55:36-07:00\",\"remote_addr\":\"192.0.2.7\",\"remote_user\":\"-\",\"request\":\"GET "
                "/x?y HTTP/1.1\","
                "\"status\":\"404\",\"body_bytes_sent\":17,\"http_referer\":\"\",\"http_user_agent\":\"curl\",\"host\":\"example.org\"}",
                "method=GET|uri=/x?y|protocol=HTTP/1.1|status=404|bytes=17|ip=192.0.2.7|host=example.org|header.user-agent=curl");
    assert_true(entry.at == OCT * S);
    assert_int_equal(entry.status, 404);
    assert_int_equal(entry.bytes, 17);
    assert_json(NULL,
                "{\"level\":\"info\",\"ts\":971211336.5,\"request\":{\"remote_ip\":\"192.0.2.9\",\"client_ip\":\"192.0.2.7\",\"proto\":"
                "\"HTTP/2.0\","
                "\"method\":\"PUT\",\"host\":\"h\",\"uri\":\"/u\",\"headers\":{\"User-Agent\":[\"curl\"]}},\"size\":3,\"status\":200}",
                "method=PUT|uri=/u|protocol=HTTP/2.0|status=200|bytes=3|ip=192.0.2.7|host=h|header.user-agent=curl|level=info");
    assert_true(entry.at == OCT * S + S / 2);
}

/* The best of several names wins, wherever it stands; of one name twice, the last. */
static void test_json_best_name_wins(void **state)
{
    (void)state;
    assert_json(NULL, "{\"ts\":1,\"ip\":\"b\",\"remote_addr\":\"a\",\"client_ip\":\"c\",\"path\":\"/p\",\"request_uri\":\"/r\"}",
                "uri=/r|ip=a");
    assert_json(NULL, "{\"ts\":1,\"ip\":\"a\",\"ip\":\"b\",\"x\":1,\"x\":2}", "ip=b|x=2");
    assert_json(NULL, "{\"ts\":1,\"request\":\"GET /a HTTP/1.1\",\"uri\":\"/b\"}", "method=GET|uri=/b|protocol=HTTP/1.1");
    assert_json(NULL, "{\"ts\":1,\"remote_addr\":\"-\",\"ip\":\"b\",\"user\":null}", "ip=b");
}

static void test_json_map(void **state)
{
    const char *line = "{\"ts\":5,\"when\":7,\"user\":{\"id\":42,\"name\":\"frank\"},\"ip\":\"192.0.2.7\",\"peer\":[\"192.0.2.8\"]}";

    (void)state;
    assert_json("account=user.id", line, "ip=192.0.2.7|user=frank|account=42|when=7|peer.0=192.0.2.8");
    assert_true(entry.at == 5 * S);
    assert_json(" account = user.id , time = when,ip=peer.0,again=user.id", line, "ip=192.0.2.8|user=frank|account=42|again=42|ts=5");
    assert_true(entry.at == 7 * S);
    assert_json("ip=nowhere", line, "user=frank|when=7|user.id=42|peer.0=192.0.2.8"); /* ip means nowhere then, and nothing else */
}

static void test_json_values(void **state)
{
    (void)state;
    assert_json(NULL,
                " {\"ts\":1,\"a\":true,\"b\":false,\"c\":null,\"d\":-1.5e3,\"e\":\"\",\"f\":\"\\u00e4\\n\",\"g\":[],\"h\":{\"i\":[1,\"-\"]}"
                ",\"\":0}\t",
                "a=true|b=false|d=-1.5e3|e=|f=\xc3\xa4.|h.i.0=1|h.i.1=-|=0");
    assert_json(NULL, "{\"ts\":1,\"status\":1000,\"bytes\":1.5}", "status=1000|bytes=1.5");
    assert_int_equal(entry.status, 0);
    assert_int_equal(entry.bytes, -1);
}

/* The slots' attributes have room however many other fields there are. */
static void test_json_more_fields_than_room(void **state)
{
    struct weir__log_map *map = map_of(NULL);
    struct weir__log_fault fault;
    char line[4096] = "{";
    size_t n = 1;

    (void)state;
    for (int i = 0; i < 100; i++)
        n += (size_t)sprintf(line + n, "\"x%d\":%d,", i, i);
    n += (size_t)sprintf(line + n, "\"ts\":1,\"ip\":\"a\",\"uri\":\"/\"}");
    assert_true(read_line(line, n, map, &fault));
    assert_int_equal(entry.n, WEIR__LOG_ATTRS);
    assert_int_equal(strncmp(shown(&entry), "uri=/|ip=a|x0=0|x1=1|", 21), 0);
    assert_string_equal(strrchr(shown(&entry), '|'), "|x29=29");
    weir__log_map_destroy(map);
}

/* Paths together longer than the line. */
static void test_json_long_paths(void **state)
{
    struct weir__log_map *map = map_of(NULL);
    struct weir__log_fault fault;
    char line[4096], name[250];
    size_t n;

    (void)state;
    memset(name, 'n', sizeof name);
    n = (size_t)sprintf(line, "{\"ts\":1,\"%.250s\":{", name);
    for (int i = 0; i < 64; i++)
        n += (size_t)sprintf(line + n, "\"%d\":%d,", i, i);
    n += (size_t)sprintf(line + n, "\"\":0}}");
    assert_true(read_line(line, n, map, &fault));
    assert_int_equal(entry.n, WEIR__LOG_ATTRS);
    assert_int_equal(entry.attrs[31].name_len, 253);
    weir__log_map_destroy(map);
}

static void test_json_bad_lines(void **state)
{
    static const struct {
        const char *line;
        size_t at;
        const char *expected;
    } bad[] = {
        { "", 0, "an object" },
        { "[1]", 0, "an object" },
        { "  12", 2, "an object" },
        { "{\"ts\":1", 7, "',' or '}'" },
        { "{\"ts\":1}}", 8, "the end of the text" },
        { "{\"ts\":1,\"ip\":\"\xff\"}", 14, "UTF-8" },
        { "{}", 0, "a time: a field" },
        { "{\"ts\":null}", 0, "a time: a field" },
        { "{\"ts\":\"-\"}", 0, "a time: a field" },
        { "{\"ts\":-5}", 6, "a time: ISO" },
        { "{\"a\":1,\"ts\":\"soon\"}", 13, "a time: ISO" },
        { "{\"ts\":true}", 6, "a time: ISO" },
        { "{\"ts\":\"\\u0031x\"}", 0, "a time: ISO" },
        { "{\"ts\":99999999999999999999999}", 6, "a time: ISO" },
    };
    struct weir__log_map *map = map_of(NULL);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct weir__log_fault fault = { 999, "" };
        assert_false(read_line(bad[i].line, strlen(bad[i].line), map, &fault));
        if (fault.at != bad[i].at || strncmp(fault.expected, bad[i].expected, strlen(bad[i].expected)) != 0)
            fail_msg("%s: at %zu expected %s", bad[i].line, fault.at, fault.expected);
    }
    weir__log_map_destroy(map);
}

static void test_bad_maps(void **state)
{
    static const struct {
        const char *text;
        int column;
        const char *says;
    } bad[] = {
        { "", 1, "expected ATTRIBUTE=FIELD" },
        { "account", 1, "expected ATTRIBUTE=FIELD" },
        { "=x", 1, "expected ATTRIBUTE=FIELD" },
        { "account=", 1, "expected ATTRIBUTE=FIELD" },
        { "a=b,", 5, "expected ATTRIBUTE=FIELD" },
        { "a=b,,c=d", 5, "expected ATTRIBUTE=FIELD" },
        { "a=b, = d", 5, "expected ATTRIBUTE=FIELD" },
        { "a=b,a=c", 5, "'a' is mapped twice" },
        { "time=b,time=c", 8, "'time' is mapped twice" },
        { "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1", 65, "a map has at most 16 entries" },
    };
    char text[400] = "a=";

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct weir__log_map *map = NULL;
        struct weir_error error = { 0 };
        assert_int_equal(weir__log_map_create(&map, bad[i].text, &error), WEIR_INVALID);
        assert_null(map);
        assert_int_equal(error.column, bad[i].column);
        assert_contains(error.text, bad[i].says);
    }
    memset(text + 2, 'x', 300);
    struct weir__log_map *map = NULL;
    struct weir_error error;
    assert_int_equal(weir__log_map_create(&map, text, &error), WEIR_INVALID);
    assert_contains(error.text, "longer than 256 bytes");
    weir__log_map_destroy(map_of("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1"));
}

/* -------------------------------------------------------------------- files ---- */

static const char *file_with(const void *bytes, size_t size)
{
    const char *path = new_path();
    write_at(path, 0, bytes, size);
    return path;
}

static struct weir__log *open_log(const char *path, const char *format)
{
    struct weir__log *log = NULL;
    struct weir_error error = { 0 };

    if (weir__log_open(&log, path, format, NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return log;
}

/* Reads it all; the last return value in *code. */
static struct weir__log_figures read_all(const char *path, const char *format, int64_t *entries, int *code, struct weir_error *error)
{
    struct weir__log *log = open_log(path, format);
    struct weir__log_figures figures;

    for (*entries = 0; (*code = weir__log_next(log, &entry, error)) > 0; ++*entries)
        assert_true(entry.line >= 1);
    assert_int_equal(weir__log_next(log, &entry, error), *code); /* and so it stays */
    weir__log_figures(log, &figures);
    weir__log_close(log);
    return figures;
}

static void assert_file(const void *bytes, size_t size, int64_t lines, int64_t entries, int64_t bad)
{
    int64_t got;
    int code;
    struct weir__log_figures f = read_all(file_with(bytes, size), "auto", &got, &code, NULL);

    assert_int_equal(code, 0);
    assert_int_equal(f.lines, lines);
    assert_int_equal(got, entries);
    assert_int_equal(f.bad, bad);
    assert_int_equal(f.bytes_read, size);
    assert_int_equal(f.bytes_all, size);
}

static void assert_text(const char *text, int64_t lines, int64_t entries, int64_t bad)
{
    assert_file(text, strlen(text), lines, entries, bad);
}

static void test_line_ends(void **state)
{
    (void)state;
    assert_text("", 0, 0, 0);
    assert_text("\n", 1, 0, 0);
    assert_text("x", 1, 0, 1);
    assert_text(GOOD, 1, 1, 0);
    assert_text(GOOD "\n", 1, 1, 0);
    assert_text(GOOD "\r\n" GOOD "\r\n", 2, 2, 0);
    assert_text("\n\r\n \t\n" GOOD "\n\n" GOOD, 6, 2, 0);
    assert_text(GOOD "\nnonsense\n" GOOD "\n", 3, 2, 1);
}

static void test_first_line_tells_the_format(void **state)
{
    (void)state;
    assert_text("\n\n {\"ts\":1}\n{\"ts\":2}\n" GOOD "\n", 5, 2, 1);
    assert_text(GOOD "\n{\"ts\":2}\n", 2, 1, 1);
}

static void test_entries_know_their_line(void **state)
{
    struct weir__log *log = open_log(file_with("\n" GOOD "\r\nbad\n" GOOD " x", 2 * strlen(GOOD) + 9), "combined");
    struct weir__log_figures figures;

    (void)state;
    assert_int_equal(weir__log_next(log, &entry, NULL), 1);
    assert_int_equal(entry.line, 2);
    assert_int_equal(entry.text_len, strlen(GOOD));
    assert_memory_equal(entry.text, GOOD, strlen(GOOD));
    assert_int_equal(weir__log_next(log, &entry, NULL), 1);
    assert_int_equal(entry.line, 4);
    assert_int_equal(entry.text_len, strlen(GOOD) + 2);
    assert_int_equal(weir__log_next(log, &entry, NULL), 0);
    weir__log_figures(log, &figures);
    assert_int_equal(figures.first_bad, 3);
    assert_string_equal(figures.first_bad_why, "column 1: expected ADDRESS - USER [TIME] \"REQUEST\" STATUS BYTES");
    weir__log_close(log);
}

/* Lines of all lengths around the block's end come whole and in their order. */
static void test_lines_across_blocks(void **state)
{
    enum { LINES = 9000 };
    char *text = malloc(LINES * 300), *at = text;
    struct weir__log *log;

    (void)state;
    for (int i = 0; i < LINES; i++)
        at += sprintf(at, HEAD "\"GET /%d HTTP/1.0\" 200 %d \"-\" \"%.*s\"\n", i, i, i % 150,
                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    log = open_log(file_with(text, (size_t)(at - text)), "auto");
    for (int i = 0; i < LINES; i++) {
        assert_int_equal(weir__log_next(log, &entry, NULL), 1);
        assert_int_equal(entry.bytes, i);
        assert_int_equal(entry.line, i + 1);
    }
    assert_int_equal(weir__log_next(log, &entry, NULL), 0);
    weir__log_close(log);
    free(text);
}

/* A line of exactly so many bytes: a good one whose agent is that long. */
static char *long_line(char *out, size_t len)
{
    size_t n = (size_t)sprintf(out, GOOD " \"-\" \"");
    memset(out + n, 'a', len - n);
    out[len - 1] = '"';
    return out + len;
}

static void test_long_lines(void **state)
{
    char *text = malloc(3 << 20), *at;

    (void)state;
    at = long_line(text, WEIR__LOG_LINE);
    assert_file(text, WEIR__LOG_LINE, 1, 1, 0);
    memcpy(at, "\r\n" GOOD, strlen(GOOD) + 2);
    assert_file(text, WEIR__LOG_LINE + strlen(GOOD) + 2, 2, 2, 0);
    at = long_line(text, WEIR__LOG_LINE + 1);
    assert_file(text, WEIR__LOG_LINE + 1, 1, 0, 1);
    memcpy(at, "\n" GOOD, strlen(GOOD) + 1);
    assert_file(text, WEIR__LOG_LINE + strlen(GOOD) + 2, 2, 1, 1);
    at = long_line(text, 2 << 20);
    assert_file(text, 2 << 20, 1, 0, 1);
    memcpy(at, "\n" GOOD "\n", strlen(GOOD) + 2);
    assert_file(text, (2 << 20) + strlen(GOOD) + 2, 2, 1, 1);
    memset(text, '\0', 2 << 20);
    assert_file(text, (2 << 20) + strlen(GOOD) + 2, 2, 1, 1);
    memset(text, '\n', 2 << 20);
    assert_file(text, 2 << 20, 2 << 20, 0, 0);
    free(text);
}

static void test_first_bad_says_why(void **state)
{
    int64_t entries;
    int code;
    char *text = malloc(WEIR__LOG_LINE + 100);

    (void)state;
    long_line(text, WEIR__LOG_LINE + 50);
    struct weir__log_figures f = read_all(file_with(text, WEIR__LOG_LINE + 50), "auto", &entries, &code, NULL);
    assert_string_equal(f.first_bad_why, "column 65537: expected the end of the line: it may have 65536 bytes");
    f = read_all(file_with("{\"ts\":1}\n{\"ts\":1 2}", 19), "auto", &entries, &code, NULL);
    assert_int_equal(f.first_bad, 2);
    assert_string_equal(f.first_bad_why, "column 9: expected ',' or '}'");
    free(text);
}

/* --------------------------------------------------------------------- gzip ---- */

/* As one gzip member; returns its length. */
static size_t pack(const char *text, size_t len, unsigned char *out, size_t room)
{
    z_stream z = { 0 };

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)text;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

static void test_gzip(void **state)
{
    unsigned char bytes[4096];
    const char *text = GOOD "\n" GOOD "\n" GOOD;
    size_t len = pack(text, strlen(text), bytes, sizeof bytes);

    (void)state;
    assert_file(bytes, len, 3, 3, 0);
    len += pack("\n" GOOD "\n", strlen(GOOD) + 2, bytes + len, sizeof bytes - len); /* the second member goes on in the line */
    assert_file(bytes, len, 4, 4, 0);
    memset(bytes + len, 0, 600);
    assert_file(bytes, len + 600, 4, 4, 0);
    len = pack("", 0, bytes, sizeof bytes);
    assert_file(bytes, len, 0, 0, 0);
}

/* More than the buffers hold, in members that end anywhere. */
static void test_gzip_of_many_members(void **state)
{
    enum { LINES = 20000 };
    size_t size = LINES * (strlen(GOOD) + 20), packed = 0, len = 0;
    char *text = malloc(size);
    unsigned char *bytes = malloc(size);

    (void)state;
    for (uint64_t i = 0, seed = 1; i < LINES; i++)
        len += (size_t)sprintf(text + len, GOOD " %016llx\n", (unsigned long long)random64(&seed));
    for (size_t from = 0; from < len; from += 99991)
        packed += pack(text + from, len - from < 99991 ? len - from : 99991, bytes + packed, size - packed);
    assert_true(packed > 3 * 65536);
    assert_file(bytes, packed, LINES, LINES, 0);
    free(bytes);
    free(text);
}

static void assert_damaged(const unsigned char *bytes, size_t len, int64_t entries, const char *says)
{
    struct weir_error error = { 0 };
    int64_t got;
    int code;
    struct weir__log_figures f = read_all(file_with(bytes, len), "auto", &got, &code, &error);

    assert_int_equal(code, WEIR_CORRUPT);
    assert_int_equal(got, entries);
    assert_int_equal(f.bad, 0);
    assert_contains(error.text, says);
    assert_contains(error.text, folder); /* it names the file */
}

static void test_damaged_gzip_gives_what_it_has(void **state)
{
    unsigned char bytes[8192];
    char text[8192];
    size_t len = 0, packed;
    uint64_t seed = 7;

    (void)state;
    for (int i = 0; i < 50; i++)
        len += (size_t)sprintf(text + len, GOOD " %08x\n", (unsigned)random64(&seed));
    packed = pack(text, len, bytes, sizeof bytes);
    assert_damaged(bytes, packed - 1, 50, "it was cut");
    assert_damaged(bytes, 2, 0, "it was cut");
    assert_damaged(bytes, 12, 0, "it was cut");
    memcpy(bytes + packed, "garbage", 7);
    assert_damaged(bytes, packed + 7, 50, "bytes behind its gzip data");
    bytes[packed] = 0x1f;
    assert_damaged(bytes, packed + 7, 50, "damaged");
    bytes[packed - 8] ^= 1; /* its check sum */
    assert_damaged(bytes, packed, 50, "damaged");
    bytes[3] = 0xff;
    assert_damaged(bytes, packed, 0, "damaged");
}

/* Cut anywhere: whole lines and an error; half a line is not given out as if it were one. */
static void test_cut_gzip(void **state)
{
    unsigned char bytes[4096];
    const char *text = GOOD "\n" HEAD "\"POST /somewhere/else HTTP/2.0\" 301 178\n";
    size_t packed = pack(text, strlen(text), bytes, sizeof bytes);

    (void)state;
    for (size_t n = 2; n < packed; n++) {
        int64_t entries;
        int code;
        struct weir__log_figures f = read_all(file_with(bytes, n), "auto", &entries, &code, NULL);
        assert_int_equal(code, WEIR_CORRUPT);
        assert_int_equal(f.bad, 0);
        assert_true(entries <= 2);
    }
}

/* ------------------------------------------------------------------ opening ---- */

static void assert_refused(const char *path, const char *format, const char *map, int code, const char *says)
{
    struct weir__log *log = NULL;
    struct weir_error error = { 0 };

    assert_int_equal(weir__log_open(&log, path, format, map, &error), code);
    assert_null(log);
    assert_contains(error.text, says);
}

static void test_combined_map(void **state)
{
    struct weir__log *log = NULL;
    struct weir__log_entry e;
    struct weir_error error = { 0 };
    const char *path = file_with("192.0.2.1 - joe [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5\n", 69);
    const char *want[][2] = { { "account", "joe" }, { "host", "joe" }, { "user", "192.0.2.1" }, { "ip", "192.0.2.1" } };

    (void)state;
    assert_int_equal(weir__log_open(&log, path, "auto", "account=user,host=user,user=ip,bytes=header.referer", NULL), WEIR_OK);
    assert_int_equal(weir__log_next(log, &e, NULL), 1);
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        size_t found = 0;
        for (size_t k = 0; k < e.n; k++) {
            const struct weir_attr *a = &e.attrs[k];
            assert_false(a->name_len == 5 && memcmp(a->name, "bytes", 5) == 0); /* mapped to what the line has not */
            if (a->name_len == strlen(want[i][0]) && memcmp(a->name, want[i][0], a->name_len) == 0) {
                assert_int_equal(a->value_len, strlen(want[i][1]));
                assert_memory_equal(a->value, want[i][1], a->value_len);
                found++;
            }
        }
        assert_int_equal(found, 1);
    }
    weir__log_close(log);
    assert_int_equal(weir__log_open(&log, path, "auto", "account=uid", NULL), WEIR_OK); /* it might be JSON */
    assert_int_equal(weir__log_next(log, &e, &error), WEIR_INVALID);
    assert_non_null(strstr(error.text, "has no field 'uid'"));
    weir__log_close(log);
}

static void test_refused(void **state)
{
    const char *path = file_with("", 0);

    (void)state;
    assert_refused(new_path(), "auto", NULL, WEIR_SYSTEM, "No such file");
    assert_refused(folder, "auto", NULL, WEIR_INVALID, "is a directory");
    assert_refused(path, "xml", NULL, WEIR_INVALID, "'xml' is no format of logs; there are auto, combined and json");
    assert_refused(path, "combined", "a=b", WEIR_INVALID, "has no field 'b': of a combined log there are ip, user, host");
    assert_refused(path, "combined", "time=user", WEIR_INVALID, "is a combined log: time cannot be mapped");
    assert_refused(path, "json", "a", WEIR_INVALID, "ATTRIBUTE=FIELD");
    weir__log_close(NULL);
}

/* Byte by byte through a pipe: the gzip magic may come in two reads, and nothing is known of the size. */
static void read_from_stdin(const void *bytes, size_t size, int64_t entries)
{
    int ends[2], saved = dup(STDIN_FILENO), code;
    int64_t got;

    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        for (size_t i = 0; i < size; i++)
            if (write(ends[1], (const char *)bytes + i, 1) != 1)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    struct weir__log_figures f = read_all("-", "auto", &got, &code, NULL);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
    close(ends[0]);
    wait(NULL);
    assert_int_equal(code, 0);
    assert_int_equal(got, entries);
    assert_int_equal(f.bytes_all, -1);
    assert_int_equal(f.bytes_read, size);
}

static void test_stdin(void **state)
{
    unsigned char bytes[4096];
    const char *text = GOOD "\n" GOOD;

    (void)state;
    read_from_stdin(text, strlen(text), 2);
    read_from_stdin(bytes, pack(text, strlen(text), bytes, sizeof bytes), 2);
    read_from_stdin("", 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_every_day),
        cmocka_unit_test(test_huge_numbers),
        cmocka_unit_test(test_combined_lines),
        cmocka_unit_test(test_what_is_behind_is_ignored),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_requests_that_are_none),
        cmocka_unit_test(test_requests_that_are_odd),
        cmocka_unit_test(test_virtual_host_in_front),
        cmocka_unit_test(test_user_cannot_fake_a_line),
        cmocka_unit_test(test_nul_and_other_bytes),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_every_beginning),
        cmocka_unit_test(test_json_usual_names),
        cmocka_unit_test(test_json_best_name_wins),
        cmocka_unit_test(test_json_map),
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_more_fields_than_room),
        cmocka_unit_test(test_json_long_paths),
        cmocka_unit_test(test_json_bad_lines),
        cmocka_unit_test(test_bad_maps),
        cmocka_unit_test(test_combined_map),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_first_line_tells_the_format),
        cmocka_unit_test(test_entries_know_their_line),
        cmocka_unit_test(test_lines_across_blocks),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_first_bad_says_why),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_gzip_of_many_members),
        cmocka_unit_test(test_damaged_gzip_gives_what_it_has),
        cmocka_unit_test(test_cut_gzip),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_stdin),
    };

    return cmocka_run_group_tests_name("log", tests, make_folder, remove_folder);
}
