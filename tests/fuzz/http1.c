/* http1.c -- any bytes as a request, a response, a chunked body and a query: no crash, and no
 * answer that more bytes would change.
 *
 *   the first byte chooses what the rest is, and how large the pieces of a body are;
 *   a beginning of it answers "not whole yet", or what the whole answers, and for the same reason;
 *   all that was found lies in the input; a body is the same in whatever pieces it comes;
 *   a head that was read, written again from what was found, reads the same.
 */
#include "fuzz/fuzz.h"

#include "wire/http1.h"

enum { INPUT_MAX = 40 * 1024, EVERY_PREFIX_TO = 512 };

static void check_text(const char *bytes, ptrdiff_t len, struct weir__text text)
{
    check(text.bytes >= bytes && text.len <= (size_t)len &&
          text.bytes <= bytes + (size_t)len - text.len);
    for (size_t i = 0; i < text.len; i++)
        check(text.bytes[i] != '\0' && text.bytes[i] != '\r' && text.bytes[i] != '\n');
}

static void check_headers(const char *bytes, ptrdiff_t len, const struct weir__http_header *headers,
                          size_t n)
{
    check(n <= WEIR__HTTP_HEADERS);
    for (size_t i = 0; i < n; i++) {
        check_text(bytes, len, headers[i].name);
        check_text(bytes, len, headers[i].value);
        check(headers[i].name.len > 0);
    }
}

static bool same(struct weir__text a, struct weir__text b)
{
    return a.len == b.len && memcmp(a.bytes, b.bytes, a.len) == 0;
}

/* ---------------------------------------------------------------- requests ---- */

static ptrdiff_t read_request(const char *bytes, size_t len, struct weir__http_request *out,
                              int *status, const char **what)
{
    *status = 0;
    *what = NULL;
    ptrdiff_t took = weir__http_request(bytes, len, out, status, what);
    check(took <= (ptrdiff_t)len && took <= 32 * 1024 && (took < 0) == (*what != NULL) &&
          (took < 0) == (*status >= 400 && *status < 600));
    if (took <= 0)
        return took;
    check_text(bytes, took, out->method);
    check_text(bytes, took, out->target);
    check_text(bytes, took, out->path);
    check_text(bytes, took, out->query);
    check_headers(bytes, took, out->headers, out->n_headers);
    check(out->path.len > 0 && out->method.len > 0 && out->content_length >= -1 &&
          !(out->chunked && out->content_length >= 0));
    return took;
}

static void put(char **to, struct weir__text text, const char *behind)
{
    memcpy(*to, text.bytes, text.len);
    *to += text.len;
    *to += sprintf(*to, "%s", behind);
}

static void check_written_again(const struct weir__http_request *r)
{
    static char text[INPUT_MAX + 4 * WEIR__HTTP_HEADERS];
    static struct weir__http_request again;
    int status;
    const char *what;
    char *end = text;

    put(&end, r->method, " ");
    put(&end, r->target, "");
    end += sprintf(end, " HTTP/1.%d\r\n", r->minor);
    for (size_t i = 0; i < r->n_headers; i++) {
        put(&end, r->headers[i].name, ":");
        put(&end, r->headers[i].value, "\r\n");
    }
    end += sprintf(end, "\r\n");
    check(read_request(text, (size_t)(end - text), &again, &status, &what) == end - text);
    check(same(again.method, r->method) && same(again.path, r->path) &&
          same(again.query, r->query) && again.n_headers == r->n_headers);
    check(again.keep_alive == r->keep_alive && again.chunked == r->chunked &&
          again.content_length == r->content_length);
    for (size_t i = 0; i < r->n_headers; i++)
        check(same(again.headers[i].name, r->headers[i].name) &&
              same(again.headers[i].value, r->headers[i].value));
}

static void check_request(const char *bytes, size_t len)
{
    static struct weir__http_request whole, cut_out;
    int status, cut_status;
    const char *what, *cut_what;
    ptrdiff_t took = read_request(bytes, len, &whole, &status, &what);

    for (size_t cut = 0; cut < len; cut += cut < EVERY_PREFIX_TO ? 1 : 97) {
        char *copy = copy_of(bytes, cut);
        ptrdiff_t cut_took = read_request(copy, cut, &cut_out, &cut_status, &cut_what);
        check(took > 0 ? cut_took == (cut < (size_t)took ? 0 : took)
                       : cut_took == 0 ||
                             (cut_took == took && cut_status == status && cut_what == what));
        free(copy);
    }
    if (took > 0)
        check_written_again(&whole);
}

