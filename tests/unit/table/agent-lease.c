/* agent-lease.c -- a host has one agent in a fleet, and what it has promised does not move back. */
#include "unit/test.h"

#include "table/agent-lease.h"
#include "unit/fixture.h"

#define LIFE WEIR_SECOND

static struct weir_table *table;

/* One at a time; another when it has not said so again for a lease, dead or stopped. */
TEST(test_the_agent_of_a_table)
{
    weir_time lease = (WEIR__AGENT_LEASE + 1) * WEIR__AGENT_TICK, now = NOW;

    table = private_table(false, 16);
    assert_true(weir__fleet_claim(table, 7, now));
    assert_false(weir__fleet_claim(table, 9, now));
    now += lease - WEIR__AGENT_TICK;
    assert_false(weir__fleet_claim(table, 9, now));
    assert_true(weir__fleet_claim(table, 7, now)); /* it says so again */
    now += lease;
    assert_true(weir__fleet_claim(table, 9, now));
    assert_false(weir__fleet_claim(table, 7, now)); /* it was stopped, and goes on */
    weir__fleet_yield(table, 7);                    /* not its own any more */
    assert_false(weir__fleet_claim(table, 7, now));
    weir__fleet_yield(table, 9);
    assert_true(weir__fleet_claim(table, 7, now));
    assert_true(weir__fleet_claim(table, 7, now - 10 * lease)); /* the clock stepped back */
    assert_true(weir__fleet_claim(table, 9, now));
    weir_table_destroy(table);
}

/* An agent that was stopped goes on with the time of then. */
TEST(test_until_does_not_move_backwards)
{
    table = private_table(false, 16);
    weir__fleet_renew(table, NOW + LIFE);
    weir__fleet_renew(table, NOW);
    assert_int_equal(weir__fleet_until(table), NOW + LIFE);
    weir__fleet_renew(table, INT64_MAX); /* damaged */
    weir__fleet_renew(table, NOW);
    assert_int_equal(weir__fleet_until(table), NOW);
    weir__fleet_renew(table, WEIR__FLEET_AWAY);
    assert_int_equal(weir__fleet_until(table), WEIR__FLEET_AWAY);
    weir_table_destroy(table);
}

TEST(test_a_fleet_is_forgotten_unless_there_is_an_agent)
{
    weir_time lease = (WEIR__AGENT_LEASE + 1) * WEIR__AGENT_TICK;

    table = private_table(false, 16);
    assert_true(weir__fleet_claim(table, 7, NOW));
    weir__fleet_renew(table, NOW + LIFE);
    weir__fleet_forget(table, NOW);
    assert_int_equal(weir__fleet_until(table), NOW + LIFE);
    weir__fleet_forget(table, NOW + lease);
    assert_int_equal(weir__fleet_until(table), 0);
    weir_table_destroy(table);
}
