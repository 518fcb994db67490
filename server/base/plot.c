/* plot.c -- panels of an SVG plot. */
#include "server/base/plot.h"

#include <string.h>

#include "server/base/human-numbers.h"
#include "server/base/safe-text.h"

void weir__plot_begin(FILE *out, double width, double height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 %.0f %.0f\" "
            "width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>%s</title>\n<style>%s</style>\n",
            width, height, width, height, title, weir__plot_css);
}

/* -------------------------------------------------------------------- scales ---- */

/* Doublings from 1, straight between them: 3 is 1.5.  No logarithm of libm, so that a drawing is
 * the same everywhere. */
static double doublings(double value)
{
    double n = 0;

    for (; value >= 2; value /= 2)
        n++;
    for (; value > 0 && value < 1 && n > -40; value *= 2)
        n--;
    return value > 0 ? n + value - 1 : -40;
}

static double y_of(const struct weir__plot *p, double value)
{
    double low = p->doublings ? doublings(p->low) : p->low,
           high = p->doublings ? doublings(p->high) : p->high;
    double part = ((p->doublings ? doublings(value) : value) - low) / (high - low);

    return p->y + p->height * (1 - (part < 0 ? 0 : part > 1 ? 1 : part));
}

static double x_at(const struct weir__plot *p, weir_time at)
{
    return p->x + p->width * (double)(at < p->length ? at : p->length) / (double)p->length;
}

double weir__plot_x(const struct weir__plot *p, size_t bucket)
{
    return x_at(p, (weir_time)bucket * p->bucket);
}

/* A round step, of which 3 to 6 reach `most`. */
static double round_step(double most, double least)
{
    double step = 1;

    while (step * 4 > most && step > 1e-9)
        step /= 10;
    while (step * 40 <= most)
        step *= 10;
    step *= most <= step * 5 ? 1 : most <= step * 10 ? 2 : most <= step * 25 ? 5 : 10;
    return step < least ? least : step;
}

double weir__plot_top(double most, double least)
{
    double step = round_step(most, least), top = step;

    while (top < most * 0.9999)
        top += step;
    return top;
}

/* ---------------------------------------------------------------------- axes ---- */

static void draw_rule(FILE *out, const struct weir__plot *p, const char *style, double y)
{
    fprintf(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", style,
            p->x, p->x + p->width, y, y);
}

void weir__plot_mark(FILE *out, const struct weir__plot *p, double value, const char *text)
{
    double y = y_of(p, value);

    draw_rule(out, p, value == 0 ? "axis" : *text ? "grid" : "mark", y);
    if (*text)
        fprintf(out, "<text class=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>", p->x - 6, y + 4, text);
    fputc('\n', out);
}

void weir__plot_values(FILE *out, const struct weir__plot *p, double least_step, const char *unit)
{
    double step = round_step(p->high, least_step);
    char text[WEIR__HUMAN];

    for (int i = 0; i * step <= p->high * 1.0001 && i <= 10; i++) {
        if (step >= 1)
            weir__human_count(text, (int64_t)(i * step));
        else
            snprintf(text, sizeof(text), "%g", i * step);
        strcat(text, unit);
        weir__plot_mark(out, p, i * step, text);
    }
}

/* The finest step with at most 9 marks. */
static weir_time choose_time_step(weir_time span)
{
    static const int64_t steps[] = { 1,   2,    5,    10,   15,    30,    60,    120,   300,   600,
                                     900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800 };
    size_t n = sizeof(steps) / sizeof(steps[0]);
    weir_time step = 604800 * WEIR_SECOND;

    for (size_t i = 0; i < n; i++) {
        if (span / (steps[i] * WEIR_SECOND) <= 8)
            return steps[i] * WEIR_SECOND;
    }
    while (span / step > 8)
        step *= 2;
    return step;
}

