/* verbs.c -- WEIR.TAKE and the others: any limit, written out in the ask.
 *
 *     WEIR.TAKE  key limit [COST n] [WAIT ms] [NS] [ID key [KEEP ms]]
 *                [AND key limit [COST n] [WAIT ms]] ...
 *     WEIR.PEEK  the same, and takes nothing
 *     WEIR.GIVE  the same; gives back
 *     WEIR.DRAW  key limit DEMAND key [NEED n] [WAITING n] [HAVE n] [ASKED n] [FAST n] [SLOW n]
 *                [NS] [ID key [KEEP ms]]   units for a node to spend by itself: draw-size.h
 *     WEIR.REPAY key limit DEMAND key DRAWN us [UNITS n] [ID key [KEEP ms]]
 *                units that were drawn then, and not spent
 *     WEIR.RESET key ...
 *     WEIR.INFO  key
 *
 * Take, peek and draw answer like a Weir server: allowed (draw: units), limit, remaining, retry
 * (-1: passed, or never), reset, wait; in ms, rounded up, or in ns.  A draw adds whether the
 * account is spent, the node's share, the time of the draw in us, and the life of its units,
 * rounded down.  Repay answers the number of units that count again.  With AND, a list of those for
 * each key; all pass, or none is charged.  An ask with an ID that was granted before is answered
 * again and not charged: receipt.h.
 */
#include "redis-module/verbs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cluster/account/receipt.h"
#include "redis-module/account.h"
#include "redis-module/side-string.h"
#include "redis-module/tell-redis.h"

#define ITEMS_MAX WEIR__RECEIPT_ITEMS_MAX

struct item {
    struct redis_string *name;
    const struct limit *limit;
    struct weir_ask ask;
    struct account account;
    struct weir_decision decision;
};

struct call {
    struct redis_context *context;
    struct redis_string **words;
    int n, at;
    enum weir__receipt_verb verb;
    bool ns;
    struct redis_string *id; /* or NULL */
    int64_t keep;
    bool repeated; /* and there is a receipt */
    struct weir__receipt receipt;
    struct redis_string *demand_name; /* of draws and payments */
    struct weir__demand demand;
    int64_t drawn_us;       /* of a payment; -1: not said */
    struct weir__draw draw; /* its need is the ask's cost */
    struct weir__drawn drawn;
    size_t items;
    struct item item[ITEMS_MAX];
};

static struct call the_call; /* one command at a time, and too large for the stack of some */

static bool has_demand(const struct call *c)
{
    return c->verb == WEIR__RECEIPT_DRAW || c->verb == WEIR__RECEIPT_REPAY;
}

int reply_foreign(struct redis_context *context)
{
    return redis.ReplyWithError(
        context, "WRONGTYPE Operation against a key holding something else than a limit's state");
}

static bool fail(const struct call *c, const char *what)
{
    char text[400];

    snprintf(text, sizeof(text), "ERR %s", what);
    redis.ReplyWithError(c->context, text);
    return false;
}

/* ----------------------------------------------------------- arguments ---- */

static bool is_word(struct redis_string *word, const char *name)
{
    size_t len;
    const char *bytes = redis.StringPtrLen(word, &len);

    return len == strlen(name) && strncasecmp(bytes, name, len) == 0;
}

static bool read_number(struct call *c, const char *name, int64_t least, int64_t *out)
{
    long long number;
    char text[80];

    if (c->at < c->n && redis.StringToLongLong(c->words[c->at], &number) == REDIS_OK &&
        number >= least) {
        *out = number;
        c->at++;
        return true;
    }
    snprintf(text, sizeof(text), "%s needs a number, at least %lld", name, (long long)least);
    return fail(c, text);
}

static bool read_key(struct call *c, const char *name, struct redis_string **out)
{
    char text[80];

    if (c->at < c->n) {
        *out = c->words[c->at++];
        return true;
    }
    snprintf(text, sizeof(text), "%s needs a key", name);
    return fail(c, text);
}

