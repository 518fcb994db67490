/* read-guard-bounds.c -- how a guard bounds work: concurrency, adaptive, breaker, system.
 *
 * Single options are rows (guard/options.c); here they are checked together.  Each part is tried by
 * making a plan, so that an impossible one is found here, where its place is known.
 */
#include "rulefile/read.h"

#include <stdio.h>
#include <string.h>

#include "guard/guard.h"
#include "queue/queue.h"

/* ----------------------------------------------------------- concurrency ---- */

static const char *const *order_words(void)
{
    static const char *const words[] = { "fifo", "priority", "weighted", NULL };

    return words;
}

#define DRAFT(member) WEIR__ROW(struct weir__guard_draft, member)

/* clang-format off */
static const struct weir__row queue_rows[] = {
    { "queue", DRAFT(queue), WEIR__ROW_COUNT, 1, WEIR__QUEUE_MAX, 1024,
      .text = "This many may wait at the server; nobody unless this, wait or shed is written" },
    { "wait", DRAFT(wait), WEIR__ROW_TIME, 1, 3600 * WEIR_SECOND, WEIR_SECOND,
      .text = "No enter waits longer, whatever it asks for; nobody waits unless this, queue or shed "
              "is written; { high: 200ms }: only the important" },
    { "order", DRAFT(order), WEIR__ROW_WORD, .words = order_words,
      .text = "The order of turns; weighted: classes in turn, by their weights" },
};
/* clang-format on */

const struct weir__rows weir__queue_rows = { "queue", 0, queue_rows, 3 };

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

static bool find_word(const struct weir__guard_draft *g, const struct weir__node *key, int8_t *out)
{
    size_t i = 0;

    while (i < g->n_words && strcmp(g->words[i].name, key->text) != 0)
        i++;
    if (i < g->n_words)
        *out = g->words[i].priority;
    return i < g->n_words;
}

/* A priority, by word or number, or a class. */
static void read_importance(struct weir__reader *r, const struct weir__node *key,
                            struct weir__guard_draft *g, weir_time wait)
{
    const char *names[WEIR__PRIORITY_WORDS + WEIR_CLASSES];
    size_t n = 0;
    int8_t priority = 0;
    int class = weir__class_find(&g->options, key->text, key->n);

    for (; n < g->n_words; n++)
        names[n] = g->words[n].name;
    for (size_t i = 0; i < g->n_classes; i++)
        names[n++] = g->options.classes[i].name;
    if (class >= 0)
        g->class_waits[class] = wait;
    else if (weir__read_priority_number(key, &priority) || find_word(g, key, &priority))
        g->priority_waits[priority - WEIR_PRIORITY_MIN] = wait;
    else
        weir__say(r, key,
                  "unknown priority or class %s; write a number from %d to %d, or one of "
                  "`priorities` or `weights`%s%s",
                  weir__quote(key->text, key->n).text, WEIR_PRIORITY_MIN, WEIR_PRIORITY_MAX,
                  n ? ": " : "", n ? weir__hint(key->text, key->n, names, n).text : "");
    g->wait = wait > g->wait ? wait : g->wait;
}

/* Each priority's wait holds for those above it too, unless they have their own. */
static void spread_upwards(struct weir__guard_draft *g)
{
    for (size_t i = 1; i < sizeof(g->priority_waits) / sizeof(g->priority_waits[0]); i++) {
        if (g->priority_waits[i] == 0)
            g->priority_waits[i] = g->priority_waits[i - 1];
    }
}

/* `wait: { high: 200ms }`: only the important wait. */
static void read_waits(struct weir__reader *r, const struct weir__node *node,
                       struct weir__guard_draft *g)
{
    if (node->n == 0)
        weir__say(
            r, node,
            "nobody waits; name a priority or class that does, such as wait: { high: 200ms }");
    for (size_t i = 0; i < node->n; i++) {
        struct weir__guard_draft one = { .wait = 0 };
        struct weir__member m = { .name = "wait", .value = node->items[2 * i + 1] };
        if (weir__read_row(r, &m, &queue_rows[1], &one))
            read_importance(r, node->items[2 * i], g, one.wait);
    }
    spread_upwards(g);
    g->selective = true;
}

/* Defaults.  With `shed` only those wait that fit, unless it is written who does (not only how
 * long): if everybody waited, nobody would be shed. */
void weir__fill_queue(struct weir__guard_draft *g)
{
    if (g->options.shed && !g->selective)
        g->selective = g->by_fit = true;
    if (g->selective && !g->ordered)
        g->order = WEIR_PRIORITY;
    if (g->queue > 0 || g->wait > 0 || g->selective)
        weir__rows_fill(&weir__queue_rows, g);
}

static void read_queue(struct weir__reader *r, const struct weir__mapping *m,
                       struct weir__guard_draft *g)
{
    const struct weir__member *queue = weir__member_of(m, "queue"),
                              *wait = weir__member_of(m, "wait"),
                              *order = weir__member_of(m, "order");

