/* admin-fleet.c -- the fleet that this server is in: its nodes, and the versions of its rules. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/agent/operators.h"
#include "cluster/fleet/rules-versions.h"
#include "server/describe/fleet-json.h"
#include "server/describe/rules-diff.h"
#include "server/describe/rules-file.h"
#include "server/serve/admin/admin.h"
#include "server/serve/fleet.h"

struct fleet {
    struct weir_redis *redis;
    struct weir_fleet_info info;
};

/* False: the call has failed. */
static bool find_fleet(struct weir__verb_call *call, struct fleet *out)
{
    struct weir_error error = { .text = "" };

    if (call->server->fleet == NULL)
        return weir__call_fail(call, 404, WEIR__NO_FLEET);
    weir_fleet_look(call->server->fleet, &out->info);
    out->redis = weir__agent_redis(call->server->fleet, &error);
    return out->redis != NULL || weir__call_fail(call, 503, "%s", error.text);
}

/* Of weir-fleet.h. */
static bool fail(struct weir__verb_call *call, int64_t code, const struct weir_error *error)
{
    return weir__call_fail(call,
                           code == WEIR_EXISTS    ? 409
                           : code == WEIR_INVALID ? 404
                                                  : 503,
                           "%s", error->text);
}

/* The list that the fleet's Redis answers, in `reply`; false: the call has failed. */
static bool ask(struct weir__verb_call *call, const struct fleet *f, const char *verb,
                struct weir__buffer *reply, struct weir__versions_list *out)
{
    struct weir_error error = { .text = "" };
    int code =
        weir__rules_call(f->redis, f->info.name, &WEIR__VERSIONS_TEXT(verb), 1, reply, out, &error);

    return code == WEIR_OK || fail(call, code, &error);
}

/* ----------------------------------------------------------------- looking ---- */

void weir__admin_fleet(struct weir__verb_call *call)
{
    struct weir_error error = { .text = "" };
    struct weir_fleet_status status;
    struct fleet f;

    if (!find_fleet(call, &f))
        return;
    int code = weir_fleet_status(f.redis, f.info.name, &status, &error);
    if (code != WEIR_OK) {
        fail(call, code, &error);
        return;
    }
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member(&call->out, "name", f.info.name);
    weir__buffer_member(&call->out, "node", f.info.node);
    weir__fleet_status_json(&call->out, &status);
    weir__buffer_close(&call->out, "}");
}

void weir__admin_fleet_nodes(struct weir__verb_call *call)
{
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list;
    struct weir__node_report r;
    struct fleet f;

    if (find_fleet(call, &f) && ask(call, &f, "nodes", &reply, &list)) {
        int64_t now_us = weir__versions_number(&list);
        weir__buffer_open(&call->out, NULL, '{');
        weir__buffer_open(&call->out, "nodes", '[');
        while (weir__node_report_next(&list, &r))
            weir__fleet_report_json(&call->out, &r, now_us);
        weir__buffer_close(&call->out, "]}");
    }
    weir__buffer_free(&reply);
}

void weir__admin_fleet_history(struct weir__verb_call *call)
{
    struct weir__buffer reply = { 0 };
    struct weir__versions_list list;
    struct weir__version v;
    struct fleet f;

    if (find_fleet(call, &f) && ask(call, &f, "list", &reply, &list)) {
        weir__buffer_open(&call->out, NULL, '{');
        weir__buffer_member_number(&call->out, "newest", weir__versions_number(&list));
        struct weir__text stage = weir__versions_text(&list);
        weir__buffer_member_number(&call->out, "all", weir__versions_number(&list));
        weir__buffer_member_name(&call->out, "stage");
        if (stage.len > 0)
            weir__buffer_json(&call->out, stage.bytes, stage.len);
        else
            weir__buffer_text(&call->out, "null");
        weir__buffer_open(&call->out, "versions", '[');
        while (weir__versions_next(&list, &v))
            weir__fleet_version_json(&call->out, &v);
        weir__buffer_close(&call->out, "]}");
    }
    weir__buffer_free(&reply);
}

/* 0: the newest.  The text is to be freed.  False: the call has failed; there is none: 404. */
static bool get(struct weir__verb_call *call, const struct fleet *f, int64_t version,
                struct weir_fleet_version *out, char **text)
{
    struct weir_error error = { .text = "" };
    int code = weir_fleet_rules_get(f->redis, f->info.name, version, out, text, &error);

    if (code != WEIR_OK)
        return fail(call, code, &error);
    if (out->number != 0)
        return true;
    if (version == 0)
        return weir__call_fail(call, 404, "the fleet has no rules yet");
    return weir__call_fail(call, 404, "the fleet's rules have no version %" PRId64 " (any more)",
                           version);
}

void weir__admin_fleet_rules(struct weir__verb_call *call)
{
    struct weir__buffer *out = &call->out;
    struct weir_fleet_version v;
    struct fleet f;
    char *text = NULL, edit[24];

    if (find_fleet(call, &f) && get(call, &f, call->values[0].number, &v, &text)) {
        snprintf(edit, sizeof(edit), "%" PRId64, v.edit);
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member_number(out, "version", v.number);
        weir__buffer_member(out, "edit", edit); /* more than many a reader of JSON can count to */
        weir__buffer_member_number(out, "time_us", v.time / WEIR_MICROSECOND);
        weir__buffer_member_number(out, "origin", v.origin);
        weir__buffer_member(out, "author", v.author);
        weir__buffer_member(out, "note", v.note);
        weir__buffer_member_name(out, "text");
        weir__buffer_json(out, text, (size_t)v.bytes);
        weir__buffer_close(out, "}");
    }
    free(text);
}

