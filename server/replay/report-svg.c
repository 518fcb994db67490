/* report-svg.c -- plots: requests and refusals over time, and the refusals of each count of a
 * limit.
 *
 *     above    requests in each bucket of time; in colour those refused, by rule
 *     below    the same as shares of the requests; dashed: would be refused by rules in shadow
 *
 * No script: a bucket's numbers are its <title>.
 */
#include <string.h>

#include "server/base/plot.h"
#include "server/replay/report.h"
#include "server/base/safe-text.h"

#define WIDTH         920.0
#define HEIGHT        336.0
#define LEFT          60.0
#define RIGHT         904.0
#define COUNTS_TOP    66.0
#define COUNTS_BOTTOM 206.0
#define SHARES_TOP    236.0
#define SHARES_BOTTOM 312.0

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* The series on top of each other, as they are or as shares of the requests. */
static void draw_stack(FILE *out, const struct weir__plot *p, const struct weir__replay *replay,
                       const struct weir__series *series, size_t n, bool shares)
{
    double low[WEIR__REPLAY_BUCKETS] = { 0 }, high[WEIR__REPLAY_BUCKETS] = { 0 };
    char style[24];

    for (size_t s = 0; s < n; s++) {
        for (size_t i = 0; i < p->n; i++)
            high[i] = low[i] +
                      (shares ? share_of(series[s].at[i], replay->at[i]) : (double)series[s].at[i]);
        snprintf(style, sizeof(style), "s%d", series[s].colour);
        weir__plot_area(out, p, style, low, high);
        memcpy(low, high, sizeof(low));
    }
}

static void draw_requests(FILE *out, const struct weir__plot *p, const struct weir__replay *replay)
{
    double all[WEIR__REPLAY_BUCKETS] = { 0 };

    for (size_t i = 0; i < p->n; i++)
        all[i] = (double)replay->at[i];
    weir__plot_area(out, p, "all", NULL, all);
}

static void draw_would(FILE *out, const struct weir__plot *p, const struct weir__replay *replay,
                       const struct weir__rule_set *side)
{
    double shares[WEIR__REPLAY_BUCKETS] = { 0 };

    for (size_t i = 0; i < p->n; i++)
        shares[i] = share_of(side->would_at[i], replay->at[i]);
    if (side->would)
        weir__plot_line(out, p, "would", shares);
}

/* ------------------------------------------------------------------- legend ---- */

static double draw_key(FILE *out, double x, double y, const char *style, const char *name,
                       int64_t n)
{
    char cut[28], count[WEIR__HUMAN], text[96];

    weir__text_cut(cut, sizeof(cut), name, strlen(name));
    snprintf(text, sizeof(text), "%s %s", cut, weir__human_count(count, n));
    return weir__plot_key(out, x, y, style, text);
}

static void draw_legend(FILE *out, double y, const struct weir__replay *replay,
                        const struct weir__rule_set *side, const struct weir__series *series,
                        size_t n)
{
    double x = draw_key(out, LEFT, y, "all", "requests", replay->requests);
    char style[24];

    for (size_t i = 0; i < n && x < RIGHT - 100; i++) {
        snprintf(style, sizeof(style), "s%d", series[i].colour);
        x = draw_key(out, x, y, style, series[i].name, series[i].total);
    }
    if (side->would && x < RIGHT - 100)
        draw_key(out, x, y, "line would", "in shadow", side->would);
}

static void draw_hover(FILE *out, const struct weir__plot *p, const struct weir__replay *replay,
                       const struct weir__rule_set *side, const struct weir__series *series,
                       size_t n)
{
    char a[WEIR__HUMAN], b[WEIR__HUMAN], c[WEIR__HUMAN];

    for (size_t i = 0; i < p->n; i++) {
        if (replay->at[i] == 0)
            continue;
        fprintf(
            out,
            "<rect class=\"hover\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
            weir__plot_x(p, i), p->y, weir__plot_x(p, i + 1) - weir__plot_x(p, i),
            SHARES_BOTTOM - COUNTS_TOP);
        fprintf(out, "%s UTC: %s",
                weir__human_time(a, replay->from + (weir_time)i * replay->width, false),
                weir__human_counted(b, replay->at[i], "request"));
        if (side->refused_at[i])
            fprintf(out, ", %s refused (%s)", weir__human_count(a, side->refused_at[i]),
                    weir__human_share(c, side->refused_at[i], replay->at[i]));
        for (size_t s = 0; s < n; s++) {
            if (series[s].at[i] == 0)
                continue;
            fputs("&#10;", out);
            weir__safe_text(out, WEIR__SAFE_MARKUP, series[s].name);
            fprintf(out, " %s", weir__human_count(a, series[s].at[i]));
        }
        if (side->would_at[i])
            fprintf(out, "&#10;in shadow %s", weir__human_count(a, side->would_at[i]));
        fprintf(out, "</title></rect>\n");
    }
}

/* ----------------------------------------------------------------- the plots ---- */

/* The same for both sides, to compare them. */
static double most_share(const struct weir__replay *replay)
{
    double most = 0;

    for (size_t s = 0; s < replay->n_sides; s++) {
        for (size_t i = 0; i < replay->buckets; i++) {
            double refused = share_of(replay->sides[s].refused_at[i], replay->at[i]),
                   would = share_of(replay->sides[s].would_at[i], replay->at[i]);
            most = refused > most ? refused : most;
            most = would > most ? would : most;
        }
    }
    return most > 0 ? most : 1;
}

