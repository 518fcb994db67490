/* rules-played.h -- twin engines, and random requests to them and to the plain model. */
#ifndef WEIR_TESTS_PROPERTY_RULES_PLAYED_H
#define WEIR_TESTS_PROPERTY_RULES_PLAYED_H

#include "invent.h"

#include "engine/engine.h"
#include "engine/explain.h"

static bool trace;

/* ------------------------------------------------------------- engines ---- */

enum { TWINS = 2 };
static struct weir *engines[TWINS];
static struct weir_table *tables[TWINS];

static void create_engines(void)
{
    struct weir_error e;
    struct weir_table_options o = {
        .keys = 30000, .limiters = 20000, .slab = (int64_t)1 << 30, .narrow = narrow
    };

    for (int i = 0; i < TWINS; i++)
        if (weir_table_create(&tables[i], &o, &e) != WEIR_OK ||
            weir_create(&engines[i], &(struct weir_options){ .table = tables[i] }, &e) != WEIR_OK)
            stop("%s", e.text);
}

static void destroy_engines(void)
{
    for (int i = 0; i < TWINS; i++) {
        struct weir_table_stats stats;
        weir_table_stats(tables[i], -1, &stats);
        if (stats.evicted_early > 0)
            stop("the table was too small for this test");
        weir_destroy(engines[i]);
        weir_table_destroy(tables[i]);
    }
}

/* A cost that a limit could never pass is a mistake. */
static void mend_costs(void)
{
    for (int i = 0; i < set.n; i++) {
        struct rule *r = &set.rules[i];
        for (int k = 0; k < r->limits && r->cost > 1; k++) {
            struct weir_plan *plan = make_plan(&r->limit[k]);
            r->cost = r->cost > plan->most ? plan->most : r->cost;
            weir_plan_destroy(plan);
        }
    }
}

static void use_rules(weir_time now)
{
    struct weir_error e;

    mend_costs();
    write_set();
    for (int i = 0; i < TWINS; i++) {
        struct weir_rules *rules = NULL;
        if (weir_rules_parse(&rules, yaml, yaml_len, NULL, &e) != WEIR_OK ||
            weir_use(engines[i], rules, now, &e) != WEIR_OK)
            stop("%s\n%s", e.text, yaml);
    }
    plain_use(&set, now);
}

/* ------------------------------------------------------------ requests ---- */

static bool may_step_back(void)
{
    return seed_of_round % 4 != 0 && !narrow;
}

static void random_request(struct request *q, weir_time now)
{
    memset(q, 0, sizeof(*q));
    for (int a = 0; a < ATTRIBUTES; a++) {
        int n = 0;
        while (values[a][n][0] != '\0')
            n++;
        if (one_in(8))
            continue;
        q->given[a].len = (size_t)snprintf(q->given[a].text, VALUE_MAX, "%s",
                                           values[a][int_between(0, one_in(3) ? n
                                                                    : n < 5   ? n / 2
                                                                              : 4)]);
    }
    q->ask = (struct weir_ask){ .cost = one_in(5) ? int_between(0, 4) : 1, .now = now };
    if (one_in(60))
        q->ask.cost = one_in(2) ? -int_between(1, 9) : INT64_MAX - int_between(0, 2);
    if (one_in(6))
        q->ask.wait_max =
            one_in(4) && !narrow ? WEIR_FOREVER : int_between(1, 5000) * WEIR_MILLISECOND;
    if (may_step_back() && one_in(200))
        q->ask.now = one_in(2) ? INT64_MIN : -int_between(0, 5) * WEIR_SECOND;
}

/* The attributes in any order, some by length, some by NUL, some by number, among others that
 * nobody looks at. */
static size_t as_attrs(struct weir *weir, const struct request *q, struct weir_attr *attrs)
{
    size_t n = 0;

    for (int i = 0, first = int_between(0, ATTRIBUTES - 1); i < ATTRIBUTES; i++) {
        int a = (first + i) % ATTRIBUTES;
        if (q->given[a].len == 0 && one_in(2))
            continue;
        const char *name = spell_name(a);
        attrs[n++] = (struct weir_attr){ .name = name,
                                         .value = q->given[a].text,
                                         .value_len = one_in(2) ? q->given[a].len : 0,
                                         .id = one_in(8) ? weir_attribute(weir, name) : 0 };
        if (one_in(20))
            attrs[n++] = (struct weir_attr){ .name = "colour", .value = "/login" };
        if (one_in(20) && q->given[a].len > 0)
            attrs[n++] = (struct weir_attr){ .name = spell_name(a),
                                             .value = "second" }; /* the first counts */
    }
    return n;
}

