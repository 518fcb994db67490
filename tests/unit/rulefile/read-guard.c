/* read-guard.c -- `guards:` of rule files: what each word means, what is refused and where the
 * problem points. */
#include "unit/test.h"

#include "unit/reading.h"

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

/* In line 6, behind four spaces. */
static void assert_guard_problem(const char *members, int column, const char *part)
{
    assert_problem(guard_with(members), 6, column + 4, part);
}

/* ------------------------------------------------------------- the whole ---- */

TEST(test_G1_a_file_of_guards_alone)
{
    struct weir__draft *d =
        read_good("version: 1\nguards:\n  - { name: search, about: for people, concurrency: 64 }\n"
                  "  - { name: b, match: { uri: \"/b/**\" }, not: { method: GET }, adaptive: weir, "
                  "mode: shadow }\n");
    const struct weir__guard_draft *g = d->guards;
    assert_int_equal(d->n_rules, 0);
    assert_int_equal(d->n_guards, 2);
    assert_string_equal(g[0].rule.name, "search");
    assert_string_equal(g[0].rule.about, "for people");
    assert_int_equal(g[0].rule.mode, WEIR_ENFORCE);
    assert_int_equal(g[0].options.max, 64);
    assert_int_equal(g[0].options.mode, WEIR_ENFORCE);
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
    weir__draft_destroy(d);
}

/* The example of the design, and the manual's. */
TEST(test_G1_the_example)
{
    struct weir__draft *d = read_good(
        "version: 1\nguards:\n  - name: search\n    match: { uri: \"/search/**\" }\n"
        "    concurrency: { max: 64, queue: 128, weights: { gold: 3, silver: 2, free: 1 } }\n"
        "    adaptive: { p99: 250ms, window: 10s }\n"
        "    breaker: { slow: 500ms, ratio: 50%, min_calls: 20, open_for: 5s }\n    fallback: { "
        "status: 200 }\n");
    const struct weir__guard_draft *g = d->guards;
    assert_int_equal(g->options.max, 64);
    assert_int_equal(g->queue, 128);
    assert_int_equal(g->wait, WEIR_SECOND);
    assert_int_equal(g->order, WEIR_FIFO);
    assert_int_equal(g->n_classes, 3);
    assert_string_equal(g->options.classes[1].name, "silver");
    assert_int_equal(g->options.classes[1].weight, 2);
    assert_string_equal(g->options.adaptive.controller, "percentile");
    assert_int_equal(g->options.adaptive.percentile, 99);
    assert_int_equal(g->options.adaptive.target, 250 * WEIR_MILLISECOND);
    assert_int_equal(g->options.adaptive.window, 10 * WEIR_SECOND);
    assert_int_equal(g->options.breaker.slow, 500 * WEIR_MILLISECOND);
    assert_int_equal(g->options.breaker.slow_percent, 50);
    assert_int_equal(g->options.breaker.min_calls, 20);
    assert_int_equal(g->options.breaker.open_for, 5 * WEIR_SECOND);
    assert_int_equal(g->options.breaker.error_percent + g->options.breaker.errors, 0);
    assert_int_equal(g->fallback.status, 200);
    assert_int_equal(g->fallback.len, 0);
    weir__draft_destroy(d);
}

TEST(test_G1_names)
{
    assert_problem("version: 1\nguards: { name: g }\n", 2, 9, "guards must be a list");
    assert_problem("version: 1\nguards:\n  - { concurrency: 1 }\n", 3, 5, "the guard has no name");
    assert_problem("version: 1\nguards:\n  - { name: a b, concurrency: 1 }\n", 3, 14,
                   "a guard's name has only letters");
    assert_problem("version: 1\nguards:\n  - { name: g }\n", 3, 5, "the guard 'g' guards nothing");
    assert_problem(
        "version: 1\nguards:\n  - { name: g, raises: 1, system: { cpu: 80% }, lease: 2h }\n", 3, 56,
        "lease must be from 10ms to 1h");
    assert_problem(
        "version: 1\nguards:\n  - { name: g, concurrency: 1 }\n  - { name: g, concurrency: 1 }\n",
        4, 5, "two guards are named 'g'; the first is in line 3, column 5");
    assert_problem("version: 1\nguards:\n  - { name: g, concurrency: 1 }\nrules:\n  - { name: g, "
                   "limit: 1/s }\n",
                   3, 5, "a rule and a guard are named 'g'; the rule is in line 5, column 5");
    assert_guard_problem("concurency: 5", 1, "did you mean 'concurrency'?");
    assert_guard_problem("limit: 5/s", 1, "unknown key 'limit' in guard");
    assert_guard_problem("breaker:", 1, "'breaker' has no value");
    assert_guard_problem("match: { uri: x }", 15, "a path begins with /");
    assert_guard_problem("match: { account: { list: vpis } }", 27, "did you mean 'vips'?");
    assert_guard_problem("mode: on", 7, "unknown mode 'on'");
}

