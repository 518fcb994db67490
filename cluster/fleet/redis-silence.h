/* redis-silence.h -- whether Redis is silent, as the agent of a host finds out by its beats: pure
 * numbers.
 *
 * Silent for long, the host is alone: its shares begin, and purses are asked no more.  They are
 * asked for a while longer than that takes, so that a stopped agent needs nobody to notice it.  An
 * agent that was stopped itself, or got no time, has not asked meanwhile: that is no silence.
 */
#ifndef WEIR_CLUSTER_FLEET_REDIS_SILENCE_H
#define WEIR_CLUSTER_FLEET_REDIS_SILENCE_H

#include "weir.h"

#define WEIR__HEARING_TURN (50 * WEIR_MILLISECOND) /* from one turn to the next, at most */

struct weir__hearing {
    bool up;          /* Redis has answered, or is taken to be there, ... */
    bool away;        /* ... and then was silent: the host is alone until a beat says otherwise */
    bool stalled;     /* a stall was forgotten since the last answer */
    weir_time heard;  /* the last answer */
    weir_time turned; /* the last turn */
};

/* `up`: Redis is taken to be there until it is silent, so that nobody is refused because it was not
 * asked yet. */
void weir__hearing_begin(struct weir__hearing *hearing, bool up, weir_time now);
/* A beat was answered.  `learning`: Redis does not know all hosts yet. */
void weir__hearing_answer(struct weir__hearing *hearing, bool learning, weir_time now);
/* True: the host is alone from now on. */
bool weir__hearing_turn(struct weir__hearing *hearing, weir_time now);
/* From now on purses may be asked for this long; 0: they may not. */
weir_time weir__hearing_span(const struct weir__hearing *hearing, weir_time now);

#endif
