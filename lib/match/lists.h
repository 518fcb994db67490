/* lists.h -- the lists of a rule set at work: a set per list and attribute, made once, consulted on
 * every request. */
#ifndef WEIR_MATCH_LISTS_H
#define WEIR_MATCH_LISTS_H

#include "match/address.h"
#include "match/draft.h"
#include "match/values.h"
#include "weir-admin.h"

/* One list's entries of one attribute. */
struct weir__list {
    char *name, *attribute;
    char **entries; /* as written, sorted */
    size_t n;
    bool addresses;
    struct weir__cidr_set *networks; /* one of these two */
    struct weir__word_set *words;
};

struct weir__lists {
    struct weir__list *lists;
    size_t n;
};

int weir__lists_create(struct weir__lists **out, const struct weir__list_draft *drafts, size_t n,
                       struct weir_error *error);
void weir__lists_destroy(struct weir__lists *lists);

/* An edited copy; a new list is added at the end. */
int weir__lists_edit(struct weir__lists **out, const struct weir__lists *from,
                     const struct weir_list_edit *edit, struct weir_error *error);

/* Whether this can be an entry of a list, other than of addresses. */
int weir__list_check_value(const char *attribute, const char *text, size_t len,
                           struct weir_error *error);

/* Its place, or -1. */
int weir__lists_find(const struct weir__lists *lists, const char *list, const char *attribute);

/* `address` is the value as an address; bits 0: it is not one. */
static inline bool weir__list_has(const struct weir__list *l, const char *value, size_t len,
                                  const struct weir__address *address)
{
    return l->addresses ? address->bits != 0 && weir__cidr_set_has(l->networks, address)
                        : weir__word_set_has(l->words, value, len);
}

#endif
