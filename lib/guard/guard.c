/* guard.c -- making a guard in a table, joining it, changing it.
 *
 * The terms are in the record; each process compiles them to its own plan, again when their version
 * has changed.  Plans are kept until the table is left, because threads may be reading them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard/guard.h"
#include "base/utf8.h"

static const struct weir_guard_options defaults;

static int no_memory(struct weir_error *error)
{
    return weir__fail(error, WEIR_NO_MEMORY, "no memory for a guard");
}

/* ---------------------------------------------------- in this process ---- */

static void free_guard(struct weir_guard *guard)
{
    struct weir__guard_plan *plan = guard ? guard->plan : NULL;

    while (plan != NULL) {
        struct weir__guard_plan *older = plan->older;
        free(plan);
        plan = older;
    }
    free(guard);
}

static void free_guarding(struct weir_table *table, struct weir__guarding *g)
{
    for (uint32_t i = 0; g->guards != NULL && i < table->guards_max; i++)
        free_guard(g->guards[i]);
    weir__system_destroy(g->system);
    free(g->guards);
    free(g);
}

static void end_guarding(struct weir_table *table)
{
    free_guarding(table, table->guarding);
}

static struct weir__guarding *make_guarding(struct weir_table *table)
{
    struct weir__guarding *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    g->guards = calloc(table->guards_max, sizeof(*g->guards));
    if (g->guards == NULL) {
        free_guarding(table, g);
        return NULL;
    }
    table->guarding_end = end_guarding;
    table->guarding = g;
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

/* A consistent copy of the terms; 0: they are being written, or damaged. */
static uint32_t read_terms(const struct weir__guard_record *r, struct weir_guard_options *out)
{
    struct weir__guard_terms terms;
    uint32_t version = weir__acquire(&r->version);
    const uint64_t *from = (const uint64_t *)(const void *)&r->terms;
    uint64_t *to = (uint64_t *)(void *)&terms;

    for (size_t i = 0; i < sizeof(terms) / 8; i++)
        to[i] = weir__acquire(&from[i]); /* before the version is read again */
    if (version % 2 != 0 || weir__get(&r->version) != version)
        return 0;
    weir__guard_terms_read(&terms, out);
    return version;
}

_Static_assert(sizeof(struct weir__guard_terms) % 8 == 0, "terms are read word by word");

/* At the registry's desk. */
static void write_terms_locked(struct weir__guard_record *r, const struct weir__guard_plan *plan)
{
    struct weir__guard_terms terms;
    uint32_t version = weir__get(&r->version) | 1;
    uint64_t *to = (uint64_t *)(void *)&r->terms;
    const uint64_t *from = (const uint64_t *)(const void *)&terms;

    weir__guard_terms_write(&terms, &plan->options);
    weir__set(&r->version, version);
    for (size_t i = 0; i < sizeof(terms) / 8; i++)
        weir__publish(&to[i], from[i]); /* not before the version is odd */
    if (plan->seat_mask + 1 > r->seats)
        weir__set(&r->seats, plan->seat_mask + 1);
    weir__publish(&r->version, version + 1 ? version + 1 : 2);
}

static int compile(struct weir__guard_plan **out, struct weir__guard_record *r,
                   struct weir_error *error)
{
    struct weir_guard_options options;
    struct weir__guard_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL)
        return no_memory(error);
    uint32_t version = read_terms(r, &options);
    if (version == 0 || weir__guard_plan_make(plan, &options, r->salt, NULL) != WEIR_OK ||
        plan->seat_mask >= r->seats) {
        free(plan);
        return weir__fail(error, WEIR_CORRUPT, "the options of guard '%.63s' are damaged", r->name);
    }
    plan->version = version;
    *out = plan;
    return WEIR_OK;
}

/* The old plan stays if there is no memory, or while the terms are being written or are damaged. */
struct weir__guard_plan *weir__guard_renew(struct weir_guard *guard)
{
    uint32_t version = weir__acquire(&guard->record->version);

    if (version % 2 != 0 || version == weir__get(&guard->bad_version))
        return weir__acquire(&guard->plan);
    pthread_mutex_lock(&guard->table->mutex);
    struct weir__guard_plan *plan = guard->plan, *fresh;
    if (weir__acquire(&guard->record->version) != plan->version) {
        int code = compile(&fresh, guard->record, NULL);
        if (code == WEIR_CORRUPT && weir__acquire(&guard->record->version) == version)
            weir__set(&guard->bad_version, version);
        if (code == WEIR_OK) {
            fresh->older = plan;
            plan = fresh;
            weir__publish(&guard->plan, plan);
        }
    }
    pthread_mutex_unlock(&guard->table->mutex);
    return plan;
}

/* ---------------------------------------------------------------- making ---- */

static int check_name(const char *name, struct weir_error *error)
{
    size_t len = strnlen(name, WEIR__NAME_SIZE);

    if (len == 0 || len >= WEIR__NAME_SIZE)
        return weir__fail(error, WEIR_INVALID, "a guard's name has 1 to %d bytes",
                          WEIR__NAME_SIZE - 1);
    return WEIR_OK;
}

uint32_t weir__guards_in(const struct weir_table *table)
{
    uint32_t n = weir__acquire(&table->header->guards);

    return n < table->guards_max ? n : table->guards_max;
}

static uint32_t find_place(const struct weir_table *table, const char *name)
{
    uint32_t n = weir__guards_in(table), i = 0;

    while (i < n && strncmp(weir__guard_record_at(table, i)->name, name, WEIR__NAME_SIZE) != 0)
        i++;
    return i;
}

/* Disk space for the part of a record that this plan uses. */
static int commit(struct weir_table *table, uint32_t id, const struct weir__guard_plan *plan,
                  struct weir_error *error)
{
    uint64_t at =
        (uint64_t)(table->guards - (unsigned char *)table->header) + id * WEIR__GUARD_BYTES;

