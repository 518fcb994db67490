/* guests.h -- shared by the tests of requests that can wait for a guard's permit. */
#ifndef WEIR_TESTS_UNIT_GUESTS_H
#define WEIR_TESTS_UNIT_GUESTS_H

#include "unit/visits.h"

struct guest {
    struct weir_visit visit;
    struct request request;
    bool turned;
};

static inline void on_turn(struct weir_visit *visit)
{
    ((struct guest *)visit->context)->turned = true;
}

static inline bool come(struct weir *weir, struct guest *g, const char *request, weir_time now)
{
    *g = (struct guest){ .request = request_of(request) };
    g->visit = (struct weir_visit){ .attrs = g->request.attrs,
                                    .n = g->request.n,
                                    .ask = { .cost = 1, .now = now },
                                    .queue_max = WEIR_FOREVER,
                                    .turn = on_turn,
                                    .context = g };
    return weir_check_later(weir, &g->visit);
}

static inline void go(struct weir *weir, struct guest *g, weir_time now)
{
    weir_check_exit(weir, &g->visit.entry, WEIR_SUCCEEDED, now);
    weir_check_poll(weir, now);
}

#endif
