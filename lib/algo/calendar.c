/* calendar.c -- a count per calendar day, week or month in a time zone: quotas (window.h).
 *
 * Windows begin where days of the zone begin (base/zone.h), weeks on Monday, months on the first;
 * so a day may have 23 or 25 hours, and a month 28 to 31 days.  While a window lasts the zone is
 * not looked up. Windows are numbered, leaving out days that the zone skips, so the n-th window
 * from here is found without walking there.
 *
 * In a table the asks' time may differ from the real one, which was wrong when the table was made
 * or has been set since.  Windows are real ones, so states are kept in real time; a difference that
 * shrinks looks like a clock that was set back.
 */
#include <assert.h>
#include <string.h>

#include "algo/window.h"
#include "base/zone.h"

#define WINDOWS_MAX ((int64_t)1 << 20) /* more than the days that a weir_time can reach */

static const struct kind {
    const char *name;
    weir_time longest; /* of such windows; an ask more than two of them back is not late */
    const char *span;  /* about as long, for an error */
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
    char *zone = plan->limit.zone;
    int code = weir__window_prepare(plan, error);

    if (code == WEIR_OK)
        code = weir__zone_find(&plan->zone, zone, error);
    if (code != WEIR_OK)
        return code;
    memset(zone, 0, sizeof(plan->limit.zone)); /* UTC has one spelling here */
    memcpy(zone, plan->zone->name, strlen(plan->zone->name));
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

static weir_time end_of(const struct weir_plan *plan, weir_time now)
{
    return window_start(plan, window_at(plan, now) + 1);
}

static weir_time end_after(const struct weir_plan *plan, weir_time end, int64_t windows)
{
    if (windows == 0)
        return end;
    return windows >= WINDOWS_MAX ? INT64_MAX : window_start(plan, window_at(plan, end) + windows);
}

static int64_t ahead_of(const struct weir_plan *plan)
{
    int64_t ahead = plan->real_ahead ? __atomic_load_n(plan->real_ahead, __ATOMIC_RELAXED) : 0;

    return ahead == INT64_MIN ? 0 : ahead; /* a damaged one */
}

static weir_time real(const struct weir_plan *plan, weir_time now)
{
    return weir__real_at(now, ahead_of(plan));
}

weir_time weir__calendar_window(const struct weir_plan *plan, weir_time now, weir_time *start)
{
    assert(plan->algo == &weir__calendar);
    int64_t window = window_at(plan, real(plan, now));
    *start = window_start(plan, window);
    return window_start(plan, window + 1) - *start;
}

weir_time weir__calendar_longest(const struct weir_plan *plan)
{
    return kinds[plan->limit.calendar].longest;
}

static weir_time start_of(const struct weir_plan *plan, weir_time end)
{
    return end > 0 ? window_start(plan, window_at(plan, end - 1)) : 0;
}

static int64_t passed(const struct weir_plan *plan, weir_time end, weir_time now)
{
    return window_at(plan, now) - window_at(plan, end) + 1;
}

static bool same(const struct weir_plan *a, const struct weir_plan *b)
{
    return a->limit.calendar == b->limit.calendar && a->zone == b->zone;
}

static const struct weir__edges edges = {
    weir__calendar_longest, start_of, end_of, end_after, passed, same
};

static bool step(const struct weir_plan *plan, void *state, const struct weir_ask *ask, bool take,
                 struct weir_decision *d)
{
    struct weir_ask then = *ask;

    then.now = real(plan, ask->now);
    return weir__window_step(&edges, plan, state, &then, take, d);
}

static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time now)
{
    weir__window_give(&edges, plan, state, units, real(plan, now));
}

static void give_unused(const struct weir_plan *plan, void *state,
                        const struct weir__unused *unused, weir_time now)
{
    struct weir__unused by_real = *unused;

    by_real.turn = real(plan, unused->turn);
    weir__window_give_unused(&edges, plan, state, &by_real, real(plan, now));
}

static void change(const struct weir_plan *old_plan, const struct weir_plan *new_plan,
                   const void *from, void *to, weir_time now)
{
    *(struct weir__window_state *)to = *(const struct weir__window_state *)from;
    weir__window_change(&edges, old_plan, new_plan, to, real(new_plan, now));
}

static weir_time idle_at(const struct weir_plan *plan, const void *state)
{
    weir_time at = weir__window_idle_at(&edges, plan, state);

    if (at == 0 || at == INT64_MAX)
        return at;
    return weir__real_at(at, -ahead_of(plan)); /* on the asks' axis */
}

const struct weir__algo weir__calendar = {
    .name = "calendar",
    .summary = "a count per calendar day, week or month in a time zone: quotas",
    .prepare = prepare,
    .step = step,
    .give = give,
    .give_unused = give_unused,
    .change = change,
    .idle_at = idle_at,
};
