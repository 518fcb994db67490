/* http-guards.c -- work in progress, over HTTP: enter, exit, renew. */
#include <stdio.h>
#include <string.h>

#include "match/rules.h"
#include "server/serve/http/http.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---------------------------------------------------------------- enter ---- */

/* As it comes in. */
struct entering {
    struct weir__attributes_in in; /* first, as weir__members_begin_request wants it */
    struct weir__span guard, user, user_class, priority;
    int64_t cost, wait_ms;
};

#define AT(member) offsetof(struct entering, member)

static const struct weir__member enter_rows[] = {
    { "attributes", WEIR__MEMBER_OBJECT, false, 0 },
    { "guard", WEIR__MEMBER_TEXT, false, AT(guard) },
    { "cost", WEIR__MEMBER_COUNT, false, AT(cost) },
    { "priority", WEIR__MEMBER_ANY, false, AT(priority) }, /* it may be below 0 */
    { "class", WEIR__MEMBER_TEXT, false, AT(user_class) },
    { "user", WEIR__MEMBER_ANY, false, AT(user) },
    { "wait_ms", WEIR__MEMBER_COUNT, false, AT(wait_ms) },
};

enum { GUARD_ROW = 1 };

#undef AT

static bool read_priority(struct weir__members *members, struct weir__span text, int64_t *out)
{
    bool below = text.len > 0 && text.bytes[0] == '-';
    int n = text.len == 1u + below ? text.bytes[below] - '0' : 10;

    if (text.len == 0)
        return true;
    if (n < 0 || n > (below ? -WEIR_PRIORITY_MIN : WEIR_PRIORITY_MAX))
        return weir__members_wrong(members, "'priority' is " WEIR__PRIORITY);
    *out = below ? -n : n;
    return true;
}

static bool read_entering(struct weir__members *members, struct entering *e, struct weir__span text,
                          struct weir__enter *out)
{
    if (!weir__members_read(members, text) || !read_priority(members, e->priority, &out->priority))
        return false;
    if (e->wait_ms > INT64_MAX / WEIR_MILLISECOND)
        return weir__members_wrong(members, "'wait_ms' is at most %lld",
                                   (long long)(INT64_MAX / WEIR_MILLISECOND));
    if (members->given >> GUARD_ROW & 1 && e->guard.len == 0)
        return weir__members_wrong(
            members, "'guard' is empty: name one, or leave it out for those of the rules");
    out->attrs = e->in.attrs;
    out->n = e->in.n;
    out->guard = e->guard;
    out->user = e->user;
    out->user_class = e->user_class;
    out->cost = e->cost;
    out->wait_max = e->wait_ms * WEIR_MILLISECOND;
    return true;
}

/* What the rules say to answer instead; false: nothing. */
static bool answer_fallback(const struct weir__http_manner *manner, const struct weir_ruling *r)
{
    struct weir_fallback fallback;
    char headers[192], body[WEIR_FALLBACK_MAX];

    if (!weir_fallback_get(manner->loop->server->engine, r->guard, &fallback, body, sizeof(body)))
        return false;
    int n = snprintf(headers, sizeof(headers), "Weir-Fallback: %.63s\r\n", r->guard);
    if (r->decision.retry != WEIR_NEVER)
        n += snprintf(headers + n, sizeof(headers) - (size_t)n, "Retry-After: %lld\r\n",
                      (long long)weir__http_retry_seconds(r->decision.retry));
    weir__http_answer(manner, fallback.status, fallback.type,
                      (struct weir__span){ headers, (size_t)n },
                      (struct weir__span){ body, fallback.len });
    return true;
}

static void answer(const struct weir__http_manner *manner, const struct weir__entered *entered)
{
    const struct weir_ruling *r = &entered->ruling;

    if (r->decision.allowed || r->guard == NULL || !answer_fallback(manner, r))
        weir__http_entered(manner, entered);
}

/* It has waited: the connection is held until this is sent. */
static void answer_later(struct weir__conn *conn, const struct weir__entered *entered,
                         const void *context)
{
    struct weir__http_manner manner = *(const struct weir__http_manner *)context;
    struct weir__buffer out = { 0 };

    manner.out = &out;
    manner.close |= conn->ending; /* the server drains meanwhile */
    answer(&manner, entered);
    if (!out.failed)
        weir__conn_send(conn, out.bytes, out.len);
    if (out.failed || manner.close)
        weir__conn_end(conn);
    weir__buffer_free(&out);
}

