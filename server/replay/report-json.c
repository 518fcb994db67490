/* report-json.c -- a replay's report for programs: everything that is known, and the requests
 * that two rule sets decide differently.
 *
 * Counts are integers, times are texts in UTC, spans are nanoseconds.  What may be inexact says so:
 * {"count": 12345, "exact": false}.
 */
#include <stdlib.h>
#include <string.h>

#include "server/replay/report.h"

static void put_text(FILE *out, const char *text, size_t len)
{
    fputc('"', out);
    weir__safe_put(out, WEIR__SAFE_JSON, text, len);
    fputc('"', out);
}

static void put_name(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\": ", name);
    put_text(out, text, strlen(text));
}

static void put_number(FILE *out, const char *name, int64_t n)
{
    fprintf(out, "\"%s\": %lld", name, (long long)n);
}

/* "2025-11-15T08:00:00.123Z" */
static void put_time(FILE *out, const char *name, weir_time at)
{
    char text[WEIR__WORDS];

    weir__words_time(text, at, true);
    text[10] = 'T';
    fprintf(out, "\"%s\": \"%sZ\"", name, text);
}

static void put_distinct(FILE *out, const char *name, const struct weir__distinct *distinct)
{
    fprintf(out, "\"%s\": { \"count\": %lld, \"exact\": %s }", name,
            (long long)weir__distinct_count(distinct),
            weir__distinct_is_exact(distinct) ? "true" : "false");
}

static void put_list(FILE *out, const char *name, const int64_t *values, size_t n)
{
    fprintf(out, "\"%s\": [", name);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%lld", i ? "," : "", (long long)values[i]);
    fputc(']', out);
}

static void put_hitters(FILE *out, const char *name, const char *what,
                        const struct weir__hitters *hitters, size_t max)
{
    struct weir__hitter *top = malloc((max + 1) * sizeof(*top));
    size_t n = top ? weir__hitters_top(hitters, top, max) : 0;

    fprintf(out, "\"%s\": [", name);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", { " : "{ ", out);
        put_name(out, what, top[i].text);
        fprintf(out, ", \"refused\": %lld, \"error\": %lld }", (long long)top[i].count,
                (long long)top[i].error);
    }
    fputc(']', out);
    free(top);
}

static void put_trace(FILE *out, const struct weir__report *report,
                      const struct weir__replay_trace *trace)
{
    put_distinct(out, "keys", trace->keys);
    fputs(", ", out);
    put_hitters(out, "top", "key", trace->top, report->top);
    fputs(", ", out);
    put_list(out, "at", trace->at, report->replay->buckets);
}

/* --------------------------------------------------------------------- sides ---- */

static void put_rule(FILE *out, const struct weir__report *report,
                     const struct weir__replay_rule *rule)
{
    fputs("      { ", out);
    put_name(out, "name", rule->name);
    fputs(", ", out);
    put_name(out, "limits", rule->limits);
    fputs(", ", out);
    put_name(out, "mode", weir_mode_name(rule->mode));
    fprintf(out,
            ", \"applied\": %lld, \"refused\": %lld, \"banned\": %lld, \"would_refuse\": %lld, "
            "\"bans\": %lld",
            (long long)rule->applied, (long long)rule->refused, (long long)rule->banned,
            (long long)rule->would, (long long)rule->bans);
    if (rule->trace) {
        fputs(", ", out);
        put_trace(out, report, rule->trace);
    }
    fputs(" }", out);
}

static void put_reasons(FILE *out, const struct weir__side *side)
{
    fputs("\"reasons\": { ", out);
    for (int i = WEIR_LIMITED; i < WEIR__REPLAY_REASONS; i++)
        fprintf(out, "%s\"%s\": %lld", i > WEIR_LIMITED ? ", " : "",
                weir_reason_name((enum weir_reason)i), (long long)side->reasons[i]);
    fputs(" }", out);
}

static void put_side_numbers(FILE *out, const struct weir__replay *replay,
                             const struct weir__side *side)
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

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        put_number(out, numbers[i].name, numbers[i].n);
        fputs(", ", out);
    }
    fprintf(out, "\"refused_share\": %.9g",
            replay->requests ? (double)side->refused / (double)replay->requests : 0);
}

