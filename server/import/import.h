/* import.h -- `weir import`: the limits of another program's configuration, as a rule file.
 *
 * The way of an nginx.conf, a file for each step:
 *
 *     conf.c               bytes to directives, with the files they include
 *     patterns.c           regular expressions, names with stars, networks: as patterns of rules
 *     geo.c                the networks of a geo's values
 *     map.c                the conditions of a map's results
 *     zone-keys.c          a key with its maps and geos: cases with conditions and a plain key
 *     locations.c          the requests that reach some of them, as conditions
 *     servers.c            the same of ports and servers
 *     limit-directives.c   zones and their uses, from top to bottom
 *     refused-rules.c      a rule that a rule file could not have is left out
 *     differences.c        where rules decide differently
 *     write.c              rules and guards as YAML
 *     import.c             memory and notes
 *
 * Everything lives in one arena until weir__import_clear.  The command ends if memory runs out.
 */
#ifndef WEIR_SERVER_IMPORT_IMPORT_H
#define WEIR_SERVER_IMPORT_IMPORT_H

#include "base/arena.h"
#include "wire/buffer.h"

#define WEIR__IMPORT_BYTES_MAX ((size_t)64 << 20) /* of all files together */
#define WEIR__IMPORT_DEPTH_MAX 32                 /* of blocks, and of files that include files */
#define WEIR__IMPORT_CASES_MAX 64                 /* of one key */
#define WEIR__IMPORT_PARTS_MAX 17 /* 8 attributes, as rules have it, and texts between them */

/* Directives that locations inherit. */
enum weir__heirloom {
    WEIR__LIMIT_REQ,
    WEIR__LIMIT_CONN,
    WEIR__LIMIT_REQ_DRY_RUN,
    WEIR__LIMIT_CONN_DRY_RUN,
    WEIR__HEIRLOOMS
};

struct weir__directive {
    const char *file;
    int line;
    char **words; /* the first is its name */
    size_t n;
    struct weir__directive *parent, *first, *last, *next;
    const struct weir__directive *heirlooms[WEIR__HEIRLOOMS]; /* if they are known */
    bool known[WEIR__HEIRLOOMS];
};

/* For people.  A loss: the rules decide differently from the configuration. */
struct weir__import_note {
    const char *file, *text;
    int line;
    bool loss;
    struct weir__import_note *next;
};

struct weir__import {
    struct weir__arena arena;
    struct weir__directive root;
    struct weir__import_note *notes, *last_note;
    size_t losses, bytes, depth;
    const char *folder; /* that included files are relative to; NULL: none are read */
    const struct weir__directive *http;
    struct weir__wanted *wanted; /* attributes that a door must be told of */
};

/* Reads the configuration and adds the rule file to `out`.  *import has the notes.  With folder
 * NULL no file is included. */
int weir__import_nginx(struct weir__import *import, const char *path, const char *text, size_t len,
                       struct weir__buffer *out, struct weir_error *error);

/* -------------------------------------------------------------- import.c ---- */

void *weir__import_take(struct weir__import *import, size_t count, size_t size);
__attribute__((format(printf, 2, 3), nonnull(2))) char *
weir__import_text(struct weir__import *import, const char *format, ...);
__attribute__((format(printf, 4, 5))) void weir__import_note(struct weir__import *import,
                                                             const struct weir__directive *at,
                                                             bool loss, const char *format, ...);
void weir__import_clear(struct weir__import *import);

/* ---------------------------------------------------------------- conf.c ---- */

/* The directives below import->root. */
int weir__conf_read(struct weir__import *import, const char *path, const char *text, size_t len,
                    struct weir_error *error);
