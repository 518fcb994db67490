/* tls.c -- TLS over memory, by OpenSSL.
 *
 * Each connection has two memory BIOs: the network's bytes go into one and come out of the other,
 * so the event loop sees only bytes.  TLS 1.2 and later; no renegotiation, no compression; session
 * tickets as OpenSSL has them.
 */
#include "wire/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define CHUNK 16384

struct weir__tls_context {
    SSL_CTX
    *ssl; /* replaced whole by renew, under the mutex; connections keep a reference to theirs */
    pthread_mutex_t mutex;
    char *certificate, *key, *client_ca;
};

struct weir__tls {
    SSL *ssl;
    BIO *in, *out; /* the SSL's */
};

/* OpenSSL's own words say little of a file: whether it can be read is found out first. */
static int fail(struct weir_error *error, const char *setting, const char *path, const char *wanted)
{
    ERR_clear_error();
    if (access(path, R_OK) != 0)
        return weir__fail(error, WEIR_INVALID, "%s %s: %s", setting, path, strerror(errno));
    return weir__fail(error, WEIR_INVALID, "%s %s: this is no %s", setting, path, wanted);
}

static int load(SSL_CTX *ssl, const struct weir__tls_context *c, struct weir_error *error)
{
    if (SSL_CTX_use_certificate_chain_file(ssl, c->certificate) != 1)
        return fail(error, "tls-certificate", c->certificate, "certificate in PEM format");
    if (SSL_CTX_use_PrivateKey_file(ssl, c->key, SSL_FILETYPE_PEM) != 1)
        return fail(error, "tls-key", c->key,
                    "private key in PEM format without a password, or not the certificate's");
    if (SSL_CTX_check_private_key(ssl) != 1)
        return fail(error, "tls-key", c->key, "key of the certificate");
    if (*c->client_ca) {
        STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(c->client_ca);
        if (!names || SSL_CTX_load_verify_locations(ssl, c->client_ca, NULL) != 1) {
            sk_X509_NAME_pop_free(names, X509_NAME_free);
            return fail(error, "tls-client-ca", c->client_ca, "certificate in PEM format");
        }
        SSL_CTX_set_client_CA_list(ssl, names);
        SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        SSL_CTX_set_session_id_context(ssl, (const unsigned char *)"weir", 4);
    }
    return WEIR_OK;
}

int weir__tls_context_renew(struct weir__tls_context *context, struct weir_error *error)
{
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method()), *old;

    if (!ssl)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for TLS");
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    int code = load(ssl, context, error);
    if (code == WEIR_OK) {
        pthread_mutex_lock(&context->mutex);
        old = context->ssl;
        context->ssl = ssl;
        pthread_mutex_unlock(&context->mutex);
        ssl = old;
    }
    SSL_CTX_free(ssl);
    return code;
}

int weir__tls_context_create(struct weir__tls_context **out,
                             const struct weir__tls_options *options, struct weir_error *error)
{
    struct weir__tls_context *c = calloc(1, sizeof(*c));

    if (!c)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for TLS");
    pthread_mutex_init(&c->mutex, NULL);
    c->certificate = strdup(options->certificate);
    c->key = strdup(options->key);
    c->client_ca = strdup(options->client_ca ? options->client_ca : "");
    int code = c->certificate && c->key && c->client_ca
                   ? weir__tls_context_renew(c, error)
                   : weir__fail(error, WEIR_NO_MEMORY, "no memory for TLS");
    if (code == WEIR_OK)
        *out = c;
    else
        weir__tls_context_destroy(c);
    return code;
}

void weir__tls_context_destroy(struct weir__tls_context *context)
{
    if (!context)
        return;
    SSL_CTX_free(context->ssl);
    pthread_mutex_destroy(&context->mutex);
    free(context->certificate);
    free(context->key);
    free(context->client_ca);
    free(context);
}

