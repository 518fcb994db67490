/* laws.c -- what holds for every algorithm, over random limits and random asks.
 *
 *     laws SEED ROUNDS    prints the seed on a failure, so that it can be run again
 *
 * Each round makes a random limit of one algorithm and plays a few hundred random asks on one key:
 * small and large costs, with and without waiting, time that stands still, crawls and jumps, asks
 * that were overtaken; and, on copies of the key, steps back of the clock, gives and changes of the
 * limit.  The laws:
 *
 *     zero is fresh         a state of zeros answers as a key that has used nothing
 *     no changes nothing    a refusal leaves every byte as it was; a look does always
 *     retry is exact        the same ask passes after decision.retry, and not a nanosecond before
 *     never too much        what passed in any interval stays within the algorithm's bound
 *     never too little      a fresh key gets its whole burst; what the plainest possible model
 *                           would grant is granted
 *     idle is fresh         from idle_at on the answers are those of a fresh key; before, not all
 *                           of them are
 *     a look tells          peek answers what take would
 *     giving back           undoes a take, and never lifts a key above full
 *     late asks             an ask overtaken by a later one does not raise the bound
 *     change                keeps what was used
 */
#include "laws-models.h"

/* ---------------------------------------------------------------- laws ---- */

static void remember(struct key *k, const struct weir_ask *a, const struct weir_decision *d)
{
    weir_time base = a->now > k->seen ? a->now : k->seen;

    if (k->granted == GRANTS_MAX || a->cost == 0)
        return;
    k->grants[k->granted++] = (struct grant){ base + d->wait, a->cost };
}

/* Units that passed from grant i to grant j, both included, against the bound for that span. */
static weir__i128 bound_over(const struct key *k, weir_time span, int64_t largest)
{
    const struct weir_limit *l = &k->plan->limit;
    weir__i128 rate = ((weir__i128)(span + 1) * l->count) /
                      span_of_round; /* + 1: turns are told in whole ns, rounded up */

    if (is("fixed-window"))
        return (weir__i128)l->count * ((weir__i128)span / l->period + 2);
    if (is("calendar")) /* windows of 28 days are months, too; see also in_each_window */
        return (weir__i128)l->count * ((weir__i128)span / (span_of_round * 9 / 10) + 2);
    if (is("sliding-window") && l->loose)
        return 2 * (weir__i128)l->count * ((weir__i128)span / l->period + 1);
    if (is_window())
        return (weir__i128)l->count * ((weir__i128)span / l->period + 1);
    if (borrows())
        return rate + 1 + (is("smooth") ? l->burst : 0) + largest;
    if (l->queue !=
        0) /* each goes when what was before it has drained, whole: the last may be large */
        return rate + 1 + l->burst + largest;
    return rate + l->burst;
}

static void never_too_much(const struct key *k)
{
    for (int tries = 0; tries < 60 && k->granted > 0; tries++) {
        int i = (int)between(0, k->granted - 1),
            j = (int)between(i, k->granted - 1 < i + 300 ? k->granted - 1 : i + 300);
        weir__i128 sum = 0;
        int64_t largest = 0;
        for (int g = i; g <= j; g++) {
            sum += k->grants[g].units;
            largest = k->grants[g].units > largest ? k->grants[g].units : largest;
        }
        LAW(k->grants[j].at >= k->grants[i].at, "turns come in order");
        LAW(sum <= bound_over(k, k->grants[j].at - k->grants[i].at, largest), "never too much");
    }
}

/* No more than the count in the calendar window of any grant. */
static void in_each_window(const struct key *k)
{
    for (int i = 0; i < k->granted; i++) {
        weir_time start, length = weir__calendar_window(k->plan, k->grants[i].at, &start);
        int64_t sum = 0;
        for (int g = i; g < k->granted && k->grants[g].at - start < length; g++)
            sum += k->grants[g].units;
        LAW(start <= k->grants[i].at && k->grants[i].at - start < length,
            "a moment lies in its window");
        LAW(sum <= k->plan->limit.count, "never too much in a window");
    }
}

static bool same_decision(const struct weir_decision *a, const struct weir_decision *b)
{
    return a->allowed == b->allowed && a->reason == b->reason && a->limit == b->limit &&
           a->remaining == b->remaining && a->wait == b->wait && a->retry == b->retry &&
           a->reset == b->reset;
}

