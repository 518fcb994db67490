/* Leases: what becomes of permits whose holder is late or dead (G1). */
#include "unit/test.h"

#include "unit/guarding.h"

#include <signal.h>
#include <sys/wait.h>

TEST(test_a_permit_word_says_what_was_put_in)
{
    uint64_t seed = 1;

    for (int i = 0; i < 10000; i++) {
        uint32_t weight = 1 + (uint32_t)(random64(&seed) % 16384),
                 holder = (uint32_t)(random64(&seed) % 1024);
        uint32_t probe = (uint32_t)(random64(&seed) % 64);
        uint64_t word = weir__permit_word((weir_time)(random64(&seed) >> 1), weight, holder, probe);
        assert_int_equal(weir__permit_weight(word), weight);
        assert_int_equal(weir__permit_holder(word), holder);
        assert_int_equal(weir__permit_probe(word), probe);
        assert_int_equal(weir__permit_freed(word), 0);
    }
}

TEST(test_G1_a_lease_ends_and_a_late_exit_changes_nothing)
{
    A_GUARD(g, .max = 2, .lease = 30 * S);
    struct weir_permit a, b, c;
    assert_true(enter_at(g, NOW, &a));
    assert_true(enter_at(g, NOW + 20 * S, &b));
    assert_int_equal(why_not(g, NOW + 29 * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 31 * S), WEIR_GRANTED); /* a is over */
    struct weir_guard_info info = info_of(g, NOW + 31 * S);
    assert_fields(info, (in_flight, 1), (reclaimed, 1));
    assert_fields(info.events[0], (kind, WEIR_GUARD_EVENT_RECLAIMED), (to, 1));
    assert_true(enter_at(g, NOW + 31 * S, &c));
    assert_false(weir_exit(g, &a, WEIR_SUCCEEDED, NOW + 32 * S));
    assert_int_equal(info_of(g, NOW + 32 * S).in_flight, 2);
    assert_true(weir_exit(g, &b, WEIR_SUCCEEDED, NOW + 32 * S));
    assert_true(weir_exit(g, &c, WEIR_SUCCEEDED, NOW + 32 * S));
}

TEST(test_G1_a_lease_that_is_renewed_goes_on)
{
    A_GUARD(g, .max = 1, .lease = 10 * S);
    struct weir_permit p, old;
    assert_true(enter_at(g, NOW, &p));
    for (int i = 1; i <= 10; i++) {
        old = p;
        assert_true(weir_permit_renew(g, &p, NOW + i * 8 * S));
        assert_false(weir_permit_renew(g, &old, NOW + i * 8 * S)); /* there is one of it */
        assert_int_equal(why_not(g, NOW + i * 8 * S + 7 * S), WEIR_BUSY);
    }
    assert_int_equal(why_not(g, NOW + 91 * S), WEIR_GRANTED);
    assert_false(weir_permit_renew(g, &p, NOW + 91 * S));
    assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 91 * S));
}

/* The holder did not hear that its permit was renewed, and asks again. */
TEST(test_G1_a_renewal_can_be_repeated)
{
    for (int keyed = 0; keyed < 2; keyed++) {
        A_GUARD(g, .max = 2, .max_per_key = keyed ? 2 : 0, .lease = 10 * S);
        struct weir_permit p, old, lost, next;
        assert_true(enter_at(g, NOW, &p));
        old = p;
        assert_false(weir__permit_repeat(g, &p, NOW)); /* it was not renewed */
        assert_true(weir_permit_renew(g, &p, NOW + 4 * S));
        for (int i = 0; i < 3; i++) { /* nor did it hear the next answers */
            lost = old;
            assert_false(weir_permit_renew(g, &lost, NOW + (5 + i) * S));
            assert_true(weir__permit_repeat(g, &lost, NOW + (5 + i) * S));
        }
        assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 8 * S)); /* there is one of it */
        p = lost;
        assert_true(weir_permit_renew(g, &p, NOW + 9 * S));
        assert_false(weir__permit_follow(g, &old)); /* one renewal is followed, not two */
        assert_true(weir__permit_follow(g, &lost));
        assert_true(weir_exit(g, &lost, WEIR_SUCCEEDED, NOW + 9 * S));
        lost = p;
        for (int i = 0; i < 8; i++) { /* others in its seat are not it */
            assert_true(enter_at(g, NOW + 9 * S, &next));
            assert_int_equal(next.seat, p.seat);
            assert_false(weir__permit_follow(g, &lost));
            assert_true(weir_permit_renew(g, &next, NOW + 9 * S));
            assert_false(weir__permit_follow(g, &lost));
            assert_true(weir_exit(g, &next, WEIR_SUCCEEDED, NOW + 9 * S));
        }
        assert_int_equal(info_of(g, NOW + 9 * S).in_flight, 0);
    }
}

