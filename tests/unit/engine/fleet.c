/* fleet.c -- rules across the fleet, with a test in the place of the agent. */
#include "unit/test.h"

#include <sys/wait.h>

#include "engine/fleet.h"
#include "table/purses.h"
#include "unit/requests.h"

#define FLEET "across: fleet"
#define MS    WEIR_MILLISECOND

static const char one_rule[] = RULES("- { name: all, key: \"{ip}\", limit: 100/1s, " FLEET " }\n");

static struct weir_table *table;

/* An engine on a host whose agent has answers until a second from now. */
static struct weir *host_of(const char *yaml)
{
    struct weir *weir = engine_of(yaml);

    table = weir_table_of(weir);
    weir__fleet_renew(table, NOW + S);
    assert_ok(weir__fleet_part_set(weir, WEIR__FLEET_WHOLE, NOW, NULL));
    return weir;
}

static struct weir__across_limit across(struct weir *weir, const char *rule, uint32_t index)
{
    struct weir__across_limit limit;

    for (int64_t at = 0; weir__across_next(weir, &at, &limit);)
        if (strcmp(limit.rule, rule) == 0 && limit.index == index)
            return limit;
    fail_msg("no limit %u of %s across the fleet", index, rule);
    return limit;
}

static size_t dues(struct weir *weir, const char *request, struct weir__due out[8])
{
    struct request r = request_of(request);

    return weir__dues(weir, r.attrs, r.n, &(struct weir_ask){ .cost = 1, .now = NOW }, out, 8);
}

/* As the agent does: by the names of limiters, and the keys of dues. */
static void change_purse(struct weir *weir, const char *request, const char *rule, uint32_t index,
                         int64_t units, weir_time closed_until, weir_time now)
{
    struct weir__due due[8];
    struct weir__across_limit limit = across(weir, rule, index);
    struct weir_limiter *purse = weir__limiter_use(table, limit.purse);
    size_t n = dues(weir, request, due), i = 0;

    assert_non_null(purse);
    while (i < n && (strcmp(due[i].rule, rule) != 0 || due[i].index != index))
        i++;
    assert_true(i < n);
    struct weir_key key = { due[i].own, due[i].own_len };
    if (units > 0)
        weir__purse_fill(purse, key, units, now, now);
    else
        weir__purse_close(purse, key, closed_until, closed_until, now);
    weir_limiter_release(purse);
}

static void fill(struct weir *weir, const char *request, int64_t units)
{
    change_purse(weir, request, "all", 0, units, 0, NOW);
}

TEST(test_D3_units_in_the_purse_are_spent)
{
    struct weir *weir = host_of(one_rule);

    struct weir_ruling r = check(weir, "ip=192.0.2.1", NOW);
    assert_fields(r.decision, (allowed, false), (reason, WEIR_DRY), (retry, 0));
    assert_rule(&r, "all");
    assert_true(r.fleet);
    fill(weir, "ip=192.0.2.1", 3);
    r = check(weir, "ip=192.0.2.1", NOW);
    assert_fields(r, (decision.allowed, true), (decision.remaining, 2), (fleet, true), (level, 0),
                  (count, 100), (window, S));
    assert_int_equal(pass_of(weir, 5, "ip=192.0.2.1", NOW), 2);
    assert_int_equal(check(weir, "ip=192.0.2.2", NOW).decision.reason, WEIR_DRY); /* another key */
    weir_destroy(weir);
}

TEST(test_D3_a_dry_purse_is_no_refusal)
{
    struct weir *weir = host_of(
        RULES("- { name: all, limit: 100/1s, " FLEET ", ban: { refusals: 2/60s, for: 1h } }\n"));
    struct weir_totals totals;

    for (int i = 0; i < 5; i++)
        assert_int_equal(check(weir, "ip=::1", NOW).decision.reason, WEIR_DRY);
    weir_totals_get(weir, &totals);
    assert_fields(totals, (checked, 0), (refused, 0));
    assert_fields(info_of(weir, "all"), (refused, 0), (banned, 0), (allowed, 0));
    fill(weir, "ip=::1", 1);
    assert_true(passes(weir, "ip=::1", NOW));
    weir_destroy(weir);
}

