/* shares.c -- the host's part of a limit, while its account is silent. */
#include <stdlib.h>

#include "algo/share.h"
#include "cluster/agent/agent.h"

/* What it owes: all that it does not have. */
static int64_t owed(struct weir_fleet *f, struct weir__fleet_key *k, weir_time now)
{
    struct weir_ask ask = { .key = weir__agent_own(k), .now = now };
    struct weir_decision d;

    f->host->peek(weir__agent_limit_of(k)->share, &ask, &d);
    return d.limit > d.remaining ? d.limit - d.remaining : 0;
}

static bool share_plan(struct weir_fleet *f, const struct weir__fleet_key *k, struct weir_plan *out)
{
    struct weir_limit limit;

    return weir__fleet_share_limit(&limit, &weir__agent_limit_of(k)->plan.limit,
                                   (uint32_t)f->part_set) &&
           weir__plan_make(out, &limit, NULL) == WEIR_OK;
}

/* If it has been used more than that, it stays so. */
void weir__share_begin(struct weir_fleet *f, struct weir__fleet_key *k, weir_time now)
{
    struct weir_plan plan;
    struct weir_decision d;

    k->alone = true; /* to be charged before the next draw */
    if (k->own.alone || k->left < 0 || !share_plan(f, k, &plan))
        return;
    k->own.alone = true;
    k->own.begun_at = now;
    k->own.begun = 0;
    int64_t units =
        weir__fleet_share_begin(&plan, (uint32_t)f->part_set, k->left) - owed(f, k, now);
    struct weir_ask ask = { .key = weir__agent_own(k), .cost = units, .now = now };
    if (units > 0 && f->host->take(weir__agent_limit_of(k)->share, &ask, &d))
        k->own.begun = units;
}

/* What the charge at its beginning still comes to. */
static int64_t left_of_begun(struct weir_fleet *f, const struct weir__fleet_key *k, weir_time now)
{
    struct weir_plan plan;

    if (!k->own.alone || k->own.begun == 0 || !share_plan(f, k, &plan))
        return 0;
    void *fresh = calloc(1, plan.state_size);
    int64_t left =
        fresh ? weir__fleet_share_left(&plan, fresh, k->own.begun, k->own.begun_at, now) : 0;
    free(fresh);
    return left;
}

int64_t weir__share_end(struct weir_fleet *f, struct weir__fleet_key *k, weir_time now)
{
    int64_t begun = left_of_begun(f, k, now),
            units = f->host->empty(weir__agent_limit_of(k)->share, weir__agent_own(k), now);

    k->own.alone = false;
    return units > begun ? units - begun : 0;
}

void weir__shares_used(struct weir_fleet *f)
{
    struct weir__fleet_key *k;
    size_t at = 0;

    while ((k = weir__fleet_key_next(f->fleet, &at)) != NULL)
        k->alone = true;
}

void weir__shares_begin(struct weir_fleet *f, weir_time now)
{
    struct weir__fleet_key *k;
    size_t at = 0;

    while ((k = weir__fleet_key_next(f->fleet, &at)) != NULL)
        weir__share_begin(f, k, now);
}
