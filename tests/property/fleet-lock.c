/* fleet-lock.c -- nodes that want one lock, a Redis and a network that do what they can: a
 * simulation of lock.c by virtual time.
 *
 *     property-fleet-lock FIRST_SEED RUNS [trace]
 *
 * Asks and answers are late, lost, doubled and overtake each other; nodes are killed, or stand
 * still and go on; Redis stands still, or fails over and loses its last writes, to a server whose
 * clock differs.  The nodes' clocks run at different speeds.  A caller that has not had the lock
 * asks again under the same name.  The laws:
 *
 *     one holder   unless a failover loses writes, no two nodes rely on the lock at the same time
 *     growing      each grant has a larger token than all before it, failovers or not
 *     fenced       what obeys the largest token it has seen never obeys an older holder after it
 *     in order     where nothing fails, the first to come is the first to have it
 *     heals        after the last fault each node that wants the lock has it within a stated time
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet-agenda.h"
#include "fleet-lock-model.h"
#include "rounds.h"

#define NODES_MAX 6
#define MS        WEIR_MILLISECOND
#define ASKS      64 /* of a node that are remembered */

enum { ARRIVES, RETURNS, TIMES_OUT, DUE, ACTS, CRASHES, STOPS, GOES_ON, REDIS_STOPS, FAILS_OVER };

struct ask {
    enum weir__lock_verb verb;
    char id[24], ask[24], holder[24]; /* holder: as Redis has answered */
    int64_t life, token;
};

struct node {
    struct weir__lock lock;
    char id[24], ask[24]; /* ask: its caller's name for this try, or for several ... */
    bool asked;           /* ... that have not had the lock */
    int64_t speed;        /* of its clock, in millionths off */
    weir_time stopped_until, due_at;
    uint64_t number; /* of the ask under way */
    struct ask asks[ASKS];
    uint64_t asks_sent;
    int tries, grants;
    int64_t came; /* the order in which Redis first heard it this time; 0: not yet */
};

static struct agenda agenda;
static struct node nodes[NODES_MAX];
static int n_nodes;
static weir_time now, calm_at; /* no faults from then on */
static bool calm, lossy, fails_over, trace;
static struct model_lock redis, replica;
static weir_time redis_up_at, redis_ahead; /* its clock */
static int64_t last_token, arrivals, obeyed;

static void say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (trace) {
        fprintf(stderr, "%10.3f ms  ", (double)now / 1e6);
        vfprintf(stderr, format, list);
        fputc('\n', stderr);
    }
    va_end(list);
}

static void stop(const char *law)
{
    fprintf(stderr, "property-fleet-lock: seed %" PRIu64 " at %.3f ms: %s\n", seed_of_round,
            (double)now / 1e6, law);
    exit(1);
}

/* ------------------------------------------------------------------ nodes ---- */

static weir_time clock_of(const struct node *n)
{
    return now + now / 1000000 * n->speed + 5 * WEIR_SECOND;
}

static weir_time real_of(const struct node *n, weir_time local)
{
    weir_time span = local - clock_of(n);

    return local == WEIR_NEVER ? WEIR_NEVER : now + (span > 0 ? span + span / 500 : 0);
}

static bool relies(const struct node *n)
{
    return n->lock.phase == WEIR__LOCK_HELD && clock_of(n) < n->lock.until;
}

static weir_time delay(void)
{
    weir_time usual = between(100, 3000) * WEIR_MICROSECOND;

    if (calm || now >= calm_at || !lossy)
        return usual;
    return one_in(12) ? between(1, 3000) * MS : usual;
}

static bool is_lost(void)
{
    return lossy && now < calm_at && one_in(10);
}

static void schedule(int kind, int node, weir_time after, uint64_t number)
{
    agenda_add(&agenda, (struct agenda_item){
                            .at = now + after, .kind = kind, .node = node, .number = number });
}

static void send(int i, struct weir__lock_send what)
{
    struct node *n = &nodes[i];

    if (what.verb != WEIR__LOCK_NOTHING) {
        struct ask *ask = &n->asks[n->asks_sent % ASKS];
        n->number = n->asks_sent++;
        bool quits = what.verb == WEIR__LOCK_FREE && n->lock.phase == WEIR__LOCK_REFUSED;
        *ask = (struct ask){ .verb = quits ? WEIR__LOCK_QUIT : what.verb,
                             .life = n->lock.life / WEIR_MICROSECOND,
                             .token = n->lock.token };
        memcpy(ask->id, n->id, sizeof(ask->id));
        memcpy(ask->ask, n->ask, sizeof(ask->ask));
        say("%s sends %d", n->id, what.verb);
        if (!is_lost())
            schedule(ARRIVES, i, delay(), n->number);
        if (lossy && now < calm_at && one_in(10))
            schedule(ARRIVES, i, delay(), n->number);
        schedule(TIMES_OUT, i, what.timeout, n->number);
    }
    n->due_at = weir__lock_is_over(&n->lock) ? WEIR_NEVER : real_of(n, n->lock.due);
    if (n->due_at != WEIR_NEVER)
        schedule(DUE, i, n->due_at - now, 0);
}

