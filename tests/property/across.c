/* across.c SEED ROUNDS -- rules across the fleet beside rules of this host, for random rules, asks,
 * and an agent that fills and closes purses, goes away and comes back.
 *
 * The model has a state for each limit and key, and asks them one by one by weir_step.
 *
 *     the ruling and its reason are those of the model
 *     a refusal and a dry purse change nothing: no state, and a dry one no count either
 *     what passes is taken from every limit that was asked, and from no other
 *
 * Prints the seed of the round that breaks one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/purse.h"
#include "engine/engine.h"
#include "engine/fleet.h"
#include "table/purses.h"
#include "random-rules.h"

enum { RULES = 6, LIMITS = 2, KEYS = 3, STEPS = 400, PARTS = 5, STATE = 1024 };

struct state {
    _Alignas(16) unsigned char bytes[STATE];
};

struct limit {
    struct weir_plan plan, purse; /* the share's, or the whole limit's; the purse's */
    struct weir_limit written;
    struct state used[KEYS], drawn[KEYS];
};

struct rule {
    char name[24];
    bool fleet, keyed;
    enum weir__alone when_alone;
    enum weir_mode mode;
    size_t n;
    struct limit limits[LIMITS];
    struct weir__tally tally;
};

static struct rule rules[RULES];
static size_t n_rules;
static struct weir *weir;
static weir_time now, until;
static uint32_t part;

/* ----------------------------------------------------------------- rules ---- */

static void invent_limit(struct limit *l, char *text, size_t size)
{
    static const char *const algorithms[] = { "gcra", "token-bucket", "fixed-window",
                                              "sliding-window", "sliding-log" };

    snprintf(text, size, "%s %d/%ds", algorithms[int_between(0, 4)], int_between(1, 20),
             int_between(1, 20));
    if (weir_limit_parse(&l->written, text, NULL) != WEIR_OK ||
        weir__plan_make(&l->plan, &l->written, NULL) != WEIR_OK)
        stop("no limit: %s", text);
    struct weir_limit purse = weir__purse_limit(&l->plan);
    if (weir__plan_make(&l->purse, &purse, NULL) != WEIR_OK || l->plan.state_size > STATE)
        stop("no purse: %s", text);
}

static void invent_rule(struct rule *r, size_t i)
{
    static const char *const alone[] = { "share", "open", "closed" };

    *r = (struct rule){ .fleet = one_in(2), .keyed = one_in(2), .mode = WEIR_ENFORCE };
    snprintf(r->name, sizeof(r->name), "r%zu", i);
    r->mode = one_in(5) ? WEIR_SHADOW : WEIR_ENFORCE;
    r->when_alone = (enum weir__alone)int_between(0, 2);
    r->n = (size_t)int_between(1, LIMITS);
    add("- { name: %s, key: \"%s\", mode: %s, ", r->name, r->keyed ? "{account}" : "",
        weir_mode_name(r->mode));
    if (r->fleet)
        add("across: fleet, when_alone: %s, ", alone[r->when_alone]);
    add("limit: [");
    for (size_t k = 0; k < r->n; k++) {
        char text[64];
        invent_limit(&r->limits[k], text, sizeof(text));
        add("%s%s", k ? ", " : "", text);
    }
    add("] }\n");
}

static void make_engine(void)
{
    struct weir_error error;
    struct weir_rules *set;

    strcpy(yaml, "version: 1\nrules:\n");
    n_rules = (size_t)int_between(1, RULES);
    for (size_t i = 0; i < n_rules; i++)
        invent_rule(&rules[i], i);
    if (weir_create(&weir, &(struct weir_options){ .keys = 1000 }, &error) != WEIR_OK ||
        weir_rules_parse(&set, yaml, strlen(yaml), NULL, &error) != WEIR_OK ||
        weir_use(weir, set, now, &error) != WEIR_OK)
        stop("%s", error.text);
}

/* ----------------------------------------------------------------- agent ---- */

