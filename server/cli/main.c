/* main.c -- the `weir` command: its table of commands, and the way from the first word to one of
 * them. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "server/base/command.h"
#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/base/text.h"

#define WAY_TO_WRITE                                                                             \
    "A limit: 300/60, 100/5s, 10r/s, 1000/h burst 50, gcra 5/1m burst 3.  The algorithms: weir " \
    "limits"

static const char take_notes[] = "Exit code: 0 granted, 1 refused, 2 wrong use.  The table file is "
                                 "made if it is not there; in /dev/shm it stays in memory.\n"
                                 "Limits with the same text share their keys; with --name they "
                                 "share them under that name, and another --limit changes the\n"
                                 "limit while every key keeps what it has used.  A name that is "
                                 "there already needs no --limit.\n" WAY_TO_WRITE;

static const char peek_notes[] = "Exit code: 0 it would be granted, 1 refused, 2 wrong use.  The "
                                 "table file must be there: weir take makes one.\n"
                                 "A limiter that is there under --name needs no --limit; only weir "
                                 "take changes a limit.\n" WAY_TO_WRITE;

static const char give_notes[] =
    "Exit code: 0 given back, 2 wrong use.  The table file must be there: weir take makes one.  No "
    "key gets more than its limit has.\n"
    "A limiter that is there under --name needs no --limit; only weir take changes a "
    "limit.\n" WAY_TO_WRITE;

static const char bans_notes[] =
    "The keys that rules keep out at present, of a running server or of a table file: since when, "
    "for how long yet, and how often.\n"
    "weir bans --lift --rule login 192.0.2.7 lets one in at once; names and keys as listed.  weir "
    "bans --add --rule login --for 10m "
    "192.0.2.7\n"
    "keeps one out.  Exit code: 0 done, 1 that key is not banned, 2 wrong use or no server.";

static const char rules_check_notes[] =
    "Each file that is right is one line: N rules, M limits, G guards, K list entries.  Each "
    "mistake is named with its place, the line\n"
    "itself and a caret.  - is stdin.  Exit code: 0 all are right, 1 some are wrong, 2 a file "
    "cannot be read.";

static const char rules_diff_notes[] = "What changes, and for whom, when NEW takes the place of "
                                       "OLD.  Exit code: 0 nothing, 1 something, 2 a file\n"
                                       "is wrong or cannot be read.";

static const char replay_notes[] =
    "Replays access logs (nginx and Apache combined, JSON lines; gzip too; - is standard input; "
    "several in the order of time) on virtual "
    "time and\n"
    "reports what would have been refused: by rule, to whom, when.  Exit code: 0 done, 2 wrong use "
    "or a log that cannot be read.\n"
    "weir replay --rules rules.yaml --html report.html access.log.1.gz access.log";

static const char sim_notes[] =
    "Clients, a guard and a backend on virtual time: how much useful work is done at many times "
    "the load, with each controller of guards.\n"
    "The guard is the real one, the rest a scenario (docs/sim.md).  Without a word it lists the "
    "scenarios it has; weir sim overload-10x runs\n"
    "one, weir sim my.yaml your own.  The same seed gives the same output.  Exit code: 0 done, 2 "
    "wrong use or a wrong scenario.";

static const char explain_notes[] =
    "weir explain ip=192.0.2.7 uri=/login method=POST: which rules apply and why the others do "
    "not, which would refuse, what is left of "
    "each\n"
    "limit and when it frees.  Nothing is taken.  Asks a running server, or reads a rule file: "
    "--rules rules.yaml.\n"
    "The verdict is that of weir check; if guards apply, a line says what entering them would come "
    "to.\n"
    "Exit code: 0 a check would be allowed, 1 refused, 2 wrong use or no server.";

static const char check_notes[] =
    "weir check ip=192.0.2.7 uri=/login method=POST: asks a running server, which charges the "
    "request.  Exit code: 0 allowed, 1 refused,\n"
    "2 wrong use or no server.  weir explain says why, and charges nothing.\n" WEIR__REMOTE_NOTE;

static const char mode_notes[] =
    "Without a word: what every rule and guard is told to do, and has done.  enforce refuses, "
    "shadow only counts what it would refuse,\n"
    "off does nothing, as-written gives the switch back to the rule file.  At once, and on every "
    "process that shares the table.\n" WEIR__REMOTE_NOTE;

static const char guards_notes[] =
    "Without a NAME all of them; with one also what has changed lately.  --force open refuses "
    "everybody, closed lets everybody through "
    "the\n"
    "breaker, none gives it back: it begins anew, closed.  At once, and on every process that "
    "shares the table.\n"
    "IN/LIMIT: permits that are out, of so many.  WAITING: asks in its queue, at this server.  "
    "P50, P99: the time of what succeeded.\n"
    "GOOD: work that succeeded; BAD: that failed, timed out or was dropped.  SHADOW: let in, but "
    "refused if the mode were enforce.\n"
    "LETS: while it sheds, so much of what comes is let in.  weir mode --rule NAME switches a "
    "guard's mode.\n" WEIR__REMOTE_NOTE;

static const char degrade_notes[] =
    "A guard with `degrade: N` refuses everybody while the degradation is N or more: the least "
    "important goes first.\n"
    "0 is none, 9 the highest; auto follows the guards' breakers and system "
    "protection.\n" WEIR__REMOTE_NOTE;

static const char reset_notes[] = "weir reset ip=192.0.2.7 uri=/login: what the keys of this "
                                  "request have used is forgotten.\n" WEIR__REMOTE_NOTE;

static const char lists_notes[] = "weir lists --add deny ip 203.0.113.0/24 198.51.100.7; weir "
                                  "lists --remove deny ip 198.51.100.7.  Kept "
                                  "with the table file.\n" WEIR__REMOTE_NOTE;

static const char events_notes[] =
    "Limiting that begins and ends, bans, switches, reloads: those that the server still has, "
    "oldest first. "
    " With --follow also those that\n"
    "happen; if the connection is lost it is made again, and none is missed.\n" WEIR__REMOTE_NOTE;

static const char top_notes[] = "Decisions a second, rule by rule, the keys that are refused most, "
                                "bans, the table: drawn anew every "
                                "second until q or Ctrl-C.\n" WEIR__REMOTE_NOTE;

static const char completion_notes[] =
    "bash: source <(weir completion bash)\n"
    "zsh:  weir completion zsh >DIRECTORY-OF-FPATH/_weir\n"
    "fish: weir completion fish >~/.config/fish/completions/weir.fish";

static const char rules_set_notes[] =
    "Puts another rule file in force, and the server keeps it.  If anything is wrong with it "
    "nothing changes, and each mistake is named as "
    "by\n"
    "weir rules check.  - is stdin.  Exit code: 0 in force, 1 the rules are wrong, 2 wrong use or "
    "no server.\n" WEIR__REMOTE_NOTE;

static const char rules_reload_notes[] = "The server reads its rule file again.  Exit code: 0 in "
                                         "force, 1 the rules are wrong and nothing "
                                         "changed, 2 wrong use or no server.\n" WEIR__REMOTE_NOTE;

#define ASK_USAGE "--table FILE --limit TEXT [options] KEY"

static const struct weir__command commands[] = {
    { "serve", "answer Redis clients, HTTP clients and proxies", "[settings]", NULL,
      weir__cmd_serve_options, weir__cmd_serve },
    { "check", "ask a server whether a request may pass", "[options] NAME=VALUE...", check_notes,
      weir__cmd_check_options, weir__cmd_check },
    { "take", "take units from a key, if its limit lets them", ASK_USAGE, take_notes,
      weir__cmd_take_options, weir__cmd_take },
    { "peek", "say what take would answer, and take nothing", ASK_USAGE, peek_notes,
      weir__cmd_peek_options, weir__cmd_peek },
    { "give", "give back units taken before", ASK_USAGE, give_notes, weir__cmd_give_options,
      weir__cmd_give },
    { "table", "show what a table file holds", "[options] FILE", NULL, weir__cmd_table_options,
      weir__cmd_table },
    { "bans", "list the keys that rules keep out; ban one, or let one in again",
      "[--server ADDRESS | --table FILE] [--rule NAME] [--add --for TIME KEY | --lift KEY]",
      bans_notes, weir__cmd_bans_options, weir__cmd_bans },
    { "lists", "show the lists that rules look at, or change them",
      "[options] [--add|--remove LIST ATTRIBUTE ENTRY...]", lists_notes, weir__cmd_lists_options,
      weir__cmd_lists },
    { "mode", "show what rules are told to do, or switch them",
      "[enforce|shadow|off|as-written] [--rule NAME] [options]", mode_notes, weir__cmd_mode_options,
      weir__cmd_mode },
    { "guards", "show what bounds work in progress, or force a breaker",
      "[NAME] [--force open|closed|none] [--server ADDRESS | --table FILE]", guards_notes,
      weir__cmd_guards_options, weir__cmd_guards },
    { "degrade", "show the degradation, or set it", "[0..9|auto] [options]", degrade_notes,
      weir__cmd_degrade_options, weir__cmd_degrade },
    { "reset", "forget what a request's keys have used", "[--rule NAME] [options] NAME=VALUE...",
      reset_notes, weir__cmd_reset_options, weir__cmd_reset },
    { "status", "say how a server is doing", "[options]", WEIR__REMOTE_NOTE,
      weir__cmd_status_options, weir__cmd_status },
    { "events", "show what has happened at a server, or follow it", "[--follow] [options]",
      events_notes, weir__cmd_events_options, weir__cmd_events },
    { "top", "show a server at work, live", "[options]", top_notes, weir__cmd_top_options,
      weir__cmd_top },
    { "limits", "list the algorithms", "", NULL, weir__cmd_limits_options, weir__cmd_limits },
    { "rules check", "say what is wrong with rule files", "[options] FILE...", rules_check_notes,
      weir__cmd_rules_check_options, weir__cmd_rules_check },
    { "rules diff", "say what changes from one rule file to another", "[options] OLD NEW",
      rules_diff_notes, weir__cmd_rules_diff_options, weir__cmd_rules_diff },
    { "rules schema", "print the JSON Schema of rule files, for editors", "", NULL,
      weir__cmd_rules_schema_options, weir__cmd_rules_schema },
    { "rules get", "print the rules that a server has in force", "[options]", WEIR__REMOTE_NOTE,
      weir__cmd_rules_get_options, weir__cmd_rules_get },
    { "rules set", "put other rules in force at a server", "[options] FILE", rules_set_notes,
      weir__cmd_rules_set_options, weir__cmd_rules_set },
    { "rules reload", "let a server read its rule file again", "[options]", rules_reload_notes,
      weir__cmd_rules_reload_options, weir__cmd_rules_reload },
    { "explain", "say what the rules make of a request, and why",
      "[--server ADDRESS | --rules FILE] [options] NAME=VALUE...", explain_notes,
      weir__cmd_explain_options, weir__cmd_explain },
    { "replay", "say what rules would have done to the requests of an access log",
      "--rules FILE [options] ACCESS.LOG...", replay_notes, weir__cmd_replay_options,
      weir__cmd_replay },
    { "sim", "try a guard's controllers against overload, on virtual time",
      "[options] [SCENARIO|FILE...]", sim_notes, weir__cmd_sim_options, weir__cmd_sim },
    { "demo", "show every algorithm over the same burst of traffic", "[options]", NULL,
      weir__cmd_demo_options, weir__cmd_demo },
    { "completion", "print what a shell needs to complete these words", "bash|zsh|fish",
      completion_notes, weir__cmd_completion_options, weir__cmd_completion },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct weir__command *weir__command_row(size_t i)
{
    return i < COMMANDS ? &commands[i] : NULL;
}

static int help(void)
{
    printf("usage: weir COMMAND [options]\n\nRate limits by key, shared by every process of a "
           "host.\n\ncommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-13s %s\n", commands[i].name, commands[i].summary);
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
    const char *near = weir__nearest(word, strlen(word), names, WEIR__TO_NULL);
    const char *what = word[0] == '-' ? "option" : "command";
    if (near)
        weir__complain(NULL, "there is no %s '%s'; did you mean %s?", what, word, near);
    else
        weir__complain(NULL, "there is no %s '%s'; see: weir --help", what, word);
    return WEIR__EXIT_WRONG;
}

/* How many words of argv name this command: 0 if they name another. */
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

/* Whether it is the first word of commands of two. */
static bool is_group(const char *word)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (in_group(&commands[i], word))
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
        if (in_group(&commands[i], word))
            fprintf(to, "  %-13s %s\n", commands[i].name, commands[i].summary);
    }
    return second ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
}

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;

    if (!word) {
        weir__complain(NULL, "which command? see: weir --help");
        return WEIR__EXIT_WRONG;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        int words = count_words(&commands[i], argc - 1, argv + 1);
        if (words)
            return commands[i].run(&commands[i], argc - 1 - words, argv + 1 + words);
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

/* An answer that could not be written was not given. */
int main(int argc, char **argv)
{
    int code = run(argc, argv);

    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    weir__complain(NULL, "the output could not be written");
    return WEIR__EXIT_WRONG;
}
