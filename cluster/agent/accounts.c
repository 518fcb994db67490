/* accounts.c -- the accounts of one request's keys, for operators: looked at, and made fresh.  In
 * the caller's thread, which waits for Redis. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cluster/agent/agent.h"
#include "cluster/fleet/centre-calls.h"

#define ASK_MAX (500 * WEIR_MILLISECOND)

static size_t dues_of(struct weir_fleet *f, const struct weir_attr *attrs, size_t n, int64_t cost,
                      struct weir__due *out)
{
    struct weir_ask ask = { .cost = cost, .now = weir__agent_time(f) };

    return f->host->dues(f->weir, attrs, n, &ask, out, WEIR_ALL_MAX);
}

static struct weir_key name_of(struct weir_fleet *f, const struct weir__due *due, char *to,
                               size_t size)
{
    int len = snprintf(to, size, "weir:{%s/%s:%.*s}:%u", f->name, due->rule, (int)due->text_len,
                       due->text, due->index);

    return (struct weir_key){ to, (size_t)len };
}

/* ----------------------------------------------------------------- looking ---- */

static bool find_limit(struct weir_fleet *f, const struct weir__due *due, struct weir_limit *out)
{
    struct weir__across_limit limit;
    int64_t at = 0;

    while (f->host->limit_next(f->weir, &at, &limit))
        if (limit.index == due->index && strcmp(limit.rule, due->rule) == 0) {
            *out = limit.limit;
            return true;
        }
    return false; /* the rules were swapped */
}

static int peek(struct weir_fleet *f, const struct weir__due *due, struct weir_fleet_account *out,
                struct weir_error *error)
{
    char name[320];
    struct weir_limit limit;
    struct weir_redis_limit *plan;
    struct weir_redis_result result;

    if (!find_limit(f, due, &limit))
        return weir__fail(error, WEIR_INVALID, "the rules have changed meanwhile: ask again");
    int code = weir_redis_limit_create(&plan, &limit, error);
    if (code != WEIR_OK)
        return code;
    struct weir_redis_item item = { .key = name_of(f, due, name, sizeof(name)),
                                    .limit = plan,
                                    .cost = due->cost };
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
    char name[320];
    struct weir_redis_item item = { .key = name_of(f, due, name, sizeof(name)) };
    struct weir_redis_result result;

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
    struct weir__redis_script script = weir__redis_script(weir__lua_notes, weir__lua_notes_len);
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
