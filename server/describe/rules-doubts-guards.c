/* rules-doubts-guards.c -- guards that never refuse, and options of theirs without an effect. */
#include "server/describe/rules-doubts-private.h"

#include <string.h>

#include "base/base.h"
#include "guard/options.h"

#define CALLS_MANY 10000 /* in a second */

/* Thresholds that are never reached.  The options have their defaults. */
static void doubt_thresholds(const struct weir__doubting *r, const struct weir__guard_draft *guard,
                             const struct weir_breaker_options *o)
{
    struct weir__mark mark = guard->rule.mark;

    if (o->above && o->error_percent == 100)
        weir__doubt(r, mark,
                    "the breaker never opens: there are no more than 100%% errors; "
                    "leave out at: above");
    if (o->above && o->slow > 0 && o->slow_percent == 100)
        weir__doubt(r, mark,
                    "the breaker never opens for slow calls: there are no more than 100%%; "
                    "leave out at: above");
    if (o->above && o->calls > 0 && o->errors == o->calls)
        weir__doubt(r, mark,
                    "the breaker never opens: there are no more than %d errors in %d calls; leave "
                    "out at: above",
                    (int)o->errors, (int)o->calls);
    if (o->calls == 0 && o->window > 0) {
        weir__i128 rate = (weir__i128)o->min_calls * WEIR_SECOND / o->window;
        if (rate >= CALLS_MANY)
            weir__doubt(r, mark,
                        "the breaker opens only at more than %lld calls a second: min_calls within "
                        "its window; write fewer, or a longer window",
                        (long long)rate);
    }
}

static void doubt_breaker(const struct weir__doubting *r, const struct weir__guard_draft *guard)
{
    const struct weir_guard_options *o = &guard->options;
    weir_time lease = o->lease > 0 ? o->lease : 60 * WEIR_SECOND; /* as guards have it */
    struct weir_breaker_options filled = o->breaker;

    weir__rows_fill(&weir__guard_rows[WEIR__BREAKER], &filled);
    if (filled.calls > 0 && filled.calls < filled.min_calls)
        filled.min_calls = filled.calls;
    if (o->breaker.slow >= lease && guard->bare == NULL)
        weir__doubt(
            r, guard->rule.mark,
            "work never becomes slow: its permit is taken back first; write a lease that is "
            "longer than slow");
    else if (o->breaker.slow > 0 && o->breaker.min_calls == 0 && o->max > 0 &&
             o->max < filled.min_calls)
        weir__doubt(
            r, guard->rule.mark,
            "the breaker sees no hang: %lld calls can hang at once, and it waits for min_calls, "
            "which is %d unless written; write min_calls: %lld",
            (long long)o->max, (int)filled.min_calls, (long long)o->max);
    if (o->breaker.errors > 0 && o->breaker.min_calls == 0 && o->breaker.errors < filled.min_calls)
        weir__doubt(
            r, guard->rule.mark,
            "errors: %d waits for min_calls, which is %d unless written; write min_calls: %d",
            (int)filled.errors, (int)filled.min_calls, (int)filled.errors);
    if (weir__rows_any(&weir__guard_rows[WEIR__BREAKER], &o->breaker))
        doubt_thresholds(r, guard, &filled);
}

/* Words for priorities, and classes, the wrong way round. */
static void doubt_importance(const struct weir__doubting *r, const struct weir__guard_draft *g)
{
    const struct weir__priority_word *low = NULL, *high = NULL;
    const struct weir_guard_options *o = &g->options;
    int64_t most = 0;

    for (size_t i = 0; i < g->n_words; i++) {
        low = strcmp(g->words[i].name, "low") == 0 ? &g->words[i] : low;
        high = strcmp(g->words[i].name, "high") == 0 ? &g->words[i] : high;
    }
    if (low && high && low->priority > high->priority)
        weir__doubt(r, g->rule.mark,
                    "the highest number goes first: 'high' is refused before 'low'");
    for (size_t i = 0; i + 1 < g->n_classes; i++)
        most = weir__int_most(most, o->classes[i].weight);
    if (g->n_classes > 1 && o->classes[g->n_classes - 1].weight > most)
        weir__doubt(r, g->rule.mark,
                    "users of no known class are in the last, '%s', which has the largest weight; "
                    "write the best first",
                    o->classes[g->n_classes - 1].name);
}

