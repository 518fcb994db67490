/* take-redis.c -- take, peek and give on an account in Redis, from a shell.
 *
 * The server's module decides, or the scripts of cluster/account.
 */
#include "server/cli/take-redis.h"

#include <string.h>

#include "base/base.h"
#include "cluster/redis/trouble.h"
#include "server/base/complain.h"
#include "server/cli/ask-redis.h"

static int complain_of(struct weir__asker *a)
{
    if (strncmp(a->why, "Redis: ", 7) == 0) /* it said so itself */
        return weir__complain(a->command, "%s", a->why);
    return weir__complain(a->command, "Redis %s: %s",
                          a->outcome == WEIR__REDIS_UNKNOWN
                              ? "did not answer, and may have counted it"
                              : weir__redis_trouble(a->why),
                          a->why);
}

/* Asks, and waits for the answer.  False: there is none. */
static bool run_verb(struct weir__asker *a, enum weir__account_verb verb,
                     struct weir__account_item *item)
{
    struct weir__carry carry = {
        .call = { .verb = verb, .items = item, .n = 1, .near = weir__clock_real() }
    };
    bool answered = weir__asker_carry(a, &carry);

    weir__carry_free(&carry);
    return answered;
}

/* A give has no answer of its own.  It was done all the same: nobody is to do it again. */
static int look_up_rest(struct weir__asker *a, struct weir__account_item *item)
{
    item->ask.cost = 0;
    if (run_verb(a, WEIR__ACCOUNT_PEEK, item))
        return WEIR__GO_ON;
    weir__complain(a->command, "given back; what is left is not known: %s", a->why);
    return 0;
}

static int decide(struct weir__asker *a, const struct weir__take_redis *t,
                  struct weir__account_item *item)
{
    if (!run_verb(a, t->verb, item))
        return complain_of(a);
    if (t->verb == WEIR__ACCOUNT_GIVE)
        return look_up_rest(a, item);
    if (t->verb == WEIR__ACCOUNT_TAKE && item->decision.allowed && item->decision.wait > 0)
        weir__clock_sleep(item->decision.wait);
    return WEIR__GO_ON;
}

static int decide_there(const struct weir__take_redis *t, struct weir__account_item *item)
{
    struct weir__asker asker;
    int code = weir__asker_open(&asker, t->command, t->url[0] ? t->url : NULL, t->timeout);

    if (code == WEIR__GO_ON)
        code = decide(&asker, t, item);
    weir__asker_close(&asker);
    return code;
}

static int ask_redis(const struct weir__take_redis *t, struct weir_plan *plan,
                     struct weir_decision *out)
{
    struct weir__buffer key = { 0 };

    weir__buffer_format(&key, "weir:{%s:%s}", t->name, t->key);
    if (key.failed)
        return weir__complain(t->command, "no memory");
    struct weir__account_item item = {
        .key = { key.bytes, key.len },
        .plan = plan,
        .ask = { .key = { key.bytes, key.len }, .cost = t->cost, .wait_max = t->wait_max },
    };
    struct weir__account_call call = { .verb = t->verb, .items = &item, .n = 1 };
    struct weir_error error;
    int code = weir__account_check(&call, &error) == WEIR_OK
                   ? decide_there(t, &item)
                   : weir__complain(t->command, "--limit: %s", error.text);
    weir__buffer_free(&key);
    *out = item.decision;
    return code;
}

int weir__take_redis(const struct weir__take_redis *t, struct weir_decision *out)
{
    struct weir_plan *plan;
    struct weir_error error;

    if (weir_plan_create(&plan, &t->limit, &error) != WEIR_OK)
        return weir__complain(t->command, "--limit: %s", error.text);
    int code = ask_redis(t, plan, out);
    weir_plan_destroy(plan);
    return code;
}
