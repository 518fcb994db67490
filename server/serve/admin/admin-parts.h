/* admin-parts.h -- what the files of the operator's commands share: parameters as C has them, the
 * names that are known, pieces of answers. */
#ifndef WEIR_SERVE_ADMIN_PARTS_H
#define WEIR_SERVE_ADMIN_PARTS_H

#include "server/serve/admin/admin.h"
#include "server/serve/decide/ask.h"

/* ------------------------------------------------------------ parameters ----
 *
 * What comes in is bytes of any kind.  These make sense of them or fail the call, which says what
 * is wrong; `name` is the parameter's. */

static inline bool weir__admin_given(const struct weir__admin_call *call, size_t i)
{
    return call->values[i].bytes != NULL;
}

/* The bytes with a NUL behind them, and none inside; to be freed.  NULL: it has failed. */
char *weir__admin_copy(struct weir__admin_call *call, struct weir__span value, const char *name);
/* A decimal number.  *out is untouched if it was not given. */
bool weir__admin_count(struct weir__admin_call *call, size_t i, const char *name, int64_t min,
                       int64_t max, int64_t *out);
/* The rest as attributes; they point to the call's bytes. */
bool weir__admin_attributes(struct weir__admin_call *call,
                            struct weir_attr attrs[WEIR__CHECK_ATTRS], size_t *n);
/* The rest as texts; to be freed with weir__admin_free.  NULL: it has failed. */
char **weir__admin_entries(struct weir__admin_call *call);
void weir__admin_free(char **texts, size_t n);

/* The name of a rule in force, good as long as the engine.  NULL: there is none, it has failed with
 * 404, and a likely one is named. */
const char *weir__admin_rule(struct weir__admin_call *call, struct weir__span value);
/* The same of a rule or a guard: what has a mode. */
const char *weir__admin_switch(struct weir__admin_call *call, struct weir__span value);

void weir__admin_no_memory(struct weir__admin_call *call);
/* Of a function that returns a weir_code. */
void weir__admin_fail_code(struct weir__admin_call *call, int code, const struct weir_error *error);

/* A text that somebody sent, for a message: in quotes, not too long, and nothing in it that a
 * terminal obeys. */
#define WEIR__SHOWN(span) (weir__quote((span).bytes, (span).len).text)

/* --------------------------------------------------------------- answers ---- */

/* admin-rules.c: what is known of the rules in force; the members, without braces. */
void weir__admin_rules_info(const struct weir__server *server, struct weir__buffer *out);

/* ------------------------------------------------------------- the commands ---- */

/* admin-status.c */
void weir__admin_status(struct weir__admin_call *call);
void weir__admin_top(struct weir__admin_call *call);
void weir__admin_events(struct weir__admin_call *call);
void weir__admin_settings(struct weir__admin_call *call);

/* admin-rules.c */
void weir__admin_rules(struct weir__admin_call *call);
void weir__admin_rules_set(struct weir__admin_call *call);
void weir__admin_rules_check(struct weir__admin_call *call);
void weir__admin_rules_reload(struct weir__admin_call *call);

/* admin-bans.c */
void weir__admin_bans(struct weir__admin_call *call);
void weir__admin_ban(struct weir__admin_call *call);
void weir__admin_unban(struct weir__admin_call *call);

/* admin-lists.c */
void weir__admin_lists(struct weir__admin_call *call);
void weir__admin_list_add(struct weir__admin_call *call);
void weir__admin_list_remove(struct weir__admin_call *call);

/* admin-modes.c */
void weir__admin_modes(struct weir__admin_call *call);
void weir__admin_mode(struct weir__admin_call *call);

/* admin-guards.c */
void weir__admin_guards(struct weir__admin_call *call);
void weir__admin_guard_force(struct weir__admin_call *call);
void weir__admin_degradation(struct weir__admin_call *call);
void weir__admin_degradation_set(struct weir__admin_call *call);

/* admin-keys.c */
void weir__admin_reset(struct weir__admin_call *call);
void weir__admin_explain(struct weir__admin_call *call);

#endif
