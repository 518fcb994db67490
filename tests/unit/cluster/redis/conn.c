/* conn.c -- one connection on byte strings: the greeting in all its forms, replies in order. */
#include "unit/redis-world.h"

TEST(test_D1_greeting_logs_in)
{
    OWN(world) *w = world_of("redis://ann:pw@h:1/3");

    ask(w, "PING");
    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    sends(w, "h:1", "HELLO 3 AUTH ann pw SETNAME weir");
    tell(w, "h:1", WELCOME);
    sends(w, "h:1", "SELECT 3");
    tell(w, "h:1", "+OK\r\n");
    struct weir__redis_conn *conn = conn_to(w, "h:1");
    assert_int_equal(conn->phase, WEIR__REDIS_READY);
    assert_fields(conn->facts, (protocol, 3), (replica, false));
    assert_string_equal(conn->facts.version, "7.0.15");
    assert_string_equal(conn->facts.mode, "standalone");
    sends(w, "h:1", SLOTS);
}

/* Before 6.0, or a proxy. */
TEST(test_D1_greeting_of_an_old_server)
{
    OWN(world) *w = world_of("redis://:pw@h:1");

    ask(w, "PING");
    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    sends(w, "h:1", "HELLO 3 AUTH default pw SETNAME weir");
    tell(w, "h:1", "-ERR unknown command 'HELLO'\r\n");
    sends(w, "h:1", "AUTH pw");
    tell(w, "h:1", "+OK\r\n");
    assert_int_equal(conn_to(w, "h:1")->phase, WEIR__REDIS_READY);
}

TEST(test_D1_greeting_in_resp2)
{
    OWN(world) *w = world_of("redis://u:pw@h:1/1?protocol=2");

    ask(w, "PING");
    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    sends(w, "h:1", "AUTH u pw");
    tell(w, "h:1", "+OK\r\n");
    sends(w, "h:1", "SELECT 1");
    tell(w, "h:1", "+OK\r\n");
    sends(w, "h:1", SLOTS);
}

/* Nothing to say: it is ready at once. */
TEST(test_D1_no_greeting)
{
    OWN(world) *w = world_of("redis://h:1?protocol=2");

    ask(w, "PING");
    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    sends(w, "h:1", SLOTS);
}

/* A wrong password is told at once, not when the deadline comes; later it may be right. */
TEST(test_D1_wrong_password)
{
    OWN(world) *w = world_of("redis://:pw@h:1");
    int i = ask(w, "PING");

    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    tell(w, "h:1", "-WRONGPASS invalid username-password pair\r\n");
    is(w, i, IS_UNDONE, "WRONGPASS");
    assert_null(find_conn(w, "h:1", 0));
    i = ask(w, "PING");
    pass(w, 100 * MS);
    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    take(w, conn_to(w, "h:1"));
    tell(w, "h:1", WELCOME);
    sends(w, "h:1", SLOTS);
    tell(w, "h:1", NO_CLUSTER);
    sends(w, "h:1", "PING");
    tell(w, "h:1", "+PONG\r\n");
    is(w, i, IS_ANSWERED, "+PONG");
}

TEST(test_D1_database_that_is_not_there)
{
    OWN(world) *w = world_of("redis://h:1/99");
    int i = ask(w, "PING");

    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    tell(w, "h:1", WELCOME);
    tell(w, "h:1", "-ERR DB index is out of range\r\n");
    is(w, i, IS_UNDONE, "DB index");
}

/* Redis refuses it as it refuses asks: the connection is tried again, and they wait. */
TEST(test_D1_database_behind_a_slow_script)
{
    OWN(world) *w = world_of("redis://h:1/1");
    int i = ask(w, "PING");

    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    tell(w, "h:1", WELCOME);
    tell(w, "h:1", "-BUSY Redis is busy running a script.\r\n");
    is(w, i, IS_WAITING, "");
    pass(w, WEIR_SECOND);
    is(w, i, IS_UNDONE, "BUSY");
}

