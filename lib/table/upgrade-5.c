/* upgrade-5.c -- makes a table of format 5 one of this format, in its place.
 *
 * All parts lie where they lay.  Format 5 knew no reach of groups, left slots with a tag of their
 * own where limiters went, and gave some words of a guard another meaning from time to time.  So
 * guards are made again by the processes that use them, those slots are emptied, and the header
 * says that the host has crashed: whoever attaches next puts the rest in order, as after a crash.
 * Killed before the format is written, it leaves a table of format 5 without guards; killed later,
 * one of this format with the check of format 5, which it takes up again.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "table/sizes.h"
#include "table/upgrade-5.h"

#define LEFT_TAG 0x3fffeu

static void forget_guards(unsigned char *base, const struct weir__sizes *s, int fd)
{
    struct weir__place *places = (struct weir__place *)(void *)(base + s->names.slots_at);
    uint64_t bytes = s->guards_max * WEIR__GUARD_BYTES;

    for (uint64_t i = s->limiters_max; i < s->limiters_max + s->guards_max; i++)
        places[i].word = 0;
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)s->guards_at,
                  (off_t)bytes) != 0)
        memset(base + s->guards_at, 0, bytes);
}

static void empty_left_slots(unsigned char *base, const struct weir__space_sizes *s)
{
    unsigned char *slot = base + s->slots_at;

    for (uint64_t n = s->groups * WEIR__GROUP_SLOTS; n > 0; n--, slot += s->slot_size)
        if (*(uint64_t *)(void *)slot == LEFT_TAG)
            memset(slot, 0, s->slot_size);
}

static void convert(struct weir__header *h, const struct weir__sizes *s, int fd)
{
    unsigned char *base = (unsigned char *)h;

    forget_guards(base, s, fd);
    memset(h->boot_id, 0, sizeof(h->boot_id));
    h->lost_then = h->holders_lost + 1;
    __atomic_store_n(&h->format, WEIR__FORMAT, __ATOMIC_RELEASE);
    empty_left_slots(base, &s->bans);
    empty_left_slots(base, &s->keys);
    __atomic_store_n(&h->check, weir__header_check(h), __ATOMIC_RELEASE);
}

static bool has_check_of_5(const struct weir__header *h)
{
    struct weir__header old = *h;

    old.format = 5;
    return h->check == weir__header_check(&old);
}

bool weir__upgrade_5_is_under_way(const struct weir__header *h)
{
    return h->format == WEIR__FORMAT && has_check_of_5(h);
}

int weir__upgrade_5(int fd, uint64_t bytes, const char *path, struct weir_error *error)
{
    struct weir__sizes sizes;
    struct weir__header *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (h == MAP_FAILED)
        return weir__fail_errno(error, "cannot map", path);
    bool good =
        h->header_size == sizeof(*h) && has_check_of_5(h) && weir__sizes_fit(h, bytes, &sizes);
    if (good)
        convert(h, &sizes, fd);
    munmap(h, bytes);
    return good ? WEIR_OK : weir__fail(error, WEIR_CORRUPT, "'%s' is damaged", path);
}
