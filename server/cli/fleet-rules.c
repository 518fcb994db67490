/* fleet-rules.c -- `weir fleet rules`: the rules of all nodes, got, changed and compared; and what
 * `weir fleet status`, `history` and `rollback` ask about them.
 *
 * What `get` prints begins with a comment that names the version; `set` reads it there, so a change
 * is based on what its author has seen.
 */
#include "server/cli/fleet-rules.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/redis/trouble.h"
#include "server/base/complain.h"
#include "server/base/file.h"
#include "server/base/options.h"
#include "server/describe/rules-diff.h"
#include "server/describe/rules-doubts.h"
#include "server/describe/rules-file.h"

#define ASK_MAX (5 * WEIR_SECOND)

/* ------------------------------------------------------------------ asks ---- */

static struct weir_key key_of(const char *text)
{
    return (struct weir_key){ text, strlen(text) };
}

int weir__fleet_rules_open(struct weir__fleet_rules *f, const char *command,
                           const struct weir__fleet_rules_options *o)
{
    const char *fleet = o->fleet ? o->fleet : "default";

    *f = (struct weir__fleet_rules){ .fleet = key_of(fleet),
                                     .document = key_of(WEIR__VERSIONS_RULES) };
    if (!weir__fleet_is_name(fleet))
        return weir__complain(command, "names of fleets are letters, digits, '.', '_' and '-'");
    const char *url = o->redis ? o->redis : getenv("WEIR_REDIS");
    if (!url || !*url)
        return weir__complain(command, "where is Redis? write --redis URL, or set WEIR_REDIS");
    return weir__asker_open(&f->asker, command, url, ASK_MAX);
}

void weir__fleet_rules_close(struct weir__fleet_rules *f)
{
    weir__asker_close(&f->asker);
}

static int complain_of(const struct weir__fleet_rules *f)
{
    return weir__complain(f->asker.command, "Redis %s: %s",
                          f->asker.outcome == WEIR__REDIS_UNKNOWN
                              ? "did not answer, and may have carried it out"
                              : weir__redis_trouble(f->asker.why),
                          f->asker.why);
}

int weir__fleet_rules_ask(struct weir__fleet_rules *f, const struct weir__text *words, size_t n,
                          struct weir__versions_list *out)
{
    struct weir__redis_script script;
    struct weir__redis_ask ask;
    struct weir__text why;

    weir__versions_ask(f->fleet, f->document, words, n, &script, &ask);
    bool answered = weir__asker_ask(&f->asker, &ask);
    weir__redis_ask_free(&ask);
    if (!answered)
        return complain_of(f);
    if (weir__versions_list(out, f->asker.reply.bytes, &why))
        return WEIR__GO_ON;
    return weir__complain(f->asker.command, "Redis%s: %.*s",
                          weir__redis_is_weir(why) ? " is a weir serve, and no Redis" : "",
                          (int)why.len, why.bytes);
}

int weir__fleet_rules_get(struct weir__fleet_rules *f, int64_t version, struct weir__version *out)
{
    struct weir__versions_list list;
    char number[24];

    *out = (struct weir__version){ .number = 0 };
    snprintf(number, sizeof(number), "%" PRId64, version);
    int code = weir__fleet_rules_ask(
        f, (struct weir__text[]){ WEIR__VERSIONS_TEXT("get"), WEIR__VERSIONS_TEXT(number) }, 2,
        &list);
    if (code == WEIR__GO_ON && !weir__version(&list, out))
        return weir__complain(f->asker.command, "Redis: a reply that makes no sense");
    return code;
}

int weir__fleet_rules_status(struct weir__fleet_rules *f, struct weir_fleet_status *out)
{
    struct weir__versions_list list = { 0 };
    int code = weir__fleet_rules_ask(f, &WEIR__VERSIONS_TEXT("list"), 1, &list);

    if (code == WEIR__GO_ON) {
        weir__fleet_status_versions(out, &list);
        code = weir__fleet_rules_ask(f, &WEIR__VERSIONS_TEXT("nodes"), 1, &list);
    }
    if (code == WEIR__GO_ON)
        weir__fleet_status_nodes(out, &list);
    return code;
}

