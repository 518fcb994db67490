/* list-changes.h -- the changes that people make to lists by hand: kept beside the table, and made
 * again whenever other rules come.
 *
 * A set of { list, attribute, entry, added or removed }, sorted.  Never changed once made: an edit
 * makes another.  As a file:
 *
 *     weir lists 1
 *     checksum 0123456789abcdef         of the rest (digest.h)
 *     added deny ip 192.0.2.0/24
 *     removed allow account ann smith   the entry is the rest of the line; % and control characters
 *                                       are %XX
 *
 * Any other file is refused: half of a deny list would let in clients that were shut
 * out.
 */
#ifndef WEIR_SERVER_SERVE_RULES_LIST_CHANGES_H
#define WEIR_SERVER_SERVE_RULES_LIST_CHANGES_H

#include "match/lists.h"
#include "server/base/buffer.h"
#include "weir.h"

#define WEIR__LIST_CHANGES_MAX       100000 /* entries */
#define WEIR__LIST_CHANGES_ENTRY_MAX 1024   /* bytes of one */

struct weir__list_changes_entry {
    const char *list, *attribute; /* in one piece with the entry, and freed with it */
    char *entry;                  /* networks as they are printed */
    bool added;                   /* else removed */
    size_t turn; /* of two that say something about the same entry the later counts */
};

struct weir__list_changes {
    struct weir__list_changes_entry *entries;
    size_t n;
};

struct weir__list_changes *weir__list_changes_create(void); /* empty; NULL: no memory */
void weir__list_changes_destroy(struct weir__list_changes *changes);

/* A copy with these entries added and removed.  That an entry is gone which the rules as written
 * have not is nothing to remember. */
int weir__list_changes_edit(struct weir__list_changes **out, const struct weir__list_changes *from,
                            const struct weir__lists *written, const struct weir_list_edit *edit,
                            struct weir_error *error);

/* The lists as written, changed; *out is NULL if there is nothing to change.  Entries of lists that
 * the rules have not are left out and counted in *skipped: the list may come back. */
int weir__list_changes_apply(const struct weir__list_changes *changes,
                             const struct weir__lists *written, struct weir__lists **out,
                             size_t *skipped, struct weir_error *error);

void weir__list_changes_print(const struct weir__list_changes *changes, struct weir__buffer *out);
/* `name` is the file's, for the error. */
int weir__list_changes_parse(struct weir__list_changes **out, const char *text, size_t len,
                             const char *name, struct weir_error *error);
int weir__list_changes_read(struct weir__list_changes **out, const char *path,
                            struct weir_error *error); /* no file: an empty one */
/* Another number when there is something else in the file: of its inode, size, time and first two
 * lines (the checksum tells two apart that were written in one tick of the clock).  0: there is
 * none. */
uint64_t weir__list_changes_stamp(const char *path);

/* [{"list":..,"attribute":..,"entry":..,"change":"added"|"removed"}] */
void weir__list_changes_json(const struct weir__list_changes *changes, struct weir__buffer *out);

#endif
