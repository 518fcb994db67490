/* read-bounds.c -- what a guard bounds work by: concurrency, adaptive, breaker, system.
 *
 * What is left out is as include/weir.h says of a 0 in the options.  Each part is tried: a plan is
 * made of it and thrown away, so that what no plan can do is found here, where its place is known.
 */
#include "rulefile/read.h"

#include <string.h>

#include "guard/guard.h"
#include "queue/queue.h"

#define WAIT_DEFAULT WEIR_SECOND

/* ----------------------------------------------------------- concurrency ---- */

enum { MAX, QUEUE, WAIT, ORDER, WEIGHTS, CONCURRENCY_MEMBERS };

static void read_weights(struct weir__reader *r, const struct weir__node *node,
                         struct weir__guard_draft *g)
{
    if (node->kind != WEIR__NODE_MAPPING || node->n == 0 || node->n > WEIR_CLASSES) {
        weir__say(r, node,
                  "weights must be a mapping from 1 to %d classes of users to their weights, such "
                  "as { gold: 3, free: 1 }",
                  WEIR_CLASSES);
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        struct weir_class *c = &g->options.classes[g->n_classes];
        int64_t weight = 1;
        if (!weir__read_word_name(r, node->items[2 * i], "class", WEIR_CLASS_NAME - 1) ||
            !weir__read_count(r, node->items[2 * i + 1], "a weight", 1, WEIR__WEIGHT_MAX, &weight))
            continue;
        memcpy(c->name, node->items[2 * i]->text, node->items[2 * i]->n);
        c->weight = (int32_t)weight;
        g->n_classes++;
    }
}

/* Who may wait, for how long, and who goes first. */
static void read_queue(struct weir__reader *r, const struct weir__member *m,
                       struct weir__guard_draft *g)
{
    static const char *const orders[] = { "fifo", "priority", "weighted" };
    int order = weir__read_word(r, &m[ORDER], "fifo, priority or weighted", orders, 3);

    weir__read_whole(r, &m[QUEUE], WEIR__QUEUE_MAX, &g->queue);
    g->wait = m[QUEUE].key ? WAIT_DEFAULT : 0;
    weir__read_span(r, &m[WAIT], &g->wait);
    g->order = order > 0 ? (enum weir_order)order : WEIR_FIFO;
    for (int i = WAIT; i <= ORDER; i++) {
        if (m[i].value && m[QUEUE].key == NULL)
            weir__say(r, m[i].key,
                      "'%s' needs a queue; write how many may wait, such as queue: 128", m[i].name);
    }
    if (g->order == WEIR_WEIGHTED && m[WEIGHTS].key == NULL)
        weir__say(
            r, m[ORDER].value,
            "order: weighted needs weights; write them, such as weights: { gold: 3, free: 1 }");
}

void weir__read_concurrency(struct weir__reader *r, const struct weir__node *node,
                            struct weir__guard_draft *g)
{
    struct weir__member m[CONCURRENCY_MEMBERS] = { { .name = "max" },
                                                   { .name = "queue" },
                                                   { .name = "wait" },
                                                   { .name = "order" },
                                                   { .name = "weights" } };

    if (node->kind == WEIR__NODE_TEXT) {
        weir__read_count(r, node, "concurrency", 1, WEIR__PERMITS_MAX, &g->options.max);
        return;
    }
    if (!weir__read_members(r, node, "concurrency", m, CONCURRENCY_MEMBERS))
        return;
    if (node->n == 0)
        weir__say(r, node,
                  "the concurrency says nothing; write how much may be at work, such as max: 64");
    weir__read_whole(r, &m[MAX], WEIR__PERMITS_MAX, &g->options.max);
    if (m[WEIGHTS].value)
        read_weights(r, m[WEIGHTS].value, g);
    read_queue(r, m, g);
}

/* -------------------------------------------------------------- adaptive ---- */

enum {
    CONTROLLER,
    P50,
    P90,
    P95,
    P99,
    ADAPTIVE_WINDOW,
    INITIAL,
    ADAPTIVE_MIN,
    ADAPTIVE_MAX,
    TARGET,
    RATE,
    ADAPTIVE_MEMBERS
};

static const char percentile_name[] = "percentile";

/* The library's own copy of the name, or NULL. */
static const char *read_controller(struct weir__reader *r, const struct weir__member *m)
{
    const char *const *names = weir_controllers();
    size_t n = 0;

    while (names[n])
        n++;
    int i = weir__read_word(r, m, "the name of one, such as weir", names, n);
    return i < 0 ? NULL : names[i];
}

static const char *controller_named(const char *name)
{
    const struct weir__controller *row = weir__controller_find(name);

    return row ? row->name : NULL;
}

