/* servers.c -- the servers of an nginx.conf: which requests reach some of their locations.
 *
 * A server has the requests of its ports and names, and the default server of a port all others.
 */
#include <string.h>

#include "server/import/import.h"

/* -------------------------------------------------------------------- servers ---- */

struct server {
    const struct weir__directive *at;
    struct weir__import_patterns names;
    struct weir__region *region;
    size_t group;    /* the same for those with the same region; 0: no region */
    bool is_default; /* of the port looked at */
    bool nameless;   /* it has requests without a Host too */
    struct server *next;
};

struct port {
    const struct weir__directive *at;
    const char *text, *address; /* * is any */
    bool tls, mixed;
    struct weir__region *region;
    bool added;
    struct port *next;
};

static struct port port_of(struct weir__import *import, const struct weir__directive *listen)
{
    const char *text = listen->n > 1 ? listen->words[1] : "", *colon = strrchr(text, ':');
    size_t digits = strspn(text, "0123456789");
    struct port port = { .at = listen, .text = "80", .address = text };

    if (strncmp(text, "unix:", 5) == 0)
        return (struct port){ .at = listen, .text = text, .address = "" };
    if (colon != NULL && strspn(colon + 1, "0123456789") == strlen(colon + 1) && colon[1] != '\0') {
        port.text = colon + 1;
        port.address = weir__import_text(import, "%.*s", (int)(colon - text), text);
    } else if (digits > 0 && text[digits] == '\0') {
        port.text = text;
        port.address = "*";
    }
    if (strcmp(port.address, "0.0.0.0") == 0)
        port.address = "*";
    return port;
}

static bool same_port(const struct port *a, const struct port *b)
{
    return strcmp(a->text, b->text) == 0 && strcmp(a->address, b->address) == 0;
}

static bool has_word(const struct weir__directive *d, const char *word)
{
    for (size_t i = 2; i < d->n; i++)
        if (strcmp(d->words[i], word) == 0)
            return true;
    return false;
}

static bool is_default(const struct weir__directive *listen)
{
    return has_word(listen, "default_server") || has_word(listen, "default"); /* its old name */
}

/* The server's listen on a port; NULL: none.  *alone: it has none at all, so it is port 80. */
static const struct weir__directive *listen_on(struct weir__import *import,
                                               const struct weir__directive *server,
                                               const struct port *port, bool *alone)
{
    const struct weir__directive *found = NULL;

    *alone = true;
    for (const struct weir__directive *d = server->first; d != NULL; d = d->next) {
        if (!weir__conf_is(d, "listen"))
            continue;
        *alone = false;
        struct port at = port_of(import, d);
        if (same_port(&at, port) && (found == NULL || is_default(d)))
            found = d;
    }
    return found;
}

static void add_port(struct weir__import *import, struct port **ports, const struct port *port)
{
    while (*ports != NULL && !same_port(*ports, port))
        ports = &(*ports)->next;
    if (*ports == NULL) {
        *ports = weir__import_take(import, 1, sizeof(**ports));
        **ports = *port;
    }
    (*ports)->mixed |= (*ports)->tls != port->tls;
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
            struct port port = port_of(import, d);
            port.tls = has_word(d, "ssl");
            add_port(import, &ports, &port);
        }
        if (!any)
            add_port(import, &ports,
                     &(struct port){ .at = servers->at, .text = "80", .address = "*" });
    }
    return ports;
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

static bool is_taken(const struct server *servers, const struct weir__import_pattern *name)
{
    for (; servers != NULL; servers = servers->next)
        for (struct weir__import_pattern *p = servers->names.first; p != NULL; p = p->next)
            if (p->kind == name->kind && strcmp(p->text, name->text) == 0)
                return true;
    return false;
}

/* Of the same name the first server has it; of .name all goes if a part of it was there before, in
 * the server itself too. */
static void add_name(struct weir__import *import, const struct server *servers, struct server *s,
                     const char *name)
{
    struct weir__import_patterns said = { 0 };
    bool taken = false;

    (void)weir__pattern_host(import, &said, name);
    for (struct weir__import_pattern *p = said.first; p != NULL && name[0] != '~'; p = p->next)
        taken |= is_taken(servers, p);
    for (struct weir__import_pattern *p = said.first; p != NULL && !taken; p = p->next)
        if (name[0] != '~' || !is_taken(servers, p))
            weir__pattern_add(import, &s->names, p->kind, p->text);
}

static void add_names(struct weir__import *import, const struct server *servers, struct server *s)
{
    for (const struct weir__directive *d = s->at->first; d != NULL; d = d->next) {
        if (!weir__conf_is(d, "server_name"))
            continue;
        for (size_t i = 1; i < d->n; i++) {
            struct weir__import_patterns said = { 0 };
            const char *name = d->words[i];
            s->nameless |= name[0] == '\0';
            if (name[0] == '$' || (name[0] == '~' && !weir__pattern_host(import, &said, name)))
                weir__import_note(import, d, true, "rules cannot express the name %s", name);
            else
                add_name(import, servers, s, name);
        }
    }
}

/* The servers on a port, the default marked.  Without a name no request finds another one. */
static struct server *servers_on(struct weir__import *import, const struct server *servers,
                                 const struct port *port)
{
    struct server *on = NULL, **end = &on, *marked = NULL;
    bool alone;

    for (; servers != NULL; servers = servers->next) {
        const struct weir__directive *d = listen_on(import, servers->at, port, &alone);
        if (d == NULL &&
            !(alone && same_port(port, &(struct port){ .text = "80", .address = "*" })))
            continue;
        struct server *s = weir__import_take(import, 1, sizeof(*s));
        *s = *servers;
        s->next = NULL;
        *end = s;
        end = &s->next;
        add_names(import, on, s);
        if (d != NULL && marked == NULL && is_default(d))
            marked = s;
    }
    if (on != NULL)
        (marked != NULL ? marked : on)->is_default = true;
    for (struct server *s = on; s != NULL; s = s->next) {
        if (s->nameless && !s->is_default && s->group != 0)
            weir__import_note(import, s->at, true,
                              "rules cannot tell requests without a Host, which are this server's");
        if (s->names.n == 0 && !s->is_default)
            s->group = 0;
    }
    return on;
}

