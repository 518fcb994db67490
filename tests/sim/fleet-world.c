/* fleet-world.c -- a fleet on virtual time. */
#include "sim/fleet-world.h"

#include <stdlib.h>
#include <string.h>

#include "fleet-agenda.h"
#include "sim/fleet-parts.h"

#define BEGIN (1000000 * WEIR_SECOND) /* of every clock, or about */

#define STAY (600 * MS) /* alone, after the first is back: three beats */

enum { WAITS = 32 * NODES_MAX, LETTERS = 128 * NODES_MAX, SHARDS = 2 };

/* ------------------------------------------------------------------- world ---- */

enum what { TURN, TO_REDIS, TO_NODE, DEADLINE, REBIRTH, BEAT };

struct letter {
    int node, limit, key;
    uint32_t life; /* of the node */
    struct weir__fleet_key *record;
    uint64_t id;
    struct weir__draw draw;
    struct weir__drawn drawn;
    struct weir_decision d;
    weir_time at; /* drawn at */
    struct weir__repay repaid;
    int64_t charged;
    int next; /* free one */
};

struct node {
    struct weir__fleet *fleet;
    uint32_t life;
    bool up;
    weir_time cut_until, skew, turn_at;
    uint64_t purses[LIMITS_MAX][KEYS_MAX][2];
    struct share {
        bool open;
        uint64_t state[2];
        int64_t passed; /* units */
        struct weir_plan plan;
    } shares[LIMITS_MAX][KEYS_MAX];
};

struct waiting {
    struct weir__fleet_wait wait;
    bool used;
    uint32_t life;
    int node;
    weir_time drawn_at[LIMITS_MAX]; /* units that are kept for it */
};

static struct {
    const struct story *story;
    uint64_t dice;
    weir_time now;
    struct agenda agenda;
    struct node nodes[NODES_MAX];
    struct waiting waits[WAITS];
    struct letter letters[LETTERS];
    int free_letter, free_wait;
    weir_time back_at; /* the first command after Redis was stopped */
    weir_time stopped_until, lossy_until, redis_ahead, busy_until[SHARDS];
    int64_t lossy;
    struct parts parts;
    struct { /* an answer is being read */
        int limit, key;
        weir_time at;
    } answer;
} w;

static struct outcome o;

static void add(weir_time at, enum what what, int n, uint32_t life)
{
    agenda_add(&w.agenda,
               (struct agenda_item){ .at = at, .kind = (int)what, .node = n, .number = life });
}

static int64_t dice(int64_t n)
{
    return (int64_t)(random64(&w.dice) % (uint64_t)n);
}

static void broken(const char *law)
{
    o.broken = o.broken ? o.broken : law;
}

static bool is_counted(void)
{
    return w.now >= w.story->counted_from;
}

static weir_time node_now(int node)
{
    return BEGIN + w.now + w.nodes[node].skew;
}

static weir_time redis_now(void)
{
    return (BEGIN + w.now + w.redis_ahead) / US * US;
}

/* ----------------------------------------------------------------- network ---- */

/* Draws have an id, and may come twice; what is paid back is sent once. */
static void post(enum what what, const struct letter *letter)
{
    const struct node *node = &w.nodes[letter->node];
    bool lossy = w.now < w.lossy_until;
    int copies = lossy && letter->id != 0 && dice(w.lossy) == 0 ? 2 : 1;

    if (w.now < node->cut_until || (lossy && dice(w.lossy) == 0))
        return;
    for (int i = 0; i < copies && w.free_letter >= 0; i++) {
        int n = w.free_letter;
        weir_time trip = w.story->trip;
        w.free_letter = w.letters[n].next;
        w.letters[n] = *letter;
        trip += trip / 4 > 0 ? dice(trip / 4) : 0;
        trip += lossy && dice(4) == 0 ? dice(20 * MS) : 0; /* overtaken */
        add(w.now + trip, what, n, letter->life);
    }
}

