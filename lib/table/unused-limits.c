/* unused-limits.c -- removes limiters and guards that nobody uses any more, with their states, and
 * gives disk space back.
 *
 *     dropped      by its last user, because its rule is gone: a minute later, states and all; a
 *                  guard not while permits are out
 *     left         by its last user: once none of its states would be missed, and a guard once
 *                  nobody has used it for an hour and no permit is out
 *     switched     by hand, and left: a day later, so that the switch is there when its user comes
 *                  back; dropped, it goes with the others
 *
 * A limiter's place is closed first.  Then its states are taken out of their slots one by one, each
 * together with a look that the place is still closed: a user that comes back in between finds the
 * rest of its states.  At the end the place is doomed, and then free.
 */
#include <stdlib.h>
#include <string.h>

#include "table/permits-by-key.h"
#include "table/holders.h"
#include "table/part.h"
#include "table/registry.h"

#define LOOK        (10 * WEIR_SECOND) /* between two looks by anybody */
#define GRACE       (45 * WEIR_SECOND) /* after the last use: a minute, with the looks around it */
#define HOUR        (3600 * WEIR_SECOND)
#define DAY         (24 * HOUR)
#define GUARD_GRACE HOUR               /* of a guard that was left, not dropped */
#define UNTOLD      (2 * HOUR / GRACE) /* looks at permits of which nobody tells more */
#define TRIM        64                 /* chunks of the slab at a time */

/* ---------------------------------------------------------------- states ---- */

/* Takes a state out of its slot.  False: the slot or the place has changed meanwhile. */
static bool remove_state(struct weir_limiter *limiter, uint64_t edition, void *slot)
{
    struct weir_table *table = limiter->table;
    struct weir__space *space = limiter->space;
    struct weir__part there;

    if (!weir__slot_read(space, slot, &there) || there.tags[0] == 0 ||
        weir__tag_id(there.tags[0]) != limiter->id)
        return false;
    bool large = limiter->kind == WEIR__LARGE;
    struct weir__chain_rest rest = { 0, 0 };
    if (large)
        rest = weir__chain_behind(space, there.before[1]);
    struct weir__entry e = weir__slot_entry(space, &there);
    if (!space->narrow)
        weir__entry_retag(&e, 0, 0);
    e.block_before = large ? (uint32_t)there.before[1] : 0;
    struct weir__hand *hand = weir__hand_take(table);
    bool removed = weir__place_stays_closed(table, limiter->id, edition, hand);
    if (removed) {
        weir__hand_add(hand, &e);
        removed = weir__hand_commit(table, hand);
    }
    weir__hand_give(hand);
    if (removed) {
        weir__chain_give(space, rest);
        weir__count(&table->header->keys, -1);
    }
    return removed;
}

/* ------------------------------------------------------------- limiters ---- */

/* Limiters that are leaving: the editions that closed them, by id; 0: it stays. */
struct leaving {
    uint64_t *editions;
    uint32_t most, n;
};

static uint64_t edition_of(const struct leaving *l, uint32_t id)
{
    return id < l->most ? l->editions[id] : 0;
}

static void stay(struct leaving *l, uint32_t id)
{
    l->editions[id] = 0;
    l->n--;
}

/* One slot of a limiter that is leaving.  True: it is empty now. */
static bool clear_slot(struct weir_table *table, struct leaving *l, uint64_t i, weir_time now)
{
    void *slot = weir__slot_at(&table->keys, i / WEIR__GROUP_SLOTS, i % WEIR__GROUP_SLOTS);
    uint32_t id = weir__tag_id(weir__load(slot));
    bool removed = false;

    while (weir__load(slot) != 0 && edition_of(l, id) && weir__tag_id(weir__load(slot)) == id) {
        struct weir_limiter *limiter = weir__limiter_by_id(table, id);
        weir_time idle_at = weir__slot_idle_at(&table->keys, i, now);
        struct weir__place *place = &table->places[id];
        if (limiter == NULL || !weir__place_is_closed(table, id, edition_of(l, id))) {
            stay(l, id);
        } else if (idle_at > now && !weir__get(&place->dropped)) {
            weir__set(&place->look_at, idle_at < now + DAY ? idle_at : now + DAY);
            stay(l, id);
        } else {
            removed = remove_state(limiter, edition_of(l, id), slot);
        }
    }
    return removed;
}

/* None of its states is left.  Doomed first: else a process that was stopped here would take away
 * the switch by hand of one that has come since. */
static void free_place(struct weir_table *table, uint32_t id, uint64_t edition)
{
    uint64_t doomed = weir__place_doom(table, id, edition);

    if (doomed != 0)
        weir__place_free(table, id, doomed);
}

