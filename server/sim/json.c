/* json.c -- a trial as JSON: everything, the series too. */
#include "server/sim/sim.h"

#include "server/base/words.h"

static void print_time(FILE *out, const char *name, weir_time time)
{
    if (time < 0)
        fprintf(out, "\"%s\":null", name);
    else
        fprintf(out, "\"%s\":%.3f", name, (double)time / 1e6);
}

static void print_fates(FILE *out, const char *name, const struct weir__sim_fates *f)
{
    fprintf(out,
            "\"%s\":{\"requests\":%lld,\"retries\":%lld,\"ok\":%lld,\"failed\":%lld,\"timed_out\":%"
            "lld,\"dropped\":%lld,\"busy\":%lld,"
            "\"shed\":%lld,\"open\":%lld,\"lost\":%lld}",
            name, (long long)f->requests, (long long)f->retries, (long long)f->ok,
            (long long)f->failed, (long long)f->timed_out, (long long)f->dropped,
            (long long)f->busy, (long long)f->shed, (long long)f->open, (long long)f->lost);
}

static void print_text(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\":\"", name);
    weir__safe_text(out, WEIR__SAFE_JSON, text);
    fputs("\",", out);
}

static void print_group(FILE *out, const struct weir__sim_outcome *o, size_t i)
{
    const struct weir__sim_group_plan *plan = &o->plan->groups[i];

    fputs(i ? ",{" : "{", out);
    print_text(out, "name", plan->name);
    if (o->plan->n_classes)
        print_text(out, "class", o->plan->guard.classes[plan->class].name);
    fprintf(out, "\"priority\":%d,", plan->priority);
    print_time(out, "p50_ms", o->groups[i].p50);
    fputc(',', out);
    print_time(out, "p99_ms", o->groups[i].p99);
    fputc(',', out);
    print_fates(out, "measured", &o->groups[i].measured);
    fputc(',', out);
    print_fates(out, "all", &o->groups[i].all);
    fputc('}', out);
}

static void print_bucket(FILE *out, const struct weir__sim_outcome *o, size_t i)
{
    const struct weir__sim_bucket *b = &o->buckets[i];

    fprintf(out,
            "%s{\"at_ms\":%lld,\"offered\":%lld,\"ok\":%lld,\"refused\":%lld,\"bad\":%lld,"
            "\"possible\":%.1f,",
            i ? "," : "", (long long)((weir_time)i * o->bucket / WEIR_MILLISECOND),
            (long long)b->offered, (long long)b->ok, (long long)b->refused, (long long)b->bad,
            b->possible);
    print_time(out, "p50_ms", b->p50);
    fputc(',', out);
    print_time(out, "p99_ms", b->p99);
    fprintf(out,
            ",\"in_flight\":%.2f,\"in_flight_max\":%lld,\"inside\":%.2f,\"limit\":", b->in_flight,
            (long long)b->in_flight_max, b->inside);
    fprintf(out, b->limit < 0 ? "null}" : "%lld}", (long long)b->limit);
}

static void print_summary(FILE *out, const struct weir__sim_outcome *o)
{
    print_text(out, "scenario", o->plan->name);
    print_text(out, "about", o->plan->about);
    print_text(out, "controller", o->controller);
    print_text(out, "at_the_end", o->told);
    fprintf(out,
            "\"seed\":%llu,\"capacity\":%.3f,\"possible\":%.1f,\"goodput_percent\":%.2f,\"wasted_"
            "percent\":%.2f,\"unfairness\":",
            (unsigned long long)o->seed, (double)weir__sim_plan_capacity(&o->plan->backend) / 1000,
            o->possible, o->goodput, o->wasted);
    fprintf(out, o->unfairness < 0 ? "null," : "%.3f,", o->unfairness);
    print_time(out, "p50_ms", o->p50);
    fputc(',', out);
    print_time(out, "p99_ms", o->p99);
    fputc(',', out);
    print_time(out, "work_p99_ms", o->plan->work_p99);
    fprintf(out, ",\"permits_left\":%lld,\"events\":%lld,", (long long)o->permits_left,
            (long long)o->events);
}

void weir__sim_json(FILE *out, const struct weir__sim_outcome *o)
{
    fputc('{', out);
    print_summary(out, o);
    print_fates(out, "measured", &o->measured);
    fputc(',', out);
    print_fates(out, "all", &o->all);
    fputs(",\"clients\":[", out);
    for (size_t i = 0; i < o->plan->n_groups; i++)
        print_group(out, o, i);
    fprintf(out, "],\"bucket_ms\":%lld,\"series\":[", (long long)(o->bucket / WEIR_MILLISECOND));
    for (size_t i = 0; i < o->n_buckets; i++)
        print_bucket(out, o, i);
    fputs("]}", out);
}
