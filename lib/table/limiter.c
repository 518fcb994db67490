/* limiter.c -- limits at work in a table: their records, shared by all processes, and what each
 * process compiles from them.
 *
 * A record keeps the limit in numbers, not the plan: every process checks and compiles it for
 * itself, so a damaged or hostile file can at worst set an odd limit.  A change is another record
 * with the limits before it, and another edition of the place, which is all that deciding threads
 * look at.  States are brought over one by one as they are next used.
 *
 * A process keeps the limits that the record has, and those of the last minutes.  Then a limit is
 * forgotten: nobody finds it any more.  Threads that have found it may still be reading it, so its
 * memory stays for some minutes more.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "table/holders.h"
#include "table/part.h"
#include "table/registry.h"
#include "algo/log-chain.h"
#include "base/utf8.h"

#define LINGER (600 * WEIR_SECOND) /* of a limit that was replaced, and of one that is forgotten */

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
        .algorithm = weir__algo_at(algorithm)->name,
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

/* ------------------------------------------------------------- eras ---- */

static struct weir__era *compile_era(const struct weir_table *table,
                                     const struct weir__limiter_record *r, uint32_t version,
                                     uint64_t edition)
{
    const struct weir__limit_record *numbers = &r->past[version % WEIR__PAST];

    if (weir__algo_at(r->algorithm) == NULL)
        return NULL;
    struct weir_limit limit = from_numbers(r->algorithm, numbers);
    struct weir__era *era = calloc(1, sizeof(*era));
    if (era == NULL || weir__plan_make(&era->plan, &limit, NULL) != WEIR_OK ||
        (table->keys.narrow && era->plan.state_size <= WEIR__STATE_SMALL && !era->plan.packs)) {
        free(era);
        return NULL;
    }
    era->plan.real_ahead = &table->header->real_ahead;
    era->plan.clock = &table->clock;
    weir__log_chain(&era->plan, table->keys.slab.bytes, table->keys.slab.count * WEIR__CHUNK);
    era->since = numbers->since;
    era->version = version;
    era->edition = edition;
    return era;
}

static void free_eras(struct weir__era *era)
{
    for (struct weir__era *older; era != NULL; era = older) {
        older = era->older;
        free(era);
    }
}

/* The older ones go first, so an era is freed with all that are behind it.  Times twice: the
 * process may have been stopped for the first, with a thread in the midst of a call. */
static void forget_old_locked(struct weir_limiter *limiter, weir_time now)
{
    struct weir__era *era = limiter->era, *older;
    uint32_t present = era->version;

    for (; (older = era->older) != NULL; era = older) {
        if (present - older->version < WEIR__PAST || now - older->replaced <= LINGER)
            continue;
        if (older->forgotten) {
            era->older = NULL;
            free_eras(older);
            return;
        }
        older->forgotten = true;
        older->replaced = now;
    }
}

/* Compiles the versions that the record has and this process has not yet, oldest first.  What is
 * damaged is left out.  The last is the present limit, and nobody sees another one in its place. */
static void add_eras(struct weir_limiter *limiter, const struct weir__limiter_record *r,
                     uint64_t edition)
{
    const struct weir_clock *clock = &limiter->table->clock;
    uint32_t from = r->version < WEIR__PAST ? 0 : r->version - (WEIR__PAST - 1);
    struct weir__era *newest = limiter->era;
    weir_time now = newest ? clock->now(clock->context) : 0;

    if (newest && r->version - newest->version < WEIR__PAST)
        from = newest->version + 1;
    for (uint32_t version = from; version != r->version + 1; version++) {
        struct weir__era *era = compile_era(limiter->table, r, version, edition);
        if (era == NULL)
            continue;
        if (newest != NULL)
            newest->replaced = now;
        era->older = newest;
        newest = era;
    }
    if (newest == limiter->era)
        return;
    weir__publish(&limiter->era, newest);
    forget_old_locked(limiter, now);
}

static struct weir__era *find_era(const struct weir_limiter *limiter, uint32_t version)
{
    struct weir__era *era = limiter->era;

