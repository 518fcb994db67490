/* floor2.c -- a table holds the states: one call per request, by key.
 *
 * The table is private to this process here; give it a path and it is shared by every process of
 * the host (shared.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

static void expect(bool so, const char *what)
{
    printf("%-4s %s\n", so ? "ok" : "NOT", what);
    if (!so)
        exit(1);
}

static struct weir_key key(const char *text)
{
    return (struct weir_key){ text, strlen(text) };
}

static struct weir_limiter *limiter(struct weir_table *table, const char *name, const char *text)
{
    struct weir_limiter *out;
    struct weir_limit limit;
    struct weir_error error;

    if (weir_limit_parse(&limit, text, &error) ||
        weir_limiter_create(&out, table, name, &limit, &error)) {
        fprintf(stderr, "floor2: %s: %s\n", name, error.text);
        exit(1);
    }
    return out;
}

int main(void)
{
    struct weir_table *table;
    struct weir_error error;

    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 100000 }, &error)) {
        fprintf(stderr, "floor2: %s\n", error.text);
        return 1;
    }
    struct weir_limiter *user = limiter(table, "per-user", "2/s"),
                        *all = limiter(table, "all-users", "3/s");
    struct weir_limiter *tokens = limiter(table, "llm-tokens", "1000/m");
    weir_time now = weir_table_now(table); /* once per request, or once per turn of an event loop */
    struct weir_decision d;

    /* take, peek, give */
    struct weir_ask ann = { .key = key("ann"), .cost = 1, .now = now },
                    bob = { .key = key("bob"), .cost = 1, .now = now };
    expect(weir_take(user, &ann, &d) && weir_take(user, &ann, &d) && !weir_take(user, &ann, &d),
           "ann has two, and not a third");
    printf("     Retry-After: %.1f s\n", (double)d.retry / (double)WEIR_SECOND);
    expect(weir_peek(user, &bob, &d) && d.remaining == 1,
           "bob could have one and would have one left: a peek takes nothing");
    weir_give(user, &ann);
    expect(weir_take(user, &ann, &d), "ann can take again what she gave back");

    /* reserve a place in time: with wait_max a grant may lie ahead */
    ann.wait_max = WEIR_SECOND;
    expect(weir_take(user, &ann, &d) && d.wait == WEIR_SECOND / 2,
           "ann, who can wait a second, is told to wait half of it");

    /* several limits, all or nothing */
    struct weir_item both[] = { { user, bob }, { all, { .key = key(""), .cost = 1, .now = now } } };
    expect(weir_take_all(both, 2, &d) && weir_take_all(both, 2, &d),
           "bob passes both limits twice");
    expect(!weir_take_all(both, 2, &d) && d.item == 0, "then his own refuses");
    expect(weir_peek(all, &both[1].ask, &d) && d.remaining == 0,
           "and the common one was not charged: a unit of its three is left");

    /* a cost that is known afterwards */
    struct weir_reservation r;
    expect(weir_reserve(tokens, &(struct weir_ask){ .key = key("ann"), .cost = 400, .now = now },
                        60 * WEIR_SECOND, &r, &d),
           "400 tokens put by");
    expect(weir_settle(&r, 150, now), "150 were used");
    weir_peek(tokens, &(struct weir_ask){ .key = key("ann"), .cost = 0, .now = now }, &d);
    expect(d.remaining == 850, "850 are left of 1000");
    expect(!weir_settle(&r, 0, now), "settling twice does nothing");

    /* many asks at once: each for itself, the memory's latency hidden */
    char names[100][8];
    struct weir_item batch[100];
    struct weir_decision answers[100];
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof(names[i]), "u%d", i % 40);
        batch[i] = (struct weir_item){ user, { .key = key(names[i]), .cost = 1, .now = now } };
    }
    expect(weir_take_many(batch, 100, answers) == 80, "of 100 asks by 40 users at 2/s, 80 pass");

    weir_table_destroy(table);
    return 0;
}
