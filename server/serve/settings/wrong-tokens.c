/* wrong-tokens.c -- wrong tokens, by the address that showed them.
 *
 * A fixed number of places, four for each hash of an address; the one that was used longest ago
 * makes room.  An attacker with thousands of addresses can so make the server forget some of them:
 * no more guesses are won by that than the addresses would have had anyway.
 *
 * It is told by an event and a line on stderr when an address begins, and when it is refused: never
 * for each guess.
 */
#include "server/serve/settings/wrong-tokens.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "server/base/complain.h"
#include "server/serve/net/peer.h"

#define GROUPS    1024
#define PLACES    4
#define RIGHT_FOR (3600 * WEIR_SECOND) /* a right token speaks for its address */
#define TELL_FOR  (60 * WEIR_SECOND)   /* an address is told anew after this silence */
#define TELLING   "gcra 1/1s burst 20" /* of all addresses together */

struct place {
    struct weir__hash address;
    uint64_t wrong[2]; /* the state of the limit; zeros: none */
    weir_time right_until[WEIR__ROLE_ADMIN + 1];
    weir_time last, told_until; /* told_until: no more of it is told till then */
    int64_t count;              /* wrong since it was told */
    bool used;
};

struct weir__wrong_tokens {
    struct weir__events *events;
    struct weir_plan *limit; /* NULL: none */
    struct weir_plan *telling;
    uint64_t told[2];
    uint64_t secrets[WEIR__HASH_SECRETS];
    pthread_mutex_t mutex; /* for all that changes */
    struct place places[GROUPS][PLACES];
};

static struct place *place_of(struct weir__wrong_tokens *g, const char *peer)
{
    struct weir__hash hash = weir__peer_hash(g->secrets, peer);
    struct place *group = g->places[hash.place % GROUPS], *oldest = group;

    for (struct place *p = group; p < group + PLACES; p++) {
        if (p->used && p->address.place == hash.place && p->address.tag == hash.tag)
            return p;
        oldest = p->last < oldest->last ? p : oldest;
    }
    *oldest = (struct place){ .address = hash, .used = true };
    return oldest;
}

/* How many to report: at the first, and when it is one too many; 0: none.  With the mutex. */
static int64_t count_to_tell(struct weir__wrong_tokens *g, struct place *p, weir_time until,
                             weir_time now)
{
    const struct weir_ask ask = { .cost = 1, .now = now };
    struct weir_decision d;
    int64_t count = ++p->count;
    bool first = now >= p->told_until;

    if ((!first && until == 0) || !weir_step(g->telling, g->told, &ask, &d))
        return 0;
    p->told_until = now + TELL_FOR;
    p->count = 0;
    return count;
}

static void tell(struct weir__wrong_tokens *g, const char *peer, int64_t count, weir_time until,
                 weir_time now)
{
    const char *who = *peer ? peer : "a unix socket";
    struct weir__event_facts facts = { .address = who, .until = until, .count = count };

    weir__events_emit(g->events, WEIR__EVENT_AUTH_FAILED, now, &facts);
    weir__complain("serve", "%s showed a wrong token%s", who,
                   until ? "; tokens from there are refused for a while" : "");
}

/* Counts a wrong one; returns until when the next are refused, 0: not yet. */
static weir_time charge(struct weir__wrong_tokens *g, struct place *p, const struct weir_ask *ask)
{
    struct weir_decision d = { .retry = 0 };

    if (g->limit == NULL || !weir_step(g->limit, p->wrong, ask, &d))
        return 0;
    return weir_step_peek(g->limit, p->wrong, ask, &d) ? 0 : ask->now + d.retry;
}

weir_time weir__wrong_tokens_judge(struct weir__wrong_tokens *g, const char *peer,
                                   enum weir__role role, weir_time now)
{
    const struct weir_ask ask = { .cost = 1, .now = now };
    struct weir_decision d = { .retry = 0 };
    weir_time until = 0, wait = 0;
    int64_t count = 0;

    if (g == NULL)
        return 0;
    pthread_mutex_lock(&g->mutex);
    struct place *p = place_of(g, peer);
    bool over = g->limit && *peer && !weir_step_peek(g->limit, p->wrong, &ask, &d);
    p->last = now;
    if (over && (role == WEIR__ROLE_NONE || p->right_until[role] <= now)) {
        wait = d.retry;
    } else if (role != WEIR__ROLE_NONE) {
        p->right_until[role] = now + RIGHT_FOR;
    } else {
        until = charge(g, p, &ask);
        count = count_to_tell(g, p, until, now);
    }
    pthread_mutex_unlock(&g->mutex);
    if (count)
        tell(g, peer, count, until, now);
    return wait;
}

static struct weir_plan *make_plan(const char *text)
{
    struct weir_plan *plan = NULL;
    struct weir_limit limit;

    if (weir_limit_parse(&limit, text, NULL) != WEIR_OK ||
        weir_plan_create(&plan, &limit, NULL) != WEIR_OK)
        return NULL;
    return plan;
}

struct weir__wrong_tokens *weir__wrong_tokens_create(struct weir__events *events,
                                                     int64_t per_minute)
{
    struct weir__wrong_tokens *g = calloc(1, sizeof(*g));
    char text[80];

    if (g == NULL)
        return NULL;
    snprintf(text, sizeof(text), "gcra %lld/1m burst %lld", (long long)per_minute,
             (long long)per_minute);
    g->events = events;
    g->limit = per_minute > 0 ? make_plan(text) : NULL;
    g->telling = make_plan(TELLING);
    pthread_mutex_init(&g->mutex, NULL);
    if ((per_minute <= 0 || g->limit) && g->telling &&
        weir__random_fill(g->secrets, sizeof(g->secrets)) == 0)
        return g;
    weir__wrong_tokens_destroy(g);
    return NULL;
}

void weir__wrong_tokens_destroy(struct weir__wrong_tokens *g)
{
    if (g == NULL)
        return;
    weir_plan_destroy(g->limit);
    weir_plan_destroy(g->telling);
    pthread_mutex_destroy(&g->mutex);
    free(g);
}
