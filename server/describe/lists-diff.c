/* lists-diff.c -- the changes of deny and allow lists when one rule file replaces another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/describe/rules-words.h"
#include "server/describe/tell-change.h"

#define SHOWN 3 /* entries of a list that are named */

static const struct weir__list_draft *find_list(const struct weir__draft *draft,
                                                const struct weir__list_draft *like)
{
    for (size_t i = 0; i < draft->n_lists; i++) {
        if (strcmp(draft->lists[i].name, like->name) == 0 &&
            strcmp(draft->lists[i].attribute, like->attribute) == 0)
            return &draft->lists[i];
    }
    return NULL;
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

struct entries {
    const char **texts; /* sorted; NULL: no memory */
    size_t n;
};

static struct entries copy_sorted(const struct weir__list_draft *list)
{
    struct entries all = { .n = list ? list->n : 0 };

    all.texts = malloc((all.n + 1) * sizeof(*all.texts));
    if (all.texts && all.n) {
        memcpy(all.texts, list->entries, all.n * sizeof(*all.texts));
        qsort(all.texts, all.n, sizeof(*all.texts), compare_texts);
    }
    return all;
}

/* How many of a's are not among b's, each once; the first few are named. */
static size_t put_difference(FILE *to, const char *lead, struct entries a, struct entries b,
                             const char *verb)
{
    size_t count = 0;
    struct weir__page first = { 0 };
    FILE *names = open_memstream(&first.text, &first.len);

    for (size_t i = 0, j = 0; names && i < a.n; i++) {
        if (i > 0 && strcmp(a.texts[i], a.texts[i - 1]) == 0)
            continue;
        while (j < b.n && strcmp(b.texts[j], a.texts[i]) < 0)
            j++;
        if (j < b.n && strcmp(b.texts[j], a.texts[i]) == 0)
            continue;
        if (count < SHOWN) {
            fputs(count ? ", " : "", names);
            weir__rules_words_value(names, a.texts[i], strlen(a.texts[i]));
        }
        count++;
    }
    if (names && fclose(names) == 0 && count > 0)
        fprintf(to, "%s%zu %s (%s%s)", lead, count, verb, first.text, count > SHOWN ? ", ..." : "");
    free(first.text);
    return count;
}

static void diff_list(struct weir__diff *d, const struct weir__list_draft *old,
                      const struct weir__list_draft *new)
{
    struct entries before = copy_sorted(old), after = copy_sorted(new);
    struct weir__page page;

    if (before.texts && after.texts && weir__page_open(d, &page)) {
        fprintf(page.to, "%s: ", new ? new->attribute : old->attribute);
        size_t added = put_difference(page.to, "", after, before, "added");
        size_t removed = put_difference(page.to, added ? ", " : "", before, after, "removed");
        if (added || removed)
            weir__diff_tell_page(d, &page, "entries", "");
        else
            free(weir__page_close(d, &page));
    }
    d->failed = d->failed || !before.texts || !after.texts;
    free(before.texts);
    free(after.texts);
}

void weir__lists_diff(struct weir__diff *d, const struct weir__draft *old,
                      const struct weir__draft *new)
{
    for (size_t i = 0; i < new->n_lists; i++) {
        weir__diff_begin(d, "list", new->lists[i].name, NULL);
        diff_list(d, find_list(old, &new->lists[i]), &new->lists[i]);
    }
    for (size_t i = 0; i < old->n_lists; i++) {
        weir__diff_begin(d, "list", old->lists[i].name, NULL);
        if (!find_list(new, &old->lists[i]))
            diff_list(d, &old->lists[i], NULL);
    }
}
