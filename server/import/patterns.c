/* patterns.c -- regular expressions and names with stars, as the patterns of rules.
 *
 * A regular expression becomes globs if it is made of plain text, alternatives, .* and [^/]*; each
 * alternative is a glob of its own: \.(jpg|png)$ is **.jpg and **.png.
 */
#include <ctype.h>
#include <string.h>

#include "server/import/import.h"

#define TEXTS_MAX 64 /* alternatives of one expression */
#define TEXT_MAX  512
#define DEPTH_MAX 16
#define SHORT     64

/* ------------------------------------------------------------- the expression ---- */

struct texts {
    const char *each[TEXTS_MAX];
    size_t n;
};

struct regex {
    struct weir__import *import;
    const char *at;
    bool path;
    int depth;
};

static bool read_alternatives(struct regex *r, struct texts *out);

static bool add_text(struct texts *to, const char *text)
{
    if (to->n == TEXTS_MAX)
        return false;
    to->each[to->n++] = text;
    return true;
}

/* Each of `to` followed by each of `more`. */
static bool append(struct regex *r, struct texts *to, const struct texts *more)
{
    struct texts all = { .n = 0 };

    for (size_t i = 0; i < to->n; i++) {
        for (size_t k = 0; k < more->n; k++) {
            if (strlen(to->each[i]) + strlen(more->each[k]) > TEXT_MAX ||
                !add_text(&all, weir__import_text(r->import, "%s%s", to->each[i], more->each[k])))
                return false;
        }
    }
    *to = all;
    return true;
}

/* [ab], a few letters; [^/] followed by * or +. */
static bool read_class(struct regex *r, struct texts *out)
{
    if (strncmp(r->at, "[^/]*", 5) == 0 || strncmp(r->at, "[^/]+", 5) == 0) {
        const char *glob = r->at[4] == '*' ? "*" : "?*";
        r->at += 5;
        return r->path && add_text(out, glob);
    }
    for (r->at++; *r->at != ']'; r->at++)
        if (*r->at == '\0' || strchr("^-\\[*?", *r->at) != NULL ||
            !add_text(out, weir__import_text(r->import, "%c", *r->at)))
            return false;
    r->at++;
    return out->n > 0;
}

/* Past the name of a group; look-ahead and the like cannot be said. */
static bool skip_group_name(struct regex *r)
{
    if (*r->at != '?')
        return true;
    if (r->at[1] == ':') {
        r->at += 2;
        return true;
    }
    r->at += r->at[1] == 'P' ? 2 : 1;
    if (*r->at != '<' || r->at[1] == '=' || r->at[1] == '!')
        return false;
    r->at += strcspn(r->at, ">");
    return *r->at != '\0' && *r->at++ == '>';
}

static bool read_group(struct regex *r, struct texts *out)
{
    r->at++;
    if (++r->depth > DEPTH_MAX || !skip_group_name(r) || !read_alternatives(r, out) ||
        *r->at != ')')
        return false;
    r->depth--;
    r->at++;
    return true;
}

static bool read_dot(struct regex *r, struct texts *out)
{
    r->at++;
    if (*r->at == '*') {
        r->at += r->at[1] == '?' ? 2 : 1;
        return add_text(out, r->path ? "**" : "*");
    }
    if (r->path)
        return false; /* ? is any byte but a slash */
    bool more = *r->at == '+';
    r->at += more;
    return add_text(out, more ? "?*" : "?");
}

static bool read_byte(struct regex *r, struct texts *out)
{
    if (*r->at == '\\') {
        r->at++;
        if (isalnum((unsigned char)*r->at))
            return false;
    } else if (strchr("^$*+?{}|)", *r->at) != NULL) {
        return false;
    }
    if (*r->at == '\0' || *r->at == '*' || *r->at == '?')
        return false; /* a glob's own */
    return add_text(out, weir__import_text(r->import, "%c", *r->at++));
}

static bool read_atom(struct regex *r, struct texts *out)
{
    bool read = *r->at == '('   ? read_group(r, out)
                : *r->at == '[' ? read_class(r, out)
                : *r->at == '.' ? read_dot(r, out)
                                : read_byte(r, out);

    if (!read || *r->at == '*' || *r->at == '+' || *r->at == '{')
        return false;
    if (*r->at == '?') {
        r->at++;
        return add_text(out, "");
    }
    return true;
}

static bool read_sequence(struct regex *r, struct texts *out)
{
    *out = (struct texts){ .each = { "" }, .n = 1 };
    while (*r->at != '\0' && *r->at != '|' && *r->at != ')' &&
           !(*r->at == '$' && (r->at[1] == '\0' || r->at[1] == '|'))) {
        struct texts atom = { .n = 0 };
        if (!read_atom(r, &atom) || !append(r, out, &atom))
            return false;
    }
    return true;
}

