/* all.c -- several limits at once: every item is taken, or none is.
 *
 *     1. Items on one key of one limiter become one ask with their total cost.
 *     2. Peek at each: run its step on a copy.  A refusal is the answer, and nothing was taken.
 *     3. Pin each slot if it has not changed: others that decide on these keys wait.
 *     4. Write the copies, which lifts the pins.
 *
 * That is the quick way, with a hand (desk.c).  Something may be in its way: a large state, a new
 * key in a full group, a state under an older limit, a slot that another thread has changed or
 * pinned.  Then it leaves everything as it was, and the thorough way follows:
 *
 *     3. Take the desks of all groups involved, in ascending order, so that two calls cannot wait
 *        for each other.
 *     4. Find each key's slot, and pin it.
 *     5. Run the steps on copies.  If all grant, write the copies; else lift the pins.
 *
 * The pin is one bit of the state and the rest stays readable, so a process killed in here leaves
 * states that are right as they are: the next holder of the desk lifts the pins.  If it was killed
 * while it wrote the copies, some keys are charged for an ask whose caller is dead.
 */
#include <assert.h>

#include "table/all.h"

/* An item on its way. */
struct part {
    const struct weir__item *of;
    const struct weir_ask *ask; /* the caller's, or `own` if that costs something else */
    const struct weir__era *era;
    void *slot;         /* NULL: costs nothing, so there is nothing to write */
    uint64_t before[2]; /* the quick way: the slot's words as they were read */
    uint64_t state[2];
    size_t item; /* the first that asks it */
    struct weir_ask own;
    struct weir_decision decision; /* the thorough way's */
};

/* The answer to all: the first part that can never pass, else the first refusal, else the tightest
 * limit; the longest times.  It begins as the first part's answer, and takes in the others one by
 * one. */
static inline void weigh(struct weir_decision *all, const struct weir_decision *d, size_t item)
{
    if (all->allowed ? !d->allowed || d->remaining < all->remaining
                     : d->reason == WEIR_TOO_BIG && all->reason == WEIR_LIMITED) {
        all->allowed = d->allowed;
        all->reason = d->reason;
        all->item = (uint16_t)item;
        all->limit = d->limit;
        all->remaining = d->remaining;
    }
    all->wait = d->wait > all->wait ? d->wait : all->wait;
    all->retry = d->retry > all->retry ? d->retry : all->retry;
    all->reset = d->reset > all->reset ? d->reset : all->reset;
}

static inline bool conclude(struct weir_decision *all)
{
    if (!all->allowed)
        all->wait = 0;
    return all->allowed;
}

static bool answer(const struct part *parts, size_t n, struct weir_decision *all)
{
    *all = parts[0].decision;
    all->item = (uint16_t)parts[0].item;
    for (size_t i = 1; i < n; i++)
        weigh(all, &parts[i].decision, parts[i].item);
    return conclude(all);
}

/* One more item on the same key: costs add up, the shortest patience and the latest time count. */
static void add_item(struct weir_ask *together, const struct weir_ask *more)
{
    if (more->cost < 0 || together->cost < 0)
        together->cost = -1; /* a mistake stays one */
    else
        together->cost =
            more->cost > INT64_MAX - together->cost ? INT64_MAX : together->cost + more->cost;
    together->wait_max = more->wait_max < together->wait_max ? more->wait_max : together->wait_max;
    together->now = more->now > together->now ? more->now : together->now;
}

/* Makes parts of the items, each aimed in `own`; returns their number. */
static size_t join(const struct weir_item *items, size_t n, struct weir__item *own,
                   struct part *parts)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        size_t p = 0;
        weir__item_aim(&own[count], items[i].limiter, items[i].ask.key);
        while (own[p].limiter != own[count].limiter || own[p].hash.tag != own[count].hash.tag)
            p++;
        if (p < count) {
            add_item(&parts[p].own, &items[i].ask);
            continue;
        }
        parts[p].of = &own[p];
        parts[p].own = items[i].ask;
        parts[p].ask = &parts[p].own;
        parts[p].item = i;
        count++;
    }
    return count;
}

/* Member by member: zeroing the rest would cost more than everything else here. */
static inline void begin_part(struct part *p, const struct weir__item *item,
                              const struct weir_ask *ask, size_t i)
{
    p->of = item;
    p->ask = ask;
    p->item = i;
    if (__builtin_expect(item->cost == ask->cost, 1))
        return;
    p->own = *ask;
    p->own.cost = item->cost;
    p->ask = &p->own;
}

