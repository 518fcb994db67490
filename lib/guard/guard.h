/* guard.h -- a guard's record in the table, and a guard as one process sees it.
 *
 * Ownership:
 *
 *     name, salt, terms    in the registry's record, which never changes: another takes its place
 *     seats                anybody, before terms that need more are put into the registry
 *     in_flight            anybody, by atomic operations.  It never exceeds the limit, but an ask
 *                          for more than an adaptive limit is admitted alone
 *     a seat               taken by swapping a permit's word into a free one, and freed once: by
 *                          exit or by a sweep
 *     breaker, shed        anybody: see their headers
 *     window               anybody adds, by atomic operations; the ticker empties it
 *     learnt               the ticker: the thread that has swapped itself into `ticker`
 *     limit, mean, ...     the ticker stores, all load
 *     wanted               set by waiters before each look, cleared by the thread that rings
 *
 * in_flight and the seats record the same permits: in_flight is one number, exact and cheap to
 * check; the seats name the holders, so that a lease can end.  A process killed between the two
 * leaves a difference; if sweeps find the same one for two seconds, they correct it.
 *
 * A permit's word:
 *
 *     63..43   when it entered, in 2^22 ns (4.2 ms), modulo 2.4 hours: see permits.c
 *     42..28   how many permits, at least 1
 *     27..18   its holder
 *     17..12   the probe's episode, 0: no probe
 *     11       renewed an odd number of times
 *     10..0    how often the seat was used
 *
 * A free seat keeps only the last two, so that a permit that was given back is not taken for the
 * next one in its seat.
 */
#ifndef WEIR_GUARD_GUARD_H
#define WEIR_GUARD_GUARD_H

#include "guard/breaker.h"
#include "guard/controller.h"
#include "guard/shed-by-host-load.h"
#include "guard/shed.h"
#include "table/holders.h"
#include "table/permits-by-key.h"
#include "table/registry.h"

#define WEIR__PERMITS_MAX     16384
#define WEIR__PERMITS         1024 /* the default; without a bound by key */
#define WEIR__GUARD_EVENTS    32
#define WEIR__LEASE_MAX       (3600 * WEIR_SECOND) /* of all guards; more is damage */
#define WEIR__SKEW            (10 * WEIR_SECOND)   /* between callers' clocks, at most */
#define WEIR__DEGRADATION_MAX 9

/* The options in fixed-width numbers, defaults filled in. */
struct weir__guard_terms {
    int64_t
        values[WEIR__OPTIONS_ROOM]; /* by row, see options.h; a controller's is its place from 1 */
    struct {
        char name[WEIR_CLASS_NAME];
        int64_t weight;
    } classes[WEIR_CLASSES];
};

/* Results since it was last emptied. */
struct weir__window {
    _Alignas(WEIR__LINE) int64_t sum; /* ns, of those that succeeded */
    int64_t other_sum;                /* of the others */
    /* By outcome; those that succeeded are counted by `times` alone. */
    int64_t results[WEIR_IGNORED];
    int64_t min;  /* ns + 1; 0: none */
    int64_t full; /* those that succeeded or failed while no permit was free */
    _Alignas(WEIR__LINE) int64_t in_flight_max;
    int64_t busy; /* refused for lack of permits, not shed, without record.busy; never reset */
    struct weir__histogram times;
};

/* The ticker's. */
struct weir__learnt {
    int64_t looked;                           /* when the window was last emptied; 0: never */
    int64_t resulted;                         /* when a look last had results */
    int64_t shown;                            /* when the quantiles were last computed */
    int64_t calls, busy, resultless;          /* then */
    int64_t shed_at, shed_entered, shed_busy; /* shedding's last look, and the totals then */
    int64_t drift, drift_times;               /* excess of in_flight; sweeps that found it */
    int64_t watching;                         /* sweeps to go */
    uint64_t holders_lost;                    /* of the table, at the last look */
    int64_t shed_seen;                        /* totals.shed, at the last look */
    int64_t out_at, out_from, out_n;          /* the last tick: when, tick_at since, permits out */
    double out;                               /* permits out times ns, since the last look */
    struct weir__pressure pressure;
    int64_t all_entered; /* of all guards, when the pressure was last looked at */
    _Alignas(WEIR__LINE) unsigned char controller[WEIR__CONTROLLER_STATE];
    struct weir__recent recent;
};