static int64_t seconds_of(const ASN1_TIME *moment)
{
    struct tm tm = { 0 };

    return ASN1_TIME_to_tm(moment, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

static void narrow(struct weir__tls_validity *v, const X509 *certificate)
{
    int64_t from = seconds_of(X509_get0_notBefore(certificate)),
            until = seconds_of(X509_get0_notAfter(certificate));

    v->from = from > v->from ? from : v->from;
    v->until = until < v->until ? until : v->until;
}

struct weir__tls_validity weir__tls_context_validity(struct weir__tls_context *context)
{
    struct weir__tls_validity v = { 0, INT64_MAX };
    struct stack_st_X509 *others = NULL; /* STACK_OF(X509) */

    pthread_mutex_lock(&context->mutex);
    narrow(&v, SSL_CTX_get0_certificate(context->ssl));
    SSL_CTX_get0_chain_certs(context->ssl, &others);
    for (int i = 0; i < sk_X509_num(others); i++)
        narrow(&v, sk_X509_value(others, i));
    pthread_mutex_unlock(&context->mutex);
    return v;
}

struct weir__tls *weir__tls_accept(struct weir__tls_context *context)
{
    struct weir__tls *tls = calloc(1, sizeof(*tls));

    if (!tls)
        return NULL;
    pthread_mutex_lock(&context->mutex);
    tls->ssl = SSL_new(context->ssl);
    pthread_mutex_unlock(&context->mutex);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        SSL_free(tls->ssl);
        free(tls);
        return NULL;
    }
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

void weir__tls_destroy(struct weir__tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl); /* and the BIOs */
    free(tls);
}

bool weir__tls_is_ready(const struct weir__tls *tls)
{
    return SSL_is_init_finished(tls->ssl);
}

bool weir__tls_is_within(const struct weir__tls *tls)
{
    return !SSL_is_init_finished(tls->ssl) || BIO_pending(tls->in) > 0 || SSL_has_pending(tls->ssl);
}

/* What OpenSSL wants sent. */
static void collect(struct weir__tls *tls, struct weir__buffer *network)
{
    char *bytes;
    long len = BIO_get_mem_data(tls->out, &bytes);

    if (len > 0)
        weir__buffer_add(network, bytes, (size_t)len);
    (void)BIO_reset(tls->out);
}

/* Why the last read gave nothing: 0 for want of bytes, 1 if the other side has said all, -1 if it
 * failed for good. */
static int why_none(const struct weir__tls *tls, int n)
{
    int why = SSL_get_error(tls->ssl, n);

    ERR_clear_error();
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0
           : why == SSL_ERROR_ZERO_RETURN                            ? 1
                                                                     : -1;
}

int weir__tls_input(struct weir__tls *tls, const char *bytes, size_t len,
                    struct weir__buffer *plain, struct weir__buffer *network)
{
    int n = 1, code = 0;

    if (BIO_write(tls->in, bytes, (int)len) != (int)len)
        return -1;
    while (n > 0) {
        char *to = weir__buffer_room(plain, CHUNK);
        n = to ? SSL_read(tls->ssl, to, CHUNK) : -1;
        if (!to)
            return -1;
        if (n > 0)
            plain->len += (size_t)n;
        else
            code = why_none(tls, n);
    }
    collect(tls, network);
    return code;
}

int weir__tls_output(struct weir__tls *tls, const char *plain, size_t len,
                     struct weir__buffer *network)
{
    while (len > 0) {
        int part = len > CHUNK ? CHUNK : (int)len, n = SSL_write(tls->ssl, plain, part);
        if (n <= 0) {
            ERR_clear_error();
            return -1;
        }
        plain += n;
        len -= (size_t)n;
        collect(tls, network);
    }
    return 0;
}

/* --------------------------------------------------------------- client ---- */

static bool is_named(const char *path)
{
    return path && *path;
}

static int load_client(SSL_CTX *ssl, const struct weir__tls_options *o, struct weir_error *error)
{
    if (o && is_named(o->authority)) {
        if (SSL_CTX_load_verify_locations(ssl, o->authority, NULL) != 1)
            return fail(error, "ca", o->authority, "certificate in PEM format");
    } else if (SSL_CTX_set_default_verify_paths(ssl) != 1) {
        return weir__fail(error, WEIR_SYSTEM, "the host's certificate authorities cannot be read");
    }
    if (!o || !is_named(o->certificate))
        return WEIR_OK;
    if (SSL_CTX_use_certificate_chain_file(ssl, o->certificate) != 1)
        return fail(error, "certificate", o->certificate, "certificate in PEM format");
    if (SSL_CTX_use_PrivateKey_file(ssl, o->key, SSL_FILETYPE_PEM) != 1)
        return fail(error, "key", o->key,
                    "private key in PEM format without a password, or not the certificate's");
    return WEIR_OK;
}

int weir__tls_client_create(struct weir__tls_context **out, const struct weir__tls_options *options,
                            struct weir_error *error)
{
    struct weir__tls_context *c = calloc(1, sizeof(*c));
    int code;

    if (c)
        pthread_mutex_init(&c->mutex, NULL);
    if (!c || !(c->ssl = SSL_CTX_new(TLS_client_method()))) {
        code = weir__fail(error, WEIR_NO_MEMORY, "no memory for TLS");
    } else {
        SSL_CTX_set_min_proto_version(c->ssl, TLS1_2_VERSION);
        SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
        code = load_client(c->ssl, options, error);
    }
    if (code == WEIR_OK)
        *out = c;
    else
        weir__tls_context_destroy(c);
    return code;
}

/* The server must show a certificate for `host`.  Names are told beforehand (SNI), addresses must
 * not be. */
struct weir__tls *weir__tls_connect(struct weir__tls_context *context, const char *host)
{
    struct weir__tls *tls = weir__tls_accept(context);

    if (!tls)
        return NULL;
    SSL_set_connect_state(tls->ssl);
    bool address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host) == 1;
    if (!address &&
        (SSL_set1_host(tls->ssl, host) != 1 || SSL_set_tlsext_host_name(tls->ssl, host) != 1)) {
        weir__tls_destroy(tls);
        tls = NULL;
    }
    ERR_clear_error();
    return tls;
}

const char *weir__tls_problem(const struct weir__tls *tls)
{
    long result = SSL_get_verify_result(tls->ssl);

    return result == X509_V_OK ? "TLS failed" : X509_verify_cert_error_string(result);
}
