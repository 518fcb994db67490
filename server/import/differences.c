/* differences.c -- where rules decide differently from the nginx.conf they come from: notes.
 *
 * A rule counts for itself, knows a request by its URI as it was sent, and is asked once.  So zones
 * that had to be split, and requests that nginx sends on to another place, may come out otherwise.
 */
#include <string.h>

#include "server/import/import.h"

/* ------------------------------------------------------------------ zones ---- */

static bool key_has(const struct weir__case *key, const char *attribute)
{
    for (size_t i = 0; i < key->n; i++)
        if (key->parts[i].attribute != NULL && strcmp(key->parts[i].attribute, attribute) == 0)
            return true;
    return false;
}

static bool same_value(const struct weir__case *a, const struct weir__case *b)
{
    for (size_t i = 0; i < a->n && a->n == b->n; i++) {
        const char *x = a->parts[i].attribute, *y = b->parts[i].attribute;
        if ((x == NULL) != (y == NULL) ||
            strcmp(x ? x : a->parts[i].text, y ? y : b->parts[i].text) != 0)
            return false;
    }
    return a->n == b->n;
}

/* May a key of one rule be one of the other's as well?  Not if an attribute that tells the requests
 * apart is part of the key. */
static bool may_share_keys(const struct weir__imported *a, const struct weir__imported *b)
{
    if (!same_value(a->value, b->value))
        return false;
    for (const struct weir__imported *each = a; each != NULL; each = each == a ? b : NULL)
        for (const struct weir__import_condition *c = each->conditions; c != NULL; c = c->next)
            if (!key_has(a->value, c->attribute))
                return true;
    return a->conditions == NULL && b->conditions == NULL;
}

static void note_split_zones(struct weir__import *import, const struct weir__imported *rules)
{
    for (const struct weir__imported *a = rules; a != NULL; a = a->next)
        for (const struct weir__imported *b = rules; b != a; b = b->next)
            if (a->zone == b->zone && may_share_keys(a, b)) {
                weir__import_note(import, a->at, true,
                                  "nginx counts %s and %s together, as one zone; rules count each "
                                  "for itself",
                                  b->name, a->name);
                break;
            }
}

/* Settings without effect on what is decided. */
static void note_settings(struct weir__import *import, const struct weir__directive *d)
{
    for (d = d->first; d != NULL; d = d->next) {
        bool status = weir__conf_is(d, "limit_req_status") || weir__conf_is(d, "limit_conn_status");
        if (status && d->n == 2 && strcmp(d->words[1], "429") != 0)
            weir__import_note(import, d, false,
                              "%s %s: a limit of rules is answered with 429, a "
                              "guard with 503 or its fallback",
                              d->words[0], d->words[1]);
        if (weir__conf_is(d, "limit_req_log_level") || weir__conf_is(d, "limit_conn_log_level"))
            weir__import_note(import, d, false, "%s: rules have no log level", d->words[0]);
        note_settings(import, d);
    }
}

/* Paths are told apart that are one for rules. */
static void note_slashes(struct weir__import *import, const struct weir__directive *d)
{
    for (d = d->first; d != NULL; d = d->next) {
        if (weir__conf_is(d, "merge_slashes") && d->n == 2 && strcmp(d->words[1], "off") == 0)
            weir__import_note(import, d, true, "rules take // for /, whatever merge_slashes says");
        note_slashes(import, d);
    }
}

/* Limits of places that no URI leads to. */
static void note_inner(struct weir__import *import, const struct weir__directive *block)
{
    bool named = weir__conf_is(block, "location") && block->words[block->n - 1][0] == '@';
    bool inner = named || weir__conf_find(block, "internal") != NULL;

    for (const struct weir__directive *d = block->first; d != NULL; d = d->next) {
        if (inner && (weir__conf_is(d, "limit_req") || weir__conf_is(d, "limit_conn")))
            weir__import_note(import, d, true,
                              "only nginx itself leads requests here: rules do not limit them");
        note_inner(import, d);
    }
}

/* ----------------------------------------------------------------- places ---- */

/* That some place asks. */
struct zone {
    const char *name, *key; /* key "": there is no such zone */
    struct zone *next;
};

