/* rules-words.c -- rules in words that a person reads. */
#include "rules-words.h"

#include <string.h>

#include "rules/problem.h"

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

static void put_conditions(FILE *to, const struct weir__condition *conditions, size_t n, const char *last)
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
        weir_limit_print(text, sizeof text, &rule->limits[i]);
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
    weir_limit_print(refusals, sizeof refusals, &ban->refusals);
    weir_time_print(length, sizeof length, ban->length);
    weir_time_print(longest, sizeof longest, ban->longest);
    weir_time_print(forget, sizeof forget, ban->forget);
    fprintf(to, "for %s after %s refusals", length, refusals);
    if (ban->factor > 1)
        fprintf(to, ", each %d times as long, at most %s", ban->factor, longest);
    fprintf(to, ", forgotten after %s", forget);
}
