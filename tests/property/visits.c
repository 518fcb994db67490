/* visits.c SEED ROUNDS -- laws of requests that wait in the queues of several guards, for random
 * rules and traffic, on virtual time, while rules change.
 *
 *     never too many      in flight is what was entered and has not come back, of every guard, and
 *                         never above its limit
 *     never for nothing   the first in a queue waits only while one of its guards is full; a
 *                         request is busy only at a full guard without a queue, or one that sheds
 *                         if the places of its priority are taken; full only at a full queue; late
 *                         only after its time, or if it would be; key-busy only if its key has all
 *                         of its permits, or enough waiters
 *     nobody forgotten    each request is decided once, or cancelled; the totals say the same; when
 *                         all work has ended, all who wait enter
 *
 * Prints the seed of the round that breaks one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/waiting-lines.h"
#include "guard/guard.h"
#include "random-rules.h"

enum { GUARDS = 3, SETS = 1 << GUARDS, VISITS = 30, STEPS = 400 };

/* --------------------------------------------------------------- rules ---- */

struct terms {
    int max, queue; /* queue 0: nobody waits there */
    int per_key;    /* 0: any number */
    bool shed;      /* those wait that fit */
    weir_time wait;
};

static struct terms terms[GUARDS];

/* A guard applies to the paths whose number has its bit. */
static void add_guard(int i)
{
    struct terms *t = &terms[i];

    *t = (struct terms){ int_between(1, 4), one_in(4) ? 0 : int_between(1, 6), 0, one_in(3),
                         int_between(1, 20) * 100 * WEIR_MILLISECOND };
    t->per_key = one_in(4) ? int_between(1, t->max < 2 ? t->max : 2) : 0;
    if (t->shed) {
        t->queue = t->queue > 0 ? t->queue : int_between(1, 30);
        t->wait = WEIR_SECOND;
    }
    add("- { name: g%d, lease: 1h, match: { uri: [", i);
    for (int set = 0, n = 0; set < SETS; set++)
        if (set >> i & 1)
            add("%s/%d", n++ ? ", " : "", set);
    if (t->per_key > 0)
        add("] }, concurrency: { max: %d, key: \"{header.k}\", total: %d", t->per_key, t->max);
    else
        add("] }, concurrency: { max: %d", t->max);
    if (t->queue > 0)
        add(", queue: %d%s", t->queue, one_in(3) ? ", order: priority" : "");
    if (t->queue > 0 && !t->shed)
        add(", wait: %dms", (int)(t->wait / WEIR_MILLISECOND));
    add(" }, priority: \"{header.p|0}\", shed: %s }\n", t->shed ? "true" : "false");
}

static void use_random_rules(struct weir *weir, weir_time now)
{
    struct weir_rules *rules;
    struct weir_error e;

    snprintf(yaml, sizeof(yaml), "version: 1\nguards:\n");
    for (int i = 0; i < GUARDS; i++)
        add_guard(i);
    if (weir_rules_parse(&rules, yaml, strlen(yaml), NULL, &e) || weir_use(weir, rules, now, &e))
        stop("%s", e.text);
}

/* ------------------------------------------------------------- requests ---- */

enum state { NOBODY, WAITS, WORKS };

struct guest {
    enum state state;
    int set, rank;
    char uri[8], priority[8], key[8];
    struct weir_attr attrs[3];
    weir_time came;
    struct weir_visit visit;
};

static struct weir *weir;
static struct guest guests[VISITS];
static weir_time now;
static int64_t allowed, refused;
static bool shed_before[GUARDS]; /* it may end with the ask that it refuses */

static struct weir_guard *guard_at(int i)
{
    struct weir_ruled_guard view;

    if (!weir_ruled_guard_next(weir, &(int64_t){ i }, &view))
        stop("there is no guard %d", i);
    return view.guard;
}

static int64_t in_flight(int i)
{
    return weir__get(&guard_at(i)->record->in_flight);
}

/* Or somebody waits there since before the rules changed, and has not had a turn yet. */
static bool is_full(int i)
{
    struct weir_ask ask = { .cost = 1, .now = now };

    return in_flight(i) >= terms[i].max || weir__line_is_occupied(weir, guard_at(i), &ask);
}

