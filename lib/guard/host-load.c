/* host-load.c -- the host's load, read from the kernel.
 *
 * Only resources that this process may use count.  In a container that is less than the host has: a
 * quota (cpu.max of its cgroup, or of one above it), or some of the processors.  A half idle host
 * means nothing to a process whose quota is used up, and a busy one means nothing to a process with
 * its own processors.  So:
 *
 *     cpu          with a quota: the time that the cgroup has used, as a share of its quota; of
 *                  several nested quotas, the one most used up.  Without a quota: the busy ticks of
 *                  the processors that the process may run on
 *     pressure     of the process's own cgroup; the host's if there is none
 *     run queue    the host's tasks, running or ready, per processor of the host: whose they are is
 *                  not known
 *
 * Only version 2 of cgroups is read (also where both are mounted); with version 1 the host counts.
 * Inside a container /proc/self/cgroup may name a path of the host that is not visible there; then
 * the cgroup is the root of the mount.
 *
 * Files are opened once and read again each time: a quota may change.  A missing or nonsensical
 * value is "not known" (-1); nothing fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "guard/arithmetic.h"
#include "guard/host-load.h"

#define SMOOTH     0.5         /* seconds: of the cpu */
#define GROUPS     16          /* cgroups above each other */
#define TEXT_SIZE  (128 << 10) /* /proc/stat of a thousand processors */
#define GROUP_TEXT 4096

struct group {
    int max, stat; /* files */
    uint64_t used; /* us, at the last look */
    bool known;
};

struct weir__system {
    /* the last reading; any thread: atomic */
    int32_t cpu, psi_cpu, psi_memory, run_queue;
    int64_t milli_processors;
    weir_time looked;
    int looking; /* 1: a thread looks */
    /* of the thread that looks */
    int stat, psi[2], group_psi[2]; /* files; cpu, memory */
    struct group groups[GROUPS];
    int group_count;
    struct weir__cpus cpus; /* that it may run on ... */
    double there;           /* ... their number, without the quota */
    uint64_t busy, total;   /* ticks at the last look */
    bool ticks_known;
    bool begun;  /* there was a look */
    double mean; /* of the cpu; below 0: none */
    char text[TEXT_SIZE];
};

/* ------------------------------------------------------------- texts ---- */

/* Reads a number at *p and moves *p behind it. */
static bool read_number(const char **p, uint64_t *out)
{
    uint64_t n = 0;
    const char *s = *p;

    for (; *s >= '0' && *s <= '9'; s++) {
        if (n > (UINT64_MAX - 9) / 10)
            return false;
        n = n * 10 + (uint64_t)(*s - '0');
    }
    if (s == *p)
        return false;
    *p = s;
    *out = n;
    return true;
}

/* The text after `word` at the beginning of a line; NULL: there is none. */
static const char *find_line(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, len) == 0)
            return line + len;
        if (*line == '\0')
            break;
    }
    return NULL;
}

static const char *skip_spaces(const char *s)
{
    return s + strspn(s, " \t");
}

static bool has_cpu(const struct weir__cpus *cpus, uint64_t i)
{
    return i < WEIR__CPUS && cpus->bits[i / 64] >> i % 64 & 1;
}

/* "Cpus_allowed_list:	0-3,8" */
bool weir__parse_cpus_allowed(const char *status, struct weir__cpus *out)
{
    struct weir__cpus cpus = { { 0 } };
    const char *s = find_line(status, "Cpus_allowed_list:");

    if (s == NULL)
        return false;
    for (s = skip_spaces(s);; s++) {
        uint64_t first, last;
        if (!read_number(&s, &first))
            return false;
        last = first;
        if (*s == '-' && (s++, !read_number(&s, &last)))
            return false;
        for (uint64_t i = first; i <= last && i < WEIR__CPUS; i++)
            cpus.bits[i / 64] |= (uint64_t)1 << i % 64;
        if (*s != ',')
            break;
    }
    *out = cpus;
    return true;
}

/* user nice system idle iowait irq softirq steal; guests are included in user.  Time stolen by the
 * hypervisor counts as busy: it cannot be used. */
