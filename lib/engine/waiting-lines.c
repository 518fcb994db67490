/* waiting-lines.c -- where requests of this process wait: the queues of the rules' guards. */
#include "engine/waiting-lines.h"

#include <stdlib.h>

void weir__lines_free(struct weir *weir)
{
    for (struct weir__line *l = weir->lines, *next; l != NULL; l = next) {
        next = l->next;
        weir_queue_destroy(l->queue);
        free(l);
    }
}

struct weir__line *weir__line_find(const struct weir *weir, const struct weir_guard *guard)
{
    struct weir__line *l = weir__line_first(weir);

    while (l != NULL && l->guard->id != guard->id)
        l = l->next;
    return l;
}

static struct weir__line *make_locked(struct weir *weir, struct weir_guard *guard,
                                      const struct weir_queue_options *options)
{
    struct weir__line *l = calloc(1, sizeof(*l));

    if (l == NULL || weir_queue_create(&l->queue, options, NULL) != WEIR_OK) {
        free(l);
        return NULL;
    }
    l->weir = weir;
    l->guard = guard;
    l->next = weir->lines;
    weir__publish(&weir->lines, l);
    return l;
}

/* If the rules have changed the queue, its waiters stay, in their order. */
struct weir__line *weir__line_claim(struct weir *weir, struct weir_guard *guard,
                                    const struct weir_ask *ask, weir_time *wait)
{
    struct weir_queue_options options;
    weir_time longest;

    if (!weir_ruled_queue_get(weir, weir__guard_name(guard), &options, &longest))
        return NULL;
    longest = weir__ruled_wait(weir, weir__guard_name(guard), ask);
    *wait = longest < *wait ? longest : *wait;
    if (*wait == 0)
        return NULL;
    struct weir__line *l = weir__line_find(weir, guard);
    if (l == NULL) {
        pthread_mutex_lock(&weir->mutex);
        l = weir__line_find(weir, guard);
        l = l != NULL ? l : make_locked(weir, guard, &options);
        pthread_mutex_unlock(&weir->mutex);
    }
    if (l != NULL)
        weir__queue_change(l->queue, &options);
    return l;
}

int64_t weir__line_length(const struct weir *weir, const struct weir_guard *guard, weir_time now)
{
    struct weir__line *l = weir__line_find(weir, guard);

    if (l == NULL || weir__get(&l->queue->length) == 0)
        return 0;
    if (pthread_mutex_trylock(&l->queue->lock) == 0) { /* as below */
        (void)weir__queue_front_locked(l->queue, now);
        pthread_mutex_unlock(&l->queue->lock);
    }
    return weir__get(&l->queue->length);
}

bool weir__line_is_occupied(const struct weir *weir, const struct weir_guard *guard,
                            const struct weir_ask *ask)
{
    struct weir__line *l = weir__line_find(weir, guard);

    if (l == NULL || weir__get(&l->queue->length) == 0 ||
        weir__queue_is_open_to(l->queue, ask->cost))
        return false;
    if (pthread_mutex_trylock(&l->queue->lock) != 0)
        return true; /* it may offer turns, and wait for a stripe: this thread has one */
    bool occupied = weir__queue_front_locked(l->queue, ask->now) != NULL;
    pthread_mutex_unlock(&l->queue->lock);
    return occupied;
}

void weir__waiters_tell(struct weir_waiter *gone)
{
    for (struct weir_waiter *next; gone != NULL; gone = next) {
        next = gone->next;
        gone->next = NULL;
        gone->turn(gone, (enum weir_reason)gone->reason);
    }
}

void weir__line_serve(struct weir__line *line, weir_time now, weir__offer *offer, void *context)
{
    if (!weir__queue_is_empty(line->queue))
        weir__waiters_tell(
            weir__queue_offer(line->queue, now, weir__guard_hold(line->guard), offer, context));
}

/* ------------------------------------------------------------- all of them ---- */

/* Since when the first of a line waits there; lines by age, and of the same age by guard. */
struct front {
    weir_time since;
    uint32_t guard;
};

static bool is_before(const struct front *a, const struct front *b)
{
    return a->since != b->since ? a->since < b->since : a->guard < b->guard;
}

static bool find_front(struct weir__line *line, weir_time now, struct front *out)
{
    if (weir__queue_is_empty(line->queue))
        return false;
    pthread_mutex_lock(&line->queue->lock);
    struct weir_waiter *first = weir__queue_front_locked(line->queue, now);
    *out = (struct front){ first ? weir__own(first)->since : 0, line->guard->id };
    pthread_mutex_unlock(&line->queue->lock);
    return first != NULL || weir__get(&line->queue->n_late) > 0;
}

/* The line whose first has waited longest, of those behind `last`, which becomes that one; NULL:
 * there is none. */
static struct weir__line *find_next(const struct weir *weir, weir_time now, struct front *last)
{
    struct front next = *last, front;
    struct weir__line *found = NULL;

    for (struct weir__line *l = weir__line_first(weir); l != NULL; l = l->next)
        if (find_front(l, now, &front) && is_before(last, &front) &&
            (found == NULL || is_before(&front, &next))) {
            next = front;
            found = l;
        }
    *last = next;
    return found;
}

/* A line that was served may come again, with another one first: so each time `last` is later. */
void weir__lines_serve_all(const struct weir *weir, weir_time now, weir__offer *offer,
                           void *context)
{
    struct front last = { INT64_MIN, 0 };

    for (struct weir__line *l; (l = find_next(weir, now, &last)) != NULL;)
        weir__line_serve(l, now, offer, context);
}
