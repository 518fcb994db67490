/* agent.c -- this process's part in a fleet: joining, leaving, and the agent's turns. */
#include "cluster/agent/agent.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "table/table.h"

#define LEAVE_MAX (300 * WEIR_MILLISECOND)

void weir__agent_send(struct weir_fleet *f, struct weir__redis_ask *ask, weir_time now)
{
    f->stirred = true;
    weir__redis_client_ask(f->client, ask, now);
}

static weir_time sooner(weir_time a, weir_time b)
{
    return a < b ? a : b;
}

/* It is over when nothing is under way any more, or too late. */
static void turn_leaving(struct weir_fleet *f, weir_time now)
{
    if (weir__beats_over(f) || now >= f->leave_by) {
        f->leave_by = WEIR_NEVER;
        weir__redis_ready_set(&f->left);
    }
}

static weir_time turn(void *context, struct weir__redis_client *client, weir_time now)
{
    struct weir_fleet *f = context;
    weir_time due;

    f->client = client;
    f->stirred = false;
    due = weir__beats_turn(f, now);
    if (f->leaving)
        turn_leaving(f, now);
    return f->stirred ? now : f->leaving ? sooner(due, f->leave_by) : due;
}

/* ---------------------------------------------------------------- joining ---- */

/* A host's name, and four digits that all processes on the table agree on. */
static void name_node(char node[WEIR__MEMBER_ID_MAX + 1], const struct weir_table *table)
{
    char host[WEIR__MEMBER_ID_MAX - 4];

    if (gethostname(host, sizeof(host)) != 0)
        snprintf(host, sizeof(host), "node");
    host[sizeof(host) - 1] = '\0';
    for (char *c = host; *c; c++)
        *c = isalnum((unsigned char)*c) || strchr("._-", *c) ? *c : '-';
    uint64_t mark = weir__hash_key(table->secrets, 0, (struct weir_key){ "node", 4 }).tag;
    snprintf(node, WEIR__MEMBER_ID_MAX + 1, "%s-%04x", host, (unsigned)(mark & 0xffff));
}

static int fill(struct weir_fleet *f, const struct weir_fleet_options *o, struct weir_error *error)
{
    const char *name = o->name ? o->name : "default";

    if (!weir__centre_is_name(name) || (o->node && !weir__centre_is_name(o->node)))
        return weir__fail(error, WEIR_INVALID,
                          "names of fleets and nodes are 1 to 64 letters, digits, '.', '_', '-'");
    if (o->weight < 0 || o->weight > WEIR__WEIGHT_MAX)
        return weir__fail(error, WEIR_INVALID, "a weight is 1 to %d", WEIR__WEIGHT_MAX);
    snprintf(f->name, sizeof(f->name), "%s", name);
    if (o->node)
        snprintf(f->node, sizeof(f->node), "%s", o->node);
    else
        name_node(f->node, weir_table_of(f->weir));
    memcpy(f->info.name, f->name, sizeof(f->name));
    memcpy(f->info.node, f->node, sizeof(f->node));
    weir__beats_begin(f, o->weight);
    return WEIR_OK;
}

/* One connection to each server: asks on one account keep their order. */
static int start(struct weir_fleet *f, const char *url, const struct weir_fleet_options *o,
                 struct weir_error *error)
{
    struct weir_redis_options redis = o->redis;

    redis.connections = redis.connections > 0 ? redis.connections : 1;
    int code = weir__redis_thread_create(&f->redis, url, &redis,
                                         &(struct weir__redis_duty){ turn, f }, error);
    return code == WEIR_OK ? weir__follow_begin(f, o, error) : code;
}

static void destroy(struct weir_fleet *f)
{
    weir_redis_destroy(f->redis);
    weir__redis_ask_free(&f->beat);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

int weir_fleet_join(struct weir_fleet **out, struct weir *weir, const char *url,
                    const struct weir_fleet_options *options, struct weir_error *error)
{
    static const struct weir_fleet_options defaults;
    const struct weir_fleet_options *o = options ? options : &defaults;
    struct weir_fleet *f = calloc(1, sizeof(*f));

    if (!f)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a fleet");
    pthread_mutex_init(&f->mutex, NULL);
    f->weir = weir;
    int code = fill(f, o, error);
    if (code == WEIR_OK)
        code = start(f, url, o, error);
    if (code == WEIR_OK)
        *out = f;
    else
        destroy(f);
    return code;
}

/* ---------------------------------------------------------------- leaving ---- */

struct leaving {
    struct weir__redis_job job;
    struct weir_fleet *fleet;
};

static void begin_leaving(struct weir__redis_job *job, struct weir__redis_client *client,
                          weir_time now)
{
    struct weir_fleet *f = ((struct leaving *)job)->fleet;

    f->client = client;
    f->leaving = true;
    f->leave_by = now + LEAVE_MAX;
    weir__beats_leave(f, now);
}

void weir_fleet_leave(struct weir_fleet *f)
{
    struct leaving leaving = { .job.begin = begin_leaving, .fleet = f };

    if (!f)
        return;
    weir__follow_end(f);
    weir__redis_thread_put(f->redis, &leaving.job);
    weir__redis_ready_wait(&f->left);
    destroy(f);
}

void weir_fleet_look(struct weir_fleet *f, struct weir_fleet_info *out)
{
    pthread_mutex_lock(&f->mutex);
    *out = f->info;
    pthread_mutex_unlock(&f->mutex);
}
