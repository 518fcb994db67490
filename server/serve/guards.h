/* guards.h -- the guards of the table, as the server has met them: looking one up takes no lock;
 * and what is said of them. */
#ifndef WEIR_SERVE_GUARDS_H
#define WEIR_SERVE_GUARDS_H

#include "serve/events.h"
#include "serve/permit-token.h"

struct weir__guards;
struct weir__guards *weir__guards_create(struct weir_table *table); /* NULL: no memory */
void weir__guards_destroy(struct weir__guards *guards); /* may be NULL; before the table */

/* NULL: there is none.  They stay as long as the table. */
struct weir_guard *weir__guards_find(struct weir__guards *guards, const char *name, size_t len);
struct weir_guard *
weir__guards_get(struct weir__guards *guards,
                 uint32_t id); /* from 0 to weir__guards_in - 1; NULL: it is damaged */
int weir__guards_unknown(struct weir__guards *guards, const char *name, size_t len,
                         struct weir_error *error); /* 404, and a likely one */
const struct weir__permit_key *
weir__guards_key(const struct weir__guards *guards); /* of their tokens */

bool weir__guard_has_breaker(const struct weir_breaker_options *options);
/* What the guard itself does not know. */
struct weir__guard_place {
    bool known, in_rules; /* known: which rules are in force is */
    enum weir_mode mode;  /* in force */
    int64_t waiting;
};
void weir__guard_json(struct weir__buffer *out, const struct weir_guard_info *info,
                      const struct weir__guard_place *place, weir_time now, bool changes);
void weir__level_json(struct weir__buffer *out,
                      const struct weir_table *table); /* its members, without braces */

int64_t
weir__guard_refused(const struct weir_guard_info *info); /* for whatever reason; not in shadow */
const char *weir__force_name(enum weir_force force);     /* "none", "open", "closed" */
/* What `from` or `to` of a change stands for; NULL: for a number. */
const char *weir__change_state(const struct weir_change *change, int32_t value);
/* As events call it; WEIR__EVENT_KINDS: it has no name. */
enum weir__event_kind weir__change_event(const struct weir_change *change);

#endif
