/* http-answer-decision.c -- decisions as answers: granted, or refused and why.
 *
 *     RateLimit: "per-ip";r=9;t=6            what is left, and after how many seconds all of it is
 *                                            there again, or the same ask passes
 *     RateLimit-Policy: "per-ip";q=10;w=60   the limit, as written
 *     Weir-Level: 0                          for the service behind: 0 free ... 3 refusing
 */
#include <stdio.h>

#include "server/serve/http/http-pen.h"
#include "server/serve/http/http.h"

#define SF_INTEGER_MAX 999999999999999 /* RFC 9651: fifteen digits */
#define NAME_MAX_SHOWN 128             /* of a policy */

/* --------------------------------------------------------------- rulings ---- */

/* The members of a decision that there are in any case.  `known`: there is a limit. */
static void put_ruling(struct weir__pen *pen, const struct weir_ruling *r)
{
    const struct weir_decision *d = &r->decision;
    bool known = (r->rule != NULL && r->count > 0) || r->guard != NULL;

    if (d->allowed)
        WEIR__PEN_PUT(pen, "\"allowed\":true,\"rule\":");
    else
        WEIR__PEN_PUT(pen, "\"allowed\":false,\"rule\":");
    weir__pen_name(pen, r->rule);
    WEIR__PEN_PUT(pen, ",\"limit\":");
    weir__pen_number_or_null(pen, known ? d->limit : -1);
    WEIR__PEN_PUT(pen, ",\"remaining\":");
    weir__pen_number_or_null(pen, !known ? -1 : d->remaining < 0 ? 0 : d->remaining);
    WEIR__PEN_PUT(pen, ",\"retry_ms\":");
    weir__pen_number_or_null(pen, weir__ask_retry_ms(d));
    WEIR__PEN_PUT(pen, ",\"reset_ms\":");
    weir__pen_number_or_null(pen, weir__ask_ms(d->reset));
    WEIR__PEN_PUT(pen, ",\"wait_ms\":");
    weir__pen_number_or_null(pen, weir__ask_ms(d->wait));
    WEIR__PEN_PUT(pen, ",\"level\":");
    weir__pen_number(pen, r->level);
    WEIR__PEN_PUT(pen, ",\"reason\":");
    weir__pen_name(pen, weir_reason_name((enum weir_reason)d->reason));
    WEIR__PEN_PUT(pen, ",\"applied\":");
    weir__pen_number(pen, r->applied);
    WEIR__PEN_PUT(pen, ",\"shadow\":");
    weir__pen_name(pen, r->shadow);
    WEIR__PEN_PUT(pen, ",\"list\":");
    weir__pen_name(pen, r->list);
    weir__pen_text(pen, r->fleet ? ",\"drawn\":true" : "");
}

char *weir__http_ruling_json(char *to, const struct weir_ruling *ruling)
{
    struct weir__pen pen = { to };

    WEIR__PEN_PUT(&pen, "{");
    put_ruling(&pen, ruling);
    WEIR__PEN_PUT(&pen, "}");
    return pen.at;
}

/* The kinds of refusals. */
struct refusal {
    const char *type, *title, *code, *why;
    int status;
};

#define REDUCED "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

/* From WEIR_OPEN on. */
static const struct refusal by_guards[] = {
    { REDUCED, "Breaker open", "weir-open", "its breaker is open", 503 },
    { REDUCED, "Busy", "weir-busy", "all of its permits are out", 503 },
    { REDUCED, "Overloaded", "weir-shed", "there is too much to do, and others come first", 503 },
    { REDUCED, "Switched off", "weir-degraded", "switched off by the degradation", 503 },
    { REDUCED, "Queue full", "weir-full", "its queue is full", 503 },
    { REDUCED, "Waited too long", "weir-late", "the turn did not come in time", 503 },
    { REDUCED, "Cancelled", "weir-cancelled", "the server ends, or the client has hung up", 503 },
};

_Static_assert(sizeof(by_guards) / sizeof(by_guards[0]) == WEIR_CANCELLED - WEIR_OPEN + 1,
               "every reason of guards has its row");

