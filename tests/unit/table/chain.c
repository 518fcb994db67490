/* chain.c -- long sliding logs: the same answers as those of a plain ring, whatever is done to
 * them; and no block that nobody has. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "table/chain.h"
#include "table/file.h"
#include "table/slot.h"

static uint64_t slab_used(const struct weir_table *table)
{
    return weir__slab_stats(&table->keys.slab).bytes;
}

/* --------------------------------------------------------- beside a ring ---- */

struct walk {
    struct weir_table *table;
    struct weir_limiter *limiter;
    struct weir_plan plan; /* of the ring */
    void *ring;
    weir_time now;
    int64_t rough; /* one step in this many is not one unit more or less */
    uint64_t most; /* bytes in blocks */
    bool waits, changes;
};

static struct weir_limit any_limit(void)
{
    static const int64_t counts[] = { 5, 53, 54, 80, 200, 1000, 4000 };
    static const weir_time periods[] = { 200, 60000, S / 100, S, 60 * S, 86400 * S };

    return (struct weir_limit){ .algorithm = "sliding-log",
                                .count = counts[between(0, COUNT_OF(counts) - 1)],
                                .period = periods[between(0, COUNT_OF(periods) - 1)] };
}

static void set_ring(struct walk *w, struct weir_limit limit, weir_time now)
{
    struct weir_plan plan;

    assert_int_equal(weir__plan_make(&plan, &limit, NULL), WEIR_OK);
    void *ring = calloc(1, plan.state_size);
    assert_non_null(ring);
    if (w->ring != NULL)
        weir_step_change(&w->plan, &plan, w->ring, ring, now);
    free(w->ring);
    w->ring = ring;
    w->plan = plan;
}

static void change_limit(struct walk *w)
{
    struct weir_limit limit = any_limit();
    struct weir_error error = { 0 };

    if (one_in(2))
        limit.period = w->plan.limit.period;
    if (limit.count == w->plan.limit.count && limit.period == w->plan.limit.period)
        return; /* no change, so no time is noted either */
    if (weir_limiter_change(w->limiter, &limit, w->now, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    set_ring(w, limit, w->now);
}

static int64_t any_cost(const struct walk *w)
{
    int64_t count = w->plan.limit.count;

    return !one_in(w->rough) ? 1 : one_in(20) ? between(0, count + 1) : between(1, 1 + count / 50);
}

static void ask_both(const struct walk *w, bool take)
{
    struct weir_ask ask = { .key = key_of("k"), .cost = any_cost(w), .now = w->now };
    struct weir_decision got, wanted;

    if (w->waits && one_in(3))
        ask.wait_max = between(0, w->plan.limit.period * 2);
    (take ? weir_take : weir_peek)(w->limiter, &ask, &got);
    if (take)
        weir_step(&w->plan, w->ring, &ask, &wanted);
    else
        weir_step_peek(&w->plan, w->ring, &ask, &wanted);
    assert_same_decision(&got, &wanted);
    assert_in_range(slab_used(w->table), 0, w->most);
}

static void give_both(const struct walk *w)
{
    struct weir_ask ask = ask_of("k", one_in(5) ? any_cost(w) * 5 : any_cost(w), w->now);

    weir_give(w->limiter, &ask);
    weir_step_give(&w->plan, w->ring, &ask);
}

static void go_on(struct walk *w)
{
    weir_time period = w->plan.limit.period;

    w->now += one_in(500 * w->rough)  ? 3 * period
              : one_in(50 * w->rough) ? between(0, period)
              : one_in(3)             ? 0
                                      : between(0, 3 * period / w->plan.limit.count);
    if (one_in(500 * w->rough))
        w->now -= w->now > NOW ? between(0, w->now - NOW) : 0;
}

static void take_step(struct walk *w)
{
    go_on(w);
    if (!one_in(w->rough))
        ask_both(w, true);
    else if (one_in(2))
        ask_both(w, false);
    else if (!one_in(5))
        give_both(w);
    else if (w->changes && !one_in(3))
        change_limit(w);
    else if (one_in(10)) {
        weir_forget(w->limiter, key_of("k"), w->now);
        memset(w->ring, 0, w->plan.state_size);
    }
}

static void walk(uint64_t seed, bool narrow, bool waits, bool changes)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){
        .keys = 100, .slab = 64 << 20, .guards = 1, .narrow = narrow });
    struct walk w = { .table = table,
                      .now = NOW,
                      .waits = waits,
                      .changes = changes,
                      .most = 4000 / 20 * WEIR__NODE_BYTES + (64 << 10) };
    struct weir_error error = { 0 };

    random_state = seed;
    w.rough = one_in(2) ? 2 : 20;
    struct weir_limit limit = any_limit();
    if (weir_limiter_create(&w.limiter, table, "log", &limit, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    set_ring(&w, limit, NOW);
    for (int i = 0; i < 5000; i++)
        take_step(&w);
    weir_forget(w.limiter, key_of("k"), w.now);
    assert_in_range(slab_used(table), 0, 24 << 10); /* spares of hands */
    free(w.ring);
}

TEST(test_a_long_log_answers_as_a_ring)
{
    for (uint64_t seed = 1; seed <= FEWER(60); seed++)
        walk(seed, seed % 2, false, false);
}

TEST(test_a_long_log_answers_as_a_ring_with_waits)
{
    for (uint64_t seed = 1; seed <= FEWER(60); seed++)
        walk(seed, seed % 2, true, false);
}

TEST(test_a_long_log_answers_as_a_ring_when_limits_change)
{
    for (uint64_t seed = 1; seed <= FEWER(60); seed++)
        walk(seed, seed % 2, false, true);
}

/* ----------------------------------------------------------------- blocks ---- */

#define SPARES (8 * WEIR__NODE_BYTES) /* that hands keep */

static void expect_blocks(const struct weir_table *table, int64_t nodes)
{
    assert_in_range(slab_used(table), 0, (uint64_t)nodes * WEIR__NODE_BYTES + SPARES);
}

/* n units, one after the other. */
static weir_time take_some(struct weir_limiter *limiter, const char *key, int n, weir_time now,
                           weir_time apart)
{
    for (int i = 0; i < n; i++, now += apart)
        assert_true(take(limiter, key, 1, now).allowed);
    return now;
}

TEST(test_a_log_has_no_more_blocks_than_it_needs)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 100);
        struct weir_limiter *limiter = limiter_of(table, "log", "sliding-log 1000/1s");
        weir_time now = take_some(limiter, "k", 10, NOW, S / 1000);
        expect_blocks(table, 1);
        now = take_some(limiter, "k", 50000, now, S / 900); /* 900 count, 107 to a node */
        expect_blocks(table, 11);
        now = take_some(limiter, "k", 200, now, S / 100);
        expect_blocks(table, 3);
        now = take_some(limiter, "k", 900, now, S / 1000);
        expect_blocks(table, 11);
        give(limiter, "k", 850, now);
        expect_blocks(table, 2);
        now = take_some(limiter, "k", 900, now, S / 1000);
        take_some(limiter, "k", 1, now + 10 * S, 0);
        expect_blocks(table, 1);
    }
}

