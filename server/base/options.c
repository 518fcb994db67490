/* options.c -- the only reader of options: --name VALUE, --name=VALUE, -q, and -- to end them.
 *
 * Options and other words may come in any order.  An option given twice is refused: if the last
 * --limit silently won, the user would believe that both hold.
 */
#include "server/base/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/base/date.h"
#include "server/base/text.h"

struct reading {
    const struct weir__command *command;
    char **argv;
    int argc;
    int at;        /* the word that is being read */
    char *into;    /* the command's struct */
    uint64_t seen; /* a bit per row */
};

const struct weir__option *weir__options_row(const struct weir__command *command, size_t i)
{
    const struct weir__option *rows[] = { command->options, command->shared };

    for (size_t k = 0; k < 2; k++) {
        for (const struct weir__option *o = rows[k]; o && o->name; o++) {
            if (i-- == 0)
                return o;
        }
    }
    return NULL;
}

/* NULL: there is none; *place is its number. */
static const struct weir__option *find(const struct weir__command *command, const char *name,
                                       size_t len, size_t *place)
{
    const struct weir__option *o;

    for (*place = 0; (o = weir__options_row(command, *place)) != NULL; ++*place) {
        if (len == 1 ? o->letter == name[0]
                     : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            break;
    }
    return o;
}

int weir__command_wrong(const struct weir__command *command, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return weir__complain(command->name, "%s; usage: weir %s %s", text, command->name,
                          command->arguments);
}

static int unknown(const struct weir__command *command, const char *word, size_t len)
{
    const char *names[65] = { "help" };
    const struct weir__option *o;

    for (size_t n = 0; n < 63 && (o = weir__options_row(command, n)) != NULL; n++)
        names[n + 1] = o->name;
    size_t dashes = strspn(word, "-");
    const char *near =
        len > dashes ? weir__nearest(word + dashes, len - dashes, names, WEIR__TO_NULL) : NULL;
    if (near)
        return weir__complain(command->name, "there is no option %.*s; did you mean --%s?",
                              (int)len, word, near);
    return weir__complain(command->name, "there is no option %.*s; see: weir %s --help", (int)len,
                          word, command->name);
}

static bool read_count(const struct reading *r, const struct weir__option *o, const char *value)
{
    char *end;

    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || errno || n < o->min) {
        weir__complain(r->command->name, "--%s must be a whole number, at least %lld, not '%s'",
                       o->name, (long long)o->min, value);
        return false;
    }
    *(int64_t *)(void *)(r->into + o->offset) = n;
    return true;
}

static bool read_time(const struct reading *r, const struct weir__option *o, const char *value)
{
    struct weir_error error = { 0 };
    weir_time *to = (weir_time *)(void *)(r->into + o->offset);

    if (o->kind == WEIR__OPTION_WAIT && strcmp(value, "forever") == 0) {
        *to = WEIR_FOREVER;
        return true;
    }
    if (weir_time_parse(to, value, &error) == WEIR_OK)
        return true;
    if (o->kind == WEIR__OPTION_MOMENT &&
        strchr(value, '-') != NULL) { /* no number of seconds has a dash inside */
        if (weir__date_parse(value, strlen(value), to))
            return true;
        weir__complain(r->command->name, "--%s: '%s' is not a time; write " WEIR__MOMENT, o->name,
                       value);
        return false;
    }
    weir__complain_at(r->command->name, o->name, value, &error);
    return false;
}

static bool read_value(const struct reading *r, const struct weir__option *o, const char *value)
{
    switch (o->kind) {
    case WEIR__OPTION_SWITCH:
        *(bool *)(r->into + o->offset) = true;
        return true;
    case WEIR__OPTION_TEXT:
        *(const char **)(void *)(r->into + o->offset) = value;
        return true;
    case WEIR__OPTION_COUNT:
        return read_count(r, o, value);
    case WEIR__OPTION_TIME:
    case WEIR__OPTION_WAIT:
    case WEIR__OPTION_MOMENT:
        return read_time(r, o, value);
    }
    return false;
}

/* ------------------------------------------------------------------- the help ---- */

