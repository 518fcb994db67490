/* agent.h -- this process's part in a fleet, between the files of this room.
 *
 *     accounts.c      accounts of one request's keys, for operators
 *     agent.c         joining and leaving; the agent's turns
 *     asks.c          asks that wait: from callers to the agent and back
 *     membership.c    the host as a member of the fleet: its part of every limit
 *     demands.c       asks that found a purse closed, told in batches
 *     follow-rules.c  the rules of the fleet
 *     limits-in-force.c
 *                     the limits across the fleet, as the rules in force have them
 *     bans-and-resets.c
 *                     what nodes tell each other: bans, bans that were lifted, keys that were reset
 *     operators.c     asks of operators, which wait for Redis
 *     purses-and-accounts.c
 *                     the world of a node (cluster/fleet/fleet.h)
 *     rules-copy.c    the last good rules on disk, for a start without Redis
 *     shares.c        the host's part of a limit while an account is silent
 *
 * Threads, and what is theirs:
 *
 *     the agent      the thread of a client of Redis (cluster/redis/thread.h), with a duty: all but
 *                    the following
 *     the follower   `follow`; it applies rules, and may wait for a disk
 *     any            under the mutex: `info`, `demands`, free asks; by atomic operations: the word
 *                    of an ask, `across`
 *
 * Two clocks: Redis is asked by the monotonic one, and purses live by the table's.
 */
#ifndef WEIR_CLUSTER_AGENT_AGENT_H
#define WEIR_CLUSTER_AGENT_AGENT_H

#include <pthread.h>

#include "cluster/agent/asks.h"
#include "cluster/fleet/rules-versions-words.h"
#include "cluster/fleet/fleet.h"
#include "cluster/fleet/member-shares.h"
#include "cluster/fleet/bans-and-resets.h"
#include "cluster/fleet/redis-silence.h"
#include "cluster/redis/account-asks.h"
#include "cluster/redis/thread.h"
#include "engine/engine.h"
#include "engine/fleet-host.h"
#include "weir-fleet.h"

#define WEIR__AGENT_DEMANDS 256  /* keys of closed purses between two turns */
#define WEIR__AGENT_BANS    64   /* told at once */
#define WEIR__AGENT_NAMES   64   /* rules across the fleet that are told apart from others */
#define WEIR__AGENT_CHAINS  4096 /* of limits, by the names of their rules */

/* A limit across the fleet. */
struct weir__agent_limit {
    struct weir__agent_limit *next, *chain; /* of all; of those with the same hash */
    const char *rule;                       /* lives as long as the engine */
    uint32_t index;
    char text[128];                    /* as written */
    char purse_name[WEIR__NAME_SIZE];  /* another, if the rule has another key */
    char head[128];                    /* of the names of its accounts: weir:{FLEET/RULE: */
    char tail[WEIR__ACCOUNT_NAME + 2]; /* }: and the account */
    size_t head_len, tail_len;
    struct weir_plan plan;
    struct weir__fleet_limit fleet;
    struct weir_limiter *purse, *share;
    size_t uses; /* by asks to Redis that are under way */
    bool in_force, retired;
};

/* An ask on an account, under way. */
struct weir__agent_call {
    struct weir__carry carry;
    struct weir__account_item item;
    enum weir__redis_outcome outcome;
    struct weir_fleet *fleet;
    struct weir__agent_limit *limit;
    struct weir__fleet_key *key; /* of a draw */
    uint64_t id;                 /* of the draw */
    int64_t owed;                /* of a charge */
    int tries;
    struct weir__agent_call *next;
    char names[3][WEIR__FLEET_KEY_MAX + 168]; /* the account, its demand, the id */
};

enum weir__ask_state {
    WEIR__ASK_FREE,
    WEIR__ASK_WAITS,
    WEIR__ASK_BUSY,
    WEIR__ASK_BUSY_CANCELLED, /* to be refused, unless it is granted just now */
    WEIR__ASK_CANCELLED,
};

/* An ask that waits. */
struct weir__agent_ask {
    struct weir__redis_job job;
    struct weir__fleet_wait wait;
    struct weir_fleet *fleet;
    uint64_t word;               /* how often it was used << 3 | enum weir__ask_state; atomic */
    struct weir_request request; /* a copy, in `room` if it fits there */
    _Alignas(struct weir_attr) char room[512];
    struct weir__due dues[WEIR__FLEET_ITEMS_MAX];
    size_t n_dues;
    struct weir_ruling ruling;
    char told[WEIR_KEY_TEXT];
    weir_time deadline;             /* by the table's clock */
    bool lined, alone;              /* it is in the line of deadlines; no account can be asked */
    weir__agent_decide *decide;     /* NULL: weir_check does ... */
    struct weir__entering entering; /* ... or, if there is an entry, weir_check_enter */
    uint32_t caller;
    void (*done)(void *context, const struct weir_ruling *ruling, const char *key);
    void *context;
    struct weir__agent_ask *next, *before; /* in that line; next: among those that are over, free */
};

