/* rules-words.c -- rules in words that a person reads. */
#include "server/describe/rules-words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rulefile/problem.h"

static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return len > 0 && len <= 60;
}

void weir__words_value(FILE *to, const char *text, size_t len)
{
    if (is_plain(text, len))
        fwrite(text, 1, len, to);
    else
        fputs(weir__quote(text, len).text, to);
}

void weir__words_pattern(FILE *to, const struct weir__pattern *pattern)
{
    if (pattern->kind == WEIR__PRESENT) {
        fputs("of any value", to);
        return;
    }
    if (pattern->kind == WEIR__LIST)
        fputs("on the list ", to);
    weir__words_value(to, pattern->text, pattern->len);
    if (pattern->kind == WEIR__PREFIX)
        fputs("...", to);
}

void weir__words_condition(FILE *to, const struct weir__condition *condition, size_t most)
{
    size_t n = most && most < condition->n ? most : condition->n;

    fputs(condition->attribute, to);
    for (size_t i = 0; i < n; i++) {
        fputs(i == 0 ? " " : i + 1 < condition->n ? ", " : " or ", to);
        weir__words_pattern(to, &condition->patterns[i]);
    }
    if (n < condition->n)
        fprintf(to, ", ... (%zu in all)", condition->n);
}

static void put_conditions(FILE *to, const struct weir__condition *conditions, size_t n,
                           const char *last)
{
    for (size_t i = 0; i < n; i++) {
        fputs(i == 0 ? "" : i + 1 < n ? ", " : last, to);
        weir__words_condition(to, &conditions[i], 5);
    }
}

void weir__words_who(FILE *to, const struct weir__rule_draft *rule)
{
    fputs(rule->matches ? "requests with " : "every request", to);
    put_conditions(to, rule->match, rule->matches, " and ");
    if (rule->excepts)
        fputs(rule->matches ? ", but not with " : " but those with ", to);
    put_conditions(to, rule->except, rule->excepts, " or ");
}

void weir__words_limits(FILE *to, const struct weir__rule_draft *rule)
{
    for (size_t i = 0; i < rule->n_limits; i++) {
        char text[256];
        weir_limit_print(text, sizeof(text), &rule->limits[i]);
        fprintf(to, "%s%s", i == 0 ? "" : i + 1 < rule->n_limits ? ", " : " and ", text);
    }
}

void weir__words_ban(FILE *to, const struct weir__ban_draft *ban)
{
    char refusals[256], length[32], longest[32], forget[32];

    if (!ban->set) {
        fputs("none", to);
        return;
    }
    weir_limit_print(refusals, sizeof(refusals), &ban->refusals);
    weir_time_print(length, sizeof(length), ban->length);
    weir_time_print(longest, sizeof(longest), ban->longest);
    weir_time_print(forget, sizeof(forget), ban->forget);
    fprintf(to, "for %s after %s refusals", length, refusals);
    if (ban->factor > 1)
        fprintf(to, ", each %d times as long, at most %s", ban->factor, longest);
    fprintf(to, ", forgotten after %s", forget);
}

/* ---------------------------------------------------------------- guards ---- */

static void put_time(FILE *to, const char *before, weir_time time)
{
    char text[32];

    weir_time_print(text, sizeof(text), time);
    if (time != 0)
        fprintf(to, "%s%s", before, text);
}

static void put_number(FILE *to, const char *before, int64_t n)
{
    if (n != 0)
        fprintf(to, "%s%" PRId64, before, n);
}

static void put_percent(FILE *to, const char *before, int32_t n)
{
    if (n != 0)
        fprintf(to, "%s%" PRId32 "%%", before, n < 0 ? 0 : n);
}

static void put_concurrency(FILE *to, const struct weir__guard_draft *g)
{
    static const char *const orders[] = { "", ", the highest priority first", ", by weight" };
    bool any = g->options.max || g->queue;

    put_number(to, "at most ", g->options.max);
    fputs(g->options.max && g->queue ? ", " : "", to);
    put_number(to, "", g->queue);
    put_time(to, g->queue ? " may wait " : "", g->queue ? g->wait : 0);
    fputs(g->queue ? orders[g->order] : "", to);
    for (size_t i = 0; i < g->n_classes; i++)
        fprintf(to, "%s%s %" PRId32,
                i     ? ", "
                : any ? "; "
                      : "",
                g->options.classes[i].name, g->options.classes[i].weight);
}

static void put_adaptive(FILE *to, const struct weir__guard_draft *g)
{
    const struct weir_adaptive_options *a = &g->options.adaptive;

    if (a->controller == NULL)
        return;
    fputs(a->controller, to);
    put_number(to, " p", a->percentile);
    put_time(to, a->percentile ? " " : ", target ", a->target);
    put_time(to, ", window ", a->window);
    put_number(to, ", initial ", a->initial);
    put_number(to, ", min ", a->min);
    put_number(to, ", max ", a->max);
    fputs(a->rate ? ", of the rate" : "", to);
}

