/* fleet.c -- draws: when, for how much, and what an answer means. */
#include "cluster/fleet/fleet.h"

#include <stdlib.h>

#include "base/hash.h"
#include "cluster/fleet/fleet-private.h"

#define PATIENCE       (20 * WEIR_MILLISECOND)
#define ROUND_TRIP     WEIR_MILLISECOND /* before one was measured */
#define SILENCE        10               /* times the patience: the shard is away */
#define REPEATS        5
#define REPEAT_LEAST   (2 * WEIR_SECOND) /* an account knows a draw for 3 s */
#define LOOKS_PER_PACE 8
#define DENIED_MOST    (2 * WEIR_SECOND) /* between two draws that Redis refuses */

int weir__fleet_create(struct weir__fleet **out, const struct weir__fleet_options *options,
                       struct weir_error *error)
{
    struct weir__fleet *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a fleet");
    *f = (struct weir__fleet){ .ops = options->ops,
                               .world = options->world,
                               .random = options->seed,
                               .next_id = weir__mix64(options->seed) | 1,
                               .draws_max = options->draws > 0 ? options->draws : 4096,
                               .patience = options->patience > 0 ? options->patience : PATIENCE };
    for (size_t i = 0; i < WEIR__FLEET_SHARDS_MAX; i++)
        f->shards[i].round_trip = ROUND_TRIP;
    int code = weir__fleet_keys_make(f, options->keys, error);
    if (code) {
        free(f);
        return code;
    }
    *out = f;
    return WEIR_OK;
}

void weir__fleet_destroy(struct weir__fleet *f)
{
    if (f == NULL)
        return;
    weir__fleet_keys_free(f);
    free(f);
}

struct weir__fleet_counts weir__fleet_counts(const struct weir__fleet *f)
{
    return f->counts;
}

int64_t weir__fleet_asked(struct weir__fleet *f)
{
    int64_t asked = f->asked;

    f->asked = 0;
    return asked;
}

/* ---------------------------------------------------------------- looking ---- */

void weir__fleet_count(struct weir__fleet_key *k, int64_t units, int64_t cost)
{
    k->asked += units;
    k->counted += units;
    k->cost = cost;
}

/* Units that were taken out of the purse.  The oldest are spent first, so they are of the last
 * draws. */
static void repay_lots(struct weir__fleet *f, struct weir__fleet_key *k, int64_t units)
{
    for (size_t i = 0; i < 2 && units > 0; i++) {
        struct weir__repay back = { weir__int_least(units, k->lots[i].units), k->lots[i].drawn_at };
        if (back.units == 0)
            continue;
        k->lots[i].units -= back.units;
        units -= back.units;
        weir__fleet_repay(f, k, &back);
    }
}

/* Units of a window that have expired since the last look: in the account they would count until it
 * ends.  They are taken out as of then, so that no process that has stood still spends them. */
static void repay_expired(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    int64_t expired = f->ops->have(f->world, k, k->seen_at) - f->ops->have(f->world, k, now);

    if (expired > 0)
        repay_lots(f, k, f->ops->take_out(f->world, k, expired, k->seen_at));
}

/* What was asked for since the last look. */
static void note_asked(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    if (k->seen > 0 && k->seen_at != now) {
        weir__fleet_count(k, weir__int_most(0, k->seen - f->ops->have(f->world, k, k->seen_at)),
                          k->cost);
        if (k->limit->terms.window)
            repay_expired(f, k, now);
    }
    if (k->counted > 0 || k->waiting > 0)
        k->asked_at = now;
    weir__fleet_rate_count(&k->rate, k->limit, k->counted, now);
    k->counted = 0;
    f->asked = weir__int_most(f->asked, weir__fleet_part_asked(k->limit, &k->rate));
}

/* Once at each moment: purses are in a table, and what others spend meanwhile can be counted
 * later. */
int64_t weir__fleet_look(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    if (k->counted > 0 || k->seen_at != now)
        note_asked(f, k, now);
    if (k->seen_at != now)
        weir__fleet_look_over(f, k, now);
    return k->seen;
}

void weir__fleet_look_over(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    k->seen = f->ops->have(f->world, k, now);
    k->seen_at = now;
}

void weir__fleet_refused(struct weir__fleet *f, struct weir__fleet_key *k, int64_t units,
                         int64_t cost, weir_time now)
{
    weir__fleet_count(k, units, cost);
    if (k->due == WEIR_NEVER)
        weir__fleet_plan(f, k, now);
}

