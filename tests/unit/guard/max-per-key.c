/* Permits by key: at most n in progress for each (L1). */
#include "unit/test.h"

#include "unit/guarding.h"

#include <signal.h>
#include <sys/wait.h>

#ifdef SANITIZED
#define MANY 20000 /* minutes otherwise */
#else
#define MANY 1000000
#endif

static struct weir_decision enter_as(struct weir_guard *guard, const char *key, weir_time now,
                                     struct weir_permit *permit)
{
    struct weir_ask ask = ask_of(key, 1, now);
    struct weir_decision d;

    memset(&d, 0xa5, sizeof(d));
    bool allowed = weir_enter(guard, &ask, permit, &d);
    assert_int_equal(allowed, d.allowed);
    return d;
}

static enum weir_reason why_not_as(struct weir_guard *guard, const char *key, weir_time now)
{
    struct weir_permit permit;
    struct weir_decision d = enter_as(guard, key, now, &permit);

    if (d.allowed)
        assert_true(weir_exit(guard, &permit, WEIR_IGNORED, now));
    return d.reason;
}

#define assert_info(guard, now, ...)                       \
    do {                                                   \
        struct weir_guard_info info = info_of(guard, now); \
        assert_fields(info, __VA_ARGS__);                  \
    } while (0)

static int64_t out(struct weir_guard *guard, const char *key)
{
    return weir_guard_key_in_flight(guard, key_of(key));
}

TEST(test_L1_each_key_has_its_own_permits)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 64);
        struct weir_guard *g =
            guard_of(table, "g", &(struct weir_guard_options){ .max = 7, .max_per_key = 3 });
        struct weir_permit ann[3], bob[3], more;
        for (int i = 0; i < 3; i++) {
            struct weir_decision d = enter_as(g, "ann", NOW, &ann[i]);
            assert_fields(d, (allowed, true), (limit, 3), (remaining, 2 - i));
        }
        struct weir_decision d = enter_as(g, "ann", NOW, &more);
        assert_fields(d, (allowed, false), (reason, WEIR_KEY_BUSY), (limit, 3), (remaining, 0));
        assert_true(d.retry > 0 && d.retry < S);
        assert_int_equal(more.word, 0);
        for (int i = 0; i < 3; i++)
            assert_true(enter_as(g, "bob", NOW, &bob[i]).allowed);
        assert_info(g, NOW, (in_flight, 6), (refused_key_busy, 1), (refused_busy, 0));
        assert_true(weir_exit(g, &ann[1], WEIR_SUCCEEDED, NOW + MS));
        assert_int_equal(out(g, "ann"), 2);
        assert_true(enter_as(g, "ann", NOW, &ann[1]).allowed);
        for (int i = 0; i < 3; i++) {
            assert_true(weir_exit(g, &ann[i], WEIR_SUCCEEDED, NOW + MS));
            assert_true(weir_exit(g, &bob[i], WEIR_FAILED, NOW + MS));
        }
        assert_int_equal(out(g, "ann") + out(g, "bob"), 0);
        assert_info(g, NOW, (in_flight, 0), (succeeded, 4), (failed, 3));
    }
}

TEST(test_L1_the_guards_own_limit_holds_besides)
{
    A_GUARD(g, .max = 4, .max_per_key = 3);
    struct weir_permit p[4];
    for (int i = 0; i < 4; i++)
        assert_true(enter_as(g, i < 2 ? "ann" : "bob", NOW, &p[i]).allowed);
    assert_int_equal(why_not_as(g, "bob", NOW), WEIR_BUSY); /* it has one left, the guard none */
    assert_int_equal(out(g, "bob"), 2);
    assert_int_equal(why_not_as(g, "new", NOW), WEIR_BUSY);
    assert_int_equal(keys_of(table), 2); /* a key that is refused gets no slot */
}

TEST(test_L1_a_bound_by_key_alone_does_not_bound_all_of_them)
{
    A_GUARD(g, .max_per_key = 3);
    struct weir_guard_info info = info_of(g, NOW);
    assert_fields(info.options, (max, 16384), (max_per_key, 3));
}

