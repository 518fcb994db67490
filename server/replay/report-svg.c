/* report-svg.c -- plots: requests and refusals over time, and what each count of a limit would
 * refuse.
 *
 *     above    requests in each bucket of time; in colour those refused, by rule
 *     below    the same as shares of the requests; dashed: what rules in shadow would have refused
 *
 * Colours that can be read on white and on dark, no fonts but the viewer's own, and no script: what
 * a bucket holds is its <title>.
 */
#include <string.h>

#include "server/replay/report.h"

#define WIDTH         920.0
#define HEIGHT        336.0
#define LEFT          60.0
#define RIGHT         904.0
#define COUNTS_TOP    66.0
#define COUNTS_BOTTOM 206.0
#define SHARES_TOP    236.0
#define SHARES_BOTTOM 312.0

/* Where things of a plot go. */
struct frame {
    double top, bottom; /* of the panel, on the page */
    double most;        /* what the panel's top stands for */
    size_t n;           /* buckets */
    double shift;       /* of the whole drawing, down the page */
};

static double x_of(const struct frame *f, size_t bucket)
{
    return LEFT + (RIGHT - LEFT) * (double)bucket / (double)f->n;
}

static double y_of(const struct frame *f, double value)
{
    double part = f->most > 0 ? value / f->most : 0;
    return f->shift + f->bottom - (f->bottom - f->top) * (part > 1 ? 1 : part);
}

/* --------------------------------------------------------------------- axes ---- */

/* A round number, so that 3 to 6 of them reach `most`. */
static double round_step(double most)
{
    double step = 1;

    while (step * 4 > most && step > 1e-9)
        step /= 10;
    while (step * 40 <= most)
        step *= 10;
    return most <= step * 5    ? step
           : most <= step * 10 ? 2 * step
           : most <= step * 25 ? 5 * step
                               : 10 * step;
}

static void draw_value_axis(FILE *out, const struct frame *f, const char *unit, bool whole)
{
    double step = round_step(f->most);
    char text[WEIR__WORDS];

    if (whole && step < 1)
        step = 1;
    for (int i = 0; i * step <= f->most * 1.0001 && i <= 10; i++) {
        double y = y_of(f, i * step);
        if (whole)
            weir__words_count(text, (int64_t)(i * step));
        else
            snprintf(text, sizeof(text), "%g", i * step);
        fprintf(out, "<line class=\"%s\" x1=\"%.0f\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                i ? "grid" : "axis", LEFT, RIGHT, y, y);
        fprintf(out, "<text class=\"end\" x=\"%.0f\" y=\"%.1f\">%s%s</text>\n", LEFT - 7, y + 4,
                text, unit);
    }
}

/* The finest step of time that gives at most 9 marks. */
static weir_time choose_time_step(weir_time span)
{
    static const int64_t steps[] = { 1,     2,     5,     10,    15,     30,    60,
                                     120,   300,   600,   900,   1800,   3600,  7200,
                                     10800, 21600, 43200, 86400, 172800, 604800 };
    size_t i = 0;

    while (i < sizeof(steps) / sizeof(steps[0]) && span / (steps[i] * WEIR_SECOND) > 8)
        i++;
    if (i < sizeof(steps) / sizeof(steps[0]))
        return steps[i] * WEIR_SECOND;
    weir_time step = 604800 * WEIR_SECOND;
    while (span / step > 8)
        step *= 2;
    return step;
}

static void draw_time_axis(FILE *out, const struct frame *f, const struct weir__replay *replay)
{
    weir_time span = (weir_time)f->n * replay->width, step = choose_time_step(span);
    char text[WEIR__WORDS];

    for (weir_time t = (replay->from + step - 1) / step * step; t <= replay->from + span;
         t += step) {
        double x = LEFT + (RIGHT - LEFT) * (double)(t - replay->from) / (double)span;
        fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x, x,
                f->shift + COUNTS_TOP, f->shift + SHARES_BOTTOM + 4);
        if (x < RIGHT - 20)
            fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                    x < LEFT + 24 ? "" : "mid", x, f->shift + SHARES_BOTTOM + 18,
                    weir__words_clock(text, t, step));
    }
}

/* -------------------------------------------------------------------- areas ---- */