static bool enter_for(struct weir_guard *g, const char *key, weir_time now,
                      struct weir_permit *permit)
{
    struct weir_decision d;

    return weir_enter(g, &(struct weir_ask){ .key = key_of(key), .now = now }, permit, &d);
}

/* A seat counts its uses modulo 2048. */
TEST(test_G1_a_used_permit_is_not_the_one_2048_uses_later)
{
    for (int keyed = 0; keyed < 2; keyed++) {
        A_GUARD(g, .max = 1, .max_per_key = keyed, .lease = 3600 * S);
        struct weir_permit used[3], p, renewed;
        assert_true(enter_for(g, "ann", NOW, &p));
        for (int i = 0; i < 3; i++) { /* as it entered, and renewed once and twice */
            used[i] = p;
            assert_true(i == 2 || weir_permit_renew(g, &p, NOW + (i + 1) * S));
        }
        assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 2 * S));
        for (int i = 0; i < 2047; i++) {
            assert_true(enter_for(g, "ann", NOW + 3 * S, &p));
            assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 3 * S));
        }
        assert_true(enter_for(g, "bob", NOW + 4 * S, &p));
        assert_int_equal(p.seat, used[0].seat);
        assert_true(weir__permit_is_same(p.word, used[0].word));
        for (int n = 0; n < 3; n++) {
            for (int i = 0; i < 3; i++) {
                renewed = used[i];
                assert_false(weir__permit_follow(g, &renewed));
                assert_false(weir__permit_repeat(g, &renewed, NOW + 5 * S));
            }
            renewed = p;
            assert_true(weir_permit_renew(g, &p, NOW + (5 + n) * S));
            assert_true(weir__permit_follow(g, &renewed));
        }
        assert_true(weir_exit(g, &renewed, WEIR_SUCCEEDED, NOW + 8 * S));
        assert_int_equal(info_of(g, NOW + 8 * S).in_flight, 0);
        assert_true(enter_for(g, "ann", NOW + 8 * S, &p)); /* nothing is left of its key */
    }
}

static void set_lease(struct weir_guard *g, weir_time lease)
{
    assert_ok(weir_guard_change(g, &(struct weir_guard_options){ .max = 1, .lease = lease }, NULL));
}

TEST(test_G1_a_shorter_lease_does_not_end_permits_that_are_out)
{
    A_GUARD(g, .max = 1, .lease = 60 * S);
    struct weir_permit p, after;
    assert_true(enter_at(g, NOW, &p));
    set_lease(g, S);
    for (int i = 1; i < 60; i++)
        assert_int_equal(why_not(g, NOW + i * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 61 * S), WEIR_GRANTED);
    assert_true(enter_at(g, NOW + 70 * S, &after)); /* all of before are over by now */
    assert_int_equal(why_not(g, NOW + 70 * S + 900 * MS), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 72 * S), WEIR_GRANTED);
}

TEST(test_G1_a_longer_lease_that_no_sweep_has_seen_is_kept_too)
{
    A_GUARD(g, .max = 1, .lease = S);
    struct weir_permit p;
    assert_int_equal(why_not(g, NOW), WEIR_GRANTED);
    set_lease(g, 60 * S);
    assert_true(enter_at(g, NOW + MS, &p));
    set_lease(g, S);
    assert_int_equal(why_not(g, NOW + 3 * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 59 * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 61 * S), WEIR_GRANTED);
}

TEST(test_G4_a_probe_that_is_lost_comes_back_with_its_lease)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .lease = 10 * S,
        .breaker = { .errors = 1, .min_calls = 1, .open_for = S, .probes = 1, .jitter_percent = -1 }
    };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_permit lost;
    work(g, NOW, MS, WEIR_FAILED);
    assert_true(enter_at(g, NOW + 2 * S, &lost));
    assert_int_equal(why_not(g, NOW + 11 * S), WEIR_OPEN);
    assert_true(work(g, NOW + 13 * S, MS,
                     WEIR_SUCCEEDED)); /* stuck half-open for ever elsewhere: resilience4j #903 */
    assert_int_equal(info_of(g, NOW + 14 * S).breaker, WEIR_BREAKER_CLOSED);
    assert_false(weir_exit(g, &lost, WEIR_FAILED, NOW + 14 * S));
    assert_int_equal(info_of(g, NOW + 14 * S).breaker, WEIR_BREAKER_CLOSED);
}

