/* metrics.c -- what is printed is Prometheus's text format to the letter, and says what was
 * counted. */
#include "unit/test.h"

#include "unit/bare-server.h"

#include <ctype.h>

#include "server/serve/decide/guard-lookup.h"
#include "server/serve/events/event-log.h"

#define RULE_AND_NAME(name) "  - { name: " name ", key: \"{ip}\", limit: 2/1s }\n"

static struct weir__in_force_info in_force;
static struct weir__event_log_counts event_log;

/* In place of rules-in-force.c and event-log.c. */
void weir__in_force_info(struct weir__in_force *unused, struct weir__in_force_info *out)
{
    *out = in_force;
}

void weir__event_log_counts(const struct weir__event_log *unused,
                            struct weir__event_log_counts *out)
{
    *out = event_log;
}

/* --------------------------------------------------------- strict reading ---- */

enum { SAMPLES_MAX = 8000, FAMILIES_MAX = 100 };

struct sample {
    char id[700]; /* name{labels} as written */
    double value;
};

struct family {
    char name[100], type[20];
    size_t samples;
    bool ended; /* another one has begun */
};

static struct sample samples[SAMPLES_MAX];
static struct family families[FAMILIES_MAX];
static size_t n_samples, n_families;

static bool is_name(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isalpha((unsigned char)text[i]) && text[i] != '_' &&
            (i == 0 || !isdigit((unsigned char)text[i])))
            return false;
    }
    return len > 0;
}

static struct family *find_family(const char *name, size_t len)
{
    for (size_t i = 0; i < n_families; i++) {
        if (strlen(families[i].name) == len && memcmp(families[i].name, name, len) == 0)
            return &families[i];
    }
    return NULL;
}

/* Of a sample; those of a histogram have endings. */
static struct family *family_of(const char *name, size_t len)
{
    static const char *const endings[] = { "_bucket", "_sum", "_count" };
    struct family *family = find_family(name, len);

    for (size_t i = 0; family == NULL && i < COUNT_OF(endings); i++) {
        size_t ending = strlen(endings[i]);
        if (len > ending && memcmp(name + len - ending, endings[i], ending) == 0)
            family = find_family(name, len - ending);
        if (family != NULL)
            assert_string_equal(family->type, "histogram");
    }
    return family;
}

/* HELP, then TYPE, each once. */
static void read_comment(const char *line)
{
    static char helped[100];
    char name[100], type[20];
    int end = 0;

    if (sscanf(line, "# HELP %99[a-z0-9_] %n", name, &end) == 1 && end > 0) {
        assert_true(strlen(line + end) > 0);
        assert_null(find_family(name, strlen(name)));
        snprintf(helped, sizeof(helped), "%s", name);
        return;
    }
    assert_int_equal(sscanf(line, "# TYPE %99[a-z0-9_] %19s%n", name, type, &end), 2);
    assert_int_equal(line[end], '\0');
    assert_string_equal(name, helped);
    assert_true(strcmp(type, "counter") == 0 || strcmp(type, "gauge") == 0 ||
                strcmp(type, "histogram") == 0);
    assert_null(find_family(name, strlen(name)));
    assert_true(n_families < FAMILIES_MAX);
    if (n_families > 0)
        families[n_families - 1].ended = true;
    snprintf(families[n_families].name, sizeof(families[0].name), "%s", name);
    snprintf(families[n_families++].type, sizeof(families[0].type), "%s", type);
    bool is_total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;
    assert_int_equal(is_total, strcmp(type, "counter") == 0);
}

/* {name="value",...}; returns what is behind it. */
static const char *read_labels(const char *at)
{
    if (*at != '{')
        return at;
    do {
        size_t len = strcspn(++at, "=");
        assert_true(is_name(at, len));
        at += len + 1;
        assert_int_equal(*at++, '"');
        for (; *at != '"'; at++) {
            assert_true(*at != '\0');
            if (*at == '\\')
                assert_non_null(strchr("\\\"n", *++at));
        }
        at++;
    } while (*at == ',');
    assert_int_equal(*at, '}');
    return at + 1;
}

