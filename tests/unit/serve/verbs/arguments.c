/* arguments.c -- arguments from JSON, a query and words: what is read, and what errors say. */
#include "unit/test.h"

#include "server/serve/verbs/verbs.h"

enum { TEXT, ANY, COUNT, WAIT };

static const struct weir__verb verb = {
    .command = "TEST.VERB",
    .summary = "A row of every kind.",
    .how = WEIR__VERB_AWAY,
    .args = { { .name = "text", .kind = WEIR__ARG_BODY, .needed = true },
              { .name = "any", .word = "ANY", .kind = WEIR__ARG_SCALAR },
              { .name = "count", .word = "COUNT", .kind = WEIR__ARG_COUNT, .otherwise = 1 },
              { .name = "wait", .word = "WAIT", .kind = WEIR__ARG_TIME },
              { .name = "took", .word = "TOOK", .kind = WEIR__ARG_TIME, .min = 1, .max = 9 },
              { .name = "unit", .word = "NS", .kind = WEIR__ARG_UNIT, .choices = "ms|ns" },
              { .name = "bound",
                .word = "BOUND",
                .kind = WEIR__ARG_SWITCH,
                .choices = "false|true" },
              { .name = "attributes", .word = "ATTRIBUTES", .kind = WEIR__ARG_ATTRIBUTES } },
};

static bool read_into(struct weir__verb_call *c, const char *text)
{
    weir__call_begin(c, &verb, NULL, true);
    return weir__call_json(c, (struct weir__text){ text, strlen(text) }) && weir__call_whole(c);
}

static void says(struct weir__verb_call *c, const char *text, const char *problem)
{
    if (strstr(c->message, problem) == NULL)
        fail_msg("%s: %s\n--- instead of ---\n%s", text, c->message, problem);
    assert_int_equal(c->status, 400);
    weir__call_end(c);
}

static void check_wrong(const char *text, const char *problem)
{
    struct weir__verb_call c;

    if (read_into(&c, text))
        fail_msg("%s: nothing was wrong", text);
    says(&c, text, problem);
}

/* "a COUNT 5": as RESP has them; "_" is empty. */
static bool read_words(struct weir__verb_call *c, const char *line)
{
    struct weir__text words[200];
    size_t n = 0;

    for (const char *at = line; *at; at += strspn(at, " ")) {
        words[n] = (struct weir__text){ at, strcspn(at, " ") };
        at += words[n].len;
        if (words[n].len == 1 && words[n].bytes[0] == '_')
            words[n].len = 0;
        n++;
    }
    weir__call_begin(c, &verb, NULL, false);
    return weir__call_words(c, words, n);
}

static void check_wrong_words(const char *line, const char *problem)
{
    struct weir__verb_call c;

    if (read_words(&c, line))
        fail_msg("%s: nothing was wrong", line);
    says(&c, line, problem);
}

static bool is(struct weir__text span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.bytes, text, span.len) == 0;
}

TEST(test_members)
{
    struct weir__verb_call c;

    assert_true(
        read_into(&c, " {\"text\":\"a\\n\\u00e9\",\"any\":1.5,\"count\":9223372036854775807}"));
    assert_true(is(c.values[TEXT].text, "a\n\xc3\xa9"));
    assert_true(is(c.values[ANY].text, "1.5"));
    assert_int_equal(c.values[COUNT].number, INT64_MAX);
    weir__call_end(&c);
    assert_true(read_into(&c, "{\"count\":null,\"text\":\"\",\"any\":true}"));
    assert_true(is(c.values[ANY].text, "true"));
    assert_fields(c, (values[TEXT].text.len, 0), (values[COUNT].number, 1));
    assert_false(weir__call_given(&c, COUNT));
    weir__call_end(&c);
}

/* Members have the unit in their name; words have the command's. */
TEST(test_times)
{
    static const struct {
        const char *json, *words;
        int64_t ns;
    } rows[] = {
        { "{\"text\":\"\"}", "a", 0 },
        { "{\"text\":\"\",\"wait_ms\":5}", "a WAIT 5", 5000000 },
        { "{\"text\":\"\",\"wait_ms\":5,\"unit\":\"ms\"}", "a wait 5", 5000000 },
        { "{\"text\":\"\",\"unit\":\"ns\",\"wait_ns\":5}", "a NS WAIT 5", 5 },
        { "{\"text\":\"\",\"wait_ms\":9223372036854775807}", "a WAIT FOREVER", WEIR_FOREVER },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct weir__verb_call c;
        assert_true(read_into(&c, rows[i].json));
        assert_int_equal(c.values[WAIT].number, rows[i].ns);
        weir__call_end(&c);
        assert_true(read_words(&c, rows[i].words));
        assert_int_equal(c.values[WAIT].number, rows[i].ns);
        weir__call_end(&c);
    }
    check_wrong("{\"text\":\"\",\"wait_ns\":5}", "'wait_ns' needs \"unit\":\"ns\"");
    check_wrong("{\"text\":\"\",\"wait_ms\":5,\"unit\":\"ns\"}", "'wait_ms' needs \"unit\":\"ms\"");
    check_wrong("{\"text\":\"\",\"wait_ns\":0}", "'wait_ns' needs \"unit\":\"ns\"");
    check_wrong("{\"wait_ms\":5,\"wait_ns\":5}", "is there twice");
    check_wrong_words("a TOOK FOREVER", "TOOK must be a whole number from 1 to 9");
    check_wrong_words("a TOOK 0", "TOOK must be a whole number from 1 to 9");
    check_wrong("{\"unit\":\"us\"}", "'unit' must be ms or ns, not 'us'");
}