void weir__plot_times(FILE *out, const struct weir__plot *p, bool labels)
{
    weir_time step = choose_time_step(p->length);
    double bottom = p->y + p->height;
    char text[WEIR__HUMAN];

    draw_rule(out, p, "axis", bottom);
    for (weir_time t = (p->from + step - 1) / step * step; t <= p->from + p->length; t += step) {
        double x = x_at(p, t - p->from);
        fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x, x,
                p->y, bottom + 4);
        if (p->from == 0)
            snprintf(text, sizeof(text), "%llds", (long long)(t / WEIR_SECOND));
        else
            weir__human_clock(text, t, step);
        bool wide = strlen(text) > 4, fits = !wide || x < p->x + p->width - 20;
        if (labels && fits)
            fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>",
                    wide && x < p->x + 24 ? "" : "mid", x, bottom + 18, text);
    }
    fputc('\n', out);
}

/* -------------------------------------------------------------------- curves ---- */

/* Along `values` from one end to the other; `at` is the height so far. */
static double draw_steps(FILE *out, const struct weir__plot *p, const double *values, double at,
                         bool back)
{
    for (size_t k = 0; k < p->n; k++) {
        size_t i = back ? p->n - 1 - k : k;
        double y = values && values[i] > 0 ? y_of(p, values[i]) : p->y + p->height;
        if (y != at)
            fprintf(out, "H%.1fV%.1f", weir__plot_x(p, i + back), at = y);
    }
    return at;
}

void weir__plot_area(FILE *out, const struct weir__plot *p, const char *style, const double *low,
                     const double *high)
{
    double at = p->y + p->height;

    fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f", style, p->x, at);
    at = draw_steps(out, p, high, at, false);
    fprintf(out, "H%.1f", p->x + p->width);
    draw_steps(out, p, low, at, true);
    fprintf(out, "H%.1fZ\"/>\n", p->x);
}

void weir__plot_line(FILE *out, const struct weir__plot *p, const char *style, const double *values)
{
    bool down = false;

    fprintf(out, "<path class=\"line %s\" d=\"", style);
    for (size_t i = 0; i < p->n; i++) {
        double x = (weir__plot_x(p, i) + weir__plot_x(p, i + 1)) / 2;
        if (values[i] >= 0)
            fprintf(out, "%c%.1f %.1f", down ? 'L' : 'M', x, y_of(p, values[i]));
        down = values[i] >= 0;
    }
    fputs("\"/>\n", out);
}

void weir__plot_clip(FILE *out, const struct weir__plot *p, const double *values)
{
    char text[WEIR__HUMAN];
    double peak = p->high;
    size_t first = p->n;

    for (size_t i = 0, end; i < p->n; i = end + 1) {
        for (end = i; end < p->n && values[end] > p->high; end++)
            peak = values[end] > peak ? values[end] : peak;
        if (end == i)
            continue;
        first = first < i ? first : i;
        fprintf(out, "<path class=\"clip\" d=\"M%.1f %.1fH%.1f\"/>", weir__plot_x(p, i), p->y,
                weir__plot_x(p, end));
    }
    if (first < p->n)
        fprintf(out, "<text class=\"peak\" x=\"%.1f\" y=\"%.1f\">↑ up to %s</text>\n",
                weir__plot_x(p, first) + 4, p->y + 13,
                weir__human_count(text, (int64_t)(peak + 0.5)));
}

/* -------------------------------------------------------------------- legend ---- */

double weir__plot_key(FILE *out, double x, double y, const char *style, const char *text)
{
    bool line = strncmp(style, "line", 4) == 0;

    if (line)
        fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1fh14\"/>", style, x, y - 4);
    else
        fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"11\" height=\"11\"/>", style,
                x, y - 10);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + (line ? 19 : 16), y);
    weir__safe_text(out, WEIR__SAFE_MARKUP, text);
    fputs("</text>\n", out);
    return x + 34 + 6.7 * (double)strlen(text);
}
