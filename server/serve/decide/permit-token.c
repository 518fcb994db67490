/* permit-token.c -- a permit as a client has it: written, signed, read back. */
#include "server/serve/decide/permit-token.h"

#include <string.h>

#include "server/base/base64.h"
#include "server/base/little-endian.h"
#include "server/base/siphash.h"

#define VERSION 1
#define HEAD    2
#define EACH    22
#define MAC     WEIR__SIPHASH_BYTES
#define RAW_MAX (HEAD + WEIR_ENTRY_MAX * EACH + MAC)

_Static_assert(WEIR__BASE64_LEN(RAW_MAX) + 1 <= WEIR__PERMIT_TOKEN_MAX,
               "the longest token has room");

/* Nothing of the secrets can be known from it; and another purpose would have another label. */
void weir__permit_key_make(struct weir__permit_key *out, const uint64_t secrets[WEIR__HASH_SECRETS])
{
    static const char label[] = "weir permit 1";
    unsigned char bytes[sizeof(label) + 8 * WEIR__HASH_SECRETS], mac[MAC];

    memcpy(bytes, label, sizeof(label));
    for (size_t i = 0; i < WEIR__HASH_SECRETS; i++)
        weir__little_put(bytes + sizeof(label) + 8 * i, secrets[i], 8);
    weir__siphash(secrets, bytes, sizeof(bytes), mac);
    *out = (struct weir__permit_key){ { weir__little_get(mac, 8), weir__little_get(mac + 8, 8) } };
    explicit_bzero(bytes, sizeof(bytes));
}

size_t weir__permits_print(char out[WEIR__PERMIT_TOKEN_MAX], const struct weir__permit_key *key,
                           const struct weir__permits *permits)
{
    unsigned char raw[RAW_MAX] = { VERSION, (unsigned char)permits->n };
    unsigned char *at = raw + HEAD;

    for (uint32_t i = 0; i < permits->n; i++, at += EACH) {
        const struct weir_permit *p = &permits->each[i].permit;
        weir__little_put(at, permits->each[i].guard, 2);
        weir__little_put(at + 2, p->word, 8);
        weir__little_put(at + 10, p->seat, 4);
        weir__little_put(at + 14, (uint64_t)p->since, 8);
    }
    weir__siphash(key->words, raw, (size_t)(at - raw), at);
    return weir__base64_write(out, raw, (size_t)(at - raw) + MAC, WEIR__BASE64_URL);
}

static void read_each(struct weir__permits *out, const unsigned char *raw)
{
    *out = (struct weir__permits){ .n = raw[1] };
    for (uint32_t i = 0; i < out->n; i++) {
        const unsigned char *at = raw + HEAD + i * EACH;
        out->each[i].guard = (uint32_t)weir__little_get(at, 2);
        out->each[i].permit =
            (struct weir_permit){ .word = weir__little_get(at + 2, 8),
                                  .seat = (uint32_t)weir__little_get(at + 10, 4),
                                  .since = (weir_time)weir__little_get(at + 14, 8) };
    }
}

const char *weir__permits_parse(struct weir__permits *out, const struct weir__permit_key *key,
                                const char *text, size_t len)
{
    unsigned char raw[RAW_MAX], mac[MAC], differs = 0;
    size_t n = weir__base64_read(raw, sizeof(raw), text, len, WEIR__BASE64_URL);

    if (n < HEAD || raw[0] != VERSION || raw[1] == 0 || raw[1] > WEIR_ENTRY_MAX ||
        n != HEAD + (size_t)raw[1] * EACH + MAC)
        return "this is not a permit: give the text that enter has answered, whole";
    weir__siphash(key->words, raw, n - MAC, mac);
    for (size_t i = 0; i < MAC;
         i++) /* all of them: how long it takes must not say how many were right */
        differs |= mac[i] ^ raw[n - MAC + i];
    if (differs)
        return "this permit is not of this server's table: it was changed, or another server has "
               "given it";
    read_each(out, raw);
    return NULL;
}
