/* engine.h -- rules at work on a table.
 *
 * Ownership:
 *
 *     weir->active   the rule set in force, with its limiters.  Swapped whole; never changed
 *     a stripe       belongs to the thread that has made its `turn` odd.  A check holds one from
 *                    beginning to end, so a swap of `active` waits until it has seen every stripe
 *                    at rest or at a later turn; then no thread can be reading the old one
 *     weir->mutex    held for every change by hand: one at a time
 *
 * A thread looks for a free stripe from a place that its stack's address gives, so each thread
 * nearly always has its own: no waiting, and no cache line that two threads write.
 */
#ifndef WEIR_ENGINE_ENGINE_H
#define WEIR_ENGINE_ENGINE_H

#include <pthread.h>

#include "guard/guard.h"
#include "match/rules.h"
#include "table/bans.h"
#include "table/table.h"
#include "weir-admin.h"
#include "weir-queue.h"

#define WEIR__LEVER_LIMIT "gcra 1/1s" /* of a limiter that only keeps a mode set by hand */

#define WEIR__STRIPES 64

/* On a cache line of its own.  Each request counts as allowed or refused, and as at most one of the
 * other totals. */
struct weir__stripe {
    _Alignas(WEIR__LINE) uint64_t turn; /* odd: a check is going on */
    int64_t allowed, refused;
    int64_t denied, allow_listed, unmatched, shadow_refused; /* see struct weir_totals */
};

_Static_assert(sizeof(struct weir__stripe) == WEIR__LINE,
               "the counts of a check lie beside its turn");

/* A rule at work; for a guard, only its name and modes. */
struct weir__post {
    const char *name;               /* lives as long as the engine */
    struct weir_limiter **limiters; /* as many as the rule has limits */
    struct weir_limiter *refusals;  /* counts towards a ban, or NULL */
    uint64_t ban_salt;
    struct weir__ban_terms terms;
    struct weir_limiter *lever; /* its record keeps the mode set by hand, ... */
    const uint32_t *switched;   /* ... in this word */
    uint8_t mode;               /* as written */
    bool bare; /* its key is the whole value of one attribute, and so is its text */
};

/* A guard of the rules at work. */
struct weir__station {
    struct weir_guard *guard;
    struct weir_fallback fallback; /* status 0: none */
};

struct weir__active {
    struct weir_rules *rules;
    struct weir__lists *lists; /* the rules' own, or an edited copy */
    bool edited;
    struct weir__attributes attributes; /* the rules' own, and those of edited lists */
    struct weir__post *posts;           /* of the rules, then of the guards */
    struct weir_limiter **limiters;     /* of all rules; across the fleet: the shares */
    struct weir_limiter **purses;       /* beside them; NULL: not across the fleet */
    struct weir__station *stations;     /* of the guards */
    struct {
        int attribute, list;
    } deny[WEIR__ATTRIBUTES_MAX], allow[WEIR__ATTRIBUTES_MAX];
    size_t denies, allows;
    uint8_t mode; /* of the whole set, as written */
    struct weir__tally
        *tally; /* of each stripe, and one for earlier sets: [WEIR__STRIPES + 1][rules] */
    /* counts.c: as much of each as the table has, and the stripe's turn then.  With the mutex. */
    struct weir__tally *shared;
    uint64_t shared_turns[WEIR__STRIPES];
};

struct weir {
    const struct weir__host *host; /* fleet-host.h; the first member, in every version */
    struct weir_table *table;
    bool own_table;
    /* For `weir explain`, which changes nothing: limiters that the table lacks are made here. */
    struct weir_table *aside;
    struct weir__active *active; /* atomic; NULL: no rules yet */
    pthread_mutex_t mutex;
    char **names; /* of rules, guards and fallback types: each once, kept until the end */
    size_t n_names;
    char *attributes[256]; /* numbered by weir_attribute, from 1 */
    size_t n_attributes;
    uint64_t generation;                         /* of rules in force; atomic */
    struct weir__line *lines;                    /* waiting-lines.h; atomic */
    bool offering, offer_again;                  /* check-later.c: turns, and once more ... */
    weir_time offer_at;                          /* ... as of then */
    bool shares;                                 /* counts.c, with the mutex */
    struct weir__totals shared;                  /* likewise: as much as the table has */
    uint64_t public_numbers[WEIR__HASH_SECRETS]; /* rules-across-fleet.h */
    struct weir__stripe stripes[WEIR__STRIPES];
};

