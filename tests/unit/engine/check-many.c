/* check-many.c -- many requests at once, each for itself and in their order; and what is told of
 * those that were refused. */
#include "unit/test.h"

#include "unit/requests.h"

TEST(test_R2_many_each_for_itself)
{
    enum { N = 10 };
    struct weir_attr ann = ATTR("account", "ann"), bob = ATTR("account", "bob");
    struct weir_request requests[N];
    struct weir_ruling rulings[N];
    OWN(weir) *weir = engine_of(three);
    for (int i = 0; i < N; i++)
        requests[i] = (struct weir_request){ i % 2 ? &ann : &bob, 1, { .cost = 1, .now = NOW } };
    assert_int_equal(weir_check_many(weir, requests, N, rulings), 6);
    for (int i = 0; i < N; i++) {
        assert_int_equal(rulings[i].decision.allowed, i < 6); /* in their order */
        assert_rule(&rulings[i], "per-account");
    }
    assert_int_equal(weir_check_many(weir, requests, 0, rulings), 0);
}

/* One key in all of them: each sees what those before it have taken, however many are prepared at a
 * time. */
TEST(test_R2_many_see_those_before_them)
{
    enum { N = 100 };
    static struct weir_request requests[N];
    static struct weir_ruling rulings[N];
    struct weir_attr ann = ATTR("account", "ann");
    OWN(weir) *weir =
        engine_of(RULES("- { name: r, key: \"{account}\", limit: [57/60, 90/60] }\n"
                        "- { name: log, key: \"{account}\", limit: sliding-log 70/60 }\n"));
    for (int i = 0; i < N; i++)
        requests[i] = (struct weir_request){ &ann, 1, { .cost = 1, .now = NOW } };
    assert_int_equal(weir_check_many(weir, requests, N, rulings), 57);
    for (int i = 0; i < N; i++) {
        assert_fields(rulings[i].decision, (allowed, i < 57), (remaining, i < 57 ? 56 - i : 0));
    }
}

/* A ban that one of them makes keeps those behind it out; of the same key only. */
TEST(test_R4_many_and_a_ban_among_them)
{
    enum { N = 12 };
    struct weir_attr ann = ATTR("account", "ann"), bob = ATTR("account", "bob");
    struct weir_request requests[N];
    struct weir_ruling rulings[N];
    static const int reasons[N] = { WEIR_GRANTED, WEIR_LIMITED, WEIR_LIMITED, WEIR_BANNED,
                                    WEIR_BANNED,  WEIR_GRANTED, WEIR_BANNED };
    OWN(weir) *weir = engine_of(
        RULES("- { name: r, key: \"{account}\", limit: 1/60, ban: { refusals: 2/60s, for: 10m } }\n"
              "- { name: s, key: \"{account}\", limit: 1/60, mode: shadow }\n"));
    for (int i = 0; i < N; i++)
        requests[i] = (struct weir_request){ i == 5 ? &bob : &ann, 1, { .cost = 1, .now = NOW } };
    assert_int_equal(weir_check_many(weir, requests, N, rulings), 2);
    for (int i = 0; i < N; i++) {
        assert_int_equal(rulings[i].decision.reason, i < 7 ? reasons[i] : WEIR_BANNED);
        assert_int_equal(rulings[i].banned_until,
                         i < 2 || i == 5 ? 0
                                         : NOW + 600 * S); /* the one that makes it says so too */
        assert_int_equal(rulings[i].applied, reasons[i] == WEIR_BANNED || i > 6 ? 0 : 2);
    }
}

/* A rule in shadow whose key is banned would have refused, and takes nothing; the others are asked
 * as ever. */
TEST(test_R4_a_banned_shadow_among_others)
{
    OWN(weir) *weir =
        engine_of(RULES("- { name: s, key: \"{ip}\", limit: [5/60, 6/60], mode: shadow }\n"
                        "- { name: r, key: \"{ip}\", limit: 5/60 }\n"
                        "- { name: t, key: \"{ip}\", limit: [4/60, 7/60], mode: shadow }\n"));
    assert_ok(weir_ban_set(weir, "s", "::1", NOW, NOW + S, NULL));
    struct weir_ruling r = check(weir, "ip=::1", NOW);
    assert_allowed_by(r, "r");
    assert_string_equal(r.shadow, "s");
    assert_int_equal(r.applied, 2);
    assert_int_equal(rule_left(weir, "s", "ip=::1", NOW), 5);
    assert_int_equal(rule_left(weir, "r", "ip=::1", NOW), 4);
    assert_int_equal(rule_left(weir, "t", "ip=::1", NOW), 3);
    assert_int_equal(info_of(weir, "s").shadow_refused, 1);
    assert_int_equal(info_of(weir, "t").allowed, 1);
}

/* More limits than a group of requests has room for. */
TEST(test_R2_many_of_many_limits)
{
    enum { N = 20 };
    struct weir_attr who[N];
    char names[N][16];
    struct weir_request requests[N];
    struct weir_ruling rulings[N];
    for (int limits = 30; limits <= 70; limits += 10) {
        OWN(weir) *weir =
            engine_of_many(limits, "- { name: r%d, key: \"{account}\", limit: 2/60 }\n");
        for (int i = 0; i < N; i++) {
            snprintf(names[i], sizeof(names[i]), "user-%d", i % 8);
            who[i] = (struct weir_attr)ATTR("account", names[i]);
            requests[i] = (struct weir_request){ &who[i], 1, { .cost = 1, .now = NOW } };
        }
        assert_int_equal(weir_check_many(weir, requests, N, rulings), limits < 64 ? 16 : 0);
        for (int i = 0; i < N; i++) {
            assert_int_equal(rulings[i].decision.allowed, i < 16 && limits < 64);
            assert_fields(rulings[i], (applied, limits < 64 ? limits : 64), (cut, limits > 64));
        }
    }
}

