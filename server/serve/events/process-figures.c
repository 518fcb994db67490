/* process-figures.c -- what this process uses: by /proc and the kernel's own counts. */
#include "server/serve/events/process-figures.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "weir.h"

static int64_t nanoseconds(struct timeval t)
{
    return (int64_t)t.tv_sec * WEIR_SECOND + (int64_t)t.tv_usec * WEIR_MICROSECOND;
}

static int64_t count_open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int64_t n = -1; /* the directory itself */

    if (dir == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%*s %ld", &pages) != 1)
        pages = 0;
    fclose(f);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

void weir__process_figures(struct weir__process_figures *out)
{
    struct rusage usage;
    struct rlimit files;

    getrusage(RUSAGE_SELF, &usage);
    getrlimit(RLIMIT_NOFILE, &files);
    out->cpu = nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime);
    out->memory = resident_bytes();
    out->fds = count_open_files();
    out->fds_max = (int64_t)files.rlim_cur;
}
