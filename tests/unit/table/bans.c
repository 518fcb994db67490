/* bans.c -- keys kept out for a while: how long, how often, by whom it is seen, what is listed, and
 * what becomes of them when the table is full, the clock is set back, a writer is killed or the
 * bytes are damaged. */
#include "unit/test.h"

#include "unit/fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "table/bans.h"
#include "table/agent-lease.h"

#define MINUTE (60 * S)
#define HOUR   (60 * MINUTE)

static const struct weir__ban_terms plain = { .length = MINUTE, .factor = 1, .longest = MINUTE };
static const struct weir__ban_terms harsher = {
    .length = MINUTE, .factor = 2, .longest = HOUR, .forget = HOUR
};

static uint64_t tag_of(const struct weir_table *table, const char *rule, const char *key)
{
    return weir__ban_tag(table, rule, key_of(key));
}

static weir_time strike(struct weir_table *table, const char *key,
                        const struct weir__ban_terms *terms, weir_time now)
{
    return weir__ban_strike(table, tag_of(table, "login", key), "login", key_of(key), terms, now);
}

static weir_time until(const struct weir_table *table, const char *key, weir_time now)
{
    return weir__ban_until(table, tag_of(table, "login", key), now);
}

static void put(struct weir_table *table, const char *key, weir_time now, weir_time end)
{
    weir__ban_put(table, tag_of(table, "login", key), "login", key_of(key), now, end);
}

static bool lift(struct weir_table *table, const char *key, weir_time now)
{
    return weir__ban_lift(table, tag_of(table, "login", key), now);
}

/* How many are in force; the last that is listed. */
static int64_t list(struct weir_table *table, weir_time now, struct weir_ban *last)
{
    int64_t n = 0;

    for (size_t i = 0; i < weir__ban_places(table); i++)
        n += weir__ban_get(table, i, now, last);
    return n;
}

static struct weir_ban only(struct weir_table *table, weir_time now)
{
    struct weir_ban ban;

    memset(&ban, 0xa5, sizeof(ban));
    assert_int_equal(list(table, now, &ban), 1);
    return ban;
}

static struct weir_table *table_for(int64_t bans)
{
    return table_with(&(struct weir_table_options){ .keys = 100, .slab = 4096, .bans = bans });
}

/* ------------------------------------------------------------------ a ban ---- */

TEST(test_R4_a_ban_lasts_until_its_end_and_no_longer)
{
    OWN(weir_table) *table = table_for(0);
    assert_int_equal(until(table, "192.0.2.7", NOW), 0);
    assert_int_equal(strike(table, "192.0.2.7", &plain, NOW), NOW + MINUTE);
    assert_int_equal(until(table, "192.0.2.7", NOW), NOW + MINUTE);
    assert_int_equal(until(table, "192.0.2.7", NOW + MINUTE - 1), NOW + MINUTE);
    assert_int_equal(until(table, "192.0.2.7", NOW + MINUTE), 0);
    assert_int_equal(until(table, "192.0.2.8", NOW), 0);
    assert_int_equal(weir__ban_until(table, tag_of(table, "other", "192.0.2.7"), NOW),
                     0); /* of that rule, not of all */
    assert_int_equal(stats_of(table, NOW).bans, 1);
    assert_int_equal(stats_of(table, NOW + MINUTE).bans, 0);
    assert_int_equal(stats_of(table, -1).bans, -1);
}

TEST(test_R4_a_key_that_is_out_stays_as_it_is)
{
    OWN(weir_table) *table = table_for(0);
    assert_int_equal(strike(table, "k", &harsher, NOW), NOW + MINUTE);
    assert_int_equal(strike(table, "k", &harsher, NOW + 30 * S), NOW + MINUTE);
    assert_fields(only(table, NOW + 30 * S), (strikes, 1), (since, NOW));
}

