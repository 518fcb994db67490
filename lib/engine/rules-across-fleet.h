/* rules-across-fleet.h -- rules across the fleet, within the engine.  fleet.h says how they are
 * decided. */
#ifndef WEIR_ENGINE_RULES_ACROSS_FLEET_H
#define WEIR_ENGINE_RULES_ACROSS_FLEET_H

#include "engine/engine.h"
#include "engine/explain.h"
#include "engine/fleet.h"

#define WEIR__ALONE_RETRY WEIR_SECOND /* by then the accounts may be there again */

/* What decides a rule that is alone. */
enum weir__across weir__across_alone(const struct weir *weir, const struct weir__active *active,
                                     uint32_t rule);
bool weir__is_alone(const struct weir__alone_rules *alone, const struct weir__active *active,
                    uint32_t rule); /* it is one of them */

/* What decides a rule that enforces; `alone` may be NULL. */
static inline enum weir__across weir__across_now(const struct weir *weir,
                                                 const struct weir__active *active, uint32_t rule,
                                                 weir_time now,
                                                 const struct weir__alone_rules *alone)
{
    if (weir__fleet_is_near(weir->table, now) &&
        (alone == NULL || !weir__is_alone(alone, active, rule)))
        return WEIR__ACROSS_PURSE;
    return weir__across_alone(weir, active, rule);
}

/* The part may have changed since the shares were prepared.  With the mutex held. */
void weir__across_follow(struct weir *weir, weir_time now);

/* A long text ends in its hash: by the table's secrets; or, across the fleet, by numbers that
 * everybody knows, because all nodes must have the same. */
void weir__public_numbers(uint64_t numbers[WEIR__HASH_SECRETS]);
static inline const uint64_t *weir__text_secrets(const struct weir *weir,
                                                 const struct weir__rule *rule)
{
    return rule->fleet ? weir->public_numbers : weir->table->secrets;
}

/* A key that is longer than an agent keeps becomes its hash. */
void weir__across_key(const struct weir *weir, const struct weir__rule *rule,
                      const struct weir__facts *facts, unsigned char made[WEIR__KEY_MAX],
                      struct weir_key *key);

#endif
