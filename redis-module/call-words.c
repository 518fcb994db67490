/* call-words.c -- the words of a command. */
#include "redis-module/call.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

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
    return call_fail(c, text);
}

static bool read_key(struct call *c, const char *name, struct redis_string **out)
{
    char text[80];

    if (c->at < c->n) {
        *out = c->words[c->at++];
        return true;
    }
    snprintf(text, sizeof(text), "%s needs a key", name);
    return call_fail(c, text);
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
    return call_fail(
        c, "unknown option; there are DEMAND, NEED, WAITING, HAVE, ASKED, FAST, SLOW, NS, "
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
    return call_fail(c, "unknown option; there are DEMAND, DRAWN, UNITS, NS, ID, KEEP");
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
    return call_fail(c, "unknown option; there are COST, WAIT, NS, ID, KEEP, AND");
}

static bool read_item(struct call *c, struct item *item, weir_time now)
{
    struct weir_error error;
    size_t len;

    if (c->n - c->at < 2)
        return call_fail(c, "a key and a limit are needed");
    *item = (struct item){ .name = c->words[c->at++], .ask = { .cost = 1, .now = now } };
    const char *text = redis.StringPtrLen(c->words[c->at++], &len);
    item->limit = limits_find(text, len, weir_limit_parse, &error);
    if (item->limit == NULL) {
        for (char *byte = error.text; *byte; byte++)
            *byte = *byte < ' ' && *byte >= 0 ? ' ' : *byte;
        return call_fail(c, error.text);
    }
    while (c->at < c->n && (call_has_demand(c) || !is_word(c->words[c->at], "AND")))
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

bool call_read(struct call *c)
{
    weir_time now = module_now();

    limits_begin();
    do {
        if (c->items == ITEMS_MAX)
            return call_fail(c, "too many keys");
        if (!read_item(c, &c->item[c->items], now))
            return false;
        c->items++;
    } while (c->at++ < c->n);
    scale_waits(c);
    if (call_has_demand(c) && c->demand_name == NULL)
        return call_fail(c, "DEMAND is needed");
    if (c->verb == WEIR__RECEIPT_REPAY && c->drawn_us < 0)
        return call_fail(c, "DRAWN is needed");
    if (!is_twice(c))
        return true;
    return call_fail(c, c->items > 1 ? "the same key twice; use two, as {k}:minute and {k}:day"
                                     : "the same key twice");
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
int call_say_keys(struct redis_context *context, struct redis_string **words, int n, int flags)
{
    if (n > 1)
        say_key(context, 1, flags);
    for (int i = 3; i + 1 < n; i++)
        if (is_word(words[i], "AND") || is_word(words[i], "ID") || is_word(words[i], "DEMAND"))
            say_key(context, ++i, flags);
    return REDIS_OK;
}
