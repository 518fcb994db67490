/* fleet-lock.c -- `weir fleet lock`: runs a command while it has a lock that all hosts share; shows
 * a lock, and takes it from its holder. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/redis/trouble.h"
#include "server/base/buffer.h"
#include "server/base/complain.h"
#include "server/base/human-numbers.h"
#include "server/base/options.h"
#include "server/base/safe-text.h"
#include "server/cli/ask-redis.h"
#include "server/cli/run-while-held.h"
#include "weir-redis.h"

#define NAME    "fleet lock"
#define ASK_MAX (2 * WEIR_SECOND)

struct options {
    const char *redis;
    weir_time lifetime, wait;
    int64_t token;
    bool show, release, keep_going, quiet, json;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("redis", 'r', redis, "URL", "where the lock is (WEIR_REDIS)"),
    WEIR__VALUE("lifetime", 'l', TIME, lifetime, "TIME",
                "it ends this long after it was last renewed (30s)"),
    WEIR__VALUE("wait", 'w', TIME, wait, "TIME", "wait in line, at most this long (0s)"),
    WEIR__SWITCH("keep-going", 'k', keep_going, "if it is lost, warn and let the command go on"),
    WEIR__SWITCH("show", 's', show, "show who has it"),
    WEIR__SWITCH("release", 0, release, "take it from its holder"),
    WEIR__COUNT("token", 0, token, 1, "with --release: only if it is held under this token"),
    WEIR__SWITCH("json", 'j', json, "with --show: print JSON"),
    WEIR__SWITCH("quiet", 'q', quiet, "do not say why it was refused"),
    { 0 },
};

struct held {
    struct weir__keeper keeper; /* first */
    struct weir_redis *redis;
    struct weir_redis_lock lock;
};

static int no_answer(const struct weir_redis_lock_result *r)
{
    weir__complain(NAME, "Redis %s: %s", weir__redis_trouble(r->why), r->why);
    return WEIR__RUN_FAILED;
}

/* ------------------------------------------------------------- a command ---- */

static bool renew(struct weir__keeper *keeper)
{
    struct held *held = (struct held *)keeper;
    struct weir_redis_lock_result result;
    weir_time most = keeper->lease / 3 < ASK_MAX ? keeper->lease / 3 : ASK_MAX;

    weir_redis_lock_renew(held->redis, &held->lock, most, &result);
    if (result.outcome == WEIR_REDIS_ANSWERED && !result.held)
        keeper->until = 0;
    return result.outcome == WEIR_REDIS_ANSWERED && result.held;
}

/* Never anew: it would have another token, which the command does not know. */
static bool never_again(struct weir__keeper *keeper)
{
    (void)keeper;
    return false;
}

static bool give_back(struct weir__keeper *keeper)
{
    struct held *held = (struct held *)keeper;
    struct weir_redis_lock_result result;

    return weir_redis_lock_release(held->redis, &held->lock, ASK_MAX, &result) ==
           WEIR_REDIS_ANSWERED;
}

static int refused(const struct options *o, const char *name,
                   const struct weir_redis_lock_result *r)
{
    char left[WEIR__DURATION];

    if (o->quiet)
        return WEIR__RUN_REFUSED;
    weir__human_duration(left, r->left);
    char others[WEIR__HUMAN];
    weir__human_counted(others, r->waiters - (r->place > 0), "other");
    if (r->holder[0])
        weir__complain(NAME, "lock %s is held by %s (%s left); %s", name,
                       weir__quote(r->holder, strlen(r->holder)).text, left,
                       r->waiters - (r->place > 0) > 0 ? strcat(others, " waiting")
                                                       : "nobody else is waiting");
    else
        weir__complain(NAME, "lock %s is for one of %" PRId64 " waiters", name, r->waiters);
    return WEIR__RUN_REFUSED;
}

static int run_held(struct held *held, const char *name, char **words)
{
    char token[24];

    snprintf(token, sizeof(token), "%" PRId64, held->lock.token);
    if (setenv("WEIR_LOCK", name, 1) != 0 || setenv("WEIR_LOCK_TOKEN", token, 1) != 0) {
        weir__complain(NAME, "no memory");
        return WEIR__RUN_FAILED;
    }
    return weir__keeper_run(&held->keeper, words);
}

static int run_under(const struct weir__call *call, struct weir_redis *redis)
{
    const struct options *o = call->options;
    const char *name = call->words[0];
    struct weir_redis_lock_result result;
    struct held held = {
        .redis = redis,
        .lock = { .name = { name, strlen(name) }, .lifetime = o->lifetime },
        .keeper = { .command = NAME,
                    .thing = "lock",
                    .ends = !o->keep_going,
                    .renew = renew,
                    .enter = never_again,
                    .exit = give_back },
    };

    weir_redis_lock_acquire(redis, &held.lock, o->wait, &result);
    if (!result.held)
        return result.outcome == WEIR_REDIS_ANSWERED ? refused(o, name, &result)
                                                     : no_answer(&result);
    held.keeper.until = held.lock.until;
    held.keeper.lease = o->lifetime - o->lifetime / 32; /* less than the lock's own */
    return run_held(&held, name, call->words + 1);
}

/* -------------------------------------------------------- show and release ---- */