struct weir__guard_totals {
    int64_t results[WEIR_IGNORED]; /* by outcome, without those in the window */
    int64_t ignored, reclaimed;
    int64_t open, busy, limited, shed, degraded, full, late, shadow, key_busy; /* refused */
};

/* In the registry. */
struct weir__guard_named {
    char name[WEIR__NAME_SIZE];
    uint64_t salt; /* of users' cohorts and the breaker's jitter */
    struct weir__guard_terms terms;
};

_Static_assert(sizeof(struct weir__guard_named) == WEIR__GUARD_RECORD, "as the registry has it");

struct weir__guard_record {
    _Alignas(WEIR__LINE) int64_t in_flight; /* permits out */
    int64_t extra;                          /* permits beyond one for each ask in flight */
    int64_t moments; /* since the last tick, from tick_at on: times of exits less times of enters */
    uint64_t seats;  /* never fewer than before, whatever the permits */
    uint64_t keyed;  /* 1: there are or were permits by key, so seats change as pairs */
    int64_t uncounted;    /* enters that are no further request: behind another guard */
    uint32_t wanted;      /* 1: somebody waits, and sleeps until the table's bell rings */
    int64_t entered_told; /* the most that figures have told */

    _Alignas(WEIR__LINE) int64_t limit; /* that the controller has found; 0: none yet */
    int64_t tick_at;                    /* when the next tick is due */
    int64_t mean;                       /* ns, of the last look that had results; 0: not known */
    int64_t p50, p90, p99; /* of the controller's window, or 10 s, at the last look; 0: not known */
    int32_t admitted;      /* permille of asks; 0: as 1000 */
    int32_t pressure;      /* permille */
    int32_t raising;       /* the degradation that it asks for ... */
    int32_t shedding;      /* 1: an event said so */
    int64_t raising_until; /* ... until then */
    /* Whose state is in `learnt`: the terms' controller, and whether it is a rate. */
    int64_t controller;
    uint8_t fitting[WEIR_CLASSES]; /* while it sheds: see weir__shed_fitting */
    int64_t waited;                /* when an ask that can wait last came, about; 0: never */
    int64_t free_in;               /* ns until a permit is free, about; 0: not known */
    int64_t lease;                 /* the longest that permits may have that are out */
    int64_t lease_until;           /* ... until then; 0: no sweep has seen a shorter one */
    int64_t extra_drift;           /* the ticker's: excess of extra, as learnt.drift */

    /* adaptive rate: struct weir__debt, a unit being WEIR_SECOND parts; swapped as one */
    _Alignas(WEIR__LINE) uint64_t pace[2];
    /* Refused for lack of permits, of those that do not wait.  Counted here alone, since a refusal
     * should cost little: it belongs to totals.busy as well as to window.busy. */
    int64_t busy;
    int64_t queued; /* asks that found no permit and wait, less waiters that were refused; since it
                       was last emptied */

    _Alignas(WEIR__LINE) struct weir__guard_totals totals;
    uint64_t events; /* so far */
    struct weir_guard_event kept[WEIR__GUARD_EVENTS];

    struct weir__breaker breaker;
    struct weir__window window;
    _Alignas(WEIR__LINE) uint64_t ticker; /* 0: nobody */
    int64_t sweep_at;
    struct weir__learnt learnt;
    struct weir__shed shed;
    struct weir__durations durations; /* of those that succeeded, without those in the window */
};

_Static_assert(sizeof(struct weir__guard_record) <= WEIR__SEATS_OFFSET,
               "a guard's seats are behind the rest of its record");
/* As in docs/shm.md; another layout is another format. */
_Static_assert(offsetof(struct weir__guard_record, in_flight) == 0 &&
                   offsetof(struct weir__guard_record, seats) == WEIR__SEATS_AT &&
                   offsetof(struct weir__guard_record, limit) == 64 &&
                   offsetof(struct weir__guard_record, extra_drift) == 184 &&
                   offsetof(struct weir__guard_record, busy) == 208 &&
                   offsetof(struct weir__guard_record, totals) == 256 &&
                   offsetof(struct weir__guard_record, breaker) == 1408 &&
                   offsetof(struct weir__guard_record, window) == 2240 &&
                   offsetof(struct weir__guard_record, learnt) == 4480 &&
                   offsetof(struct weir__guard_record, shed) == 25728,
               "the parts of a guard's record are where they are drawn");
