/* trouble.h -- why there is no answer, in the words of messages. */
#ifndef WEIR_CLUSTER_REDIS_TROUBLE_H
#define WEIR_CLUSTER_REDIS_TROUBLE_H

#include <stdbool.h>

#include "wire/text.h"

/* Whether this error comes from a weir serve that was taken for a Redis. */
bool weir__redis_is_weir(struct weir__text why);
/* What the `why` of an answer (ask.h) tells: "does not answer", "answers with an error", or
 * "is a weir serve, and no Redis". */
const char *weir__redis_trouble(const char *why);

#endif
