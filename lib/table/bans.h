/* bans.h -- keys that a rule keeps out for a while: kept in the table, so shared and there after a
 * restart.  bans.c says how. */
#ifndef WEIR_TABLE_BANS_H
#define WEIR_TABLE_BANS_H

#include "table/table.h"
#include "weir-admin.h"

/* How long a key is out. */
struct weir__ban_terms {
    weir_time length;  /* the first time; */
    int32_t factor;    /* each further time `factor` times as long as the time before (1 or less: no
                          longer), */
    weir_time longest; /* no ban is longer; less than length counts as length */
    weir_time forget;  /* this long after a ban's end its strikes are forgotten */
};

#define WEIR__BAN_MOST (3650 * 24 * 3600 * WEIR_SECOND) /* a time plus two does not overflow */

/* The defaults of `longest` and `forget`, where they are 0. */
void weir__ban_terms_fill(struct weir__ban_terms *terms);

/* What stands for a key of a rule: the same in every process that shares the table.  The salt is
 * the rule's, for those who ask often. */
uint64_t weir__ban_salt(const struct weir_table *table, const char *rule);

uint64_t weir__ban_tag_salted(const struct weir_table *table, uint64_t salt, struct weir_key key);

static inline uint64_t weir__ban_tag(const struct weir_table *table, const char *rule,
                                     struct weir_key key)
{
    return weir__ban_tag_salted(table, weir__ban_salt(table, rule), key);
}

/* Until when the key is out; 0: it is not.  No lock, and a single load while no ban at all is in
 * force. */
weir_time weir__ban_look(const struct weir_table *table, uint64_t tag, weir_time now);

/* Whether any ban at all may be in force. */
static inline bool weir__bans_any(const struct weir_table *table, weir_time now)
{
    return now < (weir_time)weir__load(&table->header->bans_latest);
}

static inline weir_time weir__ban_until(const struct weir_table *table, uint64_t tag, weir_time now)
{
    return weir__bans_any(table, now) ? weir__ban_look(table, tag, now) : 0;
}

/* The same, and nothing is written, not even that the clock has been set back. */
weir_time weir__ban_peek(const struct weir_table *table, uint64_t tag, weir_time now);

/* Bans the key by the terms, and returns until when, or `now` if there is no room for the ban; one
 * that is out already stays as it is.  `key` is only to be shown: its text. */
weir_time weir__ban_strike(struct weir_table *table, uint64_t tag, const char *rule,
                           struct weir_key key, const struct weir__ban_terms *terms, weir_time now);

/* By hand, whatever was before; nothing if `until` has passed.  False: there is no room for it. */
bool weir__ban_put(struct weir_table *table, uint64_t tag, const char *rule, struct weir_key key,
                   weir_time now, weir_time until);

/* Ends the ban and forgets the strikes.  False: it was not in force. */
bool weir__ban_lift(struct weir_table *table, uint64_t tag, weir_time now);

/* ------------------------------------------------------------- the fleet ----
 *
 * The agent of a host tells the fleet of bans that were made or lifted here, and this table of
 * those that others have made or lifted.  While the host is in a fleet, a lifted ban stays in its
 * place until it would have ended: `until` is 0 then, and `forget_at` is that end. */
static inline bool weir__ban_is_lifted(const struct weir__ban_record *record, weir_time now)
{
    return record->until == 0 && record->strikes == 0 && record->forget_at > now;
}

/* What the fleet may have to be told: a ban in force, one that was lifted, or one that was over
 * before the fleet was told of it: it may have cut a longer one short. */
static inline bool weir__ban_is_known(const struct weir__ban_record *record, weir_time now)
{
    return record->until > now ||
           (record->forget_at > now && (record->strikes == 0 ? record->until == 0 : !record->told));
}

/* Such a ban at place i. */
bool weir__ban_read(const struct weir_table *table, uint64_t i, weir_time now,
                    struct weir__ban_record *out);

/* What the fleet says about a key. */
struct weir__ban_lesson {
    const char *rule;
    struct weir_key key;
    weir_time now, until;                /* lifted: the ban would have ended then */
    weir_time forget;                    /* this long after its end */
    int32_t strikes;                     /* 0: it was lifted */
    const struct weir__ban_record *sent; /* which the fleet was told before; or NULL */
    bool older;                          /* than what is known here, if anything is */
    bool met;                            /* the fleet says so again: changes here know of it */
    uint32_t agent;                      /* the holder that learns; 0: the table is its own */
};
/* False: the key was banned or lifted here meanwhile, and the fleet is to be told of that; or
 * another process is the agent by now. */
bool weir__ban_learn(struct weir_table *table, const struct weir__ban_lesson *lesson);

/* For listings: whether there is a ban in force at place i, of 0 to weir__ban_places - 1. */
uint64_t weir__ban_places(const struct weir_table *table);
bool weir__ban_get(struct weir_table *table, size_t i, weir_time now, struct weir_ban *out);

int64_t weir__bans_in_force(const struct weir_table *table,
                            weir_time now); /* counts them: reads every mark */

/* The limiter that stands for bans. */
void weir__bans_open(struct weir_table *table, struct weir_limiter *out);

/* For a process that is alone: how far bans are from their homes, which their tags tell. */
void weir__bans_measure(struct weir_table *table);

/* For the first to attach: what the header says of the bans, again from the bans. */
void weir__bans_settle(struct weir_table *table);

#endif
