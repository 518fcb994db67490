/* plain.h -- rules decided as plainly as possible: what tests/property/rules.c holds the engine
 * against.
 *
 * Written from what weir.h, draft.h, key-template.h, values.h and address.h promise, and from
 * nothing of lib/match or lib/engine: every rule is tried, every pattern is compared by the
 * shortest code that can, states are found by a string.  Only the steps are the library's own
 * (weir_step), because those have tests of their own.
 */
#ifndef WEIR_TESTS_PROPERTY_PLAIN_H
#define WEIR_TESTS_PROPERTY_PLAIN_H

#include "plain-bans.h"
#include "weir-admin.h"

static enum weir_mode all_mode(const struct set *set)
{
    return set->switched ? set->switched : set->mode;
}

static enum weir_mode rule_mode(const struct set *set, const struct rule *rule)
{
    enum weir_mode own = rule->switched ? rule->switched : rule->mode, all = all_mode(set);

    return own == WEIR_OFF || all == WEIR_OFF         ? WEIR_OFF
           : own == WEIR_SHADOW || all == WEIR_SHADOW ? WEIR_SHADOW
                                                      : WEIR_ENFORCE;
}

/* A cost that is no number counts once; products that no number holds are the largest there is;
 * what is negative is a mistake. */
static int64_t plain_cost(const struct rule *rule, const struct request *q)
{
    __int128 times = 1, most = INT64_MAX, cost;

    if (rule->cost_attribute >= 0) {
        const struct value *v = &q->seen[rule->cost_attribute];
        if (v->len > 0 && strspn(v->text, "0123456789") == v->len)
            times = v->len > 18 ? most : (__int128)atoll(v->text);
    }
    cost = rule->cost * times > most ? most : rule->cost * times;
    cost *= q->ask.cost;
    return q->ask.cost < 0 ? -1 : cost > most ? INT64_MAX : (int64_t)cost;
}

/* The window's present length, by the C library's calendar. */
static weir_time plain_window(const struct weir_limit *l, weir_time now)
{
    if (l->calendar == WEIR_NO_CALENDAR)
        return l->period;
    time_t t = (time_t)(now / WEIR_SECOND);
    struct tm begin, end;
    setenv("TZ", l->zone[0] ? l->zone : "UTC", 1);
    tzset();
    localtime_r(&t, &begin);
    begin.tm_sec = begin.tm_min = begin.tm_hour = 0;
    if (l->calendar == WEIR_WEEK)
        begin.tm_mday -= (begin.tm_wday + 6) % 7;
    if (l->calendar == WEIR_MONTH)
        begin.tm_mday = 1;
    end = begin;
    end.tm_mday += l->calendar == WEIR_DAY ? 1 : l->calendar == WEIR_WEEK ? 7 : 0;
    end.tm_mon += l->calendar == WEIR_MONTH;
    begin.tm_isdst = end.tm_isdst = -1;
    return ((weir_time)mktime(&end) - (weir_time)mktime(&begin)) * WEIR_SECOND;
}

/* One limit that applies. */
struct item {
    struct rule *rule;
    int index;
    struct cell *cell;
    struct weir_ask ask;
};

/* All or nothing: looked at one by one, then taken one by one. */
static bool plain_take_all(const struct item *items, int n, struct weir_decision *all)
{
    *all = (struct weir_decision){ .allowed = true };
    struct weir_decision d[64];
    for (int i = 0; i < n; i++) {
        weir_step_peek(items[i].cell->limiter->plan, items[i].cell->state, &items[i].ask, &d[i]);
        bool never = d[i].reason == WEIR_TOO_BIG && all->reason == WEIR_LIMITED;
        bool named =
            i == 0 || never || (all->allowed && (!d[i].allowed || d[i].remaining < all->remaining));
        struct weir_decision before = *all;
        if (named) {
            *all = d[i];
            all->item = (uint16_t)i;
        }
        all->wait = d[i].wait > before.wait ? d[i].wait : before.wait;
        all->retry = d[i].retry > before.retry ? d[i].retry : before.retry;
    }
    if (!all->allowed)
        all->wait = 0;
    for (int i = 0; i < n; i++) {
        struct weir_ask ask = items[i].ask;
        struct weir_decision unused;
        if ((!all->allowed && d[i].allowed) || (all->allowed && n > 1 && ask.cost == 0))
            continue; /* a look among several is written nowhere */
        if (!all->allowed && n > 1)
            ask.cost = 0, ask.wait_max = 0; /* only a clock that stepped back is noted */
        weir_step(items[i].cell->limiter->plan, items[i].cell->state, &ask, &unused);
        items[i].cell->charged |= all->allowed && ask.cost > 0;
    }
    return all->allowed;
}

static int plain_level(const struct weir_decision *d)
{
    __int128 left = d->remaining;

    return !d->allowed ? 3 : left * 8 < d->limit ? 2 : left * 2 < d->limit ? 1 : 0;
}

