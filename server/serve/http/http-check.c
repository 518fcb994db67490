/* http-check.c -- deciding: a request by the rules, many of them, or a key by a limit that comes
 * with the ask.
 *
 * A check is read into the stack and decided at once: no memory is asked for unless a string has
 * escapes and the body is long.  A batch is read whole before anything is decided, so that a
 * mistake in the last check charges nothing for the first.
 */
#include "server/serve/http/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rulefile/problem.h"
#include "match/rules.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BATCH_MAX       1000
#define GROUP           64 /* checks that are decided together */

/* ------------------------------------------------------------- one check ---- */

/* A check as it comes in. */
struct incoming {
    struct weir__attributes_in in; /* first, as weir__members_begin_request wants it */
    int64_t cost, wait_ms;
    struct weir__span id;
};

#define AT(member) offsetof(struct incoming, member)

static const struct weir__member check_rows[] = {
    { "attributes", WEIR__MEMBER_OBJECT, false, 0 },
    { "cost", WEIR__MEMBER_COUNT, false, AT(cost) },
    { "wait_ms", WEIR__MEMBER_COUNT, false, AT(wait_ms) },
    { "id", WEIR__MEMBER_TEXT, false, AT(id) },
};

#undef AT

/* Fills in a zeroed one but for `in`, which is the caller's. */
static bool read_check(struct weir__members *members, struct incoming *incoming,
                       struct weir__span text)
{
    incoming->cost = 1;
    incoming->wait_ms = 0;
    incoming->id = (struct weir__span){ 0 };
    if (!weir__members_read(members, text))
        return false;
    if (incoming->wait_ms > INT64_MAX / WEIR_MILLISECOND)
        return weir__members_wrong(members, "'wait_ms' is at most %lld",
                                   (long long)(INT64_MAX / WEIR_MILLISECOND));
    if (incoming->id.len > WEIR__ASK_ID_MAX)
        return weir__members_wrong(members, "'id' has at most %d bytes", WEIR__ASK_ID_MAX);
    return true;
}

void weir__http_check(struct weir__http_call *call)
{
    struct weir__check check;
    struct weir__members members;
    struct weir_ruling ruling;
    char names[WEIR__CHECK_ATTRS * WEIR__ATTRIBUTE_SIZE + WEIR__ATTRIBUTE_SIZE];
    struct incoming incoming = { .in = { .attrs = check.attrs,
                                         .max = WEIR__CHECK_ATTRS,
                                         .names = names,
                                         .names_end = names + sizeof(names) } };
    const char *problem = members.problem;

    weir__members_begin_request(&members, check_rows, COUNT_OF(check_rows), &incoming);
    if (read_check(&members, &incoming, call->body)) {
        check.n = incoming.in.n;
        check.cost = incoming.cost;
        check.wait_max = incoming.wait_ms * WEIR_MILLISECOND;
        check.id = incoming.id;
        problem = weir__ask_check(call->conn->loop, &check, &ruling);
    }
    if (problem)
        weir__http_bad(call, 400, problem);
    else
        weir__http_ruling(&call->manner, &ruling, 0, false);
    weir__members_free(&members);
}

/* ----------------------------------------------------------- many checks ---- */

/* One of them: where its attributes begin, for they move while more are read. */
struct item {
    size_t first, n;
    int64_t cost;
    weir_time wait_max;
    struct weir__span id;
};

struct batch {
    struct weir_attr *attrs;
    size_t n_attrs, room;
    struct item *items;
    size_t n;
    char *names, *names_end; /* of attributes: where the next one goes; each is in the text, so as
                                much room as that has will do */
    char *strings;           /* those with escapes, each where it is in the text */
    bool ids;                /* one of them has an id */
    const char *begin, *text, *end; /* the body, and what is read next */
    char problem[400];
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
        (size_t)(b->text - b->begin) + 1, BATCH_MAX);
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

/* To where a value ends: the comma or bracket behind it.  Whether it is one is seen when it is
 * read. */
static struct weir__span element(struct batch *b)
{
    const char *begin = b->text;
    size_t depth = 0;

    for (bool quoted = false; b->text < b->end; b->text++) {
        char c = *b->text;
        if (quoted && c == '\\')
            b->text += b->text + 1 < b->end;
        else if (c == '"')
            quoted = !quoted;
        else if (quoted)
            continue;
        else if (depth == 0 && (c == ',' || c == ']'))
            break;
        else if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth -= depth > 0;
    }
    return (struct weir__span){ begin, (size_t)(b->text - begin) };
}

