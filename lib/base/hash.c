/* hash.c -- the parts of hash.h that few decisions need. */
#include <errno.h>
#include <sys/random.h>

#include "base/hash.h"

static void add(struct weir__sums *s, struct weir__sums more)
{
    s->tag += more.tag;
    s->place += more.place;
}

struct weir__sums weir__hash_long(const uint64_t *secrets, struct weir_key key)
{
    const unsigned char *p = key.bytes;
    size_t left = key.len;
    struct weir__sums s = { 0, 0 };

    while (left > 16) {
        s = weir__hash_pair(secrets, (uint64_t)s.tag ^ (uint64_t)(s.place >> 64),
                            (uint64_t)(s.tag >> 64) ^ (uint64_t)s.place);
        for (size_t pair = 1; pair < WEIR__HASH_PAIRS - 1 && left > 16; pair++, p += 16, left -= 16)
            add(&s,
                weir__hash_pair(secrets + 2 * pair, weir__hash_word(p), weir__hash_word(p + 8)));
    }
    add(&s, weir__hash_last(secrets, p, left));
    return s;
}

int weir__random_fill(void *out, size_t size)
{
    unsigned char *p = out;

    while (size > 0) {
        ssize_t got = getrandom(p, size, 0);
        if (got < 0 && errno != EINTR)
            return -1;
        if (got > 0) {
            p += got;
            size -= (size_t)got;
        }
    }
    return 0;
}
