/* table.c -- making a table, attaching to one, leaving it; its figures. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "table/bans.h"
#include "table/cl-throttle-limits.h"
#include "table/disk-space.h"
#include "table/file.h"
#include "table/fork.h"
#include "table/hand.h"
#include "table/holders.h"
#include "table/permits-by-key.h"
#include "table/registry.h"
#include "table/slot.h"

#define SLAB_KEPT       8 /* the last eighth: block.c */
#define HUGE_PAGE       ((uint64_t)2 << 20)
#define HUGE_PAGES_FROM (2 * HUGE_PAGE)
#define STAT_BLOCK      512 /* of st_blocks */
/* MADV_..., as Linux 5.14 and 6.1 have them; headers may be older. */
#define POPULATE_WRITE 23
#define COLLAPSE       25

/* ------------------------------------------------------------ header ---- */

/* FNV-1a: notices damage, not malice. */
uint64_t weir__header_check(const struct weir__header *h)
{
    uint64_t sum = 0xcbf29ce484222325u;
    const unsigned char *p = (const unsigned char *)h;

    for (size_t i = sizeof(h->magic); i < offsetof(struct weir__header, check); i++)
        sum = (sum ^ p[i]) * 0x100000001b3u;
    return sum;
}

static int write_header(struct weir__header *h, const struct weir__sizes *s,
                        struct weir_error *error)
{
    h->format = WEIR__FORMAT;
    h->endian = WEIR__ENDIAN;
    h->header_size = sizeof(*h);
    h->bytes = s->keys.end;
    h->limiters_max = s->limiters_max;
    h->guards_max = s->guards_max;
    h->ban_groups = s->bans.groups;
    h->groups = s->keys.groups;
    h->slab_bytes = s->keys.chunks * WEIR__CHUNK;
    h->slot_size = (uint32_t)s->keys.slot_size;
    if (weir__random_fill(h->secrets, sizeof(h->secrets)) != 0)
        return weir__fail_errno(error, "cannot get random bytes for", "a table");
    h->check = weir__header_check(h);
    uint64_t magic;
    memcpy(&magic, WEIR__MAGIC, sizeof(magic));
    __atomic_store_n((uint64_t *)(void *)h->magic, magic,
                     __ATOMIC_RELEASE); /* last: without it the table is not there yet */
    return WEIR_OK;
}

static int check_header(const struct weir__header *h, uint64_t file_bytes, const char *path,
                        struct weir__sizes *out, struct weir_error *error)
{
    bool magic = memcmp(h->magic, WEIR__MAGIC, sizeof(h->magic)) == 0;

    if (file_bytes < WEIR__HANDS_AT)
        return weir__fail(error, WEIR_CORRUPT, "'%s' is too short to be a table", path);
    if (!magic)
        return weir__fail(error, WEIR_CORRUPT, "'%s' is not a Weir table", path);
    if (h->endian != WEIR__ENDIAN)
        return weir__fail(error, WEIR_CORRUPT, "'%s' was made on a machine of the other byte order",
                          path);
    if (h->format != WEIR__FORMAT)
        return weir__fail(error, WEIR_CORRUPT,
                          "'%s' has format %" PRIu32 "; this library reads format %d%s", path,
                          h->format, WEIR__FORMAT,
                          h->format == 3 || h->format == 5 ? ": see weir table FILE --upgrade"
                          : h->format < WEIR__FORMAT       ? ": remove it, and a new one is made"
                                                           : "");
    if (file_bytes < WEIR__HOLDERS_AT)
        return weir__fail(error, WEIR_CORRUPT, "'%s' is too short to be a table", path);
    if (h->header_size != sizeof(*h) || h->check != weir__header_check(h))
        return weir__fail(error, WEIR_CORRUPT, "the header of '%s' is damaged", path);
    if (!weir__sizes_fit(h, file_bytes, out))
        return weir__fail(error, WEIR_CORRUPT,
                          "the sizes in '%s' do not fit together: was the file cut?", path);
    return WEIR_OK;
}

/* ------------------------------------------------------------ region ---- */

/* Without such a page a child would go on with its parent's place: then what it leaves
 * when it is killed stays. */
static uint64_t *make_me(void)
{
    void *page = mmap(NULL, WEIR__PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, WEIR__PAGE, MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, WEIR__PAGE);
    return NULL;
}

/* Disk space for a part of the file now, so that a full disk is an error here and not a signal
 * later. */
int weir__table_commit(const struct weir_table *table, uint64_t at, uint64_t bytes,
                       struct weir_error *error)
{
    int code = table->fd < 0 ? 0 : posix_fallocate(table->fd, (off_t)at, (off_t)bytes);

