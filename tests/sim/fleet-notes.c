/* fleet-notes.c SEED ROUNDS -- random stories of bans that nodes of a fleet make and lift: the real
 * notes of an agent and real tables, on virtual time, with a Redis that is stopped, emptied and
 * fails over without its last writes, a network that loses, doubles and delays, nodes that crash,
 * are cut off and stopped, and clocks that differ.
 *
 * Laws, each both ways: for bans and for lifts.
 *
 *     all agree        HEAL after the last fault and change, all nodes have the same keys banned
 *     the last counts  a change that nobody else has made at the same time is on all nodes after
 *                      KNOWN, and stays whatever happens to Redis
 *     lifts win        of a ban and a lift that do not know of each other, the lift counts
 *     longer ones win  of two bans that do not know of each other
 *     Redis knows      what all agree on is what a newcomer is told
 *
 * A story that breaks a law is made as short as it gets, and printed.
 */
#include <inttypes.h>

#include "cluster/agent/agent.h"
#include "fleet-agenda.h"
#include "fleet-notes-model.h"
#include "rounds.h"
#include "table/bans.h"
#include "table/agent-lease.h"

#define MS    WEIR_MILLISECOND
#define S     WEIR_SECOND
#define HOUR  (3600 * S)
#define BEGIN (1000000 * S) /* of every clock, or about */
#define TICK  (100 * MS)    /* a turn of an agent that nothing wakes */
#define BEAT  WEIR__MEMBER_BEAT
#define KNOWN (500 * MS)
#define HEAL  (2500 * MS)
#define LATE  (5 * S) /* ends differ by the time that messages lay about */

enum { NODES = 5, KEYS = 6, LETTERS = 512, EVENTS = 200 };

enum kind { BAN, LIFT, CRASH, RENEW, CUT, HALT, LOSSY, STOP, COPY, FAIL, EMPTY, CHECK, KINDS };
static const char *const names[] = { "ban",   "lift", "crash", "renew", "cut",   "halt",
                                     "lossy", "stop", "copy",  "fail",  "empty", "check" };

struct event {
    weir_time at, span;
    enum kind kind;
    int node, key;
    int banned; /* of a check: -1: all agree; 0, 1: and so they do */
};

struct story {
    uint64_t seed;
    int nodes, n;
    weir_time trip, length;
    struct event events[EVENTS];
};

enum what { TURN, BEATS, AT_REDIS, AT_NODE, DEADLINE, REBIRTH, STORY };

struct letter {
    struct weir__buffer bytes;
    size_t n_words; /* 0: a beat */
    int node, next;
    uint64_t life, id; /* of the node, of the ask */
    int64_t last;      /* answered to a beat */
};

static struct sim {
    const struct story *story;
    weir_time now, lossy_until, stopped_until, ahead;
    struct agenda agenda;
    uint64_t dice;
    struct node {
        struct weir_fleet *f;
        struct weir__agent_limit limit;
        weir_time skew, cut_until, halted_until;
        uint64_t life, asked;
        bool up;
    } nodes[NODES];
    struct letter letters[LETTERS];
    int free_letter;
    struct model_notes redis, copy;
    int64_t run;
    const char *broken;
} sim;

static int64_t dice(int64_t n)
{
    return (int64_t)(random64(&sim.dice) % (uint64_t)n);
}

static void add(weir_time at, enum what what, int n, uint64_t number)
{
    agenda_add(&sim.agenda,
               (struct agenda_item){ .at = at, .kind = (int)what, .node = n, .number = number });
}

static weir_time node_now(int n)
{
    return BEGIN + sim.now + sim.nodes[n].skew;
}

/* ----------------------------------------------------------------- network ---- */

