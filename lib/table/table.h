/* table.h -- a table as one process sees it.
 *
 * Who may touch what:
 *
 *     a slot's tag and state     anybody, by atomic operations; a decision on a key that is there
 *                                is one compare-and-swap
 *     an empty slot              the first to swap its tag in; slots never become empty again
 *     a pinned slot              the pin's owner: the holder of the group's desk, or of a hand
 *                                (desk.c); others wait
 *     a large slot               the holder of its group's desk
 *     the limiters' records      the holder of the registry's desk writes, `version` last; readers
 *                                check it after they have read
 *     a mode                     anybody, by an atomic store
 *     a ban's mark               the holder of the registry's desk writes; anybody reads, by atomic
 *                                operations
 *     a ban's record             the holder of the registry's desk
 *     a guard's record           lib/guard/guard.h
 *
 * Several desks are taken in ascending order, hands after desks.  A pin seen by a desk's holder
 * that is not its own is a hand's; if it is still there when all hands are taken, it was left by a
 * process that died, and is lifted.
 */
#ifndef WEIR_TABLE_H
#define WEIR_TABLE_H

#include "algo/debt.h"
#include "base/atomic.h"
#include "table/layout.h"

struct weir_table {
    struct weir__header *header; /* the region */
    uint64_t bytes;              /* its length as mapped: the header's may be damaged */
    unsigned char *slots;
    uint64_t groups;
    uint64_t ban_places;
    struct weir__ban_mark *ban_marks;
    struct weir__ban_record *ban_records;
    bool narrow;
    int fd;                /* -1: private */
    unsigned char *guards; /* the first record */
    struct weir__holder *holders;
    uint32_t guards_max;
    void *guarding; /* the guards' room's own data in this process, and how to end it */
    void (*guarding_end)(struct weir_table *table);
    uint64_t secrets[WEIR__HASH_SECRETS];
    uint32_t limiters_max;
    uint32_t named;        /* limiters that `names` has */
    uint32_t *names;       /* their ids + 1 by the hash of their names; at the registry's desk */
    pthread_mutex_t mutex; /* of the following, in this process only */
    struct weir_limiter **limiters; /* limiters_max of them, NULL until first met */
};

/* A limit as it is from one version to the next.  Never changes, and lives as long as the table:
 * deciding threads read it unlocked. */
struct weir__era {
    struct weir_plan plan;
    weir_time since;
    uint64_t owner;       /* what a wide slot of this version says: id << 32 | version */
    unsigned char *large; /* the array of slots, if the states are large */
    uint64_t large_stride;
    struct weir__era *older; /* versions that this process has seen, newest first */
};

/* The kinds of slot that a limiter's states are kept in. */
enum weir__kind { WEIR__NARROW, WEIR__WIDE, WEIR__LARGE };

struct weir_limiter {
    struct weir_table *table;
    struct weir__limiter_record *record;
    uint64_t salt;
    uint32_t id;
    enum weir__kind kind;
    struct weir__era *era; /* the present one; atomic */
};

/* table.c */
int weir__table_commit(const struct weir_table *table, uint64_t at, uint64_t bytes,
                       struct weir_error *error);
weir_time weir__table_clock_offset(weir_time latest, weir_time real, weir_time monotonic);

/* desk.c */
void weir__desk_make(struct weir__desk *desk);
void weir__desk_lock(struct weir_table *table, uint64_t desk);
void weir__desk_unlock(struct weir_table *table, uint64_t desk);
uint64_t weir__hand_take(struct weir_table *table); /* any one; returns which */
void weir__hand_give(struct weir_table *table, uint64_t hand);
void weir__hands_take_all(struct weir_table *table);
void weir__hands_give_all(struct weir_table *table);

/* limiter.c -- the limiter of this id as this process sees it, compiled when first met; NULL if its
 * record makes no sense. */
