/* door-redis.c -- vector doors into a redis-server.
 *
 * Each case has a key of its own, and a change is an ask for nothing under the new limit.
 *
 * redis-module: the time of each line is set at the module's test clock, and times are in ns both
 * ways, so nothing is rounded.
 *
 * redis: the scripts, with their clock read from two keys, and lives in seconds instead of
 * milliseconds, so that nothing expires meanwhile.  A script's clock has microseconds.  So a case
 * with times between them is run a thousand times slower: a nanosecond of the vector is one
 * microsecond of Redis, and every edge is met exactly.  Where that cannot be (dates, late
 * asks, the far future), a line that expects a grant is asked at the next microsecond, one
 * that expects a refusal at the last, and times may be off by one.
 */
#include "door-redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/account/call.h"
#include "redis-scripts.h"
#include "redis-server.h"
#include "resp-client.h"
#include "server/base/complain.h"

struct redis_door {
    struct weir__door door;
    struct redis_server server;
    bool by_scripts;
    struct redis_scripts scripts;
    int cases;
    char said[sizeof((struct weir_error){ 0 }).text]; /* the last complaint, not to be repeated */
};

struct run {
    struct redis_door *redis;
    char key[32], limit[192]; /* redis-module */
    struct weir_plan plan;    /* redis */
    weir_time slower;         /* redis: 1 or 1000 */
    const struct weir__vector_line *line;
};

/* ---------------------------------------------------------------- asking ---- */

static int set_clock(struct redis_door *r, weir_time now, struct weir_error *error)
{
    char text[24];
    struct resp_answer answer;

    snprintf(text, sizeof(text), "%" PRId64, now < 0 ? 0 : now);
    return resp_client_ask(r->server.client, (const char *const[]){ "WEIR.CLOCK", text, NULL },
                           &answer, error);
}

static weir_time time_of(int64_t n)
{
    return n < 0 ? WEIR_NEVER : n;
}

static const char *const verbs[] = { [WEIR__ACCOUNT_TAKE] = "WEIR.TAKE",
                                     [WEIR__ACCOUNT_PEEK] = "WEIR.PEEK",
                                     [WEIR__ACCOUNT_GIVE] = "WEIR.GIVE" };

static int ask_module(struct run *r, enum weir__account_verb verb, const struct weir_ask *ask,
                      struct weir_decision *d, struct weir_error *error)
{
    char cost[24], wait[24];
    struct resp_answer answer;

    snprintf(cost, sizeof(cost), "%" PRId64, ask->cost);
    snprintf(wait, sizeof(wait), "%" PRId64, ask->wait_max);
    const char *const words[] = { verbs[verb], r->key, r->limit, "COST", cost,
                                  "WAIT",      wait,   "NS",     NULL };
    int code = set_clock(r->redis, ask->now, error);
    if (code == WEIR_OK)
        code = resp_client_ask(r->redis->server.client, words, &answer, error);
    if (code != WEIR_OK || answer.kind == '+')
        return code;
    if (answer.kind != '*' || answer.n != 6)
        return weir__fail(error, WEIR_INVALID, "%s: not six numbers", verbs[verb]);
    *d = (struct weir_decision){ .allowed = answer.numbers[0] == 1,
                                 .limit = answer.numbers[1],
                                 .remaining = answer.numbers[2],
                                 .reset = time_of(answer.numbers[4]),
                                 .wait = time_of(answer.numbers[5]) };
    d->retry = d->allowed ? 0 : time_of(answer.numbers[3]);
    return WEIR_OK;
}

/* --------------------------------------------------------------- scripts ---- */

static weir_time faster(const struct run *r, weir_time t)
{
    return t == WEIR_NEVER ? t : t / r->slower + (t % r->slower != 0);
}

/* In whole microseconds. */
static weir_time redis_time(const struct run *r, weir_time now)
{
    weir_time rest = now * r->slower % WEIR_MICROSECOND;

    return now * r->slower - rest + (rest && r->line->allowed ? WEIR_MICROSECOND : 0);
}

static int ask_scripts(struct run *r, enum weir__account_verb verb, const struct weir_ask *ask,
                       struct weir_decision *d, struct weir_error *error)
{
    struct weir__account_item item = { .key = { r->key, strlen(r->key) }, .plan = &r->plan };
    weir_time now = redis_time(r, ask->now < 0 ? 0 : ask->now);
    struct weir__account_call call = { .verb = verb, .items = &item, .n = 1, .near = now };

    item.ask = *ask;
    if (__builtin_mul_overflow(item.ask.wait_max, r->slower, &item.ask.wait_max))
        item.ask.wait_max = WEIR_FOREVER;
    int code = redis_scripts_clock(&r->redis->scripts, now, error);
    if (code == WEIR_OK)
        code = redis_scripts_run(&r->redis->scripts, &call, error);
    weir__account_free(&call);
    *d = item.decision;
    d->wait = faster(r, d->wait);
    d->retry = faster(r, d->retry);
    d->reset = faster(r, d->reset);
    return code;
}

#define SLOWER   1000
#define SLOW_MAX ((weir_time)1 << 53) /* ns: INT64_MAX by about a thousand */

/* How a case is run: whether a microsecond can tell its times apart, or a nanosecond must become
 * one. */