    while (era != NULL && era->version != version && !era->forgotten)
        era = era->older;
    return era != NULL && !era->forgotten ? era : NULL; /* nor any behind it */
}

/* If the record is damaged, or memory is out, the limit stays as it was: deciding does not fail. */
const struct weir__era *weir__limiter_renew(struct weir_limiter *limiter)
{
    struct weir_table *table = limiter->table;
    struct weir__limiter_record r;
    uint64_t edition = weir__record_read(table, &table->limiters, limiter->id, &r);

    pthread_mutex_lock(&table->mutex);
    if (edition > limiter->era->edition && r.salt == limiter->salt) {
        add_eras(limiter, &r, edition);
        __atomic_store_n(&limiter->era->edition, edition, __ATOMIC_RELEASE);
    }
    const struct weir__era *era = limiter->era;
    pthread_mutex_unlock(&table->mutex);
    return era;
}

const struct weir_plan *weir__limiter_plan(struct weir_limiter *limiter, uint32_t version)
{
    pthread_mutex_lock(&limiter->table->mutex);
    const struct weir__era *era = find_era(limiter, version);
    pthread_mutex_unlock(&limiter->table->mutex);
    return era == NULL ? NULL : &era->plan;
}

weir_time weir__limiter_until(struct weir_limiter *limiter, uint32_t version)
{
    weir_time until = INT64_MAX;

    pthread_mutex_lock(&limiter->table->mutex);
    const struct weir__era *era = limiter->era;
    for (; era != NULL && era->version != version; era = era->older)
        until = era->since;
    pthread_mutex_unlock(&limiter->table->mutex);
    return era == NULL ? INT64_MAX : until;
}

#define LISTED (WEIR__PAST + 1)

/* From the era of a version to the last.  If that version is forgotten, from the oldest that is
 * remembered; a version that is later counts as the last. */
static size_t count_eras(const struct weir__era *last, uint32_t version)
{
    bool later = (int32_t)(version - last->version) > 0;
    const struct weir__era *era = last;
    size_t n = 1;

    for (; !later && era->version != version && era->older && !era->older->forgotten; n++)
        era = era->older;
    return n;
}

/* These eras, the last one last.  Of many, those before the last are left out.  Returns how many
 * are listed. */
static size_t list_eras(const struct weir__era *last, uint32_t version,
                        const struct weir__era *out[LISTED])
{
    size_t n = count_eras(last, version), listed = n < LISTED ? n : LISTED;
    const struct weir__era *era = last;

    out[listed - 1] = last;
    for (size_t older = n - 1; older > 0; older--) {
        era = era->older;
        if (older < listed)
            out[older - 1] = era;
    }
    return listed;
}

/* What gives nothing away, and heals. */
static void spend(const struct weir_plan *plan, void *state, weir_time since)
{
    weir__zero_words(state, plan->state_size);
    plan->algo->give(plan, state, -plan->most, since);
}

bool weir__is_all_fresh(const struct weir_plan *plan, const void *state)
{
    return *(const weir_time *)state == 0 && weir_step_idle_at(plan, state) == 0;
}

/* Brings a state from the first era to the last; from NULL: one that was spent when the first
 * began.  False: there is no memory. */
static bool bring_over(const struct weir__era *const eras[], size_t n, const void *from, void *to)
{
    uint64_t small[2][2];
    unsigned char *copies[2] = { (unsigned char *)small[0], (unsigned char *)small[1] };
    size_t largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = eras[i]->plan.state_size > largest ? eras[i]->plan.state_size : largest;
    void *room = largest > sizeof(small[0]) ? malloc(2 * largest) : NULL;
    if (room != NULL) {
        copies[0] = room;
        copies[1] = copies[0] + largest;
    } else if (largest > sizeof(small[0])) {
        return false;
    }
    if (from != NULL)
        weir__copy_words(copies[0], from, eras[0]->plan.state_size);
    else
        spend(&eras[0]->plan, copies[0], eras[0]->since);
    bool fresh = from != NULL && eras[0]->plan.state_size > WEIR__STATE_SMALL &&
                 weir__is_all_fresh(&eras[0]->plan, copies[0]);
    for (size_t i = 1; i < n; i++)
        weir_step_change(&eras[i - 1]->plan, &eras[i]->plan, copies[(i - 1) % 2], copies[i % 2],
                         eras[i]->since);
    if (fresh)
        weir__zero_words(to, eras[n - 1]->plan.state_size);
    else
        weir__copy_words(to, copies[(n - 1) % 2], eras[n - 1]->plan.state_size);
    free(room);
    return true;
}