_Static_assert(sizeof(struct weir__guard_record) == 59200 && sizeof(struct weir__holder) == 24 &&
                   sizeof(struct weir_guard_event) == 32,
               "and as large");
_Static_assert(WEIR__PERMITS_MAX <= WEIR__GUARD_SEATS, "each permit finds a seat");

/* The guard that is in a place: its terms, checked and compiled.  Never changes.  Deciding threads
 * read it unlocked, so it stays for a while when another has taken its place: see guard.c. */
struct weir__guard_plan {
    uint64_t edition;           /* of the guard's place */
    uint64_t salt;              /* of its record */
    char name[WEIR__NAME_SIZE]; /* the record's, safe to print */
    uint32_t seat_mask;
    int64_t max, max_per_key; /* the latter 0: none */
    weir_time lease, tick;
    int64_t degrade;
    int32_t raises;
    enum weir_mode mode;
    bool sheds; /* requests may be shed */
    bool plain; /* without a free permit an ask is refused for that, unless its breaker is open */
    struct weir__breaker_plan breaker;
    struct weir__controller_plan controller;
    struct weir__shed_plan shed;
    struct weir__pressure_plan pressure;
    weir_time times_window; /* p50, p90 and p99 look back this far */
    struct weir_guard_options options;
    /* With the table's mutex */
    struct weir__guard_plan *older;
    weir_time replaced; /* when another took its place, by the table's clock ... */
    bool late;          /* ... or much later: when that was first found to be long ago */
};

/* A place of the table, as this process has met it.  It lives as long as the table: callers may
 * have permits of a guard that has gone. */
struct weir_guard {
    struct weir_table *table;
    struct weir__place *place;
    struct weir__guard_record *record;
    struct weir__held held;        /* the seats, and permits by key */
    struct weir__guard_plan *plan; /* atomic */
    weir_time looked;              /* for older plans; with the table's mutex */
    uint64_t bad_edition;          /* of damaged terms: they are not tried again */
    uint32_t id;
    uint32_t ticking; /* weir__only_one */
};

/* The guards' part of a table, in this process. */
struct weir__guarding {
    struct weir_guard **guards; /* by id, NULL until first met; with the table's mutex */
    struct weir__system *system;
    int system_failed; /* atomic: there is none */
};

/* guard-plan.c */
int weir__guard_plan_make(struct weir__guard_plan *out, const struct weir_guard_options *options,
                          uint64_t salt, struct weir_error *error);
void weir__guard_terms_write(struct weir__guard_terms *out,
                             const struct weir_guard_options *options);
void weir__guard_terms_read(const struct weir__guard_terms *terms, struct weir_guard_options *out);
/* The first option that differs; NULL: none. */
const char *weir__guard_difference(const struct weir_guard_options *a,
                                   const struct weir_guard_options *b);

/* guard.c -- the plan in force; compiled if another process has changed the terms. */
struct weir__guard_plan *weir__guard_renew(struct weir_guard *guard);
static inline const struct weir__guard_plan *weir__guard_plan_of(struct weir_guard *guard)
{
    struct weir__guard_plan *plan = weir__acquire(&guard->plan);

    if (__builtin_expect(weir__acquire(&guard->place->edition) != weir__acquire(&plan->edition), 0))
        plan = weir__guard_renew(guard);
    return plan;
}
static inline const char *weir__guard_name(const struct weir_guard *guard)
{
    return weir__acquire(&guard->plan)->name;
}
/* All that a change to these options needs, but the block of its record. */
int weir__guard_prepare(struct weir_guard *guard, const struct weir_guard_options *options,
                        struct weir_error *error);
/* Like weir_guard_create; if it is there already, whatever its options are: *differs names the
 * first that is another one, or is NULL. */
int weir__guard_join(struct weir_guard **out, struct weir_table *table, const char *name,
                     const struct weir_guard_options *options, const char **differs,
                     struct weir_error *error);
struct weir__guarding *weir__guarding_of(struct weir_table *table); /* NULL: no memory */