/* Reads every slot, and frees the places of limiters that have no state left. */
static void clear_slots(struct weir_table *table, struct leaving *l, weir_time now)
{
    for (uint64_t group = 0; l->n > 0 && group < table->keys.groups; group++) {
        bool removed = false;
        weir__look_begin(table);
        for (uint64_t i = 0; i < WEIR__GROUP_SLOTS; i++)
            removed |= clear_slot(table, l, group * WEIR__GROUP_SLOTS + i, now);
        weir__look_end(table);
        if (removed)
            weir__group_shrink(&table->keys, group);
    }
    for (uint32_t id = 0; l->n > 0 && id < table->limiters.most; id++)
        if (edition_of(l, id))
            free_place(table, id, edition_of(l, id));
}

/* --------------------------------------------------------------- guards ---- */

/* Frees its disk space too, where that is possible. */
static void wipe_guard(struct weir_table *table, uint32_t id)
{
    unsigned char *bytes = table->guard_bytes + id * WEIR__GUARD_BYTES;
    struct weir__held held = weir__held_of(table, id);

    weir__held_end(&held);
    if (!weir__table_punch(table, bytes, WEIR__GUARD_BYTES))
        memset(bytes, 0, WEIR__GUARD_BYTES);
}

static void remove_guard(struct weir_table *table, uint32_t id)
{
    uint32_t place = table->guards.first + id;
    uint64_t edition = weir__place_close(table, place);

    if (edition == 0 || (edition = weir__place_doom(table, place, edition)) == 0)
        return;
    wipe_guard(table, id);
    weir__place_free(table, place, edition);
}

/* ----------------------------------------------------------------- tend ---- */

/* Whether nobody has used it for a while. */
static bool is_forsaken(struct weir_table *table, uint32_t i, weir_time grace, weir_time now)
{
    struct weir__place *place = &table->places[i];
    int64_t at = weir__get(&place->look_at);

    if (weir__get(&place->word) == 0 || weir__place_has_users(table, i))
        return false;
    if (at == 0 || at > now + DAY) { /* or the clock has stepped back */
        grace = weir__get(&place->dropped) ? GRACE : weir__get(&place->mode) != 0 ? DAY : grace;
        weir__set(&place->look_at, now + grace);
        return false;
    }
    return at <= now;
}

static void tend_limiters(struct weir_table *table, weir_time now)
{
    struct leaving leaving = { calloc(table->limiters.most, sizeof(uint64_t)), table->limiters.most,
                               0 };

    for (uint32_t id = 0; leaving.editions != NULL && id < leaving.most; id++)
        if (is_forsaken(table, id, GRACE, now))
            leaving.n += (leaving.editions[id] = weir__place_close(table, id)) != 0;
    if (leaving.n > 0)
        clear_slots(table, &leaving, now);
    free(leaving.editions);
}

/* A guard's record begins with the number of permits out. */
static bool has_permits(const struct weir_table *table, uint32_t id)
{
    return weir__get((int64_t *)(void *)(table->guard_bytes + id * WEIR__GUARD_BYTES)) > 0;
}

/* A process that has no guards of its own cannot tell which leases are over: it leaves a guard to
 * others, and one that was dropped for as long as permits can be out. */
static bool is_busy(struct weir_table *table, uint32_t id, weir_time now)
{
    struct weir__place *place = &table->places[table->guards.first + id];
    bool (*tell)(struct weir_table *, uint32_t, weir_time) = weir__acquire(&table->guard_is_busy);
    uint32_t dropped = weir__get(&place->dropped);

    if (tell != NULL)
        return tell(table, id, now);
    if (dropped == 0 || dropped > UNTOLD || !has_permits(table, id))
        return dropped == 0;
    (void)__atomic_compare_exchange_n(&place->dropped, &dropped, dropped + 1, false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return true;
}

static void tend_guards(struct weir_table *table, weir_time now)
{
    for (uint32_t id = 0; id < table->guards.most; id++) {
        struct weir__place *place = &table->places[table->guards.first + id];
        if (!is_forsaken(table, table->guards.first + id, GUARD_GRACE, now))
            continue;
        if (is_busy(table, id, now))
            weir__set(&place->look_at, now + GRACE);
        else
            remove_guard(table, id);
    }
}

static void tend(struct weir_table *table, weir_time now)
{
    weir__holders_bury(table, weir_table_now(table));
    tend_limiters(table, now);
    tend_guards(table, now);
    (void)weir__slab_trim(&table->keys.slab, TRIM);
    (void)weir__slab_trim(&table->bans.slab, TRIM);
    (void)weir__slab_trim(&table->names.slab, TRIM);
}

static bool is_due(struct weir__header *h, weir_time now)
{
    int64_t last = weir__get(&h->tend_at);

    return (last > now || now - last >= LOOK) &&
           __atomic_compare_exchange_n(&h->tend_at, &last, now, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
}

void weir_table_tend(struct weir_table *table, weir_time now)
{
    now = now < 0 ? 0 : now > INT64_MAX - DAY ? INT64_MAX - DAY : now;
    if (!weir__only_one(&table->tending))
        return;
    if (is_due(table->header, now))
        tend(table, now);
    weir__publish(&table->tending, 0);
}