TEST(test_the_links_of_a_log_lead_far)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "log", "sliding-log 100000/1m");
    weir_time now = take_some(limiter, "k", 60000, NOW, S / 1000);

    for (int i = 0; i < 1000; i++) {
        int64_t gone = between(0, 59000);
        assert_int_equal(left(limiter, "k", NOW + 60 * S + gone * (S / 1000)), 40001 + gone);
    }
    struct weir_ask ask = ask_of("k", 90000, now);
    struct weir_decision d;
    assert_false(weir_peek(limiter, &ask, &d));
    assert_int_equal(d.retry, NOW + 60 * S + 49999 * (S / 1000) - now);
    uint32_t block = 0;
    for (uint64_t i = 0; i < table->keys.groups * WEIR__GROUP_SLOTS; i++)
        block |= (uint32_t)weir__wide_at(&table->keys, 0, i)->state[1];
    const struct weir__log_node *node = weir__block_at(&table->keys.slab, block);
    for (int level = 0; level < 4; level++) {
        const struct weir__log_node *link = weir__block_at(&table->keys.slab, node->links[level]);
        assert_int_equal(link->number, weir__node_link(node->number, level));
    }
}

/* All that slots lead to. */
static uint64_t bytes_in_slots(struct weir_table *table)
{
    const struct weir__space *space = &table->keys;
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < space->groups * WEIR__GROUP_SLOTS; i++) {
        void *slot = weir__slot_at(space, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
        uint64_t word = weir__slot_pair(space, slot)[1];
        if ((uint32_t)word == 0)
            continue;
        bytes += weir__block_bytes(&space->slab, (uint32_t)word);
        const struct weir__log_node *node = weir__block_at(&space->slab, (uint32_t)word);
        if (weir__chain_in(space, word))
            bytes += (node->number - node->last) * WEIR__NODE_BYTES;
    }
    return bytes;
}

static void expect_no_others(struct weir_table *table)
{
    uint64_t bytes = bytes_in_slots(table);

    assert_in_range(slab_used(table), bytes, bytes + SPARES);
}

/* Evicted, forgotten, reclaimed: nothing stays. */
TEST(test_a_log_that_makes_room_leaves_no_blocks)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = table_with(&(struct weir_table_options){
            .keys = 1, .slab = 1 << 20, .guards = 1, .narrow = narrow });
        struct weir_limiter *logs = limiter_of(table, "log", "sliding-log 1000/1m");
        char key[16];
        for (int i = 0; i < 600; i++) { /* the slab has room for 150 */
            snprintf(key, sizeof(key), "k%d", i);
            take_some(logs, key, 1000, NOW + i, 1);
        }
        assert_in_range(stats_of(table, -1).evicted_early, 400, 600);
        expect_no_others(table);
        weir_limiter_change(
            logs, &(struct weir_limit){ .algorithm = "sliding-log", .count = 10, .period = S }, NOW,
            NULL);
        for (int i = 0; i < 600; i++) {
            snprintf(key, sizeof(key), "k%d", i);
            take(logs, key, 1, NOW + 10 * S);
        }
        expect_no_others(table);
    }
}

