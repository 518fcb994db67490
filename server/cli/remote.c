/* remote.c -- what the commands that ask a running server share. */
#include "server/cli/remote.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/text.h"
#include "server/base/token.h"
#include "server/base/words.h"

/* What came from a server may be in it. */
__attribute__((format(printf, 2, 3))) static void say(struct weir__remote *r, const char *format,
                                                      ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->said, sizeof(r->said), format, args);
    va_end(args);
    if (r->silent)
        return;
    fprintf(stderr, "weir %s: ", r->command);
    weir__print_safely(stderr, r->said);
    fputc('\n', stderr);
}

/* ----------------------------------------------------------------- the token ---- */

/* True with *token NULL: there is none. */
static bool find_token(const char *command, const char *file, char **token)
{
    const char *given = getenv("WEIR_TOKEN"), *wrong = given ? weir__token_wrong(given) : NULL;
    struct weir_error error = { 0 };

    *token = NULL;
    if (file && weir__token_read(token, file, &error) != WEIR_OK) {
        weir__complain(command, "--token-file: %s", error.text);
        return false;
    }
    if (file || !given || !*given)
        return true;
    if (wrong) {
        weir__complain(command, "$WEIR_TOKEN %s", wrong);
        return false;
    }
    *token = strdup(given);
    if (!*token)
        weir__complain(command, "no memory");
    return *token;
}

/* -------------------------------------------------------------- open, close ---- */

bool weir__remote_open(struct weir__remote *out, const struct weir__command *self,
                       const struct weir__remote_options *options)
{
    struct weir__remote r = { .command = self->name, .options = *options };
    const char *usual = getenv("WEIR_SERVER");
    struct weir_error error = { 0 };
    char *token;

    if (!r.options.server)
        r.options.server = usual && *usual ? usual : WEIR__CLIENT_SERVER;
    if (!find_token(r.command, options->token_file, &token))
        return false;
    struct weir__client_options how = { .server = r.options.server,
                                        .token = token,
                                        .ca = options->ca };
    int code = weir__client_open(&r.client, &how, &error);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    if (code != WEIR_OK) {
        weir__complain(r.command, "%s", error.text);
        return false;
    }
    *out = r;
    return true;
}

void weir__remote_close(struct weir__remote *remote)
{
    weir__client_close(remote->client);
    weir__buffer_free(&remote->answer);
    weir__document_free(&remote->document);
}

/* ------------------------------------------------------------------- asking ---- */

/* { or [, or 0: it is no JSON of ours. */
static char opening(const struct weir__buffer *answer)
{
    size_t at = 0;

    while (at < answer->len && strchr(" \t\r\n", answer->bytes[at]))
        at++;
    return at < answer->len && strchr("{[", answer->bytes[at]) ? answer->bytes[at] : '\0';
}

bool weir__remote_call(struct weir__remote *r, const char *method, const char *path,
                       const struct weir__buffer *body)
{
    struct weir_error error = { 0 };

    r->status = weir__client_ask(r->client, method, path, body, &r->answer, &error);
    weir__document_free(&r->document);
    if (r->status > 0 && opening(&r->answer) &&
        weir__document_read(&r->document, r->answer.bytes, r->answer.len, &error) != WEIR_OK)
        r->status = -1;
    if (r->status <= 0)
        say(r, "%s", error.text);
    return r->status > 0;
}

/* Which token would have been the right one. */
static void say_unknown(struct weir__remote *r, const char *detail)
{
    const char *usual = getenv("WEIR_TOKEN"), *given = r->options.token_file ? "--token-file"
                                                       : usual && *usual     ? "$WEIR_TOKEN"
                                                                             : NULL;

    if (given)
        say(r, "the server at %s does not know the token of %s", r->options.server, given);
    else
        say(r,
            "the server at %s wants %s token: set WEIR_TOKEN to it, or name a file with "
            "--token-file",
            r->options.server, detail && strstr(detail, "admin") ? "its admin" : "a");
}

void weir__remote_complain(struct weir__remote *r)
{
    const char *detail = weir__document_text(&r->document, "detail");

    if (r->status == 401)
        say_unknown(r, detail);
    else if (r->status == 403 && detail && strstr(detail, "admin token"))
        say(r, "this token may only ask: the server at %s wants its admin token for this",
            r->options.server);
    else if (detail)
        say(r, "%s", detail);
    else
        say(r, "the server at %s answers %d: is it a Weir server?", r->options.server, r->status);
}

bool weir__remote_ask(struct weir__remote *r, const char *method, const char *path,
                      const struct weir__buffer *body)
{
    if (!weir__remote_call(r, method, path, body))
        return false;
    if (r->status / 100 == 2)
        return true;
    weir__remote_complain(r);
    return false;
}

/* In the text, since a document has no members that are empty arrays. */
bool weir__remote_expect(struct weir__remote *r, const char *member)
{
    char name[64];
    size_t len = (size_t)snprintf(name, sizeof(name), "\"%s\":", member ? member : "");

    if (member ? opening(&r->answer) == '{' && memmem(r->answer.bytes, r->answer.len, name, len)
               : opening(&r->answer) == '[')
        return true;
    say(r, "the server at %s answers %d, but not as a Weir server would: is it a Weir server?",
        r->options.server, r->status);
    return false;
}

bool weir__remote_ask_for(struct weir__remote *r, const char *method, const char *path,
                          const struct weir__buffer *body, const char *member)
{
    return weir__remote_ask(r, method, path, body) && weir__remote_expect(r, member);
}

void weir__remote_print(const struct weir__remote *r)
{
    fwrite(r->answer.bytes, 1, r->answer.len, stdout);
    putchar('\n');
}

/* -------------------------------------------------------------- words in, out ---- */

bool weir__remote_attributes(const char *command, struct weir__buffer *body, char **words, int n)
{
    weir__buffer_text(body, body->len > 1 ? ",\"attributes\":{" : "\"attributes\":{");
    for (int i = 0; i < n; i++) {
        const char *equals = strchr(words[i], '=');
        if (!equals || equals == words[i]) {
            weir__complain(command, "'%s' is no attribute: write name=value, as in ip=192.0.2.7",
                           words[i]);
            return false;
        }
        weir__buffer_text(body, i ? "," : "");
        weir__buffer_json(body, words[i], (size_t)(equals - words[i]));
        weir__buffer_text(body, ":");
        weir__buffer_json(body, equals + 1, strlen(equals + 1));
    }
    weir__buffer_text(body, "}");
    return true;
}

void weir__print_safely(FILE *to, const char *text)
{
    weir__safe_text(to, WEIR__SAFE_TERMINAL, text ? text : "?");
}

void weir__print_padded(const char *text, int width)
{
    size_t len = strnlen(text ? text : "?", (size_t)width);

    weir__print_safely(stdout, text);
    printf("%*s", width - (int)len, "");
}

struct weir__words_of_time weir__remote_ms(int64_t ms)
{
    struct weir__words_of_time words;
    weir_time time;

    if (ms <= 0 || __builtin_mul_overflow(ms, WEIR_MILLISECOND, &time))
        time = ms <= 0 ? 0 : INT64_MAX;
    weir__text_time(words.text, sizeof(words.text), time);
    return words;
}
