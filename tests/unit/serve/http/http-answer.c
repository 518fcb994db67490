/* http-answer.c -- heads and bodies, byte by byte; and the fields that RFC 9651 and the RateLimit
 * draft have opinions about. */
#include "unit/test.h"

#include "unit/http-world.h"

static struct weir__http_manner manner_of(struct world *w)
{
    return (struct weir__http_manner){ .loop = &w->loop, .out = &w->answer };
}

static const char *answer_of(struct world *w)
{
    weir__buffer_add(&w->answer, "", 1);
    w->answer.len = 0;
    return w->answer.bytes;
}

static struct weir_ruling limited(void)
{
    return (struct weir_ruling){ .decision = { .reason = WEIR_LIMITED,
                                               .limit = 10,
                                               .retry = 5200 * WEIR_MILLISECOND,
                                               .reset = 60 * WEIR_SECOND },
                                 .rule = "per-ip",
                                 .count = 10,
                                 .window = 60 * WEIR_SECOND,
                                 .applied = 2,
                                 .level = 3 };
}

TEST_WITH(test_S2_answer, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);

    weir__http_json(&m, 200, "{}");
    assert_string_equal(answer_of(w), "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 "
                                      "GMT\r\nContent-Type: application/json\r\n"
                                      "Content-Length: 2\r\n\r\n{}");
    m.head_only = m.close = true;
    weir__http_json(&m, 404, "{}");
    assert_string_equal(answer_of(w), "HTTP/1.1 404 Not Found\r\nDate: Tue, 14 Nov 2023 22:13:20 "
                                      "GMT\r\nContent-Type: application/json\r\n"
                                      "Content-Length: 2\r\nConnection: close\r\n\r\n");
    m = manner_of(w);
    m.old = true;
    w->clock += 12 * 3600 * WEIR_SECOND;
    w->loop.now_is_old = true;
    weir__http_json(&m, 200, "");
    assert_has(answer_of(w), "Date: Wed, 15 Nov 2023 10:13:20 GMT\r\nContent-Type: "
                             "application/json\r\nContent-Length: 0\r\n"
                             "Connection: keep-alive\r\n\r\n");
}

/* Whatever a fallback says. */
TEST_WITH(test_S2_statuses_without_a_body, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    static const int statuses[] = { 100, 204, 304 };

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        weir__http_json(&m, statuses[i], "{}");
        const char *answer = answer_of(w);
        assert_null(strstr(answer, "Content-"));
        assert_string_equal(body_of(answer), "");
    }
}

TEST_WITH(test_S2_problem, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);

    weir__http_problem(&m, 400, "X-A: b\r\n", "say \"%s\"", "please");
    const char *answer = answer_of(w);
    assert_string_equal(header_of(answer, "Content-Type"), "application/problem+json");
    assert_string_equal(header_of(answer, "X-A"), "b");
    assert_string_equal(body_of(answer), "{\"type\":\"about:blank\",\"title\":\"Bad "
                                         "Request\",\"status\":400,\"code\":\"bad-request\","
                                         "\"detail\":\"say \\\"please\\\"\"}");
}

/* A refusal by rules has a code of its own. */
TEST_WITH(test_S2_codes_of_problems_are_no_refusals, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);

    for (int status = 400; status < 600; status++) {
        weir__http_problem(&m, status, NULL, "x");
        const char *answer = answer_of(w);
        assert_has(answer, "\"code\":\"");
        assert_null(strstr(answer, "weir-"));
    }
}

TEST_WITH(test_S2_allowed, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    struct weir_ruling r = limited();

    r.decision = (struct weir_decision){
        .allowed = true, .limit = 10, .remaining = 9, .reset = 6 * WEIR_SECOND + 1
    };
    r.level = 0;
    weir__http_ruling(&m, &r, 0, false);
    const char *answer = answer_of(w);
    assert_int_equal(status_of(answer), 200);
    assert_string_equal(header_of(answer, "RateLimit"), "\"per-ip\";r=9;t=7");
    assert_string_equal(header_of(answer, "RateLimit-Policy"), "\"per-ip\";q=10;w=60");
    assert_string_equal(header_of(answer, "Weir-Level"), "0");
    assert_null(header_of(answer, "Retry-After"));
    assert_string_equal(body_of(answer), "{\"allowed\":true,\"rule\":\"per-ip\",\"limit\":10,"
                                         "\"remaining\":9,\"retry_ms\":null,\"reset_ms\":6001,"
                                         "\"wait_ms\":0,\"level\":0,\"reason\":\"granted\","
                                         "\"applied\":2,\"shadow\":null,\"list\":null}");
}

