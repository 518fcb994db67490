/* decide.h -- deciding, the same for every protocol: a request by the rules, a key by a limit that
 * comes with the ask. */
#ifndef WEIR_SERVER_SERVE_DECIDE_DECIDE_H
#define WEIR_SERVER_SERVE_DECIDE_DECIDE_H

#include "server/serve/decide/reservations.h"
#include "server/serve/serve.h"

#define WEIR__ASK_MANY  64        /* are decided at a time */
#define WEIR__TOP_TAKES "(takes)" /* the rule's name where the limit came with the ask, ... */
#define WEIR__TOP_DENY  "(deny)"  /* ... and where the deny list refuses */

struct weir__check {
    const struct weir_attr *attrs;
    size_t n;
    int64_t cost; /* 1 unless named */
    weir_time wait_max;
    struct weir__text id; /* of the ask; len 0: none */
};

/* Decides, counts, reports bans.  NULL, or what is wrong with the ask (then nothing was
 * decided).  An ask that finds a purse dry is not decided, and not counted: units-wait.h. */
const char *weir__ask_check(struct weir__loop *loop, const struct weir__check *check,
                            struct weir_ruling *ruling);
/* The same for several without an id, prefetched.  True: some found a purse dry. */
bool weir__ask_check_many(struct weir__loop *loop, const struct weir_request *requests, size_t n,
                          struct weir_ruling *rulings);

/* Counts one that has waited for units. */
void weir__ask_count(struct weir__loop *loop, const struct weir_ruling *ruling, const char *key,
                     weir_time now);

/* Notes a refusal: for the list of the most refused, and the ban that it caused.  `key`: as
 * weir_check_key tells it. */
void weir__ask_note_refused(struct weir__loop *loop, const struct weir_ruling *ruling,
                            const char *key, weir_time now);

enum weir__ask_verb { WEIR__TAKE, WEIR__PEEK, WEIR__GIVE, WEIR__RESERVE };

struct weir__adhoc_ask {
    enum weir__ask_verb verb;
    struct weir__text key, limit, name; /* name: keys are shared under it, and another limit changes
                                           it; len 0: keys are the limit's own */
    int64_t cost;
    weir_time wait_max, lifetime;
};

struct weir__adhoc_answer {
    struct weir_decision decision;
    char reservation[WEIR__RESERVATION_ID]; /* of a reserve that was granted */
};

/* WEIR_OK, or what is wrong with it. */
int weir__ask_adhoc(struct weir__loop *loop, const struct weir__adhoc_ask *ask,
                    struct weir__adhoc_answer *answer, struct weir_error *error);

/* Times as replies have them: rounded up to ms; -1: never, or it does not apply. */
int64_t weir__ask_ms(weir_time t);
int64_t weir__ask_retry_ms(const struct weir_decision *d); /* -1: allowed, or never */

/* It found a purse dry, and may wait for units.  With a time to come again it is the answer to a
 * retry of one that waits already. */
static inline bool weir__is_dry(const struct weir_ruling *ruling)
{
    const struct weir_decision *d = &ruling->decision;

    return d->reason == WEIR_DRY && !d->allowed && d->retry == 0;
}

#endif
