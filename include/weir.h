/* weir.h -- traffic control: rate limits by key, limits on work in progress, and rules that choose.
 *
 * This header is the manual.  Each floor builds on the one before it: read on as far as you need.
 *
 *   floor 1   you hold the state        weir_plan_create, weir_step
 *   floor 2   a table holds the states  weir_table_create, weir_limiter_create, weir_take
 *   guards    work in progress          weir_guard_create, weir_enter, weir_exit
 *   floor 3   rules choose              weir_create, weir_rules_read, weir_use, weir_check
 *
 * weir-admin.h looks at rules in force and changes them by hand; weir-queue.h is for callers that
 * can wait; weir-redis.h for limits in Redis; weir-fleet.h for one limit over many hosts.  The
 * words:
 *
 *   limit     what a person writes: "300 per 60 s"
 *   plan      a limit, checked and compiled; it never changes, and threads may share it
 *   state     what one key has used: a few bytes, and all zeros is a fresh key
 *   table     holds the states of many keys, each in a slot
 *   limiter   a plan at work in a table, under a name
 *   ask       a key, a cost, a time, and how long the caller can wait
 *   decision  the answer
 *   guard     bounds work in progress: enter, work, exit
 *   permit    issued by enter, returned by exit
 *   rule      which limits apply to which requests
 *   ruling    the decision of all rules that apply to a request, and the rule that made it
 *
 * Four promises:
 *
 *   1. Never too much.    docs/algorithms.md states each algorithm's bound, and a test proves it.
 *   2. Never too little.  A fresh key gets its whole burst; free capacity is granted at once.
 *   3. "No" changes nothing and says when to retry.  decision.retry is exact, or WEIR_NEVER; for
 *      guards and queues an estimate where enum weir_reason says so.
 *   4. Deciding never fails.  Only functions that return int can.
 *
 * Errors.  A function that returns int returns 0 or a negative weir_code.  On failure it explains
 * itself in a struct weir_error (NULL: not wanted) and leaves *out untouched.  Functions that
 * decide return whether the ask was granted.  A bug in the caller (NULL where none may be) asserts.
 *
 * Threads.  Any function may be called from many threads at once; only create and destroy must not
 * overlap with other uses of the object.  After fork (with no other thread in here) a table with a
 * path stays shared; a private one becomes two.
 *
 * Listings.  Functions named ..._next give one entry per call, from a cursor of 0 until false:
 *
 *     for (int64_t at = 0; weir_limiter_next(table, &at, &info);)
 *         printf("%s %s\n", info.name, info.limit);
 *
 * Entries that come or go meanwhile may be missing; all others are listed once. */
#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#error "Weir needs POSIX"
#elif defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

/* A program and the library are of one version.  Before 1.0 any version may add members to a struct
 * that programs have in their own memory (options, struct weir_visit), and no struct tells its
 * size: one compiled with an older header hands in too little.  So compile again when the header
 * changes.  The source lasts longer: a member that is new means, when 0, what was so before; name
 * members when you fill a struct, and begin it with zeros. */
#define WEIR_VERSION        "0.1.0"
#define WEIR_VERSION_NUMBER 100          /* major * 10000 + minor * 100 + patch */
WEIR_API const char *weir_version(void); /* of the library that is running */

/* ---------------------------------------------------------------- time ---- */

/* Nanoseconds: a point or a span.  All asks on one table must use one axis, and weir_table_now()
 * gives a good one; any that starts at 0 or later will do (points before 0 count as 0).  An ask may
 * be up to a second late, as threads overtake each other: it counts as of the latest moment its key
 * has seen.  A clock that steps back further is followed: the step gives nothing away and locks no
 * key out, but time that passes twice counts twice. */
typedef int64_t weir_time;

#define WEIR_NEVER       INT64_MAX /* decision.retry: this ask can never be granted */
#define WEIR_FOREVER     INT64_MAX /* ask.wait_max: any wait will do */
#define WEIR_MICROSECOND ((weir_time)1000)
#define WEIR_MILLISECOND ((weir_time)1000000)
#define WEIR_SECOND      ((weir_time)1000000000)

/* --------------------------------------------------------------- errors ---- */

enum weir_code {
    WEIR_OK = 0,
    WEIR_INVALID = -1,   /* the request makes no sense; the text says what would */
    WEIR_NO_MEMORY = -2, /* malloc or mmap refused, or a region is too small */
    WEIR_SYSTEM = -3,    /* a system call failed; the text names it */
    WEIR_CORRUPT = -4,   /* these bytes are not a table as this version writes it */
    WEIR_EXISTS = -5,    /* the name is taken, with another limit or other options */
};

struct weir_error {
    int column;     /* in a parsed text, from 1; 0: does not apply */
    char text[244]; /* one line, without a newline */
};

/* --------------------------------------------------------------- limits ---- */

enum weir_calendar { WEIR_NO_CALENDAR = 0, WEIR_DAY = 1, WEIR_WEEK = 2, WEIR_MONTH = 3 };
#define WEIR_NO_QUEUE ((int64_t)-1)

/* A limit as a person means it.  Zero means the default, so name only what you need:
 *
 *     struct weir_limit limit = { .count = 300, .period = 60 * WEIR_SECOND }; */
