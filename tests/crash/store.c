/* store.c -- rules and lists set by API, killed at every system call on the way, and every one of
 * them failing.
 *
 *     store FOLDER
 *
 * Linked with --wrap for the calls that change files.  For each change and each n: a child dies
 * before its n-th call (or in the middle of it, if that is a write), and a fresh start must find
 * the old text or the new one, whole, and clean up behind it; then the n-th call fails, and either
 * the change is in force and in the file, or it is an error and the old one is, in both.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/serve/rules/rules-in-force.h"

#define NOW  (1000 * WEIR_SECOND)
#define FIVE "version: 1\nrules:\n  - name: all\n    limit: 5/60\n"

/* ------------------------------------------------------------ the calls ---- */

enum what { NOTHING, DIE, FAIL, CUT };

static enum what what; /* happens at a call, ... */
static long left;      /* ... after this many; below 0: it has */
static int why;        /* errno of one that fails */

/* Whether it is this call's turn. */
static bool is_now(void)
{
    if (what == NOTHING || left < 0 || left-- > 0)
        return false;
    if (what == DIE)
        _exit(9);
    return what == FAIL;
}

static int fail(void)
{
    errno = why;
    return -1;
}

int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t len);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_close(int fd);
int __real_link(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_fchmod(int fd, mode_t mode);
int __real_fchown(int fd, uid_t owner, gid_t group);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_close(int fd);
int __wrap_link(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchown(int fd, uid_t owner, gid_t group);

int __wrap_open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return is_now() ? fail() : __real_open(path, flags, mode);
}

int __wrap_open64(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return is_now() ? fail() : __real_open64(path, flags, mode);
}

/* Dies with half of it written; or half is all that is written, which is no failure. */
ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    bool cut = (what == CUT || what == DIE) && left == 0 && len > 1;

    if (cut && what == DIE)
        (void)!__real_write(fd, bytes, len / 2);
    return is_now() ? fail() : __real_write(fd, bytes, cut ? len / 2 : len);
}

int __wrap_fsync(int fd)
{
    return is_now() ? fail() : __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    return is_now() ? fail() : __real_rename(from, to);
}

int __wrap_close(int fd)
{
    bool now = is_now();
    int code = __real_close(fd);

    return now ? fail() : code;
}

int __wrap_link(const char *from, const char *to)
{
    return is_now() ? fail() : __real_link(from, to);
}

int __wrap_unlink(const char *path)
{
    return is_now() ? fail() : __real_unlink(path);
}

int __wrap_fchmod(int fd, mode_t mode)
{
    return is_now() ? fail() : __real_fchmod(fd, mode);
}

int __wrap_fchown(int fd, uid_t owner, gid_t group)
{
    return is_now() ? fail() : __real_fchown(fd, owner, group);
}

/* ------------------------------------------------------------ a server ---- */

static char rules_path[600], table_path[600], kept_path[640], lists_path[640], lock_path[680];
static char seven[100000]; /* a limit of 7, and more text than goes into one page */

struct host {
    struct weir_table *table;
    struct weir *engine;
    struct weir__in_force *in_force;
};

static void must(bool good, const char *text)
{
    if (good)
        return;
    fprintf(stderr, "the test itself failed: %s\n", text);
    exit(2);
}

static bool start(struct host *h, const char *rules, struct weir_error *error)
{
    struct weir_table_options options = { .keys = 1024, .limiters = 64 };

    must(weir_table_create(&h->table, &options, error) == WEIR_OK, "table");
    must(weir_create(&h->engine, &(struct weir_options){ .table = h->table }, error) == WEIR_OK,
         "engine");
    struct weir__in_force_options in_force = { .engine = h->engine,
                                               .rules = rules,
                                               .beside = table_path };
    return weir__in_force_create(&h->in_force, &in_force, NOW, error) == WEIR_OK;
}

static void stop(struct host *h)
{
    weir__in_force_destroy(h->in_force);
    weir_destroy(h->engine);
    weir_table_destroy(h->table);
    *h = (struct host){ 0 };
}

/* What is in force: the limit (0: none), and how many of two addresses are denied. */
struct force {
    int64_t limit;
    int denied;
};

static struct force force_of(struct host *h)
{
    struct weir_ruling ruling;
    struct weir_ask peek = { .now = NOW };
    struct force f = { 0, 0 };

    weir_check(h->engine, &(struct weir_attr){ .name = "account", .value = "ann" }, 1, &peek,
               &ruling);
    f.limit = ruling.count;
    for (int i = 0; i < 2; i++) {
        weir_check(h->engine,
                   &(struct weir_attr){ .name = "ip", .value = i ? "192.0.2.1" : "192.0.2.0" }, 1,
                   &peek, &ruling);
        f.denied += ruling.decision.reason == WEIR_DENIED;
    }
    return f;
}

/* ---------------------------------------------------------- the changes ---- */

static int set_rules(struct host *h, struct weir_error *error)
{
    return weir__in_force_set(h->in_force, seven, strlen(seven), NOW, NULL, error);
}

static int add(struct host *h, const char *address, struct weir_error *error)
{
    return weir__in_force_list_edit(h->in_force,
                                    &(struct weir_list_edit){ "deny", "ip", &address, 1, NULL, 0 },
                                    NOW, NULL, error);
}

static int add_first(struct host *h, struct weir_error *error)
{
    return add(h, "192.0.2.0", error);
}

static int add_second(struct host *h, struct weir_error *error)
{
    return add(h, "192.0.2.1", error);
}

