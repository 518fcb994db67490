/* log.c -- access logs: the file behind, and its lines.
 *
 * One block of memory for the whole log.  It is filled by read or inflate, lines are found in it by
 * memchr and parsed where they lie; the beginning of a line at the block's end moves to its front
 * before the next filling.
 *
 * A failure in the middle (a disk, a gzip file that was cut) is kept until the whole lines before
 * it have been given out.  The piece of a line before it is not: it could read well and be wrong.
 */
#include "server/replay/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"

enum { BLOCK = 256 * 1024, PACKED = 64 * 1024 };

enum format { AUTO, COMBINED, JSON };

struct weir__log {
    int fd;
    enum format format;
    struct weir__log_map *map;
    struct weir__log_figures figures;
    const char *path; /* for errors; behind the struct */
    char *at, *end;   /* of `block`: not given out yet */
    size_t scanned;   /* from `at` on, known to hold no newline */
    bool started, ended, skipping;
    int failure; /* a negative code: reading ended with it */
    char failure_text[sizeof((struct weir_error *)0)->text];
    bool packed, inside; /* gzip; in the middle of a member */
    z_stream z;
    unsigned char input[PACKED]; /* of inflate */
    char block[BLOCK];
    char scratch[WEIR__LOG_SCRATCH(WEIR__LOG_LINE)];
};

/* Lines that end in the block are given out before it is filled again: then it has room. */
_Static_assert(BLOCK > 2 * WEIR__LOG_LINE, "a whole line must fit, and more");

/* ------------------------------------------------------------------ filling ---- */

static void fail(struct weir__log *log, enum weir_code code, const char *what)
{
    log->failure = code;
    log->ended = true;
    snprintf(log->failure_text, sizeof(log->failure_text), "'%.120s' %s", log->path, what);
}

/* 0 at the end, and when it failed. */
static size_t read_raw(struct weir__log *log, void *out, size_t room)
{
    ssize_t n;
    char text[120];

    do
        n = read(log->fd, out, room);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        snprintf(text, sizeof(text), "cannot be read: %s", strerror(errno));
        fail(log, WEIR_SYSTEM, text);
        return 0;
    }
    log->figures.bytes_read += n;
    return (size_t)n;
}

/* Between members: the file may end, go on with another, or be filled up with zeros as tapes do. */
static void next_member(struct weir__log *log)
{
    while (log->z.avail_in > 0 && *log->z.next_in == 0) {
        log->z.avail_in--;
        log->z.next_in++;
    }
    if (log->z.avail_in == 0)
        return;
    if (*log->z.next_in != 0x1f) {
        fail(log, WEIR_CORRUPT, "has bytes after its gzip data that are not gzip");
        return;
    }
    inflateReset(&log->z);
    log->inside = true;
}

/* More input, or the end of it: false. */
static bool more_input(struct weir__log *log)
{
    log->z.next_in = log->input;
    log->z.avail_in = (uInt)read_raw(log, log->input, sizeof(log->input));
    if (log->z.avail_in > 0)
        return true;
    if (log->inside && !log->failure)
        fail(log, WEIR_CORRUPT, "ends in the middle of its gzip data: it was cut");
    log->ended = true;
    return false;
}

static size_t read_packed(struct weir__log *log, void *out, size_t room)
{
    log->z.next_out = out;
    log->z.avail_out = (uInt)room;
    while (log->z.avail_out == room && !log->ended) {
        if (log->z.avail_in == 0 && !more_input(log))
            break;
        if (!log->inside) {
            next_member(log);
            continue;
        }
        int code = inflate(&log->z, Z_NO_FLUSH);
        if (code == Z_STREAM_END)
            log->inside = false;
        else if (code != Z_OK && code != Z_BUF_ERROR)
            fail(log, code == Z_MEM_ERROR ? WEIR_NO_MEMORY : WEIR_CORRUPT,
                 "has gzip data that is damaged");
    }
    return room - log->z.avail_out;
}

