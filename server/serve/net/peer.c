/* peer.c -- the client behind an address. */
#include "server/serve/net/peer.h"

#include <poll.h>
#include <string.h>

#include "match/address.h"

/* An IPv6 client has a network of 2^64 addresses. */
struct weir__hash weir__peer_hash(const uint64_t secrets[WEIR__HASH_SECRETS], const char *peer)
{
    struct weir__address address = { .bits = 0 };

    if (weir__address_parse(peer, strlen(peer), &address) && address.bits == 128)
        weir__address_mask(&address, 64);
    return weir__hash_key(secrets, 0, (struct weir_key){ &address, sizeof(address) });
}

bool weir__peer_has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLRDHUP };

    return poll(&p, 1, 0) > 0;
}

bool weir__peer_is_gone(const struct weir__conn *conn)
{
    uv_os_fd_t fd;

    return conn->heard_all || uv_fileno(&conn->uv.handle, &fd) != 0 || weir__peer_has_hung_up(fd);
}
