/* completion.c -- `weir completion`: what shells need to complete the words after `weir`,
 * printed from the rows of commands and options.
 *
 *     source <(weir completion bash)
 *
 * A command's words are completed by what its usage says: the alternatives of [enforce|shadow|off],
 * or files where it names some.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/base/command.h"
#include "server/base/options.h"
#include "server/serve/settings/settings.h"
#include "server/base/text.h"

struct options {
    bool nothing;
};

const struct weir__option weir__cmd_completion_options[] = { { 0 } };

/* ---------------------------------------------------------------- the rows ---- */

/* The i-th option of a command; serve's are its settings. */
static bool option_of(const struct weir__command *command, size_t i, struct weir__option *out)
{
    if (strcmp(command->name, "serve") == 0)
        return weir__settings_option(i, out);
    for (size_t k = 0; k <= i; k++) {
        if (!command->options[k].name)
            return false;
    }
    *out = command->options[i];
    return true;
}

static bool takes_value(const struct weir__option *o)
{
    return o->value != NULL;
}

static bool takes_file(const struct weir__option *o)
{
    return o->value && strcmp(o->value, "FILE") == 0;
}

/* Whether words of its usage are files: not those that are an option's value. */
static bool takes_files(const struct weir__command *command)
{
    const char *usage = command->arguments, *file = usage;

    while ((file = strstr(file, "FILE")) != NULL) {
        const char *word = file;
        while (word > usage && strchr(" [", word[-1]))
            word--;
        while (word > usage && !strchr(" [|", word[-1]))
            word--;
        if (strncmp(word, "--", 2) != 0)
            return true;
        file += 4;
    }
    return strstr(usage, ".LOG") || strstr(usage, "OLD NEW");
}

/* The next alternative of the usage: a word in small letters beside a '|', outside of options. */
static bool next_choice(const char **at, char *out, size_t size)
{
    for (const char *c = *at; *c;) {
        size_t len = strspn(c, "abcdefghijklmnopqrstuvwxyz-");
        bool alone = c == *at || !(isalnum((unsigned char)c[-1]) || c[-1] == '=');
        if (len > 0 && alone && c[0] != '-' && len < size &&
            (c[len] == '|' || (c > *at && c[-1] == '|'))) {
            snprintf(out, size, "%.*s", (int)len, c);
            *at = c + len;
            return true;
        }
        c += len ? len : 1;
    }
    return false;
}

/* The first word of a command's name, and the second if there is one. */
static size_t first_word(const struct weir__command *command)
{
    return strcspn(command->name, " ");
}

static const char *second_word(const struct weir__command *command)
{
    const char *rest = command->name + first_word(command);

    return *rest ? rest + 1 : NULL;
}

/* Whether no row before it begins with the same word. */
static bool is_first_of_group(size_t i)
{
    const struct weir__command *row = weir__command_row(i), *other;

    for (size_t k = 0; k < i && (other = weir__command_row(k)) != NULL; k++) {
        if (first_word(other) == first_word(row) &&
            strncmp(other->name, row->name, first_word(row)) == 0)
            return false;
    }
    return true;
}

static void print_first_words(const char *separator)
{
    const struct weir__command *row;

    for (size_t i = 0; (row = weir__command_row(i)) != NULL; i++) {
        if (is_first_of_group(i))
            printf("%s%.*s", i ? separator : "", (int)first_word(row), row->name);
    }
}

/* The second words of the group that begins with row `first`. */
static void print_second_words(size_t first)
{
    const struct weir__command *row, *head = weir__command_row(first);
    const char *separator = "";

    for (size_t i = first; (row = weir__command_row(i)) != NULL; i++) {
        if (!second_word(row) || first_word(row) != first_word(head) ||
            strncmp(row->name, head->name, first_word(head)) != 0)
            continue;
        printf("%s%s", separator, second_word(row));
        separator = " ";
    }
}

static void print_choices(const struct weir__command *command, const char *separator)
{
    const char *at = command->arguments, *between = "";
    char word[32];

    while (next_choice(&at, word, sizeof(word))) {
        printf("%s%s", between, word);
        between = separator;
    }
}

/* In single quotes, and fit for whatever is behind `also` to be read literally by the shell's own
 * functions. */