static const struct refusal *refusal_of(const struct weir_decision *d)
{
    static const struct refusal
        limited = { "https://iana.org/assignments/http-problem-types#quota-exceeded",
                    "Limit reached", "weir-limited", "it lets fewer in than this", 429 },
        banned = { "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
                   "Banned", "weir-banned", "refused", 429 },
        denied = { "about:blank", "Denied", "weir-denied", "refused", 403 },
        too_many = { "about:blank", "Too many limits", "weir-too-many",
                     "more limits or guards apply to this request than can be asked", 503 },
        no_room = { "about:blank", "No room", "weir-no-room",
                    "the table is full, and this key is new", 503 },
        dry = { "about:blank", "Nothing drawn", "weir-dry",
                "too little was drawn for this host; try again", 503 },
        alone = { "about:blank", "Alone", "weir-alone",
                  "the fleet cannot be asked, and nothing passes without it", 503 },
        key_busy = { "https://iana.org/assignments/http-problem-types#quota-exceeded",
                     "Too much at once", "weir-key-busy",
                     "this key has all of its permits out, or waits for as many", 429 };

    if (d->reason >= WEIR_OPEN && d->reason <= WEIR_CANCELLED)
        return &by_guards[d->reason - WEIR_OPEN];
    return d->reason == WEIR_DENIED     ? &denied
           : d->reason == WEIR_BANNED   ? &banned
           : d->reason == WEIR_TOO_MANY ? &too_many
           : d->reason == WEIR_NO_ROOM  ? &no_room
           : d->reason == WEIR_DRY      ? &dry
           : d->reason == WEIR_ALONE    ? &alone
           : d->reason == WEIR_KEY_BUSY ? &key_busy
                                        : &limited;
}

/* Seconds, rounded up. */
static int64_t seconds_of(weir_time t)
{
    return t / WEIR_SECOND + (t % WEIR_SECOND > 0);
}

static int64_t at_least(int64_t n, int64_t least)
{
    return n < least ? least : n;
}

static void put_sf_integer(struct weir__pen *pen, int64_t n)
{
    weir__pen_number(pen, n < 0 ? 0 : n > SF_INTEGER_MAX ? SF_INTEGER_MAX : n);
}

/* r: units left.  t: allowed, until all are there again; refused, as Retry-After. */
static void put_left(struct weir__pen *pen, const struct weir_decision *d)
{
    weir_time t = d->allowed ? d->reset : d->retry;

    WEIR__PEN_PUT(pen, ";r=");
    put_sf_integer(pen, d->remaining);
    if (t != WEIR_NEVER) {
        WEIR__PEN_PUT(pen, ";t=");
        put_sf_integer(pen, at_least(seconds_of(t), d->allowed ? 0 : 1));
    }
    WEIR__PEN_PUT(pen, "\r\n");
}

int64_t weir__http_retry_seconds(weir_time retry)
{
    return at_least(seconds_of(retry), 1);
}

static void put_retry_after(struct weir__pen *pen, const struct weir_decision *d)
{
    if (d->allowed || d->retry == WEIR_NEVER)
        return;
    WEIR__PEN_PUT(pen, "Retry-After: ");
    weir__pen_number(pen, weir__http_retry_seconds(d->retry));
    WEIR__PEN_PUT(pen, "\r\n");
}

static void put_ruling_headers(struct weir__pen *pen, const struct weir_ruling *r)
{
    if (r->rule) {
        WEIR__PEN_PUT(pen, "RateLimit: ");
        weir__pen_name(pen, r->rule);
        put_left(pen, &r->decision);
    }
    if (r->rule && r->count > 0) {
        WEIR__PEN_PUT(pen, "RateLimit-Policy: ");
        weir__pen_name(pen, r->rule);
        WEIR__PEN_PUT(pen, ";q=");
        put_sf_integer(pen, r->count);
        WEIR__PEN_PUT(pen, ";w=");
        put_sf_integer(pen, at_least(seconds_of(r->window), 1));
        WEIR__PEN_PUT(pen, "\r\n");
    }
    put_retry_after(pen, &r->decision);
    WEIR__PEN_PUT(pen, "Weir-Level: ");
    weir__pen_number(pen, r->level);
    WEIR__PEN_PUT(pen, "\r\n");
}

/* "login: banned for 9m".  The reason is not known: the rule may have banned it, or an operator. */
static void put_banned(struct weir__pen *pen, weir_time left)
{
    WEIR__PEN_PUT(pen, ": banned");
    if (left == WEIR_NEVER)
        return;
    WEIR__PEN_PUT(pen, " for ");
    weir__pen_time(pen, left);
}

