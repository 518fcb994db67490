/* check.c -- deciding a request by all rules that apply to it.
 *
 *     1. Its attributes become facts.  A deny list refuses, an allow list lets through: nothing else is looked at.
 *     2. The rules that apply are found; each makes its key.  A key that is banned is refused.
 *     3. All limits of the rules that enforce are asked together, all or nothing.
 *     4. If they grant it, each rule in shadow is asked for itself: it sees the traffic that it would see, and takes nothing from the
 * others.
 *     5. A refusal counts towards the ban of the rule that refused.
 *
 * No allocation, no lock but what weir_take_all needs.
 */
#include <string.h>

#include "engine/engine.h"

struct inquiry {
    struct weir *weir;
    const struct weir__force *force;
    const struct weir_ask *ask;
    struct weir_ruling *ruling;
    struct weir__tally *tally; /* this stripe's, by rule */
    bool look;                 /* nothing is taken, counted or written */
    weir_time now;             /* the ask's; before 0 counts as 0 */
    struct weir__facts facts;
    size_t n_rules, n_enforced, n_items;  /* rules that apply; items of those that enforce; of all */
    struct weir_item items[WEIR_ALL_MAX]; /* first those of rules that enforce, then those in shadow; a rule's lie side by side */
    uint32_t item_rule[WEIR_ALL_MAX];     /* whose they are */
    unsigned char keys[WEIR_ALL_MAX + 1][WEIR__KEY_MAX]; /* one more: of a rule that there is no room for, but may have a ban */
};

enum weir_mode weir__force_mode(const struct weir *weir, const struct weir__force *force)
{
    enum weir_mode by_hand = weir__table_mode(weir->table);
    return by_hand == WEIR_AS_WRITTEN ? force->mode : by_hand;
}

static inline void count(const struct inquiry *q, int64_t *counter)
{
    if (!q->look)
        __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED); /* the stripe is ours alone */
}

static bool ask_all(const struct inquiry *q, const struct weir_item *items, size_t n, struct weir_decision *d)
{
    return q->look ? weir__peek_all(items, n, d) : weir_take_all(items, n, d);
}

/* -------------------------------------------------------------- lists ---- */

static bool listed(const struct inquiry *q, int attribute, int list)
{
    const struct weir__value *v = &q->facts.values[attribute];
    return v->len != 0 && weir__list_has(&q->force->lists->lists[list], v->text, v->len, &v->address);
}

/* Whether a list has decided. */
static bool decide_by_list(struct inquiry *q)
{
    const struct weir__force *f = q->force;
    for (size_t i = 0; i < f->denies; i++) {
        if (listed(q, f->deny[i].attribute, f->deny[i].list)) {
            q->ruling->list = "deny";
            if (q->ruling->mode == WEIR_SHADOW)
                return false; /* it would have been refused; the rules, in shadow too, are asked */
            q->ruling->decision = (struct weir_decision){ .reason = WEIR_DENIED, .retry = WEIR_NEVER };
            q->ruling->level = 3;
            return true;
        }
    }
    for (size_t i = 0; i < f->allows; i++) {
        if (listed(q, f->allow[i].attribute, f->allow[i].list)) {
            q->ruling->list = "allow";
            return true;
        }
    }
    return false;
}

/* --------------------------------------------------------------- costs ---- */

/* A number as an attribute; anything else counts as 1. */
static int64_t number(const struct weir__value *v)
{
    int64_t n = 0;
    for (size_t i = 0; i < v->len; i++) {
        if (v->text[i] < '0' || v->text[i] > '9')
            return 1;
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, v->text[i] - '0', &n))
            return INT64_MAX;
    }
    return v->len ? n : 1;
}

int64_t weir__rule_cost_made(const struct weir__rule *rule, const struct weir__facts *facts, int64_t asked)
{
    int64_t cost = rule->cost;
    if (asked < 0)
        return -1; /* a mistake stays one */
    if (rule->cost_attribute >= 0 && facts->values[rule->cost_attribute].len != 0 &&
        __builtin_mul_overflow(cost, number(&facts->values[rule->cost_attribute]), &cost))
        cost = INT64_MAX;
    return __builtin_mul_overflow(cost, asked, &cost) ? INT64_MAX : cost;
}

/* ---------------------------------------------------------------- bans ---- */

static struct weir_key key_text(const struct inquiry *q, uint32_t rule, char text[WEIR__KEY_TEXT])
{
    const struct weir__rule *r = &q->force->rules->rules[rule];
    return (struct weir_key){ text, weir__rule_key_text(q->weir->table->secrets, r, &q->facts, text) };
}

static weir_time banned_until(const struct inquiry *q, uint32_t rule)
{
    char text[WEIR__KEY_TEXT];
    uint64_t tag = weir__ban_tag_salted(q->weir->table, q->force->posts[rule].ban_salt, key_text(q, rule, text));
    return q->look ? weir__ban_peek(q->weir->table, tag, q->now) : weir__ban_until(q->weir->table, tag, q->now);
}