TEST(test_R4_bans_escalate_to_the_longest_and_are_forgotten)
{
    static const int64_t minutes[] = { 1, 2, 4, 8, 16, 32, 60, 60, 60 };

    OWN(weir_table) *table = table_for(0);
    weir_time now = NOW;
    for (size_t i = 0; i < COUNT_OF(minutes); i++) {
        assert_int_equal(strike(table, "k", &harsher, now), now + minutes[i] * MINUTE);
        assert_int_equal(only(table, now).strikes, i + 1);
        now += minutes[i] * MINUTE + HOUR - 1; /* a nanosecond before it is forgotten */
    }
    assert_int_equal(strike(table, "k", &harsher, now + 1), now + 1 + MINUTE);
    assert_int_equal(only(table, now + 1).strikes, 1);
}

TEST(test_lengths_never_overflow)
{
    static const struct weir__ban_terms odd[] = {
        { INT64_MAX, INT32_MAX, INT64_MAX, INT64_MAX },
        { 1, INT32_MAX, INT64_MAX, INT64_MAX },
        { 1, 2, INT64_MAX, INT64_MAX },
        { S, 1000, HOUR, INT64_MAX },
        { S, 3, 0, INT64_MAX },
        { S, -7, HOUR, INT64_MAX },
        { S, 0, HOUR, -1 },
        { -S, 2, HOUR, S },
        { 0, 2, -1, 0 },
    };

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        OWN(weir_table) *table = table_for(1);
        weir_time now = NOW;
        for (int n = 0; n < 200 && now < INT64_MAX; n++) {
            weir_time end = strike(table, "k", &odd[i], now),
                      most = odd[i].longest > odd[i].length ? odd[i].longest : odd[i].length;
            assert_true(end >= now);
            assert_true(end - now <= (most < 0 ? 0 : most));
            assert_int_equal(until(table, "k", now), end > now ? end : 0);
            now = end < INT64_MAX ? end + 1 : end;
        }
    }
}

/* As it lies in the table. */
static struct weir__ban_record *only_record(struct weir_table *table)
{
    struct weir__wide *slot = (void *)table->bans.slots;

    while (slot->tag == 0)
        slot++;
    return weir__block_at(&table->bans.slab, (uint32_t)slot->state[1]);
}

TEST(test_any_strikes_in_the_file_give_a_length)
{
    static const int32_t odd[] = { INT32_MIN, -1, 0, 1, 63, 64, INT32_MAX - 1, INT32_MAX };

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        OWN(weir_table) *table = table_for(1);
        strike(table, "k", &harsher, NOW);
        only_record(table)->strikes = odd[i];
        weir_time end = strike(table, "k", &harsher, NOW + 2 * MINUTE);
        assert_true(end > NOW + 2 * MINUTE && end <= NOW + 2 * MINUTE + HOUR);
        assert_true(only(table, NOW + 2 * MINUTE).strikes >= 1);
    }
}

/* ---------------------------------------------------------------- by hand ---- */

TEST(test_R4_a_ban_by_hand)
{
    OWN(weir_table) *table = table_for(0);
    put(table, "k", NOW, NOW); /* over before it begins */
    assert_int_equal(list(table, NOW, &(struct weir_ban){ 0 }), 0);
    put(table, "k", NOW, NOW + HOUR);
    assert_int_equal(until(table, "k", NOW), NOW + HOUR);
    assert_int_equal(strike(table, "k", &plain, NOW), NOW + HOUR);
    put(table, "k", NOW + S, NOW + 5 * S); /* and shorter again */
    assert_int_equal(until(table, "k", NOW + S), NOW + 5 * S);
    struct weir_ban ban = only(table, NOW + S);
    assert_fields(ban, (since, NOW + S), (strikes, 1));
    put(table, "k", NOW + S, WEIR_FOREVER);
    assert_int_equal(until(table, "k", INT64_MAX - 1), WEIR_FOREVER);
}

