/* place-users.c -- how limiters and guards are left: dropped, or not. */
#include "unit/test.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "table/registry.h"
#include "unit/tending.h"

GROUP(make_folder, remove_folder)

#define PROCESSES 4
#define ROUNDS    100

/* How many have come to a round. */
static void meet(int *at, int round)
{
    __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(at, __ATOMIC_SEQ_CST) < (round + 1) * PROCESSES)
        sched_yield();
}

static void drop_at_once(const char *path, int at[3])
{
    struct weir_table *table = attach(path);

    alarm(60); /* should another one fail */
    for (int round = 0; round < ROUNDS; round++) {
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");
        meet(&at[0], round);
        weir_limiter_drop(limiter);
        meet(&at[1], round);
        bool dropped = weir__get(&limiter->place->dropped);
        meet(&at[2], round);
        if (!dropped)
            _exit(1);
    }
    _exit(0);
}

/* As workers do that are told of new rules.  Each may find another that has not left yet. */
TEST(test_T3_what_several_processes_drop_at_once_is_dropped)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    int *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), status;
    pid_t pids[PROCESSES];

    for (int i = 0; i < PROCESSES; i++)
        if ((pids[i] = fork()) == 0)
            drop_at_once(path, at);
    for (int i = 0; i < PROCESSES; i++) {
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    munmap(at, 4096);
    tend(table, NOW, 2 * MINUTE);
    assert_false(has_limiter(table, "l"));
}

/* Rules that went while no process had them in force. */
TEST(test_T3_a_name_that_was_left_can_be_dropped)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");

    take(limiter, "k", 10, NOW);
    weir_limiter_release(limiter);
    tend(table, NOW, 2 * MINUTE);
    assert_true(has_limiter(table, "l"));
    weir__name_drop(table, &table->limiters, "nobody");
    weir__name_drop(table, &table->limiters, "l");
    tend(table, NOW + 3 * MINUTE, 2 * MINUTE);
    assert_false(has_limiter(table, "l"));
}

TEST(test_a_name_in_use_is_not_dropped)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");

    weir__name_drop(table, &table->limiters, "l");
    take(limiter, "k", 10, NOW);
    weir_limiter_release(limiter);
    tend(table, NOW, 2 * MINUTE);
    assert_true(has_limiter(table, "l"));
}
