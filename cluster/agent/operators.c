/* operators.c -- asks of operators, in their own threads: they wait for Redis, but not for long. */
#include "cluster/agent/operators.h"

#include <unistd.h>

#include "base/base.h"
#include "cluster/agent/agent.h"
#include "cluster/fleet/rules-versions.h"

int weir__agent_reach(struct weir_fleet *f, struct weir_error *error)
{
    struct weir_fleet_info info;

    if (f->pid != getpid())
        return weir__fail(error, WEIR_INVALID, "a child of fork joins by itself");
    weir_fleet_look(f, &info);
    return info.connected ? WEIR_OK : weir__fleet_away(error, info.why);
}

struct weir_redis *weir__agent_redis(struct weir_fleet *f, struct weir_error *error)
{
    return weir__agent_reach(f, error) == WEIR_OK ? f->redis : NULL;
}