static void plain_refusal(struct rule *rule, const struct request *q, struct weir_ruling *out)
{
    struct weir_ask one = { .cost = 1, .now = q->ask.now };
    struct weir_decision d;
    struct key key;

    rule->tally.refused++;
    if (!rule->bans || q->ask.cost <= 0)
        return;
    plain_key(rule, q, &key);
    struct cell *c = plain_cell(rule->counts, key.text);
    c->charged = true;
    if (weir_step(rule->counts->plan, c->state, &one, &d) && d.remaining > 0)
        return;
    one.cost = INT64_MAX;
    weir_step_give(rule->counts->plan, c->state, &one);
    struct ban *b = plain_ban(rule, &key, q);
    plain_strike(rule, b, q->ask.now);
    out->banned_until = b->until;
    if (b->until - q->ask.now > out->decision.retry)
        out->decision.retry = b->until - q->ask.now; /* until then the same ask does not pass */
}

static bool plain_by_list(const struct set *set, const struct request *q, struct weir_ruling *out)
{
    for (int deny = 1; deny >= 0; deny--)
        for (int a = 0; a < ATTRIBUTES; a++)
            if (q->seen[a].len > 0 && plain_on_list(set, deny ? "deny" : "allow", a, &q->seen[a])) {
                out->list = deny ? "deny" : "allow";
                if (deny && out->mode == WEIR_SHADOW)
                    return false; /* it would have been refused */
                if (deny) {
                    out->decision =
                        (struct weir_decision){ .reason = WEIR_DENIED, .retry = WEIR_NEVER };
                    out->level = 3;
                }
                return true;
            }
    return false;
}

static weir_time plain_banned(const struct rule *rule, const struct key *key,
                              const struct request *q)
{
    struct ban *b = plain_ban(rule, key, q);

    plain_follow(b, q->ask.now);
    return b->until > q->ask.now ? b->until : 0;
}

static void plain_refuse_banned(struct rule *rule, weir_time until, weir_time now,
                                struct weir_ruling *out)
{
    rule->tally.refused++;
    rule->tally.banned++;
    out->rule = rule->name;
    out->banned_until = until;
    out->decision =
        (struct weir_decision){ .reason = WEIR_BANNED, .retry = until - now, .reset = until - now };
    out->level = 3;
}

/* It would have refused. */
static void plain_shadow(struct rule *rule, struct weir_ruling *out)
{
    rule->tally.shadow_refused++;
    out->shadow = out->shadow ? out->shadow : rule->name;
}

/* The limits that are asked: of rules that enforce, then of those in shadow. */
struct applying {
    struct rule *over; /* the first that enforces and had no room */
    int found, rules, enforcing, items, enforced;
    bool full; /* the first that finds no room ends it; of those behind it only bans count */
    struct rule *matching[RULES_MAX], *rule[WEIR_ALL_MAX];
    struct item item[WEIR_ALL_MAX];
};

/* False: the key is banned. */
static bool plain_apply(struct rule *rule, enum weir_mode mode, const struct request *q,
                        struct applying *a, struct weir_ruling *out)
{
    struct key key;

    if (!plain_key(rule, q, &key))
        return true;
    weir_time until = plain_banned(rule, &key, q);
    if (until > 0 && mode == WEIR_ENFORCE)
        plain_refuse_banned(rule, until, q->ask.now, out);
    else if (until > 0)
        plain_shadow(rule, out);
    if (until > 0)
        return false;
    if (a->items + rule->limits > WEIR_ALL_MAX) {
        a->over = a->full || mode != WEIR_ENFORCE ? a->over : rule;
        a->full = true;
    }
    if (a->full)
        return true;
    for (int k = 0; k < rule->limits; k++) {
        struct weir_ask ask = { .cost = plain_cost(rule, q),
                                .wait_max = q->ask.wait_max,
                                .now = q->ask.now };
        a->item[a->items++] = (struct item){ rule, k, plain_cell(rule->limiter[k], key.id), ask };
    }
    a->rule[a->rules++] = rule;
    return true;
}

/* All of one mode.  False: refused, because a key is banned. */
static bool plain_apply_all(const struct set *set, enum weir_mode mode, const struct request *q,
                            struct applying *a, struct weir_ruling *out)
{
    a->full = false;
    for (int i = 0; i < a->found; i++)
        if (rule_mode(set, a->matching[i]) == mode &&
            !plain_apply(a->matching[i], mode, q, a, out) && mode == WEIR_ENFORCE)
            return false;
    out->cut |= a->full;
    return true;
}

