/* inquiry.h -- a request being decided: check.c and its parts. */
#ifndef WEIR_ENGINE_INQUIRY_H
#define WEIR_ENGINE_INQUIRY_H

#include "engine/rules-across-fleet.h"
#include "engine/engine.h"
#include "table/take-all.h"

/* The same for all requests of a call. */
struct weir__checker {
    struct weir *weir;
    const struct weir__active *active; /* NULL: no rules yet */
    struct weir__stripe *stripe;
    struct weir__tally *tally; /* this stripe's, by rule */
    bool peek;                 /* nothing is taken, counted or written */
    bool alone;                /* some rules go by their when_alone: the inquiry's `alone` */
    struct weir_taken *taken;  /* gets what is taken; NULL: nobody wants to know */
};

/* A request being decided. */
struct weir__inquiry {
    struct weir_ask ask; /* without the key; a time before 0 is 0 */
    struct weir_ruling *ruling;
    char *told; /* gets the text of the refused key; may be NULL */
    /* First those of rules that enforce, then those in shadow; a rule's are adjacent.  `whose`: the
     * rule; `which`: its limit. */
    struct weir__item *items;
    size_t n_rules, n_enforced, n_items; /* rules that apply; items of those that enforce; of all */
    bool open;                           /* nothing has decided it yet */
    bool cut;                            /* there was no room for all items */
    bool unusual;                        /* a rule had no room, or is across the fleet */
    uint8_t n_opened;
    uint32_t over;   /* the first rule that enforces and had no room, + 1; 0: all had */
    uint32_t closed; /* the first that lets nothing pass alone, + 1; 0: none */
    const struct weir__alone_rules *alone;
    uint32_t opened[WEIR_ALL_MAX]; /* rules across the fleet that let all pass alone */
    struct weir__facts facts;
};

/* It found a purse dry, and may wait for units: no refusal yet. */
static inline bool weir__is_undecided(const struct weir__checker *c, const struct weir__inquiry *q)
{
    return q->ruling->decision.reason == WEIR_DRY && !(c->alone && q->alone->last);
}

static inline void weir__count_one(const struct weir__checker *c, int64_t *counter)
{
    if (!c->peek)
        weir__set(counter, weir__get(counter) + 1); /* the stripe is ours alone */
}

/* check-refusal.c -- the ban of the rule's key that is in force; 0: none. */
weir_time weir__inquiry_ban(const struct weir__checker *c, const struct weir__inquiry *q,
                            uint32_t rule);
/* A rule in shadow would have refused. */
void weir__note_shadow(const struct weir__checker *c, struct weir__inquiry *q, uint32_t rule);
void weir__refuse_banned(const struct weir__checker *c, struct weir__inquiry *q, uint32_t rule,
                         weir_time until);
/* When to come again, if a purse has refused. */
void weir__tell_refusal(const struct weir__checker *c, const struct weir__inquiry *q,
                        struct weir_decision *d);
/* Counts and reports a refusal by this rule, and counts it towards a ban. */
void weir__note_refusal(const struct weir__checker *c, struct weir__inquiry *q, uint32_t rule);
/* No limit is skipped: a request to which more apply than can be asked together is refused. */
void weir__refuse_too_many(const struct weir__checker *c, struct weir__inquiry *q);
/* The fleet's accounts cannot be asked, and the rule lets nothing pass then. */
void weir__refuse_alone(const struct weir__checker *c, struct weir__inquiry *q);

#endif
