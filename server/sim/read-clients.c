/* read-clients.c -- the groups of clients of a scenario.
 *
 *     clients:
 *       - name: readers
 *         rate: 10x                          times the backend's capacity at the beginning; or
 *                                            2000/s; or points:
 *         rate: [1x, { at: 20s, rate: 10x }, { at: 40s, rate: 1x, over: 10s }]
 *         burst: { every: 10s, for: 1s, rate: 10x }
 *         arrival: even                      poisson unless written
 *         loop: { clients: 100, think: 1s }  in place of a rate: each waits for its answer
 *         users: 1000
 *         priority: 3
 *         class: gold
 *         timeout: 1s
 *         retry: { times: 3, after: 100ms, factor: 2x, jitter: true, on: [refused, timeout, error]
 *         }
 */
#include "server/sim/read-scenario.h"

#include <stdlib.h>
#include <string.h>

#define RATE_MAX ((int64_t)1000000 * 1000) /* per 1000 s */

/* ---------------------------------------------------------------------- rates ---- */

/* "2.5x" of the capacity, or "300/s", or "0". */
static bool parse_rate(const char *text, int64_t capacity, int64_t *out)
{
    struct weir_limit limit;
    int64_t times;

    if (strcmp(text, "0") == 0) {
        *out = 0;
        return true;
    }
    if (weir__sim_number_parse(text, 'x', &times)) {
        double rate = (double)times / 1e6 * (double)capacity;
        *out = rate <= (double)RATE_MAX ? (int64_t)rate : RATE_MAX + 1;
        return *out <= RATE_MAX;
    }
    if (weir_limit_parse(&limit, text, NULL) != WEIR_OK || limit.period <= 0)
        return false;
    double rate = (double)limit.count * 1e12 / (double)limit.period;
    *out = rate <= (double)RATE_MAX ? (int64_t)rate : 0;
    return rate <= (double)RATE_MAX;
}

static void take_rate(struct weir__reader *r, const struct weir__node *node,
                      const struct weir__sim_plan *plan, int64_t *out)
{
    const char *text = weir__read_text(r, node, "rate", "such as 2x or 300/s");
    int64_t rate = 0;

    if (text == NULL)
        return;
    if (!parse_rate(text, weir__sim_plan_capacity(&plan->backend), &rate)) {
        weir__say(r, node,
                  "a rate is times the backend's capacity, such as 2x, or absolute, such as 300/s, "
                  "up to 1000000/s; found %s",
                  weir__quote(text, node->n).text);
        return;
    }
    *out = rate;
}

static void read_point(struct weir__reader *r, const struct weir__node *node,
                       const struct weir__sim_plan *plan, struct weir__sim_group_plan *g)
{
    struct weir__member m[] = { { .name = "rate" }, { .name = "at" }, { .name = "over" } };
    struct weir__sim_rate_point p = { 0 };
    weir_time last = g->n_points ? g->points[g->n_points - 1].at : 0;

    if (node->kind == WEIR__NODE_TEXT)
        m[0].value = (struct weir__node *)node;
    else if (!weir__read_members(r, node, "a point of a rate", m, 3))
        return;
    if (m[0].value == NULL) {
        weir__say(r, node, "a point needs a rate, such as { at: 20s, rate: 2x }");
        return;
    }
    size_t before = weir__problems(r);
    take_rate(r, m[0].value, plan, &p.rate);
    weir__sim_take_time(r, &m[1], 0, plan->length, &p.at);
    weir__sim_take_time(r, &m[2], 0, plan->length, &p.over);
    if (weir__problems(r) > before)
        return;
    if (p.at < last)
        weir__say(r, node, "the points of a rate must be in the order of time");
    else
        g->points[g->n_points++] = p;
}

static void read_rate(struct weir__reader *r, const struct weir__node *node,
                      const struct weir__sim_plan *plan, struct weir__sim_group_plan *g)
{
    if (node->kind != WEIR__NODE_LIST) {
        read_point(r, node, plan, g);
        return;
    }
    if (node->n == 0 || node->n > WEIR__SIM_POINTS)
        weir__say(r, node, "a rate has 1 to %d points", WEIR__SIM_POINTS);
    for (size_t i = 0; i < node->n && i < WEIR__SIM_POINTS; i++)
        read_point(r, node->items[i], plan, g);
}

