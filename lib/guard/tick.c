/* tick.c -- what is done now and then, by whoever happens to enter or exit when it is due.
 *
 *     sweep        permits whose time or holder is over are taken back
 *     look         what came back since the last look goes to the controller, which sets the limit
 *     pressure     how loaded the host is
 *     shedding     who is let in
 *     degradation  as far as it follows by itself
 *
 * One does it at a time: whoever has put itself into `ticker`.  If its process has died, or it has
 * been there for a minute, the next one takes its place.  What the dead one has left half done is a
 * limit or a cut that is a little off, never more: nothing here admits anybody.
 */
#include <string.h>

#include "guard/guard.h"

#define TICKER_LATE 60 /* of 2^30 ns */
#define LOOK_LONGEST \
    WEIR_SECOND /* a look comes then, few as the results may be, if `look` allows it */
#define RAISE_LASTS     (10 * WEIR_SECOND) /* of a guard that nobody enters any more */
#define PUSHED_BY_RULES 16                 /* added to degradation_by_hand: rules have set it */
#define SHOW_EVERY      (WEIR_SECOND / 2)  /* thousands of counters are summed up for it */
#define MEAN_LASTS      (10 * WEIR_SECOND)
#define TIMES_WINDOW    (10 * WEIR_SECOND)

void weir__guard_note(struct weir__guard_record *r, enum weir_guard_event_kind kind, int32_t from,
                      int32_t to, weir_time now)
{
    uint64_t number = __atomic_add_fetch(&r->events, 1, __ATOMIC_RELAXED);
    struct weir_guard_event *c = &r->kept[number % WEIR__GUARD_EVENTS];
    __atomic_store_n(&c->number, 0, __ATOMIC_RELAXED); /* not to be read now */
    __atomic_store_n(&c->at, now, __ATOMIC_RELEASE);
    __atomic_store_n(&c->kind, (int32_t)kind, __ATOMIC_RELEASE);
    __atomic_store_n(&c->from, from, __ATOMIC_RELEASE);
    __atomic_store_n(&c->to, to, __ATOMIC_RELEASE);
    __atomic_store_n(&c->number, number, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------- one ticks ---- */

/* Who ticks: its place among the holders, and when it began in 2^30 ns, 1 more than that so that it
 * is never 0. */
static uint64_t ticker_of(struct weir_guard *guard, weir_time now)
{
    return ((uint64_t)(now >> 30) + 1) << 10 | weir__holder_me(guard->table);
}

/* In a private table its thread is there for sure. */
static bool is_gone(struct weir_guard *guard, uint64_t ticker, weir_time now)
{
    uint64_t began = (ticker >> 10) - 1, place = ticker % WEIR__HOLDERS, at = (uint64_t)(now >> 30);
    if (guard->table->fd < 0)
        return false;
    weir__holders_bury(guard->table, now);
    bool dead =
        place != 0 && __atomic_load_n(&guard->table->holders[place].pid, __ATOMIC_RELAXED) == 0;
    return dead || (at > began ? at - began : began - at) > TICKER_LATE;
}

static bool begin(struct weir_guard *guard, const struct weir__guard_plan *plan, weir_time now,
                  uint64_t *mine)
{
    struct weir__guard_record *r = guard->record;
    int64_t at = __atomic_load_n(&r->tick_at, __ATOMIC_RELAXED);
    uint64_t ticker = __atomic_load_n(&r->ticker, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&r->tick_at, &at, now + plan->tick, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED) ||
        (ticker != 0 && !is_gone(guard, ticker, now)))
        return false;
    *mine = ticker_of(guard, now);
    return __atomic_compare_exchange_n(&r->ticker, &ticker, *mine, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void end(struct weir__guard_record *r, uint64_t mine)
{
    __atomic_compare_exchange_n(&r->ticker, &mine, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* ---------------------------------------------------------------- a look ---- */

static int64_t succeeded_in(const struct weir__window *w)
{
    int64_t n = 0;
    for (int i = 0; i < WEIR__BINS; i++)
        n += __atomic_load_n(&w->times.counts[i], __ATOMIC_RELAXED);
    return n;
}

/* Permits that came back without a result. */
static int64_t resultless_of(const struct weir__guard_record *r)
{
    return __atomic_load_n(&r->totals.ignored, __ATOMIC_RELAXED) +
           __atomic_load_n(&r->totals.reclaimed, __ATOMIC_RELAXED);
}

/* All that ever came back, for shedding. */
static int64_t returned_of(const struct weir__guard_record *r, int64_t succeeded)
{
    int64_t n = succeeded + resultless_of(r);
    for (int i = 0; i < WEIR_IGNORED; i++)
        n += __atomic_load_n(&r->totals.results[i], __ATOMIC_RELAXED) +
             __atomic_load_n(&r->window.results[i], __ATOMIC_RELAXED);
    return n;
}

static int64_t empty(int64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED) == 0
               ? 0
               : __atomic_exchange_n(counter, 0, __ATOMIC_RELAXED);
}

/* Empties the window into a histogram and a sample. */
static void empty_window(struct weir__guard_record *r, struct weir__histogram *times,
                         struct weir__sample *s)
{
    struct weir__window *w = &r->window;
    for (int i = 0; i < WEIR__BINS; i++) {
        uint32_t *bin = &w->times.counts[i];
        times->counts[i] = __atomic_load_n(bin, __ATOMIC_RELAXED) == 0
                               ? 0
                               : __atomic_exchange_n(bin, 0, __ATOMIC_RELAXED);
        s->succeeded += times->counts[i];
    }
    s->failed = empty(&w->results[WEIR_FAILED]);
    s->timed_out = empty(&w->results[WEIR_TIMED_OUT]);
    s->dropped = empty(&w->results[WEIR_DROPPED]);
    s->refused = __atomic_load_n(&w->busy, __ATOMIC_RELAXED) - r->learnt.busy;
    int64_t sum = empty(&w->sum), least = empty(&w->min);
    s->mean = s->succeeded > 0 ? sum / s->succeeded : 0;
    s->min = least > 0 ? least - 1 : 0;
    s->area = (double)sum + (double)empty(&w->other_sum);
    s->in_flight = __atomic_load_n(&r->in_flight, __ATOMIC_RELAXED);
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

/* Another controller than the one that has learnt begins anew. */
static void run_controller(struct weir__guard_record *r, const struct weir__guard_plan *plan,
                           struct weir__sample *s)
{
    const struct weir__controller_plan *c = &plan->controller;
    int64_t which = weir__controller_index(c->row) * 2 + c->rate + 1;
    if (r->controller != which) {
        weir__controller_forget(r->learnt.controller);
        __atomic_store_n(&r->limit, 0, __ATOMIC_RELAXED);
        r->controller = which;
    }
    int64_t limit = __atomic_load_n(&r->limit, __ATOMIC_RELAXED);
    s->limit = limit > 0 ? limit : c->initial;
    __atomic_store_n(&r->limit, weir__controller_step(c, r->learnt.controller, s),
                     __ATOMIC_RELAXED);
}

static void show_quantiles(struct weir__guard_record *r, weir_time now, weir_time window)
{
    int64_t *shown[] = { &r->p50, &r->p90, &r->p99 };
    static const int permilles[] = { 500, 900, 990 };
    for (int i = 0; i < 3; i++) {
        weir_time q = weir__recent_quantile(&r->learnt.recent, window, now, permilles[i]);
        __atomic_store_n(shown[i], q < 0 ? 0 : q, __ATOMIC_RELAXED);
    }
}

/* How long work takes, for whoever looks.  Where nothing succeeds, how long it took to fail; where
 * nothing comes back any more, nobody knows. */
static void show_times(struct weir__guard_record *r, const struct weir__sample *s, weir_time window)
{
    struct weir__learnt *l = &r->learnt;
    int64_t results = s->succeeded + s->failed + s->timed_out + s->dropped;
    double mean = s->succeeded > 0 ? (double)s->mean : results > 0 ? s->area / (double)results : 0;
    if (results > 0)
        l->resulted = s->now;
    if (results > 0 || s->now - l->resulted > MEAN_LASTS)
        __atomic_store_n(&r->mean, (int64_t)mean, __ATOMIC_RELAXED);
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
    weir_time window = plan->controller.row && plan->controller.window > 0 ? plan->controller.window
                                                                           : TIMES_WINDOW;
    empty_window(r, &times, &s);
    add_totals(r, &s);
    int64_t calls = weir__guard_calls(r);
    s.entered = s.succeeded + s.failed + s.timed_out + s.dropped + calls - l->calls +
                resultless_of(r) - l->resultless;
    weir__recent_add(&l->recent, &times, window, now);
    show_times(r, &s, window);
    if (plan->controller.row != NULL)
        run_controller(r, plan, &s);
    l->looked = now;
    l->calls = calls;
    l->busy += s.refused;
    l->resultless = resultless_of(r);
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

/* How loaded the host is, as this process sees it; made when first needed.  NULL: that cannot
 * be. */
static struct weir__system *system_of(struct weir_table *table)
{
    struct weir__guarding *g = weir__guarding_of(table);
    struct weir__system *system = g ? __atomic_load_n(&g->system, __ATOMIC_ACQUIRE) : NULL;
    if (system != NULL || g == NULL || __atomic_load_n(&g->system_failed, __ATOMIC_RELAXED))
        return system;
    pthread_mutex_lock(&table->mutex);
    system = g->system;
    if (system == NULL && weir__system_create(&system, "", NULL) == WEIR_OK)
        __atomic_store_n(&g->system, system, __ATOMIC_RELEASE);
    __atomic_store_n(&g->system_failed, system == NULL, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&table->mutex);
    return system;
}

/* Also once more when it is not looked at any more: then it ends. */
static void press(struct weir_guard *guard, const struct weir__guard_plan *plan, weir_time now)
{
    struct weir__guard_record *r = guard->record;
    struct weir__reading reading = { -1, -1, -1, -1, 1 };
    const struct weir_system_options *o = &plan->pressure.options;
    struct weir__system *system = NULL;
    if (o->cpu_percent || o->pressure_percent || o->memory_percent || o->run_queue)
        system = system_of(guard->table);
    if (system != NULL)
        weir__system_read(system, now, &reading);
    uint32_t before = r->learnt.pressure.over;
    int32_t pressure = weir__pressure_step(&plan->pressure, &r->learnt.pressure, &reading,
                                           __atomic_load_n(&r->mean, __ATOMIC_RELAXED), now);
    __atomic_store_n(&r->pressure, pressure, __ATOMIC_RELAXED);
    if (before != r->learnt.pressure.over)
        weir__guard_note(r, WEIR_GUARD_EVENT_SYSTEM, (int32_t)before,
                         (int32_t)r->learnt.pressure.over, now);
}

static void shed(struct weir_guard *guard, const struct weir__guard_plan *plan, int64_t returned,
                 weir_time now)
{
    struct weir__guard_record *r = guard->record;
    struct weir__learnt *l = &r->learnt;
    int64_t busy = __atomic_load_n(&r->window.busy, __ATOMIC_RELAXED),
            in_flight = __atomic_load_n(&r->in_flight, __ATOMIC_RELAXED);
    int64_t limit = plan->controller.rate                  ? 0
                    : plan->controller.row && r->limit > 0 ? r->limit
                                                           : plan->max;
    struct weir__shed_sample s = { .now = now,
                                   .span = now - l->shed_at,
                                   .in_flight = in_flight,
                                   .limit = limit,
                                   .pressure = r->pressure };
    s.entered = returned + weir__guard_calls(r) - l->shed_entered;
    s.refused_busy = busy - l->shed_busy;
    l->shed_at = now;
    l->shed_entered += s.entered;
    l->shed_busy = busy;
    if (s.span <= 0 || s.span == now)
        return; /* the first look, or the clock has stepped */
    int32_t admitted = weir__shed_tick(&plan->shed, &r->shed, &s),
            shedding = r->shed.room > 0 || s.pressure > 0;
    __atomic_store_n(&r->admitted, admitted, __ATOMIC_RELAXED);
    if (shedding != r->shedding) {
        r->shedding = shedding;
        weir__guard_note(r, WEIR_GUARD_EVENT_SHEDDING, !shedding, shedding, now);
    }
}

/* ----------------------------------------------------------------- degradation ---- */

/* By hand, or the highest that a guard asks for. */
static void set_degradation(struct weir_table *table, weir_time now)
{
    struct weir__header *h = table->header;
    uint32_t by_hand = __atomic_load_n(&h->degradation_by_hand, __ATOMIC_RELAXED),
             n = weir__guards_in(table);
    int32_t degradation = by_hand > 0 ? (int32_t)(by_hand - 1) % PUSHED_BY_RULES : 0;
    for (uint32_t i = 0; by_hand == 0 && i < n; i++) {
        const struct weir__guard_record *r = weir__guard_record_at(table, i);
        int32_t raising = __atomic_load_n(&r->raising, __ATOMIC_RELAXED);
        if (raising > degradation && __atomic_load_n(&r->raising_until, __ATOMIC_RELAXED) > now)
            degradation = raising;
    }
    degradation = degradation > WEIR__DEGRADATION_MAX ? WEIR__DEGRADATION_MAX : degradation;
    if (__atomic_load_n(&h->degradation, __ATOMIC_RELAXED) != (uint32_t)degradation)
        __atomic_store_n(&h->degradation, (uint32_t)degradation, __ATOMIC_RELAXED);
}

static void raise_degradation(struct weir_guard *guard, const struct weir__guard_plan *plan,
                              weir_time now)
{
    struct weir__guard_record *r = guard->record;
    int32_t raising = 0;
    if (plan->raises > 0) {
        struct weir__breaker_view view;
        weir__breaker_look(&plan->breaker, &r->breaker, now, &view);
        if (view.state != WEIR_BREAKER_CLOSED || view.force == WEIR_FORCE_OPEN ||
            r->learnt.pressure.over)
            raising = plan->raises;
    }
    if (plan->pressure.on) {
        int degradation = weir__pressure_degradation(&r->learnt.pressure, now);
        raising = degradation > raising ? degradation : raising;
    }
    __atomic_store_n(&r->raising, raising, __ATOMIC_RELAXED);
    __atomic_store_n(&r->raising_until, now + RAISE_LASTS, __ATOMIC_RELAXED);
    set_degradation(guard->table, now);
}

void weir_degradation_set(struct weir_table *table, int degradation, weir_time now)
{
    degradation = degradation > WEIR__DEGRADATION_MAX ? WEIR__DEGRADATION_MAX : degradation;
    __atomic_store_n(&table->header->degradation_by_hand,
                     degradation < 0 ? 0 : (uint32_t)degradation + 1, __ATOMIC_RELAXED);
    set_degradation(table, weir__guard_time(now));
}

void weir__degradation_push(struct weir_table *table, int degradation, weir_time now)
{
    uint32_t present = __atomic_load_n(&table->header->degradation_by_hand, __ATOMIC_RELAXED);
    if (degradation < 0 && present <= PUSHED_BY_RULES)
        return;
    __atomic_store_n(&table->header->degradation_by_hand,
                     degradation < 0 ? 0 : (uint32_t)degradation + 1 + PUSHED_BY_RULES,
                     __ATOMIC_RELAXED);
    set_degradation(table, weir__guard_time(now));
}

int weir_degradation_get(const struct weir_table *table, bool *by_hand)
{
    if (by_hand != NULL)
        *by_hand = __atomic_load_n(&table->header->degradation_by_hand, __ATOMIC_RELAXED) != 0;
    uint32_t degradation = __atomic_load_n(&table->header->degradation, __ATOMIC_RELAXED);
    return degradation > WEIR__DEGRADATION_MAX ? WEIR__DEGRADATION_MAX : (int)degradation;
}

/* A breaker that is no longer in the options is closed, if it was not. */
static void close_unwanted(struct weir__guard_record *r, const struct weir__guard_plan *plan,
                           weir_time now)
{
    uint64_t gate = weir__load(&r->breaker.gate);
    uint32_t state = gate & 3;
    if (plan->breaker.on || state == WEIR_BREAKER_CLOSED ||
        (gate & WEIR__BREAKER_EVENTFUL) != state)
        return;
    weir__breaker_force(&r->breaker, WEIR_UNFORCED, now);
    weir__guard_note(r, WEIR_GUARD_EVENT_BREAKER, (int32_t)state, WEIR_BREAKER_CLOSED, now);
}

/* ------------------------------------------------------------------ tick ---- */

void __attribute__((noinline, cold))
weir__guard_tick(struct weir_guard *guard, const struct weir__guard_plan *plan, weir_time now)
{
    struct weir__guard_record *r = guard->record;
    uint64_t mine;
    if (!begin(guard, plan, now, &mine))
        return;
    if (now >= r->sweep_at || r->sweep_at - now > WEIR__SWEEP + WEIR__SKEW) {
        r->sweep_at = now + WEIR__SWEEP;
        weir__permits_sweep(guard, plan, now);
    }
    int64_t succeeded = succeeded_in(&r->window), returned = returned_of(r, succeeded), others = 0;
    for (int i = WEIR_FAILED; i < WEIR_IGNORED; i++)
        others += __atomic_load_n(&r->window.results[i], __ATOMIC_RELAXED);
    if (r->learnt.looked == 0)
        r->learnt.looked = now; /* the first tick: nothing to look at yet */
    else if (is_time_to_look(r, plan, succeeded + others, now))
        look(r, plan, now);
    if (plan->pressure.on || r->learnt.pressure.over || r->pressure != 0)
        press(guard, plan, now);
    if (plan->levels || r->shedding)
        shed(guard, plan, returned, now);
    close_unwanted(r, plan, now);
    raise_degradation(guard, plan, now);
    end(r, mine);
}

/* ------------------------------------------------------------------ info ---- */

static void read_events(const struct weir__guard_record *r, struct weir_guard_event *out)
{
    uint64_t last = __atomic_load_n(&r->events, __ATOMIC_ACQUIRE);
    for (uint64_t i = 0, n = 0; i < WEIR__GUARD_EVENTS && i < last; i++) {
        const struct weir_guard_event *c = &r->kept[(last - i) % WEIR__GUARD_EVENTS];
        struct weir_guard_event copy = { .number = __atomic_load_n(&c->number, __ATOMIC_ACQUIRE) };
        copy.at = __atomic_load_n(&c->at, __ATOMIC_ACQUIRE);
        copy.kind = __atomic_load_n(&c->kind, __ATOMIC_ACQUIRE);
        copy.from = __atomic_load_n(&c->from, __ATOMIC_ACQUIRE);
        copy.to = __atomic_load_n(&c->to, __ATOMIC_ACQUIRE);
        if (copy.number == last - i && __atomic_load_n(&c->number, __ATOMIC_RELAXED) == copy.number)
            out[n++] = copy;
    }
}

static void read_counts(const struct weir__guard_record *r, struct weir_guard_info *out)
{
    const struct weir__guard_totals *t = &r->totals;
    const struct weir__window *w = &r->window;
    int64_t n[WEIR_IGNORED];
    for (int i = 0; i < WEIR_IGNORED; i++)
        n[i] = __atomic_load_n(&t->results[i], __ATOMIC_RELAXED) +
               __atomic_load_n(&w->results[i], __ATOMIC_RELAXED);
    out->succeeded = n[WEIR_SUCCEEDED] + succeeded_in(w);
    out->failed = n[WEIR_FAILED];
    out->timed_out = n[WEIR_TIMED_OUT];
    out->dropped = n[WEIR_DROPPED];
    out->reclaimed = __atomic_load_n(&t->reclaimed, __ATOMIC_RELAXED);
    out->refused_open = __atomic_load_n(&t->open, __ATOMIC_RELAXED);
    out->refused_busy = __atomic_load_n(&t->busy, __ATOMIC_RELAXED);
    out->refused_limited = __atomic_load_n(&t->limited, __ATOMIC_RELAXED);
    out->refused_shed = __atomic_load_n(&t->shed, __ATOMIC_RELAXED);
    out->refused_full = __atomic_load_n(&t->full, __ATOMIC_RELAXED);
    out->refused_late = __atomic_load_n(&t->late, __ATOMIC_RELAXED);
    out->refused_degraded = __atomic_load_n(&t->degraded, __ATOMIC_RELAXED);
    out->shadow_refused = __atomic_load_n(&t->shadow, __ATOMIC_RELAXED);
}

static int32_t percent_of(const int32_t *permille)
{
    return __atomic_load_n(permille, __ATOMIC_RELAXED) / 10;
}

void weir__guard_peek(struct weir_guard *guard, weir_time now, struct weir_guard_info *out)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);
    const struct weir__guard_record *r = guard->record;
    struct weir__breaker_view view;
    memset(out, 0, sizeof(*out));
    memcpy(out->name, guard->name, sizeof(out->name));
    out->options = plan->options;
    out->in_flight = __atomic_load_n(&r->in_flight, __ATOMIC_RELAXED);
    out->limit = plan->controller.row ? __atomic_load_n(&r->limit, __ATOMIC_RELAXED) : plan->max;
    if (out->limit <= 0)
        out->limit = plan->controller.initial;
    weir__breaker_look(&plan->breaker, &r->breaker, weir__guard_time(now), &view);
    out->breaker = view.state, out->force = view.force, out->retry_at = view.retry_at;
    out->calls = view.calls, out->errors = view.errors, out->slow = view.slow;
    out->p50 = __atomic_load_n(&r->p50, __ATOMIC_RELAXED);
    out->p90 = __atomic_load_n(&r->p90, __ATOMIC_RELAXED);
    out->p99 = __atomic_load_n(&r->p99, __ATOMIC_RELAXED);
    out->mean = __atomic_load_n(&r->mean, __ATOMIC_RELAXED);
    read_counts(r, out);
    out->entered = out->succeeded + out->failed + out->timed_out + out->dropped + resultless_of(r) +
                   weir__guard_calls(r);
    out->admitted_percent =
        __atomic_load_n(&r->admitted, __ATOMIC_RELAXED) == 0 ? 100 : percent_of(&r->admitted);
    out->pressure_percent = percent_of(&r->pressure);
    read_events(r, out->events);
}

void weir_guard_get(struct weir_guard *guard, weir_time now, struct weir_guard_info *out)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);
    now = weir__guard_time(now);
    if (weir__guard_is_due(guard, plan, now))
        weir__guard_tick(guard, plan, now); /* nobody may have come for a while */
    weir__guard_peek(guard, now, out);
}
