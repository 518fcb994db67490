/* rules-doubts-patterns.c -- patterns that no request is like, or fewer than it seems: those of
 * regular expressions, of routers, of other proxies.
 *
 * Any byte may be in a value, so these are doubts; { exact: ... } and { glob: ... } say that a
 * pattern is meant as it stands. */
#include "server/describe/rules-doubts-private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "match/address.h"

#define SHOWN(p) weir__quote((p)->text, (p)->len).text

static void doubt_network(const struct weir__doubting *r, const struct weir__condition *c,
                          const struct weir__pattern *p)
{
    struct weir__cidr network;
    struct weir_error error;

    if (p->kind == WEIR__CIDR &&
        (strcmp(p->text, "0.0.0.0/0") == 0 || strcmp(p->text, "::/0") == 0))
        weir__doubt(r, c->mark,
                    "%s is one kind of address, and clients have the other; leave out %s for all",
                    p->text, c->attribute);
    if (p->kind != WEIR__EXACT)
        return;
    if (!weir__attribute_is_address(c->attribute) && memchr(p->text, '/', p->len) &&
        weir__cidr_parse(p->text, p->len, &network, &error) == WEIR_OK)
        weir__doubt(r, c->mark,
                    "%s is compared as text; only ip and names ending in .ip are addresses",
                    SHOWN(p));
}

/* ------------------------------------------------------------------ paths ---- */

bool weir__path_is_guessed(const struct weir__pattern *p)
{
    /* And words that have one in them by chance. */
    static const char *const words[][2] = {
        { "login" },    { "logon" },  { "signin" },  { "sign-in" },         { "auth", "author" },
        { "passw" },    { "token" },  { "authori" }, { "otp", "ootp" },     { "2fa" },
        { "mfa" },      { "signup" }, { "sign-up" }, { "reset", "preset" }, { "admin" },
        { "register" },
    };

    for (size_t i = 0; p->kind <= WEIR__GLOB && i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasestr(p->text, words[i][0]) && !(words[i][1] && strcasestr(p->text, words[i][1])))
            return true;
    return false;
}

/* Paths that are worth guessing at: they should match however they are spelled. */
static void doubt_path(const struct weir__doubting *r, const struct weir__condition *c,
                       const struct weir__pattern *p)
{
    if (weir__path_is_guessed(p))
        weir__doubt(r, c->mark,
                    "%s matches only as written, and other spellings of it (capitals, / or ;x at "
                    "the end) pass by; write paths: loose, or paths: strict if that is meant",
                    weir__quote(p->text, p->len).text);
}

/* Pages that are served for all below them too, as path info. */
static void doubt_page(const struct weir__doubting *r, const struct weir__condition *c,
                       const struct weir__pattern *p)
{
    static const char *const ends[] = {
        ".php", ".phtml", ".cgi", ".fcgi", ".pl", ".aspx", ".ashx"
    };
    char below[256];

    if (p->kind == WEIR__PREFIX || p->stated || p->len > 100)
        return;
    snprintf(below, sizeof(below), "%s/", p->text);
    for (size_t i = 0; i < c->n; i++)
        if (strncmp(c->patterns[i].text, below, strlen(below)) == 0)
            return;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (p->len > strlen(ends[i]) &&
            strcasecmp(p->text + p->len - strlen(ends[i]), ends[i]) == 0) {
            weir__doubt(r, c->mark,
                        "PHP, CGI and ASP.NET serve '%s/x' as this page; write [%s, \"%s/**\"], or "
                        "{ %s: %s } if that is meant",
                        p->text, p->text, p->text, p->kind == WEIR__GLOB ? "glob" : "exact",
                        p->text);
            return;
        }
}

static bool has_both(const struct weir__pattern *p, char open, char close)
{
    const char *at = memchr(p->text, open, p->len);

    return at && strchr(at, close);
}

