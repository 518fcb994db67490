/* Limiters and guards come and go: nothing that nobody uses stays, and nothing that somebody uses
 * goes. */
#include "unit/test.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guard/guard.h"
#include "table/holder-lock.h"
#include "table/holders.h"
#include "table/registry.h"
#include "unit/fixture.h"

#define MINUTE (60 * S)

GROUP(make_folder, remove_folder)

static const bool forms[] = { false, true };

/* Looks every ten seconds, as a server does; returns the time afterwards. */
static weir_time tend(struct weir_table *table, weir_time from, weir_time span)
{
    for (weir_time now = from; now <= from + span; now += 10 * S)
        weir_table_tend(table, now);
    return from + span;
}

static bool has(struct weir_table *table, const char *name)
{
    struct weir_limiter_info info;

    for (int64_t at = 0; weir_limiter_next(table, &at, &info);)
        if (strcmp(info.name, name) == 0)
            return true;
    return false;
}

static bool has_guard(struct weir_table *table, const char *name)
{
    return weir__name_find(table, &table->guards, name) != WEIR__NO_PLACE;
}

static int64_t disk_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (int64_t)st.st_blocks * 512;
}

/* -------------------------------------------------------------- limiters ---- */

TEST(test_a_dropped_limiter_goes_within_a_minute_with_its_keys)
{
    for (size_t i = 0; i < 2; i++) {
        OWN(weir_table) *table = private_table(forms[i], 1000);
        struct weir_limiter *kept = limiter_of(table, "kept", "gcra 10/1d"),
                            *gone = limiter_of(table, "gone", "gcra 10/1d"),
                            *window = limiter_of(table, "window", "sliding-window 10/1d");
        take(kept, "k", 3, NOW);
        take(gone, "k", 3, NOW);
        take(window, "k", 3, NOW);
        assert_int_equal(keys_of(table), 3);
        weir_limiter_drop(gone);
        weir_limiter_drop(window);
        weir_time now = tend(table, NOW, 40 * S);
        assert_true(has(table, "gone"));
        now = tend(table, now, 20 * S);
        assert_false(has(table, "gone") || has(table, "window"));
        assert_int_equal(keys_of(table), 1);
        assert_int_equal(stats_of(table, -1).slab_used, 0);
        assert_int_equal(left(kept, "k", now), 7);
        assert_int_equal(left(limiter_of(table, "gone", "gcra 10/1d"), "k", now), 10);
    }
}

TEST(test_a_released_limiter_stays_while_its_keys_mean_anything)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1h");
    take(limiter, "k", 5, NOW); /* idle again after half an hour */
    weir_limiter_release(limiter);
    weir_time now = tend(table, NOW, 29 * MINUTE);
    assert_true(has(table, "l"));
    limiter = limiter_of(table, "l", "gcra 10/1h");
    assert_int_equal(left(limiter, "k", NOW), 5);
    weir_limiter_release(limiter);
    tend(table, now, 3 * MINUTE);
    assert_false(has(table, "l"));
    assert_int_equal(keys_of(table), 0);
}

TEST(test_a_limiter_in_use_stays)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *twice = limiter_of(table, "twice", "gcra 10/1s");
    assert_ptr_equal(limiter_of(table, "twice", "gcra 10/1s"), twice);
    weir_limiter_drop(twice);
    assert_ptr_equal(weir_limiter_find(table, "twice"), twice);
    tend(table, NOW, 5 * MINUTE);
    assert_true(has(table, "twice"));
    weir_limiter_release(twice); /* it was found too */
    tend(table, NOW + 5 * MINUTE, 5 * MINUTE);
    assert_true(has(table, "twice"));
    weir_limiter_drop(twice);
    tend(table, NOW + 10 * MINUTE, MINUTE);
    assert_false(has(table, "twice"));
    assert_null(weir_limiter_find(table, "twice"));
}

TEST(test_a_limiter_that_was_dropped_and_is_wanted_again_keeps_its_keys)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");
    take(limiter, "k", 5, NOW);
    weir_limiter_drop(limiter);
    weir_time now = tend(table, NOW, 30 * S);
    limiter = limiter_of(table, "l", "gcra 10/1d");
    tend(table, now, 5 * MINUTE);
    assert_int_equal(left(limiter, "k", NOW), 5);
}

