/* resp-throttle-check.c -- CL.THROTTLE and WEIR.CHECK: noted as they come, decided together,
 * answered in order.
 *
 * The table's memory is slow and the processor can wait for many places at once: so a pipeline's
 * keys are all looked for before the first is decided (weir__carried_take_many, weir_check_many).
 * The batch lies in the loop and not in the connection: it is empty whenever feed returns.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/serve/decide/decide-verbs.h"
#include "server/serve/decide/units-wait.h"
#include "server/serve/resp/resp.h"
#include "server/serve/events/top-keys.h"
#include "algo/cl-throttle.h"
#include "table/cl-throttle-limits.h"

#define THROTTLES 64
#define CHECKS    64
#define ATTRS     256 /* of all checks of a batch */
#define PLANS     64
#define NAMES     64
#define NAME      32 /* bytes of an attribute's name that is remembered */

#define RAW 64

/* A limit that was asked for, compiled, with its three arguments as they came: pipelines ask by one
 * limit over and over, and comparing bytes is cheaper than reading numbers. */
struct plan {
    size_t raw_len; /* 0: none */
    char raw[RAW];
    struct weir_plan plan;
};

struct batch {
    size_t throttles, checks, attrs;
    struct weir__carried_item items[THROTTLES];
    struct weir_decision decisions[THROTTLES];
    struct weir_request requests[CHECKS];
    struct weir_attr all_attrs[ATTRS];
    struct weir_ruling rulings[CHECKS];
    struct plan plans[PLANS];
    struct plan *latest;
    struct name {
        char text[NAME];
        uint8_t len; /* 0: none */
        uint32_t id;
    } names[NAMES]; /* of attributes, and the engine's numbers for them: saves it looking them up */
};

static struct batch *batch_of(struct weir__loop *loop)
{
    if (!loop->scratch)
        loop->scratch = calloc(1, sizeof(struct batch));
    return loop->scratch;
}

void weir__resp_scratch_free(struct weir__loop *loop)
{
    free(loop->scratch);
    loop->scratch = NULL;
}

/* ---------------------------------------------------------- CL.THROTTLE ---- */

static char *put_throttled(char *to, const struct weir_decision *d)
{
    memcpy(to, d->allowed ? "*5\r\n:0\r\n" : "*5\r\n:1\r\n", 8);
    to = weir__resp_put_integer(weir__resp_put_integer(to + 8, d->limit), d->remaining);
    to = weir__resp_put_integer(to, weir__cell_retry(d));
    return weir__resp_put_integer(to, weir__cell_seconds(d->reset));
}

static bool is_same_key(struct weir_key a, struct weir_key b)
{
    return a.len == b.len && memcmp(a.bytes, b.bytes, a.len) == 0;
}

/* A flood asks for one key over and over: it is followed as one, or following it would cost more
 * than refusing it. */
static void note_refused(struct weir__loop *loop, const struct batch *b, size_t n)
{
    for (size_t i = 0, next; i < n; i = next) {
        struct weir_key key = b->items[i].ask.key;
        int64_t times = !b->decisions[i].allowed;
        for (next = i + 1; next < n && is_same_key(b->items[next].ask.key, key); next++)
            times += !b->decisions[next].allowed;
        if (times)
            weir__top_add(loop->server->top, loop->index, WEIR__TOP_TAKES, key.bytes, key.len,
                          times);
    }
}

static void flush_throttles(struct weir__loop *loop, struct batch *b)
{
    size_t n = b->throttles, granted;
    weir_time began = weir__counters_begin(&loop->counters);

    b->throttles = 0;
    granted = weir__carried_take_many(loop->server->table, b->items, n, b->decisions);
    weir__counters_end(&loop->counters, began, n);
    char *to = weir__buffer_room(&loop->out, n * 6 * WEIR__RESP_NUMBER_MAX), *begin = to;
    if (!to)
        return;
    for (size_t i = 0; i < n; i++)
        to = put_throttled(to, &b->decisions[i]);
    loop->out.len += (size_t)(to - begin);
    weir__counter_add(&loop->counters, WEIR__COUNT_TAKE_ALLOWED, (int64_t)granted);
    if (granted == n)
        return;
    weir__counter_add(&loop->counters, WEIR__COUNT_TAKE_REFUSED, (int64_t)(n - granted));
    note_refused(loop, b, n);
}

