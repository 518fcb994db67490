/* rules.c -- `weir rules check`, `weir rules diff`, `weir rules schema`; and of a running
 * server: `weir rules get`, `set`, `reload`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/command.h"
#include "server/base/file.h"
#include "server/base/options.h"
#include "server/cli/remote.h"
#include "server/describe/rules-diff.h"
#include "match/draft.h"
#include "rulefile/problem.h"
#include "server/base/text.h"

struct options {
    bool json;
};

const struct weir__option weir__cmd_rules_check_options[] = {
    { "json", 0, WEIR__OPTION_SWITCH, offsetof(struct options, json), 0, NULL,
      "print a JSON array, an object for each file" },
    { 0 },
};

const struct weir__option weir__cmd_rules_diff_options[] = {
    { "json", 0, WEIR__OPTION_SWITCH, offsetof(struct options, json), 0, NULL,
      "print a JSON object" },
    { 0 },
};

const struct weir__option weir__cmd_rules_schema_options[] = { { 0 } };

/* ----------------------------------------------------------------- files ---- */

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "stdin" : path;
}

#define BYTES_READ_MAX \
    ((size_t)4 *       \
     WEIR__RULES_TEXT_MAX) /* the reader says what is too much; this only bounds the memory */

/* A file that was read, and what is wrong with it. */
struct reading {
    const char *name;
    bool json;
    long problems;
    struct weir__draft *draft; /* NULL: it cannot be read, or is wrong */
    char *text;
    size_t len;
};

static void print_problem(void *context, const struct weir_problem *p)
{
    struct reading *r = context;
    char line[1024];

    if (!r->json) {
        weir_problem_print(line, sizeof(line), r->name, p);
        puts(line);
    } else {
        printf("%s{\"line\":%d,\"column\":%d,\"text\":", r->problems ? "," : "", p->line,
               p->column);
        weir__json_string(p->text);
        fputs(",\"source\":", stdout);
        weir__json_string(p->source);
        printf(",\"caret\":%d}", p->caret);
    }
    r->problems++;
}

/* What the reader finds is told with its place; what only shows when the set is made is told as it
 * is. */
static void check_text(struct reading *r)
{
    struct weir_rules_options options = {
        .name = r->name, .files = true, .problem = print_problem, .context = r
    };
    struct weir_error error = { 0 };
    struct weir_rules *rules = NULL;
    struct weir_problem whole = { .caret = -1 };

    if (weir__draft_read(&r->draft, r->text, r->len, &options, &error) != WEIR_OK &&
        r->problems > 0)
        return;
    options.problem = NULL;
    if (r->draft && weir_rules_parse(&rules, r->text, r->len, &options, &error) == WEIR_OK) {
        weir_rules_destroy(rules);
        return;
    }
    weir__draft_destroy(r->draft);
    r->draft = NULL;
    snprintf(whole.text, sizeof(whole.text), "%s", error.text);
    print_problem(r, &whole);
}

static void end_reading(struct reading *r)
{
    weir__draft_destroy(r->draft);
    free(r->text);
}

/* ----------------------------------------------------------------- check ---- */

struct counts {
    size_t rules, limits, guards, entries;
};

static struct counts count(const struct weir__draft *draft)
{
    struct counts c = { .rules = draft->n_rules, .guards = draft->n_guards };

    for (size_t i = 0; i < draft->n_rules; i++)
        c.limits += draft->rules[i].n_limits;
    for (size_t i = 0; i < draft->n_lists; i++)
        c.entries += draft->lists[i].n;
    return c;
}

