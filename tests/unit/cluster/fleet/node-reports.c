/* node-reports.c -- what nodes have reported, and how old that is. */
#include "unit/test.h"

#include "cluster/fleet/node-reports.h"

TEST(test_D6_nodes_and_what_is_left_over)
{
    static const char reply[] = "*9\r\n:100\r\n$1\r\na\r\n:90\r\n:2\r\n:3\r\n$2\r\nno"
                                "\r\n:1\r\n:-1\r\n:7\r\n";
    struct weir__node_report r;
    struct weir__versions_list list;
    struct weir__text why;

    assert_true(weir__versions_list(&list, reply, &why));
    assert_int_equal(weir__versions_number(&list), 100);
    assert_true(weir__node_report_next(&list, &r));
    assert_fields(r, (time_us, 90), (runs, 2), (refused, 3), (weight, 1), (part, -1));
    assert_int_equal(r.node.len, 1);
    assert_memory_equal(r.node.bytes, "a", 1);
    assert_int_equal(r.why.len, 2);
    assert_memory_equal(r.why.bytes, "no", 2);
    assert_false(weir__node_report_next(&list, &r));
}

TEST(test_D6_a_stage_was_heard_lately)
{
    static const char reply[] =
        "*17\r\n:20000000\r\n"
        "$4\r\nhere\r\n:19000000\r\n:1\r\n:0\r\n$0\r\n\r\n:1\r\n:1\r\n:0\r\n"
        "$4\r\ngone\r\n:9999999\r\n:1\r\n:0\r\n$0\r\n\r\n:1\r\n:-1\r\n:0\r\n";
    struct weir__versions_list list;
    struct weir__text why;
    char names[WEIR__NODE_REPORT_NAMES];

    assert_true(weir__versions_list(&list, reply, &why));
    assert_false(weir__node_report_follows(&list, "gone", names));
    assert_string_equal(names, "here");
    assert_true(weir__versions_list(&list, reply, &why));
    assert_true(weir__node_report_follows(&list, "here", names));
}

TEST(test_D6_a_report_from_before_the_clock_was_set_back)
{
    const struct weir__node_report hour_ahead = { .time_us = (int64_t)7200 * 1000000 },
                                   just_now = { .time_us = (int64_t)3600 * 1000000 };
    const int64_t now = (int64_t)3600 * 1000000;

    assert_true(weir__node_report_age(&hour_ahead, now) >= 0);
    assert_true(weir__node_report_is_silent(&hour_ahead, now));
    assert_int_equal(weir__node_report_age(&just_now, now), 0);
    assert_false(weir__node_report_is_silent(&just_now, now));
}
