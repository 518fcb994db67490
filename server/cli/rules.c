/* rules.c -- `weir rules check`, `diff` and `schema`, for files; `get`, `set` and `reload`, for a
 * running server. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/file.h"
#include "server/cli/ask-server.h"
#include "server/describe/rules-diff.h"
#include "server/describe/rules-doubts.h"
#include "server/describe/rules-file.h"
#include "base/base.h"
#include "match/draft.h"
#include "rulefile/problem.h"
#include "server/base/complain.h"

struct options {
    struct weir__ask_server_options remote;
};

static const struct weir__option json_rows[] = {
    WEIR__SWITCH("json", 0, remote.json, "print JSON"),
    { 0 },
};
static const struct weir__option no_rows[] = { { 0 } };

/* ----------------------------------------------------------------- files ---- */

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "stdin" : path;
}

/* Bounds the memory; the rules' reader complains about less. */
#define BYTES_READ_MAX ((size_t)4 * WEIR__RULES_TEXT_MAX)

/* A file and its mistakes. */
struct reading {
    struct weir__problems said;
    struct weir__draft *draft; /* NULL: wrong */
    char *text;
    size_t len;
};

/* Mistakes found by the reader have a place; those found when the set is compiled have none. */
static void check_text(struct reading *r)
{
    struct weir_rules_options options = {
        .name = r->said.name, .files = true, .problem = weir__problem_say, .context = &r->said
    };
    struct weir_error error = { 0 };
    struct weir_rules *rules = NULL;
    struct weir_problem whole = { .caret = -1 };

    if (weir__draft_read(&r->draft, r->text, r->len, &options, &error) != WEIR_OK && r->said.n > 0)
        return;
    if (r->draft && weir_rules_parse(&rules, r->text, r->len, &options, &error) == WEIR_OK) {
        weir_rules_destroy(rules);
        return;
    }
    weir__draft_destroy(r->draft);
    r->draft = NULL;
    if (r->said.n > 0)
        return;
    snprintf(whole.text, sizeof(whole.text), "%s", error.text);
    weir__problem_say(&r->said, &whole);
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

    printf("%s: %zu %s, %zu %s, %zu %s, %zu list %s\n", r->said.name, c.rules,
           plural(c.rules, "rule", "rules"), c.limits, plural(c.limits, "limit", "limits"),
           c.guards, plural(c.guards, "guard", "guards"), c.entries,
           plural(c.entries, "entry", "entries"));
}

static void add_counts(const struct reading *r)
{
    struct counts c = count(r->draft);

    weir__buffer_member_number(r->said.json, "rules", (int64_t)c.rules);
    weir__buffer_member_number(r->said.json, "limits", (int64_t)c.limits);
    weir__buffer_member_number(r->said.json, "guards", (int64_t)c.guards);
    weir__buffer_member_number(r->said.json, "entries", (int64_t)c.entries);
}

static int check_file(const struct weir__command *self, const char *path, struct weir__buffer *json)
{
    struct reading r = { .said = { name_of(path), stdout, json, 0 } };
    const char *why = NULL;

    r.text = weir__file_read(path, BYTES_READ_MAX, &r.len);
    if (r.text == NULL) {
        why = strerror(errno);
        weir__complain(self->name, "%s: %s", r.said.name, why);
    }
    if (json) {
        weir__buffer_open(json, NULL, '{');
        weir__buffer_member(json, "file", r.said.name);
        weir__buffer_open(json, "problems", '[');
    }
    if (r.text)
        check_text(&r);
    if (r.draft) {
        weir__rules_doubts(r.draft, weir__rules_doubt_print, (void *)r.said.name);
        weir__rules_doubts_fleet(r.draft, weir__rules_doubt_print, (void *)r.said.name);
    }
    int code = !r.text ? WEIR__EXIT_WRONG : !r.draft ? WEIR__EXIT_NO : WEIR__EXIT_OK;
    if (json) {
        weir__buffer_close(json, "]");
        if (why)
            weir__buffer_member(json, "error", why);
        weir__buffer_member_bool(json, "ok", r.draft != NULL);
        if (r.draft)
            add_counts(&r);
        weir__buffer_close(json, "}");
    } else if (r.draft) {
        print_counts(&r);
    }
    end_reading(&r);
    return code;
}

static int run_check(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__buffer json = { 0 };
    int worst = WEIR__EXIT_OK;

    weir__buffer_open(&json, NULL, '[');
    for (int i = 0; i < call->n; i++) {
        int code = check_file(call->self, call->words[i], o->remote.json ? &json : NULL);
        worst = code > worst ? code : worst;
    }
    weir__buffer_close(&json, "]\n");
    int code = weir__buffer_print(&json, o->remote.json ? stdout : NULL);
    return code > worst ? code : worst;
}

