/* purses-and-accounts.c -- the world of a node: purses are in the table, accounts in Redis.
 *
 * An account is the key weir:{FLEET/RULE:KEY}:LIMIT (name_account in
 * lib/engine/rules-across-fleet.c), its demand and the ids of draws beside it, in one slot.
 * Answers are put aside until the turn: a node may not be told of one while it sends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/agent/agent.h"

#define CALL_MAX    (500 * WEIR_MILLISECOND)
#define ID_KEEP     3000                 /* ms: a draw is not repeated later than that */
#define CHARGE_WAIT (3600 * WEIR_SECOND) /* a meter may be charged beyond its burst */
#define TRIES       8

/* ------------------------------------------------------------------ purses ---- */

static int64_t have(void *world, const struct weir__fleet_key *k, weir_time then)
{
    struct weir_fleet *f = world;
    struct weir_decision d;

    f->host->peek(weir__agent_limit_of(k)->purse,
                  &(struct weir_ask){ .key = weir__agent_own(k), .now = then }, &d);
    return d.remaining;
}

static void fill(void *world, const struct weir__fleet_key *k, int64_t units, weir_time drawn,
                 weir_time now)
{
    struct weir_fleet *f = world;

    f->host->fill(weir__agent_limit_of(k)->purse, weir__agent_own(k), units, drawn, now);
}

static void close_purse(void *world, const struct weir__fleet_key *k, weir_time until,
                        weir_time told, weir_time now)
{
    struct weir_fleet *f = world;

    f->host->close(weir__agent_limit_of(k)->purse, weir__agent_own(k), until, told, now);
}

/* Others spend meanwhile. */
static int64_t take_out(void *world, const struct weir__fleet_key *k, int64_t most, weir_time now)
{
    struct weir_fleet *f = world;
    struct weir_ask ask = { .key = weir__agent_own(k), .now = now };
    struct weir_decision d;

    for (int i = 0; i < TRIES; i++) {
        int64_t units = have(world, k, now);
        ask.cost = units < most ? units : most;
        if (ask.cost <= 0)
            return 0;
        if (f->host->take(weir__agent_limit_of(k)->purse, &ask, &d))
            return ask.cost;
    }
    return 0;
}

/* ---------------------------------------------------------------- accounts ---- */

static char *put(char *to, const void *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return to + len;
}

static int slot_of(const struct weir__agent_limit *l, struct weir_key text)
{
    char tag[sizeof(l->head) + WEIR__FLEET_KEY_MAX + sizeof(l->tail)], *to = tag;

    if (text.len > WEIR__FLEET_KEY_MAX)
        return 0;
    to = put(put(put(to, l->head, l->head_len), text.bytes, text.len), l->tail, l->tail_len);
    return weir__redis_slot(tag, (size_t)(to - tag));
}

/* The node of Redis that has the account: draws to each are bounded, and its silence is its own. */
static uint32_t shard_of(struct weir_fleet *f, int slot)
{
    unsigned shard = weir__redis_client_shard(f->client, slot);

    f->shards |= (uint64_t)1 << shard % WEIR__FLEET_SHARDS_MAX;
    return shard % WEIR__FLEET_SHARDS_MAX;
}

/* One that is new may have passed by its share before it was forgotten, or in another process: its
 * share is looked at before its first draw. */
struct weir__fleet_key *weir__agent_key(struct weir_fleet *f, struct weir__agent_limit *l,
                                        struct weir_key text, weir_time now)
{
    struct weir__fleet_key *k = weir__fleet_key_find(f->fleet, &l->fleet, text);

    if (k)
        return k;
    int slot = slot_of(l, text);
    k = weir__fleet_key(f->fleet, &l->fleet, text, shard_of(f, slot), now);
    if (k) {
        k->own.slot = slot;
        k->alone = true;
    }
    return k;
}

static struct weir__agent_call *new_call(struct weir_fleet *f)
{
    struct weir__agent_call *call = f->spare_calls;

    if (call)
        f->spare_calls = call->next;
    else
        call = calloc(1, sizeof(*call));
    return call;
}

/* Told as long as draws are refused: while some accounts are well and one is not, without a break.
 */
#define REFUSAL_LASTS (5 * WEIR_SECOND)

void weir__refusal_tell(struct weir_fleet *f)
{
    struct weir_fleet_info *info = &f->info;
    bool told = info->draws_refused;

    info->draws_refused = f->refusal.why[0] && info->connected && (told || !info->why[0]);
    if (info->draws_refused)
        memcpy(info->why, f->refusal.why, sizeof(info->why));
    else if (told && info->connected)
        info->why[0] = '\0';
}

static void note_refusal(struct weir_fleet *f, const char *why)
{
    static const char from[] = "Redis: ";

    if (strncmp(why, from, sizeof(from) - 1) == 0)
        why += sizeof(from) - 1;
    f->refusal.at = weir__agent_time(f);
    snprintf(f->refusal.why, sizeof(f->refusal.why), "draws are refused: %s", why);
}