TEST(test_D3_a_closed_purse_refuses_and_bans)
{
    struct weir *weir = host_of(
        RULES("- { name: all, limit: 100/1s, " FLEET ", ban: { refusals: 2/60s, for: 1h } }\n"));

    change_purse(weir, "ip=::1", "all", 0, 0, NOW + 50 * MS, NOW);
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_fields(r.decision, (reason, WEIR_LIMITED), (retry, 50 * MS));
    assert_true(r.fleet);
    r = check(weir, "ip=::1", NOW);
    assert_int_equal(r.banned_until, NOW + 3600 * S);
    assert_int_equal(check(weir, "ip=::1", NOW).decision.reason, WEIR_BANNED);
    assert_fields(info_of(weir, "all"), (refused, 3), (banned, 1));
    weir_destroy(weir);
}

/* It says when one unit is there; of a meter the others come after that. */
TEST(test_D3_a_closed_purse_tells_each_its_own_time)
{
    static const struct {
        const char *rules;
        weir_time for_21;
    } rows[] = {
        { RULES("- { name: all, limit: token-bucket 100/1s, " FLEET " }\n"), 250 * MS },
        { RULES("- { name: all, limit: gcra 100/1s burst 50, " FLEET " }\n"), 250 * MS },
        { RULES("- { name: all, limit: fixed-window 100/1s, " FLEET " }\n"), 50 * MS },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct weir *weir = host_of(rows[i].rules);
        change_purse(weir, "ip=::1", "all", 0, 0, NOW + 50 * MS, NOW);
        assert_fields(check_cost(weir, "ip=::1", 1, NOW).decision, (reason, WEIR_LIMITED),
                      (retry, 50 * MS));
        assert_fields(check_cost(weir, "ip=::1", 21, NOW).decision, (reason, WEIR_LIMITED),
                      (retry, rows[i].for_21));
        weir_destroy(weir);
    }
}

/* An account tells the time of the whole ask. */
TEST(test_D3_what_an_account_has_refused_is_told_as_it_says)
{
    struct weir *weir = host_of(RULES("- { name: all, limit: token-bucket 5/1h, " FLEET " }\n"));
    struct request q = request_of("ip=::1");
    struct weir_ask ask = { .cost = 3, .now = NOW };
    struct weir__alone_rules last = { .last = true, .refused = "all", .retry = 720 * S };
    struct weir_ruling r;

    assert_false(weir__check_alone(weir, q.attrs, q.n, &ask, &last, &r, NULL));
    assert_fields(r.decision, (reason, WEIR_LIMITED), (retry, 720 * S), (reset, 720 * S));
    weir_destroy(weir);
}

/* Over limits of this host and of the fleet, in both orders. */
TEST(test_D3_all_or_nothing)
{
    static const char *const rules[] = {
        RULES("- { name: here, limit: 5/60 }\n- { name: all, limit: 100/1s, " FLEET " }\n"
              "- { name: more, limit: 100/1s, " FLEET " }\n"),
        RULES("- { name: more, limit: 100/1s, " FLEET " }\n- { name: all, limit: 100/1s, " FLEET
              " }\n- { name: here, limit: 5/60 }\n"),
    };

    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct weir *weir = host_of(rules[i]);
        fill(weir, "ip=::1", 3);
        struct weir_ruling r = check(weir, "ip=::1", NOW);
        assert_int_equal(r.decision.reason, WEIR_DRY);
        assert_rule(&r, "more");
        assert_int_equal(rule_left(weir, "here", "ip=::1", NOW), 5);
        change_purse(weir, "ip=::1", "more", 0, 10, 0, NOW);
        assert_int_equal(pass_of(weir, 5, "ip=::1", NOW), 3);
        assert_int_equal(rule_left(weir, "here", "ip=::1", NOW), 2);
        fill(weir, "ip=::1", 10);
        assert_int_equal(pass_of(weir, 5, "ip=::1", NOW), 2);
        r = check(weir, "ip=::1", NOW); /* final, though a purse may be dry too */
        assert_refused_by(r, "here");
        assert_int_equal(r.decision.reason, WEIR_LIMITED);
        assert_false(r.fleet);
        r = check_cost(weir, "ip=::1", 100, NOW);
        assert_refused_by(r, "here");
        weir_destroy(weir);
    }
}