static void check_decision(const struct key *k, const struct weir_ask *a,
                           const struct weir_decision *d)
{
    LAW(d->limit == k->plan->most, "limit is the most at once");
    LAW(d->remaining >= 0 && d->remaining <= d->limit, "remaining lies within the limit");
    LAW(d->wait >= 0 && d->retry >= 0 && d->reset >= 0, "spans are not negative");
    LAW(d->allowed == (d->reason == WEIR_GRANTED), "the reason fits the answer");
    LAW(!d->allowed || d->retry == 0, "granted has no retry");
    LAW(d->allowed || (d->retry > 0 && d->wait == 0), "refused has a retry");
    LAW(d->wait <= a->wait_max, "nobody waits longer than it can");
    LAW((d->retry == WEIR_NEVER) == (!d->allowed && !borrows() && a->cost > d->limit),
        "never is for what is too big, and for that only");
}

/* The state is tried on a copy `after` later. */
static bool passes_later(struct key *k, const struct weir_ask *a, weir_time after)
{
    struct weir_ask again = *a;
    struct weir_decision d;

    again.now = (a->now > k->seen ? a->now : k->seen) + after;
    memcpy(k->copy, k->state, k->size);
    return weir_step(k->plan, k->copy, &again, &d);
}

static void retry_is_exact(struct key *k, const struct weir_ask *a, const struct weir_decision *d)
{
    if (d->retry == WEIR_NEVER || d->retry > INT64_MAX / 4 || k->latest > INT64_MAX / 4)
        return;
    LAW(passes_later(k, a, d->retry), "what was refused passes after retry");
    LAW(!passes_later(k, a, d->retry - 1), "and not before");
}

static void idle_is_fresh(struct key *k)
{
    weir_time idle = weir_step_idle_at(k->plan, k->state),
              now = idle > k->latest ? idle : k->latest;

    if (idle > INT64_MAX / 2)
        return;
    unsigned char *fresh = calloc(1, k->size);
    memcpy(k->copy, k->state, k->size);
    for (int i = 0; i < 8; i++) {
        struct weir_ask a = random_ask(k);
        struct weir_decision one, other;
        a.now = now;
        weir_step(k->plan, k->copy, &a, &one);
        weir_step(k->plan, fresh, &a, &other);
        LAW(same_decision(&one, &other), "from idle_at on a key is as good as fresh");
        now += between(0, 3) * (span_of_round / limit_of_round.count);
    }
    free(fresh);
}

static void reset_is_idle(struct key *k, const struct weir_ask *a, const struct weir_decision *d)
{
    weir_time now = a->now > k->seen ? a->now : k->seen,
              idle = weir_step_idle_at(k->plan, k->state);

    if (idle == INT64_MAX || a->cost == 0)
        return;
    LAW(d->reset == (idle > now ? idle - now : 0), "reset is the time to idle_at");
}

static void take_once(struct key *k, const struct weir_ask *a)
{
    struct weir_decision looked, d;

    memcpy(k->copy, k->state, k->size);
    weir_step_peek(k->plan, k->state, a, &looked);
    LAW(memcmp(k->copy, k->state, k->size) == 0, "a look changes nothing");
    weir_step(k->plan, k->state, a, &d);
    LAW(same_decision(&looked, &d), "a look tells what a take does");
    check_decision(k, a, &d);
    if (d.allowed) {
        remember(k, a, &d);
        reset_is_idle(k, a, &d);
        k->seen = a->cost > 0 && a->now > k->seen ? a->now : k->seen;
        return;
    }
    LAW(memcmp(k->copy, k->state, k->size) == 0, "no changes nothing");
    retry_is_exact(k, a, &d);
}

/* A fresh key passes its whole burst at once, and not one unit more. */
static void fresh_gets_its_burst(const struct key *k)
{
    unsigned char *fresh = calloc(1, k->size);
    struct weir_ask a = { .now = k->now, .cost = 1 };
    struct weir_decision d;
    int64_t got = 0, most = is("warm-up")               ? 1
                            : k->plan->limit.queue != 0 ? k->plan->limit.burst
                                                        : k->plan->most;

    a.wait_max = 0;
    if (is("smooth")) /* has saved its burst once its clock has run that long; then one more borrows
                       */
        a.now +=
            (weir_time)(((weir__i128)span_of_round * k->plan->most) / limit_of_round.count) + 1;
    while (got <= most + 2 && got < 1000 && weir_step(k->plan, fresh, &a, &d))
        got++;
    LAW(got >= (most > 1000 ? 1000 : most), "a fresh key gets its whole burst");
    LAW(got <= most + (is("smooth") ? 1 : 0) || got == 1000, "and no more");
    memset(fresh, 0, k->size);
    a.cost = k->plan->most;
    LAW(weir_step(k->plan, fresh, &a, &d), "in one piece, too");
    free(fresh);
}

/* Where asks borrow: the wait that a take leaves to the next is gone when it is given back
 * (warm-up: what it cost at full rate). */
