/* member-shares.c -- a node's membership in a fleet: when to beat, and for how long a part is its
 * own. */
#include "cluster/fleet/member-shares.h"

static struct weir__member_send nothing(void)
{
    return (struct weir__member_send){ .verb = WEIR__MEMBER_NOTHING };
}

int64_t weir__member_part(const struct weir__member *m, weir_time now)
{
    return now < m->until ? m->part : 0;
}

/* The part that is sent stays the part in force until an answer to this very beat. */
static struct weir__member_send beat(struct weir__member *m, weir_time now)
{
    m->part = weir__member_part(m, now);
    m->seq++;
    m->sent = now;
    m->asking = true;
    m->due = now + m->beat;
    return (struct weir__member_send){ WEIR__MEMBER_BEATS, m->seq, m->part, m->beat };
}

static struct weir__member_send leave(struct weir__member *m)
{
    m->asking = true;
    m->due = WEIR_NEVER;
    return (struct weir__member_send){ WEIR__MEMBER_LEAVES, m->seq, 0, m->beat };
}

static void take_answer(struct weir__member *m, const struct weir__member_answer *a)
{
    weir_time life = 3 * m->beat;

    if (a->offer < 0 || a->offer > WEIR__PART_ONE)
        return;
    m->part = a->offer;
    m->until = m->sent + life - life / WEIR__MEMBER_DRIFT;
    m->members = a->members;
    m->learning = a->learning;
}

/* An ask that failed is no longer the newest: its answer, should it still come, is the driver's to
 * drop. */
static struct weir__member_send answered(struct weir__member *m, const struct weir__member_event *e,
                                         weir_time now)
{
    m->asking = false;
    if (m->left)
        return m->due == WEIR_NEVER ? nothing() : leave(m);
    if (e->kind == WEIR__MEMBER_ANSWER)
        take_answer(m, &e->answer);
    return now >= m->due ? beat(m, now) : nothing();
}

struct weir__member_send weir__member_step(struct weir__member *m,
                                           const struct weir__member_event *e, weir_time now)
{
    switch (e->kind) {
    case WEIR__MEMBER_TIME:
        return m->left || m->asking || now < m->due ? nothing() : beat(m, now);
    case WEIR__MEMBER_LEAVE:
        if (m->left)
            return nothing();
        m->left = true;
        m->part = 0;
        m->until = 0;
        m->due = now;
        return m->asking ? nothing() : leave(m);
    default:
        return answered(m, e, now);
    }
}