TEST(test_L1_without_a_key_only_the_guards_own_limit_counts)
{
    A_GUARD(g, .max = 3, .max_per_key = 1);
    struct weir_permit p[3];
    for (int i = 0; i < 3; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    assert_int_equal(why_not(g, NOW), WEIR_BUSY);
    assert_int_equal(keys_of(table), 0);
    for (int i = 0; i < 3; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW));
}

TEST(test_L1_a_cost_takes_as_many)
{
    A_GUARD(g, .max = 100, .max_per_key = 10);
    struct weir_ask ask = ask_of("ann", 7, NOW);
    struct weir_permit p, q;
    struct weir_decision d;
    assert_true(weir_enter(g, &ask, &p, &d));
    assert_int_equal(d.remaining, 3);
    ask.cost = 4;
    assert_false(weir_enter(g, &ask, &q, &d));
    assert_fields(d, (reason, WEIR_KEY_BUSY), (remaining, 3));
    ask.cost = 3;
    assert_true(weir_enter(g, &ask, &q, &d));
    assert_int_equal(out(g, "ann"), 10);
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    assert_int_equal(out(g, "ann"), 3);
    ask.cost = 11; /* can never pass */
    assert_false(weir_enter(g, &ask, &p, &d));
    assert_fields(d, (reason, WEIR_TOO_BIG), (retry, WEIR_NEVER), (limit, 10));
    assert_true(weir_exit(g, &q, WEIR_SUCCEEDED, NOW));
}

TEST(test_L1_a_large_ask_is_told_what_a_smaller_one_could_have)
{
    A_GUARD(g, .max = 6, .max_per_key = 4);
    struct weir_ask ann = ask_of("ann", 2, NOW), bob = ask_of("bob", 3, NOW);
    struct weir_permit p, q, r;
    struct weir_decision d;
    assert_true(weir_enter(g, &ann, &p, &d));
    assert_true(weir_enter(g, &bob, &q, &d));
    ann.cost = 3;
    assert_false(weir_enter(g, &ann, &r, &d));
    assert_fields(d, (reason, WEIR_KEY_BUSY), (remaining, 1), (limit, 4));
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    assert_true(weir_exit(g, &q, WEIR_SUCCEEDED, NOW));
}

TEST(test_L1_what_is_kept_for_others_is_not_left_to_a_key)
{
    A_GUARD(g, .max = 6, .max_per_key = 4, .shed = true);
    struct weir_ask ann = ask_of("ann", 2, NOW);
    struct weir_permit p, q;
    struct weir_decision d;
    assert_true(weir_enter(g, &ann, &p, &d));
    ann.cost = 3;
    assert_false(weir__guard_enter(g, &ann, &(struct weir__enter_how){ .behind = true }, &q, &d));
    assert_fields(d, (reason, WEIR_KEY_BUSY), (remaining, 0));
    for (int priority = 0; priority < WEIR__PRIORITIES; priority++)
        g->record->shed.spares[0][priority] = 3;
    assert_false(weir_enter(g, &ann, &q, &d));
    assert_fields(d, (reason, WEIR_KEY_BUSY), (remaining, 1));
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
}

/* 100 asks a second of ten keys, each for 40 ms, and 2,000 of one that has all that it may have. */
TEST(test_G7_a_key_that_has_its_permits_sheds_nobody)
{
    A_GUARD(g, .max = 8, .max_per_key = 2, .shed = true);
    struct weir_permit held[2], all[6], p[4] = { 0 };
    weir_time now = NOW;
    int64_t refused = 0;

    for (int i = 0; i < 2; i++)
        assert_true(enter_as(g, "flood", now, &held[i]).allowed);
    for (int i = 0; i < 6; i++) /* for a moment all permits are out */
        assert_true(enter_at(g, now, &all[i]));
    for (int i = 0; i < 200; i++, now += MS)
        (void)why_not_as(g, i % 2 ? "flood" : "other", now);
    for (int i = 0; i < 6; i++)
        assert_true(weir_exit(g, &all[i], WEIR_SUCCEEDED, now));
    for (int i = 0; i < 10000; i++, now += MS) {
        assert_int_not_equal(why_not_as(g, "flood", now), WEIR_GRANTED);
        assert_int_not_equal(why_not_as(g, "flood", now), WEIR_GRANTED);
        if (i % 10 != 0)
            continue;
        struct weir_permit *mine = &p[i / 10 % 4];
        char key[8];
        snprintf(key, sizeof(key), "k%d", i / 10 % 10);
        (void)weir_exit(g, mine, WEIR_SUCCEEDED, now);
        bool in = enter_as(g, key, now, mine).allowed;
        refused += i > 2000 && !in;
    }
    assert_int_equal(refused, 0);
}

