/* key.c -- the key of a request under a rule, for the table; key-text.c has it for people.
 *
 * A key of one attribute is that attribute's bytes, not copied.  A key of several is the kind,
 * length and bytes of each in turn; if that is too long, its hash.  An address counts as its
 * number, however it was written; all values that should be an address but are not count as one.
 */
#include <string.h>

#include "match/key.h"

enum { HASHED = 255, ADDRESS = 128, LONG = 32 };

/* Long values go in as their hash: 64 bits of tag and 64 of place. */
static size_t put_value(const uint64_t *secrets, unsigned char *out, unsigned kind,
                        const void *bytes, size_t len)
{
    if (len > LONG) {
        struct weir__hash h = weir__hash_key(secrets, 0, (struct weir_key){ bytes, len });
        out[0] = HASHED;
        memcpy(out + 1, &h, sizeof(h));
        return 1 + sizeof(h);
    }
    out[0] = (unsigned char)(kind | len);
    memcpy(out + 1, bytes, len);
    return 1 + len;
}

bool weir__rule_key_make(const uint64_t *secrets, const struct weir__rule *rule,
                         const struct weir__facts *facts, unsigned char made[WEIR__KEY_MAX],
                         struct weir_key *key)
{
    unsigned char whole[WEIR__TEMPLATE_PARTS * (LONG + 1) + 1];
    size_t len = 0;

    if (rule->key_kind == WEIR__KEY_NONE) {
        *key = (struct weir_key){ "", 0 };
        return true;
    }
    for (size_t i = 0; i < rule->key.n; i++) {
        struct weir__value v;
        if (!weir__key_value(&rule->parts[i], facts, &v))
            return false;
        if (v.address.bits != 0 && rule->parts[i].address)
            len += put_value(secrets, whole + len, ADDRESS, v.address.bytes,
                             weir__key_address(&rule->parts[i], &v.address));
        else
            len += put_value(secrets, whole + len, 0, v.text, v.len);
    }
    if (len > WEIR__KEY_MAX)
        len = put_value(secrets, made, 0, whole, len);
    else
        memcpy(made, whole, len);
    *key = (struct weir_key){ made, len };
    return true;
}
