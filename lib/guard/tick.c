/* tick.c -- periodic work, done by an enter or exit that finds it due.
 *
 *     sweep        takes back permits that have expired or whose holder has died
 *     look         results since the last look go to the controller, which sets the limit
 *     pressure     the host's load
 *     shedding     the cuts
 *     degradation  if it is automatic
 *
 * One thread ticks at a time: the one in `ticker`.  If its process has died, or it has been there
 * for a minute, a thread of another process takes its place.  Half-done work leaves at worst a
 * limit or a cut that is slightly off: nothing here admits requests.
 */
#include "guard/guard.h"
#include "guard/arithmetic.h"

#define TICK         (WEIR_SECOND / 10)
#define TICKER_LATE  60                /* of 2^30 ns */
#define LOOK_LONGEST WEIR_SECOND       /* then even with few results */
#define SHOW_EVERY   (WEIR_SECOND / 2) /* it sums thousands of counters */
#define MEAN_LASTS   (10 * WEIR_SECOND)
#define WAITS_LAST   (10 * WEIR_SECOND)

/* A controller that wants results more often is called more often. */
weir_time weir__guard_tick_span(const struct weir__controller_plan *controller)
{
    weir_time span = controller->row != NULL ? controller->sample_span : TICK;

    return span > TICK ? TICK : span < WEIR_MILLISECOND ? WEIR_MILLISECOND : span;
}

/* ------------------------------------------------------------- one ticks ---- */

/* A ticker: its place among the holders, and its start in 2^30 ns, plus 1 so that it is never 0. */
static uint64_t ticker_of(struct weir_guard *guard, weir_time now)
{
    return ((uint64_t)(now >> 30) + 1) << 10 | weir__holder_me(guard->table);
}

/* In a private table its thread exists for certain. */
static bool is_gone(struct weir_guard *guard, uint64_t ticker, weir_time now)
{
    uint64_t began = (ticker >> 10) - 1, place = ticker % WEIR__HOLDERS, at = (uint64_t)(now >> 30);

    if (guard->table->fd < 0)
        return false;
    weir__holders_bury(guard->table, now);
    bool dead = place != 0 && weir__get(&guard->table->holders[place].pid) == 0;
    return dead || (at > began ? at - began : began - at) > TICKER_LATE;
}

static bool take_ticker(struct weir_guard *guard, weir_time now, uint64_t *mine)
{
    uint64_t *at = &guard->record->ticker, ticker = weir__get(at);

    if (ticker != 0 && !is_gone(guard, ticker, now))
        return false;
    *mine = ticker_of(guard, now);
    return __atomic_compare_exchange_n(at, &ticker, *mine, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* A thread of this process that ticks will go on, however late it is: nobody here takes its
 * place. */
static bool begin(struct weir_guard *guard, const struct weir__guard_plan *plan, weir_time now,
                  uint64_t *mine)
{
    int64_t *tick_at = &guard->record->tick_at, at = weir__get(tick_at);

    if (!__atomic_compare_exchange_n(tick_at, &at, now + plan->tick, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED) ||
        !weir__only_one(&guard->ticking))
        return false;
    bool begun = take_ticker(guard, now, mine);
    if (!begun)
        weir__publish(&guard->ticking, 0);
    return begun;
}

/* If another has taken its place, both may have corrected in_flight by the same difference: as
 * after a death, sweeps look for one. */
static void end(struct weir_guard *guard, uint64_t mine)
{
    if (!__atomic_compare_exchange_n(&guard->record->ticker, &mine, 0, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED))
        weir__count(&guard->table->header->holders_lost, 1);
    weir__publish(&guard->ticking, 0);
}

void weir__guard_sweep(struct weir_guard *guard, weir_time now)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);
    uint64_t mine;

    if (!begin(guard, plan, now, &mine))
        return;
    weir__permits_sweep(guard, plan, now);
    end(guard, mine);
}

/* ---------------------------------------------------------------- a look ---- */

/* All results and all permits ever given back, for shedding. */
static int64_t returned_of(const struct weir__guard_record *r, int64_t succeeded)
{
    uint64_t n = (uint64_t)succeeded + (uint64_t)weir__guard_resultless(r);

    for (int i = 0; i < WEIR_IGNORED; i++)
        n +=
            (uint64_t)weir__get(&r->totals.results[i]) + (uint64_t)weir__get(&r->window.results[i]);
    return (int64_t)n;
}

static int64_t empty(int64_t *counter)
{
    return weir__get(counter) == 0 ? 0 : __atomic_exchange_n(counter, 0, __ATOMIC_RELAXED);
}

