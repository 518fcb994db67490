/* read-guard.c -- `guards:` of rule files: what each word means, what is refused and where the
 * problem points. */
#include "unit/test.h"

#include "unit/reading.h"

OWNS(weir__draft)

/* A guard with these members beside a name and a concurrency. */
static const char *guard_with(const char *members)
{
    static char text[4096];

    snprintf(text, sizeof(text),
             "version: 1\nlists: { vips: { account: [a] } }\nguards:\n  - name: g\n    degrade: "
             "1\n    %s\n",
             members);
    return text;
}

static struct weir__draft *read_guard(const char *members)
{
    return read_good(guard_with(members));
}

/* ------------------------------------------------------------- the whole ---- */

TEST(test_G1_a_file_of_guards_alone)
{
    OWN(weir__draft) *d =
        read_good("version: 1\nguards:\n  - { name: search, about: for people, concurrency: 64 }\n"
                  "  - { name: b, match: { uri: \"/b/**\" }, not: { method: GET }, adaptive: weir, "
                  "mode: shadow }\n");
    const struct weir__guard_draft *g = d->guards;
    assert_fields(*d, (n_rules, 0), (n_guards, 2));
    assert_string_equal(g[0].rule.name, "search");
    assert_string_equal(g[0].rule.about, "for people");
    assert_int_equal(g[0].rule.mode, WEIR_ENFORCE);
    assert_fields(g[0].options, (max, 64), (mode, WEIR_ENFORCE));
    assert_int_equal(g[0].queue, 0);
    assert_int_equal(g[0].fallback.status, 0);
    assert_null(g[0].options.adaptive.controller);
    assert_int_equal(g[0].rule.matches + g[0].rule.excepts + g[0].rule.n_limits, 0);
    assert_string_equal(g[0].rule.key, "");
    assert_int_equal(g[1].rule.matches, 1);
    assert_int_equal(g[1].rule.match[0].patterns[0].kind, WEIR__PREFIX);
    assert_int_equal(g[1].rule.excepts, 1);
    assert_int_equal(g[1].options.mode, WEIR_SHADOW);
    assert_string_equal(g[1].options.adaptive.controller, "weir");
}

/* The example of the design, and the manual's. */
TEST(test_G1_the_example)
{
    OWN(weir__draft) *d = read_good(
        "version: 1\nguards:\n  - name: search\n    match: { uri: \"/search/**\" }\n"
        "    concurrency: { max: 64, queue: 128, weights: { gold: 3, silver: 2, free: 1 } }\n"
        "    adaptive: { p99: 250ms, window: 10s }\n"
        "    breaker: { slow: 500ms, ratio: 50%, min_calls: 20, open_for: 5s }\n    fallback: { "
        "status: 200 }\n");
    const struct weir__guard_draft *g = d->guards;
    assert_int_equal(g->options.max, 64);
    assert_fields(*g, (queue, 128), (wait, WEIR_SECOND), (order, WEIR_FIFO), (n_classes, 3));
    assert_string_equal(g->options.classes[1].name, "silver");
    assert_int_equal(g->options.classes[1].weight, 2);
    assert_string_equal(g->options.adaptive.controller, "percentile");
    assert_fields(g->options.adaptive, (percentile, 99), (target, 250 * WEIR_MILLISECOND),
                  (window, 10 * WEIR_SECOND));
    assert_fields(g->options.breaker, (slow, 500 * WEIR_MILLISECOND), (slow_percent, 50),
                  (min_calls, 20), (open_for, 5 * WEIR_SECOND));
    assert_int_equal(g->options.breaker.error_percent + g->options.breaker.errors, 0);
    assert_fields(g->fallback, (status, 200), (len, 0));
}

/* ----------------------------------------------------------- concurrency ---- */

