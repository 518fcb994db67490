/* shared.c -- several processes, one limit: each attaches to the same file, and together they get
 * exactly what the limit says.
 *
 * Use a file in /dev/shm for memory only, or on a disk to keep the states over a restart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir.h>

#define PROCESSES 4
#define TRIES     200000
#define LIMIT     500000

static const struct weir_limit limit = { .count = LIMIT, .period = 3600 * WEIR_SECOND };

static void check(int code, const struct weir_error *error)
{
    if (code) {
        fprintf(stderr, "shared: %s\n", error->text);
        exit(1);
    }
}

/* Each process: attach, join the limiter by its name, take. */
static int work(const char *path, weir_time now)
{
    struct weir_table *table;
    struct weir_limiter *api;
    struct weir_error error;
    struct weir_decision d;
    int granted = 0;

    check(weir_table_attach(&table, path, &error), &error);
    check(weir_limiter_create(&api, table, "api", &limit, &error), &error);
    for (int i = 0; i < TRIES; i++)
        granted += weir_take(
            api, &(struct weir_ask){ .key = { "everybody", 9 }, .cost = 1, .now = now }, &d);
    weir_table_destroy(table);
    return granted;
}

int main(void)
{
    char folder[] = "/tmp/weir-shared-XXXXXX", path[sizeof(folder) + 8];
    struct weir_table *table;
    struct weir_error error;
    int results[2], total = 0;

    if (mkdtemp(folder) == NULL || pipe(results) != 0)
        return 1;
    snprintf(path, sizeof(path), "%s/table", folder);
    check(weir_table_create(&table, &(struct weir_table_options){ .path = path, .keys = 1000 },
                            &error),
          &error);
    weir_time now = weir_table_now(
        table); /* one moment for all, so that nothing is refilled and the count is exact */

    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            int granted = work(path, now);
            _exit(write(results[1], &granted, sizeof(granted)) != sizeof(granted));
        }
    close(results[1]);
    for (int granted; read(results[0], &granted, sizeof(granted)) == sizeof(granted);
         total += granted)
        printf("a process got %d of its %d\n", granted, TRIES);
    while (wait(NULL) > 0)
        ;
    printf("together: %d of a limit of %d\n", total, LIMIT);

    weir_table_destroy(table);
    unlink(path);
    rmdir(folder);
    return total != LIMIT;
}
