/* report-html.c -- a replay's report as one page that fetches nothing: report.html, with its style
 * and script inside.
 *
 * The page's Content-Security-Policy names the script by its hash: even if a text of the log came
 * through as markup, its scripts would not run.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "server/replay/report.h"
#include "server/base/safe-text.h"

static const char place[] = "<!-- report -->\n"; /* where the report goes in the page */

struct page {
    FILE *out;
    const struct weir__report *report;
    const struct weir__replay *replay;
};

/* Like printf, but knows only %s and %%, and makes every text safe. */
__attribute__((format(printf, 2, 3))) static void put(const struct page *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    for (const char *percent; (percent = strchr(format, '%')) != NULL; format = percent + 2) {
        fwrite(format, 1, (size_t)(percent - format), p->out);
        if (percent[1] == 's')
            weir__safe_text(p->out, WEIR__SAFE_MARKUP, va_arg(args, const char *));
        else
            fputc('%', p->out);
    }
    va_end(args);
    fputs(format, p->out);
}

static void put_count(const struct page *p, int64_t n)
{
    char text[WEIR__HUMAN];

    fprintf(p->out, "<td class=\"n\" data-n=\"%lld\">%s</td>", (long long)n,
            weir__human_count(text, n));
}

static void put_share(const struct page *p, int64_t part, int64_t whole)
{
    char text[WEIR__HUMAN];

    fprintf(p->out, "<td class=\"n\" data-n=\"%.9g\">", whole ? (double)part / (double)whole : 0);
    put(p, "%s</td>", weir__human_share(text, part, whole));
}

static void put_bar(const struct page *p, int64_t part, int64_t whole, bool shadow)
{
    double percent = whole > 0 ? 100.0 * (double)part / (double)whole : 0;

    fprintf(p->out, "<td class=\"bar\" data-n=\"%.9g\">", percent);
    if (part > 0)
        fprintf(p->out, "<i%s style=\"width:max(2px,%.2f%%)\"></i>",
                shadow ? " class=\"shadow\"" : "", percent > 100 ? 100 : percent);
    put(p, "</td>");
}

/* A table that can be sorted; a heading that begins with '#' is over numbers. */
static void begin_table(const struct page *p, const char *const *headings)
{
    put(p, "<table class=\"sort\"><thead><tr>");
    for (; *headings; headings++) {
        bool number = **headings == '#';
        put(p, number ? "<th class=\"n\">%s</th>" : "<th>%s</th>", *headings + number);
    }
    put(p, "</tr></thead><tbody>\n");
}

#define TABLE(p, ...) begin_table(p, (const char *const[]){ __VA_ARGS__, NULL })

/* ----------------------------------------------------------------------- head ---- */

static void put_title(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    char a[WEIR__HUMAN], b[WEIR__HUMAN];

    put(p, "<h1>What the rules would have done</h1>\n<p><code>%s</code>", replay->sides[0].path);
    if (replay->n_sides == 2)
        put(p, " (here) beside <code>%s</code> (there)", replay->sides[1].path);
    put(p, " on ");
    for (size_t i = 0; i < p->report->n_logs && i < 8; i++)
        put(p, "%s<code>%s</code>", i ? ", " : "",
            strcmp(p->report->logs[i], "-") == 0 ? "standard input" : p->report->logs[i]);
    if (p->report->n_logs > 8)
        fprintf(p->out, " and %zu more", p->report->n_logs - 8);
    put(p, "</p>\n");
    if (replay->requests)
        put(p, "<p class=\"soft\">%s to %s UTC</p>\n", weir__human_time(a, replay->first, false),
            weir__human_time(b, replay->last, false));
    if (replay->partial)
        put(p, "<p class=\"bad\"><b>Partial: stopped before the log's end.</b></p>\n");
}

static void put_card(const struct page *p, const char *name, const char *where, const char *value,
                     const char *more, bool bad)
{
    put(p, "<div>%s%s<b class=\"%s\">%s</b><small>%s</small></div>\n", name, where,
        bad ? "bad" : "", value, more);
}

