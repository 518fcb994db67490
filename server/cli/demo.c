/* demo.c -- `weir demo`: draws every algorithm over the same burst of traffic (scenario.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/command.h"
#include "server/cli/scenario.h"
#include "server/base/complain.h"
#include "server/base/words.h"

struct options {
    bool csv;
};

static const struct weir__option rows[] = {
    WEIR__SWITCH("csv", 0, csv,
                 "print the series instead: "
                 "algorithm,time_ms,offered,admitted,waited"),
    { 0 },
};

/* ---------------------------------------------------------- the picture ---- */

static int largest(const struct weir__scenario *s)
{
    int most = 1;

    for (int i = 0; i < WEIR__SCENARIO_BUCKETS; i++)
        most = s->offered[i] > most ? s->offered[i] : most;
    return most;
}

static const char *bar(int n, int most)
{
    return weir__words_column((n * 8 + most - 1) / most);
}

static void draw_axis(const struct weir__colours *c)
{
    printf("%-15s%s", "", c->dim);
    for (int i = 0; i < WEIR__SCENARIO_BUCKETS; i += 10)
        printf("%-*s", i + 10 <= WEIR__SCENARIO_BUCKETS ? 10 : WEIR__SCENARIO_BUCKETS - i,
               (char[]){ (char)('0' + i / 10), 's', '\0' });
    printf("  yes   no wait most%s\n", c->off);
}

static void draw_offered(const struct weir__scenario *s, const struct weir__colours *c)
{
    int most = largest(s);

    printf("%-15s%s", "offered", c->note);
    for (int i = 0; i < WEIR__SCENARIO_BUCKETS; i++)
        fputs(bar(s->offered[i], most), stdout);
    printf("%s%5d\n", c->off, s->offered_all);
}

static void draw_algorithm(const char *name, const struct weir__scenario *s,
                           const struct weir__colours *c)
{
    int most = largest(s);

    printf("%-15s", name);
    for (int i = 0; i < WEIR__SCENARIO_BUCKETS; i++) {
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
        WEIR__SCENARIO_LIMIT);
}

/* --------------------------------------------------------- the commands ---- */

static void print_csv(const char *name, const struct weir__scenario *s)
{
    for (int i = 0; i < WEIR__SCENARIO_BUCKETS; i++) {
        printf("%s,%lld,%d,%d,%d\n", name,
               (long long)(i * WEIR__SCENARIO_BUCKET / WEIR_MILLISECOND), s->offered[i],
               s->admitted[i], s->waited[i]);
    }
}

static int show(const struct weir__command *self, bool csv)
{
    struct weir__colours colours = weir__colours(weir__wants_colours());

    const char *const *names = weir_algorithms();

    for (size_t i = 0; names[i]; i++) {
        struct weir__scenario s;
        struct weir_error error = { 0 };
        if (strcmp(names[i], "calendar") == 0) /* it counts days: six seconds show nothing */
            continue;
        if (weir__scenario_run(&s, names[i], &error) != WEIR_OK)
            return weir__complain(self->name, "%s: %s", names[i], error.text);
        if (i == 0 && csv)
            puts("algorithm,time_ms,offered,admitted,waited");
        if (i == 0 && !csv) {
            printf("The same %d asks on one key, under a limit of %s\n\n", s.offered_all,
                   WEIR__SCENARIO_LIMIT);
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