static const struct change {
    const char *name;
    bool file; /* the server was given a rule file */
    bool list; /* there is a list already */
    int (*make)(struct host *host, struct weir_error *error);
    struct force old, new;
} changes[] = {
    { "rules in their file", true, false, set_rules, { 5, 0 }, { 7, 0 } },
    { "rules beside the table, for the first time", false, true, set_rules, { 0, 1 }, { 7, 1 } },
    { "a list, for the first time", true, false, add_first, { 5, 0 }, { 5, 1 } },
    { "a list once more", true, true, add_second, { 5, 1 }, { 5, 2 } },
};

static void prepare(const struct change *c)
{
    struct host h = { 0 };
    struct weir_error error = { 0 };

    unlink(kept_path);
    unlink(lists_path);
    unlink(lock_path);
    FILE *file = fopen(rules_path, "w");
    must(file && fputs(FIVE, file) >= 0 && fclose(file) == 0, "rules");
    if (!c->list)
        return;
    must(start(&h, rules_path, &error) && add_first(&h, &error) == WEIR_OK, error.text);
    stop(&h);
}

static size_t files_in(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);

    must(dir != NULL, folder);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

static bool same(struct force a, struct force b)
{
    return a.limit == b.limit && a.denied == b.denied;
}

/* What a fresh start finds; and nothing is left behind then. */
static bool restart(const struct change *c, struct force *found, const char *folder, char *text,
                    size_t size)
{
    struct host h = { 0 };
    struct weir_error error = { 0 };
    bool started = start(&h, c->file ? rules_path : "", &error);

    *found = started ? force_of(&h) : (struct force){ -1, -1 };
    stop(&h);
    size_t wanted = 3, there = files_in(folder); /* the rules, . and .. */
    wanted += access(kept_path, F_OK) == 0;
    wanted += access(lists_path, F_OK) == 0;
    wanted += access(lock_path, F_OK) == 0;
    if (!started)
        snprintf(text, size, "the server does not start: %s", error.text);
    else if (there != wanted)
        snprintf(text, size, "%zu files are left, not %zu", there, wanted);
    return started && there == wanted;
}

/* ------------------------------------------------------------ the tests ---- */

static long passed, failed;

static void count(const struct change *c, const char *how, long n, bool good, const char *text)
{
    passed += good;
    failed += !good;
    if (!good)
        fprintf(stderr, "%s, call %ld %s: %s\n", c->name, n, how, text);
}

/* False once there are fewer calls. */
static bool die_at(const struct change *c, long n, const char *folder)
{
    int status = 0;
    char text[320] = "neither the old nor the new is there";
    struct force found;

    prepare(c);
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        struct host h = { 0 };
        struct weir_error error;
        must(start(&h, c->file ? rules_path : "", &error), error.text);
        what = DIE;
        left = n;
        _exit(c->make(&h, &error) == WEIR_OK ? 0 : 1);
    }
    must(waitpid(child, &status, 0) == child && WIFEXITED(status), "wait");
    bool good = restart(c, &found, folder, text, sizeof(text));
    if (WEXITSTATUS(status) == 0)
        good = good && same(found, c->new);
    else
        good = good && WEXITSTATUS(status) == 9 && (same(found, c->old) || same(found, c->new));
    count(c, "kills", n, good, text);
    return WEXITSTATUS(status) == 9;
}

static bool fail_at(const struct change *c, long n, enum what how, int number, const char *folder)
{
    struct host h = { 0 };
    struct weir_error error = { 0 };
    struct force found;
    char text[320] = "in force, kept and told are not the same";

    prepare(c);
    must(start(&h, c->file ? rules_path : "", &error), error.text);
    error.text[0] = '\0';
    what = how;
    left = n;
    why = number;
    int code = c->make(&h, &error);
    bool happened = left < 0;
    what = NOTHING;
    struct force wanted = code == WEIR_OK ? c->new : c->old, now = force_of(&h);
    stop(&h);
    bool good =
        restart(c, &found, folder, text, sizeof(text)) && same(now, wanted) && same(found, wanted);
    good = good && (code == WEIR_OK) == (error.text[0] == '\0') && (happened || code == WEIR_OK) &&
           (how == FAIL || code == WEIR_OK);
    count(c, how == CUT ? "writes half" : strerror(number), n, good, text);
    return happened;
}

int main(int argc, char **argv)
{
    char folder[512];

    snprintf(folder, sizeof(folder), "%s/weir-crash-XXXXXX", argc > 1 ? argv[1] : "/tmp");
    must(mkdtemp(folder) != NULL, "folder");
    snprintf(rules_path, sizeof(rules_path), "%s/rules.yaml", folder);
    snprintf(table_path, sizeof(table_path), "%s/table", folder);
    snprintf(kept_path, sizeof(kept_path), "%s.rules", table_path);
    snprintf(lists_path, sizeof(lists_path), "%s.lists", table_path);
    snprintf(lock_path, sizeof(lock_path), "%s.lock", lists_path);
    int len =
        snprintf(seven, sizeof(seven), "version: 1\nrules:\n  - name: all\n    limit: 7/60\n# ");
    memset(seven + len, 'x', sizeof(seven) - (size_t)len - 1);
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        const struct change *c = &changes[i];
        for (long n = 0; die_at(c, n, folder); n++)
            ;
        for (long n = 0; fail_at(c, n, FAIL, ENOSPC, folder); n++)
            ;
        for (long n = 0; fail_at(c, n, FAIL, EIO, folder); n++)
            ;
        for (long n = 0; fail_at(c, n, CUT, 0, folder); n++)
            ;
    }
    unlink(rules_path);
    unlink(kept_path);
    unlink(lists_path);
    unlink(lock_path);
    failed += rmdir(folder) != 0;
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed < 40;
}
