/* follow-rules.c -- the rules of the fleet: a thread polls for them and applies them.
 *
 * It is not the agent's thread, because applying rules takes time: asks that wait for units must
 * not wait for a disk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/thread.h"
#include "cluster/agent/agent.h"
#include "cluster/fleet/rules-versions-words.h"
#include "wire/decimal.h"

static const struct weir_key document = { WEIR__VERSIONS_RULES, sizeof(WEIR__VERSIONS_RULES) - 1 };

struct ending {
    struct weir__redis_job job;
    struct weir_fleet *fleet;
    uint32_t ready;
};

/* ------------------------------------------------------------------ asking ---- */

/* An ask of this thread, which waits for it. */
struct call {
    struct weir__redis_job job;
    struct weir_fleet *fleet;
    struct weir__redis_ask ask;
    struct weir__redis_script script;
    struct weir__buffer reply;
    bool answered;
    uint32_t ready;
};

static void begin(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now)
{
    struct call *call = (struct call *)job;

    if (call->fleet->follow.over)
        call->ask.deadline = now;
    call->fleet->follow.asking = &call->ask;
    weir__redis_client_ask(client, &call->ask, now);
}

static void answered(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct call *call = ask->context;

    call->fleet->follow.asking = NULL;
    call->answered = answer->outcome == WEIR__REDIS_ANSWERED;
    if (call->answered)
        weir__buffer_add(&call->reply, answer->reply.bytes, answer->reply.len);
    weir__redis_ready_set(&call->ready);
}

/* The list that Redis answers; false: none. */
static bool ask_versions(struct weir_fleet *f, struct call *call, const struct weir__text *words,
                         size_t n, struct weir__versions_list *list)
{
    struct weir_key fleet = { f->name, strlen(f->name) };
    struct weir__text why;

    weir__versions_ask(fleet, document, words, n, &call->script, &call->ask);
    call->fleet = f;
    call->job.begin = begin;
    call->ask.deadline = weir__redis_deadline(WEIR__FOLLOWER_ASK);
    call->ask.done = answered;
    call->ask.context = call;
    weir__redis_thread_put(f->redis, &call->job);
    weir__redis_ready_wait(&call->ready);
    weir__redis_ask_free(&call->ask);
    return call->answered && !call->reply.failed &&
           weir__versions_list(list, call->reply.bytes, &why);
}

static struct weir__follower_event poll_versions(struct weir_fleet *f)
{
    struct weir__follower_event event = { .kind = WEIR__FOLLOWER_FAILED };
    const struct weir__follower *s = &f->follow.state;
    struct call call = { .answered = false };
    struct weir__versions_list list;
    char runs[24], refused[24];

    snprintf(runs, sizeof(runs), "%" PRId64, s->runs.version);
    snprintf(refused, sizeof(refused), "%" PRId64, s->refused.version);
    struct weir__text words[] = { WEIR__VERSIONS_TEXT("poll"), WEIR__VERSIONS_TEXT(f->node),
                                  WEIR__VERSIONS_TEXT(runs), WEIR__VERSIONS_TEXT(refused),
                                  WEIR__VERSIONS_TEXT(s->why) };
    if (ask_versions(f, &call, words, 5, &list) && list.left == 2) {
        event.of.version = weir__versions_number(&list);
        struct weir__text edit = weir__versions_text(&list);
        weir__count_parse(edit.bytes, edit.len, &event.of.edit);
        event.kind = WEIR__FOLLOWER_POLLED;
    }
    weir__buffer_free(&call.reply);
    return event;
}

void weir__follow_fetched(struct weir_fleet *f, struct weir__text text,
                          const struct weir__edition *of)
{
    f->follow.text.len = 0;
    f->follow.text.failed = false;
    weir__buffer_add(&f->follow.text, text.bytes, text.len);
    weir__buffer_add(&f->follow.text, "", 1); /* for those who want a string */
    f->follow.text.len -= f->follow.text.len > 0;
    f->follow.fetched = *of;
}

static struct weir__follower_event fetch(struct weir_fleet *f, int64_t version)
{
    struct weir__follower_event event = { .kind = WEIR__FOLLOWER_FAILED };
    struct call call = { .answered = false };
    struct weir__versions_list list;
    struct weir__version v;
    char number[24];

