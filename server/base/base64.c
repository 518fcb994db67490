/* base64.c -- bytes as text: six bits a character. */
#include "server/base/base64.h"

static char digit_of(unsigned six, const char *alphabet)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

    return six < 62 ? digits[six] : alphabet[six - 62];
}

size_t weir__base64_write(char *out, const void *bytes, size_t len, const char *alphabet)
{
    const unsigned char *from = bytes;
    unsigned held = 0, bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | from[i];
        for (held += 8; held >= 6; held -= 6)
            out[n++] = digit_of(bits >> (held - 6) & 63, alphabet);
    }
    if (held)
        out[n++] = digit_of(bits << (6 - held) & 63, alphabet);
    out[n] = '\0';
    return n;
}

/* Its six bits, or -1. */
static int sextet(char c, const char *alphabet)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == alphabet[0]     ? 62
           : c == alphabet[1]     ? 63
                                  : -1;
}

size_t weir__base64_read(void *out, size_t room, const char *text, size_t len, const char *alphabet)
{
    unsigned char *to = out;
    unsigned held = 0, bits = 0;
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int six = sextet(text[i], alphabet);
        if (six < 0)
            return 0;
        bits = bits << 6 | (unsigned)six;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        if (n == room)
            return 0;
        to[n++] = (unsigned char)(bits >> held);
    }
    return held < 6 && (bits & ((1u << held) - 1)) == 0 ? n : 0;
}
