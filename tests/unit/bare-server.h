/* bare-server.h -- a server of two loops that do not run: table, engine, events and top lists.  For
 * tests of the parts that count and report. */
#ifndef WEIR_TESTS_UNIT_BARE_SERVER_H
#define WEIR_TESTS_UNIT_BARE_SERVER_H

#include "requests.h"

#include "server/serve/events/top-keys.h"
#include "server/serve/serve.h"

static struct weir__loop loops[2];
static struct weir__server server;

static inline void open_server(struct weir_table *table)
{
    struct weir_error error = { 0 };

    memset(loops, 0, sizeof(loops));
    server = (struct weir__server){ .table = table,
                                    .engine = engine_on(table),
                                    .events = weir__events_create(),
                                    .loops = loops,
                                    .n_loops = COUNT_OF(loops) };
    assert_non_null(server.events);
    if (weir__top_create(&server.top, COUNT_OF(loops), 100, &error) != WEIR_OK)
        fail_msg("%s", error.text);
}

static inline void close_server(void)
{
    weir__top_destroy(server.top);
    weir__events_destroy(server.events);
    weir_destroy(server.engine);
    weir_table_destroy(server.table);
}

#endif
