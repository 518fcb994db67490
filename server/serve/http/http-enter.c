/* http-enter.c -- enter: answered at once, or after it has waited for its turn. */
#include "server/serve/http/http.h"

#include "server/serve/decide/decide-verbs.h"

/* It has waited: the connection is held until this is sent. */
static void answer_later(struct weir__conn *conn, const struct weir__entered *entered,
                         const void *context)
{
    struct weir__http_manner manner = *(const struct weir__http_manner *)context;
    struct weir__buffer out = { 0 };

    manner.out = &out;
    manner.close |= conn->ending; /* the server drains meanwhile */
    weir__http_entered(&manner, entered);
    weir__http_send_held(conn, &manner);
}

void weir__http_enter(struct weir__http_call *call)
{
    struct weir__entered entered;
    struct weir__verb_call c;
    const struct weir__later later = { answer_later, &call->manner, sizeof(call->manner) };
    int status = 400;

    weir__call_begin(&c, call->verb, call->conn->loop, true);
    if (weir__call_json(&c, call->body) && weir__call_whole(&c))
        status = weir__decide_enter(&c, call->conn, &later, &entered);
    if (status == 200)
        weir__http_entered(&call->manner, &entered);
    else if (status == 202)
        call->manner.close = false; /* answer_later sees to it */
    else
        weir__http_answer_call(&call->manner, &c);
    weir__call_end(&c);
}