TEST(test_D5_alone_by_share_open_or_closed)
{
    static const char rules[] =
        RULES("- { name: share, match: { uri: /s }, limit: 100/1s, " FLEET " }\n"
              "- { name: open, match: { uri: /o }, limit: 1/1h, " FLEET ", when_alone: open }\n"
              "- { name: closed, match: { uri: /c }, limit: 100/1s, " FLEET
              ", when_alone: closed, ban: { refusals: 1/60s, for: 1h } }\n");
    struct weir *weir = host_of(rules);

    assert_ok(weir__fleet_part_set(weir, WEIR__FLEET_WHOLE / 4, NOW, NULL));
    assert_int_equal(check(weir, "uri=/s", NOW).decision.reason, WEIR_DRY);
    weir_time later = NOW + S + 1; /* nobody has renewed it */
    assert_int_equal(pass_of(weir, 50, "uri=/s", later), 25);
    assert_int_equal(pass_of(weir, 50, "uri=/o", later), 50);
    assert_int_equal(info_of(weir, "open").allowed, 50);
    struct weir_ruling r = check(weir, "uri=/c", later);
    assert_refused_by(r, "closed");
    assert_fields(r, (decision.reason, WEIR_ALONE), (decision.retry, S), (banned_until, 0),
                  (fleet, false), (level, 3));
    assert_int_equal(check(weir, "uri=/c", later).decision.reason, WEIR_ALONE);
    assert_int_equal(info_of(weir, "closed").refused, 2);
    weir__fleet_renew(table, later + S);
    assert_int_equal(check(weir, "uri=/c", later).decision.reason, WEIR_DRY);
    weir_destroy(weir);
}

/* One rule's accounts are silent, the others answer. */
TEST(test_D5_some_rules_alone)
{
    struct weir *weir = host_of(RULES("- { name: all, limit: 100/1s, " FLEET " }\n"
                                      "- { name: more, limit: 1/1h, " FLEET " }\n"));
    struct request q = request_of("ip=::1");
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_ruling r;
    const char *const more[] = { "more" };

    fill(weir, "ip=::1", 3);
    struct weir__alone_rules alone = { .rules = more, .n = 1 };
    assert_true(weir__check_alone(weir, q.attrs, q.n, &ask, &alone, &r, NULL));
    assert_false(weir__check_alone(weir, q.attrs, q.n, &ask, &alone, &r, NULL));
    assert_refused_by(r, "more");
    assert_int_equal(r.decision.reason, WEIR_LIMITED);
    assert_int_equal(check(weir, "ip=::1", NOW).decision.reason, WEIR_DRY);
    alone = (struct weir__alone_rules){ .all = true };
    assert_false(weir__check_alone(weir, q.attrs, q.n, &ask, &alone, &r, NULL));
    assert_int_equal(r.decision.reason, WEIR_LIMITED);
    weir_destroy(weir);
}

/* An ask that is too large for this host's part, and not for the limit, may pass later; it counts
 * towards no ban. */
TEST(test_D5_too_much_for_a_share)
{
    struct weir *weir = host_of(
        RULES("- { name: all, limit: 100/1s, " FLEET ", ban: { refusals: 1/60s, for: 1h } }\n"));
    weir_time later = NOW + S + 1;

    assert_ok(weir__fleet_part_set(weir, WEIR__FLEET_WHOLE / 4, NOW, NULL));
    struct weir_ruling r = check_cost(weir, "ip=::1", 26, later);
    assert_fields(r, (decision.reason, WEIR_ALONE), (decision.retry, S), (banned_until, 0));
    assert_true(check_cost(weir, "ip=::1", 25, later).decision.allowed);
    assert_int_equal(check_cost(weir, "ip=::2", 101, later).decision.reason, WEIR_TOO_BIG);
    weir_destroy(weir);
}