/* Delivered once, twice or never. */
static void post(enum what what, const struct letter *letter)
{
    bool lossy = sim.now < sim.lossy_until;
    int copies = !lossy || dice(3) > 0 ? 1 : (int)dice(3);

    if (sim.now < sim.nodes[letter->node].cut_until)
        return;
    for (int i = 0; i < copies && sim.free_letter >= 0; i++) {
        int n = sim.free_letter;
        struct letter *to = &sim.letters[n];
        struct weir__buffer bytes = to->bytes;
        sim.free_letter = to->next;
        bytes.len = 0;
        weir__buffer_add(&bytes, letter->bytes.bytes, letter->bytes.len);
        weir__buffer_add(&bytes, "", 1);
        *to = *letter;
        to->bytes = bytes;
        add(sim.now + sim.story->trip + dice(sim.story->trip) + (lossy ? dice(700 * MS) : 0), what,
            n, 0);
    }
}

static void free_letter(int n)
{
    sim.letters[n].next = sim.free_letter;
    sim.free_letter = n;
}

/* Redis, when it is not stopped: then letters wait, and their senders may have given up. */
static void at_redis(int n)
{
    struct letter *l = &sim.letters[n];
    struct weir__buffer answer = { 0 };
    int64_t now = (BEGIN + sim.now + sim.ahead) / WEIR_MICROSECOND;

    if (sim.now < sim.stopped_until) {
        add(sim.stopped_until, AT_REDIS, n, 0);
        return;
    }
    if (l->n_words > 0) {
        struct model_tale tale = model_tale_read(l->bytes.bytes, l->n_words);
        model_notes_call(&sim.redis, &tale, sim.run, now, &answer);
    }
    struct letter back = *l;
    back.last = sim.redis.last;
    back.bytes = answer;
    post(AT_NODE, &back);
    weir__buffer_free(&answer);
    free_letter(n);
}

/* ------------------------------------------------------------------- nodes ---- */

static void ask(int n)
{
    struct node *node = &sim.nodes[n];
    struct letter l = { .node = n, .life = node->life, .id = ++node->asked };

    l.n_words = weir__notes_say(node->f, node_now(n), &l.bytes);
    post(AT_REDIS, &l);
    weir__buffer_free(&l.bytes);
    add(sim.now + 500 * MS, DEADLINE, n, node->asked);
}

static void turn(int n)
{
    enum weir__notes_next next = WEIR__NOTES_LOOK;

    for (int i = 0; i < 20 && next == WEIR__NOTES_LOOK; i++)
        next = weir__notes_next(sim.nodes[n].f, node_now(n));
    if (next == WEIR__NOTES_ASK)
        ask(n);
}

static void at_node(int i)
{
    struct letter *l = &sim.letters[i];
    struct node *node = &sim.nodes[l->node];
    struct weir__text reply = { l->bytes.bytes, l->bytes.len - 1 };
    int n = l->node;
    bool known = node->up && node->life == l->life;

    if (sim.now < node->halted_until) {
        add(node->halted_until, AT_NODE, i, 0);
        return;
    }
    if (known && l->n_words == 0)
        weir__notes_heard(node->f, true, l->last);
    else if (known && l->id == node->asked && node->f->notes.asking)
        weir__notes_answer(node->f, &reply, node_now(n));
    free_letter(i);
    if (known)
        turn(n);
}

static void beat(int n)
{
    struct letter l = { .node = n, .life = sim.nodes[n].life };

    add(sim.now + BEAT, BEATS, n, 0);
    post(AT_REDIS, &l);
}

static bool learn_it(struct weir *weir, const struct weir__ban_lesson *lesson)
{
    return weir__ban_learn((struct weir_table *)weir, lesson);
}

static const struct weir__host host = { .ban_places = weir__ban_places,
                                        .ban_read = weir__ban_read,
                                        .ban_learn = learn_it };

/* Secrets are always the same: a story is. */
static struct weir_table *new_table(void)
{
    struct weir_table *table;

    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 64, .bans = 64 }, NULL) !=
        WEIR_OK)
        abort();
    for (size_t i = 0; i < WEIR__HASH_SECRETS; i++)
        table->secrets[i] = WEIR__GOLDEN * (i + 1);
    weir__fleet_renew(table, WEIR__FLEET_AWAY);
    return table;
}

