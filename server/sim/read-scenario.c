/* read-scenario.c -- a scenario file, from its text to a plan; every mistake is named with its
 * place.
 *
 *     about: ten times the backend's capacity
 *     length: 60s
 *     warmup: 10s
 *     backend: { workers: 4, work: 20ms, ... }       read-backend.c
 *     clients: [ { rate: 10x, timeout: 1s, ... } ]   read-clients.c
 *     guard: { target: 250ms, ... }                  read-guard.c
 *
 * The words: docs/sim.md.
 */
#include "server/sim/read-scenario.h"

#define ATTEMPTS_MAX 4000000 /* of one trial */

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- values ---- */

void weir__sim_take_time(struct weir__reader *r, const struct weir__member *m, weir_time min,
                         weir_time max, weir_time *out)
{
    struct weir_error error = { 0 };
    char least[32], most[32];
    weir_time time;

    if (m->value == NULL)
        return;
    if (!weir__read_text(r, m->value, m->name, "a time such as 20ms"))
        return;
    if (weir_time_parse(&time, m->value->text, &error) != WEIR_OK) {
        weir__say_error(r, m->value, m->name, &error);
        return;
    }
    if (time < min || time > max) {
        weir_time_print(least, sizeof(least), min);
        weir_time_print(most, sizeof(most), max);
        weir__say(r, m->value, "%s must be from %s to %s", m->name, least, most);
        return;
    }
    *out = time;
}

void weir__sim_take_count(struct weir__reader *r, const struct weir__member *m, int64_t min,
                          int64_t max, int64_t *out)
{
    if (m->value)
        weir__read_count(r, m->value, m->name, min, max, out);
}

bool weir__sim_number_parse(const char *text, char unit, int64_t *out)
{
    int64_t value = 0, part = unit == '%' ? WEIR__SIM_ONE / 100 : WEIR__SIM_ONE;
    size_t digits = strspn(text, "0123456789");

    if (digits == 0 || digits > 9)
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (text[i] - '0');
    value *= part;
    text += digits;
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++)
            value += (*text - '0') * (part /= 10);
    }
    if (unit ? text[0] != unit || text[1] : text[0] != '\0')
        return false;
    *out = value;
    return true;
}

void weir__sim_take_number(struct weir__reader *r, const struct weir__member *m, char unit,
                           int64_t min, int64_t max, int64_t *out)
{
    double scale = unit == '%' ? 1e4 : 1e6;
    const char *mark = unit == '%' ? "%" : unit == 'x' ? "x" : "";
    int64_t value;

    if (m->value == NULL)
        return;
    if (!weir__read_text(r, m->value, m->name, "a number"))
        return;
    if (!weir__sim_number_parse(m->value->text, unit, &value) || value < min || value > max) {
        weir__say(r, m->value, "%s must be a number from %g%s to %g%s; found %s", m->name,
                  (double)min / scale, mark, (double)max / scale, mark,
                  weir__quote(m->value->text, m->value->n).text);
        return;
    }
    *out = value;
}

bool weir__sim_take_word(struct weir__reader *r, const struct weir__member *m,
                         const char *const *words, size_t n, size_t *out)
{
    const char *text = m->value ? weir__read_text(r, m->value, m->name, "a word") : NULL;

    for (size_t i = 0; text && i < n; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return true;
        }
    }
    if (text)
        weir__say(r, m->value, "%s cannot be %s; %s", m->name, weir__quote(text, m->value->n).text,
                  weir__hint(text, m->value->n, words, n).text);
    return m->value == NULL;
}

/* ---------------------------------------------------------------------- whole ---- */

enum { ABOUT, LENGTH, WARMUP, SEED, BACKEND, CLIENTS, GUARD, MEMBERS };

static void read_about(struct weir__reader *r, const struct weir__member *m,
                       struct weir__sim_plan *plan)
{
    const char *text = m->value ? weir__read_text(r, m->value, m->name, "a sentence") : NULL;

    if (text && m->value->n >= sizeof(plan->about))
        weir__say(r, m->value, "about has at most %zu bytes", sizeof(plan->about) - 1);
    else if (text)
        memcpy(plan->about, text, m->value->n + 1);
}

/* Clients of a backend that falls silent must give up some time, or the trial would never end. */
static void check_timeouts(struct weir__reader *r, const struct weir__node *clients,
                           const struct weir__sim_plan *plan)
{
    bool silent = false;

    for (size_t i = 0; i < plan->backend.n_changes; i++)
        silent |= plan->backend.changes[i].kind == WEIR__SIM_CHANGE_SILENT;
    for (size_t i = 0; silent && i < plan->n_groups; i++) {
        if (plan->groups[i].timeout == 0) {
            weir__say(r, clients,
                      "the backend falls silent, so all clients need a timeout; %s has none",
                      plan->groups[i].name);
            return;
        }
    }
}

/* Every attempt takes memory until its backend is done with it, and in the worst of scenarios that
 * is never. */