void weir__fleet_rules_say_why_none(FILE *to, const struct weir__fleet_rules *f,
                                    const struct weir_fleet_status *s)
{
    if (s->runs > 0)
        fprintf(to,
                "Redis has no rules, and nodes run version %" PRId64
                ": it has lost its data. weir fleet rules set FILE --base 0 brings them back; "
                "without the file, take a node's copy: weir-fleet-NAME-rules beside its table",
                s->runs);
    else
        fprintf(to, "the fleet '%s' has no rules yet", (const char *)f->fleet.bytes);
}

int weir__fleet_rules_missing(struct weir__fleet_rules *f)
{
    struct weir_fleet_status status;
    int code = weir__fleet_rules_status(f, &status);

    if (code != WEIR__GO_ON)
        return code;
    fprintf(stderr, "weir %s: ", f->asker.command);
    weir__fleet_rules_say_why_none(stderr, f, &status);
    fputc('\n', stderr);
    return WEIR__EXIT_NO;
}

/* ---------------------------------------------------------------- change ---- */

/* Cron and units of systemd often have no USER. */
static void name_author(char *out, size_t size)
{
    const struct passwd *found = getenv("USER") ? NULL : getpwuid(getuid());
    const char *user = found ? found->pw_name : getenv("USER");
    char host[65] = "", number[24];

    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = 0;
    snprintf(number, sizeof(number), "%lu", (unsigned long)getuid());
    snprintf(out, size, "%s@%s", user ? user : number, host);
}

static int say_result(const struct weir__fleet_rules *f, const struct weir__versions_edit *e,
                      bool done, int64_t version)
{
    if (done && version == e->base) {
        printf("unchanged, still version %" PRId64 "\n", version);
        return WEIR__EXIT_OK;
    }
    if (done) {
        printf("version %" PRId64 "%s%s", version, *e->stage ? ", for now on " : "", e->stage);
        if (e->origin)
            printf(", as version %" PRId64, e->origin);
        putchar('\n');
        return WEIR__EXIT_OK;
    }
    if (e->base == version)
        weir__complain(f->asker.command,
                       "version %" PRId64 " is not the one that this change is based on: "
                       "get it and change that",
                       version);
    else if (version == 0)
        weir__complain(f->asker.command,
                       "Redis has no rules, and this change is based on version %" PRId64
                       ": it is another Redis or fleet, or has lost its data; then --base 0 puts "
                       "it in force",
                       e->base);
    else if (e->base == 0)
        weir__complain(f->asker.command,
                       "version %" PRId64
                       " is there: get it and change that, or say --base %" PRId64 " to replace it",
                       version, version);
    else
        weir__complain(f->asker.command,
                       "version %" PRId64 " is there, and this change is based on %" PRId64
                       ": weir fleet rules get >FILE, and change that",
                       version, e->base);
    return WEIR__EXIT_NO;
}

int weir__fleet_rules_put(struct weir__fleet_rules *f, struct weir__versions_edit *e)
{
    char author[WEIR__VERSIONS_AUTHOR];
    struct weir__versions_put put;
    struct weir__versions_list list;

    name_author(author, sizeof(author));
    e->author = author;
    if (!weir__versions_put(&put, e))
        return weir__complain(f->asker.command, "no random numbers");
    int code = weir__fleet_rules_ask(f, put.words, WEIR__VERSIONS_PUT_WORDS, &list);
    if (code != WEIR__GO_ON)
        return code;
    bool done = weir__versions_number(&list) == 1;
    return say_result(f, e, done, weir__versions_number(&list));
}

/* --------------------------------------------------------------- command ---- */

struct options {
    struct weir__fleet_rules_options common;
    const char *note, *stage;
    int64_t base;
};

