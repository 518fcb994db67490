/* draft.h -- a rule file as it was written: checked, but not yet compiled.
 *
 * read.c makes it from YAML, naming every mistake with its place; compile.c compiles it; `weir
 * rules diff` compares two.  All strings end in NUL and belong to the draft.
 */
#ifndef WEIR_MATCH_DRAFT_H
#define WEIR_MATCH_DRAFT_H

#include "base/arena.h"
#include "weir-queue.h"

#define WEIR__RULE_NAME_MAX  40    /* bytes; a limiter's name is made of it */
#define WEIR__RULE_LIMITS    16    /* limits of one rule */
#define WEIR__RULES_MAX      32768 /* each needs at least two limiters, and a table has 65536 */
#define WEIR__ATTRIBUTES_MAX 64    /* that one rule set may use */
#define WEIR__PRIORITY_WORDS 16    /* of one guard */

struct weir__mark {
    int line, column; /* from 1 */
};

/* A test of a value.
 *     exact    the same bytes              "/login", POST
 *     prefix   begins with it              /api/ and two stars (in uri), curl and one (elsewhere)
 *     glob     anything else with * or ?   "*bot*"
 *     cidr     an address in it            10.0.0.0/8, 2001:db8::1 (ip and names ending in .ip)
 *     list     on a list of the file       { list: office }
 *     present  not empty                   "*"
 */
enum weir__pattern_kind {
    WEIR__EXACT,
    WEIR__PREFIX,
    WEIR__GLOB,
    WEIR__CIDR,
    WEIR__LIST,
    WEIR__PRESENT
};

struct weir__pattern {
    enum weir__pattern_kind kind;
    char *text; /* exact: the value; prefix: without its stars; glob: whole; cidr: as written; list:
                   its name; present: "*" */
    size_t len;
    bool stated; /* the kind is written: { exact: ... } */
};

/* One attribute's patterns: one of them must hold. */
struct weir__condition {
    char *attribute;
    struct weir__pattern *patterns;
    size_t n;
    struct weir__mark mark;
};

struct weir__ban_draft {
    bool set;
    bool bare;                  /* `length` was written without a unit */
    struct weir_limit refusals; /* these refusals in this time ... */
    weir_time length;           /* ... ban the key this long; */
    int32_t factor;             /* the next time `factor` times as long (1: no longer), */
    weir_time longest;          /* at most this long; */
    weir_time forget;           /* strikes are forgotten this long after a ban's end */
    bool forgets;               /* it is written */
};

/* What decides under a limit of a fleet while its accounts cannot be asked. */
enum weir__alone {
    WEIR__ALONE_SHARE, /* this node's part of the limit */
    WEIR__ALONE_OPEN,  /* nothing: the request passes */
    WEIR__ALONE_CLOSED /* the request is refused */
};

#define WEIR__WITHIN (20 * WEIR_MILLISECOND) /* unless written */

struct weir__rule_draft {
    char *name;
    char *about; /* a sentence for people, or NULL */
    struct weir__condition *match, *except;
    size_t matches, excepts;
    char *key; /* the template; "" : one state for everybody */
    struct weir_limit limits[WEIR__RULE_LIMITS];
    size_t n_limits;
    int64_t cost;         /* by rule, >= 0; 1 unless written */
    char *cost_attribute; /* cost: "{bytes}": from this attribute; NULL: none */
    enum weir_mode mode;  /* never WEIR_AS_WRITTEN */
    bool moded;           /* it is written */
    bool no_algorithm;    /* one is written, and holds for no limit: all are calendar windows */
    bool own_algorithms;  /* the same, and each limit names another */
    bool no_zone;         /* one is written, and no limit is a calendar window */
    bool loose, strict; /* paths are compared loosely: uri.c; or the file says that they are not */
    struct weir__ban_draft ban;
    int64_t keys;     /* has no effect */
    bool closed;      /* when_full: a new key is refused if a key in use would have to make room */
    bool fleet;       /* across: its limits are one limit for all nodes */
    weir_time within; /* an ask waits at most this long for units; 0: not written */
    int32_t when_alone; /* enum weir__alone */
    struct weir__mark mark;
};

