/* key.c -- two requests have the same key exactly if the rule means them to, and then the same
 * text. */
#include "unit/test.h"

#include "unit/requests.h"

struct made {
    bool is;
    unsigned char bytes[512];
    size_t len;
    char text[WEIR_KEY_TEXT];
};

static uint64_t secrets[WEIR__HASH_SECRETS];

static struct made key_with(const struct weir_rules *set, const struct weir_attr *attrs, size_t n)
{
    unsigned char room[WEIR__KEY_MAX];
    struct made made = { .len = 0 };
    struct weir__facts facts;
    struct weir_key key;

    weir__facts_gather(&set->attributes, set->lists, attrs, n, &facts);
    made.is = weir__rule_key(secrets, &set->rules[0], &facts, room, &key);
    if (made.is) {
        struct weir__hash h =
            weir__hash_key(secrets, 1, key); /* stands for one that is very long */
        made.len = key.len;
        memcpy(made.bytes, key.len > sizeof(made.bytes) ? (void *)&h : (void *)key.bytes,
               key.len > sizeof(made.bytes) ? sizeof(h) : key.len);
        size_t len = weir__rule_key_text(secrets, &set->rules[0], &facts, made.text);
        assert_int_equal(len, strlen(made.text));
    }
    return made;
}

static struct weir_rules *set_of(const char *template)
{
    char yaml[400];

    snprintf(yaml, sizeof(yaml), RULES("- { name: r, key: \"%s\", limit: 1/s }\n"), template);
    return rules_of(yaml);
}

static struct made key_by(const char *template, const char *request)
{
    OWN(weir_rules) *set = set_of(template);
    struct request r = request_of(request);
    struct made made = key_with(set, r.attrs, r.n);
    return made;
}