static void end_refusal(struct weir_fleet *f, weir_time now)
{
    if (now - f->refusal.at >= REFUSAL_LASTS)
        f->refusal.why[0] = '\0';
}

static void finished(struct weir__carry *carry, enum weir__redis_outcome outcome, const char *why)
{
    struct weir__agent_call *call = carry->context;
    struct weir_fleet *f = call->fleet;

    if (carry->denied && call->carry.call.verb == WEIR__ACCOUNT_DRAW)
        note_refusal(f, why);
    call->outcome = outcome;
    call->next = NULL;
    *f->answered_last = call;
    f->answered_last = &call->next;
}

static struct weir_key name(struct weir__agent_call *call, int which,
                            const struct weir__fleet_key *k, const char *end, size_t end_len)
{
    const struct weir__agent_limit *l = call->limit;
    char *from = call->names[which], *to = from;

    to = put(put(put(to, l->head, l->head_len), k->bytes, k->key.len), l->tail, l->tail_len);
    to = put(to, end, end_len);
    return (struct weir_key){ from, (size_t)(to - from) };
}

static struct weir_key name_id(struct weir__agent_call *call, const struct weir__fleet_key *k)
{
    char end[1 + 16] = ":";

    for (unsigned i = 0; i < 16; i++)
        end[1 + i] = "0123456789abcdef"[k->id >> (60 - 4 * i) & 15];
    return name(call, 2, k, end, sizeof(end));
}

static void fill_call(struct weir__agent_call *call, const struct weir__fleet_key *k,
                      enum weir__account_verb verb, const struct weir__repay *units)
{
    bool meter = weir__is_meter(&call->limit->plan);
    const struct weir__buffer words = call->carry.call.words, command = call->carry.call.command;

    call->item =
        (struct weir__account_item){ .key = name(call, 0, k, "", 0), .plan = &call->limit->plan };
    call->item.ask = (struct weir_ask){ .cost = units ? units->units : k->draw.need };
    if (verb == WEIR__ACCOUNT_TAKE && meter)
        call->item.ask.wait_max = CHARGE_WAIT;
    call->carry.call = (struct weir__account_call){ .verb = verb,
                                                    .items = &call->item,
                                                    .n = 1,
                                                    .terms = &call->limit->fleet.terms,
                                                    .near = weir__clock_real(),
                                                    .words = words, /* memory of the call before */
                                                    .command = command };
    call->carry.done = finished;
    call->carry.context = call;
    if (verb != WEIR__ACCOUNT_TAKE)
        call->carry.call.demand = name(call, 1, k, ":d", 2);
    if (verb == WEIR__ACCOUNT_REPAY)
        call->carry.call.drawn_at = units->drawn_at;
    if (verb != WEIR__ACCOUNT_DRAW)
        return;
    call->carry.call.id = name_id(call, k);
    call->carry.call.keep = ID_KEEP;
    call->carry.call.draw = k->draw;
}

/* `units` of a charge or a payment, and when they were drawn. */
static void send_call(struct weir_fleet *f, const struct weir__fleet_key *k,
                      enum weir__account_verb verb, const struct weir__repay *units)
{
    struct weir__agent_call *call = new_call(f);
    weir_time now = weir__clock_monotonic();

    if (!call)
        return; /* as if it were lost: the node has patience */
    call->fleet = f;
    call->limit = weir__agent_limit_of(k);
    call->limit->uses++;
    call->key = (struct weir__fleet_key *)k;
    call->id = k->id;
    call->owed = units ? units->units : 0;
    call->tries = 0;
    fill_call(call, k, verb, units);
    call->carry.deadline = now + CALL_MAX;
    f->calls++;
    f->stirred = true;
    weir__carry_begin_in(&call->carry, f->client, k->own.slot, now);
}

static void draw(void *world, const struct weir__fleet_key *k)
{
    send_call(world, k, WEIR__ACCOUNT_DRAW, NULL);
}

static void repay(void *world, const struct weir__fleet_key *k, const struct weir__repay *back)
{
    send_call(world, k, WEIR__ACCOUNT_REPAY, back);
}

static void charge(void *world, const struct weir__fleet_key *k, weir_time now)
{
    struct weir__repay units = { .units =
                                     weir__share_end(world, (struct weir__fleet_key *)k, now) };
    int64_t most = weir__agent_limit_of(k)->plan.most;

    units.units = units.units < most ? units.units : most;
    if (units.units > 0)
        send_call(world, k, WEIR__ACCOUNT_TAKE, &units);
}

/* ----------------------------------------------------------------- answers ---- */

