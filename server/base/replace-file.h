/* replace-file.h -- a file replaced whole: after a crash at any moment it is the old text or the
 * new one.
 *
 * The new text goes to a temporary in the same folder and is flushed to the disk, takes the old
 * one's place by rename, and the folder is flushed.  Permissions stay, and the owner as far as the
 * process may give files away.  A symbolic link stays one: its target is replaced.
 * Temporaries are .NAME.weir-DIGITS, the process's number first; those that a crash has left are
 * removed by weir__store_clean.
 */
#ifndef WEIR_SERVER_BASE_REPLACE_FILE_H
#define WEIR_SERVER_BASE_REPLACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "weir.h"

/* Between begin and commit: the new text is on the disk, and the old one is still the file. */
struct weir__store {
    char *path;      /* the file to replace: no link */
    char *temporary; /* the new text */
    char
        *undo; /* another name of the old one, until it is certain that it is not needed any more */
    int folder; /* open, to be flushed */
    bool fresh; /* there is no old one */
    bool has_temporary, has_undo;
    struct stat old;
};

/* Lack of space fails here.  A new file is for its owner alone (0600). */
int weir__store_begin(struct weir__store *out, const char *path, const void *bytes, size_t len,
                      struct weir_error *error);
/* The new text takes the old one's place.  If that fails the old one is the file, or the error says
 * that it is not.  Either way the store is over. */
int weir__store_commit(struct weir__store *store, struct weir_error *error);
/* Instead of commit: nothing has happened. */
void weir__store_drop(struct weir__store *store);

/* Both. */
int weir__store_replace(const char *path, const void *bytes, size_t len, struct weir_error *error);

/* Processes that read a file and then replace it take turns by a lock on PATH.lock.  Returns a
 * descriptor for unlock; -1, with errno: ENOENT if it was never locked (and not `make`),
 * EWOULDBLOCK if it is locked (and not `wait`). The lock file stays: removing it would let in two
 * at once. */
int weir__store_lock(const char *path, bool make, bool wait);
void weir__store_unlock(int lock); /* -1: nothing */

/* Removes the temporary files of killed writers; returns their number. */
size_t weir__store_clean(const char *path);

#endif