/* What tells requests apart where all are treated alike. */
static void doubt_alike(const struct weir__doubting *r, const struct weir__guard_draft *g)
{
    const struct weir_guard_options *o = &g->options;

    if (o->shed || g->queue > 0 || weir__rows_any(&weir__guard_rows[WEIR__SYSTEM], &o->system))
        return;
    if (g->priority.attribute || g->priority.fallback)
        weir__doubt(
            r, g->rule.mark,
            "priority has no effect: all are treated alike without shed, system or a queue");
    if (g->rule.key[0])
        weir__doubt(r, g->rule.mark,
                    "user has no effect without shed or system, which refuse by user");
}

#define QUEUE_LEAST 10 /* docs/guards.md, shedding */

/* Nothing is spared for the important while somebody can wait. */
static void doubt_short_queue(const struct weir__doubting *r, const struct weir__guard_draft *g)
{
    if (g->by_fit && g->queue > 0 && g->queue < QUEUE_LEAST)
        weir__doubt(r, g->rule.mark,
                    "a queue of %lld is too short for shed: the important find no place in it; "
                    "write queue: %d or more, or leave it out",
                    (long long)g->queue, QUEUE_LEAST);
}

/* Parts of a guard that can have no effect. */
static void doubt_guard(const struct weir__doubting *r, const struct weir__guard_draft *guard)
{
    const struct weir_guard_options *o = &guard->options;

    if (o->max_per_key > 0 && o->max == o->max_per_key)
        weir__doubt(
            r, guard->rule.mark,
            "the key has no effect: one key may have all %lld permits; write a larger total, or "
            "a smaller max",
            (long long)o->max);
    if (guard->bare) {
        long long seconds = guard->bare_time / WEIR_SECOND;
        weir__doubt(r, guard->rule.mark,
                    "%s is %lld seconds; write the unit: %s: %llds, or %s: %lldms for milliseconds",
                    guard->bare, seconds, guard->bare, seconds, guard->bare, seconds);
    }
    if (o->adaptive.min > 0 && o->adaptive.min == o->adaptive.max)
        weir__doubt(r, guard->rule.mark, "the limit does not adapt: min and max are both %lld",
                    (long long)o->adaptive.min);
    doubt_breaker(r, guard);
    doubt_importance(r, guard);
    doubt_alike(r, guard);
    doubt_short_queue(r, guard);
    weir__doubt_rule(r, &guard->rule);
}

/* Every request enters as many guards as it can. */
static bool are_enough(const struct weir__draft *draft)
{
    int n = 0;

    for (size_t i = 0; i < draft->n_guards; i++) {
        const struct weir__rule_draft *rule = &draft->guards[i].rule;
        n += rule->mode == WEIR_ENFORCE && rule->matches + rule->excepts == 0;
    }
    return n >= WEIR_ENTRY_MAX;
}

/* Guards beside as many as a request can enter. */
static void doubt_last_guards(const struct weir__doubting *r)
{
    if (r->draft->mode != WEIR_ENFORCE || !are_enough(r->draft))
        return;
    for (size_t i = 0; i < r->draft->n_guards; i++) {
        const struct weir__rule_draft *rule = &r->draft->guards[i].rule;
        if (rule->mode == WEIR_OFF ||
            (rule->mode == WEIR_ENFORCE && rule->matches + rule->excepts == 0))
            continue;
        weir__doubt(
            r, rule->mark, "%s: %d others apply to every request, and a request enters at most %d",
            rule->mode == WEIR_SHADOW ? "no request enters it" : "all that it matches is refused",
            WEIR_ENTRY_MAX, WEIR_ENTRY_MAX);
    }
}

/* A degradation that switches nothing off. */
static void doubt_degradation(const struct weir__doubting *r)
{
    const struct weir__mark nowhere = { 0 };

    for (size_t i = 0; i < r->draft->n_guards; i++) {
        int degrade = r->draft->guards[i].options.degrade;
        if (degrade > 0 && degrade <= r->draft->degradation)
            return;
    }
    if (r->draft->degradation > 0)
        weir__doubt(r, nowhere, "degradation: %d refuses nobody: no guard has degrade: %d or less",
                    r->draft->degradation, r->draft->degradation);
}

void weir__doubt_guards(const struct weir__doubting *r)
{
    for (size_t i = 0; i < r->draft->n_guards; i++)
        doubt_guard(r, &r->draft->guards[i]);
    doubt_last_guards(r);
    doubt_degradation(r);
}