/* A guard's value from a request: "{plan|free}", or a fixed word. */
struct weir__pick_draft {
    char *attribute; /* NULL: none is asked */
    char *fallback;  /* for a missing value; or the word; NULL: none */
};

struct weir__priority_word {
    char *name;
    int8_t priority;
};

struct weir__fallback_draft {
    int32_t status; /* 0: none is written */
    char *body;     /* ends in NUL, but may have others before */
    size_t len;
    char *type;
    char *file; /* the body's file, as written; NULL: the body is in the rules */
};

struct weir__guard_draft {
    /* Name, about, match, not, mode; its key is the user's template; it has no limits. */
    struct weir__rule_draft rule;
    struct weir__rule_draft by_key;    /* its key is that of permits by key; NULL: there is none */
    struct weir_guard_options options; /* with the mode; the controller's name is the library's */
    int64_t queue;                     /* this many may wait; 0: none */
    weir_time wait;                    /* at most this long */
    /* By importance, if `selective`; `wait` is the longest then.  0: it does not wait */
    weir_time priority_waits[WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1], class_waits[WEIR_CLASSES];
    bool selective;
    bool by_fit; /* those wait that fit into the capacity: weir__guard_fits */
    enum weir_order order;
    bool ordered;     /* it is written */
    const char *bare; /* an option whose time was written without a unit; NULL: none */
    weir_time bare_time;
    struct weir__pick_draft priority, user_class;
    struct weir__priority_word words[WEIR__PRIORITY_WORDS]; /* for `priority`, beside numbers */
    size_t n_words, n_classes;
    struct weir__fallback_draft fallback;
};

/* How long an ask may wait; 0: not at all.  `fits` is weir__guard_fits's. */
static inline weir_time weir__draft_wait(const struct weir__guard_draft *g, int8_t priority,
                                         uint8_t user_class, bool fits)
{
    if (!g->selective)
        return g->queue > 0 ? g->wait : 0;
    if (g->by_fit)
        return fits ? g->wait : 0;
    weir_time a = g->priority_waits[priority - WEIR_PRIORITY_MIN],
              b = g->class_waits[user_class < WEIR_CLASSES ? user_class : WEIR_CLASSES - 1];
    return a > b ? a : b;
}

/* One attribute's part of a list. */
struct weir__list_draft {
    const char *name; /* "allow", "deny", or one to be named in `match` */
    const char *attribute;
    char **entries; /* of ip and *.ip: addresses and CIDR, checked; else values */
    size_t n;
    bool used; /* a rule names this part of it */
    struct weir__mark mark;
};

struct weir__draft {
    enum weir_mode mode; /* of the whole set; WEIR_ENFORCE unless written */
    int degradation;     /* 0 to 9; WEIR_DEGRADATION_AUTO unless written */
    struct weir__rule_draft *rules;
    size_t n_rules;
    struct weir__guard_draft *guards;
    size_t n_guards;
    struct weir__list_draft *lists;
    size_t n_lists;
    struct weir__arena arena; /* where all of it is */
};

/* read.c -- as weir_rules_parse, but not compiled. */
int weir__draft_read(struct weir__draft **out, const char *text, size_t len,
                     const struct weir_rules_options *options, struct weir_error *error);
void weir__draft_destroy(struct weir__draft *draft);

#define WEIR__RULES_TEXT_MAX ((size_t)256 << 20) /* bytes of a rule file */

/* priority.c -- a priority: a number, brought within bounds, or one of the words; false:
 * neither. */
bool weir__priority_read(const struct weir__priority_word *words, size_t n, const char *text,
                         size_t len, int8_t *out);
/* The number of the class of this name; -1: none. */
int weir__class_find(const struct weir_guard_options *options, const char *name, size_t len);

/* attributes.c -- whether values of this attribute are addresses: ip, and names that end in ".ip".
 * Whether they are paths, in which * stops at a slash: uri.  Whether they are hosts. */
bool weir__attribute_is_address(const char *name);
bool weir__attribute_is_host(const char *name);
bool weir__attribute_is_path(const char *name);

#endif
