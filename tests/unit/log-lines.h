/* log-lines.h -- shared by the tests of access logs: a good line and its time, and lines read by
 * themselves.
 *
 * Lines lie in memory of exactly their size: reading beyond the end is seen by the sanitizers.
 */
#ifndef WEIR_TESTS_UNIT_LOG_LINES_H
#define WEIR_TESTS_UNIT_LOG_LINES_H

#include "fixture.h"

#include "server/replay/log.h"

#define OCT  INT64_C(971211336) /* 10/Oct/2000:13:55:36 -0700 */
#define HEAD "192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "
#define GOOD HEAD "\"GET /x HTTP/1.0\" 200 2326"

static struct weir__log_entry entry;

/* "name=value|name=value"; control characters as dots. */
static inline const char *shown(const struct weir__log_entry *e)
{
    static char text[8192];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < e->n; i++) {
        const struct weir_attr *a = &e->attrs[i];
        size_t name_len = a->name_len ? a->name_len : strlen(a->name),
               value_len = a->value_len ? a->value_len : strlen(a->value);
        assert_true(n + name_len + value_len + 3 < sizeof(text));
        n += (size_t)sprintf(text + n, "%s%.*s=", i ? "|" : "", (int)name_len, a->name);
        for (size_t k = 0; k < value_len; k++)
            text[n++] = (unsigned char)a->value[k] < 0x20 ? '.' : a->value[k];
        text[n] = '\0';
    }
    return text;
}

/* In memory of its size.  The entry points into it until the next call. */
static inline bool read_line(const char *line, size_t len, const struct weir__log_map *map,
                             struct weir__log_fault *fault)
{
    static char *memory, *scratch;

    free(memory);
    free(scratch);
    memory = malloc(len + 1);
    scratch = malloc(WEIR__LOG_SCRATCH(len));
    memcpy(memory + 1, line, len);
    return map ? weir__log_json(memory + 1, len, scratch, map, &entry, fault)
               : weir__log_combined(memory + 1, len, scratch, &entry, fault);
}

static inline void assert_line(const char *line, size_t len, const struct weir__log_map *map,
                               const char *attributes)
{
    struct weir__log_fault fault = { 0 };

    if (!read_line(line, len, map, &fault))
        fail_msg("%s: at %zu expected %s", line, fault.at, fault.expected);
    assert_string_equal(shown(&entry), attributes);
}

#endif
