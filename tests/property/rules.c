/* rules.c -- random rule sets and random requests: the engine says what the plainest evaluator
 * (plain.h) says.
 *
 *     property-rules SEED ROUNDS [trace]    prints the seed, the rules, the request and both
 *                                           answers on a mismatch; with trace, every request
 *
 * Each round makes a rule set, plays a few hundred requests on virtual time, and compares every
 * member of every ruling; what weir__engine_explain foretold of it and of every rule; which key was
 * told of a refusal; what a twin engine says to the same requests by weir_check_many; and in the
 * end tallies, totals and bans.  In between the rules are put in force again, as they were or with
 * other numbers, keys or algorithms, with a rule more or less, or in a way that must fail; lists
 * are edited, modes switched, bans lifted and set by hand, keys reset.
 *
 *     even seeds    rules ban
 *     not fourth    the clock steps back now and then, even before 0
 *     every fifth   the tables are narrow; their clock never steps back, nor do limits of one word
 *                   change their numbers (docs/shm.md)
 *     every 23rd    more rules apply than can be asked at once
 */
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

/* ---------------------------------------------------------- in between ---- */

static struct rule *any_rule(void)
{
    return set.n > 0 ? &set.rules[int_between(0, set.n - 1)] : NULL;
}

/* Whether its state is one word in a narrow table: then a change keeps something else than a step
 * does. */
static bool is_one_word(const struct weir_limit *l)
{
    return narrow && strncmp(l->algorithm, "sliding", 7) != 0;
}

static void change_limit(void)
{
    struct rule *r = any_rule();
    struct weir_limit *l = r ? &r->limit[int_between(0, r->limits - 1)] : NULL;

    if (l != NULL && !is_one_word(l)) {
        l->count = int_between(1, 20);
        if (l->period > 0 && one_in(2))
            l->period = int_between(1, 100) * WEIR_SECOND;
    }
    if (r != NULL && r->bans) {
        r->refusals.count = int_between(1, 5);
        r->length = int_between(1, 60) * WEIR_SECOND;
        r->longest = r->length * int_between(1, 20);
    }
}

/* Another key, or another algorithm: a fresh state, or, if the rule had it before, the one that it
 * had then. */
static void change_rule(void)
{
    struct rule *r = any_rule();

    if (r == NULL)
        return;
    struct rule before = *r;
    int i = int_between(0, r->limits - 1);
    if (one_in(3))
        random_key(r);
    else if (one_in(2))
        random_algorithm(&r->limit[i], set.n <= 40);
    else
        r->limits = r->limits > 1 && one_in(2) ? r->limits - 1 : r->limits; /* the last one goes */
    if (r->limits > 1 && one_in(3)) { /* and all move: another place is another limit */
        struct weir_limit first = r->limit[0];
        r->limit[0] = r->limit[r->limits - 1];
        r->limit[r->limits - 1] = first;
    }
    for (i = 0; narrow && i < r->limits; i++)
        if (is_one_word(&r->limit[i]) && plain_would_change(r, i)) {
            *r = before;
            return;
        }
}

static struct rule attic[8]; /* rules that are gone and may come back */
static int in_attic;

static void remove_rule(void)
{
    if (set.n == 0)
        return;
    int i = int_between(0, set.n - 1);
    if (in_attic < 8) {
        attic[in_attic] = set.rules[i];
        attic[in_attic++].tally = (struct tally){ 0 };
    }
    memmove(&set.rules[i], &set.rules[i + 1], (size_t)(--set.n - i) * sizeof(*set.rules));
}

static void insert_rule(void)
{
    int i = int_between(0, set.n);

    if (set.n == RULES_MAX)
        return;
    memmove(&set.rules[i + 1], &set.rules[i], (size_t)(set.n++ - i) * sizeof(*set.rules));
    if (in_attic > 0 && one_in(2))
        set.rules[i] = attic[--in_attic];
    else
        random_rule(&set.rules[i], set.n <= 40);
}

/* A narrow table cannot hold this: nothing at all is changed, though other limits would have
 * been. */
