/* report-svg.c -- trials of one plan over time: a row for each controller, three panels side by
 * side.
 *
 *     requests that come (grey) and are served in time (green); dashed: the capacity
 *     latency, p50 and p99 of the admitted; dashed: the target
 *     requests at work (grey), and the limit
 *
 * All rows have the same scales.  The first ends a little above the capacity: at ten times
 * that there would be nothing to see.  Curves that leave their panel are marked.
 */
#include "server/sim/sim.h"

#include "server/base/plot.h"
#include "server/base/safe-text.h"

#define WIDTH  1008.0
#define TOP    74.0
#define ROW    122.0
#define HEIGHT 88.0 /* of a panel */
#define PANELS 3

static const double lefts[PANELS] = { 58, 392, 726 };
#define PANEL_WIDTH 262.0

static void draw_tens(FILE *out, const struct weir__plot *p, bool times)
{
    char text[40];

    for (double value = times ? 1e6 : 1; value <= p->high; value *= 10) {
        if (value < p->low)
            continue;
        if (times)
            weir_time_print(text, sizeof(text), (weir_time)value);
        else
            snprintf(text, sizeof(text), "%.0f", value);
        weir__plot_mark(out, p, value, text);
    }
}

/* --------------------------------------------------------------------- scales ---- */

struct scales {
    double rate, time_low, time_high, permits;
};

static void widen(double *most, double value)
{
    *most = value > *most ? value : *most;
}

/* Without a guard a hundred thousand may be at work: they do not count, unless it is alone. */
static struct scales find_scales(const struct weir__sim_outcome *const *outcomes, size_t n)
{
    struct scales s = { .rate = 1, .time_low = 1e18, .time_high = 2e6, .permits = 16 };

    for (size_t k = 0; k < n; k++) {
        const struct weir__sim_outcome *o = outcomes[k];
        double seconds = (double)o->bucket / 1e9;
        for (size_t i = 0; i < o->n_buckets; i++) {
            const struct weir__sim_bucket *b = &o->buckets[i];
            widen(&s.rate, 1.7 * b->possible / seconds);
            widen(&s.time_high, 1.1 * (double)b->p99);
            widen(&s.permits, 1.2 * (double)b->limit);
            if (b->p50 > 0 && (double)b->p50 < s.time_low)
                s.time_low = (double)b->p50;
            if (n == 1)
                widen(&s.permits, 1.2 * b->in_flight);
        }
    }
    s.time_low = s.time_low < s.time_high / 4 ? s.time_low * 0.8 : s.time_high / 4;
    return s;
}

/* ----------------------------------------------------------------------- rows ---- */

static void draw_rates(FILE *out, const struct weir__plot *p, const struct weir__sim_outcome *o)
{
    double offered[WEIR__SIM_BUCKETS], ok[WEIR__SIM_BUCKETS], possible[WEIR__SIM_BUCKETS];

    for (size_t i = 0; i < p->n; i++) {
        weir_time from = (weir_time)i * o->bucket,
                  to = from + o->bucket < p->length ? from + o->bucket : p->length;
        double seconds = (double)(to - from) / 1e9;
        offered[i] = (double)o->buckets[i].offered / seconds;
        ok[i] = (double)o->buckets[i].ok / seconds;
        possible[i] = o->buckets[i].possible / seconds;
    }
    weir__plot_values(out, p, 1, "");
    weir__plot_area(out, p, "all", NULL, offered);
    weir__plot_area(out, p, "served", NULL, ok);
    weir__plot_line(out, p, "would", possible);
    weir__plot_clip(out, p, offered);
}

static void draw_latency(FILE *out, const struct weir__plot *p, const struct weir__sim_outcome *o)
{
    double p50[WEIR__SIM_BUCKETS], p99[WEIR__SIM_BUCKETS];
    weir_time target = o->plan->guard.adaptive.target;

    for (size_t i = 0; i < p->n; i++) {
        p50[i] = (double)o->buckets[i].p50;
        p99[i] = (double)o->buckets[i].p99;
    }
    draw_tens(out, p, true);
    if (target)
        weir__plot_mark(out, p, (double)target, "");
    weir__plot_line(out, p, "p99", p99);
    weir__plot_line(out, p, "p50", p50);
}

static void draw_permits(FILE *out, const struct weir__plot *p, const struct weir__sim_outcome *o)
{
    double in_flight[WEIR__SIM_BUCKETS], limit[WEIR__SIM_BUCKETS];

    for (size_t i = 0; i < p->n; i++) {
        in_flight[i] = o->buckets[i].in_flight;
        limit[i] = (double)o->buckets[i].limit;
    }
    draw_tens(out, p, false);
    weir__plot_area(out, p, "all", NULL, in_flight);
    weir__plot_line(out, p, "limit", limit);
    weir__plot_clip(out, p, in_flight);
}

static void draw_row(FILE *out, const struct weir__sim_outcome *o, const struct scales *s, double y,
                     bool words)
{
    struct weir__plot p = { .y = y,
                            .width = PANEL_WIDTH,
                            .height = HEIGHT,
                            .n = o->n_buckets,
                            .bucket = o->bucket,
                            .length = o->plan->length };

    fprintf(out, "<text class=\"title\" x=\"%.0f\" y=\"%.1f\">", lefts[0], y - 7);
    weir__safe_text(out, WEIR__SAFE_MARKUP, o->controller);
    fprintf(out,
            "</text><text class=\"end\" x=\"%.0f\" y=\"%.1f\">%.1f %% of what is possible</text>\n",
            lefts[0] + PANEL_WIDTH, y - 7, o->goodput);
    for (int i = 0; i < PANELS; i++) {
        p.x = lefts[i];
        p.doublings = i > 0;
        p.low = i == 0 ? 0 : i == 1 ? s->time_low : 1;
        p.high = i == 0 ? s->rate : i == 1 ? s->time_high : s->permits;
        weir__plot_times(out, &p, words);
        (i == 0 ? draw_rates : i == 1 ? draw_latency : draw_permits)(out, &p, o);
    }
}

/* ---------------------------------------------------------------------- whole ---- */

static void draw_head(FILE *out, const struct weir__sim_plan *plan)
{
    static const struct {
        int panel;
        const char *style, *text;
    } keys[] = {
        { 0, "all", "arriving /s" }, { 0, "served", "served /s" }, { 0, "line would", "possible" },
        { 1, "line p99", "p99" },    { 1, "line p50", "p50" },     { 1, "line mark", "target" },
        { 2, "all", "at work" },     { 2, "line limit", "limit" },
    };
    double x = 0;

    fprintf(out, "<text class=\"title\" x=\"%.0f\" y=\"20\">", lefts[0]);
    weir__safe_text(out, WEIR__SAFE_MARKUP, plan->name);
    fputs(": ", out);
    weir__safe_text(out, WEIR__SAFE_MARKUP, plan->about);
    fputs("</text>\n", out);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        x = i == 0 || keys[i].panel != keys[i - 1].panel ? lefts[keys[i].panel] : x;
        x = weir__plot_key(out, x, 48, keys[i].style, keys[i].text);
    }
}

void weir__sim_svg(FILE *out, const struct weir__sim_outcome *const *outcomes, size_t n)
{
    struct scales scales = find_scales(outcomes, n);
    double height = TOP + ROW * (double)n;

    weir__plot_begin(out, WIDTH, height, "a guard's controllers over time");
    draw_head(out, outcomes[0]->plan);
    for (size_t i = 0; i < n; i++)
        draw_row(out, outcomes[i], &scales, TOP + ROW * (double)i + 8, i + 1 == n);
    fputs("</svg>\n", out);
}