static bool make_room(struct batch *b)
{
    if (b->room - b->n_attrs >= WEIR__CHECK_ATTRS)
        return true;
    size_t room = b->room ? b->room * 2 : (size_t)16 * WEIR__CHECK_ATTRS;
    struct weir_attr *attrs = realloc(b->attrs, room * sizeof(*attrs));
    if (attrs == NULL) {
        snprintf(b->problem, sizeof(b->problem), "out of memory");
        return false;
    }
    b->attrs = attrs;
    b->room = room;
    return true;
}

/* One more check; the attributes come behind those that are there. */
static bool read_item(struct batch *b)
{
    struct weir__members members;
    skip_space(b);
    size_t at = (size_t)(b->text - b->begin);
    struct weir__span text = element(b);

    if (!make_room(b))
        return false;
    struct incoming incoming = { .in = { .attrs = b->attrs + b->n_attrs,
                                         .max = WEIR__CHECK_ATTRS,
                                         .names = b->names,
                                         .names_end = b->names_end } };
    weir__members_begin_request(&members, check_rows, COUNT_OF(check_rows), &incoming);
    members.scratch = b->strings + at;
    if (!read_check(&members, &incoming, text)) {
        snprintf(b->problem, sizeof(b->problem), "check %zu: %s", b->n, members.problem);
        return false;
    }
    b->names = incoming.in.names;
    b->items[b->n++] = (struct item){ b->n_attrs, incoming.in.n, incoming.cost,
                                      incoming.wait_ms * WEIR_MILLISECOND, incoming.id };
    b->n_attrs += incoming.in.n;
    b->ids |= incoming.id.len > 0;
    return true;
}

static bool read_items(struct batch *b)
{
    if (!expect(b, "{") || !expect(b, "\"checks\"") || !expect(b, ":") || !expect(b, "["))
        return false;
    do {
        if (b->n == BATCH_MAX) {
            snprintf(b->problem, sizeof(b->problem), "more than %d checks: ask in several batches",
                     BATCH_MAX);
            return false;
        }
        if (!read_item(b))
            return false;
    } while (b->text < b->end && *b->text == ',' && b->text++);
    if (!expect(b, "]") || !expect(b, "}"))
        return false;
    skip_space(b);
    return b->text == b->end || no_batch(b);
}

/* Decides those from `from` on, and writes the answers. */
static void decide_group(struct weir__loop *loop, const struct batch *b, size_t from, size_t n,
                         struct weir__buffer *out)
{
    struct weir_request requests[GROUP] = { 0 };
    struct weir_ruling rulings[GROUP];

    for (size_t i = 0; i < n; i++) {
        const struct item *item = &b->items[from + i];
        requests[i] = (struct weir_request){ .attrs = b->attrs + item->first, .n = item->n };
        requests[i].ask = (struct weir_ask){ .cost = item->cost,
                                             .wait_max = item->wait_max,
                                             .now = weir__loop_now(loop) };
    }
    weir__ask_check_many(loop, requests, n, rulings);
    for (size_t i = 0; i < n; i++) {
        char *to = weir__buffer_room(out, WEIR__HTTP_RULING_MAX);
        if (to == NULL)
            return;
        to[0] = ',';
        to = weir__http_ruling_json(to + (from + i > 0), &rulings[i]);
        out->len = (size_t)(to - out->bytes);
    }
}

/* One that may have an id.  What is wrong with it is its own answer: those before it have been
 * charged. */
static void decide_one(struct weir__loop *loop, const struct batch *b, size_t i,
                       struct weir__buffer *out)
{
    const struct item *item = &b->items[i];
    struct weir__check check;
    struct weir_ruling ruling;

    check.n = item->n;
    memcpy(check.attrs, b->attrs + item->first, item->n * sizeof(check.attrs[0]));
    check.cost = item->cost;
    check.wait_max = item->wait_max;
    check.id = item->id;
    const char *problem = weir__ask_check(loop, &check, &ruling);
    if (i > 0)
        weir__buffer_text(out, ",");
    if (problem) {
        weir__buffer_text(out, "{\"code\":\"bad-request\"");
        weir__buffer_member(out, "detail", problem);
        weir__buffer_text(out, "}");
        return;
    }
    char json[WEIR__HTTP_RULING_MAX];
    weir__buffer_add(out, json, (size_t)(weir__http_ruling_json(json, &ruling) - json));
}