/* The guard in place `id`, from 0; NULL: there is none, or its record is damaged. */
struct weir_guard *weir__guard_at(struct weir_table *table, uint32_t id);
/* Likewise, by its name: to look at, not to enter. */
struct weir_guard *weir__guard_named(struct weir_table *table, const char *name);
static inline struct weir__guard_record *weir__guard_record_at(const struct weir_table *table,
                                                               uint32_t i)
{
    return (struct weir__guard_record *)(void *)(table->guard_bytes + i * WEIR__GUARD_BYTES);
}

/* enter.c -- enter, in more detail. */
struct weir__enter_how {
    enum weir_mode mode; /* WEIR_AS_WRITTEN: as the guard's options say */
    bool leased;         /* belongs to no process: only time takes it back */
    bool favoured;       /* never shed */
    bool again;          /* it has come before, and was counted if it found no permit */
    bool waits;  /* waits if there is no permit: not counted as refused, no reason to shed */
    bool behind; /* others wait before it: no permit for it */
    const struct weir_key *key; /* for max_per_key; NULL: the ask's */
    int64_t max_per_key;        /* the ask's own bound, below the guard's; 0: the guard's */
};
bool weir__guard_enter(struct weir_guard *guard, const struct weir_ask *ask,
                       const struct weir__enter_how *how, struct weir_permit *permit,
                       struct weir_decision *d);
/* While it sheds: all asks as important as this one fit into the capacity, or a part of its
 * priority does and few wait.  Otherwise all fit, but there must be a place for its priority among
 * `places`, of which `waiting` are taken. */
bool weir__guard_fits(struct weir_guard *guard, const struct weir_ask *ask, int64_t waiting,
                      int64_t places);
/* The key in a number for queues, if its permits are bounded (by *max); otherwise 0. */
uint64_t weir__guard_key_id(struct weir_guard *guard, struct weir_key key, int64_t *max);
/* How long permits are kept for a waiter that needs more of them: about as long as work takes. */
weir_time weir__guard_hold(const struct weir_guard *guard);
/* All permits are out. */
bool weir__guard_is_full(struct weir_guard *guard);
/* A waiter was refused in the end. */
void weir__guard_count_refused(struct weir_guard *guard, enum weir_reason reason);
/* Work without a result gives back its probe and its pace. */
void weir__guard_give_all(struct weir_guard *guard, const struct weir__guard_plan *plan,
                          uint64_t word);

/* exit.c -- as if it had never entered. */
void weir__guard_undo(struct weir_guard *guard, struct weir_permit *permit);
/* Like weir_exit_after (took below 0: weir_exit), but wakes nobody: the caller offers the permit to
 * waiters of its own process first, and then calls weir__guard_pass_on. */
bool weir__guard_exit(struct weir_guard *guard, struct weir_permit *permit,
                      enum weir_outcome outcome, weir_time took, weir_time now);

/* bell.c -- wakes waiters in all processes.  A waiter calls `want`, looks for a permit once more,
 * and sleeps while the bell stays as it was.  A thread that is killed before it rings wakes nobody,
 * so waiters look now and then all the same. */
uint32_t weir__guard_want(struct weir_guard *guard);
void weir__guard_ring(struct weir_guard *guard);
/* A permit may be free. */
static inline void weir__guard_tell_waiters(struct weir_guard *guard)
{
    if (__builtin_expect(weir__get(&guard->record->wanted) != 0, 0))
        weir__guard_ring(guard);
}
/* Wakes waiters if a permit is free. */
void weir__guard_pass_on(struct weir_guard *guard);

/* permits.c -- seats and holders. */
static inline uint32_t weir__permit_holder(uint64_t word)
{
    return (uint32_t)(word >> 18) & 0x3ff;
}
static inline uint32_t weir__permit_probe(uint64_t word)
{
    return (uint32_t)(word >> 12) & 0x3f;
}
/* Renewed or not. */
static inline bool weir__permit_is_same(uint64_t a, uint64_t b)
{
    return (((a ^ b) & ~(uint64_t)WEIR__PERMIT_RENEWED) << 21) == 0;
}
/* The permit was renewed since, but once: its word becomes the present one.  The seat keeps the
 * time of the word before, so that a permit that was given back is not taken for another: not even
 * when the seat's uses have gone round. */
