/* draw-verbs.c -- WEIR.DRAW and REPAY: units for a node to spend by itself. */
#include "redis-module/call.h"
#include "redis-module/side-string.h"
#include "redis-module/verbs.h"

/* False, and that was answered: the key of the demand holds something else. */
static bool find_demand(struct call *c)
{
    unsigned char bytes[WEIR__DEMAND_SIZE];
    long len = side_string_read(c->context, c->demand_name, bytes, sizeof(bytes));

    if (len != SIDE_STRING_FOREIGN && weir__demand_read(&c->demand, bytes, (size_t)len))
        return true;
    reply_foreign(c->context);
    return false;
}

static void keep_demand(struct call *c)
{
    unsigned char bytes[WEIR__DEMAND_SIZE];
    struct weir__draw_terms terms = weir__draw_terms(&c->item[0].limit->plan);

    weir__demand_write(&c->demand, bytes);
    side_string_write(c->context, c->demand_name, bytes, sizeof(bytes), weir__demand_life(&terms));
}

int verb_draw(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = call_begin(context, words, n);
    struct item *it = &c->item[0];

    if (redis.IsKeysPositionRequest(context))
        return call_say_keys(context, words, n, REDIS_SPEC_WRITES);
    c->verb = WEIR__RECEIPT_DRAW;
    if (!call_read(c) || !call_find_receipt(c) || !find_demand(c) ||
        !call_open(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    c->draw.need = it->ask.cost;
    if (c->repeated) {
        call_answer_again(c);
    } else {
        c->drawn = weir__draw_units(&it->limit->plan, it->account.state, &c->demand, &c->draw,
                                    it->ask.now, &it->decision);
        account_store(&it->account, it->ask.now);
    }
    call_close(c);
    if (!c->repeated) {
        keep_demand(c);
        call_keep_receipt(c);
    }
    call_reply(c, &it->decision, c->drawn.units);
    return REDIS_OK;
}

static void repay(struct call *c, struct item *it)
{
    const struct weir_plan *plan = &it->limit->plan;
    int64_t most = INT64_MAX / WEIR_MICROSECOND;
    struct weir__repay what = { it->ask.cost,
                                (c->drawn_us < most ? c->drawn_us : most) * WEIR_MICROSECOND };

    it->decision = (struct weir_decision){ .allowed = true };
    c->drawn.units = 0;
    if (account_was_cut(&it->account))
        return;
    c->drawn.units = weir__draw_repay(plan, it->account.state, &c->demand, &what, it->ask.now);
    if (c->drawn.units > 0 || it->account.moved)
        account_store(&it->account, it->ask.now);
}

int verb_repay(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = call_begin(context, words, n);
    struct item *it = &c->item[0];

    if (redis.IsKeysPositionRequest(context))
        return call_say_keys(context, words, n, REDIS_SPEC_WRITES);
    c->verb = WEIR__RECEIPT_REPAY;
    if (!call_read(c) || !call_find_receipt(c) || !find_demand(c) ||
        !call_open(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    if (!c->repeated)
        repay(c, it);
    call_close(c);
    if (!c->repeated && weir__is_meter(&it->limit->plan))
        keep_demand(c);
    if (!c->repeated)
        call_keep_receipt(c);
    return redis.ReplyWithLongLong(context,
                                   c->repeated ? c->receipt.items[0].units : c->drawn.units);
}
