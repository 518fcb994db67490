/* zone-keys.c -- the key of a zone, with its maps and geos, as cases.
 *
 *     geo $free { default 0; 10.0.0.0/8 1; }
 *     map $free $who { 0 $binary_remote_addr; 1 ""; }
 *
 * $who has two cases: not from 10.0.0.0/8, then the address; from there, then nothing.  Those with
 * nothing go: nginx does not limit an empty key.  A map that conditions cannot express is left to
 * nginx: its variable becomes an attribute of its own, and a note says so.
 *
 * Three things differ.  nginx puts values side by side, so "ab" + "c" is "a" + "bc"; rules keep
 * them apart.  An absent value beside others is "-".  Maps ignore case, rules do not: a note.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/import/import.h"

#define DEPTH_MAX  8  /* maps of maps */
#define GROUPS_MAX 32 /* different results of a map */

static struct weir__case *cases_of(struct weir__import *import, const char *expression,
                                   const struct weir__directive *at, int depth);

/* ---------------------------------------------------------------- variables ---- */

static const struct {
    const char *variable, *attribute;
    bool always;
} known[] = {
    { "binary_remote_addr", "ip", true },
    { "remote_addr", "ip", true },
    { "uri", "uri", true },
    { "document_uri", "uri", true },
    { "request_method", "method", true },
    { "scheme", "scheme", true },
    { "host", "host", true },
    { "server_name", "server", false },
    { "remote_user", "user", false },
};

static bool is_always(const char *attribute)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(known[i].attribute, attribute) == 0)
            return known[i].always;
    return false;
}

const char *weir__value_want(struct weir__import *import, const char *name)
{
    struct weir__wanted *w = import->wanted;

    while (w != NULL && strcmp(w->variable, name) != 0)
        w = w->next;
    if (w == NULL) {
        w = weir__import_take(import, 1, sizeof(*w));
        *w = (struct weir__wanted){ name, name, import->wanted };
        import->wanted = w;
    }
    return w->name;
}

static bool has_letters(const char *text)
{
    for (; *text != '\0'; text++)
        if (isalpha((unsigned char)*text))
            return true;
    return false;
}

static const char *attribute_of(struct weir__import *import, const char *name,
                                const struct weir__directive *at)
{
    static const char *const families[][2] = { { "http_", "header." },
                                               { "cookie_", "cookie." },
                                               { "arg_", "arg." } };

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(name, known[i].variable) == 0)
            return known[i].attribute;
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        size_t len = strlen(families[i][0]);
        if (strncmp(name, families[i][0], len) != 0 || name[len] == '\0')
            continue;
        char *made = weir__import_text(import, "%s%s", families[i][1], name + len);
        for (char *c = made; i == 0 && *c != '\0'; c++)
            *c = *c == '_' ? '-' : *c;
        if (i > 0 && has_letters(name + len))
            weir__import_note(import, at, true,
                              "$%s ignores upper and lower case in the name, rules match it as "
                              "written",
                              name);
        return made;
    }
    return weir__value_want(import, name);
}

/* The map or geo that defines a variable; the last one counts. */
static const struct weir__directive *definition_of(const struct weir__import *import,
                                                   const char *name)
{
    const struct weir__directive *found = NULL;

    for (const struct weir__directive *d = import->http->first; d != NULL; d = d->next) {
        bool map = weir__conf_is(d, "map") && d->n == 3;
        bool geo = weir__conf_is(d, "geo") && (d->n == 2 || d->n == 3);
        const char *defines = map || geo ? d->words[d->n - 1] : "";
        if (defines[0] == '$' && strcmp(defines + 1, name) == 0)
            found = d;
    }
    return found;
}

/* -------------------------------------------------------------------- cases ---- */

