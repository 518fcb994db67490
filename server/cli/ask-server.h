/* ask-server.h -- the commands that ask a running server: where it is, the token, its answers and
 * errors in words. */
#ifndef WEIR_SERVER_CLI_ASK_SERVER_H
#define WEIR_SERVER_CLI_ASK_SERVER_H

#include <stdio.h>

#include "server/base/command.h"
#include "server/base/json-document.h"
#include "server/base/options.h"
#include "server/cli/http-client.h"

/* The first member of the options of such a command. */
struct weir__ask_server_options {
    const char *server, *token_file, *ca;
    bool json;
    weir_time timeout; /* 0: as long as is usual */
};

extern const struct weir__option weir__ask_server_rows[];

/* Options, shared rows and struct of such a command. */
#define WEIR__ASK_SERVER(rows, ...) \
    WEIR__COMMAND_OPTIONS(rows, __VA_ARGS__), .shared = weir__ask_server_rows

struct weir__ask_server {
    const struct weir__call *call;
    struct weir__ask_server_options options;
    struct weir__client *client;
    struct weir__buffer body;       /* of the next request, if `sends` */
    bool sends, object;             /* object: it is to be closed with a brace */
    struct weir__buffer answer;     /* as it came */
    struct weir__document document; /* the same, parsed */
    int status;
    bool silent;    /* complaints are kept in `said`, not printed */
    char said[320]; /* the last complaint */
};

/* Connects, and calls the function of the row that asks.  Returns the exit code. */
int weir__ask_server_run(const struct weir__call *call);

/* Begins the body of the next request, an object, which weir__ask_server_call ends. */
struct weir__buffer *weir__ask_server_body(struct weir__ask_server *remote);
/* The body is this text. */
void weir__ask_server_text(struct weir__ask_server *remote, const char *text, size_t len);
/* Begins the body with "attributes" made of the call's words NAME=VALUE.  False after a
 * complaint. */
bool weir__ask_server_attributes(struct weir__ask_server *remote);
/* The same words, for a command that does without a server; their names are cut off in place. */
#define WEIR__ATTRS_MAX 64
bool weir__read_attributes(const struct weir__call *call, struct weir_attr attrs[WEIR__ATTRS_MAX]);
/* Warns about words ip=VALUE whose value is no address: all such are one client. */
void weir__doubt_addresses(const struct weir__call *call);

/* Sends a request, "GET /v1/status".  True: `status` and `document` are the answer.  False after a
 * complaint. */
bool weir__ask_server_call(struct weir__ask_server *remote, const char *request);
/* The same, and the answer is a success and a JSON object with this member (NULL: an array). */
bool weir__ask_server_for(struct weir__ask_server *remote, const char *request, const char *member);
/* The same, then prints the answer: as it came with --json, else by `show`.  The exit code. */
int weir__ask_server_show(struct weir__ask_server *remote, const char *request, const char *member,
                          void (*show)(struct weir__ask_server *remote));

/* If the server is a node of a fleet, says that what was just changed by hand holds on it alone. */
void weir__ask_server_note_fleet(struct weir__ask_server *remote);

/* Is the answer an object with this member (NULL: an array)?  False after a complaint. */
bool weir__ask_server_expect(struct weir__ask_server *remote, const char *member);
/* Prints the error in the answer.  Returns WEIR__EXIT_WRONG. */
int weir__ask_server_complain(struct weir__ask_server *remote);
/* The answer to stdout, and a newline. */
void weir__ask_server_print(const struct weir__ask_server *remote);
/* "/v1/bans?rule=NAME", or without a query if name is NULL. */
const char *weir__ask_server_path(char out[256], const char *path, const char *query,
                                  const char *name);

/* ----------------------------------------------------------- answers in words ---- */

/* Prints a template with members of a document, found below the path `at`:
 *
 *     {name}       the value; ? if there is none        {name|text}   text if there is none
 *     {name:12}    padded to 12; {name:-12} on the left {name:ms}     a time in words: 2h 5m
 *     {name#rule}  counted: 1 rule, 2 rules             {name?}       nothing: for brackets
 *     [...]        only if its first value is there and is not 0 or false
 *
 * A server's text may hold anything: nothing that a terminal obeys is printed. */
void weir__show(const struct weir__document *d, const char *at, const char *template);
/* The template for each element of an array whose elements have this member; returns their
 * number. */
int weir__show_each(const struct weir__document *d, const char *array, const char *member,
                    const char *template);

/* One text, safely; "?" for NULL. */
void weir__print_safely(FILE *to, const char *text);
/* The same to stdout, padded to `width` bytes; < 0: on the left. */
void weir__print_padded(const char *text, int width);

/* A time in ms in words, "2h 5m"; "0s" if it is not positive. */
struct weir__shown_time {
    char text[32];
};
struct weir__shown_time weir__show_ms(int64_t ms);

#endif
