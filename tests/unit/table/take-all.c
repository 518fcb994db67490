/* take-all.c -- several limits at once: every item is taken or none is, and the one that refused is
 * named. */
#include "unit/test.h"

#include "unit/fixture.h"

static struct weir_table *make_table(bool narrow)
{
    return table_with(&(struct weir_table_options){
        .keys = 200, .slab = 8 << 20, .guards = 1, .narrow = narrow });
}

static struct weir_item item_of(struct weir_limiter *limiter, const char *key, int64_t cost,
                                weir_time now)
{
    return (struct weir_item){ limiter, ask_of(key, cost, now) };
}

static struct weir_decision take_all(const struct weir_item *items, size_t n)
{
    struct weir_decision d;

    memset(&d, 0xa5, sizeof(d));
    bool allowed = weir_take_all(items, n, &d);
    assert_int_equal(allowed, d.allowed);
    return d;
}

/* The same items at another time. */
static struct weir_decision take_all_at(struct weir_item *items, size_t n, weir_time now)
{
    for (size_t i = 0; i < n; i++)
        items[i].ask.now = now;
    return take_all(items, n);
}

/* A refusal must leave every byte of the records, the slots and the slab as it was. */
struct picture {
    const struct weir_table *table;
    unsigned char *bytes;
    size_t size;
};

static struct picture look_at(const struct weir_table *table)
{
    struct picture p = { table, NULL, table->bytes - table->names.rooms_at };

    p.bytes = malloc(p.size);
    assert_non_null(p.bytes);
    memcpy(p.bytes, (unsigned char *)table->header + table->names.rooms_at, p.size);
    return p;
}

static void assert_unchanged(struct picture *p)
{
    const unsigned char *now = (unsigned char *)p->table->header + p->table->names.rooms_at;
    size_t at = 0;

    while (at < p->size && now[at] == p->bytes[at])
        at++;
    free(p->bytes);
    if (at < p->size)
        fail_msg("the byte at %zu of the region has changed",
                 at + (size_t)p->table->names.rooms_at);
}

/* ----------------------------------------------------------- SPEC L10 ---- */

static const struct {
    bool narrow;
    const char *slow, *fast;
} pairs[] = {
    { false, "300/60", "100/5" },
    { true, "300/60", "100/5" },
    { false, "gcra 300/60", "gcra 100/5" },
    { false, "fixed-window 300/60", "fixed-window 100/5" },
    { false, "sliding-log 300/60", "sliding-log 100/5" },
    { false, "sliding-log 300/60", "100/5" },
    { true, "300/60", "sliding-log 100/5" },
    { true, "sliding-log 300/60", "100/5" },
    { true, "sliding-log 300/60", "sliding-log 100/5" },
};

TEST(test_300_per_60_and_100_per_5_together)
{
    for (size_t p = 0; p < COUNT_OF(pairs); p++) {
        OWN(weir_table) *table = make_table(pairs[p].narrow);
        struct weir_limiter *slow = limiter_of(table, "slow", pairs[p].slow),
                            *fast = limiter_of(table, "fast", pairs[p].fast);
        weir_time start = 1200 * S; /* where windows of both begin */
        struct weir_item items[] = { item_of(slow, "k", 1, start), item_of(fast, "k", 1, start) };
        for (int64_t i = 1; i <= 100; i++) {
            struct weir_decision d = take_all(items, 2);
            assert_true(d.allowed);
            assert_int_equal(d.item, 1); /* the tightest */
            assert_fields(d, (remaining, 100 - i), (limit, 100));
        }
        assert_int_equal(left(slow, "k", start), 200);
        for (int i = 0; i < 50; i++) { /* refused by the second: the first must not be charged */
            struct weir_decision d = take_all(items, 2);
            assert_fields(d, (allowed, false), (reason, WEIR_LIMITED), (item, 1), (wait, 0));
            assert_true(d.retry > 0 && d.retry <= 5 * S);
        }
        assert_int_equal(left(slow, "k", start), 200);
        struct weir_decision d = take_all(items, 2);
        assert_false(take_all_at(items, 2, start + d.retry - 1).allowed);
        assert_true(take_all_at(items, 2, start + d.retry).allowed);
    }
}

