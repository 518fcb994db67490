/* weir.h -- rate limits in a few nanoseconds, by key, in one process or shared by every process of
 * a host.
 *
 * This header is the manual.  It has three floors; take the lowest one that serves you.
 *
 *   floor 1   you hold the state    weir_plan_create, weir_step
 *   floor 2   a table holds one     weir_table_create, weir_limiter_create, weir_take
 *   floor 3   rules choose          weir_create, weir_rules_read, weir_use, weir_check
 *
 * and beside them guards, which bound work in progress: weir_guard_create, weir_enter, weir_exit.
 *
 * The words, the same everywhere:
 *
 *   limit     what somebody writes: "300 per 60 s"
 *   plan      a limit, checked and compiled; never changes, may be shared by threads
 *   state     what one key has used: a few bytes, and all zeros is a fresh one
 *   table     where the states of many keys live; slot: the place of one
 *   limiter   a plan at work in a table, under a name
 *   ask       key + cost + time + how long the caller can wait
 *   decision  the answer
 *   rule      which limits apply to which requests
 *   ruling    the decision of all rules that apply to a request, and which of them made it
 *   guard     bounds work in progress: enter ... exit
 *   permit    what enter gives and exit takes back
 *
 * Four promises:
 *
 *   1. Never too much.    The bound of every algorithm is in docs/algorithms.md, and a test proves
 *                         it.
 *   2. Never too little.  A fresh key gets its whole burst; what is free is granted at once.
 *   3. "No" changes nothing, and says until when.  decision.retry is exact, or WEIR_NEVER.
 *   4. Deciding never fails.  Only the functions that return int can.
 *
 * Setup can fail: those functions return 0 or a negative weir_code, say why in a struct weir_error
 * (which may be NULL), and leave *out untouched.  Deciding cannot: weir_take and its like return
 * whether it was granted.  A bug in the caller (a NULL where none may be) asserts.
 *
 * Threads: everything may be called from many threads at once, except create and destroy of one
 * object against its own use. Processes: after fork (while no other thread is in here) a table with
 * a path goes on being shared; a private one becomes two.
 *
 * An evicted key is a fresh key: what the promises say holds while the table has room for the keys
 * that are not idle.  Watch weir_table_stats: evicted_early should stay 0.
 */
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

#define WEIR_VERSION        "0.1.0"
#define WEIR_VERSION_NUMBER 100 /* major * 10000 + minor * 100 + patch */

WEIR_API const char *weir_version(void); /* of the library that is running */

/* ---------------------------------------------------------------- time ---- */

/* Nanoseconds: a point or a span.  Points may lie on any axis that begins at or after 0 (a point
 * before 0 counts as 0); all asks on one table must use the same one. weir_table_now() gives a good
 * one.  An ask that is late by up to a second (threads overtake each other) is treated as of the
 * latest moment the key has seen; a clock that steps back further is followed: the step itself
 * gives nothing away and locks no key out; time that it then goes through again counts again. */
typedef int64_t weir_time;

#define WEIR_NEVER   INT64_MAX /* decision.retry: this ask can never be granted */
#define WEIR_FOREVER INT64_MAX /* ask.wait_max: the caller waits as long as it takes */

#define WEIR_MICROSECOND ((weir_time)1000)
#define WEIR_MILLISECOND ((weir_time)1000000)
#define WEIR_SECOND      ((weir_time)1000000000)

/* --------------------------------------------------------------- errors ---- */

enum weir_code {
    WEIR_OK = 0,
    WEIR_INVALID = -1,   /* what was asked for makes no sense; the text says what would */
    WEIR_NO_MEMORY = -2, /* malloc or mmap refused, or a region is too small */
    WEIR_SYSTEM = -3,    /* a system call failed; the text names it */
    WEIR_CORRUPT = -4,   /* a table's bytes are not what this version wrote */
    WEIR_EXISTS = -5,    /* a limiter of that name is there already, with another limit */
};

struct weir_error {
    int column;     /* 1 is the first character of a parsed text; 0: does not apply */
    char text[244]; /* one line, no newline */
};

/* --------------------------------------------------------------- limits ---- */

/* A limit as a person means it.  Zero in a member means its default, so name only what you need:
 *
 *     struct weir_limit l = { .count = 300, .period = 60 * WEIR_SECOND };
 */
struct weir_limit {
    const char *algorithm; /* a name from weir_algorithms(); NULL: "token-bucket" */
    int64_t count;         /* this many ... */
    weir_time period;      /* ... in this time, in ns: 60 * WEIR_SECOND */
    int64_t burst; /* the most that can pass at one instant after a rest; 0: count (leaky-bucket
                      with a queue: 1) */
    int64_t queue; /* leaky-bucket: this many units may wait their turn; 0: a meter; WEIR_NO_QUEUE:
                      a shaper where none may wait */
    int32_t buckets;  /* sliding-window: parts of the window; 0: 10 */
    bool align_first; /* fixed-window: a window starts with the first ask, not at a multiple of the
                         period */
    bool loose; /* sliding-window: the partly expired bucket is forgotten (Sentinel's rule: up to
                   twice the limit in a period) */
    weir_time warmup; /* warm-up: time from cold to warm; 0: the period */
    int32_t cold;     /* warm-up: how many times slower a cold key is; 0: 3 */
    int32_t calendar; /* calendar: WEIR_DAY, WEIR_WEEK (from Monday) or WEIR_MONTH; the period is 0
                         then */
    char zone[40]; /* calendar: whose days, a name of the time zone database such as Europe/Berlin;
                      "": UTC */
};

enum weir_calendar { WEIR_NO_CALENDAR = 0, WEIR_DAY = 1, WEIR_WEEK = 2, WEIR_MONTH = 3 };

#define WEIR_NO_QUEUE ((int64_t)-1)

/* The short syntax, with an algorithm's name in front if you like:
 *
 *     COUNT[r]/PERIOD [burst N] [queue N] [buckets=N] [align=first] [edge=loose] [warmup=TIME]
 *     [cold=N] [zone=NAME] 300/60    100/5s    10r/s    6r/m    1000/h burst 50    gcra 5/1m burst
 *     3    10000/month zone=Europe/Berlin
 *
 * PERIOD is a time ("5s", "1m", "500ms"), a bare number of seconds ("60"), a bare unit ("s", "m",
 * "h", "d", "w"), or a calendar window: "day", "week", "month".  On an error, error->column points
 * at the character.  A member of *out that the text does not name is set to 0. */