/* The first two bytes say whether it is gzip.  So much is read that it fits into the block and, if
 * it is packed, into the input. */
static void start(struct weir__log *log)
{
    size_t have = 0, n = 1;

    log->started = true;
    while (have < 2 && (n = read_raw(log, log->block + have, PACKED - have)) > 0)
        have += n;
    log->ended = n == 0;
    log->packed = have >= 2 && memcmp(log->block, "\x1f\x8b", 2) == 0;
    if (!log->packed) {
        log->end += have;
        return;
    }
    if (inflateInit2(&log->z, 15 + 16) != Z_OK) {
        log->packed = false;
        fail(log, WEIR_NO_MEMORY, "cannot be unpacked: no memory left");
        return;
    }
    log->inside = true;
    log->z.avail_in = (uInt)have;
    log->z.next_in = memcpy(log->input, log->block, have);
}

/* More into the block; the end is `ended`. */
static void refill(struct weir__log *log)
{
    size_t left = (size_t)(log->end - log->at);

    if (!log->started) {
        start(log);
        return;
    }
    memmove(log->block, log->at, left);
    log->at = log->block;
    log->end = log->block + left;
    size_t room = BLOCK - left;
    size_t n = log->packed ? read_packed(log, log->end, room) : read_raw(log, log->end, room);
    log->end += n;
    log->ended = log->ended || (n == 0 && !log->packed);
}

/* -------------------------------------------------------------------- lines ---- */

static void note_bad(struct weir__log *log, const struct weir__log_fault *fault)
{
    struct weir__log_figures *f = &log->figures;

    if (f->bad++ > 0)
        return;
    f->first_bad = f->lines;
    snprintf(f->first_bad_why, sizeof(f->first_bad_why), "column %zu: expected %s", fault->at + 1,
             fault->expected);
}

static void note_long(struct weir__log *log)
{
    note_bad(log, &(struct weir__log_fault){ WEIR__LOG_LINE,
                                             "the end of the line: it may have 65536 bytes" });
}

_Static_assert(WEIR__LOG_LINE == 65536, "an error message says so");

/* The end of the next line, or NULL: there is none any more.  A line that is too long is dropped
 * piece by piece, and its newline comes as an empty line. */
static char *find_end(struct weir__log *log)
{
    for (;;) {
        char *from = log->at + log->scanned,
             *newline = memchr(from, '\n', (size_t)(log->end - from));
        if (newline != NULL)
            return newline;
        log->scanned = (size_t)(log->end - log->at);
        if (log->scanned > WEIR__LOG_LINE + 1) {
            log->skipping = true;
            log->at = log->end;
            log->scanned = 0;
        }
        if (log->ended)
            return log->failure || (log->at == log->end && !log->skipping) ? NULL : log->end;
        refill(log);
    }
}

/* The next line, without its newline; false at the end. */
static bool next_line(struct weir__log *log, char **line, size_t *len)
{
    char *end = find_end(log);

    if (end == NULL)
        return false;
    *line = log->at;
    *len = (size_t)(end - log->at);
    log->at = end < log->end ? end + 1 : end;
    log->scanned = 0;
    log->figures.lines++;
    if (*len > 0 && end[-1] == '\r')
        --*len;
    if (log->skipping || *len > WEIR__LOG_LINE) {
        note_long(log);
        *len = 0;
    }
    log->skipping = false;
    return true;
}

static bool is_blank(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] != ' ' && line[i] != '\t')
            return false;
    return true;
}

static enum format detect(const char *line, size_t len)
{
    size_t i = 0;

    while (i < len && (line[i] == ' ' || line[i] == '\t'))
        i++;
    return i < len && line[i] == '{' ? JSON : COMBINED;
}

/* False, and the log ends: it is combined, and the map names fields that such logs lack. */
static bool fits_map(struct weir__log *log)
{
    char why[120]; /* an error has room for a path and this */

    if (log->format != COMBINED || weir__log_map_misfit(log->map, why, sizeof(why)) == NULL)
        return true;
    fail(log, WEIR_INVALID, why);
    log->at = log->end;
    return false;
}

