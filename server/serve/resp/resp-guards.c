/* resp-guards.c -- WEIR.ENTER, WEIR.EXIT, WEIR.RENEW: work in progress, over RESP.
 *
 * A permit is good on any connection, since clients have pools of them.  Those that were taken with
 * BOUND are also remembered here, and given back (ignored: nothing is learnt from it) when their
 * connection closes: for clients that hold one connection for as long as they work.
 */
#include <stdlib.h>
#include <string.h>

#include "server/serve/decide/enter.h"
#include "server/serve/resp/resp.h"

#define BOUND_MAX 256 /* of one connection */

static struct weir__span span(struct weir__resp_arg arg)
{
    return (struct weir__span){ arg.bytes, arg.len };
}

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

struct entering {
    struct weir_attr attrs[WEIR__CHECK_ATTRS];
    struct weir__enter enter;
    bool bound;
};

static const char usage[] = "attributes come in pairs: WEIR.ENTER [GUARD name] [COST n] [PRIORITY "
                            "n] [CLASS name] [USER key] [WAIT ms] [BOUND] "
                            "[ATTRIBUTES] [name value ...]";

static const char misplaced[] = "options come before the attributes: GUARD, COST, PRIORITY, CLASS, "
                                "USER, WAIT and BOUND are no names of attributes";

/* One word of those in front, and its value.  NULL: done; "": it is none of them; else what is
 * wrong. */
static const char *read_option(struct entering *e, struct weir__resp_arg word,
                               struct weir__resp_arg value)
{
    int64_t ms;

    if (weir__resp_is(word, "GUARD")) {
        e->enter.guard = span(value);
        return value.len ? NULL : "GUARD needs the name of a guard";
    }
    if (weir__resp_is(word, "CLASS")) {
        e->enter.user_class = span(value);
        return value.len ? NULL : "CLASS needs the name of a class";
    }
    if (weir__resp_is(word, "USER")) {
        e->enter.user = span(value);
        return NULL;
    }
    if (weir__resp_is(word, "COST"))
        return weir__resp_int(value, &e->enter.cost) && e->enter.cost >= 0
                   ? NULL
                   : "COST must be a whole number from 0 up";
    if (weir__resp_is(word, "PRIORITY"))
        return weir__resp_int(value, &e->enter.priority) ? NULL
                                                         : "PRIORITY must be " WEIR__PRIORITY;
    if (!weir__resp_is(word, "WAIT"))
        return "";
    if (!weir__resp_int(value, &ms) || ms < 0 || ms > INT64_MAX / WEIR_MILLISECOND)
        return "WAIT must be a whole number of milliseconds from 0 up";
    e->enter.wait_max = ms * WEIR_MILLISECOND;
    return NULL;
}

/* Returns the place of the first attribute. */
static size_t read_options(const struct weir__resp_call *call, struct entering *e,
                           const char **what)
{
    size_t i = 1;

    for (*what = NULL; i < call->n && *what == NULL;) {
        if (weir__resp_is(call->args[i], "BOUND")) {
            e->bound = true;
            i++;
            continue;
        }
        *what = i + 1 < call->n ? read_option(e, call->args[i], call->args[i + 1]) : "";
        i += *what == NULL ? 2 : 0;
    }
    if (*what && **what == '\0')
        *what = NULL;
    return i + (i < call->n && weir__resp_is(call->args[i], "ATTRIBUTES"));
}

/* An option behind the attributes would be one more of them, and do nothing. */
static bool is_option(struct weir__resp_arg name)
{
    static const char *const words[] = { "GUARD", "COST", "PRIORITY", "CLASS",
                                         "USER",  "WAIT", "BOUND" };
    size_t i = 0;

    while (i < sizeof(words) / sizeof(words[0]) &&
           (strlen(words[i]) != name.len || memcmp(words[i], name.bytes, name.len) != 0))
        i++;
    return i < sizeof(words) / sizeof(words[0]);
}

static const char *read_entering(const struct weir__resp_call *call, struct entering *e)
{
    const char *what;
    size_t at = read_options(call, e, &what);

    if (what)
        return what;
    if ((call->n - at) % 2)
        return call->n > at && is_option(call->args[call->n - 1]) ? misplaced : usage;
    if ((call->n - at) / 2 > WEIR__CHECK_ATTRS)
        return "at most 64 attributes";
    for (; at < call->n; at += 2) {
        const struct weir__resp_arg *pair = &call->args[at];
        if (pair[0].len == 0 || memchr(pair[0].bytes, 0, pair[0].len))
            return "an attribute's name is empty, or has a NUL byte in it";
        if (is_option(pair[0]))
            return misplaced;
        e->attrs[e->enter.n++] = (struct weir_attr){ .name = pair[0].bytes,
                                                     .value = pair[1].len ? pair[1].bytes : "",
                                                     .name_len = pair[0].len,
                                                     .value_len = pair[1].len };
    }
    return NULL;
}

