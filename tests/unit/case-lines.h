/* case-lines.h -- a file of cases, one a line: PLACE | TEXT | PART of what is said about it. */
#ifndef WEIR_TESTS_UNIT_CASE_LINES_H
#define WEIR_TESTS_UNIT_CASE_LINES_H

#include <stdio.h>

#include "fixture.h"

/* Cuts off what comes before " | ". */
static inline char *cut(char **line)
{
    char *begin = *line, *end = strstr(begin, " | ");

    assert_non_null(end);
    *end = '\0';
    *line = end + 3;
    return begin;
}

/* More than `least` of them, and each is right. */
static inline void assert_cases(const char *path, int least,
                                bool (*is_right)(const char *place, char *text, const char *part))
{
    char line[2048];
    FILE *cases = fopen(path, "r");
    int n = 0, wrong = 0;

    assert_non_null(cases);
    while (fgets(line, sizeof(line), cases)) {
        char *rest = line;
        line[strcspn(line, "\n")] = '\0';
        if (*line == '#' || *line == '\0')
            continue;
        char *place = cut(&rest), *text = cut(&rest);
        wrong += !is_right(place, text, rest);
        n++;
    }
    fclose(cases);
    assert_true(n > least);
    assert_int_equal(wrong, 0);
}

#endif
