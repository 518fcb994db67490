/* plot.h -- panels of an SVG plot: scales, axes, areas, lines, legends.
 *
 * All drawings use plot.css: colours for white and dark pages, the viewer's own fonts, no script.
 */
#ifndef WEIR_SERVER_BASE_PLOT_H
#define WEIR_SERVER_BASE_PLOT_H

#include <stdio.h>

#include "weir.h"

extern const char weir__plot_css[]; /* plot.css, for every <svg class="plot"> */

struct weir__plot {
    double x, y, width, height; /* of the panel, on the page */
    double low, high;           /* the values at its bottom and top */
    bool doublings;             /* each doubling is as high as the last */
    size_t n;                   /* buckets of time */
    weir_time from, bucket;     /* from 0: virtual time */
    weir_time length;           /* of all: the last bucket may be shorter */
};

/* A file of its own: <svg>, title and style; "</svg>" ends it. */
void weir__plot_begin(FILE *out, double width, double height, const char *title);

double weir__plot_x(const struct weir__plot *p, size_t bucket);

/* The first multiple, at or above `most`, of a round step of which 3 to 6 reach it. */
double weir__plot_top(double most, double least);

void weir__plot_mark(FILE *out, const struct weir__plot *p, double value, const char *text);
/* Marks at round values. */
void weir__plot_values(FILE *out, const struct weir__plot *p, double least_step, const char *unit);
/* Marks at round times, and their labels. */
void weir__plot_times(FILE *out, const struct weir__plot *p, bool labels);

/* Steps from `low` (NULL: the bottom) to `high`. */
void weir__plot_area(FILE *out, const struct weir__plot *p, const char *style, const double *low,
                     const double *high);
/* Through the middles of the buckets; a negative value is a gap. */
void weir__plot_line(FILE *out, const struct weir__plot *p, const char *style,
                     const double *values);
/* Where values leave the panel, a dashed top edge and the peak. */
void weir__plot_clip(FILE *out, const struct weir__plot *p, const double *values);

/* A square or line, and a text beside it; returns the place of the next. */
double weir__plot_key(FILE *out, double x, double y, const char *style, const char *text);

#endif
