/* accounts.c -- the accounts of one request's keys, for operators: looked at, and made fresh.  In
 * the caller's thread, which waits for Redis. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cluster/agent/agent.h"
#include "cluster/fleet/rules-versions.h"

#define ASK_MAX (500 * WEIR_MILLISECOND)

static size_t dues_of(struct weir_fleet *f, const struct weir_attr *attrs, size_t n, int64_t cost,
                      struct weir__due *out)
{
    struct weir_ask ask = { .cost = cost, .now = weir__agent_time(f) };

    return f->host->dues(f->weir, attrs, n, &ask, out, WEIR_ALL_MAX);
}

struct account {
    struct weir_limit limit;
    struct weir_key key; /* in `name` */
    char name[320];
};

static void name_account(struct weir_fleet *f, const struct weir__due *due, const char *end,
                         struct account *a)
{
    int len = snprintf(a->name, sizeof(a->name), "weir:{%s/%s:%.*s}:%s", f->name, due->rule,
                       (int)due->text_len, due->text, end);

    a->key = (struct weir_key){ a->name, (size_t)len };
}

static int find_account(struct weir_fleet *f, const struct weir__due *due, struct account *out,
                        struct weir_error *error)
{
    struct weir__across_limit limit;
    int64_t at = 0;

    while (f->host->limit_next(f->weir, &at, &limit))
        if (limit.index == due->index && strcmp(limit.rule, due->rule) == 0) {
            out->limit = limit.limit;
            name_account(f, due, limit.account, out);
            return WEIR_OK;
        }
    return weir__fail(error, WEIR_INVALID, "the rules have changed meanwhile: ask again");
}

/* ----------------------------------------------------------------- looking ---- */

static int peek(struct weir_fleet *f, const struct weir__due *due, struct weir_fleet_account *out,
                struct weir_error *error)
{
    struct account account;
    struct weir_redis_limit *plan;
    struct weir_redis_result result;
    int code = find_account(f, due, &account, error);

    if (code == WEIR_OK)
        code = weir_redis_limit_create(&plan, &account.limit, error);
    if (code != WEIR_OK)
        return code;
    struct weir_redis_item item = { .key = account.key, .limit = plan, .cost = due->cost };
    weir_redis_peek(f->redis,
                    &(struct weir_redis_request){ .items = &item, .n = 1, .timeout = ASK_MAX },
                    &result);
    weir_redis_limit_destroy(plan);
    if (result.outcome != WEIR_REDIS_ANSWERED)
        return weir__fleet_away(error, result.why);
    *out = (struct weir_fleet_account){ .rule = due->rule,
                                        .limit_index = due->index,
                                        .decision = result.decisions[0] };
    memcpy(out->key, due->text, due->text_len);
    return WEIR_OK;
}

int64_t weir_fleet_peek(struct weir_fleet *f, const struct weir_attr *attrs, size_t n, int64_t cost,
                        struct weir_fleet_account out[WEIR_ALL_MAX], struct weir_error *error)
{
    struct weir__due dues[WEIR_ALL_MAX];
    size_t found = dues_of(f, attrs, n, cost, dues);
    int code = found > 0 ? weir__agent_reach(f, error) : WEIR_OK;

    for (size_t i = 0; i < found && code == WEIR_OK; i++)
        code = peek(f, &dues[i], &out[i], error);
    return code == WEIR_OK ? (int64_t)found : code;
}

/* --------------------------------------------------------------- resetting ---- */

/* The account first: a host that hears of it draws at once. */
static int reset(struct weir_fleet *f, const struct weir__due *due, struct weir_error *error)
{
    struct account account;
    struct weir_redis_result result;
    int code = find_account(f, due, &account, error);

    if (code != WEIR_OK)
        return code;
    struct weir_redis_item item = { .key = account.key };
    weir_redis_reset(f->redis,
                     &(struct weir_redis_request){ .items = &item, .n = 1, .timeout = ASK_MAX },
                     &result);
    return result.outcome == WEIR_REDIS_ANSWERED ? WEIR_OK : weir__fleet_away(error, result.why);
}

/* One note for a rule's key, which has all its limits. */
static int tell(struct weir_fleet *f, const struct weir__due *due, struct weir_error *error)
{
    struct weir_key fleet = { f->name, strlen(f->name) };
    struct weir__note note = { .kind = 'r',
                               .rule = { due->rule, strlen(due->rule) },
                               .key = { due->text, due->text_len },
                               .span = WEIR__NOTE_RESET,
                               .how = WEIR__NOTE_NOW };
    struct weir__redis_script script =
        weir__redis_script(weir__lua_bans_and_resets, weir__lua_bans_and_resets_len);
    struct weir__redis_ask ask = { .script = &script,
                                   .n_words = WEIR__NOTES_WORDS(1),
                                   .slot = weir__notes_slot(f),
                                   .deadline = weir__redis_deadline(ASK_MAX),
                                   .repeatable = true };
    struct weir__buffer reply = { 0 };
    struct weir__notes notes;

    weir__notes_words(fleet, 0, 0, 0, &ask.words);
    weir__note_words(&note, &ask.words);
    int code = weir__fleet_call(f->redis, &ask, &reply, error);
    if (code == WEIR_OK &&
        !weir__notes_reply(&notes, (struct weir__text){ reply.bytes, reply.len }))
        code = weir__fleet_away(error, "it refuses a script");
    weir__buffer_free(&reply);
    return code;
}

int64_t weir_fleet_reset(struct weir_fleet *f, const char *rule, const struct weir_attr *attrs,
                         size_t n, struct weir_error *error)
{
    struct weir__due dues[WEIR_ALL_MAX];
    int64_t count = f->host->reset(f->weir, rule, attrs, n, weir__agent_time(f), error);
    size_t found = count > 0 ? dues_of(f, attrs, n, 1, dues) : 0;
    int code = WEIR_OK;

    for (size_t i = 0; i < found && code == WEIR_OK; i++) {
        if (rule && strcmp(dues[i].rule, rule) != 0)
            continue;
        code = weir__agent_reach(f, error);
        if (code == WEIR_OK)
            code = reset(f, &dues[i], error);
        if (code == WEIR_OK && (i + 1 == found || strcmp(dues[i + 1].rule, dues[i].rule) != 0))
            code = tell(f, &dues[i], error);
    }
    return code == WEIR_OK ? count : code;
}