TEST(test_L1_a_permit_is_given_back_once_whoever_has_copies)
{
    A_GUARD(g, .max = 9, .max_per_key = 2);
    struct weir_permit p, copy, other;
    assert_true(enter_as(g, "ann", NOW, &p).allowed);
    copy = p;
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    assert_true(enter_as(g, "bob", NOW, &other).allowed);
    struct weir_permit again = copy;
    assert_false(weir_exit(g, &again, WEIR_SUCCEEDED, NOW));
    assert_int_equal(out(g, "bob"), 1);
    assert_false(weir_permit_renew(g, &copy, NOW));
    assert_true(weir_exit(g, &other, WEIR_SUCCEEDED, NOW));
    assert_int_equal(out(g, "ann") + out(g, "bob"), 0);
}

TEST(test_G1_a_lease_by_key_ends_and_can_be_renewed)
{
    A_GUARD(g, .max = 9, .max_per_key = 1, .lease = 10 * S);
    struct weir_permit p, q;
    assert_true(enter_as(g, "ann", NOW, &p).allowed);
    assert_int_equal(why_not_as(g, "ann", NOW + 9 * S), WEIR_KEY_BUSY);
    assert_true(weir_permit_renew(g, &p, NOW + 9 * S));
    assert_int_equal(why_not_as(g, "ann", NOW + 18 * S), WEIR_KEY_BUSY);
    assert_true(enter_as(g, "ann", NOW + 20 * S, &q).allowed);
    assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 20 * S));
    assert_int_equal(out(g, "ann"), 1);
    assert_true(weir_exit(g, &q, WEIR_SUCCEEDED, NOW + 20 * S));
    assert_int_equal(out(g, "ann"), 0);
}

static void die_as(const char *path, const char *key, int n, bool leased)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct weir_table *table = attach(path);
        struct weir_guard *g = weir_guard_find(table, "g");
        struct weir_ask ask = ask_of(key, 1, NOW);
        struct weir_permit p;
        struct weir_decision d;
        for (int i = 0; i < n; i++)
            if (!weir__guard_enter(g, &ask, &(struct weir__enter_how){ .leased = leased }, &p, &d))
                _exit(1);
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

TEST(test_G1_permits_by_key_of_a_dead_process_come_back_within_a_sweep)
{
    const struct weir_guard_options o = { .max = 50, .max_per_key = 3, .lease = 600 * S };
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 64 });
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_permit mine;
    assert_true(enter_as(g, "ann", NOW, &mine).allowed);
    die_as(path, "ann", 2, false);
    die_as(path, "bob", 3, false);
    assert_int_equal(why_not_as(g, "ann", NOW), WEIR_KEY_BUSY);
    assert_int_equal(why_not_as(g, "bob", NOW + 450 * MS), WEIR_GRANTED);
    assert_int_equal(out(g, "ann"), 1);
    assert_int_equal(out(g, "bob"), 0);
    assert_info(g, NOW + S, (in_flight, 1), (reclaimed, 5));
    assert_true(weir_exit(g, &mine, WEIR_SUCCEEDED, NOW + S));
    die_as(path, "eve", 3, true); /* only time takes these back */
    assert_int_equal(why_not_as(g, "eve", NOW + 500 * S), WEIR_KEY_BUSY);
    assert_int_equal(why_not_as(g, "eve", NOW + 601 * S), WEIR_GRANTED);
}

