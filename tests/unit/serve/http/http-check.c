/* http-check.c -- check, batch, take, peek, give, reserve, settle and the clock, from bytes to
 * bytes. */
#include "unit/test.h"

#include "unit/http-world.h"

#include "wire/json.h"

static const char *check(struct world *w, const char *body)
{
    return request(w, "POST /v1/check", "", body);
}

TEST_WITH(test_S2_check, begin, end)
{
    struct world *w = *state;

    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\",\"uri\":\"/\"}}"), 200,
                  "{\"allowed\":true,\"rule\":\"per-ip\",\"limit\":2,\"remaining\":1,");
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"}}"), 200,
                  "RateLimit: \"per-ip\";r=0;t=10\r\nRateLimit-Policy: \"per-ip\";q=2;w=10\r\n");
    const char *no = check(w, "{\"attributes\":{\"ip\":\"::ffff:192.0.2.7\"}}");
    assert_answer(no, 429, "\"code\":\"weir-limited\"");
    assert_string_equal(header_of(no, "Retry-After"), "5");
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.8\"}}"), 200, "\"remaining\":1,");
    w->clock += 5 * WEIR_SECOND;
    w->loop.now_is_old = true;
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"}}"), 200, "\"remaining\":0,");
}

TEST_WITH(test_S3_level, begin, end)
{
    struct world *w = *state;

    assert_string_equal(
        header_of(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"}}"), "Weir-Level"), "0");
    assert_string_equal(
        header_of(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"}}"), "Weir-Level"), "2");
    assert_string_equal(
        header_of(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"}}"), "Weir-Level"), "3");
}

TEST_WITH(test_R1_check_that_no_rule_applies_to, begin, end)
{
    struct world *w = *state;
    const char *yes = check(w, "{}");

    assert_answer(yes, 200,
                  "{\"allowed\":true,\"rule\":null,\"limit\":null,\"remaining\":null,\"retry_ms\":"
                  "null,\"reset_ms\":0,\"wait_ms\":0,\"level\":0,"
                  "\"reason\":\"granted\",\"applied\":0,\"shadow\":null,\"list\":null}");
    assert_null(header_of(yes, "RateLimit"));
}

TEST_WITH(test_R3_lists, begin, end)
{
    struct world *w = *state;

    assert_answer(check(w, "{\"attributes\":{\"ip\":\"203.0.113.9\"},\"cost\":100}"), 200,
                  "\"list\":\"allow\"");
    const char *no = check(w, "{\"attributes\":{\"account\":\"mallory\"}}");
    assert_answer(no, 403, "\"code\":\"weir-denied\"");
    assert_null(header_of(no, "Retry-After"));
}

TEST_WITH(test_R4_ban, begin, end)
{
    struct world *w = *state;
    const char *body =
        "{\"attributes\":{\"uri\":\"/login\",\"method\":\"POST\",\"account\":\"ann\"}}";

    assert_answer(check(w, body), 200, "\"rule\":\"login\"");
    assert_answer(check(w, body), 429, "\"code\":\"weir-limited\"");
    assert_answer(check(w, body), 429, "\"code\":\"weir-banned\"");
    assert_string_equal(header_of(w->answer.bytes, "Retry-After"), "600");
}

TEST_WITH(test_S2_check_cost_and_wait, begin, end)
{
    struct world *w = *state;

    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"},\"cost\":3}"), 429,
                  "\"reason\":\"too-big\"");
    assert_null(header_of(w->answer.bytes, "Retry-After"));
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"},\"cost\":0}"), 200,
                  "\"remaining\":2,");
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"},\"cost\":2}"), 200,
                  "\"remaining\":0,");
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"},\"wait_ms\":5000}"), 200,
                  "\"wait_ms\":5000,");
}

/* A retry with the same id is answered the same and charged once. */
TEST_WITH(test_S2_ask_id, begin, end)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++)
        assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"},\"id\":\"a\"}"), 200,
                      "\"remaining\":1,");
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"},\"id\":\"b\"}"), 200,
                  "\"remaining\":0,");
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.9\"},\"id\":\"a\"}"), 400,
                  "\"code\":\"bad-request\"");
}