static void fail_to_use(weir_time now)
{
    static struct set before;
    struct weir_error e = { 0 };
    struct rule *r = any_rule();

    if (r == NULL || !narrow)
        return;
    before = set;
    for (int i = 0; i < set.n; i++)
        set.rules[i].limit[0].count *= 2;
    r->limit[0] =
        (struct weir_limit){ .algorithm =
                                 is_one_word(&r->limit[0]) ? r->limit[0].algorithm : "gcra",
                             .count = 7,
                             .period = WEIR_SECOND };
    write_set();
    set = before;
    for (int i = 0; i < TWINS; i++) {
        struct weir_rules *rules = NULL;
        if (weir_rules_parse(&rules, yaml, yaml_len, NULL, &e) != WEIR_OK ||
            weir_use(engines[i], rules, now, &e) == WEIR_OK)
            stop("%s\n%s", e.text[0] ? e.text : "a narrow table holds 7 in a second", yaml);
        if (strstr(e.text, r->name) == NULL)
            stop("the error does not name the rule %s: %s", r->name, e.text);
        weir_rules_destroy(rules);
    }
    write_set();
}

/* Takes all entries away that mean the same as one; returns another spelling of it. */
static const char *forget_entry(struct list *l, const char *entry)
{
    const char *other = entry;

    for (int k = 0; k < 7 && is_address(l->attribute); k++)
        if (strcmp(entry, networks[k][0]) == 0 || strcmp(entry, networks[k][1]) == 0) {
            other = networks[k][int_between(0, 1)];
            entry = networks[k][0];
        }
    for (int i = 0; i < l->n; i++) {
        bool same = strcmp(l->entries[i], entry) == 0;
        for (int k = 0; k < 7 && is_address(l->attribute); k++)
            same |=
                strcmp(entry, networks[k][0]) == 0 && strcmp(l->entries[i], networks[k][1]) == 0;
        if (same)
            l->entries[i--] = l->entries[--l->n];
    }
    return other;
}

static void edit_list(void)
{
    struct list *l = &set.list[int_between(0, set.lists - 1)];
    struct weir_error e;
    const char *add = random_entry(l->attribute), *remove = NULL;
    bool adds = l->n < 16;

    if (adds)
        l->entries[l->n++] = add;
    if (l->n > 0 && one_in(2))
        remove = forget_entry(
            l, l->entries[int_between(0, l->n - 1)]); /* what is in both is not on it */
    for (int i = 0; i < TWINS; i++)
        if (weir_list_edit(engines[i],
                           &(struct weir_list_edit){ l->name, spell_name(l->attribute), &add, adds,
                                                     &remove, remove != NULL },
                           &e) != WEIR_OK)
            stop("weir_list_edit: %s", e.text);
}

static void switch_mode(void)
{
    enum weir_mode mode = (enum weir_mode)int_between(WEIR_AS_WRITTEN, WEIR_OFF);
    struct rule *r = set.n > 0 && !one_in(4) ? &set.rules[int_between(0, set.n - 1)] : NULL;
    struct weir_error e;

    if (r == NULL && one_in(2))
        mode = WEIR_AS_WRITTEN;
    for (int i = 0; i < TWINS; i++)
        if (weir_mode_set(engines[i], r ? r->name : NULL, mode, &e) != WEIR_OK)
            stop("weir_mode_set: %s", e.text);
    *(r ? &r->switched : &set.switched) = mode;
}

static struct rule *find_rule(const char *name)
{
    for (int i = 0; i < set.n; i++)
        if (strcmp(set.rules[i].name, name) == 0)
            return &set.rules[i];
    return NULL;
}

/* A ban as this engine lists it: a long key has a hash that only its table knows. */
struct listing {
    char key[TEXT_MAX];
    int n;
};

/* A way to name the ban's key: as it is listed, in full, or an address as it came. */
static const char *name_key(struct listing *l, struct weir *weir, const struct ban *b,
                            const struct rule *r, weir_time now)
{
    bool same = r != NULL && strcmp(b->template, r->template) == 0;
    struct weir_ban got;

    *l = (struct listing){ 0 };
    for (int64_t at = 0; weir_ban_next(weir, now, &at, &got);)
        if (strcmp(got.rule, b->rule) == 0 && is_listed_as(b->text, got.key)) {
            memcpy(l->key, got.key, sizeof(l->key));
            l->n++;
        }
    if (l->n == 1 && b->until > now && one_in(2))
        return l->key;
    return same && b->spelling && one_in(2) ? b->spelling : b->text;
}

/* Rather one that is in force. */
static struct ban *any_ban(weir_time now)
{
    struct ban *b = n_bans > 0 ? &bans[int_between(0, n_bans - 1)] : NULL;

