/* fleet-parts.h -- the members of a simulated fleet: beats that take no time, and the parts that
 * they grant by demand. */
#ifndef WEIR_TESTS_SIM_FLEET_PARTS_H
#define WEIR_TESTS_SIM_FLEET_PARTS_H

#include "sim/fleet-world.h"

#ifndef MODEL_MEMBERS
#define MODEL_MEMBERS NODES_MAX
#endif
#include "member-shares-model.h"

struct parts {
    struct model_fleet redis;
    struct {
        struct weir__member member;
        struct weir__fleet_want want;
    } of[NODES_MAX];
};

static inline int64_t parts_sum(const struct parts *p, weir_time now)
{
    int64_t sum = 0;

    for (int n = 0; n < NODES_MAX; n++)
        sum += weir__member_part(&p->of[n].member, now);
    return sum;
}

/* The node beats and hears at once; `asked` is what its fleet says.  False: the parts in force are
 * more than 1. */
static inline bool parts_beat(struct parts *p, int node, int64_t asked, weir_time now)
{
    struct weir__member *m = &p->of[node].member;
    char id[24];

    m->beat = WEIR__MEMBER_BEAT;
    m->weight = 1;
    m->want = weir__fleet_want(&p->of[node].want, asked, now);
    m->due = now;
    struct weir__member_send send =
        weir__member_step(m, &(struct weir__member_event){ .kind = WEIR__MEMBER_TIME }, now);
    snprintf(id, sizeof(id), "n%d", node);
    struct model_beat beat = { .id = id,
                               .seq = send.seq,
                               .weight = 1,
                               .want = m->want,
                               .part = send.part,
                               .beat = m->beat / WEIR_MICROSECOND };
    struct weir__member_event event = { .kind = WEIR__MEMBER_ANSWER,
                                        .answer = model_beat(&p->redis, &beat, 1,
                                                             now / WEIR_MICROSECOND) };
    weir__member_step(m, &event, now);
    return parts_sum(p, now) <= WEIR__PART_ONE;
}

#endif
