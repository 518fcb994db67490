/* take.c -- deciding one ask: find the slot, run the step on a copy, swap the copy in.
 *
 * Nearly every key is in the line where its search begins, with nothing in its way.  weir_take
 * makes one try there; all else is behind one call, so that the usual way needs few registers.
 *
 * If the swap fails, another thread has decided on this key, and all begins anew on the new state.
 * A refusal swaps nothing in, unless the clock has stepped back, which must be remembered.  After a
 * grant the tag is read once more: if the key was evicted in between, the charge is taken back from
 * the slot's new key and made again.  A new key, a large state and a state under an older limit go
 * the general way (part.c).
 *
 * Then the rest: batches, give, reserve and settle, waiting.
 */
#include "table/batch.h"
#include "table/take-all.h"
#include "table/part.h"

static __attribute__((noinline, cold)) bool decide_slowly(struct weir_limiter *limiter,
                                                          struct weir__home home,
                                                          const struct weir_ask *ask, bool take,
                                                          struct weir_decision *d)
{
    struct weir__part part;

    weir__part_begin(&part, limiter, home);
    return weir__decide_slowly(&part, ask, take, d);
}

/* ------------------------------------------------------------- narrow ---- */

#define PAUSES 16

/* Another core is deciding on this very key.  It makes several decisions in the time that the cache
 * line takes to change hands, so let it. */
static void stand_back(void)
{
    for (int i = 0; i < PAUSES; i++)
        __builtin_ia32_pause();
}

/* No negative member, and no longer wait than a narrow slot can tell from a clock that has stepped
 * back. */
static inline bool is_plain(const struct weir_ask *ask)
{
    return (ask->cost | ask->now) >= 0 && (uint64_t)ask->wait_max <= WEIR__PACKED_WAIT_MAX;
}

/* Makes any ask plain.  False: its cost is negative. */
static bool mend(const struct weir_ask *ask, struct weir_ask *mended)
{
    *mended = *ask;
    mended->cost = ask->cost < 0 ? 0 : ask->cost;
    mended->now = ask->now < 0 ? 0 : ask->now;
    mended->wait_max = ask->wait_max < 0                       ? 0
                       : ask->wait_max < WEIR__PACKED_WAIT_MAX ? ask->wait_max
                                                               : WEIR__PACKED_WAIT_MAX;
    return ask->cost >= 0;
}

/* A negative cost: what a look would tell, and no for ever. */
static bool refuse_bad(struct weir_limiter *limiter, struct weir__home home,
                       const struct weir_ask *mended, struct weir_decision *d)
{
    weir__decide(limiter, home, mended, false, d);
    d->wait = 0;
    weir__refuse(d, WEIR_NEVER);
    d->reason = WEIR_BAD_ASK;
    return false;
}

/* One try.  False if the slot was somebody else's meanwhile, pinned, or decided on by another
 * thread: look again.  Narrow slots hold meters only, so the step is known. */
static inline __attribute__((always_inline)) bool
try_narrow(struct weir_limiter *limiter, uint64_t tag, struct weir__narrow *slot,
           const struct weir_ask *ask, bool take, struct weir_decision *d)
{
    uint64_t word = weir__load(&slot->word), charged;
    const struct weir_plan *plan = /* after the word: that may be under a later limit */
        &weir__limiter_era(limiter)->plan;
    weir_time now = ask->now;
    int64_t owed, after;
    bool stepped;

    if (__builtin_expect(weir__load(&slot->tag) != tag, 0)) /* the word may be another key's */
        return false;
    if (__builtin_expect((word & WEIR__PIN) != 0, 0)) {
        weir__hand_settle(limiter->table, &slot->word);
        return false;
    }
    weir__decision_begin(plan, d);
    owed = weir__unpack(plan, word, &now, &stepped);
    if (__builtin_expect(weir__debt_quick(plan, owed, ask, d, &after) == WEIR__NOT_QUICK, 0)) {
        int64_t later;
        weir__debt_meter(plan, owed, ask, d, &later);
        after = later;
    }
    if (!take || (after == owed &&
                  !stepped)) /* that the clock has stepped back is written down even by a refusal */
        return weir__load(&slot->word) == word && weir__load(&slot->tag) == tag;
    charged = weir__pack(now, after);
    if (__builtin_expect(!weir__swap(&slot->word, word, charged), 0)) {
        stand_back();
        return false;
    }
    if (__builtin_expect(weir__load(&slot->tag) == tag, 1))
        return true;
    (void)weir__swap(&slot->word, charged, word);
    return false;
}

