/* asks.h -- asks that wait for units, handed over by the server: checks in batches, and enters,
 * which are more than checks. */
#ifndef WEIR_CLUSTER_AGENT_ASKS_H
#define WEIR_CLUSTER_AGENT_ASKS_H

#include "engine/fleet.h"
#include "weir-fleet.h"

#define WEIR__AGENT_ASKS 4096 /* that wait at once; a power of two */

/* In any thread; WEIR_DRY: it is called again.  `alone` may be NULL. */
typedef bool weir__agent_decide(void *context, const struct weir__alone_rules *alone, weir_time now,
                                struct weir_ruling *ruling, char told[WEIR_KEY_TEXT]);

/* An ask that has found a purse dry. */
struct weir__agent_dry {
    struct weir_fleet_ask ask;
    weir__agent_decide *decide; /* NULL: weir_check does */
    uint32_t caller;            /* for `freed` */
};

/* Asks that are handed over together, by one wake-up of the agent.  Zeroed: none. */
struct weir__agent_list {
    struct weir__agent_ask *first, *last;
};

/* As weir_fleet_ask.  False: it cannot wait. */
bool weir__agent_wait(struct weir_fleet *fleet, const struct weir__agent_dry *dry, uint64_t *ticket,
                      struct weir__agent_list *list);
void weir__agent_hand_over(struct weir_fleet *fleet, struct weir__agent_list *list);
/* In the agent's thread: `answered` after `done` of several asks, so that `done` need not wake
 * anybody; `freed` when an ask that was cancelled has left its place.  Set before the first ask. */
void weir__agent_on_answered(struct weir_fleet *fleet, void (*answered)(void *context),
                             void (*freed)(void *context, uint32_t caller), void *context);

#endif
