/* resp-verbs.c -- from a command's name to its verb; verbs whose row says all: words to values,
 * values to a reply. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/human-numbers.h"
#include "server/serve/resp/resp.h"
#include "table/cl-throttle-limits.h"

/* -------------------------------------------------------------- finding ---- */

/* The one of Weir's own that was meant (WEIR.CHEK), or NULL.  Other names are most often those of a
 * client that asks a Redis. */
static const char *find_meant(struct weir__text name)
{
    enum { MOST = 128, LONGEST = 24 }; /* a longer one would only take time */
    const char *names[MOST], *dot = name.len ? memchr(name.bytes, '.', name.len) : NULL;
    size_t n = 0, begin = dot ? (size_t)(dot - name.bytes) + 1 : 0;

    if (dot == NULL || name.len > LONGEST)
        return NULL;
    for (const struct weir__verb *v = weir__verbs; v->summary != NULL && n < MOST; v++)
        if (v->command_len > begin && strncasecmp(v->command, name.bytes, begin) == 0)
            names[n++] = v->command + begin;
    const char *near = weir__nearest(dot + 1, name.len - begin, names, n);
    return near ? near - begin : NULL;
}

static void say_unknown(struct weir__resp_call *call)
{
    int shown = call->args[0].len > 64 ? 64 : (int)call->args[0].len;
    const char *meant = find_meant(call->args[0]);

    weir__reply_error(call->conn, "ERR unknown command '%.*s'; %s%s%sWEIR.HELP lists all commands",
                      shown, call->args[0].bytes, meant ? "did you mean '" : "", meant ? meant : "",
                      meant ? "'? " : "");
}

bool weir__resp_has_arity(int arity, size_t n)
{
    return arity == 0 || (arity > 0 ? n == (size_t)arity : n >= (size_t)-arity);
}

bool weir__resp_say_usage(const struct weir__resp_call *call)
{
    char usage[256];

    weir__reply_error(call->conn, "ERR wrong number of arguments for '%s' command; usage: %s %s",
                      weir__verb_small(call->verb).text, call->verb->command,
                      weir__verb_usage(call->verb, usage, sizeof(usage)));
    return false;
}

/* By its name; one that was found before is not searched for again. */
static const struct weir__verb *find_verb(struct weir__loop *loop, struct weir__text name)
{
    unsigned last = name.len ? (unsigned char)name.bytes[name.len - 1] : 0;
    const struct weir__verb **known = &loop->verbs[(name.len * 7 + last) % 32];

    if (*known && (*known)->command_len == name.len &&
        memcmp((*known)->command, name.bytes, name.len) == 0)
        return *known;
    const struct weir__verb *verb = weir__verb_by_command(name.bytes, name.len);
    *known = verb ? verb : *known;
    return verb;
}

/* Those that are gathered answer in their turn, even with an error. */
bool weir__resp_find(struct weir__resp_call *call)
{
    struct weir__conn *conn = call->conn;
    const struct weir__verb *verb = call->verb = find_verb(conn->loop, call->args[0]);
    enum weir__role needed = verb ? verb->role : WEIR__ROLE_CHECK;

    if (verb && conn->role >= needed && verb->how == WEIR__VERB_BATCHED)
        return true;
    if (!weir__resp_clear_way(call))
        return false;
    if (conn->role < needed && conn->role == WEIR__ROLE_NONE)
        weir__reply_error(conn, "NOAUTH a token is needed: AUTH token");
    else if (!verb)
        say_unknown(call);
    else if (conn->role < needed)
        weir__reply_error(conn,
                          "NOPERM this command needs the admin role: AUTH with the admin token");
    else
        return weir__resp_has_arity(verb->arity, call->n) || weir__resp_say_usage(call);
    return false;
}

void weir__resp_run(struct weir__resp_call *call)
{
    if (weir__resp_find(call))
        (call->verb->resp ? call->verb->resp : weir__resp_verb)(call);
}

/* -------------------------------------------------------------- reading ---- */

bool weir__resp_read(struct weir__resp_call *call, struct weir__verb_call *out)
{
    weir__call_begin(out, call->verb, call->conn->loop, false);
    return weir__call_words(out, call->args + 1, call->n - 1);
}

/* -------------------------------------------------------------- replies ---- */

