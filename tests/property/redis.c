/* redis.c -- random walks over accounts in a redis-server: the scripts and the module, by turns on
 * the same keys, answer what the bare algorithm answers.
 *
 *     property-redis MODULE SEED ROUNDS    prints the seed, the step and both answers on a mismatch
 *
 * Each round has a random limit for each of a few keys, and some hundred asks in whole
 * microseconds: take, peek, give, draw and repay, with and without waiting, of one key or of all at
 * once; now and then the limit or its algorithm changes, or the clock steps back.  Some asks have
 * an id, and are repeated: the same answer, and nothing is charged.  No key expires before its
 * state is fresh.  In calm rounds the scripts leave nothing but repeats to the caller.
 *
 * Then several callers ask at once for one key, each script of theirs at a random turn: together
 * they get what they would have got one after the other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/algo.h"
#include "algo/purse.h"
#include "algo/window.h"
#include "random-limits.h"
#include "rounds.h"
#include "vectors/runner/redis-scripts.h"
#include "vectors/runner/redis-server.h"
#include "vectors/runner/resp-client.h"

#define KEYS  3
#define STEPS 150

#define CENTURY_MS ((int64_t)100 * 365 * 86400 * 1000)

static int step;
static struct redis_server server;
static struct redis_scripts scripts;
static weir_time now;
static bool calm;         /* no limit changes, no clock steps back, nobody waits but at meters */
static int64_t paid_back; /* payments that counted */

/* A key, and beside it the state that the bare algorithm keeps. */
static struct account {
    char name[32], text[160];
    struct weir_plan plan, before; /* before: under which the state was written */
    void *state;
    struct weir__demand demand;
    weir_time drawn_at;  /* its last draw */
    weir_time expiry_at; /* of the key */
    bool there, moved;
} accounts[KEYS];

static void print_asked(void);

static void stop(const char *what)
{
    print_asked();
    fprintf(stderr, "property-redis: seed %" PRIu64 ", step %d: %s\n", seed_of_round, step, what);
    redis_server_stop(&server);
    exit(1);
}

static void check(int code, const struct weir_error *error)
{
    if (code != WEIR_OK)
        stop(error->text);
}

/* --------------------------------------------------------------- limits ---- */

static void set_limit(struct account *a, int kind)
{
    struct weir_limit limit;
    struct weir_error error = { 0 };

    do { /* some are beyond exact arithmetic */
        if (one_in(4))
            wide_limit(a->text, sizeof(a->text), kind);
        else
            random_limit(a->text, sizeof(a->text), kind);
    } while (weir_limit_parse(&limit, a->text, &error) != WEIR_OK ||
             weir__plan_make(&a->plan, &limit, &error) != WEIR_OK ||
             weir__plan_check_redis(&a->plan, &error) != WEIR_OK);
}

static int kind_of(const struct account *a)
{
    static const char *const names[] = { "gcra",        "token-bucket", "leaky-bucket",
                                         NULL,          "fixed-window", "sliding-window",
                                         "sliding-log", "calendar",     "smooth",
                                         "warm-up" };

    for (int i = 0; i < 10; i++)
        if (names[i] && strcmp(names[i], a->plan.algo->name) == 0)
            return i == 2 && a->plan.limit.queue != 0 ? 3 : i;
    return 0;
}

static void open_accounts(void)
{
    for (int i = 0; i < KEYS; i++) {
        struct account *a = &accounts[i];
        free(a->state);
        *a = (struct account){ 0 };
        snprintf(a->name, sizeof(a->name), "{%" PRIu64 "}%d", seed_of_round, i);
        set_limit(a, int_between(0, 9));
        a->before = a->plan;
        a->state = calloc(1, a->plan.state_size);
    }
}

static void change_limit(struct account *a)
{
    set_limit(a, one_in(2) ? kind_of(a) : int_between(0, 9));
    a->moved = a->there && !weir__limit_equal(&a->plan.limit, &a->before.limit);
    if (!a->there) {
        free(a->state);
        a->state = calloc(1, a->plan.state_size);
        a->before = a->plan;
    }
}