    if (code == 0 || code == EOPNOTSUPP || code == EINVAL)
        return WEIR_OK;
    return weir__fail(error, WEIR_SYSTEM, "cannot get %" PRIu64 " bytes for the table: %s", bytes,
                      strerror(code));
}

bool weir__table_punch(const struct weir_table *table, void *bytes, uint64_t n)
{
    off_t at = (off_t)((unsigned char *)bytes - (unsigned char *)table->header);

    return (table->fd < 0 ? madvise(bytes, n, MADV_DONTNEED)
                          : fallocate(table->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at,
                                      (off_t)n)) == 0;
}

/* At a multiple of 2 MB: elsewhere a file's huge pages are mapped as small ones. */
static void *map_aligned(uint64_t bytes, int flags, int fd)
{
    const int nothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unsigned char *p = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, nothing, -1, 0);
    uint64_t before = -(uint64_t)(uintptr_t)p % HUGE_PAGE, mapped = weir__page_up(bytes);

    if (p == MAP_FAILED)
        return p;
    void *at = mmap(p + before, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
    if (at == MAP_FAILED)
        mapped = 0;
    munmap(p, before);
    munmap(p + before + mapped, HUGE_PAGE + bytes - before - mapped);
    return at;
}

static int map_region(struct weir_table *table, uint64_t bytes, struct weir_error *error)
{
    int flags = table->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *p = map_aligned(bytes, flags, table->fd);

    if (p == MAP_FAILED)
        return weir__fail(error, WEIR_NO_MEMORY, "cannot map %" PRIu64 " bytes for a table: %s",
                          bytes, strerror(errno));
    if (bytes >= HUGE_PAGES_FROM)
        madvise(p, bytes, MADV_HUGEPAGE);
    table->header = p;
    table->bytes = bytes;
    return WEIR_OK;
}

static void open_space(struct weir_table *table, struct weir__space *out,
                       const struct weir__space_sizes *s)
{
    unsigned char *base = (unsigned char *)table->header;

    *out = (struct weir__space){ .table = table,
                                 .slots = base + s->slots_at,
                                 .groups = s->groups,
                                 .narrow = s->slot_size == sizeof(struct weir__narrow),
                                 .rooms = (struct weir__room *)(void *)(base + s->rooms_at),
                                 .rooms_at = s->rooms_at,
                                 .end = s->map_at,
                                 .slab = { .count = s->chunks,
                                           .bytes = base + s->slab_at,
                                           .file_at = s->slab_at,
                                           .fd = table->fd,
                                           .no_disk = &table->header->no_disk } };
    if (out == &table->keys) /* bans are of one size */
        out->slab.kept = s->chunks / SLAB_KEPT;
    weir__slab_open(&out->slab, base + s->map_at);
}

static int settle_in(struct weir_table *table, const struct weir__sizes *s,
                     struct weir_error *error)
{
    struct weir__header *h = table->header;
    unsigned char *base = (unsigned char *)h;

    table->holders = (struct weir__holder *)(void *)(base + WEIR__HOLDERS_AT);
    table->directory = (struct weir__room *)(void *)(base + s->names.rooms_at);
    table->places = (struct weir__place *)(void *)(base + s->names.slots_at);
    table->users = (struct weir__users *)(void *)(base + s->users_at);
    table->n_places = (uint32_t)(s->limiters_max + s->guards_max);
    table->guard_bytes = base + s->guards_at;
    open_space(table, &table->names, &s->names);
    table->names.end = s->users_at;
    open_space(table, &table->bans, &s->bans);
    open_space(table, &table->keys, &s->keys);
    weir__carried_open(table, &table->carried);
    weir__bans_open(table, &table->banned);
    table->held = (struct weir_limiter){ .table = table, .space = &table->keys };
    if (table->fd >= 0)
        table->me = make_me();
    memcpy(table->secrets, h->secrets, sizeof(table->secrets));
    uint32_t limiters = (uint32_t)s->limiters_max, guards = (uint32_t)s->guards_max;
    table->met = calloc(limiters, sizeof(*table->met));
    if (table->met == NULL ||
        weir__names_open(&table->limiters, 0, limiters, sizeof(struct weir__limiter_record)) ||
        weir__names_open(&table->guards, limiters, guards, WEIR__GUARD_RECORD))
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a table");
    return WEIR_OK;
}

