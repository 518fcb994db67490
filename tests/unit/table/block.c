/* block.c -- blocks of the slab: every size, what a chunk becomes, a full slab, disk space, another
 * process that stops or dies at any instruction, and damage. */
#include "unit/test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "unit/fixture.h"
#include "table/block.h"

GROUP(make_folder, remove_folder)

#define KIB ((size_t)1024)

/* A slab in memory that children share, or in a file after a page of something else. */
struct place {
    struct weir__slab slab;
    unsigned char *all;
    size_t size;
};

static struct place place_of(uint64_t count, int fd)
{
    size_t map = (weir__slab_map_bytes(count) + 4095) / 4096 * 4096;
    struct place p = { .slab = { .count = count, .fd = fd, .file_at = map },
                       .size = map + count * WEIR__CHUNK };
    int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;

    if (fd >= 0)
        assert_int_equal(ftruncate(fd, (off_t)p.size), 0);
    p.all = mmap(NULL, p.size, PROT_READ | PROT_WRITE, flags, fd, 0);
    assert_true(p.all != MAP_FAILED);
    p.slab.bytes = p.all + map;
    weir__slab_open(&p.slab, p.all);
    return p;
}

static void place_drop(struct place *p)
{
    munmap(p->all, p->size);
    if (p->slab.fd >= 0)
        close(p->slab.fd);
}

#define PLACE(p, count) FINALLY(place_drop) struct place p = place_of(count, -1)

static int new_file(void)
{
    int fd = open(new_path(), O_RDWR | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    return fd;
}

static uint32_t must_take(struct weir__slab *slab, size_t bytes)
{
    uint32_t block = weir__block_take(slab, bytes);

    assert_int_not_equal(block, 0);
    assert_true(weir__block_is_valid(slab, block, bytes));
    return block;
}

/* Takes blocks of a size until there is none. */
static size_t take_all(struct weir__slab *slab, size_t bytes, uint32_t *blocks, size_t most)
{
    size_t n = 0;

    for (uint32_t block; n < most && (block = weir__block_take(slab, bytes)) != 0;)
        blocks[n++] = block;
    return n;
}

static void give_all(struct weir__slab *slab, size_t bytes, const uint32_t *blocks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weir__block_give(slab, blocks[i], bytes);
}

static void assert_empty(const struct weir__slab *slab)
{
    struct weir__slab_stats stats = weir__slab_stats(slab);

    assert_fields(stats, (bytes, 0), (chunks, 0));
}

static size_t rounded(size_t bytes)
{
    size_t size = 64;

    while (size < bytes && size < WEIR__CHUNK)
        size *= 2;
    return size < bytes ? (bytes + WEIR__CHUNK - 1) / WEIR__CHUNK * WEIR__CHUNK : size;
}

/* --------------------------------------------------------------------- sizes ---- */

TEST(test_blocks_of_any_size_do_not_overlap)
{
    const size_t sizes[] = {
        1,     63,    64,    65,    127,   128,    129,    1000,   4096,           4097,      32767,
        32768, 32769, 65535, 65536, 65537, 131072, 131073, 200000, 1024 * KIB - 1, 1024 * KIB
    };

    PLACE(p, 80);
    uint32_t blocks[COUNT_OF(sizes)];
    size_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        blocks[i] = must_take(&p.slab, sizes[i]);
        memset(weir__block_at(&p.slab, blocks[i]), (int)i + 1, rounded(sizes[i]));
        sum += rounded(sizes[i]);
        assert_int_equal(weir__slab_stats(&p.slab).bytes, sum);
    }
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        unsigned char *bytes = weir__block_at(&p.slab, blocks[i]);
        size_t align = rounded(sizes[i]) < WEIR__CHUNK ? rounded(sizes[i]) : WEIR__CHUNK;
        assert_int_equal((size_t)(bytes - p.slab.bytes) % align, 0);
        for (size_t k = 0; k < rounded(sizes[i]); k++)
            assert_int_equal(bytes[k], i + 1);
        weir__block_give(&p.slab, blocks[i], sizes[i]);
    }
    assert_empty(&p.slab);
}