static const char *plural(size_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

static void print_counts(const struct reading *r)
{
    struct counts c = count(r->draft);

    if (r->json)
        printf("],\"ok\":true,\"rules\":%zu,\"limits\":%zu,\"guards\":%zu,\"entries\":%zu}",
               c.rules, c.limits, c.guards, c.entries);
    else
        printf("%s: %zu %s, %zu %s, %zu %s, %zu list %s\n", r->name, c.rules,
               plural(c.rules, "rule", "rules"), c.limits, plural(c.limits, "limit", "limits"),
               c.guards, plural(c.guards, "guard", "guards"), c.entries,
               plural(c.entries, "entry", "entries"));
}

static int check_file(const struct weir__command *self, const char *path, bool json, bool first)
{
    struct reading r = { .name = name_of(path), .json = json };
    int code = WEIR__EXIT_OK;

    r.text = weir__file_read(path, BYTES_READ_MAX, &r.len);
    if (r.text == NULL) {
        const char *why = strerror(errno);
        weir__complain(self->name, "%s: %s", r.name, why);
        if (json) {
            printf("%s{\"file\":", first ? "" : ",\n ");
            weir__json_string(r.name);
            fputs(",\"problems\":[],\"error\":", stdout);
            weir__json_string(why);
            fputs(",\"ok\":false}", stdout);
        }
        return WEIR__EXIT_WRONG;
    }
    if (json) {
        printf("%s{\"file\":", first ? "" : ",\n ");
        weir__json_string(r.name);
        fputs(",\"problems\":[", stdout);
    }
    check_text(&r);
    if (r.draft) {
        print_counts(&r);
    } else {
        code = WEIR__EXIT_NO;
        if (json)
            fputs("],\"ok\":false}", stdout);
    }
    end_reading(&r);
    return code;
}

int weir__cmd_rules_check(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    int files, worst = WEIR__EXIT_OK;
    int code = weir__options_parse(self, argc, argv, &o, &files);

    if (code != WEIR__GO_ON)
        return code;
    if (files == 0) {
        weir__complain(self->name, "which files? usage: weir %s %s", self->name, self->arguments);
        return WEIR__EXIT_WRONG;
    }
    if (o.json)
        putchar('[');
    for (int i = 0, shown = 0; i < files; i++) {
        code = check_file(self, argv[i], o.json, shown == 0);
        shown += code != WEIR__EXIT_WRONG;
        worst = code > worst ? code : worst;
    }
    if (o.json)
        puts("]");
    return worst;
}

/* ------------------------------------------------------------------ diff ---- */

struct showing {
    bool json;
    long n;
    char last[96]; /* the thing whose changes are being shown */
};

static void show_json(struct showing *s, const struct weir__change *c)
{
    const char *const members[][2] = { { "of", c->of },     { "name", c->name },
                                       { "who", c->who },   { "what", c->what },
                                       { "text", c->text }, { "effect", c->effect } };

    fputs(s->n++ ? ",\n " : "\n ", stdout);
    for (size_t i = 0; i < 6; i++) {
        printf("%c\"%s\":", i ? ',' : '{', members[i][0]);
        weir__json_string(members[i][1]);
    }
    putchar('}');
}

static void show_change(void *context, const struct weir__change *c)
{
    struct showing *s = context;
    char head[sizeof(s->last)];

    if (s->json) {
        show_json(s, c);
        return;
    }
    snprintf(head, sizeof(head), "%s%s%s", strcmp(c->of, "file") == 0 ? "the whole file" : c->of,
             *c->name ? " " : "", c->name);
    if (strcmp(head, s->last) != 0)
        printf("%s%s%s%s\n", head, *c->who ? " (" : "", c->who, *c->who ? ")" : "");
    strcpy(s->last, head);
    printf("    %s%s%s\n", c->text, *c->effect ? ": " : "", c->effect);
    s->n++;
}

static int show_difference(const struct weir__command *self, const struct reading *old,
                           const struct reading *new, bool json)
{
    struct showing s = { .json = json };

    if (json)
        fputs("{\"changes\":[", stdout);
    long n = weir__rules_diff(old->draft, new->draft, show_change, &s);
    if (n < 0) {
        weir__complain(self->name, "no memory");
        return WEIR__EXIT_WRONG;
    }
    if (json)
        printf("%s],\"same\":%s}\n", n ? "\n" : "", n ? "false" : "true");
    else if (n == 0)
        puts("no difference");
    return n ? WEIR__EXIT_NO : WEIR__EXIT_OK;
}

/* A problem goes to stderr: what is on stdout is the difference. */
static void complain_problem(void *context, const struct weir_problem *p)
{
    struct reading *r = context;
    char line[1024];

    weir_problem_print(line, sizeof(line), r->name, p);
    fprintf(stderr, "%s\n", line);
    r->problems++;
}

static bool read_side(const struct weir__command *self, struct reading *r, const char *path)
{
    struct weir_rules_options options = {
        .name = name_of(path), .files = true, .problem = complain_problem, .context = r
    };
    struct weir_error error = { 0 };

    *r = (struct reading){ .name = name_of(path) };
    r->text = weir__file_read(path, BYTES_READ_MAX, &r->len);
    if (r->text == NULL)
        weir__complain(self->name, "%s: %s", r->name, strerror(errno));
    else if (weir__draft_read(&r->draft, r->text, r->len, &options, &error) != WEIR_OK &&
             r->problems == 0)
        weir__complain(self->name, "%s: %s", r->name, error.text);
    return r->draft != NULL;
}

int weir__cmd_rules_diff(const struct weir__command *self, int argc, char **argv)
{
    struct options o = { 0 };
    struct reading old, new;
    int files;
    int code = weir__options_parse(self, argc, argv, &o, &files);

    if (code != WEIR__GO_ON)
        return code;
    if (files != 2) {
        weir__complain(self->name, "which two files? usage: weir %s %s", self->name,
                       self->arguments);
        return WEIR__EXIT_WRONG;
    }
    bool good = read_side(self, &old, argv[0]);
    good = read_side(self, &new, argv[1]) && good;
    code = good ? show_difference(self, &old, &new, o.json) : WEIR__EXIT_WRONG;
    end_reading(&old);
    end_reading(&new);
    return code;
}

/* ---------------------------------------------------------------- schema ---- */

int weir__cmd_rules_schema(const struct weir__command *self, int argc, char **argv)
{
    int rest, nothing;
    int code = weir__options_parse(self, argc, argv, &nothing, &rest);

    if (code != WEIR__GO_ON)
        return code;
    if (rest > 0) {
        weir__complain(self->name, "takes no words; found '%s'", argv[0]);
        return WEIR__EXIT_WRONG;
    }
    fputs(weir_rules_schema(), stdout);
    return WEIR__EXIT_OK;
}

/* -------------------------------------------------------- a running server ---- */

struct remote_options {
    struct weir__remote_options remote;
};

#define REMOTE_OPTIONS                                                                    \
    {                                                                                     \
        WEIR__REMOTE_JSON(struct remote_options) WEIR__REMOTE_ROWS(struct remote_options) \
        {                                                                                 \
            0                                                                             \
        }                                                                                 \
    }

const struct weir__option weir__cmd_rules_get_options[] = REMOTE_OPTIONS;
const struct weir__option weir__cmd_rules_set_options[] = REMOTE_OPTIONS;
const struct weir__option weir__cmd_rules_reload_options[] = REMOTE_OPTIONS;

/* Options and connection of all three; WEIR__GO_ON, or the code to end with. */
static int open_remote(const struct weir__command *self, int argc, char **argv, int words,
                       struct weir__remote *r)
{
    struct remote_options o = { 0 };
    int n, code = weir__options_parse(self, argc, argv, &o, &n);

    if (code != WEIR__GO_ON)
        return code;
    if (n != words) {
        weir__complain(self->name, "%s; usage: weir %s %s",
                       words ? "one file is needed" : "takes no words", self->name,
                       self->arguments);
        return WEIR__EXIT_WRONG;
    }
    return weir__remote_open(r, self, &o.remote) ? WEIR__GO_ON : WEIR__EXIT_WRONG;
}

int weir__cmd_rules_get(const struct weir__command *self, int argc, char **argv)
{
    struct weir__remote r;
    int code = open_remote(self, argc, argv, 0, &r);

    if (code != WEIR__GO_ON)
        return code;
    code = weir__remote_ask(&r, "GET", "/v1/rules", NULL) ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
    if (code == WEIR__EXIT_OK && r.options.json) {
        weir__remote_print(&r);
    } else if (code == WEIR__EXIT_OK) {
        const struct weir__scalar *text = weir__document_find(&r.document, "text");
        if (text)
            fwrite(text->text, 1, text->len, stdout);
    }
    weir__remote_close(&r);
    return code;
}

/* The server tells where each problem is; the line itself is taken from the text that it was
 * sent. */
static void print_problems(const struct weir__document *d, struct reading *reading)
{
    struct weir__report *report = malloc(sizeof(*report));
    struct weir_rules_options tell = { .name = reading->name,
                                       .problem = print_problem,
                                       .context = reading };
    const char *text;

    if (!report || weir__report_open(report, reading->text, reading->len, NULL) != WEIR_OK) {
        free(report);
        return;
    }
    for (int i = 0; (text = weir__document_text(d, "problems.%d.text", i)) != NULL; i++) {
        int line = (int)weir__document_number(d, 0, "problems.%d.line", i),
            column = (int)weir__document_number(d, 0, "problems.%d.column", i);
        weir__report_add(report,
                         line > 0 ? weir__report_place(report, line, column) : WEIR__NOWHERE, "%s",
                         text);
    }
    weir__report_tell(report, &tell, NULL);
    weir__report_close(report);
    free(report);
}

static void print_in_force(const struct weir__document *d)
{
    const char *hash = weir__document_text(d, "hash"), *source = weir__document_text(d, "source");

    printf("%lld rules, %lld limits, %lld guards, %lld list entries are in force; ",
           (long long)weir__document_number(d, 0, "rules"),
           (long long)weir__document_number(d, 0, "limits"),
           (long long)weir__document_number(d, 0, "guards"),
           (long long)weir__document_number(d, 0, "entries"));
    weir__print_safely(stdout, hash ? hash : "no rules");
    if (source) {
        printf(", from ");
        weir__print_safely(stdout, source);
    }
    putchar('\n');
}

/* What was put in force, or why it was not: `reading` is the text that was sent, or NULL. */
static int tell_outcome(struct weir__remote *r, struct reading *reading)
{
    bool refused = r->status == 422 && weir__document_find(&r->document, "problems.0.text");

    if (r->status / 100 != 2 && !refused) {
        weir__remote_complain(r);
        return WEIR__EXIT_WRONG;
    }
    if (r->options.json)
        weir__remote_print(r);
    else if (!refused)
        print_in_force(&r->document);
    else if (reading)
        print_problems(&r->document, reading);
    else
        weir__remote_complain(r);
    if (refused && !r->options.json)
        weir__complain(r->command, "nothing was changed");
    return refused ? WEIR__EXIT_NO : WEIR__EXIT_OK;
}

int weir__cmd_rules_set(const struct weir__command *self, int argc, char **argv)
{
    struct weir__remote r;
    int code = open_remote(self, argc, argv, 1, &r);

    if (code != WEIR__GO_ON)
        return code;
    struct reading reading = { .name = name_of(argv[0]) };
    reading.text = weir__file_read(argv[0], BYTES_READ_MAX, &reading.len);
    code = WEIR__EXIT_WRONG;
    if (!reading.text)
        weir__complain(self->name, "%s: %s", reading.name, strerror(errno));
    else if (weir__remote_call(&r, "PUT", "/v1/rules",
                               &(struct weir__buffer){ .bytes = reading.text, .len = reading.len }))
        code = tell_outcome(&r, &reading);
    end_reading(&reading);
    weir__remote_close(&r);
    return code;
}

int weir__cmd_rules_reload(const struct weir__command *self, int argc, char **argv)
{
    struct weir__remote r;
    int code = open_remote(self, argc, argv, 0, &r);

    if (code != WEIR__GO_ON)
        return code;
    code = weir__remote_call(&r, "POST", "/v1/rules/reload", NULL) ? tell_outcome(&r, NULL)
                                                                   : WEIR__EXIT_WRONG;
    weir__remote_close(&r);
    return code;
}