static void start_node(int n, bool renew)
{
    struct node *node = &sim.nodes[n];
    struct weir_fleet *f = node->f;

    if (renew && f->table) {
        weir_table_destroy(f->table);
        f->table = NULL;
    }
    f->table = f->table ? f->table : new_table();
    f->weir = (struct weir *)f->table;
    f->host = &host;
    f->agent = true;
    node->limit.rule = "rule";
    if (f->limits == NULL)
        weir__limit_add(f, &node->limit);
    strcpy(f->name, "sim");
    weir__notes_begin(f);
    f->notes.asking = false;
    node->life++;
    node->up = true;
}

/* Whether the key is banned at a node, and for how long yet. */
static weir_time left(int n, int key)
{
    const struct weir_table *table = sim.nodes[n].f->table;
    char text = (char)('a' + key);
    uint64_t tag = weir__ban_tag(table, "rule", (struct weir_key){ &text, 1 });
    weir_time until = weir__ban_peek(table, tag, node_now(n));

    return until > 0 ? until - node_now(n) : 0;
}

static void edit(const struct event *e)
{
    struct node *node = &sim.nodes[e->node];
    char text = (char)('a' + e->key);
    struct weir_key key = { &text, 1 };
    uint64_t tag = weir__ban_tag(node->f->table, "rule", key);
    weir_time now = node_now(e->node);

    if (!node->up || sim.now < node->halted_until)
        return;
    if (e->kind == BAN)
        weir__ban_put(node->f->table, tag, "rule", key, now, now + e->span);
    else
        weir__ban_lift(node->f->table, tag, now);
}

/* -------------------------------------------------------------------- laws ---- */

static void broken(const char *law)
{
    sim.broken = sim.broken ? sim.broken : law;
}

static void check(const struct event *e)
{
    weir_time first = left(0, e->key);
    char name[] = { 'b', 'r', 'u', 'l', 'e', 0, (char)('a' + e->key) };
    const struct model_note *note = model_note_find(&sim.redis, name, sizeof(name));
    int64_t now = (BEGIN + sim.now + sim.ahead) / WEIR_MICROSECOND;

    for (int n = 0; n < sim.story->nodes; n++) {
        weir_time here = left(n, e->key);
        if ((here > 0) != (first > 0) || llabs(here - first) > LATE)
            broken("all agree");
        if (e->banned >= 0 && (here > 0) != e->banned)
            broken(e->banned ? "a ban counts" : "a lift counts");
        if (e->banned == 1 && e->span > 0 && llabs(here - e->span) > 20 * S)
            broken("the longer ban counts");
    }
    if ((note && note->strikes > 0 && note->fin > now) != (first > 0))
        broken("Redis knows");
}

/* ------------------------------------------------------------------- story ---- */

static void fail_over(const struct event *e)
{
    if (e->kind == FAIL)
        sim.redis = sim.copy;
    else
        sim.redis = (struct model_notes){ .n = 0 };
    sim.run += e->kind == FAIL || e->key % 2 == 0; /* or somebody has emptied it */
    sim.ahead += e->kind == FAIL ? e->span : 0;
}

static void happen(const struct event *e)
{
    struct node *node = &sim.nodes[e->node];

    switch (e->kind) {
    case BAN:
    case LIFT:
        edit(e);
        break;
    case CRASH:
    case RENEW:
        node->up = false;
        add(sim.now + e->span, REBIRTH, e->node, e->kind == RENEW);
        break;
    case CUT:
        node->cut_until = sim.now + e->span;
        break;
    case HALT:
        node->halted_until = sim.now + e->span;
        break;
    case LOSSY:
        sim.lossy_until = sim.now + e->span;
        break;
    case STOP:
        sim.stopped_until = sim.now + e->span;
        break;
    case COPY:
        sim.copy = sim.redis;
        break;
    case CHECK:
        check(e);
        break;
    default:
        fail_over(e);
        break;
    }
}

/* A node that is down does nothing, and one that is halted does it later. */
static void at_its_time(const struct agenda_item *i)
{
    struct node *node = &sim.nodes[i->node];

    if (sim.now < node->halted_until) {
        agenda_put_off(&sim.agenda, *i, node->halted_until);
        return;
    }
    if (i->kind == BEATS) {
        if (node->up)
            beat(i->node);
        else
            add(sim.now + BEAT, BEATS, i->node, 0);
        return;
    }
    if (i->kind == TURN)
        add(sim.now + TICK, TURN, i->node, 0);
    if (!node->up)
        return;
    if (i->kind == DEADLINE) {
        if (i->number != node->asked || !node->f->notes.asking)
            return;
        weir__notes_answer(node->f, NULL, node_now(i->node));
    }
    turn(i->node);
}

