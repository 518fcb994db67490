/* weir-fleet.h -- one limit over many hosts: rules with `across: fleet`.  Read weir.h first.
 *
 * The limit's account is in Redis.  Each host draws units from it, and its processes spend them
 * from purses in the host's table, at the speed of memory; only an ask that finds its purse dry
 * waits for Redis, for at most the rule's `within`.  While Redis is away, the rule's `when_alone`
 * decides, by default with the host's part of the limit.  Link with -lweir-redis.
 *
 *     weir_create(&weir, &(struct weir_options){ .table = table }, &error);
 *     weir_use(weir, rules, weir_table_now(table), &error);
 *     weir_fleet_join(&fleet, weir, "redis://db.example.org", NULL, &error);
 *     ...
 *     if (!weir_fleet_check(fleet, attrs, n, &ask, &ruling))
 *         return reject(429, ruling.decision.retry);
 *     ...
 *     weir_fleet_leave(fleet);
 *
 * Each process that decides by such rules joins.  Of those that share a table, one is the host's
 * agent: it draws ahead for busy keys and is the member of the fleet.  The others stand by, and
 * draw the units that their own asks lack; if the agent dies or stops, one of them takes its place
 * within a second.
 */
#ifndef WEIR_FLEET_H
#define WEIR_FLEET_H

#include "weir-redis.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_fleet;

struct weir_fleet_options {
    const char *name; /* of the fleet: letters, digits, '.', '_', '-'; NULL: "default" */
    const char *node; /* this host's; NULL: the host's name and four digits of its table's */
    int64_t weight;   /* of this host among all: its part while Redis is away; 0: 1 */
    /* How many hosts there are, for one that starts while Redis is away and has not been told its
     * part in the last 7 days: it is 1/nodes then.  0: not said; then it has no part,
     * and `share` lets nothing pass */
    int64_t nodes;
    /* Called in a thread of its own with each version of the fleet's rules (weir fleet rules set);
     * returns 0, or a weir_code and the reason: then the version before stays.  NULL: the fleet's
     * rules are not followed */
    int (*apply)(void *context, const char *text, size_t len, struct weir_error *error);
    void *context;
    const char *copies; /* a folder for the last good copy of those rules, for a start without
                           Redis; or NULL */
    struct weir_redis_options redis;
};

/* Whether weir_fleet_join takes these names and this weight, for a program that reads them from a
 * file. */
WEIR_API int weir_fleet_options_check(const struct weir_fleet_options *options,
                                      struct weir_error *error);
/* Does not wait for Redis: it may be away.  Asks must use weir_table_now() as their time.  A child
 * of fork must join too: on its parent's fleet, `when_alone` decides an ask that would have to
 * wait. */
WEIR_API int weir_fleet_join(struct weir_fleet **out, struct weir *weir, const char *url,
                             const struct weir_fleet_options *options, struct weir_error *error);
/* Pays back unspent units and gives the host's part to the others; waits for that, but no more than
 * 0.3 s.  Call it before weir_destroy, with no other call on the fleet under way. */
WEIR_API void weir_fleet_leave(struct weir_fleet *fleet);

/* As weir_check; waits for units if a purse is dry, for at most the rule's `within`.  If there are
 * none by then, when_alone decides. */
WEIR_API bool weir_fleet_check(struct weir_fleet *fleet, const struct weir_attr *attrs, size_t n,
                               const struct weir_ask *ask, struct weir_ruling *ruling);

/* The same for callers that do not wait. */
struct weir_fleet_ask {
    const struct weir_attr *attrs; /* copied */
    size_t n;
    struct weir_ask ask;
    /* In the agent's thread: it must not wait.  `key`: as weir_check_key's */
    void (*done)(void *context, const struct weir_ruling *ruling, const char *key);
    void *context;
    /* NULL: guards are not entered; else as weir_check_enter's, and it must stay until `done` */
    struct weir_entry *entry;
    /* The guards that have asked whether it is shed (weir-queue.h); it must stay likewise.  NULL:
     * they ask again */
    struct weir_asked *asked;
};
/* True: it is decided, by *ruling and `key`.  False: `done` is called, once; *ticket is for
 * weir_fleet_cancel. */
