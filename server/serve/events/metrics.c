/* metrics.c -- the server's counters in Prometheus's text format (0.0.4).
 *
 * A scrape gathers everything in one struct of numbers; a table names each of them.  A new metric
 * is a member and a row.  Metrics with a label for each rule, and histograms, have functions of
 * their own.
 *
 * The number of samples is bounded: by the rules, of which those beyond RULES_MAX are one sample,
 * and by nothing that a client can choose. So limited keys are no labels: their number and their
 * share of the refusals are metrics, WEIR.TOP names them.
 */
#include "server/serve/decide/ask-ids.h"
#include "server/serve/decide/guards-json.h"
#include "server/serve/decide/fair-use-per-client.h"
#include "server/serve/events/metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"
#include "server/serve/serve.h"
#include "server/serve/events/event-log.h"
#include "server/serve/events/process-figures.h"
#include "server/serve/events/top-keys.h"
#include "table/bans.h"
#include "wire/tls.h"

enum { RULES_MAX = 1000, GUARDS_MAX = 256, TOP_KEYS = 10, TRIES = 3 };

/* ------------------------------------------------------- decision times ---- */

#define FIRST_BUCKET ((weir_time)250)

#define TIMED_BATCHES 64

/* 0: this batch is not timed. */
weir_time weir__counters_begin(struct weir__counters *c)
{
    return c->batches++ % TIMED_BATCHES == 0 ? weir__clock_monotonic() : 0;
}

void weir__counters_end(struct weir__counters *c, weir_time began, size_t n)
{
    if (began)
        weir__counters_time(c, (int64_t)n, weir__clock_monotonic() - began);
}

void weir__counters_time(struct weir__counters *c, int64_t n, weir_time span)
{
    size_t i = 0;

    if (n <= 0 || span < 0)
        return;
    for (weir_time each = span / n; i + 1 < WEIR__TIME_BUCKETS && each > FIRST_BUCKET << i;)
        i++;
    __atomic_store_n(&c->times[i], __atomic_load_n(&c->times[i], __ATOMIC_RELAXED) + n,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&c->times_sum, __atomic_load_n(&c->times_sum, __ATOMIC_RELAXED) + span,
                     __ATOMIC_RELAXED);
}

/* ------------------------------------------------------------ gathering ---- */

struct figures {
    int64_t counts[WEIR__COUNTERS];
    int64_t times[WEIR__TIME_BUCKETS], times_sum;
    int64_t connections;
    struct weir_totals totals;
    struct weir_table_stats table;
    int64_t bans;
    int64_t version, age, reload_good, rules, limits, entries;
    int64_t events[WEIR__EVENT_KINDS];
    struct weir__event_log_counts event_log;
    struct weir__top_figures top;
    int64_t top_share; /* in millionths */
    int64_t ask_ids_replaced;
    int64_t shares_refused[WEIR__POOLS];
    int64_t fleet_alone, fleet_part, fleet_members, fleet_draws, fleet_asks_alone;
    struct weir__process_figures process;
    int64_t started, certificate_until;
    struct weir__in_force_info in_force;
};

static void gather_loops(struct figures *f, const struct weir__server *server)
{
    for (int k = 0; k < WEIR__COUNTERS; k++)
        f->counts[k] = weir__server_count(server, (enum weir__counter)k);
    for (size_t i = 0; i < server->n_loops; i++) {
        const struct weir__counters *c = &server->loops[i].counters;
        for (size_t k = 0; k < WEIR__TIME_BUCKETS; k++)
            f->times[k] += __atomic_load_n(&c->times[k], __ATOMIC_RELAXED);
        f->times_sum += __atomic_load_n(&c->times_sum, __ATOMIC_RELAXED);
    }
    f->connections = __atomic_load_n(&server->connections, __ATOMIC_RELAXED);
}

static void gather_rules(struct figures *f, const struct weir__server *server, weir_time now)
{
    if (server->in_force == NULL)
        return;
    weir__in_force_info(server->in_force, &f->in_force);
    f->version = f->in_force.version;
    f->age = now > f->in_force.since ? now - f->in_force.since : 0;
    f->reload_good = f->in_force.problem[0] == '\0';
    f->rules = (int64_t)f->in_force.rules;
    f->limits = (int64_t)f->in_force.limits;
    f->entries = (int64_t)f->in_force.entries;
}

