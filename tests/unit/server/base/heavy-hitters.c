/* heavy-hitters.c -- the frequent found in fixed memory: exact while there is room, within the
 * stated error when there is not. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "unit/sketch-secrets.h"

#include "server/base/heavy-hitters.h"

OWNS(weir__hitters)

static void add_number(struct weir__hitters *h, int64_t n)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%lld", (long long)n);

    weir__hitters_add(h, hash_of(n), text, (size_t)len, 1);
}

TEST(test_hitters_are_exact_while_there_is_room)
{
    OWN(weir__hitters) *h = weir__hitters_create(8);
    struct weir__hitter top[8];
    for (int64_t i = 1; i <= 8; i++)
        for (int64_t times = 0; times < i; times++)
            add_number(h, i);
    assert_int_equal(weir__hitters_top(h, top, 8), 8);
    for (int i = 0; i < 8; i++) {
        assert_fields(top[i], (count, 8 - i), (error, 0));
        assert_int_equal(atoi(top[i].text), 8 - i);
    }
    assert_int_equal(weir__hitters_total(h), 36);
    assert_int_equal(weir__hitters_error(h), 0);
    assert_int_equal(weir__hitters_top(h, top, 3), 3);
}

TEST(test_hitters_of_one_counter)
{
    OWN(weir__hitters) *h = weir__hitters_create(1);
    struct weir__hitter top;
    for (int64_t i = 0; i < 10; i++)
        add_number(h, i);
    assert_int_equal(weir__hitters_top(h, &top, 1),
                     0); /* 9 was there at least once, and at most ten times: no news */
    for (int64_t i = 0; i < 8; i++)
        add_number(h, 9);
    assert_int_equal(weir__hitters_top(h, &top, 1), 1);
    assert_string_equal(top.text, "9");
    assert_fields(top, (count, 18), (error, 9));
}

/* Against true counts, on traffic where a few come often and most once: what Space-Saving promises,
 * for every one that it names. */
TEST(test_hitters_keep_their_promise)
{
    enum { KINDS = 5000, CAPACITY = 64, ADDS = 200000 };
    static int64_t truth[KINDS];
    OWN(weir__hitters) *h = weir__hitters_create(CAPACITY);
    struct weir__hitter top[CAPACITY];
    uint64_t seed = 11;
    for (int i = 0; i < ADDS; i++) {
        uint64_t r = random64(&seed);
        int64_t kind = (int64_t)(r % 3 ? r >> 32 & 15 : (r >> 32) % KINDS);
        truth[kind]++;
        add_number(h, kind);
    }
    size_t n = weir__hitters_top(h, top, CAPACITY);
    assert_in_range(n, 16, CAPACITY);
    assert_in_range(weir__hitters_error(h), 1, ADDS / CAPACITY);
    for (size_t i = 0; i < n; i++) {
        int64_t kind = atoll(top[i].text);
        assert_true(top[i].count >= truth[kind] && top[i].count - top[i].error <= truth[kind]);
        assert_true(i == 0 || top[i].count <= top[i - 1].count);
    }
    for (int64_t kind = 0; kind < KINDS; kind++) {
        bool named = false;
        for (size_t i = 0; i < n; i++)
            named |= top[i].hash == hash_of(kind);
        assert_true(named || truth[kind] <= 2 * ADDS / CAPACITY);
    }
}

TEST(test_hitters_whose_hashes_share_a_place)
{
    OWN(weir__hitters) *h = weir__hitters_create(16);
    struct weir__hitter top[16];
    for (uint64_t round = 0; round < 1000; round++)
        weir__hitters_add(h, round << 32 | 31, "x", 1,
                          1); /* one home for all, at the index's end */
    assert_int_equal(weir__hitters_total(h), 1000);
    assert_in_range(weir__hitters_error(h), 1, 1000 / 16);
    weir__hitters_add(h, (uint64_t)999 << 32 | 31, "x", 1, 1000);
    assert_int_equal(weir__hitters_top(h, top, 16), 1);
    assert_in_range(top[0].count, 1001, 1063);
}

GROUP(fill_secrets, NULL)
