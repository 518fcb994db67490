/* queue.c -- waiters in FIFO order, by priority, or by weighted classes; with deadlines, and a cure
 * for standing queues.
 *
 * A queue is a few lanes, each a list of waiters in order of arrival: one lane (FIFO), one per
 * priority, or one per class.  The caller's waiters carry the links, so nothing is allocated after
 * create, and leaving changes a few pointers.
 *
 * Weighted.  Every class has a tag in virtual time; the lowest tag goes first, and a turn adds
 * 1/weight to it.  So with weights 3:2:1 any six turns in a row are 3, 2 and 1, well mixed, and
 * nobody starves.  The tag of an empty class goes on with virtual time: it saves nothing up.  When
 * the queue runs empty all tags are forgotten: turns that nobody else wanted cost nothing.
 * (Start-time fair queueing, Goyal, Vin and Cheng 1996, with turns as packets.)  Why not a round of
 * three, two and one in blocks: with weights of hundreds a class would wait for hundreds of turns.
 *
 * Overload, after CoDel (RFC 8289): a queue that is short now and then does its work; a standing
 * one only makes everybody wait.  If at every turn of a whole interval the first in line had waited
 * longer than the target, waiters of more than twice the target are dropped when they reach the
 * front; that ends when a waiter reaches the front within the target, or the queue is empty.
 * Deviations: no control law that drops ever more often, which is for senders that slow down one by
 * one; the band between once and twice the target, as in folly, keeps it from flapping; the last
 * waiter is never dropped, because then nobody would get the turn.
 *
 * Deadlines are in a heap, so late waiters are found without looking at the others.  Put, next and
 * cancel are O(log n) for waiters with a deadline, and O(lanes) for others.
 *
 * The pace is the mean time between turns while there are waiters; a wait is estimated as the pace
 * times the number of waiters before it.  An estimate never refuses the first in line, so a wrong
 * pace corrects itself.
 *
 * A key (a hash, from guards with a bound by key) may have as many waiters as it may have permits,
 * and never more than places are left.  So one client takes at most half of the places, the next at
 * most half of the rest, and a key without waiters gets any free place.
 *
 * If the clock steps back, a wait counts as 0 and deadlines stay as they are; nothing else happens.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "queue/queue.h"

/* One turn of weight 1 in virtual time: weights up to 16 divide it exactly, and tags go round only
 * after 2^24 such turns. */
#define TURN ((uint64_t)720720 << 20)

#define PACES_KNOWN 8  /* measurements after which the pace is known ... */
#define PACES_MAX   16 /* ... and becomes a moving mean of about this many */

/* --------------------------------------------------------------- times ---- */

static weir_time span_of(weir_time from, weir_time to)
{
    weir_time span;

    if (to <= from)
        return 0;
    return __builtin_sub_overflow(to, from, &span) ? INT64_MAX : span;
}

static weir_time wait_of(const struct weir_waiter *w, weir_time now)
{
    return span_of(weir__own(w)->since, now);
}

static bool is_timed(const struct weir_waiter *w)
{
    return w->deadline != 0 && w->deadline != WEIR_FOREVER;
}

static bool is_over(const struct weir_waiter *w, weir_time now)
{
    return is_timed(w) && now > w->deadline;
}

/* ---------------------------------------------------------- joining, leaving ---- */

static int lane_of(const struct weir_queue *q, int8_t priority, uint8_t user_class)
{
    if (q->options.order == WEIR_PRIORITY)
        return WEIR_PRIORITY_MAX - (priority < WEIR_PRIORITY_MIN   ? WEIR_PRIORITY_MIN
                                    : priority > WEIR_PRIORITY_MAX ? WEIR_PRIORITY_MAX
                                                                   : priority);
    if (q->options.order == WEIR_WEIGHTED)
        return user_class < WEIR_CLASSES ? user_class : WEIR_CLASSES - 1;
    return 0;
}

static struct weir__lane *lane_with(struct weir_queue *q, const struct weir_waiter *w)
{
    return &q->lanes[lane_of(q, w->priority, w->user_class)];
}

static void append(struct weir__waiters *to, struct weir_waiter *w)
{
    w->next = NULL;
    weir__own(w)->previous = to->last;
    *(to->last != NULL ? &to->last->next : &to->first) = w;
    to->last = w;
}

