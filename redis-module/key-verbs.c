/* key-verbs.c -- WEIR.RESET and INFO: what is under a key. */
#include <string.h>

#include "redis-module/call.h"
#include "redis-module/replicate.h"
#include "redis-module/verbs.h"

/* How many accounts are under this key; -1: there is something else. */
static int count_accounts(struct redis_context *context, struct redis_string *name)
{
    struct redis_key *key = redis.OpenKey(context, name, REDIS_READ);
    int type = redis.KeyType(key), found = type == REDIS_KEY_EMPTY ? 0 : -1;
    struct weir_limit limit;
    size_t len;

    if (type == REDIS_KEY_STRING) {
        const char *bytes = redis.StringDMA(key, &len, REDIS_READ);
        found = weir__account_limit(&limit, bytes, len) > 0 ? 1 : -1;
    }
    redis.CloseKey(key);
    return found;
}

static void delete_key(struct redis_context *context, struct redis_string *name)
{
    struct redis_key *key = redis.OpenKey(context, name, REDIS_READ | REDIS_WRITE);

    redis.DeleteKey(key);
    redis.CloseKey(key);
    tell_deleted(context, name);
}

int verb_reset(struct redis_context *context, struct redis_string **words, int n)
{
    long long count = 0;

    if (n < 2)
        return redis.ReplyWithError(context, "ERR a key is needed");
    tell_command_begins();
    for (int i = 1; i < n; i++)
        if (count_accounts(context, words[i]) < 0)
            return reply_foreign(context); /* and all stay */
    for (int i = 1; i < n; i++)
        if (count_accounts(context, words[i]) > 0) {
            delete_key(context, words[i]);
            count++;
        }
    return redis.ReplyWithLongLong(context, count);
}

static void reply_text(struct redis_context *context, const char *text)
{
    redis.ReplyWithStringBuffer(context, text, strlen(text));
}

static void reply_pair(struct redis_context *context, const char *name, long long number)
{
    reply_text(context, name);
    redis.ReplyWithLongLong(context, number);
}

/* The account as it is, under the limit that it was written under. */
static int reply_info(struct call *c, struct item *it)
{
    const struct limit *limit = it->limit;
    char text[192];
    struct weir_limit named = weir__plan_limit_named(&limit->plan);

    it->ask = (struct weir_ask){ .now = module_now() };
    weir_step_peek(&limit->plan, it->account.state, &it->ask, &it->decision);
    weir_limit_print(text, sizeof(text), &named);
    redis.ReplyWithArray(c->context, 10);
    reply_text(c->context, "algorithm");
    reply_text(c->context, limit->plan.algo->name);
    reply_text(c->context, "limit");
    reply_text(c->context, text);
    reply_pair(c->context, "most", it->decision.limit);
    reply_pair(c->context, "remaining", it->decision.remaining);
    reply_pair(c->context, "reset_ms", call_time(c, it->decision.reset));
    return REDIS_OK;
}

/* The text of the limit in an account; false: it is not one. */
static bool print_limit(const char *bytes, size_t len, char *text, size_t size)
{
    struct weir_limit limit;

    return bytes != NULL && weir__account_limit(&limit, bytes, len) > 0 &&
           weir_limit_print(text, size, &limit) < (int)size;
}

int verb_info(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = call_begin(context, words, n);
    struct item *it = &c->item[0];
    struct weir_error error;
    char text[192];
    size_t len = 0;

    if (n != 2)
        return redis.ReplyWithError(context, "ERR one key is needed");
    struct redis_key *key = redis.OpenKey(context, words[1], REDIS_READ);
    int type = redis.KeyType(key);
    const char *bytes = type == REDIS_KEY_STRING ? redis.StringDMA(key, &len, REDIS_READ) : NULL;
    bool is = print_limit(bytes, len, text, sizeof(text));
    redis.CloseKey(key);
    if (type == REDIS_KEY_EMPTY)
        return redis.ReplyWithNull(context);
    if (!is)
        return reply_foreign(context);
    limits_begin();
    it->limit = limits_find(text, strlen(text), weir_limit_parse, &error);
    if (it->limit == NULL) { /* written when there was no bound for it, or forged */
        call_fail(c, error.text);
        return REDIS_OK;
    }
    const struct opening how = {
        context, words[1], it->limit, REDIS_READ, KEEP_USED, module_now()
    };
    if (account_open(&it->account, &how) != ACCOUNT_OPEN)
        return reply_foreign(context);
    reply_info(c, it);
    account_close(&it->account);
    return REDIS_OK;
}

/* For tests: sets the clock, in ns. */
int verb_clock(struct redis_context *context, struct redis_string **words, int n)
{
    long long now;

    if (n != 2 || redis.StringToLongLong(words[1], &now) != REDIS_OK || now < 0)
        return redis.ReplyWithError(context, "ERR a time in ns is needed");
    module_test_clock = now;
    return redis.ReplyWithSimpleString(context, "OK");
}
