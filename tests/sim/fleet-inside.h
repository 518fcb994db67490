/* fleet-inside.h -- between the files of the fleet on virtual time. */
#ifndef WEIR_TESTS_SIM_FLEET_INSIDE_H
#define WEIR_TESTS_SIM_FLEET_INSIDE_H

#include <stdlib.h>
#include <string.h>

#include "fleet-agenda.h"
#include "sim/fleet-parts.h"

#define BEGIN (1000000 * WEIR_SECOND) /* of every clock, or about */

enum { WAITS = 32 * NODES_MAX, LETTERS = 128 * NODES_MAX, SHARDS = 2, SHARE_WORDS = 160 };

enum what { TURN, TO_REDIS, TO_NODE, DEADLINE, REBIRTH, BEAT };

struct letter {
    int node, limit, key;
    uint32_t life; /* of the node */
    struct weir__fleet_key *record;
    uint64_t id;
    struct weir__draw draw;
    struct weir__drawn drawn;
    struct weir_decision d;
    weir_time at; /* drawn at */
    struct weir__repay repaid;
    int64_t charged;
    int next; /* free one */
};

struct node {
    struct weir__fleet *fleet;
    uint32_t life;
    bool up;
    weir_time cut_until, stalled_until, skew, turn_at;
    uint64_t purses[LIMITS_MAX][KEYS_MAX][2];
    struct share {
        bool open;
        uint64_t state[SHARE_WORDS], note[SHARE_WORDS]; /* what it was charged with to begin */
        struct weir_plan plan;
        int number;
    } shares[LIMITS_MAX][KEYS_MAX];
};

struct waiting {
    struct weir__fleet_wait wait;
    bool used;
    uint32_t life;
    int node;
    weir_time drawn_at[LIMITS_MAX]; /* units that are kept for it */
};

struct fleet_sim {
    const struct story *story;
    struct outcome o;
    uint64_t dice;
    weir_time now;
    struct agenda agenda;
    struct node nodes[NODES_MAX];
    struct waiting waits[WAITS];
    struct letter letters[LETTERS];
    int free_letter, free_wait;
    weir_time back_at; /* the first command after Redis was stopped */
    weir_time stopped_until, lossy_until, redis_ahead, busy_until[SHARDS];
    int64_t lossy;
    struct parts parts;
    struct { /* an answer is being read */
        int limit, key;
        weir_time at;
    } answer;
};
extern struct fleet_sim sim;

static inline void add(weir_time at, enum what what, int n, uint32_t life)
{
    agenda_add(&sim.agenda,
               (struct agenda_item){ .at = at, .kind = (int)what, .node = n, .number = life });
}

static inline int64_t dice(int64_t n)
{
    return (int64_t)(random64(&sim.dice) % (uint64_t)n);
}

static inline void broken(const char *law)
{
    sim.o.broken = sim.o.broken ? sim.o.broken : law;
}

static inline bool is_counted(void)
{
    return sim.now >= sim.story->counted_from;
}

static inline weir_time node_now(int node)
{
    return BEGIN + sim.now + sim.nodes[node].skew;
}

static inline weir_time redis_now(void)
{
    return (BEGIN + sim.now + sim.redis_ahead) / US * US;
}

/* fleet-redis.c -- Sends a letter; reads one, which is free then. */
void fleet_post(enum what what, const struct letter *letter);
struct letter fleet_read_letter(int n);
/* A letter has come: done at once, or when those before it are done. */
void fleet_at_redis(int n);
void fleet_copy_redis(void);
void fleet_fail_over(weir_time ahead);

/* fleet-node.c */
void fleet_start_node(int n);
void fleet_stop_node(int n, weir_time span, bool retire);
void fleet_turn(int n);
void fleet_ask(const struct event *e);
void fleet_read_answer(struct letter l);
void fleet_give_up(int n, uint32_t life);
void fleet_beat(int n);

#endif
