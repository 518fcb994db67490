/* http-client.c -- a small client of `weir serve`: a socket, with or without TLS, and HTTP on it,
 * parsed by wire/. */
#include "server/cli/http-client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/human-numbers.h"
#include "wire/host.h"
#include "wire/http1.h"

#define STREAM_PATIENCE (30 * WEIR_SECOND) /* a live server says something every 15 s */
#define ANSWER_MAX      ((size_t)64 << 20)
#define READ_AT_ONCE    65536

enum scheme { PLAIN, TLS, UNIX };

struct weir__client {
    enum scheme scheme;
    struct weir__host host; /* of a unix socket: its path, and no port */
    const char *usual;      /* " (port 7380)": the address names none */
    char *address;          /* as given */
    const char *instead;
    char *token;
    weir_time patience;
    int fd;      /* -1: not connected */
    bool silent; /* the server has said nothing for so long */
    SSL_CTX *context;
    SSL *ssl;
    struct weir__buffer in; /* received, not read yet */
};

/* --------------------------------------------------------------- addresses ---- */

/* A '/' may end it; there is no other path. */
static int read_host(struct weir__client *c, const char *text, struct weir_error *error)
{
    size_t len = strcspn(text, "/");
    const char *wrong =
        text[len] && text[len + 1] ? "has a path" : weir__host_read(&c->host, text, len);

    if (wrong)
        return weir__fail(error, WEIR_INVALID,
                          "'%.80s' is not a server: write HOST:PORT, http://HOST:PORT, "
                          "https://HOST:PORT or the path of a unix socket (it %s)",
                          c->address, wrong);
    if (!c->host.port[0]) {
        strcpy(c->host.port, WEIR__CLIENT_HTTP_PORT);
        c->usual = " (port " WEIR__CLIENT_HTTP_PORT ")";
    }
    return WEIR_OK;
}

static int read_path(struct weir__client *c, const char *text, struct weir_error *error)
{
    size_t len = strlen(text);

    if (len >= sizeof((struct sockaddr_un){ 0 }).sun_path)
        return weir__fail(error, WEIR_INVALID, "'%.80s...' is too long for a unix socket's path",
                          text);
    memcpy(c->host.name, text, len + 1);
    return WEIR_OK;
}

static int read_address(struct weir__client *c, const char *text, struct weir_error *error)
{
    bool plain = strncmp(text, "http://", 7) == 0, tls = strncmp(text, "https://", 8) == 0;

    c->scheme = tls ? TLS : PLAIN;
    if (plain || tls || strchr(text, '/') == NULL)
        return read_host(c, text + (tls ? 8 : plain ? 7 : 0), error);
    c->scheme = UNIX;
    return read_path(c, text, error);
}

/* -------------------------------------------------------------- connecting ---- */

static int cannot_reach(const struct weir__client *c, int why, struct weir_error *error)
{
    const char *usual = c->usual ? c->usual : "";

    if (why == ECONNREFUSED || why == ENOENT)
        return weir__fail(error, WEIR_SYSTEM,
                          "no server at %.100s%s; start one: weir serve; or say where: "
                          "--server%s%s",
                          c->address, usual, c->instead ? "; or " : "",
                          c->instead ? c->instead : "");
    return weir__fail(error, WEIR_SYSTEM, "cannot reach the server at %.100s%s: %s", c->address,
                      usual, strerror(why));
}

/* A server that hangs must not hang us. */
static void bound_waiting(int fd, weir_time time)
{
    struct timeval patience = { .tv_sec = time / WEIR_SECOND,
                                .tv_usec = time % WEIR_SECOND / WEIR_MICROSECOND };

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

static int connect_to(weir_time patience, const struct sockaddr *address, socklen_t len, int *why)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd >= 0) {
        bound_waiting(fd, patience);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (fd >= 0 && connect(fd, address, len) == 0)
        return fd;
    *why = errno;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int connect_unix(struct weir__client *c, struct weir_error *error)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int why = 0;

    memcpy(address.sun_path, c->host.name, strlen(c->host.name) + 1);
    c->fd = connect_to(c->patience, (const struct sockaddr *)&address, sizeof(address), &why);
    return c->fd >= 0 ? WEIR_OK : cannot_reach(c, why, error);
}

static int connect_tcp(struct weir__client *c, struct weir_error *error)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    int why = 0, code = getaddrinfo(c->host.name, c->host.port, &hints, &found);

    if (code != 0)
        return weir__fail(error, WEIR_SYSTEM, "cannot find %.100s: %s", c->host.name,
                          gai_strerror(code));
    for (const struct addrinfo *a = found; a && c->fd < 0; a = a->ai_next)
        c->fd = connect_to(c->patience, a->ai_addr, a->ai_addrlen, &why);
    freeaddrinfo(found);
    return c->fd >= 0 ? WEIR_OK : cannot_reach(c, why, error);
}