const struct weir__command weir__cmd_rules_check = {
    .name = "rules check",
    .summary = "find the mistakes in rule files",
    .arguments = "[--json] FILE...",
    .help = "Prints one line for each correct file, with the numbers of its rules, limits, guards "
            "and list entries; and each mistake with its place, the line and a caret. Warns about "
            "names and values that probably match nothing. - is stdin.\n"
            "\n"
            "  weir rules check rules.yaml\n"
            "\n"
            "Exit codes: 0 all correct, 1 mistakes, 2 wrong use or an unreadable file.",
    WEIR__COMMAND_OPTIONS(json_rows, .remote = { 0 }),
    .words_min = 1,
    .words_max = WEIR__ANY_WORDS,
    .run = run_check,
};

/* ------------------------------------------------------------------ diff ---- */

struct showing {
    struct weir__buffer json;
    bool in_json;
    char last[96]; /* the heading of the last change */
};

static void show_change(void *context, const struct weir__change *c)
{
    struct showing *s = context;
    char head[sizeof(s->last)];

    if (s->in_json) {
        weir__change_json(&s->json, c);
        return;
    }
    snprintf(head, sizeof(head), "%s%s%s", strcmp(c->of, "file") == 0 ? "the whole file" : c->of,
             *c->name ? " " : "", c->name);
    if (strcmp(head, s->last) != 0)
        printf("%s%s%s%s\n", head, *c->who ? " (" : "", c->who, *c->who ? ")" : "");
    strcpy(s->last, head);
    printf("    %s%s%s\n", c->text, *c->effect ? ": " : "", c->effect);
}

static int show_difference(const struct weir__command *self, const struct reading *old,
                           const struct reading *new, bool json)
{
    struct showing s = { .in_json = json };

    weir__buffer_open(&s.json, NULL, '{');
    weir__buffer_open(&s.json, "changes", '[');
    long n = weir__rules_diff(old->draft, new->draft, show_change, &s);
    weir__buffer_close(&s.json, "]");
    weir__buffer_member_bool(&s.json, "same", n == 0);
    weir__buffer_close(&s.json, "}\n");
    weir__buffer_print(&s.json, json && n >= 0 ? stdout : NULL);
    if (n < 0)
        return weir__complain(self->name, "no memory");
    if (!json && n == 0)
        puts("no difference");
    return n ? WEIR__EXIT_NO : WEIR__EXIT_OK;
}

static bool read_side(const struct weir__command *self, struct reading *r, const char *path)
{
    struct weir_rules_options options = {
        .name = name_of(path), .files = true, .problem = weir__problem_say, .context = &r->said
    };
    struct weir_error error = { 0 };

    *r = (struct reading){ .said.name = name_of(path) }; /* stdout has the difference */
    r->text = weir__file_read(path, BYTES_READ_MAX, &r->len);
    if (r->text == NULL)
        weir__complain(self->name, "%s: %s", r->said.name, strerror(errno));
    else if (weir__draft_read(&r->draft, r->text, r->len, &options, &error) != WEIR_OK &&
             r->said.n == 0)
        weir__complain(self->name, "%s: %s", r->said.name, error.text);
    return r->draft != NULL;
}

static int run_diff(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct reading old, new;
    bool good = read_side(call->self, &old, call->words[0]);

    good = read_side(call->self, &new, call->words[1]) && good;
    int code = good ? show_difference(call->self, &old, &new, o->remote.json) : WEIR__EXIT_WRONG;
    end_reading(&old);
    end_reading(&new);
    return code;
}

const struct weir__command weir__cmd_rules_diff = {
    .name = "rules diff",
    .summary = "show the changes from one rule file to another",
    .arguments = "[--json] OLD NEW",
    .help = "Lists each change when NEW replaces OLD, the requests it affects and whether keys "
            "keep their counts.\n"
            "\n"
            "  weir rules diff old.yaml new.yaml\n"
            "\n"
            "Exit codes: 0 no difference, 1 some, 2 wrong use or a wrong file.",
    WEIR__COMMAND_OPTIONS(json_rows, .remote = { 0 }),
    .words_min = 2,
    .words_max = 2,
    .run = run_diff,
};

/* ---------------------------------------------------------------- schema ---- */

static int run_schema(const struct weir__call *call)
{
    size_t size = (size_t)weir_rules_schema(NULL, 0) + 1;
    char *schema = malloc(size);

    if (schema == NULL) {
        weir__complain(call->self->name, "no memory");
        return WEIR__EXIT_WRONG;
    }
    weir_rules_schema(schema, size);
    fputs(schema, stdout);
    free(schema);
    return WEIR__EXIT_OK;
}

const struct weir__command weir__cmd_rules_schema = {
    .name = "rules schema",
    .summary = "print the JSON Schema of rule files, for editors",
    .arguments = "",
    .help = "  weir rules schema >weir-rules.json\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use.",
    WEIR__COMMAND_OPTIONS(no_rows, .remote = { 0 }),
    .run = run_schema,
};

/* -------------------------------------------------------- a running server ---- */

static void show_text(struct weir__ask_server *r)
{
    const struct weir__scalar *text = weir__document_find(&r->document, "text");

    if (text)
        fwrite(text->text, 1, text->len, stdout);
}