static bool parse(struct weir__log *log, const char *line, size_t len,
                  struct weir__log_entry *entry)
{
    struct weir__log_fault fault = { 0 };

    if (log->format == AUTO) {
        log->format = detect(line, len);
        if (!fits_map(log))
            return false;
    }
    bool good = log->format == JSON
                    ? weir__log_json(line, len, log->scratch, log->map, entry, &fault)
                    : weir__log_combined(line, len, log->scratch, entry, &fault);
    if (good && log->format == COMBINED)
        weir__log_map_rename(log->map, entry);
    if (!good)
        note_bad(log, &fault);
    entry->line = log->figures.lines;
    entry->text = line;
    entry->text_len = len;
    return good;
}

int weir__log_next(struct weir__log *log, struct weir__log_entry *entry, struct weir_error *error)
{
    char *line;
    size_t len;

    while (next_line(log, &line, &len))
        if (!is_blank(line, len) && parse(log, line, len, entry))
            return 1;
    return log->failure ? weir__fail(error, log->failure, "%s", log->failure_text) : 0;
}

void weir__log_figures(const struct weir__log *log, struct weir__log_figures *out)
{
    *out = log->figures;
}

/* -------------------------------------------------------------------- opening ---- */

static int open_file(struct weir__log *log, const char *path, struct weir_error *error)
{
    struct stat st;
    bool is_stdin = strcmp(path, "-") == 0;

    log->path = is_stdin ? "stdin" : path;
    log->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    if (log->fd < 0 || fstat(log->fd, &st) != 0)
        return weir__fail_errno(error, "cannot open log", log->path);
    if (S_ISDIR(st.st_mode))
        return weir__fail(error, WEIR_INVALID, "'%s' is a directory; name the logs in it",
                          log->path);
    log->figures.bytes_all = S_ISREG(st.st_mode) ? st.st_size : -1;
    return WEIR_OK;
}

static int read_format(const char *name, enum format *out, struct weir_error *error)
{
    static const char *const names[] = { "auto", "combined", "json" };
    size_t i = 0;

    while (i < 3 && strcmp(name, names[i]) != 0)
        i++;
    if (i == 3)
        return weir__fail(error, WEIR_INVALID,
                          "'%s' is not a log format; there are auto, combined and json", name);
    *out = (enum format)i;
    return WEIR_OK;
}

/* On failure too, close frees it. */
static int open_log(struct weir__log *log, const char *path, const char *format, const char *map,
                    struct weir_error *error)
{
    int code = read_format(format, &log->format, error);

    if (code == WEIR_OK)
        code = weir__log_map_create(&log->map, map, error);
    if (code == WEIR_OK)
        code = open_file(log, path, error);
    return code == WEIR_OK && !fits_map(log)
               ? weir__fail(error, log->failure, "%s", log->failure_text)
               : code;
}

int weir__log_open(struct weir__log **out, const char *path, const char *format, const char *map,
                   struct weir_error *error)
{
    size_t size = strlen(path) + 1;
    struct weir__log *log = malloc(sizeof(*log) + size);

    if (log == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory left for a log");
    memset(log, 0,
           offsetof(struct weir__log,
                    input)); /* the buffers need not be touched before they are used */
    log->fd = -1;
    log->at = log->end = log->block;
    int code = open_log(log, memcpy(log + 1, path, size), format, map, error);
    if (code != WEIR_OK) {
        weir__log_close(log);
        return code;
    }
    *out = log;
    return WEIR_OK;
}

void weir__log_close(struct weir__log *log)
{
    if (log == NULL)
        return;
    if (log->packed)
        inflateEnd(&log->z);
    if (log->fd >= 0)
        close(log->fd);
    weir__log_map_destroy(log->map);
    free(log);
}
