/* call.c -- an ask on accounts from its first script to its answer. */
#include "cluster/account/call.h"

#include <stdlib.h>
#include <string.h>

#include "wire/resp-reply.h"

#define LIFE_MAX ((weir_time)100 * 365 * 86400 * WEIR_SECOND)

#define SCRIPTS(X) X(meter) X(window) X(log) X(decide) X(read) X(swap) X(reset)
#define DECLARE(name)                                               \
    extern const char weir__lua_##name[], weir__lua_##name##_sha[]; \
    extern const size_t weir__lua_##name##_len;
SCRIPTS(DECLARE)

#define ROW(name) { #name, weir__lua_##name, weir__lua_##name##_sha, &weir__lua_##name##_len },
const struct weir__account_script weir__account_scripts[] = { SCRIPTS(ROW){ 0 } };

static bool is_at(const struct weir__account_call *call, enum weir__script script)
{
    return call->script == &weir__account_scripts[script];
}

static int sendable(const struct weir__account_call *call, int code, struct weir_error *error)
{
    return call->words.failed || call->command.failed
               ? weir__fail(error, WEIR_NO_MEMORY, "no memory for an ask")
               : code;
}

static bool is_same_key(const struct weir_key *a, const struct weir_key *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->bytes, b->bytes, a->len) == 0);
}

/* One key in two places: what is written under the one would be lost under the other. */
static bool is_twice(const struct weir__account_call *call)
{
    bool draws = weir__account_has_demand(call), has_id = call->id.len > 0;

    for (size_t i = 0; i < call->n; i++) {
        const struct weir_key *key = &call->items[i].key;
        if ((has_id && is_same_key(key, &call->id)) || (draws && is_same_key(key, &call->demand)))
            return true;
        for (size_t k = 0; k < i; k++)
            if (is_same_key(key, &call->items[k].key))
                return true;
    }
    return draws && is_same_key(&call->demand, &call->id);
}

int weir__account_begin(struct weir__account_call *call, struct weir_error *error)
{
    if (call->n < 1 || call->n > WEIR__ACCOUNT_ITEMS_MAX)
        return weir__fail(error, WEIR_INVALID, "1 to %d keys can be asked at once",
                          WEIR__ACCOUNT_ITEMS_MAX);
    for (size_t i = 0; i < call->n; i++) {
        const struct weir__account_item *it = &call->items[i];
        if (it->ask.cost < 0)
            return weir__fail(error, WEIR_INVALID, "the cost must not be negative");
        if (call->verb != WEIR__ACCOUNT_RESET && weir__plan_check_redis(it->plan, error) != WEIR_OK)
            return WEIR_INVALID;
    }
    if (weir__account_has_demand(call) &&
        (call->n != 1 || call->items[0].ask.cost < 1 || call->demand.len == 0))
        return weir__fail(error, WEIR_INVALID,
                          "a draw is from one key, of 1 unit at least, and has a key of demand");
    if (is_twice(call))
        return weir__fail(error, WEIR_INVALID, "the same key twice");
    call->tries = 0;
    weir__script_begin(call);
    call->command.len = call->n_command = 0;
    if (!call->scripts_only)
        weir__command_begin(call);
    return sendable(call, WEIR_OK, error);
}

void weir__account_free(struct weir__account_call *call)
{
    weir__buffer_free(&call->words);
    weir__buffer_free(&call->command);
}

/* --------------------------------------------- decided here, by lib/algo ---- */

struct opened {
    struct weir__text before;
    enum weir__account_found found;
    struct weir__account_head head;
    void *state;
};

struct desk {
    weir_time now;
    struct opened opened[WEIR__ACCOUNT_ITEMS_MAX];
    struct weir__text demand_before;
    struct weir__demand demand;
    struct weir__receipt receipt;
};

static void close_desk(struct weir__account_call *call, struct desk *desk)
{
    for (size_t i = 0; i < call->n; i++)
        free(desk->opened[i].state);
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
                          "the key holds something other than a limit's state");
    return WEIR_OK;
}

/* Reads {now, account ..., demand, receipt}. */
static int open_desk(struct weir__account_call *call, const char *at, struct desk *desk,
                     struct weir_error *error)
{
    struct weir__resp_value value;
    bool draws = call->verb == WEIR__ACCOUNT_DRAW, foreign = false;
    int code = WEIR_OK;

