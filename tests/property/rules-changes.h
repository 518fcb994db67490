/* rules-changes.h -- between requests: rules, lists, modes and bans are changed, here and there. */
#ifndef WEIR_TESTS_PROPERTY_RULES_CHANGES_H
#define WEIR_TESTS_PROPERTY_RULES_CHANGES_H

#include "rules-played.h"

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

#endif
