/* table-clock.c -- a table's time: the monotonic clock, and what to add to it. */
#include <string.h>

#include "table/table.h"

#define REAL_EVERY WEIR_SECOND        /* the real clock is looked at this often */
#define REAL_NEAR  (WEIR_SECOND / 10) /* differs by no more: it has not stepped */
#define REAL_TRIES 3

/* What to add to the monotonic clock so that the table's time is the real one, but never runs
 * behind what the table has seen. */
weir_time weir__table_clock_offset(weir_time latest, weir_time real, weir_time monotonic)
{
    return (real > latest ? real : latest) - monotonic;
}

bool weir__table_is_of_other_boot(const struct weir__header *h,
                                  unsigned char boot[WEIR__BOOT_ID_SIZE])
{
    weir__clock_boot_id(boot);
    return memcmp(boot, h->boot_id, WEIR__BOOT_ID_SIZE) != 0;
}

void weir__table_set_clock(struct weir__header *h)
{
    unsigned char boot[WEIR__BOOT_ID_SIZE];

    if (weir__table_is_of_other_boot(h, boot) || h->clock_latest == 0) {
        weir_time latest = h->clock_latest < 0 ? 0 : h->clock_latest;
        h->clock_offset =
            weir__table_clock_offset(latest, weir__clock_real(), weir__clock_monotonic());
        memcpy(h->boot_id, boot, sizeof(boot));
    }
}

static weir_time time_at(const struct weir_table *table, weir_time monotonic)
{
    weir_time now = (weir_time)((uint64_t)monotonic + (uint64_t)table->header->clock_offset);

    return now < 0 ? 0 : now;
}

/* Without a step of the real clock the difference stays as it is; a small one is the time between
 * two readings. */
bool weir__table_follow(const struct weir_table *table, weir_time real, weir_time before,
                        weir_time after)
{
    struct weir__header *h = table->header;
    int64_t ahead = real - time_at(table, before),
            known = __atomic_load_n(&h->real_ahead, __ATOMIC_RELAXED);

    if (after - before > REAL_NEAR)
        return false;
    __atomic_store_n(&h->real_at, before, __ATOMIC_RELAXED);
    if ((uint64_t)ahead - (uint64_t)known + REAL_NEAR > 2 * (uint64_t)REAL_NEAR)
        __atomic_store_n(&h->real_ahead, ahead, __ATOMIC_RELAXED);
    return true;
}

/* In vain again and again: somebody else looks soon. */
static __attribute__((noinline)) void look_at_real(const struct weir_table *table)
{
    for (int tries = 0; tries < REAL_TRIES; tries++) {
        weir_time before = weir__clock_monotonic(), real = weir__clock_real();
        if (weir__table_follow(table, real, before, weir__clock_monotonic()))
            return;
    }
}

weir_time weir_table_now(const struct weir_table *table)
{
    weir_time monotonic = weir__clock_monotonic();
    uint64_t since =
        (uint64_t)monotonic - (uint64_t)__atomic_load_n(&table->header->real_at, __ATOMIC_RELAXED);

    if (__builtin_expect(since >= REAL_EVERY, 0))
        look_at_real(table);
    return time_at(table, monotonic);
}

weir_time weir_table_real(const struct weir_table *table, weir_time at)
{
    return weir__real_at(at, __atomic_load_n(&table->header->real_ahead, __ATOMIC_RELAXED));
}

void weir__table_note_time(struct weir_table *table)
{
    __atomic_store_n(&table->header->clock_latest, time_at(table, weir__clock_monotonic()),
                     __ATOMIC_RELAXED);
}

weir_time weir__table_present(void *context)
{
    return time_at(context, weir__clock_monotonic());
}

static weir_time clock_now(void *context)
{
    return weir_table_now(context);
}

static void clock_sleep(void *context, weir_time span)
{
    (void)context;
    weir__clock_sleep(span);
}

struct weir_clock weir_table_clock(struct weir_table *table)
{
    return (struct weir_clock){ .now = clock_now, .sleep = clock_sleep, .context = table };
}