static bool read_draw_option(struct call *c, struct item *item, struct redis_string *word)
{
    const struct {
        const char *name;
        int64_t least, *number;
    } rows[] = {
        { "NEED", 1, &item->ask.cost }, { "WAITING", 0, &c->draw.waiting },
        { "HAVE", 0, &c->draw.have },   { "ASKED", 0, &c->draw.asked },
        { "FAST", 0, &c->draw.fast },   { "SLOW", 0, &c->draw.slow },
    };

    if (is_word(word, "DEMAND"))
        return read_key(c, "DEMAND", &c->demand_name);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (is_word(word, rows[i].name))
            return read_number(c, rows[i].name, rows[i].least, rows[i].number);
    return fail(c, "unknown option; there are DEMAND, NEED, WAITING, HAVE, ASKED, FAST, SLOW, NS, "
                   "ID, KEEP");
}

static bool read_repay_option(struct call *c, struct item *item, struct redis_string *word)
{
    if (is_word(word, "DEMAND"))
        return read_key(c, "DEMAND", &c->demand_name);
    if (is_word(word, "DRAWN"))
        return read_number(c, "DRAWN", 0, &c->drawn_us);
    if (is_word(word, "UNITS"))
        return read_number(c, "UNITS", 1, &item->ask.cost);
    return fail(c, "unknown option; there are DEMAND, DRAWN, UNITS, NS, ID, KEEP");
}

/* The option that comes next; false, and that was answered, if it is not one. */
static bool read_option(struct call *c, struct item *item)
{
    struct redis_string *word = c->words[c->at++];

    if (is_word(word, "NS"))
        return c->ns = true;
    if (is_word(word, "ID"))
        return read_key(c, "ID", &c->id);
    if (is_word(word, "KEEP"))
        return read_number(c, "KEEP", 1, &c->keep);
    if (c->verb == WEIR__RECEIPT_DRAW)
        return read_draw_option(c, item, word);
    if (c->verb == WEIR__RECEIPT_REPAY)
        return read_repay_option(c, item, word);
    if (is_word(word, "COST"))
        return read_number(c, "COST", 0, &item->ask.cost);
    if (is_word(word, "WAIT"))
        return read_number(c, "WAIT", 0, &item->ask.wait_max);
    return fail(c, "unknown option; there are COST, WAIT, NS, ID, KEEP, AND");
}

static bool read_item(struct call *c, struct item *item, weir_time now)
{
    struct weir_error error;
    size_t len;

    if (c->n - c->at < 2)
        return fail(c, "a key and a limit are needed");
    *item = (struct item){ .name = c->words[c->at++], .ask = { .cost = 1, .now = now } };
    const char *text = redis.StringPtrLen(c->words[c->at++], &len);
    item->limit = limits_find(text, len, weir_limit_parse, &error);
    if (item->limit == NULL) {
        for (char *byte = error.text; *byte; byte++)
            *byte = *byte < ' ' && *byte >= 0 ? ' ' : *byte;
        return fail(c, error.text);
    }
    while (c->at < c->n && (has_demand(c) || !is_word(c->words[c->at], "AND")))
        if (!read_option(c, item))
            return false;
    return true;
}

static bool is_same(struct redis_string *a, struct redis_string *b)
{
    size_t a_len, b_len;
    const char *a_bytes = redis.StringPtrLen(a, &a_len), *b_bytes = redis.StringPtrLen(b, &b_len);

    return a_len == b_len && memcmp(a_bytes, b_bytes, a_len) == 0;
}

static bool is_account(const struct call *c, struct redis_string *name, size_t before)
{
    for (size_t i = 0; i < before; i++)
        if (is_same(c->item[i].name, name))
            return true;
    return false;
}

static bool is_twice(const struct call *c)
{
    for (size_t i = 1; i < c->items; i++)
        if (is_account(c, c->item[i].name, i))
            return true;
    return (c->id && (is_account(c, c->id, c->items) ||
                      (c->demand_name && is_same(c->id, c->demand_name)))) ||
           (c->demand_name && is_account(c, c->demand_name, c->items));
}

static void scale_waits(struct call *c)
{
    for (size_t i = 0; i < c->items && !c->ns; i++)
        if (__builtin_mul_overflow(c->item[i].ask.wait_max, WEIR_MILLISECOND,
                                   &c->item[i].ask.wait_max))
            c->item[i].ask.wait_max = WEIR_FOREVER;
}