TEST_WITH(test_S2_refused, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    struct weir_ruling r = limited();

    weir__http_ruling(&m, &r, 0, true);
    const char *answer = answer_of(w);
    assert_int_equal(status_of(answer), 429);
    assert_string_equal(header_of(answer, "Content-Type"), "application/problem+json");
    assert_string_equal(header_of(answer, "Retry-After"), "6");
    assert_string_equal(header_of(answer, "RateLimit"), "\"per-ip\";r=0;t=6");
    assert_string_equal(header_of(answer, "RateLimit-Policy"), "\"per-ip\";q=10;w=60");
    assert_string_equal(header_of(answer, "Weir-Level"), "3");
    assert_string_equal(body_of(answer),
                        "{\"type\":\"https://iana.org/assignments/"
                        "http-problem-types#quota-exceeded\",\"title\":\"Limit reached\","
                        "\"status\":429,\"code\":\"weir-limited\",\"detail\":\"per-ip allows 10 in "
                        "1m; try again in 5.2s\","
                        "\"violated-policies\":[\"per-ip\"],\"allowed\":false,\"rule\":\"per-ip\","
                        "\"limit\":10,\"remaining\":0,"
                        "\"retry_ms\":5200,\"reset_ms\":60000,\"wait_ms\":0,\"level\":3,\"reason\":"
                        "\"limited\",\"applied\":2,"
                        "\"shadow\":null,\"list\":null}");
    weir__http_ruling(&m, &r, 403, true);
    answer = answer_of(w);
    assert_int_equal(status_of(answer), 403);
    assert_has(answer, "\"status\":403,\"code\":\"weir-limited\"");
    assert_string_equal(header_of(answer, "Retry-After"), "6");
    r.banned_until = WEIR_SECOND; /* by this very refusal */
    r.decision.retry = 900 * WEIR_SECOND;
    weir__http_ruling(&m, &r, 0, true);
    assert_has(answer_of(w), "\"code\":\"weir-limited\",\"detail\":\"per-ip allows 10 in 1m; "
                             "now banned, try again in 15m\"");
}

/* A bucket's burst may take longer to fill than its window. */
TEST_WITH(test_S2_t_is_the_reset_or_the_retry, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    struct weir_ruling r = limited();

    r.decision = (struct weir_decision){
        .allowed = true, .limit = 10, .remaining = 9, .reset = 3600 * WEIR_SECOND
    };
    weir__http_ruling(&m, &r, 0, false);
    const char *answer = answer_of(w);
    assert_string_equal(header_of(answer, "RateLimit"), "\"per-ip\";r=9;t=3600");
    assert_string_equal(header_of(answer, "RateLimit-Policy"), "\"per-ip\";q=10;w=60");
    assert_has(answer, "\"reset_ms\":3600000,");
    r.decision =
        (struct weir_decision){ .reason = WEIR_LIMITED, .limit = 10, .retry = 3600 * WEIR_SECOND };
    weir__http_ruling(&m, &r, 0, false);
    assert_string_equal(header_of(answer_of(w), "RateLimit"), "\"per-ip\";r=0;t=3600");
}

/* At least a second, whole seconds up, and none if it never passes. */
TEST_WITH(test_S2_retry_after, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);

    static const struct {
        weir_time retry;
        const char *after, *rest;
    } rows[] = {
        { 0, "1", "\"per-ip\";r=0;t=1" },
        { 1, "1", "\"per-ip\";r=0;t=1" },
        { WEIR_SECOND, "1", "\"per-ip\";r=0;t=1" },
        { WEIR_SECOND + 1, "2", "\"per-ip\";r=0;t=2" },
        { WEIR_NEVER, NULL, "\"per-ip\";r=0" },
        { WEIR_NEVER - 1, "9223372037", "\"per-ip\";r=0;t=9223372037" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_ruling r = limited();
        r.decision.retry = rows[i].retry;
        weir__http_ruling(&m, &r, 0, false);
        const char *answer = answer_of(w);
        if (rows[i].after)
            assert_string_equal(header_of(answer, "Retry-After"), rows[i].after);
        else
            assert_null(header_of(answer, "Retry-After"));
        assert_string_equal(header_of(answer, "RateLimit"), rows[i].rest);
    }
}

/* RFC 9651 has integers of fifteen digits; w is a positive one; what is left is never below
 * zero. */
TEST_WITH(test_S2_structured_fields_stay_within_their_bounds, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    struct weir_ruling r = limited();

    r.decision =
        (struct weir_decision){ .allowed = true, .limit = INT64_MAX, .remaining = INT64_MAX };
    r.count = INT64_MAX;
    r.window = WEIR_MILLISECOND;
    weir__http_ruling(&m, &r, 0, false);
    const char *answer = answer_of(w);
    assert_string_equal(header_of(answer, "RateLimit"), "\"per-ip\";r=999999999999999;t=0");
    assert_string_equal(header_of(answer, "RateLimit-Policy"), "\"per-ip\";q=999999999999999;w=1");
    r.decision.remaining = -5;
    weir__http_ruling(&m, &r, 0, false);
    answer = answer_of(w);
    assert_string_equal(header_of(answer, "RateLimit"), "\"per-ip\";r=0;t=0");
    assert_has(answer, "\"remaining\":0,");
}

