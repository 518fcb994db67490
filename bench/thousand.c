/* thousand.c [NODES] -- a fleet of a thousand nodes and a million asks per second, on virtual time:
 * the real code of a node, and accounts that answer as Redis does (tests/sim/fleet-world.h).
 *
 *     load       commands per second at Redis for 1, 10 and 100 keys, and the limit's use
 *     scripts    one key, and Redis is busy with each draw for as long as a script takes;
 *     module     and as the module takes
 *     members    the beats of all; how long until all know of a death
 *     change     how long until all run rules that were published
 *
 * Prints name, value, unit, by tabs.  scripts/thousand-picture.py draws it.
 */
#include "fleet-agenda.h"
#include "member-shares-model.h"
#include "cluster/fleet/rules-follower.h"
#include "sim/fleet-laws.h"

#define ASKS    1000000.0 /* per second, of all nodes */
#define LENGTH  (3 * S)
#define SETTLED (3 * S / 2) /* from here on it is measured: the bursts are over */
#define TRIP    (250 * US)  /* one way */
#define SCRIPT  (40 * US)   /* of Redis, for a draw or a beat; measured, as are the next two */
#define MODULE  (8 * US)
#define POLL    (20 * US)

static void tell(const char *what, const char *name, double value, const char *unit)
{
    printf("thousand %s, %s\t%.4g\t%s\n", what, name, value, unit);
}

/* -------------------------------------------------------------------- load ---- */

static void ask_evenly(struct story *s)
{
    random_state = 1;
    for (int n = 0; n < s->nodes; n++)
        for (int k = 0; k < s->keys; k++)
            add_asks(s, n, ASKS / s->nodes / s->keys, 0, s->length,
                     (struct event){ .kind = EVENT_ASK, .limits = 1, .n = 1, .key = (uint8_t)k });
    put_in_order(s);
}

static double used(const struct story *s, const struct outcome *o)
{
    double passed = 0;

    for (int k = 0; k < s->keys; k++)
        passed += (double)passed_between(&o->accounts[0][k], -1, SETTLED, s->length);
    return passed / (rate_of(&o->plans[0]) * s->keys * (double)(s->length - SETTLED));
}

static double least_part(const struct story *s, const struct outcome *o)
{
    int64_t least = INT64_MAX, all = 0;

    for (int n = 0; n < s->nodes; n++) {
        all += o->granted[n];
        least = o->granted[n] < least ? o->granted[n] : least;
    }
    return (double)least * s->nodes / (double)all;
}

/* Twice the limit is asked for; `command` is how long Redis is busy with each draw. */
static void load(const char *title, int nodes, int keys, weir_time command)
{
    static char limit[64], what[64];
    struct story s = { .seed = 1,
                       .share = true,
                       .nodes = nodes,
                       .n_limits = 1,
                       .keys = keys,
                       .limits = { limit },
                       .length = LENGTH,
                       .trip = TRIP,
                       .patience = 20 * MS,
                       .command = command,
                       .counted_from = SETTLED };
    double seconds = (double)(LENGTH - SETTLED) / 1e9;

    snprintf(limit, sizeof(limit), "token-bucket %d/1s", (int)(ASKS / 2 / keys));
    snprintf(what, sizeof(what), "%s, %d nodes, %d %s", title, nodes, keys,
             keys == 1 ? "key" : "keys");
    ask_evenly(&s);
    const struct outcome *o = fleet_run(&s);
    const char *law = law_broken(&s, o);
    tell(what, "draws", (double)(o->commands - o->repays) / seconds, "commands/s");
    tell(what, "paid back", (double)o->repays / seconds, "commands/s");
    tell(what, "admitted / limit", used(&s, o), "ratio");
    tell(what, "least part of a node", least_part(&s, o), "ratio");
    tell(what, "decided alone or late", (double)(o->alone + o->late) / (ASKS * seconds), "ratio");
    if (law != NULL)
        fprintf(stderr, "thousand %s: law broken: %s\n", what, law);
}

/* ------------------------------------------------------- members and change ---- */

