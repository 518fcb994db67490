/* limit-directives.c -- the zones of an nginx.conf and their uses, as rules and guards.
 *
 * A use is a limit_req or limit_conn as it stands in a location, or as the location inherits it:
 * all of the nearest block that has any.  Uses that are the same in several locations become one
 * rule, because nginx counts them together; a note names a zone that rules have to count apart.
 *
 *     rate=R burst=B             leaky-bucket R burst 1 queue B
 *     rate=R burst=B delay=D     leaky-bucket R burst D+1 queue B-D
 *     rate=R burst=B nodelay     leaky-bucket R burst B+1 queue 0: nobody waits, at any door
 *
 * nginx counts in thousandths of a request per second and drops the rest, so 7r/m is 116/1000s.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/import/import.h"

#define USES_MAX    200 /* different ones */
#define ZONES_MAX   1000
#define PLACES_MAX  10000
#define RULES_MAX   2000
#define RULE_NAME   32    /* of a zone, in the name of a rule */
#define PERMITS_MAX 16384 /* of a guard */

/* ---------------------------------------------------------------- helpers ---- */

/* 0: not a number that nginx takes. */
static long long number_of(const char *text)
{
    size_t digits = text != NULL ? strspn(text, "0123456789") : 0;

    return digits > 0 && digits < 10 && text[digits] == '\0' ? atoll(text) : 0;
}

/* ------------------------------------------------------------------- uses ---- */

struct zone {
    const struct weir__directive *at;
    const char *name;
    char *rules; /* name of its first rule; of others with .2, .3 */
    size_t n_rules;
    bool conn;
};

struct use {
    const struct weir__directive *at;
    struct zone *zone;
    long long burst, delay, most;
    bool conn, dry;
};

struct work {
    struct weir__import *import;
    struct weir__import_place *places;
    struct zone *zones;
    struct use *uses;
    size_t n_zones, n, n_rules;
    struct weir__imported *rules, *guards, **rules_end, **guards_end;
};

/* Different for each zone, without a dot. */
static char *rule_name(const struct work *w, const char *zone)
{
    char *name = weir__import_text(w->import, "%.*s", RULE_NAME, zone);

    for (char *c = name; *c != '\0'; c++)
        *c = (char)(isalnum((unsigned char)*c) || *c == '_' ? *c : '-');
    for (size_t i = 0; i < w->n_zones; i++)
        if (name[0] == '\0' || strcmp(w->zones[i].rules, name) == 0)
            return weir__import_text(w->import, "%.*s-z%zu", RULE_NAME - 6, name, w->n_zones);
    return name;
}

static void find_zones(struct work *w)
{
    w->zones = weir__import_take(w->import, ZONES_MAX, sizeof(*w->zones));
    for (const struct weir__directive *d = w->import->http->first; d != NULL; d = d->next) {
        bool conn = weir__conf_is(d, "limit_conn_zone");
        const char *name = weir__conf_option(d, "zone=");
        if ((!conn && !weir__conf_is(d, "limit_req_zone")) || d->n < 3 || name == NULL ||
            name[0] == ':' || name[0] == '\0' || w->n_zones == ZONES_MAX)
            continue;
        name = weir__import_text(w->import, "%.*s", (int)strcspn(name, ":"), name);
        char *rules = rule_name(w, name);
        w->zones[w->n_zones++] =
            (struct zone){ .at = d, .name = name, .rules = rules, .conn = conn };
    }
}

static struct zone *find_zone(const struct work *w, bool conn, const char *name)
{
    for (size_t i = 0; i < w->n_zones; i++)
        if (w->zones[i].conn == conn && strcmp(w->zones[i].name, name) == 0)
            return &w->zones[i];
    return NULL;
}

static bool is_on(const struct weir__directive *d)
{
    return d != NULL && d->n == 2 && strcmp(d->words[1], "on") == 0;
}

