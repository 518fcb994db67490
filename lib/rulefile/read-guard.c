/* read-guard.c -- the guards of a rule file: bounds for work in progress, and the requests they are
 * for.
 *
 *     - name: search
 *       match: { uri: "/search" }                            read-match.c
 *       concurrency: { max: 64, queue: 128, wait: 200ms }    read-guard-bounds.c
 *       adaptive: weir
 *       breaker: { errors: 50%, slow: 500ms }
 *       system: { cpu: 85% }
 *       user: "{account}"                                    key-template.c
 *       class: "{plan|free}"
 *       fallback: { status: 200, body: "[]" }
 */
#include "rulefile/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"
#include "match/key-template.h"

#define STATUS 503 /* of a fallback without one */

/* -------------------------------------------------------------- fallback ---- */

enum { FALLBACK_STATUS, BODY, BODY_FILE, TYPE, FALLBACK_MEMBERS };

/* It goes into a header: only characters of a media type. */
static void read_type(struct weir__reader *r, const struct weir__member *m,
                      struct weir__fallback_draft *f)
{
    const char *text =
        m->value ? weir__read_text(r, m->value, "type", "a media type such as application/json")
                 : NULL;

    if (text == NULL)
        return;
    bool good = strchr(text, '/') != NULL && *text != '/' && m->value->n <= 100;
    for (const char *c = text; *c; c++)
        good = good && *c >= ' ' && *c <= '~';
    if (good)
        f->type = weir__arena_copy(r->arena, text, m->value->n);
    else
        weir__say(
            r, m->value,
            "type must be a media type such as application/json, of at most 100 bytes; found %s",
            weir__quote(text, m->value->n).text);
}

static void copy_body(struct weir__reader *r, const struct weir__node *node,
                      struct weir__fallback_draft *f, const char *text, size_t len)
{
    if (len > WEIR_FALLBACK_MAX) {
        weir__say(r, node, "the body has %zu bytes; the most is %d", len, WEIR_FALLBACK_MAX);
        return;
    }
    f->body = weir__arena_copy(r->arena, text, len);
    f->len = len;
}

static void read_body(struct weir__reader *r, const struct weir__member *m,
                      struct weir__fallback_draft *f)
{
    const struct weir__node *text = m[BODY].value, *file = m[BODY].key ? NULL : m[BODY_FILE].value;
    size_t len = 0;

    if (m[BODY].key && m[BODY_FILE].key)
        weir__say(r, m[BODY_FILE].key,
                  "the body is here or in a file; leave out body or body_file");
    if (text && weir__read_text(r, text, "body", "text"))
        copy_body(r, text, f, text->text, text->n);
    if (file && r->options->near) { /* it would show any file of the folder to refused clients */
        weir__say(r, m[BODY_FILE].key,
                  "rules that are sent may not take a body from a file; write it here, as in body: "
                  "\"[]\", or write "
                  "body_file in the rule file on the server");
        return;
    }
    char *contents = file ? weir__read_file(r, file, WEIR_FALLBACK_MAX,
                                            "the body here, as in body: \"[]\"", &len)
                          : NULL;
    if (contents) {
        copy_body(r, file, f, contents, len);
        f->file = weir__arena_copy(r->arena, file->text, file->n);
    }
    free(contents);
}

/* From the name of the file; else text. */
static const char *type_of(const struct weir__fallback_draft *f)
{
    const char *dot = f->file ? strrchr(f->file, '.') : NULL;

    return dot && strcmp(dot, ".json") == 0   ? "application/json"
           : dot && strcmp(dot, ".html") == 0 ? "text/html"
                                              : "text/plain";
}

static void read_fallback(struct weir__reader *r, const struct weir__node *node,
                          struct weir__guard_draft *g)
{
    struct weir__fallback_draft *f = &g->fallback;
    int64_t status = STATUS;
    struct weir__member m[FALLBACK_MEMBERS] = {
        { .name = "status" }, { .name = "body" }, { .name = "body_file" }, { .name = "type" }
    };

