/* events-from-counts.c -- counts become events: a rule's limiting begins once and ends once, bans
 * end, the table is full and has room again. */
#include "unit/test.h"

#include "unit/complaints.h"
#include "unit/bare-server.h"

#include "server/serve/events/events-from-counts.h"

#define ONE_RULE RULES("  - { name: login, key: \"{ip}\", limit: 1/1s }\n")

static struct weir__watch *watch;
static uint64_t heard;

static void begin_on(struct weir_table *table, const char *yaml)
{
    open_server(table);
    use(server.engine, yaml, NOW);
    watch = weir__watch_create(server.events);
    assert_non_null(watch);
    heard = 0;
}

static void begin(const char *yaml)
{
    begin_on(table_with(&(struct weir_table_options){ .keys = 10000, .limiters = 1000 }), yaml);
}

static void end(void)
{
    weir__watch_destroy(watch);
    close_server();
}

/* The events since the last time, without ids and times, one behind the other. */
static const char *told(void)
{
    static char text[65536];

    FINALLY(weir__buffer_free) struct weir__buffer json = { 0 };
    enum weir__event_kind kind;
    uint64_t lost;
    size_t n = 0;

    text[0] = '\0';
    while (weir__events_next(server.events, &heard, &kind, &json, &lost)) {
        weir__buffer_add(&json, "", 1);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
                              strstr(json.bytes, "\"event\":") + strlen("\"event\":"));
        weir__buffer_free(&json);
    }
    return text;
}

static const char *tick(weir_time now)
{
    weir__watch_tick(watch, &server, now);
    return told();
}

/* Refuses n asks of the rule at one instant. */
static void refuse(const char *request, int n, weir_time now)
{
    pass_of(server.engine, 1, request, now);
    assert_int_equal(pass_of(server.engine, n, request, now), 0);
}

/* ---------------------------------------------------------------- rules ---- */

TEST(test_S4_limiting_begins_once_and_ends_after_a_quiet_while)
{
    begin(ONE_RULE);
    assert_string_equal(tick(NOW), "");
    assert_true(passes(server.engine, "ip=192.0.2.1", NOW));
    assert_string_equal(tick(NOW + S), "");
    refuse("ip=192.0.2.1", 3, NOW + S);
    assert_string_equal(tick(NOW + 2 * S), "\"limiting\",\"rule\":\"login\",\"refused\":3}");
    refuse("ip=192.0.2.1", 4, NOW + 3 * S);
    assert_string_equal(tick(NOW + 3 * S), "");
    assert_string_equal(tick(NOW + 12 * S), ""); /* nine seconds of quiet */
    refuse("ip=192.0.2.1", 1, NOW + 13 * S);
    assert_string_equal(tick(NOW + 13 * S), "");
    assert_string_equal(tick(NOW + 23 * S - 1), "");
    assert_string_equal(tick(NOW + 23 * S), "\"limiting-end\",\"rule\":\"login\",\"refused\":8}");
    assert_string_equal(tick(NOW + 60 * S), "");
    refuse("ip=192.0.2.1", 1, NOW + 61 * S);
    assert_string_equal(tick(NOW + 61 * S), "\"limiting\",\"rule\":\"login\",\"refused\":1}");
    end();
}

static int ticks_until_told(const char *what)
{
    int n = 1;

    while (n < 100 && strstr(tick(NOW + n * S), what) == NULL)
        n++;
    return n;
}

TEST(test_S4_a_limit_that_another_process_has_changed_is_told_once)
{
    begin(RULES("  - { name: a, key: \"{ip}\", limit: [5/1m, sliding-window 50/1m] }\n"
                "  - { name: b, key: \"{ip}\", limit: 7/1m }\n"));
    assert_int_equal(ticks_until_told("limit-differs"), 100);
    struct weir *other = NULL;
    assert_ok(weir_create(&other, &(struct weir_options){ .table = server.table }, NULL));
    use(other, RULES("  - { name: a, key: \"{ip}\", limit: [5/1m, sliding-window 70/1m] }\n"), NOW);
    int n = ticks_until_told("\"limit-differs\",\"rule\":\"a\",\"text\":\"sliding-window 70/1m, "
                             "and not sliding-window 50/1m: ");
    assert_true(n >= 10 && n <= 20);
    assert_int_equal(ticks_until_told("limit-differs"), 100);
    use(other, RULES("  - { name: a, key: \"{ip}\", limit: [5/1m, sliding-window 50/1m] }\n"), NOW);
    assert_int_equal(ticks_until_told("limit-differs"), 100);
    use(other, RULES("  - { name: a, key: \"{ip}\", limit: [6/1m, sliding-window 50/1m] }\n"), NOW);
    assert_true(ticks_until_told("limit-differs") <= 20);
    weir_destroy(other);
    end();
}