/* The steps of `low` .. `high` as one outline. */
static void draw_area(FILE *out, const struct frame *f, const char *style, const double *low,
                      const double *high)
{
    double at = y_of(f, low[0]);

    fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f", style, LEFT, at);
    for (size_t i = 0; i < f->n; i++) {
        if (y_of(f, high[i]) != at)
            fprintf(out, "H%.1fV%.1f", x_of(f, i), at = y_of(f, high[i]));
    }
    fprintf(out, "H%.1f", RIGHT);
    for (size_t i = f->n; i-- > 0;) {
        if (y_of(f, low[i]) != at)
            fprintf(out, "H%.1fV%.1f", x_of(f, i + 1), at = y_of(f, low[i]));
    }
    fprintf(out, "Z\"/>\n");
}

static void draw_steps(FILE *out, const struct frame *f, const char *style, const double *values)
{
    fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f", style, LEFT, y_of(f, values[0]));
    for (size_t i = 0; i < f->n; i++)
        fprintf(out, "V%.1fH%.1f", y_of(f, values[i]), x_of(f, i + 1));
    fprintf(out, "\"/>\n");
}

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* The series on top of each other, as they are or as shares of the requests. */
static void draw_stack(FILE *out, const struct frame *f, const struct weir__replay *replay,
                       const struct weir__series *series, size_t n, bool shares)
{
    double low[WEIR__REPLAY_BUCKETS] = { 0 }, high[WEIR__REPLAY_BUCKETS] = { 0 };
    char style[24];

    for (size_t s = 0; s < n; s++) {
        for (size_t i = 0; i < f->n; i++)
            high[i] = low[i] +
                      (shares ? share_of(series[s].at[i], replay->at[i]) : (double)series[s].at[i]);
        snprintf(style, sizeof(style), "s%d", series[s].colour);
        draw_area(out, f, style, low, high);
        memcpy(low, high, sizeof(low));
    }
}

static void draw_requests(FILE *out, const struct frame *f, const struct weir__replay *replay)
{
    double zero[WEIR__REPLAY_BUCKETS] = { 0 }, all[WEIR__REPLAY_BUCKETS] = { 0 };

    for (size_t i = 0; i < f->n; i++)
        all[i] = (double)replay->at[i];
    draw_area(out, f, "all", zero, all);
}

static void draw_would(FILE *out, const struct frame *f, const struct weir__replay *replay,
                       const struct weir__side *side)
{
    double shares[WEIR__REPLAY_BUCKETS] = { 0 };

    for (size_t i = 0; i < f->n; i++)
        shares[i] = share_of(side->would_at[i], replay->at[i]);
    if (side->would)
        draw_steps(out, f, "would", shares);
}

/* ------------------------------------------------------------------- legend ---- */

static double draw_key(FILE *out, double x, double y, const char *style, const char *name,
                       int64_t n)
{
    char cut[28], count[WEIR__WORDS];

    weir__text_cut(cut, sizeof(cut), name, strlen(name));
    weir__words_count(count, n);
    if (strcmp(style, "would") == 0)
        fprintf(out, "<path class=\"would\" d=\"M%.1f %.1fh12\"/>", x, y - 4);
    else
        fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\"/>", style,
                x, y - 10);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 16, y);
    weir__safe_text(out, WEIR__SAFE_MARKUP, cut);
    fprintf(out, " %s</text>\n", count);
    return x + 34 + 6.7 * (double)(strlen(cut) + strlen(count));
}

static void draw_legend(FILE *out, const struct frame *f, const struct weir__replay *replay,
                        const struct weir__side *side, const struct weir__series *series, size_t n)
{
    double x = LEFT, y = f->shift + 40;
    char style[24];

    x = draw_key(out, x, y, "all", "requests", replay->requests);
    for (size_t i = 0; i < n && x < RIGHT - 100; i++) {
        snprintf(style, sizeof(style), "s%d", series[i].colour);
        x = draw_key(out, x, y, style, series[i].name, series[i].total);
    }
    if (side->would && x < RIGHT - 100)
        draw_key(out, x, y, "would", "in shadow", side->would);
}

static void draw_hover(FILE *out, const struct frame *f, const struct weir__replay *replay,
                       const struct weir__side *side, const struct weir__series *series, size_t n)
{
    char a[WEIR__WORDS], b[WEIR__WORDS], c[WEIR__WORDS];

    for (size_t i = 0; i < f->n; i++) {
        if (replay->at[i] == 0)
            continue;
        fprintf(
            out,
            "<rect class=\"hover\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
            x_of(f, i), f->shift + COUNTS_TOP, x_of(f, i + 1) - x_of(f, i),
            SHARES_BOTTOM - COUNTS_TOP);
        fprintf(out, "%s UTC: %s",
                weir__words_time(a, replay->from + (weir_time)i * replay->width, false),
                weir__words_counted(b, replay->at[i], "request"));
        if (side->refused_at[i])
            fprintf(out, ", %s refused (%s)", weir__words_count(a, side->refused_at[i]),
                    weir__words_share(c, side->refused_at[i], replay->at[i]));
        for (size_t s = 0; s < n; s++) {
            if (series[s].at[i] == 0)
                continue;
            fputs("&#10;", out);
            weir__safe_text(out, WEIR__SAFE_MARKUP, series[s].name);
            fprintf(out, " %s", weir__words_count(a, series[s].at[i]));
        }
        if (side->would_at[i])
            fprintf(out, "&#10;in shadow %s", weir__words_count(a, side->would_at[i]));
        fprintf(out, "</title></rect>\n");
    }
}

