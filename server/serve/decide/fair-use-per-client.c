/* fair-use-per-client.c -- how much of a pool each client holds, so that nobody takes all of it. */
#include "server/serve/decide/fair-use-per-client.h"

#include <stdlib.h>

#include "base/base.h"
#include "server/serve/net/peer.h"

#define BUCKETS    4096               /* the first is nobody's */
#define NEARLY_ALL 31                 /* of connections: 31 of 32 for one address */
#define TELL_ONCE  (60 * WEIR_SECOND) /* for each pool */

struct pool {
    int32_t addresses[BUCKETS], connections[BUCKETS]; /* atomic: how much each holds */
    int64_t taken;                                    /* atomic: its places */
    int64_t refused;                                  /* atomic */
    weir_time told_until;                             /* atomic: no more is told till then */
};

struct weir__fair_use {
    struct weir__events *events;
    uint64_t secrets[WEIR__HASH_SECRETS];
    struct pool pools[WEIR__POOLS];
};

static const char *const names[WEIR__POOLS] = { "adhoc-limits", "limit-changes",   "reservations",
                                                "ask-ids",      "waits-for-units", "locks",
                                                "jobs",         "connections" };

struct weir__fair_use *weir__fair_use_create(struct weir__events *events)
{
    struct weir__fair_use *s = calloc(1, sizeof(*s));

    if (s == NULL || weir__random_fill(s->secrets, sizeof(s->secrets)) != 0) {
        free(s);
        return NULL;
    }
    s->events = events;
    return s;
}

void weir__fair_use_destroy(struct weir__fair_use *fair_use)
{
    free(fair_use);
}

static uint16_t bucket(uint64_t hash)
{
    return (uint16_t)(1 + hash % (BUCKETS - 1));
}

struct weir__fair_user weir__fair_use_of(const struct weir__fair_use *s, const char *peer,
                                         uint64_t id)
{
    if (s == NULL)
        return (struct weir__fair_user){ 0, 0 };
    return (struct weir__fair_user){
        bucket(weir__peer_hash(s->secrets, peer).place),
        bucket(weir__hash_key(s->secrets, 1, (struct weir_key){ &id, sizeof(id) }).place)
    };
}

static void refuse(struct weir__fair_use *s, enum weir__pool pool, const struct weir__conn *conn,
                   weir_time now)
{
    struct pool *p = &s->pools[pool];
    weir_time until = __atomic_load_n(&p->told_until, __ATOMIC_RELAXED);
    struct weir__event_facts facts = { .address = conn->peer[0] ? conn->peer : "a unix socket",
                                       .text = names[pool] };

    facts.count = __atomic_add_fetch(&p->refused, 1, __ATOMIC_RELAXED);
    weir_time next = now < INT64_MAX - TELL_ONCE ? now + TELL_ONCE : INT64_MAX;
    if (now >= until && __atomic_compare_exchange_n(&p->told_until, &until, next, false,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        weir__events_emit(s->events, WEIR__EVENT_SHARE_USED_UP, now, &facts);
}

bool weir__fair_use_take(struct weir__fair_use *s, enum weir__pool pool,
                         const struct weir__conn *conn, int64_t free, weir_time now)
{
    if (s == NULL || conn == NULL)
        return free > 0;
    const int32_t *address = &s->pools[pool].addresses[conn->fair_user.address];
    const int32_t *connection = &s->pools[pool].connections[conn->fair_user.connection];
    if (__atomic_load_n(address, __ATOMIC_RELAXED) >= free ||
        2 * (int64_t)__atomic_load_n(connection, __ATOMIC_RELAXED) >= free) {
        refuse(s, pool, conn, now);
        return false;
    }
    weir__fair_use_hold(s, pool, conn->fair_user);
    return true;
}

bool weir__fair_use_may_connect(struct weir__fair_use *s, const struct weir__conn *conn,
                                int64_t free, weir_time now)
{
    if (s == NULL)
        return true;
    struct weir__fair_user user = weir__fair_use_of(s, conn->peer, conn->id);
    const int32_t *address = &s->pools[WEIR__POOL_CONNECTIONS].addresses[user.address];
    if (__atomic_load_n(address, __ATOMIC_RELAXED) < NEARLY_ALL * free)
        return true;
    refuse(s, WEIR__POOL_CONNECTIONS, conn, now);
    return false;
}

void weir__fair_use_hold(struct weir__fair_use *s, enum weir__pool pool,
                         struct weir__fair_user fair_user)
{
    if (s == NULL)
        return;
    __atomic_fetch_add(&s->pools[pool].addresses[fair_user.address], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->pools[pool].connections[fair_user.connection], 1, __ATOMIC_RELAXED);
}

void weir__fair_use_give(struct weir__fair_use *s, enum weir__pool pool,
                         struct weir__fair_user fair_user)
{
    if (s == NULL || fair_user.address == 0)
        return;
    __atomic_fetch_sub(&s->pools[pool].addresses[fair_user.address], 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&s->pools[pool].connections[fair_user.connection], 1, __ATOMIC_RELAXED);
}

bool weir__fair_use_take_place(struct weir__fair_use *s, enum weir__pool pool,
                               const struct weir__conn *conn, int64_t most, weir_time now)
{
    int64_t others = __atomic_fetch_add(&s->pools[pool].taken, 1, __ATOMIC_RELAXED);

    if (others < most && weir__fair_use_take(s, pool, conn, most - others, now))
        return true;
    __atomic_fetch_sub(&s->pools[pool].taken, 1, __ATOMIC_RELAXED);
    return false;
}

void weir__fair_use_give_place(struct weir__fair_use *s, enum weir__pool pool,
                               struct weir__fair_user fair_user)
{
    __atomic_fetch_sub(&s->pools[pool].taken, 1, __ATOMIC_RELAXED);
    weir__fair_use_give(s, pool, fair_user);
}

int64_t weir__fair_use_refused(const struct weir__fair_use *s, enum weir__pool pool)
{
    return s ? __atomic_load_n(&s->pools[pool].refused, __ATOMIC_RELAXED) : 0;
}