struct weir__case *weir__case_add(struct weir__import *import, struct weir__case ***end)
{
    **end = weir__import_take(import, 1, sizeof(***end));
    struct weir__case *made = **end;
    made->parts = weir__import_take(import, WEIR__IMPORT_PARTS_MAX, sizeof(*made->parts));
    *end = &made->next;
    return made;
}

static size_t count_cases(const struct weir__case *cases)
{
    size_t n = 0;

    for (; cases != NULL; cases = cases->next)
        n++;
    return n;
}

static bool add_parts(struct weir__case *to, const struct weir__case *more)
{
    if (to->n + more->n > WEIR__IMPORT_PARTS_MAX)
        return false;
    memcpy(to->parts + to->n, more->parts, more->n * sizeof(*to->parts));
    to->n += more->n;
    return true;
}

static bool add_both(struct weir__import *import, struct weir__case ***end,
                     const struct weir__case *a, const struct weir__case *b)
{
    struct weir__case *c = weir__case_add(import, end);

    return weir__conditions_join(import, &c->conditions, a->conditions) &&
           weir__conditions_join(import, &c->conditions, b->conditions) && add_parts(c, a) &&
           add_parts(c, b);
}

/* Each of `a` followed by each of `b`.  NULL: rules cannot express it. */
static struct weir__case *cross(struct weir__import *import, const struct weir__case *a,
                                const struct weir__case *b)
{
    struct weir__case *all = NULL, **end = &all;

    if (count_cases(a) * count_cases(b) > WEIR__IMPORT_CASES_MAX)
        return NULL;
    for (; a != NULL; a = a->next)
        for (const struct weir__case *each = b; each != NULL; each = each->next)
            if (!add_both(import, &end, a, each))
                return NULL;
    return all;
}

static struct weir__case *one_part(struct weir__import *import, const char *text,
                                   const char *attribute)
{
    struct weir__case *made = NULL, **end = &made;

    weir__case_add(import, &end);
    if (attribute != NULL || text[0] != '\0')
        made->parts[made->n++] = (struct weir__value_part){ text, attribute };
    return made;
}

/* The text of a value without attributes; NULL: it has some. */
static const char *constant_of(struct weir__import *import, const struct weir__case *c)
{
    const char *text = "";

    for (size_t i = 0; i < c->n; i++) {
        if (c->parts[i].attribute != NULL)
            return NULL;
        text = weir__import_text(import, "%s%s", text, c->parts[i].text);
    }
    return text;
}

/* --------------------------------------------------------------------- maps ---- */

/* Entries with one result.  Groups are in the order in which they are tried. */
struct group {
    const char *result;
    struct weir__import_patterns patterns;
    bool empty; /* it is for an absent value */
    bool tried; /* only after the groups before it */
};

struct map {
    const struct weir__directive *at;
    const char *fallback; /* result of the default */
    struct group groups[GROUPS_MAX];
    size_t n;
    bool cased; /* letters, which nginx compares without their case */
    bool hostnames;
    struct name *names; /* with stars, which hostnames allows */
    size_t n_names;
};

/* With a star; nginx tries the longest *.name first, then the longest name.* */
struct name {
    struct weir__import_pattern pattern;
    const char *result;
    bool tried;
};

static struct group *group_of(struct map *m, const char *result, bool tried)
{
    for (size_t i = tried && m->n > 0 ? m->n - 1 : 0; i < m->n; i++)
        if (m->groups[i].tried == tried && strcmp(m->groups[i].result, result) == 0)
            return &m->groups[i];
    if (m->n == GROUPS_MAX)
        return NULL;
    m->groups[m->n] = (struct group){ .result = result, .tried = tried };
    return &m->groups[m->n++];
}

static bool is_word(const struct weir__directive *d, const char *word)
{
    return d->n == 1 && weir__conf_is(d, word);
}

