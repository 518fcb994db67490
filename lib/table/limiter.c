/* limiter.c -- limits at work in a table: their records, shared by all processes, and what each
 * process compiles from them.
 *
 * A record keeps the limit in numbers, not the plan: every process checks and compiles it for
 * itself, so a damaged or hostile file can at worst set an odd limit.  A change writes the next of
 * eight places and then the version, which is all that deciding threads look at.  States are
 * brought over one by one as they are next used.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "table/table.h"
#include "base/utf8.h"

/* ------------------------------------------------ limits as numbers ---- */

static struct weir__limit_record to_numbers(const struct weir_limit *l, weir_time since)
{
    struct weir__limit_record r = { l->count,   l->period,      l->burst,    l->queue,
                                    l->buckets, l->align_first, l->loose,    l->warmup,
                                    l->cold,    since,          l->calendar, { 0 } };

    _Static_assert(sizeof(r.zone) == sizeof(l->zone), "a zone's name fits its words");
    memcpy(r.zone, l->zone, sizeof(r.zone));
    return r;
}

static int32_t to_int32(int64_t n)
{
    return n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : (int32_t)n;
}

static struct weir_limit from_numbers(uint32_t algorithm, const struct weir__limit_record *r)
{
    struct weir_limit l = {
        .algorithm = weir_algorithms()[algorithm],
        .count = r->count,
        .period = r->period,
        .burst = r->burst,
        .queue = r->queue,
        .buckets = to_int32(r->buckets),
        .align_first = r->align_first != 0,
        .loose = r->loose != 0,
        .warmup = r->warmup,
        .cold = to_int32(r->cold),
        .calendar = to_int32(r->calendar),
    };

    memcpy(l.zone, r->zone,
           sizeof(l.zone) - 1); /* the last byte stays NUL, whatever the record says */
    return l;
}

static size_t algorithms(void)
{
    size_t n = 0;

    while (weir_algorithms()[n] != NULL)
        n++;
    return n;
}

/* Numbers that other processes may be writing, one by one. */
static void load_numbers(struct weir__limit_record *out, const struct weir__limit_record *from)
{
    const int64_t *p = &from->count;

    for (size_t i = 0; i < sizeof(*out) / sizeof(int64_t); i++)
        (&out->count)[i] = __atomic_load_n(p + i, __ATOMIC_ACQUIRE);
}

static void store_numbers(struct weir__limit_record *to, const struct weir__limit_record *from)
{
    for (size_t i = 0; i < sizeof(*to) / sizeof(int64_t); i++)
        __atomic_store_n(&to->count + i, (&from->count)[i], __ATOMIC_RELAXED);
}

static struct weir__limiter_record *record_at(const struct weir_table *table, uint64_t id)
{
    return (struct weir__limiter_record *)(void *)((unsigned char *)table->header +
                                                   WEIR__LIMITERS_AT) +
           id;
}

/* ------------------------------------------------------------- eras ---- */

static struct weir__era *compile_era(const struct weir_table *table, uint32_t id, uint32_t version)
{
    const struct weir__limiter_record *r = record_at(table, id);
    struct weir__limit_record numbers;

    load_numbers(&numbers, &r->past[version % WEIR__PAST]);
    bool overwritten = __atomic_load_n(&r->version, __ATOMIC_ACQUIRE) - version >=
                       WEIR__PAST - 1; /* or about to be */
    if (overwritten || r->algorithm >= algorithms())
        return NULL;
    struct weir_limit limit = from_numbers(r->algorithm, &numbers);
    struct weir__era *era = calloc(1, sizeof(*era));
    if (era == NULL || weir__plan_make(&era->plan, &limit, NULL) != WEIR_OK ||
        (table->keys.narrow && era->plan.state_size <= WEIR__STATE_SMALL && !era->plan.packs)) {
        free(era);
        return NULL;
    }
    era->plan.real_ahead = &table->header->real_ahead;
    era->since = numbers.since;
    era->version = version;
    return era;
}

/* Compiles the versions that the record has and this process has not yet, oldest first.  What is
 * damaged is left out. */
static void add_eras(struct weir_limiter *limiter, uint32_t from, uint32_t to)
{
    for (uint32_t version = from; version != to + 1; version++) {
        struct weir__era *era = compile_era(limiter->table, limiter->id, version);
        if (era == NULL)
            continue;
        era->older = limiter->era;
        __atomic_store_n(&limiter->era, era, __ATOMIC_RELEASE);
    }
}

static struct weir__era *find_era(const struct weir_limiter *limiter, uint32_t version)
{
    struct weir__era *era = limiter->era;

    while (era != NULL && era->version != version)
        era = era->older;
    return era;
}

