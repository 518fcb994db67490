/* degradation.c -- the degradation of a table: by hand, by rules, or the highest that a guard asks
 * for. */
#include "guard/breaker-gate.h"
#include "guard/guard.h"

#define RAISE_LASTS     (10 * WEIR_SECOND) /* a guard that nobody enters asks for none after that */
#define PUSHED_BY_RULES 16                 /* added to degradation_by_hand: rules have set it */

int32_t weir__degradation_for(const struct weir__pressure *p, weir_time now)
{
    weir_time lasted = now - p->over_since;

    if (!p->over)
        return 0;
    if (p->shed >= (p->degradation >= 3 ? 0.35 : 0.5) && lasted >= 10 * WEIR_SECOND)
        return 3;
    if (p->shed >= (p->degradation >= 2 ? 0.15 : 0.25) && lasted >= 3 * WEIR_SECOND)
        return 2;
    return 1;
}

/* By hand, or the highest that a guard asks for. */
static void set_degradation(struct weir_table *table, weir_time now)
{
    struct weir__header *h = table->header;
    uint32_t by_hand = weir__get(&h->degradation_by_hand), n = table->guards.most;
    int32_t degradation = by_hand > 0 ? (int32_t)(by_hand - 1) % PUSHED_BY_RULES : 0;

    for (uint32_t i = 0; by_hand == 0 && i < n; i++) {
        const struct weir__place *place = weir__place_at(table, &table->guards, i);
        if (weir__get(&place->word) == 0 || weir__get(&place->dropped))
            continue;
        const struct weir__guard_record *r = weir__guard_record_at(table, i);
        int32_t raising = weir__get(&r->raising);
        weir_time until = weir__get(&r->raising_until);
        if (raising > degradation && until > now && until <= now + RAISE_LASTS + WEIR__SKEW)
            degradation = raising;
    }
    degradation = degradation > WEIR__DEGRADATION_MAX ? WEIR__DEGRADATION_MAX : degradation;
    if (weir__get(&h->degradation) != (uint32_t)degradation)
        weir__set(&h->degradation, (uint32_t)degradation);
}

/* An open breaker closes only if somebody comes.  Callers that the degradation keeps away do not:
 * it is over some time after the breaker could have been tried, or probes that are lost tried
 * again. */
static bool is_broken(const struct weir__guard_record *r, const struct weir__guard_plan *plan,
                      weir_time now)
{
    uint64_t seen[2];

    weir__load_pair(&r->breaker.gate, seen);
    unsigned force = weir__gate_force(seen[0]), state = weir__gate_state(seen[0]);
    if (force != WEIR_UNFORCED)
        return force == WEIR_FORCE_OPEN;
    if (state == WEIR_BREAKER_CLOSED || !plan->breaker.on)
        return false;
    weir_time at = (weir_time)seen[1], since = now > at ? now - at : at - now;
    if (state == WEIR_BREAKER_OPEN && at > now)
        return weir__breaker_wait(&plan->breaker, at, now) > 0;
    bool out = state == WEIR_BREAKER_HALF_OPEN && weir__gate_byte(seen[0], WEIR__GATE_OUT) > 0;
    return since < RAISE_LASTS + (out ? weir__guard_patience(r, plan) : 0);
}

void weir__degradation_raise(struct weir_guard *guard, const struct weir__guard_plan *plan,
                             weir_time now)
{
    struct weir__guard_record *r = guard->record;
    int32_t raising = 0;

    if (plan->raises > 0 && (is_broken(r, plan, now) || r->learnt.pressure.over))
        raising = plan->raises;
    if (plan->pressure.on) {
        int degradation = weir__pressure_degradation(&r->learnt.pressure, now);
        raising = degradation > raising ? degradation : raising;
    }
    weir__set(&r->raising, raising);
    weir__set(&r->raising_until, now + RAISE_LASTS);
    set_degradation(guard->table, now);
}

void weir_degradation_set(struct weir_table *table, int degradation, weir_time now)
{
    degradation = degradation > WEIR__DEGRADATION_MAX ? WEIR__DEGRADATION_MAX : degradation;
    weir__set(&table->header->degradation_by_hand, degradation < 0 ? 0 : (uint32_t)degradation + 1);
    set_degradation(table, weir__guard_time(now));
}

void weir__degradation_push(struct weir_table *table, int degradation, weir_time now)
{
    uint32_t present = weir__get(&table->header->degradation_by_hand);

    if (degradation < 0 && present <= PUSHED_BY_RULES)
        return;
    weir__set(&table->header->degradation_by_hand,
              degradation < 0 ? 0 : (uint32_t)degradation + 1 + PUSHED_BY_RULES);
    set_degradation(table, weir__guard_time(now));
}

int weir_degradation_get(const struct weir_table *table, bool *by_hand)
{
    if (by_hand != NULL)
        *by_hand = weir__get(&table->header->degradation_by_hand) != 0;
    uint32_t degradation = weir__get(&table->header->degradation);
    return degradation > WEIR__DEGRADATION_MAX ? WEIR__DEGRADATION_MAX : (int)degradation;
}
