/* fleet-node.h -- a node of a fleet: its purses are two variables, and it notes what it sends. */
#ifndef WEIR_TESTS_UNIT_FLEET_NODE_H
#define WEIR_TESTS_UNIT_FLEET_NODE_H

#include "algo/purse.h"
#include "cluster/fleet/fleet.h"
#include "fixture.h"

#define MS WEIR_MILLISECOND

static struct weir__fleet *fleet;
static struct weir_plan plans[2];
static struct weir__fleet_limit limits[2];
static uint64_t purses[2][2];
static struct { /* the last of each */
    const struct weir__fleet_key *key;
    struct weir__draw draw;
    uint64_t id;
    int draws, done, charges, draws_before;
    int64_t repaid;
    weir_time repaid_of;
    bool not_ours;
} sent;

static uint64_t *purse_of(const struct weir__fleet_key *k)
{
    return purses[k->limit - limits];
}

static int64_t have(void *world, const struct weir__fleet_key *k, weir_time then)
{
    struct weir_decision d;

    weir_step_peek(&k->limit->purse, purse_of(k), &(struct weir_ask){ .now = then }, &d);
    return d.remaining;
}

static void fill(void *world, const struct weir__fleet_key *k, int64_t units, weir_time drawn,
                 weir_time now)
{
    k->limit->purse.algo->give(&k->limit->purse, purse_of(k), units, drawn);
}

static void close_purse(void *world, const struct weir__fleet_key *k, weir_time until,
                        weir_time told, weir_time now)
{
    if (have(world, k, now) == 0)
        weir__purse_shut(&k->limit->purse, purse_of(k), until, told);
}

static int64_t take_out(void *world, const struct weir__fleet_key *k, int64_t most, weir_time now)
{
    int64_t units = have(world, k, now) < most ? have(world, k, now) : most;
    struct weir_decision d;

    weir_step(&k->limit->purse, purse_of(k), &(struct weir_ask){ .cost = units, .now = now }, &d);
    return units;
}

static int take_all(void *world, struct weir__fleet_wait *wait, weir_time now)
{
    for (size_t i = 0; i < wait->n; i++)
        if (have(world, wait->items[i].key, now) < wait->items[i].cost)
            return (int)i;
    if (sent.not_ours)
        return WEIR__FLEET_NOT_OURS;
    for (size_t i = 0; i < wait->n; i++)
        take_out(world, wait->items[i].key, wait->items[i].cost, now);
    return WEIR__FLEET_ALL_TAKEN;
}

static void draw(void *world, const struct weir__fleet_key *k)
{
    sent.key = k;
    sent.draw = k->draw;
    sent.id = k->id;
    sent.draws++;
}

static void charge(void *world, const struct weir__fleet_key *k, weir_time now)
{
    sent.charges++;
    sent.draws_before = sent.draws;
}

static void repay(void *world, const struct weir__fleet_key *k, const struct weir__repay *back)
{
    sent.repaid += back->units;
    sent.repaid_of = back->drawn_at;
}

static void done(void *world, struct weir__fleet_wait *wait)
{
    sent.done++;
}

static const struct weir__fleet_world ops = { have, fill,   close_purse, take_out, take_all,
                                              draw, charge, repay,       done };

static inline void begin(size_t keys, size_t draws)
{
    static const char *const texts[2] = { "gcra 1000/1s burst 1000", "fixed-window 100/1s" };

    for (int i = 0; i < 2; i++) {
        struct weir_limit limit = limit_of(texts[i]);
        assert_int_equal(weir__plan_make(&plans[i], &limit, NULL), WEIR_OK);
        assert_int_equal(weir__fleet_limit_make(&limits[i], &plans[i], NULL), WEIR_OK);
    }
    memset(purses, 0, sizeof(purses));
    memset(&sent, 0, sizeof(sent));
    assert_int_equal(weir__fleet_create(&fleet,
                                        &(struct weir__fleet_options){
                                            .ops = &ops, .seed = 1, .keys = keys, .draws = draws },
                                        NULL),
                     WEIR_OK);
}

static inline struct weir__fleet_key *key(int limit)
{
    return weir__fleet_key(fleet, &limits[limit], key_of("ann"), 0, NOW);
}

static inline struct weir__fleet_wait *wait_of(struct weir__fleet_wait *w, int64_t first,
                                               int64_t second, weir_time now)
{
    *w = (struct weir__fleet_wait){ 0 };
    if (first > 0)
        w->items[w->n++] = (struct weir__fleet_item){ .key = key(0), .cost = first };
    if (second > 0)
        w->items[w->n++] = (struct weir__fleet_item){ .key = key(1), .cost = second };
    weir__fleet_wait(fleet, w, now);
    return w;
}

static inline void answer(int limit, int64_t units, bool spent, weir_time now)
{
    weir__fleet_drawn(
        fleet, key(limit), key(limit)->id,
        &(struct weir__fleet_answer){
            { units, spent ? 100 : units, spent, now, limits[limit].terms.life }, 0, 30 * MS, S },
        now);
}

static inline void end(void)
{
    weir__fleet_end(fleet, NOW + 3 * MS);
    weir__fleet_destroy(fleet);
}

#endif
