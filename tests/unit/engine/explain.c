/* explain.c -- why each rule applies or does not, what it has left, and the very ruling that
 * weir_check would give; and nothing is taken. */
#include "unit/test.h"

#include "engine/explain.h"
#include "unit/requests.h"

static const char rules[] =
    "version: 1\n"
    "lists: { deny: { ip: [10.6.6.0/24] }, allow: { account: [root] }, vips: { account: [ann] } }\n"
    "rules:\n"
    "- { name: login, match: { uri: /login, method: POST }, key: \"{ip}\", limit: 2/60, ban: { "
    "refusals: 3/60s, for: 10m } }\n"
    "- { name: api, match: { uri: \"/api/**\" }, not: { account: { list: vips } }, key: "
    "\"{account}\", limit: [5/60, gcra 3/5], cost: "
    "\"{bytes}\" }\n"
    "- { name: quota, match: { account: \"*\" }, key: \"{account}\", limit: 20/month "
    "zone=Europe/Berlin }\n"
    "- { name: new, key: \"{ip/24}\", limit: 4/60, mode: shadow }\n"
    "- { name: old, key: \"{ip}\", limit: 1/60, mode: off }\n";

/* ------------------------------------------------------------------ why ---- */

static void assert_why(struct weir *weir, const char *rule, const char *request, enum weir__why why,
                       const char *attribute, const char *value)
{
    struct weir__explained e = explained(weir, rule, request, NOW);

    assert_int_equal(e.why, why);
    if (attribute == NULL)
        return;
    assert_string_equal(e.attribute, attribute);
    if (value == NULL)
        assert_null(e.value);
    else
        assert_int_equal(e.value_len, strlen(value));
    if (why == WEIR__UNMATCHED || why == WEIR__EXCEPTED)
        assert_string_equal(e.condition->attribute, attribute);
}

TEST(test_why_a_rule_applies_or_not)
{
    OWN(weir) *weir = engine_of(rules);
    assert_why(weir, "login", "uri=/login method=POST ip=::1", WEIR__APPLIES, NULL, NULL);
    assert_why(weir, "login", "uri=/login method=GET ip=::1", WEIR__UNMATCHED, "method", "GET");
    assert_why(weir, "login", "method=POST ip=::1", WEIR__UNMATCHED, "uri", NULL);
    assert_why(weir, "login", "uri=/login method=POST", WEIR__NO_KEY, "ip", NULL);
    assert_why(weir, "api", "uri=/api/x account=ann", WEIR__EXCEPTED, "account", "ann");
    assert_why(weir, "api", "uri=/api/x account=bob", WEIR__APPLIES, NULL, NULL);
    assert_why(weir, "old", "ip=::1", WEIR__SWITCHED_OFF, NULL, NULL);
    assert_why(weir, "new", "ip=::1", WEIR__APPLIES, NULL, NULL);
    assert_int_equal(explained(weir, "new", "ip=::1", NOW).mode, WEIR_SHADOW);
}

TEST(test_the_state_of_a_key)
{
    OWN(weir) *weir = engine_of(rules);
    pass_of(weir, 3, "uri=/login method=POST ip=192.0.2.7", NOW);
    struct weir__explained e = explained(weir, "login", "uri=/login method=POST ip=192.0.2.7", NOW);
    assert_string_equal(e.key, "192.0.2.7");
    assert_fields(e, (n_limits, 1), (limits[0].decision.remaining, 0), (limits[0].limit->count, 2),
                  (banned_until, 0));
    pass_of(weir, 2, "uri=/login method=POST ip=192.0.2.7", NOW);
    e = explained(weir, "login", "uri=/login method=POST ip=192.0.2.7", NOW);
    assert_int_equal(e.banned_until, NOW + 600 * S);
    assert_string_equal(explained(weir, "new", "ip=192.0.2.7", NOW).key, "192.0.2.0/24");
}

