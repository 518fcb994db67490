/* take-and-draw.c -- limits whose states live in Redis: the calls of weir-redis.h that take, look,
 * give back, draw, repay and reset. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/redis/account-asks.h"
#include "cluster/redis/thread.h"

#define DAY (86400 * WEIR_SECOND)

_Static_assert(WEIR_REDIS_ITEMS_MAX == WEIR__ACCOUNT_ITEMS_MAX, "as many as a script takes");

struct weir_redis_limit {
    struct weir_plan plan;
};

int weir_redis_limit_create(struct weir_redis_limit **out, const struct weir_limit *limit,
                            struct weir_error *error)
{
    struct weir_redis_limit *made = malloc(sizeof(*made));
    int code = made ? weir__plan_make(&made->plan, limit, error)
                    : weir__fail(error, WEIR_NO_MEMORY, "no memory for a limit");

    if (code == WEIR_OK)
        *out = made;
    else
        free(made);
    return code;
}

void weir_redis_limit_destroy(struct weir_redis_limit *limit)
{
    free(limit);
}

/* An ask on its way from a caller to the thread and back. */
struct pending {
    struct weir__redis_job job;
    struct weir__carry carry;
    struct weir__account_item items[WEIR_REDIS_ITEMS_MAX];
    struct weir_redis_result *result; /* of a caller that waits; else */
    void (*done)(void *context, const struct weir_redis_result *result);
    void *context;
    uint32_t ready; /* the word a caller sleeps on */
    char bytes[];   /* keys, of a caller that does not wait */
};

/* -------------------------------------------------------------- results ---- */

static void fill_result(struct weir_redis_result *out, const struct weir__account_call *call,
                        enum weir__redis_outcome outcome, const char *why)
{
    *out = (struct weir_redis_result){ .outcome = (enum weir_redis_outcome)outcome };
    if (outcome != WEIR__REDIS_ANSWERED) {
        snprintf(out->why, sizeof(out->why), "%s", why);
        return;
    }
    out->allowed = true;
    out->units = call->drawn.units;
    out->share = call->drawn.share;
    out->spent = call->drawn.spent;
    out->drawn_at = call->drawn.at;
    out->life = call->drawn.life;
    out->found = call->found;
    if (call->verb == WEIR__ACCOUNT_REPAY)
        out->units = call->items[0].units;
    if (call->verb == WEIR__ACCOUNT_GIVE || call->verb == WEIR__ACCOUNT_REPAY ||
        call->verb == WEIR__ACCOUNT_RESET)
        return;
    for (size_t i = 0; i < call->n; i++) {
        out->decisions[i] = call->items[i].decision;
        out->allowed = out->allowed && out->decisions[i].allowed;
    }
}

/* The waiting caller may be gone as soon as the word is set. */
static void finished(struct weir__carry *carry, enum weir__redis_outcome outcome, const char *why)
{
    struct pending *p = carry->context;
    struct weir_redis_result result;

    fill_result(p->result ? p->result : &result, &carry->call, outcome, why);
    weir__carry_free(carry);
    if (p->result) {
        weir__redis_ready_set(&p->ready);
        return;
    }
    p->done(p->context, &result);
    free(p);
}

static void begin(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now)
{
    struct pending *p = (struct pending *)job;

    weir__carry_begin(&p->carry, client, now);
}

/* ------------------------------------------------------------- requests ---- */

/* For how long an id is remembered, in ms.  An ask is sent again until its deadline, and after that
 * its caller may ask again.  A timeout may be for ever: at most a day of it counts. */
static int64_t keep_of(const struct weir_redis_request *r)
{
    weir_time waits = r->timeout < 0 ? 0 : r->timeout < DAY ? r->timeout : DAY;

    return weir__receipt_keep(r->id_life / WEIR_MILLISECOND + (r->id_life % WEIR_MILLISECOND > 0)) +
           waits / WEIR_MILLISECOND;
}

