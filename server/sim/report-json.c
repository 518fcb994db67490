/* report-json.c -- a trial as JSON: everything, the series too. */
#include "server/sim/sim.h"

#include "server/base/buffer.h"

/* null: there is none. */
static void add_real(struct weir__buffer *b, const char *name, bool any, int digits, double value)
{
    weir__buffer_member_name(b, name);
    if (any)
        weir__buffer_format(b, "%.*f", digits, value);
    else
        weir__buffer_text(b, "null");
}

static void add_time(struct weir__buffer *b, const char *name, weir_time time)
{
    add_real(b, name, time >= 0, 3, (double)time / 1e6);
}

static void add_fates(struct weir__buffer *b, const char *name, const struct weir__sim_fates *f)
{
    weir__buffer_open(b, name, '{');
    weir__buffer_member_number(b, "requests", f->requests);
    weir__buffer_member_number(b, "retries", f->retries);
    weir__buffer_member_number(b, "ok", f->ok);
    weir__buffer_member_number(b, "failed", f->failed);
    weir__buffer_member_number(b, "timed_out", f->timed_out);
    weir__buffer_member_number(b, "dropped", f->dropped);
    weir__buffer_member_number(b, "busy", f->busy);
    weir__buffer_member_number(b, "shed", f->shed);
    weir__buffer_member_number(b, "open", f->open);
    weir__buffer_member_number(b, "lost", f->lost);
    weir__buffer_close(b, "}");
}

static void add_group(struct weir__buffer *b, const struct weir__sim_outcome *o, size_t i)
{
    const struct weir__sim_group_plan *plan = &o->plan->groups[i];

    weir__buffer_open(b, NULL, '{');
    weir__buffer_member(b, "name", plan->name);
    if (o->plan->n_classes)
        weir__buffer_member(b, "class", o->plan->guard.classes[plan->class].name);
    weir__buffer_member_number(b, "priority", plan->priority);
    add_time(b, "p50_ms", o->groups[i].p50);
    add_time(b, "p99_ms", o->groups[i].p99);
    add_fates(b, "measured", &o->groups[i].measured);
    add_fates(b, "all", &o->groups[i].all);
    weir__buffer_close(b, "}");
}

static void add_bucket(struct weir__buffer *b, const struct weir__sim_outcome *o, size_t i)
{
    const struct weir__sim_bucket *bucket = &o->buckets[i];

    weir__buffer_open(b, NULL, '{');
    weir__buffer_member_number(b, "at_ms", (weir_time)i * o->bucket / WEIR_MILLISECOND);
    weir__buffer_member_number(b, "offered", bucket->offered);
    weir__buffer_member_number(b, "ok", bucket->ok);
    weir__buffer_member_number(b, "refused", bucket->refused);
    weir__buffer_member_number(b, "bad", bucket->bad);
    add_real(b, "possible", true, 1, bucket->possible);
    add_time(b, "p50_ms", bucket->p50);
    add_time(b, "p99_ms", bucket->p99);
    add_real(b, "in_flight", true, 2, bucket->in_flight);
    weir__buffer_member_number(b, "in_flight_max", bucket->in_flight_max);
    add_real(b, "inside", true, 2, bucket->inside);
    add_real(b, "limit", bucket->limit >= 0, 0, (double)bucket->limit);
    weir__buffer_close(b, "}");
}

static void add_summary(struct weir__buffer *b, const struct weir__sim_outcome *o)
{
    weir__buffer_member(b, "scenario", o->plan->name);
    weir__buffer_member(b, "about", o->plan->about);
    weir__buffer_member(b, "controller", o->controller);
    weir__buffer_member(b, "at_the_end", o->told);
    weir__buffer_member_name(b, "seed");
    weir__buffer_format(b, "%llu", (unsigned long long)o->seed);
    add_real(b, "capacity", true, 3, (double)weir__sim_plan_capacity(&o->plan->backend) / 1000);
    add_real(b, "possible", true, 1, o->possible);
    add_real(b, "goodput_percent", true, 2, o->goodput);
    add_real(b, "wasted_percent", true, 2, o->wasted);
    add_real(b, "unfairness", o->unfairness >= 0, 3, o->unfairness);
    add_time(b, "p50_ms", o->p50);
    add_time(b, "p99_ms", o->p99);
    add_time(b, "work_p99_ms", o->plan->work_p99);
    weir__buffer_member_number(b, "permits_left", o->permits_left);
    weir__buffer_member_number(b, "events", o->events);
}

void weir__sim_json(FILE *out, const struct weir__sim_outcome *o)
{
    struct weir__buffer b = { 0 };

    weir__buffer_open(&b, NULL, '{');
    add_summary(&b, o);
    add_fates(&b, "measured", &o->measured);
    add_fates(&b, "all", &o->all);
    weir__buffer_open(&b, "clients", '[');
    for (size_t i = 0; i < o->plan->n_groups; i++)
        add_group(&b, o, i);
    weir__buffer_close(&b, "]");
    weir__buffer_member_number(&b, "bucket_ms", o->bucket / WEIR_MILLISECOND);
    weir__buffer_open(&b, "series", '[');
    for (size_t i = 0; i < o->n_buckets; i++)
        add_bucket(&b, o, i);
    weir__buffer_close(&b, "]}");
    weir__buffer_print(&b, out);
}