/* Nobody remembers the limit of a state.  At worst it was spent when the oldest limit began that is
 * remembered; or at the last change, if it is idle earlier that way. */
static void suppose_spent(const struct weir__era *const eras[], size_t n, void *to)
{
    const struct weir__era *last = eras[n - 1];

    spend(&last->plan, to, last->since);
    weir_time idle_at = weir_step_idle_at(&last->plan, to);
    if (eras[0]->plan.nodes == NULL && bring_over(eras, n, NULL, to) &&
        weir_step_idle_at(&last->plan, to) > idle_at)
        spend(&last->plan, to, last->since);
}

void weir__limiter_convert(struct weir_limiter *limiter, const struct weir__era *era,
                           uint32_t version, const void *from, void *to)
{
    const struct weir__era *eras[LISTED];

    pthread_mutex_lock(&limiter->table->mutex);
    size_t n = list_eras(era, version, eras);
    pthread_mutex_unlock(&limiter->table->mutex);
    if (from == NULL || eras[0]->version != version || !bring_over(eras, n, from, to))
        suppose_spent(eras, n, to);
}

/* --------------------------------------------------- this process's ---- */

static void free_limiter(struct weir_limiter *limiter)
{
    free_eras(limiter->era);
    free(limiter);
}

static struct weir_limiter *open_limiter(struct weir_table *table, uint32_t id,
                                         const struct weir__limiter_record *r, uint64_t edition)
{
    struct weir_limiter *limiter = calloc(1, sizeof(*limiter));

    if (limiter == NULL)
        return NULL;
    *limiter = (struct weir_limiter){ .table = table,
                                      .space = &table->keys,
                                      .place = weir__place_at(table, &table->limiters, id),
                                      .salt = r->salt,
                                      .guest = r->name[0] == ':' || r->name[0] == '=',
                                      .id = id };
    add_eras(limiter, r, edition);
    if (limiter->era == NULL) {
        free(limiter);
        return NULL;
    }
    limiter->kind = limiter->era->plan.state_size > WEIR__STATE_SMALL ? WEIR__LARGE
                    : table->keys.narrow                              ? WEIR__NARROW
                                                                      : WEIR__WIDE;
    if (limiter->kind == WEIR__LARGE && !limiter->guest)
        weir__set(&table->keys.slab.from_guests, table->keys.slab.count / 2);
    return limiter;
}

/* Its place went.  A thread that found it before may be looking at it still; one that begins now
 * finds another. */
static void retire_locked(struct weir_table *table, struct weir_limiter *limiter)
{
    limiter->retired = table->retired;
    weir__set(&table->retired, limiter);
}

static void free_retired(struct weir_table *table)
{
    struct weir_limiter *limiter = table->retired, *next;

    weir__set(&table->retired, NULL);
    for (; limiter != NULL; limiter = next) {
        next = limiter->retired;
        free_limiter(limiter);
    }
}

void weir__look_end(struct weir_table *table)
{
    if (__atomic_sub_fetch(&table->looking, 1, __ATOMIC_SEQ_CST) > 0 ||
        __builtin_expect(weir__get(&table->retired) == NULL, 1))
        return;
    pthread_mutex_lock(&table->mutex);
    if (__atomic_load_n(&table->looking, __ATOMIC_SEQ_CST) == 0)
        free_retired(table);
    pthread_mutex_unlock(&table->mutex);
}