/* A child that enters and dies without a word. */
static void die_with_permits(const char *path, const struct weir_guard_options *o, int n,
                             bool leased)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct weir_table *table = attach(path);
        struct weir_guard *g = guard_of(table, "g", o);
        struct weir_permit p;
        struct weir_decision d;
        for (int i = 0; i < n; i++)
            if (!weir__guard_enter(g, &(struct weir_ask){ .cost = 1, .now = NOW },
                                   &(struct weir__enter_how){ .leased = leased }, &p, &d))
                _exit(1);
        kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

TEST(test_G1_permits_of_a_process_that_died_come_back_within_a_sweep)
{
    const struct weir_guard_options o = { .max = 5, .lease = 600 * S };
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 16 });
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_permit mine;
    assert_true(enter_at(g, NOW, &mine));
    die_with_permits(path, &o, 4, false);
    assert_int_equal(why_not(g, NOW), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 450 * MS), WEIR_GRANTED);
    assert_int_equal(info_of(g, NOW + S).in_flight, 1); /* mine is still out */
    assert_int_equal(info_of(g, NOW + S).reclaimed, 4);
    assert_true(weir_exit(g, &mine, WEIR_SUCCEEDED, NOW + S));
}

TEST(test_G1_permits_that_are_leased_outlive_the_process)
{
    const struct weir_guard_options o = { .max = 5, .lease = 20 * S };
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 16 });
    struct weir_guard *g = guard_of(table, "g", &o);
    die_with_permits(path, &o, 5, true);
    assert_int_equal(why_not(g, NOW + 19 * S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 21 * S), WEIR_GRANTED);
}

TEST(test_a_child_has_a_place_of_its_own)
{
    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .path = new_path(), .keys = 16 });
    guard_of(table, "g", NULL);
    uint32_t mine = weir__holder_me(table);
    assert_int_not_equal(mine, 0);
    assert_int_equal(weir__holder_me(table), mine);
    assert_int_equal(table->holders[mine].pid, (uint32_t)getpid());
    pid_t pid = fork();
    if (pid == 0)
        _exit(weir__holder_me(table) != mine &&
                      table->holders[weir__holder_me(table)].pid == (uint32_t)getpid()
                  ? 0
                  : 1);
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A process that was killed between the gate and the seat. */
TEST(test_a_gate_that_says_more_or_less_than_the_slots_is_put_right)
{
    A_GUARD(g, .max = 10, .lease = 3600 * S);
    struct weir_permit p;
    weir_time now = NOW;
    assert_true(enter_at(g, now, &p));
    for (int off = -1; off <= 3; off += 2) {
        table->header->holders_lost++;
        g->record->in_flight += off;
        for (int i = 0; i < 12; i++)
            info_of(g, now += 300 * MS);
        assert_int_equal(g->record->in_flight, 1);
    }
    weir_exit(g, &p, WEIR_SUCCEEDED, now);
    table->header->holders_lost++;
    g->record->in_flight += 2; /* and with nothing out at all */
    for (int i = 0; i < 12; i++)
        info_of(g, now += 300 * MS);
    assert_int_equal(g->record->in_flight, 0);
    g->record->in_flight = -1; /* that cannot be, whether somebody died or not */
    for (int i = 0; i < 12; i++)
        info_of(g, now += 300 * MS);
    assert_int_equal(g->record->in_flight, 0);
    for (int i = 0; i < 30; i++) /* nobody has died lately */
        info_of(g, now += 300 * MS);
    g->record->in_flight = 1; /* that can be: somebody is just entering, and is held up */
    for (int i = 0; i < 12; i++)
        info_of(g, now += 300 * MS);
    assert_int_equal(g->record->in_flight, 1);
}