struct weir_limiter *weir__limiter_by_id(struct weir_table *table, uint32_t id);
/* The limiter of this name; NULL if there is none, or its record makes no sense. */
struct weir_limiter *weir__limiter_by_name(struct weir_table *table, const char *name);
uint32_t weir__limiters_in(const struct weir_table *table); /* records in use, whatever the header
                                                               says no more than there are */
size_t weir__names_room(const struct weir_table *table);    /* of weir_table.names */
/* Bytes of the slab that a change to this plan needs. */
uint64_t weir__limiter_change_bytes(struct weir_limiter *limiter, const struct weir_plan *plan);
/* The present era; compiles it if another process has changed the limit. */
const struct weir__era *weir__limiter_renew(struct weir_limiter *limiter);
/* Brings a state kept under an older version up to the era's. */
void weir__limiter_convert(struct weir_limiter *limiter, const struct weir__era *era,
                           uint64_t owner, const uint64_t from[2], uint64_t to[2]);
void weir__limiter_free(struct weir_limiter *limiter);

static inline const struct weir__era *weir__limiter_era(struct weir_limiter *limiter)
{
    const struct weir__era *era = __atomic_load_n(&limiter->era, __ATOMIC_ACQUIRE);

    if (__builtin_expect(__atomic_load_n(&limiter->record->version, __ATOMIC_ACQUIRE) !=
                             (uint32_t)era->owner,
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
    return weir__mode_load(&limiter->record->mode);
}

static inline void weir__limiter_set_mode(struct weir_limiter *limiter, enum weir_mode mode)
{
    __atomic_store_n(&limiter->record->mode, (uint32_t)mode, __ATOMIC_RELEASE);
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

/* The key's slot, or NULL.  slot.h has more. */
void *weir__slot_find(const struct weir_limiter *limiter,
                      struct weir__home home); /* of either kind */
struct weir__large *weir__large_find_locked(const struct weir_limiter *limiter,
                                            struct weir__home home);
struct weir__large *weir__large_fresh(const struct weir_limiter *limiter); /* zeros, to look at */

/* The key's slot, made if it is not there: in an empty one, or where the idlest was.  The _locked
 * one is for the holder of the desk; slots listed in `mine` are its own and stay. */
void *weir__slot_claim(struct weir_limiter *limiter, struct weir__home home, weir_time now);
void *weir__slot_claim_as(struct weir_table *table, struct weir__home home, uint64_t owner,
                          weir_time now); /* whatever a wide slot's owner is */
void *weir__slot_claim_locked(struct weir_limiter *limiter, struct weir__home home, weir_time now,
                              void *const *mine, size_t n);
struct weir__large *weir__large_claim_locked(struct weir_limiter *limiter, struct weir__home home,
                                             weir_time now, void *const *mine, size_t n);

/* For the figures: whether a slot's key has anything to forget; and how many such keys a limiter's
 * large slots hold. */
bool weir__slot_live(struct weir_table *table, uint64_t slot, weir_time now);
int64_t weir__large_live(struct weir_limiter *limiter, weir_time now);

/* The slot was seen pinned: waits until its holder is done, and lifts the pin if the holder
 * died. */
void weir__slot_wait(struct weir_table *table, uint64_t group, uint64_t *word);

/* For the holder of the desk: pins a small slot and copies its state, under the present limit,
 * whose era it returns; writes it and lifts the pin; only lifts it. */
const struct weir__era *weir__slot_open_locked(struct weir_limiter *limiter, void *slot,
                                               weir_time now, uint64_t state[2]);
void weir__slot_close_locked(struct weir_limiter *limiter, const struct weir__era *era, void *slot,
                             const uint64_t state[2]);
void weir__slot_pin_locked(struct weir_table *table, void *slot);
void weir__slot_unpin_locked(struct weir_table *table, void *slot);

/* take.c */
bool weir__decide(struct weir_limiter *limiter, struct weir__home home, const struct weir_ask *ask,
                  bool take, struct weir_decision *d);

static inline uint64_t weir__desk_of(uint64_t group)
{
    return group % WEIR__REGISTRY_DESK;
}

#endif