/* Another host may have room for the key: it is refused, and banned for that by nobody. */
TEST(test_D5_a_share_bans_nobody)
{
    struct weir *weir = host_of(
        RULES("- { name: all, limit: 100/1s, " FLEET ", ban: { refusals: 2/60s, for: 1h } }\n"));
    weir_time later = NOW + S + 1;

    assert_ok(weir__fleet_part_set(weir, WEIR__FLEET_WHOLE / 4, NOW, NULL));
    assert_int_equal(pass_of(weir, 200, "ip=::1", later), 25);
    assert_fields(info_of(weir, "all"), (allowed, 25), (refused, 175), (banned, 0));
    assert_int_equal(check_cost(weir, "ip=::1", 101, later).banned_until, 0);
    assert_int_equal(check_cost(weir, "ip=::1", 101, later).banned_until, later + 3600 * S);
    assert_int_equal(check(weir, "ip=::1", later).decision.reason, WEIR_BANNED);
    weir_destroy(weir);
}

/* The part is the whole limit, which has refused. */
TEST(test_D5_the_only_member_bans_alone)
{
    struct weir *weir = host_of(
        RULES("- { name: all, limit: 100/1s, " FLEET ", ban: { refusals: 2/60s, for: 1h } }\n"));
    weir_time later = NOW + S + 1;

    assert_int_equal(pass_of(weir, 101, "ip=::1", later), 100);
    assert_int_equal(check(weir, "ip=::1", later).banned_until, later + 3600 * S);
    weir_destroy(weir);
}

/* Windows of which this host has no unit. */
TEST(test_D4_a_share_of_nothing)
{
    struct weir *weir =
        host_of(RULES("- { name: all, limit: 5/1m, algorithm: fixed-window, " FLEET " }\n"));
    weir_time later = NOW + S + 1;

    assert_ok(weir__fleet_part_set(weir, 199999, NOW, NULL));
    assert_int_equal(check(weir, "ip=::1", later).decision.reason, WEIR_ALONE);
    assert_ok(weir__fleet_part_set(weir, 200000, NOW, NULL));
    assert_int_equal(pass_of(weir, 5, "ip=::1", later), 1);
    assert_ok(weir__fleet_part_set(weir, 0, NOW, NULL));
    assert_int_equal(check(weir, "ip=::1", later).decision.reason, WEIR_ALONE);
    weir_destroy(weir);
}

TEST(test_D5_in_no_fleet_the_whole_limit_counts_here)
{
    static const char *const when[] = { "share", "open", "closed" };

    for (size_t i = 0; i < COUNT_OF(when); i++) {
        char yaml[200];
        snprintf(yaml, sizeof(yaml),
                 RULES("- { name: all, limit: 5/1m, " FLEET ", when_alone: %s }\n"), when[i]);
        struct weir *weir = engine_of(yaml);
        assert_int_equal(pass_of(weir, 9, "ip=::1", NOW), 5);
        assert_int_equal(check(weir, "ip=::1", NOW).decision.reason, WEIR_LIMITED);
        weir_destroy(weir);
    }
}

/* A damaged word, or a clock that stepped back, does not leave purses dry for ever. */
TEST(test_D5_a_time_far_ahead_does_not_count)
{
    struct weir *weir = host_of(one_rule);

    weir__fleet_renew(table, INT64_MAX);
    assert_true(passes(weir, "ip=::1", NOW));
    weir__fleet_renew(table, INT64_MIN);
    assert_true(passes(weir, "ip=::1", NOW));
    weir_destroy(weir);
}

TEST(test_D3_rules_in_shadow_draw_nothing)
{
    struct weir *weir = host_of(RULES("- { name: all, limit: 2/1h, " FLEET ", mode: shadow }\n"
                                      "- { name: here, limit: 100/1s }\n"));
    struct weir__due due[8];

    assert_int_equal(dues(weir, "ip=::1", due), 0);
    assert_true(passes(weir, "ip=::1", NOW));
    assert_true(passes(weir, "ip=::1", NOW));
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_true(r.decision.allowed);
    assert_string_equal(r.shadow, "all");
    assert_fields(info_of(weir, "all"), (allowed, 2), (shadow_refused, 1));
    weir_destroy(weir);
}

