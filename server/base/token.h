/* token.h -- secrets that clients show: their characters, and one in the first line of a file. */
#ifndef WEIR_SERVER_BASE_TOKEN_H
#define WEIR_SERVER_BASE_TOKEN_H

#include "weir.h"

#define WEIR__TOKEN_MAX 256 /* bytes */

/* NULL, or the mistake as the end of a sentence: "is longer than 256 bytes".  "" is no
 * token, and nothing is wrong with it. */
const char *weir__token_wrong(const char *text);

/* The first line of the file, which must be one; the caller wipes and frees it. */
int weir__token_read(char **out, const char *path, struct weir_error *error);

#endif
