/* admin-explain-reset.c -- one request's keys: explains the rules' answers, and resets the keys. */
#include <string.h>

#include "server/describe/explain-json.h"
#include "server/serve/admin/admin.h"

void weir__admin_explain(struct weir__verb_call *call)
{
    weir__explain_json(call->server->engine, call->attrs, call->n_attrs,
                       &(struct weir_ask){ .cost = 1, .now = call->now }, false, &call->out);
}

static bool is_star(struct weir__text value)
{
    return value.len == 1 && value.bytes[0] == '*';
}

void weir__admin_reset(struct weir__verb_call *call)
{
    struct weir_error error;
    bool all = is_star(call->values[0].text);
    const char *rule = all ? NULL : weir__admin_rule(call, call->values[0].text, false);

    if (!all && rule == NULL)
        return;
    int64_t reset =
        weir_reset(call->server->engine, rule, call->attrs, call->n_attrs, call->now, &error);
    if (reset < 0) {
        weir__call_fail_code(call, (int)reset, &error);
        return;
    }
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_or_null(&call->out, "rule", rule);
    weir__buffer_member_number(&call->out, "reset", reset);
    weir__buffer_close(&call->out, "}");
    if (reset > 0)
        weir__events_emit(
            call->server->events, WEIR__EVENT_RESET, call->now,
            &(struct weir__event_facts){ .rule = rule, .source = "api", .count = reset });
}