static void put_cards(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    int64_t clients = weir__distinct_count(replay->clients);
    char a[WEIR__HUMAN], b[WEIR__HUMAN], more[2 * WEIR__HUMAN + 32];

    put(p, "<section class=\"cards\">\n");
    snprintf(more, sizeof(more), "of %s client%s", weir__human_distinct(b, replay->clients),
             clients == 1 ? "" : "s");
    put_card(p, replay->requests == 1 ? "request" : "requests", "",
             weir__human_count(a, replay->requests), more, false);
    for (size_t i = 0; i < replay->n_sides; i++) {
        const struct weir__rule_set *side = &replay->sides[i];
        int64_t refused = weir__distinct_count(side->clients);
        const char *where = weir__report_where(replay, side);
        put_card(p, "refused", where, weir__human_share(a, side->refused, replay->requests),
                 weir__human_counted(b, side->refused, "request"), side->refused > 0);
        snprintf(more, sizeof(more), "%s of all", weir__human_share(b, refused, clients));
        put_card(p, "clients refused", where, weir__human_distinct(a, side->clients), more,
                 refused > 0);
        snprintf(more, sizeof(more), "%s would be refused",
                 weir__human_counted(b, side->would, "request"));
        if (side->would)
            put_card(p, "in shadow", where, weir__human_share(a, side->would, replay->requests),
                     more, false);
    }
    put(p, "</section>\n");
}

/* --------------------------------------------------------------------- totals ---- */

static void put_totals(const struct page *p)
{
    struct weir__total totals[WEIR__TOTALS];
    size_t n = weir__report_totals(p->replay, totals);

    put(p, "<section><h2>Requests</h2>\n<table><thead><tr><th></th>");
    for (size_t i = 0; i < p->replay->n_sides; i++)
        put(p, "<th class=\"n\">%s</th><th class=\"n\">share</th>",
            p->replay->n_sides == 1 ? "requests"
            : i == 0                ? "here"
                                    : "there");
    put(p, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < n; i++) {
        if (totals[i].whole != p->replay->requests)
            continue; /* clients have cards */
        put(p, totals[i].inner ? "<tr><td>&emsp;%s</td>" : "<tr><td>%s</td>", totals[i].name);
        for (size_t s = 0; s < p->replay->n_sides; s++) {
            put_count(p, totals[i].part[s]);
            put_share(p, totals[i].part[s], p->replay->requests);
        }
        put(p, "</tr>\n");
    }
    put(p, "</tbody></table></section>\n");
}

/* ---------------------------------------------------------------------- rules ---- */

static void put_rule(const struct page *p, const struct weir__replay_rule *rule)
{
    int64_t refused = rule->refused + rule->would;
    char keys[WEIR__HUMAN] = "0";

    put(p,
        "<tr><td><b>%s</b><br><code class=\"soft\">%s</code></td><td><span "
        "class=\"tag\">%s</span></td>",
        rule->name, rule->limits, weir_mode_name(rule->mode));
    put_count(p, rule->applied);
    put_count(p, refused);
    put_share(p, refused, rule->applied);
    put_bar(p, refused, rule->applied, rule->mode != WEIR_ENFORCE);
    if (rule->trace)
        weir__human_distinct(keys, rule->trace->keys);
    fprintf(p->out, "<td class=\"n\" data-n=\"%lld\">%s</td>",
            (long long)(rule->trace ? weir__distinct_count(rule->trace->keys) : 0), keys);
    put_count(p, rule->bans);
    put(p, "</tr>\n");
}