/* True: the entry is a name with a star, and nothing else. */
static bool keep_name(struct weir__import *import, struct map *m, const char *source,
                      const char *result)
{
    struct weir__import_patterns said = { 0 };

    if (!m->hostnames || !weir__pattern_host(import, &said, source) ||
        weir__pattern_rank(said.last) == 0)
        return false;
    m->names[m->n_names++] = (struct name){ .pattern = *said.last, .result = result };
    return source[0] != '.';
}

static bool add_plain(struct weir__import *import, struct map *m, const struct weir__directive *d,
                      const char *attribute)
{
    const char *source = d->words[0] + (d->words[0][0] == '\\');
    bool ip = strcmp(attribute, "ip") == 0, host = strcmp(attribute, "host") == 0;

    m->cased |= !host && !ip && has_letters(source);
    if (keep_name(import, m, source, d->words[1]))
        return true;
    struct group *g = group_of(m, d->words[1], false);
    if (g == NULL)
        return false;
    g->empty |= source[0] == '\0';
    char *text = weir__import_text(import, "%s", source + (m->hostnames && source[0] == '.'));
    for (char *c = text; host && *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    if (text[0] != '\0')
        weir__pattern_add(import, &g->patterns, ip ? WEIR__IMPORT_NETWORK : WEIR__IMPORT_EXACT,
                          text);
    return true;
}

static bool add_regex(struct weir__import *import, struct map *m, const struct weir__directive *d,
                      const char *attribute)
{
    const char *source = d->words[0] + 1;
    bool any_case = source[0] == '*';
    struct group *g = group_of(m, d->words[1], true);

    m->cased |= any_case && strcmp(attribute, "host") != 0 && has_letters(source);
    return g != NULL && weir__pattern_regex(import, &g->patterns, source + any_case,
                                            strcmp(attribute, "uri") == 0);
}

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int rank = weir__pattern_rank(&x->pattern) - weir__pattern_rank(&y->pattern);
    size_t n = strlen(x->pattern.text), k = strlen(y->pattern.text);

    if (x->tried != y->tried)
        return x->tried ? 1 : -1;
    return rank != 0 ? rank : n != k ? (n > k ? -1 : 1) : strcmp(x->pattern.text, y->pattern.text);
}

/* May another entry match the same values? */
static bool is_shared(const struct map *m, const struct name *name)
{
    for (size_t i = 0; i < m->n; i++)
        for (struct weir__import_pattern *p = m->groups[i].patterns.first; p; p = p->next)
            if (weir__pattern_may_be(&name->pattern, p->text))
                return true;
    for (size_t i = 0; i < m->n_names; i++) {
        const struct weir__import_pattern *o = &m->names[i].pattern, *p = &name->pattern;
        if (o != p && (weir__pattern_rank(o) != weir__pattern_rank(p) ||
                       weir__pattern_may_be(o, p->text) || weir__pattern_may_be(p, o->text)))
            return true;
    }
    return false;
}

/* Those that share nothing need no order. */
static bool add_names(struct weir__import *import, struct map *m)
{
    for (size_t i = 0; i < m->n_names; i++)
        m->names[i].tried = is_shared(m, &m->names[i]);
    if (m->n_names > 0)
        qsort(m->names, m->n_names, sizeof(*m->names), compare_names);
    for (size_t i = 0; i < m->n_names; i++) {
        struct group *g = group_of(m, m->names[i].result, m->names[i].tried);
        if (g == NULL)
            return false;
        weir__pattern_add(import, &g->patterns, WEIR__IMPORT_GLOB, m->names[i].pattern.text);
    }
    return true;
}

static bool read_entries(struct weir__import *import, struct map *m, const char *attribute,
                         bool regexes)
{
    for (const struct weir__directive *d = m->at->first; d != NULL; d = d->next) {
        bool regex = d->words[0][0] == '~';
        if (is_word(d, "hostnames") || is_word(d, "volatile") || weir__conf_is(d, "include"))
            continue;
        if (d->n != 2)
            return false;
        if (weir__conf_is(d, "default"))
            m->fallback = d->words[1];
        else if (regex == regexes &&
                 !(regex ? add_regex(import, m, d, attribute) : add_plain(import, m, d, attribute)))
            return false;
    }
    return true;
}

