/* ask-ids.c -- answers remembered by the id of their ask.
 *
 * Sixteen shards, each a ring of answers in the order in which they came, and chains to find them
 * by.  All live equally long, so the oldest is also the first to expire: those whose time is over
 * leave from the one end, new ones come at the other, and if there is no room the oldest goes.
 * But a client that has its share of the room is not remembered, rather than another be forgotten.
 *
 * A shard stays locked while a new ask of it is decided.  That takes about a microsecond, and is
 * what makes two copies of one ask that arrive at the same time one ask.
 */
#include "server/serve/decide/ask-ids.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SHARDS   16
#define ROOM_MAX ((int64_t)1 << 30)
#define NONE     UINT32_MAX

#define TIDIES_IN_A_LIFE 64

struct answer {
    struct weir__hash id;
    uint64_t fingerprint;
    weir_time expires;
    uint32_t next; /* in its chain */
    struct weir__fair_user fair_user;
    struct weir_ruling ruling;
};

struct shard {
    _Alignas(64) pthread_mutex_t mutex;
    struct answer *answers;
    uint32_t *chains;
    uint32_t room, mask;
    uint32_t turn, live; /* the place that the next answer takes; how many are before it */
    int64_t replaced;
};

struct weir__ask_ids {
    struct shard shards[SHARDS];
    uint64_t secrets[WEIR__HASH_SECRETS];
    weir_time lifetime;
    struct weir__fair_use *fair_use;
    int64_t live;        /* of all shards; atomic */
    weir_time next_tidy; /* atomic: what is over leaves all shards then */
};

static uint32_t *chain_of(const struct shard *s, const struct weir__hash *id)
{
    return &s->chains[id->place / SHARDS & s->mask];
}

static struct answer *find_locked(const struct shard *s, const struct weir__hash *id, weir_time now)
{
    uint32_t i = *chain_of(s, id);

    while (i != NONE && (s->answers[i].id.tag != id->tag || s->answers[i].id.place != id->place ||
                         s->answers[i].expires <= now))
        i = s->answers[i].next;
    return i == NONE ? NULL : &s->answers[i];
}

/* Takes the oldest answer out of its chain. */
static void drop_oldest_locked(struct weir__ask_ids *ids, struct shard *s)
{
    uint32_t at = s->turn >= s->live ? s->turn - s->live : s->turn + s->room - s->live;
    struct answer *oldest = &s->answers[at];
    uint32_t *link = chain_of(s, &oldest->id);

    while (*link != at)
        link = &s->answers[*link].next;
    *link = oldest->next;
    s->live--;
    __atomic_fetch_sub(&ids->live, 1, __ATOMIC_RELAXED);
    weir__fair_use_give(ids->fair_use, WEIR__POOL_ASK_IDS, oldest->fair_user);
}

static weir_time after(weir_time now, weir_time span)
{
    weir_time at = span > INT64_MAX - now ? INT64_MAX : now + span;

    return at > 0 ? at : 1;
}

static bool oldest_is_over(const struct shard *s, weir_time now)
{
    uint32_t at = s->turn >= s->live ? s->turn - s->live : s->turn + s->room - s->live;

    return s->live > 0 && s->answers[at].expires <= now;
}

static void drop_over_locked(struct weir__ask_ids *ids, struct shard *s, weir_time now)
{
    while (oldest_is_over(s, now))
        drop_oldest_locked(ids, s);
}

/* A client's share counts its answers in all shards, so those that are over must leave all of them,
 * not only the one that the next ask happens to fall into.  A shard that somebody else has locked
 * has its turn the next time. */