/* A minute of one ask every ten milliseconds: what passes is what both limits allow. */
TEST(test_both_limits_hold_over_a_minute)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = make_table(narrow);
        struct weir_limiter *slow = limiter_of(table, "slow", "sliding-log 300/60"),
                            *fast = limiter_of(table, "fast", "sliding-log 100/5");
        int granted[12] = { 0 }, all = 0, named[2] = { 0 };
        for (int i = 0; i < 6000; i++) {
            weir_time now = NOW + i * 10 * WEIR_MILLISECOND;
            struct weir_item items[] = { item_of(slow, "k", 1, now), item_of(fast, "k", 1, now) };
            struct weir_decision d = take_all(items, 2);
            granted[i / 500] += d.allowed;
            all += d.allowed;
            if (!d.allowed)
                named[d.item]++;
        }
        assert_int_equal(all, 300);
        assert_int_equal(granted[0], 100); /* fast refuses until slow is spent, then slow */
        assert_int_equal(granted[1], 100);
        assert_int_equal(granted[2], 100);
        assert_int_equal(named[1], 2 * 400);
        assert_int_equal(named[0], 400 + 9 * 500); /* from when both do, the first */
    }
}

/* ------------------------------------------------------------ refusals ---- */

TEST(test_a_refusal_changes_no_byte_whoever_refuses)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t who = 0; who < 4; who++) {
            OWN(weir_table) *table = make_table(narrow);
            struct weir_limiter *l[] = { limiter_of(table, "a", "gcra 10/10s"),
                                         limiter_of(table, "b", "sliding-log 10/10s"),
                                         limiter_of(table, "c", "token-bucket 10/10s"),
                                         limiter_of(table, "d", "sliding-window 10/10s") };
            static const int64_t costs[] = { 8, 11, -1, INT64_MAX, INT64_MIN };
            for (size_t i = 0; i < 4; i++)
                assert_true(take(l[i], "k", 3, NOW).allowed);
            for (size_t c = 0; c < COUNT_OF(costs); c++) {
                struct weir_item items[4];
                for (size_t i = 0; i < 4; i++)
                    items[i] = item_of(l[i], i == (who + 1) % 4 ? "unknown" : "k",
                                       i == who ? costs[c] : 2, NOW + 1);
                struct picture before = look_at(table);
                struct weir_decision d = take_all(items, 4);
                assert_fields(d, (allowed, false), (item, who),
                              (reason, costs[c] < 0    ? WEIR_BAD_ASK
                                       : costs[c] > 10 ? WEIR_TOO_BIG
                                                       : WEIR_LIMITED),
                              (wait, 0));
                if (c > 0)
                    assert_int_equal(d.retry, WEIR_NEVER);
                assert_unchanged(&before);
            }
            assert_int_equal(keys_of(table), 4);
        }
}

TEST(test_the_first_that_refused_is_named_and_the_longest_retry_told)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = make_table(narrow);
        struct weir_limiter *a = limiter_of(table, "a", "gcra 5/5s"),
                            *b = limiter_of(table, "b", "gcra 5/50s");
        struct weir_limiter *c = limiter_of(table, "c", "gcra 5/20s"),
                            *free_one = limiter_of(table, "free", "gcra 500/1s");
        assert_true(take(a, "k", 5, NOW).allowed && take(b, "k", 5, NOW).allowed &&
                    take(c, "k", 5, NOW).allowed);
        struct weir_item items[] = { item_of(free_one, "k", 1, NOW), item_of(a, "k", 1, NOW),
                                     item_of(b, "k", 1, NOW), item_of(c, "k", 2, NOW) };
        struct weir_decision d = take_all(items, 4);
        assert_fields(d, (allowed, false), (item, 1), (limit, 5), (remaining, 0));
        assert_int_equal(d.retry, 10 * S); /* of b, the slowest */
        assert_false(take_all_at(items, 4, NOW + 10 * S - 1).allowed);
        d = take_all_at(items, 4, NOW + 10 * S);
        assert_true(d.allowed);
        assert_int_equal(d.item, 2); /* the tightest: b has nothing left */
        assert_fields(d, (remaining, 0), (retry, 0));
    }
}