/* Another record than the one that is known, if any. */
static struct weir_limiter *meet_locked(struct weir_table *table, uint32_t id)
{
    struct weir_limiter *known = table->met[id];
    struct weir__limiter_record r;
    uint64_t edition = weir__record_read(table, &table->limiters, id, &r);

    if (known != NULL && (edition == 0 || r.salt != known->salt)) {
        __atomic_store_n(&table->met[id], NULL, __ATOMIC_SEQ_CST);
        retire_locked(table, known);
        known = NULL;
    }
    if (known == NULL && edition != 0)
        __atomic_store_n(&table->met[id], open_limiter(table, id, &r, edition), __ATOMIC_SEQ_CST);
    return table->met[id];
}

struct weir_limiter *weir__limiter_by_id(struct weir_table *table, uint32_t id)
{
    if (id >= table->limiters.most)
        return NULL;
    struct weir_limiter *limiter = __atomic_load_n(&table->met[id], __ATOMIC_ACQUIRE);
    if (limiter != NULL && weir__acquire(&limiter->place->edition) ==
                               weir__acquire(&weir__acquire(&limiter->era)->edition))
        return limiter;
    pthread_mutex_lock(&table->mutex);
    limiter = meet_locked(table, id);
    pthread_mutex_unlock(&table->mutex);
    return limiter;
}

void weir__limiters_free(struct weir_table *table)
{
    for (uint32_t id = 0; table->met != NULL && id < table->limiters.most; id++)
        if (table->met[id] != NULL)
            free_limiter(table->met[id]);
    free_retired(table);
}

struct weir_limiter *weir__limiter_by_name(struct weir_table *table, const char *name)
{
    return weir__limiter_by_id(table, weir__name_find(table, &table->limiters, name));
}

/* --------------------------------------------------------- creation ---- */

/* Of a large state there are two while it changes; of a long log only a node. */
static bool has_room(const struct weir_table *table, const struct weir_plan *plan)
{
    const struct weir__slab *slab = &table->keys.slab;
    struct weir_plan kept = *plan;
    uint64_t usable = (slab->count - slab->kept) * WEIR__CHUNK;

    weir__log_chain(&kept, slab->bytes, slab->count * WEIR__CHUNK);
    return plan->state_size <= WEIR__STATE_SMALL ||
           (kept.nodes != NULL ? plan->state_size <= slab->count * WEIR__CHUNK
                               : 2 * weir__block_round(plan->state_size) <= usable);
}

int weir__table_fits(const struct weir_table *table, const struct weir_plan *plan,
                     struct weir_error *error)
{
    if (!has_room(table, plan))
        return weir__fail(
            error, WEIR_NO_MEMORY,
            "a key of this limit needs %zu bytes, and as many again while it changes; "
            "the table's slab has %" PRIu64 " in all; make the table anew with a larger slab",
            plan->state_size, table->header->slab_bytes);
    if (!table->keys.narrow || plan->packs || plan->state_size > WEIR__STATE_SMALL)
        return WEIR_OK;
    return weir__fail(error, WEIR_INVALID,
                      "this limit does not fit a narrow table: that takes gcra, token-bucket or "
                      "leaky-bucket without a queue, at a rate whose "
                      "period/count is a whole number of ns; make the table wide");
}

static int write_record(const struct weir_table *table, struct weir__limiter_record *r,
                        const char *name, const struct weir_plan *plan, struct weir_error *error)
{
    *r = (struct weir__limiter_record){ .algorithm =
                                            (uint32_t)weir__algo_index(plan->limit.algorithm) };
    r->past[0] = to_numbers(&plan->limit, 0);
    memcpy(r->name, name, strlen(name));
    r->salt = table->salt_next;
    if (r->salt == 0 && weir__random_fill(&r->salt, sizeof(r->salt)) != 0)
        return weir__fail_errno(error, "cannot get random bytes for", name);
    return WEIR_OK;
}