/* "per-ip allows 10 in 1m; try again in 5.2s"; "...; now banned, try again in 15m": the refusal
 * that bans. */
static void put_detail(struct weir__pen *pen, const struct weir_ruling *r)
{
    if (r->decision.reason == WEIR_DENIED) {
        WEIR__PEN_PUT(pen, "on a deny list");
        return;
    }
    if (r->rule)
        weir__pen_put(pen, r->rule, strnlen(r->rule, 63));
    if (r->decision.reason == WEIR_TOO_MANY || r->decision.reason == WEIR_NO_ROOM ||
        r->decision.reason == WEIR_DRY || r->decision.reason == WEIR_ALONE) {
        WEIR__PEN_PUT(pen, ": ");
        weir__pen_text(pen, refusal_of(&r->decision)->why);
        return;
    }
    if (r->count == 0) {
        put_banned(pen, r->decision.retry);
        return;
    }
    WEIR__PEN_PUT(pen, " allows ");
    weir__pen_number(pen, r->count);
    WEIR__PEN_PUT(pen, " in ");
    weir__pen_time(pen, r->window);
    if (r->decision.retry == WEIR_NEVER) {
        WEIR__PEN_PUT(pen, "; an ask as big as this one never passes");
        return;
    }
    weir__pen_text(pen, r->banned_until ? "; now banned, try again in " : "; try again in ");
    weir__pen_time(pen, r->decision.retry);
}

/* {"type":..., up to where the members of the decision follow. */
static void put_refusal(struct weir__pen *pen, const struct refusal *refusal, int status)
{
    WEIR__PEN_PUT(pen, "{\"type\":\"");
    weir__pen_text(pen, refusal->type);
    WEIR__PEN_PUT(pen, "\",\"title\":\"");
    weir__pen_text(pen, refusal->title);
    WEIR__PEN_PUT(pen, "\",\"status\":");
    weir__pen_number(pen, status);
    WEIR__PEN_PUT(pen, ",\"code\":\"");
    weir__pen_text(pen, refusal->code);
    WEIR__PEN_PUT(pen, "\",\"detail\":\"");
}

static void put_refused_ruling(struct weir__pen *pen, const struct refusal *refusal, int status,
                               const struct weir_ruling *r)
{
    put_refusal(pen, refusal, status);
    put_detail(pen, r);
    if (r->rule) {
        WEIR__PEN_PUT(pen, "\",\"violated-policies\":[");
        weir__pen_name(pen, r->rule);
        WEIR__PEN_PUT(pen, "],");
    } else {
        WEIR__PEN_PUT(pen, "\",");
    }
    put_ruling(pen, r);
    WEIR__PEN_PUT(pen, "}");
}

void weir__http_ruling(const struct weir__http_manner *manner, const struct weir_ruling *ruling,
                       int refuse, bool bare)
{
    char headers[512], body[2 * WEIR__HTTP_RULING_MAX];
    struct weir__pen head = { headers }, pen = { body };
    const struct refusal *refusal = ruling->decision.allowed ? NULL : refusal_of(&ruling->decision);
    int status = refusal == NULL ? 200 : refuse ? refuse : refusal->status;

    put_ruling_headers(&head, ruling);
    if (refusal)
        put_refused_ruling(&pen, refusal, status, ruling);
    else if (!bare)
        pen.at = weir__http_ruling_json(body, ruling);
    weir__http_answer(manner, status,
                      refusal ? WEIR__HTTP_PROBLEM
                      : bare  ? NULL
                              : WEIR__HTTP_JSON,
                      (struct weir__text){ headers, (size_t)(head.at - headers) },
                      (struct weir__text){ body, (size_t)(pen.at - body) });
}

/* --------------------------------------------------------------- guards ---- */

/* No limit has refused an ask that is too big for a guard. */
static const struct refusal *refusal_by_guard(const struct weir_decision *d)
{
    static const struct refusal too_big = { "about:blank", "Too big", "weir-too-big",
                                            "it never has that many permits", 429 };

    return d->reason == WEIR_TOO_BIG ? &too_big : refusal_of(d);
}

/* "search: its breaker is open; try again in 5s" */
static void put_guard_detail(struct weir__pen *pen, const struct refusal *refusal,
                             const struct weir_ruling *r)
{
    weir__pen_put(pen, r->guard, strnlen(r->guard, 63));
    WEIR__PEN_PUT(pen, ": ");
    weir__pen_text(pen, refusal->why);
    if (r->decision.retry == WEIR_NEVER || r->decision.retry <= 0)
        return;
    WEIR__PEN_PUT(pen, "; try again in ");
    weir__pen_time(pen, r->decision.retry);
}