bool weir__permit_follow(struct weir_guard *guard, struct weir_permit *permit);
/* Renews a permit that was renewed since, but once: a client repeats its ask, because the answer
 * was lost.  It may do so again. */
bool weir__permit_repeat(struct weir_guard *guard, struct weir_permit *permit, weir_time now);
#define WEIR__PERMIT_GRAIN 22               /* a permit's time is kept in 2^22 ns ... */
#define WEIR__PERMIT_TIMES ((1u << 21) - 1) /* ... modulo this */
/* With the seat's use count left at 0. */
static inline uint64_t weir__permit_word(weir_time now, int64_t weight, uint32_t holder,
                                         uint32_t probe)
{
    uint64_t grains = (uint64_t)now >> WEIR__PERMIT_GRAIN & WEIR__PERMIT_TIMES;

    return grains << 43 | (uint64_t)weight << 28 | (uint64_t)holder << 18 | (uint64_t)probe << 12;
}
/* Callers may pass any bytes as a permit. */
static inline bool weir__guard_is_permit(const struct weir_guard *guard,
                                         const struct weir_permit *permit)
{
    return permit->seat < WEIR__GUARD_SEATS && permit->seat < weir__get(&guard->record->seats) &&
           weir__permit_weight(permit->word) != 0;
}
/* Fills in word and seat; false: all are taken.  ref: see permits-by-key.h. */
bool weir__seat_put(struct weir_guard *guard, const struct weir__guard_plan *plan, uint64_t word,
                    uint64_t ref, struct weir_permit *permit);
/* Takes a permit's word out of its seat.  False: it has another word, or none. */
static inline bool weir__seat_free(struct weir_guard *guard, uint32_t seat, uint64_t word)
{
    uint64_t pairs = weir__get(&guard->record->keyed) | weir__get(&guard->held.seats[seat].ref);

    if (__builtin_expect(pairs != 0, 0)) /* by key, or renewed */
        return weir__held_free(&guard->held, seat, word);
    return weir__swap(&guard->held.seats[seat].word, word, weir__permit_freed(word));
}
/* Before a seat is taken: sweeps if nobody has for long. */
void weir__permits_catch_up(struct weir_guard *guard, const struct weir__guard_plan *plan,
                            weir_time now);
/* Takes back expired permits of a guard that nobody asks any more. */
void weir__permits_expire(struct weir_guard *guard, weir_time now);
/* Takes back expired permits, and corrects in_flight, if that is due: the ticker does. */
void weir__permits_sweep(struct weir_guard *guard, const struct weir__guard_plan *plan,
                         weir_time now);

/* Times from 0 to 146 years, so that spans can be added. */
static inline weir_time weir__guard_time(weir_time now)
{
    return now < 0 ? 0 : now > INT64_MAX / 2 ? INT64_MAX / 2 : now;
}

/* Classes beyond the guard's are its last one. */
static inline uint32_t weir__guard_class(const struct weir__guard_plan *plan,
                                         const struct weir_ask *ask)
{
    return ask->user_class < plan->shed.classes ? ask->user_class
                                                : (uint32_t)plan->shed.classes - 1;
}

/* The lease to go by: permits that are out may have been given for longer than the present one. */
static inline weir_time weir__guard_lease(const struct weir__guard_record *r,
                                          const struct weir__guard_plan *plan)
{
    weir_time longest = weir__get(&r->lease);

    return longest > plan->lease && longest <= WEIR__LEASE_MAX ? longest : plan->lease;
}

/* Likewise for probes, before they count as lost. */
static inline weir_time weir__guard_patience(const struct weir__guard_record *r,
                                             const struct weir__guard_plan *plan)
{
    return plan->breaker.patience + weir__guard_lease(r, plan) - plan->lease;
}

/* Permits have been given back; returns how many were out. */
static inline int64_t weir__in_flight_lower(struct weir__guard_record *r, uint32_t permits)
{
    if (__builtin_expect(permits > 1, 0))
        weir__count(&r->extra, 1 - (int64_t)permits);
    return __atomic_fetch_sub(&r->in_flight, permits, __ATOMIC_SEQ_CST); /* then see bell.c */
}

