/* check.c -- deciding a request by all rules that apply to it.
 *
 *     1. Its attributes become facts.  A deny list refuses and an allow list lets through; then
 *        nothing else matters.
 *     2. The rules that apply are found; each makes its key, which says where in the table its
 *        states are.  Those cache lines are prefetched.
 *     3. A banned key is refused.  weir_check_enter enters the guards now (check-enter.c), and
 *        leaves them if the request is refused after all.
 *     4. All limits of the rules that enforce are asked together, all or nothing.
 *     5. If they grant it, each rule in shadow is asked alone: it sees the traffic it would see if
 *        it enforced, and takes nothing from the others.
 *     6. A refusal counts towards the ban of the rule that refused.
 *
 * 1 and 2 prepare a request, and change nothing; the rest decides it.  Of many requests a few are
 * prepared before the first is decided, so that memory fetches their lines in parallel; they are
 * decided one after another, as if each had come alone.
 *
 * No allocation, and no lock beyond those of weir__all_take.
 */
#include <string.h>

#include "engine/level.h"
#include "engine/inquiry.h"

/* Compiled separately for one request, for many, for each mode. */
#define ALWAYS static inline __attribute__((always_inline))
#define RARELY static __attribute__((noinline))

enum weir_mode weir__active_mode(const struct weir *weir, const struct weir__active *active)
{
    enum weir_mode by_hand = weir__table_mode(weir->table);

    return by_hand == WEIR_AS_WRITTEN ? active->mode : by_hand;
}

ALWAYS bool ask_all(const struct weir__checker *c, const struct weir__inquiry *q, size_t first,
                    size_t n, struct weir_decision *d)
{
    if (__builtin_expect(c->taken != NULL, 0))
        return weir__all_take_noted(q->items + first, n, &q->ask, d, c->taken);
    return c->peek ? weir__all_peek(q->items + first, n, &q->ask, d)
                   : weir__all_take(q->items + first, n, &q->ask, d);
}

/* -------------------------------------------------------------- lists ---- */

static bool listed(const struct weir__checker *c, const struct weir__inquiry *q, int attribute,
                   int list)
{
    const struct weir__value *v = &q->facts.values[attribute];

    return v->len != 0 &&
           weir__list_has(&c->active->lists->lists[list], v->text, v->len, &v->address);
}

/* Whether a list has decided. */
RARELY bool search_lists(const struct weir__checker *c, struct weir__inquiry *q)
{
    const struct weir__active *f = c->active;

    for (size_t i = 0; i < f->denies; i++) {
        if (listed(c, q, f->deny[i].attribute, f->deny[i].list)) {
            q->ruling->list = "deny";
            if (q->ruling->mode == WEIR_SHADOW)
                return false; /* it would have been refused; the rules are asked all the same */
            q->ruling->decision =
                (struct weir_decision){ .reason = WEIR_DENIED, .retry = WEIR_NEVER };
            q->ruling->level = 3;
            return true;
        }
    }
    for (size_t i = 0; i < f->allows; i++) {
        if (listed(c, q, f->allow[i].attribute, f->allow[i].list)) {
            q->ruling->list = "allow";
            return true;
        }
    }
    return false;
}

ALWAYS bool decide_by_list(const struct weir__checker *c, struct weir__inquiry *q)
{
    return c->active->denies + c->active->allows > 0 && search_lists(c, q);
}

/* ------------------------------------------------------------- applying ---- */

/* One pass over the rules that match: those wanted, and the outcome. */
struct pass {
    enum weir_mode wanted;
    bool bans;    /* look at them too: see pass_bans */
    bool full;    /* a rule did not fit: of those after it only bans count */
    bool shadows; /* there are rules in shadow */
    size_t rules, items;
    uint32_t key_number;     /* of the key that was made last; 0: none was */
    bool has_key;            /* all attributes of it were there */
    struct weir_key key;     /* it */
    struct weir__sums *sums; /* of the key */
    unsigned char *made;     /* WEIR__KEY_MAX bytes, for it */
};

/* Many rules have the key of the one before.  False: an attribute is missing. */
ALWAYS bool make_key(const struct weir__checker *c, const struct weir__inquiry *q, struct pass *p,
                     const struct weir__rule *rule)
{
    if (rule->key_number != p->key_number) {
        const uint64_t *secrets = c->weir->table->secrets;
        p->has_key = weir__rule_key(secrets, rule, &q->facts, p->made, &p->key);
        p->key_number = rule->key_number;
        if (p->has_key)
            *p->sums = weir__hash_sums(secrets, p->key);
    }
    return p->has_key;
}