static void gather_fleet(struct figures *f, const struct weir__server *server)
{
    struct weir_fleet_info info;

    if (server->fleet == NULL)
        return;
    weir_fleet_look(server->fleet, &info);
    f->fleet_alone = info.alone;
    f->fleet_part = info.part;
    f->fleet_members = info.members;
    f->fleet_draws = (int64_t)info.draws;
    f->fleet_asks_alone = (int64_t)info.asks_alone;
}

static void gather(struct figures *f, struct weir__server *server, weir_time now)
{
    *f = (struct figures){ .counts = { 0 } };
    gather_loops(f, server);
    gather_rules(f, server, now);
    gather_fleet(f, server);
    weir__process_figures(&f->process);
    f->started = weir_table_real(server->table, server->started);
    f->certificate_until = server->tls != NULL ? weir__tls_context_validity(server->tls).until : 0;
    weir_totals_get(server->engine, &f->totals);
    weir_table_stats(
        server->table, -1,
        &f->table); /* without the live keys: counting those would read the whole table */
    f->bans = weir__bans_in_force(server->table, now);
    weir__events_counts(server->events, f->events);
    if (server->event_log != NULL)
        weir__event_log_counts(server->event_log, &f->event_log);
    if (server->ask_ids != NULL)
        f->ask_ids_replaced = weir__ask_ids_replaced(server->ask_ids);
    for (int i = 0; i < WEIR__POOLS; i++)
        f->shares_refused[i] = weir__fair_use_refused(server->fair_use, (enum weir__pool)i);
    if (server->top != NULL)
        weir__top_figures(server->top, TOP_KEYS, &f->top);
    f->top_share = f->top.total > 0 ? f->top.refused * 1000000 / f->top.total : 0;
}

/* ------------------------------------------------------- plain metrics ---- */

enum unit {
    ONE,
    SECONDS,
    MILLIONTHS
}; /* how the number is printed: as it is; it is in ns; as a share of 1 */

struct row {
    const char *name; /* rows of one name stand together */
    const char *type; /* "counter", "gauge"; that and the help in the first row of the name */
    const char *help;
    const char *labels; /* NULL: none */
    size_t at;          /* of an int64_t in struct figures */
    enum unit unit;
};

#define COUNT(which) offsetof(struct figures, counts) + WEIR__COUNT_##which * sizeof(int64_t)
#define POOL(which)  offsetof(struct figures, shares_refused) + WEIR__POOL_##which * sizeof(int64_t)
#define AT(member)   offsetof(struct figures, member)