static void handle(const struct agenda_item *i)
{
    switch (i->kind) {
    case AT_REDIS:
        at_redis(i->node);
        break;
    case AT_NODE:
        at_node(i->node);
        break;
    case REBIRTH:
        start_node(i->node, i->number != 0);
        break;
    case STORY:
        happen(&sim.story->events[i->node]);
        break;
    default:
        at_its_time(i);
        break;
    }
}

static void begin(const struct story *s)
{
    struct agenda agenda = { .items = sim.agenda.items, .room = sim.agenda.room };
    static struct weir_fleet fleets[NODES];

    for (int i = 0; i < LETTERS; i++)
        weir__buffer_free(&sim.letters[i].bytes);
    sim = (struct sim){ .story = s, .agenda = agenda, .dice = s->seed, .run = 1 };
    for (int i = 0; i < LETTERS; i++)
        sim.letters[i].next = i + 1 < LETTERS ? i + 1 : -1;
    for (int n = 0; n < s->nodes; n++) {
        sim.nodes[n].f = &fleets[n];
        sim.nodes[n].skew = dice(2) ? 0 : dice(2 * HOUR) - HOUR;
        start_node(n, true);
        add(dice(BEAT), BEATS, n, 0);
        add(dice(TICK), TURN, n, 0);
    }
    for (int i = 0; i < s->n; i++)
        add(s->events[i].at, STORY, i, 0);
}

/* The name of the law that is broken, or NULL. */
static const char *judge(const struct story *s)
{
    struct agenda_item i;

    begin(s);
    while (agenda_next(&sim.agenda, &i) && i.at <= s->length && sim.broken == NULL) {
        sim.now = i.at;
        handle(&i);
    }
    return sim.broken;
}

/* ------------------------------------------------------------------ invent ---- */

static struct event *tell(struct story *s, weir_time at, enum kind kind)
{
    struct event *e = &s->events[s->n++];

    *e = (struct event){ .at = at, .kind = kind };
    e->node = int_between(0, s->nodes - 1);
    e->key = int_between(0, KEYS - 1);
    return e;
}

static struct event *change(struct story *s, weir_time at)
{
    struct event *e = tell(s, at, one_in(3) ? LIFT : BAN);

    e->span = one_in(6) ? between(1, 1500) * MS : between(1, 3) * HOUR;
    return e;
}

static void check_at(struct story *s, weir_time at, int key, int banned)
{
    struct event *e = tell(s, at, CHECK);

    e->key = key;
    e->banned = banned;
}

/* Anything, with faults; returns when all is over. */
static weir_time tumult(struct story *s, weir_time from)
{
    weir_time last = from, to = from + 3 * S;
    int changes = int_between(1, 20), faults = int_between(0, 8);

    for (int i = 0; i < changes; i++)
        change(s, between(from, to));
    for (int i = 0; i < faults; i++) {
        enum kind kind = (enum kind)between(CRASH, EMPTY);
        struct event *e = tell(s, between(from, to), kind);
        e->span = between(1, one_in(3) ? 3000 : 500) * MS;
        weir_time over = e->at + e->span;
        if (kind == FAIL)
            e->span = between(-20, 50) * MS;
        if (kind == FAIL)
            tell(s, over - e->span - between(0, 400) * MS, COPY);
        last = over > last ? over : last;
    }
    last = last > to ? last : to;
    for (int key = 0; key < KEYS; key++)
        check_at(s, last + HEAL, key, -1);
    return last + HEAL;
}

