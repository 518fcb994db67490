/* weir-admin.h -- for operators of rules in force: modes, counts, keys, lists, bans.  Read
 * weir.h first. */
#ifndef WEIR_ADMIN_H
#define WEIR_ADMIN_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- modes ---- */

/* The modes of the whole rule set. */
struct weir_modes {
    enum weir_mode written, by_hand, in_force; /* by_hand: or WEIR_AS_WRITTEN */
};
WEIR_API void weir_modes_get(struct weir *weir, struct weir_modes *out);

/* Switches one rule, one guard of the rules (for weir_check_enter; weir_enter follows the guard's
 * own options) or, with NULL, all of them, at once in every process that shares the table. */
WEIR_API int weir_mode_set(struct weir *weir, const char *name, enum weir_mode mode,
                           struct weir_error *error);

/* The guards of the rules, in the order of the file; or the one of this name. */
struct weir_ruled_guard {
    const char *name; /* good until weir_destroy */
    struct weir_guard *guard;
    struct weir_modes modes;       /* in_force: together with the mode of the whole set */
    struct weir_fallback fallback; /* status 0: none */
    bool waits;                    /* it has a queue: weir_ruled_queue_get in weir-queue.h */
};
WEIR_API bool weir_ruled_guard_next(struct weir *weir, int64_t *at, struct weir_ruled_guard *out);
WEIR_API bool weir_ruled_guard_find(struct weir *weir, const char *name,
                                    struct weir_ruled_guard *out);

/* ---------------------------------------------------------------- counts ---- */

/* Counts of this process since weir_create; each request was allowed or refused. */
struct weir_totals {
    int64_t checked, allowed, refused;
    int64_t denied;         /* refused by a deny list */
    int64_t allow_listed;   /* allowed by an allow list */
    int64_t unmatched;      /* allowed because no rule applies or all are off */
    int64_t shadow_refused; /* allowed, but a rule or deny list in shadow would have refused */
};
WEIR_API void weir_totals_get(struct weir *weir, struct weir_totals *out);

struct weir_rule_info {
    const char *name;                       /* good until weir_destroy */
    enum weir_mode written, switched, mode; /* in the rules; by hand, or AS_WRITTEN; in force */
    int64_t allowed, refused, banned;       /* here, since the rule came; a banned one is refused */
    int64_t shadow_refused;                 /* allowed only because of the rule's mode */
};
/* In the order of the file.  After weir_use a listing goes on in the new rules. */
WEIR_API bool weir_rule_next(struct weir *weir, int64_t *at, struct weir_rule_info *out);

/* Adds this process's counts since the last call to those of the table; call it every now and then,
 * before a fork and at the end.  The table keeps a rule's counts as long as it keeps its mode. */
WEIR_API void weir_counts_share(struct weir *weir);
/* As weir_totals_get and weir_rule_next, with the counts of all processes that share theirs. */
WEIR_API void weir_totals_shared(struct weir *weir, struct weir_totals *out);
WEIR_API bool weir_rule_next_shared(struct weir *weir, int64_t *at, struct weir_rule_info *out);

/* ------------------------------------------------------- limits and keys ---- */

/* A limiter's name for people: "login, limit 1" for the first one of a rule.  False: it limits
 * nothing, it holds the mode of the rule or guard `words`. */
WEIR_API bool weir_limiter_words(const struct weir_limiter_info *info, char words[96]);

/* Makes the request's key fresh for every rule that applies to it, or for the one named: forgets
 * what it has used, counted refusals, a ban and its strikes, in any mode and on any list.  Returns
 * how many rules had such a key, or a negative code: WEIR_INVALID if there is no such rule. */
WEIR_API int64_t weir_reset(struct weir *weir, const char *rule, const struct weir_attr *attrs,
                            size_t n, weir_time now, struct weir_error *error);

/* ----------------------------------------------------------------- lists ---- */

/* Edits a list ("allow", "deny" or one of the rules) in this process, until the next weir_use. */
struct weir_list_edit {
    const char *list, *attribute;
    const char *const *add;
    size_t adds;
    const char *const *remove;
    size_t removes;
};
WEIR_API int weir_list_edit(struct weir *weir, const struct weir_list_edit *edit,
                            struct weir_error *error);

struct weir_list_info {
    char name[64], attribute[64];
    size_t entries;
};
WEIR_API bool weir_list_next(struct weir *weir, int64_t *at, struct weir_list_info *out);

/* ------------------------------------------------------------------ bans ---- */

/* A ban keeps a key of a rule out until a time.  Bans live in the table, so they survive a restart.
 * The key is the rule's template filled in: "192.0.2.7", "192.0.2.0/24:ann". */
struct weir_ban {
    char rule[64];
    char key[WEIR_KEY_TEXT]; /* a longer one: its beginning, "..." and its hash */
    weir_time since, until;
    int32_t strikes; /* bans of this key not forgotten yet, including this one */
};
WEIR_API int weir_ban_set(struct weir *weir, const char *rule, const char *key, weir_time now,
                          weir_time until, struct weir_error *error);
/* The text under which listings show a key that weir_ban_set takes. */
WEIR_API int weir_ban_key(struct weir *weir, const char *rule, const char *key,
                          char text[WEIR_KEY_TEXT], struct weir_error *error);
/* False: it was not banned. */
WEIR_API bool weir_ban_lift(struct weir *weir, const char *rule, const char *key, weir_time now);
WEIR_API bool weir_ban_next(struct weir *weir, weir_time now, int64_t *at, struct weir_ban *out);

#ifdef __cplusplus
}
#endif
#endif
