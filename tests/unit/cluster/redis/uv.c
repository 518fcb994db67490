/* uv.c -- a client of Redis on a loop of libuv, with a small server on the same loop's host: a
 * thread that answers HELLO, CLUSTER SLOTS and everything else, or nothing at all. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/redis/uv.h"

enum { ASKS = 50 };

struct server {
    int listener, reads;
    bool silent;
    char url[64];
    pthread_t thread;
};

/* Answers each command of the bytes; returns how many bytes they were. */
static size_t answer(struct server *s, int fd, const char *bytes, size_t len)
{
    static const struct weir__resp_limits limits = { 16, 65536 };
    struct weir__text words[16];
    size_t n, used = 0;
    const char *what;
    ptrdiff_t took;

    while (used < len &&
           (took = weir__resp_command(bytes + used, len - used, &limits, words, &n, &what)) > 0) {
        bool hello = weir__resp_is(words[0], "HELLO"), map = weir__resp_is(words[0], "CLUSTER");
        const char *reply = hello ? "%1\r\n+mode\r\n+standalone\r\n"
                            : map ? "-ERR x\r\n"
                                  : ":7\r\n";
        used += (size_t)took;
        if (hello || map || !s->silent)
            assert_true(send(fd, reply, strlen(reply), MSG_NOSIGNAL) > 0);
    }
    return used;
}

static void *serve(void *context)
{
    struct server *s = context;
    int fd = accept(s->listener, NULL, NULL);
    static char bytes[65536];
    size_t len = 0;
    ssize_t n;

    while (fd >= 0 && (n = recv(fd, bytes + len, sizeof(bytes) - len, 0)) > 0) {
        s->reads++;
        len += (size_t)n;
        size_t used = answer(s, fd, bytes, len);
        memmove(bytes, bytes + used, len - used);
        len -= used;
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void start_server(struct server *s, bool silent)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);

    *s = (struct server){ .silent = silent };
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &len), 0);
    snprintf(s->url, sizeof(s->url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

struct fixture {
    uv_loop_t loop;
    struct weir__redis_uv *redis;
    struct weir__redis_ask asks[ASKS];
    int done[3]; /* by outcome */
    int left;
    weir_time late; /* the latest answer after its deadline */
};

static void note(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct fixture *f = ask->context;
    weir_time late = weir__clock_monotonic() - ask->deadline;

    f->done[answer->outcome]++;
    f->late = late > f->late ? late : f->late;
    if (--f->left == 0)
        weir__redis_uv_close(f->redis, NULL, NULL);
}

static void ask_all(struct fixture *f, const char *url, weir_time timeout)
{
    struct weir__redis_options options = { .jitter = 1 };

    memset(f, 0, sizeof(*f));
    f->late = INT64_MIN;
    f->left = ASKS;
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_ok(weir__redis_url_parse(&options.url, url, NULL));
    assert_ok(weir__redis_uv_create(&f->redis, &f->loop, &options, NULL));
    for (int i = 0; i < ASKS; i++) {
        f->asks[i] = (struct weir__redis_ask){ .slot = WEIR__REDIS_ANY_SLOT,
                                               .deadline = weir__clock_monotonic() + timeout,
                                               .done = note,
                                               .context = f };
        assert_true(weir__redis_ask_texts(&f->asks[i], (const char *[]){ "GET", "k", NULL }));
        weir__redis_uv_ask(f->redis, &f->asks[i]);
    }
}

static void run(struct fixture *f)
{
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    for (int i = 0; i < ASKS; i++)
        weir__redis_ask_free(&f->asks[i]);
}

RACE(test_D1_asks_on_a_loop)
{
    struct server s;
    struct fixture f;

    start_server(&s, false);
    ask_all(&f, s.url, 60 * WEIR_SECOND);
    run(&f);
    pthread_join(s.thread, NULL);
    close(s.listener);
    assert_int_equal(f.done[WEIR__REDIS_ANSWERED], ASKS);
    assert_in_range(s.reads, 1, 10); /* pipelined */
}

RACE(test_D1_deadlines_on_a_loop)
{
    struct server s;
    struct fixture f;

    start_server(&s, true);
    ask_all(&f, s.url, 30 * WEIR_MILLISECOND);
    run(&f);
    pthread_join(s.thread, NULL);
    close(s.listener);
    assert_int_equal(f.done[WEIR__REDIS_ANSWERED], 0);
    assert_in_range(f.late, 0, 10 * WEIR_SECOND);
}

TEST(test_D1_nobody_listens)
{
    struct fixture f;

    ask_all(&f, "redis://127.0.0.1:1", 30 * WEIR_MILLISECOND);
    run(&f);
    assert_int_equal(f.done[WEIR__REDIS_UNDONE], ASKS);
}
