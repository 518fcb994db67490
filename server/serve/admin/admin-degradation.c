/* admin-degradation.c -- the level of degradation: told, and set by hand. */
#include "server/serve/admin/admin.h"
#include "server/serve/decide/guards-json.h"

void weir__admin_degradation(struct weir__verb_call *call)
{
    weir__buffer_open(&call->out, NULL, '{');
    weir__degradation_json(&call->out, call->server->table);
    weir__buffer_close(&call->out, "}");
}

void weir__admin_degradation_set(struct weir__verb_call *call)
{
    _Static_assert(WEIR_DEGRADATION_AUTO == -1, "as the row's word has it");
    weir_degradation_set(call->server->table, (int)call->values[0].number, call->now);
    weir__admin_degradation(call);
}
