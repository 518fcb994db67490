/* pages.c -- a table in memory has its pages from the beginning, and large ones. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#define HUGE_PAGE ((size_t)2 << 20)

GROUP(make_folder, remove_folder)

/* Kernels before 5.14 cannot. */
static bool can_populate(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool can = madvise(p, page, 23 /* MADV_POPULATE_WRITE */) == 0;

    munmap(p, page);
    return can;
}

static struct weir_table *table_in_memory(int64_t keys)
{
    struct statfs fs;
    char path[64];

    if (statfs("/dev/shm", &fs) != 0 || fs.f_type != TMPFS_MAGIC || !can_populate())
        skip();
    snprintf(path, sizeof(path), "/dev/shm/weir-pages-%d", (int)getpid());
    struct weir_table *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = keys });
    unlink(path);
    return table;
}

/* The first decisions on a new table must not wait for its pages.  A page that was only reserved is
 * not in memory. */
TEST(test_a_table_in_memory_has_its_pages_from_the_beginning)
{
    unsigned char in_memory[256]; /* of pages of 4096 bytes; larger ones are fewer */
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = sizeof(in_memory) * 4096;
    struct weir_table *table = table_in_memory(65536);
    unsigned char *slots = (unsigned char *)table->header + table->keys.rooms_at / page * page;

    assert_int_equal(mincore(slots, bytes, in_memory), 0);
    for (size_t i = 0; i < bytes / page; i++)
        assert_true(in_memory[i] & 1);
    weir_table_destroy(table);
}

/* Of the table, in KB. */
static long huge_pages(const struct weir_table *table)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    bool here = false;
    char line[256];
    long kb = 0;

    while (fgets(line, sizeof(line), file) != NULL) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            here = begin == (unsigned long)(uintptr_t)table->header;
        else if (here)
            (void)sscanf(line, "ShmemPmdMapped: %ld", &kb);
    }
    fclose(file);
    return kb;
}

/* Kernels before 6.1 cannot, nor can one that has no such page. */
TEST(test_a_large_table_in_memory_has_huge_pages)
{
    struct weir_table *table = table_in_memory(400000);
    uintptr_t slots = (uintptr_t)table->keys.slots;
    long kb = huge_pages(table);

    assert_int_equal((uintptr_t)table->header % HUGE_PAGE, 0);
    void *first = (void *)(slots + -slots % HUGE_PAGE);
    bool can = madvise(first, HUGE_PAGE, 25 /* MADV_COLLAPSE */) == 0;
    weir_table_destroy(table);
    if (!can)
        skip();
    assert_true(kb >= 2048);
}