/* limit, remaining and reset are of the item that is named, granted and refused. */
TEST(test_L10_the_reset_is_of_the_item_that_is_named)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = make_table(narrow);
        struct weir_limiter *hour = limiter_of(table, "hour", "gcra 3600/1h"),
                            *second = limiter_of(table, "second", "gcra 2/1s");
        struct weir_item items[] = { item_of(hour, "k", 60, NOW), item_of(second, "k", 1, NOW) };

        struct weir_decision d = take_all(items, 2);
        assert_fields(d, (allowed, true), (item, 1), (limit, 2), (reset, S / 2));
        take_all(items, 2);
        d = take_all(items, 2);
        assert_fields(d, (allowed, false), (item, 1), (retry, S / 2), (reset, S));
    }
}

TEST(test_an_item_too_big_is_never)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = make_table(narrow);
        struct weir_limiter *a = limiter_of(table, "a", "gcra 5/5s"),
                            *b = limiter_of(table, "b", "sliding-log 5/5s");
        struct weir_item items[] = { item_of(a, "k", 1, NOW), item_of(b, "k", 6, NOW) };
        items[0].ask.wait_max = items[1].ask.wait_max = WEIR_FOREVER;
        struct weir_decision d = take_all(items, 2);
        assert_fields(d, (allowed, false), (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER), (item, 1));
        assert_int_equal(left(a, "k", NOW), 5);
        assert_int_equal(keys_of(table), 0);
    }
}

/* The reason is that of the item that the decision names. */
TEST(test_never_is_told_of_the_item_that_can_never_pass)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = make_table(narrow);
        struct weir_limiter *a = limiter_of(table, "a", "gcra 5/5s"),
                            *b = limiter_of(table, "b", "gcra 7/7s"),
                            *c = limiter_of(table, "c", "sliding-log 7/7s");
        for (struct weir_limiter **big = (struct weir_limiter *[]){ b, c, NULL }; *big; big++) {
            struct weir_item items[] = { item_of(a, "k", 5, NOW), item_of(*big, "k", 8, NOW) };
            take_all(items, 1);
            struct weir_decision d = take_all(items, 2);
            assert_fields(d, (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER), (item, 1), (limit, 7));
        }
    }
}

/* ---------------------------------------------------------- duplicates ---- */

static const struct {
    bool narrow;
    const char *limit;
} kinds[] = { { false, "gcra 10/10s" },
              { true, "gcra 10/10s" },
              { false, "fixed-window 10/10s" },
              { false, "sliding-log 10/10s" },
              { true, "sliding-window 10/10s" } };

TEST(test_one_key_several_times_costs_the_sum)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        OWN(weir_table) *table = make_table(kinds[k].narrow);
        struct weir_limiter *l = limiter_of(table, "l", kinds[k].limit),
                            *other = limiter_of(table, "other", "gcra 100/1s");
        struct weir_item items[] = { item_of(l, "k", 2, NOW), item_of(other, "k", 1, NOW),
                                     item_of(l, "k", 3, NOW), item_of(l, "x", 1, NOW),
                                     item_of(l, "k", 1, NOW) };
        struct weir_decision d = take_all(items, 5);
        assert_fields(d, (allowed, true), (remaining, 4));
        assert_int_equal(left(l, "k", NOW), 4);
        assert_int_equal(left(l, "x", NOW), 9);
        assert_int_equal(left(other, "k", NOW), 99);
        struct picture before = look_at(table);
        d = take_all(items, 5); /* each alone would fit, together they do not */
        assert_fields(d, (allowed, false), (reason, WEIR_LIMITED));
        assert_unchanged(&before);
        items[0].ask.cost = 0;
        assert_true(take_all(items, 5).allowed);
        assert_int_equal(left(l, "k", NOW), 0);
        items[2].ask.cost = items[4].ask.cost = 0;
        assert_true(take_all(items, 5).allowed);
    }
}

TEST(test_one_key_several_times_beyond_the_limit_is_never)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        OWN(weir_table) *table = make_table(kinds[k].narrow);
        struct weir_limiter *l = limiter_of(table, "l", kinds[k].limit);
        struct weir_item items[] = { item_of(l, "k", 6, NOW), item_of(l, "k", 6, NOW) };
        struct weir_decision d = take_all(items, 2);
        assert_false(d.allowed);
        if (d.retry != WEIR_NEVER) /* promise 3: exact, or never */
            fail_msg("%s: 6 and 6 of 10 are to pass after %d ms; then: %s", kinds[k].limit,
                     (int)(d.retry / WEIR_MILLISECOND),
                     take_all_at(items, 2, NOW + d.retry).allowed ? "they do" : "they do not");
        assert_int_equal(d.reason, WEIR_TOO_BIG);
    }
}