static void disconnect(struct weir__client *c)
{
    SSL_free(c->ssl);
    c->ssl = NULL;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->in.len = 0;
}

/* --------------------------------------------------------------------- TLS ---- */

static int fail_tls(struct weir__client *c, const char *what, struct weir_error *error)
{
    long verdict = c->ssl ? SSL_get_verify_result(c->ssl) : X509_V_OK;
    unsigned long code = ERR_peek_last_error();
    const char *reason = verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
                         : code               ? ERR_reason_error_string(code)
                                              : NULL;

    weir__fail(error, verdict != X509_V_OK ? WEIR_INVALID : WEIR_SYSTEM, "%s: %s%s", what,
               reason ? reason : "the connection was closed",
               verdict != X509_V_OK ? "; --ca FILE names the authorities to trust" : "");
    ERR_clear_error();
    return WEIR_SYSTEM;
}

static int make_context(struct weir__client *c, const char *ca, struct weir_error *error)
{
    c->context = SSL_CTX_new(TLS_client_method());
    if (!c->context)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for TLS");
    SSL_CTX_set_min_proto_version(c->context, TLS1_2_VERSION);
    SSL_CTX_set_verify(c->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(c->context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (ca ? SSL_CTX_load_verify_file(c->context, ca) == 1
           : SSL_CTX_set_default_verify_paths(c->context) == 1)
        return WEIR_OK;
    ERR_clear_error();
    return weir__fail(error, WEIR_INVALID, "--ca: %.100s has no certificates that can be read",
                      ca ? ca : "this host");
}

static int shake_hands(struct weir__client *c, struct weir_error *error)
{
    unsigned char address[16];
    bool numeric = inet_pton(AF_INET, c->host.name, address) == 1 ||
                   inet_pton(AF_INET6, c->host.name, address) == 1;

    c->ssl = SSL_new(c->context);
    if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for TLS");
    if (numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), c->host.name) != 1
                : SSL_set1_host(c->ssl, c->host.name) != 1 ||
                      SSL_set_tlsext_host_name(c->ssl, c->host.name) != 1)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for TLS");
    if (SSL_connect(c->ssl) == 1)
        return WEIR_OK;
    char what[160];
    snprintf(what, sizeof(what), "no TLS with %.100s", c->address);
    return fail_tls(c, what, error);
}

/* ---------------------------------------------------------- bytes to and fro ---- */

static int make_link(struct weir__client *c, struct weir_error *error)
{
    int code = c->scheme == UNIX ? connect_unix(c, error) : connect_tcp(c, error);

    if (code == WEIR_OK && c->scheme == TLS)
        code = shake_hands(c, error);
    if (code != WEIR_OK)
        disconnect(c);
    return code;
}

static int send_all(struct weir__client *c, const char *bytes, size_t len, struct weir_error *error)
{
    while (len > 0) {
        ssize_t n = c->ssl ? SSL_write(c->ssl, bytes, len > INT_MAX ? INT_MAX : (int)len)
                           : send(c->fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR && !c->ssl)
            continue;
        if (n <= 0)
            return weir__fail(error, WEIR_SYSTEM, "the server at %.100s has closed the connection",
                              c->address);
        bytes += n;
        len -= (size_t)n;
    }
    return WEIR_OK;
}

