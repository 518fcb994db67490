/* take.c -- `weir take`, `weir peek`, `weir give`: one ask on a table file, from a shell.
 *
 * They differ in a row of struct verb.  Without --name the limiter is named by its limit as the
 * library prints it, so two limits in one file never mix.  With --name the name stays and the limit
 * may change.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "algo/algo.h"
#include "weir-queue.h"
#include "server/base/buffer.h"
#include "server/base/options.h"
#include "server/base/complain.h"
#include "server/base/table-file.h"
#include "server/base/human-numbers.h"
#include "server/cli/take-redis.h"

#define REDIS_TIMEOUT (5 * WEIR_SECOND)

struct options {
    const char *table, *redis, *limit, *algorithm, *name, *owner, *group;
    int64_t cost, keys, mode;
    weir_time wait, now; /* now < 0: ask the table's clock */
    bool json, quiet, no_wait;
};

/* Rows that all three commands have. */
#define LIMIT     WEIR__TEXT("limit", 0, limit, "TEXT", "the limit, as in 10/1m")
#define ALGORITHM WEIR__TEXT("algorithm", 0, algorithm, "NAME", "see weir limits (token-bucket)")
#define NAME      WEIR__TEXT("name", 0, name, "NAME", "the limiter's name (the limit's text)")
#define NOW       WEIR__VALUE("now", 0, MOMENT, now, "TIME", "ask at this time: " WEIR__MOMENT)
#define JSON      WEIR__SWITCH("json", 0, json, "answer with a JSON object")
#define QUIET     WEIR__SWITCH("quiet", 'q', quiet, "answer with the exit code only")
#define NO_WAIT   WEIR__SWITCH("no-wait", 0, no_wait, "fail if somebody has locked the table")
#define EXISTING  WEIR__TEXT("table", 0, table, "FILE", "the table file; it must exist")
#define REDIS     WEIR__TEXT("redis", 0, redis, "URL", "an account in Redis, not a table file")
#define ROOM      WEIR__COUNT("keys", 0, keys, 1, "room for N keys of a sliding window or log")

static const struct weir__option take_rows[] = {
    WEIR__TEXT("table", 0, table, "FILE", "the table file; created if missing"),
    REDIS,
    LIMIT,
    ALGORITHM,
    WEIR__COUNT("cost", 0, cost, 0, "units to take (1)"),
    WEIR__VALUE("wait", 0, WAIT, wait, "TIME",
                "wait at most this long, or forever (0s); with --now, only say how long"),
    NAME,
    WEIR__COUNT("keys", 0, keys, 1, "room for N keys in a new table (65536)"),
    WEIR__MODE("mode", 0, mode, "permissions of a new table, as in 0660 (0600)"),
    WEIR__TEXT("owner", 0, owner, "USER", "owner of a new table, a name or a number"),
    WEIR__TEXT("group", 0, group, "GROUP", "group of a new table; its mode is 0660 then"),
    NOW,
    JSON,
    QUIET,
    NO_WAIT,
    { 0 },
};

static const struct weir__option peek_rows[] = {
    EXISTING,
    REDIS,
    LIMIT,
    ALGORITHM,
    WEIR__COUNT("cost", 0, cost, 0, "units that would be taken (1)"),
    WEIR__VALUE("wait", 0, WAIT, wait, "TIME",
                "as if the ask could wait this long, or forever (0s)"),
    NAME,
    ROOM,
    NOW,
    JSON,
    QUIET,
    NO_WAIT,
    { 0 },
};

static const struct weir__option give_rows[] = {
    EXISTING, REDIS, LIMIT, ALGORITHM, WEIR__COUNT("cost", 0, cost, 1, "units to give back (1)"),
    NAME,     ROOM,  NOW,   JSON,      QUIET,
    NO_WAIT,  { 0 },
};

struct verb;

struct call {
    const char *command;
    const struct verb *verb;
    struct options o;
    struct weir_limit limit;
    int64_t slab; /* bytes, of a new table */
    struct weir_table *table;
    struct weir_limiter *limiter;
};

