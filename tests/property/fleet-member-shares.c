/* fleet-member-shares.c -- nodes that beat, a Redis and a network that do what they can: a
 * simulation of member-shares.c by virtual time.
 *
 *     property-fleet-member-shares FIRST_SEED RUNS [trace]
 *
 * Beats and answers are late, lost, doubled and overtake each other; nodes join, crash, come again
 * under another id, stand still, and are cut off; Redis stands still, or fails over and loses its
 * last writes, to a server whose clock differs.  The nodes' clocks run at different speeds.  The
 * laws:
 *
 *     never too much     the sum of the parts in force is at most 1, at every moment
 *     never too little   after the last fault the parts are those of the weights, and their sum is
 *                        1, within 14 beats
 *     death              a dead node's part is in force elsewhere within 6 beats
 *     lending            what a node does not want is used by others within 6 beats, and it has its
 *                        own share again within 6 beats; if nobody wants more, nothing is lent
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet-agenda.h"
#include "member-shares-model.h"
#include "rounds.h"

#define NODES_MAX 8
#define MS        WEIR_MILLISECOND
#define ASKS      64 /* of a node that are remembered */

enum {
    ARRIVES,
    RETURNS,
    TIMES_OUT,
    DUE,
    JOINS,
    LEAVES,
    CRASHES,
    STOPS,
    IS_CUT,
    PHASE,
    REDIS_STOPS,
    FAILS_OVER
};

struct node {
    struct weir__member member;
    char id[24];
    int lives;
    bool up;
    int64_t speed; /* of its clock, in millionths off */
    weir_time stopped_until, cut_until, due_at;
    uint64_t number; /* of the ask under way */
    struct {
        struct model_beat beat;
        char id[24];
    } asks[ASKS];
    uint64_t asks_sent;
};

static struct agenda agenda;
static struct node nodes[NODES_MAX];
static int n_nodes, phase;
static weir_time now, calm_at, beat_span;
static bool calm, trace;
static struct model_fleet redis, replica;
static weir_time redis_up_at, redis_ahead;
static int64_t redis_run;

static void stop(const char *law, int64_t what)
{
    fprintf(stderr, "property-fleet-member-shares: seed %" PRIu64 " at %.3f ms: %s: %" PRId64 "\n",
            seed_of_round, (double)now / 1e6, law, what);
    exit(1);
}

static weir_time clock_of(const struct node *n)
{
    return now + now / 1000000 * n->speed + 5 * WEIR_SECOND;
}

static int64_t part_of(const struct node *n)
{
    return n->up ? weir__member_part(&n->member, clock_of(n)) : 0;
}

static int64_t sum_of_parts(void)
{
    int64_t sum = 0;

    for (int i = 0; i < n_nodes; i++)
        sum += part_of(&nodes[i]);
    return sum;
}

static void schedule(int kind, int node, weir_time after, uint64_t number)
{
    agenda_add(&agenda, (struct agenda_item){
                            .at = now + after, .kind = kind, .node = node, .number = number });
}

static bool is_rough(void)
{
    return !calm && now < calm_at;
}

static weir_time delay(void)
{
    weir_time usual = between(100, 3000) * WEIR_MICROSECOND;

    return is_rough() && one_in(12) ? between(1, 8) * beat_span / between(1, 8) : usual;
}

/* ------------------------------------------------------------------ nodes ---- */

static void send(int i, struct weir__member_send what)
{
    struct node *n = &nodes[i];
    weir_time after = n->member.due - clock_of(n);

    if (what.verb != WEIR__MEMBER_NOTHING) {
        n->number = n->asks_sent++;
        n->asks[n->number % ASKS].beat =
            (struct model_beat){ .leaves = what.verb == WEIR__MEMBER_LEAVES,
                                 .seq = what.seq,
                                 .weight = n->member.weight,
                                 .want = n->member.want,
                                 .part = what.part,
                                 .beat = n->member.beat / WEIR_MICROSECOND };
        memcpy(n->asks[n->number % ASKS].id, n->id, sizeof(n->id));
        for (int copies = is_rough() ? int_between(0, 11) : 1; copies > 0; copies -= 10)
            schedule(ARRIVES, i, delay(), n->number);
        schedule(TIMES_OUT, i, what.timeout, n->number);
    }
    n->due_at = n->member.due == WEIR_NEVER ? WEIR_NEVER : now + (after > 0 ? after : 0);
    if (n->due_at != WEIR_NEVER && !n->member.asking)
        schedule(DUE, i, n->due_at - now + after / 32, 0);
}

