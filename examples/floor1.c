/* floor1.c -- you hold the state: a limit on each connection, kept inside the connection.
 *
 * No table, no keys, no lock, no clock: weir_step gets a plan, a few bytes and the time, and
 * answers.  Take this floor where you have an object per client already.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

struct connection {
    int id;
    _Alignas(8) unsigned char limit_state[16]; /* zeros: a fresh one; nothing to initialise, nothing
                                                  to free */
};

static void expect(bool so, const char *what)
{
    if (!so) {
        fprintf(stderr, "floor1: not so: %s\n", what);
        exit(1);
    }
}

static bool request(const struct weir_plan *plan, struct connection *c, weir_time now,
                    struct weir_decision *d)
{
    bool allowed = weir_step(plan, c->limit_state, &(struct weir_ask){ .cost = 1, .now = now }, d);
    char retry[32];

    weir_time_print(retry, sizeof(retry), d->retry);
    printf("connection %d at %4" PRId64 " ms: %s, %" PRId64 " left, retry in %s\n", c->id,
           now / WEIR_MILLISECOND, weir_reason_name(d->reason), d->remaining, retry);
    return allowed;
}

int main(void)
{
    struct weir_limit limit;
    struct weir_plan *plan;
    struct weir_error error;

    if (weir_limit_parse(&limit, "5/s burst 3", &error) ||
        weir_plan_create(&plan, &limit, &error)) {
        fprintf(stderr, "floor1: %s\n", error.text);
        return 1;
    }
    struct connection a = { .id = 1 }, b = { .id = 2 };
    expect(weir_plan_state_size(plan) <= sizeof(a.limit_state), "this algorithm's state fits");

    struct weir_decision d;
    weir_time now = 1000 * WEIR_MILLISECOND; /* any axis will do: here, since the program's start */
    for (int i = 0; i < 3; i++)
        expect(request(plan, &a, now, &d), "a fresh connection gets its whole burst");
    expect(!request(plan, &a, now, &d), "and not one more");
    expect(d.retry == 200 * WEIR_MILLISECOND, "at 5/s the next unit is 200 ms away");
    expect(request(plan, &b, now, &d), "another connection has a state of its own");

    /* `retry` is exact: a nanosecond before, no; at that moment, yes.  "No" has changed
     * nothing. */
    expect(!request(plan, &a, now + 200 * WEIR_MILLISECOND - 1, &d), "too early");
    expect(request(plan, &a, now + 200 * WEIR_MILLISECOND, &d), "just in time");

    /* A peek takes nothing, and unused units can be given back. */
    now += 200 * WEIR_MILLISECOND;
    weir_step_give(plan, a.limit_state, &(struct weir_ask){ .cost = 1, .now = now });
    expect(weir_step_peek(plan, a.limit_state, &(struct weir_ask){ .cost = 1, .now = now }, &d),
           "the unit is back");

    /* From this moment on the state equals zeros, so it need not be kept. */
    printf("connection 1 is as good as fresh at %" PRId64 " ms\n",
           weir_step_idle_at(plan, a.limit_state) / WEIR_MILLISECOND);
    weir_plan_destroy(plan);
    return 0;
}
