/* adhoc.c -- limits that come with the ask: CL.THROTTLE's own table, the same answers as a
 * limiter's, and what a key keeps when the limit that it is asked under is another. */
#include "unit/test.h"

#include <pthread.h>

#include "unit/fixture.h"
#include "table/cl-throttle-limits.h"
#include "table/slot.h"

static struct weir_plan plan_of(const char *text)
{
    struct weir_limit limit = limit_of(text);
    struct weir_plan plan;
    struct weir_error error;

    if (weir__plan_make(&plan, &limit, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    return plan;
}

static struct weir_decision carried_take(struct weir_table *table, const struct weir_plan *plan,
                                         const char *key, int64_t cost, weir_time now)
{
    struct weir__carried_item item = { plan, ask_of(key, cost, now) };
    struct weir_decision d;

    memset(&d, 0xa5, sizeof(d));
    size_t granted = weir__carried_take_many(table, &item, 1, &d);
    assert_int_equal(granted, d.allowed);
    return d;
}

static struct weir_decision carried_peek(struct weir_table *table, const struct weir_plan *plan,
                                         const char *key, int64_t cost, weir_time now)
{
    struct weir__carried_item item = { plan, ask_of(key, cost, now) };
    struct weir_decision d;

    memset(&d, 0xa5, sizeof(d));
    bool allowed = weir__carried_peek(table, &item, &d);
    assert_int_equal(allowed, d.allowed);
    return d;
}

/* The one slot of a table that has one. */
static struct weir__wide *only_slot(struct weir_table *table)
{
    struct weir__wide *slots = (void *)table->keys.slots, *found = NULL;

    for (uint64_t i = 0; i < table->keys.groups * WEIR__GROUP_SLOTS; i++)
        if (slots[i].tag != 0) {
            assert_null(found);
            found = &slots[i];
        }
    assert_non_null(found);
    return found;
}

/* ------------------------------------------------------------- the same answers ---- */

TEST(test_S1_cl_throttle_to_the_nanosecond)
{
    static const struct {
        int64_t ms, quantity;
        bool allowed;
        int64_t remaining;
        weir_time retry, reset;
    } rows[] = {
        { 0, 6, false, 5, WEIR_NEVER, 0 },
        { 0, 1, true, 4, 0, S },
        { 0, 1, true, 3, 0, 2 * S },
        { 0, 1, true, 2, 0, 3 * S },
        { 0, 1, true, 1, 0, 4 * S },
        { 0, 1, true, 0, 0, 5 * S },
        { 0, 1, false, 0, S, 5 * S },
        { 3000, 1, true, 2, 0, 3 * S },
        { 3100, 1, true, 1, 0, 3900 * WEIR_MILLISECOND },
        { 4000, 1, true, 1, 0, 4 * S },
        { 8000, 1, true, 4, 0, S },
        { 9500, 1, true, 4, 0, S },
        { 9500, 0, true, 4, 0, S },
        { 9500, 2, true, 2, 0, 3 * S },
        { 9500, 5, false, 2, 3 * S, 3 * S },
        { 15000, 6, false, 5, WEIR_NEVER, 0 },
    };
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan plan = plan_of("gcra 1/1s burst 5");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_decision d =
            carried_take(table, &plan, "k", rows[i].quantity, NOW + rows[i].ms * WEIR_MILLISECOND);
        assert_fields(d, (allowed, rows[i].allowed), (limit, 5), (remaining, rows[i].remaining),
                      (retry, rows[i].retry), (reset, rows[i].reset));
    }
    plan = plan_of("gcra 30/60s burst 16"); /* CL.THROTTLE user123 15 30 60 */
    struct weir_decision d = carried_take(table, &plan, "user123", 1, NOW);
    assert_fields(d, (limit, 16), (remaining, 15), (reset, 2 * S));
}

static void invent_limit(uint64_t *seed, char *text, size_t size)
{
    static const char *const algorithms[] = { "gcra", "token-bucket", "leaky-bucket" };
    static const int64_t periods[] = {
        1, 7, 1000, 1000000, 1000000000, 60000000000, 86400000000000
    };

    snprintf(text, size, "%s %d/%lldns burst %d", algorithms[random64(seed) % 3],
             1 + (int)(random64(seed) % 2000),
             (long long)periods[random64(seed) % COUNT_OF(periods)],
             1 + (int)(random64(seed) % 50));
}

static struct weir_ask invent_ask(uint64_t *seed, const struct weir_plan *plan, const char *key,
                                  weir_time *now)
{
    weir_time unit = plan->limit.period / plan->limit.count + 1;
    uint64_t way = random64(seed) % 100;

    *now += way < 50   ? 0
            : way < 90 ? (weir_time)(random64(seed) % (uint64_t)(3 * unit))
            : way < 95 ? unit * plan->most
                       : 0;
    weir_time late = way == 95   ? WEIR_SECOND / 2
                     : way == 96 ? 3 * WEIR_SECOND
                                 : 0; /* overtaken, or the clock was set back */
    int64_t cost = way == 97   ? -3
                   : way == 98 ? plan->most + 1
                   : way == 99 ? 0
                               : (int64_t)(random64(seed) % 4);
    return (struct weir_ask){ .key = key_of(key), .cost = cost, .now = *now - late };
}

TEST(test_the_answers_are_those_of_a_limiter)
{
    for (uint64_t first = 1; first <= 300; first++) {
        uint64_t seed = first;
        char text[80];
        invent_limit(&seed, text, sizeof(text));
        OWN(weir_table) *table = table_with(
            &(struct weir_table_options){ .keys = 100, .limiters = 1, .bans = 1, .slab = 4096 });
        struct weir_limiter *limiter = limiter_of(table, "l", text);
        struct weir_plan plan = plan_of(text);
        weir_time now = NOW;
        for (int i = 0; i < 200; i++) {
            struct weir__carried_item item = { &plan, invent_ask(&seed, &plan, "k", &now) };
            struct weir_decision got, wanted;
            if (random64(&seed) % 8 == 0) {
                weir__carried_peek(table, &item, &got);
                weir_peek(limiter, &item.ask, &wanted);
            } else {
                weir__carried_take_many(table, &item, 1, &got);
                weir_take(limiter, &item.ask, &wanted);
            }
            if (got.allowed != wanted.allowed || got.reason != wanted.reason ||
                got.limit != wanted.limit || got.remaining != wanted.remaining ||
                got.wait != wanted.wait || got.retry != wanted.retry || got.reset != wanted.reset ||
                got.item != wanted.item)
                fail_msg("seed %d, ask %d: %s", (int)first, i, text);
        }
    }
}

TEST(test_many_are_decided_as_one_by_one_and_one_keys_in_their_order)
{
    enum { N = 100 };
    static struct weir__carried_item items[N];
    static struct weir_decision got[N];
    static char keys[200][8]; /* many are not in the line where their search begins */
    struct weir_table *table = private_table(false, 100), *other = private_table(false, 100);
    struct weir_plan plans[3] = { plan_of("gcra 3/1s burst 20"), plan_of("gcra 7/1s burst 9"),
                                  plan_of("token-bucket 3/1s burst 5") };
    uint64_t seed = 1;
    for (int round = 0; round < 200; round++) {
        weir_time now = NOW + round * WEIR_SECOND;
        size_t n = 1 + random64(&seed) % N, granted = 0, among = round % 2 ? 10 : COUNT_OF(keys);
        for (size_t i = 0; i < n; i++) {
            char *key = keys[random64(&seed) % among];
            snprintf(key, sizeof(keys[0]), "key %d", (int)((key - keys[0]) / (int)sizeof(keys[0])));
            weir_time late = random64(&seed) % 8 == 0 ? 3 * S : 0;
            items[i] = (struct weir__carried_item){
                &plans[random64(&seed) % 3], ask_of(key, (int64_t)(random64(&seed) % 3), now - late)
            };
            items[i].ask.wait_max = random64(&seed) % 8 == 0 ? S : 0;
        }
        size_t all = weir__carried_take_many(table, items, n, got);
        for (size_t i = 0; i < n; i++) {
            struct weir_decision wanted;
            granted += weir__carried_take_many(other, &items[i], 1, &wanted);
            assert_same_decision(&got[i], &wanted);
        }
        assert_int_equal(all, granted);
    }
    weir_table_destroy(table);
    weir_table_destroy(other);
}

TEST(test_meters_will_do_and_nothing_else)
{
    static const struct {
        const char *limit;
        bool good;
    } rows[] = {
        { "gcra 5/1s", true },
        { "token-bucket 5/1s burst 7", true },
        { "leaky-bucket 5/1s", true },
        { "leaky-bucket 5/1s queue 3", false },
        { "smooth 5/1s", false },
        { "warm-up 5/1s", false },
        { "fixed-window 5/1s", false },
        { "sliding-window 5/1s", false },
        { "sliding-log 5/1s", false },
        { "10000/month", false },
        { "gcra 67108863/1ns burst 1", true }, /* its scale is the count */
        { "gcra 67108864/1ns burst 1", false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir_plan plan = plan_of(rows[i].limit);
        assert_int_equal(weir__plan_is_carried(&plan), rows[i].good);
    }
}

/* --------------------------------------------------------------- another limit ---- */

TEST(test_under_another_limit_the_time_owed_stays)
{
    static const char *const limits[] = { "gcra 1/1s burst 50",
                                          "gcra 1/3s burst 50",
                                          "gcra 3/1s burst 300",
                                          "gcra 7/1s burst 300",
                                          "token-bucket 999983/1s burst 50000000",
                                          "gcra 2/7ns burst 9999999999",
                                          "leaky-bucket 11/1m burst 30" };

    for (size_t from = 0; from < COUNT_OF(limits); from++)
        for (size_t to = 0; to < COUNT_OF(limits); to++) {
            OWN(weir_table) *table = private_table(false, 100);
            struct weir_plan old = plan_of(limits[from]), new = plan_of(limits[to]);
            weir_time later = NOW + 333333333;
            int64_t units = 1 + 20 * WEIR_SECOND / (old.limit.period / old.limit.count + 1);
            struct weir_decision d = carried_take(table, &old, "k", units, NOW);
            assert_true(d.allowed);
            weir_time owed = carried_peek(table, &old, "k", 0, later).reset;
            assert_true(owed > 0);
            assert_int_equal(carried_peek(table, &new, "k", 0, later).reset,
                             owed); /* however finely it counts */
            d = carried_take(table, &new, "k", 1, later);
            weir_time price = (new.limit.period + new.limit.count - 1) / new.limit.count;
            assert_true(d.reset >= owed - 1 && d.reset <= owed + price + 1);
            assert_in_range(carried_peek(table, &old, "k", 0, later).reset, d.reset, d.reset + 1);
            assert_int_equal(keys_of(table), 1);
        }
}

TEST(test_a_refusal_under_another_limit_changes_not_a_byte)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan slow = plan_of("gcra 3/1m burst 6"), quick = plan_of("gcra 7/1s burst 2");
    assert_true(carried_take(table, &slow, "k", 4, NOW).allowed);
    struct weir__wide before = *only_slot(table);
    for (int i = 0; i < 1000; i++) {
        assert_false(carried_take(table, &quick, "k", 1, NOW + i).allowed);
        carried_peek(table, &quick, "k", 1, NOW + i);
        carried_take(table, &quick, "k", 0, NOW + i);
        carried_take(table, &quick, "k", -1, NOW + i);
    }
    assert_memory_equal(&before, only_slot(table), sizeof(before));
    struct weir_decision d = carried_take(table, &quick, "k", 1, NOW);
    weir_time passes = NOW + d.retry;
    assert_false(carried_take(table, &quick, "k", 1, passes - 1).allowed);
    assert_true(carried_take(table, &quick, "k", 1, passes).allowed); /* its retry is exact */
}

/* A debt of weeks in parts of a billionth of a ns is more than 64 bits hold. */
TEST(test_a_debt_too_deep_to_tell_in_the_new_parts_is_refused_and_kept)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan slow = plan_of("gcra 1/1d burst 100"),
                     fine = plan_of("gcra 1000000007/1s burst 5");
    assert_true(carried_take(table, &slow, "k", 50, NOW).allowed);
    struct weir__wide before = *only_slot(table);
    weir_time owed = carried_peek(table, &slow, "k", 0, NOW).reset;
    struct weir_decision d = carried_take(table, &fine, "k", 5, NOW);
    assert_fields(d, (allowed, false), (reason, WEIR_LIMITED), (remaining, 0), (limit, 5),
                  (reset, owed), (retry, owed));
    assert_fields(carried_take(table, &fine, "k", 6, NOW), (reason, WEIR_TOO_BIG), (reset, owed));
    assert_fields(carried_take(table, &fine, "k", -1, NOW), (reason, WEIR_BAD_ASK), (reset, owed));
    assert_false(carried_peek(table, &fine, "k", 0, NOW).allowed);
    assert_memory_equal(&before, only_slot(table), sizeof(before));
    assert_false(carried_take(table, &fine, "k", 5, NOW + owed - 1).allowed);
    assert_true(carried_take(table, &fine, "k", 5, NOW + owed).allowed);
}

