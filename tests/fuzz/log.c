/* log.c -- any bytes as a log: a line of either format, a map, a time, a whole file, plain or
 * packed.  The first byte chooses:
 *
 *     c combined line    j JSON line    m map, newline, JSON line    t time    else a file
 *
 * What must hold: entries are sound and point into their line or the scratch; no attribute comes
 * twice; what is refused says why and where, within the line; a file's lines are as many as its
 * newlines, and each entry of it is what its line alone gives.
 */
#include "fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "server/replay/log.h"

static bool same_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static void check_entry(const struct weir__log_entry *e)
{
    unsigned sum = 0;

    check(e->at >= 0 && e->at < INT64_C(9214646400) * WEIR_SECOND);
    check(e->n <= WEIR__LOG_ATTRS && e->status >= 0 && e->status <= 999 && e->bytes >= -1);
    for (size_t i = 0; i < e->n; i++) {
        const struct weir_attr *a = &e->attrs[i];
        check((a->name_len || a->name[0] == '\0') && (a->value_len || a->value[0] == '\0'));
        for (size_t k = 0; k < a->name_len; k++)
            sum += (unsigned char)a->name[k];
        for (size_t k = 0; k < a->value_len; k++)
            sum += (unsigned char)a->value[k];
        for (size_t k = 0; k < i; k++)
            check(!same_text(a->name, a->name_len, e->attrs[k].name, e->attrs[k].name_len));
    }
    __asm__ volatile("" : : "r"(sum)); /* every byte was read */
}

/* In memory of exactly its size. */
static void check_line(const char *bytes, size_t len, const struct weir__log_map *map)
{
    char *memory = malloc(len + 1), *scratch = malloc(WEIR__LOG_SCRATCH(len)), *line = memory + 1;
    struct weir__log_fault fault = { SIZE_MAX, NULL };
    struct weir__log_entry e;

    check(memory && scratch);
    memcpy(line, bytes, len);
    if (map ? weir__log_json(line, len, scratch, map, &e, &fault)
            : weir__log_combined(line, len, scratch, &e, &fault))
        check_entry(&e);
    else
        check(fault.at <= len && fault.expected && fault.expected[0]);
    free(scratch);
    free(memory);
}

static void check_map(const char *bytes, size_t len)
{
    const char *newline = memchr(bytes, '\n', len);
    size_t map_len = newline ? (size_t)(newline - bytes) : len;
    char *text = strndup(bytes, map_len);
    struct weir__log_map *map = NULL;
    struct weir_error error = { 0 };

    check(text);
    if (weir__log_map_create(&map, text, &error) == WEIR_OK)
        check_line(newline ? newline + 1 : "", newline ? len - map_len - 1 : 0, map);
    else
        check(map == NULL && error.text[0] && error.column >= 1 &&
              (size_t)error.column <= strlen(text) + 1);
    weir__log_map_destroy(map);
    free(text);
}

static void check_time(const char *bytes, size_t len)
{
    char *memory = malloc(len + 1);
    weir_time at = -42;

    check(memory);
    memcpy(memory + 1, bytes, len);
    bool good = weir__date_parse(memory + 1, len, &at);
    check(good ? at >= 0 && at < INT64_C(9214646400) * WEIR_SECOND : at == -42);
    free(memory);
}

static void check_file_entry(const struct weir__log_entry *e, const struct weir__log_map *map)
{
    char *scratch = malloc(WEIR__LOG_SCRATCH(e->text_len));
    struct weir__log_entry alone;
    struct weir__log_fault fault;

    check(scratch && e->text_len <= WEIR__LOG_LINE && !memchr(e->text, '\n', e->text_len));
    check_entry(e);
    bool json = weir__log_json(e->text, e->text_len, scratch, map, &alone, &fault);
    check(json || weir__log_combined(e->text, e->text_len, scratch, &alone, &fault));
    check(alone.at == e->at && alone.n == e->n && alone.bytes == e->bytes);
    free(scratch);
}

static void check_figures(const struct weir__log_figures *f, const char *bytes, size_t len,
                          int64_t entries, int code)
{
    int64_t newlines = 0;

    for (size_t i = 0; i < len; i++)
        newlines += bytes[i] == '\n';
    check(entries + f->bad <= f->lines && f->bytes_read <= f->bytes_all);
    check((f->bad > 0) == (f->first_bad > 0) && (f->bad > 0) == (f->first_bad_why[0] != '\0'));
    if (len < 2 || memcmp(bytes, "\x1f\x8b", 2) != 0)
        check(code == 0 && f->lines == newlines + (len > 0 && bytes[len - 1] != '\n') &&
              f->bytes_read == (int64_t)len);
}

static void check_file(const char *bytes, size_t len)
{
    static struct weir__log_entry e;
    struct weir__log_map *map;
    struct weir__log_figures f;
    struct weir__log *log;
    struct weir_error error = { 0 };
    int64_t entries = 0;
    char path[64];
    int fd = memfd_create("log", MFD_CLOEXEC), code;

    check(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    check(weir__log_map_create(&map, NULL, NULL) == WEIR_OK);
    check(weir__log_open(&log, path, "auto", NULL, &error) == WEIR_OK);
    for (; (code = weir__log_next(log, &e, &error)) > 0; entries++)
        check_file_entry(&e, map);
    check(code == 0 || error.text[0]);
    weir__log_figures(log, &f);
    check_figures(&f, bytes, len, entries, code);
    weir__log_close(log);
    weir__log_map_destroy(map);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir__log_map *map; /* one for all lines: making it costs more than they do */
    const char *bytes = (const char *)data + 1;

    if (map == NULL)
        check(weir__log_map_create(&map, NULL, NULL) == WEIR_OK);
    switch (size > 0 ? data[0] : 0) {
    case 'c':
        check_line(bytes, size - 1, NULL);
        break;
    case 'j':
        check_line(bytes, size - 1, map);
        break;
    case 'm':
        check_map(bytes, size - 1);
        break;
    case 't':
        check_time(bytes, size - 1);
        break;
    default:
        check_file(size > 0 ? (const char *)data : "", size);
    }
    return 0;
}