/* If the record is damaged, or memory is out, the limit stays as it was: deciding does not fail. */
const struct weir__era *weir__limiter_renew(struct weir_limiter *limiter)
{
    pthread_mutex_lock(&limiter->table->mutex);
    uint32_t target = __atomic_load_n(&limiter->record->version, __ATOMIC_ACQUIRE),
             known = limiter->era->version;
    if (target != known)
        add_eras(limiter, target - known >= WEIR__PAST - 1 ? target - (WEIR__PAST - 2) : known + 1,
                 target);
    const struct weir__era *era = limiter->era;
    pthread_mutex_unlock(&limiter->table->mutex);
    return era;
}

const struct weir_plan *weir__limiter_plan(struct weir_limiter *limiter, uint32_t version)
{
    pthread_mutex_lock(&limiter->table->mutex);
    const struct weir__era *era = find_era(limiter, version);
    pthread_mutex_unlock(&limiter->table->mutex);
    return era == NULL ? NULL : &era->plan;
}

/* The eras from one version to another, newest last; returns their number, 0 if the first is
 * forgotten. */
static size_t list_eras(const struct weir_limiter *limiter, uint32_t version,
                        const struct weir__era *last, const struct weir__era *out[WEIR__PAST + 1])
{
    const struct weir__era *first = find_era(limiter, version);
    size_t n = 0;

    if (first == NULL)
        return 0;
    out[n++] = first;
    for (uint32_t v = version + 1; n < WEIR__PAST && out[n - 1] != last && v != last->version; v++)
        if (find_era(limiter, v) != NULL) /* else one that this process never saw */
            out[n++] = find_era(limiter, v);
    if (out[n - 1] != last)
        out[n++] = last;
    return n;
}

void weir__limiter_convert(struct weir_limiter *limiter, const struct weir__era *era,
                           uint32_t version, const void *from, void *to)
{
    const struct weir__era *eras[WEIR__PAST + 1];

    pthread_mutex_lock(&limiter->table->mutex);
    size_t n = list_eras(limiter, version, era, eras), largest = 0;
    pthread_mutex_unlock(&limiter->table->mutex);
    for (size_t i = 0; i < n; i++)
        largest = eras[i]->plan.state_size > largest ? eras[i]->plan.state_size : largest;
    uint64_t small[2][2];
    unsigned char *copies[2] = { (unsigned char *)small[0], (unsigned char *)small[1] };
    void *room = largest > sizeof(small[0]) ? malloc(2 * largest) : NULL;
    if (room != NULL) {
        copies[0] = room;
        copies[1] = copies[0] + largest;
    }
    if (n == 0 || (room == NULL && largest > sizeof(small[0]))) {
        /* so many changes ago that nobody remembers: spent, as of the last change, gives nothing
         * away and heals */
        memset(to, 0, era->plan.state_size);
        era->plan.algo->give(&era->plan, to, -era->plan.most, era->since);
        free(room);
        return;
    }
    weir__copy_words(copies[0], from, eras[0]->plan.state_size);
    for (size_t i = 1; i < n; i++)
        weir_step_change(&eras[i - 1]->plan, &eras[i]->plan, copies[(i - 1) % 2], copies[i % 2],
                         eras[i]->since);
    memcpy(to, copies[(n - 1) % 2], era->plan.state_size);
    free(room);
}

/* --------------------------------------------------- this process's ---- */

uint32_t weir__limiters_in(const struct weir_table *table)
{
    uint64_t n = __atomic_load_n(&table->header->limiters, __ATOMIC_ACQUIRE);

    return n < table->limiters_max ? (uint32_t)n : table->limiters_max;
}

static struct weir_limiter *open_limiter(struct weir_table *table, uint32_t id)
{
    struct weir__limiter_record *r = record_at(table, id);
    struct weir_limiter *limiter = calloc(1, sizeof(*limiter));

    if (limiter == NULL)
        return NULL;
    *limiter = (struct weir_limiter){
        .table = table, .space = &table->keys, .record = r, .salt = r->salt, .id = id
    };
    uint32_t version = __atomic_load_n(&r->version, __ATOMIC_ACQUIRE);
    add_eras(limiter, version < WEIR__PAST - 1 ? 0 : version - (WEIR__PAST - 2), version);
    if (limiter->era == NULL) {
        free(limiter);
        return NULL;
    }
    limiter->kind = limiter->era->plan.state_size > WEIR__STATE_SMALL ? WEIR__LARGE
                    : table->keys.narrow                              ? WEIR__NARROW
                                                                      : WEIR__WIDE;
    return limiter;
}

