/* read-backend.c -- the backend of a scenario.
 *
 *     backend:
 *       workers: 4
 *       queue: 1000                          no bound unless written
 *       work: 20ms                           exponential; or a mapping:
 *       work: { shape: lognormal, mean: 20ms, floor: 2ms, spread: 0.8 }
 *       work: { shape: bimodal, mean: 20ms, slow: 200ms, slow_share: 5% }
 *       contention: 1%                       each request beyond the workers slows all down by
 *                                            this ...
 *       slowest: 8x                          ... at most by this factor
 *       cancels: true                        the queue forgets whose client has given up
 *       cold: { factor: 5x, requests: 2000 }
 *       changes:
 *         - { from: 20s, to: 40s, slower: 5x }
 *         - { from: 20s, to: 80s, drift: 3x }
 *         - { from: 20s, to: 40s, errors: 50%, after: 1ms }
 *         - { from: 20s, to: 25s, silent: true }
 *         - { from: 30s, workers: 16 }
 */
#include "server/sim/read-scenario.h"

#define FACTOR_MAX  (100 * WEIR__SIM_ONE)
#define WORKERS_MAX 4096

/* ----------------------------------------------------------------------- work ---- */

enum { SHAPE, MEAN, FLOOR, SPREAD, SLOW, SLOW_SHARE, WORK_MEMBERS };

static void check_work(struct weir__reader *r, const struct weir__node *node,
                       const struct weir__sim_work *w)
{
    if (w->floor >= w->mean)
        weir__say(r, node, "floor must be less than the mean");
    else if (w->shape == WEIR__SIM_WORK_BIMODAL && (w->slow == 0 || w->slow_share == 0))
        weir__say(r, node,
                  "bimodal work needs slow, the time that the slow ones take, and slow_share, such "
                  "as 5%%");
    else if (w->shape == WEIR__SIM_WORK_BIMODAL &&
             (double)w->slow * (double)w->slow_share >= (double)w->mean * 1e6)
        weir__say(r, node,
                  "the slow ones alone take more than the mean; nothing is left for the others");
}

static void read_work(struct weir__reader *r, const struct weir__node *node,
                      struct weir__sim_work *w)
{
    static const char *const shapes[] = { "exponential", "constant", "lognormal", "bimodal" };
    struct weir__member m[WORK_MEMBERS] = {
        [SHAPE] = { .name = "shape" }, [MEAN] = { .name = "mean" },
        [FLOOR] = { .name = "floor" }, [SPREAD] = { .name = "spread" },
        [SLOW] = { .name = "slow" },   [SLOW_SHARE] = { .name = "slow_share" },
    };
    size_t shape = 0, before = weir__problems(r);

    if (node->kind == WEIR__NODE_TEXT) {
        struct weir__member mean = { .name = "work", .value = (struct weir__node *)node };
        weir__sim_take_time(r, &mean, WEIR_MICROSECOND, WEIR_SECOND * 10, &w->mean);
        return;
    }
    if (!weir__read_members(r, node, "work", m, WORK_MEMBERS))
        return;
    weir__sim_take_word(r, &m[SHAPE], shapes, 4, &shape);
    weir__sim_take_time(r, &m[MEAN], WEIR_MICROSECOND, WEIR_SECOND * 10, &w->mean);
    weir__sim_take_time(r, &m[FLOOR], 0, WEIR_SECOND * 10, &w->floor);
    weir__sim_take_number(r, &m[SPREAD], 0, 10000, 2 * WEIR__SIM_ONE, &w->spread);
    weir__sim_take_time(r, &m[SLOW], 0, WEIR_SECOND * 100, &w->slow);
    weir__sim_take_number(r, &m[SLOW_SHARE], '%', 1, WEIR__SIM_ONE - 1, &w->slow_share);
    w->shape = (enum weir__sim_work_shape)shape;
    if (weir__problems(r) == before)
        check_work(r, node, w);
}

/* -------------------------------------------------------------------- changes ---- */

enum { FROM, TO, SLOWER, DRIFT, ERRORS, AFTER, SILENT, WORKERS, CHANGE_MEMBERS };

/* Which of the kinds it is: exactly one. */
static bool read_kind(struct weir__reader *r, const struct weir__node *node,
                      const struct weir__member *m, struct weir__sim_change *c)
{
    static const struct {
        int member;
        enum weir__sim_change_kind kind;
    } kinds[] = { { SLOWER, WEIR__SIM_CHANGE_SLOWER },
                  { DRIFT, WEIR__SIM_CHANGE_DRIFT },
                  { ERRORS, WEIR__SIM_CHANGE_ERRORS },
                  { SILENT, WEIR__SIM_CHANGE_SILENT },
                  { WORKERS, WEIR__SIM_CHANGE_WORKERS } };
    int n = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (m[kinds[i].member].key) {
            c->kind = kinds[i].kind;
            n++;
        }
    }
    if (n != 1)
        weir__say(r, node,
                  "a change is one of slower, drift, errors, silent and workers; this is %s",
                  n ? "several" : "none of them");
    return n == 1;
}