static void read_sample(const char *line)
{
    size_t name = strcspn(line, "{ ");
    const char *end = read_labels(line + name);
    struct family *family = family_of(line, name);
    char *stop;

    assert_true(is_name(line, name));
    if (family == NULL || family->ended)
        fail_msg("no TYPE before, or another family in between: %s", line);
    family->samples++;
    assert_true(n_samples < SAMPLES_MAX);
    struct sample *sample = &samples[n_samples];
    snprintf(sample->id, sizeof(sample->id), "%.*s", (int)(end - line), line);
    for (size_t i = 0; i < n_samples; i++)
        assert_string_not_equal(samples[i].id, sample->id);
    assert_int_equal(*end, ' ');
    sample->value = strtod(end + 1, &stop);
    assert_true(stop > end + 1 && *stop == '\0');
    if (strcmp(family->type, "counter") == 0)
        assert_true(sample->value >= 0);
    n_samples++;
}

/* Everything that is printed, read into samples and families. */
static void print_and_read(weir_time now)
{
    FINALLY(weir__buffer_free) struct weir__buffer out = { 0 };

    weir__metrics_print(&server, now, &out);
    assert_false(out.failed);
    assert_int_equal(out.bytes[out.len - 1], '\n');
    memset(families, 0, sizeof(families));
    n_samples = n_families = 0;
    for (char *line = out.bytes, *end; line < out.bytes + out.len; line = end + 1) {
        end = memchr(line, '\n', (size_t)(out.bytes + out.len - line));
        assert_non_null(end);
        *end = '\0';
        if (*line == '#')
            read_comment(line);
        else
            read_sample(line);
    }
}

static double value_of(const char *id)
{
    for (size_t i = 0; i < n_samples; i++) {
        if (strcmp(samples[i].id, id) == 0)
            return samples[i].value;
    }
    fail_msg("there is no %s", id);
    return 0;
}

static bool has(const char *id)
{
    for (size_t i = 0; i < n_samples; i++) {
        if (strcmp(samples[i].id, id) == 0)
            return true;
    }
    return false;
}

#define assert_value(id, wanted) assert_true(value_of(id) == (double)(wanted))

/* ------------------------------------------------------------------ tests ---- */

static int make_server(void **state)
{
    static int something;

    memset(&event_log, 0, sizeof(event_log));
    in_force = (struct weir__in_force_info){ .hash = "0123456789abcdef",
                                             .source = "/etc/weir/rules.yaml",
                                             .cause = "start",
                                             .since = NOW,
                                             .version = 3 };
    open_server(table_with(&(struct weir_table_options){ .keys = 1000, .limiters = 4000 }));
    server.in_force = (struct weir__in_force *)&something;
    server.event_log = (struct weir__event_log *)&something;
    server.started = NOW + WEIR_MILLISECOND;
    server.connections = 7;
    return 0;
}

static int free_server(void **state)
{
    close_server();
    return 0;
}

static void work(struct weir_guard *guard, weir_time now)
{
    struct weir_permit permit;
    struct weir_decision d;

    assert_true(weir_enter(guard, &(struct weir_ask){ .now = now }, &permit, &d));
    assert_true(weir_exit(guard, &permit, WEIR_SUCCEEDED, now + WEIR_MILLISECOND));
}

TEST_WITH(test_S5_every_family_has_samples_of_its_own, make_server, free_server)
{
    struct weir_guard *guard;

    use(server.engine, RULES(RULE_AND_NAME("login")), NOW);
    assert_ok(weir_guard_create(&guard, server.table, "search",
                                &(struct weir_guard_options){ .breaker.error_percent = 50 }, NULL));
    for (int i = 0; i < 30; i++)
        work(guard, NOW + i * S / 10);
    print_and_read(NOW + 3 * S);
    assert_value("weir_guard_breaker{guard=\"search\",state=\"closed\"}", 1);
    assert_value("weir_guard_duration_seconds_bucket{guard=\"search\",le=\"0.0025\"}", 30);
    assert_value("weir_guard_duration_seconds_bucket{guard=\"search\",le=\"+Inf\"}", 30);
    assert_value("weir_guard_duration_seconds_count{guard=\"search\"}", 30);
    assert_value("weir_guard_duration_seconds_sum{guard=\"search\"}", 0.03);
    for (size_t i = 0; i < n_families; i++) {
        if (families[i].samples == 0)
            fail_msg("%s has no samples", families[i].name);
    }
    assert_true(n_families > 40);
    assert_value("weir_info{version=\"" WEIR_VERSION "\"}", 1);
}