static void put_rules(const struct page *p, const struct weir__rule_set *side)
{
    enum { MOST = 1000 };
    const struct weir__replay_rule **rules = weir__report_rules(side);

    put(p, "<section><h2>Rules%s</h2>\n", weir__report_where(p->replay, side));
    TABLE(p, "rule", "mode", "#applied", "#refused", "#share", "", "#keys", "#bans");
    for (size_t i = 0; rules && i < side->n_rules && i < MOST; i++)
        put_rule(p, rules[i]);
    put(p,
        "</tbody></table>\n<p><small>For rules in shadow: the refusals they would have made. Rules "
        "that are off were not asked.</small></p>");
    if (side->n_rules > MOST)
        fprintf(p->out, "<p><small>And %zu more that did less.</small></p>", side->n_rules - MOST);
    put(p, "</section>\n");
    free(rules);
}

/* ------------------------------------------------------------------ refused most ---- */

static void put_hitters(const struct page *p, const char *title, const char *what,
                        const struct weir__hitters *hitters, bool shadow)
{
    struct weir__hitter *top = malloc((p->report->top + 1) * sizeof(*top));
    size_t n = top ? weir__hitters_top(hitters, top, p->report->top) : 0;

    put(p, "<div><h3>%s", title);
    put(p, shadow ? " <span class=\"tag\">shadow</span></h3>\n" : "</h3>\n");
    TABLE(p, what, "#refused", "");
    for (size_t i = 0; i < n; i++) {
        put(p, "<tr><td><code>%s</code></td>", top[i].text);
        put_count(p, top[i].count);
        put_bar(p, top[i].count, top[0].count, shadow);
        put(p, "</tr>\n");
    }
    put(p, "</tbody></table>\n</div>\n");
    free(top);
}

static void put_keys(const struct page *p, const struct weir__rule_set *side)
{
    const struct weir__replay_rule **rules = weir__report_rules(side);

    if (side->refused + side->would > 0) {
        put(p, "<section><h2>Refused most%s</h2>\n<div class=\"two\">\n",
            weir__report_where(p->replay, side));
        for (size_t i = 0; rules && i < side->n_rules; i++) {
            if (rules[i]->trace)
                put_hitters(p, rules[i]->name, "key", rules[i]->trace->top,
                            rules[i]->mode == WEIR_SHADOW);
        }
        if (side->denied)
            put_hitters(p, "deny list", "client", side->denied->top, side->would_deny > 0);
        if (side->refused)
            put_hitters(p, "URIs", "path", side->uris, false);
        put(p, "</div></section>\n");
    }
    free(rules);
}

/* ----------------------------------------------------------------- differences ---- */

static void put_refusers(const struct page *p, const int32_t rule[WEIR__REPLAY_SIDES])
{
    for (size_t s = 0; s < WEIR__REPLAY_SIDES; s++)
        put(p, "<td class=\"%s\">%s</td>", rule[s] == WEIR__REPLAY_PASSED ? "good" : "bad",
            weir__rule_set_rule_name(&p->replay->sides[s], rule[s]));
}

static void put_differences(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    char a[WEIR__HUMAN], b[WEIR__HUMAN], c[WEIR__HUMAN];

    if (replay->n_sides != 2)
        return;
    put(p, "<section><h2>Decided differently: %s</h2>\n<p>Refused only here: %s; only there: %s.",
        weir__human_counted(a, replay->differ, "request"), weir__human_count(b, replay->only[0]),
        weir__human_count(c, replay->only[1]));
    if (replay->other_rule)
        put(p, " Refused by both, but by rules of different names: %s more.",
            weir__human_count(a, replay->other_rule));
    put(p, "</p>\n");
    TABLE(p, "here", "there", "#requests");
    for (size_t i = 0; i < replay->n_pairs; i++) {
        put(p, "<tr>");
        put_refusers(p, replay->pairs[i].rule);
        put_count(p, replay->pairs[i].requests);
        put(p, "</tr>\n");
    }
    put(p, "</tbody></table>\n<h3>The first of them</h3>\n");
    TABLE(p, "time, UTC", "client", "request", "here", "there");
    for (size_t i = 0; i < replay->n_differences; i++) {
        const struct weir__replay_difference *d = &replay->differences[i];
        put(p, "<tr><td>%s</td><td><code>%s</code></td><td><code>%s %s</code></td>",
            weir__human_time(a, d->at, true), d->client, d->method, d->uri);
        put_refusers(p, d->rule);
        put(p, "</tr>\n");
    }
    put(p, "</tbody></table></section>\n");
}