/* p99: 250ms, and the like; only one of them, and only the percentile controller has one. */
static void read_percentile(struct weir__reader *r, const struct weir__member *m,
                            struct weir_adaptive_options *a)
{
    static const int32_t percents[] = { 50, 90, 95, 99 };

    for (int i = P50; i <= P99; i++) {
        if (m[i].key == NULL)
            continue;
        if (a->percentile != 0)
            weir__say(r, m[i].key,
                      "only one of p50, p90, p95 and p99 can be kept to; leave this one out");
        else if (m[CONTROLLER].value && a->controller &&
                 strcmp(a->controller, percentile_name) != 0)
            weir__say(r, m[i].key,
                      "'%s' is for the controller percentile; leave it out, or the controller",
                      m[i].name);
        a->percentile = percents[i - P50];
        weir__read_span(r, &m[i], &a->target);
    }
}

/* What only some controllers have. */
static void check_controller(struct weir__reader *r, const struct weir__node *node,
                             const struct weir__member *m, const struct weir_adaptive_options *a)
{
    bool percentile = a->controller && strcmp(a->controller, percentile_name) == 0;

    if (percentile && a->percentile == 0)
        weir__say(
            r, node,
            "the controller percentile needs a time to keep to; write one, such as p99: 250ms");
    if (percentile && m[TARGET].key)
        weir__say(r, m[TARGET].key,
                  "the controller percentile has no target; write it as p99: or p90:");
    if (a->controller && !percentile && m[RATE].key)
        weir__say(r, m[RATE].key, "'rate' is for the controller percentile; leave it out");
}

static void read_bounds(struct weir__reader *r, const struct weir__member *m,
                        struct weir_adaptive_options *a)
{
    int64_t most = a->rate ? WEIR__RATE_MAX : WEIR__PERMITS_MAX;

    weir__read_whole(r, &m[INITIAL], most, &a->initial);
    weir__read_whole(r, &m[ADAPTIVE_MIN], most, &a->min);
    weir__read_whole(r, &m[ADAPTIVE_MAX], most, &a->max);
}

static void read_adaptive_members(struct weir__reader *r, const struct weir__node *node,
                                  struct weir__member *m, struct weir_adaptive_options *a)
{
    if (m[CONTROLLER].value)
        a->controller = read_controller(r, &m[CONTROLLER]);
    read_percentile(r, m, a);
    if (m[CONTROLLER].value == NULL)
        a->controller = controller_named(a->percentile ? percentile_name : WEIR_ADAPTIVE);
    weir__read_span(r, &m[ADAPTIVE_WINDOW], &a->window);
    weir__read_span(r, &m[TARGET], &a->target);
    weir__read_flag(r, &m[RATE], &a->rate);
    read_bounds(r, m, a);
    check_controller(r, node, m, a);
}

void weir__read_adaptive(struct weir__reader *r, const struct weir__node *node,
                         struct weir__guard_draft *g)
{
    struct weir__member m[ADAPTIVE_MEMBERS] = { [CONTROLLER] = { .name = "controller" },
                                                [P50] = { .name = "p50" },
                                                [P90] = { .name = "p90" },
                                                [P95] = { .name = "p95" },
                                                [P99] = { .name = "p99" },
                                                [ADAPTIVE_WINDOW] = { .name = "window" },
                                                [INITIAL] = { .name = "initial" },
                                                [ADAPTIVE_MIN] = { .name = "min" },
                                                [ADAPTIVE_MAX] = { .name = "max" },
                                                [TARGET] = { .name = "target" },
                                                [RATE] = { .name = "rate" } };
    struct weir_adaptive_options *a = &g->options.adaptive;
    struct weir__controller_plan plan;
    struct weir_error error = { 0 };
    size_t before = weir__problems(r);

    if (node->kind == WEIR__NODE_TEXT) {
        m[CONTROLLER].value = (struct weir__node *)node;
        a->controller = read_controller(r, &m[CONTROLLER]);
        check_controller(r, node, m, a);
    } else if (weir__read_members(r, node, "adaptive", m, ADAPTIVE_MEMBERS)) {
        read_adaptive_members(r, node, m, a);
    }
    if (weir__problems(r) == before &&
        weir__controller_plan_make(&plan, a, g->options.max ? g->options.max : WEIR__PERMITS,
                                   &error) != WEIR_OK)
        weir__say(r, node, "adaptive: %s", error.text);
}

/* --------------------------------------------------------------- breaker ---- */

enum {
    ERRORS,
    SLOW,
    RATIO,
    WINDOW,
    CALLS,
    MIN_CALLS,
    OPEN_FOR,
    OPEN_MAX,
    JITTER,
    PROBES,
    AT,
    BREAKER_MEMBERS
};