TEST(test_L1_concurrency_by_key)
{
    OWN(weir__draft) *d = read_guard("concurrency: { max: 10, key: \"{ip/24}\" }");
    const struct weir__guard_draft *g = &d->guards[0];
    assert_fields(g->options, (max, 0), (max_per_key, 10));
    assert_string_equal(g->by_key.key, "{ip/24}");
    assert_string_equal(g->rule.key, "");
    OWN(weir__draft) *e = read_guard("concurrency: { max: 10, key: \"{ip}\", total: 500 }");
    assert_fields(e->guards[0].options, (max, 500), (max_per_key, 10));
    OWN(weir__draft) *f = read_guard("concurrency: { max: 500 }");
    assert_fields(f->guards[0].options, (max, 500), (max_per_key, 0));
    assert_null(f->guards[0].by_key.key);
}

TEST(test_L1_concurrency)
{
    OWN(weir__draft) *d = read_guard("concurrency: { max: 16384, queue: 5, wait: 200ms, order: "
                                     "weighted, weights: { a: 1000 } }");
    assert_int_equal(d->guards[0].options.max, 16384);
    assert_fields(d->guards[0], (queue, 5), (wait, 200 * WEIR_MILLISECOND), (order, WEIR_WEIGHTED));
}

/* -------------------------------------------------------------- adaptive ---- */

TEST(test_L12_adaptive)
{
    struct weir__draft *d =
        read_guard("adaptive: { controller: weir, target: 500ms, initial: 8, min: 2, max: 50 }");

    assert_string_equal(d->guards[0].options.adaptive.controller, "weir");
    assert_fields(d->guards[0].options.adaptive, (target, 500 * WEIR_MILLISECOND), (percentile, 0),
                  (initial, 8), (min, 2), (max, 50));
    weir__draft_destroy(d);
    d = read_guard("adaptive: { p90: 1s, rate: true, initial: 20000 }");
    assert_string_equal(d->guards[0].options.adaptive.controller, "percentile");
    assert_fields(d->guards[0].options.adaptive, (percentile, 90), (rate, true));
    weir__draft_destroy(d);
    d = read_guard("adaptive: {}");
    assert_string_equal(d->guards[0].options.adaptive.controller, "weir");
    weir__draft_destroy(d);
    for (const char *const *name = weir_controllers(); *name; name++) {
        char members[100];
        snprintf(members, sizeof(members), "adaptive: { controller: %s%s }", *name,
                 strcmp(*name, "percentile") ? "" : ", p99: 1s");
        d = read_guard(members);
        assert_ptr_equal(d->guards[0].options.adaptive.controller, *name);
        weir__draft_destroy(d);
    }
}

/* --------------------------------------------------------------- breaker ---- */

TEST(test_G4_breaker)
{
    OWN(weir__draft) *d = read_guard("breaker: { errors: 50%, slow: 500ms, ratio: 60%, calls: "
                                     "100, min_calls: 10, open_for: 1s, open_max: 60s, "
                                     "jitter: 0%, probes: 255, at: above }");
    const struct weir_breaker_options *b = &d->guards[0].options.breaker;
    assert_fields(*b, (error_percent, 50), (errors, 0), (slow_percent, 60), (calls, 100),
                  (window, 0), (open_max, 60 * WEIR_SECOND), (jitter_percent, -1), (probes, 255),
                  (above, true));
    weir__draft_destroy(d);
    d = read_guard("breaker: { errors: 10, window: 30s, at: reached }");
    b = &d->guards[0].options.breaker;
    assert_fields(*b, (error_percent, 0), (errors, 10), (window, 30 * WEIR_SECOND), (above, false));
}

/* ---------------------------------------------------------- the small ones ---- */

TEST(test_G6_system)
{
    OWN(weir__draft) *d = read_guard(
        "system: { cpu: 85%, pressure: 40%, memory: 20%, run_queue: 4, mean_time: 500ms, "
        "in_flight: 500, rate: 2000 }");
    const struct weir_system_options *s = &d->guards[0].options.system;
    assert_fields(*s, (cpu_percent, 85), (pressure_percent, 40), (memory_percent, 20),
                  (run_queue, 4), (mean_time, 500 * WEIR_MILLISECOND), (in_flight, 500),
                  (rate, 2000));
}

