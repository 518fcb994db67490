/* guard-lookup.c -- the guards of the table, as the server has met them. */
#include "server/serve/decide/guard-lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "guard/guard.h"
#include "server/base/digest.h"

#define NAMES  256
#define LIKELY 64 /* names compared to find the nearest */

struct weir__guards {
    struct weir_table *table;
    struct weir__guard_keys *keys;
    struct weir__permit_key key;
    uint32_t names[NAMES]; /* id + 1 of the one that was found last of all names of that hash; 0:
                              none; atomic */
};

struct weir__guards *weir__guards_create(struct weir_table *table)
{
    struct weir__guards *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    g->table = table;
    g->keys = weir__guard_keys_create(table);
    if (g->keys == NULL) {
        free(g);
        return NULL;
    }
    weir__permit_key_make(&g->key, table->secrets);
    return g;
}

void weir__guards_destroy(struct weir__guards *g)
{
    if (g != NULL)
        weir__guard_keys_destroy(g->keys);
    free(g);
}

struct weir__guard_keys *weir__guards_keys(const struct weir__guards *g)
{
    return g->keys;
}

const struct weir__permit_key *weir__guards_key(const struct weir__guards *g)
{
    return &g->key;
}

struct weir_guard *weir__guards_get(struct weir__guards *g, uint32_t id)
{
    return weir__guard_at(g->table, id);
}

static bool is_named(const struct weir_guard *guard, const char *name, size_t len)
{
    const char *has = guard != NULL ? weir__guard_name(guard) : NULL;

    return has != NULL && len < WEIR__NAME_SIZE && memcmp(has, name, len) == 0 && has[len] == '\0';
}

static const struct weir__place *place_of(const struct weir_guard *guard)
{
    return &guard->table->places[guard->table->guards.first + guard->id];
}

struct weir_guard *weir__guards_find(struct weir__guards *g, const char *name, size_t len)
{
    uint32_t *hint = &g->names[weir__digest(WEIR__DIGEST_START, name, len) % NAMES];
    uint32_t id = __atomic_load_n(hint, __ATOMIC_RELAXED);
    struct weir_guard *guard = id ? weir__guards_get(g, id - 1) : NULL;
    char text[WEIR__NAME_SIZE];

    if (is_named(guard, name, len))
        return guard;
    if (len >= sizeof(text) || memchr(name, 0, len))
        return NULL;
    memcpy(text, name, len);
    text[len] = '\0';
    guard = weir__guard_named(g->table, text);
    /* One whose rule is gone stays on its way out: finding it would make us its user for good. */
    if (guard != NULL && !weir__get(&place_of(guard)->dropped))
        guard = weir_guard_find(g->table, text);
    if (guard != NULL)
        __atomic_store_n(hint, guard->id + 1, __ATOMIC_RELAXED);
    return guard;
}

int weir__guards_unknown(struct weir__guards *g, const char *name, size_t len,
                         struct weir_error *error)
{
    const char *names[LIKELY];
    size_t n = 0;

    for (uint32_t i = 0; n < LIKELY && i < g->table->guards.most; i++) {
        const struct weir_guard *guard = weir__guards_get(g, i);
        if (guard != NULL)
            names[n++] = weir__guard_name(guard);
    }
    const char *otherwise = n ? "WEIR.GUARDS (weir guards, GET /v1/guards) lists them"
                              : "the rules have none (guards:)";
    snprintf(error->text, sizeof(error->text), "there is no guard %s; %s",
             weir__quote(name, len).text, weir__hint_or(name, len, names, n, otherwise).text);
    return 404;
}