static bool read_alternatives(struct regex *r, struct texts *out)
{
    for (;;) {
        struct texts one;
        if (!read_sequence(r, &one))
            return false;
        for (size_t i = 0; i < one.n; i++)
            if (!add_text(out, one.each[i]))
                return false;
        if (*r->at != '|')
            return true;
        r->at++;
    }
}

/* One alternative of the whole expression, with its anchors. */
static bool read_whole(struct regex *r, struct weir__import_patterns *list)
{
    bool from_start = *r->at == '^';
    const char *any = r->path ? "**" : "*";
    struct texts texts;

    r->at += from_start;
    if (!read_sequence(r, &texts) || *r->at == ')')
        return false;
    bool to_end = *r->at == '$';
    r->at += to_end;
    for (size_t i = 0; i < texts.n; i++) {
        const char *text = texts.each[i];
        bool plain = strpbrk(text, "*?") == NULL;
        if (from_start && plain)
            weir__pattern_add(r->import, list, to_end ? WEIR__IMPORT_EXACT : WEIR__IMPORT_PREFIX,
                              text);
        else
            weir__pattern_add(r->import, list, WEIR__IMPORT_GLOB,
                              weir__import_text(r->import, "%s%s%s", from_start ? "" : any, text,
                                                to_end ? "" : any));
    }
    return true;
}

bool weir__pattern_regex(struct weir__import *import, struct weir__import_patterns *list,
                         const char *regex, bool path)
{
    struct regex r = { .import = import, .at = regex, .path = path };
    struct weir__import_patterns found = { 0 };

    for (;;) {
        if (!read_whole(&r, &found))
            return false;
        if (*r.at == '\0')
            break;
        r.at++; /* | */
    }
    weir__patterns_add(import, list, &found);
    return true;
}

/* ------------------------------------------------------------------- patterns ---- */

/* In a long list nobody sees a pattern twice. */
static bool has_pattern(const struct weir__import_patterns *list, enum weir__import_kind kind,
                        const char *text)
{
    for (const struct weir__import_pattern *p = list->n <= SHORT ? list->first : NULL; p;
         p = p->next)
        if (p->kind == kind && strcmp(p->text, text) == 0)
            return true;
    return false;
}

void weir__pattern_add(struct weir__import *import, struct weir__import_patterns *list,
                       enum weir__import_kind kind, const char *text)
{
    if (has_pattern(list, kind, text))
        return;
    struct weir__import_pattern *p = weir__import_take(import, 1, sizeof(*p));
    *p = (struct weir__import_pattern){ .kind = kind, .text = text };
    if (list->last != NULL)
        list->last->next = p;
    else
        list->first = p;
    list->last = p;
    list->n++;
}

void weir__patterns_add(struct weir__import *import, struct weir__import_patterns *list,
                        const struct weir__import_patterns *more)
{
    for (const struct weir__import_pattern *p = more->first; p != NULL; p = p->next)
        weir__pattern_add(import, list, p->kind, p->text);
}

/* nginx tries a regular expression last, also one that says the same as a name. */
static void after_names(struct weir__import *import, struct weir__import_pattern *p)
{
    int rank = weir__pattern_rank(p);

    if (rank == 3)
        return;
    p->kind = WEIR__IMPORT_GLOB;
    p->text =
        weir__import_text(import, "%s%s%s", rank == 1 ? "*" : "", p->text, rank == 2 ? "*" : "");
}