/* Adds the permits out, over the time since the last tick.  Each enter and exit has noted when it
 * was, so this is a true integral; Little's law from exits alone is biased by its own noise.
 * Threads on their way, clocks that differ and permits taken back by a sweep make it slightly
 * wrong, never impossible. */
static void add_out(struct weir__guard_record *r, const struct weir__guard_plan *plan,
                    weir_time now)
{
    struct weir__learnt *l = &r->learnt;
    int64_t n = weir__get(&r->in_flight),
            moments = __atomic_exchange_n(&r->moments, 0, __ATOMIC_RELAXED);
    double span = (double)(now - l->out_at);

    if (l->out_at > 0 && span > 0) {
        double out = (double)l->out_n * span +
                     (double)(n - l->out_n) * (double)(now - l->out_from) + (double)moments;
        l->out += weir__between(0, out, (double)plan->max * span);
    }
    l->out_at = now;
    l->out_from = weir__get(&r->tick_at);
    l->out_n = n;
}

/* Empties the window into a histogram and a sample. */
static void empty_window(struct weir__guard_record *r, struct weir__histogram *times,
                         struct weir__sample *s)
{
    struct weir__window *w = &r->window;

    for (int i = 0; i < WEIR__BINS; i++) {
        uint32_t *bin = &w->times.counts[i];
        times->counts[i] = weir__get(bin) == 0 ? 0 : __atomic_exchange_n(bin, 0, __ATOMIC_RELAXED);
        s->succeeded += times->counts[i];
    }
    s->failed = empty(&w->results[WEIR_FAILED]);
    s->timed_out = empty(&w->results[WEIR_TIMED_OUT]);
    s->dropped = empty(&w->results[WEIR_DROPPED]);
    s->full = empty(&w->full);
    s->refused = weir__sum(weir__guard_wanting(r), -(uint64_t)r->learnt.busy);
    s->queued = empty(&r->queued);
    int64_t sum = empty(&w->sum), least = empty(&w->min);
    s->mean = s->succeeded > 0 ? sum / s->succeeded : 0;
    weir__durations_add(&r->durations, times, sum);
    s->min = least > 0 ? least - 1 : 0;
    s->area = (double)sum + (double)empty(&w->other_sum);
    s->out = r->learnt.out;
    r->learnt.out = 0;
    s->in_flight = weir__get(&r->in_flight);
    s->in_flight_max = __atomic_exchange_n(&w->in_flight_max, s->in_flight, __ATOMIC_RELAXED);
}

static void add_totals(struct weir__guard_record *r, const struct weir__sample *s)
{
    struct weir__guard_totals *t = &r->totals;

    weir__count(&t->results[WEIR_SUCCEEDED], s->succeeded);
    weir__count(&t->results[WEIR_FAILED], s->failed);
    weir__count(&t->results[WEIR_TIMED_OUT], s->timed_out);
    weir__count(&t->results[WEIR_DROPPED], s->dropped);
}

/* A controller other than the last one starts fresh. */
static void run_controller(struct weir__guard_record *r, const struct weir__guard_plan *plan,
                           struct weir__sample *s)
{
    const struct weir__controller_plan *c = &plan->controller;

    if (r->controller != c->kind) {
        weir__controller_forget(r->learnt.controller);
        weir__set(&r->limit, 0);
        weir__publish(&r->controller, c->kind); /* whoever sees it sees no older limit */
    }
    s->limit = weir__guard_found(r, plan);
    weir__set(&r->limit, weir__controller_step(c, r->learnt.controller, s));
}

static void show_quantiles(struct weir__guard_record *r, weir_time now, weir_time window)
{
    int64_t *shown[] = { &r->p50, &r->p90, &r->p99 };
    static const int permilles[] = { 500, 900, 990 };

    for (int i = 0; i < 3; i++) {
        weir_time q = weir__recent_quantile(&r->learnt.recent, window, now, permilles[i]);
        weir__set(shown[i], q < 0 ? 0 : q);
    }
}

/* How long work takes or, if nothing succeeds, how long it took to fail; unknown if there was no
 * result for a while. */
static void show_times(struct weir__guard_record *r, const struct weir__sample *s, weir_time window)
{
    struct weir__learnt *l = &r->learnt;
    int64_t results = s->succeeded + s->failed + s->timed_out + s->dropped;
    double mean = s->succeeded > 0 ? (double)s->mean : results > 0 ? s->area / (double)results : 0;

    if (results > 0)
        l->resulted = s->now;
    if (results > 0 || s->now - l->resulted > MEAN_LASTS)
        weir__set(&r->mean, (int64_t)mean);
    if (s->now >= l->shown && s->now - l->shown < SHOW_EVERY)
        return;
    l->shown = s->now;
    show_quantiles(r, s->now, window);
}

