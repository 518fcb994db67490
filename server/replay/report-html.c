/* report-html.c -- a replay's report as one page that fetches nothing: report.html with its style and
 * its script inside.
 *
 * The page's Content-Security-Policy names the script by its hash, so that even if a text from the
 * log came through as markup, no script of its own would run.
 */
#include <stdlib.h>
#include <string.h>

#include "server/replay/report.h"

static const char place[] = "<!-- report -->\n"; /* where the report goes in the page */

struct page {
    FILE *out;
    const struct weir__report *report;
    const struct weir__replay *replay;
};

static void put(const struct page *p, const char *text)
{
    weir__safe_text(p->out, WEIR__SAFE_MARKUP, text);
}

static void put_count(const struct page *p, int64_t n)
{
    char text[WEIR__WORDS];

    fprintf(p->out, "<td class=\"n\" data-n=\"%lld\">%s</td>", (long long)n,
            weir__words_count(text, n));
}

static void put_share(const struct page *p, int64_t part, int64_t whole)
{
    char text[WEIR__WORDS];

    fprintf(p->out, "<td class=\"n\" data-n=\"%.9g\">", whole ? (double)part / (double)whole : 0);
    put(p, weir__words_share(text, part, whole));
    fputs("</td>", p->out);
}

static void put_bar(const struct page *p, int64_t part, int64_t whole, bool shadow)
{
    double percent = whole > 0 ? 100.0 * (double)part / (double)whole : 0;

    fprintf(p->out, "<td class=\"bar\" data-n=\"%.9g\">", percent);
    if (part > 0)
        fprintf(p->out, "<i%s style=\"width:max(2px,%.2f%%)\"></i>",
                shadow ? " class=\"shadow\"" : "", percent > 100 ? 100 : percent);
    fputs("</td>", p->out);
}

/* ----------------------------------------------------------------------- head ---- */

static void put_title(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    char a[WEIR__WORDS], b[WEIR__WORDS];

    fputs("<h1>What the rules would have done</h1>\n<p>", p->out);
    for (size_t i = 0; i < replay->n_sides; i++) {
        fputs(i ? " (here) beside <code>" : "<code>", p->out);
        put(p, replay->sides[i].path);
        fputs("</code>", p->out);
    }
    fputs(replay->n_sides == 2 ? " (there) on " : " on ", p->out);
    for (size_t i = 0; i < p->report->n_logs && i < 8; i++) {
        fputs(i ? ", <code>" : "<code>", p->out);
        put(p, strcmp(p->report->logs[i], "-") == 0 ? "standard input" : p->report->logs[i]);
        fputs("</code>", p->out);
    }
    if (p->report->n_logs > 8)
        fprintf(p->out, " and %zu more", p->report->n_logs - 8);
    fputs("</p>\n", p->out);
    if (replay->requests)
        fprintf(p->out, "<p class=\"soft\">%s to %s UTC</p>\n",
                weir__words_time(a, replay->first, false),
                weir__words_time(b, replay->last, false));
    if (replay->partial)
        fputs("<p class=\"bad\"><b>Partial: stopped before the log's end.</b></p>\n", p->out);
}

static void put_card(const struct page *p, const char *name, const char *value, const char *more,
                     bool bad)
{
    fprintf(p->out, "<div>%s<b%s>", name, bad ? " class=\"bad\"" : "");
    put(p, value);
    fputs("</b><small>", p->out);
    put(p, more);
    fputs("</small></div>\n", p->out);
}

static void put_cards(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    int64_t clients = weir__distinct_count(replay->clients);
    char a[WEIR__WORDS], b[WEIR__WORDS], more[2 * WEIR__WORDS + 32];

    fputs("<section class=\"cards\">\n", p->out);
    snprintf(more, sizeof(more), "of %s client%s", weir__words_distinct(b, replay->clients),
             clients == 1 ? "" : "s");
    put_card(p, replay->requests == 1 ? "request" : "requests",
             weir__words_count(a, replay->requests), more, false);
    for (size_t i = 0; i < replay->n_sides; i++) {
        const struct weir__side *side = &replay->sides[i];
        const char *where = replay->n_sides == 1 ? "" : i == 0 ? " here" : " there";
        char name[32];
        snprintf(name, sizeof(name), "refused%s", where);
        weir__words_counted(more, side->refused, "request");
        put_card(p, name, weir__words_share(a, side->refused, replay->requests), more,
                 side->refused > 0);
        snprintf(name, sizeof(name), "clients refused%s", where);
        snprintf(more, sizeof(more), "%s of all",
                 weir__words_share(b, weir__distinct_count(side->clients), clients));
        put_card(p, name, weir__words_distinct(a, side->clients), more,
                 weir__distinct_count(side->clients) > 0);
        if (side->would) {
            snprintf(name, sizeof(name), "in shadow%s", where);
            snprintf(more, sizeof(more), "%s would be refused",
                     weir__words_counted(b, side->would, "request"));
            put_card(p, name, weir__words_share(a, side->would, replay->requests), more, false);
        }
    }
    fputs("</section>\n", p->out);
}

