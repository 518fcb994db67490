/* laws-key.h -- a random limit of one algorithm, and a key under it whose history is known. */
#ifndef WEIR_TESTS_PROPERTY_LAWS_KEY_H
#define WEIR_TESTS_PROPERTY_LAWS_KEY_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/algo.h"
#include "rounds.h"

static const char *algorithm_of_round;
static struct weir_limit limit_of_round;
static weir_time
    span_of_round; /* its period, or the longest that a calendar window of its kind is */

static void broken(const char *law, const char *detail, int line)
{
    char text[256];

    weir_limit_print(text, sizeof(text), &limit_of_round);
    fprintf(stderr,
            "laws.c:%d: %s: law broken: %s (%s)\n  limit %s\n  again: laws %" PRIu64 " 1 %s\n",
            line, algorithm_of_round, law, detail, text, seed_of_round, algorithm_of_round);
    exit(1);
}

#define LAW(condition, law) ((condition) ? (void)0 : broken(law, #condition, __LINE__))

/* ------------------------------------------------------------- limits ---- */

static bool is(const char *name)
{
    return strcmp(algorithm_of_round, name) == 0;
}

static bool is_window(void)
{
    return is("fixed-window") || is("sliding-window") || is("sliding-log") || is("calendar");
}

static bool counts_by_the_clock(void)
{
    return is("fixed-window") || is("calendar");
}

static bool borrows(void)
{
    return is("smooth") || is("warm-up");
}

/* Zones, and a moment in each at which their clocks do something odd. */
static const struct {
    const char *name;
    weir_time odd;
} zones[] = {
    { "", 951782400 },                     /* 2000-02-29 */
    { "Europe/Berlin", 1774738800 },       /* a day of 23 hours */
    { "America/New_York", 1793505600 },    /* of 25 */
    { "Asia/Kolkata", 1767205800 },        /* +5:30 */
    { "Pacific/Apia", 1325239200 },        /* a day left out */
    { "America/St_Johns", 1289097000 },    /* back over midnight */
    { "Australia/Lord_Howe", 1759591800 }, /* by half an hour */
    { "Asia/Beirut", 1616882400 },         /* no midnight */
};

#define ZONES (int64_t)(sizeof(zones) / sizeof(*zones))

static void random_calendar(struct weir_limit *l)
{
    l->period = 0;
    l->calendar = (int32_t)between(WEIR_DAY, WEIR_MONTH);
    strcpy(l->zone, zones[between(0, ZONES - 1)].name);
}

static weir_time span_of(const struct weir_limit *l)
{
    static const int64_t hours[] = { 0, 25, 169, 745 };

    return is("calendar") ? hours[l->calendar] * 3600 * WEIR_SECOND : l->period;
}

/* Rates that divide a second and rates that do not; a few units and many. */
static struct weir_limit random_limit(void)
{
    static const weir_time periods[] = {
        1,           1000,        WEIR_MILLISECOND, 7777777,          WEIR_SECOND / 3,
        WEIR_SECOND, WEIR_SECOND, 60 * WEIR_SECOND, 13 * WEIR_SECOND, 86400 * WEIR_SECOND
    };
    struct weir_limit l = { .algorithm = algorithm_of_round,
                            .count = one_in(4) ? between(1, 5) : between(1, 300) };

    l.period = periods[between(0, 9)] * (one_in(3) ? between(1, 9) : 1);
    if (one_in(20))
        l.count = between(1, 3000000);
    if (is("sliding-log") && l.count > 1000)
        l.count = between(1, 1000);
    if (!is_window() && one_in(2))
        l.burst = between(1, 50);
    if (is("leaky-bucket") && one_in(2))
        l.queue = one_in(5) ? WEIR_NO_QUEUE : between(1, 100);
    if (is("fixed-window"))
        l.align_first = one_in(2);
    if (is("sliding-window")) {
        l.buckets = one_in(2) ? 0 : (int32_t)between(1, 20);
        l.loose = one_in(4);
        l.period += 1000;
    }
    if (is("warm-up")) {
        l.warmup = one_in(3) ? 0 : between(1, 1000) * WEIR_MILLISECOND;
        l.cold = (int32_t)(one_in(2) ? 0 : between(1, 10));
        l.period += 1000;
    }
    if (is("calendar"))
        random_calendar(&l);
    return l;
}

/* ---------------------------------------------------- a key with history ---- */

#define GRANTS_MAX 4000

struct grant {
    weir_time at;
    int64_t units;
};

struct key {
    struct weir_plan *plan;
    size_t size;
    unsigned char *state, *copy;
    weir_time now, latest;           /* of all asks */
    weir_time seen;                  /* the latest that the state had to remember */
    struct grant grants[GRANTS_MAX]; /* at the moments of use */
    int granted;
};

static void key_open(struct key *k)
{
    struct weir_error error;

    do {
        limit_of_round = random_limit();
    } while (weir_plan_create(&k->plan, &limit_of_round, &error) != WEIR_OK);
    k->size = weir_plan_state_size(k->plan);
    k->state = calloc(1, k->size);
    k->copy = calloc(1, k->size);
    k->now = one_in(3)   ? 0
             : one_in(2) ? between(0, 1000 * WEIR_SECOND)
                         : between(0, (int64_t)1 << 61);
    if (is("calendar") && one_in(2)) {
        int64_t i = 0;
        while (strcmp(zones[i].name, limit_of_round.zone) != 0)
            i++;
        k->now = (zones[i].odd + between(-4 * 86400, 86400)) * WEIR_SECOND;
    }
    span_of_round = span_of(&limit_of_round);
    k->latest = k->now;
    k->seen = 0;
    k->granted = 0;
}

static void key_close(struct key *k)
{
    weir_plan_destroy(k->plan);
    free(k->state);
    free(k->copy);
}

static struct weir_ask random_ask(const struct key *k)
{
    int64_t most = k->plan->most;
    struct weir_ask a = { .now = k->now, .cost = 1 };

    if (one_in(3))
        a.cost = between(0, most < 100 ? most + 1 : 100);
    if (one_in(50))
        a.cost = most + between(0, 1);
    if (one_in(3))
        a.wait_max = one_in(3) ? WEIR_FOREVER : between(0, 3 * span_of_round);
    return a;
}

/* Asks ever longer waits only as long as the history is short: a queue of years is not what a bound
 * is about. */
static void move_time(struct key *k)
{
    weir_time unit = span_of_round / limit_of_round.count;

    if (one_in(3))
        return;
    k->now += one_in(2)   ? between(0, 2 * unit + 1)
              : one_in(4) ? between(0, span_of_round * 2)
                          : between(0, 20 * unit + 20);
    if (k->now > k->latest)
        k->latest = k->now;
}

#endif