TEST(test_words)
{
    struct weir__verb_call c;

    assert_true(read_words(&c, "a count 7 BOUND ANY _ attributes ip ::1 header.X y z _"));
    assert_true(is(c.values[TEXT].text, "a"));
    assert_int_equal(c.values[COUNT].number, 7);
    assert_true(weir__call_given(&c, ANY) && c.values[ANY].text.len == 0);
    assert_int_equal(c.n_attrs, 2); /* an empty value is a missing one */
    assert_true(is((struct weir__text){ c.attrs[1].name, c.attrs[1].name_len }, "header.X"));
    assert_true(weir__call_keep(&c));
    assert_string_equal(c.values[TEXT].text.bytes, "a");
    assert_string_equal(c.attrs[0].value, "::1");
    weir__call_end(&c);
    check_wrong_words("", "wrong number of arguments for 'test.verb' command: text is missing");
    check_wrong_words("a COUNT -1", "COUNT must be a whole number from 0");
    check_wrong_words("a COUNT 1 COUNT 2", "COUNT is there twice");
    check_wrong_words("a COUNT 1 ip", "'ip' has no value");
    check_wrong_words("a ip 1 COUNT 2", "options come before the attributes, and COUNT is one");
    check_wrong_words("a ip 1 BOUND", "options come before the attributes, and BOUND is one");
    check_wrong_words("a ATTRIBUTES ip 1 COUNT 2", "usage: TEST.VERB text [ANY any] [COUNT n]");
    check_wrong_words("a GUARD search", "TEST.VERB asks no guard: enter does, WEIR.ENTER GUARD");
    check_wrong_words("a ip 1 GUARD search", "TEST.VERB asks no guard");
    check_wrong_words("a _ 1", "the name of an attribute is empty");
}

TEST(test_members_of_a_long_text_with_escapes)
{
    struct weir__verb_call c;
    char text[6000] = "{\"text\":\"\\t";

    memset(text + strlen(text), 'x', 4000);
    strcat(text, "\"}");
    assert_true(read_into(&c, text));
    assert_fields(c, (values[TEXT].text.len, 4001), (values[TEXT].text.bytes[0], '\t'));
    weir__call_end(&c);
}

TEST(test_what_is_wrong)
{
    check_wrong("", "the body is empty: a JSON object is needed");
    check_wrong("[]", "the body must be a JSON object, not an array");
    check_wrong("[{\"text\":1}]", "the body must be a JSON object, not an array");
    check_wrong("\"x\"", "the body must be a JSON object, not 'x'");
    check_wrong("{\"text\" 1}", "the body is not JSON: at byte 9 ':' was expected");
    check_wrong("{\"text\":\"a\"", "the body is not JSON: at byte 12");
    check_wrong("{}", "'text' is missing");
    check_wrong("{\"text\":null}", "'text' is missing");
    check_wrong("{\"txet\":\"a\"}", "unknown member 'txet'; did you mean 'text'?");
    check_wrong("{\"nonsense\":{\"deep\":1}}", "unknown member 'nonsense'; known are text, any, "
                                               "count, wait_ms, took_ms, unit, bound, attributes");
    check_wrong("{\"text\":{\"a\":1}}", "'text' must be a string, not '{...}'");
    check_wrong("{\"text\":\"a\",\"text\":\"b\"}", "'text' is there twice");
    check_wrong("{\"count\":\"1\"}",
                "'count' must be a whole number from 0 to 9223372036854775807, not a string");
    check_wrong("{\"count\":-1}", "'count' must be a whole number from 0");
    check_wrong("{\"count\":1.5}", "'count' must be a whole number");
    check_wrong("{\"count\":1e3}", "'count' must be a whole number");
    check_wrong("{\"count\":9223372036854775808}", "to 9223372036854775807");
    check_wrong("{\"attributes\":5}", "'attributes' must be an object, not '5'");
    check_wrong("{\"attributes\":[\"a\"]}", "'attributes' must be an object, not '[...]'");
    check_wrong("{\"attributes\":[{\"a\":1}]}", "'attributes' is an object of strings, numbers, "
                                                "true and false, with no objects or arrays in it");
    check_wrong("{\"attributes.ip\":\"a\"}", "unknown member 'attributes.ip'");
    check_wrong("{\"attributes.ip\":{\"a\":1}}", "unknown member 'attributes.ip'");
    check_wrong("{\"text\":[1]}", "'text' must be a string, not '[...]'");
    check_wrong("{\"text\":{\"a\":{\"b\":1}}}", "'text' must be a string, not '{...}'");
    check_wrong("{\"attributes\":{\"\":\"a\"}}", "the name of an attribute is empty");
}

