/* module.c -- nodes with Weir's module and without: who is asked how. */
#include "unit/redis-world.h"

#include "cluster/redis/client-private.h"

#define PROBE   "COMMAND INFO weir.take"
#define LOADED  "*1\r\n*1\r\n$9\r\nweir.take\r\n"
#define MISSING "*1\r\n*-1\r\n"
#define BY_SHA  "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 1 k x"

static struct weir__redis_script script;

/* An ask in both forms.  The module's words are kept by an ask that is never asked. */
static int ask_both(struct world *w)
{
    struct weir__redis_ask *module = new_ask(w, "WEIR.TAKE k 5/s"), *ask = new_ask(w, "1 k x");

    script = weir__redis_script("return 1", 8);
    ask->script = &script;
    ask->module = module->words;
    ask->n_module = module->n_words;
    weir__redis_client_ask(w->client, ask, w->now);
    weir__redis_client_turn(w->client, w->now);
    return w->n - 1;
}

TEST(test_D1_scripts_until_the_module_is_seen)
{
    OWN(world) *w = single_world();
    int first = ask_both(w);

    sends(w, "h:1", BY_SHA "; " PROBE);
    int second = ask_both(w);
    sends(w, "h:1", BY_SHA);
    tell(w, "h:1", ":1\r\n" LOADED ":2\r\n");
    is(w, first, IS_ANSWERED, ":1");
    is(w, second, IS_ANSWERED, ":2");
    int third = ask_both(w);
    sends(w, "h:1", "WEIR.TAKE k 5/s");
    tell(w, "h:1", ":3\r\n");
    is(w, third, IS_ANSWERED, ":3");
    assert_int_equal(weir__redis_client_waiting(w->client), 0);
}

/* One that asks once would never use it otherwise. */
TEST(test_D1_asks_that_wait_for_the_module)
{
    static const char *const answers[] = { LOADED, "-NOPERM no\r\n", "-BUSY x\r\n", MISSING,
                                           "-ERR x\r\n" };

    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        OWN(world) *w = single_world();
        w->client->options.module_first = true;
        int first = ask_both(w), second = ask_both(w);
        sends(w, "h:1", PROBE);
        tell(w, "h:1", answers[i]);
        sends(w, "h:1", i < 3 ? "WEIR.TAKE k 5/s; WEIR.TAKE k 5/s" : BY_SHA "; " BY_SHA);
        tell(w, "h:1", ":1\r\n:2\r\n");
        is(w, first, IS_ANSWERED, ":1");
        is(w, second, IS_ANSWERED, ":2");
        assert_int_equal(weir__redis_client_waiting(w->client), 0);
    }
}

/* The connection is lost meanwhile: the next one is asked again. */
TEST(test_D1_a_question_that_is_lost)
{
    OWN(world) *w = single_world();

    w->client->options.module_first = true;
    int n = ask_both(w);
    sends(w, "h:1", PROBE);
    lose(w, "h:1", "reset");
    pass(w, 10 * MS);
    greet(w, "h:1", WELCOME);
    sends(w, "h:1", PROBE);
    tell(w, "h:1", LOADED);
    sends(w, "h:1", "WEIR.TAKE k 5/s");
    tell(w, "h:1", ":1\r\n");
    is(w, n, IS_ANSWERED, ":1");
}

TEST(test_D1_one_probe_for_a_connection)
{
    OWN(world) *w = single_world();

    ask_both(w);
    sends(w, "h:1", BY_SHA "; " PROBE);
    tell(w, "h:1", ":1\r\n" MISSING);
    for (int i = 0; i < 3; i++) {
        int n = ask_both(w);
        sends(w, "h:1", BY_SHA);
        tell(w, "h:1", ":1\r\n");
        is(w, n, IS_ANSWERED, ":1");
    }
    lose(w, "h:1", "reset"); /* another server may be there by now */
    int n = ask_both(w);
    pass(w, 10 * MS);
    greet(w, "h:1", WELCOME);
    sends(w, "h:1", BY_SHA "; " PROBE);
    tell(w, "h:1", ":1\r\n" LOADED);
    is(w, n, IS_ANSWERED, ":1");
    ask_both(w);
    sends(w, "h:1", "WEIR.TAKE k 5/s");
}

