/* waiting-asks.c -- asks that wait, on one key or on several: all or nothing. */
#include "cluster/fleet/fleet-private.h"

static void queue(struct weir__fleet_item *item)
{
    struct weir__fleet_key *k = item->key;

    item->queued = true;
    item->next = NULL;
    item->before = k->last;
    *(k->last != NULL ? &k->last->next : &k->first) = item;
    k->last = item;
    k->waiting += item->cost;
}

static void dequeue(struct weir__fleet_item *item)
{
    struct weir__fleet_key *k = item->key;

    if (!item->queued)
        return;
    item->queued = false;
    *(item->before != NULL ? &item->before->next : &k->first) = item->next;
    *(item->next != NULL ? &item->next->before : &k->last) = item->before;
    k->waiting -= item->cost;
}

/* ------------------------------------------------------------------- kept ---- */

/* Late units may belong to a window that is over: nobody but the asks that waited may find them in
 * the purse, and those only for the moment in which they take. */
static void keep(struct weir__fleet *f, struct weir__fleet_item *item, struct weir__repay late,
                 weir_time now)
{
    dequeue(item);
    item->kept.units = f->ops->take_out(f->world, item->key, late.units, now);
    item->kept.drawn_at = late.drawn_at;
    weir__fleet_look_over(f, item->key, now);
}

static void lay_out(struct weir__fleet *f, const struct weir__fleet_item *item, weir_time now)
{
    if (item->kept.units == 0)
        return;
    weir__fleet_empty_purse(f, item->key, now);
    f->ops->fill(f->world, item->key, item->kept.units, now, now);
    weir__fleet_look_over(f, item->key, now);
}

/* ---------------------------------------------------------------- the end ---- */

/* Units that came for an ask which takes nothing after all go back at once: kept, they would be
 * missing elsewhere. */
static void undo(struct weir__fleet *f, struct weir__fleet_wait *w, weir_time now)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->items[i].kept.units > 0)
            weir__fleet_repay(f, w->items[i].key, &w->items[i].kept);
        else if (w->items[i].fed)
            weir__fleet_pay_back(f, w->items[i].key, w->items[i].cost, now);
}

/* Units still to come for an ask that was refused elsewhere go back too.  Not if it could not wait
 * for them: it may come again, and would never pass where the way is longer than that. */
static void expect_none(struct weir__fleet_wait *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (!w->items[i].fed)
            w->items[i].key->unwanted = w->items[i].key->drawing;
}

static void end(struct weir__fleet *f, struct weir__fleet_wait *w, enum weir__fleet_outcome outcome,
                weir_time retry, weir_time now)
{
    for (size_t i = 0; i < w->n; i++)
        dequeue(&w->items[i]);
    if (outcome != WEIR__FLEET_TOOK)
        undo(f, w, now);
    if (outcome == WEIR__FLEET_REFUSED)
        expect_none(w);
    w->outcome = outcome;
    w->retry = retry;
    w->over = true;
    for (size_t i = 0; outcome == WEIR__FLEET_ALONE && i < w->n; i++)
        w->items[i].key->alone = true;
    f->counts.alone += outcome == WEIR__FLEET_ALONE;
    f->ops->done(f->world, w);
}

void weir__fleet_cancel(struct weir__fleet *f, struct weir__fleet_wait *w, weir_time now)
{
    if (w->over)
        return;
    for (size_t i = 0; i < w->n; i++)
        dequeue(&w->items[i]);
    undo(f, w, now);
    w->over = true;
}

/* When it passes, if nobody else asks: as far as it is known.  Units in the purse may have expired
 * by then. */
static weir_time retry_of(const struct weir__fleet_item *item, weir_time now)
{
    const struct weir__fleet_key *k = item->key;
    weir_time until = k->spent ? k->told_until : k->large_at;
    weir_time free_in = weir__fleet_free_in(k, item->cost - k->seen, now);

    if (free_in >= k->limit->terms.life)
        free_in = weir__fleet_free_in(k, item->cost, now);
    return weir__int_most(free_in, weir__int_most(0, until - now));
}

/* The account has lately had fewer than it lacks, beside the units in the purse. */
static bool is_large(struct weir__fleet *f, const struct weir__fleet_item *item, weir_time now)
{
    const struct weir__fleet_key *k = item->key;

    return k->large_until > now &&
           item->cost - item->kept.units - f->ops->have(f->world, k, now) >= k->large;
}