#define WIDTH 80

/* One paragraph from column `at` on, its later lines indented by `indent`. */
static void wrap(const char *text, size_t len, int at, int indent)
{
    bool first = true;

    for (size_t i = 0; i < len;) {
        size_t word = strcspn(text + i, " \n");
        if (!first && at + 1 + (int)word > WIDTH) {
            printf("\n%*s", indent, "");
            at = indent;
            first = true;
        }
        at += printf("%s%.*s", first ? "" : " ", (int)word, text + i);
        first = false;
        i += word + strspn(text + i + word, " ");
    }
    putchar('\n');
}

static void print_paragraphs(const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        if (*text == ' ' || len == 0)
            printf("%.*s\n", (int)len, text);
        else
            wrap(text, len, 0, 0);
        text += len + (text[len] == '\n');
    }
}

static void print_option(const struct weir__option *o)
{
    char head[64], letter[8] = "    ";

    if (o->letter)
        snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    int len = snprintf(head, sizeof(head), "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                       o->value ? o->value : "");
    printf("  %-24s ", head);
    if (len > 24)
        printf("\n%27s", "");
    wrap(o->help, strlen(o->help), 27, 27);
}

static void print_help(const struct weir__command *command)
{
    const struct weir__option *o;

    char usage[256];

    int len =
        snprintf(usage, sizeof(usage), "usage: weir %s %s", command->name, command->arguments);
    wrap(usage, (size_t)len, 0, 8);
    putchar('\n');
    print_paragraphs(command->summary);
    if (command->help) {
        putchar('\n');
        print_paragraphs(command->help);
    }
    printf("\noptions:\n");
    for (size_t i = 0; (o = weir__options_row(command, i)) != NULL; i++)
        print_option(o);
    print_option(
        &(const struct weir__option){ .name = "help", .letter = 'h', .help = "show this" });
}

/* ------------------------------------------------------------------ the words ---- */

/* The value after '=', or the next word.  NULL after a complaint. */
static const char *find_value(struct reading *r, const struct weir__option *o, const char *equals)
{
    if (o->kind == WEIR__OPTION_SWITCH) {
        if (equals)
            weir__complain(r->command->name, "--%s takes no value", o->name);
        return equals ? NULL : "";
    }
    if (equals)
        return equals + 1;
    if (r->at + 1 < r->argc)
        return r->argv[++r->at];
    weir__complain(r->command->name, "--%s needs a value: --%s %s", o->name, o->name, o->value);
    return NULL;
}

static int read_option(struct reading *r, const char *word)
{
    bool wide = word[1] == '-';
    const char *name = word + (wide ? 2 : 1);
    const char *equals = wide ? strchr(name, '=') : NULL;
    size_t len = equals ? (size_t)(equals - name) : strlen(name);

    if ((wide && len == 4 && memcmp(name, "help", 4) == 0) || (!wide && strcmp(name, "h") == 0)) {
        print_help(r->command);
        return WEIR__EXIT_OK;
    }
    size_t place = 0;
    const struct weir__option *o = wide == (len > 1) ? find(r->command, name, len, &place) : NULL;
    if (!o)
        return unknown(r->command, word, (size_t)(name - word) + len);
    uint64_t bit = (uint64_t)1 << place;
    if (r->seen & bit)
        return weir__complain(r->command->name, "--%s is given twice", o->name);
    r->seen |= bit;
    const char *value = find_value(r, o, equals);
    return value && read_value(r, o, value) ? WEIR__GO_ON : WEIR__EXIT_WRONG;
}

int weir__options_parse(const struct weir__command *command, int argc, char **argv, void *into,
                        int *rest)
{
    struct reading r = { .command = command, .argv = argv, .argc = argc, .into = into };
    bool ended = false;

    *rest = 0;
    for (; r.at < argc; r.at++) {
        char *word = argv[r.at];
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (ended || word[0] != '-' || !word[1]) {
            argv[(*rest)++] = word;
        } else {
            int code = read_option(&r, word);
            if (code != WEIR__GO_ON)
                return code;
        }
    }
    return WEIR__GO_ON;
}