static bool read_items(struct call *c)
{
    weir_time now = module_now();

    limits_begin();
    do {
        if (c->items == ITEMS_MAX)
            return fail(c, "too many keys");
        if (!read_item(c, &c->item[c->items], now))
            return false;
        c->items++;
    } while (c->at++ < c->n);
    scale_waits(c);
    if (has_demand(c) && c->demand_name == NULL)
        return fail(c, "DEMAND is needed");
    if (c->verb == WEIR__RECEIPT_REPAY && c->drawn_us < 0)
        return fail(c, "DRAWN is needed");
    return !is_twice(c) || fail(c, "the same key twice");
}

static void say_key(struct redis_context *context, int at, int flags)
{
    if (redis.KeyAtPosWithFlags)
        redis.KeyAtPosWithFlags(context, at, flags);
    else
        redis.KeyAtPos(context, at);
}

/* Where the keys are, for Redis Cluster and access control: the second word, and the one after each
 * AND, ID and DEMAND.  Redis 6.2 asks before the number of words is known to be right, and reads
 * whatever place it is told. */
static int say_keys(struct redis_context *context, struct redis_string **words, int n, int flags)
{
    if (n > 1)
        say_key(context, 1, flags);
    for (int i = 3; i + 1 < n; i++)
        if (is_word(words[i], "AND") || is_word(words[i], "ID") || is_word(words[i], "DEMAND"))
            say_key(context, ++i, flags);
    return REDIS_OK;
}

/* ------------------------------------------------------------- deciding ---- */

static void close_items(struct call *c, size_t open)
{
    while (open > 0)
        account_close(&c->item[--open].account);
}

static bool open_items(struct call *c, int mode)
{
    for (size_t i = 0; i < c->items; i++) {
        struct item *it = &c->item[i];
        const struct opening how = {
            c->context, it->name, it->limit, mode, KEEP_USED, it->ask.now
        };
        if (account_open(&it->account, &how) != ACCOUNT_OPEN) {
            close_items(c, i);
            reply_foreign(c->context);
            return false;
        }
    }
    return true;
}

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

/* ------------------------------------------------------------- receipts ---- */

/* False, and that was answered: the key of the id holds something else. */
static bool find_receipt(struct call *c)
{
    unsigned char bytes[WEIR__RECEIPT_SIZE_MAX];

    if (c->id == NULL)
        return true;
    long len = side_string_read(c->context, c->id, bytes, sizeof(bytes));
    if (len == SIDE_STRING_NONE)
        return true;
    c->repeated = len > 0 && weir__receipt_read(&c->receipt, c->items, c->verb, bytes, (size_t)len);
    if (c->repeated)
        return true;
    return fail(c, "the id belongs to another ask");
}

/* All that was granted; a refusal leaves nothing. */
static void keep_receipt(struct call *c)
{
    unsigned char bytes[WEIR__RECEIPT_SIZE_MAX];
    struct weir__receipt receipt = { .verb = c->verb, .drawn = c->drawn };

    if (c->id == NULL)
        return;
    for (size_t i = 0; i < c->items; i++) {
        const struct item *it = &c->item[i];
        if (!it->decision.allowed)
            return;
        weir__receipt_note(&receipt, has_demand(c) ? c->drawn.units : it->ask.cost, &it->decision,
                           it->ask.now);
    }
    side_string_write(c->context, c->id, bytes, weir__receipt_write(&receipt, bytes),
                      weir__receipt_keep(c->keep));
}

static void answer_again(struct call *c)
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

static long long in_unit(const struct call *c, weir_time t)
{
    return t == WEIR_NEVER ? -1 : c->ns ? t : t / WEIR_MILLISECOND + (t % WEIR_MILLISECOND != 0);
}

static void reply_decision(const struct call *c, const struct weir_decision *d, int64_t units)
{
    redis.ReplyWithArray(c->context, c->verb == WEIR__RECEIPT_DRAW ? 10 : 6);
    redis.ReplyWithLongLong(c->context, units);
    redis.ReplyWithLongLong(c->context, d->limit);
    redis.ReplyWithLongLong(c->context, d->remaining);
    redis.ReplyWithLongLong(c->context, d->allowed ? -1 : in_unit(c, d->retry));
    redis.ReplyWithLongLong(c->context, in_unit(c, d->reset));
    redis.ReplyWithLongLong(c->context, in_unit(c, d->wait));
    if (c->verb == WEIR__RECEIPT_DRAW) {
        redis.ReplyWithLongLong(c->context, c->drawn.spent);
        redis.ReplyWithLongLong(c->context, c->drawn.share);
        redis.ReplyWithLongLong(c->context, c->drawn.at / WEIR_MICROSECOND);
        redis.ReplyWithLongLong(c->context, c->drawn.life / (c->ns ? 1 : WEIR_MILLISECOND));
    }
}

