/* sim.c -- any bytes as a scenario file: no crash, every problem with a place in the text, and a
 * plan that is read makes sense. */
#include "fuzz/fuzz.h"

#include "server/sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* As in rules.c: libfyaml's own. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so\n";
}

static void count_problem(void *context, const struct weir_problem *p)
{
    check(p->text[0] != '\0' && memchr(p->text, '\0', sizeof(p->text)) &&
          !strpbrk(p->text, "\r\n\x1b"));
    check(p->line >= 0 && (p->line == 0) == (p->column == 0));
    ++*(int *)context;
}

static void check_backend(const struct weir__sim_plan *plan)
{
    const struct weir__sim_backend_plan *b = &plan->backend;

    check(b->workers >= 1 && b->work.mean > b->work.floor && b->slowest >= WEIR__SIM_ONE &&
          b->n_changes <= WEIR__SIM_CHANGES);
    for (weir_time at = 0; at < plan->length; at += plan->length / 16) {
        check(weir__sim_plan_workers(b, at) >= 1);
        check(weir__sim_plan_slowness(b, at) > 0);
    }
    for (size_t i = 0; i < b->n_changes; i++)
        check(b->changes[i].from < b->changes[i].to && b->changes[i].to <= plan->length);
}

static void check_plan(const struct weir__sim_plan *plan)
{
    check(plan->length >= WEIR_SECOND && plan->length <= WEIR__SIM_LONGEST && plan->warmup >= 0 &&
          plan->warmup < plan->length);
    check(plan->n_groups >= 1 && plan->n_groups <= WEIR__SIM_GROUPS &&
          plan->n_classes <= WEIR_CLASSES);
    check_backend(plan);
    for (size_t i = 0; i < plan->n_groups; i++) {
        const struct weir__sim_group_plan *g = &plan->groups[i];
        check(g->name[0] && g->users >= 1 && g->priority >= -8 && g->priority <= 7 &&
              g->timeout >= 0);
        check(g->class == 0 || g->class < plan->n_classes);
        check(g->loop > 0 ? g->think > 0 : g->n_points > 0 || g->burst_every > 0);
        for (weir_time at = 0; at < plan->length; at += plan->length / 16)
            check(weir__sim_plan_rate(g, at) >= 0 &&
                  weir__sim_plan_rate(g, at) <= weir__sim_plan_rate_max(g) &&
                  weir__sim_plan_rate_next(g, at) > at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int told = 0;
    struct weir_rules_options options = { .name = "f", .problem = count_problem, .context = &told };
    struct weir__sim_plan *plan = malloc(sizeof(*plan));
    char *text =
        malloc(size ? size : 1); /* of exactly this size, so that a read beyond the end is seen */
    struct weir_error error = { 0 };

    check(plan && text);
    if (size > 0)
        memcpy(text, data, size);
    int code = weir__sim_plan_parse(plan, text, size, &options, &error);
    check(code == WEIR_OK ? told == 0 : told > 0 || code != WEIR_INVALID || size > WEIR__SIM_TEXT);
    if (code == WEIR_OK)
        check_plan(plan);
    else
        check(error.text[0] && memchr(error.text, '\0', sizeof(error.text)));
    free(text);
    free(plan);
    return 0;
}