    if (b != NULL && b->until <= now && !one_in(4))
        for (int i = 0; i < n_bans; i++)
            if (bans[i].until > now && one_in(3))
                return &bans[i];
    return b;
}

static void lift_ban(weir_time now)
{
    struct ban *b = any_ban(now);
    struct rule *r = b ? find_rule(b->rule) : NULL;
    struct listing listing;

    if (b == NULL)
        return;
    for (int i = 0; i < TWINS; i++) {
        const char *key = name_key(&listing, engines[i], b, r, now);
        bool lifted = weir_ban_lift(engines[i], b->rule, key, now);
        if (lifted != (b->until > now))
            stop("weir_ban_lift %s of %s, key now %s: %d\n%s", key, b->rule, r ? r->template : "-",
                 lifted, yaml);
    }
    b->since = b->until = b->forget_at = b->strikes = 0;
    if (r && r->bans) {
        struct weir_ask all = { .cost = INT64_MAX, .now = now };
        weir_step_give(r->counts->plan, plain_cell(r->counts, b->text)->state, &all);
    }
}

static void set_ban(weir_time now)
{
    struct ban *b = n_bans > 0 ? &bans[int_between(0, n_bans - 1)] : NULL;
    const struct rule *r = b ? find_rule(b->rule) : NULL;
    struct weir_error e;
    struct listing listing;
    weir_time until = now + int_between(1, 100) * WEIR_SECOND;

    if (r == NULL || strcmp(r->template, b->template) != 0 || seed_of_round % 2 == 1)
        return;
    for (int i = 0; i < TWINS; i++) {
        const char *key = name_key(&listing, engines[i], b, r, now);
        if (weir_ban_set(engines[i], b->rule, key, now, until, &e) != WEIR_OK)
            stop("weir_ban_set: %s: %s", key, e.text);
    }
    plain_follow(b, now);
    if (b->until <= now && b->forget_at <= now)
        b->strikes = 0, b->forget_at = 0;
    b->strikes += b->until <= now || b->strikes == 0;
    b->since = now;
    b->until = until;
    b->forget_at = b->forget_at > until ? b->forget_at : until;
}

static void reset_keys(weir_time now)
{
    static struct request q;
    struct weir_attr attrs[3 * ATTRIBUTES];
    struct weir_error e;

    random_request(&q, now);
    struct rule *only = one_in(3) ? any_rule() : NULL;
    int wanted = plain_reset(&set, &q, only);
    for (int i = 0; i < TWINS; i++) {
        size_t n = as_attrs(engines[i], &q, attrs);
        int64_t got = weir_reset(engines[i], only ? only->name : NULL, attrs, n, now, &e);
        if (got != wanted)
            stop("weir_reset of %s: %" PRId64 ", expected %d\n%s", only ? only->name : "all", got,
                 wanted, yaml);
    }
}

static void something_else(weir_time now)
{
    flush_batch();
    int what = int_between(0, 14);
    if (trace)
        printf("==== %d at %" PRId64 "\n", what, now);
    switch (what) {
    case 0:
        break; /* the same again */
    case 1:
    case 2:
        change_limit();
        break;
    case 3:
        remove_rule();
        break;
    case 4:
        insert_rule();
        break;
    case 5:
        edit_list();
        return;
    case 6:
        switch_mode();
        return;
    case 7:
        lift_ban(now);
        return;
    case 8:
        for (int i = 0; i < 4; i++)
            set_ban(now);
        return;
    case 9:
    case 10:
        change_rule();
        break;
    case 11:
    case 12:
        for (int i = 0; i < 4; i++)
            reset_keys(now);
        return;
    case 13:
        fail_to_use(now);
        return;
    default:
        change_limit();
        change_rule();
        insert_rule();
        remove_rule();
    }
    use_rules(now);
}

/* ------------------------------------------------------------- verdict ---- */

static void compare_tallies(const struct weir_rule_info *got, struct rule *r)
{
    if (strcmp(got->name, r->name) != 0 || got->allowed != r->tally.allowed ||
        got->refused != r->tally.refused || got->banned != r->tally.banned ||
        got->shadow_refused != r->tally.shadow_refused || got->mode != rule_mode(&set, r) ||
        got->switched != r->switched)
        stop("weir_rule_next %s: %" PRId64 " allowed %" PRId64 " refused %" PRId64
             " banned %" PRId64 " shadow, expected %s: %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
             "; mode %d, expected %d",
             got->name, got->allowed, got->refused, got->banned, got->shadow_refused, r->name,
             r->tally.allowed, r->tally.refused, r->tally.banned, r->tally.shadow_refused,
             got->mode, rule_mode(&set, r));
}