WEIR_API int weir_limit_parse(struct weir_limit *out, const char *text, struct weir_error *error);

/* Writes the limit so that weir_limit_parse gives the same one back; returns the length as snprintf
 * does. */
WEIR_API int weir_limit_print(char *out, size_t size, const struct weir_limit *limit);

/* A time as people write it: "250ms", "1h", "90s"; a bare number is seconds. */
WEIR_API int weir_time_parse(weir_time *out, const char *text, struct weir_error *error);
WEIR_API int weir_time_print(char *out, size_t size, weir_time time);

/* The algorithms' names, ended by NULL; and one line on what each is for. */
WEIR_API const char *const *weir_algorithms(void);
WEIR_API const char *weir_algorithm_summary(const char *name);

/* -------------------------------------------------- asks and decisions ---- */

struct weir_key {
    const void *bytes;
    size_t len;
};

#define WEIR_PRIORITY_MIN (-8)
#define WEIR_PRIORITY_MAX 7

struct weir_ask {
    struct weir_key key; /* floor 1 does not look at it */
    int64_t cost;        /* units; 0 asks without taking */
    weir_time wait_max; /* how long the caller can wait; if the wait is no longer, it is granted and
                           decision.wait says how long */
    weir_time now;      /* the time of the ask */
    int8_t
        priority; /* guards: WEIR_PRIORITY_MIN to _MAX; the highest goes first, and is shed last */
    uint8_t user_class; /* guards: which of the guard's classes, 0 to 7 */
};

enum weir_reason {
    WEIR_GRANTED = 0,
    WEIR_LIMITED = 1, /* not now; decision.retry says when */
    WEIR_TOO_BIG = 2, /* more than the limit can ever pass at once */
    WEIR_BAD_ASK = 3, /* a negative cost: a mistake, refused for ever; use weir_give to give back */
    WEIR_BANNED = 4, /* weir_check: the key was refused too often; decision.retry says until when */
    WEIR_DENIED = 5, /* weir_check: an attribute is on the deny list */
    /* of guards */
    WEIR_OPEN = 6, /* the breaker is open; decision.retry says until it is tried again */
    WEIR_BUSY = 7, /* all permits are out; decision.retry is an estimate */
    WEIR_SHED = 8, /* too much traffic, or the host is overloaded, and others are more important;
                      decision.retry is an estimate */
    WEIR_DEGRADED = 9,   /* switched off by the degradation */
    WEIR_FULL = 10,      /* the queue is full */
    WEIR_LATE = 11,      /* waited in the queue for too long, or would have to */
    WEIR_CANCELLED = 12, /* taken out of the queue */
};

/* "granted", "limited", "too-big", "bad-ask", "banned", "denied", ... */
WEIR_API const char *weir_reason_name(enum weir_reason reason);

struct weir_decision {
    bool allowed;
    uint8_t reason; /* enum weir_reason */
    uint16_t item;  /* weir_take_all: which item refused, or is the tightest when allowed */
    int64_t limit; /* the most that can pass at one instant after a rest (leaky-bucket with a queue:
                      that and what may wait) */
    int64_t remaining; /* what could be taken right now, after this ask */
    weir_time wait;    /* granted: use it after this long (0 unless wait_max allowed more) */
    weir_time retry; /* refused: the same ask passes after exactly this long if nobody else asks; or
                        WEIR_NEVER */
    weir_time reset; /* until the key is as good as fresh */
};

/* ------------------------------------------- floor 1: you hold the state ---- */

struct weir_plan;

WEIR_API int weir_plan_create(struct weir_plan **out, const struct weir_limit *limit,
                              struct weir_error *error);
WEIR_API void weir_plan_destroy(struct weir_plan *plan);

/* Bytes of one key's state: 16 for all but sliding-window and sliding-log.  Align it to 8, set it
 * to zeros, and it is fresh. */
WEIR_API size_t weir_plan_state_size(const struct weir_plan *plan);

/* The step: reads no clock, takes no lock, allocates nothing.  One thread at a time per state. */
WEIR_API bool weir_step(const struct weir_plan *plan, void *state, const struct weir_ask *ask,
                        struct weir_decision *decision);

/* The same answer, and the state untouched. */
WEIR_API bool weir_step_peek(const struct weir_plan *plan, const void *state,
                             const struct weir_ask *ask, struct weir_decision *decision);

/* Gives back ask->cost units that were taken before; never lifts a key above full. */
WEIR_API void weir_step_give(const struct weir_plan *plan, void *state, const struct weir_ask *ask);

/* From this moment on the state equals a fresh one. */
WEIR_API weir_time weir_step_idle_at(const struct weir_plan *plan, const void *state);

/* The limit changes at `now`: writes to `to` (of the new plan's size, not overlapping) what `from`
 * has used. The algorithm stays. */
WEIR_API void weir_step_change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                               const void *from, void *to, weir_time now);

/* ------------------------------------- floor 2: a table holds the states ---- */

/* A region of fixed size: no malloc, no rehash, and (but for sliding-window and sliding-log) no
 * lock on the way of a decision.  Private to the process, or shared by all processes that open the
 * same path.  When it is full the idlest key goes: for nothing if it had nothing left to forget,
 * counted in stats.evicted_early if it had. */
struct weir_table;

struct weir_table_options {
    const char *path; /* a file, created if it is not there; in /dev/shm for memory only.  NULL:
                         private to this process */
    int64_t keys; /* room for this many keys; 0: 65536.  Costs 39 bytes a key, or 19.5 if narrow */
    int64_t slab; /* bytes for sliding-window and sliding-log states: 4/3 of a state's size for each
                     key of each such limiter; 0: 256 a key, enough for one sliding window and
                     changes of its limit.  Only what is used takes memory */
    int64_t limiters; /* room for this many limiters, at most 65536; 0: 256.  Only those that are
                         there take memory */
    int64_t bans;     /* room for this many bans, at most 1048576; 0: 4096 */
    int64_t guards;   /* room for this many guards, at most 4096; 0: 64.  Only those that are there
                         take memory */
    bool narrow; /* 16-byte slots: half the memory, for gcra, token-bucket and leaky-bucket without
                    a queue, at rates whose period/count is a whole number of ns; nobody waits
                    longer than a minute there, and a change of the limit keeps the time that a key
                    owes (docs/shm.md) */
    unsigned mode; /* permissions of a new file, whatever the umask; 0: 0600 */
};