bool weir__conf_is(const struct weir__directive *d, const char *name);
/* The first of that name inside; NULL: none. */
struct weir__directive *weir__conf_find(const struct weir__directive *in, const char *name);
/* Also within blocks within it. */
bool weir__conf_has_anywhere(const struct weir__directive *block, const char *name);
/* The word with "burst=" of limit_req; 0: not there.  Of two the last counts, as in nginx. */
size_t weir__conf_option_at(const struct weir__directive *d, const char *name);
/* What follows; NULL: not there. */
const char *weir__conf_option(const struct weir__directive *d, const char *name);
extern const char *const weir__heirlooms[WEIR__HEIRLOOMS];
/* The first in the nearest block, from this one outwards, that has it; NULL: none has. */
const struct weir__directive *weir__conf_inherited(const struct weir__directive *block,
                                                   enum weir__heirloom which);

/* ------------------------------------------------------------ patterns.c ---- */

enum weir__import_kind {
    WEIR__IMPORT_EXACT,
    WEIR__IMPORT_PREFIX,
    WEIR__IMPORT_GLOB,
    WEIR__IMPORT_NETWORK,
};

struct weir__import_pattern {
    enum weir__import_kind kind;
    const char *text;
    struct weir__import_pattern *next;
};

struct weir__import_patterns {
    struct weir__import_pattern *first, *last;
    size_t n;
};

/* On one attribute of a request: one of `match`, if there are any, and none of `not`. */
struct weir__import_condition {
    const char *attribute;
    struct weir__import_patterns match, not ;
    struct weir__import_condition *next;
};

void weir__pattern_add(struct weir__import *import, struct weir__import_patterns *list,
                       enum weir__import_kind kind, const char *text);
void weir__patterns_add(struct weir__import *import, struct weir__import_patterns *list,
                        const struct weir__import_patterns *more);
/* A regular expression as globs of a path or of another value.  False: globs cannot express it. */
bool weir__pattern_regex(struct weir__import *import, struct weir__import_patterns *list,
                         const char *regex, bool path);
/* example.org, *.example.org, .example.org, www.example.*, ~regex */
bool weir__pattern_host(struct weir__import *import, struct weir__import_patterns *list,
                        const char *name);
/* The order in which nginx tries names of hosts: 0 a whole name, 1 *.name, 2 name.*, 3 others. */
int weir__pattern_rank(const struct weir__import_pattern *pattern);
/* May a text be one of the pattern's?  Sometimes true where it is not. */
bool weir__pattern_may_be(const struct weir__import_pattern *pattern, const char *text);
/* Leaves the texts that start with a prefix.  False: patterns cannot express it. */
bool weir__patterns_within(struct weir__import *import, struct weir__import_patterns *list,
                           const char *prefix);
/* The attribute's condition, made if there is none. */
struct weir__import_condition *weir__condition_of(struct weir__import *import,
                                                  struct weir__import_condition **list,
                                                  const char *attribute);
/* Both hold.  False: one attribute would need two matches, which no rule can say. */
bool weir__conditions_join(struct weir__import *import, struct weir__import_condition **list,
                           const struct weir__import_condition *more);
bool weir__conditions_equal(const struct weir__import_condition *a,
                            const struct weir__import_condition *b);

/* ----------------------------------------------------------- zone-keys.c ---- */

struct weir__value_part {
    const char *text;      /* or an attribute: */
    const char *attribute; /* NULL: text */
};

/* One of the values of an expression, and when it is that. */
struct weir__case {
    struct weir__import_condition *conditions;
    struct weir__value_part *parts;
    size_t n;
    struct weir__case *next;
};

/* An attribute that Weir's doors do not know by themselves. */
struct weir__wanted {
    const char *name, *variable;
    struct weir__wanted *next;
};

/* $name or ${name} at the text; the rest, or NULL: no variable, or its name is too long. */
const char *weir__value_variable(struct weir__import *import, const char *text, const char **name);
/* An attribute for a variable that no door knows by itself. */
const char *weir__value_want(struct weir__import *import, const char *name);
/* The cases of a zone's key in which it is not empty.  `at` is the directive with the key. */
struct weir__case *weir__value_cases(struct weir__import *import, const char *expression,
                                     const struct weir__directive *at);
