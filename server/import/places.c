/* places.c -- servers and locations: which requests reach some of them, as conditions of rules.
 *
 * A location has the requests that match it, less those that another one takes first.  nginx takes
 * = before all; then the longest prefix; then, unless that says ^~, the first regular expression
 * that matches, those within the prefix's own block before others.  So the requests of several
 * locations are "one of these patterns, and none of those", if no excluded pattern covers a request
 * of theirs; or else one such set for each.
 *
 * A server has the requests of its ports and names, and the default server of a port all others.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "server/import/import.h"

#define LOCATIONS_MAX 500 /* of a server */

/* ----------------------------------------------------------------- locations ---- */

struct finding {
    struct weir__import *import;
    const struct weir__directive *server;
    struct weir__import_place **end;
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
    p->silent = f->silent || answers_itself(at);
    if (kind != WEIR__PLACE_REGEX && text[0] != '\0' && !is_plain(text))
        weir__import_note(f->import, at, true,
                          "rules cannot say this path: they leave its location out");
    else if (kind != WEIR__PLACE_REGEX)
        weir__pattern_add(f->import, &p->patterns,
                          kind == WEIR__PLACE_EXACT ? WEIR__IMPORT_EXACT : WEIR__IMPORT_PREFIX,
                          text);
    *f->end = p;
    f->end = &p->next;
    return p;
}

/* Within a prefix: its text before patterns that may begin anywhere. */
static void put_inside(struct finding *f, struct weir__import_place *p)
{
    for (struct weir__import_pattern *each = p->patterns.first; each != NULL; each = each->next) {
        bool anywhere = each->kind == WEIR__IMPORT_GLOB && strncmp(each->text, "**", 2) == 0;
        if (anywhere && strpbrk(p->inside->text, "*?") == NULL)
            each->text = weir__import_text(f->import, "%s%s", p->inside->text, each->text);
    }
}

static void add_regex(struct finding *f, const struct weir__directive *at, const char *regex,
                      const struct weir__import_place *parent)
{
    struct weir__import_place *p = add_place(f, at, WEIR__PLACE_REGEX, regex);
    bool letters = strpbrk(regex, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL;

    bool said = weir__pattern_regex(f->import, &p->patterns, regex, true);
    for (struct weir__import_pattern *each = p->patterns.first; each != NULL; each = each->next)
        said &= each->kind == WEIR__IMPORT_GLOB || is_plain(each->text);
    if (!said) {
        p->patterns = (struct weir__import_patterns){ 0 };
        weir__import_note(f->import, at, true,
                          "rules cannot say this regular expression: they leave its location out");
    } else if (strcmp(at->words[1], "~*") == 0 && letters) {
        weir__import_note(f->import, at, true,
                          "~* ignores upper and lower case, rules match it as written");
    }
    if (parent != NULL && parent->kind == WEIR__PLACE_PREFIX) {
        p->inside = parent;
        put_inside(f, p);
    }
}

static void find_within(struct finding *f, const struct weir__directive *block,
                        const struct weir__import_place *parent)
{
    for (const struct weir__directive *d = block->first; d != NULL; d = d->next) {
        const char *kind = d->n == 3 ? d->words[1] : "", *text = d->n > 1 ? d->words[d->n - 1] : "";
        struct finding inner = *f;
        struct weir__import_place *p = NULL;
        if (!weir__conf_is(d, "location") || d->n < 2 || d->n > 3 || text[0] == '@')
            continue;
        if (kind[0] == '~') {
            add_regex(f, d, text, parent);
        } else {
            p = add_place(f, d, kind[0] == '=' ? WEIR__PLACE_EXACT : WEIR__PLACE_PREFIX, text);
            p->no_regex = kind[0] == '^';
        }
        inner.end = f->end;
        inner.n = f->n;
        if (p != NULL)
            find_within(&inner, d, p);
        else if (weir__conf_find(d, "location") != NULL)
            weir__import_note(f->import, weir__conf_find(d, "location"), true,
                              "a location within a regular expression is left out");
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
        find_within(&f, d, NULL);
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

static bool regex_beats(const struct weir__import_place *e, const struct weir__import_place *c)
{
    if (c->kind == WEIR__PLACE_EXACT)
        return false;
    if (c->kind == WEIR__PLACE_PREFIX)
        return e->inside != NULL ? e->inside == c : !c->no_regex;
    if (e->inside != c->inside)
        return e->inside != NULL && c->inside == NULL;
    return e->index < c->index;
}

/* Does `e` take some of the requests that match `c` as well? */
static bool beats(const struct weir__import_place *e, const struct weir__import_place *c)
{
    if (e == c)
        return false;
    if (e->kind == WEIR__PLACE_REGEX)
        return regex_beats(e, c);
    if (c->kind == WEIR__PLACE_REGEX) {
        if (e->kind == WEIR__PLACE_EXACT)
            return may_share(c, e);
        return e->no_regex || (c->inside != NULL && starts_with(e->text, c->inside->text) &&
                               strlen(e->text) > strlen(c->inside->text));
    }
    if (c->kind == WEIR__PLACE_EXACT || !starts_with(e->text, c->text))
        return false;
    return e->kind == WEIR__PLACE_EXACT || strlen(e->text) > strlen(c->text);
}

/* -------------------------------------------------------------------- regions ---- */

static struct weir__region *add_region(struct weir__import *import, struct weir__region ***end)
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
        }
    }
    if (everything)
        out->match = (struct weir__import_patterns){ 0 };
}