struct weir_limit {
    const char *algorithm; /* a name from weir_algorithms(); NULL: "token-bucket" */
    int64_t count;         /* this many ... */
    weir_time period;      /* ... in this time */
    /* Most that can pass at one instant after a rest; 0: count (leaky-bucket with a queue: 1) */
    int64_t burst;
    int64_t queue;    /* leaky-bucket: units that may wait; 0: a meter; WEIR_NO_QUEUE: none may */
    int32_t buckets;  /* sliding-window: parts of the window; 0: 10 */
    bool align_first; /* fixed-window: starts with the first ask, not at a multiple of the period */
    bool loose; /* sliding-window: as Sentinel's; up to twice the limit can pass in a period */
    weir_time warmup; /* warm-up: time from cold to warm; 0: the period */
    int32_t cold;     /* warm-up: how many times slower a cold key is; 0: 3 */
    int32_t calendar; /* calendar: WEIR_DAY, WEIR_WEEK (from Monday) or WEIR_MONTH; no period */
    char zone[40];    /* calendar: a time zone such as Europe/Berlin; "": UTC */
};

/* The short syntax:
 *
 *     [ALGORITHM] COUNT[r]/PERIOD [burst N] [queue N] [buckets=N] [align=first] [edge=loose]
 *                                 [warmup=TIME] [cold=N] [zone=NAME]
 *
 *     300/60    100/5s    10r/s    1000/h burst 50    gcra 5/1m burst 3
 *     10000/month zone=Europe/Berlin
 *
 * PERIOD is a time ("5s", "1m", "500ms"), a number of seconds ("60"), a unit ("s", "m", "h", "d",
 * "w") or a calendar window ("day", "week", "month").  Members of *out that the text does not name
 * become 0.  On an error, error->column points at the character. */
WEIR_API int weir_limit_parse(struct weir_limit *out, const char *text, struct weir_error *error);
/* Prints what weir_limit_parse reads; returns the length as snprintf does. */
WEIR_API int weir_limit_print(char *out, size_t size, const struct weir_limit *limit);

/* A time as people write it: "250ms", "1h", "90s"; a bare number is seconds. */
WEIR_API int weir_time_parse(weir_time *out, const char *text, struct weir_error *error);
WEIR_API int weir_time_print(char *out, size_t size, weir_time time);

/* The names of the algorithms, ended by NULL, and one line about each. */
WEIR_API const char *const *weir_algorithms(void);
WEIR_API const char *weir_algorithm_summary(const char *name);

/* -------------------------------------------------- asks and decisions ---- */

struct weir_key {
    const void *bytes;
    size_t len;
};

#define WEIR_PRIORITY_MIN (-8)
#define WEIR_PRIORITY_MAX 7
#define WEIR_CLASSES      8 /* of users, at most */

/* Set cost and now in every ask: without a cost a limit only looks, so nobody is ever limited;
 * without a now it is always the moment 0, and a key that was refused stays refused. */
struct weir_ask {
    struct weir_key key; /* floor 1 ignores it */
    int64_t cost;        /* units; 0 asks without taking */
    weir_time wait_max;  /* a wait up to this long is granted; decision.wait is its length */
    weir_time now;       /* the time of the ask */
    int8_t priority;     /* guards: WEIR_PRIORITY_MIN to _MAX; the highest goes first */
    uint8_t user_class;  /* guards: which of the guard's classes, from 0 */
};

enum weir_reason {
    WEIR_GRANTED = 0,
    WEIR_LIMITED = 1, /* not now; decision.retry says when */
    WEIR_TOO_BIG = 2, /* more than the limit can ever pass at once */
    WEIR_BAD_ASK = 3, /* a negative cost: never granted; weir_give gives back */
    /* rules */
    WEIR_BANNED = 4, /* the key was refused too often; decision.retry says how long it is banned */
    WEIR_DENIED = 5, /* an attribute is on the deny list */
    /* guards */
    WEIR_OPEN = 6,     /* the breaker is open; decision.retry: until it is tried again */
    WEIR_BUSY = 7,     /* all permits are out; decision.retry is an estimate */
    WEIR_SHED = 8,     /* overload, and others are more important; decision.retry is an estimate */
    WEIR_DEGRADED = 9, /* switched off by the degradation */
    WEIR_FULL = 10,    /* the queue is full; decision.retry is an estimate */
    WEIR_LATE = 11,    /* the wait in the queue was too long, or would be; retry: an estimate */
    WEIR_CANCELLED = 12, /* taken out of the queue */
    WEIR_TOO_MANY = 13,  /* rules: more than WEIR_ALL_MAX limits or WEIR_ENTRY_MAX guards apply */
    /* rules: `when_full: closed`, and there is no room for a new key; guards: by `max_per_key` */
    WEIR_NO_ROOM = 14,
    WEIR_KEY_BUSY = 15, /* guards: the key's permits are out, or enough wait; retry: an estimate */
    /* across the fleet: too little was drawn for this host; nothing was taken.  Ask again */
    WEIR_DRY = 16,
    WEIR_ALONE = 17, /* across the fleet: Redis is away, and the rule refuses then */
};
WEIR_API const char *weir_reason_name(enum weir_reason reason); /* "granted", "too-big", ... */