struct verb {
    bool (*decide)(struct call *c, const struct weir_ask *ask, struct weir_decision *d);
    enum weir__account_verb in_redis;
    const char *granted, *refused;
    bool takes; /* may create a table and change a limit */
    bool peeks;
};

/* ----------------------------------------------------------- the limit ---- */

static bool read_algorithm(struct call *c)
{
    const char *const *names = weir_algorithms();
    const char *wanted = c->o.algorithm;

    while (*names && strcmp(*names, wanted) != 0)
        names++;
    if (!*names) {
        weir__complain(c->command, "--algorithm: there is no '%s'; %s", wanted,
                       weir__hint_or(wanted, strlen(wanted), weir_algorithms(), WEIR__TO_NULL,
                                     "see: weir limits")
                           .text);
        return false;
    }
    if (c->limit.algorithm && strcmp(c->limit.algorithm, *names) != 0) {
        weir__complain(c->command, "--limit says %s and --algorithm says %s", c->limit.algorithm,
                       *names);
        return false;
    }
    c->limit.algorithm = *names;
    return true;
}

/* A new table has room for the states of as many keys as it is made for, or 64 MiB of them: the
 * slab is a hole in the file until it is used. */
static void size_slab(struct call *c, size_t state_size)
{
    const int64_t small = 16, least = (int64_t)64 << 20, most = (int64_t)1 << 37;
    int64_t size = 2 * (int64_t)state_size, keys = c->o.keys;

    c->slab = least;
    if (state_size > (size_t)small && keys > least / size)
        c->slab = keys > most / size ? most : keys * size;
}

static bool read_limit(struct call *c)
{
    struct weir_error error = { 0 };
    struct weir_plan *plan;

    if (weir_limit_parse(&c->limit, c->o.limit, &error) != WEIR_OK) {
        weir__complain_at(c->command, "--limit", c->o.limit, &error);
        return false;
    }
    if (c->o.algorithm && !read_algorithm(c))
        return false;
    c->limit.algorithm = weir__limit_algorithm(&c->limit);
    if (weir_plan_create(&plan, &c->limit, &error) != WEIR_OK) {
        weir__complain_at(c->command, "--limit", c->o.limit, &error);
        return false;
    }
    size_slab(c, weir_plan_state_size(plan));
    c->limit = weir__plan_limit_named(plan); /* limits that are the same get the same name */
    weir_plan_destroy(plan);
    return true;
}

/* ---------------------------------------------------------- the limiter ---- */

