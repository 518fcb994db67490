/* rules-versions.c -- the rules of a fleet, for programs of operators (weir-fleet.h): asks to
 * rules-versions.lua by a caller that waits. */
#include "cluster/fleet/rules-versions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/fleet/node-reports.h"
#include "cluster/redis/thread.h"
#include "cluster/redis/trouble.h"
#include "wire/resp-reply.h"

_Static_assert(sizeof(((struct weir_fleet_version *)0)->author) == WEIR__VERSIONS_AUTHOR &&
                   sizeof(((struct weir_fleet_version *)0)->note) == WEIR__VERSIONS_NOTE,
               "an author and a note fit");

/* ----------------------------------------------------------------- waiting ---- */

struct call {
    struct weir__redis_job job;
    struct weir__redis_ask *ask;
    struct weir__buffer *reply;
    enum weir__redis_outcome outcome;
    char why[120];
    uint32_t ready;
};

static void begin(struct weir__redis_job *job, struct weir__redis_client *client, weir_time now)
{
    weir__redis_client_ask(client, ((struct call *)job)->ask, now);
}

/* The caller may be gone as soon as the word is set. */
static void answered(struct weir__redis_ask *ask, const struct weir__redis_answer *answer)
{
    struct call *call = ask->context;

    call->outcome = answer->outcome;
    if (answer->outcome == WEIR__REDIS_ANSWERED)
        weir__buffer_add(call->reply, answer->reply.bytes, answer->reply.len);
    else
        snprintf(call->why, sizeof(call->why), "%s", answer->why);
    weir__redis_ready_set(&call->ready);
}

int weir__fleet_away(struct weir_error *error, const char *why)
{
    return weir__fail(error, WEIR_SYSTEM, "the fleet's Redis %s: %s", weir__redis_trouble(why),
                      why);
}

int weir__fleet_call(struct weir_redis *redis, struct weir__redis_ask *ask,
                     struct weir__buffer *reply, struct weir_error *error)
{
    struct call call = { .job.begin = begin, .ask = ask, .reply = reply };

    ask->done = answered;
    ask->context = &call;
    weir__redis_thread_put(redis, &call.job);
    weir__redis_ready_wait(&call.ready);
    weir__redis_ask_free(ask);
    if (call.outcome == WEIR__REDIS_UNKNOWN)
        return weir__fail(error, WEIR_SYSTEM,
                          "the fleet's Redis did not answer, and may have carried it out: %s",
                          call.why);
    if (call.outcome != WEIR__REDIS_ANSWERED)
        return weir__fleet_away(error, call.why);
    return reply->failed ? weir__fail(error, WEIR_NO_MEMORY, "no memory") : WEIR_OK;
}

int weir__rules_call(struct weir_redis *redis, const char *fleet, const struct weir__text *words,
                     size_t n, struct weir__buffer *reply, struct weir__versions_list *out,
                     struct weir_error *error)
{
    static const struct weir_key rules = { WEIR__VERSIONS_RULES, sizeof(WEIR__VERSIONS_RULES) - 1 };
    const char *name = fleet ? fleet : "default";
    struct weir__redis_script script;
    struct weir__redis_ask ask;
    struct weir__text why;

    if (!weir__fleet_is_name(name))
        return weir__fail(error, WEIR_INVALID,
                          "names of fleets are letters, digits, '.', '_' and '-'");
    weir__versions_ask((struct weir_key){ name, strlen(name) }, rules, words, n, &script, &ask);
    ask.deadline = weir__redis_deadline(WEIR__FOLLOWER_ASK);
    int code = weir__fleet_call(redis, &ask, reply, error);
    if (code == WEIR_OK && !weir__versions_list(out, reply->bytes, &why))
        return weir__fail(error, WEIR_SYSTEM, "the fleet's Redis: %.*s", (int)why.len, why.bytes);
    return code;
}

/* ----------------------------------------------------------------- looking ---- */

static void copy_text(char *out, size_t size, struct weir__text text)
{
    snprintf(out, size, "%.*s", (int)text.len, text.bytes);
}

static struct weir_fleet_version version_of(const struct weir__version *v)
{
    struct weir_fleet_version out = { .number = v->number,
                                      .edit = v->edit,
                                      .origin = v->origin,
                                      .time = weir__reply_time(v->time_us),
                                      .bytes = v->bytes };

    copy_text(out.author, sizeof(out.author), v->author);
    copy_text(out.note, sizeof(out.note), v->note);
    return out;
}

int weir_fleet_history(struct weir_redis *redis, const char *fleet, struct weir_fleet_history *out,
                       struct weir_error *error)
{
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list = { 0 };
    struct weir__version v;
    int code =
        weir__rules_call(redis, fleet, &WEIR__VERSIONS_TEXT("list"), 1, &reply, &list, error);

    if (code == WEIR_OK) {
        *out = (struct weir_fleet_history){ .newest = weir__versions_number(&list) };
        copy_text(out->stage, sizeof(out->stage), weir__versions_text(&list));
        out->all = weir__versions_number(&list);
        while (out->n < WEIR_FLEET_VERSIONS && weir__versions_next(&list, &v))
            out->versions[out->n++] = version_of(&v);
    }
    weir__buffer_free(&reply);
    return code;
}

