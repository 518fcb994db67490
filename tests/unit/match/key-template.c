/* key-template.c -- templates of keys: their parts, and the error of every mistake. */
#include "unit/test.h"

#include "unit/fixture.h"

#include "match/key-template.h"

static struct weir__template template_of(const char *text)
{
    struct weir__template t;
    struct weir_error error = { 0 };

    if (weir__template_parse(&t, text, &error) != WEIR_OK)
        fail_msg("%s: %d: %s", text, error.column, error.text);
    return t;
}

static void assert_part(const struct weir__template_part *p, const char *before,
                        const char *attribute, const char *fallback)
{
    assert_string_equal(p->before, before);
    assert_string_equal(p->attribute, attribute);
    if (fallback == NULL)
        assert_null(p->fallback);
    else
        assert_string_equal(p->fallback, fallback);
}

TEST(test_nothing_and_plain_text_have_no_attributes)
{
    static const char *const texts[] = { "", "everybody", "a}}b", "{{ip}}" };
    static const char *const literals[] = { "", "everybody", "a}b", "{ip}" };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        FINALLY(weir__template_free) struct weir__template t = template_of(texts[i]);
        assert_int_equal(t.n, 0);
        assert_string_equal(t.parts[0].before, literals[i]);
        assert_null(t.parts[0].attribute);
    }
}

TEST(test_R1_attributes_with_text_between)
{
    FINALLY(weir__template_free)
    struct weir__template t = template_of("a{{{ip}:{account|no one}-{header.X-Api-Key}z");
    assert_int_equal(t.n, 3);
    assert_part(&t.parts[0], "a{", "ip", NULL);
    assert_part(&t.parts[1], ":", "account", "no one");
    assert_part(&t.parts[2], "-", "header.x-api-key", NULL); /* header names ignore case */
    assert_string_equal(t.parts[3].before, "z");
    assert_null(t.parts[3].attribute);
    weir__template_free(&t);
    t = template_of("{Account}");
    assert_part(&t.parts[0], "", "Account", NULL); /* all others do */
}

TEST(test_R1_prefix_lengths)
{
    static const struct {
        const char *text;
        uint8_t prefix4, prefix6;
    } cases[] = {
        { "{ip}", WEIR__NO_PREFIX, WEIR__NO_PREFIX },
        { "{ip/24}", 24, 64 },
        { "{ip/0/0}", 0, 0 },
        { "{ip/32/128}", 32, 128 },
        { "{ip/16/48}", 16, 48 },
        { "{client.ip/024|none}", 24, 64 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        FINALLY(weir__template_free) struct weir__template t = template_of(cases[i].text);
        assert_int_equal(t.n, 1);
        assert_fields(t.parts[0], (prefix4, cases[i].prefix4), (prefix6, cases[i].prefix6));
    }
}

TEST(test_mistakes_are_told_with_their_column)
{
    static const struct {
        const char *text;
        int column;
        const char *says;
    } cases[] = {
        { "{", 2, "attribute's name" },
        { "{}", 2, "attribute's name" },
        { "{ ip}", 2, "attribute's name" },
        { "a}", 2, "without its {" },
        { "100%", 4, "%" },
        { "{a}%{b}", 4, "escape" },
        { "{a}:{b}%3A", 8, "escape" },
        { "{ip", 4, "} at the end" },
        { "{ip ", 4, "}" },
        { "{ip/}", 5, "0 to 32" },
        { "{ip/33}", 5, "0 to 32" },
        { "{ip/99999999999999999999}", 5, "0 to 32" },
        { "{ip/-1}", 5, "0 to 32" },
        { "{ip/24/}", 8, "0 to 128" },
        { "{ip/24/129}", 8, "0 to 128" },
        { "{ip/24/64/1}", 10, "}" },
        { "{account/24}", 9, "only an address" },
        { "{account|}", 10, "missing value" },
        { "{account|a{b}}", 11, "}" },
        { "{ip}{account}", 5, "between" },
        { "{ip}\xc3\xa9{account}", 7, "ASCII" },
        { "{a},{b},{c},{d},{e},{f},{g},{h},{i}", 33, "at most 8" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir__template t, before;
        struct weir_error error = { 0 };
        memset(&t, 0x5a, sizeof(t));
        before = t;
        assert_int_equal(weir__template_parse(&t, cases[i].text, &error), WEIR_INVALID);
        assert_memory_equal(&t, &before, sizeof(t));
        if (error.column != cases[i].column)
            fail_msg("%s: column %d: %s", cases[i].text, error.column, error.text);
        assert_contains(error.text, cases[i].says);
    }
}

TEST(test_eight_attributes_and_names_of_63_bytes_are_the_most)
{
    char text[80];
    struct weir_error error = { 0 };
    struct weir__template t = template_of("{a},{b},{c},{d},{e},{f},{g},{h}");

    weir__template_free(&t);
    memset(text, 'x', sizeof(text));
    text[0] = '{';
    memcpy(text + 64, "}", 2);
    t = template_of(text);
    weir__template_free(&t);
    memcpy(text + 64, "x}", 3);
    assert_int_equal(weir__template_parse(&t, text, &error), WEIR_INVALID);
    assert_contains(error.text, "at most 63");
}

TEST(test_length_of_a_name)
{
    assert_int_equal(weir__attribute_length(""), 0);
    assert_int_equal(weir__attribute_length("header.x-a_B9:"), 13);
    assert_int_equal(weir__attribute_length("\xc3\xa4"), 0);
}
