/* rules.h -- a compiled rule set.
 *
 *     attributes   the names that the set uses have numbers; a request becomes `facts`: a value for
 *                  each number
 *     tests        every pattern, compiled
 *     rules        which tests must hold, how the key is made, the limits; then the guards, found
 *                  in the same way
 *     match        the index that finds the rules that may apply, however many there are
 *
 * It never changes, so any number of threads may read it.
 */
#ifndef WEIR_MATCH_RULES_H
#define WEIR_MATCH_RULES_H

#include "base/hash.h"
#include "match/lists.h"
#include "match/key-template.h"

#define WEIR__URI_MAX        2048 /* bytes of a path that count; the rest is cut off */
#define WEIR__HOST_MAX       256  /* the same of a host */
#define WEIR__HOSTS          2    /* attributes that are hosts: host and header.host */
#define WEIR__METHOD_MAX     32   /* longer methods stay as they are */
#define WEIR__KEY_MAX        64   /* bytes of a made key; longer ones are hashed */
#define WEIR__ATTRIBUTE_SIZE 64   /* of a name and its NUL */
#define WEIR__FOUND_MAX      256  /* rules that are found at a time */

/* A request's value of one attribute; len 0: it has none, and the rest means nothing. */
struct weir__value {
    const char *text;
    size_t len;
    uint64_t hash;                /* 0: not made yet (match.c) */
    struct weir__address address; /* of addresses only; bits 0 if it is none: then the text is
                                     WEIR__NO_ADDRESS, whatever it was */
};

#define WEIR__NO_ADDRESS "not-an-address"
#define WEIR__READINGS   13

struct weir__facts {
    const struct weir__lists *lists; /* those in force: they may have been edited */
    struct weir__value values[WEIR__ATTRIBUTES_MAX];
    struct weir__value readings[WEIR__READINGS]; /* of the loose path, if servers differ on it */
    size_t n_readings;                           /* 0: they do not */
    char uri[WEIR__URI_MAX], loose[WEIR__READINGS][WEIR__URI_MAX + 2],
        hosts[WEIR__HOSTS][WEIR__HOST_MAX], method[WEIR__METHOD_MAX];
};

struct weir__test {
    enum weir__pattern_kind kind;
    const char *text; /* the draft's */
    size_t len;
    struct weir__cidr cidr;
    int list; /* its place in the lists */
};

/* One attribute's tests: one of them must hold.  A single test for a value or a prefix, the usual
 * case, is kept here. */
struct weir__clause {
    uint16_t attribute;
    bool path;
    bool plain;          /* such a test */
    uint32_t first, n;   /* of the set's tests */
    uint32_t loosely;    /* the first of them for loose paths, which must hold too; 0: none */
    const char *text;    /* the first bytes of the value, */
    size_t len, longest; /* how many, and how long the value may be */
};

struct weir__key_part {
    uint16_t attribute;
    bool address;
    uint8_t prefix4, prefix6; /* of an address: bits that count */
    const char *fallback;
};

enum weir__key_kind {
    WEIR__KEY_NONE,    /* one state for everybody */
    WEIR__KEY_VALUE,   /* the value of one attribute, as it is */
    WEIR__KEY_ADDRESS, /* an address of IPv4, a /64 of IPv6 */
    WEIR__KEY_MADE,    /* of several, or of parts of them */
};

struct weir__rule {
    /* Of the set's clauses: those that must hold, then those that must not. */
    uint32_t clauses_first;
    uint16_t matches, excepts;
    uint32_t first_limit; /* numbered across all rules */
    uint32_t key_number;  /* from 1 on; rules of the same number have the same key */
    uint8_t n_limits;
    uint8_t room;           /* as many; across the fleet, more than any request has room for */
    uint8_t key_kind;       /* enum weir__key_kind */
    bool closed;            /* when the table is full */
    bool fleet;             /* its limits are the fleet's */
    int16_t cost_attribute; /* or -1 */
    int64_t cost;
    const struct weir__rule_draft *draft;
    struct weir__key_part parts[WEIR__TEMPLATE_PARTS];
    struct weir__template key;
};

/* A guard's value from a request. */
struct weir__pick {
    int attribute;    /* or -1 */
    const char *text; /* replaces a missing value; NULL: nothing does */
};

/* Its rule is set->rules[set->n_rules + i]: the requests it is for, and the user as a key. */
struct weir__guard_rule {
    const struct weir__guard_draft *draft;
    struct weir__rule by_key; /* only its key counts */
    struct weir__pick priority, user_class;
};

struct weir__match;

/* The names in use, by number. */
struct weir__attributes {
    size_t n;
    int uri;                         /* the one that is a path; -1: none */
    int hosts[WEIR__HOSTS], n_hosts; /* those that are hosts */
    int method;                      /* that one + 1; 0: none */
    int loose; /* the path once more, loosely: an attribute that no request has; 0: none */
    uint8_t by_name[256]; /* number + 1, by a hash of the name */
    uint8_t by_id[256];   /* number + 1, by what weir_attribute gave; atomic */
    bool is_address[WEIR__ATTRIBUTES_MAX];
    uint8_t lengths[WEIR__ATTRIBUTES_MAX];
    char names[WEIR__ATTRIBUTES_MAX][WEIR__ATTRIBUTE_SIZE];
};

struct weir_rules {
    struct weir__draft *draft;
    struct weir__attributes attributes;
    struct weir__lists *lists;    /* as written */
    struct weir__test *tests;     /* of all rules */
    struct weir__clause *clauses; /* of all rules */
    struct weir__rule *rules;     /* n_rules of limits, then n_guards of guards */
    struct weir__guard_rule *guards;
    size_t n_rules, n_guards, n_limits, n_tests;
    struct weir__match *match,
        *guard_match; /* two, so that a check without guards skips them; NULL: none */
};