/* Another algorithm begins anew, and leaves the account as it is until it takes something. */
static bool is_other(const struct account *a)
{
    return a->there && a->before.algo != a->plan.algo;
}

/* The bare state under the present limit: a copy. */
static void *state_now(const struct account *a)
{
    void *state = calloc(1, a->plan.state_size);

    if (is_other(a))
        return state;
    if (a->moved)
        weir_step_change(&a->before, &a->plan, a->state, state, now);
    else
        memcpy(state, a->state, a->plan.state_size);
    return state;
}

static bool is_zero(const unsigned char *bytes, size_t len)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

struct log_words {
    int64_t seen, newest;
    uint32_t first, used;
};

/* More was used in the window than its count is now, and nothing was taken since: then the account
 * stays as it is. */
static bool is_cut(const struct account *a, const void *state)
{
    const struct weir__window_state *s = state, *before = a->state;
    const struct log_words *log = state, *log_before = a->state;

    if (!a->moved || is_other(a))
        return false;
    if (a->plan.algo == &weir__sliding_log)
        return log->newest == log_before->newest && log->used == a->plan.limit.count &&
               log->used < log_before->used;
    return (a->plan.algo == &weir__fixed_window || a->plan.algo == &weir__calendar) &&
           s->end == before->end && s->used == a->plan.limit.count && s->used < before->used;
}

static void keep(struct account *a, void *state)
{
    if (is_other(a) && is_zero(state, a->plan.state_size)) {
        free(state);
        return;
    }
    if (is_cut(a, state)) {
        free(state);
        return;
    }
    free(a->state);
    a->state = state;
    a->there = a->there || !is_zero(state, a->plan.state_size);
    a->before = a->plan;
    a->moved = false;
}

/* ------------------------------------------------------------- the asks ---- */

struct asked {
    enum weir__account_verb verb;
    int first, n;
    struct weir_ask asks[KEYS];
    struct weir__draw draw;
    weir_time drawn_at;
    char id[48]; /* "": none */
    struct weir_decision bare[KEYS], redis[KEYS];
    struct weir__drawn bare_drawn, redis_drawn;
    int64_t bare_units, redis_units; /* of the first */
};

static const struct asked *asked; /* the present one */

static void ask_bare(struct asked *q)
{
    void *states[KEYS];
    bool granted = true;

    for (int i = 0; i < q->n; i++) {
        struct account *a = &accounts[q->first + i];
        states[i] = state_now(a);
        granted &= weir_step_peek(&a->plan, states[i], &q->asks[i], &q->bare[i]);
    }
    for (int i = 0; i < q->n; i++) {
        struct account *a = &accounts[q->first + i];
        if (q->verb == WEIR__ACCOUNT_PEEK) {
            free(states[i]);
            continue;
        }
        if (q->verb == WEIR__ACCOUNT_DRAW)
            q->bare_drawn =
                weir__draw_units(&a->plan, states[i], &a->demand, &q->draw, now, &q->bare[0]);
        else if (q->verb == WEIR__ACCOUNT_REPAY)
            q->bare_units =
                is_cut(a, states[i])
                    ? 0
                    : weir__draw_repay(&a->plan, states[i], &a->demand,
                                       &(struct weir__repay){ q->asks[0].cost, q->drawn_at }, now);
        else if (q->verb == WEIR__ACCOUNT_GIVE && a->there && !is_other(a))
            weir_step_give(&a->plan, states[i], &q->asks[i]);
        else if (q->verb == WEIR__ACCOUNT_TAKE && (granted || !q->bare[i].allowed) &&
                 !(a->moved && !is_other(a) && q->asks[i].cost == 0))
            weir_step(&a->plan, states[i], &q->asks[i], &q->bare[i]);
        keep(a, states[i]);
    }
    if (q->verb == WEIR__ACCOUNT_DRAW)
        accounts[q->first].drawn_at = now;
    paid_back += q->verb == WEIR__ACCOUNT_REPAY && q->bare_units > 0;
    if (q->verb == WEIR__ACCOUNT_DRAW)
        q->bare_units = q->bare_drawn.units;
    else if (q->verb != WEIR__ACCOUNT_REPAY)
        q->bare_units = q->bare[0].allowed ? q->asks[0].cost : 0;
}

