/* carry.c -- an ask on accounts, carried to Redis and back. */
#include "cluster/redis/carry.h"

#include <string.h>

static void finish(struct weir__carry *c, enum weir__redis_outcome outcome, const char *why)
{
    c->done(c, outcome, why);
}

/* To read is harmless, and so is anything with an id. */
static bool is_repeatable(const struct weir__account_call *call)
{
    return call->id.len > 0 || call->verb == WEIR__ACCOUNT_PEEK ||
           call->verb == WEIR__ACCOUNT_RESET ||
           call->script == &weir__account_scripts[WEIR__SCRIPT_READ];
}

static void take_reply(struct weir__redis_ask *ask, const struct weir__redis_answer *answer);

static void send_next(struct weir__carry *c, weir_time now)
{
    struct weir__account_call *call = &c->call;
    const struct weir_key *key = &call->items[0].key;

    c->script.text = (struct weir__text){ call->script->text, *call->script->len };
    memcpy(c->script.sha, call->script->sha, sizeof(c->script.sha));
    c->ask = (struct weir__redis_ask){ .script = &c->script,
                                       .words = call->words,
                                       .n_words = call->n_words,
                                       .module = call->command,
                                       .n_module = call->n_command,
                                       .slot = weir__redis_slot(key->bytes, key->len),
                                       .deadline = c->deadline,
                                       .repeatable = is_repeatable(call),
                                       .done = take_reply,
                                       .context = c };
    weir__redis_client_ask(c->client, &c->ask, now);
}

static void take_reply(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir__carry *c = ask->context;
    struct weir_error error = { .text = "" };
    bool reads = c->call.verb == WEIR__ACCOUNT_PEEK ||
                 c->call.script == &weir__account_scripts[WEIR__SCRIPT_READ];
    int code;

    if (answer->outcome != WEIR__REDIS_ANSWERED) {
        bool unknown = answer->outcome == WEIR__REDIS_UNKNOWN && (!reads || answer->by_module);
        finish(c,
               unknown && c->call.verb != WEIR__ACCOUNT_PEEK ? WEIR__REDIS_UNKNOWN
                                                             : WEIR__REDIS_UNDONE,
               answer->why);
        return;
    }
    code = answer->by_module ? weir__account_command_reply(&c->call, answer->reply, &error)
                             : weir__account_reply(&c->call, answer->reply, &error);
    if (code == WEIR__ACCOUNT_AGAIN)
        send_next(c, weir__redis_client_now(c->client));
    else if (code == WEIR_OK)
        finish(c, WEIR__REDIS_ANSWERED, NULL);
    else
        finish(c, WEIR__REDIS_UNDONE, error.text);
}

void weir__carry_begin(struct weir__carry *c, struct weir__redis_client *client, weir_time now)
{
    struct weir_error error = { .text = "" };

    c->client = client;
    if (weir__account_begin(&c->call, &error) == WEIR_OK)
        send_next(c, now);
    else
        finish(c, WEIR__REDIS_UNDONE, error.text);
}

void weir__carry_free(struct weir__carry *c)
{
    weir__account_free(&c->call);
}