TEST(test_the_retry_of_one_key_several_times_is_exact)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (int64_t used = 0; used <= 10; used++) {
            OWN(weir_table) *table = make_table(kinds[k].narrow);
            struct weir_limiter *l = limiter_of(table, "l", kinds[k].limit);
            struct weir_item items[] = { item_of(l, "k", 3, NOW), item_of(l, "k", 5, NOW),
                                         item_of(l, "k", 1, NOW) };
            for (int64_t i = 0; i < used; i++)
                assert_true(take(l, "k", 1, NOW - S + i * S / 16).allowed);
            weir_time now = NOW;
            struct weir_decision d = take_all_at(items, 3, now);
            if (!d.allowed) {
                if (take_all_at(items, 3, now + d.retry - 1).allowed)
                    fail_msg("%s: %d used, passes before its retry of %d ms", kinds[k].limit,
                             (int)used, (int)(d.retry / WEIR_MILLISECOND));
                now += d.retry;
                if (!take_all_at(items, 3, now).allowed)
                    fail_msg("%s: %d used, refused again after its retry of %d ms", kinds[k].limit,
                             (int)used, (int)(d.retry / WEIR_MILLISECOND));
            }
        }
}

/* ---------------------------------------------------------------- sizes ---- */

TEST(test_no_items_are_granted)
{
    struct weir_decision d = take_all(NULL, 0);

    assert_fields(d, (allowed, true), (reason, WEIR_GRANTED));
    assert_int_equal(d.wait + d.retry + d.reset, 0);
}

TEST(test_one_item_is_a_take)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        struct weir_table *one = make_table(kinds[k].narrow), *two = make_table(kinds[k].narrow);
        struct weir_limiter *a = limiter_of(one, "l", kinds[k].limit),
                            *b = limiter_of(two, "l", kinds[k].limit);
        for (int64_t i = 0; i < 40; i++) {
            struct weir_item item = item_of(a, "k", i % 5 - (i % 7 == 0), NOW + i * S / 3);
            struct weir_decision all = take_all(&item, 1),
                                 single = take(b, "k", item.ask.cost, item.ask.now);
            assert_same_decision(&all, &single);
        }
        weir_table_destroy(one);
        weir_table_destroy(two);
    }
}

TEST(test_as_many_items_as_there_may_be)
{
    static const char *const limits[] = { "gcra 10/10s", "sliding-log 10/10s",
                                          "token-bucket 10/10s" };

    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = make_table(narrow);
        struct weir_limiter *l[3];
        struct weir_item items[WEIR_ALL_MAX];
        char keys[WEIR_ALL_MAX][8];
        for (size_t i = 0; i < 3; i++)
            l[i] = limiter_of(table, limits[i], limits[i]);
        for (size_t i = 0; i < WEIR_ALL_MAX; i++) {
            snprintf(keys[i], sizeof(keys[i]), "%d", (int)i);
            items[i] = item_of(l[i % 3], keys[i], 4, NOW);
        }
        assert_fields(take_all(items, WEIR_ALL_MAX), (allowed, true), (allowed, true));
        struct picture before = look_at(table);
        struct weir_decision d = take_all(items, WEIR_ALL_MAX);
        assert_fields(d, (allowed, false), (item, 0));
        assert_unchanged(&before);
        for (size_t i = 0; i < WEIR_ALL_MAX; i++)
            assert_int_equal(left(l[i % 3], keys[i], NOW), 2);
        assert_int_equal(keys_of(table), WEIR_ALL_MAX);
        for (size_t i = 0; i < WEIR_ALL_MAX - 1; i++)
            items[i].ask.cost = 1;
        d = take_all(items, WEIR_ALL_MAX);
        assert_fields(d, (allowed, false), (item, WEIR_ALL_MAX - 1));
        for (size_t i = 0; i < WEIR_ALL_MAX; i++)
            assert_int_equal(left(l[i % 3], keys[i], NOW), 2);
    }
}