static const struct weir__option rows[] = {
    WEIR__FLEET_RULES_ROWS(struct options),
    WEIR__OPTION(struct options, "base", 'b', COUNT, base, 0, "VERSION",
                 "set: the version that the change is based on (that of its first line)"),
    WEIR__TEXT("note", 'n', note, "TEXT", "set: why, for the history"),
    WEIR__TEXT("stage", 's', stage, "NODE", "set: on this node first; publish brings it to all"),
    { 0 },
};

/* ---------------------------------------------------------- the first line ---- */

static void print_head(FILE *out, const struct weir__fleet_rules *f, const struct weir__version *v)
{
    fprintf(out, "# weir fleet: %.*s, version %" PRId64 ", edit %" PRId64 "\n",
            (int)f->document.len, (const char *)f->document.bytes, v->number, v->edit);
}

/* The number behind a word; -1: there is none. */
static int64_t number_behind(const char *line, const char *word)
{
    const char *at = strstr(line, word);

    return at ? strtoll(at + strlen(word), NULL, 10) : -1;
}

/* Takes it off the text; its numbers are -1 if there is none. */
static void take_head(struct weir__text *text, struct weir__versions_edit *edit)
{
    static const char mark[] = "# weir fleet: ";
    const char *end = memchr(text->bytes, '\n', text->len);
    char line[200];

    edit->base = edit->base_edit = -1;
    if (!end || end - text->bytes >= (ptrdiff_t)sizeof(line) || text->len < sizeof(mark) ||
        memcmp(text->bytes, mark, sizeof(mark) - 1) != 0)
        return;
    snprintf(line, sizeof(line), "%.*s", (int)(end - text->bytes), text->bytes);
    edit->base = number_behind(line, ", version ");
    edit->base_edit = number_behind(line, ", edit ");
    text->len -= (size_t)(end + 1 - text->bytes);
    text->bytes = end + 1;
}

/* ------------------------------------------------------------------ texts ---- */

/* NULL: it is wrong, and that has been said. */
static struct weir__draft *check(const char *name, struct weir__text text)
{
    struct weir__problems said = { .name = name };
    struct weir_error error = { 0 };
    struct weir__draft *draft = weir__rules_text_read(text, &said, &error);

    if (!draft && said.n == 0)
        fprintf(stderr, "%s: %s\n", name, error.text);
    return draft;
}

static char *read_file(const struct weir__fleet_rules *f, const char *path, struct weir__text *out)
{
    char *bytes = weir__file_read(path, WEIR__VERSIONS_TEXT_MAX, &out->len);

    out->bytes = bytes;
    if (!bytes)
        weir__complain(f->asker.command, "%s: %s", path,
                       errno == EFBIG ? "it has more than 4 MiB" : strerror(errno));
    return bytes;
}

/* ---------------------------------------------------------------- actions ---- */

static bool read_version(const char *text, int64_t *out)
{
    char *end;

    *out = strtoll(text, &end, 10);
    return *text && !*end && *out > 0;
}

static int no_version(struct weir__fleet_rules *f, int64_t version)
{
    if (version == 0)
        return weir__fleet_rules_missing(f);
    weir__complain(f->asker.command, "there is no version %" PRId64 " (any more)", version);
    return WEIR__EXIT_NO;
}

static int get(struct weir__fleet_rules *f, const struct weir__call *call)
{
    struct weir__version v;
    int64_t version = 0;

    if (call->n > 1 && !read_version(call->words[1], &version))
        return weir__command_wrong(call->self, "a version is a number from 1 on");
    int code = weir__fleet_rules_get(f, version, &v);
    if (code != WEIR__GO_ON)
        return code;
    if (v.number == 0)
        return no_version(f, version);
    print_head(stdout, f, &v);
    fwrite(v.text.bytes, 1, v.text.len, stdout);
    return WEIR__EXIT_OK;
}