/* Creates a table, or, if the path has one already, attaches to it (its own sizes stay). */
WEIR_API int weir_table_create(struct weir_table **out, const struct weir_table_options *options,
                               struct weir_error *error);

/* Attaches to one that another process made. Checks the format; refuses with a reason what it does
 * not understand. */
WEIR_API int weir_table_attach(struct weir_table **out, const char *path, struct weir_error *error);

/* Leaves the table.  The file stays.  The table's limiters end with it. */
WEIR_API void weir_table_destroy(struct weir_table *table);

/* The time on the table's own axis: nanoseconds since 1970 when the host booted or the table was
 * made, and from then on by a clock that never steps. The same in every process that shares the
 * table; goes on where it was after a reboot. */
WEIR_API weir_time weir_table_now(const struct weir_table *table);

struct weir_table_stats {
    int64_t slots;       /* places for keys */
    int64_t keys;        /* places in use, idle keys among them */
    int64_t large_slots; /* the same for sliding-window and sliding-log */
    int64_t large_keys;
    int64_t live;  /* of these, keys that are not as good as fresh; -1 unless asked for */
    int64_t bytes; /* of the whole region */
    int64_t limiters, guards;
    int64_t evicted_idle;  /* keys that made room and had nothing to forget */
    int64_t evicted_early; /* keys that made room before their time: the table is too small */
    int64_t recovered; /* decisions that a killed process left half done, and another put right */
    int64_t bans;      /* in force; -1 unless asked for */
    int64_t bans_lost; /* bans that made room before their end: the table is made for too few */
    bool narrow;
};

/* Counting `live` and `bans` reads every slot and every ban: pass now = -1 to leave it out. */
WEIR_API void weir_table_stats(const struct weir_table *table, weir_time now,
                               struct weir_table_stats *out);

/* A limit at work in a table.  Processes that share the table and use the same name share the
 * states. */
struct weir_limiter;

/* Joins the limiter of that name if it has the same limit; WEIR_EXISTS if it has another (see
 * weir_limiter_change). `keys`, for sliding-window and sliding-log only: room for this many keys in
 * the slab; 0: as many as the table is made for.  A name has 1 to 63 bytes; a table has as many
 * limiters as it was made for, and they are never removed. */
WEIR_API int weir_limiter_create(struct weir_limiter **out, struct weir_table *table,
                                 const char *name, const struct weir_limit *limit, int64_t keys,
                                 struct weir_error *error);
WEIR_API void weir_limiter_destroy(
    struct weir_limiter
        *limiter); /* creates of one name in one process share one; it ends with the table */

/* The limit changes for all processes at `now`; every key keeps what it has used.  The algorithm
 * must stay the same. */
WEIR_API int weir_limiter_change(struct weir_limiter *limiter, const struct weir_limit *limit,
                                 weir_time now, struct weir_error *error);

/* The i-th limiter of a table, for listings; false when there is none.  The texts are copied; the
 * limit of one whose record makes no sense is "damaged". */
struct weir_limiter_info {
    char name[64];
    char limit[128];
    int64_t changes; /* of its limit, since it was made */
};
WEIR_API bool weir_table_limiter(const struct weir_table *table, int64_t i,
                                 struct weir_limiter_info *out);

/* Takes ask->cost units from the key, or refuses: true if granted.
 *     if (!weir_take(api, &(struct weir_ask){ .key = user, .cost = 1, .now = now }, &d)) return
 *     reject(429, d.retry);
 * With wait_max > 0 a grant may lie in the future: use it decision.wait later. */
WEIR_API bool weir_take(struct weir_limiter *limiter, const struct weir_ask *ask,
                        struct weir_decision *decision);

/* As take, but nothing is consumed. */
WEIR_API bool weir_peek(struct weir_limiter *limiter, const struct weir_ask *ask,
                        struct weir_decision *decision);

/* Gives back ask->cost units that were taken just before: what time has given back already is not
 * there to give. */
WEIR_API void weir_give(struct weir_limiter *limiter, const struct weir_ask *ask);

/* Many asks on any limiters, or several limits on one ask. */
struct weir_item {
    struct weir_limiter *limiter;
    struct weir_ask ask;
};

/* Decides n items, each for itself, hiding the memory's latency; those on one key in their order.
 * Returns how many were granted. */
WEIR_API size_t weir_take_many(const struct weir_item *items, size_t n,
                               struct weir_decision *decisions);

/* All or nothing: every item is taken, or none is, whatever other threads and processes do
 * meanwhile.  When refused, decision.item names the first that refused and decision.retry is the
 * longest retry of all; when allowed, decision.item is the tightest (least remaining) and
 * decision.wait the longest wait.  limit and remaining are the named item's, reset the longest.
 * Items on one key of one limiter count as one ask of their sum, with the shortest wait_max and
 * the latest now.  The items must share one table, and there are at most WEIR_ALL_MAX of them; none
 * at all are granted. */
#define WEIR_ALL_MAX 64
WEIR_API bool weir_take_all(const struct weir_item *items, size_t n,
                            struct weir_decision *decision);

/* Reserve an estimate now, settle with the true cost when it is known.  A reservation that nobody
 * settles within its lifetime, counted from its turn, expires: the estimate stands as what was
 * used, and nothing is left to clean up. */
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

/* Gives back what was not used, as far as time has not given it back already, or charges what was
 * used beyond the estimate (work that is done is charged even if the limit is spent: the key then
 * owes). False, and nothing happens, if it was settled before or has expired. */
WEIR_API bool weir_settle(struct weir_reservation *reservation, int64_t true_cost, weir_time now);

/* A clock that can be injected, so that tests jump instead of sleeping. */
struct weir_clock {
    weir_time (*now)(void *context);
    void (*sleep)(void *context, weir_time span);
    void *context;
};

/* The table's clock and a real sleep. */
WEIR_API struct weir_clock weir_table_clock(struct weir_table *table);

/* Takes, and sleeps until it may be used: at most ask->wait_max.  False, at once, if that is not
 * enough.  ask->now is ignored: the clock is asked. */
WEIR_API bool weir_wait(struct weir_limiter *limiter, const struct weir_ask *ask,
                        const struct weir_clock *clock, struct weir_decision *decision);

/* The switch of a rule, of all rules, of a guard. */
enum weir_mode { WEIR_AS_WRITTEN = 0, WEIR_ENFORCE = 1, WEIR_SHADOW = 2, WEIR_OFF = 3 };