/* So that the switch is there when its user comes back. */
TEST(test_a_limiter_that_is_switched_by_hand_and_left_stays_for_a_day)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1m");
    weir__limiter_set_mode(limiter, WEIR_SHADOW);
    weir_limiter_release(limiter);
    weir_time now = tend(table, NOW, 10 * MINUTE);
    assert_true(has(table, "l"));
    tend(table, now + 1440 * MINUTE, MINUTE);
    assert_false(has(table, "l"));
}

/* Rules that are renamed again and again must not fill the table. */
TEST(test_a_switch_goes_with_a_limiter_that_was_dropped)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 100, .limiters = 1 });
    weir_time now = NOW;
    for (int i = 0; i < 3; i++) {
        struct weir_limiter *limiter = limiter_of(table, i % 2 ? "odd" : "even", "gcra 10/1d");
        assert_int_equal(weir__limiter_mode(limiter), WEIR_AS_WRITTEN);
        weir__limiter_set_mode(limiter, WEIR_SHADOW);
        weir_limiter_drop(limiter);
        now = tend(table, now, 2 * MINUTE);
    }
    assert_int_equal(stats_of(table, -1).limiters, 0);
}

/* Beyond as many processes as there are places for, nobody can tell who is left. */
TEST(test_a_limiter_of_holders_without_a_place_goes_once_all_have_left)
{
    const char *path = new_path();
    struct weir_table_options options = { .path = path, .keys = 100 };
    struct weir_table *first = table_with(&options);
    struct weir_limiter *limiter = limiter_of(first, "l", "gcra 10/1m");

    first->users[limiter->id].bits[0] |= 1;
    weir_limiter_release(limiter);
    weir_table_destroy(first);
    OWN(weir_table) *table = table_with(&options);
    tend(table, weir_table_now(table), 5 * MINUTE);
    assert_false(has(table, "l"));
}

TEST(test_a_limiter_of_another_process_stays)
{
    const char *path = new_path();

    OWN(weir_table) *one = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    OWN(weir_table) *two = attach(path);
    struct weir_limiter *a = limiter_of(one, "l", "gcra 10/1d"),
                        *b = limiter_of(two, "l", "gcra 10/1d");

    take(b, "k", 5, NOW);
    weir_limiter_drop(a);
    weir_time now = tend(one, NOW, 5 * MINUTE);
    assert_int_equal(left(b, "k", NOW), 5);
    weir_table_destroy(two); /* the last to leave has not dropped it */
    two = NULL;
    now = tend(one, now, 2 * MINUTE);
    a = limiter_of(one, "l", "gcra 10/1d");
    assert_int_equal(left(a, "k", NOW), 5);
    weir_limiter_drop(a);
    tend(one, now, 2 * MINUTE);
    assert_false(has(one, "l"));
}

/* Two parts of a process: one drops it, the other may come back tomorrow. */
TEST(test_a_limiter_that_somebody_still_uses_is_not_dropped)
{
    OWN(weir_table) *table = private_table(false, 1000);
    struct weir_limiter *l = limiter_of(table, "l", "gcra 10/1d");

    assert_ptr_equal(limiter_of(table, "l", "gcra 10/1d"), l);
    take(l, "k", 5, NOW);
    weir_limiter_drop(l);
    weir_limiter_release(l);
    tend(table, NOW, 5 * MINUTE);
    assert_int_equal(left(limiter_of(table, "l", "gcra 10/1d"), "k", NOW), 5);
}

/* A thread that found the one before in this place comes too late. */
TEST(test_a_late_find_leaves_the_next_one_in_use)
{
    OWN(weir_table) *table = private_table(false, 1000);

    limiter_of(table, "l", "gcra 10/1d");
    struct weir_limiter *l = weir_limiter_find(table, "l");
    weir_limiter_release(l);
    assert_false(weir__place_use(table, &table->limiters, l->id, l->salt + 1, true));
    assert_true(weir__place_has_users(table, l->id));
}

static size_t places_of(const struct weir_table *table, pid_t pid)
{
    size_t n = 0;

    for (size_t i = 0; i < WEIR__HOLDERS; i++)
        n += table->holders[i].pid == (uint32_t)pid;
    return n;
}

/* A child says that it is there, and stays until it may go. */
struct leash {
    int go[2], there[2];
};

static struct leash new_leash(void)
{
    struct leash l;

    assert_int_equal(pipe(l.go) | pipe(l.there), 0);
    return l;
}

