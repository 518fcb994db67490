/* rules-words.c -- rules in words that a person reads. */
#include "server/describe/rules-words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "rulefile/read.h"
#include "server/describe/rules-diff.h"

static bool is_plain(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return len > 0 && len <= 60;
}

void weir__rules_words_value(FILE *to, const char *text, size_t len)
{
    if (is_plain(text, len))
        fwrite(text, 1, len, to);
    else
        fputs(weir__quote(text, len).text, to);
}

void weir__rules_words_pattern(FILE *to, const struct weir__pattern *pattern)
{
    if (pattern->kind == WEIR__PRESENT) {
        fputs("of any value", to);
        return;
    }
    if (pattern->kind == WEIR__LIST)
        fputs("on the list ", to);
    weir__rules_words_value(to, pattern->text, pattern->len);
    if (pattern->kind == WEIR__PREFIX)
        fputs("...", to);
}

void weir__rules_words_condition(FILE *to, const struct weir__condition *condition, size_t most)
{
    size_t n = most && most < condition->n ? most : condition->n;

    fputs(condition->attribute, to);
    for (size_t i = 0; i < n; i++) {
        fputs(i == 0 ? " " : i + 1 < condition->n ? ", " : " or ", to);
        weir__rules_words_pattern(to, &condition->patterns[i]);
    }
    if (n < condition->n)
        fprintf(to, ", ... (%zu in all)", condition->n);
}

static void put_conditions(FILE *to, const struct weir__condition *conditions, size_t n,
                           const char *last)
{
    for (size_t i = 0; i < n; i++) {
        fputs(i == 0 ? "" : i + 1 < n ? ", " : last, to);
        weir__rules_words_condition(to, &conditions[i], 5);
    }
}

void weir__rules_words_who(FILE *to, const struct weir__rule_draft *rule)
{
    fputs(rule->matches ? "requests with " : "every request", to);
    put_conditions(to, rule->match, rule->matches, " and ");
    if (rule->excepts)
        fputs(rule->matches ? ", but not with " : " but those with ", to);
    put_conditions(to, rule->except, rule->excepts, " or ");
}

void weir__rules_words_limits(FILE *to, const struct weir__rule_draft *rule)
{
    for (size_t i = 0; i < rule->n_limits; i++) {
        char text[256];
        weir_limit_print(text, sizeof(text), &rule->limits[i]);
        fprintf(to, "%s%s", i == 0 ? "" : i + 1 < rule->n_limits ? ", " : " and ", text);
    }
}

void weir__rules_words_ban(FILE *to, const struct weir__ban_draft *ban)
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

/* "errors 50%, slow 500ms": those that are written. */
static void put_rows(FILE *to, const struct weir__rows *rows, const void *options, bool *any)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct weir__row *row = &rows->rows[i];
        int64_t value = row->name ? weir__row_get(row, options) : 0;
        if (value == 0)
            continue;
        fprintf(to, "%s%s %s", *any ? ", " : "", row->name, weir__row_print(row, value).text);
        *any = true;
    }
}

/* " (priority 3 and above 200ms, class gold 100ms)" */
static void put_waiters(FILE *to, const struct weir__guard_draft *g)
{
    const char *before = " (";

    for (int p = WEIR_PRIORITY_MIN; p <= WEIR_PRIORITY_MAX; p++) {
        weir_time wait = g->priority_waits[p - WEIR_PRIORITY_MIN];
        if (wait == 0 ||
            (p > WEIR_PRIORITY_MIN && wait == g->priority_waits[p - 1 - WEIR_PRIORITY_MIN]))
            continue;
        char text[32];
        weir_time_print(text, sizeof(text), wait);
        fprintf(to, "%spriority %d and above %s", before, p, text);
        before = ", ";
    }
    for (size_t i = 0; i < g->n_classes; i++) {
        char text[32];
        if (g->class_waits[i] == 0)
            continue;
        weir_time_print(text, sizeof(text), g->class_waits[i]);
        fprintf(to, "%sclass %s %s", before, g->options.classes[i].name, text);
        before = ", ";
    }
    fputs(")", to);
}

