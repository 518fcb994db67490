/* http-forward-auth.c -- what a proxy describes, and what is not believed.
 *
 * What was understood is seen by asking why: the world's rules limit by ip (2), by header.x-app (1)
 * and by account on POST /login (1).
 */
#include "unit/test.h"

#include "server/serve/http/proxy-doubts.h"
#include "unit/complaints.h"
#include "unit/http-world.h"

/* How often a request with these headers is let through, of three. */
static int passes(struct world *w, const char *line, const char *headers)
{
    int n = 0;

    for (int i = 0; i < 3; i++)
        n += status_of(request(w, line, headers, NULL)) == 200;
    return n;
}

/* Is it counted under this address?  Two of them are let through, and none after that. */
static void assert_ip(struct world *w, const char *headers, const char *ip)
{
    char body[128];

    assert_int_equal(passes(w, "GET /v1/auth", headers), 2);
    snprintf(body, sizeof(body), "{\"attributes\":{\"ip\":\"%s\"}}", ip);
    const char *answer = request(w, "POST /v1/check", "", body);
    if (status_of(answer) != 429)
        fail_msg("%swas not counted under %s", headers, ip);
    w->clock += 3600 * WEIR_SECOND;
    w->loop.now_is_old = true;
}

TEST_WITH(test_S2_allowed_and_refused, begin, end)
{
    struct world *w = *state;
    const char *yes = request(w, "GET /v1/auth", "X-Forwarded-For: 192.0.2.7\r\n", NULL);

    assert_int_equal(status_of(yes), 200);
    assert_string_equal(header_of(yes, "Content-Length"), "0");
    assert_string_equal(header_of(yes, "RateLimit"), "\"per-ip\";r=1;t=5");
    assert_string_equal(header_of(yes, "Weir-Level"), "0");
    assert_int_equal(
        status_of(request(w, "POST /v1/auth", "X-Forwarded-For: 192.0.2.7\r\n", "ignored")), 200);
    const char *no = request(w, "GET /v1/auth", "X-Forwarded-For: 192.0.2.7\r\n", NULL);
    assert_answer(no, 429, "\"code\":\"weir-limited\"");
    assert_string_equal(header_of(no, "Retry-After"), "5");
    no = request(w, "GET /v1/auth?refuse=403", "X-Forwarded-For: 192.0.2.7\r\n", NULL);
    assert_answer(no, 403, "\"code\":\"weir-limited\"");
    assert_string_equal(header_of(no, "Retry-After"), "5");
    assert_answer(request(w, "GET /v1/auth?refuse=418", "", NULL), 400,
                  "refuse must be 401, 403, 429 or 503");
    no = request(w, "HEAD /v1/auth?refuse=401", "X-Forwarded-For: 192.0.2.7\r\n", NULL);
    assert_int_equal(status_of(no), 401);
    assert_string_equal(body_of(no), "");
}

/* From the right, the first that is not a trusted proxy; what is left of it anybody may have
 * written. */
TEST_WITH(test_S2_address_of_the_client, begin, end)
{
    struct world *w = *state;

    assert_ip(w, "X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1");
    assert_ip(w, "X-Forwarded-For: 198.51.100.9, 192.0.2.2\r\n", "192.0.2.2");
    assert_ip(w, "X-Forwarded-For: 198.51.100.9, 192.0.2.3, 10.1.2.3,10.0.0.1\r\n", "192.0.2.3");
    assert_ip(w, "X-Forwarded-For: 198.51.100.9\r\nX-Forwarded-For: 192.0.2.4\r\n", "192.0.2.4");
    assert_ip(w, "X-Forwarded-For: 192.0.2.5\r\nX-Forwarded-For: 10.0.0.1\r\n", "192.0.2.5");
    assert_ip(w, "X-Forwarded-For: 10.0.0.7, 10.0.0.1\r\n", "10.0.0.7");
    assert_ip(w, "X-Forwarded-For: 192.0.2.6:4711\r\n", "192.0.2.6");
    assert_ip(w, "X-Forwarded-For: [2001:db8::7]:4711\r\n", "2001:db8::7");
    assert_ip(w, "X-Forwarded-For: 2001:db8::8\r\n", "2001:db8::8");
    assert_ip(w, "X-Real-IP: 192.0.2.9\r\n", "192.0.2.9");
    assert_ip(w, "X-Real-IP: 192.0.2.10\r\nX-Forwarded-For: 192.0.2.10\r\n", "192.0.2.10");
    assert_ip(w, "X-Real-IP: 10.0.0.1\r\nX-Forwarded-For: 192.0.2.11\r\n", "192.0.2.11");
    assert_ip(w, "X-Real-IP: nonsense\r\nX-Forwarded-For: 192.0.2.12\r\n", "192.0.2.12");
    assert_ip(w, "", "127.0.0.1");
}

