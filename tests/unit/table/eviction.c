/* eviction.c -- which key makes room in a full table: attacks that want a spent key forgotten, and
 * a plain model that names the key that has to go. */
#include "unit/test.h"

#include "unit/fixture.h"
#include "table/bans.h"
#include "table/cl-throttle-limits.h"
#include "table/slot.h"

#define MINUTE (60 * S)
#define DAY    (24 * 60 * MINUTE)

static void spend(struct weir_limiter *limiter, const char *key, weir_time now)
{
    for (int64_t n = peek(limiter, key, 0, now).remaining; n > 0; n--)
        assert_true(take(limiter, key, 1, now).allowed);
}

/* How many of the spent keys pass again. */
static int count_freed(struct weir_limiter *limiter, const char *what, int n, weir_time now)
{
    int freed = 0;

    for (int i = 0; i < n; i++)
        freed += take(limiter, name_of(what, i), 1, now).allowed;
    return freed;
}

/* ------------------------------------------------------------------ attacks ---- */

/* A flood under each of several limits, of fresh keys or of keys that have used most of theirs. */
static void flood(struct weir_limiter *const *limiters, size_t n, int keys, int64_t cost,
                  weir_time now)
{
    for (int i = 0; i < keys; i++)
        for (size_t l = 0; l < n; l++)
            assert_true(take(limiters[l], name_of("flood", i), cost, now + i).allowed);
}

TEST(test_T2_a_flood_of_fresh_accounts_frees_no_login)
{
    static const char *const logins[] = { "token-bucket 5/1m", "sliding-log 5/1m",
                                          "sliding-window 5/1m", "fixed-window 5/1m" },
                             *const accounts[] = { "token-bucket 1000/1d", "fixed-window 1000/1d",
                                                   "sliding-window 1000/1d",
                                                   "sliding-log 1000/1d" };

    for (size_t a = 0; a < FEWER(COUNT_OF(logins)); a++)
        for (size_t b = 0; b < COUNT_OF(accounts); b++) {
            OWN(weir_table) *table = private_table(false, 1000);
            struct weir_limiter *login = limiter_of(table, "login", logins[a]),
                                *account = limiter_of(table, "account", accounts[b]);
            for (int i = 0; i < 100; i++)
                spend(login, name_of("login", i), NOW);
            flood(&account, 1, 5000, 1, NOW);
            assert_int_equal(count_freed(login, "login", 100, NOW + 5000), 0);
        }
}

TEST(test_T2_a_flood_of_keys_that_are_nearly_spent_frees_no_login)
{
    static const char *const accounts[] = { "token-bucket 1000/1d", "fixed-window 1/1d",
                                            "sliding-window 10/1d" };
    static const int64_t costs[] = { 999, 1, 10 };

    for (size_t b = 0; b < COUNT_OF(accounts); b++) {
        OWN(weir_table) *table = private_table(false, 1000);
        struct weir_limiter *login = limiter_of(table, "login", "5/1m"),
                            *account = limiter_of(table, "account", accounts[b]);
        for (int i = 0; i < 100; i++)
            spend(login, name_of("login", i), NOW);
        flood(&account, 1, 10000, costs[b], NOW);
        assert_int_equal(count_freed(login, "login", 100, NOW + 10000), 0);
    }
}

/* One request may make a key under every rule there is. */
TEST(test_T2_floods_under_many_limits_free_no_login)
{
    OWN(weir_table) *table = private_table(false, 4000);
    struct weir_limiter *login = limiter_of(table, "login", "5/1m"), *others[9];

    for (size_t l = 0; l < COUNT_OF(others); l++)
        others[l] = limiter_of(table, name_of("other", (int)l), "fixed-window 1/1d");
    for (int i = 0; i < 40; i++) /* by chance no window has a tenth of its slots */
        spend(login, name_of("login", i), NOW);
    flood(others, COUNT_OF(others), 4000, 1, NOW);
    assert_int_equal(count_freed(login, "login", 40, NOW + 4000), 0);
}

/* A login that was tried once must not be fresh again by the flood either: five tries in all. */
TEST(test_T2_a_flood_between_the_tries_gives_no_more_of_them)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *login = limiter_of(table, "login", "5/1m"),
                        *account = limiter_of(table, "account", "fixed-window 1/1d");
    int passed = 0;

    for (int try = 0; try < 10; try++) {
        for (int i = 0; i < 100; i++)
            passed += take(login, name_of("login", i), 1, NOW + try).allowed;
        for (int i = 0; i < 2000; i++)
            take(account, name_of("account", try * 2000 + i), 1, NOW + try);
    }
    assert_int_equal(passed, 500);
}

