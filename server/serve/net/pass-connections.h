/* pass-connections.h -- open connections go to the successor, as they are: no client sees an end,
 * and no request is lost that was sent at the wrong moment.
 *
 *     the channel   a pair of unix sockets that keeps messages apart, made with the successor
 *     hello         the successor says which form of message it reads; if it is another one,
 *                   nothing is passed, and connections end as they do when the server does
 *     a message     the state of a connection between two requests, the bytes of a request that has
 *                   begun, and the socket itself; input that nobody has read yet stays in it
 *
 * TLS connections, subscribers and those with bound permits have a state that cannot be passed:
 * they end by themselves, or when the drain does.
 */
#ifndef WEIR_SERVER_SERVE_NET_PASS_CONNECTIONS_H
#define WEIR_SERVER_SERVE_NET_PASS_CONNECTIONS_H

#include "server/serve/serve.h"

/* The part of a connection that goes along.  To change it is to raise WEIR__PASS_FORM. */
#define WEIR__PASS_FORM 1
struct weir__passed {
    uint32_t form, in_len; /* in_len: bytes of a request that follow */
    int32_t role, first_role, known, wrong_tokens;
    uint8_t http, unix_socket, proven, resp;
    char peer[48];
    char name[64], library[96]; /* RESP: as the client has introduced itself */
};

/* The successor, on the main thread: says hello and takes over connections until the predecessor
 * is gone.  The channel becomes its own. */
int weir__pass_receive(struct weir__server *server, uv_loop_t *uv, int channel);
void weir__pass_close(struct weir__server *server); /* no more */

/* The predecessor, when it drains: whether the successor can be passed connections. */
bool weir__pass_is_heard(int channel);

/* On the loop's thread.  GONE: it is the successor's now, and closed here.  LATER: try again, since
 * it is within a request, or the channel is full. */
enum weir__pass_result { WEIR__PASS_NEVER, WEIR__PASS_LATER, WEIR__PASS_GONE };
enum weir__pass_result weir__pass_on(struct weir__conn *conn);
/* Takes those that have arrived for this loop. */
void weir__pass_adopt(struct weir__loop *loop);

#endif
