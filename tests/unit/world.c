/* world.c -- stands in for conn.c, loop.c, serve.c and event-log.c in a server without sockets. */
#include "unit/world.h"

void weir__conn_send(struct weir__conn *conn, const void *bytes, size_t len)
{
    weir__buffer_add(&world_of(conn)->sent, bytes, len);
}

void weir__conn_send_out(struct weir__conn *conn)
{
    weir__conn_send(conn, conn->loop->out.bytes, conn->loop->out.len);
    conn->loop->out.len = 0;
}

void weir__conn_end(struct weir__conn *conn)
{
    conn->ending = true;
}

void weir__conn_end_early(struct weir__conn *conn)
{
    conn->ending = conn->lingers = true;
}

void weir__conn_resume(struct weir__conn *conn)
{
    conn->held = false;
}

void weir__conn_watch(struct weir__conn *conn)
{
    (void)conn;
}

bool weir__loop_is_late(struct weir__loop *loop)
{
    (void)loop;
    return false;
}

bool weir__conn_offload(struct weir__conn *conn, void (*work)(void *context),
                        void (*done)(struct weir__conn *conn, void *context), void *context,
                        enum weir__role role)
{
    (void)role;
    struct world *w = world_of(conn);

    world_must(w->work == NULL && !conn->held,
               "one thing at a time is done elsewhere for a connection");
    w->work = work;
    w->done = done;
    w->context = context;
    conn->held = true;
    return true;
}

weir_time weir__server_now(const struct weir__server *server)
{
    return *server->test_clock;
}

void weir__server_set_clock(struct weir__server *server, weir_time now)
{
    *server->test_clock = now;
    server->tick(server, now);
}

/* A world logs no events. */
void weir__event_log_counts(const struct weir__event_log *event_log,
                            struct weir__event_log_counts *out)
{
    (void)event_log;
    (void)out;
}
