/* place-users.c -- which processes use a limiter or a guard.
 *
 * Each place has a bit for each holder (registry.h), and each process counts its own uses of it.
 * Only a process whose bit is set writes the words that say how a place was left: as long as it is
 * set, the place cannot go to another name, however long the process is stopped.
 *
 * Holder 0 stands for those that have no place of their own: once set, that bit stays until
 * a process is alone with the table.
 */
#include "table/holders.h"
#include "table/registry.h"

static void set_user(struct weir_table *table, uint32_t place, uint32_t holder)
{
    __atomic_fetch_or(&table->users[place].bits[holder / 64], (uint64_t)1 << holder % 64,
                      __ATOMIC_SEQ_CST);
}

static void clear_user(struct weir_table *table, uint32_t place, uint32_t holder)
{
    uint64_t bit = (uint64_t)1 << holder % 64, *bits = &table->users[place].bits[holder / 64];

    if (weir__get(bits) & bit)
        __atomic_fetch_and(bits, ~bit, __ATOMIC_SEQ_CST);
}

/* Others than `holder`; WEIR__HOLDERS is nobody. */
static bool has_users_but(const struct weir_table *table, uint32_t place, uint32_t holder)
{
    uint64_t any = 0;

    for (uint32_t i = 0; i < WEIR__HOLDERS / 64; i++) {
        uint64_t mine = i == holder / 64 ? (uint64_t)1 << holder % 64 : 0;
        any |= __atomic_load_n(&table->users[place].bits[i], __ATOMIC_SEQ_CST) & ~mine;
    }
    return any != 0;
}

bool weir__place_has_users(const struct weir_table *table, uint32_t place)
{
    return has_users_but(table, place, WEIR__HOLDERS);
}

#define FOUND ((uint32_t)1 << 31) /* in the number of uses */

/* By a process that uses it: else the place could be another name's by now.  False: others use it
 * too. */
static bool mark_dropped(struct weir_table *table, uint32_t place, uint32_t me)
{
    struct weir__place *p = &table->places[place];

    if (has_users_but(table, place, me))
        return false;
    weir__set(&p->look_at, 0);
    __atomic_store_n(&p->dropped, 1, __ATOMIC_SEQ_CST);
    if (!has_users_but(table, place, me))
        return true;
    weir__set(&p->dropped, 0); /* it has come since, and may have been here before */
    return false;
}

/* The last takes the process's bit away; dropped: those who have found it leave too.  False: it
 * should have been dropped, and others use it. */
static bool leave_locked(struct weir_table *table, const struct weir__names *names, uint32_t id,
                         bool dropped, uint32_t me)
{
    uint32_t had = names->uses[id], now = had - ((had & ~FOUND) > 0), place = names->first + id;

    if (dropped && (now & ~FOUND) == 0)
        now = 0;
    names->uses[id] = now;
    if (had == 0 || now != 0 || (me == 0 && table->fd >= 0))
        return true;
    bool done = !dropped || mark_dropped(table, place, me);
    clear_user(table, place, me);
    return done;
}

bool weir__place_use(struct weir_table *table, const struct weir__names *names, uint32_t id,
                     uint64_t salt, bool found)
{
    uint32_t place = names->first + id, me = weir__holder_me(table);
    uint64_t there;

    pthread_mutex_lock(&table->mutex);
    names->uses[id]++;
    set_user(table, place, me);
    pthread_mutex_unlock(&table->mutex);
    weir__place_reopen(table, place);
    bool used = weir__place_salt(table, place, &there) && there == salt;
    if (used) {
        weir__set(&table->places[place].dropped, 0);
        weir__set(&table->places[place].look_at, 0);
    }
    if (used && !found)
        return true;
    pthread_mutex_lock(&table->mutex);
    if (used)
        names->uses[id] |= FOUND;
    (void)leave_locked(table, names, id, false, me);
    pthread_mutex_unlock(&table->mutex);
    return used;
}

static bool leave(struct weir_table *table, const struct weir__names *names, uint32_t id,
                  bool dropped)
{
    uint32_t me = weir__holder_me(table);

    pthread_mutex_lock(&table->mutex);
    bool done = leave_locked(table, names, id, dropped, me);
    pthread_mutex_unlock(&table->mutex);
    return done;
}

/* Of several that drop it at once each may have seen another.  Then somebody uses it once more. */
void weir__place_leave(struct weir_table *table, const struct weir__names *names, uint32_t id,
                       bool dropped)
{
    uint32_t place = names->first + id;
    uint64_t salt = 0;

    if (dropped && has_users_but(table, place, weir__holder_me(table)))
        weir__holders_bury(table, weir_table_now(table)); /* they may be dead */
    bool known = dropped && weir__place_salt(table, place, &salt);
    for (int tries = 0; !leave(table, names, id, dropped) && tries < WEIR__JOIN_TRIES; tries++)
        if (!known || weir__place_has_users(table, place) ||
            !weir__place_use(table, names, id, salt, false))
            return;
}

bool weir__place_use_named(struct weir_table *table, struct weir__names *names, uint32_t id,
                           uint64_t salt, const char *name, bool found)
{
    if (!weir__place_use(table, names, id, salt, found))
        return false;
    if (weir__name_find(table, names, name) == id)
        return true;
    weir__place_leave(table, names, id, false);
    return false;
}

void weir__name_drop(struct weir_table *table, struct weir__names *names, const char *name)
{
    uint32_t id = weir__name_find(table, names, name), place = names->first + id;
    uint64_t salt;

    if (id == WEIR__NO_PLACE || weir__get(&table->places[place].dropped) ||
        weir__place_has_users(table, place))
        return;
    weir__place_reopen(table, place);
    if (weir__place_salt(table, place, &salt) &&
        weir__place_use_named(table, names, id, salt, name, false))
        weir__place_leave(table, names, id, true);
}

void weir__places_forget(struct weir_table *table, uint32_t holder)
{
    for (uint32_t place = 0; place < table->n_places; place++) {
        if (weir__get(&table->places[place].word) == 0)
            continue;
        clear_user(table, place, holder);
        weir__place_disown(table, place, holder);
    }
}

static void reuse(struct weir_table *table, const struct weir__names *names, uint32_t holder)
{
    for (uint32_t id = 0; id < names->most; id++)
        if (names->uses[id] > 0)
            set_user(table, names->first + id, holder);
}

void weir__places_reuse(struct weir_table *table, uint32_t holder)
{
    reuse(table, &table->limiters, holder);
    reuse(table, &table->guards, holder);
}
