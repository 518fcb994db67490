/* host-load.c -- the host's load: from made-up folders that look like a host, and once from the
 * real one. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <inttypes.h>

#include "guard/host-load.h"

OWNS(weir__system)

#define LOOK (S / 4)

static char root[320];

/* ------------------------------------------------------------- made-up ---- */

static void make_way(char *path)
{
    for (char *s = path + strlen(root) + 1; (s = strchr(s, '/')) != NULL; s++) {
        *s = '\0';
        (void)mkdir(path, 0700);
        *s = '/';
    }
}

/* Written over, as the kernel's files change under an open descriptor. */
static void put(const char *name, const char *text)
{
    char path[1024];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    make_way(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
}

static int remove_tree(const char *path)
{
    DIR *dir = opendir(path);

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char inner[2048];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0)
            remove_tree(inner);
    }
    if (dir != NULL)
        closedir(dir);
    return rmdir(path);
}

static int begin(void **state)
{
    snprintf(root, sizeof(root), "%s", new_path());
    return mkdir(root, 0700);
}

static int end(void **state)
{
    return remove_tree(root);
}

static struct weir__system *open_system(void)
{
    struct weir__system *system = NULL;
    struct weir_error error = { 0 };

    assert_ok(weir__system_create(&system, root, &error));
    return system;
}

static struct weir__reading read_at_time(struct weir__system *system, weir_time now)
{
    struct weir__reading reading;

    weir__system_read(system, now, &reading);
    return reading;
}

/* Two processors, busy and idle for these ticks each. */
static void put_stat(int busy0, int idle0, int busy1, int idle1, int running)
{
    char text[512];

    snprintf(text, sizeof(text),
             "cpu  %d 0 0 %d 0 0 0 0 0 0\ncpu0 %d 0 0 %d 0 0 0 0 0 0\ncpu1 %d 0 0 %d 0 0 0 0 0 0\n"
             "intr 5 1 2\nctxt 1\nbtime 1\nprocesses 9\nprocs_running %d\nprocs_blocked 0\n",
             busy0 + busy1, idle0 + idle1, busy0, idle0, busy1, idle1, running);
    put("proc/stat", text);
}

static void put_usage(const char *group, int64_t us)
{
    char name[256], text[128];

    snprintf(name, sizeof(name), "sys/fs/cgroup%s/cpu.stat", group);
    snprintf(text, sizeof(text), "usage_usec %" PRId64 "\nuser_usec 1\nsystem_usec 2\n", us);
    put(name, text);
}

static void put_max(const char *group, const char *text)
{
    char name[256];

    snprintf(name, sizeof(name), "sys/fs/cgroup%s/cpu.max", group);
    put(name, text);
}

static void assert_all_unknown(const struct weir__reading *r)
{
    assert_fields(*r, (cpu, -1), (psi_cpu, -1), (psi_memory, -1), (run_queue, -1));
}

/* ---------------------------------------------------------------- host ---- */

TEST_WITH(test_G6_host_without_cgroups, begin, end)
{
    put_stat(1000, 1000, 1000, 1000, 6);
    put("proc/pressure/cpu", "some avg10=12.34 avg60=1.24 avg300=2.18 total=13422715183\nfull "
                             "avg10=99.00 avg60=0.00 avg300=0.00 total=0\n");
    put("proc/pressure/memory", "some avg10=0.06 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 "
                                "avg60=0.00 avg300=0.00 total=0\n");
    OWN(weir__system) *system = open_system();
    struct weir__reading r = read_at_time(system, NOW);
    assert_int_equal(r.cpu, -1); /* since when? */
    assert_fields(r, (psi_cpu, 123), (psi_memory, 1), (run_queue, 3000));
    assert_true(r.processors == 2);
    put_stat(1030, 1010, 1010, 1030, 1);
    r = read_at_time(system, NOW + S);
    assert_fields(r, (cpu, 500), (run_queue, 500));
}

