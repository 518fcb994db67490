/* waiting.c -- asks that wait in a guard's queue while the loop goes on. */
#include "server/serve/decide/waiting.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/thread.h"
#include "engine/waiting-lines.h"
#include "guard/guard.h"
#include "server/serve/net/mailbox.h"
#include "server/serve/net/peer.h"

#define POLL_MS 5
#define LISTEN  WEIR_SECOND /* meanwhile loops poll */

struct weir__lines {
    struct weir__server *server;
    int64_t waiting;       /* in all of them, or on their way to the answer; atomic */
    bool closed;           /* nobody waits any more; atomic */
    pthread_mutex_t mutex; /* for making the listener */
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
    struct weir__line *line;
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
    if (lines == NULL)
        return;
    __atomic_store_n(&lines->ended, true, __ATOMIC_SEQ_CST);
    stir(lines);
    if (lines->listener != 0)
        pthread_join(lines->listener, NULL);
    pthread_mutex_destroy(&lines->mutex);
    free(lines);
}

/* ---------------------------------------------------------------- turns ---- */

/* With the queue locked.  If now another guard is busy it does not hold up those behind it: it
 * leaves; while they have to wait anyway, it keeps its place. */
static enum weir_reason try_to_enter(void *context, struct weir_waiter *waiter)
{
    const weir_time *now = context;
    struct weir__wait *w = wait_of(waiter);
    const struct weir_ruling *r = &w->entered.ruling;
    struct weir__try how = { .now = *now,
                             .again = true,
                             .asked = w->entered.asked,
                             .waited = *now > w->joined ? *now - w->joined : 0 };
    struct weir_ruling before = *r;
    struct weir_error error;

    if (weir__peer_has_hung_up(w->fd))
        return WEIR_CANCELLED;
    if (weir__enter_once(w->lines->server, &w->enter, &how, &w->entered, &error) != 200)
        return WEIR_CANCELLED; /* other rules have come: its class or its guard has gone */
    if (!r->decision.allowed && r->decision.reason == WEIR_BUSY && r->guard != NULL) {
        if (w->entered.guard->id == w->guard->id)
            return WEIR_BUSY;
        if (weir__guard_is_full(w->guard)) {
            w->entered.ruling = before; /* it does not wait for that one */
            return WEIR_BUSY;
        }
    }
    w->decided = true;
    if (r->decision.allowed)
        return WEIR_GRANTED; /* in shadow there is a reason, and yet it is in */
    return r->decision.reason == WEIR_BUSY ? WEIR_CANCELLED : (enum weir_reason)r->decision.reason;
}

