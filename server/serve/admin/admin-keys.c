/* admin-keys.c -- one request's keys: why the rules say what they say to it, and forgetting what it
 * has used. */
#include <string.h>

#include "server/describe/explain-json.h"
#include "server/serve/admin/admin-parts.h"

void weir__admin_explain(struct weir__admin_call *call)
{
    struct weir_attr attrs[WEIR__CHECK_ATTRS];
    size_t n;

    if (weir__admin_attributes(call, attrs, &n))
        weir__explain_json(call->server->engine, attrs, n,
                           &(struct weir_ask){ .cost = 1, .now = call->now }, false, call->out);
}

static bool is_star(struct weir__span value)
{
    return value.len == 1 && value.bytes[0] == '*';
}

void weir__admin_reset(struct weir__admin_call *call)
{
    struct weir_attr attrs[WEIR__CHECK_ATTRS];
    struct weir_error error;
    bool all = is_star(call->values[0]);
    const char *rule = all ? NULL : weir__admin_rule(call, call->values[0]);
    size_t n;

    if ((!all && rule == NULL) || !weir__admin_attributes(call, attrs, &n))
        return;
    int64_t reset = weir_reset(call->server->engine, rule, attrs, n, call->now, &error);
    if (reset < 0) {
        weir__admin_fail_code(call, (int)reset, &error);
        return;
    }
    weir__buffer_text(call->out, "{");
    weir__buffer_member_or_null(call->out, "rule", rule);
    weir__buffer_member_number(call->out, "reset", reset);
    weir__buffer_text(call->out, "}");
    if (reset > 0)
        weir__events_emit(
            call->server->events, WEIR__EVENT_RESET, call->now,
            &(struct weir__event_facts){ .rule = rule, .source = "api", .count = reset });
}