TEST_WITH(test_S5_guards, make_server, free_server)
{
    struct weir_guard *guard;
    struct weir_permit permit, late;
    struct weir_decision d;
    struct weir_ask ask = { .now = NOW };

    assert_ok(weir_guard_create(&guard, server.table, "search",
                                &(struct weir_guard_options){ .max = 2 }, NULL));
    assert_true(weir_enter(guard, &ask, &permit, &d) && weir_enter(guard, &ask, &late, &d));
    assert_false(weir_enter(guard, &ask, &(struct weir_permit){ 0 }, &d));
    assert_true(weir_exit(guard, &permit, WEIR_FAILED, NOW + S));
    weir_degradation_set(server.table, 4, NOW);
    print_and_read(NOW + S);
    assert_value("weir_guard_in_flight{guard=\"search\"}", 1);
    assert_value("weir_guard_limit{guard=\"search\"}", 2);
    assert_value("weir_guard_refused_total{guard=\"search\",reason=\"busy\"}", 1);
    assert_value("weir_guard_exits_total{guard=\"search\",outcome=\"error\"}", 1);
    assert_false(has("weir_guard_breaker{guard=\"search\",state=\"closed\"}")); /* it has none */
    assert_value("weir_guard_admitted_ratio{guard=\"search\"}", 1);
    assert_value("weir_degradation", 4);
    assert_value("weir_degradation_by_hand", 1);
    assert_false(
        has("weir_guard_seconds{guard=\"search\",quantile=\"0.5\"}")); /* not known is not 0 */
}

/* A guard that is damaged is left out, and those behind it are not; whom its queue has turned away
 * is counted too. */
TEST_WITH(test_S5_guards_behind_a_damaged_one, make_server, free_server)
{
    struct weir_guard *guard;

    server.guards = weir__guards_create(server.table);
    assert_non_null(server.guards);
    assert_ok(weir_guard_create(&guard, server.table, "a", NULL, NULL));
    server.table->places[server.table->guards.first + 1].word = 1 << 20; /* no block of a record */
    assert_ok(weir_guard_create(&guard, server.table, "c", NULL, NULL));
    weir__guard_count_refused(guard, WEIR_FULL);
    weir__guard_count_refused(guard, WEIR_LATE);
    weir__guard_count_refused(guard, WEIR_LATE);
    print_and_read(NOW);
    assert_value("weir_guard_refused_total{guard=\"a\",reason=\"full\"}", 0);
    assert_value("weir_guard_refused_total{guard=\"c\",reason=\"full\"}", 1);
    assert_value("weir_guard_refused_total{guard=\"c\",reason=\"late\"}", 2);
    assert_ptr_equal(weir__guards_find(server.guards, "c", 1), guard);
    assert_null(weir__guards_find(server.guards, "", 0));
    weir__guards_destroy(server.guards);
    server.guards = NULL;
}

TEST_WITH(test_a_server_that_has_nothing_yet, make_server, free_server)
{
    struct weir__top *top = server.top;

    server.in_force = NULL;
    server.event_log = NULL;
    server.top = NULL;
    server.n_loops = 0;
    print_and_read(NOW);
    assert_value("weir_rules_info{hash=\"\",source=\"\",cause=\"\"}", 1);
    server.top = top;
}

TEST_WITH(test_S5_counters_of_all_loops_are_added_up, make_server, free_server)
{
    enum { A_LOT = 1234000 };
    for (int i = 0; i < WEIR__COUNTERS; i++) {
        weir__counter_add(&loops[0].counters, (enum weir__counter)i, A_LOT);
        weir__counter_add(&loops[1].counters, (enum weir__counter)i, i);
    }
    print_and_read(NOW);
    assert_value("weir_connections", 7);
    assert_value("weir_connections_accepted_total", A_LOT + WEIR__COUNT_CONNECTIONS);
    assert_value("weir_connections_dropped_total{reason=\"not-reading\"}",
                 A_LOT + WEIR__COUNT_NOT_READING);
    assert_value("weir_requests_total{door=\"http\"}", A_LOT + WEIR__COUNT_HTTP_REQUESTS);
    assert_value("weir_checks_total{outcome=\"refused\"}", A_LOT + WEIR__COUNT_CHECK_REFUSED);
    assert_value("weir_takes_total{outcome=\"allowed\"}", A_LOT + WEIR__COUNT_TAKE_ALLOWED);
    assert_value("weir_sent_bytes_total", A_LOT + WEIR__COUNT_BYTES_OUT);
    size_t ours = 0;
    for (size_t i = 0; i < n_samples; i++)
        ours += samples[i].value >= A_LOT && samples[i].value < A_LOT + WEIR__COUNTERS;
    assert_int_equal(ours, WEIR__COUNTERS); /* each is printed, and none twice */
}

