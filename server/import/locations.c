/* locations.c -- locations: which requests of a server reach some of them, as conditions of rules.
 *
 * A location has the requests that match it, less those that another one takes first.  nginx takes
 * = before all; then the longest prefix; then, unless that says ^~, the first regular expression
 * that matches, those within the prefix's own block before others.  So the requests of several
 * locations are "one of these patterns, and none of those", if no excluded pattern covers a request
 * of theirs; or else one such set for each.
 */
#include <string.h>

#include "server/import/import.h"

#define LOCATIONS_MAX 500 /* of a server */

/* ----------------------------------------------------------------- locations ---- */

struct finding {
    struct weir__import *import;
    const struct weir__directive *server;
    struct weir__import_place **end;
    const struct weir__import_place *parent;
    size_t n;
    bool silent;
};

static bool answers_itself(const struct weir__directive *d)
{
    return weir__conf_find(d, "return") != NULL || weir__conf_find(d, "internal") != NULL;
}

/* Rules look at paths with nothing left to resolve. */
static bool is_plain(const char *path)
{
    size_t len = strlen(path);
    bool dots =
        len > 2 && (strcmp(path + len - 2, "/.") == 0 || strcmp(path + len - 3, "/..") == 0);

    return path[0] == '/' && strpbrk(path, "?#%*\\") == NULL && strstr(path, "//") == NULL &&
           strstr(path, "/./") == NULL && strstr(path, "/../") == NULL && !dots;
}

static struct weir__import_place *add_place(struct finding *f, const struct weir__directive *at,
                                            enum weir__import_place_kind kind, const char *text)
{
    struct weir__import_place *p = weir__import_take(f->import, 1, sizeof(*p));

    *p = (struct weir__import_place){
        .at = at, .server = f->server, .kind = kind, .text = text, .index = ++f->n
    };
    p->parent = f->parent;
    p->silent = f->silent || answers_itself(at);
    if (kind != WEIR__PLACE_REGEX && text[0] != '\0' && !is_plain(text))
        weir__import_note(f->import, at, true,
                          "rules cannot express this path: its requests are decided as if the "
                          "location were not there");
    else if (kind != WEIR__PLACE_REGEX)
        weir__pattern_add(f->import, &p->patterns,
                          kind == WEIR__PLACE_EXACT ? WEIR__IMPORT_EXACT : WEIR__IMPORT_PREFIX,
                          text);
    *f->end = p;
    f->end = &p->next;
    return p;
}

static void add_regex(struct finding *f, const struct weir__directive *at, const char *regex,
                      bool any_case)
{
    struct weir__import_place *p = add_place(f, at, WEIR__PLACE_REGEX, regex);
    bool letters = strpbrk(regex, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL;

    bool said = weir__pattern_regex(f->import, &p->patterns, regex, true);
    for (struct weir__import_pattern *each = p->patterns.first; each != NULL; each = each->next)
        said &= each->kind == WEIR__IMPORT_GLOB || is_plain(each->text);
    if (said && p->parent != NULL)
        said = weir__patterns_within(f->import, &p->patterns, p->parent->text);
    if (!said) {
        p->patterns = (struct weir__import_patterns){ 0 };
        p->doubt = "rules cannot express this regular expression: its requests are decided as if "
                   "the location were not there";
    } else if (any_case && letters) {
        p->doubt = "~* ignores upper and lower case, rules match it as written";
    }
}

/* What stands before the text, which may follow without a blank: =, ^~, ~, ~*. */
static const char *kind_of(const struct weir__directive *location, const char **text)
{
    static const char *const kinds[] = { "=", "^~", "~*", "~" };
    const char *first = location->n > 1 ? location->words[1] : "";

    *text = location->words[location->n - 1];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        size_t len = strlen(kinds[i]);
        if (location->n == 3 ? strcmp(first, kinds[i]) != 0 : strncmp(first, kinds[i], len) != 0)
            continue;
        *text += location->n == 2 ? len : 0;
        return kinds[i];
    }
    return "";
}

static void find_within(struct finding *f, const struct weir__directive *block)
{
    for (const struct weir__directive *d = block->first; d != NULL; d = d->next) {
        const char *text, *kind = kind_of(d, &text);
        struct finding inner = *f;
        struct weir__import_place *p = NULL;
        if (!weir__conf_is(d, "location") || d->n < 2 || d->n > 3 || text[0] == '@')
            continue;
        if (kind[0] == '~') {
            add_regex(f, d, text, kind[1] == '*');
        } else {
            p = add_place(f, d, kind[0] == '=' ? WEIR__PLACE_EXACT : WEIR__PLACE_PREFIX, text);
            p->no_regex = kind[0] == '^';
        }
        inner.end = f->end;
        inner.n = f->n;
        inner.parent = p;
        if (p != NULL)
            find_within(&inner, d);
        else if (weir__conf_find(d, "location") != NULL)
            weir__import_note(
                f->import, weir__conf_find(d, "location"), true,
                "a location within a regular expression is left out: its requests are "
                "decided as by the one around it");
        f->end = inner.end;
        f->n = inner.n;
    }
}

