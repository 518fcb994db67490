/* guard-lookup.h -- the guards of the table, as the server has met them: looking one up takes no
 * lock. */
#ifndef WEIR_SERVER_SERVE_DECIDE_GUARD_LOOKUP_H
#define WEIR_SERVER_SERVE_DECIDE_GUARD_LOOKUP_H

#include "server/serve/decide/guards-json.h"
#include "server/serve/decide/permit-token.h"

struct weir__guards;
struct weir__guards *weir__guards_create(struct weir_table *table); /* NULL: no memory */
void weir__guards_destroy(struct weir__guards *guards); /* may be NULL; before the table */

/* NULL: there is none.  They stay as long as the table. */
struct weir_guard *weir__guards_find(struct weir__guards *guards, const char *name, size_t len);
struct weir_guard *weir__guards_get(struct weir__guards *guards,
                                    uint32_t id); /* NULL: there is none, or it is damaged */
int weir__guards_unknown(struct weir__guards *guards, const char *name, size_t len,
                         struct weir_error *error); /* 404, and a likely one */
const struct weir__permit_key *
weir__guards_key(const struct weir__guards *guards); /* of their tokens */
struct weir__guard_keys *weir__guards_keys(const struct weir__guards *guards);

#endif