static bool look(struct part *parts, size_t n, struct weir_decision *all)
{
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        if (weir__decide(p->of->limiter, weir__item_home(p->of), p->ask, false, &p->decision))
            continue;
        struct weir_ask nothing = { .now = p->ask->now };
        struct weir_decision d;
        weir__decide(p->of->limiter, weir__item_home(p->of), &nothing, true,
                     &d); /* a clock that has stepped back is written down even by a refusal */
    }
    return answer(parts, n, all);
}

/* ------------------------------------------------------------- desks ---- */

static uint64_t desks_of(const struct part *parts, size_t n)
{
    uint64_t set = 0;

    for (size_t i = 0; i < n; i++)
        set |= (uint64_t)1 << weir__desk_of(weir__item_home(parts[i].of).group);
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

/* Finds and pins the slots.  There always is one: a key can reach more slots than a call has
 * items. */
static void gather(struct part *parts, size_t n)
{
    void *mine[WEIR_ALL_MAX];

    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        struct weir_limiter *limiter = p->of->limiter;
        struct weir__home home = weir__item_home(p->of);
        bool large = limiter->kind == WEIR__LARGE;
        mine[i] = NULL;
        p->slot = NULL;
        if (p->ask->cost == 0)
            continue;
        mine[i] = p->slot =
            large ? (void *)weir__large_claim_locked(limiter, home, p->ask->now, mine, i)
                  : weir__slot_claim_locked(limiter, home, p->ask->now, mine, i);
        p->era = large ? weir__limiter_era(limiter)
                       : weir__slot_open_locked(limiter, p->slot, p->ask->now, p->state);
    }
}

_Static_assert(WEIR_ALL_MAX <= WEIR__LARGE_GROUP && WEIR_ALL_MAX <= WEIR__WINDOW_SLOTS,
               "a slot for every item, wherever their keys lie");

/* Lifts the pins, writing the copies if the items were granted. */
static void release(struct part *parts, size_t n, bool granted)
{
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        struct weir_limiter *limiter = p->of->limiter;
        if (p->slot == NULL || limiter->kind == WEIR__LARGE)
            continue;
        if (granted)
            weir__slot_close_locked(limiter, p->era, p->slot, p->state);
        else
            weir__slot_unpin_locked(limiter->table, p->slot);
    }
}

/* ------------------------------------------------------------- steps ---- */

/* The part's ask, to be changed. */
static struct weir_ask *own_ask(struct part *p)
{
    if (p->ask != &p->own)
        p->own = *p->ask;
    p->ask = &p->own;
    return &p->own;
}

/* Small states are copies, written only if all grant.  Large ones have no copy: they are peeked at
 * here, and taken from once all have granted. */
static bool run_steps(struct part *parts, size_t n, struct weir_decision *all)
{
    for (size_t i = 0; i < n; i++) {
        struct part *p = &parts[i];
        bool large = p->of->limiter->kind == WEIR__LARGE;
        if (p->of->limiter->kind == WEIR__NARROW && p->ask->wait_max > WEIR__PACKED_WAIT_MAX)
            own_ask(p)->wait_max = WEIR__PACKED_WAIT_MAX;
        if (p->slot != NULL)
            weir__step(&p->era->plan, large ? ((struct weir__large *)p->slot)->state : p->state,
                       p->ask, !large, &p->decision);
    }
    bool granted = answer(parts, n, all);
    struct weir_decision d;
    for (size_t i = 0; granted && i < n; i++)
        if (parts[i].slot != NULL && parts[i].of->limiter->kind == WEIR__LARGE)
            weir__step(&parts[i].era->plan, ((struct weir__large *)parts[i].slot)->state,
                       parts[i].ask, true, &d);
    return granted;
}

/* --------------------------------------------------------- the quick way ---- */

/* All small slots of a table are of one kind, so all of this is compiled once for each. */
#define EITHER static inline __attribute__((always_inline))

enum quick { REFUSED, GRANTED, IN_THE_WAY };

/* Can the quick way take such a part at all?  First its times, then the rest. */
static inline bool is_timely(const struct weir_table *table, const struct weir_ask *ask)
{
    return (ask->now | ask->wait_max) >= 0 &&
           (!table->narrow || ask->wait_max <= WEIR__PACKED_WAIT_MAX);
}

