/* admin-lists.c -- changes of lists. */
#include "unit/test.h"

#include "unit/operator.h"

TEST_WITH(test_R3_list_changes_by_admin, start, stop)
{
    good("WEIR.LISTS");
    answers("lists.0.list", "allow", "lists.0.attribute", "ip", "lists.0.entries", "1",
            "lists.1.list", "office");
    answers_not("changes.0.list");
    assert_true(passes(server.engine, "ip=203.0.113.5", NOW));
    good("WEIR.LIST.ADD deny ip 203.0.113.0/24 2001:db8::/32");
    answers("list", "deny", "attribute", "ip", "entries", "2", "changed", "2");
    told(WEIR__EVENT_LIST, "list", "deny");
    assert_false(passes(server.engine, "ip=203.0.113.5", NOW));
    told(WEIR__EVENT_LIST, "text", "2 added, 0 removed");
    good("WEIR.LIST.ADD deny ip 203.0.113.0/24");
    answers("changed", "0");
    told(WEIR__EVENT_LIST, "text", "0 added, 0 removed");
    good("WEIR.LISTS");
    answers("changes.0.list", "deny", "changes.0.change", "added");
    good("WEIR.LIST.REMOVE deny ip 203.0.113.0/24");
    answers("entries", "1", "changed", "1");
    assert_true(passes(server.engine, "ip=203.0.113.5", NOW));
    good("WEIR.LIST.ADD deny header.X-App evil"); /* header names ignore case */
    answers("attribute", "header.x-app", "entries", "1", "changed", "1");
    good("WEIR.RULES.RELOAD"); /* the rules are read again, and the changes are still there */
    assert_false(passes(server.engine, "ip=2001:db8::1", NOW));
}

TEST_WITH(test_R3_wrong_list_changes, start, stop)
{
    const struct weir__verb *add = weir__verb_by_command("WEIR.LIST.ADD", 13);
    struct weir__text words[] = {
        { "deny", 4 }, { "ip", 2 }, { "192.0.2.1", 9 }, { "192.0.2.1\0", 10 }
    };

    bad("WEIR.LIST.ADD offic account ann", 404, "did you mean 'office'?");
    bad("WEIR.LIST.ADD office ip 192.0.2.1", 400, "no list 'office' of ip");
    bad("WEIR.LIST.ADD deny ip 192.0.2.300", 400, "192.0.2.300");
    bad("WEIR.LIST.ADD deny account a*", 400, "*");
    bad("WEIR.LIST.ADD deny ip 192.0.2.1 nonsense", 400, "nonsense");
    bad("WEIR.LIST.ADD deny a/b x", 400, "not an attribute");
    assert_int_equal(run_spans(add, words, 4), 400);
    assert_contains(last.message, "NUL");
    good("WEIR.LISTS");
    answers_not("changes.0.list");
    answers_not("lists.2.list");
    assert_true(passes(server.engine, "ip=192.0.2.1", NOW)); /* all or nothing */
}

GROUP(make_folder, free_answer)