static __attribute__((noreturn)) void stay(const struct leash *l)
{
    char byte;

    close(l->go[1]);
    _exit(write(l->there[1], "x", 1) == 1 && read(l->go[0], &byte, 1) == 0 ? 0 : 1);
}

/* A child that dies before it is there ends the pipe. */
static void wait_for(const struct leash *l)
{
    char byte;

    close(l->there[1]);
    assert_int_equal(read(l->there[0], &byte, 1), 1);
}

static void let_go(const struct leash *l, pid_t child) /* 0: it is another's child */
{
    int status = 0;

    close(l->go[0]), close(l->go[1]), close(l->there[0]);
    assert_int_equal(child ? waitpid(child, &status, 0) : 0, child);
    assert_int_equal(status, 0);
}

/* It cannot read when it began, so nobody can compare. */
TEST(test_a_process_without_descriptors_is_alive)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct leash leash = new_leash();

    pid_t pid = fork();
    if (pid == 0) {
        struct weir_table *own = attach(path);
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 3, 3 });
        limiter_of(own, "l", "gcra 10/1d");
        stay(&leash);
    }
    wait_for(&leash);
    weir__holders_bury(table, weir_table_now(table));
    assert_int_equal(places_of(table, pid), 2); /* one since the fork */
    let_go(&leash, pid);
}

TEST(test_limiters_of_a_killed_process_go)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    pid_t pid = fork();

    if (pid == 0) {
        struct weir_table *own = attach(path);
        limiter_of(own, "l", "gcra 10/1d");
        take(limiter_of(own, "l", "gcra 10/1d"), "k", 1, NOW);
        _exit(0); /* without leaving */
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(has(table, "l"));
    tend(table, weir_table_now(table) + MINUTE, 30 * 24 * 60 * MINUTE);
    assert_false(has(table, "l"));
}

/* The parent may have gone when the child first uses it. */
TEST(test_a_child_uses_what_its_parent_used)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct leash leash = new_leash();

    pid_t parent = fork();
    if (parent == 0) {
        struct weir_table *own = attach(path);
        struct weir_limiter *limiter = limiter_of(own, "l", "gcra 10/1d");
        take(limiter, "k", 4, NOW);
        if (fork() == 0)
            stay(&leash);
        weir_limiter_drop(limiter);
        _exit(0);
    }
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    wait_for(&leash); /* the grandchild runs */
    weir_time now = weir_table_now(table) + MINUTE;
    tend(table, now, 5 * MINUTE);
    assert_true(has(table, "l"));
    let_go(&leash, 0); /* and it ends; its parent is gone */
}

/* It is one too many to be told from others. */
TEST(test_a_child_without_a_place_uses_what_its_parent_used)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");
    struct leash leash = new_leash();

    for (size_t i = 1; i < WEIR__HOLDERS; i++)
        table->holders[i].pid = (uint32_t)getpid();
    pid_t pid = fork();
    if (pid == 0)
        stay(&leash);
    wait_for(&leash);
    weir_limiter_drop(limiter);
    assert_true(weir__place_has_users(table, limiter->id));
    let_go(&leash, pid);
}

static void *tend_for_long(void *argument)
{
    struct weir_table *table = argument;

    assert_true(weir__only_one(&table->tending));
    return NULL;
}

