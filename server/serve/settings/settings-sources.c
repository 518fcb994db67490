/* settings-sources.c -- where settings come from: the command line, the environment, a file.
 *
 * The file has a setting a line, NAME: VALUE.  Behind a space, # begins a comment; a value that has
 * such a thing in it, or spaces at its ends, stands in quotes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/command.h"
#include "server/base/file.h"
#include "server/base/options.h"
#include "server/serve/settings/settings-parts.h"
#include "server/base/text.h"

enum { FILE_MAX = 1 << 20 };

/* " did you mean --x?", or where to look. */
static struct weir__place suggest(const char *word, size_t len, const char *dashes)
{
    const char *names[WEIR__SETTINGS + 3] = { "help", "print-settings" };
    size_t first = *dashes ? 0 : 2; /* a file has neither */
    struct weir__place place;

    for (size_t i = 0; i < WEIR__SETTINGS; i++)
        names[i + 2] = weir__settings_rows[i].name;
    const char *near = len > 0 ? weir__nearest(word, len, names + first, WEIR__TO_NULL) : NULL;
    if (near)
        snprintf(place.text, sizeof(place.text), "did you mean %s%s?", dashes, near);
    else
        snprintf(place.text, sizeof(place.text), "see: weir serve --help");
    return place;
}

/* ------------------------------------------------------ the command line ---- */

static int unknown_flag(const char *word, size_t len)
{
    size_t dashes = strspn(word, "-");

    weir__complain("serve", "there is no option %.*s; %s", (int)len, word,
                   suggest(word + dashes, len > dashes ? len - dashes : 0, "--").text);
    return WEIR__EXIT_WRONG;
}

/* The text of a flag's value, or NULL: there is none, and it was said. */
static const char *flag_value(const struct weir__setting *row, bool no, const char *equals,
                              int argc, char **argv, int *at)
{
    if (row->kind == WEIR__KIND_SWITCH) {
        if (equals)
            weir__complain("serve", "--%s%s takes no value", no ? "no-" : "", row->name);
        return equals ? NULL : no ? "false" : "true";
    }
    if (equals)
        return equals + 1;
    if (*at + 1 < argc)
        return argv[++*at];
    weir__complain("serve", "--%s needs a value: --%s %s", row->name, row->name, row->value);
    return NULL;
}

static int refuse_secret(const struct weir__setting *row)
{
    weir__complain("serve",
                   "--%s: everybody on this host can read command lines; set %s, or --%s-file "
                   "FILE, or write it in the file of --config",
                   row->name, weir__settings_environment_name(row).text, row->name);
    return WEIR__EXIT_WRONG;
}

static int read_flag(struct weir__reading *r, int argc, char **argv, int *at)
{
    const char *word = argv[*at], *name = word + 2, *equals = strchr(word, '=');
    size_t len = equals ? (size_t)(equals - word) : strlen(word);

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        weir__settings_help();
        return WEIR__EXIT_OK;
    }
    if (strcmp(word, "--print-settings") == 0) {
        r->print = true;
        return WEIR__GO_ON;
    }
    const struct weir__setting *row =
        len > 2 && word[1] == '-' ? weir__settings_find(name, len - 2) : NULL;
    bool no = !row && len > 5 && strncmp(word, "--no-", 5) == 0 &&
              (row = weir__settings_find(name + 3, len - 5)) != NULL;
    if (!row || (no && row->kind != WEIR__KIND_SWITCH))
        return unknown_flag(word, len);
    if (row->kind == WEIR__KIND_SECRET)
        return refuse_secret(row);
    struct weir__found *v = &r->values[row - weir__settings_rows];
    if (v->text) {
        weir__complain("serve", "--%s is given twice", row->name);
        return WEIR__EXIT_WRONG;
    }
    v->from = WEIR__FROM_FLAG;
    v->text = flag_value(row, no, equals, argc, argv, at);
    return v->text ? WEIR__GO_ON : WEIR__EXIT_WRONG;
}

int weir__settings_flags(struct weir__reading *r, int argc, char **argv)
{
    int code = WEIR__GO_ON;

    for (int at = 0; code == WEIR__GO_ON && at < argc; at++) {
        if (argv[at][0] == '-' && argv[at][1]) {
            code = read_flag(r, argc, argv, &at);
        } else {
            weir__complain("serve",
                           "it takes options only, and '%s' is none; a rule file is --rules FILE",
                           argv[at]);
            code = WEIR__EXIT_WRONG;
        }
    }
    return code;
}