static void give_back_a_loan(struct key *k)
{
    struct weir_ask a = { .now = k->latest, .cost = between(1, 5), .wait_max = WEIR_FOREVER },
                    look = { .now = k->latest, .wait_max = WEIR_FOREVER };
    struct weir_decision before, taken, between_times, after;

    memcpy(k->copy, k->state, k->size);
    weir_step_peek(k->plan, k->copy, &look, &before);
    weir_step(k->plan, k->copy, &a, &taken);
    weir_step_peek(k->plan, k->copy, &look, &between_times);
    weir_step_give(k->plan, k->copy, &a);
    weir_step_peek(k->plan, k->copy, &look, &after);
    LAW(after.wait <= between_times.wait, "giving back shortens the wait");
    LAW(!is("smooth") || (after.wait == before.wait && after.remaining == before.remaining),
        "giving back undoes a take");
    LAW(after.wait >= before.wait, "and not more than that");
}

static void give_back(struct key *k)
{
    struct weir_ask a = { .now = k->latest, .cost = between(1, 5) };
    struct weir_decision before, taken, after;
    struct weir_ask look = { .now = k->latest };

    if (borrows()) {
        give_back_a_loan(k);
        return;
    }
    memcpy(k->copy, k->state, k->size);
    weir_step_peek(k->plan, k->copy, &look, &before);
    if (weir_step(k->plan, k->copy, &a, &taken)) {
        weir_step_give(k->plan, k->copy, &a);
        weir_step_peek(k->plan, k->copy, &look, &after);
        LAW(after.remaining == before.remaining, "giving back undoes a take");
    }
    a.cost = between(1, INT64_MAX);
    weir_step_give(k->plan, k->copy, &a);
    weir_step_peek(k->plan, k->copy, &look, &after);
    LAW(after.remaining <= after.limit, "giving back does not lift a key above full");
    LAW(after.remaining == after.limit || !before.allowed,
        "giving back everything makes it full, if nobody was promised a later turn");
}

/* Late by up to a second: judged as of the latest moment seen, so that overtaken asks find no more
 * than others. */
static void ask_late(struct key *k)
{
    struct weir_ask a = { .now = k->latest - between(0, WEIR_SECOND), .cost = 1 },
                    sharp = { .now = k->latest, .cost = 1 };
    struct weir_decision late, punctual;

    if (a.now < 0 || is("warm-up") || counts_by_the_clock() ||
        weir_step_idle_at(k->plan, k->state) <= k->latest)
        return;
    memcpy(k->copy, k->state, k->size);
    weir_step_peek(k->plan, k->copy, &a, &late);
    weir_step_peek(k->plan, k->copy, &sharp, &punctual);
    LAW(late.remaining <= punctual.remaining, "being late finds no more");
}

/* How long the state itself, by its own clock, could still hold somebody up: asks that it did not
 * have to remember left no trace in it. */
static weir_time held_up(const struct key *k, weir_time *seen)
{
    weir_time idle = weir_step_idle_at(k->plan, k->state);
    uint64_t words[2];

    memcpy(words, k->state, sizeof(words));
    *seen = (weir_time)words[0];
    if (is("warm-up"))
        return (weir_time)(((uint64_t)1 << (words[1] >> 58)) - 1) + WEIR_SECOND;
    return (idle > *seen ? idle - *seen : 0) + (is_window() ? 2 * span_of_round + 1 : 0);
}

/* An hour and more back: nothing is given away, and nobody is locked out for longer than by what
 * was promised before. */
static void step_back(struct key *k)
{
    struct weir_ask a = { .now = k->latest, .cost = 1 }, b = a;
    struct weir_decision before, after, looked;
    weir_time seen, longest = held_up(k, &seen);

    b.now = k->latest - 3600 * WEIR_SECOND - between(0, 3600 * WEIR_SECOND) - span_of_round;
    if (b.now < 0 || longest > INT64_MAX / 4)
        return;
    weir_step_peek(k->plan, k->state, &a, &before);
    memcpy(k->copy, k->state, k->size);
    weir_step_peek(k->plan, k->copy, &b, &looked);
    weir_step(k->plan, k->copy, &b, &after);
    LAW(same_decision(&looked, &after),
        "a look tells what a take does, though the clock stepped back");
    if (!borrows() && !is("sliding-window") && !is("sliding-log"))
        LAW(after.remaining <= before.remaining, "a step back gives nothing away");
    if (b.now < seen - longest - span_of_round - WEIR_SECOND)
        LAW(after.allowed || after.retry <= longest, "a step back locks nobody out");
    if (!after.allowed && after.retry < INT64_MAX / 4) {
        b.now += after.retry;
        LAW(weir_step(k->plan, k->copy, &b, &after), "and the retry it tells is true");
    }
}