/* Another engine on the table may have changed the limit. */
TEST(test_the_limit_of_the_table_if_it_differs)
{
    OWN(weir_table) *table = private_table(false, 64);
    OWN(weir) *weir = engine_on(table), *other = engine_on(table);
    use(weir, RULES("- { name: a, limit: 5/60 }\n"), NOW);
    assert_int_equal(explained(weir, "a", "", NOW).limits[0].present.count, 0);
    use(other, RULES("- { name: a, limit: 7/60 }\n"), NOW);
    struct weir__explained e = explained(weir, "a", "", NOW);
    assert_fields(e.limits[0], (limit->count, 5), (present.count, 7), (decision.remaining, 7));
    assert_int_equal(explained(other, "a", "", NOW).limits[0].present.count, 0);
}

static void count_rules(void *context, const struct weir__explained *e)
{
    size_t *n = context;
    static const char *const names[] = { "login", "api", "quota", "new", "old" };

    assert_string_equal(e->rule->name, names[*n]); /* in the order of the file */
    ++*n;
}

static struct weir__explanation explain(struct weir *weir, const struct request *r,
                                        const struct weir_ask *ask, size_t *n)
{
    struct weir__explanation out;

    memset(&out, 0xa5, sizeof(out));
    *n = 0;
    weir__engine_explain(weir, r->attrs, r->n, ask, &out, count_rules, n);
    return out;
}

TEST(test_every_rule_is_told_of)
{
    size_t n;

    OWN(weir) *weir = engine_of(rules);
    struct request r = request_of("ip=10.6.6.6 account=root");
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir__explanation out = explain(weir, &r, &ask, &n);
    assert_int_equal(n, 5); /* though a list decides */
    assert_string_equal(out.list, "deny");
    assert_string_equal(out.list_attribute, "ip");
    weir_destroy(weir);
    weir = engine_on(NULL);
    out = explain(weir, &r, &ask, &n);
    assert_int_equal(n, 0);
    assert_true(out.ruling.decision.allowed);
}

/* ----------------------------------------------------- the same as a check ---- */

static void assert_same_text(const char *what, const char *got, const char *wanted)
{
    if ((got == NULL) != (wanted == NULL) || (got != NULL && strcmp(got, wanted) != 0))
        fail_msg("%s is %s, and weir_check says %s", what, got ? got : "none",
                 wanted ? wanted : "none");
}

static void assert_same_ruling(const struct weir_ruling *got, const struct weir_ruling *wanted)
{
    assert_same_text("rule", got->rule, wanted->rule);
    assert_same_text("list", got->list, wanted->list);
    assert_same_text("shadow", got->shadow, wanted->shadow);
    assert_fields(got->decision, (allowed, wanted->decision.allowed),
                  (reason, wanted->decision.reason), (retry, wanted->decision.retry),
                  (remaining, wanted->decision.remaining), (limit, wanted->decision.limit),
                  (wait, wanted->decision.wait), (reset, wanted->decision.reset));
    assert_fields(*got, (count, wanted->count), (window, wanted->window),
                  (limit_index, wanted->limit_index), (applied, wanted->applied),
                  (mode, wanted->mode), (level, wanted->level));
}

/* One request after the other: explained, explained again, and then decided. */
static void ask_both(struct weir *weir, const char *text, int64_t cost, weir_time now)
{
    struct request r = request_of(text);
    struct weir_ask ask = { .cost = cost, .now = now };
    size_t n;
    struct weir__explanation first = explain(weir, &r, &ask, &n),
                             again = explain(weir, &r, &ask, &n);

    assert_same_ruling(&again.ruling, &first.ruling); /* nothing was taken */
    struct weir_ruling decided = check_attrs(weir, r.attrs, r.n, &ask);
    if (decided.banned_until == 0 ||
        decided.decision.reason == WEIR_BANNED) /* the refusal that bans is not foreseen */
        assert_same_ruling(&first.ruling, &decided);
}

TEST(test_the_ruling_is_that_of_a_check)
{
    static const char *const requests[] = {
        "uri=/login method=POST ip=192.0.2.1",
        "uri=/login method=POST ip=192.0.2.1 account=bob",
        "uri=/api/x account=bob ip=192.0.2.2",
        "uri=/api/x account=bob ip=192.0.2.2 bytes=2",
        "uri=/api/x account=ann ip=192.0.2.3",
        "uri=/ ip=192.0.2.3",
        "ip=10.6.6.6",
        "account=root",
        "",
    };
    uint64_t seed = 5;

    OWN(weir) *weir = engine_of(rules);
    weir_time now = NOW;
    for (int i = 0; i < 2000; i++) {
        ask_both(weir, requests[random64(&seed) % COUNT_OF(requests)],
                 (int64_t)(random64(&seed) % 3), now);
        now += (weir_time)(random64(&seed) % 2) * (weir_time)(random64(&seed) % (uint64_t)(2 * S));
        if (i % 400 == 399)
            assert_ok(weir_mode_set(weir, NULL, (enum weir_mode)(i / 400 % 4), NULL));
    }
}

