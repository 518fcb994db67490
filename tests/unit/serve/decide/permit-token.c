/* permit-token.c -- tokens of permits: what goes in comes out, and nothing else does. */
#include "unit/test.h"

#include "server/serve/decide/permit-token.h"

#include "unit/fixture.h"

static const uint64_t secrets[WEIR__HASH_SECRETS] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3,
                                                      5, 8, 9, 7, 9, 3, 2, 3, 8, 4 };

/* The key of a table; of another if one of its secrets is another. */
static struct weir__permit_key signer(uint64_t secret)
{
    uint64_t mine[WEIR__HASH_SECRETS];
    struct weir__permit_key key;

    memcpy(mine, secrets, sizeof(mine));
    mine[7] = secret;
    weir__permit_key_make(&key, mine);
    return key;
}

static struct weir__permits some(uint32_t n)
{
    struct weir__permits p = { .n = n };

    for (uint32_t i = 0; i < n; i++) {
        p.each[i].guard = i * 9000 + 7;
        p.each[i].permit = (struct weir_permit){ .word = 0x0123456789abcdefu * (i + 3),
                                                 .seat = 16383 - i,
                                                 .since = 1700000000 * WEIR_SECOND + i };
    }
    return p;
}

static void assert_same(const struct weir__permits *a, const struct weir__permits *b)
{
    assert_int_equal(a->n, b->n);
    for (uint32_t i = 0; i < a->n; i++) {
        assert_int_equal(a->each[i].guard, b->each[i].guard);
        assert_fields(a->each[i].permit, (word, b->each[i].permit.word),
                      (seat, b->each[i].permit.seat), (since, b->each[i].permit.since));
    }
}

TEST(test_S1_comes_back)
{
    struct weir__permit_key key = signer(1);
    char token[WEIR__PERMIT_TOKEN_MAX];

    for (uint32_t n = 1; n <= WEIR_ENTRY_MAX; n++) {
        struct weir__permits in = some(n), out = { 0 };
        size_t len = weir__permits_print(token, &key, &in);
        assert_int_equal(strlen(token), len);
        assert_true(len < WEIR__PERMIT_TOKEN_MAX);
        assert_null(weir__permits_parse(&out, &key, token, len));
        assert_same(&in, &out);
    }
    assert_int_equal(weir__permits_print(token, &key, &(struct weir__permits){ .n = 1 }), 54);
}

/* A server that comes after another on the same table has the same secrets, and so the same key. */
TEST(test_S1_key_is_the_tables)
{
    struct weir__permit_key first = signer(1), again = signer(1), other = signer(2);
    struct weir__permits in = some(1), out = { .n = 77 };
    char token[WEIR__PERMIT_TOKEN_MAX];

    size_t len = weir__permits_print(token, &first, &in);
    assert_null(weir__permits_parse(&out, &again, token, len));
    out.n = 77;
    assert_non_null(strstr(weir__permits_parse(&out, &other, token, len), "not of this server"));
    assert_int_equal(out.n, 77);
}

TEST(test_S1_no_character_can_change)
{
    struct weir__permit_key key = signer(1);
    struct weir__permits in = some(3), out = { .n = 77 };
    char token[WEIR__PERMIT_TOKEN_MAX];

    size_t len = weir__permits_print(token, &key, &in);
    for (size_t i = 0; i < len; i++) {
        char was = token[i];
        for (int c = 0; c < 256; c++) {
            token[i] = (char)c;
            assert_true(((char)c == was) == (weir__permits_parse(&out, &key, token, len) == NULL));
        }
        token[i] = was;
    }
}

TEST(test_S1_no_other_length)
{
    struct weir__permit_key key = signer(1);
    struct weir__permits in = some(2), out = { .n = 77 };
    char token[2 * WEIR__PERMIT_TOKEN_MAX];

    size_t len = weir__permits_print(token, &key, &in);
    memset(token + len, 'A', sizeof(token) - len);
    for (size_t n = 0; n <= sizeof(token); n++)
        if (n != len)
            assert_non_null(weir__permits_parse(&out, &key, token, n));
    assert_int_equal(out.n, 77);
}

TEST(test_S1_nonsense)
{
    static const char *const texts[] = {
        "", "x", "permit", "AAAA", "====", "\xff\xff", "96d8d682d22fa4ba004fcf31822aa748"
    };
    struct weir__permit_key key = signer(1);
    struct weir__permits out = { .n = 77 };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_non_null(
            strstr(weir__permits_parse(&out, &key, texts[i], strlen(texts[i])), "not a permit"));
    assert_int_equal(out.n, 77);
}
