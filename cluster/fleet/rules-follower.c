/* rules-follower.c -- a document of a fleet, as a node follows it. */
#include "cluster/fleet/rules-follower.h"

#include <stdio.h>

static struct weir__follower_do nothing(void)
{
    return (struct weir__follower_do){ .verb = WEIR__FOLLOWER_NOTHING };
}

static struct weir__follower_do start(struct weir__follower *f, struct weir__follower_do what,
                                      weir_time now)
{
    f->busy = true;
    f->due = now + WEIR__FOLLOWER_EVERY;
    return what;
}

static struct weir__follower_do poll(struct weir__follower *f, weir_time now)
{
    return start(f, (struct weir__follower_do){ .verb = WEIR__FOLLOWER_POLL }, now);
}

static bool equal(struct weir__edition a, struct weir__edition b)
{
    return a.version == b.version && a.edit == b.edit;
}

static struct weir__follower_do take_version(struct weir__follower *f, struct weir__edition of,
                                             weir_time now)
{
    if (!equal(of, f->refused)) {
        f->refused = (struct weir__edition){ 0 };
        f->why[0] = 0;
    }
    if (of.version == 0 || equal(of, f->runs) || equal(of, f->refused))
        return nothing();
    f->wanted = of;
    return start(f, (struct weir__follower_do){ WEIR__FOLLOWER_FETCH, of.version }, now);
}

/* What came of it is reported at once. */
static struct weir__follower_do take_result(struct weir__follower *f, const char *why,
                                            weir_time now)
{
    if (why) {
        f->refused = f->wanted;
        snprintf(f->why, sizeof(f->why), "%s", why);
    } else {
        f->runs = f->wanted;
    }
    return poll(f, now);
}

struct weir__follower_do weir__follower_step(struct weir__follower *f,
                                             const struct weir__follower_event *e, weir_time now)
{
    switch (e->kind) {
    case WEIR__FOLLOWER_TIME:
        return f->busy || now < f->due ? nothing() : poll(f, now);
    case WEIR__FOLLOWER_NEWS:
        f->due = now;
        return f->busy ? nothing() : poll(f, now);
    case WEIR__FOLLOWER_POLLED:
        f->busy = false;
        return take_version(f, e->of, now);
    case WEIR__FOLLOWER_FETCHED:
        if (equal(e->of, f->wanted))
            return start(f, (struct weir__follower_do){ WEIR__FOLLOWER_APPLY, e->of.version }, now);
        f->busy = false;
        return nothing();
    case WEIR__FOLLOWER_APPLIED:
        return take_result(f, e->why, now);
    default:
        f->busy = false;
        return nothing();
    }
}