static bool same_key(const struct made *a, const struct made *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static void assert_same(const char *template, const char *one, const char *other)
{
    struct made a = key_by(template, one), b = key_by(template, other);

    assert_true(a.is && b.is);
    if (!same_key(&a, &b) || strcmp(a.text, b.text) != 0)
        fail_msg("%s: %s and %s have keys %s and %s", template, one, other, a.text, b.text);
}

static void assert_different(const char *template, const char *one, const char *other)
{
    struct made a = key_by(template, one), b = key_by(template, other);

    assert_true(a.is && b.is);
    if (same_key(&a, &b))
        fail_msg("%s: %s and %s have the same key", template, one, other);
    if (strcmp(a.text, b.text) == 0)
        fail_msg("%s: %s and %s have the same text, %s", template, one, other, a.text);
}

static void assert_text(const char *template, const char *request, const char *text)
{
    struct made made = key_by(template, request);

    assert_true(made.is);
    assert_string_equal(made.text, text);
}

TEST(test_R1_without_a_template_everybody_has_one_key)
{
    assert_same("", "ip=1.2.3.4", "account=ann");
    assert_same("", "ip=1.2.3.4", "");
    assert_text("", "ip=1.2.3.4", "");
}

TEST(test_R1_one_attribute)
{
    assert_different("{account}", "account=ann", "account=bob");
    assert_different("{account}", "account=ann", "account=Ann");
    assert_same("{account}", "account=ann ip=1.2.3.4", "account=ann ip=5.6.7.8");
    assert_text("user {account}!", "account=ann", "user ann!");
    assert_text("{account} of {{us}}", "account=ann", "ann of {us}");
    assert_false(key_by("{account}", "ip=1.2.3.4").is);
    assert_false(key_by("{account}", "account=").is);
}

TEST(test_R1_what_stands_for_a_missing_value)
{
    assert_same("{account|nobody}", "ip=1.2.3.4", "account=");
    assert_different("{account|nobody}", "", "account=ann");
    assert_text("{account|no one}", "", "no one");
    assert_false(key_by("{account|nobody}:{org}", "account=ann").is); /* only for its own */
}

TEST(test_R1_an_address_counts_however_it_is_written)
{
    assert_same("{ip}", "ip=192.0.2.7", "ip=::ffff:192.0.2.7");
    assert_same("{ip}", "ip=2001:db8::1", "ip=2001:0DB8:0:0::0001");
    assert_same("{ip}:{account}", "ip=2001:db8::1 account=a", "ip=[2001:db8:0::1] account=a");
    assert_different("{ip}", "ip=192.0.2.7", "ip=192.0.2.8");
    assert_different("{ip}", "ip=::c000:207", "ip=192.0.2.7");
    assert_text("{ip}", "ip=2001:0DB8:0:0::0001", "2001:db8::/64");
    assert_text("{ip}", "ip=::ffff:192.0.2.7", "192.0.2.7");
    assert_text("{ip/32}", "ip=192.0.2.7", "192.0.2.7");
    assert_text("{ip/32/128}", "ip=2001:db8::1", "2001:db8::1");
}

/* The owner of one IPv6 address owns 2^64 of them. */
TEST(test_R1_an_address_of_IPv6_is_its_64)
{
    assert_same("{ip}", "ip=2001:db8::1", "ip=2001:db8::ffff:0:1");
    assert_same("{ip}:{a}", "ip=2001:db8::1 a=x", "ip=2001:db8::2 a=x");
    assert_different("{ip}", "ip=2001:db8::1", "ip=2001:db8:0:1::1");
    assert_different("{ip/32/128}", "ip=2001:db8::1", "ip=2001:db8::2");
    assert_different("{ip}", "ip=192.0.2.1", "ip=192.0.2.2");
    assert_different("{ip}", "ip=c000:201::", "ip=192.0.2.1");
}

TEST(test_R1_a_port_is_no_part_of_an_address)
{
    assert_same("{ip}", "ip=192.0.2.7", "ip=192.0.2.7:4711");
    assert_same("{ip}", "ip=2001:db8::1", "ip=[2001:db8::1]:4711");
    assert_text("{ip}", "ip=192.0.2.7:4711", "192.0.2.7");
}

TEST(test_R1_prefix_lengths_of_both_families)
{
    assert_same("{ip/24}", "ip=192.0.2.7", "ip=192.0.2.200");
    assert_different("{ip/24}", "ip=192.0.2.7", "ip=192.0.3.7");
    assert_same("{ip/24}", "ip=2001:db8:0:1::1",
                "ip=2001:db8:0:1:ffff::"); /* of IPv6 the first 64 */
    assert_different("{ip/24}", "ip=2001:db8:0:1::1", "ip=2001:db8:0:2::1");
    assert_same("{ip/24/48}", "ip=2001:db8:0:1::1", "ip=2001:db8:0:2::1");
    assert_different("{ip/24/48}", "ip=2001:db8:1::1", "ip=2001:db8:2::1");
    assert_same("{ip/0/0}", "ip=1.2.3.4", "ip=5.6.7.8");
    assert_different("{ip/0/0}", "ip=1.2.3.4", "ip=::1");
    assert_same("{ip/31}", "ip=1.2.3.4", "ip=1.2.3.5");
    assert_different("{ip/32}", "ip=1.2.3.4", "ip=1.2.3.5");
    assert_text("{ip/24}", "ip=192.0.2.7", "192.0.2.0/24");
    assert_text("{ip/24}", "ip=2001:db8::1", "2001:db8::/64");
}

TEST(test_R1_all_that_is_no_address_is_one_key)
{
    assert_same("{ip}", "ip=unix:a", "ip=unix:b");
    assert_same("{ip/24}", "ip=unix:a", "ip=192.0.2.7:http");
    assert_text("{ip/24}", "ip=unix:a", "?not-an-address");
    assert_text("{ip|none}", "", "?none");
    assert_text("{account}", "account=?a", "?a"); /* only of what should be an address */
}

/* Text that happens to be the bytes of an address is not that address: \3abc and 3.97.98.99 */
TEST(test_R1_text_is_never_taken_for_an_address)
{
    assert_different("{ip}", "ip=abc", "ip=3.97.98.99");
    assert_different("{ip}", "ip=abcdefghijklmno", "ip=f61:6263:6465:6667:6869:6a6b:6c6d:6e6f");
    assert_different("{ip|none}", "", "ip=110.111.110.101");
    assert_different("{ip/32}:{account}", "ip=none account=a", "ip=110.111.110.101 account=a");
    assert_different("{ip/24}", "ip=192.0.2.0/24", "ip=192.0.2.7");
    assert_different("{ip|192.0.2.7}", "",
                     "ip=192.0.2.7"); /* what stands for a missing address is text */
    assert_different("{ip|none}", "", "ip=none");
}

TEST(test_R1_combinations_are_told_apart)
{
    assert_different("{a}:{b}", "a=x:y b=z", "a=x b=y:z");
    assert_different("{a}{{{b}", "a=x{ b=z", "a=x b={z");
    assert_different("{a}:{b}", "a=x b=y", "a=y b=x");
    assert_different("{a}:{b}", "a=x% b=y", "a=x%25 b=y");
    assert_different("{a}:{b}", "a=x%3A b=y", "a=x: b=y");
    assert_different("{a|-}:{b|-}", "a=x", "b=x");
    assert_same("{a|-}:{b|-}", "a=x", "a=x b=");
    assert_different("{ip}:{account}:{org}", "ip=1.2.3.4 account=a org=b",
                     "ip=1.2.3.4 account=b org=a");
}

/* An IPv6 address has the byte that stands between it and what follows; so may the last value. */
TEST(test_no_two_keys_have_the_same_text)
{
    assert_different("{ip}:{account}", "ip=::1 account=a:b", "ip=::1:a account=b");
    assert_different("{ip/24}/{account}", "ip=10.0.0.1 account=24", "ip=10.0.0.2 account=24/24");
    assert_different("{ip}:{peer.ip}", "ip=1:: peer.ip=1:2::", "ip=1:1:: peer.ip=2::");
    assert_different("{ip/0/0}:{account}", "ip=::1 account=a", "ip=?::/0 account=a");
}

/* Every combination of awkward values: two requests have the same text exactly if they have the
 * same key. */
TEST(test_a_text_is_as_good_as_a_key)
{
    static const char *const templates[] = { "{a}:{b}",
                                             "{a}::{b}",
                                             "{a}2{b}",
                                             "{a}:2{b}:{c}",
                                             "{ip}:{a}",
                                             "{a}:{ip}",
                                             "{ip/24/64}/{a}",
                                             "{ip/0/0}:{a}",
                                             "{ip}2{a}",
                                             "{a}:{ip}:{b}",
                                             "{ip}:{peer.ip}",
                                             "{ip}/{peer.ip/24}",
                                             "{ip}1{peer.ip}:{a}",
                                             "{a|:}:{ip|::1}",
                                             "<{a|-}-{b|-}>",
                                             "{a}:\xc3\xa9{b}" };
    static const char *const texts[] = { "",   "a",  ":", "2", "%",  "%3A",      "::",        "a:",
                                         ":a", "25", "?", "-", "24", "\xc3\xa9", "-\xc3\xa9-" };
    static const char *const addresses[] = { "",  "::1",  "1::",  "::", "::1:2:0:0:0:0", "10.0.0.1",
                                             "?", "::1:", "2::2", "1",  "10.0.0.0/24",   "none" };

    for (size_t t = 0; t < COUNT_OF(templates); t++) {
        static struct made made[8192];
        OWN(weir_rules) *set = set_of(templates[t]);
        size_t n = 0, parts = set->rules[0].key.n;
        for (size_t v = 0; v < (parts > 2 ? 15 * 15 * 15 : 15 * 15); v++) {
            struct weir_attr attrs[3];
            size_t digits[] = { v % 15, v / 15 % 15, v / 225 };
            for (size_t i = 0; i < parts; i++) {
                const struct weir__key_part *p = &set->rules[0].parts[i];
                attrs[i] = (struct weir_attr)ATTR(
                    set->attributes.names[p->attribute],
                    p->address ? addresses[digits[i] % COUNT_OF(addresses)] : texts[digits[i]]);
            }
            made[n] = key_with(set, attrs, parts);
            n += made[n].is;
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++)
                if (same_key(&made[i], &made[k]) != (strcmp(made[i].text, made[k].text) == 0))
                    fail_msg("%s: %s and %s", templates[t], made[i].text, made[k].text);
    }
}

TEST(test_bytes_that_people_cannot_read_are_escaped)
{
    assert_text("{a}", "a=x\n\x7f%y", "x%0A%7F%25y");
    assert_text("{a}:{b}", "a=x:y b=z:z", "x%3Ay:z%3Az");
    assert_text("{a}", "a=\xc3\xa4", "\xc3\xa4");
    assert_text("{a}", "a=\xc2\x85", "%C2%85"); /* a control character, too */
    assert_text("{a}", "a=\xff\x80", "%FF%80");
    /* what looks like UTF-8 and is none: cut off, a surrogate, too long, beyond the last */
    assert_text("{a}", "a=\xe2\x80", "%E2%80");
    assert_text("{a}", "a=\xe2x", "%E2x");
    assert_text("{a}", "a=\xed\xa0\x80", "%ED%A0%80");
    assert_text("{a}", "a=\xe0\x80\x80", "%E0%80%80");
    assert_text("{a}", "a=\xf4\x90\x80\x80", "%F4%90%80%80");
    assert_text("{a}", "a=\xf0\x9f\x8d\x8c", "\xf0\x9f\x8d\x8c");
    /* invisible, a line's end, a change of direction: no terminal shows them as they are */
    assert_text("{a}", "a=x\xe2\x80\x8by", "x%E2%80%8By");
    assert_text("{a}", "a=\xe2\x80\xa8", "%E2%80%A8");
    assert_text("{a}", "a=\xe2\x80\xae", "%E2%80%AE");
    assert_text("{a}", "a=\xef\xbb\xbf", "%EF%BB%BF");
}

/* ------------------------------------------------------------ long values ---- */

TEST(test_long_values_are_whole_in_the_key)
{
    static const char *const templates[] = { "{header.x-api-key}", "{header.x-api-key}:{account}",
                                             "{account}:{header.x-api-key|none}" };
    char value[301], other[301];

    memset(value, 'k', 300);
    value[300] = '\0';
    for (size_t t = 0; t < COUNT_OF(templates); t++) {
        OWN(weir_rules) *set = set_of(templates[t]);
        for (size_t at = 0; at < 300; at += 23) {
            memcpy(other, value, sizeof(other));
            other[at] = 'x';
            struct weir_attr one[] = { ATTR("header.x-api-key", value), ATTR("account", "ann") };
            struct weir_attr two[] = { ATTR("header.x-api-key", other), ATTR("account", "ann") };
            struct made a = key_with(set, one, 2), b = key_with(set, two, 2),
                        again = key_with(set, one, 2);
            assert_false(same_key(&a, &b));
            assert_true(same_key(&a, &again));
            assert_string_not_equal(a.text, b.text);
        }
    }
}

TEST(test_eight_long_values)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    static char values[8][301];

    OWN(weir_rules) *set = set_of("{a}:{b}:{c}:{d}:{e}:{f}:{g}:{h}");
    for (int round = 0; round < 4; round++) {
        static const size_t lengths[] = { 300, 33, 32, 7 };
        struct weir_attr attrs[8];
        for (size_t i = 0; i < 8; i++) {
            memset(values[i], (int)('a' + i), lengths[round]);
            attrs[i] = (struct weir_attr){
                .name = names[i], .value = values[i], .name_len = 1, .value_len = lengths[round]
            };
        }
        struct made whole = key_with(set, attrs, 8);
        assert_true(whole.len <= WEIR__KEY_MAX);
        for (size_t i = 0; i < 8; i++) {
            values[i][lengths[round] - 1] ^= 1;
            struct made changed = key_with(set, attrs, 8);
            if (same_key(&whole, &changed))
                fail_msg("value %zu of %zu bytes does not count", i, lengths[round]);
            values[i][lengths[round] - 1] ^= 1;
        }
    }
}

