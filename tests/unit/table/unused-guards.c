/* unused-guards.c -- guards come and go: none stays unused, and none goes that is in use. */
#include "unit/test.h"

#include <malloc.h>
#include <sys/wait.h>

#include "guard/guard.h"
#include "table/holders.h"
#include "table/registry.h"
#include "unit/tending.h"

GROUP(make_folder, remove_folder)

static bool has_guard(struct weir_table *table, const char *name)
{
    return weir__name_find(table, &table->guards, name) != WEIR__NO_PLACE;
}

static struct weir_guard *guard_of(struct weir_table *table, const char *name, int64_t max)
{
    struct weir_guard *guard = NULL;

    assert_ok(
        weir_guard_create(&guard, table, name, &(struct weir_guard_options){ .max = max }, NULL));
    return guard;
}

TEST(test_a_dropped_guard_goes_and_leaves_nothing_behind)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .guards = 2 });
    struct weir_guard *kept = guard_of(table, "kept", 3), *gone = guard_of(table, "gone", 3);
    struct weir_permit permit, old;
    struct weir_ask ask = { .now = NOW };
    struct weir_decision d;

    assert_true(weir_enter(kept, &ask, &permit, &d));
    assert_true(weir_enter(gone, &ask, &old, &d));
    weir_guard_drop(gone);
    tend(table, NOW, 2 * MINUTE);
    assert_false(has_guard(table, "gone"));
    struct weir_guard *other = guard_of(table, "other", 1); /* in the same place */
    assert_int_equal(other->id, 1);
    assert_false(weir_exit(other, &old, WEIR_SUCCEEDED, NOW));
    assert_true(weir_enter(other, &ask, &old, &d));
    assert_int_equal(d.limit, 1);
    assert_true(weir_exit(kept, &permit, WEIR_SUCCEEDED, NOW));
}

static struct weir_guard *leased_guard(struct weir_table *table, weir_time lease)
{
    struct weir_guard_options o = { .max = 1, .lease = lease };
    struct weir_guard *guard = NULL;

    assert_ok(weir_guard_create(&guard, table, "g", &o, NULL));
    return guard;
}

/* Its rule is gone, and comes back while work of before goes on. */
TEST(test_G1_a_dropped_guard_stays_while_permits_are_out)
{
    for (int exits = 0; exits < 2; exits++) {
        OWN(weir_table) *table = table_with(&(struct weir_table_options){ .guards = 2 });
        struct weir_guard *guard = leased_guard(table, 10 * MINUTE);
        struct weir_permit permit, other;
        struct weir_ask ask = { .now = NOW };
        struct weir_decision d;
        assert_true(weir_enter(guard, &ask, &permit, &d));
        weir_guard_drop(guard);
        weir_time now = tend(table, NOW, 5 * MINUTE);
        guard = leased_guard(table, 10 * MINUTE);
        ask.now = now;
        assert_false(weir_enter(guard, &ask, &other, &d));
        assert_int_equal(d.reason, WEIR_BUSY);
        weir_guard_drop(guard);
        assert_true(!exits || weir_exit(guard, &permit, WEIR_SUCCEEDED, now));
        tend(table, now, exits ? 2 * MINUTE : 7 * MINUTE); /* that is out of its lease */
        assert_false(has_guard(table, "g"));
    }
}

/* A process that has no guards cannot tell which leases are over. */
TEST(test_G1_a_dropped_guard_with_permits_out_goes_later_without_anybody_who_has_guards)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .guards = 2 });
    OWN(weir_table) *other = attach(path);
    struct weir_guard *guard = leased_guard(other, 60 * MINUTE);
    struct weir_permit permit;
    struct weir_decision d;
    assert_true(weir_enter(guard, &(struct weir_ask){ .now = NOW }, &permit, &d));
    weir_guard_drop(guard);
    weir_time now = tend(table, NOW, 60 * MINUTE);
    assert_true(has_guard(table, "g"));
    tend(table, now, 120 * MINUTE);
    assert_false(has_guard(table, "g"));
}

TEST(test_a_released_guard_stays_for_an_hour_and_while_permits_are_out)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .guards = 2 });
    struct weir_guard *guard = guard_of(table, "g", 3);
    struct weir_permit permit;
    struct weir_ask ask = { .now = NOW };
    struct weir_decision d;

    assert_true(weir_enter(guard, &ask, &permit, &d));
    weir_guard_release(guard);
    weir_time now = tend(table, NOW, 59 * MINUTE);
    assert_true(has_guard(table, "g"));
    assert_true(weir_exit(guard, &permit, WEIR_SUCCEEDED, NOW));
    tend(table, now, 3 * MINUTE);
    assert_false(has_guard(table, "g"));
}

TEST(test_a_thousand_guards_come_and_go)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .guards = 12 });
    weir_time now = NOW;
    int64_t disk = 0;

    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "g%d", i);
        weir_guard_drop(guard_of(table, name, 100));
        if (i % 10 == 9)
            now = tend(table, now, MINUTE);
        if (i == 19)
            disk = disk_of(path);
    }
    assert_true(disk_of(path) <= disk + (64 << 10));
}

/* Under a sanitizer nothing is known about memory: 0. */
static size_t memory_in_use(void)
{
    return mallinfo2().uordblks;
}

static weir_time fake_now(void *context)
{
    return *(weir_time *)context;
}