static struct letter read_letter(int n)
{
    struct letter letter = w.letters[n];

    w.letters[n].next = w.free_letter;
    w.free_letter = n;
    return letter;
}

/* ------------------------------------------------------------------- redis ---- */

static void draw_from(struct account *a, const struct weir_plan *plan, struct letter *l)
{
    for (size_t i = 0; i < sizeof(a->receipts) / sizeof(*a->receipts); i++)
        if (a->receipts[i].id == l->id) {
            weir_step_peek(plan, a->state, &(struct weir_ask){ .now = redis_now() }, &l->d);
            l->drawn = a->receipts[i].drawn;
            l->drawn.life = weir__drawn_life(plan, l->drawn.at, redis_now(), &l->d);
            l->at = a->receipts[i].at;
            return;
        }
    l->drawn = weir__draw_units(plan, a->state, &a->demand, &l->draw, redis_now(), &l->d);
    l->at = w.now;
    if (l->drawn.units > 0) {
        size_t i = a->n_receipts++ % (sizeof(a->receipts) / sizeof(*a->receipts));
        a->receipts[i].id = l->id;
        a->receipts[i].drawn = l->drawn;
        a->receipts[i].at = l->at;
    }
    a->drawn_since += l->drawn.units;
}

static void at_redis(struct letter l)
{
    struct account *a = &o.accounts[l.limit][l.key];
    const struct weir_plan *plan = &o.plans[l.limit];

    if (w.now < w.stopped_until)
        return;
    if (w.stopped_until > 0 && w.back_at < w.stopped_until)
        w.back_at = w.now;
    o.commands += is_counted();
    if (l.charged > 0) {
        plan->algo->give(plan, a->state, -l.charged, redis_now());
        return;
    }
    if (l.repaid.units > 0) {
        o.repays += is_counted();
        weir__draw_repay(plan, a->state, &a->demand, &l.repaid, redis_now());
        return;
    }
    draw_from(a, plan, &l);
    post(TO_NODE, &l);
}

/* One command after another: those that come meanwhile wait. */
static bool is_busy(int n)
{
    weir_time *until = &w.busy_until[w.letters[n].key % SHARDS];

    if (*until > w.now) {
        add(*until, TO_REDIS, n, w.letters[n].life);
        return true;
    }
    *until = w.now + w.story->command;
    return false;
}

/* ------------------------------------------------------------------- nodes ---- */

