/* torn-pages.c -- pages that a host's end left unwritten are not noticed: each costs its own keys
 * their memory, and nothing else (docs/decisions/0077-torn-pages.md). */
#include "unit/test.h"

#include "unit/fixture.h"

GROUP(make_folder, remove_folder)

static int count_spent(struct weir_table *table, const char *limit, int keys)
{
    struct weir_limiter *limiter = limiter_of(table, "l", limit);
    char text[16];
    int spent = 0;

    for (int i = 0; i < keys; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        int64_t rest = left(limiter, text, NOW);
        assert_true(rest == 0 || rest == 10); /* as it was, or fresh */
        spent += rest == 0;
    }
    return spent;
}

/* The page of some key's block. */
static const unsigned char *block_page(const struct weir_table *table)
{
    const struct weir__wide *slot = (const void *)table->keys.slots;

    while (slot->tag == 0)
        slot++;
    const unsigned char *block = weir__block_at(&table->keys.slab, (uint32_t)slot->state[1]);
    return block - (block - table->keys.slab.bytes) % WEIR__PAGE;
}

static void expect_torn(const char *limit, bool blocks)
{
    static const unsigned char zeros[WEIR__PAGE];
    const char *path = new_path();
    struct weir_table_options o = { .path = path, .keys = 400 };
    struct weir_table *table = table_with(&o);
    struct weir_limiter *limiter = limiter_of(table, "l", limit);
    char text[16];

    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        assert_true(take(limiter, text, 10, NOW).allowed);
    }
    const unsigned char *torn = blocks ? block_page(table) : table->keys.slots;
    size_t at = (size_t)(torn - (const unsigned char *)table->header);
    weir_table_destroy(table);
    write_at(path, at, zeros, sizeof(zeros));
    table = attach(path);
    int spent = count_spent(table, limit, 200);
    if (spent == 0 || spent == 200)
        fail_msg("%s: %d of 200 are left", limit, spent);
    limiter = limiter_of(table, "l", limit);
    for (int i = 0; i < 200; i++) { /* and it goes on as ever */
        snprintf(text, sizeof(text), "k%d", i);
        int64_t rest = left(limiter, text, NOW);
        assert_true(take(limiter, text, 10, NOW).allowed == (rest == 10));
    }
    assert_int_equal(count_spent(table, limit, 200), 200);
    weir_table_destroy(table);
}

TEST(test_a_torn_page_costs_its_own_keys)
{
    expect_torn("gcra 10/1h", false);
    expect_torn("sliding-window 10/1h", false);
    expect_torn("sliding-window 10/1h", true);
}

static void expect_left(struct weir_limiter *limiter, const char *prefix, int keys, int64_t wanted)
{
    char text[16];

    for (int i = 0; i < keys; i++) {
        snprintf(text, sizeof(text), "%s%d", prefix, i);
        assert_int_equal(left(limiter, text, NOW), wanted);
    }
}

static void take_each(struct weir_limiter *limiter, const char *prefix, int keys, int64_t cost)
{
    char text[16];

    for (int i = 0; i < keys; i++) {
        snprintf(text, sizeof(text), "%s%d", prefix, i);
        take(limiter, text, cost, NOW);
    }
}

/* Everybody had left when the host went down, and the map of blocks was not written yet: a block
 * that a key has is given to no other. */
TEST(test_T4_after_another_boot_no_block_is_given_twice)
{
    enum { KEYS = 100 };
    static const unsigned char zeros[WEIR__PAGE];
    const char *path = new_path();
    struct weir_table *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 400 });
    uint64_t at = weir__offset_of(table, table->keys.slab.room),
             bytes = weir__slab_map_bytes(table->keys.slab.count), one = 1;

    take_each(limiter_of(table, "l", "sliding-window 10/1h"), "old", KEYS, 9);
    weir_table_destroy(table);
    for (uint64_t n = 0; n < bytes; n += sizeof(zeros))
        write_at(path, at + n, zeros, bytes - n < sizeof(zeros) ? bytes - n : sizeof(zeros));
    write_at(path, offsetof(struct weir__header, boot_id), &one, sizeof(one));
    table = attach(path);
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-window 10/1h");
    take_each(limiter, "new", KEYS, 3);
    expect_left(limiter, "old", KEYS, 1);
    take_each(limiter, "old", KEYS, 1);
    expect_left(limiter, "new", KEYS, 7);
    expect_left(limiter, "old", KEYS, 0);
    weir_table_destroy(table);
}

