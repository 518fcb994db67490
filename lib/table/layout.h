/* layout.h -- the bytes of a table.  docs/shm.md draws them.
 *
 *     header          one page: format, sizes, secrets, then all that changes
 *     hands           changes of several slots under way
 *     holders         attached processes, for what a dead one leaves
 *     registry        a directory, places of limiters and guards, their users; then
 *         map, slab   blocks for their records
 *     guards          as much of each as is not in its record (lib/guard/guard.h)
 *     bans, keys      a space for each:
 *         rooms       for each group: how often a slot got another key, and how far keys are
 *         slots       groups of 256 slots
 *         map         of the slab's chunks
 *         slab        blocks for large states (block.h)
 *
 * Offsets only, from the region's first byte; little-endian; all sizes fixed at birth.
 */
#ifndef WEIR_TABLE_LAYOUT_H
#define WEIR_TABLE_LAYOUT_H

#include "algo/algo.h"
#include "base/hash.h"

#define WEIR__MAGIC      "WEIRTABL"
#define WEIR__MAKING     "WEIRMAKE" /* in its place while a table is being made */
#define WEIR__MAGIC_SIZE 8
#define WEIR__FORMAT     6
#define WEIR__ENDIAN     0x01020304u
#define WEIR__PAGE       4096
#define WEIR__LINE       64

#define WEIR__HANDS       1024
#define WEIR__HANDS_READY 64 /* of them; the others get their bytes when these are all in use */
#define WEIR__HAND_BYTES  6144

#define WEIR__LIMITERS_MAX 65536
#define WEIR__NAME_SIZE    64
#define WEIR__PAST         7 /* limits of a limiter that are remembered, with the present one */

#define WEIR__BANS_MAX ((int64_t)1 << 20)
#define WEIR__BAN_KEY  160 /* bytes of a key that are kept, to be shown */

#define WEIR__GUARDS_MAX   4096
#define WEIR__GUARD_RECORD 1024 /* bytes of its record in the registry: name, salt, terms */
#define WEIR__GUARD_BYTES  ((uint64_t)320 << 10) /* of all else; sparse: see its permits */
#define WEIR__GUARD_SEATS  16384                 /* and permits */
#define WEIR__SEATS_OFFSET ((uint64_t)64 << 10)  /* of a guard's seats in its bytes */
#define WEIR__SEATS_AT     24                    /* of the number of seats in its record */
#define WEIR__HOLDERS      1024 /* processes that can hold permits; the first place stays empty */

#define WEIR__GROUP_SLOTS    256
#define WEIR__KEYS_PER_GROUP 210 /* what a group is asked to hold: a filling of 82 % */

/* Set in a slot's pin word while a hand changes it: the rest of the word names the hand.  States
 * never use it: it would be a negative time. */
#define WEIR__PIN ((uint64_t)1 << 63)

struct weir__header {
    /* written once */
    char magic[8];
    uint32_t format, endian;
    uint64_t bytes;      /* of the region */
    uint64_t groups;     /* of keys */
    uint64_t slab_bytes; /* of their large states */
    uint64_t ban_groups;
    uint32_t slot_size;   /* of keys: 16 or 32 */
    uint32_t header_size; /* sizeof(struct weir__header): a build with other types is noticed */
    uint64_t limiters_max;
    uint64_t guards_max;
    uint64_t secrets[WEIR__HASH_SECRETS];
    uint64_t check; /* of all the above */

    /* changes, rarely */
    _Alignas(WEIR__LINE) int64_t clock_offset; /* what to add to the monotonic clock */
    int64_t clock_latest; /* the table's time when it was last attached or left */
    unsigned char boot_id[WEIR__BOOT_ID_SIZE];
    uint32_t mode;   /* of all limiters: enum weir_mode, by hand */
    uint32_t hands;  /* that have their bytes; fewer than WEIR__HANDS_READY count as these */
    int64_t tend_at; /* when it was last looked what can be reclaimed */
    _Alignas(16) uint64_t bans_latest; /* no ban ends later: from then on nobody need look */
    uint64_t bans_written;             /* swapped together with it */

    _Alignas(WEIR__LINE) uint32_t degradation; /* in force */
    uint32_t degradation_by_hand;              /* 0: none is; else the degradation + 1 */
    uint32_t holders_next;                     /* where the next place for a holder is looked for */
    uint32_t bell;         /* changes when somebody who waits for a permit is to look; a futex */
    int64_t holders_at;    /* when it was last looked which holders are alive */
    uint64_t holders_lost; /* that died with the table attached; of those found when it was put in
                              order, only one more */
    uint64_t lost_then;    /* holders_lost when the table was last put in order */
    int64_t real_ahead;    /* the host's real time minus the table's ... */
    int64_t real_at;       /* ... when they were last compared, by the monotonic clock */
    int64_t fleet_until;   /* purses are filled until then; 0: this host is in no fleet */

    _Alignas(WEIR__LINE) int64_t keys; /* slots in use */
    int64_t evicted_idle, evicted_early, recovered;
    int64_t bans_lost;    /* bans that made room before their end */
    int64_t no_room;      /* asks refused because nobody could make room */
    int64_t no_disk;      /* blocks that were wanted while the disk was full */
    uint32_t fleet_part;  /* this host's part of the fleet, in millionths: agent-lease.h */
    uint32_t fleet_agent; /* the holder that fills purses, and its latest claim: agent-lease.h */
};

/* Requests that were decided by rules, of all processes; in the header's page, behind it.  Each
 * counts as allowed or refused, and as at most one of the others. */
struct weir__totals {
    int64_t allowed, refused, denied, allow_listed, unmatched, shadow_refused;
};
#define WEIR__TOTALS_AT 512