struct weir_fleet {
    struct weir *weir;
    const struct weir__host *host;
    struct weir_table *table;
    struct weir_redis *redis;
    pid_t pid;                         /* of the process that has its threads */
    struct weir__redis_client *client; /* of its thread */
    char name[WEIR__MEMBER_ID_MAX + 1], node[WEIR__MEMBER_ID_MAX + 1];

    /* The host */
    uint32_t holder; /* this process's place; 0: the table is its own */
    bool shared;     /* the table is not its own alone */
    bool agent;      /* this process is the host's agent: */
    struct weir__hearing hearing;
    bool turned;        /* it has had a turn: */
    bool fresh;         /* the table was in no fleet then */
    bool guessed;       /* the part: Redis has told none ... */
    bool unheard;       /* ... nor how many nodes there are */
    int64_t nodes;      /* for that; 0: not said */
    int64_t part_set;   /* in the table */
    weir_time part_due; /* it may be set again, without need */

    struct weir__member member;
    struct weir__fleet_want want;
    struct weir__redis_ask beat; /* one at a time */
    int overtaken;               /* beats that came after a later one of this name */
    struct weir__redis_script members_script;

    struct weir__agent_notes {
        struct weir__redis_ask ask; /* one at a time: */
        struct weir__redis_script script;
        bool asking;
        bool ready;           /* Redis has answered the last beat */
        int64_t begun, heard; /* as bans-and-resets.lua says */
        int64_t knew;         /* heard before this look at bans; before notes were lost */
        int64_t last;         /* as of the last beat */
        uint64_t written, at; /* the look at all bans: what was written before, the place */
        int looks;            /* in vain, since something was asked */
        uint64_t generation;  /* of the rules then */
        bool lost, again;     /* all are to be told once more; this look does so */
        struct weir__ban_record told[WEIR__AGENT_BANS]; /* to be told, or on their way */
        size_t n;
    } notes;

    struct weir__fleet *fleet;
    struct weir__agent_limit *limits, *chains[WEIR__AGENT_CHAINS];
    uint64_t generation; /* of the rules that they are from; 0: none yet */
    uint64_t shards;     /* a bit for each that was asked */
    size_t calls;        /* under way */
    struct weir__agent_call *answered, **answered_last, *spare_calls;
    const char *across[WEIR__AGENT_NAMES]; /* rules; atomic */
    uint32_t n_across;                     /* more: any rule may be one */

    struct {
        weir_time at;  /* the last draw that Redis has refused; */
        char why[160]; /* "": draws are answered */
    } refusal;

    struct weir__agent_ask *asks; /* all; those that were used and are free; the first unused */
    struct weir__agent_ask *free_asks, *first, *last; /* the line of deadlines */
    struct weir__agent_ask *over, **over_last;
    size_t fresh_asks;
    void (*on_answered)(void *context);               /* or NULL */
    void (*on_freed)(void *context, uint32_t caller); /* or NULL */
    void *on_answered_context;
    uint64_t asks_alone; /* that were decided so here */

    struct weir__agent_demand {
        const char *rule;
        uint32_t index;
        uint16_t len;
        int64_t units, cost; /* of all asks; of the last */
        char text[WEIR_KEY_TEXT];
    } * demands, *told; /* gathered; being read */
    size_t n_demands;

    struct {
        int (*apply)(void *context, const char *text, size_t len, struct weir_error *error);
        void *context;
        char *copy; /* the file, or NULL */
        struct weir__follower state;
        struct weir__buffer text; /* the last that was fetched: */
        struct weir__edition fetched;
        weir_time copied; /* since 1970: the copy was written */
        pthread_t thread;
        bool started;
        uint32_t ending; /* a word that it sleeps on */
        /* The agent's: */
        struct weir__redis_ask *asking;
        bool over; /* it asks no more */
    } follow;

    pthread_mutex_t mutex;
    struct weir_fleet_info info;

    bool leaving;       /* what is under way is waited for ... */
    weir_time leave_by; /* ... until then */
    uint32_t left;      /* a word that weir_fleet_leave sleeps on */
    bool stirred;       /* asks were sent in this turn */
};

static inline weir_time weir__agent_time(const struct weir_fleet *fleet)
{
    return fleet->host->now(fleet->table);
}

static inline struct weir__agent_limit *weir__agent_limit_of(const struct weir__fleet_key *key)
{
    return (struct weir__agent_limit *)((uintptr_t)key->limit -
                                        offsetof(struct weir__agent_limit, fleet));
}

static inline struct weir_key weir__agent_own(const struct weir__fleet_key *key)
{
    return (struct weir_key){ key->own.bytes, key->own.len };
}

/* asks.c */
int weir__asks_make(struct weir_fleet *fleet, struct weir_error *error);
void weir__asks_free(struct weir_fleet *fleet);
/* Takes from all limits, or from none. */
bool weir__agent_check(struct weir_fleet *fleet, struct weir__agent_ask *ask,
                       const struct weir__alone_rules *alone);