static void check_one_holder(void)
{
    int holders = 0;

    for (int i = 0; i < n_nodes; i++)
        holders += relies(&nodes[i]);
    if (holders > 1 && !fails_over)
        stop("two nodes rely on the lock");
}

static void step(int i, struct weir__lock_event event)
{
    struct node *n = &nodes[i];
    enum weir__lock_phase before = n->lock.phase;

    send(i, weir__lock_step(&n->lock, &event, clock_of(n)));
    if (before != n->lock.phase)
        say("%s is %d, token %" PRId64, n->id, n->lock.phase, n->lock.token);
    if (before != WEIR__LOCK_HELD && n->lock.phase == WEIR__LOCK_HELD) {
        n->grants += now >= calm_at;
        n->came = 0;
        schedule(ACTS, i, between(1, 400) * MS, 0);
    }
    if (before == WEIR__LOCK_HELD)
        n->asked = false;
    if (before <= WEIR__LOCK_HELD && n->lock.phase > WEIR__LOCK_HELD)
        schedule(ACTS, i, between(1, 400) * MS, 0);
    check_one_holder();
}

/* Wants it, writes under its token, or gives it back. */
static void act(int i)
{
    struct node *n = &nodes[i];

    if (n->lock.phase == WEIR__LOCK_HELD) {
        obeyed = n->lock.token > obeyed ? n->lock.token : obeyed;
        if (relies(n) && n->lock.token < obeyed && !fails_over)
            stop("the holder's own token is not the largest");
        step(i, (struct weir__lock_event){ .kind = WEIR__LOCK_END, .span = 2 * WEIR_SECOND });
        return;
    }
    if (n->lock.phase == WEIR__LOCK_WAITING || !weir__lock_is_over(&n->lock)) {
        if (n->lock.phase != WEIR__LOCK_WAITING)
            schedule(ACTS, i, 100 * MS, 0);
        return;
    }
    n->tries++;
    n->came = 0;
    snprintf(n->id, sizeof(n->id), "n%d-%d", i, n->tries);
    if (!n->asked || one_in(3)) /* else it asks again, as if an answer had been lost */
        snprintf(n->ask, sizeof(n->ask), "a%d-%d", i, n->tries);
    n->asked = true;
    step(i, (struct weir__lock_event){ .kind = WEIR__LOCK_BEGIN,
                                       .span = one_in(4) && now < calm_at ? between(0, 2000) * MS
                                                                          : 3600 * WEIR_SECOND });
}

/* ------------------------------------------------------------------ Redis ---- */

static void check_grant(struct node *n, const struct model_answer *a)
{
    if (a->token <= last_token)
        stop("a token is not larger than all before it");
    for (int i = 0; calm && i < n_nodes; i++)
        if (nodes[i].lock.phase == WEIR__LOCK_WAITING && nodes[i].came && n->came &&
            nodes[i].came < n->came)
            stop("a node came first and is not first");
    last_token = a->token;
}

static void arrive(const struct agenda_item *it)
{
    struct node *n = &nodes[it->node];
    const struct ask *ask = &n->asks[it->number % ASKS];

    if (now < redis_up_at) { /* it stands still: what came is done later */
        agenda_put_off(&agenda, *it, redis_up_at + between(0, 1000));
        return;
    }
    if (fails_over && one_in(5))
        replica = redis;
    if (!n->came && strcmp(ask->id, n->id) == 0)
        n->came = ++arrivals;
    int64_t token = redis.token; /* a failover may bring an old grant back, with its own */
    struct model_answer a = model_ask(&redis, ask->verb, ask->id, ask->ask, ask->life, ask->token,
                                      (now + redis_ahead) / WEIR_MICROSECOND);
    snprintf(n->asks[it->number % ASKS].holder, sizeof(ask->holder), "%s", a.holder);
    if (a.token != token)
        check_grant(n, &a);
    if (is_lost())
        return;
    agenda_add(&agenda,
               (struct agenda_item){ .at = now + delay(),
                                     .kind = RETURNS,
                                     .node = it->node,
                                     .number = it->number,
                                     .words = { a.held, a.token, a.place, a.waiters, a.left } });
}