/* Plain texts first, then names with stars, regular expressions after them. */
static bool read_map(struct weir__import *import, struct map *m, const char *attribute)
{
    size_t n = 0;

    for (const struct weir__directive *d = m->at->first; d != NULL; d = d->next, n++)
        m->hostnames |= is_word(d, "hostnames");
    m->names = weir__import_take(import, n + 1, sizeof(*m->names));
    return read_entries(import, m, attribute, false) && add_names(import, m) &&
           read_entries(import, m, attribute, true);
}

/* The condition of a group (n: of the default) of a map on an attribute. */
static void add_condition(struct weir__import *import, struct weir__case *c, const struct map *m,
                          size_t n, const char *attribute)
{
    struct weir__import_condition *on = weir__condition_of(import, &c->conditions, attribute);
    bool empty = n < m->n && m->groups[n].empty, absent = false;

    if (n < m->n)
        weir__patterns_add(import, &on->match, &m->groups[n].patterns);
    if (empty) /* and nothing else, or read_map's caller has split it */
        weir__pattern_add(import, &on->not, WEIR__IMPORT_GLOB, "*");
    for (size_t i = 0; i < n; i++) {
        if (n < m->n && !m->groups[n].tried)
            continue;
        weir__patterns_add(import, &on->not, &m->groups[i].patterns);
        absent |= m->groups[i].empty;
    }
    if (absent && on->match.n == 0) /* any value; a pattern means that there is one */
        weir__pattern_add(import, &on->match, WEIR__IMPORT_GLOB, "*");
}

/* A group of an absent value and of others: two, with the same result. */
static bool split_empty(struct map *m)
{
    for (size_t i = 0; i < m->n; i++) {
        if (!m->groups[i].empty || m->groups[i].patterns.n == 0)
            continue;
        if (m->n == GROUPS_MAX)
            return false;
        memmove(&m->groups[i + 1], &m->groups[i], (m->n++ - i) * sizeof(*m->groups));
        m->groups[i].patterns = (struct weir__import_patterns){ 0 };
        m->groups[i + 1].empty = false;
    }
    return true;
}

/* Groups whose result is the default's need no case of their own, unless a later one would match
 * them too. */
static void drop_defaults(struct map *m)
{
    bool tried = false;

    for (size_t i = 0; i < m->n; i++)
        tried |= m->groups[i].tried;
    for (size_t i = 0; i < m->n && !tried;) {
        if (strcmp(m->groups[i].result, m->fallback) == 0)
            memmove(&m->groups[i], &m->groups[i + 1], (--m->n - i) * sizeof(*m->groups));
        else
            i++;
    }
}

static bool add_results(struct weir__import *import, struct weir__case ***end,
                        const struct weir__case *when, const struct weir__case *results)
{
    for (; results != NULL; results = results->next) {
        struct weir__case *c = weir__case_add(import, end);
        if (!weir__conditions_join(import, &c->conditions, when->conditions) ||
            !weir__conditions_join(import, &c->conditions, results->conditions) ||
            !add_parts(c, results))
            return false;
    }
    return true;
}

/* A map of one attribute. */
static bool map_attribute(struct weir__import *import, const struct weir__directive *at,
                          const struct weir__case *source, struct weir__case ***end, int depth)
{
    const char *attribute = source->parts[0].attribute;
    struct map *m = weir__import_take(import, 1, sizeof(*m));

    *m = (struct map){ .at = at, .fallback = "" };
    if (!read_map(import, m, attribute) || !split_empty(m))
        return false;
    drop_defaults(m);
    for (size_t i = 0; i <= m->n; i++) {
        const char *result = i < m->n ? m->groups[i].result : m->fallback;
        struct weir__case when = { 0 }, *results = cases_of(import, result, at, depth + 1);
        if (results == NULL || !weir__conditions_join(import, &when.conditions, source->conditions))
            return false;
        struct weir__case own = { 0 };
        add_condition(import, &own, m, i, attribute);
        if (!weir__conditions_join(import, &when.conditions, own.conditions) ||
            !add_results(import, end, &when, results))
            return false;
    }
    if (m->cased)
        weir__import_note(import, at, true,
                          "the map ignores upper and lower case, rules match it as written");
    return true;
}

