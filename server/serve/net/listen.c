/* listen.c -- the sockets that clients come to.
 *
 *     HOST:PORT     an address, or a name, which may stand for several; * is every address of the
 *                   host; port 0: the kernel chooses one
 *     [HOST6]:PORT  an IPv6 address
 *     PATH          has a '/': a unix socket
 *
 * SO_REUSEPORT would let a second server of the same user share a port without a word, and half of
 * the asks would go to another table.  So a port is first bound without it: that fails while
 * anybody else listens there.
 */
#include "server/serve/net/listen-private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "wire/host.h"

#define BACKLOG 1024

const char *const weir__door_names[WEIR__DOORS] = { "resp", "http" };

/* One of the addresses that a setting names. */
struct place {
    struct weir__host host; /* or a path, without a port */
    bool is_path;
};

/* ---------------------------------------------------------------- reading ---- */

static int fail_place(struct weir_error *error, int column, const char *text, size_t len,
                      const char *what)
{
    return weir__fail_at(error, column, "'%.*s' %s", len > 100 ? 100 : (int)len, text, what);
}

static int read_path(struct place *out, const char *text, size_t len, int column,
                     struct weir_error *error)
{
    struct sockaddr_un un;

    if (len >= sizeof(un.sun_path))
        return weir__fail_at(
            error, column, "the path of a unix socket has at most %zu bytes, and this one has %zu",
            sizeof(un.sun_path) - 1, len);
    if (text[len - 1] == '/')
        return fail_place(
            error, column, text, len,
            "is a directory; a unix socket's path is wanted, such as /run/weir/resp.sock");
    memcpy(out->host.name, text, len);
    out->is_path = true;
    return WEIR_OK;
}

static int read_place(struct place *out, const char *text, size_t len, int column,
                      struct weir_error *error)
{
    memset(out, 0, sizeof(*out));
    if (memchr(text, '/', len))
        return read_path(out, text, len, column, error);
    const char *wrong = weir__host_read(&out->host, text, len);
    if (wrong == NULL && out->host.port[0] == 0)
        wrong = "is not an address; write HOST:PORT, such as 127.0.0.1:7379, or the path of a unix "
                "socket";
    return wrong ? fail_place(error, column, text, len, wrong) : WEIR_OK;
}

/* The next of the addresses; *text moves on, to NULL behind the last. */
static int next_place(struct place *out, const char *whole, const char **text,
                      struct weir_error *error)
{
    const char *begin = *text + strspn(*text, " "), *comma = strchrnul(begin, ',');
    size_t len = (size_t)(comma - begin);

    while (len > 0 && begin[len - 1] == ' ')
        len--;
    *text = *comma ? comma + 1 : NULL;
    if (len == 0)
        return weir__fail_at(error, (int)(begin - whole) + 1,
                             "an address is missing; addresses are separated by one comma each");
    return read_place(out, begin, len, (int)(begin - whole) + 1, error);
}

int weir__listen_check(const char *text, struct weir_error *error)
{
    struct place place;

    for (const char *at = *text ? text : NULL; at;) {
        int code = next_place(&place, text, &at, error);
        if (code != WEIR_OK)
            return code;
    }
    return WEIR_OK;
}

/* ------------------------------------------------------------ rights ---- */

enum weir__role weir__listen_role(const struct weir__settings *settings, bool loopback)
{
    if (*settings->check_token)
        return WEIR__ROLE_NONE;
    if (*settings->admin_token)
        return loopback ? WEIR__ROLE_CHECK : WEIR__ROLE_NONE;
    return loopback ? WEIR__ROLE_ADMIN : WEIR__ROLE_NONE;
}

/* --------------------------------------------------------------- addresses ---- */

static bool is_loopback(const union weir__socket_address *a)
{
    if (a->any.sa_family == AF_INET)
        return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    if (a->any.sa_family != AF_INET6)
        return a->any.sa_family == AF_UNIX;
    return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) && a->v6.sin6_addr.s6_addr[12] == 127);
}

static int port_of(const union weir__socket_address *a)
{
    return a->any.sa_family == AF_INET    ? ntohs(a->v4.sin_port)
           : a->any.sa_family == AF_INET6 ? ntohs(a->v6.sin6_port)
                                          : 0;
}

