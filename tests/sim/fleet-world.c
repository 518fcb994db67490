/* fleet-world.c -- a fleet on virtual time: its story. */
#include "sim/fleet-inside.h"

struct fleet_sim sim;

static bool is_stalled(int node)
{
    return sim.now < sim.nodes[node].stalled_until;
}

static void happen(const struct event *e)
{
    struct node *node = &sim.nodes[e->node];

    switch (e->kind) {
    case EVENT_ASK:
        if (!is_stalled(e->node))
            fleet_ask(e);
        break;
    case EVENT_STALL:
        node->stalled_until = sim.now + e->span;
        break;
    case EVENT_CRASH:
    case EVENT_RETIRE:
        fleet_stop_node(e->node, e->span, e->kind == EVENT_RETIRE);
        break;
    case EVENT_CUT:
        node->cut_until = sim.now + e->span;
        break;
    case EVENT_LOSSY:
        sim.lossy_until = sim.now + e->span;
        sim.lossy = e->n;
        break;
    case EVENT_STOP:
        sim.stopped_until = sim.now + e->span;
        break;
    case EVENT_COPY:
        fleet_copy_redis();
        break;
    case EVENT_FAIL:
        fleet_fail_over(e->span);
        break;
    case EVENT_STEP:
        node->skew += e->span;
        sim.o.step_back = -e->span > sim.o.step_back ? -e->span : sim.o.step_back;
        fleet_turn(e->node);
        break;
    default:
        break;
    }
}

static void turn_at_last(int n, uint64_t life)
{
    struct node *node = &sim.nodes[n];

    if (node->life != life || node->turn_at != sim.now)
        return;
    node->turn_at = INT64_MAX;
    fleet_turn(n);
}

/* Whose event it is; letters and waits have numbers too. */
static int node_of(const struct agenda_item *e)
{
    return e->kind == TO_NODE    ? sim.letters[e->node].node
           : e->kind == DEADLINE ? sim.waits[e->node].node
           : e->kind == TURN     ? e->node
                                 : -1;
}

/* When it goes on, it reads what has come before it looks at deadlines. */
static bool is_put_off(const struct agenda_item *e)
{
    int node = node_of(e);

    if (node < 0 || !is_stalled(node))
        return false;
    weir_time until = sim.nodes[node].stalled_until;
    if (e->kind == TURN && sim.nodes[node].turn_at == sim.now)
        sim.nodes[node].turn_at = until;
    agenda_put_off(&sim.agenda, *e, until + (e->kind == DEADLINE));
    return true;
}

static void handle(const struct agenda_item *e)
{
    if (is_put_off(e))
        return;
    switch (e->kind) {
    case TURN:
        turn_at_last(e->node, e->number);
        break;
    case TO_REDIS:
        fleet_at_redis(e->node);
        break;
    case TO_NODE:
        fleet_read_answer(fleet_read_letter(e->node));
        break;
    case DEADLINE:
        fleet_give_up(e->node, (uint32_t)e->number);
        break;
    case BEAT:
        fleet_beat(e->node);
        break;
    default:
        fleet_start_node(e->node);
        break;
    }
}

static void begin(const struct story *story)
{
    for (int l = 0; l < LIMITS_MAX; l++)
        for (int k = 0; k < KEYS_MAX; k++) {
            free(sim.o.accounts[l][k].passed);
            free(sim.o.accounts[l][k].shares);
        }
    struct agenda agenda = { .items = sim.agenda.items, .room = sim.agenda.room };
    memset(&sim, 0, sizeof(sim));
    sim.agenda = agenda;
    sim.story = story;
    sim.dice = story->seed;
    sim.answer.limit = -1;
    for (int i = 0; i < LETTERS; i++)
        sim.letters[i].next = i + 1 < LETTERS ? i + 1 : -1;
    for (int l = 0; l < story->n_limits; l++) {
        struct weir_limit limit;
        if (weir_limit_parse(&limit, story->limits[l], NULL) != WEIR_OK ||
            weir__plan_make(&sim.o.plans[l], &limit, NULL) != WEIR_OK ||
            weir__fleet_limit_make(&sim.o.limits[l], &sim.o.plans[l], NULL) != WEIR_OK ||
            sim.o.plans[l].state_size > sizeof(sim.o.accounts[l][0].state))
            abort();
    }
    for (int n = 0; n < story->nodes; n++) {
        sim.nodes[n].skew = dice(2 * 3600 * S) - 3600 * S;
        sim.o.part[n] = WEIR__FLEET_WHOLE / (uint32_t)story->nodes;
        fleet_start_node(n);
        if (story->lend)
            add(dice(WEIR__MEMBER_BEAT), BEAT, n, 0);
    }
}

const struct outcome *fleet_run(const struct story *story)
{
    size_t next = 0; /* of the story */

    begin(story);
    while (sim.agenda.n > 0 || next < story->n) {
        bool told = next < story->n &&
                    (sim.agenda.n == 0 || story->events[next].at <= sim.agenda.items[0].at);
        struct agenda_item item;
        if (!told)
            agenda_next(&sim.agenda, &item);
        sim.now = told ? story->events[next].at : item.at;
        if (sim.now > story->length)
            break;
        if (told)
            happen(&story->events[next++]);
        else
            handle(&item);
    }
    for (int n = 0; n < story->nodes; n++)
        weir__fleet_destroy(sim.nodes[n].fleet);
    return &sim.o;
}
