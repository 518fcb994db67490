/* guard.c -- the guard of a trial: the real one with the controller that is tried, or none. */
#include "server/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "guard/guard.h"

/* "fixed" and "fixed:12": the number of permits; 0: it is not of that kind; -1: it is wrong. */
static int64_t fixed_of(const char *controller, const struct weir__sim_plan *plan)
{
    if (strcmp(controller, "fixed") == 0)
        return plan ? 2 * plan->backend.workers : 1;
    if (strncmp(controller, "fixed:", 6) != 0)
        return 0;
    char *end;
    long n = strtol(controller + 6, &end, 10);
    return controller[6] >= '0' && controller[6] <= '9' && *end == '\0' && n >= 1 && n <= 16384
               ? n
               : -1;
}

bool weir__sim_knows(const char *controller, struct weir_error *error)
{
    const char *const *names = weir_controllers();
    int64_t fixed = fixed_of(controller, NULL);
    char all[160] = "";

    if (strcmp(controller, "none") == 0 || fixed > 0)
        return true;
    for (size_t i = 0; names[i]; i++) {
        if (strcmp(controller, names[i]) == 0)
            return true;
        strncat(all, ", ", sizeof(all) - strlen(all) - 1);
        strncat(all, names[i], sizeof(all) - strlen(all) - 1);
    }
    if (fixed < 0)
        weir__fail(error, WEIR_INVALID,
                   "fixed:N is a number of permits from 1 to 16384, not '%.20s'", controller + 6);
    else
        weir__fail(error, WEIR_INVALID,
                   "there is no controller '%.32s'; known are: none, fixed, fixed:N%s", controller,
                   all);
    return false;
}

weir_time weir__sim_wait_of(const struct weir__sim_trial *t, const struct weir_ask *ask)
{
    int priority = ask->priority - WEIR_PRIORITY_MIN;
    bool fits = weir__guard_fits(t->guard, ask, weir_queue_length(t->queue), t->plan->queue.max);

    return t->plan->waits[fits][priority][ask->user_class];
}

int weir__sim_guard_create(struct weir__sim_trial *t, const char *controller,
                           struct weir_error *error)
{
    struct weir_guard_options options = t->plan->guard;
    int64_t fixed = fixed_of(controller, t->plan);

    if (!weir__sim_knows(controller, error))
        return WEIR_INVALID;
    if (strcmp(controller, "none") == 0)
        return WEIR_OK;
    if (fixed) {
        options.max = fixed;
        options.adaptive = (struct weir_adaptive_options){ 0 };
    } else {
        options.adaptive.controller = controller;
    }
    int code = weir_table_create(&t->table, &(struct weir_table_options){ .keys = 64, .guards = 1 },
                                 error);
    if (code == WEIR_OK)
        code = weir_guard_create(&t->guard, t->table, "backend", &options, error);
    if (code == WEIR_OK && t->plan->queue.max > 0)
        code = weir_queue_create(&t->queue, &t->plan->queue, error);
    if (code == WEIR_OK)
        t->guard->plan->salt = t->guard->plan->breaker.seed =
            t->out->seed; /* a real one is from the kernel, so that nobody knows it */
    return code;
}