TEST(test_a_size_that_no_slab_has_is_refused)
{
    PLACE(p, 4);
    assert_int_equal(weir__block_take(&p.slab, 4 * WEIR__CHUNK + 1), 0);
    assert_int_equal(weir__block_take(&p.slab, SIZE_MAX), 0);
    assert_int_not_equal(weir__block_take(&p.slab, 4 * WEIR__CHUNK), 0);
    struct weir__slab none = { .fd = -1 };
    uint64_t map[8] = { 0 };
    weir__slab_open(&none, map);
    assert_int_equal(weir__block_take(&none, 1), 0);
    assert_int_equal(weir__block_take(&none, WEIR__CHUNK), 0);
    assert_false(weir__block_is_valid(&none, 1, 1));
}

TEST(test_a_full_slab_has_exactly_its_blocks_and_gives_them_again)
{
    static uint32_t blocks[4 * 1024 + 1];

    PLACE(p, 4);
    for (size_t bytes = 64; bytes <= WEIR__CHUNK; bytes *= 2) {
        for (int round = 0; round < 2; round++) {
            size_t n = take_all(&p.slab, bytes, blocks, COUNT_OF(blocks));
            assert_int_equal(n, 4 * WEIR__CHUNK / bytes);
            assert_int_equal(weir__block_take(&p.slab, 1), 0);
            /* one given back is one that can be taken, the same */
            weir__block_give(&p.slab, blocks[n / 2], bytes);
            assert_int_equal(weir__block_take(&p.slab, bytes), blocks[n / 2]);
            assert_int_equal(weir__block_take(&p.slab, bytes), 0);
            give_all(&p.slab, bytes, blocks, n);
            assert_empty(&p.slab); /* so the next size gets the chunks */
        }
    }
}

TEST(test_room_made_by_another_process_is_found)
{
    uint32_t blocks[2 * 16 + 1];

    PLACE(p, 2);
    struct weir__slab other = p.slab; /* as another process sees it */
    weir__slab_open(&other, p.all);
    assert_int_equal(take_all(&p.slab, 4096, blocks, COUNT_OF(blocks)), 32);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(weir__block_take(&p.slab, 4096), 0);
        weir__block_give(&other, blocks[i], 4096);
        assert_int_equal(weir__block_take(&p.slab, 4096), blocks[i]);
    }
    give_all(&other, 4096, blocks, 32);
    assert_int_equal(weir__slab_trim(&other, 2), 2);
    blocks[0] = must_take(&other, 4096); /* a chunk that it has begun has room for all */
    blocks[1] = must_take(&other, WEIR__CHUNK);
    for (int i = 1; i < 16; i++)
        must_take(&p.slab, 4096);
    assert_int_equal(weir__block_take(&p.slab, 4096), 0);
    weir__block_give(&other, blocks[1], WEIR__CHUNK);
    must_take(&p.slab, 4096);
}

TEST(test_chunks_in_part_use_are_filled_before_others_are_begun)
{
    uint32_t blocks[3 * 16];

    PLACE(p, 40);
    assert_int_equal(take_all(&p.slab, 4096, blocks, COUNT_OF(blocks)), COUNT_OF(blocks));
    assert_int_equal(weir__slab_stats(&p.slab).chunks, 3);
    for (size_t i = 0; i < COUNT_OF(blocks); i += 2)
        weir__block_give(&p.slab, blocks[i], 4096);
    for (size_t i = 0; i < COUNT_OF(blocks); i += 2)
        blocks[i] = must_take(&p.slab, 4096);
    assert_int_equal(weir__slab_stats(&p.slab).chunks, 3);
}

