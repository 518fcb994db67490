/* centre.c -- a document of a fleet, as a node follows it. */
#include "cluster/fleet/centre.h"

#include <stdio.h>

static struct weir__centre_do nothing(void)
{
    return (struct weir__centre_do){ .verb = WEIR__CENTRE_NOTHING };
}

static struct weir__centre_do start(struct weir__follower *f, struct weir__centre_do what,
                                    weir_time now)
{
    f->busy = true;
    f->due = now + WEIR__CENTRE_EVERY;
    return what;
}

static struct weir__centre_do poll(struct weir__follower *f, weir_time now)
{
    return start(f, (struct weir__centre_do){ .verb = WEIR__CENTRE_POLL }, now);
}

static struct weir__centre_do take_version(struct weir__follower *f, int64_t version, weir_time now)
{
    if (version != f->refused) {
        f->refused = 0;
        f->why[0] = 0;
    }
    if (version == 0 || version == f->runs || version == f->refused)
        return nothing();
    f->wanted = version;
    return start(f, (struct weir__centre_do){ WEIR__CENTRE_FETCH, version }, now);
}

/* What came of it is reported at once. */
static struct weir__centre_do take_result(struct weir__follower *f, const char *why, weir_time now)
{
    if (why) {
        f->refused = f->wanted;
        snprintf(f->why, sizeof(f->why), "%s", why);
    } else {
        f->runs = f->wanted;
    }
    return poll(f, now);
}

struct weir__centre_do weir__centre_step(struct weir__follower *f,
                                         const struct weir__centre_event *e, weir_time now)
{
    switch (e->kind) {
    case WEIR__CENTRE_TIME:
        return f->busy || now < f->due ? nothing() : poll(f, now);
    case WEIR__CENTRE_NEWS:
        f->due = now;
        return f->busy ? nothing() : poll(f, now);
    case WEIR__CENTRE_POLLED:
        f->busy = false;
        return take_version(f, e->version, now);
    case WEIR__CENTRE_FETCHED:
        if (e->version == f->wanted)
            return start(f, (struct weir__centre_do){ WEIR__CENTRE_APPLY, e->version }, now);
        f->busy = false;
        return nothing();
    case WEIR__CENTRE_APPLIED:
        return take_result(f, e->why, now);
    default:
        f->busy = false;
        return nothing();
    }
}