/* False after a note. */
static bool read_use(struct work *w, const struct weir__directive *d, bool conn, struct use *use)
{
    const char *name = conn ? d->n == 3 ? d->words[1] : NULL : weir__conf_option(d, "zone="),
               *burst, *delay;

    *use = (struct use){ .at = d, .conn = conn };
    use->zone = find_zone(w, conn, name != NULL ? name : "");
    if (use->zone == NULL) {
        weir__import_note(w->import, d, true, "there is no zone %s", name != NULL ? name : "");
        return false;
    }
    if (conn) {
        use->most = number_of(d->words[2]);
        return use->most > 0;
    }
    burst = weir__conf_option(d, "burst=");
    delay = weir__conf_option(d, "delay=");
    use->burst = number_of(burst);
    use->delay = weir__conf_option_at(d, "nodelay") > weir__conf_option_at(d, "delay=")
                     ? use->burst
                     : number_of(delay);
    if (use->delay > use->burst)
        use->delay = use->burst;
    if ((burst == NULL || use->burst > 0) && (delay == NULL || number_of(delay) > 0))
        return true;
    weir__import_note(w->import, d, true, "burst and delay are numbers above 0");
    return false;
}

static bool same_use(const struct use *a, const struct use *b)
{
    return a->zone == b->zone && a->burst == b->burst && a->delay == b->delay &&
           a->most == b->most && a->dry == b->dry;
}

/* Its number; SIZE_MAX: there are too many. */
static size_t number_use(struct work *w, const struct use *use)
{
    for (size_t i = 0; i < w->n; i++)
        if (same_use(&w->uses[i], use))
            return i;
    if (w->n == USES_MAX) {
        weir__import_note(w->import, use->at, true, "too many limits: this one is left out");
        return SIZE_MAX;
    }
    w->uses[w->n] = *use;
    return w->n++;
}

static void add_use(struct work *w, struct weir__import_place *place, const struct use *use)
{
    size_t number = number_use(w, use);

    if (number != SIZE_MAX && place->n_uses < sizeof(place->uses) / sizeof(*place->uses))
        place->uses[place->n_uses++] = (uint8_t)number;
    else if (number != SIZE_MAX)
        weir__import_note(w->import, use->at, true, "too many limits here: this one is left out");
}

static bool has_use(const struct weir__import_place *place, size_t number)
{
    for (size_t i = 0; i < place->n_uses; i++)
        if (place->uses[i] == number)
            return true;
    return false;
}

static void find_uses(struct work *w, struct weir__import_place *place, bool conn)
{
    const struct weir__directive *d = weir__conf_inherited(place->at, conn);
    bool dry = is_on(weir__conf_inherited(place->at, WEIR__LIMIT_REQ_DRY_RUN + conn));
    size_t n = 0;

    for (; d != NULL && !place->silent; d = d->next) {
        struct use use;
        if (!weir__conf_is(d, weir__heirlooms[conn]) || !read_use(w, d, conn, &use))
            continue;
        use.dry = dry;
        add_use(w, place, &use);
        if (++n == 2 && use.dry)
            weir__import_note(w->import, d, true,
                              "in a dry run nginx asks these limits together, rules in shadow are "
                              "each asked alone");
    }
}

/* ------------------------------------------------------------------ rules ---- */

/* NULL after a note. */
static const char *limit_of(struct weir__import *import, const struct use *use)
{
    const char *rate = weir__conf_option(use->zone->at, "rate="), *text;
    size_t digits = rate != NULL ? strspn(rate, "0123456789") : 0;
    const char *unit = rate != NULL ? rate + digits : "";
    bool minute = strcmp(unit, "r/m") == 0;
    long long n = digits < 10 && digits > 0 ? atoll(rate) : 0;
    struct weir_limit limit;
    struct weir_plan *plan = NULL;

    if (n == 0 || !(minute || *unit == '\0' || strcmp(unit, "r/s") == 0)) {
        weir__import_note(import, use->zone->at, true, "zone %s has no rate that nginx takes",
                          use->zone->name);
        return NULL;
    }
    const char *pace = !minute         ? weir__import_text(import, "%lld/1s", n)
                       : n * 1000 % 60 ? weir__import_text(import, "%lld/1000s", n * 1000 / 60)
                                       : weir__import_text(import, "%lld/1m", n);
    text = weir__import_text(import, "leaky-bucket %s burst %lld queue %lld", pace, use->delay + 1,
                             use->burst - use->delay);
    if (use->burst > use->delay)
        weir__import_note(import, use->at, false,
                          "nginx delays requests here; by rules they wait only at a door that lets "
                          "them, and are refused at others");
    struct weir_error error = { 0 };
    if (weir_limit_parse(&limit, text, &error) == WEIR_OK &&
        weir_plan_create(&plan, &limit, &error) == WEIR_OK) {
        weir_plan_destroy(plan);
        return text;
    }
    weir__import_note(import, use->at, true, "%s: %s", text, error.text);
    return NULL;
}

