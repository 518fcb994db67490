/* replay.h -- runs an access log through one rule set, or two side by side, on the log's time.
 *
 *     weir__replay        the traffic: requests and clients over time
 *     weir__rule_set          a rule set and its refusals
 *     weir__replay_rule   one of its rules; `trace`: the keys it refused, and when
 *     weir__replay_pair   requests that the two sides decide differently, by the rules that refused
 *
 * Time never goes back: an entry earlier than the one before it is decided at the later time.
 * Memory does not grow with the log: states are in a table of fixed size, keys and clients in
 * sketches, and the buckets of time grow wider instead of more.
 */
#ifndef WEIR_SERVER_REPLAY_REPLAY_H
#define WEIR_SERVER_REPLAY_REPLAY_H

#include <signal.h>
#include <stdio.h>

#include "engine/engine.h"
#include "engine/explain.h"
#include "server/replay/log.h"
#include "server/replay/propose.h"
#include "server/base/count-distinct.h"
#include "server/base/heavy-hitters.h"

#define WEIR__REPLAY_KEYS    1000000
#define WEIR__REPLAY_SIDES   2
#define WEIR__REPLAY_BUCKETS 600 /* of time, at most */
#define WEIR__REPLAY_TRACES \
    64 /* rules of a side whose refusals are followed; of the rest only the numbers are known */
#define WEIR__REPLAY_PAIRS 256
#define WEIR__REPLAY_LATE \
    WEIR_SECOND /* logs are written when a request ends, so they are out of order by a little */
#define WEIR__REPLAY_REASONS (WEIR_NO_ROOM + 1)

#define WEIR__REPLAY_PASSED (-1) /* in place of a rule's number */
#define WEIR__REPLAY_LIST   (-2) /* the deny list */

struct weir__replay_options {
    struct weir_rules *rules[WEIR__REPLAY_SIDES]; /* belong to the replay, even if it fails;
                                                       the second may be NULL */
    const char *names[WEIR__REPLAY_SIDES];        /* of the rule sets: their files */
    int64_t keys;       /* room in each side's table; 0: WEIR__REPLAY_KEYS */
    weir_time wait_max; /* that a request may wait for its turn */
    bool enforce;       /* rules in shadow enforce */
    const char *client; /* the attribute that tells clients apart; NULL: ip */
    size_t listed;      /* keep this many requests that are decided differently */
    FILE *differ;       /* and write all of them here, or NULL */
    int64_t propose; /* the share of keys that may be refused, in millionths; negative: nothing is
                        proposed */
};

struct weir__replay_trace {
    struct weir__distinct *keys;
    struct weir__hitters *top;
    int64_t at[WEIR__REPLAY_BUCKETS];
};

struct weir__replay_rule {
    char name[64];
    char limits[160];    /* as written; longer ones end in "..." */
    enum weir_mode mode; /* in force here */
    int64_t applied;
    int64_t refused; /* banned among them */
    int64_t banned;  /* because of a ban that was made before */
    int64_t would;   /* a rule in shadow: would have refused */
    int64_t bans;    /* made */
    bool can_ban;    /* has a ban, which in shadow it does not make */
    struct weir__replay_trace
        *trace; /* NULL: it refused nothing, or came too late to be followed */
};

struct weir__rule_set {
    const char *path;
    struct weir_table *table;
    struct weir *weir;
    size_t n_rules;
    struct weir__replay_rule *rules;
    int64_t allowed, refused;
    int64_t would; /* allowed, but a rule in shadow, or the deny list of a set in shadow, would have
                      refused */
    int64_t would_deny; /* of these, on the deny list */
    int64_t unmatched;  /* no rule applied, and no list */
    int64_t listed;     /* let through by the allow list */
    bool by_list;       /* a list decided the last request */
    int64_t reasons[WEIR__REPLAY_REASONS];
    int64_t levels[4];
    int64_t waited; /* allowed after a wait */
    weir_time wait_most;
    struct weir__distinct *clients,
        *clients_would;         /* refused; would have been, by a rule in shadow */
    struct weir__hitters *uris; /* refused */
    struct weir__replay_trace
        *denied; /* by the deny list, or would have been; its keys are clients.  NULL: none */
    size_t traces;
    int64_t untraced; /* refusals whose keys and times were not followed */
    int64_t refused_at[WEIR__REPLAY_BUCKETS], would_at[WEIR__REPLAY_BUCKETS];
    int64_t evicted_early, bans_lost;  /* at the end */
    struct weir__replay_name *by_name; /* rule-set.c's own: sorted */
    bool seen[WEIR__ATTRIBUTES_MAX]; /* of the attributes that the set looks at: a request had it */
    size_t unseen;                   /* how many are not seen yet */
};

