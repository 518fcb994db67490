/* http-client.h -- a small client of `weir serve`: HTTP over TCP, TLS or a unix socket.
 *
 * Every call waits for the answer, or until the server has been silent for too long.  A connection
 * is kept from one request to the next, and made again if the server has closed it.
 */
#ifndef WEIR_SERVER_CLI_HTTP_CLIENT_H
#define WEIR_SERVER_CLI_HTTP_CLIENT_H

#include "server/base/buffer.h"
#include "weir.h"

#define WEIR__CLIENT_HTTP_PORT "7380"

struct weir__client_options {
    const char *server; /* HOST:PORT, [HOST6]:PORT, http://HOST:PORT, https://HOST:PORT, or the path
                           of a unix socket (has a '/') */
    const char *token;  /* NULL: none */
    const char *ca;     /* PEM file of trusted authorities; NULL: those of this host */
    weir_time timeout;  /* how long the server may be silent */
    const char *instead; /* what does without a server: said where there is none; or NULL */
};

struct weir__client;

/* Connects.  WEIR_INVALID: a wrong address or file; WEIR_SYSTEM: no server, or out of reach. */
int weir__client_open(struct weir__client **out, const struct weir__client_options *options,
                      struct weir_error *error);
void weir__client_close(struct weir__client *client);

/* ------------------------------------------------------------------- HTTP ---- */

/* Sends a request (body NULL: none; else a JSON object, or rules) and replaces `answer` by the
 * whole answer.  Returns its status, or a negative code. */
int weir__client_ask(struct weir__client *client, const char *method, const char *path,
                     const struct weir__buffer *body, struct weir__buffer *answer,
                     struct weir_error *error);

/* Asks for an endless answer: `each` gets its bytes as they come, and ends it by returning false.
 * 200: it has ended, or the connection has.  Another status: `answer` is the error.  Negative: a
 * code. */
int weir__client_stream(struct weir__client *client, const char *path,
                        bool (*each)(void *context, const char *bytes, size_t len), void *context,
                        struct weir__buffer *answer, struct weir_error *error);

/* ------------------------------------------------------------- another protocol ---- */

/* Sends bytes, connecting if need be. */
int weir__client_send(struct weir__client *client, const char *bytes, size_t len,
                      struct weir_error *error);
/* Waits for more bytes and adds them to *in, which the caller drops when read.  Their number; 0:
 * the connection was closed; or a negative code. */
ptrdiff_t weir__client_receive(struct weir__client *client, struct weir__buffer **in,
                               struct weir_error *error);

#endif
