/* fleet-rules.h -- what commands on the rules of a fleet share: options, asks, answers. */
#ifndef WEIR_SERVER_CLI_FLEET_RULES_H
#define WEIR_SERVER_CLI_FLEET_RULES_H

#include <stdio.h>

#include "cluster/fleet/node-reports.h"
#include "server/cli/ask-redis.h"

struct weir__fleet_rules_options {
    const char *redis, *fleet;
    bool json;
};

#define WEIR__FLEET_RULES_ROWS(in)                                                              \
    WEIR__OPTION(in, "redis", 'r', TEXT, common.redis, 0, "URL",                                \
                 "the fleet's Redis (WEIR_REDIS)"),                                             \
        WEIR__OPTION(in, "fleet", 'f', TEXT, common.fleet, 0, "NAME", "which fleet (default)"), \
        WEIR__OPTION(in, "json", 'j', SWITCH, common.json, 0, NULL, "print JSON")

struct weir__fleet_rules {
    struct weir__asker asker;
    struct weir_key fleet, document;
};

/* Returns WEIR__GO_ON, or an exit code after a complaint. */
int weir__fleet_rules_open(struct weir__fleet_rules *fleet, const char *command,
                           const struct weir__fleet_rules_options *options);
void weir__fleet_rules_close(struct weir__fleet_rules *fleet);

/* Asks rules-versions.lua; *out is good until the next ask.  Returns WEIR__GO_ON, or an exit code
 * after a complaint. */
int weir__fleet_rules_ask(struct weir__fleet_rules *fleet, const struct weir__text *words, size_t n,
                          struct weir__versions_list *out);

/* 0: the newest, -1: the one for all nodes.  WEIR__GO_ON and a number of 0: there is none.  Its
 * texts are good until the next ask. */
int weir__fleet_rules_get(struct weir__fleet_rules *fleet, int64_t version,
                          struct weir__version *out);

int weir__fleet_rules_status(struct weir__fleet_rules *fleet, struct weir_fleet_status *out);
/* Says that there are none, and what to do if nodes still run some.  Returns the exit code. */
int weir__fleet_rules_missing(struct weir__fleet_rules *fleet);
/* Why there are none, without an end of line. */
void weir__fleet_rules_say_why_none(FILE *to, const struct weir__fleet_rules *fleet,
                                    const struct weir_fleet_status *status);

/* By this user of this host.  Says what came of it, and returns the exit code. */
int weir__fleet_rules_put(struct weir__fleet_rules *fleet, struct weir__versions_edit *edit);

#endif
