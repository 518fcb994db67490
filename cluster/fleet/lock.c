/* lock.c -- a lock in Redis, as one of its users sees it: when to ask what, and when it is lost. */
#include "cluster/fleet/lock.h"

#include "base/base.h"

#define ASK_MAX   WEIR_SECOND /* for an answer */
#define POLL_MIN  (50 * WEIR_MILLISECOND)
#define POLL_MAX  (WEIR__LOCK_PLACE / 4)
#define RENEW_MAX (5 * WEIR_SECOND)

/* Two more tries fit into the lifetime. */
static weir_time renewal(const struct weir__lock *l)
{
    return weir__int_least(l->life / 3, RENEW_MAX);
}

static struct weir__lock_send nothing(void)
{
    return (struct weir__lock_send){ .verb = WEIR__LOCK_NOTHING };
}

/* A short wait is for a turn in line: whether it is its turn, Redis may say a little later. */
static weir_time waits_until(const struct weir__lock *l)
{
    return weir__int_most(l->deadline, l->hear_by);
}

static weir_time time_for(const struct weir__lock *l, enum weir__lock_verb verb, weir_time now)
{
    weir_time most_for = verb == WEIR__LOCK_KEEP   ? renewal(l)
                         : verb == WEIR__LOCK_WAIT ? waits_until(l) - now
                         : l->deadline > now       ? l->deadline - now
                                                   : ASK_MAX;

    return weir__int_most(weir__int_least(most_for, ASK_MAX), WEIR_MILLISECOND);
}

static struct weir__lock_send send(struct weir__lock *l, enum weir__lock_verb verb, weir_time now)
{
    l->verb = verb;
    l->sent = now;
    l->due = l->phase == WEIR__LOCK_HELD                  ? l->until
             : l->phase == WEIR__LOCK_WAITING && l->waits ? waits_until(l)
                                                          : WEIR_NEVER;
    return (struct weir__lock_send){ verb, time_for(l, verb, now) };
}

/* It leaves the line, or gives back what Redis may have granted: after the ask that is under
 * way. */
static struct weir__lock_send end(struct weir__lock *l, enum weir__lock_phase phase, weir_time now)
{
    l->phase = phase;
    l->due = WEIR_NEVER;
    return l->known && l->verb == WEIR__LOCK_NOTHING ? send(l, WEIR__LOCK_FREE, now) : nothing();
}

static struct weir__lock_send look_at_time(struct weir__lock *l, weir_time now)
{
    if (l->phase == WEIR__LOCK_HELD && now >= l->until)
        return end(l, WEIR__LOCK_LOST, now);
    if (l->phase == WEIR__LOCK_WAITING && l->waits && now >= waits_until(l))
        return end(l, WEIR__LOCK_REFUSED, now);
    if (l->verb != WEIR__LOCK_NOTHING || now < l->due)
        return nothing();
    return send(l,
                l->phase == WEIR__LOCK_HELD      ? WEIR__LOCK_KEEP
                : l->phase != WEIR__LOCK_WAITING ? WEIR__LOCK_FREE
                : l->waits                       ? WEIR__LOCK_WAIT
                                                 : WEIR__LOCK_TAKE,
                now);
}

/* --------------------------------------------------------------- answers ---- */

/* The nearer its turn is, the sooner it asks; but never so late that it loses its place. */
static weir_time poll_after(const struct weir__lock_reply *r)
{
    weir_time after = POLL_MIN * weir__int_most(1, weir__int_least(r->place, POLL_MAX / POLL_MIN));

    return r->place == 1 ? weir__int_least(after, r->left + WEIR_MILLISECOND) : after;
}

static weir_time reliable_until(const struct weir__lock *l)
{
    return l->sent + l->life - l->life / WEIR__LOCK_DRIFT;
}

static struct weir__lock_send have(struct weir__lock *l, int64_t token, weir_time now)
{
    l->token = token;
    l->until = reliable_until(l);
    l->phase = WEIR__LOCK_HELD;
    l->due = l->sent + renewal(l);
    l->deadline = now;
    return look_at_time(l, now);
}

