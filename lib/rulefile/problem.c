/* problem.c -- mistakes in a rule file and their places: lines, carets, nearest words.
 *
 * A column counts characters, as in an editor, and the caret is under the character: its line
 * repeats the tabs of the line above.  No byte of a file that a terminal would obey is printed.
 */
#include "rulefile/problem.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- characters ---- */

/* Copies the character at p, or a question mark in its place; returns its length in `out`, and in
 * *taken its length in the text. */
static size_t copy_character(char *out, const char *p, const char *end, bool tabs, size_t *taken)
{
    size_t len = weir__utf8_length(p, end);

    *taken = len ? len : 1;
    if (len > 0 && (weir__utf8_is_harmless(p, len) || (tabs && *p == '\t'))) {
        memcpy(out, p, len);
        return len;
    }
    out[0] = '?';
    return 1;
}

static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Replaces everything in a message that a terminal would obey; never makes it longer. */
static void clean(char *text)
{
    const char *from = text, *end = text + strlen(text);

    while (from < end) {
        size_t taken;
        text += copy_character(text, from, end, false, &taken);
        from += taken;
    }
    *text = '\0';
}

/* --------------------------------------------------------------- places ---- */

/* A line ends with \n, \r\n or \r. */
static bool begins_line(const char *text, size_t at)
{
    return at == 0 || text[at - 1] == '\n' || (text[at - 1] == '\r' && text[at] != '\n');
}

int weir__report_open(struct weir__report *report, const char *text, size_t len,
                      struct weir_error *error)
{
    size_t n = 1, room = 1024;

    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        len -= 3;
    }
    *report = (struct weir__report){ .text = text, .len = len, .seen_column = 1 };
    report->lines = malloc(room * sizeof(*report->lines));
    if (report->lines == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory to read rules");
    report->lines[0] = 0;
    for (size_t at = 1; at < len; at++) {
        if (!begins_line(text, at))
            continue;
        if (n == room) {
            size_t *grown = realloc(report->lines, 2 * room * sizeof(*grown));
            if (grown == NULL) {
                weir__report_close(report);
                return weir__fail(error, WEIR_NO_MEMORY, "no memory to read rules");
            }
            report->lines = grown;
            room *= 2;
        }
        report->lines[n++] = at;
    }
    report->n_lines = n;
    return WEIR_OK;
}

void weir__report_close(struct weir__report *report)
{
    free(report->lines);
    report->lines = NULL;
}

