/* shares.c -- the host's part of a limit, while its account is silent.
 *
 * A share begins with the host's part of what was left in the account: it is charged with the rest.
 * That has not passed here, so the account is not charged with it when it is back.  Any process of
 * the host may be the one that charges, and the one that began the share may be gone.  So what was
 * charged is noted in the table, as a key of its own beside the share's, which forgets as it does.
 */
#include <string.h>

#include "algo/share.h"
#include "cluster/agent/agent.h"

/* Longer than any key of a rule. */
struct note {
    unsigned char bytes[WEIR__KEY_MAX + 1];
};

static struct weir_key note_of(const struct weir__fleet_key *k, struct note *note)
{
    *note = (struct note){ .bytes[WEIR__KEY_MAX] = (unsigned char)k->own.len };
    memcpy(note->bytes, k->own.bytes, k->own.len);
    return (struct weir_key){ note->bytes, sizeof(note->bytes) };
}

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

/* If it has been used more than that, or another process has begun it, it stays so. */
void weir__share_begin(struct weir_fleet *f, struct weir__fleet_key *k, weir_time now)
{
    struct weir_limiter *share = weir__agent_limit_of(k)->share;
    int64_t left = weir__fleet_left(k, now);
    struct weir_plan plan;
    struct weir_decision d;
    struct note note;

    k->alone = true; /* to be charged before the next draw */
    if (k->own.alone || left < 0)
        return;
    k->own.alone = true;
    if (!share_plan(f, k, &plan))
        return;
    int64_t units = weir__fleet_share_begin(&plan, (uint32_t)f->part_set, left) - owed(f, k, now);
    struct weir_ask ask = { .key = weir__agent_own(k), .cost = units, .now = now };
    if (units <= 0 || !f->host->take(share, &ask, &d))
        return;
    ask.key = note_of(k, &note);
    f->host->take(share, &ask, &d);
}

int64_t weir__share_end(struct weir_fleet *f, struct weir__fleet_key *k, weir_time now)
{
    struct weir_limiter *share = weir__agent_limit_of(k)->share;
    struct note note;
    int64_t units = f->host->empty(share, weir__agent_own(k), now),
            begun = f->host->empty(share, note_of(k, &note), now);

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
