/* explain.h -- for `weir explain` and `weir replay`: the answer of every rule and guard to a
 * request, and why.  Nothing is taken. */
#ifndef WEIR_ENGINE_EXPLAIN_H
#define WEIR_ENGINE_EXPLAIN_H

#include "match/rules.h"

/* engine.c -- an engine that only reads its table. */
int weir__engine_peek_only(struct weir *weir, struct weir_error *error);
/* Whether the rules in force use this attribute. */
bool weir__engine_uses(struct weir *weir, const char *name, size_t len);

enum weir__why {
    WEIR__APPLIES,
    WEIR__SWITCHED_OFF, /* its mode is off */
    WEIR__UNMATCHED,    /* `attribute` does not match `condition`, or is missing */
    WEIR__EXCEPTED,     /* `attribute` matches `condition`, under not: */
    WEIR__NO_KEY,       /* `attribute`, a part of the key, is missing */
};

/* What decides a rule across the fleet. */
enum weir__across {
    WEIR__ACROSS_HOST,   /* it is not across the fleet */
    WEIR__ACROSS_PURSE,  /* units that were drawn for this host */
    WEIR__ACROSS_SHARE,  /* this host's part of the limit */
    WEIR__ACROSS_OPEN,   /* alone: all pass */
    WEIR__ACROSS_CLOSED, /* alone: none passes */
    WEIR__ACROSS_NONE,   /* this host is in no fleet: the whole limit, here */
};

struct weir__explained_limit {
    const struct weir_limit *limit;
    struct weir_limit present;     /* the table's, if it differs; else count 0 */
    struct weir_decision decision; /* of a peek */
};

struct weir__explained {
    const struct weir__rule_draft *rule;
    enum weir__why why;
    enum weir_mode mode;
    const char *attribute; /* see why */
    const char *value;     /* NULL: missing */
    size_t value_len;
    const struct weir__condition *condition; /* see why */
    char key[160];
    int64_t cost;
    weir_time banned_until; /* 0: not */
    bool stays_banned;      /* it does not apply, but its key of this request is banned */
    enum weir__across across;
    size_t n_limits;
    struct weir__explained_limit limits[WEIR__RULE_LIMITS];
};

struct weir__explanation {
    const char *list, *list_attribute; /* "allow" or "deny" decides, by this attribute; or NULL */
    enum weir_mode mode;               /* of the whole set */
    struct weir_ruling ruling;         /* what weir_check would say */
};

/* A guard's view of a request. */
struct weir__explained_guard {
    const struct weir__guard_draft *guard;
    /* Why, mode, attribute, value, condition; its key is the user, "": unknown. */
    struct weir__explained as_rule;
    int8_t priority;
    uint8_t user_class;
    char key[WEIR_KEY_TEXT]; /* of permits by key; "": none */
    int64_t key_in_flight;   /* permits that it has out */
    bool refuses;            /* it would, if nothing changes; shedding cannot be foreseen */
    enum weir_reason reason; /* why */
    struct weir_guard_info info;
};
void weir__engine_explain_guards(
    struct weir *weir, const struct weir_attr *attrs, size_t n, const struct weir_ask *ask,
    void (*each)(void *context, const struct weir__explained_guard *guard), void *context);
/* Calls `each` for every rule in the order of the file. */
void weir__engine_explain(struct weir *weir, const struct weir_attr *attrs, size_t n,
                          const struct weir_ask *ask, struct weir__explanation *out,
                          void (*each)(void *context, const struct weir__explained *rule),
                          void *context);

/* rules-across-fleet.c -- a rule across the fleet that counts on this host alone, since it is in
 * no fleet; and how many of them there are.  NULL: none. */
const char *weir__lonely_rule(struct weir *weir, size_t *n);
/* Before rules are put in force: this host is in no fleet, unless another process is its agent. */
void weir__engine_leave_fleet(struct weir *weir);

/* For `weir replay`: every limit that applies to a request. */
struct weir__applying {
    size_t rule, index; /* which rule, which of its limits */
    const struct weir_limit *limit;
    char text[WEIR_KEY_TEXT]; /* of the key: its name outside the engine */
    int64_t cost;
};
size_t weir__engine_applying(struct weir *weir, const struct weir_attr *attrs, size_t n,
                             struct weir__applying *out, size_t max);

/* engine.c -- a rule with a limit that another process has changed: that one holds here too, the
 * table is shared. */
struct weir__other_limit {
    char rule[64], limit[192], written[192];
};
/* The next one; `at` begins with 0. */
bool weir__other_limit_next(struct weir *weir, int64_t *at, struct weir__other_limit *out);

#endif