static void look(struct weir__guard_record *r, const struct weir__guard_plan *plan, weir_time now)
{
    struct weir__learnt *l = &r->learnt;
    struct weir__histogram times;
    struct weir__sample s = {
        .now = now, .span = now - l->looked, .times = &times, .recent = &l->recent
    };

    empty_window(r, &times, &s);
    add_totals(r, &s);
    int64_t calls = weir__guard_calls(r), shed_so_far = weir__get(&r->totals.shed);
    s.shed = shed_so_far - l->shed_seen;
    s.entered = s.succeeded + s.failed + s.timed_out + s.dropped + calls - l->calls +
                weir__guard_resultless(r) - l->resultless;
    weir__recent_add(&l->recent, &times, plan->times_window, now);
    show_times(r, &s, plan->times_window);
    if (plan->controller.row != NULL)
        run_controller(r, plan, &s);
    l->looked = now;
    l->calls = calls;
    l->busy += s.refused;
    l->shed_seen = shed_so_far;
    l->resultless = weir__guard_resultless(r);
}

static bool is_time_to_look(const struct weir__guard_record *r, const struct weir__guard_plan *plan,
                            int64_t results, weir_time now)
{
    const struct weir__controller_plan *c = &plan->controller;
    weir_time span = now - r->learnt.looked, least = c->row ? c->sample_span : WEIR_SECOND,
              longest = 10 * least;

    if (span < 0)
        return true; /* the clock has stepped */
    return span >= least && (c->row == NULL || results >= c->sample_count ||
                             span >= (longest > LOOK_LONGEST ? longest : LOOK_LONGEST));
}

/* --------------------------------------------------- pressure and shedding ---- */

/* The host's load as this process sees it; made when first needed, NULL if that fails. */
static struct weir__system *system_of(struct weir_table *table)
{
    struct weir__guarding *g = weir__guarding_of(table);
    struct weir__system *system = g ? weir__acquire(&g->system) : NULL;

    if (system != NULL || g == NULL || weir__get(&g->system_failed))
        return system;
    pthread_mutex_lock(&table->mutex);
    system = g->system;
    if (system == NULL && weir__system_create(&system, "", NULL) == WEIR_OK)
        weir__publish(&g->system, system);
    weir__set(&g->system_failed, system == NULL);
    pthread_mutex_unlock(&table->mutex);
    return system;
}

/* All guards of the table together. */
static void read_total(struct weir_guard *guard, weir_time now, struct weir__reading *out)
{
    struct weir__learnt *l = &guard->record->learnt;
    double seconds = (double)(now - l->pressure.looked) / (double)WEIR_SECOND;
    int64_t entered = 0;
    struct weir_guard *each;

    for (int64_t at = 0; weir_guard_next(guard->table, &at, &each);) {
        weir__permits_expire(each, now);
        int64_t n = weir__get(&each->record->in_flight);
        out->in_flight += n > 0 ? n : 0;
        entered += weir__guard_entered(each->record) - weir__get(&each->record->uncounted);
    }
    if (l->pressure.looked > 0 && seconds > 0)
        out->rate = weir__most((double)(entered - l->all_entered) / seconds, 0);
    l->all_entered = entered;
}

/* Also once after the option is gone, to end the pressure. */
static void press(struct weir_guard *guard, const struct weir__guard_plan *plan, weir_time now)
{
    struct weir__guard_record *r = guard->record;
    struct weir__reading reading = { -1, -1, -1, -1, 1, 0, 0 };
    const struct weir_system_options *o = &plan->pressure.options;
    struct weir__system *system = NULL;

    if (o->cpu_percent || o->pressure_percent || o->memory_percent || o->run_queue)
        system = system_of(guard->table);
    if (system != NULL)
        weir__system_read(system, now, &reading);
    if ((o->in_flight || o->rate) && weir__pressure_is_due(&r->learnt.pressure, now))
        read_total(guard, now, &reading);
    uint32_t before = r->learnt.pressure.over;
    int32_t pressure = weir__pressure_step(&plan->pressure, &r->learnt.pressure, &reading,
                                           weir__get(&r->mean), now);
    weir__set(&r->pressure, pressure);
    if (before != r->learnt.pressure.over)
        weir__guard_note(r, WEIR_GUARD_EVENT_SYSTEM, (int32_t)before,
                         (int32_t)r->learnt.pressure.over, now);
}

