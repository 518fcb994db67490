/* rules-follower.h -- a document of a fleet (its rules, say), as a node follows it: a pure step,
 * without sockets and clock; and the last good copy on the node's disk.  rules-versions-words.h
 * asks about it.
 *
 *     (follower, event, now) -> (follower', what to do)
 *
 * The driver polls, fetches and applies as the step says, one thing at a time, and tells what came
 * of it.  A node runs the version that is meant for it, reports at each poll which one it runs and
 * why it refused another, and does not try a refused one again.  When Redis is away it goes on with
 * what it runs; one that starts then begins with its copy, if that is whole and not too old.
 *
 * A change is on every node that reaches Redis within WEIR__FOLLOWER_EVERY and the time of two
 * calls.
 */
#ifndef WEIR_CLUSTER_FLEET_RULES_FOLLOWER_H
#define WEIR_CLUSTER_FLEET_RULES_FOLLOWER_H

#include "weir.h"
#include "wire/buffer.h"
#include "wire/text.h"

#define WEIR__VERSIONS_RULES    "rules" /* the document that has the fleet's rules */
#define WEIR__FOLLOWER_EVERY    (500 * WEIR_MILLISECOND)
#define WEIR__FOLLOWER_ASK      WEIR_SECOND
#define WEIR__VERSIONS_TEXT_MAX ((size_t)4 << 20)
#define WEIR__COPY_AGE_MAX      (7 * 24 * 3600 * WEIR_SECOND)

struct weir__follower {
    /* Versions: after a failover that has lost one, another may have its number */
    struct weir__edition {
        int64_t version, edit;
    } runs,        /* in force; zeros: none of the fleet's */
        refused,   /* the last that was refused, while it is the one meant for this node */
        wanted;    /* that is being fetched or applied */
    char why[160]; /* it was */
    weir_time due; /* to come again, with WEIR__FOLLOWER_TIME */
    bool busy;     /* something is under way */
};

struct weir__follower_event {
    enum {
        WEIR__FOLLOWER_TIME,    /* it is due, or perhaps not */
        WEIR__FOLLOWER_NEWS,    /* somebody has said that there is another version */
        WEIR__FOLLOWER_POLLED,  /* `of` is meant for this node; zeros: there is none */
        WEIR__FOLLOWER_FETCHED, /* the text of `of` is there */
        WEIR__FOLLOWER_APPLIED, /* it is in force; or, with `why`, was refused */
        WEIR__FOLLOWER_FAILED,  /* no answer */
    } kind;
    struct weir__edition of;
    const char *why;
};

struct weir__follower_do {
    enum {
        WEIR__FOLLOWER_NOTHING,
        WEIR__FOLLOWER_POLL,
        WEIR__FOLLOWER_FETCH, /* the text of `version` */
        WEIR__FOLLOWER_APPLY, /* the text that was fetched; then write the copy */
    } verb;
    int64_t version;
};

struct weir__follower_do weir__follower_step(struct weir__follower *follower,
                                             const struct weir__follower_event *event,
                                             weir_time now);

/* ------------------------------------------------------------------- copy ---- */

/* rules-copy-bytes.c -- the bytes of a copy: a head in words, with a CRC-32 over everything else,
 * and the text. */
struct weir__copy {
    struct weir__text document; /* its name */
    struct weir__edition of;
    weir_time taken; /* since 1970: when a poll last said that this is the version */
    struct weir__text text;
};

void weir__copy_write(const struct weir__copy *copy, struct weir__buffer *out);
/* `now`, since 1970; its texts point into `bytes`.  WEIR_INVALID: another document's, damaged, cut,
 * or older than WEIR__COPY_AGE_MAX (or from the future by more than a day); *error says which. */
int weir__copy_read(struct weir__copy *out, struct weir__text document, struct weir__text bytes,
                    weir_time now, struct weir_error *error);

#endif
