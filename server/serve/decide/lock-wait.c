/* lock-wait.c -- asks for a lock of the fleet, in line while the loop goes on. */
#include "server/serve/decide/lock-wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/agent/operators.h"
#include "cluster/fleet/lock-send.h"
#include "cluster/redis/trouble.h"
#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/fleet.h"
#include "server/serve/net/mailbox.h"
#include "server/serve/net/peer.h"

#define TICK_MS   10
#define REST      (50 * WEIR_MILLISECOND) /* between two tries to give back */
#define GIVE_BACK (60 * WEIR_SECOND)      /* then the lifetime does the rest */

struct weir__lock_wait {
    struct weir__lock_call call;
    struct weir__letter letter; /* the ask under way is answered */
    struct weir__lock lock;
    struct weir__lock_wait *next, **link;
    struct weir__loop *loop;
    struct weir__conn *conn; /* NULL: it is gone, or answered */
    struct weir_redis *redis;
    struct weir__fair_user fair_user;
    struct weir__verb_call *verb_call;
    weir__call_done *done;
    void *context;
    struct weir_redis_lock_result result; /* the last that says who has it, or why nobody knows */
    weir_time answered;                   /* when that was */
    weir_time next_try, last_try;         /* to give back; 0: not tried yet */
    bool asks;                            /* one is under way */
    bool doubtful;                        /* Redis may have granted it, or has, and nobody knows */
    bool cancelled, ending;               /* by the client; the server ends */
    char owner[WEIR__LOCK_ID_MAX];
    struct weir__text name, id;
    char texts[]; /* both of them */
};

/* A loop's. */
struct weir__lock_waits {
    uv_timer_t tick; /* runs while somebody waits */
    struct weir__lock_wait *first;
};

static void step(struct weir__lock_wait *w, struct weir__lock_event event);

/* ---------------------------------------------------------------- answers ---- */

/* The holder's id is its key to the lock: others do not see it. */
void weir__lock_answer(struct weir__buffer *out, const struct weir__lock_seen *seen)
{
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member_bool(out, "held", seen->owner != NULL);
    weir__buffer_member_or_null(out, "owner", seen->owner);
    weir__buffer_member_number_or_null(out, "token", seen->owner != NULL, seen->token);
    weir__buffer_member_number(out, "left_ms", seen->left / WEIR_MILLISECOND); /* rather less */
    weir__buffer_member_number(out, "waiting", seen->waiting);
    weir__buffer_close(out, "}");
}

static void fill_answer(struct weir__lock_wait *w)
{
    const struct weir_redis_lock_result *r = &w->result;
    bool held = w->lock.phase == WEIR__LOCK_HELD;
    weir_time now = weir__clock_monotonic();
    struct weir__lock_seen seen = { .owner = held ? r->holder : NULL,
                                    .token = w->lock.token,
                                    .waiting = r->waiters - (r->place > 0),
                                    .left = held ? w->lock.until - now : r->left };

    if (held || (r->outcome == WEIR_REDIS_ANSWERED && !w->ending))
        weir__lock_answer(&w->verb_call->out, &seen);
    else if (w->ending)
        weir__call_fail(w->verb_call, 503, "the server is ending: ask another one");
    else
        weir__call_fail(w->verb_call, 503, "the fleet's Redis %s: %s", weir__redis_trouble(r->why),
                        r->why);
}

/* False: the client is gone, and has not been told. */
static bool answer(struct weir__lock_wait *w)
{
    struct weir__conn *conn = w->conn;

    w->conn = NULL;
    conn->lock_wait = NULL;
    fill_answer(w);
    w->done(conn, w->context);
    bool told = !conn->closed;
    weir__conn_resume(conn);
    return told;
}

/* --------------------------------------------------------------- one ask ---- */

static void end(struct weir__lock_wait *w)
{
    struct weir__loop *loop = w->loop;

    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    if (loop->lock_waits->first == NULL)
        uv_timer_stop(&loop->lock_waits->tick);
    weir__fair_use_give_place(loop->server->fair_use, WEIR__POOL_LOCKS, w->fair_user);
    free(w);
}

/* In the client's thread. */
static void on_answered(struct weir__lock_call *call)
{
    struct weir__lock_wait *w = (struct weir__lock_wait *)call;

    weir__mailbox_put(w->loop, &w->letter);
}