/* ----------------------------------------------------------- concurrency ---- */

TEST(test_L1_concurrency)
{
    struct weir__draft *d = read_guard("concurrency: { max: 16384, queue: 5, wait: 200ms, order: "
                                       "weighted, weights: { a: 1000 } }");
    assert_int_equal(d->guards[0].options.max, 16384);
    assert_int_equal(d->guards[0].queue, 5);
    assert_int_equal(d->guards[0].wait, 200 * WEIR_MILLISECOND);
    assert_int_equal(d->guards[0].order, WEIR_WEIGHTED);
    weir__draft_destroy(d);
    assert_guard_problem("concurrency: 16385", 14, "concurrency is too large; the most is 16384");
    assert_guard_problem("concurrency: { max: 16385 }", 21, "max is too large; the most is 16384");
    assert_guard_problem("concurrency: 0", 14, "concurrency");
    assert_guard_problem("concurrency: many", 14, "concurrency");
    assert_guard_problem("concurrency: []", 14, "concurrency must be a mapping");
    assert_guard_problem("concurrency: {}", 14, "the concurrency says nothing");
    assert_guard_problem("concurrency: { max: 1, wait: 1s }", 24, "'wait' needs a queue");
    assert_guard_problem("concurrency: { max: 1, order: fifo }", 24, "'order' needs a queue");
    assert_guard_problem("concurrency: { queue: 1048577 }", 23, "the most is 1048576");
    assert_guard_problem("concurrency: { queue: 1, order: lifo }", 33,
                         "unknown order 'lifo'; did you mean 'fifo'?");
    assert_guard_problem("concurrency: { queue: 1, order: weighted }", 33,
                         "order: weighted needs weights");
    assert_guard_problem("concurrency: { weights: {} }", 25, "from 1 to 8 classes");
    assert_guard_problem("concurrency: { weights: { a: 0 } }", 30, "a weight");
    assert_guard_problem("concurrency: { weights: { a: 1001 } }", 30, "the most is 1000");
    assert_guard_problem("concurrency: { weights: { 'a b': 1 } }", 28,
                         "the name of a class is 1 to 15");
    assert_guard_problem("concurrency: { weights: { abcdefghijklmnop: 1 } }", 27,
                         "the name of a class is 1 to 15");
    assert_guard_problem(
        "concurrency: { weights: { a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1 } }", 25,
        "from 1 to 8 classes");
}

/* -------------------------------------------------------------- adaptive ---- */

TEST(test_L12_adaptive)
{
    struct weir__draft *d =
        read_guard("adaptive: { controller: weir, target: 500ms, initial: 8, min: 2, max: 50 }");
    assert_string_equal(d->guards[0].options.adaptive.controller, "weir");
    assert_int_equal(d->guards[0].options.adaptive.target, 500 * WEIR_MILLISECOND);
    assert_int_equal(d->guards[0].options.adaptive.percentile, 0);
    assert_int_equal(d->guards[0].options.adaptive.initial, 8);
    assert_int_equal(d->guards[0].options.adaptive.min, 2);
    assert_int_equal(d->guards[0].options.adaptive.max, 50);
    weir__draft_destroy(d);
    d = read_guard("adaptive: { p90: 1s, rate: true, initial: 20000 }");
    assert_string_equal(d->guards[0].options.adaptive.controller, "percentile");
    assert_int_equal(d->guards[0].options.adaptive.percentile, 90);
    assert_true(d->guards[0].options.adaptive.rate);
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
    assert_guard_problem("adaptive: wier", 11, "unknown controller 'wier'; did you mean 'weir'?");
    assert_guard_problem("adaptive: [weir]", 11, "adaptive must be a mapping");
    assert_guard_problem("adaptive: percentile", 11,
                         "the controller percentile needs a time to keep to");
    assert_guard_problem("adaptive: { controller: percentile }", 11, "needs a time to keep to");
    assert_guard_problem("adaptive: { p90: 1s, p99: 2s }", 22, "only one of");
    assert_guard_problem("adaptive: { controller: vegas, p99: 2s }", 32,
                         "'p99' is for the controller percentile");
    assert_guard_problem("adaptive: { p99: 2s, target: 1s }", 22,
                         "the controller percentile has no target");
    assert_guard_problem("adaptive: { rate: true }", 13, "'rate' is for the controller percentile");
    assert_guard_problem("adaptive: { p99: 2s, rate: yes }", 28, "unknown rate 'yes'");
    assert_guard_problem("adaptive: { p99: 0s }", 18, "p99");
    assert_guard_problem("adaptive: { max: 20000 }", 11, "max must be at most 1024");
    assert_guard_problem("adaptive: { min: 9, max: 3 }", 11, "adaptive: ");
}