static bool read_ticks(const char *s, uint64_t *busy, uint64_t *total)
{
    uint64_t sum = 0, idle = 0;

    for (int i = 0; i < 8; i++) {
        uint64_t n;
        s = skip_spaces(s);
        if (!read_number(&s, &n)) {
            if (i < 4)
                return false;
            break; /* an older kernel */
        }
        if (n > UINT64_MAX / WEIR__CPUS / 8)
            return false;
        sum += n;
        idle += i == 3 || i == 4 ? n : 0;
    }
    *busy = sum - idle;
    *total = sum;
    return true;
}

bool weir__parse_proc_stat(const char *text, const struct weir__cpus *cpus,
                           struct weir__proc_stat *out)
{
    struct weir__proc_stat all = { .running = -1 }, mine = { .running = -1 };
    const char *s = find_line(text, "procs_running ");
    uint64_t n, busy, total;

    if (s != NULL && read_number(&s, &n) && n <= INT32_MAX)
        all.running = mine.running = (int64_t)n;
    for (s = text; strncmp(s, "cpu", 3) == 0; s++) {
        s += 3;
        if (*s == ' ') {
            if (!read_ticks(s, &all.busy, &all.total))
                return false;
        } else if (!read_number(&s, &n) || !read_ticks(s, &busy, &total)) {
            return false;
        } else {
            all.cpus++;
            if (has_cpu(cpus, n) && mine.cpus < WEIR__CPUS)
                mine.cpus++, mine.busy += busy, mine.total += total;
        }
        s = strchr(s, '\n');
        if (s == NULL)
            break;
    }
    if (all.total == 0 && mine.total == 0)
        return false;
    *out = mine.cpus > 0 ? mine : all;
    out->all_cpus = all.cpus;
    return true;
}

/* The line "0::/path".  A path outside the mount ("/..") counts as the root. */
bool weir__parse_cgroup(const char *text, char *out, size_t size)
{
    const char *s = find_line(text, "0::/");

    if (s == NULL)
        return false;
    size_t len = strcspn(s, "\n");
    while (len > 0 && s[len - 1] == '/')
        len--;
    if (len == 0 || strncmp(s, "..", 2) == 0) {
        out[0] = '\0';
        return true;
    }
    if (len + 2 > size || memmem(s, len, "/..", 3) != NULL)
        return false;
    out[0] = '/';
    memcpy(out + 1, s, len);
    out[len + 1] = '\0';
    return true;
}

/* "150000 100000": 1.5 processors; "max 100000": no quota. */
bool weir__parse_cpu_max(const char *text, double *processors)
{
    uint64_t quota, period;

    if (strncmp(text, "max", 3) == 0) {
        *processors = 0;
        return true;
    }
    if (!read_number(&text, &quota) || *text++ != ' ' || !read_number(&text, &period) ||
        quota == 0 || period == 0)
        return false;
    *processors = (double)quota / (double)period;
    return true;
}

bool weir__parse_cpu_usage(const char *text, uint64_t *us)
{
    const char *s = find_line(text, "usage_usec ");

    return s != NULL && read_number(&s, us);
}

/* "some avg10=1.96 ..." */
bool weir__parse_psi(const char *text, int32_t *permille)
{
    const char *s = find_line(text, "some avg10=");
    uint64_t whole, tenths = 0;

    if (s == NULL || !read_number(&s, &whole) || whole > 100)
        return false;
    if (*s == '.' && s[1] >= '0' && s[1] <= '9') {
        tenths = (uint64_t)(s[1] - '0');
        tenths += s[2] >= '5' && s[2] <= '9';
    }
    uint64_t sum = whole * 10 + tenths;
    *permille = sum < 1000 ? (int32_t)sum : 1000;
    return true;
}

/* ------------------------------------------------------------- files ---- */