/* A map of a value that is known now. */
static bool map_constant(struct weir__import *import, const struct weir__directive *at,
                         const struct weir__case *source, const char *text,
                         struct weir__case ***end, int depth)
{
    const char *result = "";
    bool found = false, hosts = weir__conf_find(at, "hostnames") != NULL;

    for (const struct weir__directive *d = at->first; d != NULL; d = d->next) {
        const char *entry = d->words[0];
        if (d->n != 2 || weir__conf_is(d, "include"))
            continue;
        if (entry[0] == '~' || (hosts && strpbrk(entry, ".*") != NULL))
            return false; /* nobody runs regular expressions here, or looks for hosts */
        bool is_default = strcmp(entry, "default") == 0;
        entry += entry[0] == '\\';
        if (is_default ? !found : strcasecmp(entry, text) == 0) {
            result = d->words[1];
            found |= !is_default;
        }
    }
    struct weir__case *results = cases_of(import, result, at, depth + 1);
    return results != NULL && add_results(import, end, source, results);
}

static struct weir__case *cases_of_map(struct weir__import *import,
                                       const struct weir__directive *at, int depth)
{
    struct weir__case *sources = cases_of(import, at->words[1], at, depth + 1);
    struct weir__case *all = NULL, **end = &all;

    for (struct weir__case *s = sources; s != NULL; s = s->next) {
        const char *text = constant_of(import, s);
        bool single = s->n == 1 && s->parts[0].attribute != NULL;
        if (text != NULL ? !map_constant(import, at, s, text, &end, depth)
                         : !single || !map_attribute(import, at, s, &end, depth))
            return NULL;
    }
    return count_cases(all) <= WEIR__IMPORT_CASES_MAX ? all : NULL;
}

/* -------------------------------------------------------------- expressions ---- */

static struct weir__case *cases_of_variable(struct weir__import *import, const char *name,
                                            const struct weir__directive *at, int depth)
{
    const struct weir__directive *d = definition_of(import, name);

    if (d == NULL)
        return one_part(import, NULL, attribute_of(import, name, at));
    struct weir__case *cases = depth > DEPTH_MAX         ? NULL
                               : weir__conf_is(d, "map") ? cases_of_map(import, d, depth)
                                                         : weir__geo_cases(import, d);
    if (cases != NULL)
        return cases;
    weir__import_note(import, d, true,
                      "rules cannot express this %s: they take $%s from nginx, as attribute %s",
                      d->words[0], name, name);
    return one_part(import, NULL, weir__value_want(import, name));
}

/* $name or ${name} at the text; the rest, or NULL: no variable. */
static const char *read_variable(struct weir__import *import, const char *text, const char **name)
{
    bool brace = text[0] == '$' && text[1] == '{';
    const char *start = text + 1 + brace;
    size_t n = 0;

    while (isalnum((unsigned char)start[n]) || start[n] == '_')
        n++;
    if (text[0] != '$' || n == 0 || n > 50 || (brace && start[n] != '}'))
        return NULL;
    *name = weir__import_text(import, "%.*s", (int)n, start);
    return start + n + brace;
}