/* The module was unloaded, or this user may not call it. */
TEST(test_D1_a_module_that_is_gone)
{
    static const char *const errors[] = { "-ERR unknown command 'WEIR.TAKE', with args\r\n",
                                          "-NOPERM this user has no permissions to run the "
                                          "'weir.take' command\r\n" };

    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        OWN(world) *w = single_world();
        ask_both(w);
        sends(w, "h:1", BY_SHA "; " PROBE);
        tell(w, "h:1", ":1\r\n" LOADED);
        int n = ask_both(w);
        sends(w, "h:1", "WEIR.TAKE k 5/s");
        tell(w, "h:1", errors[i]);
        sends(w, "h:1", BY_SHA);
        tell(w, "h:1", ":2\r\n");
        is(w, n, IS_ANSWERED, ":2");
        ask_both(w);
        sends(w, "h:1", BY_SHA);
    }
}

/* The first asks of a connection go by scripts, which this user may not call. */
TEST(test_D1_a_user_without_scripts)
{
    for (int loaded = 0; loaded < 2; loaded++) {
        OWN(world) *w = single_world();
        int first = ask_both(w), second = ask_both(w);
        sends(w, "h:1", BY_SHA "; " PROBE "; " BY_SHA);
        tell(w, "h:1", "-NOPERM evalsha\r\n");
        is(w, first, IS_WAITING, "");
        tell(w, "h:1", loaded ? LOADED : MISSING);
        tell(w, "h:1", "-NOPERM evalsha\r\n");
        is(w, second, loaded ? IS_WAITING : IS_ANSWERED, loaded ? "" : "-NOPERM");
        pass(w, 5 * MS);
        sends(w, "h:1", loaded ? "WEIR.TAKE k 5/s; WEIR.TAKE k 5/s" : BY_SHA);
        tell(w, "h:1", loaded ? ":1\r\n:1\r\n" : "-NOPERM evalsha\r\n");
        is(w, first, IS_ANSWERED, loaded ? ":1" : "-NOPERM");
        is(w, second, IS_ANSWERED, loaded ? ":1" : "-NOPERM");
    }
}

/* Asks on other keys go on by the module: this user may have no right to scripts. */
TEST(test_D1_a_key_that_is_not_for_this_user)
{
    static const char *const errors[] = {
        "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
        "-NOPERM No permissions to access a key\r\n"
    };

    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        OWN(world) *w = single_world();
        ask_both(w);
        sends(w, "h:1", BY_SHA "; " PROBE);
        tell(w, "h:1", ":1\r\n" LOADED);
        for (int turn = 0; turn < 2; turn++) {
            int n = ask_both(w);
            sends(w, "h:1", "WEIR.TAKE k 5/s");
            tell(w, "h:1", errors[i]);
            is(w, n, IS_ANSWERED, "-NOPERM");
        }
    }
}

/* This user may not call COMMAND: the module's own command tells, once for a connection. */
TEST(test_D1_a_probe_that_is_refused)
{
    OWN(world) *w = single_world();
    int n = ask_both(w);

    sends(w, "h:1", BY_SHA "; " PROBE);
    tell(w, "h:1", ":1\r\n-NOPERM no\r\n");
    is(w, n, IS_ANSWERED, ":1");
    n = ask_both(w);
    sends(w, "h:1", "WEIR.TAKE k 5/s");
    tell(w, "h:1", "-ERR unknown command 'WEIR.TAKE', with args\r\n");
    sends(w, "h:1", BY_SHA);
    tell(w, "h:1", ":2\r\n");
    is(w, n, IS_ANSWERED, ":2");
    ask_both(w);
    sends(w, "h:1", BY_SHA);
}

TEST(test_D1_asks_without_that_form_find_out_nothing)
{
    OWN(world) *w = single_world();

    ask(w, "GET a");
    sends(w, "h:1", "GET a");
}