static void ask(struct weir__lock_wait *w, enum weir__lock_verb verb, weir_time timeout)
{
    struct weir__lock_ask ask = { .verb = verb,
                                  .name = { w->name.bytes, w->name.len },
                                  .id = w->owner,
                                  .life = w->lock.life,
                                  .token = w->lock.token,
                                  .ask = w->id };

    w->asks = true;
    weir__mailbox_expect(w->loop);
    weir__lock_call(w->redis, &w->call, &ask, timeout);
}

static bool is_draining(const struct weir__lock_wait *w)
{
    return __atomic_load_n(&w->loop->server->draining, __ATOMIC_RELAXED) != 0;
}

/* A place in line ends by itself, and so does the lock, but perhaps after a day: if Redis is away
 * it is tried again. */
static void quit_answered(struct weir__lock_wait *w, weir_time now)
{
    w->last_try = w->last_try ? w->last_try : now + GIVE_BACK;
    w->next_try = now + REST;
    if (w->call.result.outcome == WEIR_REDIS_ANSWERED || !w->doubtful ||
        w->next_try > w->last_try || is_draining(w))
        end(w);
}

static void on_letter(struct weir__letter *letter)
{
    struct weir__lock_wait *w =
        (struct weir__lock_wait *)((char *)letter - offsetof(struct weir__lock_wait, letter));
    const struct weir_redis_lock_result *r = &w->call.result;
    weir_time now = weir__clock_monotonic();

    w->asks = false;
    if (w->lock.verb == WEIR__LOCK_FREE) {
        quit_answered(w, now);
        return;
    }
    w->doubtful = w->doubtful || r->held || r->outcome == WEIR_REDIS_UNKNOWN;
    if (r->outcome == WEIR_REDIS_ANSWERED)
        w->answered = now;
    if (w->answered == now || now - w->answered > WEIR__LOCK_STALE)
        w->result = *r;
    step(w, weir__lock_event_of(r));
}

/* ------------------------------------------------------------------ turns ---- */

static bool is_gone(const struct weir__lock_wait *w)
{
    return w->conn == NULL || weir__peer_is_gone(w->conn);
}

static const struct weir__lock_event leave = { .kind = WEIR__LOCK_END };

/* It has the lock: the client is told, or it goes back. */
static void have(struct weir__lock_wait *w)
{
    if (!is_gone(w) && answer(w))
        end(w);
    else
        step(w, leave);
}

/* May free it. */
static void step(struct weir__lock_wait *w, struct weir__lock_event event)
{
    struct weir__lock_send send = weir__lock_step(&w->lock, &event, weir__clock_monotonic());

    if (w->lock.phase == WEIR__LOCK_HELD) {
        w->lock.verb = WEIR__LOCK_NOTHING; /* its holder renews it, or nobody */
        have(w);
        return;
    }
    if (w->lock.phase != WEIR__LOCK_WAITING && w->conn)
        answer(w);
    if (send.verb == WEIR__LOCK_FREE)
        ask(w, WEIR__LOCK_QUIT, WEIR__LOCK_LEAVE_MAX);
    else if (send.verb != WEIR__LOCK_NOTHING)
        ask(w, send.verb, send.timeout);
    else if (!w->asks && weir__lock_is_over(&w->lock))
        end(w);
}

static void look(struct weir__lock_wait *w, weir_time now)
{
    if (w->lock.verb == WEIR__LOCK_FREE && !w->asks && now >= w->next_try)
        ask(w, WEIR__LOCK_QUIT, WEIR__LOCK_LEAVE_MAX);
    if (w->lock.phase != WEIR__LOCK_WAITING)
        return;
    if (now >= w->lock.due && is_gone(w))
        w->cancelled = true;
    if (w->cancelled || (is_draining(w) && w->lock.waits)) {
        w->ending = !w->cancelled;
        step(w, leave);
    } else if (now >= w->lock.due) {
        step(w, (struct weir__lock_event){ .kind = WEIR__LOCK_TIME });
    }
}

static void on_tick(uv_timer_t *tick)
{
    struct weir__loop *loop = tick->data;
    struct weir__lock_wait *next;
    weir_time now = weir__clock_monotonic();

    for (struct weir__lock_wait *w = loop->lock_waits->first; w; w = next) {
        next = w->next;
        look(w, now);
    }
}

void weir__lock_cancel(struct weir__conn *conn)
{
    conn->lock_wait->cancelled = true;
}

