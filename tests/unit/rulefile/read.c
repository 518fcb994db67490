/* read.c -- rule files: what each key means, what is refused and where the problem points. */
#include "unit/test.h"

#include "unit/reading.h"

OWNS(weir__draft)

/* ------------------------------------------------------------- the whole ---- */

TEST(test_R6_good_file_read_whole)
{
    struct weir__draft *d = read_good(
        "version: 1\nmode: shadow\nrules:\n  - { name: a, limit: 300/60, about: for people }\n"
        "  - { name: b.B_2-, limit: 1/s, mode: off, keys: 10, cost: 0 }\nlists: { deny: { account: "
        "[x] } }\n");

    assert_fields(*d, (mode, WEIR_SHADOW), (n_rules, 2));
    assert_string_equal(d->rules[0].name, "a");
    assert_string_equal(d->rules[0].about, "for people");
    assert_string_equal(d->rules[0].key, "");
    assert_fields(d->rules[0], (cost, 1), (mode, WEIR_ENFORCE));
    assert_fields(d->rules[0].mark, (line, 4), (column, 5));
    assert_string_equal(d->rules[1].name, "b.B_2-");
    assert_null(d->rules[1].about);
    assert_fields(d->rules[1], (mode, WEIR_OFF), (keys, 10), (cost, 0));
    assert_int_equal(d->n_lists, 1);
    weir__draft_destroy(d);
    d = read_good("version: 1");
    assert_int_equal(d->mode, WEIR_ENFORCE);
    assert_int_equal(d->n_rules + d->n_lists, 0);
    weir__draft_destroy(d);
    weir__draft_destroy(NULL);
}

TEST(test_R6_bad_file_refused_whole)
{
    static const char text[] =
        "version: 1\nrules:\n  - { name: good, limit: 1/s }\n  - { name: bad, limit: 1/q }\n";
    struct weir_error error = { 0 };
    struct told told = read_bad_bytes(text, strlen(text), "some/rules.yaml", &error);

    assert_int_equal(told.n, 1);
    assert_contains(error.text, "some/rules.yaml:4:27: limit: unknown unit 'q'");
    assert_int_equal(error.column, 27);
    assert_string_equal(told.problems[0].source, "  - { name: bad, limit: 1/q }");
    assert_int_equal(told.problems[0].caret, 26);

    struct weir__draft *draft = NULL;
    assert_int_equal(weir__draft_read(&draft, text, strlen(text), NULL, NULL),
                     WEIR_INVALID); /* nobody has to listen */
    assert_null(draft);
}

TEST(test_R6_several_problems_at_once)
{
    struct told told = read_bad("version: 3\nmode: shdow\nrules:\n  - { name: a, limt: 1/s }\n  - "
                                "{ name: a b, limit: 1/q, key: '{' }\n"
                                "  - { name: c, limit: 1/s, match: { uri: x, ip: y } }\nlists: { "
                                "deny: [] }\nzone: Nowhere\n");
    static const int lines[] = { 1, 2, 4, 5, 5, 5, 6, 6, 7, 8 };

    assert_int_equal(told.n, COUNT_OF(lines));
    for (size_t i = 0; i < told.n; i++)
        assert_int_equal(told.problems[i].line, lines[i]);
}

TEST(test_R6_hundred_problems_and_the_rest_counted)
{
    char text[8192] = "version: 1\nrules:\n";

    for (int i = 0; i < 150; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "  - { name: r%d, limit: 1/q }\n", i);
    struct told told = read_bad(text);
    assert_int_equal(told.n, 101);
    assert_string_equal(told.problems[100].text, "and 50 more");
    assert_fields(told.problems[100], (line, 0), (caret, -1));
}

/* ---------------------------------------------------------------- places ---- */

TEST(test_R6_columns_count_characters)
{
    struct told told =
        read_bad("version: 1\nrules: [{ about: \"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\", nmae: a, "
                 "limit: 1/s }]\n");

    assert_fields(told, (n, 1), (problems[0].column, 25));
    assert_int_equal(told.problems[0].caret, 30); /* in bytes */
}

/* ------------------------------------------------------------ wrong files ---- */

TEST(test_R6_empty_files)
{
    static const char *const texts[] = { "", "\n\n", "# only this\n", "\xEF\xBB\xBF",
                                         "---\n...\n" };

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct told told = read_bad(texts[i]);
        assert_int_equal(told.n, 1);
    }
    assert_contains(read_bad("").problems[0].text, "the file is empty");
}

TEST(test_R6_bytes_that_are_no_text)
{
    struct weir_error error = { 0 };
    struct told told = read_bad_bytes("version: 1\nzone: a\0b\n", 21, NULL, &error);

    assert_int_equal(told.problems[0].column, 8);
    assert_contains(told.problems[0].text, "control character");
    assert_string_equal(read_bad("zone: a\x1b[0m\n").problems[0].source, "zone: a?[0m");
}