TEST_WITH(test_S2_addresses_that_are_none, begin, end)
{
    struct world *w = *state;

    assert_ip(w, "X-Forwarded-For: 192.0.2.1, nonsense\r\n", "?not-an-address");
    assert_ip(w, "X-Forwarded-For: 192.0.2.1, fe80::1%eth0, 10.0.0.3\r\n", "?not-an-address");
    assert_ip(w, "X-Forwarded-For: 192.0.2.1,\r\n", "127.0.0.1");
    assert_ip(w, "X-Forwarded-For: \r\n", "127.0.0.1");
    assert_ip(w, "X-Forwarded-For: 192.0.2.1:x\r\n", "?not-an-address");
    assert_ip(w, "X-Real-IP: unix:\r\n", "?not-an-address");
    assert_ip(w, "X-Real-IP: nonsense\r\nX-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1");
}

/* The proxy wrote one of them, and the client the other: nobody can tell which. */
TEST_WITH(test_S2_addresses_that_differ, begin, end)
{
    struct world *w = *state;
    static const char *const headers[] = {
        "X-Real-IP: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n",
        "X-Forwarded-For: 192.0.2.2, 10.0.0.1\r\nX-Real-IP: 192.0.2.1\r\n",
        "X-Real-IP: 192.0.2.1\r\nX-Real-IP: 192.0.2.2\r\n",
        "X-Real-IP: 192.0.2.1\r\nX-Forwarded-For: unknown\r\n",
    };

    for (size_t i = 0; i < COUNT_OF(headers); i++)
        assert_answer(request(w, "GET /v1/auth", headers[i], NULL), 400, "differ");
}

/* A backend takes the first, the last, or both: there is no value to count under. */
TEST_WITH(test_S2_a_header_of_the_rules_comes_once, begin, end)
{
    struct world *w = *state;

    assert_answer(request(w, "GET /v1/auth", "X-App: a\r\nAccept: x\r\nx-app: b\r\n", NULL), 400,
                  "x-app");
    assert_answer(request(w, "GET /v1/auth", "X-App: a\r\nX-App: a\r\n", NULL), 400, "twice");
    assert_answer(
        request(w, "GET /v1/auth",
                "Host: a\r\nX-Forwarded-Host: a.example\r\nX-Forwarded-Host: b.example\r\n", NULL),
        400, "x-forwarded-host");
    assert_answer(
        request(w, "GET /v1/auth", "Host: a\r\nX-Forwarded-Host: a.example, b.example\r\n", NULL),
        400, "x-forwarded-host");
    assert_int_equal(
        status_of(request(w, "GET /v1/auth",
                          "Host: a\r\nX-Forwarded-Host: a.example ,, a.example\r\n", NULL)),
        200);
    assert_int_equal(status_of(request(w, "GET /v1/auth",
                                       "Accept: a\r\nAccept: b\r\nCookie: a=1\r\n"
                                       "Cookie: b=2\r\n",
                                       NULL)),
                     200); /* no rule looks at these */
}

/* A client that is no trusted proxy describes only itself. */
TEST_WITH(test_S2_forged_headers_are_ignored, begin, end)
{
    struct world *w = *state;

    snprintf(w->conn.peer, sizeof(w->conn.peer), "198.51.100.1");
    w->settings.check_token = "secret";
    assert_ip(w,
              "Authorization: Bearer secret\r\nX-Forwarded-For: 192.0.2.1\r\nX-Real-IP: "
              "192.0.2.1\r\nX-Original-URI: /\r\nX-Forwarded-Uri: "
              "/b\r\n",
              "198.51.100.1");
}

