/* check-ask.c -- asks on accounts that are refused before they are sent. */
#include <string.h>

#include "cluster/account/call.h"

static bool is_same_key(const struct weir_key *a, const struct weir_key *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->bytes, b->bytes, a->len) == 0);
}

/* One key in two places: what is written under the one would be lost under the other. */
static bool is_twice(const struct weir__account_call *call)
{
    bool draws = weir__account_has_demand(call), has_id = call->id.len > 0;

    for (size_t i = 0; i < call->n; i++) {
        const struct weir_key *key = &call->items[i].key;
        if ((has_id && is_same_key(key, &call->id)) || (draws && is_same_key(key, &call->demand)))
            return true;
        for (size_t k = 0; k < i; k++)
            if (is_same_key(key, &call->items[k].key))
                return true;
    }
    return draws && is_same_key(&call->demand, &call->id);
}

int weir__account_check(const struct weir__account_call *call, struct weir_error *error)
{
    if (call->n < 1 || call->n > WEIR__ACCOUNT_ITEMS_MAX)
        return weir__fail(error, WEIR_INVALID, "1 to %d keys can be asked at once",
                          WEIR__ACCOUNT_ITEMS_MAX);
    for (size_t i = 0; i < call->n; i++) {
        const struct weir__account_item *it = &call->items[i];
        if (it->ask.cost < 0)
            return weir__fail(error, WEIR_INVALID, "the cost must not be negative");
        if (call->verb != WEIR__ACCOUNT_RESET && weir__plan_check_redis(it->plan, error) != WEIR_OK)
            return WEIR_INVALID;
    }
    if (weir__account_has_demand(call) &&
        (call->n != 1 || call->items[0].ask.cost < 1 || call->demand.len == 0))
        return weir__fail(error, WEIR_INVALID,
                          "a draw is from one key, of 1 unit at least, and has a key of demand");
    if (is_twice(call))
        return weir__fail(error, WEIR_INVALID, "the same key twice%s",
                          call->n > 1 ? "; use two, as {k}:minute and {k}:day" : "");
    return WEIR_OK;
}
