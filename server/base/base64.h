/* base64.h -- bytes as text: RFC 4648, the plain alphabet or the one of URLs, without padding. */
#ifndef WEIR_SERVER_BASE_BASE64_H
#define WEIR_SERVER_BASE_BASE64_H

#include <stddef.h>

/* What stands for 62 and 63. */
#define WEIR__BASE64     "+/"
#define WEIR__BASE64_URL "-_"

#define WEIR__BASE64_LEN(bytes) (((bytes)*4 + 2) / 3)

/* Writes WEIR__BASE64_LEN(len) characters and a NUL; returns how many. */
size_t weir__base64_write(char *out, const void *bytes, size_t len, const char *alphabet);
/* The number of bytes; 0: not base64, or no room. Left-over bits must be 0, so that bytes have one
 * text only. */
size_t weir__base64_read(void *out, size_t room, const char *text, size_t len,
                         const char *alphabet);

#endif