/* ------------------------------------------- a change of the limit, a slab ---- */

/* The spent ones are kept under the old limit, and must not look idle under the new one. */
TEST(test_T2_states_under_an_older_limit_are_as_spent_as_they_were)
{
    static const char *const changes[][2] = {
        { "token-bucket 5/1m", "token-bucket 1007/200m" },
        { "fixed-window 5/1m", "fixed-window 7/10m" },
        { "sliding-window 5/1m", "sliding-window 7/2m buckets=60" },
        { "sliding-log 5/1m", "sliding-log 500/100m" },
    };

    for (size_t c = 0; c < COUNT_OF(changes); c++) {
        OWN(weir_table) *table = private_table(false, 1000);
        struct weir_limiter *login = limiter_of(table, "login", changes[c][0]),
                            *account = limiter_of(table, "account", "fixed-window 1/1d");
        int known = 0;
        for (int i = 0; i < 100; i++)
            spend(login, name_of("login", i), NOW);
        change(login, changes[c][1], NOW + 1);
        int64_t fresh = peek(login, "?", 0, NOW + 2).remaining;
        flood(&account, 1, 5000, 1, NOW + 2);
        for (int i = 0; i < 100; i++)
            known += left(login, name_of("login", i), NOW + 5002) < fresh;
        assert_int_equal(known, 100);
    }
}

/* Blocks of one size take up the slab: those of another size still get some. */
TEST(test_T2_large_states_of_one_size_leave_room_for_others)
{
    OWN(weir_table) *table = table_with_slab(10000, 4 << 20);
    struct weir_limiter *login = limiter_of(table, "login", "sliding-window 5/1m"),
                        *account = limiter_of(table, "account", "sliding-log 1000/1d");

    flood(&account, 1, 2000, 1, NOW);
    for (int i = 0; i < 100; i++)
        spend(login, name_of("login", i), NOW + 2000);
    flood(&account, 1, 4000, 1, NOW + 2001);
    assert_int_equal(count_freed(login, "login", 100, NOW + 6001), 0);
}

/* Also if a state takes several chunks: it has room for itself and for the copy that changes it. */
TEST(test_T2_large_states_of_one_size_leave_room_for_whole_chunks)
{
    static const char *const floods[] = { "sliding-window 9/1d buckets=900",
                                          "sliding-window 9/1d buckets=9000",
                                          "sliding-window 9/1d buckets=17000" };

    for (size_t f = 0; f < COUNT_OF(floods); f++) {
        OWN(weir_table) *table = table_with_slab(20000, 16 << 20);
        struct weir_limiter *login =
                                limiter_of(table, "login", "sliding-window 5/1d buckets=30000"),
                            *account = limiter_of(table, "account", floods[f]);
        int passed = 0;
        flood(&account, 1, 5000, 1, NOW);
        for (int i = 0; i < 20; i++)
            passed += take(login, "k", 1, NOW + 5000).allowed;
        assert_int_equal(passed, 5);
    }
}

/* Limits that clients bring may fill half of the slab; all of it while no rule has large states. */
TEST(test_T2_guests_leave_half_of_the_slab_to_rules)
{
    static const char *const guests[] = { "sliding-window 9/1d buckets=100",
                                          "sliding-window 9/1d buckets=1000",
                                          "sliding-window 9/1d buckets=9000" };

    for (int ruled = 0; ruled < 2; ruled++) {
        OWN(weir_table) *table = table_with_slab(40000, 8 << 20);
        const char *limit = "sliding-window 5/1m buckets=60";
        struct weir_limiter *rule = ruled ? limiter_of(table, "rule", limit) : NULL;
        for (size_t g = 0; g < COUNT_OF(guests); g++) {
            struct weir_limiter *guest = limiter_of(table, name_of(":guest", (int)g), guests[g]);
            flood(&guest, 1, 3000, 1, NOW);
        }
        struct weir__slab_stats stats = weir__slab_stats(&table->keys.slab);
        if (ruled) {
            assert_true(stats.chunks <= 72); /* 64, and one or two of each size */
            for (int i = 0; i < FEWER(5000); i++)
                spend(rule, name_of("login", i), NOW);
            assert_int_equal(count_freed(rule, "login", FEWER(5000), NOW), 0);
        } else {
            assert_true(stats.chunks > 100);
        }
    }
}