void weir__fleet_set_exact(struct weir__fleet *f, bool exact)
{
    f->exact = exact;
}

/* Nothing was asked for a horizon.  Its rate falls more slowly than that, and units of a window
 * that expire in a purse are lost until it ends; those of a meter come back with time. */
static bool is_quiet(const struct weir__fleet_key *k)
{
    return k->limit->terms.window && k->seen_at - k->asked_at > k->limit->terms.horizon;
}

static bool is_hot(const struct weir__fleet *f, const struct weir__fleet_key *k)
{
    return !f->exact && !k->limit->terms.exact && !is_quiet(k) &&
           weir__fleet_coming(k->limit, &k->rate) >= weir__int_most(1, k->cost);
}

static int64_t low_water(const struct weir__fleet *f, const struct weir__fleet_key *k)
{
    return weir__fleet_low_water(k->limit, &k->rate, f->shards[k->shard].round_trip, k->share);
}

/* When the purse will be low, at this rate. */
static weir_time next_look(const struct weir__fleet *f, const struct weir__fleet_key *k)
{
    weir_time pace = k->limit->terms.pace;
    int64_t above = k->seen - low_water(f, k);

    if (above <= 0 || k->rate.slow <= 0)
        return pace / LOOKS_PER_PACE;
    weir__i128 span = (weir__i128)above * (1000 * WEIR_SECOND) / k->rate.slow;
    return span > pace ? pace : weir__int_most((weir_time)span, pace / LOOKS_PER_PACE);
}

/* Four round trips, or one and the silence after which a shard is away: what was learnt of the way
 * may be wrong.  Longer after each repeat, but no longer than that silence: one that has come back
 * meanwhile answers at once. */
static weir_time patience(const struct weir__fleet *f, const struct weir__fleet_key *k)
{
    weir_time way = f->shards[k->shard].round_trip, silence = SILENCE * f->patience;
    weir_time first = weir__int_most(f->patience, weir__int_least(4 * way, way + silence));

    return weir__int_least(first << weir__int_least(k->repeats, REPEATS),
                           weir__int_most(first, silence));
}

void weir__fleet_plan(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    weir_time due = WEIR_NEVER, horizon = k->limit->terms.horizon;

    if (k->drawing)
        due = weir__fleet_later(k->sent, patience(f, k));
    else if (k->spent)
        due = is_hot(f, k) ? k->draw_at : weir__int_most(k->closed_until, now);
    else if (is_hot(f, k))
        due = now + next_look(f, k);
    else if (k->seen > 0 || k->counted > 0)
        due = now + horizon;
    weir__fleet_key_move(f, k, due);
}

/* ---------------------------------------------------------------- drawing ---- */

/* For asks that wait beyond what is there; or one unit, and whatever is thought to come. */
static struct weir__draw draw_of(const struct weir__fleet *f, const struct weir__fleet_key *k)
{
    int64_t first = k->first != NULL ? k->first->cost : k->cost;

    return (struct weir__draw){
        .need = weir__int_most(1, first - k->seen),
        .waiting = weir__int_most(0, k->waiting - k->seen),
        .have = weir__int_most(0, k->seen - k->waiting),
        .asked = k->asked,
        .fast = k->rate.fast,
        .slow = is_hot(f, k) ? k->rate.slow : 0,
    };
}

bool weir__fleet_draw(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    if (f->shards[k->shard].drawing >= f->draws_max)
        return false;
    if (k->alone && k->denials == 0 && !weir__fleet_is_alone(f, k, now)) {
        k->alone = false;
        f->ops->charge(f->world, k, now);
    }
    f->shards[k->shard].drawing++;
    k->draw = draw_of(f, k);
    k->asked = 0;
    k->drawing = true;
    k->unwanted = false;
    k->id = f->next_id++;
    k->sent = k->sent_first = now;
    k->repeats = 0;
    f->counts.draws++;
    f->ops->draw(f->world, k);
    return true;
}

/* ------------------------------------------------------------------ alone ---- */

bool weir__fleet_is_alone(const struct weir__fleet *f, const struct weir__fleet_key *k,
                          weir_time now)
{
    return f->shards[k->shard].away || now < f->shards[k->shard].alone_until ||
           now < k->denied_until;
}

void weir__fleet_probe(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    if (!f->shards[k->shard].away || k->drawing || now < f->shards[k->shard].probe_at)
        return;
    f->shards[k->shard].probe_at = weir__fleet_later(now, f->patience);
    weir__fleet_look(f, k, now);
    weir__fleet_draw(f, k, now);
    weir__fleet_plan(f, k, now);
}