static bool looks_like_expression(const struct weir__pattern *p)
{
    return has_both(p, '(', ')') || has_both(p, '[', ']') || memchr(p->text, '|', p->len) ||
           memchr(p->text, '\\', p->len) || strstr(p->text, "/.*") || strstr(p->text, ".+") ||
           p->text[p->len - 1] == '$';
}

/* Others' ways to write a path. */
static bool doubt_syntax(const struct weir__doubting *r, const struct weir__condition *c,
                         const struct weir__pattern *p)
{
    if (looks_like_expression(p))
        weir__doubt(
            r, c->mark,
            "%s is not a regular expression: all but * and ? is compared as it stands; write "
            "each path, as in [/a, /b], and * for any one part",
            SHOWN(p));
    else if (strstr(p->text, "/:") || has_both(p, '{', '}') || has_both(p, '<', '>'))
        weir__doubt(
            r, c->mark,
            "%s: a part such as :id, {id} or <id> is compared as it stands; write * for any one "
            "part of a path, and a list [/a, /b] for several paths",
            SHOWN(p));
    else
        return false;
    return true;
}

/* A path that looks like all below it. */
static void doubt_below(const struct weir__doubting *r, const struct weir__condition *c,
                        const struct weir__pattern *p)
{
    int len = p->len < 80 ? (int)p->len : 80;

    if (p->kind == WEIR__EXACT && p->len == 1)
        weir__doubt(r, c->mark,
                    "'/' is the first page alone; leave out uri for all paths, or write "
                    "{ exact: / } if that is meant");
    else if (p->kind == WEIR__EXACT && p->text[p->len - 1] == '/')
        weir__doubt(r, c->mark,
                    "%s is that page alone; write \"%.*s**\" for all below it, or { exact: %.*s } "
                    "if that is meant",
                    SHOWN(p), len, p->text, len, p->text);
    else if (p->kind == WEIR__GLOB && p->len > 2 && strcmp(p->text + p->len - 2, "/*") == 0)
        weir__doubt(r, c->mark,
                    "%s goes one part deep; write \"%.*s*\" for all below it, or "
                    "{ glob: \"%.*s\" } if that is meant",
                    SHOWN(p), len, p->text, len, p->text);
    else if (p->kind == WEIR__GLOB && p->len > 1 && p->text[p->len - 1] == '*' &&
             isalnum((unsigned char)p->text[p->len - 2]))
        weir__doubt(r, c->mark,
                    "%s has nothing below it: * stays within one part; write \"%.*s/**\" for that, "
                    "or { glob: \"%.*s\" } if that is meant",
                    SHOWN(p), len - 1, p->text, len, p->text);
}

/* The same with no part for the first two stars, as other globs have it; false: it is there. */
static bool lacks_short(const struct weir__condition *c, const struct weir__pattern *p,
                        char out[128])
{
    const char *stars = strstr(p->text, "/**/");

    if (p->kind != WEIR__GLOB || stars == NULL || p->len >= 128)
        return false;
    snprintf(out, 128, "%.*s%s", (int)(stars - p->text), p->text, stars + 3);
    const struct weir__pattern below = { strpbrk(out, "*?") ? WEIR__GLOB : WEIR__EXACT, out,
                                         strlen(out), true };
    for (size_t i = 0; i < c->n; i++)
        if (weir__pattern_is_within(&below, &c->patterns[i]))
            return false;
    return true;
}

/* **, which others take for no part at all as well. */
static void doubt_between(const struct weir__doubting *r, const struct weir__condition *c,
                          const struct weir__pattern *p)
{
    char below[128];

    if (lacks_short(c, p, below))
        weir__doubt(r, c->mark,
                    "%s does not match '%s': ** stands for one part at least here; write [\"%s\", "
                    "\"%s\"], or { glob: \"%s\" } if that is meant",
                    SHOWN(p), below, below, p->text, p->text);
}

static void doubt_uri(const struct weir__doubting *r, const struct weir__condition *c,
                      const struct weir__pattern *p)
{
    if (p->kind > WEIR__GLOB)
        return;
    if (p->stated && p->kind == WEIR__PREFIX && memchr(p->text, '*', p->len))
        weir__doubt(r, c->mark, "the * in the prefix %s is compared as it stands; write a glob",
                    SHOWN(p));
    if (!p->stated && !doubt_syntax(r, c, p)) {
        doubt_below(r, c, p);
        doubt_between(r, c, p);
    }
}