/* -1: there is none. */
static int open_file(const char *root, const char *folder, const char *name)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s%s%s", root, folder, name);

    return len < 0 || (size_t)len >= sizeof(path) ? -1
                                                  : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static void close_file(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* As much of the file as fits, ended by NUL. */
static bool read_file(int fd, char *text, size_t size)
{
    size_t len = 0;

    while (fd >= 0 && len < size - 1) {
        ssize_t got = pread(fd, text + len, size - 1 - len, (off_t)len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    text[len] = '\0';
    return len > 0;
}

/* ------------------------------------------------------------ cgroups ---- */

/* Where version 2 is mounted, and the process's folder in it; false: nowhere. */
static bool find_group(const char *root, const char *path, char *mount, size_t size, char *folder)
{
    static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

    for (int deep = 1; deep >= 0; deep--) /* the path given; else the root of the mount */
        for (int i = 0; i < 2; i++) {
            snprintf(mount, size, "%s", mounts[i]);
            snprintf(folder, PATH_MAX, "%s%s", mounts[i], deep ? path : "");
            int fd = open_file(root, folder, "/cgroup.procs"),
                stat = open_file(root, folder, "/cpu.stat");
            close_file(fd);
            close_file(stat);
            if (fd >= 0 || stat >= 0)
                return true;
        }
    return false;
}

static void open_groups(struct weir__system *s, const char *root, const char *path)
{
    char mount[64], folder[PATH_MAX];

    if (!find_group(root, path, mount, sizeof(mount), folder))
        return;
    s->group_psi[0] = open_file(root, folder, "/cpu.pressure");
    s->group_psi[1] = open_file(root, folder, "/memory.pressure");
    while (s->group_count < GROUPS) {
        struct group g = { .max = open_file(root, folder, "/cpu.max"),
                           .stat = open_file(root, folder, "/cpu.stat") };
        if (g.max >= 0 && g.stat >= 0) {
            s->groups[s->group_count++] = g;
        } else {
            close_file(g.max);
            close_file(g.stat);
        }
        if (strlen(folder) <= strlen(mount))
            break;
        *strrchr(folder, '/') = '\0';
    }
}

/* The permille of its quota that a cgroup has used in this time; -1: not known, or no quota.  *out:
 * the quota. */
static double use_of(struct group *g, double seconds, double *out)
{
    char text[GROUP_TEXT];
    uint64_t used = 0, before = g->used;
    double quota, use = -1;
    bool known = g->known;

    g->known = read_file(g->stat, text, sizeof(text)) && weir__parse_cpu_usage(text, &used);
    if (g->known)
        g->used = used;
    if (!read_file(g->max, text, sizeof(text)) || !weir__parse_cpu_max(text, &quota) || quota <= 0)
        return -1;
    *out = quota;
    if (known && g->known && used >= before && seconds > 0)
        use = (double)(used - before) / 1e6 / seconds / quota * 1000;
    return use < 1000 ? use : 1000;
}

/* ------------------------------------------------------------- looks ---- */

/* The host's part: ticks and tasks. */
static double look_at_host(struct weir__system *s, int32_t *run_queue)
{
    struct weir__proc_stat stat = { .running = -1 };
    double use = -1;
    bool known = read_file(s->stat, s->text, sizeof(s->text)) &&
                 weir__parse_proc_stat(s->text, &s->cpus, &stat);

    if (known && s->ticks_known && stat.total > s->total && stat.busy >= s->busy &&
        stat.busy - s->busy <= stat.total - s->total)
        use = (double)(stat.busy - s->busy) * 1000 / (double)(stat.total - s->total);
    s->busy = stat.busy;
    s->total = stat.total;
    s->ticks_known = known;
    if (known && stat.cpus > 0)
        s->there = (double)stat.cpus;
    double queue = stat.running < 0 ? -1
                                    : (double)stat.running * 1000 /
                                          (stat.all_cpus > 0 ? (double)stat.all_cpus : s->there);
    *run_queue = queue < INT32_MAX ? (int32_t)queue : INT32_MAX;
    return use;
}

static int32_t look_at_psi(struct weir__system *s, int i)
{
    int32_t permille;

    if (read_file(s->group_psi[i], s->text, sizeof(s->text)) && weir__parse_psi(s->text, &permille))
        return permille;
    return read_file(s->psi[i], s->text, sizeof(s->text)) && weir__parse_psi(s->text, &permille)
               ? permille
               : -1;
}

static int32_t smooth(struct weir__system *s, double use, double seconds)
{
    if (use < 0)
        s->mean = -1;
    else if (s->mean < 0)
        s->mean = use;
    else
        s->mean += weir__share(seconds, SMOOTH) * (use - s->mean);
    return s->mean < 0 ? -1 : (int32_t)(s->mean + 0.5);
}

static void look(struct weir__system *s, double seconds)
{
    int32_t run_queue;
    double host = look_at_host(s, &run_queue), processors = s->there, tightest = -1;

    for (int i = 0; i < s->group_count; i++) {
        double quota = WEIR__CPUS, use = use_of(&s->groups[i], seconds, &quota);
        if (quota < s->there) { /* else it is no bound */
            processors = weir__least(processors, quota);
            tightest = weir__most(tightest, use);
        }
    }
    weir__set(&s->cpu, smooth(s, processors < s->there ? tightest : host, seconds));
    weir__set(&s->run_queue, run_queue);
    weir__set(&s->psi_cpu, look_at_psi(s, 0));
    weir__set(&s->psi_memory, look_at_psi(s, 1));
    weir__set(&s->milli_processors, (int64_t)(processors * 1000 + 0.5));
}

/* One thread reads.  If the clock has stepped back the span is unknown: it starts here. */
static void look_if_due(struct weir__system *s, weir_time now)
{
    weir_time span = now - weir__get(&s->looked);

    if (weir__get(&s->begun) && span >= 0 && span < WEIR__LOAD_LOOK)
        return;
    if (__atomic_exchange_n(&s->looking, 1, __ATOMIC_ACQUIRE) != 0)
        return;
    span = s->begun ? now - s->looked : 0;
    if (!s->begun || span < 0 || span >= WEIR__LOAD_LOOK) {
        look(s, span > 0 ? (double)span / (double)WEIR_SECOND : 0);
        weir__set(&s->looked, now);
        weir__set(&s->begun, true);
    }
    weir__publish(&s->looking, 0);
}

void weir__system_read(struct weir__system *system, weir_time now, struct weir__reading *out)
{
    look_if_due(system, now);
    *out =
        (struct weir__reading){ .cpu = weir__get(&system->cpu),
                                .psi_cpu = weir__get(&system->psi_cpu),
                                .psi_memory = weir__get(&system->psi_memory),
                                .run_queue = weir__get(&system->run_queue),
                                .processors = (double)weir__get(&system->milli_processors) / 1000 };
}

/* --------------------------------------------------------- create, destroy ---- */

static void find_cpus(struct weir__system *s, const char *root)
{
    int fd = open_file(root, "/proc/self", "/status"), count = 0;

    if (!read_file(fd, s->text, sizeof(s->text)) || !weir__parse_cpus_allowed(s->text, &s->cpus))
        memset(&s->cpus, 0xff, sizeof(s->cpus)); /* all that /proc/stat lists */
    else
        for (int i = 0; i < WEIR__CPUS / 64; i++)
            count += __builtin_popcountll(s->cpus.bits[i]);
    s->there = count > 0 ? count : 1;
    s->milli_processors = (int64_t)s->there * 1000;
    close_file(fd);
}

int weir__system_create(struct weir__system **out, const char *root, struct weir_error *error)
{
    struct weir__system *s = calloc(1, sizeof(*s));
    char path[PATH_MAX / 2];

    if (s == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory to look at the host's load");
    s->cpu = s->psi_cpu = s->psi_memory = s->run_queue = -1;
    s->mean = -1;
    s->group_psi[0] = s->group_psi[1] = -1;
    find_cpus(s, root);
    s->stat = open_file(root, "/proc", "/stat");
    s->psi[0] = open_file(root, "/proc", "/pressure/cpu");
    s->psi[1] = open_file(root, "/proc", "/pressure/memory");
    int fd = open_file(root, "/proc/self", "/cgroup");
    if (read_file(fd, s->text, sizeof(s->text)) && weir__parse_cgroup(s->text, path, sizeof(path)))
        open_groups(s, root, path);
    close_file(fd);
    *out = s;
    return WEIR_OK;
}

void weir__system_destroy(struct weir__system *system)
{
    if (system == NULL)
        return;
    close_file(system->stat);
    for (int i = 0; i < 2; i++) {
        close_file(system->psi[i]);
        close_file(system->group_psi[i]);
    }
    for (int i = 0; i < system->group_count; i++) {
        close_file(system->groups[i].max);
        close_file(system->groups[i].stat);
    }
    free(system);
}