/* Finds or adds it, and uses it. */
static int join_or_add(struct weir_limiter **out, struct weir_table *table,
                       const struct weir__limiter_record *r, struct weir_error *error)
{
    for (int tries = 0; tries < WEIR__JOIN_TRIES; tries++) {
        uint32_t id;
        int code = weir__name_add(table, &table->limiters, r, NULL, &id, error);
        if (code)
            return code;
        weir__look_begin(table);
        struct weir_limiter *limiter = weir__limiter_by_id(table, id);
        bool used = limiter != NULL && weir__place_use_named(table, &table->limiters, id,
                                                             limiter->salt, r->name, false);
        weir__look_end(table);
        if (used) {
            *out = limiter;
            return WEIR_OK;
        }
        if (limiter == NULL && weir__name_find(table, &table->limiters, r->name) == id)
            break;
    }
    return weir__fail(error, WEIR_CORRUPT, "the record of limiter '%s' makes no sense", r->name);
}

int weir__limiter_join(struct weir_limiter **out, struct weir_table *table, const char *name,
                       const struct weir_plan *plan, struct weir_error *error)
{
    struct weir__limiter_record r;
    int code;

    if ((code = weir__name_check(&table->limiters, name, error)) ||
        (code = weir__table_fits(table, plan, error)) ||
        (code = write_record(table, &r, name, plan, error)))
        return code;
    return join_or_add(out, table, &r, error);
}

int weir_limiter_create(struct weir_limiter **out, struct weir_table *table, const char *name,
                        const struct weir_limit *limit, struct weir_error *error)
{
    struct weir_limiter *limiter = NULL;
    struct weir_plan plan;
    int code = weir__plan_make(&plan, limit, error);

    if (code || (code = weir__limiter_join(&limiter, table, name, &plan, error)))
        return code;
    const struct weir_plan *present = &weir__limiter_era(limiter)->plan;
    if (!weir__limit_equal(&present->limit, &plan.limit)) {
        char text[192];
        struct weir_limit named = weir__plan_limit_named(present);
        weir_limit_print(text, sizeof(text), &named);
        weir_limiter_release(limiter);
        return weir__fail(error, WEIR_EXISTS,
                          "limiter '%s' is there already, as %s; weir_limiter_change changes it",
                          name, text);
    }
    *out = limiter;
    return WEIR_OK;
}

static struct weir_limiter *find(struct weir_table *table, const char *name, bool found)
{
    struct weir_limiter *limiter;

    weir__look_begin(table);
    do {
        limiter = weir__limiter_by_name(table, name);
    } while (limiter != NULL && !weir__place_use_named(table, &table->limiters, limiter->id,
                                                       limiter->salt, name, found));
    weir__look_end(table);
    return limiter;
}

struct weir_limiter *weir_limiter_find(struct weir_table *table, const char *name)
{
    return find(table, name, true);
}

struct weir_limiter *weir__limiter_use(struct weir_table *table, const char *name)
{
    return find(table, name, false);
}

void weir__limiter_use_again(struct weir_limiter *limiter)
{
    (void)weir__place_use(limiter->table, &limiter->table->limiters, limiter->id, limiter->salt,
                          false);
}

void weir_limiter_release(struct weir_limiter *limiter)
{
    weir__place_leave(limiter->table, &limiter->table->limiters, limiter->id, false);
}

void weir_limiter_drop(struct weir_limiter *limiter)
{
    weir__place_leave(limiter->table, &limiter->table->limiters, limiter->id, true);
}

/* ----------------------------------------------------------- change ---- */

/* A narrow slot has 8 bits for the version of a large state: in half that many changes no state is
 * left behind, or it would pass for one of a limit that has the same bits. */
static bool is_renewed_at(const struct weir_limiter *limiter, uint32_t version)
{
    return limiter->space->narrow && limiter->kind == WEIR__LARGE && version % 128 == 0;
}