TEST(test_R4_a_ban_by_hand_keeps_the_strikes)
{
    OWN(weir_table) *table = table_for(0);
    strike(table, "k", &harsher, NOW);
    put(table, "k", NOW + 2 * MINUTE, NOW + 3 * MINUTE);
    assert_int_equal(only(table, NOW + 2 * MINUTE).strikes, 2);
    assert_int_equal(strike(table, "k", &harsher, NOW + 4 * MINUTE), NOW + 4 * MINUTE + 4 * MINUTE);
}

TEST(test_R4_a_lifted_ban_is_gone_with_its_strikes)
{
    OWN(weir_table) *table = table_for(0);
    assert_false(lift(table, "k", NOW));
    strike(table, "k", &harsher, NOW);
    strike(table, "other", &harsher, NOW);
    assert_true(lift(table, "k", NOW + S));
    assert_false(lift(table, "k", NOW + S));
    assert_int_equal(until(table, "k", NOW + S), 0);
    assert_int_equal(until(table, "other", NOW + S), NOW + MINUTE);
    assert_int_equal(list(table, NOW + S, &(struct weir_ban){ 0 }), 1);
    assert_int_equal(strike(table, "k", &harsher, NOW + 2 * S), NOW + 2 * S + MINUTE);
    assert_false(lift(table, "k", NOW + HOUR)); /* over by then, but its strikes go too */
    assert_int_equal(strike(table, "k", &harsher, NOW + HOUR), NOW + HOUR + MINUTE);
}

/* One load is enough while nothing is in force: after the last has gone, too. */
TEST(test_nobody_looks_while_no_ban_is_in_force)
{
    OWN(weir_table) *table = table_for(0);
    assert_int_equal(table->header->bans_latest, 0);
    strike(table, "a", &plain, NOW);
    put(table, "b", NOW, WEIR_FOREVER);
    assert_int_equal(table->header->bans_latest, WEIR_FOREVER);
    lift(table, "b", NOW);
    assert_int_equal(table->header->bans_latest, NOW + MINUTE);
    lift(table, "a", NOW);
    assert_int_equal(table->header->bans_latest, 0);
}

/* ---------------------------------------------------------------- listing ---- */

TEST(test_R4_bans_are_listed_as_people_write_them)
{
    OWN(weir_table) *table = table_for(0);
    struct weir_ban ban = { .strikes = 77 };
    assert_false(weir__ban_get(table, 0, NOW, &ban));
    assert_false(weir__ban_get(table, weir__ban_places(table), NOW, &ban));
    assert_false(weir__ban_get(table, SIZE_MAX, NOW, &ban));
    assert_int_equal(ban.strikes, 77);
    strike(table, "2001:db8::/64", &plain, NOW);
    ban = only(table, NOW + S);
    assert_string_equal(ban.rule, "login");
    assert_string_equal(ban.key, "2001:db8::/64");
    assert_fields(ban, (since, NOW), (until, NOW + MINUTE), (strikes, 1));
}

TEST(test_R4_long_keys_are_told_apart_and_end_in_dots)
{
    char key[400];

    for (size_t len = 150; len < 170; len++) {
        OWN(weir_table) *table = table_for(0);
        memset(key, 'k', sizeof(key));
        key[len] = '\0';
        strike(table, key, &plain, NOW);
        struct weir_ban ban = only(table, NOW);
        if (len < sizeof(ban.key)) {
            assert_string_equal(ban.key, key);
        } else {
            assert_int_equal(strlen(ban.key), sizeof(ban.key) - 1);
            assert_string_equal(ban.key + sizeof(ban.key) - 4, "...");
        }
        key[len] = 'k';
        key[len + 1] = '\0';
        assert_int_equal(until(table, key, NOW), 0);
    }
    OWN(weir_table) *table = table_for(0); /* the cut falls into a character of three bytes */
    for (size_t i = 0; i + 3 < sizeof(key); i += 3)
        memcpy(key + i, "\xe2\x82\xac", 3);
    key[399] = '\0';
    strike(table, key, &plain, NOW);
    struct weir_ban ban = only(table, NOW);
    assert_string_equal(ban.key + strlen(ban.key) - 6, "\xe2\x82\xac...");
}

