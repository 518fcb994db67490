/* forget.c -- a key of a limiter is fresh again, whatever it has used.
 *
 * All zeros is a fresh state, so that is what is written, at the group's desk.  Not weir_give of
 * everything: a window that has begun would go on, and a key that was warm would stay so.
 */
#include <string.h>

#include "table/slot.h"

bool weir_forget(struct weir_limiter *limiter, struct weir_key key, weir_time now)
{
    struct weir__home home = weir__home_of(limiter, key);
    static const uint64_t fresh[2] = { 0, 0 };
    bool was = false;

    weir__desk_lock(limiter->table, weir__desk_of(home.group));
    if (limiter->kind == WEIR__LARGE) {
        struct weir__large *slot = weir__large_find_locked(limiter, home);
        const struct weir_plan *plan = &weir__limiter_era(limiter)->plan;
        if (slot != NULL) {
            was = weir_step_idle_at(plan, slot->state) > now;
            memset(slot->state, 0, plan->state_size);
        }
    } else {
        void *slot = weir__slot_find(limiter, home);
        uint64_t state[2];
        if (slot != NULL) {
            const struct weir__era *era = weir__slot_open_locked(limiter, slot, now, state);
            was = weir_step_idle_at(&era->plan, state) > now;
            weir__slot_close_locked(limiter, era, slot, fresh);
        }
    }
    weir__desk_unlock(limiter->table, weir__desk_of(home.group));
    return was;
}