static void change_part(void)
{
    part = (uint32_t)(one_in(3) ? between(0, 200000) : between(0, WEIR__FLEET_WHOLE));
    if (weir__fleet_part_set(weir, part, now, NULL) != WEIR_OK)
        stop("no part");
    for (struct rule *r = rules; r < rules + n_rules; r++)
        for (struct limit *l = r->limits; r->fleet && l < r->limits + r->n; l++) {
            struct weir_limit share;
            struct weir_plan plan;
            if (!weir__fleet_share_limit(&share, &l->written, part))
                continue;
            if (weir__plan_make(&plan, &share, NULL) != WEIR_OK)
                stop("no share");
            for (int key = 0; key < KEYS; key++) {
                struct state old = l->used[key];
                if (weir__limit_equal(&plan.limit, &l->plan.limit))
                    break;
                weir_step_change(&l->plan, &plan, old.bytes, l->used[key].bytes, now);
            }
            l->plan = plan;
        }
}

static void change_purse(struct rule *r, size_t k, int key)
{
    struct limit *l = &r->limits[k];
    struct weir__across_limit across;
    unsigned char name = (unsigned char)('a' + key);
    struct weir_key own = { &name, r->keyed ? 1 : 0 };
    int64_t at = 0, units = int_between(1, 6);
    weir_time when = now + between(1, 500) * WEIR_MILLISECOND;
    struct weir_decision d;

    while (weir__across_next(weir, &at, &across))
        if (strcmp(across.rule, r->name) == 0 && across.index == k)
            break;
    struct weir_limiter *purse = weir__limiter_use(weir_table_of(weir), across.purse);
    if (purse == NULL)
        stop("there is no purse %s", across.purse);
    if (one_in(4)) {
        weir__purse_close(purse, own, when, when, now);
        weir_step_peek(&l->purse, l->drawn[key].bytes, &(struct weir_ask){ .now = now }, &d);
        if (d.remaining == 0)
            l->purse.algo->give(&l->purse, l->drawn[key].bytes, -1,
                                when < now + l->purse.limit.period ? when
                                                                   : now + l->purse.limit.period);
    } else {
        weir__purse_fill(purse, own, units, now, now);
        l->purse.algo->give(&l->purse, l->drawn[key].bytes, units, now);
    }
    weir_limiter_release(purse);
}

static weir_time renew(weir_time to)
{
    weir__fleet_renew(weir_table_of(weir), to);
    return to == WEIR__FLEET_AWAY || to > until ? to : until;
}

static void act(int *parts)
{
    struct rule *r = &rules[int_between(0, (int)n_rules - 1)];

    if (one_in(20))
        until = renew(one_in(10) ? WEIR__FLEET_AWAY : now + between(1, 5000) * WEIR_MILLISECOND);
    if (until != 0 && *parts < PARTS && one_in(40)) {
        (*parts)++;
        change_part();
    }
    if (r->fleet)
        change_purse(r, (size_t)int_between(0, (int)r->n - 1), r->keyed ? int_between(0, 2) : 0);
}

/* ----------------------------------------------------------------- model ---- */

enum how { PURSE, SHARE, FREE, NOTHING };

static enum how decides(const struct rule *r)
{
    if (!r->fleet || until == 0 || r->mode == WEIR_SHADOW)
        return SHARE;
    if (until > now)
        return PURSE;
    if (r->when_alone == WEIR__ALONE_OPEN)
        return FREE;
    bool none = part == 0;
    for (size_t k = 0; k < r->n; k++)
        none = none || (r->limits[k].plan.capacity == 0 &&
                        r->limits[k].written.count * part < WEIR__FLEET_WHOLE);
    return none || r->when_alone == WEIR__ALONE_CLOSED ? NOTHING : SHARE;
}

/* The first limit for which an ask is too big: only this host's part of it is too small. */
static bool big, big_alone;

static void note_big(const struct rule *r, const struct weir_limit *written, int64_t cost)
{
    if (big)
        return;
    big = true;
    big_alone = r->fleet && cost <= (written->burst > 0 ? written->burst : written->count);
}

/* Asks all limits of a rule; `take`: and takes.  The gravest refusal, or WEIR_GRANTED. */
static enum weir_reason ask_rule(struct rule *r, int key, int64_t cost, bool take)
{
    enum how how = decides(r);
    enum weir_reason reason = how == NOTHING ? WEIR_ALONE : WEIR_GRANTED;
    struct weir_ask ask = { .cost = cost, .now = now };

