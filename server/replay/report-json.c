/* report-json.c -- a replay's report for programs: everything that is known, and the requests
 * that two rule sets decide differently.
 *
 * Counts are integers, times are texts in UTC, spans are nanoseconds.  An estimate says so:
 * {"count": 12345, "exact": false}.
 */
#include <stdlib.h>

#include "server/base/buffer.h"
#include "server/replay/report.h"

static void add_key(struct weir__buffer *b, const char *name, struct weir_key text)
{
    weir__buffer_member_name(b, name);
    weir__buffer_json(b, text.bytes, text.len);
}

static void add_distinct(struct weir__buffer *b, const char *name,
                         const struct weir__distinct *distinct)
{
    weir__buffer_open(b, name, '{');
    weir__buffer_member_number(b, "count", weir__distinct_count(distinct));
    weir__buffer_member_bool(b, "exact", weir__distinct_is_exact(distinct));
    weir__buffer_close(b, "}");
}

static void add_hitters(struct weir__buffer *b, const char *name, const char *what,
                        const struct weir__hitters *hitters, size_t max)
{
    struct weir__hitter *top = malloc((max + 1) * sizeof(*top));
    size_t n = top ? weir__hitters_top(hitters, top, max) : 0;

    weir__buffer_open(b, name, '[');
    for (size_t i = 0; i < n; i++) {
        weir__buffer_open(b, NULL, '{');
        weir__buffer_member(b, what, top[i].text);
        weir__buffer_member_number(b, "refused", top[i].count);
        weir__buffer_member_number(b, "error", top[i].error);
        weir__buffer_close(b, "}");
    }
    weir__buffer_close(b, "]");
    free(top);
}

static void add_trace(struct weir__buffer *b, const struct weir__report *report,
                      const struct weir__replay_trace *trace)
{
    add_distinct(b, "keys", trace->keys);
    add_hitters(b, "top", "key", trace->top, report->top);
    weir__buffer_member_numbers(b, "at", trace->at, report->replay->buckets);
}

/* --------------------------------------------------------------------- sides ---- */

static void add_rule(struct weir__buffer *b, const struct weir__report *report,
                     const struct weir__replay_rule *rule)
{
    weir__buffer_open(b, NULL, '{');
    weir__buffer_member(b, "name", rule->name);
    weir__buffer_member(b, "limits", rule->limits);
    weir__buffer_member(b, "mode", weir_mode_name(rule->mode));
    weir__buffer_member_number(b, "applied", rule->applied);
    weir__buffer_member_number(b, "refused", rule->refused);
    weir__buffer_member_number(b, "banned", rule->banned);
    weir__buffer_member_number(b, "would_refuse", rule->would);
    weir__buffer_member_number(b, "bans", rule->bans);
    if (rule->trace)
        add_trace(b, report, rule->trace);
    weir__buffer_close(b, "}");
}

