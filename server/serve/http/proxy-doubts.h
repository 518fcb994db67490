/* proxy-doubts.h -- proxies at /v1/auth that seem to be set up wrongly.  Their asks are decided all
 * the same, but about the wrong client or page: nobody would notice. */
#ifndef WEIR_SERVER_SERVE_HTTP_PROXY_DOUBTS_H
#define WEIR_SERVER_SERVE_HTTP_PROXY_DOUBTS_H

#include "server/serve/serve.h"

enum weir__proxy_doubt {
    WEIR__PROXY_NOT_TRUSTED, /* it describes another's request and is not in trusted-proxies */
    WEIR__PROXY_NO_CLIENT,   /* rules look at ip, and it does not say whose request it is */
    WEIR__PROXY_NO_URI,      /* rules look at uri, and it does not say what is asked for */
    WEIR__PROXY_KINDS
};

#define WEIR__PROXY_DOUBTS 16 /* peers of each kind that are told about */

struct weir__proxy_doubts;

struct weir__proxy_doubts *weir__proxy_doubts_create(void); /* NULL: no memory */
void weir__proxy_doubts_destroy(struct weir__proxy_doubts *doubts);

/* Counts an ask, and says so on stderr once for each kind and peer, of the first peers only.
 *  `header`: the one that it sent, or did not. */
void weir__proxy_doubt(struct weir__conn *conn, enum weir__proxy_doubt kind, const char *header);

#endif
