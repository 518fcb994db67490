/* ban-json.h -- bans as JSON, for `weir bans --table` and servers. */
#ifndef WEIR_SERVER_DESCRIBE_BAN_JSON_H
#define WEIR_SERVER_DESCRIBE_BAN_JSON_H

#include "server/base/buffer.h"
#include "weir-admin.h"

void weir__ban_json(struct weir__buffer *out, const struct weir_table *table,
                    const struct weir_ban *ban, weir_time now);

#endif