TEST_WITH(test_R4_banned, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    struct weir_ruling r = { .decision = { .reason = WEIR_BANNED,
                                           .retry = 600 * WEIR_SECOND,
                                           .reset = 600 * WEIR_SECOND },
                             .rule = "login",
                             .level = 3 };

    weir__http_ruling(&m, &r, 0, false);
    const char *answer = answer_of(w);
    assert_int_equal(status_of(answer), 429);
    assert_string_equal(header_of(answer, "Retry-After"), "600");
    assert_null(header_of(answer, "RateLimit-Policy"));
    assert_has(
        answer,
        "#abnormal-usage-detected\",\"title\":\"Banned\",\"status\":429,\"code\":\"weir-banned\"");
    assert_has(answer, "\"violated-policies\":[\"login\"],\"allowed\":false,\"rule\":\"login\","
                       "\"limit\":null,\"remaining\":null,");
    assert_has(answer, "\"detail\":\"login: banned for 10m\",");
    r.decision.retry = WEIR_NEVER;
    weir__http_ruling(&m, &r, 0, false);
    assert_has(answer_of(w), "\"detail\":\"login: banned\",");
}

TEST_WITH(test_R3_denied, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    struct weir_ruling r = { .decision = { .reason = WEIR_DENIED, .retry = WEIR_NEVER },
                             .list = "deny",
                             .level = 3 };

    weir__http_ruling(&m, &r, 0, false);
    const char *answer = answer_of(w);
    assert_int_equal(status_of(answer), 403);
    assert_null(header_of(answer, "Retry-After"));
    assert_null(header_of(answer, "RateLimit"));
    assert_has(answer, "\"code\":\"weir-denied\"");
    assert_null(strstr(answer, "violated-policies"));
    assert_has(answer, "\"list\":\"deny\"}");
}

TEST_WITH(test_R1_no_rule_applies, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    struct weir_ruling r = { .decision = { .allowed = true } };

    weir__http_ruling(&m, &r, 0, true);
    const char *answer = answer_of(w);
    assert_string_equal(answer, "HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 "
                                "GMT\r\nContent-Length: 0\r\nWeir-Level: 0\r\n\r\n");
}

/* Names of rules have 40 bytes at the most; all that may be longer is bounded. */
TEST_WITH(test_longest_ruling, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    char name[64] = "";

    memset(name, 'n', 63);
    struct weir_ruling r = { .decision = { .reason = WEIR_LIMITED,
                                           .limit = INT64_MAX,
                                           .remaining = INT64_MAX,
                                           .retry = WEIR_NEVER - 1,
                                           .reset = WEIR_NEVER - 1 },
                             .rule = name,
                             .shadow = name,
                             .list = "allow",
                             .count = INT64_MAX,
                             .window = WEIR_NEVER - 1,
                             .applied = UINT16_MAX,
                             .level = 3 };
    weir__http_ruling(&m, &r, 0, false);
    const char *answer = answer_of(w);
    assert_int_equal(strtol(header_of(answer, "Content-Length"), NULL, 10),
                     strlen(body_of(answer)));
    char json[WEIR__HTTP_RULING_MAX];
    assert_true(weir__http_ruling_json(json, &r) < json + sizeof(json) - 2);
}

TEST_WITH(test_L13_decision, begin, end)
{
    struct world *w = *state;
    struct weir__http_manner m = manner_of(w);
    static struct weir__verb_call c;

    c.taken.policy = (struct weir__text){ "5/1 \"x\\", 7 };
    c.taken.unit = 1;
    c.taken.answer = (struct weir__adhoc_answer){
        .decision = { .allowed = true, .limit = 5, .remaining = 4, .reset = 1500, .wait = 3 },
        .reservation = "r1"
    };
    weir__http_decision(&m, &c);
    const char *answer = answer_of(w);
    assert_string_equal(body_of(answer), "{\"allowed\":true,\"limit\":5,\"remaining\":4,\"retry_"
                                         "ns\":null,\"reset_ns\":1500,\"wait_ns\":3,"
                                         "\"reason\":\"granted\",\"reservation\":\"r1\"}");
    assert_string_equal(header_of(answer, "RateLimit"), "\"5/1 \\\"x\\\\\";r=4;t=1");
    assert_string_equal(header_of(answer, "RateLimit-Policy"), "\"5/1 \\\"x\\\\\";q=5");
    c.taken.answer.decision = (struct weir_decision){
        .reason = WEIR_TOO_BIG, .limit = 5, .remaining = 5, .retry = WEIR_NEVER
    };
    c.taken.unit = WEIR_MILLISECOND;
    c.taken.policy = (struct weir__text){ "n\xc3\xa4me", 5 };
    weir__http_decision(&m, &c);
    answer = answer_of(w);
    assert_int_equal(status_of(answer), 429);
    assert_null(header_of(answer, "RateLimit"));
    assert_null(header_of(answer, "Retry-After"));
    assert_has(
        answer,
        "\"code\":\"weir-limited\",\"detail\":\"an ask as big as this one never "
        "passes\",\"allowed\":false,\"limit\":5,"
        "\"remaining\":5,\"retry_ms\":null,\"reset_ms\":0,\"wait_ms\":0,\"reason\":\"too-big\"}");
}
