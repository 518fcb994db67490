/* import.c -- `weir import nginx`: limits of another program's configuration as a rule file. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/buffer.h"
#include "server/base/complain.h"
#include "server/base/file.h"
#include "server/base/options.h"
#include "server/base/safe-text.h"
#include "server/import/import.h"

struct options {
    bool none;
};

static const struct weir__option rows[] = { { 0 } };

static void print_notes(const struct weir__import *import)
{
    for (const struct weir__import_note *n = import->notes; n != NULL; n = n->next) {
        weir__safe_text(stderr, WEIR__SAFE_TERMINAL, n->file);
        if (n->line > 0)
            fprintf(stderr, ":%d", n->line);
        fprintf(stderr, ": %s", n->loss ? "differs: " : "");
        weir__safe_text(stderr, WEIR__SAFE_TERMINAL, n->text);
        fputs("\n", stderr);
    }
    for (const struct weir__wanted *w = import->wanted; w != NULL; w = w->next)
        fprintf(stderr, "rules look at %s; in nginx: weir_attribute %s $%s;\n", w->name, w->name,
                w->variable);
}

static int convert(const struct weir__command *self, const char *path, const char *text, size_t len)
{
    char *copy = strdup(path);
    struct weir__import import = { .folder = copy != NULL ? dirname(copy) : "." };
    struct weir__buffer out = { 0 };
    struct weir_error error = { 0 };
    int code = WEIR__EXIT_WRONG;

    if (weir__import_nginx(&import, path, text, len, &out, &error) != WEIR_OK) {
        weir__complain(self->name, "%s", error.text);
        weir__buffer_free(&out);
    } else {
        code = import.losses > 0 ? WEIR__EXIT_NO : WEIR__EXIT_OK;
        int printed = weir__buffer_print(&out, stdout);
        code = printed != WEIR__EXIT_OK ? printed : code;
        fflush(stdout);
        print_notes(&import);
    }
    weir__import_clear(&import);
    free(copy);
    return code;
}

static int run(const struct weir__call *call)
{
    const char *path = call->words[0];
    size_t len;
    char *text = weir__file_read(path, WEIR__IMPORT_BYTES_MAX, &len);

    if (text == NULL)
        return weir__complain(call->self->name, "%s: %s", path, strerror(errno));
    int code = convert(call->self, strcmp(path, "-") == 0 ? "stdin" : path, text, len);
    free(text);
    return code;
}

const struct weir__command weir__cmd_import_nginx = {
    .name = "import nginx",
    .summary = "print the limits of an nginx.conf as a rule file",
    .arguments = "FILE",
    .help =
        "Reads an nginx.conf and the files it includes, and prints rules and guards that decide "
        "as its limit_req and limit_conn do. Whatever they decide differently is named with "
        "file and line, on stderr and in the output. - is stdin.\n"
        "\n"
        "  weir import nginx /etc/nginx/nginx.conf >rules.yaml\n"
        "  weir rules check rules.yaml\n"
        "\n"
        "Exit codes: 0 all of it, 1 something differs, 2 wrong use or not an nginx.conf.",
    WEIR__COMMAND_OPTIONS(rows, .none = false),
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