TEST(test_runs_need_chunks_in_a_row)
{
    uint32_t blocks[8];

    PLACE(p, 8);
    assert_int_equal(take_all(&p.slab, WEIR__CHUNK, blocks, 8), 8);
    for (size_t i = 1; i < 8; i += 2)
        weir__block_give(&p.slab, 1 + (uint32_t)i * 1024, WEIR__CHUNK);
    assert_int_equal(weir__block_take(&p.slab, WEIR__CHUNK + 1),
                     0); /* four free, no two in a row */
    weir__block_give(&p.slab, 1 + 4 * 1024, WEIR__CHUNK);
    assert_int_equal(must_take(&p.slab, 3 * WEIR__CHUNK), 1 + 3 * 1024);
    assert_int_equal(weir__block_take(&p.slab, 2 * WEIR__CHUNK), 0);
    assert_int_equal(weir__slab_stats(&p.slab).bytes, 6 * WEIR__CHUNK);
    weir__block_give(&p.slab, 1 + 3 * 1024, 3 * WEIR__CHUNK);
    weir__block_give(&p.slab, 1 + 6 * 1024, WEIR__CHUNK);
    assert_int_equal(must_take(&p.slab, 5 * WEIR__CHUNK), 1 + 3 * 1024);
    weir__block_give(&p.slab, 1, WEIR__CHUNK); /* the first, second and third are free */
    weir__block_give(&p.slab, 1 + 2 * 1024, WEIR__CHUNK);
    weir__block_give(&p.slab, 1 + 3 * 1024, 5 * WEIR__CHUNK);
    assert_int_equal(must_take(&p.slab, 8 * WEIR__CHUNK), 1); /* not around the end */
}

