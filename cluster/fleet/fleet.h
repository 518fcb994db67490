/* fleet.h -- a node of a fleet: it draws units from the accounts of limits, and its purses are
 * spent.
 *
 * Here are no sockets, no clock, no table and no memory taken after creation: a driver connects it
 * to the world, and a simulation does the same with virtual time.
 *
 *     asks take from purses in the table         not seen here; a look at a purse counts them
 *     a purse is dry          weir__fleet_wait   the ask waits, and is answered by `done`
 *     a purse is closed       weir__fleet_refused  counted, because it is demand
 *     an account has answered weir__fleet_drawn
 *     no answer will come     weir__fleet_lost, weir__fleet_denied
 *     time                    weir__fleet_turn   everything that is due; says when to come back
 *
 * A key is here while something is known about it: units in its purse, asks that wait, a draw under
 * way, a rate.  The life of one:
 *
 *     exact    nothing is in its purse; each draw is for the asks that wait
 *     lease    a unit or more is asked for in a horizon: it draws ahead when the purse is low
 *     spent    the account had too little: its purse is closed until `closed_until`; a hot key
 *              draws again a little earlier, a cold one with the next ask
 *     large    it had units, but fewer than an ask needed: only such asks are refused for a while
 *     quiet    units that nobody will ask for go back to the account
 *
 * All or nothing: an ask waits on every key whose purse has too little, and takes from all of them
 * together when all have enough.  An account that has refused this node within the last life is
 * drawn from first and alone; when one refuses, units that were drawn from the others for this ask
 * go back at once.
 *
 * Alone: a draw that is not answered in time, while nothing else comes from its shard, means that
 * the shard is away.  Asks are then answered "alone" at once, and the rule's when_alone decides
 * (share.h); a draw now and then finds out when it is back.  Before the first draw after that, the
 * account is charged with what passed meanwhile.
 *
 * Times are the node's, and never leave it: an account only hears of units and rates.
 */
#ifndef WEIR_CLUSTER_FLEET_FLEET_H
#define WEIR_CLUSTER_FLEET_FLEET_H

#include "cluster/fleet/demand.h"

#define WEIR__FLEET_KEY_MAX    256 /* bytes of a key; a longer one is the driver's to shorten */
#define WEIR__FLEET_ITEMS_MAX  WEIR_ALL_MAX /* limits of one ask */
#define WEIR__FLEET_SHARDS_MAX 64

struct weir__fleet;
struct weir__fleet_dues;
struct weir__fleet_wait;

/* One limit of an ask that waits. */
struct weir__fleet_item {
    struct weir__fleet_key *key;
    int64_t cost;
    /* The fleet's */
    struct weir__fleet_wait *wait;
    struct weir__fleet_item *next, *before;
    bool queued, fed;        /* waits on the key; units came for it */
    bool answered;           /* its account has just said what is left */
    struct weir__repay kept; /* they came late, for this ask and no other: not in the purse */
};

enum weir__fleet_outcome {
    WEIR__FLEET_TOOK,    /* everything was taken */
    WEIR__FLEET_REFUSED, /* `retry` says when to come again */
    WEIR__FLEET_ALONE,   /* no account can be asked now: the rule's when_alone decides */
};

/* An ask that waits, with those of its limits that are the fleet's.  The driver's memory, until
 * `done` or weir__fleet_cancel. */
struct weir__fleet_wait {
    struct weir__fleet_item items[WEIR__FLEET_ITEMS_MAX];
    size_t n;
    /* The answer */
    enum weir__fleet_outcome outcome;
    weir_time retry;
    const struct weir__fleet_item *refuser; /* whose account has refused; NULL: none has */
    bool over;
};