/* In a full table new keys drive out others', never each other. */
TEST(test_items_do_not_drive_each_other_out)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .keys = 1, .narrow = narrow });
        struct weir_limiter *l = limiter_of(table, "l", "gcra 10/1h");
        char keys[32][16];
        for (int i = 0; i < 3000; i++) {
            char key[16];
            snprintf(key, sizeof(key), "old %d", i);
            take(l, key, 1, NOW + i); /* ever later: the idlest is old */
        }
        struct weir_item items[32];
        for (size_t i = 0; i < 32; i++) {
            snprintf(keys[i], sizeof(keys[i]), "new %d", (int)i);
            items[i] = item_of(l, keys[i], 3, NOW - S); /* each is idler than all that are there */
        }
        assert_true(take_all(items, 32).allowed);
        for (size_t i = 0; i < 32; i++)
            assert_int_equal(left(l, keys[i], NOW - S), 7);
    }
}

/* --------------------------------------------- what has nothing to remember ---- */

TEST(test_items_that_cost_nothing_take_no_slot)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        OWN(weir_table) *table = make_table(kinds[k].narrow);
        struct weir_limiter *l = limiter_of(table, "l", kinds[k].limit);
        struct weir_item items[] = { item_of(l, "a", 0, NOW), item_of(l, "b", 1, NOW),
                                     item_of(l, "c", 0, NOW) };
        assert_true(take_all(items, 3).allowed);
        assert_int_equal(left(l, "b", NOW), 9);
        if (keys_of(table) != 1)
            fail_msg("%s: %d keys for one that has something to remember", kinds[k].limit,
                     (int)keys_of(table));
    }
}

TEST(test_unknown_keys_that_are_refused_together_take_no_slot)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        OWN(weir_table) *table = make_table(kinds[k].narrow);
        struct weir_limiter *l = limiter_of(table, "l", kinds[k].limit);
        struct weir_item items[] = { item_of(l, "a", 1, NOW), item_of(l, "b", 6, NOW),
                                     item_of(l, "b", 6, NOW) };
        struct picture before = look_at(table);
        assert_false(take_all(items, 3).allowed);
        if (keys_of(table) != 0)
            fail_msg("%s: %d keys for a refusal", kinds[k].limit, (int)keys_of(table));
        assert_unchanged(&before);
    }
}

/* ------------------------------------------------------------ wait and time ---- */

TEST(test_the_longest_wait_is_told)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = make_table(narrow);
        struct weir_limiter *a = limiter_of(table, "a", "gcra 5/5s"),
                            *b = limiter_of(table, "b", "gcra 5/20s");
        struct weir_limiter *c = limiter_of(table, "c", "sliding-log 1/3s");
        assert_true(take(a, "k", 5, NOW).allowed && take(b, "k", 5, NOW).allowed &&
                    take(c, "k", 1, NOW).allowed);
        struct weir_item items[] = { item_of(a, "k", 1, NOW), item_of(b, "k", 1, NOW),
                                     item_of(c, "k", 1, NOW) };
        for (size_t i = 0; i < 3; i++)
            items[i].ask.wait_max = 4 * S - 1; /* one nanosecond too short for b */
        struct picture before = look_at(table);
        struct weir_decision d = take_all(items, 3);
        assert_fields(d, (allowed, false), (item, 1), (retry, 1), (wait, 0));
        assert_unchanged(&before);
        for (size_t i = 0; i < 3; i++)
            items[i].ask.wait_max = 4 * S;
        d = take_all(items, 3);
        assert_fields(d, (allowed, true), (wait, 4 * S));
        assert_int_equal(peek(a, "k", 1, NOW).retry, 2 * S); /* and all three were charged */
        assert_int_equal(peek(b, "k", 1, NOW).retry, 8 * S);
        assert_int_equal(peek(c, "k", 1, NOW).retry, 6 * S);
    }
}

