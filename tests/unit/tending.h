/* tending.h -- shared by the tests of what comes and goes: time passes, and somebody looks. */
#ifndef WEIR_TESTS_UNIT_TENDING_H
#define WEIR_TESTS_UNIT_TENDING_H

#include "unit/fixture.h"

#define MINUTE (60 * S)

/* Looks every ten seconds, as a server does; returns the time afterwards. */
static inline weir_time tend(struct weir_table *table, weir_time from, weir_time span)
{
    for (weir_time now = from; now <= from + span; now += 10 * S)
        weir_table_tend(table, now);
    return from + span;
}

static inline bool has_limiter(struct weir_table *table, const char *name)
{
    struct weir_limiter_info info;

    for (int64_t at = 0; weir_limiter_next(table, &at, &info);)
        if (strcmp(info.name, name) == 0)
            return true;
    return false;
}

static inline int64_t disk_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (int64_t)st.st_blocks * 512;
}

#endif
