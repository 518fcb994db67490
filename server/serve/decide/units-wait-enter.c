/* units-wait-enter.c -- an enter that found too little in a purse of the fleet, and waits for
 * units. */
#include <stdlib.h>

#include "cluster/agent/asks.h"
#include "server/serve/decide/units-wait.h"
#include "server/serve/net/mailbox.h"

struct weir__units_wait_enter {
    struct weir__letter letter; /* it is decided */
    struct weir__loop *loop;
    struct weir__conn *conn; /* NULL: gone; of the loop's thread */
    struct weir__arena bytes;
    struct weir__enter enter;
    struct weir__later later;
    struct weir__entered entered;
    uint64_t ticket;
    struct weir__fair_user fair_user; /* of one of the agent's places */
    bool cancelled;                   /* the agent gives that back */
    weir_time began;
};

static void free_wait(struct weir__units_wait_enter *w)
{
    if (!w->cancelled)
        weir__units_wait_give(w->loop->server, w->fair_user);
    weir__arena_clear(&w->bytes);
    free(w);
}

/* In the agent's thread. */
static bool decide(void *context, const struct weir__alone_rules *alone, weir_time now,
                   struct weir_ruling *ruling, char told[WEIR_KEY_TEXT])
{
    struct weir__units_wait_enter *w = context;
    struct weir_error error;
    const struct weir__try how = { .now = now, .asked = w->entered.asked, .alone = alone };

    weir__enter_once(w->loop->server, &w->enter, &how, &w->entered, &error);
    *ruling = w->entered.ruling;
    told[0] = '\0';
    return ruling->decision.allowed;
}

static void on_decided(void *context, const struct weir_ruling *ruling, const char *key)
{
    struct weir__units_wait_enter *w = context;

    (void)key;
    w->entered.ruling = *ruling; /* an account that refuses says so here */
    weir__mailbox_add(w->loop, &w->letter);
}

/* On the loop's thread: answers, or waits for a permit now. */
static void finish(struct weir__letter *letter)
{
    struct weir__units_wait_enter *w =
        (struct weir__units_wait_enter *)((char *)letter -
                                          offsetof(struct weir__units_wait_enter, letter));
    struct weir__conn *conn = w->conn;

    if (conn == NULL) {
        weir__enter_forsake(w->loop, &w->entered);
        free_wait(w);
        return;
    }
    conn->units_wait_enter = NULL;
    weir__enter_spend(&w->enter, weir__loop_now(w->loop) - w->began);
    if (!weir__is_dry(&w->entered.ruling) &&
        weir__enter_waits(conn, &w->enter, &w->later, &w->entered)) {
        weir__conn_watch(conn); /* its client may have gone on: then it was read no more */
        free_wait(w);
        return;
    }
    weir__enter_answer(conn, &w->enter, &w->entered, &w->later);
    free_wait(w);
    weir__conn_resume(conn);
}

/* False: there is no place with the agent. */
static bool ask(struct weir__conn *conn, const struct weir__enter *enter,
                const struct weir__later *later, const struct weir_asked *asked)
{
    struct weir__loop *loop = conn->loop;
    struct weir__units_wait_enter *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        weir__units_wait_give(loop->server, conn->fair_user);
        return false;
    }
    *w = (struct weir__units_wait_enter){ .letter = { .open = finish },
                                          .loop = loop,
                                          .conn = conn,
                                          .enter = *enter,
                                          .later = *later,
                                          .entered = { .asked = *asked },
                                          .fair_user = conn->fair_user,
                                          .began = weir__loop_now(loop) };
    const struct weir__agent_dry dry = { .ask = { .attrs = enter->attrs,
                                                  .n = enter->n,
                                                  .ask = { .cost = enter->cost, .now = w->began },
                                                  .done = on_decided,
                                                  .context = w },
                                         .decide = decide,
                                         .caller = weir__units_wait_caller(w->fair_user) };
    conn->units_wait_enter = w;
    conn->held = true;
    weir__mailbox_expect(loop);
    if (weir__enter_copy(&w->bytes, &w->enter) && weir__later_copy(&w->bytes, &w->later) &&
        weir__agent_wait(loop->server->fleet, &dry, &w->ticket, &loop->units_waits))
        return true;
    conn->units_wait_enter = NULL;
    conn->held = false;
    weir__mailbox_forgo(loop);
    free_wait(w);
    return false;
}

/* As for checks: one that finds no place with the agent is decided alone, and one whose client has
 * enough of them is refused, unless its rules let all pass then. */
bool weir__units_wait_enter(struct weir__conn *conn, const struct weir__enter *enter,
                            const struct weir__later *later, struct weir__entered *out)
{
    static const struct weir__alone_rules all = { .all = true },
                                          open = { .open = true, .last = true };
    struct weir__loop *loop = conn->loop;
    struct weir_error error;

    if (loop->server->fleet == NULL)
        return false;
    bool placed = weir__units_wait_take(conn);
    if (placed && ask(conn, enter, later, &out->asked))
        return true;
    const struct weir__try how = { .now = weir__loop_now(loop),
                                   .asked = out->asked,
                                   .alone = placed ? &all : &open };
    weir__enter_once(loop->server, enter, &how, out, &error);
    return false;
}

void weir__units_wait_enter_cancel(struct weir__conn *conn)
{
    struct weir__units_wait_enter *w = conn->units_wait_enter;

    if (!weir_fleet_cancel(w->loop->server->fleet, w->ticket))
        return;
    w->cancelled = true;
    w->entered =
        (struct weir__entered){ .ruling = { .decision.reason = WEIR_CANCELLED, .level = 3 },
                                .uncounted = true };
    weir__mailbox_put(w->loop, &w->letter);
}

void weir__units_wait_enter_abandon(struct weir__conn *conn)
{
    struct weir__units_wait_enter *w = conn->units_wait_enter;

    conn->units_wait_enter = NULL;
    w->conn = NULL;
    if (!weir_fleet_cancel(w->loop->server->fleet, w->ticket))
        return;
    w->cancelled = true;
    weir__mailbox_forgo(w->loop);
    free_wait(w);
}