/* ------------------------------------------------------------------- proposals ---- */

static void put_proposal(const struct page *p, const struct weir__proposal *proposal)
{
    char written[128], proposed[128], words[WEIR__HUMAN];
    bool is_count = proposal->limit.count > 0 && proposal->limit.count - proposal->below <= 1;

    weir_limit_print(written, sizeof(written), &proposal->written);
    weir_limit_print(proposed, sizeof(proposed), &proposal->limit);
    put(p, "<tr><td><b>%s</b></td><td><code>%s</code></td><td class=\"good\"><code>%s</code>",
        weir__report_proposal_rule(p->report, proposal), written,
        is_count ? proposed : weir__human_proposal(words, proposal));
    if (weir__proposal_has_few_keys(proposal))
        put(p, "<br><span class=\"tag\">few keys</span>");
    if (weir__proposal_is_far_below(proposal))
        put(p, "<br><span class=\"tag\">far below the rule's own</span>");
    put(p, "</td>");
    put_count(p, proposal->keys);
    if (proposal->keys_written < 0)
        put(p, "<td class=\"n\" data-n=\"-1\">?</td>");
    else
        put_share(p, proposal->keys_written, proposal->keys);
    put_share(p, proposal->keys_proposed, proposal->keys);
    put(p, "<td>");
    weir__plot_proposal(p->out, proposal, p->replay->options.propose);
    put(p, "</td></tr>\n");
}

static void put_proposals(const struct page *p)
{
    const struct weir__propose *propose = p->replay->propose;
    struct weir__proposal proposal;
    char share[WEIR__HUMAN];

    if (propose == NULL)
        return;
    put(p,
        "<section><h2>Limits that would have refused at most %s of their keys, ever</h2>\n<p "
        "class=\"soft\">Bounds from this log, not recommendations.</p>\n",
        weir__human_share(share, p->replay->options.propose, WEIR__PROPOSE_PPM));
    TABLE(p, "rule", "as written", "proposed", "#keys", "#refused as written", "#as proposed",
          "share refused, from a 16th of the count to 64 times");
    for (size_t i = 0; i < weir__propose_limits(propose); i++) {
        weir__propose_get(propose, i, &proposal);
        put_proposal(p, &proposal);
    }
    put(p, "</tbody></table></section>\n");
}

/* ------------------------------------------------------------------- the whole ---- */

static void put_note(void *context, const char *text)
{
    put(context, "<li>%s</li>\n", text);
}

void weir__report_html(FILE *out, const struct weir__report *report)
{
    struct page p = { out, report, report->replay };
    const char *here = strstr(weir__report_page, place);

    fwrite(weir__report_page, 1, (size_t)(here - weir__report_page), out);
    put_title(&p);
    put_cards(&p);
    put(&p, "<section><h2>Over time</h2>\n");
    for (size_t i = 0; i < p.replay->n_sides; i++)
        weir__plot_timeline(out, report, i);
    put(&p, "</section>\n");
    put_totals(&p);
    put_differences(&p);
    for (size_t i = 0; i < p.replay->n_sides; i++)
        put_rules(&p, &p.replay->sides[i]);
    put_proposals(&p);
    for (size_t i = 0; i < p.replay->n_sides; i++)
        put_keys(&p, &p.replay->sides[i]);
    put(&p, "<section><h2>Notes</h2>\n<ul>\n");
    weir__report_notes(report, put_note, &p);
    put(&p,
        "<li>Made by weir replay %s. Times are UTC; a request counts when the log says it "
        "ended.</li>\n</ul></section>\n",
        weir_version());
    fputs(here + strlen(place), out);
}