static void detach(struct weir__waiters *from, struct weir_waiter *w)
{
    struct weir_waiter *previous = weir__own(w)->previous;

    *(previous != NULL ? &previous->next : &from->first) = w->next;
    *(w->next != NULL ? &weir__own(w->next)->previous : &from->last) = previous;
}

/* A newcomer, or one that has waited before the options were changed. */
static void link_last(struct weir_queue *q, struct weir_waiter *w)
{
    struct weir__lane *lane = lane_with(q, w);

    weir__own(w)->queue = q;
    w->reason = WEIR_BUSY;
    append(&lane->all, w);
    lane->length++;
    weir__set(&q->length, q->length + 1);
    weir__own(w)->place = 0;
    if (is_timed(w))
        weir__deadlines_add(q, w);
    if (weir__own(w)->key != 0)
        weir__key_counts_add(&q->keys, weir__own(w)->key);
}

static void arrive(struct weir_queue *q, struct weir_waiter *w, weir_time now)
{
    if (q->length == 0)
        q->front_since = now;
    weir__own(w)->since = now;
    weir__own(w)->arrival = ++q->arrivals;
    weir__own(w)->blocked = 0;
    link_last(q, w);
}

/* The queue is empty: not overloaded, and the tags are forgotten. */
static void run_empty(struct weir_queue *q)
{
    q->above = false;
    weir__set(&q->open_to, 0);
    q->virtual_time = 0;
    for (int i = 0; i < WEIR__LANES; i++)
        q->lanes[i].tag = 0;
}

static void take_out(struct weir_queue *q, struct weir_waiter *w, enum weir_reason reason)
{
    struct weir__lane *lane = lane_with(q, w);

    detach(&lane->all, w);
    lane->length--;
    if (weir__own(w)->place != 0)
        weir__deadlines_remove(q, w);
    if (weir__own(w)->key != 0)
        weir__key_counts_remove(&q->keys, weir__own(w)->key);
    w->next = weir__own(w)->previous = NULL;
    weir__own(w)->queue = NULL;
    w->reason = (uint8_t)reason;
    weir__set(&q->length, q->length - 1);
    if (q->length == 0)
        run_empty(q);
}

/* `gone`: those that left, in order. */
static void leave(struct weir_queue *q, struct weir_waiter *w, enum weir_reason reason,
                  struct weir__waiters *gone)
{
    take_out(q, w, reason);
    append(gone, w);
}

/* They keep no place from others, whoever tells them, and when. */
static void set_late_aside(struct weir_queue *q, weir_time now)
{
    while (q->timed > 0 && is_over(q->heap[1], now)) {
        struct weir_waiter *w = q->heap[1];
        leave(q, w, WEIR_LATE, &q->late);
        weir__own(w)->queue = q;
        weir__set(&q->n_late, q->n_late + 1);
    }
}

static void leave_aside(struct weir_queue *q, struct weir_waiter *w, enum weir_reason reason)
{
    detach(&q->late, w);
    weir__own(w)->queue = NULL;
    w->reason = (uint8_t)reason;
    weir__set(&q->n_late, q->n_late - 1);
}

static void leave_late(struct weir_queue *q, weir_time now, struct weir__waiters *gone)
{
    set_late_aside(q, now);
    for (struct weir_waiter *w; (w = q->late.first) != NULL;) {
        leave_aside(q, w, WEIR_LATE);
        append(gone, w);
    }
}

/* ---------------------------------------------------------- whose turn it is ---- */

_Static_assert(WEIR__LANES <= 32, "a bit each");

/* The lane whose turn it is, of all but those in `without`; NULL: nobody waits there. */
static struct weir__lane *lane_next(struct weir_queue *q, uint32_t without)
{
    struct weir__lane *next = NULL;

    for (int i = 0; i < WEIR__LANES; i++) {
        struct weir__lane *lane = &q->lanes[i];
        if (lane->length == 0 || (without >> i & 1) != 0)
            continue;
        if (q->options.order != WEIR_WEIGHTED)
            return lane;
        if (next == NULL || (int64_t)(lane->tag - next->tag) < 0)
            next = lane;
    }
    return next;
}

static bool is_overloaded(const struct weir_queue *q, weir_time now)
{
    return q->above && now >= q->above_since && span_of(q->above_since, now) >= q->options.interval;
}

static bool is_dropped(const struct weir_queue *q, const struct weir_waiter *first, weir_time now)
{
    return q->length > 1 && wait_of(first, now) - q->options.target > q->options.target;
}