struct weir__import_place *weir__places_find(struct weir__import *import,
                                             const struct weir__directive *http)
{
    struct weir__import_place *all = NULL;
    struct finding f = { .import = import, .end = &all };

    for (const struct weir__directive *d = http->first; d != NULL; d = d->next) {
        if (!weir__conf_is(d, "server"))
            continue;
        f.server = d;
        f.silent = weir__conf_find(d, "return") != NULL;
        add_place(&f, d, WEIR__PLACE_PREFIX, "");
        find_within(&f, d);
    }
    return all;
}

/* The next one of the same server. */
static struct weir__import_place *next_of(const struct weir__import_place *p)
{
    return p->next != NULL && p->next->server == p->server ? p->next : NULL;
}

/* -------------------------------------------------------------- who takes what ---- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool may_share(const struct weir__import_place *regex,
                      const struct weir__import_place *exact)
{
    for (struct weir__import_pattern *p = regex->patterns.first; p != NULL; p = p->next)
        if (weir__pattern_may_be(p, exact->text))
            return true;
    return false;
}

/* Is `p` in the block of `above`, at any depth, or the same?  NULL is the server's. */
static bool is_in(const struct weir__import_place *p, const struct weir__import_place *above)
{
    while (p != NULL && p != above)
        p = p->parent;
    return p == above;
}

/* Of `p` and the blocks around it, the one directly in the block of `above`. */
static const struct weir__import_place *branch(const struct weir__import_place *p,
                                               const struct weir__import_place *above)
{
    while (p->parent != above)
        p = p->parent;
    return p;
}

/* Is the regular expression tried for requests whose prefix is this one?  First those of its own
 * block are, then those of each block around it, unless a ^~ is between. */
static bool is_tried(const struct weir__import_place *regex,
                     const struct weir__import_place *prefix)
{
    return regex->parent == prefix ||
           (is_in(prefix, regex->parent) && !branch(prefix, regex->parent)->no_regex);
}

static bool is_longer(const struct weir__import_place *e, const struct weir__import_place *c)
{
    return starts_with(e->text, c->text) && strlen(e->text) > strlen(c->text);
}

static bool regex_beats(const struct weir__import_place *e, const struct weir__import_place *c)
{
    if (c->kind == WEIR__PLACE_EXACT)
        return false;
    if (c->kind == WEIR__PLACE_PREFIX)
        return is_tried(e, c);
    if (e->parent == c->parent)
        return e->index < c->index;
    if (is_in(c->parent, e->parent))
        return false;
    return is_in(e->parent, c->parent) || is_longer(e->parent, c->parent);
}

/* nginx looks for the longest prefix of a block, and then in the block of that. */
static bool prefix_beats(const struct weir__import_place *e, const struct weir__import_place *c)
{
    const struct weir__import_place *above = c->parent;

    if (!starts_with(e->text, c->text) &&
        (e->kind == WEIR__PLACE_EXACT || !starts_with(c->text, e->text)))
        return false;
    if (is_in(e, c) || is_in(c, e))
        return is_in(e, c);
    while (!is_in(e, above))
        above = above->parent;
    const struct weir__import_place *x = branch(e, above), *y = branch(c, above);
    return x->kind == WEIR__PLACE_EXACT || strlen(x->text) > strlen(y->text);
}

/* Does `e` take some of the requests that match `c` as well? */
static bool beats(const struct weir__import_place *e, const struct weir__import_place *c)
{
    if (e == c || e->patterns.n == 0)
        return false;
    if (e->kind == WEIR__PLACE_REGEX)
        return regex_beats(e, c);
    if (c->kind == WEIR__PLACE_EXACT)
        return false;
    if (c->kind == WEIR__PLACE_PREFIX)
        return prefix_beats(e, c);
    if (e->kind == WEIR__PLACE_EXACT)
        return may_share(c, e);
    return !is_tried(c, e) && (c->parent == NULL || is_longer(e, c->parent));
}

/* -------------------------------------------------------------------- regions ---- */

struct weir__region *weir__region_add(struct weir__import *import, struct weir__region ***end)
{
    **end = weir__import_take(import, 1, sizeof(***end));
    struct weir__region *made = **end;
    *end = &made->next;
    return made;
}

static bool is_everything(const struct weir__import_place *p)
{
    return p->kind == WEIR__PLACE_PREFIX && strlen(p->text) < 2;
}

/* The first "" or "/" is beaten by the other one, which has everything. */
static bool is_empty(const struct weir__import_place *p, const struct weir__import_place *places)
{
    for (const struct weir__import_place *e = places; e != NULL && p->text[0] == '\0';
         e = next_of(e))
        if (e != p && is_everything(e))
            return true;
    return false;
}