/* More bytes for `in`: their number, 0 at the end of the connection, or a negative code. */
static ssize_t receive(struct weir__client *c, struct weir_error *error)
{
    char *to = weir__buffer_room(&c->in, READ_AT_ONCE);
    ssize_t n;

    if (!to)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the answer");
    do {
        errno = 0;
        n = c->ssl ? SSL_read(c->ssl, to, READ_AT_ONCE) : recv(c->fd, to, READ_AT_ONCE, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        c->in.len += (size_t)n;
    if (n >= 0 || errno == ECONNRESET || errno == 0) /* TLS alerts leave no errno */
        return n > 0 ? n : 0;
    if (errno == EAGAIN) {
        char time[WEIR__DURATION];
        weir__human_duration(time, c->patience);
        c->silent = true;
        return weir__fail(error, WEIR_SYSTEM, "the server at %.100s has said nothing for %s",
                          c->address, time);
    }
    return weir__fail(error, WEIR_SYSTEM, "the connection to %.100s: %s", c->address,
                      strerror(errno));
}

static int closed_early(const struct weir__client *c, struct weir_error *error)
{
    return weir__fail(error, WEIR_SYSTEM,
                      "the server at %.100s closed the connection without an answer%s", c->address,
                      c->scheme != PLAIN ? "" : "; if it speaks TLS, write --server https://...");
}

/* -------------------------------------------------------------------- HTTP ---- */

static void write_request(const struct weir__client *c, const char *method, const char *path,
                          const struct weir__buffer *body, struct weir__buffer *out)
{
    bool six = c->scheme != UNIX && strchr(c->host.name, ':');

    weir__buffer_format(out, "%s %s HTTP/1.1\r\nHost: %s%s%s\r\nUser-Agent: weir/%s\r\n", method,
                        path, six ? "[" : "", c->scheme == UNIX ? "localhost" : c->host.name,
                        six ? "]" : "", weir_version());
    if (c->token)
        weir__buffer_format(out, "Authorization: Bearer %s\r\n", c->token);
    if (body)
        weir__buffer_format(out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                            body->len && body->bytes[0] == '{' ? "application/json"
                                                               : "application/yaml",
                            body->len);
    weir__buffer_text(out, "\r\n");
    if (body && body->len)
        weir__buffer_add(out, body->bytes, body->len);
}

static int send_request(struct weir__client *c, const char *method, const char *path,
                        const struct weir__buffer *body, struct weir_error *error)
{
    struct weir__buffer out = { 0 };
    int code = c->fd < 0 ? make_link(c, error) : WEIR_OK;

    if (code == WEIR_OK) {
        write_request(c, method, path, body, &out);
        code = out.failed || (body && body->failed)
                   ? weir__fail(error, WEIR_NO_MEMORY, "no memory for the request")
                   : send_all(c, out.bytes, out.len, error);
    }
    if (out.bytes)
        explicit_bzero(out.bytes, out.room); /* the token is in it */
    weir__buffer_free(&out);
    return code;
}

/* Reads a head and drops it from `in`; *any: something was received. */
static int read_head(struct weir__client *c, struct weir__http_response *head, bool *any,
                     struct weir_error *error)
{
    const char *what = NULL;

    for (;;) {
        ptrdiff_t n = c->in.len ? weir__http_response(c->in.bytes, c->in.len, head, &what) : 0;
        *any = *any || c->in.len > 0;
        if (n < 0)
            return weir__fail(
                error, WEIR_SYSTEM,
                "%.100s is not an HTTP server: %s; weir serve has it at port 7380, unless --http "
                "says otherwise",
                c->address, what);
        if (n > 0) {
            weir__buffer_drop(&c->in, (size_t)n);
            if (head->status / 100 != 1)
                return WEIR_OK;
            continue;
        }
        ssize_t more = receive(c, error);
        if (more <= 0)
            return more < 0 ? (int)more : closed_early(c, error);
    }
}

static int too_long(struct weir_error *error)
{
    return weir__fail(error, WEIR_SYSTEM, "the answer is longer than %zu bytes", ANSWER_MAX);
}

static int read_counted(struct weir__client *c, int64_t len, struct weir__buffer *answer,
                        struct weir_error *error)
{
    if ((uint64_t)len > ANSWER_MAX)
        return too_long(error);
    while (c->in.len < (size_t)len) {
        ssize_t n = receive(c, error);
        if (n <= 0)
            return n < 0 ? (int)n
                         : weir__fail(error, WEIR_SYSTEM,
                                      "the connection was closed in the middle of an answer");
    }
    weir__buffer_add(answer, c->in.bytes, (size_t)len);
    weir__buffer_drop(&c->in, (size_t)len);
    return WEIR_OK;
}

static int read_chunked(struct weir__client *c, struct weir__buffer *answer,
                        struct weir_error *error)
{
    struct weir__http_chunks chunks = { 0 };
    const char *what = NULL;

    while (!chunks.ended) {
        size_t len = 0;
        ptrdiff_t n =
            c->in.len ? weir__http_chunked(&chunks, c->in.bytes, c->in.len, &len, &what) : 0;
        if (n < 0)
            return weir__fail(error, WEIR_SYSTEM, "the answer's chunks: %s", what);
        if (len)
            weir__buffer_add(answer, c->in.bytes, len);
        if (n)
            weir__buffer_drop(&c->in, (size_t)n);
        if (answer->len > ANSWER_MAX)
            return too_long(error);
        ssize_t more = chunks.ended ? 1 : receive(c, error);
        if (more <= 0)
            return more < 0 ? (int)more
                            : weir__fail(error, WEIR_SYSTEM,
                                         "the connection was closed in the middle of an answer");
    }
    return WEIR_OK;
}

static int read_to_end(struct weir__client *c, struct weir__buffer *answer,
                       struct weir_error *error)
{
    ssize_t n = 1;

    while (n > 0) {
        weir__buffer_add(answer, c->in.bytes, c->in.len);
        c->in.len = 0;
        if (answer->len > ANSWER_MAX)
            return too_long(error);
        n = receive(c, error);
    }
    return (int)n;
}

static int read_body(struct weir__client *c, const struct weir__http_response *head,
                     struct weir__buffer *answer, struct weir_error *error)
{
    bool keeps = head->keep_alive && (head->chunked || head->content_length >= 0);
    int code = head->status == 204 || head->status == 304 ? WEIR_OK
               : head->chunked                            ? read_chunked(c, answer, error)
               : head->content_length >= 0 ? read_counted(c, head->content_length, answer, error)
                                           : read_to_end(c, answer, error);

    if (code == WEIR_OK && answer->failed)
        code = weir__fail(error, WEIR_NO_MEMORY, "no memory for the answer");
    if (code != WEIR_OK || !keeps)
        disconnect(c);
    return code == WEIR_OK ? head->status : code;
}

/* A kept connection may have been closed in the meantime: a GET is tried again then.  A server that
 * is silent would be so again. */
static int ask_head(struct weir__client *c, const char *method, const char *path,
                    const struct weir__buffer *body, struct weir__http_response *head,
                    struct weir_error *error)
{
    bool any = false;

    for (bool again = c->fd >= 0 && strcmp(method, "GET") == 0;; again = false) {
        int code = send_request(c, method, path, body, error);
        if (code == WEIR_OK)
            code = read_head(c, head, &any, error);
        if (code == WEIR_OK)
            return WEIR_OK;
        disconnect(c);
        if (!again || any || c->silent)
            return code;
    }
}

int weir__client_ask(struct weir__client *c, const char *method, const char *path,
                     const struct weir__buffer *body, struct weir__buffer *answer,
                     struct weir_error *error)
{
    struct weir__http_response head;
    int code = ask_head(c, method, path, body, &head, error);

    answer->len = 0;
    return code == WEIR_OK ? read_body(c, &head, answer, error) : code;
}

int weir__client_stream(struct weir__client *c, const char *path,
                        bool (*each)(void *context, const char *bytes, size_t len), void *context,
                        struct weir__buffer *answer, struct weir_error *error)
{
    struct weir__http_response head;
    int code = ask_head(c, "GET", path, NULL, &head, error);

    answer->len = 0;
    if (code != WEIR_OK)
        return code;
    if (head.status != 200)
        return read_body(c, &head, answer, error);
    if (c->patience < STREAM_PATIENCE) /* from now on events are rare */
        c->patience = STREAM_PATIENCE;
    bound_waiting(c->fd, c->patience);
    for (ssize_t n = 1; n > 0; n = receive(c, error)) {
        bool more = c->in.len == 0 || each(context, c->in.bytes, c->in.len);
        c->in.len = 0;
        if (!more)
            break;
    }
    disconnect(c);
    return 200;
}

/* -------------------------------------------------------- another protocol ---- */

int weir__client_send(struct weir__client *c, const char *bytes, size_t len,
                      struct weir_error *error)
{
    int code = c->fd < 0 ? make_link(c, error) : WEIR_OK;

    return code == WEIR_OK ? send_all(c, bytes, len, error) : code;
}

ptrdiff_t weir__client_receive(struct weir__client *c, struct weir__buffer **in,
                               struct weir_error *error)
{
    *in = &c->in;
    return receive(c, error);
}

/* ------------------------------------------------------------- open, close ---- */

/* For TLS: errors are returned instead.  A handler, as programs that are run would inherit that
 * the signal is ignored. */
static void on_pipe(int signal_number)
{
    (void)signal_number;
}

int weir__client_open(struct weir__client **out, const struct weir__client_options *options,
                      struct weir_error *error)
{
    struct weir__client *c = calloc(1, sizeof(*c));

    if (!c)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    if (signal(SIGPIPE, on_pipe) == SIG_IGN)
        signal(SIGPIPE, SIG_IGN);
    c->fd = -1;
    c->patience = options->timeout;
    c->instead = options->instead;
    c->address = strdup(options->server);
    c->token = options->token ? strdup(options->token) : NULL;
    int code = !c->address || (options->token && !c->token)
                   ? weir__fail(error, WEIR_NO_MEMORY, "no memory")
                   : read_address(c, options->server, error);
    if (code == WEIR_OK && c->scheme == TLS)
        code = make_context(c, options->ca, error);
    if (code == WEIR_OK)
        code = make_link(c, error);
    if (code == WEIR_OK)
        *out = c;
    else
        weir__client_close(c);
    return code;
}

void weir__client_close(struct weir__client *c)
{
    if (!c)
        return;
    disconnect(c);
    SSL_CTX_free(c->context);
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    free(c->token);
    free(c->address);
    weir__buffer_free(&c->in);
    free(c);
}