/* ------------------------------------------------------ copies and rebuilds ---- */

static void expect_equal(struct weir_limiter *a, struct weir_limiter *b, weir_time from)
{
    for (weir_time now = from; now < from + 70 * S; now += S / 7) {
        struct weir_decision x = peek(a, "k", 1, now), y = peek(b, "k", 1, now);
        assert_same_decision(&x, &y);
    }
}

TEST(test_a_long_log_is_backed_up)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        const char *from = new_path(), *to = new_path();
        struct weir_table_options o = { .path = from, .keys = 100, .guards = 1, .narrow = narrow };
        OWN(weir_table) *table = table_with(&o);
        struct weir_limiter *limiter = limiter_of(table, "log", "sliding-log 3000/1m");
        weir_time now = take_some(limiter, "k", 9000, NOW, S / 40);
        struct weir__copied copied;
        assert_int_equal(weir__table_backup(table, to, &copied, NULL), WEIR_OK);
        OWN(weir_table) *copy = attach(to);
        struct weir_limiter *again = weir__limiter_by_name(copy, "log");
        expect_equal(limiter, again, now);
        take_some(limiter, "k", 1000, now, S / 40);
        take_some(again, "k", 1000, now, S / 40);
        expect_equal(limiter, again, now + 25 * S);
    }
}

TEST(test_a_long_log_survives_a_rebuild)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        const char *path = new_path();
        struct weir_table_options o = { .path = path, .keys = 100, .guards = 1, .narrow = narrow };
        struct weir_table *table = table_with(&o);
        OWN(weir_table) *other = private_table(narrow, 100);
        struct weir_limiter *limiter = limiter_of(table, "log", "sliding-log 3000/1m"),
                            *same = limiter_of(other, "log", "sliding-log 3000/1m");
        weir_time now = take_some(limiter, "k", 9000, NOW, S / 40);
        take_some(same, "k", 9000, NOW, S / 40);
        uint64_t used = slab_used(table);
        weir__block_take(&table->keys.slab, WEIR__NODE_BYTES); /* as if killed here */
        table->header->holders_lost++;
        weir_table_destroy(table);
        OWN(weir_table) *again = attach(path);
        assert_in_range(slab_used(again), used - SPARES, used);
        limiter = weir__limiter_by_name(again, "log");
        expect_equal(limiter, same, now);
        take_some(limiter, "k", 1000, now, S / 40);
        take_some(same, "k", 1000, now, S / 40);
        expect_equal(limiter, same, now + 25 * S);
    }
}

/* ------------------------------------------------------------------ damage ---- */

/* Any word of any node, and of the slots. */
static void damage(struct weir_table *table)
{
    struct weir__slab *slab = &table->keys.slab;
    uint64_t *slots = (uint64_t *)(void *)table->keys.slots, i = roll();

    if (one_in(20)) {
        i %= WEIR__GROUP_SLOTS * (table->keys.narrow ? 2u : 4u);
        slots[i] ^= slots[i] == 0 || i % 2 == 0 ? 0 : (uint64_t)1 << roll() % 63;
        return;
    }
    uint64_t *word = (uint64_t *)(void *)slab->bytes + i % 8192; /* of the first chunk */
    *word = one_in(2)   ? roll()
            : one_in(2) ? *word ^ (uint64_t)1 << roll() % 64
                        : *word + (uint64_t)roll() % 5 - 2;
}

static void use_damaged(struct weir_limiter *limiter, const char *key, weir_time now)
{
    struct weir_ask ask = ask_of(key, one_in(9) ? between(1, 300) : 1, now);
    struct weir_decision d;

    if (one_in(5))
        weir_peek(limiter, &ask, &d);
    else if (one_in(9))
        weir_give(limiter, &ask);
    else if (one_in(200))
        weir_forget(limiter, ask.key, now);
    else
        weir_take(limiter, &ask, &d);
}

TEST(test_a_damaged_log_harms_nobody)
{
    for (uint64_t seed = 1; seed <= FEWER(12); seed++) {
        const char *path = new_path(), *to = new_path();
        struct weir_table_options o = {
            .path = path, .keys = 1, .slab = 1 << 18, .guards = 1, .narrow = seed % 2
        };
        struct weir_table *table = table_with(&o);
        struct weir_limiter *limiter = limiter_of(table, "log", "sliding-log 1000/1s");
        weir_time now = NOW;
        random_state = seed;
        for (int i = 0; i < 6000; i++, now += S / 2000) {
            use_damaged(limiter, one_in(3) ? "k" : one_in(2) ? "l" : "m", now);
            if (one_in(20))
                damage(table);
            if (one_in(1000))
                change(limiter, one_in(2) ? "sliding-log 500/2s" : "sliding-log 20/1s", now);
        }
        struct weir__copied copied;
        (void)weir__table_backup(table, to, &copied, NULL);
        unlink(to);
        table->header->holders_lost++;
        weir_table_destroy(table);
        OWN(weir_table) *again = attach(path);
        take(weir__limiter_by_name(again, "log"), "k", 1, now + 10 * S);
        unlink(path);
    }
}

GROUP(make_folder, remove_folder)
