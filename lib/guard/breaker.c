/* breaker.c -- a circuit breaker: closed, open, half-open.
 *
 *     closed      counts every result in a window; opens when the window is too bad
 *     open        nothing passes until `at`
 *     half-open   `probes` calls pass; when enough of them are back to decide, it closes, or opens
 *                 for twice as long
 *
 * The decision depends on one pair of words, changed in one 16-byte swap: the gate and `at`.
 *
 *     gate    state 2 | force 2 | back-off 6 | probes out 8 | back 8 | bad 8 | slow 8 | idle 1
 *             | - 1 | episode 20
 *
 * An episode begins with each opening (and when force begins or ends).  Every count names its
 * episode, so a window need not be emptied when the breaker closes again: counts of another episode
 * do not count.  A probe's number is its episode's, so a late result of an earlier try changes
 * nothing.  The jitter comes from the seed and the episode.
 *
 * A time window is 16 parts.  Those that count are the present one and the 15 before it: nothing
 * older than the window, and always the newest 15/16 of it.  A late call counts in the part of its
 * own time; one that was stopped for a window or more after it had read the clock counts in the
 * present one.  When the clock has stepped back by that much, parts in the future would stay that
 * long; so the breaker's own count of parts goes on from where it was (skew).  A part holds 2
 * million calls; beyond, all of its counts are halved, which leaves the ratios.
 *
 * A count window is a ring of outcomes.  There are no totals that could drift: the ring is summed
 * when the sum can matter.  With `slow` it counts in parts too, which tell its pace.
 *
 * When can it matter?  For an error or a slow call: always.  For a success only
 *     if it completes min_calls: a count window knows its number; in a time window a call that
 *         found only min_calls missing has set a mark (watch) and looked again, so one of the two
 *         sees the other;
 *     or if others have left the time window: at the first call of a part.
 * Otherwise it only lowers a ratio.
 *
 * A process may be killed at any instruction: at worst an outcome is missing, or one from the last
 * lap stays for another.
 *
 * Not the obvious alternatives: a counter that is reset periodically opens on the sum of two
 * windows, or is reset just before it would open (Sentinel #3130); probes that are counted out but
 * never given back leave it half-open for ever (resilience4j #903).
 */
#include "algo/algo.h"
#include "guard/breaker-gate.h"
#include "guard/breaker-thresholds.h"

#define SELDOM __attribute__((noinline))

/* Checked after another episode was seen in the place of this one's result, and before the swap: an
 * old result never overwrites a new one. */
static bool is_over(const struct weir__breaker *b, uint64_t episode)
{
    return weir__gate_episode(weir__acquire(&b->gate)) != episode;
}

/* ------------------------------------------------------------ how long ---- */

static weir_time add_times(weir_time a, weir_time b)
{
    weir_time sum;

    return __builtin_add_overflow(a, b, &sum) ? WEIR_NEVER : sum;
}

static uint64_t gate_open(unsigned back_off, uint64_t gate)
{
    return weir__gate_make(WEIR_BREAKER_OPEN, WEIR_UNFORCED, back_off,
                           weir__gate_episode(gate) + 1);
}

static uint64_t gate_open_longer(uint64_t gate)
{
    unsigned back_off = gate >> WEIR__GATE_BACK_OFF & 0x3F;

    return gate_open(back_off < 0x3F ? back_off + 1 : back_off, gate);
}

static weir_time open_until(const struct weir__breaker_plan *plan, uint64_t opened, weir_time now)
{
    return add_times(now, weir__breaker_open_span(plan, opened >> WEIR__GATE_BACK_OFF & 0x3F,
                                                  weir__gate_episode(opened)));
}

/* No opening lasts longer: the clock has stepped back, and `at` may never come. */
static weir_time longest_of(const struct weir__breaker_plan *plan)
{
    return 4 * plan->open_max + WEIR_SECOND;
}

static bool is_too_far(const struct weir__breaker_plan *plan, weir_time wait)
{
    return wait > longest_of(plan);
}

