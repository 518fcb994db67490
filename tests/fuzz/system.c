/* system.c -- any bytes as the kernel's texts on load: each parser says that it does not know, or
 * something that can be. */
#include "fuzz/fuzz.h"

#include <math.h>

#include "guard/host-load.h"

static void check_stat(const char *text, const struct weir__cpus *cpus)
{
    struct weir__proc_stat stat;

    if (!weir__parse_proc_stat(text, cpus, &stat))
        return;
    check(stat.busy <= stat.total && stat.cpus >= 0 && stat.cpus <= stat.all_cpus);
    check(stat.running >= -1 && stat.running <= INT32_MAX);
}

static void check_path(const char *text)
{
    for (size_t room = 1; room <= 64; room += 21) {
        char *path = malloc(room); /* of exactly this size */
        check(path != NULL);
        if (weir__parse_cgroup(text, path, room)) {
            check(strlen(path) < room && strpbrk(path, "\n") == NULL &&
                  strstr(path, "/..") == NULL);
            check(path[0] == '\0' || (path[0] == '/' && path[strlen(path) - 1] != '/'));
        }
        free(path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct weir__cpus cpus;
    double processors;
    uint64_t us;
    int32_t permille;

    check(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    memset(&cpus, 0x55, sizeof(cpus));
    (void)weir__parse_cpus_allowed(text, &cpus);
    check_stat(text, &cpus);
    check_path(text);
    if (weir__parse_cpu_max(text, &processors))
        check(isfinite(processors) && processors >= 0);
    (void)weir__parse_cpu_usage(text, &us);
    if (weir__parse_psi(text, &permille))
        check(permille >= 0 && permille <= 1000);
    free(text);
    return 0;
}