    return weir__table_commit(table, at,
                              WEIR__SEATS_OFFSET + (plan->seat_mask + 1) * sizeof(uint64_t), error);
}

static int make_locked(struct weir_table *table, uint32_t id, const char *name, uint64_t salt,
                       const struct weir__guard_plan *plan, struct weir_error *error)
{
    struct weir__guard_record *r = weir__guard_record_at(table, id);

    if (id >= table->guards_max)
        return weir__fail(error, WEIR_NO_MEMORY,
                          "the table has its %u guards already; make one for more",
                          table->guards_max);
    int code = commit(table, id, plan, error);
    if (code)
        return code;
    memset(r, 0, sizeof(*r)); /* a process may have died while making it */
    strncpy(r->name, name, sizeof(r->name) - 1);
    r->salt = salt;
    write_terms_locked(r, plan);
    weir__publish(&table->header->guards, id + 1);
    return WEIR_OK;
}

/* It exists: with the same options, or with damaged ones, which are replaced. */
static int join_locked(struct weir_table *table, uint32_t id, const struct weir__guard_plan *plan,
                       struct weir_error *error)
{
    struct weir__guard_record *r = weir__guard_record_at(table, id);
    struct weir_guard_options present;

    if (read_terms(r, &present) == 0) {
        int code = commit(table, id, plan, error);
        if (code == WEIR_OK)
            write_terms_locked(r, plan);
        return code;
    }
    const char *other = weir__guard_difference(&present, &plan->options);
    return other == NULL ? WEIR_OK
                         : weir__fail(error, WEIR_EXISTS,
                                      "there is a guard '%.63s' with other options (%s); "
                                      "weir_guard_change changes it",
                                      r->name, other);
}

/* This process's guard for that place; made on first use.  With the table's mutex. */
static int meet(struct weir_guard **out, struct weir_table *table, uint32_t id,
                struct weir_error *error)
{
    struct weir__guarding *g = table->guarding;
    struct weir_guard *guard = g->guards[id];

    if (guard == NULL) {
        if ((guard = calloc(1, sizeof(*guard))) == NULL)
            return no_memory(error);
        guard->table = table;
        guard->id = id;
        guard->record = weir__guard_record_at(table, id);
        memcpy(guard->name, guard->record->name, sizeof(guard->name) - 1);
        weir__text_clean(guard->name);
        guard->seats = (uint64_t *)(void *)((unsigned char *)guard->record + WEIR__SEATS_OFFSET);
        int code = compile(&guard->plan, guard->record, error);
        if (code) {
            free(guard);
            return code;
        }
        weir__publish(&g->guards[id], guard);
    }
    *out = guard;
    return WEIR_OK;
}

/* At the registry's desk: nobody is changing its terms. */
static int meet_locked(struct weir_guard **out, struct weir_table *table, uint32_t id,
                       struct weir_error *error)
{
    pthread_mutex_lock(&table->mutex);
    int code = meet(out, table, id, error);
    pthread_mutex_unlock(&table->mutex);
    return code;
}

int weir_guard_create(struct weir_guard **out, struct weir_table *table, const char *name,
                      const struct weir_guard_options *options, struct weir_error *error)
{
    struct weir__guard_plan plan;
    uint64_t salt;
    int code = check_name(name, error);

    if (code)
        return code;
    if (weir__random_fill(&salt, sizeof(salt)) != 0)
        return weir__fail_errno(error, "cannot get random bytes for", "a guard");
    if ((code = weir__guard_plan_make(&plan, options ? options : &defaults, salt, error)))
        return code;
    if (weir__guarding_of(table) == NULL)
        return no_memory(error);
    weir__registry_lock(table);
    uint32_t id = find_place(table, name);
    code = id < weir__guards_in(table) ? join_locked(table, id, &plan, error)
                                       : make_locked(table, id, name, salt, &plan, error);
    if (code == WEIR_OK)
        code = meet_locked(out, table, id, error);
    weir__registry_unlock(table);
    return code;
}

int weir_guard_change(struct weir_guard *guard, const struct weir_guard_options *options,
                      struct weir_error *error)
{
    struct weir__guard_plan plan;
    int code =
        weir__guard_plan_make(&plan, options ? options : &defaults, guard->record->salt, error);

    if (code)
        return code;
    weir__registry_lock(guard->table);
    if ((code = commit(guard->table, guard->id, &plan, error)) == WEIR_OK)
        write_terms_locked(guard->record, &plan);
    weir__registry_unlock(guard->table);
    if (code == WEIR_OK)
        weir__guard_plan_of(guard);
    return code;
}

/* Guards that this process has used before are found without the desk. */
struct weir_guard *weir__guard_at(struct weir_table *table, uint32_t id)
{
    struct weir__guarding *g = id < weir__guards_in(table) ? weir__guarding_of(table) : NULL;
    struct weir_guard *guard = g ? weir__acquire(&g->guards[id]) : NULL;

    if (guard != NULL || g == NULL)
        return guard;
    weir__registry_lock(table);
    meet_locked(&guard, table, id, NULL);
    weir__registry_unlock(table);
    return guard;
}

bool weir_guard_next(struct weir_table *table, int64_t *at, struct weir_guard **out)
{
    struct weir_guard *guard = NULL;

    while (guard == NULL && *at >= 0 && *at < (int64_t)weir__guards_in(table))
        guard = weir__guard_at(table, (uint32_t)(*at)++);
    if (guard != NULL)
        *out = guard;
    return guard != NULL;
}

struct weir_guard *weir_guard_find(struct weir_table *table, const char *name)
{
    return weir__guard_at(table, find_place(table, name));
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