static double most_requests(const struct weir__replay *replay)
{
    int64_t most = 1;

    for (size_t i = 0; i < replay->buckets; i++)
        most = replay->at[i] > most ? replay->at[i] : most;
    return (double)most;
}

static void draw_titles(FILE *out, double shift, const struct weir__replay *replay,
                        const struct weir__rule_set *side)
{
    char a[WEIR__HUMAN], b[WEIR__HUMAN], c[WEIR__HUMAN];

    fprintf(out, "<text class=\"title\" x=\"%.0f\" y=\"%.1f\">", LEFT, shift + 18);
    weir__safe_text(out, WEIR__SAFE_MARKUP, side->path);
    fprintf(out, "</text><text class=\"end\" x=\"%.0f\" y=\"%.1f\">%s of %s refused: %s</text>\n",
            RIGHT, shift + 18, weir__human_count(a, side->refused),
            weir__human_counted(b, replay->requests, "request"),
            weir__human_share(c, side->refused, replay->requests));
    fprintf(out, "<text x=\"%.0f\" y=\"%.1f\">requests in each %s</text>", LEFT,
            shift + COUNTS_TOP - 6, weir__human_width(a, replay->width));
    fprintf(out, "<text x=\"%.0f\" y=\"%.1f\">refused of these</text>\n", LEFT,
            shift + SHARES_TOP - 6);
}

static void draw_side(FILE *out, const struct weir__replay *replay, size_t which, double shift,
                      bool hover)
{
    const struct weir__rule_set *side = &replay->sides[which];
    struct weir__series series[WEIR__SERIES];
    size_t n = weir__report_series(replay, which, series);
    struct weir__plot p = { .x = LEFT,
                            .y = shift + COUNTS_TOP,
                            .width = RIGHT - LEFT,
                            .height = SHARES_BOTTOM - COUNTS_TOP,
                            .n = replay->buckets,
                            .from = replay->from,
                            .bucket = replay->width,
                            .length = (weir_time)replay->buckets * replay->width };

    draw_titles(out, shift, replay, side);
    if (replay->buckets == 0)
        return;
    draw_legend(out, shift + 40, replay, side, series, n);
    weir__plot_times(out, &p, true);
    struct weir__plot counts = p, shares = p;
    counts.height = COUNTS_BOTTOM - COUNTS_TOP;
    counts.high = weir__plot_top(most_requests(replay), 1);
    shares.y = shift + SHARES_TOP;
    shares.height = SHARES_BOTTOM - SHARES_TOP;
    shares.high = weir__plot_top(most_share(replay), 0);
    weir__plot_values(out, &counts, 1, "");
    weir__plot_values(out, &shares, 0, " %");
    draw_requests(out, &counts, replay);
    draw_stack(out, &counts, replay, series, n, false);
    draw_stack(out, &shares, replay, series, n, true);
    draw_would(out, &shares, replay, side);
    if (hover)
        draw_hover(out, &p, replay, side, series, n);
}

void weir__plot_timeline(FILE *out, const struct weir__report *report, size_t side)
{
    fprintf(out,
            "<svg class=\"plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"requests and "
            "refusals over time\">\n",
            WIDTH, HEIGHT);
    draw_side(out, report->replay, side, 0, true);
    fputs("</svg>\n", out);
}

void weir__report_svg(FILE *out, const struct weir__report *report)
{
    double height = HEIGHT * (double)report->replay->n_sides;

    weir__plot_begin(out, WIDTH, height, "requests and refusals over time");
    for (size_t i = 0; i < report->replay->n_sides; i++)
        draw_side(out, report->replay, i, HEIGHT * (double)i, false);
    fputs("</svg>\n", out);
}

/* ------------------------------------------------------------ proposals ---- */

#define CURVE_WIDTH  300.0
#define CURVE_HEIGHT 64.0

/* A column for each step: its height the share of keys refused; green from the proposal on. */
void weir__plot_proposal(FILE *out, const struct weir__proposal *p, int64_t share)
{
    double step = CURVE_WIDTH / (double)(p->steps ? p->steps : 1);
    char a[WEIR__HUMAN], b[WEIR__HUMAN];

    fprintf(out,
            "<svg class=\"plot\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
            "role=\"img\" aria-label=\"keys refused by count\">",
            CURVE_WIDTH, CURVE_HEIGHT, CURVE_WIDTH, CURVE_HEIGHT);
    for (size_t i = 0; i < p->steps; i++) {
        double part = p->keys ? (double)p->refused[i] / (double)p->keys : 0,
               height = part * (CURVE_HEIGHT - 4);
        bool good = p->limit.count > 0 && p->counts[i] >= p->limit.count;
        fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                good ? "good" : "refused", (double)i * step + 1, CURVE_HEIGHT - 2 - height,
                step - 2, height + 2);
        if (p->counts[i] == p->written.count)
            fprintf(out, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%.0f\"/>",
                    ((double)i + .5) * step, ((double)i + .5) * step, CURVE_HEIGHT);
        fprintf(out,
                "<rect class=\"hover\" x=\"%.1f\" y=\"0\" width=\"%.1f\" "
                "height=\"%.0f\"><title>%s%s: %s of keys refused</title></rect>",
                (double)i * step, step, CURVE_HEIGHT, weir__human_count(a, p->counts[i]),
                p->counts[i] == p->written.count ? " (as written)" : "",
                weir__human_share(b, p->refused[i], p->keys));
    }
    double y = CURVE_HEIGHT - 2 - (double)share / WEIR__PROPOSE_PPM * (CURVE_HEIGHT - 4);
    fprintf(out, "<line class=\"mark\" x1=\"0\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/></svg>\n",
            CURVE_WIDTH, y, y);
}