static void step(int i, struct weir__member_event event)
{
    struct node *n = &nodes[i];
    int64_t before = part_of(n);

    send(i, weir__member_step(&n->member, &event, clock_of(n)));
    if (trace && part_of(n) != before)
        fprintf(stderr, "%10.3f ms  %s has %" PRId64 "\n", (double)now / 1e6, n->id, part_of(n));
    if (sum_of_parts() > WEIR__PART_ONE)
        stop("the sum of the parts is more than 1", sum_of_parts());
}

static void join(int i)
{
    struct node *n = &nodes[i];

    if (n->up)
        return;
    n->up = true;
    n->number = UINT64_MAX;
    n->member = (struct weir__member){ .beat = beat_span,
                                       .weight = n->member.weight,
                                       .want = WEIR__PART_ONE };
    snprintf(n->id, sizeof(n->id), "n%d-%d", i, ++n->lives);
    step(i, (struct weir__member_event){ .kind = WEIR__MEMBER_TIME });
}

static void crash(int i, bool leaves)
{
    struct node *n = &nodes[i];

    if (!n->up)
        return;
    if (leaves)
        step(i, (struct weir__member_event){ .kind = WEIR__MEMBER_LEAVE });
    n->up = false;
    if (phase == 0)
        schedule(JOINS, i, between(1, 2000) * MS, 0);
}

/* ------------------------------------------------------------------ Redis ---- */

static void arrive(const struct agenda_item *it)
{
    struct node *n = &nodes[it->node];
    struct model_beat b = n->asks[it->number % ASKS].beat;

    b.id = n->asks[it->number % ASKS].id;
    if (now < n->cut_until)
        return;
    if (now < redis_up_at) { /* it stands still: what came is done later */
        agenda_put_off(&agenda, *it, redis_up_at + between(0, 1000));
        return;
    }
    if (one_in(4))
        replica = redis;
    struct weir__member_answer a =
        model_beat(&redis, &b, redis_run, (now + redis_ahead) / WEIR_MICROSECOND);
    if (is_rough() && one_in(12))
        return;
    agenda_add(&agenda,
               (struct agenda_item){ .at = now + delay(),
                                     .kind = RETURNS,
                                     .node = it->node,
                                     .number = it->number,
                                     .words = { a.offer, a.members, a.granted, a.learning } });
}

static void answer(const struct agenda_item *it, bool failed)
{
    struct node *n = &nodes[it->node];
    struct weir__member_event event = { .kind =
                                            failed ? WEIR__MEMBER_FAILED : WEIR__MEMBER_ANSWER };

    if (!n->up || it->number != n->number || !n->member.asking || now < n->cut_until)
        return; /* it had its outcome; or it is cut off, and the time-out comes */
    event.answer = (struct weir__member_answer){ .offer = it->words[0],
                                                 .members = it->words[1],
                                                 .granted = it->words[2],
                                                 .learning = it->words[3] != 0 };
    step(it->node, event);
}

static void fail_over(void)
{
    redis = replica;
    redis_run++;
    redis_up_at = now + (one_in(2) ? between(0, 20) : between(0, 3000)) * MS;
    redis_ahead += (one_in(2) ? between(0, 20) : between(-10000, 10000)) * MS;
}

/* ----------------------------------------------------------------- a run ---- */

static int64_t weights_up(void)
{
    int64_t sum = 0;

    for (int i = 0; i < n_nodes; i++)
        sum += nodes[i].up ? nodes[i].member.weight : 0;
    return sum;
}

static void check_parts_by_weight(const char *law)
{
    for (int i = 0; i < n_nodes; i++) {
        struct node *n = &nodes[i];
        int64_t share = n->up ? WEIR__PART_ONE * n->member.weight / weights_up() : 0;
        if (part_of(n) != share)
            stop(law, part_of(n) - share);
    }
}

static void want_all(int64_t want)
{
    for (int i = 0; i < n_nodes; i++)
        nodes[i].member.want = want;
}

