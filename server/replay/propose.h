/* propose.h -- from traffic, for each limit: the smallest count that would have refused no more
 * than a given share of its keys, ever.
 *
 *     create;  then for each pass over the traffic:  add ... add, weir__propose_pass;  then get
 *
 * One pass brackets the count between two steps of a ladder.  If the traffic can be read again,
 * further passes narrow it.  Memory is bounded: when there are too many keys, half of them are
 * followed no more, chosen by their hash, and the share is that of the others.
 */
#ifndef WEIR_SERVER_REPLAY_PROPOSE_H
#define WEIR_SERVER_REPLAY_PROPOSE_H

#include "server/base/count-distinct.h"

#define WEIR__PROPOSE_STEPS  24 /* counts tried at once */
#define WEIR__PROPOSE_LIMITS 64 /* limits that are looked at; the rest gets no proposal */
#define WEIR__PROPOSE_PASSES 6  /* more would narrow nothing that matters */
#define WEIR__PROPOSE_BYTES  ((size_t)256 << 20) /* for all limits together */
#define WEIR__PROPOSE_PPM    1000000             /* a share is given in millionths */

struct weir__propose;

struct weir__propose_options {
    int64_t share;                              /* of keys that may be refused, in millionths */
    weir_time wait_max;                         /* as the requests may wait */
    size_t bytes;                               /* 0: WEIR__PROPOSE_BYTES */
    const struct weir__sketch_secrets *secrets; /* must stay; read from the first add on */
};

/* What somebody asks of one limit of one rule. */
struct weir__propose_ask {
    size_t rule, index;
    const struct weir_limit *limit; /* as written; must stay */
    struct weir_key key;
    int64_t cost;
    weir_time now;
};

int weir__propose_create(struct weir__propose **out, const struct weir__propose_options *options,
                         struct weir_error *error);
void weir__propose_destroy(struct weir__propose *propose);
void weir__propose_add(struct weir__propose *propose, const struct weir__propose_ask *ask);

/* A pass has ended.  True if another one over the same traffic would narrow some limit; only then
 * may more be added. */
bool weir__propose_pass(struct weir__propose *propose);

struct weir__proposal {
    size_t rule, index;
    struct weir_limit written;
    struct weir_limit
        limit;     /* proposed; count 0: even the largest tried refuses more than the share */
    int64_t below; /* the largest count known to refuse too many; limit.count - 1: the proposal is
                      exact */
    int64_t keys;  /* followed */
    bool sampled;  /* not all keys were */
    int64_t keys_written;  /* of these, refused as the limit is written; -1: not known */
    int64_t keys_proposed; /* of these, refused as proposed */
    size_t steps;          /* of the first pass, for a curve: */
    int64_t counts[WEIR__PROPOSE_STEPS], refused[WEIR__PROPOSE_STEPS];
};

size_t weir__propose_limits(const struct weir__propose *propose);
void weir__propose_get(const struct weir__propose *propose, size_t i,
                       struct weir__proposal *out);               /* by rule and index */
bool weir__propose_is_whole(const struct weir__propose *propose); /* false: there were too many
                                                                     limits, or too little memory */

/* The limit with another count: a burst that was written keeps its proportion. */
struct weir_limit weir__propose_scale(const struct weir_limit *written, int64_t count);

#endif