static void leave_shard_alone(struct weir__fleet *f, uint32_t shard, weir_time now)
{
    struct weir__fleet_key *k;

    for (size_t at = 0; (k = weir__fleet_key_next(f, &at)) != NULL;)
        if (k->shard == shard)
            weir__fleet_leave_alone(f, k, now);
}

/* No answer for long, to this draw or to any other.  A server that is busy for some milliseconds is
 * not away: asks that cannot wait for it have deadlines of their own. */
static void note_silence(struct weir__fleet *f, const struct weir__fleet_key *k, weir_time now)
{
    if (f->shards[k->shard].heard > k->sent_first || f->shards[k->shard].away ||
        now - k->sent_first < SILENCE * f->patience)
        return;
    f->shards[k->shard].away = true;
    f->shards[k->shard].probe_at = now;
    leave_shard_alone(f, k->shard, now);
}

void weir__fleet_stay_alone(struct weir__fleet *f, uint32_t shard, weir_time until, weir_time now)
{
    shard %= WEIR__FLEET_SHARDS_MAX;
    bool was_alone = f->shards[shard].alone_until > now; /* nobody waits */
    f->shards[shard].alone_until = until;
    if (until > now && !was_alone)
        leave_shard_alone(f, shard, now);
}

/* ------------------------------------------------------------ paying back ---- */

void weir__fleet_repay(struct weir__fleet *f, struct weir__fleet_key *k,
                       const struct weir__repay *back)
{
    f->counts.units_repaid += (uint64_t)back->units;
    f->ops->repay(f->world, k, back);
}

void weir__fleet_pay_back(struct weir__fleet *f, struct weir__fleet_key *k, int64_t most,
                          weir_time now)
{
    weir__fleet_look(f, k, now);
    int64_t units = most > 0 ? f->ops->take_out(f->world, k, most, now) : 0;

    weir__fleet_look_over(f, k, now);
    repay_lots(f, k, units);
}

/* Another process's units are lost. */
void weir__fleet_empty_purse(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    if (!f->exact) {
        weir__fleet_pay_back(f, k, INT64_MAX, now);
        return;
    }
    weir__fleet_look(f, k, now);
    f->ops->take_out(f->world, k, INT64_MAX, now);
    weir__fleet_look_over(f, k, now);
}

/* The oldest units are spent first.  An empty purse may be closed: it is opened. */
void weir__fleet_reset(struct weir__fleet *f, struct weir__fleet_key *k, weir_time at,
                       weir_time now)
{
    int64_t newer = 0;

    for (size_t i = 0; i < 2; i++)
        if (k->lots[i].drawn_at >= at)
            newer += k->lots[i].units;
        else
            k->lots[i].units = 0;
    if (weir__fleet_look(f, k, now) > newer)
        f->ops->take_out(f->world, k, k->seen - newer, now);
    weir__fleet_look_over(f, k, now);
    k->spent = false;
    k->refused_at = k->large_until = 0;
    k->left = -1;
    f->ops->close(f->world, k, now, now, now);
    weir__fleet_plan(f, k, now);
}

/* -------------------------------------------------------------- an answer ---- */

static uint32_t chance(struct weir__fleet *f)
{
    return (uint32_t)(weir__mix64(f->random += WEIR__GOLDEN) >> 32);
}

/* After a repeat nobody knows which one was answered.  The first, if the way takes longer than the
 * patience: that must be learnt, but not from one outage, nor from many: such a way is too long for
 * any draw. */
static void note_round_trip(struct weir__fleet *f, const struct weir__fleet_key *k, weir_time now)
{
    weir_time *average = &f->shards[k->shard].round_trip, took = now - k->sent_first;

    if (took > 2 * SILENCE * f->patience)
        return;
    if (k->repeats > 0 && took > *average)
        *average = weir__int_least(took, 2 * weir__int_most(*average, f->patience));
    else if (took >= 0)
        *average += (took - *average) / 8;
}

/* Less than one ask comes in a horizon: a command for each is what they cost, and an ask that would
 * pass by now had better be sent. */
static bool is_cold(const struct weir__fleet_key *k)
{
    return weir__fleet_coming(k->limit, &k->rate) < 1;
}

/* The account has fewer units than the first ask needed, and still not so few that it is spent.
 * Those that come for less pass.  It was not demand: nobody can have that now. */
