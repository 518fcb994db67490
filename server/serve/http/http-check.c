/* http-check.c -- deciding by the rules: one request, or many.
 *
 * A check is read into the stack and decided at once: no memory is asked for unless a string has
 * escapes and the body is long.  A batch is read whole before anything is decided, so that a
 * mistake in the last check charges nothing for the first.
 */
#include "server/serve/http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/serve/decide/decide-verbs.h"
#include "server/serve/decide/units-wait.h"
#include "wire/json.h"

#define GROUP 64 /* checks that are decided together */

/* ------------------------------------------------------------- one check ---- */

struct held {
    struct weir__http_manner manner;
    struct weir__http_shape shape;
};

/* It has waited: the connection is held until this is sent. */
static void answer_after_wait(struct weir__conn *conn, const struct weir_ruling *rulings, size_t n,
                              const void *context)
{
    const struct held *held = context;
    struct weir__buffer out = { 0 };
    struct weir__http_manner manner = weir__http_held(conn, &held->manner, &out);

    (void)n;
    weir__http_ruling(&manner, rulings, held->shape.refuse, held->shape.bare);
    weir__http_send_held(conn, &manner);
}

void weir__http_decided(struct weir__http_call *call, const struct weir__check *check,
                        struct weir_ruling *ruling, const struct weir__http_shape *shape)
{
    const struct held held = { call->manner, *shape };

    if (weir__is_dry(ruling) && weir__units_wait(call->conn, check, ruling, 1,
                                                 &(struct weir__units_wait_answer){
                                                     answer_after_wait, &held, sizeof(held) }))
        call->manner.close = false; /* answer_after_wait sees to it */
    else
        weir__http_ruling(&call->manner, ruling, shape->refuse, shape->bare);
}

void weir__http_check(struct weir__http_call *call)
{
    struct weir__verb_call c;
    struct weir_ruling ruling;
    const char *problem = c.message;

    weir__call_begin(&c, call->verb, call->conn->loop, true);
    if (weir__call_json(&c, call->body) && weir__call_whole(&c)) {
        const struct weir__check check = { c.attrs, c.n_attrs, c.values[WEIR__CHECK_COST].number,
                                           c.values[WEIR__CHECK_WAIT].number,
                                           c.values[WEIR__CHECK_ID].text };
        problem = weir__ask_check(call->conn->loop, &check, &ruling);
        if (!problem)
            weir__http_decided(call, &check, &ruling, &(struct weir__http_shape){ 0 });
    }
    if (problem)
        weir__http_bad(call, 400, problem);
    weir__call_end(&c);
}

/* ----------------------------------------------------------- many checks ---- */

struct batch {
    struct weir_attr *attrs;
    size_t n_attrs, room;
    struct weir__check *items; /* without attributes, for those move while more are read */
    size_t n;
    char *names, *names_end; /* of attributes: where the next one goes; each is in the text, so that
                                its size is room enough */
    char *strings;           /* those with escapes, each where it is in the text */
    bool ids;                /* one of them has an id */
    const char *begin, *text, *end; /* the body, and what is read next */
    char problem[640];
};

static void skip_space(struct batch *b)
{
    while (b->text < b->end &&
           (*b->text == ' ' || *b->text == '\t' || *b->text == '\r' || *b->text == '\n'))
        b->text++;
}

static bool no_batch(struct batch *b)
{
    snprintf(
        b->problem, sizeof(b->problem),
        "at byte %zu: the body is {\"checks\":[{...},...]}, 1 to %d checks as /v1/check has them",
        (size_t)(b->text - b->begin) + 1, WEIR__HTTP_BATCH);
    return false;
}

static bool expect(struct batch *b, const char *word)
{
    size_t len = strlen(word);

    skip_space(b);
    if ((size_t)(b->end - b->text) < len || memcmp(b->text, word, len) != 0)
        return no_batch(b);
    b->text += len;
    return true;
}

static bool make_room(struct batch *b)
{
    if (b->room - b->n_attrs >= WEIR__CALL_ATTRS)
        return true;
    size_t room = b->room ? b->room * 2 : (size_t)16 * WEIR__CALL_ATTRS;
    struct weir_attr *attrs = realloc(b->attrs, room * sizeof(*attrs));
    if (attrs == NULL) {
        snprintf(b->problem, sizeof(b->problem), "no memory");
        return false;
    }
    b->attrs = attrs;
    b->room = room;
    return true;
}

/* One more check; the attributes come behind those that are there. */
static bool read_item(struct batch *b, const struct weir__verb *verb)
{
    struct weir__verb_call c;

    skip_space(b);
    size_t at = (size_t)(b->text - b->begin);
    struct weir__text text = weir__json_element(&b->text, b->end);
    if (text.len == 0)
        return no_batch(b);
    if (!make_room(b))
        return false;
    weir__call_begin(&c, verb, NULL, true);
    c.attrs = b->attrs + b->n_attrs;
    c.names = b->names;
    c.names_end = b->names_end;
    c.scratch = b->strings + at;
    if (!weir__call_json(&c, text) || !weir__call_whole(&c)) {
        snprintf(b->problem, sizeof(b->problem), "check %zu: %s", b->n, c.message);
        return false;
    }
    b->names = c.names;
    b->items[b->n++] =
        (struct weir__check){ NULL, c.n_attrs, c.values[WEIR__CHECK_COST].number,
                              c.values[WEIR__CHECK_WAIT].number, c.values[WEIR__CHECK_ID].text };
    b->n_attrs += c.n_attrs;
    b->ids |= c.values[WEIR__CHECK_ID].text.len > 0;
    return true;
}

