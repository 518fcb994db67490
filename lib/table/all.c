/* all.c -- several limits at once: every item is taken, or none is.
 *
 *     1. Items on one key of one limiter become one ask of what they cost together.
 *     2. Look at each without touching anything, running its step on a copy.  If one refuses, that is the answer, and nothing was taken.
 *     3. Pin each slot, if it is as it was: whoever decides on one of these keys meanwhile waits.
 *     4. Write the copies, which lifts the pins.
 *
 * That is the quick way, with a hand (desk.c).  When something is in its way (a large state, a key that is new to a full group, a state
 * under an older limit, a slot
 * that somebody else has changed or pinned) it is left as if nothing had been, and the thorough one is taken:
 *
 *     3. Take the desks of all groups involved, in ascending order, so that two such calls cannot wait for each other.
 *     4. Find each key's slot, and pin it.
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
    const struct weir_ask *ask; /* the item's, or `own` */
    size_t item;                /* the first that asks it */
    void *slot;                 /* NULL: costs nothing, so that there is nothing to write */
    uint64_t before[2];         /* the quick way: the slot's words as they were looked at */
    uint64_t state[2];
    struct weir_decision decision;
    struct weir_ask own; /* if it had to be changed */
};

/* The answer to all: the first that refused, or the tightest; the longest times. */
static bool answer(const struct part *parts, size_t n, struct weir_decision *all)
{
    const struct part *named = &parts[0];
    weir_time wait = 0, retry = 0, reset = 0;
    for (size_t i = 0; i < n; i++) {
        const struct weir_decision *d = &parts[i].decision;
        if (named->decision.allowed && (!d->allowed || d->remaining < named->decision.remaining))
            named = &parts[i];
        wait = d->wait > wait ? d->wait : wait;
        retry = d->retry > retry ? d->retry : retry;
        reset = d->reset > reset ? d->reset : reset;
    }
    *all = named->decision;
    all->item = (uint16_t)named->item;
    all->wait = all->allowed ? wait : 0;
    all->retry = retry;
    all->reset = reset;
    if (retry == WEIR_NEVER && all->reason == WEIR_LIMITED)
        all->reason = WEIR_TOO_BIG;
    return all->allowed;
}

/* The part's ask, to be changed. */
static struct weir_ask *own_ask(struct part *p)
{
    if (p->ask != &p->own)
        p->own = *p->ask;
    p->ask = &p->own;
    return &p->own;
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

/* The items as parts; returns how many.  Member by member: to zero the rest would cost more than all else here. */
static size_t join(const struct weir_item *items, size_t n, struct part *parts)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir__home home = weir__home_of(items[i].limiter, items[i].ask.key);
        size_t p = 0;
        while (p < count && (parts[p].limiter != items[i].limiter || parts[p].home.tag != home.tag))
            p++;
        if (p < count) {
            add_item(own_ask(&parts[p]), &items[i].ask);
            continue;
        }
        parts[count].limiter = items[i].limiter;
        parts[count].home = home;
        parts[count].ask = &items[i].ask;
        parts[count].item = i;
        parts[count++].slot = NULL;
    }
    return count;
}

static bool look(struct part *parts, size_t n, struct weir_decision *all)
{
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        if (weir__decide(p->limiter, p->home, p->ask, false, &p->decision))
            continue;
        struct weir_ask nothing = { .now = p->ask->now };
        struct weir_decision d;
        weir__decide(p->limiter, p->home, &nothing, true, &d); /* a clock that has stepped back is written down even by a refusal */
    }
    return answer(parts, n, all);
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
        p->slot = NULL;
        if (p->ask->cost == 0)
            continue;
        mine[i] = p->slot = large ? (void *)weir__large_claim_locked(p->limiter, p->home, p->ask->now, mine, i)
                                  : weir__slot_claim_locked(p->limiter, p->home, p->ask->now, mine, i);
        p->era = large ? weir__limiter_era(p->limiter) : weir__slot_open_locked(p->limiter, p->slot, p->ask->now, p->state);
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
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        bool large = p->limiter->kind == WEIR__LARGE;
        if (p->limiter->kind == WEIR__NARROW && p->ask->wait_max > WEIR__PACKED_WAIT_MAX)
            own_ask(p)->wait_max = WEIR__PACKED_WAIT_MAX;
        if (p->slot != NULL)
            weir__step(&p->era->plan, large ? ((struct weir__large *)p->slot)->state : p->state, p->ask, !large, &p->decision);
    }
    bool granted = answer(parts, n, all);
    struct weir_decision d;
    for (size_t i = 0; granted && i < n; i++)
        if (parts[i].slot != NULL && parts[i].limiter->kind == WEIR__LARGE)
            weir__step(&parts[i].era->plan, ((struct weir__large *)parts[i].slot)->state, parts[i].ask, true, &d);
    return granted;
}

/* --------------------------------------------------------- the quick way ---- */

enum quick { REFUSED, GRANTED, IN_THE_WAY };

