/* http-json.c -- the members of a JSON body: what is read, and what is said of what is wrong. */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "server/serve/http/http.h"

struct target {
    struct weir__span text, any;
    int64_t count;
    struct weir__attributes_in in;
    struct weir_attr attrs[3];
    char names[4 * 64];
};

static const struct weir__member rows[] = {
    { "attributes", WEIR__MEMBER_OBJECT, false, 0 },
    { "text", WEIR__MEMBER_TEXT, true, offsetof(struct target, text) },
    { "any", WEIR__MEMBER_ANY, false, offsetof(struct target, any) },
    { "count", WEIR__MEMBER_COUNT, false, offsetof(struct target, count) },
};

static bool inner(struct weir__members *members, struct weir__span name,
                  const struct weir__json_value *value)
{
    return weir__attribute_in(members, &((struct target *)members->target)->in, name, value);
}

static bool read_into(struct weir__members *m, struct target *t, const char *text)
{
    *t = (struct target){ 0 };
    t->in = (struct weir__attributes_in){
        .attrs = t->attrs, .max = 3, .names = t->names, .names_end = t->names + sizeof(t->names)
    };
    memset(m, 0, sizeof(*m));
    m->rows = rows;
    m->n = sizeof(rows) / sizeof(rows[0]);
    m->target = t;
    m->inner = inner;
    return weir__members_read(m, (struct weir__span){ text, strlen(text) }) &&
           weir__members_whole(m);
}

static void check_wrong(const char *text, const char *problem)
{
    struct weir__members m;
    struct target t;

    if (read_into(&m, &t, text))
        fail_msg("%s: nothing was wrong", text);
    if (strstr(m.problem, problem) == NULL)
        fail_msg("%s: %s\n--- instead of ---\n%s", text, m.problem, problem);
    weir__members_free(&m);
}

static bool is(struct weir__span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.bytes, text, span.len) == 0;
}

TEST(test_members)
{
    struct weir__members m;
    struct target t;

    assert_true(
        read_into(&m, &t, " {\"text\":\"a\\n\\u00e9\",\"any\":1.5,\"count\":9223372036854775807}"));
    assert_true(is(t.text, "a\n\xc3\xa9"));
    assert_true(is(t.any, "1.5"));
    assert_int_equal(t.count, INT64_MAX);
    weir__members_free(&m);
    assert_true(read_into(&m, &t, "{\"count\":null,\"text\":\"\",\"any\":true}"));
    assert_true(is(t.any, "true"));
    assert_int_equal(t.text.len, 0);
    weir__members_free(&m);
}

TEST(test_members_of_a_long_text_with_escapes)
{
    struct weir__members m;
    struct target t;
    char text[6000] = "{\"text\":\"\\t";

    memset(text + strlen(text), 'x', 4000);
    strcat(text, "\"}");
    assert_true(read_into(&m, &t, text));
    assert_int_equal(t.text.len, 4001);
    assert_int_equal(t.text.bytes[0], '\t');
    weir__members_free(&m);
}

TEST(test_what_is_wrong)
{
    check_wrong("", "the body is empty: a JSON object is needed");
    check_wrong("[]", "the body is a JSON object, and not an array");
    check_wrong("[{\"text\":1}]", "the body is a JSON object, and not an array");
    check_wrong("\"x\"", "the body is a JSON object, and not 'x'");
    check_wrong("{\"text\" 1}", "the body is no JSON: at byte 9 ':' was expected");
    check_wrong("{\"text\":\"a\"", "the body is no JSON: at byte 12");
    check_wrong("{}", "'text' is missing");
    check_wrong("{\"text\":null}", "'text' is missing");
    check_wrong("{\"txet\":\"a\"}", "unknown member 'txet'; did you mean 'text'?");
    check_wrong("{\"nonsense\":{\"deep\":1}}",
                "unknown member 'nonsense'; known are attributes, text, any, count");
    check_wrong("{\"text\":1}", "'text' is a string, and not '1'");
    check_wrong("{\"text\":{\"a\":1}}", "'text' is a string, and not '{...}'");
    check_wrong("{\"text\":\"a\",\"text\":\"b\"}", "'text' is there twice");
    check_wrong("{\"count\":\"1\"}",
                "'count' is a whole number from 0 to 9223372036854775807, and not a string");
    check_wrong("{\"count\":-1}", "'count' is a whole number from 0");
    check_wrong("{\"count\":1.5}", "'count' is a whole number");
    check_wrong("{\"count\":1e3}", "'count' is a whole number");
    check_wrong("{\"count\":9223372036854775808}", "to 9223372036854775807");
    check_wrong("{\"attributes\":5}", "'attributes' is an object, and not '5'");
    check_wrong("{\"attributes\":[\"a\"]}", "'attributes' is an object, and not '[...]'");
    check_wrong("{\"attributes\":[{\"a\":1}]}", "'attributes' is an object of strings, numbers, "
                                                "true and false, with no objects or arrays in it");
    check_wrong("{\"attributes.ip\":\"a\"}", "unknown member 'attributes.ip'");
    check_wrong("{\"attributes.ip\":{\"a\":1}}", "unknown member 'attributes.ip'");
    check_wrong("{\"text\":[1]}", "'text' is a string, and not '[...]'");
    check_wrong("{\"text\":{\"a\":{\"b\":1}}}", "'text' is a string, and not '{...}'");
    check_wrong("{\"attributes\":{\"\":\"a\"}}", "'attributes' is an object of names and values");
}

