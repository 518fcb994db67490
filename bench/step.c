/* step.c -- what a bare step costs, the time supplied: granted and refused, every algorithm. */
#include "bench.h"

#define STEPS 20000000

struct subject {
    struct weir_plan *plan;
    void *state;
    weir_time now, stride;
};

static void run(void *context, int64_t n)
{
    struct subject *s = context;
    struct weir_decision d;
    uint64_t allowed = 0;
    struct weir_ask a = { .cost = 1, .now = s->now };

    for (int64_t i = 0; i < n; i++) {
        a.now = s->now;
        allowed += weir_step(s->plan, s->state, &a, &d);
        keep((uint64_t)d.remaining);
        s->now += s->stride;
    }
    keep(allowed);
}

/* Granted: each ask comes when the one before has drained.  Refused: the key is spent and time
 * stands still. */
static void bench(const char *text, const char *name)
{
    struct weir_limit limit = parse_limit(text);
    struct weir_error e;
    struct subject s = { .now = 1000 * WEIR_SECOND };
    char label[80];

    if (weir_plan_create(&s.plan, &limit, &e) != WEIR_OK)
        die(text, &e);
    s.state = calloc(1, weir_plan_state_size(s.plan));
    s.stride = limit.period / limit.count + 1;
    snprintf(label, sizeof(label), "step.%s.granted", name);
    figure(label, measure(run, &s, STEPS), "ns");
    s.stride = 0;
    snprintf(label, sizeof(label), "step.%s.refused", name);
    figure(label, measure(run, &s, STEPS), "ns");
    free(s.state);
    weir_plan_destroy(s.plan);
}

int main(void)
{
    bench("gcra 1000/1s burst 10", "gcra");
    bench("gcra 7000/13s burst 10", "gcra-fraction");
    bench("token-bucket 1000/1s burst 10", "token-bucket");
    bench("leaky-bucket 1000/1s burst 10", "leaky-bucket");
    bench("leaky-bucket 1000/1s queue 10", "leaky-bucket-shaper");
    bench("smooth 1000/1s burst 10", "smooth");
    bench("warm-up 1000/1s", "warm-up");
    bench("fixed-window 1000/1s", "fixed-window");
    bench("sliding-window 1000/1s", "sliding-window");
    bench("sliding-log 1000/1s", "sliding-log");
    return 0;
}
