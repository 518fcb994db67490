/* zone.c -- what day it is where; the months; and finding zones by name, in a database of our
 * own. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <pthread.h>

#include "base/zone.h"

static const struct weir__zone *find(const char *name)
{
    const struct weir__zone *zone = NULL;
    struct weir_error error = { 0 };

    if (weir__zone_find(&zone, name, &error) != WEIR_OK)
        fail_msg("%s: %s", name, error.text);
    return zone;
}

static void expect_none(const char *name, const char *words)
{
    const struct weir__zone *untouched = (const struct weir__zone *)(const void *)name,
                            *zone = untouched;
    struct weir_error error = { .column = 77 };

    assert_true(weir__zone_find(&zone, name, &error) != WEIR_OK);
    assert_ptr_equal(zone, untouched);
    assert_contains(error.text, words);
    assert_int_equal(error.column, 0);
    assert_true(weir__zone_find(&zone, name, NULL) != WEIR_OK);
}

/* ------------------------------------------------------------ calendar ---- */

/* Day by day from 1900 to 2300, as one counts them. */
TEST(test_months)
{
    static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    int64_t day = -25567, month = -840; /* 1900-01-01 */

    for (int year = 1900; year < 2300; year++)
        for (int m = 0; m < 12; m++, month++) {
            bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            assert_int_equal(weir__month_start(month), day);
            for (int d = 0; d < lengths[m] + (m == 1 && leap); d++)
                assert_int_equal(weir__month_of(day++), month);
        }
    assert_int_equal(weir__month_start(0), 0);
    assert_int_equal(weir__month_start(30 * 12 + 2), 11017); /* 2000-03-01 */
}

TEST(test_floor_division)
{
    assert_int_equal(weir__floor_divide(7, 7), 1);
    assert_int_equal(weir__floor_divide(6, 7), 0);
    assert_int_equal(weir__floor_divide(0, 7), 0);
    assert_int_equal(weir__floor_divide(-1, 7), -1);
    assert_int_equal(weir__floor_divide(-7, 7), -1);
    assert_int_equal(weir__floor_divide(-8, 7), -2);
}

/* ---------------------------------------------------------------- days ---- */

TEST(test_days_of_utc)
{
    const struct weir__zone *z = find("");

    for (int64_t day = -3; day < 4; day++) {
        assert_int_equal(weir__zone_day_start(z, day), day * 86400);
        assert_int_equal(weir__zone_day_at(z, day * 86400), day);
        assert_int_equal(weir__zone_day_at(z, day * 86400 + 86399), day);
        assert_int_equal(weir__zone_rank(z, day), day);
        assert_int_equal(weir__zone_day_of_rank(z, day), day);
    }
}

TEST(test_days_of_places)
{
    static const struct {
        const char *name;
        int64_t day, start, hours;
    } rows[] = {
        { "Europe/Berlin", 20541, 1774738800, 23 }, /* 2026-03-29 */
        { "Europe/Berlin", 20542, 1774821600, 24 },
        { "Europe/Berlin", 20751, 1792879200, 25 },    /* 2026-10-25 */
        { "America/New_York", 20520, 1772946000, 23 }, /* 2026-03-08 */
        { "Asia/Kolkata", 20454, 1767205800, 24 },     /* 2026-01-01 */
        { "Pacific/Apia", 15337, 1325152800, 24 },     /* 2011-12-29 */
        { "Pacific/Apia", 15338, 1325239200, 0 },      /* there was no 30th */
        { "Pacific/Apia", 15339, 1325239200, 24 },
        { "Asia/Beirut", 18714, 1616882400, 23 }, /* 2021-03-28 has no midnight */
        { "Asia/Beirut", 18930, 1635541200, 25 }, /* 2021-10-30, and back from midnight to 23:00 */
        { "America/St_Johns", 14920, 1289097000,
          25 }, /* 2010-11-07 began, and a minute later it was the 6th again */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct weir__zone *z = find(rows[i].name);
        int64_t end = rows[i].start + rows[i].hours * 3600;
        print_message("%s %lld\n", rows[i].name, (long long)rows[i].day);
        assert_int_equal(weir__zone_day_start(z, rows[i].day), rows[i].start);
        assert_int_equal(weir__zone_day_start(z, rows[i].day + 1), end);
        if (rows[i].hours == 0)
            continue;
        assert_true(weir__zone_day_at(z, rows[i].start - 1) < rows[i].day);
        assert_int_equal(weir__zone_day_at(z, rows[i].start), rows[i].day);
        assert_int_equal(weir__zone_day_at(z, rows[i].start + 3600), rows[i].day);
        assert_int_equal(weir__zone_day_at(z, end - 1), rows[i].day);
    }
}

/* Every moment lies in one day; days follow each other; the ranks have no gaps. */
TEST(test_days_are_a_partition)
{
    static const char *const names[] = {
        "Pacific/Apia",     "America/St_Johns", "Africa/Monrovia",
        "Antarctica/Troll", "Asia/Beirut",      "Pacific/Kwajalein"
    };
    uint64_t seed = 7;

    for (int i = 0; i < 20000; i++) {
        const struct weir__zone *z = find(names[i % (int)COUNT_OF(names)]);
        int64_t time = (int64_t)(random64(&seed) % 9223372036), day = weir__zone_day_at(z, time),
                rank = weir__zone_rank(z, day);
        assert_true(weir__zone_day_start(z, day) <= time &&
                    time < weir__zone_day_start(z, day + 1));
        assert_int_equal(weir__zone_day_of_rank(z, rank), day);
        int64_t next = weir__zone_day_at(z, weir__zone_day_start(z, day + 1));
        assert_int_equal(weir__zone_rank(z, next), rank + 1);
    }
}

