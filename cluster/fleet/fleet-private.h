/* fleet-private.h -- between the files of this room. */
#ifndef WEIR_CLUSTER_FLEET_FLEET_PRIVATE_H
#define WEIR_CLUSTER_FLEET_FLEET_PRIVATE_H

#include "cluster/fleet/fleet.h"

/* Keys by the moment they are due: a heap in which each knows its place. */
struct weir__fleet_dues {
    struct weir__fleet_due {
        weir_time at;
        struct weir__fleet_key *key;
    } * heap;
    size_t n;
};

struct weir__fleet {
    const struct weir__fleet_world *ops;
    void *world;
    uint64_t random, next_id;
    size_t draws_max;
    bool exact;  /* nothing is drawn ahead, and what is in purses is another's */
    size_t hand; /* the next key to be forgotten, if it is idle */
    weir_time patience;
    struct {
        size_t drawing;       /* draws under way */
        weir_time round_trip; /* average */
        weir_time heard;      /* the last answer */
        bool away;            /* draws are not answered */
        weir_time probe_at;   /* while away: the next draw to find out */
        weir_time alone_until;
    } shards[WEIR__FLEET_SHARDS_MAX];
    struct weir__fleet_key *keys, *spare;     /* all of them; those that were used, and are free */
    size_t fresh;                             /* the first that was never used */
    struct weir__fleet_key **table;           /* by hash */
    size_t n_keys, table_size;                /* a power of two */
    struct weir__fleet_dues drawing, resting; /* keys in use: draws are few, and soon over */
    int64_t asked; /* the largest part of a limit, since it was last told */
    struct weir__fleet_counts counts;
};

static inline weir_time weir__fleet_later(weir_time now, weir_time span)
{
    return span > INT64_MAX - now ? INT64_MAX : now + span;
}

/* keys.c -- keys by hash, and by the moment they are due. */
int weir__fleet_keys_make(struct weir__fleet *fleet, size_t keys, struct weir_error *error);
void weir__fleet_keys_free(struct weir__fleet *fleet);
void weir__fleet_key_forget(struct weir__fleet *fleet, struct weir__fleet_key *key);
void weir__fleet_key_move(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time due);
/* The one that is due first; NULL: there is none. */
struct weir__fleet_key *weir__fleet_key_first(const struct weir__fleet *fleet);

/* fleet.c -- Units that were asked for; the last ask was for `cost`. */
void weir__fleet_count(struct weir__fleet_key *key, int64_t units, int64_t cost);
/* Counts what was taken from the purse since the last look; returns what is there. */
int64_t weir__fleet_look(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);
/* After a change of the purse that was no ask: the present is the last look. */
void weir__fleet_look_over(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);
/* Draws for the asks that wait, or else ahead.  False: too many are under way. */
bool weir__fleet_draw(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);
void weir__fleet_pay_back(struct weir__fleet *fleet, struct weir__fleet_key *key, int64_t most,
                          weir_time now);
/* Before late units are laid into the purse: an ask takes the oldest first, and would leave these
 * in the place of others, to be spent in a window that they are not of. */
void weir__fleet_empty_purse(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);
/* These units, which are not in the purse. */
void weir__fleet_repay(struct weir__fleet *fleet, struct weir__fleet_key *key,
                       const struct weir__repay *back);
/* No account of its shard is to be asked now. */
bool weir__fleet_is_alone(const struct weir__fleet *fleet, const struct weir__fleet_key *key,
                          weir_time now);
/* A draw to find out whether accounts answer again, if it is time for one. */
void weir__fleet_probe(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);
/* When the key is to be looked at again. */
void weir__fleet_plan(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);

/* waiting-asks.c -- Units have come: asks that wait take, in order.  Returns the units in the purse
 * for asks that lack something elsewhere. */
int64_t weir__fleet_serve(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);
/* The purse has the units of this draw and no others: they are for these asks alone. */
void weir__fleet_serve_late(struct weir__fleet *fleet, struct weir__fleet_key *key,
                            const struct weir__drawn *late, weir_time now);
/* Refuses all that wait on it; those that are too large. */
void weir__fleet_refuse_all(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);
void weir__fleet_refuse_large(struct weir__fleet *fleet, struct weir__fleet_key *key,
                              weir_time now);
/* The account had less than was needed, within the last life. */
bool weir__fleet_has_refused(const struct weir__fleet_key *key, weir_time now);
/* No account can be asked. */
void weir__fleet_leave_alone(struct weir__fleet *fleet, struct weir__fleet_key *key, weir_time now);

#endif
