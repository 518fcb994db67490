/* ask-redis.c -- the commands that ask a Redis. */
#include "server/cli/ask-redis.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "server/base/complain.h"

int weir__asker_open(struct weir__asker *a, const char *command, const char *url, weir_time timeout)
{
    struct weir__redis_options options = { .pool = 1,
                                           .jitter = (uint64_t)weir__clock_real(),
                                           .module_first = true };
    struct weir_error error;

    *a = (struct weir__asker){ .command = command, .timeout = timeout };
    url = url ? url : getenv("WEIR_REDIS");
    if (!url || !*url)
        return weir__complain(command, "where is Redis? name a URL, or set WEIR_REDIS");
    if (weir__redis_url_parse(&options.url, url, &error) != WEIR_OK)
        return weir__complain(command, "%s (column %d)", error.text, error.column);
    if (weir__redis_drive_create(&a->drive, &options, &error) != WEIR_OK)
        return weir__complain(command, "%s", error.text);
    a->client = weir__redis_drive_client(a->drive);
    return WEIR__GO_ON;
}

void weir__asker_close(struct weir__asker *a)
{
    weir__redis_drive_destroy(a->drive);
    weir__buffer_free(&a->reply);
}

static void note(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct weir__asker *a = ask->context;

    a->waiting = false;
    a->outcome = answer->outcome;
    a->reply.len = 0;
    if (answer->outcome == WEIR__REDIS_ANSWERED)
        weir__buffer_add(&a->reply, answer->reply.bytes, answer->reply.len);
    else
        snprintf(a->why, sizeof(a->why), "%s", answer->why);
}

static void wait_until(struct weir__asker *a, weir_time due)
{
    struct pollfd watched = { .fd = weir__redis_drive_fd(a->drive), .events = POLLIN };
    weir_time now = weir__clock_monotonic(), span = due > now ? due - now : 0;
    weir_time ms = span / WEIR_MILLISECOND + (span % WEIR_MILLISECOND > 0);

    poll(&watched, 1, due == WEIR_NEVER || ms > INT_MAX ? -1 : (int)ms);
}

static void wait_for_answer(struct weir__asker *a)
{
    while (a->waiting) {
        weir_time due = weir__redis_drive_turn(a->drive, weir__clock_monotonic());
        if (a->waiting)
            wait_until(a, due);
    }
}

bool weir__asker_ask(struct weir__asker *a, struct weir__redis_ask *ask)
{
    weir_time now = weir__clock_monotonic();

    ask->done = note;
    ask->context = a;
    ask->deadline = now + a->timeout;
    a->waiting = true;
    weir__redis_client_ask(a->client, ask, now);
    wait_for_answer(a);
    return a->outcome == WEIR__REDIS_ANSWERED && !a->reply.failed;
}

static void note_carried(struct weir__carry *carry, enum weir__redis_outcome outcome,
                         const char *why)
{
    struct weir__asker *a = carry->context;

    a->waiting = false;
    a->outcome = outcome;
    snprintf(a->why, sizeof(a->why), "%s", why ? why : "");
}

bool weir__asker_carry(struct weir__asker *a, struct weir__carry *carry)
{
    weir_time now = weir__clock_monotonic();

    carry->done = note_carried;
    carry->context = a;
    carry->deadline = now + a->timeout;
    a->waiting = true;
    weir__carry_begin(carry, a->client, now);
    wait_for_answer(a);
    return a->outcome == WEIR__REDIS_ANSWERED;
}