/* A busy processor that this process may not run on is not its own, and so is an idle one. */
TEST_WITH(test_G6_only_the_processors_it_may_use, begin, end)
{
    put("proc/self/status",
        "Name:\tx\nCpus_allowed:\t2\nCpus_allowed_list:\t1\nMems_allowed:\t1\n");
    put_stat(1000, 1000, 1000, 1000, 4);
    OWN(weir__system) *system = open_system();
    read_at_time(system, NOW);
    put_stat(1000, 1100, 1090, 1010, 4);
    struct weir__reading r = read_at_time(system, NOW + S);
    assert_int_equal(r.cpu, 900);
    assert_true(r.processors == 1);
    assert_int_equal(r.run_queue, 2000); /* tasks of the host, by its processors */
}

/* Some list processors that could be plugged in: 128 in a machine of two. */
TEST_WITH(test_G6_processors_that_are_not_there, begin, end)
{
    put("proc/self/status", "Cpus_allowed_list:\t0-127\n");
    put_stat(1, 1, 1, 1, 4);
    OWN(weir__system) *system = open_system();
    assert_true(read_at_time(system, NOW).processors == 2);
    weir__system_destroy(system);
    put("proc/self/status",
        "Cpus_allowed_list:\t64-127\n"); /* somebody numbers them anew for this container */
    system = open_system();
    assert_true(read_at_time(system, NOW).processors == 2);
}

TEST_WITH(test_G6_cpu_is_smoothed_a_bit, begin, end)
{
    int busy = 0, idle = 0;

    put_stat(0, 1, 0, 1, 1);
    OWN(weir__system) *system = open_system();
    read_at_time(system, NOW);
    for (int i = 1; i <= 8; i++) {
        idle += 25;
        put_stat(busy, idle, busy, idle, 1);
        assert_int_equal(read_at_time(system, NOW + i * LOOK).cpu, 0);
    }
    int32_t before = 0;
    for (int i = 9; i <= 24; i++) {
        busy += 25;
        put_stat(busy, idle, busy, idle, 1);
        int32_t cpu = read_at_time(system, NOW + i * LOOK).cpu;
        assert_true(cpu >= before);
        assert_true(i > 9 || (cpu > 300 && cpu < 500));
        before = cpu;
    }
    assert_true(before > 990);
}

TEST_WITH(test_G6_looks_at_most_every_quarter_second, begin, end)
{
    put_stat(100, 100, 100, 100, 2);
    OWN(weir__system) *system = open_system();
    read_at_time(system, NOW);
    put_stat(200, 100, 200, 100, 8);
    assert_int_equal(read_at_time(system, NOW + LOOK - 1).run_queue, 1000);
    assert_int_equal(read_at_time(system, NOW + LOOK).run_queue, 4000);
}

TEST_WITH(test_G6_counters_and_clocks_may_go_back, begin, end)
{
    put_stat(1000, 1000, 1000, 1000, 2);
    OWN(weir__system) *system = open_system();
    read_at_time(system, NOW);
    put_stat(1050, 1050, 1050, 1050, 2);
    assert_int_equal(read_at_time(system, NOW + S).cpu, 500);
    put_stat(10, 1000, 10, 1000, 2);
    assert_int_equal(read_at_time(system, NOW + 2 * S).cpu, -1);
    put_stat(20, 1010, 20, 1010, 2);
    assert_int_equal(read_at_time(system, NOW + 3 * S).cpu, 500);
    put_stat(30, 1020, 30, 1020, 4);
    assert_int_equal(read_at_time(system, NOW - 100 * S).run_queue,
                     2000); /* looks, though the clock is back */
    put_stat(90, 1020, 90, 1020, 6);
    assert_int_equal(read_at_time(system, NOW - 99 * S).run_queue, 3000);
}

/* ------------------------------------------------------------- cgroups ---- */

/* kratos#1372, aegis#18: the host has 2 processors that are nearly idle, the container half of one
 * that is used up. */