    at = weir__resp_value(at, &value);
    desk->now = value.integer * WEIR_MICROSECOND;
    for (size_t i = 0; i < call->n && code == WEIR_OK; i++) {
        desk->opened[i].before = next_text(&at, &foreign);
        code = open_account(call->items[i].plan, &desk->opened[i], desk->now, error);
    }
    if (code != WEIR_OK)
        return code;
    desk->demand_before =
        weir__account_has_demand(call) ? next_text(&at, &foreign) : (struct weir__text){ "", 0 };
    if (!weir__demand_read(&desk->demand, desk->demand_before.bytes, desk->demand_before.len))
        return weir__fail(error, WEIR_INVALID, "the key of demand holds something else");
    struct weir__text stored =
        call->id.len > 0 ? next_text(&at, &foreign) : (struct weir__text){ "", 0 };
    if (foreign)
        return weir__fail(error, WEIR_INVALID, "a key holds an empty string");
    call->repeated = stored.len > 0;
    if (call->repeated &&
        !weir__receipt_read(&desk->receipt, call->n, draws, stored.bytes, stored.len))
        return weir__fail(error, WEIR_INVALID, "the id belongs to another ask");
    return WEIR_OK;
}

/* The ask was granted before. */
static void answer_again(struct weir__account_call *call, struct desk *desk)
{
    for (size_t i = 0; i < call->n; i++) {
        struct weir__account_item *it = &call->items[i];
        weir__receipt_decide(&desk->receipt, i, it->plan, desk->opened[i].state, desk->now,
                             &it->decision);
        it->units = desk->receipt.items[i].units;
    }
    call->drawn = weir__receipt_drawn(&desk->receipt, call->items[0].plan, desk->now,
                                      &call->items[0].decision);
}

static bool peek_all(struct weir__account_call *call, struct desk *desk)
{
    bool granted = true;

    for (size_t i = 0; i < call->n; i++) {
        struct weir__account_item *it = &call->items[i];
        it->ask.now = desk->now;
        weir_step_peek(it->plan, desk->opened[i].state, &it->ask, &it->decision);
        it->units = it->decision.allowed ? it->ask.cost : 0;
        granted = granted && it->decision.allowed;
    }
    return granted;
}

/* Changes the states; a refusal of several changes none, but those that refuse follow a clock that
 * was set back. */