static void tidy_if_due(struct weir__ask_ids *ids, const struct shard *locked, weir_time now)
{
    weir_time due = __atomic_load_n(&ids->next_tidy, __ATOMIC_RELAXED);
    weir_time next = after(now, ids->lifetime / TIDIES_IN_A_LIFE);

    if (now < due || !__atomic_compare_exchange_n(&ids->next_tidy, &due, next, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    for (struct shard *s = ids->shards; s < ids->shards + SHARDS; s++)
        if (s != locked && pthread_mutex_trylock(&s->mutex) == 0) {
            drop_over_locked(ids, s, now);
            pthread_mutex_unlock(&s->mutex);
        }
}

/* False: there is room, but not for this client. */
static bool make_room_locked(struct weir__ask_ids *ids, struct shard *s,
                             const struct weir__conn *conn, weir_time now)
{
    int64_t room = (int64_t)SHARDS * s->room;

    drop_over_locked(ids, s, now);
    tidy_if_due(ids, s, now);
    int64_t free = room - __atomic_load_n(&ids->live, __ATOMIC_RELAXED);
    if (conn &&
        !weir__fair_use_take(ids->fair_use, WEIR__POOL_ASK_IDS, conn, free < 1 ? 1 : free, now))
        return false;
    if (s->live == s->room) {
        s->replaced++;
        drop_oldest_locked(ids, s);
    }
    return true;
}

enum weir__ask_id_state weir__ask_ids_begin(struct weir__ask_ids *ids,
                                            const struct weir__ask_id *id,
                                            struct weir_ruling *stored, size_t *hold)
{
    struct weir__hash h = weir__hash_key(ids->secrets, 0, (struct weir_key){ id->bytes, id->len });
    size_t index = h.place % SHARDS;
    struct shard *s = &ids->shards[index];
    weir_time now = id->now < 0 ? 0 : id->now;

    pthread_mutex_lock(&s->mutex);
    const struct answer *known = find_locked(s, &h, now);
    if (known) {
        bool same = known->fingerprint == id->fingerprint;
        if (same)
            *stored = known->ruling;
        pthread_mutex_unlock(&s->mutex);
        return same ? WEIR__ASK_ID_REPEATED : WEIR__ASK_ID_CLASH;
    }
    if (!make_room_locked(ids, s, id->conn, now)) {
        pthread_mutex_unlock(&s->mutex);
        return WEIR__ASK_ID_UNKEPT;
    }
    struct answer *place = &s->answers[s->turn];
    place->id = h;
    place->fingerprint = id->fingerprint;
    place->expires = after(now, ids->lifetime);
    place->fair_user = id->conn ? id->conn->fair_user : (struct weir__fair_user){ 0, 0 };
    *hold = index;
    return WEIR__ASK_ID_NEW;
}

void weir__ask_ids_end(struct weir__ask_ids *ids, size_t hold, const struct weir_ruling *ruling)
{
    struct shard *s = &ids->shards[hold];
    struct answer *place = &s->answers[s->turn];
    uint32_t *chain = chain_of(s, &place->id);

    place->ruling = *ruling;
    place->next = *chain;
    *chain = s->turn;
    s->turn = s->turn + 1 < s->room ? s->turn + 1 : 0;
    s->live++;
    __atomic_fetch_add(&ids->live, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&s->mutex);
}

void weir__ask_ids_settle(struct weir__ask_ids *ids, const struct weir__ask_id *id,
                          const struct weir_ruling *ruling)
{
    struct weir__hash h = weir__hash_key(ids->secrets, 0, (struct weir_key){ id->bytes, id->len });
    struct shard *s = &ids->shards[h.place % SHARDS];

    pthread_mutex_lock(&s->mutex);
    struct answer *known = find_locked(s, &h, id->now);
    if (known && known->fingerprint == id->fingerprint) {
        if (ruling)
            known->ruling = *ruling;
        else
            known->expires = id->now;
    }
    pthread_mutex_unlock(&s->mutex);
}

int64_t weir__ask_ids_replaced(struct weir__ask_ids *ids)
{
    int64_t n = 0;

    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_lock(&ids->shards[i].mutex);
        n += ids->shards[i].replaced;
        pthread_mutex_unlock(&ids->shards[i].mutex);
    }
    return n;
}

static bool make_shard(struct shard *s, uint32_t room)
{
    uint32_t chains = 1;

    while (chains < room)
        chains *= 2;
    s->room = room;
    s->mask = chains - 1;
    s->answers = calloc(room, sizeof(*s->answers)); /* only the used part becomes memory */
    s->chains = malloc(chains * sizeof(*s->chains));
    if (s->chains)
        memset(s->chains, 0xff, chains * sizeof(*s->chains));
    pthread_mutex_init(&s->mutex, NULL);
    return s->answers && s->chains;
}

struct weir__ask_ids *weir__ask_ids_create(int64_t room, weir_time lifetime,
                                           struct weir__fair_use *fair_use)
{
    struct weir__ask_ids *ids = aligned_alloc(_Alignof(struct weir__ask_ids), sizeof(*ids));
    bool good = true;

    if (!ids)
        return NULL;
    memset(ids, 0, sizeof(*ids));
    ids->lifetime = lifetime < 0 ? 0 : lifetime;
    ids->fair_use = fair_use;
    room = room < SHARDS ? SHARDS : room > ROOM_MAX ? ROOM_MAX : room;
    for (size_t i = 0; i < SHARDS; i++)
        good &= make_shard(&ids->shards[i], (uint32_t)((room + SHARDS - 1) / SHARDS));
    if (good && weir__random_fill(ids->secrets, sizeof(ids->secrets)) == 0)
        return ids;
    weir__ask_ids_destroy(ids);
    return NULL;
}

void weir__ask_ids_destroy(struct weir__ask_ids *ids)
{
    if (!ids)
        return;
    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_destroy(&ids->shards[i].mutex);
        free(ids->shards[i].answers);
        free(ids->shards[i].chains);
    }
    free(ids);
}

uint64_t weir__ask_fingerprint(const uint64_t *secrets, const struct weir__check *check)
{
    const int64_t numbers[2] = { check->cost, check->wait_max };
    uint64_t print = weir__hash_key(secrets, 0, (struct weir_key){ numbers, sizeof(numbers) }).tag;

    for (size_t i = 0; i < check->n; i++) {
        const struct weir_attr *a = &check->attrs[i];
        print = weir__hash_key(secrets, print, (struct weir_key){ a->name, a->name_len }).tag;
        print = weir__hash_key(secrets, print, (struct weir_key){ a->value, a->value_len }).tag;
    }
    return print;
}
