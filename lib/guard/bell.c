/* bell.c -- wakes waiters of a guard, in all processes.
 *
 * Each guard has a word, `wanted`; the table has the bell, one for all guards, so that a thread can
 * sleep for several.  Exit looks at `wanted` alone, in a cache line that it has just written, so it
 * costs next to nothing if nobody waits.  The first that finds it set clears it and rings; waiters
 * set it again before they look again.  So nobody counts waiters, and one that was killed costs one
 * ring.
 *
 *     waiter   wanted = 1, looks for a permit, sleeps while the bell is as it was before
 *     exit     gives the permit back, sees wanted, clears it, bell + 1, wakes
 *
 * Either the waiter sees the permit, or exit sees `wanted`.
 */
#include "guard/guard.h"

uint32_t weir__guard_want(struct weir_guard *guard)
{
    uint32_t bell = weir__acquire(&guard->table->header->bell);

    __atomic_exchange_n(&guard->record->wanted, 1, __ATOMIC_SEQ_CST);
    return bell;
}

void __attribute__((noinline, cold)) weir__guard_ring(struct weir_guard *guard)
{
    uint32_t *bell = &guard->table->header->bell;

    if (__atomic_exchange_n(&guard->record->wanted, 0, __ATOMIC_SEQ_CST) == 0)
        return; /* another was quicker */
    __atomic_fetch_add(bell, 1, __ATOMIC_SEQ_CST);
    weir__clock_wake_shared(bell);
}

void weir__guard_pass_on(struct weir_guard *guard)
{
    const struct weir__guard_record *r = guard->record;

    if (__builtin_expect(weir__get(&r->wanted) == 0, 1))
        return;
    if (weir__get(&r->in_flight) < weir__guard_limit(r, weir__guard_plan_of(guard)))
        weir__guard_ring(guard);
}
