/* adhoc.c -- limits that clients bring with their asks.
 *
 * Two stages.  Texts as clients wrote them lead to their limiter without being read again: a
 * chained hash table in which lookups need no lock.  An entry remembers under which version of the
 * limiter its text was in force; if that is not the present one (somebody has asked under the name
 * with another limit, or another process has changed it) the text is put in force again.  An entry
 * that is not known, or not in force, goes the long way, one at a time: parse, look in the table,
 * make or change.
 *
 * An entry is forgotten after a minute, and read once more if it is in use: so nobody has to note
 * on every ask that it is.  A limiter whose last entry was forgotten is released, and goes from the
 * table once all its keys are idle.  What was taken out of the chains stays until every loop has
 * made a turn, because it may have been looking.
 *
 * There is room for some spellings of each limit.  Those beyond it are served too, but read every
 * time.
 *
 * In the table a limit's name begins with ':' and a limit without a name is '=' and the limit as it
 * is printed; rules' names have neither.
 */
#include "server/serve/decide/adhoc.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/table.h"

#define NAMED        ':'
#define UNNAMED      '='
#define TEXT_LEN_MAX 255
#define NAME_LEN_MAX (WEIR__NAME_SIZE - 2)
#define SPELLINGS    4 /* of each limit that are remembered, on average */
#define SALT         0x6164686f63u
#define REMEMBERED   (60 * WEIR_SECOND)
#define SWEEP        (10 * WEIR_SECOND) /* between two */
#define CHANGE_EVERY WEIR_SECOND        /* one more limit may be changed */
#define ANY          UINT64_MAX         /* version: any will do */
#define NOT_NOW      (UINT64_MAX - 1)

struct entry {
    struct entry *next; /* atomic */
    uint64_t tag;
    struct weir_limiter *limiter;
    weir_time since;
    struct entry *older; /* of those that are gone */
    uint64_t version;    /* atomic: the owner of the era in which this text is in force */
    size_t name_len, limit_len;
    char bytes[]; /* the name, then the limit */
};

/* A limiter in the table that this process uses, or that it counts. */
struct limit {
    struct limit *next;
    struct weir_limiter *limiter; /* NULL: not used any more, but perhaps still in the table */
    weir_time since;              /* when somebody last went the long way to it */
    uint32_t id;
    uint64_t edition; /* of its place when it was last seen there */
    bool counted;     /* as one of a client's, or an earlier run's */
    struct weir__fair_user fair_user;
    char name[WEIR__NAME_SIZE];
};

/* Changes of limits that count, by whom they were made: a ring.  The oldest ends every second. */
struct changes {
    struct weir__fair_user by[WEIR__ADHOC_CHANGES];
    size_t first, n;
    weir_time ended_at; /* when the last one did; or there was none */
};

struct weir__adhoc {
    struct weir_table *table;
    int64_t limits_max;
    struct weir__fair_use *fair_use;
    uint64_t mask;
    struct entry **chains; /* atomic */
    uint64_t generation;   /* of the chains; atomic */
    pthread_mutex_t mutex; /* for the members below, and for changes of the chains */
    struct limit *first, **by_id;
    int64_t limits, entries; /* counted ones; entries in the chains */
    struct entry *gone;      /* taken out of the chains, ... */
    weir_time swept_at;      /* ... then */
    struct changes changes;
};

/* ---------------------------------------------------------- texts as written ---- */

static uint64_t tag_of(const struct weir__adhoc *a, const struct weir__adhoc_wanted *w)
{
    const uint64_t *secrets = a->table->secrets;
    uint64_t salt =
        w->name.len
            ? weir__hash_key(secrets, SALT, (struct weir_key){ w->name.bytes, w->name.len }).tag
            : SALT;

    return weir__hash_key(secrets, salt, (struct weir_key){ w->limit.bytes, w->limit.len }).place;
}