static void refuse(struct weir__fleet *f, const struct weir__fleet_item *item, weir_time now)
{
    item->wait->refuser = item;
    end(f, item->wait, WEIR__FLEET_REFUSED, retry_of(item, now), now);
}

void weir__fleet_refuse_large(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    struct weir__fleet_item *next;

    for (struct weir__fleet_item *item = k->first; item != NULL && k->large_until > now;
         item = next) {
        next = item->next;
        if (is_large(f, item, now)) {
            item->answered = true;
            refuse(f, item, now);
        }
    }
}

/* All that lack units: others have theirs here, and wait for another key's. */
void weir__fleet_refuse_all(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    int64_t left = f->ops->have(f->world, k, now);
    struct weir__fleet_item *next;

    for (struct weir__fleet_item *item = k->first; item != NULL; item = next) {
        next = item->next;
        if (item->fed && item->cost <= left) {
            left -= item->cost;
            continue;
        }
        item->answered = true;
        refuse(f, item, now);
    }
}

void weir__fleet_leave_alone(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    while (k->first != NULL)
        end(f, k->first->wait, WEIR__FLEET_ALONE, 0, now);
}

/* ------------------------------------------------------------- on the way ---- */

static bool is_closed(const struct weir__fleet_key *k, weir_time now)
{
    return k->spent && k->closed_until > now;
}

bool weir__fleet_has_refused(const struct weir__fleet_key *k, weir_time now)
{
    return k->refused_at > 0 && now - k->refused_at < k->limit->terms.life;
}

static bool lacks(struct weir__fleet *f, const struct weir__fleet_item *item, weir_time now)
{
    return f->ops->have(f->world, item->key, now) + item->kept.units < item->cost;
}

/* It was counted when it came: the next look must not count it again.  What others have spent
 * meanwhile matters now only if somebody waits for the rest. */
static void note_taken(struct weir__fleet *f, struct weir__fleet_item *item, weir_time now)
{
    struct weir__fleet_key *k = item->key;

    if (k->waiting > item->cost)
        weir__fleet_look_over(f, k, now);
    else
        k->seen = k->seen > item->cost ? k->seen - item->cost : 0;
}

/* Takes from all purses.  Where one purse is all, and has too little, no decision is needed to say
 * so. */
static int take(struct weir__fleet *f, struct weir__fleet_wait *w, weir_time now)
{
    int lacking;

    for (size_t i = 0; i < w->n; i++) {
        struct weir__fleet_item *item = &w->items[i];
        int64_t seen = weir__fleet_look(f, item->key, now);
        if (w->n == 1 && seen + item->kept.units < item->cost)
            return 0;
        lay_out(f, item, now);
    }
    lacking = f->ops->take(f->world, w, now);
    for (size_t i = 0; i < w->n; i++) {
        struct weir__fleet_item *item = &w->items[i];
        if (lacking == WEIR__FLEET_ALL_TAKEN)
            note_taken(f, item, now);
        else if (item->kept.units > 0)
            keep(f, item, item->kept, now);
    }
    return lacking;
}

/* Waits on the key; draws for it unless a draw is under way. */
static bool wait_on(struct weir__fleet *f, struct weir__fleet_item *item, weir_time now)
{
    struct weir__fleet_key *k = item->key;

    if (!item->queued)
        queue(item);
    if (!k->drawing) {
        weir__fleet_look(f, k, now);
        if (!weir__fleet_draw(f, k, now))
            return false;
        weir__fleet_plan(f, k, now);
    }
    return true;
}

/* Where to wait: on the one that has refused lately, alone; or on all that have too little. */
static struct weir__fleet_item *refuser(struct weir__fleet *f, struct weir__fleet_wait *w,
                                        weir_time now)
{
    for (size_t i = 0; i < w->n; i++)
        if (weir__fleet_has_refused(w->items[i].key, now) && lacks(f, &w->items[i], now))
            return &w->items[i];
    return NULL;
}

static bool wait_for_units(struct weir__fleet *f, struct weir__fleet_wait *w,
                           struct weir__fleet_item *lacking, weir_time now)
{
    struct weir__fleet_item *alone = w->n > 1 ? refuser(f, w, now) : NULL;
    bool sent = wait_on(f, alone != NULL ? alone : lacking, now);