static const struct row rows[] = {
    { "weir_connections", "gauge", "Connections that are open.", NULL, AT(connections), ONE },
    { "weir_connections_accepted_total", "counter", "Connections accepted.", NULL,
      COUNT(CONNECTIONS), ONE },
    { "weir_connections_closed_total", "counter", "Connections closed, for any reason.", NULL,
      COUNT(CONNECTIONS_CLOSED), ONE },
    { "weir_connections_refused_total", "counter",
      "Connections closed at once because there were too many.", NULL, COUNT(CONNECTIONS_REFUSED),
      ONE },
    { "weir_connections_dropped_total", "counter",
      "Connections closed by the server for their behaviour.", "reason=\"bad-input\"",
      COUNT(BAD_INPUT), ONE },
    { "weir_connections_dropped_total", NULL, NULL, "reason=\"timed-out\"", COUNT(TIMED_OUT), ONE },
    { "weir_connections_dropped_total", NULL, NULL, "reason=\"not-reading\"", COUNT(NOT_READING),
      ONE },
    { "weir_requests_total", "counter", "RESP commands and HTTP requests.", "door=\"resp\"",
      COUNT(RESP_COMMANDS), ONE },
    { "weir_requests_total", NULL, NULL, "door=\"http\"", COUNT(HTTP_REQUESTS), ONE },
    { "weir_auth_failures_total", "counter", "Wrong passwords and tokens.", NULL,
      COUNT(AUTH_FAILED), ONE },
    { "weir_auth_turned_away_total", "counter",
      "Tokens refused because too many from their address were wrong (auth-guesses).", NULL,
      COUNT(AUTH_TURNED_AWAY), ONE },
    { "weir_proxy_doubts_total", "counter",
      "Asks at /v1/auth of proxies that seem to be set up wrongly: not in trusted-proxies, without "
      "X-Forwarded-For, without X-Original-URI, where rules look at these.",
      "kind=\"not-trusted\"", COUNT(PROXY_NOT_TRUSTED), ONE },
    { "weir_proxy_doubts_total", NULL, NULL, "kind=\"no-client\"", COUNT(PROXY_NO_CLIENT), ONE },
    { "weir_proxy_doubts_total", NULL, NULL, "kind=\"no-uri\"", COUNT(PROXY_NO_URI), ONE },
    { "weir_tls_certificate_expires_seconds", "gauge",
      "When the certificate expires, since 1970; 0 without TLS.", NULL, AT(certificate_until),
      ONE },
    { "weir_received_bytes_total", "counter", "Bytes received from clients.", NULL, COUNT(BYTES_IN),
      ONE },
    { "weir_sent_bytes_total", "counter", "Bytes sent to clients.", NULL, COUNT(BYTES_OUT), ONE },
    { "weir_checks_total", "counter", "Requests decided by the rules.", "outcome=\"allowed\"",
      COUNT(CHECK_ALLOWED), ONE },
    { "weir_checks_total", NULL, NULL, "outcome=\"refused\"", COUNT(CHECK_REFUSED), ONE },
    { "weir_checks_listed_total", "counter", "Of these, decided by a list.", "list=\"allow\"",
      AT(totals.allow_listed), ONE },
    { "weir_checks_listed_total", NULL, NULL, "list=\"deny\"", AT(totals.denied), ONE },
    { "weir_checks_unmatched_total", "counter", "Of these, allowed because no rule applies.", NULL,
      AT(totals.unmatched), ONE },
    { "weir_checks_shadow_refused_total", "counter",
      "Of these, allowed but would have been refused by a rule in shadow.", NULL,
      AT(totals.shadow_refused), ONE },
    { "weir_takes_total", "counter", "Asks with a limit of their own: CL.THROTTLE and WEIR.TAKE.",
      "outcome=\"allowed\"", COUNT(TAKE_ALLOWED), ONE },
    { "weir_takes_total", NULL, NULL, "outcome=\"refused\"", COUNT(TAKE_REFUSED), ONE },
    { "weir_enters_total", "counter", "Asks to enter guards.", "outcome=\"allowed\"",
      COUNT(ENTER_ALLOWED), ONE },
    { "weir_enters_total", NULL, NULL, "outcome=\"refused\"", COUNT(ENTER_REFUSED), ONE },
    { "weir_ask_ids_repeated_total", "counter",
      "Checks that were repeated with their ask id, and not charged again.", NULL,
      COUNT(ASK_ID_REPEATED), ONE },
    { "weir_table_slots", "gauge", "Places for keys.", NULL, AT(table.slots), ONE },
    { "weir_table_keys", "gauge", "Places in use, including those of idle keys.", NULL,
      AT(table.keys), ONE },
    { "weir_table_slab_bytes", "gauge", "Room for states of sliding windows and logs.", NULL,
      AT(table.slab), ONE },
    { "weir_table_slab_used_bytes", "gauge", "Of these, in use.", NULL, AT(table.slab_used), ONE },
    { "weir_table_bytes", "gauge", "Size of the table.", NULL, AT(table.bytes), ONE },
    { "weir_table_limiters", "gauge", "Limits that have states in the table.", NULL,
      AT(table.limiters), ONE },
    { "weir_table_evicted_total", "counter",
      "Keys that made room: idle ones for nothing, early ones because the table is too small.",
      "when=\"idle\"", AT(table.evicted_idle), ONE },
    { "weir_table_evicted_total", NULL, NULL, "when=\"early\"", AT(table.evicted_early), ONE },
    { "weir_table_recovered_total", "counter",
      "Decisions that a killed process left half done, put right.", NULL, AT(table.recovered),
      ONE },
    { "weir_bans", "gauge", "Bans in force.", NULL, AT(bans), ONE },
    { "weir_bans_lost_total", "counter", "Bans that made room before their end.", NULL,
      AT(table.bans_lost), ONE },
    { "weir_table_no_room_total", "counter",
      "Asks for new keys refused because the table was full: when_full: closed.", NULL,
      AT(table.no_room), ONE },
    { "weir_table_no_disk_total", "counter",
      "Blocks for windows, logs and bans that were wanted while the disk was full.", NULL,
      AT(table.no_disk), ONE },
    { "weir_rules", "gauge", "Rules in force.", NULL, AT(rules), ONE },
    { "weir_rules_limits", "gauge", "Limits of the rules in force.", NULL, AT(limits), ONE },
    { "weir_rules_list_entries", "gauge", "Entries of the lists in force.", NULL, AT(entries),
      ONE },
    { "weir_rules_version", "gauge",
      "Rule sets in force since the start, including the present one.", NULL, AT(version), ONE },
    { "weir_rules_age_seconds", "gauge", "Time since the rules in force took effect.", NULL,
      AT(age), SECONDS },
    { "weir_rules_reload_good", "gauge",
      "1, or 0 if the rule file was refused since the rules in force took effect.", NULL,
      AT(reload_good), ONE },
    { "weir_rules_reload_failures_total", "counter",
      "Times that the rule file was read again and refused.", NULL,
      AT(events) + WEIR__EVENT_RELOAD_FAILED * sizeof(int64_t), ONE },
    { "weir_fleet_alone", "gauge",
      "1 while the fleet's Redis does not answer and rules go by when_alone; 0 in no fleet.", NULL,
      AT(fleet_alone), ONE },
    { "weir_fleet_members", "gauge", "Hosts of the fleet.", NULL, AT(fleet_members), ONE },
    { "weir_fleet_part_ratio", "gauge", "This host's part of every limit while Redis is away.",
      NULL, AT(fleet_part), MILLIONTHS },
    { "weir_fleet_draws_total", "counter", "Draws from the fleet's accounts.", NULL,
      AT(fleet_draws), ONE },
    { "weir_fleet_asks_alone_total", "counter",
      "Asks that waited for units as long as their rule allows, and were decided by when_alone. "
      "Those "
      "of a host that is alone do not wait, and are not counted.",
      NULL, AT(fleet_asks_alone), ONE },
    { "weir_event_log_lines_total", "counter", "Events written to the log.", NULL,
      AT(event_log.log_written), ONE },
    { "weir_event_log_lost_total", "counter", "Events that could not be written to the log.", NULL,
      AT(event_log.log_lost), ONE },
    { "weir_webhook_events_total", "counter",
      "Events that the webhook accepted or rejected, or that were lost.", "outcome=\"delivered\"",
      AT(event_log.webhook.delivered), ONE },
    { "weir_webhook_events_total", NULL, NULL, "outcome=\"dropped\"", AT(event_log.webhook.dropped),
      ONE },
    { "weir_webhook_events_total", NULL, NULL, "outcome=\"lost\"", AT(event_log.webhook.lost),
      ONE },
    { "weir_webhook_posts_total", "counter", "Posts to the webhook.", NULL,
      AT(event_log.webhook.tries), ONE },
    { "weir_webhook_failures_total", "counter", "Posts that failed.", NULL,
      AT(event_log.webhook.failures), ONE },
    { "weir_ask_ids_replaced_total", "counter",
      "Ask ids that made room before their time: ask-ids is too small.", NULL, AT(ask_ids_replaced),
      ONE },
    { "weir_share_refused_total", "counter",
      "Asks of clients that had their share of a pool; ask ids are then not remembered, "
      "changes of limits not made.",
      "pool=\"adhoc-limits\"", POOL(LIMITS), ONE },
    { "weir_share_refused_total", NULL, NULL, "pool=\"limit-changes\"", POOL(LIMIT_CHANGES), ONE },
    { "weir_share_refused_total", NULL, NULL, "pool=\"reservations\"", POOL(RESERVATIONS), ONE },
    { "weir_share_refused_total", NULL, NULL, "pool=\"ask-ids\"", POOL(ASK_IDS), ONE },
    { "weir_share_refused_total", NULL, NULL, "pool=\"waits-for-units\"", POOL(UNITS_WAITS), ONE },
    { "weir_share_refused_total", NULL, NULL, "pool=\"locks\"", POOL(LOCKS), ONE },
    { "weir_share_refused_total", NULL, NULL, "pool=\"jobs\"", POOL(JOBS), ONE },
    { "weir_share_refused_total", NULL, NULL, "pool=\"connections\"", POOL(CONNECTIONS), ONE },
    { "weir_top_keys", "gauge",
      "Keys among the ten that were refused most in the last ten to twenty minutes.", NULL,
      AT(top.keys), ONE },
    { "weir_top_refused_ratio", "gauge", "Their share of all refusals in that time.", NULL,
      AT(top_share), MILLIONTHS },
    { "process_cpu_seconds_total", "counter", "CPU time used.", NULL, AT(process.cpu), SECONDS },
    { "process_resident_memory_bytes", "gauge", "Memory in use.", NULL, AT(process.memory), ONE },
    { "process_open_fds", "gauge", "Open file descriptors.", NULL, AT(process.fds), ONE },
    { "process_max_fds", "gauge", "Most file descriptors that may be open.", NULL,
      AT(process.fds_max), ONE },
    { "process_start_time_seconds", "gauge", "When the server started, since 1970.", NULL,
      AT(started), SECONDS },
};