bool weir__pattern_host(struct weir__import *import, struct weir__import_patterns *list,
                        const char *name)
{
    char *small = weir__import_text(import, "%s", name);

    if (name[0] == '~') {
        bool said = weir__pattern_regex(import, list, name + 1, false);
        for (struct weir__import_pattern *p = list->first; p != NULL; p = p->next)
            after_names(import, p);
        return said;
    }
    for (char *c = small; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    if (small[0] == '.') {
        weir__pattern_add(import, list, WEIR__IMPORT_EXACT, small + 1);
        weir__pattern_add(import, list, WEIR__IMPORT_GLOB, weir__import_text(import, "*%s", small));
    } else if (small[0] != '\0') {
        bool star = strchr(small, '*') != NULL;
        weir__pattern_add(import, list, star ? WEIR__IMPORT_GLOB : WEIR__IMPORT_EXACT, small);
    }
    return small[0] != '\0';
}

int weir__pattern_rank(const struct weir__import_pattern *pattern)
{
    const char *text = pattern->text;
    size_t len = strlen(text);

    if (pattern->kind == WEIR__IMPORT_EXACT)
        return 0;
    if (pattern->kind != WEIR__IMPORT_GLOB || len < 3)
        return 3;
    if (strncmp(text, "*.", 2) == 0 && strpbrk(text + 1, "*?") == NULL)
        return 1;
    return strcmp(text + len - 2, ".*") == 0 && strcspn(text, "*?") == len - 1 ? 2 : 3;
}

static bool glob_may_be(const char *glob, const char *text)
{
    const char *star = NULL, *again = NULL;

    while (*text != '\0') {
        if (*glob == '*') {
            star = ++glob;
            again = text;
        } else if (*glob == '?' || *glob == *text) {
            glob++;
            text++;
        } else if (star != NULL) {
            glob = star;
            text = ++again;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == '\0';
}

bool weir__pattern_may_be(const struct weir__import_pattern *pattern, const char *text)
{
    if (pattern->kind == WEIR__IMPORT_PREFIX)
        return strncmp(pattern->text, text, strlen(pattern->text)) == 0;
    if (pattern->kind == WEIR__IMPORT_GLOB)
        return glob_may_be(pattern->text, text);
    return strcmp(pattern->text, text) == 0;
}

/* PREFIX**REST has the texts of **REST that start with the prefix, but for those whose REST begins
 * inside the prefix.  `tail` is the end of the prefix in which it may. */
static bool add_tails(struct weir__import *import, struct weir__import_patterns *list,
                      const char *prefix, const char *tail, const char *rest)
{
    size_t n = strcspn(rest, "*?");

    weir__pattern_add(import, list, WEIR__IMPORT_GLOB,
                      weir__import_text(import, "%s**%s", prefix, rest));
    for (; *tail != '\0'; tail++) {
        size_t len = strlen(tail);
        if (strncmp(tail, rest, len < n ? len : n) != 0 || (len > n && rest[n] == '\0'))
            continue;
        bool all = len >= n && strcmp(rest + n, "**") == 0;
        if (len > n && !all)
            return false;
        bool plain = all || rest[n] == '\0';
        weir__pattern_add(import, list,
                          all     ? WEIR__IMPORT_PREFIX
                          : plain ? WEIR__IMPORT_EXACT
                                  : WEIR__IMPORT_GLOB,
                          weir__import_text(import, "%s%s", prefix, all ? "" : rest + len));
    }
    return true;
}

static bool add_within(struct weir__import *import, struct weir__import_patterns *list,
                       const struct weir__import_pattern *p, const char *prefix)
{
    size_t len = strlen(prefix);
    size_t head = p->kind == WEIR__IMPORT_GLOB ? strcspn(p->text, "*?") : strlen(p->text);
    const char *rest = p->text + head;

    if (head >= len || p->kind == WEIR__IMPORT_EXACT) {
        if (strncmp(p->text, prefix, len) == 0)
            weir__pattern_add(import, list, p->kind, p->text);
        return true;
    }
    if (strncmp(p->text, prefix, head) != 0)
        return true;
    if (p->kind == WEIR__IMPORT_PREFIX || strcmp(rest, "**") == 0) {
        weir__pattern_add(import, list, WEIR__IMPORT_PREFIX, prefix);
        return true;
    }
    return strncmp(rest, "**", 2) == 0 && add_tails(import, list, prefix, prefix + head, rest + 2);
}

bool weir__patterns_within(struct weir__import *import, struct weir__import_patterns *list,
                           const char *prefix)
{
    struct weir__import_patterns found = { 0 };

    for (const struct weir__import_pattern *p = list->first; p != NULL; p = p->next)
        if (strpbrk(prefix, "*?") != NULL || !add_within(import, &found, p, prefix))
            return false;
    *list = found;
    return true;
}

static bool are_equal(const struct weir__import_patterns *a, const struct weir__import_patterns *b)
{
    const struct weir__import_pattern *x = a->first, *y = b->first;

    for (; x != NULL && y != NULL; x = x->next, y = y->next)
        if (x->kind != y->kind || strcmp(x->text, y->text) != 0)
            return false;
    return x == y;
}

/* ----------------------------------------------------------------- conditions ---- */

struct weir__import_condition *weir__condition_of(struct weir__import *import,
                                                  struct weir__import_condition **list,
                                                  const char *attribute)
{
    while (*list != NULL && strcmp((*list)->attribute, attribute) != 0)
        list = &(*list)->next;
    if (*list == NULL) {
        *list = weir__import_take(import, 1, sizeof(**list));
        (*list)->attribute = attribute;
    }
    return *list;
}

bool weir__conditions_join(struct weir__import *import, struct weir__import_condition **list,
                           const struct weir__import_condition *more)
{
    for (; more != NULL; more = more->next) {
        struct weir__import_condition *c = weir__condition_of(import, list, more->attribute);
        bool both = c->match.n > 0 && more->match.n > 0;
        if (both && !are_equal(&c->match, &more->match))
            return false;
        if (!both)
            weir__patterns_add(import, &c->match, &more->match);
        weir__patterns_add(import, &c->not, &more->not );
    }
    return true;
}

bool weir__conditions_equal(const struct weir__import_condition *a,
                            const struct weir__import_condition *b)
{
    for (; a != NULL && b != NULL; a = a->next, b = b->next)
        if (strcmp(a->attribute, b->attribute) != 0 || !are_equal(&a->match, &b->match) ||
            !are_equal(&a->not, &b->not ))
            return false;
    return a == b;
}