static void find_listed(const struct weir_ban *got)
{
    for (int i = 0; i < n_bans; i++)
        if (!bans[i].listed && strcmp(bans[i].rule, got->rule) == 0 &&
            is_listed_as(bans[i].text, got->key) && bans[i].until == got->until &&
            bans[i].since == got->since && bans[i].strikes == got->strikes) {
            bans[i].listed = true;
            return;
        }
    stop("a ban that should not be: rule %s key %s since %" PRId64 " until %" PRId64 " strikes %d",
         got->rule, got->key, got->since, got->until, got->strikes);
}

static void judge(weir_time now)
{
    flush_batch();
    int in_force = 0;
    for (int i = 0; i < n_bans; i++)
        in_force += bans[i].until > now;
    for (int k = 0; k < TWINS; k++) {
        struct weir_rule_info info;
        int listed = 0;
        for (int i = 0; i < set.n; i++)
            if (weir_rule_next(engines[k], &(int64_t){ i }, &info))
                compare_tallies(&info, &set.rules[i]);
        if (weir_rule_next(engines[k], &(int64_t){ set.n }, &info))
            stop("a rule too many");
        for (int i = 0; i < n_bans; i++)
            bans[i].listed = false;
        struct weir_totals got;
        weir_totals_get(engines[k], &got);
        if (memcmp(&got, &totals, sizeof(got)) != 0)
            stop("totals: %" PRId64 " checked, expected %" PRId64 "; unmatched %" PRId64 " %" PRId64
                 ", shadow %" PRId64 " %" PRId64,
                 got.checked, totals.checked, got.unmatched, totals.unmatched, got.shadow_refused,
                 totals.shadow_refused);
        struct weir_ban ban;
        for (int64_t at = 0; weir_ban_next(engines[k], now, &at, &ban); listed++)
            find_listed(&ban);
        if (listed != in_force)
            stop("%d bans are listed, expected %d", listed, in_force);
    }
}

static weir_time random_step(void)
{
    if (one_in(400) && may_step_back())
        return -int_between(2, 5000) * WEIR_SECOND;
    if (one_in(20) && !narrow)
        return -(weir_time)(roll() % WEIR_SECOND);
    switch (int_between(0, 5)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return int_between(1, 1000000);
    case 3:
        return int_between(1, 2000) * WEIR_MILLISECOND;
    case 4:
        return one_in(10) ? int_between(1, 40 * 86400) * WEIR_SECOND
                          : int_between(1, 100) * WEIR_SECOND;
    }
    return int_between(1, 100) * WEIR_MILLISECOND;
}

static void play_round(uint64_t seed)
{
    random_state = seed_of_round = seed;
    weir_time now =
        (weir_time)1700000000 * WEIR_SECOND + (weir_time)(roll() % (20 * 31557600)) * WEIR_SECOND;
    weir_time latest = now;
    names_used = in_attic = 0;
    memset(&totals, 0, sizeof(totals));
    narrow = seed % 5 == 0;
    random_set();
    create_engines();
    use_rules(now);
    for (int i = int_between(20, 400); i > 0; i--) {
        now += random_step();
        latest = now > latest ? now : latest;
        if (!may_step_back() && now < latest - WEIR_SECOND)
            now = latest - WEIR_SECOND;
        if (one_in(30))
            something_else(now);
        play_request(now);
    }
    judge(now);
    destroy_engines();
    plain_forget_all();
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 200;

    trace = argc > 3;
    for (int i = 0; i < rounds; i++)
        play_round(seed + (uint64_t)i);
    printf("%d rounds, %" PRId64 " requests: %" PRId64 " rules applied, %" PRId64
           " refused, %" PRId64 " by a ban, %" PRId64 " by shadows, %" PRId64 " by lists, %" PRId64
           " cut\n",
           rounds, requests_played, applied_in_all, refused_in_all, banned_in_all, shadowed_in_all,
           listed_in_all, cut_in_all);
    return 0;
}