TEST(test_G5_degradation_leases_and_shedding)
{
    OWN(weir__draft) *d =
        read_guard("raises: 2\n    breaker: { errors: 3 }\n    lease: 30s\n    shed: true");
    assert_fields(d->guards[0].options, (degrade, 1), (raises, 2), (lease, 30 * WEIR_SECOND),
                  (shed, true));
}

/* ------------------------------------------------- users, classes, priority ---- */

TEST(test_G7_users_classes_and_priorities)
{
    OWN(weir__draft) *d =
        read_guard("user: \"{account|nobody}\"\n    priority: \"{header.X-Priority|crawl}\"\n"
                   "    priorities: { checkout: 5, crawl: -3 }\n    class: \"{plan}\"\n"
                   "    concurrency: { weights: { gold: 3, free: 1 } }");
    const struct weir__guard_draft *g = d->guards;
    assert_string_equal(g->rule.key, "{account|nobody}");
    assert_string_equal(g->priority.attribute, "header.x-priority");
    assert_string_equal(g->priority.fallback, "crawl");
    assert_int_equal(g->n_words, 2);
    assert_string_equal(g->words[1].name, "crawl");
    assert_int_equal(g->words[1].priority, -3);
    assert_string_equal(g->user_class.attribute, "plan");
    assert_null(g->user_class.fallback);
    weir__draft_destroy(d);
    d = read_guard(
        "priority: -8\n    class: free\n    concurrency: { weights: { gold: 3, free: 1 } }");
    assert_null(d->guards[0].priority.attribute);
    assert_string_equal(d->guards[0].priority.fallback, "-8");
    assert_string_equal(d->guards[0].user_class.fallback, "free");
}

TEST(test_G7_numbers_and_words_of_requests)
{
    static const struct weir__priority_word words[] = { { (char *)"high", 5 },
                                                        { (char *)"3", -3 } };

    static const struct {
        const char *text;
        bool good;
        int8_t priority;
    } cases[] = { { "high", true, 5 }, { "3", true, -3 },   { "7", true, 7 },
                  { "8", true, 7 },    { "-8", true, -8 },  { "-99999999999999", true, -8 },
                  { "", false, 0 },    { "-", false, 0 },   { "x", false, 0 },
                  { "1.5", false, 0 }, { "hig", false, 0 }, { "99999999999999999999", true, 7 } };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int8_t priority = 0;
        assert_int_equal(
            weir__priority_read(words, 2, cases[i].text, strlen(cases[i].text), &priority),
            cases[i].good);
        if (cases[i].good)
            assert_int_equal(priority, cases[i].priority);
    }
}

/* -------------------------------------------------------------- fallback ---- */

TEST(test_G5_fallback)
{
    struct weir__draft *d =
        read_guard("fallback: { body: \"{\\\"items\\\":[]}\", type: application/json }");
    const struct weir__fallback_draft *f = &d->guards[0].fallback;

    assert_int_equal(f->status, 503);
    assert_string_equal(f->body, "{\"items\":[]}");
    assert_int_equal(f->len, 12);
    assert_string_equal(f->type, "application/json");
    weir__draft_destroy(d);
    d = read_guard("fallback: { body: later }");
    assert_string_equal(d->guards[0].fallback.type, "text/plain");
    weir__draft_destroy(d);
    weir__draft_destroy(read_guard("fallback: { status: 204 }"));
    weir__draft_destroy(read_guard("fallback: { body: x, type: text/x; charset=~ }"));
}

