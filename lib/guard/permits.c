/* permits.c -- seats, their holders, renewal, and the sweep that takes back expired permits.
 *
 * A permit names its holder, a process (lib/table/holders.h).
 */
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"

#define SWEEP        (WEIR_SECOND / 4)   /* between two sweeps */
#define LAPSE        (600 * WEIR_SECOND) /* without a sweep; then callers catch up first */
#define UNASKED      (4 * SWEEP)         /* likewise: nobody asks this guard */
#define STALE_MAX    (7 * 24 * 3600 * WEIR_SECOND) /* between sweeps, at least */
#define DRIFT_SWEEPS 8 /* sweeps with the same difference, which is then not transient */
#define DRIFT_READS  8

/* --------------------------------------------------------------- seats ---- */

static inline bool put_at(const struct weir__held *held, uint32_t seat, bool keyed, uint64_t word,
                          uint64_t ref, struct weir_permit *permit)
{
    uint64_t free = weir__get(&held->seats[seat].word);

    if (weir__permit_weight(free) != 0)
        return false;
    permit->seat = seat;
    permit->word = word | weir__permit_use(free);
    return keyed ? weir__swap_pair(&held->seats[seat].word, (const uint64_t[2]){ free, 0 },
                                   (const uint64_t[2]){ permit->word, ref })
                 : __atomic_compare_exchange_n(&held->seats[seat].word, &free, permit->word, false,
                                               __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A thread that enters and exits finds the same seat again.  At most half of all seats are taken
 * (but of guards with more than 8192 permits), so a random one is soon free. */
bool weir__seat_put(struct weir_guard *guard, const struct weir__guard_plan *plan, uint64_t word,
                    uint64_t ref, struct weir_permit *permit)
{
    const struct weir__held *held = &guard->held;
    bool keyed = weir__get(&guard->record->keyed) != 0;
    uint32_t mask = plan->seat_mask, at = (uint32_t)(weir__thread_hint(12) * 4) & mask;

    if (__builtin_expect(put_at(held, at, keyed, word, ref, permit), 1))
        return true;
    at += (uint32_t)((word ^ (uint64_t)permit->since) * 0x9e3779b97f4a7c15u >> 40);
    for (uint32_t i = 0; i <= mask; i++) {
        if (put_at(held, (at + i) & mask, keyed, word, ref, permit))
            return true;
    }
    return false;
}

/* Once a longer lease of before is over, the present one is the longest.  An idle permit has half a
 * lease more. */
static void forget_lease(struct weir__guard_record *r, const struct weir__guard_plan *plan,
                         weir_time now)
{
    int64_t longest = weir__get(&r->lease), until = weir__get(&r->lease_until);

    if (longest == plan->lease && until == 0)
        return;
    if (weir__guard_lease(r, plan) == plan->lease || (until > 0 && until <= now)) {
        __atomic_compare_exchange_n(&r->lease, &longest, plan->lease, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
        weir__set(&r->lease_until, 0);
    } else if (until <= 0 || until > now + longest + longest / 2) { /* the clock has stepped back */
        weir__set(&r->lease_until, now + longest + longest / 2);
    }
}

/* Within a lease: later it may be another's. */
bool weir__permit_follow(struct weir_guard *guard, struct weir_permit *permit)
{
    weir_time longest = weir__guard_lease(guard->record, weir__guard_plan_of(guard));
    uint64_t lease = (uint64_t)(longest >> WEIR__PERMIT_GRAIN) + 1, there[2], age;

    if (permit->seat >= WEIR__GUARD_SEATS)
        return false;
    weir__load_pair(&guard->held.seats[permit->seat].word, there);
    age = ((there[0] >> 43) - (permit->word >> 43)) & WEIR__PERMIT_TIMES;
    if (weir__permit_weight(there[0]) == 0 || age > lease ||
        there[1] != weir__held_renewed(there[1], permit->word) ||
        !weir__permit_is_same(permit->word, there[0]) ||
        ((permit->word ^ there[0]) & WEIR__PERMIT_RENEWED) == 0)
        return false;
    permit->word = there[0];
    return true;
}

/* --------------------------------------------------------------- sweep ---- */

/* A permit's time is kept modulo 2.4 hours, and nobody may ask for longer than that.  But a sweep
 * takes back each permit whose lease is over, and after LAPSE without one nobody takes a seat
 * before having swept.  So a permit that is there at the next sweep entered between a lease before
 * the last sweep and LAPSE after it, or half a lease later if it idles, and in such a span the time
 * is unambiguous. */
struct sweep {
    struct weir_guard *guard;
    const struct weir__guard_plan *plan;
    weir_time now, lease;
    int64_t last;   /* sweep_at, as this sweep found or set it */
    int64_t least;  /* no permit is younger, in grains; below 0: it may be ahead of now */
    int64_t seated; /* permits that it left in the seats */
};

/* `since`: the last sweep.  Soon after one, a lease ahead: the clock may have stepped back. */
static int64_t least_age(weir_time lease, weir_time since)
{
    weir_time ahead = lease / 2 > LAPSE ? lease / 2 : LAPSE;

    return (since > 2 * LAPSE ? since - LAPSE - ahead : -lease) / (1 << WEIR__PERMIT_GRAIN) - 1;
}

static weir_time unswept(int64_t sweep_at, weir_time now)
{
    return sweep_at <= 0 || now < sweep_at ? 0 : now - sweep_at + SWEEP;
}

static bool is_over(const struct sweep *s, uint64_t word)
{
    uint32_t holder = weir__permit_holder(word);
    uint64_t behind = ((uint64_t)s->now >> WEIR__PERMIT_GRAIN) - (word >> 43) - (uint64_t)s->least;
    int64_t age = s->least + (int64_t)(behind & WEIR__PERMIT_TIMES);

    if (age > (s->lease >> WEIR__PERMIT_GRAIN) + 1)
        return true;
    return holder != 0 && weir__get(&s->guard->table->holders[holder].pid) == 0;
}

/* How much in_flight and extra are above what the seats say. */
struct drift {
    int64_t in_flight, extra;
};

static struct drift read_once(const struct weir_guard *guard, uint32_t n)
{
    struct drift d = { weir__acquire(&guard->record->in_flight),
                       weir__acquire(&guard->record->extra) };

    for (uint32_t i = 0; i < n; i++) {
        int64_t weight = weir__permit_weight(weir__acquire(&guard->held.seats[i].word));
        d.in_flight = weir__sum(d.in_flight, -(uint64_t)weight);
        d.extra = weir__sum(d.extra, -(uint64_t)(weight > 1 ? weight - 1 : 0));
    }
    return d;
}

/* 0 if they have different signs. */
static int64_t nearest_to_0(int64_t a, int64_t b)
{
    return a > 0 && b > 0 ? (a < b ? a : b) : a < 0 && b < 0 ? (a > b ? a : b) : 0;
}

/* Asks that are entering or leaving disturb it, so it is read several times, and the reading
 * nearest to 0 counts; 0 if readings had both signs. */
static struct drift read_drift(const struct weir_guard *guard, uint32_t n)
{
    struct drift d = read_once(guard, n);

    for (int i = 1; i < DRIFT_READS && (d.in_flight != 0 || d.extra != 0); i++) {
        struct drift next = read_once(guard, n);
        d.in_flight = nearest_to_0(d.in_flight, next.in_flight);
        d.extra = nearest_to_0(d.extra, next.extra);
    }
    return d;
}

/* A process killed between counting and taking its seat leaves a difference.  Sweeps look for one
 * for a while after a death, and correct it if it was the same each time.  A process that was only
 * stopped there is taken for the dead one, and when it goes on, more is `seated` than in_flight
 * says.  Nothing else leaves that, so it is looked for whether somebody died or not; the opposite
 * is not, since somebody who is entering may be held up. */
static void settle_drift(struct weir_guard *guard, uint32_t n, int64_t seated)
{
    struct weir__guard_record *r = guard->record;
    struct weir__learnt *l = &r->learnt;
    uint64_t lost = weir__get(&guard->table->header->holders_lost);
    bool low = weir__get(&r->in_flight) < seated || l->drift < 0;

    if (lost != l->holders_lost) {
        l->holders_lost = lost;
        l->watching = 3 * DRIFT_SWEEPS;
    }
    if (l->watching == 0 && !low)
        return;
    struct drift d = read_drift(guard, n);
    if (l->watching == 0)
        d = (struct drift){ d.in_flight < 0 ? d.in_flight : 0, d.extra < 0 ? d.extra : 0 };
    bool any = d.in_flight != 0 || d.extra != 0,
         same = d.in_flight == l->drift && d.extra == r->extra_drift;
    l->watching -= l->watching > 0;
    l->drift_times = any && same ? l->drift_times + 1 : any;
    l->drift = d.in_flight;
    r->extra_drift = d.extra;
    if (l->drift_times >= DRIFT_SWEEPS) {
        weir__count(&r->in_flight, -d.in_flight);
        weir__count(&r->extra, -d.extra);
        l->drift_times = 0;
    }
}

static int64_t give_back(struct weir__guard_record *r, uint64_t word)
{
    weir__in_flight_lower(r, weir__permit_weight(word));
    if (weir__permit_probe(word) != 0)
        weir__breaker_give(&r->breaker, weir__permit_probe(word));
    return 1;
}

/* Stops if somebody else has swept since, because this thread was stopped: permits that are there
 * now may be younger. */
static int64_t sweep_seats(struct sweep *s, uint32_t n)
{
    struct weir__guard_record *r = s->guard->record;
    int64_t reclaimed = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct weir__seat *seat = &s->guard->held.seats[i];
        uint64_t lost = weir__get(&seat->ref) != 0 ? weir__held_settle(&s->guard->held, i) : 0,
                 word = weir__acquire(&seat->word);
        if (lost != 0)
            reclaimed += give_back(r, lost);
        if (weir__permit_weight(word) == 0)
            continue;
        if (weir__acquire(&r->sweep_at) != s->last)
            break;
        if (is_over(s, word) && weir__held_is_certain(&s->guard->held, i) &&
            weir__seat_free(s->guard, i, word))
            reclaimed += give_back(r, word);
        else
            s->seated += weir__permit_weight(word);
    }
    return reclaimed;
}

static void note_reclaimed(struct weir_guard *guard, int64_t reclaimed, weir_time now)
{
    struct weir__guard_record *r = guard->record;

    if (reclaimed == 0)
        return;
    weir__guard_tell_waiters(guard);
    weir__count(&r->totals.reclaimed, reclaimed);
    weir__guard_note(r, WEIR_GUARD_EVENT_RECLAIMED, 0, (int32_t)reclaimed, now);
}

/* A call that waits in the dependency's queue is late, but does not hang while that moves: others
 * end, and none that came later. */
static bool is_waiting_in_order(const struct sweep *s, weir_time began)
{
    const struct weir__breaker *b = &s->guard->record->breaker;

    return !weir__breaker_is_stuck(b, s->plan->breaker.slow, began, s->now) &&
           began + ((weir_time)2 << WEIR__PERMIT_GRAIN) >= weir__get(&b->moved_from);
}

/* Calls that are out for longer than `slow`. */
struct late {
    struct weir__hanging all, hanging; /* the latter: without those that wait in order */
    int64_t permits, permits_hanging;
    int64_t out; /* calls, late or not, of this episode; but for those that idle */
};

static void add_late(const struct sweep *s, struct weir__hanging *h, weir_time began)
{
    const struct weir__breaker_plan *plan = &s->plan->breaker;
    int64_t moved = weir__get(&s->guard->record->breaker.moved);

    h->calls++;
    h->alone += began > moved + ((weir_time)2 << WEIR__PERMIT_GRAIN);
    if (s->now - began - plan->slow > plan->part * WEIR__BREAKER_PARTS)
        return;
    h->oldest = h->recent == 0 || began < h->oldest ? began : h->oldest;
    h->recent++;
}

/* Its time is kept in grains: not before it is certain. */
static void note_late(const struct sweep *s, uint64_t word, struct late *late)
{
    const struct weir__breaker *b = &s->guard->record->breaker;
    uint64_t age = (((uint64_t)s->now >> WEIR__PERMIT_GRAIN) - (word >> 43)) & WEIR__PERMIT_TIMES;
    weir_time began = s->now - (weir_time)(age << WEIR__PERMIT_GRAIN);
    uint8_t *probes = &late->hanging.probes[weir__permit_probe(word)];
    bool older = began < weir__get(&b->at) && weir__get(&b->at) <= s->now;

    if (age > (uint64_t)(s->lease >> WEIR__PERMIT_GRAIN) + 1)
        return; /* in the future: it idles, or the clock has stepped back */
    late->out += !older;
    if (age <= (uint64_t)(s->plan->breaker.slow >> WEIR__PERMIT_GRAIN) + 1)
        return;
    if (weir__permit_probe(word) != 0) {
        *probes = (uint8_t)(*probes + (*probes < UINT8_MAX));
        return;
    }
    if (older)
        return; /* an older episode's; unless the clock has stepped back */
    add_late(s, &late->all, began);
    late->permits += weir__permit_weight(word);
    if (is_waiting_in_order(s, began))
        return;
    add_late(s, &late->hanging, began);
    late->permits_hanging += weir__permit_weight(word);
}

/* All permits are out. */
static bool is_full(const struct weir__guard_record *r, const struct weir__guard_plan *plan,
                    int64_t permits)
{
    return permits >= weir__guard_limit(r, plan);
}

bool weir__guard_is_full(struct weir_guard *guard)
{
    const struct weir__guard_record *r = guard->record;

    return is_full(r, weir__guard_plan_of(guard), weir__get(&r->in_flight));
}

/* A dependency that hangs ends no calls: only those in flight can tell.  So can those that wait in
 * order, if there are more than it can work off. */
static void tell_hanging(const struct sweep *s, uint32_t n)
{
    struct weir__guard_record *r = s->guard->record;
    const struct weir__breaker_plan *plan = &s->plan->breaker;
    struct late late = { .all.oldest = s->now, .hanging.oldest = s->now };
    struct weir__hanging *hanging = &late.hanging;

    if (plan->slow_percent == 0 || weir__get(&r->in_flight) <= 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t word = weir__acquire(&s->guard->held.seats[i].word);
        if (weir__permit_weight(word) != 0)
            note_late(s, word, &late);
    }
    if (late.all.calls > hanging->calls &&
        weir__breaker_is_overrun(plan, &r->breaker, late.all.oldest, late.out, s->now)) {
        memcpy(late.all.probes, hanging->probes, sizeof(late.all.probes));
        late.all.overrun = true;
        hanging = &late.all;
        late.permits_hanging = late.permits;
    }
    if (is_full(r, s->plan, late.permits_hanging))
        hanging->alone = hanging->calls; /* no other can have ended */
    struct weir__breaker_move move = weir__breaker_hang(plan, &r->breaker, hanging, s->now);
    if (move.from != move.to)
        weir__guard_note(r, WEIR_GUARD_EVENT_BREAKER, move.from, move.to, s->now);
}

static uint32_t seats_of(const struct weir__guard_record *r)
{
    uint64_t seats = weir__get(&r->seats);

    return seats < WEIR__GUARD_SEATS ? (uint32_t)seats : WEIR__GUARD_SEATS;
}

/* Any thread may do so, not only the ticker. */
static void sweep_after(struct weir_guard *guard, const struct weir__guard_plan *plan,
                        weir_time lapse, weir_time now)
{
    struct weir__guard_record *r = guard->record;
    struct sweep s = { guard, plan, now, weir__guard_lease(r, plan), weir__acquire(&r->sweep_at),
                       0,     0 };
    weir_time since = unswept(s.last, now);

    if (__builtin_expect(since <= lapse, 1))
        return;
    s.least = least_age(s.lease, since);
    note_reclaimed(guard, sweep_seats(&s, seats_of(r)), now);
    __atomic_compare_exchange_n(&r->sweep_at, &s.last, now + SWEEP, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

void weir__permits_catch_up(struct weir_guard *guard, const struct weir__guard_plan *plan,
                            weir_time now)
{
    sweep_after(guard, plan, LAPSE, now);
}

void weir__permits_expire(struct weir_guard *guard, weir_time now)
{
    if (weir__get(&guard->record->in_flight) > 0)
        sweep_after(guard, weir__guard_plan_of(guard), UNASKED, now);
}

/* A caller that was stopped after it had read the clock must not take its time for the present one:
 * permits that entered since would look old.  Unless the table's own clock is elsewhere: then the
 * callers' has stepped back. */
static bool is_stale(const struct weir_table *table, weir_time due)
{
    weir_time clock = weir_table_now(table);

    return due <= clock + SWEEP + WEIR__SKEW && clock - due < STALE_MAX;
}

void weir__permits_sweep(struct weir_guard *guard, const struct weir__guard_plan *plan,
                         weir_time now)
{
    struct weir__guard_record *r = guard->record;
    weir_time lease = weir__guard_lease(r, plan);
    struct sweep s = { guard, plan, now, lease, now + SWEEP, least_age(lease, 0), 0 };
    int64_t due = weir__get(&r->sweep_at);
    uint32_t n = seats_of(r);

    if (now < due && (due - now <= SWEEP + WEIR__SKEW || is_stale(guard->table, due)))
        return;
    weir__set(&r->sweep_at, s.last);
    if (guard->table->fd >= 0)
        weir__holders_bury(guard->table, now);
    int64_t reclaimed = sweep_seats(&s, n);
    forget_lease(r, plan, now);
    settle_drift(guard, n, s.seated);
    tell_hanging(&s, n);
    note_reclaimed(guard, reclaimed, now);
}

/* --------------------------------------------------------------- renewal ---- */

/* `ahead`: from then on it counts as work. */
static bool renew(struct weir_guard *guard, struct weir_permit *permit, bool again, weir_time ahead,
                  weir_time now)
{
    uint64_t word = permit->word;

    weir__permits_catch_up(guard, weir__guard_plan_of(guard), weir__guard_time(now));
    uint64_t renewed = weir__permit_word(weir__guard_time(now) + ahead, weir__permit_weight(word),
                                         weir__permit_holder(word), weir__permit_probe(word));
    renewed |= weir__permit_freed(again ? word : word ^ WEIR__PERMIT_RENEWED);
    if (!weir__held_renew(&guard->held, permit->seat, word, renewed, again))
        return false;
    permit->word = renewed;
    if (weir__permit_probe(word) != 0 && ahead > 0) /* its client may hold up all others */
        weir__breaker_idle(&guard->record->breaker, weir__permit_probe(word));
    else if (weir__permit_probe(word) != 0)
        weir__breaker_renew(&guard->record->breaker, weir__permit_probe(word),
                            weir__guard_time(now));
    return true;
}

/* Copies of a renewed permit are void. */
bool weir_permit_renew(struct weir_guard *guard, struct weir_permit *permit, weir_time now)
{
    return weir__guard_is_permit(guard, permit) && renew(guard, permit, false, 0, now);
}

/* A time ahead is taken for a clock that has stepped back: neither over nor hanging. */
bool weir_permit_idle(struct weir_guard *guard, struct weir_permit *permit, weir_time now)
{
    return weir__guard_is_permit(guard, permit) &&
           renew(guard, permit, false, weir__guard_plan_of(guard)->lease / 2, now);
}

bool weir__permit_repeat(struct weir_guard *guard, struct weir_permit *permit, weir_time now)
{
    return weir__guard_is_permit(guard, permit) && weir__permit_follow(guard, permit) &&
           renew(guard, permit, true, 0, now);
}
