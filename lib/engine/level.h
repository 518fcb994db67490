/* level.h -- how near its limit a request is: the ruling's level, and the header Weir-Level.
 *
 *     0 free    1 less than half is left    2 less than an eighth    3 refusing
 */
#ifndef WEIR_ENGINE_LEVEL_H
#define WEIR_ENGINE_LEVEL_H

#include "weir.h"

static inline uint8_t weir__level_of(const struct weir_decision *d)
{
    uint64_t limit = (uint64_t)d->limit;
    int64_t eighth = (int64_t)((limit + 7) / 8), half = (int64_t)((limit + 1) / 2);

    return !d->allowed ? 3 : d->remaining < eighth ? 2 : d->remaining < half ? 1 : 0;
}

#endif