TEST(test_L1_a_key_with_permits_out_makes_no_room)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 200); /* one group of 256 slots */
        struct weir_guard *g =
            guard_of(table, "g", &(struct weir_guard_options){ .max_per_key = 2 });
        struct weir_limiter *l = limiter_of(table, "l", "1/1h");
        struct weir_permit p[100];
        char key[16];
        for (int i = 0; i < 100; i++) {
            snprintf(key, sizeof(key), "k%d", i);
            assert_true(enter_as(g, key, NOW, &p[i]).allowed);
        }
        for (int i = 0; i < 2000; i++) {
            snprintf(key, sizeof(key), "flood%d", i);
            (void)take(l, key, 1, NOW);
        }
        assert_true(stats_of(table, -1).evicted_early > 1000);
        for (int i = 0; i < 100; i++) {
            snprintf(key, sizeof(key), "k%d", i);
            assert_int_equal(out(g, key), 1);
            assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW));
            assert_int_equal(out(g, key), 0);
        }
        for (int i = 0; i < MANY; i++) { /* and other keys make room for these */
            snprintf(key, sizeof(key), "new%d", i);
            assert_int_equal(why_not_as(g, key, NOW), WEIR_GRANTED);
        }
    }
}

TEST(test_L1_without_room_for_its_count_a_new_key_is_refused)
{
    OWN(weir_table) *table = private_table(false, 100);
    struct weir_guard *g = guard_of(table, "g", &(struct weir_guard_options){ .max_per_key = 2 });
    static struct weir_permit p[300];
    int in = 0, no_room = 0;
    char key[16];
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        struct weir_decision d = enter_as(g, key, NOW, &p[in]);
        in += d.allowed;
        no_room += d.reason == WEIR_NO_ROOM;
    }
    assert_int_equal(in + no_room, 300);
    assert_true(in > 180 && in <= 224); /* an eighth of the slots is left */
    assert_int_equal(stats_of(table, -1).no_room, no_room);
    assert_info(g, NOW, (in_flight, in), (refused_key_busy, no_room));
    for (int i = 0; i < in; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW));
    for (int i = 0; i < 300; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(why_not_as(g, key, NOW), WEIR_GRANTED);
    }
}

/* Keys that find few slots beside those of permits are not refused, and nobody waits for a slot. */
TEST(test_R6_limits_work_on_when_permits_have_nearly_every_slot)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 100);
        struct weir_guard *g =
            guard_of(table, "g", &(struct weir_guard_options){ .max_per_key = 2 });
        struct weir_limiter *one = limiter_of(table, "one", "gcra 5/1m"),
                            *two = limiter_of(table, "two", "sliding-log 5/1m");
        static struct weir_permit p[300];
        struct weir_decision d;
        char key[16];
        for (int i = 0; i < 300; i++) {
            snprintf(key, sizeof(key), "k%d", i);
            (void)enter_as(g, key, NOW, &p[i]);
        }
        int64_t forgotten = stats_of(table, -1).evicted_early;
        for (int i = 0; i < 50; i++) {
            snprintf(key, sizeof(key), "new%d", i);
            struct weir_item items[] = { { one, ask_of(key, 1, NOW) },
                                         { two, ask_of(key, 1, NOW) } };
            assert_true(weir_take(one, &items[0].ask, &d));
            assert_true(weir_take(two, &items[1].ask, &d));
            assert_true(weir_take_all(items, 2, &d));
            assert_true(weir_peek(one, &items[0].ask, &d));
        }
        assert_true(stats_of(table, -1).evicted_early > forgotten);
    }
}

static void enter_many(struct weir_guard *guard, int n)
{
    struct weir_permit permit;
    char key[16];

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "p%d", i);
        (void)enter_as(guard, key, NOW, &permit);
    }
}

/* How many of the keys pass a second time under a limit of one. */
static int count_again(struct weir_limiter *limiter, int n, bool at_once)
{
    int again = 0;
    char key[16];

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        again +=
            (!at_once || take(limiter, key, 1, NOW).allowed) && take(limiter, key, 1, NOW).allowed;
    }
    return again;
}

TEST(test_T2_permits_by_key_leave_slots_to_limits)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1000);
        struct weir_limiter *l = limiter_of(table, "l", "1/1h");
        enter_many(guard_of(table, "g", &(struct weir_guard_options){ .max_per_key = 1 }), 3000);
        assert_int_equal(count_again(l, 1000, true), 0);
    }
}