static void put_breaker(FILE *to, const struct weir__guard_draft *g)
{
    const struct weir_breaker_options *b = &g->options.breaker;
    const char *and = b->error_percent || b->errors ? " or " : "";

    if (*and == '\0' && b->slow == 0)
        return;
    put_percent(to, "", b->error_percent);
    put_number(to, "", b->errors);
    fputs(*and? " errors" : "", to);
    if (b->slow)
        fprintf(to, "%s%" PRId32 "%%", and, b->slow_percent ? b->slow_percent : 50);
    put_time(to, " slower than ", b->slow);
    fputs(b->above ? ", only above that" : "", to);
    put_time(to, ", in the last ", b->window);
    put_number(to, ", in the last ", b->calls);
    fputs(b->calls ? " calls" : "", to);
    put_number(to, ", from ", b->min_calls);
    fputs(b->min_calls ? " calls on" : "", to);
    put_time(to, ", open for ", b->open_for);
    put_time(to, ", open at most ", b->open_max);
    put_percent(to, ", jitter ", b->jitter_percent);
    put_number(to, ", probes ", b->probes);
}

/* ", " from the second time on. */
static const char *comma(bool *any, bool more)
{
    const char *before = *any && more ? ", " : "";

    *any = *any || more;
    return before;
}

static void put_system(FILE *to, const struct weir__guard_draft *g)
{
    const struct weir_system_options *s = &g->options.system;
    bool any = false;

    fputs(comma(&any, s->cpu_percent != 0), to);
    put_percent(to, "cpu ", s->cpu_percent);
    fputs(comma(&any, s->pressure_percent != 0), to);
    put_percent(to, "pressure ", s->pressure_percent);
    fputs(comma(&any, s->memory_percent != 0), to);
    put_percent(to, "memory ", s->memory_percent);
    fputs(comma(&any, s->run_queue != 0), to);
    put_number(to, "run queue ", s->run_queue);
    fputs(comma(&any, s->mean_time != 0), to);
    put_time(to, "mean time ", s->mean_time);
}

static void put_shed(FILE *to, const struct weir__guard_draft *g)
{
    fputs(g->options.shed ? "true" : "", to);
}

static void put_degrade(FILE *to, const struct weir__guard_draft *g)
{
    put_number(to, "", g->options.degrade);
}

static void put_raises(FILE *to, const struct weir__guard_draft *g)
{
    put_number(to, "", g->options.raises);
}

static void put_lease(FILE *to, const struct weir__guard_draft *g)
{
    put_time(to, "", g->options.lease);
}

static void put_user(FILE *to, const struct weir__guard_draft *g)
{
    if (*g->rule.key)
        weir__words_value(to, g->rule.key, strlen(g->rule.key));
}

static void put_pick(FILE *to, const struct weir__pick_draft *p)
{
    if (p->attribute)
        fprintf(to, "{%s%s", p->attribute, p->fallback ? "|" : "}");
    fprintf(to, "%s%s", p->fallback ? p->fallback : "", p->attribute && p->fallback ? "}" : "");
}

static void put_priority(FILE *to, const struct weir__guard_draft *g)
{
    put_pick(to, &g->priority);
    for (size_t i = 0; i < g->n_words; i++)
        fprintf(to, ", %s %d", g->words[i].name, g->words[i].priority);
}

static void put_class(FILE *to, const struct weir__guard_draft *g)
{
    put_pick(to, &g->user_class);
}

static void put_fallback(FILE *to, const struct weir__guard_draft *g)
{
    const struct weir__fallback_draft *f = &g->fallback;

    if (f->status == 0)
        return;
    fprintf(to, "status %" PRId32, f->status);
    if (f->file) {
        fputs(", the file ", to);
        weir__words_value(to, f->file, strlen(f->file));
    } else if (f->len) {
        fputs(", body ", to);
        weir__words_value(to, f->body, f->len);
    }
    if (f->len)
        fprintf(to, " (%zu bytes of %s)", f->len, f->type);
}

const struct weir__guard_part weir__guard_parts[] = {
    { "concurrency", put_concurrency, "permits that are out stay out" },
    { "adaptive", put_adaptive, "another controller begins anew" },
    { "breaker", put_breaker, "" },
    { "shed", put_shed, "" },
    { "system", put_system, "" },
    { "degrade", put_degrade, "" },
    { "raises", put_raises, "" },
    { "lease", put_lease, "" },
    { "user", put_user, "" },
    { "priority", put_priority, "" },
    { "class", put_class, "" },
    { "fallback", put_fallback, "" },
    { NULL, NULL, NULL },
};

void weir__words_guard(FILE *to, const struct weir__guard_draft *guard)
{
    bool first = true;

    for (const struct weir__guard_part *p = weir__guard_parts; p->name; p++) {
        char *text = NULL;
        size_t len = 0;
        FILE *part = open_memstream(&text, &len);
        if (part == NULL)
            return;
        p->print(part, guard);
        fclose(part);
        if (len > 0)
            fprintf(to, "%s%s %s", first ? "" : "; ", p->name, text);
        first = first && len == 0;
        free(text);
    }
}
