/* draw.h -- how many units a node draws from an account at once, to spend them by itself.
 *
 * A node says how much it needs and what it has seen; the account knows what is left, and how much
 * all nodes have asked lately.  With r units a second, and the horizon of the limit:
 *
 *     demand  units asked by all nodes, per second, over this epoch and the one before
 *     part    fast / max(demand, fast)                  this node's part of it
 *     share   part * (0.9 r pace + left / 4)            windows: left / 2
 *     ahead   max(0, slow * horizon - have)
 *     units   min(left, max(min(waiting, max(need, left / 2)), min(waiting + ahead, share - have)))
 *             or, if that is below need: need, if it is left and somebody waits or nothing is had
 *     spent   no units; or fewer than waiting + ahead, and what is left will not do for the pace
 *
 * Numbers are whole.  decide.lua has the same in Lua, which counts exactly to 2^53: hence the
 * bounds here.
 */
#ifndef WEIR_ACCOUNT_DRAW_H
#define WEIR_ACCOUNT_DRAW_H

#include "algo/algo.h"

struct weir__draw {
    int64_t need;       /* units of the first ask that waits; 1 if none does */
    int64_t waiting;    /* units of all that wait */
    int64_t have;       /* units not yet spent */
    int64_t asked;      /* units asked at this node since its last draw */
    int64_t fast, slow; /* the rate of asks at this node, in units per 1000 s, over two spans */
};

/* Of a limit. */
struct weir__draw_terms {
    weir_time life;    /* of drawn units */
    weir_time horizon; /* draws look this far ahead */
    weir_time pace;    /* between draws of a busy key */
    int64_t epoch;     /* us: demand is counted in these */
    int64_t due;       /* thousandths of a unit that the limit lets pass in a pace */
    bool window;
};
struct weir__draw_terms weir__draw_terms(const struct weir_plan *plan);

/* What the choice is made from, within bounds: the words of decide.lua. */
struct weir__draw_numbers {
    int64_t need, waiting, have, asked, fast;
    int64_t ahead;      /* units that will be asked for beyond those that wait */
    int64_t epoch;      /* us */
    int64_t refill;     /* thousandths of a unit: 0.9 r pace */
    int64_t of_left;    /* thousandths of what is left that are supply */
    int64_t least_left; /* thousandths of a unit: with less the account is spent */
};
struct weir__draw_numbers weir__draw_numbers(const struct weir__draw_terms *terms,
                                             const struct weir__draw *draw);

/* The demand of all nodes: a string in Redis, 'D', a version, since (7 bytes), before, asked. */
#define WEIR__DEMAND_SIZE 25
struct weir__demand {
    int64_t since;         /* us: the present epoch began */
    int64_t before, asked; /* units, in the epoch before and in the present one */
};
bool weir__demand_read(struct weir__demand *out, const void *bytes,
                       size_t len); /* false: foreign */
void weir__demand_write(const struct weir__demand *demand, unsigned char out[WEIR__DEMAND_SIZE]);
/* Counts what this draw says.  Returns the demand, in units per 1000 s. */
int64_t weir__demand_count(struct weir__demand *demand, const struct weir__draw_numbers *numbers,
                           weir_time now);
/* It may go after this many ms. */
int64_t weir__demand_life(int64_t epoch);

struct weir__drawn {
    int64_t units;
    int64_t share; /* of the present supply, this node's */
    bool spent;
};
struct weir__drawn weir__draw_choose(const struct weir__draw_numbers *numbers, int64_t demand,
                                     int64_t left);

/* Takes the units; or says when there are as many as are needed. */
void weir__draw_step(const struct weir_plan *plan, void *state, const struct weir_ask *need,
                     struct weir__drawn *drawn, struct weir_decision *d);

/* All of it on a state. */
struct weir__drawn weir__draw_units(const struct weir_plan *plan, void *state,
                                    struct weir__demand *demand, const struct weir__draw *draw,
                                    weir_time now, struct weir_decision *d);

#endif
