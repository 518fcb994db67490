/* key-word.h -- the key of something that a fleet shares in Redis, as a word of a script. */
#ifndef WEIR_CLUSTER_FLEET_KEY_WORD_H
#define WEIR_CLUSTER_FLEET_KEY_WORD_H

#include <string.h>

#include "weir.h"
#include "wire/buffer.h"

/* weir:{KIND:NAME}, and what belongs to it. */
static inline void weir__key_word(struct weir__buffer *out, const char *kind, struct weir_key name,
                                  const char *part)
{
    weir__buffer_format(out, "$%zu\r\nweir:{%s:",
                        strlen("weir:{:}") + strlen(kind) + name.len + strlen(part), kind);
    weir__buffer_add(out, name.bytes, name.len);
    weir__buffer_format(out, "}%s\r\n", part);
}

#endif
