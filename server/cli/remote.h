/* remote.h -- what the commands that ask a running server share: where it is, who asks, and how its
 * answers and errors are told. */
#ifndef WEIR_SERVER_REMOTE_H
#define WEIR_SERVER_REMOTE_H

#include <stdio.h>

#include "server/cli/client.h"
#include "server/base/command.h"
#include "server/base/document.h"

/* A member of a command's own options. */
struct weir__remote_options {
    const char *server, *token_file, *ca;
    bool json;
};

/* Their rows; the member is called `remote`. */
#define WEIR__REMOTE_ROWS(type)                                                 \
    { "server",                                                                 \
      's',                                                                      \
      WEIR__OPTION_TEXT,                                                        \
      offsetof(type, remote.server),                                            \
      0,                                                                        \
      "ADDRESS",                                                                \
      "HOST:PORT, http(s)://HOST:PORT or a unix socket; default $WEIR_SERVER, " \
      "else " WEIR__CLIENT_SERVER },                                            \
        { "token-file",                                                         \
          0,                                                                    \
          WEIR__OPTION_TEXT,                                                    \
          offsetof(type, remote.token_file),                                    \
          0,                                                                    \
          "FILE",                                                               \
          "whose first line is the token; default $WEIR_TOKEN" },               \
        { "ca",                                                                 \
          0,                                                                    \
          WEIR__OPTION_TEXT,                                                    \
          offsetof(type, remote.ca),                                            \
          0,                                                                    \
          "FILE",                                                               \
          "PEM: who may have signed the server's certificate" },

#define WEIR__REMOTE_JSON(type)    \
    { "json",                      \
      0,                           \
      WEIR__OPTION_SWITCH,         \
      offsetof(type, remote.json), \
      0,                           \
      NULL,                        \
      "print what the server answers, as it is" },

#define WEIR__REMOTE_NOTE                                                                      \
    "The server's token comes from $WEIR_TOKEN or --token-file, never from the command line, " \
    "which everybody can read."

struct weir__remote {
    const char *command; /* for complaints */
    struct weir__remote_options options;
    struct weir__client *client;
    struct weir__buffer answer;     /* as it came */
    struct weir__document document; /* the same, read */
    int status;
    bool silent;    /* nothing is printed when something is wrong, only kept */
    char said[320]; /* the last thing that was wrong */
};

/* Connects.  False: it cannot, and that was said. */
bool weir__remote_open(struct weir__remote *out, const struct weir__command *self,
                       const struct weir__remote_options *options);
void weir__remote_close(struct weir__remote *remote);

/* Asks; body NULL: none.  True: it was answered, and `status` and `document` are set.  False: it
 * was not, and that was said. */
bool weir__remote_call(struct weir__remote *remote, const char *method, const char *path,
                       const struct weir__buffer *body);
/* The same, but an answer that is no success is false as well, and was said. */
bool weir__remote_ask(struct weir__remote *remote, const char *method, const char *path,
                      const struct weir__buffer *body);
/* The same, but what another server answers is false as well, and was said: the answer is a JSON
 * object with this member; NULL: an array. */
bool weir__remote_ask_for(struct weir__remote *remote, const char *method, const char *path,
                          const struct weir__buffer *body, const char *member);
/* Is the answer that is there such a one?  False: that was said. */
bool weir__remote_expect(struct weir__remote *remote, const char *member);
/* Says what is wrong, by the answer that is there. */
void weir__remote_complain(struct weir__remote *remote);
/* The answer to stdout, and a newline. */
void weir__remote_print(const struct weir__remote *remote);

/* Adds ,"attributes":{...} of words NAME=VALUE to the body, an object that is not closed yet.
 * False: one is none, and that was said. */
bool weir__remote_attributes(const char *command, struct weir__buffer *body, char **words, int n);

/* What a server has said may have anything in it: nothing that a terminal obeys is printed; and ?
 * for what it should have said (NULL). */
void weir__print_safely(FILE *to, const char *text);
/* The same to stdout, and spaces up to that many bytes. */
void weir__print_padded(const char *text, int width);

/* A document's time in ms in words, "2h 5m"; "0s" if there is none. */
struct weir__words_of_time {
    char text[32];
};
struct weir__words_of_time weir__remote_ms(int64_t ms);

#endif