struct survey {
    struct weir__import *import;
    const struct weir__import_place *places;
    size_t uses;   /* different ones */
    bool kinds[2]; /* limit_req, limit_conn: is there one anywhere? */
    bool differ;   /* places have different limits */
    bool by_uri;   /* a key, or a map in one, looks at what a rewrite changes */
    struct zone *zones[2];
};

static bool is_asked(const struct weir__import_place *p, enum weir__heirloom kind)
{
    return !p->silent && weir__conf_inherited(p->at, kind) != NULL;
}

/* The zone of the next limit of a kind, from *d on; NULL: there is none. */
static const char *next_zone(const struct weir__directive **d, enum weir__heirloom kind)
{
    while (*d != NULL) {
        const struct weir__directive *limit = *d;
        *d = limit->next;
        if (!weir__conf_is(limit, weir__heirlooms[kind]) || limit->n < 2)
            continue;
        const char *zone =
            kind == WEIR__LIMIT_CONN ? limit->words[1] : weir__conf_option(limit, "zone=");
        if (zone != NULL)
            return zone;
    }
    return NULL;
}

static const struct weir__directive *limits_of(const struct weir__import_place *p,
                                               enum weir__heirloom kind)
{
    return is_asked(p, kind) ? weir__conf_inherited(p->at, kind) : NULL;
}

static const char *key_of(const struct survey *w, enum weir__heirloom kind, const char *zone)
{
    static const char *const names[] = { "limit_req_zone", "limit_conn_zone" };
    size_t len = strlen(zone);

    for (const struct weir__directive *d = w->import->http->first; d != NULL; d = d->next) {
        const char *name = weir__conf_is(d, names[kind]) ? weir__conf_option(d, "zone=") : NULL;
        if (name != NULL && strncmp(name, zone, len) == 0 && name[len] == ':')
            return d->words[1];
    }
    return "";
}

static const struct zone *find_zone(const struct survey *w, enum weir__heirloom kind,
                                    const char *name)
{
    const struct zone *zone = w->zones[kind];

    while (zone != NULL && strcmp(zone->name, name) != 0)
        zone = zone->next;
    return zone;
}

static void find_zones(struct survey *w, enum weir__heirloom kind)
{
    const char *name;

    for (const struct weir__import_place *p = w->places; p != NULL; p = p->next)
        for (const struct weir__directive *d = limits_of(p, kind);
             (name = next_zone(&d, kind)) != NULL;) {
            if (find_zone(w, kind, name) != NULL)
                continue;
            struct zone *made = weir__import_take(w->import, 1, sizeof(*made));
            *made = (struct zone){ name, key_of(w, kind, name), w->zones[kind] };
            w->zones[kind] = made;
        }
}

/* nginx asks nothing where a key is empty.  Sometimes true where it never is. */
static bool may_be_empty(const struct survey *w, const char *key,
                         const struct weir__directive *server)
{
    static const char *const full[] = { "remote_addr", "binary_remote_addr", "uri",  "document_uri",
                                        "request_uri", "request_method",     "host", "scheme",
                                        "server_addr", "server_port" };
    const char *name, *rest;

    for (; (rest = weir__value_variable(w->import, key, &name)) != NULL; key = rest) {
        for (size_t i = 0; i < sizeof(full) / sizeof(*full); i++)
            if (strcmp(name, full[i]) == 0)
                return false;
        if (strcmp(name, "server_name") == 0 && weir__conf_find(server, "server_name") != NULL)
            return false;
    }
    return *key == '\0' || *key == '$';
}

static bool asks_zone(const struct weir__import_place *p, enum weir__heirloom kind,
                      const char *zone)
{
    const struct weir__directive *d = limits_of(p, kind);
    const char *own;

    while ((own = next_zone(&d, kind)) != NULL)
        if (strcmp(own, zone) == 0)
            return true;
    return false;
}

/* nginx asks each kind once in a request: is it asked in `p` for certain? */
static bool is_surely_asked(const struct survey *w, const struct weir__import_place *p,
                            enum weir__heirloom kind)
{
    const struct weir__directive *d = limits_of(p, kind);
    const char *zone;

    while ((zone = next_zone(&d, kind)) != NULL)
        if (!may_be_empty(w, find_zone(w, kind, zone)->key, p->server))
            return true;
    return false;
}