/* ---------------------------------------------------------------- changing ---- */

/* NULL: it is wrong, and the call has failed with everything that is wrong about it.  `name`: of
 * the text, for problems. */
static struct weir__draft *read_rules(struct weir__verb_call *call, const char *name,
                                      struct weir__text text)
{
    struct weir__buffer problems = { 0 };
    struct weir__problems said = { .name = name, .json = &problems };
    struct weir_error error = { .text = "" };
    struct weir__draft *draft;

    weir__buffer_open(&problems, NULL, '[');
    draft = weir__rules_text_read(text, &said, &error);
    weir__buffer_close(&problems, "]");
    if (draft == NULL)
        weir__admin_rules_wrong(call, WEIR_INVALID, &error, &problems);
    weir__buffer_free(&problems);
    return draft;
}

static void answer_version(struct weir__verb_call *call, int64_t version, int64_t origin)
{
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_number(&call->out, "version", version);
    weir__buffer_member_number(&call->out, "origin", origin);
    weir__buffer_close(&call->out, "}");
}

static const char *author(const struct fleet *f, char out[WEIR__VERSIONS_AUTHOR])
{
    snprintf(out, WEIR__VERSIONS_AUTHOR, "api@%s", f->info.node);
    return out;
}

void weir__admin_fleet_rules_set(struct weir__verb_call *call)
{
    const struct weir__given *v = call->values;
    struct weir_error error = { .text = "" };
    char by[WEIR__VERSIONS_AUTHOR];
    struct fleet f;

    if (!find_fleet(call, &f))
        return;
    struct weir__draft *draft = read_rules(call, "text", v[0].text);
    if (draft == NULL)
        return;
    weir__draft_destroy(draft);
    int64_t version = weir_fleet_rules_set(f.redis, f.info.name,
                                           &(struct weir_fleet_change){ .text = v[0].text.bytes,
                                                                        .len = v[0].text.len,
                                                                        .base = v[1].number,
                                                                        .base_edit = v[2].number,
                                                                        .author = author(&f, by),
                                                                        .note = v[3].text.bytes,
                                                                        .stage = v[4].text.bytes,
                                                                        .id = v[5].text.bytes },
                                           &error);
    if (version > 0)
        answer_version(call, version, 0);
    else
        weir__call_fail(call,
                        version == WEIR_EXISTS    ? 409
                        : version == WEIR_INVALID ? 400
                                                  : 503,
                        "%s", error.text);
}

void weir__admin_fleet_publish(struct weir__verb_call *call)
{
    struct weir_error error = { .text = "" };
    char warning[WEIR__RULES_WARNING];
    struct fleet f;

    if (!find_fleet(call, &f))
        return;
    int code = weir__rules_publish(f.redis, f.info.name, call->values[0].number, warning, &error);
    if (code != WEIR_OK) {
        weir__call_fail(call, code == WEIR_SYSTEM ? 503 : 409, "%s", error.text);
        return;
    }
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_bool(&call->out, "published", true);
    weir__buffer_member_or_null(&call->out, "warning", *warning ? warning : NULL);
    weir__buffer_close(&call->out, "}");
}

/* The version is named, and not "the one before": a call that is repeated because its answer was
 * lost makes another version with the same text. */
void weir__admin_fleet_rollback(struct weir__verb_call *call)
{
    int64_t origin = call->values[0].number;
    struct weir_error error = { .text = "" };
    char by[WEIR__VERSIONS_AUTHOR];
    struct fleet f;

    if (!find_fleet(call, &f))
        return;
    int64_t version = weir_fleet_rollback(f.redis, f.info.name, origin, author(&f, by),
                                          call->values[1].text.bytes, &error);
    if (version > 0)
        answer_version(call, version, origin);
    else
        fail(call, version, &error);
}

/* --------------------------------------------------------------- comparing ---- */

/* A text that nobody sent was good when it was published: by another version of the program it may
 * not be. */
static void compare(struct weir__verb_call *call, int64_t from, struct weir__text old,
                    struct weir__text new)
{
    struct weir__draft *a = read_rules(call, "the fleet", old);
    struct weir__draft *b = a ? read_rules(call, "text", new) : NULL;

    if (b) {
        weir__buffer_open(&call->out, NULL, '{');
        weir__buffer_member_number(&call->out, "from", from);
        weir__buffer_open(&call->out, "changes", '[');
        long n = weir__rules_diff(a, b, weir__change_json, &call->out);
        weir__buffer_close(&call->out, "]");
        weir__buffer_member_bool(&call->out, "same", n == 0);
        weir__buffer_close(&call->out, "}");
        call->out.failed = call->out.failed || n < 0;
    }
    weir__draft_destroy(a);
    weir__draft_destroy(b);
}

/* From a version, by default the newest, to a text, by default the newest's. */
void weir__admin_fleet_rules_diff(struct weir__verb_call *call)
{
    struct weir__text to = call->values[0].text;
    struct weir_fleet_version from, newest;
    char *old = NULL, *new = NULL;
    struct fleet f;

    if (to.bytes == NULL && !weir__call_given(call, 1))
        weir__call_fail(call, 400,
                        "compare what? A text with the newest version, or a version "
                        "with a text, or with the newest one");
    else if (find_fleet(call, &f) && get(call, &f, call->values[1].number, &from, &old) &&
             (to.bytes != NULL || get(call, &f, 0, &newest, &new)))
        compare(call, from.number, (struct weir__text){ old, (size_t)from.bytes },
                to.bytes ? to : (struct weir__text){ new, (size_t)newest.bytes });
    free(old);
    free(new);
}
