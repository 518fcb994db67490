/* guard.c -- making a guard in a table, joining it, changing it.
 *
 * The terms are in the registry; each process compiles them to its own plan, again when their
 * edition has changed, or when another guard has come into the place.  Threads may still be reading
 * the plan before that, and nobody asks them: it stays for much longer than a call can take, by the
 * table's clock.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard/guard.h"
#include "base/utf8.h"

#define LINGER (600 * WEIR_SECOND) /* of a plan that was replaced */
#define LOOK   (60 * WEIR_SECOND)  /* between looks for plans that have lingered */

static const struct weir_guard_options defaults;

static int no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for a guard");
}

/* ---------------------------------------------------- in this process ---- */

static void free_plans(struct weir__guard_plan *plan)
{
    for (struct weir__guard_plan *older; plan != NULL; plan = older) {
        older = plan->older;
        free(plan);
    }
}

static void free_guard(struct weir_guard *guard)
{
    if (guard != NULL)
        free_plans(guard->plan);
    free(guard);
}

static void free_guarding(struct weir_table *table, struct weir__guarding *g)
{
    for (uint32_t i = 0; g->guards != NULL && i < table->guards.most; i++)
        free_guard(g->guards[i]);
    weir__system_destroy(g->system);
    free(g->guards);
    free(g);
}

static void end_guarding(struct weir_table *table)
{
    free_guarding(table, table->guarding);
}

/* Permits that nobody gives back are taken back here: nobody else looks at a guard without
 * users. */
static bool is_busy(struct weir_table *table, uint32_t id, weir_time now)
{
    struct weir_guard *guard = weir__guard_at(table, id);

    if (guard == NULL)
        return false;
    weir__guard_sweep(guard, weir__guard_time(now));
    return weir__get(&guard->record->in_flight) > 0;
}

static struct weir__guarding *make_guarding(struct weir_table *table)
{
    struct weir__guarding *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    g->guards = calloc(table->guards.most, sizeof(*g->guards));
    if (g->guards == NULL) {
        free_guarding(table, g);
        return NULL;
    }
    table->guarding_end = end_guarding;
    table->guarding = g;
    weir__publish(&table->guard_is_busy, is_busy); /* a thread that tends reads it any time */
    return g;
}

struct weir__guarding *weir__guarding_of(struct weir_table *table)
{
    pthread_mutex_lock(&table->mutex);
    struct weir__guarding *g = table->guarding ? table->guarding : make_guarding(table);
    pthread_mutex_unlock(&table->mutex);
    return g;
}

/* --------------------------------------------------------------- plans ---- */

static int compile(struct weir__guard_plan **out, const struct weir_guard *guard,
                   const struct weir__guard_named *named, uint64_t edition,
                   struct weir_error *error)
{
    struct weir_guard_options options;
    struct weir__guard_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL)
        return no_memory(error);
    weir__guard_terms_read(&named->terms, &options);
    if (weir__guard_plan_make(plan, &options, named->salt, NULL) != WEIR_OK ||
        plan->seat_mask >= weir__get(&guard->record->seats)) {
        free(plan);
        return weir__fail(error, WEIR_CORRUPT, "the options of guard '%.63s' are damaged",
                          named->name);
    }
    plan->edition = edition;
    plan->salt = named->salt;
    memcpy(plan->name, named->name, sizeof(plan->name) - 1);
    weir__text_clean(plan->name);
    plan->breaker.clock = &guard->table->clock;
    *out = plan;
    return WEIR_OK;
}

/* Twice: the first time the process may have been stopped, with a thread in the midst of a call. */
static bool has_lingered_locked(struct weir__guard_plan *plan, weir_time now)
{
    bool late = plan->late;

    if (now - plan->replaced <= LINGER)
        return false;
    plan->late = true;
    plan->replaced = now;
    return late;
}

/* There may be many of them: the look is not at each change. */
static void forget_old_locked(struct weir_guard *guard, weir_time now)
{
    struct weir__guard_plan *plan = guard->plan;

    if (now >= guard->looked && now - guard->looked < LOOK)
        return;
    guard->looked = now;
    while (plan->older != NULL && !has_lingered_locked(plan->older, now))
        plan = plan->older;
    free_plans(plan->older);
    plan->older = NULL;
}