/* A change of each key, one after another, and then perhaps a fault of Redis: they count. */
static weir_time changes_that_count(struct story *s, weir_time at)
{
    weir_time copied = at + between(0, 2 * S);
    enum kind last[KEYS];

    for (int key = 0; key < KEYS; key++) {
        struct event *e = change(s, at);
        e->key = key;
        e->span = HOUR;
        last[key] = e->kind;
        check_at(s, at + KNOWN, key, e->kind == BAN);
        at += between(0, 400) * MS;
    }
    at += KNOWN;
    if (one_in(4))
        return at;
    tell(s, copied < at ? copied : at, COPY);
    struct event *e = tell(s, at, one_in(4) ? EMPTY : one_in(4) ? STOP : FAIL);
    e->span = e->kind == FAIL ? between(0, 50) * MS : between(1, 1000) * MS;
    at += e->span;
    if (one_in(3)) /* which hides that something was lost */
        *tell(s, at - e->span + between(0, 200) * MS, BAN) =
            (struct event){ .at = at, .kind = BAN, .key = 20, .span = HOUR };
    for (int key = 0; key < KEYS; key++)
        check_at(s, at + HEAL, key, last[key] == BAN);
    return at + HEAL;
}

/* At the same moment, at two nodes: bans, or a ban before a lift of what was banned before. */
static weir_time changes_that_meet(struct story *s, weir_time at)
{
    for (int key = 0; key < KEYS && s->nodes > 1; key++) {
        tell(s, at - S, BAN)->span = HOUR;
        s->events[s->n - 1].key = key;
        struct event *one = tell(s, at, BAN), *two = tell(s, at, one_in(2) ? LIFT : BAN);
        one->key = two->key = key;
        two->node = (one->node + 1) % s->nodes;
        one->span = between(1, 10) * HOUR;
        two->span = between(11, 20) * HOUR;
        two->at += two->kind == LIFT ? between(0, 100) * MS : 0;
        check_at(s, at + KNOWN + S, key, two->kind == BAN);
        s->events[s->n - 1].span = two->kind == BAN ? two->span : 0;
        at += between(0, 50) * MS;
    }
    return at + KNOWN + S;
}

static struct story invent(uint64_t seed)
{
    random_state = seed;
    struct story s = { .seed = roll(),
                       .nodes = int_between(1, NODES),
                       .trip = between(50, one_in(4) ? 10000 : 500) * WEIR_MICROSECOND };
    weir_time at = 2 * S;

    at = tumult(&s, at);
    at = changes_that_count(&s, at + S);
    at = changes_that_meet(&s, at + 2 * S);
    s.length = at + S;
    return s;
}

/* Without one event after another, as long as the same law is broken.  Checks stay: they are the
 * law. */
static void shorten(struct story *s, const char *law)
{
    weir_time end = sim.now;

    for (int i = s->n - 1; i >= 0; i--) {
        struct story shorter = *s;
        memmove(&shorter.events[i], &shorter.events[i + 1],
                (size_t)(s->n - i - 1) * sizeof(*s->events));
        shorter.n--;
        bool counts = s->events[i].kind <= LIFT && s->events[i].at <= end &&
                      strcmp(law, "all agree") != 0 && strcmp(law, "Redis knows") != 0;
        const char *still = counts ? NULL : judge(&shorter);
        if (still != NULL && strcmp(still, law) == 0)
            *s = shorter;
    }
}

static void print_story(const struct story *s)
{
    fprintf(stderr, "  %d nodes, one way %.3f ms\n", s->nodes, (double)s->trip / 1e6);
    for (int i = 0; i < s->n; i++) {
        const struct event *e = &s->events[i];
        fprintf(stderr, "  %9.4f s  node %d  key %d  %s %.3f s", (double)e->at / 1e9, e->node,
                e->key, names[e->kind], (double)e->span / 1e9);
        fprintf(stderr, e->kind == CHECK ? " (%d)\n" : "\n", e->banned);
    }
}

static bool play(uint64_t seed)
{
    struct story s = invent(seed);
    const char *law = judge(&s);

    if (law == NULL)
        return true;
    fprintf(stderr, "fleet-notes.c: law broken: %s\n  again: sim-fleet-notes %" PRIu64 " 1\n", law,
            seed);
    shorten(&s, law);
    print_story(&s);
    return false;
}

int main(int argc, char **argv)
{
    return play_stories(argc, argv, play);
}