static void decide_all(struct weir__account_call *call, struct desk *desk)
{
    bool granted = peek_all(call, desk);

    for (size_t i = 0; i < call->n; i++) {
        struct weir__account_item *it = &call->items[i];
        struct opened *o = &desk->opened[i];
        if (call->verb == WEIR__ACCOUNT_DRAW) {
            call->drawn = weir__draw_units(it->plan, o->state, &desk->demand, &call->draw,
                                           desk->now, &it->decision);
            it->units = call->drawn.units;
        } else if (call->verb == WEIR__ACCOUNT_REPAY) {
            struct weir__repay repay = { it->ask.cost, call->drawn_at };
            it->units = weir__draw_repay(it->plan, o->state, &desk->demand, &repay, desk->now);
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
static bool swap_words(struct weir__account_call *call, const struct desk *desk, size_t i)
{
    const struct opened *o = &desk->opened[i];
    const struct weir_plan *plan = call->items[i].plan;
    weir_time idle = weir_step_idle_at(plan, o->state), life = idle - desk->now;
    unsigned char *after = malloc(o->head.len + weir__account_state_max(plan));
    size_t len = o->head.len;

    if (after == NULL) {
        call->words.failed = true;
        return false;
    }
    memcpy(after, o->head.bytes, len);
    len += weir__account_write(plan, o->state, after + len);
    if ((o->found == WEIR__ACCOUNT_NEW && is_zero(o->state, plan->state_size)) ||
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
static bool demand_words(struct weir__account_call *call, const struct desk *desk)
{
    const struct weir_plan *plan = call->items[0].plan;
    bool changes = call->verb == WEIR__ACCOUNT_DRAW || weir__is_meter(plan);
    unsigned char after[WEIR__DEMAND_SIZE];
    struct weir__draw_terms terms = weir__draw_terms(plan);

    weir__demand_write(&desk->demand, after);
    weir__script_word(call, desk->demand_before.bytes, desk->demand_before.len);
    weir__script_word(call, after, changes ? sizeof(after) : 0);
    weir__script_number(call, weir__demand_life(&terms));
    return changes;
}

/* The receipt, which is not there yet.  True: there is something to be remembered. */
static bool receipt_words(struct weir__account_call *call, struct desk *desk)
{
    unsigned char after[WEIR__RECEIPT_SIZE_MAX];
    bool gives = call->verb == WEIR__ACCOUNT_GIVE, repays = call->verb == WEIR__ACCOUNT_REPAY;
    bool granted = true;
    size_t len = 0;

    desk->receipt =
        (struct weir__receipt){ .draws = call->verb == WEIR__ACCOUNT_DRAW, .drawn = call->drawn };
    for (size_t i = 0; i < call->n; i++) {
        const struct weir__account_item *it = &call->items[i];
        granted = granted && it->decision.allowed;
        weir__receipt_note(&desk->receipt, gives ? it->ask.cost : it->units, &it->decision,
                           desk->now);
    }
    if (granted || gives || repays)
        len = weir__receipt_write(&desk->receipt, after);
    weir__script_word(call, "", 0);
    weir__script_word(call, after, len);
    weir__script_number(call, weir__receipt_keep(call->keep));
    return len > 0;
}

/* Words for swap.lua.  WEIR__ACCOUNT_AGAIN if there is something to write. */
static int write_down(struct weir__account_call *call, struct desk *desk, struct weir_error *error)
{
    bool changes = false;

    weir__script_keys(call, WEIR__SCRIPT_SWAP);
    for (size_t i = 0; i < call->n; i++)
        changes = swap_words(call, desk, i) || changes;
    if (weir__account_has_demand(call))
        changes = demand_words(call, desk) || changes;
    if (call->id.len > 0)
        changes = receipt_words(call, desk) || changes;
    return sendable(call, changes ? WEIR__ACCOUNT_AGAIN : WEIR_OK, error);
}

/* WEIR__ACCOUNT_AGAIN if there is something to write. */
static int decide_here(struct weir__account_call *call, const char *accounts,
                       struct weir_error *error)
{
    struct desk desk = { 0 };
    int code = open_desk(call, accounts, &desk, error);

    if (code == WEIR_OK && call->repeated)
        answer_again(call, &desk);
    else if (code == WEIR_OK && call->verb == WEIR__ACCOUNT_PEEK)
        peek_all(call, &desk);
    else if (code == WEIR_OK) {
        decide_all(call, &desk);
        code = write_down(call, &desk, error);
    }
    close_desk(call, &desk);
    return code;
}

/* -------------------------------------------------------------- replies ---- */

static int read_again(struct weir__account_call *call, struct weir_error *error)
{
    if (++call->tries > WEIR__ACCOUNT_TRIES)
        return weir__fail(error, WEIR_SYSTEM, "others change this key all the time");
    weir__script_keys(call, WEIR__SCRIPT_READ);
    return sendable(call, WEIR__ACCOUNT_AGAIN, error);
}

/* {now, a value for each key}: bulk strings, or null. */
static bool is_accounts(const struct weir__account_call *call, const char *reply)
{
    struct weir__resp_value list, value;
    const char *at = weir__resp_value(reply, &list);
    size_t keys = weir__script_key_count(call);

    if (list.kind != '*' || list.n != keys + 1)
        return false;
    at = weir__resp_value(at, &value);
    if (value.kind != ':' || value.integer < 0 || value.integer > INT64_MAX / WEIR_MICROSECOND)
        return false;
    for (size_t i = 0; i < keys; i++) {
        at = weir__resp_value(at, &value);
        if (value.kind != '$' && value.kind != '_')
            return false;
    }
    return true;
}

/* Refused at once by a script that cannot promise a later turn, to a caller that can wait. */
static bool may_wait(const struct weir__account_call *call)
{
    for (size_t i = 0; i < call->n; i++) {
        const struct weir__account_item *it = &call->items[i];
        bool meter = it->plan->algo == &weir__gcra || it->plan->algo == &weir__token_bucket ||
                     it->plan->algo == &weir__leaky_bucket;
        if (call->verb == WEIR__ACCOUNT_TAKE && it->units == 0 && !meter && it->ask.wait_max > 0)
            return true;
    }
    return false;
}

static int nonsense(struct weir_error *error)
{
    return weir__fail(error, WEIR_SYSTEM, "Redis: a reply that makes no sense");
}

int weir__account_reply(struct weir__account_call *call, struct weir__text reply,
                        struct weir_error *error)
{
    struct weir__resp_value value;
    const char *at = weir__resp_value(reply.bytes, &value);

    call->command.len = call->n_command = 0; /* it goes on by scripts */
    if (value.kind == '-')
        return weir__fail(error, WEIR_SYSTEM, "Redis: %.*s",
                          (int)(value.text.len < 200 ? value.text.len : 200), value.text.bytes);
    if (is_at(call, WEIR__SCRIPT_RESET)) {
        call->found = value.integer;
        return value.kind == ':' ? WEIR_OK : nonsense(error);
    }
    if (is_at(call, WEIR__SCRIPT_SWAP))
        return value.kind == ':' && value.integer == 1 ? WEIR_OK : read_again(call, error);
    if (is_accounts(call, reply.bytes))
        return decide_here(call, at, error);
    if (is_at(call, WEIR__SCRIPT_READ) || !weir__script_reply(call, reply.bytes))
        return nonsense(error);
    return may_wait(call) ? read_again(call, error) : WEIR_OK;
}