static void cell_error(struct weir__resp_call *call, const char *what, struct weir__text arg)
{
    weir__resp_flush(call->conn);
    weir__reply_error(call->conn, "Cell error: %s%.*s", what, arg.len > 64 ? 64 : (int)arg.len,
                      arg.len ? arg.bytes : "");
}

/* The number of an argument; false, and that was said, if it is none or negative. */
static bool read_number(struct weir__resp_call *call, size_t i, int64_t *out)
{
    bool is = weir__resp_int(call->args[i], out);

    if (is && *out >= 0)
        return true;
    cell_error(call,
               !is      ? WEIR__CELL_NO_INTEGER ": "
               : i == 5 ? "Negative quantities are not supported: "
                        : "Negative numbers are not supported: ",
               call->args[i]);
    return false;
}

/* NULL, or what is wrong with the limit. */
static const char *make_plan(struct weir_plan *plan, int64_t burst, int64_t count, int64_t period)
{
    struct weir_error error;
    struct weir_limit limit;
    const char *wrong = weir__cell_limit(&limit, burst, count, period);

    if (!wrong &&
        (weir__plan_make(plan, &limit, &error) != WEIR_OK || !weir__plan_is_carried(plan)))
        wrong = WEIR__CELL_INEXACT;
    return wrong;
}

/* The compiled limit, put where the batch keeps such; NULL if it makes no sense, and that was
 * said. */
static const struct weir_plan *new_plan(struct weir__resp_call *call, struct batch *b,
                                        struct weir__text raw)
{
    int64_t burst, count, period;
    struct weir_plan plan;

    if (!read_number(call, 2, &burst) || !read_number(call, 3, &count) ||
        !read_number(call, 4, &period))
        return NULL;
    const char *wrong = make_plan(&plan, burst, count, period);
    if (wrong) {
        cell_error(call, wrong, (struct weir__text){ 0 });
        return NULL;
    }
    uint64_t hash = ((uint64_t)burst * 31 + (uint64_t)count) * 31 + (uint64_t)period;
    weir__resp_flush(call->conn); /* asks in the batch may use the old plan */
    struct plan *p = b->latest = &b->plans[(hash ^ hash >> 32) % PLANS];
    p->plan = plan;
    p->plan.clock = &call->conn->loop->server->table->clock;
    p->raw_len = raw.len <= RAW ? raw.len : 0;
    memcpy(p->raw, raw.bytes, p->raw_len);
    return &p->plan;
}

/* From the first byte of the burst to the last of the period, with everything between them. */
static struct weir__text raw_limit(const struct weir__resp_call *call)
{
    const char *begin = call->args[2].bytes;

    return (struct weir__text){ begin, (size_t)(call->args[4].bytes + call->args[4].len - begin) };
}

static const struct weir_plan *find_plan(struct weir__resp_call *call, struct batch *b)
{
    struct weir__text raw = raw_limit(call);
    struct plan *p = b->latest;

    if (p && p->raw_len == raw.len && memcmp(p->raw, raw.bytes, raw.len) == 0)
        return &p->plan;
    for (size_t i = 0; i < PLANS; i++) { /* lengths differ, mostly: this is cheaper than it looks */
        p = &b->plans[i];
        if (p->raw_len == raw.len && memcmp(p->raw, raw.bytes, raw.len) == 0) {
            b->latest = p;
            return &p->plan;
        }
    }
    return new_plan(call, b, raw);
}

/* CL.THROTTLE key max_burst count period [quantity] */
void weir__resp_throttle(struct weir__resp_call *call)
{
    struct weir__loop *loop = call->conn->loop;
    struct batch *b = batch_of(loop);
    int64_t quantity = 1;

    if (!b) {
        weir__reply_error(call->conn, "ERR no memory");
        return;
    }
    if ((b->checks || b->throttles == THROTTLES) && !weir__resp_clear_way(call))
        return;
    if (call->n < 5 || call->n > 6) {
        cell_error(call, WEIR__CELL_USAGE, (struct weir__text){ 0 });
        return;
    }
    const struct weir_plan *plan = find_plan(call, b);
    if (!plan || (call->n == 6 && !read_number(call, 5, &quantity)))
        return;
    struct weir__carried_item *item = &b->items[b->throttles++];
    item->plan = plan;
    item->ask = (struct weir_ask){ .key = { call->args[1].bytes, call->args[1].len },
                                   .cost = quantity,
                                   .now = weir__loop_now(loop) };
}

