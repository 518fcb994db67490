/* decide.c -- deciding, the same for every protocol: counts decisions, follows refused keys,
 * reports bans. */
#include "server/serve/decide/decide.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "server/serve/decide/adhoc.h"
#include "server/serve/decide/ask-ids.h"
#include "server/serve/decide/reservations.h"
#include "server/serve/events/top-keys.h"
#include "server/base/human-numbers.h"
#include "weir-fleet.h"

#define DRY_RETRY (20 * WEIR_MILLISECOND)

int64_t weir__ask_ms(weir_time t)
{
    return weir__in_unit(t, WEIR_MILLISECOND);
}

int64_t weir__ask_retry_ms(const struct weir_decision *d)
{
    return d->allowed ? -1 : weir__ask_ms(d->retry);
}

/* ---------------------------------------------------------------- rules ---- */

void weir__ask_note_refused(struct weir__loop *loop, const struct weir_ruling *r, const char *key,
                            weir_time now)
{
    struct weir__server *server = loop->server;
    const char *rule = r->rule ? r->rule : r->list ? WEIR__TOP_DENY : "";
    size_t len = strlen(key);

    if (len)
        weir__top_add(server->top, loop->index, rule, key, len, 1);
    if (r->decision.reason != WEIR_BANNED &&
        r->banned_until > now) { /* this very refusal was one too many */
        struct weir__event_facts facts = { .rule = r->rule, .key = key, .until = r->banned_until };
        weir__events_emit_often(server->events, WEIR__EVENT_BAN, now, &facts);
    }
}

static void count_checks(struct weir__loop *loop, size_t n, size_t allowed)
{
    weir__counter_add(&loop->counters, WEIR__COUNT_CHECK_ALLOWED, (int64_t)allowed);
    if (n > allowed)
        weir__counter_add(&loop->counters, WEIR__COUNT_CHECK_REFUSED, (int64_t)(n - allowed));
}

void weir__ask_count(struct weir__loop *loop, const struct weir_ruling *ruling, const char *key,
                     weir_time now)
{
    count_checks(loop, 1, ruling->decision.allowed);
    if (!ruling->decision.allowed)
        weir__ask_note_refused(loop, ruling, key, now);
}

static void note_refusal(struct weir__loop *loop, const struct weir_request *request,
                         const struct weir_ruling *ruling, const char *key)
{
    weir__ask_note_refused(loop, ruling, key, request->ask.now);
    if (ruling->fleet && loop->server->fleet)
        weir_fleet_refused(loop->server->fleet, ruling, key, request->ask.cost);
}

/* Those that were refused; returns how many found a purse dry. */
static size_t note_refusals(struct weir__loop *loop, const struct weir_request *requests, size_t n,
                            const struct weir_ruling *rulings, char (*keys)[WEIR_KEY_TEXT])
{
    size_t dry = 0;

    for (size_t i = 0; i < n; i++) {
        if (weir__is_dry(&rulings[i]))
            dry++;
        else if (!rulings[i].decision.allowed)
            note_refusal(loop, &requests[i], &rulings[i], keys[i]);
    }
    return dry;
}

bool weir__ask_check_many(struct weir__loop *loop, const struct weir_request *requests, size_t n,
                          struct weir_ruling *rulings)
{
    char keys[WEIR__ASK_MANY][WEIR_KEY_TEXT];
    size_t dry = 0;

    while (n > 0) {
        size_t part = n < WEIR__ASK_MANY ? n : WEIR__ASK_MANY;
        weir_time began = weir__counters_begin(&loop->counters);
        size_t allowed = weir_check_many_keys(loop->server->engine, requests, part, rulings, keys);
        weir__counters_end(&loop->counters, began, part);
        size_t waits = allowed < part ? note_refusals(loop, requests, part, rulings, keys) : 0;
        count_checks(loop, part - waits, allowed);
        dry += waits;
        requests += part;
        rulings += part;
        n -= part;
    }
    return dry > 0;
}

static void decide(struct weir__loop *loop, const struct weir__check *check,
                   struct weir_ruling *ruling)
{
    const struct weir_request request = {
        check->attrs,
        check->n,
        { .cost = check->cost, .wait_max = check->wait_max, .now = weir__loop_now(loop) }
    };

    weir__ask_check_many(loop, &request, 1, ruling);
}

/* Retries of an ask that waits do not wait too, or each would be charged: they come again. */
static void end_id(struct weir__ask_ids *ids, size_t hold, const struct weir_ruling *ruling)
{
    struct weir_ruling answer = *ruling;

    if (weir__is_dry(ruling))
        answer.decision.retry = DRY_RETRY;
    weir__ask_ids_end(ids, hold, &answer);
}

