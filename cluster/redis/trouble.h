/* trouble.h -- why there is no answer, in the words of messages. */
#ifndef WEIR_CLUSTER_REDIS_TROUBLE_H
#define WEIR_CLUSTER_REDIS_TROUBLE_H

/* What the `why` of an answer (ask.h) tells: "does not answer", or "answers with an error". */
const char *weir__redis_trouble(const char *why);

#endif
