/* waiting.c -- asks that wait in a guard's queue while the loop goes on. */
#include "server/serve/decide/waiting.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"
#include "queue/queue.h"
#include "base/arena.h"
#include "server/serve/decide/late.h"
#include "server/serve/net/mailbox.h"

#define POLL_MS 5
#define LISTEN  WEIR_SECOND /* meanwhile loops poll */

struct line {
    struct weir_queue *queue;
    int64_t waiting; /* there, or on their way to the answer; atomic */
    struct weir_guard *guard;
    struct line *next; /* never changes: lines stay until the server ends */
};

struct weir__lines {
    struct weir__server *server;
    int64_t waiting;       /* in all of them; atomic */
    bool closed;           /* nobody waits any more; atomic */
    struct line *first;    /* atomic */
    pthread_mutex_t mutex; /* for making one, and the listener */
    pthread_t listener;
    bool listens;  /* atomic: there is one, or there was no thread for it */
    bool ended;    /* atomic: it is to end */
    uint32_t word; /* atomic; changes when it is to look */
};

struct weir__wait {
    struct weir_waiter waiter;
    struct weir__letter letter; /* its turn has come, or it has left */
    struct weir__loop *loop;
    struct weir__conn *conn; /* NULL: gone; of the loop's thread */
    int fd;                  /* its socket: open as long as it waits */
    struct weir_guard *guard;
    struct line *line;
    struct weir__lines *lines;
    struct weir__enter enter; /* it points into `bytes` */
    struct weir__arena bytes;
    struct weir__later later;
    struct weir__entered entered;
    weir_time joined;
    bool decided; /* `entered` is the answer; otherwise the reason of the queue is */
};

/* A loop's. */
struct weir__waiting {
    uv_timer_t poll; /* runs while somebody waits */
    size_t n;        /* that were not answered yet */
};

static struct weir__wait *wait_of(struct weir_waiter *waiter)
{
    return (struct weir__wait *)((char *)waiter - offsetof(struct weir__wait, waiter));
}

/* The listener is to look. */
static void stir(struct weir__lines *lines)
{
    __atomic_fetch_add(&lines->word, 1, __ATOMIC_SEQ_CST);
    weir__clock_wake_word(&lines->word);
}

static void count(struct weir__wait *w, int64_t n)
{
    __atomic_fetch_add(&w->line->waiting, n, __ATOMIC_SEQ_CST);
    if (__atomic_fetch_add(&w->lines->waiting, n, __ATOMIC_SEQ_CST) == 0)
        stir(w->lines); /* it slept, because nobody waited */
}

/* ---------------------------------------------------------------- lines ---- */

struct weir__lines *weir__lines_create(struct weir__server *server)
{
    struct weir__lines *lines = calloc(1, sizeof(*lines));

    if (lines == NULL)
        return NULL;
    lines->server = server;
    pthread_mutex_init(&lines->mutex, NULL);
    return lines;
}

void weir__lines_destroy(struct weir__lines *lines)
{
    struct line *next;

    if (lines == NULL)
        return;
    __atomic_store_n(&lines->ended, true, __ATOMIC_SEQ_CST);
    stir(lines);
    if (lines->listener != 0)
        pthread_join(lines->listener, NULL);
    for (struct line *l = lines->first; l != NULL; l = next) {
        next = l->next;
        weir_queue_destroy(l->queue);
        free(l);
    }
    pthread_mutex_destroy(&lines->mutex);
    free(lines);
}

static struct line *find_line(struct weir__lines *lines, uint32_t guard)
{
    struct line *l = lines ? __atomic_load_n(&lines->first, __ATOMIC_ACQUIRE) : NULL;

    while (l != NULL && l->guard->id != guard)
        l = l->next;
    return l;
}

static struct line *make_line_locked(struct weir__lines *lines, struct weir_guard *guard,
                                     const struct weir_queue_options *options)
{
    struct line *l = calloc(1, sizeof(*l));

    if (l == NULL || weir_queue_create(&l->queue, options, NULL) != WEIR_OK) {
        free(l);
        return NULL;
    }
    l->guard = guard;
    l->next = lines->first;
    __atomic_store_n(&lines->first, l, __ATOMIC_RELEASE);
    return l;
}

/* If the rules have changed the queue, its waiters stay, in their order.  NULL: no memory. */
static struct line *line_of(struct weir__lines *lines, struct weir_guard *guard,
                            const struct weir_queue_options *options)
{
    struct line *l = find_line(lines, guard->id);

    if (l == NULL) {
        pthread_mutex_lock(&lines->mutex);
        l = find_line(lines, guard->id);
        l = l != NULL ? l : make_line_locked(lines, guard, options);
        pthread_mutex_unlock(&lines->mutex);
    }
    if (l != NULL)
        weir__queue_change(l->queue, options);
    return l;
}

