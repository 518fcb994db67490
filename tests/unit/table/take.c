/* take.c -- deciding in a table: peek, give, waiting on an injected clock, many at once, and what
 * narrow slots can hold. */
#include "unit/test.h"

#include "table/hand.h"
#include "unit/fixture.h"
#include "weir-queue.h"

/* Limits of every algorithm; the first ones fit narrow slots or are large, so that any table takes
 * them. */
static const char *const limits[] = {
    "gcra 10/10s",
    "token-bucket 10/10s burst 7",
    "leaky-bucket 10/10s burst 8",
    "sliding-log 10/10s",
    "sliding-window 10/10s",
    "sliding-window 10/10s edge=loose",

    "leaky-bucket 10/10s queue 9",
    "fixed-window 10/10s",
    "fixed-window 10/10s align=first",

    "gcra 7/3s",
    "token-bucket 11/7s",
    "smooth 10/10s",
    "warm-up 10/10s",
};

#define ANY_TABLE 6
#define PLAIN     9 /* whose units come back at once when given back */
#define MANY      COUNT_OF(limits)

static struct weir_limiter *nth_limiter(struct weir_table *table, size_t i)
{
    char name[] = "limit a";

    name[sizeof(name) - 2] = (char)('a' + i);
    return limiter_of(table, name, limits[i]);
}

static struct weir_table *small_slab_table(bool narrow)
{
    return table_with(&(struct weir_table_options){
        .keys = 1000, .slab = 4 << 20, .guards = 1, .narrow = narrow });
}

/* All of the region that decisions may change: the slots and the slab. */
static unsigned char *region_of(const struct weir_table *table, size_t *size)
{
    *size = table->bytes - table->names.rooms_at;
    return (unsigned char *)table->header + table->names.rooms_at;
}

static unsigned char copy[16 << 20]; /* a sanitizer would keep each that is freed */

static void copy_region(const struct weir_table *table)
{
    size_t size;
    unsigned char *region = region_of(table, &size);

    assert_true(size <= sizeof(copy));
    memcpy(copy, region, size);
}

static void assert_region(const struct weir_table *table)
{
    size_t size;
    unsigned char *region = region_of(table, &size);

    assert_int_equal(memcmp(copy, region, size), 0);
}

/* --------------------------------------------------------------------- peek ---- */

TEST(test_peek_says_what_take_would_and_changes_nothing)
{
    static const char *const keys[] = { "a", "b", "c" };
    uint64_t seed = 1;

    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < (narrow ? ANY_TABLE : MANY); i++) {
            OWN(weir_table) *table = table_with(&(struct weir_table_options){
                .keys = 1, .slab = 1 << 20, .guards = 1, .narrow = narrow });
            struct weir_limiter *limiter = nth_limiter(table, i);
            weir_time now = NOW;
            for (int n = 0; n < 100; n++) {
                struct weir_ask ask =
                    ask_of(keys[random64(&seed) % 3], (int64_t)(random64(&seed) % 6), now);
                struct weir_decision seen, done;
                ask.wait_max = (weir_time)(random64(&seed) % 3) * S;
                now += (weir_time)(random64(&seed) % (uint64_t)S);
                copy_region(table);
                weir_peek(limiter, &ask, &seen);
                assert_region(table);
                weir_take(limiter, &ask, &done);
                assert_same_decision(&seen, &done);
            }
        }
}

TEST(test_a_refusal_changes_nothing)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < (narrow ? ANY_TABLE : MANY); i++) {
            OWN(weir_table) *table = table_with(&(struct weir_table_options){
                .keys = 1, .slab = 1 << 20, .guards = 1, .narrow = narrow });
            struct weir_limiter *limiter = nth_limiter(table, i);
            struct weir_decision d = take(limiter, "k", 7, NOW);
            assert_true(d.allowed);
            copy_region(table);
            assert_int_equal(take(limiter, "k", -1, NOW).reason, WEIR_BAD_ASK);
            assert_int_equal(take(limiter, "k", INT64_MIN, NOW + S).retry, WEIR_NEVER);
            if (strncmp(limits[i], "smooth", 6) != 0 &&
                strncmp(limits[i], "warm-up", 7) != 0) { /* these lend to a key that owes nothing */
                assert_int_equal(take(limiter, "k", 100, NOW).reason, WEIR_TOO_BIG);
                assert_int_equal(take(limiter, "k", 7, NOW).reason, WEIR_LIMITED);
            }
            assert_true(take(limiter, "k", 0, NOW + 20 * S).allowed);
            assert_region(table);
        }
}