/* In memory: not on a disk, where each page that is touched is written. */
static bool is_in_memory(const struct weir_table *table)
{
    struct statfs fs;

    return table->fd >= 0 && fstatfs(table->fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* Slots get huge pages, however the file system is mounted: else a key among millions waits twice,
 * for the entry of its page and for its line.  Linux makes a huge page out of small ones, even of a
 * single one; where it has none at hand the rest stay small. */
static void take_huge_pages(unsigned char *begin, const unsigned char *end)
{
    begin += -(uint64_t)(uintptr_t)begin % HUGE_PAGE;
    while (end - begin >= (ptrdiff_t)HUGE_PAGE && madvise(begin, 1, POPULATE_WRITE) == 0 &&
           madvise(begin, HUGE_PAGE, COLLAPSE) == 0)
        begin += HUGE_PAGE;
}

/* The pages of slots are filled with zeros now, for about 0.3 s a GB.  Else the first key that
 * comes to each of them would wait for it, longer than for all the rest of its decision. */
static void fill_pages(const struct weir_table *table, const struct weir__sizes *s)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = s->keys.rooms_at / page * page;

    madvise((unsigned char *)table->header + from, s->keys.slab_at - from, POPULATE_WRITE);
}

int weir__table_lay_out(struct weir_table *table, const struct weir_table_options *options,
                        struct weir_error *error)
{
    struct weir__sizes s = { 0 };
    int code = weir__sizes_choose(options, &s, error);

    if (code)
        return code;
    if (table->fd >= 0 &&
        (ftruncate(table->fd, 0) != 0 ||
         pwrite(table->fd, WEIR__MAKING, WEIR__MAGIC_SIZE, 0) != WEIR__MAGIC_SIZE ||
         ftruncate(table->fd, (off_t)s.keys.end) != 0))
        return weir__fail_errno(error, "cannot set the size of", options->path);
    if ((code = map_region(table, s.keys.end, error)))
        return code;
    bool in_memory = is_in_memory(table);
    if (in_memory) /* before it has small ones */
        take_huge_pages((unsigned char *)table->header + s.keys.slots_at,
                        (unsigned char *)table->header + s.keys.slab_at);
    if ((code = weir__space_get(table, &s, error)))
        return code;
    if (in_memory)
        fill_pages(table, &s);
    weir__table_set_clock(table->header);
    code = write_header(table->header, &s, error);
    if (code == WEIR_OK)
        code = settle_in(table, &s, error);
    if (code == WEIR_OK) {
        weir__groups_open(&table->bans, weir__line_slots(&table->bans));
        weir__groups_open(&table->keys, weir__line_slots(&table->keys));
    }
    return code;
}

/* Whether some process has ended without leaving, since the table was last put in order. */
static bool is_out_of_order(const struct weir_table *table)
{
    bool out = table->header->holders_lost != table->header->lost_then;

    for (size_t i = 0; i < WEIR__HOLDERS && !out; i++)
        out = table->holders[i].pid != 0;
    return out;
}

/* Nobody else is there: what others left is put in order, and permits that have a holder are
 * lost. */
static void put_in_order(struct weir_table *table)
{
    unsigned char boot[WEIR__BOOT_ID_SIZE];
    bool crashed = is_out_of_order(table),
         other_boot = weir__table_is_of_other_boot(table->header, boot);

    if (crashed || other_boot) {
        weir__hands_recover_all(table);
        weir__registry_rebuild(table);
        weir__slots_rebuild(&table->bans);
        weir__slots_rebuild(&table->keys);
        if (other_boot) { /* some pages may be older than others, even the holders' */
            weir__slots_empty_orphans(&table->keys);
            weir__held_rebuild(table);
            weir__bans_measure(table);
        }
        if (crashed && other_boot)
            weir__groups_open(&table->keys, 0);
        table->header->holders_lost++; /* so that guards look what the dead have left */
        memset(table->holders, 0, WEIR__HOLDERS * sizeof(*table->holders));
        table->header->lost_then = table->header->holders_lost;
    } else {
        weir__places_forget(table, 0); /* those without a place of their own are gone too */
    }
    weir__table_set_clock(table->header);
    weir__bans_settle(table);
}

/* Space is got while nobody else is there: without fallocate the C library writes for it. */
int weir__table_take_up(struct weir_table *table, const char *path, const struct stat *st,
                        bool alone, struct weir_error *error)
{
    struct weir__sizes s;
    uint64_t bytes = (uint64_t)st->st_size, has = (uint64_t)st->st_blocks * STAT_BLOCK;

    if (bytes < sizeof(struct weir__header))
        return weir__fail(error, WEIR_CORRUPT, "'%s' is too short to be a table", path);
    int code = map_region(table, bytes, error);
    if (code || (code = check_header(table->header, bytes, path, &s, error)) ||
        (code = settle_in(table, &s, error)) ||
        (alone && (code = weir__space_mend(table, &s, has, error))))
        return code;
    if (alone)
        put_in_order(table);
    return WEIR_OK;
}

struct weir__region weir__table_region(const struct weir_table *table)
{
    const unsigned char *first = (const unsigned char *)table->header;

    return (struct weir__region){ first, first + table->bytes };
}

/* ------------------------------------------------- create and attach ---- */

static struct weir_table *new_table(void)
{
    struct weir_table *table = calloc(1, sizeof(*table));

    if (table != NULL) {
        table->fd = -1;
        table->clock = (struct weir_clock){ .now = weir__table_present, .context = table };
        pthread_mutex_init(&table->mutex, NULL);
    }
    return table;
}

static void dispose(struct weir_table *table)
{
    if (table->guarding_end != NULL)
        table->guarding_end(table);
    weir__limiters_free(table);
    weir__records_unreserve(table, table->n_reserved);
    free(table->reserved);
    free(table->met);
    weir__names_close(&table->limiters);
    weir__names_close(&table->guards);
    if (table->me != NULL && table->holders != NULL)
        weir__holder_leave(table);
    if (table->me != NULL)
        munmap(table->me, WEIR__PAGE);
    if (table->header != NULL)
        munmap(table->header, table->bytes);
    if (table->fd >= 0)
        close(table->fd);
    pthread_mutex_destroy(&table->mutex);
    free(table);
}

static int finish_table(struct weir_table **out, struct weir_table *table, int code)
{
    if (code) {
        dispose(table);
        return code;
    }
    weir__table_note_time(table);
    weir__fork_watch(table);
    *out = table;
    return WEIR_OK;
}

int weir_table_create(struct weir_table **out, const struct weir_table_options *options,
                      struct weir_error *error)
{
    static const struct weir_table_options defaults;
    const struct weir_table_options *o = options ? options : &defaults;
    struct weir_table *table = new_table();

    if (table == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a table");
    return finish_table(out, table,
                        o->path ? weir__table_open_file(table, o->path, o, error)
                                : weir__table_lay_out(table, o, error));
}

int weir_table_attach(struct weir_table **out, const char *path, struct weir_error *error)
{
    struct weir_table *table = new_table();

    if (table == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a table");
    return finish_table(out, table, weir__table_open_file(table, path, NULL, error));
}

void weir_table_destroy(struct weir_table *table)
{
    if (table == NULL)
        return;
    weir__fork_forget(table);
    weir__table_note_time(table);
    dispose(table);
}

/* ------------------------------------------------------------- stats ---- */

static int64_t count_live(struct weir_table *table, weir_time now)
{
    int64_t live = 0;

    for (uint64_t i = 0; i < table->keys.groups * WEIR__GROUP_SLOTS; i++)
        live += weir__slot_live(&table->keys, i, now);
    return live;
}

void weir__table_figures(const struct weir_table *table, struct weir_table_stats *out)
{
    const struct weir__header *h = table->header;

    *out = (struct weir_table_stats){
        .slots = (int64_t)(table->keys.groups * WEIR__GROUP_SLOTS),
        .keys = __atomic_load_n(&h->keys, __ATOMIC_RELAXED),
        .slab = (int64_t)h->slab_bytes,
        .live = -1,
        .bytes = (int64_t)table->bytes,
        .evicted_idle = __atomic_load_n(&h->evicted_idle, __ATOMIC_RELAXED),
        .evicted_early = __atomic_load_n(&h->evicted_early, __ATOMIC_RELAXED),
        .recovered = __atomic_load_n(&h->recovered, __ATOMIC_RELAXED),
        .bans = -1,
        .bans_lost = __atomic_load_n(&h->bans_lost, __ATOMIC_RELAXED),
        .no_room = __atomic_load_n(&h->no_room, __ATOMIC_RELAXED),
        .no_disk = __atomic_load_n(&h->no_disk, __ATOMIC_RELAXED),
        .narrow = table->keys.narrow,
    };
}

void weir_table_stats(const struct weir_table *table, weir_time now, struct weir_table_stats *out)
{
    weir__table_figures(table, out);
    out->slab_used = (int64_t)weir__slab_stats(&table->keys.slab).bytes;
    out->limiters = weir__names_count(table, &table->limiters);
    out->guards = weir__names_count(table, &table->guards);
    if (now >= 0) {
        out->live = count_live((struct weir_table *)table, now);
        out->bans = weir__bans_in_force(table, now);
    }
}
