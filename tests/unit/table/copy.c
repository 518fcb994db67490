/* copy.c -- backups: every key as it is, in a table that works; also while others decide. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "unit/tending.h"

#include <pthread.h>

#include "table/bans.h"
#include "table/copy.h"
#include "table/file.h"
#include "table/slot.h"

static struct weir__copied back_up(struct weir_table *table, const char *path)
{
    struct weir__copied copied;
    struct weir_error error = { 0 };

    if (weir__table_backup(table, path, &copied, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    return copied;
}

static const char *const limits[] = {
    "token-bucket 100/1h",
    "gcra 100/1h burst 50",
    "leaky-bucket 100/1h",
    "sliding-window 100/1h",
    "sliding-log 100/1h",
    "sliding-log 5000/1h",
    "fixed-window 100/1h",
    "100/month",
    "smooth 100/1h",
    "warm-up 100/1h",
    "leaky-bucket 100/1h queue 5",
};

static bool fits(const char *limit, bool narrow)
{
    return !narrow || strncmp(limit, "token", 5) == 0 || strncmp(limit, "gcra", 4) == 0 ||
           strncmp(limit, "sliding", 7) == 0;
}

static struct weir_decision look(struct weir_table *table, size_t limit, size_t key)
{
    char name[16], text[16];

    snprintf(name, sizeof(name), "l%zu", limit);
    snprintf(text, sizeof(text), "k%zu", key);
    struct weir_ask ask = ask_of(text, 1, NOW + S);
    struct weir_decision d;
    weir_peek(weir__limiter_by_name(table, name), &ask, &d);
    return d;
}

#define KEYS 50

static void fill(struct weir_table *table, bool narrow)
{
    char name[16], text[16];

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        if (!fits(limits[i], narrow))
            continue;
        snprintf(name, sizeof(name), "l%zu", i);
        struct weir_limiter *limiter = limiter_of(table, name, limits[i]);
        for (size_t k = 0; k < KEYS; k++) {
            snprintf(text, sizeof(text), "k%zu", k);
            take(limiter, text, (int64_t)(1 + k % 7), NOW);
        }
    }
}

static void expect_same(struct weir_table *a, struct weir_table *b, bool narrow)
{
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        for (size_t k = 0; k < KEYS + 5 && fits(limits[i], narrow); k++) {
            struct weir_decision x = look(a, i, k), y = look(b, i, k);
            if (memcmp(&x, &y, sizeof(x)) != 0)
                fail_msg("%s, key %zu: %lld left, and in the copy %lld", limits[i], k,
                         (long long)x.remaining, (long long)y.remaining);
        }
}

TEST(test_a_backup_has_every_key)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        const char *path = new_path(), *to = new_path();
        struct weir_table_options o = { .path = path, .keys = 2000, .narrow = narrow };
        OWN(weir_table) *table = table_with(&o);
        fill(table, narrow);
        struct weir__copied c = back_up(table, to);
        assert_int_equal(c.limiters, stats_of(table, -1).limiters);
        assert_int_equal(c.states, keys_of(table));
        assert_int_equal(c.lost, 0);
        OWN(weir_table) *copy = attach(to);
        assert_int_equal(keys_of(copy), keys_of(table));
        assert_int_equal(stats_of(copy, NOW + S).live, stats_of(table, NOW + S).live);
        assert_true(stats_of(copy, -1).slab_used <= stats_of(table, -1).slab_used);
        expect_same(table, copy, narrow);
        take(weir__limiter_by_name(copy, "l0"), "k0", 1, NOW + S); /* they are two */
        assert_int_equal(look(copy, 0, 0).remaining, look(table, 0, 0).remaining - 1);
    }
}