    for (size_t i = 0; alone == NULL && sent && i < w->n; i++)
        if (&w->items[i] != lacking && lacks(f, &w->items[i], now))
            sent = wait_on(f, &w->items[i], now);
    return sent;
}

static const struct weir__fleet_item *closed_one(struct weir__fleet *f, struct weir__fleet_wait *w,
                                                 weir_time now)
{
    for (size_t i = 0; i < w->n; i++)
        if ((is_closed(w->items[i].key, now) && lacks(f, &w->items[i], now)) ||
            is_large(f, &w->items[i], now))
            return &w->items[i];
    return NULL;
}

/* The accounts of a purse that has too little cannot be asked. */
static bool is_alone(struct weir__fleet *f, struct weir__fleet_wait *w, weir_time now)
{
    for (size_t i = 0; i < w->n; i++)
        if (weir__fleet_is_alone(f, w->items[i].key, now) && lacks(f, &w->items[i], now)) {
            weir__fleet_probe(f, w->items[i].key, now);
            return true;
        }
    return false;
}

/* Tries again, and waits for whatever it lacks now.  True: it waits no more, and is the driver's
 * again. */
static bool try_wait(struct weir__fleet *f, struct weir__fleet_wait *w, weir_time now)
{
    const struct weir__fleet_item *closed;
    int lacking = take(f, w, now);

    if (lacking == WEIR__FLEET_ALL_TAKEN)
        end(f, w, WEIR__FLEET_TOOK, 0, now);
    else if (lacking == WEIR__FLEET_NOT_OURS)
        end(f, w, WEIR__FLEET_REFUSED, 0, now);
    else if (is_alone(f, w, now))
        end(f, w, WEIR__FLEET_ALONE, 0, now);
    else if ((closed = closed_one(f, w, now)) != NULL)
        refuse(f, closed, now);
    else if (wait_for_units(f, w, &w->items[lacking], now))
        return false;
    else
        end(f, w, WEIR__FLEET_ALONE, 0, now);
    return true;
}

void weir__fleet_wait(struct weir__fleet *f, struct weir__fleet_wait *w, weir_time now)
{
    w->over = false;
    w->refuser = NULL;
    for (size_t i = 0; i < w->n; i++) {
        struct weir__fleet_item *item = &w->items[i];
        item->wait = w;
        item->queued = item->fed = item->answered = false;
        item->kept.units = 0;
        if (!is_large(f, item, now))
            weir__fleet_count(item->key, item->cost, item->cost); /* it is demand */
    }
    try_wait(f, w, now);
}

/* Late units: each ask's are put aside before the first one tries, so that the purse is empty. */
void weir__fleet_serve_late(struct weir__fleet *f, struct weir__fleet_key *k,
                            const struct weir__drawn *late, weir_time now)
{
    struct weir__fleet_item *next, *first = NULL, **last = &first;

    for (struct weir__fleet_item *item = k->first; item != NULL; item = next) {
        next = item->next;
        if (k->seen < item->cost && !k->spent)
            break;
        if (k->seen < item->cost)
            continue;
        item->fed = item->answered = true;
        keep(f, item, (struct weir__repay){ item->cost, late->at }, now);
        item->next = NULL;
        *last = item;
        last = &item->next;
    }
    struct weir__repay over = { f->ops->take_out(f->world, k, k->seen, now), late->at };
    weir__fleet_look_over(f, k, now);
    if (over.units > 0 && k->limit->terms.window) /* their ask is gone */
        weir__fleet_repay(f, k, &over);
    for (struct weir__fleet_item *item = first; item != NULL; item = next) {
        next = item->next;
        try_wait(f, item->wait, now);
    }
}

/* The first that has too little stops those behind it, or it would never get enough.  One that
 * lacks something on another key leaves its units here alone. */
int64_t weir__fleet_serve(struct weir__fleet *f, struct weir__fleet_key *k, weir_time now)
{
    int64_t left_alone = 0;
    struct weir__fleet_item *next;

    for (struct weir__fleet_item *item = k->first; item != NULL; item = next) {
        int64_t cost = item->cost;
        next = item->next;
        if (k->seen - left_alone < cost) {
            if (!k->spent)
                break;
            continue;
        }
        item->fed = item->answered = true;
        if (!try_wait(f, item->wait, now))
            left_alone += cost;
    }
    return left_alone;
}