static bool is_of(const struct entry *e, uint64_t tag, const struct weir__adhoc_wanted *w)
{
    return e->tag == tag && e->name_len == w->name.len && e->limit_len == w->limit.len &&
           weir__same_bytes(e->bytes, w->name.bytes, w->name.len) &&
           weir__same_bytes(e->bytes + e->name_len, w->limit.bytes, w->limit.len);
}

static struct entry *look_up(const struct weir__adhoc *a, uint64_t tag,
                             const struct weir__adhoc_wanted *w)
{
    struct entry *e = __atomic_load_n(&a->chains[tag & a->mask], __ATOMIC_ACQUIRE);

    while (e && !is_of(e, tag, w))
        e = __atomic_load_n(&e->next, __ATOMIC_ACQUIRE);
    return e;
}

static bool is_in_force(const struct entry *e)
{
    uint64_t version = __atomic_load_n(&e->version, __ATOMIC_ACQUIRE);

    return version == ANY || version == weir__limiter_era(e->limiter)->version;
}

/* When it was asked for; not before the last sweep, though the clock may be: a limit asked for
 * since then is not over. */
static weir_time asked_at(const struct weir__adhoc *a, const struct weir__adhoc_wanted *w)
{
    return w->now > a->swept_at ? w->now : a->swept_at;
}

/* Without memory or room it is read again the next time. */
static void remember_locked(struct weir__adhoc *a, uint64_t tag, const struct weir__adhoc_wanted *w,
                            struct weir_limiter *limiter, uint64_t version)
{
    struct entry *e = look_up(a, tag, w), **chain = &a->chains[tag & a->mask];

    if (e) {
        __atomic_store_n(&e->version, version, __ATOMIC_RELEASE);
        return;
    }
    if (a->entries >= a->limits_max * SPELLINGS ||
        !(e = malloc(sizeof(*e) + w->name.len + w->limit.len)))
        return;
    *e = (struct entry){ *chain, tag,     limiter,     asked_at(a, w),
                         NULL,   version, w->name.len, w->limit.len };
    if (w->name.len)
        memcpy(e->bytes, w->name.bytes, w->name.len);
    if (w->limit.len)
        memcpy(e->bytes + w->name.len, w->limit.bytes, w->limit.len);
    __atomic_store_n(chain, e, __ATOMIC_RELEASE);
    a->entries++;
}

/* --------------------------------------------------------------- the long way ---- */

static int read_limit(struct weir_limit *out, const struct weir__adhoc_wanted *w,
                      struct weir_error *error)
{
    char text[TEXT_LEN_MAX + 1];

    if (w->limit.len > TEXT_LEN_MAX)
        return weir__fail(error, WEIR_INVALID, "a limit has at most %d bytes, and this has %zu",
                          TEXT_LEN_MAX, w->limit.len);
    if (memchr(w->limit.bytes, '\0', w->limit.len))
        return weir__fail(error, WEIR_INVALID,
                          "a limit is text, such as 300/60, and this has a NUL byte");
    memcpy(text, w->limit.bytes, w->limit.len);
    text[w->limit.len] = '\0';
    return weir_limit_parse(out, text, error);
}

static int name_named(char out[WEIR__NAME_SIZE], const struct weir__adhoc_wanted *w,
                      struct weir_error *error)
{
    if (w->name.len > NAME_LEN_MAX)
        return weir__fail(error, WEIR_INVALID,
                          "a limit's name has at most %d bytes, and this has %zu", NAME_LEN_MAX,
                          w->name.len);
    if (memchr(w->name.bytes, '\0', w->name.len))
        return weir__fail(error, WEIR_INVALID, "a limit's name is text, and this has a NUL byte");
    out[0] = NAMED;
    memcpy(out + 1, w->name.bytes, w->name.len);
    out[w->name.len + 1] = '\0';
    return WEIR_OK;
}

/* Limits that are the same print the same. */
static int name_unnamed(char out[WEIR__NAME_SIZE], const struct weir_plan *plan,
                        struct weir_error *error)
{
    struct weir_limit named = weir__plan_limit_named(plan);