/* However long a text is: its beginning, "...", and 32 hex digits of the hash of all of it. */
static void assert_shortened(const char *text)
{
    size_t len = strlen(text);

    assert_true(len < WEIR_KEY_TEXT && len > 35);
    assert_memory_equal(text + len - 35, "...", 3);
    assert_int_equal(strspn(text + len - 32, "0123456789abcdef"), 32);
}

static struct made key_of_bytes(const struct weir_rules *set, const char *bytes, size_t len)
{
    struct weir_attr attr = { .name = "account", .value = bytes, .value_len = len };

    return key_with(set, &attr, 1);
}

TEST(test_a_long_text_ends_in_its_hash)
{
    char value[2000];

    OWN(weir_rules) *set = set_of("<{account}>");
    memset(value, 'v', sizeof(value));
    struct made most = key_of_bytes(set, value, WEIR_KEY_TEXT - 3),
                longer = key_of_bytes(set, value, WEIR_KEY_TEXT - 2);
    assert_int_equal(strlen(most.text), WEIR_KEY_TEXT - 1);
    assert_int_equal(most.text[WEIR_KEY_TEXT - 2], '>'); /* whole */
    assert_shortened(longer.text);
    assert_memory_equal(longer.text, "<vvvv", 5);
    for (size_t at = 0; at < sizeof(value); at += 37) { /* every byte counts */
        struct made before = key_of_bytes(set, value, sizeof(value));
        value[at] = 'w';
        struct made after = key_of_bytes(set, value, sizeof(value));
        assert_shortened(after.text);
        assert_string_not_equal(before.text, after.text);
    }
}