static void check_size(struct weir__reader *r, const struct weir__node *clients,
                       const struct weir__sim_plan *plan)
{
    double attempts = 0, seconds = (double)plan->length / 1e9;

    for (size_t i = 0; i < plan->n_groups; i++) {
        const struct weir__sim_group_plan *g = &plan->groups[i];
        double rate = g->loop ? (double)g->loop * 1e9 / (double)g->think
                              : (double)weir__sim_plan_rate_max(g) / 1000;
        attempts += rate * seconds * (double)(1 + g->retries);
    }
    if (attempts > ATTEMPTS_MAX)
        weir__say(r, clients,
                  "up to %.0f attempts are too many for one trial; the most is %d: make it "
                  "shorter, or the rates lower",
                  attempts, ATTEMPTS_MAX);
}

static void read_root(struct weir__reader *r, const struct weir__node *root,
                      struct weir__sim_plan *plan)
{
    struct weir__member m[MEMBERS] = {
        [ABOUT] = { .name = "about" },     [LENGTH] = { .name = "length" },
        [WARMUP] = { .name = "warmup" },   [SEED] = { .name = "seed" },
        [BACKEND] = { .name = "backend" }, [CLIENTS] = { .name = "clients" },
        [GUARD] = { .name = "guard" },
    };

    if (!weir__read_members(r, root, "a scenario", m, MEMBERS))
        return;
    read_about(r, &m[ABOUT], plan);
    weir__sim_take_time(r, &m[LENGTH], WEIR_SECOND, WEIR__SIM_LONGEST, &plan->length);
    plan->warmup = plan->length / 6;
    weir__sim_take_time(r, &m[WARMUP], 0, plan->length, &plan->warmup);
    if (plan->warmup == plan->length && m[WARMUP].value)
        weir__say(r, m[WARMUP].value,
                  "warmup must be shorter than the length: the rest is measured");
    weir__sim_take_count(r, &m[SEED], 1, INT64_MAX, &plan->seed);
    if (m[GUARD].value)
        weir__sim_read_guard(r, m[GUARD].value, plan);
    if (m[BACKEND].value)
        weir__sim_read_backend(r, m[BACKEND].value, plan);
    else if (m[BACKEND].key == NULL)
        weir__say(r, root,
                  "there is no backend; write one, such as backend: { workers: 4, work: 20ms }");
    if (m[CLIENTS].value) {
        weir__sim_read_clients(r, m[CLIENTS].value, plan);
        check_timeouts(r, m[CLIENTS].value, plan);
        check_size(r, m[CLIENTS].value, plan);
    } else if (m[CLIENTS].key == NULL) {
        weir__say(r, root,
                  "there are no clients; write some, such as clients: [{ rate: 2x, timeout: 1s }]");
    }
}

static int read_text(struct weir__reader *r, struct weir__sim_plan *plan, struct weir_error *error)
{
    struct weir__arena nodes = { 0 };
    struct weir__node *root = weir__yaml_read(&nodes, &r->report);

    r->arena = &nodes;
    if (root)
        read_root(r, root, plan);
    else if (r->report.n == 0)
        weir__report_add(&r->report, WEIR__NOWHERE, "the file is empty");
    bool failed = nodes.failed;
    weir__arena_clear(&nodes);
    return failed ? weir__fail(error, WEIR_NO_MEMORY, "no memory for the scenario")
                  : weir__report_tell(&r->report, r->options, error);
}

int weir__sim_plan_parse(struct weir__sim_plan *out, const char *text, size_t len,
                         const struct weir_rules_options *options, struct weir_error *error)
{
    static const struct weir_rules_options none = { .name = "scenario" };
    static const struct weir__sim_plan defaults = {
        .length = 60 * WEIR_SECOND,
        .seed = 1,
        .backend = { .workers = 4,
                     .queue = -1,
                     .slowest = 10 * WEIR__SIM_ONE,
                     .work = { .mean = 20 * WEIR_MILLISECOND, .spread = WEIR__SIM_ONE / 2 } },
    };

    if (len > WEIR__SIM_TEXT)
        return weir__fail(error, WEIR_INVALID, "the scenario has %zu bytes; the most is %d", len,
                          WEIR__SIM_TEXT);
    struct weir__reader *r = calloc(1, sizeof(*r));
    struct weir__sim_plan *plan = calloc(1, sizeof(*plan));
    int code = r && plan ? weir__report_open(&r->report, text, len, error)
                         : weir__fail(error, WEIR_NO_MEMORY, "no memory for the scenario");
    if (code == WEIR_OK) {
        r->options = options ? options : &none;
        *plan = defaults;
        code = read_text(r, plan, error);
        weir__report_close(&r->report);
    }
    if (code == WEIR_OK) {
        plan->work_p99 = weir__sim_work_quantile(&plan->backend.work, 990);
        *out = *plan;
    }
    free(r);
    free(plan);
    return code;
}
