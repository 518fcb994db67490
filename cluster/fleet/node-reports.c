/* node-reports.c -- what each node reports to rules-versions.lua: its age, which nodes are silent,
 * and how many run which version. */
#include "cluster/fleet/node-reports.h"

#include <stdio.h>
#include <string.h>

#include "wire/resp-reply.h"

bool weir__centre_next_report(struct weir__centre_list *list, struct weir__centre_report *out)
{
    if (list->left < 8)
        return false;
    out->node = weir__centre_text(list);
    out->time_us = weir__centre_number(list);
    out->runs = weir__centre_number(list);
    out->refused = weir__centre_number(list);
    out->why = weir__centre_text(list);
    out->weight = weir__centre_number(list);
    out->part = weir__centre_number(list);
    out->shares_name = weir__centre_number(list) != 0;
    return true;
}

weir_time weir__centre_age(const struct weir__centre_report *r, int64_t now_us)
{
    weir_time age = weir__reply_time(now_us) - weir__reply_time(r->time_us);

    return age < 0 ? -age : age;
}

bool weir__centre_is_silent(const struct weir__centre_report *r, int64_t now_us)
{
    return r->time_us > 0 && weir__centre_age(r, now_us) > WEIR__CENTRE_SILENT;
}

void weir__centre_status_versions(struct weir_fleet_status *out, struct weir__centre_list *list)
{
    *out = (struct weir_fleet_status){ .newest = weir__centre_number(list) };
    struct weir__text stage = weir__centre_text(list);
    snprintf(out->stage, sizeof(out->stage), "%.*s", (int)stage.len, stage.bytes);
    out->all = weir__centre_number(list);
}

static bool is_called(const struct weir__centre_report *r, const char *name)
{
    return r->node.len == strlen(name) && memcmp(r->node.bytes, name, r->node.len) == 0;
}

void weir__centre_status_nodes(struct weir_fleet_status *s, struct weir__centre_list *list)
{
    int64_t now = weir__centre_number(list);
    struct weir__centre_report r;

    while (weir__centre_next_report(list, &r)) {
        bool staged = is_called(&r, s->stage), silent = weir__centre_is_silent(&r, now);
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

bool weir__centre_follows(struct weir__centre_list *list, const char *node,
                          char names[WEIR__CENTRE_NAMES])
{
    struct weir__centre_report r;
    bool found = false;
    size_t len = 0;

    names[0] = '\0';
    int64_t now = weir__centre_number(list);
    while (weir__centre_next_report(list, &r)) {
        if (r.time_us == 0 || weir__centre_is_silent(&r, now))
            continue;
        found = found || is_called(&r, node);
        if (len + r.node.len + sizeof(", ...") < WEIR__CENTRE_NAMES)
            len += (size_t)sprintf(names + len, "%s%.*s", len > 0 ? ", " : "", (int)r.node.len,
                                   r.node.bytes);
        else if (len > 0 && names[len - 1] != '.')
            len += (size_t)sprintf(names + len, ", ...");
    }
    return found;
}