static void print_head(struct weir__buffer *out, const char *name, const char *type,
                       const char *help)
{
    weir__buffer_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_value(struct weir__buffer *out, int64_t n, enum unit unit)
{
    if (unit == ONE)
        weir__buffer_format(out, " %" PRId64 "\n", n);
    else if (unit == SECONDS)
        weir__buffer_format(out, " %" PRId64 ".%09" PRId64 "\n", n / WEIR_SECOND, n % WEIR_SECOND);
    else
        weir__buffer_format(out, " %" PRId64 ".%06" PRId64 "\n", n / 1000000, n % 1000000);
}

static void print_rows(struct weir__buffer *out, const struct figures *f)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *r = &rows[i];
        int64_t n;
        memcpy(&n, (const char *)f + r->at, sizeof(n));
        if (r->help != NULL)
            print_head(out, r->name, r->type, r->help);
        weir__buffer_text(out, r->name);
        if (r->labels != NULL)
            weir__buffer_format(out, "{%s}", r->labels);
        print_value(out, n, r->unit);
    }
}

/* ---------------------------------------------------------------- others ---- */

/* name="value", the value escaped as the format wants it. */
static void print_label(struct weir__buffer *out, const char *name, const char *value)
{
    weir__buffer_format(out, "%s=\"", name);
    for (size_t n; *value; value += n) {
        n = strcspn(value, "\\\"\n");
        weir__buffer_add(out, value, n);
        if (value[n] == '\0')
            continue;
        weir__buffer_text(out, value[n] == '\n' ? "\\n" : value[n] == '"' ? "\\\"" : "\\\\");
        n++;
    }
    weir__buffer_text(out, "\"");
}