/* It may have been carried out.  Soon once more. */
static struct weir__lock_send take_failure(struct weir__lock *l, weir_time now)
{
    l->known = true;
    if (l->phase == WEIR__LOCK_WAITING && !l->waits)
        return end(l, WEIR__LOCK_REFUSED, now);
    l->due = l->phase == WEIR__LOCK_HELD ? weir__int_least(now + renewal(l) / 8, l->until)
                                         : weir__int_least(now + POLL_MIN, waits_until(l));
    return look_at_time(l, now);
}

static struct weir__lock_send take_answer(struct weir__lock *l, const struct weir__lock_reply *r,
                                          weir_time now)
{
    bool waiting = l->phase == WEIR__LOCK_WAITING;

    l->hear_by = 0;
    l->known = l->known || r->held || r->place > 0;
    if (waiting && r->held && now >= reliable_until(l))
        return take_failure(l, now);
    if (r->held && (waiting || r->token == l->token))
        return have(l, r->token, now);
    if (!waiting)
        return end(l, WEIR__LOCK_LOST, now);
    if (!l->waits || r->place == 0) {
        l->deadline = now;
        return end(l, WEIR__LOCK_REFUSED, now);
    }
    l->due = weir__int_least(now + poll_after(r), l->deadline);
    return look_at_time(l, now);
}

/* A release is tried until its deadline; the lifetime does the rest. */
static struct weir__lock_send answered(struct weir__lock *l, const struct weir__lock_event *e,
                                       weir_time now)
{
    bool answers = e->kind == WEIR__LOCK_ANSWER, freed = l->verb == WEIR__LOCK_FREE;

    l->verb = WEIR__LOCK_NOTHING;
    if (freed && (answers || now >= l->deadline)) {
        l->known = false;
        return nothing();
    }
    if (l->phase == WEIR__LOCK_WAITING || l->phase == WEIR__LOCK_HELD)
        return answers ? take_answer(l, &e->reply, now) : take_failure(l, now);
    l->known = l->known || !answers || e->reply.held || e->reply.place > 0;
    l->due = freed ? weir__int_least(now + POLL_MIN, l->deadline) : now;
    return l->known ? look_at_time(l, now) : nothing();
}

/* ---------------------------------------------------------------- events ---- */

static weir_time after(weir_time now, weir_time span)
{
    return span < WEIR_NEVER - now ? now + span : WEIR_NEVER;
}

static struct weir__lock_send begin(struct weir__lock *l, weir_time span, weir_time now)
{
    *l = (struct weir__lock){ .life = l->life,
                              .phase = WEIR__LOCK_WAITING,
                              .waits = span > 0,
                              .deadline = after(now, span),
                              .hear_by = after(now, ASK_MAX),
                              .due = now };
    return look_at_time(l, now);
}

struct weir__lock_send weir__lock_step(struct weir__lock *l, const struct weir__lock_event *e,
                                       weir_time now)
{
    switch (e->kind) {
    case WEIR__LOCK_BEGIN:
        return begin(l, e->span, now);
    case WEIR__LOCK_END:
        if (l->phase != WEIR__LOCK_WAITING && l->phase != WEIR__LOCK_HELD)
            return nothing();
        l->deadline = after(now, e->span);
        return end(l, l->phase == WEIR__LOCK_HELD ? WEIR__LOCK_RELEASED : WEIR__LOCK_REFUSED, now);
    case WEIR__LOCK_TIME:
        return weir__lock_is_over(l) ? nothing() : look_at_time(l, now);
    default:
        return answered(l, e, now);
    }
}

bool weir__lock_is_over(const struct weir__lock *l)
{
    return l->phase == WEIR__LOCK_IDLE ||
           (l->phase > WEIR__LOCK_HELD && l->verb == WEIR__LOCK_NOTHING && !l->known);
}
