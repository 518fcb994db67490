/* holders.c -- the processes on a table: their places, and what they leave when they end, fork or
 * become another program. */
#include "unit/test.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "table/holder-lock.h"
#include "table/holders.h"
#include "table/registry.h"
#include "unit/tending.h"

GROUP(make_folder, remove_folder)

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
    assert_true(has_limiter(table, "l"));
    tend(table, weir_table_now(table) + MINUTE, 30 * 24 * 60 * MINUTE);
    assert_false(has_limiter(table, "l"));
}

/* It may still tell somebody, or begin anew. */
TEST(test_a_child_does_not_die_of_a_table_that_was_cut)
{
    const char *path = new_path();
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        (void)table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
        pid_t child = truncate(path, 0) == 0 ? fork() : -1;
        if (child == 0)
            _exit(0);
        _exit(child < 0 || waitpid(child, &status, 0) != child || status != 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
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
    assert_true(has_limiter(table, "l"));
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
    assert_true(has_limiter(table, "l")); /* one is at it */
    pid_t pid = fork();
    if (pid == 0) {
        tend(table, NOW, 2 * MINUTE);
        _exit(has_limiter(table, "l") ? 1 : 0);
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
    assert_false(has_limiter(table, "l"));
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
