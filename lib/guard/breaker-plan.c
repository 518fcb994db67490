/* breaker-plan.c -- the options of a breaker, checked, with the defaults filled in. */
#include "guard/breaker.h"

static const struct weir__rows *const rows = &weir__guard_rows[WEIR__BREAKER];

static int check_together(const struct weir_breaker_options *o, struct weir_error *error)
{
    weir_time open_for = o->open_for != 0 ? o->open_for : WEIR__BREAKER_OPEN_FOR;

    if (o->window != 0 && o->calls != 0)
        return weir__fail(error, WEIR_INVALID,
                          "a breaker has a window of time or of calls, not both");
    if (o->slow_percent != 0 && o->slow == 0)
        return weir__fail(error, WEIR_INVALID,
                          "a breaker's slow_percent needs slow: the time of a slow call");
    if (o->open_max != 0 && o->open_max < open_for)
        return weir__fail(error, WEIR_INVALID,
                          "a breaker's open_max is shorter than open_for (%lld ns)",
                          (long long)open_for);
    return WEIR_OK;
}

void weir__breaker_fill(struct weir_breaker_options *o)
{
    bool time = o->calls == 0;

    weir__rows_fill(rows, o);
    if (o->slow == 0)
        o->slow_percent = 0;
    if (!time)
        o->window = 0;
    if (!time && o->min_calls > o->calls)
        o->min_calls = o->calls;
    if (o->open_max == 0)
        o->open_max = weir__breaker_open_max_default(o->open_for);
}

static struct weir__breaker_plan plan_of(struct weir_breaker_options o, uint64_t seed)
{
    bool time = o.calls == 0;

    weir__breaker_fill(&o);
    return (struct weir__breaker_plan){
        .on = true,
        .above = o.above,
        .error_percent = o.error_percent,
        .errors = o.errors,
        .slow = o.slow,
        .slow_percent = o.slow_percent,
        .part = (time ? o.window : WEIR__BREAKER_PACE) / WEIR__BREAKER_PARTS,
        .calls = o.calls,
        .min_calls = o.min_calls,
        .probes = o.probes,
        .jitter_percent = o.jitter_percent < 0 ? 0 : o.jitter_percent,
        .open_for = o.open_for,
        .open_max = o.open_max,
        .seed = seed,
    };
}

int weir__breaker_plan_make(struct weir__breaker_plan *out,
                            const struct weir_breaker_options *options, uint64_t seed,
                            struct weir_error *error)
{
    bool on = options->error_percent != 0 || options->errors != 0 || options->slow != 0;
    int code = weir__rows_check(rows, options, error);

    if (code == WEIR_OK && !on && weir__rows_any(rows, options))
        code = weir__fail(error, WEIR_INVALID, "a breaker needs error_percent, errors or slow");
    if (code == WEIR_OK)
        code = check_together(options, error);
    if (code == WEIR_OK)
        *out = on ? plan_of(*options, seed) : (struct weir__breaker_plan){ 0 };
    return code;
}
