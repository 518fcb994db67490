/* admin-fleet.c -- the fleet that this server is in: its nodes, and the versions of its rules. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cluster/agent/operators.h"
#include "server/describe/fleet-json.h"
#include "server/serve/admin/admin.h"

/* The list that the fleet's Redis answers, in `reply`; false: the call has failed. */
static bool ask(struct weir__verb_call *call, const struct weir__text *words, size_t n,
                struct weir__buffer *reply, struct weir__centre_list *out)
{
    struct weir_error error = { .text = "" };
    struct weir__text why;

    if (call->server->fleet == NULL)
        return weir__call_fail(call, 404,
                               "this server is in no fleet: it was not started with "
                               "--fleet");
    int code = weir__agent_centre(call->server->fleet, words, n, reply, &error);
    if (code != WEIR_OK)
        return weir__call_fail(call, 503, "%s", error.text);
    if (!weir__centre_list(out, reply->bytes, &why))
        return weir__call_fail(call, 503, "the fleet's Redis: %.*s", (int)why.len, why.bytes);
    return true;
}

/* ----------------------------------------------------------------- looking ---- */

void weir__admin_fleet_nodes(struct weir__verb_call *call)
{
    struct weir__buffer reply = { 0 };
    struct weir__centre_list list;
    struct weir__centre_report r;

    if (ask(call, &WEIR__CENTRE_TEXT("nodes"), 1, &reply, &list)) {
        int64_t now_us = weir__centre_number(&list);
        weir__buffer_open(&call->out, NULL, '{');
        weir__buffer_open(&call->out, "nodes", '[');
        while (weir__centre_next_report(&list, &r))
            weir__fleet_report_json(&call->out, &r, now_us);
        weir__buffer_close(&call->out, "]}");
    }
    weir__buffer_free(&reply);
}

void weir__admin_fleet_history(struct weir__verb_call *call)
{
    struct weir__buffer reply = { 0 };
    struct weir__centre_list list;
    struct weir__centre_version v;

    if (ask(call, &WEIR__CENTRE_TEXT("list"), 1, &reply, &list)) {
        weir__buffer_open(&call->out, NULL, '{');
        weir__buffer_member_number(&call->out, "newest", weir__centre_number(&list));
        struct weir__text stage = weir__centre_text(&list);
        weir__buffer_member_number(&call->out, "all", weir__centre_number(&list));
        weir__buffer_member_name(&call->out, "stage");
        if (stage.len > 0)
            weir__buffer_json(&call->out, stage.bytes, stage.len);
        else
            weir__buffer_text(&call->out, "null");
        weir__buffer_open(&call->out, "versions", '[');
        while (weir__centre_next_version(&list, &v))
            weir__fleet_version_json(&call->out, &v);
        weir__buffer_close(&call->out, "]}");
    }
    weir__buffer_free(&reply);
}

/* ------------------------------------------------------------ rolling back ---- */

/* A number of 0: there is none. */
static bool get(struct weir__verb_call *call, int64_t version, struct weir__buffer *reply,
                struct weir__centre_version *out)
{
    struct weir__centre_list list;
    char number[24];

    snprintf(number, sizeof(number), "%" PRId64, version);
    const struct weir__text words[] = { WEIR__CENTRE_TEXT("get"), WEIR__CENTRE_TEXT(number) };
    if (!ask(call, words, 2, reply, &list))
        return false;
    if (!weir__centre_version(&list, out))
        return weir__call_fail(call, 503, "the fleet's Redis: a reply that makes no sense");
    return true;
}

static void put(struct weir__verb_call *call, const struct weir__centre_edit *edit)
{
    struct weir__buffer reply = { 0 };
    struct weir__centre_list list;
    struct weir__centre_put words;

    if (!weir__centre_put(&words, edit)) {
        weir__call_fail(call, 500, "no random numbers");
    } else if (ask(call, words.words, WEIR__CENTRE_PUT_WORDS, &reply, &list)) {
        bool done = weir__centre_number(&list) == 1;
        int64_t version = weir__centre_number(&list);
        if (done) {
            weir__buffer_open(&call->out, NULL, '{');
            weir__buffer_member_number(&call->out, "version", version);
            weir__buffer_member_number(&call->out, "origin", edit->origin);
            weir__buffer_close(&call->out, "}");
        } else {
            weir__call_fail(call, 409,
                            "somebody else has just changed the rules: version %" PRId64
                            " is there; look at it first",
                            version);
        }
    }
    weir__buffer_free(&reply);
}

/* The version is named, and not "the one before": a call that is repeated because its answer was
 * lost makes another version with the same text. */
void weir__admin_fleet_rollback(struct weir__verb_call *call)
{
    struct weir__buffer replies[2] = { { 0 }, { 0 } };
    struct weir__centre_version newest, old;
    struct weir_fleet_info info;
    char author[WEIR__CENTRE_AUTHOR];

    if (get(call, 0, &replies[0], &newest) &&
        get(call, call->values[0].number, &replies[1], &old)) {
        weir_fleet_look(call->server->fleet, &info);
        snprintf(author, sizeof(author), "api@%s", info.node);
        if (old.number == 0)
            weir__call_fail(call, 404, "the fleet's rules have no version %" PRId64 " (any more)",
                            call->values[0].number);
        else
            put(call, &(struct weir__centre_edit){ .base = newest.number,
                                                   .base_edit = newest.edit,
                                                   .origin = old.number,
                                                   .author = author,
                                                   .note = call->values[1].text.bytes,
                                                   .text = old.text });
    }
    weir__buffer_free(&replies[0]);
    weir__buffer_free(&replies[1]);
}