static bool find_limiter(const struct call *c, const char *name, struct weir_limiter_info *out)
{
    for (int64_t at = 0; weir_limiter_next(c->table, &at, out);) {
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

/* WEIR_EXISTS: another process is just changing it. */
static int join_limiter(struct call *c, const struct weir_limiter_info *info,
                        struct weir_error *error)
{
    struct weir_limit there;
    int code = weir_limit_parse(&there, info->limit, error);

    return code == WEIR_OK ? weir_limiter_create(&c->limiter, c->table, info->name, &there, error)
                           : code;
}

static weir_time time_of(const struct call *c)
{
    return c->o.now >= 0 ? c->o.now : weir_table_now(c->table);
}

static int open_or_change(struct call *c, const char *name, struct weir_error *error)
{
    struct weir_limiter_info info;
    int code = weir_limiter_create(&c->limiter, c->table, name, &c->limit, error);

    if (code != WEIR_EXISTS || !find_limiter(c, name, &info))
        return code;
    if (!c->verb->takes)
        return weir__fail(error, WEIR_INVALID,
                          "limiter '%s' is %s; only weir take changes a limit: leave --limit out",
                          name, info.limit);
    code = join_limiter(c, &info, error);
    return code == WEIR_OK ? weir_limiter_change(c->limiter, &c->limit, time_of(c), error) : code;
}

/* The limiter's name: the one given, or the limit as the library prints it. */
static int choose_name(const struct call *c, struct weir_limiter_info *out,
                       struct weir_error *error)
{
    int len = c->o.name ? snprintf(out->name, sizeof(out->name), "%s", c->o.name)
                        : weir_limit_print(out->name, sizeof(out->name), &c->limit);

    if (len > 0 && (size_t)len < sizeof(out->name))
        return WEIR_OK;
    if (c->o.name)
        return weir__fail(error, WEIR_INVALID, "--name: a name has 1 to %zu bytes, and this has %d",
                          sizeof(out->name) - 1, len);
    return weir__fail(error, WEIR_INVALID,
                      "this limit is too long to be its own name: give it one with --name");
}

/* With a limit: opens the limiter, changing it if it has another.  Without: it must be there. */
static int open_limiter(struct call *c, struct weir_error *error)
{
    struct weir_limiter_info wanted, there;
    int code = choose_name(c, &wanted, error);

    if (code != WEIR_OK)
        return code;
    code = WEIR_EXISTS;
    for (int tries = 0; tries < 100 && code == WEIR_EXISTS;
         tries++) { /* again only if another process changed it in between */
        if (c->o.limit)
            code = open_or_change(c, wanted.name, error);
        else if (find_limiter(c, wanted.name, &there))
            code = join_limiter(c, &there, error);
        else
            return weir__fail(error, WEIR_INVALID,
                              "there is no limiter '%s' in that table yet: give its --limit",
                              wanted.name);
    }
    return code;
}

static int open_table(struct call *c, struct weir_error *error)
{
    struct weir_table_options options = {
        .path = c->o.table, .keys = c->o.keys, .slab = c->slab, .mode = (unsigned)c->o.mode
    };
    int code =
        weir__table_owned(&options, &(struct weir__file_owner){ c->o.owner, c->o.group }, error);

    if (code == WEIR_OK)
        code = weir__table_await(c->command, c->o.table, !c->o.no_wait, error);
    if (code != WEIR_OK)
        return code;
    return c->verb->takes && c->o.limit ? weir_table_create(&c->table, &options, error)
                                        : weir_table_attach(&c->table, c->o.table, error);
}

static bool open_all(struct call *c)
{
    struct weir_error error = { 0 };
    bool creates = c->verb->takes && c->o.limit;

    if (open_table(c, &error) != WEIR_OK) {
        bool missing = !creates && access(c->o.table, F_OK) != 0;
        weir__complain(c->command, "--table: %s%s", error.text,
                       missing ? "; weir take --limit TEXT creates it" : "");
        return false;
    }
    weir__table_guard_bytes(c->command, c->o.table, c->table);
    int code = open_limiter(c, &error);
    if (code != WEIR_OK)
        weir__complain(c->command, "%s", error.text);
    return code == WEIR_OK;
}

/* ------------------------------------------------------------- the ask ---- */

/* At a given time nothing sleeps: the answer says how long the wait would be. */
static bool take(struct call *c, const struct weir_ask *ask, struct weir_decision *d)
{
    if (c->o.now >= 0)
        return weir_take(c->limiter, ask, d);
    struct weir_clock clock = weir_table_clock(c->table);
    return weir_wait(c->limiter, ask, &clock, d);
}

static bool peek(struct call *c, const struct weir_ask *ask, struct weir_decision *d)
{
    return weir_peek(c->limiter, ask, d);
}

static bool give(struct call *c, const struct weir_ask *ask, struct weir_decision *d)
{
    struct weir_ask after = *ask;

    weir_give(c->limiter, ask);
    after.cost = 0;
    weir_peek(c->limiter, &after, d);
    return true;
}

/* ---------------------------------------------------------- the answer ---- */

/* "granted after 2s, 3 of 5 left" */
static void say(const struct call *c, const struct weir_decision *d)
{
    const struct verb *v = c->verb;
    char time[32];

    if (!d->allowed && d->retry == WEIR_NEVER) {
        printf("%s for ever: %" PRId64 " is more than the %" PRId64 " that can pass at once\n",
               v->refused, c->o.cost, d->limit);
        return;
    }
    weir__human_duration(time, d->allowed ? d->wait : d->retry);
    if (!d->allowed) {
        printf("%s, retry in %s\n", v->refused, time);
        return;
    }
    printf("%s", v->granted);
    if (d->wait > 0)
        printf(" %s %s", v->takes && c->o.now >= 0 ? "for use in" : "after", time);
    printf(v->peeks ? ", leaving %" PRId64 " of %" PRId64 "\n"
                    : ", %" PRId64 " of %" PRId64 " left\n",
           d->remaining, d->limit);
}

static void say_json(const struct weir_decision *d)
{
    struct weir__buffer json = { 0 };

    weir__buffer_open(&json, NULL, '{');
    weir__buffer_member_bool(&json, "allowed", d->allowed);
    weir__buffer_member(&json, "reason", weir_reason_name((enum weir_reason)d->reason));
    weir__buffer_member_number(&json, "limit", d->limit);
    weir__buffer_member_number(&json, "remaining", d->remaining);
    weir__buffer_member_number(&json, "wait_ns", d->wait);
    weir__buffer_member_number_or_null(&json, "retry_ns", d->retry != WEIR_NEVER, d->retry);
    weir__buffer_member_number(&json, "reset_ns", d->reset);
    weir__buffer_close(&json, "}\n");
    weir__buffer_print(&json, stdout);
}

static int say_it(const struct call *c, const struct weir_decision *d)
{
    if (c->o.json && !c->o.quiet)
        say_json(d);
    else if (!c->o.quiet)
        say(c, d);
    return d->allowed || c->verb->in_redis == WEIR__ACCOUNT_GIVE ? WEIR__EXIT_OK : WEIR__EXIT_NO;
}

static int ask_and_say(struct call *c, const char *key)
{
    struct weir_decision d = { 0 };
    struct weir_ask ask = {
        .key = { key, strlen(key) }, .cost = c->o.cost, .wait_max = c->o.wait, .now = time_of(c)
    };

    c->verb->decide(c, &ask, &d);
    return say_it(c, &d);
}

/* The account is named by the limit too, or by --name: as limiters are. */
static int ask_redis(const struct call *c, const char *key)
{
    struct weir_limiter_info named;
    struct weir_error error;
    struct weir_decision d = { 0 };

    if (choose_name(c, &named, &error) != WEIR_OK)
        return weir__complain(c->command, "%s", error.text);
    struct weir__take_redis take = { .command = c->command,
                                     .url = c->o.redis,
                                     .verb = c->verb->in_redis,
                                     .limit = c->limit,
                                     .name = named.name,
                                     .key = key,
                                     .cost = c->o.cost,
                                     .wait_max = c->o.wait,
                                     .timeout = REDIS_TIMEOUT };
    int code = weir__take_redis(&take, &d);
    return code == WEIR__GO_ON ? say_it(c, &d) : code;
}

/* -------------------------------------------------------- the commands ---- */

static int check(const struct weir__command *self, const struct options *o, int keys)
{
    const char *missing = !o->table && !o->redis                ? "--table FILE or --redis URL"
                          : !o->limit && (!o->name || o->redis) ? "--limit TEXT"
                          : keys == 0                           ? "KEY"
                                                                : NULL;

    if (missing)
        return weir__command_wrong(self, "%s is missing", missing);
    if (keys > 1)
        return weir__complain(self->name, "one KEY, not %d (quote a key with spaces)", keys);
    if (o->algorithm && !o->limit)
        return weir__complain(self->name, "--algorithm needs --limit");
    if (o->redis && (o->table || o->now >= 0))
        return weir__complain(self->name, o->table ? "--table or --redis, not both"
                                                   : "--now: with --redis its clock decides");
    return WEIR__GO_ON;
}

static int run(const struct weir__call *call, const struct verb *verb)
{
    struct call c = { .command = call->self->name,
                      .verb = verb,
                      .o = *(const struct options *)call->options };
    const char *usual = getenv("WEIR_REDIS");

    if (!c.o.table && !c.o.redis && usual && *usual)
        c.o.redis = ""; /* that */
    int code = check(call->self, &c.o, call->n);

    if (code != WEIR__GO_ON)
        return code;
    if (c.o.limit && !read_limit(&c))
        return WEIR__EXIT_WRONG;
    if (c.o.redis)
        return ask_redis(&c, call->words[0]);
    code = open_all(&c) ? ask_and_say(&c, call->words[0]) : WEIR__EXIT_WRONG;
    weir_table_destroy(c.table);
    return code;
}

static int run_take(const struct weir__call *call)
{
    return run(call,
               &(struct verb){ take, WEIR__ACCOUNT_TAKE, "granted", "refused", .takes = true });
}

static int run_peek(const struct weir__call *call)
{
    return run(call, &(struct verb){ peek, WEIR__ACCOUNT_PEEK, "would be granted",
                                     "would be refused", .peeks = true });
}

static int run_give(const struct weir__call *call)
{
    return run(call, &(struct verb){ give, WEIR__ACCOUNT_GIVE, "given back",
                                     "given back, none left", .peeks = false });
}

#define USAGE "(--table FILE | --redis URL) --limit TEXT [options] KEY"
#define LIMITS                                                                                  \
    "\n\nLimits: 300/60, 100/5s, 10r/s, 1000/h burst 50, gcra 5/1m burst 3. weir limits lists " \
    "the "                                                                                      \
    "algorithms."

const struct weir__command weir__cmd_take = {
    .name = "take",
    .summary = "take units from a key, if its limit allows",
    .arguments = USAGE,
    .help = "Creates the table file if it is missing; in /dev/shm it stays in memory. Limits with "
            "the same text share their keys. With --name, another --limit changes the limit and "
            "every key keeps its usage; with --table, an existing name needs no --limit.\n"
            "\n"
            "  weir take --table /dev/shm/limits --limit 10/1m alice\n"
            "  weir take --redis redis://localhost --limit 10/1m alice\n"
            "\n"
            "In Redis the key is weir:{LIMIT:KEY}, as in weir:{token-bucket 10/1m:alice}, or with "
            "--name weir:{NAME:KEY}, and Redis's clock decides. Without --table and --redis, or "
            "with an empty URL, the URL in WEIR_REDIS is used: others cannot read a password "
            "there.\n"
            "\n"
            "Exit codes: 0 granted, 1 refused, 2 wrong use, or no answer." LIMITS,
    WEIR__COMMAND_OPTIONS(take_rows, .cost = 1, .now = -1),
    .words_max = WEIR__ANY_WORDS,
    .run = run_take,
};

const struct weir__command weir__cmd_peek = {
    .name = "peek",
    .summary = "show the answer of take, and take nothing",
    .arguments = USAGE,
    .help = "The table file must exist: weir take creates one. In a table an existing limiter, by "
            "its --name, needs no --limit; only weir take changes a limit.\n"
            "\n"
            "  weir peek --table /dev/shm/limits --limit 10/1m alice\n"
            "\n"
            "Exit codes: 0 would be granted, 1 would be refused, 2 wrong use, or no answer." LIMITS,
    WEIR__COMMAND_OPTIONS(peek_rows, .cost = 1, .now = -1),
    .words_max = WEIR__ANY_WORDS,
    .run = run_peek,
};

const struct weir__command weir__cmd_give = {
    .name = "give",
    .summary = "give back units taken before",
    .arguments = USAGE,
    .help = "A key never gets more than its limit. The table file must exist: weir take creates "
            "one. In a table an existing limiter, by its --name, needs no --limit; only weir take "
            "changes a limit.\n"
            "\n"
            "  weir give --table /dev/shm/limits --limit 10/1m alice\n"
            "\n"
            "Exit codes: 0 given back, 2 wrong use, or no answer." LIMITS,
    WEIR__COMMAND_OPTIONS(give_rows, .cost = 1, .now = -1),
    .words_max = WEIR__ANY_WORDS,
    .run = run_give,
};
