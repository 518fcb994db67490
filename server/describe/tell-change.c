/* tell-change.c -- tells each difference between two rule files, in words. */
#include "server/describe/tell-change.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/describe/rules-words.h"

bool weir__page_open(struct weir__diff *d, struct weir__page *page)
{
    *page = (struct weir__page){ 0 };
    page->to = open_memstream(&page->text, &page->len);
    d->failed = d->failed || page->to == NULL;
    return page->to != NULL;
}

char *weir__page_close(struct weir__diff *d, struct weir__page *page)
{
    if (fclose(page->to) == 0)
        return page->text;
    d->failed = true;
    free(page->text);
    return NULL;
}

static void tell(struct weir__diff *d, const char *what, const char *text, const char *effect)
{
    d->changes++;
    d->each(d->context,
            &(struct weir__change){ d->of, d->name, d->who ? d->who : "", what, text, effect });
}

void weir__diff_tell_page(struct weir__diff *d, struct weir__page *page, const char *what,
                          const char *effect)
{
    char *text = weir__page_close(d, page);

    if (text)
        tell(d, what, text, effect);
    free(text);
}

void weir__diff_say(struct weir__diff *d, const char *what, const char *effect, const char *format,
                    ...)
{
    struct weir__page page;
    va_list args;

    if (!weir__page_open(d, &page))
        return;
    va_start(args, format);
    vfprintf(page.to, format, args);
    va_end(args);
    weir__diff_tell_page(d, &page, what, effect);
}

void weir__diff_begin(struct weir__diff *d, const char *of, const char *name,
                      const struct weir__rule_draft *rule)
{
    struct weir__page page;

    free(d->who);
    d->who = NULL;
    d->of = of;
    d->name = name;
    if (rule && weir__page_open(d, &page)) {
        weir__rules_words_who(page.to, rule);
        d->who = weir__page_close(d, &page);
    }
}

static char *print(struct weir__diff *d, void (*put)(FILE *to, const void *thing),
                   const void *thing)
{
    struct weir__page page;

    if (!weir__page_open(d, &page))
        return NULL;
    put(page.to, thing);
    return weir__page_close(d, &page);
}

void weir__diff_words(struct weir__diff *d, const char *what, const char *effect,
                      void (*put)(FILE *to, const void *thing), const void *old, const void *new)
{
    char *before = print(d, put, old), *after = print(d, put, new);

    if (before && after && strcmp(before, after) != 0)
        weir__diff_say(d, what, effect, "%s %s -> %s", what, *before ? before : "none",
                       *after ? after : "none");
    free(before);
    free(after);
}