struct weir_decision {
    bool allowed;
    uint8_t reason;    /* enum weir_reason */
    uint16_t item;     /* weir_take_all: the item that refused, or the tightest if allowed */
    int64_t limit;     /* the most units that can pass or wait at once, after a rest */
    int64_t remaining; /* units that could be taken after this */
    weir_time wait;    /* granted: use it after this time (0 unless wait_max allowed more) */
    weir_time retry;   /* refused: the same ask passes after this time if nobody else asks */
    weir_time reset;   /* until the key is as good as fresh */
};

/* ------------------------------------------- floor 1: you hold the state ---- */

struct weir_plan;
WEIR_API int weir_plan_create(struct weir_plan **out, const struct weir_limit *limit,
                              struct weir_error *error);
WEIR_API void weir_plan_destroy(struct weir_plan *plan);
/* Bytes of one key's state: 16, but more for sliding-window and sliding-log.  Align it to 8 and
 * fill it with zeros: then it is fresh. */
WEIR_API size_t weir_plan_state_size(const struct weir_plan *plan);

/* The step: reads no clock, takes no lock, allocates nothing.  One thread at a time per state. */
WEIR_API bool weir_step(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
                        struct weir_decision *decision);
/* The same decision, and the state stays untouched. */
WEIR_API bool weir_step_peek(const struct weir_plan *plan, const void *state,
                             const struct weir_ask *ask, struct weir_decision *decision);
/* Gives back ask->cost units that were taken before; never lifts a key above full. */
WEIR_API void weir_step_give(const struct weir_plan *plan, void *state, const struct weir_ask *ask);
/* From this moment on the state equals a fresh one. */
WEIR_API weir_time weir_step_idle_at(const struct weir_plan *plan, const void *state);
/* The limit changes at `now`, the algorithm does not: writes what `from` has used into `to`, which
 * has the new plan's size and does not overlap. */
WEIR_API void weir_step_change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                               const void *from, void *to, weir_time now);

/* ------------------------------------- floor 2: a table holds the states ---- */

/* A region of fixed size, private to the process or shared by all that open the same path.
 * Decisions allocate nothing and lock nothing.  In a full table a key makes room, and is fresh
 * afterwards: the promises hold while stats.evicted_early stays 0. */
struct weir_table;
struct weir_table_options {
    /* A file, created if there is none; in /dev/shm: memory only.  NULL: private to the process */
    const char *path;
    int64_t keys; /* room for this many keys; 0: 65536.  39 bytes each, or 19.5 if narrow */
    /* Bytes for the states of sliding-window and sliding-log: 4/3 of the state size for each key of
     * each such limiter; 0: 256 a key, for one sliding window.  Unused ones take no memory */
    int64_t slab;
    int64_t limiters; /* room for this many, at most 65536; 0: 256 */
    int64_t bans;     /* room for this many, at most 1048576; 0: 4096 */
    int64_t guards;   /* room for this many, at most 4096; 0: 64 */
    /* 16-byte slots: half the memory, for gcra, token-bucket and leaky-bucket without a queue, if
     * period/count is a whole number of ns; docs/shm.md says what else differs */
    bool narrow;
    unsigned mode; /* of a new file, regardless of the umask; 0: 0600, or 0660 with a group */
    unsigned owner, group; /* of a new file, as numbers; 0: as the system gives them */
};
/* Creates a table, or attaches to the one that the path has; that keeps its own sizes. */
WEIR_API int weir_table_create(struct weir_table **out, const struct weir_table_options *options,
                               struct weir_error *error);
/* Attaches to a table that another process has created.  Refuses a format it does not know. */
WEIR_API int weir_table_attach(struct weir_table **out, const char *path, struct weir_error *error);
/* Leaves the table, and frees its limiters and guards in this process.  The file stays. */
WEIR_API void weir_table_destroy(struct weir_table *table);
/* Somebody has made its file shorter: a process that uses what is missing dies (SIGBUS). */
WEIR_API bool weir_table_is_cut(const struct weir_table *table);

/* The table's own time: nanoseconds since 1970 when the host booted or the table was made, then
 * counted by a clock that never steps.  The same in every process; no reboot sets it back. */
WEIR_API weir_time weir_table_now(const struct weir_table *table);
/* The host's real time at a moment of the table's: another one if the clock was wrong when the
 * table was made, or was set since.  Calendar windows follow it; weir_table_now() compares. */
WEIR_API weir_time weir_table_real(const struct weir_table *table, weir_time at);

struct weir_table_stats {
    int64_t slots, keys;     /* places for keys; those in use, including idle keys */
    int64_t slab, slab_used; /* bytes for large states, and those in use */
    int64_t live;            /* keys that are not as good as fresh; -1 unless asked for */
    int64_t bytes;           /* of the whole region */
    int64_t limiters, guards;
    int64_t evicted_idle;  /* keys that made room and were as good as fresh */
    int64_t evicted_early; /* that were not, and grants not kept at all: the table is too small */
    int64_t recovered;     /* half-done decisions of killed processes, put right by others */
    int64_t bans;          /* in force; -1 unless asked for */
    int64_t bans_lost;     /* bans that made room before their end: the table has too few places */
    int64_t no_room;       /* asks refused with WEIR_NO_ROOM */
    int64_t no_disk;       /* how often a large state or a ban was not kept: the disk was full */
    bool narrow;
};
/* Counting `live` and `bans` reads every slot and every ban: now = -1 leaves that out. */
WEIR_API void weir_table_stats(const struct weir_table *table, weir_time now,
                               struct weir_table_stats *out);

