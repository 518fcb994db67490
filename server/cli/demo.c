/* demo.c -- `weir demo`: the same traffic through every algorithm, drawn.
 *
 *     0.0 s   a trickle, half the limit
 *     1.5 s   a burst, eight times the limit
 *     2.3 s   silence, long enough to be fresh again
 *     4.7 s   a burst across the full second at 5.0, where a window that is aligned to the clock
 *             ends
 *     5.3 s   a trickle again
 *
 * Every ask is one unit on one key.  Algorithms whose answer is a turn to wait for may let an ask
 * wait; the others say yes or no at once.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/command.h"
#include "server/base/complain.h"
#include "server/base/terminal.h"

struct options {
    bool csv;
};

static const struct weir__option rows[] = {
    WEIR__SWITCH("csv", 0, csv,
                 "print the series instead: "
                 "algorithm,time_ms,offered,admitted,waited"),
    { 0 },
};

/* ---------------------------------------------------------- the traffic ---- */

#define BUCKET (100 * WEIR_MILLISECOND) /* one column of a picture */
#define LIMIT  "10/1s"
#define PERIOD WEIR_SECOND
#define WAIT   (500 * WEIR_MILLISECOND)

enum { BUCKETS = 64 };

struct series {
    char limit[64]; /* as given to the algorithm */
    int offered[BUCKETS];
    int admitted[BUCKETS]; /* where they are used: after the wait */
    int waited[BUCKETS];   /* of those, how many had to wait */
    int refused[BUCKETS];
    int offered_all, admitted_all, waited_all;
    int most; /* admitted in any one period */
};

static const struct phase {
    weir_time from, to, every;
} phases[] = {
    { 0, 1500 * WEIR_MILLISECOND, 200 * WEIR_MILLISECOND },
    { 1500 * WEIR_MILLISECOND, 2300 * WEIR_MILLISECOND, 12500 * WEIR_MICROSECOND },
    { 4700 * WEIR_MILLISECOND, 5300 * WEIR_MILLISECOND, 12500 * WEIR_MICROSECOND },
    { 5300 * WEIR_MILLISECOND, 5800 * WEIR_MILLISECOND, 200 * WEIR_MILLISECOND },
};