TEST(test_a_rule_in_shadow_limits_nobody)
{
    begin(RULES("  - { name: login, key: \"{ip}\", limit: 1/1s, mode: shadow }\n"));
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.1", NOW), 5);
    assert_string_equal(tick(NOW), "");
    end();
}

TEST(test_rules_are_known_by_name_across_reloads)
{
    begin(RULES("  - { name: a, key: \"{ip}\", limit: 1/1s }\n  - { name: b, key: \"{account}\", "
                "limit: 1/1s }\n"));
    refuse("ip=192.0.2.1", 2, NOW);
    assert_string_equal(tick(NOW), "\"limiting\",\"rule\":\"a\",\"refused\":2}");
    use(server.engine,
        RULES("  - { name: c, key: \"{org}\", limit: 1/1s }\n  - { name: b, key: \"{account}\", "
              "limit: 1/1s }\n"
              "  - { name: a, key: \"{ip}\", limit: 1/1s }\n"),
        NOW + S);
    assert_string_equal(tick(NOW + S), "");
    refuse("org=x", 1, NOW + 2 * S);
    refuse("ip=192.0.2.1", 1, NOW + 2 * S);
    assert_string_equal(tick(NOW + 2 * S), "\"limiting\",\"rule\":\"c\",\"refused\":1}");
    use(server.engine, RULES("  - { name: c, key: \"{org}\", limit: 1/1s }\n"), NOW + 3 * S);
    assert_string_equal(
        tick(NOW + 3 * S),
        "\"limiting-end\",\"rule\":\"a\",\"text\":\"the rule is gone\",\"refused\":3}");
    assert_string_equal(tick(NOW + 12 * S), "\"limiting-end\",\"rule\":\"c\",\"refused\":1}");
    use(server.engine, RULES("  - { name: a, key: \"{ip}\", limit: 1/1s }\n"), NOW + 13 * S);
    assert_string_equal(tick(NOW + 13 * S), ""); /* it begins anew, and has refused nobody */
    end();
}

TEST(test_many_rules_in_another_order)
{
    enum { MANY = 300 };
    char yaml[40000];
    size_t n = (size_t)snprintf(yaml, sizeof(yaml), "version: 1\nrules:\n");
    begin(ONE_RULE);
    for (int i = 0; i < MANY; i++)
        n += (size_t)snprintf(
            yaml + n, sizeof(yaml) - n,
            "  - { name: r%d, match: { org: \"%d\" }, key: \"{ip}\", limit: 1/1s }\n", i, i);
    use(server.engine, yaml, NOW);
    refuse("ip=192.0.2.1 org=123", 2, NOW);
    assert_string_equal(tick(NOW), "\"limiting\",\"rule\":\"r123\",\"refused\":2}");
    n = (size_t)snprintf(yaml, sizeof(yaml), "version: 1\nrules:\n");
    for (int i = MANY - 1; i >= 0; i--)
        n += (size_t)snprintf(
            yaml + n, sizeof(yaml) - n,
            "  - { name: r%d, match: { org: \"%d\" }, key: \"{ip}\", limit: 1/1s }\n", i, i);
    use(server.engine, yaml, NOW);
    assert_string_equal(tick(NOW + S), "");
    assert_string_equal(tick(NOW + 10 * S), "\"limiting-end\",\"rule\":\"r123\",\"refused\":2}");
    end();
}