static size_t find_line(const struct weir__report *report, size_t at)
{
    size_t low = 0, high = report->n_lines;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (report->lines[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int count_characters(const char *p, const char *end)
{
    int n = 0;

    for (; p < end; p++)
        n += !is_inside_character(*p);
    return n;
}

#define COLUMNS_COUNTED 4096 /* further to the right, bytes are counted */

struct weir__mark weir__report_mark(struct weir__report *report, size_t at)
{
    at = at < report->len ? at : report->len;
    size_t line = find_line(report, at);
    const char *text = report->text;

    /* Nobody counts characters that far, and for many problems it would take too long. */
    if (at - report->lines[line] > COLUMNS_COUNTED)
        return (struct weir__mark){ (int)line + 1, at - report->lines[line] < INT_MAX
                                                       ? (int)(at - report->lines[line]) + 1
                                                       : INT_MAX };
    if (line != report->seen_line) {
        report->seen_line = line;
        report->seen_at = report->lines[line];
        report->seen_column = 1;
    }
    if (at >= report->seen_at)
        report->seen_column += count_characters(text + report->seen_at, text + at);
    else
        report->seen_column -= count_characters(text + at, text + report->seen_at);
    report->seen_at = at;
    return (struct weir__mark){ (int)line + 1, report->seen_column };
}

/* The end of a line, without its line break. */
static size_t line_end(const struct weir__report *report, size_t line)
{
    size_t end = line + 1 < report->n_lines ? report->lines[line + 1] : report->len;

    while (end > report->lines[line] &&
           (report->text[end - 1] == '\n' || report->text[end - 1] == '\r'))
        end--;
    return end;
}

size_t weir__report_place(const struct weir__report *report, int line, int column)
{
    size_t i = line < 1                         ? 0
               : (size_t)line > report->n_lines ? report->n_lines - 1
                                                : (size_t)line - 1;
    size_t at = report->lines[i], end = line_end(report, i);

    if ((size_t)(line > 0 ? line : 0) > report->n_lines)
        return end;
    for (; column > 1 && at < end; column--) {
        at++;
        while (at < end && is_inside_character(report->text[at]))
            at++;
    }
    return at;
}

/* ------------------------------------------------------------- problems ---- */

/* The line, or its part around the place; and the place within that. */
static void copy_source(struct weir_problem *p, const struct weir__report *report, size_t at)
{
    size_t line = find_line(report, at), begin = report->lines[line], end = line_end(report, line),
           taken;
    const size_t room = sizeof(p->source) - 5; /* the longest character and the NUL */
    size_t n = 0;

    if (at > end)
        at = end;
    if (end - begin > room && at - begin > room / 2)
        begin = end - at < room / 2 ? end - room : at - room / 2;
    while (begin < at && is_inside_character(report->text[begin]))
        begin++;
    for (; begin < end && n < room; begin += taken) {
        if (begin <= at)
            p->caret = (int)n;
        n += copy_character(p->source + n, report->text + begin, report->text + end, true, &taken);
    }
    if (at >= begin)
        p->caret = (int)n;
    p->source[n] = '\0';
}

void weir__report_add(struct weir__report *report, size_t at, const char *format, ...)
{
    va_list args;

    if (report->n == WEIR__PROBLEMS_MAX) {
        report->more++;
        return;
    }
    struct weir_problem *p = &report->problems[report->n++];
    *p = (struct weir_problem){ .caret = -1 };
    va_start(args, format);
    vsnprintf(p->text, sizeof(p->text), format, args);
    va_end(args);
    clean(p->text);
    if (at == WEIR__NOWHERE)
        return;
    struct weir__mark mark = weir__report_mark(report, at);
    p->line = mark.line;
    p->column = mark.column;
    copy_source(p, report, at < report->len ? at : report->len);
}

static int compare(const void *left, const void *right)
{
    const struct weir_problem *a = left, *b = right;

    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    return strcmp(a->text, b->text);
}

/* A mistake under an anchor is found once for each alias. */
static void remove_repeated(struct weir__report *report)
{
    size_t kept = 0;

    for (size_t i = 0; i < report->n; i++) {
        if (kept > 0 && compare(&report->problems[kept - 1], &report->problems[i]) == 0)
            continue;
        if (kept != i)
            report->problems[kept] = report->problems[i];
        kept++;
    }
    report->n = kept;
}

static int fail_with(const struct weir_problem *p, const char *name, struct weir_error *error)
{
    if (p->line == 0)
        return weir__fail(error, WEIR_INVALID, "%s: %s", name, p->text);
    return weir__fail_at(error, p->column, "%s:%d:%d: %s", name, p->line, p->column, p->text);
}

int weir__report_tell(struct weir__report *report, const struct weir_rules_options *options,
                      struct weir_error *error)
{
    if (report->n == 0)
        return WEIR_OK;
    qsort(report->problems, report->n, sizeof(report->problems[0]), compare);
    remove_repeated(report);
    for (size_t i = 0; options && options->problem && i < report->n; i++)
        options->problem(options->context, &report->problems[i]);
    if (options && options->problem && report->more > 0) {
        struct weir_problem last = { .caret = -1 };
        snprintf(last.text, sizeof(last.text), "and %zu more", report->more);
        options->problem(options->context, &last);
    }
    return fail_with(&report->problems[0], options && options->name ? options->name : "rules",
                     error);
}

/* ------------------------------------------------------------- printing ---- */

/* Spaces under source[0 .. caret): a tab under a tab, a space under any other character. */
static void draw_caret(char *out, size_t size, const struct weir_problem *problem)
{
    size_t n = 0;

    for (int i = 0; i < problem->caret && problem->source[i] && n + 2 < size; i++) {
        if (!is_inside_character(problem->source[i]))
            out[n++] = problem->source[i] == '\t' ? '\t' : ' ';
    }
    out[n++] = '^';
    out[n] = '\0';
}

int weir_problem_print(char *out, size_t size, const char *name, const struct weir_problem *problem)
{
    assert(problem && (out || size == 0));
    char caret[sizeof(problem->source) + 2];

    if (name == NULL)
        name = "rules";
    if (problem->line == 0)
        return snprintf(out, size, "%s: %s", name, problem->text);
    if (problem->caret < 0)
        return snprintf(out, size, "%s:%d:%d: %s", name, problem->line, problem->column,
                        problem->text);
    draw_caret(caret, sizeof(caret), problem);
    return snprintf(out, size, "%s:%d:%d: %s\n    %s\n    %s", name, problem->line, problem->column,
                    problem->text, problem->source, caret);
}