static void put_side(FILE *out, const struct weir__report *report, const struct weir__side *side)
{
    fputs("    { ", out);
    put_name(out, "rules_file", side->path);
    fputs(",\n      ", out);
    put_side_numbers(out, report->replay, side);
    fputs(",\n      ", out);
    put_reasons(out, side);
    fputs(", ", out);
    put_list(out, "levels", side->levels, 4);
    fputs(", ", out);
    put_distinct(out, "clients_refused", side->clients);
    fputs(", ", out);
    put_distinct(out, "clients_would", side->clients_would);
    fputs(",\n      ", out);
    put_hitters(out, "uris", "uri", side->uris, report->top);
    fputs(",\n      ", out);
    put_list(out, "refused_at", side->refused_at, report->replay->buckets);
    fputs(", ", out);
    put_list(out, "would_at", side->would_at, report->replay->buckets);
    if (side->denied) {
        fputs(",\n      \"deny_list\": { ", out);
        put_trace(out, report, side->denied);
        fputs(" }", out);
    }
    fputs(",\n      \"rules\": [\n", out);
    for (size_t i = 0; i < side->n_rules; i++) {
        fputs(i ? ",\n" : "", out);
        put_rule(out, report, &side->rules[i]);
    }
    fputs("\n      ] }", out);
}

/* --------------------------------------------------------------- differences ---- */

/* null: passed */
static void put_refuser(FILE *out, const char *name, const struct weir__side *side, int32_t rule)
{
    if (rule == WEIR__REPLAY_PASSED)
        fprintf(out, "\"%s\": null", name);
    else
        put_name(out, name, weir__side_rule_name(side, rule));
}

static void put_refusers(FILE *out, const struct weir__replay *replay,
                         const int32_t rule[WEIR__REPLAY_SIDES])
{
    put_refuser(out, "refused_here_by", &replay->sides[0], rule[0]);
    fputs(", ", out);
    put_refuser(out, "refused_there_by", &replay->sides[1], rule[1]);
}

void weir__report_difference(FILE *out, const struct weir__replay *replay,
                             const struct weir__log_entry *entry, struct weir_key client,
                             struct weir_key method, struct weir_key uri,
                             const int32_t rule[WEIR__REPLAY_SIDES])
{
    fputs("{ ", out);
    put_time(out, "time", entry->at);
    fputs(", \"client\": ", out);
    put_text(out, client.bytes, client.len);
    fputs(", \"method\": ", out);
    put_text(out, method.bytes, method.len);
    fputs(", \"uri\": ", out);
    put_text(out, uri.bytes, uri.len);
    fprintf(out, ", \"line\": %lld, ", (long long)entry->line);
    put_refusers(out, replay, rule);
    fputs(" }\n", out);
}

static void put_compare(FILE *out, const struct weir__replay *replay)
{
    fprintf(out,
            "  \"compare\": { \"differ\": %lld, \"refused_only_here\": %lld, "
            "\"refused_only_there\": %lld, \"refused_by_another_rule\": %lld, "
            "\"pairs_lost\": %lld,\n    \"pairs\": [",
            (long long)replay->differ, (long long)replay->only[0], (long long)replay->only[1],
            (long long)replay->other_rule, (long long)replay->pairs_lost);
    for (size_t i = 0; i < replay->n_pairs; i++) {
        fputs(i ? ", { " : "{ ", out);
        put_refusers(out, replay, replay->pairs[i].rule);
        fprintf(out, ", \"requests\": %lld }", (long long)replay->pairs[i].requests);
    }
    fputs("],\n    \"first\": [", out);
    for (size_t i = 0; i < replay->n_differences; i++) {
        const struct weir__replay_difference *d = &replay->differences[i];
        fputs(i ? ",\n      { " : "\n      { ", out);
        put_time(out, "time", d->at);
        fputs(", ", out);
        put_name(out, "client", d->client);
        fputs(", ", out);
        put_name(out, "method", d->method);
        fputs(", ", out);
        put_name(out, "uri", d->uri);
        fputs(", ", out);
        put_refusers(out, replay, d->rule);
        fputs(" }", out);
    }
    fputs("] },\n", out);
}

/* ----------------------------------------------------------------- proposals ---- */

