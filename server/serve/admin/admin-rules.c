/* admin-rules.c -- the rules in force: shown, and others put in their place. */
#include <string.h>

#include "server/serve/admin/admin.h"
#include "server/serve/fleet.h"

/* ----------------------------------------------------------------- which ---- */

void weir__admin_rules_info(const struct weir__server *server, struct weir__buffer *out)
{
    struct weir__in_force_info info;

    weir__in_force_info(server->in_force, &info);
    bool any = info.hash[0] != '\0';
    weir__buffer_member_or_null(out, "hash", any ? info.hash : NULL);
    weir__buffer_member_or_null(out, "source", any ? info.source : NULL);
    weir__buffer_member_or_null(out, "cause", any ? info.cause : NULL);
    weir__buffer_member_moment(out, "since",
                               any ? weir_table_real(server->table, info.since) : WEIR_NEVER);
    weir__buffer_member_number(out, "version", info.version);
    weir__buffer_member_number(out, "rules", (int64_t)info.rules);
    weir__buffer_member_number(out, "limits", (int64_t)info.limits);
    weir__buffer_member_number(out, "guards", (int64_t)info.guards);
    weir__buffer_member_number(out, "entries", (int64_t)info.entries);
    weir__buffer_member_number(out, "changes_by_hand", (int64_t)info.by_hand);
    weir__buffer_member_number(out, "changes_skipped", (int64_t)info.skipped);
    weir__buffer_member_or_null(out, "problem", info.problem[0] ? info.problem : NULL);
    weir__buffer_member_moment(out, "problem_at",
                               info.problem[0] ? weir_table_real(server->table, info.problem_at)
                                               : WEIR_NEVER);
    weir__buffer_member_name(out, "warnings");
    weir__in_force_doubts(server->in_force, out);
}

void weir__admin_rules(struct weir__verb_call *call)
{
    struct weir__buffer text = { 0 };

    weir__in_force_text(call->server->in_force, &text);
    weir__buffer_open(&call->out, NULL, '{');
    weir__admin_rules_info(call->server, &call->out);
    weir__buffer_member_name(&call->out, "text");
    weir__buffer_json(&call->out, text.len ? text.bytes : "", text.len);
    weir__buffer_close(&call->out, "}");
    if (text.failed)
        weir__call_no_memory(call);
    weir__buffer_free(&text);
}

static void answer_info(struct weir__verb_call *call)
{
    weir__buffer_open(&call->out, NULL, '{');
    weir__admin_rules_info(call->server, &call->out);
    weir__buffer_close(&call->out, "}");
}

/* ---------------------------------------------------------------- others ---- */

void weir__admin_rules_wrong(struct weir__verb_call *call, int code, const struct weir_error *error,
                             const struct weir__buffer *problems)
{
    struct weir_problem whole = { .caret = -1 };

    memcpy(whole.text, error->text, sizeof(whole.text));
    weir__call_fail_code(call, code, error);
    if (code != WEIR_INVALID && code != WEIR_EXISTS)
        return;
    call->status = 422;
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_name(&call->out, "problems");
    if (problems->len > strlen("[]")) {
        weir__buffer_add(&call->out, problems->bytes, problems->len);
    } else { /* no line is wrong */
        weir__buffer_open(&call->out, NULL, '[');
        weir__problem_json(&call->out, &whole, false);
        weir__buffer_close(&call->out, "]");
    }
    weir__buffer_close(&call->out, "}");
}

void weir__admin_rules_set(struct weir__verb_call *call)
{
    struct weir__buffer problems = { 0 };
    struct weir_error error;

    if (weir__node_follows(call->server)) {
        weir__call_fail(call, 409, "the rules are the fleet's: weir fleet rules set");
        return;
    }
    int code = weir__in_force_set(call->server->in_force, call->values[0].text.bytes,
                                  call->values[0].text.len, call->now, &problems, &error);
    if (code == WEIR_OK)
        answer_info(call);
    else
        weir__admin_rules_wrong(call, code, &error, &problems);
    weir__buffer_free(&problems);
}

void weir__admin_rules_check(struct weir__verb_call *call)
{
    struct weir__buffer problems = { 0 };
    struct weir_error error;

    int code = weir__in_force_check(call->server->in_force, call->values[0].text.bytes,
                                    call->values[0].text.len, &problems, &error);
    if (code == WEIR_OK)
        weir__buffer_text(&call->out, "{\"problems\":[]}");
    else
        weir__admin_rules_wrong(call, code, &error, &problems);
    weir__buffer_free(&problems);
}

void weir__admin_rules_reload(struct weir__verb_call *call)
{
    struct weir__buffer problems = { 0 };
    struct weir_error error;
    int code = weir__in_force_reload(call->server->in_force, "api", call->now, &problems, &error);

    if (code == WEIR_OK)
        answer_info(call);
    else
        weir__admin_rules_wrong(call, code, &error, &problems);
    weir__buffer_free(&problems);
}
