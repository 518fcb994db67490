/* purse.c -- laws of a purse, against a list of all deposits; marks of spent accounts; damage. */
#include "unit/test.h"

#include <string.h>

#include "algo/purse.h"
#include "random.h"

#define LIFE (100 * WEIR_MILLISECOND)
#define MOST 1000

static struct weir_plan plan_of(int64_t most, weir_time life)
{
    struct weir_plan plan;

    assert_int_equal(weir__plan_make(&plan,
                                     &(struct weir_limit){ "purse", .count = most, .period = life },
                                     NULL),
                     WEIR_OK);
    return plan;
}

static struct weir_decision take(const struct weir_plan *plan, void *state, int64_t cost,
                                 weir_time now)
{
    struct weir_decision d;

    weir_step(plan, state, &(struct weir_ask){ .cost = cost, .now = now }, &d);
    return d;
}

static void give(const struct weir_plan *plan, void *state, int64_t units, weir_time at)
{
    plan->algo->give(plan, state, units, at);
}

/* ------------------------------------------------------------------ laws ---- */

/* Deposits that may be alive, the oldest first; asks take the oldest units. */
static struct model {
    struct {
        weir_time at;
        int64_t units;
    } lots[4096];
    size_t first, n;
} all, young; /* up to a life old; and up to half of one */

static int64_t younger_than(const struct model *m, weir_time age, weir_time now)
{
    int64_t units = 0;

    for (size_t i = m->first; i < m->n; i++)
        units += now - m->lots[i].at < age ? m->lots[i].units : 0;
    return units;
}

static void spend(struct model *m, int64_t units)
{
    for (size_t i = m->first; units > 0 && i < m->n; i++) {
        int64_t part = units < m->lots[i].units ? units : m->lots[i].units;
        m->lots[i].units -= part;
        units -= part;
    }
    while (m->first < m->n && m->lots[m->first].units == 0)
        m->first++;
}

static void add(struct model *m, int64_t units, weir_time now)
{
    m->lots[m->n].at = now;
    m->lots[m->n++].units = units;
}

/* Never more than is younger than a life; never less than is younger than half of one. */
static void walk(uint64_t seed)
{
    struct weir_plan plan = plan_of(INT32_MAX, LIFE);
    uint64_t state[2] = { 0, 0 };
    weir_time now = WEIR_SECOND;

    random_state = seed;
    all = young = (struct model){ .n = 0 };
    for (int i = 0; i < 4000; i++) {
        now += one_in(3) ? 0 : between(0, one_in(20) ? 2 * LIFE : LIFE / 4);
        while (all.first < all.n && now - all.lots[all.first].at >= LIFE)
            all.first++;
        if (one_in(3)) {
            int64_t units = between(1, 1000);
            add(&all, units, now);
            add(&young, units, now);
            give(&plan, state, units, now);
        }
        int64_t had = take(&plan, state, 0, now).remaining, cost = between(0, 800);
        int64_t least = younger_than(&young, LIFE / 2, now);
        while (young.first < young.n && now - young.lots[young.first].at >= LIFE / 2)
            young.first++;
        assert_in_range(had, least, younger_than(&all, LIFE, now));
        uint64_t before[2] = { state[0], state[1] };
        struct weir_decision d = take(&plan, state, cost, now);
        assert_int_equal(d.allowed, cost <= had);
        if (d.allowed) {
            spend(&all, cost);
            spend(&young, cost - (had - least));
        } else {
            assert_memory_equal(before, state, sizeof(state));
        }
        assert_true(weir_step_idle_at(&plan, state) <= now + LIFE);
        assert_int_equal(take(&plan, state, 0, weir_step_idle_at(&plan, state)).remaining, 0);
    }
}

TEST(test_a_unit_lives_for_half_a_life_at_least_and_a_life_at_most)
{
    for (uint64_t seed = 1; seed <= 50; seed++)
        walk(seed);
}

/* -------------------------------------------------------------- the rest ---- */