/* What an algorithm needs beyond the limit that all have. */
static const struct special {
    const char *algorithm, *options;
    weir_time wait_max;
} specials[] = {
    { "leaky-bucket", " queue 5", WAIT },
    { "smooth", "", WAIT },
    { "warm-up", " warmup=2s", WAIT },
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { USES_MAX = 256 };

struct trial {
    struct weir_plan *plan;
    void *state;
    weir_time wait_max;
    weir_time uses[USES_MAX]; /* when each admitted ask was used */
    struct series *out;
};

static size_t bucket_of(weir_time time)
{
    size_t i = (size_t)(time / BUCKET);

    return i < BUCKETS ? i : BUCKETS - 1;
}

static void ask_once(struct trial *r, weir_time now)
{
    struct weir_ask ask = { .cost = 1, .wait_max = r->wait_max, .now = now };
    struct weir_decision d;
    struct series *out = r->out;

    out->offered[bucket_of(now)]++;
    out->offered_all++;
    if (!weir_step(r->plan, r->state, &ask, &d)) {
        out->refused[bucket_of(now)]++;
        return;
    }
    assert(out->admitted_all < USES_MAX);
    r->uses[out->admitted_all++] = now + d.wait;
    out->admitted[bucket_of(now + d.wait)]++;
    out->waited[bucket_of(now + d.wait)] += d.wait > 0;
    out->waited_all += d.wait > 0;
}

static int compare(const void *a, const void *b)
{
    weir_time x = *(const weir_time *)a, y = *(const weir_time *)b;

    return (x > y) - (x < y);
}

static int most_in_a_period(struct trial *r)
{
    int most = 0;
    int n = r->out->admitted_all;

    qsort(r->uses, (size_t)n, sizeof(r->uses[0]), compare);
    for (int first = 0, last = 0; last < n; last++) {
        while (r->uses[last] - r->uses[first] >= PERIOD)
            first++;
        most = last - first + 1 > most ? last - first + 1 : most;
    }
    return most;
}

static int make_plan(struct trial *r, const char *algorithm, struct weir_error *error)
{
    const struct special *s = specials;
    struct weir_limit limit;

    while (s < specials + COUNT_OF(specials) && strcmp(s->algorithm, algorithm) != 0)
        s++;
    bool is_special = s < specials + COUNT_OF(specials);
    r->wait_max = is_special ? s->wait_max : 0;
    snprintf(r->out->limit, sizeof(r->out->limit), "%s %s%s", algorithm, LIMIT,
             is_special ? s->options : "");
    int code = weir_limit_parse(&limit, r->out->limit, error);
    return code == WEIR_OK ? weir_plan_create(&r->plan, &limit, error) : code;
}

/* On virtual time. */
static int run_traffic(struct series *out, const char *algorithm, struct weir_error *error)
{
    struct trial r = { .out = out };

    *out = (struct series){ .most = 0 };
    int code = make_plan(&r, algorithm, error);
    if (code != WEIR_OK)
        return code;
    r.state = calloc(1, weir_plan_state_size(r.plan));
    for (size_t i = 0; r.state && i < COUNT_OF(phases); i++) {
        for (weir_time now = phases[i].from; now < phases[i].to; now += phases[i].every)
            ask_once(&r, now);
    }
    out->most = most_in_a_period(&r);
    code = r.state ? WEIR_OK : weir__fail(error, WEIR_NO_MEMORY, "no memory");
    free(r.state);
    weir_plan_destroy(r.plan);
    return code;
}

/* ---------------------------------------------------------- the picture ---- */

static int largest(const struct series *s)
{
    int most = 1;

    for (int i = 0; i < BUCKETS; i++)
        most = s->offered[i] > most ? s->offered[i] : most;
    return most;
}

static const char *bar(int n, int most)
{
    return weir__human_column((n * 8 + most - 1) / most);
}

static void draw_axis(const struct weir__colours *c)
{
    printf("%-15s%s", "", c->dim);
    for (int i = 0; i < BUCKETS; i += 10)
        printf("%-*s", i + 10 <= BUCKETS ? 10 : BUCKETS - i,
               (char[]){ (char)('0' + i / 10), 's', '\0' });
    printf("  yes   no wait most%s\n", c->off);
}

static void draw_offered(const struct series *s, const struct weir__colours *c)
{
    int most = largest(s);

    printf("%-15s%s", "offered", c->note);
    for (int i = 0; i < BUCKETS; i++)
        fputs(bar(s->offered[i], most), stdout);
    printf("%s%5d\n", c->off, s->offered_all);
}

static void draw_algorithm(const char *name, const struct series *s, const struct weir__colours *c)
{
    int most = largest(s);

    printf("%-15s", name);
    for (int i = 0; i < BUCKETS; i++) {
        if (s->admitted[i])
            printf("%s%s%s", s->waited[i] ? c->mild : c->good, bar(s->admitted[i], most), c->off);
        else
            printf("%s%s%s", c->bad, s->refused[i] ? "×" : " ", c->off);
    }
    printf("%5d%5d%5d%5d\n", s->admitted_all, s->offered_all - s->admitted_all, s->waited_all,
           s->most);
}

static void explain(const struct weir__colours *c)
{
    printf("\nA column is 100 ms; its height counts the asks that passed; %s×%s: asks came, none "
           "passed.\n"
           "yes, no: asks admitted and refused; %swait%s: admitted after a wait; most: admitted in "
           "any one second.\n\n",
           c->bad, c->off, c->mild, c->off);
    printf(
        "The limit is always %s.  Windows count: the fixed one starts afresh every full second, "
        "so\n"
        "a burst across 5s gets twice the limit; the sliding ones admit at most 10 in any second.\n"
        "Meters (token-bucket, gcra) let a rested key pass 10 at once, then one every 100 ms.\n"
        "Shapers (leaky-bucket with a queue, smooth, warm-up) give each ask a turn, here up to\n"
        "500 ms ahead; smooth spends savings from idle time at once, warm-up starts slowly after\n"
        "a rest.  (calendar counts days, weeks and months: six seconds would not show it.)\n",
        LIMIT);
}

/* --------------------------------------------------------- the commands ---- */

static void print_csv(const char *name, const struct series *s)
{
    for (int i = 0; i < BUCKETS; i++) {
        printf("%s,%lld,%d,%d,%d\n", name, (long long)(i * BUCKET / WEIR_MILLISECOND),
               s->offered[i], s->admitted[i], s->waited[i]);
    }
}

static int show(const struct weir__command *self, bool csv)
{
    struct weir__colours colours = weir__colours(weir__wants_colours());

    const char *const *names = weir_algorithms();

    for (size_t i = 0; names[i]; i++) {
        struct series s;
        struct weir_error error = { 0 };
        if (strcmp(names[i], "calendar") == 0) /* it counts days: six seconds show nothing */
            continue;
        if (run_traffic(&s, names[i], &error) != WEIR_OK)
            return weir__complain(self->name, "%s: %s", names[i], error.text);
        if (i == 0 && csv)
            puts("algorithm,time_ms,offered,admitted,waited");
        if (i == 0 && !csv) {
            printf("The same %d asks on one key, under a limit of %s\n\n", s.offered_all, LIMIT);
            draw_axis(&colours);
            draw_offered(&s, &colours);
        }
        if (csv)
            print_csv(names[i], &s);
        else
            draw_algorithm(names[i], &s, &colours);
    }
    if (!csv)
        explain(&colours);
    return WEIR__EXIT_OK;
}

static int run(const struct weir__call *call)
{
    return show(call->self, ((const struct options *)call->options)->csv);
}

const struct weir__command weir__cmd_demo = {
    .name = "demo",
    .summary = "show every algorithm over the same burst of traffic",
    .arguments = "[--csv]",
    .help = "Time is virtual: nothing sleeps.\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use.",
    WEIR__COMMAND_OPTIONS(rows, .csv = false),
    .run = run,
};