TEST(test_asks_for_several_permits_that_the_slots_do_not_have_are_put_right)
{
    A_GUARD(g, .max = 20, .lease = 3600 * S);
    struct weir_permit p;
    struct weir_decision d;
    weir_time now = NOW;
    assert_true(weir_enter(g, &(struct weir_ask){ .cost = 3, .now = now }, &p, &d));
    for (int killed = 0; killed < 2; killed++) { /* before extra is counted, or after */
        table->header->holders_lost++;
        g->record->in_flight += 5;
        g->record->extra += killed ? 4 : 0;
        for (int i = 0; i < 12; i++)
            info_of(g, now += 300 * MS);
        assert_fields(*g->record, (in_flight, 3), (extra, 2));
        assert_int_equal(weir__guard_calls(g->record), 1);
    }
    table->header->holders_lost++;
    g->record->extra -= 2; /* while it gives back */
    for (int i = 0; i < 12; i++)
        info_of(g, now += 300 * MS);
    assert_int_equal(g->record->extra, 2);
}

/* Killed between the breaker and the seat: no lease can end. */
TEST(test_G4_a_probe_that_was_lost_before_it_had_a_slot_does_not_keep_it_half_open)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard_options o = {
        .lease = 10 * S,
        .breaker = { .errors = 1, .min_calls = 1, .open_for = S, .probes = 2, .jitter_percent = -1 }
    };
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir__breaker_move move;
    uint32_t probe;
    weir_time retry;
    work(g, NOW, MS, WEIR_FAILED);
    assert_true(weir__breaker_ask(&g->plan->breaker, &g->record->breaker, NOW + 2 * S, &probe,
                                  &retry, &move));
    assert_true(work(g, NOW + 3 * S, MS, WEIR_SUCCEEDED));
    assert_int_equal(why_not(g, NOW + 13 * S), WEIR_OPEN);
    assert_true(work(g, NOW + 15 * S, MS, WEIR_SUCCEEDED)); /* two probes, anew */
    assert_true(work(g, NOW + 15 * S, MS, WEIR_SUCCEEDED));
    assert_int_equal(info_of(g, NOW + 15 * S).breaker, WEIR_BREAKER_CLOSED);
}

static void *hold_on(void *context)
{
    char byte;

    _exit(read(*(int *)context, &byte, 1) < 0); /* until the other end is closed */
}

/* Its first thread has ended, and /proc says that it is a zombie. */
TEST(test_G1_a_process_lives_as_long_as_any_of_its_threads)
{
    const struct weir_guard_options o = { .max = 1, .lease = 600 * S };
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 16 });
    struct weir_guard *g = guard_of(table, "g", &o);
    int pipes[2], told[2];
    assert_int_equal(pipe(pipes) | pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct weir_permit p;
        pthread_t thread;
        close(pipes[1]);
        if (!enter_at(guard_of(attach(path), "g", &o), NOW, &p) ||
            pthread_create(&thread, NULL, hold_on, &pipes[0]) != 0)
            _exit(1);
        close(told[1]);
        pthread_exit(NULL);
    }
    char stat_path[64], text[256], byte;
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 0);
    snprintf(stat_path, sizeof(stat_path), "/proc/%d/stat", (int)pid);
    for (bool zombie = false; !zombie;) { /* it is about to be one */
        int fd = open(stat_path, O_RDONLY);
        ssize_t n = read(fd, text, sizeof(text) - 1);
        assert_true(n > 0);
        text[n] = '\0';
        zombie = strrchr(text, ')')[2] == 'Z';
        close(fd);
    }
    assert_int_equal(why_not(g, NOW + S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + 5 * S), WEIR_BUSY);
    close(pipes[1]);
    waitpid(pid, NULL, 0);
    assert_int_equal(why_not(g, NOW + 6 * S), WEIR_GRANTED);
}

/* Its number is in use again: by a process that began at another time. */
TEST(test_G1_a_process_is_not_taken_for_another_of_its_number)
{
    const struct weir_guard_options o = { .max = 1, .lease = 600 * S };
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 16 });
    struct weir_guard *g = guard_of(table, "g", &o);
    struct weir_permit p;
    OWN(weir_table) *other = attach(path);
    assert_true(enter_at(guard_of(other, "g", &o), NOW, &p));
    assert_int_equal(why_not(g, NOW + S), WEIR_BUSY);
    table->holders[weir__holder_me(other)].start++;
    assert_int_equal(why_not(g, NOW + 5 * S), WEIR_GRANTED);
}

