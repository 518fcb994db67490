/* webhook-post.c -- one POST of a JSON text to a URL, on a libuv loop, and its outcome.
 *
 *     look the host up -> connect, to each address in turn -> (TLS) -> write -> read the head of
 *     the answer -> close all -> done
 *
 * The first of these ends it: an answer, a failure, the timeout, a cancel.  From then
 * on `over` is set, callbacks do nothing, and when the last handle is closed `done` is called.  The
 * answer's body is not read: only its status matters.
 */
#include "server/serve/events/webhook-post.h"

#include <netdb.h>
#include <stdlib.h>

#include "base/base.h"
#include "server/base/buffer.h"
#include "wire/http1.h"

enum {
    ANSWER_MAX = 65536,
    CONNECT_MS = 3000 /* to one address */,
    TIMEOUT_MS = 10000 /* of all */
};

struct weir__delivery {
    struct weir__delivery_options o;
    uv_getaddrinfo_t lookup;
    struct addrinfo *addresses, *next; /* next: to be tried if this one fails */
    uv_tcp_t tcp;
    uv_timer_t deadline; /* of all */
    uv_timer_t patience; /* with one address */
    uv_connect_t connect;
    bool looking_up, tcp_open;
    int handles; /* not closed yet */
    bool over, sent;
    int status;
    const char *why;
    struct weir__tls *tls;
    struct weir__buffer request, answer;
    char in[4096];
};

/* ------------------------------------------------------------------ end ---- */

static void free_if_closed(struct weir__delivery *d)
{
    if (d->handles > 0 || d->looking_up)
        return;
    void (*done)(void *, int, const char *) = d->o.done;
    void *context = d->o.context;
    int status = d->status;
    const char *why = d->why;
    uv_freeaddrinfo(d->addresses);
    weir__tls_destroy(d->tls);
    weir__buffer_free(&d->request);
    weir__buffer_free(&d->answer);
    free(d);
    done(context, status, why);
}

static void on_close(uv_handle_t *handle)
{
    struct weir__delivery *d = handle->data;

    d->handles--;
    free_if_closed(d);
}

/* `why` is a text that lasts. */
static void finish(struct weir__delivery *d, int status, const char *why)
{
    if (d->over)
        return;
    d->over = true;
    d->status = status;
    d->why = why;
    if (d->looking_up)
        uv_cancel((uv_req_t *)&d->lookup); /* its callback comes in either case */
    uv_close((uv_handle_t *)&d->deadline, on_close);
    uv_close((uv_handle_t *)&d->patience, on_close);
    if (d->tcp_open)
        uv_close((uv_handle_t *)&d->tcp, on_close);
    d->tcp_open = false;
}

static void on_deadline(uv_timer_t *timer)
{
    finish(timer->data, 0, "no answer in time");
}

void weir__delivery_cancel(struct weir__delivery *d)
{
    finish(d, 0, "given up");
}

/* ----------------------------------------------------- writing, reading ---- */

struct writing {
    uv_write_t uv;
    struct weir__buffer bytes;
};

static void on_write(uv_write_t *uv, int code)
{
    struct writing *w = uv->data;
    struct weir__delivery *d = uv->handle->data;

    weir__buffer_free(&w->bytes);
    free(w);
    if (code < 0)
        finish(d, 0, uv_strerror(code));
}

/* Takes the bytes, and leaves the buffer empty. */
static void send_bytes(struct weir__delivery *d, struct weir__buffer *bytes)
{
    struct writing *w = bytes->failed || d->over ? NULL : calloc(1, sizeof(*w));

    if (bytes->len == 0 || w == NULL) {
        if (bytes->len > 0)
            finish(d, 0, "no memory");
        free(w);
        weir__buffer_free(bytes);
        return;
    }
    w->bytes = *bytes;
    *bytes = (struct weir__buffer){ 0 };
    w->uv.data = w;
    uv_buf_t buf = uv_buf_init(w->bytes.bytes, (unsigned)w->bytes.len);
    int code = uv_write(&w->uv, (uv_stream_t *)&d->tcp, &buf, 1, on_write);
    if (code < 0) {
        weir__buffer_free(&w->bytes);
        free(w);
        finish(d, 0, uv_strerror(code));
    }
}

static void send_request(struct weir__delivery *d)
{
    struct weir__buffer network = { 0 };

    d->sent = true;
    if (d->tls == NULL)
        send_bytes(d, &d->request);
    else if (weir__tls_output(d->tls, d->request.bytes, d->request.len, &network) != 0)
        finish(d, 0, "TLS failed");
    send_bytes(d, &network);
}

/* Reads the answer so far; interim ones (1xx) are passed over. */
static void look_at_answer(struct weir__delivery *d)
{
    struct weir__http_response response;
    const char *what = NULL;

    while (!d->over && d->answer.len > 0) {
        ptrdiff_t n = weir__http_response(d->answer.bytes, d->answer.len, &response, &what);
        if (n < 0)
            finish(d, 0, "the answer is no HTTP");
        else if (n == 0 && d->answer.len > ANSWER_MAX)
            finish(d, 0, "the answer's head is too long");
        if (n <= 0)
            return;
        if (response.status >= 200)
            finish(d, response.status, NULL);
        weir__buffer_drop(&d->answer, (size_t)n);
    }
}