TEST(test_S4_limits_that_clients_bring_are_watched_too)
{
    begin(ONE_RULE);
    weir__counter_add(&loops[1].counters, WEIR__COUNT_TAKE_REFUSED, 5);
    weir__counter_add(&loops[0].counters, WEIR__COUNT_TAKE_ALLOWED, 5);
    assert_string_equal(tick(NOW), "\"limiting\",\"rule\":\"(takes)\",\"refused\":5}");
    weir__counter_add(&loops[0].counters, WEIR__COUNT_TAKE_REFUSED, 1);
    assert_string_equal(tick(NOW + S), "");
    assert_string_equal(tick(NOW + 11 * S), "\"limiting-end\",\"rule\":\"(takes)\",\"refused\":6}");
    end();
}

TEST(test_R3_the_deny_list_is_watched_too)
{
    begin("version: 1\nlists:\n  deny: { ip: [192.0.2.0/24] }\nrules:\n  - { name: login, key: "
          "\"{ip}\", limit: 1/1s }\n");
    assert_int_equal(pass_of(server.engine, 3, "ip=192.0.2.1", NOW), 0);
    assert_string_equal(tick(NOW), "\"limiting\",\"rule\":\"(deny)\",\"refused\":3}");
    assert_string_equal(tick(NOW + 10 * S), "\"limiting-end\",\"rule\":\"(deny)\",\"refused\":3}");
    end();
}

TEST(test_a_clock_that_is_set_back_ends_nothing_early)
{
    begin(ONE_RULE);
    refuse("ip=192.0.2.1", 1, NOW + 100 * S);
    tick(NOW + 100 * S);
    assert_string_equal(tick(NOW), "");
    assert_string_equal(tick(NOW + 9 * S), "");
    assert_string_equal(tick(NOW + 10 * S), "\"limiting-end\",\"rule\":\"login\",\"refused\":1}");
    end();
}

/* ----------------------------------------------------------------- bans ---- */

static void emit(enum weir__event_kind kind, const char *rule, const char *key, weir_time until)
{
    weir__events_emit(server.events, kind, NOW,
                      &(struct weir__event_facts){ .rule = rule, .key = key, .until = until });
}

TEST(test_R4_a_ban_that_is_over_is_told_once)
{
    begin(ONE_RULE);
    emit(WEIR__EVENT_BAN, "login", "192.0.2.7", NOW + 10 * S);
    emit(WEIR__EVENT_BAN, "login", "192.0.2.8", NOW + 10 * S);
    emit(WEIR__EVENT_BAN, "login", "192.0.2.8", NOW + 20 * S); /* banned again, for longer */
    emit(WEIR__EVENT_BAN, "other", "192.0.2.7", NOW + 10 * S);
    emit(WEIR__EVENT_UNBAN, "other", "192.0.2.7", 0);
    emit(WEIR__EVENT_UNBAN, "other", "192.0.2.9", 0); /* nobody */
    told();
    assert_string_equal(tick(NOW + 10 * S - 1), "");
    assert_string_equal(tick(NOW + 10 * S),
                        "\"unban\",\"rule\":\"login\",\"key\":\"192.0.2.7\",\"text\":\"over\"}");
    assert_string_equal(tick(NOW + 19 * S), "");
    assert_string_equal(tick(NOW + 20 * S),
                        "\"unban\",\"rule\":\"login\",\"key\":\"192.0.2.8\",\"text\":\"over\"}");
    assert_string_equal(tick(NOW + 30 * S), "");
    end();
}

TEST(test_R4_bans_of_before_the_start_end_too)
{
    struct weir_error error;

    begin(ONE_RULE);
    assert_ok(weir_ban_set(server.engine, "login", "192.0.2.7", NOW, NOW + 5 * S, &error));
    assert_string_equal(tick(NOW + S), "");
    assert_string_equal(tick(NOW + 5 * S),
                        "\"unban\",\"rule\":\"login\",\"key\":\"192.0.2.7\",\"text\":\"over\"}");
    end();
}

TEST(test_bans_remembered_are_bounded)
{
    char key[32];

    begin(ONE_RULE);
    for (int i = 0; i < WEIR__WATCH_BANS + 100; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        emit(WEIR__EVENT_BAN, "login", key, NOW + S);
    }
    int64_t counts[WEIR__EVENT_KINDS];
    weir__watch_tick(watch, &server, NOW + S);
    weir__events_counts(server.events, counts);
    assert_int_equal(counts[WEIR__EVENT_UNBAN], WEIR__WATCH_BANS);
    end();
}