/* ----------------------------------------------------------- WEIR.CHECK ---- */

static char *put_text(char *to, const char *text, int version)
{
    return text ? weir__resp_put_bulk(to, text, strlen(text)) : weir__resp_put_null(to, version);
}

char *weir__resp_put_ruling(char *to, const struct weir_ruling *r, int version)
{
    const struct weir_decision *d = &r->decision;

    to = weir__resp_put_integer(to, d->allowed);
    to = put_text(to, r->rule, version);
    to = weir__resp_put_integer(weir__resp_put_integer(to, d->limit), d->remaining);
    to = weir__resp_put_integer(weir__resp_put_integer(to, weir__ask_retry_ms(d)),
                                weir__ask_ms(d->reset));
    to = weir__resp_put_integer(weir__resp_put_integer(to, weir__ask_ms(d->wait)), r->level);
    to = put_text(to, weir_reason_name((enum weir_reason)d->reason), version);
    return put_text(to, r->shadow, version);
}

/* A list in RESP3 too, where a map would be at home: a client's library chooses the version, often
 * unasked, and code that reads the list by place would find the word "allowed" first in a map,
 * which is true whatever was decided. */
static void reply_ruling(struct weir__conn *conn, const struct weir_ruling *r)
{
    size_t names = (r->rule ? strlen(r->rule) : 0) + (r->shadow ? strlen(r->shadow) : 0);
    char *to = weir__buffer_room(&conn->loop->out, WEIR__RESP_RULING + names), *begin = to;

    if (!to)
        return;
    memcpy(to, "*10\r\n", 5);
    to = weir__resp_put_ruling(to + 5, r, conn->resp);
    conn->loop->out.len += (size_t)(to - begin);
}

static void reply_rulings(struct weir__conn *conn, const struct weir_ruling *rulings, size_t n)
{
    for (size_t i = 0; i < n; i++)
        reply_ruling(conn, &rulings[i]);
}

/* They have waited: the connection is held until this is sent. */
static void answer_after_wait(struct weir__conn *conn, const struct weir_ruling *rulings, size_t n,
                              const void *context)
{
    (void)context;
    reply_rulings(conn, rulings, n);
    weir__conn_send_out(conn);
}

/* Between MULTI and EXEC nothing can wait: a dry purse is a refusal. */
static bool wait_for_units(struct weir__conn *conn, const struct weir__check *checks,
                           struct weir_ruling *rulings, size_t n)
{
    const struct weir__resp_session *s = conn->session;
    const struct weir__units_wait_answer how = { .answer = answer_after_wait };

    return weir__units_wait(conn, checks, rulings, n, s && s->executing ? NULL : &how);
}

static bool checks_wait(struct weir__conn *conn, struct batch *b, size_t n)
{
    struct weir__check checks[CHECKS];

    for (size_t i = 0; i < n; i++)
        checks[i] = (struct weir__check){ .attrs = b->requests[i].attrs,
                                          .n = b->requests[i].n,
                                          .cost = b->requests[i].ask.cost,
                                          .wait_max = b->requests[i].ask.wait_max };
    return wait_for_units(conn, checks, b->rulings, n);
}

static void flush_checks(struct weir__conn *conn, struct batch *b)
{
    size_t n = b->checks;

    b->checks = b->attrs = 0;
    if (!weir__ask_check_many(conn->loop, b->requests, n, b->rulings) || !checks_wait(conn, b, n))
        reply_rulings(conn, b->rulings, n);
}

void weir__resp_flush(struct weir__conn *conn)
{
    struct batch *b = conn->loop->scratch;

    if (!b)
        return;
    if (b->throttles)
        flush_throttles(conn->loop, b);
    if (b->checks) {
        flush_checks(conn, b);
        weir__conn_took(conn, WEIR__TURN_ASKS);
    }
}

bool weir__resp_clear_way(struct weir__resp_call *call)
{
    weir__resp_flush(call->conn);
    call->put_off = call->conn->held;
    return !call->put_off;
}

/* The engine's number for a name; 0: it has none.  Each place of the cache is filled once: names
 * without a rule cannot use up the numbers. */