void weir__http_enter(struct weir__http_call *call)
{
    struct weir_attr attrs[WEIR__CHECK_ATTRS];
    char names[WEIR__CHECK_ATTRS * WEIR__ATTRIBUTE_SIZE + WEIR__ATTRIBUTE_SIZE];
    struct entering e = { .in = { .attrs = attrs,
                                  .max = WEIR__CHECK_ATTRS,
                                  .names = names,
                                  .names_end = names + sizeof(names) },
                          .cost = 1 };
    struct weir__enter enter = { .cost = 1 };
    struct weir__entered entered;
    struct weir__members members;
    struct weir_error error = { 0 };
    const struct weir__later later = { answer_later, &call->manner, sizeof(call->manner) };
    int status = 400;

    weir__members_begin_request(&members, enter_rows, COUNT_OF(enter_rows), &e);
    if (!read_entering(&members, &e, call->body, &enter))
        weir__http_bad(call, 400, members.problem);
    else if ((status = weir__ask_enter(call->conn, &enter, &later, &entered, &error)) == 200)
        answer(&call->manner, &entered);
    else if (status == 202)
        call->manner.close = false; /* answer_later sees to it */
    else
        weir__http_bad(call, status, error.text);
    weir__members_free(&members);
}

/* ------------------------------------------------------- exit and renew ---- */

struct leaving {
    struct weir__span permit, outcome;
    int64_t took_ms;
};

static const struct weir__member exit_rows[] = {
    { "permit", WEIR__MEMBER_TEXT, true, offsetof(struct leaving, permit) },
    { "outcome", WEIR__MEMBER_TEXT, true, offsetof(struct leaving, outcome) },
    { "took_ms", WEIR__MEMBER_COUNT, false, offsetof(struct leaving, took_ms) },
};

static bool read_permits(struct weir__http_call *call, struct weir__span token,
                         struct weir__permits *out)
{
    struct weir_error error = { 0 };
    int status = weir__ask_permits(call->conn->loop, token, out, &error);

    if (status != 200)
        weir__http_bad(call, status, error.text);
    return status == 200;
}

void weir__http_exit(struct weir__http_call *call)
{
    struct weir__members members;
    struct leaving l = { .took_ms = -1 };
    struct weir__permits permits;
    enum weir_outcome outcome;

    weir__members_begin(&members, exit_rows, COUNT_OF(exit_rows), &l);
    if (!weir__members_read(&members, call->body) || !weir__members_whole(&members)) {
        weir__http_bad(call, 400, members.problem);
    } else if (!weir__outcome_of(l.outcome, &outcome)) {
        weir__http_bad(call, 400, "'outcome' is " WEIR__OUTCOMES);
    } else if (l.took_ms > INT64_MAX / WEIR_MILLISECOND) {
        weir__http_bad(call, 400, "'took_ms' is too long");
    } else if (read_permits(call, l.permit, &permits)) {
        weir_time took = l.took_ms < 0 ? -1 : l.took_ms * WEIR_MILLISECOND;
        weir__http_json(&call->manner, 200,
                        weir__ask_exit(call->conn->loop, &permits, outcome, took)
                            ? "{\"exited\":true}"
                            : "{\"exited\":false}");
    }
    weir__members_free(&members);
}

static const struct weir__member renew_rows[] = { { "permit", WEIR__MEMBER_TEXT, true, 0 } };

void weir__http_renew(struct weir__http_call *call)
{
    struct weir__members members;
    struct weir__span token = { 0 };
    struct weir__permits permits;
    char fresh[WEIR__PERMIT_TOKEN_MAX], text[WEIR__PERMIT_TOKEN_MAX + 64];

    weir__members_begin(&members, renew_rows, COUNT_OF(renew_rows), &token);
    if (!weir__members_read(&members, call->body) || !weir__members_whole(&members)) {
        weir__http_bad(call, 400, members.problem);
    } else if (read_permits(call, token, &permits)) {
        weir_time lease = weir__ask_renew(call->conn->loop, &permits);
        weir__ask_token(call->conn->loop, &permits, fresh);
        if (fresh[0])
            snprintf(text, sizeof(text), "{\"permit\":\"%s\",\"lease_ms\":%lld}", fresh,
                     (long long)weir__ask_ms(lease));
        weir__http_json(&call->manner, 200,
                        fresh[0] ? text : "{\"permit\":null,\"lease_ms\":null}");
    }
    weir__members_free(&members);
}