/* --------------------------------------------------------------- responses ---- */

static ptrdiff_t read_response(const char *bytes, size_t len, const char **what)
{
    static struct weir__http_response out;

    *what = NULL;
    ptrdiff_t took = weir__http_response(bytes, len, &out, what);
    check(took <= (ptrdiff_t)len && took <= 32 * 1024 && (took < 0) == (*what != NULL));
    if (took <= 0)
        return took;
    check_headers(bytes, took, out.headers, out.n_headers);
    check(out.status >= 100 && out.status <= 999 && out.content_length >= -1 &&
          !(out.chunked && out.content_length >= 0));
    return took;
}

static void check_response(const char *bytes, size_t len)
{
    const char *what, *cut_what;
    ptrdiff_t took = read_response(bytes, len, &what);

    for (size_t cut = 0; cut < len; cut += cut < EVERY_PREFIX_TO ? 1 : 97) {
        char *copy = copy_of(bytes, cut);
        ptrdiff_t cut_took = read_response(copy, cut, &cut_what);
        check(took > 0 ? cut_took == (cut < (size_t)took ? 0 : took)
                       : cut_took == 0 || (cut_took == took && cut_what == what));
        free(copy);
    }
}

/* -------------------------------------------------------- chunks and query ---- */

struct body {
    ptrdiff_t read; /* -1: wrong */
    const char *what;
    bool ended;
    char data[INPUT_MAX];
    size_t len;
};

static void read_body(const char *bytes, size_t len, size_t piece, struct body *b)
{
    struct weir__http_chunks chunks = { 0 };

    *b = (struct body){ 0 };
    while ((size_t)b->read < len && !chunks.ended) {
        size_t n = len - (size_t)b->read < piece ? len - (size_t)b->read : piece,
               data_len = SIZE_MAX;
        char *copy = copy_of(bytes + b->read, n);
        ptrdiff_t took = weir__http_chunked(&chunks, copy, n, &data_len, &b->what);
        check((took < 0) == (b->what != NULL) &&
              (took < 0 || (data_len <= (size_t)took && ((size_t)took == n || chunks.ended))));
        if (took >= 0) {
            memcpy(b->data + b->len, copy, data_len);
            b->len += data_len;
        }
        free(copy);
        b->read = took < 0 ? -1 : b->read + took;
        if (took < 0)
            return;
    }
    b->ended = chunks.ended;
}

static void check_body(const char *bytes, size_t len, size_t piece)
{
    static struct body whole, parts;

    read_body(bytes, len, len > 0 ? len : 1, &whole);
    read_body(bytes, len, piece, &parts);
    check(whole.read == parts.read && whole.what == parts.what && whole.ended == parts.ended);
    check(whole.read < 0 ||
          (whole.len == parts.len && memcmp(whole.data, parts.data, whole.len) == 0));
}

static void check_query(const char *bytes, size_t len)
{
    char *scratch = copy_of(bytes, len), *to = scratch;
    struct weir__text query = { bytes, len }, name, value;
    bool bad;

    while (weir__http_query_next(&query, &to, &name, &value, &bad)) {
        check(!bad && name.bytes >= scratch && value.bytes >= name.bytes &&
              value.bytes + value.len <= to);
        check(to <= scratch + len && query.bytes >= bytes &&
              query.bytes + query.len == bytes + len);
    }
    check(bad || query.len == 0 || query.bytes[0] == '&');
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX)
        return 0;
    char *bytes = copy_of((const char *)data + 1, size - 1);
    switch (data[0] % 4) {
    case 0:
        check_request(bytes, size - 1);
        break;
    case 1:
        check_response(bytes, size - 1);
        break;
    case 2:
        check_body(bytes, size - 1, data[0] / 4 % 16 + 1);
        break;
    default:
        check_query(bytes, size - 1);
        break;
    }
    free(bytes);
    return 0;
}