/* One (limit, key) at this node. */
struct weir__fleet_key {
    const struct weir__fleet_limit *limit;
    struct weir_key key;
    uint32_t shard;
    unsigned char bytes[WEIR__FLEET_KEY_MAX];
    /* The driver's, zeros at first */
    struct {
        unsigned char bytes[64];
        size_t len;    /* how its table calls the key */
        int slot;      /* of its account */
        uint32_t asks; /* that refer to it: it is not forgotten */
        bool alone;    /* its share has begun */
    } own;
    /* The rest is the fleet's */
    struct weir__fleet_rate rate;
    int64_t asked;   /* units since the last draw */
    int64_t cost;    /* of the last ask that found too little */
    int64_t counted; /* of them not yet in the rate */
    int64_t seen;    /* units in the purse at the last look */
    weir_time seen_at;
    weir_time asked_at; /* the last look that found something asked */
    bool unwanted;      /* by an ask that was refused elsewhere meanwhile */
    bool drawing;       /* a draw is under way: */
    struct weir__draw draw;
    uint64_t id;
    weir_time sent, sent_first;
    int repeats;
    struct weir__repay lots[2]; /* units of the last two draws, and when they were drawn */
    bool spent;
    weir_time closed_until, draw_at;
    weir_time told_until;  /* the purse says: when the account has enough, if nobody draws */
    int64_t large;         /* the account had units, but fewer than these, which were needed ... */
    weir_time large_until; /* ... and until then nobody asks it for as many */
    weir_time large_at;    /* it may have them */
    weir_time refused_at;  /* the account had less than was needed; 0: never */
    int64_t left;          /* in the account, by the last answer; -1: there was none: */
    weir_time left_at, full_at;            /* of that; the account is full again, if nobody draws */
    bool alone;                            /* asks were left alone since */
    int denials;                           /* draws in a row that were refused: */
    weir_time denied_until;                /* as if its shard were away */
    int64_t share;                         /* of the supply, by the last answer */
    struct weir__fleet_item *first, *last; /* asks that wait */
    int64_t waiting;                       /* their units */
    weir_time due;
    size_t place;                  /* in a heap of dues: */
    struct weir__fleet_dues *dues; /* this; NULL: it is not due by itself */
    struct weir__fleet_key *chain; /* of the same hash; of the free */
};

/* The world.  None of them may call the fleet. */
struct weir__fleet_world {
    /* Units in the purse.  `then` may lie in the past: what would be there if none had expired
     * since. */
    int64_t (*have)(void *world, const struct weir__fleet_key *key, weir_time then);
    /* Units whose life counts from `drawn`. */
    void (*fill)(void *world, const struct weir__fleet_key *key, int64_t units, weir_time drawn,
                 weir_time now);
    /* If it has no units, asks are refused until then, and told to come at `told`. */
    void (*close)(void *world, const struct weir__fleet_key *key, weir_time until, weir_time told,
                  weir_time now);
    /* Takes out up to that many units; returns them. */
    int64_t (*take_out)(void *world, const struct weir__fleet_key *key, int64_t most,
                        weir_time now);
    /* Decides the ask again: takes all or nothing.  WEIR__FLEET_ALL_TAKEN, or the item that has too
     * little, or WEIR__FLEET_NOT_OURS: a limit refuses that is not the fleet's. */
    int (*take)(void *world, struct weir__fleet_wait *wait, weir_time now);
    /* Sends a draw; with the id of an earlier one, the same draw again. */
    void (*draw)(void *world, const struct weir__fleet_key *key);
    /* The account is there again: charges it with what passed alone (share.h). Not repeated. */
    void (*charge)(void *world, const struct weir__fleet_key *key, weir_time now);
    /* Gives units back to the account.  Nobody waits for that, and it is not repeated: what is
     * given back twice could be spent twice. */
    void (*repay)(void *world, const struct weir__fleet_key *key, const struct weir__repay *back);
    void (*done)(void *world, struct weir__fleet_wait *wait);
};
#define WEIR__FLEET_ALL_TAKEN (-1)
#define WEIR__FLEET_NOT_OURS  (-2)

struct weir__fleet_options {
    const struct weir__fleet_world *ops;
    void *world;
    uint64_t seed;      /* a random number, another for each node and start: ids begin there */
    size_t keys;        /* that are known at once, at most; 0: 65536 */
    size_t draws;       /* under way to one shard, at most; 0: 4096 */
    weir_time patience; /* until a draw without an answer is sent again, at least; 0: 20 ms */
};

int weir__fleet_create(struct weir__fleet **out, const struct weir__fleet_options *options,
                       struct weir_error *error);
void weir__fleet_destroy(struct weir__fleet *fleet); /* nobody waits any more */