    if (!weir__read_members(r, node, "fallback", m, FALLBACK_MEMBERS))
        return;
    if (node->n == 0)
        weir__say(r, node, "the fallback says nothing; write an answer, such as status: 200");
    if (m[FALLBACK_STATUS].value)
        weir__read_count(r, m[FALLBACK_STATUS].value, "status", 200, 599, &status);
    f->status = (int32_t)status;
    if ((f->status == 204 || f->status == 304) && (m[BODY].key || m[BODY_FILE].key))
        weir__say(r, m[BODY].key ? m[BODY].key : m[BODY_FILE].key,
                  "an answer with status %d has no body; leave it out, or write status: 200",
                  (int)f->status);
    read_body(r, m, f);
    read_type(r, &m[TYPE], f);
    if (m[TYPE].key && m[BODY].key == NULL && m[BODY_FILE].key == NULL)
        weir__say(r, m[TYPE].key, "'type' is the type of a body; write one, such as body: \"[]\"");
    if (f->body == NULL)
        f->body = weir__arena_copy(r->arena, "", 0);
    if (f->type == NULL)
        f->type = weir__arena_copy(r->arena, type_of(f), strlen(type_of(f)));
}

/* ------------------------------------------------- users, classes, priority ---- */

void weir__read_guard_key(struct weir__reader *r, const struct weir__node *node, const char *name,
                          struct weir__rule_draft *out)
{
    struct weir__template t;
    struct weir_error error = { 0 };
    const char *text = weir__read_braces(r, node, name, "text such as \"{account}\"");
    int code = text ? weir__template_parse(&t, text, &error) : WEIR_INVALID;

    if (code == WEIR_NO_MEMORY)
        r->arena->failed = true;
    if (text && code != WEIR_OK)
        weir__say_error(r, node, name, &error);
    if (code != WEIR_OK)
        return;
    if (t.n == 0)
        weir__say(
            r, node,
            "a %s without an attribute is everybody; write one in braces, such as \"{account}\"",
            name);
    for (size_t i = 0; i < t.n; i++)
        weir__read_attribute(r, node, t.parts[i].attribute, strlen(t.parts[i].attribute));
    weir__template_free(&t);
    char *copy = weir__arena_copy(r->arena, text, node->n);
    out->key = copy ? copy : out->key;
}

static void read_user(struct weir__reader *r, const struct weir__node *node,
                      struct weir__guard_draft *g)
{
    weir__read_guard_key(r, node, "user", &g->rule);
}

/* One whole attribute, perhaps with a fallback; or a word. */
static bool take_pick(struct weir__reader *r, const struct weir__member *m,
                      const struct weir__template *t, struct weir__pick_draft *out)
{
    const struct weir__template_part *p = t->parts;
    const char *word = t->n == 0 ? p->before : p->fallback;

    if (t->n > 1 ||
        (t->n == 1 && (*p->before || *t->parts[1].before || p->prefix4 != WEIR__NO_PREFIX))) {
        weir__say(r, m->value,
                  "%s must be one attribute in braces, such as \"{header.x-%s}\", or a word",
                  m->name, m->name);
        return false;
    }
    if (t->n == 1)
        out->attribute = weir__read_attribute(r, m->value, p->attribute, strlen(p->attribute));
    out->fallback = word ? weir__arena_copy(r->arena, word, strlen(word)) : NULL;
    return true;
}

static bool read_pick(struct weir__reader *r, const struct weir__member *m,
                      struct weir__pick_draft *out)
{
    struct weir__template t;
    struct weir_error error = { 0 };
    const char *text = m->value ? weir__read_braces(r, m->value, m->name,
                                                    "an attribute such as \"{plan}\", or a word")
                                : NULL;
    int code = text ? weir__template_parse(&t, text, &error) : WEIR_INVALID;
    bool good = false;

    if (code == WEIR_NO_MEMORY)
        r->arena->failed = true;
    if (code == WEIR_OK) {
        good = take_pick(r, m, &t, out);
        weir__template_free(&t);
    } else if (text) {
        weir__say_error(r, m->value, m->name, &error);
    }
    return good;
}

