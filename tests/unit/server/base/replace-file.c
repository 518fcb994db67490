/* replace-file.c -- a file replaced whole: what stays of the old one, what is left when it fails.
 * tests/crash/store.c kills it on the way. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <errno.h>
#include <sys/wait.h>

#include "server/base/replace-file.h"

static void assert_text(const char *path, const char *wanted)
{
    char got[256] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    size_t len = fread(got, 1, sizeof(got) - 1, file);
    fclose(file);
    assert_int_equal(len, strlen(wanted));
    assert_string_equal(got, wanted);
}

static void replace(const char *path, const char *text)
{
    struct weir_error error = { 0 };

    if (weir__store_replace(path, text, strlen(text), &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static size_t files_in(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);

    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

TEST(test_a_new_file)
{
    const char *path = new_path();

    replace(path, "one");
    assert_text(path, "one");
    assert_int_equal(mode_of(path), 0600);
    replace(path, "");
    assert_text(path, "");
}

TEST(test_permissions_stay)
{
    const char *path = new_path();
    static const unsigned modes[] = { 0644, 0640, 0400, 0664 };

    replace(path, "old");
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        replace(path, i % 2 ? "old" : "new");
        assert_int_equal(mode_of(path), modes[i]);
        assert_text(path, i % 2 ? "old" : "new");
    }
}

TEST(test_a_link_stays_one)
{
    const char *path = new_path(), *name = new_path();
    struct stat st;

    replace(path, "old");
    assert_int_equal(symlink(path, name), 0);
    replace(name, "new");
    assert_int_equal(lstat(name, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_text(path, "new");
}

TEST(test_nothing_happens_before_commit)
{
    const char *path = new_path();
    struct weir__store store;

    replace(path, "old");
    size_t before = files_in(folder);
    assert_ok(weir__store_begin(&store, path, "new", 3, NULL));
    assert_text(path, "old");
    assert_int_equal(files_in(folder), before + 1);
    weir__store_drop(&store);
    assert_text(path, "old");
    assert_int_equal(files_in(folder), before);
    assert_ok(weir__store_begin(&store, path, "new", 3, NULL));
    assert_ok(weir__store_commit(&store, NULL));
    assert_text(path, "new");
    assert_int_equal(files_in(folder), before);
}

TEST(test_errors_name_the_file_and_leave_nothing)
{
    char path[512];
    struct weir_error error = { 0 };
    struct weir__store store = { .folder = 77 };
    size_t before = files_in(folder);

    snprintf(path, sizeof(path), "%s/nowhere/rules", folder);
    assert_int_equal(weir__store_begin(&store, path, "x", 1, &error), WEIR_SYSTEM);
    assert_int_equal(store.folder, 77);
    assert_contains(error.text, "nowhere/rules");
    assert_int_equal(weir__store_replace(folder, "x", 1, &error), WEIR_SYSTEM);
    assert_contains(error.text, "not a regular file");
    assert_int_equal(files_in(folder), before);
}

/* The folder goes away between begin and commit: the new text with it, and the error says so. */
TEST(test_commit_can_fail)
{
    char inner[400], path[512];
    struct weir__store store;

    snprintf(inner, sizeof(inner), "%s/inner", folder);
    snprintf(path, sizeof(path), "%s/rules", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_ok(weir__store_begin(&store, path, "new", 3, NULL));
    assert_int_equal(weir__store_clean(path), 1);
    assert_fails(weir__store_commit(&store, &error), WEIR_SYSTEM, "cannot replace");
    assert_int_equal(rmdir(inner), 0);
}

static void touch(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    write_at(path, 0, "x", 1);
}

TEST(test_leftovers_are_removed_and_nothing_else)
{
    char path[512];
    static const char *const left[] = { ".r.yaml.weir-0123456789abcdef",
                                        ".r.yaml.weir-ffffffffffffffff-old" };
    static const char *const stays[] = {
        ".r.yaml.weir-0123456789abcde",  ".r.yaml.weir-0123456789abcdef-new",
        "r.yaml.weir-0123456789abcdef",  ".q.yaml.weir-0123456789abcdef",
        ".r.yaml.weir-0123456789abcdeg", ".r.yaml"
    };

    for (size_t i = 0; i < COUNT_OF(left); i++)
        touch(left[i]);
    for (size_t i = 0; i < COUNT_OF(stays); i++)
        touch(stays[i]);
    snprintf(path, sizeof(path), "%s/r.yaml", folder);
    assert_int_equal(weir__store_clean(path), COUNT_OF(left));
    assert_int_equal(weir__store_clean(path), 0);
    for (size_t i = 0; i < COUNT_OF(stays); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, stays[i]);
        assert_true(is_there(path));
    }
    assert_int_equal(weir__store_clean("/no/such/folder/r.yaml"), 0);
}

/* A successor starts while its predecessor writes. */
TEST(test_what_another_process_writes_just_now_is_no_leftover)
{
    const char *path = new_path();
    int ready[2], go[2], status;
    char byte;

    assert_int_equal(pipe(ready) | pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        struct weir__store store;
        close(go[1]);
        bool began = weir__store_begin(&store, path, "new", 3, NULL) == WEIR_OK &&
                     write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 0;
        _exit(!began || weir__store_commit(&store, NULL) != WEIR_OK);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    size_t removed = weir__store_clean(path);
    close(go[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ready[0]), close(ready[1]), close(go[0]);
    assert_int_equal(removed, 0);
    assert_int_equal(status, 0);
    assert_text(path, "new");
}

TEST(test_a_name_without_a_folder)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);

    assert_true(here >= 0);
    assert_int_equal(chdir(folder), 0);
    replace("bare", "one");
    replace("bare", "two");
    assert_text("bare", "two");
    assert_int_equal(weir__store_clean("bare"), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
}

/* ---------------------------------------------------------------- turns ---- */

TEST(test_lock)
{
    const char *path = new_path();
    char name[400];
    struct stat st;

    snprintf(name, sizeof(name), "%s.lock", path);
    assert_int_equal(weir__store_lock(path, false, true), -1); /* nobody ever had one */
    assert_int_equal(errno, ENOENT);
    assert_false(is_there(name));
    int lock = weir__store_lock(path, true, true);
    assert_true(lock >= 0);
    assert_int_equal(stat(name, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(fcntl(lock, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(weir__store_lock(path, true, false), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    int copy = dup(lock); /* as a child has that was forked meanwhile */
    weir__store_unlock(lock);
    lock = weir__store_lock(path, false, false);
    assert_true(lock >= 0);
    weir__store_unlock(lock);
    weir__store_unlock(-1);
    close(copy);
    assert_int_equal(weir__store_lock("/no/such/folder/r.yaml", true, true), -1);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(symlink(path, name), 0); /* nobody is led elsewhere */
    assert_int_equal(weir__store_lock(path, true, true), -1);
    assert_false(is_there(path));
}

GROUP(make_folder, remove_folder)
