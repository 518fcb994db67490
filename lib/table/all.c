/* all.c -- several limits at once: every item is taken, or none is.
 *
 *     1. Look at each item without touching anything.  If one refuses, that is the answer, and nothing was written.
 *     2. Take the desks of all groups involved, in ascending order, so that two such calls cannot wait for each other.
 *     3. Find each key's slot, and pin it: whoever decides on one of these keys meanwhile waits at the desk.
 *     4. Run the steps on copies.  If all grant, write the copies; else lift the pins.
 *
 * The pin is a bit in the state that leaves the rest of it readable, so a process killed in here leaves states that are right as they are:
 * the next at the desk lifts the pins.  Killed while it writes the copies, some keys are charged for an ask whose caller is dead.
 */
#include <assert.h>

#include "table/slot.h"

struct part {
    struct weir_limiter *limiter;
    const struct weir__era *era;
    struct weir__home home;
    void *slot;
    size_t same; /* the first part with this slot: its copy of the state is the one that counts */
    uint64_t state[2];
};

static void merge(struct weir_decision *all, const struct weir_decision *d, size_t i)
{
    bool first_refusal = all->allowed && !d->allowed;
    bool tighter = all->allowed && d->allowed && d->remaining < all->remaining;
    weir_time wait = d->wait > all->wait ? d->wait : all->wait, retry = d->retry > all->retry ? d->retry : all->retry;
    weir_time reset = d->reset > all->reset ? d->reset : all->reset;
    bool allowed = all->allowed && d->allowed;
    if (i == 0 || first_refusal || tighter) {
        *all = *d;
        all->item = (uint16_t)i;
    }
    if (retry == WEIR_NEVER && all->reason == WEIR_LIMITED)
        all->reason = WEIR_TOO_BIG;
    all->allowed = allowed;
    all->wait = allowed ? wait : 0;
    all->retry = retry;
    all->reset = reset;
}

static bool look(const struct weir_item *items, size_t n, struct part *parts, struct weir_decision *all)
{
    *all = (struct weir_decision){ .allowed = true };
    for (size_t i = 0; i < n; i++) {
        struct weir_decision d;
        parts[i].limiter = items[i].limiter;
        parts[i].home = weir__home_of(items[i].limiter, items[i].ask.key);
        weir__decide(items[i].limiter, parts[i].home, &items[i].ask, false, &d);
        merge(all, &d, i);
    }
    return all->allowed;
}

/* ------------------------------------------------------------- desks ---- */

static uint64_t desks_of(const struct part *parts, size_t n)
{
    uint64_t set = 0;
    for (size_t i = 0; i < n; i++)
        set |= (uint64_t)1 << weir__desk_of(parts[i].home.group);
    return set;
}

static void lock_desks(struct weir_table *table, uint64_t set)
{
    for (uint64_t desk = 0; desk < WEIR__DESKS; desk++)
        if (set >> desk & 1)
            weir__desk_lock(table, desk);
}

static void unlock_desks(struct weir_table *table, uint64_t set)
{
    for (uint64_t desk = WEIR__DESKS; desk-- > 0;)
        if (set >> desk & 1)
            weir__desk_unlock(table, desk);
}

_Static_assert(WEIR__DESKS <= 64, "a set of desks is a word");

/* ------------------------------------------------------------- slots ---- */

/* Finds and pins the slots.  False if a key's whole window is in use by this very call. */
static bool gather(const struct weir_item *items, size_t n, struct part *parts)
{
    void *mine[WEIR_ALL_MAX];
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        p->era = weir__limiter_era(p->limiter);
        p->slot = p->limiter->kind == WEIR__LARGE ? (void *)weir__large_claim_locked(p->limiter, p->home, items[i].ask.now, mine, i)
                                    : weir__slot_claim_locked(p->limiter, p->home, items[i].ask.now, mine, i);
        mine[i] = p->slot;
        if (p->slot == NULL)
            return false;
        for (p->same = 0; parts[p->same].slot != p->slot; p->same++)
            ;
        if (p->same == i && p->limiter->kind != WEIR__LARGE)
            weir__slot_open_locked(p->limiter, p->era, p->slot, items[i].ask.now, p->state);
    }
    return true;
}

