/* redis-silence.c -- whether Redis is silent, as the agent of a host finds out by its beats. */
#include "cluster/fleet/redis-silence.h"

#define SILENCE (450 * WEIR_MILLISECOND) /* two beats, and some */
#define UNTIL   (700 * WEIR_MILLISECOND) /* purses are asked, after the last answer */
#define STALL   (2 * WEIR__HEARING_TURN) /* between two turns: it was stopped, or got no time */

void weir__hearing_begin(struct weir__hearing *h, bool up, weir_time now)
{
    *h = (struct weir__hearing){ .up = up, .heard = now, .turned = now };
}

/* After a silence all hosts go on alone until Redis has learnt who there is. */
void weir__hearing_answer(struct weir__hearing *h, bool learning, weir_time now)
{
    h->heard = now;
    h->stalled = false;
    h->away = h->away && learning;
    h->up = h->up || !h->away;
}

/* Once after each answer: a host that hardly gets any time is to notice a silence, too. */
static void forget_stall(struct weir__hearing *h, weir_time now)
{
    weir_time stall = now - h->turned;

    h->turned = now;
    if (stall <= STALL || h->stalled)
        return;
    h->stalled = true;
    h->heard += stall;
    if (h->heard > now) /* it was stopped after an answer */
        h->heard = now;
}

bool weir__hearing_turn(struct weir__hearing *h, weir_time now)
{
    forget_stall(h, now);
    if (h->away || now - h->heard <= SILENCE)
        return false;
    h->away = true;
    return true;
}

weir_time weir__hearing_span(const struct weir__hearing *h, weir_time now)
{
    return h->up && !h->away ? h->heard + UNTIL - now : 0;
}