/* Many limits ago: nobody remembers under which one the old keys are. */
static void expect_spent(const char *algorithm, int count, const char *options, bool narrow)
{
    const char *path = new_path();
    struct weir_table *table = table_with(&(struct weir_table_options){
        .path = path, .keys = 400, .slab = 4 << 20, .narrow = narrow });
    char text[60];
    uint64_t one = 1;

    snprintf(text, sizeof(text), "%s %d/1h%s", algorithm, count, options);
    struct weir_limiter *limiter = limiter_of(table, "l", text);
    take_each(limiter, "old", 50, 1);
    for (int n = 1; n <= 20; n++) {
        snprintf(text, sizeof(text), "%s %d/1h%s", algorithm, n % 2 ? 2 * count : count, options);
        change(limiter, text, NOW);
    }
    take_each(limiter, "new", 50, 4);
    weir_table_destroy(table);
    write_at(path, offsetof(struct weir__header, boot_id), &one, sizeof(one));
    table = attach(path);
    assert_int_equal(stats_of(table, NOW).live, 100); /* none makes room as an idle one */
    assert_int_equal(stats_of(table, NOW + 7201 * S).live, 0);
    limiter = limiter_of(table, "l", text);
    expect_left(limiter, "old", 50, 0);
    expect_left(limiter, "new", 50, count - 4);
    expect_left(limiter, "fresh", 50, count);
    assert_true(take(limiter, "old1", 1, NOW + 7200 * S).allowed); /* it heals */
    assert_int_equal(left(limiter, "old1", NOW + 7200 * S), count - 1);
    weir_table_destroy(table);
}

/* As before the boot, not fresh. */
TEST(test_T4_after_another_boot_states_from_forgotten_limits_are_spent)
{
    expect_spent("gcra", 10, "", false); /* narrow, it needs no limit to be read by */
    for (int narrow = 0; narrow < 2; narrow++) {
        expect_spent("sliding-window", 10, "", narrow);
        expect_spent("sliding-log", 10, "", narrow);
        expect_spent("sliding-log", 5000, "", narrow);
        expect_spent("sliding-window", 10, " buckets=1500", narrow); /* judged where it lies */
    }
}

static int64_t cost_of(int i)
{
    return 1 + i % 9;
}

/* The page of the places was not written: their limiters are gone, and their keys' blocks are free.
 * When others get the places, and those slots, nobody loses a block. */
static void expect_no_dangling(const char *before, const char *limit, bool narrow)
{
    enum { KEYS = 100 };
    const char *path = new_path();
    struct weir_table *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 200, .narrow = narrow });
    uint64_t at = weir__offset_of(table, table->places), one = 1, zeros[2] = { 0, 0 };
    char text[16];
    int wrong = 0;

    take_each(limiter_of(table, "l", before), "old", 2 * KEYS, 1);
    weir_table_destroy(table);
    write_at(path, at, zeros, sizeof(zeros));
    write_at(path, offsetof(struct weir__header, boot_id), &one, sizeof(one));
    table = attach(path);
    struct weir_limiter *limiter = limiter_of(table, "l", limit);
    for (int i = 0; i < KEYS; i++) {
        snprintf(text, sizeof(text), "new%d", i);
        assert_true(take(limiter, text, cost_of(i), NOW).allowed);
    }
    for (int i = 0; i < KEYS; i++) {
        snprintf(text, sizeof(text), "new%d", i);
        int64_t rest = left(limiter, text, NOW);
        wrong += rest != 10 - cost_of(i) && rest != 10; /* that made room */
    }
    assert_int_equal(wrong, 0);
    weir_table_destroy(table);
}

TEST(test_T4_a_torn_page_of_places_costs_its_own_keys)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        expect_no_dangling("sliding-window 10/1h", "sliding-window 10/1h", narrow);
        expect_no_dangling("gcra 10/1h", "sliding-window 10/1h", narrow);
        expect_no_dangling("sliding-log 10000/1h", "sliding-window 10/1h", narrow);
    }
}
