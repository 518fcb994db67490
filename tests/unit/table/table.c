/* table.c -- making a table and attaching to one: what is refused, in which words, and that nothing
 * is left behind. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "table/file.h"

/* A pointer that a failing function must leave alone. */
static struct weir_table *const untouched = (struct weir_table *)(uintptr_t)0x5a5a;

static void expect_create_fails(const struct weir_table_options *options, int code,
                                const char *words)
{
    struct weir_table *table = untouched;
    struct weir_error error = { .column = 77 };
    int got = weir_table_create(&table, options, &error);

    if (got != code)
        fail_msg("creating for \"%s\" gave %d: %s", words, got, error.text);
    assert_ptr_equal(table, untouched);
    assert_int_equal(error.column, 0);
    assert_contains(error.text, words);
    assert_null(strchr(error.text, '\n'));
    assert_int_equal(weir_table_create(&table, options, NULL), code);
}

static void expect_attach_fails(const char *path, int code, const char *words)
{
    struct weir_table *table = untouched;
    struct weir_error error = { .column = 77 };
    int got = weir_table_attach(&table, path, &error);

    if (got != code)
        fail_msg("attaching for \"%s\" gave %d: %s", words, got, error.text);
    assert_ptr_equal(table, untouched);
    assert_contains(error.text, words);
    assert_contains(error.text, path);
    assert_int_equal(weir_table_attach(&table, path, NULL), code);
}

/* ------------------------------------------------------------------ options ---- */

TEST(test_sizes_out_of_bounds_are_refused_and_leave_no_file)
{
    static const int64_t bad[] = { -1, -65536, INT64_MIN, ((int64_t)1 << 40) + 1, INT64_MAX };

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            const char *path = new_path();
            expect_create_fails(&(struct weir_table_options){ .keys = bad[i], .narrow = narrow },
                                WEIR_INVALID, "keys");
            expect_create_fails(
                &(struct weir_table_options){ .keys = bad[i], .narrow = narrow, .path = path },
                WEIR_INVALID, "keys");
            assert_false(is_there(path));
            expect_create_fails(&(struct weir_table_options){ .slab = bad[i], .narrow = narrow },
                                WEIR_INVALID, "slab");
            expect_create_fails(
                &(struct weir_table_options){ .slab = bad[i], .narrow = narrow, .path = path },
                WEIR_INVALID, "slab");
            assert_false(is_there(path));
        }
}

TEST(test_limiters_and_bans_out_of_bounds_are_refused)
{
    static const int64_t bad_limiters[] = { -1, 65537, INT64_MIN, INT64_MAX },
                         bad_bans[] = { -1, 1048577, INT64_MIN, INT64_MAX };
    const char *path = new_path();

    for (size_t i = 0; i < COUNT_OF(bad_limiters); i++) {
        expect_create_fails(
            &(struct weir_table_options){ .limiters = bad_limiters[i], .path = path }, WEIR_INVALID,
            "limiters must be");
        expect_create_fails(&(struct weir_table_options){ .bans = bad_bans[i], .path = path },
                            WEIR_INVALID, "bans must be");
        assert_false(is_there(path));
    }
    weir_table_destroy(
        table_with(&(struct weir_table_options){ .limiters = 65536, .bans = 1048576 }));
    weir_table_destroy(table_with(&(struct weir_table_options){ .limiters = 1, .bans = 1 }));
}

/* Room for limiters is asked for in good measure, so what is not used must cost nothing. */
TEST(test_defaults)
{
    struct weir_table *table = table_with(NULL);
    struct weir_table_stats s = stats_of(table, -1);

    assert_true(s.slots >= 65536);
    assert_true(s.bytes >= s.slots * 32 + (16 << 20));
    assert_false(s.narrow);
    assert_int_equal(s.keys + s.limiters + s.evicted_idle + s.evicted_early + s.recovered, 0);
    assert_int_equal(s.live, -1);
    weir_table_destroy(table);
    weir_table_destroy(NULL);
}

