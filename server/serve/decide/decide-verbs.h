/* decide-verbs.h -- the deciding verbs: from the values of a call to an ask, the same at every
 * door. */
#ifndef WEIR_SERVER_SERVE_DECIDE_DECIDE_VERBS_H
#define WEIR_SERVER_SERVE_DECIDE_DECIDE_VERBS_H

#include "server/serve/verbs/verbs.h"

/* Places of arguments in the rows. */
enum { WEIR__CHECK_COST, WEIR__CHECK_WAIT, WEIR__CHECK_ID };
enum {
    WEIR__ENTER_GUARD,
    WEIR__ENTER_COST,
    WEIR__ENTER_PRIORITY,
    WEIR__ENTER_CLASS,
    WEIR__ENTER_USER,
    WEIR__ENTER_WAIT,
    WEIR__ENTER_BOUND,
};

void weir__decide_take(struct weir__verb_call *call);
void weir__decide_peek(struct weir__verb_call *call);
void weir__decide_give(struct weir__verb_call *call);
void weir__decide_reserve(struct weir__verb_call *call);
void weir__decide_settle(struct weir__verb_call *call);
void weir__decide_forget(struct weir__verb_call *call);
void weir__decide_exit(struct weir__verb_call *call);
void weir__decide_renew(struct weir__verb_call *call);

/* As weir__ask_enter, for the connection that the call came from.  Unless it is 200 or 202, the
 * call has failed. */
int weir__decide_enter(struct weir__verb_call *call, struct weir__conn *conn,
                       const struct weir__later *later, struct weir__entered *out);

#endif
