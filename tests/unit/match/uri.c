/* uri.c -- paths as a server sees them: every spelling of a path comes out the same, and what is
 * said to be plain is. */
#include "unit/test.h"

#include <sys/mman.h>

#include "unit/fixture.h"
#include "match/values.h"

static const char *plain(const char *uri)
{
    static char out[256];
    size_t len = weir__uri_plain(uri, strlen(uri), out, strlen(uri) + 1);

    out[len] = '\0';
    return out;
}

static const struct {
    const char *uri, *plain;
} known[] = {
    { "/", "/" },
    { "/a", "/a" },
    { "/a/", "/a/" },
    { "", "/" },
    { "*", "*" },
    { "a", "/a" },
    { "host:443", "/host:443" },
    { "/*", "/*" },
    { "*a", "/*a" },
    { "%2a", "/*" },
    { "/a;v=1/b;c", "/a;v=1/b;c" },
    { "/.well-known/x", "/.well-known/x" },
    { "/a..b/...", "/a..b/..." },
    { "/a./b../c", "/a./b../c" },
    /* query and fragment */
    { "/a?b", "/a" },
    { "/a#b?c", "/a" },
    { "/a?b#c", "/a" },
    { "?a", "/" },
    { "#", "/" },
    { "/a?/../../b", "/a" },
    { "/a%3fb%23c", "/a?b#c" },
    /* scheme and host */
    { "http://host/a", "/a" },
    { "HTTPS://user@host:8/a?b", "/a" },
    { "http://host", "/" },
    { "http://host?a/b", "/" },
    { "http://host#a", "/" },
    { "http://", "/" },
    { "http:///a", "/a" },
    { "a+b-c.1://h/x", "/x" },
    { "http:/host/a", "/http:/host/a" },
    { "1http://host/a", "/1http:/host/a" },
    { "://host/a", "/:/host/a" },
    { "/http://host/a", "/http:/host/a" },
    { "//host/a", "/host/a" },
    { "http%3a//host/a", "/http:/host/a" },
    /* escapes, once */
    { "/%61dmin", "/admin" },
    { "/%41%4a%7E", "/AJ~" },
    { "/a%2fb%2F", "/a/b/" },
    { "/%2561", "/%61" },
    { "/%252e%252e/a", "/%2e%2e/a" },
    { "/%", "/%" },
    { "/%4", "/%4" },
    { "/%zz%4g%g4", "/%zz%4g%g4" },
    { "/%%61", "/%a" },
    { "/%2", "/%2" },
    { "/%c3%a9", "/\xc3\xa9" },
    /* slashes */
    { "//", "/" },
    { "///a////b//", "/a/b/" },
    { "/%2f/a", "/a" },
    /* dots */
    { "/.", "/" },
    { "/..", "/" },
    { "/./a", "/a" },
    { "/a/.", "/a/" },
    { "/a/..", "/" },
    { "/a/b/..", "/a/" },
    { "/a/../b", "/b" },
    { "/a/b/../../c", "/c" },
    { "/../../a", "/a" },
    { "/a/../../../b/./../c", "/c" },
    { "/a//../b", "/b" },
    { "/a/%2e%2e/b", "/b" },
    { "/a/.%2E/b", "/b" },
    { "/a%2f..%2fb", "/b" },
    { "/a/..;/b", "/a/..;/b" },
    { ".", "/" },
    { "../a", "/a" },
    { "a/..", "/" },
};

TEST(test_R1_known_paths)
{
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        if (strcmp(plain(known[i].uri), known[i].plain) != 0)
            fail_msg("'%s' becomes '%s', not '%s'", known[i].uri, plain(known[i].uri),
                     known[i].plain);
        if (weir__uri_is_plain(known[i].uri, strlen(known[i].uri)) !=
            (strcmp(known[i].uri, known[i].plain) == 0))
            fail_msg("'%s': is it plain?", known[i].uri);
    }
}

TEST(test_R1_zero_bytes)
{
    char out[16];

    assert_int_equal(weir__uri_plain("/a%00b", 6, out, 6 + 1), 4);
    assert_memory_equal(out, "/a\0b", 4);
    assert_int_equal(weir__uri_plain("/a\0/../b", 8, out, 8 + 1), 2);
    assert_memory_equal(out, "/b", 2);
    assert_true(weir__uri_is_plain("/a\0b", 4));
    assert_int_equal(weir__uri_plain(NULL, 0, out, 0 + 1), 1);
    assert_false(weir__uri_is_plain(NULL, 0));
}