static uint32_t number_of(struct weir__loop *loop, struct batch *b, struct weir__text name)
{
    if (name.len >= NAME)
        return 0;
    struct name *n = &b->names[(name.len * 7 + (unsigned char)name.bytes[0] +
                                (unsigned char)name.bytes[name.len - 1] * 3u) %
                               NAMES];
    if (n->len == name.len && memcmp(n->text, name.bytes, name.len) == 0)
        return n->id;
    if (n->len != 0 || memchr(name.bytes, 0, name.len))
        return 0;
    memcpy(n->text, name.bytes, name.len);
    n->len = (uint8_t)name.len;
    n->id = weir_attribute(loop->server->engine, n->text);
    return n->id;
}

/* Attributes and nothing else, none of whose names could be an option. */
static bool is_plain(const struct weir__resp_call *call)
{
    if (call->n % 2 == 0 || call->n > 1 + 2 * WEIR__CALL_ATTRS)
        return false;
    for (size_t i = 1; i < call->n; i += 2)
        if (call->args[i].len == 0 || call->args[i].bytes[0] <= 'Z')
            return false;
    return call->n == 1 || !weir__verb_announces(call->verb, call->args[1]);
}

/* Place for n attributes of one more check; NULL: it is put off. */
static struct weir_attr *make_room(struct weir__resp_call *call, struct batch *b, size_t n)
{
    if ((b->throttles || b->checks == CHECKS || b->attrs + n > ATTRS) &&
        !weir__resp_clear_way(call))
        return NULL;
    return b->all_attrs + b->attrs;
}

static void add_check(struct batch *b, size_t n, struct weir_ask ask)
{
    b->requests[b->checks++] = (struct weir_request){ b->all_attrs + b->attrs, n, ask };
    b->attrs += n;
}

/* Most checks are: the row's own reader would take a tenth longer for all of it. */
static void add_plain(struct weir__resp_call *call, struct batch *b)
{
    struct weir__loop *loop = call->conn->loop;
    struct weir_attr *attr = make_room(call, b, call->n / 2);

    if (!attr)
        return;
    for (const struct weir__text *pair = call->args + 1; pair < call->args + call->n; pair += 2)
        *attr++ =
            (struct weir_attr){ .name = pair[0].bytes,
                                .value = pair[1].len ? pair[1].bytes
                                                     : "", /* a length of 0 means up to the NUL */
                                .name_len = pair[0].len,
                                .value_len = pair[1].len,
                                .id = number_of(loop, b, pair[0]) };
    add_check(b, call->n / 2, (struct weir_ask){ .cost = 1, .now = weir__loop_now(loop) });
}

/* With options; or it is wrong.  An ask with an id is looked up first, and so goes alone. */
static void add_worded(struct weir__resp_call *call, struct batch *b)
{
    struct weir__verb_call c;
    struct weir_ruling ruling;
    bool good = weir__resp_read(call, &c);
    const struct weir__check check = { .attrs = c.attrs,
                                       .n = c.n_attrs,
                                       .cost = c.values[WEIR__CHECK_COST].number,
                                       .wait_max = c.values[WEIR__CHECK_WAIT].number,
                                       .id = c.values[WEIR__CHECK_ID].text };

    if (good && check.id.len == 0) {
        struct weir_attr *attrs = make_room(call, b, check.n);
        if (!attrs)
            return;
        memcpy(attrs, check.attrs, check.n * sizeof(*attrs));
        add_check(
            b, check.n,
            (struct weir_ask){ .cost = check.cost, .wait_max = check.wait_max, .now = c.now });
        return;
    }
    if (!weir__resp_clear_way(call))
        return;
    const char *wrong = good ? weir__ask_check(call->conn->loop, &check, &ruling) : c.message;
    if (wrong)
        weir__reply_error(call->conn, "ERR %s", wrong);
    else if (!weir__is_dry(&ruling) || !wait_for_units(call->conn, &check, &ruling, 1))
        reply_ruling(call->conn, &ruling);
}

void weir__resp_check(struct weir__resp_call *call)
{
    struct batch *b = batch_of(call->conn->loop);

    if (!b)
        weir__reply_error(call->conn, "ERR no memory");
    else if (is_plain(call))
        add_plain(call, b);
    else
        add_worded(call, b);
}