/* May it ask no limit of a kind that other places ask? */
static bool lacks_kind(const struct survey *w, const struct weir__import_place *p,
                       enum weir__heirloom kind)
{
    if (!w->kinds[kind] || !is_asked(p, kind) || p->surely[kind])
        return w->kinds[kind] && !is_asked(p, kind);
    const struct zone *zone = w->zones[kind];
    while (zone != NULL && asks_zone(p, kind, zone->name))
        zone = zone->next;
    return zone != NULL;
}

/* Once: a place is compared with all others. */
static void note_surely_asked(const struct survey *w, struct weir__import_place *p)
{
    for (; p != NULL; p = p->next) {
        p->surely[WEIR__LIMIT_REQ] = is_surely_asked(w, p, WEIR__LIMIT_REQ);
        p->surely[WEIR__LIMIT_CONN] = is_surely_asked(w, p, WEIR__LIMIT_CONN);
        p->lacks = lacks_kind(w, p, WEIR__LIMIT_REQ) || lacks_kind(w, p, WEIR__LIMIT_CONN);
    }
}

/* May a request that was in `p` be asked in `q` what it was not asked yet? */
static bool asks_more(const struct weir__import_place *q, const struct weir__import_place *p,
                      enum weir__heirloom kind)
{
    const struct weir__directive *d = limits_of(q, kind);
    const char *zone;

    if (d == NULL || p->surely[kind])
        return false;
    while ((zone = next_zone(&d, kind)) != NULL)
        if (!asks_zone(p, kind, zone))
            return true;
    return false;
}

static bool is_asked_in_server(const struct weir__import_place *p)
{
    const struct weir__directive *server = p->server;

    while (p != NULL && p->server == server && !is_asked(p, WEIR__LIMIT_REQ) &&
           !is_asked(p, WEIR__LIMIT_CONN))
        p = p->next;
    return p != NULL && p->server == server;
}

/* Blocks inherit all of them but try_files: where it stands, something lacks, or only within. */
static void note_leads(struct survey *w, const struct weir__directive *d, bool here)
{
    static const char *const names[] = { "try_files",      "error_page",  "mirror",
                                         "auth_request",   "post_action", "add_before_body",
                                         "add_after_body", "ssi" };
    const char *last = d->words[d->n - 1];
    bool leads = last[0] == '/' || last[0] == '@' || last[0] == '$' || strcmp(last, "on") == 0;

    for (size_t i = here ? 0 : 1; i < sizeof(names) / sizeof(*names); i++)
        if (weir__conf_is(d, names[i]) && leads)
            weir__import_note(w->import, d, true,
                              "nginx may limit what this %s leads to; rules do not", d->words[0]);
}

/* A rewrite whose answer sends the client elsewhere. */
static bool sends_away(const struct weir__directive *rewrite)
{
    static const char *const starts[] = { "http://", "https://", "$scheme" };
    const char *last = rewrite->words[rewrite->n - 1];
    bool sends = strcmp(last, "redirect") == 0 || strcmp(last, "permanent") == 0;

    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts) && rewrite->n > 2; i++)
        sends |= strncmp(rewrite->words[2], starts[i], strlen(starts[i])) == 0;
    return sends;
}

/* May the request come to another place?  With break it stays in its location. */
static bool moves(const struct weir__directive *rewrite)
{
    const struct weir__directive *block = rewrite->parent;

    if (weir__conf_is(block, "if"))
        block = block->parent;
    return !weir__conf_is(block, "location") ||
           strcmp(rewrite->words[rewrite->n - 1], "break") != 0;
}

/* What is done with a request before it is asked.  `d` may be in an if. */
static void note_rewrites(struct survey *w, const struct weir__directive *d, bool asked)
{
    bool rewrites = weir__conf_is(d, "rewrite"), away = rewrites && sends_away(d),
         within = weir__conf_is(d->parent, "if"),
         sets = weir__conf_is(d, "set") && d->n == 3 && strcmp(d->words[1], "$args") == 0;

    if (asked && (away || (within && weir__conf_is(d, "return"))))
        weir__import_note(w->import, d, true, "nginx does not limit what this %s answers; rules do",
                          d->words[0]);
    else if ((rewrites && !away && (w->by_uri || (w->differ && moves(d)))) || (sets && w->by_uri))
        weir__import_note(w->import, d, true,
                          "nginx limits the rewritten request, rules its URI as it was sent");
}