/* Units that come after the end.  The draw may have been sent twice, and is answered twice then. */
static void repay_late(struct weir_fleet *f, const struct weir__agent_call *call)
{
    struct weir__repay units = { call->carry.call.drawn.units, call->carry.call.drawn.at };

    if (call->key->id != call->id || call->key->limit != &call->limit->fleet || units.units < 1)
        return;
    repay(f, call->key, &units);
    call->key->id = 0;
}

static void read_draw(struct weir_fleet *f, const struct weir__agent_call *call, weir_time now)
{
    const struct weir_decision *d = &call->item.decision;

    if (call->outcome == WEIR__REDIS_ANSWERED)
        end_refusal(f, now);
    struct weir__fleet_answer answer = { call->carry.call.drawn, d->remaining, d->retry, d->reset };

    if (call->outcome == WEIR__REDIS_ANSWERED && f->leaving)
        repay_late(f, call);
    else if (call->outcome == WEIR__REDIS_ANSWERED)
        weir__fleet_drawn(f->fleet, call->key, call->id, &answer, now);
    else if (call->carry.denied)
        weir__fleet_denied(f->fleet, call->key, call->id, now);
    else
        weir__fleet_lost(f->fleet, call->key, call->id, call->outcome == WEIR__REDIS_UNDONE, now);
}

/* A window has less than it is charged with: then all of that.  Others draw from it meanwhile, this
 * node too: so first half of it, then the rest.  True: it goes on. */
static bool charge_again(struct weir_fleet *f, struct weir__agent_call *call)
{
    const struct weir_decision *d = &call->item.decision;
    int64_t left = d->allowed ? d->remaining : (d->remaining + 1) / 2;

    if (call->outcome != WEIR__REDIS_ANSWERED)
        return false;
    call->owed -= d->allowed ? call->item.ask.cost : 0;
    if (call->owed < 1 || left < 1 || ++call->tries == TRIES)
        return false;
    call->item.ask.cost = weir__int_least(call->owed, left);
    f->stirred = true;
    weir__carry_begin(&call->carry, f->client, weir__clock_monotonic());
    return true;
}

static void end_call(struct weir_fleet *f, struct weir__agent_call *call)
{
    if (call->carry.call.words.failed || call->carry.call.command.failed)
        weir__carry_free(&call->carry);
    weir__limit_leave(call->limit);
    f->calls--;
    call->next = f->spare_calls;
    f->spare_calls = call;
}

void weir__draws_turn(struct weir_fleet *f, weir_time now)
{
    struct weir__agent_call *next, *call = f->answered;

    f->answered = NULL;
    f->answered_last = &f->answered;
    for (; call; call = next) {
        enum weir__account_verb verb = call->carry.call.verb;
        next = call->next;
        if (verb == WEIR__ACCOUNT_DRAW)
            read_draw(f, call, now);
        if (verb != WEIR__ACCOUNT_TAKE || !charge_again(f, call))
            end_call(f, call);
    }
}

void weir__draws_free(struct weir_fleet *f)
{
    struct weir__agent_call *next;

    for (struct weir__agent_call *call = f->answered; call; call = next) {
        next = call->next;
        end_call(f, call);
    }
    for (struct weir__agent_call *call = f->spare_calls; call; call = next) {
        next = call->next;
        weir__carry_free(&call->carry);
        free(call);
    }
}

/* ------------------------------------------------------------------- world ---- */

/* Decides the ask again.  Its caller may give up at any moment, but not while this goes on, nor
 * after it was granted. */
static int take(void *world, struct weir__fleet_wait *wait, weir_time now)
{
    struct weir_fleet *f = world;
    struct weir__agent_ask *a =
        (struct weir__agent_ask *)((char *)wait - offsetof(struct weir__agent_ask, wait));

    if (!weir__ask_begin(a))
        return WEIR__FLEET_NOT_OURS;
    a->request.ask.now = now;
    if (weir__agent_check(f, a, NULL))
        return WEIR__FLEET_ALL_TAKEN;
    if (!weir__ask_go_on(a) || a->ruling.decision.reason != WEIR_DRY)
        return WEIR__FLEET_NOT_OURS;
    for (size_t i = 0; i < wait->n; i++)
        if (a->dues[i].rule == a->ruling.rule && a->dues[i].index == a->ruling.limit_index)
            return (int)i;
    a->alone = true; /* the rules were swapped, and another limit is dry */
    return WEIR__FLEET_NOT_OURS;
}

static void done(void *world, struct weir__fleet_wait *wait)
{
    struct weir_fleet *f = world;
    struct weir__agent_ask *a =
        (struct weir__agent_ask *)((char *)wait - offsetof(struct weir__agent_ask, wait));

    a->alone = a->alone || wait->outcome == WEIR__FLEET_ALONE;
    weir__ask_over(f, a);
}

const struct weir__fleet_world weir__agent_world = {
    .have = have,
    .fill = fill,
    .close = close_purse,
    .take_out = take_out,
    .take = take,
    .draw = draw,
    .charge = charge,
    .repay = repay,
    .done = done,
};
