/* account-asks.c -- asks on accounts, carried by the client: by scripts and by the module, and
 * lost. */
#include "unit/redis-world.h"

#include "cluster/redis/account-asks.h"

struct carried {
    struct weir__carry carry;
    struct weir__account_item item;
    struct weir_plan plan;
    int outcome; /* IS_... */
    char why[120];
};

static void note_carried(struct weir__carry *carry, enum weir__redis_outcome outcome,
                         const char *why)
{
    struct carried *c = carry->context;

    assert_int_equal(c->outcome, IS_WAITING); /* once */
    c->outcome = (int)outcome;
    snprintf(c->why, sizeof(c->why), "%s", why ? why : "");
}

static void carry(struct world *w, struct carried *c, enum weir__account_verb verb,
                  const char *limit, const char *id)
{
    struct weir_limit parsed;

    assert_int_equal(weir_limit_parse(&parsed, limit, NULL), WEIR_OK);
    *c = (struct carried){ .outcome = IS_WAITING };
    assert_int_equal(weir__plan_make(&c->plan, &parsed, NULL), WEIR_OK);
    c->item =
        (struct weir__account_item){ .key = { "k", 1 }, .plan = &c->plan, .ask = { .cost = 1 } };
    c->carry = (struct weir__carry){
        .call = { .verb = verb, .items = &c->item, .n = 1, .id = { id, strlen(id) } },
        .deadline = w->now + w->timeout,
        .done = note_carried,
        .context = c,
    };
    weir__carry_begin(&c->carry, w->client, w->now);
    weir__redis_client_turn(w->client, w->now);
}

static const char *sent(struct world *w)
{
    return take(w, conn_to(w, "h:1"));
}

/* A server that is known to have the module. */
static struct world *module_world(void)
{
    struct world *w = single_world();
    struct carried c;

    carry(w, &c, WEIR__ACCOUNT_PEEK, "5/s", "");
    assert_non_null(strstr(sent(w), "COMMAND INFO weir.take"));
    tell(w, "h:1", "*2\r\n:1000000\r\n$-1\r\n*1\r\n*1\r\n$9\r\nweir.take\r\n");
    assert_int_equal(c.outcome, IS_ANSWERED);
    assert_int_equal(c.item.decision.remaining, 4);
    weir__carry_free(&c.carry);
    return w;
}

TEST(test_D1_carried_by_the_module)
{
    OWN(world) *w = module_world();
    struct carried c;

    carry(w, &c, WEIR__ACCOUNT_TAKE, "5/s", "");
    assert_string_equal(sent(w), "WEIR.TAKE k token-bucket 5/1s COST 1 NS");
    tell(w, "h:1", "*6\r\n:1\r\n:5\r\n:4\r\n:-1\r\n:200000000\r\n:0\r\n");
    assert_int_equal(c.outcome, IS_ANSWERED);
    assert_true(c.item.decision.allowed);
    assert_int_equal(c.item.decision.remaining, 4);
    weir__carry_free(&c.carry);
    carry(w, &c, WEIR__ACCOUNT_TAKE, "5/s", "i");
    assert_string_equal(sent(w), "WEIR.TAKE k token-bucket 5/1s COST 1 NS ID i KEEP 10000");
    tell(w, "h:1", "-OOM command not allowed\r\n");
    assert_int_equal(c.outcome, IS_UNDONE);
    assert_non_null(strstr(c.why, "OOM"));
    weir__carry_free(&c.carry);
}

/* A module of another version perhaps: it may have been charged. */
TEST(test_D1_a_reply_that_makes_no_sense_is_unknown)
{
    OWN(world) *w = module_world();
    struct carried c;

    carry(w, &c, WEIR__ACCOUNT_TAKE, "5/s", "");
    sent(w);
    tell(w, "h:1", "*7\r\n:1\r\n:5\r\n:4\r\n:-1\r\n:200000000\r\n:0\r\n:0\r\n");
    assert_int_equal(c.outcome, IS_UNKNOWN);
    assert_non_null(strstr(c.why, "makes no sense"));
    weir__carry_free(&c.carry);
    carry(w, &c, WEIR__ACCOUNT_PEEK, "5/s", "");
    sent(w);
    tell(w, "h:1", "+OK\r\n");
    assert_int_equal(c.outcome, IS_UNDONE);
    weir__carry_free(&c.carry);
}

/* Once that is known, the module's form is not even made. */
TEST(test_D1_carried_by_scripts_where_the_module_is_not)
{
    OWN(world) *w = single_world();
    struct carried c, again;

    carry(w, &c, WEIR__ACCOUNT_PEEK, "5/s", "");
    assert_true(c.carry.call.n_command > 0);
    assert_non_null(strstr(sent(w), "COMMAND INFO weir.take"));
    tell(w, "h:1", "*2\r\n:1000000\r\n$-1\r\n*1\r\n$-1\r\n");
    weir__carry_free(&c.carry);
    carry(w, &c, WEIR__ACCOUNT_TAKE, "5/s", "");
    assert_int_equal(c.carry.call.n_command, 0);
    assert_non_null(strstr(sent(w), "EVALSHA"));
    lose(w, "h:1", "reset");
    weir__carry_free(&c.carry);
    pass(w, 10 * MS);
    carry(w, &c, WEIR__ACCOUNT_TAKE, "5/s", "");
    greet(w, "h:1", WELCOME); /* another server perhaps */
    assert_non_null(strstr(sent(w), "EVALSHA"));
    carry(w, &again, WEIR__ACCOUNT_TAKE, "5/s", "");
    assert_true(again.carry.call.n_command > 0);
    lose(w, "h:1", "reset");
    weir__carry_free(&c.carry);
    weir__carry_free(&again.carry);
}

