/* url.c -- where Redis is, in every form, and what is wrong with what is none. */
#include "unit/test.h"

#include "cluster/redis/url.h"

/* The parts in one line: tls/sentinel user:password hosts db ... */
static const char *print(const char *text)
{
    static char out[2048];
    static struct weir__redis_url url;
    struct weir_error error = { .text = "" };
    char *at = out;

    if (weir__redis_url_parse(&url, text, &error) != WEIR_OK) {
        snprintf(out, sizeof(out), "%d: %s", error.column, error.text);
        return out;
    }
    at += sprintf(at, "%s%s", url.tls ? "tls " : "", url.sentinel ? "sentinel " : "");
    at += sprintf(at, "<%s|%s>", url.login.user, url.login.password);
    for (size_t i = 0; i < url.n_seeds; i++)
        at += sprintf(at, " %s", weir__redis_place(&url.seeds[i]).text);
    at += sprintf(at, " db %d", (int)url.db);
    if (url.protocol)
        at += sprintf(at, " protocol %d", (int)url.protocol);
    if (url.sentinel)
        at += sprintf(at, " master %s <%s|%s>", url.master, url.sentinel_login.user,
                      url.sentinel_login.password);
    if (url.ca[0] || url.certificate[0])
        sprintf(at, " files %s %s %s", url.ca, url.certificate, url.key);
    return out;
}

static void good(const char *text, const char *wanted)
{
    assert_string_equal(print(text), wanted);
}

static void bad(const char *text, int column, const char *what)
{
    char start[16];
    const char *said = print(text);

    snprintf(start, sizeof(start), "%d: ", column);
    if (strncmp(said, start, strlen(start)) != 0 || !strstr(said, what))
        fail_msg("%s: %s", text, said);
}

#define TEN       "0123456789"
#define A_HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

TEST(test_D1_urls)
{
    good("redis://localhost", "<|> localhost:6379 db 0");
    good("redis://10.0.0.1:7000/3", "<|> 10.0.0.1:7000 db 3");
    good("redis://[::1]:7000/", "<|> [::1]:7000 db 0");
    good("redis://:secret@h", "<|secret> h:6379 db 0");
    good("redis://ann:p%40ss%2F%25@h:1", "<ann|p@ss/%> h:1 db 0");
    good("redis://ann:a:b@h:1?protocol=2", "<ann|a:b> h:1 db 0 protocol 2");
    good("redis://a,b:7001,[::2]/1?db=2", "<|> a:6379 b:7001 [::2]:6379 db 2");
    good("rediss://h?ca=/etc/ca.pem&certificate=c&key=k",
         "tls <|> h:6379 db 0 files /etc/ca.pem c k");
    good("unix:///run/redis.sock?db=4", "<|> /run/redis.sock db 4");
    good("unix://u:p@/run/redis%20.sock", "<u|p> /run/redis .sock db 0");
    good("unix:///" A_HUNDRED "1234%20", "<|> /" A_HUNDRED "1234  db 0"); /* 106 bytes */
}

TEST(test_D1_urls_of_sentinels)
{
    good("redis-sentinel://a,b:1/mine", "sentinel <|> a:26379 b:1 db 0 master mine <|>");
    good("rediss-sentinel://u:p@a/mine/2?sentinel-password=x&sentinel-user=y",
         "tls sentinel <u|p> a:26379 db 2 master mine <y|x>");
    bad("redis-sentinel://a", 19, "name of the master");
    bad("redis-sentinel://a/", 20, "name of the master");
    bad("redis-sentinel://a/m/x", 22, "number for its database");
}

TEST(test_D1_wrong_urls)
{
    bad("", 1, "must begin with redis://");
    bad("http://h", 1, "must begin with redis://");
    bad("redis://", 9, "names no host");
    bad("redis://a,,b", 11, "names no host");
    bad("redis://h:x", 9, "port from 0 to 65535");
    bad("redis://h:0", 9, "port 0");
    bad("redis://h:70000", 9, "port from");
    bad("redis://::1", 9, "too many colons");
    bad("redis://h/x", 11, "number for its database");
    bad("redis://h/99999999999", 11, "number for its database");
    bad("redis://u@h", 9, "user without a password");
    bad("redis://u:@h", 10, "empty password");
    bad("redis://u:%4@h", 11, "% without two hexadecimal digits");
    bad("redis://u:%00@h", 13, "zero byte");
    bad("redis://h h", 10, "a space");
    bad("redis://h?x", 11, "without '='");
    bad("redis://h?protocl=2", 11, "did you mean 'protocol'");
    bad("redis://h?protocol=1", 20, "protocol=2 or protocol=3");
    bad("redis://h?protocol=4", 20, "protocol=2 or protocol=3");
    bad("redis://h?ca=x", 1, "not rediss://");
    bad("rediss://h?key=x", 1, "both certificate= and key=");
    bad("unix://run/redis.sock", 8, "path of a socket");
    bad("unix:///" A_HUNDRED "12345678", 8, "too long for a socket");
    bad("redis://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", 41, "more than 16 hosts");
}

/* The text of an error never holds the URL, which may hold a password. */
TEST(test_D1_a_wrong_url_keeps_its_password)
{
    assert_null(strstr(print("redis://ann:hunter2@h:x"), "hunter2"));
    assert_null(strstr(print("redis://ann:hunter2@h?protocol=9"), "hunter2"));
    assert_null(strstr(print("redis:/ann:hunter2@h"), "hunter2"));
}

static void reads(const char *text, const char *near, const char *wanted)
{
    struct weir__redis_address address;
    bool good = weir__redis_address_read(&address, text, strlen(text), near);

    assert_string_equal(good ? weir__redis_place(&address).text : "none", wanted);
}

TEST(test_D2_addresses_of_redirections)
{
    reads("127.0.0.1:6381", "h", "127.0.0.1:6381");
    reads("::1:6381", "h", "[::1]:6381");
    reads(":6381", "h", "h:6381");
    reads("?:6381", "h", "h:6381");
    reads("a:0", "h", "none");
    reads("a:65536", "h", "none");
    reads("a", "h", "none");
    reads("a:", "h", "none");
    reads("", "h", "none");
}
