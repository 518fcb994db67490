/* fixture.h -- shared by the tests of tables: tables and limiters from one line of text, asks, and
 * a folder that goes with the test. */
#ifndef WEIR_TESTS_UNIT_FIXTURE_H
#define WEIR_TESTS_UNIT_FIXTURE_H

#include "unit/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "random.h"
#include "table/table.h"

#define S   WEIR_SECOND
#define NOW (1000 * WEIR_SECOND)

OWNS(weir)
OWNS(weir_plan)
OWNS(weir_rules)
OWNS(weir_table)

/* ------------------------------------------------------ tables and limiters ---- */

static inline struct weir_limit limit_of(const char *text)
{
    struct weir_limit limit;
    struct weir_error error;

    if (weir_limit_parse(&limit, text, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    return limit;
}

static inline struct weir_table *table_with(const struct weir_table_options *options)
{
    struct weir_table *table = NULL;
    struct weir_error error = { 0 };

    if (weir_table_create(&table, options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    assert_non_null(table);
    return table;
}

static inline struct weir_table *private_table(bool narrow, int64_t keys)
{
    return table_with(&(struct weir_table_options){
        .keys = keys, .guards = 4, .narrow = narrow }); /* some tests compare every byte */
}

static inline struct weir_table *table_with_slab(int64_t keys, int64_t slab)
{
    return table_with(&(struct weir_table_options){ .keys = keys, .slab = slab, .guards = 4 });
}

static inline struct weir_table *attach(const char *path)
{
    struct weir_table *table = NULL;
    struct weir_error error = { 0 };

    if (weir_table_attach(&table, path, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    assert_non_null(table);
    return table;
}

static inline struct weir_limiter *limiter_of(struct weir_table *table, const char *name,
                                              const char *text)
{
    struct weir_limiter *limiter = NULL;
    struct weir_limit limit = limit_of(text);
    struct weir_error error = { 0 };

    if (weir_limiter_create(&limiter, table, name, &limit, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
    assert_non_null(limiter);
    return limiter;
}

static inline void change(struct weir_limiter *limiter, const char *text, weir_time now)
{
    struct weir_limit limit = limit_of(text);
    struct weir_error error = { 0 };

    if (weir_limiter_change(limiter, &limit, now, &error) != WEIR_OK)
        fail_msg("%s: %s", text, error.text);
}

static inline struct weir_table_stats stats_of(const struct weir_table *table, weir_time now)
{
    struct weir_table_stats stats;

    weir_table_stats(table, now, &stats);
    return stats;
}

/* The table gets no more disk space: for these files nobody may ask for any. */
static inline void fill_disk(struct weir_table *table)
{
    table->keys.slab.fd = table->bans.slab.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(table->keys.slab.fd >= 0);
}

static inline void empty_disk(struct weir_table *table)
{
    close(table->keys.slab.fd);
    table->keys.slab.fd = table->bans.slab.fd = table->fd;
}

static inline int64_t keys_of(const struct weir_table *table)
{
    struct weir_table_stats stats = stats_of(table, -1);

    return stats.keys;
}

/* --------------------------------------------------------------------- asks ---- */

/* One of many keys. */
static inline const char *name_of(const char *what, int i)
{
    static char names[8][32];
    static int next;
    char *name = names[next++ % 8];

    snprintf(name, sizeof(names[0]), "%s %d", what, i);
    return name;
}

static inline struct weir_key key_of(const char *text)
{
    return (struct weir_key){ text, strlen(text) };
}

static inline struct weir_ask ask_of(const char *key, int64_t cost, weir_time now)
{
    return (struct weir_ask){ .key = key_of(key), .cost = cost, .now = now };
}

static inline struct weir_decision take(struct weir_limiter *limiter, const char *key, int64_t cost,
                                        weir_time now)
{
    struct weir_ask ask = ask_of(key, cost, now);
    struct weir_decision d;

    memset(&d, 0xa5, sizeof(d));
    bool allowed = weir_take(limiter, &ask, &d);
    assert_int_equal(allowed, d.allowed);
    return d;
}

static inline struct weir_decision peek(struct weir_limiter *limiter, const char *key, int64_t cost,
                                        weir_time now)
{
    struct weir_ask ask = ask_of(key, cost, now);
    struct weir_decision d;

    memset(&d, 0xa5, sizeof(d));
    bool allowed = weir_peek(limiter, &ask, &d);
    assert_int_equal(allowed, d.allowed);
    return d;
}

static inline void give(struct weir_limiter *limiter, const char *key, int64_t cost, weir_time now)
{
    struct weir_ask ask = ask_of(key, cost, now);

    weir_give(limiter, &ask);
}

static inline int64_t left(struct weir_limiter *limiter, const char *key, weir_time now)
{
    return peek(limiter, key, 0, now).remaining;
}

static inline void assert_same_decision(const struct weir_decision *got,
                                        const struct weir_decision *wanted)
{
    assert_fields(*got, (allowed, wanted->allowed), (reason, wanted->reason), (item, wanted->item),
                  (limit, wanted->limit), (remaining, wanted->remaining), (wait, wanted->wait),
                  (retry, wanted->retry), (reset, wanted->reset));
}

static inline void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* The call has an error of its own: assert_fails(weir_use(weir, rules, NOW, &error), ...). */
#define assert_fails(call, code, says)     \
    do {                                   \
        struct weir_error error = { 0 };   \
        assert_int_equal(call, code);      \
        assert_contains(error.text, says); \
    } while (0)

/* ------------------------------------------------------------------- folder ---- */

static char folder[256];

static inline int make_folder(void **state)
{
    const char *base = getenv("TMPDIR");

    snprintf(folder, sizeof(folder), "%s/weir-unit-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(folder) == NULL;
}

static inline int remove_folder(void **state)
{
    DIR *dir = opendir(folder);

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        if (unlinkat(dirfd(dir), entry->d_name, 0) != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    if (dir != NULL)
        closedir(dir);
    return rmdir(folder);
}

/* A path in the folder where there is nothing; good until the next but three. */
static inline const char *new_path(void)
{
    static char paths[4][320];
    static unsigned count;
    char *path = paths[count % 4];

    snprintf(path, sizeof(paths[0]), "%s/%u", folder, count++);
    return path;
}

static inline bool is_there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

static inline void write_at(const char *path, size_t at, const void *bytes, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, (off_t)at), size);
    close(fd);
}

static inline void read_at(const char *path, size_t at, void *bytes, size_t size)
{
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, size, (off_t)at), size);
    close(fd);
}

#endif