/* A rule in shadow would have refused. */
static void note_shadow(struct inquiry *q, uint32_t rule)
{
    count(q, &q->tally[rule].shadow_refused);
    if (q->ruling->shadow == NULL)
        q->ruling->shadow = q->force->posts[rule].name;
}

static void refuse_banned(struct inquiry *q, uint32_t rule, weir_time until)
{
    count(q, &q->tally[rule].banned);
    q->ruling->rule = q->force->posts[rule].name;
    q->ruling->banned_until = until;
    q->ruling->decision = (struct weir_decision){ .reason = WEIR_BANNED, .retry = until - q->now, .reset = until - q->now };
    q->ruling->level = 3;
}

/* One refusal more.  The one that makes the number full bans the key, and the count begins anew. */
static void count_refusal(struct inquiry *q, uint32_t rule)
{
    const struct weir__post *post = &q->force->posts[rule];
    char text[WEIR__KEY_TEXT];
    struct weir_decision d;
    if (post->refusals == NULL || q->ask->cost <= 0 || q->look)
        return;
    struct weir_key key = key_text(q, rule, text);
    struct weir_ask one = { .key = key, .cost = 1, .now = q->now };
    if (weir_take(post->refusals, &one, &d) && d.remaining > 0)
        return;
    one.cost = INT64_MAX;
    weir_give(post->refusals, &one);
    weir_time until =
        weir__ban_strike(q->weir->table, weir__ban_tag_salted(q->weir->table, post->ban_salt, key), post->name, key, &post->terms, q->now);
    q->ruling->banned_until = until;
    if (until - q->now > q->ruling->decision.retry)
        q->ruling->decision.retry = until - q->now;
}

/* ------------------------------------------------------------- applying ---- */

/* How much of the inquiry is in use. */
struct used {
    size_t rules, items;
    bool full; /* a rule did not fit: of those behind it only bans count */
};

/* The rule's limits among the items. */
static inline void add_items(struct inquiry *q, struct used *u, uint32_t i, const struct weir__rule *rule, struct weir_key key)
{
    struct weir_limiter *const *limiters = q->force->limiters + rule->first_limit;
    int64_t cost = weir__rule_cost(rule, &q->facts, q->ask->cost);
    for (size_t k = 0; k < rule->n_limits; k++, u->items++) {
        struct weir_item *item = &q->items[u->items];
        item->limiter = limiters[k];
        item->ask.key = key;
        item->ask.cost = cost;
        item->ask.wait_max = q->ask->wait_max;
        item->ask.now = q->now;
        q->item_rule[u->items] = i;
    }
    u->rules++;
}

/* What became of a rule that matches. */
enum outcome { LEFT_OUT, APPLIED, BANNED };

static inline __attribute__((always_inline)) enum outcome apply_rule(struct inquiry *q, struct used *u, uint32_t i, enum weir_mode wanted,
                                                                     bool bans)
{
    const struct weir__rule *rule = &q->force->rules->rules[i];
    const struct weir__post *post = &q->force->posts[i];
    struct weir_key key;
    weir_time until;
    if (weir__post_mode(post, q->ruling->mode) != wanted ||
        !weir__rule_key(q->weir->table->secrets, rule, &q->facts, q->keys[u->rules], &key))
        return LEFT_OUT;
    if (__builtin_expect(bans, 0) && (until = banned_until(q, i)) != 0) {
        if (wanted == WEIR_ENFORCE)
            refuse_banned(q, i, until);
        else
            note_shadow(q, i);
        return BANNED;
    }
    u->full = u->full || u->items + rule->n_limits > WEIR_ALL_MAX;
    if (!u->full)
        add_items(q, u, i, rule, key);
    return APPLIED;
}

/* The rules of this mode that match; counts the others.  False: a key is banned. */
static inline __attribute__((always_inline)) bool apply_mode(struct inquiry *q, struct used *u, enum weir_mode wanted, bool bans,
                                                             size_t *others)
{
    uint32_t found[WEIR__FOUND_MAX], from = 0;
    size_t n;
    do {
        n = weir__match_find(q->force->rules, &q->facts, from, found);
        for (size_t i = 0; i < n; i++) {
            enum outcome o = apply_rule(q, u, found[i], wanted, bans);
            *others += o == LEFT_OUT;
            if (o == BANNED && wanted == WEIR_ENFORCE)
                return false;
        }
        from = n > 0 ? found[n - 1] + 1 : 0;
    } while (n == WEIR__FOUND_MAX);
    return true;
}

/* First the rules that enforce, then, in the room that they have left, those in shadow.  False: the request is refused, because a key is
 * banned. */
static bool apply_rules(struct inquiry *q)
{
    struct used used = { 0, 0, false };
    size_t others = 0;
    bool bans = weir__bans_any(q->weir->table, q->now);
    if (!apply_mode(q, &used, WEIR_ENFORCE, bans, &others))
        return false;
    q->n_enforced = used.items;
    q->ruling->cut = used.full;
    used.full = false;
    if (others > 0)
        apply_mode(q, &used, WEIR_SHADOW, bans, &others);
    q->ruling->cut = q->ruling->cut || used.full;
    q->n_items = used.items;
    q->n_rules = used.rules;
    return true;
}