static void add_uri(struct weir__import *import, struct weir__region ***end,
                    struct weir__import_place *places, const struct weir__import_place *only)
{
    struct weir__import_condition uri = { .attribute = "uri" };
    struct weir__region *r = add_region(import, end);

    say(import, places, only, &uri);
    if (uri.match.n + uri.not .n > 0)
        *weir__condition_of(import, &r->conditions, "uri") = uri;
}

/* `places` begins with the server's. */
static struct weir__region *region_of_server(struct weir__import *import,
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

/* -------------------------------------------------------------------- servers ---- */

struct server {
    const struct weir__directive *at;
    struct weir__import_patterns names;
    struct weir__region *region;
    size_t group;    /* the same for those with the same region; 0: no region */
    bool is_default; /* of the port looked at */
    struct server *next;
};

struct port {
    const char *text;
    bool tls, mixed;
    struct weir__region *region;
    bool added;
    struct port *next;
};

static const char *port_of(struct weir__import *import, const struct weir__directive *listen)
{
    const char *text = listen->n > 1 ? listen->words[1] : "", *colon = strrchr(text, ':');
    size_t digits = strspn(text, "0123456789");

    if (strncmp(text, "unix:", 5) == 0)
        return weir__import_text(import, "%s", text);
    if (colon != NULL && strspn(colon + 1, "0123456789") == strlen(colon + 1) && colon[1] != '\0')
        return colon + 1;
    return digits > 0 && text[digits] == '\0' ? text : "80";
}

static bool has_word(const struct weir__directive *d, const char *word)
{
    for (size_t i = 2; i < d->n; i++)
        if (strcmp(d->words[i], word) == 0)
            return true;
    return false;
}

/* The server's listen on a port; NULL: none.  *alone: it has none at all, so it is port 80. */
static const struct weir__directive *listen_on(struct weir__import *import,
                                               const struct weir__directive *server,
                                               const char *port, bool *alone)
{
    const struct weir__directive *found = NULL;

    *alone = true;
    for (const struct weir__directive *d = server->first; d != NULL; d = d->next) {
        if (!weir__conf_is(d, "listen"))
            continue;
        *alone = false;
        if (strcmp(port_of(import, d), port) == 0 &&
            (found == NULL || has_word(d, "default_server")))
            found = d;
    }
    return found;
}

static void add_port(struct weir__import *import, struct port **ports, const char *text, bool tls)
{
    while (*ports != NULL && strcmp((*ports)->text, text) != 0)
        ports = &(*ports)->next;
    if (*ports == NULL) {
        *ports = weir__import_take(import, 1, sizeof(**ports));
        **ports = (struct port){ .text = text, .tls = tls };
    }
    (*ports)->mixed |= (*ports)->tls != tls;
}

static struct port *find_ports(struct weir__import *import, const struct server *servers)
{
    struct port *ports = NULL;

    for (; servers != NULL; servers = servers->next) {
        bool any = false;
        for (const struct weir__directive *d = servers->at->first; d != NULL; d = d->next) {
            if (!weir__conf_is(d, "listen"))
                continue;
            any = true;
            add_port(import, &ports, port_of(import, d), has_word(d, "ssl"));
        }
        if (!any)
            add_port(import, &ports, "80", false);
    }
    return ports;
}

static void add_names(struct weir__import *import, struct server *s)
{
    for (const struct weir__directive *d = s->at->first; d != NULL; d = d->next) {
        if (!weir__conf_is(d, "server_name"))
            continue;
        for (size_t i = 1; i < d->n; i++)
            if (d->words[i][0] == '~' && !weir__pattern_host(import, &s->names, d->words[i]))
                weir__import_note(import, d, true, "rules cannot say the name %s", d->words[i]);
            else if (d->words[i][0] != '~')
                (void)weir__pattern_host(import, &s->names, d->words[i]);
    }
}

static bool regions_equal(const struct weir__region *a, const struct weir__region *b)
{
    for (; a != NULL && b != NULL; a = a->next, b = b->next)
        if (!weir__conditions_equal(a->conditions, b->conditions))
            return false;
    return a == b;
}

/* The number of the first server with this region. */
static size_t group_of(const struct server *servers, const struct weir__region *region)
{
    size_t n = 1;

    while (region != NULL && !regions_equal(servers->region, region)) {
        servers = servers->next;
        n++;
    }
    return region != NULL ? n : 0;
}

/* The servers on a port, the default marked. */
static struct server *servers_on(struct weir__import *import, const struct server *servers,
                                 const char *port)
{
    struct server *on = NULL, **end = &on, *marked = NULL;
    bool alone;

    for (; servers != NULL; servers = servers->next) {
        const struct weir__directive *d = listen_on(import, servers->at, port, &alone);
        if (d == NULL && !(alone && strcmp(port, "80") == 0))
            continue;
        struct server *s = weir__import_take(import, 1, sizeof(*s));
        *s = *servers;
        s->next = NULL;
        *end = s;
        end = &s->next;
        if (d != NULL && marked == NULL && has_word(d, "default_server"))
            marked = s;
    }
    if (on != NULL)
        (marked != NULL ? marked : on)->is_default = true;
    return on;
}

static bool may_cover(const struct weir__import_patterns *wide, const char *name)
{
    for (struct weir__import_pattern *p = wide->first; p != NULL; p = p->next)
        if (p->kind == WEIR__IMPORT_GLOB && weir__pattern_may_be(p, name))
            return true;
    return false;
}

/* Names of `others` that nginx prefers to a name with a star of `mine`, or all if those are all
 * that is left for the default server. */
static void exclude(struct weir__import *import, struct weir__import_condition *host,
                    const struct weir__import_patterns *mine, const struct server *other, bool all)
{
    for (struct weir__import_pattern *p = other->names.first; p != NULL; p = p->next)
        if (all || may_cover(mine, p->text))
            weir__pattern_add(import, &host->not, p->kind, p->text);
}

/* The hosts of the servers that have the same region as `like`. */
static void say_hosts(struct weir__import *import, const struct server *servers,
                      const struct server *like, struct weir__import_condition *host)
{
    struct weir__import_patterns mine = { 0 };
    bool has_default = false;

    for (const struct server *s = servers; s != NULL; s = s->next) {
        if (s->group == like->group) {
            has_default |= s->is_default;
            weir__patterns_add(import, &mine, &s->names);
        }
    }
    if (!has_default)
        host->match = mine;
    for (const struct server *s = servers; s != NULL; s = s->next)
        if (s->group != like->group)
            exclude(import, host, &mine, s, has_default);
    for (struct weir__import_pattern *p = mine.first; p != NULL; p = p->next)
        if (may_cover(&host->not, p->text))
            weir__import_note(import, like->at, true,
                              "the name %s is another server's too: rules cannot tell them apart",
                              p->text);
}

static struct weir__region *region_of_port(struct weir__import *import,
                                           const struct server *servers)
{
    struct weir__region *all = NULL, **end = &all;

    for (const struct server *s = servers; s != NULL; s = s->next) {
        struct weir__import_condition host = { .attribute = "host" };
        bool seen = s->group == 0;
        for (const struct server *before = servers; before != s && !seen; before = before->next)
            seen = before->group == s->group;
        if (seen)
            continue;
        say_hosts(import, servers, s, &host);
        for (const struct weir__region *r = s->region; r != NULL; r = r->next) {
            struct weir__region *made = add_region(import, &end);
            if (host.match.n + host.not .n > 0)
                *weir__condition_of(import, &made->conditions, "host") = host;
            (void)weir__conditions_join(import, &made->conditions, r->conditions);
        }
    }
    return all;
}

/* ---------------------------------------------------------------------- ports ---- */

/* Adds the ports that have the region of `like`, told apart by scheme if that is enough. */
static void say_ports(struct weir__import *import, struct port *ports, const struct port *like,
                      struct weir__import_condition *scheme, struct weir__import_condition *port)
{
    bool by_scheme = true, all = true;

    for (struct port *p = ports; p != NULL; p = p->next) {
        bool same = regions_equal(p->region, like->region);
        by_scheme &= !p->mixed && same == (p->tls == like->tls);
        all &= same;
        if (same)
            weir__pattern_add(import, &port->match, WEIR__IMPORT_EXACT, p->text);
    }
    if (all || by_scheme)
        port->match = (struct weir__import_patterns){ 0 };
    if (!all && by_scheme)
        weir__pattern_add(import, &scheme->match, WEIR__IMPORT_EXACT, like->tls ? "https" : "http");
}

static struct weir__region *join_ports(struct weir__import *import, struct port *ports)
{
    struct weir__region *all = NULL, **end = &all;

    for (struct port *p = ports; p != NULL; p = p->next) {
        struct weir__import_condition scheme = { .attribute = "scheme" },
                                      port = { .attribute = "server_port" };
        bool seen = p->region == NULL;
        for (struct port *before = ports; before != p; before = before->next)
            seen |= regions_equal(before->region, p->region);
        if (seen)
            continue;
        say_ports(import, ports, p, &scheme, &port);
        for (const struct weir__region *r = p->region; r != NULL; r = r->next) {
            struct weir__region *made = add_region(import, &end);
            if (scheme.match.n > 0)
                (void)weir__conditions_join(import, &made->conditions, &scheme);
            if (port.match.n > 0) {
                (void)weir__value_want(import, port.attribute);
                (void)weir__conditions_join(import, &made->conditions, &port);
            }
            (void)weir__conditions_join(import, &made->conditions, r->conditions);
        }
    }
    return all;
}

struct weir__region *weir__places_region(struct weir__import *import,
                                         struct weir__import_place *places)
{
    struct server *servers = NULL, **end = &servers;

    for (struct weir__import_place *p = places; p != NULL; p = p->next) {
        if (p->at != p->server)
            continue;
        struct server *s = weir__import_take(import, 1, sizeof(*s));
        s->at = p->server;
        s->region = region_of_server(import, p);
        add_names(import, s);
        *end = s;
        end = &s->next;
    }
    for (struct server *s = servers; s != NULL; s = s->next)
        s->group = group_of(servers, s->region);
    struct port *ports = find_ports(import, servers);
    for (struct port *p = ports; p != NULL; p = p->next)
        p->region = region_of_port(import, servers_on(import, servers, p->text));
    return join_ports(import, ports);
}
