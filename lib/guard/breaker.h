/* breaker.h -- a circuit breaker: closed, open, half-open.
 *
 * The plan is the checked options.  The state is shared by threads and processes, changes only by
 * atomic operations, and all zeros is a fresh one.  No lock, no clock, no allocation.
 */
#ifndef WEIR_GUARD_BREAKER_H
#define WEIR_GUARD_BREAKER_H

#include "base/atomic.h"
#include "guard/options.h"

#define WEIR__BREAKER_PARTS     16                 /* of a time window */
#define WEIR__BREAKER_CALLS_MAX 1024               /* of a count window */
#define WEIR__BREAKER_PROBES    255                /* at most */
#define WEIR__BREAKER_PACE      (10 * WEIR_SECOND) /* a count window knows its pace for as long */
#define WEIR__BREAKER_OPEN_FOR  (5 * WEIR_SECOND)  /* by default */
#define WEIR__PROBE_MAX \
    63 /* numbers of a probe's episode; not the number of probes, which is WEIR__BREAKER_PROBES */

/* All defaults are filled in; every number fits. */
struct weir__breaker_plan {
    bool on;
    bool above;
    int32_t error_percent, errors, slow_percent; /* 0: does not count */
    weir_time slow;                              /* 0: nothing is slow */
    weir_time part; /* of a time window; of a count window, of the time that its pace is known */
    int32_t calls;  /* of a count window; 0: it is a time window */
    int32_t min_calls, probes, jitter_percent;
    weir_time open_for, open_max;
    /* Half-open: this long after the last probe went out, those still out count as lost; 0:
     * never. */
    weir_time patience;
    uint64_t seed;                  /* of the jitter */
    const struct weir_clock *clock; /* of the table that it is in; NULL: in none */
};

/* Calls of one part of the window: changed in one swap, so nothing is lost when it is reused. */
struct weir__breaker_part {
    _Alignas(16) uint64_t when; /* number of the part (44 bits), episode (20 bits) */
    uint64_t counts;            /* calls, errors, slow: 21 bits each */
};

/* Sixteen outcomes of a count window in a word: for each an error bit and a slow bit, and their
 * episode. */
#define WEIR__BREAKER_WORDS (WEIR__BREAKER_CALLS_MAX / 16)

#define WEIR__BREAKER_EVENTFUL \
    ((uint64_t)0xF) /* bits of the gate: all zero while it is closed and not forced */

struct weir__breaker {
    _Alignas(64) uint64_t gate; /* state, force, episode, back-off, probes out, back, bad and slow;
                                   swapped together with `at` */
    int64_t at; /* open: when it will be tried; half-open: when the last probe went out; else when
                   it got into this state */
    uint64_t latest; /* the newest part with a call */
    uint64_t skew;   /* parts to add, because the clock has stepped back by as many */
    /* Time window: ~episode while a success can open it, because only min_calls is missing. */
    uint64_t watch;
    uint64_t told; /* count window: calls so far, below twice the window, and their episode */
    int64_t moved; /* when a call last ended that was not slow or has succeeded, less a millisecond
                      at most ... */
    int64_t moved_from; /* ... and when the youngest of those began, likewise */
    _Alignas(64) struct weir__breaker_part parts[WEIR__BREAKER_PARTS];
    uint64_t ring[WEIR__BREAKER_WORDS];
};

/* A change of state; from == to: none. */
struct weir__breaker_move {
    uint8_t from, to; /* enum weir_breaker_state */
};

struct weir__breaker_view {
    /* As an ask at this moment would find it: open until it is tried. */
    enum weir_breaker_state state;
    enum weir_force force;
    weir_time retry_at;
    /* In the window; open: in the window that opened it; half-open: of the probes that are back. */
    int64_t calls, errors, slow;
};

int weir__breaker_plan_make(struct weir__breaker_plan *out,
                            const struct weir_breaker_options *options, uint64_t seed,
                            struct weir_error *error);