TEST_WITH(test_S2_check_that_is_wrong, begin, end)
{
    struct world *w = *state;
    char body[400] = "{\"id\":\"";

    assert_answer(check(w, "{\"attribtues\":{}}"), 400, "did you mean 'attributes'?");
    assert_answer(check(w, "{\"attribtues\":{\"ip\":\"192.0.2.7\"}}"), 400,
                  "unknown member 'attribtues'; did you mean 'attributes'?");
    assert_answer(check(w, ""), 400, "the body is empty");
    assert_answer(check(w, "{\"cost\":-1}"), 400, "'cost' must be a whole number");
    assert_answer(check(w, "{\"cost\":\"5\"}"), 400, "to 9223372036854775807, not a string");
    memset(body + 7, 'x', 129);
    strcat(body, "\"}");
    assert_answer(check(w, body), 400, "'id' has at most 128 bytes");
}

/* Never "did you mean 'id'": all asks of a client would be one. */
TEST_WITH(test_S2_check_with_attributes_at_the_top, begin, end)
{
    struct world *w = *state;
    static const char *const names[] = {
        "ip", "i", "uid", "host", "account", "header.x-app", "ID"
    };
    static const char *const near[][2] = { { "atributes", "attributes" },
                                           { "costs", "cost" },
                                           { "wait", "wait_ms" } };
    char body[200], says[200];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(body, sizeof(body), "{\"%s\":\"192.0.2.7\"}", names[i]);
        snprintf(says, sizeof(says),
                 "\"detail\":\"unknown member '%s'; attributes go into \\\"attributes\\\": "
                 "{\\\"attributes\\\":{\\\"%s\\\":...}}\"",
                 names[i], names[i]);
        assert_answer(check(w, body), 400, says);
        snprintf(body, sizeof(body), "{\"checks\":[{\"%s\":1}]}", names[i]);
        assert_answer(request(w, "POST /v1/check/batch", "", body), 400, "check 0: unknown member");
        assert_null(strstr(w->answer.bytes, "did you mean"));
    }
    for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++) {
        snprintf(body, sizeof(body), "{\"%s\":1}", near[i][0]);
        snprintf(says, sizeof(says), "unknown member '%s'; did you mean '%s'?", near[i][0],
                 near[i][1]);
        assert_answer(check(w, body), 400, says);
    }
    assert_answer(check(w, "{\"guard\":\"search\"}"), 400, "asks no guard: enter does, /v1/enter");
    assert_answer(check(w, "{\"a\\\"b\":1}"), 400, "{\\\"attributes\\\":{\\\"name\\\":...}}");
}

TEST_WITH(test_S2_check_with_escapes, begin, end)
{
    struct world *w = *state;

    assert_answer(check(w, "{\"attributes\":{\"\\u0069p\":\"192.0.2.\\u0037\",\"uri\":\"\\/\"}}"),
                  200, "\"rule\":\"per-ip\"");
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"}}"), 200, "\"remaining\":0");
}

/* ------------------------------------------------------------------ batch ---- */

static const char *batch(struct world *w, const char *body)
{
    return request(w, "POST /v1/check/batch", "", body);
}

static bool ignore(void *context, const struct weir__json_value *value)
{
    return true;
}

static void assert_json(const char *text)
{
    const char *what = NULL;
    long at = weir__json_walk(text, strlen(text), NULL, ignore, NULL, &what);

    if (at >= 0)
        fail_msg("at %ld %s was expected: %s", at, what, text);
}

TEST_WITH(test_S2_batch, begin, end)
{
    struct world *w = *state;
    const char *yes = batch(w, " { \"checks\" : [ {\"attributes\":{\"ip\":\"192.0.2.7\"}} , {}, "
                               "{\"attributes\":{\"ip\":\"192.0.2.\\u0037\",\"x\":\"]}\\\"\"}},"
                               "{\"attributes\":{\"ip\":\"192.0.2.7\"}}, {\"attributes\":{}} ] } ");

    assert_answer(
        yes, 200,
        "{\"answers\":[{\"allowed\":true,\"rule\":\"per-ip\",\"limit\":2,\"remaining\":1,");
    assert_json(body_of(yes));
    assert_int_equal(count_of(yes, "\"allowed\":"), 5);
    assert_int_equal(count_of(yes, "\"allowed\":false"), 1);
    assert_int_equal(count_of(yes, "\"rule\":null"), 2);
}

TEST_WITH(test_S2_batch_with_ids, begin, end)
{
    struct world *w = *state;
    const char *yes = batch(w, "{\"checks\":[{\"attributes\":{\"ip\":\"192.0.2.7\"},\"id\":\"a\"},{"
                               "\"attributes\":{\"ip\":\"192.0.2.7\"},\"id\":\"a\"},"
                               "{\"attributes\":{\"ip\":\"192.0.2.7\"}},{\"attributes\":{\"ip\":"
                               "\"192.0.2.8\"},\"id\":\"a\"}]}");

    assert_answer(yes, 200, "{\"answers\":[{\"allowed\":true");
    assert_json(body_of(yes));
    assert_int_equal(count_of(yes, "\"remaining\":1"), 2);
    assert_int_equal(count_of(yes, "\"remaining\":0"), 1);
    assert_int_equal(count_of(yes, "{\"code\":\"bad-request\",\"detail\":\""), 1);
}

