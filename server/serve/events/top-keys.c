/* top-keys.c -- the keys refused most in the last ten to twenty minutes, in fixed memory.
 *
 * Every loop has a sketch of its own (Space-Saving, heavy-hitters.h), under a lock that it only
 * ever tries: a refusal that comes while somebody reads is counted as missed, so that a list costs
 * a few refusals and never a wait.  A period of ten minutes is counted; when it is over it is kept
 * for reading while the next one is, and then forgotten.  Lists add both up.
 *
 * Why not halve the counts instead: a sketch whose errors are halved with its counts still has old
 * keys in its places; one that begins anew has room for new ones.
 *
 * In a sketch a key is the text "RULE\x1fKEY"; both are told apart by a hash of the whole, however
 * much of the text is kept.
 */
#include "server/serve/events/top-keys.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/count-distinct.h"
#include "server/base/heavy-hitters.h"

enum { SEPARATOR = '\x1f', KEYS_MOST = 1000000 };

struct share {
    _Alignas(64) pthread_mutex_t lock;
    struct weir__hitters *now, *before; /* `before`: NULL in the first period */
    int64_t missed, missed_before;      /* atomic */
};

struct weir__top {
    struct weir__sketch_secrets secrets;
    size_t loops, keys;
    pthread_mutex_t tick; /* for `since` */
    weir_time since;      /* when the period began; 0: at the first tick */
    struct share shares[];
};

/* ------------------------------------------------------------- creation ---- */

static struct weir__top *allocate(size_t loops)
{
    size_t size = sizeof(struct weir__top) + loops * sizeof(struct share);
    struct weir__top *top = aligned_alloc(_Alignof(struct weir__top), size);

    if (top == NULL)
        return NULL;
    memset(top, 0, size);
    top->loops = loops;
    pthread_mutex_init(&top->tick, NULL);
    for (size_t i = 0; i < loops; i++)
        pthread_mutex_init(&top->shares[i].lock, NULL);
    return top;
}

void weir__top_destroy(struct weir__top *top)
{
    for (size_t i = 0; top != NULL && i < top->loops; i++) {
        weir__hitters_destroy(top->shares[i].now);
        weir__hitters_destroy(top->shares[i].before);
        pthread_mutex_destroy(&top->shares[i].lock);
    }
    if (top != NULL)
        pthread_mutex_destroy(&top->tick);
    free(top);
}

int weir__top_create(struct weir__top **out, size_t loops, int64_t keys, struct weir_error *error)
{
    if (keys < 1 || keys > KEYS_MOST)
        return weir__fail(error, WEIR_INVALID, "%lld keys cannot be followed; 1 to %d can",
                          (long long)keys, KEYS_MOST);
    struct weir__top *top = allocate(loops);
    if (top == NULL)
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the list of limited keys");
    top->keys = (size_t)keys;
    bool good = weir__random_fill(&top->secrets, sizeof(top->secrets)) == 0;
    for (size_t i = 0; i < loops && good; i++)
        good = (top->shares[i].now = weir__hitters_create(top->keys)) != NULL;
    if (!good) {
        weir__top_destroy(top);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the list of limited keys");
    }
    *out = top;
    return WEIR_OK;
}

/* ------------------------------------------------------------- counting ---- */

/* As much of it as a sketch keeps; returns its length. */
static size_t compose(char out[WEIR__HITTER_TEXT + 1], const char *rule, size_t rule_len,
                      const char *key, size_t key_len)
{
    size_t room = WEIR__HITTER_TEXT; /* one more than is kept: then it is seen to be cut */

    rule_len = rule_len < 64 ? rule_len : 63;
    memcpy(out, rule, rule_len);
    out[rule_len] = SEPARATOR;
    room -= rule_len + 1;
    key_len = key_len < room ? key_len : room;
    if (key_len > 0)
        memcpy(out + rule_len + 1, key, key_len);
    return rule_len + 1 + key_len;
}

void weir__top_add(struct weir__top *top, size_t loop, const char *rule, const char *key,
                   size_t key_len, int64_t times)
{
    struct share *share = &top->shares[loop];
    size_t rule_len = strlen(rule);
    char text[WEIR__HITTER_TEXT + 1];

    uint64_t hash = weir__sketch_hash(&top->secrets, rule, rule_len) * WEIR__GOLDEN +
                    weir__sketch_hash(&top->secrets, key, key_len);
    size_t len = compose(text, rule, rule_len, key, key_len);
    if (pthread_mutex_trylock(&share->lock) != 0) {
        __atomic_fetch_add(&share->missed, times, __ATOMIC_RELAXED);
        return;
    }
    weir__hitters_add(share->now, hash, text, len, times);
    pthread_mutex_unlock(&share->lock);
}