/* --------------------------------------------------------------- breaker ---- */

TEST(test_G4_breaker)
{
    struct weir__draft *d = read_guard("breaker: { errors: 50%, slow: 500ms, ratio: 60%, calls: "
                                       "100, min_calls: 10, open_for: 1s, open_max: 60s, "
                                       "jitter: 0%, probes: 255, at: above }");
    const struct weir_breaker_options *b = &d->guards[0].options.breaker;
    assert_int_equal(b->error_percent, 50);
    assert_int_equal(b->errors, 0);
    assert_int_equal(b->slow_percent, 60);
    assert_int_equal(b->calls, 100);
    assert_int_equal(b->window, 0);
    assert_int_equal(b->open_max, 60 * WEIR_SECOND);
    assert_int_equal(b->jitter_percent, -1);
    assert_int_equal(b->probes, 255);
    assert_true(b->above);
    weir__draft_destroy(d);
    d = read_guard("breaker: { errors: 10, window: 30s, at: reached }");
    b = &d->guards[0].options.breaker;
    assert_int_equal(b->error_percent, 0);
    assert_int_equal(b->errors, 10);
    assert_int_equal(b->window, 30 * WEIR_SECOND);
    assert_false(b->above);
    weir__draft_destroy(d);
    assert_guard_problem("breaker: {}", 10, "the breaker never opens");
    assert_guard_problem("breaker: 50%", 10, "breaker must be a mapping");
    assert_guard_problem("breaker: { window: 10s }", 10, "the breaker never opens");
    assert_guard_problem("breaker: { errors: 101% }", 20, "errors must be from 1% to 100%");
    assert_guard_problem("breaker: { errors: 0% }", 20, "errors must be from 1% to 100%");
    assert_guard_problem("breaker: { errors: 5.5% }", 20, "errors must be a share such as 50%");
    assert_guard_problem("breaker: { errors: 0 }", 20, "errors");
    assert_guard_problem("breaker: { errors: 5, ratio: 50% }", 23,
                         "'ratio' is the share of slow calls");
    assert_guard_problem("breaker: { slow: 1s, ratio: 50 }", 29,
                         "ratio must be a share such as 50%; found '50'");
    assert_guard_problem("breaker: { errors: 5, window: 1s, calls: 9 }", 35,
                         "a window is a time or a number of calls");
    assert_guard_problem("breaker: { errors: 5, calls: 1025 }", 30, "the most is 1024");
    assert_guard_problem("breaker: { errors: 5, calls: 4, min_calls: 3 }", 30,
                         "calls must be at least errors");
    assert_guard_problem("breaker: { errors: 5%, calls: 10, min_calls: 30 }", 31,
                         "calls must be at least min_calls");
    assert_guard_problem("breaker: { errors: 5, open_for: 10s, open_max: 5s }", 48,
                         "open_max must be at least as long as open_for");
    assert_guard_problem("breaker: { errors: 5, probes: 256 }", 31, "the most is 255");
    assert_guard_problem("breaker: { errors: 5, at: over }", 27, "unknown at 'over'");
    assert_guard_problem("breaker: { erors: 5 }", 12, "did you mean 'errors'?");
}

/* ---------------------------------------------------------- the small ones ---- */

TEST(test_G6_system)
{
    struct weir__draft *d = read_guard(
        "system: { cpu: 85%, pressure: 40%, memory: 20%, run_queue: 4, mean_time: 500ms }");
    const struct weir_system_options *s = &d->guards[0].options.system;
    assert_int_equal(s->cpu_percent, 85);
    assert_int_equal(s->pressure_percent, 40);
    assert_int_equal(s->memory_percent, 20);
    assert_int_equal(s->run_queue, 4);
    assert_int_equal(s->mean_time, 500 * WEIR_MILLISECOND);
    weir__draft_destroy(d);
    assert_guard_problem(
        "system: {}", 9,
        "system says nothing; write what the host must not exceed, such as cpu: 85%");
    assert_guard_problem("system: { cpu: 85 }", 16, "cpu must be a share such as 50%");
    assert_guard_problem("system: { load: 5 }", 11, "unknown key 'load' in system");
}