/* What a repeat is answered: as granted, with what is left now. */
static void repeat_bare(struct asked *q)
{
    for (int i = 0; i < q->n; i++) {
        struct account *a = &accounts[q->first + i];
        void *state = state_now(a);
        weir_time wait = q->bare[i].wait;
        weir_step_peek(&a->plan, state, &(struct weir_ask){ .now = now }, &q->bare[i]);
        q->bare[i].allowed = true;
        q->bare[i].retry = 0;
        q->bare[i].wait = (wait + WEIR_MICROSECOND - 1) / WEIR_MICROSECOND * WEIR_MICROSECOND;
        free(state);
    }
}

static void ask_scripts(struct asked *q)
{
    long handed = scripts.handed;
    struct weir__account_item items[KEYS];
    struct weir_error error = { 0 };
    struct weir__account_call call = { .verb = q->verb, .items = items, .n = (size_t)q->n };
    char demand[64];

    memset(items, 0, sizeof(items));
    snprintf(demand, sizeof(demand), "%s:demand", accounts[q->first].name);
    call.demand = (struct weir_key){ demand, strlen(demand) };
    call.draw = q->draw;
    call.drawn_at = q->drawn_at;
    call.id = (struct weir_key){ q->id, strlen(q->id) };
    call.near = now + between(-5, 5) * (one_in(4) ? 20 * 24 * 3600 : 1) * WEIR_SECOND;
    call.near = calm ? now - between(0, 5) * WEIR_SECOND : call.near < 0 ? 0 : call.near;
    for (int i = 0; i < q->n; i++) {
        struct account *a = &accounts[q->first + i];
        items[i] = (struct weir__account_item){ .key = { a->name, strlen(a->name) },
                                                .plan = &a->plan,
                                                .ask = q->asks[i] };
    }
    check(redis_scripts_clock(&scripts, now, &error), &error);
    check(redis_scripts_run(&scripts, &call, &error), &error);
    for (int i = 0; i < q->n; i++)
        q->redis[i] = items[i].decision;
    q->redis_units = items[0].units;
    q->redis_drawn = call.drawn;
    if (calm && scripts.handed > handed && !call.repeated)
        stop("a script left a usual ask to the caller");
    weir__account_free(&call);
}

static struct resp_answer command(const char *const *words)
{
    struct resp_answer answer;
    struct weir_error error = { 0 };

    check(resp_client_ask(server.client, words, &answer, &error), &error);
    return answer;
}

static void set_module_clock(void)
{
    char clock[24];

    snprintf(clock, sizeof(clock), "%" PRId64, now);
    command((const char *const[]){ "WEIR.CLOCK", clock, NULL });
}

/* Words as texts. */
struct words {
    const char *at[32];
    char texts[32][80];
    int n;
};

static void add_word(struct words *w, const char *text)
{
    snprintf(w->texts[w->n], sizeof(w->texts[0]), "%s", text);
    w->at[w->n] = w->texts[w->n];
    w->at[++w->n] = NULL;
}

static void add_number(struct words *w, const char *name, int64_t n)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, n);
    add_word(w, name);
    add_word(w, text);
}

static void add_draw(struct words *w, const struct asked *q)
{
    const struct weir__draw *d = &q->draw;
    char demand[64];

    snprintf(demand, sizeof(demand), "%s:demand", accounts[q->first].name);
    add_word(w, "DEMAND");
    add_word(w, demand);
    if (q->verb == WEIR__ACCOUNT_REPAY) {
        add_number(w, "DRAWN", q->drawn_at / WEIR_MICROSECOND);
        add_number(w, "UNITS", q->asks[0].cost);
        return;
    }
    add_number(w, "NEED", d->need);
    add_number(w, "WAITING", d->waiting);
    add_number(w, "HAVE", d->have);
    add_number(w, "ASKED", d->asked);
    add_number(w, "FAST", d->fast);
    add_number(w, "SLOW", d->slow);
}

