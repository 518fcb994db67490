/* rules-copy-bytes.c -- the last good copy of a document, as bytes for a node's disk.
 *
 *     weir-copy 1 CRC VERSION EDIT TAKEN NAME-BYTES TEXT-BYTES\n
 *     NAME\n
 *     TEXT
 *
 * CRC: eight hexadecimal digits, CRC-32 (the one of Ethernet) over everything behind them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cluster/fleet/rules-follower.h"

static const char mark[] = "weir-copy 1 ";
#define HEAD (sizeof(mark) - 1 + 8) /* bytes before what the CRC is over */

static uint32_t crc32_of(const char *bytes, size_t len)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

void weir__copy_write(const struct weir__copy *c, struct weir__buffer *out)
{
    char digits[16];
    size_t begin = out->len;

    weir__buffer_format(out, "%s00000000 %" PRId64 " %" PRId64 " %" PRId64 " %zu %zu\n", mark,
                        c->of.version, c->of.edit, c->taken, c->document.len, c->text.len);
    weir__buffer_add(out, c->document.bytes, c->document.len);
    weir__buffer_text(out, "\n");
    weir__buffer_add(out, c->text.bytes, c->text.len);
    if (out->failed)
        return;
    snprintf(digits, sizeof(digits), "%08" PRIx32,
             crc32_of(out->bytes + begin + HEAD, out->len - begin - HEAD));
    memcpy(out->bytes + begin + sizeof(mark) - 1, digits, 8);
}

static int bad(struct weir_error *error, const char *why)
{
    return weir__fail(error, WEIR_INVALID, "the copy %s", why);
}

/* A number and the byte behind it; false: there is none. */
static bool read_number(const char **at, const char *end, char behind, int64_t *out)
{
    int64_t n = 0;
    const char *p = *at;

    for (; p < end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return false;
    if (p == *at || p == end || *p != behind)
        return false;
    *at = p + 1;
    *out = n;
    return true;
}

/* The CRC has been found right: what is wrong now was written so. */
static bool read_parts(struct weir__copy *out, struct weir__text bytes)
{
    const char *at = bytes.bytes + HEAD + 1, *end = bytes.bytes + bytes.len;
    int64_t name, text;

    if (bytes.bytes[HEAD] != ' ' || !read_number(&at, end, ' ', &out->of.version) ||
        !read_number(&at, end, ' ', &out->of.edit) || !read_number(&at, end, ' ', &out->taken) ||
        !read_number(&at, end, ' ', &name) || !read_number(&at, end, '\n', &text) ||
        name >= end - at || text != end - at - name - 1 || at[name] != '\n')
        return false;
    out->document = (struct weir__text){ at, (size_t)name };
    out->text = (struct weir__text){ at + name + 1, (size_t)text };
    return true;
}

int weir__copy_read(struct weir__copy *out, struct weir__text document, struct weir__text bytes,
                    weir_time now, struct weir_error *error)
{
    struct weir__copy copy;
    char digits[16];

    if (bytes.len <= HEAD || memcmp(bytes.bytes, mark, sizeof(mark) - 1) != 0)
        return bad(error, "was not written by this version of Weir");
    snprintf(digits, sizeof(digits), "%08" PRIx32, crc32_of(bytes.bytes + HEAD, bytes.len - HEAD));
    if (memcmp(bytes.bytes + sizeof(mark) - 1, digits, 8) != 0 || !read_parts(&copy, bytes))
        return bad(error, "is damaged");
    if (copy.document.len != document.len ||
        memcmp(copy.document.bytes, document.bytes, document.len) != 0)
        return bad(error, "is a copy of another document");
    if (now - copy.taken > WEIR__COPY_AGE_MAX || copy.taken - now > 24 * 3600 * WEIR_SECOND)
        return bad(error, "is older than 7 days, or from the future");
    *out = copy;
    return WEIR_OK;
}
