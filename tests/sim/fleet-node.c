/* fleet-node.c -- the nodes of a fleet on virtual time: purses, shares, asks. */
#include "algo/purse.h"
#include "sim/fleet-inside.h"

#define STAY (600 * MS) /* alone, after the first is back: three beats */

static uint64_t *purse_of(struct node *node, const struct weir__fleet_key *k)
{
    return node->purses[k->limit - sim.o.limits][k->bytes[0]];
}

static int64_t have(void *world, const struct weir__fleet_key *k, weir_time then)
{
    struct weir_decision d;

    weir_step_peek(&k->limit->purse, purse_of(world, k), &(struct weir_ask){ .now = then }, &d);
    return d.remaining;
}

static void fill(void *world, const struct weir__fleet_key *k, int64_t units, weir_time drawn,
                 weir_time now)
{
    if (drawn > now)
        broken("units live from the future");
    k->limit->purse.algo->give(&k->limit->purse, purse_of(world, k), units, drawn);
}

static void close_purse(void *world, const struct weir__fleet_key *k, weir_time until,
                        weir_time told, weir_time now)
{
    if (have(world, k, now) == 0)
        weir__purse_shut(&k->limit->purse, purse_of(world, k), until, told);
}

static int64_t take_out(void *world, const struct weir__fleet_key *k, int64_t most, weir_time now)
{
    int64_t there = have(world, k, now), units = there < most ? there : most;
    struct weir_decision d;

    if (units > 0)
        weir_step(&k->limit->purse, purse_of(world, k),
                  &(struct weir_ask){ .now = now, .cost = units }, &d);
    return units;
}

static void note_passed(int limit, int key, int64_t units, int node, weir_time at, int share)
{
    struct account *a = &sim.o.accounts[limit][key];

    if (a->n_passed == a->room) {
        a->room = a->room ? 2 * a->room : 1024;
        a->passed = realloc(a->passed, a->room * sizeof(*a->passed));
        if (a->passed == NULL)
            abort();
    }
    a->passed[a->n_passed++] = (struct passed){ at, units, node, share, node_now(node) };
}

static bool is_answered(const struct weir__fleet_key *k)
{
    return sim.answer.limit == k->limit - sim.o.limits && sim.answer.key == k->bytes[0];
}

/* Units of an ask that waited count at the moment of the draw. */
static int take(void *world, struct weir__fleet_wait *wait, weir_time now)
{
    struct waiting *waiting = (struct waiting *)wait;
    struct node *node = world;

    for (size_t i = 0; i < wait->n; i++)
        if (is_answered(wait->items[i].key))
            waiting->drawn_at[i] = sim.answer.at;
        else if (wait->items[i].kept.units == 0)
            waiting->drawn_at[i] = sim.now;
    for (size_t i = 0; i < wait->n; i++)
        if (have(world, wait->items[i].key, now) < wait->items[i].cost)
            return (int)i;
    for (size_t i = 0; i < wait->n; i++) {
        const struct weir__fleet_item *item = &wait->items[i];
        take_out(world, item->key, item->cost, now);
        note_passed((int)(item->key->limit - sim.o.limits), item->key->bytes[0], item->cost,
                    (int)(node - sim.nodes), waiting->drawn_at[i], 0);
    }
    return WEIR__FLEET_ALL_TAKEN;
}

static struct letter letter_to(const struct weir__fleet_key *k, const struct node *node)
{
    return (struct letter){ .node = (int)(node - sim.nodes),
                            .life = node->life,
                            .limit = (int)(k->limit - sim.o.limits),
                            .key = k->bytes[0],
                            .record = (struct weir__fleet_key *)k,
                            .id = k->id,
                            .draw = k->draw };
}

static void draw(void *world, const struct weir__fleet_key *k)
{
    struct letter l = letter_to(k, world);

    fleet_post(TO_REDIS, &l);
}

static void repay(void *world, const struct weir__fleet_key *k, const struct weir__repay *back)
{
    struct letter l = letter_to(k, world);

    l.repaid = *back;
    l.id = 0;
    fleet_post(TO_REDIS, &l);
}

/* ------------------------------------------------------------------- alone ---- */

static struct share *share_of(struct node *node, const struct weir__fleet_key *k)
{
    return &node->shares[k->limit - sim.o.limits][k->bytes[0]];
}

/* For the laws: shares of one account have numbers from 1 on. */
static int number_share(struct account *a, const struct weir_plan *plan)
{
    a->shares = realloc(a->shares, (size_t)(a->n_shares + 1) * sizeof(*plan));
    if (a->shares == NULL)
        abort();
    a->shares[a->n_shares++] = *plan;
    return a->n_shares;
}

static struct share *open_share(struct node *node, const struct weir__fleet_key *k, weir_time now)
{
    struct share *share = share_of(node, k);
    uint32_t part = sim.o.part[node - sim.nodes];
    struct weir_limit limit;

