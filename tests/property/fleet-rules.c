/* fleet-rules.c -- editors and nodes, one document in a Redis, and a network that does what it
 * can: a simulation of rules-follower.c by virtual time.
 *
 *     property-fleet-rules FIRST_SEED RUNS
 *
 * Asks and answers are late, lost and doubled; nodes crash and begin with their copy; Redis fails
 * over and loses its last writes.  Editors repeat a change whose answer was lost under the same
 * edit id.  Some versions are wrong, and refused by nodes.  The laws:
 *
 *     unnoticed    each version is the one before it and one change: nothing is overwritten
 *     once         without failovers, each change that was answered is there, once
 *     follow       after the last fault, each node runs the version that is meant for it, or has
 *                  reported that it refused it, within two polls and three asks
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/fleet/rules-follower.h"
#include "fleet-agenda.h"
#include "rounds.h"

#define NODES    4
#define EDITORS  3
#define VERSIONS 400
#define MS       WEIR_MILLISECOND

enum { EDITS, PUT_ARRIVES, PUT_RETURNS, DUE, ARRIVES, RETURNS, TIMES_OUT, CRASHES, FAILS_OVER };

/* A version's text is the changes in it, so it is enough to know its edit and its base. */
struct document {
    int64_t newest, all;
    int stage; /* a node, or -1 */
    struct {
        int64_t edit, base, base_edit;
        bool wrong;
    } versions[VERSIONS];
    int64_t runs[NODES], refused[NODES]; /* as reported */
};

static struct document redis, replica;
static struct agenda agenda;
static struct node {
    struct weir__follower follower;
    uint64_t number;
    struct weir__edition copy; /* the version on its disk */
    weir_time due_at;
} nodes[NODES];
static struct {
    int64_t edit, base, base_edit;
    bool wrong;
} editors[EDITORS];
static int64_t edits, answered;
static weir_time now, calm_at;
static bool fails_over;

static void stop(const char *law)
{
    fprintf(stderr, "property-fleet-rules: seed %" PRIu64 " at %.3f ms: %s\n", seed_of_round,
            (double)now / 1e6, law);
    exit(1);
}

static void schedule(int kind, int who, weir_time after, uint64_t number, int64_t a, int64_t b,
                     int64_t c)
{
    agenda_add(
        &agenda,
        (struct agenda_item){
            .at = now + after, .kind = kind, .node = who, .number = number, .words = { a, b, c } });
}

static bool is_rough(void)
{
    return now < calm_at;
}

static weir_time delay(void)
{
    return is_rough() && one_in(8) ? between(1, 3000) * MS : between(100, 3000) * WEIR_MICROSECOND;
}

/* --------------------------------------------------------------- editors ---- */

/* Sent, perhaps twice, perhaps not at all; asked again while there is no answer. */
static void send_put(int i)
{
    for (int copies = is_rough() ? int_between(0, 11) : 1; copies > 0; copies -= 10)
        schedule(PUT_ARRIVES, i, delay(), (uint64_t)editors[i].edit, editors[i].base,
                 editors[i].wrong, editors[i].base_edit);
    schedule(EDITS, i, WEIR_SECOND, (uint64_t)editors[i].edit, 0, 0, 0);
}

static void edit(int i, uint64_t number)
{
    if (number != (uint64_t)editors[i].edit)
        return; /* that one was answered */
    if (editors[i].edit == 0) {
        editors[i].edit = ++edits;
        editors[i].base = redis.newest;
        editors[i].base_edit = redis.versions[redis.newest].edit;
        editors[i].wrong = edits % 4 == 0;
    }
    send_put(i);
}

static int64_t put(int64_t edit_id, int64_t base, int64_t base_edit, bool wrong)
{
    for (int64_t v = redis.newest; v > 0; v--)
        if (redis.versions[v].edit == edit_id)
            return v;
    if (base != redis.newest || base_edit != redis.versions[base].edit ||
        redis.newest + 1 == VERSIONS)
        return 0;
    redis.newest++;
    redis.versions[redis.newest].edit = edit_id;
    redis.versions[redis.newest].base = base;
    redis.versions[redis.newest].base_edit = base_edit;
    redis.versions[redis.newest].wrong = wrong;
    redis.stage = one_in(3) ? int_between(0, NODES - 1) : -1;
    if (redis.stage < 0)
        redis.all = redis.newest;
    return redis.newest;
}

static void take_put_answer(int i, uint64_t number, int64_t version)
{
    if (number != (uint64_t)editors[i].edit)
        return;
    answered += version > 0;
    editors[i].edit = 0; /* a conflict: begins again with what it gets then */
    if (is_rough())
        schedule(EDITS, i, between(1, 500) * MS, 0, 0, 0, 0);
}

/* ----------------------------------------------------------------- nodes ---- */

static int64_t meant_for(int i)
{
    return redis.stage == i ? redis.newest : redis.all;
}

static void step(int i, struct weir__follower_event event);

static void act(int i, struct weir__follower_do what)
{
    struct node *n = &nodes[i];
    struct weir__follower_event event = { .kind = WEIR__FOLLOWER_APPLIED };

    if (what.verb == WEIR__FOLLOWER_APPLY) {
        event.why = n->follower.wanted.edit % 4 == 0 ? "it is wrong" : NULL;
        n->copy = event.why ? n->copy : n->follower.wanted;
        step(i, event);
        return;
    }
    if (what.verb != WEIR__FOLLOWER_NOTHING) {
        n->number++;
        for (int copies = is_rough() ? int_between(0, 11) : 1; copies > 0; copies -= 10)
            schedule(ARRIVES, i, delay(), n->number,
                     what.verb == WEIR__FOLLOWER_POLL ? 0 : what.version, 0, 0);
        schedule(TIMES_OUT, i, WEIR__FOLLOWER_ASK, n->number, 0, 0, 0);
    } else if (!n->follower.busy) {
        n->due_at = n->follower.due;
        schedule(DUE, i, n->due_at > now ? n->due_at - now : 0, 0, 0, 0, 0);
    }
}