TEST(test_T2_a_flood_of_permits_by_key_drives_out_no_other_key)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table = private_table(narrow, 1000);
        struct weir_limiter *l = limiter_of(table, "l", "1/1h");
        char key[16];
        for (int i = 0; i < 100; i++) {
            snprintf(key, sizeof(key), "k%d", i);
            assert_true(take(l, key, 1, NOW).allowed);
        }
        enter_many(guard_of(table, "g", &(struct weir_guard_options){ .max_per_key = 1 }), 3000);
        assert_int_equal(count_again(l, 100, false), 0);
    }
}

TEST(test_L1_the_bound_changes_while_permits_are_out)
{
    A_GUARD(g, .max = 100);
    struct weir_permit plain, p[5];
    struct weir_error error;
    assert_true(enter_as(g, "ann", NOW, &plain).allowed); /* before there is a bound by key */
    struct weir_guard_options o = { .max = 100, .max_per_key = 5 };
    assert_ok(weir_guard_change(g, &o, &error));
    for (int i = 0; i < 5; i++)
        assert_true(enter_as(g, "ann", NOW, &p[i]).allowed);
    o.max_per_key = 2;
    assert_ok(weir_guard_change(g, &o, &error));
    assert_int_equal(why_not_as(g, "ann", NOW), WEIR_KEY_BUSY);
    for (int i = 0; i < 3; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW));
    assert_int_equal(why_not_as(g, "ann", NOW), WEIR_KEY_BUSY);
    o.max_per_key = 0;
    assert_ok(weir_guard_change(g, &o, &error));
    assert_int_equal(why_not_as(g, "ann", NOW), WEIR_GRANTED);
    assert_true(weir_exit(g, &p[3], WEIR_SUCCEEDED, NOW));
    o.max_per_key = 2;
    assert_ok(weir_guard_change(g, &o, &error));
    assert_int_equal(out(g, "ann"), 1);
    assert_true(weir_exit(g, &p[4], WEIR_SUCCEEDED, NOW));
    assert_true(weir_exit(g, &plain, WEIR_SUCCEEDED, NOW));
    assert_int_equal(out(g, "ann"), 0);
    assert_int_equal(info_of(g, NOW).in_flight, 0);
}

/* Whatever it asks for; it is told why it would be. */
TEST(test_L1_in_shadow_an_ask_that_is_too_big_is_let_in)
{
    A_GUARD(g, .max = 4, .max_per_key = 2, .mode = WEIR_SHADOW);
    struct weir_permit permit;
    struct weir_decision d;
    for (int64_t cost = 3; cost < 6; cost++) {
        struct weir_ask ask = { .key = { "a", 1 }, .cost = cost, .now = NOW };
        assert_true(weir_enter(g, &ask, &permit, &d));
        assert_fields(d, (allowed, 1), (reason, WEIR_TOO_BIG), (retry, 0));
        assert_int_equal(weir_exit(g, &permit, WEIR_SUCCEEDED, NOW), cost <= 4);
    }
    assert_info(g, NOW, (shadow_refused, 3), (in_flight, 0));
}

TEST(test_L1_in_shadow_all_are_counted_and_nobody_is_refused)
{
    A_GUARD(g, .max = 100, .max_per_key = 2, .mode = WEIR_SHADOW);
    struct weir_permit p[5];
    for (int i = 0; i < 5; i++) {
        struct weir_decision d = enter_as(g, "ann", NOW, &p[i]);
        assert_fields(d, (allowed, true), (reason, i < 2 ? WEIR_GRANTED : WEIR_KEY_BUSY));
    }
    assert_int_equal(out(g, "ann"), 5);
    assert_info(g, NOW, (shadow_refused, 3), (refused_key_busy, 0));
    for (int i = 0; i < 5; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW));
    assert_int_equal(out(g, "ann"), 0);
}

TEST(test_G4_a_refusal_by_key_gives_its_probe_back)
{
    A_GUARD(g, .max = 100, .max_per_key = 1,
            .breaker = {
                .errors = 1, .min_calls = 1, .open_for = S, .probes = 1, .jitter_percent = -1 });
    struct weir_permit ann;
    assert_true(enter_as(g, "ann", NOW, &ann).allowed);
    work(g, NOW, MS, WEIR_FAILED);
    assert_int_equal(why_not_as(g, "bob", NOW + MS), WEIR_OPEN);
    assert_int_equal(why_not_as(g, "ann", NOW + 2 * S), WEIR_KEY_BUSY);
    assert_true(work(g, NOW + 2 * S, MS, WEIR_SUCCEEDED)); /* the probe is there for others */
    assert_true(weir_exit(g, &ann, WEIR_SUCCEEDED, NOW + 3 * S));
}

