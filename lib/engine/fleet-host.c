/* fleet-host.c -- the functions of this copy of the library, for the agent of a host. */
#include "engine/fleet-host.h"

#include "engine/engine.h"
#include "table/holders.h"
#include "table/purses.h"

const struct weir__host weir__host = {
    .size = WEIR__HOST_SIZE,
    .now = weir_table_now,
    .holder = weir__holder_me,
    .check = weir_check_key,
    .check_alone = weir__check_alone,
    .enter = weir__check_enter_alone,
    .dues = weir__dues,
    .limit_next = weir__across_next,
    .generation = weir__across_generation,
    .part_set = weir__fleet_part_set,
    .use = weir__limiter_use,
    .release = weir_limiter_release,
    .take = weir_take,
    .peek = weir_peek,
    .empty = weir__share_empty,
    .fill = weir__purse_fill,
    .close = weir__purse_close,
    .reset = weir_reset,
    .ban_places = weir__ban_places,
    .ban_read = weir__ban_read,
    .ban_learn = weir__bans_learn,
};