/* The child has no thread that tends. */
TEST(test_a_fork_does_not_wait_for_a_thread_that_tends)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    pthread_t thread;
    int status;

    assert_int_equal(pthread_create(&thread, NULL, tend_for_long, table), 0);
    pthread_join(thread, NULL);
    weir_limiter_drop(limiter_of(table, "l", "gcra 10/1d"));
    tend(table, NOW, 2 * MINUTE);
    assert_true(has(table, "l")); /* one is at it */
    pid_t pid = fork();
    if (pid == 0) {
        tend(table, NOW, 2 * MINUTE);
        _exit(has(table, "l") ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A child of fork that runs another program, which answers once it does. */
static pid_t run_cat(const int to[2], const int from[2])
{
    char byte = 'x';
    pid_t pid = fork();

    if (pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        execlp("cat", "cat", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(write(to[1], &byte, 1), 1);
    assert_int_equal(read(from[0], &byte, 1), 1);
    return pid;
}

TEST(test_another_program_uses_nothing)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");
    int to[2], from[2];

    assert_int_equal(pipe(to) | pipe(from), 0);
    pid_t pid = run_cat(to, from);
    assert_int_equal(places_of(table, pid), 1); /* between fork and exec it was a user */
    weir_limiter_drop(limiter);
    assert_int_equal(places_of(table, pid), 0);
    tend(table, NOW, 2 * MINUTE);
    assert_false(has(table, "l"));
    close(to[0]), close(to[1]), close(from[0]), close(from[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Its own child still has the memory that it had before. */
TEST(test_a_process_that_goes_on_as_another_program_uses_nothing)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    int to[2], from[2], go[2];
    char byte = 'x';

    assert_int_equal(pipe(to) | pipe(from) | pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct weir_table *own = attach(path);
        limiter_of(own, "l", "gcra 10/1d");
        close(go[1]), close(to[1]);
        if (fork() == 0)
            _exit(write(from[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 0 ? 0 : 1);
        dup2(to[0], 0), dup2(from[1], 1);
        execlp("cat", "cat", (char *)NULL);
        _exit(1);
    }
    assert_int_equal(write(to[1], &byte, 1), 1);
    for (size_t i = 0; i < 2; i++) /* child and grandchild are there */
        assert_int_equal(read(from[0], &byte, 1), 1);
    assert_int_equal(places_of(table, pid), 2);
    table->header->holders_at = 0;
    weir__holders_bury(table, weir_table_now(table));
    assert_int_equal(places_of(table, pid), 0);
    assert_true(weir__place_has_users(table, weir__name_find(table, &table->limiters, "l")));
    close(to[0]), close(to[1]), close(from[0]), close(from[1]), close(go[0]), close(go[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Its pid says nothing here. */
TEST(test_a_process_in_another_container_is_known_to_be_dead)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct weir_limiter *limiter = limiter_of(table, "l", "gcra 10/1d");
    struct leash leash = new_leash();

    pid_t pid = fork();
    if (pid == 0) {
        table->holders[weir__holder_me(table)].space = 1;
        stay(&leash);
    }
    wait_for(&leash);
    weir__holders_bury(table, weir_table_now(table));
    assert_int_equal(places_of(table, pid), 1);
    let_go(&leash, pid);
    table->header->holders_at = 0;
    weir__holders_bury(table, weir_table_now(table));
    assert_int_equal(places_of(table, pid), 0);
    assert_true(weir__place_has_users(table, limiter->id));
}

/* The first number stands for a place that was being claimed, the other for one that was being put
 * away by a process without a place. */
TEST(test_a_place_whose_process_died_on_the_way_is_free_again)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    OWN(weir_table) *other = attach(path);
    const uint32_t words[] = { UINT32_MAX, (uint32_t)1 << 31 };

    assert_int_not_equal(weir__holder_me(other), 0);
    for (size_t i = 0; i < 2; i++) {
        table->holders[500].pid = words[i];
        assert_int_equal(weir__holder_lock_take(other, 500), WEIR__LOCK_OURS);
        table->header->holders_at = 0;
        weir__holders_bury(table, weir_table_now(table));
        assert_int_equal(table->holders[500].pid, words[i]);
        weir__holder_lock_give(other, 500);
        table->header->holders_at = 0;
        weir__holders_bury(table, weir_table_now(table));
        assert_int_equal(table->holders[500].pid, 0);
    }
}

TEST(test_a_process_gets_a_place_once_there_is_one)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    OWN(weir_table) *other = attach(path);
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    assert_int_equal(waitpid(dead, NULL, 0), dead);
    uint32_t me = weir__holder_me(table);
    weir__holder_lock_give(table, me);
    struct weir__holder holder = table->holders[me];
    holder.pid = (uint32_t)dead;
    for (size_t i = 1; i < WEIR__HOLDERS; i++)
        table->holders[i] = holder;
    assert_int_equal(weir__holder_me(other), 0);
    weir__holders_bury(other, weir_table_now(other));
    assert_int_not_equal(weir__holder_me(other), 0);
    assert_int_equal(places_of(table, dead), 0);
}

TEST(test_what_nobody_uses_goes_after_a_restart_too)
{
    const char *path = new_path();
    struct weir_table *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });

    take(limiter_of(table, "a", "gcra 10/10s"), "k", 5, NOW);
    take(limiter_of(table, "b", "gcra 10/10s"), "k", 5, NOW);
    weir_table_destroy(table);
    table = attach(path);
    limiter_of(table, "b", "gcra 10/10s");
    tend(table, NOW, 2 * MINUTE);
    assert_false(has(table, "a"));
    assert_true(has(table, "b"));
    weir_table_destroy(table);
}

TEST(test_the_clock_steps_back_and_limiters_still_go)
{
    OWN(weir_table) *table = private_table(false, 1000);
    weir_limiter_drop(limiter_of(table, "l", "gcra 10/1d"));
    tend(table, 100000 * NOW, 20 * S);
    tend(table, NOW, 2 * MINUTE);
    assert_false(has(table, "l"));
}

/* ------------------------------------------------------------- a thousand ---- */

TEST(test_a_thousand_renames_leave_the_size)
{
    const char *path = new_path();

    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 1000, .limiters = 16 });
    weir_time now = NOW;
    int64_t disk = 0;

    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "r%d", i);
        struct weir_limiter *window = limiter_of(table, name, "sliding-window 1000/1d");
        for (int k = 0; k < 20; k++) {
            char key[16];
            snprintf(key, sizeof(key), "k%d", k);
            take(window, key, 1, now);
        }
        weir_limiter_drop(window);
        if (i % 10 == 9)
            now = tend(table, now + 10 * S, MINUTE);
        if (i == 19)
            disk = disk_of(path);
    }
    assert_int_equal(keys_of(table), 0);
    assert_int_equal(stats_of(table, -1).limiters, 0);
    assert_true(disk_of(path) <= disk + (64 << 10));
    assert_int_equal(weir__slab_stats(&table->names.slab).bytes, 0);
}

TEST(test_a_thousand_changes_leave_the_size)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct weir_limiter *limiter = limiter_of(table, "l", "sliding-window 10/1h");
    struct weir_guard *guard = NULL;
    int64_t disk = 0;

    assert_ok(weir_guard_create(&guard, table, "g", NULL, NULL));
    for (int i = 0; i < 1000; i++) {
        char text[32];
        snprintf(text, sizeof(text), "sliding-window %d/1h", 11 + i % 7);
        change(limiter, text, NOW + i * S);
        take(limiter, "k", 1, NOW + i * S);
        assert_ok(weir_guard_change(guard, &(struct weir_guard_options){ .max = 5 + i % 3 }, NULL));
        if (i == 10)
            disk = disk_of(path);
    }
    assert_true(disk_of(path) <= disk);
    assert_int_equal(weir__slab_stats(&table->names.slab).chunks, 1);
}

