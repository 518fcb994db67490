/* terms.c -- a guard's options: checked, compiled to a plan, and as fixed-width numbers in the
 * table. */
#include <inttypes.h>
#include <string.h>

#include "guard/guard.h"

#define LEASE_DEFAULT (60 * WEIR_SECOND)
#define LEASE_MAX     (3600 * WEIR_SECOND)
#define TICK          (WEIR_SECOND / 10)

/* ------------------------------------------------------------- numbers ---- */

void weir__guard_terms_write(struct weir__guard_terms *t, const struct weir_guard_options *o)
{
    const struct weir_breaker_options *b = &o->breaker;
    const struct weir_adaptive_options *a = &o->adaptive;
    const struct weir_system_options *s = &o->system;
    const struct weir__controller *row =
        a->controller ? weir__controller_find(a->controller) : NULL;
    memset(t, 0, sizeof(*t));
    t->max = o->max, t->lease = o->lease, t->shed = o->shed, t->degrade = o->degrade,
    t->raises = o->raises, t->mode = o->mode;
    t->breaker.error_percent = b->error_percent, t->breaker.errors = b->errors,
    t->breaker.slow = b->slow;
    t->breaker.slow_percent = b->slow_percent, t->breaker.window = b->window,
    t->breaker.calls = b->calls;
    t->breaker.min_calls = b->min_calls, t->breaker.open_for = b->open_for,
    t->breaker.open_max = b->open_max;
    t->breaker.jitter_percent = b->jitter_percent, t->breaker.probes = b->probes,
    t->breaker.above = b->above;
    t->adaptive.controller = row ? weir__controller_index(row) + 1 : 0;
    t->adaptive.initial = a->initial, t->adaptive.min = a->min, t->adaptive.max = a->max,
    t->adaptive.target = a->target;
    t->adaptive.percentile = a->percentile, t->adaptive.window = a->window,
    t->adaptive.rate = a->rate;
    t->system[0] = s->cpu_percent, t->system[1] = s->pressure_percent,
    t->system[2] = s->memory_percent;
    t->system[3] = s->run_queue, t->system[4] = s->mean_time;
    for (int i = 0; i < WEIR_CLASSES; i++) {
        memcpy(t->classes[i].name, o->classes[i].name,
               strnlen(o->classes[i].name, WEIR_CLASS_NAME - 1));
        t->classes[i].weight = o->classes[i].weight;
    }
}

/* What a damaged file may hold comes out as something, and is checked as options are. */
void weir__guard_terms_read(const struct weir__guard_terms *t, struct weir_guard_options *o)
{
    const struct weir__controller *row = t->adaptive.controller > 0 && t->adaptive.controller < 1000
                                             ? weir__controller_at((int)t->adaptive.controller - 1)
                                             : NULL;
    *o = (struct weir_guard_options){
        .max = t->max,
        .lease = t->lease,
        .shed = t->shed != 0,
        .degrade = (int32_t)t->degrade,
        .raises = (int32_t)t->raises,
        .mode = (enum weir_mode)(t->mode & 3),
        .breaker = { .error_percent = (int32_t)t->breaker.error_percent,
                     .errors = (int32_t)t->breaker.errors,
                     .slow = t->breaker.slow,
                     .slow_percent = (int32_t)t->breaker.slow_percent,
                     .window = t->breaker.window,
                     .calls = (int32_t)t->breaker.calls,
                     .min_calls = (int32_t)t->breaker.min_calls,
                     .open_for = t->breaker.open_for,
                     .open_max = t->breaker.open_max,
                     .jitter_percent = (int32_t)t->breaker.jitter_percent,
                     .probes = (int32_t)t->breaker.probes,
                     .above = t->breaker.above != 0 },
        .adaptive = { .controller = row ? row->name : NULL,
                      .initial = t->adaptive.initial,
                      .min = t->adaptive.min,
                      .max = t->adaptive.max,
                      .target = t->adaptive.target,
                      .percentile = (int32_t)t->adaptive.percentile,
                      .window = t->adaptive.window,
                      .rate = t->adaptive.rate != 0 },
        .system = { (int32_t)t->system[0], (int32_t)t->system[1], (int32_t)t->system[2],
                    (int32_t)t->system[3], t->system[4] },
    };
    for (int i = 0; i < WEIR_CLASSES; i++) {
        memcpy(o->classes[i].name, t->classes[i].name, WEIR_CLASS_NAME);
        o->classes[i].name[WEIR_CLASS_NAME - 1] = '\0';
        o->classes[i].weight = (int32_t)t->classes[i].weight;
    }
}

/* -------------------------------------------------------------- checks ---- */

static int check_range(struct weir_error *error, const char *what, int64_t value, int64_t least,
                       int64_t most)
{
    if (value >= least && value <= most)
        return WEIR_OK;
    return weir__fail(error, WEIR_INVALID,
                      "%s must be from %" PRId64 " to %" PRId64 ", and is %" PRId64, what, least,
                      most, value);
}

static int check_system(const struct weir_system_options *s, struct weir_error *error)
{
    int code = check_range(error, "the share of the processors (cpu)", s->cpu_percent, 0, 100);
    if (code ||
        (code = check_range(error, "the pressure in percent", s->pressure_percent, 0, 100)) ||
        (code =
             check_range(error, "the pressure on memory in percent", s->memory_percent, 0, 100)) ||
        (code = check_range(error, "the run queue", s->run_queue, 0, 10000)))
        return code;
    return check_range(error, "the mean time", s->mean_time, 0, LEASE_MAX);
}