TEST(test_one_key_asked_under_two_limits_in_turn_pays_for_both)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan a = plan_of("gcra 3/1s burst 30"),
                     b = plan_of("gcra 7/1s burst 70"); /* both hold ten seconds */
    int64_t from_a = 0, from_b = 0;
    for (int i = 0; i < 200; i++) {
        from_a += carried_take(table, &a, "k", 1, NOW).allowed;
        from_b += carried_take(table, &b, "k", 1, NOW).allowed;
    }
    int64_t owed = from_a * (S / 3) + from_b * (S / 7);
    assert_in_range(owed, 10 * S - S / 7 - 1000, 10 * S);
    assert_in_range(carried_peek(table, &a, "k", 0, NOW).reset, owed, owed + 400);
}

TEST(test_the_clock_may_step_back)
{
    struct weir_plan a = plan_of("gcra 1/1s burst 5"), b = plan_of("gcra 3/1s burst 15"),
                     fine = plan_of("gcra 1000000007/1s burst 5");
    const struct weir_plan *plans[] = { &a, &b, &fine };

    for (size_t i = 0; i < COUNT_OF(plans); i++) {
        OWN(weir_table) *table = private_table(false, 100);
        weir_time back = NOW - 500 * S;
        assert_true(carried_take(table, &a, "k", 5, NOW).allowed);
        assert_false(carried_take(table, plans[i], "k", 1, back)
                         .allowed); /* followed, and nothing given away */
        assert_int_equal(carried_peek(table, &a, "k", 0, back).reset, 5 * S);
        assert_true(carried_take(table, &a, "k", 1, back + S).allowed); /* and nobody locked out */
        assert_int_equal(carried_take(table, &a, "k", 1, back + S / 2).retry,
                         S); /* late by less than a second: as of the latest */
    }
}