/* What does not fit must not be missing from a file that looks whole. */
TEST(test_T4_a_copy_on_a_full_disk_is_none)
{
    const char *path = new_path();
    struct weir__ban_record ban = { .since = NOW, .until = NOW + S, .strikes = 1, .rule = "r" };
    struct weir_error error = { 0 };
    struct weir__copy copy;

    OWN(weir_table) *table = private_table(false, 1000);

    assert_int_equal(weir__copy_begin(&copy, path, table->header, NULL, &error), WEIR_OK);
    fill_disk(copy.to);
    weir__copy_ban(&copy, weir__ban_tag(copy.to, "r", key_of("k")), &ban);
    empty_disk(copy.to);
    assert_int_equal(weir__copy_end(&copy, path, false, WEIR_OK, &error), WEIR_SYSTEM);
    assert_non_null(strstr(error.text, "No space left"));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(copy.path, F_OK), -1);
}

/* The slots that they leave hold no state. */
TEST(test_a_backup_counts_no_limiters_that_have_gone)
{
    const char *path = new_path(), *to = new_path();
    struct weir_table_options o = { .path = path, .keys = 2000 };

    OWN(weir_table) *table = table_with(&o);
    struct weir_limiter *gone = limiter_of(table, "gone", "100/1h"),
                        *here = limiter_of(table, "here", "100/1h");
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%d", i);
        take(gone, key, 1, NOW);
        take(here, key, 1, NOW);
    }
    weir_limiter_drop(gone);
    tend(table, NOW, 2 * MINUTE);
    struct weir__copied c = back_up(table, to);
    assert_int_equal(c.states, 300);
    assert_int_equal(c.lost, 0);
    OWN(weir_table) *copy = attach(to);
    assert_int_equal(keys_of(copy), 300);
}

TEST(test_a_backup_has_changed_limits_modes_and_bans)
{
    const char *to = new_path();
    struct weir_key ann = key_of("ann"), bob = key_of("bob");

    OWN(weir_table) *table = private_table(false, 100);
    weir_time now = weir_table_now(table);
    struct weir_limiter *gone = limiter_of(table, "first", "gcra 10/1h"),
                        *limiter = limiter_of(table, "l", "sliding-window 10/1h");
    weir__limiter_set_mode(gone, WEIR_SHADOW);
    take(limiter, "old", 3, NOW);
    change(limiter, "sliding-window 20/1h buckets=20", NOW + 1);
    take(limiter, "new", 3, NOW + 2);
    weir__ban_put(table, weir__ban_tag(table, "r", ann), "r", ann, now, now + 3600 * S);
    weir__ban_put(table, weir__ban_tag(table, "r", bob), "r", bob, now - 2 * S, now - S);
    weir__table_set_mode(table, WEIR_SHADOW);
    assert_int_equal(back_up(table, to).bans, 1); /* in force: bob's is over */
    OWN(weir_table) *copy = attach(to);
    limiter = weir__limiter_by_name(copy, "l");
    assert_int_equal(left(limiter, "old", NOW + S), 17);
    assert_int_equal(left(limiter, "new", NOW + S), 17);
    assert_int_equal(weir__limiter_mode(weir__limiter_by_name(copy, "first")), WEIR_SHADOW);
    assert_int_equal(weir__table_mode(copy), WEIR_SHADOW);
    assert_int_equal(weir__ban_until(copy, weir__ban_tag(copy, "r", ann), now), now + 3600 * S);
    weir_time later = weir_table_now(copy);
    assert_true(later >= now && later < now + 3600 * S); /* the same clock */
}

/* A full table: no key is beyond reach in the copy. */
TEST(test_a_backup_of_a_full_table)
{
    const char *to = new_path();
    char text[16];

    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1h");
    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        take(limiter, text, 1 + i % 9, NOW);
    }
    back_up(table, to);
    OWN(weir_table) *copy = attach(to);
    struct weir_limiter *same = weir__limiter_by_name(copy, "l");
    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        assert_int_equal(left(same, text, NOW), left(limiter, text, NOW));
    }
}

/* The limiter of that number, and one of its keys. */
static int64_t left_in(struct weir_table *table, size_t limiter, int key)
{
    char name[16], text[16];

    snprintf(name, sizeof(name), "l%zu", limiter);
    snprintf(text, sizeof(text), "k%d", key);
    return left(weir__limiter_by_name(table, name), text, NOW);
}

