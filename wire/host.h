/* host.h -- HOST:PORT as people write it: of addresses to listen on, of a server to ask, of a
 * URL. */
#ifndef WEIR_WIRE_HOST_H
#define WEIR_WIRE_HOST_H

#include <stddef.h>

struct weir__host {
    char name[256]; /* without brackets */
    char port[8];   /* "": not named */
};

/* Reads HOST, HOST:PORT, [HOST6] or [HOST6]:PORT, with a port from 0 to 65535.  NULL, or the
 * mistake as the end of a sentence about the text: "has too many colons ..."; then *out is
 * untouched. */
const char *weir__host_read(struct weir__host *out, const char *text, size_t len);

#endif