TEST(test_what_a_terminal_would_obey_is_not_shown)
{
    static const char key[] = "a\033[31mb\nc\x7f\xc2\x9b"
                              "d\xc3\xbc";

    OWN(weir_table) *table = table_for(0);
    char long_rule[100];
    memset(long_rule, 'r', sizeof(long_rule) - 1);
    long_rule[sizeof(long_rule) - 1] = '\0';
    weir__ban_put(table, tag_of(table, long_rule, key), long_rule, key_of(key), NOW, NOW + S);
    struct weir_ban ban = only(table, NOW);
    assert_string_equal(ban.key, "a?[31mb?c???d\xc3\xbc");
    assert_int_equal(strlen(ban.rule), sizeof(ban.rule) - 1);
    weir__ban_put(table, 7, "r", (struct weir_key){ NULL, 0 }, NOW, NOW + S);
    weir__ban_lift(table, tag_of(table, long_rule, key), NOW);
    assert_string_equal(only(table, NOW).key, "");
}

/* ------------------------------------------------------------------- full ---- */

static void put_number(struct weir_table *table, int i, weir_time now, weir_time end)
{
    char key[16];

    snprintf(key, sizeof(key), "%d", i);
    put(table, key, now, end);
}

static bool is_out(struct weir_table *table, int i, weir_time now)
{
    char key[16];

    snprintf(key, sizeof(key), "%d", i);
    return until(table, key, now) != 0;
}

/* The only one that the fleet would be told of. */
static bool told(struct weir_table *table, weir_time now, struct weir__ban_record *out)
{
    for (uint64_t i = 0; i < weir__ban_places(table); i++)
        if (weir__ban_read(table, i, now, out))
            return true;
    return false;
}

static bool learn(struct weir_table *table, int32_t strikes, weir_time now, weir_time end,
                  const struct weir__ban_record *sent)
{
    struct weir__ban_lesson lesson = { .rule = "login",
                                       .key = key_of("k"),
                                       .now = now,
                                       .until = end,
                                       .forget = HOUR,
                                       .strikes = strikes,
                                       .sent = sent };

    return weir__ban_learn(table, &lesson);
}

TEST(test_D6_a_ban_is_learnt_and_lifted_by_the_fleet)
{
    OWN(weir_table) *table = table_for(0);
    struct weir__ban_record r;

    assert_true(learn(table, 2, NOW, NOW + MINUTE, NULL));
    assert_int_equal(until(table, "k", NOW), NOW + MINUTE);
    assert_true(told(table, NOW, &r) && r.told == 1);
    assert_int_equal(only(table, NOW).strikes, 2);
    assert_true(learn(table, 0, NOW + S, NOW + MINUTE, NULL));
    assert_int_equal(until(table, "k", NOW + S), 0);
    assert_true(learn(table, 3, NOW + 2 * S, NOW + MINUTE, NULL));
    assert_int_equal(until(table, "k", NOW + 2 * S), NOW + MINUTE);
    assert_int_equal(strike(table, "k", &harsher, NOW + 2 * MINUTE), NOW + 10 * MINUTE);
    assert_true(told(table, NOW + 2 * MINUTE, &r) && r.told == 0);
}

/* Redis came back empty, and was told again. */
TEST(test_D6_a_ban_that_is_learnt_again_goes_on)
{
    OWN(weir_table) *table = table_for(0);

    weir__fleet_renew(table, WEIR__FLEET_AWAY);
    assert_true(learn(table, 1, NOW, NOW + HOUR, NULL));
    assert_true(learn(table, 1, NOW + MINUTE, NOW + HOUR + S / 2, NULL));
    assert_fields(only(table, NOW + MINUTE), (since, NOW), (until, NOW + HOUR + S / 2));
    assert_true(learn(table, 1, NOW + MINUTE, NOW + 2 * HOUR, NULL)); /* another */
    assert_fields(only(table, NOW + MINUTE), (since, NOW + MINUTE), (until, NOW + 2 * HOUR));
}