/* ---------------------------------------------------------------- methods ---- */

/* One of the usual methods, or NULL: *near is one that is a slip away, if any. */
static const char *usual_method(const struct weir__pattern *p, const char **near)
{
    static const char *const usual[] = { "GET",   "HEAD",    "POST",  "PUT",    "DELETE",
                                         "PATCH", "OPTIONS", "TRACE", "CONNECT" };

    for (size_t i = 0; p->len <= WEIR__EDITS_MAX && i < sizeof(usual) / sizeof(usual[0]); i++) {
        unsigned edits = weir__edits(p->text, p->len, usual[i], strlen(usual[i]));
        if (edits == 0)
            return usual[i];
        *near = edits == 1 ? usual[i] : *near;
    }
    return NULL;
}

/* Any method is possible: only a slip away from a usual one is doubted, and others' ways to write
 * several of them. */
static void doubt_method(const struct weir__doubting *r, const struct weir__condition *c,
                         const struct weir__pattern *p)
{
    const char *near = NULL;

    if (p->kind != WEIR__EXACT || p->stated || usual_method(p, &near))
        return;
    if (p->text[0] == '!' || p->text[0] == '^')
        weir__doubt(r, c->mark,
                    "no request has the method %s; for all others write not: { method: "
                    "%.40s }",
                    SHOWN(p), p->text + 1);
    else if (strpbrk(p->text, ", |/"))
        weir__doubt(r, c->mark,
                    "no request has the method %s; write a list for several: [GET, POST]",
                    SHOWN(p));
    else if (strcasecmp(p->text, "all") == 0 || strcasecmp(p->text, "any") == 0)
        weir__doubt(r, c->mark, "no request has the method %s; leave out method for all", SHOWN(p));
    else if (near)
        weir__doubt(r, c->mark, "method %s; did you mean %s?", SHOWN(p), near);
}

/* Servers answer HEAD by what they do for GET, and leave out the body at the end. */
static void doubt_get(const struct weir__doubting *r, const struct weir__condition *c,
                      const struct weir__pattern *p)
{
    if (p->kind != WEIR__EXACT || p->stated || strcmp(p->text, "GET") != 0)
        return;
    for (size_t i = 0; i < c->n; i++) /* a glob or a list may have it */
        if (c->patterns[i].kind != WEIR__EXACT || strcmp(c->patterns[i].text, "HEAD") == 0)
            return;
    weir__doubt(r, c->mark,
                "HEAD is as much work as GET for most servers, and passes by; write [GET, HEAD], "
                "or { exact: GET } if that is meant");
}

/* -------------------------------------------------------------------- all ---- */

/* Globs have no |, which hosts and headers have not either; and texts that begin or end like that
 * are rare. */
static bool doubt_expression(const struct weir__doubting *r, const struct weir__condition *c,
                             const struct weir__pattern *p)
{
    bool header = strncmp(c->attribute, "header.", 7) == 0,
         alternatives = (header || weir__attribute_is_host(c->attribute)) && strchr(p->text, '|');

    if (p->kind > WEIR__GLOB || p->stated ||
        !(alternatives || p->text[0] == '^' || strncmp(p->text, ".*", 2) == 0 ||
          strncmp(p->text, "(?", 2) == 0 || p->text[p->len - 1] == '$'))
        return false;
    weir__doubt(r, c->mark,
                "%s is not a regular expression: all but * and ? is compared as it stands; write "
                "a list for several, and * for any text",
                SHOWN(p));
    return true;
}

static bool is_quoted(const char *text)
{
    return *text == '"' || *text == '\'' || strncmp(text, "\xe2\x80\x9c", 3) == 0 ||
           strncmp(text, "\xe2\x80\x98", 3) == 0;
}