/* The next one, after dropping those that are too late. */
static struct weir_waiter *choose(struct weir_queue *q, weir_time now, struct weir__waiters *gone)
{
    struct weir__lane *lane = lane_next(q, 0);
    bool overloaded = is_overloaded(q, now);

    while (overloaded && lane != NULL && is_dropped(q, lane->all.first, now)) {
        leave(q, lane->all.first, WEIR_LATE, gone);
        lane = lane_next(q, 0);
    }
    if (lane == NULL)
        return NULL;
    return overloaded && q->options.newest_first_when_late ? lane->all.last : lane->all.first;
}

/* A turn is given in this lane: notes how long its first waiter has waited. */
static void watch(struct weir_queue *q, const struct weir__lane *lane, weir_time now)
{
    if (q->options.target == 0)
        return;
    if (lane->length == 0 || wait_of(lane->all.first, now) <= q->options.target) {
        q->above = false;
    } else if (!q->above || now < q->above_since) {
        q->above = true;
        q->above_since = now;
    }
}

static void measure_pace(struct weir_queue *q, weir_time now)
{
    double took = (double)span_of(q->front_since, now);

    q->paces += q->paces < PACES_MAX;
    q->pace += (took - q->pace) / q->paces;
    q->front_since = now;
}

static void give_turn(struct weir_queue *q, struct weir_waiter *w, weir_time now,
                      struct weir__waiters *gone)
{
    struct weir__lane *lane = lane_with(q, w);

    watch(q, lane, now);
    measure_pace(q, now);
    q->virtual_time = lane->tag;
    for (int i = 0; q->options.order == WEIR_WEIGHTED && i < WEIR_CLASSES; i++)
        if (q->lanes[i].length == 0 && (int64_t)(q->virtual_time - q->lanes[i].tag) > 0)
            q->lanes[i].tag = q->virtual_time; /* far behind, it would seem to be ahead */
    lane->tag += lane->stride;
    leave(q, w, WEIR_GRANTED, gone);
}

/* --------------------------------------------------------------- estimates ---- */

/* Waiters with a turn before one that comes now. */
static int64_t count_before(const struct weir_queue *q, int own, weir_time now)
{
    const struct weir__lane *lane = &q->lanes[own];
    bool newest = q->options.newest_first_when_late && is_overloaded(q, now);
    int64_t before = newest ? 0 : lane->length, mine = before + 1;

    for (int i = 0; i < WEIR__LANES; i++) {
        const struct weir__lane *other = &q->lanes[i];
        if (i == own || other->length == 0)
            continue;
        if (q->options.order == WEIR_WEIGHTED) { /* turns of others during its own, rounded up */
            int64_t theirs = q->options.weights[i], weight = q->options.weights[own];
            int64_t turns = (mine * theirs + weight - 1) / weight;
            before += turns < other->length ? turns : other->length;
        } else if (i < own) {
            before += other->length;
        }
    }
    return before;
}

static bool is_known(const struct weir_queue *q)
{
    return q->paces >= PACES_KNOWN;
}

static weir_time estimate(const struct weir_queue *q, int64_t turns)
{
    double wait = is_known(q) ? q->pace * (double)turns : 0;

    return wait < 9e18 ? (weir_time)wait : WEIR_FOREVER;
}

/* Fewer than none, if the queue was made shorter than its waiters. */
static int64_t places_left(const struct weir_queue *q)
{
    return q->length < q->options.max ? q->options.max - q->length : 0;
}

/* Refuses it; an ask after `retry` may pass. */
static bool refuse(const struct weir_queue *q, enum weir_reason reason, weir_time retry,
                   struct weir_decision *d)
{
    *d = (struct weir_decision){ .reason = (uint8_t)reason,
                                 .limit = q->options.max,
                                 .remaining = places_left(q) };
    d->retry = retry > 0 ? retry : is_known(q) ? 1 : WEIR_MILLISECOND;
    d->reset = estimate(q, q->length);
    return false;
}

static bool put_locked(struct weir_queue *q, struct weir_waiter *w, int64_t key_max, weir_time now,
                       struct weir_decision *d)
{
    set_late_aside(q, now);
    int64_t before = count_before(q, lane_of(q, w->priority, w->user_class), now);
    weir_time wait = estimate(q, before),
              patience = is_timed(w) ? span_of(now, w->deadline) : WEIR_FOREVER;

