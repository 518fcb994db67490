/* rule-files.c -- the files that a rule set is read from. */
#include "server/serve/rules/rule-files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "match/draft.h"
#include "server/base/digest.h"

/* ------------------------------------------------------------- reading ---- */

int weir__rule_files_read(const char *path, char **text, size_t *len, struct weir_error *error)
{
    return weir__file_load(path, WEIR__RULES_TEXT_MAX, text, len, error);
}

/* ------------------------------------------------------------ the files ---- */

void weir__rule_files_add(struct weir__rule_files *files, const char *path)
{
    char **more = realloc(files->named, (files->n + 1) * sizeof(*more)), *copy = strdup(path);

    if (more != NULL)
        files->named = more;
    if (more != NULL && copy != NULL)
        more[files->n++] = copy;
    else
        free(copy);
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

uint64_t weir__rule_files_more(uint64_t h, const char *path)
{
    struct weir_error error = { 0 };
    char *text = NULL;
    size_t len = 0;

    if (weir__rule_files_read(path, &text, &len, &error) == WEIR_OK)
        h = weir__digest(weir__digest(h, &len, sizeof(len)), text, len);
    else
        h = weir__digest(h, error.text, strlen(error.text));
    free(text);
    return h;
}

uint64_t weir__rule_files_contents(const struct weir__rule_files *files, const char *text,
                                   size_t len)
{
    uint64_t h = weir__digest(weir__digest(WEIR__DIGEST_START, &len, sizeof(len)), text, len);

    for (size_t i = 0; i < files->n; i++)
        h = weir__rule_files_more(h, files->named[i]);
    return h;
}
