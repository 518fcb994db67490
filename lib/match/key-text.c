/* key-text.c -- the key of a request under a rule, for people: in bans, events and explanations.
 *
 * It is the template filled in.  So that no two keys have the same text, a byte of a value that
 * could be taken for the text between two attributes is written as %XX, a value that should be an
 * address but is not begins with a question mark, and a text that is too long ends in its hash.
 */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "match/key.h"

/* Keeps the beginning of a text and hashes all of it, in blocks, each with the hash of those
 * before. */
struct printer {
    char *out; /* of WEIR_KEY_TEXT */
    size_t len;
    const uint64_t *secrets;
    size_t filled;
    struct {
        struct weir__hash before;
        char text[512];
    } block;
};

static void fold(struct printer *p)
{
    size_t len = sizeof(p->block.before) + p->filled;

    p->block.before = weir__hash_key(p->secrets, 0, (struct weir_key){ &p->block, len });
    p->filled = 0;
}

static void put(struct printer *p, char c)
{
    if (p->len < WEIR_KEY_TEXT)
        p->out[p->len] = c;
    p->len++;
    p->block.text[p->filled++] = c;
    if (p->filled == sizeof(p->block.text))
        fold(p);
}

/* Too long: its beginning, and the hash of all of it. */
static size_t finish(struct printer *p)
{
    size_t kept = WEIR_KEY_TEXT - 1 - 3 - 32;

    if (p->len < WEIR_KEY_TEXT) {
        p->out[p->len] = '\0';
        return p->len;
    }
    fold(p);
    while (kept > 0 && ((unsigned char)p->out[kept] & 0xc0) == 0x80) /* not within a character */
        kept--;
    return kept + (size_t)snprintf(p->out + kept, WEIR_KEY_TEXT - kept, "...%016llx%016llx",
                                   (unsigned long long)p->block.before.tag,
                                   (unsigned long long)p->block.before.place);
}

static void put_text(struct printer *p, const char *text)
{
    while (*text != '\0')
        put(p, *text++);
}

/* Whether a byte could be taken for the beginning of the text between two attributes, or for an
 * escape. */
static bool is_taken(const struct weir__rule *rule, unsigned char c)
{
    for (size_t i = 1; i < rule->key.n; i++)
        if ((unsigned char)*rule->key.parts[i].before == c)
            return true;
    return c < 0x20 || c == 0x7f || c == '%';
}

static void put_escape(struct printer *p, unsigned char c)
{
    static const char digits[] = "0123456789ABCDEF";

    put(p, '%');
    put(p, digits[c >> 4]);
    put(p, digits[c & 15]);
}

/* Letters of any language stay; what a terminal would obey, what nobody sees or can type, and bytes
 * that are no UTF-8, which JSON cannot carry, are escaped. */
static void put_escaped(struct printer *p, const struct weir__rule *rule, const char *text,
                        size_t len)
{
    const char *end = text + len;

    while (text < end) {
        size_t n = weir__utf8_length(text, end);
        bool stays =
            n > 0 && !is_taken(rule, (unsigned char)*text) && weir__utf8_is_harmless(text, n);
        for (n += n == 0; n > 0; n--, text++)
            if (stays)
                put(p, *text);
            else
                put_escape(p, (unsigned char)*text);
    }
}

/* In a template with two addresses both are escaped: their colons could be taken for the text
 * between them. */
static void put_address(struct printer *p, const struct weir__rule *rule,
                        const struct weir__key_part *part, struct weir__address a)
{
    char text[64];
    size_t addresses = 0, len;
    uint8_t prefix = a.bits == 32 ? part->prefix4 : part->prefix6;

    weir__key_address(part, &a);
    len = (size_t)weir__address_print(text, sizeof(text), &a);
    if (prefix < a.bits)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "/%u", prefix);
    for (size_t i = 0; i < rule->key.n; i++)
        addresses += rule->parts[i].address;
    if (addresses > 1)
        put_escaped(p, rule, text, len);
    else
        put_text(p, text);
}

static void put_part(struct printer *p, const struct weir__rule *rule, size_t i,
                     const struct weir__facts *facts)
{
    const struct weir__key_part *part = &rule->parts[i];
    struct weir__value v;

    if (!weir__key_value(part, facts, &v))
        return;
    if (v.address.bits != 0 && part->address) {
        put_address(p, rule, part, v.address);
        return;
    }
    if (part->address)
        put(p, '?');
    put_escaped(p, rule, v.text, v.len);
}

size_t weir__key_text_shorten(const uint64_t *secrets, const char *whole, char out[WEIR_KEY_TEXT])
{
    struct printer p = { .out = out, .secrets = secrets };

    put_text(&p, whole);
    return finish(&p);
}

size_t weir__rule_key_text(const uint64_t *secrets, const struct weir__rule *rule,
                           const struct weir__facts *facts, char out[WEIR_KEY_TEXT])
{
    struct printer p = { .out = out, .secrets = secrets };

    for (size_t i = 0; i < rule->key.n; i++) {
        put_text(&p, rule->key.parts[i].before);
        put_part(&p, rule, i, facts);
    }
    put_text(&p, rule->key.parts[rule->key.n].before);
    return finish(&p);
}
