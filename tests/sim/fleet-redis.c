/* fleet-redis.c -- the network and the Redis of a fleet on virtual time. */
#include "sim/fleet-inside.h"

/* ----------------------------------------------------------------- network ---- */

/* Draws have an id, and may come twice; what is paid back is sent once. */
void fleet_post(enum what what, const struct letter *letter)
{
    const struct node *node = &sim.nodes[letter->node];
    bool lossy = sim.now < sim.lossy_until;
    int copies = lossy && letter->id != 0 && dice(sim.lossy) == 0 ? 2 : 1;

    if (sim.now < node->cut_until || (lossy && dice(sim.lossy) == 0))
        return;
    for (int i = 0; i < copies && sim.free_letter >= 0; i++) {
        int n = sim.free_letter;
        bool far = letter->node == 0 && sim.story->far > 0;
        weir_time trip = far ? sim.story->far : sim.story->trip;
        sim.free_letter = sim.letters[n].next;
        sim.letters[n] = *letter;
        trip += trip / 4 > 0 ? dice(trip / 4) : 0;
        trip += lossy && dice(4) == 0 ? dice(20 * MS) : 0; /* overtaken */
        add(sim.now + trip, what, n, letter->life);
    }
}

struct letter fleet_read_letter(int n)
{
    struct letter letter = sim.letters[n];

    sim.letters[n].next = sim.free_letter;
    sim.free_letter = n;
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
    l->at = sim.now;
    if (l->drawn.units > 0) {
        size_t i = a->n_receipts++ % (sizeof(a->receipts) / sizeof(*a->receipts));
        a->receipts[i].id = l->id;
        a->receipts[i].drawn = l->drawn;
        a->receipts[i].at = l->at;
    }
    a->drawn_since += l->drawn.units;
}

static void obey(struct letter l)
{
    struct account *a = &sim.o.accounts[l.limit][l.key];
    const struct weir_plan *plan = &sim.o.plans[l.limit];

    if (sim.now < sim.stopped_until)
        return;
    if (sim.stopped_until > 0 && sim.back_at < sim.stopped_until)
        sim.back_at = sim.now;
    sim.o.commands += is_counted();
    if (l.charged > 0) {
        plan->algo->give(plan, a->state, -l.charged, redis_now());
        return;
    }
    if (l.repaid.units > 0) {
        sim.o.repays += is_counted();
        weir__draw_repay(plan, a->state, &a->demand, &l.repaid, redis_now());
        return;
    }
    draw_from(a, plan, &l);
    fleet_post(TO_NODE, &l);
}

/* One command after another: those that come meanwhile wait. */
static bool is_busy(int n)
{
    weir_time *until = &sim.busy_until[sim.letters[n].key % SHARDS];

    if (*until > sim.now) {
        add(*until, TO_REDIS, n, sim.letters[n].life);
        return true;
    }
    *until = sim.now + sim.story->command;
    return false;
}

void fleet_at_redis(int n)
{
    if (!is_busy(n))
        obey(fleet_read_letter(n));
}

void fleet_copy_redis(void)
{
    for (int l = 0; l < sim.story->n_limits; l++)
        for (int k = 0; k < sim.story->keys; k++) {
            struct account *a = &sim.o.accounts[l][k];
            memcpy(a->copy, a->state, sizeof(a->copy));
            a->demand_copy = a->demand;
            a->drawn_since = 0;
        }
}

/* What was drawn since the copy is forgotten, and may be drawn again.  A clock that is ahead by a
 * span gives away what that span lets pass. */
void fleet_fail_over(weir_time ahead)
{
    for (int l = 0; l < sim.story->n_limits; l++)
        for (int k = 0; k < sim.story->keys; k++) {
            struct account *a = &sim.o.accounts[l][k];
            const struct weir_limit *limit = &sim.o.plans[l].limit;
            memcpy(a->state, a->copy, sizeof(a->state));
            a->demand = a->demand_copy;
            memset(a->receipts, 0, sizeof(a->receipts));
            a->extra += a->drawn_since + (sim.o.limits[l].terms.window
                                              ? limit->count
                                              : ahead * limit->count / limit->period + 1);
            a->drawn_since = 0;
        }
    sim.o.ahead = sim.redis_ahead += ahead;
}