/* By a plan of the record as it is now, unless another thread has done so. */
static int replace_locked(struct weir_guard *guard, const struct weir__guard_named *named,
                          uint64_t edition, struct weir_error *error)
{
    const struct weir_clock *clock = &guard->table->clock;
    struct weir__guard_plan *old = guard->plan, *fresh = NULL;

    if (edition <= old->edition)
        return WEIR_OK;
    int code = compile(&fresh, guard, named, edition, error);
    if (code)
        return code;
    fresh->older = old;
    old->replaced = clock->now(clock->context);
    weir__publish(&guard->plan, fresh);
    forget_old_locked(guard, old->replaced);
    return WEIR_OK;
}

/* The old plan stays if there is no memory, or while the terms are damaged, or if the guard has
 * gone. */
struct weir__guard_plan *weir__guard_renew(struct weir_guard *guard)
{
    struct weir_table *table = guard->table;
    struct weir__guard_named named;

    if (weir__acquire(&guard->place->edition) == weir__get(&guard->bad_edition))
        return weir__acquire(&guard->plan);
    uint64_t edition = weir__record_read(table, &table->guards, guard->id, &named);
    pthread_mutex_lock(&table->mutex);
    if (edition != 0 && replace_locked(guard, &named, edition, NULL) == WEIR_CORRUPT)
        weir__set(&guard->bad_edition, edition);
    struct weir__guard_plan *plan = guard->plan;
    pthread_mutex_unlock(&table->mutex);
    return plan;
}

/* ---------------------------------------------------------------- making ---- */

/* Disk space and seats for what the terms need, before anybody sees them. */
static int prepare(struct weir_table *table, uint32_t id, const void *record,
                   struct weir_error *error)
{
    const struct weir__guard_named *named = record;
    struct weir__guard_record *r = weir__guard_record_at(table, id);
    struct weir_guard_options options;
    struct weir__guard_plan plan;

    weir__guard_terms_read(&named->terms, &options);
    int code = weir__guard_plan_make(&plan, &options, named->salt, error);
    if (code)
        return code;
    uint64_t seats = plan.seat_mask + 1,
             at = (uint64_t)((unsigned char *)r - (unsigned char *)table->header);
    code = weir__table_commit(table, at, WEIR__SEATS_OFFSET + seats * sizeof(struct weir__seat),
                              error);
    if (code) /* not even read without its space: on a full tmpfs that is a signal */
        return code;
    if (plan.max_per_key > 0)
        weir__publish(&r->keyed, 1);
    for (uint64_t had = weir__get(&r->seats); had < seats; had = weir__get(&r->seats))
        (void)weir__swap(&r->seats, had, seats);
    for (int64_t had = weir__get(&r->lease); had < plan.lease;)
        (void)__atomic_compare_exchange_n(&r->lease, &had, plan.lease, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED);
    return WEIR_OK;
}

/* This process's guard for that place, made on first use. */
static int meet_locked(struct weir_table *table, uint32_t id, const struct weir__guard_named *named,
                       uint64_t edition, struct weir_error *error)
{
    struct weir__guarding *g = table->guarding;
    struct weir_guard *guard = calloc(1, sizeof(*guard));

    if (guard == NULL)
        return no_memory(error);
    guard->table = table;
    guard->id = id;
    guard->place = weir__place_at(table, &table->guards, id);
    guard->record = weir__guard_record_at(table, id);
    guard->held = weir__held_of(table, id);
    int code = compile(&guard->plan, guard, named, edition, error);
    if (code) {
        free(guard);
        return code;
    }
    weir__publish(&g->guards[id], guard);
    return WEIR_OK;
}