static bool is_chosen(const struct weir__import_place *p, const struct weir__import_place *only)
{
    return only != NULL ? p == only : p->chosen;
}

/* Does an excluded place cover requests of one chosen, and lose some to another one chosen? */
static bool is_between(struct weir__import_place *places, const struct weir__import_place *e)
{
    bool takes = false, loses = false;

    for (struct weir__import_place *c = places; c != NULL; c = next_of(c)) {
        takes |= c->chosen && beats(e, c);
        loses |= c->chosen && beats(c, e);
    }
    return takes && loses;
}

static bool beats_chosen(const struct weir__import_place *e,
                         const struct weir__import_place *places,
                         const struct weir__import_place *only)
{
    for (const struct weir__import_place *c = places; c != NULL; c = next_of(c))
        if (is_chosen(c, only) && beats(e, c) && !is_empty(c, places))
            return true;
    return false;
}

/* May a text of the pattern start so? */
static bool may_start(const struct weir__import_pattern *p, const char *start)
{
    size_t fixed = p->kind == WEIR__IMPORT_GLOB ? strcspn(p->text, "*?") : strlen(p->text);
    size_t len = strlen(start);

    return strncmp(p->text, start, fixed < len ? fixed : len) == 0 &&
           (fixed >= len || p->kind != WEIR__IMPORT_EXACT);
}

/* A ^~ keeps its requests from regular expressions, but not those of a longer prefix within. */
static void note_regained(struct weir__import *import, const struct weir__import_place *places,
                          const struct weir__import_place *c, const struct weir__import_place *e)
{
    for (const struct weir__import_place *q = places; q != NULL; q = next_of(q))
        for (struct weir__import_pattern *p = c->patterns.first; p != NULL; p = p->next)
            if (q->kind == WEIR__PLACE_PREFIX && is_longer(q, e) && is_tried(c, q) &&
                may_start(p, q->text))
                weir__import_note(import, q->at, true,
                                  "requests of %s that match %s are within %s too, which rules "
                                  "leave out there: not limited",
                                  q->text, c->text, e->text);
}

static void note_all_regained(struct weir__import *import, const struct weir__import_place *places,
                              const struct weir__import_place *only,
                              const struct weir__import_place *e)
{
    for (const struct weir__import_place *c = places; c != NULL; c = next_of(c))
        if (is_chosen(c, only) && c->kind == WEIR__PLACE_REGEX && beats(e, c))
            note_regained(import, places, c, e);
}

/* The requests of the chosen places of a server, or of one of them. */
static void say(struct weir__import *import, struct weir__import_place *places,
                const struct weir__import_place *only, struct weir__import_condition *out)
{
    bool everything = false;

    for (struct weir__import_place *p = places; p != NULL; p = next_of(p)) {
        if (is_chosen(p, only) && !is_empty(p, places)) {
            everything |= is_everything(p);
            weir__patterns_add(import, &out->match, &p->patterns);
        } else if (!is_chosen(p, only) && beats_chosen(p, places, only)) {
            weir__patterns_add(import, &out->not, &p->patterns);
            if (p->kind == WEIR__PLACE_PREFIX)
                note_all_regained(import, places, only, p);
        }
    }
    if (everything)
        out->match = (struct weir__import_patterns){ 0 };
}

static void add_uri(struct weir__import *import, struct weir__region ***end,
                    struct weir__import_place *places, const struct weir__import_place *only)
{
    struct weir__import_condition uri = { .attribute = "uri" };
    struct weir__region *r = weir__region_add(import, end);

    say(import, places, only, &uri);
    if (uri.match.n + uri.not .n > 0)
        *weir__condition_of(import, &r->conditions, "uri") = uri;
}

struct weir__region *weir__places_within(struct weir__import *import,
                                         struct weir__import_place *places)
{
    struct weir__region *all = NULL, **end = &all;
    size_t n = 0, chosen = 0, between = 0;

    for (struct weir__import_place *p = places; p != NULL; p = next_of(p)) {
        chosen += p->chosen && !is_empty(p, places) && p->patterns.n > 0;
        n++;
    }
    if (n > LOCATIONS_MAX && chosen > 0) {
        weir__import_note(import, places->at, true, "a server of too many locations is left out");
        return NULL;
    }
    for (struct weir__import_place *p = places; p != NULL && chosen > 0; p = next_of(p))
        between += !p->chosen && is_between(places, p);
    if (chosen > 0 && between == 0)
        add_uri(import, &end, places, NULL);
    for (struct weir__import_place *p = places; p != NULL && between > 0; p = next_of(p))
        if (p->chosen && !is_empty(p, places) && p->patterns.n > 0)
            add_uri(import, &end, places, p);
    return all;
}
