/* node-reports.h -- what each node reports to rules-versions.lua, as operators see it. */
#ifndef WEIR_CLUSTER_FLEET_NODE_REPORTS_H
#define WEIR_CLUSTER_FLEET_NODE_REPORTS_H

#include "cluster/fleet/rules-versions-words.h"
#include "weir-fleet.h"

/* A node that has not been heard for this long polls no more. */
#define WEIR__NODE_REPORT_SILENT (10 * WEIR_SECOND)

struct weir__node_report {
    struct weir__text node, why;
    int64_t time_us; /* 0: its rules are its own, and it has never reported */
    int64_t runs, refused;
    int64_t weight, part; /* -1: it is no member now */
    bool shares_name;     /* with another host */
};
/* Of `nodes`, behind the time; false: that was the last. */
bool weir__node_report_next(struct weir__versions_list *list, struct weir__node_report *out);

/* Since it has last reported.  A report from the future is from before Redis's clock was set back,
 * as a node that is there would have reported since: it is as old as it is ahead. */
weir_time weir__node_report_age(const struct weir__node_report *report, int64_t now_us);
bool weir__node_report_is_silent(const struct weir__node_report *report, int64_t now_us);

/* Of `list`, then of `nodes`. */
void weir__fleet_status_versions(struct weir_fleet_status *out, struct weir__versions_list *list);
void weir__fleet_status_nodes(struct weir_fleet_status *status, struct weir__versions_list *list);

/* Of `nodes`: whether one of this name follows the rules, and was heard lately.  `names` gets the
 * names of those that do, as many as fit. */
#define WEIR__NODE_REPORT_NAMES 160
bool weir__node_report_follows(struct weir__versions_list *list, const char *node,
                               char names[WEIR__NODE_REPORT_NAMES]);

#endif