/* The rule's limits. */
ALWAYS void put_items(struct weir__item *item, uint32_t i, const struct weir__rule *rule,
                      struct weir_limiter *const *limiters, int64_t cost,
                      const struct weir__sums *sums, size_t key_len)
{
    for (uint32_t k = 0, n = rule->n_limits; k < n; k++, item++) {
        item->cost = cost;
        item->whose = i;
        item->which = (uint16_t)k;
        weir__item_set(item, limiters[k], weir__slot_hash_from(limiters[k], sums, key_len));
        item->closed = rule->closed;
        __builtin_prefetch(item->line, 1);
    }
}

/* Returns the number of items: a rule that lets all pass alone has none, and is noted. */
ALWAYS int put_across(const struct weir__checker *c, struct weir__inquiry *q,
                      struct weir__item *items, uint32_t i, struct weir_key key,
                      enum weir_mode wanted)
{
    const struct weir__rule *rule = &c->active->rules->rules[i];
    enum weir__across how =
        wanted == WEIR_ENFORCE
            ? weir__across_now(c->weir, c->active, i, q->ask.now, c->alone ? q->alone : NULL)
            : WEIR__ACROSS_SHARE;
    struct weir_limiter **limiters =
        how == WEIR__ACROSS_PURSE ? c->active->purses : c->active->limiters;
    unsigned char made[WEIR__KEY_MAX];
    struct weir__sums sums;

    if (__builtin_expect(key.len > sizeof(made), 0))
        weir__across_key(c->weir, rule, &q->facts, made, &key);
    if (how == WEIR__ACROSS_OPEN && q->n_opened < WEIR_ALL_MAX)
        q->opened[q->n_opened++] = i;
    if (how == WEIR__ACROSS_OPEN)
        return 0;
    if (how == WEIR__ACROSS_CLOSED && q->closed == 0)
        q->closed = i + 1;
    sums = weir__hash_sums(c->weir->table->secrets, key);
    put_items(items, i, rule, limiters + rule->first_limit,
              weir__rule_cost(rule, &q->facts, q->ask.cost), &sums, key.len);
    return rule->n_limits;
}

/* A rule across the fleet, or one for which this many items leave no room: -1.  Else returns the
 * number of its items. */
RARELY int put_unusual(const struct weir__checker *c, struct weir__inquiry *q, size_t items,
                       uint32_t i, struct weir_key key, enum weir_mode wanted)
{
    q->unusual = true;
    if (items + c->active->rules->rules[i].n_limits <= WEIR_ALL_MAX)
        return put_across(c, q, q->items + items, i, key, wanted);
    if (wanted == WEIR_ENFORCE)
        q->over = i + 1;
    return -1;
}

/* Adds the rule's limits to the items. */
ALWAYS void add_items(const struct weir__checker *c, struct weir__inquiry *q, struct pass *p,
                      uint32_t i, const struct weir__rule *rule)
{
    if (__builtin_expect(p->items + rule->room > WEIR_ALL_MAX, 0)) {
        int n = put_unusual(c, q, p->items, i, p->key, p->wanted);
        p->full = n < 0;
        p->rules += n == 0;
        if (n <= 0)
            return;
    } else {
        put_items(q->items + p->items, i, rule, c->active->limiters + rule->first_limit,
                  weir__rule_cost(rule, &q->facts, q->ask.cost), p->sums, p->key.len);
    }
    p->items += rule->n_limits;
    p->rules++;
}

/* False: refused, because the rule's key is banned. */
ALWAYS bool apply_rule(const struct weir__checker *c, struct weir__inquiry *q, struct pass *p,
                       uint32_t i)
{
    const struct weir__rule *rule = &c->active->rules->rules[i];
    enum weir_mode mode = weir__post_mode(&c->active->posts[i], q->ruling->mode);
    weir_time until;

    if (mode != p->wanted) {
        p->shadows = p->shadows || mode == WEIR_SHADOW;
        return true;
    }
    if (!make_key(c, q, p, rule))
        return true;
    if (p->bans && (until = weir__inquiry_ban(c, q, i)) != 0) {
        if (mode == WEIR_ENFORCE)
            weir__refuse_banned(c, q, i, until);
        else
            weir__note_shadow(c, q, i);
        return mode != WEIR_ENFORCE;
    }
    if (__builtin_expect(!p->full, 1))
        add_items(c, q, p, i, rule);
    return true;
}

