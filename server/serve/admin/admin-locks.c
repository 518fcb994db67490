/* admin-locks.c -- locks of the fleet: looked at, renewed, given back; lock-wait.c takes them. */
#include <stdio.h>

#include "cluster/agent/operators.h"
#include "cluster/redis/trouble.h"
#include "server/serve/admin/admin.h"
#include "server/serve/decide/lock-wait.h"
#include "server/serve/fleet.h"

#define ASK_MAX WEIR_SECOND

/* A lock; to renew it and give it back, the caller knows its owner. */
struct ask {
    struct weir_redis *redis;
    struct weir_redis_lock lock;
    struct weir_redis_lock_result result;
};

/* False: the call has failed. */
static bool begin(struct weir__verb_call *call, struct ask *a)
{
    struct weir__text name = call->values[0].text;
    struct weir_error error = { .text = "" };

    *a = (struct ask){ .lock.name = { name.bytes, name.len } };
    if (call->server->fleet == NULL)
        return weir__call_fail(call, 404, WEIR__NO_FLEET);
    a->redis = weir__agent_redis(call->server->fleet, &error);
    return a->redis != NULL || weir__call_fail(call, 503, "%s", error.text);
}

/* As `begin`, by its owner. */
static bool begin_own(struct weir__verb_call *call, struct ask *a)
{
    bool begun = begin(call, a);

    if (begun)
        snprintf(a->lock.owner, sizeof(a->lock.owner), "%s", call->values[1].text.bytes);
    return begun;
}

static bool is_answered(struct weir__verb_call *call, const struct ask *a)
{
    return a->result.outcome == WEIR_REDIS_ANSWERED ||
           weir__call_fail(call, 503, "the fleet's Redis %s: %s",
                           weir__redis_trouble(a->result.why), a->result.why);
}

/* The holder's id is its key to the lock: nobody sees it. */
void weir__admin_lock_look(struct weir__verb_call *call)
{
    struct ask a;

    if (!begin(call, &a))
        return;
    weir_redis_lock_look(a.redis, a.lock.name, ASK_MAX, &a.result);
    if (!is_answered(call, &a))
        return;
    bool held = a.result.holder[0] != '\0';
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_bool(&call->out, "held", held);
    weir__buffer_member_number_or_null(&call->out, "token", held, a.result.token);
    weir__buffer_member_number(&call->out, "left_ms", a.result.left / WEIR_MILLISECOND);
    weir__buffer_member_number(&call->out, "waiting", a.result.waiters);
    weir__buffer_close(&call->out, "}");
}

static void answer(struct weir__verb_call *call, const struct ask *a)
{
    bool held = a->result.held;

    weir__lock_answer(&call->out, &(struct weir__lock_seen){
                                      held ? a->lock.owner : NULL, a->lock.token, a->result.waiters,
                                      held ? weir_redis_lock_left(&a->lock) : a->result.left });
}

void weir__admin_lock_renew(struct weir__verb_call *call)
{
    struct ask a;

    if (!begin_own(call, &a))
        return;
    a.lock.token = call->values[2].number;
    a.lock.lifetime = weir__int_most(0, call->values[3].number); /* 0: as it had */
    weir_redis_lock_renew(a.redis, &a.lock, ASK_MAX, &a.result);
    if (is_answered(call, &a))
        answer(call, &a);
}

void weir__admin_unlock(struct weir__verb_call *call)
{
    struct ask a;

    if (!begin_own(call, &a))
        return;
    weir_redis_lock_release(a.redis, &a.lock, ASK_MAX, &a.result);
    if (is_answered(call, &a))
        call->answer = WEIR__ANSWER_OK;
}
