/* tls.h -- TLS over memory: bytes of the network in, plain ones out, and back.  Knows no
 * sockets. */
#ifndef WEIR_WIRE_TLS_H
#define WEIR_WIRE_TLS_H

#include "weir.h"
#include "wire/buffer.h"

struct weir__tls_context;
struct weir__tls;

/* PEM files; "" or NULL: none. */
struct weir__tls_options {
    const char *certificate, *key; /* one's own */
    const char *client_ca;         /* of a server: clients need a certificate of this authority */
    const char *authority; /* of a client: whom to believe; none: those that the host believes */
};

int weir__tls_context_create(struct weir__tls_context **out,
                             const struct weir__tls_options *options, struct weir_error *error);
/* Reads the files again, for connections that begin from now on; on failure the old ones stay. */
int weir__tls_context_renew(struct weir__tls_context *context, struct weir_error *error);
void weir__tls_context_destroy(struct weir__tls_context *context);

/* From when and until when clients accept the certificate and those that are sent with it, in
 * seconds since 1970. */
struct weir__tls_validity {
    int64_t from, until;
};

struct weir__tls_validity weir__tls_context_validity(struct weir__tls_context *context);

/* For a client; the options may be NULL.  SSL_CERT_FILE and SSL_CERT_DIR name other authorities
 * than the host's. */
int weir__tls_client_create(struct weir__tls_context **out, const struct weir__tls_options *options,
                            struct weir_error *error);
struct weir__tls *weir__tls_connect(struct weir__tls_context *context,
                                    const char *host); /* a name or an address; NULL: no memory */
const char *
weir__tls_problem(const struct weir__tls *tls); /* why a handshake failed: a text that lasts */

struct weir__tls *weir__tls_accept(struct weir__tls_context *context); /* NULL: no memory */
void weir__tls_destroy(struct weir__tls *tls);                         /* may be NULL */
bool weir__tls_is_ready(const struct weir__tls *tls);                  /* the handshake is over */

bool weir__tls_is_within(
    const struct weir__tls *tls); /* a handshake or a record has begun, and its rest has not come */

/* Bytes from the network: their plain text is appended to `plain`, the reply that TLS needs to
 * `network`. 0; 1: and that was all the other side has to say; < 0: it is no TLS, or has failed. */
int weir__tls_input(struct weir__tls *tls, const char *bytes, size_t len,
                    struct weir__buffer *plain, struct weir__buffer *network);
int weir__tls_output(struct weir__tls *tls, const char *plain, size_t len,
                     struct weir__buffer *network);

#endif