/* A version that no node tries would come to all of them untried. */
static int find_stage(struct weir__fleet_rules *f, const char *stage)
{
    struct weir__versions_list list;
    char names[WEIR__NODE_REPORT_NAMES];
    int code =
        stage ? weir__fleet_rules_ask(f, &WEIR__VERSIONS_TEXT("nodes"), 1, &list) : WEIR__GO_ON;

    if (!stage || code != WEIR__GO_ON || weir__node_report_follows(&list, stage, names))
        return code;
    weir__complain(f->asker.command,
                   "--stage: no node %s follows the fleet's rules, and was heard in the last "
                   "10 s%s%s",
                   weir__quote(stage, strlen(stage)).text,
                   *names ? "; those that do: " : ", nor does any other", names);
    return WEIR__EXIT_NO;
}

/* After a change: whether it is in force everywhere in a moment. */
static void doubt_followers(struct weir__fleet_rules *f)
{
    struct weir_fleet_status status;

    if (weir__fleet_rules_status(f, &status) == WEIR__GO_ON && status.own > 0)
        weir__complain(f->asker.command,
                       "warning: %" PRId64
                       " of the fleet's nodes %s rules of %s own (--rules), and "
                       "%s not follow these",
                       status.own, status.own == 1 ? "has" : "have",
                       status.own == 1 ? "its" : "their", status.own == 1 ? "does" : "do");
}

static int set(struct weir__fleet_rules *f, const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__text text;
    char *bytes = call->n > 1 ? read_file(f, call->words[1], &text) : NULL;
    struct weir__draft *draft;

    if (call->n < 2)
        return weir__command_wrong(call->self, "set which file?");
    if (!bytes)
        return WEIR__EXIT_WRONG;
    struct weir__versions_edit edit = { .note = o->note, .stage = o->stage ? o->stage : "" };
    take_head(&text, &edit);
    edit.text = text;
    if (o->base >= 0) { /* by hand: whatever it was made by */
        edit.base = o->base;
        edit.base_edit = -1;
    }
    edit.base = edit.base < 0 ? 0 : edit.base;
    int code = WEIR__EXIT_NO;
    if ((draft = check(call->words[1], text))) {
        weir__rules_doubts(draft, weir__rules_doubt_print, call->words[1]);
        weir__draft_destroy(draft);
        code = find_stage(f, o->stage);
        code = code == WEIR__GO_ON ? weir__fleet_rules_put(f, &edit) : code;
        if (code == WEIR__EXIT_OK)
            doubt_followers(f);
    }
    free(bytes);
    return code;
}

static int publish(struct weir__fleet_rules *f, const struct weir__call *call)
{
    struct weir__version v;
    struct weir__versions_list list;
    char base[24], warning[WEIR__RULES_WARNING];
    int64_t wanted = 0;

    if (call->n > 1 && !read_version(call->words[1], &wanted))
        return weir__command_wrong(call->self, "a version is a number from 1 on");
    int code = weir__fleet_rules_get(f, 0, &v);
    if (code != WEIR__GO_ON)
        return code;
    if (v.number == 0)
        return no_version(f, 0);
    snprintf(base, sizeof(base), "%" PRId64, wanted ? wanted : v.number);
    code = weir__fleet_rules_ask(
        f, (struct weir__text[]){ WEIR__VERSIONS_TEXT("all"), WEIR__VERSIONS_TEXT(base) }, 2,
        &list);
    if (code != WEIR__GO_ON)
        return code;
    int64_t result = weir__versions_number(&list);
    if (result == WEIR__VERSIONS_REFUSED)
        weir__complain(f->asker.command,
                       "the stage has refused version %" PRId64 ": weir fleet nodes says why",
                       weir__versions_number(&list));
    else if (result != 1)
        weir__complain(f->asker.command, "the newest version is %" PRId64,
                       weir__versions_number(&list));
    if (result != 1)
        return WEIR__EXIT_NO;
    weir__versions_untried(&list, warning);
    if (*warning)
        weir__complain(f->asker.command, "warning: %s", warning);
    printf("version %s is for all nodes\n", base);
    return WEIR__EXIT_OK;
}