static int reply_items(const struct call *c)
{
    if (c->items > 1)
        redis.ReplyWithArray(c->context, (long)c->items);
    for (size_t i = 0; i < c->items; i++)
        reply_decision(c, &c->item[i].decision, c->item[i].decision.allowed);
    return REDIS_OK;
}

/* ---------------------------------------------------------------- verbs ---- */

static struct call *begin(struct redis_context *context, struct redis_string **words, int n)
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

/* Reads the ask and opens its accounts.  False: that was answered. */
static bool open_call(struct call *c, int mode)
{
    return read_items(c) && find_receipt(c) && open_items(c, mode);
}

int verb_take(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = begin(context, words, n);

    if (redis.IsKeysPositionRequest(context))
        return say_keys(context, words, n, REDIS_SPEC_WRITES);
    if (!open_call(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    if (c->repeated)
        answer_again(c);
    else
        take_all(c);
    close_items(c, c->items);
    if (!c->repeated)
        keep_receipt(c);
    return reply_items(c);
}

int verb_peek(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = begin(context, words, n);

    if (redis.IsKeysPositionRequest(context))
        return say_keys(context, words, n, REDIS_SPEC_READS);
    if (!open_call(c, REDIS_READ))
        return REDIS_OK;
    peek_all(c);
    close_items(c, c->items);
    return reply_items(c);
}

int verb_give(struct redis_context *context, struct redis_string **words, int n)
{
    struct call *c = begin(context, words, n);

    if (redis.IsKeysPositionRequest(context))
        return say_keys(context, words, n, REDIS_SPEC_WRITES);
    c->verb = WEIR__RECEIPT_GIVE;
    if (!open_call(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    for (size_t i = 0; i < c->items && !c->repeated; i++) {
        struct item *it = &c->item[i];
        it->decision = (struct weir_decision){ .allowed = true };
        if (it->account.known) { /* a fresh key has nothing to be given back */
            weir_step_give(&it->limit->plan, it->account.state, &it->ask);
            account_store(&it->account, it->ask.now);
        }
    }
    close_items(c, c->items);
    if (!c->repeated)
        keep_receipt(c);
    return redis.ReplyWithSimpleString(context, "OK");
}

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
    struct call *c = begin(context, words, n);
    struct item *it = &c->item[0];

    if (redis.IsKeysPositionRequest(context))
        return say_keys(context, words, n, REDIS_SPEC_WRITES);
    c->verb = WEIR__RECEIPT_DRAW;
    if (!read_items(c) || !find_receipt(c) || !find_demand(c) ||
        !open_items(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    c->draw.need = it->ask.cost;
    if (c->repeated) {
        answer_again(c);
    } else {
        c->drawn = weir__draw_units(&it->limit->plan, it->account.state, &c->demand, &c->draw,
                                    it->ask.now, &it->decision);
        account_store(&it->account, it->ask.now);
    }
    close_items(c, 1);
    if (!c->repeated) {
        keep_demand(c);
        keep_receipt(c);
    }
    reply_decision(c, &it->decision, c->drawn.units);
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
    struct call *c = begin(context, words, n);
    struct item *it = &c->item[0];

    if (redis.IsKeysPositionRequest(context))
        return say_keys(context, words, n, REDIS_SPEC_WRITES);
    c->verb = WEIR__RECEIPT_REPAY;
    if (!read_items(c) || !find_receipt(c) || !find_demand(c) ||
        !open_items(c, REDIS_READ | REDIS_WRITE))
        return REDIS_OK;
    if (!c->repeated)
        repay(c, it);
    close_items(c, 1);
    if (!c->repeated && weir__is_meter(&it->limit->plan))
        keep_demand(c);
    if (!c->repeated)
        keep_receipt(c);
    return redis.ReplyWithLongLong(context,
                                   c->repeated ? c->receipt.items[0].units : c->drawn.units);
}

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
    reply_pair(c->context, "reset_ms", in_unit(c, it->decision.reset));
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
    struct call *c = begin(context, words, n);
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
        fail(c, error.text);
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
