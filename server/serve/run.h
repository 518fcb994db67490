/* run.h -- the server as `weir serve` starts it. */
#ifndef WEIR_SERVER_SERVE_RUN_H
#define WEIR_SERVER_SERVE_RUN_H

#include "server/serve/settings/settings.h"

/* Serves until it is told to end; returns the code to exit with.  The settings become the server's.
 * `argv` is the whole command line, for a successor. */
int weir__serve(struct weir__settings *settings, char **argv);

#endif