TEST_WITH(test_S2_unix_socket_is_as_near_as_the_loopback, begin, end)
{
    struct world *w = *state;

    w->conn.peer[0] = '\0';
    assert_ip(w, "", "127.0.0.1");
    assert_ip(w, "X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1");
}

TEST_WITH(test_S2_uri_and_method, begin, end)
{
    struct world *w = *state;
    static const char *const proxies[] = {
        "X-Original-URI: /login?x=1\r\nX-Original-Method: POST\r\n",                 /* nginx */
        "X-Original-URL: https://shop.example/login\r\nX-Original-Method: POST\r\n", /* ingress-nginx
                                                                                      */
        "X-Original-URL: https://a?b#c/login\r\nX-Original-Method: POST\r\n", /* whatever Host says */
        "X-Forwarded-Uri: /login\r\nX-Forwarded-Method: POST\r\n",            /* Traefik, Caddy */
        "X-Forwarded-Uri: /login\r\nX-Original-URI: /login\r\nX-Forwarded-Method: POST\r\n",
        "X-Original-URL: http://shop.example/login\r\nX-Original-URI: /login\r\nX-Original-Method: "
        "POST\r\n",
    };

    for (size_t i = 0; i < COUNT_OF(proxies); i++) {
        char line[64], headers[256];
        snprintf(line, sizeof(line), "GET /v1/auth?account=a%zu", i);
        snprintf(headers, sizeof(headers), "X-Forwarded-For: 203.0.1.%zu\r\n%s", i, proxies[i]);
        assert_int_equal(passes(w, line, headers), 1);
    }
    assert_int_equal(passes(w, "GET /v1/auth?account=b",
                            "X-Forwarded-For: 203.0.2.1\r\nX-Original-URI: /login\r\n"),
                     2);
}

/* One of them was sent by the client and passed on: nobody can tell which. */
TEST_WITH(test_S2_forged_uri_beside_the_proxys_own, begin, end)
{
    struct world *w = *state;

    assert_answer(
        request(w, "GET /v1/auth", "X-Forwarded-Uri: /login\r\nX-Original-URI: /\r\n", NULL), 400,
        "x-original-uri and x-forwarded-uri differ");
    assert_answer(
        request(w, "GET /v1/auth", "X-Original-URI: /login\r\nX-Original-URI: /\r\n", NULL), 400,
        "differ");
    assert_answer(
        request(w, "GET /v1/auth", "X-Original-Method: GET\r\nX-Forwarded-Method: POST\r\n", NULL),
        400, "x-original-method and x-forwarded-method differ");
}

TEST_WITH(test_S2_headers_and_query_are_attributes, begin, end)
{
    struct world *w = *state;

    assert_int_equal(passes(w, "GET /v1/auth", "X-Forwarded-For: 203.0.1.1\r\nX-App: one\r\n"), 1);
    assert_answer(request(w, "POST /v1/check", "", "{\"attributes\":{\"header.X-App\":\"one\"}}"),
                  429, "\"rule\":\"app\"");
    assert_answer(request(w, "GET /v1/auth?account=mall%6fry", "", NULL), 403, "weir-denied");
    assert_answer(request(w, "GET /v1/auth?account=%zz", "", NULL), 400, "broken escape");
}

/* A proxy's variable in the query may be filled with & and more by a client: nothing that it adds
 * describes the request, or comes twice. */
TEST_WITH(test_S2_query_with_what_a_client_has_added, begin, end)
{
    struct world *w = *state;
    static const char *const added[] = {
        "ip=9.9.9.9",     "uri=/free",      "method=GET", "host=a",  "scheme=https",
        "header.x-app=b", "header.X-App=b", "%69p=9",     "ip=",     "site=b",
        "site=",          "s%69te=b",       "refuse=403", "header.", "ip"
    };
    char line[128];

    for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
        snprintf(line, sizeof(line), "GET /v1/auth?refuse=429&site=a&%s", added[i]);
        assert_answer(request(w, line, "X-Forwarded-For: 192.0.2.7\r\n", NULL), 400,
                      "put values that a client can choose into headers");
    }
    assert_answer(request(w, "GET /v1/auth?site=&site=a", "", NULL), 400,
                  "the query has twice the parameter 'site'");
    assert_answer(request(w, "GET /v1/auth?ip=9.9.9.9", "", NULL), 400,
                  "the query has the parameter 'ip'");
    assert_answer(request(w, "GET /v1/auth?refuse=", "", NULL), 400,
                  "refuse must be 401, 403, 429 or 503, not ''");
    assert_int_equal(
        passes(w, "GET /v1/auth?refuse=429&site=a&hosts=b&ipx=c", "X-Forwarded-For: 192.0.2.7\r\n"),
        2);
}

