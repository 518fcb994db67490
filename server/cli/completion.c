/* completion.c -- `weir completion`: shell completion, from the rows of commands and options.
 *
 *     source <(weir completion bash)
 *
 * The shells' scripts are short: they call `weir completion words -- WORD...` with the words typed
 * so far, the last of which is being completed.  It prints a candidate a line, a tab and its help;
 * a line ":" stands for file names.  A command's words come from its usage: [enforce|shadow|off],
 * or files if it names some.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "server/base/options.h"

struct options {
    bool none;
};

static const struct weir__option rows[] = { { 0 } };

static const char bash[] =
    "# weir's completion for bash.  To try it: source <(weir completion bash)\n"
    "_weir() {\n"
    "    local line current=${COMP_WORDS[COMP_CWORD]} IFS=$'\\n'\n"
    "    COMPREPLY=()\n"
    "    while read -r line; do\n"
    "        line=${line%%$'\\t'*}\n"
    "        if [ \"$line\" = : ]; then\n"
    "            COMPREPLY+=($(compgen -f -- \"$current\"))\n"
    "        elif [[ $line == \"$current\"* ]]; then\n"
    "            COMPREPLY+=(\"$line\")\n"
    "        fi\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\")\n"
    "}\n"
    "complete -o filenames -F _weir weir\n";

static const char zsh[] =
    "#compdef weir\n"
    "# weir's completion for zsh: save it as _weir in a directory of $fpath.\n"
    "_weir() {\n"
    "    local line\n"
    "    local -a candidates\n"
    "    for line in \"${(@f)$(\"$words[1]\" completion words -- \"${(@)words[2,CURRENT]}\")}\"; "
    "do\n"
    "        if [[ $line == : ]]; then\n"
    "            _files\n"
    "        elif [[ -n $line ]]; then\n"
    "            candidates+=(\"${line%%$'\\t'*}:${line#*$'\\t'}\")\n"
    "        fi\n"
    "    done\n"
    "    (( $#candidates )) && _describe weir candidates\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _weir ]; then _weir \"$@\"; else compdef _weir weir; fi\n";

static const char fish[] =
    "# weir's completion for fish.  To try it: weir completion fish | source\n"
    "function __weir_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] completion words -- $words[2..-1])\n"
    "        if test \"$line\" = :\n"
    "            __fish_complete_path (commandline -ct)\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c weir -f -a '(__weir_complete)'\n";

/* ------------------------------------------------------------------ candidates ---- */

static void print_word(const char *word, size_t len, const char *help)
{
    printf("%.*s\t%s\n", (int)len, word, help);
}

/* The commands' words after `first` (NULL: their first words). */
static void print_commands(const char *first)
{
    const struct weir__command *row, *before;
    size_t skip = first ? strlen(first) + 1 : 0;

    for (size_t i = 0; (row = weir__command_row(i)) != NULL; i++) {
        const char *word = row->name + skip;
        size_t len = strcspn(row->name, " ");
        if (first && (strncmp(row->name, first, skip - 1) != 0 || row->name[skip - 1] != ' '))
            continue;
        before = i > 0 ? weir__command_row(i - 1) : NULL;
        if (first)
            print_word(word, strlen(word), row->summary);
        else if (!row->name[len])
            print_word(row->name, len, row->summary);
        else if (!before || strncmp(before->name, row->name, len + 1) != 0)
            print_word(row->name, len, "more commands");
    }
}

static void print_options(const struct weir__command *command)
{
    const struct weir__option *o;

    puts("--help\tshow this");
    for (size_t i = 0; (o = weir__options_row(command, i)) != NULL; i++) {
        if (o->kind != WEIR__OPTION_SECRET)
            printf("--%s\t%s\n", o->name, o->help);
    }
}

