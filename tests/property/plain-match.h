/* plain-match.h -- which requests a rule is for, as plainly as possible. */
#ifndef WEIR_TESTS_PROPERTY_PLAIN_MATCH_H
#define WEIR_TESTS_PROPERTY_PLAIN_MATCH_H

#include "plain-types.h"

/* ----------------------------------------------------------- addresses ---- */

struct address {
    int bits; /* 0: none */
    unsigned char bytes[16];
};

static struct address plain_address(const char *text, size_t len)
{
    static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    struct address a = { 0 };
    char copy[64];
    bool bracket = len >= 2 && text[0] == '[' && text[len - 1] == ']';

    snprintf(copy, sizeof(copy), "%.*s", (int)(bracket ? len - 2 : len), text + bracket);
    if (!bracket && inet_pton(AF_INET, copy, a.bytes) == 1)
        a.bits = 32;
    else if (inet_pton(AF_INET6, copy, a.bytes) == 1)
        a.bits = 128;
    if (a.bits == 128 && memcmp(a.bytes, mapped, 12) == 0) {
        memmove(a.bytes, a.bytes + 12, 4);
        memset(a.bytes + 4, 0, 12);
        a.bits = 32;
    }
    return a;
}

/* As a request has it: there may be a port behind it. */
static struct address plain_client(const char *text, size_t len)
{
    struct address a = plain_address(text, len);
    size_t digits = 0;

    if (a.bits != 0)
        return a;
    while (digits < len && isdigit((unsigned char)text[len - 1 - digits]))
        digits++;
    if (digits > 0 && digits + 1 < len && text[len - 1 - digits] == ':')
        a = plain_address(text, len - 1 - digits);
    return a;
}

static void plain_mask(struct address *a, int prefix)
{
    for (int bit = prefix; bit < 128; bit++)
        a->bytes[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
}

static bool plain_in_network(struct address a, const char *network)
{
    const char *slash = strchr(network, '/');
    struct address n = plain_address(network, slash ? (size_t)(slash - network) : strlen(network));
    int prefix = !slash                                 ? n.bits
                 : n.bits == 32 && strchr(network, ':') ? atoi(slash + 1) - 96
                                                        : atoi(slash + 1);

    plain_mask(&a, prefix);
    return a.bits != 0 && a.bits == n.bits && memcmp(a.bytes, n.bytes, 16) == 0;
}

/* -------------------------------------------------------------- values ---- */

static bool plain_glob(const char *p, const char *t, const char *end, bool path)
{
    if (*p == '\0')
        return t == end;
    if (p[0] == '*') {
        bool wide = !path || p[1] == '*';
        const char *rest = p + 1 + (path && p[1] == '*');
        for (;; t++) {
            if (plain_glob(rest, t, end, path))
                return true;
            if (t == end || (!wide && *t == '/'))
                return false;
        }
    }
    return t < end && (*p == '?' ? !path || *t != '/' : *p == *t) &&
           plain_glob(p + 1, t + 1, end, path);
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef",
               *found = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;

    return found ? (int)(found - digits) : -1;
}

/* Decoded, and cut before the query: then every segment is looked at, and the path put together
 * again. */
static size_t plain_decode(const char *uri, char *out)
{
    const char *scheme = strstr(uri, "://");
    size_t n = 0;

    if (scheme != NULL && scheme != uri && strcspn(uri, "/?#") == (size_t)(scheme - uri) + 1)
        uri = scheme + 3 + strcspn(scheme + 3, "/?#");
    for (; *uri && *uri != '?' && *uri != '#'; uri++) {
        bool escape = *uri == '%' && hex_digit(uri[1]) >= 0 && hex_digit(uri[2]) >= 0;
        out[n++] = escape ? (char)(hex_digit(uri[1]) * 16 + hex_digit(uri[2])) : *uri;
        uri += escape ? 2 : 0;
    }
    return n;
}

static void plain_path(struct value *v)
{
    char decoded[VALUE_MAX], out[VALUE_MAX] = "";

    if (v->len == 0 || strcmp(v->text, "*") == 0)
        return;
    size_t n = plain_decode(v->text, decoded);
    bool open = true; /* ends in a slash */
    for (size_t i = 0, len; i <= n; i += len + 1) {
        const char *end = memchr(decoded + i, '/', n - i);
        len = end ? (size_t)(end - decoded) - i : n - i;
        open = len == 0 || (len == 1 && decoded[i] == '.') ||
               (len == 2 && memcmp(decoded + i, "..", 2) == 0);
        if (!open)
            snprintf(out + strlen(out), sizeof(out) - strlen(out), "/%.*s", (int)len, decoded + i);
        else if (len == 2 && strrchr(out, '/'))
            *strrchr(out, '/') = '\0';
    }
    v->len = (size_t)snprintf(v->text, URI_MAX + 1, "%s%s", out, open ? "/" : "");
    v->len = v->len > URI_MAX ? URI_MAX : v->len;
}

static bool is_address(int attribute)
{
    return attribute == IP || attribute == PEER;
}

static bool plain_on_list(const struct set *set, const char *name, int attribute,
                          const struct value *v)
{
    for (int i = 0; i < set->lists; i++) {
        const struct list *l = &set->list[i];
        for (int k = 0; strcmp(l->name, name) == 0 && l->attribute == attribute && k < l->n; k++)
            if (is_address(attribute)
                    ? plain_in_network(plain_client(v->text, v->len), l->entries[k])
                    : strcmp(l->entries[k], v->text) == 0)
                return v->len > 0;
    }
    return false;
}

/* ------------------------------------------------------------ matching ---- */

static bool plain_holds(const struct set *set, const struct pattern *p, int attribute,
                        const struct value *v)
{
    switch (p->kind) {
    case EXACT:
        return strcmp(p->text, v->text) == 0;
    case PREFIX:
        return strncmp(p->text, v->text, strlen(p->text)) == 0;
    case GLOB:
        return plain_glob(p->text, v->text, v->text + v->len, attribute == URI);
    case CIDR:
        return plain_in_network(plain_client(v->text, v->len), p->text);
    case LIST:
        return plain_on_list(set, p->text, attribute, v);
    case PRESENT:
        break;
    }
    return true;
}

static bool plain_condition(const struct set *set, const struct condition *c,
                            const struct request *q)
{
    for (int i = 0; i < c->n; i++)
        if (q->seen[c->attribute].len > 0 &&
            plain_holds(set, &c->patterns[i], c->attribute, &q->seen[c->attribute]))
            return true;
    return false;
}

static bool plain_matches(const struct set *set, const struct rule *rule, const struct request *q)
{
    for (int i = 0; i < rule->matches; i++)
        if (!plain_condition(set, &rule->match[i], q))
            return false;
    for (int i = 0; i < rule->excepts; i++)
        if (plain_condition(set, &rule->except[i], q))
            return false;
    return true;
}

#endif
