/* sim.h -- trials: simulated clients and backend, with a real guard between them, on virtual time.
 *
 *     clients  ->  guard  ->  backend
 *     arrive       the       works, queues, slows down,
 *     give up      real      fails, scales, falls silent
 *     try again    one
 *
 * A plan is a scenario file, parsed (read-scenario.c).  A trial runs a plan with one controller and
 * one seed (sim.c), event by event.  Its outcome is counts, times and series (results.c), printed
 * by report-text.c, report-json.c and report-svg.c.
 *
 * The same plan, controller and seed give the same outcome to the last bit: no clock is read,
 * random numbers are our own, and all arithmetic between clients and backend is in integers.  A
 * client's dice (when it comes, how much work it brings) do not depend on the controller, so
 * controllers are compared on the same traffic.
 */
#ifndef WEIR_SERVER_SIM_SIM_H
#define WEIR_SERVER_SIM_SIM_H

#include <stdio.h>

#include "weir-queue.h"

#define WEIR__SIM_GROUPS     16
#define WEIR__SIM_POINTS     32 /* of a group's rate */
#define WEIR__SIM_CHANGES    32 /* of the backend */
#define WEIR__SIM_NAME       40
#define WEIR__SIM_PRIORITIES (WEIR_PRIORITY_MAX - WEIR_PRIORITY_MIN + 1)
#define WEIR__SIM_BUCKETS    240 /* of the series, at most */
#define WEIR__SIM_LONGEST    (600 * WEIR_SECOND)
#define WEIR__SIM_START      (1000 * WEIR_SECOND) /* the guard's time when a trial begins */
#define WEIR__SIM_TEXT       (256 * 1024)         /* bytes of a scenario file, at most */
#define WEIR__SIM_ONE        ((int64_t)1000000)   /* factors and shares are in millionths */

/* ------------------------------------------------------------------- the plan ---- */

enum weir__sim_work_shape {
    WEIR__SIM_WORK_EXPONENTIAL,
    WEIR__SIM_WORK_CONSTANT,
    WEIR__SIM_WORK_LOGNORMAL,
    WEIR__SIM_WORK_BIMODAL
};

struct weir__sim_work {
    enum weir__sim_work_shape shape;
    weir_time mean;     /* over all */
    weir_time floor;    /* exponential, lognormal: never less than this */
    int64_t spread;     /* lognormal: the standard deviation of the logarithm, in millionths */
    weir_time slow;     /* bimodal: the time of slow work ... */
    int64_t slow_share; /* ... and its share; the mean decides the time of the rest */
};

enum weir__sim_change_kind {
    WEIR__SIM_CHANGE_SLOWER,  /* work takes `factor` times as long */
    WEIR__SIM_CHANGE_DRIFT,   /* the same, but it rises from 1 to the middle and falls to the end */
    WEIR__SIM_CHANGE_ERRORS,  /* `factor` of the results are errors */
    WEIR__SIM_CHANGE_SILENT,  /* requests are taken and never answered */
    WEIR__SIM_CHANGE_WORKERS, /* there are `workers` */
};

struct weir__sim_change {
    enum weir__sim_change_kind kind;
    weir_time from, to;
    int64_t factor;
    int64_t workers;
    weir_time after; /* errors come after this time; 0: after the work */
};

struct weir__sim_backend_plan {
    int64_t workers;
    int64_t queue; /* its length; -1: no bound */
    struct weir__sim_work work;
    int64_t contention; /* millionths by which each request beyond the workers slows work
                           down ... */
    int64_t slowest;    /* ... at most by this factor */
    bool cancels;       /* a request in the queue whose client has given up is taken out */
    int64_t cold;       /* factor of work's time while nothing is cached ... */
    int64_t warm_after; /* ... which falls to 1 by this many results; 0: warm from the start */
    struct weir__sim_change changes[WEIR__SIM_CHANGES];
    size_t n_changes;
};

struct weir__sim_rate_point {
    weir_time at, over; /* gets there in a straight line in this time; 0: at once */
    int64_t rate;       /* per 1000 s */
};

enum weir__sim_retry_on {
    WEIR__SIM_RETRY_REFUSED = 1,
    WEIR__SIM_RETRY_TIMEOUT = 2,
    WEIR__SIM_RETRY_ERROR = 4
};

