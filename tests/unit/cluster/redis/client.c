/* client.c -- asks and their ends: deadlines, scripts, errors that pass, crowds. */
#include "unit/redis-world.h"

TEST(test_D1_no_server)
{
    OWN(world) *w = world_of("redis://h:1");
    int i = ask(w, "GET a");

    lose(w, "h:1", "connection refused");
    pass(w, 999 * MS);
    is(w, i, IS_WAITING, "");
    while (find_conn(w, "h:1", 0))
        lose(w, "h:1", "connection refused");
    pass(w, MS);
    is(w, i, IS_UNDONE, "connection refused");
}

TEST(test_D1_too_late_when_it_comes)
{
    OWN(world) *w = single_world();

    w->timeout = 0;
    is(w, ask(w, "GET a"), IS_UNDONE, "over before it began");
    sends(w, "h:1", "");
}

/* How often a client connects in a minute to a server that ends every connection. */
static int reconnections(const char *greeting)
{
    OWN(world) *w = world_of("redis://h:1");
    int tries = 0;

    w->timeout = 60 * WEIR_SECOND;
    ask(w, "GET a");
    for (int i = 0; i < 60000; i++) {
        if (find_conn(w, "h:1", 0)) {
            if (greeting)
                greet(w, "h:1", greeting);
            lose(w, "h:1", "it ended the connection");
            tries++;
        }
        pass(w, MS);
    }
    return tries;
}

TEST(test_D1_reconnections_back_off)
{
    /* One or two a second, after some quick ones */
    assert_in_range(reconnections(NULL), 40, 140);
    /* It lets everybody in and answers nobody */
    assert_in_range(reconnections(WELCOME), 40, 140);
}

TEST(test_D1_scripts_by_name)
{
    OWN(world) *w = single_world();
    struct weir__redis_script script = weir__redis_script("return 1", 8);
    struct weir__redis_ask *ask = new_ask(w, "1 k x");

    ask->script = &script;
    weir__redis_client_ask(w->client, ask, w->now);
    sends(w, "h:1", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 1 k x");
    tell(w, "h:1", "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    sends(w, "h:1", "EVAL return 1 1 k x");
    tell(w, "h:1", ":1\r\n");
    is(w, 1, IS_ANSWERED, ":1");
    assert_int_equal(weir__redis_client_counts(w->client).scripts_sent, 1);
}

/* A server that knows no script at all must not be asked for ever. */
TEST(test_D1_scripts_twice_unknown)
{
    OWN(world) *w = single_world();
    struct weir__redis_script script = weir__redis_script("x", 1);
    struct weir__redis_ask *ask = new_ask(w, "0");

    ask->script = &script;
    weir__redis_client_ask(w->client, ask, w->now);
    tell(w, "h:1", "-NOSCRIPT\r\n");
    tell(w, "h:1", "-NOSCRIPT\r\n");
    is(w, 1, IS_ANSWERED, "-NOSCRIPT");
}

/* Without a script it is an answer like any other. */
TEST(test_D1_errors_are_answers)
{
    static const char *const errors[] = { "-NOSCRIPT x\r\n",      "-ERR x\r\n",       "-OOM x\r\n",
                                          "-NOPERM x\r\n",        "-WRONGTYPE x\r\n", "-MOVED\r\n",
                                          "-MOVED 99999 a:1\r\n", "-ASK 1 :\r\n" };

    OWN(world) *w = single_world();

    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        int n = ask(w, "GET a");
        take(w, conn_to(w, "h:1"));
        tell(w, "h:1", errors[i]);
        is(w, n, IS_ANSWERED, "-");
    }
}

TEST(test_D1_errors_that_pass)
{
    static const char *const errors[] = { "-LOADING x\r\n", "-BUSY x\r\n", "-TRYAGAIN x\r\n",
                                          "-MASTERDOWN x\r\n", "-CLUSTERDOWN x\r\n" };

    OWN(world) *w = single_world();

    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        int n = ask(w, "GET a");
        sends(w, "h:1", "GET a");
        tell(w, "h:1", errors[i]);
        sends(w, "h:1", "");
        pass(w, 5 * MS);
        sends(w, "h:1", "GET a");
        tell(w, "h:1", "+1\r\n");
        is(w, n, IS_ANSWERED, "+1");
    }
}

/* A master that was deposed, and its name means another host by now: connections look the name up
 * again.  Replies that are due are waited for. */
TEST(test_D1_a_read_only_server_is_left)
{
    OWN(world) *w = single_world();
    int a = ask(w, "SET a 1"), b = ask(w, "GET b");

    sends(w, "h:1", "SET a 1; GET b");
    tell(w, "h:1", "-READONLY x\r\n");
    is(w, a, IS_WAITING, "");
    int c = ask(w, "GET c");
    sends(w, "h:1", "");
    tell(w, "h:1", "$1\r\nB\r\n");
    is(w, b, IS_ANSWERED, "$1");
    assert_null(find_conn(w, "h:1", 0));
    pass(w, 100 * MS);
    greet(w, "h:1", WELCOME);
    sends(w, "h:1", "GET c; SET a 1");
    tell(w, "h:1", "$1\r\nC\r\n+OK\r\n");
    is(w, c, IS_ANSWERED, "$1");
    is(w, a, IS_ANSWERED, "+OK");
}