void weir__breaker_fill(struct weir_breaker_options *options); /* fills in the defaults */
/* open_max, if it is not given. */
weir_time weir__breaker_open_max_default(weir_time open_for);
/* How long it stays open when it opens for the back_off-th time in a row. */
weir_time weir__breaker_open_span(const struct weir__breaker_plan *plan, unsigned back_off,
                                  uint64_t episode);

/* How long an open one that will be tried `at` waits; 0: it is tried now. */
weir_time weir__breaker_wait(const struct weir__breaker_plan *plan, weir_time at, weir_time now);

/* May work begin?  If so, *probe is 0, or 1 to WEIR__PROBE_MAX: then it is a probe, and that number
 * must come back by tell or by give.  If not, *retry says when to ask again (forced open:
 * WEIR_NEVER; probes are out: an estimate of when they are back). */
bool weir__breaker_ask(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                       weir_time now, uint32_t *probe, weir_time *retry,
                       struct weir__breaker_move *move);

/* The probe was not used, or its lease is over: another call may try.  A probe of an earlier
 * episode changes nothing. */
void weir__breaker_give(struct weir__breaker *b, uint32_t probe);

/* The probe is still at work: it is not lost. */
void weir__breaker_renew(struct weir__breaker *b, uint32_t probe, weir_time now);
/* It waits for its own client, and may do so for long: another goes out after an open time. */
void weir__breaker_idle(struct weir__breaker *b, uint32_t probe);

/* The outcome.  `bad`: an error; `took`: its time.  Work that began before the breaker opened does
 * not count as a probe.  The probes have decided as soon as the rest could not change the
 * result. */
struct weir__breaker_move weir__breaker_tell(const struct weir__breaker_plan *plan,
                                             struct weir__breaker *b, uint32_t probe, bool bad,
                                             weir_time took, weir_time now);

/* Calls that are in flight for longer than `slow`: they count as slow, and again when they end. */
struct weir__hanging {
    int64_t calls;    /* without probes; that began since it closed */
    int64_t alone;    /* of these, those since whose beginning nothing has moved */
    int64_t recent;   /* those that have been late for no longer than the window */
    weir_time oldest; /* when the first of these began */
    bool overrun;     /* see weir__breaker_is_overrun */
    uint8_t probes[WEIR__PROBE_MAX + 1]; /* by number */
};
struct weir__breaker_move weir__breaker_hang(const struct weir__breaker_plan *plan,
                                             struct weir__breaker *b,
                                             const struct weir__hanging *hanging, weir_time now);

/* Whether more is out than can be worked off in time: as fast as calls have ended since the oldest
 * late one began, what comes now would be out for longer than that. */
#define WEIR__BREAKER_OVERRUN 6 /* times `slow` */
bool weir__breaker_is_overrun(const struct weir__breaker_plan *plan, const struct weir__breaker *b,
                              weir_time oldest, int64_t out, weir_time now);

/* Nothing has moved for longer than a call may take; or one that began then is out for so long that
 * it matters no more whether others move.  Also if the clock has stepped back by more than a
 * second: less may be another thread, whose time is later than `now`. */
#define WEIR__BREAKER_QUEUED 3 /* times `slow` */
static inline bool weir__breaker_is_stuck(const struct weir__breaker *b, weir_time slow,
                                          weir_time began, weir_time now)
{
    uint64_t since = (uint64_t)now - (uint64_t)weir__get(&b->moved);

    return since + WEIR_SECOND > (uint64_t)slow + WEIR_SECOND ||
           (now - began) / WEIR__BREAKER_QUEUED > slow;
}

/* By hand; each time its window starts empty.  Forced closed, it counts but does not open; no
 * longer forced, it is closed. */
void weir__breaker_force(struct weir__breaker *b, enum weir_force force, weir_time now);

void weir__breaker_look(const struct weir__breaker_plan *plan, const struct weir__breaker *b,
                        weir_time now, struct weir__breaker_view *out);

#endif