    snprintf(number, sizeof(number), "%" PRId64, version);
    struct weir__text words[] = { WEIR__VERSIONS_TEXT("get"), WEIR__VERSIONS_TEXT(number) };
    if (ask_versions(f, &call, words, 2, &list) && weir__version(&list, &v) && v.number > 0) {
        event.of = (struct weir__edition){ v.number, v.edit };
        weir__follow_fetched(f, v.text, &event.of);
        event.kind = f->follow.text.failed ? WEIR__FOLLOWER_FAILED : WEIR__FOLLOWER_FETCHED;
    }
    weir__buffer_free(&call.reply);
    return event;
}

static int apply(struct weir_fleet *f, struct weir_error *error)
{
    return f->follow.apply(f->follow.context, f->follow.text.bytes, f->follow.text.len, error);
}

/* Rules for a start while Redis is away.  They count as the fleet's only if they are accepted. */
static void begin_with_copy(struct weir_fleet *f)
{
    struct weir_error error = { .text = "" };

    if (weir__rules_copy_read(f) && apply(f, &error) == WEIR_OK)
        f->follow.state.runs = f->follow.fetched;
}

/* --------------------------------------------------------------- the thread ---- */

static void note(struct weir_fleet *f)
{
    const struct weir__follower *s = &f->follow.state;

    pthread_mutex_lock(&f->mutex);
    f->info.version = s->runs.version;
    f->info.refused = s->refused.version;
    memcpy(f->info.refused_why, s->why, sizeof(s->why));
    pthread_mutex_unlock(&f->mutex);
}

static struct weir__follower_event apply_fetched(struct weir_fleet *f, struct weir_error *error)
{
    struct weir__follower_event event = { .kind = WEIR__FOLLOWER_APPLIED };

    *error = (struct weir_error){ .text = "" };
    if (apply(f, error) != WEIR_OK)
        event.why = error->text[0] ? error->text : "refused without a reason";
    return event;
}

static bool is_ending(struct weir_fleet *f)
{
    return __atomic_load_n(&f->follow.ending, __ATOMIC_ACQUIRE) != 0;
}

static void *follow(void *context)
{
    struct weir_fleet *f = context;
    struct weir__follower_event event = { .kind = WEIR__FOLLOWER_TIME };
    struct weir_error error;

    begin_with_copy(f);
    while (!is_ending(f)) {
        struct weir__follower_do what =
            weir__follower_step(&f->follow.state, &event, weir__clock_monotonic());
        if (event.kind == WEIR__FOLLOWER_APPLIED && !event.why)
            weir__rules_copy_write(f);
        note(f);
        if (what.verb == WEIR__FOLLOWER_NOTHING) {
            weir_time span = f->follow.state.due - weir__clock_monotonic();
            if (span > 0)
                weir__clock_wait_word(&f->follow.ending, 0, span);
            event = (struct weir__follower_event){ .kind = WEIR__FOLLOWER_TIME };
            continue;
        }
        event = what.verb == WEIR__FOLLOWER_POLL    ? poll_versions(f)
                : what.verb == WEIR__FOLLOWER_FETCH ? fetch(f, what.version)
                                                    : apply_fetched(f, &error);
        weir__rules_copy_keep(f, &event);
    }
    return NULL;
}

int weir__follow_begin(struct weir_fleet *f, const struct weir_fleet_options *o,
                       struct weir_error *error)
{
    if (!o->apply)
        return WEIR_OK;
    f->follow.apply = o->apply;
    f->follow.context = o->context;
    if (o->copies && asprintf(&f->follow.copy, "%s/weir-fleet-%s-rules", o->copies, f->name) < 0) {
        f->follow.copy = NULL;
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a fleet");
    }
    int number = weir__thread_start(&f->follow.thread, follow, f);
    if (number != 0)
        free(f->follow.copy);
    if (number != 0)
        return weir__fail(error, WEIR_SYSTEM, "no thread for a fleet: %s", strerror(number));
    f->follow.started = true;
    return WEIR_OK;
}

/* Nobody waits for an answer that is not wanted any more. */
static void cancel(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now)
{
    struct ending *ending = (struct ending *)job;
    struct weir_fleet *f = ending->fleet;

    (void)now;
    f->follow.over = true;
    if (f->follow.asking)
        weir__redis_client_cancel(client, f->follow.asking);
    weir__redis_ready_set(&ending->ready);
}

void weir__follow_end(struct weir_fleet *f)
{
    if (f->follow.started) {
        struct ending ending = { .job.begin = cancel, .fleet = f };
        weir__redis_ready_set(&f->follow.ending);
        weir__redis_thread_put(f->redis, &ending.job);
        weir__redis_ready_wait(&ending.ready);
        pthread_join(f->follow.thread, NULL);
    }
    weir__buffer_free(&f->follow.text);
    free(f->follow.copy);
}