/* The same by another way: decode all, split at slashes, keep a stack of segments. */
static size_t plain_by_segments(const char *uri, size_t len, char *out)
{
    char decoded[256], *segments[256], *rest = decoded, *last = "";
    size_t n = 0, depth = 0, at = 0, used = 0;
    const char *host = memmem(uri, len, "://", 3);

    if (len == 1 && uri[0] == '*')
        return (size_t)sprintf(out, "*");
    if (host != NULL && strspn(uri, "abcdefglno-.") == (size_t)(host - uri) && host > uri &&
        strchr("-.", uri[0]) == NULL)
        at = (size_t)(host - uri) + 3 + strcspn(host + 3, "/?#");
    for (len = at + strcspn(uri + at, "?#"); at < len; at++) {
        unsigned value;
        bool escape =
            uri[at] == '%' && at + 2 < len && strspn(uri + at + 1, "0123456789abcdefABCDEF") >= 2;
        if (escape && sscanf(uri + at + 1, "%2x", &value) == 1)
            at += 2;
        decoded[n++] = escape ? (char)value : uri[at];
    }
    decoded[n] = '\0';
    for (char *s; (s = strsep(&rest, "/")) != NULL;) {
        last = s;
        if (strcmp(s, "..") == 0)
            depth -= depth > 0;
        else if (*s != '\0' && strcmp(s, ".") != 0)
            segments[depth++] = s;
    }
    for (size_t i = 0; i < depth; i++)
        used += (size_t)sprintf(out + used, "/%s", segments[i]);
    if (depth == 0 || *last == '\0' || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        used += (size_t)sprintf(out + used, "/");
    return used;
}

static void random_uri(char *out, size_t longest, uint64_t *seed)
{
    static const char *const parts[] = { "/",   "/",        "/",   ".",   ".",    "a",   "b",
                                         "%2e", "%2F",      "%61", "%",   "%2",   "?",   "#",
                                         "*",   "abc/defg", "//",  "/..", "/../", "/./", "://",
                                         "%25", "long",     "a.b", "-",   "!'",   ":",   ";x" };
    size_t n = random64(seed) % (longest + 1), used = 0;

    if (random64(seed) % 8)
        used += (size_t)sprintf(out, "/");
    out[used] = '\0';
    uint64_t kinds = random64(seed) % 2 ? COUNT_OF(parts) : 8;
    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(out + used, "%s", parts[random64(seed) % kinds]);
}

TEST(test_R1_as_by_segments)
{
    uint64_t seed = 1;

    for (int i = 0; i < 300000; i++) {
        char uri[256], wanted[300], got[260];
        random_uri(uri, i % 3 ? 8 : 24, &seed);
        size_t len = strlen(uri), wanted_len = plain_by_segments(uri, len, wanted), got_len;
        memset(got, 0x55, sizeof(got));
        got_len = weir__uri_plain(uri, len, got, len + 1);
        assert_true(got_len >= 1 && got_len <= len + 1);
        assert_int_equal(got[len + 1], 0x55);
        if (got_len != wanted_len || memcmp(got, wanted, got_len) != 0)
            fail_msg("'%s' becomes '%.*s', not '%s'", uri, (int)got_len, got, wanted);
        if (weir__uri_is_plain(uri, len) != (got_len == len && memcmp(got, uri, len) == 0))
            fail_msg("'%s': is it plain?", uri);
    }
}

/* What is to be seen may lie anywhere in a block of sixteen, or across two. */
TEST(test_R1_is_plain_sees_every_place)
{
    static const char *const marks[] = { "%61", "?", "#", "//", "/./", "/../" };
    char uri[80];

    for (size_t len = 1; len < 70; len++) {
        memset(uri, 'a', sizeof(uri));
        uri[0] = '/';
        assert_true(weir__uri_is_plain(uri, len));
        for (size_t m = 0; m < COUNT_OF(marks); m++)
            for (size_t at = 1, n = strlen(marks[m]); at + n <= len; at++) {
                memset(uri + 1, 'a', sizeof(uri) - 1);
                memcpy(uri + at, marks[m], n);
                assert_false(weir__uri_is_plain(uri, len));
                memcpy(uri + at, n == 3 ? "%zz" : "!'a.", n); /* looks like it, and is not */
                assert_true(weir__uri_is_plain(uri, len));
            }
        memset(uri + 1, 'a', sizeof(uri) - 1);
        for (size_t dots = 1; dots < 4 && dots + 3 <= len; dots++) { /* at the end */
            uri[len - dots - 1] = '/';
            memset(uri + len - dots, '.', dots);
            assert_int_equal(weir__uri_is_plain(uri, len), dots > 2);
            memset(uri + 1, 'a', sizeof(uri) - 1);
        }
    }
}

TEST(test_R1_reads_no_byte_outside_the_uri)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *room = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
         *middle = room + page, out[256];
    uint64_t seed = 2;

    assert_true(room != MAP_FAILED);
    assert_int_equal(mprotect(middle, page, PROT_READ | PROT_WRITE), 0);
    for (int i = 0; i < 20000; i++) {
        char uri[256], *at;
        random_uri(uri, 16, &seed);
        size_t len = strlen(uri), cut = random64(&seed) % (len + 1);
        at = i % 2 ? middle : middle + page - cut;
        memcpy(at, uri, cut);
        size_t n = weir__uri_plain(at, cut, out, cut + 1);
        assert_int_equal(weir__uri_is_plain(at, cut), n == cut && memcmp(at, out, n) == 0);
    }
    munmap(room, 3 * page);
}