struct weir__sim_group_plan {
    char name[WEIR__SIM_NAME];
    struct weir__sim_rate_point points[WEIR__SIM_POINTS];
    size_t n_points;
    weir_time burst_every,
        burst_for; /* for burst_for of every burst_every the rate is burst_rate; 0: never */
    int64_t burst_rate;
    bool even;    /* evenly spaced; else Poisson */
    int64_t loop; /* this many clients, each waiting for its answer before it asks again; 0: not a
                     loop */
    weir_time think;         /* ... after this long, on average */
    int64_t users;           /* keys */
    int32_t priority;        /* -8 to 7 */
    uint32_t class;          /* number of its class; its name is in the guard's options */
    weir_time timeout;       /* the client gives up; 0: never */
    int64_t retries;         /* how often it tries again ... */
    unsigned retry_on;       /* ... after which outcomes ... */
    weir_time back_off;      /* ... and how long after the first time; */
    int64_t back_off_factor; /* its growth each time, in millionths */
    bool jitter;             /* the back-off varies from half to one and a half */
};

struct weir__sim_plan {
    char name[WEIR__SIM_NAME];
    char about[200];
    weir_time length, warmup; /* measured from warmup to length */
    int64_t seed;
    struct weir__sim_backend_plan backend;
    struct weir__sim_group_plan groups[WEIR__SIM_GROUPS];
    size_t n_groups;
    struct weir_guard_options guard; /* but for its controller */
    size_t n_classes;                /* of the guard */
    struct weir_queue_options queue; /* in front of the guard; max 0: none */
    /* How long an ask waits in it, by weir__guard_fits, priority and class; 0: not at all */
    weir_time waits[2][WEIR__SIM_PRIORITIES][WEIR_CLASSES];
    weir_time work_p99; /* of the work alone, on an idle backend */
};

/* read-scenario.c -- as weir_rules_parse, of a scenario file. */
int weir__sim_plan_parse(struct weir__sim_plan *out, const char *text, size_t len,
                         const struct weir_rules_options *options, struct weir_error *error);

/* clients.c -- arrivals per 1000 s, at a moment after the beginning. */
int64_t weir__sim_plan_rate(const struct weir__sim_group_plan *group, weir_time at);
int64_t weir__sim_plan_rate_max(const struct weir__sim_group_plan *group);
weir_time weir__sim_plan_rate_next(const struct weir__sim_group_plan *group,
                                   weir_time at); /* when it may change; WEIR_NEVER */

/* backend-changes.c -- at a moment after the beginning. */
int64_t weir__sim_plan_workers(const struct weir__sim_backend_plan *backend, weir_time at);
int64_t weir__sim_plan_slowness(const struct weir__sim_backend_plan *backend,
                                weir_time at); /* of slower and drift together */
const struct weir__sim_change *weir__sim_plan_find(const struct weir__sim_backend_plan *backend,
                                                   enum weir__sim_change_kind kind, weir_time at);
int64_t weir__sim_plan_coldness(const struct weir__sim_backend_plan *backend, int64_t results);
int64_t weir__sim_plan_capacity(
    const struct weir__sim_backend_plan *backend); /* at the beginning, warm: per 1000 s */
/* possible-results.c -- the possible results in the measured span: the requests that came, at most
 * the backend's capacity.  Adds them to each bucket of that width. */
struct weir__sim_bucket;
double weir__sim_plan_possible(const struct weir__sim_plan *plan, weir_time width,
                               struct weir__sim_bucket *buckets, size_t n);

/* ------------------------------------------------------------- random numbers ---- */

struct weir__sim_dice {
    uint64_t state;
};

/* random.c */
void weir__sim_dice_seed(struct weir__sim_dice *dice, uint64_t seed, uint64_t stream);
uint64_t weir__sim_dice_roll(struct weir__sim_dice *dice);
int64_t weir__sim_dice_below(struct weir__sim_dice *dice, int64_t n); /* 0 to n - 1 */
weir_time weir__sim_dice_exponential(struct weir__sim_dice *dice, weir_time mean);
weir_time weir__sim_dice_work(struct weir__sim_dice *dice, const struct weir__sim_work *work);
weir_time
weir__sim_work_quantile(const struct weir__sim_work *work,
                        int permille); /* of 20,000 rolls, always the same; 0: no memory */

/* -------------------------------------------------------------------- events ---- */

struct weir__sim_agenda_item {
    weir_time at;
    uint64_t order; /* those at one moment happen as they were made */
    uint32_t kind, who;
    uint64_t birth; /* of the attempt it is about: it may have ended since */
};

struct weir__sim_agenda {
    struct weir__sim_agenda_item *heap;
    size_t n, room;
    uint64_t made;
    bool failed; /* there was no memory; stays set */
};

/* agenda.c */
void weir__sim_agenda_add(struct weir__sim_agenda *agenda, struct weir__sim_agenda_item item);
bool weir__sim_agenda_next(
    struct weir__sim_agenda *agenda,
    struct weir__sim_agenda_item *out); /* the earliest; false: there is none */