/* Backends that follow CGI read X_App as X-App. */
TEST_WITH(test_S2_header_with_underscores, begin, end)
{
    struct world *w = *state;

    assert_int_equal(passes(w, "GET /v1/auth", "X-Forwarded-For: 203.0.1.1\r\nX_App: one\r\n"), 1);
    assert_answer(request(w, "POST /v1/check", "", "{\"attributes\":{\"header.x-app\":\"one\"}}"),
                  429, "\"rule\":\"app\"");
    assert_answer(request(w, "GET /v1/auth",
                          "X-Forwarded-For: 203.0.1.2\r\nX-App: a\r\nx_app: one\r\n", NULL),
                  400, "the header x-app comes twice");
}

/* Many headers must not push the one out that a rule counts by. */
TEST_WITH(test_S2_header_behind_many_others, begin, end)
{
    struct world *w = *state;
    char headers[4096] = "X-Forwarded-For: 203.0.1.1\r\n";

    for (int i = 0; i < 95; i++)
        sprintf(headers + strlen(headers), "X-Junk-%d: x\r\n", i);
    strcat(headers, "X-App: one\r\n");
    assert_int_equal(passes(w, "GET /v1/auth", headers), 1);
}

TEST_WITH(test_S2_query_is_bounded, begin, end)
{
    struct world *w = *state;
    char line[5000] = "GET /v1/auth?";

    for (int i = 0; i < 33; i++)
        sprintf(line + strlen(line), "&p%d=1", i);
    assert_answer(request(w, line, "", NULL), 400, "more than 32 parameters");
    strcpy(line, "GET /v1/auth?");
    memset(line + strlen(line), 'x', 4200);
    assert_answer(request(w, line, "", NULL), 414, "more than 4096 bytes");
}

/* On the loopback any page could ask, so Host and Origin matter there; but here they are the
 * headers of a request to somebody else. */
TEST_WITH(test_S2_host_and_origin_are_the_clients, begin, end)
{
    struct world *w = *state;

    assert_int_equal(
        status_of(request(
            w, "GET /v1/auth",
            "Host: shop.example\r\nOrigin: https://shop.example\r\nX-Forwarded-For: 192.0.2.1\r\n",
            NULL)),
        200);
}

/* The client's own Authorization goes to the backend: it is no token of ours, and no mistake. */
TEST_WITH(test_S2_authorization_of_the_client, begin, end)
{
    struct world *w = *state;

    w->settings.admin_token = "secret";
    assert_int_equal(
        status_of(request(w, "GET /v1/auth",
                          "Authorization: Bearer theirs\r\nX-Forwarded-For: 192.0.2.1\r\n", NULL)),
        200);
    w->conn.role = WEIR__ROLE_NONE;
    assert_int_equal(
        status_of(request(w, "GET /v1/auth",
                          "Authorization: Bearer theirs\r\nX-Forwarded-For: 192.0.2.1\r\n", NULL)),
        401);
    assert_int_equal(
        status_of(request(w, "GET /v1/auth",
                          "Authorization: Bearer secret\r\nX-Forwarded-For: 192.0.2.1\r\n", NULL)),
        200);
}

/* A proxy that is set up wrongly is answered as ever, and what is wrong is told once, not for each
 * request. */
static void asks_from(struct world *w, const char *peer, const char *headers)
{
    snprintf(w->conn.peer, sizeof(w->conn.peer), "%s", peer);
    for (int i = 0; i < 3; i++)
        request(w, "GET /v1/auth", headers, NULL);
}

