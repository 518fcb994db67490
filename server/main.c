/* main.c -- the `weir` command: its table of commands, and the way from the first word to one of them. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "options.h"
#include "text.h"

static const char take_notes[] =
    "Exit code: 0 granted, 1 refused, 2 wrong use.  The table file is made if it is not there; in /dev/shm it stays in memory.\n"
    "Limits with the same text share their keys; with --name they share them under that name, and another --limit changes the\n"
    "limit while every key keeps what it has used.  A name that is there already needs no --limit.\n"
    "A limit: 300/60, 100/5s, 10r/s, 1000/h burst 50, gcra 5/1m burst 3.  The algorithms: weir limits";

static const char vectors_notes[] =
    "A .vec file says what an algorithm does, line by line.  Each mismatch is one line, file:line: expected ... got ...; the last line\n"
    "is: N passed, M failed (cases, at each door).  Exit code: 0 all passed, 1 some failed, 2 a file could not be read.";

#define ASK_USAGE "--table FILE --limit TEXT [options] KEY"

static const struct weir__command commands[] = {
    { "take", "take units from a key, if its limit lets them", ASK_USAGE, take_notes, weir__cmd_take_options, weir__cmd_take },
    { "peek", "say what take would answer, and take nothing", ASK_USAGE, take_notes, weir__cmd_peek_options, weir__cmd_peek },
    { "give", "give back units taken before", ASK_USAGE, take_notes, weir__cmd_give_options, weir__cmd_give },
    { "table", "show what a table file holds", "[options] FILE", NULL, weir__cmd_table_options, weir__cmd_table },
    { "limits", "list the algorithms", "", NULL, weir__cmd_limits_options, weir__cmd_limits },
    { "vectors", "check the algorithms against example files", "[options] FILE...", vectors_notes, weir__cmd_vectors_options,
      weir__cmd_vectors },
    { "demo", "show every algorithm over the same burst of traffic", "[options]", NULL, weir__cmd_demo_options, weir__cmd_demo },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int help(void)
{
    printf("usage: weir COMMAND [options]\n\nRate limits by key, shared by every process of a host.\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    printf("\nweir COMMAND --help says more of one; weir --version says which this is.\n");
    return WEIR__EXIT_OK;
}

static int unknown(const char *word)
{
    const char *names[COMMANDS + 3];
    size_t n = 0;

    for (; n < COMMANDS; n++)
        names[n] = commands[n].name;
    names[n++] = "--help";
    names[n++] = "--version";
    names[n] = NULL;
    const char *near = weir__text_nearest(names, word, strlen(word));
    const char *what = word[0] == '-' ? "option" : "command";
    if (near)
        weir__complain(NULL, "there is no %s '%s'; did you mean %s?", what, word, near);
    else
        weir__complain(NULL, "there is no %s '%s'; see: weir --help", what, word);
    return WEIR__EXIT_WRONG;
}

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;

    if (!word) {
        weir__complain(NULL, "which command? see: weir --help");
        return WEIR__EXIT_WRONG;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0)
            return commands[i].run(&commands[i], argc - 2, argv + 2);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help();
    if (strcmp(word, "--version") == 0) {
        printf("weir %s\n", weir_version());
        return WEIR__EXIT_OK;
    }
    return unknown(word);
}

/* An answer that could not be written was not given. */
int main(int argc, char **argv)
{
    int code = run(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    weir__complain(NULL, "the output could not be written");
    return WEIR__EXIT_WRONG;
}