TEST(test_D6_what_was_done_here_meanwhile_stands_until_it_is_told)
{
    OWN(weir_table) *table = table_for(0);
    struct weir__ban_record sent;

    weir__fleet_renew(table, WEIR__FLEET_AWAY);
    put(table, "k", NOW, NOW + HOUR);
    assert_false(learn(table, 1, NOW, NOW + MINUTE, NULL)); /* of two bans the longer counts */
    assert_int_equal(until(table, "k", NOW), NOW + HOUR);
    assert_true(told(table, NOW, &sent) && sent.told == 0);
    put(table, "k", NOW, NOW + HOUR / 2);
    assert_false(learn(table, 1, NOW, NOW + HOUR, &sent)); /* what was told before it was changed */
    assert_true(told(table, NOW, &sent) && sent.until == NOW + HOUR / 2);
    assert_true(learn(table, 1, NOW + S, NOW + HOUR, &sent)); /* another's is longer */
    assert_int_equal(until(table, "k", NOW + S), NOW + HOUR);
    assert_true(lift(table, "k", NOW + 2 * S));
    assert_true(told(table, NOW + 2 * S, &sent) && sent.told == 0);
    assert_true(weir__ban_is_lifted(&sent, NOW + 2 * S));
    assert_false(learn(table, 1, NOW + 3 * S, NOW + HOUR, NULL)); /* a lift counts ... */
    assert_int_equal(until(table, "k", NOW + 3 * S), 0);
    assert_true(learn(table, 0, NOW + 3 * S, NOW + HOUR, &sent));
    assert_false(told(table, NOW + HOUR, &sent)); /* it would be over */
    put(table, "k", NOW + 4 * S, NOW + HOUR);
    assert_true(learn(table, 0, NOW + 4 * S, NOW + HOUR, NULL)); /* ... wherever it was made */
    assert_int_equal(until(table, "k", NOW + 4 * S), 0);
}

TEST(test_D6_an_old_lift_gives_way_to_a_ban)
{
    OWN(weir_table) *table = table_for(0);

    weir__fleet_renew(table, WEIR__FLEET_AWAY);
    put(table, "k", NOW, NOW + HOUR);
    assert_true(lift(table, "k", NOW));
    assert_true(learn(table, 1, NOW + 2 * S, NOW + HOUR, NULL));
    assert_int_equal(until(table, "k", NOW + 2 * S), NOW + HOUR);
}

/* The fleet may have known of a longer ban. */
TEST(test_D6_a_ban_that_ended_before_it_was_told_is_told)
{
    OWN(weir_table) *table = table_for(0);
    struct weir__ban_record r;

    weir__fleet_renew(table, WEIR__FLEET_AWAY);
    assert_true(learn(table, 1, NOW, NOW + HOUR, NULL));
    put(table, "k", NOW, NOW + S);
    assert_true(told(table, NOW + 2 * S, &r) && r.until == NOW + S && r.told == 0);
    assert_false(lift(table, "k", NOW + 2 * S));
    assert_true(told(table, NOW + 2 * S, &r) && weir__ban_is_lifted(&r, NOW + 2 * S));
    assert_true(learn(table, 0, NOW + 2 * S, NOW + HOUR, &r));
    assert_true(told(table, NOW + 2 * S, &r) && r.told == 1);
}

/* Spans that are told have an end. */
TEST(test_D6_a_ban_for_ever_is_told_once)
{
    OWN(weir_table) *table = table_for(0);
    struct weir__ban_record r;

    put(table, "k", NOW, WEIR_FOREVER);
    assert_true(told(table, NOW, &r) && r.told == 0);
    assert_true(learn(table, 1, NOW, NOW + 1000000 * HOUR, &r));
    assert_true(told(table, NOW, &r) && r.told == 1);
}

