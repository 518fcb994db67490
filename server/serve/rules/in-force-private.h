/* in-force-private.h -- shared by rules-in-force.c and lists-in-force.c.
 *
 * Owners:
 *
 *     turn    for changes: one at a time, from reading a file to writing it.  Members without
 *             another owner below belong to it
 *     mutex   for readers (info, text, changes): held for a copy, so that nobody waits for a disk
 *
 * Everything declared here is called with the turn.
 */
#ifndef WEIR_SERVER_SERVE_RULES_IN_FORCE_PRIVATE_H
#define WEIR_SERVER_SERVE_RULES_IN_FORCE_PRIVATE_H

#include <pthread.h>

#include "engine/engine.h"
#include "server/serve/rules/rules-in-force.h"
#include "server/serve/rules/list-changes.h"
#include "server/serve/rules/rule-files.h"

struct weir__in_force {
    pthread_mutex_t turn, mutex;
    struct weir *engine;
    struct weir__events *events;
    char *path;       /* the rule file, which may not be there yet; NULL: rules are kept nowhere */
    char *lists_path; /* NULL: lists are kept nowhere */
    struct weir__lists
        *written; /* the lists as the rules have them; NULL: the rules in force have them so */
    struct weir__rule_files files; /* that were tried last, beside `path` */
    uint64_t tried;                /* the contents of all of them then */
    uint64_t seen;                 /* their stamp at the last look */
    bool settled;                  /* they have been read since that stamp was there */
    uint64_t lists_stamp;          /* of the file of lists that `changes` is; 0: there was none */
    uint64_t lists_seen;           /* of one that could not be read, at the last look, ... */
    uint64_t lists_bad;            /* ... and of the one already reported */
    bool lists_told;               /* info.problem is about it */
    /* With the mutex: */
    struct weir__in_force_info info;
    struct weir__list_changes *changes;
    char *text; /* in force; NULL: no rules */
    size_t len;
    struct weir__buffer doubts; /* about it: a JSON array of {line, column, text}, or nothing */
};

static inline int weir__in_force_no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for the rules");
}

/* With the turn nobody else changes it. */
static inline const struct weir__active *
weir__in_force_active(const struct weir__in_force *in_force)
{
    return __atomic_load_n(&in_force->engine->active, __ATOMIC_ACQUIRE);
}

static inline size_t weir__in_force_count(const struct weir__lists *lists)
{
    size_t n = 0;

    for (size_t i = 0; i < lists->n; i++)
        n += lists->lists[i].n;
    return n;
}

static inline void weir__in_force_tell(struct weir__in_force *in_force, enum weir__event_kind kind,
                                       weir_time now, const struct weir__event_facts *facts)
{
    if (in_force->events != NULL)
        weir__events_emit(in_force->events, kind, now, facts);
}

/* rules-in-force.c -- by an event, and in the info. */
void weir__in_force_tell_failure(struct weir__in_force *in_force, const char *source,
                                 const char *text, weir_time now);

/* lists-in-force.c -- reads the file of lists, before there are rules. */
int weir__in_force_lists_start(struct weir__in_force *in_force, struct weir_error *error);
/* lists-in-force.c -- puts lists in force that another process has written.  True if they are
 * wrong, and that was not told before. */
bool weir__in_force_lists_refresh(struct weir__in_force *in_force, weir_time now);

#endif