/* --------------------------------------------------------------------- totals ---- */

static void put_total(const struct page *p, const char *name, int64_t here, int64_t there)
{
    int64_t parts[WEIR__REPLAY_SIDES] = { here, there };

    fprintf(p->out, "<tr><td>%s</td>", name);
    for (size_t i = 0; i < p->replay->n_sides; i++) {
        put_count(p, parts[i]);
        put_share(p, parts[i], p->replay->requests);
    }
    fputs("</tr>\n", p->out);
}

static void put_totals(const struct page *p)
{
    const struct weir__side *a = &p->replay->sides[0],
                            *b = &p->replay->sides[p->replay->n_sides - 1];

    fputs("<section><h2>Requests</h2>\n<table><thead><tr><th></th>", p->out);
    for (size_t i = 0; i < p->replay->n_sides; i++)
        fprintf(p->out, "<th class=\"n\">%s</th><th class=\"n\">share</th>",
                p->replay->n_sides == 1 ? "requests"
                : i == 0                ? "here"
                                        : "there");
    fputs("</tr></thead><tbody>\n", p->out);
    put_total(p, "allowed", a->allowed, b->allowed);
    put_total(p, "refused", a->refused, b->refused);
    put_total(p, "&emsp;over a limit", a->reasons[WEIR_LIMITED], b->reasons[WEIR_LIMITED]);
    put_total(p, "&emsp;too big for it", a->reasons[WEIR_TOO_BIG], b->reasons[WEIR_TOO_BIG]);
    put_total(p, "&emsp;banned", a->reasons[WEIR_BANNED], b->reasons[WEIR_BANNED]);
    put_total(p, "&emsp;on the deny list", a->reasons[WEIR_DENIED], b->reasons[WEIR_DENIED]);
    put_total(p, "in shadow: would have been refused", a->would, b->would);
    if (a->would_deny || b->would_deny)
        put_total(p, "&emsp;on the deny list", a->would_deny, b->would_deny);
    put_total(p, "allowed after a wait", a->waited, b->waited);
    put_total(p, "on the allow list", a->listed, b->listed);
    put_total(p, "no rule applied", a->unmatched, b->unmatched);
    put_total(p, "level 1: less than half was left", a->levels[1], b->levels[1]);
    put_total(p, "level 2: less than an eighth was left", a->levels[2], b->levels[2]);
    fputs("</tbody></table></section>\n", p->out);
}

/* ---------------------------------------------------------------------- rules ---- */

static void put_rule(const struct page *p, const struct weir__replay_rule *rule)
{
    int64_t refused = rule->refused + rule->would;
    char keys[WEIR__WORDS] = "0";

    fputs("<tr><td><b>", p->out);
    put(p, rule->name);
    fputs("</b><br><code class=\"soft\">", p->out);
    put(p, rule->limits);
    fprintf(p->out, "</code></td><td><span class=\"tag\">%s</span></td>",
            weir_mode_name(rule->mode));
    put_count(p, rule->applied);
    put_count(p, refused);
    put_share(p, refused, rule->applied);
    put_bar(p, refused, rule->applied, rule->mode != WEIR_ENFORCE);
    if (rule->trace)
        weir__words_distinct(keys, rule->trace->keys);
    fprintf(p->out, "<td class=\"n\" data-n=\"%lld\">%s</td>",
            (long long)(rule->trace ? weir__distinct_count(rule->trace->keys) : 0), keys);
    put_count(p, rule->bans);
    fputs("</tr>\n", p->out);
}

static void put_rules(const struct page *p, const struct weir__side *side, const char *where)
{
    enum { MOST = 1000 };
    const struct weir__replay_rule **rules = weir__report_rules(side);

    fprintf(p->out,
            "<section><h2>Rules%s</h2>\n<table "
            "class=\"sort\"><thead><tr><th>rule</th><th>mode</th><th class=\"n\">applied</th>"
            "<th class=\"n\">refused</th><th class=\"n\">share</th><th></th><th "
            "class=\"n\">keys</th><th "
            "class=\"n\">bans</th></tr></thead><tbody>\n",
            where);
    for (size_t i = 0; rules && i < side->n_rules && i < MOST; i++)
        put_rule(p, rules[i]);
    fputs("</tbody></table>\n<p><small>Of rules in shadow: what they would have refused.  Rules "
          "that are off were not asked.</small></p>",
          p->out);
    if (side->n_rules > MOST)
        fprintf(p->out, "<p><small>And %zu more that did less.</small></p>", side->n_rules - MOST);
    fputs("</section>\n", p->out);
    free(rules);
}