/* A pair of words to be changed together with others. */
struct weir__entry {
    uint64_t at; /* offset of the pair; | 8 if its second word takes the pin */
    uint64_t before[2], after[2];
    /* Of the pair in front of it, a wide slot's tag and meta: it must be as before, and becomes
     * tag_after unless that is zeros. */
    uint64_t tag_before[2], tag_after[2];
    uint32_t block_before, block_after; /* that the pair names; 0: none */
};

/* A change of several pairs under way.  hand.c says how. */
struct weir__hand {
    _Alignas(WEIR__LINE) uint64_t owner; /* its holder's place + 1; 0: free */
    uint64_t status;                     /* sequence << 2 | enum weir__hand_status */
    uint64_t n;
    uint64_t spares[WEIR_ALL_MAX]; /* blocks that belong to the hand: bytes << 32 | block */
    _Alignas(WEIR__LINE) struct weir__entry entries[WEIR_ALL_MAX];
};

/* A group of slots; of the registry, its directory. */
struct weir__room {
    _Alignas(16) uint64_t count; /* how often a slot got another key; takes the pin */
    uint64_t reach;              /* no key is this many slots from its home; 0: not known */
};

/* A limit in fixed-width numbers. */
struct weir__limit_record {
    int64_t count, period, burst, queue, buckets, align_first, loose, warmup, cold;
    int64_t since;             /* the time of the change that made it so */
    int64_t calendar, zone[5]; /* zone: a name of 39 bytes, and NUL */
};

/* Where a limiter or a guard is; registry.c says how it changes. */
struct weir__place {
    _Alignas(16) uint64_t edition; /* grows with every change; takes the pin */
    uint64_t word;                 /* its record's block, and whether it is closed; 0: free */
    uint32_t mode;                 /* enum weir_mode, by hand */
    uint32_t dropped; /* nobody is expected to want it again: 1, or more looks at its permits */
    int64_t look_at;  /* not in use: when it may be reclaimed; 0: in use */
};

/* A bit for each holder that uses what is in the place. */
struct weir__users {
    uint64_t bits[WEIR__HOLDERS / 64];
};

/* Requests as a rule decided them. */
struct weir__tally {
    int64_t allowed, refused, banned, shadow_refused;
};

/* A limiter's record, in a block. */
struct weir__limiter_record {
    char name[WEIR__NAME_SIZE];
    uint64_t salt;
    uint32_t algorithm; /* weir__algo_index */
    uint32_t version;   /* of the limit: past[version % WEIR__PAST] is the present one */
    struct weir__limit_record past[WEIR__PAST];
    struct weir__tally counts; /* of a rule, in its lever; they alone change in place */
};

/* A ban: a large state. */
struct weir__ban_record {
    int64_t since, until;
    int64_t forget_at; /* from then on its strikes are forgotten */
    int32_t strikes;
    uint16_t key_len; /* of the whole key */
    uint16_t told;    /* 1: the fleet knows it so */
    char rule[WEIR__NAME_SIZE];
    char key[WEIR__BAN_KEY];
};

/* A process that is attached: pid is written last. */
struct weir__holder {
    uint32_t pid;    /* 0: the place is free */
    uint32_t locked; /* 1: it has its lock (holder-lock.h) as long as it runs this program */
    uint64_t start;  /* when the process began, in the kernel's ticks: pids are used again */
    uint64_t space;  /* the pid namespace: in another one pids are others' */
};

/* Where a permit of a guard is kept while it is out. */
struct weir__seat {
    _Alignas(16) uint64_t word; /* lib/guard/guard.h */
    uint64_t ref;               /* the key that it counts for: permits-by-key.h; 0: none */
};

_Static_assert(WEIR__SEATS_OFFSET + WEIR__GUARD_SEATS * sizeof(struct weir__seat) <=
                   WEIR__GUARD_BYTES,
               "a guard has room for its seats");
_Static_assert(sizeof(struct weir__header) == 448, "the header of format 6");
_Static_assert(sizeof(struct weir__limiter_record) <= 1024, "a limiter's record fits a block");
_Static_assert(sizeof(struct weir__place) == 32, "two places are a cache line");
_Static_assert(sizeof(struct weir__ban_record) == 256, "a ban fills a block");

/* Slots.  The tag stands for key and limiter: 47 bits of the hash << 17 | the limiter's id; 0:
 * empty.  A large state is a block: the slot names it, with a number that changes whenever
 * the block does.
 *
 * Narrow: four to a cache line.  The word is weir__pack's; large: number << 40 | the version's last
 * 8 bits << 32 | block. */
struct weir__narrow {
    _Alignas(16) uint64_t tag;
    uint64_t word; /* takes the pin */
};

/* Wide: two to a cache line.  `meta` is how often the slot was rewritten << 32 | the version of the
 * limit that the state is kept under; of limits that come with the ask, their scale.
 * Large: the state is when it is idle, and number << 32 | block. */
struct weir__wide {
    _Alignas(16) uint64_t tag;
    uint64_t meta;
    uint64_t state[2]; /* the first takes the pin */
};

#define WEIR__HANDS_AT   ((uint64_t)WEIR__PAGE)
#define WEIR__HOLDERS_AT (WEIR__HANDS_AT + (uint64_t)WEIR__HANDS * WEIR__HAND_BYTES)

_Static_assert(sizeof(struct weir__hand) <= WEIR__HAND_BYTES, "a hand fits its bytes");
_Static_assert(sizeof(struct weir__entry) == 80, "an entry");

/* Every part begins on a page. */
static inline uint64_t weir__page_up(uint64_t n)
{
    return (n + WEIR__PAGE - 1) & ~(uint64_t)(WEIR__PAGE - 1);
}

#endif