static void reply_taken(struct weir__conn *conn, const struct weir__verb_call *call)
{
    const struct weir_decision *d = &call->taken.answer.decision;
    weir_time unit = call->taken.unit;
    bool reserved = call->verb->args[6].name != NULL; /* with a lifetime */
    char *to = weir__buffer_room(&conn->loop->out, 7 * WEIR__RESP_NUMBER_MAX);

    if (to == NULL)
        return;
    const int64_t numbers[] = { d->allowed,
                                d->limit,
                                d->remaining,
                                d->allowed ? -1 : weir__in_unit(d->retry, unit),
                                weir__in_unit(d->reset, unit),
                                weir__in_unit(d->wait, unit) };
    to = weir__resp_put_header(to, '*', reserved ? 7 : 6);
    for (size_t i = 0; i < 6; i++)
        to = weir__resp_put_integer(to, numbers[i]);
    conn->loop->out.len = (size_t)(to - conn->loop->out.bytes);
    if (reserved)
        weir__reply_text(conn, d->allowed ? call->taken.answer.reservation : NULL);
}

static void reply_renewed(struct weir__conn *conn, const struct weir__verb_call *call)
{
    char token[WEIR__PERMIT_TOKEN_MAX];

    weir__ask_token(conn->loop, &call->renewed.permits, token);
    if (token[0] == '\0') {
        weir__reply_text(conn, NULL);
        return;
    }
    weir__reply_header(conn, '*', 2);
    weir__reply_text(conn, token);
    weir__reply_integer(conn, weir__ask_ms(call->renewed.lease));
}

void weir__resp_reply(struct weir__conn *conn, const struct weir__verb_call *call)
{
    if (call->status >= 400) {
        weir__reply_error(conn, "ERR %s", call->message);
        return;
    }
    switch (call->answer) {
    case WEIR__ANSWER_TAKEN:
        reply_taken(conn, call);
        break;
    case WEIR__ANSWER_RENEWED:
        reply_renewed(conn, call);
        break;
    case WEIR__ANSWER_OK:
        weir__reply_simple(conn, "OK");
        break;
    case WEIR__ANSWER_BOOL:
    case WEIR__ANSWER_NUMBER:
        weir__reply_integer(conn, call->number);
        break;
    case WEIR__ANSWER_JSON:
        if (call->out.failed)
            weir__reply_error(conn, "ERR no memory");
        else
            weir__reply_bulk(conn, call->out.bytes ? call->out.bytes : "", call->out.len);
    }
}

/* -------------------------------------------------------------- running ---- */

static void work(void *context)
{
    struct weir__verb_call *call = context;

    call->verb->run(call);
}

static void done(struct weir__conn *conn, void *context)
{
    struct weir__verb_call *call = context;

    if (conn) {
        weir__resp_reply(conn, call);
        weir__conn_send_out(conn);
    }
    weir__call_end(call);
    free(call);
}

static bool begin(struct weir__conn *conn, struct weir__verb_call *c)
{
    if (c->verb->begin)
        return c->verb->begin(conn, c, done, c) == WEIR_OK;
    return weir__conn_offload(conn, work, done, c, c->verb->role) ||
           weir__call_fail(c, 503, WEIR__TOO_MANY_JOBS);
}

static void run_away(struct weir__resp_call *call)
{
    struct weir__verb_call *c = malloc(sizeof(*c));

    if (c == NULL) {
        weir__reply_error(call->conn, "ERR no memory");
        return;
    }
    if (weir__resp_read(call, c) && weir__call_keep(c) && begin(call->conn, c))
        return;
    weir__resp_reply(call->conn, c);
    weir__call_end(c);
    free(c);
}

void weir__resp_verb(struct weir__resp_call *call)
{
    struct weir__verb_call c;

    if (call->verb->how == WEIR__VERB_AWAY) {
        run_away(call);
        return;
    }
    if (weir__resp_read(call, &c))
        c.verb->run(&c);
    weir__resp_reply(call->conn, &c);
    weir__call_end(&c);
    weir__conn_took(call->conn, 4); /* with a limit that the client brings along */
}

/* DEL key ...: how users of redis-cell reset a key. */
void weir__resp_del(struct weir__resp_call *call)
{
    struct weir__loop *loop = call->conn->loop;
    int64_t n = 0;

    for (size_t i = 1; i < call->n; i++) {
        const struct weir_key key = { call->args[i].bytes, call->args[i].len };
        n += weir__carried_forget(loop->server->table, key, weir__loop_now(loop));
    }
    weir__reply_integer(call->conn, n);
}