/* The ten members of WEIR.CHECK's answer, and three more. */
static void reply_entered(struct weir__conn *conn, const struct weir__entered *entered)
{
    const struct weir_ruling *r = &entered->ruling;
    const struct weir_decision *d = &r->decision;
    char token[WEIR__PERMIT_TOKEN_MAX];

    weir__ask_token(conn->loop, &entered->permits, token);
    weir__reply_header(conn, '*', 13);
    weir__reply_integer(conn, d->allowed);
    weir__reply_text(conn, r->rule);
    weir__reply_integer(conn, d->limit);
    weir__reply_integer(conn, d->remaining);
    weir__reply_integer(conn, weir__ask_retry_ms(d));
    weir__reply_integer(conn, weir__ask_ms(d->reset));
    weir__reply_integer(conn, weir__ask_ms(d->wait));
    weir__reply_integer(conn, r->level);
    weir__reply_text(conn, weir_reason_name((enum weir_reason)d->reason));
    weir__reply_text(conn, r->shadow);
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
    struct entering e;
    struct weir__entered entered;
    struct weir_error error = { 0 };

    e.bound = false;
    e.enter = (struct weir__enter){ .attrs = e.attrs, .cost = 1 };
    const char *what = read_entering(call, &e);
    if (!what && e.bound)
        what = make_room(conn);
    const struct weir__later later = { answer_later, &e.bound, sizeof(e.bound) };
    int status = what ? 400 : weir__ask_enter(conn, &e.enter, &later, &entered, &error);
    if (status == 202)
        return;
    if (!what && status != 200)
        what = error.text;
    if (what) {
        weir__reply_error(conn, "ERR %s", what);
        return;
    }
    if (e.bound)
        keep_bound(conn, &entered);
    reply_entered(conn, &entered);
}

/* ------------------------------------------------------- exit and renew ---- */

static bool read_permits(struct weir__resp_call *call, struct weir__permits *out)
{
    struct weir_error error = { 0 };

    if (weir__ask_permits(call->conn->loop, span(call->args[1]), out, &error) == 200)
        return true;
    weir__reply_error(call->conn, "ERR %s", error.text);
    return false;
}

/* WEIR.EXIT permit outcome [TOOK ms] */
void weir__resp_exit(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__permits permits;
    enum weir_outcome outcome;
    int64_t took = -1;

    if (!weir__outcome_of(span(call->args[2]), &outcome)) {
        weir__reply_error(conn, "ERR the outcome is " WEIR__OUTCOMES);
    } else if (call->n != 3 && !(call->n == 5 && weir__resp_is(call->args[3], "TOOK"))) {
        weir__reply_wrong_number(call);
    } else if (call->n == 5 && (!weir__resp_int(call->args[4], &took) || took < 0 ||
                                took > INT64_MAX / WEIR_MILLISECOND)) {
        weir__reply_error(conn, "ERR TOOK must be a whole number of milliseconds from 0 up");
    } else if (read_permits(call, &permits)) {
        struct bound *b = find_bound(
            conn, &permits); /* before they are given back, and are no permits any more */
        bool exited =
            weir__ask_exit(conn->loop, &permits, outcome, took < 0 ? -1 : took * WEIR_MILLISECOND);
        if (exited && b)
            drop_bound(((struct weir__resp_session *)conn->session)->bound, b);
        weir__reply_integer(conn, exited);
    }
}

/* WEIR.RENEW permit */
void weir__resp_renew(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    struct weir__permits permits;
    char token[WEIR__PERMIT_TOKEN_MAX];

    if (!read_permits(call, &permits))
        return;
    struct bound *b = find_bound(conn, &permits);
    weir_time lease = weir__ask_renew(conn->loop, &permits);
    weir__ask_token(conn->loop, &permits, token);
    if (token[0] == '\0') {
        weir__reply_text(conn, NULL);
        return;
    }
    if (b)
        *b = (struct bound){ permits, weir__loop_now(conn->loop) + lease };
    weir__reply_header(conn, '*', 2);
    weir__reply_text(conn, token);
    weir__reply_integer(conn, weir__ask_ms(lease));
}