TEST_WITH(test_G6_a_container_that_has_used_its_quota, begin, end)
{
    put("proc/self/cgroup", "0::/box\n");
    put_stat(1000, 1000, 1000, 1000, 1);
    put_max("/box", "50000 100000\n");
    put_usage("/box", 5000000);
    OWN(weir__system) *system = open_system();
    assert_int_equal(read_at_time(system, NOW).cpu, -1);
    put_stat(1025, 1075, 1025, 1075, 1);
    put_usage("/box", 5500000);
    struct weir__reading r = read_at_time(system, NOW + S);
    assert_int_equal(r.cpu, 1000);
    assert_true(r.processors == 0.5);
}

/* ... and the other way: the host is busy with others, the container's quota is not. */
TEST_WITH(test_G6_a_container_on_a_busy_host, begin, end)
{
    put("proc/self/cgroup", "0::/box\n");
    put_stat(1000, 1000, 1000, 1000, 1);
    put_max("/box", "100000 100000\n");
    put_usage("/box", 0);
    OWN(weir__system) *system = open_system();
    read_at_time(system, NOW);
    put_stat(1100, 1000, 1100, 1000, 1);
    put_usage("/box", 200000);
    assert_int_equal(read_at_time(system, NOW + S).cpu, 200);
}

TEST_WITH(test_G6_the_tightest_of_its_parents, begin, end)
{
    put("proc/self/cgroup", "0::/a/b/c\n");
    put_stat(0, 100, 0, 100, 1);
    put_max("/a", "160000 100000\n");
    put_usage("/a", 0);
    put_max("/a/b", "max 100000\n");
    put_usage("/a/b", 0);
    put_max("/a/b/c", "100000 100000\n");
    put_usage("/a/b/c", 0);
    OWN(weir__system) *system = open_system();
    read_at_time(system, NOW);
    put_usage("/a", 1520000); /* the others in it have used the most */
    put_usage("/a/b", 1500000);
    put_usage("/a/b/c", 300000);
    struct weir__reading r = read_at_time(system, NOW + S);
    assert_int_equal(r.cpu, 950);
    assert_true(r.processors == 1);
}

TEST_WITH(test_G6_a_quota_may_change, begin, end)
{
    put("proc/self/cgroup", "0::/box\n");
    put_stat(0, 100, 0, 100, 1);
    put_max("/box", "max 100000\n");
    put_usage("/box", 0);
    OWN(weir__system) *system = open_system();
    assert_true(read_at_time(system, NOW).processors == 2);
    put_stat(50, 150, 50, 150, 1);
    assert_int_equal(read_at_time(system, NOW + S).cpu, 500); /* no quota: the host */
    put_max("/box", "20000 100000\n");
    put_usage("/box", 100000);
    struct weir__reading r = read_at_time(system, NOW + 20 * S);
    assert_true(r.processors == 0.2);
    assert_in_range(r.cpu, 26, 50);     /* 0.1 s of 19 times 0.2, and a rest of what was before */
    put_max("/box", "400000 100000\n"); /* more than there is: no bound */
    assert_true(read_at_time(system, NOW + 21 * S).processors == 2);
}

/* Inside a container /proc/self/cgroup may tell a path of the host's, while what is mounted begins
 * at the container's own. */
TEST_WITH(test_G6_a_path_that_is_not_to_be_seen, begin, end)
{
    static const char *const told[] = { "0::/system.slice/docker-123.scope\n", "0::/../box\n",
                                        "0::/\n", "9:cpu:/x\n0::/x/y/\n" };

    put_stat(0, 100, 0, 100, 1);
    put_max("", "50000 100000\n");
    put_usage("", 0);
    for (size_t i = 0; i < COUNT_OF(told); i++) {
        put("proc/self/cgroup", told[i]);
        OWN(weir__system) *system = open_system();
        assert_true(read_at_time(system, NOW).processors == 0.5);
    }
}

/* Version 2 beside version 1; and version 1 alone, which is not read. */
TEST_WITH(test_G6_both_versions, begin, end)
{
    put_stat(0, 100, 0, 100, 1);
    put("proc/self/cgroup", "2:cpu:/old\n0::/box\n");
    put("sys/fs/cgroup/cpu/old/cpu.cfs_quota_us", "10000\n");
    put_max("/unified/box", "50000 100000\n");
    put_usage("/unified/box", 0);
    OWN(weir__system) *system = open_system();
    assert_true(read_at_time(system, NOW).processors == 0.5);
    weir__system_destroy(system);
    put("proc/self/cgroup", "2:cpu:/old\n");
    system = open_system();
    assert_true(read_at_time(system, NOW).processors == 2);
}

