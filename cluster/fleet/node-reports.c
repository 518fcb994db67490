/* node-reports.c -- what each node reports to rules-versions.lua: its age, which nodes are silent,
 * and how many run which version. */
#include "cluster/fleet/node-reports.h"

#include <stdio.h>
#include <string.h>

#include "wire/resp-reply.h"

bool weir__node_report_next(struct weir__versions_list *list, struct weir__node_report *out)
{
    if (list->left < 8)
        return false;
    out->node = weir__versions_text(list);
    out->time_us = weir__versions_number(list);
    out->runs = weir__versions_number(list);
    out->refused = weir__versions_number(list);
    out->why = weir__versions_text(list);
    out->weight = weir__versions_number(list);
    out->part = weir__versions_number(list);
    out->shares_name = weir__versions_number(list) != 0;
    return true;
}

weir_time weir__node_report_age(const struct weir__node_report *r, int64_t now_us)
{
    weir_time age = weir__reply_time(now_us) - weir__reply_time(r->time_us);

    return age < 0 ? -age : age;
}

bool weir__node_report_is_silent(const struct weir__node_report *r, int64_t now_us)
{
    return r->time_us > 0 && weir__node_report_age(r, now_us) > WEIR__NODE_REPORT_SILENT;
}

void weir__fleet_status_versions(struct weir_fleet_status *out, struct weir__versions_list *list)
{
    *out = (struct weir_fleet_status){ .newest = weir__versions_number(list) };
    struct weir__text stage = weir__versions_text(list);
    snprintf(out->stage, sizeof(out->stage), "%.*s", (int)stage.len, stage.bytes);
    out->all = weir__versions_number(list);
}

static bool is_called(const struct weir__node_report *r, const char *name)
{
    return r->node.len == strlen(name) && memcmp(r->node.bytes, name, r->node.len) == 0;
}

void weir__fleet_status_nodes(struct weir_fleet_status *s, struct weir__versions_list *list)
{
    int64_t now = weir__versions_number(list);
    struct weir__node_report r;

    while (weir__node_report_next(list, &r)) {
        bool staged = is_called(&r, s->stage), silent = weir__node_report_is_silent(&r, now);
        s->silent += silent;
        s->own += r.time_us == 0;
        s->shared_names += r.shares_name;
        if (r.time_us == 0 || silent)
            continue;
        s->nodes++;
        s->runs = r.runs > s->runs ? r.runs : s->runs;
        s->current += r.runs == (staged ? s->newest : s->all);
        s->refused += r.refused > 0;
    }
}

bool weir__node_report_follows(struct weir__versions_list *list, const char *node,
                               char names[WEIR__NODE_REPORT_NAMES])
{
    struct weir__node_report r;
    bool found = false;
    size_t len = 0;

    names[0] = '\0';
    int64_t now = weir__versions_number(list);
    while (weir__node_report_next(list, &r)) {
        if (r.time_us == 0 || weir__node_report_is_silent(&r, now))
            continue;
        found = found || is_called(&r, node);
        if (len + r.node.len + sizeof(", ...") < WEIR__NODE_REPORT_NAMES)
            len += (size_t)sprintf(names + len, "%s%.*s", len > 0 ? ", " : "", (int)r.node.len,
                                   r.node.bytes);
        else if (len > 0 && names[len - 1] != '.')
            len += (size_t)sprintf(names + len, ", ...");
    }
    return found;
}