static int ask_get(const struct weir__call *call, struct weir__ask_server *r)
{
    (void)call;
    return weir__ask_server_show(r, "GET /v1/rules", "text", show_text);
}

const struct weir__command weir__cmd_rules_get = {
    .name = "rules get",
    .summary = "print a server's rules",
    .arguments = "[options]",
    .help = "  weir rules get >rules.yaml\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(no_rows, .remote = { 0 }),
    .ask = ask_get,
};

/* The server names each mistake's place; the line comes from the text we sent. */
static void print_problems(const struct weir__document *d, struct reading *reading)
{
    struct weir__report *report = malloc(sizeof(*report));
    struct weir_rules_options tell = { .name = reading->said.name,
                                       .problem = weir__problem_say,
                                       .context = &reading->said };
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

/* Of the rules that are in force now; `name` is the file we sent, or NULL. */
static void print_warnings(const struct weir__ask_server *r, const char *name)
{
    const struct weir__document *d = &r->document;
    const char *text;

    for (int i = 0; (text = weir__document_text(d, "warnings.%d.text", i)) != NULL; i++) {
        struct weir_problem p = { .line = (int)weir__document_number(d, 0, "warnings.%d.line", i),
                                  .column =
                                      (int)weir__document_number(d, 0, "warnings.%d.column", i) };
        snprintf(p.text, sizeof(p.text), "%s", text);
        weir__rules_doubt_print((void *)(name ? name : weir__document_text(d, "source")), &p);
    }
}

/* Rules that were sent replace the server's file, if it has one. */
static void print_in_force(const struct weir__document *d, bool sent)
{
    const char *source = weir__document_text(d, "source");

    weir__show(d, "",
               "{rules#rule}, {limits#limit}, {guards#guard}, {entries#list entry} in force; "
               "{hash|no rules}");
    weir__show(d, "",
               !sent                                  ? "[, from {source}]\n"
               : source && strcmp(source, "api") == 0 ? ", until the server ends\n"
                                                      : "[, written to {source}]\n");
}

/* `reading` is the text we sent, or NULL. */
static int tell_outcome(struct weir__ask_server *r, struct reading *reading)
{
    bool refused = r->status == 422 && weir__document_find(&r->document, "problems.0.text");

    if (r->status / 100 != 2 && !refused)
        return weir__ask_server_complain(r);
    if (r->options.json)
        weir__ask_server_print(r);
    else if (!refused)
        print_in_force(&r->document, reading != NULL);
    else if (reading)
        print_problems(&r->document, reading);
    else
        weir__ask_server_complain(r);
    print_warnings(r, reading ? reading->said.name : NULL);
    if (refused && !r->options.json)
        weir__complain(r->call->self->name, "nothing was changed");
    return refused ? WEIR__EXIT_NO : WEIR__EXIT_OK;
}

static int ask_set(const struct weir__call *call, struct weir__ask_server *r)
{
    struct reading reading = { .said = { name_of(call->words[0]), stdout, NULL, 0 } };
    int code = WEIR__EXIT_WRONG;

    reading.text = weir__file_read(call->words[0], BYTES_READ_MAX, &reading.len);
    if (!reading.text)
        return weir__complain(call->self->name, "%s: %s", reading.said.name, strerror(errno));
    weir__ask_server_text(r, reading.text, reading.len);
    if (weir__ask_server_call(r, "PUT /v1/rules"))
        code = tell_outcome(r, &reading);
    end_reading(&reading);
    return code;
}

const struct weir__command weir__cmd_rules_set = {
    .name = "rules set",
    .summary = "replace a server's rules",
    .arguments = "[options] FILE",
    .help = "The rules take effect at once, and the server keeps them. If there is a mistake, "
            "nothing changes and it is shown as by weir rules check. - is stdin.\n"
            "\n"
            "  weir rules set rules.yaml\n"
            "\n"
            "Exit codes: 0 in force, 1 mistakes in the rules, 2 wrong use or no server.",
    WEIR__ASK_SERVER(no_rows, .remote = { 0 }),
    .words_min = 1,
    .words_max = 1,
    .ask = ask_set,
};

static int ask_reload(const struct weir__call *call, struct weir__ask_server *r)
{
    (void)call;
    return weir__ask_server_call(r, "POST /v1/rules/reload") ? tell_outcome(r, NULL)
                                                             : WEIR__EXIT_WRONG;
}

const struct weir__command weir__cmd_rules_reload = {
    .name = "rules reload",
    .summary = "make a server read its rule file again",
    .arguments = "[options]",
    .help = "If there is a mistake in the file, nothing changes.\n"
            "\n"
            "  weir rules reload\n"
            "\n"
            "Exit codes: 0 in force, 1 mistakes in the rules, 2 wrong use or no server.",
    WEIR__ASK_SERVER(no_rows, .remote = { 0 }),
    .ask = ask_reload,
};