static void add_side_numbers(struct weir__buffer *b, const struct weir__replay *replay,
                             const struct weir__rule_set *side)
{
    const struct {
        const char *name;
        int64_t n;
    } numbers[] = {
        { "allowed", side->allowed },        { "refused", side->refused },
        { "would_refuse", side->would },     { "no_rule_applied", side->unmatched },
        { "allow_listed", side->listed },    { "waited", side->waited },
        { "wait_most_ns", side->wait_most }, { "evicted_early", side->evicted_early },
        { "bans_lost", side->bans_lost },    { "refusals_not_followed", side->untraced },
        { "would_deny", side->would_deny },
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        weir__buffer_member_number(b, numbers[i].name, numbers[i].n);
    weir__buffer_member_name(b, "refused_share");
    weir__buffer_format(b, "%.9g",
                        replay->requests ? (double)side->refused / (double)replay->requests : 0);
    weir__buffer_open(b, "reasons", '{');
    for (int i = WEIR_LIMITED; i < WEIR__REPLAY_REASONS; i++)
        if (i <= WEIR_DENIED || i >= WEIR_TOO_MANY) /* no guard is asked */
            weir__buffer_member_number(b, weir_reason_name((enum weir_reason)i), side->reasons[i]);
    weir__buffer_close(b, "}");
    weir__buffer_member_numbers(b, "levels", side->levels, 4);
}

static void add_side(struct weir__buffer *b, const struct weir__report *report,
                     const struct weir__rule_set *side)
{
    size_t buckets = report->replay->buckets;

    weir__buffer_open(b, NULL, '{');
    weir__buffer_member(b, "rules_file", side->path);
    add_side_numbers(b, report->replay, side);
    add_distinct(b, "clients_refused", side->clients);
    add_distinct(b, "clients_would", side->clients_would);
    add_hitters(b, "uris", "uri", side->uris, report->top);
    weir__buffer_member_numbers(b, "refused_at", side->refused_at, buckets);
    weir__buffer_member_numbers(b, "would_at", side->would_at, buckets);
    if (side->denied) {
        weir__buffer_open(b, "deny_list", '{');
        add_trace(b, report, side->denied);
        weir__buffer_close(b, "}");
    }
    weir__buffer_open(b, "rules", '[');
    for (size_t i = 0; i < side->n_rules; i++)
        add_rule(b, report, &side->rules[i]);
    weir__buffer_close(b, "]}");
}

/* --------------------------------------------------------------- differences ---- */

/* null: passed */
static void add_refusers(struct weir__buffer *b, const struct weir__replay *replay,
                         const int32_t rule[WEIR__REPLAY_SIDES])
{
    static const char *const names[] = { "refused_here_by", "refused_there_by" };

    for (size_t i = 0; i < WEIR__REPLAY_SIDES; i++)
        weir__buffer_member_or_null(b, names[i],
                                    rule[i] == WEIR__REPLAY_PASSED
                                        ? NULL
                                        : weir__rule_set_rule_name(&replay->sides[i], rule[i]));
}

void weir__report_difference(FILE *out, const struct weir__replay *replay,
                             const struct weir__report_request *r)
{
    struct weir__buffer b = { 0 };

    weir__buffer_open(&b, NULL, '{');
    weir__buffer_member_moment(&b, "time", r->entry->at);
    add_key(&b, "client", r->client);
    add_key(&b, "method", r->method);
    add_key(&b, "uri", r->uri);
    weir__buffer_member_number(&b, "line", r->entry->line);
    add_refusers(&b, replay, r->rule);
    weir__buffer_close(&b, "}\n");
    weir__buffer_print(&b, out);
}

static void add_compare(struct weir__buffer *b, const struct weir__replay *replay)
{
    weir__buffer_open(b, "compare", '{');
    weir__buffer_member_number(b, "differ", replay->differ);
    weir__buffer_member_number(b, "refused_only_here", replay->only[0]);
    weir__buffer_member_number(b, "refused_only_there", replay->only[1]);
    weir__buffer_member_number(b, "refused_by_another_rule", replay->other_rule);
    weir__buffer_member_number(b, "pairs_lost", replay->pairs_lost);
    weir__buffer_open(b, "pairs", '[');
    for (size_t i = 0; i < replay->n_pairs; i++) {
        weir__buffer_open(b, NULL, '{');
        add_refusers(b, replay, replay->pairs[i].rule);
        weir__buffer_member_number(b, "requests", replay->pairs[i].requests);
        weir__buffer_close(b, "}");
    }
    weir__buffer_close(b, "]");
    weir__buffer_open(b, "first", '[');
    for (size_t i = 0; i < replay->n_differences; i++) {
        const struct weir__replay_difference *d = &replay->differences[i];
        weir__buffer_open(b, NULL, '{');
        weir__buffer_member_moment(b, "time", d->at);
        weir__buffer_member(b, "client", d->client);
        weir__buffer_member(b, "method", d->method);
        weir__buffer_member(b, "uri", d->uri);
        add_refusers(b, replay, d->rule);
        weir__buffer_close(b, "}");
    }
    weir__buffer_close(b, "]}");
}

/* ----------------------------------------------------------------- proposals ---- */

static void add_proposal(struct weir__buffer *b, const struct weir__report *report,
                         const struct weir__proposal *p)
{
    bool any = p->limit.count > 0;
    char limit[128];

    weir__buffer_open(b, NULL, '{');
    weir__buffer_member(b, "rule", weir__report_proposal_rule(report, p));
    weir__buffer_member_number(b, "index", (int64_t)p->index);
    weir_limit_print(limit, sizeof(limit), &p->written);
    weir__buffer_member(b, "written", limit);
    weir_limit_print(limit, sizeof(limit), &p->limit);
    weir__buffer_member_or_null(b, "proposed", any ? limit : NULL);
    weir__buffer_member_number_or_null(b, "count", any, p->limit.count);
    weir__buffer_member_number(b, "too_small", p->below);
    weir__buffer_member_bool(b, "exact", any && p->limit.count - p->below <= 1 && !p->sampled);
    weir__buffer_member_number(b, "keys", p->keys);
    weir__buffer_member_bool(b, "sampled", p->sampled);
    weir__buffer_member_bool(b, "few_keys", weir__proposal_has_few_keys(p));
    weir__buffer_member_bool(b, "far_below", weir__proposal_is_far_below(p));
    weir__buffer_member_number(b, "keys_refused_as_written", p->keys_written);
    weir__buffer_member_number(b, "keys_refused_as_proposed", p->keys_proposed);
    weir__buffer_member_numbers(b, "counts", p->counts, p->steps);
    weir__buffer_member_numbers(b, "keys_refused", p->refused, p->steps);
    weir__buffer_close(b, "}");
}

static void add_proposals(struct weir__buffer *b, const struct weir__report *report)
{
    const struct weir__propose *propose = report->replay->propose;
    struct weir__proposal p;

    weir__buffer_member_name(b, "propose_share");
    weir__buffer_format(b, "%.6f", (double)report->replay->options.propose / WEIR__PROPOSE_PPM);
    weir__buffer_open(b, "proposals", '[');
    for (size_t i = 0; i < weir__propose_limits(propose); i++) {
        weir__propose_get(propose, i, &p);
        add_proposal(b, report, &p);
    }
    weir__buffer_close(b, "]");
}

/* ----------------------------------------------------------------- the whole ---- */

static void add_note(void *context, const char *text)
{
    weir__buffer_member(context, NULL, text);
}

static void add_log(struct weir__buffer *b, const struct weir__report *report)
{
    const struct weir__replay *replay = report->replay;

    weir__buffer_open(b, "logs", '[');
    for (size_t i = 0; i < report->n_logs; i++)
        weir__buffer_member(b, NULL, report->logs[i]);
    weir__buffer_close(b, "]");
    weir__buffer_member_bool(b, "partial", replay->partial);
    weir__buffer_member_number(b, "requests", replay->requests);
    weir__buffer_member_number(b, "lines", replay->lines);
    weir__buffer_member_number(b, "bad_lines", replay->bad);
    if (replay->first_bad) {
        weir__buffer_open(b, "first_bad", '{');
        weir__buffer_member_number(b, "line", replay->first_bad);
        weir__buffer_member(b, "file", replay->first_bad_file);
        weir__buffer_member(b, "why", replay->first_bad_why);
        weir__buffer_close(b, "}");
    }
    if (replay->requests) {
        weir__buffer_member_moment(b, "from", replay->first);
        weir__buffer_member_moment(b, "to", replay->last);
    }
    weir__buffer_member_number(b, "late", replay->late);
    weir__buffer_member_number(b, "late_most_ns", replay->late_most);
    weir__buffer_member_number(b, "without_client", replay->nobody);
    weir__buffer_member(b, "client_attribute", replay->options.client);
    add_distinct(b, "clients", replay->clients);
}

void weir__report_json(FILE *out, const struct weir__report *report)
{
    const struct weir__replay *replay = report->replay;
    struct weir__buffer b = { 0 };

    weir__buffer_open(&b, NULL, '{');
    add_log(&b, report);
    weir__buffer_open(&b, "time", '{');
    weir__buffer_member_moment(&b, "from", replay->from);
    weir__buffer_member_number(&b, "width_ns", replay->width);
    weir__buffer_member_numbers(&b, "requests", replay->at, replay->buckets);
    weir__buffer_close(&b, "}");
    if (replay->n_sides == 2)
        add_compare(&b, replay);
    if (replay->propose)
        add_proposals(&b, report);
    weir__buffer_open(&b, "sides", '[');
    for (size_t i = 0; i < replay->n_sides; i++)
        add_side(&b, report, &replay->sides[i]);
    weir__buffer_close(&b, "]");
    weir__buffer_open(&b, "notes", '[');
    weir__report_notes(report, add_note, &b);
    weir__buffer_close(&b, "]}\n");
    weir__buffer_print(&b, out);
}
