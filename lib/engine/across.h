/* across.h -- rules across the fleet, within the engine.  fleet.h says how they are decided. */
#ifndef WEIR_ENGINE_ACROSS_H
#define WEIR_ENGINE_ACROSS_H

#include "engine/engine.h"
#include "engine/fleet.h"

enum weir__across {
    WEIR__ACROSS_PURSE,
    WEIR__ACROSS_SHARE,
    WEIR__ACROSS_OPEN,   /* all pass */
    WEIR__ACROSS_CLOSED, /* none does */
};

/* What decides a rule that enforces; and what would if it were alone. */
enum weir__across weir__across_now(const struct weir *weir, const struct weir__active *active,
                                   uint32_t rule, weir_time now,
                                   const struct weir__alone_rules *alone);
enum weir__across weir__across_alone(const struct weir *weir, const struct weir__active *active,
                                     uint32_t rule);

/* A key that is longer than an agent keeps becomes its hash. */
void weir__across_key(const struct weir *weir, const struct weir__rule *rule,
                      const struct weir__facts *facts, unsigned char made[WEIR__KEY_MAX],
                      struct weir_key *key);

#endif
