/* admin-status.c -- status, settings, limited keys and events. */
#include "unit/test.h"

#include "unit/operator.h"

TEST_WITH(test_S6_status, start, stop)
{
    char number[24];

    server.connections = 3;
    weir__counter_add(&loops[0].counters, WEIR__COUNT_CHECK_ALLOWED, 40);
    weir__counter_add(&loops[1].counters, WEIR__COUNT_CHECK_ALLOWED, 2);
    good("WEIR.STATUS");
    snprintf(number, sizeof(number), "%d", (int)getpid());
    answers("version", WEIR_VERSION, "pid", number, "now", "1970-01-01T00:16:40.000Z", "started",
            "1970-01-01T00:15:10.000Z", "uptime_ms", "90000", "threads", "2", "connections", "3",
            "draining", "false", "memory", "true", "addresses.resp.0", "127.0.0.1:7379",
            "addresses.resp.1", "/run/weir.sock", "addresses.http.0", "127.0.0.1:7380",
            "rules.rules", "3", "rules.limits", "4", "rules.source", rules_path, "rules.problem",
            "null", "modes.by_hand", "null", "modes.rules_by_hand", "0", "table.file", "null",
            "table.keys", "0", "totals.check_allowed", "42", "checks.checked", "0");
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.7", NOW), 2);
    good("WEIR.STATUS");
    answers("checks.checked", "5", "checks.refused", "3");
    server.draining = 1;
    good("WEIR.STATUS");
    answers("draining", "true");
}

TEST_WITH(test_S6_settings_hide_secrets, start, stop)
{
    good("WEIR.SETTINGS");
    assert_null(memmem(answered.bytes, answered.len, "not to be seen", 14));
    answers("rules", rules_path);
}

TEST_WITH(test_S6_top, start, stop)
{
    good("WEIR.TOP");
    answers_not("top.0.key");
    for (int i = 0; i < 5; i++)
        weir__top_add(server.top, 0, "per-ip", "192.0.2.7", 9, 1);
    weir__top_add(server.top, 1, "per-ip", "192.0.2.8", 9, 1);
    good("WEIR.TOP 1");
    answers("top.0.rule", "per-ip", "top.0.key", "192.0.2.7", "top.0.refused", "5");
    answers_not("top.1.key");
    bad("WEIR.TOP 0", 400, "a whole number from 1 to 1000, not '0'");
    bad("WEIR.TOP _", 400, "whole number");
    bad("WEIR.TOP 1001", 400, "whole number");
    bad("WEIR.TOP 18446744073709551617", 400, "whole number");
    bad("WEIR.TOP ten", 400, "'ten'");
}

TEST_WITH(test_S6_events, start, stop)
{
    char line[64];
    uint64_t before = weir__events_latest(server.events);

    good("WEIR.MODE shadow per-ip");
    good("WEIR.MODE off");
    snprintf(line, sizeof(line), "WEIR.EVENTS %llu", (unsigned long long)before);
    good(line);
    answers("0.event", "mode", "0.rule", "per-ip", "0.mode", "shadow", "1.mode", "off");
    answers_not("1.rule");
    answers_not("2.event");
    snprintf(line, sizeof(line), "WEIR.EVENTS %llu", (unsigned long long)before + 2);
    good(line);
    assert_int_equal(answered.len, 2); /* [] */
    for (int i = 0; i < WEIR__EVENTS_KEPT + 10; i++)
        weir__events_emit(server.events, WEIR__EVENT_STOP, NOW, NULL);
    good("WEIR.EVENTS");
    snprintf(line, sizeof(line), "%d.event", WEIR__EVENTS_KEPT - 1);
    answers(line, "stop");
    snprintf(line, sizeof(line), "%d.event", WEIR__EVENTS_KEPT);
    answers_not(line);
    bad("WEIR.EVENTS -1", 400, "'-1'");
    bad("WEIR.EVENTS 1x", 400, "'1x'");
}

GROUP(make_folder, free_answer)