/* A comma or a blank between two that look alike: in hosts and paths any, elsewhere ", ". */
static bool is_several(const struct weir__condition *c, const struct weir__pattern *p)
{
    if (weir__attribute_is_path(c->attribute))
        return strstr(p->text, ",/") || strstr(p->text, " /");
    if (weir__attribute_is_host(c->attribute))
        return strpbrk(p->text, ", ");
    return strpbrk(p->text, "\n") ||
           (strncmp(c->attribute, "header.", 7) != 0 && strstr(p->text, ", "));
}

/* Values as no request has them; false: nothing is said. */
static bool doubt_value(const struct weir__doubting *r, const struct weir__condition *c,
                        const struct weir__pattern *p)
{
    if (p->kind > WEIR__GLOB || p->stated || strcmp(c->attribute, "method") == 0)
        return false;
    if (p->kind == WEIR__EXACT &&
        (isspace((unsigned char)p->text[0]) || isspace((unsigned char)p->text[p->len - 1])))
        weir__doubt(r, c->mark, "%s has a blank at its start or end, which no request sends",
                    SHOWN(p));
    else if (p->kind == WEIR__EXACT && is_several(c, p))
        weir__doubt(r, c->mark, "%s is one value; write a list for several: [a, b]", SHOWN(p));
    else if (p->text[0] == '!' && p->len > 1)
        weir__doubt(r, c->mark,
                    "%s is no exception: it is compared as it stands; write not: { %s: %.60s }",
                    SHOWN(p), c->attribute, p->text + 1);
    else if (p->kind == WEIR__EXACT && is_quoted(p->text))
        weir__doubt(r, c->mark, "the quotes are part of %s; write the value in one pair of \"",
                    SHOWN(p));
    else
        return false;
    return true;
}

/* Browsers and robots say more than one word. */
static void doubt_agent(const struct weir__doubting *r, const struct weir__condition *c,
                        const struct weir__pattern *p)
{
    if (!doubt_expression(r, c, p) && p->kind == WEIR__EXACT && !p->stated &&
        strpbrk(p->text, "/ ") == NULL)
        weir__doubt(r, c->mark,
                    "only a client that says nothing but %s matches; write \"*%.60s*\" for all "
                    "that have it in their text",
                    SHOWN(p), p->text);
}

/* text/html; charset=utf-8 */
static bool is_longer(const char *attribute)
{
    return strcmp(attribute, "header.content-type") == 0 ||
           strcmp(attribute, "header.accept") == 0 || strcmp(attribute, "header.referer") == 0;
}

void weir__doubt_pattern(const struct weir__doubting *r, const struct weir__rule_draft *rule,
                         const struct weir__condition *c, const struct weir__pattern *p)
{
    bool match = c >= rule->match && c < rule->match + rule->matches;

    doubt_network(r, c, p);
    if (doubt_value(r, c, p))
        return;
    if (weir__attribute_is_path(c->attribute)) {
        if (!rule->loose && !rule->strict && match)
            doubt_path(r, c, p);
        if (match)
            doubt_page(r, c, p);
        doubt_uri(r, c, p);
    } else if (strcmp(c->attribute, "method") == 0) {
        doubt_method(r, c, p);
        if (match)
            doubt_get(r, c, p);
    } else if (strcmp(c->attribute, "header.user-agent") == 0) {
        doubt_agent(r, c, p);
    } else if (strcmp(c->attribute, "scheme") == 0) {
        if (p->kind == WEIR__EXACT && (strpbrk(p->text, ":/") || isupper((unsigned char)*p->text)))
            weir__doubt(r, c->mark, "no request has the scheme %s; write http or https", SHOWN(p));
    } else if (is_longer(c->attribute) && p->kind == WEIR__EXACT && !p->stated) {
        weir__doubt(
            r, c->mark,
            "only a %s that is nothing but %s matches, and most say more; write \"*%.60s*\"",
            c->attribute, SHOWN(p), p->text);
    } else {
        doubt_expression(r, c, p);
    }
}