static void print_address(char *out, size_t size, const union weir__socket_address *a,
                          socklen_t len)
{
    char host[INET6_ADDRSTRLEN] = "";
    size_t most = sizeof(a->path.sun_path);

    if (a->any.sa_family == AF_UNIX) {
        size_t path = len > offsetof(struct sockaddr_un, sun_path)
                          ? len - offsetof(struct sockaddr_un, sun_path)
                          : 0;
        bool abstract = path > 0 && a->path.sun_path[0] == 0;
        snprintf(out, size, "%s%.*s", abstract ? "@" : "",
                 (int)(path < most ? path : most) - abstract, a->path.sun_path + abstract);
    } else if (a->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof(host));
        snprintf(out, size, "%s:%d", host, port_of(a));
    } else {
        inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof(host));
        snprintf(out, size, "[%s]:%d", host, port_of(a));
    }
}

struct weir__listen_address weir__listen_describe(const struct weir__opening *o,
                                                  const union weir__socket_address *a,
                                                  socklen_t len)
{
    struct weir__listen_address address = { .door = o->door,
                                            .port = port_of(a),
                                            .is_unix = a->any.sa_family == AF_UNIX };

    print_address(address.text, sizeof(address.text), a, len);
    address.loopback = is_loopback(a);
    address.role = weir__listen_role(o->settings, address.loopback);
    return address;
}

struct weir__listen_address *weir__listen_find_address(struct weir__listen *listen,
                                                       const char *text)
{
    for (size_t i = 0; i < listen->n_addresses; i++) {
        if (strcmp(listen->addresses[i].text, text) == 0)
            return &listen->addresses[i];
    }
    return NULL;
}

int weir__listen_add_address(struct weir__opening *o, const struct weir__listen_address *address)
{
    if (o->listen.n_addresses == WEIR__LISTEN_MAX)
        return weir__fail(o->error, WEIR_INVALID, "there are more than %d addresses to listen on",
                          WEIR__LISTEN_MAX);
    o->listen.addresses[o->listen.n_addresses++] = *address;
    return WEIR_OK;
}

/* Closes the socket if it cannot be kept. */
int weir__listen_add_socket(struct weir__opening *o, const struct weir__listen_socket *socket)
{
    struct weir__listen *l = &o->listen;
    struct weir__listen_socket *more = realloc(l->sockets, (l->n_sockets + 1) * sizeof(*more));

    if (!more) {
        close(socket->fd);
        return weir__fail(o->error, WEIR_NO_MEMORY, "no memory for the listening sockets");
    }
    l->sockets = more;
    l->sockets[l->n_sockets++] = *socket;
    return WEIR_OK;
}

/* The loops from `first` on get duplicates of the address's `n` sockets. */
int weir__listen_add_duplicates(struct weir__opening *o, size_t address, size_t first)
{
    size_t own[1024], n = 0;

    for (size_t i = 0; i < o->listen.n_sockets && n < 1024; i++) {
        if (o->listen.sockets[i].address == address)
            own[n++] = i;
    }
    for (size_t loop = first; loop < o->loops && n > 0; loop++) {
        struct weir__listen_socket socket = { .loop = loop, .address = address, .duplicate = true };
        socket.fd = fcntl(o->listen.sockets[own[loop % n]].fd, F_DUPFD_CLOEXEC, 3);
        if (socket.fd < 0)
            return weir__fail_errno(o->error, "no socket for every thread of",
                                    o->listen.addresses[address].text);
        int code = weir__listen_add_socket(o, &socket);
        if (code != WEIR_OK)
            return code;
    }
    return WEIR_OK;
}

/* --------------------------------------------------------------------- TCP ---- */

/* -1, with errno. */
/* After a failure: -1, with its errno. */
static int close_failed(int fd)
{
    int number = errno;

    if (fd >= 0)
        close(fd);
    errno = number;
    return -1;
}