/* Looked for beside the rules, read at once, and not too long. */
TEST(test_G5_fallback_from_a_file)
{
    static char large[WEIR_FALLBACK_MAX + 1], text[400], rules[400];
    const char *path = new_path(), *name = strrchr(path, '/') + 1;

    write_at(path, 0, "a\0b", 3);
    snprintf(text, sizeof(text),
             "version: 1\nguards: [{ name: g, degrade: 1, fallback: { body_file: %s } }]\n", name);
    snprintf(rules, sizeof(rules), "%.*s/rules.yaml", (int)(strlen(path) - strlen(name) - 1), path);
    struct weir__draft *d = read_named(text, rules);
    assert_int_equal(d->guards[0].fallback.len, 3);
    assert_memory_equal(d->guards[0].fallback.body, "a\0b", 4);
    assert_string_equal(d->guards[0].fallback.file, name);
    weir__draft_destroy(d);

    struct weir_error error = { 0 };
    write_at(path, 0, large, sizeof(large));
    read_bad_bytes(text, strlen(text), rules, &error);
    assert_contains(error.text, "it is too large; the most is 64 KiB");
    write_at(path, 0, "a", 1);
    struct weir_rules_options near = { .name = rules, .files = true, .near = true };
    assert_int_equal(weir__draft_read(&d, text, strlen(text), &near, &error), WEIR_INVALID);
    assert_contains(error.text, "may not take a body from a file; write it here");
}

/* ------------------------------------------------------------------ many ---- */

TEST(test_G1_too_many_guards)
{
    size_t room = 200000, len = 0;

    FINALLY(memory_drop) char *text = malloc(room);
    len += (size_t)snprintf(text, room, "version: 1\nguards:\n");
    for (int i = 0; i < 4097; i++)
        len += (size_t)snprintf(text + len, room - len, "  - { name: g%d, degrade: 1 }\n", i);
    assert_problem(text, 4099, 5, "there are 4097 guards; the most is 4096");
    text[strlen(text) - strlen("  - { name: g4096, degrade: 1 }\n")] = '\0';
    OWN(weir__draft) *d = read_good(text);
    assert_int_equal(d->n_guards, 4096);
}

GROUP(make_folder, remove_folder)

/* ---------------------------------------------------------------- waiting ---- */

static weir_time wait_of(const struct weir__draft *d, int8_t priority, uint8_t user_class,
                         bool fits)
{
    return weir__draft_wait(&d->guards[0], priority, user_class, fits);
}

TEST(test_G7_only_the_important_wait)
{
    OWN(weir__draft) *d =
        read_guard("priority: \"{header.x}\"\n    priorities: { high: 3 }\n    concurrency: { max: "
                   "2, weights: "
                   "{ gold: 2, free: 1 }, wait: { 6: 2s, high: 200ms, gold: 100ms } }");
    assert_fields(d->guards[0], (queue, 1024), (order, WEIR_PRIORITY), (wait, 2 * WEIR_SECOND));
    assert_int_equal(wait_of(d, 2, 1, true), 0);
    assert_int_equal(wait_of(d, 3, 1, false), 200 * WEIR_MILLISECOND);
    assert_int_equal(wait_of(d, 5, 1, false), 200 * WEIR_MILLISECOND);
    assert_int_equal(wait_of(d, 7, 1, false), 2 * WEIR_SECOND);
    assert_int_equal(wait_of(d, -8, 0, false), 100 * WEIR_MILLISECOND);
}

TEST(test_G7_with_shed_those_wait_that_fit)
{
    OWN(weir__draft) *d = read_guard("shed: true");
    assert_fields(d->guards[0], (queue, 1024), (order, WEIR_PRIORITY));
    assert_int_equal(wait_of(d, -4, 0, true), WEIR_SECOND);
    assert_int_equal(wait_of(d, 7, 0, false), 0);
}

/* How long and who are two things: a bound for the wait does not let the least important wait. */
TEST(test_G7_with_shed_a_wait_says_how_long_and_not_who)
{
    OWN(weir__draft) *d = read_guard("shed: true\n    concurrency: { max: 2, wait: 200ms }");
    assert_fields(d->guards[0], (queue, 1024), (order, WEIR_PRIORITY));
    assert_int_equal(wait_of(d, -8, 0, true), 200 * WEIR_MILLISECOND);
    assert_int_equal(wait_of(d, 7, 0, false), 0);
    OWN(weir__draft) *all = read_guard("shed: true\n    concurrency: { wait: { -8: 200ms } }");
    assert_int_equal(wait_of(all, -8, 0, false), 200 * WEIR_MILLISECOND);
}