void weir__sim_agenda_clear(struct weir__sim_agenda *agenda);

/* --------------------------------------------------------------- the outcome ---- */

/* Of attempts: each has exactly one fate.  A request is an attempt and those that are made because
 * it came to nothing. */
struct weir__sim_fates {
    int64_t requests, retries; /* attempts are both together */
    int64_t ok;                /* answered in time */
    int64_t failed, timed_out, dropped;
    int64_t busy, shed, open; /* refused by the guard; open: by its breaker */
    int64_t lost;             /* requests that came to nothing in the end */
};

struct weir__sim_group_outcome {
    struct weir__sim_fates all;      /* of the whole trial, up to the last answer */
    struct weir__sim_fates measured; /* in the measured span; each where it happened */
    weir_time p50, p99;
    uint64_t arrivals; /* a hash of the requests' times, users and work, without retries */
};

struct weir__sim_bucket {
    int64_t offered, ok, refused,
        bad;            /* offered: retries among them; bad: failed, timed out, dropped */
    weir_time p50, p99; /* of the answered; -1: none */
    double in_flight;   /* mean, of the guard (none: of clients that wait) */
    int64_t in_flight_max;
    double inside;   /* mean, of the backend: also work that nobody waits for any more */
    int64_t limit;   /* at its end; -1: there is none */
    double possible; /* results that could have been had */
};

struct weir__sim_outcome {
    const struct weir__sim_plan *plan;
    char controller[32];
    uint64_t seed;
    struct weir__sim_group_outcome groups[WEIR__SIM_GROUPS];
    struct weir__sim_fates all, measured;
    double possible;      /* results, in the measured span */
    double goodput;       /* per cent of these */
    double wasted;        /* per cent of the workers' time: abandoned or failed work */
    double unfairness;    /* see docs/sim.md; 1: fair; -1: one class only, or nobody was served */
    weir_time p50, p99;   /* admitted requests, as their clients see it: answered, or timed out */
    int64_t permits_left; /* out at the end: 0 unless something is wrong */
    char told[64];        /* the controller's state when the last requests come; "": none */
    int64_t events;
    struct weir__sim_bucket buckets[WEIR__SIM_BUCKETS];
    size_t n_buckets;
    weir_time bucket;
};

struct weir__sim_options {
    const char *controller; /* "none", "fixed:N", "fixed" (twice the workers at the beginning), or a
                               name from weir_controllers() */
    uint64_t seed;          /* 0: the plan's */
};

/* sim.c -- *out refers to the plan. */
int weir__sim_run(struct weir__sim_outcome *out, const struct weir__sim_plan *plan,
                  const struct weir__sim_options *options, struct weir_error *error);
/* guard.c -- false: there is no controller of that name; the error lists them. */
bool weir__sim_knows(const char *controller, struct weir_error *error);

/* ------------------------------------------------- inside a trial ---- */

/* One attempt.  It is over when neither its client waits nor the backend has it. */
struct weir__sim_attempt {
    uint64_t birth;       /* from 1; 0: not in use */
    uint32_t group, next; /* next: in the backend's queue, or among those not in use */
    int64_t user;
    uint64_t work;        /* the dice for how much work it brings */
    weir_time sent, busy; /* busy: how long a worker has it; 0: in the queue */
    int64_t tries;        /* before this one */
    struct weir_permit permit;
    struct weir__sim_turn *turn; /* in the guard's queue; NULL: it is not */
    bool waiting;                /* its client */
    bool inside;                 /* the backend */
    bool error;
};

#define WEIR__SIM_NOBODY UINT32_MAX

/* An attempt's place in the guard's queue: attempts move in memory, this does not. */
struct weir__sim_turn {
    struct weir_waiter waiter;
    struct weir_permit permit;
    struct weir__sim_trial *trial;
    uint32_t who;
    char user[WEIR__SIM_NAME + 24];
};

struct weir__sim_backend {
    int64_t busy, queued, results;
    uint32_t first, last; /* of the queue */
    double spent, wasted; /* workers' time in the measured span */
    struct weir__sim_dice dice;
};

/* How long an attempt took, and where that belongs. */
struct weir__sim_time_taken {
    weir_time took;
    uint32_t group, bucket;
    bool measured, answered;
};

struct weir__sim_trial {
    const struct weir__sim_plan *plan;
    struct weir__sim_outcome *out;
    weir_time now; /* since the beginning */
    struct weir__sim_agenda agenda;
    struct weir__sim_attempt *attempts;
    size_t n_attempts, room;
    uint32_t unused;
    uint64_t births;
    int64_t waiting; /* clients, for an answer */
    int64_t open;    /* requests that have not come to an end */
    struct weir__sim_backend backend;
    struct weir__sim_dice arrivals[WEIR__SIM_GROUPS], retries;
    struct weir_table *table;
    struct weir_guard *guard; /* NULL: none */
    struct weir_queue *queue; /* NULL: nobody waits */
    weir_time area_at;        /* up to where the buckets' areas are reckoned */
    struct weir__sim_time_taken *times;
    size_t n_times, times_room;
    struct weir__sim_bucket after; /* events after the end */
    bool failed;                   /* no memory */
};