static void put_entered(struct weir__pen *pen, const struct weir__entered *e, const char *token)
{
    put_ruling(pen, &e->ruling);
    WEIR__PEN_PUT(pen, ",\"guard\":");
    weir__pen_name(pen, e->ruling.guard);
    WEIR__PEN_PUT(pen, ",\"permit\":");
    if (token[0]) {
        WEIR__PEN_PUT(pen, "\"");
        weir__pen_text(pen, token);
        WEIR__PEN_PUT(pen, "\",\"lease_ms\":");
        weir__pen_number(pen, weir__ask_ms(e->lease));
    } else {
        WEIR__PEN_PUT(pen, "null,\"lease_ms\":null");
    }
}

/* The rules' fallback as a member: the caller passes it on to its own client.  Not the answer
 * itself, whose status may be 200: to a caller that looks no further that is a permit. */
static bool add_fallback(struct weir__buffer *out, struct weir *engine, const char *guard)
{
    struct weir_fallback fallback;
    char body[WEIR_FALLBACK_MAX];

    if (!weir_fallback_get(engine, guard, &fallback, body, sizeof(body)))
        return false;
    weir__buffer_open(out, "fallback", '{');
    weir__buffer_member_number(out, "status", fallback.status);
    weir__buffer_member(out, "type", fallback.type);
    weir__buffer_member_name(out, "body");
    weir__buffer_json(out, body, fallback.len);
    weir__buffer_close(out, "}");
    return true;
}

static void refuse_by_guard(const struct weir__http_manner *manner,
                            const struct weir__entered *entered)
{
    const struct weir_ruling *r = &entered->ruling;
    const struct refusal *refusal = refusal_by_guard(&r->decision);
    char headers[512], body[2 * WEIR__HTTP_RULING_MAX];
    struct weir__pen head = { headers }, pen = { body };
    struct weir__buffer out = { 0 };

    put_ruling_headers(&head, r);
    WEIR__PEN_PUT(&head, "Weir-Allowed: false\r\n");
    put_refusal(&pen, refusal, refusal->status);
    put_guard_detail(&pen, refusal, r);
    WEIR__PEN_PUT(&pen, "\",");
    put_entered(&pen, entered, "");
    weir__buffer_add(&out, body, (size_t)(pen.at - body));
    if (add_fallback(&out, manner->loop->server->engine, r->guard))
        head.at += sprintf(head.at, "Weir-Fallback: %.63s\r\n", r->guard);
    weir__buffer_text(&out, "}");
    if (out.failed)
        manner->out->failed = true;
    else
        weir__http_answer(manner, refusal->status, WEIR__HTTP_PROBLEM,
                          (struct weir__text){ headers, (size_t)(head.at - headers) },
                          (struct weir__text){ out.bytes, out.len });
    weir__buffer_free(&out);
}

void weir__http_entered(const struct weir__http_manner *manner, const struct weir__entered *entered)
{
    const struct weir_ruling *r = &entered->ruling;
    char headers[512], body[WEIR__HTTP_RULING_MAX + WEIR__PERMIT_TOKEN_MAX],
        token[WEIR__PERMIT_TOKEN_MAX];
    struct weir__pen head = { headers }, pen = { body };

    if (!r->decision.allowed && r->guard == NULL) {
        weir__http_ruling(manner, r, 0, false); /* by a limit, a ban, a list */
        return;
    }
    if (!r->decision.allowed) {
        refuse_by_guard(manner, entered);
        return;
    }
    weir__ask_token(manner->loop, &entered->permits, token);
    put_ruling_headers(&head, r);
    WEIR__PEN_PUT(&pen, "{");
    put_entered(&pen, entered, token);
    WEIR__PEN_PUT(&pen, "}");
    weir__http_answer(manner, 200, WEIR__HTTP_JSON,
                      (struct weir__text){ headers, (size_t)(head.at - headers) },
                      (struct weir__text){ body, (size_t)(pen.at - body) });
}

/* ------------------------------------------------- decisions on a key ---- */

