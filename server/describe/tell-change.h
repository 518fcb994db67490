/* tell-change.h -- tells each difference between two rule files, in words. */
#ifndef WEIR_SERVER_DESCRIBE_TELL_CHANGE_H
#define WEIR_SERVER_DESCRIBE_TELL_CHANGE_H

#include <stdio.h>

#include "server/describe/rules-diff.h"

/* The comparison of two files. */
struct weir__diff {
    void (*each)(void *context, const struct weir__change *change);
    void *context;
    long changes;
    bool failed;
    const char *of, *name;
    char *who;
};

/* A piece of text that is being written. */
struct weir__page {
    char *text;
    size_t len;
    FILE *to;
};

/* False: no memory, which is noted. */
bool weir__page_open(struct weir__diff *d, struct weir__page *page);
char *weir__page_close(struct weir__diff *d, struct weir__page *page); /* NULL: no memory */

/* The changes that follow belong to this thing. */
void weir__diff_begin(struct weir__diff *d, const char *of, const char *name,
                      const struct weir__rule_draft *rule);
void weir__diff_tell_page(struct weir__diff *d, struct weir__page *page, const char *what,
                          const char *effect);
__attribute__((format(printf, 4, 5))) void
weir__diff_say(struct weir__diff *d, const char *what, const char *effect, const char *format, ...);
/* Told if their words differ. */
void weir__diff_words(struct weir__diff *d, const char *what, const char *effect,
                      void (*put)(FILE *to, const void *thing), const void *old, const void *new);

/* lists-diff.c */
void weir__lists_diff(struct weir__diff *d, const struct weir__draft *old,
                      const struct weir__draft *new);

#endif