TEST(test_G1_a_process_that_left_and_came_back_has_lost_what_it_held)
{
    const struct weir_guard_options o = { .max = 1, .lease = 600 * S };
    const char *path = new_path();
    struct weir_table *stays = table_with(&(struct weir_table_options){ .path = path, .keys = 16 }),
                      *table = attach(path);
    struct weir_permit p;

    assert_true(enter_at(guard_of(table, "g", &o), NOW, &p));
    weir_table_destroy(table);
    for (int i = 0; i < WEIR__HOLDERS; i++)
        assert_int_equal(stays->holders[i].pid, 0);
    table = attach(path);
    struct weir_guard *g = guard_of(table, "g", &o);
    assert_int_equal(why_not(g, NOW + S), WEIR_GRANTED);
    weir_table_destroy(table);
    weir_table_destroy(stays);
}

#define WRAP ((weir_time)1 << 43) /* a permit's time is kept modulo this: 2.4 hours */

static void expect_over_after(weir_time lease, weir_time span)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g =
        guard_of(table, "g", &(struct weir_guard_options){ .max = 1, .lease = lease });
    struct weir_permit p, q;

    assert_true(enter_at(g, NOW, &p));
    if (why_not(g, NOW + span) != WEIR_GRANTED)
        fail_msg("a lease of %lld s is not over after %lld s", (long long)(lease / S),
                 (long long)(span / S));
    assert_false(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + span));
    assert_true(enter_at(g, NOW + span, &q)); /* and the next lease is a whole one */
    assert_int_equal(why_not(g, NOW + span + lease - S), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + span + lease + S), WEIR_GRANTED);
}

/* A weekend without a single ask. */
TEST(test_G1_a_lease_that_ended_long_ago_is_over)
{
    static const weir_time leases[] = { 10 * S, 60 * S, 3600 * S };

    for (size_t i = 0; i < COUNT_OF(leases); i++) {
        for (weir_time span = leases[i] + 10 * S; span < 6 * 3600 * S; span += 97 * S)
            expect_over_after(leases[i], span);
        for (int hours = 5; hours <= 100; hours++)
            expect_over_after(leases[i], hours * 3600 * S);
        for (int wraps = 1; wraps <= 42; wraps++)
            for (weir_time around = -2 * S; around <= 2 * S; around += S)
                expect_over_after(leases[i], wraps * WRAP + around);
        expect_over_after(leases[i], 10 * 365 * 86400 * S);
    }
}

/* Nobody enters for hours, and its holder renews it every now and then. */
TEST(test_G1_a_lease_that_is_renewed_for_hours_goes_on)
{
    A_GUARD(g, .max = 2, .lease = 3600 * S);
    struct weir_permit p, lost;
    assert_true(enter_at(g, NOW, &lost));
    assert_true(enter_at(g, NOW, &p));
    for (int i = 1; i <= 200; i++)
        assert_true(weir_permit_renew(g, &p, NOW + i * 1800 * S));
    struct weir_guard_info info = info_of(g, NOW + 200 * 1800 * S + 3000 * S);
    assert_fields(info, (in_flight, 1), (reclaimed, 1));
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW + 200 * 1800 * S + 3000 * S));
}

static void expect_idle_until(weir_time lease, weir_time idle, weir_time span)
{
    A_GUARD(g, .max = 1, .lease = lease);
    struct weir_permit p;
    weir_time left = idle + lease + lease / 2 - span;

    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_permit_idle(g, &p, NOW + idle));
    if (info_of(g, NOW + span).in_flight != (left > 0))
        fail_msg("a lease of %lld s, half of which began again after %lld s, after %lld s",
                 (long long)(lease / S), (long long)(idle / S), (long long)(span / S));
}

/* The host is suspended while a client is slow. */
TEST(test_G1_an_idle_permit_outlives_a_suspension)
{
    static const weir_time leases[] = { 700 * S, 1800 * S, 3600 * S };

    for (size_t i = 0; i < COUNT_OF(leases); i++)
        for (weir_time span = 607 * S; span < 9 * 3600 * S; span += 97 * S) {
            expect_idle_until(leases[i], 0, span);
            expect_idle_until(leases[i], 599 * S, span);
        }
}

/* Somebody is in a sweep after hours, and somebody else has swept meanwhile and entered. */
TEST(test_G1_a_sweep_after_hours_spares_those_that_have_just_entered)
{
    for (int wraps = 1; wraps <= 3; wraps++) {
        A_GUARD(g, .max = 3, .lease = 60 * S);
        struct weir_permit old, young;
        assert_true(enter_at(g, NOW, &old));
        weir_time later = NOW + wraps * WRAP;
        g->record->ticker = 1;                   /* stopped before its sweep */
        assert_true(enter_at(g, later, &young)); /* it caught up by itself */
        assert_int_equal(g->record->in_flight, 1);
        g->record->ticker = 0;
        assert_true(weir_exit(g, &young, WEIR_SUCCEEDED, later + S));
    }
}

