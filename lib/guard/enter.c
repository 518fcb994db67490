/* enter.c -- enter.  Its counterpart is exit.c.
 *
 * Enter asks the degradation, the breaker, shedding, the key's permits, the pace (an adaptive
 * rate), and last counts the ask in: one compare-and-swap of the number in flight, so the bound is
 * exact.  Then the permit's word goes into a seat and, under a bound by key, the key's count rises,
 * unless others were quicker.  A refusal gives back a probe that the breaker has let through, so
 * "no" changes nothing.
 */
#include "algo/debt.h"
#include "guard/guard.h"

#define RARELY        __attribute__((noinline))
#define WAITED_EVERY  (WEIR_SECOND / 4)
#define UNKNOWN_RETRY (WEIR_SECOND / 10) /* while it is not known how long work takes */

/* An ask that is entering. */
struct passage {
    struct weir_guard *guard;
    const struct weir__guard_plan *plan;
    struct weir__guard_record *record;
    int64_t cost;
    weir_time now, retry;
    int64_t left; /* permits that are free, though too few for it */
    uint32_t probe;
    bool keyed;      /* it has a key, and there is a bound by key ... */
    int64_t key_max; /* ... of this many permits */
    struct weir__home home;
    void *slot;      /* the key's; NULL: it has none, or had none */
    int64_t key_out; /* permits that the key has out, with its own */
};

/* ----------------------------------------------------------------- limit ---- */

static weir_time free_in(const struct weir__guard_record *r)
{
    weir_time t = weir__get(&r->free_in);

    return t > 0 ? t : UNKNOWN_RETRY;
}

/* An ask for more than an adaptive limit is admitted when nothing else is at work: otherwise it
 * never would be. */
