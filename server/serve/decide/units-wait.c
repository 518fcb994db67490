/* units-wait.c -- checks that wait for units of the fleet. */
#include "server/serve/decide/units-wait.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/agent/asks.h"
#include "server/serve/decide/ask-ids.h"
#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/net/mailbox.h"

/* A check that waits. */
struct one {
    struct weir__units_wait *wait;
    const struct weir__check *check; /* the caller's, until it is asked */
    struct weir_ruling *ruling;
    struct weir__ask_id id; /* no bytes: none */
    uint64_t ticket;
    struct weir__fair_user fair_user;
    bool placed; /* one of the agent's places is for it */
    bool waits, cancelled;
    char key[WEIR_KEY_TEXT]; /* if it is refused */
};

/* The checks of a connection that are answered together; one piece of memory. */
struct weir__units_wait {
    struct weir__letter letter; /* all are decided */
    struct weir__loop *loop;
    struct weir__conn *conn; /* NULL: gone; of the loop's thread */
    struct weir__units_wait_answer how;
    struct weir_ruling *rulings;
    size_t n;
    char *end;
    size_t left; /* atomic: those not decided yet, and one while the loop is at work on it */
    size_t n_ones;
    struct one ones[];
};

static bool is_last(struct weir__units_wait *w)
{
    return __atomic_sub_fetch(&w->left, 1, __ATOMIC_ACQ_REL) == 0;
}

/* In the loop's thread. */
static void count_down(struct weir__units_wait *w)
{
    if (is_last(w))
        weir__mailbox_put(w->loop, &w->letter);
}

/* In the agent's thread, which wakes the loop when it has answered others too. */
static void on_decided(void *context, const struct weir_ruling *ruling, const char *key)
{
    struct one *one = context;

    *one->ruling = *ruling;
    if (!ruling->decision.allowed)
        memcpy(one->key, key, strlen(key) + 1);
    if (is_last(one->wait))
        weir__mailbox_add(one->wait->loop, &one->wait->letter);
}

/* A retry of an ask that was not decided is a new one. */
static void end_id(struct weir__server *server, const struct weir__ask_id *id,
                   const struct weir_ruling *ruling)
{
    bool decided = !weir__is_dry(ruling) && ruling->decision.reason != WEIR_CANCELLED;

    if (id->len > 0)
        weir__ask_ids_settle(server->ask_ids, id, decided ? ruling : NULL);
}

/* Counted and remembered as if it had been decided at once.  A client that has gone was refused
 * nothing. */
static void settle(struct weir__units_wait *w, struct one *one)
{
    if (one->placed && !one->cancelled)
        weir__units_wait_give(w->loop->server, one->fair_user);
    one->id.now = weir__loop_now(w->loop);
    if (!one->cancelled || w->conn)
        weir__ask_count(w->loop, one->ruling, one->key, one->id.now);
    if (one->cancelled && w->conn)
        weir__count_refused_later(w->loop->server->engine);
    end_id(w->loop->server, &one->id, one->ruling);
}

static void finish(struct weir__letter *letter)
{
    struct weir__units_wait *w =
        (struct weir__units_wait *)((char *)letter - offsetof(struct weir__units_wait, letter));
    struct weir__conn *conn = w->conn;

    for (size_t i = 0; i < w->n_ones; i++)
        settle(w, &w->ones[i]);
    if (conn) {
        conn->units_wait = NULL;
        w->how.answer(conn, w->rulings, w->n, w->how.context);
    }
    free(w);
    if (conn)
        weir__conn_resume(conn);
}

/* ---------------------------------------------------------------- waiting ---- */

bool weir__units_wait_take(struct weir__conn *conn)
{
    return weir__fair_use_take_place(conn->loop->server->fair_use, WEIR__POOL_UNITS_WAITS, conn,
                                     WEIR__AGENT_ASKS, weir__loop_now(conn->loop));
}

void weir__units_wait_give(struct weir__server *server, struct weir__fair_user fair_user)
{
    weir__fair_use_give_place(server->fair_use, WEIR__POOL_UNITS_WAITS, fair_user);
}

uint32_t weir__units_wait_caller(struct weir__fair_user fair_user)
{
    return (uint32_t)fair_user.address << 16 | fair_user.connection;
}

void weir__units_wait_freed(void *server, uint32_t caller)
{
    weir__units_wait_give(server,
                          (struct weir__fair_user){ (uint16_t)(caller >> 16), (uint16_t)caller });
}

static void make_one(struct weir__units_wait *w, const struct weir__check *check, size_t i)
{
    struct one *one = &w->ones[w->n_ones++];
    const struct weir__text *id = &check->id;

    *one = (struct one){ .wait = w,
                         .check = check,
                         .ruling = &w->rulings[i],
                         .fair_user = w->conn->fair_user,
                         .placed = weir__units_wait_take(w->conn) };
    if (id->len == 0)
        return;
    one->id.bytes = memcpy(w->end, id->bytes, id->len);
    one->id.len = id->len;
    one->id.fingerprint = weir__ask_fingerprint(w->loop->server->table->secrets, check);
    w->end += id->len;
}

/* All that is needed later is its own: the connection's input is used for something else
 * meanwhile. */