/* Few of the slots have a block, so the flood's own are seldom near. */
TEST(test_T2_a_flood_of_large_states_finds_its_own_first)
{
    OWN(weir_table) *table = table_with_slab(20000, 128 << 10);
    struct weir_limiter *login = limiter_of(table, "login", "sliding-window 5/1m"),
                        *account = limiter_of(table, "account", "sliding-window 1000/1d");

    for (int i = 0; i < 100; i++)
        spend(login, name_of("login", i), NOW);
    flood(&account, 1, 8000, 1, NOW);
    assert_int_equal(count_freed(login, "login", 100, NOW + 8000), 0);
}

/* Fewer than one key in thousands of slots has a block, and none near a new one: it is limited all
 * the same, by the block of a key far away. */
TEST(test_T2_a_new_key_finds_the_few_blocks_of_a_large_table)
{
    static const char *const windows[] = { "sliding-window 5/1m", "sliding-window 5/1m buckets=900",
                                           "sliding-window 5/1m buckets=9000" };

    for (size_t w = 0; w < COUNT_OF(windows); w++) {
        OWN(weir_table) *table = table_with_slab(200000, 1 << 20);
        struct weir_limiter *login = limiter_of(table, "login", windows[w]);
        flood(&login, 1, w == 0 ? 16000 : 2000, 5, NOW);
        for (int i = 0; i < 50; i++) {
            const char *key = name_of("new", i);
            spend(login, key, NOW + 3600 * S);
            assert_false(take(login, key, 1, NOW + 3600 * S).allowed);
        }
    }
}

TEST(test_T2_a_spent_log_of_any_length_outlasts_fresh_ones)
{
    OWN(weir_table) *table = table_with_slab(1000, 16 << 20);
    struct weir_limiter *log = limiter_of(table, "log", "sliding-log 2000/1d");

    assert_true(take(log, "spent", 2000, NOW).allowed);
    for (int i = 0; i < 6000; i++)
        assert_true(take(log, name_of("flood", i), 1, NOW + i).allowed);
    assert_false(take(log, "spent", 1, NOW + 6000).allowed);
}

/* Those beyond 1,000 buckets are read where they lie. */
TEST(test_T2_a_spent_window_of_any_length_outlasts_fresh_ones)
{
    static const struct {
        const char *limit;
        int flood;
    } windows[] = { { "sliding-window 20/1d buckets=900", 3000 },
                    { "sliding-window 20/1d buckets=1500", 3000 },
                    { "sliding-window 20/1d buckets=9000", 1000 },
                    { "sliding-window 20/1d buckets=90000", 100 } };

    for (size_t w = 0; w < COUNT_OF(windows); w++) {
        OWN(weir_table) *table = table_with_slab(1000, 8 << 20);
        struct weir_limiter *window = limiter_of(table, "window", windows[w].limit);
        struct weir_table_stats stats;
        assert_true(take(window, "spent", 20, NOW).allowed);
        for (int i = 0; i < windows[w].flood; i++)
            assert_true(take(window, name_of("flood", i), 1, NOW + i).allowed);
        weir_table_stats(table, -1, &stats);
        assert_true(stats.evicted_early > 0);
        assert_false(take(window, "spent", 1, NOW + windows[w].flood).allowed);
    }
}

TEST(test_T2_a_window_of_any_length_is_idle_when_nothing_counts)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1000);
        struct weir_limiter *window =
            limiter_of(table, "window", "sliding-window 20/1h buckets=3600");
        struct weir_table_stats stats;
        assert_true(take(window, "a", 20, NOW).allowed);
        weir_table_stats(table, NOW + 3600 * S, &stats);
        assert_int_equal(stats.live, 1);
        weir_table_stats(table, NOW + 3601 * S, &stats);
        assert_int_equal(stats.live, 0);
    }
}

