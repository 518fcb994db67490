/* url.c -- the URL of a webhook: its parts, and what is wrong with what is none. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/base/url.h"

static void check_url(const char *text, bool tls, const char *host, const char *port,
                      const char *authority, const char *path)
{
    struct weir__url url;
    struct weir_error error = { 0 };

    if (weir__url_parse(&url, text, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    assert_int_equal(url.tls, tls);
    assert_string_equal(url.host.name, host);
    assert_string_equal(url.host.port, port);
    assert_string_equal(url.authority, authority);
    assert_string_equal(url.path, path);
}

static void check_bad_url(const char *text, const char *why)
{
    struct weir__url url = { .path = "untouched" };
    struct weir_error error = { 0 };

    if (weir__url_parse(&url, text, &error) != WEIR_INVALID)
        fail_msg("%s was taken", text);
    assert_contains(error.text, why);
    assert_string_equal(url.path, "untouched");
}

TEST(test_urls)
{
    char path[1100] = "http://h/", host[300] = "http://";

    check_url("http://example.com", false, "example.com", "80", "example.com", "/");
    check_url("https://example.com/", true, "example.com", "443", "example.com", "/");
    check_url("HTTP://192.0.2.1:8080/a/b?c=d", false, "192.0.2.1", "8080", "192.0.2.1:8080",
              "/a/b?c=d");
    check_url("https://[2001:db8::1]:1?q#part", true, "2001:db8::1", "1", "[2001:db8::1]:1", "/?q");
    check_url("http://[::1]/x", false, "::1", "80", "[::1]", "/x");
    check_bad_url("", "neither http:// nor https://");
    check_bad_url("ftp://example.com/", "neither http:// nor https://");
    check_bad_url("example.com", "neither http:// nor https://");
    check_bad_url("http://", "no host");
    check_bad_url("http:///path", "no host");
    check_bad_url("http://:80/", "no host");
    check_bad_url("http://[::1", "brackets");
    check_bad_url("http://[::1]80/", "brackets");
    check_bad_url("http://h:/", "port");
    check_bad_url("http://h:0/", "port");
    check_bad_url("http://h:65536/", "port");
    check_bad_url("http://h:80a/", "port");
    check_bad_url("http://h:99999999999999999999/", "port");
    check_bad_url("http://h:+80/", "port");
    check_bad_url("http://h:00/", "port");
    check_bad_url("http://::1/", "written [::1]");
    check_bad_url("http://user:secret@h/", "token is a setting");
    check_bad_url("http://h/a b", "space");
    check_bad_url("http://h/\r\nEvil: yes", "control character");
    memset(path + 9, 'p', 1023);
    check_bad_url(path, "path");
    path[9 + 1022] = '\0';
    check_url(path, false, "h", "80", "h", path + 8);
    memset(host + 7, 'h', 256);
    check_bad_url(host, "host");
}