enum { BEAT_DUE, BEAT_ARRIVES, BEAT_RETURNS, POLL_DUE, POLL_ARRIVES, POLL_RETURNS, LOOK };

#define JOINED (3 * S) /* all are members, and have their parts */
#define STEP   (50 * MS)

static struct {
    struct agenda agenda;
    weir_time now, busy_until;
    int nodes;
    struct model_fleet redis;
    struct {
        struct weir__member member;
        struct weir__member_send sent;
        struct weir__follower follower;
        char id[24];
        int64_t part_before;
    } of[MODEL_MEMBERS];
    int64_t beats, polls, version;
    int dead; /* -1: nobody */
} t;

static void at(weir_time when, int kind, int node, const struct weir__member_answer *a,
               struct weir__edition of)
{
    struct agenda_item item = { .at = when, .kind = kind, .node = node };

    if (a != NULL)
        memcpy(item.words, (int64_t[]){ a->offer, a->members, a->granted, a->learning },
               4 * sizeof(*item.words));
    else
        memcpy(item.words, (int64_t[]){ of.version, of.edit }, 2 * sizeof(*item.words));
    agenda_add(&t.agenda, item);
}

static const struct weir__edition none;

static void step_member(int n, struct weir__member_event event)
{
    struct weir__member_send send = weir__member_step(&t.of[n].member, &event, t.now);

    if (send.verb == WEIR__MEMBER_BEATS) {
        t.of[n].sent = send;
        at(t.now + TRIP, BEAT_ARRIVES, n, NULL, none);
    } else if (!t.of[n].member.asking) {
        at(t.of[n].member.due, BEAT_DUE, n, NULL, none);
    }
}

/* Rules that are fetched are applied at once. */
static void step_follower(int n, struct weir__follower_event event)
{
    struct weir__follower_do what = weir__follower_step(&t.of[n].follower, &event, t.now);

    if (what.verb == WEIR__FOLLOWER_APPLY)
        what = weir__follower_step(&t.of[n].follower,
                                   &(struct weir__follower_event){ .kind = WEIR__FOLLOWER_APPLIED },
                                   t.now);
    if (what.verb == WEIR__FOLLOWER_NOTHING)
        at(t.of[n].follower.due, POLL_DUE, n, NULL, none);
    else
        at(t.now + TRIP, POLL_ARRIVES, n, NULL,
           (struct weir__edition){ what.verb == WEIR__FOLLOWER_FETCH, 0 });
}

/* One after another. */
static weir_time answered_at(weir_time command)
{
    weir_time from = t.busy_until > t.now ? t.busy_until : t.now;

    t.busy_until = from + command;
    return t.busy_until + TRIP;
}

static void beat_arrives(int n)
{
    const struct weir__member_send *sent = &t.of[n].sent;
    struct model_beat b = { .id = t.of[n].id,
                            .seq = sent->seq,
                            .weight = 1,
                            .want = WEIR__PART_ONE,
                            .part = sent->part,
                            .beat = t.of[n].member.beat / US };
    struct weir__member_answer a = model_beat(&t.redis, &b, 1, t.now / US);

    t.beats++;
    at(answered_at(SCRIPT), BEAT_RETURNS, n, &a, none);
}

static void poll_arrives(int n, bool fetch)
{
    t.polls++;
    at(answered_at(POLL), POLL_RETURNS, n, NULL,
       (struct weir__edition){ t.version, fetch ? -1 : 1 });
}