/* Copies the key's state from its slot, unless it is another key's, pinned, or kept under an older limit. */
static bool read_slot(struct part *p)
{
    p->era = weir__limiter_era(p->limiter);
    p->slot = p->limiter->kind == WEIR__NARROW ? (void *)weir__narrow_find(p->limiter->table, p->home)
                                               : (void *)weir__wide_find(p->limiter, p->home);
    if (p->slot == NULL) {
        p->before[0] = p->before[1] = p->state[0] = p->state[1] = 0;
        return true;
    }
    if (p->limiter->kind == WEIR__NARROW) {
        struct weir__narrow *s = p->slot;
        bool stepped;
        p->before[0] = weir__load(&s->word);
        if (p->before[0] & WEIR__PIN || weir__load(&s->tag) != p->home.tag)
            return false;
        p->state[0] = (uint64_t)p->ask->now;
        p->state[1] = (uint64_t)weir__unpack(&p->era->plan, p->before[0], p->ask->now, &stepped);
        return !stepped;
    }
    struct weir__wide *s = p->slot;
    weir__load_pair(s->state, p->before);
    p->state[0] = p->before[0];
    p->state[1] = p->before[1];
    return (p->before[0] & WEIR__PIN) == 0 && weir__load(&s->tag) == p->home.tag && weir__load(&s->owner) == p->era->owner;
}

/* Whether the quick way can have anything to do with such an ask at all. */
static bool is_plain(const struct part *p)
{
    return p->limiter->kind != WEIR__LARGE && p->ask->cost > 0 && (p->ask->now | p->ask->wait_max) >= 0 &&
           (p->limiter->kind == WEIR__WIDE || p->ask->wait_max <= WEIR__PACKED_WAIT_MAX);
}

/* The steps, on copies.  A refusal that would change its state has seen the clock step back, which has to be written down. */
static enum quick look_quickly(struct part *parts, size_t n, struct weir_decision *all)
{
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        if (!is_plain(p) || !read_slot(p))
            return IN_THE_WAY;
        uint64_t first = p->state[0], second = p->state[1];
        if (!weir__step(&p->era->plan, p->state, p->ask, true, &p->decision) && (p->state[0] != first || p->state[1] != second))
            return IN_THE_WAY;
    }
    return answer(parts, n, all) ? GRANTED : REFUSED;
}

/* Slots for keys that have none.  True if there were such: look again. */
static bool claim_slots(struct part *parts, size_t n)
{
    bool claimed = false;
    for (size_t i = 0; i < n; i++)
        if (parts[i].slot == NULL) {
            weir__slot_claim(parts[i].limiter, parts[i].home, parts[i].ask->now);
            claimed = true;
        }
    return claimed;
}

static bool pin_slot(struct part *p)
{
    uint64_t pinned[2] = { p->before[0] | WEIR__PIN, p->before[1] };
    bool narrow = p->limiter->kind == WEIR__NARROW;
    struct weir__wide *s = p->slot; /* the tag is the first word of either kind */
    if (narrow ? !weir__swap(&((struct weir__narrow *)p->slot)->word, p->before[0], pinned[0])
               : !weir__swap_pair(s->state, p->before, pinned))
        return false;
    if (weir__load(&s->tag) == p->home.tag && (narrow || weir__load(&s->owner) == p->era->owner))
        return true;
    weir__slot_unpin_locked(p->limiter->table, p->slot);
    return false;
}

/* Writes the copy, which lifts the pin.  The slot's owner stays: states under an older limit do not come this way. */
static inline void write_slot(const struct part *p)
{
    struct weir__wide *s = p->slot;
    if (p->limiter->kind == WEIR__NARROW) {
        weir__slot_close_locked(p->limiter, p->era, p->slot, p->state);
        return;
    }
    weir__wide_write(s, p->state);
}

/* Pins all and writes all, or neither.  A private table needs no hand: its only process does not die and leave it. */
static bool commit(struct weir_table *table, struct part *parts, size_t n)
{
    bool private = table->fd < 0;
    uint64_t hand = private ? 0 : weir__hand_take(table);
    size_t pinned = 0;
    while (pinned < n && pin_slot(&parts[pinned]))
        pinned++;
    if (pinned == n)
        for (size_t i = 0; i < n; i++)
            write_slot(&parts[i]);
    else
        release(parts, pinned, false);
    if (!private)
        weir__hand_give(table, hand);
    return pinned == n;
}

#define TRIES 3

static enum quick take_quickly(struct weir_table *table, struct part *parts, size_t n, struct weir_decision *all)
{
    for (int i = 0; i < TRIES; i++) {
        enum quick way = look_quickly(parts, n, all);
        if (way != GRANTED)
            return way;
        if (!claim_slots(parts, n) && commit(table, parts, n))
            return GRANTED;
    }
    return IN_THE_WAY;
}

static bool take_parts(struct weir_table *table, struct part *parts, size_t n, struct weir_decision *decision)
{
    enum quick way = take_quickly(table, parts, n, decision);
    if (way != IN_THE_WAY)
        return way == GRANTED;
    if (!look(parts, n, decision))
        return false;
    uint64_t desks = desks_of(parts, n);
    lock_desks(table, desks);
    gather(parts, n);
    bool granted = run_steps(parts, n, decision);
    release(parts, n, granted);
    unlock_desks(table, desks);
    return granted;
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
    return take_parts(table, parts, count, decision);
}

bool weir__peek_all(const struct weir_item *items, size_t n, struct weir_decision *decision)
{
    struct part parts[WEIR_ALL_MAX];
    assert(n > 0 && n <= WEIR_ALL_MAX);
    size_t count = join(items, n, parts);
    for (size_t i = 0; i < count; i++)
        weir__decide(parts[i].limiter, parts[i].home, parts[i].ask, false, &parts[i].decision);
    return answer(parts, count, decision);
}