static void decide_batch(struct weir__http_call *call, const struct batch *b)
{
    struct weir__loop *loop = call->conn->loop;
    struct weir__buffer out = { 0 };

    weir__buffer_text(&out, "{\"answers\":[");
    for (size_t i = 0; i < b->n; i += b->ids ? 1 : GROUP) {
        if (b->ids)
            decide_one(loop, b, i, &out);
        else
            decide_group(loop, b, i, b->n - i < GROUP ? b->n - i : GROUP, &out);
    }
    weir__buffer_text(&out, "]}");
    if (out.failed)
        call->manner.out->failed = true;
    else
        weir__http_answer(&call->manner, 200, WEIR__HTTP_JSON, (struct weir__span){ 0 },
                          (struct weir__span){ out.bytes, out.len });
    weir__buffer_free(&out);
}

void weir__http_batch(struct weir__http_call *call)
{
    struct weir__span body = call->body;
    struct batch b = { .begin = body.bytes, .text = body.bytes, .end = body.bytes + body.len };

    b.items = malloc(BATCH_MAX * sizeof(*b.items));
    b.strings = malloc(body.len + 1);
    char *names = b.names = malloc(body.len + 1);
    b.names_end = names ? names + body.len : NULL;
    if (b.items == NULL || names == NULL || b.strings == NULL)
        weir__http_problem(&call->manner, 503, NULL, "out of memory");
    else if (!read_items(&b))
        weir__http_bad(call, 400, b.problem);
    else
        decide_batch(call, &b);
    free(b.items);
    free(names);
    free(b.strings);
    free(b.attrs);
}

/* ----------------------------------------- a limit that comes with the ask ---- */

struct taking {
    struct weir__span key, limit, name, unit;
    int64_t cost, wait_ms, wait_ns, lifetime_ms, lifetime_ns;
};

#define AT(member) offsetof(struct taking, member)

static const struct weir__member take_rows[] = {
    { "key", WEIR__MEMBER_ANY, true, AT(key) },
    { "limit", WEIR__MEMBER_TEXT, true, AT(limit) },
    { "cost", WEIR__MEMBER_COUNT, false, AT(cost) },
    { "name", WEIR__MEMBER_TEXT, false, AT(name) },
    { "unit", WEIR__MEMBER_TEXT, false, AT(unit) },
    { "wait_ms", WEIR__MEMBER_COUNT, false, AT(wait_ms) },
    { "wait_ns", WEIR__MEMBER_COUNT, false, AT(wait_ns) },
    { "lifetime_ms", WEIR__MEMBER_COUNT, false, AT(lifetime_ms) },
    { "lifetime_ns", WEIR__MEMBER_COUNT, false, AT(lifetime_ns) },
};

enum { WAIT_MS = 5, WAIT_NS, LIFETIME_MS, LIFETIME_NS }; /* their places there */

#undef AT

static bool given(const struct weir__members *members, int row)
{
    return members->given >> row & 1;
}

/* Times are in the unit that is named, and in no other. */
static bool read_times(struct weir__members *members, const struct taking *t,
                       struct weir__adhoc_ask *ask, bool *ns)
{
    const int64_t ms_max = INT64_MAX / WEIR_MILLISECOND;

    *ns = t->unit.len == 2 && memcmp(t->unit.bytes, "ns", 2) == 0;
    if (t->unit.len && !*ns && !(t->unit.len == 2 && memcmp(t->unit.bytes, "ms", 2) == 0))
        return weir__members_wrong(members, "'unit' is \"ms\" or \"ns\", and not %s",
                                   weir__quote(t->unit.bytes, t->unit.len).text);
    if (*ns && (given(members, WAIT_MS) || given(members, LIFETIME_MS)))
        return weir__members_wrong(members,
                                   "with the unit ns times are 'wait_ns' and 'lifetime_ns'");
    if (!*ns && (given(members, WAIT_NS) || given(members, LIFETIME_NS)))
        return weir__members_wrong(members, "'wait_ns' and 'lifetime_ns' need \"unit\":\"ns\"");
    if (t->wait_ms > ms_max || t->lifetime_ms > ms_max)
        return weir__members_wrong(members, "a time in ms is at most %lld", (long long)ms_max);
    ask->wait_max = *ns ? t->wait_ns : t->wait_ms * WEIR_MILLISECOND;
    ask->lifetime = *ns ? t->lifetime_ns : t->lifetime_ms * WEIR_MILLISECOND;
    return true;
}