static void print_quoted(const char *text, const char *also)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            fputs("'\\''", stdout);
        else if (strchr(also, *c))
            printf("\\%c", *c);
        else
            putchar(*c);
    }
}

/* -------------------------------------------------------------------- bash ---- */

/* --rules|--table): of one kind */
static void bash_options(const struct weir__command *command, bool files)
{
    struct weir__option o;
    const char *separator = "";

    for (size_t i = 0; option_of(command, i, &o); i++) {
        if (!takes_value(&o) || takes_file(&o) != files)
            continue;
        printf("%s--%s", separator, o.name);
        if (o.letter)
            printf(" -%c", o.letter);
        separator = " ";
    }
}

static void bash_command(const struct weir__command *command)
{
    struct weir__option o;

    printf("    '%s')\n        options='--help", command->name);
    for (size_t i = 0; option_of(command, i, &o); i++)
        printf(" --%s", o.name);
    printf("' files='");
    bash_options(command, true);
    printf("' values='");
    bash_options(command, false);
    printf("' words='");
    print_choices(command, " ");
    printf("' any=%s ;;\n", takes_files(command) ? "yes" : "");
}

static void print_bash(void)
{
    const struct weir__command *row;

    printf("# Completion of weir for bash.  Now: source <(weir completion bash)\n"
           "_weir() {\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} "
           "command=${COMP_WORDS[1]}\n"
           "    local options= files= values= words= any=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '");
    print_first_words(" ");
    printf(" --help --version' -- \"$current\"))\n        return\n    fi\n    case $command in\n");
    for (size_t i = 0; (row = weir__command_row(i)) != NULL; i++) {
        if (!is_first_of_group(i) || !second_word(row))
            continue;
        printf("    %.*s)\n        if [ \"$COMP_CWORD\" -eq 2 ]; then\n            "
               "COMPREPLY=($(compgen -W '",
               (int)first_word(row), row->name);
        print_second_words(i);
        printf("' -- \"$current\"))\n            return\n        fi\n        command=\"$command "
               "${COMP_WORDS[2]}\" ;;\n");
    }
    printf("    esac\n    case $command in\n");
    for (size_t i = 0; (row = weir__command_row(i)) != NULL; i++)
        bash_command(row);
    printf("    esac\n"
           "    if [[ \" $files \" == *\" $before \"* ]]; then\n"
           "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
           "    elif [[ \" $values \" == *\" $before \"* ]]; then\n"
           "        return\n"
           "    elif [[ $current == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
           "    else\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "        [ -z \"$any\" ] || COMPREPLY+=($(compgen -f -- \"$current\"))\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _weir weir\n");
}

/* --------------------------------------------------------------------- zsh ---- */

static void zsh_command(const struct weir__command *command, const char *indent)
{
    struct weir__option o;
    const char *at = command->arguments;
    char word[32];
    bool choices = next_choice(&at, word, sizeof(word));

    printf("%s_arguments '--help[show this]'", indent);
    for (size_t i = 0; option_of(command, i, &o); i++) {
        printf(" \\\n%s    '--%s[", indent, o.name);
        print_quoted(o.help, "[]\\");
        printf("]");
        if (takes_value(&o)) {
            printf(":");
            print_quoted(o.value, ":\\");
            printf(":%s", takes_file(&o) ? "_files" : "");
        }
        printf("'");
    }
    if (choices) {
        printf(" \\\n%s    '*:word:(", indent);
        print_choices(command, " ");
        printf(")'");
    } else if (takes_files(command)) {
        printf(" \\\n%s    '*:file:_files'", indent);
    }
    printf(" ;;\n");
}

static void zsh_describe(size_t i)
{
    const struct weir__command *row = weir__command_row(i);

    printf("            '%.*s:", (int)first_word(row), row->name);
    print_quoted(second_word(row) ? "more commands" : row->summary, ":\\");
    printf("'\n");
}

/* A command of two words: the second picks among the rows of its group. */
static void zsh_group(size_t first)
{
    const struct weir__command *row, *head = weir__command_row(first);

    printf("        if (( CURRENT == 2 )); then compadd ");
    print_second_words(first);
    printf("; return; fi\n        local second=$words[2]; shift words; (( CURRENT-- ))\n        "
           "case $second in\n");
    for (size_t i = first; (row = weir__command_row(i)) != NULL; i++) {
        if (!second_word(row) || first_word(row) != first_word(head) ||
            strncmp(row->name, head->name, first_word(head)) != 0)
            continue;
        printf("        %s)\n", second_word(row));
        zsh_command(row, "            ");
    }
    printf("        esac ;;\n");
}

static void print_zsh(void)
{
    const struct weir__command *row;

    printf("#compdef weir\n"
           "# Completion of weir for zsh.  Put it into a directory of $fpath as _weir; or now: "
           "source <(weir completion zsh)\n"
           "_weir() {\n"
           "    local -a commands\n"
           "    if (( CURRENT == 2 )); then\n"
           "        commands=(\n");
    for (size_t i = 0; weir__command_row(i) != NULL; i++) {
        if (is_first_of_group(i))
            zsh_describe(i);
    }
    printf("        )\n        _describe command commands\n        return\n    fi\n"
           "    local command=$words[2]\n    shift words; (( CURRENT-- ))\n    case $command in\n");
    for (size_t i = 0; (row = weir__command_row(i)) != NULL; i++) {
        if (!is_first_of_group(i))
            continue;
        printf("    %.*s)\n", (int)first_word(row), row->name);
        if (second_word(row))
            zsh_group(i);
        else
            zsh_command(row, "        ");
    }
    printf("    esac\n}\nif [ \"$funcstack[1]\" = _weir ]; then _weir \"$@\"; else compdef _weir "
           "weir; fi\n");
}

/* -------------------------------------------------------------------- fish ---- */

/* When the command's options and words are wanted. */
static void fish_condition(const struct weir__command *command)
{
    printf("complete -c weir -n '__fish_seen_subcommand_from %.*s", (int)first_word(command),
           command->name);
    if (second_word(command))
        printf("; and __fish_seen_subcommand_from %s", second_word(command));
    printf("'");
}

static void fish_command(const struct weir__command *command)
{
    struct weir__option o;
    const char *at = command->arguments;
    char word[32];

    for (size_t i = 0; option_of(command, i, &o); i++) {
        fish_condition(command);
        printf(" -l %s", o.name);
        if (o.letter)
            printf(" -s %c", o.letter);
        printf("%s -d '", takes_file(&o) ? " -r -F" : takes_value(&o) ? " -x" : "");
        print_quoted(o.help, "\\");
        printf("'\n");
    }
    if (next_choice(&at, word, sizeof(word))) {
        fish_condition(command);
        printf(" -a '");
        print_choices(command, " ");
        printf("'\n");
    } else if (takes_files(command)) {
        fish_condition(command);
        printf(" -F\n");
    }
}

static void print_fish(void)
{
    const struct weir__command *row;

    printf("# Completion of weir for fish.  Now: weir completion fish | source\n"
           "complete -c weir -f\n"
           "complete -c weir -n __fish_use_subcommand -l help -d 'show the commands'\n"
           "complete -c weir -n __fish_use_subcommand -l version -d 'say which this is'\n");
    for (size_t i = 0; (row = weir__command_row(i)) != NULL; i++) {
        if (is_first_of_group(i)) {
            printf("complete -c weir -n __fish_use_subcommand -a %.*s -d '", (int)first_word(row),
                   row->name);
            print_quoted(second_word(row) ? "more commands" : row->summary, "\\");
            printf("'\n");
        }
        if (second_word(row) && is_first_of_group(i)) {
            printf("complete -c weir -n '__fish_seen_subcommand_from %.*s; and not "
                   "__fish_seen_subcommand_from ",
                   (int)first_word(row), row->name);
            print_second_words(i);
            printf("' -a '");
            print_second_words(i);
            printf("'\n");
        }
        fish_command(row);
    }
}

/* ----------------------------------------------------------------- command ---- */

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

int weir__cmd_completion(const struct weir__command *self, int argc, char **argv)
{
    struct options o;
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    for (size_t i = 0; n == 1 && i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(shells[i].name, argv[0]) == 0) {
            shells[i].print();
            return WEIR__EXIT_OK;
        }
    }
    weir__complain(self->name, "which shell? usage: weir %s %s", self->name, self->arguments);
    return WEIR__EXIT_WRONG;
}
