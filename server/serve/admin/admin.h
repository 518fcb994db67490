/* admin.h -- the operator's verbs.  Each runs on a thread of its own: it reads and writes files, or
 * may wait for a change of rules. */
#ifndef WEIR_SERVER_SERVE_ADMIN_ADMIN_H
#define WEIR_SERVER_SERVE_ADMIN_ADMIN_H

#include "base/base.h"
#include "server/serve/verbs/verbs.h"

/* The name of a rule in force, or perhaps of a guard, good as long as the engine.  NULL: there is
 * none, the call has failed with 404, and a likely one is named. */
const char *weir__admin_rule(struct weir__verb_call *call, struct weir__text value, bool guards);

/* admin-rules.c: the members about the rules in force, without braces. */
void weir__admin_rules_info(const struct weir__server *server, struct weir__buffer *out);
/* Rules that are wrong are 422, with everything that is wrong about them (a list of JSON); a disk
 * that is full is not their fault. */
void weir__admin_rules_wrong(struct weir__verb_call *call, int code, const struct weir_error *error,
                             const struct weir__buffer *problems);

/* admin-status.c */
void weir__admin_status(struct weir__verb_call *call);
void weir__admin_top(struct weir__verb_call *call);
void weir__admin_events(struct weir__verb_call *call);
void weir__admin_settings(struct weir__verb_call *call);
void weir__admin_metrics(struct weir__verb_call *call);

/* admin-rules.c */
void weir__admin_rules(struct weir__verb_call *call);
void weir__admin_rules_set(struct weir__verb_call *call);
void weir__admin_rules_check(struct weir__verb_call *call);
void weir__admin_rules_reload(struct weir__verb_call *call);

/* admin-bans.c */
void weir__admin_bans(struct weir__verb_call *call);
void weir__admin_ban(struct weir__verb_call *call);
void weir__admin_unban(struct weir__verb_call *call);

/* admin-lists.c */
void weir__admin_lists(struct weir__verb_call *call);
void weir__admin_list_add(struct weir__verb_call *call);
void weir__admin_list_remove(struct weir__verb_call *call);

/* admin-modes.c */
void weir__admin_modes(struct weir__verb_call *call);
void weir__admin_mode(struct weir__verb_call *call);

/* admin-guards.c */
void weir__admin_guards(struct weir__verb_call *call);
void weir__admin_guard_force(struct weir__verb_call *call);

/* admin-degradation.c */
void weir__admin_degradation(struct weir__verb_call *call);
void weir__admin_degradation_set(struct weir__verb_call *call);

/* admin-fleet.c */
void weir__admin_fleet(struct weir__verb_call *call);
void weir__admin_fleet_nodes(struct weir__verb_call *call);
void weir__admin_fleet_history(struct weir__verb_call *call);
void weir__admin_fleet_rollback(struct weir__verb_call *call);
void weir__admin_fleet_rules(struct weir__verb_call *call);
void weir__admin_fleet_rules_set(struct weir__verb_call *call);
void weir__admin_fleet_rules_diff(struct weir__verb_call *call);
void weir__admin_fleet_publish(struct weir__verb_call *call);

/* admin-locks.c */
void weir__admin_lock_look(struct weir__verb_call *call);
void weir__admin_lock_renew(struct weir__verb_call *call);
void weir__admin_unlock(struct weir__verb_call *call);

/* admin-clock.c */
void weir__admin_clock(struct weir__verb_call *call);

/* admin-explain-reset.c */
void weir__admin_reset(struct weir__verb_call *call);
void weir__admin_explain(struct weir__verb_call *call);

#endif