/* An enter (permits below 0) or an exit, for the mean number of permits out: see tick.c. */
static inline void weir__in_flight_moment(struct weir__guard_record *r,
                                          const struct weir__guard_plan *plan, int64_t permits,
                                          weir_time now)
{
    if (plan->controller.row != NULL)
        weir__count(&r->moments, permits * (now - weir__get(&r->tick_at)));
}

/* Counters are bytes of a file, which may be damaged: their sum may go round. */
static inline int64_t weir__sum(int64_t a, uint64_t b)
{
    return (int64_t)((uint64_t)a + b);
}

/* Asks in flight, not permits. */
static inline int64_t weir__guard_calls(const struct weir__guard_record *r)
{
    return weir__sum(weir__get(&r->in_flight), -(uint64_t)weir__get(&r->extra));
}

/* What the controller has found, a number of permits or a rate.  Until the next look that may be of
 * options before these: another kind of limit, or beyond their bounds. */
static inline int64_t weir__guard_found(const struct weir__guard_record *r,
                                        const struct weir__guard_plan *plan)
{
    const struct weir__controller_plan *c = &plan->controller;
    bool fits = weir__acquire(&r->controller) == c->kind; /* first: see run_controller */
    int64_t found = weir__get(&r->limit);

    if (__builtin_expect(found <= 0 || !fits, 0))
        return c->initial;
    return found < c->min ? c->min : found > c->max ? c->max : found;
}

/* The present number of permits. */
static inline int64_t weir__guard_limit(const struct weir__guard_record *r,
                                        const struct weir__guard_plan *plan)
{
    if (plan->controller.row == NULL || plan->controller.rate)
        return plan->max;
    return weir__guard_found(r, plan);
}

/* Since it was made: asks that passed shedding and found no permit. */
static inline int64_t weir__guard_wanting(const struct weir__guard_record *r)
{
    return weir__sum(weir__get(&r->window.busy), (uint64_t)weir__get(&r->busy));
}

/* system.rate counts requests that were let in, each once: by n of -1 one is counted again. */
static inline void weir__guard_uncount(struct weir_guard *guard, int64_t n)
{
    weir__count(&guard->record->uncounted, n);
}

/* guard-info.c -- all times of work that succeeded. */
void weir__guard_durations(const struct weir_guard *guard, struct weir__durations *out);

int64_t weir__guard_entered(const struct weir__guard_record *r); /* since it was made */

/* tick.c -- sets the limit, the cuts and the degradation from the results, at most this often. */
weir_time weir__guard_tick_span(const struct weir__controller_plan *controller);
void weir__guard_tick(struct weir_guard *guard, const struct weir__guard_plan *plan, weir_time now);
/* Only the sweep of permits, of a guard that nobody asks. */
void weir__guard_sweep(struct weir_guard *guard, weir_time now);
static inline bool weir__guard_is_due(const struct weir_guard *guard,
                                      const struct weir__guard_plan *plan, weir_time now)
{
    int64_t left = weir__get(&guard->record->tick_at) - now;

    /* Due; or much further off than it can be, because the clock has stepped.  Callers' clocks may
     * be seconds apart. */
    return __builtin_expect((uint64_t)left - 1 >= (uint64_t)(plan->tick + WEIR__SKEW), 0);
}

/* degradation.c */
void weir__degradation_raise(struct weir_guard *guard, const struct weir__guard_plan *plan,
                             weir_time now);
/* Like weir_degradation_set, but by rules: WEIR_DEGRADATION_AUTO takes back only a level that rules
 * have set. */
void weir__degradation_push(struct weir_table *table, int degradation, weir_time now);

/* guard-info.c */
void weir__guard_note(struct weir__guard_record *r, enum weir_guard_event_kind kind, int32_t from,
                      int32_t to, weir_time now);
void weir__guard_note_move(struct weir__guard_record *r, struct weir__breaker_move move,
                           weir_time now);
int64_t weir__window_succeeded(const struct weir__window *w);
/* Permits that came back without a result. */
int64_t weir__guard_resultless(const struct weir__guard_record *r);
/* Like weir_guard_get, without doing the work that is due. */
void weir__guard_peek(struct weir_guard *guard, weir_time now, struct weir_guard_info *out);

#endif
