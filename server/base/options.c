/* options.c -- the one reader of options: --name VALUE, --name=VALUE, -q, and -- to end them.
 *
 * Options and other words may come in any order.  A row of struct weir__option says where a value
 * goes and how to read it; nothing else in the command line program looks at a dash.  Giving an
 * option twice is refused: with --limit, say, the last one winning in silence would be taken for
 * two limits at once.
 */
#include "server/base/options.h"

#include <errno.h>
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

static const struct weir__option *find(const struct weir__command *command, const char *name,
                                       size_t len)
{
    for (const struct weir__option *o = command->options; o->name; o++) {
        if (len == 1 ? o->letter == name[0]
                     : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
            return o;
    }
    return NULL;
}

static int unknown(const struct weir__command *command, const char *word, size_t len)
{
    const char *names[65] = { "help" };
    size_t n = 1;

    for (const struct weir__option *o = command->options; o->name && n < 64; o++)
        names[n++] = o->name;
    size_t dashes = strspn(word, "-");
    const char *near =
        len > dashes ? weir__nearest(word + dashes, len - dashes, names, WEIR__TO_NULL) : NULL;
    if (near)
        weir__complain(command->name, "there is no option %.*s; did you mean --%s?", (int)len, word,
                       near);
    else
        weir__complain(command->name, "there is no option %.*s; see: weir %s --help", (int)len,
                       word, command->name);
    return WEIR__EXIT_WRONG;
}

static bool read_count(const struct reading *r, const struct weir__option *o, const char *value)
{
    char *end;

    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || errno || n < o->min) {
        weir__complain(r->command->name, "--%s must be a whole number from %lld up, not '%s'",
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
        weir__complain(r->command->name,
                       "--%s: '%s' is no time; write seconds since 1970, or 2026-11-30T23:59:59Z",
                       o->name, value);
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

/* The value after '=', or the next word; NULL, and it was said, if there is none or there must be
 * none. */
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
        weir__options_help(r->command);
        return WEIR__EXIT_OK;
    }
    const struct weir__option *o = wide == (len > 1) ? find(r->command, name, len) : NULL;
    if (!o)
        return unknown(r->command, word, (size_t)(name - word) + len);
    uint64_t bit = (uint64_t)1 << (o - r->command->options);
    if (r->seen & bit) {
        weir__complain(r->command->name, "--%s is given twice", o->name);
        return WEIR__EXIT_WRONG;
    }
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

void weir__options_help(const struct weir__command *command)
{
    printf("usage: weir %s%s%s\n\n%s\n", command->name, *command->arguments ? " " : "",
           command->arguments, command->summary);
    if (command->notes)
        printf("\n%s\n", command->notes);
    printf("\noptions:\n");
    for (const struct weir__option *o = command->options; o->name; o++) {
        char head[64];
        char letter[8] = "    ";
        if (o->letter)
            snprintf(letter, sizeof(letter), "-%c, ", o->letter);
        snprintf(head, sizeof(head), "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        printf("  %-24s %s\n", head, o->help);
    }
    printf("  %-24s %s\n", "-h, --help", "show this");
}