/* ------------------------------------------------------------------ bounds ---- */

TEST(test_R6_aliases_that_explode)
{
    char text[4096] = "version: 1\nrules:\n  - &a0 [x, x, x, x, x, x, x, x, x, x]\n";

    for (int i = 1; i < 20; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 "  - &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    assert_contains(read_bad(text).problems[0].text, "too much in here");
}

/* Many times a mapping that is merged from a large one. */
TEST(test_R6_merges_that_explode)
{
    size_t size = 1 << 20, used;

    FINALLY(memory_drop) char *text = malloc(size);
    assert_non_null(text);
    used = (size_t)snprintf(text, size, "version: 1\nlists: { a: &a {");
    for (int i = 0; i < 20000; i++)
        used += (size_t)snprintf(text + used, size - used, "k%d: x,", i);
    used += (size_t)snprintf(text + used, size - used, "}}\nrules:\n");
    for (int i = 0; i < 1000; i++)
        used += (size_t)snprintf(text + used, size - used, "  - <<: *a\n");
    struct told told = read_bad(text);
    assert_contains(told.problems[0].text, "too large");
}

TEST(test_R6_depth)
{
    char text[512] = "version: 1\nrules: ";

    memset(text + strlen(text), '[', 200);
    assert_contains(read_bad(text).problems[0].text, "too many lists and mappings in each other");
}

TEST(test_R6_most_rules)
{
    size_t size = 4 << 20, used;

    FINALLY(memory_drop) char *text = malloc(size);
    assert_non_null(text);
    used = (size_t)snprintf(text, size, "version: 1\nrules:\n");
    for (int i = 0; i <= WEIR__RULES_MAX; i++)
        used += (size_t)snprintf(text + used, size - used, "  - { name: r%d, limit: 1/s }\n", i);
    struct told told = read_bad(text);
    assert_int_equal(told.n, 1);
    assert_contains(told.problems[0].text, "there are 32769 rules; the most is 32768");
    *strstr(text, "  - { name: r32768,") = '\0';
    OWN(weir__draft) *d = read_good(text);
    assert_int_equal(d->n_rules, WEIR__RULES_MAX);
}

TEST(test_R1_most_attributes)
{
    char text[4096] = "version: 1\nrules:\n  - name: a\n    limit: 1/s\n    key: \"{k1}:{k2}\"\n   "
                      " cost: \"{c}\"\n    match: { ";

    for (int i = 0; i < WEIR__ATTRIBUTES_MAX - 3; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "a%d: x, ", i);
    char *end = text + strlen(text);
    strcpy(end, "}\n");
    weir__draft_destroy(read_good(text));
    strcpy(end, "one-more: x }\n");
    assert_contains(read_bad(text).problems[0].text, "one attribute too many");
}

/* -------------------------------------------------------------- R7: limits ---- */

static struct weir_limit first_limit(const char *text)
{
    OWN(weir__draft) *d = read_good(text);
    struct weir_limit limit = d->rules[0].limits[0];
    assert_true(d->rules[0].n_limits >= 1);
    return limit;
}

TEST(test_R7_short_syntax)
{
    static const char *const spellings[] = { "300/60", "100/5s",          "10r/s",
                                             "6r/m",   "1000/h burst 50", "gcra 5/1m burst 3" };

    for (size_t i = 0; i < COUNT_OF(spellings); i++) {
        char text[256], got[128], wanted[128];
        snprintf(text, sizeof(text), "version: 1\nrules: [{ name: a, limit: %s }]\n", spellings[i]);
        struct weir_limit limit = first_limit(text), expected = limit_of(spellings[i]);
        weir_limit_print(got, sizeof(got), &limit);
        weir_limit_print(wanted, sizeof(wanted), &expected);
        assert_string_equal(got, wanted);
    }
}

TEST(test_R7_several_limits)
{
    struct weir__draft *d = read_good("version: 1\nrules:\n  - name: a\n    algorithm: gcra\n    "
                                      "limit: [300/60, sliding-log 100/5]\n");

    assert_int_equal(d->rules[0].n_limits, 2);
    assert_string_equal(d->rules[0].limits[0].algorithm, "gcra");
    assert_string_equal(d->rules[0].limits[1].algorithm, "sliding-log");
    weir__draft_destroy(d);
    assert_null(first_limit("version: 1\nrules: [{ name: a, limit: 1/s }]\n").algorithm);
}

TEST(test_R7_calendar_windows_take_the_zone)
{
    static const char in_file[] =
        "version: 1\nzone: UTC\nrules: [{ name: a, limit: 10/month, algorithm: gcra }]\n";
    static const char in_rule[] =
        "version: 1\nzone: Nowhere/Else\nrules: [{ name: a, limit: 10/month, zone: UTC }]\n";
    struct weir_limit limit = first_limit(in_file);

    assert_int_equal(limit.calendar, WEIR_MONTH);
    assert_string_equal(limit.zone, "UTC");
    assert_true(limit.algorithm == NULL ||
                strcmp(limit.algorithm, "calendar") ==
                    0); /* what it is says more than what the rule says */
    assert_problem(in_rule, 2, 7, "unknown time zone");
    assert_string_equal(
        first_limit("version: 1\nzone: UTC\nrules: [{ name: a, limit: 10/60 }]\n").zone, "");
}

/* ----------------------------------------------------------------- R4: bans ---- */

static struct weir__ban_draft ban_of(const char *members)
{
    OWN(weir__draft) *d = read_rule(members);
    struct weir__ban_draft ban = d->rules[0].ban;
    return ban;
}

TEST(test_R4_ban)
{
    const weir_time minute = 60 * S, hour = 60 * minute, day = 24 * hour;
    struct weir__ban_draft b = ban_of("ban: { refusals: 50/60s, for: 10m }");

    assert_fields(b, (set, true), (refusals.count, 50));
    assert_string_equal(b.refusals.algorithm, "sliding-window");
    assert_fields(b, (length, 10 * minute), (factor, 1), (longest, 10 * minute),
                  (forget, 100 * minute));
    b = ban_of("ban: { refusals: gcra 50/60s, for: 60, escalate: 2 }");
    assert_string_equal(b.refusals.algorithm, "gcra");
    assert_fields(b, (length, minute), (factor, 2), (longest, 30 * day), (forget, hour));
    b = ban_of("ban: { refusals: 5/m, for: 40d, escalate: 3 }");
    assert_int_equal(b.longest, 40 * day);
    b = ban_of("ban: { refusals: 5/m, for: 1m, escalate: 3, longest: 1h, forget: 2h }");
    assert_fields(b, (longest, hour), (forget, 2 * hour));
    b = ban_of("ban: { refusals: 5/m, for: 3650d }");
    assert_int_equal(b.forget, 3650 * day);
    assert_false(ban_of("cost: 1").set);
}

/* ----------------------------------------------------------- anchors, JSON ---- */

TEST(test_R6_anchors_and_merges)
{
    OWN(weir__draft) *d =
        read_good("version: 1\nrules:\n  - &a { name: a, limit: &l [7/s, 8/m], key: &k \"{ip}\" }\n"
                  "  - { <<: *a, name: b, limit: 5/s }\n  - { name: c, key: *k, limit: *l }\n"
                  "  - { <<: [{ cost: 7 }, *a], name: d }\n");
    assert_int_equal(d->n_rules, 4);
    assert_string_equal(d->rules[1].name, "b");
    assert_string_equal(d->rules[1].key, "{ip}");
    assert_fields(*d, (rules[1].n_limits, 1), (rules[1].limits[0].count, 5), (rules[2].n_limits, 2),
                  (rules[3].cost, 7), (rules[3].n_limits, 2));
}

/* Refused inside single quotes only: libfyaml reads them wrong there. */
TEST(test_R6_quotes_behind_quotes)
{
    weir__draft_destroy(read_good("version: 1\nmode: 'shadow' # ''''\n"));
}

TEST(test_R6_json_is_yaml)
{
    OWN(weir__draft) *d = read_good("{\"version\":1,\"rules\":[{\"name\":\"a\",\"limit\":[\"1/"
                                    "s\"],\"match\":{\"uri\":\"/a\\u0062\"}}]}");
    assert_string_equal(d->rules[0].match[0].patterns[0].text, "/ab");
}

/* A file that is one line: places must not be counted from its beginning each time, or this takes
 * minutes. */
TEST(test_R6_one_long_line)
{
    size_t size = 4 << 20, used;

    FINALLY(memory_drop) char *text = malloc(size);
    assert_non_null(text);
    used = (size_t)snprintf(text, size, "{ version: 1, rules: [");
    for (int i = 0; i < 30000; i++)
        used += (size_t)snprintf(
            text + used, size - used,
            "{ name: r%d, limit: [1/s, 2/m], key: \"{ip}\", match: { uri: /p%d } }, ", i, i);
    snprintf(text + used, size - used, "] }");
    OWN(weir__draft) *d = read_good(text);
    assert_fields(*d, (n_rules, 30000), (rules[29999].mark.line, 1),
                  (rules[29999].mark.column, (int)(strstr(text, "{ name: r29999,") - text) + 1));
}

GROUP(make_folder, remove_folder)