static void choose_pace(struct run *r, const struct weir__vectors *vectors,
                        const struct weir__vector_case *c)
{
    bool fine = c->limit.period % WEIR_MICROSECOND != 0, slow = true;
    weir_time before = 0;

    for (size_t i = c->first; i < c->first + c->count; i++) {
        weir_time at = vectors->lines[i].at;
        fine = fine || at % WEIR_MICROSECOND != 0;
        bool late = at < before && before - at <= WEIR_SECOND; /* slower it would be no more */
        slow = slow && !late && at < SLOW_MAX;
        before = at;
    }
    slow = slow && c->limit.calendar == WEIR_NO_CALENDAR;
    r->slower = fine && slow ? SLOWER : 1;
    r->redis->door.resolution = !fine ? 0 : slow ? 1 : WEIR_MICROSECOND;
}

/* ------------------------------------------------------------------ both ---- */

static int send_ask(struct run *r, enum weir__account_verb verb, const struct weir_ask *ask,
                    struct weir_decision *d, struct weir_error *error)
{
    return r->redis->by_scripts ? ask_scripts(r, verb, ask, d, error)
                                : ask_module(r, verb, ask, d, error);
}

/* A cost below 0 is an error here, where the bare algorithm says never: that it is one is seen, and
 * then what the key has left. */
static int ask_redis(struct run *r, enum weir__account_verb verb, const struct weir_ask *ask,
                     struct weir_decision *d, struct weir_error *error)
{
    int code = send_ask(r, verb, ask, d, error);

    if (ask->cost >= 0 || code != WEIR_INVALID)
        return code;
    code = send_ask(r, WEIR__ACCOUNT_PEEK, &(struct weir_ask){ .now = ask->now }, d, error);
    d->allowed = false;
    d->retry = WEIR_NEVER;
    d->wait = 0;
    return code;
}

/* ---------------------------------------------------------------- the door ---- */

static int set_limit(struct run *r, const struct weir_limit *limit, struct weir_error *error)
{
    struct weir_limit slow = *limit;

    slow.period *= r->slower;
    slow.warmup *= r->slower;
    if (r->redis->by_scripts)
        return weir__plan_make(&r->plan, &slow, error);
    if (weir_limit_print(r->limit, sizeof(r->limit), limit) < (int)sizeof(r->limit))
        return WEIR_OK;
    return weir__fail(error, WEIR_INVALID, "the limit is too long to be sent");
}

static int redis_open(const struct weir__door *self, void **run,
                      const struct weir__vectors *vectors, const struct weir__vector_case *c,
                      struct weir_error *error)
{
    struct redis_door *redis = self->context;
    struct run *r = calloc(1, sizeof(*r));

    if (!r)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    r->redis = redis;
    r->slower = 1;
    r->line = &vectors->lines[c->first];
    if (redis->by_scripts)
        choose_pace(r, vectors, c);
    snprintf(r->key, sizeof(r->key), "case-%d", redis->cases++);
    *run = r;
    return set_limit(r, &c->limit, error);
}

static void complain(struct redis_door *r, const struct weir_error *error)
{
    if (strcmp(r->said, error->text) != 0)
        weir__complain("vectors", "door %s: %s", r->door.name, error->text);
    memcpy(r->said, error->text, sizeof(r->said));
}

/* An ask that was not answered is no decision: the two answers contradict each other, so that the
 * line fails whatever it expects. */
static bool redis_ask(void *run, enum weir__vector_verb verb, const struct weir_ask *ask,
                      struct weir_decision *d)
{
    struct run *r = run;
    struct weir_error error = { 0 };
    bool takes = verb == WEIR__VECTOR_TAKE;
    int code = ask_redis(r, takes ? WEIR__ACCOUNT_TAKE : WEIR__ACCOUNT_PEEK, ask, d, &error);

    r->line++;
    if (code == WEIR_OK)
        return d->allowed;
    complain(r->redis, &error);
    *d = (struct weir_decision){ 0 };
    return true;
}

static void redis_give(void *run, const struct weir_ask *ask)
{
    struct run *r = run;
    struct weir_error error = { 0 };
    struct weir_decision d;

    if (ask_redis(r, WEIR__ACCOUNT_GIVE, ask, &d, &error) != WEIR_OK)
        complain(r->redis, &error);
    r->line++;
}

static int redis_change(void *run, const struct weir_limit *limit, weir_time now,
                        struct weir_error *error)
{
    struct run *r = run;
    struct weir_decision d;
    int code = set_limit(r, limit, error);

    if (code == WEIR_OK)
        code = ask_redis(r, WEIR__ACCOUNT_TAKE, &(struct weir_ask){ .now = now }, &d, error);
    r->line++;
    return code;
}

static void redis_close(void *run)
{
    free(run);
}

bool weir__door_redis_is(const char *name)
{
    return strcmp(name, "redis-module") == 0 || strcmp(name, "redis") == 0;
}

int weir__door_redis_open(struct weir__door **out, const char *name, const char *module,
                          struct weir_error *error)
{
    struct redis_door *r = calloc(1, sizeof(*r));

    if (!r)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    r->door = (struct weir__door){ .name = name,
                                   .context = r,
                                   .open = redis_open,
                                   .ask = redis_ask,
                                   .give = redis_give,
                                   .change = redis_change,
                                   .close = redis_close };
    r->by_scripts = strcmp(name, "redis") == 0;
    int code = redis_server_start(&r->server, r->by_scripts ? NULL : module, error);
    if (code == WEIR_OK && r->by_scripts)
        code = redis_scripts_load(&r->scripts, r->server.client, error);
    if (code == WEIR_OK)
        *out = &r->door;
    else
        weir__door_redis_close(&r->door);
    return code;
}

void weir__door_redis_close(struct weir__door *door)
{
    struct redis_door *r = door->context;

    redis_server_stop(&r->server);
    redis_scripts_free(&r->scripts);
    free(r);
}
