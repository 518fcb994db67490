/* layout.h -- the bytes of a table.  docs/shm.md draws them.
 *
 *     header          one page: format, sizes, secrets, then what changes
 *     desks           one page: locks for what is rare, 32 of 64 bytes and 32 hands
 *     limiters        records, as many as the table was made for
 *     bans            marks of 16 bytes, then as many records of 256
 *     guards          who is attached, for permits that a dead process leaves; then a record for
 *                     each guard (lib/guard/guard.h)
 *     slots           groups of 256 slots
 *     slab            arrays of large slots, one for each limiter that needs them
 *
 * Offsets only, from the region's first byte; little-endian; all sizes fixed at birth.
 */
#ifndef WEIR_TABLE_LAYOUT_H
#define WEIR_TABLE_LAYOUT_H

#include <pthread.h>

#include "algo/algo.h"
#include "base/hash.h"

#define WEIR__MAGIC  "WEIRTABL"
#define WEIR__FORMAT 3
#define WEIR__ENDIAN 0x01020304u
#define WEIR__PAGE   4096
#define WEIR__LINE   64

#define WEIR__DESKS 32
#define WEIR__HANDS 32 /* more locks, behind the desks on their page */
/* The last desk is for the records of limiters, bans and guards; the others are the groups'. */
#define WEIR__REGISTRY_DESK (WEIR__DESKS - 1)
#define WEIR__LIMITERS_MAX  65536
#define WEIR__NAME_SIZE     64
#define WEIR__PAST          8 /* limits of a limiter that are remembered, with the present one */

#define WEIR__BANS_MAX   ((int64_t)1 << 20)
#define WEIR__BAN_PAGE   16  /* places for bans come in pages of records */
#define WEIR__BAN_WINDOW 64  /* a ban lies at most this far from its home */
#define WEIR__BAN_KEY    160 /* bytes of a key that are kept, to be shown */

#define WEIR__GUARDS_MAX  4096
#define WEIR__GUARD_BYTES ((uint64_t)320 << 10) /* of a guard's record; sparse: see its permits */
#define WEIR__HOLDERS     1024 /* processes that can hold permits; the first place stays empty */

#define WEIR__GROUP_SLOTS    256
#define WEIR__KEYS_PER_GROUP 210 /* what a group is asked to hold: a filling of 82 % */

/* Set in the first word of a slot's state while the holder of the group's desk works on it.  States
 * never use it: it would be a negative time. */
#define WEIR__PIN ((uint64_t)1 << 63)

struct weir__header {
    /* written once */
    char magic[8];
    uint32_t format, endian;
    uint64_t bytes;    /* of the region */
    uint64_t slots_at; /* offset of the first group */
    uint64_t groups;
    uint64_t slab_at, slab_bytes;
    uint32_t slot_size;   /* 16 or 32 */
    uint32_t header_size; /* sizeof(struct weir__header): a build with other types is noticed */
    uint64_t limiters_max;
    uint64_t ban_places;
    uint64_t guards_max;
    uint64_t secrets[WEIR__HASH_SECRETS];
    uint64_t check; /* of all the above */

    /* changes, rarely */
    _Alignas(WEIR__LINE) int64_t clock_offset; /* what to add to the monotonic clock */
    int64_t clock_latest; /* the table's time when it was last attached or left */
    unsigned char boot_id[WEIR__BOOT_ID_SIZE];
    uint64_t slab_used;
    uint64_t limiters;   /* records in use */
    int64_t bans_latest; /* no ban ends later: from then on nobody need look */
    uint32_t mode;       /* of all limiters: enum weir_mode, by hand */
    uint32_t guards;     /* records in use */

    _Alignas(WEIR__LINE) uint32_t degradation; /* in force */
    uint32_t degradation_by_hand;              /* 0: none is; else the degradation + 1 */
    uint32_t holders_next;                     /* where the next place for a holder is looked for */
    int64_t holders_at;                        /* when it was last looked which holders are alive */
    uint64_t holders_lost;                     /* that died with the table attached */

    _Alignas(WEIR__LINE) int64_t keys; /* slots in use */
    int64_t evicted_idle, evicted_early, recovered;
    int64_t large_keys; /* large slots in use */
    int64_t bans_lost;  /* bans that made room before their end */
};

struct weir__desk {
    /* Process-shared and robust; made anew when nobody is attached. */
    _Alignas(WEIR__LINE) pthread_mutex_t mutex;
};

/* A limit in fixed-width numbers. */
struct weir__limit_record {
    int64_t count, period, burst, queue, buckets, align_first, loose, warmup, cold;
    int64_t since;                  /* the time of the change that made it so */
    int64_t large_at, large_stride; /* large states: where the array of their slots is, and how far
                                       apart they are */
    int64_t calendar, zone[5];      /* zone: a name of 39 bytes, and NUL */
};