static void print_infos(struct weir__buffer *out, const struct figures *f)
{
    print_head(out, "weir_info", "gauge", "The version that is running.");
    weir__buffer_format(out, "weir_info{version=\"%s\"} 1\n", weir_version());
    print_head(out, "weir_rules_info", "gauge",
               "Which rules are in force: the hash of their text, where they come from, and the "
               "cause of the change.");
    weir__buffer_text(out, "weir_rules_info{");
    print_label(out, "hash", f->in_force.hash);
    weir__buffer_text(out, ",");
    print_label(out, "source", f->in_force.source);
    weir__buffer_text(out, ",");
    print_label(out, "cause", f->in_force.cause);
    weir__buffer_text(out, "} 1\n");
}

static void print_events(struct weir__buffer *out, const struct figures *f)
{
    print_head(out, "weir_events_total", "counter", "What happened, by kind.");
    for (size_t i = 0; i < WEIR__EVENT_KINDS; i++) {
        if (i != WEIR__EVENT_LOST) /* event_log tell these themselves */
            weir__buffer_format(out, "weir_events_total{event=\"%s\"} %" PRId64 "\n",
                                weir__event_name((enum weir__event_kind)i), f->events[i]);
    }
}

static void print_times(struct weir__buffer *out, const struct figures *f)
{
    int64_t n = 0;

    print_head(out, "weir_decision_seconds", "histogram",
               "Time that a decision took; one batch in 64 is timed.");
    for (size_t i = 0; i + 1 < WEIR__TIME_BUCKETS; i++) {
        n += f->times[i];
        weir__buffer_format(out, "weir_decision_seconds_bucket{le=\"%g\"} %" PRId64 "\n",
                            (double)(FIRST_BUCKET << i) / 1e9, n);
    }
    n += f->times[WEIR__TIME_BUCKETS - 1];
    weir__buffer_format(out, "weir_decision_seconds_bucket{le=\"+Inf\"} %" PRId64 "\n", n);
    weir__buffer_text(out, "weir_decision_seconds_sum");
    print_value(out, f->times_sum, SECONDS);
    weir__buffer_format(out, "weir_decision_seconds_count %" PRId64 "\n", n);
}

