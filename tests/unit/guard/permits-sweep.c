/* Sweeps: permits of holders that died, and a gate that says other than its seats (G1). */
#include "unit/test.h"

#include "unit/guarding.h"

#include <signal.h>
#include <sys/wait.h>

GROUP(make_folder, remove_folder)

/* ------------------------------------------------------------- dead holders ---- */

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

static void *hold_on(void *context)
{
    char byte;

    _exit(read(*(int *)context, &byte, 1) < 0); /* until the other end is closed */
}

/* Its first thread has ended, and /proc says that it is a zombie. */
RACE(test_G1_a_process_lives_as_long_as_any_of_its_threads)
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

/* -------------------------------------------------------- a gate put right ---- */

/* Returns the time of the last one. */
static weir_time sweep_often(struct weir_guard *g, weir_time now, int times)
{
    for (int i = 0; i < times; i++)
        info_of(g, now += 300 * MS);
    return now;
}

/* A process that was killed between the gate and the seat. */
TEST(test_a_gate_that_says_more_or_less_than_the_seats_is_put_right)
{
    A_GUARD(g, .max = 10, .lease = 3600 * S);
    struct weir_permit p;
    weir_time now = NOW;
    assert_true(enter_at(g, now, &p));
    for (int off = -1; off <= 3; off += 2) {
        table->header->holders_lost++;
        g->record->in_flight += off;
        now = sweep_often(g, now, 12);
        assert_int_equal(g->record->in_flight, 1);
    }
    weir_exit(g, &p, WEIR_SUCCEEDED, now);
    table->header->holders_lost++;
    g->record->in_flight += 2; /* and with nothing out at all */
    now = sweep_often(g, now, 12);
    assert_int_equal(g->record->in_flight, 0);
    g->record->in_flight = -1; /* that cannot be, whether somebody died or not */
    now = sweep_often(g, now, 12);
    assert_int_equal(g->record->in_flight, 0);
    now = sweep_often(g, now, 30); /* nobody has died lately */
    g->record->in_flight = 1;      /* that can be: somebody is just entering, and is held up */
    sweep_often(g, now, 12);
    assert_int_equal(g->record->in_flight, 1);
}

/* Killed there with nobody else attached: the next to come finds it gone, and buries nobody. */
TEST(test_G1_a_gate_is_put_right_after_the_last_process_died)
{
    const struct weir_guard_options o = { .max = 1, .lease = 600 * S };
    const char *path = new_path();

    weir_table_destroy(table_with(&(struct weir_table_options){ .path = path, .keys = 16 }));
    pid_t pid = fork();
    if (pid == 0) {
        guard_of(attach(path), "g", &o)->record->in_flight++;
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    OWN(weir_table) *table = attach(path);
    struct weir_guard *g = guard_of(table, "g", &o);
    weir_time now = sweep_often(g, NOW, 12);
    assert_int_equal(why_not(g, now), WEIR_GRANTED);
}

/* A process that was stopped between the gate and the seat, taken for a dead one, and went on. */
TEST(test_a_gate_below_the_seats_is_put_right_though_nobody_died)
{
    A_GUARD(g, .max = 10, .lease = 3600 * S);
    struct weir_permit p[3];
    struct weir_decision d;
    weir_time now = NOW;
    assert_true(enter_at(g, now, &p[0]));
    assert_true(enter_at(g, now, &p[1]));
    assert_true(weir_enter(g, &(struct weir_ask){ .cost = 3, .now = now }, &p[2], &d));
    for (int i = 0; i < 30; i++)
        info_of(g, now += 300 * MS);
    g->record->in_flight -= 3; /* all of it is seated */
    g->record->extra -= 2;
    for (int i = 0; i < 12; i++)
        info_of(g, now += 300 * MS);
    assert_fields(*g->record, (in_flight, 5), (extra, 2));
    g->record->in_flight -= 1; /* and more than one after another */
    for (int i = 0; i < 4; i++)
        info_of(g, now += 300 * MS);
    g->record->in_flight -= 1;
    for (int i = 0; i < 12; i++)
        info_of(g, now += 300 * MS);
    assert_int_equal(g->record->in_flight, 5);
    for (int i = 0; i < 3; i++)
        assert_true(weir_exit(g, &p[i], WEIR_SUCCEEDED, now));
    assert_fields(*g->record, (in_flight, 0), (extra, 0));
}

TEST(test_asks_for_several_permits_that_the_seats_do_not_have_are_put_right)
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
        now = sweep_often(g, now, 12);
        assert_fields(*g->record, (in_flight, 3), (extra, 2));
        assert_int_equal(weir__guard_calls(g->record), 1);
    }
    table->header->holders_lost++;
    g->record->extra -= 2; /* while it gives back */
    sweep_often(g, now, 12);
    assert_int_equal(g->record->extra, 2);
}

/* Killed between the breaker and the seat: no lease can end. */
TEST(test_G4_a_probe_that_was_lost_before_it_had_a_seat_does_not_keep_it_half_open)
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
