/* replicate.c -- what replicas and watchers are told of a key that the module has written.
 *
 * Clients that watch the key or cache it hear of it.  Replicas and the append-only file get the
 * resulting state, SET key value PXAT time, never the command, which would decide again by another
 * clock.
 *
 * Redis makes that command before it looks whether anybody listens, and that is a quarter of all
 * that an ask costs.  So we look first, but not at every ask.  A listener begins with a snapshot,
 * and Redis forks for each; or it goes on from the backlog, which is there from the first snapshot
 * on, or when a replica becomes a master.  A module hears of forks and of that change, so
 * what was true before them is true until then.  In a cluster it is never asked: newer servers move
 * slots by what is replicated.
 *
 * Where nobody listens the change is only counted, because Redis saves after a number of changes.
 * The call for that would replicate the command itself, should there be a listener after all.
 */
#include "redis-module/replicate.h"

#include <stdbool.h>

static struct redis_string *pxat; /* made once: a word of each write that is replicated */
static bool hears, is_old, is_heard;
static bool is_sent; /* the command itself was replicated */

static void look_again(struct redis_context *context, struct redis_event event, uint64_t kind,
                       void *data)
{
    (void)context, (void)event, (void)kind, (void)data;
    is_old = true;
}

static bool hear_of(struct redis_context *context, uint64_t id)
{
    return redis.SubscribeToServerEvent(context, (struct redis_event){ id, 1 }, look_again) ==
           REDIS_OK;
}

void tell_begin(struct redis_context *context)
{
    pxat = redis.CreateString(NULL, "PXAT", 4);
    hears = hear_of(context, REDIS_EVENT_ROLE) && hear_of(context, REDIS_EVENT_FORK);
    is_old = true;
}

void tell_end(void)
{
    redis.FreeString(NULL, pxat);
}

static bool is_zero(struct redis_info *info, const char *field)
{
    int code = REDIS_ERR;

    return redis.ServerInfoGetFieldUnsigned(info, field, &code) == 0 && code == REDIS_OK;
}

static bool look(struct redis_context *context)
{
    if (!hears || (redis.GetContextFlags(context) & (REDIS_IN_CLUSTER | REDIS_APPENDS)) != 0)
        return true;
    struct redis_info *info = redis.GetServerInfo(context, "replication");
    bool is_alone = is_zero(info, "connected_slaves") && is_zero(info, "repl_backlog_active");
    redis.FreeServerInfo(context, info);
    return !is_alone;
}

static bool is_replicated(struct redis_context *context)
{
    if (is_old) {
        is_heard = look(context);
        is_old = false;
    }
    return is_heard;
}

/* With rename-command there may be no SET or DEL.  Then replicas decide by themselves, on all keys
 * of the command at once. */
static void replicated(struct redis_context *context, int code)
{
    if (code != REDIS_OK && !is_sent)
        is_sent = redis.ReplicateVerbatim(context) == REDIS_OK;
}

void tell_command_begins(void)
{
    is_sent = false;
}

/* As digits, which end at `end`.  Redis would make three things of a number. */
static char *put_digits(char *end, uint64_t n)
{
    do
        *--end = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    return end;
}

/* Redis 6.2.0 and 6.2.1 know only how soon.  That moment may have passed meanwhile, and below 0 a
 * key would stay for ever. */
static void expire(struct redis_key *key, long long expiry)
{
    if (redis.SetAbsExpire) {
        redis.SetAbsExpire(key, expiry);
    } else {
        long long left = expiry - redis.Milliseconds();
        redis.SetExpire(key, left > 0 ? left : 0);
    }
}

void tell_written(struct redis_context *context, struct redis_key *key, struct redis_string *name,
                  const unsigned char *bytes, size_t len, long long expiry)
{
    char text[20], *end = text + sizeof(text);

    expire(key, expiry);
    redis.SignalModifiedKey(context, name);
    if (is_replicated(context)) {
        char *digits = put_digits(end, (uint64_t)expiry);
        replicated(context, redis.Replicate(context, "SET", "sbsb", name, (const char *)bytes, len,
                                            pxat, digits, (size_t)(end - digits)));
    } else {
        redis.ReplicateVerbatim(context);
    }
}

void tell_deleted(struct redis_context *context, struct redis_string *name)
{
    redis.SignalModifiedKey(context, name);
    replicated(context, redis.Replicate(context, "DEL", "s", name));
}
