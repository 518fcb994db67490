/* check-refusal.c -- refusals: told, counted, and counted towards a ban.  Which of several rules is
 * named is chosen in table/combined-answer.h. */
#include <string.h>

#include "algo/purse.h"
#include "engine/inquiry.h"

/* Whether the text of the rule's key is exactly the value: nothing around it, no other spelling. */
static bool is_own_text(const struct weir__post *post, const struct weir__rule *rule,
                        const struct weir__value *v)
{
    if (!post->bare || v->len == 0 || v->len >= WEIR_KEY_TEXT)
        return false;
    if (rule->key_kind == WEIR__KEY_ADDRESS) /* IPv4 has one spelling */
        return v->address.bits == 32 && v->len <= sizeof("255.255.255.255") - 1 &&
               memchr(v->text, ':', v->len) == NULL;
    for (size_t i = 0; i < v->len; i++)
        if (v->text[i] < 0x20 || v->text[i] > 0x7e || v->text[i] == '%')
            return false;
    return true;
}

/* The text of the rule's key; if that is the value itself, it need not be printed. */
static struct weir_key shown_key(const struct weir__checker *c, const struct weir__inquiry *q,
                                 uint32_t rule, char text[WEIR_KEY_TEXT])
{
    const struct weir__rule *r = &c->active->rules->rules[rule];
    const struct weir__value *v = &q->facts.values[r->parts[0].attribute];

    if (is_own_text(&c->active->posts[rule], r, v))
        return (struct weir_key){ v->text, v->len };
    return (struct weir_key){ text, weir__rule_key_text(weir__text_secrets(c->weir, r), r,
                                                        &q->facts, text) };
}

static void tell_key(const struct weir__inquiry *q, struct weir_key key)
{
    memcpy(q->told, key.bytes, key.len);
    q->told[key.len] = '\0';
}

weir_time weir__inquiry_ban(const struct weir__checker *c, const struct weir__inquiry *q,
                            uint32_t rule)
{
    char text[WEIR_KEY_TEXT];
    uint64_t tag = weir__ban_tag_salted(c->weir->table, c->active->posts[rule].ban_salt,
                                        shown_key(c, q, rule, text));

    return c->peek ? weir__ban_peek(c->weir->table, tag, q->ask.now)
                   : weir__ban_until(c->weir->table, tag, q->ask.now);
}

void weir__note_shadow(const struct weir__checker *c, struct weir__inquiry *q, uint32_t rule)
{
    weir__count_one(c, &c->tally[rule].shadow_refused);
    if (q->ruling->shadow == NULL)
        q->ruling->shadow = c->active->posts[rule].name;
}

void weir__refuse_banned(const struct weir__checker *c, struct weir__inquiry *q, uint32_t rule,
                         weir_time until)
{
    char text[WEIR_KEY_TEXT];
    weir_time left = until - q->ask.now;

    weir__count_one(c, &c->tally[rule].banned);
    q->ruling->rule = c->active->posts[rule].name;
    q->ruling->banned_until = until;
    q->ruling->decision =
        (struct weir_decision){ .reason = WEIR_BANNED, .retry = left, .reset = left };
    q->ruling->level = 3;
    if (q->told != NULL)
        tell_key(q, shown_key(c, q, rule, text));
}

/* Counts a refusal.  The one that reaches the threshold bans the key, and the count starts
 * again. */
static void count_refusal(const struct weir__checker *c, struct weir__inquiry *q, uint32_t rule,
                          struct weir_key key)
{
    const struct weir__post *post = &c->active->posts[rule];
    struct weir_decision d;
    struct weir_ask one = { .key = key, .cost = 1, .now = q->ask.now };
    struct weir__item item = { .cost = 1 };

    weir__item_aim(&item, post->refusals, key);
    item.closed = c->active->rules->rules[rule].closed; /* nor does a count drive anybody out */
    if ((weir__all_take(&item, 1, &one, &d) && d.remaining > 0) || d.reason == WEIR_NO_ROOM)
        return;
    one.cost = INT64_MAX;
    weir_give(post->refusals, &one);
    weir_time until =
        weir__ban_strike(c->weir->table, weir__ban_tag_salted(c->weir->table, post->ban_salt, key),
                         post->name, key, &post->terms, q->ask.now);
    q->ruling->banned_until = until > q->ask.now ? until : 0;
    if (until - q->ask.now > q->ruling->decision.retry)
        q->ruling->decision.retry = until - q->ask.now;
}

/* For this host's part of the limit, not for the limit: with the fleet it may pass. */
static bool is_too_big_alone(const struct weir__checker *c, const struct weir__inquiry *q,
                             uint32_t i)
{
    const struct weir_decision *d = &q->ruling->decision;
    const struct weir__rule *rule = &c->active->rules->rules[i];

    if (!rule->fleet || d->reason != WEIR_TOO_BIG)
        return false;
    const struct weir_limit *limit = &rule->draft->limits[q->items[d->item].which];
    return q->items[d->item].cost <= (limit->burst > 0 ? limit->burst : limit->count);
}