/* engine.c -- a stripe for one check, and the rules in force, which stay until it is released;
 * NULL: none yet. */
struct weir__stripe *weir__engine_hold(struct weir *weir, const struct weir__active **active);
static inline void weir__engine_release(struct weir__stripe *stripe)
{
    uint64_t *turn = &stripe->turn;

    weir__publish(turn, weir__get(turn) + 1);
}
/* Puts other rules in force, and destroys the old ones when no thread can be reading them.  With
 * the mutex held. */
void weir__engine_swap(struct weir *weir, struct weir__active *active);

/* The rules in force from now on. */
void weir__engine_use(struct weir *weir, struct weir__active *active, weir_time now);

/* active-rules.c -- limiters and guards of a rule set are needed no more; dropped: for good. */
void weir__active_leave(const struct weir *weir, struct weir__active *active, bool dropped);
/* sort: '#' for a limit, '$' for the purse of one, '!' for the refusals that a ban counts. */
void weir__limiter_name(char out[WEIR__NAME_SIZE], const struct weir__rule *rule, char sort,
                        size_t index, const struct weir_limit *limit);
int weir__active_edited(struct weir__active **out, const struct weir__active *from,
                        struct weir__lists *lists, struct weir_error *error);
void weir__active_destroy(struct weir__active *active); /* and its rules, if it still owns them */
/* A copy that stays; NULL: no memory. */
const char *weir__engine_name(struct weir *weir, const char *name);
void weir__engine_forget(struct weir *weir); /* frees all those copies */
/* By its name, among the first `n`; NULL: none. */
const struct weir__post *weir__post_find(const struct weir__active *active, size_t n,
                                         const char *name);
/* NULL, with an error: there is no such rule in force.  With the mutex held. */
const struct weir__post *weir__rule_post(const struct weir *weir, const char *rule,
                                         struct weir_error *error);

/* check.c -- the mode of the whole set, by hand or as written; and a rule's mode under it. */
enum weir_mode weir__active_mode(const struct weir *weir, const struct weir__active *active);
static inline enum weir_mode weir__post_mode(const struct weir__post *post, enum weir_mode all)
{
    enum weir_mode by_hand = weir__mode_load(post->switched),
                   own = by_hand == WEIR_AS_WRITTEN ? post->mode : by_hand;

    return own > all ? own : all; /* enforce, shadow, off: the milder one */
}

