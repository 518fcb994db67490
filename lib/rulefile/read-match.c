/* read-match.c -- which requests a rule is for: `match` and `not`.
 *
 *     match: { uri: "/user/?", method: [POST, PUT], ip: 10.0.0.0/8, account: { list: vips } }
 *
 * A value with stars is a pattern; classify() says which kind.  For a literal star, or to be
 * explicit, write { exact: ... }, { prefix: ... } or { glob: ... }.
 */
#include "rulefile/read.h"

#include <string.h>

#include "match/address.h"
#include "match/values.h"

static const char example[] = "text, a list, or a mapping such as { list: NAME }";

/* ------------------------------------------------------------- patterns ---- */

static bool set_pattern(struct weir__reader *r, struct weir__pattern *p,
                        enum weir__pattern_kind kind, const char *text, size_t len)
{
    p->kind = kind;
    p->text = weir__arena_copy(r->arena, text, len);
    p->len = len;
    return p->text != NULL;
}

static bool read_address(struct weir__reader *r, const struct weir__node *node,
                         struct weir__pattern *p)
{
    struct weir__cidr cidr;
    struct weir_error error = { 0 };

    if (weir__cidr_parse(node->text, node->n, &cidr, &error) == WEIR_OK)
        return set_pattern(r, p, WEIR__CIDR, node->text, node->n);
    weir__say_error(r, node, "", &error);
    return false;
}

/* In a path only ** passes a slash, so "/api/" and two stars is a beginning while "/api/" and one
 * star is a segment; elsewhere one star is enough. */
static enum weir__pattern_kind classify(const char *text, size_t len, bool path, size_t *keep)
{
    size_t stars = 0;

    while (stars < len && text[len - 1 - stars] == '*')
        stars++;
    *keep = len;
    if (stars == len)
        return WEIR__PRESENT;
    if (!memchr(text, '*', len - stars) && !memchr(text, '?', len - stars)) {
        if (stars == 0)
            return WEIR__EXACT;
        if (stars == (path ? 2 : 1)) {
            *keep = len - stars;
            return WEIR__PREFIX;
        }
    }
    return WEIR__GLOB;
}

/* A whole URL means its path. */
static void say_no_path(struct weir__reader *r, const struct weir__node *node)
{
    const char *host = strstr(node->text, "://"), *path = host ? strchr(host + 3, '/') : NULL;

    if (host)
        weir__say(r, node, "uri is the path alone, without scheme and host; write %s",
                  path ? weir__quote(path, strlen(path)).text : "'/', and the host under host:");
    else if (node->text[0] == '^' || node->text[node->n - 1] == '$')
        weir__say(r, node,
                  "a path begins with /, and is no regular expression; write /login, or /login/** "
                  "for all below");
    else
        weir__say(r, node, "a path begins with /; write \"/%s\"",
                  node->n < 60 ? node->text : "...");
}

/* Whether a path can be like this glob: plain, whatever stands for its stars.  A ? before a name
 * and an equals sign is no pattern, but a query. */
static bool is_plain_glob(const char *glob, size_t len)
{
    char like[256];
    const char *mark = memchr(glob, '?', len);

    if (mark && mark[1 + strcspn(mark + 1, "/*=")] == '=')
        return false;
    if (len >= sizeof(like))
        return true;
    for (size_t i = 0; i < len; i++)
        like[i] = (char)(glob[i] != '*' && glob[i] != '?' ? glob[i] : i == 0 ? '/' : 'x');
    return weir__uri_is_plain(like, len);
}

/* A star before the first slash stands for nothing: only two stars pass a slash. */
static bool begins_within_a_part(const char *glob, size_t len)
{
    return glob[0] == '*' && len > 1 && glob[1] != '*' && glob[1] != '/';
}

/* A path begins with a slash and is matched as a server sees it: a rule written otherwise would
 * match nothing. */
static bool check_path(struct weir__reader *r, const struct weir__node *node,
                       enum weir__pattern_kind kind, size_t keep)
{
    char plain[256];

