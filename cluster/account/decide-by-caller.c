/* decide-by-caller.c -- an ask that no script can decide: lib/algo does, between read.lua and
 * swap.lua. */
#include <stdlib.h>
#include <string.h>

#include "cluster/account/call.h"
#include "wire/resp-reply.h"

#define LIFE_MAX ((weir_time)100 * 365 * 86400 * WEIR_SECOND)

struct opened {
    struct weir__text before;
    enum weir__account_found found;
    struct weir__account_head head;
    void *state;
};

/* What read.lua has answered. */
struct reading {
    weir_time now;
    struct opened opened[WEIR__ACCOUNT_ITEMS_MAX];
    struct weir__text demand_before;
    struct weir__demand demand;
    struct weir__receipt receipt;
};

static void close_reading(struct weir__account_call *call, struct reading *r)
{
    for (size_t i = 0; i < call->n; i++)
        free(r->opened[i].state);
}

/* The next value, empty if there is none.  An empty string is none of ours. */
static struct weir__text next_text(const char **at, bool *foreign)
{
    struct weir__resp_value value;

    *at = weir__resp_value(*at, &value);
    *foreign = *foreign || (value.kind == '$' && value.text.len == 0);
    return value.kind == '$' ? value.text : (struct weir__text){ "", 0 };
}

static int open_account(const struct weir_plan *plan, struct opened *o, weir_time now,
                        struct weir_error *error)
{
    o->head = weir__account_head(plan);
    o->state = malloc(plan->state_size);
    if (o->state == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a state");
    o->found = weir__account_open(plan, &o->head, o->state, o->before.bytes, o->before.len, now);
    if (o->found == WEIR__ACCOUNT_FOREIGN)
        return weir__fail(error, WEIR_INVALID,
                          "Redis: the key holds something other than a limit's state");
    return WEIR_OK;
}

static enum weir__receipt_verb receipt_verb(const struct weir__account_call *call)
{
    return call->verb == WEIR__ACCOUNT_DRAW    ? WEIR__RECEIPT_DRAW
           : call->verb == WEIR__ACCOUNT_REPAY ? WEIR__RECEIPT_REPAY
           : call->verb == WEIR__ACCOUNT_GIVE  ? WEIR__RECEIPT_GIVE
                                               : WEIR__RECEIPT_TAKE;
}

/* Reads the receipt.  False: it is another ask's. */
static bool is_repeat(const struct weir__account_call *call, struct reading *r,
                      struct weir__text stored)
{
    bool is =
        weir__receipt_read(&r->receipt, call->n, receipt_verb(call), stored.bytes, stored.len);

    for (size_t i = 0; i < call->n && is; i++)
        is = weir__receipt_is_for(&r->receipt, i, call->items[i].ask.cost);
    return is;
}

/* Reads {now, account ..., demand, receipt}. */
static int open_reading(struct weir__account_call *call, const char *at, struct reading *r,
                        struct weir_error *error)
{
    struct weir__resp_value value;
    bool foreign = false;
    int code = WEIR_OK;