TEST_WITH(test_S5_decisions_by_rule_and_outcome, make_server, free_server)
{
    use(server.engine,
        RULES(RULE_AND_NAME(
            "login") "  - { name: watched, key: \"{ip}\", limit: 1/1s, mode: shadow }\n"),
        NOW);
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.1", NOW), 2);
    print_and_read(NOW);
    assert_value("weir_decisions_total{rule=\"login\",outcome=\"allowed\"}", 2);
    assert_value("weir_decisions_total{rule=\"login\",outcome=\"refused\"}", 3);
    assert_value("weir_decisions_banned_total{rule=\"login\"}", 0);
    assert_true(value_of("weir_decisions_total{rule=\"watched\",outcome=\"shadow_refused\"}") >= 1);
    assert_value("weir_rule_mode{rule=\"login\",mode=\"enforce\"}", 1);
    assert_value("weir_rule_mode{rule=\"watched\",mode=\"shadow\"}", 1);
    assert_value("weir_table_slots", stats_of(server.table, -1).slots);
    assert_value("weir_table_keys", stats_of(server.table, -1).keys);
}

TEST_WITH(test_S5_checks_that_no_rule_decided, make_server, free_server)
{
    use(server.engine,
        "version: 1\nlists:\n  deny: { ip: [192.0.2.1] }\n  allow: { ip: [192.0.2.2] "
        "}\nrules:\n" RULE_AND_NAME("login"),
        NOW);
    assert_int_equal(pass_of(server.engine, 2, "ip=192.0.2.1", NOW), 0);
    assert_int_equal(pass_of(server.engine, 3, "ip=192.0.2.2", NOW), 3);
    assert_int_equal(pass_of(server.engine, 4, "org=x", NOW), 4);
    print_and_read(NOW);
    assert_value("weir_checks_listed_total{list=\"deny\"}", 2);
    assert_value("weir_checks_listed_total{list=\"allow\"}", 3);
    assert_value("weir_checks_unmatched_total", 4);
}

TEST_WITH(test_labels_are_escaped, make_server, free_server)
{
    snprintf(in_force.source, sizeof(in_force.source), "a\"b\\c\nd\\");
    print_and_read(NOW);
    assert_value(
        "weir_rules_info{hash=\"0123456789abcdef\",source=\"a\\\"b\\\\c\\nd\\\\\",cause=\"start\"}",
        1);
}

TEST_WITH(test_S5_thousands_of_rules_are_bounded, make_server, free_server)
{
    enum { MANY = 1200 };
    char *yaml = malloc(MANY * 100);
    size_t n = (size_t)sprintf(yaml, "version: 1\nrules:\n");
    for (int i = 0; i < MANY; i++)
        n += (size_t)sprintf(
            yaml + n, "  - { name: r%d, match: { org: \"%d\" }, key: \"{ip}\", limit: 2/1s }\n", i,
            i);
    use(server.engine, yaml, NOW);
    free(yaml);
    assert_int_equal(pass_of(server.engine, 3, "ip=192.0.2.1 org=999", NOW), 2);
    assert_int_equal(pass_of(server.engine, 4, "ip=192.0.2.1 org=1000", NOW), 2);
    assert_int_equal(pass_of(server.engine, 5, "ip=192.0.2.1 org=1199", NOW), 2);
    print_and_read(NOW);
    assert_value("weir_decisions_total{rule=\"r999\",outcome=\"refused\"}", 1);
    assert_false(has("weir_decisions_total{rule=\"r1000\",outcome=\"refused\"}"));
    assert_value("weir_decisions_total{rule=\"(others)\",outcome=\"refused\"}", 5);
    assert_value("weir_decisions_total{rule=\"(others)\",outcome=\"allowed\"}", 4);
}

