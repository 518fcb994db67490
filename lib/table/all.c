/* all.c -- several limits at once: every item is taken, or none is.
 *
 *     1. Items on one key of one limiter become one ask of what they cost together.
 *     2. Look at each without touching anything.  If one refuses, that is the answer, and nothing was taken.
 *     3. Take the desks of all groups involved, in ascending order, so that two such calls cannot wait for each other.
 *     4. Find each key's slot, and pin it: whoever decides on one of these keys meanwhile waits at the desk.
 *     5. Run the steps on copies.  If all grant, write the copies; else lift the pins.
 *
 * The pin is a bit in the state that leaves the rest of it readable, so a process killed in here leaves states that are right as they are:
 * the next at the desk lifts the pins.  Killed while it writes the copies, some keys are charged for an ask whose caller is dead.
 */
#include <assert.h>

#include "table/slot.h"

/* What is asked of one key of one limiter. */
struct part {
    struct weir_limiter *limiter;
    const struct weir__era *era;
    struct weir__home home;
    struct weir_ask ask;
    size_t item; /* the first that asks it */
    void *slot;  /* NULL: costs nothing, so that there is nothing to write */
    uint64_t state[2];
    struct weir_decision looked;
};

static void merge(struct weir_decision *all, const struct weir_decision *d, size_t item, bool first)
{
    bool first_refusal = all->allowed && !d->allowed;
    bool tighter = all->allowed && d->allowed && d->remaining < all->remaining;
    weir_time wait = d->wait > all->wait ? d->wait : all->wait, retry = d->retry > all->retry ? d->retry : all->retry;
    weir_time reset = d->reset > all->reset ? d->reset : all->reset;
    bool allowed = all->allowed && d->allowed;
    if (first || first_refusal || tighter) {
        *all = *d;
        all->item = (uint16_t)item;
    }
    if (retry == WEIR_NEVER && all->reason == WEIR_LIMITED)
        all->reason = WEIR_TOO_BIG;
    all->allowed = allowed;
    all->wait = allowed ? wait : 0;
    all->retry = retry;
    all->reset = reset;
}

/* One more item for a key that is asked already: the costs add up, the least patient decides how long, the latest moment counts. */
static void add_item(struct weir_ask *together, const struct weir_ask *more)
{
    if (more->cost < 0 || together->cost < 0)
        together->cost = -1; /* a mistake stays one */
    else
        together->cost = more->cost > INT64_MAX - together->cost ? INT64_MAX : together->cost + more->cost;
    together->wait_max = more->wait_max < together->wait_max ? more->wait_max : together->wait_max;
    together->now = more->now > together->now ? more->now : together->now;
}

/* The items as parts; returns how many. */
static size_t join(const struct weir_item *items, size_t n, struct part *parts)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir__home home = weir__home_of(items[i].limiter, items[i].ask.key);
        size_t p = 0;
        while (p < count && (parts[p].limiter != items[i].limiter || parts[p].home.tag != home.tag))
            p++;
        if (p < count)
            add_item(&parts[p].ask, &items[i].ask);
        else
            parts[count++] = (struct part){ .limiter = items[i].limiter, .home = home, .ask = items[i].ask, .item = i };
    }
    return count;
}

static bool look(struct part *parts, size_t n, struct weir_decision *all)
{
    *all = (struct weir_decision){ .allowed = true };
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        if (!weir__decide(p->limiter, p->home, &p->ask, false, &p->looked)) {
            struct weir_ask nothing = { .now = p->ask.now };
            struct weir_decision d;
            weir__decide(p->limiter, p->home, &nothing, true, &d); /* a clock that has stepped back is written down even by a refusal */
        }
        merge(all, &p->looked, p->item, i == 0);
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

/* Finds and pins the slots.  There is always one to be had: a key has more slots within reach than a call has items. */
static void gather(struct part *parts, size_t n)
{
    void *mine[WEIR_ALL_MAX];
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        bool large = p->limiter->kind == WEIR__LARGE;
        mine[i] = NULL;
        if (p->ask.cost == 0)
            continue;
        mine[i] = p->slot = large ? (void *)weir__large_claim_locked(p->limiter, p->home, p->ask.now, mine, i)
                                  : weir__slot_claim_locked(p->limiter, p->home, p->ask.now, mine, i);
        p->era = large ? weir__limiter_era(p->limiter) : weir__slot_open_locked(p->limiter, p->slot, p->ask.now, p->state);
    }
}

_Static_assert(WEIR_ALL_MAX <= WEIR__LARGE_GROUP && WEIR_ALL_MAX <= WEIR__WINDOW_SLOTS, "a slot for every item, wherever their keys lie");

/* Lifts the pins, writing the copies if the items were granted. */
static void release(struct part *parts, size_t n, bool granted)
{
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        if (p->slot == NULL || p->limiter->kind == WEIR__LARGE)
            continue;
        if (granted)
            weir__slot_close_locked(p->limiter, p->era, p->slot, p->state);
        else
            weir__slot_unpin_locked(p->limiter->table, p->slot);
    }
}

/* ------------------------------------------------------------- steps ---- */

/* Small states are copies, and written only if all grant.  Large ones have no copy: they are looked at here, and taken from when all have
 * granted. */
static bool run_steps(struct part *parts, size_t n, struct weir_decision *all)
{
    struct weir_decision d;
    *all = (struct weir_decision){ .allowed = true };
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        bool large = p->limiter->kind == WEIR__LARGE;
        if (p->limiter->kind == WEIR__NARROW && p->ask.wait_max > WEIR__PACKED_WAIT_MAX)
            p->ask.wait_max = WEIR__PACKED_WAIT_MAX;
        if (p->slot == NULL)
            d = p->looked;
        else
            weir__step(&p->era->plan, large ? ((struct weir__large *)p->slot)->state : p->state, &p->ask, !large, &d);
        merge(all, &d, p->item, i == 0);
    }
    for (size_t i = 0; all->allowed && i < n; i++)
        if (parts[i].slot != NULL && parts[i].limiter->kind == WEIR__LARGE)
            weir__step(&parts[i].era->plan, ((struct weir__large *)parts[i].slot)->state, &parts[i].ask, true, &d);
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
    for (size_t i = 0; i < n; i++)
        assert(items[i].limiter->table == table);
    size_t count = join(items, n, parts);
    if (!look(parts, count, decision))
        return false;
    uint64_t desks = desks_of(parts, count);
    lock_desks(table, desks);
    gather(parts, count);
    bool granted = run_steps(parts, count, decision);
    release(parts, count, granted);
    unlock_desks(table, desks);
    return granted;
}
