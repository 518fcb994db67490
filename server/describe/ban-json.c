/* ban-json.c -- bans as JSON. */
#include "server/describe/ban-json.h"

void weir__ban_json(struct weir__buffer *out, const struct weir_table *table,
                    const struct weir_ban *ban, weir_time now)
{
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member(out, "rule", ban->rule);
    weir__buffer_member(out, "key", ban->key);
    weir__buffer_member_moment(out, "since", weir_table_real(table, ban->since));
    weir__buffer_member_moment(out, "until", weir_table_real(table, ban->until));
    weir__buffer_member_ms(out, "left_ms", ban->until > now ? ban->until - now : 0);
    weir__buffer_member_number(out, "strikes", ban->strikes);
    weir__buffer_close(out, "}");
}
