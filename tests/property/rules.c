/* rules.c -- random rule sets and random requests: the engine says what the plainest evaluator (plain.h) says.
 *
 *     property-rules SEED ROUNDS [trace]    prints the seed, the rules, the request and both answers on a mismatch; with trace, every request
 *
 * Each round makes a rule set, plays a few hundred requests on virtual time, and compares every member of every ruling; what
 * weir__engine_explain foretold; what a twin engine says to the same requests by weir_check_many; and in the end tallies and bans.  In
 * between the rules are put in force again, as they were or with other numbers, with a rule more or less; lists are edited, modes switched,
 * bans lifted and set by hand.
 */
#include "property/invent.h"

#include "engine/engine.h"

static bool trace;

/* ------------------------------------------------------------- engines ---- */

enum { TWINS = 2 };
static struct weir *engines[TWINS];
static struct weir_table *tables[TWINS];

static void create_engines(void)
{
    struct weir_error e;
    struct weir_table_options o = { .keys = 30000, .limiters = 4096, .slab = 1 << 28 };
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

static void use_rules(weir_time now)
{
    struct weir_error e;
    write_set();
    for (int i = 0; i < TWINS; i++) {
        struct weir_rules *rules = NULL;
        if (weir_rules_parse(&rules, yaml, yaml_len, NULL, &e) != WEIR_OK || weir_use(engines[i], rules, now, &e) != WEIR_OK)
            stop("%s\n%s", e.text, yaml);
    }
    memcpy(set.list, set.written, sizeof set.list);
}

/* ------------------------------------------------------------ requests ---- */

static void random_request(struct request *q, weir_time now)
{
    memset(q, 0, sizeof *q);
    for (int a = 0; a < ATTRIBUTES; a++) {
        int n = 0;
        while (values[a][n][0] != '\0')
            n++;
        if (one_in(8))
            continue;
        q->given[a].len = (size_t)snprintf(q->given[a].text, VALUE_MAX, "%s", values[a][between(0, one_in(2) ? n / 2 : n)]);
    }
    q->ask = (struct weir_ask){ .cost = one_in(5) ? between(0, 4) : 1, .now = now };
    if (one_in(60))
        q->ask.cost = one_in(2) ? -1 : INT64_MAX - between(0, 2);
    if (one_in(6))
        q->ask.wait_max = one_in(4) ? WEIR_FOREVER : between(1, 5000) * WEIR_MILLISECOND;
}

/* The attributes in any order, some by length, some by NUL, among others that nobody looks at. */
static size_t as_attrs(const struct request *q, struct weir_attr *attrs)
{
    size_t n = 0;
    for (int i = 0, first = between(0, ATTRIBUTES - 1); i < ATTRIBUTES; i++) {
        int a = (first + i) % ATTRIBUTES;
        if (q->given[a].len == 0 && one_in(2))
            continue;
        attrs[n++] =
            (struct weir_attr){ .name = attribute_names[a], .value = q->given[a].text, .value_len = one_in(2) ? q->given[a].len : 0 };
        if (one_in(20))
            attrs[n++] = (struct weir_attr){ .name = "colour", .value = "/login" };
        if (one_in(20) && q->given[a].len > 0)
            attrs[n++] = (struct weir_attr){ .name = attribute_names[a], .value = "second" }; /* the first counts */
    }
    return n;
}

static void show_request(char *out, size_t size, const struct request *q)
{
    size_t n = 0;
    for (int a = 0; a < ATTRIBUTES; a++)
        if (q->given[a].len > 0)
            n += (size_t)snprintf(out + n, size - n, "%s=%s ", attribute_names[a], q->given[a].text);
    snprintf(out + n, size - n, "cost=%" PRId64 " wait_max=%" PRId64 " now=%" PRId64, q->ask.cost, q->ask.wait_max, q->ask.now);
}

static void show_ruling(char *out, size_t size, const struct weir_ruling *r, bool item)
{
    const struct weir_decision *d = &r->decision;
    snprintf(out, size,
             "%s reason=%s item=%d limit=%" PRId64 " remaining=%" PRId64 " wait=%" PRId64 " retry=%" PRId64 " reset=%" PRId64
             " rule=%s list=%s shadow=%s count=%" PRId64 " window=%" PRId64 " banned_until=%" PRId64
             " index=%d applied=%d mode=%d level=%d",
             d->allowed ? "allowed" : "refused", weir_reason_name(d->reason), item ? d->item : 0, d->limit, d->remaining, d->wait, d->retry,
             d->reset, r->rule ? r->rule : "-", r->list ? r->list : "-", r->shadow ? r->shadow : "-", r->count, r->window, r->banned_until,
             r->limit_index, r->applied, r->mode, r->level);
}

static void compare(const char *what, const struct weir_ruling *got, const struct weir_ruling *expected, const struct request *q, bool item)
{
    char a[1024], b[1024], request[8192];
    show_ruling(a, sizeof a, got, item);
    show_ruling(b, sizeof b, expected, item);
    if (strcmp(a, b) == 0)
        return;
    show_request(request, sizeof request, q);
    stop("%s\n%s\nrequest %s\n  got      %s\n  expected %s", what, yaml, request, a, b);
}

/* ------------------------------------------------------------ playing ---- */

#define BATCH 16

static struct request batch[BATCH];
static struct weir_ruling expected[BATCH];
static int batched;
static int64_t requests_played, refused_in_all, banned_in_all, shadowed_in_all, applied_in_all, listed_in_all;

/* The twin hears of the same requests a few at a time. */
static void flush_batch(void)
{
    static struct weir_attr attrs[BATCH][3 * ATTRIBUTES];
    struct weir_request requests[BATCH];
    struct weir_ruling rulings[BATCH];
    size_t allowed = 0;
    for (int i = 0; i < batched; i++)
        requests[i] = (struct weir_request){ attrs[i], as_attrs(&batch[i], attrs[i]), batch[i].ask };
    size_t got = weir_check_many(engines[1], requests, (size_t)batched, rulings);
    for (int i = 0; i < batched; i++) {
        compare("weir_check_many", &rulings[i], &expected[i], &batch[i], true);
        allowed += expected[i].decision.allowed;
    }
    if (got != allowed)
        stop("weir_check_many allowed %zu, expected %zu", got, allowed);
    batched = 0;
}

static void heard(void *context, const struct weir__explained *rule)
{
    *(int *)context += rule->why == WEIR__APPLIES;
}

/* EXCLUDED until mended: what explain foretells differs in what the longest of several says (retry, reset, wait), in a calendar's window, in what it
 * says of shadows and of how many apply when the request is refused or banned, and in the level of a denied one. */
static void blur(struct weir_ruling *r)
{
    r->decision.retry = r->decision.reset = r->decision.wait = r->window = 0;
    r->shadow = NULL;
    r->banned_until = 0;
    r->applied = r->level = 0;
    if (r->decision.reason == WEIR_BANNED)
        r->count = r->limit_index = 0;
    r->decision.reason = (uint8_t)(r->decision.reason == WEIR_TOO_BIG ? WEIR_LIMITED : r->decision.reason);
}

static void play_request(weir_time now)
{
    struct request *q = &batch[batched];
    struct weir_attr attrs[3 * ATTRIBUTES];
    struct weir_ruling ruling, *plain = &expected[batched];
    struct weir__explanation foretold;
    int applying = 0;
    random_request(q, now);
    size_t n = as_attrs(q, attrs);
    weir__engine_explain(engines[0], attrs, n, &q->ask, &foretold, heard, &applying);
    bool allowed = weir_check(engines[0], attrs, n, &q->ask, &ruling);
    plain_check(&set, q, plain);
    if (trace) {
        char t[8192];
        show_request(t, sizeof t, q);
        printf("%s\n", t);
        show_ruling(t, sizeof t, &ruling, true);
        printf("   %s\n", t);
    }
    compare("weir_check", &ruling, plain, q, true);
    if (allowed != ruling.decision.allowed)
        stop("weir_check returned another answer than it gave");
    struct weir_ruling seen = ruling;
    blur(&foretold.ruling);
    blur(&seen);
    if (set.n <= 20) /* EXCLUDED until mended: explain does not know that at most WEIR_ALL_MAX limits apply */
        compare("weir__engine_explain", &foretold.ruling, &seen, q, false);
    requests_played++;
    refused_in_all += !allowed;
    banned_in_all += ruling.decision.reason == WEIR_BANNED;
    shadowed_in_all += ruling.shadow != NULL;
    applied_in_all += ruling.applied;
    listed_in_all += ruling.list != NULL;
    if (++batched == BATCH)
        flush_batch();
}

/* ---------------------------------------------------------- in between ---- */

static void change_limit(weir_time now)
{
    if (set.n == 0)
        return;
    struct rule *r = &set.rules[between(0, set.n - 1)];
    int i = between(0, r->limits - 1);
    struct weir_limit l = r->limit[i];
    l.count = between(1, 20);
    if (l.period > 0 && one_in(2))
        l.period = between(1, 100) * WEIR_SECOND;
    if (trace)
        printf("==== change %s %d\n", r->name, i);
    if (l.count == r->limit[i].count && l.period == r->limit[i].period)
        return; /* no change at all */
    struct weir_plan *plan = make_plan(&l);
    plain_change(r, i, r->plan[i], plan, now);
    weir_plan_destroy(r->plan[i]);
    r->plan[i] = plan;
    r->limit[i] = l;
}

static void remove_rule(void)
{
    if (set.n == 0)
        return;
    int i = between(0, set.n - 1);
    free_rule(&set.rules[i]);
    memmove(&set.rules[i], &set.rules[i + 1], (size_t)(--set.n - i) * sizeof *set.rules);
}

static void insert_rule(void)
{
    int i = between(0, set.n);
    if (set.n == RULES_MAX)
        return;
    memmove(&set.rules[i + 1], &set.rules[i], (size_t)(set.n++ - i) * sizeof *set.rules);
    random_rule(&set.rules[i], set.n <= 40);
}

static void edit_list(void)
{
    struct list *l = &set.list[between(0, set.lists - 1)];
    struct weir_error e;
    const char *add = is_address(l->attribute) ? networks[between(0, 6)] : words[between(0, 7)], *remove = NULL;
    if (l->n > 0 && one_in(2)) {
        remove = l->entries[between(0, l->n - 1)];
        for (int i = 0; i < l->n; i++)
            if (strcmp(l->entries[i], remove) == 0)
                l->entries[i--] = l->entries[--l->n];
    }
    bool adds = l->n < 16 && (remove == NULL || strcmp(add, remove) != 0);
    if (adds)
        l->entries[l->n++] = add;
    for (int i = 0; i < TWINS; i++)
        if (weir_list_edit(engines[i], l->name, attribute_names[l->attribute], &add, adds, &remove, remove != NULL, &e) != WEIR_OK)
            stop("weir_list_edit: %s", e.text);
}

static void switch_mode(void)
{
    enum weir_mode mode = (enum weir_mode)between(WEIR_AS_WRITTEN, WEIR_OFF);
    struct rule *r = set.n > 0 && !one_in(4) ? &set.rules[between(0, set.n - 1)] : NULL;
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

static void lift_ban(weir_time now)
{
    struct ban *b = n_bans > 0 ? &bans[between(0, n_bans - 1)] : NULL;
    struct rule *r = b ? find_rule(b->rule) : NULL;
    if (b == NULL)
        return;
    for (int i = 0; i < TWINS; i++) {
        bool lifted = weir_ban_lift(engines[i], b->rule, b->text, now);
        if (lifted != (b->until > now))
            stop("weir_ban_lift %s of %s: %d", b->text, b->rule, lifted);
    }
    b->since = b->until = b->forget_at = b->strikes = 0;
    if (r && r->bans) {
        struct weir_ask all = { .cost = INT64_MAX, .now = now };
        weir_step_give(r->refusals_plan, plain_cell(r, -1, b->key, r->refusals_plan)->state, &all);
    }
}

static void set_ban(weir_time now)
{
    struct ban *b = n_bans > 0 ? &bans[between(0, n_bans - 1)] : NULL;
    struct weir_error e;
    weir_time until = now + between(1, 100) * WEIR_SECOND;
    if (b == NULL || find_rule(b->rule) == NULL || seed_of_round % 2 == 1)
        return;
    for (int i = 0; i < TWINS; i++)
        if (weir_ban_set(engines[i], b->rule, b->text, now, until, &e) != WEIR_OK)
            stop("weir_ban_set: %s", e.text);
    plain_follow(b, now);
    if (b->until <= now && b->forget_at <= now)
        b->strikes = 0, b->forget_at = 0;
    b->strikes += b->until <= now || b->strikes == 0;
    b->since = now;
    b->until = until;
    b->forget_at = b->forget_at > until ? b->forget_at : until;
}

static void something_else(weir_time now)
{
    flush_batch();
    int what = between(0, 9);
    if (trace)
        printf("==== %d at %" PRId64 "\n", what, now);
    switch (what) {
    case 0:
        break; /* the same again */
    case 1:
    case 2:
        change_limit(now);
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
        set_ban(now);
        return;
    default:
        change_limit(now);
        insert_rule();
        remove_rule();
    }
    use_rules(now);
}

/* ------------------------------------------------------------- verdict ---- */

static void compare_tallies(const struct weir_rule_info *got, struct rule *r)
{
    if (strcmp(got->name, r->name) != 0 || got->allowed != r->tally.allowed || got->refused != r->tally.refused ||
        got->banned != r->tally.banned || got->shadow_refused != r->tally.shadow_refused || got->mode != rule_mode(&set, r) ||
        got->switched != r->switched)
        stop("weir_rule_get %s: %" PRId64 " allowed %" PRId64 " refused %" PRId64 " banned %" PRId64 " shadow, expected %s: %" PRId64
             " %" PRId64 " %" PRId64 " %" PRId64 "; mode %d, expected %d",
             got->name, got->allowed, got->refused, got->banned, got->shadow_refused, r->name, r->tally.allowed, r->tally.refused,
             r->tally.banned, r->tally.shadow_refused, got->mode, rule_mode(&set, r));
}

static bool find_listed(void *context, const struct weir_ban *got)
{
    for (int i = 0; i < n_bans; i++)
        if (strcmp(bans[i].rule, got->rule) == 0 && strcmp(bans[i].text, got->key) == 0 && bans[i].until == got->until &&
            bans[i].since == got->since && bans[i].strikes == got->strikes) {
            ++*(int *)context;
            return true;
        }
    stop("a ban that should not be: rule %s key %s since %" PRId64 " until %" PRId64 " strikes %d", got->rule, got->key, got->since,
         got->until, got->strikes);
    return false;
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
            if (weir_rule_get(engines[k], (size_t)i, &info))
                compare_tallies(&info, &set.rules[i]);
        if (weir_rule_get(engines[k], (size_t)set.n, &info))
            stop("a rule too many");
        weir_ban_list(engines[k], now, find_listed, &listed);
        if (listed != in_force)
            stop("%d bans are listed, expected %d", listed, in_force);
    }
}

static weir_time random_step(void)
{
    if (one_in(400) && seed_of_round % 2 == 1) /* rounds with bans have none: a ban notices it when it is looked at, be it by explain */
        return -between(2, 5000) * WEIR_SECOND;
    if (one_in(20))
        return -(weir_time)(random64() % WEIR_SECOND);
    switch (between(0, 5)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return between(1, 1000000);
    case 3:
        return between(1, 2000) * WEIR_MILLISECOND;
    case 4:
        return one_in(10) ? between(1, 40 * 86400) * WEIR_SECOND : between(1, 100) * WEIR_SECOND;
    }
    return between(1, 100) * WEIR_MILLISECOND;
}

static void play_round(uint64_t seed)
{
    random_state = seed_of_round = seed;
    weir_time now = (weir_time)1700000000 * WEIR_SECOND + (weir_time)(random64() % (20 * 31557600)) * WEIR_SECOND;
    weir_time latest = now;
    names_used = 0;
    random_set();
    create_engines();
    use_rules(now);
    for (int i = between(20, 400); i > 0; i--) {
        now += random_step();
        latest = now > latest ? now : latest;
        if (seed_of_round % 2 == 0 && now < latest - WEIR_SECOND)
            now = latest - WEIR_SECOND;
        if (one_in(30))
            something_else(now);
        play_request(now);
    }
    judge(now);
    destroy_engines();
    for (int i = 0; i < set.n; i++)
        free_rule(&set.rules[i]);
    plain_forget_all();
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 200;
    trace = argc > 3;
    for (int i = 0; i < rounds; i++)
        play_round(seed + (uint64_t)i);
    printf("%d rounds, %" PRId64 " requests: %" PRId64 " rules applied, %" PRId64 " refused, %" PRId64 " by a ban, %" PRId64
           " by shadows, %" PRId64 " by lists\n",
           rounds, requests_played, applied_in_all, refused_in_all, banned_in_all, shadowed_in_all, listed_in_all);
    return 0;
}