/* ----------------------------------------------------------------------- forget ---- */

TEST(test_a_forgotten_key_is_fresh)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan plan = plan_of("gcra 1/1s burst 5");
    assert_false(weir__carried_forget(table, key_of("k"), NOW));
    assert_true(carried_take(table, &plan, "k", 5, NOW).allowed);
    assert_true(weir__carried_forget(table, key_of("k"), NOW + S));
    assert_false(weir__carried_forget(table, key_of("k"), NOW + S));
    assert_int_equal(carried_take(table, &plan, "k", 5, NOW + S).remaining, 0);
    assert_false(weir__carried_forget(table, key_of("k"), NOW + 6 * S)); /* time has done it */
    assert_false(weir__carried_forget(table, key_of("other"), NOW));
}

/* ------------------------------------------------------------------------ slots ---- */

TEST(test_asks_with_nothing_to_remember_take_no_slot)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan plan = plan_of("gcra 1/1s burst 5");
    assert_true(carried_take(table, &plan, "k", 0, NOW).allowed);
    assert_int_equal(carried_take(table, &plan, "k", 6, NOW).reason, WEIR_TOO_BIG);
    assert_int_equal(carried_take(table, &plan, "k", -1, NOW).reason, WEIR_BAD_ASK);
    assert_true(carried_peek(table, &plan, "k", 5, NOW).allowed);
    assert_int_equal(keys_of(table), 0);
    assert_true(carried_take(table, &plan, "k", 1, NOW).allowed);
    assert_int_equal(keys_of(table), 1);
}

