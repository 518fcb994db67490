/* redis-cell-keys.c -- CL.THROTTLE on keys that redis-cell has written, or that had another
 * limit. */
#include "redis-module/redis-cell-keys.h"

#include "algo/debt.h"

#define CELL_DIGITS 19 /* of a time in ns from 2001 to 2262; a shorter number is a counter */

bool cell_keeps_debt(struct account *a, weir_time now)
{
    const struct weir_plan *plan = &a->limit->plan;
    struct weir_limit limit;
    struct weir_plan old;
    struct weir__debt *s = a->state;
    size_t head = weir__account_limit(&limit, a->stored, a->stored_len);

    if (head == 0 || weir__plan_make(&old, &limit, NULL) != WEIR_OK || old.algo != plan->algo ||
        !weir__account_read(&old, s, a->stored + head, a->stored_len - head))
        return false;
    weir__debt_reckon(&old, s, now > s->at ? now : s->at, 0);
    s->owed = weir__scale_up(s->owed, (int64_t)plan->by_scale.by, (int64_t)old.by_scale.by);
    return true;
}

bool read_digits(const void *bytes, size_t len, int64_t *out)
{
    const unsigned char *b = bytes;

    *out = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = b[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, digit, out))
            return false;
    }
    return len > 0;
}

bool cell_read(struct account *a, weir_time now)
{
    const struct weir_plan *plan = &a->limit->plan;
    struct weir__debt *s = a->state;
    int64_t paid_off, owed;

    if (a->stored_len != CELL_DIGITS || !read_digits(a->stored, a->stored_len, &paid_off))
        return false;
    owed = paid_off > now ? paid_off - now : 0;
    if (__builtin_mul_overflow(owed, (int64_t)plan->by_scale.by, &owed) || owed > plan->capacity)
        owed = plan->capacity;
    *s = (struct weir__debt){ now, owed };
    a->known = a->moved = true;
    return true;
}
