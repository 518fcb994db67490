/* plain-keys.h -- the key that a request has under a rule. */
#ifndef WEIR_TESTS_PROPERTY_PLAIN_KEYS_H
#define WEIR_TESTS_PROPERTY_PLAIN_KEYS_H

#include "plain-match.h"

#define KEY_SIZE (6 * VALUE_MAX)

struct key {
    char id[KEY_SIZE];   /* no two keys have the same */
    char text[KEY_SIZE]; /* as people write it; no two have the same either */
};

/* So that texts are as good as keys: % and the first byte of whatever stands between two attributes
 * are written as %XX, and so is what nobody can read. */
static void add_escaped(char *out, const struct rule *rule, const char *value)
{
    for (out += strlen(out); *value; value++) {
        unsigned char c = (unsigned char)*value;
        bool taken = c < 0x20 || c == 0x7f || c == '%';
        for (int i = 1; i < rule->parts; i++)
            taken |= *rule->key[i].before == *value;
        out += sprintf(out, taken ? "%%%02X" : "%c", c);
    }
}

/* Two addresses are both escaped, a single one is not. */
static void add_address(struct key *k, const struct rule *rule, const struct part *part,
                        struct address a)
{
    char text[INET6_ADDRSTRLEN + 8];
    int prefix = a.bits == 32 ? part->prefix4 : part->prefix6, addresses = 0;

    if (prefix < 0)
        prefix = a.bits == 32 ? 32 : 64;
    plain_mask(&a, prefix);
    inet_ntop(a.bits == 32 ? AF_INET : AF_INET6, a.bytes, text, sizeof(text));
    sprintf(k->id + strlen(k->id), "a%s,", text);
    if (prefix < a.bits)
        sprintf(text + strlen(text), "/%d", prefix);
    for (int i = 0; i < rule->parts; i++)
        addresses += is_address(rule->key[i].attribute);
    if (addresses > 1)
        add_escaped(k->text, rule, text);
    else
        strcat(k->text, text);
}

static bool plain_key(const struct rule *rule, const struct request *q, struct key *k)
{
    k->id[0] = k->text[0] = '\0';
    for (int i = 0; i < rule->parts; i++) {
        const struct part *part = &rule->key[i];
        const struct value *v = &q->seen[part->attribute];
        struct address a = { 0 };
        if (v->len == 0 && part->fallback == NULL)
            return false;
        if (v->len > 0 && is_address(part->attribute))
            a = plain_client(v->text, v->len);
        strcat(k->text, part->before);
        if (a.bits != 0) {
            add_address(k, rule, part, a);
            continue;
        }
        const char *value = v->len == 0                   ? part->fallback
                            : is_address(part->attribute) ? "not-an-address"
                                                          : v->text;
        sprintf(k->id + strlen(k->id), "v%zu:%s,", strlen(value), value);
        strcat(k->text, is_address(part->attribute) ? "?" : "");
        add_escaped(k->text, rule, value);
    }
    strcat(k->text, rule->after);
    return true;
}

/* Whether a key is listed as this: whole, or its beginning, dots, and the hash, which only the
 * table knows. */
static bool is_listed_as(const char *text, const char *listed)
{
    size_t len = strlen(listed);

    if (strlen(text) < TEXT_MAX)
        return strcmp(text, listed) == 0;
    return len < TEXT_MAX && len >= TEXT_MAX - 4 && strncmp(text, listed, len - 35) == 0 &&
           memcmp(listed + len - 35, "...", 3) == 0 &&
           strspn(listed + len - 32, "0123456789abcdef") == 32;
}

#endif