/* Memory is taken before the lock and freed after it. */
static void renew(struct weir__top *top, struct share *share)
{
    struct weir__hitters *fresh = weir__hitters_create(top->keys);

    if (fresh == NULL)
        return; /* this period lasts longer then */
    pthread_mutex_lock(&share->lock);
    struct weir__hitters *old = share->before;
    share->before = share->now;
    share->now = fresh;
    share->missed_before = __atomic_exchange_n(&share->missed, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&share->lock);
    weir__hitters_destroy(old);
}

void weir__top_tick(struct weir__top *top, weir_time now)
{
    pthread_mutex_lock(&top->tick);
    if (top->since == 0 || now < top->since)
        top->since = now;
    bool over = now - top->since >= WEIR__TOP_PERIOD;
    if (over)
        top->since = now;
    for (size_t i = 0; over && i < top->loops; i++)
        renew(top, &top->shares[i]);
    pthread_mutex_unlock(&top->tick);
}

/* -------------------------------------------------------------- reading ---- */

struct gathered {
    struct weir__hitter *hitters;
    size_t n;
    int64_t total, missed;
};

static void gather_from(struct gathered *g, const struct weir__hitters *sketch, size_t each)
{
    if (sketch == NULL)
        return;
    g->n += weir__hitters_top(sketch, g->hitters + g->n, each);
    g->total += weir__hitters_total(sketch);
}

static int by_hash(const void *a, const void *b)
{
    const struct weir__hitter *x = a, *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* One entry for each key, the greatest first. */
static void merge(struct gathered *g)
{
    size_t n = 0;

    qsort(g->hitters, g->n, sizeof(*g->hitters), by_hash);
    for (size_t i = 0; i < g->n; i++) {
        if (n > 0 && g->hitters[n - 1].hash == g->hitters[i].hash) {
            g->hitters[n - 1].count += g->hitters[i].count;
            g->hitters[n - 1].error += g->hitters[i].error;
        } else {
            g->hitters[n++] = g->hitters[i];
        }
    }
    g->n = n;
    qsort(g->hitters, g->n, sizeof(*g->hitters), weir__hitter_compare);
}

/* A few more than n of each sketch, because the n-th of all may be further down in each.  False:
 * no memory. */
static bool gather(struct weir__top *top, size_t n, struct gathered *g)
{
    size_t each = 4 * n + 64 < top->keys ? 4 * n + 64 : top->keys;

    *g = (struct gathered){ .hitters = malloc(2 * top->loops * each * sizeof(*g->hitters)) };
    if (g->hitters == NULL)
        return false;
    for (size_t i = 0; i < top->loops; i++) {
        struct share *share = &top->shares[i];
        pthread_mutex_lock(&share->lock);
        gather_from(g, share->now, each);
        gather_from(g, share->before, each);
        g->missed += __atomic_load_n(&share->missed, __ATOMIC_RELAXED) + share->missed_before;
        pthread_mutex_unlock(&share->lock);
    }
    merge(g);
    g->n = g->n < n ? g->n : n;
    return true;
}

static void print(struct weir__buffer *json, const struct weir__hitter *h)
{
    const char *separator = strchr(h->text, SEPARATOR);
    char rule[WEIR__HITTER_TEXT];

    memcpy(rule, h->text, (size_t)(separator - h->text));
    rule[separator - h->text] = '\0';
    weir__buffer_open(json, NULL, '{');
    weir__buffer_member(json, "rule", rule);
    weir__buffer_member(json, "key", separator + 1);
    weir__buffer_member_number(json, "refused", h->count);
    weir__buffer_member_number(json, "error", h->error);
    weir__buffer_close(json, "}");
}

void weir__top_list(struct weir__top *top, size_t n, struct weir__buffer *json)
{
    struct gathered g;
    bool good = gather(top, n < WEIR__TOP_MOST ? n : WEIR__TOP_MOST, &g);

    weir__buffer_open(json, NULL, '[');
    for (size_t i = 0; good && i < g.n; i++)
        print(json, &g.hitters[i]);
    weir__buffer_close(json, "]");
    free(g.hitters);
}

void weir__top_figures(struct weir__top *top, size_t n, struct weir__top_figures *out)
{
    struct gathered g;

    *out = (struct weir__top_figures){ 0 };
    if (!gather(top, n, &g))
        return;
    out->keys = (int64_t)g.n;
    for (size_t i = 0; i < g.n; i++)
        out->refused += g.hitters[i].count - g.hitters[i].error;
    out->total = g.total + g.missed;
    out->missed = g.missed;
    free(g.hitters);
}