struct weir_limiter *weir__limiter_by_id(struct weir_table *table, uint32_t id)
{
    if (id >= weir__limiters_in(table))
        return NULL;
    struct weir_limiter *limiter = __atomic_load_n(&table->limiters[id], __ATOMIC_ACQUIRE);
    if (limiter != NULL)
        return limiter;
    pthread_mutex_lock(&table->mutex);
    if (table->limiters[id] == NULL)
        __atomic_store_n(&table->limiters[id], open_limiter(table, id), __ATOMIC_RELEASE);
    limiter = table->limiters[id];
    pthread_mutex_unlock(&table->mutex);
    return limiter;
}

void weir__limiter_free(struct weir_limiter *limiter)
{
    if (limiter == NULL)
        return;
    for (struct weir__era *era = limiter->era, *older; era != NULL; era = older) {
        older = era->older;
        free(era);
    }
    free(limiter);
}

/* ------------------------------------------------------------ names ---- */

/* Where each process finds a limiter by its name: open addressing, at most half full, in memory of
 * its own.  It grows with the records, whoever makes them; those that have come since are taken in
 * when next something is looked for. */

#define NONE UINT32_MAX

size_t weir__names_room(const struct weir_table *table)
{
    size_t room = 1;

    while (room < 2 * (size_t)table->limiters_max)
        room *= 2;
    return room;
}

/* The place of the name, or the empty one where it would go. */
static uint32_t *name_place(const struct weir_table *table, const char *name, size_t len)
{
    size_t mask = weir__names_room(table) - 1,
           i = weir__hash_key(table->secrets, 0, (struct weir_key){ name, len }).place & mask;

    while (table->names[i] != 0 &&
           strncmp(record_at(table, table->names[i] - 1)->name, name, WEIR__NAME_SIZE) != 0)
        i = (i + 1) & mask;
    return &table->names[i];
}

/* The id of the limiter of this name, or NONE.  For the holder of the registry's desk. */
static uint32_t find_name_locked(struct weir_table *table, const char *name)
{
    for (uint32_t n = weir__limiters_in(table); table->named < n; table->named++) {
        const char *other = record_at(table, table->named)->name;
        uint32_t *place = name_place(table, other, strnlen(other, WEIR__NAME_SIZE));
        if (*place == 0) /* of two that damage made equal the first counts */
            *place = table->named + 1;
    }
    return *name_place(table, name, strlen(name)) - 1;
}

struct weir_limiter *weir__limiter_by_name(struct weir_table *table, const char *name)
{
    weir__registry_lock(table);
    uint32_t id = find_name_locked(table, name);
    weir__registry_unlock(table);
    return weir__limiter_by_id(table, id);
}

/* --------------------------------------------------------- creation ---- */

#define COMMIT_RECORDS 64

/* Records get their disk space some at a time, when they are needed. */
static int commit_record(const struct weir_table *table, uint32_t id, struct weir_error *error)
{
    uint32_t left = table->limiters_max - id, n = left < COMMIT_RECORDS ? left : COMMIT_RECORDS;

    if (id % COMMIT_RECORDS != 0)
        return WEIR_OK;
    return weir__table_commit(table, WEIR__LIMITERS_AT + id * sizeof(struct weir__limiter_record),
                              n * sizeof(struct weir__limiter_record), error);
}

static int write_record(struct weir_table *table, uint32_t id, const char *name,
                        const struct weir_plan *plan, struct weir_error *error)
{
    struct weir__limiter_record *r = record_at(table, id);
    struct weir__limit_record numbers = to_numbers(&plan->limit, 0);
    int code = commit_record(table, id, error);

    if (code)
        return code;
    memset(r, 0, sizeof(*r));
    r->salt = table->salt_next;
    if (r->salt == 0 && weir__random_fill(&r->salt, sizeof(r->salt)) != 0)
        return weir__fail_errno(error, "cannot get random bytes for", name);
    memcpy(r->name, name, strlen(name));
    r->algorithm = (uint32_t)weir__algo_index(plan->limit.algorithm);
    r->past[0] = numbers;
    return WEIR_OK;
}

static int check_name(const char *name, struct weir_error *error)
{
    size_t len = strlen(name);

    if (len == 0 || len >= WEIR__NAME_SIZE)
        return weir__fail(error, WEIR_INVALID,
                          "a limiter's name has 1 to %d bytes, and this has %zu",
                          WEIR__NAME_SIZE - 1, len);
    for (size_t i = 0; i < len; i++)
        if (weir__utf8_is_control(name + i))
            return weir__fail_at(error, (int)i + 1, "a limiter's name has no control characters");
    return WEIR_OK;
}

