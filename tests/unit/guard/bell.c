/* bell.c -- permits that come free wake waiters, in all processes. */
#include "unit/test.h"

#include "unit/guarding.h"

#include <sys/wait.h>

static uint32_t rings(const struct weir_guard *guard)
{
    return weir__get(&guard->table->header->bell);
}

TEST(test_L11_exit_rings_once_and_only_if_somebody_waits)
{
    A_GUARD(g, .max = 3);
    struct weir_permit p[3];

    for (int i = 0; i < 3; i++)
        assert_true(enter_at(g, NOW, &p[i]));
    uint32_t before = rings(g);
    assert_true(weir_exit(g, &p[0], WEIR_SUCCEEDED, NOW));
    assert_int_equal(rings(g), before);
    assert_int_equal(weir__guard_want(g), before);
    assert_true(weir_exit(g, &p[1], WEIR_SUCCEEDED, NOW));
    assert_int_equal(rings(g), before + 1);
    assert_true(weir_exit_after(g, &p[2], WEIR_SUCCEEDED, MS, NOW));
    assert_int_equal(rings(g), before + 1);
    assert_int_equal(weir__guard_want(g), before + 1);
    assert_false(weir_exit(g, &p[2], WEIR_SUCCEEDED, NOW)); /* it gave nothing back */
    assert_int_equal(rings(g), before + 1);
}

/* Whatever gives a permit back rings: an entry that another guard's refusal undoes, a lease that
 * ends, a key whose last permit another thread has taken. */
TEST(test_L11_every_way_to_give_a_permit_back_rings)
{
    A_GUARD(g, .max = 2, .lease = 10 * S);
    struct weir_permit p, q;

    assert_true(enter_at(g, NOW, &p));
    weir__guard_want(g);
    uint32_t before = rings(g);
    weir__guard_undo(g, &p);
    assert_int_equal(rings(g), before + 1);
    assert_true(enter_at(g, NOW, &p));
    assert_true(enter_at(g, NOW, &q));
    weir__guard_want(g);
    info_of(g, NOW + 11 * S);
    assert_int_equal(rings(g), before + 2);
}

/* A process serves its own waiters first, and wakes others if a permit is left. */
TEST(test_L11_a_permit_that_is_taken_at_once_rings_not)
{
    A_GUARD(g, .max = 1);
    struct weir_permit p, q;

    assert_true(enter_at(g, NOW, &p));
    weir__guard_want(g);
    uint32_t before = rings(g);
    assert_true(weir__guard_exit(g, &p, WEIR_SUCCEEDED, -1, NOW));
    assert_true(enter_at(g, NOW, &q));
    weir__guard_pass_on(g);
    assert_int_equal(rings(g), before);
    assert_true(weir__guard_exit(g, &q, WEIR_SUCCEEDED, MS, NOW));
    weir__guard_pass_on(g);
    assert_int_equal(rings(g), before + 1);
    weir__guard_pass_on(g);
    assert_int_equal(rings(g), before + 1);
}

/* It sleeps for ever but for the bell. */
static void wait_in_another_process(const char *path)
{
    struct weir_table *table = attach(path);
    struct weir_guard *g = weir_guard_find(table, "g");
    struct weir_permit p;
    uint32_t word = 0;

    for (;;) {
        uint32_t bell = weir__guard_want(g);
        if (enter_at(g, NOW, &p))
            break;
        weir__clock_wait_words(&word, 0, &table->header->bell, bell, 3600 * S);
    }
    _exit(weir_exit(g, &p, WEIR_SUCCEEDED, NOW) ? 0 : 1);
}

TEST(test_L11_a_waiter_in_another_process_is_woken)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 64 });
    struct weir_guard *g = guard_of(table, "g", &(struct weir_guard_options){ .max = 1 });
    struct weir_permit p;
    int status;

    assert_true(enter_at(g, NOW, &p));
    pid_t pid = fork();
    if (pid == 0)
        wait_in_another_process(path);
    while (!weir__get(&g->record->wanted))
        weir__clock_sleep(MS);
    assert_true(weir_exit(g, &p, WEIR_SUCCEEDED, NOW));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

GROUP(make_folder, remove_folder)
