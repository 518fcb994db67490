/* request-cost.c -- the cost of a request at a rule: the ask's, times the rule's, times an
 * attribute's. */
#include "match/rules.h"

/* An attribute as a number; anything else counts as 1. */
static int64_t number_of(const struct weir__value *v)
{
    int64_t n = 0;

    for (size_t i = 0; i < v->len; i++) {
        if (v->text[i] < '0' || v->text[i] > '9')
            return 1;
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, v->text[i] - '0', &n))
            return INT64_MAX;
    }
    return v->len ? n : 1;
}

int64_t weir__rule_cost_made(const struct weir__rule *rule, const struct weir__facts *facts,
                             int64_t asked)
{
    int64_t cost = rule->cost;

    if (asked < 0)
        return -1; /* refused as an invalid cost */
    if (rule->cost_attribute >= 0 && facts->values[rule->cost_attribute].len != 0 &&
        __builtin_mul_overflow(cost, number_of(&facts->values[rule->cost_attribute]), &cost))
        cost = INT64_MAX;
    return __builtin_mul_overflow(cost, asked, &cost) ? INT64_MAX : cost;
}