    if (share->open)
        return share;
    *share = (struct share){ .open = true };
    if (!weir__fleet_share_limit(&limit, &k->limit->plan->limit, part) ||
        weir__plan_make(&share->plan, &limit, NULL) != WEIR_OK ||
        share->plan.state_size > sizeof(share->state))
        abort();
    share->number =
        number_share(&sim.o.accounts[k->limit - sim.o.limits][k->bytes[0]], &share->plan);
    int64_t begun = weir__fleet_share_begin(&share->plan, part, weir__fleet_left(k, now));
    share->plan.algo->give(&share->plan, share->state, -begun, now);
    share->plan.algo->give(&share->plan, share->note, -begun, now);
    return share;
}

/* By its share: all or nothing. */
static bool take_alone(struct node *node, const struct weir__fleet_wait *wait)
{
    weir_time now = node_now((int)(node - sim.nodes));
    struct weir_decision d;

    for (size_t i = 0; i < wait->n; i++) {
        struct share *share = open_share(node, wait->items[i].key, now);
        if (!weir_step_peek(&share->plan, share->state,
                            &(struct weir_ask){ .cost = wait->items[i].cost, .now = now }, &d))
            return false;
    }
    for (size_t i = 0; i < wait->n; i++) {
        const struct weir__fleet_item *item = &wait->items[i];
        int limit = (int)(item->key->limit - sim.o.limits);
        struct share *share = share_of(node, item->key);
        weir_step(&share->plan, share->state, &(struct weir_ask){ .cost = item->cost, .now = now },
                  &d);
        note_passed(limit, item->key->bytes[0], item->cost, (int)(node - sim.nodes), sim.now,
                    share->number);
    }
    return true;
}

/* What passed by it and is still owed: as cluster/agent/shares.c has it. */
static int64_t owed_by(const struct share *share, weir_time now)
{
    int64_t owed = weir__fleet_share_owed(&share->plan, share->state, now),
            begun = weir__fleet_share_owed(&share->plan, share->note, now);

    return owed > begun ? owed - begun : 0;
}

static void charge(void *world, const struct weir__fleet_key *k, weir_time now)
{
    struct share *share = share_of(world, k);
    struct letter l = letter_to(k, world);

    l.id = 0;
    l.charged = share->open ? owed_by(share, now) : 0;
    share->open = false;
    if (l.charged > 0)
        fleet_post(TO_REDIS, &l);
}

static void note_refused(weir_time retry)
{
    sim.o.refused++;
    sim.o.told = retry > INT64_MAX - sim.now ? INT64_MAX : sim.now + retry;
}

static void done(void *world, struct weir__fleet_wait *wait)
{
    struct waiting *waiting = (struct waiting *)wait;
    struct node *node = world;

    if (!waiting->used)
        broken("an ask is answered once");
    waiting->used = false;
    if (wait->outcome == WEIR__FLEET_ALONE && sim.story->share && take_alone(node, wait))
        wait->outcome = WEIR__FLEET_TOOK;
    if (wait->outcome == WEIR__FLEET_TOOK) {
        sim.o.granted[node - sim.nodes]++;
        sim.o.granted_both += wait->n > 1;
    }
    if (wait->outcome == WEIR__FLEET_REFUSED)
        note_refused(wait->retry);
    sim.o.alone += wait->outcome == WEIR__FLEET_ALONE && is_counted();
}

static const struct weir__fleet_world ops = { have, fill,   close_purse, take_out, take,
                                              draw, charge, repay,       done };

void fleet_start_node(int n)
{
    struct node *node = &sim.nodes[n];

    memset(node->purses, 0, sizeof(node->purses));
    memset(node->shares, 0, sizeof(node->shares));
    node->life++;
    node->up = true;
    node->turn_at = INT64_MAX;
    node->stalled_until = 0;
    struct weir__fleet_options options = { .ops = &ops,
                                           .world = node,
                                           .keys = 8 + LIMITS_MAX * KEYS_MAX,
                                           .draws = 64,
                                           .seed = random64(&sim.dice) };
    if (weir__fleet_create(&node->fleet, &options, NULL) != WEIR_OK)
        abort();
}

void fleet_stop_node(int n, weir_time span, bool retire)
{
    struct node *node = &sim.nodes[n];

    if (!node->up)
        return;
    if (retire)
        weir__fleet_end(node->fleet, node_now(n));
    weir__fleet_destroy(node->fleet);
    node->fleet = NULL;
    node->up = false;
    for (size_t i = 0; i < WAITS; i++)
        if (sim.waits[i].node == n)
            sim.waits[i].used = false;
    add(sim.now + span, REBIRTH, n, node->life);
}

void fleet_turn(int n)
{
    struct node *node = &sim.nodes[n];

    if (!node->up)
        return;
    weir_time next = weir__fleet_turn(node->fleet, node_now(n));
    if (next == WEIR_NEVER)
        return;
    next = next - BEGIN - node->skew;
    next = next > sim.now ? next : sim.now + 1;
    if (next < node->turn_at) {
        node->turn_at = next;
        add(next, TURN, n, node->life);
    }
}

/* -------------------------------------------------------------------- asks ---- */

