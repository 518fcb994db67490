/* read.c -- a rule file, from its text to a draft; every mistake is named with its place.
 *
 * The text becomes nodes (yaml.c), the nodes become a draft: read-rule.c, read-guard.c,
 * read-match.c, read-limit.c, read-ban.c and read-lists.c each read the part they are named after.
 * A reader that meets a mistake reports it and goes on, so that one run reports them all; a draft
 * with a mistake is thrown away.
 */
#include "rulefile/read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/limit.h"
#include "base/zone.h"
#include "guard/guard.h"
#include "match/key-template.h"

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

/* -------------------------------------------------------------- scalars ---- */

const char *weir__read_text(struct weir__reader *r, const struct weir__node *node, const char *what,
                            const char *like)
{
    if (node->kind == WEIR__NODE_TEXT)
        return node->text;
    weir__say(r, node, "%s must be %s; found %s", what, like, weir__node_word(node));
    return NULL;
}

bool weir__read_count(struct weir__reader *r, const struct weir__node *node, const char *what,
                      int64_t min, int64_t max, int64_t *out)
{
    struct weir_error error = { 0 };
    const char *text = weir__read_text(r, node, what, "a whole number");
    struct weir__cursor cursor = { text, text, &error };
    int64_t value = 0;

    if (text == NULL)
        return false;
    int code = weir__cursor_count(&cursor, what, min, &value);
    if (code == WEIR_OK && !weir__cursor_end(&cursor))
        code = weir__fail_at(&error, weir__cursor_column(&cursor), "%s must be one number", what);
    if (code == WEIR_OK && value > max)
        code = weir__fail_at(&error, 1, "%s is too large; the most is %" PRId64, what, max);
    if (code != WEIR_OK) {
        weir__say_error(r, node, "", &error);
        return false;
    }
    *out = value;
    return true;
}

bool weir__read_mode(struct weir__reader *r, const struct weir__node *node, enum weir_mode *out)
{
    static const char *const names[] = { "enforce", "shadow", "off" };
    static const enum weir_mode modes[] = { WEIR_ENFORCE, WEIR_SHADOW, WEIR_OFF };
    const char *text = weir__read_text(r, node, "mode", "enforce, shadow or off");

    for (size_t i = 0; text && i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = modes[i];
            return true;
        }
    }
    if (text)
        weir__say(r, node, "unknown mode %s; %s", weir__quote(text, node->n).text,
                  weir__hint(text, node->n, names, 3).text);
    return false;
}

const char *weir__read_zone(struct weir__reader *r, const struct weir__node *node)
{
    const struct weir__zone *zone;
    struct weir_error error = { 0 };
    const char *text = weir__read_text(r, node, "zone", "a time zone, such as Europe/Berlin");

    if (text == NULL)
        return NULL;
    if (node->n >= WEIR__ZONE_NAME_SIZE) {
        weir__say(r, node,
                  "the name of a time zone has at most %d bytes; write one such as Europe/Berlin",
                  WEIR__ZONE_NAME_SIZE - 1);
        return NULL;
    }
    if (weir__zone_find(&zone, text, &error) == WEIR_OK)
        return text;
    weir__say_error(r, node, "", &error);
    return NULL;
}

/* ---------------------------------------------------------------- names ---- */

char *weir__read_name(struct weir__reader *r, const struct weir__node *node, const char *what)
{
    const char *text = weir__read_text(r, node, what, "text, such as per-ip");

    if (text == NULL)
        return NULL;
    size_t good = weir__attribute_length(text); /* the same letters */
    if (node->n == 0 || good < node->n) {
        weir__report_add(&r->report, weir__node_place(&r->report, node, (int)good + 1),
                         "%s has only letters, digits and . _ - in it; found %s", what,
                         weir__quote(text, node->n).text);
        return NULL;
    }
    if (node->n > WEIR__RULE_NAME_MAX) {
        weir__say(r, node, "%s has at most %d bytes; this one has %zu", what, WEIR__RULE_NAME_MAX,
                  node->n);
        return NULL;
    }
    return weir__arena_copy(r->arena, text, node->n);
}

/* The rule set looks at this attribute from now on. */
static bool note_attribute(struct weir__reader *r, const struct weir__node *node, const char *name)
{
    for (size_t i = 0; i < r->n_attributes; i++) {
        if (strcmp(r->attributes[i], name) == 0)
            return true;
    }
    if (r->n_attributes == WEIR__ATTRIBUTES_MAX) {
        weir__say(r, node, "%s is one attribute too many; the rules of a file can look at %d",
                  weir__quote(name, strlen(name)).text, WEIR__ATTRIBUTES_MAX);
        return false;
    }
    r->attributes[r->n_attributes++] = name;
    return true;
}

/* Names of HTTP headers have no case. */
char *weir__read_attribute(struct weir__reader *r, const struct weir__node *node, const char *name,
                           size_t len)
{
    size_t good = weir__attribute_length(name);

    if (len == 0 || good < len || len > 63) {
        weir__say(r, node,
                  "an attribute's name is 1 to 63 letters, digits and . _ -, such as ip or "
                  "header.x-plan; found %s",
                  weir__quote(name, len).text);
        return NULL;
    }
    char *copy = weir__arena_copy(r->arena, name, len);
    for (char *c = copy; copy && strncmp(name, "header.", 7) == 0 && *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    return copy && note_attribute(r, node, copy) ? copy : NULL;
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

/* Modes are set by name, so no guard may have a rule's.  Sorted: a file may have 32768 rules. */
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

enum { VERSION, MODE, ZONE, DEGRADATION, RULES, LISTS, GUARDS, MEMBERS };

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
        [GUARDS] = { .name = "guards" },
    };
    int64_t degradation;

    if (!weir__read_members(r, root, "a rule file", m, MEMBERS))
        return;
    read_version(r, root, &m[VERSION]);
    if (m[MODE].value)
        weir__read_mode(r, m[MODE].value, &r->draft->mode);
    if (m[ZONE].value)
        r->zone = weir__read_zone(r, m[ZONE].value);
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
    return failed ? weir__fail(error, WEIR_NO_MEMORY, "out of memory for the rules")
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
                          : weir__fail(error, WEIR_NO_MEMORY, "out of memory for the rules");
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