    if (is_over(w, now))
        return refuse(q, WEIR_LATE, wait, d);
    if (q->length >= q->options.max)
        return refuse(q, WEIR_FULL, estimate(q, 1), d);
    if (weir__key_counts_is_full(&q->keys, weir__own(w)->key, key_max, places_left(q))) {
        refuse(q, WEIR_KEY_BUSY, estimate(q, 1), d);
        d->limit = key_max;
        d->remaining = 0;
        return false;
    }
    if (wait > patience)
        return refuse(q, WEIR_LATE, wait - patience, d);
    arrive(q, w, now);
    *d = (struct weir_decision){
        .allowed = true, .limit = q->options.max, .remaining = places_left(q), .wait = wait
    };
    d->reset = estimate(q, q->length);
    return true;
}

/* -------------------------------------------------------- create and destroy ---- */

static void use_options(struct weir_queue *q, const struct weir_queue_options *options)
{
    q->options = *options;
    for (int i = 0; i < WEIR_CLASSES; i++)
        q->lanes[i].stride = TURN / (uint64_t)options->weights[i];
}

/* Changes the room to this many waiters; false: no memory. */
static bool make_room(struct weir_queue *q, int64_t most)
{
    struct weir_waiter **heap = calloc((size_t)most + 1, sizeof(*heap));
    struct weir__key_counts keys;

    if (heap == NULL || !weir__key_counts_make(&keys, (size_t)most)) {
        free(heap);
        return false;
    }
    free(q->heap);
    free(q->keys.slots);
    q->heap = heap;
    q->keys = keys;
    return true;
}

int weir_queue_create(struct weir_queue **out, const struct weir_queue_options *options,
                      struct weir_error *error)
{
    static const struct weir_queue_options defaults;

    assert(out != NULL);
    options = options ? options : &defaults;
    int code = weir__queue_options_check(options, error);
    if (code != WEIR_OK)
        return code;
    struct weir_queue_options filled = weir__queue_options_fill(options);
    struct weir_queue *q = calloc(1, sizeof(*q));
    if (q == NULL || !make_room(q, filled.max) || pthread_mutex_init(&q->lock, NULL) != 0) {
        if (q != NULL) {
            free(q->keys.slots);
            free(q->heap);
        }
        free(q);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a queue of %lld",
                          (long long)filled.max);
    }
    use_options(q, &filled);
    *out = q;
    return WEIR_OK;
}

void weir_queue_destroy(struct weir_queue *queue)
{
    if (queue == NULL)
        return;
    pthread_mutex_destroy(&queue->lock);
    free(queue->keys.slots);
    free(queue->heap);
    free(queue);
}

/* ------------------------------------------------------------------- in use ---- */

bool weir_queue_put(struct weir_queue *queue, struct weir_waiter *waiter, weir_time now,
                    struct weir_decision *decision)
{
    assert(weir__own(waiter)->queue == NULL);
    weir__own(waiter)->key = 0;
    pthread_mutex_lock(&queue->lock);
    bool waits = put_locked(queue, waiter, 0, now, decision);
    pthread_mutex_unlock(&queue->lock);
    return waits;
}

struct weir_waiter *weir_queue_next(struct weir_queue *queue, weir_time now,
                                    struct weir_waiter **left)
{
    struct weir__waiters late = { 0 }, next = { 0 };

    pthread_mutex_lock(&queue->lock);
    leave_late(queue, now, &late);
    struct weir_waiter *w = choose(queue, now, &late);
    if (w != NULL)
        give_turn(queue, w, now, &next);
    pthread_mutex_unlock(&queue->lock);
    *left = late.first;
    return w;
}

struct weir_waiter *weir_queue_late(struct weir_queue *queue, weir_time now)
{
    struct weir__waiters late = { 0 };

    pthread_mutex_lock(&queue->lock);
    leave_late(queue, now, &late);
    pthread_mutex_unlock(&queue->lock);
    return late.first;
}

struct weir_waiter *weir__queue_clear(struct weir_queue *queue)
{
    struct weir__waiters gone = { 0 };

    pthread_mutex_lock(&queue->lock);
    leave_late(queue, 0, &gone);
    for (int i = 0; i < WEIR__LANES; i++)
        while (queue->lanes[i].all.first != NULL)
            leave(queue, queue->lanes[i].all.first, WEIR_CANCELLED, &gone);
    pthread_mutex_unlock(&queue->lock);
    return gone.first;
}