static struct waiting *new_wait(void)
{
    for (int i = 0; i < WAITS; i++) {
        struct waiting *waiting = &sim.waits[sim.free_wait];
        sim.free_wait = (sim.free_wait + 1) % WAITS;
        if (!waiting->used)
            return waiting;
    }
    return NULL;
}

static void begin_wait(struct waiting *waiting, const struct event *e)
{
    struct node *node = &sim.nodes[e->node];

    *waiting = (struct waiting){ .used = true, .node = e->node, .life = waiting->life + 1 };
    for (int l = 0; l < sim.story->n_limits; l++) {
        if (!(e->limits & 1 << l))
            continue;
        struct weir__fleet_item *item = &waiting->wait.items[waiting->wait.n++];
        item->key = weir__fleet_key(node->fleet, &sim.o.limits[l], (struct weir_key){ &e->key, 1 },
                                    e->key % SHARDS, node_now(e->node));
        item->cost = e->n;
    }
    add(sim.now + sim.story->patience, DEADLINE, (int)(waiting - sim.waits), waiting->life);
    weir__fleet_wait(node->fleet, &waiting->wait, node_now(e->node));
}

/* From the purses, without the fleet.  Returns the decision's reason. */
static int take_at_once(const struct event *e, weir_time *retry)
{
    struct node *node = &sim.nodes[e->node];
    struct weir_ask ask = { .cost = e->n, .now = node_now(e->node) };
    struct weir_decision d;

    for (int l = 0; l < sim.story->n_limits; l++)
        if (e->limits & 1 << l &&
            !weir_step_peek(&sim.o.limits[l].purse, node->purses[l][e->key], &ask, &d)) {
            *retry = d.retry;
            if (d.reason == WEIR_LIMITED)
                *retry += weir__purse_later(&sim.o.plans[l], &sim.o.plans[l].limit, e->n);
            return d.reason;
        }
    for (int l = 0; l < sim.story->n_limits; l++)
        if (e->limits & 1 << l) {
            weir_step(&sim.o.limits[l].purse, node->purses[l][e->key], &ask, &d);
            note_passed(l, e->key, e->n, e->node, sim.now, 0);
        }
    return WEIR_GRANTED;
}

void fleet_ask(const struct event *e)
{
    struct node *node = &sim.nodes[e->node];
    bool both = (e->limits & (e->limits - 1)) != 0;
    struct waiting *waiting;
    weir_time retry = 0;

    if (!node->up)
        return;
    sim.o.asked[e->node]++;
    sim.o.asked_both += both;
    int reason = take_at_once(e, &retry);
    if (reason == WEIR_GRANTED) {
        sim.o.granted[e->node]++;
        sim.o.granted_both += both;
    } else if (reason == WEIR_DRY && (waiting = new_wait()) != NULL) {
        begin_wait(waiting, e);
    } else {
        note_refused(retry);
        for (int l = 0; l < sim.story->n_limits; l++)
            if (e->limits & 1 << l)
                weir__fleet_refused(node->fleet,
                                    weir__fleet_key(node->fleet, &sim.o.limits[l],
                                                    (struct weir_key){ &e->key, 1 },
                                                    e->key % SHARDS, node_now(e->node)),
                                    e->n, e->n, node_now(e->node));
    }
    fleet_turn(e->node);
}

void fleet_read_answer(struct letter l)
{
    struct node *node = &sim.nodes[l.node];

    if (!node->up || node->life != l.life)
        return;
    sim.answer.limit = l.limit;
    sim.answer.key = l.key;
    sim.answer.at = l.at;
    weir__fleet_drawn(node->fleet, l.record, l.id,
                      &(struct weir__fleet_answer){ l.drawn, l.d.remaining, l.d.retry, l.d.reset },
                      node_now(l.node));
    sim.answer.limit = -1;
    if (sim.back_at > 0 && sim.now < sim.back_at + STAY) /* as members hear with their beats */
        weir__fleet_stay_alone(node->fleet, (uint32_t)(l.key % SHARDS),
                               node_now(l.node) + sim.back_at + STAY - sim.now, node_now(l.node));
    fleet_turn(l.node);
}

void fleet_give_up(int n, uint32_t life)
{
    struct waiting *waiting = &sim.waits[n];

    if (!waiting->used || waiting->life != life)
        return;
    weir__fleet_cancel(sim.nodes[waiting->node].fleet, &waiting->wait, node_now(waiting->node));
    waiting->used = false;
    sim.o.late += is_counted();
    fleet_turn(waiting->node);
}

/* A host that is alone keeps the last part that it was granted. */
void fleet_beat(int n)
{
    struct node *node = &sim.nodes[n];

    add(sim.now + WEIR__MEMBER_BEAT, BEAT, n, 0);
    if (!node->up || sim.now < sim.stopped_until || sim.now < node->cut_until)
        return;
    if (!parts_beat(&sim.parts, n, weir__fleet_asked(node->fleet), S + sim.now))
        broken("parts are at most 1");
    int64_t part = weir__member_part(&sim.parts.of[n].member, S + sim.now);
    if (part > 0)
        sim.o.part[n] = (uint32_t)part;
}