int weir__table_fits(const struct weir_table *table, const struct weir_plan *plan,
                     struct weir_error *error)
{
    if (plan->state_size > WEIR__STATE_SMALL && plan->state_size > table->header->slab_bytes)
        return weir__fail(error, WEIR_NO_MEMORY,
                          "a key of this limit needs %zu bytes, and the table's slab has %" PRIu64
                          " in all; make the table anew with a larger slab",
                          plan->state_size, table->header->slab_bytes);
    if (!table->keys.narrow || plan->packs || plan->state_size > WEIR__STATE_SMALL)
        return WEIR_OK;
    return weir__fail(error, WEIR_INVALID,
                      "this limit does not fit a narrow table: that takes gcra, token-bucket or "
                      "leaky-bucket without a queue, at a rate whose "
                      "period/count is a whole number of ns; make the table wide");
}

static int join_or_add(struct weir_limiter **out, struct weir_table *table, const char *name,
                       const struct weir_plan *plan, struct weir_error *error)
{
    uint32_t id = find_name_locked(table, name);

    if (id == NONE) {
        id = weir__limiters_in(table);
        if (id == table->limiters_max)
            return weir__fail(error, WEIR_NO_MEMORY,
                              "the table was made for %" PRIu32 " limiters, and has them already",
                              table->limiters_max);
        int code = write_record(table, id, name, plan, error);
        if (code)
            return code;
        __atomic_store_n(&table->header->limiters, (uint64_t)id + 1, __ATOMIC_RELEASE);
    }
    struct weir_limiter *limiter = weir__limiter_by_id(table, id);
    if (limiter == NULL)
        return weir__fail(error, WEIR_CORRUPT, "the record of limiter '%s' makes no sense", name);
    const struct weir_plan *present = &weir__limiter_era(limiter)->plan;
    if (!weir__limit_equal(&present->limit, &plan->limit)) {
        char text[192];
        struct weir_limit named = weir__plan_limit_named(present);
        weir_limit_print(text, sizeof(text), &named);
        return weir__fail(error, WEIR_EXISTS, "limiter '%s' is there already, as %s", name, text);
    }
    *out = limiter;
    return WEIR_OK;
}

int weir_limiter_create(struct weir_limiter **out, struct weir_table *table, const char *name,
                        const struct weir_limit *limit, struct weir_error *error)
{
    struct weir_plan plan;
    int code;

    if ((code = check_name(name, error)) || (code = weir__plan_make(&plan, limit, error)) ||
        (code = weir__table_fits(table, &plan, error)))
        return code;
    weir__registry_lock(table);
    code = join_or_add(out, table, name, &plan, error);
    weir__registry_unlock(table);
    return code;
}

/* ----------------------------------------------------------- change ---- */

static void change_locked(struct weir_limiter *limiter, const struct weir_plan *plan, weir_time now)
{
    struct weir__limiter_record *r = limiter->record;
    struct weir__limit_record numbers = to_numbers(&plan->limit, now);
    uint32_t next = r->version + 1;

    if (weir__limit_equal(&weir__limiter_era(limiter)->plan.limit, &plan->limit))
        return;
    store_numbers(&r->past[next % WEIR__PAST], &numbers);
    weir__publish(&r->version, next);
    weir__limiter_renew(limiter);
}

int weir_limiter_change(struct weir_limiter *limiter, const struct weir_limit *limit, weir_time now,
                        struct weir_error *error)
{
    struct weir_table *table = limiter->table;
    struct weir_limit wanted = *limit;
    const char *algorithm = weir__limiter_era(limiter)->plan.limit.algorithm;
    struct weir_plan plan;

    wanted.algorithm = limit->algorithm ? limit->algorithm : algorithm;
    if (strcmp(wanted.algorithm, algorithm) != 0)
        return weir__fail(error, WEIR_INVALID,
                          "the algorithm cannot change from %s to %s; make another limiter",
                          algorithm, wanted.algorithm);
    int code;
    if ((code = weir__plan_make(&plan, &wanted, error)) ||
        (code = weir__table_fits(table, &plan, error)))
        return code;
    weir__registry_lock(table);
    change_locked(limiter, &plan, now < 0 ? 0 : now);
    weir__registry_unlock(table);
    return WEIR_OK;
}

bool weir_limiter_next(const struct weir_table *table, int64_t *at, struct weir_limiter_info *out)
{
    int64_t i = *at;

    if (i < 0 || i >= weir__limiters_in(table))
        return false;
    *at = i + 1;
    *out = (struct weir_limiter_info){ .limit = "damaged" };
    memcpy(out->name, record_at(table, (uint64_t)i)->name, sizeof(out->name) - 1);
    weir__text_clean(out->name);
    struct weir_limiter *limiter = weir__limiter_by_id((struct weir_table *)table, (uint32_t)i);
    if (limiter != NULL) {
        const struct weir__era *era = weir__limiter_era(limiter);
        struct weir_limit named = weir__plan_limit_named(&era->plan);
        weir_limit_print(out->limit, sizeof(out->limit), &named);
        out->changes = (int64_t)era->version;
    }
    return true;
}