/* ----------------------------------------------------------------- rules ---- */

struct rule_list {
    struct weir_rule_info *rules; /* RULES_MAX and one that stands for the others */
    size_t n;
};

static int64_t version_of(const struct weir__server *server)
{
    struct weir__in_force_info info = { .version = 0 };

    if (server->in_force != NULL)
        weir__in_force_info(server->in_force, &info);
    return info.version;
}

static void read_rules(struct rule_list *list, const struct weir__server *server)
{
    struct weir_rule_info info, *others = &list->rules[RULES_MAX];

    list->n = 0;
    *others = (struct weir_rule_info){ .name = "(others)" };
    for (int64_t at = 0; weir_rule_next(server->engine, &at, &info);) {
        if (at <= RULES_MAX) {
            list->rules[list->n++] = info;
            continue;
        }
        list->n = RULES_MAX + 1;
        others->allowed += info.allowed;
        others->refused += info.refused;
        others->banned += info.banned;
        others->shadow_refused += info.shadow_refused;
    }
}

/* Rules may be changed while they are read, and then one may come twice, which would spoil the
 * whole page: so they are read again. */
static bool list_rules(struct rule_list *list, const struct weir__server *server)
{
    int64_t before;
    int tries = 0;

    list->rules = calloc(RULES_MAX + 1, sizeof(*list->rules));
    if (list->rules == NULL)
        return false;
    do {
        before = version_of(server);
        read_rules(list, server);
    } while (version_of(server) != before && ++tries < TRIES);
    if (tries == TRIES)
        list->n = 0;
    return true;
}

static void print_outcome(struct weir__buffer *out, const char *rule, const char *outcome,
                          int64_t n)
{
    weir__buffer_text(out, "weir_decisions_total{");
    print_label(out, "rule", rule);
    weir__buffer_format(out, ",outcome=\"%s\"} %" PRId64 "\n", outcome, n);
}

static void print_rules(struct weir__buffer *out, const struct weir__server *server)
{
    struct rule_list list;

    if (!list_rules(&list, server))
        return; /* no memory: there may be enough for the rest */
    print_head(out, "weir_decisions_total", "counter", "Decisions, by rule and outcome.");
    for (size_t i = 0; i < list.n; i++) {
        const struct weir_rule_info *r = &list.rules[i];
        print_outcome(out, r->name, "allowed", r->allowed);
        print_outcome(out, r->name, "refused", r->refused);
        print_outcome(out, r->name, "shadow_refused", r->shadow_refused);
    }
    print_head(out, "weir_decisions_banned_total", "counter",
               "Of the refused, those of keys that are banned.");
    for (size_t i = 0; i < list.n; i++) {
        weir__buffer_text(out, "weir_decisions_banned_total{");
        print_label(out, "rule", list.rules[i].name);
        weir__buffer_format(out, "} %" PRId64 "\n", list.rules[i].banned);
    }
    print_head(out, "weir_rule_mode", "gauge", "1 for the mode that each rule is in.");
    for (size_t i = 0; i < list.n && i < RULES_MAX; i++) {
        weir__buffer_text(out, "weir_rule_mode{");
        print_label(out, "rule", list.rules[i].name);
        weir__buffer_format(out, ",mode=\"%s\"} 1\n", weir_mode_name(list.rules[i].mode));
    }
    free(list.rules);
}

/* ---------------------------------------------------------------- guards ---- */

struct guard_list {
    struct weir_guard_info *guards;
    struct weir__durations *durations;
    size_t n;
};

