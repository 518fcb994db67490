/* lock-blocking.c -- the locks of weir-redis.h: lock.c driven by a caller that waits. */
#include "cluster/fleet/lock-send.h"

#include <string.h>

#include "base/base.h"

_Static_assert(sizeof(((struct weir_redis_lock *)0)->owner) == WEIR__LOCK_ID_MAX, "an id");

#define LIFE_USUAL (30 * WEIR_SECOND)

/* --------------------------------------------------------------- one ask ---- */

/* For a caller that waits. */
struct waiting {
    struct weir__lock_call call;
    uint32_t ready; /* the word the caller sleeps on */
};

/* The caller may be gone as soon as the word is set. */
static void wake(struct weir__lock_call *call)
{
    weir__redis_ready_set(&((struct waiting *)call)->ready);
}

static void ask_and_wait(struct weir_redis *redis, const struct weir__lock_ask *ask,
                         weir_time timeout, struct weir_redis_lock_result *result)
{
    struct waiting w = { .call.done = wake };

    weir__lock_call(redis, &w.call, ask, timeout);
    weir__redis_ready_wait(&w.ready);
    *result = w.call.result;
}

/* ------------------------------------------------------------- the calls ---- */

static struct weir__lock_ask ask_of(const struct weir_redis_lock *lock, enum weir__lock_verb verb)
{
    return (struct weir__lock_ask){
        .verb = verb,
        .name = lock->name,
        .id = lock->owner,
        .life = lock->lifetime ? lock->lifetime : LIFE_USUAL,
        .token = lock->token,
    };
}

static const char *problem_of(const struct weir_redis_lock *lock)
{
    weir_time life = ask_of(lock, WEIR__LOCK_TAKE).life;

    if (lock->name.len == 0)
        return "a lock needs a name";
    return life < WEIR__LOCK_LIFE_MIN || life > WEIR__LOCK_LIFE_MAX
               ? "a lock lives for 10 ms to 24 h"
               : NULL;
}

static bool is_refused(const struct weir_redis_lock *lock, bool needs_owner,
                       struct weir_redis_lock_result *result)
{
    const char *problem =
        needs_owner && !*lock->owner ? "the lock was never acquired" : problem_of(lock);

    if (problem)
        weir__lock_say_why(result, WEIR_REDIS_UNDONE,
                           (struct weir__text){ problem, strlen(problem) });
    return problem != NULL;
}

/* Runs the step until it holds the lock or is over.  Nobody waits long for a last release: the
 * deadline has come. */
static void drive(struct weir_redis *redis, struct weir_redis_lock *lock, struct weir__lock *l,
                  struct weir__lock_event event, struct weir_redis_lock_result *result)
{
    struct weir_redis_lock_result last;
    weir_time answered = -WEIR__LOCK_STALE;

    for (;;) {
        struct weir__lock_send send = weir__lock_step(l, &event, weir__clock_monotonic());
        struct weir__lock_ask ask = ask_of(lock, send.verb);
        if (l->phase == WEIR__LOCK_HELD || weir__lock_is_over(l))
            return;
        if (l->phase != WEIR__LOCK_WAITING) {
            ask_and_wait(redis, &ask, WEIR__LOCK_LEAVE_MAX, &last);
            return;
        }
        if (send.verb == WEIR__LOCK_NOTHING) {
            weir__clock_sleep(l->due - weir__clock_monotonic());
            event = (struct weir__lock_event){ .kind = WEIR__LOCK_TIME };
            continue;
        }
        ask_and_wait(redis, &ask, send.timeout, &last);
        event = weir__lock_event_of(&last);
        weir_time now = weir__clock_monotonic();
        if (last.outcome == WEIR_REDIS_ANSWERED)
            answered = now;
        if (answered == now || now - answered > WEIR__LOCK_STALE)
            *result = last;
    }
}

enum weir_redis_outcome weir_redis_lock_acquire(struct weir_redis *redis,
                                                struct weir_redis_lock *lock, weir_time wait,
                                                struct weir_redis_lock_result *result)
{
    struct weir__lock l = { .life = ask_of(lock, WEIR__LOCK_TAKE).life };

    lock->token = lock->until = 0;
    if (is_refused(lock, false, result))
        return result->outcome;
    if (!weir__lock_owner(lock->owner)) {
        weir__lock_say_why(result, WEIR_REDIS_UNDONE,
                           (struct weir__text){ "no random numbers", 17 });
        return result->outcome;
    }
    drive(redis, lock, &l, (struct weir__lock_event){ .kind = WEIR__LOCK_BEGIN, .span = wait },
          result);
    if (l.phase == WEIR__LOCK_HELD) {
        lock->token = l.token;
        lock->until = l.until;
    }
    result->held = l.phase == WEIR__LOCK_HELD;
    return result->outcome;
}

enum weir_redis_outcome weir_redis_lock_renew(struct weir_redis *redis,
                                              struct weir_redis_lock *lock, weir_time timeout,
                                              struct weir_redis_lock_result *result)
{
    struct weir__lock_ask ask = ask_of(lock, WEIR__LOCK_KEEP);
    weir_time sent = weir__clock_monotonic();

    if (is_refused(lock, true, result))
        return result->outcome;
    ask.life = lock->lifetime;
    ask_and_wait(redis, &ask, timeout, result);
    bool kept = result->held && result->token == lock->token; /* else Redis has renewed nothing */
    weir_time life = ask.life > 0 ? ask.life : result->left;
    if (result->outcome == WEIR_REDIS_ANSWERED)
        lock->until = kept ? sent + life - life / WEIR__LOCK_DRIFT : 0;
    result->held = weir_redis_lock_left(lock) > 0;
    return result->outcome;
}

enum weir_redis_outcome weir_redis_lock_release(struct weir_redis *redis,
                                                struct weir_redis_lock *lock, weir_time timeout,
                                                struct weir_redis_lock_result *result)
{
    struct weir__lock_ask ask = ask_of(lock, WEIR__LOCK_FREE);

    if (is_refused(lock, true, result))
        return result->outcome;
    lock->until = 0;
    ask_and_wait(redis, &ask, timeout, result);
    return result->outcome;
}

enum weir_redis_outcome weir_redis_lock_look(struct weir_redis *redis, struct weir_key name,
                                             weir_time timeout,
                                             struct weir_redis_lock_result *result)
{
    struct weir__lock_ask ask = { .verb = WEIR__LOCK_LOOK, .name = name, .id = "" };

    ask_and_wait(redis, &ask, timeout, result);
    return result->outcome;
}

enum weir_redis_outcome weir_redis_lock_break(struct weir_redis *redis, struct weir_key name,
                                              int64_t token, weir_time timeout,
                                              struct weir_redis_lock_result *result)
{
    struct weir__lock_ask ask = { .verb = WEIR__LOCK_DROP, .name = name, .id = "", .token = token };

    ask_and_wait(redis, &ask, timeout, result);
    return result->outcome;
}

weir_time weir_redis_lock_left(const struct weir_redis_lock *lock)
{
    weir_time now = weir__clock_monotonic();

    return lock->until > now ? lock->until - now : 0;
}
