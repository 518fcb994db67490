/* visits.h -- shared by the tests of guards that stand in rules: requests that enter and leave. */
#ifndef WEIR_TESTS_UNIT_VISITS_H
#define WEIR_TESTS_UNIT_VISITS_H

#include "unit/requests.h"

#define GUARDS(lines) "version: 1\nguards:\n" lines

struct visit {
    struct weir_entry entry;
    struct weir_ruling ruling;
};

static inline struct visit enter_as(struct weir *weir, const char *request,
                                    const struct weir_ask *ask)
{
    struct request r = request_of(request);
    struct visit v;

    memset(&v, 0xa5, sizeof(v));
    bool allowed = weir_check_enter(weir, r.attrs, r.n, ask, &v.entry, &v.ruling);
    assert_int_equal(allowed, v.ruling.decision.allowed);
    if (!allowed)
        assert_int_equal(v.entry.n, 0);
    return v;
}

static inline struct visit enter(struct weir *weir, const char *request, weir_time now)
{
    return enter_as(weir, request, &(struct weir_ask){ .cost = 1, .now = now });
}

static inline void leave(struct weir *weir, struct visit *v, enum weir_outcome outcome,
                         weir_time now)
{
    weir_check_exit(weir, &v->entry, outcome, now);
    assert_int_equal(v->entry.n, 0);
}

static inline struct weir_ruled_guard guard_of(struct weir *weir, const char *name)
{
    struct weir_ruled_guard view;

    if (!weir_ruled_guard_find(weir, name, &view))
        fail_msg("there is no guard %s", name);
    return view;
}

static inline struct weir_guard_info guard_info(struct weir *weir, const char *name, weir_time now)
{
    struct weir_guard_info info;

    weir_guard_get(guard_of(weir, name).guard, now, &info);
    return info;
}

static inline int64_t in_flight(struct weir *weir, const char *name, weir_time now)
{
    return guard_info(weir, name, now).in_flight;
}

#define assert_refused_by_guard(v, name, its_reason)              \
    do {                                                          \
        assert_false((v).ruling.decision.allowed);                \
        assert_non_null((v).ruling.guard);                        \
        assert_string_equal((v).ruling.guard, name);              \
        assert_int_equal((v).ruling.decision.reason, its_reason); \
        assert_int_equal((v).ruling.level, 3);                    \
        assert_null((v).ruling.rule);                             \
    } while (0)

#define assert_entered(v, guards)                 \
    do {                                          \
        assert_true((v).ruling.decision.allowed); \
        assert_null((v).ruling.guard);            \
        assert_int_equal((v).entry.n, guards);    \
    } while (0)

#define entered(weir, request, now, guards)          \
    ({                                               \
        struct visit in = enter(weir, request, now); \
        assert_entered(in, guards);                  \
        in;                                          \
    })

#define refused(weir, request, now, name, its_reason)   \
    ({                                                  \
        struct visit out = enter(weir, request, now);   \
        assert_refused_by_guard(out, name, its_reason); \
        out;                                            \
    })

#endif
