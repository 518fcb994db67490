/* inherited-sockets.c -- listening sockets from systemd, or from a server that hands over. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "server/serve/net/listen-private.h"

enum { FIRST_FD = 3, INHERITED_MAX = 4096, NAME_SIZE = sizeof("resp" WEIR__LISTEN_OWNED) };

/* How many sockets we inherit, or -1 if the environment makes no sense.  Our own
 * children are not told. */
static int count_inherited(char *names, size_t size, struct weir_error *error)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS"),
               *list = getenv("LISTEN_FDNAMES");
    bool ours = count && *count && (!pid || strtol(pid, NULL, 10) == (long)getpid());
    long n = ours ? strtol(count, NULL, 10) : 0;
    bool fits = !list || strlen(list) < size;

    snprintf(names, size, "%s", list && fits ? list : "");
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (n >= 0 && n <= INHERITED_MAX && fits)
        return (int)n;
    weir__fail(error, WEIR_INVALID,
               "LISTEN_FDS or LISTEN_FDNAMES make no sense: at most %d sockets can be inherited",
               INHERITED_MAX);
    return -1;
}

/* Sorts a socket by its name; false, and it was said, if the name is no door's. */
static bool find_door(struct weir__opening *o, const char *name, int fd, bool *owned)
{
    size_t len = name ? strlen(name) : 0, suffix = sizeof(WEIR__LISTEN_OWNED) - 1;

    *owned = len > suffix && strcmp(name + len - suffix, WEIR__LISTEN_OWNED) == 0;
    len -= *owned ? suffix : 0;
    for (int door = 0; door < WEIR__DOORS; door++) {
        if (len == strlen(weir__door_names[door]) &&
            memcmp(name, weir__door_names[door], len) == 0) {
            o->door = (enum weir__door)door;
            return true;
        }
    }
    weir__fail(o->error, WEIR_INVALID,
               "inherited socket %d is named '%.60s'; LISTEN_FDNAMES (FileDescriptorName= in a "
               ".socket unit) must say resp or http",
               fd, name ? name : "");
    return false;
}

static bool prepare_inherited(int fd)
{
    int yes = 0, kind = 0;
    socklen_t len = sizeof(yes);
    bool good = getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 && yes;

    good = good && getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &len) == 0 && kind == SOCK_STREAM;
    int flags = good ? fcntl(fd, F_GETFL) : -1;
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
           fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static int inherit(struct weir__opening *o, int fd, bool owned)
{
    union weir__socket_address a = { .room = { 0 } };
    socklen_t len = sizeof(a);

    if (!prepare_inherited(fd) || getsockname(fd, &a.any, &len) != 0)
        return weir__fail(o->error, WEIR_INVALID,
                          "inherited socket %d (%s) is no listening stream socket", fd,
                          weir__door_names[o->door]);
    struct weir__listen_address address = weir__listen_describe(o, &a, len),
                                *same = weir__listen_find_address(&o->listen, address.text);
    int code =
        address.loopback ? WEIR_OK : weir__auth_suffices(o->settings, address.text, o->error);
    if (code == WEIR_OK && !same) {
        address.inherited = true;
        address.owned = owned && address.is_unix;
        code = weir__listen_add_address(o, &address);
        same = &o->listen.addresses[o->listen.n_addresses - 1];
    }
    if (code != WEIR_OK)
        return code;
    size_t index = (size_t)(same - o->listen.addresses), nth = 0;
    for (size_t i = 0; i < o->listen.n_sockets; i++)
        nth += o->listen.sockets[i].address == index;
    return weir__listen_add_socket(
        o, &(struct weir__listen_socket){ .fd = fd, .loop = nth % o->loops, .address = index });
}

int weir__listen_inherit(struct weir__opening *o)
{
    char names[INHERITED_MAX * NAME_SIZE + 1], *save = NULL;
    int n = count_inherited(names, sizeof(names), o->error), code = n < 0 ? WEIR_INVALID : WEIR_OK;

    for (int i = 0; code == WEIR_OK && i < n; i++) {
        const char *name = strtok_r(i == 0 ? names : NULL, ":", &save);
        bool owned = false;
        if (!find_door(o, name, FIRST_FD + i, &owned))
            return WEIR_INVALID;
        if (*(o->door == WEIR__DOOR_RESP ? o->settings->resp : o->settings->http) == 0) {
            close(FIRST_FD + i); /* this door is closed */
            continue;
        }
        o->inherited[o->door] = true;
        code = inherit(o, FIRST_FD + i, owned);
    }
    for (size_t a = 0; code == WEIR_OK && a < o->listen.n_addresses; a++) {
        size_t own = 0;
        for (size_t i = 0; i < o->listen.n_sockets; i++)
            own += o->listen.sockets[i].address == a;
        code = weir__listen_add_duplicates(o, a, own);
    }
    return code;
}