void weir__settings_environment(struct weir__reading *r)
{
    for (size_t i = 0; i < WEIR__SETTINGS; i++) {
        const char *text =
            r->values[i].text
                ? NULL
                : getenv(weir__settings_environment_name(&weir__settings_rows[i]).text);
        if (text)
            r->values[i] = (struct weir__found){ .text = text, .from = WEIR__FROM_ENVIRONMENT };
    }
}

/* -------------------------------------------------------------- the file ---- */

/* What stands between the quotes, or up to a comment; NULL if a quote has no end.  Writes a NUL
 * behind it. */
static char *trim_value(char *text)
{
    char *begin = text + strspn(text, " \t"), *end = begin;

    if (*begin == '"' || *begin == '\'') {
        char *quote = strchr(begin + 1, *begin);
        const char *rest = quote ? quote + 1 + strspn(quote + 1, " \t") : "no";
        if (*rest && *rest != '#')
            return NULL;
        *quote = 0;
        return begin + 1;
    }
    for (char *c = begin; *c && !(*c == '#' && (c == begin || c[-1] == ' ' || c[-1] == '\t'));
         c++) {
        if (*c != ' ' && *c != '\t')
            end = c + 1;
    }
    *end = 0;
    return begin;
}

static bool keep_line(struct weir__reading *r, const struct weir__setting *row, char *text,
                      int number)
{
    struct weir__found *v = &r->values[row - weir__settings_rows];
    char *value = trim_value(text);

    if (!value) {
        weir__complain("serve", "%s:%d: %s: a value that begins with a quote must end with it",
                       r->config, number, row->name);
        return false;
    }
    if (v->line) {
        weir__complain("serve", "%s:%d: %s is set already, in line %d", r->config, number,
                       row->name, v->line);
        return false;
    }
    v->line = number;
    if (!v->text)
        *v = (struct weir__found){ .text = value, .from = WEIR__FROM_FILE, .line = number };
    return true;
}

/* NAME: VALUE */
static bool read_line(struct weir__reading *r, char *line, int number)
{
    char *begin = line + strspn(line, " \t");
    size_t len = strcspn(begin, ": \t#");
    char *colon = begin + len + strspn(begin + len, " \t");

    if (!*begin || *begin == '#')
        return true;
    if (len == 0 || *colon != ':') {
        weir__complain("serve", "%s:%d: a line is NAME: VALUE, or # and a comment", r->config,
                       number);
        return false;
    }
    const struct weir__setting *row = weir__settings_find(begin, len);
    if (row && strcmp(row->name, "config") == 0) {
        weir__complain("serve", "%s:%d: config names this file; it cannot stand in it", r->config,
                       number);
        return false;
    }
    if (!row) {
        weir__complain("serve", "%s:%d: there is no setting '%.*s'; %s", r->config, number,
                       len > 60 ? 60 : (int)len, begin, suggest(begin, len, "").text);
        return false;
    }
    return keep_line(r, row, colon + 1, number);
}

static bool load_file(struct weir__reading *r)
{
    size_t len;
    char *text = strcmp(r->config, "-") == 0 ? (errno = EINVAL, NULL)
                                             : weir__file_read(r->config, FILE_MAX, &len);

    r->file = text ? malloc(len + 1) : NULL;
    if (r->file) {
        memcpy(r->file, text, len);
        r->file[len] = 0;
        r->file_len = len;
    } else {
        weir__complain("serve", "cannot read %s: %s", r->config, strerror(errno));
    }
    free(text);
    return r->file && strlen(r->file) == len;
}

bool weir__settings_file(struct weir__reading *r)
{
    const struct weir__found *v =
        &r->values[weir__settings_find("config", 6) - weir__settings_rows];
    int number = 1;

    r->config = v->text ? v->text : "";
    if (!*r->config)
        return true;
    if (!load_file(r)) {
        if (r->file)
            weir__complain("serve", "%s has a NUL byte in it: it is no file of settings",
                           r->config);
        return false;
    }
    for (char *line = r->file, *next; line; line = next, number++) {
        char *end = strchrnul(line, '\n');
        next = *end ? end + 1 : NULL;
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = 0;
        if (!read_line(r, line, number))
            return false;
    }
    return true;
}
