/* lock-send.c -- one ask to lock.lua on its way through the client's thread, and its result. */
#include "cluster/fleet/lock-send.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

bool weir__lock_owner(char out[WEIR__LOCK_ID_MAX])
{
    char host[33] = "";
    uint64_t random;

    if (weir__random_fill(&random, sizeof(random)) != 0)
        return false;
    gethostname(host, sizeof(host) - 1);
    snprintf(out, WEIR__LOCK_ID_MAX, "%s:%ld:%08x", host, (long)getpid(), (unsigned)(random >> 32));
    return true;
}

void weir__lock_say_why(struct weir_redis_lock_result *r, enum weir_redis_outcome outcome,
                        struct weir__text why)
{
    *r = (struct weir_redis_lock_result){ .outcome = outcome };
    snprintf(r->why, sizeof(r->why), "%.*s", (int)(why.len < 100 ? why.len : 100), why.bytes);
}

static void fill_result(struct weir_redis_lock_result *r, const struct weir__redis_answer *answer)
{
    struct weir__lock_reply reply;
    struct weir__text why;

    if (answer->outcome != WEIR__REDIS_ANSWERED) {
        weir__lock_say_why(r, (enum weir_redis_outcome)answer->outcome,
                           (struct weir__text){ answer->why, strlen(answer->why) });
        return;
    }
    if (!weir__lock_reply(&reply, answer->reply, &why)) {
        weir__lock_say_why(r, WEIR_REDIS_UNDONE, why);
        return;
    }
    *r = (struct weir_redis_lock_result){ .held = reply.held,
                                          .token = reply.token,
                                          .left = reply.left,
                                          .place = reply.place,
                                          .waiters = reply.waiters };
    snprintf(r->holder, sizeof(r->holder), "%.*s", (int)reply.holder.len, reply.holder.bytes);
}

static void take_answer(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir__lock_call *call = ask->context;

    weir__redis_ask_free(ask);
    fill_result(&call->result, answer);
    call->done(call);
}

static void start(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now)
{
    weir__redis_client_ask(client, &((struct weir__lock_call *)job)->ask, now);
}

void weir__lock_call(struct weir_redis *redis, struct weir__lock_call *call,
                     const struct weir__lock_ask *ask, weir_time timeout)
{
    static const char tag[] = "weir:{lock:";
    struct weir__buffer key = { 0 };

    weir__buffer_add(&key, tag, sizeof(tag) - 1);
    weir__buffer_add(&key, ask->name.bytes, ask->name.len);
    weir__buffer_text(&key, "}");
    call->job.begin = start;
    memcpy(call->script.sha, weir__lua_lock_sha, sizeof(call->script.sha));
    call->script.text = (struct weir__text){ weir__lua_lock, weir__lua_lock_len };
    call->ask = (struct weir__redis_ask){ .script = &call->script,
                                          .n_words = WEIR__LOCK_WORDS,
                                          .slot = weir__redis_slot(key.bytes, key.len),
                                          .deadline = weir__redis_deadline(timeout),
                                          .repeatable = true,
                                          .done = take_answer,
                                          .context = call };
    weir__lock_words(ask, &call->ask.words);
    call->ask.words.failed = call->ask.words.failed || key.failed;
    weir__buffer_free(&key);
    weir__redis_thread_put(redis, &call->job);
}

struct weir__lock_event weir__lock_event_of(const struct weir_redis_lock_result *r)
{
    return (struct weir__lock_event){
        .kind = r->outcome == WEIR_REDIS_ANSWERED ? WEIR__LOCK_ANSWER : WEIR__LOCK_FAILED,
        .reply = { .held = r->held, .token = r->token, .place = r->place, .left = r->left },
    };
}