/* Finds a key or makes room for it.  NULL: there is none; decide as if alone.  The shard is where
 * its account is: draws are bounded for each. */
struct weir__fleet_key *weir__fleet_key(struct weir__fleet *fleet,
                                        const struct weir__fleet_limit *limit, struct weir_key key,
                                        uint32_t shard, weir_time now);

/* Not secret: for tables whose chains are bounded. */
uint64_t weir__fleet_hash(uint64_t seed, struct weir_key key);

/* NULL: it is not known. */
struct weir__fleet_key *weir__fleet_key_find(const struct weir__fleet *fleet,
                                             const struct weir__fleet_limit *limit,
                                             struct weir_key key);
/* One after another, from 0, whatever is done to them; NULL: no more. */
struct weir__fleet_key *weir__fleet_key_next(const struct weir__fleet *fleet, size_t *at);
/* Its limit is over: its waits are answered "alone", its units go back, it is forgotten. */
void weir__fleet_drop(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);

/* The account was made fresh at `at`, by its clock: units drawn before are gone, and asks draw
 * again. */
void weir__fleet_reset(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time at,
                       weir_time now);

/* Another process draws ahead for the same purses: this one draws only for its own asks that wait,
 * and leaves what is in purses to the other. */
void weir__fleet_set_exact(struct weir__fleet *fleet, bool exact);

/* A purse was dry.  `done` is called now or later; wait->n, items[].key and .cost are filled in. */
void weir__fleet_wait(struct weir__fleet *fleet, struct weir__fleet_wait *wait, weir_time now);
/* Nobody waits for it any more: the deadline has passed. */
void weir__fleet_cancel(struct weir__fleet *fleet, struct weir__fleet_wait *wait, weir_time now);
/* Asks for this many units found the purse closed; the last was for `cost`. */
void weir__fleet_refused(struct weir__fleet *fleet, struct weir__fleet_key *key, int64_t units,
                         int64_t cost, weir_time now);

struct weir__fleet_answer {
    struct weir__drawn drawn;
    int64_t left;           /* in the account */
    weir_time retry, reset; /* until as many as needed are there; all of them */
};
/* The answer to the draw with this id.  An answer that is no longer expected is ignored. */
void weir__fleet_drawn(struct weir__fleet *fleet, struct weir__fleet_key *key, uint64_t id,
                       const struct weir__fleet_answer *answer, weir_time now);
/* In the account by now, if no other node has drawn since the last answer; -1: nobody knows, or all
 * of it. */
int64_t weir__fleet_left(const struct weir__fleet_key *key, weir_time now);
/* Until this many are there, if nobody draws; 0: nobody knows. */
weir_time weir__fleet_free_in(const struct weir__fleet_key *key, int64_t units, weir_time now);
/* There will be none.  `undone`: and nothing was drawn. */
void weir__fleet_lost(struct weir__fleet *fleet, struct weir__fleet_key *key, uint64_t id,
                      bool undone, weir_time now);
/* Redis refuses it, with an error: asks are left alone, and the next draw waits, longer each time.
 */
void weir__fleet_denied(struct weir__fleet *fleet, struct weir__fleet_key *key, uint64_t id,
                        weir_time now);

/* No account of the shard is to be asked until then, whatever it answers: after an outage all
 * nodes go back together, because shares and draws at once would be more than the limit. */
void weir__fleet_stay_alone(struct weir__fleet *fleet, uint32_t shard, weir_time until,
                            weir_time now);

/* Everything that is due.  Returns when to come back; WEIR_NEVER: not by itself. */
weir_time weir__fleet_turn(struct weir__fleet *fleet, weir_time now);

/* The end: all waits are answered "alone", and all units go back. */
void weir__fleet_end(struct weir__fleet *fleet, weir_time now);

/* The largest part of a limit that was asked for since the last call, in millionths. */
int64_t weir__fleet_asked(struct weir__fleet *fleet);

struct weir__fleet_counts {
    uint64_t draws, repeats, given_up, units_drawn, units_repaid, spent, alone;
};
struct weir__fleet_counts weir__fleet_counts(const struct weir__fleet *fleet);

#endif