TEST(test_G5_degradation_leases_and_shedding)
{
    struct weir__draft *d =
        read_guard("raises: 2\n    breaker: { errors: 3 }\n    lease: 30s\n    shed: true");
    assert_int_equal(d->guards[0].options.degrade, 1);
    assert_int_equal(d->guards[0].options.raises, 2);
    assert_int_equal(d->guards[0].options.lease, 30 * WEIR_SECOND);
    assert_true(d->guards[0].options.shed);
    weir__draft_destroy(d);
    assert_guard_problem("raises: 2", 1, "'raises' needs a breaker or system");
    assert_guard_problem("shed: 1", 7, "unknown shed '1'; known are false, true");
    assert_guard_problem("lease: 1ms", 8, "lease must be from 10ms to 1h");
    assert_problem("version: 1\nguards: [{ name: g, degrade: 10 }]\n", 2, 30, "the most is 9");
}

/* ------------------------------------------------- users, classes, priority ---- */

TEST(test_G7_users_classes_and_priorities)
{
    struct weir__draft *d =
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
    weir__draft_destroy(d);
}

TEST(test_G7_wrong_users_classes_and_priorities)
{
    assert_guard_problem("user: account", 7, "a user without an attribute is everybody");
    assert_guard_problem("user: \"{account\"", 16, "user: expected } at the end");
    assert_guard_problem("user: { account }", 7, "must be in quotes");
    assert_guard_problem("class: \"{plan}\"", 1, "'class' needs the classes there are");
    assert_problem(guard_with("concurrency: { weights: { gold: 1 } }\n    class: glod"), 7, 12,
                   "unknown class 'glod'; did you mean 'gold'?");
    assert_guard_problem("priority: \"{a}:{b}\"", 12, "priority must be one attribute in braces");
    assert_guard_problem("priority: \"x{a}\"", 12, "priority must be one attribute in braces");
    assert_guard_problem("priority: \"{ip/24}\"", 12, "priority must be one attribute in braces");
    assert_guard_problem("priority: 8", 11, "unknown priority '8'; write a number from -8 to 7");
    assert_guard_problem("priority: high", 11, "unknown priority 'high'");
    assert_guard_problem("priorities: { high: 5 }", 1, "'priorities' says what words mean");
    assert_problem(guard_with("priority: \"{p}\"\n    priorities: { high: 9 }"), 7, 25,
                   "a priority is a number from -8 to 7");
    assert_problem(guard_with("priority: \"{p}\"\n    priorities: {}"), 7, 17,
                   "from 1 to 16 words");
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
    assert_guard_problem("fallback: {}", 11, "the fallback says nothing");
    assert_guard_problem("fallback: { status: 100 }", 21, "status must be at least 200");
    assert_guard_problem("fallback: { status: 600 }", 21, "the most is 599");
    assert_guard_problem("fallback: { type: text/plain }", 13, "'type' is the type of a body");
    assert_guard_problem("fallback: { body: x, type: \"text/plain\\r\\nx: y\" }", 29,
                         "type must be a media type");
    assert_guard_problem("fallback: { body: x, type: json }", 28, "type must be a media type");
    assert_guard_problem("fallback: { body: x, body_file: y }", 22,
                         "the body is here or in a file");
    assert_guard_problem("fallback: { body: [] }", 19, "body must be text");
    assert_guard_problem("fallback: { status: 204, body: x }", 26,
                         "an answer with status 204 has no body");
    assert_guard_problem("fallback: { status: 304, body: x }", 26,
                         "an answer with status 304 has no body");
    weir__draft_destroy(read_guard("fallback: { status: 204 }"));
    assert_guard_problem("fallback: { body_file: y }", 24,
                         "these rules may not name files; write the body here");
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
    char *text = malloc(room);
    len += (size_t)snprintf(text, room, "version: 1\nguards:\n");
    for (int i = 0; i < 4097; i++)
        len += (size_t)snprintf(text + len, room - len, "  - { name: g%d, degrade: 1 }\n", i);
    assert_problem(text, 4099, 5, "there are 4097 guards; the most is 4096");
    text[strlen(text) - strlen("  - { name: g4096, degrade: 1 }\n")] = '\0';
    struct weir__draft *d = read_good(text);
    assert_int_equal(d->n_guards, 4096);
    weir__draft_destroy(d);
    free(text);
}

GROUP(make_folder, remove_folder)
