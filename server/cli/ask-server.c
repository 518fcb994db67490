/* ask-server.c -- the commands that ask a running server: connecting, asking, complaining. */
#include "server/cli/ask-server.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "match/address.h"
#include "server/base/complain.h"
#include "server/base/token.h"

#define SERVER_DEFAULT "127.0.0.1:" WEIR__CLIENT_HTTP_PORT
#define PATIENCE       (30 * WEIR_SECOND) /* as the option's help says */

/* The text may hold a server's words. */
__attribute__((format(printf, 2, 3))) static void say(struct weir__ask_server *r,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(r->said, sizeof(r->said), format, args);
    va_end(args);
    if (r->silent)
        return;
    fprintf(stderr, "weir %s: ", r->call->self->name);
    weir__print_safely(stderr, r->said);
    fputc('\n', stderr);
}

/* ----------------------------------------------------------------- the token ---- */

/* *token NULL: there is none.  False after a complaint. */
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

/* ------------------------------------------------------------------- asking ---- */

/* { or [, or 0: not JSON of ours. */
static char opening(const struct weir__buffer *answer)
{
    size_t at = 0;

    while (at < answer->len && strchr(" \t\r\n", answer->bytes[at]))
        at++;
    return at < answer->len && strchr("{[", answer->bytes[at]) ? answer->bytes[at] : '\0';
}

void weir__ask_server_text(struct weir__ask_server *r, const char *text, size_t len)
{
    r->body.len = 0;
    weir__buffer_add(&r->body, text, len);
    r->sends = true;
    r->object = false;
}

struct weir__buffer *weir__ask_server_body(struct weir__ask_server *r)
{
    weir__ask_server_text(r, "{", 1);
    r->object = true;
    return &r->body;
}

void weir__doubt_addresses(const struct weir__call *call)
{
    for (int i = 0; i < call->n; i++) {
        const char *value = call->words[i] + 3;
        if (strncmp(call->words[i], "ip=", 3) == 0 && !weir__address_is_meant(value, strlen(value)))
            weir__complain(call->self->name, "warning: %s is not an address",
                           weir__quote(value, strlen(value)).text);
    }
}

bool weir__ask_server_attributes(struct weir__ask_server *r)
{
    struct weir__buffer *body = weir__ask_server_body(r);
    char **words = r->call->words;

    weir__buffer_open(body, "attributes", '{');
    for (int i = 0; i < r->call->n; i++) {
        const char *equals = strchr(words[i], '=');
        if (!equals || equals == words[i]) {
            say(r, "'%s' is not an attribute: write name=value, as in ip=192.0.2.7", words[i]);
            return false;
        }
        weir__buffer_member_name(body, NULL);
        weir__buffer_json(body, words[i], (size_t)(equals - words[i]));
        weir__buffer_text(body, ":");
        weir__buffer_json(body, equals + 1, strlen(equals + 1));
    }
    weir__buffer_close(body, "}");
    return true;
}

bool weir__read_attributes(const struct weir__call *call, struct weir_attr attrs[WEIR__ATTRS_MAX])
{
    if (call->n > WEIR__ATTRS_MAX) {
        weir__complain(call->self->name, "%d attributes are too many: at most %d", call->n,
                       WEIR__ATTRS_MAX);
        return false;
    }
    for (int i = 0; i < call->n; i++) {
        char *equals = strchr(call->words[i], '=');
        if (equals == NULL || equals == call->words[i]) {
            weir__complain(call->self->name,
                           "'%s' is not an attribute: write name=value, as in ip=192.0.2.7",
                           call->words[i]);
            return false;
        }
        *equals = '\0';
        attrs[i] = (struct weir_attr){ .name = call->words[i], .value = equals + 1 };
    }
    return true;
}

bool weir__ask_server_call(struct weir__ask_server *r, const char *request)
{
    char method[8];
    const char *path = strchr(request, ' ');
    struct weir_error error = { 0 };

    assert(path && (size_t)(path - request) < sizeof(method));
    snprintf(method, sizeof(method), "%.*s", (int)(path - request), request);
    if (r->object)
        weir__buffer_close(&r->body, "}");
    r->status = weir__client_ask(r->client, method, path + 1, r->sends ? &r->body : NULL,
                                 &r->answer, &error);
    r->sends = r->object = false;
    weir__document_free(&r->document);
    if (r->status > 0 && opening(&r->answer) &&
        weir__document_read(&r->document, r->answer.bytes, r->answer.len, &error) != WEIR_OK)
        r->status = -1;
    if (r->status <= 0)
        say(r, "%s", error.text);
    return r->status > 0;
}

static void say_unknown(struct weir__ask_server *r, const char *detail)
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

