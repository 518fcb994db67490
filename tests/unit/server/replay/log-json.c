/* log-json.c -- JSON lines: the usual names, maps, and where a line or a map is wrong. */
#include "unit/test.h"

#include "unit/log-lines.h"

OWNS(weir__log_map)

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
    OWN(weir__log_map) *map = map_of(mapping);

    assert_line(line, strlen(line), map, attributes);
}

TEST(test_json_usual_names)
{
    assert_json(NULL,
                "{\"time_iso8601\":\"2000-10-10T13:55:36-07:00\",\"remote_addr\":\"192.0.2.7\","
                "\"remote_user\":\"-\",\"request\":\"GET "
                "/x?y HTTP/1.1\","
                "\"status\":\"404\",\"body_bytes_sent\":17,\"http_referer\":\"\",\"http_user_"
                "agent\":\"curl\",\"host\":\"example.org\"}",
                "method=GET|uri=/x?y|protocol=HTTP/"
                "1.1|status=404|bytes=17|ip=192.0.2.7|host=example.org|header.user-agent=curl");
    assert_true(entry.at == OCT * S);
    assert_fields(entry, (status, 404), (bytes, 17));
    assert_json(NULL,
                "{\"level\":\"info\",\"ts\":971211336.5,\"request\":{\"remote_ip\":\"192.0.2.9\","
                "\"client_ip\":\"192.0.2.7\",\"proto\":"
                "\"HTTP/2.0\","
                "\"method\":\"PUT\",\"host\":\"h\",\"uri\":\"/"
                "u\",\"headers\":{\"User-Agent\":[\"curl\"]}},\"size\":3,\"status\":200}",
                "method=PUT|uri=/u|protocol=HTTP/"
                "2.0|status=200|bytes=3|ip=192.0.2.7|host=h|header.user-agent=curl|level=info");
    assert_true(entry.at == OCT * S + S / 2);
}

/* The best of several names wins, wherever it stands; of one name twice, the last. */
TEST(test_json_best_name_wins)
{
    assert_json(NULL,
                "{\"ts\":1,\"ip\":\"b\",\"remote_addr\":\"a\",\"client_ip\":\"c\",\"path\":\"/"
                "p\",\"request_uri\":\"/r\"}",
                "uri=/r|ip=a");
    assert_json(NULL, "{\"ts\":1,\"ip\":\"a\",\"ip\":\"b\",\"x\":1,\"x\":2}", "ip=b|x=2");
    assert_json(NULL, "{\"ts\":1,\"request\":\"GET /a HTTP/1.1\",\"uri\":\"/b\"}",
                "method=GET|uri=/b|protocol=HTTP/1.1");
    assert_json(NULL, "{\"ts\":1,\"remote_addr\":\"-\",\"ip\":\"b\",\"user\":null}", "ip=b");
}

TEST(test_json_map)
{
    const char *line = "{\"ts\":5,\"when\":7,\"user\":{\"id\":42,\"name\":\"frank\"},\"ip\":\"192."
                       "0.2.7\",\"peer\":[\"192.0.2.8\"]}";

    assert_json("account=user.id", line,
                "ip=192.0.2.7|user=frank|account=42|when=7|peer.0=192.0.2.8");
    assert_true(entry.at == 5 * S);
    assert_json(" account = user.id , time = when,ip=peer.0,again=user.id", line,
                "ip=192.0.2.8|user=frank|account=42|again=42|ts=5");
    assert_true(entry.at == 7 * S);
    assert_json("ip=nowhere", line,
                "user=frank|when=7|user.id=42|peer.0=192.0.2.8"); /* ip means nowhere then, and
                                                                     nothing else */
}

TEST(test_json_values)
{
    assert_json(NULL,
                " {\"ts\":1,\"a\":true,\"b\":false,\"c\":null,\"d\":-1.5e3,\"e\":\"\",\"f\":"
                "\"\\u00e4\\n\",\"g\":[],\"h\":{\"i\":[1,\"-\"]}"
                ",\"\":0}\t",
                "a=true|b=false|d=-1.5e3|e=|f=\xc3\xa4.|h.i.0=1|h.i.1=-|=0");
    assert_json(NULL, "{\"ts\":1,\"status\":1000,\"bytes\":1.5}", "status=1000|bytes=1.5");
    assert_fields(entry, (status, 0), (bytes, -1));
}

/* The slots' attributes have room however many other fields there are. */
TEST(test_json_more_fields_than_room)
{
    OWN(weir__log_map) *map = map_of(NULL);
    struct weir__log_fault fault;
    char line[4096] = "{";
    size_t n = 1;

    for (int i = 0; i < 100; i++)
        n += (size_t)sprintf(line + n, "\"x%d\":%d,", i, i);
    n += (size_t)sprintf(line + n, "\"ts\":1,\"ip\":\"a\",\"uri\":\"/\"}");
    assert_true(read_line(line, n, map, &fault));
    assert_int_equal(entry.n, WEIR__LOG_ATTRS);
    assert_int_equal(strncmp(shown(&entry), "uri=/|ip=a|x0=0|x1=1|", 21), 0);
    assert_string_equal(strrchr(shown(&entry), '|'), "|x29=29");
}

/* Paths together longer than the line. */
TEST(test_json_long_paths)
{
    OWN(weir__log_map) *map = map_of(NULL);
    struct weir__log_fault fault;
    char line[4096], name[250];
    size_t n;

    memset(name, 'n', sizeof(name));
    n = (size_t)sprintf(line, "{\"ts\":1,\"%.250s\":{", name);
    for (int i = 0; i < 64; i++)
        n += (size_t)sprintf(line + n, "\"%d\":%d,", i, i);
    n += (size_t)sprintf(line + n, "\"\":0}}");
    assert_true(read_line(line, n, map, &fault));
    assert_fields(entry, (n, WEIR__LOG_ATTRS), (attrs[31].name_len, 253));
}

TEST(test_json_bad_lines)
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
    OWN(weir__log_map) *map = map_of(NULL);

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct weir__log_fault fault = { 999, "" };
        assert_false(read_line(bad[i].line, strlen(bad[i].line), map, &fault));
        if (fault.at != bad[i].at ||
            strncmp(fault.expected, bad[i].expected, strlen(bad[i].expected)) != 0)
            fail_msg("%s: at %zu expected %s", bad[i].line, fault.at, fault.expected);
    }
}

TEST(test_bad_maps)
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
        { "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1", 65,
          "a map has at most 16 entries" },
    };
    char text[400] = "a=";

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
    weir__log_map_destroy(
        map_of("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1"));
}