/* ----------------------------------------------------------------- who was refused ---- */

static void put_hitters(const struct page *p, const char *what, const struct weir__hitters *hitters,
                        bool shadow)
{
    struct weir__hitter *top = malloc((p->report->top + 1) * sizeof(*top));
    size_t n = top ? weir__hitters_top(hitters, top, p->report->top) : 0;

    fprintf(p->out,
            "<table class=\"sort\"><thead><tr><th>%s</th><th "
            "class=\"n\">refused</th><th></th></tr></thead><tbody>\n",
            what);
    for (size_t i = 0; i < n; i++) {
        fputs("<tr><td><code>", p->out);
        put(p, top[i].text);
        fputs("</code></td>", p->out);
        put_count(p, top[i].count);
        put_bar(p, top[i].count, top[0].count, shadow);
        fputs("</tr>\n", p->out);
    }
    fputs("</tbody></table>\n", p->out);
    free(top);
}

static void put_keys(const struct page *p, const struct weir__side *side, const char *where)
{
    const struct weir__replay_rule **rules = weir__report_rules(side);

    if (side->refused + side->would == 0) {
        free(rules);
        return;
    }
    fprintf(p->out, "<section><h2>Refused most%s</h2>\n<div class=\"two\">\n", where);
    for (size_t i = 0; rules && i < side->n_rules; i++) {
        if (rules[i]->trace == NULL)
            continue;
        fputs("<div><h3>", p->out);
        put(p, rules[i]->name);
        fputs(rules[i]->mode == WEIR_SHADOW ? " <span class=\"tag\">shadow</span></h3>\n"
                                            : "</h3>\n",
              p->out);
        put_hitters(p, "key", rules[i]->trace->top, rules[i]->mode == WEIR_SHADOW);
        fputs("</div>\n", p->out);
    }
    free(rules);
    if (side->denied) {
        fputs(side->would_deny ? "<div><h3>deny list <span class=\"tag\">shadow</span></h3>\n"
                               : "<div><h3>deny list</h3>\n",
              p->out);
        put_hitters(p, "client", side->denied->top, side->would_deny > 0);
        fputs("</div>\n", p->out);
    }
    if (side->refused) {
        fputs("<div><h3>URIs</h3>\n", p->out);
        put_hitters(p, "path", side->uris, false);
        fputs("</div>\n", p->out);
    }
    fputs("</div></section>\n", p->out);
}

/* ----------------------------------------------------------------- differences ---- */

static void put_refuser(const struct page *p, size_t side, int32_t rule)
{
    fprintf(p->out, "<td class=\"%s\">", rule == WEIR__REPLAY_PASSED ? "good" : "bad");
    put(p, weir__side_rule_name(&p->replay->sides[side], rule));
    fputs("</td>", p->out);
}

static void put_difference(const struct page *p, const struct weir__replay_difference *d)
{
    char time[WEIR__WORDS];

    fprintf(p->out, "<tr><td>%s</td><td><code>", weir__words_time(time, d->at, true));
    put(p, d->client);
    fputs("</code></td><td><code>", p->out);
    put(p, d->method);
    fputs(" ", p->out);
    put(p, d->uri);
    fputs("</code></td>", p->out);
    put_refuser(p, 0, d->rule[0]);
    put_refuser(p, 1, d->rule[1]);
    fputs("</tr>\n", p->out);
}

static void put_differences(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    char a[WEIR__WORDS], b[WEIR__WORDS], c[WEIR__WORDS];

    if (replay->n_sides != 2)
        return;
    fprintf(p->out,
            "<section><h2>Decided differently: %s</h2>\n<p>Refused only here: %s; only there: %s.",
            weir__words_counted(a, replay->differ, "request"),
            weir__words_count(b, replay->only[0]), weir__words_count(c, replay->only[1]));
    if (replay->other_rule)
        fprintf(p->out, "  Refused by both, but by rules of different names: %s more.",
                weir__words_count(a, replay->other_rule));
    fputs("</p>\n<table class=\"sort\"><thead><tr><th>here</th><th>there</th><th "
          "class=\"n\">requests</th></tr></thead><tbody>\n",
          p->out);
    for (size_t i = 0; i < replay->n_pairs; i++) {
        fputs("<tr>", p->out);
        put_refuser(p, 0, replay->pairs[i].rule[0]);
        put_refuser(p, 1, replay->pairs[i].rule[1]);
        put_count(p, replay->pairs[i].requests);
        fputs("</tr>\n", p->out);
    }
    fputs(
        "</tbody></table>\n<h3>The first of them</h3>\n<table class=\"sort\"><thead><tr><th>time, "
        "UTC</th><th>client</th><th>request</th><th>here</th>"
        "<th>there</th></tr></thead><tbody>\n",
        p->out);
    for (size_t i = 0; i < replay->n_differences; i++)
        put_difference(p, &replay->differences[i]);
    fputs("</tbody></table></section>\n", p->out);
}