static inline bool pass_gate(const struct passage *p, int64_t limit, bool counts_only,
                             int64_t *in_flight)
{
    int64_t n = weir__get(&p->record->in_flight);

    do {
        *in_flight = n;
        if (n + p->cost > limit && n > 0 && !counts_only)
            return false;
    } while (!__atomic_compare_exchange_n(&p->record->in_flight, &n, n + p->cost, true,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return true;
}

/* ------------------------------------------------------------------- key ---- */

static inline void find_key(struct passage *p, const struct weir_ask *ask,
                            const struct weir__enter_how *how)
{
    struct weir_key key = how->key ? *how->key : ask->key;
    int64_t max = p->plan->max_per_key;

    p->keyed = key.len > 0 && max > 0;
    p->key_max = how->max_per_key > 0 && how->max_per_key < max ? how->max_per_key : max;
    if (p->keyed)
        p->home = weir__held_home(&p->guard->held, p->plan->salt, key);
}

static weir_time key_free_in(const struct passage *p)
{
    weir_time mean = weir__get(&p->record->mean), each = mean / p->key_max;

    return mean == 0 ? UNKNOWN_RETRY : each < WEIR_MILLISECOND ? WEIR_MILLISECOND : each;
}

/* A look, so that a refusal changes nothing; take_seat decides. */
static inline bool pass_key(struct passage *p)
{
    int64_t out = weir__held_count(&p->guard->held, p->home, &p->slot);

    if (out + p->cost <= p->key_max)
        return true;
    p->left = p->key_max - out;
    p->retry = key_free_in(p);
    return false;
}

/* ------------------------------------------------------------------ pace ---- */

/* An adaptive rate is a meter as in algo/debt.h, with a burst of a tenth of a second but at least
 * one ask.  A unit costs WEIR_SECOND parts and each nanosecond pays off `rate` parts, so it is
 * exact, and a change of the rate does not change a debt. */
static int64_t owed_at(const struct passage *p, int64_t rate, const uint64_t seen[2], weir_time *at)
{
    struct weir_plan plan; /* only its scale and its clock matter here */

    plan.by_scale.by = (uint64_t)rate;
    plan.clock = &p->guard->table->clock;
    *at = (weir_time)seen[0];
    return weir__debt_at(&plan, at, (int64_t)seen[1], p->now, 0);
}

static bool pass_pace(struct passage *p)
{
    int64_t rate = weir__guard_found(p->record, p->plan), owed;
    int64_t price = p->cost * WEIR_SECOND, room = rate * (WEIR_SECOND / 10);
    uint64_t seen[2];
    weir_time at;

    do {
        weir__load_pair(p->record->pace, seen);
        owed = owed_at(p, rate, seen, &at);
        if (owed > 0 && owed + price > room) {
            int64_t over = price > room ? owed : owed + price - room;
            p->retry = (over + rate - 1) / rate;
            return false;
        }
    } while (!weir__swap_pair(p->record->pace, seen,
                              (const uint64_t[2]){ (uint64_t)at, (uint64_t)(owed + price) }));
    return true;
}

static void give_pace(const struct passage *p)
{
    int64_t price = p->cost * WEIR_SECOND;
    uint64_t seen[2], next[2];

    if (!p->plan->controller.rate)
        return;
    do {
        weir__load_pair(p->record->pace, seen);
        next[0] = seen[0];
        next[1] = (int64_t)seen[1] > price ? seen[1] - (uint64_t)price : 0;
    } while (!weir__swap_pair(p->record->pace, seen, next));
}

/* --------------------------------------------------------------- breaker ---- */

static RARELY bool ask_patiently(struct passage *p, struct weir__breaker_move *move)
{
    struct weir__breaker_plan plan = p->plan->breaker;

    plan.patience = weir__guard_patience(p->record, p->plan);
    return weir__breaker_ask(&plan, &p->record->breaker, p->now, &p->probe, &p->retry, move);
}

static inline bool pass_breaker(struct passage *p)
{
    struct weir__breaker_move move = { 0, 0 };

    if (__builtin_expect((weir__acquire(&p->record->breaker.gate) & WEIR__BREAKER_EVENTFUL) == 0,
                         1))
        return true; /* closed, and not forced */
    bool pass = weir__guard_lease(p->record, p->plan) > p->plan->lease
                    ? ask_patiently(p, &move)
                    : weir__breaker_ask(&p->plan->breaker, &p->record->breaker, p->now, &p->probe,
                                        &p->retry, &move);
    if (move.from != move.to)
        weir__guard_note_move(p->record, move, p->now);
    return pass;
}

static void give_probe(const struct passage *p)
{
    if (p->probe != 0)
        weir__breaker_give(&p->record->breaker, p->probe);
}

/* -------------------------------------------------------------- deciding ---- */

static bool is_degraded(const struct passage *p)
{
    return p->plan->degrade > 0 &&
           weir__get(&p->guard->table->header->degradation) >= (uint64_t)p->plan->degrade;
}

weir_time weir__guard_hold(const struct weir_guard *guard)
{
    weir_time mean = weir__get(&guard->record->mean);

    return mean == 0 ? UNKNOWN_RETRY : mean < WEIR_MILLISECOND ? WEIR_MILLISECOND : mean;
}

static bool is_shed(const struct passage *p, const struct weir_ask *ask, int64_t *spare)
{
    uint32_t user_class = weir__guard_class(p->plan, ask),
             rank = weir__shed_rank(ask->key, ask->priority, p->now, p->plan->salt);

    *spare = weir__shed_spare(&p->record->shed, user_class, rank);
    return !weir__shed_pass(&p->record->shed, user_class, rank);
}

/* The guard itself may have less than the key: limit, and not what is kept for others. */
static RARELY void refuse_key(struct passage *p, const struct weir_ask *ask, int64_t limit,
                              bool sheds)
{
    int64_t all_left = limit - weir__get(&p->record->in_flight);

    if (sheds)
        all_left -=
            weir__shed_spare(&p->record->shed, weir__guard_class(p->plan, ask),
                             weir__shed_rank(ask->key, ask->priority, p->now, p->plan->salt));
    p->left = p->left < all_left ? p->left : all_left;
}

/* While some can wait nothing is spared for them: see shed.c. */
static RARELY void note_waiter(const struct passage *p)
{
    if (p->now - weir__get(&p->record->waited) >= WAITED_EVERY)
        weir__set(&p->record->waited, p->now);
}

/* The reason to refuse, or WEIR_GRANTED: then it is in. */
static inline enum weir_reason judge(struct passage *p, const struct weir_ask *ask,
                                     const struct weir__enter_how *how, int64_t limit,
                                     int64_t *in_flight)
{
    int64_t spare = 0; /* permits kept for more important asks */

    if (__builtin_expect(is_degraded(p), 0)) {
        p->retry = WEIR_SECOND;
        return WEIR_DEGRADED;
    }
    if (!pass_breaker(p))
        return WEIR_OPEN;
    bool sheds = p->plan->sheds && !how->favoured;
    if (p->keyed && !pass_key(p)) { /* before shedding: it wants no permit that others could have */
        refuse_key(p, ask, how->behind ? 0 : limit, sheds);
        return WEIR_KEY_BUSY;
    }
    if (sheds && is_shed(p, ask, &spare)) {
        p->retry = WEIR_SECOND;
        return WEIR_SHED;
    }
    if (__builtin_expect(how->waits, 0))
        note_waiter(p);
    if (p->plan->controller.rate && !pass_pace(p)) {
        if (!how->waits)
            weir__count(&p->record->window.busy, 1);
        return WEIR_LIMITED;
    }
    if (__builtin_expect(!how->behind, 1)) {
        if (pass_gate(p, limit - spare, false, in_flight))
            return WEIR_GRANTED;
        p->left = limit - spare - *in_flight;
    }
    give_pace(p);
    p->retry = free_in(p->record);
    return WEIR_BUSY;
}

void weir__guard_give_all(struct weir_guard *guard, const struct weir__guard_plan *plan,
                          uint64_t word)
{
    struct passage p = { .guard = guard,
                         .plan = plan,
                         .record = guard->record,
                         .cost = weir__permit_weight(word),
                         .probe = weir__permit_probe(word) };

    give_probe(&p);
    give_pace(&p);
}

static int64_t *counter_of(struct weir__guard_totals *t, enum weir_reason reason)
{
    switch (reason) {
    case WEIR_OPEN:
        return &t->open;
    case WEIR_SHED:
        return &t->shed;
    case WEIR_DEGRADED:
        return &t->degraded;
    case WEIR_LIMITED:
        return &t->limited;
    case WEIR_FULL:
        return &t->full;
    case WEIR_LATE:
        return &t->late;
    case WEIR_KEY_BUSY:
    case WEIR_NO_ROOM:
        return &t->key_busy;
    default:
        return &t->busy;
    }
}

void weir__guard_count_refused(struct weir_guard *guard, enum weir_reason reason)
{
    if (reason == WEIR_FULL || reason == WEIR_LATE) {
        weir__count(&guard->record->window.busy, 1); /* not when it came: it might have got one */
        weir__count(&guard->record->queued, -1);
    }
    if (reason != WEIR_CANCELLED)
        weir__count(counter_of(&guard->record->totals, reason), 1);
}

/* A seat for an ask that was counted in.  False: all are taken. */
static inline bool take_seat(const struct passage *p, uint32_t holder, uint64_t ref,
                             struct weir_permit *permit)
{
    uint64_t word = weir__permit_word(p->now, p->cost, holder, p->probe);

    permit->since = p->now;
    return weir__seat_put(p->guard, p->plan, word, ref, permit);
}

/* A seat, and the key's count: with any count in shadow. */
static enum weir_reason take_keyed_seat(struct passage *p, bool leased, int64_t max,
                                        struct weir_permit *permit)
{
    const struct weir__held *t = &p->guard->held;
    uint32_t me = weir__holder_me(p->guard->table);

    for (;;) {
        if (p->slot == NULL && (p->slot = weir__held_slot(t, p->home, p->now)) == NULL)
            return WEIR_NO_ROOM;
        uint64_t ref = weir__held_ref(t, p->slot, p->cost, me);
        if (!take_seat(p, leased ? 0 : me, ref, permit))
            return WEIR_BUSY;
        enum weir__held_added added =
            weir__held_add(t, p->home, p->slot, permit->seat, p->cost, max, &p->key_out);
        if (__builtin_expect(added == WEIR__HELD_ADDED, 1))
            return WEIR_GRANTED;
        weir__held_cancel(t, permit->seat, permit->word);
        if (added == WEIR__HELD_FULL)
            return WEIR_KEY_BUSY;
        p->slot = NULL;
    }
}

/* Without a seat it is not counted: there are more asks than seats, which happens in shadow. */
static RARELY void do_without(const struct passage *p, struct weir_permit *permit)
{
    weir__in_flight_lower(p->record, (uint32_t)p->cost);
    give_probe(p);
    permit->word = 0;
}

static RARELY void undo_gate(const struct passage *p)
{
    weir__in_flight_lower(p->record, (uint32_t)p->cost);
    weir__guard_tell_waiters(p->guard);
    give_pace(p);
}

/* An ask that has passed the gate gets its seat.  A reason: others were quicker with the key. */
static inline enum weir_reason fill_permit(struct passage *p, bool leased, bool enforced,
                                           struct weir_permit *permit)
{
    enum weir_reason reason = WEIR_GRANTED;

    if (__builtin_expect(p->cost > 1, 0))
        weir__count(&p->record->extra, p->cost - 1);
    if (p->keyed) {
        reason = take_keyed_seat(p, leased, enforced ? p->key_max : WEIR__HELD_MOST, permit);
        if (__builtin_expect(reason == WEIR_GRANTED, 1))
            return reason;
        if (enforced) {
            undo_gate(p);
            p->retry = key_free_in(p);
            return reason;
        }
    }
    uint32_t holder = leased ? 0 : weir__holder_me(p->guard->table);
    if (__builtin_expect(take_seat(p, holder, 0, permit), 1))
        return WEIR_GRANTED;
    if (!enforced) {
        do_without(p, permit);
        return WEIR_GRANTED;
    }
    undo_gate(p); /* more are at work than in_flight says */
    p->retry = free_in(p->record);
    return WEIR_BUSY;
}

static inline void note_most(struct weir__window *w, int64_t in_flight)
{
    if (in_flight > weir__get(&w->in_flight_max))
        weir__set(&w->in_flight_max, in_flight);
}

/* `in`: in shadow one that is too big is let in, without a permit. */
static RARELY bool refuse_ask(const struct passage *p, bool in, int64_t limit,
                              struct weir_permit *permit, struct weir_decision *d)
{
    weir__count(&p->record->totals.shadow, in);
    *permit = (struct weir_permit){ 0 };
    *d = (struct weir_decision){ .allowed = in, .limit = limit, .retry = in ? 0 : WEIR_NEVER };
    d->reason = p->cost < 0 ? WEIR_BAD_ASK : WEIR_TOO_BIG;
    return in;
}

/* Once, when it comes. */
static void count_queued(const struct passage *p, const struct weir__enter_how *how)
{
    if (!how->again)
        weir__count(&p->record->queued, 1);
}

static bool refuse(struct passage *p, enum weir_reason reason, const struct weir__enter_how *how,
                   int64_t limit, struct weir_permit *permit, struct weir_decision *d)
{
    give_probe(p);
    if (reason != WEIR_BUSY)
        weir__guard_count_refused(p->guard, reason);
    else if (how->waits)
        count_queued(p, how);
    else
        weir__count(&p->record->busy, 1);
    if (reason == WEIR_KEY_BUSY)
        limit = p->key_max;
    *permit = (struct weir_permit){ 0 };
    *d = (struct weir_decision){ .reason = (uint8_t)reason, .limit = limit, .retry = p->retry };
    d->remaining = p->left > 0 && (reason == WEIR_BUSY || reason == WEIR_KEY_BUSY) ? p->left : 0;
    return false;
}

/* In shadow a refused ask is let in, and counted. */
static RARELY void let_through(struct passage *p, bool busy, const struct weir__enter_how *how,
                               int64_t *in_flight)
{
    if (busy && how->waits)
        count_queued(p, how);
    else if (busy)
        weir__count(&p->record->window.busy, 1);
    give_probe(p);
    p->probe = 0;
    weir__count(&p->record->totals.shadow, 1);
    pass_gate(p, 0, true, in_flight);
}

static RARELY bool pass_off(struct weir_permit *permit, struct weir_decision *d)
{
    *permit = (struct weir_permit){ 0 };
    *d = (struct weir_decision){ .allowed = true };
    return true;
}

/* Its key leaves less than the guard. */
static inline void say_of_key(const struct passage *p, struct weir_decision *d)
{
    d->limit = p->key_max;
    d->remaining = p->key_out < d->limit ? d->limit - p->key_out : 0;
}

static inline __attribute__((always_inline)) bool
enter(struct weir_guard *guard, const struct weir_ask *ask, const struct weir__enter_how *how,
      struct weir_permit *permit, struct weir_decision *d)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);
    enum weir_mode mode = how->mode == WEIR_AS_WRITTEN ? plan->mode : how->mode;
    struct passage p = { .guard = guard,
                         .plan = plan,
                         .record = guard->record,
                         .cost = ask->cost == 0 ? 1 : ask->cost,
                         .now = weir__guard_time(ask->now) };
    int64_t limit = weir__guard_limit(p.record, plan), in_flight = 0;

    if (__builtin_expect(mode == WEIR_OFF, 0))
        return pass_off(permit, d);
    if (__builtin_expect(p.cost < 0 || p.cost > plan->max, 0))
        return refuse_ask(&p, mode != WEIR_ENFORCE && p.cost > 0, limit, permit, d);
    find_key(&p, ask, how);
    if (__builtin_expect(p.keyed && p.cost > p.key_max, 0) && mode == WEIR_ENFORCE)
        return refuse_ask(&p, false, p.key_max, permit, d);
    if (weir__guard_is_due(guard, plan, p.now))
        weir__guard_tick(guard, plan, p.now);
    enum weir_reason reason = judge(&p, ask, how, limit, &in_flight);
    if (__builtin_expect(reason != WEIR_GRANTED, 0)) {
        if (mode == WEIR_ENFORCE)
            return refuse(&p, reason, how, limit, permit, d);
        let_through(&p, reason == WEIR_BUSY, how, &in_flight);
        reason = p.keyed && p.cost > p.key_max ? WEIR_TOO_BIG : reason;
    }
    enum weir_reason late = fill_permit(&p, how->leased, mode == WEIR_ENFORCE, permit);
    if (__builtin_expect(late != WEIR_GRANTED, 0))
        return refuse(&p, late, how, limit, permit, d);
    weir__in_flight_moment(p.record, plan, -p.cost, p.now);
    in_flight += p.cost;
    note_most(&p.record->window, in_flight);
    *d = (struct weir_decision){ .allowed = true, .reason = (uint8_t)reason, .limit = limit };
    d->remaining = in_flight < limit ? limit - in_flight : 0;
    if (p.keyed && p.key_max - p.key_out < d->remaining)
        say_of_key(&p, d);
    return true;
}