/* Removes what nobody uses any more: limiters and guards that were dropped, within a minute, their
 * keys with them; those that were released, once nothing of them would be missed; and gives disk
 * space back.  Have one process call it every ten seconds (weir serve does).  When there is
 * something to remove it reads all slots, so a large table wants a thread of its own for this. */
WEIR_API void weir_table_tend(struct weir_table *table, weir_time now);

/* A limit at work in a table.  Processes that share the table and use the same name share the
 * states.  Creating a name again gives the same limiter. */
struct weir_limiter;
/* WEIR_EXISTS: the name, of 1 to 63 bytes, has another limit; weir_limiter_find it, and
 * weir_limiter_change it.  Each create needs one release or drop.  The limiter goes after the last,
 * or with the table. */
WEIR_API int weir_limiter_create(struct weir_limiter **out, struct weir_table *table,
                                 const char *name, const struct weir_limit *limit,
                                 struct weir_error *error);
/* NULL: there is none.  It stays until it is dropped, or the table is destroyed. */
WEIR_API struct weir_limiter *weir_limiter_find(struct weir_table *table, const char *name);
/* The caller needs it no more.  Its keys stay as long as they mean anything. */
WEIR_API void weir_limiter_release(struct weir_limiter *limiter);
/* The same for a limiter that is gone for good: after its last user its keys go too. */
WEIR_API void weir_limiter_drop(struct weir_limiter *limiter);
/* Changes the limit for all processes; every key keeps what it has used.  The algorithm stays. */
WEIR_API int weir_limiter_change(struct weir_limiter *limiter, const struct weir_limit *limit,
                                 weir_time now, struct weir_error *error);

struct weir_limiter_info {
    char name[64];
    char limit[128]; /* as weir_limit_print prints it; "damaged" if its record makes no sense */
    int64_t changes; /* of its limit, since it was made */
};
WEIR_API bool weir_limiter_next(const struct weir_table *table, int64_t *at,
                                struct weir_limiter_info *out);

/* Takes ask->cost units from the key, or refuses:
 *
 *     if (!weir_take(api, &(struct weir_ask){ .key = user, .cost = 1, .now = now }, &d))
 *         return reject(429, d.retry);
 *
 * With wait_max > 0 a grant may lie in the future: use it decision.wait later. */
WEIR_API bool weir_take(struct weir_limiter *limiter, const struct weir_ask *ask,
                        struct weir_decision *decision);
/* Answers as weir_take would, and takes nothing; with a cost of 0 `remaining` is what is left. */
WEIR_API bool weir_peek(struct weir_limiter *limiter, const struct weir_ask *ask,
                        struct weir_decision *decision);
/* Gives back ask->cost units that were taken just before, unless time has given them back. */
WEIR_API void weir_give(struct weir_limiter *limiter, const struct weir_ask *ask);
/* Makes the key fresh, whatever it has used.  False: it was fresh. */
WEIR_API bool weir_forget(struct weir_limiter *limiter, struct weir_key key, weir_time now);

struct weir_item {
    struct weir_limiter *limiter;
    struct weir_ask ask;
};
/* Decides each item on its own, overlapping their waits for memory; items on one key in order.
 * Returns how many were granted. */
WEIR_API size_t weir_take_many(const struct weir_item *items, size_t n,
                               struct weir_decision *decisions);

/* All or nothing: takes every item or none, whatever other threads and processes do.  The items, at
 * most WEIR_ALL_MAX, share one table; no items at all are granted.  Refused: decision.item is the
 * first that can never pass, else the first that refused; decision.retry is the longest.  Allowed:
 * decision.item is the tightest (least remaining), decision.wait the longest wait.  limit,
 * remaining and reset are that item's.  Items on one key of one limiter count as one ask of their
 * sum, with the shortest wait_max and the latest now. */
#define WEIR_ALL_MAX 64
WEIR_API bool weir_take_all(const struct weir_item *items, size_t n,
                            struct weir_decision *decision);
/* The same, and `each` gets every item's own decision; of items on one key the first has it. */
WEIR_API bool weir_take_all_each(const struct weir_item *items, size_t n,
                                 struct weir_decision *decision, struct weir_decision *each);

/* Reserve an estimate now, settle with the true cost when it is known.  If nobody settles within
 * the lifetime, counted from its turn, the estimate stands and nothing is left to clean up. */
struct weir_reservation {
    struct weir_limiter *limiter;
    struct weir_key key; /* points to the caller's bytes: they must live until settle */
    int64_t cost;
    weir_time turn;    /* when it may be used */
    weir_time expires; /* 0: settled, or never granted */
};
WEIR_API bool weir_reserve(struct weir_limiter *limiter, const struct weir_ask *ask,
                           weir_time lifetime, struct weir_reservation *out,
                           struct weir_decision *decision);
/* Gives back the unused part, unless time has; or charges what was used beyond the estimate, even
 * if that leaves the key in debt.  False: it was settled before or has expired, nothing happens. */
