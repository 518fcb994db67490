/* fleet-json.c -- the versions of a fleet's rules, and its nodes, as JSON. */
#include "server/describe/fleet-json.h"

#include "server/base/buffer.h"

static void member_text(struct weir__buffer *out, const char *name, struct weir__text text)
{
    weir__buffer_member_name(out, name);
    weir__buffer_json(out, text.bytes, text.len);
}

void weir__fleet_version_json(struct weir__buffer *out, const struct weir__version *v)
{
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member_number(out, "version", v->number);
    weir__buffer_member_number(out, "time_us", v->time_us);
    weir__buffer_member_number(out, "origin", v->origin);
    member_text(out, "author", v->author);
    member_text(out, "note", v->note);
    weir__buffer_member_number(out, "bytes", v->bytes);
    weir__buffer_close(out, "}");
}

void weir__fleet_status_json(struct weir__buffer *out, const struct weir_fleet_status *s)
{
    weir__buffer_open(out, "rules", '{');
    weir__buffer_member_number(out, "newest", s->newest);
    weir__buffer_member_number(out, "all", s->all);
    weir__buffer_member_or_null(out, "stage", s->stage[0] ? s->stage : NULL);
    weir__buffer_member_number(out, "nodes", s->nodes);
    weir__buffer_member_number(out, "current", s->current);
    weir__buffer_member_number(out, "refused", s->refused);
    weir__buffer_member_number(out, "silent", s->silent);
    weir__buffer_member_number(out, "own", s->own);
    weir__buffer_member_number(out, "shared_names", s->shared_names);
    weir__buffer_member_number(out, "runs", s->runs);
    weir__buffer_close(out, "}");
}

void weir__fleet_report_json(struct weir__buffer *out, const struct weir__node_report *r,
                             int64_t now_us)
{
    bool reported = r->time_us > 0, member = r->part >= 0;

    weir__buffer_open(out, NULL, '{');
    member_text(out, "node", r->node);
    weir__buffer_member_number_or_null(out, "runs", reported, r->runs);
    weir__buffer_member_number(out, "refused", r->refused);
    member_text(out, "why", r->why);
    weir__buffer_member_number_or_null(out, "heard_us_ago", reported,
                                       weir__node_report_age(r, now_us) / WEIR_MICROSECOND);
    weir__buffer_member_number_or_null(out, "part", member, r->part);
    weir__buffer_member_number_or_null(out, "weight", member, r->weight);
    weir__buffer_member_bool(out, "shares_name", r->shares_name);
    weir__buffer_close(out, "}");
}