/* What follows its last star; of a prefix nothing. */
static const char *end_of(const struct weir__import_pattern *p)
{
    const char *end = p->text + strlen(p->text);

    while (p->kind == WEIR__IMPORT_GLOB && end > p->text && end[-1] != '*' && end[-1] != '?')
        end--;
    return end;
}

/* May a host match both?  Sometimes true where none does. */
static bool may_meet(const struct weir__import_pattern *a, const struct weir__import_pattern *b)
{
    if (a->kind == WEIR__IMPORT_EXACT || b->kind == WEIR__IMPORT_EXACT)
        return a->kind == WEIR__IMPORT_EXACT ? weir__pattern_may_be(b, a->text)
                                             : weir__pattern_may_be(a, b->text);
    const char *x = end_of(a), *y = end_of(b);
    size_t starts = strcspn(a->text, "*?"), start = strcspn(b->text, "*?");
    size_t ends = strlen(x), end = strlen(y), n = ends < end ? ends : end;
    return strncmp(a->text, b->text, start < starts ? start : starts) == 0 &&
           strcmp(x + ends - n, y + end - n) == 0;
}

/* Does nginx find `other`, although a request may match `mine` as well?  A whole name is before the
 * longest *.name, that before the longest name.*, and the first regular expression comes last. */
static bool is_preferred(const struct weir__import_pattern *other,
                         const struct weir__import_pattern *mine, bool first)
{
    int a = weir__pattern_rank(other), b = weir__pattern_rank(mine);

    if (a == 0 || (a == b && a < 3))
        return (a < b || strlen(other->text) > strlen(mine->text)) &&
               weir__pattern_may_be(mine, other->text);
    return a < b || (a == b && first);
}

/* Names that nginx prefers to some of `mine`, or all of them.  A note names one of mine that it
 * prefers to them. */
static void exclude(struct weir__import *import, struct weir__import_condition *host,
                    const struct server *like, const struct weir__import_patterns *mine,
                    const struct weir__import_patterns *others, bool first, bool all)
{
    for (struct weir__import_pattern *p = others->first; p != NULL; p = p->next) {
        const char *lost = NULL;
        bool taken = all;
        for (struct weir__import_pattern *m = mine->first; m != NULL; m = m->next)
            if (is_preferred(p, m, first))
                taken = true;
            else if (may_meet(p, m))
                lost = m->text;
        if (taken)
            weir__pattern_add(import, &host->not, p->kind, p->text);
        if (taken && lost != NULL)
            weir__import_note(import, like->at, true,
                              "the name %s is another server's too: rules cannot tell them apart",
                              lost);
    }
}

/* The hosts of the servers that have the same region as `like`. */
static void say_hosts(struct weir__import *import, const struct server *servers,
                      const struct server *like, struct weir__import_condition *host)
{
    struct weir__import_patterns mine = { 0 };
    bool has_default = false, first = true;

    for (const struct server *s = servers; s != NULL; s = s->next) {
        if (s->group == like->group) {
            has_default |= s->is_default;
            weir__patterns_add(import, &mine, &s->names);
        }
    }
    if (!has_default)
        host->match = mine;
    for (const struct server *s = servers; s != NULL; s = s->next)
        if (s->group == like->group)
            first = false;
        else
            exclude(import, host, like, &mine, &s->names, first, has_default);
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
            struct weir__region *made = weir__region_add(import, &end);
            if (host.match.n + host.not .n > 0)
                *weir__condition_of(import, &made->conditions, "host") = host;
            (void)weir__conditions_join(import, &made->conditions, r->conditions);
        }
    }
    return all;
}

/* ---------------------------------------------------------------------- ports ---- */

static bool has_text(const struct weir__import_patterns *list, const char *text)
{
    for (const struct weir__import_pattern *p = list->first; p != NULL; p = p->next)
        if (strcmp(p->text, text) == 0)
            return true;
    return false;
}

/* True: by their numbers these ports are all.  Notes where a number is not enough. */
static bool note_addresses(struct weir__import *import, const struct port *ports,
                           const struct port *like, const struct weir__import_patterns *numbers)
{
    bool all = true;

    for (const struct port *p = ports; p != NULL; p = p->next) {
        bool same = regions_equal(p->region, like->region), listed = has_text(numbers, p->text);
        if (same && strncmp(p->text, "unix:", 5) == 0)
            weir__import_note(import, p->at, true, "rules do not know requests of a unix socket");
        else if (!same && listed)
            weir__import_note(import, like->at, true,
                              "limits differ by the address of port %s, which rules do not know: "
                              "they count on each",
                              p->text);
        all &= listed;
    }
    return all;
}

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
    if (all || by_scheme || note_addresses(import, ports, like, &port->match))
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
            struct weir__region *made = weir__region_add(import, &end);
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
        s->region = weir__places_within(import, p);
        *end = s;
        end = &s->next;
    }
    for (struct server *s = servers; s != NULL; s = s->next)
        s->group = group_of(servers, s->region);
    struct port *ports = find_ports(import, servers);
    for (struct port *p = ports; p != NULL; p = p->next)
        p->region = region_of_port(import, servers_on(import, servers, p));
    return join_ports(import, ports);
}