/* Likewise, but of any value, `depth` maps deep.  NULL: rules cannot express it. */
struct weir__case *weir__expression_cases(struct weir__import *import, const char *expression,
                                          const struct weir__directive *at, int depth);
/* One more, at the end of a list. */
struct weir__case *weir__case_add(struct weir__import *import, struct weir__case ***end);
/* One value after the other.  False: they have too many parts. */
bool weir__case_append(struct weir__case *to, const struct weir__case *more);
size_t weir__cases_count(const struct weir__case *cases);
bool weir__has_letters(const char *text);
/* map.c, geo.c -- NULL: conditions cannot express it. */
struct weir__case *weir__map_cases(struct weir__import *import, const struct weir__directive *at,
                                   int depth);
struct weir__case *weir__geo_cases(struct weir__import *import, const struct weir__directive *at);
/* The rule's key; "": everybody is counted together. */
const char *weir__value_template(struct weir__import *import, const struct weir__case *value);

/* ----------------------------------------------------------- locations.c ---- */

struct weir__import_place;

/* A set of requests, as conditions; several sets if one cannot express it. */
struct weir__region {
    struct weir__import_condition *conditions;
    struct weir__region *next;
};

struct weir__import_place {
    const struct weir__directive *at; /* a location, or the server for what none matches */
    const struct weir__directive *server;
    enum weir__import_place_kind {
        WEIR__PLACE_PREFIX,
        WEIR__PLACE_EXACT,
        WEIR__PLACE_REGEX,
    } kind;
    const char *text;
    struct weir__import_patterns patterns;
    const struct weir__import_place *parent; /* the prefix whose block it is in, or NULL */
    bool no_regex;                           /* ^~ */
    const char *doubt; /* why rules take other requests for its own, or fewer; NULL: they do not */
    bool silent;       /* limits are never asked there: return, internal, @name */
    bool chosen;
    bool surely[2];   /* differences.c's: limit_req, limit_conn are asked there for certain ... */
    bool lacks;       /* ... or another place may ask more */
    size_t index;     /* their order */
    uint8_t uses[16]; /* limit-directives.c's: limits that are asked there */
    size_t n_uses;
    struct weir__import_place *next;
};

struct weir__import_place *weir__places_find(struct weir__import *import,
                                             const struct weir__directive *http);
/* The requests of a server that reach the chosen ones; `places` begins with the server's. */
struct weir__region *weir__places_within(struct weir__import *import,
                                         struct weir__import_place *places);
/* One more, at the end of a list. */
struct weir__region *weir__region_add(struct weir__import *import, struct weir__region ***end);
/* servers.c -- the requests that reach the chosen ones. */
struct weir__region *weir__places_region(struct weir__import *import,
                                         struct weir__import_place *places);

/* --------------------------------------------------------------- write.c ---- */

struct weir__imported {
    const struct weir__directive *at;
    const char *name, *key, *limit; /* limit NULL: a guard */
    const struct weir__directive *zone;
    const struct weir__case *value;
    long long most; /* of a guard */
    bool shadow;
    struct weir__import_condition *conditions;
    struct weir__imported *next;
};

void weir__import_write_one(const struct weir__imported *rule, struct weir__buffer *out);
void weir__import_write(const struct weir__import *import, const struct weir__imported *rules,
                        const struct weir__imported *guards, struct weir__buffer *out);

/* refused-rules.c -- false, and a note: Weir would refuse the rule. */
bool weir__import_can_be_read(struct weir__import *import, const struct weir__imported *rule);

/* --------------------------------------------------------- differences.c ---- */

/* `uses`: how many different ones there are. */
void weir__import_differences(struct weir__import *import, struct weir__import_place *places,
                              size_t uses, const struct weir__imported *rules,
                              const struct weir__imported *guards);

#endif