TEST(test_a_spent_purse_says_until_when)
{
    struct weir_plan plan = plan_of(MOST, LIFE);
    uint64_t purse[2] = { 0, 0 }, changed[2];
    weir_time now = WEIR_SECOND;
    struct weir_decision d = take(&plan, purse, 1, now);

    assert_fields(d, (allowed, false), (reason, WEIR_DRY), (retry, 0));
    give(&plan, purse, -1, now + LIFE / 2); /* spent until then */
    d = take(&plan, purse, 1, now);
    assert_fields(d, (allowed, false), (reason, WEIR_LIMITED), (retry, LIFE / 2));
    d = take(&plan, purse, 1, now + LIFE / 2);
    assert_fields(d, (allowed, false), (reason, WEIR_DRY));
    weir__purse_shut(&plan, purse, now + LIFE / 2, now + 1000 * LIFE); /* it says more */
    d = take(&plan, purse, 1, now + LIFE / 4);
    assert_fields(d, (allowed, false), (reason, WEIR_LIMITED), (retry, 1000 * LIFE - LIFE / 4));
    assert_int_equal(take(&plan, purse, 1, now + LIFE / 2).reason, WEIR_DRY);
    assert_int_equal(weir_step_idle_at(&plan, purse), now + LIFE / 2);
    plan.algo->change(&plan, &plan, purse, changed, now); /* that was another limit */
    assert_fields(take(&plan, changed, 1, now), (reason, WEIR_LIMITED), (retry, LIFE / 2));
    give(&plan, purse, 5, now); /* units end it */
    d = take(&plan, purse, 5, now);
    assert_fields(d, (allowed, true), (remaining, 0));
    d = take(&plan, purse, 1, now); /* spent by asks: dry, not spent until */
    assert_fields(d, (allowed, false), (reason, WEIR_DRY));
    assert_string_equal(weir_reason_name(WEIR_DRY), "dry");
}

TEST(test_a_charge_takes_what_is_there)
{
    struct weir_plan plan = plan_of(MOST, LIFE);
    uint64_t purse[2] = { 0, 0 };

    give(&plan, purse, 10, 0);
    give(&plan, purse, -4, 0);
    assert_int_equal(take(&plan, purse, 0, 0).remaining, 6);
    give(&plan, purse, INT64_MIN, 0);
    assert_int_equal(take(&plan, purse, 0, 0).remaining, 0);
    assert_int_equal(take(&plan, purse, 1, 0).reason, WEIR_DRY);
}

TEST(test_any_bytes_are_a_purse)
{
    struct weir_plan plan = plan_of(MOST, LIFE);

    random_state = 7;
    for (int i = 0; i < 100000; i++) {
        uint64_t purse[2] = { roll() >> (roll() % 64), roll() >> (roll() % 64) };
        weir_time now = (weir_time)(roll() >> (1 + roll() % 63));
        struct weir_decision d = take(&plan, purse, between(0, MOST), now);
        assert_in_range(d.remaining, 0, MOST);
        give(&plan, purse, between(-MOST, MOST), now);
        d = take(&plan, purse, 0, now);
        assert_in_range(d.remaining, 0, MOST);
        assert_true(d.reset >= 0);
    }
}

TEST(test_a_purse_is_no_limit_by_itself)
{
    struct weir_error error = { 0 };
    struct weir_limit limit;

    assert_int_equal(weir_limit_parse(&limit, "purse 5/1s", &error), WEIR_INVALID);
    assert_non_null(strstr(error.text, "'purse' is not an algorithm for a limit"));
    for (const char *const *name = weir_algorithms(); *name != NULL; name++)
        assert_string_not_equal(*name, "purse");
    assert_ptr_equal(weir__algo_at((size_t)weir__algo_index("purse")), &weir__purse);
    limit = (struct weir_limit){ "purse", .count = 5, .period = LIFE, .burst = 9 };
    assert_int_equal(weir__plan_make(&(struct weir_plan){ 0 }, &limit, &error), WEIR_INVALID);
}