static void ask_module(struct asked *q)
{
    static const char *const verbs[] = { "WEIR.TAKE", "WEIR.PEEK", "WEIR.GIVE", "WEIR.DRAW",
                                         "WEIR.REPAY" };
    struct account *a = &accounts[q->first];
    struct words w = { .n = 0 };
    struct weir_decision *d = &q->redis[0];

    set_module_clock();
    add_word(&w, verbs[q->verb]);
    add_word(&w, a->name);
    add_word(&w, a->text);
    add_word(&w, "NS");
    if (q->verb == WEIR__ACCOUNT_DRAW || q->verb == WEIR__ACCOUNT_REPAY) {
        add_draw(&w, q);
    } else {
        add_number(&w, "COST", q->asks[0].cost);
        add_number(&w, "WAIT", q->asks[0].wait_max);
    }
    if (q->id[0]) {
        add_word(&w, "ID");
        add_word(&w, q->id);
    }
    const struct resp_answer answer = command(w.at);
    q->redis_units = answer.numbers[0];
    if (q->verb == WEIR__ACCOUNT_REPAY)
        return;
    *d = (struct weir_decision){ .allowed = answer.numbers[0] > 0 ||
                                            (q->verb == WEIR__ACCOUNT_DRAW && q->asks[0].cost == 0),
                                 .limit = answer.numbers[1] };
    if (q->verb != WEIR__ACCOUNT_DRAW)
        q->redis_units = d->allowed ? q->asks[0].cost : 0;
    d->remaining = answer.numbers[2];
    d->retry = d->allowed ? 0 : answer.numbers[3] < 0 ? WEIR_NEVER : answer.numbers[3];
    d->reset = answer.numbers[4];
    d->wait = answer.numbers[5];
    q->redis_drawn = (struct weir__drawn){ .units = answer.numbers[0],
                                           .spent = answer.numbers[6] != 0,
                                           .share = answer.numbers[7],
                                           .at = answer.numbers[8] * WEIR_MICROSECOND,
                                           .life = answer.numbers[9] };
}

static void print(const char *who, const struct weir_decision *d)
{
    fprintf(stderr,
            "  %s %d limit %" PRId64 " remaining %" PRId64 " retry %" PRId64 " reset %" PRId64
            " wait %" PRId64 "\n",
            who, d->allowed, d->limit, d->remaining, d->retry, d->reset, d->wait);
}

static void print_drawn(const char *who, const struct weir__drawn *d)
{
    fprintf(stderr, "  %s %" PRId64 " share %" PRId64 " spent %d at %" PRId64 " life %" PRId64 "\n",
            who, d->units, d->share, d->spent, d->at, d->life);
}

static void print_asked(void)
{
    const struct asked *q = asked;

    for (int i = 0; q && i < q->n; i++) {
        const struct account *a = &accounts[q->first + i];
        fprintf(stderr,
                "verb %d, key %s, limit %s, cost %" PRId64 ", wait %" PRId64 ", id '%s'"
                ", now %" PRId64 "\n",
                (int)q->verb, a->name, a->text, q->asks[i].cost, q->asks[i].wait_max, q->id, now);
        print("bare ", &q->bare[i]);
        print("redis", &q->redis[i]);
    }
    if (q && q->verb == WEIR__ACCOUNT_DRAW) {
        print_drawn("drawn", &q->bare_drawn);
        print_drawn("redis", &q->redis_drawn);
    }
    if (q && q->verb == WEIR__ACCOUNT_REPAY)
        fprintf(stderr, "  of %" PRId64 ": %" PRId64 " back, redis %" PRId64 "\n", q->drawn_at,
                q->bare_units, q->redis_units);
}