/* --------------------------------------------------------------------- give ---- */

TEST(test_give_gives_back_and_never_above_full)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < (narrow ? ANY_TABLE : PLAIN); i++) {
            OWN(weir_table) *table = small_slab_table(narrow);
            struct weir_limiter *limiter = nth_limiter(table, i);
            int64_t most = peek(limiter, "k", 0, NOW).limit;
            assert_true(most > 6);
            assert_int_equal(take(limiter, "k", 5, NOW).remaining, most - 5);
            give(limiter, "k", 2, NOW);
            assert_int_equal(left(limiter, "k", NOW), most - 3);
            give(limiter, "k", 0, NOW); /* nothing, and less than nothing */
            give(limiter, "k", -2, NOW);
            give(limiter, "k", INT64_MIN, NOW);
            assert_int_equal(left(limiter, "k", NOW), most - 3);
            give(limiter, "other", 2, NOW); /* a key that has taken nothing */
            assert_int_equal(left(limiter, "other", NOW), most);
            give(limiter, "k", INT64_MAX, NOW);
            assert_int_equal(left(limiter, "k", NOW), most);
            assert_int_equal(peek(limiter, "k", 1, NOW).wait, 0);
            assert_true(take(limiter, "k", most, NOW).allowed);
            assert_false(take(limiter, "k", 1, NOW).allowed);
        }
}

/* --------------------------------------------------------------------- wait ---- */

struct fake {
    weir_time now, slept;
    int looks, sleeps;
};

static weir_time fake_now(void *context)
{
    struct fake *f = context;

    f->looks++;
    return f->now;
}

static void fake_sleep(void *context, weir_time span)
{
    struct fake *f = context;

    f->sleeps++;
    f->slept += span;
    f->now += span;
}

TEST(test_wait_sleeps_just_as_long_as_it_must)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (int large = 0; large < 2; large++) {
            OWN(weir_table) *table = small_slab_table(narrow);
            struct weir_limiter *limiter =
                limiter_of(table, "l", large ? "sliding-log 1/7s" : "gcra 1/7s");
            struct fake f = { .now = NOW };
            struct weir_clock clock = { fake_now, fake_sleep, &f };
            struct weir_ask ask = ask_of("k", 1, 5); /* its own time is ignored */
            struct weir_decision d;
            ask.wait_max = 7 * S;
            assert_true(weir_wait(limiter, &ask, &clock, &d));
            assert_int_equal(f.sleeps, 0);
            f.now += 2 * S;
            assert_true(weir_wait(limiter, &ask, &clock, &d));
            assert_int_equal(d.wait, 5 * S);
            assert_fields(f, (sleeps, 1), (slept, 5 * S));
            assert_true(weir_wait(limiter, &ask, &clock, &d)); /* just long enough */
            assert_int_equal(f.slept, 12 * S);
            ask.wait_max = 7 * S - 1; /* and one nanosecond too short: at once, and for nothing */
            assert_false(weir_wait(limiter, &ask, &clock, &d));
            assert_int_equal(d.retry, 1);
            assert_fields(f, (sleeps, 2), (looks, 4));
            f.now += 1;
            assert_true(weir_wait(limiter, &ask, &clock, &d));
            assert_int_equal(f.now, NOW + 21 * S);
        }
}

TEST(test_wait_never_waits_for_what_never_comes)
{
    OWN(weir_table) *table = small_slab_table(false);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 5/7s");
    struct fake f = { .now = NOW };
    struct weir_clock clock = { fake_now, fake_sleep, &f };
    struct weir_ask ask = ask_of("k", 6, NOW);
    struct weir_decision d;
    ask.wait_max = WEIR_FOREVER;
    assert_false(weir_wait(limiter, &ask, &clock, &d));
    assert_int_equal(d.reason, WEIR_TOO_BIG);
    ask.cost = -1;
    assert_false(weir_wait(limiter, &ask, &clock, &d));
    assert_int_equal(d.reason, WEIR_BAD_ASK);
    assert_int_equal(f.sleeps, 0);
}

