/* redis-scripts.c -- runs calls on accounts by the scripts. */
#include "redis-scripts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "resp-client.h"

static char *replace(const char *text, const char *what, const char *by)
{
    struct weir__buffer out = { 0 };

    for (const char *found; (found = strstr(text, what)); text = found + strlen(what)) {
        weir__buffer_add(&out, text, (size_t)(found - text));
        weir__buffer_text(&out, by);
    }
    weir__buffer_text(&out, text);
    weir__buffer_add(&out, "", 1);
    return out.bytes;
}

int redis_scripts_load(struct redis_scripts *s, struct weir__client *client,
                       struct weir_error *error)
{
    int code = WEIR_OK;

    s->client = client;
    for (size_t i = 0; weir__account_scripts[i].name && code == WEIR_OK; i++) {
        struct resp_answer answer;
        char *timed = replace(weir__account_scripts[i].text, "call('TIME')",
                              "call('MGET', 'clock:s', 'clock:us')");
        char *text = replace(timed, "'PX'", "'EX'");
        code = resp_client_ask(client, (const char *const[]){ "SCRIPT", "LOAD", text, NULL },
                               &answer, error);
        memcpy(s->shas[i], answer.text, sizeof(s->shas[i]));
        free(timed);
        free(text);
    }
    return code;
}

int redis_scripts_clock(struct redis_scripts *s, weir_time now, struct weir_error *error)
{
    char seconds[24], microseconds[24];
    struct resp_answer answer;

    snprintf(seconds, sizeof(seconds), "%" PRId64, now / WEIR_SECOND);
    snprintf(microseconds, sizeof(microseconds), "%" PRId64, now % WEIR_SECOND / WEIR_MICROSECOND);
    return resp_client_ask(
        s->client,
        (const char *const[]){ "MSET", "clock:s", seconds, "clock:us", microseconds, NULL },
        &answer, error);
}

/* {now, a value for each key} from a script that decides. */
static bool is_handed(size_t script, const struct weir__buffer *reply)
{
    const char *end = memchr(reply->bytes, '\n', reply->len);

    return script < WEIR__SCRIPT_READ && reply->bytes[0] == '*' && end && end[1] == ':';
}

int redis_scripts_step(struct redis_scripts *s, struct weir__account_call *call,
                       struct weir_error *error)
{
    size_t script = (size_t)(call->script - weir__account_scripts);

    s->sent[script]++;
    s->out.len = 0;
    weir__buffer_format(&s->out, "*%zu\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", call->n_words + 2,
                        s->shas[script]);
    weir__buffer_add(&s->out, call->words.bytes, call->words.len);
    int code = resp_client_raw(s->client, &s->out, &s->in, error);
    if (code != WEIR_OK)
        return code;
    s->handed += is_handed(script, &s->in);
    return weir__account_reply(call, (struct weir__text){ s->in.bytes, s->in.len }, error);
}

int redis_scripts_run(struct redis_scripts *s, struct weir__account_call *call,
                      struct weir_error *error)
{
    int code = weir__account_begin(call, error);

    if (code == WEIR_OK)
        do
            code = redis_scripts_step(s, call, error);
        while (code == WEIR__ACCOUNT_AGAIN);
    return code;
}

void redis_scripts_free(struct redis_scripts *s)
{
    weir__buffer_free(&s->out);
    weir__buffer_free(&s->in);
}