/* Whatever the room, what is kept is the beginning of the whole: no padding pushes a path out of a
 * rule's sight. */
TEST(test_R1_a_long_path_is_resolved_whole)
{
    static const char *const pieces[] = { "/", "a", "bb", ".", "..", "%2e", "ccc", "/./", "/../" };
    uint64_t seed = 1;

    for (int round = 0; round < 20000; round++) {
        char uri[128] = "/", whole[160], part[160];
        for (int n = 0; n < 12; n++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            strcat(uri, pieces[(seed >> 33) % (sizeof(pieces) / sizeof(*pieces))]);
        }
        size_t size = 1 + (size_t)round % 20,
               len = weir__uri_plain(uri, strlen(uri), whole, sizeof(whole));
        size_t cut = weir__uri_plain(uri, strlen(uri), part, size);
        assert_int_equal(cut, len < size ? len : size);
        assert_memory_equal(part, whole, cut);
    }
}

/* ---------------------------------------------------------------- loosely ---- */

TEST(test_every_spelling_that_a_tolerant_server_takes)
{
    static const struct {
        const char *uri, *loose;
    } rows[] = {
        { "/", "/" },
        { "/login", "/login/" },
        { "/login/", "/login/" },
        { "/login//", "/login/" },
        { "/LOGIN", "/login/" },
        { "/login;x=1", "/login/" },
        { "/login;x=1/;y", "/login/" },
        { "/login%3bx", "/login;x/" },
        { "/login;%2fx%5C", "/login/" },
        { "/x;%2fy/../login", "/login/" },
        { "/login%20", "/login/" },
        { "/login%20/%09/", "/login/" },
        { "/a;b/C;d/e", "/a/c/e/" },
        { "/x/..;/login", "/login/" },
        { "/;x/login", "/login/" },
        { "/x/;y/../login", "/login/" },
        { "/x/;%3by/%2e%2E/login?a", "/login/" },
        { "http://host/LOGIN#a", "/login/" },
        { "/a b", "/a b/" },
        { "/x\\..\\login", "/login/" },
        { "/login%5c", "/login/" },
        { "/login%0a", "/login/" },
        { "%20", "/" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char out[64];
        const char *uri = rows[i].uri;
        size_t len = weir__uri_loose(uri, strlen(uri), WEIR__TOMCAT, out, strlen(uri) + 2);
        out[len] = '\0';
        assert_string_equal(out, rows[i].loose);
    }
    char out[16];
    assert_int_equal(weir__uri_loose("/login\0", 7, WEIR__TOMCAT, out, sizeof(out)), 7);
    assert_memory_equal(out, "/login/", 7);
}
