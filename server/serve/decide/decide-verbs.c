/* decide-verbs.c -- the deciding verbs: from the values of a call to an ask, the same at every
 * door. */
#include "server/serve/decide/decide-verbs.h"
#include "server/serve/decide/adhoc.h"

enum { KEY, LIMIT, COST, WAIT, NAME, UNIT, LIFETIME }; /* of take, peek, give, reserve */

/* The call can be read: it is the limit that makes no sense. */
static void fail(struct weir__verb_call *call, int code, const struct weir_error *error)
{
    weir__call_fail_code(call, code, error);
    if (call->status == 400)
        call->status = 422;
}

static void ask(struct weir__verb_call *call, enum weir__ask_verb verb)
{
    const struct weir__given *v = call->values;
    const struct weir__adhoc_ask ask = { .verb = verb,
                                         .key = v[KEY].text,
                                         .limit = v[LIMIT].text,
                                         .name = v[NAME].text,
                                         .cost = v[COST].number,
                                         .wait_max = v[WAIT].number,
                                         .lifetime =
                                             verb == WEIR__RESERVE ? v[LIFETIME].number : 0 };
    struct weir_error error;

    call->taken.answer.reservation[0] = '\0';
    int code = weir__ask_adhoc(call->loop, &ask, &call->taken.answer, &error);
    if (code != WEIR_OK) {
        fail(call, code, &error);
        return;
    }
    call->taken.policy = ask.name.len ? ask.name : ask.limit;
    call->taken.unit = call->ns ? 1 : WEIR_MILLISECOND;
    call->answer = verb == WEIR__GIVE ? WEIR__ANSWER_OK : WEIR__ANSWER_TAKEN;
}

void weir__decide_take(struct weir__verb_call *call)
{
    ask(call, WEIR__TAKE);
}

void weir__decide_peek(struct weir__verb_call *call)
{
    ask(call, WEIR__PEEK);
}

void weir__decide_give(struct weir__verb_call *call)
{
    ask(call, WEIR__GIVE);
}

void weir__decide_reserve(struct weir__verb_call *call)
{
    ask(call, WEIR__RESERVE);
}

static void answer(struct weir__verb_call *call, enum weir__answer_kind kind, int64_t number)
{
    call->answer = kind;
    call->number = number;
}

void weir__decide_settle(struct weir__verb_call *call)
{
    const struct weir__given *v = call->values; /* reservation, cost */

    answer(call, WEIR__ANSWER_BOOL,
           weir__reservations_settle(call->server->reservations, v[0].text.bytes, v[0].text.len,
                                     v[1].number, weir__loop_now(call->loop)));
}

void weir__decide_forget(struct weir__verb_call *call)
{
    const struct weir__given *v = call->values; /* key, limit, name */
    const struct weir__adhoc_wanted wanted = { v[1].text, v[2].text, weir__loop_now(call->loop),
                                               call->loop->fed };
    const struct weir_key key = { v[0].text.bytes, v[0].text.len };
    struct weir_limiter *limiter = NULL;
    struct weir_error error = { 0 };
    struct weir_plan plan;
    int code = weir__adhoc_look(call->server->adhoc, &wanted, &limiter, &plan, &error);

    if (code != WEIR_OK)
        fail(call, code, &error);
    else
        answer(call, WEIR__ANSWER_BOOL, limiter && weir_forget(limiter, key, wanted.now));
}

/* --------------------------------------------------------------- guards ---- */

int weir__decide_enter(struct weir__verb_call *call, struct weir__conn *conn,
                       const struct weir__later *later, struct weir__entered *out)
{
    const struct weir__given *v = call->values;
    const struct weir__enter enter = { .attrs = call->attrs,
                                       .n = call->n_attrs,
                                       .guard = v[WEIR__ENTER_GUARD].text,
                                       .user = v[WEIR__ENTER_USER].text,
                                       .user_class = v[WEIR__ENTER_CLASS].text,
                                       .cost = v[WEIR__ENTER_COST].number,
                                       .priority = v[WEIR__ENTER_PRIORITY].number,
                                       .wait_max = v[WEIR__ENTER_WAIT].number };
    struct weir_error error = { 0 };
    int status = weir__ask_enter(conn, &enter, later, out, &error);

    if (status != 200 && status != 202)
        weir__call_fail(call, status, "%s", error.text);
    return status;
}

static bool read_permits(struct weir__verb_call *call)
{
    struct weir_error error = { 0 };
    int status = weir__ask_permits(call->loop, call->values[0].text, &call->permits, &error);

    return status == 200 || weir__call_fail(call, status, "%s", error.text);
}

void weir__decide_exit(struct weir__verb_call *call)
{
    const struct weir__given *v = call->values; /* permit, outcome, took */

    if (!read_permits(call))
        return;
    struct weir__permits permits = call->permits;
    answer(call, WEIR__ANSWER_BOOL,
           weir__ask_exit(call->loop, &permits, (enum weir_outcome)v[1].number, v[2].number));
}

void weir__decide_renew(struct weir__verb_call *call)
{
    if (!read_permits(call))
        return;
    call->renewed.permits = call->permits;
    call->renewed.lease = weir__ask_renew(call->loop, &call->renewed.permits);
    call->answer = WEIR__ANSWER_RENEWED;
}