static uint64_t *purse_of(struct node *node, const struct weir__fleet_key *k)
{
    return node->purses[k->limit - o.limits][k->bytes[0]];
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
                        weir_time now)
{
    if (have(world, k, now) == 0)
        k->limit->purse.algo->give(&k->limit->purse, purse_of(world, k), -1, until);
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

static void note_passed(int limit, int key, int64_t units, int node, weir_time at)
{
    struct account *a = &o.accounts[limit][key];

    if (a->n_passed == a->room) {
        a->room = a->room ? 2 * a->room : 1024;
        a->passed = realloc(a->passed, a->room * sizeof(*a->passed));
        if (a->passed == NULL)
            abort();
    }
    a->passed[a->n_passed++] = (struct passed){ at, units, node };
}

static bool is_answered(const struct weir__fleet_key *k)
{
    return w.answer.limit == k->limit - o.limits && w.answer.key == k->bytes[0];
}

/* Units of an ask that waited count at the moment of the draw. */
static int take(void *world, struct weir__fleet_wait *wait, weir_time now)
{
    struct waiting *waiting = (struct waiting *)wait;
    struct node *node = world;

    for (size_t i = 0; i < wait->n; i++)
        if (is_answered(wait->items[i].key))
            waiting->drawn_at[i] = w.answer.at;
        else if (wait->items[i].kept.units == 0)
            waiting->drawn_at[i] = w.now;
    for (size_t i = 0; i < wait->n; i++)
        if (have(world, wait->items[i].key, now) < wait->items[i].cost)
            return (int)i;
    for (size_t i = 0; i < wait->n; i++) {
        const struct weir__fleet_item *item = &wait->items[i];
        take_out(world, item->key, item->cost, now);
        note_passed((int)(item->key->limit - o.limits), item->key->bytes[0], item->cost,
                    (int)(node - w.nodes), waiting->drawn_at[i]);
    }
    return WEIR__FLEET_ALL_TAKEN;
}

static struct letter letter_to(const struct weir__fleet_key *k, const struct node *node)
{
    return (struct letter){ .node = (int)(node - w.nodes),
                            .life = node->life,
                            .limit = (int)(k->limit - o.limits),
                            .key = k->bytes[0],
                            .record = (struct weir__fleet_key *)k,
                            .id = k->id,
                            .draw = k->draw };
}

static void draw(void *world, const struct weir__fleet_key *k)
{
    struct letter l = letter_to(k, world);

    post(TO_REDIS, &l);
}

static void repay(void *world, const struct weir__fleet_key *k, const struct weir__repay *back)
{
    struct letter l = letter_to(k, world);

    l.repaid = *back;
    l.id = 0;
    post(TO_REDIS, &l);
}

/* ------------------------------------------------------------------- alone ---- */

static struct share *share_of(struct node *node, const struct weir__fleet_key *k)
{
    return &node->shares[k->limit - o.limits][k->bytes[0]];
}

static struct share *open_share(struct node *node, const struct weir__fleet_key *k, weir_time now)
{
    struct share *share = share_of(node, k);
    uint32_t part = o.part[node - w.nodes];
    struct weir_limit limit;

    if (share->open)
        return share;
    *share = (struct share){ .open = true };
    if (!weir__fleet_share_limit(&limit, &k->limit->plan->limit, part) ||
        weir__plan_make(&share->plan, &limit, NULL) != WEIR_OK ||
        share->plan.state_size > sizeof(share->state))
        abort();
    share->plan.algo->give(&share->plan, share->state,
                           -weir__fleet_share_begin(&share->plan, part, k->left), now);
    return share;
}

/* By its share: all or nothing. */
static bool take_alone(struct node *node, const struct weir__fleet_wait *wait)
{
    weir_time now = node_now((int)(node - w.nodes));
    struct weir_decision d;

    for (size_t i = 0; i < wait->n; i++) {
        struct share *share = open_share(node, wait->items[i].key, now);
        if (!weir_step_peek(&share->plan, share->state,
                            &(struct weir_ask){ .cost = wait->items[i].cost, .now = now }, &d))
            return false;
    }
    for (size_t i = 0; i < wait->n; i++) {
        const struct weir__fleet_item *item = &wait->items[i];
        int limit = (int)(item->key->limit - o.limits);
        struct share *share = share_of(node, item->key);
        weir_step(&share->plan, share->state, &(struct weir_ask){ .cost = item->cost, .now = now },
                  &d);
        share->passed += item->cost;
        note_passed(limit, item->key->bytes[0], item->cost, (int)(node - w.nodes), w.now);
        o.accounts[limit][item->key->bytes[0]].alone += item->cost;
    }
    return true;
}

static void charge(void *world, const struct weir__fleet_key *k, weir_time now)
{
    struct share *share = share_of(world, k);
    struct letter l = letter_to(k, world);

    l.id = 0;
    l.charged =
        !share->open ? 0 : weir__fleet_share_end(&share->plan, share->state, share->passed, now);
    share->open = false;
    if (l.charged > 0)
        post(TO_REDIS, &l);
}

static void done(void *world, struct weir__fleet_wait *wait)
{
    struct waiting *waiting = (struct waiting *)wait;
    struct node *node = world;

    if (!waiting->used)
        broken("an ask is answered once");
    waiting->used = false;
    if (wait->outcome == WEIR__FLEET_ALONE && w.story->share && take_alone(node, wait))
        wait->outcome = WEIR__FLEET_TOOK;
    if (wait->outcome == WEIR__FLEET_TOOK) {
        o.granted[node - w.nodes]++;
        o.granted_both += wait->n > 1;
    }
    o.refused += wait->outcome == WEIR__FLEET_REFUSED;
    o.alone += wait->outcome == WEIR__FLEET_ALONE && is_counted();
}

static const struct weir__fleet_world ops = { have, fill,   close_purse, take_out, take,
                                              draw, charge, repay,       done };

static void start_node(int n)
{
    struct node *node = &w.nodes[n];

    memset(node->purses, 0, sizeof(node->purses));
    memset(node->shares, 0, sizeof(node->shares));
    node->life++;
    node->up = true;
    node->turn_at = INT64_MAX;
    struct weir__fleet_options options = { .ops = &ops,
                                           .world = node,
                                           .keys = 8 + LIMITS_MAX * KEYS_MAX,
                                           .draws = 64,
                                           .seed = random64(&w.dice) };
    if (weir__fleet_create(&node->fleet, &options, NULL) != WEIR_OK)
        abort();
}

static void stop_node(int n, weir_time span, bool retire)
{
    struct node *node = &w.nodes[n];

    if (!node->up)
        return;
    if (retire)
        weir__fleet_end(node->fleet, node_now(n));
    weir__fleet_destroy(node->fleet);
    node->fleet = NULL;
    node->up = false;
    for (size_t i = 0; i < WAITS; i++)
        if (w.waits[i].node == n)
            w.waits[i].used = false;
    add(w.now + span, REBIRTH, n, node->life);
}

static void turn(int n)
{
    struct node *node = &w.nodes[n];

    if (!node->up)
        return;
    weir_time next = weir__fleet_turn(node->fleet, node_now(n));
    if (next == WEIR_NEVER)
        return;
    next = next - BEGIN - node->skew;
    next = next > w.now ? next : w.now + 1;
    if (next < node->turn_at) {
        node->turn_at = next;
        add(next, TURN, n, node->life);
    }
}

/* -------------------------------------------------------------------- asks ---- */

static struct waiting *new_wait(void)
{
    for (int i = 0; i < WAITS; i++) {
        struct waiting *waiting = &w.waits[w.free_wait];
        w.free_wait = (w.free_wait + 1) % WAITS;
        if (!waiting->used)
            return waiting;
    }
    return NULL;
}

static void begin_wait(struct waiting *waiting, const struct event *e)
{
    struct node *node = &w.nodes[e->node];

    *waiting = (struct waiting){ .used = true, .node = e->node, .life = waiting->life + 1 };
    for (int l = 0; l < w.story->n_limits; l++) {
        if (!(e->limits & 1 << l))
            continue;
        struct weir__fleet_item *item = &waiting->wait.items[waiting->wait.n++];
        item->key = weir__fleet_key(node->fleet, &o.limits[l], (struct weir_key){ &e->key, 1 },
                                    e->key % SHARDS, node_now(e->node));
        item->cost = e->n;
    }
    add(w.now + w.story->patience, DEADLINE, (int)(waiting - w.waits), waiting->life);
    weir__fleet_wait(node->fleet, &waiting->wait, node_now(e->node));
}

/* From the purses, without the fleet.  Returns the decision's reason. */
static int take_at_once(const struct event *e)
{
    struct node *node = &w.nodes[e->node];
    struct weir_ask ask = { .cost = e->n, .now = node_now(e->node) };
    struct weir_decision d;

    for (int l = 0; l < w.story->n_limits; l++)
        if (e->limits & 1 << l &&
            !weir_step_peek(&o.limits[l].purse, node->purses[l][e->key], &ask, &d))
            return d.reason;
    for (int l = 0; l < w.story->n_limits; l++)
        if (e->limits & 1 << l) {
            weir_step(&o.limits[l].purse, node->purses[l][e->key], &ask, &d);
            note_passed(l, e->key, e->n, e->node, w.now);
        }
    return WEIR_GRANTED;
}

static void ask(const struct event *e)
{
    struct node *node = &w.nodes[e->node];
    bool both = (e->limits & (e->limits - 1)) != 0;
    struct waiting *waiting;

    if (!node->up)
        return;
    o.asked[e->node]++;
    o.asked_both += both;
    int reason = take_at_once(e);
    if (reason == WEIR_GRANTED) {
        o.granted[e->node]++;
        o.granted_both += both;
    } else if (reason == WEIR_DRY && (waiting = new_wait()) != NULL) {
        begin_wait(waiting, e);
    } else {
        o.refused++;
        for (int l = 0; l < w.story->n_limits; l++)
            if (e->limits & 1 << l)
                weir__fleet_refused(node->fleet,
                                    weir__fleet_key(node->fleet, &o.limits[l],
                                                    (struct weir_key){ &e->key, 1 },
                                                    e->key % SHARDS, node_now(e->node)),
                                    e->n, e->n, node_now(e->node));
    }
    turn(e->node);
}

/* ------------------------------------------------------------------- story ---- */

static void copy_redis(void)
{
    for (int l = 0; l < w.story->n_limits; l++)
        for (int k = 0; k < w.story->keys; k++) {
            struct account *a = &o.accounts[l][k];
            memcpy(a->copy, a->state, sizeof(a->copy));
            a->demand_copy = a->demand;
            a->drawn_since = 0;
        }
}

/* What was drawn since the copy is forgotten, and may be drawn again.  A clock that is ahead by a
 * span gives away what that span lets pass. */
static void fail_over(weir_time ahead)
{
    for (int l = 0; l < w.story->n_limits; l++)
        for (int k = 0; k < w.story->keys; k++) {
            struct account *a = &o.accounts[l][k];
            const struct weir_limit *limit = &o.plans[l].limit;
            memcpy(a->state, a->copy, sizeof(a->state));
            a->demand = a->demand_copy;
            memset(a->receipts, 0, sizeof(a->receipts));
            a->extra += a->drawn_since + (o.limits[l].terms.window
                                              ? limit->count
                                              : ahead * limit->count / limit->period + 1);
            a->drawn_since = 0;
        }
    o.ahead = w.redis_ahead += ahead;
}

static void happen(const struct event *e)
{
    struct node *node = &w.nodes[e->node];

    switch (e->kind) {
    case EVENT_ASK:
        ask(e);
        break;
    case EVENT_CRASH:
    case EVENT_RETIRE:
        stop_node(e->node, e->span, e->kind == EVENT_RETIRE);
        break;
    case EVENT_CUT:
        node->cut_until = w.now + e->span;
        break;
    case EVENT_LOSSY:
        w.lossy_until = w.now + e->span;
        w.lossy = e->n;
        break;
    case EVENT_STOP:
        w.stopped_until = w.now + e->span;
        break;
    case EVENT_COPY:
        copy_redis();
        break;
    case EVENT_FAIL:
        fail_over(e->span);
        break;
    case EVENT_STEP:
        node->skew += e->span;
        o.step_back = -e->span > o.step_back ? -e->span : o.step_back;
        turn(e->node);
        break;
    default:
        break;
    }
}

static void read_answer(struct letter l)
{
    struct node *node = &w.nodes[l.node];

    if (!node->up || node->life != l.life)
        return;
    w.answer.limit = l.limit;
    w.answer.key = l.key;
    w.answer.at = l.at;
    weir__fleet_drawn(node->fleet, l.record, l.id,
                      &(struct weir__fleet_answer){ l.drawn, l.d.remaining, l.d.retry },
                      node_now(l.node));
    w.answer.limit = -1;
    if (w.back_at > 0 && w.now < w.back_at + STAY) /* as members hear with their beats */
        weir__fleet_stay_alone(node->fleet, (uint32_t)(l.key % SHARDS),
                               node_now(l.node) + w.back_at + STAY - w.now, node_now(l.node));
    turn(l.node);
}

static void give_up(int n, uint32_t life)
{
    struct waiting *waiting = &w.waits[n];

    if (!waiting->used || waiting->life != life)
        return;
    weir__fleet_cancel(w.nodes[waiting->node].fleet, &waiting->wait, node_now(waiting->node));
    waiting->used = false;
    o.late += is_counted();
    turn(waiting->node);
}

/* A host that is alone keeps the last part that it was granted. */
static void beat(int n)
{
    struct node *node = &w.nodes[n];

    add(w.now + WEIR__MEMBER_BEAT, BEAT, n, 0);
    if (!node->up || w.now < w.stopped_until || w.now < node->cut_until)
        return;
    if (!parts_beat(&w.parts, n, weir__fleet_asked(node->fleet), S + w.now))
        broken("parts are at most 1");
    int64_t part = weir__member_part(&w.parts.of[n].member, S + w.now);
    if (part > 0)
        o.part[n] = (uint32_t)part;
}

static void handle(const struct agenda_item *e)
{
    struct node *node = &w.nodes[e->node];

    switch (e->kind) {
    case TURN:
        if (node->life == e->number && node->turn_at == w.now) {
            node->turn_at = INT64_MAX;
            turn(e->node);
        }
        break;
    case TO_REDIS:
        if (!is_busy(e->node))
            at_redis(read_letter(e->node));
        break;
    case TO_NODE:
        read_answer(read_letter(e->node));
        break;
    case DEADLINE:
        give_up(e->node, (uint32_t)e->number);
        break;
    case BEAT:
        beat(e->node);
        break;
    default:
        start_node(e->node);
        break;
    }
}

static void begin(const struct story *story)
{
    for (int l = 0; l < LIMITS_MAX; l++)
        for (int k = 0; k < KEYS_MAX; k++)
            free(o.accounts[l][k].passed);
    memset(&o, 0, sizeof(o));
    struct agenda agenda = { .items = w.agenda.items, .room = w.agenda.room };
    memset(&w, 0, sizeof(w));
    w.agenda = agenda;
    w.story = story;
    w.dice = story->seed;
    w.answer.limit = -1;
    for (int i = 0; i < LETTERS; i++)
        w.letters[i].next = i + 1 < LETTERS ? i + 1 : -1;
    for (int l = 0; l < story->n_limits; l++) {
        struct weir_limit limit;
        if (weir_limit_parse(&limit, story->limits[l], NULL) != WEIR_OK ||
            weir__plan_make(&o.plans[l], &limit, NULL) != WEIR_OK ||
            weir__fleet_limit_make(&o.limits[l], &o.plans[l], NULL) != WEIR_OK ||
            o.plans[l].state_size > sizeof(o.accounts[l][0].state))
            abort();
    }
    for (int n = 0; n < story->nodes; n++) {
        w.nodes[n].skew = dice(2 * 3600 * S) - 3600 * S;
        o.part[n] = WEIR__FLEET_WHOLE / (uint32_t)story->nodes;
        start_node(n);
        if (story->lend)
            add(dice(WEIR__MEMBER_BEAT), BEAT, n, 0);
    }
}

const struct outcome *fleet_run(const struct story *story)
{
    size_t next = 0; /* of the story */

    begin(story);
    while (w.agenda.n > 0 || next < story->n) {
        bool told =
            next < story->n && (w.agenda.n == 0 || story->events[next].at <= w.agenda.items[0].at);
        struct agenda_item item;
        if (!told)
            agenda_next(&w.agenda, &item);
        w.now = told ? story->events[next].at : item.at;
        if (w.now > story->length)
            break;
        if (told)
            happen(&story->events[next++]);
        else
            handle(&item);
    }
    for (int n = 0; n < story->nodes; n++)
        weir__fleet_destroy(w.nodes[n].fleet);
    return &o;
}
