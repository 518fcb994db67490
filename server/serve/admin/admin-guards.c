/* admin-guards.c -- guards: listed, and forced by hand. */
#include "guard/guard.h"
#include "base/base.h"
#include "server/serve/admin/admin.h"
#include "server/serve/decide/guard-lookup.h"
#include "server/serve/decide/waiting.h"
#include "server/base/complain.h"

/* keys: at most this many are listed; below 0: none, and no changes. */
static void add_guard(struct weir__verb_call *call, struct weir_guard *guard, int64_t keys)
{
    struct weir__guard_place place = { .known = true,
                                       .table = call->server->table,
                                       .waiting = weir__lines_waiting(call->server->lines, guard) };
    struct weir_ruled_guard view;
    struct weir_guard_info info;

    weir_guard_get(guard, call->now, &info);
    place.in_rules = weir_ruled_guard_find(call->server->engine, info.name, &view);
    place.mode = place.in_rules ? view.modes.in_force : info.options.mode;
    if (info.options.max_per_key > 0 && keys >= 0) {
        place.keys = weir__guards_keys(call->server->guards);
        place.guard = guard;
        place.keys_most = (size_t)keys;
    }
    weir__guard_json(&call->out, &info, &place, call->now, keys >= 0);
}

/* --------------------------------------------------------------- listing ---- */

/* NULL: there is none, and the call has failed. */
static struct weir_guard *find(struct weir__verb_call *call, struct weir__text name)
{
    struct weir_guard *guard = weir__guards_find(call->server->guards, name.bytes, name.len);
    struct weir_error error;

    if (guard == NULL)
        weir__call_fail(call,
                        weir__guards_unknown(call->server->guards, name.bytes, name.len, &error),
                        "%s", error.text);
    return guard;
}

void weir__admin_guards(struct weir__verb_call *call)
{
    bool one = weir__call_given(call, 0);
    struct weir_guard *guard = one ? find(call, call->values[0].text) : NULL;

    if (one && guard == NULL)
        return;
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member_moment(&call->out, "now", weir_table_real(call->server->table, call->now));
    weir__degradation_json(&call->out, call->server->table);
    weir__buffer_open(&call->out, "guards", '[');
    if (one)
        add_guard(call, guard, call->values[1].number);
    for (int64_t at = 0; !one && weir_guard_next(call->server->table, &at, &guard);)
        add_guard(call, guard, -1);
    weir__buffer_close(&call->out, "]}");
}

/* --------------------------------------------------------------- by hand ---- */

/* The event comes with the tick of the next second (events-from-counts.c). */
void weir__admin_guard_force(struct weir__verb_call *call)
{
    struct weir_guard *guard = find(call, call->values[0].text);

    if (guard == NULL)
        return;
    weir_guard_force(guard, (enum weir_force)call->values[1].number, call->now);
    add_guard(call, guard, -1);
}