RARELY void apply_shadows(const struct weir__checker *c, struct weir__inquiry *q,
                          struct weir__matches *m, struct pass p)
{
    p.wanted = WEIR_SHADOW;
    p.full = false;
    if (m->later)
        weir__matches_begin(m, m->set, m->match, m->facts);
    do
        for (size_t i = 0; i < m->n; i++)
            apply_rule(c, q, &p, m->found[i]);
    while (weir__matches_more(m));
    q->cut = q->cut || p.full;
    q->n_items = p.items;
    q->n_rules = p.rules;
}

/* First the rules that enforce, then those in shadow, as far as there is room.  False: refused,
 * because a key is banned. */
ALWAYS bool apply_rules(const struct weir__checker *c, struct weir__inquiry *q, bool bans)
{
    unsigned char made[WEIR__KEY_MAX];
    struct weir__sums sums;
    struct pass p = { .wanted = WEIR_ENFORCE, .bans = bans, .made = made, .sums = &sums };
    struct weir__matches m;

    weir__matches_begin(&m, c->active->rules, c->active->rules->match, &q->facts);
    do
        for (size_t i = 0, n = m.n; i < n; i++)
            if (!apply_rule(c, q, &p, m.found[i]))
                return false;
    while (weir__matches_more(&m));
    q->n_enforced = q->n_items = p.items;
    q->n_rules = p.rules;
    q->cut = p.full;
    if (__builtin_expect(p.shadows, 0))
        apply_shadows(c, q, &m, p);
    return true;
}

/* Rules left out for want of room, or because they let all pass, may have bans too, and a banned
 * rule in shadow makes room: so all over again. */
RARELY bool apply_rules_anew(const struct weir__checker *c, struct weir__inquiry *q)
{
    q->over = q->closed = 0;
    q->unusual = false;
    q->n_opened = 0;
    return apply_rules(c, q, true);
}

/* Only while any ban is in force; and not before the request's turn, because the one before it may
 * have caused a ban.  A rule in shadow whose key is banned would have refused, and is not asked.
 * False: refused. */
RARELY bool pass_bans(const struct weir__checker *c, struct weir__inquiry *q)
{
    size_t kept = 0;

    if (q->cut || q->n_opened > 0)
        return apply_rules_anew(c, q);
    for (size_t i = 0, n; i < q->n_items; i += n) {
        uint32_t rule = q->items[i].whose;
        weir_time until = weir__inquiry_ban(c, q, rule);
        n = c->active->rules->rules[rule].n_limits;
        if (until != 0 && i < q->n_enforced) {
            weir__refuse_banned(c, q, rule, until);
            return false;
        }
        if (until != 0) {
            weir__note_shadow(c, q, rule);
            q->n_rules--;
            continue;
        }
        memmove(q->items + kept, q->items + i, n * sizeof(*q->items));
        kept += n;
    }
    q->n_items = kept;
    return true;
}

/* ------------------------------------------------------------- deciding ---- */

/* Names the rule and the limit that decided, as written. */
ALWAYS void name_limit(const struct weir__checker *c, struct weir__inquiry *q, size_t item)
{
    uint32_t i = q->items[item].whose, index = q->items[item].which;
    const struct weir_limit *limit = &c->active->rules->rules[i].draft->limits[index];

    q->ruling->rule = c->active->posts[i].name;
    q->ruling->limit_index = (uint16_t)index;
    q->ruling->count = limit->count;
    q->ruling->window = limit->period;
    if (__builtin_expect(limit->calendar != WEIR_NO_CALENDAR, 0)) {
        weir_time start;
        struct weir_limiter *own = c->active->posts[i].limiters[index]; /* the item's is a purse? */
        q->ruling->window =
            weir__calendar_window(&weir__limiter_era(own)->plan, q->ask.now, &start);
    }
}

/* A purse does not tell how near its limit the fleet is. */
ALWAYS void tell_level(struct weir__inquiry *q, bool unusual)
{
    const struct weir_decision *d = &q->ruling->decision;

    if (unusual)
        q->ruling->fleet = weir__limiter_era(q->items[d->item].limiter)->plan.algo->fills;
    q->ruling->level = unusual && q->ruling->fleet && d->allowed ? 0 : weir__level_of(d);
}

