/* asks.c -- asks that wait for units: from callers to the agent's thread and back.
 *
 * A caller that finds a purse dry copies its request into a free place and passes it on; there are
 * WEIR__AGENT_ASKS, and one that finds none is decided alone, at once.  The agent answers each by
 * `done`, at its deadline at the latest, unless its caller was faster and gave up:
 *
 *     waits ──► busy       the agent decides; granted or answered: `done` is called, then free
 *       ▲        │
 *       └────────┘         still too little
 *     waits ──► cancelled  by any thread; the agent frees it when it meets it, and says so: until
 *                          then its place is its caller's
 *     busy ──► busy and cancelled    by any thread: `done` is called soon, with a refusal unless it
 *                          was granted just then
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/agent/agent.h"

#define STATE 7u
#define SHIFT 3

#define GIVEN_BACK 64 /* places together */

int weir__asks_make(struct weir_fleet *f, struct weir_error *error)
{
    f->asks = calloc(WEIR__AGENT_ASKS, sizeof(*f->asks));
    f->over_last = &f->over;
    return f->asks ? WEIR_OK : weir__fail(error, WEIR_NO_MEMORY, "no memory for a fleet");
}

void weir__asks_free(struct weir_fleet *f)
{
    free(f->asks);
}

static bool has_state(const struct weir__agent_ask *a, enum weir__ask_state state)
{
    return (__atomic_load_n(&a->word, __ATOMIC_ACQUIRE) & STATE) == state;
}