/* check-enter.c -- the guards of a request, between the bans and the limits. */
struct weir__admission {
    /* the caller's */
    const struct weir_ask *ask;
    struct weir_entry *entry; /* the guards entered; none if the request is refused */
    bool leased;              /* the permits belong to no process: only time takes them back */
    /* Guards that will not shed it any more; gets those that ask now.  NULL: it comes but once. */
    struct weir_asked *asked;
    bool in_turn; /* its limits have granted it before, and counted it */
    bool waits;   /* without a permit it waits, if the guard has a queue: struct weir__enter_how */
    bool in_line; /* it waits already: a missing permit anywhere is no refusal yet */
    /* Others wait there already; NULL: nobody does. */
    bool (*occupied)(void *context, const struct weir_guard *guard, const struct weir_ask *ask);
    /* A key has got this permit; NULL: the caller need not know. */
    void (*named)(void *context, const struct weir_guard *guard, const struct weir_permit *permit,
                  const char *key, size_t len);
    void *context;
    const struct weir__alone_rules *alone; /* fleet.h; NULL: none */
    struct weir_taken *taken;              /* gets what the limits have granted; may be NULL */
    /* its own */
    const struct weir *weir;
    bool listed;   /* by an allow list: never shed, and of the highest priority */
    bool again;    /* this guard has asked it before if it is shed */
    bool cut;      /* there was no room for all guards */
    uint32_t over; /* the first guard that enforces and had no room, + 1; 0: none */
    size_t n;
    uint32_t guards[WEIR_ENTRY_MAX]; /* numbers of those that apply */
    /* told: the request as seen by the guard asked last, which is the one that refused */
    struct weir_guard *guard;
    int8_t priority;
    uint8_t user_class;
    bool queued;     /* it has a queue, and the request waits: the missing permit was not counted */
    uint64_t key_id; /* queued: see weir__guard_key_id */
    int64_t key_max;
    char *key; /* gets the text of the key that had no permit, of WEIR_KEY_TEXT; may be NULL */
};
/* How long an ask may wait for this guard; 0: not at all. */
weir_time weir__ruled_wait(struct weir *weir, const char *guard, const struct weir_ask *ask);
/* The key of permits by key of a user that the caller names: as if the user were the attribute that
 * the key is made of.  False: the key is not made of one attribute. */
struct weir__user_key {
    struct weir_key key;      /* points into the user's text or the members below */
    char text[WEIR_KEY_TEXT]; /* of the key */
    size_t len;
    struct weir__facts facts;
    unsigned char made[WEIR__KEY_MAX];
};
bool weir__ruled_user(struct weir *weir, const char *guard, struct weir_key user,
                      struct weir__user_key *out);
/* Finds the guards that apply. */
void weir__admission_find(struct weir__admission *admission, const struct weir__active *active,
                          struct weir__facts *facts, const struct weir_ruling *ruling, bool listed);
/* Enters them, all or nothing. */
bool weir__admission_pass(struct weir__admission *admission, const struct weir__active *active,
                          const uint64_t *secrets, const struct weir__facts *facts,
                          struct weir_ruling *ruling);

/* check.c -- as weir_check_enter; `told` as weir_check_key's `key`, or NULL. */
bool weir__check_admitted(struct weir *weir, const struct weir_attr *attrs, size_t n,
                          struct weir__admission *admission, struct weir_ruling *ruling,
                          char *told);

/* check-enter.c -- as weir_check_enter; `alone` may be NULL. */
struct weir__entering;
bool weir__check_enter_alone(struct weir *weir, const struct weir_request *request,
                             const struct weir__alone_rules *alone,
                             const struct weir__entering *entering, struct weir_ruling *ruling,
                             char told[WEIR_KEY_TEXT]);

/* check-later.c -- a request that was to wait, for a permit or for units, is refused after all, and
 * not by the rules: only now it counts as refused. */
void weir__count_refused_later(struct weir *weir);

/* waiting-lines.c -- the queues of guards, which nobody waits in any more. */
void weir__lines_free(struct weir *weir);

/* counts.c -- adds to the table what these rules have counted.  With the mutex held. */
void weir__counts_share(struct weir *weir, struct weir__active *active);

/* Like weir_check, but takes, counts and writes nothing. */
bool weir__check_peek(struct weir *weir, const struct weir_attr *attrs, size_t n,
                      const struct weir_ask *ask, struct weir_ruling *ruling);

/* check-enter.c -- priority, class and user, from the facts or the ask as the guard wants them. */
void weir__guard_ask(const struct weir_rules *rules, uint32_t guard, const uint64_t *secrets,
                     const struct weir__facts *facts, const struct weir_ask *from,
                     unsigned char made[WEIR__KEY_MAX], struct weir_ask *out);
/* The key of permits by key; false: the guard has none, or an attribute is missing. */
bool weir__guard_key(const struct weir__guard_rule *guard, const uint64_t *secrets,
                     const struct weir__facts *facts, unsigned char made[WEIR__KEY_MAX],
                     struct weir_key *key);

#endif