/* A full slab has no block for a copy of a long window, and sizes that have few may have had the
 * last of it. */
TEST(test_T4_a_backup_of_a_full_slab)
{
    static const char *const windows[] = { "sliding-window 10/1h buckets=2000",
                                           "sliding-window 10/1h buckets=40",
                                           "sliding-window 10/1h buckets=10000" };
    const char *to = new_path();
    char text[16];

    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .keys = 3000, .slab = 8 << 20 });
    for (size_t i = 0; i < COUNT_OF(windows); i++) {
        snprintf(text, sizeof(text), "l%zu", i);
        struct weir_limiter *limiter = limiter_of(table, text, windows[i]);
        for (int k = 0; k < 1000; k++) {
            snprintf(text, sizeof(text), "k%d", k);
            take(limiter, text, 1 + k % 10, NOW);
        }
    }
    assert_int_equal(back_up(table, to).lost, 0);
    OWN(weir_table) *copy = attach(to);
    for (size_t i = 0; i < COUNT_OF(windows); i++)
        for (int k = 0; k < 1000; k++)
            assert_int_equal(left_in(copy, i, k), left_in(table, i, k));
}

/* So full that each of them has its place only because others came before. */
TEST(test_T4_a_backup_of_a_table_full_of_bans)
{
    const char *to = new_path();
    char text[16];

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100, .bans = 400 });
    weir_time now = weir_table_now(table), hour = 3600 * S;
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        weir__ban_put(table, weir__ban_tag(table, "r", key_of(text)), "r", key_of(text), now,
                      now + hour + i * 7919 % 3000 * S);
    }
    assert_int_equal(back_up(table, to).bans, stats_of(table, now).bans);
    OWN(weir_table) *copy = attach(to);
    assert_int_equal(stats_of(copy, now).bans, stats_of(table, now).bans);
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        uint64_t tag = weir__ban_tag(table, "r", key_of(text));
        assert_int_equal(weir__ban_peek(copy, tag, now), weir__ban_peek(table, tag, now));
    }
}

/* ---------------------------------------------------------------- in use ---- */

struct user {
    struct weir_limiter *limiters[3];
    int stop; /* atomic */
};

static void *use(void *context)
{
    struct user *u = context;
    char text[16];

    for (int64_t i = 0; !__atomic_load_n(&u->stop, __ATOMIC_ACQUIRE); i++) {
        snprintf(text, sizeof(text), "k%d", (int)(i % KEYS));
        struct weir_item items[3];
        struct weir_decision d;
        for (size_t n = 0; n < 3; n++)
            items[n] = (struct weir_item){ u->limiters[n], ask_of(text, 1, NOW) };
        weir_take_all(items, 3, &d);
    }
    return NULL;
}

