/* fleet-json.h -- the versions of a fleet's rules, and its nodes, as JSON. */
#ifndef WEIR_SERVER_DESCRIBE_FLEET_JSON_H
#define WEIR_SERVER_DESCRIBE_FLEET_JSON_H

#include "cluster/fleet/node-reports.h"

void weir__fleet_version_json(struct weir__buffer *out, const struct weir__version *version);
/* The member "rules". */
void weir__fleet_status_json(struct weir__buffer *out, const struct weir_fleet_status *status);
/* `now_us`: as rules-versions.lua answers it. */
void weir__fleet_report_json(struct weir__buffer *out, const struct weir__node_report *report,
                             int64_t now_us);

#endif
