/* simulate.c -- an access log through rule sets on virtual time: reading, the clock, the buckets of
 * time, and where two sets differ.
 *
 * Why the clock never goes back: a server writes a line when a request ends, so a slow one comes
 * after quick ones that began later.  The engine would take small steps back as lateness and large
 * ones as a clock that was set; neither is what happened.
 */
#include "simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* --------------------------------------------------------------- creation ---- */

static int create_parts(struct weir__simulation *sim, struct weir_error *error)
{
    const struct weir__simulate_options *o = &sim->options;

    sim->clients = weir__distinct_create();
    sim->applying = calloc(WEIR_ALL_MAX, sizeof(*sim->applying));
    sim->differences = calloc(o->listed + 1, sizeof(*sim->differences));
    if (!sim->clients || !sim->applying || !sim->differences)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the accounts");
    if (o->propose < 0)
        return WEIR_OK;
    struct weir__propose_options propose = { .share = o->propose,
                                             .wait_max = o->wait_max,
                                             .secrets = &sim->secrets };
    return weir__propose_create(&sim->propose, &propose, error);
}

int weir__simulation_create(struct weir__simulation **out,
                            const struct weir__simulate_options *options, struct weir_error *error)
{
    struct weir__simulation *sim = calloc(1, sizeof(*sim));
    int code = sim ? WEIR_OK : weir__fail(error, WEIR_NO_MEMORY, "no memory for a simulation");

    if (sim) {
        sim->options = *options;
        sim->options.client = options->client ? options->client : "ip";
        code = create_parts(sim, error);
    }
    for (size_t i = 0; i < WEIR__SIMULATE_SIDES && options->rules[i]; i++) {
        if (code == WEIR_OK)
            code = weir__side_create(&sim->sides[sim->n_sides++], &sim->options, i, error);
        else
            weir_rules_destroy(options->rules[i]);
    }
    if (code == WEIR_OK)
        *out = sim;
    else
        weir__simulation_destroy(sim);
    return code;
}

void weir__simulation_destroy(struct weir__simulation *sim)
{
    if (sim == NULL)
        return;
    weir__propose_destroy(sim->propose);
    for (size_t i = 0; i < sim->n_sides; i++)
        weir__side_clear(&sim->sides[i]);
    weir__distinct_destroy(sim->clients);
    free(sim->applying);
    free(sim->differences);
    free(sim);
}

/* ---------------------------------------------------------- buckets of time ---- */

/* Widths that people think in; each is a multiple of the one before.  Beyond a week they double. */
static weir_time next_width(weir_time width)
{
    static const int64_t widths[] = { 1,    2,    10,    30,    60,    300,   600,
                                      1800, 3600, 10800, 21600, 43200, 86400, 604800 };

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        if (widths[i] * WEIR_SECOND > width)
            return widths[i] * WEIR_SECOND;
    }
    return width * 2;
}

static void widen(struct weir__simulation *sim)
{
    weir_time width = next_width(sim->width), from = sim->from - sim->from % width;
    size_t shift = (size_t)((sim->from - from) / sim->width), factor = (size_t)(width / sim->width);

    weir__simulate_widen(sim->at, shift, factor);
    for (size_t i = 0; i < sim->n_sides; i++)
        weir__side_widen(&sim->sides[i], shift, factor);
    sim->buckets = (sim->buckets - 1 + shift) / factor + 1;
    sim->width = width;
    sim->from = from;
}

static size_t find_bucket(struct weir__simulation *sim, weir_time now)
{
    if (sim->width == 0) {
        sim->width = WEIR_SECOND;
        sim->from = now - now % WEIR_SECOND;
        sim->buckets = 1;
    }
    while ((now - sim->from) / sim->width >= WEIR__SIMULATE_BUCKETS)
        widen(sim);
    size_t bucket = (size_t)((now - sim->from) / sim->width);
    if (bucket >= sim->buckets)
        sim->buckets = bucket + 1;
    return bucket;
}

/* ---------------------------------------------------------------- requests ---- */

static struct weir_key find_attribute(const struct weir__log_entry *entry, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < entry->n; i++) {
        const struct weir_attr *a = &entry->attrs[i];
        size_t name_len = a->name_len ? a->name_len : strlen(a->name);
        if (name_len == len && memcmp(a->name, name, len) == 0)
            return (struct weir_key){ a->value, a->value_len ? a->value_len : strlen(a->value) };
    }
    return (struct weir_key){ "", 0 };
}

