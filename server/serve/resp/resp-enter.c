/* resp-enter.c -- WEIR.ENTER, WEIR.EXIT, WEIR.RENEW: work in progress, over RESP. */
#include <string.h>

#include "server/serve/decide/bound-permits.h"
#include "server/serve/decide/decide-verbs.h"
#include "server/serve/resp/resp.h"

/* ---------------------------------------------------------------- enter ---- */

/* The ten members of WEIR.CHECK's answer, and three more. */
static void reply_entered(struct weir__conn *conn, const struct weir__entered *entered)
{
    const struct weir_ruling *r = &entered->ruling;
    size_t names = (r->rule ? strlen(r->rule) : 0) + (r->shadow ? strlen(r->shadow) : 0);
    char token[WEIR__PERMIT_TOKEN_MAX];

    weir__ask_token(conn->loop, &entered->permits, token);
    weir__reply_header(conn, '*', 13);
    char *to = weir__buffer_room(&conn->loop->out, WEIR__RESP_RULING + names);
    if (to)
        conn->loop->out.len += (size_t)(weir__resp_put_ruling(to, r, conn->resp) - to);
    weir__reply_text(conn, r->guard);
    weir__reply_text(conn, token[0] ? token : NULL);
    weir__reply_integer(conn, token[0] ? weir__ask_ms(entered->lease) : -1);
}

/* It has waited: the connection is held until this is sent. */
static void answer_later(struct weir__conn *conn, const struct weir__entered *entered,
                         const void *context)
{
    if (*(const bool *)context)
        weir__bound_keep(conn, entered);
    reply_entered(conn, entered);
    weir__conn_send_out(conn);
}

void weir__resp_enter(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__verb_call c;
    struct weir__entered entered;
    bool good = weir__resp_read(call, &c), bound = good && c.values[WEIR__ENTER_BOUND].number;
    const char *full = bound ? weir__bound_make_room(conn) : NULL;
    const struct weir__later later = { answer_later, &bound, sizeof(bound) };
    int status = 400;

    if (full)
        weir__call_fail(&c, 400, "%s", full);
    else if (good)
        status = weir__decide_enter(&c, conn, &later, &entered);
    if (status == 200) {
        if (bound)
            weir__bound_keep(conn, &entered);
        reply_entered(conn, &entered);
    } else if (status != 202) {
        weir__resp_reply(conn, &c);
    }
    weir__call_end(&c);
}

/* ------------------------------------------------------- exit and renew ---- */

void weir__resp_exit(struct weir__resp_call *call)
{
    struct weir__verb_call c;

    if (weir__resp_read(call, &c))
        c.verb->run(&c);
    if (c.status == 200 && c.number)
        weir__bound_drop(call->conn, &c.permits);
    weir__resp_reply(call->conn, &c);
    weir__call_end(&c);
}

void weir__resp_renew(struct weir__resp_call *call)
{
    struct weir__verb_call c;

    if (weir__resp_read(call, &c))
        c.verb->run(&c);
    if (c.status == 200)
        weir__bound_renew(call->conn, &c.permits, &c.renewed.permits, c.renewed.lease);
    weir__resp_reply(call->conn, &c);
    weir__call_end(&c);
}