/* The password is needed, and there is none. */
TEST(test_D1_password_needed)
{
    OWN(world) *w = world_of("redis://h:1");
    int i = ask(w, "PING");

    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    tell(w, "h:1", "-NOAUTH HELLO must be called with the client already authenticated\r\n");
    is(w, i, IS_UNDONE, "it wants a password (NOAUTH)");
    assert_null(find_conn(w, "h:1", 0));
}

/* Nothing was done, and its back-off grows as if nobody listened. */
TEST(test_D1_a_server_that_is_full)
{
    static const char *const full[] = { "-ERR max number of clients reached\r\n",
                                        "-ERR max number of clients + cluster connections "
                                        "reached\r\n" };

    OWN(world) *w = world_of("redis://h:1");
    int i = ask(w, "PING"), tries = 0;

    for (int ms = 0; ms < 1000; ms++) {
        if (find_conn(w, "h:1", 0)) {
            weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
            tell(w, "h:1", full[tries % 2]);
            assert_null(find_conn(w, "h:1", 0));
            tries++;
        }
        pass(w, MS);
    }
    is(w, i, IS_UNDONE, "as many clients as it may have");
    assert_in_range(tries, 4, 14);
}

/* There is no greeting in which it could say so. */
TEST(test_D1_a_server_that_is_full_in_resp2)
{
    OWN(world) *w = world_of("redis://h:1?protocol=2");
    int i = ask(w, "PING"), tries = 0;

    for (int ms = 0; ms < 1000; ms++) {
        if (find_conn(w, "h:1", 0)) {
            weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
            sends(w, "h:1", SLOTS);
            tell(w, "h:1", "-ERR max number of clients reached\r\n");
            lose(w, "h:1", "it ended the connection");
            tries++;
        }
        pass(w, MS);
    }
    is(w, i, IS_UNDONE, "clients");
    assert_in_range(tries, 2, 30);
}

TEST(test_D1_protected_mode)
{
    OWN(world) *w = world_of("redis://h:1");
    int i = ask(w, "PING");

    weir__redis_client_opened(w->client, conn_to(w, "h:1"), w->now);
    tell(w, "h:1", "-DENIED Redis is running in protected mode\r\n");
    is(w, i, IS_UNDONE, "DENIED");
}

TEST(test_D1_replies_in_order)
{
    OWN(world) *w = single_world();
    int a = ask(w, "GET a"), b = ask(w, "GET b"), c = ask(w, "GET c");

    sends(w, "h:1", "GET a; GET b; GET c"); /* one write */
    tell(w, "h:1", "$1\r\nA\r\n$1\r");
    is(w, a, IS_ANSWERED, "$1");
    is(w, b, IS_WAITING, "");
    tell(w, "h:1", "\nB\r\n>2\r\n+invalidate\r\n_\r\n:3\r\n"); /* a push is no reply */
    is(w, b, IS_ANSWERED, "$1");
    is(w, c, IS_ANSWERED, ":3");
}

/* What Redis never sends ends the connection: nobody knows any longer what is whose. */
TEST(test_D1_nonsense)
{
    OWN(world) *w = single_world();
    int i = ask(w, "GET a");

    take(w, conn_to(w, "h:1"));
    tell(w, "h:1", "HTTP/1.1 400 Bad Request\r\n");
    is(w, i, IS_UNKNOWN, "this is not an answer of a Redis server");
    pass(w, 5 * MS);
    assert_null(find_conn(w, "h:1", 0)); /* nobody needs it */
}

TEST(test_D1_reply_to_no_command)
{
    OWN(world) *w = single_world();

    tell(w, "h:1", "+OK\r\n");
    assert_null(find_conn(w, "h:1", 0));
}

/* An answer after the deadline is thrown away, and the next is still the next ask's. */
TEST(test_D1_late_reply)
{
    OWN(world) *w = single_world();
    w->timeout = 100 * MS;
    int late = ask(w, "GET a");

    take(w, conn_to(w, "h:1"));
    pass(w, 100 * MS);
    is(w, late, IS_UNKNOWN, "h:1 did not answer in time");
    int next = ask(w, "GET b");
    tell(w, "h:1", "+late\r\n+next\r\n");
    is(w, next, IS_ANSWERED, "+next");
}