/* A banned rule in shadow makes room for one that had none; not in the next request's. */
TEST(test_R4_many_and_room_made_by_a_ban)
{
    enum { N = 4 };
    struct weir_attr who[N] = { ATTR("ip", "::1"), ATTR("account", "ann"), ATTR("ip", "2::"),
                                ATTR("ip", "3::") };
    struct weir_request requests[N];
    struct weir_ruling rulings[N];
    FINALLY(memory_drop) char *yaml = malloc(BIG);
    size_t len = (size_t)snprintf(yaml, BIG, "version: 1\nrules:\n");
    for (int i = 0; i < 30; i++)
        len += (size_t)snprintf(yaml + len, BIG - len,
                                "- { name: r%d, key: \"{ip}\", limit: [5/60, 9/60] }\n", i);
    snprintf(yaml + len, BIG - len,
             "- { name: account, key: \"{account}\", limit: 5/60 }\n"
             "- { name: two, key: \"{ip}\", limit: [5/60, 9/60], mode: shadow }\n"
             "- { name: three, key: \"{ip}\", limit: [6/60, 7/60, 8/60], mode: shadow }\n");
    OWN(weir) *weir = engine_of(yaml);
    assert_ok(weir_ban_set(weir, "two", "::1", NOW, NOW + S, NULL));
    for (int i = 0; i < N; i++)
        requests[i] = (struct weir_request){ &who[i], 1, { .cost = 1, .now = NOW } };
    assert_int_equal(weir_check_many(weir, requests, N, rulings), N);
    assert_rule(&rulings[1], "account");
    assert_int_equal(rulings[1].applied, 1);
    assert_int_equal(rule_left(weir, "account", "account=ann", NOW), 4);
    for (int i = 0; i < N; i++) {
        char request[16];
        if (i == 1)
            continue;
        snprintf(request, sizeof(request), "ip=%s", who[i].value);
        assert_fields(rulings[i], (applied, 31), (cut, i > 0));
        assert_int_equal(rule_left(weir, "r0", request, NOW), 4);
        assert_int_equal(rule_left(weir, "two", request, NOW), i > 0 ? 4 : 5);
        assert_int_equal(rule_left(weir, "three", request, NOW), i > 0 ? 6 : 5);
    }
}

/* ------------------------------------------------------------- S5: told ---- */

static const char telling[] =
    "version: 1\n"
    "lists: { deny: { account: [mallory] }, allow: { account: [root] } }\n"
    "rules:\n"
    "- { name: wide, limit: 1000/60 }\n"
    "- { name: r, key: \"{ip/24}:{account}\", limit: 3/60, ban: { refusals: 2/60s, for: 10m } }\n";

static const struct {
    const char *request;
    int64_t cost;
    int reason;
    const char *key;
} told_cases[] = {
    { "ip=192.0.2.7 account=ann", 4, WEIR_TOO_BIG, "192.0.2.0/24:ann" },
    { "ip=192.0.2.7 account=ann", 3, WEIR_GRANTED, "" },
    { "ip=192.0.2.7 account=ann", 0, WEIR_GRANTED, "" },
    { "ip=192.0.2.9 account=ann", 1, WEIR_LIMITED, "192.0.2.0/24:ann" },
    { "ip=192.0.2.9 account=ann", 1, WEIR_BANNED, "192.0.2.0/24:ann" },
    { "ip=192.0.2.9 account=mallory", 1, WEIR_DENIED, "" },
    { "ip=192.0.2.9 account=root", 1, WEIR_GRANTED, "" },
    { "ip=192.0.2.9 account=bob", -1, WEIR_BAD_ASK, "" },
    { "ip=192.0.2.9", 1001, WEIR_TOO_BIG, "" }, /* one key for everybody: that is its text */
    { "ip=192.0.2.9", 1, WEIR_GRANTED, "" },
};

TEST(test_S5_the_key_of_a_refusal_is_told)
{
    OWN(weir) *weir = engine_of(telling);
    for (size_t i = 0; i < COUNT_OF(told_cases); i++) {
        struct request q = request_of(told_cases[i].request);
        struct weir_ruling r;
        char key[WEIR_KEY_TEXT] = "before";
        bool allowed =
            weir_check_key(weir, q.attrs, q.n,
                           &(struct weir_ask){ .cost = told_cases[i].cost, .now = NOW }, &r, key);
        assert_int_equal(allowed, told_cases[i].reason == WEIR_GRANTED);
        assert_int_equal(r.decision.reason, told_cases[i].reason);
        assert_string_equal(key, told_cases[i].key);
        assert_int_equal(r.banned_until != 0,
                         i == 3 || i == 4); /* the fourth makes it, and the fifth meets it */
    }
}

TEST(test_S5_the_keys_of_many_are_told)
{
    enum { N = COUNT_OF(told_cases) };
    static char keys[N][WEIR_KEY_TEXT];
    struct request q[N];
    struct weir_request requests[N];
    struct weir_ruling rulings[N];
    OWN(weir) *weir = engine_of(telling);
    memset(keys, 'x', sizeof(keys));
    for (size_t i = 0; i < N; i++) {
        q[i] = request_of(told_cases[i].request);
        requests[i] =
            (struct weir_request){ q[i].attrs, q[i].n, { .cost = told_cases[i].cost, .now = NOW } };
    }
    assert_int_equal(weir_check_many_keys(weir, requests, N, rulings, keys), 4);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(rulings[i].decision.reason, told_cases[i].reason);
        assert_string_equal(keys[i], told_cases[i].key);
    }
}
