/* report-text.c -- a replay's report for the terminal. */
#include <stdlib.h>
#include <string.h>

#include "server/replay/report.h"
#include "server/base/safe-text.h"
#include "server/base/terminal.h"

struct page {
    FILE *out;
    const struct weir__report *report;
    const struct weir__replay *replay;
    size_t width;
    int notes; /* printed so far */
    struct weir__colours c;
};

static struct page open_page(FILE *out, const struct weir__report *report)
{
    size_t width = report->width < 60 ? 60 : report->width > 120 ? 120 : report->width;

    return (struct page){ .out = out,
                          .report = report,
                          .replay = report->replay,
                          .width = width,
                          .c = weir__colours(report->colours) };
}

static void heading(const struct page *p, const char *text)
{
    fprintf(p->out, "\n%s%s%s\n", p->c.bold, text, p->c.off);
}

/* Characters, as a terminal shows them. */
static size_t count_columns(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

/* A text of the log, cut or padded to a width. */
static void put_field(const struct page *p, const char *text, size_t width)
{
    size_t len = strlen(text), columns = count_columns(text, len);

    if (columns > width) {
        size_t kept = 0, at = 0;
        while (kept < width - 1) {
            do
                at++;
            while (((unsigned char)text[at] & 0xC0) == 0x80);
            kept++;
        }
        weir__safe_put(p->out, WEIR__SAFE_TERMINAL, text, at);
        fputs("…", p->out);
        return;
    }
    weir__safe_put(p->out, WEIR__SAFE_TERMINAL, text, len);
    fprintf(p->out, "%*s", (int)(width - columns), "");
}

static void put_bar(const struct page *p, const char *colour, int64_t part, int64_t whole,
                    size_t width)
{
    fputs(colour, p->out);
    weir__human_bar(p->out, (double)part, (double)whole, (int)width);
    fputs(p->c.off, p->out);
}

/* ------------------------------------------------------------------ over time ---- */

enum { ROWS = 3, COLUMNS_MAX = 120 };

/* The buckets in `columns` columns; each shows its largest, so that no peak is lost. */
static int64_t sample(const struct page *p, const int64_t *at, int64_t *out, size_t columns)
{
    size_t n = p->replay->buckets;
    int64_t most = 0;

    for (size_t c = 0; c < columns; c++) {
        size_t from = c * n / columns, to = (c + 1) * n / columns;
        out[c] = 0;
        for (size_t i = from; i < (to > from ? to : from + 1); i++)
            out[c] = at[i] > out[c] ? at[i] : out[c];
        most = out[c] > most ? out[c] : most;
    }
    return most;
}

static void draw_columns(const struct page *p, const char *name, const char *colour,
                         const int64_t *at, size_t columns)
{
    int64_t values[COLUMNS_MAX], most = sample(p, at, values, columns);
    char count[WEIR__HUMAN];

    for (int row = ROWS - 1; row >= 0; row--) {
        fprintf(p->out, "  %-9s %s", row == 0 ? name : "", colour);
        for (size_t c = 0; c < columns; c++) {
            int64_t eighths =
                most ? (int64_t)((double)values[c] / (double)most * 8 * ROWS + 0.999) - 8 * row : 0;
            fputs(weir__human_column(eighths), p->out);
        }
        if (row == ROWS - 1)
            fprintf(p->out, "%s %s%s", p->c.dim, most ? "▔" : "",
                    most ? weir__human_count(count, most) : "none");
        fprintf(p->out, "%s\n", p->c.off);
    }
}

static void draw_time(const struct page *p, size_t columns)
{
    weir_time span = (weir_time)p->replay->buckets * p->replay->width;
    size_t marks = columns / 14 + 1;
    char text[WEIR__HUMAN];
    weir_time step = span / (weir_time)marks;

    fprintf(p->out, "  %-9s %s", "", p->c.dim);
    for (size_t i = 0; i < marks; i++) {
        weir_time at = p->replay->from + (weir_time)i * step;
        weir__human_clock(text, at - at % WEIR_SECOND, step);
        fprintf(p->out, "%-*s", (int)((i + 1) * columns / marks - i * columns / marks), text);
    }
    fprintf(p->out, "%s\n", p->c.off);
}

static void draw_timeline(const struct page *p)
{
    size_t columns = p->width - 24, n = p->replay->buckets;
    char width[WEIR__HUMAN], title[WEIR__HUMAN + 32];

    if (n == 0)
        return;
    if (n < columns)
        columns = columns / n * n; /* whole columns for each */
    snprintf(title, sizeof(title), "over time, in each %s (UTC)",
             weir__human_width(width, p->replay->width));
    heading(p, title);
    draw_columns(p, "requests", p->c.note, p->replay->at, columns);
    for (size_t i = 0; i < p->replay->n_sides; i++) {
        const struct weir__rule_set *side = &p->replay->sides[i];
        draw_columns(p,
                     p->replay->n_sides == 1 ? "refused"
                     : i == 0                ? "here"
                                             : "there",
                     p->c.bad, side->refused_at, columns);
        if (side->would)
            draw_columns(p, "in shadow", p->c.dim, side->would_at, columns);
    }
    draw_time(p, columns);
}

/* --------------------------------------------------------------------- totals ---- */

static void put_head(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    char a[WEIR__HUMAN], b[WEIR__HUMAN];

    fprintf(p->out, "%sweir replay%s  ", p->c.bold, p->c.off);
    weir__safe_text(p->out, WEIR__SAFE_TERMINAL, replay->sides[0].path);
    if (replay->n_sides == 2) {
        fputs(" (here), ", p->out);
        weir__safe_text(p->out, WEIR__SAFE_TERMINAL, replay->sides[1].path);
        fputs(" (there)", p->out);
    }
    fputs(" on ", p->out);
    if (p->report->n_logs == 1)
        weir__safe_text(p->out, WEIR__SAFE_TERMINAL,
                        strcmp(p->report->logs[0], "-") == 0 ? "standard input"
                                                             : p->report->logs[0]);
    else
        fprintf(p->out, "%zu logs", p->report->n_logs);
    fprintf(p->out, "\n%s of %s client%s", weir__human_counted(a, replay->requests, "request"),
            weir__human_distinct(b, replay->clients),
            weir__distinct_count(replay->clients) == 1 ? "" : "s");
    if (replay->requests)
        fprintf(p->out, ", %s to %s UTC", weir__human_time(a, replay->first, false),
                weir__human_time(b, replay->last, false));
    fprintf(p->out, "%s%s%s\n", p->c.bad,
            replay->partial ? "  PARTIAL: stopped before the end" : "", p->c.off);
}

static void put_total(const struct page *p, const struct weir__total *t)
{
    char count[WEIR__HUMAN], share[WEIR__HUMAN];

    fprintf(p->out, "  %s%-*s", t->inner ? "  " : "", t->inner ? 22 : 24, t->name);
    for (size_t i = 0; i < p->replay->n_sides; i++) {
        const char *colour = t->bad && t->part[i] ? p->c.bad : "";
        weir__human_count(count, t->part[i]);
        fprintf(p->out, "%s%s%*s%s  %-9s", colour, t->about ? "~" : " ", 12, count,
                *colour ? p->c.off : "", weir__human_share(share, t->part[i], t->whole));
    }
    if (p->replay->n_sides == 1)
        put_bar(p, t->bad ? p->c.bad : p->c.good, t->part[0], t->whole,
                p->width > 74 ? p->width - 54 : 20);
    fputc('\n', p->out);
}

static void put_totals(const struct page *p)
{
    struct weir__total totals[WEIR__TOTALS];
    size_t n = weir__report_totals(p->replay, totals);

    fputc('\n', p->out);
    if (p->replay->n_sides == 2)
        fprintf(p->out, "  %-24s%s%13s%24s%s\n", "", p->c.dim, "here", "there", p->c.off);
    for (size_t i = 0; i < n; i++)
        put_total(p, &totals[i]);
}

/* ---------------------------------------------------------------------- rules ---- */

static void put_rule(const struct page *p, const struct weir__replay_rule *rule, size_t name_width)
{
    int64_t refused = rule->refused + rule->would;
    char a[WEIR__HUMAN], b[WEIR__HUMAN], c[WEIR__HUMAN], d[WEIR__HUMAN] = "";
    size_t used = name_width + 59;

    if (rule->trace)
        weir__human_distinct(d, rule->trace->keys);
    fputs("  ", p->out);
    put_field(p, rule->name, name_width);
    fprintf(p->out, " %s%-7s%s %12s %s%12s%s %9s %8s ", rule->mode == WEIR_ENFORCE ? "" : p->c.dim,
            weir_mode_name(rule->mode), rule->mode == WEIR_ENFORCE ? "" : p->c.off,
            rule->mode == WEIR_OFF ? "-" : weir__human_count(a, rule->applied),
            refused && rule->mode == WEIR_ENFORCE ? p->c.bad : "",
            rule->mode == WEIR_OFF ? "-" : weir__human_count(b, refused),
            refused && rule->mode == WEIR_ENFORCE ? p->c.off : "",
            rule->mode == WEIR_OFF ? "-" : weir__human_share(c, refused, rule->applied), d);
    if (p->width > used + 4)
        put_bar(p, rule->mode == WEIR_ENFORCE ? p->c.bad : p->c.dim, refused, rule->applied,
                p->width - used);
    fputc('\n', p->out);
    if (rule->bans || rule->banned)
        fprintf(p->out, "  %*s %s%s, %s refused by %s%s\n", (int)name_width, "", p->c.dim,
                weir__human_counted(a, rule->bans, "ban"),
                weir__human_counted(b, rule->banned, "request"), rule->bans == 1 ? "it" : "them",
                p->c.off);
}

static void put_rules(const struct page *p, const struct weir__rule_set *side)
{
    enum { MOST = 40 };
    const struct weir__replay_rule **rules = weir__report_rules(side);
    size_t name_width = 12;
    char title[32];

    if (rules == NULL)
        return;
    for (size_t i = 0; i < side->n_rules && i < MOST; i++)
        name_width = strlen(rules[i]->name) > name_width ? strlen(rules[i]->name) : name_width;
    name_width = name_width > 24 ? 24 : name_width;
    snprintf(title, sizeof(title), "rules%s", weir__report_where(p->replay, side));
    heading(p, title);
    fprintf(p->out, "  %s%-*s %-7s %12s %12s %9s %8s%s\n", p->c.dim, (int)name_width, "", "mode",
            "applied", "refused", "share", "keys", p->c.off);
    for (size_t i = 0; i < side->n_rules && i < MOST; i++)
        put_rule(p, rules[i], name_width);
    if (side->n_rules > MOST)
        fprintf(p->out, "  %sand %zu more that did less%s\n", p->c.dim, side->n_rules - MOST,
                p->c.off);
    bool shadow = false;
    for (size_t i = 0; i < side->n_rules; i++)
        shadow |= rules[i]->mode == WEIR_SHADOW && rules[i]->would;
    if (shadow)
        fprintf(p->out, "  %sfor rules in shadow: the refusals they would have made%s\n", p->c.dim,
                p->c.off);
    free(rules);
}

static void put_hitters(const struct page *p, const char *title,
                        const struct weir__hitters *hitters, const char *colour)
{
    struct weir__hitter *top = malloc((p->report->top + 1) * sizeof(*top));
    size_t n = top ? weir__hitters_top(hitters, top, p->report->top) : 0;
    size_t name_width = p->width / 2 - 6;
    char count[WEIR__HUMAN];

    if (n > 0) {
        heading(p, title);
        for (size_t i = 0; i < n; i++) {
            fputs("  ", p->out);
            put_field(p, top[i].text, name_width);
            weir__human_count(count, top[i].count);
            fprintf(p->out, " %s%11s ", top[i].error ? "≤" : " ", count);
            put_bar(p, colour, top[i].count, top[0].count, p->width - name_width - 18);
            fputc('\n', p->out);
        }
    }
    free(top);
}

static void put_keys(const struct page *p, const struct weir__rule_set *side)
{
    const struct weir__replay_rule **rules = weir__report_rules(side);
    const char *where = weir__report_where(p->replay, side);
    char title[288];

    for (size_t i = 0; rules && i < side->n_rules && i < p->report->top; i++) {
        bool shadow = rules[i]->mode == WEIR_SHADOW;
        snprintf(title, sizeof(title), "%s (%s)%s: keys it %s most", rules[i]->name,
                 rules[i]->limits, where, shadow ? "would have refused" : "refused");
        if (rules[i]->trace)
            put_hitters(p, title, rules[i]->trace->top, shadow ? p->c.dim : p->c.bad);
    }
    free(rules);
    snprintf(title, sizeof(title), "deny list%s: clients it %s most", where,
             side->would_deny ? "would have refused" : "refused");
    if (side->denied)
        put_hitters(p, title, side->denied->top, side->would_deny ? p->c.dim : p->c.bad);
    snprintf(title, sizeof(title), "URIs refused most%s", where);
    put_hitters(p, title, side->uris, p->c.bad);
}

/* ----------------------------------------------------------------- differences ---- */

static int by_requests(const void *a, const void *b)
{
    const struct weir__replay_pair *x = a, *y = b;

    if (x->requests != y->requests)
        return x->requests < y->requests ? 1 : -1;
    return x->rule[0] != y->rule[0] ? (x->rule[0] > y->rule[0]) - (x->rule[0] < y->rule[0])
                                    : (x->rule[1] > y->rule[1]) - (x->rule[1] < y->rule[1]);
}

static void put_pairs(const struct page *p)
{
    struct weir__replay_pair pairs[WEIR__REPLAY_PAIRS];
    char count[WEIR__HUMAN];

    memcpy(pairs, p->replay->pairs, sizeof(pairs));
    qsort(pairs, p->replay->n_pairs, sizeof(*pairs), by_requests);
    fprintf(p->out, "  %s%-26s %-26s %12s%s\n", p->c.dim, "here", "there", "requests", p->c.off);
    for (size_t i = 0; i < p->replay->n_pairs && i < 20; i++) {
        fputs("  ", p->out);
        for (size_t s = 0; s < 2; s++) {
            bool passed = pairs[i].rule[s] == WEIR__REPLAY_PASSED;
            fputs(passed ? p->c.good : p->c.bad, p->out);
            put_field(p, weir__rule_set_rule_name(&p->replay->sides[s], pairs[i].rule[s]), 26);
            fprintf(p->out, "%s ", p->c.off);
        }
        fprintf(p->out, "%12s\n", weir__human_count(count, pairs[i].requests));
    }
}

static void put_difference(const struct page *p, const struct weir__replay_difference *d)
{
    char time[WEIR__HUMAN];
    size_t here = d->rule[0] != WEIR__REPLAY_PASSED ? 0 : 1;

    fprintf(p->out, "  %s ", weir__human_time(time, d->at, true) + 11);
    put_field(p, d->client, 16);
    fputc(' ', p->out);
    put_field(p, d->method, 5);
    fputc(' ', p->out);
    put_field(p, d->uri, p->width - 65);
    fprintf(p->out, " %s%s%s by ", p->c.bad, here == 0 ? "here" : "there", p->c.off);
    put_field(p, weir__rule_set_rule_name(&p->replay->sides[here], d->rule[here]), 16);
    fputc('\n', p->out);
}

static void put_differences(const struct page *p)
{
    const struct weir__replay *replay = p->replay;
    char a[WEIR__HUMAN], b[WEIR__HUMAN], c[WEIR__HUMAN];

    if (replay->n_sides != 2)
        return;
    heading(p, "decided differently");
    fprintf(p->out, "  %s: %s refused only here, %s only there\n",
            weir__human_counted(a, replay->differ, "request"),
            weir__human_count(b, replay->only[0]), weir__human_count(c, replay->only[1]));
    if (replay->other_rule)
        fprintf(p->out, "  %s more %s refused by both, but by rules of different names\n",
                weir__human_count(a, replay->other_rule), replay->other_rule == 1 ? "was" : "were");
    if (replay->differ == 0)
        return;
    put_pairs(p);
    fprintf(p->out, "  %sthe first of them, refused%s\n", p->c.dim, p->c.off);
    for (size_t i = 0; i < replay->n_differences; i++)
        put_difference(p, &replay->differences[i]);
}

/* ------------------------------------------------------------------- proposals ---- */

static void put_proposal(const struct page *p, const struct weir__proposal *proposal)
{
    char limit[128], to[160], words[WEIR__HUMAN], a[WEIR__HUMAN], b[WEIR__HUMAN], c[WEIR__HUMAN];
    bool is_count = proposal->limit.count > 0 && proposal->limit.count - proposal->below <= 1;

    weir_limit_print(limit, sizeof(limit), &proposal->written);
    weir__human_proposal(words, proposal);
    if (is_count)
        weir_limit_print(to, sizeof(to), &proposal->limit);
    else
        snprintf(to, sizeof(to), "count %s", words);
    fputs("  ", p->out);
    put_field(p, weir__report_proposal_rule(p->report, proposal), 16);
    fprintf(p->out, " %s → %s%s%s", limit, p->c.good, to, p->c.off);
    fprintf(p->out, "\n  %16s %s%s%s key%s, refused as written: %s", "", p->c.dim,
            proposal->sampled ? "a sample of " : "", weir__human_count(a, proposal->keys),
            proposal->keys == 1 ? "" : "s",
            proposal->keys_written < 0
                ? "?"
                : weir__human_share(b, proposal->keys_written, proposal->keys));
    if (proposal->limit.count > 0)
        fprintf(p->out, ", as proposed: %s",
                weir__human_share(c, proposal->keys_proposed, proposal->keys));
    if (weir__proposal_has_few_keys(proposal))
        fputs(proposal->keys_written == proposal->keys
                  ? "; few keys, all refused: perhaps an attack"
                  : "; few keys",
              p->out);
    fputs(weir__proposal_is_far_below(proposal) ? "; far below the rule's own" : "", p->out);
    fprintf(p->out, "%s\n", p->c.off);
}

static void put_proposals(const struct page *p)
{
    const struct weir__propose *propose = p->replay->propose;
    struct weir__proposal proposal;
    char title[160], share[WEIR__HUMAN];

    if (propose == NULL)
        return;
    snprintf(title, sizeof(title),
             "limits that would have refused at most %s of their keys, ever: bounds from this log, "
             "not recommendations",
             weir__human_share(share, p->replay->options.propose, WEIR__PROPOSE_PPM));
    heading(p, title);
    for (size_t i = 0; i < weir__propose_limits(propose); i++) {
        weir__propose_get(propose, i, &proposal);
        put_proposal(p, &proposal);
    }
    if (weir__propose_limits(propose) == 0)
        fprintf(p->out, "  none: no limit applied to any request\n");
}

/* ------------------------------------------------------------------- the whole ---- */

/* In lines that end between words. */
static void put_note(void *context, const char *text)
{
    struct page *p = context;
    size_t most = p->width - 4;

    if (p->notes++ == 0)
        heading(p, "notes");
    while (strlen(text) > most) {
        size_t len = most;
        while (len > most / 2 && text[len] != ' ')
            len--;
        fputs("  ", p->out);
        weir__safe_put(p->out, WEIR__SAFE_TERMINAL, text, len);
        fputc('\n', p->out);
        text += len + strspn(text + len, " ");
    }
    fputs("  ", p->out);
    weir__safe_text(p->out, WEIR__SAFE_TERMINAL, text);
    fputc('\n', p->out);
}

void weir__report_text(FILE *out, const struct weir__report *report)
{
    struct page p = open_page(out, report);

    put_head(&p);
    put_totals(&p);
    draw_timeline(&p);
    for (size_t i = 0; i < p.replay->n_sides; i++)
        put_rules(&p, &p.replay->sides[i]);
    put_differences(&p);
    for (size_t i = 0; i < p.replay->n_sides; i++)
        put_keys(&p, &p.replay->sides[i]);
    put_proposals(&p);
    weir__report_notes(report, put_note, &p);
}
