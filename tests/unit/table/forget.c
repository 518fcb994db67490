/* forget.c -- a key is fresh again, in every kind of slot and under every algorithm; others stay as
 * they were. */
#include "unit/test.h"

#include "unit/fixture.h"

static const char *const limits[] = { "gcra 5/60s",
                                      "token-bucket 5/60s",
                                      "leaky-bucket 5/60s queue 3",
                                      "fixed-window 5/60s align=first",
                                      "sliding-window 5/60s",
                                      "sliding-log 5/60s",
                                      "smooth 5/60s",
                                      "warm-up 5/60s",
                                      "calendar 5/day" };

/* Takes until it is refused; what each was told. */
static size_t spend(struct weir_limiter *limiter, const char *key, weir_time now,
                    struct weir_decision d[20])
{
    size_t n = 0;
    struct weir_ask ask = ask_of(key, 1, now);

    while (n < 20 && weir_take(limiter, &ask, &d[n]))
        n++;
    return n;
}

static void forget_under(const char *text, bool narrow)
{
    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .keys = 200, .slab = 8 << 20, .narrow = narrow });
    struct weir_limiter *limiter;
    struct weir_limit limit = limit_of(text);
    struct weir_decision first[20] = { 0 }, again[20] = { 0 }, other;
    assert_ok(weir_limiter_create(&limiter, table, "l", &limit, NULL));
    struct weir_ask ann = ask_of("ann", 1, NOW), bob = ask_of("bob", 1, NOW);
    weir_forget(limiter, ann.key, NOW); /* there is nothing to forget */
    size_t n = spend(limiter, "ann", NOW, first);
    weir_take(limiter, &bob, &other);
    int64_t left = other.remaining;
    weir_forget(limiter, ann.key, NOW + S);
    assert_int_equal(spend(limiter, "ann", NOW, again),
                     n); /* a fresh key remembers no time either */
    for (size_t i = 0; i <= n && i < 20; i++)
        assert_memory_equal(&first[i], &again[i], sizeof(first[i]));
    bob.cost = 0;
    weir_peek(limiter, &bob, &other);
    assert_int_equal(other.remaining, left);
}

TEST(test_S6_forget_under_every_algorithm)
{
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        forget_under(limits[i], false);
}

TEST(test_S6_forget_in_a_narrow_table)
{
    forget_under("gcra 5/60s", true);
    forget_under("sliding-log 5/60s", true);
}