TEST(test_D6_without_a_fleet_a_lifted_ban_leaves_nothing)
{
    OWN(weir_table) *table = table_for(0);
    struct weir__ban_record r;

    put(table, "k", NOW, NOW + HOUR);
    assert_true(lift(table, "k", NOW));
    assert_false(told(table, NOW, &r));
}

TEST(test_R4_when_full_the_ban_with_the_least_left_makes_room)
{
    OWN(weir_table) *table = table_for(1);
    int n = 0;
    while (stats_of(table, NOW).bans_lost == 0)
        put_number(table, n, NOW + n, n % 8 ? WEIR_FOREVER : NOW + HOUR), n++;
    for (int i = 0; i < n; i++)
        if (!is_out(table, i, NOW + n))
            assert_int_equal(i % 8, 0); /* not one that is out for ever */
    assert_int_equal(stats_of(table, NOW + n).bans, n - 1);
    for (int i = 0; i < 10; i++) /* those that are over make room for nothing */
        put_number(table, n + i, NOW + 2 * HOUR, NOW + 3 * HOUR);
    assert_int_equal(stats_of(table, NOW).bans_lost, 1);
}

TEST(test_R4_when_full_strikes_are_forgotten_before_a_ban_goes)
{
    OWN(weir_table) *table = table_for(1);
    weir_time now = NOW + 2 * MINUTE;
    int n = 0, in_force = 0;
    for (; n < 60; n++) {
        char key[16];
        snprintf(key, sizeof(key), "old%d", n);
        strike(table, key, &harsher, NOW);
    }
    for (n = 0; n < 150; n++)
        put_number(table, n, now, now + HOUR);
    for (n = 0; n < 150; n++)
        in_force += is_out(table, n, now);
    assert_int_equal(stats_of(table, -1).bans_lost + in_force, 150);
    assert_true(in_force >= 128);
}

/* A client that gets itself banned under many names drives out its own bans, not another rule's. */
TEST(test_R4_a_flood_of_bans_drives_out_its_own)
{
    OWN(weir_table) *table = table_for(500);
    for (int i = 0; i < 50; i++)
        put_number(table, i, NOW, NOW + HOUR);
    for (int i = 0; i < 20000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "f%d", i);
        weir__ban_put(table, tag_of(table, "flood", key), "flood", key_of(key), NOW + i,
                      NOW + i + HOUR);
    }
    assert_true(stats_of(table, -1).bans_lost > 10000);
    for (int i = 0; i < 50; i++)
        assert_true(is_out(table, i, NOW + 20000));
}

TEST(test_R4_the_promised_bans_fit)
{
    enum { BANS = 20000 };
    OWN(weir_table) *table = table_for(BANS);
    for (int i = 0; i < BANS; i++)
        put_number(table, i, NOW, NOW + HOUR + i);
    struct weir_table_stats s = stats_of(table, NOW);
    assert_int_equal(s.bans + s.bans_lost, BANS);
    if (s.bans_lost * 200 > BANS)
        fail_msg("%lld of %d promised bans were driven out", (long long)s.bans_lost, BANS);
    int found = 0;
    for (int i = 0; i < BANS; i++)
        found += is_out(table, i, NOW);
    assert_int_equal(found, s.bans);
    for (int i = 0; i < BANS; i++) /* and later, when all are over, as many others */
        put_number(table, BANS + i, NOW + 2 * HOUR, NOW + 3 * HOUR);
    assert_true(stats_of(table, NOW + 2 * HOUR).bans > BANS * 98 / 100);
}

/* ------------------------------------------------------------------ clock ---- */

