/* verbs.h -- the commands of the module. */
#ifndef WEIR_REDIS_MODULE_VERBS_H
#define WEIR_REDIS_MODULE_VERBS_H

#include "redis-module/redis-api.h"

redis_verb verb_throttle;                     /* cl-throttle.c */
redis_verb verb_take, verb_peek, verb_give;   /* take-verbs.c */
redis_verb verb_draw, verb_repay;             /* draw-verbs.c */
redis_verb verb_reset, verb_info, verb_clock; /* key-verbs.c */

/* There is something else under the key. */
int reply_foreign(struct redis_context *context);

#endif