struct weir__replay_difference {
    weir_time at;
    char client[64], method[16], uri[160];
    int32_t rule[WEIR__REPLAY_SIDES]; /* that refused; or WEIR__REPLAY_PASSED,
                                           WEIR__REPLAY_LIST */
};

struct weir__replay_pair {
    int32_t rule[WEIR__REPLAY_SIDES];
    int64_t requests;
};

struct weir__replay {
    struct weir__replay_options options;
    struct weir__sketch_secrets secrets; /* made from the first request */
    size_t n_sides;
    struct weir__rule_set sides[WEIR__REPLAY_SIDES];

    int64_t requests, lines, bad;
    int64_t first_bad; /* line, 0: none */
    char first_bad_file[160], first_bad_why[128];
    weir_time first, last; /* of the requests */
    int64_t late;          /* more than WEIR__REPLAY_LATE earlier than one before */
    weir_time late_most;
    struct weir__distinct *clients;
    int64_t nobody; /* requests without a client */
    bool partial;   /* was stopped */

    weir_time from, width; /* of the buckets: `from` is a multiple of width */
    size_t buckets;        /* in use */
    int64_t at[WEIR__REPLAY_BUCKETS];

    int64_t differ;                   /* allowed by one side only */
    int64_t only[WEIR__REPLAY_SIDES]; /* of these, refused by this side */
    int64_t other_rule;               /* refused by both, by rules of another name */
    struct weir__replay_pair pairs[WEIR__REPLAY_PAIRS];
    size_t n_pairs;
    int64_t pairs_lost; /* requests of pairs for which there was no room */
    struct weir__replay_difference *differences;
    size_t n_differences;

    struct weir__propose *propose; /* NULL: nothing is proposed */
    weir_time now;                 /* the latest seen in this pass */
    int passes;
    struct weir__applying *applying; /* scratch */
};

/* rule-set.c -- one request, decided by a rule set. */
struct weir__replay_request {
    const struct weir_attr *attrs;
    size_t n;
    weir_time now;
    size_t bucket;          /* of time */
    struct weir_key client; /* len 0: nobody */
    uint64_t client_hash;
    struct weir_key uri; /* its path */
};

int weir__rule_set_create(struct weir__rule_set *side, const struct weir__replay_options *options,
                          size_t which, struct weir_error *error);
void weir__rule_set_clear(struct weir__rule_set *side);
/* The rule that refused it, or WEIR__REPLAY_PASSED, WEIR__REPLAY_LIST. */
int32_t weir__rule_set_decide(struct weir__replay *replay, struct weir__rule_set *side,
                              const struct weir__replay_request *request);
void weir__rule_set_end(struct weir__rule_set *side); /* reads the engine's counters */

/* time-buckets.c -- the bucket of a moment; all of them may grow wider for it. */
size_t weir__replay_bucket(struct weir__replay *replay, weir_time now);

/* ------------------------------------------------------------------------- */

int weir__replay_create(struct weir__replay **out, const struct weir__replay_options *options,
                        struct weir_error *error);
void weir__replay_destroy(struct weir__replay *replay);

/* One request; for the tests, or traffic from elsewhere. */
void weir__replay_entry(struct weir__replay *replay, const struct weir__log_entry *entry);

/* How to read logs. */
struct weir__replay_reading {
    const char *format, *map;
    const volatile sig_atomic_t *stop; /* set: end here, as if the log did; may be NULL */
    void (*tell)(void *context, int64_t requests,
                 const struct weir__log_figures *figures); /* now and then; may be NULL */
    void *context;
};

/* A whole log.  Fails if it cannot be opened or read; lines read before count. */
int weir__replay_log(struct weir__replay *replay, const char *path,
                     const struct weir__replay_reading *reading, struct weir_error *error);

/* All logs have been read.  True if reading them again would narrow the proposals: then
 * weir__replay_log takes them again, for that alone, and this is called again. */
bool weir__replay_end(struct weir__replay *replay);

/* The next attribute, from place *at on, that rules look at and no request had: its name, and the
 * rules ("rules login, month").  False: there are no more. */
bool weir__rule_set_missing(const struct weir__rule_set *side, size_t *at, const char **name,
                            char *who, size_t size);

/* The rules that applied to no request, though the log has all that they need ("rule login"); "" if
 * there is none. */
void weir__rule_set_unmet(const struct weir__rule_set *side, char *who, size_t size);

/* "login", "deny list" or "passed". */
const char *weir__rule_set_rule_name(const struct weir__rule_set *side, int32_t rule);

#endif