/* All nodes agree on the text, though each table has its own secrets; keys are never longer than an
 * agent keeps. */
TEST(test_D3_dues_are_the_same_on_all_nodes)
{
    static const char rules[] = RULES("- { name: a, key: \"{account}\", limit: [5/1m, 9/1h], cost: "
                                      "2, " FLEET ", within: 35ms }\n"
                                      "- { name: b, limit: 1000/1s }\n");
    char request[1000] = "account=";
    struct weir *one = host_of(rules), *other = engine_of(rules);
    struct weir__due due[8], same[8];

    for (size_t len = 1; len < 900; len += 13) {
        memset(request + 8, 'x', len);
        request[8 + len] = '\0';
        assert_int_equal(dues(one, request, due), 2);
        assert_int_equal(dues(other, request, same), 2);
        assert_fields(due[1], (index, 1), (cost, 2), (within, 35 * MS));
        assert_string_equal(due[0].rule, "a");
        assert_int_equal(due[0].text_len, strlen(due[0].text));
        assert_string_equal(due[0].text, same[0].text);
        assert_true(due[0].own_len <= sizeof(due[0].own));
        change_purse(one, request, "a", 0, 5, 0, NOW);
        change_purse(one, request, "a", 1, 9, 0, NOW);
        assert_int_equal(pass_of(one, 3, request, NOW), 2);
    }
    weir_destroy(one);
    weir_destroy(other);
}

TEST(test_D4_shares_follow_the_part_and_other_rules)
{
    struct weir *weir = host_of(one_rule);
    uint64_t generation = weir__across_generation(weir);
    weir_time later = NOW + S + 1;

    assert_ok(weir__fleet_part_set(weir, 500000, NOW, NULL));
    assert_int_equal(pass_of(weir, 100, "ip=::1", later), 50);
    use(weir, RULES("- { name: all, key: \"{ip}\", limit: 200/1s, " FLEET " }\n"), later);
    assert_true(weir__across_generation(weir) != generation);
    assert_int_equal(across(weir, "all", 0).limit.count, 200);
    assert_int_equal(pass_of(weir, 200, "ip=::1", later), 0); /* spent stays spent */
    assert_int_equal(pass_of(weir, 200, "ip=2::", later), 100);
    weir_destroy(weir);
}

/* Nodes with two versions of the rules: what one account can follow is one, and the rest is told
 * apart. */
TEST(test_D6_limits_of_a_kind_have_one_account)
{
    static const struct {
        const char *limits, *others;
        uint32_t index, other;
        bool same;
    } rows[] = {
        { "fixed-window 9/1h", "fixed-window 5/1h", 0, 0, true },
        { "fixed-window 9/1h", "fixed-window 9/2h", 0, 0, false },
        { "fixed-window 9/1h", "fixed-window 9/1h align=first", 0, 0, false },
        { "sliding-window 9/1h", "sliding-window 9/1h buckets=5", 0, 0, false },
        { "9/day", "9/month", 0, 0, false },
        { "9/day", "9/day zone=Asia/Tokyo", 0, 0, false },
        { "sliding-log 9/1h", "sliding-log 5/1h", 0, 0, true },
        { "9/1s", "token-bucket 300/1s burst 50", 0, 0, true },
        { "9/1s", "token-bucket 300/1m", 0, 0, false },
        { "9/1s", "gcra 9/1s", 0, 0, false },
        { "fixed-window 9/1h, fixed-window 50/1d", "fixed-window 50/1d, fixed-window 9/1h", 0, 1,
          true },
        { "fixed-window 50/1d", "fixed-window 9/1h, fixed-window 50/1d", 0, 1, true },
        { "9/1s, 100/1m", "100/1m, 9/1s", 0, 1, true },
        { "100/1m", "9/1s, 100/1m", 0, 1, true }, /* one is added before it */
        { "9/1s, 100/1m", "9/1s, 100/1m", 0, 1, false },
        { "fixed-window 9/1h, fixed-window 5/1h", "fixed-window 9/1h, fixed-window 5/1h", 0, 1,
          false },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char yaml[2][256];
        struct weir__across_limit found[2];
        for (int v = 0; v < 2; v++) {
            snprintf(yaml[v], sizeof(yaml[v]),
                     RULES("- { name: all, key: \"{ip}\", limit: [%s], " FLEET " }\n"),
                     v ? rows[i].others : rows[i].limits);
            struct weir *weir = host_of(yaml[v]);
            found[v] = across(weir, "all", v ? rows[i].other : rows[i].index);
            weir_destroy(weir);
        }
        if ((strcmp(found[0].account, found[1].account) == 0) != rows[i].same)
            fail_msg("%s, %s: %s %s", rows[i].limits, rows[i].others, found[0].account,
                     found[1].account);
    }
}

