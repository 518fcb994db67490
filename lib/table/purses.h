/* purses.h -- purses in a table: filled and closed by the process that draws for them.
 *
 * Asks take from a purse as from any limiter.  To fill and to close carry the present beside the
 * time that they write, which may lie in the past or in the future.
 */
#ifndef WEIR_TABLE_PURSES_H
#define WEIR_TABLE_PURSES_H

#include "table/table.h"

/* Units that were drawn at `drawn`: their life counts from then. */
void weir__purse_fill(struct weir_limiter *limiter, struct weir_key key, int64_t units,
                      weir_time drawn, weir_time now);
/* Nothing is to be had until then, or for a life if that is shorter: asks are refused, and told to
 * come again at `told`.  A purse that has units stays open. */
void weir__purse_close(struct weir_limiter *limiter, struct weir_key key, weir_time until,
                       weir_time told, weir_time now);

/* Gives back all that a share owes, and returns it: of several that do so at once, one gets it. */
int64_t weir__share_empty(struct weir_limiter *limiter, struct weir_key key, weir_time now);

#endif