    out[0] = UNNAMED;
    if (weir_limit_print(out + 1, WEIR__NAME_SIZE - 1, &named) < WEIR__NAME_SIZE - 1)
        return WEIR_OK;
    return weir__fail(error, WEIR_INVALID,
                      "this limit is too long to be known by its text: give it a name");
}

static void uncount(struct weir__adhoc *a, struct limit *l)
{
    if (!l->counted)
        return;
    l->counted = false;
    a->limits--;
    weir__fair_use_give(a->fair_use, WEIR__POOL_LIMITS, l->fair_user);
}

static struct limit *limit_at(struct weir__adhoc *a, uint32_t id, const char *name)
{
    struct limit *l = a->by_id[id];

    if (l == NULL) {
        l = calloc(1, sizeof(*l));
        if (l == NULL)
            return NULL;
        *l = (struct limit){ .next = a->first, .id = id };
        a->first = a->by_id[id] = l;
    }
    if (strcmp(l->name, name) != 0) { /* another has its place in the table by now */
        uncount(a, l);
        snprintf(l->name, sizeof(l->name), "%s", name);
    }
    return l;
}

/* The limiter, which the caller uses, is in use for a while; made: by the caller. */
static int keep_locked(struct weir__adhoc *a, struct weir_limiter *limiter, const char *name,
                       const struct weir__adhoc_wanted *w, bool made, struct weir_error *error)
{
    struct limit *l = limit_at(a, limiter->id, name);

    if (l == NULL) {
        weir_limiter_release(limiter);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for a limit");
    }
    if (l->limiter != NULL)
        weir_limiter_release(limiter); /* once is enough */
    l->limiter = limiter;
    if (l->since < asked_at(a, w)) /* its entries may be of a clock that was ahead */
        l->since = asked_at(a, w);
    if (made) {
        uncount(a, l);
        l->counted = true;
        l->fair_user = w->conn ? w->conn->fair_user : (struct weir__fair_user){ 0, 0 };
        a->limits++;
    }
    return WEIR_OK;
}

static int make_locked(struct weir__adhoc *a, const struct weir__adhoc_wanted *w, const char *name,
                       const struct weir_plan *plan, struct weir_limiter **out,
                       struct weir_error *error)
{
    struct weir_error why;

    if (!weir__fair_use_take(a->fair_use, WEIR__POOL_LIMITS, w->conn, a->limits_max - a->limits,
                             w->now))
        return weir__fail(error, WEIR_NO_MEMORY,
                          "there are %" PRId64 " different limits of clients already, of %" PRId64
                          " that the setting adhoc-limits allows, and no client may take all: use "
                          "one of them, or raise it",
                          a->limits, a->limits_max);
    int code = weir_limiter_create(out, a->table, name, &plan->limit, &why);
    if (code == WEIR_OK)
        code = keep_locked(a, *out, name, w, true, &why);
    if (code != WEIR_OK && w->conn)
        weir__fair_use_give(a->fair_use, WEIR__POOL_LIMITS, w->conn->fair_user);
    if (code != WEIR_OK && error)
        *error = why;
    return code;
}

/* WEIR_OK and NULL: there is none of that name. */
static int find_kept_locked(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                            const char *name, struct weir_limiter **out, struct weir_error *error)
{
    *out = weir__limiter_use(a->table, name);
    return *out ? keep_locked(a, *out, name, w, false, error) : WEIR_OK;
}

/* As of now. */
static void end_changes(struct weir__adhoc *a, weir_time now)
{
    struct changes *c = &a->changes;

    for (; c->n > 0 && now - c->ended_at >= CHANGE_EVERY; c->n--) {
        weir__fair_use_give(a->fair_use, WEIR__POOL_LIMIT_CHANGES, c->by[c->first]);
        c->first = (c->first + 1) % WEIR__ADHOC_CHANGES;
        c->ended_at += CHANGE_EVERY;
    }
    if (c->n == 0 && c->ended_at < now)
        c->ended_at = now;
}