/* Redis 6 says so from within a script. */
TEST(test_D1_read_only_inside_a_script)
{
    OWN(world) *w = single_world();
    int a = ask(w, "SET a 1"), b = ask(w, "SET b 1");

    sends(w, "h:1", "SET a 1; SET b 1");
    tell(w, "h:1",
         "-ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -READONLY You "
         "can't write against a read only replica.\r\n");
    is(w, a, IS_WAITING, "");
    tell(w, "h:1", "-ERR Error running script (call to f_0): @user_script:9: -OOM x\r\n");
    is(w, b, IS_ANSWERED, "-ERR Error running script");
    assert_null(find_conn(w, "h:1", 0));
}

/* However many ask: it is not connected to again and again. */
TEST(test_D1_a_server_that_stays_read_only)
{
    OWN(world) *w = single_world();
    int lives = 0;

    w->timeout = 30 * WEIR_SECOND;
    int i = ask(w, "SET a 1");
    while (w->outcome[i] == IS_WAITING) {
        struct weir__redis_conn *conn = find_conn(w, "h:1", 0);
        if (conn && conn->phase == WEIR__REDIS_OPENING) {
            greet(w, "h:1", WELCOME);
            lives++;
        }
        conn = find_conn(w, "h:1", 0);
        if (conn && *take(w, conn))
            tell(w, "h:1", "-READONLY x\r\n");
        pass(w, MS);
    }
    is(w, i, IS_UNDONE, "read-only");
    assert_in_range(lives, 20, 70);
}

/* Not for ever: the rests grow, and at the deadline it is certain that nothing was done. */
TEST(test_D1_loading_until_the_deadline)
{
    OWN(world) *w = single_world();
    int i = ask(w, "GET a"), tries = 0;

    for (int ms = 0; ms < 1000; ms++) {
        if (*take(w, conn_to(w, "h:1"))) {
            tell(w, "h:1", "-LOADING Redis is loading the dataset in memory\r\n");
            tries++;
        }
        is(w, i, IS_WAITING, "");
        pass(w, MS);
    }
    is(w, i, IS_UNDONE, "LOADING");
    assert_in_range(tries, 6, 12);
}

/* A second connection comes when the first is crowded, and takes its part. */
TEST(test_D1_pool)
{
    OWN(world) *w = single_world();

    for (int i = 0; i < 66; i++)
        ask(w, "GET a");
    greet(w, "h:1", WELCOME);
    ask(w, "GET b");
    assert_string_equal(take(w, find_conn(w, "h:1", 1)), "GET b");
    for (int i = 0; i < 100; i++)
        ask(w, "GET a");
    assert_null(find_conn(w, "h:1", 2));
}

TEST(test_D1_too_many_asks)
{
    struct weir__redis_options options = { .asks_max = 3 };

    OWN(world) *w = world_of("redis://h:1");

    weir__redis_client_destroy(w->client);
    assert_ok(weir__redis_url_parse(&options.url, "redis://h:1", NULL));
    assert_ok(weir__redis_client_create(&w->client, &options, NULL));
    for (int i = 0; i < 3; i++)
        weir__redis_client_ask(w->client, new_ask(w, "GET a"), w->now);
    weir__redis_client_ask(w->client, new_ask(w, "GET a"), w->now);
    is(w, 3, IS_UNDONE, "too many");
    is(w, 2, IS_WAITING, "");
}

TEST(test_D1_cancelled)
{
    OWN(world) *w = single_world();
    int sent = ask(w, "GET a");

    take(w, conn_to(w, "h:1"));
    weir__redis_client_cancel(w->client, &w->asks[sent]);
    is(w, sent, IS_UNKNOWN, "cancelled");
    int next = ask(w, "GET b");
    tell(w, "h:1", "+a\r\n+b\r\n");
    is(w, next, IS_ANSWERED, "+b");
}

/* Each ask is answered at the end too. */
TEST(test_D1_the_end)
{
    OWN(world) *w = single_world();
    struct weir__redis_client *other;
    struct weir__redis_options options = { .jitter = 1 };
    int sent = ask(w, "GET a");

    assert_ok(weir__redis_url_parse(&options.url, "redis://h:1", NULL));
    assert_ok(weir__redis_client_create(&other, &options, NULL));
    weir__redis_client_destroy(w->client);
    w->client = other;
    is(w, sent, IS_UNKNOWN, "ending");
}

/* Out of many asks each gets its end at its own deadline, in whatever order they came. */
TEST(test_D1_deadlines)
{
    OWN(world) *w = single_world();
    static const int ms[] = { 70, 10, 30, 90, 20, 50, 40, 80, 60, 10, 90, 30 };

    for (size_t i = 0; i < COUNT_OF(ms); i++) {
        w->timeout = ms[i] * MS;
        ask(w, "GET a");
    }
    pass(w, 100 * MS);
    for (int i = 1; i < w->n; i++)
        assert_int_equal(w->answered[i], w->asks[i].deadline);
}