WEIR_API bool weir_settle(struct weir_reservation *reservation, int64_t true_cost, weir_time now);

/* ------------------------------------------- guards: work in progress ---- */

/* A guard stands before something that can be overrun: a service, a dependency, a pool of workers.
 *
 *     struct weir_permit permit;
 *     if (!weir_enter(search, &(struct weir_ask){ .cost = 1, .now = now }, &permit, &d))
 *         return fall_back(d.reason);
 *     int code = do_the_work();
 *     weir_exit(search, &permit, code == 0 ? WEIR_SUCCEEDED : WEIR_FAILED, weir_table_now(table));
 *
 * Enter asks, in this order: the degradation, the breaker, shedding (the least important first),
 * the permits of the key, the adaptive rate if there is one (WEIR_LIMITED), and the number of
 * permits, fixed or adaptive.  Exit reports the outcome; a guard learns only from that.
 *
 * A permit is a lease.  It is taken back when the guard's `lease` is over or, within a second, when
 * its process has died (on this host, in this pid namespace); a later exit changes nothing.  Like a
 * limiter, a guard lives in a table under a name: processes share it and its permits. */
struct weir_guard;

/* The switch of a guard, a rule or all rules.  Shadow decides, but lets everything in. */
enum weir_mode { WEIR_AS_WRITTEN = 0, WEIR_ENFORCE = 1, WEIR_SHADOW = 2, WEIR_OFF = 3 };
/* "as-written", "enforce", "shadow", "off" */
WEIR_API const char *weir_mode_name(enum weir_mode mode);

/* Every outcome but the first and the last is an error to the breaker, and its time teaches
 * nothing; a timeout also counts as slow.  Timeouts and drops lower an adaptive limit. */
enum weir_outcome {
    WEIR_SUCCEEDED = 0,
    WEIR_FAILED = 1,
    WEIR_TIMED_OUT = 2, /* no answer in time */
    WEIR_DROPPED = 3,   /* refused further on, for lack of capacity */
    WEIR_IGNORED = 4,   /* never begun, or it proves nothing: counted in `entered` only */
};
/* "ok", "error", "timeout", "dropped", "ignored" */
WEIR_API const char *weir_outcome_name(enum weir_outcome outcome);

/* There is a breaker if `errors`, `error_percent` or `slow` is set.  It opens if the window has at
 * least `min_calls` calls and any of these is reached: `errors` errors, error_percent of errors,
 * slow_percent of calls slower than `slow`.  After open_for it lets `probes` calls through
 * (half-open); as soon as their results are certain it closes, or opens again for longer. */
struct weir_breaker_options {
    int32_t error_percent;  /* 1 to 100 */
    int32_t errors;         /* a number of errors */
    weir_time slow;         /* a call that takes longer is slow */
    int32_t slow_percent;   /* 0: 50 */
    weir_time window;       /* the calls of this time, in steps of a sixteenth ... */
    int32_t calls;          /* ... or this many calls, at most 1024; neither: 10 s */
    int32_t min_calls;      /* 0: 20; never more than `calls` */
    weir_time open_for;     /* 0: 5 s; doubles each time the probes fail ... */
    weir_time open_max;     /* ... up to this; 0: 3 times open_for */
    int32_t jitter_percent; /* open times vary by this much, up and down; 0: 10; -1: not at all */
    int32_t probes;         /* 0: 3 */
    bool above;             /* opens above the thresholds only, not at them */
};

struct weir_adaptive_options {
    const char *controller;    /* a name from weir_controllers(); NULL: the limit does not adapt */
    int64_t initial, min, max; /* permits (or per second); 0: the controller's own */
    weir_time target;          /* percentile (required), weir: the time must stay below it */
    int32_t percentile;        /* percentile, weir: of the target, 1 to 99; 0: 99 */
    weir_time window; /* percentile: looks back this far; 0: 10 s.  Others: between two looks */
    bool rate;        /* percentile: bounds entries per second instead of work in progress */
};
#define WEIR_ADAPTIVE "weir" /* Weir's own controller: nothing to choose */
/* The names of the controllers, ended by NULL, and one line about each. */
WEIR_API const char *const *weir_controllers(void);
WEIR_API const char *weir_controller_summary(const char *name);

/* While the host is beyond one of these a guard sheds, the least important first. */
struct weir_system_options {
    int32_t cpu_percent; /* of what this process may use: its cgroup's quota, or all processors */
    int32_t pressure_percent; /* time in which a task waited for a processor (PSI, "some", 10 s) */
    int32_t memory_percent;   /* the same for memory */
    int32_t run_queue;        /* tasks that run or are ready, per processor */
    weir_time mean_time;      /* weir_guard_info.mean */
    int32_t in_flight;        /* permits out of all guards of the table */
    int32_t rate;             /* requests that enter any of them, per second */
};

