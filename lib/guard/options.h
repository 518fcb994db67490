/* options.h -- the options of a guard as rows.
 *
 * One row describes an option completely: reader, bounds, defaults, the table's record, JSON, `weir
 * rules diff`, the schema and the docs use it.  A new option is a member in weir.h, a row at the
 * end of its group in options.c, and its use.
 */
#ifndef WEIR_GUARD_OPTIONS_H
#define WEIR_GUARD_OPTIONS_H

#include <stddef.h>

#include "base/base.h"

enum weir__row_type {
    WEIR__ROW_COUNT,
    WEIR__ROW_TIME,
    WEIR__ROW_PERCENT, /* where min is 0, -1 means 0%, because 0 means left out */
    WEIR__ROW_WORD,    /* the place of the word in `words`: a flag, an enum */
    WEIR__ROW_NAME,    /* a pointer to one of `words`; its value is the place from 1 */
};

struct weir__row {
    const char *name;   /* in rule files; NULL: it has no name there */
    const char *member; /* in C and JSON; NULL: not shown */
    uint16_t offset, size;
    enum weir__row_type type;
    int64_t min, max;  /* 0 is always allowed: left out */
    int64_t otherwise; /* the default; 0: none, or it depends on others */
    const char *const *(*words)(void);
    const char *text; /* one line for the schema and the docs */
};

/* The rows of one struct, which is a mapping in rule files. */
struct weir__rows {
    const char *name;
    size_t offset; /* of the struct in struct weir_guard_options */
    const struct weir__row *rows;
    size_t n;
};

#define WEIR__ROW(type_, member_) \
    .member = #member_, .offset = offsetof(type_, member_), .size = sizeof(((type_ *)0)->member_)

enum weir__group {
    WEIR__CONCURRENCY, /* these two are not in a struct */
    WEIR__GUARD,
    WEIR__BREAKER,
    WEIR__ADAPTIVE,
    WEIR__SYSTEM,
    WEIR__GROUPS
};

#define WEIR__OPTIONS      34 /* rows in all; their order is part of the table's format */
#define WEIR__OPTIONS_ROOM 95 /* for them in a record */

extern const struct weir__rows weir__guard_rows[WEIR__GROUPS];

/* From a rule file's members of `concurrency` with a key to the guard's options, and back. */
void weir__concurrency_turn(struct weir_guard_options *options);

/* "false", "true" */
const char *const *weir__flag_words(void);

/* An option's value, whatever its type; 0: left out. */
int64_t weir__row_get(const struct weir__row *row, const void *options);
void weir__row_set(const struct weir__row *row, void *options, int64_t value);

/* As in a rule file: 500ms, 50%, above. */
struct weir__row_text {
    char text[32];
};
struct weir__row_text weir__row_print(const struct weir__row *row, int64_t value);

/* "from 10ms to 1h"; "at most 1h" if anything above 0 is allowed. */
struct weir__row_bounds {
    char text[80];
};
struct weir__row_bounds weir__row_bounds(const struct weir__row *row);

bool weir__rows_any(const struct weir__rows *rows, const void *options); /* is one written? */
int weir__rows_check(const struct weir__rows *rows, const void *options, struct weir_error *error);
void weir__rows_fill(const struct weir__rows *rows, void *options); /* fills in the defaults */

#endif