static void fill_pending(struct pending *p, enum weir_redis_verb verb,
                         const struct weir_redis_request *r)
{
    const struct weir_redis_draw *d = &r->draw;

    p->job.begin = begin;
    p->carry = (struct weir__carry){
        .call = { .verb = (enum weir__account_verb)verb,
                  .items = p->items,
                  .n = r->n,
                  .near = weir__clock_real(),
                  .id = r->id,
                  .keep = keep_of(r),
                  .demand = d->demand,
                  .draw = { .waiting = d->waiting,
                            .have = d->have,
                            .asked = d->asked,
                            .fast = d->fast,
                            .slow = d->slow },
                  .drawn_at = d->drawn_at },
        .deadline = weir__redis_deadline(r->timeout),
        .done = finished,
        .context = p,
    };
    for (size_t i = 0; i < r->n; i++) {
        const struct weir_redis_item *it = &r->items[i];
        p->items[i] = (struct weir__account_item){
            .key = it->key,
            .plan = it->limit ? &it->limit->plan : NULL,
            .ask = { .key = it->key, .cost = it->cost, .wait_max = it->wait_max },
        };
    }
}

/* What is wrong with a request; NULL: nothing. */
static const char *problem_of(enum weir_redis_verb verb, const struct weir_redis_request *r)
{
    if (r->n < 1 || r->n > WEIR_REDIS_ITEMS_MAX)
        return "there are 1 to 32 keys in an ask";
    for (size_t i = 0; i < r->n; i++) {
        if (!r->items[i].limit && verb != WEIR_REDIS_RESET)
            return "a key has no limit";
    }
    return NULL;
}

static enum weir_redis_outcome wait_for(struct weir_redis *redis, enum weir_redis_verb verb,
                                        const struct weir_redis_request *r,
                                        struct weir_redis_result *result)
{
    const char *problem = problem_of(verb, r);
    struct pending p = { .result = result };

    if (problem) {
        fill_result(result, NULL, WEIR__REDIS_UNDONE, problem);
        return result->outcome;
    }
    fill_pending(&p, verb, r);
    weir__redis_thread_put(redis, &p.job);
    weir__redis_ready_wait(&p.ready);
    return result->outcome;
}

static void copy_key(struct weir_key *key, char **to)
{
    memcpy(*to, key->len ? key->bytes : "", key->len);
    key->bytes = *to;
    *to += key->len;
}

static size_t bytes_of(const struct weir_redis_request *r)
{
    size_t size = r->id.len + r->draw.demand.len;

    for (size_t i = 0; i < r->n; i++)
        size += r->items[i].key.len;
    return size;
}

void weir_redis_decide(struct weir_redis *redis, enum weir_redis_verb verb,
                       const struct weir_redis_request *r,
                       void (*done)(void *context, const struct weir_redis_result *result),
                       void *context)
{
    const char *problem = problem_of(verb, r);
    struct pending *p = problem ? NULL : calloc(1, sizeof(*p) + bytes_of(r));

    if (!p) {
        struct weir_redis_result none;
        fill_result(&none, NULL, WEIR__REDIS_UNDONE,
                    problem ? problem : "there was no memory for it");
        done(context, &none);
        return;
    }
    char *to = p->bytes;
    fill_pending(p, verb, r);
    copy_key(&p->carry.call.id, &to);
    copy_key(&p->carry.call.demand, &to);
    for (size_t i = 0; i < r->n; i++)
        copy_key(&p->items[i].key, &to);
    p->done = done;
    p->context = context;
    weir__redis_thread_put(redis, &p->job);
}

enum weir_redis_outcome weir_redis_take(struct weir_redis *redis,
                                        const struct weir_redis_request *request,
                                        struct weir_redis_result *result)
{
    return wait_for(redis, WEIR_REDIS_TAKE, request, result);
}

enum weir_redis_outcome weir_redis_peek(struct weir_redis *redis,
                                        const struct weir_redis_request *request,
                                        struct weir_redis_result *result)
{
    return wait_for(redis, WEIR_REDIS_PEEK, request, result);
}

enum weir_redis_outcome weir_redis_give(struct weir_redis *redis,
                                        const struct weir_redis_request *request,
                                        struct weir_redis_result *result)
{
    return wait_for(redis, WEIR_REDIS_GIVE, request, result);
}

enum weir_redis_outcome weir_redis_draw(struct weir_redis *redis,
                                        const struct weir_redis_request *request,
                                        struct weir_redis_result *result)
{
    return wait_for(redis, WEIR_REDIS_DRAW, request, result);
}

enum weir_redis_outcome weir_redis_repay(struct weir_redis *redis,
                                         const struct weir_redis_request *request,
                                         struct weir_redis_result *result)
{
    return wait_for(redis, WEIR_REDIS_REPAY, request, result);
}

enum weir_redis_outcome weir_redis_reset(struct weir_redis *redis,
                                         const struct weir_redis_request *request,
                                         struct weir_redis_result *result)
{
    return wait_for(redis, WEIR_REDIS_RESET, request, result);
}
