/* schema.c -- the schema has the words that the library has; that it is a schema and agrees with
 * the reader, tests/e2e/schema.py shows. */
#include "unit/test.h"

#include "match/draft.h"
#include "table/layout.h"
#include "wire/json.h"

static const char *schema(void)
{
    static char text[65536];
    int len = weir_rules_schema(text, sizeof(text));

    assert_int_equal(len, strlen(text));
    assert_int_equal(weir_rules_schema(NULL, 0), len);
    return text;
}

static void assert_has(const char *word)
{
    char quoted[128];

    snprintf(quoted, sizeof(quoted), "\"%s\"", word);
    if (strstr(schema(), quoted) == NULL)
        fail_msg("the schema has no %s", quoted);
}

static bool look_at(void *context, const struct weir__json_value *value)
{
    ++*(int *)context;
    return true;
}

TEST(test_R6_schema_is_json)
{
    static char scratch[65536];
    const char *what = NULL;
    int values = 0;
    long wrong = weir__json_walk(schema(), strlen(schema()), scratch, look_at, &values, &what);

    if (wrong >= 0)
        fail_msg("no %s at %ld: %.40s", what, wrong, schema() + wrong);
    assert_true(values > 100);
}

TEST(test_R6_schema_has_every_algorithm)
{
    for (const char *const *name = weir_algorithms(); *name; name++)
        assert_has(*name);
}

TEST(test_R6_schema_has_every_mode)
{
    for (enum weir_mode mode = WEIR_ENFORCE; mode <= WEIR_OFF; mode++)
        assert_has(weir_mode_name(mode));
}

TEST(test_L12_schema_has_every_controller)
{
    for (const char *const *name = weir_controllers(); *name; name++)
        assert_has(*name);
}

TEST(test_R6_schema_has_the_readers_bounds)
{
    char bound[64];

    snprintf(bound, sizeof(bound), "\"maxItems\":%d", WEIR__RULES_MAX);
    assert_non_null(strstr(schema(), bound));
    snprintf(bound, sizeof(bound), "\"maxItems\":%d", WEIR__GUARDS_MAX);
    assert_non_null(strstr(schema(), bound));
    snprintf(bound, sizeof(bound), "\"maxProperties\":%d", WEIR__PRIORITY_WORDS);
    assert_non_null(strstr(schema(), bound));
    snprintf(bound, sizeof(bound), "\"maxItems\":%d", WEIR__RULE_LIMITS);
    assert_non_null(strstr(schema(), bound));
    snprintf(bound, sizeof(bound), "{1,%d}$", WEIR__RULE_NAME_MAX);
    assert_non_null(strstr(schema(), bound));
}