TEST(test_a_limiters_key_of_the_same_name_is_another)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 1/1s burst 5");
    struct weir_plan plan = plan_of("gcra 1/1s burst 5");
    assert_true(carried_take(table, &plan, "k", 5, NOW).allowed);
    assert_int_equal(left(limiter, "k", NOW), 5);
    assert_int_equal(take(limiter, "k", 2, NOW).remaining, 3);
    assert_int_equal(carried_peek(table, &plan, "k", 0, NOW).remaining, 0);
    assert_int_equal(keys_of(table), 2);
}

static const char *number(int i)
{
    static char text[16];

    snprintf(text, sizeof(text), "key %d", i);
    return text;
}

TEST(test_idle_ones_make_room_and_live_ones_stay)
{
    static const char *const limits[] = { "gcra 1/1000s", "gcra 7/7000s", "gcra 3/3001s burst 3" };
    static const weir_time spans[] = { 1000 * S, 7000 * S, 3001 * S };

    for (size_t l = 0; l < COUNT_OF(limits); l++) {
        OWN(weir_table) *table = private_table(false, 1);
        struct weir_plan plan = plan_of(limits[l]);
        int keys = 0;
        while (keys_of(table) < stats_of(table, -1).slots)
            assert_true(carried_take(table, &plan, number(keys++), plan.most, NOW).allowed);
        int64_t slots = stats_of(table, -1).slots, early = stats_of(table, -1).evicted_early;
        weir_time end = NOW + spans[l];
        assert_int_equal(stats_of(table, end - 1).live, slots);
        assert_int_equal(stats_of(table, end).live, 0);
        assert_true(carried_take(table, &plan, "new", 1, end - 1).allowed);
        assert_fields(stats_of(table, -1), (evicted_early, early + 1), (evicted_idle, 0));
        assert_true(carried_take(table, &plan, "newer", 1, end).allowed);
        assert_fields(stats_of(table, -1), (evicted_early, early + 1), (evicted_idle, 1));
        assert_int_equal(stats_of(table, end).live, 2);
        struct weir_limiter *limiter =
            limiter_of(table, "l", "gcra 1/1s"); /* and for limiters' keys */
        assert_true(take(limiter, "k", 1, end).allowed);
        assert_fields(stats_of(table, -1), (evicted_early, early + 1), (evicted_idle, 2));
    }
}