static void refuse(struct weir__wait *w, enum weir_reason reason)
{
    struct weir_ruling *r = &w->entered.ruling;

    w->entered.guard = w->guard;
    r->guard = weir__guard_name(w->guard);
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

static void serve_line(struct weir__line *line, weir_time now)
{
    weir__line_serve(line, now, try_to_enter, &now);
}

void weir__lines_serve(struct weir__lines *lines, const struct weir_guard *guard, weir_time now)
{
    struct weir__line *l =
        weir__get(&lines->waiting) > 0 ? weir__line_find(lines->server->engine, guard) : NULL;

    if (l != NULL)
        serve_line(l, now);
}

bool weir__lines_occupied(struct weir__lines *lines, const struct weir_guard *guard,
                          const struct weir_ask *ask)
{
    return lines != NULL && __builtin_expect(weir__get(&lines->waiting) > 0, 0) &&
           weir__line_is_occupied(lines->server->engine, guard, ask);
}

/* A waiter that joins meanwhile sees that it is closed, or is seen here. */
void weir__lines_close(struct weir__lines *lines)
{
    if (lines == NULL)
        return;
    __atomic_store_n(&lines->closed, true, __ATOMIC_SEQ_CST);
    for (struct weir__line *l = weir__line_first(lines->server->engine); l != NULL; l = l->next)
        weir__waiters_tell(weir__queue_clear(l->queue));
}

int64_t weir__lines_waiting(struct weir__lines *lines, const struct weir_guard *guard)
{
    struct weir__line *l = lines ? weir__line_find(lines->server->engine, guard) : NULL;

    return l != NULL ? weir_queue_length(l->queue) : 0;
}

/* -------------------------------------------------------------- listening ---- */

/* Lets the table's bell wake it for every guard that somebody waits for, and offers turns.  Returns
 * the bell as it was before. */
static uint32_t look(struct weir__lines *lines)
{
    uint32_t bell = weir__acquire(&weir_table_of(lines->server->engine)->header->bell);
    weir_time now = weir__server_now(lines->server);

    for (struct weir__line *l = weir__line_first(lines->server->engine); l != NULL; l = l->next)
        if (weir_queue_length(l->queue) > 0)
            weir__guard_want(l->guard);
    weir__lines_serve_all(lines->server->engine, now, try_to_enter, &now);
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

/* Made when somebody waits first. */
static void start_listening(struct weir__lines *lines)
{
    pthread_mutex_lock(&lines->mutex);
    if (!lines->listens) {
        if (weir__thread_start(&lines->listener, listen_for_bell, lines) != 0)
            lines->listener = 0;
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
        w->entered.uncounted = w->entered.uncounted || !w->decided;
        weir__enter_forsake(w->loop, &w->entered);
        free_wait(w);
        return;
    }
    conn->wait = NULL;
    weir__enter_spend(&w->enter, weir__loop_now(w->loop) - w->joined);
    if (weir__enter_waits(conn, &w->enter, &w->later, &w->entered)) { /* elsewhere */
        free_wait(w);
        return;
    }
    weir__enter_answer(conn, &w->enter, &w->entered, &w->later);
    free_wait(w);
    weir__conn_resume(conn);
}

void weir__waiting_poll(struct weir__loop *loop)
{
    weir_time now = weir__loop_now(loop);

    weir__lines_serve_all(loop->server->engine, now, try_to_enter, &now);
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

static bool join(struct weir__wait *w, struct weir__entered *out)
{
    struct weir__joining j = { .waiter = &w->waiter,
                               .now = weir__loop_now(w->loop),
                               .patient = true,
                               .key = out->key_id,
                               .key_max = out->key_max,
                               .decision = &out->ruling.decision };

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
static void begin_waiting(struct weir__loop *loop, struct weir__lines *lines,
                          struct weir__line *line)
{
    uv_timer_t *poll = &loop->waiting->poll;

    if (!uv_is_active((uv_handle_t *)poll)) /* not anew: newcomers would put it off for ever */
        uv_timer_start(poll, on_poll, POLL_MS, POLL_MS);
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
    struct weir__lines *lines = loop->server->lines;
    struct weir_waiter waiter = { .priority = out->priority,
                                  .user_class = out->user_class,
                                  .turn = on_turn };
    weir_time wait = e->wait_max;
    uv_os_fd_t fd;

    if (lines == NULL || conn->heard_all || uv_fileno(&conn->uv.handle, &fd) != 0 ||
        __atomic_load_n(&lines->closed, __ATOMIC_SEQ_CST))
        return false;
    const struct weir_ask ask = { .priority = out->priority,
                                  .user_class = out->user_class,
                                  .now = weir__loop_now(loop) };
    struct weir__line *line = weir__line_claim(lines->server->engine, out->guard, &ask, &wait);
    struct weir__waiting *waiting = line ? waiting_of(loop) : NULL;
    struct weir__wait *w = waiting ? make_wait(conn, e, later) : NULL;
    if (w == NULL)
        return false;
    w->waiter = waiter;
    w->waiter.deadline = weir__deadline_of(ask.now, wait);
    w->guard = out->guard;
    w->line = line;
    w->fd = fd;
    w->entered = *out;
    waiting->n++;
    weir__mailbox_expect(loop);
    conn->wait = w; /* before it joins: its turn may come at once, on another thread */
    conn->held = true;
    if (join(w, out)) {
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
    struct weir__line *line = w->line;

    if (weir_queue_cancel(line->queue, &w->waiter)) { /* otherwise it is on its way already */
        on_turn(&w->waiter, WEIR_CANCELLED);
        serve_line(line, weir__loop_now(conn->loop)); /* it may have kept permits from others */
    }
}
