/* admin-modes.c -- modes of rules and guards: listed with their counts, and switched by hand. */
#include <string.h>

#include "base/base.h"
#include "server/serve/admin/admin.h"
#include "server/serve/decide/guard-lookup.h"
#include "server/base/complain.h"

static void add_modes(struct weir__buffer *out, const struct weir_modes *m)
{
    weir__buffer_member(out, "as_written", weir_mode_name(m->written));
    weir__buffer_member_or_null(out, "by_hand",
                                m->by_hand == WEIR_AS_WRITTEN ? NULL : weir_mode_name(m->by_hand));
    weir__buffer_member(out, "in_force", weir_mode_name(m->in_force));
}

static void add_rule(struct weir__verb_call *call, const struct weir_rule_info *info)
{
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member(&call->out, "rule", info->name);
    add_modes(&call->out, &(struct weir_modes){ info->written, info->switched, info->mode });
    weir__buffer_member_number(&call->out, "allowed", info->allowed);
    weir__buffer_member_number(&call->out, "refused", info->refused);
    weir__buffer_member_number(&call->out, "banned", info->banned);
    weir__buffer_member_number(&call->out, "shadow_refused", info->shadow_refused);
    weir__buffer_close(&call->out, "}");
}

static void add_guard(struct weir__verb_call *call, const struct weir_ruled_guard *view)
{
    struct weir_guard_info g;

    weir_guard_get(view->guard, call->now, &g);
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member(&call->out, "guard", view->name);
    add_modes(&call->out, &view->modes);
    weir__buffer_member_number(&call->out, "refused", weir__guard_refused(&g));
    weir__buffer_member_number(&call->out, "shadow_refused", g.shadow_refused);
    weir__buffer_close(&call->out, "}");
}

void weir__admin_modes(struct weir__verb_call *call)
{
    struct weir_modes all;
    struct weir_rule_info info;
    struct weir_ruled_guard view;

    weir_modes_get(call->server->engine, &all);
    weir__buffer_open(&call->out, NULL, '{');
    add_modes(&call->out, &all);
    weir__buffer_open(&call->out, "rules", '[');
    for (int64_t at = 0; weir_rule_next(call->server->engine, &at, &info);)
        add_rule(call, &info);
    weir__buffer_close(&call->out, "]");
    weir__buffer_open(&call->out, "guards", '[');
    for (int64_t at = 0; weir_ruled_guard_next(call->server->engine, &at, &view);)
        add_guard(call, &view);
    weir__buffer_close(&call->out, "]}");
}

/* ------------------------------------------------------------- switching ---- */

/* The modes as they are now. */
static void answer(struct weir__verb_call *call, const char *rule,
                   const struct weir_ruled_guard *guard)
{
    struct weir_modes all;
    struct weir_rule_info info;

    if (guard != NULL) {
        add_guard(call, guard);
        return;
    }

    for (int64_t at = 0; rule != NULL && weir_rule_next(call->server->engine, &at, &info);) {
        if (strcmp(info.name, rule) != 0)
            continue;
        add_rule(call, &info);
        return;
    }
    weir_modes_get(call->server->engine, &all);
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_or_null(&call->out, "rule", rule);
    add_modes(&call->out, &all);
    weir__buffer_close(&call->out, "}");
}

void weir__admin_mode(struct weir__verb_call *call)
{
    enum weir_mode mode = (enum weir_mode)call->values[0].number;
    struct weir_error error;
    struct weir_ruled_guard view;
    const char *rule = NULL;

    if (weir__call_given(call, 1) &&
        (rule = weir__admin_rule(call, call->values[1].text, true)) == NULL)
        return;
    int code = weir_mode_set(call->server->engine, rule, mode, &error);
    if (code != WEIR_OK) {
        weir__call_fail_code(call, code, &error);
        return;
    }
    bool guard =
        rule != NULL && weir_ruled_guard_find(call->server->engine, rule, &view); /* as it is now */
    answer(call, rule, guard ? &view : NULL);
    weir__events_emit(call->server->events, WEIR__EVENT_MODE, call->now,
                      &(struct weir__event_facts){ .rule = guard ? NULL : rule,
                                                   .guard = guard ? rule : NULL,
                                                   .mode = weir_mode_name(mode),
                                                   .source = "api" });
}
