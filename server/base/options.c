/* options.c -- the only reader of options: --name VALUE, --name=VALUE, -q, and -- to end them.
 *
 * Options and other words may come in any order.  First the text of each option is found, then it
 * is read as its row says; `weir serve` looks for texts in two more places in between.  An option
 * given twice is refused: if the last --limit silently won, the user would believe that both hold.
 */
#include "server/base/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "server/base/date.h"
#include "server/base/complain.h"
#include "wire/decimal.h"

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

struct weir__environment weir__option_environment(const struct weir__option *o)
{
    struct weir__environment e;
    size_t len = (size_t)snprintf(e.name, sizeof(e.name), "WEIR_%s", o->name);

    for (char *c = e.name; c < e.name + len; c++)
        *c = (char)(*c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return e;
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
    bool on = o->kind == WEIR__OPTION_SWITCH && o->standard && strcmp(o->standard, "true") == 0;
    bool shown = o->standard && *o->standard && o->kind != WEIR__OPTION_SWITCH;
    char head[80], letter[8] = "    ", help[256];

    if (o->letter)
        snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    if (o->kind == WEIR__OPTION_SECRET) /* there is no flag */
        snprintf(head, sizeof(head), "    %s", weir__option_environment(o).name);
    else
        snprintf(head, sizeof(head), "%s--%s%s%s%s", letter, on ? "no-" : "", o->name,
                 o->value ? " " : "", o->value ? o->value : "");
    printf(strlen(head) > 24 ? "  %s\n%27s" : "  %-24s %.0s", head, "");
    int len = snprintf(help, sizeof(help), "%s%s%s%s%s", on ? "do not " : "", o->help,
                       shown ? " [" : "", shown ? o->standard : "", shown ? "]" : "");
    wrap(help, (size_t)len, 27, 27);
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
    for (size_t i = 0; (o = weir__options_row(command, i)) != NULL; i++) {
        if (i == 0 || o->section)
            printf("\n%s:\n", o->section ? o->section : "options");
        print_option(o);
    }
    print_option(
        &(const struct weir__option){ .name = "help", .letter = 'h', .help = "show this" });
}

/* ---------------------------------------------------------------- finding ---- */

struct reading {
    const struct weir__command *command;
    char **argv;
    int argc;
    int at;             /* the word that is being read */
    const char **texts; /* by row */
};

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
    const char *names[WEIR__OPTIONS_MAX + 2] = { "help" };
    const struct weir__option *o;

    for (size_t n = 0; (o = weir__options_row(command, n)) != NULL; n++)
        names[n + 1] = o->name;
    size_t dashes = strspn(word, "-");
    if (command->no_table && len == strlen("--table") && memcmp(word, "--table", len) == 0)
        return weir__complain(command->name, "there is no option --table; %s", command->no_table);
    const char *near =
        len > dashes ? weir__nearest(word + dashes, len - dashes, names, WEIR__TO_NULL) : NULL;
    for (size_t i = 0; near == NULL && names[i] != NULL; i++) /* --fleet-name is --fleet */
        if (strncmp(word + dashes, names[i], strlen(names[i])) == 0 &&
            word[dashes + strlen(names[i])] == '-')
            near = names[i];
    if (near)
        return weir__complain(command->name, "there is no option %.*s; did you mean --%s?",
                              (int)len, word, near);
    return weir__complain(command->name, "there is no option %.*s; see: weir %s --help", (int)len,
                          word, command->name);
}

static int refuse_secret(const struct weir__command *command, const struct weir__option *o)
{
    return weir__complain(command->name,
                          "--%s: everybody on this host can read command lines; set %s, or "
                          "--%s-file FILE, or write it in the file of --config",
                          o->name, weir__option_environment(o).name, o->name);
}

/* The number of the row with this name, or letter; -1: there is none. */
static int find_row(const struct weir__command *command, const char *name, size_t len, bool wide)
{
    const struct weir__option *o;

    for (int i = 0; (o = weir__options_row(command, (size_t)i)) != NULL; i++) {
        if (wide ? strlen(o->name) == len && memcmp(o->name, name, len) == 0
                 : len == 1 && o->letter == *name)
            return i;
    }
    return -1;
}

