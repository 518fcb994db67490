/* fleet-host.h -- the functions of the library that made an engine, for the agent of its host
 * (cluster/agent).
 *
 * libweir-redis has a copy of lib/ of its own, and plans know their algorithm by its address: an
 * engine, its table and its limiters are to be used by the copy that made them.  So the engine
 * brings these along.
 */
#ifndef WEIR_ENGINE_FLEET_HOST_H
#define WEIR_ENGINE_FLEET_HOST_H

#include "engine/fleet.h"

struct weir__host {
    size_t size; /* WEIR__HOST_SIZE: other versions of the library may have another */
    weir_time (*now)(const struct weir_table *table);
    uint32_t (*holder)(struct weir_table *table);
    bool (*check)(struct weir *weir, const struct weir_attr *attrs, size_t n,
                  const struct weir_ask *ask, struct weir_ruling *ruling, char told[WEIR_KEY_TEXT]);
    bool (*check_alone)(struct weir *weir, const struct weir_attr *attrs, size_t n,
                        const struct weir_ask *ask, const struct weir__alone_rules *alone,
                        struct weir_ruling *ruling, char told[WEIR_KEY_TEXT]);
    /* As weir_check_enter; `alone` may be NULL. */
    bool (*enter)(struct weir *weir, const struct weir_request *request,
                  const struct weir__alone_rules *alone, const struct weir__entering *entering,
                  struct weir_ruling *ruling, char told[WEIR_KEY_TEXT]);
    size_t (*dues)(struct weir *weir, const struct weir_attr *attrs, size_t n,
                   const struct weir_ask *ask, struct weir__due *out, size_t max);
    bool (*limit_next)(struct weir *weir, int64_t *at, struct weir__across_limit *out);
    uint64_t (*generation)(const struct weir *weir);
    int (*part_set)(struct weir *weir, uint32_t word, weir_time now, struct weir_error *error);
    struct weir_limiter *(*use)(struct weir_table *table, const char *name);
    void (*release)(struct weir_limiter *limiter);
    bool (*take)(struct weir_limiter *limiter, const struct weir_ask *ask,
                 struct weir_decision *decision);
    bool (*peek)(struct weir_limiter *limiter, const struct weir_ask *ask,
                 struct weir_decision *decision);
    int64_t (*empty)(struct weir_limiter *share, struct weir_key key, weir_time now);
    void (*fill)(struct weir_limiter *limiter, struct weir_key key, int64_t units, weir_time drawn,
                 weir_time now);
    void (*close)(struct weir_limiter *limiter, struct weir_key key, weir_time until,
                  weir_time told, weir_time now);
    int64_t (*reset)(struct weir *weir, const char *rule, const struct weir_attr *attrs, size_t n,
                     weir_time now, struct weir_error *error);
    uint64_t (*ban_places)(const struct weir_table *table);
    bool (*ban_read)(const struct weir_table *table, uint64_t i, weir_time now,
                     struct weir__ban_record *out);
    bool (*ban_learn)(struct weir *weir, const struct weir__ban_lesson *lesson);
};
extern const struct weir__host weir__host;

/* Of all structs that both look into. */
#define WEIR__HOST_SIZE                                                            \
    (sizeof(struct weir__host) + sizeof(struct weir) + sizeof(struct weir_table) + \
     sizeof(struct weir__alone_rules) + sizeof(struct weir__due) +                 \
     sizeof(struct weir__across_limit) + sizeof(struct weir__ban_record) +         \
     sizeof(struct weir__ban_lesson) + sizeof(struct weir__entering) +             \
     sizeof(struct weir_request) + sizeof(struct weir_ruling))

#endif
