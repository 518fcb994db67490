/* zone.c -- which day it is in a zone; the zones that were read.
 *
 * Zones that were read stay in a list for the life of the process: plans are plain memory that is
 * copied and freed, and a zone that one of them points to must not go.  There are a few hundred
 * names.  The list, and the names once one was unknown, are the library's only global variables.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/zone.h"

#define DIRECTORY "/usr/share/zoneinfo"
#define DAY       WEIR__SECONDS_IN_A_DAY
#define NAMES_MAX 5120 /* there are some 600 */

/* ---------------------------------------------------------- the calendar ---- */

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Leap years from year 1 to this one. */
static int64_t leaps(int64_t year)
{
    return weir__floor_divide(year, 4) - weir__floor_divide(year, 100) +
           weir__floor_divide(year, 400);
}

int64_t weir__month_start(int64_t month)
{
    static const int16_t before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    int64_t year = 1970 + weir__floor_divide(month, 12), in_year = month - (year - 1970) * 12;

    return (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + before[in_year] +
           (in_year >= 2 && is_leap(year));
}

/* 4800 months have 146097 days: a guess that is off by one month at most. */
int64_t weir__month_of(int64_t day)
{
    int64_t month = weir__floor_divide(day * 4800, 146097);

    while (weir__month_start(month) > day)
        month--;
    while (weir__month_start(month + 1) <= day)
        month++;
    return month;
}

/* ----------------------------------------------------------- looking up ---- */

/* Number of changes up to then. */
static size_t changes_by(const struct weir__zone *z, int64_t time)
{
    size_t low = 0, high = z->changes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (z->change[middle].at <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t offset_after(const struct weir__zone *z, size_t changes)
{
    return changes == 0 ? z->offset : z->change[changes - 1].offset;
}

/* Goes through the stretches of equal offset, from one in which the day cannot have begun, to the
 * first in which it begins. */
int64_t weir__zone_day_start(const struct weir__zone *z, int64_t day)
{
    int64_t midnight = day * DAY;

    for (size_t i = changes_by(z, midnight - WEIR__ZONE_OFFSET_MAX);; i++) {
        int64_t start = midnight - offset_after(z, i);
        if (i > 0 && start < z->change[i - 1].at)
            start = z->change[i - 1].at;
        if (i == z->changes || start < z->change[i].at)
            return start;
    }
}

int64_t weir__zone_day_at(const struct weir__zone *z, int64_t time)
{
    int64_t day = weir__floor_divide(time + offset_after(z, changes_by(z, time)), DAY);

    while (weir__zone_day_start(z, day + 1) <=
           time) /* the clocks went back over midnight, at most two days ago */
        day++;
    return day;
}

int64_t weir__zone_rank(const struct weir__zone *z, int64_t day)
{
    int64_t rank = day;

    for (size_t i = 0; i < z->skips; i++)
        rank -= z->skipped[i] < day;
    return rank;
}

int64_t weir__zone_day_of_rank(const struct weir__zone *z, int64_t rank)
{
    int64_t day = rank;

    for (size_t i = 0; i < z->skips; i++)
        day += z->skipped[i] <= day;
    return day;
}

/* ------------------------------------------------------------ the names ---- */

static bool is_name_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-';
}

/* No dots: no name leads out of the database, and none of its tables is taken for a zone. */
static bool is_name(const char *name)
{
    size_t length = strnlen(name, WEIR__ZONE_NAME_SIZE);

    if (length == 0 || length == WEIR__ZONE_NAME_SIZE)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool slash = name[i] == '/' && i > 0 && name[i - 1] != '/' && i + 1 < length;
        if (!slash && !is_name_letter(name[i]))
            return false;
    }
    return true;
}

static const char *directory(void)
{
    const char *wanted = secure_getenv("TZDIR");

    return wanted && *wanted ? wanted : DIRECTORY;
}

/* The names in the directory, for the one that was meant.  They are read once, with zones_mutex
 * held: a client that asks for unknown zones must not have us read directories again and again. */
struct names {
    char directory[512]; /* that they are of; "": none was read */
    size_t count, room;
    char (*names)[WEIR__ZONE_NAME_SIZE];
};
static struct names known;

/* False: no memory, or a strange directory, which must not hold us up. */
static bool remember_name(const char *name)
{
    if (known.count == known.room) {
        size_t room = known.room ? 2 * known.room : 640;
        void *names = room <= NAMES_MAX ? realloc(known.names, room * sizeof(*known.names)) : NULL;
        if (names == NULL)
            return false;
        known.names = names;
        known.room = room;
    }
    memcpy(known.names[known.count++], name, strlen(name) + 1);
    return true;
}

/* The name of an entry; false: not of a zone.  Zones begin with a capital (posix and right repeat
 * them all). */
static bool join_name(char out[WEIR__ZONE_NAME_SIZE], const char *folder, const char *entry)
{
    int length = snprintf(out, WEIR__ZONE_NAME_SIZE, "%s%s%s", folder, *folder ? "/" : "", entry);

    return length < WEIR__ZONE_NAME_SIZE && is_name(out) && out[0] >= 'A' && out[0] <= 'Z';
}

static void read_names(const char *folder, int depth, int *left)
{
    char path[sizeof(known.directory) + WEIR__ZONE_NAME_SIZE + 1], name[WEIR__ZONE_NAME_SIZE];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", known.directory, folder);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && *left > 0 && (e = readdir(dir)) != NULL; --*left) {
        if (!join_name(name, folder, e->d_name))
            continue;
        snprintf(path, sizeof(path), "%s/%s", known.directory, name);
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            *left = remember_name(name) ? *left : 0;
        else if (depth > 0)
            read_names(name, depth - 1, left);
    }
    if (dir)
        closedir(dir);
}