/* One that is damaged is left out. */
static void list_guards(struct guard_list *list, const struct weir__server *server, weir_time now)
{
    uint32_t n = weir__names_count(server->table, &server->table->guards);
    struct weir_guard *guard;

    n = n < GUARDS_MAX ? n : GUARDS_MAX;
    list->guards = n ? calloc(n, sizeof(*list->guards)) : NULL;
    list->durations = n ? calloc(n, sizeof(*list->durations)) : NULL;
    for (int64_t at = 0; list->guards != NULL && list->durations != NULL && list->n < n &&
                         weir_guard_next(server->table, &at, &guard);) {
        weir_guard_get(guard, now, &list->guards[list->n]);
        weir__guard_durations(guard, &list->durations[list->n++]);
    }
}

/* Each guard has one sample of these, by name; or, with a second label, several. */
static const struct guard_row {
    const char *name, *type, *help; /* help NULL: one more sample of the row before */
    const char *label;              /* of its own, or NULL */
    size_t at;                      /* in struct weir_guard_info */
    enum unit unit;
} guard_rows[] = {
#define OF(member) offsetof(struct weir_guard_info, member)
    { "weir_guard_in_flight", "gauge", "Permits that are out.", NULL, OF(in_flight), ONE },
    { "weir_guard_limit", "gauge",
      "Permits there are now; for an adaptive rate, permits per second.", NULL, OF(limit), ONE },
    { "weir_guard_entered_total", "counter", "How many were let in.", NULL, OF(entered), ONE },
    { "weir_guard_refused_total", "counter", "How many were refused, and why.", "reason=\"open\"",
      OF(refused_open), ONE },
    { "weir_guard_refused_total", NULL, NULL, "reason=\"busy\"", OF(refused_busy), ONE },
    { "weir_guard_refused_total", NULL, NULL, "reason=\"limited\"", OF(refused_limited), ONE },
    { "weir_guard_refused_total", NULL, NULL, "reason=\"shed\"", OF(refused_shed), ONE },
    { "weir_guard_refused_total", NULL, NULL, "reason=\"degraded\"", OF(refused_degraded), ONE },
    { "weir_guard_refused_total", NULL, NULL, "reason=\"full\"", OF(refused_full), ONE },
    { "weir_guard_refused_total", NULL, NULL, "reason=\"late\"", OF(refused_late), ONE },
    { "weir_guard_refused_total", NULL, NULL, "reason=\"key-busy\"", OF(refused_key_busy), ONE },
    { "weir_guard_shadow_refused_total", "counter",
      "How many would have been refused, but were let in by mode shadow.", NULL, OF(shadow_refused),
      ONE },
    { "weir_guard_exits_total", "counter", "Permits given back, by outcome.", "outcome=\"ok\"",
      OF(succeeded), ONE },
    { "weir_guard_exits_total", NULL, NULL, "outcome=\"error\"", OF(failed), ONE },
    { "weir_guard_exits_total", NULL, NULL, "outcome=\"timeout\"", OF(timed_out), ONE },
    { "weir_guard_exits_total", NULL, NULL, "outcome=\"dropped\"", OF(dropped), ONE },
    { "weir_guard_reclaimed_total", "counter",
      "Permits that were not given back in time, or whose holder has died.", NULL, OF(reclaimed),
      ONE },
    { "weir_guard_seconds", "gauge",
      "Duration of successes in the last 10 s, or in the window of the controller percentile.",
      "quantile=\"0.5\"", OF(p50), SECONDS },
    { "weir_guard_seconds", NULL, NULL, "quantile=\"0.9\"", OF(p90), SECONDS },
    { "weir_guard_seconds", NULL, NULL, "quantile=\"0.99\"", OF(p99), SECONDS },
#undef OF
};

static void print_guard_row(struct weir__buffer *out, const struct guard_row *row,
                            const struct weir_guard_info *g)
{
    int64_t n;

    memcpy(&n, (const char *)g + row->at, sizeof(n));
    if (row->unit == SECONDS && n <= 0)
        return; /* not known: nothing has succeeded */
    weir__buffer_format(out, "%s{", row->name);
    print_label(out, "guard", g->name);
    weir__buffer_format(out, "%s%s}", row->label ? "," : "", row->label ? row->label : "");
    print_value(out, n < 0 ? 0 : n, row->unit);
}