static void compare(const struct asked *q)
{
    const struct weir__drawn *bare = &q->bare_drawn, *redis = &q->redis_drawn;
    bool same = q->bare_units == q->redis_units;

    if (q->verb == WEIR__ACCOUNT_GIVE)
        return;
    if (q->verb == WEIR__ACCOUNT_DRAW)
        same = same && bare->units == redis->units && bare->share == redis->share &&
               bare->spent == redis->spent && bare->at == redis->at && bare->life == redis->life;
    for (int i = 0; i < q->n && same && q->verb != WEIR__ACCOUNT_REPAY; i++) {
        const struct weir_decision *a = &q->bare[i], *b = &q->redis[i];
        same = a->allowed == b->allowed && a->limit == b->limit && a->remaining == b->remaining &&
               a->retry == b->retry && a->reset == b->reset && a->wait == b->wait;
    }
    if (same)
        return;
    stop("the answers differ");
}

static void random_draw(struct asked *q)
{
    static const int64_t rates[] = { 0, 1000, 100000, 3000000, 40000000000 };
    struct weir__draw *d = &q->draw;

    d->need = q->asks[0].cost;
    d->waiting = one_in(4) ? 0 : d->need + between(0, 20);
    d->have = one_in(2) ? 0 : between(0, 10);
    d->asked = between(0, one_in(9) ? 9000000 : 40);
    d->fast = one_in(2) ? d->asked * between(100, 5000) : between(0, rates[between(0, 4)]);
    d->slow = between(0, rates[between(0, 4)]);
}

/* When the units that are paid back were drawn: at the last draw, or at the edge of what is known
 * about meters, or at any time. */
static weir_time random_drawn_at(const struct account *a)
{
    weir_time at = a->drawn_at, life = weir__draw_terms(&a->plan).life;

    if (one_in(8))
        at = a->demand.life_since * WEIR_MICROSECOND - life / WEIR_MICROSECOND * WEIR_MICROSECOND;
    else if (one_in(8))
        at += between(-2000000, 2000000) * WEIR_MICROSECOND;
    return at < 0 ? 0 : at;
}

/* Often of the same key, and of the same verb or its opposite, as the one before. */
static void random_ask(struct asked *q)
{
    const struct asked last = *q;

    *q = (struct asked){ .verb = one_in(2) ? WEIR__ACCOUNT_TAKE
                                           : (enum weir__account_verb)between(0, 4) };
    if (last.verb == WEIR__ACCOUNT_DRAW && one_in(2))
        q->verb = one_in(2) ? WEIR__ACCOUNT_DRAW : WEIR__ACCOUNT_REPAY;
    else if (last.verb == WEIR__ACCOUNT_TAKE && one_in(6))
        q->verb = WEIR__ACCOUNT_GIVE;
    q->n = q->verb == WEIR__ACCOUNT_TAKE && one_in(4) ? int_between(2, KEYS) : 1;
    q->first = q->n == 1 && one_in(2) ? last.first : int_between(0, KEYS - q->n);
    for (int i = 0; i < q->n; i++) {
        q->asks[i].now = now;
        int64_t most = accounts[q->first + i].plan.most;
        q->asks[i].cost = one_in(6)                  ? between(0, 30)
                          : most > 1000 && one_in(2) ? most / any_number(12)
                                                     : between(1, 3);
        bool draws = q->verb == WEIR__ACCOUNT_DRAW || q->verb == WEIR__ACCOUNT_REPAY;
        q->asks[i].cost += draws && q->asks[i].cost == 0;
        if (!draws && q->n == 1 && (!calm || kind_of(&accounts[q->first]) < 4) && one_in(4))
            q->asks[i].wait_max = between(0, 20000000) * WEIR_MICROSECOND;
    }
    random_draw(q);
    q->drawn_at = random_drawn_at(&accounts[q->first]);
    if (one_in(4))
        snprintf(q->id, sizeof(q->id), "{%" PRIu64 "}id:%d", seed_of_round, step);
}