static inline __attribute__((always_inline)) bool decide_narrow(struct weir_limiter *limiter,
                                                                struct weir__home home,
                                                                const struct weir_ask *ask,
                                                                bool take, struct weir_decision *d)
{
    struct weir_ask mended;

    if (__builtin_expect(!is_plain(ask), 0)) {
        if (!mend(ask, &mended))
            return refuse_bad(limiter, home, &mended, d);
        ask = &mended;
    }
    for (;;) {
        struct weir__narrow *slot = weir__narrow_find(limiter->space, home);
        if (__builtin_expect(slot == NULL, 0)) {
            uint64_t fresh[2] = { 0, 0 };
            if (!weir__step(&weir__limiter_era(limiter)->plan, fresh, ask, take, d) || !take ||
                ask->cost == 0)
                return d->allowed; /* a key that has nothing to remember gets no slot */
            return decide_slowly(limiter, home, ask, take, d);
        }
        if (__builtin_expect(try_narrow(limiter, home.tag, slot, ask, take, d), 1))
            return d->allowed;
    }
}

/* --------------------------------------------------------------- wide ---- */

static inline __attribute__((always_inline)) bool decide_wide(struct weir_limiter *limiter,
                                                              struct weir__home home,
                                                              const struct weir_ask *ask, bool take,
                                                              struct weir_decision *d)
{
    for (;;) {
        struct weir__wide *slot = weir__wide_find(limiter->space, home);
        const struct weir__era *era = weir__limiter_era(limiter);
        uint64_t fresh[2] = { 0, 0 };
        if (__builtin_expect(slot == NULL, 0) &&
            (!weir__step(&era->plan, fresh, ask, take, d) || !take || ask->cost == 0))
            return d->allowed;
        enum weir__tried tried = slot == NULL
                                     ? WEIR__TRIED_OTHER
                                     : weir__wide_try(slot, home.tag, era->version, weir__step,
                                                      &era->plan, ask, take, d);
        if (__builtin_expect(tried == WEIR__TRIED_DONE, 1))
            return d->allowed;
        if (tried == WEIR__TRIED_OTHER)
            return decide_slowly(limiter, home, ask, take, d);
    }
}

/* ------------------------------------------------------------- public ---- */

/* One try in the line where the search begins: nearly every key is there.  False: it is not, or
 * something is in the way: weir__decide. */
static inline __attribute__((always_inline)) bool take_near(struct weir_limiter *limiter,
                                                            uint64_t tag, void *line,
                                                            const struct weir_ask *ask,
                                                            struct weir_decision *d)
{
    if (limiter->kind == WEIR__NARROW)
        return is_plain(ask) && try_narrow(limiter, tag, weir__narrow_in(line, tag), ask, true, d);
    if (limiter->kind == WEIR__LARGE)
        return false;
    const struct weir__era *era = weir__limiter_era(limiter);
    return weir__wide_try(weir__wide_in(line, tag), tag, era->version, weir__step, &era->plan, ask,
                          true, d) == WEIR__TRIED_DONE;
}

bool weir__decide(struct weir_limiter *limiter, struct weir__home home, const struct weir_ask *ask,
                  bool take, struct weir_decision *d)
{
    if (limiter->kind == WEIR__NARROW)
        return decide_narrow(limiter, home, ask, take, d);
    return limiter->kind == WEIR__WIDE ? decide_wide(limiter, home, ask, take, d)
                                       : decide_slowly(limiter, home, ask, take, d);
}

/* Of the lines that the search may go on to, memory brings several at a time. */
static __attribute__((noinline)) bool take_further(struct weir_limiter *limiter,
                                                   struct weir__hash hash,
                                                   const struct weir_ask *ask,
                                                   struct weir_decision *d)
{
    struct weir__home home = weir__home_from(limiter->space, hash);

    (void)weir__fetch_further(limiter->space, hash, weir__slot_line(limiter->space, home));
    return weir__decide(limiter, home, ask, true, d);
}

bool weir_take(struct weir_limiter *limiter, const struct weir_ask *ask,
               struct weir_decision *decision)
{
    struct weir__hash hash = weir__slot_hash(limiter, ask->key);
    void *line = weir__slot_line(limiter->space, weir__home_from(limiter->space, hash));

    return __builtin_expect(take_near(limiter, hash.tag, line, ask, decision), 1)
               ? decision->allowed
               : take_further(limiter, hash, ask, decision);
}

bool weir_peek(struct weir_limiter *limiter, const struct weir_ask *ask,
               struct weir_decision *decision)
{
    struct weir__home home = weir__home_of(limiter, ask->key);

    return weir__decide(limiter, home, ask, false, decision);
}

static inline struct weir__batch_item item_at(struct weir_table *table, const void *items, size_t i)
{
    const struct weir_item *item = (const struct weir_item *)items + i;

    (void)table;
    return (struct weir__batch_item){ item->limiter, &item->ask, NULL };
}

static inline bool take_item_near(const struct weir__batch_item *item, const struct weir__aim *aim,
                                  struct weir_decision *d)
{
    return take_near(item->limiter, aim->hash.tag, aim->line, item->ask, d);
}