TEST(test_G1_a_zombie_holds_nothing)
{
    const struct weir_guard_options o = { .max = 1, .lease = 600 * S };
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 16 });
    struct weir_guard *g = guard_of(table, "g", &o);
    pid_t pid = fork();
    if (pid == 0) {
        struct weir_permit p;
        _exit(enter_at(guard_of(attach(path), "g", &o), NOW, &p) ? 0 : 1);
    }
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT),
                     0); /* it has ended, and is not yet reaped */
    assert_int_equal(info.si_status, 0);
    assert_int_equal(why_not(g, NOW), WEIR_BUSY);
    assert_int_equal(why_not(g, NOW + S), WEIR_GRANTED);
    waitpid(pid, NULL, 0);
}

TEST(test_slots_are_found_until_the_last)
{
    A_GUARD(g, .max = 16384);
    FINALLY(memory_drop) struct weir_permit *p = calloc(16384, sizeof(*p));
    for (int i = 0; i < 16384; i++)
        assert_true(enter_at(g, NOW + i, &p[i]));
    assert_int_equal(why_not(g, NOW), WEIR_BUSY);
    for (int i = 16384; i-- > 0;)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, NOW + S));
    assert_int_equal(info_of(g, NOW + S).in_flight, 0);
}

GROUP(make_folder, remove_folder)

/* It was stopped after it had read the clock, for two hours. */
TEST(test_a_stale_caller_takes_back_nothing)
{
    OWN(weir_table) *table = private_table(false, 16);
    struct weir_guard *g = guard_of(table, "g", &(struct weir_guard_options){ .max = 2 });
    weir_time now = weir_table_now(table);
    struct weir_permit permit = { 0 };
    struct weir_ask ask = { .now = now };
    struct weir_decision d;

    assert_true(weir_enter(g, &ask, &permit, &d));
    weir_guard_get(g, now, &(struct weir_guard_info){ 0 });
    for (int minutes = 5; minutes < 600; minutes += 7)
        weir_guard_get(g, now - minutes * 60 * S, &(struct weir_guard_info){ 0 });
    weir_guard_get(g, now, &(struct weir_guard_info){ 0 });
    assert_true(weir_exit(g, &permit, WEIR_SUCCEEDED, now));
}

/* ---------------------------------------------------------------- hanging ---- */

static enum weir_breaker_state breaker_at(struct weir_guard *g, weir_time now)
{
    return info_of(g, now).breaker;
}

/* A window full of successes, and then calls that do not come back. */
TEST(test_G4_calls_in_flight_for_too_long_open_the_breaker)
{
    A_GUARD(g, .max = 100, .breaker = { .slow = S, .min_calls = 10 });
    struct weir_permit p[10], quick;
    for (int i = 0; i < 200; i++) {
        assert_true(enter_at(g, NOW, &quick));
        assert_true(weir_exit(g, &quick, WEIR_SUCCEEDED, NOW));
    }
    for (int i = 0; i < 10; i++)
        assert_true(enter_at(g, NOW + 2 * S, &p[i]));
    assert_int_equal(breaker_at(g, NOW + 29 * S / 10), WEIR_BREAKER_CLOSED);
    assert_int_equal(breaker_at(g, NOW + 34 * S / 10), WEIR_BREAKER_OPEN);
}