/* ------------------------------------------------------------- deciding ---- */

uint8_t weir__level_of(const struct weir_decision *d)
{
    int64_t eighth = d->limit / 8 + (d->limit % 8 != 0), half = d->limit / 2 + d->limit % 2;
    return !d->allowed ? 3 : d->remaining < eighth ? 2 : d->remaining < half ? 1 : 0;
}

/* The rule and its limit that have decided, as they were written. */
static void name_limit(struct inquiry *q, size_t item)
{
    uint32_t i = q->item_rule[item];
    const struct weir__rule *rule = &q->force->rules->rules[i];
    size_t index = 0;
    while (index < item && q->item_rule[item - index - 1] == i)
        index++;
    const struct weir_limit *limit = &rule->draft->limits[index];
    q->ruling->rule = q->force->posts[i].name;
    q->ruling->limit_index = (uint16_t)index;
    q->ruling->count = limit->count;
    q->ruling->window = limit->period;
    if (limit->calendar != WEIR_NO_CALENDAR) {
        weir_time start;
        q->ruling->window = weir__calendar_window(&weir__limiter_era(q->items[item].limiter)->plan, q->now, &start);
    }
}

static bool decide_enforced(struct inquiry *q)
{
    struct weir_decision *d = &q->ruling->decision;
    if (q->n_enforced == 0)
        return true;
    ask_all(q, q->items, q->n_enforced, d);
    name_limit(q, d->item);
    q->ruling->level = weir__level_of(d);
    if (!d->allowed) {
        count(q, &q->tally[q->item_rule[d->item]].refused);
        count_refusal(q, q->item_rule[d->item]);
    }
    return d->allowed;
}

static void decide_shadows(struct inquiry *q)
{
    for (size_t i = q->n_enforced, n; i < q->n_items; i += n) {
        uint32_t rule = q->item_rule[i];
        struct weir_decision d;
        n = q->force->rules->rules[rule].n_limits;
        if (ask_all(q, q->items + i, n, &d))
            count(q, &q->tally[rule].allowed);
        else
            note_shadow(q, rule);
    }
}

static void decide_by_rules(struct inquiry *q)
{
    if (!apply_rules(q))
        return;
    q->ruling->applied = (uint16_t)q->n_rules;
    if (!decide_enforced(q)) {
        q->ruling->shadow = NULL; /* what would have been does not matter */
        return;
    }
    decide_shadows(q);
    for (size_t i = 0; i < q->n_enforced; i++)
        if (i == 0 || q->item_rule[i] != q->item_rule[i - 1])
            count(q, &q->tally[q->item_rule[i]].allowed);
}

static bool check(struct weir *weir, size_t stripe, const struct weir_attr *attrs, size_t n, const struct weir_ask *ask, bool look,
                  struct weir_ruling *ruling)
{
    static const struct weir_ruling free_way = { .decision = { .allowed = true }, .mode = WEIR_ENFORCE };
    struct inquiry q;
    *ruling = free_way;
    q.force = __atomic_load_n(&weir->force, __ATOMIC_SEQ_CST);
    if (q.force == NULL || (ruling->mode = (uint8_t)weir__force_mode(weir, q.force)) == WEIR_OFF)
        return true;
    q.weir = weir;
    q.ask = ask;
    q.now = ask->now < 0 ? 0 : ask->now;
    q.look = look;
    q.ruling = ruling;
    q.tally = q.force->tally + stripe * q.force->rules->n_rules;
    weir__facts_gather(&q.force->attributes, q.force->lists, attrs, n, &q.facts);
    if (!decide_by_list(&q))
        decide_by_rules(&q);
    return ruling->decision.allowed;
}

bool weir_check(struct weir *weir, const struct weir_attr *attrs, size_t n, const struct weir_ask *ask, struct weir_ruling *ruling)
{
    size_t stripe = weir__engine_enter(weir);
    bool allowed = check(weir, stripe, attrs, n, ask, false, ruling);
    weir__engine_leave(weir, stripe);
    return allowed;
}

size_t weir_check_many(struct weir *weir, const struct weir_request *requests, size_t n, struct weir_ruling *rulings)
{
    size_t allowed = 0, stripe = weir__engine_enter(weir);
    for (size_t i = 0; i < n; i++)
        allowed += check(weir, stripe, requests[i].attrs, requests[i].n, &requests[i].ask, false, &rulings[i]);
    weir__engine_leave(weir, stripe);
    return allowed;
}

bool weir__check_look(struct weir *weir, const struct weir_attr *attrs, size_t n, const struct weir_ask *ask, struct weir_ruling *ruling)
{
    size_t stripe = weir__engine_enter(weir);
    bool allowed = check(weir, stripe, attrs, n, ask, true, ruling);
    weir__engine_leave(weir, stripe);
    return allowed;
}