/* Its limit has changed since: it goes, or stays, by what it has used of the present one. */
TEST(test_T2_a_window_of_any_length_is_idle_when_it_is_under_the_present_limit)
{
    static const struct {
        const char *before, *after;
        weir_time live, idle;
    } changes[] = {
        { "sliding-window 20/1m buckets=600", "sliding-window 20/1h buckets=600", 50, 62 },
        { "sliding-window 20/1h buckets=600", "sliding-window 20/1m buckets=600", 0, 2 },
        { "sliding-window 20/1m buckets=9000", "sliding-window 20/1h buckets=600", 50, 62 },
        { "sliding-window 20/1m buckets=600", "sliding-window 20/1h buckets=9000", 50, 62 },
    };

    for (int narrow = 0; narrow < 2; narrow++)
        for (size_t c = 0; c < COUNT_OF(changes); c++) {
            OWN(weir_table) *table = private_table(narrow, 1000);
            struct weir_limiter *window = limiter_of(table, "window", changes[c].before);
            assert_true(take(window, "old", 20, NOW - 10 * MINUTE).allowed);
            assert_true(take(window, "spent", 20, NOW).allowed);
            change(window, changes[c].after, NOW + S);
            int64_t old = left(window, "old", NOW + 2 * S) < 20;
            assert_int_equal(left(window, "spent", NOW + 2 * S), 0);
            assert_int_equal(stats_of(table, NOW + 2 * S).live, 1 + old);
            assert_int_equal(left(window, "spent", NOW + changes[c].live * MINUTE), 0);
            assert_true(stats_of(table, NOW + changes[c].live * MINUTE).live >= 1);
            assert_int_equal(left(window, "spent", NOW + changes[c].idle * MINUTE), 20);
            assert_int_equal(stats_of(table, NOW + changes[c].idle * MINUTE).live, 0);
        }
}

/* ------------------------------------------- limits that come with the ask ---- */

static bool carry(struct weir_table *table, const char *limit, const char *key, weir_time now)
{
    struct weir_limit parsed = limit_of(limit);
    struct weir_plan plan;
    struct weir_decision d;

    assert_int_equal(weir__plan_make(&plan, &parsed, NULL), WEIR_OK);
    struct weir__carried_item item = { &plan, ask_of(key, 1, now) };
    return weir__carried_take_many(table, &item, 1, &d) == 1;
}

TEST(test_T2_limits_that_come_with_the_ask_are_told_apart)
{
    static const char *const floods[] = { "gcra 1000/1d", "gcra 1/1d" };

    for (size_t f = 0; f < COUNT_OF(floods); f++) {
        OWN(weir_table) *table = private_table(false, 1000);
        int freed = 0;
        for (int i = 0; i < 100; i++)
            while (carry(table, "gcra 5/1m", name_of("login", i), NOW))
                ;
        for (int i = 0; i < 5000; i++)
            assert_true(carry(table, floods[f], name_of("flood", i), NOW + i));
        for (int i = 0; i < 100; i++)
            freed += carry(table, "gcra 5/1m", name_of("login", i), NOW + 5000);
        assert_int_equal(freed, 0);
    }
}

/* A client brings as many limits as it likes: together they are one among the others. */
TEST(test_T2_limits_that_clients_bring_free_no_login)
{
    OWN(weir_table) *table = private_table(false, 4000);
    struct weir_limiter *login = limiter_of(table, "login", "5/1m"), *brought[50];

    for (size_t l = 0; l < COUNT_OF(brought); l++)
        brought[l] = limiter_of(table, name_of(l % 2 ? ":named" : "=1000/1d", (int)l), "1000/1d");
    for (int i = 0; i < 400; i++) /* half of the table would be 2400 */
        spend(login, name_of("login", i), NOW);
    flood(brought, COUNT_OF(brought), 200, 1, NOW);
    assert_int_equal(count_freed(login, "login", 400, NOW + 200), 0);
    for (int i = 0; i < 10000; i++) {
        char limit[32];
        snprintf(limit, sizeof(limit), "gcra 1/%dm", 1 << i % 20);
        (void)carry(table, limit, name_of("flood", i), NOW + 200);
    }
    assert_int_equal(count_freed(login, "login", 400, NOW + 200), 0);
}

/* --------------------------------------------------------------------- bans ---- */

static void ban(struct weir_table *table, const char *rule, const char *key, weir_time now,
                weir_time until)
{
    weir__ban_put(table, weir__ban_tag(table, rule, key_of(key)), rule, key_of(key), now, until);
}