/* "as-written", "enforce", "shadow", "off" */
WEIR_API const char *weir_mode_name(enum weir_mode mode);

/* ------------------------------------------- guards: work in progress ---- */

/* A guard stands before something that can be overrun: a service, a dependency, a pool of workers.
 * Work enters, is done, and exits:
 *
 *     struct weir_permit permit;
 *     if (!weir_enter(search, &(struct weir_ask){ .cost = 1, .now = now }, &permit, &d))
 *         return fall_back(d.reason);
 *     int code = do_the_work();
 *     weir_exit(search, &permit, code == 0 ? WEIR_SUCCEEDED : WEIR_FAILED, weir_table_now(table));
 *
 * Enter asks, in this order: the degradation, the breaker, shedding (of the least
 * important first), an adaptive rate if it has one (WEIR_LIMITED), the number of permits, fixed or
 * found by itself.  "No" changes nothing anywhere.  Exit tells what became of the work, and only
 * from that does a guard learn.
 *
 * A permit is a lease: one that is not given back within the guard's `lease` is taken back, and one
 * of a process that has died (on the same host, in the same pid namespace) within a second, if
 * anybody asks.  An exit that comes later than that changes nothing.
 *
 * Guards live in a table, under a name: processes that share the table share the guard, its permits
 * and what it has learnt. */
struct weir_guard;

#define WEIR_CLASSES    8 /* of users, at most */
#define WEIR_CLASS_NAME 16

/* Errors of all kinds count for the breaker, and how long they took teaches nothing; a time-out
 * counts as slow besides.  Time-outs and drops tell an adaptive limit that it is too high. */
enum weir_outcome {
    WEIR_SUCCEEDED = 0,
    WEIR_FAILED = 1,
    WEIR_TIMED_OUT = 2, /* no answer in time */
    WEIR_DROPPED = 3,   /* refused further on, for want of capacity */
    WEIR_IGNORED = 4,   /* the work was never begun, or says nothing: as if it had not entered, but
                           for `entered` in the figures */
};

/* "ok", "error", "timeout", "dropped", "ignored" */
WEIR_API const char *weir_outcome_name(enum weir_outcome outcome);

/* There is a breaker if one of `errors`, `error_percent` and `slow` is set; with several, each of
 * them opens it. It opens when, of the calls in the window, at least `min_calls` of them, the share
 * of errors is error_percent or more, of slow calls slow_percent or more, or there are `errors`
 * errors or more.  A call is slow if it takes longer than `slow`.  From open_for on after it has
 * opened, `probes` calls are let through (half-open); when what they came to is certain it closes,
 * or opens again for longer. */
struct weir_breaker_options {
    int32_t error_percent;  /* 1 to 100 */
    int32_t errors;         /* a number of them */
    weir_time slow;         /* longer than this is slow */
    int32_t slow_percent;   /* 0: 50 */
    weir_time window;       /* the calls of the last so long, in steps of a 16th ... */
    int32_t calls;          /* ... or the last so many calls, at most 1024; neither: 10 s */
    int32_t min_calls;      /* 0: 20; never more than `calls` */
    weir_time open_for;     /* 0: 5 s; each time that probes fail twice as long ... */
    weir_time open_max;     /* ... up to this; 0: 12 times open_for; as open_for: always the same */
    int32_t jitter_percent; /* open times vary by so much, up and down; 0: 10; -1: not at all */
    int32_t probes;         /* 0: 3 */
    bool above;             /* opens only above the thresholds, not at them */
};

/* A limit that finds itself.  controller is a name from weir_controllers(); NULL: no adaptive
 * limit. */
struct weir_adaptive_options {
    const char *controller;
    int64_t initial, min, max; /* permits (or per second); 0: the controller's own */
    weir_time target;   /* percentile: what the time must not exceed (needed); weir: never admit so
                           many that it does; others: not used */
    int32_t percentile; /* of the target, 1 to 99, as in 90 or 99; 0: 99.  percentile, weir */
    weir_time window; /* percentile: over the last so long; 0: 10 s.  Others: between two looks; 0:
                         the controller's own */
    bool rate;        /* percentile: bounds how many enter in a second, not how many are at work */
};

#define WEIR_ADAPTIVE "weir" /* Weir's own controller: nothing needs to be chosen */

WEIR_API const char *const *weir_controllers(void);             /* their names, ended by NULL */
WEIR_API const char *weir_controller_summary(const char *name); /* one line on what each is for */

/* When the host is overloaded a guard sheds, the least important first.  All zeros: it does not
 * look. */
struct weir_system_options {
    int32_t cpu_percent; /* of what this process may use: its cgroup's quota, or all processors */
    int32_t pressure_percent; /* of the time somebody waits for a processor (PSI, "some", 10 s) */
    int32_t memory_percent;   /* the same for memory */
    int32_t run_queue;        /* tasks that are running or ready, per processor */
    weir_time mean_time;      /* of the guard's work: see weir_guard_info.mean */
};

struct weir_guard_options {
    int64_t max; /* permits, at most 16384; 0: 1024.  The most that an adaptive limit can come to */
    weir_time lease; /* 0: 60 s; at most an hour */
    struct weir_breaker_options breaker;
    struct weir_adaptive_options adaptive;
    struct weir_system_options system;
    bool shed; /* when there is too much, refuse the least important (ask.priority), the same users
                  (ask.key) consistently, by classes */
    /* Of users: when there is too much each class gets its part, and what others leave.  Two or
     * more switch shedding on. */
    struct weir_class {
        char name[WEIR_CLASS_NAME];
        int32_t weight; /* 1 to 1000 */
    } classes[WEIR_CLASSES];
    int32_t degrade; /* from this degradation on (1 to 9) it refuses everybody; 0: never */
    int32_t raises;  /* while its breaker is not closed or its host overloaded, degradation is at
                        least this; 0: a breaker does not matter */
    enum weir_mode mode; /* enforce; shadow: decide and count, but let through (decision.reason says
                            why not); off: not even that */
};

/* Joins the guard of that name if it has the same options, defaults filled in (NULL: all of them);
 * WEIR_EXISTS if it has others, and the error names the part that differs (see
 * weir_guard_change). */
WEIR_API int weir_guard_create(struct weir_guard **out, struct weir_table *table, const char *name,
                               const struct weir_guard_options *options, struct weir_error *error);
WEIR_API void weir_guard_destroy(struct weir_guard *guard); /* creates of one name in one process
                                                               share one; it ends with the table */

