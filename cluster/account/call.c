/* call.c -- an ask on accounts from its first script to its answer. */
#include "cluster/account/call.h"

#include "wire/resp-reply.h"

#define SCRIPTS(X) X(meter) X(window) X(sliding_log) X(decide) X(read) X(swap) X(reset)
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

/* Waits that are over are none, and draws and payments have none. */
static void mend_waits(struct weir__account_call *call)
{
    for (size_t i = 0; i < call->n; i++) {
        weir_time *wait_max = &call->items[i].ask.wait_max;
        if (*wait_max < 0 || weir__account_has_demand(call))
            *wait_max = 0;
    }
}

int weir__account_begin(struct weir__account_call *call, struct weir_error *error)
{
    int code = weir__account_check(call, error);

    if (code != WEIR_OK)
        return code;
    mend_waits(call);
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

/* -------------------------------------------------------------- replies ---- */

static int read_again(struct weir__account_call *call, struct weir_error *error)
{
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
    return weir__fail(error, WEIR_CORRUPT, "Redis: a reply that makes no sense");
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
        return sendable(call, weir__account_decide(call, at, error), error);
    if (is_at(call, WEIR__SCRIPT_READ) || !weir__script_reply(call, reply.bytes))
        return nonsense(error);
    return may_wait(call) ? read_again(call, error) : WEIR_OK;
}