/* attributes.c -- the attributes that the set uses: path and host as a server sees them, methods in
 * capitals, addresses as numbers.  Every door comes through here.  If an attribute is given twice
 * the first counts. */
void weir__facts_gather(const struct weir__attributes *known, const struct weir__lists *lists,
                        const struct weir_attr *attrs, size_t n, struct weir__facts *facts);
/* Its number, or -1. */
int weir__attribute_find(const struct weir__attributes *known, const char *name, size_t len);
/* Its number; WEIR_INVALID: too many. */
int weir__attribute_add(struct weir__attributes *known, const char *name, struct weir_error *error);
/* In capitals; `out` has as many bytes. */
void weir__method_plain(const char *method, size_t len, char *out);
/* In place: names of headers, loose paths. */
void weir__lower(char *text, size_t len);

/* loose-path.c -- the uri as a server sees it and, if the set asks for it, loosely. */
void weir__paths_gather(const struct weir__attributes *known, struct weir__facts *facts);

/* Of the path, loosely. */
int weir__attribute_add_loose(struct weir__attributes *known, struct weir_error *error);

/* clause.c */
bool weir__clause_holds(const struct weir_rules *set, const struct weir__clause *clause,
                        const struct weir__facts *facts);

/* priority.c -- from the facts, as the guard says, or from the ask.  An unknown word counts as
 * none; without a known class the last class is used. */
int8_t weir__pick_priority(const struct weir__guard_rule *guard, const struct weir__facts *facts,
                           int8_t asked);
uint8_t weir__pick_class(const struct weir__guard_rule *guard, const struct weir__facts *facts,
                         uint8_t asked);

/* key.c -- the rule's key for these facts.  False: an attribute of the key is missing, and the rule
 * does not apply.  `made` is memory for a key that must be put together; `secrets` are the
 * table's. */
bool weir__rule_key_make(const uint64_t *secrets, const struct weir__rule *rule,
                         const struct weir__facts *facts, unsigned char made[WEIR__KEY_MAX],
                         struct weir_key *key);

static inline bool weir__rule_key(const uint64_t *secrets, const struct weir__rule *rule,
                                  const struct weir__facts *facts,
                                  unsigned char made[WEIR__KEY_MAX], struct weir_key *key)
{
    const struct weir__value *v = &facts->values[rule->parts[0].attribute];

    if (rule->key_kind == WEIR__KEY_ADDRESS && v->len != 0 && v->address.bits != 0) {
        *key = (struct weir_key){ v->address.bytes, v->address.bits == 32 ? 4 : 8 };
        return true;
    }
    if (rule->key_kind == WEIR__KEY_VALUE && v->len != 0) {
        *key = (struct weir_key){ v->text, v->len };
        return true;
    }
    return weir__rule_key_make(secrets, rule, facts, made, key);
}

/* The same for people; returns the length.  No two keys have the same text; a long text is always
 * shortened in the same way. */
size_t weir__rule_key_text(const uint64_t *secrets, const struct weir__rule *rule,
                           const struct weir__facts *facts, char out[WEIR_KEY_TEXT]);
/* `out` must not be `whole`. */
size_t weir__key_text_shorten(const uint64_t *secrets, const char *whole, char out[WEIR_KEY_TEXT]);

/* request-cost.c -- what the ask costs at the rule. */
int64_t weir__rule_cost_made(const struct weir__rule *rule, const struct weir__facts *facts,
                             int64_t asked);
static inline int64_t weir__rule_cost(const struct weir__rule *rule,
                                      const struct weir__facts *facts, int64_t asked)
{
    return rule->cost == 1 && rule->cost_attribute < 0 ? asked
                                                       : weir__rule_cost_made(rule, facts, asked);
}

/* match.c -- an index of n rules from the first on. */
int weir__match_create(struct weir__match **out, const struct weir_rules *set, size_t first,
                       size_t n, struct weir_error *error);
void weir__match_destroy(struct weir__match *match);

/* The rules of an index (set->match or set->guard_match; NULL: none) that match, in the order of
 * the file, from the rule `from` on; returns their number.  If that is WEIR__FOUND_MAX there may be
 * more: weir__matches_more asks again. */
size_t weir__match_find(const struct weir_rules *set, const struct weir__match *match,
                        struct weir__facts *facts, uint32_t from, uint32_t found[WEIR__FOUND_MAX]);

/* All of them, part by part:
 *
 *     weir__matches_begin(&m, set, set->match, &facts);
 *     do
 *         for (size_t i = 0; i < m.n; i++)
 *             ... m.found[i] ...
 *     while (weir__matches_more(&m));
 */
struct weir__matches {
    const struct weir_rules *set;
    const struct weir__match *match;
    struct weir__facts *facts;
    size_t n;
    bool later; /* not the first part */
    uint32_t found[WEIR__FOUND_MAX];
};

static inline void weir__matches_begin(struct weir__matches *m, const struct weir_rules *rules,
                                       const struct weir__match *match, struct weir__facts *facts)
{
    m->set = rules;
    m->match = match;
    m->facts = facts;
    m->later = false;
    m->n = weir__match_find(rules, match, facts, 0, m->found);
}

static inline bool weir__matches_more(struct weir__matches *m)
{
    if (__builtin_expect(m->n < WEIR__FOUND_MAX, 1))
        return false;
    m->later = true;
    m->n = weir__match_find(m->set, m->match, m->facts, m->found[m->n - 1] + 1, m->found);
    return true;
}

#endif