/* Bytes of TLS; none of them begin the handshake. */
static void take_tls(struct weir__delivery *d, const char *bytes, size_t len)
{
    struct weir__buffer network = { 0 };
    int code = weir__tls_input(d->tls, bytes, len, &d->answer, &network);

    send_bytes(d, &network);
    if (code == 0 && !d->sent && weir__tls_is_ready(d->tls))
        send_request(d);
    look_at_answer(d);
    if (code != 0)
        finish(d, 0, weir__tls_problem(d->tls));
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct weir__delivery *d = handle->data;

    (void)suggested;
    *buf = uv_buf_init(d->in, sizeof(d->in));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct weir__delivery *d = stream->data;

    if (d->over || n == 0)
        return;
    if (n < 0) {
        finish(d, 0,
               n == UV_EOF ? "the connection was closed without an answer" : uv_strerror((int)n));
    } else if (d->tls != NULL) {
        take_tls(d, buf->base, (size_t)n);
    } else {
        weir__buffer_add(&d->answer, buf->base, (size_t)n);
        look_at_answer(d);
    }
    if (d->answer.failed)
        finish(d, 0, "no memory");
}

/* ----------------------------------------------------------- connecting ---- */

static void connect_next(struct weir__delivery *d, const char *why);

static void on_connect(uv_connect_t *connect, int code)
{
    struct weir__delivery *d = connect->data;

    if (d->over || code == UV_ECANCELED)
        return;
    if (code < 0) {
        connect_next(d, uv_strerror(code));
        return;
    }
    uv_timer_stop(&d->patience);
    if ((code = uv_read_start((uv_stream_t *)&d->tcp, on_room, on_read)) < 0)
        finish(d, 0, uv_strerror(code));
    else if (!d->o.url->tls)
        send_request(d);
    else if ((d->tls = weir__tls_connect(d->o.tls, d->o.url->host.name)) == NULL)
        finish(d, 0, "no memory");
    else
        take_tls(d, "", 0);
}

/* To d->next, on a handle that is not open. */
static void connect_to(struct weir__delivery *d)
{
    struct addrinfo *address = d->next;
    int code = uv_tcp_init(d->o.loop, &d->tcp);

    if (code < 0) {
        finish(d, 0, uv_strerror(code));
        return;
    }
    d->tcp.data = d;
    d->tcp_open = true;
    d->handles++;
    d->next = address->ai_next;
    d->connect.data = d;
    code = uv_tcp_connect(&d->connect, &d->tcp, address->ai_addr, on_connect);
    if (code < 0)
        connect_next(d, uv_strerror(code));
}

static void on_close_to_connect(uv_handle_t *handle)
{
    struct weir__delivery *d = handle->data;

    d->handles--;
    if (d->over)
        free_if_closed(d);
    else
        connect_to(d);
}

static void on_patience(uv_timer_t *timer)
{
    connect_next(timer->data, "no connection in time");
}

/* The last address failed because of `why`. */
static void connect_next(struct weir__delivery *d, const char *why)
{
    if (d->over)
        return;
    if (d->next == NULL) {
        finish(d, 0, why);
        return;
    }
    uv_timer_start(&d->patience, on_patience, CONNECT_MS, 0);
    if (!d->tcp_open) {
        connect_to(d);
        return;
    }
    d->tcp_open = false;
    uv_close((uv_handle_t *)&d->tcp, on_close_to_connect);
}

static void on_lookup(uv_getaddrinfo_t *lookup, int code, struct addrinfo *addresses)
{
    struct weir__delivery *d = lookup->data;

    d->looking_up = false;
    d->addresses = d->next = addresses;
    if (d->over)
        free_if_closed(d);
    else if (code < 0)
        finish(d, 0, uv_strerror(code));
    else
        connect_next(d, "the host has no address");
}

/* ---------------------------------------------------------------- start ---- */

static void compose(struct weir__delivery *d)
{
    struct weir__buffer *b = &d->request;

    weir__buffer_format(b, "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: weir/%s\r\n",
                        d->o.url->path, d->o.url->authority, weir_version());
    weir__buffer_format(
        b, "Content-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n",
        d->o.len);
    if (*d->o.token)
        weir__buffer_format(b, "Authorization: Bearer %s\r\n", d->o.token);
    weir__buffer_text(b, "\r\n");
    weir__buffer_add(b, d->o.body, d->o.len);
}

struct weir__delivery *weir__delivery_start(const struct weir__delivery_options *options)
{
    struct weir__delivery *d = calloc(1, sizeof(*d));
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };

    if (d == NULL)
        return NULL;
    d->o = *options;
    compose(d);
    if (d->request.failed) {
        weir__buffer_free(&d->request);
        free(d);
        return NULL;
    }
    uv_timer_init(options->loop, &d->deadline); /* cannot fail */
    uv_timer_init(options->loop, &d->patience);
    d->deadline.data = d->patience.data = d->lookup.data = d;
    d->handles = 2;
    uv_timer_start(&d->deadline, on_deadline,
                   options->timeout_ms ? options->timeout_ms : TIMEOUT_MS, 0);
    int code = uv_getaddrinfo(options->loop, &d->lookup, on_lookup, options->url->host.name,
                              options->url->host.port, &hints);
    d->looking_up = code == 0;
    if (code < 0)
        finish(d, 0, uv_strerror(code));
    return d;
}