/* Is the word an option that takes a value?  *file: is that a file? */
static bool takes_value(const struct weir__command *command, const char *word, bool *file)
{
    const struct weir__option *o;

    for (size_t i = 0; word[0] == '-' && (o = weir__options_row(command, i)) != NULL; i++) {
        *file = o->value && strcmp(o->value, "FILE") == 0;
        if (o->value && (word[1] == '-' ? strcmp(word + 2, o->name) == 0
                                        : o->letter && word[1] == o->letter && !word[2]))
            return true;
    }
    return false;
}

/* Does the usage name files, other than as an option's value? */
static bool takes_files(const char *usage)
{
    for (const char *file = usage; (file = strstr(file, "FILE")) != NULL; file += 4) {
        const char *word = file;
        while (word > usage && strchr(" [", word[-1]))
            word--;
        bool alone = word > usage && word[-1] == ']';
        while (word > usage && !strchr(" [|", word[-1]))
            word--;
        if (alone || strncmp(word, "--", 2) != 0)
            return true;
    }
    return strstr(usage, ".LOG") || strstr(usage, "OLD NEW");
}

/* The usage's alternatives: lower-case words beside a '|', except options and their values. */
static void print_choices(const char *usage)
{
    for (const char *c = usage; *c;) {
        size_t len = strspn(c, "abcdefghijklmnopqrstuvwxyz-");
        bool whole = c == usage || !(isalnum((unsigned char)c[-1]) || c[-1] == '=');
        if (len > 0 && whole && c[0] != '-' && (c[len] == '|' || (c > usage && c[-1] == '|')))
            print_word(c, len, "");
        c += len ? len : 1;
    }
}

static const struct weir__command *find_command(char **words, int n, int *used)
{
    const struct weir__command *row;
    char two[64];

    for (size_t i = 0; (row = weir__command_row(i)) != NULL; i++) {
        snprintf(two, sizeof(two), "%s %s", words[0], n > 2 ? words[1] : "");
        *used = strchr(row->name, ' ') ? 2 : 1;
        if (strcmp(row->name, *used == 2 ? two : words[0]) == 0)
            return row;
    }
    return NULL;
}

static void complete(char **words, int n)
{
    const char *current = words[n - 1];
    bool file = false;
    int used = 0;

    if (n == 1) {
        print_commands(NULL);
        puts("--help\tshow the commands\n--version\tshow the version");
        return;
    }
    const struct weir__command *command = find_command(words, n, &used);
    if (!command) {
        print_commands(words[0]);
    } else if (n - 2 >= used && takes_value(command, words[n - 2], &file)) {
        printf("%s", file ? ":\n" : "");
    } else if (current[0] == '-') {
        print_options(command);
    } else {
        print_choices(command->arguments);
        printf("%s", takes_files(command->arguments) ? ":\n" : "");
    }
}

/* ----------------------------------------------------------------- command ---- */

static int run(const struct weir__call *call)
{
    const char *word = call->words[0];

    if (strcmp(word, "words") == 0 && call->n > 1)
        complete(call->words + 1, call->n - 1);
    else if (strcmp(word, "bash") == 0)
        fputs(bash, stdout);
    else if (strcmp(word, "zsh") == 0)
        fputs(zsh, stdout);
    else if (strcmp(word, "fish") == 0)
        fputs(fish, stdout);
    else
        return weir__command_wrong(call->self, "there is no completion for '%s'", word);
    return WEIR__EXIT_OK;
}

const struct weir__command weir__cmd_completion = {
    .name = "completion",
    .summary = "print a shell's completion script",
    .arguments = "bash|zsh|fish",
    .help = "  source <(weir completion bash)\n"
            "  weir completion zsh >DIRECTORY-OF-FPATH/_weir\n"
            "  weir completion fish >~/.config/fish/completions/weir.fish\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use.",
    WEIR__COMMAND_OPTIONS(rows, .none = false),
    .words_min = 1,
    .words_max = WEIR__ANY_WORDS,
    .run = run,
};