    weir__read_row(r, queue, &queue_rows[0], g);
    if (wait->value && wait->value->kind == WEIR__NODE_MAPPING)
        read_waits(r, wait->value, g);
    else
        weir__read_row(r, wait, &queue_rows[1], g);
    g->ordered = weir__read_row(r, order, &queue_rows[2], g);
    if (order->value && queue->key == NULL && wait->key == NULL)
        weir__say(r, order->key,
                  "'order' needs a queue; write how many may wait, such as queue: "
                  "128");
    if (g->order == WEIR_WEIGHTED && weir__member_of(m, "weights")->key == NULL)
        weir__say(
            r, weir__member_of(m, "order")->value,
            "order: weighted needs weights; write them, such as weights: { gold: 3, free: 1 }");
}

/* The key of permits by key. */
static void read_key(struct weir__reader *r, const struct weir__mapping *m,
                     struct weir__guard_draft *g)
{
    const struct weir__member *key = weir__member_of(m, "key"), *max = weir__member_of(m, "max"),
                              *total = weir__member_of(m, "total");

    if (key->key == NULL) {
        if (total->key)
            weir__say(r, total->key,
                      "'total' bounds all keys together, and there is no key; write max: %s",
                      total->value && total->value->kind == WEIR__NODE_TEXT ? total->value->text
                                                                            : "64");
        return;
    }
    if (max->key == NULL)
        weir__say(r, key->key,
                  "the key says whose work is counted; write how much each may have, such as "
                  "max: 10");
    if (g->options.max_per_key > 0 && g->options.max_per_key < g->options.max)
        weir__say(r, total->value, "total must be at least max, which is each key's");
    weir__concurrency_turn(&g->options);
    if (key->value)
        weir__read_guard_key(r, key->value, "key", &g->by_key);
}

void weir__read_concurrency(struct weir__reader *r, const struct weir__node *node,
                            struct weir__guard_draft *g)
{
    const struct weir__rows *rows = &weir__guard_rows[WEIR__CONCURRENCY];
    static const char *const others[] = { "max",  "total", "key",     "queue",
                                          "wait", "order", "weights", NULL };
    struct weir__mapping m = { .others = others };

    if (node->kind == WEIR__NODE_TEXT) {
        struct weir__member whole = { .name = "concurrency", .value = (struct weir__node *)node };
        weir__read_row(r, &whole, &rows->rows[0], &g->options);
        return;
    }
    if (!weir__read_rows(r, node, rows, &m, &g->options))
        return;
    if (node->n == 0)
        weir__say(r, node,
                  "the concurrency says nothing; write how much may be at work, such as max: 64");
    if (weir__member_of(&m, "weights")->value)
        read_weights(r, weir__member_of(&m, "weights")->value, g);
    weir__note_bare(&m, g);
    read_queue(r, &m, g);
    read_key(r, &m, g);
}

/* -------------------------------------------------------------- adaptive ---- */

static const char percentile_name[] = "percentile";

static const char *controller_named(const char *name)
{
    const struct weir__controller *row = weir__controller_find(name);

    return row ? row->name : NULL;
}

/* p99: 250ms and the like; only one of them, and only for the percentile controller. */
static void read_percentile(struct weir__reader *r, const struct weir__mapping *mapping,
                            struct weir_adaptive_options *a)
{
    static const struct {
        const char *name;
        int32_t percent;
    } all[] = { { "p50", 50 }, { "p90", 90 }, { "p95", 95 }, { "p99", 99 } };
    const struct weir__rows *rows = &weir__guard_rows[WEIR__ADAPTIVE];

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const struct weir__member *m = weir__member_of(mapping, all[i].name);
        if (m->key == NULL)
            continue;
        if (a->percentile != 0)
            weir__say(r, m->key,
                      "only one of p50, p90, p95 and p99 can be kept to; leave this one out");
        else if (a->controller && strcmp(a->controller, percentile_name) != 0)
            weir__say(r, m->key,
                      "'%s' is for the controller percentile; leave it out, or the controller",
                      m->name);
        a->percentile = all[i].percent;
        for (size_t k = 0; k < rows->n; k++) {
            if (rows->rows[k].offset == offsetof(struct weir_adaptive_options, target))
                weir__read_row(r, m, &rows->rows[k], a);
        }
    }
}

/* Options that only some controllers have. */
static void check_controller(struct weir__reader *r, const struct weir__node *node,
                             const struct weir__mapping *m, const struct weir_adaptive_options *a)
{
    bool percentile = a->controller && strcmp(a->controller, percentile_name) == 0;

    if (percentile && a->percentile == 0)
        weir__say(
            r, node,
            "the controller percentile needs a time to keep to; write one, such as p99: 250ms");
    if (m && percentile && weir__member_of(m, "target")->key)
        weir__say(r, weir__member_of(m, "target")->key,
                  "the controller percentile has no target; write it as p99: or p90:");
    if (m && a->controller && !percentile && weir__member_of(m, "rate")->key)
        weir__say(r, weir__member_of(m, "rate")->key,
                  "'rate' is for the controller percentile; leave it out");
}

