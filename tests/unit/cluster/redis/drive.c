/* drive.c -- a client of Redis with sockets: a name server that takes longer than a connection may.
 * The test is the name server. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/redis/drive.h"

static sem_t looked_up, found;

int getaddrinfo(const char *restrict host, const char *restrict port,
                const struct addrinfo *restrict hints, struct addrinfo **restrict out)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "slow.test") != 0 || hints->ai_flags & AI_NUMERICHOST)
        return real(host, port, hints, out);
    sem_post(&looked_up);
    sem_wait(&found);
    return real("127.0.0.1", port, hints, out);
}

static int listen_anywhere(char *url, size_t size)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    snprintf(url, size, "redis://slow.test:%d", ntohs(address.sin_port));
    return fd;
}

static void note(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    (void)answer;
    *(bool *)ask->context = true;
}

struct stage {
    struct weir__redis_drive *drive;
    struct weir__redis_ask ask;
    bool answered;
    int listener;
};

static void begin(struct stage *s, weir_time now)
{
    struct weir__redis_options options = { .jitter = 1 };
    char url[64];

    *s = (struct stage){ .listener = listen_anywhere(url, sizeof(url)) };
    s->ask = (struct weir__redis_ask){
        .slot = WEIR__REDIS_ANY_SLOT, .deadline = WEIR_NEVER, .done = note, .context = &s->answered
    };
    sem_init(&looked_up, 0, 0);
    sem_init(&found, 0, 0);
    assert_ok(weir__redis_url_parse(&options.url, url, NULL));
    assert_ok(weir__redis_drive_create(&s->drive, &options, NULL));
    assert_true(weir__redis_ask_texts(&s->ask, (const char *[]){ "PING", NULL }));
    weir__redis_client_ask(weir__redis_drive_client(s->drive), &s->ask, now);
}

static void end(struct stage *s)
{
    weir__redis_drive_end(s->drive);
    weir__redis_drive_destroy(s->drive);
    weir__redis_ask_free(&s->ask);
    close(s->listener);
}

/* It answers when several connections have been given up: the next one needs no look-up, and there
 * is never more than one at a time. */
TEST(test_D1_a_slow_name_server)
{
    struct stage s;
    weir_time now = 1000 * WEIR_SECOND;
    int looks;

    begin(&s, now);
    for (int i = 0; i < 50; i++, now += 100 * WEIR_MILLISECOND)
        weir__redis_drive_turn(s.drive, now);
    sem_wait(&looked_up);
    sem_post(&found);

    struct pollfd watched[] = { { .fd = s.listener, .events = POLLIN },
                                { .fd = weir__redis_drive_fd(s.drive), .events = POLLIN } };
    for (int i = 0; i < 6000 && (watched[0].revents & POLLIN) == 0; i++) {
        poll(watched, 2, 10);
        now += 100 * WEIR_MILLISECOND;
        weir__redis_drive_turn(s.drive, now);
    }
    assert_true(watched[0].revents & POLLIN);
    assert_int_equal(sem_getvalue(&looked_up, &looks), 0);
    assert_int_equal(looks, 0); /* no second one */
    assert_false(s.answered);
    end(&s);
}

/* One that never answers is asked again after some minutes, and not before. */
TEST(test_D1_a_name_server_that_hangs)
{
    struct stage s;
    weir_time now = 1000 * WEIR_SECOND;
    int looks = 0;

    begin(&s, now);
    for (int i = 0; i < 400; i++, now += WEIR_SECOND)
        weir__redis_drive_turn(s.drive, now);
    for (int i = 0; i < 600 && looks < 2; i++) { /* its threads come when they can */
        poll(NULL, 0, 10);
        sem_getvalue(&looked_up, &looks);
    }
    for (int i = 0; i < looks; i++)
        sem_post(&found);
    assert_int_equal(looks, 2);
    end(&s);
}