static void answer(const struct agenda_item *it, bool failed)
{
    struct node *n = &nodes[it->node];
    struct weir__lock_event event = { .kind = failed ? WEIR__LOCK_FAILED : WEIR__LOCK_ANSWER };

    if (it->number != n->number || n->lock.verb == WEIR__LOCK_NOTHING)
        return;                       /* it had its outcome */
    if (!failed && it->words[0] != 0) /* it has it under the name of another try, perhaps */
        memcpy(n->id, n->asks[it->number % ASKS].holder, sizeof(n->id));
    if (!failed)
        event.reply = (struct weir__lock_reply){ .held = it->words[0] != 0,
                                                 .token = it->words[1],
                                                 .place = it->words[2],
                                                 .waiters = it->words[3],
                                                 .left = it->words[4] * WEIR_MICROSECOND };
    step(it->node, event);
}

/* At least until then. */
static void stand_still(weir_time until)
{
    redis_up_at = until > redis_up_at ? until : redis_up_at;
}

/* The new master's clock is behind by less than the failover takes, though others are under way. */
static void fail_over(void)
{
    say("failover");
    redis = replica;
    stand_still((now > redis_up_at ? now : redis_up_at) + between(100, 3000) * MS);
    redis_ahead += between(-50, 50) * MS;
}

/* ----------------------------------------------------------------- a run ---- */

static void crash(int i)
{
    struct node *n = &nodes[i];
    weir_time life = n->lock.life;

    say("%s crashes", n->id);
    n->lock = (struct weir__lock){ .life = life };
    n->number = UINT64_MAX;
    schedule(ACTS, i, between(1, 2000) * MS, 0);
}

static void happen(const struct agenda_item *it)
{
    struct node *n = &nodes[it->node];

    if (it->kind != ARRIVES && it->kind < REDIS_STOPS && now < n->stopped_until) {
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
        answer(it, true);
        break;
    case DUE:
        if (now >= n->due_at) /* otherwise there is a later one */
            step(it->node, (struct weir__lock_event){ .kind = WEIR__LOCK_TIME });
        break;
    case ACTS:
        act(it->node);
        break;
    case CRASHES:
        crash(it->node);
        break;
    case STOPS:
        n->stopped_until = now + between(10, 5000) * MS;
        break;
    case REDIS_STOPS:
        stand_still(now + between(10, 5000) * MS);
        break;
    default:
        fail_over();
    }
}

static void invent_faults(void)
{
    int64_t faults = calm ? 0 : between(0, 8);

    for (int64_t i = 0; i < faults; i++) {
        int kind = int_between(0, 3);
        schedule(kind == 0                  ? CRASHES
                 : kind == 1                ? STOPS
                 : kind == 2 || !fails_over ? REDIS_STOPS
                                            : FAILS_OVER,
                 int_between(0, n_nodes - 1), between(0, 15000) * MS, 0);
    }
}

static void begin_run(void)
{
    agenda.n = 0;
    now = 1000 * WEIR_SECOND; /* since 1970, in effect */
    memset(nodes, 0, sizeof(nodes));
    memset(&redis, 0, sizeof(redis));
    memset(&replica, 0, sizeof(replica));
    n_nodes = int_between(2, NODES_MAX);
    calm = one_in(4);
    lossy = !calm && one_in(2);
    fails_over = !calm && one_in(2);
    calm_at = now + 20 * WEIR_SECOND;
    redis_up_at = redis_ahead = 0;
    last_token = arrivals = obeyed = 0;
    weir_time life = between(50, 4000) * MS;
    for (int i = 0; i < n_nodes; i++) {
        nodes[i].lock.life = one_in(2) ? life : between(50, 4000) * MS;
        nodes[i].speed = between(-3000, 3000);
        nodes[i].number = UINT64_MAX;
        schedule(ACTS, i, between(0, 1000) * MS, 0);
    }
    invent_faults();
}

/* Ghosts of the faults live for a lifetime, and a place in line for 2 s, after at most 5 s that
 * somebody stood still; then each holds it for 0.4 s and hands it over within 0.1 s. */
static void run(void)
{
    struct agenda_item it;

    begin_run();
    weir_time end = calm_at + (5 + 4 + 4 + 2 * n_nodes) * WEIR_SECOND;
    while (agenda_next(&agenda, &it) && it.at <= end) {
        now = it.at > now ? it.at : now;
        happen(&it);
    }
    for (int i = 0; i < n_nodes; i++)
        if (nodes[i].grants == 0)
            stop("a node that wants the lock does not get it");
}

int main(int argc, char **argv)
{
    trace = argc > 3;
    printf("%" PRIu64 " passed, 0 failed\n", play_rounds(argc, argv, 100, run));
    return 0;
}
