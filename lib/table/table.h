/* table.h -- a table as one process sees it.
 *
 * What may be changed how:
 *
 *     a slot's state             anybody, by one swap; a decision on a key that is there is one
 *     a slot's key, several      by a hand (hand.h), which anybody can finish or abort
 *     slots, large states
 *     a place of the registry    by a hand; its record never changes, another takes its place
 *     a place's user             its holder's bit: the holder; once that is dead, anybody
 *     a mode                     anybody, by an atomic store
 *     a guard's record           lib/guard/guard.h
 */
#ifndef WEIR_TABLE_TABLE_H
#define WEIR_TABLE_TABLE_H

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include "algo/debt.h"
#include "base/atomic.h"
#include "table/block.h"
#include "table/layout.h"
#include "weir-queue.h"

/* A limit as it is from one version to the next.  Deciding threads read it unlocked: the first four
 * never change, and it stays for much longer than a call can take (limiter.c). */
struct weir__era {
    struct weir_plan plan;
    weir_time since;
    uint32_t version;
    uint64_t edition;        /* of the place when this was the present limit */
    struct weir__era *older; /* versions that this process has seen, newest first */
    weir_time replaced;      /* when another became the present one, by the table's clock ... */
    bool forgotten;          /* ... or when this was set: nobody is told of it any more */
};

/* How a limiter's states are kept. */
enum weir__kind { WEIR__NARROW, WEIR__WIDE, WEIR__LARGE };

/* Slots, and blocks for the large states in them.  A table has two: for keys, and for bans, which
 * keys that are merely busy must not drive out. */
struct weir__space {
    struct weir_table *table;
    unsigned char *slots;
    uint64_t groups;
    bool narrow;
    struct weir__room *rooms; /* of the groups */
    uint64_t rooms_at, end;   /* offsets: of the rooms, and behind the last slot */
    struct weir__slab slab;
};

struct weir_limiter {
    struct weir_table *table;
    struct weir__space *space; /* the table's, where its states are */
    struct weir__place *place; /* NULL: none, of limits that come with the ask and of bans */
    uint64_t salt;
    uint32_t id;
    enum weir__kind kind;
    bool guest;                   /* a client brought it: its name begins with ':' or '=' */
    struct weir__era *era;        /* the present one; atomic */
    struct weir_limiter *retired; /* the next one in the list */
};

/* The places of limiters, or of guards, as this process finds and uses them; with the table's
 * mutex.  registry.c */
struct weir__names {
    uint32_t first, most; /* places */
    size_t record_bytes;
    uint32_t *index; /* ids + 1 by the hash of their names */
    size_t room, indexed;
    uint64_t *editions; /* of the places when they were taken in */
    uint64_t taken_in;  /* the directory's counter then */
    uint32_t *uses;     /* by parts of this process */
    uint32_t next;      /* where a free place is looked for first; atomic */
};

struct weir_table {
    struct weir__header *header;          /* the region */
    uint64_t bytes;                       /* its length as mapped: the header's may be damaged */
    struct weir__space names, keys, bans; /* names: the registry's; it has places, not slots */
    int fd;                               /* -1: private */
    ino_t inode;                          /* of the file */
    dev_t device;
    pid_t opened_by; /* the process whose locks are on fd; 0: none's yet */
    uint64_t *me; /* a page that is zeros again after fork: place among the holders, or 0; private
                     tables: NULL */
    struct weir__holder *holders;
    struct weir__room *directory; /* counts names that came and went */
    struct weir__place *places;   /* n_places of them: limiters', then guards' */
    struct weir__users *users;
    uint32_t n_places;
    unsigned char *guard_bytes; /* the first guard's */
    void *guarding;             /* the guards' room's own data in this process, and how to end it */
    void (*guarding_end)(struct weir_table *table);
    bool (*guard_is_busy)(struct weir_table *table, uint32_t id, weir_time now); /* NULL: unknown */
    struct weir_clock clock; /* for weir__moment */
    uint64_t secrets[WEIR__HASH_SECRETS];
    uint64_t salt_next; /* for a copy: the salt of the next limiter; 0: a random one */
    /* These stand for limits that come with the ask, for bans, and for permits by key. */
    struct weir_limiter carried, banned, held;
    pthread_mutex_t mutex; /* of the following, in this process only */
    struct weir__names limiters, guards;
    struct weir_limiter **met;    /* by id, NULL until first met; atomic */
    struct weir_limiter *retired; /* their places went */
    uint32_t tending, burying;    /* weir__only_one */
    uint32_t *reserved;           /* blocks for records that must not fail */
    size_t n_reserved;
    int64_t looking;         /* threads that use limiters without weir__place_use; atomic */
    struct weir_table *next; /* of this process: fork.c */
};

/* Of a word, as hands name it. */
static inline uint64_t weir__offset_of(const struct weir_table *table, const void *p)
{
    return (uint64_t)((const unsigned char *)p - (const unsigned char *)table->header);
}

/* Whether this thread is the only one of its process that does something: the word is the pid until
 * it is set to 0.  A child finds its parent's there, and need not wait for a thread it does not
 * have. */
