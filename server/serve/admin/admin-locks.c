/* admin-locks.c -- the locks of the fleet: taken, renewed and given back.  Nobody waits in line
 * here: that would keep a thread busy. */
#include <stdio.h>

#include "cluster/agent/operators.h"
#include "server/serve/admin/admin.h"

#define ASK_MAX WEIR_SECOND

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
        return weir__call_fail(call, 404,
                               "this server is in no fleet: it was not started with --fleet");
    a->redis = weir__agent_redis(call->server->fleet, &error);
    return a->redis != NULL || weir__call_fail(call, 503, "%s", error.text);
}

/* One that is held by the caller, who knows the owner. */
static bool begin_held(struct weir__verb_call *call, struct ask *a)
{
    if (!begin(call, a))
        return false;
    snprintf(a->lock.owner, sizeof(a->lock.owner), "%s", call->values[1].text.bytes);
    return true;
}

static bool is_answered(struct weir__verb_call *call, const struct ask *a)
{
    return a->result.outcome == WEIR_REDIS_ANSWERED ||
           weir__call_fail(call, 503, "the fleet's Redis does not answer: %s", a->result.why);
}

/* The holder's id is its key to the lock: others do not see it. */
static void answer(struct weir__verb_call *call, const struct ask *a)
{
    struct weir__buffer *out = &call->out;
    bool held = a->result.held;
    weir_time left = held ? weir_redis_lock_left(&a->lock) : a->result.left;

    weir__buffer_open(out, NULL, '{');
    weir__buffer_member_bool(out, "held", held);
    weir__buffer_member_or_null(out, "owner", held ? a->lock.owner : NULL);
    if (held)
        weir__buffer_member_number(out, "token", a->lock.token);
    else
        weir__buffer_member_or_null(out, "token", NULL);
    weir__buffer_member_number(out, "left_ms", left / WEIR_MILLISECOND); /* rather less */
    weir__buffer_member_number(out, "waiting", a->result.waiters);
    weir__buffer_close(out, "}");
}

void weir__admin_lock(struct weir__verb_call *call)
{
    struct ask a;

    if (!begin(call, &a))
        return;
    a.lock.lifetime = call->values[1].number;
    weir_redis_lock_acquire(a.redis, &a.lock, 0, &a.result);
    if (is_answered(call, &a))
        answer(call, &a);
}

void weir__admin_lock_renew(struct weir__verb_call *call)
{
    struct ask a;

    if (!begin_held(call, &a))
        return;
    a.lock.token = call->values[2].number;
    a.lock.lifetime = call->values[3].number;
    weir_redis_lock_renew(a.redis, &a.lock, ASK_MAX, &a.result);
    if (is_answered(call, &a))
        answer(call, &a);
}

void weir__admin_unlock(struct weir__verb_call *call)
{
    struct ask a;

    if (!begin_held(call, &a))
        return;
    weir_redis_lock_release(a.redis, &a.lock, ASK_MAX, &a.result);
    if (is_answered(call, &a))
        call->answer = WEIR__ANSWER_OK;
}
