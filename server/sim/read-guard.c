/* read-guard.c -- the guard of a scenario, in the words of the rules' guards; but for its
 * controller, which the trials compare.
 *
 *     guard:
 *       target: 250ms                        the longest time, for controllers with a target
 *       percentile: 99                       ... of which percentile
 *       concurrency: { max: 1000, weights: { gold: 3, free: 1 } }
 *                                            with a queue: as the rules' guards, if the group waits
 *       shed: true                           when there is too much, the least important first, and
 *                                            each class by its weight
 *       breaker: { errors: 50%, slow: 500ms, ratio: 50%, min_calls: 20, window: 10s, open_for: 5s,
 *       probes: 3 } lease: 60s
 */
#include "server/sim/read-scenario.h"

#include <string.h>

enum { TARGET, PERCENTILE, CONCURRENCY, SHED, BREAKER, LEASE, MEMBERS };

/* Only a queue that is written: the clients of a scenario do not ask to wait. */
static void take_queue(struct weir__guard_draft *draft, struct weir__sim_plan *plan)
{
    if (draft->queue == 0 && draft->wait == 0)
        return;
    weir__fill_queue(draft);
    plan->queue = (struct weir_queue_options){ .max = draft->queue, .order = draft->order };
    for (size_t i = 0; i < draft->n_classes; i++)
        plan->queue.weights[i] = draft->options.classes[i].weight;
    for (int i = 0; i < 2 * WEIR__SIM_PRIORITIES * WEIR_CLASSES; i++) {
        int c = i % WEIR_CLASSES, p = i / WEIR_CLASSES % WEIR__SIM_PRIORITIES,
            fits = i / WEIR_CLASSES / WEIR__SIM_PRIORITIES;
        plan->waits[fits][p][c] =
            weir__draft_wait(draft, (int8_t)(p + WEIR_PRIORITY_MIN), (uint8_t)c, fits != 0);
    }
}

/* Permits by key are each user's: clients have no other attribute. */
static void check_key(struct weir__reader *r, const struct weir__node *concurrency,
                      const struct weir__guard_draft *draft)
{
    const char *key = draft->by_key.key;

    if (key && strcmp(key, "{user}") != 0)
        weir__say(r, concurrency,
                  "in a scenario the key of concurrency must be \"{user}\"; found %s",
                  weir__quote(key, strlen(key)).text);
}

void weir__sim_read_guard(struct weir__reader *r, const struct weir__node *node,
                          struct weir__sim_plan *plan)
{
    struct weir__guard_draft draft = { 0 };
    int64_t percentile;
    struct weir__member m[MEMBERS] = {
        [TARGET] = { .name = "target" },           [PERCENTILE] = { .name = "percentile" },
        [CONCURRENCY] = { .name = "concurrency" }, [SHED] = { .name = "shed" },
        [BREAKER] = { .name = "breaker" },         [LEASE] = { .name = "lease" },
    };

    if (!weir__read_members(r, node, "a guard", m, MEMBERS))
        return;
    weir__sim_take_time(r, &m[TARGET], WEIR_MICROSECOND, 60 * WEIR_SECOND,
                        &draft.options.adaptive.target);
    if (m[PERCENTILE].value &&
        weir__read_count(r, m[PERCENTILE].value, "percentile", 1, 99, &percentile))
        draft.options.adaptive.percentile = (int32_t)percentile;
    weir__sim_take_time(r, &m[LEASE], 10 * WEIR_MILLISECOND, 3600 * WEIR_SECOND,
                        &draft.options.lease);
    weir__read_flag(r, &m[SHED], &draft.options.shed);
    if (m[CONCURRENCY].value) {
        weir__read_concurrency(r, m[CONCURRENCY].value, &draft);
        check_key(r, m[CONCURRENCY].value, &draft);
    }
    if (m[BREAKER].value)
        weir__read_breaker(r, m[BREAKER].value, &draft);
    plan->guard = draft.options;
    plan->n_classes = draft.n_classes;
    take_queue(&draft, plan);
}