TEST_WITH(test_S5_decision_times_are_a_histogram, make_server, free_server)
{
    double last = 0;
    int buckets = 0;

    weir__counters_time(&loops[0].counters, 1, 250);
    weir__counters_time(&loops[0].counters, 1, 251);
    weir__counters_time(&loops[1].counters, 10, 10000); /* 1 us each */
    weir__counters_time(&loops[1].counters, 1, INT64_MAX / 2);
    weir__counters_time(&loops[1].counters, 0, 5);
    weir__counters_time(&loops[1].counters, 1, -5); /* a clock that was set back */
    print_and_read(NOW);
    assert_value("weir_decision_seconds_bucket{le=\"2.5e-07\"}", 1);
    assert_value("weir_decision_seconds_bucket{le=\"5e-07\"}", 2);
    assert_value("weir_decision_seconds_bucket{le=\"1e-06\"}", 12);
    assert_value("weir_decision_seconds_bucket{le=\"0.065536\"}", 12);
    assert_value("weir_decision_seconds_bucket{le=\"+Inf\"}", 13);
    assert_value("weir_decision_seconds_count", 13);
    assert_true(value_of("weir_decision_seconds_sum") > 4e9);
    for (size_t i = 0; i < n_samples; i++) {
        if (strncmp(samples[i].id, "weir_decision_seconds_bucket", 28) != 0)
            continue;
        assert_true(samples[i].value >= last);
        last = samples[i].value;
        buckets++;
    }
    assert_int_equal(buckets, WEIR__TIME_BUCKETS);
}

TEST_WITH(test_S5_rules_bans_events_sinks_and_top, make_server, free_server)
{
    struct weir_error error;

    use(server.engine, RULES(RULE_AND_NAME("login")), NOW);
    assert_ok(weir_ban_set(server.engine, "login", "192.0.2.7", NOW, NOW + 5 * S, &error));
    assert_ok(weir_ban_set(server.engine, "login", "192.0.2.8", NOW, NOW + 1, &error));
    weir__events_emit(server.events, WEIR__EVENT_RELOAD_FAILED, NOW, NULL);
    weir__events_emit(server.events, WEIR__EVENT_BAN, NOW, NULL);
    event_log = (struct weir__event_log_counts){
        1, 2, { .delivered = 3, .dropped = 4, .lost = 5, .tries = 6, .failures = 7 }
    };
    for (int i = 0; i < 30; i++)
        weir__top_add(server.top, (size_t)i % 2, "login", "192.0.2.1", 9, 1);
    snprintf(in_force.problem, sizeof(in_force.problem), "line 3: no");
    print_and_read(NOW + 2500 * WEIR_MILLISECOND);
    assert_value("weir_bans", 1);
    assert_value("weir_rules_version", 3);
    assert_value("weir_rules_age_seconds", 2.5);
    assert_value("weir_rules_reload_good", 0);
    assert_value("weir_rules_reload_failures_total", 1);
    assert_value("weir_events_total{event=\"ban\"}", 1);
    assert_value("weir_events_total{event=\"unban\"}", 0);
    assert_value("weir_event_log_lines_total", 1);
    assert_value("weir_event_log_lost_total", 2);
    assert_value("weir_webhook_events_total{outcome=\"delivered\"}", 3);
    assert_value("weir_webhook_events_total{outcome=\"lost\"}", 5);
    assert_value("weir_webhook_posts_total", 6);
    assert_value("weir_webhook_failures_total", 7);
    assert_value("weir_top_keys", 1);
    assert_value("weir_top_refused_ratio", 1);
    assert_value("process_start_time_seconds", 1000.001);
}

TEST_WITH(test_S5_the_process, make_server, free_server)
{
    print_and_read(NOW);
    double open_before = value_of("process_open_fds");
    int fd = open("/dev/null", O_RDONLY);
    print_and_read(NOW);
    close(fd);
    assert_value("process_open_fds", open_before + 1);
    assert_true(value_of("process_max_fds") > open_before);
    assert_true(value_of("process_resident_memory_bytes") > 100000);
    assert_true(value_of("process_cpu_seconds_total") > 0);
}