int weir_fleet_status(struct weir_redis *redis, const char *fleet, struct weir_fleet_status *out,
                      struct weir_error *error)
{
    struct weir__buffer replies[2] = { { 0 }, { 0 } };
    struct weir__versions_list list = { 0 }, nodes = { 0 };
    int code =
        weir__rules_call(redis, fleet, &WEIR__VERSIONS_TEXT("list"), 1, &replies[0], &list, error);

    if (code == WEIR_OK)
        code = weir__rules_call(redis, fleet, &WEIR__VERSIONS_TEXT("nodes"), 1, &replies[1], &nodes,
                                error);
    if (code == WEIR_OK) {
        weir__fleet_status_versions(out, &list);
        weir__fleet_status_nodes(out, &nodes);
    }
    weir__buffer_free(&replies[0]);
    weir__buffer_free(&replies[1]);
    return code;
}

static struct weir_fleet_node node_of(const struct weir__node_report *r, int64_t now_us)
{
    struct weir_fleet_node out = { .member = r->part >= 0,
                                   .part = r->part >= 0 ? r->part : 0,
                                   .weight = r->weight,
                                   .shares_name = r->shares_name,
                                   .follows = r->time_us > 0,
                                   .heard = r->time_us > 0 ? weir__node_report_age(r, now_us) : 0,
                                   .runs = r->runs,
                                   .refused = r->refused };

    copy_text(out.name, sizeof(out.name), r->node);
    copy_text(out.why, sizeof(out.why), r->why);
    return out;
}

int64_t weir_fleet_nodes(struct weir_redis *redis, const char *fleet, struct weir_fleet_node *out,
                         size_t max, struct weir_error *error)
{
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list = { 0 };
    struct weir__node_report r;
    int64_t n =
        weir__rules_call(redis, fleet, &WEIR__VERSIONS_TEXT("nodes"), 1, &reply, &list, error);

    if (n == WEIR_OK)
        for (int64_t now_us = weir__versions_number(&list); weir__node_report_next(&list, &r); n++)
            if ((size_t)n < max)
                out[n] = node_of(&r, now_us);
    weir__buffer_free(&reply);
    return n;
}

/* Its texts are in `reply`. */
static int get(struct weir_redis *redis, const char *fleet, int64_t version,
               struct weir__buffer *reply, struct weir__version *out, struct weir_error *error)
{
    struct weir__versions_list list;
    char number[24];

    snprintf(number, sizeof(number), "%" PRId64, version);
    const struct weir__text words[] = { WEIR__VERSIONS_TEXT("get"), WEIR__VERSIONS_TEXT(number) };
    int code = weir__rules_call(redis, fleet, words, 2, reply, &list, error);
    if (code == WEIR_OK && !weir__version(&list, out))
        return weir__fail(error, WEIR_SYSTEM, "the fleet's Redis: a reply that makes no sense");
    return code;
}

int weir_fleet_rules_get(struct weir_redis *redis, const char *fleet, int64_t version,
                         struct weir_fleet_version *out, char **text, struct weir_error *error)
{
    struct weir__buffer reply = { 0 };
    struct weir__version v = { .number = 0 };
    char *copy = NULL;
    int code = get(redis, fleet, version, &reply, &v, error);

    if (code == WEIR_OK && text && (copy = malloc(v.text.len + 1)) == NULL)
        code = weir__fail(error, WEIR_NO_MEMORY, "no memory");
    if (code == WEIR_OK) {
        *out = version_of(&v);
        if (copy) {
            if (v.text.len > 0)
                memcpy(copy, v.text.bytes, v.text.len);
            copy[v.text.len] = '\0';
            *text = copy;
        }
    }
    weir__buffer_free(&reply);
    return code;
}

/* ---------------------------------------------------------------- changing ---- */

/* Of put and all: {1, version}, or {0, newest}. */
static int64_t result_of(struct weir__versions_list *list, int64_t base, struct weir_error *error)
{
    bool done = weir__versions_number(list) == 1;
    int64_t version = weir__versions_number(list);

    if (done)
        return version;
    if (version == base)
        return weir__fail(error, WEIR_EXISTS,
                          "version %" PRId64 " is another than the one that this change is based "
                          "on: look at it first",
                          version);
    if (version == 0)
        return weir__fail(error, WEIR_EXISTS,
                          "Redis has no rules, and this change is based on version %" PRId64
                          ": it has lost its data, or is another; put them back with base 0",
                          base);
    return weir__fail(error, WEIR_EXISTS,
                      "version %" PRId64 " is there, and this change is based on %" PRId64
                      ": look at it first",
                      version, base);
}

