/* http-enter.c -- enter: answered at once, or after it has waited for its turn. */
#include "server/serve/http/http.h"

#include "server/serve/decide/bound-permits.h"
#include "server/serve/decide/decide-verbs.h"

struct entering {
    struct weir__http_manner manner;
    bool bound;
};

/* It has waited: the connection is held until this is sent. */
static void answer_later(struct weir__conn *conn, const struct weir__entered *entered,
                         const void *context)
{
    const struct entering *entering = context;
    struct weir__buffer out = { 0 };
    struct weir__http_manner manner = weir__http_held(conn, &entering->manner, &out);

    if (entering->bound)
        weir__bound_keep(conn, entered);
    weir__http_entered(&manner, entered);
    weir__http_send_held(conn, &manner);
}

/* A permit that would end with this very answer is of no use. */
static bool read_enter(struct weir__http_call *call, struct weir__verb_call *c, bool *bound)
{
    if (!weir__call_json(c, call->body) || !weir__call_whole(c))
        return false;
    *bound = c->values[WEIR__ENTER_BOUND].number;
    const char *why = !*bound              ? NULL
                      : call->manner.close ? "'bound' needs a connection that stays open"
                                           : weir__bound_make_room(call->conn);
    return why == NULL || weir__call_fail(c, 400, "%s", why);
}

void weir__http_enter(struct weir__http_call *call)
{
    struct weir__entered entered;
    struct weir__verb_call c;
    struct entering entering = { .manner = call->manner };
    const struct weir__later later = { answer_later, &entering, sizeof(entering) };
    int status = 400;

    weir__call_begin(&c, call->verb, call->conn->loop, true);
    if (read_enter(call, &c, &entering.bound))
        status = weir__decide_enter(&c, call->conn, &later, &entered);
    if (status == 200 && entering.bound)
        weir__bound_keep(call->conn, &entered);
    if (status == 200)
        weir__http_entered(&call->manner, &entered);
    else if (status == 202)
        call->manner.close = false; /* answer_later sees to it */
    else
        weir__http_answer_call(&call->manner, &c);
    weir__call_end(&c);
}
