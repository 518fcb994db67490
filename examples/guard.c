/* guard.c -- work in progress, bounded: enter, do it, exit with the outcome.
 *
 * Time is an argument, as everywhere: this program passes seconds by adding them to `now`.  A real
 * one passes weir_table_now(table).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir-queue.h>

static void expect(bool so, const char *what)
{
    printf("%-4s %s\n", so ? "ok" : "NOT", what);
    if (!so)
        exit(1);
}

static struct weir_guard *guard(struct weir_table *table, const char *name,
                                const struct weir_guard_options *options)
{
    struct weir_guard *out;
    struct weir_error error;

    if (weir_guard_create(&out, table, name, options, &error)) {
        fprintf(stderr, "guard: %s: %s\n", name, error.text);
        exit(1);
    }
    return out;
}

/* At most two at a time. */
static void permits(struct weir_table *table, weir_time now)
{
    struct weir_guard *reports = guard(table, "reports", &(struct weir_guard_options){ .max = 2 });
    struct weir_ask ask = { .cost = 1, .now = now };
    struct weir_permit first, second, third;
    struct weir_decision d;

    expect(weir_enter(reports, &ask, &first, &d) && weir_enter(reports, &ask, &second, &d),
           "two reports are being made");
    expect(!weir_enter(reports, &ask, &third, &d) && d.reason == WEIR_BUSY,
           "a third hears at once that it cannot be");
    expect(weir_exit(reports, &first, WEIR_SUCCEEDED, now + WEIR_SECOND), "the first is done");
    ask.now = now + WEIR_SECOND;
    expect(weir_enter(reports, &ask, &third, &d), "and the third can be made");
    expect(!weir_exit(reports, &first, WEIR_SUCCEEDED, ask.now),
           "a permit can be returned only once");
    weir_exit(reports, &second, WEIR_SUCCEEDED, ask.now);
    weir_exit(reports, &third, WEIR_SUCCEEDED, ask.now);
}

/* A broken dependency is left alone for a while, then tried again. */
static void breaker(struct weir_table *table, weir_time now)
{
    struct weir_breaker_options half = { .error_percent = 50,
                                         .min_calls = 4,
                                         .open_for = 5 * WEIR_SECOND,
                                         .jitter_percent = -1,
                                         .probes = 1 };
    struct weir_guard *search =
        guard(table, "search", &(struct weir_guard_options){ .breaker = half });
    struct weir_ask ask = { .cost = 1, .now = now };
    struct weir_permit permit;
    struct weir_decision d;

    for (int i = 0; i < 4; i++) {
        expect(weir_enter(search, &ask, &permit, &d), "search is asked");
        weir_exit(search, &permit, WEIR_FAILED, ask.now);
    }
    expect(!weir_enter(search, &ask, &permit, &d) && d.reason == WEIR_OPEN,
           "after four errors it is not asked any more");
    printf("     Retry-After: %.1f s\n", (double)d.retry / (double)WEIR_SECOND);
    ask.now += d.retry;
    expect(weir_enter(search, &ask, &permit, &d), "then one may try");
    weir_exit(search, &permit, WEIR_SUCCEEDED, ask.now);
    expect(weir_enter(search, &ask, &permit, &d), "and as that went well, all may");
    weir_exit(search, &permit, WEIR_SUCCEEDED, ask.now);
}

/* No number at all: how many may be at work is found from how long they take
 * (bench/guard/real-server.c is a server with this). */
static void adaptive(struct weir_table *table, weir_time now)
{
    struct weir_guard *backend = guard(
        table, "backend", &(struct weir_guard_options){ .adaptive.controller = WEIR_ADAPTIVE });
    struct weir_permit permit;
    struct weir_decision d;
    struct weir_guard_info info;

    expect(weir_enter(backend, &(struct weir_ask){ .cost = 1, .now = now }, &permit, &d),
           "somebody enters");
    weir_exit(backend, &permit, WEIR_SUCCEEDED, now + 20 * WEIR_MILLISECOND);
    weir_guard_get(backend, now + 20 * WEIR_MILLISECOND, &info);
    expect(info.succeeded == 1 && info.in_flight == 0, "it has been done, and nobody is at work");
    printf("     %" PRId64 " may be at work at once, to begin with\n", info.limit);
}

int main(void)
{
    struct weir_table *table;
    struct weir_error error;

    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 1000 }, &error)) {
        fprintf(stderr, "guard: %s\n", error.text);
        return 1;
    }
    weir_time now = weir_table_now(table);
    permits(table, now);
    breaker(table, now);
    adaptive(table, now);
    weir_table_destroy(table);
    return 0;
}
