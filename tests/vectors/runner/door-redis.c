/* door-redis.c -- vector doors into a redis-server.
 *
 * Each case has a key of its own.  redis-module: the time of each line is set at the module's test
 * clock, and times are in ns both ways, so nothing is rounded.  A change is an ask for nothing
 * under the new limit.
 */
#include "door-redis.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "redis-server.h"
#include "resp-client.h"
#include "server/base/complain.h"

struct redis_door {
    struct weir__door door;
    struct redis_server server;
    int cases;
    char said[sizeof((struct weir_error){ 0 }).text]; /* the last complaint, not to be repeated */
};

struct run {
    struct redis_door *redis;
    char key[32], limit[192];
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

static int ask_module(struct run *r, const char *verb, const struct weir_ask *ask,
                      struct weir_decision *d, struct weir_error *error)
{
    char cost[24], wait[24];
    struct resp_answer answer;

    snprintf(cost, sizeof(cost), "%" PRId64, ask->cost);
    snprintf(wait, sizeof(wait), "%" PRId64, ask->wait_max);
    const char *const words[] = { verb, r->key, r->limit, "COST", cost, "WAIT", wait, "NS", NULL };
    int code = set_clock(r->redis, ask->now, error);
    if (code == WEIR_OK)
        code = resp_client_ask(r->redis->server.client, words, &answer, error);
    if (code != WEIR_OK || answer.kind == '+')
        return code;
    if (answer.kind != '*' || answer.n != 6)
        return weir__fail(error, WEIR_INVALID, "%s: not six numbers", verb);
    *d = (struct weir_decision){ .allowed = answer.numbers[0] == 1,
                                 .limit = answer.numbers[1],
                                 .remaining = answer.numbers[2],
                                 .reset = time_of(answer.numbers[4]),
                                 .wait = time_of(answer.numbers[5]) };
    d->retry = d->allowed ? 0 : time_of(answer.numbers[3]);
    return WEIR_OK;
}

/* A cost below 0 is an error here, where the bare algorithm says never: that it is one is seen, and
 * then what the key has left. */
static int ask_redis(struct run *r, const char *verb, const struct weir_ask *ask,
                     struct weir_decision *d, struct weir_error *error)
{
    int code = ask_module(r, verb, ask, d, error);

    if (ask->cost >= 0 || code != WEIR_INVALID)
        return code;
    code = ask_module(r, "WEIR.PEEK", &(struct weir_ask){ .now = ask->now }, d, error);
    d->allowed = false;
    d->retry = WEIR_NEVER;
    d->wait = 0;
    return code;
}

/* ---------------------------------------------------------------- the door ---- */

static int print_limit(struct run *r, const struct weir_limit *limit, struct weir_error *error)
{
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

    (void)vectors;
    if (!r)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    r->redis = redis;
    snprintf(r->key, sizeof(r->key), "case-%d", redis->cases++);
    *run = r;
    return print_limit(r, &c->limit, error);
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
    const char *name = verb == WEIR__VECTOR_TAKE ? "WEIR.TAKE" : "WEIR.PEEK";

    if (ask_redis(r, name, ask, d, &error) == WEIR_OK)
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

    if (ask_redis(r, "WEIR.GIVE", ask, &d, &error) != WEIR_OK)
        complain(r->redis, &error);
}

static int redis_change(void *run, const struct weir_limit *limit, weir_time now,
                        struct weir_error *error)
{
    struct weir_decision d;
    int code = print_limit(run, limit, error);

    return code == WEIR_OK
               ? ask_redis(run, "WEIR.TAKE", &(struct weir_ask){ .now = now }, &d, error)
               : code;
}

static void redis_close(void *run)
{
    free(run);
}

bool weir__door_redis_is(const char *name)
{
    return strcmp(name, "redis-module") == 0;
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
    int code = redis_server_start(&r->server, module, error);
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
    free(r);
}