static void note_redirects(struct survey *w, const struct weir__directive *d,
                           const struct weir__import_place *p, bool lacking_within)
{
    bool asked = is_asked(p, WEIR__LIMIT_REQ) || is_asked(p, WEIR__LIMIT_CONN) ||
                 (p->at == p->server && is_asked_in_server(p));

    note_rewrites(w, d, asked);
    for (const struct weir__directive *in = d->first; weir__conf_is(d, "if") && in; in = in->next)
        note_rewrites(w, in, asked);
    if (lacking_within)
        note_leads(w, d, p->lacks);
}

/* Does `location /` take all that is left for the server? */
static bool is_idle(const struct weir__import_place *p)
{
    const struct weir__import_place *q = p->at == p->server ? p->next : NULL;

    while (q != NULL && q->server == p->server &&
           (q->kind != WEIR__PLACE_PREFIX || strcmp(q->text, "/") != 0))
        q = q->next;
    return q != NULL && q->server == p->server;
}

/* May it have a file for a request that ends in a slash?  Others answer by themselves. */
static bool has_index(const struct weir__import_place *p)
{
    size_t len = strlen(p->text);
    bool slash = len > 0 && p->text[len - 1] == '/';

    for (const struct weir__directive *d = p->at->first; d != NULL; d = d->next) {
        size_t n = strlen(d->words[0]);
        if (strncmp(d->words[0], "content_by_lua", 14) == 0 ||
            (n > 5 && strcmp(d->words[0] + n - 5, "_pass") == 0))
            return false;
    }
    return !p->silent && !is_idle(p) &&
           (p->kind == WEIR__PLACE_PREFIX || (p->kind == WEIR__PLACE_EXACT && slash));
}

/* May a request that was in `p` get to `q` as this path, and meet more limits? */
static bool is_limited_as(const struct weir__import_place *p, const struct weir__import_place *q,
                          const char *path)
{
    bool takes = p->kind == WEIR__PLACE_EXACT || strncmp(path, p->text, strlen(p->text)) != 0 ||
                 (q->kind == WEIR__PLACE_REGEX ? !p->no_regex || q->parent == p
                                               : strlen(q->text) > strlen(p->text));

    for (struct weir__import_pattern *each = q->patterns.first; takes && each != NULL;
         each = each->next)
        if (weir__pattern_may_be(each, path))
            return asks_more(q, p, WEIR__LIMIT_REQ) || asks_more(q, p, WEIR__LIMIT_CONN);
    return false;
}

/* nginx asks for / as /index.html. */
static void note_index(struct survey *w, const struct weir__import_place *p,
                       const struct weir__import_place *first)
{
    const struct weir__directive *index = NULL;
    size_t len = strlen(p->text);
    bool slash = len > 0 && p->text[len - 1] == '/';

    for (const struct weir__directive *b = p->at; b != NULL && index == NULL; b = b->parent)
        index = weir__conf_find(b, "index");
    for (size_t i = 1; i < (index != NULL ? index->n : 2); i++) {
        const char *file = index != NULL ? index->words[i] : "index.html";
        const char *path = file[0] == '/' ? file
                                          : weir__import_text(w->import, "%s%s%s", p->text,
                                                              slash ? "" : "/", file);
        for (const struct weir__import_place *q = first; q && q->server == p->server; q = q->next)
            if (is_limited_as(p, q, path)) {
                weir__import_note(w->import, p->at, true,
                                  "nginx may limit the index %s of this place; rules do not", file);
                return;
            }
    }
}

static bool is_of_uri(const char *attribute)
{
    return attribute != NULL &&
           (strcmp(attribute, "uri") == 0 || strncmp(attribute, "arg.", 4) == 0);
}

/* A key, or a condition of one, that has the path or an argument. */
static bool looks_at_uri(const struct weir__imported *rules)
{
    bool looks = false;

    for (; rules != NULL; rules = rules->next) {
        for (size_t i = 0; i < rules->value->n; i++)
            looks |= is_of_uri(rules->value->parts[i].attribute);
        for (struct weir__import_condition *c = rules->value->conditions; c != NULL; c = c->next)
            looks |= is_of_uri(c->attribute);
    }
    return looks;
}