/* --no-x, of a switch that has a default. */
static int find_no(const struct weir__command *command, const char *name, size_t len)
{
    int i =
        len > 3 && memcmp(name, "no-", 3) == 0 ? find_row(command, name + 3, len - 3, true) : -1;
    const struct weir__option *o = i < 0 ? NULL : weir__options_row(command, (size_t)i);

    return o && o->kind == WEIR__OPTION_SWITCH && o->standard ? i : -1;
}

/* The value after '=', or the next word; NULL, after a complaint, if there is none or there must be
 * none. */
static const char *find_value(struct reading *r, const struct weir__option *o, const char *equals,
                              bool no)
{
    if (o->kind == WEIR__OPTION_SWITCH) {
        if (equals)
            weir__complain(r->command->name, "--%s%s takes no value", no ? "no-" : "", o->name);
        return equals ? NULL : no ? "false" : "true";
    }
    if (equals)
        return equals + 1;
    if (r->at + 1 < r->argc)
        return r->argv[++r->at];
    weir__complain(r->command->name, "--%s needs a value: --%s %s", o->name, o->name, o->value);
    return NULL;
}

static int find_option(struct reading *r, const char *word)
{
    bool wide = word[1] == '-';
    const char *name = word + (wide ? 2 : 1);
    const char *equals = wide ? strchr(name, '=') : NULL;
    size_t len = equals ? (size_t)(equals - name) : strlen(name);

    if ((wide && len == 4 && memcmp(name, "help", 4) == 0) || (!wide && strcmp(name, "h") == 0)) {
        print_help(r->command);
        return WEIR__EXIT_OK;
    }
    int found = find_row(r->command, name, len, wide), no = -1;
    if (found < 0 && wide)
        found = no = find_no(r->command, name, len);
    if (found < 0)
        return unknown(r->command, word, (size_t)(name - word) + len);
    const struct weir__option *o = weir__options_row(r->command, (size_t)found);
    if (o->kind == WEIR__OPTION_SECRET)
        return refuse_secret(r->command, o);
    if (r->texts[found])
        return weir__complain(r->command->name, "--%s is given twice", o->name);
    r->texts[found] = find_value(r, o, equals, no >= 0);
    return r->texts[found] ? WEIR__GO_ON : WEIR__EXIT_WRONG;
}

int weir__options_find(const struct weir__command *command, int argc, char **argv,
                       const char **texts, int *rest)
{
    struct reading r = { .command = command, .argv = argv, .argc = argc, .texts = texts };
    bool ended = false;

    *rest = 0;
    for (; r.at < argc; r.at++) {
        char *word = argv[r.at];
        if (!ended && strcmp(word, "--") == 0) {
            ended = true;
        } else if (ended || word[0] != '-' || !word[1]) {
            argv[(*rest)++] = word;
            ended = ended || command->runs_words;
        } else {
            int code = find_option(&r, word);
            if (code != WEIR__GO_ON)
                return code;
        }
    }
    return WEIR__GO_ON;
}

/* ---------------------------------------------------------------- reading ---- */

static const char units[] = "kmg"; /* each is 1024 of the one before */

void weir__option_print(char *out, size_t size, const struct weir__option *o, int64_t n)
{
    int unit = -1;

    for (; o->kind == WEIR__OPTION_SIZE && n > 0 && n % 1024 == 0 && unit < 2; n /= 1024)
        unit++;
    if (o->kind == WEIR__OPTION_TIME)
        weir_time_print(out, size, n);
    else if (o->kind == WEIR__OPTION_MODE)
        snprintf(out, size, "%04llo", (unsigned long long)n);
    else
        snprintf(out, size, "%lld%.1s", (long long)n, unit >= 0 ? units + unit : "");
}

static bool refuse(const char *command, const struct weir__option *o, const char *place,
                   const char *text)
{
    static const char *const what[] = { [WEIR__OPTION_COUNT] = "a whole number",
                                        [WEIR__OPTION_SIZE] = "a size such as 64k or 1m,",
                                        [WEIR__OPTION_MODE] = "an octal mode",
                                        [WEIR__OPTION_TIME] = "a time" };
    char min[40], max[40];

    weir__option_print(min, sizeof(min), o, o->min);
    weir__option_print(max, sizeof(max), o, o->max);
    if (o->max)
        weir__complain(command, "%s must be %s from %s to %s, not '%s'", place, what[o->kind], min,
                       max, text);
    else
        weir__complain(command, "%s must be %s, at least %s, not '%s'", place, what[o->kind], min,
                       text);
    return false;
}

