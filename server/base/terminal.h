/* terminal.h -- colours, bars and columns of a terminal. */
#ifndef WEIR_SERVER_BASE_TERMINAL_H
#define WEIR_SERVER_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Escape sequences; all empty without colours. */
struct weir__colours {
    const char *good, *bad, *mild, *note, *dim, *bold, *off;
};
struct weir__colours weir__colours(bool wanted);
bool weir__wants_colours(void); /* stdout is a terminal with colours, NO_COLOR is not set */

/* The width of stdout, if it is a terminal; else $COLUMNS, else this. */
int weir__terminal_columns(int otherwise);

/* A bar of `width` characters, in eighths: `part` of `whole`; anything above 0 is visible. */
int weir__human_bar(FILE *out, double part, double whole, int width);
/* A column of 0 to 8 eighths. */
const char *weir__human_column(int64_t eighths);

#endif