/* Whatever script it would have begun with: the module's command may have been carried out. */
TEST(test_D1_a_lost_command_of_the_module_is_unknown)
{
    static const char *const limits[] = { "5/s", "smooth 5/s" };

    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        OWN(world) *w = module_world();
        struct carried c;
        carry(w, &c, WEIR__ACCOUNT_TAKE, limits[i], "");
        assert_non_null(strstr(sent(w), "WEIR.TAKE"));
        lose(w, "h:1", "reset");
        assert_int_equal(c.outcome, IS_UNKNOWN);
        weir__carry_free(&c.carry);
    }
}

TEST(test_D1_with_an_id_it_is_sent_again)
{
    OWN(world) *w = module_world();
    struct carried c;

    carry(w, &c, WEIR__ACCOUNT_TAKE, "smooth 5/s", "i");
    assert_non_null(strstr(sent(w), "WEIR.TAKE"));
    lose(w, "h:1", "reset");
    assert_int_equal(c.outcome, IS_WAITING);
    pass(w, 10 * MS);
    greet(w, "h:1", WELCOME);
    assert_non_null(strstr(sent(w), "EVALSHA")); /* another server perhaps */
    pass(w, WEIR_SECOND);
    assert_int_equal(c.outcome, IS_UNKNOWN); /* it was sent once */
    weir__carry_free(&c.carry);
}

#define NOTHING "*3\r\n:1000000\r\n$-1\r\n$-1\r\n" /* neither account nor receipt */

/* The write was lost and has happened: its repeat finds that out, and then Redis falls silent. */
TEST(test_D1_a_lost_write_stays_unknown)
{
    OWN(world) *w = single_world();
    struct carried c;

    carry(w, &c, WEIR__ACCOUNT_TAKE, "smooth 5/s", "i");
    assert_non_null(strstr(sent(w), "EVALSHA"));
    tell(w, "h:1", NOTHING "*1\r\n*-1\r\n");
    assert_non_null(strstr(sent(w), "EVALSHA")); /* swap.lua */
    lose(w, "h:1", "reset");
    pass(w, 10 * MS);
    greet(w, "h:1", WELCOME);
    assert_non_null(strstr(sent(w), "EVALSHA")); /* again */
    tell(w, "h:1", ":0\r\n*1\r\n*-1\r\n");
    assert_non_null(strstr(sent(w), "EVALSHA")); /* read.lua */
    pass(w, WEIR_SECOND);
    assert_int_equal(c.outcome, IS_UNKNOWN);
    weir__carry_free(&c.carry);
}

/* Only read so far: nothing can have happened. */
TEST(test_D1_a_lost_look_is_undone)
{
    OWN(world) *w = single_world();
    struct carried c;

    w->timeout = 100 * MS;
    carry(w, &c, WEIR__ACCOUNT_TAKE, "smooth 5/s", "");
    assert_non_null(strstr(sent(w), "EVALSHA"));
    pass(w, 100 * MS);
    assert_int_equal(c.outcome, IS_UNDONE);
    weir__carry_free(&c.carry);
}

/* As often as there is time for, but with rests: the others may be many. */
TEST(test_D1_a_write_that_others_outrun)
{
    OWN(world) *w = single_world();
    struct carried c;
    int losses = 0;

    carry(w, &c, WEIR__ACCOUNT_TAKE, "smooth 5/s", "");
    for (; c.outcome == IS_WAITING; losses++) {
        assert_non_null(strstr(sent(w), "EVALSHA"));
        tell(w, "h:1",
             losses == 0 ? "*2\r\n:1000000\r\n$-1\r\n*1\r\n*-1\r\n"
                         : "*2\r\n:1000000\r\n$-1\r\n"); /* read.lua */
        assert_non_null(strstr(sent(w), "EVALSHA"));
        tell(w, "h:1", ":0\r\n"); /* swap.lua */
        if (losses >= 3) {
            assert_string_equal(sent(w), "");
            pass(w, 32 * MS);
        }
    }
    assert_in_range(losses, 30, 40);
    assert_int_equal(c.outcome, IS_UNDONE);
    assert_string_equal(c.why, WEIR__REDIS_OUTRUN);
    weir__carry_free(&c.carry);
}

/* Nobody else is there: what was read came when it was too late to write. */
TEST(test_D1_a_look_that_comes_late)
{
    OWN(world) *w = single_world();
    struct carried c;

    carry(w, &c, WEIR__ACCOUNT_TAKE, "smooth 5/s", "");
    assert_non_null(strstr(sent(w), "EVALSHA"));
    w->now += w->timeout;
    tell(w, "h:1", "*2\r\n:1000000\r\n$-1\r\n*1\r\n*-1\r\n");
    assert_int_equal(c.outcome, IS_UNDONE);
    assert_string_equal(c.why, "Redis did not answer in time");
    weir__carry_free(&c.carry);
}

TEST(test_D1_asks_that_make_no_sense_are_undone)
{
    OWN(world) *w = single_world();
    struct carried c;

    carry(w, &c, WEIR__ACCOUNT_DRAW, "5/s", ""); /* without a key of demand */
    assert_int_equal(c.outcome, IS_UNDONE);
    weir__carry_free(&c.carry);
}