static struct weir__units_wait *make(struct weir__conn *conn, const struct weir__check *checks,
                                     const struct weir_ruling *rulings, size_t n,
                                     const struct weir__units_wait_answer *how)
{
    size_t dry = 0, bytes = how->size;

    for (size_t i = 0; i < n; i++)
        if (weir__is_dry(&rulings[i])) {
            dry++;
            bytes += checks[i].id.len;
        }
    struct weir__units_wait *w =
        malloc(sizeof(*w) + dry * sizeof(w->ones[0]) + n * sizeof(*rulings) + bytes);
    if (!w)
        return NULL;
    *w = (struct weir__units_wait){
        .letter = { .open = finish }, .loop = conn->loop, .conn = conn, .n = n
    };
    w->rulings = (struct weir_ruling *)(w->ones + dry);
    memcpy(w->rulings, rulings, n * sizeof(*rulings));
    w->end = (char *)(w->rulings + n);
    w->how = (struct weir__units_wait_answer){ how->answer, w->end, how->size };
    if (how->size > 0)
        memcpy(w->end, how->context, how->size);
    w->end += how->size;
    for (size_t i = 0; i < n; i++)
        if (weir__is_dry(&rulings[i]))
            make_one(w, &checks[i], i);
    return w;
}

/* One that finds no place with the agent is decided alone.  One whose client has enough of them is
 * refused, unless its rules let all pass then: by shares more than the limit would pass. */
static void ask(struct weir__units_wait *w, struct one *one)
{
    static const struct weir__alone_rules all = { .all = true },
                                          open = { .open = true, .last = true };
    const struct weir__server *server = w->loop->server;
    const struct weir__check *check = one->check;
    const struct weir_ask ask = { .cost = check->cost,
                                  .wait_max = check->wait_max,
                                  .now = weir__loop_now(w->loop) };
    const struct weir__agent_dry dry = { .ask = { .attrs = check->attrs,
                                                  .n = check->n,
                                                  .ask = ask,
                                                  .done = on_decided,
                                                  .context = one },
                                         .caller = weir__units_wait_caller(one->fair_user) };

    one->waits =
        one->placed && weir__agent_wait(server->fleet, &dry, &one->ticket, &w->loop->units_waits);
    if (one->waits)
        return;
    weir__check_alone(server->engine, check->attrs, check->n, &ask, one->placed ? &all : &open,
                      one->ruling, one->key);
    count_down(w);
}

/* A dry purse is the last word. */
static void decide_now(struct weir__loop *loop, const struct weir__check *check,
                       struct weir_ruling *ruling)
{
    static const struct weir__alone_rules last = { .last = true };
    struct weir__server *server = loop->server;
    weir_time now = weir__loop_now(loop);
    const struct weir_ask ask = { .cost = check->cost, .wait_max = check->wait_max, .now = now };
    const struct weir__ask_id id = { check->id.bytes, check->id.len,
                                     weir__ask_fingerprint(server->table->secrets, check), now, 0 };
    char key[WEIR_KEY_TEXT];

    weir__check_alone(server->engine, check->attrs, check->n, &ask, &last, ruling, key);
    weir__ask_count(loop, ruling, key, now);
    end_id(server, &id, ruling);
}

bool weir__units_wait(struct weir__conn *conn, const struct weir__check *checks,
                      struct weir_ruling *rulings, size_t n,
                      const struct weir__units_wait_answer *how)
{
    struct weir__units_wait *w =
        how && conn->loop->server->fleet ? make(conn, checks, rulings, n, how) : NULL;

    for (size_t i = 0; !w && i < n; i++)
        if (weir__is_dry(&rulings[i]))
            decide_now(conn->loop, &checks[i], &rulings[i]);
    if (!w)
        return false;
    w->left = w->n_ones + 1;
    conn->units_wait = w;
    conn->held = true;
    weir__mailbox_expect(conn->loop);
    for (size_t i = 0; i < w->n_ones; i++)
        ask(w, &w->ones[i]);
    count_down(w);
    return true;
}

void weir__units_wait_hand_over(struct weir__loop *loop)
{
    if (loop->units_waits.first)
        weir__agent_hand_over(loop->server->fleet, &loop->units_waits);
}

/* False: all are decided, and it is on its way. */
static bool keep(struct weir__units_wait *w)
{
    size_t left = __atomic_load_n(&w->left, __ATOMIC_ACQUIRE);

    while (left > 0 && !__atomic_compare_exchange_n(&w->left, &left, left + 1, false,
                                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return left > 0;
}

/* Those that are not decided yet. */
void weir__units_wait_cancel(struct weir__conn *conn)
{
    struct weir__units_wait *w = conn->units_wait;

    if (!keep(w))
        return;
    for (size_t i = 0; i < w->n_ones; i++) {
        struct one *one = &w->ones[i];
        if (one->cancelled || !one->waits ||
            !weir_fleet_cancel(w->loop->server->fleet, one->ticket))
            continue;
        one->cancelled = true;
        *one->ruling = (struct weir_ruling){ .decision.reason = WEIR_CANCELLED, .level = 3 };
        count_down(w);
    }
    count_down(w);
}

void weir__units_wait_abandon(struct weir__conn *conn)
{
    weir__units_wait_cancel(conn);
    conn->units_wait->conn = NULL;
    conn->units_wait = NULL;
}