static void know_names(const char *root)
{
    int left = NAMES_MAX;

    if (strcmp(known.directory, root) == 0)
        return;
    known.count = 0;
    snprintf(known.directory, sizeof(known.directory), "%s", root);
    read_names("", 2, &left);
}

static uint32_t letters_of(const char *word)
{
    uint32_t letters = 0;

    for (; *word; word++)
        letters |= (uint32_t)1 << (*word & 31); /* capitals and small ones alike */
    return letters;
}

/* Each letter that only one of them has takes an edit; cheaper than to count the edits. */
static unsigned edits_at_least(const char *a, const char *b)
{
    uint32_t in_a = letters_of(a), in_b = letters_of(b);
    int more = __builtin_popcount(in_a & ~in_b), less = __builtin_popcount(in_b & ~in_a);

    return (unsigned)(more > less ? more : less);
}

/* "Berlin" for Europe/Berlin counts as one slip. */
static unsigned slips_between(const char *word, const char *name, unsigned most)
{
    const char *last = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;

    if (last != name && edits_at_least(word, last) == 0 &&
        weir__edits(word, strlen(word), last, strlen(last)) == 0)
        return 1;
    if (edits_at_least(word, name) >= most)
        return most;
    return weir__edits(word, strlen(word), name, strlen(name));
}

/* The nearest of the known names; NULL: none is near. */
static const char *nearest_name(const char *word)
{
    unsigned best = 2 + (unsigned)strlen(word) / 4;
    const char *nearest = NULL;

    for (size_t i = 0; i < known.count; i++) {
        unsigned slips = slips_between(word, known.names[i], best);
        if (slips < best) {
            best = slips;
            nearest = known.names[i];
        }
    }
    return nearest;
}

static int fail_unknown(const char *name, struct weir_error *error)
{
    struct stat st;

    if (error == NULL)
        return WEIR_INVALID;
    if (stat(directory(), &st) != 0)
        return weir__fail(
            error, WEIR_INVALID,
            "unknown time zone '%s': there is no %.80s; install tzdata, set TZDIR, or use UTC",
            name, directory());
    know_names(directory());
    const char *nearest = nearest_name(name);
    if (nearest != NULL)
        return weir__fail(error, WEIR_INVALID, "unknown time zone '%s'; did you mean '%s'?", name,
                          nearest);
    return weir__fail(error, WEIR_INVALID,
                      "unknown time zone '%s'; names are as in Europe/Berlin, see %.80s", name,
                      directory());
}