TEST_WITH(test_R14_a_proxy_set_up_wrongly_is_told_once, begin, end)
{
    struct world *w = *state;
    struct complaints said;
    const char *good = "X-Forwarded-For: 192.0.2.1\r\nX-Original-URI: /\r\n";

    w->server.proxy_doubts = weir__proxy_doubts_create();
    complaints_begin(&said);
    asks_from(w, "198.51.100.1", good);
    asks_from(w, "198.51.100.2", "X-Forwarded-Proto: http\r\n");
    asks_from(w, "10.0.0.1", good);
    asks_from(w, "10.0.0.2", "X-Original-URI: /\r\n");
    asks_from(w, "10.0.0.2", "X-Forwarded-For: 192.0.2.1\r\n");
    asks_from(w, "10.0.0.2", "X-Real-IP: 192.0.2.1\r\nX-Forwarded-Uri: /\r\n");
    asks_from(w, "", "X-Original-URI: /\r\n");
    assert_string_equal(
        complaints_end(&said),
        "weir serve: 198.51.100.1 sends x-forwarded-for and is not in trusted-proxies: it is not "
        "believed, and all its clients count as one\n"
        "weir serve: 10.0.0.2 asks /v1/auth without x-forwarded-for: all its clients count as one\n"
        "weir serve: 10.0.0.2 asks /v1/auth without x-original-uri: rules about uri do nothing "
        "there\n"
        "weir serve: a unix socket asks /v1/auth without x-forwarded-for: all its clients count as "
        "one\n");
    const char *page = request(w, "GET /metrics", "", NULL);
    assert_has(page, "weir_proxy_doubts_total{kind=\"not-trusted\"} 3\n");
    assert_has(page, "weir_proxy_doubts_total{kind=\"no-client\"} 6\n");
    assert_has(page, "weir_proxy_doubts_total{kind=\"no-uri\"} 3\n");
    weir__proxy_doubts_destroy(w->server.proxy_doubts);
}

/* However many peers there are. */
TEST_WITH(test_R14_lines_about_proxies_are_bounded, begin, end)
{
    struct world *w = *state;
    struct complaints said;
    char peer[32];

    w->server.proxy_doubts = weir__proxy_doubts_create();
    complaints_begin(&said);
    for (int i = 1; i <= WEIR__PROXY_DOUBTS + 9; i++) {
        snprintf(peer, sizeof(peer), "198.51.100.%d", i);
        asks_from(w, peer, "X-Forwarded-For: 192.0.2.1\r\n");
    }
    const char *text = complaints_end(&said);
    assert_int_equal(count_of(text, "\n"), WEIR__PROXY_DOUBTS);
    assert_has(text, "198.51.100.16 sends x-forwarded-for and is not in trusted-proxies: it is not "
                     "believed, and all its clients count as one (no other peers are told about: "
                     "see weir_proxy_doubts_total)\n");
    complaints_begin(&said); /* one that is trusted is told about all the same */
    asks_from(w, "10.0.0.2", "X-Original-URI: /\r\n");
    assert_has(complaints_end(&said), "10.0.0.2 asks /v1/auth without x-forwarded-for");
    weir__proxy_doubts_destroy(w->server.proxy_doubts);
}

/* No rule looks at ip or uri: then nothing is missing. */
TEST_WITH(test_R14_what_no_rule_looks_at_is_not_missed, begin, end)
{
    static const char rules[] = "version: 1\nrules:\n  - { name: app, key: \"{header.x-app}\", "
                                "limit: 1/60 }\n";
    struct world *w = *state;
    struct complaints said;
    struct weir_error error = { 0 };

    w->server.proxy_doubts = weir__proxy_doubts_create();
    assert_int_equal(
        weir__in_force_set(w->server.in_force, rules, sizeof(rules) - 1, START, NULL, &error),
        WEIR_OK);
    complaints_begin(&said);
    asks_from(w, "10.0.0.2", "X-App: a\r\n");
    asks_from(w, "198.51.100.1", "X-App: a\r\nX-Forwarded-For: 192.0.2.1\r\n");
    assert_string_equal(complaints_end(&said), "");
    weir__proxy_doubts_destroy(w->server.proxy_doubts);
}