TEST(test_references_that_cannot_be_are_not_valid)
{
    PLACE(p, 4);
    uint32_t small = must_take(&p.slab, 256), run = must_take(&p.slab, 2 * WEIR__CHUNK);
    struct weir__slab_stats before = weir__slab_stats(&p.slab);
    const struct {
        uint32_t block;
        size_t bytes;
    } wrong[] = {
        { 0, 256 },
        { UINT32_MAX, 256 },
        { small + 1, 256 },
        { small, 64 },
        { small, 512 },
        { small, WEIR__CHUNK },
        { run, WEIR__CHUNK },
        { run, 3 * WEIR__CHUNK },
        { run + 1, 2 * WEIR__CHUNK },
        { run + 1024, WEIR__CHUNK },
        { run + 1024, 64 },
        { 1 + 3 * 1024, 2 * WEIR__CHUNK },
        { 1 + 3 * 1024, 64 },
        { 1 + 4 * 1024, 64 },
        { 1, SIZE_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(weir__block_is_valid(&p.slab, wrong[i].block, wrong[i].bytes));
        weir__block_give(&p.slab, wrong[i].block, wrong[i].bytes);
    }
    struct weir__slab_stats after = weir__slab_stats(&p.slab);
    assert_memory_equal(&before, &after, sizeof(before));
    for (int i = 0; i < 2; i++) { /* the second time it is nobody's */
        weir__block_give(&p.slab, small, 256);
        weir__block_give(&p.slab, run, 2 * WEIR__CHUNK);
    }
    assert_empty(&p.slab);
}

/* ---------------------------------------------------------------- disk space ---- */

static size_t on_disk(int fd)
{
    struct stat st;

    assert_int_equal(fsync(fd), 0);
    assert_int_equal(fstat(fd, &st), 0);
    return (size_t)st.st_blocks * 512;
}

TEST(test_trimming_gives_disk_space_back)
{
    FINALLY(place_drop) struct place p = place_of(64, new_file());
    uint32_t blocks[33];
    size_t at_first = on_disk(p.slab.fd);
    assert_int_equal(take_all(&p.slab, 64 * KIB, blocks, 32), 32);
    assert_true(on_disk(p.slab.fd) >= at_first + 32 * 64 * KIB); /* before anything is written */
    blocks[32] = must_take(&p.slab, 100);
    memset(weir__block_at(&p.slab, blocks[32]), 7, 100);
    assert_int_equal(weir__slab_trim(&p.slab, 100), 0); /* all in use */
    give_all(&p.slab, 64 * KIB, blocks, 32);
    assert_int_equal(weir__slab_stats(&p.slab).untrimmed, 32);
    assert_int_equal(weir__slab_trim(&p.slab, 5), 5);
    assert_int_equal(weir__slab_trim(&p.slab, 100), 27);
    assert_int_equal(weir__slab_trim(&p.slab, 100), 0);
    assert_int_equal(weir__slab_stats(&p.slab).untrimmed, 0);
    assert_true(on_disk(p.slab.fd) <= at_first + 2 * 64 * KIB);
    assert_int_equal(((unsigned char *)weir__block_at(&p.slab, blocks[32]))[99], 7);
    assert_int_equal(take_all(&p.slab, 64 * KIB, blocks, 32), 32);
    assert_true(on_disk(p.slab.fd) >= at_first + 32 * 64 * KIB);
}

TEST(test_trimming_private_memory_gives_it_back)
{
    struct weir__slab slab = { .count = 4, .fd = -1 };
    size_t size = 4 * WEIR__CHUNK;
    unsigned char pages[64];
    _Alignas(64) static unsigned char map[4096];

    slab.bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(slab.bytes != MAP_FAILED && weir__slab_map_bytes(4) <= sizeof(map));
    weir__slab_open(&slab, map);
    uint32_t run = must_take(&slab, size);
    memset(weir__block_at(&slab, run), 1, size);
    weir__block_give(&slab, run, size);
    assert_int_equal(weir__slab_trim(&slab, 4), 4);
    assert_int_equal(mincore(slab.bytes, size, pages), 0);
    for (size_t i = 0; i < COUNT_OF(pages); i++)
        assert_int_equal(pages[i] & 1, 0);
    munmap(slab.bytes, size);
}

/* A file that must not grow stands for a disk that is full. */
TEST(test_a_full_disk_is_no_block_and_no_signal)
{
    FINALLY(place_drop) struct place p = place_of(16, new_file());
    uint32_t blocks[16];
    struct rlimit limit, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = limit;
    small.rlim_cur = p.slab.file_at + 4 * WEIR__CHUNK;
    assert_int_equal(ftruncate(p.slab.fd, (off_t)small.rlim_cur), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    size_t n = take_all(&p.slab, 32 * KIB, blocks, 16);
    uint32_t run = weir__block_take(&p.slab, 2 * WEIR__CHUNK);
    weir__block_give(&p.slab, blocks[2], 32 * KIB); /* the second chunk is free and has space */
    weir__block_give(&p.slab, blocks[3], 32 * KIB);
    weir__block_give(&p.slab, blocks[4], 32 * KIB);
    weir__block_give(&p.slab, blocks[5], 32 * KIB);
    uint32_t again = weir__block_take(&p.slab, 2 * WEIR__CHUNK);
    weir__block_give(&p.slab, again, 2 * WEIR__CHUNK);
    uint32_t other = weir__block_take(&p.slab, 64);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(n, 8);
    assert_int_equal(run, 0);
    assert_int_not_equal(again, 0);
    assert_int_not_equal(other, 0);
    assert_int_not_equal(weir__block_take(&p.slab, 5 * WEIR__CHUNK), 0); /* there is space again */
}

/* ------------------------------------------------------------------- rebuild ---- */

TEST(test_a_rebuild_frees_all_but_the_marked)
{
    FINALLY(place_drop) struct place p = place_of(32, new_file());
    uint32_t small[40], run = 0;
    for (size_t i = 0; i < COUNT_OF(small); i++) {
        small[i] = must_take(&p.slab, 4096);
        memset(weir__block_at(&p.slab, small[i]), (int)i, 4096);
    }
    must_take(&p.slab, 100);
    run = must_take(&p.slab, 3 * WEIR__CHUNK);
    must_take(&p.slab, 10 * WEIR__CHUNK);
    size_t before = on_disk(p.slab.fd);
    weir__slab_rebuild_begin(&p.slab);
    for (size_t i = 0; i < COUNT_OF(small); i += 4)
        assert_true(weir__slab_rebuild_mark(&p.slab, small[i], 4096));
    assert_true(weir__slab_rebuild_mark(&p.slab, run, 3 * WEIR__CHUNK));
    assert_false(weir__slab_rebuild_mark(&p.slab, small[0], 4096)); /* is marked */
    assert_false(weir__slab_rebuild_mark(&p.slab, small[0], 8192)); /* the chunk has another size */
    assert_false(weir__slab_rebuild_mark(&p.slab, run + 1024, WEIR__CHUNK));
    assert_false(weir__slab_rebuild_mark(&p.slab, run - 1024, 2 * WEIR__CHUNK));
    assert_false(weir__slab_rebuild_mark(&p.slab, run + 1024, 64));
    assert_false(weir__slab_rebuild_mark(&p.slab, 0, 64));
    assert_false(weir__slab_rebuild_mark(&p.slab, 1 + 31 * 1024, 2 * WEIR__CHUNK));
    assert_true(weir__slab_rebuild_end(&p.slab));
    assert_fields(weir__slab_stats(&p.slab), (bytes, 10 * 4096 + 3 * WEIR__CHUNK), (chunks, 6),
                  (untrimmed, 0));
    assert_true(on_disk(p.slab.fd) <= before - 10 * WEIR__CHUNK);
    assert_int_not_equal(weir__block_take(&p.slab, 20 * WEIR__CHUNK), 0);
    for (size_t i = 0; i < COUNT_OF(small); i += 4) {
        assert_int_equal(*(unsigned char *)weir__block_at(&p.slab, small[i]), i);
        weir__block_give(&p.slab, small[i], 4096);
    }
    weir__block_give(&p.slab, run, 3 * WEIR__CHUNK);
    assert_int_equal(weir__slab_stats(&p.slab).chunks, 20);
}

/* --------------------------------------------------------------------- damage ---- */

TEST(test_any_bytes_in_the_map_do_no_harm)
{
    enum { COUNT = 8, HELD = 64 };
    PLACE(p, COUNT);
    size_t map = weir__slab_map_bytes(COUNT);
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        random_state = seed;
        for (size_t i = 0; i < map / 8; i++)
            ((uint64_t *)(void *)p.all)[i] = one_in(2) ? roll() : one_in(2) ? UINT64_MAX : 0;
        for (size_t i = 0; i < COUNT; i++) /* mostly kinds that there are */
            p.slab.words[i] = p.slab.words[i] >> 8 | (uint64_t)between(0, 16) << 56;
        for (size_t i = 0; i < COUNT; i++)
            if (one_in(2)) /* and numbers of blocks that there can be */
                p.slab.words[i] &= ~((uint64_t)0xfffff0 << 32);
        for (int step = 0; step < HELD; step++) {
            size_t bytes = (size_t)1 << between(0, 19);
            uint32_t block = weir__block_take(&p.slab, bytes);
            if (block != 0)
                memset(weir__block_at(&p.slab, block), 1, rounded(bytes));
            weir__block_give(&p.slab, (uint32_t)between(0, COUNT * 1024 + 1),
                             (size_t)1 << between(0, 19));
            if (one_in(8))
                weir__slab_trim(&p.slab, 2);
            if (one_in(2))
                weir__block_give(&p.slab, block, bytes);
        }
        (void)weir__slab_stats(&p.slab);
        weir__slab_rebuild_begin(&p.slab);
        assert_true(weir__slab_rebuild_mark(&p.slab, 1 + 1024, 100));
        assert_true(weir__slab_rebuild_end(&p.slab));
        assert_fields(weir__slab_stats(&p.slab), (bytes, 128), (chunks, 1), (untrimmed, 0));
        assert_int_not_equal(weir__block_take(&p.slab, 6 * WEIR__CHUNK), 0);
    }
}

/* ------------------------------------------------------------ other processes ---- */

TEST(test_processes_share_a_slab)
{
    FINALLY(place_drop) struct place p = place_of(16, new_file());
    uint32_t mine[512];
    pid_t child = fork();
    assert_true(child >= 0);
    struct weir__slab slab = p.slab;
    int bad = 0;
    for (int round = 0; round < 20; round++) {
        size_t n = 0;
        for (; n < COUNT_OF(mine) && (mine[n] = weir__block_take(&slab, 1024)) != 0; n++)
            memset(weir__block_at(&slab, mine[n]), child ? 1 : 2, 1024);
        for (size_t i = 0; i < n; i++) {
            unsigned char *bytes = weir__block_at(&slab, mine[i]);
            bad += bytes[0] != (child ? 1 : 2) || memcmp(bytes, bytes + 1, 1023) != 0;
        }
        give_all(&slab, 1024, mine, n);
        weir__slab_trim(&slab, 3);
    }
    if (child == 0)
        _exit(bad != 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(bad, 0);
    assert_empty(&p.slab);
}

/* A child is stopped after each instruction of an operation in turn; others take all there is, and
 * hold it while the child goes on or is killed. */
enum operation { TAKE, GIVE, TAKE_RUN, GIVE_RUN, TRIM, OPERATIONS };

#define CHUNKS     6
#define STEPS_EACH 128 /* the first are all looked at, then every second, third ... */
#define SMALL      (32 * KIB)
#define LARGE      (2 * WEIR__CHUNK)

/* Exits with 1 if it keeps a block. */
static void child_work(struct weir__slab *slab, enum operation operation)
{
    size_t bytes = operation == TAKE || operation == GIVE ? SMALL : LARGE;
    bool takes = operation == TAKE || operation == TAKE_RUN;
    uint32_t block = takes ? 0 : weir__block_take(slab, bytes);

    if (operation == TRIM)
        weir__block_give(slab, block, bytes);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(2);
    raise(SIGSTOP);
    if (takes)
        block = weir__block_take(slab, bytes);
    else if (operation == TRIM)
        weir__slab_trim(slab, CHUNKS);
    else
        weir__block_give(slab, block, bytes);
    raise(SIGSTOP);
    _exit(takes && block != 0);
}

/* The child after `steps` instructions of the operation, or 0 if it has no more; -1: it may not be
 * traced here. */
static pid_t child_stopped(struct weir__slab *slab, enum operation operation, int steps)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        child_work(slab, operation);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        return -1;
    for (int i = 0; i < steps; i++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) == SIGSTOP) {
            kill(child, SIGKILL);
            assert_int_equal(waitpid(child, &status, 0), child);
            return 0;
        }
    }
    return child;
}

