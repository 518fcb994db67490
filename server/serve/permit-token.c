/* permit-token.c -- a permit as a client has it: written, signed, read back.
 *
 * The hash is SipHash-2-4 with 128 bits of output (Aumasson, Bernstein: SipHash, 2012; the longer output as its authors have added it).  Not the
 * table's own hash: that one is fast because nobody sees its results, and from results that are shown its secrets could be computed.
 */
#include "serve/permit-token.h"

#include <string.h>

#define VERSION 1
#define HEAD    2
#define EACH    26
#define MAC     16
#define RAW_MAX (HEAD + WEIR_ENTRY_MAX * EACH + MAC)

_Static_assert((RAW_MAX * 4 + 2) / 3 + 1 <= WEIR__PERMIT_TOKEN_MAX, "the longest token has room");

/* ---------------------------------------------------------------- SipHash ---- */

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

static void put_word(unsigned char *out, uint64_t word, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (unsigned char)(word >> 8 * i);
}

static uint64_t get_word(const unsigned char *bytes, size_t n)
{
    uint64_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

void weir__permit_mac(const struct weir__permit_key *key, const void *bytes, size_t len, unsigned char out[16])
{
    const unsigned char *at = bytes;
    uint64_t v[4] = { key->words[0] ^ 0x736f6d6570736575u, key->words[1] ^ 0x646f72616e646f6du ^ 0xee, key->words[0] ^ 0x6c7967656e657261u,
                      key->words[1] ^ 0x7465646279746573u };
    size_t left = len;

    for (; left >= 8; at += 8, left -= 8)
        absorb(v, get_word(at, 8));
    absorb(v, (uint64_t)len << 56 | get_word(at, left));
    v[2] ^= 0xee;
    rounds(v, 4);
    put_word(out, v[0] ^ v[1] ^ v[2] ^ v[3], 8);
    v[1] ^= 0xdd;
    rounds(v, 4);
    put_word(out + 8, v[0] ^ v[1] ^ v[2] ^ v[3], 8);
}

/* Nothing of the secrets can be known from it; and another purpose would have another label. */
void weir__permit_key_make(struct weir__permit_key *out, const uint64_t secrets[WEIR__HASH_SECRETS])
{
    static const char label[] = "weir permit 1";
    unsigned char bytes[sizeof label + 8 * WEIR__HASH_SECRETS], mac[MAC];

    memcpy(bytes, label, sizeof label);
    for (size_t i = 0; i < WEIR__HASH_SECRETS; i++)
        put_word(bytes + sizeof label + 8 * i, secrets[i], 8);
    weir__permit_mac(&(struct weir__permit_key){ { secrets[0], secrets[1] } }, bytes, sizeof bytes, mac);
    *out = (struct weir__permit_key){ { get_word(mac, 8), get_word(mac + 8, 8) } };
    explicit_bzero(bytes, sizeof bytes);
}

/* ----------------------------------------------------------------- base64 ---- */

static size_t encode(char *out, const unsigned char *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned held = 0, bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | bytes[i];
        for (held += 8; held >= 6; held -= 6)
            out[n++] = digits[bits >> (held - 6) & 63];
    }
    if (held)
        out[n++] = digits[bits << (6 - held) & 63];
    out[n] = '\0';
    return n;
}

static int sextet(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '-'             ? 62
           : c == '_'             ? 63
                                  : -1;
}

/* The length of what was read; 0: it is none of ours.  Bits that are left over must be 0: one permit has one token. */
static size_t decode(unsigned char out[RAW_MAX], const char *text, size_t len)
{
    unsigned held = 0, bits = 0;
    size_t n = 0;

    if (len / 4 * 3 + len % 4 > RAW_MAX + 1)
        return 0;
    for (size_t i = 0; i < len; i++) {
        int six = sextet(text[i]);
        if (six < 0)
            return 0;
        bits = bits << 6 | (unsigned)six;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        if (n == RAW_MAX)
            return 0;
        out[n++] = (unsigned char)(bits >> held);
    }
    return held < 6 && (bits & ((1u << held) - 1)) == 0 ? n : 0;
}

/* ----------------------------------------------------------------- tokens ---- */

size_t weir__permits_print(char out[WEIR__PERMIT_TOKEN_MAX], const struct weir__permit_key *key, const struct weir__permits *permits)
{
    unsigned char raw[RAW_MAX] = { VERSION, (unsigned char)permits->n };
    unsigned char *at = raw + HEAD;

    for (uint32_t i = 0; i < permits->n; i++, at += EACH) {
        const struct weir_permit *p = &permits->each[i].permit;
        put_word(at, permits->each[i].guard, 2);
        put_word(at + 2, p->word, 8);
        put_word(at + 10, p->slot, 4);
        put_word(at + 14, p->flags, 4);
        put_word(at + 18, (uint64_t)p->since, 8);
    }
    weir__permit_mac(key, raw, (size_t)(at - raw), at);
    return encode(out, raw, (size_t)(at - raw) + MAC);
}

static void read_each(struct weir__permits *out, const unsigned char *raw)
{
    *out = (struct weir__permits){ .n = raw[1] };
    for (uint32_t i = 0; i < out->n; i++) {
        const unsigned char *at = raw + HEAD + i * EACH;
        out->each[i].guard = (uint32_t)get_word(at, 2);
        out->each[i].permit = (struct weir_permit){ .word = get_word(at + 2, 8),
                                                    .slot = (uint32_t)get_word(at + 10, 4),
                                                    .flags = (uint32_t)get_word(at + 14, 4),
                                                    .since = (weir_time)get_word(at + 18, 8) };
    }
}

const char *weir__permits_parse(struct weir__permits *out, const struct weir__permit_key *key, const char *text, size_t len)
{
    unsigned char raw[RAW_MAX], mac[MAC], differs = 0;
    size_t n = decode(raw, text, len);

    if (n < HEAD || raw[0] != VERSION || raw[1] == 0 || raw[1] > WEIR_ENTRY_MAX || n != HEAD + (size_t)raw[1] * EACH + MAC)
        return "this is no permit: give the text that enter has answered, whole";
    weir__permit_mac(key, raw, n - MAC, mac);
    for (size_t i = 0; i < MAC; i++) /* all of them: how long it takes must not say how many were right */
        differs |= mac[i] ^ raw[n - MAC + i];
    if (differs)
        return "this permit is not of this server's table: it was changed, or another server has given it";
    read_each(out, raw);
    return NULL;
}
