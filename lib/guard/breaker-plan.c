/* breaker-plan.c -- what somebody writes of a breaker, checked, with the defaults filled in. */
#include "guard/breaker.h"

enum {
    PERCENT_DEFAULT = 50,
    MIN_CALLS_DEFAULT = 20,
    PROBES_DEFAULT = 3,
    JITTER_DEFAULT = 10,
    OPEN_MAX_TIMES = 12,
};

#define WINDOW_DEFAULT (10 * WEIR_SECOND)
#define WINDOW_MIN     WEIR_MILLISECOND
#define SPAN_MAX       (366 * 86400 * WEIR_SECOND)

static int check_numbers(const struct weir_breaker_options *o, struct weir_error *error)
{
    const struct {
        const char *name;
        int32_t value, min, max;
    } rows[] = {
        { "error_percent", o->error_percent, 0, 100 },
        { "errors", o->errors, 0, WEIR__BREAKER_NUMBER },
        { "slow_percent", o->slow_percent, 0, 100 },
        { "calls", o->calls, 0, WEIR__BREAKER_CALLS_MAX },
        { "min_calls", o->min_calls, 0, WEIR__BREAKER_NUMBER },
        { "jitter_percent", o->jitter_percent, -1, 100 },
        { "probes", o->probes, 0, WEIR__BREAKER_PROBES },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].value < rows[i].min || rows[i].value > rows[i].max)
            return weir__fail(error, WEIR_INVALID, "a breaker's %s is %d; it must be %d to %d",
                              rows[i].name, rows[i].value, rows[i].min, rows[i].max);
    return WEIR_OK;
}

static int check_times(const struct weir_breaker_options *o, struct weir_error *error)
{
    const struct {
        const char *name;
        weir_time value;
    } rows[] = { { "slow", o->slow },
                 { "window", o->window },
                 { "open_for", o->open_for },
                 { "open_max", o->open_max } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].value < 0 || rows[i].value > SPAN_MAX)
            return weir__fail(error, WEIR_INVALID,
                              "a breaker's %s is %lld ns; it must be 0 to 366 days", rows[i].name,
                              (long long)rows[i].value);
    if (o->window != 0 && o->window < WINDOW_MIN)
        return weir__fail(error, WEIR_INVALID,
                          "a breaker's window is %lld ns; it must be 1 ms or more",
                          (long long)o->window);
    return WEIR_OK;
}

static int check_together(const struct weir_breaker_options *o, struct weir_error *error)
{
    weir_time open_for = o->open_for != 0 ? o->open_for : WEIR__BREAKER_OPEN_FOR;

    if (o->window != 0 && o->calls != 0)
        return weir__fail(error, WEIR_INVALID,
                          "a breaker has a window of time or of calls, not both");
    if (o->slow_percent != 0 && o->slow == 0)
        return weir__fail(
            error, WEIR_INVALID,
            "a breaker's slow_percent needs slow: how long a call takes that is slow");
    if (o->open_max != 0 && o->open_max < open_for)
        return weir__fail(error, WEIR_INVALID,
                          "a breaker's open_max is shorter than open_for (%lld ns)",
                          (long long)open_for);
    return WEIR_OK;
}

/* Off: nothing opens it; then there should be nothing else to say of it either. */
static bool is_empty(const struct weir_breaker_options *o)
{
    return o->slow_percent == 0 && o->window == 0 && o->calls == 0 && o->min_calls == 0 &&
           o->open_for == 0 && o->open_max == 0 && o->jitter_percent == 0 && o->probes == 0 &&
           !o->above;
}

static int32_t or_else(int32_t value, int32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static struct weir__breaker_plan plan_of(const struct weir_breaker_options *o, uint64_t seed)
{
    struct weir__breaker_plan p = {
        .on = true,
        .above = o->above,
        .error_percent = o->error_percent,
        .errors = o->errors,
        .slow = o->slow,
        .slow_percent = o->slow != 0 ? or_else(o->slow_percent, PERCENT_DEFAULT) : 0,
        .part =
            o->calls != 0 ? 0 : (o->window != 0 ? o->window : WINDOW_DEFAULT) / WEIR__BREAKER_PARTS,
        .calls = o->calls,
        .min_calls = or_else(o->min_calls, MIN_CALLS_DEFAULT),
        .probes = or_else(o->probes, PROBES_DEFAULT),
        .jitter_percent = o->jitter_percent < 0 ? 0 : or_else(o->jitter_percent, JITTER_DEFAULT),
        .open_for = o->open_for != 0 ? o->open_for : WEIR__BREAKER_OPEN_FOR,
        .seed = seed,
    };
    if (p.calls != 0 && p.min_calls > p.calls)
        p.min_calls = p.calls;
    p.open_max = o->open_max != 0 ? o->open_max : p.open_for * OPEN_MAX_TIMES;
    return p;
}

int weir__breaker_plan_make(struct weir__breaker_plan *out,
                            const struct weir_breaker_options *options, uint64_t seed,
                            struct weir_error *error)
{
    bool on = options->error_percent != 0 || options->errors != 0 || options->slow != 0;
    int code = check_numbers(options, error);

    if (code == WEIR_OK)
        code = check_times(options, error);
    if (code == WEIR_OK && !on && !is_empty(options))
        code = weir__fail(error, WEIR_INVALID,
                          "a breaker needs error_percent, errors or slow: what opens it");
    if (code == WEIR_OK)
        code = check_together(options, error);
    if (code == WEIR_OK)
        *out = on ? plan_of(options, seed) : (struct weir__breaker_plan){ 0 };
    return code;
}
