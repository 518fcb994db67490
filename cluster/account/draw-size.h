/* draw-size.h -- how many units a node draws from an account at once, to spend them by itself; and
 * how many count again when it pays them back.
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
 *     spent   fewer units than waiting + ahead: none, or what is left is less than one, or less
 *             than a pace needs and than a 16th of the burst; or nothing was wanted, and less than
 *             need is left
 *
 * A node may spend what it has drawn for a `life`, and no longer than the window or bucket of the
 * draw lasts: so a unit counts in the account exactly where it would have counted when spent.
 * Where each unit has an instant or a turn of its own (sliding-log, smooth, warm-up, queues), and
 * where the burst is less than two horizons' worth, nothing is drawn ahead.
 *
 * Units that are paid back (repay.c) count again
 *
 *     in windows   in the window, bucket or instant that they were drawn in, if it still counts
 *     in meters    the least debt of this epoch of a life and the one before, less what was paid
 *                  back meanwhile, if they were drawn in these epochs; or, if that is more, the
 *                  units less the time since their draw, if their life is not over
 *     elsewhere    not at all
 *
 * So nodes that draw, hold, pay back and draw again never spend more than burst + r (T + life) in
 * any time T: units drawn before a moment and paid back after it are no more than the debt of that
 * moment, which is how much less could be drawn since.  A take that goes past the nodes may hide
 * that the debt was less before it, by what drains in two lives: then it is burst + r (T + 3 life).
 *
 * Numbers are whole.  decide.lua has the same in Lua, which counts exactly to 2^53: hence the
 * bounds here.
 */
#ifndef WEIR_CLUSTER_ACCOUNT_DRAW_SIZE_H
#define WEIR_CLUSTER_ACCOUNT_DRAW_SIZE_H

#include "algo/purse.h"

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
    int64_t least;     /* that or a 16th of the burst, the lesser: with less left it is spent */
    int shift;         /* demand is counted in 2^shift units: 0 but for very fast limits */
    bool window;
    bool exact; /* nothing is drawn ahead: only for asks that wait */
};
struct weir__draw_terms weir__draw_terms(const struct weir_plan *plan);

/* What the choice is made from, within bounds: the words of decide.lua. */
struct weir__draw_numbers {
    int64_t need, waiting, have;
    int64_t asked, fast; /* in 2^shift units */
    int64_t ahead;       /* units that will be asked for beyond those that wait */
    int64_t epoch;       /* us */
    int64_t refill;      /* thousandths of a unit: 0.9 r pace */
    int64_t of_left;     /* thousandths of what is left that are supply */
    int64_t least_left;  /* thousandths of a unit: with less the account is spent */
};
struct weir__draw_numbers weir__draw_numbers(const struct weir__draw_terms *terms,
                                             const struct weir__draw *draw);

/* What all nodes do: a string in Redis, 'D', a version, and these; times have 7 bytes. */
#define WEIR__DEMAND_SIZE     48
#define WEIR__DEMAND_DEBT_MAX ((int64_t)1 << 50)
struct weir__demand {
    int64_t since;         /* us: the present epoch began */
    int64_t before, asked; /* 2^shift units, in the epoch before and in the present one */
    /* Of meters, in epochs of a life, in us of debt */
    int64_t life_since;
    int64_t least_before, least; /* the least that was owed, less what was paid back since */
};
bool weir__demand_read(struct weir__demand *out, const void *bytes,
                       size_t len); /* false: foreign */
void weir__demand_write(const struct weir__demand *demand, unsigned char out[WEIR__DEMAND_SIZE]);
/* Counts what this draw says.  Returns the demand, in 2^shift units per 1000 s. */
int64_t weir__demand_count(struct weir__demand *demand, const struct weir__draw_numbers *numbers,
                           weir_time now);
/* It may go after this many ms. */
int64_t weir__demand_life(const struct weir__draw_terms *terms);

struct weir__drawn {
    int64_t units;
    int64_t share; /* of the present supply, this node's */
    bool spent;
    weir_time at;   /* by the account's clock */
    weir_time life; /* from then on the units may be spent for this long */
};
struct weir__drawn weir__draw_choose(const struct weir__draw_numbers *numbers, int64_t demand,
                                     int64_t left);

/* Takes the units; or says when there are as many as are needed. */
void weir__draw_step(const struct weir_plan *plan, void *state, const struct weir_ask *need,
                     struct weir__drawn *drawn, struct weir_decision *d);

/* Units drawn at `at` may be spent for this long; `d` is a decision of now on their account. */
weir_time weir__drawn_life(const struct weir_plan *plan, weir_time at, weir_time now,
                           const struct weir_decision *d);

/* All of it on a state. */
struct weir__drawn weir__draw_units(const struct weir_plan *plan, void *state,
                                    struct weir__demand *demand, const struct weir__draw *draw,
                                    weir_time now, struct weir_decision *d);

/* ---------------------------------------------------------- paying back ---- */

/* A meter is about to change. */
void weir__demand_look(struct weir__demand *demand, const struct weir_plan *plan, const void *state,
                       weir_time now);

struct weir__repay {
    int64_t units;
    weir_time drawn_at; /* weir__drawn.at of the one draw that they are from */
};
/* Of them, those that count again, rounded up. */
int64_t weir__draw_repay(const struct weir_plan *plan, void *state, struct weir__demand *demand,
                         const struct weir__repay *repay, weir_time now);

#endif
