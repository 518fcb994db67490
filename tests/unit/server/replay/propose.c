/* propose.c -- the count that refuses no more than a share of keys: hand-calculated traffic, every
 * algorithm against trying all counts, and samples. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/replay/propose.h"

OWNS(weir__propose)

static struct weir__sketch_secrets secrets;

static int fill_secrets(void **state)
{
    weir__sketch_secrets_make(&secrets, "seven", 5);
    return 0;
}

static struct weir__propose *propose_for(int64_t share, size_t bytes)
{
    struct weir__propose_options options = { .share = share, .bytes = bytes, .secrets = &secrets };
    struct weir__propose *p = NULL;
    struct weir_error error;

    assert_ok(weir__propose_create(&p, &options, &error));
    return p;
}

/* A request of key number `key`. */
static void add(struct weir__propose *p, const struct weir_limit *limit, int64_t key, int64_t cost,
                weir_time now)
{
    weir__propose_add(p,
                      &(struct weir__propose_ask){
                          .limit = limit, .key = { &key, sizeof(key) }, .cost = cost, .now = now });
}

/* Key i of 1 .. keys asks i times at one instant. */
static void add_stairs(struct weir__propose *p, const struct weir_limit *limit, int64_t keys)
{
    for (int64_t key = 1; key <= keys; key++)
        for (int64_t i = 0; i < key; i++)
            add(p, limit, key, 1, NOW);
}

static struct weir__proposal only_proposal(const struct weir__propose *p)
{
    struct weir__proposal out;

    assert_int_equal(weir__propose_limits(p), 1);
    weir__propose_get(p, 0, &out);
    return out;
}

/* Stairs of 100 keys, passes until it is exact; 10 % may be refused, so those of 91 .. 100 asks
 * are. */
static struct weir__proposal propose_stairs(const char *text, int64_t share)
{
    OWN(weir__propose) *p = propose_for(share, 0);
    struct weir_limit limit = limit_of(text);
    do
        add_stairs(p, &limit, 100);
    while (weir__propose_pass(p));
    struct weir__proposal out = only_proposal(p);
    assert_true(weir__propose_is_whole(p));
    return out;
}

TEST(test_windows_are_exact)
{
    static const char *const limits[] = { "fixed-window 10/1s", "sliding-window 10/1s",
                                          "sliding-log 10/1s", "fixed-window 1/1s",
                                          "fixed-window 4000/1s" };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct weir__proposal p = propose_stairs(limits[i], 100000);
        assert_fields(p, (limit.count, 90), (below, 89), (keys, 100), (keys_proposed, 10),
                      (keys_written, p.written.count < 100 ? 100 - p.written.count : 0),
                      (sampled, false));
    }
}

TEST(test_bursts_keep_their_proportion)
{
    struct weir__proposal p = propose_stairs("token-bucket 10/1s", 100000);

    assert_fields(p.limit, (count, 90), (burst, 0));
    p = propose_stairs("token-bucket 10/1s burst 5", 100000);
    assert_int_equal(p.limit.burst, 90);
    assert_int_equal(p.limit.count, 179); /* half of it, rounded, is 90 */
    p = propose_stairs("gcra 10/1s burst 20", 100000);
    assert_fields(p.limit, (burst, 90), (count, 45));
}

TEST(test_share_of_nobody_and_of_most)
{
    assert_int_equal(propose_stairs("fixed-window 10/1s", 0).limit.count, 100);
    assert_int_equal(propose_stairs("token-bucket 10/1s", 0).limit.count, 100);
    assert_int_equal(propose_stairs("fixed-window 10/1s", 9999).limit.count, 100);
    assert_int_equal(propose_stairs("fixed-window 10/1s", 10000).limit.count, 99);
    assert_int_equal(propose_stairs("fixed-window 10/1s", 990000).limit.count, 1);
}

TEST(test_one_pass_gives_a_bracket)
{
    OWN(weir__propose) *p = propose_for(100000, 0);
    struct weir_limit limit = limit_of("fixed-window 10/1s");
    add_stairs(p, &limit, 100);
    assert_true(weir__propose_pass(p));
    struct weir__proposal out = only_proposal(p);
    assert_true(out.below < 90 && out.limit.count >= 90 && out.limit.count <= 113);
    assert_true(out.steps > 10);
    for (size_t i = 0; i < out.steps; i++)
        assert_int_equal(out.refused[i], out.counts[i] < 100 ? 100 - out.counts[i] : 0);
}

TEST(test_what_is_beyond_the_ladder)
{
    OWN(weir__propose) *p = propose_for(0, 0);
    struct weir_limit limit = limit_of("token-bucket 1/1h");
    for (int64_t i = 0; i < 100; i++)
        add(p, &limit, 1, 1, NOW);
    assert_true(weir__propose_pass(p));
    struct weir__proposal out = only_proposal(p);
    assert_fields(out, (limit.count, 0), (below, 64));
    for (bool again = true; again; again = weir__propose_pass(p))
        for (int64_t i = 0; i < 100; i++)
            add(p, &limit, 1, 1, NOW);
    assert_int_equal(only_proposal(p).limit.count, 100);
}