/* The options change for all processes.  Permits that are out stay out; what the breaker and the
 * controller have learnt is kept if they are the same ones.  Each change takes 640 bytes in each
 * process until it leaves the table. */
WEIR_API int weir_guard_change(struct weir_guard *guard, const struct weir_guard_options *options,
                               struct weir_error *error);

/* What enter gives.  All zeros: none.  It may be copied, and be given back by another thread or
 * process that has the guard. */
struct weir_permit {
    uint64_t word;   /* what its seat says */
    uint32_t seat;   /* which */
    weir_time since; /* when it entered */
};

/* ask->cost permits (0 counts as 1) or none.  ask->key is the user, for shedding. Never waits: see
 * weir_enter_wait. */
WEIR_API bool weir_enter(struct weir_guard *guard, const struct weir_ask *ask,
                         struct weir_permit *permit, struct weir_decision *decision);

/* Gives the permit back, and sets it to zeros.  False: it was none, or was taken back after its
 * lease. */
WEIR_API bool weir_exit(struct weir_guard *guard, struct weir_permit *permit,
                        enum weir_outcome outcome, weir_time now);
/* The same, of work that took another time than from enter to exit. */
WEIR_API bool weir_exit_after(struct weir_guard *guard, struct weir_permit *permit,
                              enum weir_outcome outcome, weir_time took, weir_time now);

/* The lease begins anew.  False: it is over. */
WEIR_API bool weir_permit_renew(struct weir_guard *guard, struct weir_permit *permit,
                                weir_time now);

enum weir_breaker_state {
    WEIR_BREAKER_CLOSED = 0,
    WEIR_BREAKER_OPEN = 1,
    WEIR_BREAKER_HALF_OPEN = 2
};
/* "closed", "open", "half-open" */
WEIR_API const char *weir_breaker_state_name(enum weir_breaker_state state);

/* By hand, for all processes at once. */
enum weir_force { WEIR_UNFORCED = 0, WEIR_FORCE_OPEN = 1, WEIR_FORCE_CLOSED = 2 };
WEIR_API void weir_guard_force(struct weir_guard *guard, enum weir_force force, weir_time now);

/* The degradation of everything on a table, 0 (none) to 9: the least important is switched
 * off first.  Set by hand it stays; WEIR_DEGRADATION_AUTO: it follows the guards'
 * system protection and breakers. */
#define WEIR_DEGRADATION_AUTO (-1)
WEIR_API void weir_degradation_set(struct weir_table *table, int degradation, weir_time now);
WEIR_API int weir_degradation_get(const struct weir_table *table,
                                  bool *by_hand); /* by_hand may be NULL */

/* What became of a guard; the last 32 are kept in the table. */
enum weir_guard_event_kind {
    WEIR_GUARD_EVENT_BREAKER = 1,  /* from, to: enum weir_breaker_state */
    WEIR_GUARD_EVENT_FORCE = 2,    /* from, to: enum weir_force */
    WEIR_GUARD_EVENT_SHEDDING = 3, /* to: 1 it has begun to shed, 0 it has ended */
    WEIR_GUARD_EVENT_SYSTEM = 4,   /* to: 1 the host is overloaded, 0 it is well again */
    WEIR_GUARD_EVENT_RECLAIMED =
        5, /* to: of so many that died or were too late the permits were taken back */
};
struct weir_guard_event {
    uint64_t number; /* from 1, one more for each */
    weir_time at;
    int32_t kind, from, to;
};

struct weir_guard_info {
    char name[64];
    struct weir_guard_options
        options; /* defaults filled in; adaptive.controller is a name that stays */
    int64_t in_flight,
        limit; /* limit: permits there are now; or, of an adaptive rate, so many per second */
    enum weir_breaker_state breaker;
    enum weir_force force;
    weir_time retry_at;          /* open: when it will be tried again */
    int64_t calls, errors, slow; /* in the breaker's window */
    weir_time p50, p90, p99;     /* of what has succeeded in the last 10 s, or in the window of
                                    `percentile`; 0: not known */
    weir_time mean; /* of the last look that had results, a second or so; 0: not known */
    int64_t entered, succeeded, failed, timed_out, dropped,
        reclaimed; /* since the guard was made */
    int64_t refused_open, refused_busy, refused_limited, refused_shed, refused_degraded,
        shadow_refused;
    int64_t refused_full, refused_late; /* by a queue, or after waiting in one */
    int32_t admitted_percent;           /* of what comes, while it is shedding; else 100 */
    int32_t pressure_percent; /* what the host's overload lets through is 100 minus this */
    struct weir_guard_event changes[32]; /* the latest first; number 0: no more */
};
/* Also does what is due at `now`, as enter and exit do: permits whose lease is over then are taken
 * back. */
WEIR_API void weir_guard_get(struct weir_guard *guard, weir_time now, struct weir_guard_info *out);
/* The i-th guard of a table, in the order they were made; NULL when there is none, or its record
 * makes no sense. */
WEIR_API struct weir_guard *weir_table_guard(struct weir_table *table, int64_t i);

/* Runs the work under the guard, in this thread; or the fallback, if it is refused or
 * (fallback_on_error) its outcome is neither WEIR_SUCCEEDED nor WEIR_IGNORED.  True: the work was
 * done, whatever became of it.  clock: NULL: the table's; ask->now is ignored. */
struct weir_call {
    enum weir_outcome (*work)(void *context);
    void (*fallback)(void *context, const struct weir_decision *decision); /* may be NULL */
    void *context;
    bool fallback_on_error;
};
WEIR_API bool weir_call(struct weir_guard *guard, const struct weir_ask *ask,
                        const struct weir_clock *clock, const struct weir_call *call,
                        struct weir_decision *decision);

/* --------------------------------------------------- queues and pools ---- */

/* Those who wait for their turn, in one process.  A bounded queue of waiters that the caller
 * owns. */
struct weir_queue;

enum weir_order {
    WEIR_FIFO = 0,
    WEIR_PRIORITY = 1, /* the highest priority first; among equals the first who came */
    WEIR_WEIGHTED = 2, /* classes in turn by their weights; in a class the first who came */
};

/* A queue is overloaded while, for a whole `interval`, it was never empty and whenever a turn was
 * given the first in line had waited for longer than `target`.  Then who has waited for longer than
 * twice the target is dropped when its turn comes, but for the last one. */