weir_time weir__breaker_wait(const struct weir__breaker_plan *plan, weir_time at, weir_time now)
{
    weir_time wait = at > now ? at - now : 0;

    if (is_too_far(plan, wait)) /* or the caller was stopped since it read the clock */
        wait -= weir__moment(plan->clock, now + wait - longest_of(plan), now) - now;
    return is_too_far(plan, wait) || wait < 0 ? 0 : wait;
}

/* ---------------------------------------------------------- time window ---- */

#define PARTS      ((uint64_t)WEIR__BREAKER_PARTS)
#define PART_MASK  (((uint64_t)1 << 44) - 1) /* part numbers go round */
#define COUNT_MASK (((uint64_t)1 << 21) - 1)
#define ERROR_ONE  ((uint64_t)1 << 21)
#define SLOW_ONE   ((uint64_t)1 << 42)
#define FAR        (INT64_MAX / 4) /* a span that can be added to a time */

static uint64_t when_make(uint64_t part, uint64_t episode)
{
    return (part & PART_MASK) << 20 | episode;
}

/* Parts from `a` to `b`; below 0: b is earlier. */
static int64_t parts_between(uint64_t a, uint64_t b)
{
    return (int64_t)((b - a) << 20) >> 20;
}

static uint64_t part_of(const struct weir__breaker_plan *plan, const struct weir__breaker *b,
                        weir_time now)
{
    return (uint64_t)(now < 0 ? 0 : now) / (uint64_t)plan->part + weir__get(&b->skew);
}

/* Of this many parts, the present one included. */
static struct weir__counts time_sum_of(const struct weir__breaker *b, uint64_t part,
                                       uint64_t episode, int64_t parts)
{
    struct weir__counts c = { 0 };

    for (int i = 0; i < WEIR__BREAKER_PARTS; i++) {
        uint64_t p[2];
        weir__load_pair(&b->parts[i].when, p);
        int64_t age = parts_between(p[0] >> 20, part);
        if (p[0] % WEIR__GATE_EPISODES != episode || age >= parts || age <= -(int64_t)PARTS)
            continue;
        c.calls += (int64_t)(p[1] & COUNT_MASK);
        c.errors += (int64_t)(p[1] / ERROR_ONE & COUNT_MASK);
        c.slow += (int64_t)(p[1] / SLOW_ONE);
    }
    return c;
}

static struct weir__counts time_sum(const struct weir__breaker *b, uint64_t part, uint64_t episode)
{
    return time_sum_of(b, part, episode, (int64_t)PARTS);
}

static uint64_t halved(uint64_t counts)
{
    return (counts & COUNT_MASK) / 2 | (counts / ERROR_ONE & COUNT_MASK) / 2 * ERROR_ONE |
           counts / SLOW_ONE / 2 * SLOW_ONE;
}

/* Adds to counts of the same episode and part; replaces older ones, unless this call's own episode
 * is over. */
static void part_add(struct weir__breaker *b, uint64_t part, uint64_t episode, uint64_t one)
{
    struct weir__breaker_part *p = &b->parts[part % PARTS];
    uint64_t when = when_make(part, episode), seen[2], next[2];

    do {
        weir__load_pair(&p->when, seen);
        bool same = seen[0] % WEIR__GATE_EPISODES == episode,
             stays = same && parts_between(part, seen[0] >> 20) >= 0;
        if (!same && is_over(b, episode))
            return;
        next[0] = stays ? seen[0] : when;
        next[1] = (!stays                                 ? 0
                   : (seen[1] & COUNT_MASK) == COUNT_MASK ? halved(seen[1])
                                                          : seen[1]) +
                  one;
    } while (!weir__swap_pair(&p->when, seen, next));
}

/* The part to count in: that of `now`; the present one if the caller was stopped for a window; the
 * newest if the clock has stepped back by a window.  After a change of the window the newest may be
 * centuries away.  The table's clock, which goes on meanwhile, is read once. */