TEST(test_L1_a_guard_that_goes_leaves_no_counts)
{
    OWN(weir_table) *table = private_table(false, 200);
    struct weir_guard *g = guard_of(table, "g", &(struct weir_guard_options){ .max_per_key = 2 });
    struct weir_permit p;
    char key[16];
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_true(enter_as(g, key, NOW, &p).allowed);
    }
    assert_int_equal(stats_of(table, NOW).live, 50);
    weir_guard_drop(g);
    for (int i = 0; i < 20; i++)
        weir_table_tend(table, NOW + i * 10 * S);
    assert_int_equal(stats_of(table, -1).guards, 0);
    assert_int_equal(stats_of(table, NOW).live, 0); /* they make room */
}

/* Random enters, exits, renewals and waits beside a plain model. */
TEST(test_L1_as_a_plain_model_says)
{
    enum { KEYS = 6, MAX = 12, BY_KEY = 3 };
    static const char *const names[KEYS] = { "a", "b", "c", "d", "e", "" };
    uint64_t seed = 5;

    for (int run = 0; run < 40; run++) {
        OWN(weir_table) *table = private_table(run % 2, 16);
        struct weir_guard *g = guard_of(
            table, "g",
            &(struct weir_guard_options){ .max = MAX, .max_per_key = BY_KEY, .lease = 600 * S });
        struct weir_permit permits[MAX];
        int keys[MAX], n = 0, of[KEYS] = { 0 };
        for (int step = 0; step < 500; step++) {
            int key = (int)(random64(&seed) % KEYS),
                which = n ? (int)(random64(&seed) % (uint64_t)n) : 0;
            if (random64(&seed) % 2) {
                bool keyed = key < KEYS - 1, fits = n < MAX && (!keyed || of[key] < BY_KEY);
                struct weir_permit permit;
                struct weir_decision d = enter_as(g, names[key], NOW + step, &permit);
                assert_int_equal(d.allowed, fits);
                if (fits) {
                    of[key]++;
                    permits[n] = permit;
                    keys[n++] = key;
                } else {
                    assert_int_equal(d.reason,
                                     keyed && of[key] >= BY_KEY ? WEIR_KEY_BUSY : WEIR_BUSY);
                }
            } else if (n > 0 && random64(&seed) % 4 == 0) {
                assert_true(weir_permit_renew(g, &permits[which], NOW + step));
            } else if (n > 0) {
                assert_true(weir_exit(g, &permits[which], WEIR_SUCCEEDED, NOW + step));
                of[keys[which]]--;
                permits[which] = permits[--n];
                keys[which] = keys[n];
            }
            for (int k = 0; k < KEYS - 1; k++)
                assert_int_equal(out(g, names[k]), of[k]);
            assert_int_equal(weir__get(&g->record->in_flight), n);
        }
    }
}

TEST(test_L1_an_ask_can_have_a_lower_bound)
{
    OWN(weir_table) *table = private_table(false, 64);
    struct weir_guard *g =
        guard_of(table, "g", &(struct weir_guard_options){ .max = 9, .max_per_key = 3 });
    struct weir_ask ask = ask_of("ann", 1, NOW);
    struct weir_permit permits[3], none;
    struct weir_decision d;
    assert_true(weir_enter_within(g, &ask, 2, &permits[0], &d));
    assert_fields(d, (limit, 2), (remaining, 1));
    assert_true(weir_enter(g, &ask, &permits[1], &d)); /* all count, whatever their bound */
    assert_false(weir_enter_within(g, &ask, 2, &none, &d));
    assert_fields(d, (reason, WEIR_KEY_BUSY), (limit, 2));
    assert_true(weir_enter_within(g, &ask, 100, &permits[2], &d)); /* the guard's own holds too */
    assert_false(weir_enter_within(g, &ask, 100, &none, &d));
    assert_fields(d, (reason, WEIR_KEY_BUSY), (limit, 3));
    assert_int_equal(out(g, "ann"), 3);
}

GROUP(make_folder, remove_folder)
