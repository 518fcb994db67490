/* zone-keys.c -- the key of a zone, with its maps and geos, as cases.
 *
 *     geo $free { default 0; 10.0.0.0/8 1; }
 *     map $free $who { 0 $binary_remote_addr; 1 ""; }
 *
 * $who has two cases: not from 10.0.0.0/8, then the address; from there, then nothing.  Those with
 * nothing go: nginx does not limit an empty key.  A map or geo that conditions cannot express is
 * left to nginx: its variable becomes an attribute of its own, and a note says so.
 *
 * Two things differ.  nginx puts values side by side, so "ab" + "c" is "a" + "bc"; rules keep them
 * apart.  An absent value beside others is "-".
 */
#include <ctype.h>
#include <string.h>

#include "server/import/import.h"

#define DEPTH_MAX 8 /* maps of maps */

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

bool weir__has_letters(const char *text)
{
    for (; *text != '\0'; text++)
        if (isalpha((unsigned char)*text))
            return true;
    return false;
}

/* Somewhere: then nginx has forgotten what the name means elsewhere. */
static bool is_set(const struct weir__directive *block, const char *name)
{
    for (const struct weir__directive *d = block->first; d != NULL; d = d->next) {
        const char *set = weir__conf_is(d, "set") && d->n == 3 ? d->words[1] : "";
        if ((set[0] == '$' && strcmp(set + 1, name) == 0) || is_set(d, name))
            return true;
    }
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
        if (strncmp(name, families[i][0], len) != 0 || name[len] == '\0' ||
            is_set(import->http, name))
            continue;
        char *made = weir__import_text(import, "%s%s", families[i][1], name + len);
        for (char *c = made; i == 0 && *c != '\0'; c++)
            *c = *c == '_' ? '-' : *c;
        if (i > 0 && weir__has_letters(name + len))
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

size_t weir__cases_count(const struct weir__case *cases)
{
    size_t n = 0;

    for (; cases != NULL; cases = cases->next)
        n++;
    return n;
}

bool weir__case_append(struct weir__case *to, const struct weir__case *more)
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
           weir__conditions_join(import, &c->conditions, b->conditions) &&
           weir__case_append(c, a) && weir__case_append(c, b);
}

/* Each of `a` followed by each of `b`.  NULL: rules cannot express it. */
static struct weir__case *cross(struct weir__import *import, const struct weir__case *a,
                                const struct weir__case *b)
{
    struct weir__case *all = NULL, **end = &all;

    if (weir__cases_count(a) * weir__cases_count(b) > WEIR__IMPORT_CASES_MAX)
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

/* -------------------------------------------------------------- expressions ---- */

static struct weir__case *cases_of_variable(struct weir__import *import, const char *name,
                                            const struct weir__directive *at, int depth)
{
    const struct weir__directive *d = definition_of(import, name);

    if (d == NULL)
        return one_part(import, NULL, attribute_of(import, name, at));
    struct weir__case *cases = depth > DEPTH_MAX         ? NULL
                               : weir__conf_is(d, "map") ? weir__map_cases(import, d, depth)
                                                         : weir__geo_cases(import, d);
    if (cases != NULL)
        return cases;
    weir__import_note(import, d, true,
                      "rules cannot express this %s: they take $%s from nginx, as attribute %s",
                      d->words[0], name, name);
    return one_part(import, NULL, weir__value_want(import, name));
}

const char *weir__value_variable(struct weir__import *import, const char *text, const char **name)
{
    if (text[0] != '$')
        return NULL;
    bool brace = text[1] == '{';
    const char *start = text + 1 + brace;
    size_t n = 0;

    while (isalnum((unsigned char)start[n]) || start[n] == '_')
        n++;
    if (n == 0 || n > 50 || (brace && start[n] != '}'))
        return NULL;
    *name = weir__import_text(import, "%.*s", (int)n, start);
    return start + n + brace;
}

struct weir__case *weir__expression_cases(struct weir__import *import, const char *expression,
                                          const struct weir__directive *at, int depth)
{
    struct weir__case *all = one_part(import, "", NULL);
    const char *name;

    while (*expression != '\0' && all != NULL) {
        const char *rest = weir__value_variable(import, expression, &name);
        if (rest != NULL) {
            all = cross(import, all, cases_of_variable(import, name, at, depth));
        } else if (*expression == '$') {
            return NULL; /* as text it would be the same for all */
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
    struct weir__case *found = weir__expression_cases(import, expression, at, 0), *all = NULL,
                      **end = &all;
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
