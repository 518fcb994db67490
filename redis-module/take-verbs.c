/* take-verbs.c -- WEIR.TAKE, PEEK and GIVE: any limit, written out in the ask. */
#include "redis-module/verbs.h"

#include "redis-module/call.h"

static bool peek_all(struct call *c)
{
    bool granted = true;

    for (size_t i = 0; i < c->items; i++) {
        struct item *it = &c->item[i];
        granted &= weir_step_peek(&it->limit->plan, it->account.state, &it->ask, &it->decision);
    }
    return granted;
}

/* All that would pass do, or none does; those that refuse follow a clock that was set back.
 * Nothing taken under a changed limit: the change alone is kept. */
static void take_all(struct call *c)
{
    bool several = c->items > 1, granted = !several || peek_all(c);

    for (size_t i = 0; i < c->items; i++) {
        struct item *it = &c->item[i];
        bool looks = it->account.moved && it->ask.cost == 0,
             steps = granted || !it->decision.allowed;
        if (looks)
            weir_step_peek(&it->limit->plan, it->account.state, &it->ask, &it->decision);
        else if (steps)
            weir_step(&it->limit->plan, it->account.state, &it->ask, &it->decision);
        if (steps || it->account.moved)
            account_store(&it->account, it->ask.now);
    }
}

static int reply_items(const struct call *c)
{
    if (c->items > 1)
        redis.ReplyWithArray(c->context, (long)c->items);
    for (size_t i = 0; i < c->items; i++)
        call_reply(c, &c->item[i].decision, c->item[i].decision.allowed);
    return REDIS_OK;
}

/* A receipt is a key more.  When memory is full Redis refuses commands that take; others have to
 * look by themselves.  False: that was answered. */
static bool has_room(const struct call *c)
{
    if (c->id == NULL || (redis.GetContextFlags(c->context) & REDIS_IS_FULL) == 0)
        return true;
    redis.ReplyWithError(c->context, "OOM command not allowed when used memory > 'maxmemory'.");
    return false;
}

int verb_take(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = call_begin(context, words, n);

    if (redis.IsKeysPositionRequest(context))
        return call_say_keys(context, words, n, REDIS_SPEC_WRITES);
    if (!call_read(c) || !call_find_receipt(c) || !call_open(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    if (c->repeated)
        call_answer_again(c);
    else
        take_all(c);
    call_close(c);
    if (!c->repeated)
        call_keep_receipt(c);
    return reply_items(c);
}

int verb_peek(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = call_begin(context, words, n);

    if (redis.IsKeysPositionRequest(context))
        return call_say_keys(context, words, n, REDIS_SPEC_READS);
    if (!call_read(c) || !call_open(c, REDIS_READ)) /* whatever its id has taken */
        return REDIS_OK;
    peek_all(c);
    call_close(c);
    return reply_items(c);
}

int verb_give(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = call_begin(context, words, n);

    if (redis.IsKeysPositionRequest(context))
        return call_say_keys(context, words, n, REDIS_SPEC_WRITES);
    c->verb = WEIR__RECEIPT_GIVE;
    if (!call_read(c) || !has_room(c) || !call_find_receipt(c) ||
        !call_open(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    for (size_t i = 0; i < c->items && !c->repeated; i++) {
        struct item *it = &c->item[i];
        it->decision = (struct weir_decision){ .allowed = true };
        if (it->account.known) { /* a fresh key has nothing to be given back */
            weir_step_give(&it->limit->plan, it->account.state, &it->ask);
            account_store(&it->account, it->ask.now);
        }
    }
    call_close(c);
    if (!c->repeated)
        call_keep_receipt(c);
    return redis.ReplyWithSimpleString(context, "OK");
}
