/* controller.c -- the list of the controllers; making a plan from options; one step. */
#include "guard/controller.h"

#include <string.h>

#include "base/atomic.h"
#include "guard/arithmetic.h"
#include "guard/options.h"

/* A new controller: its file, a line here, cases in tests/vectors/guards, a section in docs.  The
 * order is part of the table's format (docs/shm.md): add at the end. */
static const struct weir__controller *const controllers[] = {
    &weir__controller_weir,  &weir__controller_percentile, &weir__controller_aimd,
    &weir__controller_vegas, &weir__controller_gradient2,
};

#define CONTROLLERS ((int)(sizeof(controllers) / sizeof(*controllers)))

const char *const *weir_controllers(void)
{
    static const char *const names[] = {
        "weir", "percentile", "aimd", "vegas", "gradient2", NULL,
    };

    _Static_assert(sizeof(names) / sizeof(*names) == sizeof(controllers) / sizeof(*controllers) + 1,
                   "a name for each, in the same order");
    return names;
}

int weir__controller_index(const struct weir__controller *row)
{
    int i = 0;

    while (i < CONTROLLERS && controllers[i] != row)
        i++;
    return i < CONTROLLERS ? i : -1;
}

const struct weir__controller *weir__controller_find(const char *name)
{
    for (int i = 0; i < CONTROLLERS; i++)
        if (strcmp(controllers[i]->name, name) == 0)
            return controllers[i];
    return NULL;
}

const char *weir_controller_summary(const char *name)
{
    const struct weir__controller *row = weir__controller_find(name);

    return row ? row->summary : NULL;
}

/* ---------------------------------------------------------------- the plan ---- */

/* A default bound gives way to one that is set. */
static int set_bounds(struct weir__controller_plan *plan, const struct weir_adaptive_options *o,
                      int64_t ceiling, struct weir_error *error)
{
    const struct weir__controller_plan *d = &plan->row->defaults;
    int64_t named = weir__int_most(o->min, o->initial);

    plan->max = o->max       ? o->max
                : plan->rate ? ceiling
                             : weir__int_least(weir__int_most(d->max, named), ceiling);
    plan->min =
        o->min ? o->min
               : weir__int_most(
                     1, weir__int_least(d->min, o->initial ? weir__int_least(o->initial, plan->max)
                                                           : plan->max));
    plan->initial =
        o->initial ? o->initial : weir__int_least(weir__int_most(d->initial, plan->min), plan->max);
    if (plan->max > ceiling)
        return weir__fail(error, WEIR_INVALID, "max must be at most %lld, %s", (long long)ceiling,
                          plan->rate ? "a billion per second" : "the permits that there are");
    if (plan->min > plan->max)
        return weir__fail(error, WEIR_INVALID, "min must be at most max: %lld",
                          (long long)plan->max);
    if (plan->initial < plan->min || plan->initial > plan->max)
        return weir__fail(error, WEIR_INVALID, "initial must be from min to max: %lld to %lld",
                          (long long)plan->min, (long long)plan->max);
    return WEIR_OK;
}

/* The percentile controller looks back over a window, ten times per window.  For the others the
 * window is the length of a sample. */
static void set_times(struct weir__controller_plan *plan, const struct weir_adaptive_options *o)
{
    const struct weir__controller_plan *d = &plan->row->defaults;
    bool slides = plan->row == &weir__controller_percentile;

    plan->window = slides && o->window ? o->window : d->window ? d->window : 10 * WEIR_SECOND;
    plan->sample_span = slides      ? plan->window / WEIR__RECENT_PARTS
                        : o->window ? o->window
                                    : d->sample_span;
    plan->target = o->target ? o->target : d->target;
    plan->percentile = o->percentile ? o->percentile : d->percentile;
}

int weir__controller_plan_make(struct weir__controller_plan *out,
                               const struct weir_adaptive_options *options, int64_t permits_max,
                               struct weir_error *error)
{
    struct weir__controller_plan plan = { 0 };
    int code;

