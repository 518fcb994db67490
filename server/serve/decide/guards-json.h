/* guards-json.h -- a guard in JSON and in words, as servers and `weir guards --table` show it. */
#ifndef WEIR_SERVER_SERVE_DECIDE_GUARDS_JSON_H
#define WEIR_SERVER_SERVE_DECIDE_GUARDS_JSON_H

#include "server/serve/decide/guard-keys.h"

bool weir__guard_has_breaker(const struct weir_breaker_options *options);
/* Facts that the guard itself does not know. */
struct weir__guard_place {
    bool known, in_rules; /* known: which rules are in force is */
    enum weir_mode mode;  /* in force */
    int64_t waiting;
    const struct weir_table *table;
    /* The keys with permits, at most this many; NULL: none of them. */
    struct weir__guard_keys *keys;
    const struct weir_guard *guard;
    size_t keys_most;
};
void weir__guard_json(struct weir__buffer *out, const struct weir_guard_info *info,
                      const struct weir__guard_place *place, weir_time now, bool changes);
void weir__degradation_json(struct weir__buffer *out,
                            const struct weir_table *table); /* its members, without braces */

int64_t
weir__guard_refused(const struct weir_guard_info *info); /* for whatever reason; not in shadow */
const char *weir__force_name(enum weir_force force);     /* "none", "open", "closed" */

#endif