/* After the storm: by weight; all want nothing; the first lends; it has its own again; it dies. */
static void next_phase(void)
{
    int64_t own = part_of(&nodes[0]);

    switch (++phase) {
    case 1:
        check_parts_by_weight("not by weight after the last fault");
        want_all(0);
        schedule(PHASE, 0, 6 * beat_span, 0);
        break;
    case 2:
        check_parts_by_weight("something is lent to nobody");
        want_all(WEIR__PART_ONE);
        nodes[0].member.want = 0;
        schedule(PHASE, 0, 6 * beat_span, 0);
        break;
    case 3:
        if (own > (WEIR__PART_ONE * nodes[0].member.weight / weights_up() + 3) / 4)
            stop("a node that wants nothing keeps more than a quarter", own);
        if (sum_of_parts() < WEIR__PART_ONE - 2 * n_nodes)
            stop("what was lent is not used", sum_of_parts());
        nodes[0].member.want = WEIR__PART_ONE;
        schedule(PHASE, 0, 6 * beat_span, 0);
        break;
    case 4:
        check_parts_by_weight("a lender has not its own share again");
        crash(0, false);
        schedule(PHASE, 0, 6 * beat_span, 0);
        break;
    default:
        check_parts_by_weight("a dead node's part is not back");
        agenda.n = 0;
    }
}

static bool is_asleep(const struct agenda_item *it)
{
    const struct node *n = &nodes[it->node];

    return it->kind != ARRIVES && it->kind < PHASE && now < n->stopped_until;
}

static void happen(const struct agenda_item *it)
{
    struct node *n = &nodes[it->node];

    if (is_asleep(it)) {
        agenda_put_off(&agenda, *it, n->stopped_until);
        return;
    }
    switch (it->kind) {
    case ARRIVES:
        arrive(it);
        break;
    case RETURNS:
        answer(it, false);
        break;
    case TIMES_OUT:
        if (n->up && it->number == n->number && n->member.asking)
            step(it->node, (struct weir__member_event){ .kind = WEIR__MEMBER_FAILED });
        break;
    case DUE:
        if (now < calm_at && one_in(8))
            n->member.want = one_in(2) ? WEIR__PART_ONE : between(0, WEIR__PART_ONE);
        else if (phase == 0 && now >= calm_at)
            n->member.want = WEIR__PART_ONE;
        if (n->up)
            step(it->node, (struct weir__member_event){ .kind = WEIR__MEMBER_TIME });
        break;
    case JOINS:
        join(it->node);
        break;
    case LEAVES:
    case CRASHES:
        crash(it->node, it->kind == LEAVES);
        break;
    case STOPS:
        n->stopped_until = now + between(10, 3000) * MS;
        break;
    case IS_CUT:
        n->cut_until = now + between(10, 3000) * MS;
        break;
    case PHASE:
        next_phase();
        break;
    case REDIS_STOPS:
        redis_up_at = now + between(10, 3000) * MS;
        break;
    default:
        fail_over();
    }
}

static void begin_run(void)
{
    static const int kinds[] = { CRASHES, LEAVES, STOPS, IS_CUT, REDIS_STOPS, FAILS_OVER };

    agenda.n = 0;
    now = 1000 * WEIR_SECOND;
    phase = 0;
    memset(nodes, 0, sizeof(nodes));
    memset(&redis, 0, sizeof(redis));
    memset(&replica, 0, sizeof(replica));
    n_nodes = int_between(2, NODES_MAX);
    calm = one_in(8);
    beat_span = between(50, 400) * MS;
    calm_at = now + 15 * WEIR_SECOND;
    redis_up_at = redis_ahead = 0;
    redis_run = 1;
    for (int i = 0; i < n_nodes; i++) {
        nodes[i].member.weight = one_in(2) ? 1 : between(1, 10);
        nodes[i].speed = between(-10000, 10000);
        schedule(JOINS, i, between(0, 3000) * MS, 0);
    }
    for (int64_t faults = calm ? 0 : between(0, 15); faults > 0; faults--)
        schedule(kinds[between(0, 5)], int_between(0, n_nodes - 1), between(0, 12000) * MS, 0);
    /* A stop or a failover lasts for 3 s at most */
    schedule(PHASE, 0, calm_at - now + 3 * WEIR_SECOND + 14 * beat_span, 0);
}

static void run(void)
{
    struct agenda_item it;

    begin_run();
    while (agenda_next(&agenda, &it)) {
        now = it.at > now ? it.at : now;
        happen(&it);
    }
}

int main(int argc, char **argv)
{
    trace = argc > 3;
    printf("%" PRIu64 " passed, 0 failed\n", play_rounds(argc, argv, 100, run));
    return 0;
}