TEST(test_limits_are_kept_apart_and_sorted)
{
    OWN(weir__propose) *p = propose_for(0, 0);
    struct weir_limit limit = limit_of("fixed-window 10/1s");
    struct weir__proposal out;
    int64_t key = 1;
    for (size_t i = 0; i < WEIR__PROPOSE_LIMITS + 1; i++)
        weir__propose_add(p, &(struct weir__propose_ask){ .rule = 1000 - i / 2,
                                                          .index = i % 2,
                                                          .limit = &limit,
                                                          .key = { &key, sizeof(key) },
                                                          .cost = 1,
                                                          .now = NOW });
    weir__propose_pass(p);
    assert_int_equal(weir__propose_limits(p), WEIR__PROPOSE_LIMITS);
    assert_false(weir__propose_is_whole(p));
    for (size_t i = 0; i < WEIR__PROPOSE_LIMITS; i++) {
        weir__propose_get(p, i, &out);
        assert_fields(out, (rule, 1000 - WEIR__PROPOSE_LIMITS / 2 + 1 + i / 2), (index, i % 2));
    }
}

/* ------------------------------------------------- against trying all counts ---- */

enum { KEYS = 40, ASKS = 4000 };

struct traffic {
    int64_t key, cost;
    weir_time now;
};

static void make_traffic(struct traffic t[ASKS], uint64_t seed)
{
    weir_time now = NOW;

    for (int i = 0; i < ASKS; i++) {
        uint64_t r = random64(&seed);
        now += (weir_time)(r % 16 == 0 ? r >> 8 & 0x3FFFFFFF : r >> 8 & 0xFFFFFF);
        t[i] = (struct traffic){ (int64_t)((r >> 40) % KEYS) * (int64_t)((r >> 48) % 3) % KEYS,
                                 1 + (r >> 56) % 2, now };
    }
}

/* How many keys are ever refused under that count, by plain steps. */
static int64_t refused_keys(const struct weir_limit *written, int64_t count,
                            const struct traffic *t)
{
    struct weir_limit limit = weir__propose_scale(written, count);

    OWN(weir_plan) *plan = NULL;
    bool refused[KEYS] = { false };
    int64_t n = 0;
    assert_ok(weir_plan_create(&plan, &limit, NULL));
    size_t size = weir_plan_state_size(plan);
    FINALLY(memory_drop) unsigned char *states = calloc(KEYS, size);
    for (int i = 0; i < ASKS; i++) {
        struct weir_ask ask = { .cost = t[i].cost, .now = t[i].now };
        struct weir_decision d;
        refused[t[i].key] |= !weir_step(plan, states + (size_t)t[i].key * size, &ask, &d);
    }
    for (int i = 0; i < KEYS; i++)
        n += refused[i];
    return n;
}

TEST(test_same_as_trying_all_counts)
{
    static const char *const limits[] = { "token-bucket 10/1s",
                                          "token-bucket 8/2s burst 3",
                                          "gcra 10/1s burst 20",
                                          "leaky-bucket 10/1s",
                                          "fixed-window 10/1s",
                                          "sliding-window 10/1s",
                                          "sliding-log 10/1s",
                                          "sliding-window 5/1s buckets=3",
                                          "fixed-window 9/1s align=first",
                                          "smooth 10/1s",
                                          "warm-up 10/1s",
                                          "warm-up 10/1s warmup=3s cold=5",
                                          "calendar 10/day" };
    static struct traffic t[ASKS];

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct weir_limit limit = limit_of(limits[i]);
        OWN(weir__propose) *p = propose_for(200000, 0);
        make_traffic(t, i + 1);
        do
            for (int k = 0; k < ASKS; k++)
                add(p, &limit, t[k].key, t[k].cost, t[k].now);
        while (weir__propose_pass(p));
        struct weir__proposal out = only_proposal(p);
        int64_t may = out.keys / 5;
        assert_int_equal(out.below, out.limit.count - 1);
        if (refused_keys(&limit, out.limit.count, t) > may ||
            (out.limit.count > 1 && refused_keys(&limit, out.limit.count - 1, t) <= may))
            fail_msg("%s: %lld is not the smallest", limits[i], (long long)out.limit.count);
        assert_int_equal(out.keys_proposed, refused_keys(&limit, out.limit.count, t));
    }
}

/* ------------------------------------------------------------------ samples ---- */

/* 60,000 keys in memory for a few hundred to thousand: key i asks i % 100 + 1 times, so that a
 * tenth of the keys needs more than 90.  The sample's standard error is under 1.5 points; the seed
 * is fixed. */
TEST(test_few_keys_stand_for_many)
{
    static const char *const limits[] = { "fixed-window 10/1s", "token-bucket 10/1s" };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        OWN(weir__propose) *p = propose_for(100000, (size_t)4 << 20);
        struct weir_limit limit = limit_of(limits[i]);
        for (int64_t key = 0; key < 60000; key++)
            for (int64_t k = 0; k <= key % 100; k++)
                add(p, &limit, key, 1, NOW);
        weir__propose_pass(p);
        struct weir__proposal out = only_proposal(p);
        assert_true(out.sampled);
        assert_in_range(out.keys, 100, 30000);
        int64_t share = out.keys_written * 1000 / out.keys;
        assert_in_range(share, 860, 940); /* 90 % need more than 10 */
        assert_true(out.limit.count > 80 && out.limit.count <= 113);
        assert_true(weir__propose_is_whole(p));
    }
}

TEST(test_costs_that_no_count_passes)
{
    OWN(weir__propose) *p = propose_for(0, 0);
    struct weir_limit limit = limit_of("token-bucket 10/1s");
    do
        add(p, &limit, 1, INT64_MAX, NOW);
    while (weir__propose_pass(p));
    assert_int_equal(only_proposal(p).limit.count, 0);
}

GROUP(fill_secrets, NULL)