static void show_request(char *out, size_t size, const struct request *q)
{
    size_t n = 0;

    for (int a = 0; a < ATTRIBUTES; a++)
        if (q->given[a].len > 0)
            n +=
                (size_t)snprintf(out + n, size - n, "%s=%s ", attribute_names[a], q->given[a].text);
    snprintf(out + n, size - n, "cost=%" PRId64 " wait_max=%" PRId64 " now=%" PRId64, q->ask.cost,
             q->ask.wait_max, q->ask.now);
}

static void show_ruling(char *out, size_t size, const struct weir_ruling *r)
{
    const struct weir_decision *d = &r->decision;

    snprintf(out, size,
             "%s reason=%s item=%d limit=%" PRId64 " remaining=%" PRId64 " wait=%" PRId64
             " retry=%" PRId64 " reset=%" PRId64 " rule=%s list=%s shadow=%s count=%" PRId64
             " window=%" PRId64 " banned_until=%" PRId64 " index=%d applied=%d mode=%d level=%d%s",
             d->allowed ? "allowed" : "refused", weir_reason_name(d->reason), d->item, d->limit,
             d->remaining, d->wait, d->retry, d->reset, r->rule ? r->rule : "-",
             r->list ? r->list : "-", r->shadow ? r->shadow : "-", r->count, r->window,
             r->banned_until, r->limit_index, r->applied, r->mode, r->level, r->cut ? " cut" : "");
}

static void compare(const char *what, const struct weir_ruling *got,
                    const struct weir_ruling *expected, const struct request *q)
{
    char a[1024], b[1024], request[ATTRIBUTES * (VALUE_MAX + 32)];

    show_ruling(a, sizeof(a), got);
    show_ruling(b, sizeof(b), expected);
    if (strcmp(a, b) == 0)
        return;
    show_request(request, sizeof(request), q);
    stop("%s\n%s\nrequest %s\n  got      %s\n  expected %s", what, yaml, request, a, b);
}

/* ------------------------------------------------------------ playing ---- */

#define BATCH 16

static struct request batch[BATCH];
static struct weir_ruling expected[BATCH];
static int batched;
static int64_t requests_played, refused_in_all, banned_in_all, shadowed_in_all, applied_in_all,
    listed_in_all, cut_in_all;

static struct weir_totals totals;

/* The key of a refusal, as it is listed. */
static void compare_told(const char *told, const struct weir_ruling *plain, const struct request *q)
{
    static struct key key;

    plain_told(&set, q, plain, &key);
    if (!is_listed_as(key.text, told))
        stop("told of key '%s', expected '%s'\n%s", told, key.text, yaml);
}

/* The twin hears of the same requests a few at a time. */
static void flush_batch(void)
{
    static struct weir_attr attrs[BATCH][3 * ATTRIBUTES];
    struct weir_request requests[BATCH];
    struct weir_ruling rulings[BATCH];
    static char told[BATCH][WEIR_KEY_TEXT];
    size_t allowed = 0;

    for (int i = 0; i < batched; i++)
        requests[i] = (struct weir_request){ attrs[i], as_attrs(engines[1], &batch[i], attrs[i]),
                                             batch[i].ask };
    size_t got = weir_check_many_keys(engines[1], requests, (size_t)batched, rulings, told);
    for (int i = 0; i < batched; i++) {
        compare("weir_check_many", &rulings[i], &expected[i], &batch[i]);
        compare_told(told[i], &expected[i], &batch[i]);
        allowed += expected[i].decision.allowed;
    }
    if (got != allowed)
        stop("weir_check_many allowed %zu, expected %zu", got, allowed);
    batched = 0;
}

/* What is told of each rule, in their order. */
struct hearing {
    struct request q;
    int n;
};

