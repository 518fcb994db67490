/* admin-locks.c -- the locks of the fleet: taken, renewed and given back.  Nobody waits in line
 * here: that would keep a thread busy. */
#include <stdio.h>
#include <string.h>

#include "cluster/agent/operators.h"
#include "server/serve/admin/admin.h"

#define ASK_MAX WEIR_SECOND

/* NULL: the call has failed. */
static struct weir_redis *redis_of(struct weir__verb_call *call)
{
    struct weir_error error = { .text = "" };
    struct weir_redis *redis = NULL;

    if (call->server->fleet == NULL)
        weir__call_fail(call, 404, "this server is in no fleet: it was not started with --fleet");
    else if ((redis = weir__agent_redis(call->server->fleet, &error)) == NULL)
        weir__call_fail(call, 503, "%s", error.text);
    return redis;
}

static struct weir_redis_lock lock_of(const struct weir__verb_call *call)
{
    struct weir__text name = call->values[0].text;

    return (struct weir_redis_lock){ .name = { name.bytes, name.len } };
}

static bool is_answered(struct weir__verb_call *call, const struct weir_redis_lock_result *r)
{
    return r->outcome == WEIR_REDIS_ANSWERED ||
           weir__call_fail(call, 503, "the fleet's Redis does not answer: %s", r->why);
}

/* The holder's id is its key to the lock: others do not see it. */
static void answer(struct weir__verb_call *call, const struct weir_redis_lock *lock,
                   const struct weir_redis_lock_result *r)
{
    struct weir__buffer *out = &call->out;
    weir_time left = r->held ? weir_redis_lock_left(lock) : r->left;

    weir__buffer_open(out, NULL, '{');
    weir__buffer_member_bool(out, "held", r->held);
    weir__buffer_member_or_null(out, "owner", r->held ? lock->owner : NULL);
    if (r->held)
        weir__buffer_member_number(out, "token", lock->token);
    else
        weir__buffer_member_or_null(out, "token", NULL);
    weir__buffer_member_number(out, "left_ms", left / WEIR_MILLISECOND); /* rather less */
    weir__buffer_member_number(out, "waiting", r->waiters);
    weir__buffer_close(out, "}");
}

void weir__admin_lock(struct weir__verb_call *call)
{
    struct weir_redis *redis = redis_of(call);
    struct weir_redis_lock lock = lock_of(call);
    struct weir_redis_lock_result result;

    if (redis == NULL)
        return;
    lock.lifetime = call->values[1].number;
    weir_redis_lock_acquire(redis, &lock, 0, &result);
    if (is_answered(call, &result))
        answer(call, &lock, &result);
}

void weir__admin_lock_renew(struct weir__verb_call *call)
{
    struct weir_redis *redis = redis_of(call);
    struct weir_redis_lock lock = lock_of(call);
    struct weir_redis_lock_result result;

    if (redis == NULL)
        return;
    snprintf(lock.owner, sizeof(lock.owner), "%s", call->values[1].text.bytes);
    lock.token = call->values[2].number;
    lock.lifetime = call->values[3].number;
    weir_redis_lock_renew(redis, &lock, ASK_MAX, &result);
    if (is_answered(call, &result))
        answer(call, &lock, &result);
}

void weir__admin_unlock(struct weir__verb_call *call)
{
    struct weir_redis *redis = redis_of(call);
    struct weir_redis_lock lock = lock_of(call);
    struct weir_redis_lock_result result;

    if (redis == NULL)
        return;
    snprintf(lock.owner, sizeof(lock.owner), "%s", call->values[1].text.bytes);
    weir_redis_lock_release(redis, &lock, ASK_MAX, &result);
    if (is_answered(call, &result))
        call->answer = WEIR__ANSWER_OK;
}