/* Classes are the first ones with a weight; none behind a gap. */
static int make_classes(struct weir__shed_plan *out, const struct weir_guard_options *o,
                        struct weir_error *error)
{
    for (int i = 0; i < WEIR_CLASSES; i++) {
        int code = check_range(error, "the weight of a class", o->classes[i].weight, 0, 1000);
        if (code)
            return code;
        if (o->classes[i].weight > 0 && out->classes < i)
            return weir__fail(
                error, WEIR_INVALID,
                "class %d has a weight and class %d has none; fill the classes from the first on",
                i, out->classes);
        if (memchr(o->classes[i].name, '\0', WEIR_CLASS_NAME) == NULL)
            return weir__fail(error, WEIR_INVALID, "the name of a class has at most %d bytes",
                              WEIR_CLASS_NAME - 1);
        if (o->classes[i].weight > 0)
            out->weights[out->classes++] = o->classes[i].weight;
    }
    if (out->classes == 0)
        out->weights[out->classes++] = 1;
    return WEIR_OK;
}

static int check_numbers(const struct weir_guard_options *o, struct weir_error *error)
{
    int code = check_range(error, "the number of permits", o->max, 0, WEIR__PERMITS_MAX);
    if (code || (code = check_range(error, "the lease in ns", o->lease, 0, LEASE_MAX)) ||
        (code = check_range(error, "the degradation", o->degrade, 0, WEIR__DEGRADATION_MAX)) ||
        (code = check_range(error, "the degradation that is raised", o->raises, 0,
                            WEIR__DEGRADATION_MAX)) ||
        (code = check_system(&o->system, error)))
        return code;
    if (o->lease > 0 && o->lease < WEIR__LEASE_MIN)
        return weir__fail(
            error, WEIR_INVALID,
            "the lease must be 10ms or more: what takes longer than that loses its permit");
    return o->mode <= WEIR_OFF
               ? WEIR_OK
               : weir__fail(error, WEIR_INVALID, "there is no mode %d", (int)o->mode);
}

/* What was left out, as it is in force: for who looks, and so that the same guard written with and
 * without it is the same. */
static void fill_in(struct weir_guard_options *o, const struct weir__guard_plan *p)
{
    struct weir_breaker_options *b = &o->breaker;
    struct weir_adaptive_options *a = &o->adaptive;
    o->max = p->max, o->lease = p->lease, o->mode = p->mode;
    if (p->breaker.on) {
        b->slow_percent = p->breaker.slow_percent, b->min_calls = p->breaker.min_calls,
        b->probes = p->breaker.probes;
        b->open_for = p->breaker.open_for, b->open_max = p->breaker.open_max;
        b->window = p->breaker.part == 0 ? 0
                    : b->window != 0     ? b->window
                                         : p->breaker.part * WEIR__BREAKER_PARTS;
        b->jitter_percent = p->breaker.jitter_percent == 0 ? -1 : p->breaker.jitter_percent;
    }
    if (p->controller.row != NULL)
        a->initial = p->controller.initial, a->min = p->controller.min, a->max = p->controller.max;
    if (p->controller.row == &weir__controller_percentile)
        a->percentile = p->controller.percentile, a->window = p->controller.window;
}

static uint32_t seats_for(int64_t max)
{
    uint32_t n = 64;
    while (n < 2 * (uint64_t)max)
        n *= 2;
    return n;
}

int weir__guard_plan_make(struct weir__guard_plan *out, const struct weir_guard_options *o,
                          uint64_t salt, struct weir_error *error)
{
    struct weir__guard_plan p = { .max = o->max ? o->max : WEIR__PERMITS,
                                  .lease = o->lease ? o->lease : LEASE_DEFAULT,
                                  .tick = TICK };
    const struct weir_system_options *s = &o->system;
    int code = check_numbers(o, error);
    if (code || (code = weir__breaker_plan_make(&p.breaker, &o->breaker, salt, error)) ||
        (code = weir__controller_plan_make(&p.controller, &o->adaptive, p.max, error)) ||
        (code = make_classes(&p.shed, o, error)))
        return code;
    p.seat_mask = seats_for(p.max) - 1;
    p.breaker.patience =
        p.lease + WEIR_SECOND; /* by then a sweep has given back those that have a seat */
    p.degrade = o->degrade;
    p.raises = o->raises;
    p.mode = o->mode == WEIR_AS_WRITTEN ? WEIR_ENFORCE : o->mode;
    p.pressure.options = o->system;
    p.pressure.on =
        s->cpu_percent || s->pressure_percent || s->memory_percent || s->run_queue || s->mean_time;
    p.shed.on = o->shed || p.shed.classes > 1;
    p.levels = p.shed.on || p.pressure.on;
    if (p.controller.row != NULL && p.controller.sample_span < p.tick)
        p.tick = p.controller.sample_span < WEIR_MILLISECOND ? WEIR_MILLISECOND
                                                             : p.controller.sample_span;
    struct weir__guard_terms terms;
    weir__guard_terms_write(&terms, o);
    weir__guard_terms_read(&terms, &p.options); /* its controller's name is ours then */
    fill_in(&p.options, &p);
    *out = p;
    return WEIR_OK;
}
