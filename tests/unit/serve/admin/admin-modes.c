/* admin-modes.c -- the modes of rules. */
#include "unit/test.h"

#include "unit/operator.h"

TEST_WITH(test_R5_switch, start, stop)
{
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7", NOW), 2);
    good("WEIR.MODES");
    answers("as_written", "enforce", "by_hand", "null", "in_force", "enforce", "rules.0.rule",
            "per-ip", "rules.0.as_written", "enforce", "rules.0.by_hand", "null", "rules.0.allowed",
            "2", "rules.0.refused", "3", "rules.0.banned", "0", "rules.2.as_written", "shadow",
            "rules.2.in_force", "shadow");
    good("WEIR.MODE shadow per-ip");
    answers("rule", "per-ip", "by_hand", "shadow", "in_force", "shadow");
    told(WEIR__EVENT_MODE, "rule", "per-ip");
    told(WEIR__EVENT_MODE, "mode", "shadow");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.MODE as-written per-ip");
    answers("by_hand", "null", "in_force", "enforce");
    assert_false(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.MODE off");
    answers("rule", "null", "by_hand", "off", "as_written", "enforce");
    assert_true(passes(server.engine, "ip=192.0.2.7", NOW));
    good("WEIR.MODES");
    answers("in_force", "off", "rules.0.in_force", "off", "rules.0.shadow_refused", "1");
    good("WEIR.MODE as-written");
    assert_false(passes(server.engine, "ip=192.0.2.7", NOW));
}

TEST_WITH(test_R5_wrong_switch, start, stop)
{
    bad("WEIR.MODE enfroce", 400, "mode must be as-written, enforce, shadow or off, not 'enfroce'");
    bad("WEIR.MODE zzzzzzzz per-ip", 400, "as-written, enforce, shadow or off");
    bad("WEIR.MODE off per_ip", 404, "did you mean 'per-ip'?");
    bad("WEIR.MODE off _", 404, "no rule or guard ''");
    good("WEIR.MODES");
    answers("by_hand", "null");
}

GROUP(make_folder, free_answer)