struct weir_queue_options {
    int64_t max; /* who may wait, at most 1048576; 0: 1024 */
    enum weir_order order;
    int32_t weights[WEIR_CLASSES]; /* weighted: of each class, 1 to 1000; 0: 1 */
    bool newest_first_when_late; /* while the queue is overloaded the newest goes first: the oldest
                                    have given up anyway */
    weir_time target;            /* 0: it is never overloaded */
    weir_time interval;          /* 0: 100 ms */
};

/* Set it to zeros before its first use. */
struct weir_waiter {
    /* the caller's */
    weir_time deadline; /* a point: its turn may come then, but no later; 0: none */
    int8_t priority;    /* -8 to 7, the highest first */
    uint8_t user_class; /* 0 to 7 */
    void (*turn)(struct weir_waiter *waiter,
                 enum weir_reason reason); /* guards and pools: its turn has come (WEIR_GRANTED), or
                                              it has left */
    void *context;
    /* the queue's */
    weir_time since;
    struct weir_waiter *next, *previous;
    struct weir_queue *queue; /* NULL: it does not wait */
    uint32_t place;           /* among those with a deadline, from 1 */
    uint8_t reason;           /* enum weir_reason: why it does not wait any more */
    /* weir_enter_later's */
    struct weir_ask ask;
    struct weir_permit *permit;
};

WEIR_API int weir_queue_create(struct weir_queue **out, const struct weir_queue_options *options,
                               struct weir_error *error);
/* must be empty, or its waiters are forgotten */
WEIR_API void weir_queue_destroy(struct weir_queue *queue);
/* False: there is no room (WEIR_FULL), or at the present pace its turn would come after its
 * deadline (WEIR_LATE); decision->retry is an estimate.  True: it waits, and decision->wait is an
 * estimate of how long. */
WEIR_API bool weir_queue_put(struct weir_queue *queue, struct weir_waiter *waiter, weir_time now,
                             struct weir_decision *decision);
/* Who is next; NULL: nobody.  Those who are too late by now leave: they are linked by `next` in
 * *left. */
WEIR_API struct weir_waiter *weir_queue_next(struct weir_queue *queue, weir_time now,
                                             struct weir_waiter **left);
/* Those whose deadline is over, linked by `next`: for when nobody asks who is next. */
WEIR_API struct weir_waiter *weir_queue_late(struct weir_queue *queue, weir_time now);
WEIR_API bool weir_queue_cancel(struct weir_queue *queue,
                                struct weir_waiter *waiter); /* false: it did not wait (any more) */
WEIR_API weir_time weir_queue_estimate(struct weir_queue *queue, int8_t priority,
                                       uint8_t user_class, weir_time now); /* of a wait from now */
WEIR_API int64_t weir_queue_length(const struct weir_queue *queue);

/* Enter, or wait for it in the queue: the thread sleeps, for at most ask->wait_max; with a wait_max
 * of 0 it is refused at once.  Nobody overtakes: who comes while others wait that are before it
 * waits, too.  A permit that comes free goes to who is next; one that comes free in another
 * process, or by weir_exit, is found within 5 ms.  Only WEIR_BUSY is waited for: every other
 * refusal is one at once, and sends away who waits when its turn comes.  clock: NULL: the table's.
 * ask->now is ignored: the clock is asked.  Everybody in a process who waits for a guard must use
 * one queue, and the queue is for that guard only. */
WEIR_API bool weir_enter_wait(struct weir_guard *guard, struct weir_queue *queue,
                              const struct weir_ask *ask, const struct weir_clock *clock,
                              struct weir_permit *permit, struct weir_decision *decision);

/* The same for event loops, which must not wait.  True: it has entered (decision->allowed), or it
 * waits (decision->reason is WEIR_BUSY, and decision->wait an estimate) and waiter->turn will be
 * called, from weir_enter_poll, weir_exit_next or weir_enter_wait in whatever thread calls those,
 * with the permit filled in if the reason is WEIR_GRANTED.  Until then waiter, permit and the bytes
 * of ask->key must stay; after weir_queue_cancel it is not called.  The waiter's deadline, priority
 * and class are set from the ask. */
WEIR_API bool weir_enter_later(struct weir_guard *guard, struct weir_queue *queue,
                               const struct weir_ask *ask, struct weir_waiter *waiter,
                               struct weir_permit *permit, struct weir_decision *decision);
/* As weir_exit, and lets in who is next. */
WEIR_API bool weir_exit_next(struct weir_guard *guard, struct weir_queue *queue,
                             struct weir_permit *permit, enum weir_outcome outcome, weir_time now);
/* Lets in whoever can be (permits may come free in another process), and sends away who is too
 * late; call it now and then. Returns how many still wait. */
WEIR_API int64_t weir_enter_poll(struct weir_guard *guard, struct weir_queue *queue, weir_time now);

/* A bulkhead with threads of its own: at most max_threads work, at most max_queue tasks wait; a
 * thread is started before anything waits (as Tomcat's maxThreads and acceptCount).  A task runs or
 * is refused, never both and never neither. */
struct weir_pool;

struct weir_pool_options {
    const char *name;    /* of its threads; NULL: "weir" */
    int32_t max_threads; /* 0: 200 */
    int32_t min_threads; /* stay when idle; 0: 10, but no more than max_threads */
    weir_time idle; /* threads beyond min_threads end when idle for so long; 0: 60 s.  With a clock:
                       at the next submit or get */
    int64_t max_queue;               /* 0: 100; WEIR_NO_QUEUE: nobody waits */
    struct weir_queue_options queue; /* its order and target; max is max_queue */
    const struct weir_clock *clock;  /* only `now` is asked; NULL: the host's */
};

struct weir_task {
    void (*run)(struct weir_task *task);
    /* It has waited in vain: it is too late, or the pool ends (WEIR_CANCELLED).  In a thread of the
     * pool, or of who submits, gets or destroys. */
    void (*refused)(struct weir_task *task, enum weir_reason reason);
    struct weir_waiter waiter; /* deadline, priority, class: the caller's; the rest the pool's */
};

WEIR_API int weir_pool_create(struct weir_pool **out, const struct weir_pool_options *options,
                              struct weir_error *error);
/* False: it is refused at once, and neither function is called.  decision->reason: WEIR_FULL;
 * WEIR_LATE; WEIR_BUSY, there is no thread and none can be started; WEIR_CANCELLED, the pool
 * ends. */
WEIR_API bool weir_pool_submit(struct weir_pool *pool, struct weir_task *task,
                               struct weir_decision *decision);
/* True: it does not wait any more, and neither function is called.  False: it runs, has run, or was
 * refused. */
