/* webhook.c -- events reach somebody who listens, whatever happens on the way: in order, again
 * after a failure, and how many were lost is told. */
#include "unit/test.h"

#include "unit/complaints.h"
#include "unit/receiver.h"

#include <signal.h>

#include "wire/json.h"
#include "server/serve/events/webhook-post.h"
#include "server/serve/events/webhook.h"

static struct weir__events *events;
static struct weir__webhook *webhook;
static bool ended;

static weir_time now_is(void *context)
{
    return NOW;
}

static void emit(int n)
{
    while (n-- > 0)
        weir__events_emit(events, WEIR__EVENT_BAN, NOW,
                          &(struct weir__event_facts){ .rule = "login", .key = "192.0.2.7" });
}

static void begin_with(const char *url, uint64_t pause_ms, uint64_t timeout_ms)
{
    struct weir_error error = { 0 };
    struct weir__webhook_options options = { &loop,  events, url,      "s3cret",
                                             now_is, NULL,   pause_ms, timeout_ms };

    if (weir__webhook_create(&webhook, &options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static void begin(const char *const *answers, size_t n)
{
    receive(answers, n);
    begin_with(receiver.url, 1, 20000);
}

#define BEGIN(...)                                         \
    static const char *const answers_[] = { __VA_ARGS__ }; \
    begin(answers_, COUNT_OF(answers_))

static void on_ended(void *context)
{
    ended = true;
}

static struct weir__webhook_counts counts(void)
{
    struct weir__webhook_counts c;

    weir__webhook_counts(webhook, &c);
    return c;
}

static void stop(uint64_t drain_ms)
{
    weir__webhook_stop(webhook, drain_ms, on_ended, NULL);
    run_until(ended);
}

static int make_all(void **state)
{
    ended = false;
    webhook = NULL;
    events = weir__events_create();
    return make_loop(state) != 0 || events == NULL;
}

static int free_all(void **state)
{
    if (webhook != NULL && !ended)
        stop(0);
    weir__webhook_destroy(webhook);
    weir__events_destroy(events);
    return free_loop(state);
}

/* Ids of a body, and of a "lost" its count in brackets: "1 2 3". */
static bool note_id(void *context, const struct weir__json_value *v)
{
    char *out = context;
    const char *name = memrchr(v->path, '.', v->path_len);
    size_t name_len = name ? v->path_len - (size_t)(name + 1 - v->path) : 0;

    if (name_len == 2 && memcmp(name + 1, "id", 2) == 0)
        sprintf(out + strlen(out), "%.*s ", (int)v->len, v->text);
    if (name_len == 5 && memcmp(name + 1, "count", 5) == 0)
        sprintf(out + strlen(out), "(%.*s) ", (int)v->len, v->text);
    return true;
}

static const char *ids_of(size_t post)
{
    static char out[4096];
    const char *body = body_of(post), *what;

    out[0] = '\0';
    assert_int_equal(weir__json_walk(body, strlen(body), NULL, note_id, out, &what), -1);
    assert_int_equal(body[0], '[');
    return out;
}

TEST(test_pauses_double_up_to_a_minute)
{
    static const uint64_t wanted[] = { 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000 };

    for (unsigned i = 0; i < COUNT_OF(wanted); i++) {
        assert_int_equal(weir__webhook_pause_ms(1000, i + 1, 0), wanted[i]);
        for (uint64_t chance = 1; chance < 100000; chance += 977) {
            uint64_t pause = weir__webhook_pause_ms(1000, i + 1, chance);
            assert_true(pause >= wanted[i] && pause <= wanted[i] + wanted[i] / 4);
        }
    }
    assert_int_equal(weir__webhook_pause_ms(1000, 4000000000u, 0), 60000);
    assert_int_equal(weir__webhook_pause_ms(1, 1, UINT64_MAX), 1);
}

/* --------------------------------------------------------------- delivering ---- */

TEST_WITH(test_S4_events_are_posted, make_all, free_all)
{
    BEGIN(OK_ANSWER);
    weir__webhook_wake(webhook); /* for nothing */
    emit(2);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 2);
    assert_int_equal(receiver.n, 1);
    assert_memory_equal(receiver.posts[0], "POST /hook HTTP/1.1\r\nHost: 127.0.0.1:", 37);
    assert_contains(receiver.posts[0], "\r\nContent-Type: application/json\r\n");
    assert_contains(receiver.posts[0], "\r\nAuthorization: Bearer s3cret\r\n");
    assert_contains(body_of(0), "\"event\":\"ban\",\"rule\":\"login\",\"key\":\"192.0.2.7\"");
    assert_string_equal(ids_of(0), "1 2 ");
    emit(1);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 3);
    assert_string_equal(ids_of(1), "3 ");
}

TEST_WITH(test_S4_fifty_at_a_time, make_all, free_all)
{
    BEGIN(OK_ANSWER);
    emit(120);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 120);
    assert_int_equal(receiver.n, 3);
    assert_memory_equal(ids_of(0), "1 2 3 ", 6);
    assert_memory_equal(ids_of(1), "51 52 ", 6);
    assert_contains(ids_of(1), " 100 ");
    assert_memory_equal(ids_of(2), "101 ", 4);
}