static void put_proposal(FILE *out, const struct weir__report *report,
                         const struct weir__proposal *p)
{
    char limit[128];

    fputs("    { ", out);
    put_name(out, "rule", weir__report_proposal_rule(report, p));
    weir_limit_print(limit, sizeof(limit), &p->written);
    fprintf(out, ", \"index\": %zu, \"written\": \"%s\", ", p->index, limit);
    weir_limit_print(limit, sizeof(limit), &p->limit);
    if (p->limit.count > 0)
        fprintf(out, "\"proposed\": \"%s\", \"count\": %lld", limit, (long long)p->limit.count);
    else
        fputs("\"proposed\": null, \"count\": null", out);
    fprintf(out, ", \"too_small\": %lld, \"exact\": %s, ", (long long)p->below,
            p->limit.count > 0 && p->limit.count - p->below <= 1 && !p->sampled ? "true" : "false");
    fprintf(out, "\"keys\": %lld, \"sampled\": %s, ", (long long)p->keys,
            p->sampled ? "true" : "false");
    fprintf(out, "\"few_keys\": %s, \"far_below\": %s, ",
            weir__proposal_has_few_keys(p) ? "true" : "false",
            weir__proposal_is_far_below(p) ? "true" : "false");
    put_number(out, "keys_refused_as_written", p->keys_written);
    fputs(", ", out);
    put_number(out, "keys_refused_as_proposed", p->keys_proposed);
    fputs(", ", out);
    put_list(out, "counts", p->counts, p->steps);
    fputs(", ", out);
    put_list(out, "keys_refused", p->refused, p->steps);
    fputs(" }", out);
}

static void put_proposals(FILE *out, const struct weir__report *report)
{
    const struct weir__propose *propose = report->replay->propose;
    struct weir__proposal p;

    fprintf(out, "  \"propose_share\": %.6f,\n  \"proposals\": [\n",
            (double)report->replay->options.propose / WEIR__PROPOSE_PPM);
    for (size_t i = 0; i < weir__propose_limits(propose); i++) {
        weir__propose_get(propose, i, &p);
        fputs(i ? ",\n" : "", out);
        put_proposal(out, report, &p);
    }
    fputs("\n  ],\n", out);
}

/* ----------------------------------------------------------------- the whole ---- */

struct notes {
    FILE *out;
    int n;
};

static void put_note(void *context, const char *text)
{
    struct notes *notes = context;

    fputs(notes->n++ ? ", " : "", notes->out);
    put_text(notes->out, text, strlen(text));
}

static void put_log(FILE *out, const struct weir__report *report)
{
    const struct weir__replay *replay = report->replay;

    fputs("  \"logs\": [", out);
    for (size_t i = 0; i < report->n_logs; i++) {
        fputs(i ? ", " : "", out);
        put_text(out, report->logs[i], strlen(report->logs[i]));
    }
    fprintf(out,
            "],\n  \"partial\": %s, \"requests\": %lld, \"lines\": %lld, \"bad_lines\": %lld,\n",
            replay->partial ? "true" : "false", (long long)replay->requests,
            (long long)replay->lines, (long long)replay->bad);
    if (replay->first_bad) {
        fprintf(out, "  \"first_bad\": { \"line\": %lld, ", (long long)replay->first_bad);
        put_name(out, "file", replay->first_bad_file);
        fputs(", ", out);
        put_name(out, "why", replay->first_bad_why);
        fputs(" },\n", out);
    }
    if (replay->requests) {
        fputs("  ", out);
        put_time(out, "from", replay->first);
        fputs(", ", out);
        put_time(out, "to", replay->last);
        fputs(",\n", out);
    }
    fprintf(out, "  \"late\": %lld, \"late_most_ns\": %lld, \"without_client\": %lld,\n  ",
            (long long)replay->late, (long long)replay->late_most, (long long)replay->nobody);
    put_name(out, "client_attribute", replay->options.client);
    fputs(", ", out);
    put_distinct(out, "clients", replay->clients);
    fputs(",\n", out);
}

void weir__report_json(FILE *out, const struct weir__report *report)
{
    const struct weir__replay *replay = report->replay;
    struct notes notes = { out, 0 };

    fputs("{\n", out);
    put_log(out, report);
    fputs("  \"time\": { ", out);
    put_time(out, "from", replay->from);
    fprintf(out, ", \"width_ns\": %lld, ", (long long)replay->width);
    put_list(out, "requests", replay->at, replay->buckets);
    fputs(" },\n", out);
    if (replay->n_sides == 2)
        put_compare(out, replay);
    if (replay->propose)
        put_proposals(out, report);
    fputs("  \"sides\": [\n", out);
    for (size_t i = 0; i < replay->n_sides; i++) {
        fputs(i ? ",\n" : "", out);
        put_side(out, report, &replay->sides[i]);
    }
    fputs("\n  ],\n  \"notes\": [", out);
    weir__report_notes(report, put_note, &notes);
    fputs("]\n}\n", out);
}
