/* guard-plan.c -- a guard's options: checked, compiled to a plan, stored as fixed-width numbers. */
#include <string.h>

#include "guard/guard.h"

#define TIMES_WINDOW (10 * WEIR_SECOND)

/* ------------------------------------------------------------- numbers ---- */

static const struct weir__rows *const groups = weir__guard_rows;

void weir__guard_terms_write(struct weir__guard_terms *t, const struct weir_guard_options *o)
{
    int64_t *value = t->values;

    memset(t, 0, sizeof(*t));
    for (int g = 0; g < WEIR__GROUPS; g++) {
        for (size_t i = 0; i < groups[g].n; i++)
            *value++ = weir__row_get(&groups[g].rows[i], (const char *)o + groups[g].offset);
    }
    for (int i = 0; i < WEIR_CLASSES; i++) {
        memcpy(t->classes[i].name, o->classes[i].name,
               strnlen(o->classes[i].name, WEIR_CLASS_NAME - 1));
        t->classes[i].weight = o->classes[i].weight;
    }
}

void weir__guard_terms_read(const struct weir__guard_terms *t, struct weir_guard_options *o)
{
    const int64_t *value = t->values;

    memset(o, 0, sizeof(*o));
    for (int g = 0; g < WEIR__GROUPS; g++) {
        for (size_t i = 0; i < groups[g].n; i++)
            weir__row_set(&groups[g].rows[i], (char *)o + groups[g].offset, *value++);
    }
    for (int i = 0; i < WEIR_CLASSES; i++) {
        memcpy(o->classes[i].name, t->classes[i].name, WEIR_CLASS_NAME);
        o->classes[i].name[WEIR_CLASS_NAME - 1] = '\0';
        o->classes[i].weight = (int32_t)t->classes[i].weight;
    }
}

const char *weir__guard_difference(const struct weir_guard_options *a,
                                   const struct weir_guard_options *b)
{
    for (int g = 0; g < WEIR__GROUPS; g++) {
        for (size_t i = 0; i < groups[g].n; i++) {
            const struct weir__row *row = &groups[g].rows[i];
            if (weir__row_get(row, (const char *)a + groups[g].offset) !=
                weir__row_get(row, (const char *)b + groups[g].offset))
                return groups[g].offset ? groups[g].name : row->member ? row->member : "mode";
        }
    }
    for (int i = 0; i < WEIR_CLASSES; i++) {
        if (a->classes[i].weight != b->classes[i].weight ||
            strncmp(a->classes[i].name, b->classes[i].name, WEIR_CLASS_NAME) != 0)
            return "classes";
    }
    return NULL;
}

/* -------------------------------------------------------------- checks ---- */

/* The classes are those with a weight, without a gap. */
static int make_classes(struct weir__shed_plan *out, const struct weir_guard_options *o,
                        struct weir_error *error)
{
    for (int i = 0; i < WEIR_CLASSES; i++) {
        if (o->classes[i].weight < 0 || o->classes[i].weight > 1000)
            return weir__fail(error, WEIR_INVALID, "the weight of a class must be from 1 to 1000");
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

/* A bound by key is not meant to bound all of them together. */
static void fill_concurrency(struct weir_guard_options *o)
{
    if (o->max == 0 && o->max_per_key > 0)
        o->max = WEIR__PERMITS_MAX;
    weir__rows_fill(&groups[WEIR__CONCURRENCY], o);
}

/* Fills in defaults: for listings, and so that a guard is the same written with and without
 * them. */
static void fill_in(struct weir_guard_options *o, const struct weir__guard_plan *p)
{
    struct weir_adaptive_options *a = &o->adaptive;

    fill_concurrency(o);
    weir__rows_fill(&groups[WEIR__GUARD], o);
    o->mode = p->mode;
    if (p->breaker.on)
        weir__breaker_fill(&o->breaker);
    if (p->controller.row != NULL)
        a->initial = p->controller.initial, a->min = p->controller.min, a->max = p->controller.max;
    if (p->controller.row == &weir__controller_percentile)
        a->percentile = p->controller.percentile, a->window = p->controller.window;
}

static uint32_t seats_for(int64_t max)
{
    uint32_t n = 64;

    while (n < 2 * (uint64_t)max && n < WEIR__GUARD_SEATS)
        n *= 2;
    return n;
}

int weir__guard_plan_make(struct weir__guard_plan *out, const struct weir_guard_options *o,
                          uint64_t salt, struct weir_error *error)
{
    struct weir_guard_options filled = *o;
    int code;

    fill_concurrency(&filled);
    weir__rows_fill(&groups[WEIR__GUARD], &filled);
    struct weir__guard_plan p = { .max = filled.max,
                                  .max_per_key = filled.max_per_key,
                                  .lease = filled.lease };
    if ((code = weir__rows_check(&groups[WEIR__CONCURRENCY], o, error)) ||
        (code = weir__rows_check(&groups[WEIR__GUARD], o, error)) ||
        (code = weir__rows_check(&groups[WEIR__SYSTEM], &o->system, error)) ||
        (code = weir__breaker_plan_make(&p.breaker, &o->breaker, salt, error)) ||
        (code = weir__controller_plan_make(&p.controller, &o->adaptive, p.max, error)) ||
        (code = make_classes(&p.shed, o, error)))
        return code;
    p.seat_mask = seats_for(p.max) - 1;
    /* By then a sweep has given back probes that have a seat. */
    p.breaker.patience = p.lease + WEIR_SECOND;
    p.degrade = o->degrade;
    p.raises = o->raises;
    p.mode = o->mode == WEIR_AS_WRITTEN ? WEIR_ENFORCE : o->mode;
    p.pressure.options = o->system;
    p.pressure.on = weir__rows_any(&groups[WEIR__SYSTEM], &o->system);
    p.shed.on = o->shed || p.shed.classes > 1;
    p.sheds = p.shed.on || p.pressure.on;
    p.plain = p.mode == WEIR_ENFORCE && p.degrade == 0 && !p.sheds && p.max_per_key == 0 &&
              !p.controller.rate;
    p.tick = weir__guard_tick_span(&p.controller);
    p.times_window =
        p.controller.row && p.controller.window > 0 ? p.controller.window : TIMES_WINDOW;

    struct weir__guard_terms terms;

    weir__guard_terms_write(&terms, o);
    weir__guard_terms_read(&terms, &p.options); /* the controller's name is static then */
    fill_in(&p.options, &p);
    *out = p;
    return WEIR_OK;
}
