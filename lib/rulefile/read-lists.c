/* read-lists.c -- the lists of a rule file, and the rules' references to them.
 *
 *     lists:
 *       allow:  { ip: [10.0.0.0/8] }              lets these through
 *       deny:   { account: [mallory], ip: { file: bad.txt } }
 *       office: { ip: 192.0.2.0/24 }              for { list: office } in a rule's match
 *
 * Entries are whole values, or networks for attributes that are addresses.  A star would match only
 * a star, which nobody wants, so it is refused.
 */
#include "rulefile/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "match/lists.h"

/* -------------------------------------------------------------- entries ---- */

static int check_address(const char *text, size_t len, struct weir_error *error)
{
    struct weir__cidr cidr;

    return weir__cidr_parse(text, len, &cidr, error);
}

char *weir__read_entry(struct weir__reader *r, const char *attribute, const char *text, size_t len,
                       struct weir_error *error)
{
    int code = weir__attribute_is_address(attribute)
                   ? check_address(text, len, error)
                   : weir__list_check_value(attribute, text, len, error);

    return code == WEIR_OK ? weir__arena_copy(r->arena, text, len) : NULL;
}

/* The name of a file where entries stand. */
static bool is_file_name(const char *text, size_t len)
{
    return *text == '/' || strncmp(text, "./", 2) == 0 || strncmp(text, "../", 3) == 0 ||
           (len > 4 && text[len - 4] == '.' && weir__is_letter(text[len - 1]));
}

static void read_entry(struct weir__reader *r, const struct weir__node *node,
                       struct weir__list_draft *list)
{
    struct weir_error error = { 0 };
    const char *text = weir__read_text(r, node, "an entry of a list", "text");
    char *copy = text ? weir__read_entry(r, list->attribute, text, node->n, &error) : NULL;

    if (copy)
        list->entries[list->n++] = copy;
    else if (text && !r->arena->failed && is_file_name(text, node->n))
        weir__say(r, node, "%s is no entry; entries in a file are { file: NAME }",
                  weir__quote(text, node->n).text);
    else if (text && !r->arena->failed)
        weir__say_error(r, node, "", &error);
}

static void read_file(struct weir__reader *r, const struct weir__node *node,
                      struct weir__list_draft *list)
{
    struct weir__member file = { .name = "file" };

    if (!weir__read_members(r, node, "a list's entries", &file, 1))
        return;
    if (node->n == 0)
        weir__say(r, node, "expected the entries, as in [a, b], or a file of them: { file: NAME }");
    else if (file.value)
        weir__read_list_file(r, file.value, list);
}

static void read_entries(struct weir__reader *r, const struct weir__node *node,
                         struct weir__list_draft *list)
{
    if (node->kind == WEIR__NODE_MAPPING) {
        read_file(r, node, list);
        return;
    }
    if (node->kind == WEIR__NODE_NOTHING) {
        weir__say(r, node, "expected entries of '%s', as in [a, b]; [] is a list of none",
                  list->attribute);
        return;
    }
    list->entries = weir__arena_take(r->arena, node->kind == WEIR__NODE_LIST ? node->n : 1,
                                     sizeof(*list->entries));
    if (list->entries == NULL)
        return;
    if (node->kind == WEIR__NODE_TEXT)
        read_entry(r, node, list);
    for (size_t i = 0; node->kind == WEIR__NODE_LIST && i < node->n; i++)
        read_entry(r, node->items[i], list);
}

/* ---------------------------------------------------------------- lists ---- */

static bool is_repeated(const struct weir__draft *draft, size_t first, const char *attribute)
{
    for (size_t i = first; i < draft->n_lists; i++) {
        if (strcmp(draft->lists[i].attribute, attribute) == 0)
            return true;
    }
    return false;
}

static void read_list(struct weir__reader *r, const struct weir__node *key,
                      const struct weir__node *node)
{
    char *name = weir__read_name(r, key, "a list's name");
    size_t first = r->draft->n_lists;

    if (node->kind != WEIR__NODE_MAPPING) {
        weir__say(r, node,
                  "a list must be a mapping from attributes to entries, such as { ip: [10.0.0.0/8] "
                  "}; found %s",
                  weir__node_word(node));
        return;
    }
    for (size_t i = 0; name && i < node->n; i++) {
        const struct weir__node *of = node->items[2 * i];
        char *attribute = weir__read_attribute(r, of, of->text, of->n);
        if (attribute == NULL)
            continue;
        if (is_repeated(r->draft, first, attribute)) {
            weir__say(r, of, "'%s' is here twice; header names ignore case", attribute);
            continue;
        }
        struct weir__list_draft *list = &r->draft->lists[r->draft->n_lists++];
        *list = (struct weir__list_draft){ .name = name,
                                           .attribute = attribute,
                                           .mark = weir__mark_of(r, of) };
        read_entries(r, node->items[2 * i + 1], list);
    }
}