    if (node->text[0] != '/' && !(kind == WEIR__GLOB && node->text[0] == '*')) {
        say_no_path(r, node);
        return false;
    }
    if (kind == WEIR__GLOB && begins_within_a_part(node->text, keep)) {
        weir__say(r, node,
                  "a path begins with /, and * stays within one part of it; write \"*%.60s\" for "
                  "parts of any depth, or \"/%.60s\"",
                  node->text, node->text);
        return false;
    }
    bool prefix = kind == WEIR__PREFIX && keep > 0 &&
                  node->text[keep - 1] != '.'; /* after a dot a name may follow */
    if (kind == WEIR__GLOB              ? is_plain_glob(node->text, keep)
        : kind == WEIR__EXACT || prefix ? weir__uri_is_plain(node->text, keep)
                                        : true)
        return true;
    size_t len =
        node->n < sizeof(plain) ? weir__uri_plain(node->text, keep, plain, sizeof(plain)) : 0;
    weir__say(
        r, node,
        "no path looks like this: queries are cut off, %%XX is decoded, // and .. are resolved; "
        "write %s",
        len ? weir__quote(plain, len).text : "it that way");
    return false;
}

/* A URL, a host with a path, or a name as nginx has it for all below. */
static bool is_name_alone(struct weir__reader *r, const struct weir__node *node)
{
    const char *scheme = strstr(node->text, "://"), *name = scheme ? scheme + 3 : node->text;
    size_t len = strcspn(name, "/");

    if (scheme || name[len] == '/')
        weir__say(r, node, "host is the name alone, without scheme and path; write %s",
                  weir__quote(name, len).text);
    else if (name[0] == '.' && len > 1)
        weir__say(r, node, "no host begins with a dot; write [%.100s, \"*%.100s\"]", name + 1,
                  name);
    else
        return true;
    return false;
}

/* As paths: a host that is written otherwise would match nothing. */
static bool check_host(struct weir__reader *r, const struct weir__node *node,
                       enum weir__pattern_kind kind, size_t keep)
{
    char plain[256];
    bool open = keep > 0 && (kind == WEIR__PREFIX || strchr("*?", node->text[keep - 1]));

    if (!is_name_alone(r, node))
        return false;
    if (open) /* a name may go on behind a dot */
        while (keep > 0 && strchr("*?.", node->text[keep - 1]))
            keep--;
    if (weir__host_is_plain(node->text, keep))
        return true;
    size_t len = open || node->n >= sizeof(plain)
                     ? 0
                     : weir__host_plain(node->text, keep, plain, sizeof(plain));
    weir__say(r, node,
              "no host looks like this: letters become lower case, a port and a dot at the end are "
              "cut off; write %s",
              len ? weir__quote(plain, len).text : "it that way");
    return false;
}

static bool set_text(struct weir__reader *r, const struct weir__node *node, const char *attribute,
                     enum weir__pattern_kind kind, size_t keep, struct weir__pattern *p)
{
    if (weir__attribute_is_path(attribute) && kind != WEIR__PRESENT &&
        !check_path(r, node, kind, kind == WEIR__EXACT ? node->n : keep))
        return false;
    if (weir__attribute_is_host(attribute) && kind != WEIR__PRESENT &&
        !check_host(r, node, kind, keep))
        return false;
    return kind == WEIR__PRESENT ? set_pattern(r, p, kind, "*", 1)
                                 : set_pattern(r, p, kind, node->text, keep);
}

static bool read_scalar(struct weir__reader *r, const struct weir__node *node,
                        const char *attribute, struct weir__pattern *p)
{
    size_t keep;
    enum weir__pattern_kind kind =
        classify(node->text, node->n, weir__attribute_is_path(attribute), &keep);

    if (node->n == 0) {
        weir__say(
            r, node,
            "an empty value is as good as none; for requests without one write not: { %s: \"*\" }",
            attribute);
        return false;
    }
    if (weir__attribute_is_address(attribute) && kind != WEIR__PRESENT)
        return read_address(r, node, p);
    return set_text(r, node, attribute, kind, keep, p);
}

/* ---------------------------------------------------------------- forms ---- */

enum { LIST, EXACT, PREFIX, GLOB, FORMS };

static bool read_form(struct weir__reader *r, const struct weir__node *node, const char *attribute,
                      struct weir__pattern *p)
{
    static const enum weir__pattern_kind kinds[FORMS] = { WEIR__LIST, WEIR__EXACT, WEIR__PREFIX,
                                                          WEIR__GLOB };
    struct weir__member m[FORMS] = {
        { .name = "list" }, { .name = "exact" }, { .name = "prefix" }, { .name = "glob" }
    };
    int form = -1;

