/* webhook-post.h -- one POST of a JSON text to a URL, on a libuv loop, and its outcome.
 *
 * A connection of its own each time: deliveries are rare, and one that was kept open would mostly
 * have been closed by the other side.
 */
#ifndef WEIR_SERVER_SERVE_EVENTS_WEBHOOK_POST_H
#define WEIR_SERVER_SERVE_EVENTS_WEBHOOK_POST_H

#include <uv.h>

#include "wire/tls.h"
#include "server/base/url.h"
#include "weir.h"

struct weir__delivery_options {
    uv_loop_t *loop;
    const struct weir__url *url;
    struct weir__tls_context *tls; /* from weir__tls_client_create; for https */
    const char *token;             /* sent as a bearer token; "": none */
    const char *body;              /* all of these must last until `done` */
    size_t len;
    uint64_t timeout_ms; /* for all of it; 0: 10000 */
    /* Called once, from the loop, when everything is closed.  The status that was answered, or 0
     * and why there was none. */
    void (*done)(void *context, int status, const char *why);
    void *context;
};

struct weir__delivery;

struct weir__delivery *weir__delivery_start(
    const struct weir__delivery_options *options); /* NULL: no memory, and `done` is not called */
/* Gives up.  `done` still comes, later (a host's name that is being looked up must be waited
 * for). */
void weir__delivery_cancel(struct weir__delivery *delivery);

#endif