static const char *name_of(const struct work *w, struct zone *zone)
{
    return ++zone->n_rules == 1
               ? zone->rules
               : weir__import_text(w->import, "%s.%zu", zone->rules, zone->n_rules);
}

static void add_rule(struct work *w, const struct use *use, const char *limit,
                     const struct weir__case *key, const struct weir__region *region)
{
    struct weir__imported ***end = use->conn ? &w->guards_end : &w->rules_end, *rule;
    struct weir__import_condition *conditions = NULL;

    if (!weir__conditions_join(w->import, &conditions, region->conditions) ||
        !weir__conditions_join(w->import, &conditions, key->conditions)) {
        weir__import_note(w->import, use->at, true,
                          "zone %s and this place each need a match of their own on the same "
                          "attribute: left out",
                          use->zone->name);
        return;
    }
    rule = weir__import_take(w->import, 1, sizeof(*rule));
    *rule = (struct weir__imported){ .at = use->at,
                                     .zone = use->zone->at,
                                     .name = name_of(w, use->zone),
                                     .key = weir__value_template(w->import, key),
                                     .value = key,
                                     .limit = limit,
                                     .most = use->most < PERMITS_MAX ? use->most : PERMITS_MAX,
                                     .shadow = use->dry,
                                     .conditions = conditions };
    if (!weir__import_can_be_read(w->import, rule))
        return;
    **end = rule;
    *end = &rule->next;
}

static void convert(struct work *w, size_t number)
{
    const struct use *use = &w->uses[number];
    const char *limit = use->conn ? NULL : limit_of(w->import, use);

    if (limit == NULL && !use->conn)
        return;
    for (struct weir__import_place *p = w->places; p != NULL; p = p->next)
        p->chosen = has_use(p, number);
    struct weir__region *region = weir__places_region(w->import, w->places);
    struct weir__case *cases = weir__value_cases(w->import, use->zone->at->words[1], use->zone->at);
    for (; region != NULL; region = region->next)
        for (struct weir__case *c = cases; c != NULL && w->n_rules <= RULES_MAX; c = c->next)
            if (++w->n_rules > RULES_MAX)
                weir__import_note(w->import, use->at, true, "too many rules: the rest is left out");
            else
                add_rule(w, use, limit, c, region);
    if (use->most > PERMITS_MAX)
        weir__import_note(w->import, use->at, true, "a guard has at most %d permits", PERMITS_MAX);
}

/* -------------------------------------------------------------------- all ---- */

static void convert_all(struct work *w)
{
    size_t places = 0;

    w->rules_end = &w->rules;
    w->guards_end = &w->guards;
    w->uses = weir__import_take(w->import, USES_MAX, sizeof(*w->uses));
    find_zones(w);
    w->places = weir__places_find(w->import, w->import->http);
    for (struct weir__import_place *p = w->places; p != NULL; p = p->next) {
        if (++places > PLACES_MAX) {
            weir__import_note(w->import, p->at, true, "too many locations: the rest is left out");
            p->next = NULL;
            break;
        }
        find_uses(w, p, false);
        find_uses(w, p, true);
    }
    for (size_t i = 0; i < w->n; i++)
        convert(w, i);
    weir__import_differences(w->import, w->places, w->n, w->rules, w->guards);
}

int weir__import_nginx(struct weir__import *import, const char *path, const char *text, size_t len,
                       struct weir__buffer *out, struct weir_error *error)
{
    struct work w = { .import = import };
    struct weir_rules *rules = NULL;
    int code = weir__conf_read(import, path, text, len, error);

    if (code != WEIR_OK)
        return code;
    import->http = weir__conf_find(&import->root, "http");
    if (import->http == NULL)
        return weir__fail(error, WEIR_INVALID, "%s: there is no http block", path);
    convert_all(&w);
    weir__import_write(import, w.rules, w.guards, out);
    if (out->failed)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory");
    code = weir_rules_parse(&rules, out->bytes, out->len, NULL, error);
    weir_rules_destroy(rules);
    return code;
}
