/* block.c -- threads, then processes, that take and give blocks of all sizes at once, in a slab
 * that is nearly full: nobody gets a block that another has, and in the end all are back; then in
 * a slab with plenty of room: all get theirs.
 *
 *     thread-block [ROUNDS]
 *
 * Each owner fills its blocks with its mark, and looks for it before it gives them back.  One of
 * the workers trims.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"
#include "table/block.h"
#include "thread/processes.h"

#define WORKERS 4
#define CHUNKS  24
#define HELD    48
#define STEPS   20000

struct held {
    uint32_t block;
    size_t bytes;
};

struct worker {
    struct weir__slab *slab;
    uint64_t seed, mark;
    int64_t bad, taken, none;
    pthread_barrier_t *together;
};

static int passed, failed;

static void expect(bool ok, const char *what, int64_t got)
{
    passed += ok;
    failed += !ok;
    if (!ok)
        fprintf(stderr, "thread-block: %s: %" PRId64 "\n", what, got);
}

/* Small ones most of the time: 1 byte to 256 KiB. */
static size_t random_size(uint64_t *seed)
{
    size_t most = (size_t)1 << random64(seed) % 19;

    return 1 + random64(seed) % most;
}

static void fill(struct worker *w, const struct held *h)
{
    uint64_t *words = weir__block_at(w->slab, h->block);

    for (size_t i = 0; i < (h->bytes + 7) / 8; i++)
        words[i] = w->mark ^ h->block;
}

static void give(struct worker *w, struct held *h)
{
    const uint64_t *words = weir__block_at(w->slab, h->block);

    for (size_t i = 0; i < (h->bytes + 7) / 8; i++)
        w->bad += words[i] != (w->mark ^ h->block);
    weir__block_give(w->slab, h->block, h->bytes);
    h->block = 0;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    struct held held[HELD] = { 0 };

    for (int step = 0; step < STEPS; step++) {
        struct held *h = &held[random64(&w->seed) % HELD];

        if (h->block != 0) {
            give(w, h);
            continue;
        }
        h->bytes = random_size(&w->seed);
        h->block = weir__block_take(w->slab, h->bytes);
        if (h->block == 0) {
            w->none++;
        } else {
            w->taken++;
            w->bad += !weir__block_is_valid(w->slab, h->block, h->bytes);
            fill(w, h);
        }
        if (w->mark == 1 && step % 64 == 0)
            weir__slab_trim(w->slab, 2);
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i].block != 0)
            give(w, &held[i]);
    }
    return NULL;
}

static void run_threads(struct worker *workers)
{
    pthread_t threads[WORKERS];

    for (int i = 0; i < WORKERS; i++) {
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
            abort();
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

/* The workers lie in shared memory; the slab as each sees it does not. */
static void run_processes(struct worker *workers)
{
    for (int i = 0; i < WORKERS; i++) {
        pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0) {
            work(&workers[i]);
            _exit(0);
        }
    }
    for (int i = 0, status; i < WORKERS; i++) {
        if (wait(&status) > 0)
            expect(status == 0, "a process ended badly", status);
    }
}

static void *shared_memory(size_t bytes, int fd)
{
    int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

    if (p == MAP_FAILED)
        abort();
    return p;
}

static void round_of(struct weir__slab *slab, uint64_t seed, bool processes)
{
    struct worker *workers = shared_memory(WORKERS * sizeof(*workers), -1);
    struct weir__slab_stats stats;
    int64_t bad = 0, taken = 0, none = 0;

    for (int i = 0; i < WORKERS; i++)
        workers[i] = (struct worker){ .slab = slab,
                                      .seed = seed * WORKERS + (uint64_t)i,
                                      .mark = (uint64_t)i + 1 };
    (processes ? run_processes : run_threads)(workers);
    for (int i = 0; i < WORKERS; i++) {
        bad += workers[i].bad;
        taken += workers[i].taken;
        none += workers[i].none;
    }
    stats = weir__slab_stats(slab);
    expect(bad == 0, "words of a block that another has written", bad);
    expect(taken > WORKERS * STEPS / 4, "blocks taken", taken);
    expect(none > 0, "the slab was never full", none);
    expect(stats.chunks == 0 && stats.bytes == 0, "chunks not given back", (int64_t)stats.chunks);
    munmap(workers, WORKERS * sizeof(*workers));
}

/* ---------------------------------------------------------------- plenty ---- */

#define TAKES_EACH 100

/* Nobody is told that the slab is full because another was faster. */
static void *take_large(void *argument)
{
    static const size_t sizes[] = { 500, 20000, 40000, 100000, 160000 };
    struct worker *w = argument;

    pthread_barrier_wait(w->together);
    for (int i = 0; i < TAKES_EACH; i++)
        w->none += weir__block_take(w->slab, sizes[i % 5]) == 0;
    return NULL;
}

static void plenty(int rounds)
{
    size_t map_bytes = (weir__slab_map_bytes(4 * WORKERS * TAKES_EACH) + 4095) / 4096 * 4096;
    struct weir__slab slab = { .count = 4 * WORKERS * TAKES_EACH, .fd = -1 };
    struct worker workers[WORKERS];
    pthread_barrier_t together;
    pthread_t threads[WORKERS];
    int64_t none = 0;

    pthread_barrier_init(&together, NULL, WORKERS);
    for (int round = 0; round < rounds; round++) {
        unsigned char *map = shared_memory(map_bytes, -1);
        weir__slab_open(&slab, map);
        for (int i = 0; i < WORKERS; i++) {
            workers[i] = (struct worker){ .slab = &slab, .together = &together };
            if (pthread_create(&threads[i], NULL, take_large, &workers[i]) != 0)
                abort();
        }
        for (int i = 0; i < WORKERS; i++) {
            pthread_join(threads[i], NULL);
            none += workers[i].none;
        }
        munmap(map, map_bytes);
    }
    pthread_barrier_destroy(&together);
    expect(none == 0, "blocks that were not to be had, although there was room", none);
}

/* In memory, and in a file that is gone with the process. */
static void rounds_of(int rounds, int fd)
{
    size_t map_bytes = (weir__slab_map_bytes(CHUNKS) + 4095) / 4096 * 4096;
    size_t bytes = map_bytes + CHUNKS * WEIR__CHUNK;
    struct weir__slab slab = { .count = CHUNKS, .fd = fd, .file_at = map_bytes };
    unsigned char *all;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0)
        abort();
    all = shared_memory(bytes, fd);
    slab.bytes = all + map_bytes;
    weir__slab_open(&slab, all);
    for (int i = 0; i < rounds; i++) {
        round_of(&slab, (uint64_t)i, false);
        if (PROCESSES_RACE)
            round_of(&slab, (uint64_t)i, true);
    }
    munmap(all, bytes);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    FILE *file = tmpfile();

    if (file == NULL)
        abort();
    rounds_of(rounds, -1);
    plenty(20 * rounds);
    rounds_of(rounds, fileno(file));
    fclose(file);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