TEST(test_damaged_slots_come_out_sane)
{
    struct weir_plan plan = plan_of("gcra 3/1s burst 5"), other = plan_of("gcra 7/1s burst 5");
    uint64_t seed = 1;

    for (int i = 0; i < 2000; i++) {
        OWN(weir_table) *table = table_with(
            &(struct weir_table_options){ .keys = 1, .limiters = 1, .bans = 1, .slab = 4096 });
        assert_true(carried_take(table, &plan, "k", 1, NOW).allowed);
        struct weir__wide *slot = only_slot(table);
        slot->meta = i % 3 ? random64(&seed) >> random64(&seed) % 64 : 0;
        slot->state[0] = random64(&seed) >> (1 + random64(&seed) % 63);
        slot->state[1] = random64(&seed) >> random64(&seed) % 64;
        struct weir_decision d = i % 2 ? carried_take(table, &other, "k", 1, NOW)
                                       : carried_peek(table, &other, "k", 1, NOW);
        assert_true(d.remaining >= 0 && d.remaining <= 5 && d.retry >= 0 && d.reset >= 0);
        stats_of(table, NOW);
        weir__carried_forget(table, key_of("k"), NOW);
        assert_int_equal(carried_peek(table, &plan, "k", 0, NOW + 3 * S).remaining, 5);
    }
}

TEST(test_it_is_there_when_the_file_is_opened_again)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
    struct weir_plan plan = plan_of("gcra 1/1s burst 5");
    assert_true(carried_take(table, &plan, "k", 3, NOW).allowed);
    weir_table_destroy(table);
    table = attach(path);
    assert_int_equal(carried_peek(table, &plan, "k", 0, NOW).remaining, 2);
}

/* ---------------------------------------------------------------------- threads ---- */

#define THREADS 4

struct job {
    struct weir_table *table;
    const struct weir_plan *plan;
    int64_t granted;
    int asks;
};

static void *ask_many(void *argument)
{
    struct job *job = argument;
    struct weir__carried_item items[16];
    struct weir_decision decisions[16];

    for (size_t i = 0; i < COUNT_OF(items); i++)
        items[i] = (struct weir__carried_item){ job->plan, ask_of("k", 1, NOW) };
    for (int i = 0; i < job->asks; i += 16)
        job->granted +=
            (int64_t)weir__carried_take_many(job->table, items, COUNT_OF(items), decisions);
    return NULL;
}

static void run(struct job *jobs)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many, &jobs[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

RACE(test_threads_on_one_key_at_one_instant_get_the_burst_and_no_more)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan plan = plan_of("gcra 7/1s burst 20000");
    struct job jobs[THREADS];
    int64_t granted = 0;
    for (int i = 0; i < THREADS; i++)
        jobs[i] = (struct job){ table, &plan, 0, 16 * 1000 };
    run(jobs);
    for (int i = 0; i < THREADS; i++)
        granted += jobs[i].granted;
    assert_int_equal(granted, 20000);
    assert_int_equal(keys_of(table), 1);
}

RACE(test_threads_under_different_limits_share_the_time)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_plan a = plan_of("gcra 1/3s burst 2000"), b = plan_of("gcra 3/6001ms burst 3000");
    struct job jobs[THREADS];
    for (int i = 0; i < THREADS; i++)
        jobs[i] = (struct job){ table, i % 2 ? &a : &b, 0, 16 * 250 };
    run(jobs);
    int64_t owed = (jobs[1].granted + jobs[3].granted) * 3 * S +
                   (jobs[0].granted + jobs[2].granted) * 6001 * (S / 1000) / 3;
    weir_time kept = carried_peek(table, &a, "k", 0, NOW).reset, most = 6001 * S;
    assert_in_range(kept, owed,
                    owed + 16000); /* a part more for each time that it was brought over */
    assert_in_range(kept, most - 3 * S, most);
}

GROUP(make_folder, remove_folder)