bool weir_queue_cancel(struct weir_queue *queue, struct weir_waiter *waiter)
{
    pthread_mutex_lock(&queue->lock);
    bool waits = weir__own(waiter)->queue == queue;
    if (waits && waiter->reason == WEIR_LATE)
        leave_aside(queue, waiter, WEIR_CANCELLED);
    else if (waits)
        take_out(queue, waiter, WEIR_CANCELLED);
    pthread_mutex_unlock(&queue->lock);
    return waits;
}

weir_time weir_queue_estimate(struct weir_queue *queue, int8_t priority, uint8_t user_class,
                              weir_time now)
{
    pthread_mutex_lock(&queue->lock);
    set_late_aside(queue, now);
    weir_time wait =
        estimate(queue, count_before(queue, lane_of(queue, priority, user_class), now));
    pthread_mutex_unlock(&queue->lock);
    return wait;
}

int64_t weir_queue_length(const struct weir_queue *queue)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&queue->lock;

    pthread_mutex_lock(lock);
    int64_t length = queue->length + queue->n_late;
    pthread_mutex_unlock(lock);
    return length;
}

/* ------------------------------------------------------------ other options ---- */

/* The waiter that came first, out of its lane; NULL: none is left. */
static struct weir_waiter *pull_oldest(struct weir_queue *q)
{
    struct weir__lane *oldest = NULL;

    for (int i = 0; i < WEIR__LANES; i++) {
        struct weir__lane *lane = &q->lanes[i];
        if (lane->all.first != NULL &&
            (oldest == NULL ||
             weir__own(lane->all.first)->arrival < weir__own(oldest->all.first)->arrival))
            oldest = lane;
    }
    struct weir_waiter *w = oldest != NULL ? oldest->all.first : NULL;
    if (w != NULL)
        oldest->all.first = w->next;
    return w;
}

static void change_locked(struct weir_queue *q, const struct weir_queue_options *options)
{
    struct weir__waiters all = { 0 };

    if (!make_room(q, options->max > q->length ? options->max : q->length))
        return;
    for (struct weir_waiter *w; (w = pull_oldest(q)) != NULL; all.last = w)
        *(all.last != NULL ? &all.last->next : &all.first) = w;
    if (all.last != NULL)
        all.last->next = NULL;
    memset(q->lanes, 0, sizeof(q->lanes));
    weir__set(&q->length, 0);
    q->timed = 0;
    q->virtual_time = 0;
    q->above = false;
    use_options(q, options);
    for (struct weir_waiter *w = all.first, *next; w != NULL; w = next) {
        next = w->next;
        link_last(q, w);
    }
}

void weir__queue_change(struct weir_queue *queue, const struct weir_queue_options *options)
{
    struct weir_queue_options filled = weir__queue_options_fill(options);

    assert(weir__queue_options_check(options, NULL) == WEIR_OK);
    pthread_mutex_lock(&queue->lock);
    if (!weir__queue_options_are_same(&queue->options, &filled))
        change_locked(queue, &filled);
    pthread_mutex_unlock(&queue->lock);
}

/* ------------------------------------------------------------ turns on offer ---- */

#define PASS_LOOK 64 /* waiters that are looked at for one that can pass */

static int64_t cost_of(const struct weir_waiter *w)
{
    return weir__own(w)->ask.cost > 1 ? weir__own(w)->ask.cost : 1;
}

/* Its turn has come, but not its permits.  Others may pass it in the first, third, ... of the
 * stretches that begin after 1, 2, 4, 8, ... times `hold`. */
static bool may_be_passed(struct weir_waiter *w, weir_time now, weir_time hold)
{
    weir_time *since = &weir__own(w)->blocked;

    if (*since == 0)
        *since = now != 0 ? now : 1;
    uint64_t times = (uint64_t)(span_of(*since, now) / (hold > 0 ? hold : 1));
    return times > 0 && (63 - __builtin_clzll(times)) % 2 == 0;
}

/* The first that asks for less, of the lanes in the order of their turns; NULL: none among the
 * next, and `more` if there are others behind them. */
static struct weir_waiter *find_smaller(struct weir_queue *q, int64_t cost, bool *more)
{
    uint32_t seen = 0;
    int look = PASS_LOOK;