static bool note_large(struct weir__fleet_key *k, const struct weir__fleet_answer *a, weir_time now)
{
    int64_t least = k->limit->terms.window ? 1 : weir__int_most(1, k->limit->terms.least / 1000);
    bool large = a->drawn.units == 0 && a->left >= least && a->left < k->draw.need;

    if (large) {
        k->large = k->draw.need;
        k->large_at = weir__fleet_later(now, weir__int_most(0, a->retry));
        k->large_until = weir__int_least(k->large_at, weir__fleet_later(now, k->limit->terms.life));
        k->cost = 1;
        weir__fleet_rate_uncount(&k->rate, k->limit, k->draw.need);
    } else if (a->left >= k->large) {
        k->large_until = now;
    }
    return large;
}

/* A meter regains it evenly; a window has it until it ends. */
int64_t weir__fleet_left(const struct weir__fleet_key *k, weir_time now)
{
    const struct weir_plan *plan = k->limit->plan;

    if (k->left < 0 || now >= k->full_at)
        return -1;
    if (!weir__is_meter(plan) || now <= k->left_at)
        return k->left;
    weir__i128 lacking = plan->most - k->left, span = k->full_at - k->left_at;
    return plan->most - (int64_t)((lacking * (k->full_at - now) + span - 1) / span);
}

weir_time weir__fleet_free_in(const struct weir__fleet_key *k, int64_t units, weir_time now)
{
    const struct weir_plan *plan = k->limit->plan;
    weir_time full = weir__int_most(0, k->full_at - now);

    if (k->left < 0 || units > plan->most || weir__fleet_left(k, now) >= units)
        return 0;
    if (plan->algo == &weir__fixed_window || plan->algo == &weir__calendar)
        return full;
    if (!weir__is_meter(plan))
        return 0;
    weir__i128 drains = (weir__i128)(plan->most - units) * plan->limit.period / plan->limit.count;
    return drains < full ? full - (weir_time)drains : 0;
}

/* Until one unit may be there: others may need less than the ask that was refused. */
static weir_time until_one(const struct weir__fleet_key *k, const struct weir__fleet_answer *a,
                           weir_time now)
{
    const struct weir__algo *algo = k->limit->plan->algo;
    weir_time retry = weir__int_least(weir__int_most(0, a->retry), k->limit->terms.life);

    if (k->draw.need == 1 || algo == &weir__fixed_window || algo == &weir__calendar)
        return retry;
    return weir__int_least(retry, weir__fleet_free_in(k, 1, now));
}

/* Where a unit takes two paces or longer to come, the pause after an account's last units ends with
 * the next: an ask that was told that time at another node would find this one closed.  Where units
 * come faster, a node would draw each by itself. */
static weir_time next_draw(struct weir__fleet *f, const struct weir__fleet_key *k,
                           const struct weir__drawn *drawn, weir_time now)
{
    weir_time pause = weir__fleet_pause(k->limit, &k->draw, drawn, chance(f));
    weir_time one = weir__fleet_free_in(k, 1, now), at = k->sent + pause;
    weir_time least = is_cold(k) ? now : k->sent + k->limit->terms.pace;

    if (one > 0 && 2 * k->limit->terms.due <= 1000)
        at = weir__int_least(at, weir__int_most(now + one, least));
    return weir__int_most(now, at);
}

/* Nobody waited, so it gave nothing; an ask that waits would have what it needs. */
static bool gives_to_waiters(const struct weir__fleet_key *k, const struct weir__fleet_answer *a)
{
    return a->drawn.units == 0 && k->draw.waiting == 0 && a->left >= k->draw.need;
}

/* A busy key draws again by itself, and is closed until that is answered. */
static void note_spent(struct weir__fleet *f, struct weir__fleet_key *k,
                       const struct weir__fleet_answer *a, weir_time now)
{
    const struct weir__drawn *drawn = &a->drawn;
    bool cold = is_cold(k);

    k->spent = drawn->spent && !note_large(k, a, now);
    if (!k->spent)
        return;
    f->counts.spent++;
    k->draw_at = now;
    if (drawn->units > 0 || !cold)
        k->draw_at = next_draw(f, k, drawn, now);
    if (drawn->units == 0 && a->left == 0)
        k->draw_at = weir__int_most(k->draw_at, weir__fleet_later(now, until_one(k, a, now)));
    k->closed_until =
        cold ? k->draw_at : weir__fleet_later(k->draw_at, f->shards[k->shard].round_trip);
    if (gives_to_waiters(k, a))
        k->closed_until = now;
}