/* ------------------------------------------------------------- the list ---- */

/* At most one byte more than a zone may have. */
static int read_bytes(int file, unsigned char *bytes, size_t *size)
{
    ssize_t got = 1;

    while (got > 0 && *size <= WEIR__ZONE_BYTES_MAX) {
        got = read(file, bytes + *size, WEIR__ZONE_BYTES_MAX + 1 - *size);
        *size += got > 0 ? (size_t)got : 0;
    }
    return got < 0 ? -1 : 0;
}

static int read_file(const char *name, unsigned char *bytes, size_t *size, struct weir_error *error)
{
    char path[512];
    struct stat st;

    if (snprintf(path, sizeof(path), "%s/%s", directory(), name) >= (int)sizeof(path))
        return weir__fail(error, WEIR_INVALID, "TZDIR is too long");
    /* It may be a pipe: do not wait for it. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = WEIR_OK;
    if (file < 0)
        return errno == ENOENT || errno == ENOTDIR ? fail_unknown(name, error)
                                                   : weir__fail_errno(error, "cannot open", path);
    if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode)) /* Europe, say */
        code = fail_unknown(name, error);
    else if (read_bytes(file, bytes, size) != 0)
        code = weir__fail_errno(error, "cannot read", path);
    close(file);
    return code;
}

static int load_zone(struct weir__zone **out, const char *name, struct weir_error *error)
{
    struct weir__zone *zone = NULL;
    struct weir_error why;
    unsigned char *bytes = malloc(WEIR__ZONE_BYTES_MAX + 1);
    size_t size = 0;

    if (bytes == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a time zone");
    int code = read_file(name, bytes, &size, error);
    if (code == WEIR_OK) {
        code = weir__zone_parse(&zone, bytes, size, &why);
        if (code != WEIR_OK)
            weir__fail(error, code, "time zone '%s': %s", name, why.text);
    }
    free(bytes);
    if (code != WEIR_OK)
        return code;
    memcpy(zone->name, name, strlen(name) + 1);
    *out = zone;
    return WEIR_OK;
}

static const struct weir__zone utc = { .name = "" };
static struct weir__zone *zones; /* read so far; they stay */
static pthread_mutex_t zones_mutex = PTHREAD_MUTEX_INITIALIZER;

static int find_or_load(const struct weir__zone **out, const char *name, struct weir_error *error)
{
    struct weir__zone *zone = zones;

    while (zone != NULL && strcmp(zone->name, name) != 0)
        zone = zone->next;
    if (zone == NULL) {
        int code = load_zone(&zone, name, error);
        if (code != WEIR_OK)
            return code;
        zone->next = zones;
        zones = zone;
    }
    *out = zone;
    return WEIR_OK;
}

static bool is_utc(const char *name)
{
    return name[0] == '\0' || strcmp(name, "UTC") == 0 || strcmp(name, "Etc/UTC") == 0;
}

int weir__zone_find(const struct weir__zone **out, const char *name, struct weir_error *error)
{
    if (strnlen(name, WEIR__ZONE_NAME_SIZE) < WEIR__ZONE_NAME_SIZE && is_utc(name)) {
        *out = &utc;
        return WEIR_OK;
    }
    if (!is_name(name))
        return weir__fail(error, WEIR_INVALID,
                          "a time zone has a name as in Europe/Berlin: up to %d letters, digits, "
                          "_, + and -, and / between",
                          WEIR__ZONE_NAME_SIZE - 1);
    pthread_mutex_lock(&zones_mutex);
    int code = find_or_load(out, name, error);
    pthread_mutex_unlock(&zones_mutex);
    return code;
}