/* The whole text and the text as shown mean the same key. */
TEST(test_what_is_written_out_is_shortened_alike)
{
    char value[3000], written[3010], text[WEIR_KEY_TEXT];

    OWN(weir_rules) *set = set_of("<{account}>");
    memset(value, 'v', sizeof(value));
    for (size_t len = 100; len < 3000; len += 9) {
        struct made made = key_of_bytes(set, value, len);
        snprintf(written, sizeof(written), "<%.*s>", (int)len, value);
        assert_int_equal(weir__key_text_shorten(secrets, written, text), strlen(made.text));
        assert_string_equal(text, made.text);
        assert_int_equal(weir__key_text_shorten(secrets, made.text, text), strlen(made.text));
        assert_string_equal(text, made.text);
    }
}

/* A text is not cut within a character; and bytes that belong to no character at all are cut
 * somewhere. */
TEST(test_a_text_is_cut_between_characters)
{
    static const char *const characters[] = { "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                              "\x80",     "\xbf",         "\xff" };
    char value[600];

    OWN(weir_rules) *set = set_of("{account}");
    for (size_t c = 0; c < COUNT_OF(characters); c++) {
        size_t width = strlen(characters[c]);
        for (size_t from = 0; from < 4; from++) {
            memset(value, 'x', sizeof(value));
            for (size_t at = from; at + width <= sizeof(value); at += width)
                memcpy(value + at, characters[c], width);
            struct made made = key_of_bytes(set, value, 600);
            assert_shortened(made.text);
            assert_int_equal((strlen(made.text) - 35 - from) % width, 0);
        }
    }
}

TEST(test_very_long_values_have_texts_of_their_own)
{
    static const size_t lengths[] = { 257, 300, 4096, 20000 };
    static char value[20000];

    OWN(weir_rules) *set = set_of("<{account}>");
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        memset(value, 'v', lengths[i]);
        struct made one = key_of_bytes(set, value, lengths[i]),
                    again = key_of_bytes(set, value, lengths[i]);
        for (size_t at = 0; at < 4; at++) {
            value[at * (lengths[i] - 1) / 3] ^= 1;
            struct made other = key_of_bytes(set, value, lengths[i]);
            assert_false(same_key(&one, &other));
            assert_string_not_equal(one.text, other.text);
            value[at * (lengths[i] - 1) / 3] ^= 1;
        }
        assert_string_equal(one.text, again.text);
        assert_memory_equal(one.text, "<vvvv", 5);
        assert_shortened(one.text);
    }
}

TEST(test_eight_values_of_bytes_that_are_escaped)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    static char value[600];
    struct weir_attr attrs[8];

    OWN(weir_rules) *set = set_of("{a}:{b}:{c}:{d}:{e}:{f}:{g}:{h}");
    memset(value, ':', sizeof(value));
    for (size_t len = 250; len < sizeof(value); len++) {
        for (size_t i = 0; i < 8; i++)
            attrs[i] = (struct weir_attr){ .name = names[i], .value = value, .value_len = len };
        struct made made = key_with(set, attrs, 8);
        assert_shortened(made.text);
        attrs[7].value_len--;
        struct made other = key_with(set, attrs, 8);
        assert_string_not_equal(made.text, other.text);
    }
}

static int fill_secrets(void **state)
{
    uint64_t seed = 3;

    for (size_t i = 0; i < COUNT_OF(secrets); i++)
        secrets[i] = random64(&seed);
    return 0;
}

GROUP(fill_secrets, NULL)
