/* rules-doubts-fleet.c -- rules across the fleet. */
#include "server/describe/rules-doubts-private.h"

#define WITHIN_LONG WEIR_SECOND

void weir__doubt_within(const struct weir__doubting *r, const struct weir__rule_draft *rule)
{
    char text[32];

    if (rule->within <= WITHIN_LONG)
        return;
    weir_time_print(text, sizeof(text), rule->within);
    weir__doubt(
        r, rule->mark,
        "while the fleet is slow to answer, each request is held for up to %s; write a shorter "
        "within, after which when_alone decides",
        text);
}

void weir__rules_doubts_fleet(const struct weir__draft *draft,
                              void (*say)(void *context, const struct weir_problem *doubt),
                              void *context)
{
    const struct weir__doubting r = { draft, say, context };

    for (size_t i = 0; i < draft->n_rules; i++) {
        if (draft->rules[i].fleet) {
            weir__doubt(&r, draft->rules[i].mark,
                        "across: fleet needs weir serve --fleet, or weir_fleet in nginx; elsewhere "
                        "the rule counts on its host alone");
            return;
        }
    }
}