/* A place, or one in its block. */
static bool lacks_within(const struct weir__import_place *p)
{
    const struct weir__import_place *q = p;

    for (; q != NULL && q->server == p->server; q = q->next) {
        const struct weir__directive *block = q->lacks ? q->at : NULL;
        while (block != NULL && block != p->at)
            block = block->parent;
        if (block != NULL)
            return true;
    }
    return false;
}

static bool have_same_uses(const struct weir__import_place *a, const struct weir__import_place *b)
{
    return a->silent == b->silent && a->n_uses == b->n_uses && a->n_uses < sizeof(a->uses) &&
           memcmp(a->uses, b->uses, a->n_uses) == 0;
}

/* Could it have a request of `p`, if `p` were not there? */
static bool may_be_next(const struct weir__import_place *q, const struct weir__import_place *p)
{
    if (q->kind == WEIR__PLACE_REGEX)
        return q->parent != p->parent || q->index > p->index;
    return q->kind == WEIR__PLACE_PREFIX && !q->no_regex && !is_idle(q);
}

/* Requests that rules take for another place's, which has other limits. */
static void note_doubt(struct weir__import *import, const struct weir__import_place *p,
                       const struct weir__import_place *first)
{
    const struct weir__import_place *q = first;

    while (q != NULL && q->server == p->server && (!may_be_next(q, p) || have_same_uses(p, q)))
        q = q->next;
    if (q != NULL && q->server == p->server)
        weir__import_note(import, p->at, true, "%s", p->doubt);
}

/* Requests that change their place on the way, where places have different limits. */
static void note_changes(struct survey *w)
{
    size_t all = 0, limited = 0, lacking = 0;
    const struct weir__import_place *first = NULL;

    for (const struct weir__import_place *p = w->places; p != NULL; p = p->next) {
        limited += weir__conf_inherited(p->at, WEIR__LIMIT_REQ) ||
                   weir__conf_inherited(p->at, WEIR__LIMIT_CONN);
        lacking += p->lacks;
        all++;
    }
    w->differ = limited > 0 && (w->uses > 1 || limited < all);
    for (const struct weir__import_place *p = w->places; p != NULL; p = p->next) {
        bool lacking_within = lacks_within(p);
        first = p->at == p->server ? p : first;
        if (p->doubt != NULL)
            note_doubt(w->import, p, first);
        for (const struct weir__directive *d = p->at->first; d != NULL; d = d->next)
            note_redirects(w, d, p, lacking_within);
        if (p->lacks && has_index(p))
            note_index(w, p, first);
    }
    for (const struct weir__directive *d = w->import->http->first; d && lacking > 0; d = d->next)
        note_leads(w, d, false);
    for (const struct weir__directive *d = w->import->root.first; d != NULL; d = d->next)
        if (weir__conf_is(d, "stream") && weir__conf_find(d, "limit_conn_zone") != NULL)
            weir__import_note(w->import, d, true, "limits of stream are left out");
}

/* -------------------------------------------------------------------- all ---- */

void weir__import_differences(struct weir__import *import, struct weir__import_place *places,
                              size_t uses, const struct weir__imported *rules,
                              const struct weir__imported *guards)
{
    struct survey w = { .import = import, .places = places, .uses = uses };

    for (size_t kind = 0; kind < 2; kind++)
        w.kinds[kind] = weir__conf_has_anywhere(import->http, weir__heirlooms[kind]);
    if (!w.kinds[WEIR__LIMIT_REQ] && !w.kinds[WEIR__LIMIT_CONN])
        weir__import_note(import, &import->root, false,
                          "no limit_req and no limit_conn: there is nothing to import");
    note_split_zones(import, rules);
    note_split_zones(import, guards);
    find_zones(&w, WEIR__LIMIT_REQ);
    find_zones(&w, WEIR__LIMIT_CONN);
    note_surely_asked(&w, places);
    w.by_uri = looks_at_uri(rules) || looks_at_uri(guards);
    note_changes(&w);
    note_settings(import, import->http);
    if (rules != NULL || guards != NULL)
        note_slashes(import, import->http);
    note_inner(import, import->http);
}