bool weir__guard_enter(struct weir_guard *guard, const struct weir_ask *ask,
                       const struct weir__enter_how *how, struct weir_permit *permit,
                       struct weir_decision *d)
{
    return enter(guard, ask, how, permit, d);
}

/* Apart from weir_enter, so that a quick refusal saves no registers. */
static __attribute__((noinline)) bool enter_plainly(struct weir_guard *guard,
                                                    const struct weir_ask *ask,
                                                    struct weir_permit *permit,
                                                    struct weir_decision *d)
{
    static const struct weir__enter_how plain;

    return enter(guard, ask, &plain, permit, d);
}

/* All permits are out, and nothing else is to be done: the answer is known. */
static inline bool is_just_busy(const struct weir_guard *guard, const struct weir__guard_plan *plan,
                                const struct weir_ask *ask, int64_t limit)
{
    const struct weir__guard_record *r = guard->record;

    return __builtin_expect(weir__get(&r->in_flight) >= limit, 0) && plan->plain &&
           (uint64_t)ask->cost <= 1 &&
           (weir__acquire(&r->breaker.gate) & WEIR__BREAKER_EVENTFUL) == 0 &&
           !weir__guard_is_due(guard, plan, weir__guard_time(ask->now));
}

bool weir_enter(struct weir_guard *guard, const struct weir_ask *ask, struct weir_permit *permit,
                struct weir_decision *d)
{
    const struct weir__guard_plan *plan = weir__acquire(&guard->plan);
    struct weir__guard_record *r = guard->record;
    int64_t limit = weir__guard_limit(r, plan);

    if (!is_just_busy(guard, plan, ask, limit) ||
        weir__acquire(&guard->place->edition) != plan->edition)
        return enter_plainly(guard, ask, permit, d);
    weir__count(&r->busy, 1);
    *permit = (struct weir_permit){ 0 };
    *d = (struct weir_decision){ .reason = WEIR_BUSY, .limit = limit, .retry = free_in(r) };
    return false;
}

/* Flat: with `how` known, much of it falls away. */
__attribute__((flatten)) bool weir_enter_within(struct weir_guard *guard,
                                                const struct weir_ask *ask, int64_t max,
                                                struct weir_permit *permit, struct weir_decision *d)
{
    return enter(guard, ask, &(struct weir__enter_how){ .max_per_key = max }, permit, d);
}