const char *weir__ask_check(struct weir__loop *loop, const struct weir__check *check,
                            struct weir_ruling *ruling)
{
    struct weir__ask_ids *ids = loop->server->ask_ids;
    size_t hold;

    if (check->id.len == 0) {
        decide(loop, check, ruling);
        return NULL;
    }
    if (check->id.len > WEIR__ASK_ID_MAX)
        return "an ask id has at most 128 bytes";
    const struct weir__ask_id id = { check->id.bytes, check->id.len,
                                     weir__ask_fingerprint(loop->server->table->secrets, check),
                                     weir__loop_now(loop), loop->fed };
    switch (weir__ask_ids_begin(ids, &id, ruling, &hold)) {
    case WEIR__ASK_ID_UNKEPT:
        decide(loop, check, ruling);
        return NULL;
    case WEIR__ASK_ID_REPEATED:
        weir__counter_add(&loop->counters, WEIR__COUNT_ASK_ID_REPEATED, 1);
        return NULL;
    case WEIR__ASK_ID_CLASH:
        return "this ask id was used for another request; every request needs its own";
    case WEIR__ASK_ID_NEW:
    default:
        decide(loop, check, ruling);
        end_id(ids, hold, ruling);
        return NULL;
    }
}

/* ------------------------------------------------------ limits of one's own ---- */

static bool decide_adhoc(struct weir_limiter *limiter, const struct weir__adhoc_ask *a,
                         const struct weir_ask *ask, struct weir_decision *d)
{
    if (a->verb == WEIR__PEEK)
        return weir_peek(limiter, ask, d);
    if (a->verb == WEIR__TAKE)
        return weir_take(limiter, ask, d);
    weir_give(limiter, ask);
    return true;
}

/* Others have no decision: give does not decide, and peek takes nothing. */
static void count_take(struct weir__loop *loop, const struct weir__adhoc_ask *a,
                       const struct weir_decision *d)
{
    if (a->verb != WEIR__TAKE && a->verb != WEIR__RESERVE)
        return;
    weir__counter_add(&loop->counters,
                      d->allowed ? WEIR__COUNT_TAKE_ALLOWED : WEIR__COUNT_TAKE_REFUSED, 1);
    if (!d->allowed)
        weir__top_add(loop->server->top, loop->index, WEIR__TOP_TAKES, a->key.bytes, a->key.len, 1);
}

/* It has no state: the answer of a fresh key.  Nothing was taken, so there is nothing to give. */
static int decide_fresh(const struct weir_plan *plan, const struct weir__adhoc_ask *a,
                        const struct weir_ask *ask, struct weir_decision *d,
                        struct weir_error *error)
{
    if (a->verb == WEIR__GIVE)
        return WEIR_OK;
    void *state = calloc(1, weir_plan_state_size(plan));
    if (state == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    weir_step_peek(plan, state, ask, d);
    free(state);
    return WEIR_OK;
}

/* Under a name, even a take of nothing changes the limit. */
static bool only_reads(const struct weir__adhoc_ask *a)
{
    return a->verb == WEIR__PEEK || a->verb == WEIR__GIVE || (a->cost == 0 && a->name.len == 0);
}

int weir__ask_adhoc(struct weir__loop *loop, const struct weir__adhoc_ask *a,
                    struct weir__adhoc_answer *answer, struct weir_error *error)
{
    struct weir__server *server = loop->server;
    struct weir_ask ask = { .key = { a->key.bytes, a->key.len },
                            .cost = a->cost,
                            .wait_max = a->wait_max,
                            .now = weir__loop_now(loop) };
    const struct weir__adhoc_wanted wanted = { a->limit, a->name, ask.now, loop->fed };
    struct weir_limiter *limiter = NULL;
    struct weir_plan plan;
    int code = only_reads(a) ? weir__adhoc_look(server->adhoc, &wanted, &limiter, &plan, error)
                             : weir__adhoc_find(server->adhoc, &wanted, &limiter, error);

    if (code != WEIR_OK)
        return code;
    if (limiter == NULL) {
        code = decide_fresh(&plan, a, &ask, &answer->decision, error);
    } else if (a->verb == WEIR__RESERVE) {
        const struct weir__reserve what = { limiter, &ask, a->lifetime, loop->fed };
        code = weir__reservations_reserve(server->reservations, &what, answer->reservation,
                                          &answer->decision, error);
    } else {
        decide_adhoc(limiter, a, &ask, &answer->decision);
    }
    if (code == WEIR_OK)
        count_take(loop, a, &answer->decision);
    return code;
}