WEIR_API bool weir_fleet_ask(struct weir_fleet *fleet, const struct weir_fleet_ask *ask,
                             struct weir_ruling *ruling, char key[WEIR_KEY_TEXT], uint64_t *ticket);
/* From any thread.  True: `done` will not be called.  False: it was, is being or will soon be. */
WEIR_API bool weir_fleet_cancel(struct weir_fleet *fleet, uint64_t ticket);

/* Reports a refusal: for callers that check for themselves (weir_check_many) and ask here only if a
 * purse is dry.  Refusals are demand, and the host's part follows demand.  `key`: as
 * weir_check_key's. */
WEIR_API void weir_fleet_refused(struct weir_fleet *fleet, const struct weir_ruling *ruling,
                                 const char *key, int64_t cost);

/* An account of the fleet, for one limit of a request. */
struct weir_fleet_account {
    const char *rule;              /* good until weir_destroy */
    uint32_t limit_index;          /* which of its limits */
    char key[WEIR_KEY_TEXT];       /* as people read it */
    struct weir_decision decision; /* units that this host has drawn count as used */
};
/* The accounts of the request's keys, for the rules that apply and enforce; takes nothing.  Waits
 * for Redis, half a second for each.  Returns their number, or a negative code: WEIR_SYSTEM if
 * Redis does not answer. */
WEIR_API int64_t weir_fleet_peek(struct weir_fleet *fleet, const struct weir_attr *attrs, size_t n,
                                 int64_t cost, struct weir_fleet_account out[WEIR_ALL_MAX],
                                 struct weir_error *error);
/* As weir_reset, and for the fleet: accounts are fresh at once; units that other hosts have drawn
 * before are gone, and bans are lifted there, within half a second.  Waits for Redis as
 * weir_fleet_peek does; WEIR_SYSTEM: it does not answer, and this host alone was reset. */
WEIR_API int64_t weir_fleet_reset(struct weir_fleet *fleet, const char *rule,
                                  const struct weir_attr *attrs, size_t n,
                                  struct weir_error *error);

struct weir_fleet_info {
    char name[65], node[65];
    bool agent;     /* this process draws for its host; else another one does */
    bool alone;     /* rules go by when_alone: Redis is silent, or just back.  Watch this */
    bool connected; /* Redis answered the last beat; or this process does not ask */
    bool learning;  /* Redis has just come (back): parts do not grow */
    int64_t part;   /* of this host, in millionths of each limit; 0: none, it is not known */
    int64_t members;
    int64_t version, refused; /* of the rules: in force, and refused; 0: none */
    /* The reason, if it is not connected, if another host has the same name, or if Redis refuses
     * draws; of a refusal */
    char why[160], refused_why[160];
    uint64_t draws, units_drawn, units_repaid;
    /* That waited for units, and were decided by when_alone; not those of a host that is alone,
     * which do not wait */
    uint64_t asks_alone;
    bool draws_refused; /* Redis answers beats, but draws with an error: rules go by when_alone */
};
WEIR_API void weir_fleet_look(struct weir_fleet *fleet, struct weir_fleet_info *out);

/* --------------------------------------------- the fleet's rules and nodes ---- */

/* The rules of all nodes are versions of one text in the fleet's Redis: docs/fleet.md.  These are
 * for programs that look at them and at nodes, and change the rules.  They ask by a client, and
 * need not join.  `fleet` is its name; NULL: "default".
 *
 *     weir_redis_create(&redis, "redis://db.example.org", NULL, &error);
 *     weir_fleet_rules_get(redis, NULL, 0, &newest, &text, &error);
 *     ... another text, good by weir_rules_parse
 *     struct weir_fleet_change change = { .text = text, .len = len, .base = newest.number };
 *     if (weir_fleet_rules_set(redis, NULL, &change, &error) == WEIR_EXISTS)
 *         ... somebody else was faster: look at that version first
 *
 * Each waits for Redis, a second for each ask.  WEIR_SYSTEM: it does not answer, and error->text
 * says if a change may have been made all the same; WEIR_INVALID: there is no such version, or the
 * words are wrong. */
struct weir_fleet_version {
    int64_t number; /* from 1 on; 0: there is none */
    int64_t edit;   /* number and edit name a text: a failover may lose a version, and another gets
                       its number.  0: not known (of a history) */
    int64_t origin; /* the version whose text came back; 0: the text was new */
    weir_time time; /* since 1970, by Redis's clock */
    int64_t bytes;  /* of the text */
    char author[128], note[256];
};

