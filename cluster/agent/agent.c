/* agent.c -- this process's part in a fleet: joining, leaving, and the agent's turns. */
#include "cluster/agent/agent.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/fleet/fleet.h"

#define LEAVE_MAX (300 * WEIR_MILLISECOND)

/* A change of the part costs every process of the host some bytes until it ends. */
#define PART_CHANGES 32
#define PART_EVERY   (600 * WEIR_SECOND)

/* ---------------------------------------------------------------- the host ---- */

/* Of a host that Redis has told no part, or long ago: an equal one of as many nodes as its operator
 * says there are, or none. */
static uint32_t guess_part(const struct weir_fleet *f)
{
    return f->nodes > 0 ? (uint32_t)(WEIR__FLEET_WHOLE / f->nodes) : 0;
}

static uint32_t word_of(const struct weir_fleet *f, uint32_t part)
{
    return f->unheard ? part | WEIR__FLEET_GUESS : part;
}

/* The part that the process before was told is the best guess, unless it is too old. */
static void begin_part(struct weir_fleet *f, weir_time now)
{
    weir_time until = weir__fleet_until(f->table);
    uint32_t part = weir__fleet_part_word(f->table);

    f->guessed = part == 0 || part > WEIR__FLEET_WHOLE || until < now - WEIR__COPY_AGE_MAX;
    f->unheard = f->guessed;
    if (until == 0) /* the part counts from now on */
        weir__fleet_renew(f->table, WEIR__FLEET_AWAY);
    f->fresh = f->fresh || until == 0;
    /* Once more: the one before may have died over it. */
    (void)f->host->part_set(f->weir, word_of(f, f->guessed ? guess_part(f) : part), now, NULL);
}

static void know_part(struct weir_fleet *f, bool agent)
{
    uint32_t part = weir__fleet_part(f->table);

    pthread_mutex_lock(&f->mutex);
    f->info.part = part;
    f->info.connected = agent ? f->info.connected : true; /* it is not asked any more */
    f->info.why[0] = '\0';
    pthread_mutex_unlock(&f->mutex);
}

/* Whether this process is the agent.  The first thing in a turn: a process that was stopped may
 * find that another is the agent now. */
static void claim(struct weir_fleet *f, weir_time mono, weir_time now)
{
    bool agent = !f->leaving &&
                 (!f->shared || (f->holder > 0 && weir__fleet_claim(f->table, f->holder, now)));

    if (agent == f->agent)
        return;
    f->agent = agent;
    if (agent)
        weir__beats_take_over(f);
    weir__notes_begin(f);
    weir__hearing_begin(&f->hearing, !f->turned, mono);
    weir__fleet_set_exact(f->fleet, !agent);
    if (agent)
        begin_part(f, now);
    know_part(f, agent);
    f->part_set = weir__fleet_part(f->table);
    f->part_due = mono - PART_CHANGES * PART_EVERY;
}

/* Hosts that come and go change it a few times, and demand all the time: that can wait until the
 * host is alone. */
static bool may_change_part(struct weir_fleet *f, weir_time mono)
{
    if (f->part_due > mono)
        return false;
    if (f->part_due < mono - PART_CHANGES * PART_EVERY)
        f->part_due = mono - PART_CHANGES * PART_EVERY;
    f->part_due += PART_EVERY;
    return true;
}

/* The table has the last word: one that was the agent before, and was stopped over it, may have
 * written another part; a server without --fleet may have forgotten the fleet. */
static void follow_part(struct weir_fleet *f, bool alone, weir_time mono, weir_time now)
{
    int64_t part = f->info.part; /* written in this thread */
    bool forgotten = weir__fleet_until(f->table) == 0;

    if (forgotten)
        weir__fleet_renew(f->table, WEIR__FLEET_AWAY);
    if (part == 0)
        part = f->part_set;
    uint32_t word = word_of(f, (uint32_t)part);
    if (!forgotten && word == weir__fleet_part_word(f->table))
        return;
    if (!forgotten && !alone && !may_change_part(f, mono))
        return;
    f->part_set = part;
    (void)f->host->part_set(f->weir, word, now, NULL);
}