static bool change(struct weir__agent_ask *a, enum weir__ask_state from, enum weir__ask_state to)
{
    uint64_t word = __atomic_load_n(&a->word, __ATOMIC_ACQUIRE);

    return (word & STATE) == from &&
           __atomic_compare_exchange_n(&a->word, &word, (word & ~(uint64_t)STATE) | to, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool weir__ask_begin(struct weir__agent_ask *a)
{
    return change(a, WEIR__ASK_WAITS, WEIR__ASK_BUSY);
}

bool weir__ask_go_on(struct weir__agent_ask *a)
{
    return change(a, WEIR__ASK_BUSY, WEIR__ASK_WAITS);
}

/* -------------------------------------------------------------- free places ---- */

static struct weir__agent_ask *take_place(struct weir_fleet *f)
{
    struct weir__agent_ask *a;

    pthread_mutex_lock(&f->mutex);
    a = f->free_asks;
    if (a)
        f->free_asks = a->next;
    else if (f->fresh_asks < WEIR__AGENT_ASKS)
        a = &f->asks[f->fresh_asks++];
    pthread_mutex_unlock(&f->mutex);
    return a;
}

/* Its number grows, so that a late cancel finds another ask than it meant. */
static void clear_place(struct weir__agent_ask *a)
{
    uint64_t word = __atomic_load_n(&a->word, __ATOMIC_RELAXED);

    __atomic_store_n(&a->word, ((word >> SHIFT) + 1) << SHIFT | WEIR__ASK_FREE, __ATOMIC_RELEASE);
    if (a->request.attrs != (void *)a->room)
        free((void *)(uintptr_t)a->request.attrs);
}

/* Several, which are linked. */
static void give_places(struct weir_fleet *f, struct weir__agent_ask *first,
                        struct weir__agent_ask *last)
{
    pthread_mutex_lock(&f->mutex);
    last->next = f->free_asks;
    f->free_asks = first;
    pthread_mutex_unlock(&f->mutex);
}

static size_t length_of(const char *text, size_t len)
{
    return len || !text ? len : strlen(text);
}

static const char *copy_text(const char *text, size_t len, char **at)
{
    char *copy = *at;

    if (!text)
        return NULL;
    len = length_of(text, len);
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

/* Attributes and their texts in one piece of memory. */
static bool copy_request(struct weir__agent_ask *to, const struct weir_request *from)
{
    size_t bytes = from->n * sizeof(struct weir_attr);

    for (size_t i = 0; i < from->n; i++) {
        const struct weir_attr *a = &from->attrs[i];
        bytes += length_of(a->name, a->name_len) + 1 + length_of(a->value, a->value_len) + 1;
    }
    struct weir_attr *attrs = bytes <= sizeof(to->room) ? (void *)to->room : malloc(bytes);
    char *at = (char *)(attrs + from->n);
    for (size_t i = 0; attrs && i < from->n; i++) {
        const struct weir_attr *a = &from->attrs[i];
        attrs[i] = *a;
        attrs[i].name = copy_text(a->name, a->name_len, &at);
        attrs[i].value = copy_text(a->value, a->value_len, &at);
    }
    to->request = (struct weir_request){ attrs, from->n, from->ask };
    return attrs != NULL;
}

/* -------------------------------------------------------- the agent's thread ---- */

/* By deadline; most asks have the latest. */
static void line_up(struct weir_fleet *f, struct weir__agent_ask *a)
{
    struct weir__agent_ask *before = f->last;

    while (before && before->deadline > a->deadline)
        before = before->before;
    a->before = before;
    a->next = before ? before->next : f->first;
    *(before ? &before->next : &f->first) = a;
    *(a->next ? &a->next->before : &f->last) = a;
    a->lined = true;
}

static void leave_line(struct weir_fleet *f, struct weir__agent_ask *a)
{
    if (!a->lined)
        return;
    *(a->before ? &a->before->next : &f->first) = a->next;
    *(a->next ? &a->next->before : &f->last) = a->before;
    a->lined = false;
}

void weir__ask_over(struct weir_fleet *f, struct weir__agent_ask *a)
{
    leave_line(f, a);
    a->next = NULL;
    *f->over_last = a;
    f->over_last = &a->next;
}

/* False: there is no room for a key, or the rules have changed. */
static bool find_keys(struct weir_fleet *f, struct weir__agent_ask *a, weir_time now)
{
    a->wait.n = 0;
    for (size_t i = 0; i < a->n_dues; i++) {
        const struct weir__due *due = &a->dues[i];
        struct weir__agent_limit *l = weir__limit_find(f, due->rule, due->index);
        struct weir__fleet_key *k =
            l ? weir__agent_key(f, l, (struct weir_key){ due->text, due->text_len }, now) : NULL;
        if (!k)
            return false;
        memcpy(k->own.bytes, due->own, due->own_len);
        k->own.len = due->own_len;
        k->own.asks++;
        a->wait.items[a->wait.n++] = (struct weir__fleet_item){ .key = k, .cost = due->cost };
    }
    return true;
}

static void begin(struct weir__redis_job *job, struct weir__redis_client *client, weir_time mono)
{
    struct weir__agent_ask *a = (struct weir__agent_ask *)job;
    struct weir_fleet *f = a->fleet;
    weir_time now = weir__agent_time(f);

    (void)mono;
    f->client = client;
    if (has_state(a, WEIR__ASK_CANCELLED)) { /* nothing is drawn for it */
        weir__ask_over(f, a);
        return;
    }
    weir__limits_turn(f, now);
    if (f->leaving || !find_keys(f, a, now)) {
        a->alone = true;
        weir__ask_over(f, a);
        return;
    }
    line_up(f, a);
    weir__fleet_wait(f->fleet, &a->wait, now);
}

/* ---------------------------------------------------------------- answering ---- */

bool weir__agent_check(struct weir_fleet *f, struct weir__agent_ask *a,
                       const struct weir__alone_rules *alone)
{
    const struct weir_request *r = &a->request;

    if (a->decide)
        return a->decide(a->context, alone, r->ask.now, &a->ruling, a->told);
    if (a->entering.entry)
        return f->host->enter(f->weir, r, alone, &a->entering, &a->ruling, a->told);
    return f->host->check_alone(f->weir, r->attrs, r->n, &r->ask, alone, &a->ruling, a->told);
}

/* By when_alone: the rules whose purses have too little.  The others go by their purses. */
static void decide_alone(struct weir_fleet *f, struct weir__agent_ask *a, weir_time now)
{
    const char *names[WEIR__FLEET_ITEMS_MAX];
    struct weir__alone_rules alone = { .rules = names, .all = a->wait.n == 0 };

    for (size_t i = 0; i < a->wait.n; i++) {
        struct weir__fleet_key *k = a->wait.items[i].key;
        if (k->limit == NULL || /* the limit went */
            weir__agent_world.have(f, k, now) < a->wait.items[i].cost)
            names[alone.n++] = a->dues[i].rule;
        if (k->limit != NULL)
            weir__share_begin(f, k, now);
    }
    if (weir__agent_check(f, a, &alone) || a->ruling.decision.reason != WEIR_DRY)
        return;
    alone.all = true;
    weir__agent_check(f, a, &alone);
}

static void refuse(struct weir__agent_ask *a)
{
    a->ruling.decision.reason = WEIR_LIMITED;
    a->ruling.decision.retry = a->wait.retry;
    a->ruling.level = 3;
}

static bool is_named(const struct weir__agent_ask *a, size_t i)
{
    return a->dues[i].rule == a->ruling.rule && a->dues[i].index == a->ruling.limit_index;
}

/* An account that it waited for has just said what is left there, beside the units that were drawn,
 * and when all is back.  What the others said was before: other nodes may have drawn since.  What
 * is left in an account that is closed to this host cannot be taken right now. */
static void tell_left(struct weir__agent_ask *a, weir_time now)
{
    struct weir_decision *d = &a->ruling.decision;

    for (size_t i = 0; a->ruling.fleet && i < a->wait.n; i++) {
        const struct weir__fleet_key *k = a->wait.items[i].key;
        if (!is_named(a, i) || k->limit == NULL || k->left < 0 || !a->wait.items[i].answered)
            continue;
        int64_t left = k->spent && k->closed_until > now ? 0 : k->left;
        d->remaining = left < d->limit - d->remaining ? d->remaining + left : d->limit;
        d->reset = weir__int_most(0, k->full_at - now);
        a->ruling.fleet = false;
    }
}

/* Refused by an account: that counts as any refusal does, so its purse says so.  It was not closed
 * while it had units; from now on asks are refused without coming here.  With too few units in it
 * for this ask, or in its account, it stays open. */
static void decide_refused(struct weir_fleet *f, struct weir__agent_ask *a, weir_time now)
{
    struct weir__alone_rules last = { .last = true, .retry = a->wait.retry };
    size_t refuser = a->wait.refuser ? (size_t)(a->wait.refuser - a->wait.items) : a->wait.n;

    if (refuser < a->wait.n) {
        last.refused = a->dues[refuser].rule;
        last.refused_index = a->dues[refuser].index;
    }
    for (size_t i = 0; i < a->wait.n; i++) {
        const struct weir__fleet_key *k = a->wait.items[i].key;
        if (k->limit && k->spent && k->closed_until > now)
            weir__agent_world.close(f, k, k->closed_until, k->told_until, now);
    }
    if (weir__agent_check(f, a, &last))
        return;
    if (a->ruling.decision.reason == WEIR_DRY)
        refuse(a);
    else if (refuser < a->wait.n && is_named(a, refuser) && a->wait.items[refuser].key->limit)
        a->ruling.decision.remaining = weir__agent_world.have(f, a->wait.items[refuser].key, now);
    tell_left(a, now);
}

static void answer(struct weir_fleet *f, struct weir__agent_ask *a, weir_time now)
{
    bool granted = a->wait.over && a->wait.outcome == WEIR__FLEET_TOOK;

    if (granted)
        tell_left(a, now);
    for (size_t i = 0; i < a->wait.n; i++)
        a->wait.items[i].key->own.asks--;
    if (granted || weir__ask_begin(a)) {
        a->request.ask.now = now;
        f->asks_alone += a->alone;
        if (a->alone)
            decide_alone(f, a, now);
        else if (!granted && a->ruling.decision.reason == WEIR_DRY)
            decide_refused(f, a, now);
        a->done(a->context, &a->ruling, a->told);
    } else if (has_state(a, WEIR__ASK_BUSY_CANCELLED)) {
        if (a->ruling.decision.reason == WEIR_DRY)
            refuse(a);
        a->done(a->context, &a->ruling, a->told);
    } else if (f->on_freed) {
        f->on_freed(f->on_answered_context, a->caller);
    }
    clear_place(a);
}

void weir__asks_answer(struct weir_fleet *f, weir_time now)
{
    struct weir__agent_ask *first = f->over, *next;
    bool any = first != NULL;
    size_t n = 0;

    f->over = NULL;
    f->over_last = &f->over;
    for (struct weir__agent_ask *a = first; a; a = next) {
        next = a->next;
        answer(f, a, now);
        if (next == NULL || ++n % GIVEN_BACK == 0) {
            give_places(f, first, a);
            first = next;
        }
    }
    if (any && f->on_answered)
        f->on_answered(f->on_answered_context);
}

void weir__ask_end(struct weir_fleet *f, struct weir__agent_ask *a, weir_time now)
{
    weir__fleet_cancel(f->fleet, &a->wait, now);
    a->alone = true;
    weir__ask_over(f, a);
}

weir_time weir__asks_turn(struct weir_fleet *f, weir_time now)
{
    while (f->first && f->first->deadline <= now)
        weir__ask_end(f, f->first, now);
    weir__asks_answer(f, now);
    return f->first ? f->first->deadline : WEIR_NEVER;
}

/* ------------------------------------------------------------------ callers ---- */

static weir_time deadline_of(const struct weir__agent_ask *a, weir_time now)
{
    weir_time within = WEIR_NEVER - now;

    for (size_t i = 0; i < a->n_dues; i++)
        within = a->dues[i].within < within ? a->dues[i].within : within;
    return now + within;
}

bool weir__agent_wait(struct weir_fleet *f, const struct weir__agent_dry *dry, uint64_t *ticket,
                      struct weir__agent_list *list)
{
    const struct weir_fleet_ask *ask = &dry->ask;
    struct weir_request request = { ask->attrs, ask->n, ask->ask };
    bool own = list->first != NULL || f->pid == getpid(); /* no child of fork goes on with a list */
    struct weir__agent_ask *a = own ? take_place(f) : NULL;

    if (!a)
        return false;
    a->n_dues =
        f->host->dues(f->weir, ask->attrs, ask->n, &ask->ask, a->dues, WEIR__FLEET_ITEMS_MAX);
    a->request.attrs = NULL;
    if (a->n_dues == 0 || !copy_request(a, &request)) {
        clear_place(a);
        give_places(f, a, a);
        return false;
    }
    a->job.begin = begin;
    a->fleet = f;
    a->wait.n = 0;
    a->wait.over = a->lined = a->alone = false;
    a->wait.outcome = WEIR__FLEET_REFUSED;
    a->ruling.decision.reason = WEIR_DRY;
    a->deadline = deadline_of(a, weir__agent_time(f));
    a->decide = dry->decide;
    a->entering = (struct weir__entering){ ask->entry, ask->asked };
    a->caller = dry->caller;
    a->done = ask->done;
    a->context = ask->context;
    uint64_t word = __atomic_load_n(&a->word, __ATOMIC_RELAXED) | WEIR__ASK_WAITS;
    *ticket = (word >> SHIFT) * WEIR__AGENT_ASKS + (uint64_t)(a - f->asks);
    __atomic_store_n(&a->word, word, __ATOMIC_RELEASE);
    a->job.next = NULL;
    if (list->last)
        list->last->job.next = &a->job;
    else
        list->first = a;
    list->last = a;
    return true;
}

void weir__agent_hand_over(struct weir_fleet *f, struct weir__agent_list *list)
{
    if (list->first)
        weir__redis_thread_put_all(f->redis, &list->first->job, &list->last->job);
    *list = (struct weir__agent_list){ 0 };
}

void weir__agent_on_answered(struct weir_fleet *f, void (*answered)(void *context),
                             void (*freed)(void *context, uint32_t caller), void *context)
{
    f->on_answered_context = context;
    f->on_answered = answered;
    f->on_freed = freed;
}

bool weir_fleet_ask(struct weir_fleet *f, const struct weir_fleet_ask *ask,
                    struct weir_ruling *ruling, char key[WEIR_KEY_TEXT], uint64_t *ticket)
{
    struct weir__alone_rules alone = { .all = true };
    struct weir__agent_list list = { 0 };
    struct weir_request r = { ask->attrs, ask->n, ask->ask };
    const struct weir__entering entering = { ask->entry, ask->asked };

    if (ask->entry ? f->host->enter(f->weir, &r, NULL, &entering, ruling, key)
                   : f->host->check(f->weir, ask->attrs, ask->n, &ask->ask, ruling, key))
        return true;
    weir_fleet_refused(f, ruling, key, ask->ask.cost);
    if (ruling->decision.reason != WEIR_DRY)
        return true;
    if (weir__agent_wait(f, &(struct weir__agent_dry){ .ask = *ask }, ticket, &list)) {
        weir__agent_hand_over(f, &list);
        return false;
    }
    if (ask->entry)
        f->host->enter(f->weir, &r, &alone, &entering, ruling, key);
    else
        f->host->check_alone(f->weir, ask->attrs, ask->n, &ask->ask, &alone, ruling, key);
    return true;
}

bool weir_fleet_cancel(struct weir_fleet *f, uint64_t ticket)
{
    struct weir__agent_ask *a = &f->asks[ticket % WEIR__AGENT_ASKS];
    uint64_t base = ticket / WEIR__AGENT_ASKS << SHIFT, word = base | WEIR__ASK_WAITS;

    while (!__atomic_compare_exchange_n(
        &a->word, &word,
        base | (word == (base | WEIR__ASK_BUSY) ? WEIR__ASK_BUSY_CANCELLED : WEIR__ASK_CANCELLED),
        false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        if (word != (base | WEIR__ASK_WAITS) && word != (base | WEIR__ASK_BUSY))
            return false;
    return word == (base | WEIR__ASK_WAITS);
}

struct waiter {
    struct weir_ruling *ruling;
    uint32_t ready;
};

static void wake(void *context, const struct weir_ruling *ruling, const char *key)
{
    struct waiter *w = context;

    (void)key;
    *w->ruling = *ruling;
    weir__redis_ready_set(&w->ready);
}

bool weir_fleet_check(struct weir_fleet *f, const struct weir_attr *attrs, size_t n,
                      const struct weir_ask *ask, struct weir_ruling *ruling)
{
    struct waiter waiter = { .ruling = ruling };
    struct weir_fleet_ask waits = {
        .attrs = attrs, .n = n, .ask = *ask, .done = wake, .context = &waiter
    };
    char key[WEIR_KEY_TEXT];
    uint64_t ticket;

    if (!weir_fleet_ask(f, &waits, ruling, key, &ticket))
        weir__redis_ready_wait(&waiter.ready);
    return ruling->decision.allowed;
}
