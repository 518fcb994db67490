/* read.h -- shared by the readers of a rule file's parts. */
#ifndef WEIR_RULEFILE_READ_H
#define WEIR_RULEFILE_READ_H

#include "guard/options.h"
#include "match/draft.h"
#include "rulefile/node.h"

struct weir__reader {
    const struct weir_rules_options *options; /* never NULL */
    struct weir__report report;
    struct weir__draft *draft;
    struct weir__arena *arena; /* the draft's */
    const char *zone;          /* of the file; NULL: none is written */
    bool loose, strict;        /* `paths` of the file */
    const char *attributes[WEIR__ATTRIBUTES_MAX];
    size_t n_attributes;
    struct weir__list_draft **lists; /* the draft's, by name and attribute */
    char *empty;                     /* "", for rules without a key */
};

/* A member of a mapping: its name, and where it was found. */
struct weir__member {
    const char *name;
    struct weir__node *key; /* NULL: it is not there */
    struct weir__node *value;
};

/* read.c */
__attribute__((format(printf, 3, 4))) void
weir__say(struct weir__reader *r, const struct weir__node *node, const char *format, ...);

/* A parser's error inside a scalar. */
void weir__say_error(struct weir__reader *r, const struct weir__node *node, const char *what,
                     const struct weir_error *error);

struct weir__mark weir__mark_of(struct weir__reader *r, const struct weir__node *node);
size_t weir__problems(const struct weir__reader *r); /* so far */

/* unknown-keys.c -- finds the members of a mapping by name, and reports unknown ones.  False, after
 * a report: not a mapping. */
bool weir__read_members(struct weir__reader *r, const struct weir__node *node, const char *what,
                        struct weir__member *members, size_t n);

/* read-value.c -- a scalar's text, or NULL, and reports "<what> must be <like>; found a list". */
const char *weir__read_text(struct weir__reader *r, const struct weir__node *node, const char *what,
                            const char *like);

/* A time without a unit?  NULL: no. */
bool weir__is_bare_number(const struct weir__node *node);
bool weir__read_count(struct weir__reader *r, const struct weir__node *node, const char *what,
                      int64_t min, int64_t max, int64_t *out);
void weir__read_paths(struct weir__reader *r, const struct weir__member *m, bool *loose,
                      bool *strict);
bool weir__read_mode(struct weir__reader *r, const struct weir__node *node, enum weir_mode *out);
/* NULL: it is wrong. */
const char *weir__read_zone(struct weir__reader *r, const struct weir__node *node);

/* A name of a rule or list: 1 to 40 bytes of A-Z a-z 0-9 . _ -; a copy of the draft's. */
char *weir__read_name(struct weir__reader *r, const struct weir__node *node, const char *what);

/* The name of an attribute, copied to the draft, which the set uses from now on; NULL, after a
 * report. */
char *weir__read_attribute(struct weir__reader *r, const struct weir__node *node, const char *name,
                           size_t len);

/* Whether the key can be the name of a class or priority, of at most this many bytes; if not, it is
 * reported. */
bool weir__read_word_name(struct weir__reader *r, const struct weir__node *key, const char *what,
                          size_t most);

/* read-match.c -- the conditions of `match` or `not`. */
void weir__read_match(struct weir__reader *r, const struct weir__node *node, const char *what,
                      struct weir__condition **out, size_t *n);

/* read-limit.c -- the limits of a rule. */
struct weir__limit_defaults {
    const char *algorithm; /* of the rule; NULL: none is written */
    const char *zone;
};
void weir__read_limits(struct weir__reader *r, const struct weir__node *node,
                       const struct weir__limit_defaults *defaults, struct weir__rule_draft *rule);
bool weir__read_limit(struct weir__reader *r, const struct weir__node *node, const char *what,
                      const struct weir__limit_defaults *defaults, struct weir_limit *out);
/* NULL: it is wrong. */
const char *weir__read_algorithm(struct weir__reader *r, const struct weir__node *node);

/* read-ban.c */
void weir__read_ban(struct weir__reader *r, const struct weir__node *node,
                    const struct weir__limit_defaults *defaults, struct weir__ban_draft *ban);