static bool read_taking(struct weir__members *members, struct weir__adhoc_ask *ask,
                        struct weir__span text, bool *ns)
{
    struct taking t = { .cost = 1 };

    members->target = &t;
    if (!weir__members_read(members, text) || !weir__members_whole(members) ||
        !read_times(members, &t, ask, ns))
        return false;
    if (ask->verb != WEIR__RESERVE && (given(members, LIFETIME_MS) || given(members, LIFETIME_NS)))
        return weir__members_wrong(members, "only a reservation has a lifetime: POST /v1/reserve");
    if (t.key.len == 0)
        return weir__members_wrong(members, "'key' is empty");
    ask->key = t.key;
    ask->limit = t.limit;
    ask->name = t.name;
    ask->cost = t.cost;
    return true;
}

static int status_of(int code)
{
    return code == WEIR_NO_MEMORY ? 503
           : code == WEIR_EXISTS  ? 409
           : code == WEIR_INVALID ? 422
                                  : 500;
}

static void decide_key(struct weir__http_call *call, enum weir__ask_verb verb)
{
    struct weir__adhoc_ask ask = { .verb = verb };
    struct weir__adhoc_answer answer = { 0 };
    struct weir__members members;
    struct weir_error error = { 0 };
    bool ns = false;

    weir__members_begin(&members, take_rows, COUNT_OF(take_rows), NULL);
    if (!read_taking(&members, &ask, call->body, &ns)) {
        weir__http_bad(call, 400, members.problem);
    } else {
        int code = weir__ask_adhoc(call->conn->loop, &ask, &answer, &error);
        struct weir__http_taken taken = { &answer, ask.name.len ? ask.name : ask.limit, ns };
        if (code != WEIR_OK)
            weir__http_problem(&call->manner, status_of(code), NULL, "%s", error.text);
        else if (verb == WEIR__GIVE)
            weir__http_json(&call->manner, 200, "{\"given\":true}");
        else
            weir__http_decision(&call->manner, &taken);
    }
    weir__members_free(&members);
}

void weir__http_take(struct weir__http_call *call)
{
    decide_key(call, WEIR__TAKE);
}

void weir__http_peek(struct weir__http_call *call)
{
    decide_key(call, WEIR__PEEK);
}

void weir__http_give(struct weir__http_call *call)
{
    decide_key(call, WEIR__GIVE);
}

void weir__http_reserve(struct weir__http_call *call)
{
    decide_key(call, WEIR__RESERVE);
}

/* ------------------------------------------------------ settle, the clock ---- */

struct settling {
    struct weir__span reservation;
    int64_t cost;
};

static const struct weir__member settle_rows[] = {
    { "reservation", WEIR__MEMBER_TEXT, true, offsetof(struct settling, reservation) },
    { "cost", WEIR__MEMBER_COUNT, true, offsetof(struct settling, cost) },
};

void weir__http_settle(struct weir__http_call *call)
{
    struct weir__members members;
    struct settling s = { .cost = 0 };

    weir__members_begin(&members, settle_rows, COUNT_OF(settle_rows), &s);
    if (!weir__members_read(&members, call->body) || !weir__members_whole(&members))
        weir__http_bad(call, 400, members.problem);
    else
        weir__http_json(&call->manner, 200,
                        weir__ask_settle(call->conn->loop, s.reservation, s.cost)
                            ? "{\"settled\":true}"
                            : "{\"settled\":false}");
    weir__members_free(&members);
}

static const struct weir__member clock_rows[] = { { "now_ns", WEIR__MEMBER_COUNT, true, 0 } };

/* For tests: the time is what they say. */
void weir__http_clock(struct weir__http_call *call)
{
    struct weir__loop *loop = call->conn->loop;
    struct weir__members members;
    int64_t now = 0;
    char text[64];

    weir__members_begin(&members, clock_rows, COUNT_OF(clock_rows), &now);
    if (!weir__members_read(&members, call->body) || !weir__members_whole(&members)) {
        weir__http_bad(call, 400, members.problem);
    } else {
        weir__server_set_clock(loop->server, now);
        loop->now_is_old = true;
        snprintf(text, sizeof(text), "{\"now_ns\":%lld}", (long long)now);
        weir__http_json(&call->manner, 200, text);
    }
    weir__members_free(&members);
}
