/* account-asks.c -- an ask on accounts, carried to Redis and back. */
#include "cluster/redis/account-asks.h"

#include <string.h>

/* To read is harmless, unless the module would do all of it at once; so is anything with an id. */
static bool is_repeatable(const struct weir__account_call *call)
{
    return call->id.len > 0 || call->verb == WEIR__ACCOUNT_PEEK ||
           call->verb == WEIR__ACCOUNT_RESET ||
           (call->script == &weir__account_scripts[WEIR__SCRIPT_READ] && call->n_command == 0);
}

static bool is_at(const struct weir__carry *c, enum weir__script script)
{
    return c->call.script == &weir__account_scripts[script];
}

static void take_reply(struct weir__redis_ask *ask, const struct weir__redis_answer *answer);

static void send_next(struct weir__carry *c, weir_time now)
{
    struct weir__account_call *call = &c->call;

    c->script.text = (struct weir__text){ call->script->text, *call->script->len };
    memcpy(c->script.sha, call->script->sha, sizeof(c->script.sha));
    c->ask = (struct weir__redis_ask){ .script = &c->script,
                                       .words = call->words,
                                       .n_words = call->n_words,
                                       .module = call->command,
                                       .n_module = call->n_command,
                                       .slot = c->slot,
                                       .deadline = c->deadline,
                                       .losses = is_at(c, WEIR__SCRIPT_READ) ? c->losses : 0,
                                       .repeatable = is_repeatable(call),
                                       .done = take_reply,
                                       .context = c };
    weir__redis_client_ask(c->client, &c->ask, now);
}

/* Not answered, or with an error. */
static void give_up(struct weir__carry *c, bool unknown, const char *why)
{
    unknown = (unknown || c->maybe_done) && c->call.verb != WEIR__ACCOUNT_PEEK;
    c->done(c, unknown ? WEIR__REDIS_UNKNOWN : WEIR__REDIS_UNDONE, why);
}

/* The same again would end in the same way. */
static void deny(struct weir__carry *c, bool unknown, const char *why)
{
    c->denied = true;
    give_up(c, unknown, why);
}

/* Nothing is written yet. */
static void go_on(struct weir__carry *c, weir_time now)
{
    if (now >= c->deadline)
        give_up(c, false, c->losses > 0 ? WEIR__REDIS_OUTRUN : "Redis did not answer in time");
    else
        send_next(c, now);
}

static void take_reply(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir__carry *c = ask->context;
    struct weir_error error;
    bool reads = is_at(c, WEIR__SCRIPT_READ), writes = is_at(c, WEIR__SCRIPT_SWAP);
    int code;

    error.text[0] = '\0';
    c->maybe_done |= answer->maybe_done && !(reads && ask->n_module == 0);
    if (answer->outcome != WEIR__REDIS_ANSWERED) {
        give_up(c, answer->outcome == WEIR__REDIS_UNKNOWN && (!reads || answer->by_module),
                answer->why);
        return;
    }
    code = answer->by_module ? weir__account_command_reply(&c->call, answer->reply, &error)
                             : weir__account_reply(&c->call, answer->reply, &error);
    c->losses += writes && code == WEIR__ACCOUNT_AGAIN;
    if (code == WEIR__ACCOUNT_AGAIN)
        go_on(c, weir__redis_client_now(c->client));
    else if (code == WEIR_OK)
        c->done(c, WEIR__REDIS_ANSWERED, NULL);
    else
        deny(c, code == WEIR_CORRUPT && (!reads || answer->by_module), error.text);
}

void weir__carry_begin(struct weir__carry *c, struct weir__redis_client *client, weir_time now)
{
    const struct weir_key *key = &c->call.items[0].key;

    weir__carry_begin_in(
        c, client, c->call.n > 0 ? weir__redis_slot(key->bytes, key->len) : WEIR__REDIS_ANY_SLOT,
        now);
}

void weir__carry_begin_in(struct weir__carry *c, struct weir__redis_client *client, int slot,
                          weir_time now)
{
    struct weir_error error;

    error.text[0] = '\0';
    c->client = client;
    c->maybe_done = c->denied = false;
    c->losses = 0;
    c->slot = slot;
    c->call.scripts_only = !weir__redis_client_may_have_module(client, c->slot);
    if (weir__account_begin(&c->call, &error) == WEIR_OK)
        send_next(c, now);
    else
        deny(c, false, error.text);
}

void weir__carry_free(struct weir__carry *c)
{
    weir__account_free(&c->call);
}