WEIR_API bool weir_pool_cancel(struct weir_pool *pool, struct weir_task *task);
/* No new tasks; those that wait are run (drain) or refused; returns when all threads have ended. */
WEIR_API void weir_pool_destroy(struct weir_pool *pool, bool drain);
struct weir_pool_info {
    int32_t threads, working;
    int64_t waiting, run, refused; /* refused: at once or later */
};
WEIR_API void weir_pool_get(struct weir_pool *pool, struct weir_pool_info *out);

/* --------------------------------------------- floor 3: rules choose ---- */

/* Rules say which limits apply to which requests: docs/rules.md.  A rule set is read from YAML and
 * never changes; an engine puts it to work on a table, and another in its place while requests are
 * being decided. */
struct weir_rules;

struct weir_problem {
    int line, column; /* 1 is the first; 0: of the whole text */
    char text[244];   /* what is wrong and what would be right: one line */
    char source[160]; /* the line itself, or what of it is around the column */
    int caret;        /* the column's place in source, from 0; -1: none */
};

struct weir_rules_options {
    const char *name; /* of the text, for the problems; NULL: "rules" */
    bool files;       /* lists may name files; looked for beside the file `name` */
    bool near;        /* ... and only below its folder: for a text that is not to be trusted */
    void (*problem)(
        void *context,
        const struct weir_problem *problem); /* told of everything that is wrong; may be NULL */
    void *context;
};

/* All or nothing: a text with one mistake is no rule set.  error->text is the first problem, as
 * name:line:column: text. */
WEIR_API int weir_rules_parse(struct weir_rules **out, const char *text, size_t len,
                              const struct weir_rules_options *options, struct weir_error *error);
/* From a file; options->name is its path then, and its lists may name files. */
WEIR_API int weir_rules_read(struct weir_rules **out, const char *path,
                             const struct weir_rules_options *options, struct weir_error *error);
WEIR_API void weir_rules_destroy(struct weir_rules *rules);

/* name:line:column: text, the line itself, and a caret below it; returns the length as snprintf
 * does. */
WEIR_API int weir_problem_print(char *out, size_t size, const char *name,
                                const struct weir_problem *problem);

/* The JSON Schema of a rule file, for editors. */
WEIR_API const char *weir_rules_schema(void);

struct weir;

struct weir_options {
    struct weir_table *table; /* where the states live; the caller's, and must outlive the engine.
                                 NULL: a private one */
    int64_t keys; /* of the private one: room for this many keys; 0: 65536.  It sets 16 KiB of
                     address space a key aside for sliding windows; memory is only what is used */
};

WEIR_API int weir_create(struct weir **out, const struct weir_options *options,
                         struct weir_error *error);
WEIR_API void weir_destroy(struct weir *weir);
WEIR_API struct weir_table *weir_table_of(struct weir *weir);

/* Puts the rules in force for every request that begins from now on, and returns when none is being
 * decided by the old ones any more; those are destroyed.  Limits that are the same keep their
 * states; limits that are not (same rule, same place, same algorithm) are changed as
 * weir_limiter_change does.  The table's limiters are never removed: one for each limit, ban and
 * rule that it has ever had, so make a table of your own with room for them
 * (weir_table_options.limiters).  Lists changed by weir_list_edit begin anew as the rules have
 * them; modes and bans stay.  On success the rules are the engine's; on failure they are the
 * caller's still, and the old ones stay in force. */
WEIR_API int weir_use(struct weir *weir, struct weir_rules *rules, weir_time now,
                      struct weir_error *error);

/* What is known of a request: { "ip", "192.0.2.7" }.  Any names: the rules say which they look
 * at. */
struct weir_attr {
    const char *name;
    const char *value;
    size_t name_len, value_len; /* 0: up to the NUL byte */
    uint32_t id;                /* of the name, from weir_attribute; 0: by its name */
};

/* A number that stands for the name in this engine for ever, for doors that see the same names over
 * and over: it saves looking them up. 0 if there are 255 already, or no memory: then the name will
 * do. */
WEIR_API uint32_t weir_attribute(struct weir *weir, const char *name);

struct weir_ruling {
    struct weir_decision decision; /* of the limit that refused first, or is the tightest; all zeros
                                      but allowed if none applies */
    const char *rule;   /* its rule, or the one that has banned the key; NULL: none.  Good until
                           weir_destroy */
    const char *list;   /* "allow" or "deny" if a list has decided; else NULL */
    const char *shadow; /* a rule in shadow that would have refused; NULL: none */
    const char *guard;  /* weir_check_enter: the guard that has refused; NULL: none.  Good until
                           weir_destroy */
    int64_t count; /* as written in that limit: `count` in `window` (a calendar window: its present
                      length) */
    weir_time window;
    weir_time banned_until; /* a point; 0: no ban.  With WEIR_BANNED it was there before; with
                               another reason this very check has made it */
    uint16_t limit_index;   /* which of the rule's limits, from 0 */
    uint16_t applied;       /* how many rules apply, those in shadow among them */
    uint8_t mode;  /* enum weir_mode, of all rules: enforce, or shadow if the whole set is */
    uint8_t level; /* for the backend: 0 free, 1 less than half is left, 2 less than an eighth, 3
                      refusing */
    bool
        cut; /* more limits apply than can be asked at once: those last in the file were left out */
};

/* Decides a request by all rules that apply to it, all or nothing.  ask->key is not looked at;
 * ask->cost is multiplied by the rules' own. A request that no rule applies to is allowed.  No
 * allocation; at most WEIR_ALL_MAX limits are asked at once: those of rules that enforce, then
 * those in shadow, each first in the file. */
WEIR_API bool weir_check(struct weir *weir, const struct weir_attr *attrs, size_t n,
                         const struct weir_ask *ask, struct weir_ruling *ruling);

/* As weir_check, and enters the guards of the rules' `guards:` that apply to the request: all or
 * nothing.  A refusal by a guard names it in ruling->guard.  The user, class and priority are those
 * that the guard takes from the attributes, or ask's. */
#define WEIR_ENTRY_MAX 8 /* guards on one request; more are left out, and ruling->cut says so */
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

/* What the rules say to answer for a guard when it refuses; false: nothing.  As much of its body as
 * there is room for is copied to `body`. */
