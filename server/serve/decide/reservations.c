/* reservations.c -- estimates that clients have reserved and will settle.
 *
 * Places for all of them are set aside at the start.  A place is free, or under way (a reserve is
 * being decided), or open: then it is in a chain by its id, and in a heap by when it expires, so
 * that those whose time has passed make room without being searched for.
 */
#include "server/serve/decide/reservations.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "table/table.h"

#define ROOM   WEIR__RESERVATIONS_MAX
#define NONE   UINT32_MAX
#define DIGITS (WEIR__RESERVATION_ID - 1)

struct id {
    uint64_t words[2]; /* random, so the first is its own hash */
};

struct place {
    struct id id;
    struct weir_reservation reservation;
    uint32_t next; /* in its chain, or among the free ones */
    uint32_t at;   /* in the heap */
    struct weir__fair_user fair_user;
    char key[WEIR__RESERVATION_KEY_MAX];
};

struct weir__reservations {
    weir_time lifetime_max; /* an unsettled one makes room some day */
    struct weir__fair_use *fair_use;
    pthread_mutex_t mutex;
    uint32_t free, unused; /* unused: places from there on were never used */
    uint32_t open;
    uint32_t chains[ROOM];
    uint32_t heap[ROOM]; /* `open` of them; the first expires first */
    struct place places[ROOM];
};

/* ------------------------------------------------------------------------ ids ---- */

static void print_id(char out[WEIR__RESERVATION_ID], const struct id *id)
{
    for (int i = 0; i < DIGITS; i++)
        out[i] = "0123456789abcdef"[id->words[i / 16] >> 4 * (i % 16) & 15];
    out[DIGITS] = '\0';
}

static bool read_id(struct id *out, const char *text, size_t len)
{
    *out = (struct id){ { 0, 0 } };
    for (size_t i = 0; i < len && len == DIGITS; i++) {
        char c = text[i];
        uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10
                                                : 16;
        if (digit > 15)
            return false;
        out->words[i / 16] |= digit << 4 * (i % 16);
    }
    return len == DIGITS;
}

/* ----------------------------------------------------------------------- heap ---- */

static weir_time expires_at(const struct weir__reservations *r, uint32_t at)
{
    return r->places[r->heap[at]].reservation.expires;
}

static void put(struct weir__reservations *r, uint32_t at, uint32_t place)
{
    r->heap[at] = place;
    r->places[place].at = at;
}

static void swap(struct weir__reservations *r, uint32_t a, uint32_t b)
{
    uint32_t place = r->heap[a];

    put(r, a, r->heap[b]);
    put(r, b, place);
}

/* Moves an entry up or down to its place. */
static void sift(struct weir__reservations *r, uint32_t at)
{
    for (; at > 0 && expires_at(r, at) < expires_at(r, (at - 1) / 2); at = (at - 1) / 2)
        swap(r, at, (at - 1) / 2);
    for (;;) {
        uint32_t least = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < r->open; child++)
            least = expires_at(r, child) < expires_at(r, least) ? child : least;
        if (least == at)
            return;
        swap(r, at, least);
        at = least;
    }
}

/* --------------------------------------------------------------------- places ---- */

static uint32_t *chain_of(struct weir__reservations *r, const struct id *id)
{
    return &r->chains[id->words[0] % ROOM];
}

static uint32_t *find_locked(struct weir__reservations *r, const struct id *id)
{
    uint32_t *link = chain_of(r, id);

    while (*link != NONE && memcmp(&r->places[*link].id, id, sizeof(*id)) != 0)
        link = &r->places[*link].next;
    return link;
}

static void free_locked(struct weir__reservations *r, uint32_t place)
{
    weir__fair_use_give(r->fair_use, WEIR__POOL_RESERVATIONS, r->places[place].fair_user);
    r->places[place].next = r->free;
    r->free = place;
}

static void open_locked(struct weir__reservations *r, uint32_t place)
{
    uint32_t *chain = chain_of(r, &r->places[place].id);

    r->places[place].next = *chain;
    *chain = place;
    put(r, r->open++, place);
    sift(r, r->places[place].at);
}

/* Takes it out of its chain and the heap; the place is free then. */
static void close_locked(struct weir__reservations *r, uint32_t *link)
{
    uint32_t place = *link, at = r->places[place].at;

    *link = r->places[place].next;
    r->open--;
    if (at != r->open) {
        put(r, at, r->heap[r->open]);
        sift(r, at);
    }
    free_locked(r, place);
}

