/* guard-info.c -- the state of a guard for people: its counts, times and latest events. */
#include <string.h>

#include "guard/guard.h"

/* -------------------------------------------------------------- events ---- */

/* Readers skip an event that is being overwritten: its number is 0 meanwhile. */
void weir__guard_note(struct weir__guard_record *r, enum weir_guard_event_kind kind, int32_t from,
                      int32_t to, weir_time now)
{
    uint64_t number = __atomic_add_fetch(&r->events, 1, __ATOMIC_RELAXED);
    struct weir_guard_event *c = &r->kept[number % WEIR__GUARD_EVENTS];

    weir__set(&c->number, 0); /* being overwritten */
    weir__publish(&c->at, now);
    weir__publish(&c->kind, (int32_t)kind);
    weir__publish(&c->from, from);
    weir__publish(&c->to, to);
    weir__publish(&c->number, number);
}

void weir__guard_note_move(struct weir__guard_record *r, struct weir__breaker_move move,
                           weir_time now)
{
    weir__guard_note(r, WEIR_GUARD_EVENT_BREAKER, move.from, move.to, now);
    weir__set(&r->tick_at, now); /* so that the degradation follows at once */
}

static void read_events(const struct weir__guard_record *r, struct weir_guard_event *out)
{
    uint64_t last = weir__acquire(&r->events);

    for (uint64_t i = 0, n = 0; i < WEIR__GUARD_EVENTS && i < last; i++) {
        const struct weir_guard_event *c = &r->kept[(last - i) % WEIR__GUARD_EVENTS];
        struct weir_guard_event copy = { .number = weir__acquire(&c->number) };
        copy.at = weir__acquire(&c->at);
        copy.kind = weir__acquire(&c->kind);
        copy.from = weir__acquire(&c->from);
        copy.to = weir__acquire(&c->to);
        if (copy.number == last - i && weir__get(&c->number) == copy.number)
            out[n++] = copy;
    }
}

/* -------------------------------------------------------------- counts ---- */

int64_t weir__window_succeeded(const struct weir__window *w)
{
    int64_t n = 0;

    for (int i = 0; i < WEIR__BINS; i++)
        n = weir__sum(n, (uint64_t)weir__get(&w->times.counts[i]));
    return n;
}

/* Permits that came back without a result. */
int64_t weir__guard_resultless(const struct weir__guard_record *r)
{
    return weir__sum(weir__get(&r->totals.ignored), (uint64_t)weir__get(&r->totals.reclaimed));
}

static void read_counts(const struct weir__guard_record *r, struct weir_guard_info *out)
{
    const struct weir__guard_totals *t = &r->totals;
    const struct weir__window *w = &r->window;
    int64_t n[WEIR_IGNORED];

    for (int i = 0; i < WEIR_IGNORED; i++)
        n[i] = weir__sum(weir__get(&t->results[i]), (uint64_t)weir__get(&w->results[i]));
    out->succeeded = weir__sum(n[WEIR_SUCCEEDED], (uint64_t)weir__window_succeeded(w));
    out->failed = n[WEIR_FAILED];
    out->timed_out = n[WEIR_TIMED_OUT];
    out->dropped = n[WEIR_DROPPED];
    out->reclaimed = weir__get(&t->reclaimed);
    out->refused_open = weir__get(&t->open);
    out->refused_busy = weir__sum(weir__get(&t->busy), (uint64_t)weir__get(&r->busy));
    out->refused_limited = weir__get(&t->limited);
    out->refused_shed = weir__get(&t->shed);
    out->refused_full = weir__get(&t->full);
    out->refused_late = weir__get(&t->late);
    out->refused_degraded = weir__get(&t->degraded);
    out->refused_key_busy = weir__get(&t->key_busy);
    out->shadow_refused = weir__get(&t->shadow);
}

int64_t weir__guard_entered(const struct weir__guard_record *r)
{
    uint64_t n = (uint64_t)weir__window_succeeded(&r->window) +
                 (uint64_t)weir__guard_resultless(r) + (uint64_t)weir__guard_calls(r);

    for (int i = 0; i < WEIR_IGNORED; i++)
        n +=
            (uint64_t)weir__get(&r->totals.results[i]) + (uint64_t)weir__get(&r->window.results[i]);
    return (int64_t)n;
}

