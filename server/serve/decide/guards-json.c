/* guards-json.c -- a guard in JSON, as servers answer it and `weir guards --table` shows it. */
#include "server/serve/decide/guards-json.h"

#include <stdio.h>

#include "guard/options.h"
#include "server/serve/decide/guard-lookup.h"
#include "server/serve/events/events.h"

/* -------------------------------------------------------------- members ---- */

bool weir__guard_has_breaker(const struct weir_breaker_options *o)
{
    return o->error_percent > 0 || o->errors > 0 || o->slow > 0;
}

int64_t weir__guard_refused(const struct weir_guard_info *g)
{
    return g->refused_open + g->refused_busy + g->refused_limited + g->refused_shed +
           g->refused_degraded + g->refused_full + g->refused_late + g->refused_key_busy;
}

const char *weir__force_name(enum weir_force force)
{
    return force == WEIR_FORCE_OPEN ? "open" : force == WEIR_FORCE_CLOSED ? "closed" : "none";
}

/* What `from` or `to` of an event stands for; NULL: for a number. */
static const char *event_state(const struct weir_guard_event *c, int32_t value)
{
    return c->kind == WEIR_GUARD_EVENT_BREAKER
               ? weir_breaker_state_name((enum weir_breaker_state)value)
           : c->kind == WEIR_GUARD_EVENT_FORCE ? weir__force_name((enum weir_force)value)
                                               : NULL;
}

/* In microseconds; null if it is not known. */
static void add_us(struct weir__buffer *out, const char *name, weir_time t)
{
    weir__buffer_member_name(out, name);
    if (t > 0)
        weir__buffer_number(out, t / WEIR_MICROSECOND);
    else
        weir__buffer_text(out, "null");
}

static void add_row(struct weir__buffer *out, const struct weir__row *row, int64_t value)
{
    char name[40];

    snprintf(name, sizeof(name), "%s%s", row->member, row->type == WEIR__ROW_TIME ? "_ms" : "");
    if (row->type == WEIR__ROW_TIME)
        weir__buffer_member_ms(out, name, value);
    else if (row->type == WEIR__ROW_NAME)
        weir__buffer_member_or_null(out, name, value ? row->words()[value - 1] : NULL);
    else if (row->type == WEIR__ROW_WORD)
        weir__buffer_member_bool(out, name, value != 0);
    else
        weir__buffer_member_number(out, name, value);
}

static void add_rows(struct weir__buffer *out, const struct weir__rows *rows,
                     const struct weir_guard_options *o)
{
    const void *options = (const char *)o + rows->offset;
    bool whole = rows->offset == 0; /* these are the guard's own */

    if (!whole && !weir__rows_any(rows, options)) {
        weir__buffer_member_or_null(out, rows->name, NULL);
        return;
    }
    if (!whole)
        weir__buffer_open(out, rows->name, '{');
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->rows[i].member)
            add_row(out, &rows->rows[i], weir__row_get(&rows->rows[i], options));
    }
    if (!whole)
        weir__buffer_close(out, "}");
}

static void add_classes(struct weir__buffer *out, const struct weir_guard_options *o)
{
    weir__buffer_open(out, "classes", '[');
    for (int i = 0; i < WEIR_CLASSES && o->classes[i].weight > 0; i++) {
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member(out, "class", o->classes[i].name);
        weir__buffer_member_number(out, "weight", o->classes[i].weight);
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "]");
}

static void add_options(struct weir__buffer *out, const struct weir_guard_options *o)
{
    weir__buffer_open(out, "options", '{');
    for (int i = 0; i < WEIR__GROUPS; i++)
        add_rows(out, &weir__guard_rows[i], o);
    add_classes(out, o);
    weir__buffer_close(out, "}");
}

static void add_counts(struct weir__buffer *out, const struct weir_guard_info *g)
{
    weir__buffer_member_number(out, "entered", g->entered);
    weir__buffer_open(out, "outcomes", '{');
    weir__buffer_member_number(out, "ok", g->succeeded);
    weir__buffer_member_number(out, "error", g->failed);
    weir__buffer_member_number(out, "timeout", g->timed_out);
    weir__buffer_member_number(out, "dropped", g->dropped);
    weir__buffer_close(out, "}");
    weir__buffer_open(out, "refused", '{');
    weir__buffer_member_number(out, "open", g->refused_open);
    weir__buffer_member_number(out, "busy", g->refused_busy);
    weir__buffer_member_number(out, "limited", g->refused_limited);
    weir__buffer_member_number(out, "shed", g->refused_shed);
    weir__buffer_member_number(out, "degraded", g->refused_degraded);
    weir__buffer_member_number(out, "full", g->refused_full);
    weir__buffer_member_number(out, "late", g->refused_late);
    weir__buffer_member_number(out, "key_busy", g->refused_key_busy);
    weir__buffer_close(out, "}");
    weir__buffer_member_number(out, "shadow_refused", g->shadow_refused);
    weir__buffer_member_number(out, "reclaimed", g->reclaimed);
}