static void show_change(void *context, const struct weir__change *c)
{
    (void)context;
    printf("%s%s%s: %s%s%s\n", strcmp(c->of, "file") == 0 ? "the whole file" : c->of,
           *c->name ? " " : "", c->name, c->text, *c->effect ? ": " : "", c->effect);
}

static int compare(struct weir__text old, struct weir__text new, const char *name)
{
    struct weir__draft *a = check("the fleet", old), *b = a ? check(name, new) : NULL;
    int code = WEIR__EXIT_WRONG;

    if (b) {
        long n = weir__rules_diff(a, b, show_change, NULL);
        code = n > 0 ? WEIR__EXIT_NO : n == 0 ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
    }
    weir__draft_destroy(a);
    weir__draft_destroy(b);
    return code;
}

/* The newest version, and what a file or an older version would make of it. */
static int diff(struct weir__fleet_rules *f, const struct weir__call *call)
{
    struct weir__version v;
    struct weir__text other;
    int64_t older = 0;

    if (call->n < 2)
        return weir__command_wrong(call->self, "diff compares rules with a file or a version");
    bool is_version = read_version(call->words[1], &older);
    int code = weir__fleet_rules_get(f, is_version ? older : 0, &v);
    if (code != WEIR__GO_ON)
        return code;
    if (v.number == 0)
        return no_version(f, older);
    char *first = malloc(v.text.len + 1);
    if (!first)
        return weir__complain(f->asker.command, "no memory");
    memcpy(first, v.text.bytes, v.text.len);
    struct weir__text old = { first, v.text.len };
    char *bytes = NULL;
    if (is_version) {
        code = weir__fleet_rules_get(f, 0, &v);
        other = v.text;
    } else {
        bytes = read_file(f, call->words[1], &other);
        code = bytes ? WEIR__GO_ON : WEIR__EXIT_WRONG;
    }
    if (code == WEIR__GO_ON) {
        take_head(&other, &(struct weir__versions_edit){ 0 });
        code = compare(old, other, is_version ? "the newest" : call->words[1]);
    }
    free(bytes);
    free(first);
    return code;
}

static int run(const struct weir__call *call)
{
    static const struct {
        const char *word;
        int (*run)(struct weir__fleet_rules *f, const struct weir__call *call);
    } actions[] = { { "get", get }, { "set", set }, { "diff", diff }, { "publish", publish } };
    const struct options *o = call->options;
    struct weir__fleet_rules f;

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
        if (strcmp(call->words[0], actions[i].word) != 0)
            continue;
        int code = weir__fleet_rules_open(&f, call->self->name, &o->common);
        if (code == WEIR__GO_ON)
            code = actions[i].run(&f, call);
        weir__fleet_rules_close(&f);
        return code;
    }
    return weir__command_wrong(call->self, "get, set, diff or publish?");
}

const struct weir__command weir__cmd_fleet_rules = {
    .name = "fleet rules",
    .summary = "get, change, compare and publish the rules of a fleet",
    .arguments = "get [VERSION] | set FILE | diff FILE|VERSION | publish [VERSION]",
    .help =
        "The rules of all nodes are one document in Redis, with versions. get prints the newest, "
        "or another version, below a comment that names it. set checks a file and makes it the "
        "next "
        "version, if the version it is based on is still the newest: nobody overwrites another's "
        "change unnoticed. diff shows what a file would change, or what has changed since a "
        "version.\n"
        "\n"
        "  weir fleet rules get > rules.yaml\n"
        "  weir fleet rules diff rules.yaml\n"
        "  weir fleet rules set rules.yaml --note 'more for gold'\n"
        "  weir fleet rules set rules.yaml --stage node-1; weir fleet rules publish\n"
        "\n"
        "Lists and modes are written in the rules; a list that is a file would be one host's.\n"
        "\n" WEIR__REDIS_URL_HELP "\n"
        "\n"
        "Exit codes: 0 done, or no difference; 1 mistakes in the file, a newer version is there, "
        "no such version, or differences; 2 wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .base = -1),
    .words_min = 1,
    .words_max = 2,
    .run = run,
};