/* As long as Redis answers, purses are asked.  Shares begin shortly before that ends. */
static weir_time tend_host(struct weir_fleet *f, weir_time mono, weir_time now)
{
    if (!f->agent) {
        if (!weir__fleet_is_near(f->table, now))
            weir__shares_begin(f, now); /* the agent may not know these keys */
        f->part_set = weir__fleet_part(f->table);
        return mono + WEIR__AGENT_TICK;
    }
    bool alone = weir__hearing_turn(&f->hearing, mono);
    follow_part(f, alone, mono, now);
    if (f->hearing.away)
        weir__beats_stay_alone(f, now);
    if (alone)
        weir__shares_begin(f, now);
    weir_time span = weir__hearing_span(&f->hearing, mono);
    if (span > 0 && !weir__fleet_is_near(f->table, now))
        weir__shares_used(f);
    if (span > 0)
        weir__fleet_renew(f->table, now + span);
    return mono + WEIR__HEARING_TURN;
}

/* What the host's decisions go by. */
static weir_time turn_host(struct weir_fleet *f, weir_time mono, weir_time now)
{
    claim(f, mono, now);
    f->turned = true;
    return tend_host(f, mono, now);
}

/* ------------------------------------------------------------------- turns ---- */

/* It is over when nothing is under way any more, or too late. */
static void turn_leaving(struct weir_fleet *f, weir_time now)
{
    if ((weir__beats_over(f) && f->calls == 0) || now >= f->leave_by) {
        f->leave_by = WEIR_NEVER;
        weir__redis_ready_set(&f->left);
    }
}

static void note_counts(struct weir_fleet *f)
{
    struct weir__fleet_counts counts = weir__fleet_counts(f->fleet);

    pthread_mutex_lock(&f->mutex);
    f->info.agent = f->agent;
    f->info.draws = counts.draws;
    f->info.units_drawn = counts.units_drawn;
    f->info.units_repaid = counts.units_repaid;
    f->info.asks_alone = f->asks_alone;
    weir__refusal_tell(f);
    pthread_mutex_unlock(&f->mutex);
}

/* Everything of purses and accounts, by the table's clock.  Returns the time until the next. */
static weir_time turn_fleet(struct weir_fleet *f, weir_time now)
{
    weir_time due, deadline;

    weir__limits_turn(f, now);
    weir__draws_turn(f, now);
    weir__demands_turn(f, now);
    due = f->leaving ? WEIR_NEVER : weir__fleet_turn(f->fleet, now);
    deadline = weir__asks_turn(f, now);
    due = weir__int_least(due, deadline);
    return due == WEIR_NEVER ? WEIR_NEVER : due > now ? due - now : 0;
}