static void read_class(struct weir__reader *r, const struct weir__member *m,
                       struct weir__guard_draft *g)
{
    const char *names[WEIR_CLASSES];
    const char *word;

    if (!read_pick(r, m, &g->user_class) || r->arena->failed)
        return;
    if (g->n_classes == 0) {
        weir__say(r, m->key,
                  "'class' needs the classes there are; write them, such as concurrency: { "
                  "weights: { gold: 3, free: 1 } }");
        return;
    }
    word = g->user_class.fallback;
    for (size_t i = 0; i < g->n_classes; i++)
        names[i] = g->options.classes[i].name;
    if (word && weir__class_find(&g->options, word, strlen(word)) < 0)
        weir__say(r, m->value, "unknown class %s; %s", weir__quote(word, strlen(word)).text,
                  weir__hint(word, strlen(word), names, g->n_classes).text);
}

/* A number within bounds: unlike a request's, it is not brought within them. */
bool weir__read_priority_number(const struct weir__node *node, int8_t *out)
{
    const char *text = node->kind == WEIR__NODE_TEXT ? node->text : "";
    size_t sign = text[0] == '-';

    return node->n == sign + 1 && weir__priority_read(NULL, 0, text, node->n, out) &&
           *out == (sign ? '0' - text[1] : text[0] - '0');
}

_Static_assert(WEIR_PRIORITY_MIN > -10 && WEIR_PRIORITY_MAX < 10, "a priority has one digit");

static void read_words(struct weir__reader *r, const struct weir__node *node,
                       struct weir__guard_draft *g)
{
    if (node->kind != WEIR__NODE_MAPPING || node->n == 0 || node->n > WEIR__PRIORITY_WORDS) {
        weir__say(r, node,
                  "priorities must be a mapping from 1 to %d words to numbers from %d to %d, such "
                  "as { checkout: 5, crawl: -3 }",
                  WEIR__PRIORITY_WORDS, WEIR_PRIORITY_MIN, WEIR_PRIORITY_MAX);
        return;
    }
    for (size_t i = 0; i < node->n; i++) {
        const struct weir__node *key = node->items[2 * i], *value = node->items[2 * i + 1];
        struct weir__priority_word *w = &g->words[g->n_words];
        if (!weir__read_word_name(r, key, "priority", WEIR__RULE_NAME_MAX))
            continue;
        if (!weir__read_priority_number(value, &w->priority))
            weir__say(r, value, "a priority is a number from %d to %d; the highest goes first",
                      WEIR_PRIORITY_MIN, WEIR_PRIORITY_MAX);
        else if ((w->name = weir__arena_copy(r->arena, key->text, key->n)) != NULL)
            g->n_words++;
    }
}

static void read_priority(struct weir__reader *r, const struct weir__member *m,
                          struct weir__guard_draft *g)
{
    const char *names[WEIR__PRIORITY_WORDS], *word;
    int8_t priority;

    if (!read_pick(r, m, &g->priority) || (word = g->priority.fallback) == NULL)
        return;
    struct weir__node node = { .kind = WEIR__NODE_TEXT, .n = strlen(word), .text = word };
    for (size_t i = 0; i < g->n_words; i++) {
        names[i] = g->words[i].name;
        if (strcmp(names[i], word) == 0)
            return;
    }
    if (!weir__read_priority_number(&node, &priority))
        weir__say(r, m->value,
                  "unknown priority %s; write a number from %d to %d, or one of `priorities`%s%s",
                  weir__quote(word, node.n).text, WEIR_PRIORITY_MIN, WEIR_PRIORITY_MAX,
                  g->n_words ? ": " : "",
                  g->n_words ? weir__hint(word, node.n, names, g->n_words).text : "");
}

/* ---------------------------------------------------------------- guards ---- */

/* In the order of reading: waits are by priority, and the adaptive limit may not exceed the
 * concurrency. */
static const struct part {
    const char *name;
    void (*read)(struct weir__reader *r, const struct weir__node *node,
                 struct weir__guard_draft *g);
} parts[] = {
    { "priorities", read_words },
    { "concurrency", weir__read_concurrency },
    { "adaptive", weir__read_adaptive },
    { "breaker", weir__read_breaker },
    { "system", weir__read_system },
    { "fallback", read_fallback },
    { "user", read_user },
};