static int print_json(const char *name, const struct weir_redis_lock_result *r)
{
    struct weir__buffer json = { 0 };

    weir__buffer_open(&json, NULL, '{');
    weir__buffer_member(&json, "lock", name);
    weir__buffer_member_or_null(&json, "holder", r->holder[0] ? r->holder : NULL);
    weir__buffer_member_number(&json, "token", r->token);
    weir__buffer_member_number(&json, "left_ns", r->left);
    weir__buffer_member_number(&json, "waiting", r->waiters);
    weir__buffer_close(&json, "}\n");
    return weir__buffer_print(&json, stdout);
}

static void say_holder(const struct weir_redis_lock_result *r)
{
    char left[WEIR__DURATION];

    weir__human_duration(left, r->left);
    weir__safe_text(stdout, WEIR__SAFE_TERMINAL, r->holder);
    printf(", token %" PRId64 ", %s left", r->token, left);
}

static int show(const struct weir__call *call, const struct weir_redis_lock_result *r)
{
    const struct options *o = call->options;

    if (o->json)
        return print_json(call->words[0], r);
    if (r->holder[0]) {
        printf("held by ");
        say_holder(r);
    } else {
        printf("free");
    }
    if (r->waiters > 0)
        printf(", %" PRId64 " waiting", r->waiters);
    putchar('\n');
    return WEIR__EXIT_OK;
}

static int release(const struct weir__call *call, struct weir_redis *redis,
                   const struct weir_redis_lock_result *seen)
{
    const struct options *o = call->options;
    struct weir_key name = { call->words[0], strlen(call->words[0]) };
    struct weir_redis_lock_result after;

    if (!seen->holder[0] || (o->token && o->token != seen->token)) {
        printf(seen->holder[0] ? "held under another token: " : "free");
        if (seen->holder[0])
            say_holder(seen);
        putchar('\n');
        return WEIR__EXIT_NO;
    }
    if (weir_redis_lock_break(redis, name, seen->token, ASK_MAX, &after) != WEIR_REDIS_ANSWERED)
        return no_answer(&after);
    printf("taken from ");
    say_holder(seen);
    putchar('\n');
    return WEIR__EXIT_OK;
}

static int look(const struct weir__call *call, struct weir_redis *redis)
{
    const struct options *o = call->options;
    struct weir_key name = { call->words[0], strlen(call->words[0]) };
    struct weir_redis_lock_result seen;

    if (weir_redis_lock_look(redis, name, ASK_MAX, &seen) != WEIR_REDIS_ANSWERED)
        return no_answer(&seen);
    return o->release ? release(call, redis, &seen) : show(call, &seen);
}

/* ------------------------------------------------------------ the command ---- */

static const char *problem_of(const struct weir__call *call)
{
    const struct options *o = call->options;
    bool looks = o->show || o->release;

    if (!*call->words[0])
        return "a lock needs a name";
    if (looks && call->n > 1)
        return "--show and --release run no command";
    if (!looks && call->n < 2)
        return "which command? write it after --";
    if (o->lifetime < 10 * WEIR_MILLISECOND || o->lifetime > 24 * 3600 * WEIR_SECOND)
        return "--lifetime is 10ms to 24h";
    return o->token && !o->release ? "--token belongs to --release" : NULL;
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    const char *url = o->redis ? o->redis : getenv("WEIR_REDIS"), *problem = problem_of(call);
    struct weir_redis *redis;
    struct weir_error error = { 0 };

    if (problem)
        return weir__command_wrong(call->self, "%s", problem);
    if (!url || !*url)
        return weir__command_wrong(call->self, "where is Redis? write --redis URL, or set "
                                               "WEIR_REDIS");
    if (weir_redis_create(&redis, url, NULL, &error) != WEIR_OK)
        return weir__complain(NAME, "--redis: %s", error.text);
    int code = o->show || o->release ? look(call, redis) : run_under(call, redis);
    weir_redis_destroy(redis);
    return code;
}

const struct weir__command weir__cmd_fleet_lock = {
    .name = NAME,
    .summary = "run a command under a lock that all hosts share",
    .arguments = "NAME [--lifetime TIME] [--wait TIME] [--redis URL] -- COMMAND...",
    .help =
        "Takes the lock in Redis, runs the command, and gives the lock back. It is renewed while "
        "the command runs. If this process is killed, the lock ends after its lifetime and the "
        "command gets SIGTERM. If the lock is lost (Redis was away for a lifetime, or this process "
        "stalled), the command gets SIGTERM too. Signals are passed on.\n"
        "\n"
        "  weir fleet lock nightly --redis redis://db.example.org -- ./report\n"
        "  weir fleet lock deploy --wait 10m -- ./deploy\n"
        "  weir fleet lock nightly --show\n"
        "  weir fleet lock nightly --release\n"
        "\n"
        "The command finds the name in WEIR_LOCK and a number that grows with each holder in "
        "WEIR_LOCK_TOKEN. What the lock protects should refuse a smaller number than the largest "
        "it has seen: only that stops a command that was asleep while its lock ended.\n"
        "\n"
        "Waiters get the lock in order of arrival. One that dies or stalls loses its place within "
        "2 seconds.\n"
        "\n" WEIR__REDIS_URL_HELP "\n"
        "\n"
        "Exit codes: 0 and others are the command's, or 128 and the signal that ended it; 75 "
        "another has the lock, 76 it was lost, 125 no Redis, 126 the command cannot be run, 127 it "
        "is not found, 2 wrong use. Of --release: 1 nobody has it, or under another token.",
    WEIR__COMMAND_OPTIONS(rows, .lifetime = 30 * WEIR_SECOND),
    .words_min = 1,
    .words_max = WEIR__ANY_WORDS,
    .run = run,
};