/* Digits; for a size k, m or g may follow. */
static bool read_number(const struct weir__option *o, const char *text, int64_t *out)
{
    bool octal = o->kind == WEIR__OPTION_MODE;
    size_t len = strspn(text, octal ? "01234567" : "0123456789");
    const char *unit =
        o->kind == WEIR__OPTION_SIZE && text[len] ? strchr(units, text[len] | 0x20) : NULL;

    if (len == 0 || text[len + (unit != NULL)])
        return false;
    if (octal) {
        *out = strtoll(text, NULL, 8);
        return len < 20;
    }
    return weir__count_parse(text, len, out) &&
           !(unit && __builtin_mul_overflow(*out, (int64_t)1 << 10 * (unit - units + 1), out));
}

static bool read_time(const char *command, const struct weir__option *o, const char *place,
                      const char *text, weir_time *out)
{
    struct weir_error error = { 0 };

    if (o->kind == WEIR__OPTION_WAIT && strcmp(text, "forever") == 0) {
        *out = WEIR_FOREVER;
        return true;
    }
    if (weir_time_parse(out, text, &error) == WEIR_OK)
        return true;
    if (o->kind == WEIR__OPTION_MOMENT &&
        strchr(text, '-') != NULL) { /* no number of seconds has a dash inside */
        if (weir__date_parse(text, strlen(text), out))
            return true;
        weir__complain(command, "%s: '%s' is not a time; write " WEIR__MOMENT, place, text);
        return false;
    }
    weir__complain_at(command, place, text, &error);
    return false;
}

static bool read_switch(const char *command, const char *place, const char *text, bool *out)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *out = i % 2;
            return true;
        }
    }
    weir__complain(command, "%s must be true or false, not '%s'", place, text);
    return false;
}

bool weir__option_read(const char *command, const struct weir__option *o, const char *place,
                       const char *text, void *into)
{
    void *member = (char *)into + o->offset;
    int64_t n = 0;

    if (o->kind == WEIR__OPTION_SWITCH)
        return read_switch(command, place, text, member);
    if (weir__option_is_text(o)) {
        *(const char **)member = text;
        return true;
    }
    bool is_time = o->kind >= WEIR__OPTION_TIME;
    if (is_time && !read_time(command, o, place, text, &n))
        return false;
    if ((!is_time && !read_number(o, text, &n)) || (n < o->min && (!is_time || o->max)) ||
        (o->max && n > o->max))
        return refuse(command, o, place, text);
    *(int64_t *)member = n;
    return true;
}

/* Names the words that are not options: those at the end of the usage. */
static int complain_of_few(const struct weir__command *self, int n)
{
    const char *all = self->arguments, *bracket = strrchr(all, ']');
    int first = strchr("[(-", *all) || n > 0 ? 0 : (int)strcspn(all, " ") + 1;

    if (!bracket || !bracket[1])
        return weir__command_wrong(self, "missing: %s", all);
    return weir__command_wrong(self, "missing: %.*s%s", first, all, bracket + 2);
}

static int check_words(const struct weir__command *self, int n, char **words)
{
    if (n > 0 && self->words_max == 0)
        return weir__complain(self->name, "takes no words; found '%s'", words[0]);
    if (n > self->words_max)
        return weir__command_wrong(self, "'%s' is one word too many", words[self->words_max]);
    if (n < self->words_min)
        return complain_of_few(self, n);
    return WEIR__GO_ON;
}

int weir__options_parse(const struct weir__command *command, int argc, char **argv, void *into,
                        int *rest)
{
    const char *texts[WEIR__OPTIONS_MAX] = { NULL };
    int code = weir__options_find(command, argc, argv, texts, rest);
    const struct weir__option *o;

    for (size_t i = 0; code == WEIR__GO_ON && (o = weir__options_row(command, i)) != NULL; i++) {
        char place[64];
        snprintf(place, sizeof(place), "--%s", o->name);
        if (texts[i] && !weir__option_read(command->name, o, place, texts[i], into))
            code = WEIR__EXIT_WRONG;
    }
    return code == WEIR__GO_ON ? check_words(command, *rest, argv) : code;
}
