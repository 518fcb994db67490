/* replay.c -- runs an access log through rule sets: reading, the clock, the buckets of time, and
 * where two sets differ.
 *
 * Why the clock never goes back: a server writes a line when a request ends, so a slow request
 * comes after quick ones that began later.  The engine would take small steps back for lateness and
 * large ones for a clock that was set, and both would be wrong.
 */
#include "server/replay/replay.h"

#include <stdlib.h>
#include <string.h>

#include "server/replay/report.h"
#include "server/base/safe-text.h"

/* --------------------------------------------------------------- creation ---- */

static int create_parts(struct weir__replay *replay, struct weir_error *error)
{
    const struct weir__replay_options *o = &replay->options;

    replay->clients = weir__distinct_create();
    replay->applying = calloc(WEIR_ALL_MAX, sizeof(*replay->applying));
    replay->differences = calloc(o->listed + 1, sizeof(*replay->differences));
    if (!replay->clients || !replay->applying || !replay->differences)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the accounts");
    if (o->propose < 0)
        return WEIR_OK;
    struct weir__propose_options propose = { .share = o->propose,
                                             .wait_max = o->wait_max,
                                             .secrets = &replay->secrets };
    return weir__propose_create(&replay->propose, &propose, error);
}

int weir__replay_create(struct weir__replay **out, const struct weir__replay_options *options,
                        struct weir_error *error)
{
    struct weir__replay *replay = calloc(1, sizeof(*replay));
    int code = replay ? WEIR_OK : weir__fail(error, WEIR_NO_MEMORY, "no memory for a replay");

    if (replay) {
        replay->options = *options;
        replay->options.client = options->client ? options->client : "ip";
        code = create_parts(replay, error);
    }
    for (size_t i = 0; i < WEIR__REPLAY_SIDES && options->rules[i]; i++) {
        if (code == WEIR_OK)
            code = weir__rule_set_create(&replay->sides[replay->n_sides++], &replay->options, i,
                                         error);
        else
            weir_rules_destroy(options->rules[i]);
    }
    if (code == WEIR_OK)
        *out = replay;
    else
        weir__replay_destroy(replay);
    return code;
}

