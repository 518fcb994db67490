/* key-template.h -- how a rule makes a key of a request's attributes:
 * "{ip/24}:{account|anonymous}". */
#ifndef WEIR_MATCH_KEY_TEMPLATE_H
#define WEIR_MATCH_KEY_TEMPLATE_H

#include "base/base.h"

#define WEIR__TEMPLATE_PARTS 8 /* attributes of one template */
#define WEIR__NO_PREFIX      255

/* An attribute, and the literal text before it. */
struct weir__template_part {
    char *before;    /* literal text, "" if none */
    char *attribute; /* NULL: the end, only `before` counts */
    /* {account|anonymous}: replaces a missing value; NULL: the rule needs the attribute. */
    char *fallback;
    uint8_t prefix4, prefix6; /* {ip/24/56}: bits that count; WEIR__NO_PREFIX: all */
};

struct weir__template {
    /* The last one is the literal text at the end. */
    struct weir__template_part parts[WEIR__TEMPLATE_PARTS + 1];
    size_t n; /* parts with an attribute */
};

/*     {ip}              the attribute's value; if it is missing or empty the rule does not apply
 *     {ip/24}           of an IPv4 address the first 24 bits, of an IPv6 address the first 64
 *     {ip/24/56}        ... the first 56
 *     {account|nobody}  "nobody" if it is missing
 *     {{                a brace
 * error->column points at the character. */
int weir__template_parse(struct weir__template *out, const char *text, struct weir_error *error);
void weir__template_free(struct weir__template *t);

/* An attribute's name: letters, digits and . _ - , up to 63. */
size_t weir__attribute_length(const char *text);

/* A copy; header names, which ignore case, in lower case.  NULL: no memory. */
char *weir__attribute_small(const char *name);

#endif