static void step(int i, struct weir__follower_event event)
{
    act(i, weir__follower_step(&nodes[i].follower, &event, now));
}

static void arrive(const struct agenda_item *it)
{
    int i = it->node;
    int64_t version = it->words[0];

    if (version == 0) {
        redis.runs[i] = nodes[i].follower.runs.version;
        redis.refused[i] = nodes[i].follower.refused.version;
        version = meant_for(i);
    } else if (version > redis.newest) {
        return; /* lost by a failover: the script answers with nothing, which is a failure */
    }
    if (!(is_rough() && one_in(10)))
        schedule(RETURNS, i, delay(), it->number, version, it->words[0] != 0,
                 redis.versions[version].edit);
}

static void take_answer(const struct agenda_item *it)
{
    struct node *n = &nodes[it->node];

    if (it->number != n->number || !n->follower.busy)
        return;
    n->number++; /* a second answer counts no more */
    step(it->node, (struct weir__follower_event){ .kind = it->words[1] ? WEIR__FOLLOWER_FETCHED
                                                                       : WEIR__FOLLOWER_POLLED,
                                                  .of = { it->words[0], it->words[2] } });
}

static void crash(int i)
{
    nodes[i].follower = (struct weir__follower){ .runs = nodes[i].copy };
    nodes[i].number += 1000;
    step(i, (struct weir__follower_event){ .kind = WEIR__FOLLOWER_TIME });
}

/* ----------------------------------------------------------------- a run ---- */

static void happen(const struct agenda_item *it)
{
    switch (it->kind) {
    case EDITS:
        edit(it->node, it->number);
        break;
    case PUT_ARRIVES:
        if (fails_over && one_in(4))
            replica = redis;
        int64_t version = put((int64_t)it->number, it->words[0], it->words[2], it->words[1] != 0);
        if (!(is_rough() && one_in(10)))
            schedule(PUT_RETURNS, it->node, delay(), it->number, version, 0, 0);
        break;
    case PUT_RETURNS:
        take_put_answer(it->node, it->number, it->words[0]);
        break;
    case DUE:
        if (!nodes[it->node].follower.busy && now >= nodes[it->node].due_at)
            step(it->node, (struct weir__follower_event){ .kind = WEIR__FOLLOWER_TIME });
        break;
    case ARRIVES:
        arrive(it);
        break;
    case RETURNS:
        take_answer(it);
        break;
    case TIMES_OUT:
        if (it->number == nodes[it->node].number && nodes[it->node].follower.busy)
            step(it->node, (struct weir__follower_event){ .kind = WEIR__FOLLOWER_FAILED });
        break;
    case CRASHES:
        crash(it->node);
        break;
    default:
        redis = replica;
    }
}

static void check_versions(void)
{
    for (int64_t v = 1; v <= redis.newest; v++)
        if (redis.versions[v].base != v - 1 ||
            redis.versions[v].base_edit != redis.versions[v - 1].edit)
            stop("a change was overwritten");
    if (!fails_over && redis.newest < answered)
        stop("a change that was answered is not there");
}

static void check_node(int i)
{
    const struct weir__follower *f = &nodes[i].follower;
    int64_t meant = meant_for(i), edit = redis.versions[meant].edit;
    bool wrong = redis.versions[meant].wrong;

    if (meant > 0 && !wrong && (f->runs.version != meant || f->runs.edit != edit))
        stop("a node does not run its version");
    if (wrong && (f->refused.version != meant || f->refused.edit != edit))
        stop("a node has not refused a wrong version");
    if (redis.runs[i] != f->runs.version || redis.refused[i] != f->refused.version)
        stop("a node's report is not what it runs");
}

static void begin_run(void)
{
    agenda.n = 0;
    now = 0;
    calm_at = 10 * WEIR_SECOND;
    memset(&redis, 0, sizeof(redis));
    redis.stage = -1;
    replica = redis;
    memset(nodes, 0, sizeof(nodes));
    memset(editors, 0, sizeof(editors));
    edits = answered = 0;
    fails_over = one_in(2);
    for (int i = 0; i < EDITORS; i++)
        schedule(EDITS, i, between(0, 500) * MS, 0, 0, 0, 0);
    for (int i = 0; i < NODES; i++)
        step(i, (struct weir__follower_event){ .kind = WEIR__FOLLOWER_TIME });
    for (int64_t faults = between(0, 6); faults > 0; faults--)
        schedule(fails_over && one_in(3) ? FAILS_OVER : CRASHES, int_between(0, NODES - 1),
                 between(0, 9000) * MS, 0, 0, 0, 0);
}

/* What was sent in the rough comes within 3 s; editors stop when their last change is answered. */
static void run(void)
{
    struct agenda_item it;

    begin_run();
    weir_time end = calm_at + 3 * WEIR_SECOND + 2 * WEIR_SECOND + 2 * WEIR__FOLLOWER_EVERY +
                    3 * WEIR__FOLLOWER_ASK;
    while (agenda_next(&agenda, &it) && it.at <= end) {
        now = it.at > now ? it.at : now;
        happen(&it);
    }
    check_versions();
    for (int i = 0; i < NODES; i++)
        check_node(i);
}

int main(int argc, char **argv)
{
    printf("%" PRIu64 " passed, 0 failed\n", play_rounds(argc, argv, 100, run));
    return 0;
}
