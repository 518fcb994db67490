/* wait.c -- waiting for one's turn, on a clock of one's own.
 *
 * weir_wait takes and then sleeps until the grant may be used.  The clock it sleeps by is an
 * argument: weir_table_clock(table) for the real one, and in a test, as here, one that jumps:
 * minutes of waiting pass at once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir-queue.h>

static weir_time tell(void *context)
{
    return *(weir_time *)context;
}

static void jump(void *context, weir_time span)
{
    *(weir_time *)context += span;
}

static void expect(bool so, const char *what)
{
    if (!so) {
        fprintf(stderr, "wait: not so: %s\n", what);
        exit(1);
    }
}

int main(void)
{
    struct weir_table *table;
    struct weir_limiter *mail;
    struct weir_error error;
    struct weir_limit limit = { .count = 10,
                                .period = 60 * WEIR_SECOND,
                                .burst = 1 }; /* a mail every six seconds */

    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 1000 }, &error) ||
        weir_limiter_create(&mail, table, "mail", &limit, &error)) {
        fprintf(stderr, "wait: %s\n", error.text);
        return 1;
    }
    weir_time start = weir_table_now(table), now = start;
    struct weir_clock clock = { .now = tell, .sleep = jump, .context = &now };
    struct weir_ask ask = { .key = { "example.org", 11 }, .cost = 1, .wait_max = 10 * WEIR_SECOND };
    struct weir_decision d;

    for (int i = 0; i < 5; i++) {
        expect(weir_wait(mail, &ask, &clock, &d), "ten seconds are enough to wait for the next");
        printf("mail %d sent after %2" PRId64 " s\n", i + 1, (now - start) / WEIR_SECOND);
        expect(now - start == i * 6 * WEIR_SECOND, "one every six seconds");
    }

    /* A caller that cannot wait that long is refused at once, not after a sleep in vain. */
    ask.wait_max = 2 * WEIR_SECOND;
    weir_time before = now;
    expect(!weir_wait(mail, &ask, &clock, &d) && now == before,
           "two seconds are not enough, and nobody slept");
    expect(d.retry == 4 * WEIR_SECOND, "in four seconds two more will be");
    printf("a sender with 2 s of patience: %s, try again in %" PRId64 " s\n",
           weir_reason_name(d.reason), d.retry / WEIR_SECOND);

    weir_table_destroy(table);
    return 0;
}