static void add_state(struct weir__buffer *out, const struct weir_guard_info *g,
                      const struct weir__guard_place *place, weir_time now)
{
    bool breaker = weir__guard_has_breaker(&g->options.breaker) || g->force != WEIR_UNFORCED;
    bool tries = g->breaker == WEIR_BREAKER_OPEN && g->force == WEIR_UNFORCED && g->retry_at > now;

    if (place->known)
        weir__buffer_member_bool(out, "in_rules", place->in_rules);
    else
        weir__buffer_member_or_null(out, "in_rules", NULL);
    weir__buffer_member(
        out, "mode", weir_mode_name(place->mode == WEIR_AS_WRITTEN ? WEIR_ENFORCE : place->mode));
    weir__buffer_member_number(out, "in_flight", g->in_flight);
    weir__buffer_member_number(out, "limit", g->limit);
    weir__buffer_member_number(out, "waiting", place->waiting);
    weir__buffer_member_or_null(out, "controller", g->options.adaptive.controller);
    weir__buffer_member_or_null(out, "breaker",
                                breaker ? weir_breaker_state_name(g->breaker) : NULL);
    weir__buffer_member(out, "force", weir__force_name(g->force));
    weir__buffer_member_ms(out, "retry_ms", tries ? g->retry_at - now : -1);
    weir__buffer_member_number(out, "calls", g->calls);
    weir__buffer_member_number(out, "errors", g->errors);
    weir__buffer_member_number(out, "slow", g->slow);
    add_us(out, "p50_us", g->p50);
    add_us(out, "p90_us", g->p90);
    add_us(out, "p99_us", g->p99);
    add_us(out, "mean_us", g->mean);
    weir__buffer_member_number(out, "admitted_percent", g->admitted_percent);
    weir__buffer_member_number(out, "pressure_percent", g->pressure_percent);
}

static void add_changes(struct weir__buffer *out, const struct weir_guard_info *g,
                        const struct weir_table *table)
{
    weir__buffer_open(out, "changes", '[');
    for (size_t i = 0; i < sizeof(g->events) / sizeof(g->events[0]) && g->events[i].number; i++) {
        const struct weir_guard_event *c = &g->events[i];
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member_number(out, "number", (int64_t)c->number);
        weir__buffer_member_moment(out, "time", weir_table_real(table, c->at));
        if (weir__guard_event_kind(c) < WEIR__EVENT_KINDS)
            weir__buffer_member(out, "event", weir__event_name(weir__guard_event_kind(c)));
        weir__buffer_member_number(out, "from", c->from);
        weir__buffer_member_number(out, "to", c->to);
        weir__buffer_member_or_null(out, "from_state", event_state(c, c->from));
        weir__buffer_member_or_null(out, "to_state", event_state(c, c->to));
        weir__buffer_close(out, "}");
    }
    weir__buffer_close(out, "]");
}

void weir__guard_json(struct weir__buffer *out, const struct weir_guard_info *g,
                      const struct weir__guard_place *place, weir_time now, bool changes)
{
    weir__buffer_open(out, NULL, '{');
    weir__buffer_member(out, "guard", g->name);
    add_state(out, g, place, now);
    add_counts(out, g);
    add_options(out, &g->options);
    if (place->keys != NULL)
        weir__guard_keys_json(place->keys, place->guard, place->keys_most, out);
    if (changes)
        add_changes(out, g, place->table);
    weir__buffer_close(out, "}");
}

void weir__degradation_json(struct weir__buffer *out, const struct weir_table *table)
{
    bool by_hand = false;
    int degradation = weir_degradation_get(table, &by_hand);

    weir__buffer_member_number(out, "degradation", degradation);
    weir__buffer_member_bool(out, "by_hand", by_hand);
}