    if (options->controller == NULL) {
        *out = plan;
        return WEIR_OK;
    }
    const struct weir__controller *row = weir__controller_find(options->controller);
    if (row == NULL)
        return weir__fail(error, WEIR_INVALID,
                          "unknown controller '%.40s'; there are weir, percentile, aimd, vegas "
                          "and gradient2",
                          options->controller);
    if (options->rate && row != &weir__controller_percentile)
        return weir__fail(error, WEIR_INVALID, "%s has no 'rate'; it is for percentile", row->name);
    plan = row->defaults;
    plan.row = row;
    plan.rate = options->rate;
    plan.kind = weir__controller_index(row) * 2 + plan.rate + 1;
    if ((code = weir__rows_check(&weir__guard_rows[WEIR__ADAPTIVE], options, error)) ||
        (code = set_bounds(&plan, options, plan.rate ? WEIR__RATE_MAX : permits_max, error)))
        return code;
    set_times(&plan, options);
    if (row->check && (code = row->check(&plan, error)))
        return code;
    *out = plan;
    return WEIR_OK;
}

/* ---------------------------------------------------------------- the step ---- */

#define WORDS (WEIR__CONTROLLER_STATE / 8)

_Static_assert(WEIR__CONTROLLER_STATE % 8 == 0 && WEIR__CONTROLLER_OWN == 8 * (WORDS - 1),
               "words, the last of which is the check");

/* Depends on the controller too: another's state is not valid here. */
static uint64_t check_of(const uint64_t words[WORDS], int index)
{
    uint64_t sum = 0x9e3779b97f4a7c15u * (uint64_t)(index + 1);

    for (size_t i = 0; i < WORDS - 1; i++) {
        sum = (sum ^ words[i]) * 0xff51afd7ed558ccdu;
        sum ^= sum >> 32;
    }
    return sum;
}

static bool is_zero(const uint64_t words[WORDS])
{
    uint64_t any = 0;

    for (size_t i = 0; i < WORDS; i++)
        any |= words[i];
    return any == 0;
}

/* Word by word, because other threads may read a state while it is stepped:
 * weir__controller_tell. */
static void load(uint64_t words[WORDS], const void *state)
{
    for (size_t i = 0; i < WORDS; i++)
        words[i] = weir__get((const uint64_t *)state + i);
}

/* On a copy, so that a process killed here leaves the old state, the new one, or one with a wrong
 * check. */
int64_t weir__controller_step(const struct weir__controller_plan *plan, void *state,
                              const struct weir__sample *sample)
{
    uint64_t words[WORDS];
    int index = weir__controller_index(plan->row);

    load(words, state);
    if (!is_zero(words) && words[WORDS - 1] != check_of(words, index))
        memset(words, 0, sizeof(words));
    double limit = plan->row->step(plan, words, sample);
    if (!weir__is_finite(limit)) {
        memset(words, 0, sizeof(words));
        limit = plan->row->step(plan, words, sample);
    }
    words[WORDS - 1] = check_of(words, index);
    for (size_t i = 0; i < WORDS; i++)
        weir__set((uint64_t *)state + i, words[i]);
    return weir__is_finite(limit)
               ? (int64_t)weir__between((double)plan->min, limit, (double)plan->max)
               : plan->initial;
}

void weir__controller_forget(void *state)
{
    for (size_t i = 0; i < WORDS; i++)
        weir__set((uint64_t *)state + i, 0);
}

/* --------------------------------------------------------------- in words ---- */

void weir__controller_tell(const struct weir__controller_plan *plan, const void *state, char *out,
                           size_t size)
{
    uint64_t words[WORDS];

    load(words, state);
    *out = 0;
    if (plan->row && plan->row->tell &&
        words[WORDS - 1] == check_of(words, weir__controller_index(plan->row)))
        plan->row->tell(words, out, size);
}