/* Clients that do not agree on a name's limit would change it with every ask: then it stays as it
 * is for a while. */
static int change_locked(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                         struct weir_limiter *limiter, const struct weir_limit *limit,
                         struct weir_error *error)
{
    struct weir__fair_user fair_user =
        w->conn ? w->conn->fair_user : (struct weir__fair_user){ 0, 0 };
    struct changes *c = &a->changes;

    end_changes(a, w->now);
    if (!weir__fair_use_take(a->fair_use, WEIR__POOL_LIMIT_CHANGES, w->conn,
                             (int64_t)(WEIR__ADHOC_CHANGES - c->n), w->now))
        return WEIR_OK;
    int code = weir_limiter_change(limiter, limit, w->now, error);
    if (code == WEIR_OK)
        c->by[(c->first + c->n++) % WEIR__ADHOC_CHANGES] = fair_user;
    else
        weir__fair_use_give(a->fair_use, WEIR__POOL_LIMIT_CHANGES, fair_user);
    return code;
}

/* The limiter of that name, under that limit. */
static int put_in_force_locked(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                               const char *name, const struct weir_plan *plan,
                               struct weir_limiter **out, struct weir_error *error)
{
    struct weir_limiter *limiter;
    int code = find_kept_locked(a, w, name, &limiter, error);

    if (code == WEIR_OK && limiter == NULL) {
        code = make_locked(a, w, name, plan, &limiter, error);
        if (code == WEIR_EXISTS) /* another process has just made it */
            code = find_kept_locked(a, w, name, &limiter, error);
    }
    if (code == WEIR_OK && limiter == NULL)
        code = weir__fail(error, WEIR_NO_MEMORY, "the limit has just gone: ask again");
    if (code == WEIR_OK &&
        !weir__limit_equal(&weir__limiter_era(limiter)->plan.limit, &plan->limit))
        code = change_locked(a, w, limiter, &plan->limit, error);
    if (code == WEIR_OK)
        *out = limiter;
    return code;
}

static int find_by_name_locked(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                               const char *name, struct weir_limiter **out,
                               struct weir_error *error)
{
    struct weir_limiter *limiter;
    int code = find_kept_locked(a, w, name, &limiter, error);

    if (code == WEIR_OK && limiter == NULL)
        return weir__fail(error, WEIR_INVALID,
                          "there is no limit named '%s' yet: give it one, such as 300/60",
                          name + 1);
    if (code == WEIR_OK)
        *out = limiter;
    return code;
}

/* A limit that names no algorithm means the one that its name has. */
static void keep_algorithm(const struct weir__adhoc *a, const char *name, struct weir_limit *limit)
{
    struct weir_limiter *limiter = limit->algorithm ? NULL : weir__limiter_use(a->table, name);

    if (limiter) {
        limit->algorithm = weir__limiter_era(limiter)->plan.limit.algorithm;
        weir_limiter_release(limiter);
    }
}

/* The name that it has in the table, and its plan. */
static int read_wanted(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                       char name[WEIR__NAME_SIZE], struct weir_plan *plan, struct weir_error *error)
{
    struct weir_limit limit;
    int code = read_limit(&limit, w, error);

    if (code == WEIR_OK && w->name.len)
        keep_algorithm(a, name, &limit);
    if (code == WEIR_OK)
        code = weir__plan_make(plan, &limit, error);
    if (code == WEIR_OK && !w->name.len)
        code = name_unnamed(name, plan, error);
    return code;
}

static int find_locked(struct weir__adhoc *a, uint64_t tag, const struct weir__adhoc_wanted *w,
                       struct weir_limiter **out, struct weir_error *error)
{
    char name[WEIR__NAME_SIZE];
    struct weir_plan plan;
    int code = w->name.len ? name_named(name, w, error) : WEIR_OK;