void weir__lock_abandon(struct weir__conn *conn)
{
    struct weir__lock_wait *w = conn->lock_wait;

    conn->lock_wait = NULL;
    w->conn = NULL;
    w->done(NULL, w->context);
    step(w, leave);
}

/* -------------------------------------------------------------- beginning ---- */

/* Made when somebody waits first.  NULL: no memory. */
static struct weir__lock_waits *waits_of(struct weir__loop *loop)
{
    struct weir__lock_waits *waits = loop->lock_waits;

    if (waits == NULL && (waits = calloc(1, sizeof(*waits))) != NULL) {
        uv_timer_init(&loop->uv, &waits->tick);
        waits->tick.data = loop;
        loop->lock_waits = waits;
    }
    return waits;
}

/* Those that are there rest between two tries to give back. */
void weir__lock_waits_close(struct weir__loop *loop)
{
    while (loop->lock_waits && loop->lock_waits->first)
        end(loop->lock_waits->first);
    if (loop->lock_waits && !uv_is_closing((uv_handle_t *)&loop->lock_waits->tick))
        uv_close((uv_handle_t *)&loop->lock_waits->tick, NULL);
}

void weir__lock_waits_free(struct weir__loop *loop)
{
    free(loop->lock_waits);
    loop->lock_waits = NULL;
}

/* With texts of its own: it may outlive the call, to leave the line.  NULL: no memory. */
static struct weir__lock_wait *make(struct weir__conn *conn, const struct weir__verb_call *call)
{
    struct weir__text name = call->values[0].text, id = call->values[3].text;
    struct weir__lock_wait *w =
        waits_of(conn->loop) ? malloc(sizeof(*w) + name.len + id.len) : NULL;

    if (w == NULL)
        return NULL;
    *w = (struct weir__lock_wait){ .call.done = on_answered,
                                   .letter.open = on_letter,
                                   .lock.life = call->values[1].number,
                                   .loop = conn->loop,
                                   .conn = conn,
                                   .fair_user = conn->fair_user,
                                   .answered = -WEIR__LOCK_STALE,
                                   .result = { .outcome = WEIR_REDIS_UNKNOWN,
                                               .why = "no answer in time" },
                                   .name = { w->texts, name.len },
                                   .id = { w->texts + name.len, id.len } };
    memcpy(w->texts, name.bytes, name.len);
    if (id.len > 0)
        memcpy(w->texts + name.len, id.bytes, id.len);
    return w;
}

static void join(struct weir__lock_wait *w)
{
    struct weir__lock_waits *waits = w->loop->lock_waits;

    w->link = &waits->first;
    w->next = waits->first;
    if (w->next)
        w->next->link = &w->next;
    waits->first = w;
    if (!uv_is_active((uv_handle_t *)&waits->tick))
        uv_timer_start(&waits->tick, on_tick, TICK_MS, TICK_MS);
}

int weir__lock_begin(struct weir__conn *conn, struct weir__verb_call *call, weir__call_done *done,
                     void *context)
{
    struct weir_error error = { .text = "" };
    struct weir_fleet *fleet = call->server->fleet;
    struct weir_redis *redis = fleet ? weir__agent_redis(fleet, &error) : NULL;

    if (redis == NULL) {
        weir__call_fail(call, fleet ? 503 : 404, "%s", fleet ? error.text : WEIR__NO_FLEET);
        return WEIR_SYSTEM;
    }
    if (!weir__fair_use_take_place(call->server->fair_use, WEIR__POOL_LOCKS, conn, WEIR__LOCK_WAITS,
                                   weir__loop_now(conn->loop))) {
        weir__call_fail(call, 503, "too many wait for locks at this server; try again later");
        return WEIR_NO_MEMORY;
    }
    struct weir__lock_wait *w = make(conn, call);
    if (w == NULL || !weir__lock_owner(w->owner)) {
        weir__fair_use_give_place(call->server->fair_use, WEIR__POOL_LOCKS, conn->fair_user);
        free(w);
        weir__call_no_memory(call);
        return WEIR_NO_MEMORY;
    }
    w->redis = redis;
    w->verb_call = call;
    w->done = done;
    w->context = context;
    conn->lock_wait = w;
    conn->held = true;
    join(w);
    step(w, (struct weir__lock_event){ .kind = WEIR__LOCK_BEGIN, .span = call->values[2].number });
    return WEIR_OK;
}