int weir__ask_server_complain(struct weir__ask_server *r)
{
    const char *detail = weir__document_text(&r->document, "detail");

    if (r->status == 401)
        say_unknown(r, detail);
    else if (r->status == 403 && detail && strstr(detail, "admin token"))
        say(r, "this token may only ask: the server at %s wants its admin token",
            r->options.server);
    else if (detail)
        say(r, "%s", detail);
    else
        say(r, "the server at %s answers %d: is it a Weir server?", r->options.server, r->status);
    return WEIR__EXIT_WRONG;
}

bool weir__ask_server_for(struct weir__ask_server *r, const char *request, const char *member)
{
    if (!weir__ask_server_call(r, request))
        return false;
    if (r->status / 100 == 2)
        return weir__ask_server_expect(r, member);
    weir__ask_server_complain(r);
    return false;
}

/* In the text, because a document has no empty arrays. */
bool weir__ask_server_expect(struct weir__ask_server *r, const char *member)
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

int weir__ask_server_show(struct weir__ask_server *r, const char *request, const char *member,
                          void (*show)(struct weir__ask_server *remote))
{
    if (!weir__ask_server_for(r, request, member))
        return WEIR__EXIT_WRONG;
    if (r->options.json)
        weir__ask_server_print(r);
    else
        show(r);
    return WEIR__EXIT_OK;
}

void weir__ask_server_note_fleet(struct weir__ask_server *r)
{
    r->silent = true;
    if (weir__ask_server_for(r, "GET /v1/status", "fleet"))
        puts("on this node alone; on all: weir fleet rules, or the rule file of each");
    r->silent = false;
}

void weir__ask_server_print(const struct weir__ask_server *r)
{
    fwrite(r->answer.bytes, 1, r->answer.len, stdout);
    putchar('\n');
}

const char *weir__ask_server_path(char out[256], const char *path, const char *query,
                                  const char *name)
{
    size_t n = (size_t)snprintf(out, 256, "%s%s%s%s", path, name ? "?" : "", name ? query : "",
                                name ? "=" : "");

    for (; name && *name && n + 4 < 256; name++)
        n += (size_t)snprintf(out + n, 256 - n,
                              isalnum((unsigned char)*name) || strchr("-._", *name) ? "%c"
                                                                                    : "%%%02X",
                              (unsigned char)*name);
    return out;
}

/* ------------------------------------------------------------------ running ---- */

/* The first two are not for a command that prints nothing of its own, and waits. */
const struct weir__option weir__ask_server_rows[] = {
    WEIR__OPTION(struct weir__ask_server_options, "json", 0, SWITCH, json, 0, NULL, "print JSON"),
    { .name = "timeout",
      .kind = WEIR__OPTION_TIME,
      .offset = offsetof(struct weir__ask_server_options, timeout),
      .min = WEIR_MILLISECOND,
      .max = WEIR_FOREVER,
      .value = "TIME",
      .help = "how long the server may be silent (30s)" },
    WEIR__OPTION(struct weir__ask_server_options, "server", 's', TEXT, server, 0, "ADDRESS",
                 "HOST:PORT, http(s)://HOST:PORT or the path of a unix socket; default "
                 "$WEIR_SERVER, else " SERVER_DEFAULT),
    WEIR__OPTION(struct weir__ask_server_options, "token-file", 0, TEXT, token_file, 0, "FILE",
                 "its first line is the token; default $WEIR_TOKEN (never the command line, which "
                 "everyone can read)"),
    WEIR__OPTION(struct weir__ask_server_options, "ca", 0, TEXT, ca, 0, "FILE",
                 "PEM file of the authorities that may sign the server's certificate"),
    { 0 },
};

/* False after a complaint. */
static bool connect_to(struct weir__ask_server *r)
{
    const char *usual = getenv("WEIR_SERVER"), *command = r->call->self->name;
    weir_time timeout = r->options.timeout > 0 ? r->options.timeout : PATIENCE;
    struct weir_error error = { 0 };
    bool tables = strstr(r->call->self->arguments, "| --table FILE") != NULL;
    char *token;

    if (!r->options.server)
        r->options.server = usual && *usual ? usual : SERVER_DEFAULT;
    if (!find_token(command, r->options.token_file, &token))
        return false;
    struct weir__client_options how = { .server = r->options.server,
                                        .token = token,
                                        .ca = r->options.ca,
                                        .timeout = timeout,
                                        .instead = tables ? "without one: --table FILE" : NULL };
    int code = weir__client_open(&r->client, &how, &error);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    if (code != WEIR_OK)
        weir__complain(command, "%s", error.text);
    return code == WEIR_OK;
}

int weir__ask_server_run(const struct weir__call *call)
{
    struct weir__ask_server r = { .call = call,
                                  .options =
                                      *(const struct weir__ask_server_options *)call->options };
    int without = call->self->no_server ? call->self->no_server : WEIR__EXIT_WRONG,
        code = connect_to(&r) ? call->self->ask(call, &r) : without;

    weir__client_close(r.client);
    weir__buffer_free(&r.body);
    weir__buffer_free(&r.answer);
    weir__document_free(&r.document);
    return code;
}