static void read_change(struct weir__reader *r, const struct weir__node *node,
                        struct weir__sim_plan *plan)
{
    struct weir__member m[CHANGE_MEMBERS] = {
        [FROM] = { .name = "from" },     [TO] = { .name = "to" },
        [SLOWER] = { .name = "slower" }, [DRIFT] = { .name = "drift" },
        [ERRORS] = { .name = "errors" }, [AFTER] = { .name = "after" },
        [SILENT] = { .name = "silent" }, [WORKERS] = { .name = "workers" },
    };
    struct weir__sim_change c = { .to = plan->length };
    size_t before = weir__problems(r);
    bool silent = true; /* unless it is written that it is not */

    if (!weir__read_members(r, node, "a change", m, CHANGE_MEMBERS) || !read_kind(r, node, m, &c))
        return;
    weir__sim_take_time(r, &m[FROM], 0, plan->length, &c.from);
    weir__sim_take_time(r, &m[TO], 1, plan->length, &c.to);
    weir__sim_take_number(r, &m[SLOWER], 'x', WEIR__SIM_ONE / 100, FACTOR_MAX, &c.factor);
    weir__sim_take_number(r, &m[DRIFT], 'x', WEIR__SIM_ONE / 100, FACTOR_MAX, &c.factor);
    weir__sim_take_number(r, &m[ERRORS], '%', 1, WEIR__SIM_ONE, &c.factor);
    weir__sim_take_time(r, &m[AFTER], 0, 10 * WEIR_SECOND, &c.after);
    weir__sim_take_count(r, &m[WORKERS], 1, WORKERS_MAX, &c.workers);
    weir__read_flag(r, &m[SILENT], &silent);
    if (weir__problems(r) > before)
        return;
    if (c.to <= c.from)
        weir__say(r, node, "a change must end after it begins");
    else if (silent)
        plan->backend.changes[plan->backend.n_changes++] = c;
}

static void read_changes(struct weir__reader *r, const struct weir__node *node,
                         struct weir__sim_plan *plan)
{
    if (node->kind != WEIR__NODE_LIST) {
        weir__say(r, node,
                  "changes must be a list, such as [{ from: 20s, to: 40s, slower: 5x }]; found %s",
                  weir__node_word(node));
        return;
    }
    if (node->n > WEIR__SIM_CHANGES)
        weir__say(r, node, "there are %zu changes; the most is %d", node->n, WEIR__SIM_CHANGES);
    for (size_t i = 0; i < node->n && i < WEIR__SIM_CHANGES; i++)
        read_change(r, node->items[i], plan);
}

/* ---------------------------------------------------------------------- whole ---- */

static void read_cold(struct weir__reader *r, const struct weir__node *node,
                      struct weir__sim_backend_plan *b)
{
    struct weir__member m[] = { { .name = "factor" }, { .name = "requests" } };

    if (!weir__read_members(r, node, "cold", m, 2))
        return;
    b->cold = 5 * WEIR__SIM_ONE;
    b->warm_after = 1000;
    weir__sim_take_number(r, &m[0], 'x', WEIR__SIM_ONE, FACTOR_MAX, &b->cold);
    weir__sim_take_count(r, &m[1], 1, 1000000, &b->warm_after);
}

enum {
    B_WORKERS,
    B_QUEUE,
    B_WORK,
    B_CONTENTION,
    B_SLOWEST,
    B_CANCELS,
    B_COLD,
    B_CHANGES,
    B_MEMBERS
};

void weir__sim_read_backend(struct weir__reader *r, const struct weir__node *node,
                            struct weir__sim_plan *plan)
{
    struct weir__sim_backend_plan *b = &plan->backend;
    struct weir__member m[B_MEMBERS] = {
        [B_WORKERS] = { .name = "workers" }, [B_QUEUE] = { .name = "queue" },
        [B_WORK] = { .name = "work" },       [B_CONTENTION] = { .name = "contention" },
        [B_SLOWEST] = { .name = "slowest" }, [B_CANCELS] = { .name = "cancels" },
        [B_COLD] = { .name = "cold" },       [B_CHANGES] = { .name = "changes" },
    };

    if (!weir__read_members(r, node, "a backend", m, B_MEMBERS))
        return;
    weir__sim_take_count(r, &m[B_WORKERS], 1, WORKERS_MAX, &b->workers);
    weir__sim_take_count(r, &m[B_QUEUE], 0, 1000000, &b->queue);
    weir__sim_take_number(r, &m[B_CONTENTION], '%', 0, WEIR__SIM_ONE, &b->contention);
    weir__sim_take_number(r, &m[B_SLOWEST], 'x', WEIR__SIM_ONE, FACTOR_MAX, &b->slowest);
    weir__read_flag(r, &m[B_CANCELS], &b->cancels);
    if (m[B_WORK].value)
        read_work(r, m[B_WORK].value, &b->work);
    if (m[B_COLD].value)
        read_cold(r, m[B_COLD].value, b);
    if (m[B_CHANGES].value)
        read_changes(r, m[B_CHANGES].value, plan);
}