TEST(test_attributes)
{
    struct weir__members m;
    struct target t;

    assert_true(read_into(&m, &t,
                          "{\"text\":\"\",\"attributes\":{\"ip\":\"::1\",\"n\":7,\"none\":null,"
                          "\"empty\":\"\",\"header.X-App\":false}}"));
    assert_int_equal(t.in.n, 3);
    assert_true(is((struct weir__span){ t.attrs[1].value, t.attrs[1].value_len }, "7"));
    assert_true(is((struct weir__span){ t.attrs[2].name, t.attrs[2].name_len }, "header.x-app"));
    assert_true(is((struct weir__span){ t.attrs[2].value, t.attrs[2].value_len }, "false"));
    weir__members_free(&m);
    check_wrong("{\"attributes\":{\"a\":\"1\",\"a\":\"2\"}}", "the attribute 'a' is there twice");
    check_wrong("{\"attributes\":{\"header.a\":\"1\",\"header.A\":\"2\"}}", "is there twice");
    check_wrong("{\"attributes\":{\"header\":{\"a\":\"2\"}}}", "with no objects or arrays in it");
    check_wrong("{\"attributes\":{\"a\":[\"2\"]}}", "with no objects or arrays in it");
    check_wrong("{\"attributes\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4}}", "more than 3 attributes");
    check_wrong("{\"attributes\":{\"a\\u0000b\":1}}", "NUL byte");
}

/* Dots belong to a name, and digits are one. */
TEST(test_attribute_names_with_dots)
{
    struct weir__members m;
    struct target t;

    assert_true(read_into(&m, &t, "{\"text\":\"\",\"attributes\":{\"0\":1,\"a.b.c\":2,\".\":3}}"));
    assert_int_equal(t.in.n, 3);
    assert_true(is((struct weir__span){ t.attrs[0].name, t.attrs[0].name_len }, "0"));
    assert_true(is((struct weir__span){ t.attrs[1].name, t.attrs[1].name_len }, "a.b.c"));
    assert_true(is((struct weir__span){ t.attrs[2].name, t.attrs[2].name_len }, "."));
    weir__members_free(&m);
}

TEST(test_attribute_names_stay_in_their_room)
{
    struct weir__members m = { .n = 0 };
    struct target t = { .count = 0 };
    const struct weir__json_value value = { .kind = WEIR__JSON_STRING, .text = "x", .len = 1 };

    t.in = (struct weir__attributes_in){
        .attrs = t.attrs, .max = 3, .names = t.names, .names_end = t.names + 5
    };
    assert_true(weir__attribute_in(&m, &t.in, (struct weir__span){ "abc", 3 }, &value));
    assert_false(weir__attribute_in(&m, &t.in, (struct weir__span){ "def", 3 }, &value));
    assert_string_equal(m.problem, "the names of the attributes are too long");
    assert_true(weir__attribute_in(&m, &t.in, (struct weir__span){ "de", 2 }, &value));
    assert_memory_equal(t.names, "abcde\0", 6);
}

/* No rule can look at it, so it is no mistake to send it. */
TEST(test_attribute_with_a_long_name)
{
    struct weir__members m;
    struct target t;
    char text[600] = "{\"text\":\"\",\"attributes\":{\"";

    memset(text + strlen(text), 'a', 64);
    strcat(text, "\":\"x\",\"b\":\"y\"}}");
    assert_true(read_into(&m, &t, text));
    assert_int_equal(t.in.n, 1);
    weir__members_free(&m);
}

TEST(test_members_of_a_query)
{
    struct weir__members m;
    struct target t;

    assert_true(read_into(&m, &t, "{\"text\":\"\"}"));
    assert_true(
        weir__members_set(&m, (struct weir__span){ "count", 5 }, (struct weir__span){ "12", 2 }));
    assert_int_equal(t.count, 12);
    assert_false(
        weir__members_set(&m, (struct weir__span){ "count", 5 }, (struct weir__span){ "12", 2 }));
    assert_string_equal(m.problem, "'count' is there twice");
    assert_false(
        weir__members_set(&m, (struct weir__span){ "countt", 6 }, (struct weir__span){ "12", 2 }));
    assert_string_equal(m.problem, "unknown member 'countt'; did you mean 'count'?");
    assert_false(weir__members_set(&m, (struct weir__span){ "attributes", 10 },
                                   (struct weir__span){ "x", 1 }));
    weir__members_free(&m);
}
