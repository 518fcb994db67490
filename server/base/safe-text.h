/* safe-text.h -- strangers' texts made safe for a terminal and for markup, and cut to a length. */
#ifndef WEIR_SERVER_BASE_SAFE_TEXT_H
#define WEIR_SERVER_BASE_SAFE_TEXT_H

#include <stddef.h>
#include <stdio.h>

enum weir__safe {
    WEIR__SAFE_TERMINAL, /* no control character, nothing that turns the direction of writing */
    WEIR__SAFE_MARKUP,   /* text and attributes of HTML and SVG */
};

void weir__safe_put(FILE *out, enum weir__safe kind, const char *text, size_t len);
void weir__safe_text(FILE *out, enum weir__safe kind, const char *text); /* ended by NUL */

/* Copies text to out, a longer one cut between two characters and ended by "..."; always ended by
 * NUL. */
void weir__text_cut(char *out, size_t size, const char *text, size_t len);

#endif
