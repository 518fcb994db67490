/* note.h -- a small string beside an account, under a key of its own: a receipt, a demand. */
#ifndef WEIR_REDIS_NOTE_H
#define WEIR_REDIS_NOTE_H

#include "redis-module/redis-api.h"

#define NOTE_NONE    0
#define NOTE_FOREIGN (-1)

/* Its length; NOTE_NONE, or NOTE_FOREIGN: no string, or one that is longer. */
long note_read(struct redis_context *context, struct redis_string *name, unsigned char *out,
               size_t size);
/* With its life in ms, and replicated. */
void note_write(struct redis_context *context, struct redis_string *name,
                const unsigned char *bytes, size_t len, long long life);

#endif