static inline bool is_plain(const struct weir_limiter *limiter, int64_t cost)
{
    return limiter->kind != WEIR__LARGE && cost > 0;
}

static bool are_plain(const struct weir_table *table, const struct part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_timely(table, parts[i].ask) || !is_plain(parts[i].of->limiter, parts[i].ask->cost))
            return false;
    return true;
}

static inline bool read_narrow(struct part *p)
{
    struct weir__narrow *s = p->slot;
    bool stepped;

    p->before[0] = weir__load(&s->word);
    if (p->before[0] & WEIR__PIN || weir__load(&s->tag) != p->of->hash.tag)
        return false;
    p->state[0] = (uint64_t)p->ask->now;
    p->state[1] = (uint64_t)weir__unpack(&p->era->plan, p->before[0], p->ask->now, &stepped);
    return !stepped;
}

static inline bool read_wide(struct part *p)
{
    struct weir__wide *s = p->slot;
    uint64_t before[2];

    weir__load_pair(s->state, before);
    p->before[0] = p->state[0] = before[0];
    p->before[1] = p->state[1] = before[1];
    return (before[0] & WEIR__PIN) == 0 && weir__load(&s->tag) == p->of->hash.tag &&
           weir__load(&s->owner) == p->era->owner;
}

/* Copies the key's state, unless the slot is another key's, pinned, or under an older limit. */
static __attribute__((noinline)) bool search_slot(struct part *p)
{
    struct weir_table *table = p->of->limiter->table;
    struct weir__home home = weir__item_home(p->of);

    p->slot = table->narrow ? (void *)weir__narrow_find(table, home)
                            : (void *)weir__wide_find(table, p->of->limiter->id, home);
    if (p->slot == NULL) {
        p->before[0] = p->before[1] = p->state[0] = p->state[1] = 0;
        return true;
    }
    return table->narrow ? read_narrow(p) : read_wide(p);
}

/* The slot is nearly always the first of its line. */
EITHER bool read_slot(struct part *p, bool narrow)
{
    p->era = weir__limiter_era(p->of->limiter);
    p->slot = p->of->line;
    return (narrow ? read_narrow(p) : read_wide(p)) || search_slot(p);
}

/* The steps, on copies.  A refusal that changes its state has seen the clock step back, which must
 * be written down. */
EITHER enum quick look_quickly(struct part *parts, size_t n, bool narrow, struct weir_decision *all)
{
    for (struct part *p = parts; p < parts + n; p++) {
        struct weir_decision own, *d = p == parts ? all : &own; /* the answer begins as the first */
        if (__builtin_expect(!read_slot(p, narrow), 0))
            return IN_THE_WAY;
        uint64_t first = p->state[0], second = p->state[1];
        if (!weir__step(&p->era->plan, p->state, p->ask, true, d) &&
            (p->state[0] != first || p->state[1] != second))
            return IN_THE_WAY;
        if (p != parts)
            weigh(all, d, p->item);
    }
    return conclude(all) ? GRANTED : REFUSED;
}

/* Slots for keys that have none.  True if there were any: look again. */
static inline bool claim_slots(struct part *parts, size_t n)
{
    bool claimed = false;

    for (struct part *p = parts; p < parts + n; p++) {
        if (__builtin_expect(p->slot == NULL, 0)) {
            weir__slot_claim(p->of->limiter, weir__item_home(p->of), p->ask->now);
            claimed = true;
        }
    }
    return claimed;
}

EITHER bool pin_slot(struct part *p, bool narrow)
{
    uint64_t pinned[2] = { p->before[0] | WEIR__PIN, p->before[1] };
    struct weir__wide *s = p->slot; /* the tag is the first word of either kind */

    if (narrow ? !weir__swap(&((struct weir__narrow *)p->slot)->word, p->before[0], pinned[0])
               : !weir__swap_pair(s->state, p->before, pinned))
        return false;
    if (weir__load(&s->tag) == p->of->hash.tag &&
        (narrow || weir__load(&s->owner) == p->era->owner))
        return true;
    weir__slot_unpin_locked(p->of->limiter->table, p->slot);
    return false;
}

/* Writes the copy, which lifts the pin.  The slot's owner stays: states under an older limit do not
 * come this way. */
EITHER void write_slot(const struct part *p, bool narrow)
{
    if (narrow)
        weir__slot_close_locked(p->of->limiter, p->era, p->slot, p->state);
    else
        weir__wide_write(p->slot, p->state);
}