/* More than are decided together, and as many as may be. */
TEST_WITH(test_S2_batch_of_a_thousand, begin, end)
{
    struct world *w = *state;
    size_t len = 0;

    FINALLY(memory_drop) char *text = malloc(200000);

    w->settings.request_max = 1 << 20;
    for (int n = 1000; n <= 1001; n++) {
        char *body = text + 200;
        len = (size_t)sprintf(body, "{\"checks\":[");
        for (int i = 0; i < n; i++)
            len += (size_t)sprintf(body + len, "%s{\"attributes\":{\"ip\":\"10.1.%d.%d\"}}",
                                   i ? "," : "", i / 250, i % 250);
        len += (size_t)sprintf(body + len, "]}");
        size_t head = (size_t)sprintf(
            text, "POST /v1/check/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
            len);
        memmove(text + head, body, len);
        const char *answer = ask(w, text, head + len);
        if (n == 1001) {
            assert_answer(answer, 400, "more than 1000 checks");
            continue;
        }
        assert_answer(answer, 200, "\"answers\"");
        assert_int_equal(count_of(answer, "\"remaining\":1"), 1000);
        assert_json(body_of(answer));
    }
}

/* A mistake anywhere, and nothing was charged. */
TEST_WITH(test_S2_batch_that_is_wrong, begin, end)
{
    struct world *w = *state;

    static const struct {
        const char *body, *problem;
    } rows[] = {
        { "", "at byte 1: the body is {\\\"checks\\\":[{...},...]}" },
        { "{}", "at byte 2" },
        { "[]", "at byte 1" },
        { "{\"checks\":{}}", "at byte 11" },
        { "{\"checks\":[]}", "at byte 12: the body is {\\\"checks\\\":[{...},...]}, 1 to 1000" },
        { "{\"checks\":[{}", "at byte 14" },
        { "{\"checks\":[{},]}", "at byte 15: the body is" },
        { "{\"checks\":[{}]", "at byte 15" },
        { "{\"checks\":[{}]}x", "at byte 16" },
        { "{\"checks\":[{}],\"more\":1}", "at byte 15" },
        { "{\"checks\":[5]}", "check 0: the body must be a JSON object" },
        { "{\"checks\":[{]}", "check 0: the body is not JSON" },
        { "{\"checks\":[\"]}", "check 0: the body is not JSON" },
        { "{\"checks\":[\"\\", "check 0: the body is not JSON" },
        { "{\"checks\":[{\"attributes\":{\"ip\":\"192.0.2.7\"}},{\"cots\":1}]}",
          "check 1: unknown member 'cots'; did you mean 'cost'?" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_answer(batch(w, rows[i].body), 400, rows[i].problem);
    assert_answer(check(w, "{\"attributes\":{\"ip\":\"192.0.2.7\"}}"), 200, "\"remaining\":1");
}

/* Names of what is nested would be longer together than the text. */
TEST_WITH(test_S2_batch_of_nested_attributes, begin, end)
{
    struct world *w = *state;
    char body[2000] = "{\"checks\":[{\"attributes\":{"
                      "\"pppppppppppppppppppppppppppppppppppppppppppppppppppppppp\":{";

    for (int i = 0; i < 60; i++)
        sprintf(body + strlen(body), "%s\"%02d\":1", i ? "," : "", i);
    strcat(body, "}}}]}");
    assert_answer(batch(w, body), 400,
                  "check 0: 'attributes' is an object of strings, numbers, true and false, with no "
                  "objects or arrays");
}

/* ---------------------------------------------------------- limits of one's own ---- */

TEST_WITH(test_L13_take_peek_give, begin, end)
{
    struct world *w = *state;
    const char *body = "{\"key\":\"ann\",\"limit\":\"2/10\"}";

    assert_answer(request(w, "POST /v1/peek", "", body), 200, "\"remaining\":1");
    assert_answer(
        request(w, "POST /v1/peek", "", "{\"key\":\"ann\",\"limit\":\"2/10\",\"cost\":0}"), 200,
        "\"remaining\":2");
    assert_answer(
        request(w, "POST /v1/take", "", body), 200,
        "{\"allowed\":true,\"limit\":2,\"remaining\":1,\"retry_ms\":null,\"reset_ms\":5000,");
    assert_answer(request(w, "POST /v1/take", "", body), 200,
                  "RateLimit: \"2/10\";r=0;t=10\r\nRateLimit-Policy: \"2/10\";q=2\r\n");
    const char *no = request(w, "POST /v1/take", "", body);
    assert_answer(no, 429, "\"code\":\"weir-limited\"");
    assert_has(no, "\"retry_ms\":5000");
    assert_string_equal(header_of(no, "Retry-After"), "5");
    assert_answer(request(w, "POST /v1/peek", "", body), 429, "\"allowed\":false");
    assert_answer(request(w, "POST /v1/give", "", body), 200, "{\"given\":true}");
    assert_answer(
        request(
            w, "POST /v1/take", "",
            "{\"key\":\"ann\",\"limit\":\"2/10\",\"unit\":\"ns\",\"wait_ns\":9223372036854775807}"),
        200, "\"reset_ns\":10000000000,\"wait_ns\":0,");
}

TEST_WITH(test_L13_reserve_settle, begin, end)
{
    struct world *w = *state;
    char settle[128], id[64] = "";
    const char *yes =
        request(w, "POST /v1/reserve", "",
                "{\"key\":\"ann\",\"limit\":\"10/10\",\"cost\":5,\"lifetime_ms\":60000}");

    assert_answer(yes, 200, "\"remaining\":5");
    assert_int_equal(sscanf(strstr(yes, "\"reservation\":\"") + 15, "%63[^\"]", id), 1);
    snprintf(settle, sizeof(settle), "{\"reservation\":\"%s\",\"cost\":2}", id);
    assert_answer(request(w, "POST /v1/settle", "", settle), 200, "{\"settled\":true}");
    assert_answer(request(w, "POST /v1/settle", "", settle), 200, "{\"settled\":false}");
    assert_answer(
        request(w, "POST /v1/peek", "", "{\"key\":\"ann\",\"limit\":\"10/10\",\"cost\":0}"), 200,
        "\"remaining\":8");
}

TEST_WITH(test_S2_take_that_is_wrong, begin, end)
{
    struct world *w = *state;

    static const struct {
        const char *path, *body;
        int status;
        const char *problem;
    } rows[] = {
        { "take", "{\"key\":\"a\"}", 400, "'limit' is missing" },
        { "take", "{\"key\":\"\",\"limit\":\"1/1\"}", 400, "'key' is empty" },
        { "take", "{\"key\":\"a\",\"limit\":\"1/1\",\"unit\":\"us\"}", 400,
          "'unit' must be ms or ns, not 'us'" },
        { "take", "{\"key\":\"a\",\"limit\":\"1/1\",\"wait_ns\":1}", 400,
          "'wait_ns' needs \\\"unit\\\":\\\"ns\\\"" },
        { "take", "{\"key\":\"a\",\"limit\":\"1/1\",\"unit\":\"ns\",\"wait_ms\":1}", 400,
          "'wait_ms' needs \\\"unit\\\":\\\"ms\\\"" },
        { "take", "{\"key\":\"a\",\"limit\":\"1/1\",\"lifetime_ms\":1}", 400,
          "unknown member 'lifetime_ms'" },
        { "take", "{\"key\":\"a\",\"limit\":\"1/1\",\"wait_ms\":9223372036854775807}", 200,
          "\"allowed\":true" },
        { "take", "{\"key\":\"a\",\"limit\":\"1/1\",\"wait_ms\":9223372036854775808}", 400,
          "'wait_ms' must be a whole number from 0" },
        { "take", "{\"key\":\"a\",\"limit\":\"nonsense\"}", 422, "\"code\":\"unprocessable\"" },
        { "settle", "{\"reservation\":\"a\"}", 400, "'cost' is missing" },
        { "settle", "{\"reservation\":\"a\",\"cost\":1}", 200, "{\"settled\":false}" },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char line[64];
        snprintf(line, sizeof(line), "POST /v1/%s", rows[i].path);
        assert_answer(request(w, line, "", rows[i].body), rows[i].status, rows[i].problem);
    }
}

TEST_WITH(test_clock, begin, end)
{
    struct world *w = *state;

    assert_answer(request(w, "POST /v1/clock", "", "{\"now_ns\":1700000005000000000}"), 200,
                  "{\"now_ns\":1700000005000000000}");
    assert_int_equal(weir__loop_now(&w->loop), START + 5 * WEIR_SECOND);
    assert_answer(request(w, "POST /v1/clock", "", "{}"), 400, "'now_ns' is missing");
}
