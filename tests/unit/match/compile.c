/* compile.c -- from text or a file to a rule set: what is compiled, and that one mistake leaves
 * nothing. */
#include "unit/test.h"

#include "unit/requests.h"

TEST(test_what_a_rule_becomes)
{
    struct weir_rules *set = rules_of(
        RULES("- { name: a, limit: 1/s }\n"
              "- { name: b, key: \"{account}\", limit: [300/60, 100/5], match: { uri: /x } }\n"
              "- { name: c, key: \"{ip}\", limit: 1/s, cost: \"{bytes}\" }\n"
              "- { name: d, key: \"{ip/24}\", limit: 1/s, not: { method: [GET, HEAD] } }\n"
              "- { name: e, key: \"{ip}:{account|-}\", limit: 1/s }\n"
              "- { name: f, key: \"{account|-}\", limit: 1/s }\n"));
    static const uint8_t kinds[] = { WEIR__KEY_NONE, WEIR__KEY_VALUE, WEIR__KEY_ADDRESS,
                                     WEIR__KEY_MADE, WEIR__KEY_MADE,  WEIR__KEY_MADE };
    static const uint32_t firsts[] = { 0, 1, 3, 4, 5, 6 };

    assert_fields(*set, (n_rules, COUNT_OF(kinds)), (n_limits, 7));
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        assert_fields(set->rules[i], (key_kind, kinds[i]), (first_limit, firsts[i]));
    }
    assert_fields(*set, (rules[0].cost_attribute, -1),
                  (rules[2].cost_attribute, weir__attribute_find(&set->attributes, "bytes", 5)),
                  (rules[1].matches, 1), (rules[3].excepts, 1),
                  (clauses[set->rules[3].clauses_first].n, 2), (attributes.n, 5));
    weir_rules_destroy(set);
    weir_rules_destroy(NULL);
}

TEST(test_R3_lists_are_looked_at_though_no_rule_does)
{
    OWN(weir_rules) *set = rules_of("version: 1\nlists: { deny: { country: [xx] } }\n");
    assert_int_equal(set->n_rules, 0);
    assert_true(weir__attribute_find(&set->attributes, "country", 7) >= 0);
}