/* Back, often to just where a window's end or the demand is too far ahead to be believed. */
static weir_time step_back(const struct asked *q)
{
    const struct account *a = &accounts[q->first];
    weir_time length = weir__window_longest(&a->plan), reset = q->bare[0].reset;

    if (weir__is_window(&a->plan) && length < now && one_in(2))
        return now + reset - 2 * length - WEIR__LATE_MAX + between(-1, 1) * WEIR_MICROSECOND;
    if (one_in(3))
        return (a->demand.since - 2 * weir__draw_terms(&a->plan).epoch) * WEIR_MICROSECOND;
    return now - between(0, one_in(2) ? 1000000 : 50000000) * WEIR_MICROSECOND;
}

/* Often to the very moment at which a refusal, a reset, the life of units or a period ends. */
static void pass_time(const struct asked *q)
{
    static const int64_t spans[] = { 0, 3, 1000, 100000, 2000000, 30000000, 90000000000 };
    int64_t us = between(0, spans[between(0, one_in(10) ? 6 : 4)]);
    const struct weir_decision *d = &q->bare[0];
    weir_time end = q->verb == WEIR__ACCOUNT_DRAW ? q->bare_drawn.life
                    : d->allowed                  ? d->reset
                                                  : d->retry;

    if (one_in(4))
        end = accounts[q->first].plan.limit.period;
    if (one_in(4) && end < 40 * 24 * 3600 * WEIR_SECOND)
        us = (end + between(0, 1) * (WEIR_MICROSECOND - 1)) / WEIR_MICROSECOND;
    now += us * WEIR_MICROSECOND;
    if (!calm && one_in(60))
        now = step_back(q);
    now = now < 0 ? 0 : now - now % WEIR_MICROSECOND;
}

/* A key lives until its state equals a fresh one, or for a century.  Scripts give it seconds for
 * milliseconds here, and the module an hour more.  An expiry that was seen is taken away: only one
 * that is set anew is seen again. */
static void check_expiry(struct account *a, bool by_module)
{
    weir_time idle = weir__account_idle_at(&a->before, a->state);
    int64_t left = command((const char *const[]){ "PTTL", a->name, NULL }).numbers[0];

    if (left >= 0)
        a->expiry_at = by_module || left / 1000 >= CENTURY_MS
                           ? idle
                           : now + (left + 999) / 1000 * WEIR_MILLISECOND;
    if (left != -2 && idle > now && a->expiry_at < idle)
        stop("the key expires before its state is fresh");
    command((const char *const[]){ "PERSIST", a->name, NULL });
}

static void ask_redis(struct asked *q)
{
    bool by_module = q->n == 1 && one_in(2);

    if (by_module)
        ask_module(q);
    else
        ask_scripts(q);
    compare(q);
    for (int i = 0; i < q->n; i++)
        check_expiry(&accounts[q->first + i], by_module);
}

/* There is a receipt. */
static bool is_kept(const struct asked *q)
{
    bool gives = q->verb == WEIR__ACCOUNT_GIVE || q->verb == WEIR__ACCOUNT_REPAY, charged = gives;

    for (int i = 0; i < q->n; i++) {
        if (!gives && !q->bare[i].allowed)
            return false;
        charged = charged || q->asks[i].cost > 0;
    }
    return q->id[0] && charged && q->verb != WEIR__ACCOUNT_PEEK;
}

static void walk(void)
{
    struct asked q = { 0 };

    calm = one_in(3);
    now = calm ? between(3000000, 1800000000) /* the first month of all has none before it */
               : between(0, one_in(3) ? 100 : 1800000000);
    now *= WEIR_SECOND;
    open_accounts();
    for (step = 0; step < STEPS; step++) {
        if (!calm && one_in(25))
            change_limit(&accounts[between(0, KEYS - 1)]);
        random_ask(&q);
        asked = &q;
        ask_bare(&q);
        ask_redis(&q);
        for (int again = 0; again < 2 && is_kept(&q); again++) {
            repeat_bare(&q);
            ask_redis(&q);
        }
        pass_time(&q);
    }
}