/* Pins all and writes all, or neither.  A private table needs no hand: its only process does not
 * die and leave it. */
EITHER bool commit(struct weir_table *table, struct part *parts, size_t n, bool narrow)
{
    bool private = table->fd < 0;
    uint64_t hand = private ? 0 : weir__hand_take(table);
    struct part *p = parts, *end = parts + n;

    while (p < end && pin_slot(p, narrow))
        p++;
    bool pinned = p == end;
    if (__builtin_expect(pinned, 1))
        for (p = parts; p < end; p++)
            write_slot(p, narrow);
    else
        release(parts, (size_t)(p - parts), false);
    if (!private)
        weir__hand_give(table, hand);
    return pinned;
}

#define TRIES 3

EITHER enum quick take_quickly(struct weir_table *table, struct part *parts, size_t n, bool narrow,
                               struct weir_decision *all)
{
    for (int i = 0; i < TRIES; i++) {
        enum quick way = look_quickly(parts, n, narrow, all);
        if (way != GRANTED)
            return way;
        if (!claim_slots(parts, n) && commit(table, parts, n, narrow))
            return GRANTED;
    }
    return IN_THE_WAY;
}

static __attribute__((noinline)) enum quick
take_narrow(struct weir_table *table, struct part *parts, size_t n, struct weir_decision *all)
{
    return take_quickly(table, parts, n, true, all);
}

static __attribute__((noinline)) enum quick take_wide(struct weir_table *table, struct part *parts,
                                                      size_t n, struct weir_decision *all)
{
    return take_quickly(table, parts, n, false, all);
}

/* -------------------------------------------------------------- either ---- */

static __attribute__((noinline)) bool take_thoroughly(struct weir_table *table, struct part *parts,
                                                      size_t n, struct weir_decision *decision)
{
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

static inline bool take_parts(struct weir_table *table, struct part *parts, size_t n, bool plain,
                              struct weir_decision *decision)
{
    enum quick way = IN_THE_WAY;

    if (__builtin_expect(plain, 1))
        way = table->narrow ? take_narrow(table, parts, n, decision)
                            : take_wide(table, parts, n, decision);
    return __builtin_expect(way == IN_THE_WAY, 0) ? take_thoroughly(table, parts, n, decision)
                                                  : way == GRANTED;
}

bool weir_take_all(const struct weir_item *items, size_t n, struct weir_decision *decision)
{
    struct part parts[WEIR_ALL_MAX];
    struct weir__item own[WEIR_ALL_MAX];

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
    size_t count = join(items, n, own, parts);
    return take_parts(table, parts, count, are_plain(table, parts, count), decision);
}

/* A single one needs no pin.  If it is not the first of its line or anything is in its way, take.c
 * has the rest. */
static bool take_one(const struct weir__item *item, const struct weir_ask *ask,
                     struct weir_decision *d)
{
    struct weir_ask own = { .cost = item->cost, .wait_max = ask->wait_max, .now = ask->now };

    if (item->limiter->kind == WEIR__WIDE) {
        const struct weir__era *era = weir__limiter_era(item->limiter);
        if (weir__wide_try(item->line, item->hash.tag, era->owner, weir__step, &era->plan, &own,
                           true, d) == WEIR__TRIED_DONE)
            return d->allowed;
    }
    return weir__decide(item->limiter, weir__item_home(item), &own, true, d);
}

bool weir__all_take(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision)
{
    struct part parts[WEIR_ALL_MAX];

    assert(n > 0 && n <= WEIR_ALL_MAX);
    if (n == 1)
        return take_one(items, ask, decision);
    struct weir_table *table = items->limiter->table;
    bool plain = is_timely(table, ask);
    for (size_t i = 0; i < n; i++) {
        begin_part(&parts[i], &items[i], ask, i);
        plain = plain && is_plain(items[i].limiter, items[i].cost);
    }
    return take_parts(table, parts, n, plain, decision);
}

bool weir__all_peek(const struct weir__item *items, size_t n, const struct weir_ask *ask,
                    struct weir_decision *decision)
{
    struct part parts[WEIR_ALL_MAX];

    assert(n > 0 && n <= WEIR_ALL_MAX);
    for (size_t i = 0; i < n; i++) {
        begin_part(&parts[i], &items[i], ask, i);
        weir__decide(items[i].limiter, weir__item_home(&items[i]), parts[i].ask, false,
                     &parts[i].decision);
    }
    return answer(parts, n, decision);
}
