/* trusted-proxies.c -- the networks of trusted-proxies, as people write them. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "match/address.h"
#include "server/serve/settings/trusted-proxies.h"

OWNS(weir__cidr_set)

static bool has(const struct weir__cidr_set *set, const char *text)
{
    struct weir__address address;

    assert_true(weir__address_parse(text, strlen(text), &address));
    return weir__cidr_set_has(set, &address);
}

TEST(test_networks)
{
    OWN(weir__cidr_set) *set = NULL;
    struct weir_error error = { 0 };

    assert_ok(weir__proxies_parse(&set, " 10.0.0.0/8,\t::1 ,192.0.2.7,, ", &error));
    assert_true(has(set, "10.1.2.3") && has(set, "::1") && has(set, "192.0.2.7"));
    assert_false(has(set, "11.0.0.1") || has(set, "2::") || has(set, "192.0.2.8"));
}

TEST(test_none)
{
    struct weir__cidr_set *set = (struct weir__cidr_set *)16;
    struct weir_error error = { 0 };

    assert_ok(weir__proxies_parse(&set, " , ", &error));
    assert_null(set);
    assert_ok(weir__proxies_parse(&set, "", &error));
    assert_null(set);
}

TEST(test_mistakes_have_a_place)
{
    static const struct {
        const char *text;
        int column;
    } wrong[] = {
        { "10.0.0.1/8", 1 }, { "::1, nobody", 6 }, { "::1,10.0.0.0 /8", 5 }, { "::1 ::2", 1 }
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct weir__cidr_set *set = (struct weir__cidr_set *)16;
        struct weir_error error = { 0 };
        assert_int_equal(weir__proxies_parse(&set, wrong[i].text, &error), WEIR_INVALID);
        assert_ptr_equal(set, (void *)16);
        assert_int_equal(error.column, wrong[i].column);
        assert_true(error.text[0]);
    }
}