    if (code == WEIR_OK && w->limit.len == 0) {
        code = find_by_name_locked(a, w, name, out, error);
        if (code == WEIR_OK)
            remember_locked(a, tag, w, *out, ANY);
        return code;
    }
    if (code == WEIR_OK)
        code = read_wanted(a, w, name, &plan, error);
    if (code == WEIR_OK)
        code = put_in_force_locked(a, w, name, &plan, out, error);
    if (code != WEIR_OK)
        return code;
    const struct weir__era *era = weir__limiter_era(*out);
    remember_locked(a, tag, w, *out,
                    weir__limit_equal(&era->plan.limit, &plan.limit) ? era->version : NOT_NOW);
    return WEIR_OK;
}

static int fail_missing(struct weir_error *error)
{
    return weir__fail(error, WEIR_INVALID, "a limit is missing: give one, such as 300/60");
}

int weir__adhoc_find(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                     struct weir_limiter **out, struct weir_error *error)
{
    uint64_t tag = tag_of(a, w);
    struct entry *e = look_up(a, tag, w);

    if (e && is_in_force(e)) {
        *out = e->limiter;
        return WEIR_OK;
    }
    if (w->limit.len == 0 && w->name.len == 0)
        return fail_missing(error);
    pthread_mutex_lock(&a->mutex);
    int code = find_locked(a, tag, w, out, error);
    pthread_mutex_unlock(&a->mutex);
    return code;
}

static int look_locked(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                       struct weir_limiter **out, struct weir_plan *plan, struct weir_error *error)
{
    char name[WEIR__NAME_SIZE];
    int code = w->name.len ? name_named(name, w, error) : WEIR_OK;

    if (code == WEIR_OK && w->limit.len == 0)
        return find_by_name_locked(a, w, name, out, error);
    if (code == WEIR_OK)
        code = read_wanted(a, w, name, plan, error);
    return code == WEIR_OK ? find_kept_locked(a, w, name, out, error) : code;
}

int weir__adhoc_look(struct weir__adhoc *a, const struct weir__adhoc_wanted *w,
                     struct weir_limiter **out, struct weir_plan *plan, struct weir_error *error)
{
    const struct entry *e = look_up(a, tag_of(a, w), w);

    if (e) {
        *out = e->limiter;
        return WEIR_OK;
    }
    if (w->limit.len == 0 && w->name.len == 0)
        return fail_missing(error);
    pthread_mutex_lock(&a->mutex);
    int code = look_locked(a, w, out, plan, error);
    pthread_mutex_unlock(&a->mutex);
    return code;
}

/* ------------------------------------------------------------------- forgetting ---- */

void weir__adhoc_turn(const struct weir__adhoc *a, struct weir__loop *loop)
{
    weir__publish(&loop->adhoc_seen, weir__acquire(&a->generation));
}

static bool all_have_turned(const struct weir__adhoc *a, const struct weir__server *server)
{
    for (size_t i = 0; i < server->n_loops; i++)
        if (weir__acquire(&server->loops[i].adhoc_seen) != a->generation)
            return false;
    return true;
}

static void take_out_locked(struct weir__adhoc *a, struct entry **chain)
{
    for (struct entry **at = chain, *e; (e = *at) != NULL;) {
        if (a->swept_at - e->since < REMEMBERED) {
            at = &e->next;
            continue;
        }
        __atomic_store_n(at, e->next, __ATOMIC_RELEASE);
        a->entries--;
        e->older = a->gone;
        a->gone = e;
    }
}

static void free_gone(struct weir__adhoc *a)
{
    for (struct entry *e = a->gone, *older; e; e = older) {
        older = e->older;
        free(e);
    }
    a->gone = NULL;
}