/* Whether the nodes that follow the rules run the version meant for them. */
struct weir_fleet_status {
    int64_t newest, all;    /* versions: for the stage, if there is one; for all other nodes */
    char stage[65];         /* the node that tries the newest first; "": none */
    int64_t nodes, current; /* nodes that follow the rules; of these, those that run theirs */
    int64_t refused;        /* and those that refused a version */
    int64_t silent;         /* nodes that have not reported for 10 s; in no other number */
    int64_t own;            /* members with rules of their own, which do not follow these */
    int64_t shared_names;   /* names that two hosts have */
    int64_t runs;           /* the largest version that a node runs: above `newest`, Redis has lost
                               its data */
};
WEIR_API int weir_fleet_status(struct weir_redis *redis, const char *fleet,
                               struct weir_fleet_status *out, struct weir_error *error);

struct weir_fleet_node {
    char name[65];
    bool member;           /* it is one now, with ... */
    int64_t part, weight;  /* ... this part, in millionths of each limit, while Redis is away */
    bool shares_name;      /* another host has it too: each may use the whole part */
    bool follows;          /* it runs the fleet's rules, and has reported: */
    weir_time heard;       /* this long ago */
    int64_t runs, refused; /* versions: in force, and refused; 0: none */
    char why[160];         /* it was refused */
};
/* Members, and nodes that have reported within a day.  Fills in `max` of them, and returns how many
 * there are. */
WEIR_API int64_t weir_fleet_nodes(struct weir_redis *redis, const char *fleet,
                                  struct weir_fleet_node *out, size_t max,
                                  struct weir_error *error);

#define WEIR_FLEET_VERSIONS 51 /* that Redis keeps, at most */

struct weir_fleet_history {
    int64_t newest, all; /* for the stage, if there is one; for all other nodes */
    char stage[65];      /* the node that tries the newest first; "": none */
    size_t n;
    struct weir_fleet_version versions[WEIR_FLEET_VERSIONS]; /* the newest first */
};
WEIR_API int weir_fleet_history(struct weir_redis *redis, const char *fleet,
                                struct weir_fleet_history *out, struct weir_error *error);
/* 0: the newest, -1: the one for all nodes.  out->number 0: there is none.  *text gets the text,
 * ended by NUL, unless `text` is NULL: free() it. */
WEIR_API int weir_fleet_rules_get(struct weir_redis *redis, const char *fleet, int64_t version,
                                  struct weir_fleet_version *out, char **text,
                                  struct weir_error *error);

struct weir_fleet_change {
    /* As weir_rules_parse takes it without files.  That is not checked here: nodes refuse a wrong
     * one, and keep the version before */
    const char *text;
    size_t len;                /* 4 MiB at most */
    int64_t base;              /* the version that it is based on; 0: there is none yet */
    int64_t base_edit;         /* the edit of that version; 0: any */
    const char *author, *note; /* for the history; NULL: "" */
    const char *stage;         /* the node that tries it first, and is there (WEIR_INVALID: it is
                                  not); NULL: it is for all */
    /* Makes a repeat harmless, if it is of this change alone: there is no second version.  NULL:
     * none */
    const char *id;
};
/* Returns the new version, if `base` is the newest, or `base`, if its nodes have this text already;
 * WEIR_EXISTS: it is not the newest, and nothing changed. */
WEIR_API int64_t weir_fleet_rules_set(struct weir_redis *redis, const char *fleet,
                                      const struct weir_fleet_change *change,
                                      struct weir_error *error);
/* Makes a new version with the text of an older one, for all nodes.  Returns it; WEIR_EXISTS:
 * somebody else has made one meanwhile. */
WEIR_API int64_t weir_fleet_rollback(struct weir_redis *redis, const char *fleet, int64_t version,
                                     const char *author, const char *note,
                                     struct weir_error *error);
/* Brings the newest, which one node has tried, to all.  WEIR_EXISTS: another is the newest;
 * WEIR_INVALID: that node has refused it. */
WEIR_API int weir_fleet_publish(struct weir_redis *redis, const char *fleet, int64_t version,
                                struct weir_error *error);

#ifdef __cplusplus
}
#endif
#endif
