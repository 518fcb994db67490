/* rules-diff.h -- the changes when one rule file replaces another, and their effect. */
#ifndef WEIR_SERVER_DESCRIBE_RULES_DIFF_H
#define WEIR_SERVER_DESCRIBE_RULES_DIFF_H

#include "match/draft.h"
#include "server/base/buffer.h"

struct weir__change {
    const char *of;   /* "file", "rule", "guard" or "list" */
    const char *name; /* of the rule, guard or list; "" of the file */
    const char *who;  /* whom it is for, in words; "" if that says nothing */
    const char *
        what; /* "added", "removed", "moved", "limit", "key", "match", "not", "mode", "ban", "cost",
                 "keys", "about", "entries"; of a guard its parts' names: "concurrency" ... */
    const char *text;   /* the change: "limit 300/1m -> 400/1m" */
    const char *effect; /* "keys keep their counts"; "" if the text says it */
};

/* Calls `each` with every change, those of one thing one after another: the file's, the rules' in
 * the order of the new file, then the removed ones', then the guards' in the same way, then the
 * lists'.  The texts are good until it returns.  Returns how many; -1 when there is no memory. */
long weir__rules_diff(const struct weir__draft *old, const struct weir__draft *new,
                      void (*each)(void *context, const struct weir__change *change),
                      void *context);

/* rules-words.c -- an `each`: writes the change as an object into a struct weir__buffer. */
void weir__change_json(void *buffer, const struct weir__change *change);

#endif
