/* redis-memory.c -- the client of Redis when the n-th allocation fails, for every n until none
 * does: no crash, and each ask is answered once. */
#include <stdio.h>
#include <string.h>

#include "cluster/redis/client.h"

enum { ASKS = 40 };

#define WELCOME "%1\r\n+mode\r\n+cluster\r\n"
#define MAP                                                                                        \
    "*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$1\r\na\r\n:1\r\n*3\r\n:8192\r\n:16383\r\n*2\r\n$1\r\nb\r\n" \
    ":1\r\n"

static long countdown; /* allocations until one fails; below 0: none does */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static bool fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

static int done[ASKS], answered;

static void note(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    done[(intptr_t)ask->context]++;
    answered += answer->outcome == WEIR__REDIS_ANSWERED;
}

/* Answers the commands that a connection has to send. */
static void serve(struct weir__redis_client *client, struct weir__redis_conn *conn, weir_time now)
{
    static const struct weir__resp_limits limits = { 16, 65536 };
    struct weir__text words[16];
    char replies[8192] = "", *to = replies;
    size_t n, used = 0;
    const char *what;
    ptrdiff_t took;

    if (conn->out.failed)
        return;
    while (used < conn->out.len &&
           (took = weir__resp_command(conn->out.bytes + used, conn->out.len - used, &limits, words,
                                      &n, &what)) > 0) {
        used += (size_t)took;
        to = stpcpy(to, weir__resp_is(words[0], "HELLO")     ? WELCOME
                        : weir__resp_is(words[0], "CLUSTER") ? MAP
                        : weir__resp_is(words[0], "EVALSHA") ? "-NOSCRIPT x\r\n"
                                                             : ":1\r\n");
    }
    weir__redis_client_wrote(client, conn, used);
    if (to > replies)
        weir__redis_client_input(client, conn, replies, (size_t)(to - replies), now);
}

static void run_client(struct weir__redis_client *client, weir_time end)
{
    weir_time now = 0;

    while (now < end) {
        struct weir__redis_conn *conn;
        for (size_t i = 0; (conn = weir__redis_client_conn(client, i)) != NULL; i++) {
            if (conn->phase == WEIR__REDIS_OPENING)
                weir__redis_client_opened(client, conn, now);
            serve(client, conn, now);
        }
        weir_time due = weir__redis_client_turn(client, now);
        now = due < now + WEIR_MILLISECOND ? due : now + WEIR_MILLISECOND;
    }
}

/* False: a law was broken. */
static bool run_once(long n)
{
    struct weir__redis_script script = weir__redis_script("return 1", 8);
    struct weir__redis_options options = { .pool = 2 };
    struct weir__redis_client *client = NULL;
    struct weir__redis_ask asks[ASKS] = { 0 };
    bool good = true;

    memset(done, 0, sizeof(done));
    answered = 0;
    weir__redis_url_parse(&options.url, "redis://a:1,b:1", NULL);
    countdown = n;
    if (weir__redis_client_create(&client, &options, NULL) != WEIR_OK)
        return true;
    for (int i = 0; i < ASKS; i++) {
        asks[i] = (struct weir__redis_ask){ .slot = i * 400,
                                            .script = i % 2 ? &script : NULL,
                                            .deadline = 200 * WEIR_MILLISECOND,
                                            .done = note,
                                            .context = (void *)(intptr_t)i };
        weir__redis_ask_texts(&asks[i], (const char *[]){ "0", "k", NULL });
        weir__redis_client_ask(client, &asks[i], 1);
    }
    run_client(client, 300 * WEIR_MILLISECOND);
    weir__redis_client_destroy(client);
    for (int i = 0; i < ASKS; i++) {
        good &= done[i] == 1;
        weir__redis_ask_free(&asks[i]);
    }
    return good && (countdown < 0 || answered == ASKS);
}

int main(void)
{
    long n = 0;

    do {
        if (!run_once(n)) {
            printf("allocation %ld failed, and an ask was not answered once\n0 passed, 1 failed\n",
                   n);
            return 1;
        }
        n++;
    } while (countdown < 0);
    printf("%ld passed, 0 failed\n", n);
    return n < 10;
}
