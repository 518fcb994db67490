/* svg.c -- trials of one plan over time: a row for each controller, three panels beside each
 * other.
 *
 *     what comes (grey), what is served in time (green), what could be served (dashed)
 *     how long it takes: p50 and p99 of those admitted; dashed: the target
 *     how many are at work (grey), and the limit
 *
 * All rows have the same scales.  The first panel's ends a little above what could be served: ten
 * times that would leave nothing to see. Times and permits are on a scale of doublings, straight
 * between them: no logarithm of libm, so the drawing is the same everywhere.
 */
#include "server/sim/sim.h"

#include "server/base/words.h"

#define WIDTH  1008.0
#define TOP    74.0
#define ROW    122.0
#define HEIGHT 88.0 /* of a panel */
#define PANELS 3

static const double lefts[PANELS] = { 58, 392, 726 };
#define PANEL_WIDTH 262.0

/* One panel. */
struct panel {
    double x, y, low, high;
    bool doublings;
    size_t n;         /* buckets */
    weir_time bucket; /* their width */
    weir_time length; /* of the trial: the last bucket may be shorter */
};

/* How many doublings from 1: 3 is 1.5, as the way from 2 to 4 is taken as straight. */
static double doublings(double value)
{
    double n = 0;

    for (; value >= 2; value /= 2)
        n++;
    for (; value > 0 && value < 1 && n > -40; value *= 2)
        n--;
    return value > 0 ? n + value - 1 : -40;
}

static double y_of(const struct panel *p, double value)
{
    double low = p->doublings ? doublings(p->low) : p->low,
           high = p->doublings ? doublings(p->high) : p->high;
    double part = ((p->doublings ? doublings(value) : value) - low) / (high - low);

    return p->y + HEIGHT * (1 - (part < 0 ? 0 : part > 1 ? 1 : part));
}

static double x_at(const struct panel *p, weir_time at)
{
    return p->x + PANEL_WIDTH * (double)(at < p->length ? at : p->length) / (double)p->length;
}

static double x_of(const struct panel *p, size_t bucket)
{
    return x_at(p, (weir_time)bucket * p->bucket);
}

/* --------------------------------------------------------------------- curves ---- */

/* A negative value is a gap. */
static void draw_line(FILE *out, const struct panel *p, const char *style, const double *values)
{
    bool down = false;

    fprintf(out, "<path class=\"line %s\" d=\"", style);
    for (size_t i = 0; i < p->n; i++) {
        double x = (x_of(p, i) + x_of(p, i + 1)) / 2;
        if (values[i] >= 0)
            fprintf(out, "%c%.1f %.1f", down ? 'L' : 'M', x, y_of(p, values[i]));
        down = values[i] >= 0;
    }
    fputs("\"/>\n", out);
}

static void draw_area(FILE *out, const struct panel *p, const char *style, const double *values)
{
    fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f", style, p->x, p->y + HEIGHT);
    for (size_t i = 0; i < p->n; i++)
        fprintf(out, "V%.1fH%.1f", y_of(p, values[i] < 0 ? 0 : values[i]), x_of(p, i + 1));
    fprintf(out, "V%.1fZ\"/>\n", p->y + HEIGHT);
}

static void draw_mark(FILE *out, const struct panel *p, double value, const char *text)
{
    double y = y_of(p, value);

    fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", p->x,
            p->x + PANEL_WIDTH, y, y);
    fprintf(out, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", p->x - 6, y + 4, text);
}

/* ----------------------------------------------------------------------- axes ---- */

static void draw_times(FILE *out, const struct panel *p, bool words)
{
    weir_time step = p->length > 60 * WEIR_SECOND ? 20 * WEIR_SECOND : 10 * WEIR_SECOND;

    while (p->length / step > 7)
        step *= 2;
    fprintf(out, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", p->x,
            p->x + PANEL_WIDTH, p->y + HEIGHT, p->y + HEIGHT);
    for (weir_time at = 0; at <= p->length; at += step) {
        double x = x_at(p, at);
        fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x, x,
                p->y, p->y + HEIGHT + 3);
        if (words)
            fprintf(out, "<text class=\"mid\" x=\"%.1f\" y=\"%.1f\">%llds</text>", x,
                    p->y + HEIGHT + 16, (long long)(at / WEIR_SECOND));
    }
    fputc('\n', out);
}

static void draw_rate_marks(FILE *out, const struct panel *p)
{
    char text[WEIR__WORDS];
    double step = 1;

    while (step * 50 < p->high)
        step *= 10;
    step *= step * 5 >= p->high ? 1 : step * 10 >= p->high ? 2 : step * 25 >= p->high ? 5 : 10;
    for (int i = 0; i * step <= p->high; i++)
        draw_mark(out, p, i * step, weir__words_count(text, (int64_t)(i * step)));
}