TEST(test_a_narrow_item_waits_at_most_a_minute)
{
    OWN(weir_table) *table = make_table(true);
    struct weir_limiter *a = limiter_of(table, "a", "gcra 1/100s"),
                        *b = limiter_of(table, "b", "gcra 500/1s");
    struct weir_item items[] = { item_of(a, "k", 1, NOW), item_of(b, "k", 1, NOW) };
    items[0].ask.wait_max = items[1].ask.wait_max = WEIR_FOREVER;
    assert_true(take_all(items, 2).allowed);
    struct weir_decision d = take_all(items, 2);
    assert_fields(d, (allowed, false), (retry, 40 * S));
    assert_int_equal(left(b, "k", NOW), 499);
    d = take_all_at(items, 2, NOW + 40 * S);
    assert_fields(d, (allowed, true), (wait, 60 * S));
}

TEST(test_a_time_before_zero_counts_as_zero)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        OWN(weir_table) *table = make_table(kinds[k].narrow);
        struct weir_limiter *a = limiter_of(table, "a", kinds[k].limit),
                            *b = limiter_of(table, "b", kinds[k].limit);
        struct weir_item items[] = { item_of(a, "k", 4, INT64_MIN), item_of(b, "k", 5, -S) };
        assert_true(take_all(items, 2).allowed);
        assert_int_equal(left(a, "k", 0), 6);
        assert_int_equal(left(b, "k", 0), 5);
        assert_int_equal(take_all_at(items, 2, -77).remaining, 0);
    }
}

/* weir.h: a clock that steps back is followed, and neither gives anything away nor locks a key
 * out. */
TEST(test_items_follow_a_clock_that_steps_back)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        OWN(weir_table) *table = make_table(kinds[k].narrow);
        struct weir_limiter *a = limiter_of(table, "a", kinds[k].limit),
                            *b = limiter_of(table, "b", "gcra 500/1s");
        struct weir_item items[] = { item_of(a, "k", 10, NOW), item_of(b, "k", 1, NOW) };
        weir_time then = NOW - 900 * S;
        assert_true(take_all(items, 2).allowed);
        items[0].ask.cost = 1;
        struct weir_decision d = take_all_at(items, 2, then);
        assert_false(d.allowed); /* nothing was given away */
        assert_true(d.retry <= 12 * S);
        if (!take_all_at(items, 2, then + d.retry).allowed)
            fail_msg("%s, %s: locked out: refused at the time it was told to come back",
                     kinds[k].limit, kinds[k].narrow ? "narrow" : "wide");
    }
}

TEST(test_a_changed_limit_counts_in_all)
{
    OWN(weir_table) *table = make_table(false);
    struct weir_limiter *a = limiter_of(table, "a", "gcra 10/100s"),
                        *b = limiter_of(table, "b", "sliding-log 10/100s");
    assert_true(take(a, "k", 4, NOW).allowed && take(b, "k", 4, NOW).allowed);
    change(
        a, "gcra 20/100s",
        NOW); /* the small state is still that of the old limit, the large one was brought over */
    change(b, "sliding-log 20/100s", NOW);
    struct weir_item items[] = { item_of(a, "k", 16, NOW), item_of(b, "k", 16, NOW) };
    struct weir_decision d = take_all(items, 2);
    assert_fields(d, (allowed, true), (remaining, 0), (limit, 20));
    assert_false(take(a, "k", 1, NOW).allowed);
    assert_false(take(b, "k", 1, NOW).allowed);
}

TEST(test_the_least_patient_item_of_a_key_decides)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/1s burst 2"),
                        *other = limiter_of(table, "o", "gcra 9/1s");
    struct weir_item items[] = { { limiter, ask_of("k", 1, NOW) },
                                 { other, ask_of("k", 1, NOW) },
                                 { limiter, ask_of("k", 1, NOW) } };
    struct weir_decision d;
    assert_true(take(limiter, "k", 1, NOW).allowed);
    items[0].ask.wait_max = 10 * S;
    assert_false(weir_take_all(
        items, 3, &d)); /* two would have to wait a second, and the third item cannot */
    assert_int_equal(left(other, "k", NOW), 9);
    items[2].ask.wait_max = S;
    assert_true(weir_take_all(items, 3, &d));
    assert_int_equal(d.wait, S);
}

