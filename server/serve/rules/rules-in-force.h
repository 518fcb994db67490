/* rules-in-force.h -- the rules in force, and how others take their place: on SIGHUP, when the file
 * changes, by API.
 *
 * A wrong text changes nothing. Rules set by API are written to the rule file (or, if the server
 * was given none, beside the table file, as TABLE.rules) when it comes into force: whenever the
 * server dies, the file is the old text or the new one, never half of either. Lists changed by API
 * are kept beside the table file, as TABLE.lists, and made again with every change of the rules;
 * with neither file they last as long as the server.
 *
 * Two servers may share a table, as when one makes way for its successor.  So an edit is made to
 * the present TABLE.lists, with a lock on TABLE.lists.lock, and the other server's edits come into
 * force with the next refresh.  Nothing that was acknowledged gets lost.  A TABLE.lists that is
 * gone is no change: the lists in force stay, and the next edit writes all of them.
 *
 * From then on nobody else may call weir_use or weir_list_edit on the engine.  All functions may
 * be called from any thread.  Those that read or write files may take a while (reload, refresh,
 * set, check, list_edit); the others are quick.
 */
#ifndef WEIR_SERVER_SERVE_RULES_RULES_IN_FORCE_H
#define WEIR_SERVER_SERVE_RULES_RULES_IN_FORCE_H

#include "server/base/buffer.h"
#include "server/describe/rules-file.h"
#include "server/serve/events/events.h"
#include "weir-admin.h"

struct weir__in_force;

struct weir__in_force_options {
    struct weir *engine;
    struct weir__events *events;     /* reloads and edits are told; NULL: to nobody */
    const char *rules;               /* file; "" or NULL: none */
    const char *beside;              /* the table file; NULL: nothing is kept */
    struct weir__problems *problems; /* says those with the rules at the start; may be NULL */
};

struct weir__in_force_info {
    char hash[17];    /* of the text in force, in hex; "": no rules */
    char source[512]; /* the file, or "api" if it is kept nowhere; "": no rules */
    char cause[16];   /* "start", "signal", "file", "api", "fleet" */
    weir_time since;
    int64_t version; /* 1 is the first since the server started; 0: no rules */
    size_t rules, limits, guards, entries; /* entries: of lists, with changes by hand */
    size_t by_hand, skipped; /* changes of lists by hand; of these, of lists that the rules do not
                                have (any more) */
    char problem[512];       /* why the last reload was refused; "": it was not */
    weir_time problem_at;
};

/* Reads the files and puts the rules in force.  A rule file that cannot be read or is wrong, or a
 * damaged TABLE.lists, is an error. Without a rule file the engine gets an empty rule set, so that
 * lists can be edited. */
int weir__in_force_create(struct weir__in_force **out, const struct weir__in_force_options *options,
                          weir_time now, struct weir_error *error);
void weir__in_force_destroy(struct weir__in_force *in_force); /* before the engine and the events */

/* Reads the file again, and tells how it went by an event.  `cause`: "signal", "api".  All problems
 * with the text are appended to `problems` (may be NULL), a JSON array of {line, column, text}; it
 * is empty, or not even there, if the text was not the problem. */
int weir__in_force_reload(struct weir__in_force *in_force, const char *cause, weir_time now,
                          struct weir__buffer *problems, struct weir_error *error);
/* Reloads if the files (the rule file, and those that its lists name) have something else in them
 * than when they were tried last, and have not been touched since the look before this one: so
 * nobody's half written file is read.  True if it tried.  Looks at the lists too. */
bool weir__in_force_refresh(struct weir__in_force *in_force, weir_time now);
/* Only at TABLE.lists: another server's edits come into force. True if it is wrong (found so by two
 * looks, told once); then the lists in force stay. */
bool weir__in_force_refresh_lists(struct weir__in_force *in_force, weir_time now);
/* Another text takes the place of the rules, and is kept.  Its lists may name files below the rule
 * file's folder only. */
int weir__in_force_set(struct weir__in_force *in_force, const char *text, size_t len, weir_time now,
                       struct weir__buffer *problems, struct weir_error *error);
/* The same for rules that a fleet has; why they are refused goes into the error alone. */
int weir__in_force_follow(struct weir__in_force *in_force, const char *text, size_t len,
                          weir_time now, struct weir_error *error);
/* Only says whether it would do. */
int weir__in_force_check(struct weir__in_force *in_force, const char *text, size_t len,
                         struct weir__buffer *problems, struct weir_error *error);

void weir__in_force_info(struct weir__in_force *in_force, struct weir__in_force_info *out);
void weir__in_force_text(
    struct weir__in_force *in_force,
    struct weir__buffer *out); /* as it was read or set; nothing if there are no rules */

/* Doubts about the rules in force (rules-doubts.h), a JSON array of {line, column, text}. */
void weir__in_force_doubts(struct weir__in_force *in_force, struct weir__buffer *out);

/* What became of a list: entries that were not there before or are no longer, and how many there
 * are. */
struct weir__in_force_edited {
    size_t added, removed, entries;
};

/* Lists by hand.  `edited` may be NULL. */
int weir__in_force_list_edit(struct weir__in_force *in_force, const struct weir_list_edit *edit,
                             weir_time now, struct weir__in_force_edited *edited,
                             struct weir_error *error);
/* The first entries of a list, as ["192.0.2.7"]. */
void weir__in_force_list_entries(struct weir__in_force *in_force, const char *list,
                                 const char *attribute, size_t most, struct weir__buffer *json);
/* Every change by hand: [{"list":..,"attribute":..,"entry":..,"change":"added"|"removed"}] */
void weir__in_force_lists(struct weir__in_force *in_force, struct weir__buffer *json);

#endif