/* ---------------------------------------------------------------- turns ---- */

struct turns {
    weir_time now;
    bool joins; /* it has just been refused: it need not try again */
};

/* The client has closed the connection, or its side of it, whether its loop has noticed or not. */
static bool has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) > 0;
}

/* With the queue locked.  If now another guard is busy it does not hold up those behind it: it
 * leaves. */
static enum weir_reason try_to_enter(void *context, struct weir_waiter *waiter)
{
    const struct turns *t = context;
    struct weir__wait *w = wait_of(waiter);
    const struct weir_ruling *r = &w->entered.ruling;
    struct weir_error error;

    if (t->joins)
        return WEIR_BUSY;
    if (has_hung_up(w->fd))
        return WEIR_CANCELLED;
    if (weir__enter_once(w->lines->server, &w->enter,
                         &(struct weir__try){ .now = t->now, .again = true }, &w->entered,
                         &error) != 200)
        return WEIR_CANCELLED; /* other rules have come: its class or its guard has gone */
    if (!r->decision.allowed && r->decision.reason == WEIR_BUSY && r->guard != NULL &&
        strcmp(r->guard, w->guard->name) == 0)
        return WEIR_BUSY;
    w->decided = true;
    if (r->decision.allowed)
        return WEIR_GRANTED; /* in shadow there is a reason, and yet it is in */
    return r->decision.reason == WEIR_BUSY ? WEIR_CANCELLED : (enum weir_reason)r->decision.reason;
}

static void refuse(struct weir__wait *w, enum weir_reason reason)
{
    struct weir_ruling *r = &w->entered.ruling;

    r->guard = w->guard->name;
    r->decision.allowed = false;
    r->decision.reason = (uint8_t)reason;
}

/* In any thread that offers turns. */
static void on_turn(struct weir_waiter *waiter, enum weir_reason reason)
{
    struct weir__wait *w = wait_of(waiter);

    if (!w->decided)
        refuse(w, reason);
    count(w, -1);
    weir__mailbox_put(w->loop, &w->letter);
}

static void tell_turns(struct weir_waiter *gone)
{
    for (struct weir_waiter *next; gone != NULL; gone = next) {
        next = gone->next;
        gone->turn(gone, (enum weir_reason)gone->reason);
    }
}

static void serve_line(struct line *l, weir_time now)
{
    struct turns t = { .now = now };

    if (__atomic_load_n(&l->waiting, __ATOMIC_SEQ_CST) > 0)
        tell_turns(weir__queue_offer(l->queue, now, weir__guard_hold(l->guard), try_to_enter, &t));
}

void weir__lines_serve(struct weir__lines *lines, uint32_t guard, weir_time now)
{
    if (__atomic_load_n(&lines->waiting, __ATOMIC_RELAXED) == 0)
        return;
    struct line *l = find_line(lines, guard);
    if (l != NULL)
        serve_line(l, now);
}

bool weir__lines_occupied(struct weir__lines *lines, uint32_t guard, int64_t permits)
{
    struct line *l = NULL;

    if (lines != NULL &&
        __builtin_expect(__atomic_load_n(&lines->waiting, __ATOMIC_RELAXED) > 0, 0))
        l = find_line(lines, guard);
    return l != NULL && weir__get(&l->queue->length) > 0 &&
           !weir__queue_is_open_to(l->queue, permits);
}

/* A waiter that joins meanwhile sees that it is closed, or is seen here. */
void weir__lines_close(struct weir__lines *lines)
{
    if (lines == NULL)
        return;
    __atomic_store_n(&lines->closed, true, __ATOMIC_SEQ_CST);
    for (struct line *l = __atomic_load_n(&lines->first, __ATOMIC_ACQUIRE); l != NULL; l = l->next)
        tell_turns(weir__queue_clear(l->queue));
}

int64_t weir__lines_waiting(struct weir__lines *lines, uint32_t guard)
{
    struct line *l = find_line(lines, guard);

    return l != NULL ? weir_queue_length(l->queue) : 0;
}

/* -------------------------------------------------------------- listening ---- */

/* Lets the table's bell wake it for every guard that somebody waits for, and offers turns.  Returns
 * the bell as it was before. */
static uint32_t look(struct weir__lines *lines)
{
    uint32_t bell = weir__acquire(&weir_table_of(lines->server->engine)->header->bell);
    weir_time now = weir__server_now(lines->server);

    for (struct line *l = __atomic_load_n(&lines->first, __ATOMIC_ACQUIRE); l != NULL; l = l->next)
        if (__atomic_load_n(&l->waiting, __ATOMIC_SEQ_CST) > 0) {
            weir__guard_want(l->guard);
            serve_line(l, now);
        }
    return bell;
}