ALWAYS bool decide_enforced(const struct weir__checker *c, struct weir__inquiry *q, bool unusual)
{
    struct weir_decision *d = &q->ruling->decision;

    if (q->n_enforced == 0)
        return true;
    ask_all(c, q, 0, q->n_enforced, d);
    if (unusual && !d->allowed)
        weir__tell_refusal(c, q, d);
    name_limit(c, q, d->item);
    tell_level(q, unusual);
    if (!d->allowed)
        weir__note_refusal(c, q, q->items[d->item].whose);
    return d->allowed;
}

RARELY void decide_shadows(const struct weir__checker *c, struct weir__inquiry *q)
{
    for (size_t i = q->n_enforced, n; i < q->n_items; i += n) {
        uint32_t rule = q->items[i].whose;
        struct weir_decision d;
        n = c->active->rules->rules[rule].n_limits;
        if (ask_all(c, q, i, n, &d))
            weir__count_one(c, &c->tally[rule].allowed);
        else
            weir__note_shadow(c, q, rule);
    }
}

/* Counts it for every rule that enforces. */
ALWAYS void count_allowed(const struct weir__checker *c, const struct weir__inquiry *q)
{
    const struct weir__item *item = q->items, *end = item + q->n_enforced;
    struct weir__tally *tally = c->tally;

    for (; item < end; item++)
        if (item->which == 0)
            weir__count_one(c, &tally[item->whose].allowed);
}

ALWAYS bool pass_guards(const struct weir__checker *c, struct weir__inquiry *q,
                        struct weir__admission *admission)
{
    return admission == NULL || admission->n == 0 ||
           weir__admission_pass(admission, c->active, c->weir->table->secrets, &q->facts,
                                q->ruling);
}

ALWAYS void decide_asked(const struct weir__checker *c, struct weir__inquiry *q,
                         struct weir__admission *admission, bool unusual)
{
    bool passed = pass_guards(c, q, admission);

    if (passed && admission != NULL && admission->in_turn)
        return;
    if (!passed || !decide_enforced(c, q, unusual)) {
        q->ruling->shadow = NULL; /* the real refusal is the news */
        if (passed && admission != NULL)
            weir_check_undo_enter(admission->entry);
        return;
    }
    if (__builtin_expect(q->n_enforced < q->n_items, 0))
        decide_shadows(c, q);
    count_allowed(c, q);
}

RARELY void decide_unusual(const struct weir__checker *c, struct weir__inquiry *q,
                           struct weir__admission *admission)
{
    if (q->over != 0)
        weir__refuse_too_many(c, q);
    else if (q->closed != 0)
        weir__refuse_alone(c, q);
    else
        decide_asked(c, q, admission, true);
    for (size_t i = 0; q->ruling->decision.allowed && i < q->n_opened; i++)
        weir__count_one(c, &c->tally[q->opened[i]].allowed);
}

ALWAYS void decide_by_rules(const struct weir__checker *c, struct weir__inquiry *q,
                            struct weir__admission *admission)
{
    if (__builtin_expect(weir__bans_any(c->weir->table, q->ask.now), 0) && !pass_bans(c, q))
        return;
    q->ruling->applied = (uint16_t)q->n_rules;
    q->ruling->cut = q->cut;
    if (__builtin_expect(q->unusual, 0))
        decide_unusual(c, q, admission);
    else
        decide_asked(c, q, admission, false);
}

/* It will wait, or waits already: its outcome is open. */
static bool is_waiting(const struct weir_ruling *r, const struct weir__admission *admission)
{
    return admission != NULL && admission->queued && r->guard != NULL &&
           r->decision.reason == WEIR_BUSY;
}

/* Adds the request to the totals: to one number, usually. */
ALWAYS void count_total(const struct weir__checker *c, const struct weir__inquiry *q,
                        const struct weir__admission *admission)
{
    struct weir__stripe *s = c->stripe;
    const struct weir_ruling *r = q->ruling;

    if (!r->decision.allowed) {
        if (is_waiting(r, admission) || weir__is_undecided(c, q))
            return;
        weir__count_one(c, &s->refused);
        if (r->list != NULL && r->decision.reason == WEIR_DENIED)
            weir__count_one(c, &s->denied);
        return;
    }
    if (admission != NULL && admission->in_turn)
        return;
    weir__count_one(c, &s->allowed);
    if (__builtin_expect(r->applied != 0 && r->list == NULL && r->shadow == NULL, 1))
        return;
    if (r->shadow != NULL ||
        (r->list != NULL && q->open)) /* a list that has not decided: deny, in shadow */
        weir__count_one(c, &s->shadow_refused);
    else
        weir__count_one(c, r->list != NULL ? &s->allow_listed : &s->unmatched);
}