/* Not even a rule that lets all pass alone forgets whom it has banned. */
TEST(test_D5_bans_hold_alone)
{
    struct weir *weir = host_of(
        RULES("- { name: open, key: \"{ip}\", limit: 1/1h, " FLEET ", when_alone: open }\n"));
    weir_time later = NOW + S + 1;

    assert_true(passes(weir, "ip=::1", later));
    assert_ok(weir_ban_set(weir, "open", "::1", later, later + S, NULL));
    assert_int_equal(check(weir, "ip=::1", later).decision.reason, WEIR_BANNED);
    assert_true(passes(weir, "ip=2::", later));
    assert_fields(info_of(weir, "open"), (allowed, 2), (banned, 1));
    weir_destroy(weir);
}

/* By another process, or the agent's thread, while the rules were being made. */
TEST(test_D4_the_part_changes_between_prepare_and_commit)
{
    struct weir *weir = host_of(one_rule);
    struct weir_prepared *prepared;

    assert_ok(weir_prepare(&prepared, weir,
                           rules_of(RULES("- { name: other, limit: 100/1s, " FLEET " }\n")), NULL));
    assert_ok(weir__fleet_part_set(weir, 300000, NOW, NULL));
    weir_commit(prepared, NOW);
    assert_int_equal(pass_of(weir, 100, "ip=::1", NOW + S + 1), 30);
    weir_destroy(weir);
}

TEST(test_D3_explain_says_what_decides)
{
    struct weir *weir =
        host_of(RULES("- { name: all, key: \"{ip}\", limit: 100/1s, " FLEET " }\n"
                      "- { name: closed, limit: 5/1h, " FLEET ", when_alone: closed }\n"
                      "- { name: open, limit: 5/1h, " FLEET ", when_alone: open }\n"
                      "- { name: dark, limit: 5/1h, " FLEET ", mode: shadow }\n"
                      "- { name: here, limit: 5/1h }\n"));
    weir_time later = NOW + S + 1;

    fill(weir, "ip=::1", 7);
    assert_ok(weir__fleet_part_set(weir, 500000, NOW, NULL));
    struct weir__explained e = explained(weir, "all", "ip=::1", NOW);
    assert_fields(e, (across, WEIR__ACROSS_PURSE), (limits[0].decision.remaining, 7),
                  (limits[0].present.count, 0));
    assert_int_equal(explained(weir, "closed", "ip=::1", NOW).across, WEIR__ACROSS_PURSE);
    assert_int_equal(explained(weir, "here", "ip=::1", NOW).across, WEIR__ACROSS_HOST);
    assert_int_equal(explained(weir, "dark", "ip=::1", NOW).across, WEIR__ACROSS_SHARE);
    e = explained(weir, "all", "ip=::1", later);
    assert_fields(e, (across, WEIR__ACROSS_SHARE), (limits[0].decision.limit, 50));
    e = explained(weir, "closed", "ip=::1", later);
    assert_fields(e, (across, WEIR__ACROSS_CLOSED), (limits[0].decision.allowed, false),
                  (limits[0].decision.reason, WEIR_ALONE));
    e = explained(weir, "open", "ip=::1", later);
    assert_fields(e, (across, WEIR__ACROSS_OPEN), (limits[0].decision.allowed, true));
    weir__fleet_renew(table, 0);
    assert_int_equal(explained(weir, "closed", "ip=::1", later).across, WEIR__ACROSS_NONE);
    weir_destroy(weir);
}