static enum weir__why plain_why(const struct rule *r, const struct request *q, struct key *key)
{
    for (int i = 0; i < r->matches; i++)
        if (!plain_condition(&set, &r->match[i], q))
            return WEIR__UNMATCHED;
    if (!plain_matches(&set, r, q))
        return WEIR__EXCEPTED;
    return !plain_key(r, q, key)            ? WEIR__NO_KEY
           : rule_mode(&set, r) == WEIR_OFF ? WEIR__SWITCHED_OFF
                                            : WEIR__APPLIES;
}

static void heard(void *context, const struct weir__explained *told)
{
    struct hearing *h = context;
    const struct rule *r = &set.rules[h->n++];
    static struct key key;
    enum weir__why why = plain_why(r, &h->q, &key);

    if (strcmp(told->rule->name, r->name) != 0 || told->why != why ||
        told->mode != rule_mode(&set, r))
        stop("explain: %s: why %d, mode %d, expected %s: %d, %d\n%s", told->rule->name, told->why,
             told->mode, r->name, why, rule_mode(&set, r), yaml);
    if (why != WEIR__APPLIES && why != WEIR__SWITCHED_OFF)
        return;
    if (!is_listed_as(key.text, told->key) ||
        (told->cost < 0 ? -1 : told->cost) != plain_cost(r, &h->q) ||
        told->n_limits != (size_t)r->limits)
        stop("explain: %s: key %s, cost %" PRId64 ", expected %s, %" PRId64, r->name, told->key,
             told->cost, key.text, plain_cost(r, &h->q));
    struct ban b = *plain_ban(r, &key, &h->q);
    plain_follow(&b, h->q.ask.now); /* only here: nothing is written */
    if (told->banned_until != (b.until > h->q.ask.now ? b.until : 0))
        stop("explain: %s: key %s: banned until %" PRId64 ", expected %" PRId64, r->name, told->key,
             told->banned_until, b.until);
}

/* What was foretold is what came; but that a refusal is the one that bans is not foreseen. */
static void compare_foretold(struct weir_ruling *foretold, struct weir_ruling seen,
                             const struct request *q)
{
    if (seen.banned_until != 0 && seen.decision.reason != WEIR_BANNED) {
        seen.banned_until = 0;
        seen.decision.retry = foretold->decision.retry;
    }
    compare("weir__engine_explain", foretold, &seen, q);
}

static void trace_request(const struct request *q, const struct weir_ruling *ruling)
{
    static char t[ATTRIBUTES * (VALUE_MAX + 32)];

    show_request(t, sizeof(t), q);
    printf("%s\n", t);
    show_ruling(t, sizeof(t), ruling);
    printf("   %s\n", t);
}

static void count_ruling(const struct weir_ruling *r)
{
    requests_played++;
    refused_in_all += !r->decision.allowed;
    banned_in_all += r->decision.reason == WEIR_BANNED;
    shadowed_in_all += r->shadow != NULL;
    applied_in_all += r->applied;
    listed_in_all += r->list != NULL;
    cut_in_all += r->cut;
}

static void play_request(weir_time now)
{
    struct request *q = &batch[batched];
    struct weir_attr attrs[3 * ATTRIBUTES];
    struct weir_ruling ruling, *plain = &expected[batched];
    struct weir__explanation foretold;
    static struct hearing hearing;

    random_request(q, now);
    hearing.q = *q;
    hearing.n = 0;
    plain_look(&hearing.q);
    size_t n = as_attrs(engines[0], q, attrs);
    weir__engine_explain(engines[0], attrs, n, &q->ask, &foretold, heard, &hearing);
    if (hearing.n != set.n)
        stop("explain tells of %d rules, expected %d", hearing.n, set.n);
    char told[WEIR_KEY_TEXT];
    bool tells = one_in(2);
    bool allowed = tells ? weir_check_key(engines[0], attrs, n, &q->ask, &ruling, told)
                         : weir_check(engines[0], attrs, n, &q->ask, &ruling);
    plain_check(&set, q, plain);
    plain_total(&totals, plain);
    if (tells)
        compare_told(told, plain, q);
    if (trace)
        trace_request(q, &ruling);
    compare("weir_check", &ruling, plain, q);
    if (allowed != ruling.decision.allowed)
        stop("weir_check returned another answer than it gave");
    compare_foretold(&foretold.ruling, ruling, q);
    count_ruling(&ruling);
    if (++batched == BATCH)
        flush_batch();
}

#endif
