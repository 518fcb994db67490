/* complaints.h -- what a piece of code complains of, on stderr. */
#ifndef WEIR_TESTS_UNIT_COMPLAINTS_H
#define WEIR_TESTS_UNIT_COMPLAINTS_H

#include <stdio.h>
#include <unistd.h>

#include "unit/test.h"

struct complaints {
    FILE *file;
    int saved;
    char text[4096];
};

static inline void complaints_begin(struct complaints *c)
{
    fflush(stderr);
    c->file = tmpfile();
    assert_non_null(c->file);
    c->saved = dup(STDERR_FILENO);
    dup2(fileno(c->file), STDERR_FILENO);
}

static inline const char *complaints_end(struct complaints *c)
{
    fflush(stderr);
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    rewind(c->file);
    c->text[fread(c->text, 1, sizeof(c->text) - 1, c->file)] = '\0';
    fclose(c->file);
    return c->text;
}

#endif