/* By this host's part of a limit, while the fleet cannot be asked: with the whole limit the key
 * might have passed. */
static bool is_by_share(const struct weir__checker *c, const struct weir__inquiry *q, uint32_t rule)
{
    return c->active->rules->rules[rule].fleet && !q->ruling->fleet &&
           q->ruling->decision.reason != WEIR_TOO_BIG &&
           weir__fleet_part(c->weir->table) < WEIR__FLEET_WHOLE;
}

/* The account of one of the dry purses has said no, and when to come. */
static void blame_account(const struct weir__checker *c, const struct weir__inquiry *q,
                          struct weir_decision *d)
{
    const struct weir__alone_rules *alone = q->alone;

    for (size_t i = 0; d->reason == WEIR_DRY && alone->refused && i < q->n_enforced; i++) {
        const struct weir__item *item = &q->items[i];
        if (item->which == alone->refused_index &&
            strcmp(c->active->posts[item->whose].name, alone->refused) == 0)
            *d = (struct weir_decision){ .reason = WEIR_LIMITED,
                                         .item = (uint16_t)i,
                                         .limit = weir__limiter_era(item->limiter)->plan.most,
                                         .retry = alone->retry,
                                         .reset = alone->retry };
    }
}

/* A closed purse tells when one unit is there, an account when all of them are. */
void weir__tell_refusal(const struct weir__checker *c, const struct weir__inquiry *q,
                        struct weir_decision *d)
{
    const struct weir__item *item = &q->items[d->item];

    if (d->reason == WEIR_DRY && c->alone) {
        blame_account(c, q, d);
    } else if (d->reason == WEIR_LIMITED && weir__limiter_era(item->limiter)->plan.algo->fills) {
        const struct weir_limit *limit =
            &c->active->rules->rules[item->whose].draft->limits[item->which];
        struct weir_limiter *own = c->active->posts[item->whose].limiters[item->which];
        weir_time later = weir__purse_later(&weir__limiter_era(own)->plan, limit, item->cost);
        later = later > WEIR_NEVER - d->reset ? WEIR_NEVER : d->reset + later;
        d->retry = later > d->retry ? later : d->retry;
    }
}

void weir__note_refusal(const struct weir__checker *c, struct weir__inquiry *q, uint32_t rule)
{
    const struct weir__post *post = &c->active->posts[rule];
    char text[WEIR_KEY_TEXT];

    if (is_too_big_alone(c, q, rule)) {
        q->ruling->decision.reason = WEIR_ALONE;
        q->ruling->decision.retry = WEIR__ALONE_RETRY;
    }
    uint8_t reason = q->ruling->decision.reason;
    bool own = reason != WEIR_NO_ROOM && reason != WEIR_DRY && reason != WEIR_ALONE &&
               !is_by_share(c, q, rule), /* else not of the key's making */
        counts = own && post->refusals != NULL && q->ask.cost > 0 && !c->peek,
         tells = q->told != NULL && q->ask.cost >= 0;

    if (!weir__is_undecided(c, q))
        weir__count_one(c, &c->tally[rule].refused);
    if (!counts && !tells)
        return;
    struct weir_key key = shown_key(c, q, rule, text);
    if (tells)
        tell_key(q, key);
    if (counts)
        count_refusal(c, q, rule, key);
}

void weir__refuse_too_many(const struct weir__checker *c, struct weir__inquiry *q)
{
    weir__count_one(c, &c->tally[q->over - 1].refused);
    q->ruling->rule = c->active->posts[q->over - 1].name;
    q->ruling->decision = (struct weir_decision){ .reason = WEIR_TOO_MANY, .retry = WEIR_NEVER };
    q->ruling->level = 3;
    q->ruling->shadow = NULL;
}

/* Nobody has asked too much: it does not count towards a ban. */
void weir__refuse_alone(const struct weir__checker *c, struct weir__inquiry *q)
{
    uint32_t rule = q->closed - 1;
    const struct weir_limit *limit = &c->active->rules->rules[rule].draft->limits[0];
    char text[WEIR_KEY_TEXT];

    weir__count_one(c, &c->tally[rule].refused);
    q->ruling->rule = c->active->posts[rule].name;
    q->ruling->count = limit->count;
    q->ruling->window = limit->period;
    q->ruling->decision =
        (struct weir_decision){ .reason = WEIR_ALONE, .retry = WEIR__ALONE_RETRY };
    q->ruling->level = 3;
    q->ruling->shadow = NULL;
    if (q->told != NULL)
        tell_key(q, shown_key(c, q, rule, text));
}