/* 50% is a share of the calls, 10 a number of them. */
static void read_errors(struct weir__reader *r, const struct weir__member *m,
                        struct weir_breaker_options *b)
{
    if (m->value && m->value->kind == WEIR__NODE_TEXT && strchr(m->value->text, '%'))
        weir__read_percent(r, m, 1, &b->error_percent);
    else
        weir__read_small(r, m, WEIR__BREAKER_NUMBER, &b->errors);
}

static void read_open(struct weir__reader *r, const struct weir__member *m,
                      struct weir_breaker_options *b)
{
    static const char *const words[] = { "reached", "above" };
    int32_t jitter = 0;

    weir__read_span(r, &m[OPEN_FOR], &b->open_for);
    if (weir__read_span(r, &m[OPEN_MAX], &b->open_max) &&
        b->open_max < (b->open_for ? b->open_for : WEIR__BREAKER_OPEN_FOR))
        weir__say(r, m[OPEN_MAX].value, "open_max must be at least as long as open_for");
    if (weir__read_percent(r, &m[JITTER], 0, &jitter))
        b->jitter_percent = jitter ? jitter : -1;
    weir__read_small(r, &m[PROBES], WEIR__BREAKER_PROBES, &b->probes);
    b->above = weir__read_word(r, &m[AT], "reached or above", words, 2) == 1;
}

static void check_breaker(struct weir__reader *r, const struct weir__node *node,
                          const struct weir__member *m, const struct weir_breaker_options *b)
{
    if (m[ERRORS].key == NULL && m[SLOW].key == NULL)
        weir__say(
            r, node,
            "the breaker never opens; write what opens it, such as errors: 50%% or slow: 500ms");
    if (m[RATIO].key && m[SLOW].key == NULL)
        weir__say(r, m[RATIO].key,
                  "'ratio' is the share of slow calls; write what is slow, such as slow: 500ms");
    if (m[WINDOW].key && m[CALLS].key)
        weir__say(r, m[CALLS].key,
                  "a window is a time or a number of calls; leave out window or calls");
    if (b->calls && (b->min_calls > b->calls || b->errors > b->calls))
        weir__say(r, m[CALLS].value,
                  "there are never so many calls in the window; calls must be at least %s",
                  b->min_calls > b->calls ? "min_calls" : "errors");
}

void weir__read_breaker(struct weir__reader *r, const struct weir__node *node,
                        struct weir__guard_draft *g)
{
    struct weir__member m[BREAKER_MEMBERS] = { { .name = "errors" },   { .name = "slow" },
                                               { .name = "ratio" },    { .name = "window" },
                                               { .name = "calls" },    { .name = "min_calls" },
                                               { .name = "open_for" }, { .name = "open_max" },
                                               { .name = "jitter" },   { .name = "probes" },
                                               { .name = "at" } };
    struct weir_breaker_options *b = &g->options.breaker;
    struct weir__breaker_plan plan;
    struct weir_error error = { 0 };
    size_t before = weir__problems(r);

    if (!weir__read_members(r, node, "breaker", m, BREAKER_MEMBERS))
        return;
    read_errors(r, &m[ERRORS], b);
    weir__read_span(r, &m[SLOW], &b->slow);
    weir__read_percent(r, &m[RATIO], 1, &b->slow_percent);
    weir__read_span(r, &m[WINDOW], &b->window);
    weir__read_small(r, &m[CALLS], WEIR__BREAKER_CALLS_MAX, &b->calls);
    weir__read_small(r, &m[MIN_CALLS], WEIR__BREAKER_NUMBER, &b->min_calls);
    read_open(r, m, b);
    check_breaker(r, node, m, b);
    if (weir__problems(r) == before && weir__breaker_plan_make(&plan, b, 0, &error) != WEIR_OK)
        weir__say(r, node, "breaker: %s", error.text);
}

/* ---------------------------------------------------------------- system ---- */

enum { CPU, PRESSURE, MEMORY, RUN_QUEUE, MEAN_TIME, SYSTEM_MEMBERS };

void weir__read_system(struct weir__reader *r, const struct weir__node *node,
                       struct weir_system_options *s)
{
    struct weir__member m[SYSTEM_MEMBERS] = { { .name = "cpu" },
                                              { .name = "pressure" },
                                              { .name = "memory" },
                                              { .name = "run_queue" },
                                              { .name = "mean_time" } };

    if (!weir__read_members(r, node, "system", m, SYSTEM_MEMBERS))
        return;
    if (node->n == 0)
        weir__say(r, node,
                  "system says nothing; write what the host must not exceed, such as cpu: 85%%");
    weir__read_percent(r, &m[CPU], 1, &s->cpu_percent);
    weir__read_percent(r, &m[PRESSURE], 1, &s->pressure_percent);
    weir__read_percent(r, &m[MEMORY], 1, &s->memory_percent);
    weir__read_small(r, &m[RUN_QUEUE], 10000, &s->run_queue);
    weir__read_span(r, &m[MEAN_TIME], &s->mean_time);
}