enum weir__sim_event_kind {
    WEIR__SIM_EVENT_ARRIVE, /* who: group */
    WEIR__SIM_EVENT_LOOP,   /* who: group; one of its clients asks */
    WEIR__SIM_EVENT_RETRY,  /* who: an attempt that was over, and is made again */
    WEIR__SIM_EVENT_TIMEOUT,
    WEIR__SIM_EVENT_LATE, /* its wait in the guard's queue is over */
    WEIR__SIM_EVENT_DONE,
    WEIR__SIM_EVENT_WORKERS, /* their number changes */
    WEIR__SIM_EVENT_BUCKET,  /* a bucket of the series ends */
};

/* backend.c */
bool weir__sim_backend_put(struct weir__sim_trial *t,
                           uint32_t who); /* false: dropped, its queue is full */
void weir__sim_backend_done(struct weir__sim_trial *t, uint32_t who);
void weir__sim_backend_pull(struct weir__sim_trial *t); /* free workers take waiting requests */
void weir__sim_backend_forget(struct weir__sim_trial *t,
                              uint32_t who); /* its client has given up */

/* clients.c */
void weir__sim_clients_begin(struct weir__sim_trial *t);
void weir__sim_clients_arrive(struct weir__sim_trial *t, uint32_t group);
void weir__sim_clients_loop(struct weir__sim_trial *t, uint32_t group);
void weir__sim_clients_retry(struct weir__sim_trial *t, uint32_t who);
void weir__sim_clients_late(struct weir__sim_trial *t);
void weir__sim_clients_leave(struct weir__sim_trial *t, uint32_t who); /* the guard's queue */
void weir__sim_clients_answer(struct weir__sim_trial *t, uint32_t who, enum weir_outcome outcome);

/* sim.c */
uint32_t weir__sim_attempt_create(struct weir__sim_trial *t); /* WEIR__SIM_NOBODY: no memory */
void weir__sim_attempt_settle(struct weir__sim_trial *t,
                              uint32_t who); /* if it is over, its place is free */
void weir__sim_post(struct weir__sim_trial *t, weir_time at, enum weir__sim_event_kind kind,
                    uint32_t who);
bool weir__sim_measures(const struct weir__sim_trial *t);

/* guard.c -- the trial's table, guard and queue, as far as the controller has one. */
int weir__sim_guard_create(struct weir__sim_trial *t, const char *controller,
                           struct weir_error *error);
/* How long it waits for the guard; 0: not at all. */
weir_time weir__sim_wait_of(const struct weir__sim_trial *t, const struct weir_ask *ask);

/* results.c */
struct weir__sim_bucket *weir__sim_sum_bucket(struct weir__sim_trial *t); /* that it is now */
void weir__sim_sum_count(struct weir__sim_trial *t, uint32_t group,
                         size_t member); /* one more: offsetof(struct weir__sim_fates, ...) */
void weir__sim_sum_time(struct weir__sim_trial *t, const struct weir__sim_attempt *a,
                        bool answered);
void weir__sim_sum_areas(struct weir__sim_trial *t); /* before anything changes */
void weir__sim_sum_most(struct weir__sim_trial *t);  /* one more is at work */
void weir__sim_sum_arrival(struct weir__sim_trial *t, const struct weir__sim_attempt *a);
void weir__sim_sum_finish(struct weir__sim_trial *t);

/* ------------------------------------------------------------------- reports ---- */

/* report-text.c */
void weir__sim_table(FILE *out, const struct weir__sim_outcome *const *outcomes, size_t n);
void weir__sim_groups(FILE *out, const struct weir__sim_outcome *const *outcomes, size_t n);
void weir__sim_tsv(FILE *out, const struct weir__sim_outcome *outcome);
/* report-json.c */
void weir__sim_json(FILE *out, const struct weir__sim_outcome *outcome);
/* report-svg.c -- the trials of one plan beside each other. */
void weir__sim_svg(FILE *out, const struct weir__sim_outcome *const *outcomes, size_t n);

/* The scenarios that are in the program; the last has no name.  Made from examples/sim by
 * scripts/embed-list.py. */
struct weir__embedded {
    const char *name, *text;
    size_t len;
};
extern const struct weir__embedded weir__sim_files[];

#endif
