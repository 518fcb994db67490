/* clause.c -- whether a clause of a rule, tests of one attribute, holds for a request. */
#include <string.h>

#include "match/bytes.h"
#include "match/rules.h"

static bool test_holds(const struct weir__test *t, const struct weir__value *v, bool path,
                       const struct weir__lists *lists)
{
    struct weir__address masked;

    switch (t->kind) {
    case WEIR__EXACT:
        return v->len == t->len && weir__same_bytes(v->text, t->text, t->len);
    case WEIR__PREFIX:
        return v->len >= t->len && weir__same_bytes(v->text, t->text, t->len);
    case WEIR__GLOB:
        return weir__glob_match(t->text, t->len, v->text, v->len, path);
    case WEIR__CIDR:
        masked = v->address;
        if (masked.bits != t->cidr.address.bits)
            return false;
        weir__address_mask(&masked, t->cidr.prefix);
        return memcmp(masked.bytes, t->cidr.address.bytes, sizeof(masked.bytes)) == 0;
    case WEIR__LIST:
        return weir__list_has(&lists->lists[t->list], v->text, v->len, &v->address);
    case WEIR__PRESENT:
        break;
    }
    return true;
}

/* The entries of lists are written strictly. */
static bool list_has_loose(const struct weir_rules *set, const struct weir__test *t,
                           const struct weir__value *v, const struct weir__facts *facts)
{
    const struct weir__list *list = &facts->lists->lists[t->list];
    const struct weir__value *strict = &facts->values[set->attributes.uri];

    return weir__list_has(list, strict->text, strict->len, &strict->address) ||
           weir__list_has(list, v->text, v->len - (v->len > 1), &v->address);
}

/* A loose path ends in a slash: a star at the end of a glob takes it or stands before it. */
static bool holds_loose(const struct weir_rules *set, const struct weir__test *t,
                        const struct weir__value *v, const struct weir__facts *facts)
{
    if (t->kind == WEIR__LIST)
        return list_has_loose(set, t, v, facts);
    return t->kind == WEIR__GLOB && weir__glob_match(t->text, t->len, v->text, v->len - 1, true);
}

static bool holds_for(const struct weir_rules *set, const struct weir__clause *clause,
                      const struct weir__value *v, bool loose, const struct weir__facts *facts)
{
    if (v->len == 0)
        return false;
    for (uint32_t i = 0; loose && i < clause->n; i++)
        if (holds_loose(set, &set->tests[clause->first + i], v, facts))
            return true;
    for (uint32_t i = 0; i < clause->n; i++)
        if (test_holds(&set->tests[clause->first + i], v, clause->path, facts->lists))
            return true;
    return false;
}

/* As every server reads the path: loose-path.c. */
static bool holds_loosely_too(const struct weir_rules *set, const struct weir__clause *clause,
                              const struct weir__facts *facts)
{
    struct weir__clause tests = { .path = true, .first = clause->loosely, .n = clause->n };

    for (size_t i = 0; i + 1 < facts->n_readings; i++) /* the last one is the strict path */
        if (!holds_for(set, &tests, &facts->readings[i], true, facts))
            return false;
    return true;
}

bool weir__clause_holds(const struct weir_rules *set, const struct weir__clause *clause,
                        const struct weir__facts *facts)
{
    bool loose = set->attributes.loose > 0 && clause->attribute == set->attributes.loose;
    size_t n = loose ? facts->n_readings : 0;

    for (size_t i = 0; i < n; i++)
        if (holds_for(set, clause, &facts->readings[i], true, facts))
            return true;
    return n == 0 && holds_for(set, clause, &facts->values[clause->attribute], loose, facts) &&
           (clause->loosely == 0 || holds_loosely_too(set, clause, facts));
}