/* ----------------------------------------------------------------- the plots ---- */

/* The same for both sides, so that they can be compared. */
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

static void draw_titles(FILE *out, const struct frame *f, const struct weir__replay *replay,
                        const struct weir__side *side)
{
    char a[WEIR__WORDS], b[WEIR__WORDS], c[WEIR__WORDS];

    fprintf(out, "<text class=\"title\" x=\"%.0f\" y=\"%.1f\">", LEFT, f->shift + 18);
    weir__safe_text(out, WEIR__SAFE_MARKUP, side->path);
    fprintf(out, "</text><text class=\"end\" x=\"%.0f\" y=\"%.1f\">%s of %s refused: %s</text>\n",
            RIGHT, f->shift + 18, weir__words_count(a, side->refused),
            weir__words_counted(b, replay->requests, "request"),
            weir__words_share(c, side->refused, replay->requests));
    fprintf(out, "<text x=\"%.0f\" y=\"%.1f\">requests in each %s</text>", LEFT,
            f->shift + COUNTS_TOP - 6, weir__words_width(a, replay->width));
    fprintf(out, "<text x=\"%.0f\" y=\"%.1f\">refused of these</text>\n", LEFT,
            f->shift + SHARES_TOP - 6);
}

static void draw_side(FILE *out, const struct weir__replay *replay, size_t which, double shift,
                      bool hover)
{
    const struct weir__side *side = &replay->sides[which];
    struct weir__series series[WEIR__SERIES];
    size_t n = weir__report_series(replay, which, series);
    struct frame counts = { COUNTS_TOP, COUNTS_BOTTOM, most_requests(replay), replay->buckets,
                            shift };
    struct frame shares = { SHARES_TOP, SHARES_BOTTOM, most_share(replay), replay->buckets, shift };

    draw_titles(out, &counts, replay, side);
    if (replay->buckets == 0)
        return;
    draw_legend(out, &counts, replay, side, series, n);
    draw_time_axis(out, &counts, replay);
    draw_value_axis(out, &counts, "", true);
    draw_value_axis(out, &shares, " %", false);
    draw_requests(out, &counts, replay);
    draw_stack(out, &counts, replay, series, n, false);
    draw_stack(out, &shares, replay, series, n, true);
    draw_would(out, &shares, replay, side);
    if (hover)
        draw_hover(out, &counts, replay, side, series, n);
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

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 %.0f %.0f\" "
            "width=\"%.0f\" height=\"%.0f\" role=\"img\">\n",
            WIDTH, height, WIDTH, height);
    fputs("<title>requests and refusals over time</title>\n<style>", out);
    fputs(weir__plot_css, out);
    fputs("</style>\n", out);
    for (size_t i = 0; i < report->replay->n_sides; i++)
        draw_side(out, report->replay, i, HEIGHT * (double)i, false);
    fputs("</svg>\n", out);
}

/* ------------------------------------------------------------ what counts do ---- */

#define CURVE_WIDTH  300.0
#define CURVE_HEIGHT 64.0

/* A column for each step: its height the share of keys refused; green from the proposal on. */
void weir__plot_proposal(FILE *out, const struct weir__proposal *p, int64_t share)
{
    double step = CURVE_WIDTH / (double)(p->steps ? p->steps : 1);
    char a[WEIR__WORDS], b[WEIR__WORDS];

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
                (double)i * step, step, CURVE_HEIGHT, weir__words_count(a, p->counts[i]),
                p->counts[i] == p->written.count ? " (as written)" : "",
                weir__words_share(b, p->refused[i], p->keys));
    }
    double y = CURVE_HEIGHT - 2 - (double)share / WEIR__PROPOSE_PPM * (CURVE_HEIGHT - 4);
    fprintf(out, "<line class=\"mark\" x1=\"0\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/></svg>\n",
            CURVE_WIDTH, y, y);
}