TEST(test_D3_reset_empties_the_purse_and_the_share)
{
    struct weir *weir = host_of(one_rule);
    weir_time later = NOW + S + 1;

    fill(weir, "ip=::1", 7);
    fill(weir, "ip=2::", 7);
    assert_int_equal(pass_of(weir, 100, "ip=::1", later), 100);
    assert_int_equal(reset(weir, "all", "ip=::1", NOW), 1);
    assert_int_equal(check(weir, "ip=::1", NOW).decision.reason, WEIR_DRY);
    assert_true(passes(weir, "ip=2::", NOW));
    assert_int_equal(pass_of(weir, 100, "ip=::1", later), 100);
    weir_destroy(weir);
}

TEST(test_D3_rules_that_went_leave_nothing_behind)
{
    struct weir_table *small = table_with(&(struct weir_table_options){ .limiters = 32 });
    struct weir *weir = engine_on(small);
    weir_time now = NOW;

    for (int i = 0; i < 1000; i++) {
        char yaml[400];
        snprintf(yaml, sizeof(yaml),
                 RULES("- { name: r%d, key: \"{ip}\", limit: [%d/1s, 9/1h], %s }\n"
                       "- { name: kept, limit: %d/1h, " FLEET " }\n"),
                 i, i + 1, i % 3 ? FLEET : "zone: UTC", i + 1);
        use(weir, yaml, now);
        weir__fleet_renew(small, i % 2 ? now + S : WEIR__FLEET_AWAY);
        assert_ok(weir__fleet_part_set(weir, (uint32_t)(i + 1), now, NULL));
        for (int k = 0; i % 2 && k < 7; k++)
            weir_table_tend(small, now += 10 * S);
    }
    use(weir, RULES("- { name: kept, limit: 5/1h, " FLEET " }\n"), now);
    for (int k = 0; k < 9; k++)
        weir_table_tend(small, now += 10 * S);
    assert_int_equal(stats_of(small, -1).limiters, 3); /* a share, a purse, a switch */
    weir_destroy(weir);
    weir_table_destroy(small);
}

TEST(test_D3_a_narrow_table_has_no_purses)
{
    struct weir_table *narrow = private_table(true, 1000);
    struct weir *weir = engine_on(narrow);
    struct weir_rules *rules = rules_of(one_rule);

    assert_fails(weir_use(weir, rules, NOW, &error), WEIR_INVALID, "make the table wide");
    weir_rules_destroy(rules);
    weir_destroy(weir);
    weir_table_destroy(narrow);
}

/* ------------------------------------------------------- several processes ---- */

/* In another process, which has no agent: how many of `n` pass; 100: it found a purse dry. */
static int pass_elsewhere(const char *path, int n, weir_time now)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        struct weir *weir = engine_on(attach(path));
        use(weir, one_rule, now);
        int passed = pass_of(weir, n, "ip=::1", now);
        _exit(check(weir, "ip=::1", now).decision.reason == WEIR_DRY ? 100 + passed : passed);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(test_D3_a_process_without_an_agent_spends_the_purses_too)
{
    const char *path = new_path();

    table = table_with(&(struct weir_table_options){ .path = path, .keys = 1000 });
    struct weir *weir = engine_on(table);
    use(weir, one_rule, NOW);
    weir__fleet_renew(table, NOW + S);
    assert_ok(weir__fleet_part_set(weir, 100000, NOW, NULL));
    fill(weir, "ip=::1", 7);
    assert_true(passes(weir, "ip=::1", NOW));
    assert_int_equal(pass_elsewhere(path, 20, NOW), 106);
    assert_int_equal(check(weir, "ip=::1", NOW).decision.reason, WEIR_DRY);
    /* The agent is gone: all go by one and the same part. */
    assert_int_equal(pass_elsewhere(path, 4, NOW + S + 1), 4); /* and one more */
    assert_int_equal(pass_of(weir, 20, "ip=::1", NOW + S + 1), 5);
    assert_int_equal(pass_elsewhere(path, 4, NOW + S + 1), 0);
    weir_destroy(weir);
    weir_table_destroy(table);
}

GROUP(make_folder, remove_folder)