/* Half of those that ended since were quick, and more than half altogether: it stays closed. */
TEST(test_G4_a_few_calls_that_hang_do_not)
{
    A_GUARD(g, .max = 100, .breaker = { .slow = S, .min_calls = 10 });
    struct weir_permit p[10], quick;
    for (int i = 0; i < 10; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    for (int i = 0; i < 11; i++) {
        assert_true(enter_at(g, NOW + S / 2, &quick));
        assert_true(weir_exit(g, &quick, WEIR_SUCCEEDED, NOW + S / 2));
    }
    assert_int_equal(breaker_at(g, NOW + 2 * S), WEIR_BREAKER_CLOSED);
    assert_int_equal(breaker_at(g, NOW + 5 * S), WEIR_BREAKER_CLOSED);
}

TEST(test_G4_probes_that_hang_open_it_again)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .slow = S, .min_calls = 1, .open_for = 5 * S, .jitter_percent = -1 });
    struct weir_permit p, probes[3];
    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_exit(g, &p, WEIR_TIMED_OUT, NOW + S));
    assert_int_equal(breaker_at(g, NOW + S), WEIR_BREAKER_OPEN);
    assert_true(enter_at(g, NOW + 6 * S, &probes[0]) && enter_at(g, NOW + 6 * S, &probes[1]));
    assert_int_equal(breaker_at(g, NOW + 69 * S / 10), WEIR_BREAKER_HALF_OPEN);
    assert_int_equal(breaker_at(g, NOW + 74 * S / 10), WEIR_BREAKER_OPEN);
    assert_true(weir_exit(g, &probes[0], WEIR_SUCCEEDED, NOW + 8 * S)); /* too late to matter */
    assert_int_equal(breaker_at(g, NOW + 8 * S), WEIR_BREAKER_OPEN);
}

/* Neither while their clients send them, nor while these read the answer; but they do as soon as
 * somebody works at them again, and a lease ends half a lease later. */
TEST(test_G4_calls_that_wait_for_their_clients_do_not_hang)
{
    A_GUARD(g, .max = 10, .lease = 10 * S, .breaker = { .slow = S, .min_calls = 10 });
    struct weir_permit p[10];
    for (int i = 0; i < 10; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    for (int t = 0; t < 40 * 4; t++) {
        for (int i = 0; i < 10 && t % 16 == 0; i++)
            assert_true(weir_permit_idle(g, &p[i], NOW + t * S / 4));
        assert_int_equal(breaker_at(g, NOW + t * S / 4), WEIR_BREAKER_CLOSED);
        assert_int_equal(info_of(g, NOW + t * S / 4).in_flight, 10);
    }
    for (int i = 0; i < 9; i++)
        assert_true(weir_permit_renew(g, &p[i], NOW + 40 * S));
    assert_true(weir_permit_idle(g, &p[9], NOW + 40 * S));
    assert_int_equal(breaker_at(g, NOW + 42 * S), WEIR_BREAKER_CLOSED); /* nine are too few */
    assert_true(weir_permit_renew(g, &p[9], NOW + 42 * S));
    assert_int_equal(breaker_at(g, NOW + 429 * S / 10), WEIR_BREAKER_CLOSED);
    assert_int_equal(breaker_at(g, NOW + 434 * S / 10), WEIR_BREAKER_OPEN);
    assert_true(weir_permit_idle(g, &p[0], NOW + 44 * S));
    assert_int_equal(info_of(g, NOW + 58 * S).in_flight, 1);
    assert_int_equal(info_of(g, NOW + 60 * S).in_flight, 0);
    assert_false(weir_exit(g, &p[0], WEIR_SUCCEEDED, NOW + 60 * S));
}

/* Nor do they keep others from being probes for longer than an open time; one at a time, and what
 * the slow one says in the end counts too. */
TEST(test_G4_beside_probes_that_wait_for_their_clients_others_go)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .slow = S, .min_calls = 1, .open_for = 5 * S, .probes = 1 });
    struct weir_permit p, slow[2], quick;
    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_exit(g, &p, WEIR_TIMED_OUT, NOW + S));
    assert_true(enter_at(g, NOW + 30 * S, &slow[0]));
    assert_true(weir_permit_idle(g, &slow[0], NOW + 31 * S));
    assert_false(enter_at(g, NOW + 34 * S, &quick));
    assert_true(enter_at(g, NOW + 35 * S, &slow[1]));
    assert_true(weir_permit_idle(g, &slow[1], NOW + 355 * S / 10));
    assert_false(enter_at(g, NOW + 36 * S, &quick));
    assert_int_equal(breaker_at(g, NOW + 39 * S), WEIR_BREAKER_HALF_OPEN);
    assert_true(enter_at(g, NOW + 40 * S, &quick));
    assert_true(weir_exit_after(g, &slow[1], WEIR_SUCCEEDED, S / 2, NOW + 40 * S));
    assert_int_equal(breaker_at(g, NOW + 40 * S), WEIR_BREAKER_CLOSED);
    assert_true(weir_exit(g, &quick, WEIR_FAILED, NOW + 41 * S));
    assert_true(weir_exit(g, &slow[0], WEIR_FAILED, NOW + 41 * S));
    assert_int_equal(breaker_at(g, NOW + 41 * S), WEIR_BREAKER_CLOSED); /* decided before */
}

