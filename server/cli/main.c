/* main.c -- the `weir` command: the list of its commands, and the way from words to one of them. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/complain.h"
#include "server/cli/ask-server.h"

/* In the order of the help. */
/* clang-format off */
#define EACH_COMMAND(ROW)                                                          \
    ROW(serve) ROW(check) ROW(take) ROW(peek) ROW(give) ROW(table)                 \
    ROW(bans) ROW(lists) ROW(mode) ROW(guards) ROW(run) ROW(degrade) ROW(reset)               \
    ROW(status) ROW(events) ROW(top) ROW(limits)                                   \
    ROW(rules_check) ROW(rules_diff) ROW(rules_schema)                             \
    ROW(rules_get) ROW(rules_set) ROW(rules_reload)                                \
    ROW(redis_status)                                                              \
    ROW(fleet_status) ROW(fleet_nodes) ROW(fleet_rules) ROW(fleet_history)         \
    ROW(fleet_rollback) ROW(fleet_lock)                                            \
    ROW(explain) ROW(replay) ROW(import_nginx) ROW(sim) ROW(demo) ROW(completion)
/* clang-format on */

#define DECLARE(name) extern const struct weir__command weir__cmd_##name;
#define POINT(name)   &weir__cmd_##name,

EACH_COMMAND(DECLARE)

static const struct weir__command *const commands[] = { EACH_COMMAND(POINT) };

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct weir__command *weir__command_row(size_t i)
{
    return i < COMMANDS ? commands[i] : NULL;
}

static int help(void)
{
    printf("usage: weir COMMAND [options]\n\nTraffic control for services: rate limits, "
           "concurrency limits, breakers.\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-14s %s\n", commands[i]->name, commands[i]->summary);
    printf("\nweir COMMAND --help explains one; weir --version prints the version.\n");
    return WEIR__EXIT_OK;
}

/* Words that operators know from elsewhere. */
static const struct {
    const char *word, *hint;
} foreign[] = {
    { "unban", "weir bans --lift ends a ban" },
    { "ban", "weir bans --add bans a key" },
};

static int unknown(const char *word)
{
    const char *names[2 * COMMANDS + 2];
    char groups[COMMANDS][16];
    size_t n = 0;

    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (strcmp(foreign[i].word, word) == 0)
            return weir__complain(NULL, "there is no command '%s'; %s", word, foreign[i].hint);
    for (; n < COMMANDS; n++)
        names[n] = commands[n]->name;
    for (size_t i = 0; !strchr(word, ' ') && i < COMMANDS; i++) {
        snprintf(groups[i], sizeof(groups[i]), "%.*s", (int)strcspn(commands[i]->name, " "),
                 commands[i]->name);
        names[n++] = groups[i];
    }
    names[n++] = "--help";
    names[n++] = "--version";
    return weir__complain(NULL, "there is no %s '%s'; %s", word[0] == '-' ? "option" : "command",
                          word,
                          weir__hint_or(word, strlen(word), names, n, "see: weir --help").text);
}

/* The number of words in argv that name this command; 0: they name another. */
static int count_words(const struct weir__command *command, int argc, char **argv)
{
    const char *space = strchr(command->name, ' ');
    size_t first = space ? (size_t)(space - command->name) : strlen(command->name);

    if (argc < 1 || strncmp(argv[0], command->name, first) != 0 || argv[0][first])
        return 0;
    if (!space)
        return 1;
    return argc > 1 && strcmp(argv[1], space + 1) == 0 ? 2 : 0;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool in_group(const struct weir__command *command, const char *word)
{
    size_t len = strlen(word);

    return strncmp(command->name, word, len) == 0 && command->name[len] == ' ';
}

/* Is it the first word of two-word commands? */
static bool is_group(const char *word)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (in_group(commands[i], word))
            return true;
    }
    return false;
}

static int run_group(const char *word, const char *second)
{
    char both[64];

    if (second && !is_help(second)) {
        snprintf(both, sizeof(both), "%s %s", word, second);
        return unknown(both);
    }
    FILE *to = second ? stdout : stderr;
    fprintf(to, "usage: weir %s COMMAND [options]\n\ncommands:\n", word);
    for (size_t i = 0; i < COMMANDS; i++) {
        if (in_group(commands[i], word))
            fprintf(to, "  %-14s %s\n", commands[i]->name, commands[i]->summary);
    }
    return second ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
}

/* "help check" becomes "check --help". */
static void turn_help(int argc, char **argv)
{
    static char help_option[] = "--help";

    if (argc < 2 || strcmp(argv[1], "help") != 0)
        return;
    memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof(*argv));
    argv[argc - 1] = help_option;
}

static int run(int argc, char **argv)
{
    turn_help(argc, argv);
    const char *word = argc > 1 ? argv[1] : NULL;

    if (!word)
        return weir__complain(NULL, "which command? see: weir --help");
    for (size_t i = 0; i < COMMANDS; i++) {
        int words = count_words(commands[i], argc - 1, argv + 1);
        if (words)
            return weir__command_run(commands[i], argc - 1 - words, argv + 1 + words);
    }
    if (is_group(word))
        return run_group(word, argc > 2 ? argv[2] : NULL);
    if (is_help(word))
        return help();
    if (strcmp(word, "--version") == 0) {
        printf("weir %s\n", weir_version());
        return WEIR__EXIT_OK;
    }
    return unknown(word);
}

/* A standard descriptor that was closed must not become that of a file: a message would be written
 * into it.  To use what stands there now fails as before, and the commands that we run find it
 * closed. */
static bool keep_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int wrong_way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", wrong_way | O_CLOEXEC) != fd)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (!keep_standard_descriptors())
        return WEIR__EXIT_WRONG;
    int code = run(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return weir__complain(NULL, "the output could not be written");
}