/* The same batch again and again; what has come meanwhile waits its turn. */
TEST_WITH(test_S4_what_fails_is_tried_again, make_all, free_all)
{
    BEGIN(NULL, "HTTP/1.1 500 Oh\r\n\r\n", "garbage\r\n\r\n",
          "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "HTTP/1.1 429 Slow\r\n\r\n",
          "HTTP/1.1 408 Late\r\n\r\n", "HTTP/1.1 503 Busy\r\n\r\n", OK_ANSWER);
    emit(1);
    weir__webhook_wake(webhook);
    emit(1);
    run_until(counts().delivered == 2);
    assert_int_equal(receiver.n, 9);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(ids_of(i), "1 ");
    assert_string_equal(ids_of(8), "2 ");
    assert_fields(counts(), (failures, 7), (tries, 9));
    assert_int_equal(counts().lost + counts().dropped, 0);
}

/* Once when it begins to fail, and once when it works again. */
TEST_WITH(test_S4_failing_and_working_again_are_said_once, make_all, free_all)
{
    struct complaints said;

    BEGIN("HTTP/1.1 503 Busy\r\n\r\n", "HTTP/1.1 503 Busy\r\n\r\n", OK_ANSWER);
    emit(1);
    complaints_begin(&said);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 1);
    emit(1);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 2);
    char *line = strchr(complaints_end(&said), '\n');
    assert_non_null(line);
    assert_contains(said.text, "answered 503; trying again\n");
    assert_contains(line + 1, " takes events again\n");
    assert_null(strstr(strstr(line, "again") + 1, "webhook"));
}

TEST_WITH(test_S4_what_is_not_wanted_is_dropped, make_all, free_all)
{
    BEGIN("HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 401 No\r\n\r\n", OK_ANSWER);
    emit(101);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 1);
    assert_int_equal(counts().dropped, 100);
    assert_int_equal(receiver.n, 3);
    assert_int_equal(counts().failures, 2);
}

TEST_WITH(test_S4_what_fell_out_of_the_ring_is_told_as_a_number, make_all, free_all)
{
    BEGIN("HTTP/1.1 500 Oh\r\n\r\n", OK_ANSWER);
    emit(1);
    weir__webhook_wake(webhook);
    emit(WEIR__EVENTS_KEPT + 10); /* 2 to 11 are gone when the first is taken at last */
    run_until(counts().delivered == 1 + WEIR__EVENTS_KEPT);
    assert_string_equal(ids_of(0), "1 ");
    assert_string_equal(ids_of(1), "1 ");
    assert_memory_equal(ids_of(2), "(10) 12 13 ", 11);
    assert_contains(
        body_of(2),
        "[{\"time\":\"1970-01-01T00:16:40.000Z\",\"event\":\"lost\",\"count\":10},{\"id\":12,");
    assert_int_equal(counts().lost, 10);
}

TEST_WITH(test_interim_answers_are_passed_over, make_all, free_all)
{
    BEGIN("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 204 No "
          "Content\r\n\r\n");
    emit(1);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 1);
    assert_int_equal(counts().failures, 0);
}

TEST_WITH(test_an_answer_without_end_is_none, make_all, free_all)
{
    static char endless[80000];
    static const char *const answers[] = { endless, OK_ANSWER };

    memset(endless, 'x', sizeof(endless) - 1);
    memcpy(endless, "HTTP/1.1 200 OK\r\nX: ", 20);
    begin(answers, 2);
    emit(1);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 1);
    assert_int_equal(counts().failures, 1);
}

TEST_WITH(test_a_silent_one_is_left_after_the_timeout, make_all, free_all)
{
    static const char *const answers[] = { SILENCE, "HTTP/1.1 200 ", OK_ANSWER };

    receive(answers, COUNT_OF(answers));
    begin_with(receiver.url, 1, 20);
    emit(1);
    weir__webhook_wake(webhook);
    run_until(counts().failures >= 2 && counts().delivered == 1);
}