/* One try.  False: another process has changed it meanwhile, or see `full`. */
static bool change_once(struct weir_limiter *limiter, const struct weir_plan *plan, weir_time now,
                        bool *full)
{
    struct weir_table *table = limiter->table;
    struct weir__limiter_record r;
    uint64_t edition = weir__record_read(table, &table->limiters, limiter->id, &r);

    if (edition == 0 || r.salt != limiter->salt || weir__algo_at(r.algorithm) == NULL)
        return true; /* damaged: the limit stays */
    struct weir_limit present = from_numbers(r.algorithm, &r.past[r.version % WEIR__PAST]);
    struct weir_plan there;
    if (weir__plan_make(&there, &present, NULL) == WEIR_OK &&
        weir__limit_equal(&there.limit, &plan->limit))
        return true;
    if (is_renewed_at(limiter, ++r.version))
        weir__parts_renew(limiter, now);
    r.past[r.version % WEIR__PAST] = to_numbers(&plan->limit, now);
    return weir__record_change(table, &table->limiters, limiter->id, edition, &r, full);
}

int weir_limiter_change(struct weir_limiter *limiter, const struct weir_limit *limit, weir_time now,
                        struct weir_error *error)
{
    struct weir_limit wanted = *limit;
    const char *algorithm = weir__limiter_era(limiter)->plan.limit.algorithm;
    struct weir_plan plan;
    bool full = false;
    int code;

    wanted.algorithm = limit->algorithm ? limit->algorithm : algorithm;
    if (strcmp(wanted.algorithm, algorithm) != 0)
        return weir__fail(error, WEIR_INVALID,
                          "the algorithm cannot change from %s to %s; give that limit another name",
                          algorithm, wanted.algorithm);
    if ((code = weir__plan_make(&plan, &wanted, error)) ||
        (code = weir__table_fits(limiter->table, &plan, error)))
        return code;
    while (!full && !change_once(limiter, &plan, now < 0 ? 0 : now, &full))
        ;
    if (full)
        return weir__fail(error, WEIR_NO_MEMORY, "there is no room for the changed limit");
    weir__limiter_era(limiter);
    return WEIR_OK;
}

/* ----------------------------------------------------------- counts ---- */

struct weir__tally *weir__limiter_counts(struct weir_limiter *limiter)
{
    struct weir_table *table = limiter->table;
    struct weir__limiter_record *r = weir__record_here(table, &table->limiters, limiter->id);

    return r != NULL && r->salt == limiter->salt ? &r->counts : NULL;
}

bool weir__limiter_read_counts(struct weir_limiter *limiter, struct weir__tally *out)
{
    struct weir_table *table = limiter->table;
    struct weir__limiter_record r;

    if (weir__record_read(table, &table->limiters, limiter->id, &r) == 0 || r.salt != limiter->salt)
        return false;
    *out = r.counts;
    return true;
}

/* ------------------------------------------------------------- list ---- */

static void describe(struct weir_limiter *limiter, struct weir_limiter_info *out)
{
    const struct weir__era *era = weir__limiter_era(limiter);
    struct weir_limit named = weir__plan_limit_named(&era->plan);

    weir_limit_print(out->limit, sizeof(out->limit), &named);
    out->changes = (int64_t)era->version;
}

bool weir_limiter_next(const struct weir_table *const_table, int64_t *at,
                       struct weir_limiter_info *out)
{
    struct weir_table *table = (struct weir_table *)const_table;
    struct weir__limiter_record r;
    uint32_t id, most = table->limiters.most;

    if (*at < 0 || *at >= most)
        return false;
    for (id = (uint32_t)*at; id < most && !weir__record_read(table, &table->limiters, id, &r);)
        id++;
    *at = (int64_t)id + 1;
    if (id == most)
        return false;
    *out = (struct weir_limiter_info){ .limit = "damaged" };
    memcpy(out->name, r.name, sizeof(out->name) - 1);
    weir__text_clean(out->name);
    weir__look_begin(table);
    struct weir_limiter *limiter = weir__limiter_by_id(table, id);
    if (limiter != NULL)
        describe(limiter, out);
    weir__look_end(table);
    return true;
}
