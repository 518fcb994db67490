/* list-file.c -- files that rules name, lists above all: one entry per line, # begins a comment at
 * the start of a line or after a space. */
#include "rulefile/read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MAX   ((size_t)64 << 20)
#define ENTRIES_MAX 10000000
#define SAID_MAX    10 /* problems reported per file */

/* Relative to the rule file's folder, unless the name begins with a slash; NULL: no memory. */
static char *find_path(const char *rules, const char *name)
{
    const char *slash = rules && *name != '/' ? strrchr(rules, '/') : NULL;
    size_t folder = slash ? (size_t)(slash - rules) + 1 : 0;
    char *path = malloc(folder + strlen(name) + 1);

    if (path) {
        memcpy(path, rules ? rules : "", folder);
        strcpy(path + folder, name);
    }
    return path;
}

#define OPENING \
    (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) /* not waiting: it might be a pipe \
                                                    */

/* The rule file's folder.  Links in its path are followed: the operator made them. */
static int open_folder(const char *rules)
{
    char *folder = find_path(rules, ".");
    int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    free(folder);
    return fd;
}

/* Part by part from there, because a link anywhere in the name could lead out. */
static int open_near(const char *rules, const char *name)
{
    char part[256]; /* no name is longer */
    int at = open_folder(rules);

    while (at >= 0) {
        size_t len = strcspn(name, "/");
        const char *next = name + len + strspn(name + len, "/");
        bool last = *next == '\0';
        int inside = -1;
        if (len < sizeof(part)) {
            memcpy(part, name, len);
            part[len] = '\0';
            inside =
                openat(at, part, (last ? OPENING : O_PATH | O_DIRECTORY | O_CLOEXEC) | O_NOFOLLOW);
        } else {
            errno = ENAMETOOLONG;
        }
        int why = errno;
        close(at);
        errno = why;
        at = inside;
        name = next;
        if (last)
            break;
    }
    return at;
}

static int open_file(const char *rules, const char *name, bool near)
{
    char *path = near ? NULL : find_path(rules, name);
    int fd = near ? open_near(rules, name) : path ? open(path, OPENING) : -1;

    free(path);
    return fd;
}

static void tell_path(const struct weir_rules_options *o, const char *name)
{
    char *path = o->file ? find_path(o->name, name) : NULL;

    if (path)
        o->file(o->context, path);
    free(path);
}

static char *read_named(const char *rules, const char *name, bool near, size_t most, size_t *len,
                        const char **why)
{
    int fd = open_file(rules, name, near);
    struct stat st;

    if (fd < 0) {
        *why = strerror(errno);
        return NULL;
    }
    char *text = NULL;
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        *why = "it is not a regular file";
    else if ((text = weir__file_read_all(fd, most, len)) == NULL)
        *why = errno != EFBIG      ? strerror(errno)
               : most == BYTES_MAX ? "it is too large; the most is 64 MiB"
                                   : "it is too large; the most is 64 KiB";
    close(fd);
    return text;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The entry of a line: without the comment and the spaces around it. */
static void trim(const char **begin, const char **end)
{
    for (const char *c = *begin; c < *end; c++) {
        if (*c == '#' && (c == *begin || is_space(c[-1])))
            *end = c;
    }
    while (*begin < *end && is_space(**begin))
        (*begin)++;
    while (*begin < *end && is_space((*end)[-1]))
        (*end)--;
}

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 1;

    for (const char *p = text; (p = memchr(p, '\n', len - (size_t)(p - text))) != NULL; p++)
        n++;
    return n;
}

static bool is_clean(const char *p, const char *end)
{
    for (size_t len; p < end; p += len) {
        len = weir__utf8_length(p, end);
        if (len == 0 || (unsigned char)*p < ' ')
            return false;
    }
    return true;
}

/* False, after a report: the line is no entry. */
static bool read_line(struct weir__reader *r, const struct weir__node *node,
                      struct weir__list_draft *list, size_t line, const char *begin,
                      const char *end)
{
    struct weir_error error = { .text = "not UTF-8 text" };
    char *copy = is_clean(begin, end)
                     ? weir__read_entry(r, list->attribute, begin, (size_t)(end - begin), &error)
                     : NULL;

    if (copy) {
        list->entries[list->n++] = copy;
        return true;
    }
    if (r->arena->failed)
        return false;
    if (r->options->near) /* the sender may not be allowed to read the file */
        weir__say(r, node, "line %zu of the file is not an entry for such a list", line);
    else
        weir__say(r, node, "line %zu of the file, %s: %s", line,
                  weir__quote(begin, (size_t)(end - begin)).text, error.text);
    return false;
}

static void read_lines(struct weir__reader *r, const struct weir__node *node,
                       struct weir__list_draft *list, const char *text, size_t len)
{
    const char *stop = text + len, *next;
    size_t line = 1, wrong = 0;

    list->entries = weir__arena_take(r->arena, count_lines(text, len), sizeof(*list->entries));
    for (const char *p = text; list->entries && p < stop && wrong < SAID_MAX && !r->arena->failed;
         p = next + 1, line++) {
        next = memchr(p, '\n', (size_t)(stop - p));
        next = next ? next : stop;
        const char *begin = p, *end = next;
        trim(&begin, &end);
        if (begin < end)
            wrong += !read_line(r, node, list, line, begin, end);
    }
    if (list->n > ENTRIES_MAX)
        weir__say(r, node, "the file has %zu entries; the most is %d", list->n, ENTRIES_MAX);
}

static bool is_near(const char *name)
{
    for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (strcmp(part, "..") == 0 || strncmp(part, "../", 3) == 0)
            return false;
    return *name != '/';
}

char *weir__read_file(struct weir__reader *r, const struct weir__node *node, size_t most,
                      const char *instead, size_t *len)
{
    const char *name = weir__read_text(r, node, "file", "the name of a file"), *why = "";

    if (name == NULL)
        return NULL;
    if (!r->options->files) {
        weir__say(r, node, "these rules may not name files; write %s", instead);
        return NULL;
    }
    if (r->options->near && !is_near(name)) {
        weir__say(r, node,
                  "the file must lie beside the rule file or below: no name that begins with / or "
                  "has .. in it");
        return NULL;
    }
    tell_path(r->options, name);
    char *text = read_named(r->options->name, name, r->options->near, most, len, &why);
    if (text == NULL)
        weir__say(r, node, "cannot read the file %s: %s", weir__quote(name, node->n).text, why);
    return text;
}

void weir__read_list_file(struct weir__reader *r, const struct weir__node *node,
                          struct weir__list_draft *list)
{
    size_t len = 0;
    char *text = weir__read_file(r, node, BYTES_MAX, "the entries here, as in [a, b]", &len);

    if (text)
        read_lines(r, node, list, text, len);
    free(text);
}