static int64_t put(struct weir_redis *redis, const char *fleet,
                   const struct weir__versions_edit *edit, struct weir_error *error)
{
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list;
    struct weir__versions_put words;

    if (!weir__versions_put(&words, edit))
        return weir__fail(error, WEIR_SYSTEM, "no random numbers");
    int64_t code =
        weir__rules_call(redis, fleet, words.words, WEIR__VERSIONS_PUT_WORDS, &reply, &list, error);
    if (code == WEIR_OK)
        code = result_of(&list, edit->base, error);
    weir__buffer_free(&reply);
    return code;
}

/* A version that no node tries would come to all of them untried. */
static int find_stage(struct weir_redis *redis, const char *fleet, const char *stage,
                      struct weir_error *error)
{
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list = { 0 };
    char names[WEIR__NODE_REPORT_NAMES];
    int code =
        weir__rules_call(redis, fleet, &WEIR__VERSIONS_TEXT("nodes"), 1, &reply, &list, error);

    if (code == WEIR_OK && !weir__node_report_follows(&list, stage, names))
        code =
            weir__fail(error, WEIR_INVALID,
                       "no node %s follows the fleet's rules, and was heard in the last 10 s%s%s",
                       stage, *names ? "; those that do: " : ", nor does any other", names);
    weir__buffer_free(&reply);
    return code;
}

static int check(const struct weir_fleet_change *c, struct weir_error *error)
{
    if (c->len > WEIR__VERSIONS_TEXT_MAX)
        return weir__fail(error, WEIR_INVALID, "the rules of a fleet have at most 4 MiB");
    if (c->stage && *c->stage && !weir__fleet_is_name(c->stage))
        return weir__fail(error, WEIR_INVALID,
                          "names of nodes are letters, digits, '.', '_' and '-'");
    if (c->base < 0)
        return weir__fail(error, WEIR_INVALID, "a version is a number from 1 on; 0: there is none");
    return WEIR_OK;
}

int64_t weir_fleet_rules_set(struct weir_redis *redis, const char *fleet,
                             const struct weir_fleet_change *c, struct weir_error *error)
{
    int code = check(c, error);

    if (code == WEIR_OK && c->stage && *c->stage)
        code = find_stage(redis, fleet, c->stage, error);
    if (code != WEIR_OK)
        return code;
    const struct weir__versions_edit edit = { .base = c->base,
                                              .base_edit = c->base_edit ? c->base_edit : -1,
                                              .author = c->author ? c->author : "",
                                              .note = c->note,
                                              .stage = c->stage,
                                              .id = c->id,
                                              .text = { c->text, c->len } };
    return put(redis, fleet, &edit, error);
}

/* On top of the newest as it is now: a change in between is noticed. */
int64_t weir_fleet_rollback(struct weir_redis *redis, const char *fleet, int64_t version,
                            const char *author, const char *note, struct weir_error *error)
{
    struct weir__buffer replies[2] = { { 0 }, { 0 } };
    struct weir__version newest = { .number = 0 }, old = newest;
    int64_t code = version < 1 ? weir__fail(error, WEIR_INVALID, "a version is a number from 1 on")
                               : get(redis, fleet, 0, &replies[0], &newest, error);

    if (code == WEIR_OK)
        code = get(redis, fleet, version, &replies[1], &old, error);
    if (code == WEIR_OK && old.number == 0)
        code = weir__fail(error, WEIR_INVALID,
                          "the fleet's rules have no version %" PRId64 " (any more)", version);
    if (code == WEIR_OK)
        code = put(redis, fleet,
                   &(struct weir__versions_edit){ .base = newest.number,
                                                  .base_edit = newest.edit,
                                                  .origin = old.origin ? old.origin : old.number,
                                                  .author = author ? author : "",
                                                  .note = note,
                                                  .text = old.text },
                   error);
    weir__buffer_free(&replies[0]);
    weir__buffer_free(&replies[1]);
    return code;
}

int weir__rules_publish(struct weir_redis *redis, const char *fleet, int64_t version,
                        char warning[WEIR__RULES_WARNING], struct weir_error *error)
{
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list;
    char number[24];

    if (version < 1)
        return weir__fail(error, WEIR_INVALID, "a version is a number from 1 on");
    snprintf(number, sizeof(number), "%" PRId64, version);
    const struct weir__text words[] = { WEIR__VERSIONS_TEXT("all"), WEIR__VERSIONS_TEXT(number) };
    int code = weir__rules_call(redis, fleet, words, 2, &reply, &list, error);
    int64_t result = code == WEIR_OK ? weir__versions_number(&list) : 1;
    if (result == WEIR__VERSIONS_REFUSED)
        code = weir__fail(error, WEIR_INVALID, "the stage has refused version %" PRId64, version);
    else if (result != 1)
        code = weir__fail(error, WEIR_EXISTS, "the newest version is %" PRId64,
                          weir__versions_number(&list));
    if (code == WEIR_OK)
        weir__versions_untried(&list, warning);
    weir__buffer_free(&reply);
    return code;
}

int weir_fleet_publish(struct weir_redis *redis, const char *fleet, int64_t version,
                       struct weir_error *error)
{
    char warning[WEIR__RULES_WARNING];

    return weir__rules_publish(redis, fleet, version, warning, error);
}
