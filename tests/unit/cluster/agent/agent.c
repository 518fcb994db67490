/* agent.c -- joining: what a fleet and its nodes can be called, how much one can weigh, and how
 * many there can be. */
#include "unit/test.h"

#include <string.h>

#include "unit/fixture.h"
#include "weir-fleet.h"

static int check(const char *name, const char *node, int64_t weight)
{
    struct weir_fleet_options o = { .name = name, .node = node, .weight = weight };
    struct weir_error error;

    return weir_fleet_options_check(&o, &error);
}

TEST(test_D4_names_and_weights_that_can_join)
{
    char longest[66];

    memset(longest, 'n', sizeof(longest));
    longest[64] = '\0';
    assert_int_equal(check(NULL, NULL, 0), WEIR_OK);
    assert_int_equal(check("shop.eu_1", longest, 1000000), WEIR_OK);
    longest[64] = 'n';
    longest[65] = '\0';
    assert_int_equal(check(NULL, longest, 1), WEIR_INVALID);
    assert_int_equal(check("", NULL, 1), WEIR_INVALID);
    assert_int_equal(check("a/b", NULL, 1), WEIR_INVALID);
    assert_int_equal(check(NULL, "two words", 1), WEIR_INVALID);
    assert_int_equal(check(NULL, NULL, -1), WEIR_INVALID);
    assert_int_equal(check(NULL, NULL, 1000001), WEIR_INVALID);
}

TEST(test_D5_numbers_of_nodes_that_can_be)
{
    struct weir_fleet_options none = { .nodes = 0 }, most = { .nodes = 1000000 },
                              too_many = { .nodes = 1000001 }, wrong = { .nodes = -1 };
    struct weir_error error;

    assert_int_equal(weir_fleet_options_check(&none, &error), WEIR_OK);
    assert_int_equal(weir_fleet_options_check(&most, &error), WEIR_OK);
    assert_int_equal(weir_fleet_options_check(&too_many, &error), WEIR_INVALID);
    assert_int_equal(weir_fleet_options_check(&wrong, &error), WEIR_INVALID);
}