static weir_time turn(void *context, struct weir__redis_client *client, weir_time mono)
{
    struct weir_fleet *f = context;
    weir_time now = weir__agent_time(f), due, span;

    f->client = client;
    f->stirred = false;
    due = turn_host(f, mono, now);
    if (f->agent || f->leaving)
        due = weir__int_least(due, weir__beats_turn(f, mono));
    span = turn_fleet(f, now);
    due = weir__int_least(due, weir__notes_turn(f, mono, now));
    if (span != WEIR_NEVER)
        due = weir__int_least(due, mono + span);
    note_counts(f);
    if (f->leaving)
        turn_leaving(f, mono);
    return f->stirred ? mono : f->leaving ? weir__int_least(due, f->leave_by) : due;
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

int weir_fleet_options_check(const struct weir_fleet_options *o, struct weir_error *error)
{
    if ((o->name && !weir__fleet_is_name(o->name)) || (o->node && !weir__fleet_is_name(o->node)))
        return weir__fail(error, WEIR_INVALID,
                          "names of fleets and nodes are 1 to 64 letters, digits, '.', '_', '-'");
    if (o->weight < 0 || o->weight > WEIR__WEIGHT_MAX)
        return weir__fail(error, WEIR_INVALID, "a weight is 1 to %d", WEIR__WEIGHT_MAX);
    if (o->nodes < 0 || o->nodes > WEIR__FLEET_WHOLE)
        return weir__fail(error, WEIR_INVALID, "nodes are 1 to %d", WEIR__FLEET_WHOLE);
    return WEIR_OK;
}

static int fill(struct weir_fleet *f, const struct weir_fleet_options *o, struct weir_error *error)
{
    int code = weir_fleet_options_check(o, error);

    if (code != WEIR_OK)
        return code;
    snprintf(f->name, sizeof(f->name), "%s", o->name ? o->name : "default");
    if (o->node)
        snprintf(f->node, sizeof(f->node), "%s", o->node);
    else
        name_node(f->node, f->table);
    memcpy(f->info.name, f->name, sizeof(f->name));
    memcpy(f->info.node, f->node, sizeof(f->node));
    f->info.connected = true; /* nobody was asked yet */
    f->nodes = o->nodes;
    weir__beats_begin(f, o->weight);
    return WEIR_OK;
}

static int make(struct weir_fleet *f, struct weir_error *error)
{
    struct weir__fleet_options options = { .ops = &weir__agent_world, .world = f };

    f->answered_last = &f->answered;
    f->demands = calloc(WEIR__AGENT_DEMANDS, sizeof(*f->demands));
    f->told = calloc(WEIR__AGENT_DEMANDS, sizeof(*f->told));
    if (!f->demands || !f->told)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a fleet");
    if (weir__random_fill(&options.seed, sizeof(options.seed)) != 0)
        return weir__fail(error, WEIR_SYSTEM, "no random numbers: %s", strerror(errno));
    int code = weir__asks_make(f, error);
    if (code == WEIR_OK)
        code = weir__fleet_create(&f->fleet, &options, error);
    if (code == WEIR_OK)
        weir__fleet_set_exact(f->fleet, true); /* until it is the agent */
    return code;
}

/* An engine of another version has other structs. */
static int know(struct weir_fleet *f, struct weir *weir, struct weir_error *error)
{
    f->weir = weir;
    f->host = weir->host;
    f->pid = getpid();
    if (f->host->size != WEIR__HOST_SIZE)
        return weir__fail(error, WEIR_INVALID, "libweir and libweir-redis are of two versions");
    f->table = weir->table;
    f->shared = f->table->fd >= 0;
    f->holder = f->host->holder(f->table);
    return WEIR_OK;
}

/* The first turn of the host is the caller's: until then a new table is in no fleet, and its rules
 * pass their whole limit.  One connection to each server: asks on one account keep their order. */
static int start(struct weir_fleet *f, const char *url, const struct weir_fleet_options *o,
                 struct weir_error *error)
{
    struct weir_redis_options redis = o->redis;

    redis.connections = redis.connections > 0 ? redis.connections : 1;
    (void)turn_host(f, weir__clock_monotonic(), weir__agent_time(f));
    int code = weir__redis_thread_create(&f->redis, url, &redis,
                                         &(struct weir__redis_duty){ turn, f }, error);
    return code == WEIR_OK ? weir__follow_begin(f, o, error) : code;
}

static void destroy(struct weir_fleet *f)
{
    weir_redis_destroy(f->redis); /* which answers all asks */
    weir__redis_ask_free(&f->beat);
    weir__redis_ask_free(&f->notes.ask);
    weir__draws_free(f);
    weir__limits_free(f);
    weir__fleet_destroy(f->fleet);
    weir__asks_free(f);
    free(f->demands);
    free(f->told);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

/* Its thread may have been the agent already. */
static void undo(struct weir_fleet *f)
{
    weir_redis_destroy(f->redis);
    f->redis = NULL;
    if (f->agent && f->shared)
        weir__fleet_yield(f->table, f->holder);
    if (f->agent && f->fresh)
        weir__fleet_forget(f->table, weir__agent_time(f));
    destroy(f);
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
    int code = know(f, weir, error);
    if (code == WEIR_OK)
        code = fill(f, o, error);
    if (code == WEIR_OK)
        code = make(f, error);
    if (code == WEIR_OK)
        code = start(f, url, o, error);
    if (code == WEIR_OK)
        *out = f;
    else
        undo(f);
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
    weir__fleet_end(f->fleet, weir__agent_time(f));
    if (f->agent && f->shared)
        weir__fleet_yield(f->table, f->holder);
    if (f->agent)
        weir__beats_leave(f, now);
    else
        f->member.left = true; /* the host goes on with another agent */
}

void weir_fleet_leave(struct weir_fleet *f)
{
    struct leaving leaving = { .job.begin = begin_leaving, .fleet = f };

    if (!f || f->pid != getpid())
        return;
    weir__follow_end(f);
    weir__redis_thread_put(f->redis, &leaving.job);
    weir__redis_ready_wait(&f->left);
    destroy(f);
}

void weir_fleet_look(struct weir_fleet *f, struct weir_fleet_info *out)
{
    *out = (struct weir_fleet_info){ .name = "" };
    if (f->pid != getpid()) /* a child: the mutex may be held for ever */
        return;
    pthread_mutex_lock(&f->mutex);
    *out = f->info;
    pthread_mutex_unlock(&f->mutex);
    out->alone = !weir__fleet_is_near(f->table, weir__agent_time(f));
    if (!out->agent)
        out->part = weir__fleet_until(f->table) == 0 ? 0 : weir__fleet_part(f->table);
}
