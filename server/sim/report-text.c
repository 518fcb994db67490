/* report-text.c -- trials as tables: one line a controller, and one line a group of clients. */
#include "server/sim/sim.h"

#include "server/base/human-numbers.h"

static const char *time_text(char *out, size_t size, weir_time time)
{
    if (time < 0)
        snprintf(out, size, "-");
    else
        weir__human_duration(out, time);
    return out;
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static int64_t refused(const struct weir__sim_fates *f)
{
    return f->busy + f->shed + f->open;
}

/* Attempts that came to an end in the span. */
static int64_t ended(const struct weir__sim_fates *f)
{
    return f->ok + f->failed + f->timed_out + f->dropped + refused(f);
}

/* The lowest and the highest limit of the measured span. */
static void limit_text(char *out, size_t size, const struct weir__sim_outcome *o)
{
    int64_t low = INT64_MAX, high = -1;

    for (size_t i = (size_t)(o->plan->warmup / o->bucket); i < o->n_buckets; i++) {
        int64_t limit = o->buckets[i].limit;
        if (limit < 0)
            continue;
        low = limit < low ? limit : low;
        high = limit > high ? limit : high;
    }
    if (high < 0)
        snprintf(out, size, "-");
    else if (low == high)
        snprintf(out, size, "%lld", (long long)low);
    else
        snprintf(out, size, "%lld-%lld", (long long)low, (long long)high);
}

static void print_head(FILE *out, const struct weir__sim_outcome *o)
{
    const struct weir__sim_plan *plan = o->plan;
    char length[32], warmup[32], p99[32];

    weir_time_print(length, sizeof(length), plan->length);
    weir_time_print(warmup, sizeof(warmup), plan->warmup);
    time_text(p99, sizeof(p99), o->plan->work_p99);
    fprintf(out, "%s: %s\n", plan->name, plan->about);
    fprintf(out,
            "  %s, measured from %s on; seed %llu; capacity %.0f/s at the start, "
            "unloaded p99 %s\n\n",
            length, warmup, (unsigned long long)o->seed,
            (double)weir__sim_plan_capacity(&plan->backend) / 1000, p99);
}

static void print_row(FILE *out, const struct weir__sim_outcome *o, bool best)
{
    const struct weir__sim_fates *f = &o->measured;
    char p50[32], p99[32], limit[48], unfair[16] = "-";

    if (o->unfairness >= 0)
        snprintf(unfair, sizeof(unfair), "%.2f", o->unfairness);
    limit_text(limit, sizeof(limit), o);
    fprintf(out, "  %-12s %6.1f%%%s %7s %7s %8.1f%% %8.1f%% %7.1f%% %7.1f%% %7s  %-9s %s\n",
            o->controller, o->goodput, best ? "*" : " ", time_text(p50, sizeof(p50), o->p50),
            time_text(p99, sizeof(p99), o->p99), share(refused(f), ended(f)),
            share(f->timed_out, ended(f)), share(f->failed + f->dropped, ended(f)), o->wasted,
            unfair, limit, o->told);
}

void weir__sim_table(FILE *out, const struct weir__sim_outcome *const *outcomes, size_t n)
{
    double most = 0;

    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++)
        most = outcomes[i]->goodput > most ? outcomes[i]->goodput : most;
    print_head(out, outcomes[0]);
    fprintf(out, "  %-12s %7s  %7s %7s %9s %9s %8s %8s %7s  %-9s %s\n", "controller", "goodput",
            "p50", "p99", "refused", "timeouts", "failed", "wasted", "unfair", "limit",
            "at the end");
    for (size_t i = 0; i < n; i++)
        print_row(out, outcomes[i], n > 1 && outcomes[i]->goodput == most);
    fputc('\n', out);
}

static void print_group(FILE *out, const struct weir__sim_outcome *o, size_t i)
{
    const struct weir__sim_group_outcome *g = &o->groups[i];
    const struct weir__sim_group_plan *plan = &o->plan->groups[i];
    const char *class = o->plan->n_classes ? o->plan->guard.classes[plan->class].name : "-";
    const struct weir__sim_fates *f = &g->measured;
    char p50[32], p99[32];

    fprintf(
        out,
        "  %-12s %-14s %-8s %8d %9lld %6.1f%% %7s %7s %6.1f%% %6.1f%% %6.1f%% %8.1f%% %7.1f%%\n",
        o->controller, plan->name, class, plan->priority, (long long)f->requests,
        share(f->ok, f->requests), time_text(p50, sizeof(p50), g->p50),
        time_text(p99, sizeof(p99), g->p99), share(f->busy, ended(f)), share(f->shed, ended(f)),
        share(f->open, ended(f)), share(f->timed_out, ended(f)),
        share(f->failed + f->dropped, ended(f)));
}

void weir__sim_groups(FILE *out, const struct weir__sim_outcome *const *outcomes, size_t n)
{
    fprintf(out, "  %-12s %-14s %-8s %8s %9s %7s %7s %7s %7s %7s %7s %9s %8s\n", "controller",
            "clients", "class", "priority", "requests", "served", "p50", "p99", "busy", "shed",
            "open", "timeouts", "failed");
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < outcomes[i]->plan->n_groups; k++)
            print_group(out, outcomes[i], k);
    }
    fputc('\n', out);
}

/* name, value, unit: for the benchmarks' tables. */
void weir__sim_tsv(FILE *out, const struct weir__sim_outcome *o)
{
    const char *name = o->plan->name;

    fprintf(out, "sim.%s.%s.goodput\t%.1f\t%%\n", name, o->controller, o->goodput);
    fprintf(out, "sim.%s.%s.p50\t%.1f\tms\n", name, o->controller,
            o->p50 < 0 ? 0 : (double)o->p50 / 1e6);
    fprintf(out, "sim.%s.%s.p99\t%.1f\tms\n", name, o->controller,
            o->p99 < 0 ? 0 : (double)o->p99 / 1e6);
    fprintf(out, "sim.%s.%s.wasted\t%.1f\t%%\n", name, o->controller, o->wasted);
    if (o->unfairness >= 0)
        fprintf(out, "sim.%s.%s.unfairness\t%.2f\tx\n", name, o->controller, o->unfairness);
}