TEST(test_S4_many_bans_that_end_at_once_are_counted)
{
    char key[32];

    begin(ONE_RULE);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        emit(WEIR__EVENT_BAN, "login", key, NOW + S);
    }
    uint64_t before = weir__events_latest(server.events);
    tick(NOW + S);
    assert_int_equal(weir__events_latest(server.events) - before, 100);
    assert_string_equal(tick(NOW + 8 * S), "\"unban\",\"text\":\"more keys\",\"count\":900}");
    end();
}

TEST(test_a_ban_for_ever_does_not_end)
{
    begin(ONE_RULE);
    emit(WEIR__EVENT_BAN, "login", "192.0.2.7", WEIR_NEVER);
    told();
    assert_string_equal(tick(INT64_MAX - 1), "");
    end();
}

/* ---------------------------------------------------------------- table ---- */

/* Takes with keys first .. last-1 of a limit that is idle again after `idle` seconds. */
static void crowd(struct weir_limiter *limiter, int64_t first, int64_t last, weir_time now)
{
    char key[32];

    for (int64_t i = first; i < last; i++) {
        snprintf(key, sizeof(key), "%lld", (long long)i);
        take(limiter, key, 1, now);
    }
}

TEST(test_S4_bans_that_make_room_before_their_end_are_told)
{
    begin_on(
        table_with(&(struct weir_table_options){ .keys = 10000, .bans = 100 }),
        RULES("  - { name: login, key: \"{ip}\", limit: 1/1h, ban: { refusals: 1/1m, for: 1h } "
              "}\n"));
    char ip[32];
    assert_string_equal(tick(NOW), "");
    for (int i = 0; i < 1000; i++) {
        snprintf(ip, sizeof(ip), "ip=10.0.%d.%d", i / 256, i % 256);
        pass_of(server.engine, 3, ip, NOW);
    }
    const char *text = tick(NOW + S);
    assert_non_null(strstr(text, "\"table-full\",\"text\":\"bans had to make room"));
    assert_null(strstr(tick(NOW + 2 * S), "table-full"));
    assert_non_null(strstr(tick(NOW + 90 * S), "table-room"));
    end();
}

TEST(test_S4_a_table_that_is_full_and_has_room_again)
{
    begin_on(private_table(false, 1000), ONE_RULE);
    struct weir_limiter *hour = limiter_of(server.table, "hour", "1/1h");
    int64_t slots = stats_of(server.table, -1).slots;
    assert_string_equal(tick(NOW), "");
    crowd(hour, 0, 4 * slots, NOW); /* more than there is room for: some go before their time */
    const char *text = tick(NOW + S);
    assert_non_null(strstr(text, "\"table-full\""));
    assert_non_null(strstr(text, "the table needs more keys"));
    assert_string_equal(tick(NOW + 2 * S), "");
    assert_string_equal(tick(NOW + 100 * S),
                        ""); /* nobody goes any more, but they are all in use */
    assert_string_equal(tick(NOW + 3601 * S),
                        "\"table-room\"}"); /* idle now, all of them, though still there */
    assert_string_equal(tick(NOW + 3700 * S), "");
    crowd(hour, 4 * slots, 5 * slots,
          NOW + 4000 * S); /* in place of idle ones: that is no alarm by itself */
    end();
}

TEST(test_S4_a_full_disk_is_told_as_such)
{
    struct weir_error error;

    begin(RULES("  - { name: login, key: \"{ip}\", limit: sliding-window 1/1m }\n"));
    assert_string_equal(tick(NOW), "");
    fill_disk(server.table);
    crowd(limiter_of(server.table, "window", "sliding-window 1/1m"), 0, 1, NOW);
    int code = weir_ban_set(server.engine, "login", "192.0.2.7", NOW, NOW + S, &error);
    empty_disk(server.table);
    assert_int_equal(code, WEIR_NO_MEMORY);
    assert_non_null(strstr(error.text, "no disk space"));
    struct complaints said;
    complaints_begin(&said);
    const char *text = tick(NOW + S);
    assert_contains(complaints_end(&said), "the disk of the table is full");
    assert_non_null(strstr(text, "\"table-full\""));
    assert_non_null(strstr(text, "the disk of the table is full"));
    assert_string_equal(tick(NOW + 100 * S), "\"table-room\"}");
    end();
}

