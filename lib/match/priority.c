/* priority.c -- a request's priority and class for a guard, from its attributes.
 *
 * Runs for every request that enters: it compares words and allocates nothing.
 */
#include <string.h>

#include "match/rules.h"

/* A sign and any number of digits; brought within bounds. */
static bool read_number(const char *text, size_t len, int8_t *out)
{
    size_t sign = len > 1 && text[0] == '-';
    int n = 0;

    for (size_t i = sign; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n < 100 ? 10 * n + text[i] - '0' : n;
    }
    n = sign ? -n : n;
    *out = (int8_t)(n < WEIR_PRIORITY_MIN   ? WEIR_PRIORITY_MIN
                    : n > WEIR_PRIORITY_MAX ? WEIR_PRIORITY_MAX
                                            : n);
    return len > 0;
}

bool weir__priority_read(const struct weir__priority_word *words, size_t n, const char *text,
                         size_t len, int8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(words[i].name) == len && memcmp(words[i].name, text, len) == 0) {
            *out = words[i].priority;
            return true;
        }
    }
    return read_number(text, len, out);
}

int weir__class_find(const struct weir_guard_options *options, const char *name, size_t len)
{
    for (int i = 0; i < WEIR_CLASSES && options->classes[i].weight != 0; i++) {
        if (strlen(options->classes[i].name) == len &&
            memcmp(options->classes[i].name, name, len) == 0)
            return i;
    }
    return -1;
}

/* The attribute's value or its fallback; len 0: neither. */
static struct weir_key pick(const struct weir__pick *p, const struct weir__facts *facts)
{
    const struct weir__value *v = p->attribute >= 0 ? &facts->values[p->attribute] : NULL;

    if (v != NULL && v->len != 0)
        return (struct weir_key){ v->text, v->len };
    return p->text ? (struct weir_key){ p->text, strlen(p->text) } : (struct weir_key){ "", 0 };
}

int8_t weir__pick_priority(const struct weir__guard_rule *g, const struct weir__facts *facts,
                           int8_t asked)
{
    struct weir_key word = pick(&g->priority, facts);
    int8_t found = asked;

    if (word.len == 0 ||
        !weir__priority_read(g->draft->words, g->draft->n_words, word.bytes, word.len, &found))
        found = asked;
    return found < WEIR_PRIORITY_MIN   ? WEIR_PRIORITY_MIN
           : found > WEIR_PRIORITY_MAX ? WEIR_PRIORITY_MAX
                                       : found;
}

uint8_t weir__pick_class(const struct weir__guard_rule *g, const struct weir__facts *facts,
                         uint8_t asked)
{
    if (g->user_class.attribute < 0 && g->user_class.text == NULL)
        return asked;
    struct weir_key word = pick(&g->user_class, facts);
    int found = weir__class_find(&g->draft->options, word.bytes, word.len);
    return (uint8_t)(found < 0 ? (int)g->draft->n_classes - 1 : found);
}