static void read_adaptive_mapping(struct weir__reader *r, const struct weir__node *node,
                                  struct weir__guard_draft *g)
{
    struct weir_adaptive_options *a = &g->options.adaptive;
    static const char *const others[] = { "controller", "p50", "p90", "p95", "p99", NULL };
    struct weir__mapping m = { .others = others };

    if (!weir__read_rows(r, node, &weir__guard_rows[WEIR__ADAPTIVE], &m, a))
        return;
    weir__note_bare(&m, g);
    read_percentile(r, &m, a);
    if (weir__member_of(&m, "controller")->value == NULL)
        a->controller = controller_named(a->percentile ? percentile_name : WEIR_ADAPTIVE);
    check_controller(r, node, &m, a);
}

void weir__read_adaptive(struct weir__reader *r, const struct weir__node *node,
                         struct weir__guard_draft *g)
{
    struct weir_adaptive_options *a = &g->options.adaptive;
    struct weir__controller_plan plan;
    struct weir_error error = { 0 };
    size_t before = weir__problems(r);

    if (node->kind == WEIR__NODE_TEXT) {
        struct weir__member m = { .name = "controller", .value = (struct weir__node *)node };
        weir__read_row(r, &m, &weir__guard_rows[WEIR__ADAPTIVE].rows[0], a);
        check_controller(r, node, NULL, a);
    } else {
        read_adaptive_mapping(r, node, g);
    }
    if (weir__problems(r) == before &&
        weir__controller_plan_make(&plan, a,
                                   g->options.max           ? g->options.max
                                   : g->options.max_per_key ? WEIR__PERMITS_MAX
                                                            : WEIR__PERMITS,
                                   &error) != WEIR_OK)
        weir__say(r, node, "adaptive: %s", error.text);
}

/* --------------------------------------------------------------- breaker ---- */

static void check_breaker(struct weir__reader *r, const struct weir__node *node,
                          const struct weir__mapping *m, const struct weir_breaker_options *b)
{
    const struct weir__member *slow = weir__member_of(m, "slow"),
                              *ratio = weir__member_of(m, "ratio"),
                              *calls = weir__member_of(m, "calls"),
                              *open_max = weir__member_of(m, "open_max");

    if (weir__member_of(m, "errors")->key == NULL && slow->key == NULL)
        weir__say(
            r, node,
            "the breaker never opens; write a threshold, such as errors: 50%% or slow: 500ms");
    if (ratio->key && slow->key == NULL)
        weir__say(r, ratio->key,
                  "'ratio' is the share of slow calls; write the time of a slow call, such as "
                  "slow: 500ms");
    if (weir__member_of(m, "window")->key && calls->key)
        weir__say(r, calls->key,
                  "a window is a time or a number of calls; leave out window or calls");
    if (b->calls && (b->min_calls > b->calls || b->errors > b->calls))
        weir__say(r, calls->value,
                  "the window never holds that many calls; calls must be at least %s",
                  b->min_calls > b->calls ? "min_calls" : "errors");
    if (b->open_max && b->open_max < (b->open_for ? b->open_for : WEIR__BREAKER_OPEN_FOR))
        weir__say(r, open_max->value, "open_max must be at least as long as open_for");
}

void weir__read_breaker(struct weir__reader *r, const struct weir__node *node,
                        struct weir__guard_draft *g)
{
    struct weir__mapping m = { .n = 0 };
    struct weir__breaker_plan plan;
    struct weir_error error = { 0 };
    size_t before = weir__problems(r);

    if (!weir__read_rows(r, node, &weir__guard_rows[WEIR__BREAKER], &m, &g->options.breaker))
        return;
    check_breaker(r, node, &m, &g->options.breaker);
    weir__note_bare(&m, g);
    if (weir__problems(r) == before &&
        weir__breaker_plan_make(&plan, &g->options.breaker, 0, &error) != WEIR_OK)
        weir__say(r, node, "breaker: %s", error.text);
}

/* ---------------------------------------------------------------- system ---- */

void weir__read_system(struct weir__reader *r, const struct weir__node *node,
                       struct weir__guard_draft *g)
{
    struct weir__mapping m = { .n = 0 };

    if (!weir__read_rows(r, node, &weir__guard_rows[WEIR__SYSTEM], &m, &g->options.system))
        return;
    weir__note_bare(&m, g);
    if (node->n == 0)
        weir__say(r, node, "system says nothing; write a bound, such as cpu: 85%%");
}
