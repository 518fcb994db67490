/* http-session.c -- any bytes as a session of HTTP with a whole server behind it: no crash, and
 * answers that a client can read.
 *
 *   session.h says how the input is cut, and who comes;
 *   all that is answered is HTTP, with a length that is right, and there is one answer to each
 *   request, the same however it was cut; what is no request, or too large, is answered once, and
 *   ends it; an answer says that it is the last one, if it is, and never otherwise; what says that
 *   it is JSON is JSON; events are server-sent events, with JSON in them.
 */
#include "fuzz/fuzz.h"

#include "server/serve/http/http.h"
#include "session.h"

struct bytes {
    const char *at, *end;
};

static bool begins(struct weir__text text, const char *word)
{
    return text.len >= strlen(word) && memcmp(text.bytes, word, strlen(word)) == 0;
}

/* ------------------------------------------------------------------ answers ---- */

/* Lines of known fields; an empty one ends an event. */
static void check_events(struct bytes b)
{
    static const char *const fields[] = { "id: ", "event: ", "data: ", "retry: ", ":" };

    for (const char *end; b.at < b.end; b.at = end + 1) {
        end = memchr(b.at, '\n', (size_t)(b.end - b.at));
        check(end != NULL);
        struct weir__text line = { b.at, (size_t)(end - b.at) };
        bool known = line.len == 0;
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
            known = known || begins(line, fields[i]);
        check(known);
        if (begins(line, "data: "))
            check_json(line.bytes + 6, line.len - 6);
    }
}

struct answer {
    bool last;   /* the connection ends behind it, it says */
    bool events; /* all that follows is its body */
};

static struct answer next_answer(struct bytes *b, bool head_only)
{
    static struct weir__http_response head;
    const char *what;

    do {
        ptrdiff_t took = weir__http_response(b->at, (size_t)(b->end - b->at), &head, &what);
        check(took > 0);
        b->at += took;
    } while (head.status == 100);
    struct weir__text type = weir__http_header(head.headers, head.n_headers, "Content-Type");
    struct answer answer = { .last = !head.keep_alive,
                             .events = begins(type, "text/event-stream") && !head_only };
    check(head.status >= 200 && head.status < 600 && !head.chunked &&
          (head.content_length >= 0) != begins(type, "text/event-stream"));
    if (head_only || answer.events)
        return answer;
    check(b->end - b->at >= head.content_length);
    if (begins(type, "application/json") || begins(type, "application/problem+json"))
        check_json(b->at, (size_t)head.content_length);
    b->at += head.content_length;
    return answer;
}

/* ----------------------------------------------------------------- requests ---- */

/* How many bytes of chunks there are, at most `max`; 0: they are wrong, too many, or have no
 * end. */
static size_t chunks_length(char *bytes, size_t len, size_t max)
{
    struct weir__http_chunks chunks = { 0 };
    const char *what;
    size_t data;
    ptrdiff_t took = weir__http_chunked(&chunks, bytes, len, &data, &what);

    return took > 0 && chunks.ended && (size_t)took <= max ? (size_t)took : 0;
}

/* How many bytes the request at the beginning has; 0: it is not whole, not right, or too large.
 * Spoils what chunks there are. */
static size_t request_length(char *bytes, size_t len, bool *head_only)
{
    static struct weir__http_request request;
    const char *what;
    int status;
    ptrdiff_t head = weir__http_request(bytes, len, &request, &status, &what);

    if (head <= 0 || head > REQUEST_MAX)
        return 0;
    size_t rest = len - (size_t)head, max = REQUEST_MAX - (size_t)head;
    size_t body = request.chunked              ? chunks_length(bytes + head, rest, max)
                  : request.content_length > 0 ? (size_t)request.content_length
                                               : 0;
    *head_only = weir__http_is(request.method, "HEAD", 4);
    return body > rest || body > max || (request.chunked && body == 0) ? 0 : (size_t)head + body;
}

/* The requests once more, each with its answer. */
static void check_answers(const struct world *w, char *bytes, size_t len, struct bytes answers)
{
    struct answer answer = { 0 };
    bool head_only;

    for (size_t at = 0, n; at < len; at += n) {
        n = 2;
        if (len - at >= 2 && memcmp(bytes + at, "\r\n", 2) == 0)
            continue;
        n = request_length(bytes + at, len - at, &head_only);
        if (n == 0) {
            check(w->conn.lingers);
            break;
        }
        check(!answer.last);
        answer = next_answer(&answers, head_only);
        if (answer.events) {
            check_events(answers);
            return;
        }
    }
    if (w->conn.lingers && !answer.last) /* what followed was refused, not cut off */
        answer = next_answer(&answers, false);
    check(answers.at == answers.end && answer.last == w->conn.ending);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__buffer told = { 0 };

    if (size < 2 || size > INPUT_MAX)
        return 0;
    struct world *w = begin_session(&weir__http, data[0]);
    char *bytes = copy_of((const char *)data + 1, size - 1);
    size_t used = feed_session(w, bytes, size - 1, data[0], &told);
    weir__buffer_add(&w->answer, told.bytes, told.len);
    check_answers(w, bytes, used,
                  (struct bytes){ w->answer.bytes, w->answer.bytes + w->answer.len });
    weir__buffer_free(&told);
    end_session(w, (const char *)data, size);
    free(bytes);
    return 0;
}