/* Those that are late take no place, told or not. */
static int64_t waiting_in_time(int i, const char *key)
{
    const struct weir__line *line = weir__line_find(weir, guard_at(i));
    int64_t n = 0;

    for (int k = 0; k < VISITS; k++) {
        const struct guest *g = &guests[k];
        n += g->state == WAITS && line != NULL && g->visit.line == line &&
             (g->visit.waiter.deadline == 0 || now <= g->visit.waiter.deadline) &&
             (key == NULL || strcmp(key, g->key) == 0);
    }
    return n;
}

/* While it does not shed: one half of the queue is for priorities above 0, and each of these leaves
 * a fourteenth of it to the next one. */
static bool has_place(int i, int rank)
{
    int64_t n = waiting_in_time(i, NULL);

    return rank >= 7 ? n < terms[i].queue
                     : n * 14 < (int64_t)terms[i].queue * (7 + (rank > 0 ? rank : 0));
}

/* While it sheds permits are spared, and who waits depends on what fits. */
static bool may_be_busy(int i, const struct guest *g)
{
    if (terms[i].shed && (guard_at(i)->record->shedding || shed_before[i]))
        return true;
    return is_full(i) && (terms[i].queue == 0 || g->visit.queue_max == 0 ||
                          (terms[i].shed && !has_place(i, g->rank)));
}

/* Its key has all of its permits, perhaps by one that has not been told yet, or as many waiters as
 * it may have. */
static bool may_be_key_busy(int i, const char *key)
{
    int64_t out = weir_guard_key_in_flight(guard_at(i), (struct weir_key){ key, strlen(key) }),
            waiting = waiting_in_time(i, key);

    return terms[i].per_key > 0 && (out >= terms[i].per_key || waiting >= terms[i].per_key ||
                                    waiting >= terms[i].queue - waiting_in_time(i, NULL));
}

/* A refusal has its reason. */
static void check_refused(const struct guest *g)
{
    const struct weir_ruling *r = &g->visit.ruling;
    int i = r->guard != NULL ? r->guard[1] - '0' : -1;

    if (i < 0 || (g->set >> i & 1) == 0)
        stop("refused by %s, for %d", r->guard ? r->guard : "nobody", g->set);
    enum weir_reason reason = (enum weir_reason)r->decision.reason;
    bool right = reason == WEIR_BUSY       ? may_be_busy(i, g)
                 : reason == WEIR_FULL     ? waiting_in_time(i, NULL) >= terms[i].queue
                 : reason == WEIR_KEY_BUSY ? may_be_key_busy(i, g->key)
                 : reason == WEIR_SHED     ? guard_at(i)->record->shedding
                                           : reason == WEIR_LATE;
    if (!right)
        stop("g%d refuses with %s: %d of %d, a queue of %d", i, weir_reason_name(reason),
             (int)in_flight(i), terms[i].max, terms[i].queue);
}

static void decided(struct guest *g)
{
    bool in = g->visit.ruling.decision.allowed;

    allowed += in;
    refused += !in;
    g->state = in ? WORKS : NOBODY;
    if (!in)
        check_refused(g);
    else if ((int)g->visit.entry.n != __builtin_popcount((unsigned)g->set))
        stop("%u guards entered, for %d", g->visit.entry.n, g->set);
}

static void on_turn(struct weir_visit *visit)
{
    struct guest *g = visit->context;

    if (g->state != WAITS)
        stop("decided twice");
    decided(g);
}

static struct guest *any_of(enum state state)
{
    int first = int_between(0, VISITS - 1);

    for (int i = 0; i < VISITS; i++)
        if (guests[(first + i) % VISITS].state == state)
            return &guests[(first + i) % VISITS];
    return NULL;
}

static void come(void)
{
    struct guest *g = any_of(NOBODY);

    if (g == NULL)
        return;
    *g = (struct guest){ .set = int_between(0, SETS - 1), .came = now };
    snprintf(g->uri, sizeof(g->uri), "/%d", g->set);
    g->rank = one_in(2) ? int_between(-2, 2) : int_between(-8, 7);
    snprintf(g->priority, sizeof(g->priority), "%d", g->rank);
    snprintf(g->key, sizeof(g->key), "%d", int_between(1, 4));
    g->attrs[0] = (struct weir_attr){ .name = "uri", .value = g->uri };
    g->attrs[1] = (struct weir_attr){ .name = "header.p", .value = g->priority };
    g->attrs[2] = (struct weir_attr){ .name = "header.k", .value = g->key };
    g->visit =
        (struct weir_visit){ .attrs = g->attrs,
                             .n = 3,
                             .ask = { .cost = 1, .now = now },
                             .queue_max = one_in(3)   ? WEIR_FOREVER
                                          : one_in(3) ? 0
                                                      : int_between(1, 900) * WEIR_MILLISECOND,
                             .turn = on_turn,
                             .context = g };
    g->state = WAITS;
    if (weir_check_later(weir, &g->visit))
        decided(g);
}