#define WEIR_CLASS_NAME 16
struct weir_guard_options {
    int64_t max; /* permits, at most 16384; 0: 1024.  Also the ceiling of an adaptive limit */
    /* Permits that one key (ask.key) can have out; 0: any number.  If set, `max` is 16384 unless it
     * is set too.  An ask without a key is bounded by `max` alone */
    int64_t max_per_key;
    weir_time lease; /* 0: 60 s; at most an hour */
    struct weir_breaker_options breaker;
    struct weir_adaptive_options adaptive;
    struct weir_system_options system;
    /* Under overload refuses the least important (ask.priority), consistently by user (ask.key) */
    bool shed;
    /* Under overload each class gets its share, and what others leave.  Two or more imply `shed` */
    struct weir_class {
        char name[WEIR_CLASS_NAME];
        int32_t weight; /* 1 to 1000 */
    } classes[WEIR_CLASSES];
    int32_t degrade; /* from this degradation on (1 to 9) it refuses everybody; 0: never */
    int32_t raises;  /* degradation is at least this while its breaker is open or host overloaded */
    enum weir_mode mode; /* 0: enforce.  In shadow decision.reason says why it would refuse */
};
/* Joins the guard of that name if it has the same options, with defaults filled in.  WEIR_EXISTS:
 * it has others, and the error names the part; weir_guard_change changes it.  NULL or all zeros:
 * 1024 permits and nothing else, enough to measure.  (Rules want a bound in writing.) */
WEIR_API int weir_guard_create(struct weir_guard **out, struct weir_table *table, const char *name,
                               const struct weir_guard_options *options, struct weir_error *error);
/* Changes the options for all processes.  Permits that are out stay out; a breaker or controller
 * that stays keeps what it has learnt. */
WEIR_API int weir_guard_change(struct weir_guard *guard, const struct weir_guard_options *options,
                               struct weir_error *error);

/* As for limiters; a released guard goes after an hour without use, when no permit is out. */
WEIR_API void weir_guard_release(struct weir_guard *guard);
WEIR_API void weir_guard_drop(struct weir_guard *guard);

/* `word` 0: none.  It may be copied; any thread or process with the guard may return it, once. */
struct weir_permit {
    uint64_t word;
    uint32_t seat;
    weir_time since; /* when it entered */
};
/* Takes ask->cost permits (0 counts as 1) or none; ask->key is the user, for shedding and for
 * `max_per_key`.  Never waits; weir_enter_wait in weir-queue.h does. */
WEIR_API bool weir_enter(struct weir_guard *guard, const struct weir_ask *ask,
                         struct weir_permit *permit, struct weir_decision *decision);
/* The same, and the key may have at most `max` permits out, if `max_per_key` allows that many. */
WEIR_API bool weir_enter_within(struct weir_guard *guard, const struct weir_ask *ask, int64_t max,
                                struct weir_permit *permit, struct weir_decision *decision);
/* Returns the permit: then it is none.  False: it was none, or its lease was over. */
WEIR_API bool weir_exit(struct weir_guard *guard, struct weir_permit *permit,
                        enum weir_outcome outcome, weir_time now);
/* The same for work that took another time than from enter to exit. */
WEIR_API bool weir_exit_after(struct weir_guard *guard, struct weir_permit *permit,
                              enum weir_outcome outcome, weir_time took, weir_time now);
/* Starts the lease again.  False: it was over. */
WEIR_API bool weir_permit_renew(struct weir_guard *guard, struct weir_permit *permit,
                                weir_time now);
/* The same for work that waits for its own client, before it begins or after it has answered: for
 * half a lease the breaker does not take it for work that hangs. */
WEIR_API bool weir_permit_idle(struct weir_guard *guard, struct weir_permit *permit, weir_time now);

enum weir_breaker_state { WEIR_BREAKER_CLOSED, WEIR_BREAKER_OPEN, WEIR_BREAKER_HALF_OPEN };
/* "closed", "open", "half-open" */
WEIR_API const char *weir_breaker_state_name(enum weir_breaker_state state);

/* The breaker's switch, for all processes at once. */
enum weir_force { WEIR_UNFORCED = 0, WEIR_FORCE_OPEN = 1, WEIR_FORCE_CLOSED = 2 };
WEIR_API void weir_guard_force(struct weir_guard *guard, enum weir_force force, weir_time now);

/* The degradation of a table, 0 (none) to 9: guards switch off one after another as it rises.  Set
 * by hand it stays; WEIR_DEGRADATION_AUTO follows the guards' breakers and system protection. */
#define WEIR_DEGRADATION_AUTO (-1)
WEIR_API void weir_degradation_set(struct weir_table *table, int degradation, weir_time now);
WEIR_API int weir_degradation_get(const struct weir_table *table, bool *by_hand); /* or NULL */

