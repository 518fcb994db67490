/* sim.c -- `weir sim`: tries a guard's controllers against overload, on a simulated backend. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "server/base/file.h"
#include "server/base/command.h"
#include "server/describe/rules-file.h"
#include "server/sim/sim.h"
#include "server/base/complain.h"

#define CONTROLLERS_MAX 32

struct options {
    const char *controllers, *svg;
    int64_t seed;
    bool all, json, tsv, groups;
};

static const struct weir__option rows[] = {
    WEIR__TEXT("controller", 'c', controllers, "LIST",
               "the controllers to try: none, fixed, fixed:N, weir, aimd, ...; default all"),
    WEIR__COUNT("seed", 0, seed, 1, "seed of the random numbers; default the scenario's"),
    WEIR__SWITCH("all", 0, all, "run every built-in scenario"),
    WEIR__SWITCH("clients", 0, groups, "also show each group of clients"),
    WEIR__SWITCH("json", 0, json, "print everything, with the series, as JSON"),
    WEIR__SWITCH("tsv", 0, tsv, "print name, value and unit, as the benchmarks do"),
    WEIR__TEXT("svg", 0, svg, "FILE", "write a drawing over time"),
    { 0 },
};

/* ------------------------------------------------------------------ scenarios ---- */

static const struct weir__embedded *find_built_in(const char *name)
{
    for (const struct weir__embedded *e = weir__sim_files; e->name; e++) {
        if (strcmp(e->name, name) == 0)
            return e;
    }
    return NULL;
}

/* A file's name without its folders and extension. */
static void name_plan(struct weir__sim_plan *plan, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    snprintf(plan->name, sizeof(plan->name), "%.*s",
             (int)(dot && dot > name ? dot - name : (long)strlen(name)), name);
}

static bool parse(const struct weir__command *self, const char *path, const char *text, size_t len,
                  struct weir__sim_plan *out)
{
    struct weir__problems problems = { .name = path };
    struct weir_rules_options options = { .name = path,
                                          .problem = weir__problem_say,
                                          .context = &problems };
    struct weir_error error = { 0 };

    if (weir__sim_plan_parse(out, text, len, &options, &error) == WEIR_OK) {
        name_plan(out, path);
        return true;
    }
    if (problems.n == 0)
        weir__complain(self->name, "%s: %s", path, error.text);
    return false;
}

static bool complain_of_file(const struct weir__command *self, const char *path)
{
    const char *names[64];
    size_t n = 0;

    for (const struct weir__embedded *e = weir__sim_files; e->name && n < 64; e++)
        names[n++] = e->name;
    if (errno == ENOENT)
        weir__complain(
            self->name, "there is no scenario or file '%s'; %s", path,
            weir__hint_or(path, strlen(path), names, n, "weir sim lists the scenarios").text);
    else if (errno == EFBIG)
        weir__complain(self->name, "%s has more than %d bytes", path, WEIR__SIM_TEXT);
    else
        weir__complain(self->name, "%s cannot be read: %s", path, strerror(errno));
    return false;
}

/* One that is in the program, or a file. */
static bool read_plan(const struct weir__command *self, const char *path,
                      struct weir__sim_plan *out)
{
    const struct weir__embedded *built_in = find_built_in(path);
    size_t len;

    if (built_in)
        return parse(self, path, built_in->text, built_in->len, out);
    char *text = weir__file_read(path, WEIR__SIM_TEXT, &len);
    if (text == NULL)
        return complain_of_file(self, path);
    bool good = parse(self, path, text, len, out);
    free(text);
    return good;
}

static int list_scenarios(const struct weir__command *self)
{
    struct weir__sim_plan *plan = calloc(1, sizeof(*plan));

    for (const struct weir__embedded *e = weir__sim_files; plan && e->name; e++) {
        if (!parse(self, e->name, e->text, e->len, plan)) {
            free(plan);
            return WEIR__EXIT_WRONG;
        }
        printf("%-22s %s\n", e->name, plan->about);
    }
    free(plan);
    printf("\nweir sim NAME runs one, weir sim FILE one of yours, weir sim --all all of them.\n");
    return WEIR__EXIT_OK;
}

