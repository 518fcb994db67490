/* loose-path.c -- spellings of a path that a server was seen to serve as that page: one of the
 * readings is the page. */
#include "unit/test.h"

#include <string.h>

#include "match/rules.h"

/* Returns which of the facts' values is the loose path. */
static int gather(struct weir__facts *facts, const struct weir_attr *uri)
{
    struct weir__attributes known = { .uri = -1 };
    const struct weir__lists lists = { 0 };
    struct weir_error error;
    int loose = weir__attribute_add_loose(&known, &error);

    assert_true(loose > 0);
    weir__facts_gather(&known, &lists, uri, 1, facts);
    return loose;
}

static bool is_read_as(struct weir_attr uri, const char *page, size_t len)
{
    static struct weir__facts facts;
    int loose = gather(&facts, &uri);
    bool is = false;

    if (facts.n_readings == 0)
        facts.readings[facts.n_readings++] = facts.values[loose];
    for (size_t i = 0; i < facts.n_readings; i++) {
        const struct weir__value *v = &facts.readings[i];
        is |= v->len == len && memcmp(v->text, page, len) == 0;
    }
    return is;
}

TEST(test_R1_pages_that_servers_served)
{
    static const struct {
        const char *server, *uri, *page;
    } rows[] = {
        { "fastify 4", "/login;/x", "/login/" },
        { "fastify 4", "/logIn;/x%2f", "/login/" },
        { "fastify 4", "/api/login;x=1/..", "/api/login/" },
        { "fastify 4", "/api/login;/x/img%5c..%5c", "/api/login/" },
        { "Node, URL", "//x/login", "/login/" },
        { "Node, URL", "///api/login", "/login/" },
        { "Node, URL", "/\\/api/login", "/login/" },
        { "Node, URL", "http:///x/login", "/login/" },
        { "Node, URL", "http:////x/login", "/login/" },
        { "Node, URL", "/x%2fy/../login", "/login/" },
        { "Node, URL", "/api//../login", "/api/login/" },
        { "Node, URL", "/login//..", "/login/" },
        { "Node, URL", "/login///../..", "/login/" },
        { "Node, URL", "//x/api//../login", "/api/login/" },
        { "Jetty, Undertow", "//api/login//..", "/api/login/" },
        { "Jetty, Undertow", "/;/api;x/login/;/..", "/api/login/" },
        { "Undertow", "/api/login//../;x", "/api/login/" },
        { "Go, Apache", "http:/x//../login", "/login/" },
        { "PHP, parse_url", "//apI/%6cogin", "/login/" },
        { "PHP, parse_url", "//api;x/login", "/login/" },
        { "Apache, Tomcat behind it", "/*%2fapi/.%2e//login", "/login/" },
        { "Apache, Go, Werkzeug", "http:/log%69n", "/login/" },
        { "nginx", "//x/login", "/x/login/" },
        { "Tomcat", "/x/;y/../login", "/login/" },
        { "nginx", "/x/;y/../login", "/x/login/" },
        { "Express", "/LoGin/", "/login/" },
        { "Express, use", "/Login/../x", "/login/../x/" },
        { "Express, use", "/login/./x/..", "/login/./x/../" },
        { "Node, path.normalize; Go, JoinPath", "/login/%2e/..", "/login/" },
        { "Node, path.normalize; Go, JoinPath", "//api/login/%2e%2E/x/../..", "/api/login/" },
        { "Node, path.normalize", "/#/../login/%2e/..", "/login/" },
        { "Go, path.Clean", "/x#/../api/%6cogin", "/api/login/" },
        { "nginx", "/login#/../x", "/login/" },
        { "Node, URL", "//x/api/../login#/../x", "/login/" },
        { "PHP, parse_url", "//x\\y/login", "/login/" },
        { "PHP, parse_url", "//x:1\\/y\\/../%6cogin?/", "/login/" },
        { "Node, URL behind nginx", "/x/../\\h/login", "/login/" },
        { "Node, URL behind nginx", "/./\\h/api/login", "/api/login/" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_attr uri = { .name = "uri", .value = rows[i].uri };
        if (!is_read_as(uri, rows[i].page, strlen(rows[i].page)))
            fail_msg("%s serves %s for %s", rows[i].server, rows[i].page, rows[i].uri);
    }
}

/* A client may send any number of paths that servers might read in ten ways. */
TEST(test_R1_equal_readings_are_one)
{
    static struct weir__facts facts;

    gather(&facts, &(struct weir_attr){ .name = "uri", .value = "/%61/b" });
    assert_int_equal(facts.n_readings, 2);
}

/* Strictly a raw zero byte is a byte as any other. */
TEST(test_R1_a_zero_byte_is_read_both_ways)
{
    struct weir_attr uri = { .name = "uri", .value = "/login\0", .value_len = 7 };

    assert_true(is_read_as(uri, "/login/", 7));
    assert_true(is_read_as(uri, "/login\0/", 8));
}

/* No server differs on it. */
TEST(test_R1_a_query_has_no_readings)
{
    static const char *const uris[] = { "/login?next=%2Fhome", "/login?a;b=/../c\\ //",
                                        "/a-path-of-16-letters-and-more?q=%20", "/login?#%20/.." };
    static struct weir__facts facts;

    for (size_t i = 0; i < COUNT_OF(uris); i++) {
        gather(&facts, &(struct weir_attr){ .name = "uri", .value = uris[i] });
        assert_int_equal(facts.n_readings, 0);
    }
    gather(&facts, &(struct weir_attr){ .name = "uri", .value = "/%6cogin?next=home" });
    assert_true(facts.n_readings > 0);
    gather(&facts, &(struct weir_attr){ .name = "uri", .value = "?next=home" });
    assert_true(facts.n_readings > 0);
}