/* --------------------------------------------------------------------- many ---- */

TEST(test_take_many_is_as_one_by_one)
{
    static const size_t sizes[] = { 0, 1, 2, 15, 16, 17, 31, 32, 33, 100 };
    static const char *const keys[] = { "a", "bb", "", "a longer key, longer than sixteen bytes",
                                        "e" };
    struct weir_table *tables[4]; /* narrow and wide, and each again for the other way */
    struct weir_limiter *limiters[2][ANY_TABLE + MANY];
    uint64_t seed = 7;
    weir_time now = NOW;
    int64_t granted = 0, refused = 0;

    for (int t = 0; t < 4; t++)
        tables[t] = small_slab_table(t % 2);
    for (size_t way = 0; way < 2; way++)
        for (size_t i = 0; i < ANY_TABLE + MANY; i++)
            limiters[way][i] = i < ANY_TABLE ? nth_limiter(tables[2 * way + 1], i)
                                             : nth_limiter(tables[2 * way], i - ANY_TABLE);
    for (int round = 0; round < 300; round++) {
        struct weir_item items[2][100];
        struct weir_decision many[101], one;
        size_t n = sizes[(size_t)round % COUNT_OF(sizes)], wanted = 0;
        for (size_t i = 0; i < n; i++) {
            size_t which = random64(&seed) % (ANY_TABLE + MANY);
            struct weir_ask ask = { .key = key_of(keys[random64(&seed) % COUNT_OF(keys)]),
                                    .cost = (int64_t)(random64(&seed) % 5) -
                                            (random64(&seed) % 20 == 0),
                                    .wait_max = (weir_time)(random64(&seed) % 3) * S,
                                    .now = now };
            items[0][i] = (struct weir_item){ limiters[0][which], ask };
            items[1][i] = (struct weir_item){ limiters[1][which], ask };
            now += (weir_time)(random64(&seed) % (uint64_t)(S / 50));
        }
        memset(many, 0x5a, sizeof(many));
        size_t got = weir_take_many(items[0], n, many);
        for (size_t i = 0; i < n; i++) {
            wanted += weir_take(items[1][i].limiter, &items[1][i].ask, &one);
            assert_same_decision(&many[i], &one);
        }
        assert_int_equal(got, wanted);
        assert_int_equal(many[n].reason, 0x5a); /* no more than n were written */
        granted += (int64_t)got;
        refused += (int64_t)(n - got);
    }
    assert_true(granted > 1000 && refused > 1000); /* both were put to the test */
    assert_int_equal(weir_take_many(NULL, 0, NULL), 0);
    for (int t = 0; t < 4; t++)
        weir_table_destroy(tables[t]);
}

/* Several asks on one key in one call see each other, in order. */
TEST(test_take_many_on_one_key_counts_each)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = small_slab_table(narrow);
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 20/100s");
        struct weir_item items[40];
        struct weir_decision d[40];
        for (size_t i = 0; i < 40; i++)
            items[i] = (struct weir_item){ limiter, ask_of("k", 1, NOW) };
        assert_int_equal(weir_take_many(items, 40, d), 20);
        for (int64_t i = 0; i < 40; i++) {
            assert_fields(d[i], (allowed, i < 20), (remaining, i < 20 ? 19 - i : 0));
        }
    }
}

/* ------------------------------------------------------------- narrow slots ---- */

TEST(test_a_clock_that_steps_back_neither_locks_out_nor_gives_away)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = small_slab_table(narrow);
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s");
        weir_time then = NOW - 900 * S;
        assert_true(take(limiter, "k", 10, NOW).allowed);
        assert_int_equal(left(limiter, "k", then), 0);
        struct weir_decision d = take(limiter, "k", 1, then);
        assert_false(d.allowed);
        assert_int_equal(d.retry, S); /* a spent key's, not a quarter of an hour's */
        assert_false(take(limiter, "k", 1, then + S - 1).allowed);
        assert_true(take(limiter, "k", 1, then + S).allowed); /* and time goes on from here */
        assert_false(take(limiter, "k", 1, then + S).allowed);
        assert_int_equal(left(limiter, "k", then + 5 * S), 4);
        assert_int_equal(left(limiter, "k", then + 11 * S), 10);
    }
}