    for (struct weir__lane *lane; (lane = lane_next(q, seen)) != NULL;) {
        seen |= 1u << (lane - q->lanes);
        for (struct weir_waiter *w = lane->all.first; w != NULL; w = w->next)
            if ((*more = look-- == 0))
                return NULL;
            else if (cost_of(w) < cost)
                return w;
    }
    return NULL;
}

/* Offers the turn that `w` cannot use to those that ask for less.  Returns the last one, which has
 * taken it, or has left, or (still WEIR_BUSY) is the smallest; unless there are `more`. */
static struct weir_waiter *offer_behind(struct weir_queue *q, struct weir_waiter *w,
                                        weir__offer *offer, void *context, enum weir_reason *reason,
                                        bool *more)
{
    for (struct weir_waiter *smaller;
         *reason == WEIR_BUSY && (smaller = find_smaller(q, cost_of(w), more)) != NULL;) {
        w = smaller;
        *reason = offer(context, w);
    }
    return w;
}

struct weir_waiter *weir__queue_offer(struct weir_queue *queue, weir_time now, weir_time hold,
                                      weir__offer *offer, void *context)
{
    struct weir__waiters gone = { 0 };
    int64_t open_to = 0;

    pthread_mutex_lock(&queue->lock);
    leave_late(queue, now, &gone);
    for (struct weir_waiter *w; (w = choose(queue, now, &gone)) != NULL;) {
        enum weir_reason reason = offer(context, w);
        bool passed = reason == WEIR_BUSY && cost_of(w) > 1 && may_be_passed(w, now, hold),
             more = false;
        if (passed)
            w = offer_behind(queue, w, offer, context, &reason, &more);
        if (reason == WEIR_BUSY) {
            open_to = passed && !more ? cost_of(w) : 0;
            break;
        }
        if (reason == WEIR_GRANTED)
            give_turn(queue, w, now, &gone);
        else
            leave(queue, w, reason, &gone);
    }
    weir__set(&queue->open_to, open_to); /* once: others read it meanwhile */
    pthread_mutex_unlock(&queue->lock);
    return gone.first;
}

/* A turn without a wait does not measure the pace, but shows a wait below the target. */
static enum weir_reason offer_first(struct weir_queue *q, const struct weir__joining *j)
{
    enum weir_reason reason = j->offer != NULL ? j->offer(j->context, j->waiter) : WEIR_BUSY;

    if (reason == WEIR_GRANTED)
        watch(q, lane_with(q, j->waiter), j->now);
    return reason;
}

/* A place is free once a turn is over: no sooner than a permit is. */
static void retry_after(weir_time permit, struct weir_decision *d)
{
    if (d->reason != WEIR_LATE && d->retry < permit)
        d->retry = permit;
}

enum weir_reason weir__queue_join(struct weir_queue *queue, struct weir__joining *j)
{
    struct weir_waiter *w = j->waiter;

    assert(weir__own(w)->queue == NULL);
    j->waits = j->turned_away = false;
    weir__own(w)->key = j->key;
    pthread_mutex_lock(&queue->lock);
    set_late_aside(queue, j->now);
    int64_t before = count_before(queue, lane_of(queue, w->priority, w->user_class), j->now);
    j->behind = before > 0 && !weir__queue_is_open_to(queue, cost_of(w));
    enum weir_reason reason = !j->behind || j->offer_behind ? offer_first(queue, j) : WEIR_BUSY;
    weir_time permit = j->decision->retry;
    if (reason == WEIR_BUSY && j->patient) {
        j->waits = put_locked(queue, w, j->key_max, j->now, j->decision);
        j->turned_away = !j->waits;
        if (j->turned_away)
            retry_after(permit, j->decision);
        reason = j->waits ? WEIR_BUSY : (enum weir_reason)j->decision->reason;
        if (j->waits && weir__queue_is_open_to(queue, cost_of(w)))
            weir__set(&queue->open_to, cost_of(w));
    } else if (j->behind && reason == WEIR_BUSY) {
        refuse(queue, WEIR_BUSY, estimate(queue, before), j->decision);
        retry_after(permit, j->decision);
    }
    pthread_mutex_unlock(&queue->lock);
    return reason;
}

struct weir_waiter *weir__queue_front_locked(struct weir_queue *queue, weir_time now)
{
    set_late_aside(queue, now);
    struct weir__lane *lane = lane_next(queue, 0);
    if (lane == NULL)
        return NULL;
    return queue->options.newest_first_when_late && is_overloaded(queue, now) ? lane->all.last
                                                                              : lane->all.first;
}
