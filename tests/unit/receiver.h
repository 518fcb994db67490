/* receiver.h -- takes posts on loopback, in the test's own loop, answers them as told, and keeps
 * them. */
#ifndef WEIR_TESTS_UNIT_RECEIVER_H
#define WEIR_TESTS_UNIT_RECEIVER_H

#include "fixture.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <uv.h>

#include "wire/tls.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define SILENCE   "" /* takes the post without an answer */

enum { POSTS_MAX = 64 };

static uv_loop_t loop;

static struct receiver {
    uv_tcp_t tcp;
    bool open;
    const char *const
        *answers; /* one a post, the last one for all that follow; NULL: the connection is closed */
    size_t n_answers;
    struct weir__tls_context *tls; /* NULL: plain */
    char *posts[POSTS_MAX];        /* whole requests */
    size_t n;
    char url[64]; /* http://127.0.0.1:PORT/hook */
} receiver;

struct visitor {
    uv_tcp_t tcp;
    struct weir__tls *tls;
    struct weir__buffer in;
    char bytes[4096];
};

struct parcel {
    uv_write_t uv;
    struct weir__buffer bytes;
};

static inline void on_visitor_closed(uv_handle_t *handle)
{
    struct visitor *v = handle->data;

    weir__tls_destroy(v->tls);
    weir__buffer_free(&v->in);
    free(v);
}

static inline void leave(struct visitor *v)
{
    if (!uv_is_closing((uv_handle_t *)&v->tcp))
        uv_close((uv_handle_t *)&v->tcp, on_visitor_closed);
}

static inline void on_parcel(uv_write_t *uv, int code)
{
    struct parcel *p = uv->data;

    (void)code;
    weir__buffer_free(&p->bytes);
    free(p);
}

static inline void hand_over(struct visitor *v, struct weir__buffer *bytes)
{
    struct parcel *p = calloc(1, sizeof(*p));

    if (bytes->len == 0) {
        weir__buffer_free(bytes);
        free(p);
        return;
    }
    p->bytes = *bytes;
    p->uv.data = p;
    uv_buf_t buf = uv_buf_init(p->bytes.bytes, (unsigned)p->bytes.len);
    assert_int_equal(uv_write(&p->uv, (uv_stream_t *)&v->tcp, &buf, 1, on_parcel), 0);
}

static inline void answer(struct visitor *v)
{
    size_t which = receiver.n - 1 < receiver.n_answers ? receiver.n - 1 : receiver.n_answers - 1;
    const char *text = receiver.answers[which];
    struct weir__buffer bytes = { 0 };

    if (text == NULL) {
        leave(v);
        return;
    }
    if (v->tls != NULL)
        assert_int_equal(weir__tls_output(v->tls, text, strlen(text), &bytes), 0);
    else
        weir__buffer_text(&bytes, text);
    hand_over(v, &bytes);
}

/* Whether the request is whole; then it is kept. */
static inline bool is_whole(struct visitor *v)
{
    weir__buffer_add(&v->in, "", 1);
    v->in.len--;
    const char *end = strstr(v->in.bytes, "\r\n\r\n"),
               *length = strstr(v->in.bytes, "Content-Length: ");
    if (end == NULL || length == NULL || strlen(end + 4) < (size_t)atol(length + 16))
        return false;
    assert_true(receiver.n < POSTS_MAX);
    receiver.posts[receiver.n++] = strdup(v->in.bytes);
    v->in.len = 0;
    return true;
}

static inline void on_visitor_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct visitor *v = stream->data;
    struct weir__buffer network = { 0 };

    if (n < 0) {
        leave(v);
        return;
    }
    int code = 0;
    if (v->tls == NULL)
        weir__buffer_add(&v->in, buf->base, (size_t)n);
    else
        code = weir__tls_input(v->tls, buf->base, (size_t)n, &v->in, &network);
    hand_over(v, &network);
    if (code == 0 && v->in.len > 0 && is_whole(v))
        answer(v);
    else if (code != 0)
        leave(v);
}

static inline void on_visitor_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct visitor *v = handle->data;

    (void)suggested;
    *buf = uv_buf_init(v->bytes, sizeof(v->bytes));
}

static inline void on_visitor(uv_stream_t *stream, int code)
{
    struct visitor *v = calloc(1, sizeof(*v));

    assert_int_equal(code, 0);
    uv_tcp_init(&loop, &v->tcp);
    v->tcp.data = v;
    v->tls = receiver.tls ? weir__tls_accept(receiver.tls) : NULL;
    assert_int_equal(uv_accept(stream, (uv_stream_t *)&v->tcp), 0);
    uv_read_start((uv_stream_t *)&v->tcp, on_visitor_room, on_visitor_read);
}

/* Listens, and answers as told. */
static inline void receive(const char *const *answers, size_t n)
{
    struct sockaddr_in address;
    int len = sizeof(address);

    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_init(&loop, &receiver.tcp);
    assert_int_equal(uv_tcp_bind(&receiver.tcp, (struct sockaddr *)&address, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&receiver.tcp, 16, on_visitor), 0);
    uv_tcp_getsockname(&receiver.tcp, (struct sockaddr *)&address, &len);
    snprintf(receiver.url, sizeof(receiver.url), "http%s://127.0.0.1:%d/hook",
             receiver.tls ? "s" : "", ntohs(address.sin_port));
    receiver.open = true;
    receiver.answers = answers;
    receiver.n_answers = n;
}

static inline void stop_receiving(void)
{
    if (receiver.open)
        uv_close((uv_handle_t *)&receiver.tcp, NULL);
    receiver.open = false;
}

static inline const char *body_of(size_t post)
{
    assert_true(post < receiver.n);
    return strstr(receiver.posts[post], "\r\n\r\n") + 4;
}

/* ------------------------------------------------------------------- loop ---- */

static inline void close_left_over(uv_handle_t *handle, void *unused)
{
    if (!uv_is_closing(handle))
        uv_close(handle, handle->data && handle->type == UV_TCP ? on_visitor_closed : NULL);
}

static inline int make_loop(void **state)
{
    memset(&receiver, 0, sizeof(receiver));
    return uv_loop_init(&loop);
}

/* Nothing but visitors may be left. */
static inline int free_loop(void **state)
{
    stop_receiving();
    uv_walk(&loop, close_left_over, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < receiver.n; i++)
        free(receiver.posts[i]);
    weir__tls_context_destroy(receiver.tls);
    return uv_loop_close(&loop);
}

/* Runs the loop until the condition holds, or until the test's time limit. */
#define run_until(condition)            \
    do {                                \
        while (!(condition))            \
            uv_run(&loop, UV_RUN_ONCE); \
    } while (0)

/* ------------------------------------------------------------ certificates ---- */

/* A certificate that has signed itself, for "IP:127.0.0.1" or the like, and its key, in two
 * files. */
static inline void make_certificate(const char *names, const char *certificate_path,
                                    const char *key_path)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
    FILE *f;

    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"test", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_add_ext(x, extension, -1);
    X509_set_pubkey(x, key);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_non_null(f = fopen(certificate_path, "w"));
    PEM_write_X509(f, x);
    fclose(f);
    assert_non_null(f = fopen(key_path, "w"));
    PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    X509_EXTENSION_free(extension);
    X509_free(x);
    EVP_PKEY_free(key);
}

#endif