/* The time that the engine is told: never earlier than before. */
static weir_time tell_time(struct weir__simulation *sim, weir_time at)
{
    weir_time behind = sim->now - at;

    if (behind <= 0) {
        sim->now = at < 0 ? 0 : at;
    } else if (behind > WEIR__SIMULATE_LATE && sim->passes == 0) {
        sim->late++;
        if (behind > sim->late_most)
            sim->late_most = behind;
    }
    return sim->now;
}

/* ------------------------------------------------------- where two sets differ ---- */

static void count_pair(struct weir__simulation *sim, const int32_t rule[WEIR__SIMULATE_SIDES])
{
    size_t i = 0;

    while (i < sim->n_pairs &&
           (sim->pairs[i].rule[0] != rule[0] || sim->pairs[i].rule[1] != rule[1]))
        i++;
    if (i == WEIR__SIMULATE_PAIRS) {
        sim->pairs_lost++;
        return;
    }
    if (i == sim->n_pairs)
        sim->pairs[sim->n_pairs++] = (struct weir__simulate_pair){ { rule[0], rule[1] }, 0 };
    sim->pairs[i].requests++;
}

static void keep_difference(struct weir__simulation *sim, const struct weir__simulate_request *r,
                            weir_time at, struct weir_key method, struct weir_key uri,
                            const int32_t rule[WEIR__SIMULATE_SIDES])
{
    struct weir__simulate_difference d = { .at = at, .rule = { rule[0], rule[1] } };

    weir__text_cut(d.client, sizeof(d.client), r->client.bytes, r->client.len);
    weir__text_cut(d.method, sizeof(d.method), method.bytes, method.len);
    weir__text_cut(d.uri, sizeof(d.uri), uri.bytes, uri.len);
    sim->differences[sim->n_differences++] = d;
}

static void compare(struct weir__simulation *sim, const struct weir__log_entry *entry,
                    const struct weir__simulate_request *r,
                    const int32_t rule[WEIR__SIMULATE_SIDES])
{
    bool refused[WEIR__SIMULATE_SIDES] = { rule[0] != WEIR__SIMULATE_PASSED,
                                           rule[1] != WEIR__SIMULATE_PASSED };

    if (refused[0] == refused[1]) {
        sim->other_rule += refused[0] && strcmp(weir__side_rule_name(&sim->sides[0], rule[0]),
                                                weir__side_rule_name(&sim->sides[1], rule[1]));
        return;
    }
    sim->differ++;
    sim->only[refused[1]]++;
    count_pair(sim, rule);
    struct weir_key method = find_attribute(entry, "method"), uri = find_attribute(entry, "uri");
    if (sim->n_differences < sim->options.listed)
        keep_difference(sim, r, entry->at, method, uri, rule);
    if (sim->options.differ)
        weir__report_difference(sim->options.differ, sim, entry, r->client, method, uri, rule);
}

/* ------------------------------------------------------------------ replay ---- */

/* In a pass for proposals only, the first side is asked again, for nothing but whether a list
 * decides. */
static bool is_by_list(struct weir__simulation *sim, const struct weir__simulate_request *r)
{
    const struct weir__force *force = sim->sides[0].weir->force;
    struct weir_ruling ruling;

    if (force->allows + force->denies == 0)
        return false;
    if (sim->passes == 0)
        return sim->sides[0].by_list;
    weir_check(sim->sides[0].weir, r->attrs, r->n, &(struct weir_ask){ .now = r->now }, &ruling);
    return ruling.list != NULL;
}

static void propose(struct weir__simulation *sim, const struct weir__simulate_request *r)
{
    if (is_by_list(sim, r))
        return;
    size_t n =
        weir__engine_applying(sim->sides[0].weir, r->attrs, r->n, sim->applying, WEIR_ALL_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct weir__applying *a = &sim->applying[i];
        struct weir_key key = { a->text, strlen(a->text) };
        weir__propose_add(sim->propose, &(struct weir__propose_ask){ a->rule, a->index, a->limit,
                                                                     key, a->cost, r->now });
    }
}