/* The members that decisions read come first, on a line of their own. */
struct weir__limiter_record {
    _Alignas(WEIR__LINE) uint32_t algorithm; /* index in weir_algorithms() */
    uint32_t version; /* of the limit: past[version % WEIR__PAST] is the present one */
    uint64_t salt;
    uint64_t large_groups; /* of slots for large states; 0: the states are small */
    uint32_t mode;         /* enum weir_mode, by hand */
    _Alignas(WEIR__LINE) char name[WEIR__NAME_SIZE];
    struct weir__limit_record past[WEIR__PAST];
};

/* The part of a ban that a check reads: four to a cache line, and changed in one swap. */
struct weir__ban_mark {
    _Alignas(16) uint64_t tag; /* 0: never used */
    int64_t until;
};

/* The rest of a ban: written and read at the registry's desk. */
struct weir__ban_record {
    uint64_t tag; /* as in the mark; another: this was never finished, and counts for nothing */
    int64_t since;
    int64_t forget_at; /* from then on its strikes are forgotten */
    int32_t strikes;
    uint32_t key_len; /* of the whole key */
    char rule[WEIR__NAME_SIZE];
    char key[WEIR__BAN_KEY];
};

/* A process that may hold permits: written at the registry's desk, pid last. */
struct weir__holder {
    uint32_t pid; /* 0: the place is free */
    uint32_t unused;
    uint64_t start; /* when the process began, in the kernel's ticks: pids are used again */
    uint64_t space; /* the pid namespace: in another one it cannot be told who is alive */
};

_Static_assert(sizeof(struct weir__header) <= WEIR__PAGE, "the header fits its page");
_Static_assert(sizeof(struct weir__limiter_record) % WEIR__LINE == 0,
               "a limiter's record is whole cache lines");
_Static_assert(sizeof(struct weir__ban_record) * WEIR__BAN_PAGE == WEIR__PAGE, "a page of bans");
_Static_assert(sizeof(struct weir__desk) == WEIR__LINE, "a desk is a cache line");

/* Narrow slot: four to a cache line. */
struct weir__narrow {
    uint64_t tag;  /* 0: empty */
    uint64_t word; /* weir__pack */
};

/* Wide slot: two to a cache line.  `owner` is the limiter's id and the version of the limit that
 * the state is kept under, or for limits that come with the ask WEIR__CARRIED_ID and their scale
 * (carried.h). */
struct weir__wide {
    _Alignas(16) uint64_t tag;
    uint64_t owner;
    uint64_t state[2];
};

/* Large slot: only for the holder of its group's desk. */
struct weir__large {
    uint64_t tag;
    uint64_t state[]; /* weir_plan_state_size bytes */
};

#define WEIR__LARGE_GROUP          64
#define WEIR__LARGE_KEYS_PER_GROUP 48

#define WEIR__DESKS_AT    ((uint64_t)WEIR__PAGE)
#define WEIR__LIMITERS_AT (WEIR__DESKS_AT + WEIR__PAGE)

_Static_assert((WEIR__DESKS + WEIR__HANDS) * sizeof(struct weir__desk) <= WEIR__PAGE,
               "the desks fit their page");

/* Every part begins on a page. */
static inline uint64_t weir__page_up(uint64_t n)
{
    return (n + WEIR__PAGE - 1) & ~(uint64_t)(WEIR__PAGE - 1);
}

static inline uint64_t weir__bans_at(uint64_t limiters_max)
{
    return WEIR__LIMITERS_AT + weir__page_up(limiters_max * sizeof(struct weir__limiter_record));
}

static inline uint64_t weir__ban_records_at(uint64_t limiters_max, uint64_t ban_places)
{
    return weir__bans_at(limiters_max) + weir__page_up(ban_places * sizeof(struct weir__ban_mark));
}

static inline uint64_t weir__guards_at(uint64_t limiters_max, uint64_t ban_places)
{
    return weir__ban_records_at(limiters_max, ban_places) +
           weir__page_up(ban_places * sizeof(struct weir__ban_record));
}

static inline uint64_t weir__guard_records_at(uint64_t limiters_max, uint64_t ban_places)
{
    return weir__guards_at(limiters_max, ban_places) +
           weir__page_up(WEIR__HOLDERS * sizeof(struct weir__holder));
}

static inline uint64_t weir__slots_at(uint64_t limiters_max, uint64_t ban_places,
                                      uint64_t guards_max)
{
    return weir__guard_records_at(limiters_max, ban_places) + guards_max * WEIR__GUARD_BYTES;
}

#endif