TEST(test_a_narrow_key_waits_at_most_a_minute)
{
    OWN(weir_table) *table = small_slab_table(true);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/100s");
    struct weir_ask ask = ask_of("k", 1, NOW);
    struct weir_decision d;
    ask.wait_max = WEIR_FOREVER;
    assert_true(weir_take(limiter, &ask, &d));
    assert_false(weir_take(limiter, &ask, &d));
    assert_int_equal(d.reason, WEIR_LIMITED);
    assert_int_equal(d.retry, 40 * S); /* then the same ask passes, with a wait of a minute */
    ask.now = NOW + 40 * S - 1;
    assert_false(weir_take(limiter, &ask, &d));
    ask.now = NOW + 40 * S;
    assert_true(weir_take(limiter, &ask, &d));
    assert_int_equal(d.wait, 60 * S);
    assert_false(weir_take(limiter, &ask, &d)); /* the debt that left is remembered in full */
    assert_int_equal(d.retry, 100 * S);
}

/* weir.h: a point before 0 counts as 0. */
TEST(test_a_time_before_zero_counts_as_zero)
{
    static const weir_time times[] = { 0, -1, -5 * S, -1000 * S, INT64_MIN + 1, INT64_MIN };

    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < COUNT_OF(times); i++) {
            OWN(weir_table) *table = small_slab_table(narrow);
            struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/10s"),
                                *large = limiter_of(table, "large", "sliding-log 10/10s");
            assert_int_equal(take(limiter, "k", 9, times[i]).remaining, 1);
            assert_int_equal(take(limiter, "k", 3, times[i]).retry, 2 * S);
            assert_int_equal(left(limiter, "k", times[i]), 1);
            assert_int_equal(take(limiter, "k", 1, times[i]).reset, 10 * S);
            give(limiter, "k", 1, times[i]);
            assert_int_equal(left(limiter, "k", 0), 1);
            assert_int_equal(take(large, "k", 9, times[i]).remaining, 1);
            assert_int_equal(take(large, "k", 3, times[i]).retry, 10 * S);
        }
}

TEST(test_the_end_of_time_is_a_time)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t i = 0; i < (narrow ? ANY_TABLE : MANY); i++) {
            OWN(weir_table) *table = small_slab_table(narrow);
            struct weir_limiter *limiter = nth_limiter(table, i);
            for (int n = 0; n < 30; n++) {
                struct weir_decision d = take(limiter, "k", 1, INT64_MAX - 40 + n);
                assert_true(d.remaining >= 0 && d.remaining <= d.limit);
                assert_true(d.retry >= 0 && d.reset >= 0);
                give(limiter, "k", 1, INT64_MAX - 40 + n);
            }
            assert_int_equal(left(limiter, "k", NOW) <= peek(limiter, "k", 0, NOW).limit,
                             1); /* and back */
        }
}

/* --------------------------------------------------------------------- keys ---- */

TEST(test_keys_of_no_bytes_and_of_very_many)
{
    enum { LONG = 100 << 10 };
    FINALLY(memory_drop) unsigned char *bytes = malloc(LONG);
    assert_non_null(bytes);
    memset(bytes, 'k', LONG);
    for (int narrow = 0; narrow < 2; narrow++)
        for (int large = 0; large < 2; large++) {
            OWN(weir_table) *table = small_slab_table(narrow);
            struct weir_limiter *limiter =
                limiter_of(table, "l", large ? "sliding-log 2/100s" : "gcra 2/100s");
            struct weir_ask ask = { .key = { NULL, 0 }, .cost = 1, .now = NOW };
            struct weir_decision d;
            assert_true(weir_take(limiter, &ask, &d));
            ask.key.bytes = bytes; /* where no bytes lie does not matter */
            assert_true(weir_take(limiter, &ask, &d));
            assert_int_equal(d.remaining, 0);
            assert_false(weir_take(limiter, &ask, &d));
            ask.key.len = LONG;
            assert_true(weir_take(limiter, &ask, &d));
            assert_int_equal(d.remaining, 1);
            for (size_t at = 0; at < LONG;
                 at += LONG / 8 - 1) { /* another byte anywhere is another key */
                bytes[at] ^= 1;
                assert_true(weir_peek(limiter, &ask, &d));
                assert_int_equal(d.remaining, 1);
                assert_true(weir_take(limiter, &ask, &d));
                assert_int_equal(d.remaining, 1);
                bytes[at] ^= 1;
            }
            ask.key.len = LONG - 1; /* so is another length */
            assert_true(weir_take(limiter, &ask, &d));
            assert_int_equal(d.remaining, 1);
            ask.key.len = LONG;
            assert_true(weir_take(limiter, &ask, &d));
            assert_int_equal(d.remaining, 0);
        }
}

