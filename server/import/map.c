/* map.c -- a map as cases: the conditions under which it has each of its results.
 *
 * Maps ignore the case of letters, rules do not: a note says so.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/import/import.h"

#define GROUPS_MAX 32 /* different results */

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

    m->cased |= !host && !ip && weir__has_letters(source);
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

    m->cased |= any_case && strcmp(attribute, "host") != 0 && weir__has_letters(source);
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
            !weir__case_append(c, results))
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
        struct weir__case when = { 0 },
                          *results = weir__expression_cases(import, result, at, depth + 1);
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
    struct weir__case *results = weir__expression_cases(import, result, at, depth + 1);
    return results != NULL && add_results(import, end, source, results);
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

struct weir__case *weir__map_cases(struct weir__import *import, const struct weir__directive *at,
                                   int depth)
{
    struct weir__case *sources = weir__expression_cases(import, at->words[1], at, depth + 1);
    struct weir__case *all = NULL, **end = &all;

    for (struct weir__case *s = sources; s != NULL; s = s->next) {
        const char *text = constant_of(import, s);
        bool single = s->n == 1 && s->parts[0].attribute != NULL;
        if (text != NULL ? !map_constant(import, at, s, text, &end, depth)
                         : !single || !map_attribute(import, at, s, &end, depth))
            return NULL;
    }
    return weir__cases_count(all) <= WEIR__IMPORT_CASES_MAX ? all : NULL;
}
