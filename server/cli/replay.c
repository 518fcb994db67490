/* replay.c -- `weir replay`: rules tried on the requests of an access log. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/file.h"
#include "server/base/options.h"
#include "server/replay/progress.h"
#include "server/replay/report.h"
#include "server/describe/rules-file.h"
#include "server/base/complain.h"
#include "server/base/human-numbers.h"
#include "server/base/terminal.h"
#include "server/base/safe-text.h"

struct options {
    const char *rules, *compare, *html, *svg, *format, *map, *propose, *differ, *client;
    int64_t top, keys;
    weir_time wait_max;
    bool json, enforce;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("rules", 'r', rules, "FILE", "the rules to try"),
    WEIR__TEXT("compare", 0, compare, "FILE", "other rules; reports where the two differ"),
    WEIR__SWITCH("enforce", 0, enforce, "as if rules in shadow enforced"),
    WEIR__TEXT("propose", 0, propose, "SHARE",
               "for each limit, the count that refuses at most this share of its keys: 1%"),
    WEIR__TEXT("html", 0, html, "FILE", "write a page with plots; it needs no network"),
    WEIR__TEXT("svg", 0, svg, "FILE", "write the plot over time"),
    WEIR__SWITCH("json", 0, json, "print everything as JSON"),
    WEIR__TEXT("differ", 0, differ, "FILE",
               "with --compare: write each request decided differently, as JSON lines"),
    WEIR__TEXT("format", 0, format, "NAME", "log format: auto, combined or json; default auto"),
    WEIR__TEXT("map", 0, map, "MAP", "attribute=field,...: fields of the log: account=user.id"),
    WEIR__TEXT("client", 0, client, "NAME", "the attribute that tells clients apart; default ip"),
    WEIR__VALUE("wait-max", 0, WAIT, wait_max, "TIME",
                "the longest wait of a request for its turn; default 0"),
    WEIR__COUNT("top", 0, top, 1, "rows of each list; default 10"),
    WEIR__COUNT("keys", 0, keys, 1, "room for N keys; default 1000000"),
    { 0 },
};

static volatile sig_atomic_t stopped;

static void stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* The first Ctrl-C ends the reading and reports so far; the second ends the program. */
static void watch_for_stop(void)
{
    struct sigaction action = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

/* ------------------------------------------------------------------ options ---- */

/* "1%", "0.5%", "0.01": in millionths. */
static bool parse_share(const char *text, int64_t *out)
{
    char *end;
    double value = strtod(text, &end);
    bool percent = *end == '%';

    if (end == text || end[percent] || strspn(text, "0123456789.%") != strlen(text))
        return false;
    value /= percent ? 100 : 1;
    if (!(value >= 0 && value < 1) || (value > 0 && value < 1e-6))
        return false;
    *out = (int64_t)(value * WEIR__PROPOSE_PPM + 0.5);
    return true;
}

static const char *find_mistake(const struct options *o, int logs)
{
    if (o->rules == NULL)
        return "which rules? --rules FILE";
    if (logs == 0)
        return "which log? give its file, or - for standard input";
    if (o->differ && !o->compare)
        return "--differ needs --compare: with one rule set nothing is decided differently";
    return NULL;
}

/* False after a complaint. */
static bool read_options(const struct weir__command *self, const struct options *o,
                         struct weir__replay_options *out)
{
    *out = (struct weir__replay_options){ .keys = o->keys,
                                          .wait_max = o->wait_max,
                                          .enforce = o->enforce,
                                          .client = o->client,
                                          .listed = (size_t)(o->top < 10000 ? o->top : 10000),
                                          .propose = -1 };
    if (o->propose && !parse_share(o->propose, &out->propose)) {
        weir__complain(
            self->name,
            "--propose must be a share from 0 to less than 100%%, such as 1%% or 0.01, not '%s'",
            o->propose);
        return false;
    }
    return true;
}

static bool is_regular(const char *path)
{
    struct stat st;

    return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* A wrong name should not cost the time of reading the files before it. */
static bool can_read(const struct weir__command *self, char **logs, int n)
{
    bool can = true;

    for (int i = 0; i < n; i++) {
        if (strcmp(logs[i], "-") == 0 || access(logs[i], R_OK) == 0)
            continue;
        weir__complain(self->name, "%s: %s", logs[i], strerror(errno));
        can = false;
    }
    return can;
}

/* ------------------------------------------------------------------- reading ---- */

struct run {
    const struct weir__command *self;
    const struct options *options;
    struct weir__replay *replay;
    char **logs;
    int n_logs;
    struct weir__progress progress;
    char what[128];
    int64_t lines_before; /* of the logs before this one */
};

static void tell(void *context, int64_t requests, const struct weir__log_figures *figures)
{
    struct run *run = context;

    (void)requests;
    if (run->progress.on)
        weir__progress_tell(
            &run->progress, weir__clock_monotonic(),
            &(struct weir__progress_made){ run->what, run->lines_before + figures->lines,
                                           figures->bytes_read, figures->bytes_all });
}

static void name_reading(struct run *run, int log)
{
    const char *slash = strrchr(run->logs[log], '/');
    char name[40], which[32] = "";

    weir__text_cut(name, sizeof(name), slash ? slash + 1 : run->logs[log],
                   strlen(slash ? slash + 1 : run->logs[log]));
    if (run->n_logs > 1)
        snprintf(which, sizeof(which), " (%d of %d)", log + 1, run->n_logs);
    snprintf(run->what, sizeof(run->what), "%s%s%s", name, which,
             run->replay->passes ? ", again for the proposals" : "");
}

/* One reading of all logs. */
static int read_logs(struct run *run)
{
    struct weir__replay_reading reading = { .format = run->options->format ? run->options->format
                                                                           : "auto",
                                            .map = run->options->map,
                                            .stop = &stopped,
                                            .tell = tell,
                                            .context = run };
    struct weir_error error = { 0 };
    int code = WEIR_OK;

    weir__progress_begin(&run->progress, stderr, weir__clock_monotonic());
    run->lines_before = 0;
    for (int i = 0; i < run->n_logs && code == WEIR_OK && !stopped; i++) {
        name_reading(run, i);
        code = weir__replay_log(run->replay, run->logs[i], &reading, &error);
        run->lines_before = run->replay->passes == 0 ? run->replay->lines : run->lines_before;
    }
    weir__progress_end(&run->progress);
    if (code != WEIR_OK)
        weir__complain(run->self->name, "%s", error.text);
    return code;
}

/* Reads the logs, again and again while that narrows the proposals. */
static int replay(struct run *run)
{
    int code = read_logs(run);
    bool again = weir__replay_end(run->replay), regular = true;

    for (int i = 0; i < run->n_logs; i++)
        regular &= is_regular(run->logs[i]);
    while (again && regular && code == WEIR_OK && !stopped) {
        code = read_logs(run);
        if (code == WEIR_OK && !stopped)
            again = weir__replay_end(run->replay);
    }
    if (code == WEIR_OK && run->replay->requests == 0 && run->replay->bad > 0) {
        weir__complain(run->self->name, "no line was understood; line %lld of %s: %s",
                       (long long)run->replay->first_bad, run->replay->first_bad_file,
                       run->replay->first_bad_why);
        return WEIR_INVALID;
    }
    return code;
}

/* ------------------------------------------------------------------- writing ---- */

/* Opened before the reading: a wrong name should not cost its time. */
static bool open_output(const struct weir__command *self, const char *path,
                        struct weir__output *out)
{
    if (path == NULL || weir__output_open(out, path))
        return true;
    weir__complain(self->name, "%s: %s", path, strerror(errno));
    return false;
}

/* Names the file that was written, except one that a mistake left as it was. */
static bool close_output(const struct weir__command *self, struct weir__output *out, bool done)
{
    long len = out->file ? ftell(out->file) : -1;
    char size[32];

    if (!weir__output_close(out, !done)) {
        weir__complain(self->name, "%s could not be written", out->path);
        return false;
    }
    if (len > 0 || (done && len == 0)) {
        weir__human_bytes(size, sizeof(size), len);
        fprintf(stderr, "wrote %s, %s\n", out->path, size);
    }
    return true;
}

struct outputs {
    struct weir__output html, svg, differ;
};

static void write_reports(const struct run *run, const struct outputs *out)
{
    struct weir__report report = { .replay = run->replay,
                                   .logs = run->logs,
                                   .n_logs = (size_t)run->n_logs,
                                   .top = run->replay->options.listed,
                                   .width = (size_t)weir__terminal_columns(100),
                                   .colours = weir__wants_colours() };

    if (out->html.file && weir__file_empty(out->html.file))
        weir__report_html(out->html.file, &report);
    if (out->svg.file && weir__file_empty(out->svg.file))
        weir__report_svg(out->svg.file, &report);
    if (run->options->json)
        weir__report_json(stdout, &report);
    else
        weir__report_text(stdout, &report);
}

/* --------------------------------------------------------------- the command ---- */

/* Complains about all mistakes of both files. */
static bool read_rules(struct run *run, struct weir__replay_options *options)
{
    const char *paths[WEIR__REPLAY_SIDES] = { run->options->rules, run->options->compare };
    bool all = true;

    for (size_t i = 0; i < WEIR__REPLAY_SIDES && paths[i]; i++) {
        options->names[i] = paths[i];
        options->rules[i] = weir__rules_file_read(run->self->name, paths[i]);
        all &= options->rules[i] != NULL;
    }
    for (size_t i = 0; i < WEIR__REPLAY_SIDES && !all; i++)
        weir_rules_destroy(options->rules[i]);
    return all;
}

static int run_all(struct run *run, struct weir__replay_options *options, const struct outputs *out)
{
    struct weir_error error = { 0 };

    if (!read_rules(run, options))
        return WEIR__EXIT_WRONG;
    if (weir__replay_create(&run->replay, options, &error) != WEIR_OK)
        return weir__complain(run->self->name, "%s", error.text);
    watch_for_stop();
    if (out->differ.file && !weir__file_empty(out->differ.file))
        weir__complain(run->self->name, "%s cannot be emptied", run->options->differ);
    int code = replay(run);
    if (code == WEIR_OK || run->replay->requests > 0) {
        run->replay->partial |= code != WEIR_OK;
        write_reports(run, out);
    }
    weir__replay_destroy(run->replay);
    return code == WEIR_OK ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
}

static int run(const struct weir__call *call)
{
    const struct weir__command *self = call->self;
    const struct options *o = call->options;
    struct weir__replay_options options;
    struct outputs out = { 0 };
    const char *mistake = find_mistake(o, call->n);
    int code = WEIR__EXIT_WRONG;

    if (mistake)
        return weir__complain(self->name, "%s", mistake);
    if (read_options(self, o, &options) && can_read(self, call->words, call->n) &&
        open_output(self, o->html, &out.html) && open_output(self, o->svg, &out.svg) &&
        open_output(self, o->differ, &out.differ)) {
        struct run run = { .self = self, .options = o, .logs = call->words, .n_logs = call->n };
        options.differ = out.differ.file;
        code = run_all(&run, &options, &out);
    }
    fflush(stdout); /* on a terminal, the report comes first */
    bool done = code == WEIR__EXIT_OK, written = close_output(self, &out.html, done);
    written &= close_output(self, &out.svg, done);
    written &= close_output(self, &out.differ, done);
    return written ? code : WEIR__EXIT_WRONG;
}

const struct weir__command weir__cmd_replay = {
    .name = "replay",
    .summary = "try rules on the requests of an access log",
    .arguments = "--rules FILE [options] ACCESS.LOG...",
    .help = "Reads access logs (nginx and Apache combined, JSON lines; also gzipped; - is stdin; "
            "several in order of time), runs the rules on the logs' own times, and reports what "
            "they would have refused: by which rule, to whom, when.\n"
            "\n"
            "  weir replay --rules rules.yaml --html report.html access.log.1.gz access.log\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use or an unreadable log.",
    WEIR__COMMAND_OPTIONS(rows, .top = 10),
    .words_max = WEIR__ANY_WORDS,
    .run = run,
};