static int bind_tcp(const union weir__socket_address *a, socklen_t len, bool shared)
{
    const int yes = 1;
    int fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0;

    if (good && shared)
        good = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) == 0;
    if (good && a->any.sa_family == AF_INET6)
        good = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) == 0;
    if (good && bind(fd, &a->any, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    return close_failed(fd);
}

static int fail_tcp(struct weir__opening *o, const struct weir__listen_address *address)
{
    const char *door = weir__door_names[o->door];
    int number = o->number = errno;

    if (number == EADDRINUSE)
        return weir__fail(o->error, WEIR_SYSTEM,
                          "port %d is in use: another server? --%s HOST:PORT chooses another",
                          address->port, door);
    if (number == EACCES)
        return weir__fail(o->error, WEIR_SYSTEM,
                          "%s: this user may not listen on port %d; --%s HOST:PORT chooses another",
                          address->text, address->port, door);
    if (number == EADDRNOTAVAIL)
        return weir__fail(o->error, WEIR_SYSTEM,
                          "%s is not an address of this host; --%s *:%d is all there are",
                          address->text, door, address->port);
    return weir__fail(o->error, WEIR_SYSTEM, "cannot listen on %s: %s", address->text,
                      strerror(number));
}

/* Nobody else listens there. */
static bool is_free(const union weir__socket_address *a, socklen_t len)
{
    int fd = bind_tcp(a, len, false);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* A socket for each loop; all get the port that the first got. */
static int bind_all(struct weir__opening *o, union weir__socket_address *a, socklen_t len,
                    struct weir__listen_address *address)
{
    size_t index = o->listen.n_addresses;
    int code = WEIR_OK;

    for (size_t i = 0; code == WEIR_OK && i < o->loops; i++) {
        int fd = bind_tcp(a, len, true);
        if (fd < 0)
            return fail_tcp(o, address);
        if (i == 0) {
            getsockname(fd, &a->any, &len);
            *address = weir__listen_describe(o, a, len);
            code = weir__listen_add_address(o, address);
        }
        if (code == WEIR_OK)
            code = weir__listen_add_socket(
                o, &(struct weir__listen_socket){ .fd = fd, .loop = i, .address = index });
        else
            close(fd);
    }
    return code;
}

static int open_tcp(struct weir__opening *o, const struct sockaddr *where, socklen_t len)
{
    union weir__socket_address a = { .room = { 0 } };

    memcpy(&a, where, len);
    struct weir__listen_address address = weir__listen_describe(o, &a, len);
    const struct weir__listen_address *same =
        address.port ? weir__listen_find_address(&o->listen, address.text) : NULL;
    if (same && same->door == o->door)
        return WEIR_OK; /* a name that stands for it, and itself */
    if (same)
        return weir__fail(o->error, WEIR_INVALID,
                          "%s is named by both --resp and --http; give one of them another port",
                          address.text);
    int code =
        address.loopback ? WEIR_OK : weir__auth_suffices(o->settings, address.text, o->error);
    if (code != WEIR_OK)
        return code;
    if (address.port && !is_free(&a, len))
        return fail_tcp(o, &address);
    return bind_all(o, &a, len, &address);
}

/* The addresses that a name stands for; that the host has no IPv6, say, is no harm as long as there
 * is another. */
static int open_host(struct weir__opening *o, const struct place *place)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    int code = WEIR_OK;

    int gai = getaddrinfo(strcmp(place->host.name, "*") == 0 ? NULL : place->host.name,
                          place->host.port, &hints, &found);
    if (gai != 0)
        return weir__fail(o->error, WEIR_INVALID,
                          "--%s: '%.80s' is not an address, and no name that is known: %s",
                          weir__door_names[o->door], place->host.name, gai_strerror(gai));
    size_t before = o->listen.n_addresses;
    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        code = open_tcp(o, at->ai_addr, at->ai_addrlen);
        bool missing =
            code == WEIR_SYSTEM && (o->number == EAFNOSUPPORT || o->number == EADDRNOTAVAIL);
        if (missing && (at->ai_next || o->listen.n_addresses > before))
            code = WEIR_OK;
        if (code != WEIR_OK)
            break;
    }
    freeaddrinfo(found);
    return code;
}

/* ------------------------------------------------------------ unix sockets ---- */

static int bind_path(int fd, const union weir__socket_address *a, mode_t mode)
{
    mode_t before = umask(0777 & ~mode); /* so that it has never more */
    int result = bind(fd, &a->any, sizeof(a->path));

    umask(before);
    return result;
}