/* ------------------------------------------------------------------- proposals ---- */

static void put_proposal(const struct page *p, const struct weir__proposal *proposal)
{
    char limit[128], words[WEIR__WORDS];
    bool is_count = proposal->limit.count > 0 && proposal->limit.count - proposal->below <= 1;

    fputs("<tr><td><b>", p->out);
    put(p, weir__report_proposal_rule(p->report, proposal));
    weir_limit_print(limit, sizeof(limit), &proposal->written);
    fputs("</b></td><td><code>", p->out);
    put(p, limit);
    fputs("</code></td><td class=\"good\"><code>", p->out);
    weir_limit_print(limit, sizeof(limit), &proposal->limit);
    put(p, is_count ? limit : weir__words_proposal(words, proposal));
    fputs("</code>", p->out);
    fputs(weir__proposal_has_few_keys(proposal) ? "<br><span class=\"tag\">few keys</span>" : "",
          p->out);
    fputs(weir__proposal_is_far_below(proposal)
              ? "<br><span class=\"tag\">far below what is written</span>"
              : "",
          p->out);
    fputs("</td>", p->out);
    put_count(p, proposal->keys);
    if (proposal->keys_written < 0)
        fputs("<td class=\"n\" data-n=\"-1\">?</td>", p->out);
    else
        put_share(p, proposal->keys_written, proposal->keys);
    put_share(p, proposal->keys_proposed, proposal->keys);
    fputs("<td>", p->out);
    weir__plot_proposal(p->out, proposal, p->replay->options.propose);
    fputs("</td></tr>\n", p->out);
}

static void put_proposals(const struct page *p)
{
    const struct weir__propose *propose = p->replay->propose;
    struct weir__proposal proposal;
    char share[WEIR__WORDS];

    if (propose == NULL)
        return;
    fputs("<section><h2>Limits that would have refused at most ", p->out);
    put(p, weir__words_share(share, p->replay->options.propose, WEIR__PROPOSE_PPM));
    fputs(" of their keys, ever</h2>\n<p class=\"soft\">Bounds from this log, no "
          "recommendation.</p>\n<table "
          "class=\"sort\"><thead><tr><th>rule</th><th>as written</th><th>proposed</th><th "
          "class=\"n\">keys</th>"
          "<th class=\"n\">refused as written</th><th class=\"n\">as proposed</th><th>share "
          "refused, from a 16th of the count to 64 "
          "times</th>"
          "</tr></thead><tbody>\n",
          p->out);
    for (size_t i = 0; i < weir__propose_limits(propose); i++) {
        weir__propose_get(propose, i, &proposal);
        put_proposal(p, &proposal);
    }
    fputs("</tbody></table></section>\n", p->out);
}

/* ------------------------------------------------------------------- the whole ---- */

static void put_note(void *context, const char *text)
{
    const struct page *p = context;

    fputs("<li>", p->out);
    put(p, text);
    fputs("</li>\n", p->out);
}

void weir__report_html(FILE *out, const struct weir__report *report)
{
    struct page p = { out, report, report->replay };
    bool two = p.replay->n_sides == 2;
    const char *here = strstr(weir__report_page, place);

    fwrite(weir__report_page, 1, (size_t)(here - weir__report_page), out);
    put_title(&p);
    put_cards(&p);
    fputs("<section><h2>Over time</h2>\n", out);
    for (size_t i = 0; i < p.replay->n_sides; i++)
        weir__plot_timeline(out, report, i);
    fputs("</section>\n", out);
    put_totals(&p);
    put_differences(&p);
    for (size_t i = 0; i < p.replay->n_sides; i++)
        put_rules(&p, &p.replay->sides[i], !two ? "" : i == 0 ? " here" : " there");
    put_proposals(&p);
    for (size_t i = 0; i < p.replay->n_sides; i++)
        put_keys(&p, &p.replay->sides[i], !two ? "" : i == 0 ? " here" : " there");
    fputs("<section><h2>Notes</h2>\n<ul>\n", out);
    weir__report_notes(report, put_note, &p);
    fprintf(out,
            "<li>Made by weir replay %s.  Times are UTC; a request counts when the log says it "
            "ended.</li>\n</ul></section>\n",
            weir_version());
    fputs(here + strlen(place), out);
}