enum weir_guard_event_kind {
    WEIR_GUARD_EVENT_BREAKER = 1,   /* from, to: enum weir_breaker_state */
    WEIR_GUARD_EVENT_FORCE = 2,     /* from, to: enum weir_force */
    WEIR_GUARD_EVENT_SHEDDING = 3,  /* to: 1 it has begun to shed, 0 it has stopped */
    WEIR_GUARD_EVENT_SYSTEM = 4,    /* to: 1 the host is overloaded, 0 it has recovered */
    WEIR_GUARD_EVENT_RECLAIMED = 5, /* to: this many expired leases were taken back */
};
struct weir_guard_event {
    uint64_t number; /* from 1, one more for each */
    weir_time at;
    int32_t kind, from, to;
};
struct weir_guard_info {
    char name[64];
    struct weir_guard_options options; /* with defaults filled in */
    int64_t in_flight;
    int64_t limit; /* permits there are now; or, of an adaptive rate, entries per second */
    enum weir_breaker_state breaker;
    enum weir_force force;
    weir_time retry_at;          /* open: when it will be tried again */
    int64_t calls, errors, slow; /* in the breaker's window */
    weir_time p50, p90, p99;     /* of successes in 10 s or `percentile`'s window; 0: not known */
    weir_time mean;              /* of about the last second with results; 0: not known */
    /* Since the guard was made */
    int64_t entered, succeeded, failed, timed_out, dropped, reclaimed;
    int64_t refused_open, refused_busy, refused_limited, refused_shed, refused_degraded;
    int64_t refused_full, refused_late; /* by a queue, or after waiting in one */
    int64_t refused_key_busy;           /* because of `max_per_key` */
    int64_t shadow_refused;
    int32_t admitted_percent;           /* of all asks, while it sheds; else 100 */
    int32_t pressure_percent;           /* the host's overload takes this much from 100 */
    struct weir_guard_event events[32]; /* the latest first; number 0: no more */
};
/* First does the work due at `now`, as enter and exit do, such as taking back expired leases. */
WEIR_API void weir_guard_get(struct weir_guard *guard, weir_time now, struct weir_guard_info *out);
/* Permits that a key has out, under `max_per_key`. */
WEIR_API int64_t weir_guard_key_in_flight(struct weir_guard *guard, struct weir_key key);
/* What the controller has learnt, in one line for people; "": nothing. */
WEIR_API void weir_guard_tell(struct weir_guard *guard, char *out, size_t size);
/* By name; NULL: there is none.  This process counts as a user from then on. */
WEIR_API struct weir_guard *weir_guard_find(struct weir_table *table, const char *name);
/* One after the other, without damaged ones: to look at, not to enter. */
WEIR_API bool weir_guard_next(struct weir_table *table, int64_t *at, struct weir_guard **out);

/* --------------------------------------------- floor 3: rules choose ---- */

/* Rules say which limits apply to which requests: docs/rules.md.  A rule set is read from YAML and
 * never changes.  An engine puts it to work on a table, and can replace it between two requests. */
struct weir_rules;
struct weir_problem {
    int line, column; /* from 1; 0: the whole text */
    char text[244];   /* what is wrong and what would be right: one line */
    char source[160]; /* the line, or the part of it around the column */
    int caret;        /* the column's place in source, from 0; -1: none */
};

struct weir_rules_options {
    const char *name; /* of the text, for problems; NULL: "rules" */
    bool files;       /* lists may name files, relative to the file `name` ... */
    bool near;        /* ... and only below its folder: for untrusted text */
    /* Called with every problem, and with the path of every file before it is read; may be NULL */
    void (*problem)(void *context, const struct weir_problem *problem);
    void (*file)(void *context, const char *path);
    void *context;
};
/* A text with a mistake is refused whole; error->text is the first, as name:line:column: text. */
WEIR_API int weir_rules_parse(struct weir_rules **out, const char *text, size_t len,
                              const struct weir_rules_options *options, struct weir_error *error);
/* From a file, whose lists may name files; options->name is ignored. */
WEIR_API int weir_rules_read(struct weir_rules **out, const char *path,
                             const struct weir_rules_options *options, struct weir_error *error);
WEIR_API void weir_rules_destroy(struct weir_rules *rules);
/* name:line:column: text, the line, and a caret below it; returns the length as snprintf does. */
WEIR_API int weir_problem_print(char *out, size_t size, const char *name,
                                const struct weir_problem *problem);
/* The JSON Schema of a rule file, for editors; returns the length as snprintf does. */
WEIR_API int weir_rules_schema(char *out, size_t size);

struct weir;
struct weir_options {
    struct weir_table *table; /* must outlive the engine; NULL: a private one ... */
    /* ... with room for this many keys; 0: 65536.  It reserves 16 KiB of address space for each,
     * for sliding windows; only used pages take memory */
    int64_t keys;
};
WEIR_API int weir_create(struct weir **out, const struct weir_options *options,
                         struct weir_error *error);
WEIR_API void weir_destroy(struct weir *weir);
WEIR_API struct weir_table *weir_table_of(struct weir *weir);

/* Puts the rules in force for all requests from now on, and destroys the old ones once no request
 * needs them.  On success the engine owns the rules; on failure the caller does, and nothing
 * changes.  Equal limits keep their states; a limit that differs (in the same place of the same
 * rule, with the same algorithm) changes as by weir_limiter_change.  Modes and bans stay, lists
 * changed by weir_list_edit do not.  Each limit, ban and rule keeps a limiter of the table: make
 * room for those to come (weir_table_options.limiters). */
WEIR_API int weir_use(struct weir *weir, struct weir_rules *rules, weir_time now,
                      struct weir_error *error);
/* The same in two parts, for a program that may still fail at something else in between:
 * weir_prepare can fail and changes nothing that is in force; weir_commit cannot fail, and destroys
 * what was prepared.  Until it is committed the rules are the caller's. */
struct weir_prepared;
WEIR_API int weir_prepare(struct weir_prepared **out, struct weir *weir, struct weir_rules *rules,
                          struct weir_error *error);