TEST(test_one_key_is_a_table)
{
    for (int narrow = 0; narrow < 2; narrow++) {
        OWN(weir_table) *table =
            table_with(&(struct weir_table_options){ .keys = 1, .slab = 1, .narrow = narrow });
        struct weir_limiter *limiter = limiter_of(table, "l", "gcra 2/1m");
        assert_true(take(limiter, "k", 2, NOW).allowed);
        assert_false(take(limiter, "k", 1, NOW).allowed);
        assert_int_equal(stats_of(table, -1).narrow, narrow);
    }
}

TEST(test_no_room_for_the_file_is_an_error_and_leaves_none)
{
    struct rlimit old, small;
    const char *path = new_path();

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){ 1 << 20, old.rlim_max };
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct weir_table *table = untouched;
    struct weir_error error = { 0 };
    int code = weir_table_create(
        &table, &(struct weir_table_options){ .path = path, .keys = 1000000 }, &error);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, before);
    assert_int_equal(code, WEIR_SYSTEM);
    assert_ptr_equal(table, untouched);
    assert_contains(error.text, strerror(EFBIG));
    assert_false(is_there(path));
}

TEST(test_no_room_in_memory_is_an_error)
{
#ifdef SANITIZED
    skip(); /* has more address space than any bound */
#else
    struct rlimit old, small;
    struct weir_table *table = untouched;
    struct weir_error error = { 0 };
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    small = (struct rlimit){ (rlim_t)8 << 30, old.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
    int code =
        weir_table_create(&table, &(struct weir_table_options){ .keys = (int64_t)1 << 30 }, &error);
    setrlimit(RLIMIT_AS, &old);
    assert_int_equal(code, WEIR_NO_MEMORY);
    assert_ptr_equal(table, untouched);
    assert_contains(error.text, "map");
#endif
}

/* -------------------------------------------------------------------- paths ---- */

TEST(test_paths_that_cannot_be_are_refused)
{
    char path[400];

    snprintf(path, sizeof(path), "%s/missing/table", folder);
    expect_create_fails(&(struct weir_table_options){ .path = path }, WEIR_SYSTEM,
                        strerror(ENOENT));
    expect_attach_fails(path, WEIR_SYSTEM, strerror(ENOENT));
    expect_create_fails(&(struct weir_table_options){ .path = folder }, WEIR_SYSTEM,
                        strerror(EISDIR));
    expect_attach_fails(folder, WEIR_SYSTEM, strerror(EISDIR));
    expect_create_fails(&(struct weir_table_options){ .path = "" }, WEIR_SYSTEM, strerror(ENOENT));
    snprintf(path, sizeof(path), "%s/fifo", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_create_fails(&(struct weir_table_options){ .path = path }, WEIR_INVALID,
                        "not a regular file");
    expect_attach_fails(path, WEIR_INVALID, "not a regular file");
    assert_true(is_there(path)); /* it was not ours to remove */
}

TEST(test_a_file_that_may_not_be_read_is_refused)
{
    const char *path = new_path();
    bool root = geteuid() == 0;

    weir_table_destroy(table_with(&(struct weir_table_options){ .path = path, .keys = 1 }));
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    if (root && seteuid(65534) != 0) /* root may read anything */
        skip();
    struct weir_table *table = untouched;
    struct weir_error error = { 0 };
    int code = weir_table_attach(&table, path, &error);
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(code, WEIR_SYSTEM);
    assert_ptr_equal(table, untouched);
    assert_contains(error.text, strerror(EACCES));
}

TEST(test_a_new_file_has_the_mode_asked_for)
{
    static const unsigned modes[][2] = {
        { 0, 0600 }, { 0640, 0640 }, { 0666, 0666 }, { 0400, 0400 }
    };
    mode_t mask = umask(0);

    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        const char *path = new_path();
        struct stat st;
        weir_table_destroy(table_with(
            &(struct weir_table_options){ .path = path, .keys = 1, .mode = modes[i][0] }));
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 07777, modes[i][1]);
    }
    umask(mask);
}

