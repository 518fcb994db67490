/* read.c -- reads a rule file into a draft, and reports every mistake with its place.
 *
 * The text becomes nodes (yaml.c), the nodes become a draft: read-rule.c, read-guard.c,
 * read-match.c, read-limit.c, read-ban.c and read-lists.c each read the part they are named after.
 * A reader that finds a mistake reports it and goes on, so that one run reports them all; a draft
 * with a mistake is discarded.
 */
#include "rulefile/read.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"

/* ------------------------------------------------------------- problems ---- */

void weir__say(struct weir__reader *r, const struct weir__node *node, const char *format, ...)
{
    char text[sizeof(r->report.problems[0].text)];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    weir__report_add(&r->report, node->at, "%s", text);
}

void weir__say_error(struct weir__reader *r, const struct weir__node *node, const char *what,
                     const struct weir_error *error)
{
    weir__report_add(&r->report, weir__node_place(&r->report, node, error->column), "%s%s%s", what,
                     *what ? ": " : "", error->text);
}

struct weir__mark weir__mark_of(struct weir__reader *r, const struct weir__node *node)
{
    return weir__report_mark(&r->report, node->at);
}

size_t weir__problems(const struct weir__reader *r)
{
    return r->report.n + r->report.more;
}

/* ----------------------------------------------------------- duplicates ---- */

struct named {
    const struct weir__rule_draft *rule;
    const struct weir__node *node;
    bool guard;
};

/* A rule comes before a guard with its name, wherever they are written. */
static int compare_names(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = strcmp(a->rule->name, b->rule->name);

    return order ? order : a->guard != b->guard ? a->guard - b->guard : a->rule < b->rule ? -1 : 1;
}

/* Modes are set by name, so no guard may have a rule's name.  Sorted, because a file may have 32768
 * rules. */
static void check_names(struct weir__reader *r, const struct weir__node *rules,
                        const struct weir__node *guards)
{
    const struct weir__draft *d = r->draft;
    struct named *all = malloc((d->n_rules + d->n_guards + 1) * sizeof(*all));
    size_t n = 0;

    if (all == NULL) {
        r->arena->failed = true;
        return;
    }
    for (size_t i = 0; i < d->n_rules; i++) {
        if (d->rules[i].name)
            all[n++] = (struct named){ &d->rules[i], rules->items[i], false };
    }
    for (size_t i = 0; i < d->n_guards; i++) {
        if (d->guards[i].rule.name)
            all[n++] = (struct named){ &d->guards[i].rule, guards->items[i], true };
    }
    qsort(all, n, sizeof(*all), compare_names);
    for (size_t i = 1, first = 0; i < n; i++) {
        const struct named *a = &all[first], *b = &all[i];
        if (strcmp(a->rule->name, b->rule->name) != 0)
            first = i;
        else
            weir__say(r, b->node,
                      "%s named '%s'; the %s is in line %d, column %d; give this one another name",
                      a->guard   ? "two guards are"
                      : b->guard ? "a rule and a guard are"
                                 : "two rules are",
                      b->rule->name, a->guard == b->guard ? "first" : "rule", a->rule->mark.line,
                      a->rule->mark.column);
    }
    free(all);
}

/* ---------------------------------------------------------------- whole ---- */

enum { VERSION, MODE, ZONE, PATHS, DEGRADATION, RULES, LISTS, GUARDS, MEMBERS };

static void read_version(struct weir__reader *r, const struct weir__node *root,
                         const struct weir__member *version)
{
    if (version->key == NULL) {
        weir__say(r, root, "the file has no version; begin it with: version: 1");
        return;
    }
    const char *text = version->value ? weir__read_text(r, version->value, "version", "1") : NULL;
    if (text && strcmp(text, "1") != 0)
        weir__say(r, version->value, "version %s is not known; this Weir reads version: 1",
                  weir__quote(text, version->value->n).text);
}

static void read_root(struct weir__reader *r, const struct weir__node *root)
{
    struct weir__member m[MEMBERS] = {
        [VERSION] = { .name = "version" }, [MODE] = { .name = "mode" },
        [ZONE] = { .name = "zone" },       [DEGRADATION] = { .name = "degradation" },
        [RULES] = { .name = "rules" },     [LISTS] = { .name = "lists" },
        [GUARDS] = { .name = "guards" },   [PATHS] = { .name = "paths" },
    };
    int64_t degradation;

    if (root->kind == WEIR__NODE_LIST) {
        weir__say(r, root,
                  "a rule file must be a mapping; above a list of rules alone write the "
                  "lines 'version: 1' and 'rules:'");
        return;
    }
    if (!weir__read_members(r, root, "a rule file", m, MEMBERS))
        return;
    read_version(r, root, &m[VERSION]);
    if (m[MODE].value)
        weir__read_mode(r, m[MODE].value, &r->draft->mode);
    if (m[ZONE].value)
        r->zone = weir__read_zone(r, m[ZONE].value);
    weir__read_paths(r, &m[PATHS], &r->loose, &r->strict);
    if (m[DEGRADATION].value && weir__read_count(r, m[DEGRADATION].value, "degradation", 0,
                                                 WEIR__DEGRADATION_MAX, &degradation))
        r->draft->degradation = (int)degradation;
    if (m[LISTS].value)
        weir__read_lists(r, m[LISTS].value);
    if (m[RULES].value)
        weir__read_rules(r, m[RULES].value);
    if (m[GUARDS].value)
        weir__read_guards(r, m[GUARDS].value);
    check_names(r, m[RULES].value, m[GUARDS].value);
    if (m[LISTS].value)
        weir__check_unused_lists(r, m[LISTS].value);
}

static int read_text(struct weir__reader *r, struct weir_error *error)
{
    struct weir__arena nodes = { 0 };
    struct weir__node *root = weir__yaml_read(&nodes, &r->report);

    if (root != NULL)
        read_root(r, root);
    else if (r->report.n == 0)
        weir__report_add(&r->report, WEIR__NOWHERE,
                         "the file is empty; a rule file begins with: version: 1");
    bool failed = nodes.failed || r->arena->failed;
    weir__arena_clear(&nodes);
    return failed ? weir__fail(error, WEIR_NO_MEMORY, "no memory for the rules")
                  : weir__report_tell(&r->report, r->options, error);
}

int weir__draft_read(struct weir__draft **out, const char *text, size_t len,
                     const struct weir_rules_options *options, struct weir_error *error)
{
    static const struct weir_rules_options none = { .name = NULL };

    if (len > WEIR__RULES_TEXT_MAX)
        return weir__fail(error, WEIR_INVALID, "the rules have %zu bytes; the most is %zu", len,
                          WEIR__RULES_TEXT_MAX);
    struct weir__reader *r = calloc(1, sizeof(*r));
    struct weir__draft *draft = calloc(1, sizeof(*draft));
    int code = r && draft ? weir__report_open(&r->report, text, len, error)
                          : weir__fail(error, WEIR_NO_MEMORY, "no memory for the rules");
    if (code == WEIR_OK) {
        r->options = options ? options : &none;
        r->draft = draft;
        r->arena = &draft->arena;
        draft->mode = WEIR_ENFORCE;
        draft->degradation = WEIR_DEGRADATION_AUTO;
        code = read_text(r, error);
        weir__report_close(&r->report);
    }
    free(r);
    if (code == WEIR_OK)
        *out = draft;
    else
        weir__draft_destroy(draft);
    return code;
}

void weir__draft_destroy(struct weir__draft *draft)
{
    if (draft == NULL)
        return;
    weir__arena_clear(&draft->arena);
    free(draft);
}