/* To its end; whether it keeps a block. */
static bool child_ends(pid_t child)
{
    int status;

    do {
        assert_int_equal(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
    } while (WIFSTOPPED(status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status);
}

static void stop_and_go_on(struct weir__slab *slab, pid_t child, enum operation operation)
{
    uint32_t blocks[2 * CHUNKS + 1];
    size_t its_own = operation < TAKE_RUN ? 2 : 4, all = 2 * CHUNKS;
    size_t n = take_all(slab, SMALL, blocks, COUNT_OF(blocks));

    assert_true(n >= all - its_own);
    bool keeps = child_ends(child);
    size_t kept = !keeps ? 0 : operation == TAKE ? 1 : 4;
    n += take_all(slab, SMALL, blocks + n, COUNT_OF(blocks) - n);
    assert_int_equal(n, all - kept);
    for (size_t i = n; i-- > 0;) { /* the last first: a place is taken in the other order */
        weir__block_give(slab, blocks[i], SMALL);
        assert_int_equal(weir__block_take(slab, SMALL), blocks[i]);
    }
    give_all(slab, SMALL, blocks, n);
    assert_int_equal(weir__slab_stats(slab).bytes, kept * SMALL);
}

static void stop_and_kill(struct weir__slab *slab, pid_t child)
{
    uint32_t blocks[CHUNKS + 1];
    int status;

    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    size_t n = take_all(slab, WEIR__CHUNK, blocks, COUNT_OF(blocks));
    assert_in_range(n, CHUNKS - 2, CHUNKS);
    give_all(slab, WEIR__CHUNK, blocks, n);
}

TEST(test_a_process_stopped_or_killed_at_any_instruction_costs_only_what_it_holds)
{
#ifdef SANITIZED
    skip(); /* most instructions are its own */
#endif
    PLACE(p, CHUNKS);
    for (int operation = 0; operation < OPERATIONS; operation++) {
        pid_t child;
        for (int steps = 0;; steps += steps / STEPS_EACH + 1) {
            struct weir__slab own = p.slab;
            weir__slab_rebuild_begin(&own);
            assert_true(weir__slab_rebuild_end(&own));
            assert_empty(&own);
            child = child_stopped(&own, (enum operation)operation, steps);
            if (child < 0)
                skip();
            if (child == 0)
                break;
            if (steps % 4 == 3)
                stop_and_kill(&own, child);
            else
                stop_and_go_on(&own, child, (enum operation)operation);
        }
    }
}