static uint64_t part_settle(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                            weir_time now)
{
    for (bool asked = false;; asked = true) {
        uint64_t skew = weir__get(&b->skew), part = part_of(plan, b, now);
        int64_t late = parts_between(part, weir__get(&b->latest));
        if (late < (int64_t)PARTS)
            return part;
        weir_time seen = late < FAR / plan->part ? now + late * plan->part : WEIR_NEVER;
        if (!asked)
            now = weir__moment(plan->clock, seen, now);
        else
            __atomic_compare_exchange_n(&b->skew, &skew, skew + (uint64_t)late, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* Returns the newest part, this one included. */
static uint64_t latest_raise(struct weir__breaker *b, uint64_t part)
{
    uint64_t latest = __atomic_load_n(&b->latest, __ATOMIC_SEQ_CST);

    while (parts_between(latest, part) > 0 &&
           !__atomic_compare_exchange_n(&b->latest, &latest, part, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        ;
    return parts_between(latest, part) > 0 ? part : latest;
}

/* Returns the part. */
static uint64_t time_count(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                           uint64_t episode, bool bad, bool slow, weir_time now)
{
    uint64_t part = part_settle(plan, b, now),
             one = 1 + (bad ? ERROR_ONE : 0) + (slow ? SLOW_ONE : 0);

    part_add(b, part, episode, one);
    latest_raise(b, part);
    return part;
}

/* Whether it must open.  The mark is set while the window is bad but has too few calls.  After each
 * change of the mark the sum is taken again: a concurrent success is in the sum, or sees the
 * mark. */
static bool time_reached(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                         uint64_t part, uint64_t episode)
{
    uint64_t mark = ~episode;

    for (;;) {
        struct weir__counts c = time_sum(b, latest_raise(b, part), episode);
        bool bad = weir__is_bad(plan, &c), few = c.calls < plan->min_calls;
        uint64_t watch = __atomic_load_n(&b->watch, __ATOMIC_SEQ_CST);
        if ((watch == mark) == (bad && few) || is_over(b, episode))
            return bad && !few;
        __atomic_compare_exchange_n(&b->watch, &watch, watch == mark ? 0 : mark, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
}

/* Counts, and says whether it must open.  `latest` is raised before the sum is taken: a concurrent
 * error in an older part is in the sum, or its thread sees the newer part and sums that. */
static bool time_tell(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                      uint64_t episode, bool bad, bool slow, weir_time now)
{
    return time_reached(plan, b, time_count(plan, b, episode, bad, slow, now), episode);
}

/* The usual case, a success in the newest part: nothing else to do.  False: not counted. */
static inline bool time_add(struct weir__breaker *b, uint64_t part, uint64_t when)
{
    struct weir__breaker_part *p = &b->parts[part % PARTS];
    uint64_t seen[2] = { when, weir__acquire(&p->counts) }, next[2] = { when, seen[1] + 1 };

    return ((part ^ weir__get(&b->latest)) & PART_MASK) == 0 &&
           (seen[1] & COUNT_MASK) != COUNT_MASK && weir__acquire(&p->when) == when &&
           weir__swap_pair(&p->when, seen, next);
}

/* --------------------------------------------------------- count window ---- */

enum { OUTCOMES = 16, TOLD = 44 }; /* in a word of the ring; where the episode is in `told` */

#define TOLD_MASK (((uint64_t)1 << TOLD) - 1)

static int64_t told_of(const struct weir__breaker *b, uint64_t episode)
{
    uint64_t told = weir__acquire(&b->told);

    return told >> TOLD == episode ? (int64_t)(told & TOLD_MASK) : 0;
}

/* The number of this call, from 0; -1: its episode is over.  Once the ring is full only the place
 * in it matters, so the number stays below twice its size. */
static int64_t count_next(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                          uint64_t episode)
{
    uint64_t told = weir__acquire(&b->told);
    int64_t n, next;

    do {
        bool same = told >> TOLD == episode;
        if (!same && is_over(b, episode))
            return -1;
        n = same ? (int64_t)(told & TOLD_MASK) : 0;
        if (n >= 2 * plan->calls) /* the window was made smaller */
            n = plan->calls + n % plan->calls;
        next = n + 1 == 2 * plan->calls ? plan->calls : n + 1;
    } while (!__atomic_compare_exchange_n(&b->told, &told, episode << TOLD | (uint64_t)next, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
    return n;
}

/* The outcome at this place; a word of another episode holds nothing. */
static void ring_put(struct weir__breaker *b, int64_t place, uint64_t episode, bool bad, bool slow)
{
    uint64_t *word = &b->ring[place / OUTCOMES], seen = weir__acquire(word), next;
    uint64_t error_bit = (uint64_t)1 << place % OUTCOMES, slow_bit = error_bit << OUTCOMES;

    do {
        bool same = seen >> 32 == episode;
        if (!same && is_over(b, episode))
            return;
        next = same ? seen & ~(error_bit | slow_bit) : episode << 32;
        next |= (bad ? error_bit : 0) | (slow ? slow_bit : 0);
    } while (next != seen && !__atomic_compare_exchange_n(word, &seen, next, false,
                                                          __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
}

static struct weir__counts ring_sum(const struct weir__breaker_plan *plan,
                                    const struct weir__breaker *b, uint64_t episode)
{
    int64_t told = told_of(b, episode);
    struct weir__counts c = { .calls = told < plan->calls ? told : plan->calls };

    for (int64_t i = 0; i * OUTCOMES < c.calls; i++) {
        int64_t left = c.calls - i * OUTCOMES;
        uint64_t word = weir__acquire(&b->ring[i]),
                 mask = left >= OUTCOMES ? 0xFFFF : ((uint64_t)1 << left) - 1;
        if (word >> 32 != episode)
            continue;
        c.errors += __builtin_popcountll(word & mask);
        c.slow += __builtin_popcountll(word >> OUTCOMES & mask);
    }
    return c;
}

/* Counts, and says whether it must open.  Calls that hang are compared with the pace, not with a
 * window that may be full in a millisecond. */
static bool count_tell(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                       uint64_t episode, bool bad, bool slow, weir_time now)
{
    int64_t n = count_next(plan, b, episode);

    if (n < 0)
        return false;
    if (plan->slow != 0)
        time_count(plan, b, episode, bad, slow, now);
    ring_put(b, n < plan->calls ? n : n - plan->calls, episode, bad, slow);
    if (!bad && !slow && n + 1 != plan->min_calls)
        return false;
    struct weir__counts c = ring_sum(plan, b, episode);
    return c.calls >= plan->min_calls && weir__is_bad(plan, &c);
}

/* --------------------------------------------------------------- telling ---- */

/* Opens it, unless another thread has, or it is forced. */
static SELDOM struct weir__breaker_move open_it(const struct weir__breaker_plan *plan,
                                                struct weir__breaker *b, uint64_t gate,
                                                weir_time now)
{
    uint64_t seen[2], opened = gate_open(0, gate);

    do {
        weir__load_pair(&b->gate, seen);
        if (seen[0] != gate || weir__gate_force(gate) != WEIR_UNFORCED)
            return (struct weir__breaker_move){ WEIR_BREAKER_CLOSED, WEIR_BREAKER_CLOSED };
    } while (!weir__gate_swap(b, seen, opened, open_until(plan, opened, now)));
    return (struct weir__breaker_move){ WEIR_BREAKER_CLOSED, WEIR_BREAKER_OPEN };
}

/* The verdict of the probes that are back, if the rest cannot change it. */
static enum weir_breaker_state probes_decide(const struct weir__breaker_plan *plan, uint64_t gate)
{
    int64_t back = weir__gate_byte(gate, WEIR__GATE_BACK),
            bad = weir__gate_byte(gate, WEIR__GATE_BAD),
            slow = weir__gate_byte(gate, WEIR__GATE_SLOW);
    int64_t all = back > plan->probes ? back : plan->probes;
    struct weir__counts best = { all, bad, slow },
                        worst = { all, bad + all - back, slow + all - back };
    int64_t any_bad = plan->errors != 0; /* if errors are counted, one is too many */

    if (weir__is_bad(plan, &best) || any_bad * bad > 0)
        return WEIR_BREAKER_OPEN;
    return weir__is_bad(plan, &worst) || any_bad * worst.errors > 0 ? WEIR_BREAKER_HALF_OPEN
                                                                    : WEIR_BREAKER_CLOSED;
}

static struct weir__breaker_move tell_probe(const struct weir__breaker_plan *plan,
                                            struct weir__breaker *b, uint32_t probe, bool bad,
                                            bool slow, weir_time now)
{
    for (;;) {
        uint64_t seen[2], gate;
        weir__load_pair(&b->gate, seen);
        if (!weir__gate_has_out(seen[0], probe) ||
            weir__gate_byte(seen[0], WEIR__GATE_BACK) == WEIR__BREAKER_PROBES)
            return (struct weir__breaker_move){ 0 };
        gate = seen[0] - ((uint64_t)1 << WEIR__GATE_OUT) + ((uint64_t)1 << WEIR__GATE_BACK) +
               ((uint64_t)bad << WEIR__GATE_BAD) + ((uint64_t)slow << WEIR__GATE_SLOW);
        weir_time at = (weir_time)seen[1];
        enum weir_breaker_state to = probes_decide(plan, gate);
        if (to == WEIR_BREAKER_OPEN) {
            gate = gate_open_longer(seen[0]);
            at = open_until(plan, gate, now);
        } else if (to == WEIR_BREAKER_CLOSED) {
            gate = weir__gate_make(WEIR_BREAKER_CLOSED, WEIR_UNFORCED, 0, weir__gate_episode(gate));
            at = now;
        }
        if (weir__gate_swap(b, seen, gate, at))
            return (struct weir__breaker_move){ WEIR_BREAKER_HALF_OPEN, (uint8_t)to };
    }
}

static SELDOM struct weir__breaker_move tell_fully(const struct weir__breaker_plan *plan,
                                                   struct weir__breaker *b, uint32_t probe,
                                                   bool bad, bool slow, weir_time now)
{
    uint64_t gate = weir__acquire(&b->gate), episode = weir__gate_episode(gate);

    if (probe != 0)
        return tell_probe(plan, b, probe, bad, slow, now);
    if (weir__gate_state(gate) != WEIR_BREAKER_CLOSED ||
        weir__gate_force(gate) == WEIR_FORCE_OPEN || !plan->on)
        return (struct weir__breaker_move){ 0 };
    bool reached = plan->calls == 0 ? time_tell(plan, b, episode, bad, slow, now)
                                    : count_tell(plan, b, episode, bad, slow, now);
    return reached ? open_it(plan, b, gate, now) : (struct weir__breaker_move){ 0 };
}

/* It was counted, and another call has set the mark. */
static SELDOM struct weir__breaker_move tell_watched(const struct weir__breaker_plan *plan,
                                                     struct weir__breaker *b, uint64_t gate,
                                                     uint64_t part, weir_time now)
{
    bool reached = time_reached(plan, b, part, weir__gate_episode(gate));

    return reached ? open_it(plan, b, gate, now) : (struct weir__breaker_move){ 0 };
}

struct weir__breaker_move weir__breaker_tell(const struct weir__breaker_plan *plan,
                                             struct weir__breaker *b, uint32_t probe, bool bad,
                                             weir_time took, weir_time now)
{
    uint64_t gate = weir__acquire(&b->gate);
    bool slow = weir__is_slow(plan, took);

    if (plan->slow != 0 && !(slow && bad))
        weir__breaker_note_moved(b, took, now);
    if (__builtin_expect(probe != 0 || bad || slow || plan->calls != 0 ||
                             (gate & WEIR__BREAKER_EVENTFUL) != 0,
                         0))
        return tell_fully(plan, b, probe, bad, slow, now);
    uint64_t part = part_of(plan, b, now), when = when_make(part, weir__gate_episode(gate));
    if (__builtin_expect(!time_add(b, part, when), 0))
        return tell_fully(plan, b, probe, bad, slow, now);
    if (__builtin_expect(weir__acquire(&b->watch) == ~weir__gate_episode(gate), 0))
        return tell_watched(plan, b, gate, part, now);
    return (struct weir__breaker_move){ 0 };
}

/* ------------------------------------------------------------- in flight ---- */

/* The calls that have ended since then, roughly; if that is longer ago than the window, as many as
 * at its pace. */
static struct weir__counts ended_since(const struct weir__breaker_plan *plan,
                                       const struct weir__breaker *b, weir_time from, weir_time now)
{
    uint64_t part = part_of(plan, b, now), episode = weir__gate_episode(weir__acquire(&b->gate));
    int64_t parts = parts_between(part_of(plan, b, from), part) + 1, all = (int64_t)PARTS;
    struct weir__counts c = time_sum_of(b, part, episode, parts < all ? parts : all);

    if (parts > all) {
        c.calls = c.calls * parts / all;
        c.slow = c.slow * parts / all;
    }
    return c;
}

bool weir__breaker_is_overrun(const struct weir__breaker_plan *plan, const struct weir__breaker *b,
                              weir_time oldest, int64_t out, weir_time now)
{
    return (double)out * (double)(now - oldest) / WEIR__BREAKER_OVERRUN >
           (double)plan->slow * (double)ended_since(plan, b, oldest, now).calls;
}

/* What was before the first of them says nothing.  Those that ended late do not count, unless there
 * are more than can be worked off: a few that hang would make the window short for all.  Those that
 * hang for longer than the window are left out like all that it has forgotten: a few would become
 * many. */
static bool hang_reached(const struct weir__breaker_plan *plan, const struct weir__breaker *b,
                         const struct weir__hanging *h, weir_time now)
{
    if (h->calls >= plan->min_calls && h->alone * 2 >= plan->min_calls)
        return true;
    struct weir__counts c = ended_since(plan, b, h->oldest, now);
    int64_t calls = c.calls + h->recent, slow = h->recent + (h->overrun ? c.slow : 0);
    return calls >= plan->min_calls && weir__ratio_reached(plan, slow, calls, plan->slow_percent);
}

struct weir__breaker_move weir__breaker_hang(const struct weir__breaker_plan *plan,
                                             struct weir__breaker *b, const struct weir__hanging *h,
                                             weir_time now)
{
    uint64_t seen[2];
    struct weir__breaker_move none = { 0, 0 };

    weir__load_pair(&b->gate, seen);
    if (h->calls > 0 && (seen[0] & WEIR__BREAKER_EVENTFUL) == WEIR_BREAKER_CLOSED)
        return hang_reached(plan, b, h, now) ? open_it(plan, b, seen[0], now) : none;
    uint64_t probes = (uint64_t)weir__int_least(h->probes[weir__gate_probe(seen[0])],
                                                weir__gate_byte(seen[0], WEIR__GATE_OUT));
    if ((seen[0] & WEIR__BREAKER_EVENTFUL) != WEIR_BREAKER_HALF_OPEN ||
        probes_decide(plan, seen[0] + (probes << WEIR__GATE_BACK) + (probes << WEIR__GATE_SLOW)) !=
            WEIR_BREAKER_OPEN)
        return none;
    uint64_t gate = gate_open_longer(seen[0]);
    return weir__gate_swap(b, seen, gate, open_until(plan, gate, now))
               ? (struct weir__breaker_move){ WEIR_BREAKER_HALF_OPEN, WEIR_BREAKER_OPEN }
               : none;
}

/* ---------------------------------------------------------------- asking ---- */

/* A guess at when probes come back: a part of the open time, or the time of a call that is barely
 * not slow. */
static weir_time probes_wait(const struct weir__breaker_plan *plan)
{
    weir_time guess = plan->open_for / 16;

    if (plan->slow != 0 && plan->slow < guess)
        guess = plan->slow;
    return guess < WEIR_MILLISECOND ? WEIR_MILLISECOND : guess;
}

/* How long ago the last probe went out, or was renewed. */
static weir_time since_probe(const uint64_t seen[2], weir_time now)
{
    weir_time since = (weir_time)seen[1];

    return now > since ? now - since : since - now;
}

/* No probe has come back for longer than one may take: their holders were killed. */
static bool are_lost(const struct weir__breaker_plan *plan, const uint64_t seen[2], weir_time now)
{
    return plan->patience > 0 && since_probe(seen, now) > plan->patience;
}

/* One waits for its client.  No more often than a breaker that opens again would try. */
static bool is_idle(const struct weir__breaker_plan *plan, const uint64_t seen[2], weir_time now)
{
    return (seen[0] >> WEIR__GATE_IDLE & 1) && since_probe(seen, now) >= plan->open_for &&
           weir__gate_byte(seen[0], WEIR__GATE_OUT) < WEIR__BREAKER_PROBES;
}

/* The gate with one more probe out; 0: there is no room.  If `probes` was lowered below the number
 * already back, they start again.  So they do, in another episode, if they are lost; if one comes
 * back after all, it does not count.  One that idles counts when it comes back, but another goes
 * out beside it. */
static uint64_t gate_probe(const struct weir__breaker_plan *plan, const uint64_t seen[2],
                           weir_time now)
{
    unsigned out = weir__gate_byte(seen[0], WEIR__GATE_OUT),
             back = weir__gate_byte(seen[0], WEIR__GATE_BACK);
    bool lost = out > 0 && are_lost(plan, seen, now);
    uint64_t one = (uint64_t)1 << WEIR__GATE_OUT,
             busy = seen[0] & ~((uint64_t)1 << WEIR__GATE_IDLE);

    if ((int32_t)(out + back) < plan->probes)
        return (out == 0 ? busy : seen[0]) + one;
    if (out > 0 && !lost && is_idle(plan, seen, now))
        return busy + one;
    if (out > 0 && !lost)
        return 0;
    return weir__gate_make(WEIR_BREAKER_HALF_OPEN, WEIR_UNFORCED,
                           seen[0] >> WEIR__GATE_BACK_OFF & 0x3F,
                           weir__gate_episode(seen[0]) + lost) |
           one;
}

/* The gate after an ask at `now`; 0: refused, and *retry says for how long. */
static uint64_t gate_ask(const struct weir__breaker_plan *plan, const uint64_t seen[2],
                         weir_time now, weir_time *retry)
{
    if (weir__gate_force(seen[0]) == WEIR_FORCE_OPEN) {
        *retry = WEIR_NEVER;
        return 0;
    }
    if (weir__gate_state(seen[0]) == WEIR_BREAKER_HALF_OPEN) {
        *retry = probes_wait(plan);
        return gate_probe(plan, seen, now);
    }
    *retry = weir__breaker_wait(plan, (weir_time)seen[1], now);
    if (*retry > 0)
        return 0;
    return weir__gate_make(WEIR_BREAKER_HALF_OPEN, WEIR_UNFORCED,
                           seen[0] >> WEIR__GATE_BACK_OFF & 0x3F, weir__gate_episode(seen[0])) |
           (uint64_t)1 << WEIR__GATE_OUT;
}

static SELDOM bool ask_slowly(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                              weir_time now, uint32_t *probe, weir_time *retry,
                              struct weir__breaker_move *move)
{
    uint64_t seen[2], gate;

    now = now < 0 ? 0 : now;
    do {
        weir__load_pair(&b->gate, seen);
        unsigned state = weir__gate_state(seen[0]);
        *move = (struct weir__breaker_move){ (uint8_t)state, (uint8_t)state };
        if (weir__gate_force(seen[0]) == WEIR_FORCE_CLOSED ||
            (weir__gate_force(seen[0]) == WEIR_UNFORCED &&
             (state == WEIR_BREAKER_CLOSED || !plan->on)))
            return true;
        gate = gate_ask(plan, seen, now, retry);
        if (gate == 0)
            return false;
        move->to = WEIR_BREAKER_HALF_OPEN;
    } while (!weir__gate_swap(b, seen, gate, now));
    *probe = weir__gate_probe(gate);
    *retry = 0;
    return true;
}

bool weir__breaker_ask(const struct weir__breaker_plan *plan, struct weir__breaker *b,
                       weir_time now, uint32_t *probe, weir_time *retry,
                       struct weir__breaker_move *move)
{
    *probe = 0;
    *retry = 0;
    *move = (struct weir__breaker_move){ 0 };
    if (__builtin_expect((weir__acquire(&b->gate) & WEIR__BREAKER_EVENTFUL) == 0, 1))
        return true;
    return ask_slowly(plan, b, now, probe, retry, move);
}

/* --------------------------------------------------------- by hand, looks ---- */

void weir__breaker_force(struct weir__breaker *b, enum weir_force force, weir_time now)
{
    uint64_t seen[2];

    do
        weir__load_pair(&b->gate, seen);
    while (!weir__gate_swap(
        b, seen, weir__gate_make(WEIR_BREAKER_CLOSED, force, 0, weir__gate_episode(seen[0]) + 1),
        now));
}

static struct weir__counts look_counts(const struct weir__breaker_plan *plan,
                                       const struct weir__breaker *b, uint64_t gate, weir_time now)
{
    uint64_t episode = (weir__gate_episode(gate) - (weir__gate_state(gate) == WEIR_BREAKER_OPEN)) %
                       WEIR__GATE_EPISODES;

    if (weir__gate_state(gate) == WEIR_BREAKER_HALF_OPEN)
        return (struct weir__counts){ weir__gate_byte(gate, WEIR__GATE_BACK),
                                      weir__gate_byte(gate, WEIR__GATE_BAD),
                                      weir__gate_byte(gate, WEIR__GATE_SLOW) };
    if (plan->calls != 0)
        return ring_sum(plan, b, episode);
    uint64_t part = part_of(plan, b, now), latest = weir__get(&b->latest);
    return time_sum(b, parts_between(latest, part) > 0 ? part : latest, episode);
}

static weir_time retry_at(const struct weir__breaker_plan *plan, weir_time at, weir_time now)
{
    return at > now ? now + weir__breaker_wait(plan, at, now) : at;
}

void weir__breaker_look(const struct weir__breaker_plan *plan, const struct weir__breaker *b,
                        weir_time now, struct weir__breaker_view *out)
{
    uint64_t seen[2];

    *out = (struct weir__breaker_view){ 0 };
    weir__load_pair(&b->gate, seen); /* forced, even without thresholds */
    struct weir__counts c =
        plan->on ? look_counts(plan, b, seen[0], now) : (struct weir__counts){ 0 };
    out->force = (enum weir_force)weir__gate_force(seen[0]);
    out->state = out->force == WEIR_FORCE_OPEN ? WEIR_BREAKER_OPEN
                 : plan->on                    ? (enum weir_breaker_state)weir__gate_state(seen[0])
                                               : WEIR_BREAKER_CLOSED;
    out->retry_at = out->force == WEIR_FORCE_OPEN     ? WEIR_NEVER
                    : out->state == WEIR_BREAKER_OPEN ? retry_at(plan, (weir_time)seen[1], now)
                                                      : 0;
    out->calls = c.calls;
    out->errors = c.errors;
    out->slow = c.slow;
}
