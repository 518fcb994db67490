/* resp-client.h -- commands to a server that speaks RESP, one at a time, for doors. */
#ifndef WEIR_TESTS_VECTORS_RUNNER_RESP_CLIENT_H
#define WEIR_TESTS_VECTORS_RUNNER_RESP_CLIENT_H

#include "server/cli/http-client.h"

/* An answer: numbers, one number, or a text of which the beginning is kept. */
struct resp_answer {
    char kind;
    int64_t numbers[10];
    size_t n;
    char text[64];
};

/* A word and its length: an account is no text. */
struct resp_word {
    const char *bytes;
    size_t len;
};

int resp_client_send(struct weir__client *c, const struct resp_word *words, size_t n,
                     struct resp_answer *answer, struct weir_error *error);
/* Texts, ended by NULL. */
int resp_client_ask(struct weir__client *c, const char *const *words, struct resp_answer *answer,
                    struct weir_error *error);

/* Sends bytes as they are; *reply is one whole reply. */
int resp_client_raw(struct weir__client *c, const struct weir__buffer *bytes,
                    struct weir__buffer *reply, struct weir_error *error);

#endif
