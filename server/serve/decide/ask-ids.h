/* ask-ids.h -- answers that are remembered by the id of their ask, so that a retry is answered the
 * same and charged once.
 *
 * Memory is fixed; when it is full the oldest answer goes, and a retry of its ask is charged again.
 * An id is kept as 128 bits of a keyed hash.
 */
#ifndef WEIR_SERVER_SERVE_DECIDE_ASK_IDS_H
#define WEIR_SERVER_SERVE_DECIDE_ASK_IDS_H

#include "server/serve/decide/decide.h"
#include "server/serve/decide/fair-use-per-client.h"

#define WEIR__ASK_ID_MAX 128 /* bytes of an ask id */

struct weir__ask_ids;

/* `fair_use` may be NULL.  NULL: no memory. */
struct weir__ask_ids *weir__ask_ids_create(int64_t room, weir_time lifetime,
                                           struct weir__fair_use *fair_use);
void weir__ask_ids_destroy(struct weir__ask_ids *ids);

enum weir__ask_id_state {
    WEIR__ASK_ID_NEW, /* decide, and then call weir__ask_ids_end: until then others with such an id
                         may have to wait */
    WEIR__ASK_ID_UNKEPT, /* decide; the answer is not remembered, since the client has its share */
    WEIR__ASK_ID_REPEATED, /* *stored is the answer */
    WEIR__ASK_ID_CLASH,    /* the id was used for another request */
};

/* Two asks with the same fingerprint are the same ask: every part of them counts. */
uint64_t weir__ask_fingerprint(const uint64_t *secrets, const struct weir__check *check);

struct weir__ask_id {
    const void *bytes;
    size_t len;
    uint64_t fingerprint; /* stands for all that was asked */
    weir_time now;
    const struct weir__conn *conn; /* NULL: nobody in particular */
};

/* Between begin and end a thread begins no other. */
enum weir__ask_id_state weir__ask_ids_begin(struct weir__ask_ids *ids,
                                            const struct weir__ask_id *id,
                                            struct weir_ruling *stored, size_t *hold);
void weir__ask_ids_end(struct weir__ask_ids *ids, size_t hold, const struct weir_ruling *ruling);
/* The answer to an ask that was still undecided (WEIR_DRY) when it ended; meanwhile that is the
 * answer to its retries.  NULL: it never was, and a retry is a new ask. */
void weir__ask_ids_settle(struct weir__ask_ids *ids, const struct weir__ask_id *id,
                          const struct weir_ruling *ruling);

int64_t
weir__ask_ids_replaced(struct weir__ask_ids *ids); /* answers that made room before their time */

#endif
