/* top-keys.h -- the keys refused most in the last ten to twenty minutes, in fixed memory.
 *
 * Every loop counts for itself; a reader gets the sum.
 */
#ifndef WEIR_SERVER_SERVE_EVENTS_TOP_KEYS_H
#define WEIR_SERVER_SERVE_EVENTS_TOP_KEYS_H

#include "server/base/buffer.h"
#include "weir.h"

#define WEIR__TOP_PERIOD \
    (600 * WEIR_SECOND)     /* one such period is being counted, the one before it is kept */
#define WEIR__TOP_MOST 1000 /* a list has no more */

struct weir__top;

/* Each of the loops follows `keys` keys. */
int weir__top_create(struct weir__top **out, size_t loops, int64_t keys, struct weir_error *error);
void weir__top_destroy(struct weir__top *top);

/* Adds refusals, from the loop's own thread.  Never waits: while somebody reads that loop's,
 * they are only counted as missed. */
void weir__top_add(struct weir__top *top, size_t loop, const char *rule, const char *key,
                   size_t key_len, int64_t times);

/* Now and then, from any thread: begins a new period when it is time to. */
void weir__top_tick(struct weir__top *top, weir_time now);

/* Appends the up to n keys that were refused most, most first:
 * [{"rule":..,"key":..,"refused":..,"error":..}]; of `refused` up to `error` may not have been (0:
 * exact).  A key that does not come among the frequent ones of some loop may have had a few more
 * there.  Long keys end in "...". */
void weir__top_list(struct weir__top *top, size_t n, struct weir__buffer *json);

struct weir__top_figures {
    int64_t keys;    /* among the n that were refused most */
    int64_t refused; /* of these, at least */
    int64_t total;   /* refusals in all of both periods */
    int64_t missed;  /* of these, not looked at because somebody was reading */
};
void weir__top_figures(struct weir__top *top, size_t n, struct weir__top_figures *out);

#endif