TEST(test_R6_a_text_with_one_mistake_is_no_rule_set)
{
    static const struct {
        const char *yaml, *says;
    } cases[] = {
        { "", "rules:" },
        { "version: 2\n", "rules:1:10: " },
        { RULES("- { name: a }\n"), "no limit" },
        { RULES("- { name: a, limit: 1/s }\n- { name: a, limit: 1/s }\n"), "rules:4:" },
        { RULES("- { name: a, limit: 1/parsec }\n"), "rules:3:" },
        { RULES("- { name: a, limit: 1/s, key: \"{ip\" }\n"), "rules:3:" },
        { RULES("- { name: a, limit: 1/s, match: { ip: 10.0.0.1/8 } }\n"), "rules:3:" },
        { RULES("- { name: a, limit: 1/s, match: { ip: { list: offise } } }\n"), "offise" },
        { RULES("- { name: a, limit: 10/month zone=Mars/Phobos }\n"), "Mars/Phobos" },
        { RULES("- { name: a, limit: 1/s, ban: { refusals: 5/60 } }\n"), "length" },
        { "version: 1\nrules: [\n", "rules:" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct weir_rules *set = (void *)0x5a;
        struct weir_error error = { 0 };
        assert_int_equal(weir_rules_parse(&set, cases[i].yaml, strlen(cases[i].yaml), NULL, &error),
                         WEIR_INVALID);
        assert_ptr_equal(set, (void *)0x5a);
        assert_contains(error.text, cases[i].says);
        assert_int_equal(weir_rules_parse(&set, cases[i].yaml, strlen(cases[i].yaml), NULL, NULL),
                         WEIR_INVALID);
    }
}

static void count_problem(void *context, const struct weir_problem *problem)
{
    int *count = context;

    assert_true(problem->line > 0 && problem->column > 0);
    assert_true(problem->text[0] != '\0');
    ++*count;
}

TEST(test_R6_every_mistake_is_told)
{
    static const char yaml[] = RULES("- { name: a, limit: 1/x }\n- { nmae: b, limit: 1/s }\n- { "
                                     "name: c, limit: 1/s, mode: of }\n");
    struct weir_rules *set = NULL;
    struct weir_error error = { 0 };
    int count = 0;
    struct weir_rules_options options = { .name = "my.yaml",
                                          .problem = count_problem,
                                          .context = &count };

    assert_int_equal(weir_rules_parse(&set, yaml, sizeof(yaml) - 1, &options, &error),
                     WEIR_INVALID);
    assert_true(count >= 3);
    assert_int_equal(strncmp(error.text, "my.yaml:3:", 10), 0); /* the first */
}

TEST(test_the_most_attributes)
{
    char yaml[4000];

    for (int n = 64; n <= 65; n++) {
        OWN(weir_rules) *set = NULL;
        size_t len = (size_t)snprintf(yaml, sizeof(yaml),
                                      "version: 1\nrules:\n- name: a\n  limit: 1/s\n  match: {");
        for (int i = 0; i < n; i++)
            len += (size_t)snprintf(yaml + len, sizeof(yaml) - len, "%s a%d: x", i ? "," : "", i);
        len += (size_t)snprintf(yaml + len, sizeof(yaml) - len, " }\n");
        assert_int_equal(weir_rules_parse(&set, yaml, len, NULL, NULL),
                         n == 64 ? WEIR_OK : WEIR_INVALID);
    }
}

/* ------------------------------------------------------------------ files ---- */

/* 65 limits on every request: none could pass. */
TEST(test_R2_more_limits_on_every_request_than_can_be_asked)
{
    static const char *const keys[] = { "", "{ip|none}", "{ip}" };

    for (size_t i = 0; i < COUNT_OF(keys); i++)
        for (int rules = 64; rules <= 65; rules++) {
            char yaml[8192];
            size_t len = (size_t)sprintf(yaml, "version: 1\nrules:\n");
            for (int k = 0; k < rules; k++)
                len += (size_t)sprintf(yaml + len, "- { name: r%d, key: \"%s\", limit: 1/s }\n", k,
                                       keys[i]);
            struct weir_rules *set = NULL;
            struct weir_error error = { 0 };
            bool fits = rules == 64 || i == 2;
            assert_int_equal(weir_rules_parse(&set, yaml, len, NULL, &error),
                             fits ? WEIR_OK : WEIR_INVALID);
            assert_true(fits || strstr(error.text, "65 limits apply to every request"));
            weir_rules_destroy(set);
        }
}

TEST(test_R6_rules_from_a_file)
{
    static const char yaml[] = RULES(
        "- { name: a, limit: 1/s, match: { ip: { list: office } } }\n") "lists: { office: { ip: { "
                                                                        "file: office.txt } } }\n";
    static const char office[] = "# two networks\n10.0.0.0/8\n\n192.0.2.0/24\n";
    struct weir_rules *set = NULL;
    struct weir_error error = { 0 };
    char path[320], list[320];

    snprintf(path, sizeof(path), "%s/rules.yaml", folder);
    snprintf(list, sizeof(list), "%s/office.txt", folder);
    write_at(path, 0, yaml, sizeof(yaml) - 1);
    assert_int_equal(weir_rules_read(&set, path, NULL, &error),
                     WEIR_INVALID); /* the list's file is not there */
    assert_null(set);
    assert_contains(error.text, "office.txt");
    write_at(list, 0, office, sizeof(office) - 1);
    if (weir_rules_read(&set, path, NULL, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    assert_int_equal(set->lists->lists[0].n, 2);
    weir_rules_destroy(set);
    set = NULL;
    assert_int_equal(weir_rules_parse(&set, yaml, sizeof(yaml) - 1, NULL, &error),
                     WEIR_INVALID); /* a text has no files unless told so */
    assert_null(set);
}

TEST(test_R6_files_that_cannot_be_read)
{
    struct weir_rules *set = NULL;
    struct weir_error error = { 0 };

    assert_int_equal(weir_rules_read(&set, new_path(), NULL, &error), WEIR_SYSTEM);
    assert_contains(error.text, folder);
    assert_int_equal(weir_rules_read(&set, folder, NULL, &error), WEIR_INVALID); /* a directory */
    assert_contains(error.text, "is not a regular file");
    const char *pipe = new_path();
    assert_int_equal(mkfifo(pipe, 0600), 0); /* nobody waits for its writer */
    assert_int_equal(weir_rules_read(&set, pipe, NULL, &error), WEIR_INVALID);
    assert_contains(error.text, "is not a regular file");
    assert_null(set);
}

/* Longer than one read, with the mistake on its last line: the place is right. */
TEST(test_R6_a_long_file_names_its_line)
{
    enum { MANY = 5000 };
    struct weir_rules *set = NULL;
    struct weir_error error = { 0 };
    const char *path = new_path();
    char want[400];
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "version: 1\nrules:\n");
    for (int i = 0; i < MANY; i++)
        fprintf(f, "- { name: r%d, key: \"{ip}\", limit: 300/60, match: { org: o%d } }\n", i, i);
    fprintf(f, "- { name: last, limit: 5/fortnight }\n");
    fclose(f);
    assert_int_equal(weir_rules_read(&set, path, NULL, &error), WEIR_INVALID);
    snprintf(want, sizeof(want), "%s:%d:", path, MANY + 3);
    assert_contains(error.text, want);
}

GROUP(make_folder, remove_folder)