void weir__guard_durations(const struct weir_guard *guard, struct weir__durations *out)
{
    const struct weir__guard_record *r = guard->record;
    struct weir__histogram now;

    for (int i = 0; i < WEIR__DURATIONS; i++)
        out->counts[i] = weir__get(&r->durations.counts[i]);
    out->sum = weir__get(&r->durations.sum);
    for (int i = 0; i < WEIR__BINS; i++)
        now.counts[i] = weir__get(&r->window.times.counts[i]);
    weir__durations_add(out, &now, weir__get(&r->window.sum));
}

/* Everybody is refused, whatever the load. */
static bool is_shut(const struct weir_guard *guard, const struct weir__guard_plan *plan,
                    const struct weir__breaker_view *view, weir_time now)
{
    bool degraded = plan->degrade > 0 &&
                    weir__get(&guard->table->header->degradation) >= (uint64_t)plan->degrade;

    return degraded || view->force == WEIR_FORCE_OPEN ||
           (view->force == WEIR_UNFORCED && view->state == WEIR_BREAKER_OPEN &&
            view->retry_at > now);
}

static int32_t percent_of(const int32_t *permille)
{
    return weir__get(permille) / 10;
}

void weir__guard_peek(struct weir_guard *guard, weir_time now, struct weir_guard_info *out)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);
    const struct weir__guard_record *r = guard->record;
    struct weir__breaker_view view;

    memset(out, 0, sizeof(*out));
    memcpy(out->name, plan->name, sizeof(out->name));
    out->options = plan->options;
    out->in_flight = weir__get(&r->in_flight);
    out->limit = plan->controller.row ? weir__guard_found(r, plan) : plan->max;
    weir__breaker_look(&plan->breaker, &r->breaker, weir__guard_time(now), &view);
    out->breaker = view.state, out->force = view.force, out->retry_at = view.retry_at;
    out->calls = view.calls, out->errors = view.errors, out->slow = view.slow;
    out->p50 = weir__get(&r->p50);
    out->p90 = weir__get(&r->p90);
    out->p99 = weir__get(&r->p99);
    out->mean = weir__get(&r->mean);
    read_counts(r, out);
    out->entered = weir__guard_entered(r);
    out->admitted_percent = is_shut(guard, plan, &view, weir__guard_time(now)) ? 0
                            : weir__get(&r->admitted) == 0                     ? 100
                                                           : percent_of(&r->admitted);
    out->pressure_percent = percent_of(&r->pressure);
    read_events(r, out->events);
}

/* An ask that will be undone has entered for a moment, but a counter does not go back. */
static int64_t not_less_than_told(int64_t *told, int64_t n)
{
    int64_t before = weir__get(told);

    while (before < n && !__atomic_compare_exchange_n(told, &before, n, false, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
        continue;
    return before > n ? before : n;
}

void weir_guard_get(struct weir_guard *guard, weir_time now, struct weir_guard_info *out)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);

    now = weir__guard_time(now);
    if (weir__guard_is_due(guard, plan, now))
        weir__guard_tick(guard, plan, now); /* there may have been no caller for a while */
    weir__guard_peek(guard, now, out);
    out->entered = not_less_than_told(&guard->record->entered_told, out->entered);
}

uint64_t weir__guard_key_id(struct weir_guard *guard, struct weir_key key, int64_t *max)
{
    const struct weir__guard_plan *plan = weir__guard_plan_of(guard);

    *max = plan->max_per_key;
    if (*max == 0 || key.len == 0)
        return 0;
    uint64_t id = weir__hash_key(guard->table->secrets, plan->salt, key).tag;
    return id != 0 ? id : 1;
}

int64_t weir_guard_key_in_flight(struct weir_guard *guard, struct weir_key key)
{
    const struct weir__held *held = &guard->held;
    void *slot;

    return weir__held_count(held, weir__held_home(held, weir__guard_plan_of(guard)->salt, key),
                            &slot);
}

void weir_guard_tell(struct weir_guard *guard, char *out, size_t size)
{
    weir__controller_tell(&weir__guard_plan_of(guard)->controller, guard->record->learnt.controller,
                          out, size);
}

const char *weir_outcome_name(enum weir_outcome outcome)
{
    static const char *const names[] = { "ok", "error", "timeout", "dropped", "ignored" };

    return outcome <= WEIR_IGNORED ? names[outcome] : "unknown";
}

const char *weir_breaker_state_name(enum weir_breaker_state state)
{
    static const char *const names[] = { "closed", "open", "half-open" };

    return state <= WEIR_BREAKER_HALF_OPEN ? names[state] : "unknown";
}