/* A probe that is at work again is awaited, for a lease. */
TEST(test_G4_a_probe_that_works_again_is_waited_for)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .errors = 1, .min_calls = 1, .open_for = 5 * S, .probes = 1 });
    struct weir_permit p, probe;
    assert_true(enter_at(g, NOW, &p));
    assert_true(weir_exit(g, &p, WEIR_FAILED, NOW));
    assert_true(enter_at(g, NOW + 10 * S, &probe));
    assert_true(weir_permit_idle(g, &probe, NOW + 11 * S));
    assert_true(weir_permit_renew(g, &probe, NOW + 12 * S));
    assert_false(enter_at(g, NOW + 70 * S, &p));
    assert_true(enter_at(g, NOW + 74 * S, &p));
}

/* Callers that vanish are seen once: after the next closing they say nothing new. */
TEST(test_G4_calls_that_hang_do_not_open_it_twice)
{
    A_GUARD(g, .max = 100, .lease = 60 * S,
            .breaker = { .slow = S / 2, .min_calls = 20, .open_for = S, .jitter_percent = -1 });
    struct weir_permit lost;
    int opened = 0;
    for (int i = 0; i < 25; i++)
        assert_true(enter_at(g, NOW, &lost));
    for (int i = 0, before = 0; i < 30 * 20; i++) {
        work(g, NOW + i * 50 * MS, MS, WEIR_SUCCEEDED);
        int open = breaker_at(g, NOW + i * 50 * MS + MS) == WEIR_BREAKER_OPEN;
        opened += open && !before;
        before = open;
    }
    assert_int_equal(opened, 1);
}

/* Calls of 10 ms each, `n` of them; then the dependency hangs, and they come for `more`.  The
 * breaker's state then. */
static enum weir_breaker_state hang_after(struct weir_guard *g, int n, weir_time every,
                                          weir_time more)
{
    struct weir_permit p[64] = { 0 };
    weir_time now = NOW, out = 10 * MS / every;

    for (weir_time i = 0; i < n; i++, now += every) {
        if (i >= out)
            assert_true(weir_exit(g, &p[(i - out) % 64], WEIR_SUCCEEDED, now));
        assert_true(enter_at(g, now, &p[i % 64]));
    }
    for (weir_time end = now + more; now < end; now += every)
        enter_at(g, now, &p[0]);
    return breaker_at(g, now);
}

TEST(test_G4_a_hang_is_seen_soon_whatever_succeeded_before)
{
    struct weir_breaker_options slow = { .slow = S / 2, .slow_percent = 50 }, calls = slow;

    calls.calls = 100;
    A_GUARD(g, .max = 64, .breaker = slow);
    struct weir_guard *full =
        guard_of(table, "full", &(struct weir_guard_options){ .max = 25, .breaker = slow });
    struct weir_guard *ring =
        guard_of(table, "ring", &(struct weir_guard_options){ .max = 1000, .breaker = calls });
    assert_int_equal(hang_after(g, 1600, S / 800, S), WEIR_BREAKER_OPEN);
    assert_int_equal(hang_after(full, 4000, S / 2000, S), WEIR_BREAKER_OPEN);
    assert_int_equal(hang_after(ring, 1300, S / 100, S), WEIR_BREAKER_OPEN);
}

/* A burst in which a tenth of the calls is slow by nature, and then no calls at all. */
TEST(test_G4_silence_is_no_hang)
{
    A_GUARD(g, .max = 2000, .breaker = { .slow = S / 2, .slow_percent = 50 });
    struct weir_permit quick[900], slow[100];
    for (int i = 0; i < 1000; i++)
        assert_true(enter_at(g, NOW, i < 900 ? &quick[i] : &slow[i - 900]));
    for (int i = 0; i < 900; i++)
        assert_true(weir_exit(g, &quick[i], WEIR_SUCCEEDED, NOW + MS));
    for (int i = 0; i < 40; i++)
        assert_int_equal(breaker_at(g, NOW + i * S / 20), WEIR_BREAKER_CLOSED);
    for (int i = 0; i < 100; i++)
        assert_true(weir_exit(g, &slow[i], WEIR_SUCCEEDED, NOW + 2 * S));
    assert_int_equal(breaker_at(g, NOW + 2 * S), WEIR_BREAKER_CLOSED);
}