/* An ask that comes again must not find that it was too early; and one for few units is not told
 * the time of one for many (weir__purse_later). */
static void note_told(struct weir__fleet_key *k, const struct weir__fleet_answer *a, weir_time now)
{
    bool meter = weir__is_meter(k->limit->plan);
    weir_time retry = a->drawn.units == 0 && !meter ? a->retry : 0;

    retry = weir__int_most(retry, weir__fleet_free_in(k, 1, now));
    k->told_until = weir__int_most(k->closed_until, weir__fleet_later(now, retry));
}

/* The units live from the moment the draw was sent.  An answer that comes too late is for the asks
 * that waited then, and for nobody else: newcomers may belong to another window.  What is left goes
 * back to its window; a meter has regained it by itself meanwhile.  True: units came too late. */
static bool fill(struct weir__fleet *f, struct weir__fleet_key *k, const struct weir__drawn *drawn,
                 weir_time now)
{
    weir_time life = k->limit->terms.life, lasts = weir__int_least(life, drawn->life);
    weir_time sent = weir__int_least(k->sent_first, now); /* the clock may have stepped back */
    bool late = weir__fleet_later(sent, lasts) <= now;

    int64_t waiting = k->first != NULL ? k->draw.waiting : 0; /* else all were answered alone */
    int64_t units = late ? weir__int_least(drawn->units, waiting) : drawn->units;

    if (units > 0 && late)
        weir__fleet_empty_purse(f, k, now);
    if (units > 0)
        f->ops->fill(f->world, k, units, late ? now : weir__int_most(0, sent + lasts - life), now);
    if (units > 0 && !late) {
        k->lots[1] = k->lots[0];
        k->lots[0] = (struct weir__repay){ drawn->units, drawn->at };
    }
    weir__fleet_look_over(f, k, now);
    f->counts.units_drawn += (uint64_t)drawn->units;
    if (units < drawn->units && k->limit->terms.window)
        weir__fleet_repay(f, k, &(struct weir__repay){ drawn->units - units, drawn->at });
    return late && units > 0;
}

static void end_draw(struct weir__fleet *f, struct weir__fleet_key *k)
{
    k->drawing = false;
    f->shards[k->shard].drawing--;
}

static void go_on(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    if (k->waiting > k->seen && !k->drawing && !weir__fleet_draw(f, k, now))
        weir__fleet_leave_alone(f, k, now);
    weir__fleet_plan(f, k, now);
}

/* Of the units in the purse. */
static int64_t just_drawn(const struct weir__fleet_key *k, const struct weir__drawn *drawn)
{
    return k->lots[0].drawn_at == drawn->at ? weir__int_least(k->seen, k->lots[0].units) : 0;
}

void weir__fleet_drawn(struct weir__fleet *f, struct weir__fleet_key *k, uint64_t id,
                       const struct weir__fleet_answer *answer, weir_time now)
{
    const struct weir__drawn *drawn = &answer->drawn;

    if (!k->drawing || k->id != id)
        return;
    end_draw(f, k);
    k->denials = 0;
    k->denied_until = 0;
    f->shards[k->shard].heard = now;
    f->shards[k->shard].away = false;
    k->left = answer->left;
    k->left_at = now;
    k->full_at = weir__fleet_later(now, answer->reset);
    note_round_trip(f, k, now);
    note_asked(f, k, now);
    k->share = drawn->share;
    if (drawn->spent && drawn->units < k->draw.need)
        k->refused_at = now;
    note_spent(f, k, answer, now);
    if (fill(f, k, drawn, now)) {
        weir__fleet_serve_late(f, k, drawn, now);
    } else {
        int64_t kept = weir__fleet_serve(f, k, now);
        if (k->limit->terms.exact)
            weir__fleet_pay_back(f, k, k->seen - kept, now);
        else if (k->unwanted && k->first == NULL && !f->exact && !is_hot(f, k))
            weir__fleet_pay_back(f, k, just_drawn(k, drawn), now);
    }
    if (k->spent && !gives_to_waiters(k, answer)) {
        note_told(k, answer, now);
        weir__fleet_refuse_all(f, k, now);
        f->ops->close(f->world, k, k->closed_until, k->told_until, now);
    } else {
        weir__fleet_refuse_large(f, k, now);
    }
    go_on(f, k, now);
}

