/* announce.h -- what the server says to the readers of its terminal or journal, and to its
 * supervisor. */
#ifndef WEIR_SERVER_SERVE_ANNOUNCE_H
#define WEIR_SERVER_SERVE_ANNOUNCE_H

#include "server/serve/net/listen.h"
#include "server/serve/serve.h"

/* Warns of settings that look wrong, says what is served and where, and tells the supervisor. */
void weir__announce_ready(const struct weir__server *server, const struct weir__listen *listen);
/* The rule file has changed, and this came of it. */
void weir__announce_reload(struct weir__in_force *in_force);
/* What `weir rules check` would warn of.  The text is right; the answer is a JSON array of
 * {line, column, text}. */
struct weir__buffer weir__announce_doubts(const char *text, size_t len,
                                          const struct weir_rules_options *options);
/* By sd_notify(3)'s protocol, if the supervisor speaks it. */
void weir__tell_supervisor(const char *text);

#endif
