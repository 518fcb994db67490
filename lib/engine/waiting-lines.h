/* waiting-lines.h -- where requests of this process wait: a line is the queue of a guard of the
 * rules.
 *
 * It is made when somebody waits there first, and stays until the engine goes; so there are never
 * more of them than guards, and finding one takes no lock. */
#ifndef WEIR_ENGINE_WAITING_LINES_H
#define WEIR_ENGINE_WAITING_LINES_H

#include "engine/engine.h"
#include "queue/queue.h"

struct weir__line {
    struct weir *weir;
    struct weir_queue *queue;
    struct weir_guard *guard; /* its place: another guard may be there later */
    struct weir__line *next;  /* never changes */
};

static inline struct weir__line *weir__line_first(const struct weir *weir)
{
    return weir__acquire(&weir->lines);
}

/* NULL: nobody has waited there yet. */
struct weir__line *weir__line_find(const struct weir *weir, const struct weir_guard *guard);

/* Waiters there, without those that are late. */
int64_t weir__line_length(const struct weir *weir, const struct weir_guard *guard, weir_time now);

/* The line for an ask, and at most how long it may wait there: as long as it would, and no longer
 * than the rules say.  NULL: it may not, or there is no memory. */
struct weir__line *weir__line_claim(struct weir *weir, struct weir_guard *guard,
                                    const struct weir_ask *ask, weir_time *wait);

/* Somebody waits there whom this ask must not overtake. */
bool weir__line_is_occupied(const struct weir *weir, const struct weir_guard *guard,
                            const struct weir_ask *ask);

/* Calls `turn` of each waiter that has left a queue; without a lock. */
void weir__waiters_tell(struct weir_waiter *gone);
/* Offers turns, and tells those who have left. */
void weir__line_serve(struct weir__line *line, weir_time now, weir__offer *offer, void *context);
/* Likewise in all lines, those whose first has waited longest first: two lines may wait for the
 * same permit. */
void weir__lines_serve_all(const struct weir *weir, weir_time now, weir__offer *offer,
                           void *context);

#endif