/* ---------------------------------------------------------------- controllers ---- */

struct controllers {
    char names[CONTROLLERS_MAX][32];
    size_t n;
};

static bool add(const struct weir__command *self, struct controllers *c, const char *name,
                size_t len)
{
    struct weir_error error = { 0 };
    char copy[32];

    if (len >= sizeof(copy) || c->n == CONTROLLERS_MAX) {
        weir__complain(
            self->name,
            len >= sizeof(copy) ? "'%s' is not a controller" : "%s: too many controllers", name);
        return false;
    }
    snprintf(copy, sizeof(copy), "%.*s", (int)len, name);
    if (!weir__sim_knows(copy, &error)) {
        weir__complain(self->name, "%s", error.text);
        return false;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->names[i], copy) == 0)
            return true;
    }
    memcpy(c->names[c->n++], copy, sizeof(copy));
    return true;
}

static bool add_all(const struct weir__command *self, struct controllers *c)
{
    bool good = add(self, c, "none", 4) && add(self, c, "fixed", 5);

    for (const char *const *name = weir_controllers(); good && *name; name++)
        good = add(self, c, *name, strlen(*name));
    return good;
}

static bool read_controllers(const struct weir__command *self, const char *list,
                             struct controllers *c)
{
    if (list == NULL)
        return add_all(self, c);
    for (const char *at = list; *at;) {
        size_t len = strcspn(at, ",");
        if (len == 3 && memcmp(at, "all", 3) == 0 ? !add_all(self, c) : !add(self, c, at, len))
            return false;
        at += len + (at[len] == ',');
    }
    if (c->n == 0)
        weir__complain(self->name, "--controller needs a name, such as weir");
    return c->n > 0;
}

/* --------------------------------------------------------------------- trials ---- */

struct job {
    const struct weir__command *self;
    const struct options *options;
    struct controllers controllers;
    struct weir__sim_outcome *outcomes[CONTROLLERS_MAX];
    size_t n; /* of the plan at hand */
    struct weir__output svg;
    bool first; /* nothing was printed yet */
};

static void tell(const struct weir__sim_plan *plan, const char *controller)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\x1b[K%s%s%s", plan ? plan->name : "", plan ? ", " : "",
                plan ? controller : "");
}

/* percentile needs the scenario's target: without one it is left out, unless asked for by name. */
static bool is_left_out(const struct job *job, const struct weir__sim_plan *plan,
                        const char *controller)
{
    bool named =
        job->options->controllers != NULL && strstr(job->options->controllers, controller) != NULL;

    if (strcmp(controller, "percentile") != 0 || plan->guard.adaptive.target > 0 || named)
        return false;
    tell(NULL, NULL);
    fprintf(stderr,
            "weir sim: %s: percentile is left out, since it needs a time to keep to; write one, as "
            "in guard: { target: 200ms }\n",
            plan->name);
    return true;
}

static bool run_all(struct job *job, const struct weir__sim_plan *plan)
{
    struct weir_error error = { 0 };
    bool good = true;

    job->n = 0;
    for (size_t i = 0; good && i < job->controllers.n; i++) {
        struct weir__sim_options options = { .controller = job->controllers.names[i],
                                             .seed = (uint64_t)job->options->seed };
        if (is_left_out(job, plan, options.controller))
            continue;
        tell(plan, options.controller);
        good = weir__sim_run(job->outcomes[job->n++], plan, &options, &error) == WEIR_OK;
        if (!good) {
            tell(NULL, NULL);
            weir__complain(job->self->name, "%s, %s: %s", plan->name, options.controller,
                           error.text);
        }
    }
    tell(NULL, NULL);
    return good;
}