/* Under one rule, a ban that has long to go outlasts new ones that are short. */
TEST(test_T2_a_flood_of_short_bans_frees_no_long_one)
{
    OWN(weir_table) *table = table_with(
        &(struct weir_table_options){ .keys = 100, .slab = 4096, .bans = 500, .guards = 4 });
    weir_time now = NOW + 23 * 60 * MINUTE;
    int out = 0;

    for (int i = 0; i < 50; i++)
        ban(table, "login", name_of("worst", i), NOW, NOW + DAY);
    for (int i = 0; i < 10000; i++)
        ban(table, "login", name_of("flood", i), now + i, now + i + MINUTE);
    for (int i = 0; i < 50; i++)
        out += weir__ban_until(table, weir__ban_tag(table, "login", key_of(name_of("worst", i))),
                               now + 10000) != 0;
    assert_int_equal(out, 50);
}

/* Bans that are over, another rule's too, go before one in force. */
TEST(test_T2_a_ban_that_is_over_goes_before_one_in_force)
{
    OWN(weir_table) *table = table_with(
        &(struct weir_table_options){ .keys = 100, .slab = 4096, .bans = 1, .guards = 4 });
    static const struct weir__ban_terms terms = {
        .length = S, .factor = 2, .longest = DAY, .forget = DAY
    };
    const char *rules[] = { "a", "b", "c", "d" };

    for (int i = 0; i < 40; i++) { /* over after a second, and remembered for a day */
        const char *rule = rules[i % 4], *key = name_of("old", i);
        weir__ban_strike(table, weir__ban_tag(table, rule, key_of(key)), rule, key_of(key), &terms,
                         NOW);
    }
    for (int i = 0; i < 120; i++)
        ban(table, "in force", name_of("new", i), NOW + 2 * S, NOW + DAY);
    assert_int_equal(stats_of(table, NOW + 3 * S).bans, 120);
    assert_true(stats_of(table, NOW + 3 * S).bans_lost < 40);
}

/* -------------------------------------------------------------- the bound ---- */

/* To have a spent key forgotten, every key of the limit within reach must be as spent. */
TEST(test_T2_a_spent_key_costs_as_much_as_all_within_reach)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1);
        struct weir_limiter *login = limiter_of(table, "login", "gcra 5/50s");
        int64_t spent = 0;
        spend(login, "victim", NOW);
        for (int i = 0; i < 5000; i++) /* keys with one unit left are not enough, however many */
            take(login, name_of("nearly", i), 4, NOW + 1);
        assert_int_equal(left(login, "victim", NOW + 2), 0);
        while (left(login, "victim", NOW + 2) == 0 && spent < 10000)
            spent += 5 * take(login, name_of("flood", (int)spent), 5, NOW + 2).allowed;
        assert_in_range(spent, 5 * (WEIR__WINDOW_SLOTS - 1), 9999);
    }
}

/* -------------------------------------------------------------- the model ---- */

#define LIMITERS 6
#define KEYS     500

/* A table of one group whose keys are all known by name. */
struct world {
    struct weir_table *table;
    struct weir_limiter *limiters[LIMITERS];
    int n;
    uint64_t tags[LIMITERS][KEYS];
};

static uint64_t tag_in(const struct world *w, uint64_t slot)
{
    return weir__load(weir__slot_at(&w->table->keys, 0, slot));
}

/* Whose key it is that lies in the slot. */
static bool find_owner(const struct world *w, uint64_t slot, int *limiter, int *key)
{
    uint64_t tag = tag_in(w, slot);

    for (*limiter = 0; *limiter < w->n; ++*limiter)
        for (*key = 0; *key < KEYS; ++*key)
            if (w->tags[*limiter][*key] == tag)
                return true;
    return false;
}

/* What is known about the keys within reach of a new one, from peeks alone. */
struct view {
    uint64_t slots[WEIR__WINDOW_SLOTS];
    int limiters[WEIR__WINDOW_SLOTS], counts[LIMITERS];
    struct weir_decision peeks[WEIR__WINDOW_SLOTS];
    bool idle, empty;
};

static struct view look_around(const struct world *w, uint64_t first, weir_time now)
{
    struct view v = { .idle = false };
    int key;

    for (size_t i = 0; i < WEIR__WINDOW_SLOTS && !v.empty; i++) {
        v.slots[i] = (first + i) % WEIR__GROUP_SLOTS;
        v.empty = tag_in(w, v.slots[i]) == 0;
        if (v.empty)
            break;
        assert_true(find_owner(w, v.slots[i], &v.limiters[i], &key));
        v.peeks[i] = peek(w->limiters[v.limiters[i]], name_of("k", key), 0, now);
        v.counts[v.limiters[i]]++;
        v.idle = v.idle || v.peeks[i].reset == 0;
    }
    return v;
}

