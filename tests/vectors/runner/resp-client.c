/* resp-client.c -- commands to a server that speaks RESP. */
#include "resp-client.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "resp-reply.h"
#include "wire/resp-reply.h"

#define WORDS_MAX 24

/* The next value; of a text the beginning is kept, because its bytes go with the buffer. */
static int next_value(struct weir__client *c, struct weir__buffer **in, struct resp_reply *value,
                      char text[static 64], struct weir_error *error)
{
    for (;;) {
        ptrdiff_t n = *in && (*in)->len ? resp_reply_read((*in)->bytes, (*in)->len, value) : 0;
        if (n > 0) {
            if (value->kind == '-')
                weir__fail(error, WEIR_INVALID, "%.*s", (int)(value->len < 240 ? value->len : 240),
                           value->bytes);
            else if (value->bytes)
                snprintf(text, 64, "%.*s", (int)(value->len < 63 ? value->len : 63), value->bytes);
            weir__buffer_drop(*in, (size_t)n);
            return value->kind == '-' ? WEIR_INVALID : WEIR_OK;
        }
        ptrdiff_t more = n < 0 ? 0 : weir__client_receive(c, in, error);
        if (more <= 0)
            return more < 0 ? (int)more
                            : weir__fail(error, WEIR_SYSTEM,
                                         n < 0 ? "this is no RESP"
                                               : "the server has closed the connection");
    }
}

int resp_client_send(struct weir__client *c, const struct resp_word *words, size_t n,
                     struct resp_answer *answer, struct weir_error *error)
{
    struct weir__buffer out = { 0 }, *in = NULL;
    struct resp_reply value;

    *answer = (struct resp_answer){ 0 };
    weir__buffer_format(&out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++) {
        weir__buffer_format(&out, "$%zu\r\n", words[i].len);
        weir__buffer_add(&out, words[i].bytes, words[i].len);
        weir__buffer_text(&out, "\r\n");
    }
    int code = weir__client_send(c, out.bytes, out.len, error);
    weir__buffer_free(&out);
    if (code == WEIR_OK)
        code = next_value(c, &in, &value, answer->text, error);
    if (code != WEIR_OK)
        return code;
    answer->kind = value.kind;
    answer->numbers[0] = value.kind == ':' ? value.integer : 0;
    for (int64_t left = value.kind == '*' ? value.integer : 0; left > 0 && code == WEIR_OK;
         left--) {
        code = next_value(c, &in, &value, answer->text, error);
        if (code == WEIR_OK && answer->n < 10)
            answer->numbers[answer->n++] = value.kind == ':' ? value.integer : 0;
    }
    return code;
}

int resp_client_ask(struct weir__client *c, const char *const *words, struct resp_answer *answer,
                    struct weir_error *error)
{
    struct resp_word lengths[WORDS_MAX];
    size_t n = 0;

    for (; words[n] && n < WORDS_MAX; n++)
        lengths[n] = (struct resp_word){ words[n], strlen(words[n]) };
    return resp_client_send(c, lengths, n, answer, error);
}

int resp_client_raw(struct weir__client *c, const struct weir__buffer *bytes,
                    struct weir__buffer *reply, struct weir_error *error)
{
    struct weir__resp_scan scan = { 0 };
    struct weir__buffer *in = NULL;
    const char *what = "";
    int code = weir__client_send(c, bytes->bytes, bytes->len, error);

    reply->len = 0;
    while (code == WEIR_OK) {
        ptrdiff_t n =
            in && in->len ? weir__resp_scan(&scan, in->bytes, in->len, 1 << 24, &what) : 0;
        if (n > 0) {
            weir__buffer_add(reply, in->bytes, (size_t)n);
            weir__buffer_drop(in, (size_t)n);
            return WEIR_OK;
        }
        ptrdiff_t more = n < 0 ? 0 : weir__client_receive(c, &in, error);
        if (more < 0)
            code = (int)more;
        else if (more == 0)
            code = weir__fail(error, WEIR_SYSTEM, "the connection has ended, or this is no RESP");
    }
    return code;
}