/* It writes nothing, so a slab that is full does not concern it. */
TEST(test_L13_a_peek_of_a_long_window_needs_no_room)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = small_slab_table(narrow);
        struct weir_limiter *longer = limiter_of(table, "long", "sliding-window 5/1h buckets=1500"),
                            *shorter = limiter_of(table, "short", "sliding-window 5/1h");
        size_t bytes = longer->era->plan.state_size;
        assert_true(take(longer, "k", 5, NOW).allowed);
        assert_true(take(shorter, "k", 5, NOW).allowed); /* the hand has a spare of that size now */
        assert_true(take(shorter, "k2", 5, NOW).allowed);
        while (weir__block_take(&table->keys.slab, bytes) != 0)
            continue;
        assert_int_equal(left(longer, "k", NOW), 0);
        assert_int_equal(left(longer, "new", NOW), 5);
        struct weir_decision new = peek(longer, "new", 2, NOW), same = peek(shorter, "new", 2, NOW);
        assert_int_equal(new.remaining, same.remaining);
        assert_in_range(new.reset, 3600 * S, same.reset);
        assert_false(peek(longer, "k", 1, NOW).allowed);
    }
}

/* Every thread has a hand, and a hand keeps blocks for its next use: those of others, which are not
 * at work, are there for a key that would find none. */
TEST(test_L3_blocks_that_other_hands_keep_are_used_before_a_key_is_let_through)
{
    static const char *const windows[] = { "sliding-window 5/1h",
                                           "sliding-window 5/1h buckets=1500" };

    for (size_t i = 0; i < COUNT_OF(windows); i++) {
        OWN(weir_table) *table = small_slab_table(false);
        struct weir_limiter *limiter = limiter_of(table, "l", windows[i]);
        size_t bytes = limiter->era->plan.state_size;
        struct weir__hand *own = weir__hand_take(table), *other = weir__hand_take(table);
        assert_true(weir__hand_block(&table->keys, other, 0, bytes, false) != 0 &&
                    weir__hand_block(&table->keys, other, 1, bytes, false) != 0);
        weir__hand_give(other);
        weir__hand_give(own);
        while (weir__block_take(&table->keys.slab, bytes) != 0)
            continue;
        int granted = 0;
        for (int n = 0; n < 10; n++)
            granted += take(limiter, "k", 1, NOW + n).allowed;
        assert_int_equal(granted, 5);
        assert_int_equal(stats_of(table, -1).evicted_early, 0);
    }
}

/* A copy of such a state needs a block.  Where none can be had, what the key has used still counts;
 * a grant is not remembered. */
TEST(test_L3_a_spent_key_stays_so_when_no_block_is_left_for_a_copy)
{
    for (int narrow = 0; narrow < 2; narrow++)
        for (int several = 0; several < 2; several++) {
            OWN(weir_table) *table = small_slab_table(narrow);
            struct weir_limiter *limiter =
                                    limiter_of(table, "l", "sliding-window 2/1h buckets=1500"),
                                *small = limiter_of(table, "s", "gcra 9/1h");
            size_t bytes = limiter->era->plan.state_size;
            assert_true(take(limiter, "k", 2, NOW).allowed);
            (void)weir__hands_shed(&table->keys, weir__block_round(bytes));
            while (weir__block_take(&table->keys.slab, bytes) != 0)
                continue;
            struct weir_item items[] = { { small, ask_of("k", 1, NOW + 1) },
                                         { limiter, ask_of("k", 1, NOW + 1) } };
            struct weir_decision d;
            assert_false(weir_take_all(items + 1 - several, (size_t)several + 1, &d));
            assert_fields(d, (item, several), (reason, WEIR_LIMITED), (remaining, 0));
            assert_int_equal(left(small, "k", NOW + 1), 9);
        }
}
