/* calendar.c -- so many per calendar day, week or month in a time zone: quotas.
 *
 * Windows begin where days of the zone begin (base/zone.h), weeks on Monday, months on the first;
 * so a day may have 23 or 25 hours, and a month 28 to 31 days.
 *
 *     0  int64  end    of the window that `used` is about
 *     8  int64  used   units taken in it; more than count: the rest is promised to the windows that
 *                      follow
 *     bound     count in a window, and so up to 2 * count in a short time that lies across an edge
 *
 * It is fixed-window with edges from the calendar, and answers alike: an ask that can wait is
 * promised the first later window that holds it whole; nobody overtakes a promise, and what it
 * skipped of a window stays skipped even if it is given back.  While a window lasts the zone is not
 * looked at.  Windows are numbered, without days that a zone has left out: what is promised to the
 * n-th window from here is found without walking there.
 */
#include <assert.h>
#include <string.h>

#include "algo/window.h"
#include "base/zone.h"

#define USED_MAX    ((int64_t)1 << 61)
#define WINDOWS_MAX ((int64_t)1 << 20) /* more than there are days until no weir_time is left */

struct state {
    weir_time end;
    int64_t used;
};

static const struct kind {
    const char *name;
    weir_time longest; /* as such windows go; what lies further back than two of them is not late */
    const char *span;  /* for an error: about as long, whatever the calendar says */
    const char *in_words;
} kinds[] = {
    [WEIR_DAY] = { "day", 25 * 3600 * WEIR_SECOND, "1d", "24 hours" },
    [WEIR_WEEK] = { "week", 169 * 3600 * WEIR_SECOND, "1w", "7 times 24 hours" },
    [WEIR_MONTH] = { "month", 745 * 3600 * WEIR_SECOND, "30d", "30 times 24 hours" },
};

const char *weir__calendar_word(int32_t calendar)
{
    return calendar >= WEIR_DAY && calendar <= WEIR_MONTH ? kinds[calendar].name : NULL;
}

int weir__calendar_check(const struct weir_limit *l, const char *algorithm,
                         struct weir_error *error)
{
    const char *word = weir__calendar_word(l->calendar);
    algorithm = algorithm ? algorithm : "a limit by time";
    if (l->calendar != WEIR_NO_CALENDAR && word == NULL)
        return weir__fail(error, WEIR_INVALID,
                          "calendar must be WEIR_DAY, WEIR_WEEK or WEIR_MONTH");
    if (strcmp(algorithm, weir__calendar.name) == 0) {
        if (word != NULL && l->period == 0)
            return WEIR_OK;
        return weir__fail(
            error, WEIR_INVALID,
            "calendar counts by day, week or month, as in %lld/day; for a time write fixed-window",
            (long long)l->count);
    }
    if (word != NULL)
        return weir__fail(
            error, WEIR_INVALID,
            "%s has no calendar %s: write %lld/%s for %s, or leave out %s for a calendar %s",
            algorithm, word, (long long)l->count, kinds[l->calendar].span,
            kinds[l->calendar].in_words, algorithm, word);
    if (l->zone[0] != '\0')
        return weir__fail(error, WEIR_INVALID,
                          "%s has no 'zone'; it is for calendar windows, as in %lld/day", algorithm,
                          (long long)l->count);
    return WEIR_OK;
}

static int prepare(struct weir_plan *plan, struct weir_error *error)
{
    struct weir_limit *l = &plan->limit;
    if (l->count > USED_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "a window cannot count that far: count must be at most 2^61");
    int code = weir__zone_find(&plan->zone, l->zone, error);
    if (code != WEIR_OK)
        return code;
    memset(l->zone, 0, sizeof(l->zone)); /* UTC has one name here, and no bytes follow it */
    memcpy(l->zone, plan->zone->name, strlen(plan->zone->name));
    plan->most = l->count;
    plan->by_count = weir__divisor_make((uint64_t)l->count);
    plan->packs = false;
    return WEIR_OK;
}

/* -------------------------------------------------------------- windows ---- */

/* The number of the window that `now` lies in. */
static int64_t window_at(const struct weir_plan *plan, weir_time now)
{
    int64_t day = weir__zone_day_at(plan->zone, now / WEIR_SECOND);
    if (plan->limit.calendar == WEIR_MONTH)
        return weir__month_of(day);
    if (plan->limit.calendar == WEIR_WEEK)
        return weir__floor_divide(day + 3, 7); /* 1970 began on a Thursday */
    return weir__zone_rank(plan->zone, day);
}

static weir_time window_start(const struct weir_plan *plan, int64_t window)
{
    int64_t day;
    if (window >= WINDOWS_MAX)
        return INT64_MAX;
    if (plan->limit.calendar == WEIR_MONTH)
        day = weir__month_start(window);
    else if (plan->limit.calendar == WEIR_WEEK)
        day = window * 7 - 3;
    else
        day = weir__zone_day_of_rank(plan->zone, window);
    int64_t second = weir__zone_day_start(plan->zone, day);
    return second > INT64_MAX / WEIR_SECOND ? INT64_MAX : second * WEIR_SECOND;
}