/* ------------------------------------------------------------- the parts ---- */

_Static_assert(sizeof(struct weir_ruling) == sizeof(struct weir_decision) + 4 * sizeof(char *) +
                                                 3 * sizeof(int64_t) + 2 * sizeof(uint16_t) + 4,
               "let_pass sets every member");

/* In parts: as a whole it would be cleared by a loop of microcode. */
static inline void let_pass(struct weir_ruling *r)
{
    r->decision = (struct weir_decision){ .allowed = true };
    r->rule = r->list = r->shadow = r->guard = NULL;
    r->count = r->window = r->banned_until = 0;
    r->limit_index = r->applied = 0;
    r->mode = WEIR_ENFORCE;
    r->level = 0;
    r->cut = r->fleet = false;
}

/* Everything that changes nothing.  The caller has set the inquiry's ruling, told and items, which
 * have room for WEIR_ALL_MAX. */
ALWAYS void prepare(const struct weir__checker *c, struct weir__inquiry *q,
                    const struct weir_attr *attrs, size_t n, const struct weir_ask *ask,
                    struct weir__admission *admission)
{
    struct weir_ruling *ruling = q->ruling;

    let_pass(ruling);
    if (q->told != NULL)
        *q->told = '\0';
    q->n_items = 0;
    q->open = q->cut = q->unusual = false;
    q->n_opened = 0;
    q->over = q->closed = 0;
    if (c->active == NULL ||
        (ruling->mode = (uint8_t)weir__active_mode(c->weir, c->active)) == WEIR_OFF)
        return;
    q->ask.cost = ask->cost;
    q->ask.wait_max = ask->wait_max;
    q->ask.now = ask->now < 0 ? 0 : ask->now;
    weir__facts_gather(&c->active->attributes, c->active->lists, attrs, n, &q->facts);
    q->open = !decide_by_list(c, q);
    if (q->open)
        apply_rules(c, q, false);
    if (admission != NULL && ruling->decision.allowed)
        weir__admission_find(admission, c->active, &q->facts, ruling, !q->open);
}

ALWAYS bool decide(const struct weir__checker *c, struct weir__inquiry *q,
                   struct weir__admission *admission)
{
    if (q->open)
        decide_by_rules(c, q, admission);
    else
        pass_guards(c, q, admission);
    count_total(c, q, admission);
    return q->ruling->decision.allowed;
}

static inline struct weir__checker begin(struct weir *weir, bool peek, bool alone)
{
    const struct weir__active *active;
    struct weir__stripe *stripe = weir__engine_hold(weir, &active);
    size_t at = (size_t)(stripe - weir->stripes);

    return (struct weir__checker){
        weir, active, stripe, active ? active->tally + at * active->rules->n_rules : NULL,
        peek, alone,  NULL
    };
}

/* One request, and all that may be special about it. */
struct question {
    const struct weir_attr *attrs;
    size_t n;
    const struct weir_ask *ask;
    char *told; /* NULL: nobody wants the key's text */
    bool peek;
    struct weir__admission *admission;     /* NULL: guards are not entered */
    const struct weir__alone_rules *alone; /* NULL: none is decided alone */
};

ALWAYS bool check_by(struct weir *weir, const struct question *question, struct weir_ruling *ruling)
{
    struct weir__item items[WEIR_ALL_MAX];
    struct weir__inquiry q;
    struct weir__checker c = begin(weir, question->peek, question->alone != NULL);
    struct weir__admission *admission = question->admission;

    if (question->alone != NULL)
        q.alone = question->alone;
    if (admission != NULL)
        c.taken = admission->taken;
    q.ruling = ruling;
    q.told = question->told;
    q.items = items;
    prepare(&c, &q, question->attrs, question->n, question->ask, admission);
    bool allowed = decide(&c, &q, admission);
    weir__engine_release(c.stripe);
    return allowed;
}