/* Each in the place of one before, and one of its permits comes back when that one is there. */
TEST(test_T3_guards_that_went_leave_no_memory_in_the_process)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .guards = 2 });
    struct weir_permit permit, old = { 0 };
    struct weir_guard *went = NULL;
    weir_time now = NOW;
    size_t memory = 0;

    table->clock = (struct weir_clock){ .now = fake_now, .context = &now };
    for (int i = 0; i < 3000; i++) {
        struct weir_ask ask = { .now = now };
        struct weir_decision d;
        char name[16];
        snprintf(name, sizeof(name), "g%d", i);
        struct weir_guard *guard = guard_of(table, name, 1 + i % 7);
        assert_true(weir_enter(guard, &ask, &permit, &d));
        assert_int_equal(d.limit, 1 + i % 7);
        assert_true(went == NULL || !weir_exit(went, &old, WEIR_SUCCEEDED, now));
        weir_guard_drop(guard);
        now = tend(table, now, 2 * MINUTE);
        went = guard;
        old = permit;
        memory = i == 100 ? memory_in_use() : memory;
    }
    assert_true(memory_in_use() <= memory + (16 << 10));
}

TEST(test_T3_changes_of_a_guard_leave_no_memory_in_the_process)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .guards = 2 });
    weir_time clock = NOW;
    size_t memory = 0;

    table->clock = (struct weir_clock){ .now = fake_now, .context = &clock };
    struct weir_guard *guard = guard_of(table, "g", 1);
    for (int i = 0; i < 3000; i++) {
        assert_ok(weir_guard_change(guard, &(struct weir_guard_options){ .max = 2 + i }, NULL));
        clock += MINUTE;
        memory = i == 100 ? memory_in_use() : memory;
    }
    assert_true(memory_in_use() <= memory + (16 << 10));
}

static int change_and_count_plans(struct weir_guard *guard, int64_t max)
{
    int n = 0;

    assert_ok(weir_guard_change(guard, &(struct weir_guard_options){ .max = max }, NULL));
    for (const struct weir__guard_plan *plan = guard->plan; plan != NULL; plan = plan->older)
        n++;
    return n;
}

/* A thread has read the first plan, and its process is stopped.  When it goes on another thread is
 * quicker. */
TEST(test_T3_a_plan_stays_when_its_process_was_stopped)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .guards = 2 });
    weir_time clock = NOW;

    table->clock = (struct weir_clock){ .now = fake_now, .context = &clock };
    struct weir_guard *guard = guard_of(table, "g", 1);
    assert_int_equal(change_and_count_plans(guard, 2), 2);
    assert_int_equal(change_and_count_plans(guard, 3), 3);
    clock += 60 * MINUTE;
    assert_int_equal(change_and_count_plans(guard, 4), 4);
    clock += 9 * MINUTE;
    assert_int_equal(change_and_count_plans(guard, 5), 5);
    clock += 2 * MINUTE;
    assert_int_equal(change_and_count_plans(guard, 6), 4);
}

/* A server whose new rules have none. */
TEST(test_a_dropped_guard_goes_without_anybody_who_has_guards)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .guards = 2 });
    OWN(weir_table) *other = attach(path);
    weir_guard_drop(guard_of(other, "g", 3));
    tend(table, NOW, 2 * MINUTE);
    assert_false(has_guard(table, "g"));
}

/* A process was killed while it wiped a guard, and another has its place among the holders. */
TEST(test_a_doomed_guard_goes)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .guards = 2 });
    struct weir_guard *guard = guard_of(table, "g", 3);
    pid_t pid = fork();
    if (pid == 0) {
        limiter_of(attach(path), "l", "gcra 10/1d");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    uint64_t dead = table->header->holders_next, doomed = (uint64_t)3 << 62;
    assert_int_equal(table->holders[dead].pid, pid);
    guard->place->word |= doomed | dead << 32;
    weir_guard_drop(guard); /* the dead child does not count as its user */
    assert_int_equal(table->holders[dead].pid, 0);
    table->header->holders_next = (uint32_t)dead - 1;
    OWN(weir_table) *other = attach(path);
    limiter_of(other, "l", "gcra 10/1d");
    assert_int_equal(table->holders[dead].pid, getpid());
    tend(table, NOW, 2 * MINUTE);
    assert_int_equal(stats_of(table, -1).guards, 0);
}

/* All were killed, and another process got the number of the one that wiped the guard. */
TEST(test_a_guard_that_was_doomed_before_a_restart_goes)
{
    enum { DEAD = 5 };
    const char *path = new_path();
    uint64_t one = 1;

    struct weir_table *table =
        table_with(&(struct weir_table_options){ .path = path, .guards = 2 });
    struct weir_guard *guard = guard_of(table, "g", 3);
    weir_guard_drop(guard);
    guard->place->word |= (uint64_t)3 << 62 | (uint64_t)DEAD << 32;
    weir_table_destroy(table);
    write_at(path, offsetof(struct weir__header, lost_then), &one, sizeof(one));
    table = attach(path);
    table->header->holders_next = DEAD - 1;
    OWN(weir_table) *other = attach(path);
    limiter_of(other, "l", "gcra 10/1d");
    assert_int_equal(table->holders[DEAD].pid, getpid());
    tend(table, NOW, 2 * MINUTE);
    assert_int_equal(stats_of(table, -1).guards, 0);
    weir_table_destroy(table);
}
