/* key.h -- the parts of a rule's key, for the table (key.c) and for people (key-text.c). */
#ifndef WEIR_MATCH_KEY_H
#define WEIR_MATCH_KEY_H

#include <string.h>

#include "match/rules.h"

/* Masks it as the rule says; how many bytes of it there are. */
static inline size_t weir__key_address(const struct weir__key_part *part, struct weir__address *a)
{
    weir__address_mask(a, a->bits == 32 ? part->prefix4 : part->prefix6);
    return a->bits / 8;
}

/* False: there is none, and the rule does not apply. */
static inline bool weir__key_value(const struct weir__key_part *part,
                                   const struct weir__facts *facts, struct weir__value *v)
{
    *v = facts->values[part->attribute];
    if (v->len == 0 && part->fallback != NULL)
        *v = (struct weir__value){ .text = part->fallback, .len = strlen(part->fallback) };
    return v->len != 0;
}

#endif
