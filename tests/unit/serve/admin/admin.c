/* admin.c -- the verbs as rows: sound, found by command and route, and deaf to nonsense. */
#include "unit/test.h"

#include "unit/operator.h"

static const struct weir__schema *schema_of(const char *name)
{
    const struct weir__schema *s = weir__schemas;

    while (s->name && strcmp(s->name, name) != 0)
        s++;
    return s->name ? s : NULL;
}

static const struct weir__verb *by_path(const char *method, const char *path, bool *known)
{
    return weir__verb_by_path((struct weir__text){ method, strlen(method) },
                              (struct weir__text){ path, strlen(path) }, known);
}

TEST(test_S6_rows_are_sound)
{
    bool known;

    for (const struct weir__verb *row = weir__verbs; row->summary; row++) {
        bool words = false, optional = false;
        assert_true(row->summary[0] && (row->command || row->path));
        assert_true(row->run || row->begin || (!row->path || row->http));
        assert_true(row->run || row->begin || (!row->command || row->resp));
        assert_true(row->begin == NULL || (row->run == NULL && row->how == WEIR__VERB_AWAY));
        assert_true(row->how != WEIR__VERB_AWAY || row->role != WEIR__ROLE_NONE);
        assert_true((row->arity != 0) == (row->command && !row->run && !row->id) ||
                    row->args[0].name == NULL);
        if (row->command) /* no name is there twice */
            assert_ptr_equal(weir__verb_by_command(row->command, strlen(row->command)), row);
        if (row->path)
            assert_ptr_equal(by_path(row->method ? row->method : "GET", row->path, &known), row);
        if (row->path && row->answer[0] >= 'A' && row->answer[0] <= 'Z' &&
            strcmp(row->answer, "Settings") != 0)
            assert_non_null(schema_of(row->answer));
        for (const struct weir__arg *a = row->args; a->name; a++) {
            bool chosen = a->kind == WEIR__ARG_CHOICE || a->kind == WEIR__ARG_UNIT ||
                          a->kind == WEIR__ARG_SWITCH;
            assert_true(chosen == (a->choices != NULL) || a->kind == WEIR__ARG_COUNT);
            assert_true(a->word || a->kind == WEIR__ARG_ATTRIBUTES || !words);
            if (a->word == NULL && a->needed) /* those that may be missing are last */
                assert_false(optional);
            optional = optional || (a->word == NULL && !a->needed);
            words = words || a->word;
        }
    }
}

/* Every name in a type leads to a schema. */
TEST(test_S6_schemas_are_sound)
{
    for (const struct weir__schema *s = weir__schemas; s->name; s++)
        for (const struct weir__field *f = s->fields; f->name; f++) {
            char name[64] = "";
            sscanf(f->type + (f->type[0] == '['), "%63[A-Za-z]", name);
            if (name[0] >= 'A' && name[0] <= 'Z' && schema_of(name) == NULL)
                fail_msg("%s.%s: there is no schema %s", s->name, f->name, name);
        }
}

TEST(test_S6_rows_are_found)
{
    bool known;

    assert_string_equal(weir__verb_by_command("weir.bans", 9)->command, "WEIR.BANS");
    assert_null(weir__verb_by_command("WEIR.BANSX", 10));
    assert_null(weir__verb_by_command("WEIR.BAN\0", 9));
    assert_null(weir__verb_by_command("", 0));
    assert_null(by_path("PATCH", "/v1/bans", &known));
    assert_true(known);
    assert_null(by_path("get", "/v1/bans", &known)); /* methods have a case */
    assert_true(known);
    assert_null(by_path("GET", "/v1/bansx", &known));
    assert_false(known);
    assert_string_equal(by_path("DELETE", "/v1/bans", &known)->command, "WEIR.UNBAN");
}

/* Whatever is sent, the answer is a strict JSON text or one line that says what is wrong. */
TEST_WITH(test_S6_rows_take_anything, start, stop)
{
    static char long_text[100000];
    const struct weir__text odd[] = { { "", 0 },
                                      { "\0", 1 },
                                      { "per-ip", 6 },
                                      { "per-ip\0", 7 },
                                      { "*", 1 },
                                      { "\xff\xfe\x80", 3 },
                                      { "allow", 5 },
                                      { "ip", 2 },
                                      { "\r\n\x1b[31m\"\\{}", 11 },
                                      { "10m", 3 },
                                      { "99999999999999999999", 20 },
                                      { "-1", 2 },
                                      { "off", 3 },
                                      { long_text, sizeof(long_text) } };
    uint64_t seed = 4;

    memset(long_text, 'x', sizeof(long_text));
    for (const struct weir__verb *row = weir__verbs; row->summary; row++) {
        for (int i = 0; row->command && row->run && row->how == WEIR__VERB_AWAY && i < 300; i++) {
            struct weir__text words[8];
            size_t n = random64(&seed) % 8;
            for (size_t k = 0; k < n; k++)
                words[k] = odd[random64(&seed) % COUNT_OF(odd)];
            int status = run_spans(row, words, n);
            assert_true(status == 200 || status == 400 || status == 404 || status == 422);
        }
    }
}

TEST_WITH(test_S6_what_is_missing_is_said, start, stop)
{
    bad("WEIR.BAN", 400, "rule is missing");
    bad("WEIR.BAN per-ip", 400, "key is missing");
    bad("WEIR.BAN per-ip 192.0.2.7", 400, "for is missing");
    bad("WEIR.UNBAN per-ip", 400, "key is missing");
    bad("WEIR.MODE", 400, "mode is missing");
    bad("WEIR.LIST.ADD", 400, "list is missing");
    bad("WEIR.LIST.ADD allow", 400, "attribute is missing");
    bad("WEIR.LIST.ADD allow ip", 400, "entries are missing");
    bad("WEIR.RESET", 400, "rule is missing");
    bad("WEIR.RULES.SET", 400, "missing");
    bad("WEIR.EXPLAIN ip", 400, "'ip' has no value");
    bad("WEIR.EXPLAIN _ 1", 400, "the name of an attribute is empty");
}

GROUP(make_folder, free_answer)