    for (size_t k = 0; how <= SHARE && k < r->n; k++) {
        struct limit *l = &r->limits[k];
        const struct weir_plan *plan = how == PURSE ? &l->purse : &l->plan;
        void *state =
            how == PURSE ? l->drawn[r->keyed ? key : 0].bytes : l->used[r->keyed ? key : 0].bytes;
        struct weir_decision d;
        if (take)
            weir_step(plan, state, &ask, &d);
        else
            weir_step_peek(plan, state, &ask, &d);
        if (!d.allowed && (reason == WEIR_GRANTED || reason == WEIR_DRY))
            reason = d.reason;
        if (!d.allowed && d.reason == WEIR_TOO_BIG) {
            reason = WEIR_TOO_BIG;
            note_big(r, &l->written, cost);
        }
    }
    return reason;
}

static enum weir_reason model(int key, int64_t cost)
{
    enum weir_reason all = WEIR_GRANTED;
    bool alone = false;

    big = big_alone = false;
    for (struct rule *r = rules; r < rules + n_rules; r++) {
        enum weir_reason own =
            r->mode == WEIR_ENFORCE ? ask_rule(r, key, cost, false) : WEIR_GRANTED;
        alone = alone || own == WEIR_ALONE;
        if (own != WEIR_GRANTED && (all == WEIR_GRANTED || all == WEIR_DRY))
            all = own;
        if (own == WEIR_TOO_BIG)
            all = own;
    }
    if (alone || (all == WEIR_TOO_BIG && big_alone))
        return WEIR_ALONE;
    for (struct rule *r = rules; all == WEIR_GRANTED && r < rules + n_rules; r++) {
        if (r->mode == WEIR_ENFORCE || ask_rule(r, key, cost, false) == WEIR_GRANTED) {
            ask_rule(r, key, cost, true);
            r->tally.allowed++;
        } else {
            r->tally.shadow_refused++;
        }
    }
    return all;
}

/* ------------------------------------------------------------------- law ---- */

static void compare_counts(enum weir_reason reason, const char *refuser)
{
    struct weir_rule_info info;
    int64_t at = 0;

    for (struct rule *r = rules; weir_rule_next(weir, &at, &info); r++) {
        if (reason != WEIR_GRANTED && reason != WEIR_DRY && strcmp(refuser, r->name) == 0)
            r->tally.refused++;
        if (info.allowed != r->tally.allowed || info.refused != r->tally.refused ||
            info.shadow_refused != r->tally.shadow_refused)
            stop("%s at %" PRId64 ": allowed %" PRId64 " of %" PRId64 ", refused %" PRId64
                 " of %" PRId64 ", in shadow %" PRId64 " of %" PRId64,
                 r->name, now, info.allowed, r->tally.allowed, info.refused, r->tally.refused,
                 info.shadow_refused, r->tally.shadow_refused);
    }
}

static void ask(void)
{
    int key = int_between(0, KEYS - 1);
    int64_t cost = one_in(4) ? between(0, 25) : 1;
    char account[2] = { (char)('a' + key), '\0' };
    struct weir_attr attr = { .name = "account", .value = account };
    struct weir_ask one = { .cost = cost, .now = now };
    struct weir_ruling ruling;
    enum weir_reason wanted = model(key, cost);

    weir_check(weir, &attr, 1, &one, &ruling);
    if (ruling.decision.reason != wanted)
        stop("%s of cost %" PRId64 " at %" PRId64 ": %s by %s, the model says %s", account, cost,
             now, weir_reason_name(ruling.decision.reason), ruling.rule ? ruling.rule : "nobody",
             weir_reason_name(wanted));
    compare_counts(wanted, ruling.rule);
}

static void play(void)
{
    int parts = 0;

    now = 1000 * WEIR_SECOND;
    until = 0;
    part = WEIR__FLEET_WHOLE;
    make_engine();
    (void)weir__fleet_part_set(weir, part, now, NULL);
    for (int i = 0; i < STEPS; i++) {
        now += one_in(2) ? 0 : between(1, 400) * WEIR_MILLISECOND;
        act(&parts);
        ask();
    }
    weir_destroy(weir);
}

int main(int argc, char **argv)
{
    printf("%" PRIu64 " rounds\n", play_rounds(argc, argv, 200, play));
    return 0;
}