static void read_burst(struct weir__reader *r, const struct weir__node *node,
                       const struct weir__sim_plan *plan, struct weir__sim_group_plan *g)
{
    struct weir__member m[] = { { .name = "rate" }, { .name = "every" }, { .name = "for" } };
    weir_time every = 10 * WEIR_SECOND, length = WEIR_SECOND;

    if (!weir__read_members(r, node, "a burst", m, 3))
        return;
    if (m[0].value == NULL) {
        weir__say(r, node, "a burst needs a rate, such as { every: 10s, for: 1s, rate: 10x }");
        return;
    }
    take_rate(r, m[0].value, plan, &g->burst_rate);
    weir__sim_take_time(r, &m[1], WEIR_MILLISECOND, plan->length, &every);
    weir__sim_take_time(r, &m[2], WEIR_MILLISECOND, plan->length, &length);
    if (length >= every)
        weir__say(r, node, "a burst must be shorter than the time from one to the next");
    g->burst_every = every;
    g->burst_for = length;
}

/* ------------------------------------------------------------------- behaviour ---- */

static void read_loop(struct weir__reader *r, const struct weir__node *node,
                      struct weir__sim_group_plan *g)
{
    struct weir__member m[] = { { .name = "clients" }, { .name = "think" } };

    g->loop = 1;
    g->think = WEIR_SECOND;
    if (!weir__read_members(r, node, "a loop", m, 2))
        return;
    weir__sim_take_count(r, &m[0], 1, 100000, &g->loop);
    weir__sim_take_time(r, &m[1], WEIR_MILLISECOND, WEIR__SIM_LONGEST,
                        &g->think); /* less, and refused clients would spin */
}

static void read_reasons(struct weir__reader *r, const struct weir__node *node,
                         struct weir__sim_group_plan *g)
{
    static const char *const words[] = { "refused", "timeout", "error" };

    if (node->kind == WEIR__NODE_MAPPING) {
        weir__say(r, node, "on must be a list of refused, timeout and error; found a mapping");
        return;
    }
    g->retry_on = 0;
    for (size_t i = 0; i < (node->kind == WEIR__NODE_LIST ? node->n : 1); i++) {
        struct weir__member m = { .name = "on" };
        size_t which = 0;
        m.value = node->kind == WEIR__NODE_LIST ? node->items[i] : (struct weir__node *)node;
        if (weir__sim_take_word(r, &m, words, 3, &which))
            g->retry_on |= 1u << which;
    }
}

static void read_retry(struct weir__reader *r, const struct weir__node *node,
                       struct weir__sim_group_plan *g)
{
    struct weir__member m[] = { { .name = "times" },
                                { .name = "after" },
                                { .name = "factor" },
                                { .name = "jitter" },
                                { .name = "on" } };

    g->retries = 3;
    g->retry_on = WEIR__SIM_RETRY_REFUSED | WEIR__SIM_RETRY_TIMEOUT | WEIR__SIM_RETRY_ERROR;
    g->back_off = 100 * WEIR_MILLISECOND;
    if (!weir__read_members(r, node, "a retry", m, 5))
        return;
    weir__sim_take_count(r, &m[0], 0, 20, &g->retries);
    weir__sim_take_time(r, &m[1], 0, 60 * WEIR_SECOND, &g->back_off);
    weir__sim_take_number(r, &m[2], 'x', WEIR__SIM_ONE, 10 * WEIR__SIM_ONE, &g->back_off_factor);
    weir__read_flag(r, &m[3], &g->jitter);
    if (m[4].value)
        read_reasons(r, m[4].value, g);
}

static void read_priority(struct weir__reader *r, const struct weir__node *node,
                          struct weir__sim_group_plan *g)
{
    const char *text = weir__read_text(r, node, "priority", "a number from -8 to 7");
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;

    if (text == NULL)
        return;
    if (node->n == 0 || *end || !strchr("-0123456789", text[0]) || value < -8 || value > 7)
        weir__say(r, node, "priority must be a whole number from -8 to 7; found %s",
                  weir__quote(text, node->n).text);
    else
        g->priority = (int32_t)value;
}

static void read_class(struct weir__reader *r, const struct weir__node *node,
                       const struct weir__sim_plan *plan, struct weir__sim_group_plan *g)
{
    const char *names[WEIR_CLASSES] = { NULL };
    struct weir__member m = { .name = "class" };
    size_t which = 0;

    m.value = (struct weir__node *)node;
    for (size_t i = 0; i < plan->n_classes; i++)
        names[i] = plan->guard.classes[i].name;
    if (plan->n_classes == 0)
        weir__say(r, node,
                  "the guard has no classes; give it some, such as concurrency: { weights: { gold: "
                  "3, free: 1 } }");
    else if (weir__sim_take_word(r, &m, names, plan->n_classes, &which))
        g->class = (uint32_t)which;
}