/* The level is 3. */
TEST(test_a_deny_list_in_the_ruling)
{
    OWN(weir) *weir = engine_of(rules);
    ask_both(weir, "ip=10.6.6.6", 1, NOW);
    ask_both(weir, "ip=10.6.6.6 account=root", 1, NOW);
    ask_both(weir, "account=root", 1, NOW);
}

/* No limit is named beside the ban, and no rule has been applied. */
TEST(test_a_ban_in_the_ruling)
{
    OWN(weir) *weir = engine_of(rules);
    for (int i = 0; i < 7; i++)
        ask_both(weir, "uri=/login method=POST ip=192.0.2.1 account=bob", 1, NOW);
    assert_ok(weir_ban_set(weir, "quota", "bob", NOW, NOW + S, NULL));
    ask_both(weir, "uri=/api/x ip=192.0.2.2 account=bob", 1,
             NOW); /* an earlier rule has granted it already */
}

/* A calendar window has its present length; if several refuse, the longest retry counts. */
TEST(test_windows_and_retries_in_the_ruling)
{
    OWN(weir) *weir = engine_of(rules);
    ask_both(weir, "account=bob", 1, NOW);
    weir_destroy(weir);
    weir = engine_of(RULES("- { name: login, limit: 1/1s }\n- { name: api, limit: 1/60s }\n- { "
                           "name: quota, limit: 9/60s }\n"
                           "- { name: new, limit: 9/60s }\n- { name: old, limit: 9/60s }\n"));
    for (int i = 0; i < 3; i++)
        ask_both(weir, "", 1, NOW);
}

/* ------------------------------------------------------------- applying ---- */

TEST(test_the_limits_that_apply)
{
    struct weir__applying out[8];

    OWN(weir) *weir = engine_of(rules);
    struct request r = request_of("uri=/api/x account=bob ip=192.0.2.2 bytes=7");
    size_t n = weir__engine_applying(weir, r.attrs, r.n, out, COUNT_OF(out));
    assert_int_equal(n, 5); /* whatever their modes */
    assert_int_equal(out[0].rule, 1);
    assert_int_equal(out[1].index, 1);
    assert_int_equal(out[0].cost, 7);
    assert_string_equal(out[0].text, "bob");
    assert_int_equal(out[0].limit->count, 5);
    assert_string_equal(out[3].text, "192.0.2.0/24");
    assert_int_equal(weir__engine_applying(weir, r.attrs, r.n, out, 2), 2);
    assert_int_equal(weir__engine_applying(weir, NULL, 0, out, COUNT_OF(out)), 0);
}

/* ---------------------------------------------------------------- guards ---- */

static void note_guard(void *context, const struct weir__explained_guard *e)
{
    *(struct weir__explained_guard *)context = *e;
}

/* A look ten minutes ahead takes no permit back: who explains may have another clock than those who
 * work. */
TEST(test_L1_a_look_ahead_leaves_permits)
{
    struct weir_entry entry;
    struct weir_ruling ruling;
    struct weir__explained_guard e = { 0 };
    struct weir_ask ask = { .cost = 1, .now = NOW };

    OWN(weir) *weir = engine_of("version: 1\nguards: [{ name: g, concurrency: 1, lease: 30s }]\n");
    assert_true(weir_check_enter(weir, NULL, 0, &ask, &entry, &ruling));
    ask.now = NOW + 600 * WEIR_SECOND;
    weir__engine_explain_guards(weir, NULL, 0, &ask, note_guard, &e);
    assert_fields(e, (info.in_flight, 1), (info.reclaimed, 0), (reason, WEIR_BUSY));
    assert_true(weir_check_exit(weir, &entry, WEIR_SUCCEEDED, NOW + WEIR_SECOND));
}
