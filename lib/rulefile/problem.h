/* problem.h -- problems of a rule file and their places: collected while reading, reported in the
 * order of the text.
 *
 * Places are offsets into the text while reading; they become lines and columns when a problem is
 * noted.
 */
#ifndef WEIR_RULEFILE_PROBLEM_H
#define WEIR_RULEFILE_PROBLEM_H

#include "base/base.h"
#include "base/utf8.h"
#include "match/draft.h"

#define WEIR__PROBLEMS_MAX 100      /* that are reported; the rest is counted */
#define WEIR__NOWHERE      SIZE_MAX /* the place of a problem of the whole text */

struct weir__report {
    const char *text; /* without a byte order mark */
    size_t len;
    size_t *lines; /* where each begins; the text's, then its end */
    size_t n_lines;
    size_t seen_line, seen_at; /* the last place looked up, from which one near it is found: */
    int seen_column;           /* a file may be one line of a million bytes */
    struct weir_problem problems[WEIR__PROBLEMS_MAX];
    size_t n, more;
};

/* problem.c */
int weir__report_open(struct weir__report *report, const char *text, size_t len,
                      struct weir_error *error);
void weir__report_close(struct weir__report *report);

struct weir__mark weir__report_mark(struct weir__report *report, size_t at);
/* The reverse; a place outside the text is moved inside. */
size_t weir__report_place(const struct weir__report *report, int line, int column);

/* Notes a problem at the byte `at` of the text. */
__attribute__((format(printf, 3, 4))) void weir__report_add(struct weir__report *report, size_t at,
                                                            const char *format, ...);

/* Passes all problems to options->problem, in order; WEIR_OK, or WEIR_INVALID with the first one in
 * *error. */
int weir__report_tell(struct weir__report *report, const struct weir_rules_options *options,
                      struct weir_error *error);

#endif
