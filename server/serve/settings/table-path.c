/* table-path.c -- the default place of the table file: systemd's state directory, else the
 * user's. */
#include "server/serve/settings/table-path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "server/base/complain.h"

bool weir__table_path(char *out, size_t size)
{
    const char *state = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    int len = -1;

    if (state && *state == '/')
        len = snprintf(out, size, "%.*s/weir.table", (int)strcspn(state, ":"), state);
    else if (xdg && *xdg == '/')
        len = snprintf(out, size, "%s/weir/weir.table", xdg);
    else if (home && *home == '/')
        len = snprintf(out, size, "%s/.local/state/weir/weir.table", home);
    return len > 0 && (size_t)len < size;
}

bool weir__table_path_make(const char *path)
{
    char folder[4096];

    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        struct stat st;
        if (mkdir(folder, 0700) != 0 && errno != EEXIST && stat(folder, &st) != 0) {
            weir__complain("serve",
                           "cannot make %s for the table file: %s; --table FILE chooses another, "
                           "--memory needs none",
                           folder, strerror(errno));
            return false;
        }
        *slash = '/';
    }
    return true;
}
