/* http-world.h -- the world over HTTP: a request in words, and the parts of an answer. */
#ifndef WEIR_TESTS_UNIT_HTTP_WORLD_H
#define WEIR_TESTS_UNIT_HTTP_WORLD_H

#include "unit/test.h"

#include "server/serve/http/http.h"
#include "world.h"

static inline struct world *make_world(void)
{
    return make_world_of(&weir__http, 4096);
}

/* The answers to these bytes, which come at once. */
static inline const char *ask(struct world *w, const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);

    memcpy(copy, text, len);
    w->answer.len = 0;
    feed_bytes(w, copy, len);
    free(copy);
    return w->answer.bytes;
}

/* "POST /v1/check", headers, each ended by CRLF, a body (NULL: none). */
static inline const char *request(struct world *w, const char *line, const char *headers,
                                  const char *body)
{
    char text[16384];
    int len = snprintf(text, sizeof(text), "%s HTTP/1.1\r\n%s%s", line,
                       strcasestr(headers, "host:") ? "" : "Host: localhost\r\n", headers);

    if (body)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "Content-Length: %zu\r\n",
                        strlen(body));
    len += snprintf(text + len, sizeof(text) - (size_t)len, "\r\n%s", body ? body : "");
    assert_true((size_t)len < sizeof(text));
    return ask(w, text, (size_t)len);
}

static inline int status_of(const char *answer)
{
    int status = 0;

    assert_int_equal(sscanf(answer, "HTTP/1.1 %d ", &status), 1);
    return status;
}

static inline const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    assert_non_null(end);
    return end + 4;
}

/* How often it stands there. */
static inline size_t count_of(const char *text, const char *piece)
{
    size_t n = 0;

    while ((text = strstr(text, piece)) != NULL) {
        n++;
        text += strlen(piece);
    }
    return n;
}

/* The value of a header of the answer, in memory that the next call uses again; NULL: not there. */
static inline const char *header_of(const char *answer, const char *name)
{
    static char value[512];
    char line[64];
    const char *end = strstr(answer, "\r\n\r\n");

    snprintf(line, sizeof(line), "\r\n%s: ", name);
    const char *at = strcasestr(answer, line);
    if (at == NULL || end == NULL || at > end)
        return NULL;
    at += strlen(line);
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

#define assert_has(text, piece)                                       \
    do {                                                              \
        const char *has_text = (text);                                \
        if (strstr(has_text, piece) == NULL)                          \
            fail_msg("%s\n--- is not in ---\n%s", (piece), has_text); \
    } while (0)
#define assert_answer(answer, status, piece)         \
    do {                                             \
        const char *whole = (answer);                \
        if (status_of(whole) != (status))            \
            fail_msg("not %d: %s", (status), whole); \
        assert_has(whole, piece);                    \
    } while (0)

/* A world for each test. */
static inline int begin(void **state)
{
    *state = make_world();
    return 0;
}

static inline int end(void **state)
{
    end_world(*state);
    return 0;
}

#endif