static void put_concurrency(FILE *to, const struct weir__guard_draft *g)
{
    struct weir_guard_options written = g->options;
    bool any = false;

    if (g->by_key.key)
        weir__concurrency_turn(&written);
    put_rows(to, &weir__guard_rows[WEIR__CONCURRENCY], &written, &any);
    if (g->by_key.key) {
        fputs(any ? ", key " : "key ", to);
        weir__rules_words_value(to, g->by_key.key, strlen(g->by_key.key));
        any = true;
    }
    put_rows(to, &weir__queue_rows, g, &any);
    if (g->selective && !g->by_fit)
        put_waiters(to, g);
    for (size_t i = 0; i < g->n_classes; i++)
        fprintf(to, "%s%s %" PRId32,
                i     ? " "
                : any ? ", weights "
                      : "weights ",
                g->options.classes[i].name, g->options.classes[i].weight);
}

/* A target by its percentile, as it is written: p99 250ms. */
static void put_adaptive(FILE *to, const struct weir__guard_draft *g)
{
    struct weir_adaptive_options a = g->options.adaptive;
    char target[32];
    bool any = true;

    if (a.controller == NULL)
        return;
    fputs(a.controller, to);
    if (a.percentile) {
        weir_time_print(target, sizeof(target), a.target);
        fprintf(to, ", p%" PRId32 " %s", a.percentile, target);
        a.target = 0;
    }
    a.controller = NULL;
    put_rows(to, &weir__guard_rows[WEIR__ADAPTIVE], &a, &any);
}

static void put_user(FILE *to, const struct weir__guard_draft *g)
{
    if (*g->rule.key)
        weir__rules_words_value(to, g->rule.key, strlen(g->rule.key));
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
        weir__rules_words_value(to, f->file, strlen(f->file));
    } else if (f->len) {
        fputs(", body ", to);
        weir__rules_words_value(to, f->body, f->len);
    }
    if (f->len)
        fprintf(to, " (%zu bytes of %s)", f->len, f->type);
}

const struct weir__guard_part weir__guard_parts[] = {
    { "concurrency", put_concurrency, "permits that are out stay out" },
    { "adaptive", put_adaptive, "another controller begins anew" },
    { "breaker", NULL, "" },
    { "shed", NULL, "" },
    { "system", NULL, "" },
    { "degrade", NULL, "" },
    { "raises", NULL, "" },
    { "lease", NULL, "" },
    { "user", put_user, "" },
    { "priority", put_priority, "" },
    { "class", put_class, "" },
    { "fallback", put_fallback, "" },
    { NULL, NULL, NULL },
};

void weir__rules_words_part(FILE *to, const struct weir__guard_part *part,
                            const struct weir__guard_draft *guard)
{
    const struct weir__rows *own = &weir__guard_rows[WEIR__GUARD];
    bool any = false;

    if (part->print)
        part->print(to, guard);
    for (int i = 0; !part->print && i < WEIR__GROUPS; i++) {
        const struct weir__rows *rows = &weir__guard_rows[i];
        if (strcmp(rows->name, part->name) == 0)
            put_rows(to, rows, (const char *)&guard->options + rows->offset, &any);
    }
    for (size_t i = 0; !part->print && i < own->n; i++) {
        const struct weir__row *row = &own->rows[i];
        int64_t value = weir__row_get(row, &guard->options);
        if (value && row->name && strcmp(row->name, part->name) == 0)
            fputs(weir__row_print(row, value).text, to);
    }
}

void weir__rules_words_guard(FILE *to, const struct weir__guard_draft *guard)
{
    bool first = true;

    for (const struct weir__guard_part *p = weir__guard_parts; p->name; p++) {
        char *text = NULL;
        size_t len = 0;
        FILE *part = open_memstream(&text, &len);
        if (part == NULL)
            return;
        weir__rules_words_part(part, p, guard);
        fclose(part);
        if (len > 0)
            fprintf(to, "%s%s %s", first ? "" : "; ", p->name, text);
        first = first && len == 0;
        free(text);
    }
}

void weir__rules_words_across(FILE *to, const void *of)
{
    static const char *const alone[] = { "share", "open", "closed" };
    const struct weir__rule_draft *rule = of;
    char within[32];

    if (!rule->fleet) {
        fputs("host", to);
        return;
    }
    weir_time_print(within, sizeof(within), rule->within ? rule->within : WEIR__WITHIN);
    fprintf(to, "fleet, within %s, when_alone %s", within, alone[rule->when_alone]);
}

void weir__change_json(void *buffer, const struct weir__change *c)
{
    const char *const members[][2] = { { "of", c->of },     { "name", c->name },
                                       { "who", c->who },   { "what", c->what },
                                       { "text", c->text }, { "effect", c->effect } };

    weir__buffer_open(buffer, NULL, '{');
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        weir__buffer_member(buffer, members[i][0], members[i][1]);
    weir__buffer_close(buffer, "}");
}
