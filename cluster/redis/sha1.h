/* sha1.h -- SHA-1, by which Redis names scripts. */
#ifndef WEIR_CLUSTER_REDIS_SHA1_H
#define WEIR_CLUSTER_REDIS_SHA1_H

#include <stddef.h>

#define WEIR__SHA1_HEX 40

/* In lower case, ended by NUL. */
void weir__sha1_hex(char out[WEIR__SHA1_HEX + 1], const void *bytes, size_t len);

#endif
