/* key-template.c -- how a rule makes a key of a request's attributes.
 *
 * A template is pieces of literal text with attributes between them.  The literals are for people:
 * keys differ by their attributes' values, each with its length, so "a:b" + "c" and "a" + "b:c" are
 * two keys whatever the text between.
 */
#include <stdlib.h>
#include <string.h>

#include "match/draft.h"
#include "match/key-template.h"

struct reader {
    const char *text, *at;
    struct weir_error *error;
};

static int fail(const struct reader *r, const char *what)
{
    return weir__fail_at(r->error, (int)(r->at - r->text) + 1, "%s", what);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

size_t weir__attribute_length(const char *text)
{
    size_t n = 0;

    while (is_name_byte(text[n]))
        n++;
    return n;
}

char *weir__attribute_small(const char *name)
{
    char *copy = strdup(name);

    if (copy != NULL && strncmp(copy, "header.", 7) == 0)
        for (char *c = copy; *c != '\0'; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    return copy;
}

/* Literal text up to the next attribute; {{ is a brace, and so is }}. */
static int read_literal(struct reader *r, char **out)
{
    char *literal = malloc(strlen(r->at) + 1);
    size_t n = 0;

    if (literal == NULL)
        return weir__fail(r->error, WEIR_NO_MEMORY, "no memory");
    while (*r->at != '\0' && (*r->at != '{' || r->at[1] == '{')) {
        const char *wrong = *r->at == '}' && r->at[1] != '}'
                                ? "a } without its {; write }} for a brace"
                            : *r->at == '%' ? "a % cannot stand in a key: it begins an escape there"
                                            : NULL;
        if (wrong != NULL) {
            free(literal);
            return fail(r, wrong);
        }
        r->at += *r->at == '{' || *r->at == '}';
        literal[n++] = *r->at++;
    }
    literal[n] = '\0';
    *out = literal;
    return WEIR_OK;
}

static int read_name(struct reader *r, char **out)
{
    size_t len = weir__attribute_length(r->at);

    if (len == 0)
        return fail(r, "expected an attribute's name after {, as in {ip}; write {{ for a brace");
    if (len > 63)
        return fail(r, "an attribute's name has at most 63 bytes");
    char name[64] = "";
    memcpy(name, r->at, len);
    *out = weir__attribute_small(name);
    if (*out == NULL)
        return weir__fail(r->error, WEIR_NO_MEMORY, "no memory");
    r->at += len;
    return WEIR_OK;
}

static int read_prefix(struct reader *r, unsigned most, uint8_t *out)
{
    unsigned bits = 0;
    const char *start = ++r->at; /* the slash */

    while (*r->at >= '0' && *r->at <= '9' && bits <= most)
        bits = bits * 10 + (unsigned)(*r->at++ - '0');
    if (r->at == start || bits > most) {
        r->at = start;
        return fail(
            r, most == 32
                   ? "expected the bits of an IPv4 address that count, 0 to 32, as in {ip/24}"
                   : "expected the bits of an IPv6 address that count, 0 to 128, as in {ip/24/56}");
    }
    *out = (uint8_t)bits;
    return WEIR_OK;
}

static int read_prefixes(struct reader *r, struct weir__template_part *part)
{
    if (*r->at != '/')
        return WEIR_OK;
    if (!weir__attribute_is_address(part->attribute))
        return fail(
            r,
            "only an address has a prefix length: {ip/24}, or an attribute whose name ends in .ip");
    int code = read_prefix(r, 32, &part->prefix4);
    part->prefix6 = 64;
    if (code == WEIR_OK && *r->at == '/')
        code = read_prefix(r, 128, &part->prefix6);
    return code;
}

static int read_fallback(struct reader *r, struct weir__template_part *part)
{
    if (*r->at != '|')
        return WEIR_OK;
    size_t len = strcspn(++r->at, "{}");
    if (len == 0)
        return fail(r,
                    "expected a substitute for a missing value after |, as in {account|anonymous}");
    part->fallback = strndup(r->at, len);
    r->at += len;
    return part->fallback ? WEIR_OK : weir__fail(r->error, WEIR_NO_MEMORY, "no memory");
}

/* {name/prefix/prefix|fallback} */
static int read_attribute(struct reader *r, struct weir__template_part *part)
{
    int code;

    r->at++; /* the brace */
    if ((code = read_name(r, &part->attribute)) || (code = read_prefixes(r, part)) ||
        (code = read_fallback(r, part)))
        return code;
    if (*r->at != '}')
        return fail(r, *r->at == '\0' ? "expected } at the end" : "expected } after the attribute");
    r->at++;
    return WEIR_OK;
}

int weir__template_parse(struct weir__template *out, const char *text, struct weir_error *error)
{
    struct weir__template t = { .n = 0 };
    struct reader r = { text, text, error };
    int code = read_literal(&r, &t.parts[0].before);

    while (code == WEIR_OK && *r.at != '\0') {
        struct weir__template_part *part = &t.parts[t.n];
        part->prefix4 = part->prefix6 = WEIR__NO_PREFIX;
        if (t.n == WEIR__TEMPLATE_PARTS) {
            code = fail(&r, "a key is made of at most 8 attributes");
        } else if (t.n > 0 && *part->before == '\0') {
            code = fail(&r, "put something between two attributes, as in {ip}:{account}");
        } else if (t.n > 0 && (unsigned char)*part->before >= 0x80) {
            code = fail(&r, "the text between two attributes begins with an ASCII character, as "
                            "in {ip}:{account}");
        } else {
            t.n++;
            code = read_attribute(&r, part);
            if (code == WEIR_OK)
                code = read_literal(&r, &t.parts[t.n].before);
        }
    }
    if (code != WEIR_OK) {
        weir__template_free(&t);
        return code;
    }
    *out = t;
    return WEIR_OK;
}

void weir__template_free(struct weir__template *t)
{
    for (size_t i = 0; i <= WEIR__TEMPLATE_PARTS; i++) {
        free(t->parts[i].before);
        free(t->parts[i].attribute);
        free(t->parts[i].fallback);
    }
}