static bool read_items(struct batch *b)
{
    if (!expect(b, "{") || !expect(b, "\"checks\"") || !expect(b, ":") || !expect(b, "["))
        return false;
    const struct weir__verb *check = weir__verb_by_command("WEIR.CHECK", 10);
    do {
        if (b->n == WEIR__HTTP_BATCH) {
            snprintf(b->problem, sizeof(b->problem), "more than %d checks: ask in several batches",
                     WEIR__HTTP_BATCH);
            return false;
        }
        if (!read_item(b, check))
            return false;
    } while (b->text < b->end && *b->text == ',' && b->text++);
    if (!expect(b, "]") || !expect(b, "}"))
        return false;
    skip_space(b);
    return b->text == b->end || no_batch(b);
}

static void add_ruling(struct weir__buffer *out, const struct weir_ruling *ruling)
{
    weir__buffer_member_name(out, NULL);
    char *to = weir__buffer_room(out, WEIR__HTTP_RULING_MAX);
    if (to != NULL)
        out->len = (size_t)(weir__http_ruling_json(to, ruling) - out->bytes);
}

/* The answers to a batch; a copy of it waits with those that wait. */
struct answers {
    struct weir__http_manner manner;
    const char *problems[]; /* of an id: that is its answer alone, since those before it have been
                               charged; NULL: none */
};

static void answer_batch(const struct answers *a, const struct weir_ruling *rulings, size_t n)
{
    struct weir__buffer out = { 0 };

    weir__buffer_open(&out, NULL, '{');
    weir__buffer_open(&out, "answers", '[');
    for (size_t i = 0; i < n; i++) {
        if (!a->problems[i]) {
            add_ruling(&out, &rulings[i]);
            continue;
        }
        weir__buffer_open(&out, NULL, '{');
        weir__buffer_member(&out, "code", "bad-request");
        weir__buffer_member(&out, "detail", a->problems[i]);
        weir__buffer_close(&out, "}");
    }
    weir__buffer_close(&out, "]}");
    if (out.failed)
        a->manner.out->failed = true;
    else
        weir__http_answer(&a->manner, 200, WEIR__HTTP_JSON, (struct weir__text){ 0 },
                          (struct weir__text){ out.bytes, out.len });
    weir__buffer_free(&out);
}
static void answer_batch_after_wait(struct weir__conn *conn, const struct weir_ruling *rulings,
                                    size_t n, const void *context)
{
    struct answers *a = (struct answers *)(uintptr_t)context; /* a copy, for this call */
    struct weir__buffer out = { 0 };

    a->manner = weir__http_held(conn, &a->manner, &out);
    answer_batch(a, rulings, n);
    weir__http_send_held(conn, &a->manner);
}

/* Decides all without ids; whether some found a purse dry. */
static bool decide_plain(struct weir__loop *loop, const struct batch *b,
                         struct weir_ruling *rulings)
{
    bool dry = false;

    for (size_t from = 0, n; from < b->n; from += n) {
        struct weir_request requests[GROUP] = { 0 };
        n = b->n - from < GROUP ? b->n - from : GROUP;
        for (size_t i = 0; i < n; i++) {
            const struct weir__check *c = &b->items[from + i];
            requests[i] = (struct weir_request){ .attrs = c->attrs, .n = c->n };
            requests[i].ask = (struct weir_ask){ .cost = c->cost,
                                                 .wait_max = c->wait_max,
                                                 .now = weir__loop_now(loop) };
        }
        dry |= weir__ask_check_many(loop, requests, n, rulings + from);
    }
    return dry;
}

static bool decide_with_ids(struct weir__loop *loop, const struct batch *b,
                            struct weir_ruling *rulings, const char **problems)
{
    bool dry = false;

    for (size_t i = 0; i < b->n; i++) {
        problems[i] = weir__ask_check(loop, &b->items[i], &rulings[i]);
        dry |= !problems[i] && weir__is_dry(&rulings[i]);
    }
    return dry;
}

static void decide_batch(struct weir__http_call *call, struct batch *b)
{
    struct weir__loop *loop = call->conn->loop;
    size_t size = sizeof(struct answers) + b->n * sizeof(const char *);
    struct answers *a = calloc(1, size);
    struct weir_ruling *rulings = calloc(b->n, sizeof(*rulings));
    struct weir_attr *attrs = b->attrs;

    for (size_t i = 0; i < b->n; attrs += b->items[i++].n)
        b->items[i].attrs = attrs;
    if (a == NULL || rulings == NULL) {
        weir__http_problem(&call->manner, 503, NULL, "no memory");
    } else {
        a->manner = call->manner;
        bool dry = b->ids ? decide_with_ids(loop, b, rulings, a->problems)
                          : decide_plain(loop, b, rulings);
        if (dry &&
            weir__units_wait(call->conn, b->items, rulings, b->n,
                             &(struct weir__units_wait_answer){ answer_batch_after_wait, a, size }))
            call->manner.close = false; /* answer_batch_after_wait sees to it */
        else
            answer_batch(a, rulings, b->n);
    }
    free(a);
    free(rulings);
}

void weir__http_batch(struct weir__http_call *call)
{
    struct weir__text body = call->body;
    struct batch b = { .begin = body.bytes, .text = body.bytes, .end = body.bytes + body.len };

    b.items = malloc(WEIR__HTTP_BATCH * sizeof(*b.items));
    b.strings = malloc(body.len + 1);
    char *names = b.names = malloc(body.len + 1);
    b.names_end = names ? names + body.len : NULL;
    if (b.items == NULL || names == NULL || b.strings == NULL)
        weir__http_problem(&call->manner, 503, NULL, "no memory");
    else if (!read_items(&b))
        weir__http_bad(call, 400, b.problem);
    else
        decide_batch(call, &b);
    free(b.items);
    free(names);
    free(b.strings);
    free(b.attrs);
}
