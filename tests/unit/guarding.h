/* guarding.h -- shared by the tests of guards. */
#ifndef WEIR_TESTS_UNIT_GUARDING_H
#define WEIR_TESTS_UNIT_GUARDING_H

#include "fixture.h"
#include "guard/guard.h"

#define MS WEIR_MILLISECOND

static inline struct weir_guard *guard_of(struct weir_table *table, const char *name,
                                          const struct weir_guard_options *options)
{
    struct weir_guard *guard = NULL;
    struct weir_error error = { 0 };

    if (weir_guard_create(&guard, table, name, options, &error) != WEIR_OK)
        fail_msg("%s", error.text);
    assert_non_null(guard);
    return guard;
}

/* A guard with these options, in a table that goes with the test: A_GUARD(g, .max = 3); */
#define A_GUARD(g, ...)                                \
    OWN(weir_table) *table = private_table(false, 16); \
    struct weir_guard *g = guard_of(table, #g, &(struct weir_guard_options){ __VA_ARGS__ })

static inline bool enter_at(struct weir_guard *guard, weir_time now, struct weir_permit *permit)
{
    struct weir_decision d;

    return weir_enter(guard, &(struct weir_ask){ .cost = 1, .now = now }, permit, &d);
}

/* Why an enter is refused; WEIR_GRANTED: it is not, and the permit is given back. */
static inline enum weir_reason why_not(struct weir_guard *guard, weir_time now)
{
    struct weir_permit permit;
    struct weir_decision d;

    if (weir_enter(guard, &(struct weir_ask){ .cost = 1, .now = now }, &permit, &d))
        weir_exit(guard, &permit, WEIR_IGNORED, now);
    return d.reason;
}

static inline struct weir_guard_info info_of(struct weir_guard *guard, weir_time now)
{
    struct weir_guard_info info;

    weir_guard_get(guard, now, &info);
    return info;
}

/* One piece of work from beginning to end. */
static inline bool work(struct weir_guard *guard, weir_time now, weir_time took,
                        enum weir_outcome outcome)
{
    struct weir_permit permit;

    if (!enter_at(guard, now, &permit))
        return false;
    assert_true(weir_exit(guard, &permit, outcome, now + took));
    return true;
}

#endif