static void print(struct job *job)
{
    const struct weir__sim_outcome *const *outcomes =
        (const struct weir__sim_outcome *const *)job->outcomes;
    size_t n = job->n;

    for (size_t i = 0; job->options->json && i < n; i++) {
        fputs(job->first && i == 0 ? "[" : ",\n", stdout);
        weir__sim_json(stdout, outcomes[i]);
    }
    for (size_t i = 0; job->options->tsv && i < n; i++)
        weir__sim_tsv(stdout, outcomes[i]);
    if (!job->options->json && !job->options->tsv) {
        weir__sim_table(stdout, outcomes, n);
        if (job->options->groups || outcomes[0]->plan->n_groups > 1)
            weir__sim_groups(stdout, outcomes, n);
    }
    if (job->svg.file && weir__file_empty(job->svg.file))
        weir__sim_svg(job->svg.file, outcomes, n);
    job->first = false;
}

static bool run_one(struct job *job, const char *path)
{
    struct weir__sim_plan *plan = calloc(1, sizeof(*plan));
    bool good = plan && read_plan(job->self, path, plan) && run_all(job, plan);

    if (good)
        print(job);
    free(plan);
    return good;
}

static bool run_paths(struct job *job, int n, char **paths)
{
    bool good = true;

    for (const struct weir__embedded *e = weir__sim_files; job->options->all && good && e->name;
         e++)
        good = run_one(job, e->name);
    for (int i = 0; good && i < n; i++)
        good = run_one(job, paths[i]);
    if (job->options->json && !job->first)
        fputs("]\n", stdout);
    return good;
}

static int run(struct job *job, int n, char **paths)
{
    const char *svg = job->options->svg;
    bool good = read_controllers(job->self, job->options->controllers, &job->controllers);

    for (size_t i = 0; i < job->controllers.n; i++) {
        job->outcomes[i] = calloc(1, sizeof(*job->outcomes[i]));
        good = good && job->outcomes[i];
    }
    if (good && svg && !weir__output_open(&job->svg, svg)) {
        weir__complain(job->self->name, "%s cannot be written: %s", svg, strerror(errno));
        good = false;
    }
    good = good && run_paths(job, n, paths);
    if (!weir__output_close(&job->svg, !good)) {
        weir__complain(job->self->name, "%s could not be written: %s", svg, strerror(errno));
        good = false;
    }
    for (size_t i = 0; i < job->controllers.n; i++)
        free(job->outcomes[i]);
    return good ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
}

static const char *find_mistake(const struct options *o, int rest)
{
    if (o->json && o->tsv)
        return "--json or --tsv, not both";
    if (o->all && rest)
        return "--all runs the built-in scenarios; name no others";
    if (o->svg && (o->all || rest != 1))
        return "--svg draws one scenario: name it";
    return NULL;
}

static int start(const struct weir__call *call)
{
    const struct options *o = call->options;

    if (call->n == 0 && !o->all && !o->svg)
        return list_scenarios(call->self);
    const char *mistake = find_mistake(o, call->n);
    if (mistake)
        return weir__complain(call->self->name, "%s", mistake);
    struct job job = { .self = call->self, .options = o, .first = true };
    return run(&job, call->n, call->words);
}

const struct weir__command weir__cmd_sim = {
    .name = "sim",
    .summary = "try a guard's controllers against overload",
    .arguments = "[options] [SCENARIO|FILE...]",
    .help = "Runs clients, a guard and a backend on virtual time, and shows how much useful work "
            "each controller gets done at many times the load. The guard is the real one; clients "
            "and backend are a scenario (docs/sim.md). Without a word, lists the built-in "
            "scenarios. The same seed gives the same output.\n"
            "\n"
            "  weir sim overload-10x\n"
            "  weir sim --svg picture.svg my.yaml\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use or a wrong scenario.",
    WEIR__COMMAND_OPTIONS(rows, .seed = 0),
    .words_max = WEIR__ANY_WORDS,
    .run = start,
};