static bool plain_gather(struct set *set, const struct request *q, struct applying *a,
                         struct weir_ruling *out)
{
    a->found = a->rules = a->items = 0;
    a->over = NULL;
    for (int i = 0; i < set->n; i++)
        if (plain_matches(set, &set->rules[i], q))
            a->matching[a->found++] = &set->rules[i];
    if (!plain_apply_all(set, WEIR_ENFORCE, q, a, out))
        return false;
    a->enforcing = a->rules;
    a->enforced = a->items;
    plain_apply_all(set, WEIR_SHADOW, q, a, out);
    out->applied = (uint16_t)a->rules;
    return true;
}

static void plain_shadows(const struct applying *a, struct weir_ruling *out)
{
    for (int i = a->enforcing, at = a->enforced; i < a->rules; at += a->rule[i++]->limits) {
        struct weir_decision d;
        if (plain_take_all(a->item + at, a->rule[i]->limits, &d))
            a->rule[i]->tally.allowed++;
        else
            plain_shadow(a->rule[i], out);
    }
}

/* False: refused. */
static bool plain_enforced(const struct applying *a, const struct request *q,
                           struct weir_ruling *out)
{
    if (a->over != NULL) { /* no limit is skipped */
        a->over->tally.refused++;
        out->rule = a->over->name;
        out->decision = (struct weir_decision){ .reason = WEIR_TOO_MANY, .retry = WEIR_NEVER };
        out->level = 3;
        out->shadow = NULL;
        return false;
    }
    if (a->enforced == 0)
        return true;
    plain_take_all(a->item, a->enforced, &out->decision);
    const struct item *named = &a->item[out->decision.item];
    out->rule = named->rule->name;
    out->limit_index = (uint16_t)named->index;
    out->count = named->rule->limit[named->index].count;
    out->window = plain_window(&named->rule->limit[named->index], q->ask.now);
    out->level = (uint8_t)plain_level(&out->decision);
    if (!out->decision.allowed) {
        out->shadow = NULL;
        plain_refusal(named->rule, q, out);
    }
    return out->decision.allowed;
}

/* The request as the rules see it. */
static void plain_look(struct request *q)
{
    memcpy(q->seen, q->given, sizeof(q->seen));
    plain_path(&q->seen[URI]);
    q->ask.now = q->ask.now < 0 ? 0 : q->ask.now;
}

/* The request's key is as good as fresh to the rules that match, or to the one; returns how
 * many. */
static int plain_reset(struct set *set, const struct request *given, const struct rule *only)
{
    static struct request q;
    static struct key key;
    int n = 0;

    q = *given;
    plain_look(&q);
    for (int i = 0; i < set->n; i++) {
        struct rule *r = &set->rules[i];
        if ((only != NULL && r != only) || !plain_matches(set, r, &q) || !plain_key(r, &q, &key))
            continue;
        for (int k = 0; k < r->limits; k++)
            memset(plain_cell(r->limiter[k], key.id)->state, 0,
                   weir_plan_state_size(r->limiter[k]->plan));
        if (r->bans)
            memset(plain_cell(r->counts, key.text)->state, 0,
                   weir_plan_state_size(r->counts->plan));
        struct ban *b = plain_ban(r, &key, &q);
        b->since = b->until = b->forget_at = b->strikes = 0;
        n++;
    }
    return n;
}

/* The text of the key that was refused; "" if none was. */
static void plain_told(const struct set *set, const struct request *given,
                       const struct weir_ruling *ruling, struct key *key)
{
    static struct request q;
    int reason = ruling->decision.reason;

    key->text[0] = '\0';
    if (reason != WEIR_LIMITED && reason != WEIR_TOO_BIG && reason != WEIR_BANNED)
        return;
    q = *given;
    plain_look(&q);
    for (int i = 0; i < set->n; i++)
        if (strcmp(set->rules[i].name, ruling->rule) == 0)
            plain_key(&set->rules[i], &q, key);
}

static void plain_total(struct weir_totals *t, const struct weir_ruling *r)
{
    bool deny = r->list != NULL && strcmp(r->list, "deny") == 0,
         shadow = r->decision.allowed && (deny || r->shadow != NULL);

    t->checked++;
    t->allowed += r->decision.allowed;
    t->refused += !r->decision.allowed;
    t->denied += !r->decision.allowed && deny;
    t->allow_listed += r->list != NULL && !deny;
    t->shadow_refused += shadow;
    t->unmatched += r->decision.allowed && r->list == NULL && r->applied == 0 && !shadow;
}

static void plain_check(struct set *set, const struct request *given, struct weir_ruling *out)
{
    static struct applying a;
    static struct request q;

    q = *given;
    plain_look(&q);
    *out = (struct weir_ruling){ .decision = { .allowed = true }, .mode = (uint8_t)all_mode(set) };
    if (out->mode == WEIR_OFF || plain_by_list(set, &q, out) || !plain_gather(set, &q, &a, out) ||
        !plain_enforced(&a, &q, out))
        return;
    plain_shadows(&a, out);
    for (int i = 0; i < a.enforcing; i++)
        a.rule[i]->tally.allowed++;
}

#endif