static int64_t used_of(const struct weir_decision *d)
{
    return d->limit - d->remaining;
}

/* May the key in place i make room for a new one of limiter `own`? */
static bool may_go(const struct view *v, size_t i, int own)
{
    int most = 0, l = v->limiters[i];

    if (v->idle)
        return v->peeks[i].reset == 0;
    for (int k = 0; k < LIMITERS; k++)
        most = v->counts[k] > most ? v->counts[k] : most;
    if (v->counts[l] < most || (v->counts[own] == most && l != own))
        return false;
    for (size_t k = 0; k < WEIR__WINDOW_SLOTS; k++)
        if (v->limiters[k] == l && (used_of(&v->peeks[k]) < used_of(&v->peeks[i]) ||
                                    (used_of(&v->peeks[k]) == used_of(&v->peeks[i]) &&
                                     v->peeks[k].reset < v->peeks[i].reset)))
            return false;
    return true;
}

/* A new key comes: whoever goes, the model agrees.  True: somebody went. */
static bool check_arrival(struct world *w, int own, int key, int64_t cost, weir_time now)
{
    struct weir__home home = weir__home_of(w->limiters[own], key_of(name_of("k", key)));
    struct view v = look_around(w, home.first, now);
    uint64_t before[WEIR__GROUP_SLOTS];
    int gone = 0;

    for (uint64_t i = 0; i < WEIR__GROUP_SLOTS; i++)
        before[i] = tag_in(w, i);
    assert_true(take(w->limiters[own], name_of("k", key), cost, now).allowed);
    w->tags[own][key] = home.tag;
    for (uint64_t i = 0; i < WEIR__GROUP_SLOTS; i++) {
        if (before[i] == 0 || before[i] == tag_in(w, i))
            continue;
        size_t place = (i + WEIR__GROUP_SLOTS - home.first) % WEIR__GROUP_SLOTS;
        assert_true(place < WEIR__WINDOW_SLOTS && !v.empty && may_go(&v, place, own));
        gone++;
    }
    assert_int_equal(gone, !v.empty);
    return !v.empty;
}

static int run_world(struct world *w, weir_time step)
{
    weir_time now = NOW;
    int evictions = 0;

    for (int i = 0; i < 2 * KEYS; i++) {
        int own = int_between(0, int_between(0, w->n - 1)), key = int_between(0, KEYS - 1);
        struct weir_limiter *limiter = w->limiters[own];
        struct weir_decision d = peek(limiter, name_of("k", key), 0, now);
        uint64_t tag = weir__home_of(limiter, key_of(name_of("k", key))).tag;
        bool there = false;
        for (uint64_t s = 0; s < WEIR__GROUP_SLOTS; s++)
            there = there || tag_in(w, s) == tag;
        int64_t cost = between(1, d.limit);
        if (!there)
            evictions += check_arrival(w, own, key, cost, now);
        else
            take(limiter, name_of("k", key), cost, now);
        now += one_in(3) ? between(0, step) : 0;
    }
    return evictions;
}

TEST(test_T2_a_plain_model_names_the_key_that_has_to_go)
{
    static const char *const wide[] = {
        "gcra 5/60s",           "sliding-log 7/50s",        "fixed-window 3/100s",
        "sliding-window 9/30s", "token-bucket 1000/10000s", "sliding-log 700/90s"
    };
    static const char *const narrow[] = { "gcra 5/60s",  "token-bucket 1000/10000s",
                                          "gcra 1/100s", "sliding-log 7/50s",
                                          "gcra 2/8s",   "leaky-bucket 4/40s" };

    for (int round = 0; round < 8; round++) {
        struct world w = { .table = private_table(round % 2, 1), .n = 1 + round % LIMITERS };
        random_state = (uint64_t)round;
        for (int l = 0; l < w.n; l++)
            w.limiters[l] =
                limiter_of(w.table, name_of("limiter", l), (round % 2 ? narrow : wide)[l]);
        assert_true(run_world(&w, S >> (2 * (round / 2))) > 100);
        weir_table_destroy(w.table);
    }
}