static inline bool weir__only_one(uint32_t *who)
{
    uint32_t pid = (uint32_t)getpid(), there = weir__get(who);

    return there != pid &&
           __atomic_compare_exchange_n(who, &there, pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* table.c */
uint64_t weir__header_check(const struct weir__header *header);
/* Makes a new table in the file, which is empty, or in memory if there is none; takes up the table
 * that a file has. */
int weir__table_lay_out(struct weir_table *table, const struct weir_table_options *options,
                        struct weir_error *error);
struct stat;
int weir__table_take_up(struct weir_table *table, const char *path, const struct stat *st,
                        bool alone, struct weir_error *error);
int weir__table_commit(const struct weir_table *table, uint64_t at, uint64_t bytes,
                       struct weir_error *error);
/* Gives disk space or memory back; the bytes are zeros then.  False: that is not possible here. */
bool weir__table_punch(const struct weir_table *table, void *bytes, uint64_t n);

/* open-file.c -- without options it makes none. */
int weir__table_open_file(struct weir_table *table, const char *path,
                          const struct weir_table_options *options, struct weir_error *error);

/* table-clock.c */
weir_time weir__table_clock_offset(weir_time latest, weir_time real, weir_time monotonic);
/* It was last used before the host booted; boot: the present one. */
bool weir__table_is_of_other_boot(const struct weir__header *header,
                                  unsigned char boot[WEIR__BOOT_ID_SIZE]);
/* After another boot the table's time goes on from the real one. */
void weir__table_set_clock(struct weir__header *header);
/* Notes by how much the real time differs from the table's; by the monotonic clock before and after
 * the look at the real one.  False: the process was stopped between them, nothing is known. */
bool weir__table_follow(const struct weir_table *table, weir_time real, weir_time before,
                        weir_time after);
/* How far the table's time has come, for the next boot. */
void weir__table_note_time(struct weir_table *table);
/* For weir__moment: changes nothing. */
weir_time weir__table_present(void *table);

/* limiter.c -- the limiter of this id as this process sees it, compiled when first met; NULL if
 * there is none, or its record makes no sense.  It stays while it is used, or while the caller is
 * between weir__look_begin and _end. */
struct weir_limiter *weir__limiter_by_id(struct weir_table *table, uint32_t id);
/* The limiter of this name, likewise. */
struct weir_limiter *weir__limiter_by_name(struct weir_table *table, const char *name);

static inline void weir__look_begin(struct weir_table *table)
{
    __atomic_fetch_add(&table->looking, 1, __ATOMIC_SEQ_CST);
}

void weir__look_end(struct weir_table *table);

/* Like weir_limiter_find, and one more of a limiter that is in use; each until it is released. */
struct weir_limiter *weir__limiter_use(struct weir_table *table, const char *name);
void weir__limiter_use_again(struct weir_limiter *limiter);

/* Like weir_limiter_create; if it is there already, whatever its limit is. */
int weir__limiter_join(struct weir_limiter **out, struct weir_table *table, const char *name,
                       const struct weir_plan *plan, struct weir_error *error);
/* Whether states under the plan fit the table. */
int weir__table_fits(const struct weir_table *table, const struct weir_plan *plan,
                     struct weir_error *error);
/* The present era; compiles it if another process has changed the limit. */
const struct weir__era *weir__limiter_renew(struct weir_limiter *limiter);
/* The plan of a version; NULL: nobody remembers it. */
const struct weir_plan *weir__limiter_plan(struct weir_limiter *limiter, uint32_t version);
/* When the next one took its place; INT64_MAX: none did, or nobody remembers it. */
weir_time weir__limiter_until(struct weir_limiter *limiter, uint32_t version);
/* Brings a state kept under an older version to `to`, up to the era's; both of their plans'
 * sizes.  from NULL: nobody remembers the version. */
void weir__limiter_convert(struct weir_limiter *limiter, const struct weir__era *era,
                           uint32_t version, const void *from, void *to);
/* Nothing was used, and it remembers no time either: a change of its limit leaves it as it is.  The
 * state is the caller's own: others write to those in the table. */
bool weir__is_all_fresh(const struct weir_plan *plan, const void *state);
void weir__limiters_free(struct weir_table *table);

static inline const struct weir__era *weir__limiter_era(struct weir_limiter *limiter)
{
    const struct weir__era *era = __atomic_load_n(&limiter->era, __ATOMIC_ACQUIRE);

    if (__builtin_expect(weir__acquire(&limiter->place->edition) != weir__acquire(&era->edition),
                         0))
        era = weir__limiter_renew(limiter);
    return era;
}

/* The switches by hand.  Any other number, from a damaged file, counts as none. */
static inline enum weir_mode weir__mode_load(const uint32_t *mode)
{
    uint32_t m = __atomic_load_n(mode, __ATOMIC_RELAXED);

    return m > WEIR_OFF ? WEIR_AS_WRITTEN : (enum weir_mode)m;
}

static inline enum weir_mode weir__limiter_mode(const struct weir_limiter *limiter)
{
    return weir__mode_load(&limiter->place->mode);
}

/* Where it keeps the counts of a rule, as long as this process uses it; NULL: it is damaged. */
struct weir__tally *weir__limiter_counts(struct weir_limiter *limiter);
/* False: it is damaged. */
bool weir__limiter_read_counts(struct weir_limiter *limiter, struct weir__tally *out);

static inline void weir__limiter_set_mode(struct weir_limiter *limiter, enum weir_mode mode)
{
    __atomic_store_n(&limiter->place->mode, (uint32_t)mode, __ATOMIC_RELEASE);
}

static inline enum weir_mode weir__table_mode(const struct weir_table *table)
{
    return weir__mode_load(&table->header->mode);
}

static inline void weir__table_set_mode(struct weir_table *table, enum weir_mode mode)
{
    __atomic_store_n(&table->header->mode, (uint32_t)mode, __ATOMIC_RELEASE);
}

/* slot.c -- where a key lives. */
struct weir__home {
    uint64_t tag, group, first; /* first: the slot in the group where the search begins */
};

/* take.c */
bool weir__decide(struct weir_limiter *limiter, struct weir__home home, const struct weir_ask *ask,
                  bool take, struct weir_decision *d);

#endif