/* The sketches' hashes depend on the log's first line alone: estimates are the same in every run on
 * a log, whatever the rules and its name are, and who sends requests would have to know which line
 * becomes the first to make keys that spoil them.  They could not touch a decision: the engine's
 * table has secrets of its own. */
static void make_secrets(struct weir__simulation *sim, const struct weir__log_entry *entry)
{
    weir__sketch_secrets_make(&sim->secrets, entry->text ? entry->text : "",
                              entry->text ? entry->text_len : 0);
}

static void count_request(struct weir__simulation *sim, const struct weir__log_entry *entry,
                          const struct weir__simulate_request *r)
{
    if (sim->requests == 0 || entry->at < sim->first)
        sim->first = entry->at;
    if (sim->requests == 0 || entry->at > sim->last)
        sim->last = entry->at;
    sim->requests++;
    sim->at[r->bucket]++;
    if (r->client.len)
        weir__distinct_add(sim->clients, r->client_hash);
    else
        sim->nobody++;
}

void weir__simulate_entry(struct weir__simulation *sim, const struct weir__log_entry *entry)
{
    struct weir__simulate_request r = { .attrs = entry->attrs,
                                        .n = entry->n,
                                        .now = tell_time(sim, entry->at) };
    int32_t rule[WEIR__SIMULATE_SIDES];

    if (sim->passes == 0) {
        if (sim->requests == 0)
            make_secrets(sim, entry);
        r.bucket = find_bucket(sim, r.now);
        r.client = find_attribute(entry, sim->options.client);
        r.client_hash = weir__sketch_hash(&sim->secrets, r.client.bytes, r.client.len);
        r.uri = find_attribute(entry, "uri");
        const char *query = memchr(r.uri.bytes, '?', r.uri.len);
        if (query)
            r.uri.len = (size_t)(query - (const char *)r.uri.bytes);
        count_request(sim, entry, &r);
        for (size_t i = 0; i < sim->n_sides; i++)
            rule[i] = weir__side_decide(sim, &sim->sides[i], &r);
        if (sim->n_sides == 2)
            compare(sim, entry, &r, rule);
    }
    if (sim->propose)
        propose(sim, &r);
}

static void add_figures(struct weir__simulation *sim, const char *path,
                        const struct weir__log_figures *f)
{
    sim->lines += f->lines;
    sim->bad += f->bad;
    if (f->bad == 0 || sim->first_bad != 0)
        return;
    sim->first_bad = f->first_bad;
    weir__text_cut(sim->first_bad_file, sizeof(sim->first_bad_file), path, strlen(path));
    memcpy(sim->first_bad_why, f->first_bad_why, sizeof(sim->first_bad_why));
}

static bool is_stopped(const struct weir__simulate_reading *reading)
{
    return reading->stop && *reading->stop;
}

int weir__simulate_log(struct weir__simulation *sim, const char *path,
                       const struct weir__simulate_reading *reading, struct weir_error *error)
{
    struct weir__log *log;
    struct weir__log_entry entry;
    struct weir__log_figures figures;
    int64_t n = 0;
    int code = weir__log_open(&log, path, reading->format, reading->map, error);

    if (code != WEIR_OK)
        return code;
    while (!is_stopped(reading) && (code = weir__log_next(log, &entry, error)) == 1) {
        weir__simulate_entry(sim, &entry);
        if (reading->tell && ++n % 1024 == 0) {
            weir__log_figures(log, &figures);
            reading->tell(reading->context, n, &figures);
        }
    }
    weir__log_figures(log, &figures);
    if (reading->tell)
        reading->tell(reading->context, n, &figures);
    if (sim->passes == 0)
        add_figures(sim, path, &figures);
    weir__log_close(log);
    if (is_stopped(reading)) {
        sim->partial |= sim->passes == 0;
        return WEIR_OK; /* a read that a signal ended has not failed */
    }
    return code < 0 ? code : WEIR_OK;
}

bool weir__simulate_end(struct weir__simulation *sim)
{
    if (sim->passes == 0) {
        for (size_t i = 0; i < sim->n_sides; i++)
            weir__side_end(&sim->sides[i]);
    }
    sim->passes++;
    sim->now = 0;
    return sim->propose && weir__propose_pass(sim->propose);
}