extern const struct weir__rows weir__ban_rows;

/* read-rule.c -- all rules. */
void weir__read_rules(struct weir__reader *r, const struct weir__node *node);

/* The members that rules and guards share: name, about, match, not, mode. */
struct weir__mapping;
void weir__read_head(struct weir__reader *r, const struct weir__node *node, const char *what,
                     const struct weir__mapping *m, struct weir__rule_draft *rule);

/* Text with attributes in braces; NULL, with a report: unquoted braces are a mapping to YAML, the
 * mistake that everybody makes once. */
const char *weir__read_braces(struct weir__reader *r, const struct weir__node *node,
                              const char *what, const char *like);

/* read-guard.c -- all guards, after the rules. */
void weir__read_guards(struct weir__reader *r, const struct weir__node *node);
/* A template that a guard needs to be for somebody. */
void weir__read_guard_key(struct weir__reader *r, const struct weir__node *node, const char *name,
                          struct weir__rule_draft *out);
/* One digit and perhaps a sign, within bounds; false: it is something else. */
bool weir__read_priority_number(const struct weir__node *node, int8_t *out);

/* read-guard-bounds.c -- a guard's bounds; the concurrency before the adaptive limit, which may not
 * be more. */
void weir__read_concurrency(struct weir__reader *r, const struct weir__node *node,
                            struct weir__guard_draft *g);
void weir__read_adaptive(struct weir__reader *r, const struct weir__node *node,
                         struct weir__guard_draft *g);
void weir__read_breaker(struct weir__reader *r, const struct weir__node *node,
                        struct weir__guard_draft *g);
void weir__read_system(struct weir__reader *r, const struct weir__node *node,
                       struct weir__guard_draft *g);
void weir__fill_queue(struct weir__guard_draft *g); /* its defaults, when all is read */
extern const struct weir__rows weir__queue_rows;    /* concurrency's, of the draft */

/* read-options.c -- a mapping whose members are rows of options; the caller reads others. */
struct weir__mapping {
    const char *const *others; /* their names, ended by NULL; given by the caller */
    struct weir__member members[24];
    size_t n;
};

/* The members by their names, into the mapping; of those that are rows the values, into `options`.
 * False if the node is no mapping. */
bool weir__read_rows(struct weir__reader *r, const struct weir__node *node,
                     const struct weir__rows *rows, struct weir__mapping *out, void *options);
/* Notes a time without a unit that looks like milliseconds. */
void weir__note_bare(const struct weir__mapping *m, struct weir__guard_draft *g);
/* One row; false: it is not there, or wrong and reported. */
bool weir__read_row(struct weir__reader *r, const struct weir__member *m,
                    const struct weir__row *row, void *options);
/* One of the rows or others by its name; it must be among them. */
const struct weir__member *weir__member_of(const struct weir__mapping *mapping, const char *name);

void weir__read_flag(struct weir__reader *r, const struct weir__member *m, bool *out);
/* The place of one of the words; -1: it is not there, or another. */
int weir__read_word(struct weir__reader *r, const struct weir__member *m, const char *const *words);

/* read-lists.c -- all lists; and whether a list that a rule names is there: if not, it is
 * reported. */
void weir__read_lists(struct weir__reader *r, const struct weir__node *node);
void weir__check_list(struct weir__reader *r, const struct weir__node *node, const char *attribute);
/* After the rules: "alow" is a slip for allow. */
void weir__check_unused_lists(struct weir__reader *r, const struct weir__node *node);

/* list-file.c -- a list's entries from a file, one a line. */
void weir__read_list_file(struct weir__reader *r, const struct weir__node *node,
                          struct weir__list_draft *list);

/* The contents of the named file, to be freed; NULL, with a report.  `instead` is advice if no file
 * may be named. */
char *weir__read_file(struct weir__reader *r, const struct weir__node *node, size_t most,
                      const char *instead, size_t *len);

/* An entry, if it is one: a copy of the draft's; NULL, and error->text says why. */
char *weir__read_entry(struct weir__reader *r, const char *attribute, const char *text, size_t len,
                       struct weir_error *error);

#endif
