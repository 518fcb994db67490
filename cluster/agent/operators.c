/* operators.c -- asks of operators, in their own threads: they wait for Redis, but not for long. */
#include "cluster/agent/operators.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/agent/agent.h"
#include "cluster/fleet/document.h"

int weir__agent_away(struct weir_error *error, const char *why)
{
    return weir__fail(error, WEIR_SYSTEM, "the fleet's Redis does not answer: %s", why);
}

int weir__agent_reach(struct weir_fleet *f, struct weir_error *error)
{
    struct weir_fleet_info info;

    if (f->pid != getpid())
        return weir__fail(error, WEIR_INVALID, "a child of fork joins by itself");
    weir_fleet_look(f, &info);
    return info.connected ? WEIR_OK : weir__agent_away(error, info.why);
}

/* ----------------------------------------------------------------- waiting ---- */

struct call {
    struct weir__redis_job job;
    struct weir__redis_ask *ask;
    struct weir__buffer *reply;
    enum weir__redis_outcome outcome;
    char why[120];
    uint32_t ready;
};

static void begin(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now)
{
    weir__redis_client_ask(client, ((struct call *)job)->ask, now);
}

/* The caller may be gone as soon as the word is set. */
static void answered(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct call *call = ask->context;

    call->outcome = answer->outcome;
    if (answer->outcome == WEIR__REDIS_ANSWERED)
        weir__buffer_add(call->reply, answer->reply.bytes, answer->reply.len);
    else
        snprintf(call->why, sizeof(call->why), "%s", answer->why);
    weir__redis_ready_set(&call->ready);
}

int weir__agent_wait(struct weir_fleet *f, struct weir__redis_ask *ask, struct weir__buffer *reply,
                     struct weir_error *error)
{
    struct call call = { .job.begin = begin, .ask = ask, .reply = reply };

    ask->done = answered;
    ask->context = &call;
    weir__redis_thread_put(f->redis, &call.job);
    weir__redis_ready_wait(&call.ready);
    weir__redis_ask_free(ask);
    if (call.outcome == WEIR__REDIS_UNKNOWN)
        return weir__fail(error, WEIR_SYSTEM,
                          "the fleet's Redis did not answer, and may have carried it out: %s",
                          call.why);
    if (call.outcome != WEIR__REDIS_ANSWERED)
        return weir__agent_away(error, call.why);
    return reply->failed ? weir__fail(error, WEIR_NO_MEMORY, "no memory") : WEIR_OK;
}

/* --------------------------------------------------------------- the rules ---- */

int weir__agent_centre(struct weir_fleet *f, const struct weir__text *words, size_t n,
                       struct weir__buffer *reply, struct weir_error *error)
{
    static const struct weir_key rules = { "rules", 5 };
    struct weir__redis_script script;
    struct weir__redis_ask ask;
    int code = weir__agent_reach(f, error);

    if (code != WEIR_OK)
        return code;
    weir__centre_ask((struct weir_key){ f->name, strlen(f->name) }, rules, words, n, &script, &ask);
    ask.deadline = weir__redis_deadline(WEIR__CENTRE_ASK);
    return weir__agent_wait(f, &ask, reply, error);
}

struct weir_redis *weir__agent_redis(struct weir_fleet *f, struct weir_error *error)
{
    return weir__agent_reach(f, error) == WEIR_OK ? f->redis : NULL;
}