static weir_time window_end(const struct weir_plan *plan, weir_time now)
{
    return window_start(plan, window_at(plan, now) + 1);
}

/* `end`, and so many windows later. */
static weir_time end_after(const struct weir_plan *plan, weir_time end, int64_t windows)
{
    if (windows == 0)
        return end;
    return windows >= WINDOWS_MAX ? INT64_MAX : window_start(plan, window_at(plan, end) + windows);
}

weir_time weir__calendar_window(const struct weir_plan *plan, weir_time now, weir_time *start)
{
    assert(plan->algo == &weir__calendar);
    int64_t window = window_at(plan, now < 0 ? 0 : now);
    *start = window_start(plan, window);
    return window_start(plan, window + 1) - *start;
}

/* ---------------------------------------------------------------- steps ---- */

/* Makes the state that of the window `now` lies in.  True if the clock has stepped back: then what
 * was used counts in this window. */
static bool roll(const struct weir_plan *plan, struct state *s, weir_time now)
{
    int64_t count = plan->limit.count;
    s->used = s->used < 0          ? 0
              : s->used > USED_MAX ? USED_MAX
                                   : s->used; /* a damaged state may hold anything */
    s->end &= INT64_MAX;
    if (now < s->end) { /* this window, or asks that are late; further back than the window before
                           it, the clock has stepped back */
        if (s->end - now <= 2 * kinds[plan->limit.calendar].longest + WEIR__LATE_MAX)
            return false;
        s->end = window_end(plan, now);
        return true;
    }
    if (s->used <= count) {
        s->used = 0;
        s->end = window_end(plan, now);
        return false;
    }
    int64_t present = window_at(plan, now), passed = present - window_at(plan, s->end) + 1;
    s->used = weir__windows_in(plan, s->used + count - 1) <= passed
                  ? 0
                  : s->used - passed * count; /* what is promised to this window and later */
    s->end = window_start(plan, present + 1);
    return false;
}

static weir_time fresh_at(const struct weir_plan *plan, const struct state *s)
{
    if (s->used <= plan->limit.count)
        return s->used <= 0 ? 0 : s->end;
    return end_after(plan, s->end, weir__windows_in(plan, s->used - 1));
}

static void describe(const struct weir_plan *plan, const struct state *s, weir_time now,
                     struct weir_decision *d)
{
    weir_time fresh = fresh_at(plan, s);
    d->remaining = s->used >= plan->limit.count ? 0 : plan->limit.count - s->used;
    d->reset = fresh > now ? fresh - now : 0;
}

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct state s = *(struct state *)state;
    if (roll(plan, &s, ask->now) && take)
        *(struct state *)state = s;
    if (ask->cost > plan->limit.count) {
        describe(plan, &s, ask->now, d);
        return weir__refuse(d, WEIR_NEVER);
    }
    int64_t before, ahead = weir__window_find(plan, s.used, ask->cost, &before);
    weir_time wait = ahead > 0 ? end_after(plan, s.end, ahead - 1) - ask->now : 0;
    if (wait > ask->wait_max || before > USED_MAX - ask->cost) {
        describe(plan, &s, ask->now, d);
        return weir__refuse(d, wait > ask->wait_max ? wait - ask->wait_max : s.end - ask->now);
    }
    s.used = before + ask->cost;
    describe(plan, &s, ask->now, d);
    if (take && ask->cost > 0)
        *(struct state *)state = s;
    return weir__grant(d, wait);
}

static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    struct state *s = state;
    roll(plan, s, now);
    weir__i128 used = (weir__i128)s->used - units;
    s->used = used < 0 ? 0 : used > USED_MAX ? USED_MAX : (int64_t)used;
}

/* The units used in this window stay used, in the window of the new plan, as far as it counts; so
 * do those promised to each of the next. */
static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    struct state *s = to;
    *s = *(const struct state *)from;
    s->end &= INT64_MAX;
    weir_time begun = s->end > 0 ? window_start(old_plan, window_at(old_plan, s->end - 1)) : 0;
    now = now > begun ? now : begun; /* a change does not move a key back in time */
    roll(old_plan, s, now);
    int64_t full = s->used > old_plan->limit.count ? (s->used - 1) / old_plan->limit.count
                                                   : 0; /* windows before the last that holds any */
    int64_t rest = s->used - full * old_plan->limit.count, count = new_plan->limit.count;
    s->used = full > USED_MAX / count - 1 ? USED_MAX : full * count + (rest < count ? rest : count);
    if (new_plan->limit.calendar != old_plan->limit.calendar || new_plan->zone != old_plan->zone)
        s->end = s->used > 0 ? window_end(new_plan, now) : 0;
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    struct state s = *(const struct state *)state;
    s.end &= INT64_MAX;
    return fresh_at(plan, &s);
}

const struct weir__algo weir__calendar = {
    .name = "calendar",
    .summary = "so many per calendar day, week or month in a time zone: quotas",
    .prepare = prepare,
    .step = step,
    .give = give,
    .change = change,
    .idle_at = idle_at,
};
