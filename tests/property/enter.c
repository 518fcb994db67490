/* enter.c SEED ROUNDS -- laws of requests that enter guards, for random rules, guards and traffic,
 * on virtual time.
 *
 *     a refusal, whoever refuses, changes nothing: in-flight, what is left in every limit, how many
 *     probes a half-open breaker lets through in-flight is what was entered and has not come back,
 *     of every guard, and never above its limit what was entered and is ignored is as if it had
 *     never been when everything is back and nothing is open, a request that no limit refuses
 *     enters
 *
 * Prints the seed of the round that breaks one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/explain.h"
#include "random-rules.h"

enum { RULES = 3, GUARDS = 5, VISITS = 40, STEPS = 300, USERS = 3 };

/* --------------------------------------------------------------- rules ---- */

static int n_rules, n_guards;
static bool covers[GUARDS][2]; /* by path: /a, /b */
static int64_t most[GUARDS];

static const char *paths_of(int guard)
{
    return covers[guard][0] && covers[guard][1] ? "[/a, /b]" : covers[guard][0] ? "/a" : "/b";
}

static void add_guard(int i)
{
    int path = int_between(0, 2);

    covers[i][0] = path != 1;
    covers[i][1] = path != 0;
    most[i] = int_between(1, 8);
    add("  - { name: g%d, match: { uri: %s }, concurrency: %d, lease: 1h", i, paths_of(i),
        (int)most[i]);
    if (one_in(2))
        add(", breaker: { errors: %s, min_calls: %d, %s, open_for: %dms, probes: %d }",
            one_in(2) ? "50%" : "2", int_between(1, 2), one_in(2) ? "calls: 5" : "window: 2s",
            int_between(100, 2000), int_between(1, 4));
    if (one_in(4))
        add(", degrade: %d", int_between(1, 3));
    add(" }\n");
}

static void make_rules(void)
{
    static const char *const algorithms[] = { "fixed-window", "sliding-window", "sliding-log",
                                              "token-bucket", "gcra" };

    yaml[0] = '\0';
    n_rules = int_between(0, RULES);
    n_guards = int_between(1, GUARDS);
    add("version: 1\nrules:%s\n", n_rules ? "" : " []");
    for (int i = 0; i < n_rules; i++)
        add("  - { name: r%d, key: \"{account}\", limit: [%s %d/%ds, %d/10s] }\n", i,
            algorithms[int_between(0, 4)], int_between(1, 20), int_between(1, 5),
            int_between(1, 50));
    add("guards:\n");
    for (int i = 0; i < n_guards; i++)
        add_guard(i);
}

static struct weir *make_engine(struct weir_table **table, weir_time now)
{
    struct weir_rules *rules;
    struct weir *weir;
    struct weir_error e;

    if (weir_table_create(table, &(struct weir_table_options){ .keys = 1000, .guards = GUARDS },
                          &e) ||
        weir_create(&weir, &(struct weir_options){ .table = *table }, &e) ||
        weir_rules_parse(&rules, yaml, strlen(yaml), NULL, &e) || weir_use(weir, rules, now, &e))
        stop("%s", e.text);
    return weir;
}

/* ------------------------------------------------------------ snapshots ---- */

struct snapshot {
    int64_t in_flight[GUARDS];
    int probes[GUARDS]; /* that would be let through now; 64: the breaker is closed */
    int64_t left[USERS][RULES][2];
    weir_time reset[USERS][RULES][2];
};

static struct weir_guard *guard_at(struct weir *weir, int i)
{
    struct weir_ruled_guard view;

    if (!weir_ruled_guard_next(weir, &(int64_t){ i }, &view))
        stop("there is no guard %d", i);
    return view.guard;
}

/* Takes all that there are, and gives them back. */
static int count_probes(struct weir_guard *guard, weir_time now)
{
    const struct weir__breaker_plan *plan = &weir__guard_plan_of(guard)->breaker;
    struct weir__breaker *b = &guard->record->breaker;
    struct weir__breaker_move move;
    uint32_t probes[64];
    weir_time retry;
    int n = 0;

    while (n < 64 && weir__breaker_ask(plan, b, now, &probes[n], &retry, &move) && probes[n] != 0)
        n++;
    bool closed =
        n < 64 && weir__breaker_ask(plan, b, now, &probes[n], &retry, &move) && probes[n] == 0;
    for (int i = 0; i < n; i++)
        weir__breaker_give(b, probes[i]);
    return closed ? 64 : n;
}

struct looking {
    struct snapshot *out;
    int user, rule;
};

static void note_rule(void *context, const struct weir__explained *e)
{
    struct looking *l = context;

    for (size_t k = 0; k < e->n_limits; k++) {
        l->out->left[l->user][l->rule][k] = e->limits[k].decision.remaining;
        l->out->reset[l->user][l->rule][k] = e->limits[k].decision.reset;
    }
    l->rule++;
}

static struct snapshot look(struct weir *weir, weir_time now)
{
    static const char *const users[USERS] = { "ann", "bob", "eve" };
    struct snapshot s;
    struct weir__explanation x;