TEST(test_R4_a_clock_set_back_prolongs_no_ban)
{
    OWN(weir_table) *table = table_for(0);
    weir_time year = 365 * 24 * HOUR;
    assert_int_equal(strike(table, "k", &harsher, NOW + year), NOW + year + MINUTE);
    assert_int_equal(until(table, "k", NOW + year - S),
                     NOW + year + MINUTE); /* late by a second: overtaken on the way */
    assert_int_equal(until(table, "k", NOW),
                     NOW + MINUTE); /* a year: the clock was set back, and is followed */
    assert_int_equal(until(table, "k", NOW + MINUTE), 0);
    assert_int_equal(strike(table, "k", &harsher, NOW + 2 * MINUTE),
                     NOW + 4 * MINUTE); /* its strikes are not lost */
    assert_int_equal(strike(table, "k", &harsher, NOW / 2),
                     NOW / 2 + 2 * MINUTE); /* a strike follows it too */
    put(table, "k", NOW + year, WEIR_FOREVER);
    assert_int_equal(until(table, "k", NOW), WEIR_FOREVER);
    assert_int_equal(until(table, "k", -5), WEIR_FOREVER);
}

/* ---------------------------------------------------------------- sharing ---- */

TEST(test_R4_bans_are_shared_and_outlive_their_processes)
{
    const char *path = new_path();
    struct weir_table *one = table_with(
                          &(struct weir_table_options){ .path = path, .keys = 100, .bans = 100 }),
                      *two = attach(path);

    assert_int_equal(tag_of(one, "login", "k"), tag_of(two, "login", "k"));
    strike(one, "k", &harsher, NOW);
    assert_int_equal(until(two, "k", NOW), NOW + MINUTE);
    assert_string_equal(only(two, NOW).key, "k");
    assert_true(lift(two, "k", NOW));
    assert_int_equal(until(one, "k", NOW), 0);
    pid_t child = fork();
    if (child == 0) {
        strike(two, "from another process", &harsher, NOW);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(until(one, "from another process", NOW), NOW + MINUTE);
    weir_table_destroy(one);
    weir_table_destroy(two);
    one = attach(path);
    assert_int_equal(until(one, "from another process", NOW), NOW + MINUTE);
    assert_string_equal(only(one, NOW).key, "from another process");
    assert_int_equal(strike(one, "from another process", &harsher, NOW + MINUTE), NOW + 3 * MINUTE);
    assert_true(lift(one, "from another process", NOW + MINUTE));
    weir_table_destroy(one);
    one = attach(path);
    assert_int_equal(stats_of(one, NOW + MINUTE).bans, 0);
    weir_table_destroy(one);
}

TEST(test_the_first_to_attach_puts_the_header_right)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(&(struct weir_table_options){ .path = path, .keys = 100 });
    int64_t nothing = 0;
    strike(table, "k", &plain, NOW);
    weir_table_destroy(table);
    write_at(path, offsetof(struct weir__header, bans_latest), &nothing,
             sizeof(nothing)); /* a page that was not written when the power went */
    table = attach(path);
    assert_int_equal(until(table, "k", NOW), NOW + MINUTE);
}

/* Rooms may be older than bans then, so they are measured again. */
TEST(test_R4_after_a_crash_of_the_host_searches_for_bans_are_as_short_as_before)
{
    enum { BANS = 1000 };
    const char *path = new_path();

    OWN(weir_table) *table =
        table_with(&(struct weir_table_options){ .path = path, .keys = 100, .bans = BANS });
    uint64_t reach[64], one = 1, groups = table->bans.groups, rooms_at = table->bans.rooms_at;
    struct weir__room torn = { 0, 2 };
    assert_true(groups <= 64);
    for (int i = 0; i < BANS; i++)
        put_number(table, i, NOW, NOW + HOUR + i);
    int64_t out = stats_of(table, NOW).bans;
    for (uint64_t i = 0; i < groups; i++)
        reach[i] = table->bans.rooms[i].reach;
    weir_table_destroy(table);
    write_at(path, offsetof(struct weir__header, boot_id), &one, sizeof(one));
    write_at(path, offsetof(struct weir__header, lost_then), &one, sizeof(one));
    write_at(path, rooms_at, &torn, sizeof(torn));
    table = attach(path);
    for (uint64_t i = 0; i < groups; i++)
        assert_in_range(table->bans.rooms[i].reach, 1, reach[i]);
    for (int i = 0; i < BANS; i++)
        out -= is_out(table, i, NOW);
    assert_int_equal(out, 0);
}