/* Places are used again, by limiters of other kinds. */
TEST(test_places_are_used_again)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .keys = 64, .limiters = 3 });
    static const char *const limits[] = { "gcra 10/1d", "sliding-window 10/1d", "sliding-log 10/1d",
                                          "fixed-window 10/1d" };
    weir_time now = NOW;

    for (int i = 0; i < 200; i++) {
        char name[16], key[16];
        snprintf(name, sizeof(name), "l%d", i);
        struct weir_limiter *limiter = limiter_of(table, name, limits[i % 4]);
        for (int k = 0; k < 100; k++) { /* more than there is room for */
            snprintf(key, sizeof(key), "k%d", k);
            take(limiter, key, 2, now);
        }
        assert_int_equal(left(limiter, key, now), 8);
        weir_limiter_drop(limiter);
        now = tend(table, now, MINUTE);
        assert_int_equal(keys_of(table), 0);
        assert_int_equal(stats_of(table, -1).slab_used, 0);
    }
}

TEST(test_the_end_of_time_is_a_time_like_any_other)
{
    OWN(weir_table) *table = private_table(false, 16);
    weir_limiter_release(limiter_of(table, "l", "gcra 5/1m"));
    weir_table_tend(table, INT64_MAX);
    weir_table_tend(table, NOW);
    weir_table_tend(table, INT64_MAX);
}

TEST(test_all_places_are_taken)
{
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .limiters = 2 });
    struct weir_limit limit = limit_of("gcra 10/1d");
    struct weir_limiter *limiter;
    struct weir_error error;

    limiter_of(table, "a", "gcra 10/1d");
    struct weir_limiter *b = limiter_of(table, "b", "gcra 10/1d");
    assert_int_equal(weir_limiter_create(&limiter, table, "c", &limit, &error), WEIR_NO_MEMORY);
    assert_contains(error.text, "made for 2 limiters");
    weir_limiter_drop(b);
    tend(table, NOW, 2 * MINUTE);
    limiter_of(table, "c", "gcra 10/1d");
}

/* ---------------------------------------------------------------- guards ---- */

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