static bool check(struct weir *weir, const struct weir_attr *attrs, size_t n,
                  const struct weir_ask *ask, bool peek, struct weir_ruling *ruling, char *told)
{
    struct question q = { .attrs = attrs, .n = n, .ask = ask, .told = told, .peek = peek };

    return check_by(weir, &q, ruling);
}

bool weir__check_admitted(struct weir *weir, const struct weir_attr *attrs, size_t n,
                          struct weir__admission *admission, struct weir_ruling *ruling, char *told)
{
    struct question q = { .attrs = attrs,
                          .n = n,
                          .ask = admission->ask,
                          .told = told,
                          .admission = admission,
                          .alone = admission->alone };

    admission->weir = weir;
    admission->key = told;
    return check_by(weir, &q, ruling);
}

bool weir_check(struct weir *weir, const struct weir_attr *attrs, size_t n,
                const struct weir_ask *ask, struct weir_ruling *ruling)
{
    return check(weir, attrs, n, ask, false, ruling, NULL);
}

bool weir_check_key(struct weir *weir, const struct weir_attr *attrs, size_t n,
                    const struct weir_ask *ask, struct weir_ruling *ruling,
                    char told[WEIR_KEY_TEXT])
{
    return check(weir, attrs, n, ask, false, ruling, told);
}

bool weir__check_alone(struct weir *weir, const struct weir_attr *attrs, size_t n,
                       const struct weir_ask *ask, const struct weir__alone_rules *alone,
                       struct weir_ruling *ruling, char told[WEIR_KEY_TEXT])
{
    struct question q = { .attrs = attrs, .n = n, .ask = ask, .told = told, .alone = alone };

    return check_by(weir, &q, ruling);
}

bool weir__check_peek(struct weir *weir, const struct weir_attr *attrs, size_t n,
                      const struct weir_ask *ask, struct weir_ruling *ruling)
{
    return check(weir, attrs, n, ask, true, ruling, NULL);
}

/* ---------------------------------------------------------------- many ---- */

#define GROUP \
    8 /* requests in progress: their lines, two or three each, fill the queue of memory reads */
#define ROOM (2 * WEIR_ALL_MAX) /* items of a group; each request must find room for the maximum */

/* The first lines have come; some keys are further on. */
static void fetch_next_lines(const struct weir__inquiry *inquiries, size_t n)
{
    for (const struct weir__inquiry *q = inquiries; q < inquiries + n; q++)
        for (size_t i = 0; i < q->n_items; i++) {
            const struct weir__item *item = &q->items[i];
            (void)weir__fetch_further(item->limiter->space, item->hash, item->line);
        }
}

/* Checks the first requests, as many as fit; returns their number. */
static size_t check_group(const struct weir__checker *c, const struct weir_request *requests,
                          size_t n, struct weir_ruling *rulings, char (*told)[WEIR_KEY_TEXT],
                          size_t *allowed)
{
    struct weir__inquiry inquiries[GROUP];
    struct weir__item items[ROOM];
    size_t count = 0, used = 0;

    while (count < n && count < GROUP && used + WEIR_ALL_MAX <= ROOM) {
        struct weir__inquiry *q = &inquiries[count];
        const struct weir_request *r = &requests[count];
        q->ruling = &rulings[count];
        q->told = told ? told[count] : NULL;
        q->items = items + used;
        prepare(c, q, r->attrs, r->n, &r->ask, NULL);
        used += q->cut ? WEIR_ALL_MAX : q->n_items; /* if cut, bans may make it need more */
        count++;
    }
    fetch_next_lines(inquiries, count);
    for (size_t i = 0; i < count; i++)
        *allowed += decide(c, &inquiries[i], NULL);
    return count;
}

size_t weir_check_many_keys(struct weir *weir, const struct weir_request *requests, size_t n,
                            struct weir_ruling *rulings, char (*told)[WEIR_KEY_TEXT])
{
    struct weir__checker c = begin(weir, false, false);
    size_t allowed = 0;

    for (size_t i = 0; i < n;)
        i += check_group(&c, requests + i, n - i, rulings + i, told ? told + i : NULL, &allowed);
    weir__engine_release(c.stripe);
    return allowed;
}

size_t weir_check_many(struct weir *weir, const struct weir_request *requests, size_t n,
                       struct weir_ruling *rulings)
{
    return weir_check_many_keys(weir, requests, n, rulings, NULL);
}