/* ------------------------------------------------------- callers at once ---- */

#define CALLERS 6

static int by_wait(const void *a, const void *b)
{
    const struct weir_decision *x = a, *y = b;

    return x->wait != y->wait ? (x->wait > y->wait ? 1 : -1) : x->allowed - y->allowed;
}

/* Each caller's next script, in random order, until all have their answers. */
static void run_callers(struct weir__account_call calls[CALLERS])
{
    struct weir_error error = { 0 };
    int codes[CALLERS], left = CALLERS;

    for (int i = 0; i < CALLERS; i++) {
        check(weir__account_begin(&calls[i], &error), &error);
        codes[i] = WEIR__ACCOUNT_AGAIN;
    }
    while (left > 0) {
        int64_t i = between(0, CALLERS - 1);
        if (codes[i] != WEIR__ACCOUNT_AGAIN)
            continue;
        codes[i] = redis_scripts_step(&scripts, &calls[i], &error);
        if (codes[i] < 0)
            stop(error.text);
        left -= codes[i] == WEIR_OK;
    }
}

static void walk_and_race(void)
{
    struct account *a = &accounts[0];
    struct weir__account_item items[CALLERS];
    struct weir__account_call calls[CALLERS];
    struct weir_decision bare[CALLERS], redis[CALLERS];
    struct weir_error error = { 0 };
    struct weir_ask ask = { .cost = between(1, 2),
                            .wait_max = one_in(2) ? 0 : between(0, 9000000) * WEIR_MICROSECOND };

    walk();
    ask.now = now;
    asked = NULL;
    snprintf(a->name, sizeof(a->name), "race-%" PRIu64, seed_of_round);
    set_limit(a, int_between(0, 9));
    void *state = calloc(1, a->plan.state_size);
    check(redis_scripts_clock(&scripts, now, &error), &error);
    for (int i = 0; i < CALLERS; i++) {
        items[i] = (struct weir__account_item){ .key = { a->name, strlen(a->name) },
                                                .plan = &a->plan,
                                                .ask = ask };
        calls[i] = (struct weir__account_call){ .items = &items[i], .n = 1, .near = now };
        weir_step(&a->plan, state, &ask, &bare[i]);
    }
    run_callers(calls);
    for (int i = 0; i < CALLERS; i++) {
        redis[i] = items[i].decision;
        weir__account_free(&calls[i]);
    }
    qsort(bare, CALLERS, sizeof(bare[0]), by_wait);
    qsort(redis, CALLERS, sizeof(redis[0]), by_wait);
    for (int i = 0; i < CALLERS; i++)
        if (bare[i].allowed != redis[i].allowed || bare[i].wait != redis[i].wait) {
            print("bare ", &bare[i]);
            print("redis", &redis[i]);
            fprintf(stderr, "limit %s\n", a->text);
            stop("callers at once get something else than one by one");
        }
    free(state);
}

int main(int argc, char **argv)
{
    struct weir_error error = { 0 };

    if (argc != 4) {
        fprintf(stderr, "usage: property-redis MODULE SEED ROUNDS\n");
        return 2;
    }
    check(redis_server_start(&server, argv[1], &error), &error);
    check(redis_scripts_load(&scripts, server.client, &error), &error);
    uint64_t rounds = play_rounds(argc - 1, argv + 1, 1, walk_and_race);
    printf("%" PRIu64 " rounds, %" PRId64 " payments;", rounds, paid_back);
    for (size_t i = 0; i < WEIR__SCRIPTS; i++)
        printf(" %s %ld", weir__account_scripts[i].name, scripts.sent[i]);
    printf(" handed over %ld\n", scripts.handed);
    for (int i = 0; i < KEYS; i++)
        free(accounts[i].state);
    redis_scripts_free(&scripts);
    redis_server_stop(&server);
    return 0;
}