/* Whether it is in the table. */
static bool is_there(const struct weir__adhoc *a, struct limit *l)
{
    uint64_t edition = weir__acquire(&a->table->places[l->id].edition);

    if (edition == l->edition)
        return true;
    weir__look_begin(a->table);
    const struct weir_limiter *limiter = weir__limiter_by_name(a->table, l->name);
    bool there = limiter != NULL && limiter->id == l->id;
    weir__look_end(a->table);
    l->edition = edition;
    return there;
}

/* Nobody has asked for it for a while, and no loop can be using it. */
static void release_locked(struct weir__adhoc *a)
{
    for (struct limit **at = &a->first, *l; (l = *at) != NULL;) {
        if (l->limiter && a->swept_at - l->since >= REMEMBERED) {
            weir_limiter_release(l->limiter);
            l->limiter = NULL;
            l->edition = 0;
        }
        if (l->limiter || is_there(a, l)) {
            at = &l->next;
            continue;
        }
        uncount(a, l);
        a->by_id[l->id] = NULL;
        *at = l->next;
        free(l);
    }
}

void weir__adhoc_tend(struct weir__adhoc *a, const struct weir__server *server, weir_time now)
{
    pthread_mutex_lock(&a->mutex);
    if (all_have_turned(a, server)) {
        release_locked(a);
        free_gone(a);
        if (now - a->swept_at >= SWEEP) {
            a->swept_at = now;
            for (uint64_t i = 0; i <= a->mask; i++)
                take_out_locked(a, &a->chains[i]);
            weir__publish(&a->generation, a->generation + 1);
        }
    }
    pthread_mutex_unlock(&a->mutex);
}

/* -------------------------------------------------------------- create, destroy ---- */

/* Limits that earlier runs have left in the table. */
static int count_limits(struct weir__adhoc *a)
{
    struct weir_limiter_info info;

    for (int64_t at = 0; weir_limiter_next(a->table, &at, &info);) {
        if (info.name[0] != NAMED && info.name[0] != UNNAMED)
            continue;
        struct limit *l = limit_at(a, (uint32_t)at - 1, info.name);
        if (l == NULL)
            return WEIR_NO_MEMORY;
        l->counted = true;
        a->limits++;
    }
    return WEIR_OK;
}

int weir__adhoc_create(struct weir__adhoc **out, struct weir_table *table, int64_t limits_max,
                       struct weir__fair_use *fair_use, struct weir_error *error)
{
    struct weir__adhoc *a = calloc(1, sizeof(*a));
    uint64_t chains = 1;

    limits_max = limits_max < 0                    ? 0
                 : limits_max > WEIR__LIMITERS_MAX ? WEIR__LIMITERS_MAX
                                                   : limits_max;
    while (chains < (uint64_t)limits_max * SPELLINGS)
        chains *= 2;
    if (a) {
        a->table = table;
        a->chains = calloc(chains, sizeof(*a->chains));
        a->by_id = calloc(table->limiters.most, sizeof(*a->by_id));
        pthread_mutex_init(&a->mutex, NULL);
    }
    if (!a || !a->chains || !a->by_id || count_limits(a) != WEIR_OK) {
        weir__adhoc_destroy(a);
        return weir__fail(error, WEIR_NO_MEMORY, "no memory for the limits of clients");
    }
    a->limits_max = limits_max;
    a->fair_use = fair_use;
    a->mask = chains - 1;
    *out = a;
    return WEIR_OK;
}

void weir__adhoc_destroy(struct weir__adhoc *a)
{
    if (!a)
        return;
    for (uint64_t i = 0; a->chains && i <= a->mask; i++)
        for (struct entry *e = a->chains[i], *next; e; e = next) {
            next = e->next;
            free(e);
        }
    free_gone(a);
    for (struct limit *l = a->first, *next; l; l = next) {
        next = l->next;
        if (l->limiter)
            weir_limiter_release(l->limiter);
        free(l);
    }
    pthread_mutex_destroy(&a->mutex);
    free(a->by_id);
    free(a->chains);
    free(a);
}
