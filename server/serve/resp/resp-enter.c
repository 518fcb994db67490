/* resp-enter.c -- WEIR.ENTER, WEIR.EXIT, WEIR.RENEW: work in progress, over RESP.
 *
 * A permit is good on any connection, since clients have pools of them.  Those that were taken with
 * BOUND are also remembered here, and given back (ignored: nothing is learnt from it) when their
 * connection closes: for clients that hold one connection for as long as they work.
 */
#include <stdlib.h>
#include <string.h>

#include "server/serve/decide/decide-verbs.h"
#include "server/serve/resp/resp.h"

#define BOUND_MAX 256 /* of one connection */

/* ---------------------------------------------------------------- bound ---- */

struct weir__bound {
    size_t n;
    struct bound {
        struct weir__permits permits;
        weir_time until; /* then the lease is over anyway */
    } each[BOUND_MAX];
};

static bool is_same(const struct weir__permits *a, const struct weir__permits *b)
{
    uint32_t i = 0;

    while (i < a->n && a->n == b->n && a->each[i].guard == b->each[i].guard &&
           a->each[i].permit.seat == b->each[i].permit.seat &&
           a->each[i].permit.word == b->each[i].permit.word)
        i++;
    return i == a->n && i == b->n;
}

static void drop_bound(struct weir__bound *bound, struct bound *b)
{
    *b = bound->each[--bound->n];
}

static struct bound *find_bound(const struct weir__conn *conn, const struct weir__permits *permits)
{
    const struct weir__resp_session *s = conn->session;
    struct weir__bound *b = s ? s->bound : NULL;

    for (size_t i = 0; b && i < b->n; i++)
        if (is_same(&b->each[i].permits, permits))
            return &b->each[i];
    return NULL;
}

/* Room for one more; those that were given back elsewhere make room when their time is over.  NULL,
 * or why not. */
static const char *make_room(struct weir__conn *conn)
{
    struct weir__resp_session *s = weir__resp_session(conn);
    weir_time now = weir__loop_now(conn->loop);

    if (s && !s->bound)
        s->bound = calloc(1, sizeof(*s->bound));
    if (!s || !s->bound)
        return "no memory";
    for (size_t i = s->bound->n; s->bound->n == BOUND_MAX && i-- > 0;)
        if (s->bound->each[i].until <= now)
            drop_bound(s->bound, &s->bound->each[i]);
    return s->bound->n < BOUND_MAX ? NULL
                                   : "a connection has room for 256 permits that are BOUND: exit "
                                     "some, or use several connections";
}

static void keep_bound(struct weir__conn *conn, const struct weir__entered *entered)
{
    struct weir__bound *b = ((struct weir__resp_session *)conn->session)->bound;

    if (entered->permits.n)
        b->each[b->n++] =
            (struct bound){ entered->permits, weir__loop_now(conn->loop) + entered->lease };
}

void weir__resp_unbind(struct weir__conn *conn, struct weir__resp_session *s)
{
    for (size_t i = 0; s->bound && i < s->bound->n; i++)
        weir__ask_exit(conn->loop, &s->bound->each[i].permits, WEIR_IGNORED, -1);
    free(s->bound);
    s->bound = NULL;
}

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
        keep_bound(conn, entered);
    reply_entered(conn, entered);
    weir__conn_send_out(conn);
}

void weir__resp_enter(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__verb_call c;
    struct weir__entered entered;
    bool good = weir__resp_read(call, &c), bound = good && c.values[WEIR__ENTER_BOUND].number;
    const char *full = bound ? make_room(conn) : NULL;
    const struct weir__later later = { answer_later, &bound, sizeof(bound) };
    int status = 400;

    if (full)
        weir__call_fail(&c, 400, "%s", full);
    else if (good)
        status = weir__decide_enter(&c, conn, &later, &entered);
    if (status == 200) {
        if (bound)
            keep_bound(conn, &entered);
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
    struct bound *b = c.status == 200 && c.number ? find_bound(call->conn, &c.permits) : NULL;
    if (b)
        drop_bound(((struct weir__resp_session *)call->conn->session)->bound, b);
    weir__resp_reply(call->conn, &c);
    weir__call_end(&c);
}

void weir__resp_renew(struct weir__resp_call *call)
{
    struct weir__verb_call c;

    if (weir__resp_read(call, &c))
        c.verb->run(&c);
    struct bound *b = c.status == 200 ? find_bound(call->conn, &c.permits) : NULL;
    if (b && c.renewed.permits.n)
        *b = (struct bound){ c.renewed.permits, c.now + c.renewed.lease };
    weir__resp_reply(call->conn, &c);
    weir__call_end(&c);
}