static void expire_locked(struct weir__reservations *r, weir_time now)
{
    while (r->open > 0 && expires_at(r, 0) <= now) {
        const struct place *p = &r->places[r->heap[0]];
        weir_limiter_release(p->reservation.limiter);
        close_locked(r, find_locked(r, &p->id));
    }
}

/* A free place; NONE if there is none, or the client has its share. */
static uint32_t claim(struct weir__reservations *r, const struct weir__conn *conn, weir_time now)
{
    uint32_t place = NONE;

    pthread_mutex_lock(&r->mutex);
    expire_locked(r, now);
    if (weir__fair_use_take(r->fair_use, WEIR__POOL_RESERVATIONS, conn, (int64_t)(ROOM - r->open),
                            now)) {
        place = r->free;
        if (place != NONE)
            r->free = r->places[place].next;
        else if (r->unused < ROOM)
            place = r->unused++;
    }
    if (place != NONE)
        r->places[place].fair_user = conn ? conn->fair_user : (struct weir__fair_user){ 0, 0 };
    pthread_mutex_unlock(&r->mutex);
    return place;
}

/* --------------------------------------------------------------------- public ---- */

static int fail_full(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY,
                      "this client has its share of the %d reservations that can be open, or all "
                      "are: settle some, or wait until some expire",
                      ROOM);
}

int weir__reservations_reserve(struct weir__reservations *r, const struct weir__reserve *what,
                               char id[WEIR__RESERVATION_ID], struct weir_decision *decision,
                               struct weir_error *error)
{
    const struct weir_ask *ask = what->ask;
    struct id number;
    weir_time lifetime = what->lifetime < r->lifetime_max ? what->lifetime : r->lifetime_max;

    if (ask->key.len > WEIR__RESERVATION_KEY_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "the key of a reservation has at most %d bytes, and this has %zu",
                          WEIR__RESERVATION_KEY_MAX, ask->key.len);
    if (weir__random_fill(&number, sizeof(number)) != 0)
        return weir__fail_errno(error, "cannot get random bytes for", "a reservation");
    uint32_t place = claim(r, what->conn, ask->now);
    if (place == NONE)
        return fail_full(error);
    struct place *p = &r->places[place];
    bool granted = weir_reserve(what->limiter, ask, lifetime, &p->reservation, decision);
    p->id = number;
    if (ask->key.len)
        memcpy(p->key, ask->key.bytes, ask->key.len);
    p->reservation.key.bytes = p->key;
    pthread_mutex_lock(&r->mutex);
    granted =
        granted && ask->cost > 0; /* nothing was taken: nothing to settle, and no place to keep */
    if (granted) {
        weir__limiter_use_again(what->limiter); /* its name may be forgotten meanwhile */
        open_locked(r, place);
    } else {
        free_locked(r, place);
    }
    pthread_mutex_unlock(&r->mutex);
    id[0] = '\0';
    if (granted)
        print_id(id, &number);
    return WEIR_OK;
}

bool weir__reservations_settle(struct weir__reservations *r, const char *id, size_t len,
                               int64_t true_cost, weir_time now)
{
    struct id number;
    struct place copy;

    if (!read_id(&number, id, len))
        return false;
    pthread_mutex_lock(&r->mutex);
    uint32_t *link = find_locked(r, &number);
    bool found = *link != NONE;
    if (found) {
        copy = r->places[*link];
        close_locked(r, link);
    }
    pthread_mutex_unlock(&r->mutex);
    if (!found)
        return false;
    copy.reservation.key.bytes = copy.key;
    bool settled = weir_settle(&copy.reservation, true_cost, now);
    weir_limiter_release(copy.reservation.limiter);
    return settled;
}

void weir__reservations_tend(struct weir__reservations *r, weir_time now)
{
    pthread_mutex_lock(&r->mutex);
    expire_locked(r, now);
    pthread_mutex_unlock(&r->mutex);
}

struct weir__reservations *weir__reservations_create(weir_time lifetime_max,
                                                     struct weir__fair_use *fair_use)
{
    struct weir__reservations *r = calloc(1, sizeof(*r)); /* only the used part becomes memory */

    if (!r)
        return NULL;
    pthread_mutex_init(&r->mutex, NULL);
    r->lifetime_max = lifetime_max;
    r->fair_use = fair_use;
    r->free = NONE;
    memset(r->chains, 0xff, sizeof(r->chains));
    return r;
}

void weir__reservations_destroy(struct weir__reservations *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
