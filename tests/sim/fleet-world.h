/* fleet-world.h -- a fleet on virtual time: nodes with the real code of cluster/fleet and real
 * purses, accounts with the real code of cluster/account, and a network, clocks and a Redis that
 * fail.
 *
 * A story is a list of events: asks, and things that go wrong.  A story and a seed decide
 * everything, so that a run can be had again, and a story that breaks a law can be made shorter
 * while it still does.
 */
#ifndef WEIR_TESTS_SIM_FLEET_WORLD_H
#define WEIR_TESTS_SIM_FLEET_WORLD_H

#include "cluster/fleet/fleet.h"
#include "algo/share.h"
#include "random.h"

#define MS WEIR_MILLISECOND
#define US WEIR_MICROSECOND
#define S  WEIR_SECOND

#ifndef NODES_MAX
#define NODES_MAX 128
#define KEYS_MAX  4
#endif
#define LIMITS_MAX 2

enum event_kind {
    EVENT_ASK,
    EVENT_CRASH,  /* and begins anew after `span` */
    EVENT_CUT,    /* from Redis, for `span` */
    EVENT_LOSSY,  /* one message in `n` is lost, and one is doubled, for `span` */
    EVENT_STOP,   /* Redis is stopped for `span` */
    EVENT_COPY,   /* a replica has everything up to here */
    EVENT_FAIL,   /* Redis fails over to the replica; its clock is ahead by `span` */
    EVENT_STEP,   /* the node's clock steps by `span` */
    EVENT_STALL,  /* the node stands still for `span`: nobody asks it, and letters wait */
    EVENT_RETIRE, /* the node ends, and pays back; begins anew after `span` */
    EVENTS
};

struct event {
    weir_time at, span;
    int32_t n; /* cost of an ask */
    uint16_t node;
    uint8_t kind, limits; /* of an ask: a bit for each */
    uint8_t key;
};

struct story {
    uint64_t seed;
    bool share;    /* when alone, nodes go by their shares; else nothing passes */
    bool lend;     /* parts follow demand; else they are equal */
    bool together; /* all are alone at the same time: their shares are no more than the limit */
    int nodes, n_limits, keys;
    const char *limits[LIMITS_MAX];
    weir_time length, trip, patience; /* of the world; one way to Redis; until a waiter gives up */
    weir_time far;                    /* the way of the first node, if it is another */
    weir_time command;                /* Redis is busy for this long with each */
    weir_time counted_from;           /* commands, and asks alone and late */
    struct event *events;             /* in their order */
    size_t n;
};

/* What passed: at a moment, for a node. */
struct passed {
    weir_time at;
    int64_t units;
    int node;
    int share;     /* its number; 0: by units that were drawn */
    weir_time own; /* by the node's clock */
};

struct account {
    uint64_t state[512], copy[512];
    struct weir__demand demand, demand_copy;
    struct {
        uint64_t id;
        struct weir__drawn drawn;
        weir_time at;
    } receipts[256];
    size_t n_receipts;
    int64_t drawn_since;      /* the copy */
    int64_t extra;            /* units that failures of Redis gave away */
    struct weir_plan *shares; /* of those that were opened, by their number - 1 */
    int n_shares;
    struct passed *passed;
    size_t n_passed, room;
};

struct outcome {
    struct weir_plan plans[LIMITS_MAX];
    struct weir__fleet_limit limits[LIMITS_MAX];
    uint32_t part[NODES_MAX];
    struct account accounts[LIMITS_MAX][KEYS_MAX];
    int64_t asked[NODES_MAX], granted[NODES_MAX]; /* asks, one limit or more */
    int64_t asked_both, granted_both;             /* of those for several limits */
    int64_t refused, alone, late;                 /* asks */
    weir_time told;                               /* when the last that was refused passes */
    int64_t commands, repays;                     /* of the commands */
    weir_time step_back;                          /* the largest of a node's clock */
    weir_time ahead;                              /* Redis's clock, at the end */
    const char *broken;                           /* a law that was broken on the way */
};

/* Runs a story; the outcome stays until the next. */
const struct outcome *fleet_run(const struct story *story);

#endif