/* The name may have an address of IPv6 too, where nobody listens. */
TEST_WITH(test_every_address_of_a_name_is_tried, make_all, free_all)
{
    static const char *const answers[] = { OK_ANSWER };
    char url[64];

    receive(answers, 1);
    snprintf(url, sizeof(url), "http://localhost%s", strrchr(receiver.url, ':'));
    begin_with(url, 1, 20000);
    emit(1);
    weir__webhook_wake(webhook);
    run_until(counts().delivered == 1);
}

/* ----------------------------------------------------------------- stopping ---- */

TEST_WITH(test_S4_one_last_try_at_the_end, make_all, free_all)
{
    static const char *const answers[] = { "HTTP/1.1 500 Oh\r\n\r\n", OK_ANSWER };

    receive(answers, 2);
    begin_with(receiver.url, 100000000, 20000); /* it would pause for a day */
    emit(1);
    weir__webhook_wake(webhook);
    run_until(counts().failures == 1);
    emit(60);
    stop(20000);
    assert_int_equal(counts().delivered,
                     61); /* the last try went well, and so did those after it */
    assert_int_equal(counts().lost, 0);
}

TEST_WITH(test_the_end_comes_when_the_last_try_fails, make_all, free_all)
{
    begin_with("http://127.0.0.1:1/", 100000000, 20000); /* where nobody listens */
    emit(60);
    weir__webhook_wake(webhook);
    run_until(counts().failures == 1);
    stop(20000);
    assert_fields(counts(), (failures, 2), (lost, 60));
}

TEST_WITH(test_the_end_does_not_wait_longer_than_told, make_all, free_all)
{
    BEGIN(SILENCE);
    emit(1);
    stop(5);
    assert_fields(counts(), (delivered, 0), (lost, 1));
}

TEST_WITH(test_the_end_with_nothing_to_tell, make_all, free_all)
{
    BEGIN(OK_ANSWER);
    stop(20000);
    assert_int_equal(counts().tries, 0);
}

TEST_WITH(test_bad_settings_are_refused_at_the_start, make_all, free_all)
{
    struct weir_error error;
    struct weir__webhook_options options = { &loop, events, "gopher://h", "", now_is, NULL, 0, 0 };

    assert_int_equal(weir__webhook_create(&webhook, &options, &error), WEIR_INVALID);
    options.url = "http://h/";
    options.token = "a\r\nb";
    assert_int_equal(weir__webhook_create(&webhook, &options, &error), WEIR_INVALID);
    assert_contains(error.text, "token");
    assert_null(strstr(error.text, "a\r"));
    assert_null(webhook);
}

/* -------------------------------------------------------------------- https ---- */

/* The receiver shows a certificate for `names`; which ones are believed is in the file `trusted`,
 * or (NULL) that one is. */
static void begin_tls(const char *names, const char *trusted)
{
    static const char *const answers[] = { OK_ANSWER };
    static char certificate[400], key[400];
    struct weir_error error;

    snprintf(certificate, sizeof(certificate), "%s", new_path());
    snprintf(key, sizeof(key), "%s", new_path());
    make_certificate(names, certificate, key);
    struct weir__tls_options options = { .certificate = certificate, .key = key };
    assert_ok(weir__tls_context_create(&receiver.tls, &options, &error));
    setenv("SSL_CERT_FILE", trusted ? trusted : certificate, 1);
    receive(answers, 1);
    begin_with(receiver.url, 100000000, 20000);
    emit(2);
    weir__webhook_wake(webhook);
}

TEST_WITH(test_S4_over_https, make_all, free_all)
{
    begin_tls("IP:127.0.0.1", NULL);
    run_until(counts().delivered == 2 || counts().failures > 0);
    assert_int_equal(counts().delivered, 2);
    assert_contains(receiver.posts[0], "Authorization: Bearer s3cret");
}

TEST_WITH(test_S4_no_word_to_a_certificate_that_is_not_trusted, make_all, free_all)
{
    begin_tls("IP:127.0.0.1", "/dev/null");
    run_until(counts().failures == 1);
    assert_int_equal(receiver.n, 0);
}

TEST_WITH(test_S4_no_word_to_a_certificate_of_somebody_else, make_all, free_all)
{
    begin_tls("DNS:example.com,IP:192.0.2.1", NULL);
    run_until(counts().failures == 1);
    assert_int_equal(receiver.n, 0);
}

static int ignore_broken_pipes(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    return make_folder(state);
}

GROUP(ignore_broken_pipes, remove_folder)