/* --------------------------------------------------------------- names ---- */

TEST(test_utc_needs_no_database)
{
    setenv("TZDIR", "/nonexistent", 1);
    assert_ptr_equal(find(""), find("UTC"));
    assert_ptr_equal(find("Etc/UTC"), find("UTC"));
    assert_string_equal(find("UTC")->name, "");
    expect_none("Europe/Madrid", "unknown time zone 'Europe/Madrid': there is no /nonexistent; "
                                 "install tzdata, set TZDIR, or use UTC");
    unsetenv("TZDIR");
}

TEST(test_a_zone_is_read_once)
{
    const struct weir__zone *berlin = find("Europe/Berlin");

    setenv("TZDIR", "/nonexistent", 1);
    assert_ptr_equal(find("Europe/Berlin"), berlin);
    assert_string_equal(berlin->name, "Europe/Berlin");
    unsetenv("TZDIR");
}

TEST(test_names_that_are_none)
{
    static const char *const names[] = { "..",
                                         "../x",
                                         "/etc/localtime",
                                         "Europe/../Europe/Berlin",
                                         "Europe//Berlin",
                                         "/",
                                         "Europe/",
                                         "zone.tab",
                                         "Eur ope/Berlin",
                                         "Europe/Berl\xc3\xadn",
                                         "a\nb",
                                         "Europe\\Berlin",
                                         "A23456789012345678901234567890123456789x" };

    for (size_t i = 0; i < COUNT_OF(names); i++)
        expect_none(names[i], "a time zone has a name as in Europe/Berlin: up to 39 letters");
}

TEST(test_the_nearest_name_is_told)
{
    expect_none("Europe/Berlim",
                "unknown time zone 'Europe/Berlim'; did you mean 'Europe/Berlin'?");
    expect_none("europe/berlin", "did you mean 'Europe/Berlin'?");
    expect_none("Berlin", "did you mean 'Europe/Berlin'?");
    expect_none("America/NewYork", "did you mean 'America/New_York'?");
    expect_none("America/Argentina/Buenos_Airs", "did you mean 'America/Argentina/Buenos_Aires'?");
    expect_none("Qqqq/Xxxxxx", "unknown time zone 'Qqqq/Xxxxxx'; names are as in Europe/Berlin");
    expect_none("Europe", "unknown time zone 'Europe'");
    expect_none("Europe/Berlin/Mitte", "unknown time zone 'Europe/Berlin/Mitte'");
}

/* ------------------------------------------- a database of our own ---- */

static const unsigned char plain[] = "TZif\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                     "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
                                     "\0\0\x0e\x10\0\0XYZ"; /* one hour east, always */

static void in_folder(const char *name, const void *bytes, size_t size)
{
    char path[320];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    write_at(path, 0, bytes, size);
}

TEST(test_TZDIR_is_asked)
{
    char path[320];

    setenv("TZDIR", folder, 1);
    in_folder("Plain", plain, sizeof(plain));
    in_folder("Cut", plain, sizeof(plain) - 1);
    in_folder("Empty", "", 0);
    assert_int_equal(weir__zone_day_start(find("Plain"), 1), 82800);
    expect_none("Plane", "did you mean 'Plain'?");
    expect_none("Cut", "time zone 'Cut': the time zone's file is cut short");
    expect_none("Empty", "time zone 'Empty': the time zone's file is not one");
    snprintf(path, sizeof(path), "%s/Pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_none("Pipe", "unknown time zone 'Pipe'"); /* and nobody waits for a writer */
    unsetenv("TZDIR");
}

/* Whoever asks for unknown zones has the directory read once, not with each ask. */
TEST(test_names_are_read_once)
{
    char path[320];

    setenv("TZDIR", folder, 1);
    in_folder("Plain", plain, sizeof(plain));
    expect_none("Plane", "did you mean 'Plain'?");
    snprintf(path, sizeof(path), "%s/Plain", folder);
    assert_int_equal(unlink(path), 0);
    in_folder("Planet", plain, sizeof(plain));
    expect_none("Plane", "did you mean 'Plain'?");
    assert_int_equal(weir__zone_day_start(find("Planet"), 1), 82800); /* found all the same */
    unsetenv("TZDIR");
    expect_none("Europe/Berlim", "did you mean 'Europe/Berlin'?"); /* another directory */
}

TEST(test_a_file_that_is_too_large)
{
    static char large[70000] = "TZif";

    setenv("TZDIR", folder, 1);
    in_folder("Large", large, sizeof(large));
    expect_none("Large", "is larger than any");
    unsetenv("TZDIR");
}

static void *find_many(void *out)
{
    static const char *const names[] = { "Europe/Paris", "Europe/Rome", "Asia/Tokyo",
                                         "Asia/Seoul" };
    const struct weir__zone **found = out;

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (weir__zone_find(&found[i], names[i], NULL) != WEIR_OK)
            found[i] = NULL;
    return NULL;
}

RACE(test_threads_find_the_same)
{
    const struct weir__zone *found[4][4];
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_many, found[i]), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++) {
            assert_non_null(found[i][j]);
            assert_ptr_equal(found[i][j], found[0][j]);
        }
}

GROUP(make_folder, remove_folder)
