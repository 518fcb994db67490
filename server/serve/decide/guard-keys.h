/* guard-keys.h -- the keys that have permits of a guard out, by name.
 *
 * The table has only hashes of keys.  So the server keeps, for each seat of a guard by key, the
 * text of the key that it has let in there last.  Permits that another process has let in, or a
 * predecessor of this one, have no name here.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_GUARD_KEYS_H
#define WEIR_SERVER_SERVE_DECIDE_GUARD_KEYS_H

#include "server/base/buffer.h"
#include "weir.h"

#define WEIR__GUARD_KEYS_MOST 1000 /* in a listing */

struct weir__guard_keys;
struct weir__guard_keys *
weir__guard_keys_create(const struct weir_table *table);      /* NULL: no memory */
void weir__guard_keys_destroy(struct weir__guard_keys *keys); /* may be NULL */

/* The key of this text has got this permit.  From any thread. */
void weir__guard_keys_note(struct weir__guard_keys *keys, const struct weir_guard *guard,
                           const struct weir_permit *permit, const char *text, size_t len);
/* The permit had this word before it was renewed. */
void weir__guard_keys_renew(struct weir__guard_keys *keys, const struct weir_guard *guard,
                            uint64_t before, const struct weir_permit *permit);
/* Members of a JSON object: how many keys have permits out, and the `most` that have most of them;
 * none without memory. */
void weir__guard_keys_json(struct weir__guard_keys *keys, const struct weir_guard *guard,
                           size_t most, struct weir__buffer *out);

#endif