/* All samples of one name come together. */
static void print_guard_rows(struct weir__buffer *out, const struct guard_list *list)
{
    const size_t n = sizeof(guard_rows) / sizeof(*guard_rows);

    for (size_t first = 0, next; first < n; first = next) {
        print_head(out, guard_rows[first].name, guard_rows[first].type, guard_rows[first].help);
        for (next = first + 1; next < n && guard_rows[next].help == NULL;)
            next++;
        for (size_t g = 0; g < list->n; g++)
            for (size_t i = first; i < next; i++)
                print_guard_row(out, &guard_rows[i], &list->guards[g]);
    }
}

static void print_duration(struct weir__buffer *out, const char *guard, const char *part,
                           const char *le)
{
    weir__buffer_format(out, "weir_guard_duration_seconds_%s{", part);
    print_label(out, "guard", guard);
    weir__buffer_format(out, le ? ",le=\"%s\"}" : "}", le);
}

/* Unlike quantiles, these add up across nodes. */
static void print_durations(struct weir__buffer *out, const struct guard_list *list)
{
    print_head(out, "weir_guard_duration_seconds", "histogram", "Duration of successes.");
    for (size_t g = 0; g < list->n; g++) {
        const struct weir__durations *d = &list->durations[g];
        int64_t n = 0;
        for (unsigned i = 0; i < WEIR__DURATIONS; i++) {
            char le[24] = "+Inf";
            if (i + 1 < WEIR__DURATIONS)
                snprintf(le, sizeof(le), "%g", (double)weir__duration_bound(i) / 1e9);
            n += d->counts[i];
            print_duration(out, list->guards[g].name, "bucket", le);
            print_value(out, n, ONE);
        }
        print_duration(out, list->guards[g].name, "sum", NULL);
        print_value(out, d->sum, SECONDS);
        print_duration(out, list->guards[g].name, "count", NULL);
        print_value(out, n, ONE);
    }
}

static void print_guard_states(struct weir__buffer *out, const struct guard_list *list)
{
    print_head(out, "weir_guard_breaker", "gauge", "1 for the state that each breaker is in.");
    for (size_t i = 0; i < list->n; i++) {
        if (!weir__guard_has_breaker(&list->guards[i].options.breaker))
            continue;
        weir__buffer_text(out, "weir_guard_breaker{");
        print_label(out, "guard", list->guards[i].name);
        weir__buffer_format(out, ",state=\"%s\"} 1\n",
                            weir_breaker_state_name(list->guards[i].breaker));
    }
    print_head(out, "weir_guard_admitted_ratio", "gauge",
               "The share of requests let in: less than 1 while it sheds, 0 while it is open, "
               "forced open or degraded.");
    for (size_t i = 0; i < list->n; i++) {
        weir__buffer_text(out, "weir_guard_admitted_ratio{");
        print_label(out, "guard", list->guards[i].name);
        weir__buffer_text(out, "}");
        print_value(out, (int64_t)list->guards[i].admitted_percent * 10000, MILLIONTHS);
    }
}

static void print_guards(struct weir__buffer *out, const struct weir__server *server, weir_time now)
{
    struct guard_list list = { 0 };
    bool by_hand = false;
    int degradation = weir_degradation_get(server->table, &by_hand);

    list_guards(&list, server, now);
    if (list.n > 0) {
        print_guard_rows(out, &list);
        print_durations(out, &list);
        print_guard_states(out, &list);
    }
    print_head(out, "weir_degradation", "gauge", "The degradation, 0 (none) to 9.");
    weir__buffer_format(out, "weir_degradation %d\n", degradation);
    print_head(out, "weir_degradation_by_hand", "gauge",
               "1 if the degradation was set by hand, and stays; 0 if it follows the guards.");
    weir__buffer_format(out, "weir_degradation_by_hand %d\n", by_hand);
    free(list.guards);
    free(list.durations);
}

void weir__metrics_print(struct weir__server *server, weir_time now, struct weir__buffer *out)
{
    struct figures f;

    gather(&f, server, now);
    print_infos(out, &f);
    print_rows(out, &f);
    print_events(out, &f);
    print_times(out, &f);
    print_rules(out, server);
    print_guards(out, server, now);
}