TEST_WITH(test_G6_pressure_of_its_own_cgroup, begin, end)
{
    put("proc/self/cgroup", "0::/box\n");
    put_usage("/box", 0);
    put("proc/pressure/cpu", "some avg10=90.00 avg60=0.00 avg300=0.00 total=0\n");
    put("proc/pressure/memory", "some avg10=80.00 avg60=0.00 avg300=0.00 total=0\n");
    put("sys/fs/cgroup/box/cpu.pressure", "some avg10=5.00 avg60=0.00 avg300=0.00 total=0\n");
    OWN(weir__system) *system = open_system();
    struct weir__reading r = read_at_time(system, NOW);
    assert_int_equal(r.psi_cpu, 50);
    assert_int_equal(r.psi_memory, 800); /* the cgroup has none */
    put("sys/fs/cgroup/box/cpu.pressure", "nonsense");
    assert_int_equal(read_at_time(system, NOW + S).psi_cpu, 900);
}

/* ------------------------------------------------------------- failing ---- */

TEST_WITH(test_G6_nothing_there_is_not_known, begin, end)
{
    struct weir__system *system = open_system();

    for (int i = 0; i < 3; i++) {
        struct weir__reading r = read_at_time(system, NOW + i * S);
        assert_all_unknown(&r);
        assert_true(r.processors == 1);
    }
    weir__system_destroy(system);
    weir__system_destroy(NULL);
}

TEST_WITH(test_G6_nonsense_is_not_known, begin, end)
{
    static const char *const texts[] = { "",
                                         "\n",
                                         "x",
                                         "cpu",
                                         "cpu \n",
                                         "cpu  1 2 3\n",
                                         "cpu  99999999999999999999 1 1 1\n",
                                         "cpu  -1 -2 -3 -4\n" };
    static const char *const files[] = { "proc/stat",
                                         "proc/pressure/cpu",
                                         "proc/pressure/memory",
                                         "proc/self/status",
                                         "proc/self/cgroup",
                                         "sys/fs/cgroup/cpu.max",
                                         "sys/fs/cgroup/cpu.stat",
                                         "sys/fs/cgroup/cpu.pressure" };

    for (size_t t = 0; t < COUNT_OF(texts); t++) {
        for (size_t f = 0; f < COUNT_OF(files); f++)
            put(files[f], texts[t]);
        put("proc/self/cgroup", "0::/\n");
        OWN(weir__system) *system = open_system();
        for (int i = 0; i < 3; i++) {
            struct weir__reading r = read_at_time(system, NOW + i * S);
            assert_all_unknown(&r);
            assert_true(r.processors == 1);
        }
    }
}

/* What was fine and then is not: not known, and then again. */
TEST_WITH(test_G6_files_may_fail_later, begin, end)
{
    put("proc/self/cgroup", "0::/box\n");
    put_stat(0, 100, 0, 100, 1);
    put_max("/box", "100000 100000\n");
    put_usage("/box", 0);
    OWN(weir__system) *system = open_system();
    read_at_time(system, NOW);
    put_usage("/box", 500000);
    assert_int_equal(read_at_time(system, NOW + S).cpu, 500);
    put("sys/fs/cgroup/box/cpu.stat", "");
    assert_int_equal(read_at_time(system, NOW + 2 * S).cpu, -1);
    put_usage("/box", 2000000);
    assert_int_equal(read_at_time(system, NOW + 3 * S).cpu, -1);
    put_usage("/box", 2250000);
    assert_int_equal(read_at_time(system, NOW + 4 * S).cpu, 250);
}

TEST_WITH(test_G6_a_root_too_long_has_no_files, begin, end)
{
    FINALLY(memory_drop) char *name = malloc(8192);
    OWN(weir__system) *system = NULL;
    assert_non_null(name);
    memset(name, 'x', 8191);
    name[8191] = '\0';
    assert_ok(weir__system_create(&system, name, NULL));
    struct weir__reading r = read_at_time(system, NOW);
    assert_all_unknown(&r);
}

