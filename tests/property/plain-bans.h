/* plain-bans.h -- bans, and forgetting everything. */
#ifndef WEIR_TESTS_PROPERTY_PLAIN_BANS_H
#define WEIR_TESTS_PROPERTY_PLAIN_BANS_H

#include "plain-keys.h"
#include "plain-states.h"

/* Known by the rule's name and the key's text, so it stays whatever the rule becomes. */
struct ban {
    char rule[24];
    char *text, *template, *spelling; /* of the rule then; the address as the request had it, if it
                                         is all of the key */
    weir_time since, until, forget_at;
    int strikes, next; /* next in its bucket; -1: none */
    bool listed;
};

#define BANS_MAX 65536

static struct ban bans[BANS_MAX];
static int n_bans, ban_buckets[BUCKETS]; /* place + 1 */

static struct ban *plain_ban(const struct rule *rule, const struct key *key,
                             const struct request *q)
{
    const char *text = key->text;
    int *head = &ban_buckets[hash_text(hash_text(5381, rule->name), text) % BUCKETS];

    for (int i = *head - 1; i >= 0; i = bans[i].next)
        if (strcmp(bans[i].rule, rule->name) == 0 && strcmp(bans[i].text, text) == 0)
            return &bans[i];
    if (n_bans == BANS_MAX)
        abort();
    struct ban *b = &bans[n_bans++];
    bool is_all = rule->parts == 1 && is_address(rule->key[0].attribute) && !*rule->key[0].before &&
                  !*rule->after;
    *b =
        (struct ban){ .text = strdup(text), .template = strdup(rule->template), .next = *head - 1 };
    const struct value *given = &q->given[rule->key[0].attribute];
    if (is_all && *text != '?' && plain_address(given->text, given->len).bits != 0)
        b->spelling = strdup(given->text);
    memcpy(b->rule, rule->name, sizeof(b->rule));
    *head = n_bans;
    return b;
}

/* A ban of which the clock has stepped back before the beginning, by more than a second, begins
 * anew. */
static void plain_follow(struct ban *b, weir_time now)
{
    weir_time back = b->since - now;

    if (b->until <= now || back <= WEIR_SECOND)
        return;
    b->since -= back;
    b->until -= back;
    b->forget_at -= back;
}

static void plain_strike(const struct rule *rule, struct ban *b, weir_time now)
{
    weir_time length = rule->length;

    if (b->forget_at <= now)
        b->strikes = 0;
    for (int i = 0; i < b->strikes; i++)
        length = length * rule->factor < rule->longest ? length * rule->factor : rule->longest;
    b->strikes++;
    b->since = now;
    b->until = now + length;
    b->forget_at = b->until + rule->forget;
}

static void plain_forget_all(void)
{
    for (int i = 0; i < BUCKETS; i++)
        for (struct cell *c = cells[i], *next; c != NULL; c = next) {
            next = c->next;
            free(c->key);
            free(c->state);
            free(c);
        }
    memset(cells, 0, sizeof(cells));
    for (struct limiter *l = limiters, *next; l != NULL; l = next) {
        next = l->next;
        weir_plan_destroy(l->plan);
        free(l->owner);
        free(l);
    }
    limiters = NULL;
    for (; n_bans > 0; n_bans--) {
        free(bans[n_bans - 1].text);
        free(bans[n_bans - 1].template);
        free(bans[n_bans - 1].spelling);
    }
    memset(ban_buckets, 0, sizeof(ban_buckets));
}

#endif
