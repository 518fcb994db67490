/* module-command.c -- an ask on accounts for a server that has the module: its command, and the
 * reply. */
#include "cluster/account/call.h"

#include <string.h>

#include "wire/decimal.h"
#include "wire/resp-reply.h"

#define LIMIT_MAX 192
#define NUMBERS   10

static void word(struct weir__account_call *call, const void *bytes, size_t len)
{
    weir__buffer_bulk(&call->command, bytes, len);
    call->n_command++;
}

static void text(struct weir__account_call *call, const char *bytes)
{
    word(call, bytes, strlen(bytes));
}

static void number(struct weir__account_call *call, const char *name, int64_t n)
{
    char digits[WEIR__NUMBER_MAX];

    text(call, name);
    word(call, digits, (size_t)(weir__put_number(digits, n) - digits));
}

static void item_words(struct weir__account_call *call, const struct weir__account_item *it)
{
    char limit[LIMIT_MAX];

    word(call, it->key.bytes, it->key.len);
    if (call->verb == WEIR__ACCOUNT_RESET)
        return; /* which needs no plan */
    struct weir_limit named = weir__plan_limit_named(it->plan);
    weir_limit_print(limit, sizeof(limit), &named);
    text(call, limit);
    number(call,
           call->verb == WEIR__ACCOUNT_DRAW    ? "NEED"
           : call->verb == WEIR__ACCOUNT_REPAY ? "UNITS"
                                               : "COST",
           it->ask.cost);
    if (it->ask.wait_max > 0)
        number(call, "WAIT", it->ask.wait_max);
}

static void draw_words(struct weir__account_call *call)
{
    const struct weir__draw *d = &call->draw;

    text(call, "DEMAND");
    word(call, call->demand.bytes, call->demand.len);
    if (call->verb == WEIR__ACCOUNT_REPAY) {
        number(call, "DRAWN", call->drawn_at < 0 ? 0 : call->drawn_at / WEIR_MICROSECOND);
        return;
    }
    number(call, "WAITING", d->waiting < 0 ? 0 : d->waiting);
    number(call, "HAVE", d->have < 0 ? 0 : d->have);
    number(call, "ASKED", d->asked < 0 ? 0 : d->asked);
    number(call, "FAST", d->fast < 0 ? 0 : d->fast);
    number(call, "SLOW", d->slow < 0 ? 0 : d->slow);
}

void weir__command_begin(struct weir__account_call *call)
{
    static const char *const names[] = { "WEIR.TAKE", "WEIR.PEEK",  "WEIR.GIVE",
                                         "WEIR.DRAW", "WEIR.REPAY", "WEIR.RESET" };

    text(call, names[call->verb]);
    for (size_t i = 0; i < call->n; i++) {
        if (i > 0 && call->verb != WEIR__ACCOUNT_RESET)
            text(call, "AND");
        item_words(call, &call->items[i]);
    }
    if (weir__account_has_demand(call))
        draw_words(call);
    if (call->verb == WEIR__ACCOUNT_RESET)
        return;
    text(call, "NS");
    if (call->id.len > 0) {
        text(call, "ID");
        word(call, call->id.bytes, call->id.len);
        number(call, "KEEP", weir__receipt_keep(call->keep));
    }
}

/* -------------------------------------------------------------- replies ---- */

/* Six numbers, or ten of a draw.  NULL: they are not. */
static const char *read_decision(struct weir__account_call *call, struct weir__account_item *it,
                                 const char *at)
{
    struct weir__resp_value list, value;
    int64_t n[NUMBERS] = { 0 };
    bool draws = call->verb == WEIR__ACCOUNT_DRAW;

    at = weir__resp_value(at, &list);
    if (list.kind != '*' || list.n != (draws ? 10u : 6u))
        return NULL;
    for (size_t i = 0; i < list.n; i++) {
        at = weir__resp_value(at, &value);
        if (value.kind != ':' || value.integer < -1)
            return NULL;
        n[i] = value.integer;
    }
    if (n[8] < 0 || n[8] > INT64_MAX / WEIR_MICROSECOND)
        return NULL;
    it->decision = (struct weir_decision){ .limit = n[1], .remaining = n[2], .reset = n[4] };
    it->units = draws ? n[0] : n[0] > 0 ? it->ask.cost : 0;
    if (n[0] > 0)
        weir__grant(&it->decision, n[5]);
    else
        weir__refuse(&it->decision, n[3] < 0 ? WEIR_NEVER : n[3]);
    if (draws)
        call->drawn = (struct weir__drawn){ .units = n[0],
                                            .spent = n[6] != 0,
                                            .share = n[7],
                                            .at = n[8] * WEIR_MICROSECOND,
                                            .life = n[9] };
    return n[0] < 0 ? NULL : at;
}

static bool read_items(struct weir__account_call *call, const char *at)
{
    struct weir__resp_value list;

    if (call->n > 1) {
        at = weir__resp_value(at, &list);
        if (list.kind != '*' || list.n != call->n)
            return false;
    }
    for (size_t i = 0; i < call->n && at; i++)
        at = read_decision(call, &call->items[i], at);
    return at != NULL;
}

int weir__account_command_reply(struct weir__account_call *call, struct weir__text reply,
                                struct weir_error *error)
{
    struct weir__resp_value value;
    bool good = false;

    weir__resp_value(reply.bytes, &value);
    if (value.kind == '-')
        return weir__fail(error, WEIR_SYSTEM, "Redis: %.*s",
                          (int)(value.text.len < 200 ? value.text.len : 200), value.text.bytes);
    if (call->verb == WEIR__ACCOUNT_GIVE) {
        good = value.kind == '+';
    } else if (call->verb == WEIR__ACCOUNT_RESET) {
        good = value.kind == ':';
        call->found = value.integer;
    } else if (call->verb == WEIR__ACCOUNT_REPAY) {
        good = value.kind == ':' && value.integer >= 0;
        call->items[0].units = value.integer;
    } else {
        good = read_items(call, reply.bytes);
    }
    return good ? WEIR_OK : weir__fail(error, WEIR_CORRUPT, "Redis: a reply that makes no sense");
}
