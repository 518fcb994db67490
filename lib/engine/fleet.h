/* fleet.h -- rules `across: fleet`, for the agent of a host (cluster/agent) and the doors.
 *
 * A limit of such a rule has two limiters in the table: a purse, which asks spend and the agent
 * fills from the fleet's account, and a share, the host's part of the limit.
 *
 *     fleet_until is ahead     the purse is asked.  Too little in it: refused as WEIR_DRY, which
 *                              takes, counts and bans nothing: draw, and ask again
 *     it is past               the rule's when_alone decides: the share, all pass, or none
 *     it is 0                  this host is in no fleet: the share, which is the whole limit
 *
 * Rules in shadow go by the share: they draw nothing.
 *
 * fleet_until and the part are words of the table's head (table/agent-lease.h).  An agent that
 * begins sets WEIR__FLEET_AWAY and its part, and renews fleet_until while it gets answers.
 */
#ifndef WEIR_ENGINE_FLEET_H
#define WEIR_ENGINE_FLEET_H

#include "match/draft.h"
#include "match/rules.h"
#include "table/agent-lease.h"
#include "table/bans.h"

/* ----------------------------------------------------- limits in force ---- */

#define WEIR__ACCOUNT_NAME 16 /* bytes */

/* A limit across the fleet. */
struct weir__across_limit {
    const char *rule; /* lives as long as the engine */
    uint32_t index;   /* the limit's place in the rule: the same on all nodes */
    struct weir_limit limit;
    weir_time within;
    enum weir__alone when_alone;
    /* The end of its accounts' names: limits of another kind have other accounts, and those that
     * have changed places keep theirs. */
    char account[WEIR__ACCOUNT_NAME];
    /* Its limiters, for weir__limiter_use; each is released by its user. */
    char purse[WEIR__NAME_SIZE], share[WEIR__NAME_SIZE];
};
/* Those of the rules in force, one after another; false: no more.  `at` begins with 0. */
bool weir__across_next(struct weir *weir, int64_t *at, struct weir__across_limit *out);
/* Another number whenever other rules are in force. */
uint64_t weir__across_generation(const struct weir *weir);

/* This host's part of the fleet, in millionths, | WEIR__FLEET_GUESS: the shares of all rules in
 * force become that part of their limits.  Not often: each change is remembered for a while. */
int weir__fleet_part_set(struct weir *weir, uint32_t word, weir_time now, struct weir_error *error);

/* ------------------------------------------------------------- requests ---- */

/* One limit of a request that is the fleet's. */
struct weir__due {
    const char *rule; /* lives as long as the engine */
    uint32_t index;   /* the limit's place in the rule */
    int64_t cost;
    weir_time within;
    uint16_t text_len, own_len;
    char text[WEIR_KEY_TEXT];         /* the key's text, the same on all nodes */
    unsigned char own[WEIR__KEY_MAX]; /* the key in this table: of its purse and its share */
};
/* Those of the rules that apply and enforce, WEIR_ALL_MAX at most.  Changes nothing.  Lists and
 * bans are not looked at: the request has been checked. */
size_t weir__dues(struct weir *weir, const struct weir_attr *attrs, size_t n,
                  const struct weir_ask *ask, struct weir__due *out, size_t max);

/* operator-bans.c -- as weir__ban_learn; of a ban that was lifted the refusals are forgotten
 * too. */
bool weir__bans_learn(struct weir *weir, const struct weir__ban_lesson *lesson);

/* Rules that go by their when_alone, though fleet_until is ahead: their accounts are silent. */
struct weir__alone_rules {
    const char *const *rules; /* names */
    size_t n;
    bool all;            /* whatever their names */
    bool open;           /* those that let all pass then, whatever their names */
    bool last;           /* it does not wait any more: a dry purse refuses, and that counts ... */
    const char *refused; /* ... for this rule's limit: its account has refused; NULL: none has */
    uint32_t refused_index;
    weir_time retry; /* of that */
};
/* Of an ask that enters guards, and may come again. */
struct weir__entering {
    struct weir_entry *entry; /* NULL: none is entered */
    struct weir_asked *asked; /* NULL: all ask again */
};
/* As weir_check_key. */
bool weir__check_alone(struct weir *weir, const struct weir_attr *attrs, size_t n,
                       const struct weir_ask *ask, const struct weir__alone_rules *alone,
                       struct weir_ruling *ruling, char told[WEIR_KEY_TEXT]);

#endif