RACE(test_a_backup_while_others_decide)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct user u = { 0 };
    pthread_t thread;

    u.limiters[0] = limiter_of(table, "a", "gcra 1000000/1h");
    u.limiters[1] = limiter_of(table, "b", "sliding-window 1000000/1h");
    u.limiters[2] = limiter_of(table, "c", "fixed-window 1000000/1h");
    assert_int_equal(pthread_create(&thread, NULL, use, &u), 0);
    for (int round = 0; round < 10; round++) {
        int64_t before[3][KEYS];
        const char *to = new_path();
        char text[16];
        for (size_t n = 0; n < 3 * KEYS; n++) {
            snprintf(text, sizeof(text), "k%zu", n % KEYS);
            before[n / KEYS][n % KEYS] = left(u.limiters[n / KEYS], text, NOW);
        }
        back_up(table, to);
        OWN(weir_table) *copy = attach(to);
        for (size_t n = 0; n < 3 * KEYS; n++) {
            const char *names[] = { "a", "b", "c" };
            snprintf(text, sizeof(text), "k%zu", n % KEYS);
            int64_t there = left(weir__limiter_by_name(copy, names[n / KEYS]), text, NOW),
                    after = left(u.limiters[n / KEYS], text, NOW);
            assert_true(there <= before[n / KEYS][n % KEYS] && there >= after);
        }
    }
    __atomic_store_n(&u.stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

/* While a key's state is read. */
static weir_time clear_group(void *context)
{
    struct weir_table *table = context;
    static bool within;

    if (!within) {
        within = true;
        tend(table, NOW, 2 * MINUTE);
        within = false;
    }
    return NOW;
}

/* Thirteen keys of one home fill three lines and a slot; the last is copied just before all go. */
TEST(test_a_backup_of_a_group_that_becomes_empty)
{
    OWN(weir_table) *table = private_table(true, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1h");
    weir_time later = weir_table_now(table) + 3650 * 86400 * S;
    char text[16];
    int n = 0;

    for (int i = 0; n < 13; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        if (weir__home_of(limiter, key_of(text)).first == 0)
            take(limiter, text, 3, ++n < 13 ? NOW : later);
    }
    weir_limiter_drop(limiter);
    table->clock = (struct weir_clock){ .now = clear_group, .context = table };
    const char *to = new_path();
    back_up(table, to);
    assert_int_equal(keys_of(table), 0);
    OWN(weir_table) *copy = attach(to);
    assert_int_equal(left(weir__limiter_by_name(copy, "l"), text, later), 7);
}

/* The first of the keys that looks at the clock has the other limit changed. */
static weir_time change_window(void *context)
{
    struct weir_limiter **once = context, *window = *once;

    *once = NULL;
    if (window != NULL)
        change(window, "sliding-window 10/2h", NOW + 1);
    return NOW;
}

TEST(test_a_backup_while_a_limit_changes)
{
    enum { EACH = 60 };
    OWN(weir_table) *table = private_table(true, 100);
    struct weir_limiter *early = limiter_of(table, "early", "gcra 10/1h"),
                        *window = limiter_of(table, "w", "sliding-window 10/1h"), *once = window;
    weir_time later = weir_table_now(table) + 3650 * 86400 * S;
    const char *to = new_path();
    char text[16];

    for (int i = 0; i < EACH; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        take(early, text, 3, later);
        take(window, text, 1 + i % 9, NOW);
    }
    table->clock = (struct weir_clock){ .now = change_window, .context = &once };
    assert_int_equal(back_up(table, to).lost, 0);
    assert_null(once);
    OWN(weir_table) *copy = attach(to);
    struct weir_limiter *same = weir__limiter_by_name(copy, "w");
    for (int i = 0; i < EACH; i++) {
        snprintf(text, sizeof(text), "k%d", i);
        assert_int_equal(left(same, text, NOW + 4000 * S), 9 - i % 9);
    }
}

/* ---------------------------------------------------------------- errors ---- */

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    close(fd);
}

static void expect_no_backup(struct weir_table *table, const char *path, const char *words)
{
    struct weir__copied copied;
    struct weir_error error = { 0 };

    assert_true(weir__table_backup(table, path, &copied, &error) != WEIR_OK);
    assert_contains(error.text, words);
}

/* Damage: the key is where no ask looks for it. */
TEST(test_a_backup_ends_where_a_slot_cannot_be_found)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1h");
    struct weir__wide *slot;

    take(limiter, "k", 3, NOW);
    slot = weir__slot_find(&table->keys, weir__home_of(limiter, key_of("k")));
    assert_non_null(slot);
    slot[1] = slot[0];
    slot[0] = (struct weir__wide){ .tag = 0 };
    alarm(10);
    struct weir__copied c = back_up(table, new_path());
    alarm(0);
    assert_int_equal(c.limiters, 1);
}

TEST(test_a_backup_that_fails_leaves_nothing)
{
    const char *there = new_path(), *to = new_path();
    char half[400];

    OWN(weir_table) *table = private_table(false, 100);
    touch(there);
    expect_no_backup(table, there, "is there already");
    expect_no_backup(table, "/no/such/folder/file", "No such file");
    snprintf(half, sizeof(half), "%s.new", to);
    touch(half);
    expect_no_backup(table, to, "is in the way");
    assert_false(is_there(to));
    assert_true(is_there(half)); /* it may be somebody's work */
}

GROUP(make_folder, remove_folder)
