/* settings-parts.h -- what the files of the settings share: a row, and the settings while they are
 * being read. */
#ifndef WEIR_SERVE_SETTINGS_PARTS_H
#define WEIR_SERVE_SETTINGS_PARTS_H

#include "server/serve/settings/settings.h"

enum weir__kind {
    WEIR__KIND_SWITCH,    /* bool */
    WEIR__KIND_TEXT,      /* const char *, as all below; malloced */
    WEIR__KIND_ADDRESSES, /* to listen on */
    WEIR__KIND_NETWORKS,  /* CIDR */
    WEIR__KIND_URL,
    WEIR__KIND_SECRET,
    WEIR__KIND_COUNT, /* int64_t, as all below */
    WEIR__KIND_SIZE,  /* bytes: 64k, 1m, 1g */
    WEIR__KIND_MODE,  /* of a file, in octal */
    WEIR__KIND_SPAN,  /* weir_time */
};

struct weir__setting {
    const char *section; /* of the help; NULL: that of the row before */
    const char *name;
    enum weir__kind kind;
    size_t offset;
    const char *standard; /* the default, as text */
    int64_t min, max;     /* of numbers */
    const char *value;    /* what the help calls its value */
    const char *help;
};

#define WEIR__SETTINGS 34
extern const struct weir__setting
    weir__settings_rows[WEIR__SETTINGS]; /* the row behind a secret is its file */

enum weir__from { WEIR__FROM_DEFAULT, WEIR__FROM_FILE, WEIR__FROM_ENVIRONMENT, WEIR__FROM_FLAG };

struct weir__found {
    const char *text; /* NULL: nobody says anything */
    enum weir__from from;
    int line; /* of the file; 0: it does not say */
};

struct weir__reading {
    struct weir__settings s;
    struct weir__found values[WEIR__SETTINGS];
    const char *config;
    char *file; /* the text of it; values point into it */
    size_t file_len;
    bool print;
};

/* settings.c */
struct weir__place {
    char text[300];
};
struct weir__place
weir__settings_place(const struct weir__reading *r,
                     const struct weir__setting *row); /* --keys, WEIR_KEYS, weir.conf:12: keys */
struct weir__place weir__settings_environment_name(const struct weir__setting *row);
const struct weir__setting *weir__settings_find(const char *name,
                                                size_t len); /* NULL: there is none */
void *weir__settings_member(const struct weir__reading *r, const struct weir__setting *row);
bool weir__setting_is_text(const struct weir__setting *row);
void weir__settings_print_value(char *out, size_t size, const struct weir__setting *row,
                                int64_t n); /* of a number */
void weir__settings_help(void);

/* settings-sources.c -- finds the text of each; what is wrong is said. */
int weir__settings_flags(struct weir__reading *r, int argc,
                         char **argv); /* WEIR__GO_ON, or a code to exit with */
void weir__settings_environment(struct weir__reading *r);
bool weir__settings_file(struct weir__reading *r);

/* settings-values.c -- makes values of the texts, and looks whether they go together; what is wrong
 * is said. */
bool weir__settings_values(struct weir__reading *r);

#endif