static void check_bounds(struct weir__reader *r, const struct weir__node *node,
                         const struct weir__mapping *m, const char *name)
{
    static const char *const bounds[] = { "concurrency", "adaptive", "breaker",
                                          "shed",        "system",   "degrade" };
    const struct weir__member *raises = weir__member_of(m, "raises");
    bool any = false;

    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        any = any || weir__member_of(m, bounds[i])->key;
    if (!any)
        weir__say(r, node,
                  "%s%s%s guards nothing; write a bound, such as concurrency: 64 or "
                  "adaptive: weir",
                  name ? "the guard '" : "the guard", name ? name : "", name ? "'" : "");
    if (raises->key && weir__member_of(m, "breaker")->key == NULL &&
        weir__member_of(m, "system")->key == NULL)
        weir__say(r, raises->key,
                  "'raises' needs a breaker or system: while one of them says no, degradation is "
                  "raised");
}

static void read_who(struct weir__reader *r, const struct weir__mapping *m,
                     struct weir__guard_draft *g)
{
    const struct weir__member *words = weir__member_of(m, "priorities"),
                              *priority = weir__member_of(m, "priority");

    if (words->key && priority->key == NULL)
        weir__say(r, words->key,
                  "'priorities' gives words numbers; write where they are, such as priority: "
                  "\"{header.x-priority}\"");
    read_priority(r, priority, g);
    read_class(r, weir__member_of(m, "class"), g);
    g->options.mode = g->rule.mode;
}

static void read_guard(struct weir__reader *r, const struct weir__node *node,
                       struct weir__guard_draft *g)
{
    static const char *const others[] = { "name",   "about",      "match",    "not",
                                          "mode",   "priority",   "class",    "concurrency",
                                          "user",   "priorities", "adaptive", "breaker",
                                          "system", "fallback",   "paths",    NULL };
    struct weir__mapping m = { .others = others };
    struct weir__guard_plan plan;
    struct weir_error error = { 0 };
    size_t before = weir__problems(r);

    g->rule.key = r->empty;
    g->rule.cost = 1;
    g->rule.mode = WEIR_ENFORCE;
    g->rule.mark = weir__mark_of(r, node);
    if (!weir__read_rows(r, node, &weir__guard_rows[WEIR__GUARD], &m, &g->options))
        return;
    weir__note_bare(&m, g);
    weir__read_head(r, node, "guard", &m, &g->rule);
    check_bounds(r, node, &m, g->rule.name);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const struct weir__member *part = weir__member_of(&m, parts[i].name);
        if (part->value)
            parts[i].read(r, part->value, g);
    }
    weir__fill_queue(g);
    read_who(r, &m, g);
    if (weir__problems(r) == before && !r->arena->failed &&
        weir__guard_plan_make(&plan, &g->options, 0, &error) != WEIR_OK)
        weir__say(r, node, "guard '%s': %s", g->rule.name, error.text);
}

void weir__read_guards(struct weir__reader *r, const struct weir__node *node)
{
    struct weir__draft *draft = r->draft;

    if (node->kind != WEIR__NODE_LIST) {
        weir__say(
            r, node,
            "guards must be a list: each guard begins with a dash, as in - name: search; found %s",
            weir__node_word(node));
        return;
    }
    if (node->n > WEIR__GUARDS_MAX) {
        weir__say(r, node->items[WEIR__GUARDS_MAX], "there are %zu guards; the most is %d", node->n,
                  WEIR__GUARDS_MAX);
        return;
    }
    draft->guards = weir__arena_take(r->arena, node->n, sizeof(*draft->guards));
    r->empty = r->empty ? r->empty : weir__arena_copy(r->arena, "", 0);
    if (draft->guards == NULL || r->empty == NULL)
        return;
    draft->n_guards = node->n;
    for (size_t i = 0; i < node->n; i++)
        read_guard(r, node->items[i], &draft->guards[i]);
}
