/* auth.c -- which role a secret gives: the whole of it counts, and its length. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "server/serve/serve.h"
#include "server/base/token.h"

static enum weir__role role_of(const struct weir__settings *s, const char *secret)
{
    return weir__auth_role(s, secret, strlen(secret));
}

TEST(test_roles)
{
    const struct weir__settings both = { .admin_token = "admin-secret",
                                         .check_token = "check-secret" };

    assert_int_equal(role_of(&both, "admin-secret"), WEIR__ROLE_ADMIN);
    assert_int_equal(role_of(&both, "check-secret"), WEIR__ROLE_CHECK);
    assert_int_equal(role_of(&both, "other-secret"), WEIR__ROLE_NONE);
    assert_int_equal(role_of(&both, "admin-secreT"), WEIR__ROLE_NONE);
    assert_int_equal(role_of(&both, "Admin-secret"), WEIR__ROLE_NONE);
}

TEST(test_one_token_gives_one_role)
{
    const struct weir__settings admin = { .admin_token = "admin-secret", .check_token = "" };
    const struct weir__settings check = { .admin_token = "", .check_token = "check-secret" };

    assert_int_equal(role_of(&admin, "admin-secret"), WEIR__ROLE_ADMIN);
    assert_int_equal(role_of(&check, "check-secret"), WEIR__ROLE_CHECK);
    assert_int_equal(role_of(&check, "admin-secret"), WEIR__ROLE_NONE);
}

/* A token that is not set is nobody's. */
TEST(test_nothing_is_no_secret)
{
    const struct weir__settings both = { .admin_token = "admin-secret",
                                         .check_token = "check-secret" };
    const struct weir__settings none = { .admin_token = "", .check_token = "" };
    char zeros[WEIR__TOKEN_MAX + 1] = { 0 };

    assert_int_equal(role_of(&both, ""), WEIR__ROLE_NONE);
    assert_int_equal(role_of(&none, ""), WEIR__ROLE_NONE);
    for (size_t len = 0; len <= sizeof(zeros); len++)
        assert_int_equal(weir__auth_role(&none, zeros, len), WEIR__ROLE_NONE);
}

/* Both are filled up with zeros to one size: what is equal there need not be equal. */
TEST(test_lengths_that_differ)
{
    const struct weir__settings s = { .admin_token = "admin-secret",
                                      .check_token = "check-secret" };
    char shown[WEIR__TOKEN_MAX + 1] = "admin-secret";

    for (size_t len = 0; len <= sizeof(shown); len++)
        assert_int_equal(weir__auth_role(&s, shown, len),
                         len == 12 ? WEIR__ROLE_ADMIN : WEIR__ROLE_NONE);
    assert_int_equal(role_of(&s, "admin-secret-and-more"), WEIR__ROLE_NONE);
}

/* Every byte counts, the last one of the longest too. */
TEST(test_every_byte_counts)
{
    char token[WEIR__TOKEN_MAX + 1], shown[WEIR__TOKEN_MAX + 1];
    const struct weir__settings s = { .admin_token = "", .check_token = token };

    memset(token, 'x', WEIR__TOKEN_MAX);
    token[WEIR__TOKEN_MAX] = 0;
    memcpy(shown, token, sizeof(shown));
    assert_int_equal(role_of(&s, shown), WEIR__ROLE_CHECK);
    for (size_t i = 0; i < WEIR__TOKEN_MAX; i++) {
        shown[i] ^= 1;
        assert_int_equal(role_of(&s, shown), WEIR__ROLE_NONE);
        shown[i] ^= 1;
    }
}

/* Beyond the bytes that are compared nothing may count as equal. */
TEST(test_longer_than_any_token)
{
    char token[WEIR__TOKEN_MAX + 1], longer[1000];
    const struct weir__settings s = { .admin_token = token, .check_token = "" };

    memset(token, 'x', WEIR__TOKEN_MAX);
    token[WEIR__TOKEN_MAX] = 0;
    memset(longer, 'x', sizeof(longer));
    assert_int_equal(weir__auth_role(&s, longer, WEIR__TOKEN_MAX), WEIR__ROLE_ADMIN);
    assert_int_equal(weir__auth_role(&s, longer, WEIR__TOKEN_MAX + 1), WEIR__ROLE_NONE);
    assert_int_equal(weir__auth_role(&s, longer, WEIR__TOKEN_MAX - 1), WEIR__ROLE_NONE);
    assert_int_equal(weir__auth_role(&s, longer, sizeof(longer)), WEIR__ROLE_NONE);
}

TEST(test_beyond_loopback_needs_a_token)
{
    struct weir__settings s = { .admin_token = "", .check_token = "" };
    struct weir_error error = { 0 };

    assert_int_equal(weir__auth_suffices(&s, "192.0.2.1:7379", &error), WEIR_INVALID);
    assert_contains(error.text, "192.0.2.1:7379 can be reached from other hosts");
    assert_contains(error.text, "WEIR_ADMIN_TOKEN");
    s.admin_token = "123456789012345";
    assert_int_equal(weir__auth_suffices(&s, "192.0.2.1:7379", &error), WEIR_INVALID);
    assert_contains(error.text, "admin-token has 15 bytes only: it needs 16");
    s.admin_token = "1234567890123456";
    assert_int_equal(weir__auth_suffices(&s, "192.0.2.1:7379", &error), WEIR_OK);
    s.check_token = "short";
    assert_int_equal(weir__auth_suffices(&s, "192.0.2.1:7379", &error), WEIR_INVALID);
    assert_contains(error.text, "check-token has 5 bytes only");
    s.admin_token = "";
    s.check_token = "1234567890123456";
    assert_int_equal(weir__auth_suffices(&s, "192.0.2.1:7379", &error), WEIR_OK);
}