static void draw_tens(FILE *out, const struct panel *p, bool times)
{
    char text[40];

    for (double value = times ? 1e6 : 1; value <= p->high; value *= 10) {
        if (value < p->low)
            continue;
        if (times)
            weir_time_print(text, sizeof(text), (weir_time)value);
        else
            snprintf(text, sizeof(text), "%.0f", value);
        draw_mark(out, p, value, text);
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

/* Without a guard there may be a hundred thousand inside: that is not what the scale is for, unless
 * there is nothing else. */
static struct scales find_scales(const struct weir__sim_outcome *const *outcomes, size_t n)
{
    struct scales s = { .rate = 1, .time_low = 1e18, .time_high = 2e6, .permits = 16 };

    for (size_t k = 0; k < n; k++) {
        const struct weir__sim_outcome *o = outcomes[k];
        double seconds = (double)o->bucket / 1e9;
        for (size_t i = 0; i < o->n_buckets; i++) {
            const struct weir__sim_bucket *b = &o->buckets[i];
            widen(&s.rate, 1.4 * b->possible / seconds);
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

static void draw_rates(FILE *out, const struct panel *p, const struct weir__sim_outcome *o)
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
    draw_rate_marks(out, p);
    draw_area(out, p, "all", offered);
    draw_area(out, p, "served", ok);
    draw_line(out, p, "would", possible);
}

static void draw_latency(FILE *out, const struct panel *p, const struct weir__sim_outcome *o)
{
    double p50[WEIR__SIM_BUCKETS], p99[WEIR__SIM_BUCKETS];
    weir_time target = o->plan->guard.adaptive.target;

    for (size_t i = 0; i < p->n; i++) {
        p50[i] = (double)o->buckets[i].p50;
        p99[i] = (double)o->buckets[i].p99;
    }
    draw_tens(out, p, true);
    if (target)
        fprintf(out, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                p->x, p->x + PANEL_WIDTH, y_of(p, (double)target), y_of(p, (double)target));
    draw_line(out, p, "p99", p99);
    draw_line(out, p, "p50", p50);
}

static void draw_permits(FILE *out, const struct panel *p, const struct weir__sim_outcome *o)
{
    double in_flight[WEIR__SIM_BUCKETS], limit[WEIR__SIM_BUCKETS];

    for (size_t i = 0; i < p->n; i++) {
        in_flight[i] = o->buckets[i].in_flight;
        limit[i] = (double)o->buckets[i].limit;
    }
    draw_tens(out, p, false);
    draw_area(out, p, "all", in_flight);
    draw_line(out, p, "limit", limit);
}

static void draw_row(FILE *out, const struct weir__sim_outcome *o, const struct scales *s, double y,
                     bool words)
{
    struct panel p = { .y = y, .n = o->n_buckets, .bucket = o->bucket, .length = o->plan->length };

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
        draw_times(out, &p, words);
        (i == 0 ? draw_rates : i == 1 ? draw_latency : draw_permits)(out, &p, o);
    }
}

/* ---------------------------------------------------------------------- whole ---- */

static void draw_key(FILE *out, double x, const char *style, bool line, const char *text)
{
    if (line)
        fprintf(out, "<path class=\"line %s\" d=\"M%.1f 44h14\"/>", style, x);
    else
        fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"38\" width=\"11\" height=\"11\"/>", style,
                x);
    fprintf(out, "<text x=\"%.1f\" y=\"48\">%s</text>\n", x + (line ? 19 : 16), text);
}

static void draw_head(FILE *out, const struct weir__sim_plan *plan)
{
    fprintf(out, "<text class=\"title\" x=\"%.0f\" y=\"20\">", lefts[0]);
    weir__safe_text(out, WEIR__SAFE_MARKUP, plan->name);
    fputs(": ", out);
    weir__safe_text(out, WEIR__SAFE_MARKUP, plan->about);
    fputs("</text>\n", out);
    draw_key(out, lefts[0], "all", false, "come /s");
    draw_key(out, lefts[0] + 78, "served", false, "served /s");
    draw_key(out, lefts[0] + 166, "would", true, "possible");
    draw_key(out, lefts[1], "p99", true, "p99");
    draw_key(out, lefts[1] + 64, "p50", true, "p50");
    draw_key(out, lefts[1] + 128, "mark", true, "target");
    draw_key(out, lefts[2], "all", false, "at work");
    draw_key(out, lefts[2] + 78, "limit", true, "limit");
}

void weir__sim_svg(FILE *out, const struct weir__sim_outcome *const *outcomes, size_t n)
{
    struct scales scales = find_scales(outcomes, n);
    double height = TOP + ROW * (double)n;

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 %.0f %.0f\" "
            "width=\"%.0f\" height=\"%.0f\" role=\"img\">\n",
            WIDTH, height, WIDTH, height);
    fputs("<title>a guard's controllers over time</title>\n<style>", out);
    fputs(weir__plot_css, out);
    fputs(".plot .line{fill:none;stroke-width:1.4;stroke-linejoin:round}.plot "
          ".served{fill:#2f9e55;opacity:0.75}.plot .p99{stroke:#d1495b}"
          ".plot .p50{stroke:#3b7dd8}.plot .limit{stroke:#7a5cc7;stroke-width:1.8}</style>\n",
          out);
    draw_head(out, outcomes[0]->plan);
    for (size_t i = 0; i < n; i++)
        draw_row(out, outcomes[i], &scales, TOP + ROW * (double)i + 8, i + 1 == n);
    fputs("</svg>\n", out);
}
