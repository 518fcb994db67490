/* base64.h -- bytes as text: RFC 4648, the plain alphabet or the one of URLs, without padding. */
#ifndef WEIR_BASE64_H
#define WEIR_BASE64_H

#include <stddef.h>

/* What stands for 62 and 63. */
#define WEIR__BASE64     "+/"
#define WEIR__BASE64_URL "-_"

#define WEIR__BASE64_LEN(bytes) (((bytes)*4 + 2) / 3)

/* Writes WEIR__BASE64_LEN(len) characters and a NUL; returns how many. */
size_t weir__base64_write(char *out, const void *bytes, size_t len, const char *alphabet);
/* The length of what was read; 0: it is none, or there is no room.  Bits that are left over must be
 * 0: what is read has one text only. */
size_t weir__base64_read(void *out, size_t room, const char *text, size_t len,
                         const char *alphabet);

#endif