/* A draw that may have been carried out is sent again under its id, and charged once.  After that
 * its units, if any, are lost: they would have expired. */
static void try_again(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    note_silence(f, k, now);
    if (k->repeats >= REPEATS && now - k->sent_first >= REPEAT_LEAST) {
        f->counts.given_up++;
        end_draw(f, k);
        weir__fleet_leave_alone(f, k, now);
        return;
    }
    k->repeats++;
    k->sent = now;
    f->counts.repeats++;
    f->ops->draw(f->world, k);
}

void weir__fleet_lost(struct weir__fleet *f, struct weir__fleet_key *k, uint64_t id, bool undone,
                      weir_time now)
{
    if (!k->drawing || k->id != id)
        return;
    if (undone)
        k->sent_first = now;
    try_again(f, k, now);
    weir__fleet_plan(f, k, now);
}

/* The same draw would be refused at once, over and over.  Of this account alone: the others of its
 * shard may be well, and a server that says no is not away. */
void weir__fleet_denied(struct weir__fleet *f, struct weir__fleet_key *k, uint64_t id,
                        weir_time now)
{
    if (!k->drawing || k->id != id)
        return;
    weir_time pause = weir__int_least(f->patience << weir__int_least(k->denials, 16), DENIED_MOST);
    end_draw(f, k);
    k->denials++;
    k->denied_until = weir__fleet_later(now, pause);
    f->shards[k->shard].heard = now;
    f->shards[k->shard].away = false;
    f->counts.given_up++;
    weir__fleet_leave_alone(f, k, now);
    weir__fleet_plan(f, k, now);
}

/* ------------------------------------------------------------------ turns ---- */

/* Twice what is thought to come is enough: the rest goes back; all of it when nobody asks. */
static void pay_back_surplus(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    bool quiet = is_quiet(k);
    int64_t enough = quiet ? 0 : 2 * weir__fleet_coming(k->limit, &k->rate);

    if (k->waiting == 0 && k->seen > enough + (quiet ? 0 : low_water(f, k)))
        weir__fleet_pay_back(f, k, k->seen - enough, now);
}

/* Units that nobody asks for expire, and would be missing for asks that come when they were told:
 * of a meter always; of a window, which has them back, while there is too little.  What has passed
 * alone is charged with a draw. */
static bool draws_unasked(const struct weir__fleet_key *k, weir_time now)
{
    return k->alone || (k->limit->terms.window && !weir__fleet_has_refused(k, now));
}

static void turn_key(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    if (k->drawing) {
        try_again(f, k, now);
        weir__fleet_plan(f, k, now);
        return;
    }
    int64_t have = weir__fleet_look(f, k, now);
    bool hot = is_hot(f, k) && (k->asked > 0 || draws_unasked(k, now));
    if (weir__fleet_is_alone(f, k, now))
        weir__fleet_probe(f, k, now);
    else if (k->spent && hot && now >= k->draw_at)
        weir__fleet_draw(f, k, now);
    else if (!k->spent && hot && have <= low_water(f, k))
        weir__fleet_draw(f, k, now);
    else if (!k->spent && !f->exact)
        pay_back_surplus(f, k, now);
    if (k->spent && !k->drawing && now >= k->closed_until)
        k->spent = false;
    weir__fleet_plan(f, k, now);
    if (k->due <= now) /* too many draws are under way */
        weir__fleet_key_move(f, k, now + k->limit->terms.pace);
}

weir_time weir__fleet_turn(struct weir__fleet *f, weir_time now)
{
    struct weir__fleet_key *k;

    while ((k = weir__fleet_key_first(f)) != NULL && k->due <= now)
        turn_key(f, k, now);
    return k != NULL ? k->due : WEIR_NEVER;
}

static void end_key(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    weir__fleet_leave_alone(f, k, now);
    if (!f->exact)
        weir__fleet_pay_back(f, k, INT64_MAX, now);
    if (k->drawing)
        end_draw(f, k);
}

void weir__fleet_end(struct weir__fleet *f, weir_time now)
{
    struct weir__fleet_key *k;

    for (size_t at = 0; (k = weir__fleet_key_next(f, &at)) != NULL;) {
        end_key(f, k, now);
        weir__fleet_key_move(f, k, WEIR_NEVER);
    }
}

void weir__fleet_drop(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    end_key(f, k, now);
    if (k->spent) /* by another limit's account */
        f->ops->close(f->world, k, now, now, now);
    weir__fleet_key_forget(f, k);
}