/* ----------------------------------------------------------------- killed ---- */

struct race {
    struct weir_table *table;
    int stop;
    int64_t looked;
};

/* A key that is out for ever must be seen so whatever others do; one that never was, never. */
static void *look(void *context)
{
    struct race *race = context;

    while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
        struct weir_ban ban;
        if (until(race->table, "always", NOW) != WEIR_FOREVER ||
            until(race->table, "never", NOW) != 0)
            return (void *)1;
        if (weir__ban_get(race->table, (size_t)race->looked % weir__ban_places(race->table), NOW,
                          &ban) &&
            strcmp(ban.rule, "login") != 0)
            return (void *)2;
        race->looked++;
    }
    return NULL;
}

RACE(test_readers_are_right_while_others_write)
{
    struct race race = { .table = table_for(1) };
    pthread_t thread;
    void *wrong;

    put(race.table, "always", NOW, WEIR_FOREVER);
    assert_int_equal(pthread_create(&thread, NULL, look, &race), 0);
    for (int i = 0; i < 20000; i++) {
        put_number(race.table, i % 100, NOW, NOW + HOUR + i);
        if (i % 3 == 0)
            weir__ban_lift(race.table, tag_of(race.table, "login", "50"), NOW);
    }
    __atomic_store_n(&race.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, &wrong);
    assert_null(wrong);
    weir_table_destroy(race.table);
}

TEST(test_R4_writers_killed_anywhere_leave_nothing_wrong)
{
    const char *path = new_path();

    OWN(weir_table) *table = table_with(
        &(struct weir_table_options){ .path = path, .keys = 100, .slab = 4096, .bans = 1 });
    put(table, "always", NOW, WEIR_FOREVER);
    for (int round = 0; round < 40; round++) {
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0;; i++) {
                put_number(table, i % 50, NOW, NOW + HOUR + i);
                if (i == 50 + round * 50)
                    (void)!write(ready[1], "", 1);
            }
        }
        char byte;
        assert_int_equal(read(ready[0], &byte, 1), 1);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        close(ready[0]);
        close(ready[1]);
        assert_int_equal(until(table, "always", NOW), WEIR_FOREVER);
        assert_int_equal(strike(table, "after", &plain, NOW), NOW + MINUTE);
        assert_true(lift(table, "after", NOW));
        struct weir_ban ban;
        int64_t listed = list(table, NOW, &ban);
        assert_in_range(listed, 50, 52);
    }
}

/* ---------------------------------------------------------------- damaged ---- */

TEST(test_any_bytes_are_survived)
{
    uint64_t seed = 11;

    for (int round = 0; round < 200; round++) {
        OWN(weir_table) *table = table_for(1);
        unsigned char *bytes = (unsigned char *)table->header + table->bans.rooms_at,
                      *end = table->keys.slots;
        struct weir_ban ban;
        for (int i = 0; i < 10; i++)
            put_number(table, i, NOW, NOW + HOUR);
        for (int i = 0; i < 500; i++)
            bytes[random64(&seed) % (uint64_t)(end - bytes)] =
                round % 2 ? 0xff : (unsigned char)random64(&seed);
        for (int i = 0; i < 20; i++)
            put_number(table, i, NOW + S, NOW + 2 * HOUR);
        for (size_t i = 0; i < weir__ban_places(table); i++)
            if (weir__ban_get(table, i, NOW + S, &ban)) {
                assert_non_null(memchr(ban.rule, 0, sizeof(ban.rule)));
                assert_non_null(memchr(ban.key, 0, sizeof(ban.key)));
                for (const char *c = ban.key; *c != '\0'; c++)
                    assert_true((unsigned char)*c >= 0x20);
            }
        assert_int_equal(strike(table, "k", &harsher, NOW + S), NOW + S + MINUTE);
        assert_true(lift(table, "k", NOW + S));
    }
}

GROUP(make_folder, remove_folder)
