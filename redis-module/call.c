/* call.c -- the accounts of a command, its receipt, its answer. */
#include "redis-module/call.h"

#include <stdio.h>

#include "redis-module/side-string.h"
#include "redis-module/replicate.h"
#include "redis-module/verbs.h"

static struct call the_call; /* one command at a time, and too large for the stack of some */

struct call *call_begin(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = &the_call;

    tell_command_begins();
    c->context = context;
    c->words = words;
    c->n = n;
    c->at = 1;
    c->items = 0;
    c->verb = WEIR__RECEIPT_TAKE;
    c->ns = c->repeated = false;
    c->id = c->demand_name = NULL;
    c->keep = 0;
    c->drawn_us = -1;
    c->draw = (struct weir__draw){ 0 };
    return c;
}

bool call_has_demand(const struct call *c)
{
    return c->verb == WEIR__RECEIPT_DRAW || c->verb == WEIR__RECEIPT_REPAY;
}

int reply_foreign(struct redis_context *context)
{
    return redis.ReplyWithError(
        context, "WRONGTYPE Operation against a key holding something else than a limit's state");
}

bool call_fail(const struct call *c, const char *what)
{
    char text[400];

    snprintf(text, sizeof(text), "ERR %s", what);
    redis.ReplyWithError(c->context, text);
    return false;
}

/* ------------------------------------------------------------ accounts ---- */

void call_close(struct call *c)
{
    for (size_t i = c->items; i > 0; i--)
        account_close(&c->item[i - 1].account);
}

bool call_open(struct call *c, int mode)
{
    for (size_t i = 0; i < c->items; i++) {
        struct item *it = &c->item[i];
        const struct opening how = {
            c->context, it->name, it->limit, mode, KEEP_USED, it->ask.now
        };
        if (account_open(&it->account, &how) != ACCOUNT_OPEN) {
            c->items = i;
            call_close(c);
            reply_foreign(c->context);
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------- receipts ---- */

/* False, and that was answered: the key of the id holds something else. */
bool call_find_receipt(struct call *c)
{
    unsigned char bytes[WEIR__RECEIPT_SIZE_MAX];

    if (c->id == NULL)
        return true;
    long len = side_string_read(c->context, c->id, bytes, sizeof(bytes));
    if (len == SIDE_STRING_NONE)
        return true;
    c->repeated = len > 0 && weir__receipt_read(&c->receipt, c->items, c->verb, bytes, (size_t)len);
    for (size_t i = 0; i < c->items && c->repeated; i++)
        c->repeated = weir__receipt_is_for(&c->receipt, i, c->item[i].ask.cost);
    if (c->repeated)
        return true;
    return call_fail(c, "the id belongs to another ask");
}

/* All that was granted; a refusal leaves nothing. */
void call_keep_receipt(struct call *c)
{
    unsigned char bytes[WEIR__RECEIPT_SIZE_MAX];
    struct weir__receipt receipt = { .verb = c->verb, .drawn = c->drawn };

    if (c->id == NULL)
        return;
    for (size_t i = 0; i < c->items; i++) {
        const struct item *it = &c->item[i];
        if (!it->decision.allowed)
            return;
        weir__receipt_note(&receipt, call_has_demand(c) ? c->drawn.units : it->ask.cost,
                           &it->decision, it->ask.now);
    }
    side_string_write(c->context, c->id, bytes, weir__receipt_write(&receipt, bytes),
                      weir__receipt_keep(c->keep));
}

void call_answer_again(struct call *c)
{
    for (size_t i = 0; i < c->items; i++) {
        struct item *it = &c->item[i];
        weir__receipt_decide(&c->receipt, i, &it->limit->plan, it->account.state, it->ask.now,
                             &it->decision);
    }
    c->drawn = weir__receipt_drawn(&c->receipt, &c->item[0].limit->plan, c->item[0].ask.now,
                                   &c->item[0].decision);
}

/* -------------------------------------------------------------- answers ---- */

long long call_time(const struct call *c, weir_time t)
{
    return t == WEIR_NEVER ? -1 : c->ns ? t : t / WEIR_MILLISECOND + (t % WEIR_MILLISECOND != 0);
}

void call_reply(const struct call *c, const struct weir_decision *d, int64_t units)
{
    redis.ReplyWithArray(c->context, c->verb == WEIR__RECEIPT_DRAW ? 10 : 6);
    redis.ReplyWithLongLong(c->context, units);
    redis.ReplyWithLongLong(c->context, d->limit);
    redis.ReplyWithLongLong(c->context, d->remaining);
    redis.ReplyWithLongLong(c->context, d->allowed ? -1 : call_time(c, d->retry));
    redis.ReplyWithLongLong(c->context, call_time(c, d->reset));
    redis.ReplyWithLongLong(c->context, call_time(c, d->wait));
    if (c->verb == WEIR__RECEIPT_DRAW) {
        redis.ReplyWithLongLong(c->context, c->drawn.spent);
        redis.ReplyWithLongLong(c->context, c->drawn.share);
        redis.ReplyWithLongLong(c->context, c->drawn.at / WEIR_MICROSECOND);
        redis.ReplyWithLongLong(c->context, c->drawn.life / (c->ns ? 1 : WEIR_MILLISECOND));
    }
}