    if (!weir__read_members(r, node, "a pattern", m, FORMS))
        return false;
    if (node->n != 1) {
        weir__say(r, node,
                  "a pattern is one of { list: ... }, { exact: ... }, { prefix: ... }, { glob: ... "
                  "}; several go into a list [ ]");
        return false;
    }
    for (int i = 0; i < FORMS; i++)
        form = m[i].value ? i : form;
    if (form < 0 || !weir__read_text(r, m[form].value, m[form].name, "text"))
        return false;
    const struct weir__node *value = m[form].value;
    if (form == LIST) {
        weir__check_list(r, value, attribute);
        return set_pattern(r, p, WEIR__LIST, value->text, value->n);
    }
    if (value->n == 0) {
        weir__say(r, value, "'%s' is empty; for any value write %s: \"*\"", m[form].name,
                  attribute);
        return false;
    }
    if (weir__attribute_is_address(attribute)) {
        weir__say(r, value,
                  "'%s' is an address: write a network such as 10.0.0.0/8, or { list: NAME }",
                  attribute);
        return false;
    }
    p->stated = true;
    return set_text(r, value, attribute, kinds[form], value->n, p);
}

/* ----------------------------------------------------------- conditions ---- */

static void read_pattern(struct weir__reader *r, const struct weir__node *node,
                         struct weir__condition *c)
{
    struct weir__pattern *p = &c->patterns[c->n];
    bool good = false;

    if (node->kind == WEIR__NODE_TEXT)
        good = read_scalar(r, node, c->attribute, p);
    else if (node->kind == WEIR__NODE_MAPPING)
        good = read_form(r, node, c->attribute, p);
    else
        weir__say(r, node, "'%s' must be %s; found %s", c->attribute, example,
                  weir__node_word(node));
    if (good) {
        c->n++;
    }
}

static void read_condition(struct weir__reader *r, const struct weir__node *node,
                           struct weir__condition *c)
{
    size_t n = node->kind == WEIR__NODE_LIST ? node->n : 1;

    if (n == 0) {
        weir__say(r, node,
                  "the list of '%s' is empty, so nothing would match; write its values, or "
                  "leave it out",
                  c->attribute);
        return;
    }
    c->patterns = weir__arena_take(r->arena, n, sizeof(*c->patterns));
    if (c->patterns == NULL)
        return;
    if (node->kind != WEIR__NODE_LIST)
        read_pattern(r, node, c);
    for (size_t i = 0; node->kind == WEIR__NODE_LIST && i < n; i++)
        read_pattern(r, node->items[i], c);
}

static const struct weir__condition *find(const struct weir__condition *conditions, size_t n,
                                          const char *attribute)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(conditions[i].attribute, attribute) == 0)
            return &conditions[i];
    }
    return NULL;
}

void weir__read_match(struct weir__reader *r, const struct weir__node *node, const char *what,
                      struct weir__condition **out, size_t *n)
{
    if (node->kind != WEIR__NODE_MAPPING) {
        weir__say(r, node,
                  "%s must be a mapping from attributes to values, such as { uri: /login, method: "
                  "POST }; found %s",
                  what, weir__node_word(node));
        return;
    }
    struct weir__condition *conditions = weir__arena_take(r->arena, node->n, sizeof(*conditions));
    size_t used = 0;
    for (size_t i = 0; conditions && i < node->n; i++) {
        const struct weir__node *key = node->items[2 * i];
        char *attribute = weir__read_attribute(r, key, key->text, key->n);
        const struct weir__condition *first = attribute ? find(conditions, used, attribute) : NULL;
        if (first)
            weir__say(r, key,
                      "'%s' is here twice (header names ignore case); the first is in line "
                      "%d, column %d",
                      attribute, first->mark.line, first->mark.column);
        if (attribute == NULL || first)
            continue;
        conditions[used] =
            (struct weir__condition){ .attribute = attribute, .mark = weir__mark_of(r, key) };
        read_condition(r, node->items[2 * i + 1], &conditions[used++]);
    }
    *out = conditions;
    *n = used;
}