/* A server that stands still is left after a second; whoever asked was answered in time. */
TEST(test_D1_stall)
{
    OWN(world) *w = single_world();
    struct weir__redis_conn *conn = conn_to(w, "h:1");
    w->timeout = 10 * WEIR_SECOND;
    int i = ask(w, "GET a");

    take(w, conn);
    pass(w, 999 * MS);
    assert_int_equal(conn->phase, WEIR__REDIS_READY);
    pass(w, MS);
    assert_int_not_equal(conn->phase, WEIR__REDIS_READY);
    is(w, i, IS_UNKNOWN, "stopped answering");
}

/* Bytes of another reply are a sign of life. */
TEST(test_D1_slow_is_no_stall)
{
    OWN(world) *w = single_world();
    w->timeout = 10 * WEIR_SECOND;
    int a = ask(w, "GET a"), b = ask(w, "GET b");

    take(w, conn_to(w, "h:1"));
    pass(w, 900 * MS);
    tell(w, "h:1", "+1\r\n");
    pass(w, 900 * MS);
    tell(w, "h:1", "+2\r\n");
    is(w, a, IS_ANSWERED, "+1");
    is(w, b, IS_ANSWERED, "+2");
}

TEST(test_D1_idle_connections_are_pinged)
{
    OWN(world) *w = single_world();

    sends(w, "h:1", "");
    pass(w, 10 * WEIR_SECOND);
    sends(w, "h:1", "PING");
    tell(w, "h:1", "+PONG\r\n");
    pass(w, 10 * WEIR_SECOND);
    sends(w, "h:1", "PING");
    pass(w, WEIR_SECOND);
    assert_null(find_conn(w, "h:1", 0));
}

/* No answer to the greeting, as of a stopped process whose kernel still accepts. */
TEST(test_D1_greeting_takes_too_long)
{
    OWN(world) *w = world_of("redis://h:1");
    w->timeout = 3 * WEIR_SECOND;
    int i = ask(w, "PING");
    struct weir__redis_conn *conn = conn_to(w, "h:1");
    uint32_t life = conn->life;

    weir__redis_client_opened(w->client, conn, w->now);
    pass(w, 1100 * MS);
    assert_int_not_equal(conn->life, life); /* it tries again */
    is(w, i, IS_WAITING, "");
    pass(w, 1900 * MS);
    is(w, i, IS_UNDONE, "");
    assert_int_equal(w->answered[i], w->asks[i].deadline);
}

/* What was not handed to the network has not been done, and is sent again. */
TEST(test_D1_lost_before_it_was_written)
{
    OWN(world) *w = single_world();
    int a = ask(w, "GET a"), b = ask(w, "GET b");
    struct weir__redis_conn *conn = conn_to(w, "h:1");

    weir__redis_client_wrote(w->client, conn, conn->out.len - 1); /* all but a byte of b */
    lose(w, "h:1", "reset by peer");
    is(w, a, IS_UNKNOWN, "reset by peer");
    is(w, b, IS_WAITING, "");
    pass(w, 5 * MS);
    greet(w, "h:1", WELCOME);
    sends(w, "h:1", "GET b");
    tell(w, "h:1", "+1\r\n");
    is(w, b, IS_ANSWERED, "+1");
}

TEST(test_D1_repeatable_asks_are_sent_again)
{
    OWN(world) *w = single_world();
    struct weir__redis_ask *ask = new_ask(w, "TAKE id");

    ask->repeatable = true;
    weir__redis_client_ask(w->client, ask, w->now);
    take(w, conn_to(w, "h:1"));
    lose(w, "h:1", "reset by peer");
    pass(w, 5 * MS);
    greet(w, "h:1", WELCOME);
    sends(w, "h:1", "TAKE id");
    lose(w, "h:1", "reset by peer");
    pass(w, WEIR_SECOND);
    is(w, 1, IS_UNKNOWN, ""); /* not undone: it may have been done twice over */
}