TEST(test_a_new_file_has_the_owner_and_group_asked_for)
{
    const char *path = new_path();
    bool root = geteuid() == 0;
    unsigned mine = getegid(), other = root ? 12345 : mine, owner = root ? 54321 : 0;
    struct stat st;

    weir_table_destroy(table_with(
        &(struct weir_table_options){ .path = path, .keys = 1, .owner = owner, .group = other }));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, root ? owner : geteuid());
    assert_int_equal(st.st_gid, other);
    assert_int_equal(st.st_mode & 07777, other ? 0660 : 0600);
    weir_table_destroy(table_with(
        &(struct weir_table_options){ .path = path, .keys = 1, .group = 23456, .mode = 0604 }));
    assert_int_equal(stat(path, &st), 0); /* an old file stays as it is */
    assert_int_equal(st.st_gid, other);
    assert_int_equal(st.st_mode & 07777, other ? 0660 : 0600);
}

TEST(test_an_owner_that_cannot_be_given_is_an_error_and_leaves_no_file)
{
    const char *path = new_path();
    pid_t pid = fork();

    if (pid == 0) { /* not as root */
        struct weir_table *table;
        struct weir_error error = { 0 };
        if (geteuid() == 0 && (chmod(folder, 0777) || setgid(65534) || setuid(65534)))
            _exit(1);
        struct weir_table_options o = { .path = path, .keys = 1, .owner = 54321 };
        _exit(weir_table_create(&table, &o, &error) == WEIR_SYSTEM &&
                      strstr(error.text, "to user 54321: ") != NULL && !is_there(path)
                  ? 0
                  : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* What the program prints would get into it. */
TEST(test_T4_a_table_takes_no_standard_descriptor)
{
    const char *path = new_path();
    pid_t pid = fork();

    if (pid == 0) {
        struct weir_table *table;
        struct weir_table_options o = { .path = path, .keys = 1 };
        for (int fd = 0; fd <= 2; fd++)
            close(fd);
        for (int again = 0; again < 2; again++) {
            if (weir_table_create(&table, &o, NULL) != WEIR_OK)
                _exit(1);
            for (int fd = 0; fd <= 2; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                    _exit(2);
            weir_table_destroy(table);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ------------------------------------------------------------------- attach ---- */

static const char *make_file(int64_t keys)
{
    const char *path = new_path();

    weir_table_destroy(
        table_with(&(struct weir_table_options){ .path = path, .keys = keys, .slab = 4096 }));
    return path;
}

TEST(test_what_is_no_table_is_refused_each_for_its_reason)
{
    static const char text[] = "# a text file, as an editor leaves it\n";
    char page[1 << 12];

    expect_attach_fails(new_path(), WEIR_SYSTEM, strerror(ENOENT));

    const char *empty = new_path();
    write_at(empty, 0, "", 0);
    expect_attach_fails(empty, WEIR_CORRUPT, "empty");

    const char *zeros = new_path();
    memset(page, 0, sizeof(page));
    write_at(zeros, 0, page, sizeof(page));
    expect_attach_fails(zeros, WEIR_CORRUPT, "table");
    expect_create_fails(&(struct weir_table_options){ .path = zeros }, WEIR_CORRUPT,
                        "table"); /* it may be a disk image: not written over */

    const char *short_text = new_path();
    write_at(short_text, 0, text, sizeof(text) - 1);
    expect_attach_fails(short_text, WEIR_CORRUPT, "too short");
    expect_create_fails(&(struct weir_table_options){ .path = short_text }, WEIR_CORRUPT,
                        "too short");

    const char *long_text = new_path();
    memset(page, 'x', sizeof(page));
    for (size_t i = 0; i < 128; i++)
        write_at(long_text, i * sizeof(page), page, sizeof(page));
    expect_attach_fails(long_text, WEIR_CORRUPT, "not a Weir table");
    expect_create_fails(&(struct weir_table_options){ .path = long_text }, WEIR_CORRUPT,
                        "not a Weir table");
    for (size_t i = 0; i < 128; i++) { /* and not a byte of it was touched */
        char found[sizeof(page)];
        read_at(long_text, i * sizeof(page), found, sizeof(page));
        assert_memory_equal(found, page, sizeof(page));
    }
}

TEST(test_a_damaged_header_is_refused_each_for_its_reason)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *words;
    } rows[] = {
        { offsetof(struct weir__header, magic), 0x58585858, "not a Weir table" },
        { offsetof(struct weir__header, format), WEIR__FORMAT + 1, "format 6" },
        { offsetof(struct weir__header, format), 0, "format 0" },
        { offsetof(struct weir__header, format), 1, "format 1" },
        { offsetof(struct weir__header, format), 4, "has format 4; this library reads format 6" },
        { offsetof(struct weir__header, endian), 0x04030201, "byte order" },
        { offsetof(struct weir__header, bytes), 12345, "damaged" },
        { offsetof(struct weir__header, groups), 99, "damaged" },
        { offsetof(struct weir__header, slab_bytes), 0, "damaged" },
        { offsetof(struct weir__header, slot_size), 24, "damaged" },
        { offsetof(struct weir__header, header_size), 8, "damaged" },
        { offsetof(struct weir__header, limiters_max), 1, "damaged" },
        { offsetof(struct weir__header, ban_groups), 32, "damaged" },
        { offsetof(struct weir__header, guards_max), 1, "damaged" },
        { offsetof(struct weir__header, secrets), 1, "damaged" },
        { offsetof(struct weir__header, check), 1, "damaged" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *path = make_file(1);
        write_at(path, rows[i].at, &rows[i].value, sizeof(rows[i].value));
        expect_attach_fails(path, WEIR_CORRUPT, rows[i].words);
        expect_create_fails(&(struct weir_table_options){ .path = path }, WEIR_CORRUPT,
                            rows[i].words);
        assert_true(is_there(path)); /* somebody's data, perhaps: not removed */
    }
}

TEST(test_a_cut_or_grown_file_is_refused)
{
    for (int i = 0; i < 6; i++) {
        const char *path = make_file(100000);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        off_t lengths[] = { st.st_size - 1, st.st_size - 4096,
                            st.st_size / 2, st.st_size + 4096,
                            5000,           100 };
        assert_int_equal(truncate(path, lengths[i]), 0);
        expect_attach_fails(path, WEIR_CORRUPT, i >= 4 ? "too short" : "cut");
    }
}

TEST(test_a_table_tells_that_it_was_cut)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    OWN(weir_table) *own = table_with(&(struct weir_table_options){ .keys = 1000 });
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    assert_false(weir_table_is_cut(table) || weir_table_is_cut(own));
    assert_int_equal(truncate(path, st.st_size - 1), 0);
    assert_true(weir_table_is_cut(table));
    assert_int_equal(truncate(path, st.st_size), 0);
    assert_false(weir_table_is_cut(table));
}

/* The check notices damage, not malice: sizes that lie under a right check must still not reach
 * outside the file. */
static void write_header(const char *path, struct weir__header *h)
{
    uint64_t sum = 0xcbf29ce484222325u;

    for (size_t i = sizeof(h->magic); i < offsetof(struct weir__header, check); i++)
        sum = (sum ^ ((unsigned char *)h)[i]) * 0x100000001b3u;
    h->check = sum;
    write_at(path, 0, h, sizeof(*h));
}

TEST(test_sizes_that_lie_are_refused)
{
    for (int i = 0; i < 23; i++) {
        const char *path = make_file(1000);
        struct weir__header h;
        read_at(path, 0, &h, sizeof(h));
        switch (i) {
        case 0:
            h.groups = 0;
            break;
        case 1:
            h.groups++;
            break;
        case 2:
            h.groups = UINT64_MAX;
            break;
        case 3:
            h.ban_groups++;
            break;
        case 4:
            h.guards_max += 1;
            break;
        case 5:
            h.slab_bytes = UINT64_MAX - 65535;
            break;
        case 6:
            h.groups = UINT64_MAX / 8192;
            break;
        case 7:
            h.slab_bytes--;
            break;
        case 8:
            h.slot_size = 64;
            break;
        case 9:
            h.slot_size = 0;
            break;
        case 10:
            h.slab_bytes += 65536;
            break;
        case 11:
            h.bytes += 4096;
            break;
        case 12:
            h.limiters_max = 0;
            break;
        case 13:
            h.limiters_max += 64; /* as if the bans began later */
            break;
        case 14:
            h.limiters_max = UINT64_MAX / sizeof(struct weir__place) + 2;
            break;
        case 15:
            h.ban_groups = 0;
            break;
        case 16:
            h.ban_groups += 2;
            break;
        case 17:
            h.ban_groups = UINT64_MAX - 15;
            break;
        case 18:
            h.limiters_max = WEIR__LIMITERS_MAX + 1;
            break;
        case 20:
            h.guards_max = 0;
            break;
        case 21:
            h.guards_max = WEIR__GUARDS_MAX + 1;
            break;
        case 22:
            h.guards_max++;
            break;
        case 19: /* fits in itself, but not in the file */
            h.limiters_max = WEIR__LIMITERS_MAX;
            break;
        }
        write_header(path, &h);
        struct weir_table *table = untouched;
        struct weir_error error = { 0 };
        int code = weir_table_attach(&table, path, &error);
        if (code != WEIR_CORRUPT || table != untouched)
            fail_msg("case %d gave %d", i, code);
        assert_contains(error.text, "do not fit together");
    }
    struct weir__header h; /* and the check as written here is the right one */
    const char *path = make_file(1000);
    read_at(path, 0, &h, sizeof(h));
    write_header(path, &h);
    weir_table_destroy(attach(path));
}

TEST(test_a_symbolic_link_is_not_followed)
{
    const char *target = make_file(100), *path = new_path();

    assert_int_equal(symlink(target, path), 0);
    expect_attach_fails(path, WEIR_SYSTEM, "symbolic link");
    expect_create_fails(&(struct weir_table_options){ .path = path }, WEIR_SYSTEM, "symbolic link");
}

/* ---------------------------------------------------------- create again ---- */

TEST(test_create_on_an_existing_table_attaches_and_keeps_its_sizes)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){
        .path = path, .keys = 5000, .slab = 1 << 20, .limiters = 7, .bans = 9, .narrow = true });
    struct weir_table_stats first = stats_of(table, -1);
    assert_true(take(limiter_of(table, "l", "gcra 10/1h"), "k", 4, NOW).allowed);
    weir_table_destroy(table);
    table = table_with(&(struct weir_table_options){ .path = path, .keys = 9, .slab = 9 });
    struct weir_table_stats again = stats_of(table, -1);
    assert_fields(again, (slots, first.slots), (bytes, first.bytes), (narrow, true), (limiters, 1),
                  (keys, 1));
    assert_int_equal(left(limiter_of(table, "l", "gcra 10/1h"), "k", NOW), 6);
}

TEST(test_create_finishes_what_a_dead_maker_left)
{
    const char *path = new_path();
    char making[8192] = "WEIRMAKE"; /* a size, and no header yet */

    write_at(path, 0, making, sizeof(making));
    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
    assert_true(take(limiter_of(table, "l", "gcra 10/1h"), "k", 4, NOW).allowed);
    weir_table_destroy(table);
    table = attach(path);
    assert_int_equal(left(limiter_of(table, "l", "gcra 10/1h"), "k", NOW), 6);
}

TEST(test_two_tables_in_one_process_on_one_file_share_the_states)
{
    const char *path = new_path();

    for (int narrow = 0; narrow < 2; narrow++) {
        struct weir_table *one = table_with(&(struct weir_table_options){
                              .path = path, .keys = 100, .narrow = narrow }),
                          *two = attach(path);
        struct weir_limiter *a = limiter_of(one, "l", "gcra 10/1h"),
                            *b = limiter_of(two, "l", "gcra 10/1h");
        struct weir_limiter *large_a = limiter_of(one, "log", "sliding-log 10/1h"),
                            *large_b = limiter_of(two, "log", "sliding-log 10/1h");
        assert_ptr_not_equal(one, two);
        assert_true(take(a, "k", 3, NOW).allowed);
        assert_int_equal(take(b, "k", 3, NOW).remaining, 4);
        assert_int_equal(take(a, "k", 3, NOW).remaining, 1);
        assert_false(take(b, "k", 2, NOW).allowed);
        assert_true(take(large_a, "k", 6, NOW).allowed);
        assert_false(take(large_b, "k", 6, NOW).allowed);
        assert_int_equal(take(large_b, "k", 1, NOW).remaining, 3);
        assert_int_equal(keys_of(one), 2);
        assert_int_equal(keys_of(two), 2);
        weir_table_destroy(one); /* the other does not mind */
        assert_int_equal(left(b, "k", NOW), 1);
        weir_table_destroy(two);
        path = new_path();
    }
}

TEST(test_private_tables_share_nothing)
{
    struct weir_table *one = private_table(false, 100), *two = private_table(false, 100);

    assert_true(take(limiter_of(one, "l", "gcra 10/1h"), "k", 10, NOW).allowed);
    assert_int_equal(left(limiter_of(two, "l", "gcra 10/1h"), "k", NOW), 10);
    weir_table_destroy(one);
    weir_table_destroy(two);
}

/* For one that just puts the table in order it waits. */
TEST(test_T1_an_attach_does_not_wait_for_a_stopped_process_that_has_the_file_alone)
{
    const char *path = new_path();
    struct weir_error error = { 0 };
    struct weir_table *table;
    int status;

    weir_table_destroy(table_with(&(struct weir_table_options){ .path = path, .keys = 100 }));
    pid_t pid = fork();
    if (pid == 0) {
        flock(open(path, O_RDWR), LOCK_EX);
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_int_equal(weir_table_attach(&table, path, &error), WEIR_SYSTEM);
    kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_non_null(strstr(error.text, ", which is stopped: gave up"));
    weir_table_destroy(attach(path));
}

/* By a process that is stopped; SIGCONT: no more. */
static struct weir__pids locker_after(const char *path, int signal_number)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        flock(open(path, O_RDWR), LOCK_EX);
        raise(SIGSTOP);
        pause();
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    kill(pid, signal_number);
    if (signal_number == SIGCONT)
        assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
    struct weir__pids locker = weir__table_users(path, true);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return locker;
}

/* Its own locks are not named to a process, as those of another pid namespace are not. */
TEST(test_T1_one_that_nobody_names_is_waited_for_as_long_as_its_work_can_take)
{
    const char *path = new_path();
    const uint64_t mb = 1000000;

    weir_table_destroy(table_with(&(struct weir_table_options){ .path = path, .keys = 100 }));
    struct weir__pids stopped = locker_after(path, SIGSTOP), goes_on = locker_after(path, SIGCONT);
    assert_int_equal(weir__locker_patience_ms(&stopped, true, 0), 1000);
    assert_int_equal(weir__locker_patience_ms(&goes_on, true, 0), 30000);
    int fd = open(path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    struct weir__pids nobody = weir__table_users(path, true);
    close(fd);
    assert_int_equal(weir__locker_patience_ms(&nobody, false, 0), 5000);
    assert_int_equal(weir__locker_patience_ms(&nobody, false, 40 * mb), 7000);
    assert_int_equal(weir__locker_patience_ms(&nobody, false, 10000 * mb), 30000);
    /* The kernel's list lacked it for a moment. */
    assert_int_equal(weir__locker_patience_ms(&nobody, true, 0), 30000);
}

/* nginx's first process opens the table, leaves it to its master, and ends. */
TEST(test_a_user_that_has_ended_is_told_as_such)
{
    const char *path = new_path();
    char ended[64];
    int alive[2];

    weir_table_destroy(table_with(&(struct weir_table_options){ .path = path, .keys = 100 }));
    assert_int_equal(pipe(alive), 0);
    pid_t pid = fork();
    if (pid == 0) {
        flock(open(path, O_RDWR), LOCK_SH);
        if (fork() == 0) {
            close(alive[1]);
            _exit((int)read(alive[0], ended, 1));
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    struct weir__pids users = weir__table_users(path, false);
    close(alive[1]);
    close(alive[0]);
    snprintf(ended, sizeof(ended), " %d (ended: its children)", (int)pid);
    assert_string_equal(users.text, ended);
}

GROUP(make_folder, remove_folder)
