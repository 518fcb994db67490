/* hash.c -- the parts of hash.h that few decisions need. */
#include <errno.h>
#include <sys/random.h>

#include "base/hash.h"

struct weir__sums weir__hash_long(const uint64_t *secrets, const unsigned char **p, size_t *len)
{
    struct weir__sums s = { 0, 0 };

    while (*len > 16) {
        struct weir__sums chain = s;
        s = (struct weir__sums){ 0, 0 };
        weir__hash_pair(&s, secrets, (uint64_t)chain.tag ^ (uint64_t)(chain.place >> 64),
                        (uint64_t)(chain.tag >> 64) ^ (uint64_t)chain.place);
        for (size_t pair = 1; pair < WEIR__HASH_PAIRS - 1 && *len > 16;
             pair++, *p += 16, *len -= 16)
            weir__hash_pair(&s, secrets + 2 * pair, weir__hash_word(*p), weir__hash_word(*p + 8));
    }
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