/* -------------------------------------------------------------- texts ---- */

TEST_WITH(test_G6_texts, begin, end)
{
    double processors;
    uint64_t us;
    int32_t permille;
    char path[16];
    struct weir__cpus cpus;

    assert_true(weir__parse_cpu_max("250000 100000\n", &processors) && processors == 2.5);
    assert_true(weir__parse_cpu_max("max 100000\n", &processors) && processors == 0);
    assert_false(weir__parse_cpu_max("0 100000\n", &processors));
    assert_false(weir__parse_cpu_max("100000 0\n", &processors));
    assert_false(weir__parse_cpu_max("100000\n", &processors));
    assert_true(weir__parse_cpu_usage("nr_periods 0\nusage_usec 77\n", &us) && us == 77);
    assert_false(weir__parse_cpu_usage("my_usage_usec 77\n", &us));
    assert_true(weir__parse_psi("full avg10=9.00\nsome avg10=100.00 avg60=0\n", &permille) &&
                permille == 1000);
    assert_true(weir__parse_psi("some avg10=7", &permille) && permille == 70);
    assert_true(weir__parse_psi("some avg10=0.96", &permille) && permille == 10);
    assert_false(weir__parse_psi("some avg10=101.00", &permille));
    assert_true(weir__parse_cgroup("0::/a/b", path, sizeof(path)));
    assert_string_equal(path, "/a/b");
    assert_false(weir__parse_cgroup("0::/a-path-that-is-too-long\n", path, sizeof(path)));
    assert_false(weir__parse_cgroup("0::/a/../../b\n", path, sizeof(path)));
    assert_false(weir__parse_cgroup("0::/a/..\n", path, sizeof(path)));
    assert_true(weir__parse_cpus_allowed("Cpus_allowed_list:\t0,2-3,5000,70-18446744073709551600\n",
                                         &cpus));
    assert_true(cpus.bits[0] == 13 && cpus.bits[1] == ~(uint64_t)0x3f &&
                cpus.bits[63] == ~(uint64_t)0);
    assert_false(weir__parse_cpus_allowed("Cpus_allowed_list:\t0,,1\n", &cpus));
}

/* A text may be longer than there is room: what is read is used. */
TEST_WITH(test_G6_many_processors, begin, end)
{
    char *text = malloc(1 << 20), *s = text;

    assert_non_null(text);
    s += sprintf(s, "cpu  1 1 1 1 0 0 0 0 0 0\n");
    for (int i = 0; i < 300; i++)
        s += sprintf(s, "cpu%d 12345678 1234567 12345678 123456789 12345 12345 12345 12345 0 0\n",
                     i);
    sprintf(s, "intr 1 2 3\nprocs_running 600\n");
    put("proc/stat", text);
    struct weir__system *system = open_system();
    struct weir__reading r = read_at_time(system, NOW);
    assert_true(r.processors == 300);
    assert_int_equal(r.run_queue, 2000);
    weir__system_destroy(system);
    put("proc/self/status", "Cpus_allowed_list:\t0,64\n");
    system = open_system();
    assert_true(read_at_time(system, NOW).processors == 2);
    weir__system_destroy(system);
    free(text);
}

/* ---------------------------------------------------------------- real ---- */

TEST_WITH(test_G6_this_host, begin, end)
{
    OWN(weir__system) *system = NULL;
    assert_ok(weir__system_create(&system, "", NULL));
    for (int i = 0; i < 5; i++) {
        struct weir__reading r = read_at_time(system, NOW + i * LOOK);
        assert_true(r.cpu >= -1 && r.cpu <= 1000);
        assert_true(r.psi_cpu >= -1 && r.psi_cpu <= 1000);
        assert_true(r.psi_memory >= -1 && r.psi_memory <= 1000);
        assert_true(r.run_queue >= -1);
        assert_true(r.processors > 0 && r.processors <= WEIR__CPUS);
    }
}

GROUP(make_folder, remove_folder)