/* To be decided; false: its caller has given up.  And: it waits on; false: as before. */
bool weir__ask_begin(struct weir__agent_ask *ask);
bool weir__ask_go_on(struct weir__agent_ask *ask);
/* It waits no more, and is answered in the next turn; `end`: alone. */
void weir__ask_over(struct weir_fleet *fleet, struct weir__agent_ask *ask);
void weir__ask_end(struct weir_fleet *fleet, struct weir__agent_ask *ask, weir_time now);
void weir__asks_answer(struct weir_fleet *fleet, weir_time now); /* those that are over */
/* Answers those whose deadline has passed too. */
weir_time weir__asks_turn(struct weir_fleet *fleet, weir_time now); /* the next deadline */

/* membership.c */
void weir__beats_begin(struct weir_fleet *fleet, int64_t weight);
weir_time weir__beats_turn(struct weir_fleet *fleet, weir_time now); /* when to come again */
void weir__beats_take_over(struct weir_fleet *fleet); /* from another process of the host */
/* No account is asked meanwhile, even if no beat is answered any more. */
void weir__beats_stay_alone(struct weir_fleet *fleet, weir_time now);
void weir__beats_leave(struct weir_fleet *fleet, weir_time now);
bool weir__beats_over(const struct weir_fleet *fleet);

/* demands.c */
void weir__demands_turn(struct weir_fleet *fleet, weir_time now);

/* purses-and-accounts.c */
extern const struct weir__fleet_world weir__agent_world;
/* NULL: there is no room. */
struct weir__fleet_key *weir__agent_key(struct weir_fleet *fleet, struct weir__agent_limit *limit,
                                        struct weir_key text, weir_time now);
void weir__draws_turn(struct weir_fleet *fleet, weir_time now); /* reads answers */
void weir__draws_free(struct weir_fleet *fleet);
/* Draws that are refused are the reason, if there is no other.  Under the mutex. */
void weir__refusal_tell(struct weir_fleet *fleet);

/* follow-rules.c */
int weir__follow_begin(struct weir_fleet *fleet, const struct weir_fleet_options *options,
                       struct weir_error *error);
void weir__follow_end(struct weir_fleet *fleet);
/* The text that is applied next; follow.text.failed: there is no memory for it now. */
void weir__follow_fetched(struct weir_fleet *fleet, struct weir__text text,
                          const struct weir__edition *of);

/* rules-copy.c -- writes the rules in force; reads them back as if they were fetched, false: there
 * is no copy, or no good one; after an event, writes them again if the copy is old. */
void weir__rules_copy_write(struct weir_fleet *fleet);
bool weir__rules_copy_read(struct weir_fleet *fleet);
void weir__rules_copy_keep(struct weir_fleet *fleet, const struct weir__follower_event *event);

/* limits-in-force.c -- follows the rules in force. */
void weir__limits_turn(struct weir_fleet *fleet, weir_time now);
void weir__limit_add(struct weir_fleet *fleet, struct weir__agent_limit *limit);
struct weir__agent_limit *weir__limit_find(const struct weir_fleet *fleet, const char *rule,
                                           uint32_t index);
/* One use less. */
void weir__limit_leave(struct weir__agent_limit *limit);
void weir__limits_free(struct weir_fleet *fleet);

/* bans-and-resets.c -- when to come again; and: a beat was answered; another process was the agent
 * before. */
weir_time weir__notes_turn(struct weir_fleet *fleet, weir_time mono, weir_time now);
void weir__notes_heard(struct weir_fleet *fleet, bool answered, int64_t last);
void weir__notes_begin(struct weir_fleet *fleet);
int weir__notes_slot(const struct weir_fleet *fleet);
/* Its steps, for simulations too: what is to be done; the words of an ask, returns how many; an
 * answer, or NULL: then everything is looked at once more, after the next beat. */
enum weir__notes_next { WEIR__NOTES_WAIT, WEIR__NOTES_LOOK, WEIR__NOTES_ASK };
enum weir__notes_next weir__notes_next(struct weir_fleet *fleet, weir_time now);
size_t weir__notes_say(struct weir_fleet *fleet, weir_time now, struct weir__buffer *out);
void weir__notes_answer(struct weir_fleet *fleet, const struct weir__text *reply, weir_time now);

/* operators.c -- WEIR_OK, or why nobody need be asked. */
int weir__agent_reach(struct weir_fleet *fleet, struct weir_error *error);

/* shares.c -- a share begins with the host's part of what was left. */
void weir__share_begin(struct weir_fleet *fleet, struct weir__fleet_key *key, weir_time now);
/* What passed by it goes to the account's charge: returns the units. */
int64_t weir__share_end(struct weir_fleet *fleet, struct weir__fleet_key *key, weir_time now);
/* Any may have passed by its share, without this process: it was stopped, or has just begun. */
void weir__shares_used(struct weir_fleet *fleet);
/* The host is alone: all shares that are known to be needed begin. */
void weir__shares_begin(struct weir_fleet *fleet, weir_time now);

#endif
