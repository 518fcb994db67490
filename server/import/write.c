/* write.c -- the imported limits as a rule file, with the directives they come from. */
#include <string.h>

#include "server/base/buffer.h"
#include "server/import/import.h"

#define COMMENT_MAX 200

/* One line, whatever the words are. */
static void add_comment(struct weir__buffer *out, const char *text)
{
    for (size_t i = 0; text[i] != '\0' && i < COMMENT_MAX; i++)
        weir__buffer_format(out, "%c", text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
}

static void add_source(struct weir__buffer *out, const struct weir__directive *at)
{
    weir__buffer_text(out, "  # ");
    add_comment(out, at->file);
    weir__buffer_format(out, ":%d:", at->line);
    for (size_t i = 0; i < at->n; i++) {
        weir__buffer_text(out, " ");
        add_comment(out, at->words[i]);
    }
    weir__buffer_text(out, "\n");
}

static void add_pattern(struct weir__buffer *out, const struct weir__import_pattern *p)
{
    static const char *const kinds[] = { "exact", "prefix", "glob", NULL };
    bool any = p->kind == WEIR__IMPORT_GLOB && strcmp(p->text, "*") == 0;
    const char *kind = any ? NULL : kinds[p->kind];

    if (kind != NULL)
        weir__buffer_format(out, "{ %s: ", kind);
    weir__buffer_json(out, p->text, strlen(p->text));
    weir__buffer_text(out, kind != NULL ? " }" : "");
}

static void add_patterns(struct weir__buffer *out, const char *attribute,
                         const struct weir__import_patterns *list, const char *before)
{
    weir__buffer_format(out, "%s\n      %s: [", before, attribute);
    for (const struct weir__import_pattern *p = list->first; p != NULL; p = p->next) {
        add_pattern(out, p);
        weir__buffer_text(out, p->next != NULL ? ", " : "]");
    }
}

static void add_conditions(struct weir__buffer *out,
                           const struct weir__import_condition *conditions)
{
    const char *before = "    match:";

    for (const struct weir__import_condition *c = conditions; c != NULL; c = c->next)
        if (c->match.n > 0) {
            add_patterns(out, c->attribute, &c->match, before);
            before = "";
        }
    weir__buffer_text(out, before[0] == '\0' ? "\n" : "");
    before = "    not:";
    for (const struct weir__import_condition *c = conditions; c != NULL; c = c->next)
        if (c->not .n > 0) {
            add_patterns(out, c->attribute, &c->not, before);
            before = "";
        }
    weir__buffer_text(out, before[0] == '\0' ? "\n" : "");
}

void weir__import_write_one(const struct weir__imported *rule, struct weir__buffer *out)
{
    add_source(out, rule->at);
    weir__buffer_format(out, "  - name: \"%s\"\n", rule->name);
    add_conditions(out, rule->conditions);
    if (rule->limit == NULL) {
        weir__buffer_format(out, "    concurrency: { max: %lld", rule->most);
        if (rule->key[0] != '\0') {
            weir__buffer_text(out, ", key: ");
            weir__buffer_json(out, rule->key, strlen(rule->key));
        }
        weir__buffer_text(out, " }\n    lease: 1h\n");
    } else {
        if (rule->key[0] != '\0') {
            weir__buffer_text(out, "    key: ");
            weir__buffer_json(out, rule->key, strlen(rule->key));
            weir__buffer_text(out, "\n");
        }
        weir__buffer_format(out, "    limit: %s\n", rule->limit);
    }
    if (rule->shadow)
        weir__buffer_text(out, "    mode: shadow\n");
}

static void add_list(struct weir__buffer *out, const char *title,
                     const struct weir__imported *rules)
{

    if (rules != NULL)
        weir__buffer_format(out, "\n%s:\n", title);
    for (; rules != NULL; rules = rules->next)
        weir__import_write_one(rules, out);
}

void weir__import_write(const struct weir__import *import, const struct weir__imported *rules,
                        const struct weir__imported *guards, struct weir__buffer *out)
{
    weir__buffer_text(out, "# Limits of ");
    add_comment(out, import->root.file);
    weir__buffer_text(out, ", by weir import nginx.\n");
    for (const struct weir__import_note *n = import->notes; n != NULL; n = n->next) {
        weir__buffer_text(out, "# ");
        add_comment(out, n->file);
        if (n->line > 0)
            weir__buffer_format(out, ":%d", n->line);
        weir__buffer_format(out, ": %s", n->loss ? "differs: " : "");
        add_comment(out, n->text);
        weir__buffer_text(out, "\n");
    }
    if (import->wanted != NULL)
        weir__buffer_text(out, "# Attributes that a door must be given; in nginx.conf:\n");
    for (const struct weir__wanted *w = import->wanted; w != NULL; w = w->next)
        weir__buffer_format(out, "#     weir_attribute %s $%s;\n", w->name, w->variable);
    weir__buffer_text(out, "version: 1\n");
    add_list(out, "rules", rules);
    add_list(out, "guards", guards);
}
