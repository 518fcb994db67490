/* host-load.h -- how loaded the host is for this process; shed-by-host-load.h judges it. */
#ifndef WEIR_GUARD_HOST_LOAD_H
#define WEIR_GUARD_HOST_LOAD_H

#include "base/base.h"

struct weir__reading {
    int32_t cpu; /* permille of the usable time, lately: of the cgroup's quota, or of the
                        processors it may run on; -1: not known */
    /* Permille of the last 10 s in which some task waited for a processor; -1: not known. */
    int32_t psi_cpu;
    int32_t psi_memory;
    int32_t run_queue; /* tasks running or ready, per 1000 processors; -1: not known */
    double processors; /* usable ones: no more than the quota */
    /* Not of the host, but of all guards of the table */
    int64_t in_flight;
    double rate; /* entered per second */
};

struct weir__system;

/* root: "" for the real host; for tests, a folder that looks like one.  root/proc/self/cgroup names
 * the cgroup. */
int weir__system_create(struct weir__system **out, const char *root, struct weir_error *error);
void weir__system_destroy(struct weir__system *system);
/* Reads at most every 250 ms, and returns the last reading in between.  From any thread: one reads,
 * the others get the last reading. */
void weir__system_read(struct weir__system *system, weir_time now, struct weir__reading *out);

/* The kernel's texts, each ended by NUL.  False: the value is not in the text. */
#define WEIR__LOAD_LOOK (WEIR_SECOND / 4) /* between two looks at the load */
#define WEIR__CPUS      4096
struct weir__cpus {
    uint64_t bits[WEIR__CPUS / 64];
};
struct weir__proc_stat {
    /* Ticks of the wanted processors (of all, if it lists none of them). */
    uint64_t busy, total;
    int64_t running; /* tasks; -1: not known */
    int64_t cpus;    /* number of the wanted ones (or of all) */
    int64_t all_cpus;
};
bool weir__parse_cpus_allowed(const char *status, struct weir__cpus *out); /* /proc/self/status */
/* /proc/stat */
bool weir__parse_proc_stat(const char *text, const struct weir__cpus *cpus,
                           struct weir__proc_stat *out);
/* /proc/self/cgroup: the path in version 2, "" for the root. */
bool weir__parse_cgroup(const char *text, char *out, size_t size);
/* cpu.max; 0: no quota. */
bool weir__parse_cpu_max(const char *text, double *processors);
bool weir__parse_cpu_usage(const char *text, uint64_t *us); /* cpu.stat */
bool weir__parse_psi(const char *text, int32_t *permille);  /* cpu.pressure: some, 10 s */

#endif
