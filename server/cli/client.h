/* client.h -- a small client of `weir serve`: HTTP over TCP, TLS or a unix socket; RESP over TCP or
 * a unix socket.
 *
 * Everything waits until the answer is there, or until the server has said nothing for too long.  A
 * connection is kept from one ask to the next, and made again if the server has closed it
 * meanwhile.
 */
#ifndef WEIR_SERVER_CLIENT_H
#define WEIR_SERVER_CLIENT_H

#include "server/base/buffer.h"
#include "weir.h"

#define WEIR__CLIENT_HTTP_PORT "7380"
#define WEIR__CLIENT_RESP_PORT "7379"
#define WEIR__CLIENT_SERVER    "127.0.0.1:" WEIR__CLIENT_HTTP_PORT

struct weir__client_options {
    const char *server; /* HOST:PORT, [HOST6]:PORT, http://HOST:PORT, https://HOST:PORT, or a unix
                           socket's path (has a '/') */
    const char *token;  /* NULL: none */
    const char *ca;     /* PEM file of who may have signed the server's certificate; NULL: whom this
                           host trusts */
    bool resp;          /* RESP instead of HTTP: no scheme then */
};

struct weir__client;

/* Connects.  WEIR_INVALID: the address or a file is wrong; WEIR_SYSTEM: there is no server, or it
 * cannot be reached. */
int weir__client_open(struct weir__client **out, const struct weir__client_options *options,
                      struct weir_error *error);
void weir__client_close(struct weir__client *client);

/* ------------------------------------------------------------------- HTTP ---- */

/* Sends a request (body NULL: none; else a JSON object, or rules) and reads the whole answer into
 * `answer`, in place of what was there.  Returns its status, or a negative code. */
int weir__client_ask(struct weir__client *client, const char *method, const char *path,
                     const struct weir__buffer *body, struct weir__buffer *answer,
                     struct weir_error *error);

/* Asks for an answer without an end: `each` gets its bytes as they come, and ends it by returning
 * false.  Status 200: it has ended, or the connection has.  Another status: `answer` is what was
 * said instead.  Negative: it could not be asked. */
int weir__client_stream(struct weir__client *client, const char *path,
                        bool (*each)(void *context, const char *bytes, size_t len), void *context,
                        struct weir__buffer *answer, struct weir_error *error);

/* ------------------------------------------------------------------- RESP ---- */

#define WEIR__REPLY_NUMBERS 8

struct weir__reply {
    char kind;                            /* '*' numbers, ':' one of them, '+' or '$' a text */
    int64_t numbers[WEIR__REPLY_NUMBERS]; /* what is no number is 0 */
    size_t n;
    char text[64]; /* cut if longer */
};

/* One command; the words end with NULL.  An error that is answered is WEIR_INVALID, with its
 * text. */
int weir__client_command(struct weir__client *client, const char *const *words,
                         struct weir__reply *reply, struct weir_error *error);

#endif