static void shed(struct weir_guard *guard, const struct weir__guard_plan *plan, int64_t returned,
                 weir_time now)
{
    struct weir__guard_record *r = guard->record;
    struct weir__learnt *l = &r->learnt;
    uint8_t fitting[WEIR_CLASSES] = { 0 };
    int64_t busy = weir__guard_wanting(r), in_flight = weir__get(&r->in_flight);
    int64_t limit = plan->controller.rate                  ? 0
                    : plan->controller.row && r->limit > 0 ? r->limit
                                                           : plan->max;
    struct weir__shed_sample s = { .now = now,
                                   .span = now - l->shed_at,
                                   .in_flight = in_flight,
                                   .limit = limit,
                                   .pressure = r->pressure,
                                   .waits = (uint64_t)(now - weir__get(&r->waited)) <
                                            (uint64_t)WAITS_LAST };

    s.entered = returned + weir__guard_calls(r) - l->shed_entered;
    s.refused_busy = busy - l->shed_busy;
    l->shed_at = now;
    l->shed_entered += s.entered;
    l->shed_busy = busy;
    if (s.span <= 0 || s.span == now)
        return; /* the first look, or the clock has stepped */
    int32_t admitted = weir__shed_tick(&plan->shed, &r->shed, &s),
            shedding = r->shed.room > 0 || s.pressure > 0;
    weir__set(&r->admitted, admitted);
    weir__shed_fitting(&plan->shed, &r->shed, limit, fitting);
    for (int c = 0; c < WEIR_CLASSES; c++)
        weir__set(&r->fitting[c], fitting[c]);
    if (shedding != r->shedding) {
        r->shedding = shedding;
        weir__guard_note(r, WEIR_GUARD_EVENT_SHEDDING, !shedding, shedding, now);
    }
}

bool weir__guard_fits(struct weir_guard *guard, const struct weir_ask *ask, int64_t waiting,
                      int64_t places)
{
    const struct weir__guard_record *r = guard->record;
    uint32_t user_class = weir__guard_class(weir__guard_plan_of(guard), ask);

    if (!weir__get(&r->shedding))
        return weir__shed_has_place(ask->priority, waiting, places);
    return weir__shed_fits(ask->priority, weir__get(&r->fitting[user_class]), waiting, places);
}

/* Closes a breaker that is no longer in the options. */
static void close_unwanted(struct weir__guard_record *r, const struct weir__guard_plan *plan,
                           weir_time now)
{
    uint64_t gate = weir__acquire(&r->breaker.gate);
    uint32_t state = gate & 3;

    if (plan->breaker.on || state == WEIR_BREAKER_CLOSED ||
        (gate & WEIR__BREAKER_EVENTFUL) != state)
        return;
    weir__breaker_force(&r->breaker, WEIR_UNFORCED, now);
    weir__guard_note(r, WEIR_GUARD_EVENT_BREAKER, (int32_t)state, WEIR_BREAKER_CLOSED, now);
}

/* An estimate of when a permit is free, from the pace of the work: made here, so that a refusal
 * divides nothing. */
static void show_free(struct weir__guard_record *r, const struct weir__guard_plan *plan)
{
    weir_time mean = weir__get(&r->mean), each = mean / weir__guard_limit(r, plan);

    weir__set(&r->free_in, mean == 0 ? 0 : each < WEIR_MILLISECOND ? WEIR_MILLISECOND : each);
}

/* ------------------------------------------------------------------ tick ---- */

void __attribute__((noinline, cold))
weir__guard_tick(struct weir_guard *guard, const struct weir__guard_plan *plan, weir_time now)
{
    struct weir__guard_record *r = guard->record;
    uint64_t mine;

    weir__permits_catch_up(guard, plan, now); /* first: the next caller finds that no tick is due */
    if (!begin(guard, plan, now, &mine))
        return;
    weir__permits_sweep(guard, plan, now);
    if (plan->controller.row != NULL)
        add_out(r, plan, now);
    int64_t succeeded = weir__window_succeeded(&r->window), returned = returned_of(r, succeeded),
            others = 0;
    for (int i = WEIR_FAILED; i < WEIR_IGNORED; i++)
        others += weir__get(&r->window.results[i]);
    if (r->learnt.looked == 0)
        r->learnt.looked = now; /* the first tick: no results yet */
    else if (is_time_to_look(r, plan, succeeded + others, now)) {
        int64_t before = weir__get(&r->limit);
        look(r, plan, now);
        if (weir__get(&r->limit) > before)
            weir__guard_tell_waiters(guard);
    }
    if (plan->pressure.on || r->learnt.pressure.over || r->pressure != 0)
        press(guard, plan, now);
    if (plan->sheds || r->shedding)
        shed(guard, plan, returned, now);
    close_unwanted(r, plan, now);
    show_free(r, plan);
    weir__degradation_raise(guard, plan, now);
    end(guard, mine);
}