/* ---------------------------------------------------------------------- whole ---- */

static void read_group_name(struct weir__reader *r, const struct weir__node *node,
                            const struct weir__sim_plan *plan, struct weir__sim_group_plan *g)
{
    const char *text = weir__read_text(r, node, "name", "text");

    if (text == NULL)
        return;
    if (node->n == 0 || node->n >= sizeof(g->name) ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") <
            node->n) {
        weir__say(r, node, "a name is 1 to %zu letters, digits and . _ -", sizeof(g->name) - 1);
        return;
    }
    for (size_t i = 0; i < plan->n_groups; i++) {
        if (strcmp(plan->groups[i].name, text) == 0)
            weir__say(r, node, "there are clients named %s already",
                      weir__quote(text, node->n).text);
    }
    memcpy(g->name, text, node->n + 1);
}

enum { NAME, RATE, BURST, ARRIVAL, LOOP, USERS, PRIORITY, CLASS, TIMEOUT, RETRY, MEMBERS };

static void read_rest(struct weir__reader *r, struct weir__member *m,
                      const struct weir__sim_plan *plan, struct weir__sim_group_plan *g)
{
    static const char *const arrivals[] = { "poisson", "even" };
    size_t even = 0;

    weir__sim_take_word(r, &m[ARRIVAL], arrivals, 2, &even);
    g->even = even;
    weir__sim_take_count(r, &m[USERS], 1, 10000000, &g->users);
    weir__sim_take_time(r, &m[TIMEOUT], WEIR_MILLISECOND, 60 * WEIR_SECOND, &g->timeout);
    if (m[NAME].value)
        read_group_name(r, m[NAME].value, plan, g);
    if (m[PRIORITY].value)
        read_priority(r, m[PRIORITY].value, g);
    if (m[CLASS].value)
        read_class(r, m[CLASS].value, plan, g);
    if (m[RETRY].value)
        read_retry(r, m[RETRY].value, g);
}

static void read_group(struct weir__reader *r, const struct weir__node *node,
                       struct weir__sim_plan *plan)
{
    struct weir__member m[MEMBERS] = {
        [NAME] = { .name = "name" },         [RATE] = { .name = "rate" },
        [BURST] = { .name = "burst" },       [ARRIVAL] = { .name = "arrival" },
        [LOOP] = { .name = "loop" },         [USERS] = { .name = "users" },
        [PRIORITY] = { .name = "priority" }, [CLASS] = { .name = "class" },
        [TIMEOUT] = { .name = "timeout" },   [RETRY] = { .name = "retry" },
    };
    struct weir__sim_group_plan *g = &plan->groups[plan->n_groups];

    *g = (struct weir__sim_group_plan){ .users = 1000, .back_off_factor = 2 * WEIR__SIM_ONE };
    snprintf(g->name, sizeof(g->name), "clients-%zu", plan->n_groups + 1);
    if (!weir__read_members(r, node, "a group of clients", m, MEMBERS))
        return;
    read_rest(r, m, plan, g);
    if (m[LOOP].value)
        read_loop(r, m[LOOP].value, g);
    if (m[RATE].value)
        read_rate(r, m[RATE].value, plan, g);
    if (m[BURST].value)
        read_burst(r, m[BURST].value, plan, g);
    if ((m[RATE].key || m[BURST].key) == (m[LOOP].key != NULL))
        weir__say(r, node,
                  "clients have either a rate, such as rate: 2x, or a loop, such as loop: { "
                  "clients: 100, think: 1s }");
    plan->n_groups++;
}

void weir__sim_read_clients(struct weir__reader *r, const struct weir__node *node,
                            struct weir__sim_plan *plan)
{
    if (node->kind != WEIR__NODE_LIST || node->n == 0) {
        weir__say(r, node,
                  "clients must be a list of groups, such as [{ rate: 2x, timeout: 1s }]; found %s",
                  weir__node_word(node));
        return;
    }
    if (node->n > WEIR__SIM_GROUPS)
        weir__say(r, node, "there are %zu groups of clients; the most is %d", node->n,
                  WEIR__SIM_GROUPS);
    for (size_t i = 0; i < node->n && i < WEIR__SIM_GROUPS; i++)
        read_group(r, node->items[i], plan);
}