TEST(test_attributes)
{
    struct weir__verb_call c;

    assert_true(read_into(&c, "{\"text\":\"\",\"attributes\":{\"ip\":\"::1\",\"n\":7,\"none\":null,"
                              "\"empty\":\"\",\"header.X-App\":false}}"));
    assert_int_equal(c.n_attrs, 3);
    assert_true(is((struct weir__text){ c.attrs[1].value, c.attrs[1].value_len }, "7"));
    assert_true(is((struct weir__text){ c.attrs[2].name, c.attrs[2].name_len }, "header.x-app"));
    assert_true(is((struct weir__text){ c.attrs[2].value, c.attrs[2].value_len }, "false"));
    weir__call_end(&c);
    check_wrong("{\"attributes\":{\"a\":\"1\",\"a\":\"2\"}}", "the attribute 'a' is there twice");
    check_wrong("{\"attributes\":{\"header.a\":\"1\",\"header.A\":\"2\"}}", "is there twice");
    check_wrong("{\"attributes\":{\"header\":{\"a\":\"2\"}}}", "with no objects or arrays in it");
    check_wrong("{\"attributes\":{\"a\":[\"2\"]}}", "with no objects or arrays in it");
    /* {} is what JavaScript makes of a promise: no missing address */
    check_wrong("{\"attributes\":{\"ip\":{}}}", "with no objects or arrays in it");
    check_wrong("{\"attributes\":{\"ip\":[]}}", "with no objects or arrays in it");
    check_wrong("{\"text\":{}}", "'text' must be a string, not '{}'");
    check_wrong("{\"count\":[]}", "'count' must be a whole number");
    check_wrong("{\"counts\":{}}", "unknown member 'counts'");
    assert_true(read_into(&c, "{\"text\":\"\",\"attributes\":[]}")); /* as PHP has it */
    weir__call_end(&c);
    check_wrong("{\"attributes\":{\"a\\u0000b\":1}}", "NUL byte");
}

/* Dots belong to a name, and digits are one. */
TEST(test_attribute_names_with_dots)
{
    struct weir__verb_call c;

    assert_true(read_into(&c, "{\"text\":\"\",\"attributes\":{\"0\":1,\"a.b.c\":2,\".\":3}}"));
    assert_int_equal(c.n_attrs, 3);
    assert_true(is((struct weir__text){ c.attrs[0].name, c.attrs[0].name_len }, "0"));
    assert_true(is((struct weir__text){ c.attrs[1].name, c.attrs[1].name_len }, "a.b.c"));
    assert_true(is((struct weir__text){ c.attrs[2].name, c.attrs[2].name_len }, "."));
    weir__call_end(&c);
}

TEST(test_attributes_stay_in_their_room)
{
    struct weir__verb_call c;
    static const char two[] = "{\"text\":\"\",\"attributes\":{\"abc\":1,\"def\":2}}";
    char many[2000] = "{\"attributes\":{\"x\":0";

    weir__call_begin(&c, &verb, NULL, true);
    c.names_end = c.names + 5;
    assert_false(weir__call_json(&c, (struct weir__text){ two, sizeof(two) - 1 }));
    assert_string_equal(c.message, "the names of the attributes are too long");
    assert_int_equal(c.n_attrs, 1);
    weir__call_end(&c);
    for (int i = 0; i < WEIR__CALL_ATTRS; i++)
        snprintf(many + strlen(many), 16, ",\"a%d\":1", i);
    strcat(many, "}}");
    check_wrong(many, "more than 64 attributes");
}

/* No rule can look at it, so it is no mistake to send it. */
TEST(test_attribute_with_a_long_name)
{
    struct weir__verb_call c;
    char text[600] = "{\"text\":\"\",\"attributes\":{\"";

    memset(text + strlen(text), 'a', 64);
    strcat(text, "\":\"x\",\"b\":\"y\"}}");
    assert_true(read_into(&c, text));
    assert_int_equal(c.n_attrs, 1);
    weir__call_end(&c);
}

static bool set(struct weir__verb_call *c, const char *name, const char *value)
{
    return weir__call_member(c, (struct weir__text){ name, strlen(name) },
                             (struct weir__text){ value, strlen(value) });
}

TEST(test_members_of_a_query)
{
    struct weir__verb_call c;

    assert_true(read_into(&c, "{\"text\":\"\"}"));
    assert_true(set(&c, "count", "12"));
    assert_int_equal(c.values[COUNT].number, 12);
    assert_false(set(&c, "count", "12"));
    assert_string_equal(c.message, "'count' is there twice");
    assert_false(set(&c, "countt", "12"));
    assert_string_equal(c.message, "unknown member 'countt'; did you mean 'count'?");
    assert_false(set(&c, "attributes", "x"));
    assert_false(set(&c, "bound", "x"));
    weir__call_end(&c);
}
