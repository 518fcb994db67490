/* host.c -- HOST:PORT in its four forms, and what is wrong with what is none. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "wire/host.h"

static void expect(const char *text, const char *name, const char *port)
{
    struct weir__host host;
    const char *wrong = weir__host_read(&host, text, strlen(text));

    if (wrong)
        fail_msg("%s %s", text, wrong);
    assert_string_equal(host.name, name);
    assert_string_equal(host.port, port);
}

/* It says why, and *out is as it was. */
static void refuse(const char *text, const char *why)
{
    struct weir__host host, before;

    memset(&host, 0xa5, sizeof(host));
    memset(&before, 0xa5, sizeof(before));
    const char *wrong = weir__host_read(&host, text, strlen(text));
    if (!wrong)
        fail_msg("%s was taken", text);
    assert_contains(wrong, why);
    assert_memory_equal(&host, &before, sizeof(host));
}

TEST(test_forms)
{
    struct weir__host host;

    expect("localhost", "localhost", "");
    expect("192.0.2.7:80", "192.0.2.7", "80");
    expect("*:0", "*", "0");
    expect("x:65535", "x", "65535");
    expect("[::1]", "::1", "");
    expect("[2001:db8::1]:7379", "2001:db8::1", "7379");
    expect("[fe80::1%lo]:7", "fe80::1%lo", "7");
    assert_null(
        weir__host_read(&host, "a:12345", 4)); /* what is behind its length is not looked at */
    assert_string_equal(host.port, "12");
}

TEST(test_mistakes)
{
    refuse("", "names no host");
    refuse(":80", "names no host");
    refuse("[]:80", "names no host");
    refuse("x:", "needs a port from 0 to 65535");
    refuse("x:65536", "needs a port");
    refuse("x:123456789012345678901234567890", "needs a port");
    refuse("x:-1", "needs a port");
    refuse("x:8o", "needs a port");
    refuse("[::1]:", "needs a port");
    refuse("::1", "IPv6 addresses are written [::1]:7379");
    refuse("::1:80", "too many colons");
    refuse("a:b:80", "too many colons");
    refuse("[::1", "brackets");
    refuse("[::1]80", "brackets");
    refuse("[", "brackets");
}

TEST(test_longest_name)
{
    char text[300];

    memset(text, 'x', sizeof(text));
    strcpy(text + 255, ":1");
    struct weir__host host;
    assert_null(weir__host_read(&host, text, strlen(text)));
    assert_int_equal(strlen(host.name), 255);
    text[255] = 'x';
    strcpy(text + 256, ":1");
    refuse(text, "more than 255 bytes");
}