    memset(&s, 0, sizeof(s));
    for (int i = 0; i < n_guards; i++) {
        struct weir_guard *guard = guard_at(weir, i);
        s.in_flight[i] = __atomic_load_n(&guard->record->in_flight, __ATOMIC_RELAXED);
        s.probes[i] = count_probes(guard, now);
    }
    for (int u = 0; u < USERS; u++) {
        struct weir_attr attr = { .name = "account", .value = users[u] };
        struct looking l = { &s, u, 0 };
        weir__engine_explain(weir, &attr, 1, &(struct weir_ask){ .now = now }, &x, note_rule, &l);
    }
    return s;
}

/* -------------------------------------------------------------- traffic ---- */

struct visit {
    struct weir_entry entry;
    int path;
};

static struct visit visits[VISITS];
static int n_visits;

static bool ask(struct weir *weir, int path, const char *user, weir_time now,
                struct weir_entry *entry, struct weir_ruling *ruling)
{
    struct weir_attr attrs[] = { { .name = "uri", .value = path ? "/b" : "/a" },
                                 { .name = "account", .value = user } };

    return weir_check_enter(weir, attrs, 2, &(struct weir_ask){ .cost = 1, .now = now }, entry,
                            ruling);
}

static void check_in_flight(struct weir *weir)
{
    for (int i = 0; i < n_guards; i++) {
        int64_t expected = 0,
                is = __atomic_load_n(&guard_at(weir, i)->record->in_flight, __ATOMIC_RELAXED);
        for (int k = 0; k < n_visits; k++)
            expected += covers[i][visits[k].path];
        if (is != expected || is > most[i])
            stop("g%d has %" PRId64 " in flight, expected %" PRId64 " and at most %" PRId64, i, is,
                 expected, most[i]);
    }
}

static void arrive(struct weir *weir, weir_time now)
{
    static const char *const users[USERS] = { "ann", "bob", "eve" };
    struct snapshot before = look(weir, now), after;
    struct weir_ruling ruling;
    struct visit v = { .path = int_between(0, 1) };
    bool allowed = ask(weir, v.path, users[int_between(0, USERS - 1)], now, &v.entry, &ruling);
    bool ignored = allowed && (n_visits == VISITS || one_in(5)), rated = ruling.rule != NULL;

    if (allowed && !ignored) {
        visits[n_visits++] = v;
        return;
    }
    if (ignored)
        weir_check_exit(weir, &v.entry, WEIR_IGNORED, now);
    after = look(weir, now);
    if (ignored && rated) { /* what limits gave is spent */
        memcpy(after.left, before.left, sizeof(after.left));
        memcpy(after.reset, before.reset, sizeof(after.reset));
    }
    if (memcmp(&before, &after, sizeof(before)) != 0)
        stop("%s by %s%s has changed something", ignored ? "ignored" : "refused",
             ruling.guard ? ruling.guard : "", ruling.rule ? ruling.rule : "");
}

static void depart(struct weir *weir, weir_time now)
{
    static const enum weir_outcome outcomes[] = { WEIR_SUCCEEDED, WEIR_SUCCEEDED, WEIR_FAILED,
                                                  WEIR_TIMED_OUT, WEIR_DROPPED,   WEIR_IGNORED };

    if (n_visits == 0)
        return;
    int i = int_between(0, n_visits - 1);
    weir_check_exit(weir, &visits[i].entry, outcomes[int_between(0, 5)], now);
    visits[i] = visits[--n_visits];
}

/* A user that nobody knows yet has its whole burst; nothing is at work, and breakers are closed by
 * hand. */
static void check_liveness(struct weir *weir, struct weir_table *table, weir_time now)
{
    struct weir_entry entry;
    struct weir_ruling ruling;

    while (n_visits > 0)
        depart(weir, now);
    weir_degradation_set(table, 0, now);
    for (int i = 0; i < n_guards; i++)
        weir_guard_force(guard_at(weir, i), WEIR_FORCE_CLOSED, now);
    if (!ask(weir, 0, "new", now, &entry, &ruling))
        stop("refused by %s%s, though nothing stands against it", ruling.guard ? ruling.guard : "",
             ruling.rule ? ruling.rule : "");
    weir_check_exit(weir, &entry, WEIR_SUCCEEDED, now);
    check_in_flight(weir);
}

static void play(void)
{
    weir_time now = 1000 * WEIR_SECOND;
    struct weir_table *table;

    make_rules();
    struct weir *weir = make_engine(&table, now);
    n_visits = 0;
    for (int i = 0; i < STEPS; i++) {
        now += one_in(3) ? 0 : int_between(1, 300) * WEIR_MILLISECOND;
        if (one_in(60))
            weir_degradation_set(table, int_between(0, 3), now);
        if (int_between(1, 5) <= 3)
            arrive(weir, now);
        else
            depart(weir, now);
        check_in_flight(weir);
    }
    check_liveness(weir, table, now);
    weir_destroy(weir);
    weir_table_destroy(table);
}

int main(int argc, char **argv)
{
    printf("%" PRIu64 " rounds\n", play_rounds(argc, argv, 200, play));
    return 0;
}
