/* complain.h -- the errors that `weir` prints. */
#ifndef WEIR_SERVER_BASE_COMPLAIN_H
#define WEIR_SERVER_BASE_COMPLAIN_H

#include "weir.h"

/* One line to stderr: "weir COMMAND: ..."; a NULL command is the program itself.  Returns the exit
 * code of wrong use, 2. */
__attribute__((format(printf, 2, 3))) int weir__complain(const char *command, const char *format,
                                                         ...);

/* The same about a value that could not be read, with the value below it and a caret under the
 * column.  `place` is where it was given: "--limit". */
void weir__complain_at(const char *command, const char *place, const char *value,
                       const struct weir_error *error);

#endif
