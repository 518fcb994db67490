/* lists.c -- the lists of a rule set at work.
 *
 * A list is its sorted entries and the set made of them.  An edit makes new lists beside the old
 * ones, so readers of those are not disturbed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/lists.h"
#include "match/key-template.h"

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for a list");
}

static void free_list(struct weir__list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->entries[i]);
    free(l->entries);
    free(l->name);
    free(l->attribute);
    weir__cidr_set_destroy(l->networks);
    weir__word_set_destroy(l->words);
}

static int make_networks(struct weir__list *l, struct weir_error *error)
{
    struct weir__cidr *networks = malloc((l->n + 1) * sizeof(*networks));
    int code = networks ? WEIR_OK : no_memory(error);

    for (size_t i = 0; code == WEIR_OK && i < l->n; i++)
        code = weir__cidr_parse(l->entries[i], strlen(l->entries[i]), &networks[i], error);
    if (code == WEIR_OK)
        code = weir__cidr_set_create(&l->networks, networks, l->n, error);
    free(networks);
    return code;
}

/* Networks in their canonical spelling, so that each is found however it was written. */
static int tidy_entry(const struct weir__list *l, const char *entry, char **out,
                      struct weir_error *error)
{
    struct weir__cidr cidr;
    char text[64];

    if (!weir__attribute_is_address(l->attribute)) {
        int code = weir__list_check_value(l->attribute, entry, strlen(entry), error);
        if (code == WEIR_OK && (*out = strdup(entry)) == NULL)
            code = no_memory(error);
        return code;
    }
    int code = weir__cidr_parse(entry, strlen(entry), &cidr, error);
    if (code != WEIR_OK)
        return code;
    int len = weir__address_print(text, sizeof(text), &cidr.address);
    if (cidr.prefix < cidr.address.bits)
        snprintf(text + len, sizeof(text) - (size_t)len, "/%u", cidr.prefix);
    *out = strdup(text);
    return *out ? WEIR_OK : no_memory(error);
}

static bool has_small_letters(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && (text[i] < 'a' || text[i] > 'z'))
        i++;
    return i < len;
}

int weir__list_check_value(const char *attribute, const char *text, size_t len,
                           struct weir_error *error)
{
    const char *star = len ? memchr(text, '*', len) : NULL;

    if (len == 0)
        return weir__fail_at(error, 1, "an entry of a list is not empty; leave it out");
    if (star)
        return weir__fail_at(error, (int)(star - text) + 1,
                             "a list has whole values, no patterns; a * belongs in a rule's match");
    if (weir__attribute_is_path(attribute) && !weir__uri_is_plain(text, len))
        return weir__fail_at(
            error, 1,
            "no path looks like this: it begins with /, queries are cut off, %%XX is "
            "decoded, // and .. are resolved");
    if (weir__attribute_is_host(attribute) && !weir__host_is_plain(text, len))
        return weir__fail_at(error, 1,
                             "no host looks like this: letters become lower case, a port and a dot "
                             "at the end are cut off");
    if (strcmp(attribute, "method") == 0 && has_small_letters(text, len))
        return weir__fail_at(error, 1, "no method looks like this: methods are upper case");
    return WEIR_OK;
}

static int make_set(struct weir__list *l, struct weir_error *error)
{
    l->addresses = weir__attribute_is_address(l->attribute);
    return l->addresses
               ? make_networks(l, error)
               : weir__word_set_create(&l->words, (const char *const *)l->entries, l->n, error);
}

/* Without duplicates. */
static void sort_entries(struct weir__list *l)
{
    size_t kept = 0;

    if (l->n > 1)
        qsort(l->entries, l->n, sizeof(*l->entries), compare);
    for (size_t i = 0; i < l->n; i++) {
        if (kept > 0 && strcmp(l->entries[kept - 1], l->entries[i]) == 0)
            free(l->entries[i]);
        else
            l->entries[kept++] = l->entries[i];
    }
    l->n = kept;
}

/* Copies entries, tidied; `l` has room for them. */
static int add_entries(struct weir__list *l, const char *const *entries, size_t n,
                       struct weir_error *error)
{
    for (size_t i = 0; i < n; i++) {
        int code = tidy_entry(l, entries[i], &l->entries[l->n], error);
        if (code != WEIR_OK)
            return code;
        l->n++;
    }
    return WEIR_OK;
}

static int remove_entry(struct weir__list *l, const char *entry, struct weir_error *error)
{
    char *tidy;
    int code = tidy_entry(l, entry, &tidy, error);

    if (code != WEIR_OK)
        return code;
    char **hit = l->n > 0 ? bsearch(&tidy, l->entries, l->n, sizeof(*l->entries), compare) : NULL;
    free(tidy);
    if (hit != NULL) {
        free(*hit);
        memmove(hit, hit + 1, (size_t)(l->entries + l->n - hit - 1) * sizeof(*hit));
        l->n--;
    }
    return WEIR_OK;
}