/* Tighter, wider, faster, slower: at no moment may a key that has just been refused find more than
 * the new limit holds. */
static void change_limit(struct key *k)
{
    struct weir_limit changed = k->plan->limit;
    struct weir_plan *plan;
    struct weir_error error;
    struct weir_decision before, after;
    struct weir_ask look = { .now = k->latest };

    changed.burst = is_window() ? 0 : changed.burst;
    changed.count = between(1, 300);
    if (is("calendar") && one_in(2))
        random_calendar(&changed);
    else if (!is("calendar") && one_in(2))
        changed.period = changed.period * between(1, 3) / between(1, 3) + 1000;
    if (!is_window() && one_in(2))
        changed.burst = between(1, 50);
    if (weir_plan_create(&plan, &changed, &error) != WEIR_OK)
        return;
    unsigned char *to = malloc(weir_plan_state_size(plan));
    weir_step_peek(k->plan, k->state, &look, &before);
    weir_step_change(k->plan, plan, k->state, to, k->latest);
    weir_step_peek(plan, to, &look, &after);
    LAW(after.remaining <= after.limit && after.remaining >= 0,
        "a change keeps remaining within the limit");
    int64_t used = before.limit - before.remaining, left = after.limit - used;
    bool quiet = before.reset <= span_of_round && k->plan->limit.queue == 0 && !borrows();
    if (is("token-bucket") && quiet && before.reset > 0) {
        int64_t kept = before.remaining < after.limit ? before.remaining : after.limit;
        LAW(after.remaining == kept, "a change keeps the tokens");
    } else if ((is("gcra") || (is_window() && (before.remaining > 0 || counts_by_the_clock()) &&
                               changed.period == k->plan->limit.period)) &&
               quiet && before.allowed) {
        LAW(after.remaining == (left < 0 ? 0 : left), "a change keeps what was used");
    }
    if (borrows()) {
        look.wait_max = WEIR_FOREVER;
        weir_step_peek(k->plan, k->state, &look, &before);
        weir_step_peek(plan, to, &look, &after);
        if (before.wait <
            (weir_time)1
                << 50) /* more may be beyond what a debt at the new rate can be counted to */
            LAW(after.wait >= before.wait - 1 && after.wait <= before.wait + 1,
                "a change keeps the time that is owed");
    }
    free(to);
    weir_plan_destroy(plan);
}

/* --------------------------------------------------------------- rounds ---- */

static int64_t steps;

static void play(void)
{
    static struct key k;

    key_open(&k);
    fresh_gets_its_burst(&k);
    if (is("gcra") || is("token-bucket") || (is("leaky-bucket") && k.plan->limit.queue == 0))
        against_the_plain_model(&k);
    if (is("sliding-log") || is("sliding-window"))
        against_the_plain_log(&k);
    if (counts_by_the_clock())
        against_the_plain_counter(&k);
    if (is("leaky-bucket") && k.plan->limit.queue != 0)
        against_the_plain_bucket(&k);
    if (is("smooth"))
        against_the_plain_limiter(&k);
    if (is("warm-up"))
        against_the_plain_warm_up(&k);
    for (int i = 0; i < 300 && k.now < INT64_MAX / 4; i++, steps++) {
        struct weir_ask a = random_ask(&k);
        if (one_in(10) && !is("warm-up") &&
            !counts_by_the_clock()) /* overtaken: counts as of the latest moment, and so in the
                                       bound, too */
            a.now -= between(0, a.now < WEIR_SECOND ? a.now : WEIR_SECOND);
        take_once(&k, &a);
        if (one_in(20))
            idle_is_fresh(&k);
        if (one_in(20))
            give_back(&k);
        if (one_in(20))
            ask_late(&k);
        if (one_in(20))
            step_back(&k);
        if (one_in(20))
            change_limit(&k);
        move_time(&k);
    }
    never_too_much(&k);
    if (is("calendar"))
        in_each_window(&k);
    key_close(&k);
}

int main(int argc, char **argv)
{
    const char *only = argc > 3 ? argv[3] : NULL;
    int passed = 0;

    for (const char *const *name = weir_algorithms(); *name != NULL; name++) {
        if (only != NULL && strcmp(only, *name) != 0)
            continue;
        algorithm_of_round = *name;
        steps = 0;
        play_rounds(argc, argv, 1000, play);
        printf("%-16s %" PRId64 " steps keep the laws\n", *name, steps);
        passed++;
    }
    printf("%d passed, 0 failed\n", passed);
    return 0;
}
