/* agent.c -- joining: what a fleet and its nodes can be called, how much one can weigh, how many
 * there can be, and which engines can. */
#include "unit/test.h"

#include <string.h>

#include "engine/engine.h"
#include "engine/fleet-host.h"
#include "unit/requests.h"
#include "weir-fleet.h"

static int check_options(const char *name, const char *node, int64_t weight)
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
    assert_int_equal(check_options(NULL, NULL, 0), WEIR_OK);
    assert_int_equal(check_options("shop.eu_1", longest, 1000000), WEIR_OK);
    longest[64] = 'n';
    longest[65] = '\0';
    assert_int_equal(check_options(NULL, longest, 1), WEIR_INVALID);
    assert_int_equal(check_options("", NULL, 1), WEIR_INVALID);
    assert_int_equal(check_options("a/b", NULL, 1), WEIR_INVALID);
    assert_int_equal(check_options(NULL, "two words", 1), WEIR_INVALID);
    assert_int_equal(check_options(NULL, NULL, -1), WEIR_INVALID);
    assert_int_equal(check_options(NULL, NULL, 1000001), WEIR_INVALID);
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

/* Its structs may be others, though it has the same functions. */
TEST(test_D3_an_engine_of_another_version_cannot_join)
{
    struct weir *weir = engine_of(RULES("- { name: all, limit: 10/1m, across: fleet }\n"));
    const struct weir__host *own = weir->host;
    struct weir__host other = *own;
    struct weir_fleet *fleet;
    struct weir_error error;

    other.size = sizeof(other);
    weir->host = &other;
    assert_int_equal(weir_fleet_join(&fleet, weir, "redis://127.0.0.1:1", NULL, &error),
                     WEIR_INVALID);
    assert_non_null(strstr(error.text, "two versions"));
    weir->host = own;
    weir_destroy(weir);
}