void weir__replay_destroy(struct weir__replay *replay)
{
    if (replay == NULL)
        return;
    weir__propose_destroy(replay->propose);
    for (size_t i = 0; i < replay->n_sides; i++)
        weir__rule_set_clear(&replay->sides[i]);
    weir__distinct_destroy(replay->clients);
    free(replay->applying);
    free(replay->differences);
    free(replay);
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
static weir_time tell_time(struct weir__replay *replay, weir_time at)
{
    weir_time behind = replay->now - at;

    if (behind <= 0) {
        replay->now = at < 0 ? 0 : at;
    } else if (behind > WEIR__REPLAY_LATE && replay->passes == 0) {
        replay->late++;
        if (behind > replay->late_most)
            replay->late_most = behind;
    }
    return replay->now;
}

/* ------------------------------------------------------- where two sets differ ---- */

static void count_pair(struct weir__replay *replay, const int32_t rule[WEIR__REPLAY_SIDES])
{
    size_t i = 0;

    while (i < replay->n_pairs &&
           (replay->pairs[i].rule[0] != rule[0] || replay->pairs[i].rule[1] != rule[1]))
        i++;
    if (i == WEIR__REPLAY_PAIRS) {
        replay->pairs_lost++;
        return;
    }
    if (i == replay->n_pairs)
        replay->pairs[replay->n_pairs++] = (struct weir__replay_pair){ { rule[0], rule[1] }, 0 };
    replay->pairs[i].requests++;
}

static void keep_difference(struct weir__replay *replay, const struct weir__report_request *r)
{
    struct weir__replay_difference d = { .at = r->entry->at, .rule = { r->rule[0], r->rule[1] } };

    weir__text_cut(d.client, sizeof(d.client), r->client.bytes, r->client.len);
    weir__text_cut(d.method, sizeof(d.method), r->method.bytes, r->method.len);
    weir__text_cut(d.uri, sizeof(d.uri), r->uri.bytes, r->uri.len);
    replay->differences[replay->n_differences++] = d;
}

static void compare(struct weir__replay *replay, const struct weir__log_entry *entry,
                    const struct weir__replay_request *r, const int32_t rule[WEIR__REPLAY_SIDES])
{
    bool refused[WEIR__REPLAY_SIDES] = { rule[0] != WEIR__REPLAY_PASSED,
                                         rule[1] != WEIR__REPLAY_PASSED };

    if (refused[0] == refused[1]) {
        replay->other_rule +=
            refused[0] && strcmp(weir__rule_set_rule_name(&replay->sides[0], rule[0]),
                                 weir__rule_set_rule_name(&replay->sides[1], rule[1]));
        return;
    }
    replay->differ++;
    replay->only[refused[1]]++;
    count_pair(replay, rule);
    const struct weir__report_request request = { entry, r->client, find_attribute(entry, "method"),
                                                  find_attribute(entry, "uri"), rule };
    if (replay->n_differences < replay->options.listed)
        keep_difference(replay, &request);
    if (replay->options.differ)
        weir__report_difference(replay->options.differ, replay, &request);
}

/* ------------------------------------------------------------------ replay ---- */

/* In a pass for proposals only, the first side is asked again, for nothing but whether a list
 * decides. */
static bool is_by_list(struct weir__replay *replay, const struct weir__replay_request *r)
{
    const struct weir__active *force = replay->sides[0].weir->active;
    struct weir_ruling ruling;

    if (force->allows + force->denies == 0)
        return false;
    if (replay->passes == 0)
        return replay->sides[0].by_list;
    weir_check(replay->sides[0].weir, r->attrs, r->n, &(struct weir_ask){ .now = r->now }, &ruling);
    return ruling.list != NULL;
}

static void propose(struct weir__replay *replay, const struct weir__replay_request *r)
{
    if (is_by_list(replay, r))
        return;
    size_t n = weir__engine_applying(replay->sides[0].weir, r->attrs, r->n, replay->applying,
                                     WEIR_ALL_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct weir__applying *a = &replay->applying[i];
        struct weir_key key = { a->text, strlen(a->text) };
        weir__propose_add(replay->propose, &(struct weir__propose_ask){ a->rule, a->index, a->limit,
                                                                        key, a->cost, r->now });
    }
}

/* The sketches' hashes depend only on the log's first line: every run on a log gives the same
 * estimates, and a client would have to know the first line to make keys that spoil them.
 * Decisions are safe anyway: the engine's table has its own secrets. */
static void make_secrets(struct weir__replay *replay, const struct weir__log_entry *entry)
{
    weir__sketch_secrets_make(&replay->secrets, entry->text ? entry->text : "",
                              entry->text ? entry->text_len : 0);
}

static void count_request(struct weir__replay *replay, const struct weir__log_entry *entry,
                          const struct weir__replay_request *r)
{
    if (replay->requests == 0 || entry->at < replay->first)
        replay->first = entry->at;
    if (replay->requests == 0 || entry->at > replay->last)
        replay->last = entry->at;
    replay->requests++;
    replay->at[r->bucket]++;
    if (r->client.len)
        weir__distinct_add(replay->clients, r->client_hash);
    else
        replay->nobody++;
}

void weir__replay_entry(struct weir__replay *replay, const struct weir__log_entry *entry)
{
    struct weir__replay_request r = { .attrs = entry->attrs,
                                      .n = entry->n,
                                      .now = tell_time(replay, entry->at) };
    int32_t rule[WEIR__REPLAY_SIDES];

    if (replay->passes == 0) {
        if (replay->requests == 0)
            make_secrets(replay, entry);
        r.bucket = weir__replay_bucket(replay, r.now);
        r.client = find_attribute(entry, replay->options.client);
        r.client_hash = weir__sketch_hash(&replay->secrets, r.client.bytes, r.client.len);
        r.uri = find_attribute(entry, "uri");
        const char *query = memchr(r.uri.bytes, '?', r.uri.len);
        if (query)
            r.uri.len = (size_t)(query - (const char *)r.uri.bytes);
        count_request(replay, entry, &r);
        for (size_t i = 0; i < replay->n_sides; i++)
            rule[i] = weir__rule_set_decide(replay, &replay->sides[i], &r);
        if (replay->n_sides == 2)
            compare(replay, entry, &r, rule);
    }
    if (replay->propose)
        propose(replay, &r);
}

static void add_figures(struct weir__replay *replay, const char *path,
                        const struct weir__log_figures *f)
{
    replay->lines += f->lines;
    replay->bad += f->bad;
    if (f->bad == 0 || replay->first_bad != 0)
        return;
    replay->first_bad = f->first_bad;
    weir__text_cut(replay->first_bad_file, sizeof(replay->first_bad_file), path, strlen(path));
    memcpy(replay->first_bad_why, f->first_bad_why, sizeof(replay->first_bad_why));
}

static bool is_stopped(const struct weir__replay_reading *reading)
{
    return reading->stop && *reading->stop;
}

int weir__replay_log(struct weir__replay *replay, const char *path,
                     const struct weir__replay_reading *reading, struct weir_error *error)
{
    struct weir__log *log;
    struct weir__log_entry entry;
    struct weir__log_figures figures;
    int64_t n = 0;
    int code = weir__log_open(&log, path, reading->format, reading->map, error);

    if (code != WEIR_OK)
        return code;
    while (!is_stopped(reading) && (code = weir__log_next(log, &entry, error)) == 1) {
        weir__replay_entry(replay, &entry);
        if (reading->tell && ++n % 1024 == 0) {
            weir__log_figures(log, &figures);
            reading->tell(reading->context, n, &figures);
        }
    }
    weir__log_figures(log, &figures);
    if (reading->tell)
        reading->tell(reading->context, n, &figures);
    if (replay->passes == 0)
        add_figures(replay, path, &figures);
    weir__log_close(log);
    if (is_stopped(reading)) {
        replay->partial |= replay->passes == 0;
        return WEIR_OK; /* a read that a signal ended has not failed */
    }
    return code < 0 ? code : WEIR_OK;
}

bool weir__replay_end(struct weir__replay *replay)
{
    if (replay->passes == 0) {
        for (size_t i = 0; i < replay->n_sides; i++)
            weir__rule_set_end(&replay->sides[i]);
    }
    replay->passes++;
    replay->now = 0;
    return replay->propose && weir__propose_pass(replay->propose);
}