static int make_list(struct weir__list *l, const struct weir__list_draft *from,
                     const struct weir_list_edit *e, struct weir_error *error)
{
    *l = (struct weir__list){ .name = strdup(from->name),
                              .attribute = strdup(from->attribute),
                              .entries = calloc(from->n + e->adds + 1, sizeof(char *)) };
    int code = l->name && l->attribute && l->entries ? WEIR_OK : no_memory(error);
    if (code == WEIR_OK)
        code = add_entries(l, (const char *const *)from->entries, from->n, error);
    if (code == WEIR_OK)
        code = add_entries(l, e->add, e->adds, error);
    if (code != WEIR_OK)
        return code;
    sort_entries(l);
    for (size_t i = 0; code == WEIR_OK && i < e->removes; i++)
        code = remove_entry(l, e->remove[i], error);
    return code ? code : make_set(l, error);
}

static int make_lists(struct weir__lists **out, size_t room, struct weir_error *error)
{
    struct weir__lists *made = calloc(1, sizeof(*made));

    if (made == NULL || (made->lists = calloc(room + 1, sizeof(*made->lists))) == NULL) {
        free(made);
        return no_memory(error);
    }
    *out = made;
    return WEIR_OK;
}

int weir__lists_create(struct weir__lists **out, const struct weir__list_draft *drafts, size_t n,
                       struct weir_error *error)
{
    struct weir__lists *made = NULL;
    const struct weir_list_edit none = { 0 };
    int code = make_lists(&made, n, error);

    if (code != WEIR_OK)
        return code;
    for (size_t i = 0; code == WEIR_OK && i < n; i++)
        code = make_list(&made->lists[made->n++], &drafts[i], &none, error);
    if (code == WEIR_OK)
        *out = made;
    else
        weir__lists_destroy(made);
    return code;
}

void weir__lists_destroy(struct weir__lists *lists)
{
    if (lists == NULL)
        return;
    for (size_t i = 0; i < lists->n; i++)
        free_list(&lists->lists[i]);
    free(lists->lists);
    free(lists);
}

int weir__lists_find(const struct weir__lists *lists, const char *list, const char *attribute)
{
    for (size_t i = 0; i < lists->n; i++)
        if (strcmp(lists->lists[i].name, list) == 0 &&
            strcmp(lists->lists[i].attribute, attribute) == 0)
            return (int)i;
    return -1;
}

static int copy_edited(struct weir__lists *to, const struct weir__lists *from, char *attribute,
                       const struct weir_list_edit *e, struct weir_error *error)
{
    const struct weir_list_edit none = { 0 };
    int code = WEIR_OK, target = weir__lists_find(from, e->list, attribute);

    for (size_t i = 0; code == WEIR_OK && i < from->n; i++) {
        const struct weir__list *l = &from->lists[i];
        const struct weir__list_draft as = {
            .name = l->name, .attribute = l->attribute, .entries = l->entries, .n = l->n
        };
        code = make_list(&to->lists[to->n++], &as, (int)i == target ? e : &none, error);
    }
    const struct weir__list_draft empty = { .name = e->list, .attribute = attribute };
    if (code == WEIR_OK && target < 0)
        code = make_list(&to->lists[to->n++], &empty, e, error);
    return code;
}

/* allow, deny, or one that the rules name: no other would have an effect. */
static int check_list(const struct weir__lists *from, const char *list, const char *attribute,
                      struct weir_error *error)
{
    bool known = strcmp(list, "allow") == 0 || strcmp(list, "deny") == 0 ||
                 weir__lists_find(from, list, attribute) >= 0;

    if (!known)
        return weir__fail(
            error, WEIR_INVALID,
            "the rules have no list '%s' of %s; there are allow, deny and those that rules name",
            list, attribute);
    if (*attribute == '\0' || weir__attribute_length(attribute) != strlen(attribute) ||
        strlen(attribute) > 63)
        return weir__fail(error, WEIR_INVALID,
                          "'%s' is not an attribute: use up to 63 letters, digits, . _ and -",
                          attribute);
    return WEIR_OK;
}

int weir__lists_edit(struct weir__lists **out, const struct weir__lists *from,
                     const struct weir_list_edit *edit, struct weir_error *error)
{
    struct weir__lists *made = NULL;
    char *small = weir__attribute_small(edit->attribute);
    int code = small ? check_list(from, edit->list, small, error) : no_memory(error);

    if (code == WEIR_OK)
        code = make_lists(&made, from->n + 1, error);
    if (code == WEIR_OK)
        code = copy_edited(made, from, small, edit, error);
    free(small);
    if (code == WEIR_OK)
        *out = made;
    else
        weir__lists_destroy(made);
    return code;
}