/* A file left behind by a killed server: nobody answers. */
static bool is_stale(const union weir__socket_address *a)
{
    struct stat st;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool stale = fd >= 0 && lstat(a->path.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
                 connect(fd, &a->any, sizeof(a->path)) != 0 && errno == ECONNREFUSED;

    if (fd >= 0)
        close(fd);
    return stale;
}

static int fail_path(const struct weir__opening *o, const char *path, int number)
{
    struct stat st;

    if (number == EADDRINUSE && lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
        return weir__fail(o->error, WEIR_SYSTEM,
                          "%s is there already, and is no socket; --%s PATH chooses another", path,
                          weir__door_names[o->door]);
    if (number == EADDRINUSE)
        return weir__fail(o->error, WEIR_SYSTEM,
                          "%s is in use: another server? --%s PATH chooses another", path,
                          weir__door_names[o->door]);
    return weir__fail(o->error, WEIR_SYSTEM, "cannot listen on %s: %s", path, strerror(number));
}

/* -1, with errno. */
static int open_path(const union weir__socket_address *a, mode_t mode)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool bound = fd >= 0 && bind_path(fd, a, mode) == 0;

    if (fd >= 0 && !bound && errno == EADDRINUSE) {
        bound = is_stale(a) && unlink(a->path.sun_path) == 0 && bind_path(fd, a, mode) == 0;
        errno = bound ? 0 : EADDRINUSE;
    }
    if (bound && listen(fd, BACKLOG) == 0)
        return fd;
    return close_failed(fd);
}

static int open_unix(struct weir__opening *o, const struct place *place)
{
    union weir__socket_address a = { .path = { .sun_family = AF_UNIX } };
    size_t index = o->listen.n_addresses;

    memcpy(a.path.sun_path, place->host.name, strlen(place->host.name));
    int fd = open_path(&a, (mode_t)o->settings->socket_mode);
    if (fd < 0)
        return fail_path(o, place->host.name, errno);
    struct weir__listen_address address = weir__listen_describe(o, &a, sizeof(a.path));
    address.owned = true;
    int code = weir__listen_add_address(o, &address);
    if (code != WEIR_OK) {
        close(fd);
        unlink(place->host.name);
        return code;
    }
    code = weir__listen_add_socket(o, &(struct weir__listen_socket){ .fd = fd, .address = index });
    return code == WEIR_OK ? weir__listen_add_duplicates(o, index, 1) : code;
}

/* --------------------------------------------------------------------- all ---- */

static int open_door(struct weir__opening *o, enum weir__door door)
{
    const char *whole = door == WEIR__DOOR_RESP ? o->settings->resp : o->settings->http;
    struct place place;
    int code = WEIR_OK;

    o->door = door;
    for (const char *at = *whole ? whole : NULL; at && code == WEIR_OK;) {
        code = next_place(&place, whole, &at, o->error);
        if (code == WEIR_OK)
            code = place.is_path ? open_unix(o, &place) : open_host(o, &place);
    }
    return code;
}

/* The predecessor still serves inherited sockets. */
static void give_up(struct weir__listen *listen)
{
    for (size_t i = 0; i < listen->n_addresses; i++)
        listen->addresses[i].owned &= !listen->addresses[i].inherited;
    weir__listen_close(listen, true);
}

int weir__listen_open(struct weir__listen *out, const struct weir__settings *settings, size_t loops,
                      struct weir_error *error)
{
    struct weir__opening o = { .settings = settings, .loops = loops, .error = error };
    int code = weir__listen_inherit(&o);

    for (int door = 0; code == WEIR_OK && door < WEIR__DOORS; door++) {
        if (!o.inherited[door])
            code = open_door(&o, (enum weir__door)door);
    }
    if (code == WEIR_OK && o.listen.n_addresses == 0)
        code = weir__fail(error, WEIR_INVALID,
                          "there is nowhere to listen: --resp and --http are both empty");
    if (code == WEIR_OK)
        *out = o.listen;
    else
        give_up(&o.listen);
    return code;
}

void weir__listen_close(struct weir__listen *listen, bool remove)
{
    for (size_t i = 0; i < listen->n_sockets; i++) {
        if (!listen->sockets[i].taken)
            close(listen->sockets[i].fd);
    }
    for (size_t i = 0; remove && i < listen->n_addresses; i++) {
        if (listen->addresses[i].owned)
            unlink(listen->addresses[i].text);
    }
    free(listen->sockets);
    memset(listen, 0, sizeof(*listen));
}

/* ---------------------------------------------------------------- handover ---- */

int *weir__listen_fds(const struct weir__listen *listen, size_t *n, struct weir__buffer *names)
{
    int *fds = calloc(listen->n_sockets + 1, sizeof(*fds));

    *n = 0;
    for (size_t i = 0; fds && i < listen->n_sockets; i++) {
        const struct weir__listen_socket *socket = &listen->sockets[i];
        if (socket->duplicate)
            continue;
        const struct weir__listen_address *address = &listen->addresses[socket->address];
        weir__buffer_format(names, "%s%s%s", *n ? ":" : "", weir__door_names[address->door],
                            address->owned ? WEIR__LISTEN_OWNED : "");
        fds[(*n)++] = socket->fd;
    }
    if (!names->failed)
        return fds;
    free(fds);
    return NULL;
}
