/* rule-files.c -- the files that a rule set is read from. */
#include "server/serve/rules/rule-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rulefile/node.h"
#include "server/base/digest.h"

/* ------------------------------------------------------------- reading ---- */

int weir__rule_files_read(const char *path, char **text, size_t *len, struct weir_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* waits for no pipe */
    struct stat st;

    if (fd < 0)
        return weir__fail_errno(error, "cannot open", path);
    bool odd = fstat(fd, &st) == 0 && !S_ISREG(st.st_mode);
    char *all = odd ? NULL : weir__file_read_all(fd, WEIR__RULES_TEXT_MAX, len);
    int code = all   ? WEIR_OK
               : odd ? weir__fail(error, WEIR_INVALID, "%s is not a regular file", path)
               : errno == EFBIG
                   ? weir__fail(error, WEIR_INVALID, "%s is too large: the most is %zu MiB", path,
                                WEIR__RULES_TEXT_MAX >> 20)
                   : weir__fail_errno(error, "cannot read", path);
    close(fd);
    if (all)
        *text = all;
    return code;
}

/* ------------------------------------------------------------- finding ---- */

static const struct weir__node *member(const struct weir__node *node, const char *name)
{
    for (size_t i = 0; node != NULL && node->kind == WEIR__NODE_MAPPING && i < node->n; i++)
        if (strcmp(node->items[2 * i]->text, name) == 0)
            return node->items[2 * i + 1];
    return NULL;
}

/* As lib/rulefile/list-file.c has it: beside the rule file, unless it begins with a slash. */
static void add_file(struct weir__rule_files *files, const char *path, const char *name)
{
    const char *slash = *name == '/' ? NULL : strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    char **more = realloc(files->named, (files->n + 1) * sizeof(*more)),
         *whole = malloc(folder + strlen(name) + 1);

    if (more != NULL)
        files->named = more;
    if (more == NULL || whole == NULL) {
        free(whole);
        return;
    }
    memcpy(whole, path, folder);
    strcpy(whole + folder, name);
    more[files->n++] = whole;
}

/* lists: { NAME: { ATTRIBUTE: { file: PATH } } } */
static void add_lists(struct weir__rule_files *files, const char *path,
                      const struct weir__node *lists)
{
    for (size_t i = 0; lists != NULL && lists->kind == WEIR__NODE_MAPPING && i < lists->n; i++) {
        const struct weir__node *list = lists->items[2 * i + 1];
        for (size_t k = 0; list->kind == WEIR__NODE_MAPPING && k < list->n; k++) {
            const struct weir__node *file = member(list->items[2 * k + 1], "file");
            if (file != NULL && file->kind == WEIR__NODE_TEXT)
                add_file(files, path, file->text);
        }
    }
}

/* guards: [ { fallback: { body_file: PATH } } ] */
static void add_fallbacks(struct weir__rule_files *files, const char *path,
                          const struct weir__node *guards)
{
    for (size_t i = 0; guards != NULL && guards->kind == WEIR__NODE_LIST && i < guards->n; i++) {
        const struct weir__node *file = member(member(guards->items[i], "fallback"), "body_file");
        if (file != NULL && file->kind == WEIR__NODE_TEXT)
            add_file(files, path, file->text);
    }
}

void weir__rule_files_find(struct weir__rule_files *out, const char *path, const char *text,
                           size_t len)
{
    struct weir__report *report = calloc(1, sizeof(*report));
    struct weir__arena nodes = { 0 };

    *out = (struct weir__rule_files){ 0 };
    if (report != NULL && weir__report_open(report, text, len, NULL) == WEIR_OK) {
        const struct weir__node *root = weir__yaml_read(&nodes, report);
        add_lists(out, path, member(root, "lists"));
        add_fallbacks(out, path, member(root, "guards"));
        weir__arena_clear(&nodes);
        weir__report_close(report);
    }
    free(report);
}

void weir__rule_files_free(struct weir__rule_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->named[i]);
    free(files->named);
    *files = (struct weir__rule_files){ 0 };
}

/* ------------------------------------------------------------- numbers ---- */

static uint64_t stamp(uint64_t h, const char *path)
{
    struct stat st;
    int failed = stat(path, &st) != 0 ? errno : 0;

    if (failed)
        return weir__digest(h, &failed, sizeof(failed));
    int64_t known[] = { (int64_t)st.st_dev,          (int64_t)st.st_ino,
                        (int64_t)st.st_size,         (int64_t)st.st_mtim.tv_sec,
                        (int64_t)st.st_mtim.tv_nsec, (int64_t)st.st_ctim.tv_sec,
                        (int64_t)st.st_ctim.tv_nsec };
    return weir__digest(h, known, sizeof(known));
}

uint64_t weir__rule_files_stamp(const struct weir__rule_files *files, const char *path)
{
    uint64_t h = stamp(WEIR__DIGEST_START, path);

    for (size_t i = 0; i < files->n; i++)
        h = stamp(h, files->named[i]);
    return h;
}

uint64_t weir__rule_files_contents(const struct weir__rule_files *files, const char *text,
                                   size_t len)
{
    uint64_t h = weir__digest(weir__digest(WEIR__DIGEST_START, &len, sizeof(len)), text, len);

    for (size_t i = 0; i < files->n; i++) {
        struct weir_error error = { 0 };
        char *list = NULL;
        size_t size = 0;
        if (weir__rule_files_read(files->named[i], &list, &size, &error) == WEIR_OK)
            h = weir__digest(weir__digest(h, &size, sizeof(size)), list, size);
        else
            h = weir__digest(h, error.text, strlen(error.text));
        free(list);
    }
    return h;
}