#define WEIR_FALLBACK_MAX 65536
struct weir_fallback {
    int32_t status;
    size_t len;       /* of the whole body, at most WEIR_FALLBACK_MAX */
    const char *type; /* of the body, such as application/json.  Good until weir_destroy */
};
WEIR_API bool weir_fallback_get(struct weir *weir, const char *guard, struct weir_fallback *out,
                                char *body, size_t size);

struct weir_request {
    const struct weir_attr *attrs;
    size_t n;
    struct weir_ask ask;
};

/* Each for itself, in their order.  Returns how many were allowed. */
WEIR_API size_t weir_check_many(struct weir *weir, const struct weir_request *requests, size_t n,
                                struct weir_ruling *rulings);

/* What requests have come to in this process since weir_create; each was allowed or refused. */
struct weir_totals {
    int64_t checked, allowed, refused;
    int64_t denied;         /* refused, by a deny list */
    int64_t allow_listed;   /* allowed, by an allow list */
    int64_t unmatched;      /* allowed, because no rule applies or all are off */
    int64_t shadow_refused; /* allowed, but a rule in shadow would have refused it; or a deny list,
                               while all are in shadow */
};
WEIR_API void weir_totals_get(struct weir *weir, struct weir_totals *out);

/* The key of such a request is as good as fresh to every rule that applies to it, or to the one
 * named: what it has used is forgotten in all limits, and so are counted refusals, a ban and its
 * strikes.  Lists and modes do not matter: rules that are off forget too.  Returns how many rules
 * have had such a key, or a negative code: WEIR_INVALID if there is no such rule. */
WEIR_API int64_t weir_reset(struct weir *weir, const char *rule, const struct weir_attr *attrs,
                            size_t n, weir_time now, struct weir_error *error);

/* The switch by hand, in every process that shares the table, at once: for one rule, or one guard
 * of the rules (as weir_check_enter enters it; weir_enter goes by the guard's own options), or
 * (NULL) for all of them. */
WEIR_API int weir_mode_set(struct weir *weir, const char *name, enum weir_mode mode,
                           struct weir_error *error);

/* Adds entries to a list ("allow", "deny" or a name from the rules) or removes them; in this
 * process, until the next weir_use. */
WEIR_API int weir_list_edit(struct weir *weir, const char *list, const char *attribute,
                            const char *const *add, size_t adds, const char *const *remove,
                            size_t removes, struct weir_error *error);

/* A ban keeps a key of a rule out until a time.  Kept in the table: shared, and there after a
 * restart.  The key is the rule's template filled in, as listings show it: "192.0.2.7",
 * "192.0.2.0/24:ann". */
struct weir_ban {
    char rule[64];
    char key[160]; /* a longer one is its beginning, "..." and its hash */
    weir_time since, until;
    int32_t strikes; /* bans of this key that were not forgotten yet, this one among them */
};
WEIR_API int weir_ban_set(struct weir *weir, const char *rule, const char *key, weir_time now,
                          weir_time until, struct weir_error *error);
WEIR_API bool weir_ban_lift(struct weir *weir, const char *rule, const char *key,
                            weir_time now); /* false: it was not banned */
/* Calls `each` with every ban that is in force, until it returns false. */
WEIR_API void weir_ban_list(struct weir *weir, weir_time now,
                            bool (*each)(void *context, const struct weir_ban *ban), void *context);

/* What a rule has done in this process since it came. */
struct weir_rule_info {
    char name[64];
    enum weir_mode written;  /* as the rules have it */
    enum weir_mode switched; /* by hand, or WEIR_AS_WRITTEN */
    enum weir_mode mode;     /* in force */
    int64_t allowed, refused, banned;
    int64_t shadow_refused; /* would have been, but for the rule's mode */
};
WEIR_API bool weir_rule_get(struct weir *weir, size_t i, struct weir_rule_info *out);

/* ------------------------------------------------- floor 3: listings ---- */

/* The i-th rule's name alone, good until weir_destroy; NULL: there are no more. */
WEIR_API const char *weir_rule_name(struct weir *weir, size_t i);

/* The modes of the whole rule set. */
struct weir_modes {
    enum weir_mode written, by_hand, in_force; /* by_hand: or WEIR_AS_WRITTEN */
};
WEIR_API void weir_modes_get(struct weir *weir, struct weir_modes *out);

/* A guard of the rules, by its place in the file or by its name; false: there is none. */
struct weir_ruled_guard {
    const char *name; /* good until weir_destroy */
    struct weir_guard *guard;
    struct weir_modes modes; /* in_force: together with the mode of the whole set */
    bool waits;              /* the rules give it a queue: see weir_enter_wait */
    struct weir_queue_options queue;
    weir_time wait;                /* ask.wait_max */
    struct weir_fallback fallback; /* status 0: none */
};
WEIR_API bool weir_ruled_guard_get(struct weir *weir, size_t i, struct weir_ruled_guard *out);
WEIR_API bool weir_ruled_guard_find(struct weir *weir, const char *name,
                                    struct weir_ruled_guard *out);

/* The i-th list in force; false: there are no more. */
struct weir_list_info {
    char name[64], attribute[64];
    size_t entries;
};
WEIR_API bool weir_list_get(struct weir *weir, size_t i, struct weir_list_info *out);

/* The i-th attribute that the rules and lists look at; false: there are no more. */
WEIR_API bool weir_attribute_get(struct weir *weir, size_t i, char name[64]);

/* As weir_check and weir_check_many.  For a request refused as limited, too big or banned, `key` is
 * the text of its key under ruling->rule; else "". */
#define WEIR_KEY_TEXT 160 /* bytes of a key as people read it, with its NUL */
WEIR_API bool weir_check_key(struct weir *weir, const struct weir_attr *attrs, size_t n,
                             const struct weir_ask *ask, struct weir_ruling *ruling,
                             char key[WEIR_KEY_TEXT]);
WEIR_API size_t weir_check_many_keys(struct weir *weir, const struct weir_request *requests,
                                     size_t n, struct weir_ruling *rulings,
                                     char (*keys)[WEIR_KEY_TEXT]);

/* The text under which listings show a key that weir_ban_set takes. */
WEIR_API int weir_ban_key(struct weir *weir, const char *rule, const char *key,
                          char text[WEIR_KEY_TEXT], struct weir_error *error);

/* The key of a limiter is fresh again, whatever it has used.  False: it was fresh. */
WEIR_API bool weir_forget(struct weir_limiter *limiter, struct weir_key key, weir_time now);

/* What the guard's controller has learnt, in one line for people; "": nothing to tell. */
WEIR_API void weir_guard_tell(struct weir_guard *guard, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
