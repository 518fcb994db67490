/* exit.c -- exit: work has ended, and how.
 *
 * Takes the permit's word out of its seat (only one can: exit or a sweep), lowers the number in
 * flight, and tells the breaker and the window the outcome.
 */
#include "guard/guard.h"

#define TOOK_MAX (86400 * WEIR_SECOND) /* so that times can be summed */

/* False: its lease was over, and another permit may have the seat.  `out` is how many were out. */
static inline bool take_back(struct weir_guard *guard, struct weir_permit *permit, int64_t *out)
{
    uint64_t word = permit->word;
    bool good = weir__guard_is_permit(guard, permit);

    permit->word = 0;
    if (__builtin_expect(!good || !weir__seat_free(guard, permit->seat, word), 0))
        return false;
    *out = weir__in_flight_lower(guard->record, weir__permit_weight(word));
    return true;
}

/* No permit was free.  Only an adaptive limit wants to know. */
static inline bool was_full(const struct weir__guard_record *r, int64_t out)
{
    return (uint64_t)weir__get(&r->limit) - 1 < (uint64_t)out; /* 0: there is none */
}

static inline void note_least(struct weir__window *w, weir_time took)
{
    int64_t least = weir__get(&w->min);

    while (__builtin_expect(least == 0 || took + 1 < least, 0) &&
           !__atomic_compare_exchange_n(&w->min, &least, took + 1, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
}

static inline void add_result(struct weir__window *w, enum weir_outcome outcome, weir_time took)
{
    if (__builtin_expect(outcome != WEIR_SUCCEEDED, 0)) {
        weir__count(&w->results[outcome], 1);
        weir__count(&w->other_sum, took);
        return;
    }
    weir__count(&w->sum, took);
    weir__count(&w->times.counts[weir__bin_of(took)], 1);
    note_least(w, took);
}

/* A call that timed out counts as infinitely slow. */
static inline void tell_breaker(const struct weir__guard_plan *plan, struct weir__guard_record *r,
                                uint32_t probe, enum weir_outcome outcome, weir_time took,
                                weir_time now)
{
    struct weir__breaker_move move =
        weir__breaker_tell(&plan->breaker, &r->breaker, probe, outcome != WEIR_SUCCEEDED,
                           outcome == WEIR_TIMED_OUT ? INT64_MAX : took, now);

    if (__builtin_expect(move.from != move.to, 0))
        weir__guard_note_move(r, move, now);
}

/* `now` is a weir__guard_time. */
static inline __attribute__((always_inline)) bool exit_at(struct weir_guard *guard,
                                                          struct weir_permit *permit,
                                                          enum weir_outcome outcome, weir_time took,
                                                          weir_time now, bool rings)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);
    struct weir__guard_record *r = guard->record;
    uint64_t word = permit->word;
    int64_t out;

    if (!take_back(guard, permit, &out))
        return false;
    if (rings)
        weir__guard_tell_waiters(guard);
    if (__builtin_expect(was_full(r, out), 0) && outcome <= WEIR_FAILED)
        weir__count(&r->window.full, 1);
    took = took < 0 ? 0 : took > TOOK_MAX ? TOOK_MAX : took;
    weir__in_flight_moment(r, plan, weir__permit_weight(word), now);
    if (__builtin_expect((unsigned)outcome >= WEIR_IGNORED, 0)) {
        weir__count(&r->totals.ignored, 1);
        weir__guard_give_all(guard, plan, word);
        return true;
    }
    if (plan->breaker.on)
        tell_breaker(plan, r, weir__permit_probe(word), outcome, took, now);
    add_result(&r->window, outcome, took);
    if (weir__guard_is_due(guard, plan, now))
        weir__guard_tick(guard, plan, now);
    return true;
}

bool weir_exit_after(struct weir_guard *guard, struct weir_permit *permit,
                     enum weir_outcome outcome, weir_time took, weir_time now)
{
    return exit_at(guard, permit, outcome, took, weir__guard_time(now), true);
}

bool weir_exit(struct weir_guard *guard, struct weir_permit *permit, enum weir_outcome outcome,
               weir_time now)
{
    now = weir__guard_time(now);
    return exit_at(guard, permit, outcome, now - weir__guard_time(permit->since), now, true);
}

bool weir__guard_exit(struct weir_guard *guard, struct weir_permit *permit,
                      enum weir_outcome outcome, weir_time took, weir_time now)
{
    now = weir__guard_time(now);
    took = took < 0 ? now - weir__guard_time(permit->since) : took;
    return exit_at(guard, permit, outcome, took, now, false);
}

void weir__guard_undo(struct weir_guard *guard, struct weir_permit *permit)
{
    uint64_t word = permit->word;
    int64_t out;

    if (!take_back(guard, permit, &out))
        return;
    weir__guard_tell_waiters(guard);
    weir__guard_give_all(guard, weir__guard_plan_of(guard), word);
}