/* The guard that is in the place now, and its salt; *out NULL: none is. */
static int find_guard(struct weir_guard **out, uint64_t *salt, struct weir_table *table,
                      uint32_t id, struct weir_error *error)
{
    struct weir__guarding *g = weir__guarding_of(table);
    struct weir_guard *guard = g && id < table->guards.most ? weir__acquire(&g->guards[id]) : NULL;
    const struct weir__guard_plan *plan = guard != NULL ? weir__acquire(&guard->plan) : NULL;
    struct weir__guard_named named;

    *out = NULL;
    if (g == NULL)
        return no_memory(error);
    if (plan != NULL && weir__acquire(&guard->place->edition) == plan->edition) {
        *out = guard;
        *salt = plan->salt;
        return WEIR_OK;
    }
    uint64_t edition = weir__record_read(table, &table->guards, id, &named);
    if (edition == 0)
        return WEIR_OK;
    pthread_mutex_lock(&table->mutex);
    guard = g->guards[id];
    int code = guard == NULL                     ? meet_locked(table, id, &named, edition, error)
               : guard->plan->salt != named.salt ? replace_locked(guard, &named, edition, error)
                                                 : WEIR_OK;
    if (code == WEIR_OK) {
        *out = g->guards[id];
        *salt = (*out)->plan->salt;
    }
    pthread_mutex_unlock(&table->mutex);
    return code;
}

/* It is there, but its options are damaged: they are replaced. */
static int mend_guard(struct weir_table *table, uint32_t id, struct weir__guard_named *fresh,
                      struct weir_error *error)
{
    struct weir__guard_named damaged;
    uint64_t edition = weir__record_read(table, &table->guards, id, &damaged);
    bool full = false;

    fresh->salt = edition ? damaged.salt : fresh->salt;
    int code = prepare(table, id, fresh, error);
    if (code == WEIR_OK)
        (void)weir__record_change(table, &table->guards, id, edition, fresh, &full);
    return full ? no_memory(error) : code;
}

static bool use_as(struct weir_guard *guard, uint64_t salt, const char *name, bool found)
{
    struct weir_table *table = guard->table;

    return weir__place_use_named(table, &table->guards, guard->id, salt, name, found);
}

static int join_or_add(struct weir_guard **out, struct weir_table *table,
                       struct weir__guard_named *named, struct weir_error *error)
{
    for (int tries = 0; tries < WEIR__JOIN_TRIES; tries++) {
        struct weir_guard *guard = NULL;
        uint64_t salt;
        uint32_t id;
        int code = weir__name_add(table, &table->guards, named, prepare, &id, error);
        if (code == WEIR_OK)
            code = find_guard(&guard, &salt, table, id, error);
        if (code == WEIR_CORRUPT) {
            code = mend_guard(table, id, named, error);
        } else if (code == WEIR_OK && guard != NULL && use_as(guard, salt, named->name, false)) {
            *out = guard;
            return WEIR_OK;
        }
        if (code)
            return code;
    }
    return weir__fail(error, WEIR_CORRUPT, "the record of guard '%.63s' is damaged", named->name);
}

int weir__guard_join(struct weir_guard **out, struct weir_table *table, const char *name,
                     const struct weir_guard_options *options, const char **differs,
                     struct weir_error *error)
{
    struct weir__guard_named named = { .salt = 0 };
    struct weir__guard_plan plan;
    int code = weir__name_check(&table->guards, name, error);

    if (code)
        return code;
    if (weir__random_fill(&named.salt, sizeof(named.salt)) != 0)
        return weir__fail_errno(error, "cannot get random bytes for", "a guard");
    if ((code = weir__guard_plan_make(&plan, options ? options : &defaults, named.salt, error)))
        return code;
    memcpy(named.name, name, strlen(name));
    weir__guard_terms_write(&named.terms, &plan.options);
    code = join_or_add(out, table, &named, error);
    if (code == WEIR_OK)
        *differs = weir__guard_difference(&weir__guard_plan_of(*out)->options, &plan.options);
    return code;
}