WEIR_API void weir_commit(struct weir_prepared *prepared, weir_time now);
WEIR_API void weir_prepared_destroy(struct weir_prepared *prepared);

/* What is known about a request: { .name = "ip", .value = "192.0.2.7" }.  The rules choose the
 * names. */
struct weir_attr {
    const char *name, *value;
    size_t name_len, value_len; /* 0: up to the NUL byte */
    uint32_t id;                /* of the name, from weir_attribute; 0: look the name up */
};
/* A number that stands for the name as long as the engine lives, and saves looking it up.  0: there
 * are 255 already, or there is no memory; use the name. */
WEIR_API uint32_t weir_attribute(struct weir *weir, const char *name);
/* The attributes that the rules and lists use. */
WEIR_API bool weir_attribute_next(struct weir *weir, int64_t *at, char name[64]);

/* Its texts are good until weir_destroy. */
struct weir_ruling {
    /* Of the limit that refused, or the tightest; if no limit applies, zeros and `allowed` */
    struct weir_decision decision;
    const char *rule;       /* its rule, or the one that banned the key; NULL: none */
    const char *list;       /* "allow" or "deny" if a list decided; else NULL */
    const char *shadow;     /* a rule in shadow that would have refused; NULL: none */
    const char *guard;      /* weir_check_enter: the guard that refused; NULL: none */
    int64_t count;          /* as that limit is written: `count` ... */
    weir_time window;       /* ... in `window`; a calendar window: its present length */
    weir_time banned_until; /* 0: no ban.  WEIR_BANNED: of an earlier ban; else of a new one */
    uint16_t limit_index;   /* the limit's place in the rule, from 0 */
    uint16_t applied;       /* number of rules that apply, including those in shadow */
    uint8_t mode;           /* enum weir_mode, of all rules: enforce or shadow */
    /* For the backend: 0 free, 1 less than half is left, 2 less than an eighth, 3 refusing */
    uint8_t level;
    bool cut;   /* too much applies: WEIR_TOO_MANY, or rules or guards in shadow were left out */
    bool fleet; /* `remaining` counts units drawn for this host: the fleet may have more */
};
/* Decides a request by all rules that apply, all or nothing.  ask->key is ignored, ask->cost is
 * multiplied by the rules' own.  A request to which no rule applies is allowed.  At most
 * WEIR_ALL_MAX limits are asked: those of enforcing rules, then of rules in shadow, in order.
 * Guards are not asked: weir_check_enter asks them too. */
WEIR_API bool weir_check(struct weir *weir, const struct weir_attr *attrs, size_t n,
                         const struct weir_ask *ask, struct weir_ruling *ruling);

struct weir_request {
    const struct weir_attr *attrs;
    size_t n;
    struct weir_ask ask;
};
/* Decides each on its own, in order.  Returns how many were allowed. */
WEIR_API size_t weir_check_many(struct weir *weir, const struct weir_request *requests, size_t n,
                                struct weir_ruling *rulings);

/* As the two above.  If a request is refused as limited, too big or banned, `key` is the text of
 * its key under ruling->rule; else "". */
#define WEIR_KEY_TEXT 160 /* bytes of a key as people read it, including the NUL */
WEIR_API bool weir_check_key(struct weir *weir, const struct weir_attr *attrs, size_t n,
                             const struct weir_ask *ask, struct weir_ruling *ruling,
                             char key[WEIR_KEY_TEXT]);
WEIR_API size_t weir_check_many_keys(struct weir *weir, const struct weir_request *requests,
                                     size_t n, struct weir_ruling *rulings,
                                     char (*keys)[WEIR_KEY_TEXT]);

/* Like weir_check, and enters the guards of the rules (`guards:`) that apply: all or nothing.
 * User, class and priority come from the attributes that the guard names, else from ask.  It looks
 * at no queue: where requests wait (weir_check_later), ask by that too, or it overtakes them. */
#define WEIR_ENTRY_MAX 8 /* guards on one request; with more it is refused: WEIR_TOO_MANY */
struct weir_entry {
    uint32_t n;
    struct {
        struct weir_guard *guard;
        struct weir_permit permit;
    } entered[WEIR_ENTRY_MAX];
};
WEIR_API bool weir_check_enter(struct weir *weir, const struct weir_attr *attrs, size_t n,
                               const struct weir_ask *ask, struct weir_entry *entry,
                               struct weir_ruling *ruling);
/* False: a lease was over. */
WEIR_API bool weir_check_exit(struct weir *weir, struct weir_entry *entry,
                              enum weir_outcome outcome, weir_time now);
WEIR_API bool weir_check_renew(struct weir *weir, struct weir_entry *entry, weir_time now);

/* The rules' answer to a refusal by this guard (NULL: by none); false: none.  The body is cut at
 * `size` bytes. */
#define WEIR_FALLBACK_MAX 65536
struct weir_fallback {
    int32_t status;
    size_t len;       /* of the whole body, at most WEIR_FALLBACK_MAX */
    const char *type; /* of the body, such as application/json; good until weir_destroy */
};
WEIR_API bool weir_fallback_get(struct weir *weir, const char *guard, struct weir_fallback *out,
                                char *body, size_t size);

#ifdef __cplusplus
}
#endif
#endif
