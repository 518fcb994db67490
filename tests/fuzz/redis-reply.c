/* redis-reply.c -- any bytes as what servers answer to a client of Redis.
 *
 *   the first byte says how the rest is cut; each ask is answered once; the scanner says the same
 *   of a reply however it is cut, and reading never leaves what it found whole.
 */
#include "fuzz/fuzz.h"

#include "cluster/redis/client.h"

enum { INPUT_MAX = 8192, ASKS = 8, REPLY_MAX = 4096 };

static const char *const urls[] = { "redis://h:1", "redis://h:1,h:2", "redis://:p@h:1/1",
                                    "redis-sentinel://h:1/m" };

static int done[ASKS];

static void note(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    int i = (int)(intptr_t)ask->context;

    check(done[i]++ == 0);
    check((answer->outcome == WEIR__REDIS_ANSWERED) == (answer->why == NULL));
    if (answer->outcome == WEIR__REDIS_ANSWERED)
        check(weir__resp_skip(answer->reply.bytes) == answer->reply.bytes + answer->reply.len);
}

static void check_scan(const char *bytes, size_t len)
{
    struct weir__resp_scan whole = { 0 }, cut = { 0 };
    const char *what = NULL, *other = NULL;
    ptrdiff_t took = weir__resp_scan(&whole, bytes, len, REPLY_MAX, &what), step = 0;
    size_t n = 0;

    while (step == 0 && n < len)
        step = weir__resp_scan(&cut, bytes, ++n, REPLY_MAX, &other);
    check(len == 0 || (took > 0 ? step == took : took == 0 ? step == 0 : step < 0));
    if (took > 0) {
        char *copy = copy_of(bytes, (size_t)took);
        check(weir__resp_skip(copy) == copy + took);
        free(copy);
    }
}

static void feed(struct weir__redis_client *client, const char *bytes, size_t len, size_t piece)
{
    weir_time now = WEIR_SECOND;
    struct weir__redis_conn *conn;

    for (size_t at = 0, n; at < len; at += n) {
        n = piece < len - at ? piece : len - at;
        weir_time due = weir__redis_client_turn(client, now);
        conn = NULL;
        for (size_t i = 0; (conn = weir__redis_client_conn(client, i)) != NULL; i++) {
            weir__redis_client_wrote(client, conn, conn->out.len);
            if (conn->phase == WEIR__REDIS_OPENING)
                weir__redis_client_opened(client, conn, now);
            else if (conn->phase != WEIR__REDIS_CLOSED) {
                char *copy = copy_of(bytes + at, n);
                weir__redis_client_input(client, conn, copy, n, now);
                free(copy);
                break;
            }
        }
        if (conn == NULL) { /* nobody listens yet */
            n = 0;
            now = due == WEIR_NEVER ? now : due;
            if (due == WEIR_NEVER)
                return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__redis_script script = weir__redis_script("x", 1);
    struct weir__redis_options options = { .reply_max = REPLY_MAX };
    struct weir__redis_ask asks[ASKS] = { 0 };
    struct weir__redis_client *client;

    if (size == 0 || size > INPUT_MAX)
        return 0;
    check_scan((const char *)data + 1, size - 1);
    check(weir__redis_url_parse(&options.url, urls[data[0] % 4], NULL) == WEIR_OK);
    check(weir__redis_client_create(&client, &options, NULL) == WEIR_OK);
    memset(done, 0, sizeof(done));
    for (int i = 0; i < ASKS; i++) {
        asks[i].slot = i * 2000;
        asks[i].script = i % 2 ? &script : NULL;
        asks[i].deadline = (i + 1) * 10 * WEIR_SECOND;
        asks[i].repeatable = i % 3 == 0;
        asks[i].done = note;
        asks[i].context = (void *)(intptr_t)i;
        check(weir__redis_ask_texts(&asks[i], (const char *[]){ "GET", "k", NULL }));
        weir__redis_client_ask(client, &asks[i], WEIR_SECOND);
    }
    feed(client, (const char *)data + 1, size - 1, data[0] / 4 ? data[0] / 4 : SIZE_MAX);
    weir__redis_client_destroy(client);
    for (int i = 0; i < ASKS; i++) {
        check(done[i] == 1);
        weir__redis_ask_free(&asks[i]);
    }
    return 0;
}