/* ,"retry_ms":5 or ,"retry_ns":5000000; a time below 0 is null. */
static void put_time_member(struct weir__pen *pen, const char *name, bool ns, weir_time t)
{
    WEIR__PEN_PUT(pen, ",\"");
    weir__pen_text(pen, name);
    if (ns)
        WEIR__PEN_PUT(pen, "_ns\":");
    else
        WEIR__PEN_PUT(pen, "_ms\":");
    weir__pen_number_or_null(pen, t < 0 ? -1 : weir__in_unit(t, ns ? 1 : WEIR_MILLISECOND));
}

static void put_decision(struct weir__pen *pen, const struct weir_decision *d, bool ns)
{
    if (d->allowed)
        WEIR__PEN_PUT(pen, "\"allowed\":true,\"limit\":");
    else
        WEIR__PEN_PUT(pen, "\"allowed\":false,\"limit\":");
    weir__pen_number(pen, d->limit);
    WEIR__PEN_PUT(pen, ",\"remaining\":");
    weir__pen_number(pen, at_least(d->remaining, 0));
    put_time_member(pen, "retry", ns, d->allowed ? -1 : d->retry);
    put_time_member(pen, "reset", ns, d->reset);
    put_time_member(pen, "wait", ns, d->wait);
    WEIR__PEN_PUT(pen, ",\"reason\":");
    weir__pen_name(pen, weir_reason_name((enum weir_reason)d->reason));
}

/* A string as RFC 9651 has it; false if it cannot be one: only ASCII that can be seen, and the
 * space. */
static bool put_sf_string(struct weir__pen *pen, struct weir__text text)
{
    struct weir__pen p = *pen;

    if (text.len == 0 || text.len > NAME_MAX_SHOWN)
        return false;
    WEIR__PEN_PUT(&p, "\"");
    for (size_t i = 0; i < text.len; i++) {
        char c = text.bytes[i];
        if (c < ' ' || c > '~')
            return false;
        if (c == '"' || c == '\\')
            WEIR__PEN_PUT(&p, "\\");
        *p.at++ = c;
    }
    WEIR__PEN_PUT(&p, "\"");
    *pen = p;
    return true;
}

static void put_decision_headers(struct weir__pen *pen, const struct weir_decision *d,
                                 struct weir__text policy)
{
    struct weir__pen begin = *pen;

    WEIR__PEN_PUT(pen, "RateLimit: ");
    const char *name = pen->at;
    if (put_sf_string(pen, policy)) {
        size_t len = (size_t)(pen->at - name);
        put_left(pen, d);
        WEIR__PEN_PUT(pen, "RateLimit-Policy: ");
        weir__pen_put(pen, name, len);
        WEIR__PEN_PUT(pen, ";q=");
        put_sf_integer(pen, d->limit);
        WEIR__PEN_PUT(pen, "\r\n");
    } else {
        *pen = begin;
    }
    put_retry_after(pen, d);
}

void weir__http_decision(const struct weir__http_manner *manner, const struct weir__verb_call *call)
{
    const struct weir_decision *d = &call->taken.answer.decision;
    const char *reservation = call->taken.answer.reservation;
    bool refused = !d->allowed;
    char headers[1024], body[WEIR__HTTP_RULING_MAX];
    struct weir__pen head = { headers }, pen = { body };

    put_decision_headers(&head, d, call->taken.policy);
    if (refused) {
        put_refusal(&pen, refusal_of(d), 429);
        weir__pen_text(&pen, d->retry == WEIR_NEVER ? "an ask as big as this one never passes"
                                                    : "the key has used its limit up");
        WEIR__PEN_PUT(&pen, "\",");
    } else {
        WEIR__PEN_PUT(&pen, "{");
    }
    put_decision(&pen, d, call->taken.unit == 1);
    if (d->allowed && reservation[0]) {
        WEIR__PEN_PUT(&pen, ",\"reservation\":\"");
        weir__pen_put(&pen, reservation,
                      strnlen(reservation, sizeof(call->taken.answer.reservation)));
        WEIR__PEN_PUT(&pen, "\"");
    }
    WEIR__PEN_PUT(&pen, "}");
    weir__http_answer(manner, refused ? 429 : 200, refused ? WEIR__HTTP_PROBLEM : WEIR__HTTP_JSON,
                      (struct weir__text){ headers, (size_t)(head.at - headers) },
                      (struct weir__text){ body, (size_t)(pen.at - body) });
}