/* Also where the table was full before: that is another matter. */
TEST(test_S4_a_full_disk_is_said_once)
{
    struct complaints said;

    begin_on(private_table(false, 1000), ONE_RULE);
    struct weir_limiter *window = limiter_of(server.table, "window", "sliding-window 1/1h");
    assert_string_equal(tick(NOW), "");
    crowd(limiter_of(server.table, "hour", "1/1h"), 0, 4 * stats_of(server.table, -1).slots, NOW);
    complaints_begin(&said);
    assert_contains(tick(NOW + S), "the table needs more keys");
    assert_string_equal(complaints_end(&said), "");
    for (int i = 2; i < 5; i++) {
        fill_disk(server.table);
        crowd(window, i, i + 1, NOW);
        empty_disk(server.table);
        complaints_begin(&said);
        tick(NOW + i * S);
        assert_int_equal(strstr(complaints_end(&said), "the disk of the table is full") != NULL,
                         i == 2);
    }
    end();
}

TEST(test_idle_keys_fill_no_table)
{
    begin_on(private_table(false, 1000), ONE_RULE);
    struct weir_limiter *second = limiter_of(server.table, "second", "1/1s");
    int64_t slots = stats_of(server.table, -1).slots;
    tick(NOW);
    for (int64_t i = 0; i < 8 * slots;
         i += slots / 8) /* an eighth at a time, each idle before the next one comes */
        crowd(second, i, i + slots / 8, NOW + i * 10 * S);
    struct weir_table_stats stats = stats_of(server.table, -1);
    assert_true(stats.keys * 100 > stats.slots * 90);
    assert_int_equal(stats.evicted_early, 0);
    assert_string_equal(tick(NOW + 8 * slots * 10 * S), "");
    end();
}

TEST(test_evictions_of_before_the_start_are_no_news)
{
    begin_on(private_table(false, 1000), ONE_RULE);
    struct weir_limiter *second = limiter_of(server.table, "second", "1/1s");
    crowd(second, 0, 4 * stats_of(server.table, -1).slots, NOW);
    assert_true(stats_of(server.table, -1).evicted_early > 0);
    assert_string_equal(tick(NOW + 100 * S), "");
    end();
}

/* --------------------------------------------------------------- guards ---- */

static struct weir_guard *guard_on(const char *name)
{
    struct weir_guard *guard = NULL;
    struct weir_guard_options options = { .max = 4, .lease = 10 * S, .degrade = 1 };

    options.breaker = (struct weir_breaker_options){
        .errors = 2, .min_calls = 2, .open_for = 5 * S, .jitter_percent = -1, .probes = 1
    };
    assert_ok(weir_guard_create(&guard, server.table, name, &options, NULL));
    return guard;
}

static void work(struct weir_guard *guard, enum weir_outcome outcome, weir_time now)
{
    struct weir_permit permit;
    struct weir_decision d;

    assert_true(weir_enter(guard, &(struct weir_ask){ .now = now }, &permit, &d));
    assert_true(weir_exit(guard, &permit, outcome, now));
}

TEST(test_G4_changes_of_a_breaker_are_told_once)
{
    begin(ONE_RULE);
    server.started = NOW;
    struct weir_guard *db = guard_on("db");
    assert_string_equal(tick(NOW), "");
    work(db, WEIR_FAILED, NOW + S);
    work(db, WEIR_FAILED, NOW + S);
    assert_contains(tick(NOW + 2 * S), "\"breaker-opened\",\"guard\":\"db\",\"until\":\"");
    assert_string_equal(tick(NOW + 3 * S), "");
    work(db, WEIR_SUCCEEDED, NOW + 7 * S);
    assert_string_equal(
        tick(NOW + 7 * S),
        "\"breaker-half-open\",\"guard\":\"db\"}\"breaker-closed\",\"guard\":\"db\"}");
    weir_guard_force(db, WEIR_FORCE_OPEN, NOW + 8 * S);
    assert_string_equal(tick(NOW + 8 * S), "\"guard-forced\",\"guard\":\"db\",\"state\":\"open\"}");
    assert_string_equal(tick(NOW + 9 * S), "");
    end();
}