static void *state_of(struct part *parts, size_t i)
{
    return parts[i].limiter->kind == WEIR__LARGE ? (void *)((struct weir__large *)parts[i].slot)->state : parts[parts[i].same].state;
}

/* Lifts the pins, writing the copies if the items were granted. */
static void release(struct part *parts, size_t n, bool granted)
{
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        if (p->slot == NULL || p->same < i || p->limiter->kind == WEIR__LARGE)
            continue;
        if (granted)
            weir__slot_close_locked(p->limiter, p->era, p->slot, p->state);
        else
            weir__slot_unpin_locked(p->limiter->table, p->slot);
    }
}

/* ------------------------------------------------------------- steps ---- */

static struct weir_ask clip(const struct part *p, const struct weir_ask *ask)
{
    struct weir_ask a = *ask;
    if (p->limiter->table->narrow && p->limiter->kind != WEIR__LARGE && a.wait_max > WEIR__PACKED_WAIT_MAX)
        a.wait_max = WEIR__PACKED_WAIT_MAX;
    return a;
}

/* What all items on the slot of the first of them cost together: several asks of one large state are decided as one. */
static int64_t cost_together(const struct weir_item *items, size_t n, const struct part *parts, size_t first)
{
    int64_t sum = 0;
    for (size_t i = first; i < n; i++)
        if (parts[i].same == first && items[i].ask.cost > 0)
            sum = items[i].ask.cost > INT64_MAX - sum ? INT64_MAX : sum + items[i].ask.cost;
    return sum;
}

/* Small states are copies, and change only if all grant.  Large ones have no copy: they are looked at here, and taken from when all have
 * granted. */
static bool run_steps(const struct weir_item *items, size_t n, struct part *parts, struct weir_decision *all)
{
    struct weir_decision d;
    *all = (struct weir_decision){ .allowed = true };
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        struct weir_ask ask = clip(p, &items[i].ask);
        if (p->limiter->kind == WEIR__LARGE && p->same < i)
            continue;
        if (p->limiter->kind == WEIR__LARGE && ask.cost >= 0)
            ask.cost = cost_together(items, n, parts, i);
        weir__step(&p->era->plan, state_of(parts, i), &ask, all->allowed && p->limiter->kind != WEIR__LARGE, &d);
        merge(all, &d, i);
    }
    for (size_t i = 0; all->allowed && i < n; i++)
        if (parts[i].limiter->kind == WEIR__LARGE && parts[i].same == i) {
            struct weir_ask ask = items[i].ask;
            ask.cost = cost_together(items, n, parts, i);
            weir__step(&parts[i].era->plan, state_of(parts, i), &ask, true, &d);
        }
    return all->allowed;
}

bool weir_take_all(const struct weir_item *items, size_t n, struct weir_decision *decision)
{
    struct part parts[WEIR_ALL_MAX];
    assert(n <= WEIR_ALL_MAX);
    if (n == 0) {
        *decision = (struct weir_decision){ .allowed = true };
        return true;
    }
    if (n == 1)
        return weir_take(items[0].limiter, &items[0].ask, decision);
    struct weir_table *table = items[0].limiter->table;
    for (size_t i = 0; i < n; i++) {
        assert(items[i].limiter->table == table);
        parts[i].slot = NULL;
    }
    if (!look(items, n, parts, decision))
        return false;
    uint64_t desks = desks_of(parts, n);
    lock_desks(table, desks);
    bool granted = gather(items, n, parts) && run_steps(items, n, parts, decision);
    release(parts, n, granted);
    unlock_desks(table, desks);
    if (!granted && decision->allowed) { /* more keys of one window than it has slots: there is no room to remember them all */
        decision->allowed = false;
        weir__refuse(decision, WEIR_NEVER);
    }
    return granted;
}