static void go(void)
{
    struct guest *g = any_of(WORKS);

    if (g == NULL)
        return;
    if (!weir_check_exit(weir, &g->visit.entry, one_in(5) ? WEIR_IGNORED : WEIR_SUCCEEDED, now))
        stop("a permit is gone");
    g->state = NOBODY;
}

static void give_up(void)
{
    struct guest *g = any_of(WAITS);

    if (g == NULL)
        return;
    if (!weir_check_cancel(weir, &g->visit, now))
        stop("one that waits cannot be cancelled");
    g->state = NOBODY;
}

/* ----------------------------------------------------------------- laws ---- */

static void check_in_flight(void)
{
    for (int i = 0; i < GUARDS; i++) {
        int64_t expected = 0;
        for (int k = 0; k < VISITS; k++)
            expected += guests[k].state == WORKS && guests[k].set >> i & 1;
        if (in_flight(i) != expected)
            stop("g%d has %" PRId64 " in flight, expected %" PRId64, i, in_flight(i), expected);
    }
}

static bool is_held_up(int set)
{
    for (int i = 0; i < GUARDS; i++)
        if (set >> i & 1 && in_flight(i) >= terms[i].max)
            return true;
    return false;
}

/* Some have gone from one queue to another: they have their turn at the next poll. */
static void check_waiting(void)
{
    int64_t waiting = 0, n = 0;

    for (int i = 0; i < GUARDS + 1; i++)
        waiting = weir_check_poll(weir, now);
    for (int k = 0; k < VISITS; k++)
        n += guests[k].state == WAITS;
    if (n != waiting)
        stop("%" PRId64 " wait, expected %" PRId64, waiting, n);
    for (struct weir__line *l = weir__line_first(weir); l != NULL; l = l->next) {
        struct weir_waiter *w = weir__queue_front_locked(l->queue, now);
        const struct guest *g =
            w ? ((struct weir_visit *)((char *)w - offsetof(struct weir_visit, waiter)))->context
              : NULL;
        if (g != NULL && !is_held_up(g->set))
            stop("%d waits at g%u for nothing", g->set, l->guard->id);
        if (g != NULL && w->deadline != 0 && now > w->deadline)
            stop("one is late and waits");
    }
}

static void check_totals(void)
{
    struct weir_totals t;

    weir_totals_get(weir, &t);
    if (t.allowed != allowed || t.refused != refused)
        stop("%" PRId64 " allowed and %" PRId64 " refused, expected %" PRId64 " and %" PRId64,
             t.allowed, t.refused, allowed, refused);
}

static void check_end(void)
{
    while (any_of(WORKS) != NULL || any_of(WAITS) != NULL) {
        go();
        check_waiting();
        if (any_of(WORKS) == NULL && any_of(WAITS) != NULL)
            stop("nobody works, and somebody waits");
    }
    check_in_flight();
}

static void play(void)
{
    struct weir_table *table;
    struct weir_error e;

    now = 1000 * WEIR_SECOND;
    allowed = refused = 0;
    memset(guests, 0, sizeof(guests));
    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 100, .guards = GUARDS },
                          &e) ||
        weir_create(&weir, &(struct weir_options){ .table = table }, &e))
        stop("%s", e.text);
    use_random_rules(weir, now);
    bool changes = one_in(2);
    for (int i = 0; i < STEPS; i++) {
        int deed = int_between(1, 100);
        for (int k = 0; k < GUARDS; k++)
            shed_before[k] = guard_at(k)->record->shedding;
        now += one_in(3) ? int_between(0, 100) * WEIR_MILLISECOND : 0;
        if (deed <= 50)
            come();
        else if (deed <= 90)
            go();
        else if (deed <= 93)
            give_up();
        else if (deed == 94 && changes)
            use_random_rules(weir, now);
        if (one_in(2))
            check_waiting();
        check_in_flight();
        check_totals();
    }
    check_end();
    weir_destroy(weir);
    weir_table_destroy(table);
}

int main(int argc, char **argv)
{
    printf("%" PRIu64 " rounds\n", play_rounds(argc, argv, 200, play));
    return 0;
}