/* A thread, because a loop cannot sleep for a word in shared memory.  Without one, loops poll. */
static void *listen_for_bell(void *argument)
{
    struct weir__lines *lines = argument;
    uint32_t *bell = &weir_table_of(lines->server->engine)->header->bell;

    while (!__atomic_load_n(&lines->ended, __ATOMIC_SEQ_CST)) {
        uint32_t word = __atomic_load_n(&lines->word, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&lines->waiting, __ATOMIC_SEQ_CST) == 0)
            weir__clock_wait_word(&lines->word, word, WEIR_FOREVER);
        else
            weir__clock_wait_words(&lines->word, word, bell, look(lines), LISTEN);
    }
    return NULL;
}

/* Made when somebody waits first; signals are the main thread's. */
static void start_listening(struct weir__lines *lines)
{
    sigset_t all, before;

    pthread_mutex_lock(&lines->mutex);
    if (!lines->listens) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        if (pthread_create(&lines->listener, NULL, listen_for_bell, lines) != 0)
            lines->listener = 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        __atomic_store_n(&lines->listens, true, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&lines->mutex);
}

/* ------------------------------------------------------------- of a loop ---- */

static void free_wait(struct weir__wait *w)
{
    weir__arena_clear(&w->bytes);
    free(w);
}

static void leave(struct weir__loop *loop)
{
    if (--loop->waiting->n == 0)
        uv_timer_stop(&loop->waiting->poll);
}

/* On the loop's thread: answers. */
static void finish(struct weir__letter *letter)
{
    struct weir__wait *w =
        (struct weir__wait *)((char *)letter - offsetof(struct weir__wait, letter));
    struct weir__conn *conn = w->conn;

    leave(w->loop);
    if (conn == NULL) {
        weir__ask_exit(w->loop, &w->entered.permits, WEIR_IGNORED, -1);
        free_wait(w);
        return;
    }
    conn->wait = NULL;
    if (w->entered.permits.n && (conn->heard_all || has_hung_up(w->fd))) {
        weir__ask_exit(w->loop, &w->entered.permits, WEIR_IGNORED, -1);
        w->entered.permits.n = 0;
        refuse(w, WEIR_CANCELLED);
    }
    weir__enter_spend(&w->enter, weir__loop_now(w->loop) - w->joined);
    if (weir__is_dry(&w->entered.ruling) && weir__late_enter(conn, &w->enter, &w->later)) {
        free_wait(w);
        return;
    }
    weir__enter_count(w->loop, &w->entered);
    w->later.answer(conn, &w->entered, w->later.context);
    free_wait(w);
    weir__conn_resume(conn);
}

void weir__waiting_poll(struct weir__loop *loop)
{
    weir_time now = weir__loop_now(loop);
    struct weir__lines *lines = loop->server->lines;

    for (struct line *l = __atomic_load_n(&lines->first, __ATOMIC_ACQUIRE); l != NULL; l = l->next)
        serve_line(l, now);
    weir__mailbox_open(loop);
}

static void on_poll(uv_timer_t *timer)
{
    weir__waiting_poll(timer->data);
}

/* Made when somebody waits first.  NULL: no memory. */
static struct weir__waiting *waiting_of(struct weir__loop *loop)
{
    struct weir__waiting *waiting = loop->waiting;

    if (waiting == NULL && (waiting = calloc(1, sizeof(*waiting))) != NULL) {
        uv_timer_init(&loop->uv, &waiting->poll);
        waiting->poll.data = loop;
        loop->waiting = waiting;
    }
    return waiting;
}

void weir__waiting_close(struct weir__loop *loop)
{
    if (loop->waiting != NULL && !uv_is_closing((uv_handle_t *)&loop->waiting->poll))
        uv_close((uv_handle_t *)&loop->waiting->poll, NULL);
}

void weir__waiting_free(struct weir__loop *loop)
{
    free(loop->waiting);
    loop->waiting = NULL;
}

/* ---------------------------------------------------------------- joining ---- */

/* All that it needs is its own: the connection's input is used for something else meanwhile.  NULL:
 * no memory. */
static struct weir__wait *make_wait(struct weir__conn *conn, const struct weir__enter *e,
                                    const struct weir__later *later)
{
    struct weir__wait *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return NULL;
    w->letter.open = finish;
    w->joined = weir__loop_now(conn->loop);
    w->loop = conn->loop;
    w->conn = conn;
    w->lines = conn->loop->server->lines;
    w->enter = *e;
    w->later = *later;
    if (weir__enter_copy(&w->bytes, &w->enter) && weir__later_copy(&w->bytes, &w->later))
        return w;
    free_wait(w);
    return NULL;
}