static __attribute__((noinline)) bool
take_item(const struct weir__batch_item *item, const struct weir__aim *aim, struct weir_decision *d)
{
    return weir__decide(item->limiter, weir__home_from(item->limiter->space, aim->hash), item->ask,
                        true, d);
}

size_t weir_take_many(const struct weir_item *items, size_t n, struct weir_decision *decisions)
{
    static const struct weir__batch_ways ways = { item_at, take_item_near, take_item };
    size_t granted = 0;

    for (size_t begin = 0; begin < n; begin += WEIR__BATCH)
        granted +=
            weir__take_batch(&ways, NULL, items + begin,
                             n - begin < WEIR__BATCH ? n - begin : WEIR__BATCH, decisions + begin);
    return granted;
}

/* --------------------------------------------------------------- give ---- */

struct gift {
    int64_t units; /* negative: charged */
    weir_time now;
    struct weir__unused unused;
};

static bool give_units(const struct weir_plan *plan, void *state, void *context)
{
    const struct gift *gift = context;

    plan->algo->give(plan, state, gift->units, gift->now);
    return true;
}

static bool give_unused(const struct weir_plan *plan, void *state, void *context)
{
    const struct gift *gift = context;

    plan->algo->give_unused(plan, state, &gift->unused, gift->now);
    return true;
}

static void adjust(struct weir_limiter *limiter, struct weir__home home, struct gift *gift,
                   bool (*how)(const struct weir_plan *, void *, void *))
{
    struct weir__part part;

    weir__part_begin(&part, limiter, home);
    part.gives = gift->units > 0 && !part.plan->algo->fills;
    weir__part_change(&part, how, gift, gift->units < 0 || part.plan->algo->fills, gift->now);
}

void weir_give(struct weir_limiter *limiter, const struct weir_ask *ask)
{
    struct gift gift = { .units = ask->cost, .now = ask->now < 0 ? 0 : ask->now };

    if (ask->cost > 0)
        adjust(limiter, weir__home_of(limiter, ask->key), &gift, give_units);
}

/* ------------------------------------------------- reserve and settle ---- */

bool weir_reserve(struct weir_limiter *limiter, const struct weir_ask *ask, weir_time lifetime,
                  struct weir_reservation *out, struct weir_decision *decision)
{
    weir_time now = ask->now < 0 ? 0 : ask->now;
    bool granted = weir_take(limiter, ask, decision);

    *out = (struct weir_reservation){ .limiter = limiter, .key = ask->key, .cost = ask->cost };
    if (granted) {
        out->turn = decision->wait > INT64_MAX - now ? INT64_MAX : now + decision->wait;
        out->expires = lifetime > INT64_MAX - out->turn ? INT64_MAX : out->turn + lifetime;
    }
    return granted;
}

bool weir_settle(struct weir_reservation *reservation, int64_t true_cost, weir_time now)
{
    weir_time expires = reservation->expires;

    reservation->expires = 0;
    now = now < 0 ? 0 : now;
    if (expires == 0 || now >= expires)
        return false;
    int64_t kept = true_cost < 0 ? 0 : true_cost, units = reservation->cost - kept;
    struct gift gift = { units, now, .unused = { units, kept, reservation->turn } };
    if (units != 0)
        adjust(reservation->limiter, weir__home_of(reservation->limiter, reservation->key), &gift,
               units > 0 ? give_unused : give_units);
    return true;
}

/* Its limiter may have gone, or another be in its place.  What was drawn for a purse has a life of
 * its own, which is not known any more. */
void weir__take_back(struct weir_table *table, const uint64_t taken[5], weir_time now)
{
    struct weir__hash hash = { .tag = taken[0], .place = taken[1] };

    now = now < 0 ? 0 : now;
    weir__look_begin(table);
    struct weir_limiter *limiter = weir__limiter_by_id(table, weir__tag_id(hash.tag));
    if (limiter != NULL && limiter->salt == taken[2]) {
        int64_t units = (int64_t)taken[3];
        struct gift gift = { units, now, .unused = { units, 0, (weir_time)taken[4] } };
        if (units > 0 && !weir__limiter_era(limiter)->plan.algo->fills)
            adjust(limiter, weir__home_from(limiter->space, hash), &gift, give_unused);
    }
    weir__look_end(table);
}

/* --------------------------------------------------------------- wait ---- */

bool weir_wait(struct weir_limiter *limiter, const struct weir_ask *ask,
               const struct weir_clock *clock, struct weir_decision *decision)
{
    struct weir_ask timed = *ask;

    timed.now = clock->now(clock->context);
    if (!weir_take(limiter, &timed, decision))
        return false;
    if (decision->wait > 0)
        clock->sleep(clock->context, decision->wait);
    return true;
}