static int compare(const void *left, const void *right)
{
    const struct weir__list_draft *a = *(const struct weir__list_draft *const *)left,
                                  *b = *(const struct weir__list_draft *const *)right;
    int order = strcmp(a->name, b->name);

    return order ? order : strcmp(a->attribute, b->attribute);
}

void weir__read_lists(struct weir__reader *r, const struct weir__node *node)
{
    struct weir__draft *draft = r->draft;
    size_t most = 0;

    if (node->kind != WEIR__NODE_MAPPING) {
        weir__say(r, node,
                  "lists must be a mapping, such as { deny: { account: [mallory] } }; found %s",
                  weir__node_word(node));
        return;
    }
    for (size_t i = 0; i < node->n; i++)
        most += node->items[2 * i + 1]->kind == WEIR__NODE_MAPPING ? node->items[2 * i + 1]->n : 0;
    draft->lists = weir__arena_take(r->arena, most, sizeof(*draft->lists));
    r->lists = weir__arena_take(r->arena, most, sizeof(*r->lists));
    if (draft->lists == NULL || r->lists == NULL)
        return;
    for (size_t i = 0; i < node->n; i++)
        read_list(r, node->items[2 * i], node->items[2 * i + 1]);
    for (size_t i = 0; i < draft->n_lists; i++)
        r->lists[i] = &draft->lists[i];
    if (draft->n_lists > 0)
        qsort(r->lists, draft->n_lists, sizeof(*r->lists), compare);
}

/* ----------------------------------------------------------- references ---- */

/* The names of all lists, or the attributes of one. */
static size_t gather(const struct weir__reader *r, const char *list, const char **names,
                     size_t room)
{
    size_t n = 0;

    for (size_t i = 0; i < r->draft->n_lists && n < room; i++) {
        const struct weir__list_draft *l = r->lists[i];
        if (list && strcmp(l->name, list) == 0)
            names[n++] = l->attribute;
        else if (!list && (n == 0 || strcmp(names[n - 1], l->name) != 0))
            names[n++] = l->name;
    }
    return n;
}

void weir__check_list(struct weir__reader *r, const struct weir__node *node, const char *attribute)
{
    struct weir__list_draft wanted = { .name = (char *)node->text, .attribute = (char *)attribute },
                            *key = &wanted;
    const char *names[256];

    struct weir__list_draft **found =
        r->draft->n_lists > 0
            ? bsearch(&key, r->lists, r->draft->n_lists, sizeof(*r->lists), compare)
            : NULL;
    if (found) {
        (*found)->used = true;
        return;
    }
    size_t n = gather(r, node->text, names, 256);
    if (n > 0) {
        weir__say(r, node, "the list %s has no entries of '%s', so nothing would match; it has %s",
                  weir__quote(node->text, node->n).text, attribute, names[0]);
        return;
    }
    n = gather(r, NULL, names, 256);
    weir__say(r, node, "there is no list %s; %s", weir__quote(node->text, node->n).text,
              n ? weir__hint(node->text, node->n, names, n).text
                : "write it under lists: at the end of the file");
}

/* Whether a rule names the list, for any attribute. */
static bool is_used(const struct weir__reader *r, const char *name)
{
    for (size_t i = 0; i < r->draft->n_lists; i++) {
        if (r->draft->lists[i].used && strcmp(r->draft->lists[i].name, name) == 0)
            return true;
    }
    return false;
}

void weir__check_unused_lists(struct weir__reader *r, const struct weir__node *node)
{
    static const char *const names[] = { "allow", "deny" };

    for (size_t i = 0; node->kind == WEIR__NODE_MAPPING && i < node->n; i++) {
        const struct weir__node *key = node->items[2 * i];
        const char *near = weir__nearest(key->text, key->n, names, 2);
        if (near && strcmp(near, key->text) != 0 && !is_used(r, key->text))
            weir__say(r, key, "no rule names the list %s, so it does nothing; did you mean '%s'?",
                      weir__quote(key->text, key->n).text, near);
    }
}