/* NULL: rules cannot express it. */
static struct weir__case *cases_of(struct weir__import *import, const char *expression,
                                   const struct weir__directive *at, int depth)
{
    struct weir__case *all = one_part(import, "", NULL);
    const char *name;

    while (*expression != '\0' && all != NULL) {
        const char *rest = read_variable(import, expression, &name);
        if (rest != NULL) {
            all = cross(import, all, cases_of_variable(import, name, at, depth));
        } else {
            size_t len = 1 + strcspn(expression + 1, "$");
            rest = expression + len;
            all = cross(
                import, all,
                one_part(import, weir__import_text(import, "%.*s", (int)len, expression), NULL));
        }
        expression = rest;
    }
    return all;
}

/* --------------------------------------------------------------------- keys ---- */

static bool may_be_empty(const struct weir__case *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->parts[i].attribute == NULL || is_always(c->parts[i].attribute))
            return false;
    return true;
}

/* A key of several values that may all be absent: not limited if they are.  So one case for each,
 * where those before it are absent and it is not. */
static bool split_absent(struct weir__import *import, const struct weir__case *c,
                         struct weir__case ***end)
{
    for (size_t i = 0; i < c->n; i++) {
        struct weir__case *part = weir__case_add(import, end), when = { 0 };
        for (size_t k = 0; k < i; k++)
            weir__pattern_add(
                import, &weir__condition_of(import, &when.conditions, c->parts[k].attribute)->not,
                WEIR__IMPORT_GLOB, "*");
        if (!weir__conditions_join(import, &part->conditions, c->conditions) ||
            !weir__conditions_join(import, &part->conditions, when.conditions))
            return false;
        part->n = c->n - i;
        memcpy(part->parts, c->parts + i, part->n * sizeof(*part->parts));
    }
    return true;
}

struct weir__case *weir__value_cases(struct weir__import *import, const char *expression,
                                     const struct weir__directive *at)
{
    struct weir__case *found = cases_of(import, expression, at, 0), *all = NULL, **end = &all;
    bool said = found != NULL;

    for (struct weir__case *c = found; c != NULL && said; c = c->next) {
        if (c->n > 1 && may_be_empty(c)) {
            said = split_absent(import, c, &end);
        } else if (c->n > 0) {
            struct weir__case *kept = weir__case_add(import, &end);
            kept->conditions = c->conditions;
            kept->parts = c->parts;
            kept->n = c->n;
        }
    }
    if (said)
        return all;
    weir__import_note(import, at, true, "rules cannot express the key %s", expression);
    return NULL;
}

static void add_attribute(struct weir__buffer *out, const char *attribute, bool first, bool alone)
{
    bool always = is_always(attribute);

    weir__buffer_format(out, "{%s%s%s}", attribute, strcmp(attribute, "ip") == 0 ? "/32/128" : "",
                        !always && !first && !alone ? "|-" : "");
}

/* Braces are doubled, and a % cannot stand in a key. */
static void add_text(struct weir__buffer *out, const char *text)
{
    for (; *text != '\0'; text++) {
        char c =
            *text == '%' || (unsigned char)*text < ' ' || (unsigned char)*text > '~' ? '_' : *text;
        weir__buffer_format(out, "%.*s%c", c == '{' || c == '}', "{", c);
        if (c == '}')
            out->bytes[out->len - 2] = '}';
    }
}

const char *weir__value_template(struct weir__import *import, const struct weir__case *value)
{
    struct weir__buffer out = { 0 };
    bool any = false, before = false, alone = may_be_empty(value);

    for (size_t i = 0; i < value->n; i++) {
        const struct weir__value_part *part = &value->parts[i];
        if (part->attribute == NULL) {
            add_text(&out, part->text);
        } else {
            weir__buffer_text(&out, before ? ":" : "");
            add_attribute(&out, part->attribute, alone && i == 0, value->n == 1);
            any = true;
        }
        before = part->attribute != NULL;
    }
    char *text = any && !out.failed ? weir__import_text(import, "%.*s", (int)out.len, out.bytes)
                                    : weir__import_text(import, "%s", "");
    weir__buffer_free(&out);
    return text;
}