TEST(test_L10_each_item_has_its_own_wait)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *fast = limiter_of(table, "f", "gcra 10/1s burst 1"),
                        *slow = limiter_of(table, "s", "gcra 1/1s burst 1");
    struct weir_item items[] = { { fast, ask_of("k", 1, NOW) }, { slow, ask_of("k", 1, NOW) } };
    struct weir_decision d, each[2];
    items[0].ask.wait_max = items[1].ask.wait_max = 2 * S;
    assert_true(weir_take_all_each(items, 2, &d, each));
    assert_true(d.wait == 0 && each[0].wait == 0 && each[1].wait == 0);
    assert_true(weir_take_all_each(items, 2, &d, each));
    assert_true(d.wait == S && each[0].wait == S / 10 && each[1].wait == S);
    items[1].ask.wait_max = S;
    assert_false(weir_take_all_each(items, 2, &d, each));
    assert_true(each[0].allowed && !each[1].allowed && d.item == 1);
    assert_true(weir_take_all_each(items, 1, &d, each));
    assert_int_equal(each[0].wait, S / 5); /* the refusal has taken nothing */
}

/* A change of a large state is made in another block, so several of them at once need twice the
 * room.  Without it nothing passes that is not counted. */
static void assert_limited(bool narrow, size_t windows, int64_t chunks)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){
        .keys = 200, .slab = chunks << 16, .guards = 1, .narrow = narrow });
    struct weir_item items[6];
    int passed = 0, no_room = 0;

    for (size_t i = 0; i < windows; i++)
        items[i] = item_of(
            limiter_of(table, (char[]){ (char)('a' + i), 0 }, "sliding-window 10/30d buckets=4000"),
            "k", 1, NOW);
    for (int i = 0; i < 20; i++) {
        struct weir_decision d = take_all_at(items, windows, NOW + i * S);
        passed += d.allowed;
        no_room += d.reason == WEIR_NO_ROOM;
        assert_true(d.reason != WEIR_NO_ROOM || d.retry > 0);
    }
    assert_true(no_room == 0 ? passed == 10 : passed <= 1 && passed + no_room == 20);
    for (size_t i = 0; i < windows; i++)
        assert_int_equal(left(items[i].limiter, "k", NOW + 20 * S), 10 - passed);
    if (no_room > 0)
        assert_true(take_all_at(items, 1, NOW + 20 * S).allowed); /* one alone has room */
}

/* A refusal has made copies too: their blocks are others' again, but for two for the hand. */
TEST(test_L10_a_refusal_keeps_no_blocks_from_others)
{
    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .keys = 200, .slab = 2 << 16, .guards = 1 });
    struct weir_item items[4];

    for (size_t i = 0; i < COUNT_OF(items); i++)
        items[i] = item_of(
            limiter_of(table, (char[]){ (char)('a' + i), 0 }, "sliding-window 1/30d buckets=4000"),
            "k", 1, NOW);
    assert_true(take_all_at(items, COUNT_OF(items), NOW).allowed);
    assert_int_equal(take_all_at(items, COUNT_OF(items), NOW + S).reason, WEIR_LIMITED);
    assert_int_equal(stats_of(table, -1).slab_used, (COUNT_OF(items) + 2) << 14);
}

/* The hand may keep the only block for a copy in a place that this ask has no use for. */
TEST(test_L10_a_hand_uses_any_block_that_it_keeps)
{
    for (int together = 0; together < 2; together++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .keys = 200, .slab = 3 << 16, .guards = 1 });
        struct weir_limiter *window = limiter_of(table, "w", "sliding-window 10/30d buckets=9000"),
                            *other = limiter_of(table, "o", "sliding-window 10/30d"),
                            *small = limiter_of(table, "s", "gcra 100/30d");
        struct weir_item both[] = { item_of(other, "k", 1, NOW), item_of(window, "k", 1, NOW) },
                         one[] = { item_of(window, "k", 1, NOW), item_of(small, "k", 1, NOW) };
        int passed = 0;
        for (int i = 0; i < 3; i++)
            passed += take_all_at(both, 2, NOW + i * S).allowed;
        for (int i = 3; i < 20; i++)
            passed += together ? take_all_at(one, 2, NOW + i * S).allowed
                               : take(window, "k", 1, NOW + i * S).allowed;
        assert_int_equal(passed, 10);
    }
}

TEST(test_L10_several_large_states_without_room_for_copies_do_not_pass)
{
    for (int64_t chunks = 1; chunks <= 8; chunks++)
        for (size_t windows = 2; windows <= 6; windows++) {
            assert_limited(false, windows, chunks);
            assert_limited(true, windows, chunks);
        }
}
