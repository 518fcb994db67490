/* wrong-tokens.h -- wrong tokens, by the address that showed them: after a few, tokens from there
 * are refused for a while, the right ones too.
 *
 * But a token of a role that the same address had lately is let through: one client with an old
 * token must not lock out its neighbours behind one gateway.
 */
#ifndef WEIR_SERVER_SERVE_SETTINGS_WRONG_TOKENS_H
#define WEIR_SERVER_SERVE_SETTINGS_WRONG_TOKENS_H

#include "server/serve/serve.h"

#define WEIR__WRONG_TOKENS_MAX 3 /* of a connection, which is closed then */

struct weir__wrong_tokens;

/* per_minute 0: addresses are not refused, only told.  NULL: no memory. */
struct weir__wrong_tokens *weir__wrong_tokens_create(struct weir__events *events,
                                                     int64_t per_minute);
void weir__wrong_tokens_destroy(struct weir__wrong_tokens *wrong_tokens);

/* An address (or "": a unix socket) has shown a token, which gives `role`; WEIR__ROLE_NONE: it is
 * wrong.  0: that is so; otherwise it counts for nothing, and the address may try again after this
 * time. */
weir_time weir__wrong_tokens_judge(struct weir__wrong_tokens *wrong_tokens, const char *peer,
                                   enum weir__role role, weir_time now);

#endif
