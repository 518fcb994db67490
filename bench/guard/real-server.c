/* real-server.c -- a small HTTP server that can be overrun: four workers, 20 ms of work each, so
 * 200 requests a second; with or without a guard.
 *
 *     backend plain|guard
 *
 * It listens on a free port of the loopback address and prints it.  A request is answered 200 by a
 * worker after 20 ms, and until one is free it waits in a queue that has no end, as in most
 * servers.  With `guard`, weir_enter is asked before the queue, with the adaptive limit and nothing
 * else: no number is chosen; whoever is refused hears 503 at once.  On SIGTERM it ends, and prints
 * the limit that was found.
 *
 * The work is a sleep that holds its worker, not a loop that burns a processor: on a small machine,
 * which the load generator shares, four busy workers would measure the scheduler.  What overload
 * does to a server whose workers wait for a database is the same.
 *
 * One thread reads (epoll) and refuses; workers answer by themselves.  A connection has one request
 * at a time (no pipelining).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "weir.h"

#define WORKERS     4
#define WORK_NS     20000000L
#define REQUEST_MAX 1024
#define STAMP_MAX   40

/* One per connection. */
struct client {
    int fd;
    size_t len;
    char text[REQUEST_MAX];
    char stamp[STAMP_MAX]; /* the request's path: when it was sent, says the client */
    bool at_work;          /* a worker has it: the worker frees it, if it is gone by then */
    bool gone;
    struct weir_permit permit;
    struct client *next;
};

static struct weir_table *table;
static struct weir_guard *guard; /* NULL: none */
static int poller;
static volatile sig_atomic_t ended;

/* The queue without an end, and what a client's at_work and gone are under. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct client *first, **last;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER,
            .more = PTHREAD_COND_INITIALIZER,
            .last = &queue.first };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* The client gets its path back in a header, so that it knows which request this answers.  Small
 * enough for any socket's buffer; a client that has gone is no error. */
static void answer(struct client *c, const char *status)
{
    char text[200];
    int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: 0\r\nX-Sent: %s\r\n\r\n",
                     status, c->stamp);

    (void)!send(c->fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void free_client(struct client *c)
{
    close(c->fd);
    free(c);
}

static struct client *wait_for_work(void)
{
    pthread_mutex_lock(&queue.lock);
    while (!queue.first)
        pthread_cond_wait(&queue.more, &queue.lock);
    struct client *c = queue.first;
    queue.first = c->next;
    if (!queue.first)
        queue.last = &queue.first;
    pthread_mutex_unlock(&queue.lock);
    return c;
}

static void *work(void *nothing)
{
    (void)nothing;
    for (;;) {
        struct client *c = wait_for_work();
        struct timespec span = { .tv_nsec = WORK_NS };
        clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
        if (guard)
            weir_exit(guard, &c->permit, WEIR_SUCCEEDED, weir_table_now(table));
        /* Before the answer, after which the next request can be here. */
        pthread_mutex_lock(&queue.lock);
        bool gone = c->gone;
        c->at_work = false;
        if (!gone)
            answer(c, "200 OK");
        pthread_mutex_unlock(&queue.lock);
        if (gone)
            free_client(c);
    }
    return NULL;
}

static void enqueue(struct client *c)
{
    pthread_mutex_lock(&queue.lock);
    c->at_work = true;
    c->next = NULL;
    *queue.last = c;
    queue.last = &c->next;
    pthread_cond_signal(&queue.more);
    pthread_mutex_unlock(&queue.lock);
}

/* All there is to it. */
static void request(struct client *c)
{
    struct weir_decision d;

    if (guard && !weir_enter(guard, &(struct weir_ask){ .cost = 1, .now = weir_table_now(table) },
                             &c->permit, &d))
        answer(c, "503 Service Unavailable");
    else
        enqueue(c);
}

static void keep_stamp(struct client *c)
{
    const char *begin = strchr(c->text, '/');
    size_t n = begin ? strcspn(begin, " \r\n") : 0;

    snprintf(c->stamp, sizeof(c->stamp), "%.*s", (int)n, begin ? begin : "");
}

static bool is_at_work(struct client *c)
{
    pthread_mutex_lock(&queue.lock);
    bool at_work = c->at_work;
    pthread_mutex_unlock(&queue.lock);
    return at_work;
}

static void leave(struct client *c)
{
    epoll_ctl(poller, EPOLL_CTL_DEL, c->fd, NULL); /* no longer heard of, whoever frees it */
    pthread_mutex_lock(&queue.lock);
    bool at_work = c->at_work;
    c->gone = true;
    pthread_mutex_unlock(&queue.lock);
    if (!at_work)
        free_client(c);
}

static void hear(struct client *c)
{
    ssize_t n = recv(c->fd, c->text + c->len, REQUEST_MAX - 1 - c->len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        c->len += (size_t)n;
    c->text[c->len] = '\0';
    if (n <= 0 || c->len == REQUEST_MAX - 1 || is_at_work(c)) {
        leave(c);
    } else if (strstr(c->text, "\r\n\r\n")) {
        keep_stamp(c);
        c->len = 0;
        request(c);
    }
}

static void welcome(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct client *c = fd >= 0 ? calloc(1, sizeof(*c)) : NULL;

    if (!c) {
        if (fd >= 0)
            close(fd);
        return;
    }
    c->fd = fd;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd,
                  &(struct epoll_event){ .events = EPOLLIN, .data.ptr = c }))
        free_client(c);
}

static int listen_here(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)&address, &size))
        fail("backend: listen");
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void open_guard(void)
{
    struct weir_guard_options options = { .adaptive = { .controller = WEIR_ADAPTIVE } };
    struct weir_error error;

    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 1000 }, &error) ||
        weir_guard_create(&guard, table, "backend", &options, &error)) {
        fprintf(stderr, "backend: %s\n", error.text);
        exit(1);
    }
}

static void end(int signal_number)
{
    (void)signal_number;
    ended = 1;
}

static void serve(int listener)
{
    struct epoll_event events[256];

    while (!ended) {
        int n = epoll_wait(poller, events, 256, 1000);
        for (int i = 0; i < n; i++)
            if (events[i].data.ptr)
                hear(events[i].data.ptr);
            else
                welcome(listener);
    }
}

static void tell(void)
{
    struct weir_guard_info info;

    weir_guard_get(guard, weir_table_now(table), &info);
    printf("limit %" PRId64 "\n", info.limit);
}

int main(int argc, char **argv)
{
    if (argc != 2 || (strcmp(argv[1], "guard") != 0 && strcmp(argv[1], "plain") != 0)) {
        fprintf(stderr, "usage: backend plain|guard\n");
        return 2;
    }
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = end }, NULL);
    if (strcmp(argv[1], "guard") == 0)
        open_guard();
    for (int i = 0; i < WORKERS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL))
            fail("backend: pthread_create");
    }
    poller = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_here();
    if (poller < 0 ||
        epoll_ctl(poller, EPOLL_CTL_ADD, listener, &(struct epoll_event){ .events = EPOLLIN }))
        fail("backend: epoll");
    serve(listener);
    if (guard)
        tell();
    return 0; /* workers and clients end with the process */
}
