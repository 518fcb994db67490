/* admin-rules.c -- the rules: shown, set, checked, reloaded. */
#include "unit/test.h"

#include "unit/operator.h"

TEST_WITH(test_S6_rules_are_shown, start, stop)
{
    good("WEIR.RULES");
    answers("text", rules_text, "cause", "start", "version", "1", "problem_at", "null");
    assert_int_equal(strlen(value_in(answered.bytes, answered.len, "hash")), 16);
}

TEST_WITH(test_S6_rules_set, start, stop)
{
    char hash[32];

    good("WEIR.RULES");
    snprintf(hash, sizeof(hash), "%.31s", value_in(answered.bytes, answered.len, "hash"));
    assert_int_equal(run_text("WEIR.RULES.SET", one_rule, strlen(one_rule)), 200);
    answers("rules", "1", "cause", "api", "version", "2");
    assert_string_not_equal(value_in(answered.bytes, answered.len, "hash"), hash);
    assert_non_null(event_of(WEIR__EVENT_RELOAD, "hash"));
    good("WEIR.RULES");
    answers("text", one_rule);
    bad("WEIR.BAN per-ip 192.0.2.7 1m", 404, "no rule 'per-ip'");
    good("WEIR.BAN only 192.0.2.7 1m");
}

/* R6: all that is wrong is told, and the old rules stay. */
TEST_WITH(test_S6_rules_refused, start, stop)
{
    static const char wrong[] =
        "version: 1\nrules:\n- { name: one, limt: 7/60 }\n- { name: two, limit: 7/0 }\n";

    for (int check = 0; check < 2; check++) {
        const char *command = check ? "WEIR.RULES.CHECK" : "WEIR.RULES.SET";
        assert_int_equal(run_text(command, wrong, strlen(wrong)), 422);
        assert_contains(last.message, "limt");
        answers("problems.0.line", "3");
        assert_non_null(value_in(answered.bytes, answered.len, "problems.0.column"));
        assert_contains(value_in(answered.bytes, answered.len, "problems.0.text"), "limt");
        answers("problems.1.line", "4");
        assert_int_equal(run_text(command, "", 0), 422);
        assert_int_equal(run_text(command, "\0\xff", 2), 422);
    }
    good("WEIR.RULES");
    answers("text", rules_text, "version", "1");
}

TEST_WITH(test_S6_rules_check_changes_nothing, start, stop)
{
    assert_int_equal(run_text("WEIR.RULES.CHECK", one_rule, strlen(one_rule)), 200);
    assert_memory_equal(answered.bytes, "{\"problems\":[]}", answered.len);
    good("WEIR.RULES");
    answers("text", rules_text, "version", "1");
}

TEST_WITH(test_S6_rules_reload, start, stop)
{
    write_rules(one_rule);
    good("WEIR.RULES.RELOAD");
    answers("rules", "1");
    write_rules("version: 1\nrules: 7\n");
    assert_int_equal(run("WEIR.RULES.RELOAD"), 422);
    assert_contains(last.message, "rules");
    answers("problems.0.line", "2");
    assert_string_not_equal(value_in(answered.bytes, answered.len, "problems.0.column"), "0");
    assert_null(strstr(value_in(answered.bytes, answered.len, "problems.0.text"), rules_path));
    assert_non_null(event_of(WEIR__EVENT_RELOAD_FAILED, "text"));
    good("WEIR.RULES");
    answers("text", one_rule);
    assert_string_not_equal(value_in(answered.bytes, answered.len, "problem"), "null");
}

GROUP(make_folder, free_answer)