/* As many as the table keeps, of several guards, in their order. */
TEST(test_G4_no_change_is_lost_up_to_32_a_second)
{
    const char *at;
    int n = 0;

    begin(ONE_RULE);
    server.started = NOW;
    struct weir_guard *guards[] = { guard_on("a"), guard_on("b") };
    tick(NOW);
    for (int i = 0; i < 32; i++)
        for (int g = 0; g < 2; g++)
            weir_guard_force(guards[g], i % 2 ? WEIR_UNFORCED : WEIR_FORCE_OPEN, NOW + S);
    at = tick(NOW + 2 * S);
    for (; (at = strstr(at, "\"guard-forced\"")) != NULL; at++, n++)
        assert_non_null(strstr(at, n % 2 ? "\"state\":\"none\"" : "\"state\":\"open\""));
    assert_int_equal(n, 64);
    end();
}

/* More than that: how many, and the last 32. */
TEST(test_G4_changes_that_are_lost_are_counted)
{
    static const char lost[] = "\"lost\",\"guard\":\"db\",\"count\":18}";
    const char *at;
    int n = 0;

    begin(ONE_RULE);
    server.started = NOW;
    struct weir_guard *db = guard_on("db");
    for (int i = 0; i < 40; i++)
        weir_guard_force(db, i % 2 ? WEIR_UNFORCED : WEIR_FORCE_OPEN, NOW - S);
    assert_string_equal(tick(NOW), ""); /* of before the start nothing is known */
    for (int i = 0; i < 50; i++)
        weir_guard_force(db, i % 2 ? WEIR_UNFORCED : WEIR_FORCE_OPEN, NOW + S);
    at = tick(NOW + 2 * S);
    assert_memory_equal(at, lost, sizeof(lost) - 1);
    for (; (at = strstr(at, "\"guard-forced\"")) != NULL; at++)
        n++;
    assert_int_equal(n, 32);
    assert_string_equal(tick(NOW + 3 * S), "");
    end();
}

/* Those behind it are watched all the same. */
TEST(test_G4_a_damaged_guard_hides_no_other)
{
    begin(ONE_RULE);
    server.started = NOW;
    guard_on("a");
    server.table->places[server.table->guards.first + 1].word = 1 << 20; /* no block of a record */
    struct weir_guard *c = guard_on("c");
    assert_null(weir__guard_at(server.table, 1));
    tick(NOW);
    weir_guard_force(c, WEIR_FORCE_OPEN, NOW + S);
    assert_string_equal(tick(NOW + S), "\"guard-forced\",\"guard\":\"c\",\"state\":\"open\"}");
    end();
}

TEST(test_G4_what_was_before_the_start_is_not_told_again)
{
    begin(ONE_RULE);
    struct weir_guard *db = guard_on("db");
    weir_guard_force(db, WEIR_FORCE_OPEN, NOW - S);
    server.started = NOW;
    weir_guard_force(db, WEIR_UNFORCED, NOW);
    assert_string_equal(tick(NOW + S), "\"guard-forced\",\"guard\":\"db\",\"state\":\"none\"}");
    end();
}

TEST(test_G1_permits_that_nobody_gave_back)
{
    struct weir_permit permit;
    struct weir_decision d;

    begin(ONE_RULE);
    server.started = NOW;
    struct weir_guard *db = guard_on("db");
    assert_true(weir_enter(db, &(struct weir_ask){ .cost = 3, .now = NOW }, &permit, &d));
    assert_string_equal(tick(NOW + 5 * S), "");
    assert_contains(tick(NOW + 20 * S), "\"permits-reclaimed\",\"guard\":\"db\",\"count\":");
    end();
}

TEST(test_G5_degradation)
{
    begin(ONE_RULE);
    weir_degradation_set(server.table, 2, NOW);
    assert_string_equal(tick(NOW), ""); /* it was so before */
    weir_degradation_set(server.table, 3, NOW);
    assert_string_equal(tick(NOW + S),
                        "\"degradation-changed\",\"state\":\"3\",\"text\":\"by hand\"}");
    assert_string_equal(tick(NOW + 2 * S), "");
    weir_degradation_set(server.table, 0, NOW);
    assert_string_equal(tick(NOW + 3 * S),
                        "\"degradation-changed\",\"state\":\"0\",\"text\":\"by hand\"}");
    end();
}