static bool join(struct weir__wait *w, weir_time wait_max, struct weir__entered *out)
{
    weir_time now = weir__loop_now(w->loop);
    struct turns t = { .now = now, .joins = true };
    struct weir__joining j = { .waiter = &w->waiter,
                               .now = now,
                               .patient = true,
                               .key = w->entered.key_id,
                               .key_max = w->entered.key_max,
                               .offer = try_to_enter,
                               .context = &t,
                               .decision = &out->ruling.decision };

    w->waiter = (struct weir_waiter){ .priority = w->entered.priority,
                                      .user_class = w->entered.user_class,
                                      .turn = on_turn };
    if (__builtin_add_overflow(now, wait_max, &w->waiter.deadline))
        w->waiter.deadline = 0;
    weir__own(&w->waiter)->ask.cost = w->enter.guard.len ? w->enter.cost : 1;
    count(w, 1);
    weir__queue_join(w->line->queue, &j);
    if (!j.waits)
        count(w, -1);
    out->turned_away = j.turned_away;
    return j.waits;
}

/* It waits: from now on turns are offered; at once, if it comes before others, and there is a
 * permit. */
static void begin_waiting(struct weir__loop *loop, struct weir__lines *lines, struct line *line)
{
    if (!uv_is_active((uv_handle_t *)&loop->waiting
                          ->poll)) /* not anew: many newcomers would put it off for ever */
        uv_timer_start(&loop->waiting->poll, on_poll, POLL_MS, POLL_MS);
    if (!__atomic_load_n(&lines->listens, __ATOMIC_SEQ_CST))
        start_listening(lines);
    weir__guard_want(line->guard);
    serve_line(line, weir__loop_now(loop));
    if (__atomic_load_n(&lines->closed, __ATOMIC_SEQ_CST))
        weir__lines_close(lines);
}

bool weir__wait(struct weir__conn *conn, const struct weir__enter *e,
                const struct weir__later *later, struct weir__entered *out)
{
    struct weir__loop *loop = conn->loop;
    struct weir *weir = loop->server->engine;
    struct weir_ruled_guard view;
    struct weir_queue_options queue;
    weir_time wait_max;
    uv_os_fd_t fd;

    struct weir__lines *lines = loop->server->lines;
    if (lines == NULL || conn->heard_all || uv_fileno(&conn->uv.handle, &fd) != 0 ||
        !weir_ruled_guard_find(weir, out->ruling.guard, &view) ||
        !weir_ruled_queue_get(weir, out->ruling.guard, &queue, &wait_max) ||
        (wait_max = weir__ruled_wait(weir, out->ruling.guard, out->priority, out->user_class)) ==
            0 ||
        __atomic_load_n(&lines->closed, __ATOMIC_SEQ_CST))
        return false;
    struct line *line = line_of(lines, view.guard, &queue);
    struct weir__waiting *waiting = line ? waiting_of(loop) : NULL;
    struct weir__wait *w = waiting ? make_wait(conn, e, later) : NULL;
    if (w == NULL)
        return false;
    w->guard = view.guard;
    w->line = line;
    w->fd = fd;
    w->entered = *out;
    waiting->n++;
    weir__mailbox_expect(loop);
    conn->wait = w; /* before it joins: its turn may come at once, on another thread */
    conn->held = true;
    if (join(w, e->wait_max < wait_max ? e->wait_max : wait_max, out)) {
        begin_waiting(loop, lines, line);
        return true;
    }
    leave(loop);
    weir__mailbox_forgo(loop);
    conn->wait = NULL;
    conn->held = false;
    free_wait(w);
    return false;
}

/* If it has left the queue already its turn is on the way here: then nobody will be answered, and a
 * permit is given back. */
void weir__wait_abandon(struct weir__conn *conn)
{
    struct weir__wait *w = conn->wait;
    struct weir__loop *loop = conn->loop;

    conn->wait = NULL;
    w->conn = NULL;
    if (!weir_queue_cancel(w->line->queue, &w->waiter))
        return;
    count(w, -1);
    leave(loop);
    serve_line(w->line, weir__loop_now(loop)); /* it may have kept permits from others */
    free_wait(w);
    weir__mailbox_forgo(loop);
}

void weir__wait_cancel(struct weir__conn *conn)
{
    struct weir__wait *w = conn->wait;

    struct line *line = w->line;

    if (weir_queue_cancel(line->queue, &w->waiter)) { /* otherwise it is on its way already */
        on_turn(&w->waiter, WEIR_CANCELLED);
        serve_line(line, weir__loop_now(conn->loop)); /* it may have kept permits from others */
    }
}