int weir_guard_create(struct weir_guard **out, struct weir_table *table, const char *name,
                      const struct weir_guard_options *options, struct weir_error *error)
{
    struct weir_guard *guard = NULL;
    const char *differs;
    int code = weir__guard_join(&guard, table, name, options, &differs, error);

    if (code)
        return code;
    if (differs != NULL) {
        weir_guard_release(guard);
        return weir__fail(error, WEIR_EXISTS,
                          "there is a guard '%.63s' with other options (%s); weir_guard_change "
                          "changes it",
                          name, differs);
    }
    *out = guard;
    return WEIR_OK;
}

void weir_guard_release(struct weir_guard *guard)
{
    weir__place_leave(guard->table, &guard->table->guards, guard->id, false);
}

void weir_guard_drop(struct weir_guard *guard)
{
    weir__place_leave(guard->table, &guard->table->guards, guard->id, true);
}

int weir__guard_prepare(struct weir_guard *guard, const struct weir_guard_options *options,
                        struct weir_error *error)
{
    uint64_t salt = weir__guard_plan_of(guard)->salt;
    struct weir__guard_named named = { .salt = salt };
    struct weir__guard_plan plan;
    int code = weir__guard_plan_make(&plan, options, salt, error);

    if (code)
        return code;
    weir__guard_terms_write(&named.terms, &plan.options);
    return prepare(guard->table, guard->id, &named, error);
}

int weir_guard_change(struct weir_guard *guard, const struct weir_guard_options *options,
                      struct weir_error *error)
{
    struct weir_table *table = guard->table;
    uint64_t salt = weir__guard_plan_of(guard)->salt;
    struct weir__guard_plan plan;
    int code = weir__guard_plan_make(&plan, options ? options : &defaults, salt, error);
    bool done = false, full = false;

    while (code == WEIR_OK && !done && !full) {
        struct weir__guard_named named;
        uint64_t edition = weir__record_read(table, &table->guards, guard->id, &named);
        weir__guard_terms_write(&named.terms, &plan.options);
        done = edition == 0 || named.salt != salt; /* it has gone, or is damaged */
        code = done ? WEIR_OK : prepare(table, guard->id, &named, error);
        if (!done && code == WEIR_OK && plan.lease != weir__guard_plan_of(guard)->lease)
            weir__set(&guard->record->lease_until, 0); /* the leases of before begin to end now */
        if (!done && code == WEIR_OK)
            done = weir__record_change(table, &table->guards, guard->id, edition, &named, &full);
    }
    if (full)
        return no_memory(error);
    if (code == WEIR_OK)
        weir__guard_plan_of(guard);
    return code;
}

struct weir_guard *weir__guard_at(struct weir_table *table, uint32_t id)
{
    struct weir_guard *guard = NULL;
    uint64_t salt;

    (void)find_guard(&guard, &salt, table, id, NULL);
    return guard;
}

bool weir_guard_next(struct weir_table *table, int64_t *at, struct weir_guard **out)
{
    struct weir_guard *guard = NULL;

    while (guard == NULL && *at >= 0 && *at < (int64_t)table->guards.most)
        guard = weir__guard_at(table, (uint32_t)(*at)++);
    if (guard != NULL)
        *out = guard;
    return guard != NULL;
}

struct weir_guard *weir__guard_named(struct weir_table *table, const char *name)
{
    return weir__guard_at(table, weir__name_find(table, &table->guards, name));
}

struct weir_guard *weir_guard_find(struct weir_table *table, const char *name)
{
    struct weir_guard *guard;
    uint64_t salt;

    do {
        (void)find_guard(&guard, &salt, table, weir__name_find(table, &table->guards, name), NULL);
    } while (guard != NULL && !use_as(guard, salt, name, true));
    return guard;
}

/* --------------------------------------------------------------- by hand ---- */

void weir_guard_force(struct weir_guard *guard, enum weir_force force, weir_time now)
{
    struct weir__breaker_view view;

    now = weir__guard_time(now);
    weir__breaker_look(&weir__guard_plan_of(guard)->breaker, &guard->record->breaker, now, &view);
    if (view.force == force)
        return;
    weir__breaker_force(&guard->record->breaker, force, now);
    weir__guard_note(guard->record, WEIR_GUARD_EVENT_FORCE, (int32_t)view.force, (int32_t)force,
                     now);
}