    at = weir__resp_value(at, &value);
    r->now = value.integer * WEIR_MICROSECOND;
    for (size_t i = 0; i < call->n && code == WEIR_OK; i++) {
        r->opened[i].before = next_text(&at, &foreign);
        code = open_account(call->items[i].plan, &r->opened[i], r->now, error);
    }
    if (code != WEIR_OK)
        return code;
    r->demand_before =
        weir__account_has_demand(call) ? next_text(&at, &foreign) : (struct weir__text){ "", 0 };
    if (!weir__demand_read(&r->demand, r->demand_before.bytes, r->demand_before.len))
        return weir__fail(error, WEIR_INVALID, "Redis: the key of demand holds something else");
    struct weir__text stored =
        call->id.len > 0 ? next_text(&at, &foreign) : (struct weir__text){ "", 0 };
    if (foreign)
        return weir__fail(error, WEIR_INVALID, "Redis: a key holds an empty string");
    call->repeated = stored.len > 0;
    return !call->repeated || is_repeat(call, r, stored)
               ? WEIR_OK
               : weir__fail(error, WEIR_INVALID, "Redis: the id belongs to another ask");
}

/* The ask was granted before. */
static void answer_again(struct weir__account_call *call, struct reading *r)
{
    for (size_t i = 0; i < call->n; i++) {
        struct weir__account_item *it = &call->items[i];
        weir__receipt_decide(&r->receipt, i, it->plan, r->opened[i].state, r->now, &it->decision);
        it->units = r->receipt.items[i].units;
    }
    call->drawn =
        weir__receipt_drawn(&r->receipt, call->items[0].plan, r->now, &call->items[0].decision);
}

static bool peek_all(struct weir__account_call *call, struct reading *r)
{
    bool granted = true;

    for (size_t i = 0; i < call->n; i++) {
        struct weir__account_item *it = &call->items[i];
        it->ask.now = r->now;
        weir_step_peek(it->plan, r->opened[i].state, &it->ask, &it->decision);
        it->units = it->decision.allowed ? it->ask.cost : 0;
        granted = granted && it->decision.allowed;
    }
    return granted;
}

static bool was_cut(const struct weir_plan *plan, const struct opened *o)
{
    return o->found == WEIR__ACCOUNT_MOVED &&
           weir__account_was_cut(plan, o->state, o->before.bytes, o->before.len);
}

/* Changes the states; a refusal of several changes none, but those that refuse follow a clock that
 * was set back. */
static void decide_all(struct weir__account_call *call, struct reading *r)
{
    bool granted = peek_all(call, r);

    for (size_t i = 0; i < call->n; i++) {
        struct weir__account_item *it = &call->items[i];
        struct opened *o = &r->opened[i];
        if (call->verb == WEIR__ACCOUNT_DRAW) {
            call->drawn = weir__draw_units(it->plan, o->state, &r->demand, &call->draw, r->now,
                                           &it->decision);
            it->units = call->drawn.units;
        } else if (call->verb == WEIR__ACCOUNT_REPAY) {
            struct weir__repay repay = { it->ask.cost, call->drawn_at };
            it->units = was_cut(it->plan, o)
                            ? 0
                            : weir__draw_repay(it->plan, o->state, &r->demand, &repay, r->now);
        } else if (call->verb == WEIR__ACCOUNT_GIVE && o->found != WEIR__ACCOUNT_NEW)
            weir_step_give(it->plan, o->state, &it->ask);
        else if (call->verb == WEIR__ACCOUNT_TAKE && (granted || !it->decision.allowed) &&
                 !(o->found == WEIR__ACCOUNT_MOVED && it->ask.cost == 0))
            weir_step(it->plan, o->state, &it->ask, &it->decision);
    }
}

static bool is_zero(const unsigned char *bytes, size_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* The words of one account for swap.lua.  True: it changes. */
static bool swap_words(struct weir__account_call *call, const struct reading *r, size_t i)
{
    const struct opened *o = &r->opened[i];
    const struct weir_plan *plan = call->items[i].plan;
    weir_time idle = weir__account_idle_at(plan, o->state), life = idle - r->now;
    unsigned char *after = malloc(o->head.len + weir__account_state_max(plan));
    size_t len = o->head.len;

    if (after == NULL) {
        call->words.failed = true;
        return false;
    }
    memcpy(after, o->head.bytes, len);
    len += weir__account_write(plan, o->state, after + len);
    if ((o->found == WEIR__ACCOUNT_NEW && is_zero(o->state, plan->state_size)) ||
        was_cut(plan, o) ||
        weir__account_is_same(plan, &o->head, after, len, o->before.bytes, o->before.len))
        len = 0;
    weir__script_word(call, o->before.bytes, o->before.len);
    weir__script_word(call, after, len);
    weir__script_number(call, (life < 0          ? 0
                               : life > LIFE_MAX ? LIFE_MAX
                                                 : life) /
                                      WEIR_MILLISECOND +
                                  2);
    free(after);
    return len > 0;
}

/* True: it changes.  A payment counts there in meters only. */
static bool demand_words(struct weir__account_call *call, const struct reading *r)
{
    const struct weir_plan *plan = call->items[0].plan;
    bool changes = call->verb == WEIR__ACCOUNT_DRAW || weir__is_meter(plan);
    unsigned char after[WEIR__DEMAND_SIZE];
    struct weir__draw_terms terms = weir__draw_terms(plan);

    weir__demand_write(&r->demand, after);
    weir__script_word(call, r->demand_before.bytes, r->demand_before.len);
    weir__script_word(call, after, changes ? sizeof(after) : 0);
    weir__script_number(call, weir__demand_life(&terms));
    return changes;
}

/* The receipt, which is not there yet.  True: there is something to be remembered. */
static bool receipt_words(struct weir__account_call *call, struct reading *r)
{
    unsigned char after[WEIR__RECEIPT_SIZE_MAX];
    bool gives = call->verb == WEIR__ACCOUNT_GIVE, repays = call->verb == WEIR__ACCOUNT_REPAY;
    bool granted = true;
    size_t len = 0;

    r->receipt = (struct weir__receipt){ .verb = receipt_verb(call), .drawn = call->drawn };
    for (size_t i = 0; i < call->n; i++) {
        const struct weir__account_item *it = &call->items[i];
        granted = granted && it->decision.allowed;
        weir__receipt_note(&r->receipt, gives ? it->ask.cost : it->units, &it->decision, r->now);
    }
    if (granted || gives || repays)
        len = weir__receipt_write(&r->receipt, after);
    weir__script_word(call, "", 0);
    weir__script_word(call, after, len);
    weir__script_number(call, weir__receipt_keep(call->keep));
    return len > 0;
}

/* Words for swap.lua.  WEIR__ACCOUNT_AGAIN if there is something to write. */
static int write_down(struct weir__account_call *call, struct reading *r)
{
    bool changes = false;

    weir__script_keys(call, WEIR__SCRIPT_SWAP);
    for (size_t i = 0; i < call->n; i++)
        changes = swap_words(call, r, i) || changes;
    if (weir__account_has_demand(call))
        changes = demand_words(call, r) || changes;
    if (call->id.len > 0)
        changes = receipt_words(call, r) || changes;
    return changes ? WEIR__ACCOUNT_AGAIN : WEIR_OK;
}

int weir__account_decide(struct weir__account_call *call, const char *accounts,
                         struct weir_error *error)
{
    struct reading r = { 0 };
    int code = open_reading(call, accounts, &r, error);

    if (code == WEIR_OK && call->repeated)
        answer_again(call, &r);
    else if (code == WEIR_OK && call->verb == WEIR__ACCOUNT_PEEK)
        peek_all(call, &r);
    else if (code == WEIR_OK) {
        decide_all(call, &r);
        code = write_down(call, &r);
    }
    close_reading(call, &r);
    return code;
}
