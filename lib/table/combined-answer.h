/* combined-answer.h -- the one answer to an ask of several limits: which refusal it names, how much
 * remains, how long to wait. */
#ifndef WEIR_TABLE_COMBINED_ANSWER_H
#define WEIR_TABLE_COMBINED_ANSWER_H

#include "weir.h"

/* The answer to all: the first part that can never pass, else the first refusal that is not for
 * want of a draw, else the first refusal, else the tightest limit; the longest wait and retry.  It
 * begins as the first part's answer, and takes in the others one by one. */
static inline void weir__answer_add(struct weir_decision *all, const struct weir_decision *d,
                                    size_t item)
{
    if (all->allowed ? !d->allowed || d->remaining < all->remaining
                     : (d->reason == WEIR_TOO_BIG && all->reason == WEIR_LIMITED) ||
                           (all->reason == WEIR_DRY && !d->allowed && d->reason != WEIR_DRY)) {
        all->allowed = d->allowed;
        all->reason = d->reason;
        all->item = (uint16_t)item;
        all->limit = d->limit;
        all->remaining = d->remaining;
        all->reset = d->reset;
    }
    all->wait = d->wait > all->wait ? d->wait : all->wait;
    all->retry = d->retry > all->retry ? d->retry : all->retry;
}

static inline bool weir__answer_end(struct weir_decision *all)
{
    if (!all->allowed)
        all->wait = 0;
    return all->allowed;
}

#endif