static void happen_to(const struct agenda_item *e)
{
    if (e->node == t.dead)
        return;
    switch (e->kind) {
    case BEAT_DUE:
        step_member(e->node, (struct weir__member_event){ .kind = WEIR__MEMBER_TIME });
        break;
    case BEAT_ARRIVES:
        beat_arrives(e->node);
        break;
    case BEAT_RETURNS:
        step_member(e->node,
                    (struct weir__member_event){ .kind = WEIR__MEMBER_ANSWER,
                                                 .answer = { .offer = e->words[0],
                                                             .members = e->words[1],
                                                             .granted = e->words[2],
                                                             .learning = e->words[3] != 0 } });
        break;
    case POLL_DUE:
        step_follower(e->node, (struct weir__follower_event){ .kind = WEIR__FOLLOWER_TIME });
        break;
    case POLL_ARRIVES:
        poll_arrives(e->node, e->words[0] != 0);
        break;
    default:
        step_follower(e->node, (struct weir__follower_event){ .kind = e->words[1] < 0
                                                                          ? WEIR__FOLLOWER_FETCHED
                                                                          : WEIR__FOLLOWER_POLLED,
                                                              .of = { e->words[0], 1 } });
        break;
    }
}

static void run_until(weir_time when)
{
    struct agenda_item item;

    while (t.agenda.n > 0 && t.agenda.items[0].at <= when && agenda_next(&t.agenda, &item)) {
        t.now = item.at;
        happen_to(&item);
    }
    t.now = when;
}

static void begin_fleet(int nodes)
{
    t.nodes = nodes;
    t.dead = -1;
    t.version = 1;
    random_state = 1;
    for (int n = 0; n < nodes; n++) {
        snprintf(t.of[n].id, sizeof(t.of[n].id), "node-%d", n);
        t.of[n].member =
            (struct weir__member){ .beat = WEIR__MEMBER_BEAT, .weight = 1, .want = WEIR__PART_ONE };
        at(between(0, WEIR__MEMBER_BEAT), BEAT_DUE, n, NULL, none);
        at(between(0, WEIR__FOLLOWER_EVERY), POLL_DUE, n, NULL, none);
    }
}

/* Nodes of which something holds. */
static int count(bool (*holds)(int n))
{
    int known = 0;

    for (int n = 0; n < t.nodes; n++)
        known += n != t.dead && holds(n);
    return known;
}

/* And has its part of the dead one's part. */
static bool has_heard(int n)
{
    return t.of[n].member.members < t.nodes &&
           weir__member_part(&t.of[n].member, t.now) > t.of[n].part_before;
}

static bool runs_it(int n)
{
    return t.of[n].follower.runs.version == t.version;
}

/* From `begin` on, until it holds for all. */
static void watch(const char *what, bool (*holds)(int n))
{
    weir_time begin = t.now, last = 0;
    int all = t.nodes - (t.dead >= 0), known = 0;
    char name[64];

    for (weir_time after = 0; known < all && after < 20 * S; after += MS) {
        run_until(begin + after);
        known = count(holds);
        if (after % STEP == 0 || known == all) {
            snprintf(name, sizeof(name), "after %d ms", (int)(after / MS));
            tell(what, name, known, "nodes");
        }
        last = after;
    }
    tell(what, "all", (double)(last / MS), "ms");
}

static void members_and_change(int nodes)
{
    weir_time begin = JOINED;
    int64_t sum = 0;

    begin_fleet(nodes);
    run_until(begin);
    t.beats = t.polls = 0;
    run_until(begin + S);
    tell("members", "beats", (double)t.beats, "commands/s");
    tell("members", "polls for rules", (double)t.polls, "commands/s");
    tell("members", "Redis is busy with both",
         ((double)t.beats * SCRIPT + (double)t.polls * POLL) / 1e9, "of a core");
    for (int n = 0; n < nodes; n++)
        sum += t.of[n].part_before = weir__member_part(&t.of[n].member, t.now);
    tell("members", "sum of parts", (double)sum / WEIR__PART_ONE, "ratio");
    t.version++;
    watch("change", runs_it);
    t.dead = nodes / 2;
    watch("death", has_heard);
}

int main(int argc, char **argv)
{
    int most = argc > 1 ? atoi(argv[1]) : NODES_MAX;

    for (int nodes = 10; nodes <= most; nodes *= 10)
        for (int keys = 1; keys <= 100; keys *= 10)
            load("load", nodes, keys, 0);
    load("scripts", most, 1, SCRIPT);
    load("module", most, 1, MODULE);
    members_and_change(most);
    return 0;
}
